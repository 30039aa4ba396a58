// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* A driver that keeps state: what it hands out, and what it makes of that when it starts. */
#define CLIENT 50

static void keeps_state(struct world *w)
{
	world_init_with(w, (struct drv_config){.version = "test",
					       .keeps_state = true,
					       .realtime_offset_ns = 1000 * SECOND});
	speaking_run = 1;
}

/* A run that an earlier driver has kept; result NONE: it had not ended. */
#define NOT_ENDED ((enum fragi_summary_result) - 1)
static void restore(struct world *w, uint64_t run, const char *name, bool is_wanted,
		    enum fragi_summary_result result)
{
	struct fragi_spec_source source = {
		.graph = {"app.yaml", two_fragments, strlen(two_fragments)}};
	struct drv_record record = {.kind = DRV_RECORD_RUN,
				    .run = run,
				    .epoch = run,
				    .name = name,
				    .who = "user alice",
				    .is_wanted = is_wanted};
	struct fw_message message = {.kind = FW_OUTCOME, .run = run};
	void *packed;
	uint8_t *frame = NULL;

	cr_assert_eq(fragi_source_pack(&source, &packed, &record.source_bytes), 0);
	record.source = packed;
	if (result != NOT_ENDED) {
		message.outcome.name = name;
		message.outcome.reached = FW_ENDED;
		message.outcome.summary =
			(struct fragi_summary){.application = name, .result = result};
		cr_assert_eq(fw_encode(&message, &frame, &record.outcome_bytes), 0);
		record.outcome = frame;
		record.ended_unix_ns = 1040 * SECOND;
	}
	cr_assert_eq(drv_core_restore(w->core, &record), 0);
	fragi_free(packed);
	fragi_free(frame);
}

static void written(struct world *w, const char *why_not)
{
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_PERSISTED, .change = w->persist, .text = why_not});
}

static const struct fw_reply *state_of(struct world *w, uint64_t seq)
{
	const struct fw_message *message;

	request_state(w, CLIENT, seq);
	message = must_take(w, CLIENT, FW_REPLY);
	return &message->reply;
}

WORLD_TEST(driver_restore, what_was_cut_off_starts_again, keeps_state)
{
	const struct fw_reply *reply;
	const struct fw_message *create;

	drv_core_restore(w->core,
			 &(struct drv_record){.kind = DRV_RECORD_NUMBERS, .epoch = 900, .run = 8});
	restore(w, 7, "mine", true, NOT_ENDED);
	pass(w, MS);
	cr_assert_not_null(kept(w, DRV_RECORD_END, 7), "it ended with its driver");
	cr_assert_not_null(kept(w, DRV_RECORD_RUN, 9));
	cr_expect_str_eq(kept(w, DRV_RECORD_RUN, 9)->name, "mine");
	cr_expect(kept(w, DRV_RECORD_RUN, 9)->is_wanted);
	cr_expect_not(kept(w, DRV_RECORD_RUN, 9)->is_attempt);
	cr_expect_geq(w->epochs, 901);
	written(w, NULL);
	hello(w, 1, "a", NULL);
	create = must_take(w, 1, FW_HOST_CREATE);
	cr_expect_eq(create->epoch, 901);
	cr_expect_str_eq(create->create.application, "mine");
	client_hello(w, CLIENT, "");
	reply = state_of(w, 2);
	cr_assert_eq(reply->application_count, 1);
	cr_expect_str_eq(reply->applications[0].started_by, "user alice");
	cr_assert_eq(reply->ended_count, 1);
	cr_expect_eq(reply->ended[0].failure.code, FRAGI_FAILURE_DRIVER_LOST);
}

WORLD_TEST(driver_restore, the_newest_run_of_a_name_decides, keeps_state)
{
	restore(w, 1, "stopped", false, FRAGI_SUMMARY_STOPPED);
	restore(w, 2, "twice", true, FRAGI_SUMMARY_STOPPED);
	restore(w, 3, "twice", false, FRAGI_SUMMARY_DONE);
	restore(w, 4, "wanted", true, FRAGI_SUMMARY_STOPPED);
	restore(w, 5, "failing", false, NOT_ENDED);
	pass(w, MS);
	cr_expect_eq(drv_core_app_count(w->core), 1);
	cr_expect_eq(drv_core_named_state(w->core, "wanted"), DRV_APP_NEW);
	cr_expect_eq(drv_core_deadline_ns(w->core) > w->now_ns, true, "nothing is left to do");
	cr_assert_not_null(kept(w, DRV_RECORD_WANTED, 2), "also when run 3 is forgotten");
	cr_expect_not(kept(w, DRV_RECORD_WANTED, 2)->is_wanted);
	cr_expect_null(kept(w, DRV_RECORD_WANTED, 4));
}

/* Each for itself: whether it ended with its driver, and whether it is wanted. */
WORLD_TEST(driver_restore, what_is_restored_alone_is_looked_at, NULL)
{
	static const struct {
		bool is_wanted;
		enum fragi_summary_result result;
		bool ends_now;
	} rows[] = {{false, NOT_ENDED, true},
		    {true, NOT_ENDED, true},
		    {false, FRAGI_SUMMARY_STOPPED, false},
		    {true, FRAGI_SUMMARY_STOPPED, false}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		if (i > 0)
			world_fini(w);
		keeps_state(w);
		restore(w, 7, "mine", rows[i].is_wanted, rows[i].result);
		pass(w, MS);
		cr_expect_eq(kept(w, DRV_RECORD_END, 7) != NULL, rows[i].ends_now, "%zu", i);
		cr_expect_eq(drv_core_app_count(w->core), rows[i].is_wanted, "%zu", i);
		cr_expect_gt(drv_core_deadline_ns(w->core), w->now_ns, "nothing is left to do");
	}
}

WORLD_TEST(driver_restore, a_full_disk_delays_what_starts_again, keeps_state)
{
	restore(w, 1, "mine", true, FRAGI_SUMMARY_STOPPED);
	pass(w, MS);
	written(w, "the disk is full");
	cr_expect_eq(drv_core_named_state(w->core, "mine"), DRV_APP_NEW);
	assert_has(w->errors, "the disk is full; applications run on");
	written(w, "the disk is full");
	written(w, NULL);
	assert_has(w->log, "state is kept again");
	cr_expect_eq(drv_core_named_state(w->core, "mine"), DRV_APP_WAITING);
}

/* Two hosts of one application run. */
static void run_two(struct world *w)
{
	keeps_state(w);
	client_hello(w, CLIENT, "");
	both_come(w);
	say_start(w, CLIENT, 2, "", two_fragments);
	cr_expect(kept(w, DRV_RECORD_RUN, 1)->is_attempt);
	written(w, NULL);
	both_prepare(w);
	both_run(w);
	cr_assert_eq(drv_core_named_state(w->core, "app"), DRV_APP_RUNNING);
}

static void hosts_end(struct world *w)
{
	both_are_done(w);
	both_exit(w);
	cr_assert(w->ended);
}

static void stop(struct world *w, bool again)
{
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_STOP_APP, .seq = 3, .stop_app = {"app", false, again}});
}

static void await_end(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_AWAIT, .seq = 4, .run = 1, .await.until = FW_ENDED});
}

WORLD_TEST(driver_restore, what_a_client_has_stopped_does_not_start_again, run_two)
{
	stop(w, false);
	cr_assert_not_null(kept(w, DRV_RECORD_WANTED, 1), "before it has ended");
	cr_expect_not(kept(w, DRV_RECORD_WANTED, 1)->is_wanted);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	hosts_end(w);
	cr_assert_not_null(kept(w, DRV_RECORD_END, 1));
	cr_expect_not(kept(w, DRV_RECORD_END, 1)->is_wanted);
}

WORLD_TEST(driver_restore, what_has_ended_by_itself_does_not_start_again, run_two)
{
	hosts_end(w);
	cr_expect_not(kept(w, DRV_RECORD_END, 1)->is_wanted);
}

WORLD_TEST(driver_restore, what_ends_with_its_driver_starts_again, run_two)
{
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	hosts_end(w);
	cr_expect(kept(w, DRV_RECORD_END, 1)->is_wanted);
}

static const struct fw_failure *answer_of(struct world *w)
{
	const struct fw_message *answer = taken(w, CLIENT, FW_ANSWER);

	return answer != NULL ? &answer->answer.failure : NULL;
}

static void drain(struct world *w, const char *worker)
{
	say(w, CLIENT, &(struct fw_message){.kind = FW_DRAIN, .seq = 5, .drain = {worker, false}});
}

#define UNWRITABLE                                                                                 \
	": the state folder cannot be written; make room if its disk is full, restart driverd if " \
	"the folder is gone, or see why in driverd's log"

/* A full folder is noticed when something is written: that is tried before each such command. */
WORLD_TEST(driver_restore, commands_that_end_something_try_the_folder_first, run_two)
{
	(void)answer_of(w); /* that of the start */
	stop(w, true);
	cr_expect_null(answer_of(w), "it is tried yet");
	cr_expect_eq(drv_core_named_state(w->core, "app"), DRV_APP_RUNNING);
	drain(w, "b");
	assert_has(answer_of(w)->sentence, "the command before it waits for the state folder");
	written(w, "there is no space left on the device");
	assert_has(answer_of(w)->sentence, "app would end and not start again" UNWRITABLE);
	cr_expect_eq(drv_core_named_state(w->core, "app"), DRV_APP_RUNNING);
	drain(w, "b");
	written(w, "there is no space left on the device");
	assert_has(answer_of(w)->sentence, "worker b is not drained" UNWRITABLE);
	cr_expect_not(drv_core_is_drained(w->core, "b"));
	stop(w, true);
	written(w, NULL);
	cr_expect_null(answer_of(w), "the restart itself is not on the disk yet");
	written(w, NULL);
	cr_expect_eq(answer_of(w)->code, FRAGI_FAILURE_NONE, "there was room by then");
	cr_expect_eq(drv_core_named_state(w->core, "app"), DRV_APP_DRAINING);
	drain(w, "a");
	written(w, NULL);
	cr_expect(drv_core_is_drained(w->core, "a"));
	cr_expect_null(answer_of(w));
	written(w, NULL);
	cr_expect_eq(answer_of(w)->code, FRAGI_FAILURE_NONE);
	drain(w, "b");
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = "it closed"});
	written(w, NULL);
	cr_expect_not(drv_core_is_drained(w->core, "b"), "who wanted that is gone");
}

/* Nobody is told that something is kept before it is; what is not kept is told as such. */
WORLD_TEST(driver_restore, a_command_is_acknowledged_when_it_is_kept, run_two)
{
	const struct fw_message *answer;

	(void)answer_of(w);
	stop(w, false);
	cr_expect_null(answer_of(w));
	written(w, NULL);
	answer = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_str_eq(answer->answer.remark, "");
	stop(w, false);
	written(w, "the disk is full");
	answer = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(answer->answer.failure.code, FRAGI_FAILURE_NONE, "it stops all the same");
	cr_expect_str_eq(answer->answer.remark,
			 "the state folder cannot be written: if driverd ends before that is "
			 "mended, the next driverd starts app again");
	stop(w, false);
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = "it closed"});
	written(w, NULL);
}

WORLD_TEST(driver_restore, a_restart_stays_wanted_in_between, run_two)
{
	stop(w, false);
	stop(w, true);
	written(w, NULL);
	cr_expect(kept(w, DRV_RECORD_WANTED, 1)->is_wanted);
	hosts_end(w);
	cr_expect(kept(w, DRV_RECORD_END, 1)->is_wanted);
	cr_assert_null(kept(w, DRV_RECORD_RELEASED, 0));
	pass(w, MS);
	cr_assert_not_null(kept(w, DRV_RECORD_RELEASED, 0));
	cr_expect_eq(kept(w, DRV_RECORD_RELEASED, 0)->bytes,
		     kept(w, DRV_RECORD_RESERVED, 0)->bytes);
	cr_expect(kept(w, DRV_RECORD_RUN, 2)->is_wanted);
}

/* What was held is given back when nothing is to follow, or nobody asks any more. */
WORLD_TEST(driver_restore, space_is_not_held_for_a_run_that_does_not_follow, run_two)
{
	stop(w, true);
	written(w, NULL);
	stop(w, false);
	hosts_end(w);
	beat(w, 1);
	cr_expect_not_null(kept(w, DRV_RECORD_RELEASED, 0));
	cr_expect_null(kept(w, DRV_RECORD_RUN, 2));
}

WORLD_TEST(driver_restore, space_is_not_held_for_a_client_that_has_left, run_two)
{
	stop(w, true);
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = ""});
	cr_expect_not_null(kept(w, DRV_RECORD_RELEASED, 0));
	written(w, NULL);
	cr_expect_eq(drv_core_named_state(w->core, "app"), DRV_APP_RUNNING);
}

WORLD_TEST(driver_restore, what_lost_its_worker_stays_wanted_until_it_is_stopped, run_two)
{
	const struct fw_message *answer;

	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "connection reset"});
	say_exit(w, 1, 1, 0, 9, "");
	cr_assert(w->ended);
	cr_expect(kept(w, DRV_RECORD_END, 1)->is_wanted);
	taken(w, CLIENT, FW_ANSWER);
	stop(w, false);
	cr_assert_not_null(kept(w, DRV_RECORD_WANTED, 1));
	cr_expect_not(kept(w, DRV_RECORD_WANTED, 1)->is_wanted);
	await_end(w);
	cr_expect_null(taken(w, CLIENT, FW_OUTCOME), "that is not kept yet");
	cr_expect_null(taken(w, CLIENT, FW_ANSWER), "nor is the stop");
	written(w, NULL);
	answer = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(answer->answer.failure.code, FRAGI_FAILURE_NONE);
	cr_expect_not_null(taken(w, CLIENT, FW_OUTCOME));
	stop(w, false);
	answer = taken(w, CLIENT, FW_ANSWER);
	cr_expect_eq(answer->answer.failure.code, FRAGI_FAILURE_APPLICATION_UNKNOWN);
}

WORLD_TEST(driver_restore, an_end_is_known_when_it_is_kept, run_two)
{
	await_end(w);
	hosts_end(w);
	cr_expect_null(taken(w, CLIENT, FW_OUTCOME));
	written(w, NULL);
	cr_expect_not_null(taken(w, CLIENT, FW_OUTCOME));
}

Test(driver_restore, a_stop_before_a_start_is_kept_forgets_it)
{
	struct world w;

	keeps_state(&w);
	app(&w, two_fragments);
	step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	cr_assert(w.ended);
	cr_expect_not_null(kept(&w, DRV_RECORD_FORGOTTEN, 1));
	world_fini(&w);

	keeps_state(&w);
	app(&w, two_fragments);
	written(&w, "the disk is full");
	cr_assert(w.ended);
	cr_expect_null(kept(&w, DRV_RECORD_FORGOTTEN, 1), "it was never there");
	world_fini(&w);
}

static void restore_event(struct world *w, uint64_t number, int64_t unix_ns)
{
	cr_assert_eq(drv_core_restore(w->core, &(struct drv_record){.kind = DRV_RECORD_NOTICE,
								    .notice = number,
								    .notice_kind = FW_NOTICE_START,
								    .unix_ns = unix_ns,
								    .name = "mine",
								    .who = "user alice",
								    .text = "1 fragment"}),
		     0);
}

static const struct fw_events *events(struct world *w, uint64_t seq)
{
	const struct fw_message *message;

	say(w, CLIENT, &(struct fw_message){.kind = FW_WATCH, .seq = seq});
	message = must_take(w, CLIENT, FW_EVENTS);
	return &message->events;
}

Test(driver_restore, events_go_on_and_are_bounded_in_number_and_age)
{
	struct world w;

	keeps_state(&w);
	restore_event(&w, 3, 10 * SECOND);
	restore_event(&w, 4, 1040 * SECOND);
	client_hello(&w, CLIENT, "");
	cr_assert_eq(events(&w, 2)->count, 2);
	/* the clock is set forward: what is too old then is forgotten with the next event */
	drv_core_set_clock(w.core, DRV_KEPT_NS + 900 * SECOND);
	hello(&w, 1, "a", NULL);
	cr_assert_eq(events(&w, 3)->count, 2);
	cr_expect_eq(events(&w, 4)->rows[0].number, 4);
	cr_expect_eq(events(&w, 5)->rows[1].number, 5);
	cr_expect_eq(kept(&w, DRV_RECORD_NOTICE, 0)->first_notice, 4);
	/* and back */
	drv_core_set_clock(w.core, -1000 * SECOND);
	hello(&w, 2, "b", NULL);
	cr_assert_eq(events(&w, 6)->count, 3);
	world_fini(&w);

	keeps_state(&w);
	for (uint64_t number = 1; number <= 3 * DRV_NOTICES_MAX; number++)
		restore_event(&w, number, 1040 * SECOND);
	client_hello(&w, CLIENT, "");
	cr_expect_eq(events(&w, 2)->rows[0].number, 2 * DRV_NOTICES_MAX + 1);
	world_fini(&w);
}

/* As somebody else may have written them. Of a number that comes twice the first word counts. */
WORLD_TEST(driver_restore, events_have_one_order, NULL)
{
	static const struct {
		uint64_t given[4];
		const char *kept; /* their numbers, and how many were given before */
	} rows[] = {
		{{1, 2, 3, 4}, "1:0 2:1 3:2 4:3"},
		{{3, 4, 5, 6}, "3:0 4:1 5:2 6:3"},
		{{1, 2, 2, 3}, "1:0 2:1 3:3"},
		{{1, 2, 1, 3}, "1:0 2:1 3:3"},
		{{1, 1, 1, 1}, "1:0"},
		{{1, 2, 4, 5}, "4:2 5:3"},
		{{4, 3, 2, 1}, "4:0"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		const struct fw_events *all;
		char text[100] = "";

		if (i > 0)
			world_fini(w);
		keeps_state(w);
		for (int k = 0; k < 4; k++)
			restore_event(w, rows[i].given[k], 1040 * SECOND + k);
		client_hello(w, CLIENT, "");
		all = events(w, 2);
		for (uint32_t k = 0; k < all->count; k++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d:%d",
				 k > 0 ? " " : "", (int)all->rows[k].number,
				 (int)(all->rows[k].unix_ns - 1040 * SECOND));
		cr_expect_str_eq(text, rows[i].kept, "%zu", i);
	}
}

WORLD_TEST(driver_restore, runs_are_bounded_but_for_what_starts_again, keeps_state)
{
	const struct fw_reply *reply;
	char name[32];

	for (uint64_t run = 1; run <= 200; run++) {
		snprintf(name, sizeof(name), "%s%d", run % 2 ? "lost" : "done", (int)run);
		restore(w, run, name, run % 2, FRAGI_SUMMARY_STOPPED);
	}
	client_hello(w, CLIENT, "");
	for (int i = 0; i < 200; i++)
		pass(w, MS);
	cr_expect_eq(drv_core_app_count(w->core), 100, "all that were wanted start again");
	written(w, NULL);
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_STOP_APP, .seq = 3, .stop_app = {"lost1", false, false}});
	pass(w, MS);
	reply = state_of(w, 4);
	cr_expect_leq(reply->ended_count, DRV_ENDED_MAX + 1);
	cr_expect_str_eq(reply->ended[0].name, "lost1");
}

WORLD_TEST(driver_restore, more_ends_in_one_step_than_are_remembered, keeps_state)
{
	struct fragi_spec_source source = {
		.graph = {"app.yaml", two_fragments, strlen(two_fragments)}};
	struct drv_event event = {.kind = DRV_EVENT_APP};
	char name[32];
	size_t ends = 0;
	void *packed;

	hello(w, 1, "a", NULL);
	cr_assert_eq(fragi_source_pack(&source, &packed, &event.app.source_bytes), 0);
	event.app.source = packed;
	for (int i = 0; i < DRV_ENDED_MAX + 20; i++) {
		snprintf(name, sizeof(name), "app%d", i);
		event.app.name = name;
		step(w, &event);
		written(w, NULL);
		cr_assert_eq(drv_core_named_state(w->core, name), DRV_APP_PREPARING);
	}
	fragi_free(packed);
	w->kept_count = 0;
	w->many_end = true;
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "connection reset"});
	for (size_t i = 0; i < w->kept_count; i++)
		ends += w->kept[i].kind == DRV_RECORD_END;
	cr_expect_eq(ends, DRV_ENDED_MAX + 20);
}

WORLD_TEST(driver_restore, what_no_driver_has_written_is_refused, keeps_state)
{
	struct drv_record record = {.kind = DRV_RECORD_RUN,
				    .run = 1,
				    .name = "mine",
				    .who = "",
				    .outcome = "nonsense",
				    .outcome_bytes = 8};

	cr_expect_eq(drv_core_restore(w->core, &record), -EUCLEAN);
	record.outcome_bytes = 3;
	cr_expect_eq(drv_core_restore(w->core, &record), -EUCLEAN);
}

/* A service that takes back what ran. */
static void adopts(struct world *w)
{
	world_init_with(w, (struct drv_config){.version = "test",
					       .keeps_state = true,
					       .adopts = true,
					       .realtime_offset_ns = 1000 * SECOND});
	speaking_run = 1;
}

/* The disk may have the end and not the run that follows it. */
Test(driver_restore, what_is_given_up_stays_wanted_until_it_has_started_anew)
{
	struct world w;

	adopts(&w);
	restore(&w, 1, "mine", true, NOT_ENDED);
	w.kept_count = 0;
	for (int i = 0; i < 40 && kept(&w, DRV_RECORD_END, 1) == NULL; i++) {
		pass(&w, 250 * MS);
		written(&w, NULL);
	}
	cr_assert_not_null(kept(&w, DRV_RECORD_END, 1));
	cr_expect(kept(&w, DRV_RECORD_END, 1)->is_wanted);
	pass(&w, MS);
	cr_assert_not_null(kept(&w, DRV_RECORD_RUN, 2));
	cr_expect(kept(&w, DRV_RECORD_RUN, 2)->is_wanted);
	world_fini(&w);

	/* what the next driver may find of that */
	adopts(&w);
	restore(&w, 1, "mine", true, FRAGI_SUMMARY_FAILED);
	restore(&w, 2, "mine", true, NOT_ENDED);
	for (int i = 0; i < 10; i++)
		pass(&w, MS);
	cr_expect_eq(drv_core_app_count(w.core), 1, "it is the same application");
	world_fini(&w);
}

static void placed_on(struct world *w, uint64_t run, const char *workers)
{
	cr_assert_eq(drv_core_restore(w->core, &(struct drv_record){.kind = DRV_RECORD_PLACED,
								    .run = run,
								    .text = workers}),
		     0);
}

/* Which of two workers of one name has it alone depends on who comes first. */
Test(driver_restore, a_worker_of_the_same_name_is_not_taken_for_another)
{
	struct world w;

	adopts(&w);
	app(&w, two_fragments);
	written(&w, NULL);
	hello(&w, 1, "w", NULL);
	cr_assert_not_null(taken(&w, 1, FW_HOST_CREATE));
	cr_expect_str_eq(w.placed, "w\n");
	hello(&w, 2, "w", NULL);
	cr_expect_str_eq(w.placed, "", "nobody knows which of them comes back as w");
	world_fini(&w);

	for (int is_known = 0; is_known < 2; is_known++) {
		adopts(&w);
		placed_on(&w, 1, is_known ? "w\n" : "");
		restore(&w, 1, "mine", true, NOT_ENDED);
		pass(&w, MS);
		written(&w, NULL);
		hello(&w, 1, "w", NULL);
		pass_beating(&w, SECOND, 1, 1);
		cr_expect_eq(kept(&w, DRV_RECORD_END, 1) != NULL, is_known);
		pass_beating(&w, 8 * SECOND, 1, 1);
		cr_expect_not_null(kept(&w, DRV_RECORD_END, 1));
		world_fini(&w);
	}
}
