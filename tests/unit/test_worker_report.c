// SPDX-License-Identifier: Apache-2.0
#include "worker_world.h"

#include <workerd/core/state.h>

/* What a worker keeps of its hosts while their driver is away, and whom it tells. */
TestSuite(worker_report, .fini = finish);

static struct fw_message kept_welcome;
static uint64_t told_epoch; /* in the last HELLO */

/* A driver that keeps hosts, and has proven that. Returns its HELLO's reports. */
static uint32_t attach_as(const char *proof, bool keeps_hosts)
{
	uint32_t reports;

	cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_CONNECTED,
					     .connection = seen_connection,
					     .text = "127.0.0.1",
					     .proof = proof}),
		     0);
	cr_assert_not_null(sent(FW_HELLO));
	reports = sent(FW_HELLO)->hello.reports;
	told_epoch = sent(FW_HELLO)->hello.last_epoch;
	kept_welcome = welcome;
	kept_welcome.welcome.keeps_hosts = keeps_hosts;
	from_driver(&kept_welcome);
	cr_assert_eq(wrk_core_session(core), WRK_SESSION_ATTACHED);
	return reports;
}

static void start_as(const char *proof)
{
	make_started(false);
	cr_expect_eq(attach_as(proof, true), 0);
	cr_expect_null(sent(FW_REPORTED), "there was nothing to report");
}

static void lose_driver(void)
{
	driver_lost("connection reset");
}

static void reconnect(void)
{
	int64_t until = now + WRK_BACKOFF_HOSTS_NS;

	while (!timers_until(until, WRK_DO_CONNECT)) {
		struct fw_message alive = {.kind = FW_BEAT};

		cr_assert_lt(now, until);
		from_host(&alive);
	}
}

static void request(enum fw_kind kind)
{
	struct fw_message message = host_frame(kind);

	from_driver(&message);
}

/* Its host is started for the driver that has proven that. */
static void run_host_as(const char *proof)
{
	start_as(proof);
	spawn(1);
	prepared();
	request(FW_HOST_START);
}

Test(worker_report, a_host_runs_on_and_is_reported_with_all_that_matters)
{
	struct fw_message done = host_frame(FW_HOST_EVENT);

	run_host_as("key a 1");
	lose_driver();
	cr_expect_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_str_eq(
		logged(FRAGI_LOG_WARN),
		"lost the driver at 127.0.0.1:57777: connection reset; 1 host runs on meanwhile");
	done.event.state = FW_STATE_DONE;
	from_host(&done);
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_assert_not_null(sent(FW_HOST_REPORT));
	cr_expect_str_eq(sent(FW_HOST_REPORT)->report.create.application, "app");
	cr_expect(sent(FW_HOST_REPORT)->report.started);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.stop, FW_STOP_NOT);
	cr_assert_not_null(sent(FW_HOST_PREPARED));
	cr_assert_not_null(sent(FW_HOST_EVENT));
	cr_expect_eq(sent(FW_HOST_EVENT)->event.state, FW_STATE_DONE);
	cr_expect_null(sent(FW_HOST_EXIT));
	cr_expect_not_null(sent(FW_REPORTED));
	cr_expect_not_null(did(WRK_DO_REPORTER_HOST));
	/* The present driver may command it. */
	request(FW_HOST_STOP);
	cr_expect_not_null(did(WRK_DO_SEND_HOST));
}

Test(worker_report, what_ended_meanwhile_is_reported_until_the_run_is_over)
{
	run_host_as("key a 1");
	lose_driver();
	exited(0, SIGSEGV, true);
	for (int again = 0; again < 2; again++) {
		reconnect();
		cr_expect_eq(attach_as("key a 1", true), 1);
		cr_assert_not_null(sent(FW_HOST_EXIT));
		cr_expect_eq(sent(FW_HOST_EXIT)->exit.signal, SIGSEGV);
		cr_expect(sent(FW_HOST_STATS)->stats.final);
		cr_expect_eq(sent(FW_HOST_STATS)->stats.ops[1].ticks, 17);
		cr_expect_null(did(WRK_DO_REPORTER_HOST));
		lose_driver();
	}
	reconnect();
	attach_as("key a 1", true);
	app_ended(7, 0);
	lose_driver();
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	cr_expect_eq(attach_as("key a 1", true), 0);
	cr_expect_null(sent(FW_REPORTED));
}

/* To its driver a host that was told to end fails no more, nor to the next one. */
Test(worker_report, what_a_host_says_before_it_is_told_to_end_is_reported)
{
	struct fw_message failed = host_frame(FW_HOST_EVENT), stop = host_frame(FW_HOST_STOP);

	failed.event.state = FW_STATE_FAILED;
	for (int is_late = 0; is_late < 2; is_late++) {
		run_host_as("key a 1");
		stop.stop.drain_ns = 1000 * MS;
		from_driver(&stop);
		if (!is_late)
			from_host(&failed);
		stop.stop.drain_ns = 0;
		from_driver(&stop);
		if (is_late)
			from_host(&failed);
		exited(0, 0, true);
		lose_driver();
		reconnect();
		cr_expect_eq(attach_as("key a 1", true), 1);
		cr_expect_eq(sent(FW_HOST_EVENT) == NULL, is_late);
		cr_expect_not_null(sent(FW_HOST_EXIT));
		cr_expect_eq(sent(FW_HOST_REPORT)->report.stop, FW_STOP_DRAINED_ENDS);
		finish();
	}
}

/* Its driver took them for gone when the worker came back on a new connection. */
Test(worker_report, hosts_of_an_application_that_has_ended_end)
{
	run_host_as("key a 1");
	lose_driver();
	reconnect();
	attach_as("key a 1", true);
	app_ended(8, 0);
	cr_expect_null(did(WRK_DO_SIGNAL_HOST), "another application has ended");
	app_ended(7, 0);
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
}

Test(worker_report, a_driver_that_proves_something_else_gets_no_hosts)
{
	static const char *const others[] = {"key b 2", "user 1000", NULL};

	for (size_t i = 0; i < FRAG_COUNT_OF(others); i++) {
		start_as("key a 1");
		spawn(1);
		prepared();
		lose_driver();
		reconnect();
		cr_expect_eq(attach_as(others[i], true), 1);
		cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
		cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
		cr_expect_null(sent(FW_HOST_REPORT));
		cr_expect_not_null(sent(FW_REPORTED));
		cr_expect_str_eq(
			logged(FRAGI_LOG_WARN),
			"the driver at 127.0.0.1:57777 has another key than the one before; 1 host ends here");
		exited(0, SIGKILL, true);
		cr_expect_null(sent(FW_HOST_EXIT), "it is not the one of this driver");
		finish();
	}
	make(false); /* for the end of the suite */
}

Test(worker_report, a_driver_of_one_application_gets_no_hosts)
{
	start_as("user 0");
	spawn(1);
	lose_driver();
	reconnect();
	attach_as("user 0", false);
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_null(sent(FW_HOST_REPORT));
	cr_expect_null(sent(FW_REPORTED), "such a driver knows of no reports");
}

Test(worker_report, sums_of_earlier_epochs_and_the_last_request_to_stop)
{
	struct fw_message kill = host_frame(FW_HOST_KILL), wire = host_frame(FW_HOST_WIRE);

	run_host_as("key a 1");
	exited(0, SIGKILL, true);
	spawn(2);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect_not(sent(FW_HOST_REPORT)->report.is_wired);
	wire.epoch = kill.epoch = 2;
	from_driver(&wire);
	kill.stop.reason = "another host crashed";
	kill.stop.failure = FRAGI_FAILURE_HOST_EXITED;
	from_driver(&kill);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_assert_not_null(sent(FW_HOST_REPORT));
	cr_expect_eq(sent(FW_HOST_REPORT)->epoch, 2);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.restarts, 1);
	cr_expect(sent(FW_HOST_REPORT)->report.has_run);
	cr_expect_not(sent(FW_HOST_REPORT)->report.started);
	cr_expect(sent(FW_HOST_REPORT)->report.is_wired);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.stop, FW_STOP_KILLED);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.failure, FRAGI_FAILURE_HOST_EXITED);
	cr_expect_str_eq(sent(FW_HOST_REPORT)->report.reason, "another host crashed");
	cr_assert_not_null(sent(FW_HOST_PAST));
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[1].ticks, 17);
	cr_expect_not(sent(FW_HOST_REPORT)->report.is_inexact);
}

/* A process at which nobody looked reports no pools. */
Test(worker_report, sums_of_earlier_epochs_have_pools_and_processor_time)
{
	struct fw_late_counts lates[] = {{{[FRAGI_BLAME_QUEUE] = 2}}, {{[FRAGI_BLAME_CLOCK] = 5}}};
	struct fragi_pool_stats pools[] = {{4, 4096, 1, 2, 900}, {8, 512, 8, 3, 30}};
	struct fw_op_stats ops[] = {
		{.ticks = 3, .compute = {.count = 4, .total_ns = 50, .bars = {0, 4}}}};

	start_as("key a 1");
	for (uint64_t epoch = 1; epoch <= 3; epoch++) {
		struct fw_host_stats stats = {.ops = ops,
					      .op_count = 1,
					      .pools = pools,
					      .pool_count = epoch == 1 ? 0 : 2,
					      .lates = lates,
					      .late_count = 2,
					      .facts.cpu_ns = 1000 * epoch};

		spawn(epoch);
		exited_with(0, SIGKILL, &stats);
	}
	spawn(4);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_assert_not_null(sent(FW_HOST_PAST));
	cr_expect_eq(sent(FW_HOST_PAST)->stats.facts.cpu_ns, 6000);
	cr_assert_eq(sent(FW_HOST_PAST)->stats.pool_count, 2);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.pools[0].refused, 4);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.pools[1].empty_ns, 60);
	cr_assert_eq(sent(FW_HOST_PAST)->stats.late_count, 2);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.lates[0].late[FRAGI_BLAME_QUEUE], 6);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.lates[1].late[FRAGI_BLAME_CLOCK], 15);
	cr_assert_eq(sent(FW_HOST_PAST)->stats.op_count, 1);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[0].ticks, 9);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[0].compute.total_ns, 150);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[0].compute.bars[1], 12);
}

/* Also where one in between was not wired, and so counted no flow: that one has a row less. */
Test(worker_report, sums_of_three_epochs)
{
	start_as("key a 1");
	for (uint64_t epoch = 1; epoch <= 3; epoch++) {
		struct fw_op_stats ops[2] = {{.ticks = 3 * epoch}, {.ticks = 5 * epoch}};
		struct fragi_flow_stats flow = {.sent = 7 * epoch};
		struct fw_host_stats stats = {
			.ops = ops, .op_count = 2, .flows = &flow, .flow_count = epoch != 2};
		struct wrk_exited how = {.signal = SIGKILL, .stats = &stats};

		for (int k = 0; k < FRAGI_OP_COUNTERS; k++)
			ops[1].counters[k] = (uint64_t)(11 + k) * epoch;
		spawn(epoch);
		step((struct wrk_event){
			.kind = WRK_EVENT_HOST_EXITED, .host = seen_host, .exited = &how});
	}
	spawn(4);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.restarts, 3);
	cr_assert_not_null(sent(FW_HOST_PAST));
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[0].ticks, 3 * (1 + 2 + 3));
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[1].ticks, 5 * (1 + 2 + 3));
	for (int k = 0; k < FRAGI_OP_COUNTERS; k++)
		cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[1].counters[k],
			     (uint64_t)(11 + k) * (1 + 2 + 3));
	cr_assert_eq(sent(FW_HOST_PAST)->stats.flow_count, 1);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.flows[0].sent, 7 * (1 + 3));
}

Test(worker_report, what_a_driver_did_not_know_of_its_sums_the_next_one_hears)
{
	struct fw_message adopted = host_frame(FW_HOST_ADOPTED);

	run_host_as("key a 1");
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect_not(sent(FW_HOST_REPORT)->report.is_inexact);
	adopted.adopted.is_inexact = true;
	from_driver(&adopted);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect(sent(FW_HOST_REPORT)->report.is_inexact);
}

Test(worker_report, an_epoch_that_ended_meanwhile_does_not_come_back)
{
	struct fw_message create = create_of(7, 1, 1);

	start_as("key a 1");
	spawn(1);
	lose_driver();
	exited(0, SIGKILL, true);
	reconnect();
	attach_as("key a 1", true);
	from_driver(&create);
	cr_expect_null(did(WRK_DO_SPAWN));
}

Test(worker_report, a_refusal_does_not_end_a_worker_whose_hosts_run)
{
	struct fw_message refused = {.kind = FW_REFUSED};

	start_as("key a 1");
	spawn(1);
	lose_driver();
	reconnect();
	connected("127.0.0.1");
	refused.refused.failure =
		(struct fw_failure){FRAGI_FAILURE_DRIVER_FULL, "driverd is full", ""};
	from_driver(&refused);
	cr_expect_null(did(WRK_DO_EXIT));
	cr_expect_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
}

static size_t frame_bytes(const struct fw_message *message)
{
	uint8_t *frame;
	size_t bytes;

	cr_assert_eq(fw_encode(message, &frame, &bytes), 0);
	fragi_free(frame);
	return bytes;
}

/* Returns the bytes of the request. */
static size_t spawn_with(uint32_t number, const void *source, size_t source_bytes)
{
	struct fw_message create = create_of(7, number, number);

	create.create.source = source;
	create.create.source_bytes = (uint32_t)source_bytes;
	from_driver(&create);
	cr_assert_not_null(did(WRK_DO_SPAWN));
	spawned(seen_host);
	return frame_bytes(&create);
}

static struct fw_message prepared_of(uint32_t number, struct fw_op *ops, uint32_t count)
{
	static struct fw_fragment fragment;
	struct fw_message message = {
		.kind = FW_HOST_PREPARED, .run = 7, .host = number, .epoch = number};

	fragment = (struct fw_fragment){.name = "fragment1", .ops = ops, .op_count = count};
	message.prepared =
		(struct fw_host_prepared){.ok = true, .fragments = &fragment, .fragment_count = 1};
	return message;
}

/* How many reports of that kind the last step has sent, of that host; 0: of any. */
static int reports_of(enum fw_kind kind, uint32_t number)
{
	const struct wrk_action *action;
	int count = 0;

	for (int n = 0; (action = did_nth(WRK_DO_SEND_DRIVER, n)) != NULL; n++)
		count += action->message->kind == kind &&
			 (number == 0 || action->message->host == number);
	return count;
}

/* The first one runs on: what runs is never forgotten. Of the others the last two make no room. */
Test(worker_report, what_ended_longest_ago_makes_room)
{
	const uint32_t most = WRK_KEPT_MAX + 3;

	start_as("key a 1");
	for (uint32_t number = 1; number <= most; number++) {
		spawn_with(number, NULL, 0);
		if (number > 1 && number <= most - 2)
			exited(0, SIGSEGV, true);
	}
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), WRK_KEPT_MAX);
	for (uint32_t number = 1; number <= most; number++)
		cr_expect_eq(reports_of(FW_HOST_REPORT, number), number < 2 || number > 4, "%d",
			     (int)number);
}

Test(worker_report, texts_of_graphs_make_room_for_what_hosts_say)
{
	const size_t most = FW_FRAME_MAX - 65536;
	char *source = calloc(1, most);
	struct fw_message done = {.kind = FW_HOST_EVENT, .run = 7, .host = 1, .epoch = 1};
	size_t bytes = 0;
	uint32_t first;

	start_as("key a 1");
	bytes += spawn_with(1, source, most);
	first = seen_host;
	for (uint32_t number = 2; number <= 8; number++)
		bytes += spawn_with(number, source, most);
	spawn_with(9, source, WRK_KEPT_BYTES - bytes - 140);
	spawn_with(10, NULL, 0);
	seen_host = first;
	done.event.state = FW_STATE_DONE;
	from_host(&done);
	exited(0, SIGSEGV, true);
	lose_driver();
	reconnect();
	attach_as("key a 1", true);
	cr_expect_eq(reports_of(FW_HOST_REPORT, 0), 10);
	cr_expect_eq(reports_of(FW_HOST_EVENT, 1), 1);
	cr_expect_eq(reports_of(FW_HOST_STATS, 1), 1);
	cr_expect_eq(reports_of(FW_HOST_EXIT, 1), 1);
	cr_expect_null(did(WRK_DO_SIGNAL_HOST));
	free(source);
}

Test(worker_report, what_finds_no_room_is_not_told_by_half)
{
	const uint32_t most = 40000;
	struct fw_op *ops = calloc(most, sizeof(*ops));
	struct fw_message message, event = {.kind = FW_HOST_EVENT, .run = 7, .host = 1, .epoch = 1};
	char sentence[512] = "";
	size_t bytes = 0, left;
	uint32_t first = 0, last, number = 0;

	for (uint32_t i = 0; i < most; i++)
		ops[i] = (struct fw_op){
			.name = "an_operator_whose_name_is_rather_long_so_that_its_frame_is_large",
			.type = "detector"};
	start_as("key a 1");
	for (uint32_t count = most; count > 1;) {
		bytes += spawn_with(++number, NULL, 0);
		first = number == 1 ? seen_host : first;
		message = prepared_of(number, ops, count);
		while (count > 1 && bytes + frame_bytes(&message) + 200 > WRK_KEPT_BYTES)
			message = prepared_of(number, ops, count -= count / 100 + 1);
		from_host(&message);
		bytes += frame_bytes(&message);
	}
	event.event.state = FW_STATE_PEER_LOST;
	event.event.peer = 2;
	event.event.failure = (struct fw_failure){FRAGI_FAILURE_EDGE_LOST, sentence, ""};
	left = WRK_KEPT_BYTES - bytes - frame_bytes(&event) - 8;
	cr_assert_lt(left, sizeof(sentence));
	memset(sentence, 'x', left);
	seen_host = first;
	from_host(&event); /* fills what is left but for some bytes */
	spawn_with(++number, NULL, 0);
	last = seen_host;
	seen_host = first;
	exited(0, SIGSEGV, true);
	lose_driver();
	reconnect();
	attach_as("key a 1", true);
	cr_expect_eq(reports_of(FW_HOST_REPORT, 0), (int)number - 2);
	cr_expect_eq(reports_of(FW_HOST_REPORT, 1), 0, "it would be taken for one that runs");
	cr_expect_eq(reports_of(FW_HOST_REPORT, number), 0);
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST), "nobody else could kill it");
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->host, last);
	cr_expect_null(did_nth(WRK_DO_SIGNAL_HOST, 1));
	free(ops);
}

/* A host that runs loses more peers than are kept, is done, stopped and failed. */
static void tell_all_events(void)
{
	struct fw_message event = host_frame(FW_HOST_EVENT);

	run_host_as("key a 1");
	for (uint32_t peer = 2; peer < 100; peer++) {
		event.event.state = FW_STATE_PEER_LOST;
		event.event.peer = peer;
		from_host(&event);
	}
	event.event.peer = 0;
	event.event.state = FW_STATE_DONE;
	from_host(&event);
	event.event.state = FW_STATE_STOPPED;
	from_host(&event);
	event.event.state = FW_STATE_FAILED;
	event.event.failure = (struct fw_failure){FRAGI_FAILURE_OPERATOR_FAILED, "it failed", "rx"};
	from_host(&event);
}

Test(worker_report, lost_peers_leave_room_for_an_end)
{
	tell_all_events();
	lose_driver();
	reconnect();
	attach_as("key a 1", true);
	cr_expect_eq(reports_of(FW_HOST_EVENT, 1), WRK_KEPT_EVENTS_MAX - 1);
}

/* One more than these is a start that fails. */
Test(worker_report, all_events_that_are_kept_go_with_their_process)
{
	struct fw_message started = host_frame(FW_HOST_STARTED);

	tell_all_events();
	started.result.failure =
		(struct fw_failure){FRAGI_FAILURE_OPERATOR_FAILED, "it failed", "rx"};
	from_host(&started);
	cr_expect_eq(core->kept->event_count, WRK_KEPT_EVENTS_MAX);
	exited(1, 0, true);
	spawn(2);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect_eq(reports_of(FW_HOST_EVENT, 1), 0);
}

static struct fw_message past_of(uint64_t epoch)
{
	static struct fw_op_stats ops[] = {{.ticks = 30}, {.ticks = 17}};
	struct fw_message past = host_frame(FW_HOST_PAST);

	past.epoch = epoch;
	past.stats = (struct fw_host_stats){.final = true, .ops = ops, .op_count = 2};
	return past;
}

Test(worker_report, what_is_prepared_beside_a_host_is_it_when_the_past_comes)
{
	struct fw_message create = create_of(7, 1, 2), past = past_of(2);

	start_as("key a 1");
	create.create.is_beside = true;
	from_driver(&create);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect(sent(FW_HOST_REPORT)->report.is_beside);
	cr_expect_not(sent(FW_HOST_REPORT)->report.has_run);
	from_driver(&past);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect_not(sent(FW_HOST_REPORT)->report.is_beside);
	cr_expect(sent(FW_HOST_REPORT)->report.has_run);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.restarts, 1);
	cr_expect_not(sent(FW_HOST_REPORT)->report.is_inexact);
	cr_assert_not_null(sent(FW_HOST_PAST));
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[1].ticks, 17);
}

Test(worker_report, what_yields_is_reported_so_until_its_successor_runs)
{
	struct fw_message stop = host_frame(FW_HOST_STOP), past = past_of(2);

	run_host_as("key a 1");
	stop.stop.drain_ns = 1;
	stop.stop.restarts = true;
	from_driver(&stop);
	lose_driver();
	exited(0, 0, true);
	cr_expect_null(did(WRK_DO_SEND_SAVED), "nobody would get it");
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect(sent(FW_HOST_REPORT)->report.yields);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.stop, FW_STOP_NOT);
	cr_assert_not_null(did(WRK_DO_SEND_SAVED), "what it has saved");
	cr_expect_eq(did(WRK_DO_SEND_SAVED)->number, 1);
	from_driver(&past);
	cr_assert_not_null(did(WRK_DO_FORGET_SAVED));
	lose_driver();
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	cr_expect_eq(attach_as("key a 1", true), 0, "it is forgotten");
}

static const struct fw_message revoked = {
	.kind = FW_REFUSED,
	.refused = {{FRAGI_FAILURE_KEY_REFUSED, "its key a is no longer in the key file", ""}}};

Test(worker_report, what_runs_by_a_revoked_key_ends_at_once)
{
	run_host_as("key a 1");
	from_driver(&revoked);
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	cr_expect_not_null(did(WRK_DO_DISCONNECT));
	cr_expect_str_eq(
		logged(FRAGI_LOG_ERROR),
		"the driver at 127.0.0.1:57777 has revoked this worker: its key a is no longer in the key file; 1 host ends");
	cr_expect_str_eq(wrk_core_refusal(core), "its key a is no longer in the key file");
	cr_expect_null(did(WRK_DO_EXIT), "the key may come back");
	exited(0, SIGKILL, false);
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach_as("key a 2", true);
	cr_expect_null(wrk_core_refusal(core));
}

/* Without a host it ends at once, else when its host has ended; with the code of the revocation. */
Test(worker_report, a_worker_for_one_application_ends_with_its_key)
{
	for (int hosts = 0; hosts < 2; hosts++) {
		start_attached(true);
		if (hosts == 1)
			spawn(1);
		from_driver(&revoked);
		cr_assert_eq(did(WRK_DO_EXIT) != NULL, hosts == 0, "%d", hosts);
		if (hosts == 1)
			exited(0, SIGKILL, false);
		cr_assert_not_null(did(WRK_DO_EXIT), "%d", hosts);
		cr_expect_eq(did(WRK_DO_EXIT)->exit_code,
			     fragi_failure_exit(FRAGI_FAILURE_KEY_REFUSED));
		finish();
	}
}

/* The driver's last word about the application stays that of the worker. */
Test(worker_report, a_revocation_after_the_result_does_not_change_it)
{
	start_attached(true);
	spawn(1);
	app_ended(7, 0);
	from_driver(&revoked);
	exited(0, SIGKILL, false);
	cr_assert_not_null(did(WRK_DO_EXIT));
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 0);
}

/* An error in a key file must not end what runs. */
Test(worker_report, a_handshake_that_is_refused_ends_no_host)
{
	run_host_as("key a 1");
	lose_driver();
	for (int i = 0; i < 5; i++) {
		reconnect();
		step((struct wrk_event){.kind = WRK_EVENT_CONNECT_FAILED,
					.connection = seen_connection,
					.failure = FRAGI_FAILURE_KEY_REFUSED,
					.text = "it does not know the key a"});
		cr_expect_null(did(WRK_DO_SIGNAL_HOST));
		cr_expect_str_eq(wrk_core_refusal(core), "it does not know the key a");
	}
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
}

/* Its driver adopts them the sooner. */
Test(worker_report, with_hosts_it_tries_each_second)
{
	const int64_t second = 1000000000;
	int64_t began, longest[2] = {0, 0};

	for (int hosts = 0; hosts < 2; hosts++) {
		start_as("key a 1");
		if (hosts == 1)
			spawn(1);
		lose_driver();
		for (int i = 0; i < 12; i++) {
			began = now;
			while (!timers_until(began + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT)) {
				struct fw_message alive = {.kind = FW_BEAT};

				cr_assert_lt(now, began + WRK_BACKOFF_MAX_NS);
				from_host(&alive);
			}
			if (now - began > longest[hosts])
				longest[hosts] = now - began;
			connect_failed("connection refused");
		}
		finish();
	}
	cr_expect_gt(longest[0], 2 * second);
	cr_expect_leq(longest[0], 5 * second);
	cr_expect_leq(longest[1], second);
	cr_expect_geq(longest[1], second / 2);
}

/* Of a host, and of its peers: a driver whose state is lost begins above them. */
Test(worker_report, the_highest_epoch_that_it_has_seen_is_in_its_hello)
{
	struct fw_peer peers[] = {{.host = 2, .epoch = 70, .name = "f2"},
				  {.host = 3, .epoch = 9, .name = "f3"}};
	struct fw_message wire = host_frame(FW_HOST_WIRE);

	start_as("key");
	spawn(1);
	lose_driver();
	reconnect();
	attach_as("key", true);
	cr_expect_eq(told_epoch, 1);
	wire.wire.peers = peers;
	wire.wire.peer_count = 2;
	from_driver(&wire);
	lose_driver();
	reconnect();
	attach_as("key", true);
	cr_expect_eq(told_epoch, 70);
}
