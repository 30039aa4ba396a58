// SPDX-License-Identifier: Apache-2.0

#include <workerd/core/state.h>

#include "report_world.h"

/* What a worker keeps of its hosts while their driver is away, and whom it tells. */
TestSuite(worker_report, .fini = finish);

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
	int count = 0;

	for (size_t i = 0; i < actions.count; i++)
		count += actions.items[i].kind == WRK_DO_SEND_DRIVER &&
			 actions.items[i].message->kind == kind &&
			 (number == 0 || actions.items[i].message->host == number);
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

/* What a host counted on the worker from which it came is known only once that is told. */
Test(worker_report, what_a_moved_host_has_counted_is_exact_once_its_past_has_come)
{
	struct fw_message create = create_of(7, 1, 2), past = past_of(2);

	start_as("key a 1");
	create.create.is_moved = true;
	create.create.restarts = 3;
	from_driver(&create);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect(sent(FW_HOST_REPORT)->report.has_run);
	cr_expect(sent(FW_HOST_REPORT)->report.is_inexact);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.restarts, 3);
	past.stats.final = true;
	from_driver(&past);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect(sent(FW_HOST_REPORT)->report.has_run);
	cr_expect_not(sent(FW_HOST_REPORT)->report.is_inexact);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.restarts, 3);
	past.stats.final = false;
	from_driver(&past);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect(sent(FW_HOST_REPORT)->report.is_inexact);
}
