// SPDX-License-Identifier: Apache-2.0
#include "worker_world.h"

TestSuite(worker_host, .fini = finish);

Test(worker_host, relays_between_driver_and_host)
{
	static const enum fw_kind down[] = {FW_HOST_WIRE, FW_HOST_START, FW_HOST_SET, FW_HOST_TAP,
					    FW_HOST_STOP};
	static const enum fw_kind up[] = {FW_HOST_WIRED, FW_HOST_STARTED, FW_HOST_EVENT,
					  FW_HOST_SET_DONE, FW_HOST_TAPPED};

	start_with_host(false, 1);
	prepared();
	for (size_t i = 0; i < FRAG_COUNT_OF(down); i++) {
		struct fw_message message = host_frame(down[i]);

		from_driver(&message);
		cr_assert_not_null(did(WRK_DO_SEND_HOST));
		cr_expect_eq(did(WRK_DO_SEND_HOST)->message, &message);
		cr_expect_eq(did(WRK_DO_SEND_HOST)->host, seen_host);
	}
	cr_expect_eq(wrk_core_host_state(core, seen_host), WRK_HOST_STOPPING);
	for (size_t i = 0; i < FRAG_COUNT_OF(up); i++) {
		struct fw_message message = host_frame(up[i]);

		from_host(&message);
		cr_expect_eq(sent(up[i]), &message);
	}
}

/* It is an answer to a person, and no failure of the host. */
Test(worker_host, a_refused_value_is_no_result)
{
	struct fw_message message = host_frame(FW_HOST_SET_DONE);

	start_with_host(true, 1);
	prepared();
	message.host_set_done.failure =
		(struct fw_failure){FRAGI_FAILURE_USAGE, "it is out of range", NULL};
	from_host(&message);
	cr_assert_not_null(sent(FW_HOST_SET_DONE));
	exited(0, 0, false);
	step((struct wrk_event){.kind = WRK_EVENT_DRIVER_MESSAGE,
				.connection = seen_connection,
				.message = &(struct fw_message){.kind = FW_APP_ENDED, .run = 7}});
	expect_exit(0);
}

Test(worker_host, stale_epochs_are_refused)
{
	struct fw_message message = host_frame(FW_HOST_START), create = create_of(7, 1, 2);

	start_with_host(false, 2);
	from_driver(&message);
	cr_expect_null(did(WRK_DO_SEND_HOST), "epoch 1 is not here");
	from_driver(&create);
	cr_expect_null(did(WRK_DO_SPAWN), "epoch 2 runs already");
	create.epoch = 3;
	from_driver(&create);
	cr_assert_not_null(did(WRK_DO_SPAWN));
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST), "never two live owners");
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	cr_expect_neq(did(WRK_DO_SIGNAL_HOST)->host, seen_host);
}

Test(worker_host, an_epoch_that_is_over_does_not_come_back)
{
	start_with_host(false, 3);
	exited(1, 0, false);
	cr_assert_eq(wrk_core_host_count(core), 0);
	for (uint64_t epoch = 1; epoch <= 4; epoch++) {
		struct fw_message create = create_of(7, 1, epoch);

		from_driver(&create);
		cr_expect_eq(did(WRK_DO_SPAWN) != NULL, epoch == 4, "epoch %d", (int)epoch);
	}
}

Test(worker_host, another_session_counts_its_epochs_anew)
{
	start_with_host(false, 1);
	exited(1, 0, false);
	driver_lost("connection reset");
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
	spawn(1);
}

Test(worker_host, the_late_exit_of_an_old_session_makes_no_epoch_of_the_new_one_old)
{
	struct fw_message create = create_of(7, 1, 1);
	uint32_t old;

	start_with_host(false, 1);
	old = seen_host;
	driver_lost("connection reset");
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
	seen_host = old;
	exited(0, SIGKILL, false);
	from_driver(&create);
	cr_expect_not_null(did(WRK_DO_SPAWN),
			   "another driver counts its runs and epochs from 1 too");
}

Test(worker_host, a_host_that_cannot_be_spawned_is_reported)
{
	struct fw_message create = create_of(7, 1, 1);

	start_attached(false);
	from_driver(&create);
	step((struct wrk_event){
		.kind = WRK_EVENT_HOST_FAILED, .host = seen_host, .text = "cannot start fraghost"});
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect_null(sent(FW_HOST_STATS));
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence, "cannot start fraghost");
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.exit_code, 3);
	cr_expect_eq(wrk_core_host_count(core), 0);
}

Test(worker_host, the_driver_may_kill_a_host_in_any_state)
{
	/* One that is not there yet has nothing to end in order. */
	for (grace_ns = 0; grace_ns <= 1000 * MS; grace_ns += 1000 * MS) {
		struct fw_message create = create_of(7, 1, 1), kill = host_frame(FW_HOST_KILL);

		start_attached(false);
		from_driver(&create);
		from_driver(&kill);
		cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
		spawned(seen_host);
		cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL,
			     "it came to be after the order");
		exited(0, SIGKILL, false);
		cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence, "");
		finish();
	}
	grace_ns = 0;
}

/* What was saved for it becomes its own with its past, also while it is asked to stop. */
Test(worker_host, one_that_was_beside_is_promoted_as_long_as_it_lives)
{
	for (int stops = 0; stops < 2; stops++) {
		struct fw_message create = create_of(7, 1, 1), past = host_frame(FW_HOST_PAST);
		struct fw_message stop = host_frame(FW_HOST_STOP);

		start_attached(false);
		create.create.is_beside = true;
		from_driver(&create);
		spawned(seen_host);
		stop.stop.drain_ns = 1000 * MS;
		if (stops)
			from_driver(&stop);
		from_driver(&past);
		cr_expect_not_null(did(WRK_DO_PROMOTE_SAVED), "stops %d", stops);
		cr_expect_null(did(WRK_DO_FORGET_SAVED), "stops %d", stops);
		exited(0, SIGKILL, false);
		cr_expect_null(did(WRK_DO_FORGET_SAVED), "it is the host now");
		from_driver(&past);
		cr_expect_not_null(did(WRK_DO_FORGET_SAVED), "it is gone");
		finish();
	}
}

/* What an earlier process saved here is of no use to one that comes from elsewhere. */
Test(worker_host, what_was_saved_here_is_kept_for_the_host_that_runs_on_here)
{
	static const struct {
		bool is_moved, is_beside, is_known, forgets;
	} cases[] = {
		{.is_known = false, .forgets = false},
		{.is_known = true, .forgets = false},
		{.is_moved = true, .forgets = true},
		{.is_moved = true, .is_known = true, .forgets = true},
		{.is_beside = true, .forgets = true},
		{.is_beside = true, .is_known = true, .forgets = false},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct fw_message create = create_of(7, 1, 2);

		start_attached(false);
		if (cases[i].is_known)
			spawn(1);
		create.create.is_moved = cases[i].is_moved;
		create.create.is_beside = cases[i].is_beside;
		from_driver(&create);
		cr_assert_not_null(did(WRK_DO_SPAWN));
		cr_expect_eq(did(WRK_DO_FORGET_SAVED) != NULL, cases[i].forgets, "%zu", i);
		if (cases[i].forgets) {
			cr_expect_eq(did(WRK_DO_FORGET_SAVED)->run, 7);
			cr_expect_eq(did(WRK_DO_FORGET_SAVED)->number, 1);
		}
		finish();
	}
}

Test(worker_host, a_host_that_has_grace_is_killed_when_it_does_not_end_by_itself)
{
	for (int ends = 0; ends < 2; ends++) {
		struct fw_message kill = host_frame(FW_HOST_KILL);

		grace_ns = 1000 * MS;
		start_with_host(false, 1);
		from_driver(&kill);
		cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
		cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGTERM);
		cr_expect_eq(wrk_core_host_state(core, seen_host), WRK_HOST_STOPPING);
		cr_expect_not(timers_until(now + 999 * MS, WRK_DO_SIGNAL_HOST));
		if (!ends) {
			cr_assert(timers_until(now + 2 * MS, WRK_DO_SIGNAL_HOST));
			cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
		}
		exited(0, ends ? 0 : SIGKILL, false);
		cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence, "",
				 "its driver wanted it");
		finish();
	}
	grace_ns = 0;
}

Test(worker_host, a_silent_host_is_killed_and_reported)
{
	start_with_host(false, 1);
	prepared();
	for (int i = 0; i < 11; i++) {
		cr_assert_not(timers_until(now + 249 * MS, WRK_DO_SIGNAL_HOST));
		from_driver(&beat);
	}
	cr_assert(timers_until(now + 400 * MS, WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	exited(0, SIGKILL, true);
	cr_expect_str_eq(
		sent(FW_HOST_EXIT)->exit.failure.sentence,
		"fraghost 4711 was ended in fragment1.detect, tick 17: its control thread has not been heard for 3.0 s");
}

/* As while it starts many hosts that one read has asked for: what others say lies unread. */
static void is_busy_for(int64_t for_ns, void (*with)(const struct fw_message *message))
{
	for (int64_t until_ns = now + for_ns; now < until_ns; now += 20 * MS)
		with(&beat);
}

/* Each turn of its loop reads what has come, and takes longer than the time of death. */
static void judges_while_busy(bool speaks, void (*from)(const struct fw_message *message),
			      void (*with)(const struct fw_message *message),
			      enum wrk_action_kind loss)
{
	start_with_host(false, 1);
	prepared();
	cr_assert_not(timers_until(now + 249 * MS, loss));
	for (int i = 0; i < (speaks ? 6 : 2); i++) {
		if (speaks)
			from(&beat);
		is_busy_for(3500 * MS, with);
		cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_TIMER}), 0);
		cr_expect_eq(speaks && did(WRK_DO_SAMPLE_HOST) != NULL, speaks && i % 2 == 1,
			     "one waits: %d", i);
		cr_expect_eq(wrk_core_deadline_ns(core) <= now, i % 2 == 0 || speaks, "%d", i);
		cr_expect_eq(did(loss) != NULL, i == 1 && !speaks, "%d", i);
	}
	finish();
}

Test(worker_host, a_busy_worker_reads_before_it_judges)
{
	for (int speaks = 0; speaks < 2; speaks++) {
		judges_while_busy(speaks, from_host, from_driver, WRK_DO_SIGNAL_HOST);
		judges_while_busy(speaks, from_driver, from_host, WRK_DO_DISCONNECT);
	}
}

/* Until it has spoken; then it is as any other. */
Test(worker_host, an_interpreter_starts_for_longer)
{
	for (int speaks = 0; speaks < 2; speaks++) {
		struct fw_message create = create_of(7, 1, 1);

		start_attached(false);
		from_driver(&create);
		step((struct wrk_event){.kind = WRK_EVENT_HOST_SPAWNED,
					.host = did(WRK_DO_SPAWN)->host,
					.pid = 4711,
					.is_interpreter = true});
		for (int i = 0; i < 119; i++) {
			cr_assert_not(timers_until(now + 249 * MS, WRK_DO_SIGNAL_HOST), "%d", i);
			from_driver(&beat);
		}
		if (speaks) {
			from_host(&beat);
			for (int i = 0; i < 11; i++) {
				cr_assert_not(timers_until(now + 249 * MS, WRK_DO_SIGNAL_HOST));
				from_driver(&beat);
			}
		}
		cr_assert(timers_until(now + 400 * MS, WRK_DO_SIGNAL_HOST), "%d", speaks);
		finish();
	}
}

Test(worker_host, pages_are_sampled_with_every_beat)
{
	struct fw_op_stats ops[1] = {{.ticks = 5}};
	struct fw_host_stats stats = {.ops = ops, .op_count = 1};

	start_with_host(false, 1);
	cr_assert(timers_until(now + 250 * MS, WRK_DO_SAMPLE_HOST));
	step((struct wrk_event){
		.kind = WRK_EVENT_HOST_SAMPLED, .host = seen_host, .stats = &stats});
	cr_assert_not_null(sent(FW_HOST_STATS));
	cr_expect_not(sent(FW_HOST_STATS)->stats.final);
	cr_expect_eq(sent(FW_HOST_STATS)->stats.ops[0].ticks, 5);
	cr_expect_eq(sent(FW_HOST_STATS)->epoch, 1);
}

static bool is_reported(const struct fw_host_stats *stats)
{
	from_driver(&beat);
	from_host(&beat);
	cr_assert(timers_until(now + 250 * MS, WRK_DO_SAMPLE_HOST));
	step((struct wrk_event){.kind = WRK_EVENT_HOST_SAMPLED, .host = seen_host, .stats = stats});
	return sent(FW_HOST_STATS) != NULL;
}

/* Two reports, then each fourth one, while its page goes on to show the same but for times. */
static void expect_rest(struct fw_host_stats *stats)
{
	cr_expect(is_reported(stats), "it is new");
	for (int i = 1; i < 10; i++) {
		stats->ops[0].use_room += 250 * MS;
		stats->flows[0].room_ns += 250 * MS;
		stats->facts.cpu_ns++;
		cr_expect_eq(is_reported(stats), i % 4 == 1, "beat %d", i);
	}
}

Test(worker_host, one_that_rests_is_reported_less_often)
{
	struct fw_op_stats ops[2] = {{.ticks = 5}};
	struct fragi_flow_stats flows[2] = {{.sent = 5}};
	struct fw_host_stats stats = {.ops = ops, .op_count = 2, .flows = flows, .flow_count = 2};
	struct fw_message look = host_frame(FW_HOST_LOOK);
	int64_t begun_ns;

	start_with_host(false, 1);
	expect_rest(&stats);
	ops[1].ticks++;
	expect_rest(&stats);
	ops[0].running = true;
	expect_rest(&stats);
	ops[0].outdated++; /* the last counter, behind the times */
	expect_rest(&stats);
	ops[0].deadline_misses++;
	expect_rest(&stats);
	flows[1].arrived++;
	expect_rest(&stats);
	flows[0].rx_dropped[FRAGI_DROP_REASONS - 1]++;
	expect_rest(&stats);
	look.host_look.for_ns = 2000 * MS;
	from_driver(&look);
	expect_rest(&stats);
	from_driver(&look); /* its look is over, and another one begins */
	begun_ns = now;
	expect_rest(&stats);
	look.host_look.for_ns = now - begun_ns;
	from_driver(&look);
	expect_rest(&stats);
	from_driver(&look); /* at the end of the one before */
	expect_rest(&stats);
}

static bool next_beat_looks(void)
{
	const struct fw_message *to_host;

	cr_assert(timers_until(now + 250 * MS, WRK_DO_SAMPLE_HOST));
	to_host = did(WRK_DO_SEND_HOST)->message;
	cr_assert_eq(to_host->kind, FW_BEAT);
	cr_expect_eq(to_host->beat.looks, did(WRK_DO_SAMPLE_HOST)->looks);
	return to_host->beat.looks;
}

Test(worker_host, its_node_is_looked_at_when_the_driver_asks)
{
	struct fw_message question = {.kind = FW_EXAMINE, .examine = {"node7"}};
	struct fw_finding finding = {"clock", false, "kept right", "", ""};
	struct fw_message answer = {.kind = FW_EXAMINED, .examined = {"", &finding, 1}};

	start_attached(false);
	from_driver(&question);
	cr_expect_not_null(did(WRK_DO_EXAMINE));
	step((struct wrk_event){.kind = WRK_EVENT_EXAMINED, .message = &answer});
	cr_expect_eq(sent(FW_EXAMINED), &answer);
	driver_lost("it closed");
	step((struct wrk_event){.kind = WRK_EVENT_EXAMINED, .message = &answer});
	cr_expect_null(sent(FW_EXAMINED), "nobody waits for it any more");
}

Test(worker_host, it_is_looked_at_as_long_as_the_driver_said)
{
	struct fw_message look = host_frame(FW_HOST_LOOK);

	start_with_host(false, 1);
	cr_expect_not(next_beat_looks());
	look.host_look.for_ns = 600 * MS;
	from_driver(&look);
	look.host_look.for_ns = 100 * MS;
	from_driver(&look); /* another one looks for a shorter time */
	look.host_look.for_ns = 600 * MS;
	cr_expect_null(did(WRK_DO_SEND_HOST), "it is told with the next beat");
	cr_expect(next_beat_looks());
	from_driver(&look); /* again, before it is over */
	cr_expect(next_beat_looks());
	cr_expect(next_beat_looks());
	cr_expect_not(next_beat_looks());
	from_driver(&look);
	look.host_look.for_ns = 0;
	from_driver(&look);
	cr_expect_not(next_beat_looks());
	look.host_look.for_ns = 600 * MS;
	look.epoch = 2;
	from_driver(&look); /* another process */
	cr_expect_not(next_beat_looks());
}

Test(worker_host, a_host_that_closes_its_socket_is_killed_after_a_moment)
{
	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_HOST_CONNECTION_LOST,
				.host = seen_host,
				.text = "it closed its socket"});
	cr_expect_null(did(WRK_DO_SIGNAL_HOST), "its own exit usually follows");
	cr_assert(timers_until(now + 250 * MS, WRK_DO_SIGNAL_HOST));
	exited(0, SIGKILL, false);
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.failure.sentence, "it closed its socket"));
}

Test(worker_host, more_than_its_most_are_refused_and_all_die_with_the_driver)
{
	struct fw_message create = create_of(7, 1, 1);
	int killed = 0;

	start_attached(false);
	for (uint32_t i = 1; i <= WRK_HOSTS_MAX; i++) {
		create.host = i;
		from_driver(&create);
		cr_assert_not_null(did(WRK_DO_SPAWN));
	}
	create.host = WRK_HOSTS_MAX + 1;
	from_driver(&create);
	cr_expect_null(did(WRK_DO_SPAWN));
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.exit_code, 3);
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence,
			 "worker a runs 256 hosts already, its most; give it fewer fragments");
	driver_lost("connection reset");
	while (did_nth(WRK_DO_SIGNAL_HOST, killed) != NULL)
		killed++;
	cr_expect_eq(killed, WRK_HOSTS_MAX);
}

Test(worker_host, what_is_no_longer_there_is_not_heard)
{
	struct fw_host_stats stats = {0};
	struct fw_message message = host_frame(FW_HOST_EVENT);

	start_with_host(false, 1);
	exited(1, 0, false);
	step((struct wrk_event){
		.kind = WRK_EVENT_HOST_SAMPLED, .host = seen_host, .stats = &stats});
	cr_expect_null(sent(FW_HOST_STATS));
	from_host(&message);
	cr_expect_null(sent(FW_HOST_EVENT));
	exited(1, 0, false);
	cr_expect_null(sent(FW_HOST_EXIT), "it is reported once");
}

Test(worker_host, a_host_speaks_for_itself_alone)
{
	for (int field = 0; field < 4; field++) {
		struct fw_message message = host_frame(field == 3 ? FW_HOST_CREATE : FW_HOST_EVENT);

		finish();
		start_with_host(false, 1);
		message.run += field == 0;
		message.host += field == 1;
		message.epoch += field == 2;
		from_host(&message);
		cr_expect_null(did(WRK_DO_SEND_DRIVER), "field %d", field);
		cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
		exited(0, SIGKILL, false);
		cr_expect(strstr(sent(FW_HOST_EXIT)->exit.failure.sentence,
				 "it sent a frame that a host may not send"));
	}
}

Test(worker_host, a_request_names_its_host_by_all_its_numbers)
{
	for (int field = 0; field < 4; field++) {
		struct fw_message message = host_frame(FW_HOST_START);

		finish();
		start_with_host(false, 1);
		message.run += field == 1;
		message.host += field == 2;
		message.epoch += field == 3;
		from_driver(&message);
		cr_expect_eq(did(WRK_DO_SEND_HOST) != NULL, field == 0, "field %d", field);
		message.kind = FW_HOST_SAVED;
		from_driver(&message);
		cr_expect_eq(did(WRK_DO_TAKE_SAVED) != NULL, field == 0, "field %d", field);
	}
}

Test(worker_host, long_names_of_fragments_are_cut)
{
	const char *many[20];
	struct fw_message create = create_of(7, 1, 1);

	for (size_t i = 0; i < FRAG_COUNT_OF(many); i++)
		many[i] = "a_fragment_with_a_long_name";
	create.create.fragments = many;
	create.create.fragment_count = FRAG_COUNT_OF(many);
	start_attached(false);
	from_driver(&create);
	spawned(seen_host);
	exited(1, 0, false);
	cr_expect(strstr(
		sent(FW_HOST_EXIT)->exit.failure.sentence,
		"fraghost 4711 of a_fragment_with_a_long_name, a_fragment_with_a_long_name, "));
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.failure.sentence, " exited with status 1"));
	cr_expect_leq(strlen(sent(FW_HOST_EXIT)->exit.failure.sentence), 200);
}

/* What follows does not take it back. */
Test(worker_host, a_failure_that_a_host_reported_stays_the_first_one)
{
	struct fw_message failed = host_frame(FW_HOST_EVENT);
	struct fw_message other = host_frame(FW_HOST_WIRED);

	start_with_host(true, 1);
	failed.event.state = FW_STATE_FAILED;
	failed.event.failure =
		(struct fw_failure){FRAGI_FAILURE_GRAPH_INVALID, "no such port", "f.op"};
	from_host(&failed);
	other.result.failure =
		(struct fw_failure){FRAGI_FAILURE_LIBRARY_MISSING, "no such library", ""};
	from_host(&other);
	other = host_frame(FW_HOST_STARTED);
	from_host(&other);
	exited(0, 0, false);
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence, "", "it told why, and goes");
	driver_lost("the peer closed the connection");
	expect_exit(fragi_failure_exit(FRAGI_FAILURE_GRAPH_INVALID));
}

Test(worker_host, a_host_that_could_not_be_prepared_is_said_to_have_failed_once)
{
	struct fw_message failed = host_frame(FW_HOST_PREPARED);
	struct fw_failure error = {FRAGI_FAILURE_GRAPH_INVALID, "no such type", ""};

	start_with_host(true, 1);
	failed.prepared = (struct fw_host_prepared){.errors = &error, .error_count = 1};
	from_host(&failed);
	cr_expect_not_null(sent(FW_HOST_PREPARED));
	exited(0, 0, false); /* it told why, and goes */
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence, "");
	driver_lost("the peer closed the connection");
	expect_exit(2);
}

Test(worker_host, hosts_know_how_many_are_looked_at)
{
	struct fw_message create, look = {.kind = FW_HOST_LOOK, .run = 7, .epoch = 1};
	uint32_t looks[3] = {9, 9, 9};

	start_attached(false);
	for (uint32_t host = 1; host <= 3; host++) {
		create = create_of(7, host, 1);
		from_driver(&create);
		step((struct wrk_event){.kind = WRK_EVENT_HOST_SPAWNED,
					.host = did(WRK_DO_SPAWN)->host,
					.pid = 4711});
		look.host = host;
		look.host_look.for_ns = host < 3 ? 4000 * MS : 0;
		from_driver(&look);
	}
	cr_assert(timers_until(now + 1000 * MS, WRK_DO_SEND_HOST));
	for (int n = 0; did_nth(WRK_DO_SEND_HOST, n) != NULL && n < 3; n++)
		looks[n] = did_nth(WRK_DO_SEND_HOST, n)->message->beat.looks;
	cr_expect_eq(looks[0], 2);
	cr_expect_eq(looks[1], 2);
	cr_expect_eq(looks[2], 0, "the third is not");
}
