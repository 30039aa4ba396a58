// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* What a driver remembers of runs that have ended, and what is left out of it. */
#define CLIENT 3

static void remembers(struct world *w)
{
	world_init_with(w, (struct drv_config){.version = "test",
					       .keeps_state = true,
					       .realtime_offset_ns = 1000 * SECOND});
	w->many_end = true;
	client_hello(w, CLIENT, "");
	both_come(w);
}

static void keep(struct world *w)
{
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
}

static void starts(struct world *w, uint64_t run, const char *name)
{
	say_start(w, CLIENT, 10 + run, name, two_fragments);
	keep(w);
	speaking_run = speaking_epoch[1] = speaking_epoch[2] = run;
}

static void start_and_end(struct world *w, uint64_t run, const char *name)
{
	starts(w, run, name);
	both_prepare(w);
	both_run(w);
	both_are_done(w);
	both_exit(w);
	keep(w);
}

static size_t count_of(const struct world *w, enum drv_record_kind kind, uint64_t run)
{
	size_t count = 0;

	for (size_t i = 0; i < w->kept_count; i++)
		count += w->kept[i].kind == kind && w->kept[i].run == run;
	return count;
}

/* The newest run of each name can be started again, and older ones of that name cannot. */
WORLD_TEST(driver_history, the_newest_run_of_a_name_keeps_its_source, NULL)
{
	static const struct {
		const char *name;
		uint64_t forgets; /* the source of that run; 0: none */
	} runs[] = {{"one", 0}, {"two", 0}, {"one", 1}, {"three", 0}, {"one", 3}, {"two", 2}};
	size_t bytes = 0, count = 0;

	remembers(w);
	for (uint64_t run = 1; run <= FRAG_COUNT_OF(runs); run++) {
		start_and_end(w, run, runs[run - 1].name);
		for (uint64_t other = 1; other <= run; other++)
			cr_expect_eq(w->kept[w->kept_count - 1].kind == DRV_RECORD_SOURCELESS &&
					     w->kept[w->kept_count - 1].run == other,
				     runs[run - 1].forgets == other, "%d, %d", (int)run,
				     (int)other);
	}
	for (uint64_t run = 1; run <= FRAG_COUNT_OF(runs); run++) {
		const struct drv_ended *ended = drv_history_find(&w->core->history, run);

		cr_expect_eq(ended->source != NULL, run >= 4, "%d", (int)run);
		cr_expect_eq(count_of(w, DRV_RECORD_SOURCELESS, run), run < 4, "once");
		bytes += sizeof(*ended) + ended->outcome_bytes +
			 (ended->source != NULL ? ended->source_bytes : 0);
		count++;
	}
	cr_expect_eq(w->core->history.ended_count, count);
	cr_expect_eq(w->core->history.ended_bytes, bytes);
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_STOP_APP, .seq = 3, .stop_app = {"three", false, true}});
	keep(w);
	keep(w);
	cr_expect_eq(drv_core_named_state(w->core, "three"), DRV_APP_PREPARING);
	speaking_run = 1;
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
}

/* An application that never ran is not what a lost worker interrupts. */
Test(driver_history, what_a_lost_worker_ends_is_wanted_once_it_ran)
{
	for (int runs = 0; runs < 2; runs++) {
		static struct world w;

		remembers(&w);
		starts(&w, 1, "app");
		both_prepare(&w);
		if (runs)
			both_run(&w);
		step(&w, &(struct drv_event){
				 .kind = DRV_EVENT_CLOSED, .connection = 2, .text = "it closed"});
		say_exit(&w, 1, 1, 137, 9, "");
		cr_assert_not_null(kept(&w, DRV_RECORD_END, 1), "%s", w.log);
		cr_expect_eq(kept(&w, DRV_RECORD_END, 1)->is_wanted, runs);
		cr_expect_eq(kept(&w, DRV_RECORD_END, 1)->ended_unix_ns, w.now_ns + 1000 * SECOND);
		world_fini(&w);
	}
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
}

/* The outcome of an application with that summary, as clients get it. */
static const struct fw_outcome *outcome_of(struct world *w, const struct fragi_summary *summary)
{
	static struct fw_message *message;
	const struct drv_ended *ended;

	fw_message_free(message);
	message = NULL;
	world_init(w);
	app(w, two_fragments);
	w->core->apps[0]->summary = *summary;
	drv_actions_reset(&w->actions);
	w->core->actions = &w->actions;
	drv_history_end(w->core->apps[0]);
	w->core->actions = NULL;
	w->core->apps[0]->summary = (struct fragi_summary){0};
	ended = w->core->history.ended;
	cr_assert_not_null(ended);
	cr_assert_eq(fw_decode(ended->outcome + 4, ended->outcome_bytes - 4, &message, NULL), 0);
	drv_actions_reset(&w->actions);
	world_fini(w);
	return &message->outcome;
}

/* Fragments and operators together have so many rows, and what is left out is counted. */
Test(driver_history, rows_of_a_summary_are_bounded_and_counted)
{
	static const struct {
		size_t fragments, operators; /* of each fragment */
	} cases[] = {{1, 1},
		     {100, 19},
		     {100, 20},
		     {64, 31},
		     {DRV_ENDED_ROWS, 0},
		     {DRV_ENDED_ROWS, 1},
		     {DRV_ENDED_ROWS + 2, 1}};
	static struct fragi_summary_fragment fragments[DRV_ENDED_ROWS + 2];
	static struct fragi_summary_operator operators[31];
	static struct world w;

	for (size_t i = 0; i < FRAG_COUNT_OF(operators); i++)
		operators[i].name = "o";
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		size_t all = cases[i].fragments * (1 + cases[i].operators), shown = 0;
		const struct fw_outcome *outcome;
		const struct fragi_summary *summary;

		for (size_t f = 0; f < cases[i].fragments; f++)
			fragments[f] = (struct fragi_summary_fragment){.name = "f",
								       .operators = operators,
								       .operator_count =
									       cases[i].operators};
		outcome = outcome_of(&w,
				     &(struct fragi_summary){.application = "app",
							     .fragments = fragments,
							     .fragment_count = cases[i].fragments});
		summary = &outcome->summary;
		cr_expect_eq(outcome->left_out, all < DRV_ENDED_ROWS ? 0 : all - DRV_ENDED_ROWS,
			     "%zu: %u", i, outcome->left_out);
		for (size_t f = 0; f < summary->fragment_count; f++)
			shown += 1 + summary->fragments[f].operator_count;
		cr_expect_eq(shown, all < DRV_ENDED_ROWS ? all : DRV_ENDED_ROWS, "%zu", i);
	}
}

/* Flows have rows of their own, as many as fit into a frame. */
Test(driver_history, flows_of_a_summary_are_bounded_and_counted)
{
	static const struct {
		size_t flows, shown;
		bool are_long;
	} cases[] = {{10, 10, false},
		     {DRV_ENDED_FLOWS, DRV_ENDED_FLOWS, false},
		     {DRV_ENDED_FLOWS + 3, DRV_ENDED_FLOWS, false},
		     {DRV_ENDED_FLOWS, DRV_ENDED_FLOWS / 8, true}};
	static struct fragi_summary_flow flows[DRV_ENDED_FLOWS + 3];
	static char reason[1000];
	static struct world w;

	memset(reason, 120, sizeof(reason) - 1);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct fw_outcome *outcome;

		for (size_t k = 0; k < cases[i].flows; k++)
			flows[k] = (struct fragi_summary_flow){
				.from = "f.tx.out",
				.to = "f.rx.in",
				.edge = "ucx",
				.policy = "block",
				.lost_because = cases[i].are_long ? reason : NULL};
		outcome = outcome_of(&w, &(struct fragi_summary){.application = "app",
								 .flows = flows,
								 .flow_count = cases[i].flows});
		cr_expect_eq(outcome->summary.flow_count, cases[i].shown, "%zu: %zu", i,
			     outcome->summary.flow_count);
		cr_expect_eq(outcome->left_out, cases[i].flows - cases[i].shown, "%zu", i);
	}
}

static int restore(struct drv_core *core, uint64_t run, bool has_ended)
{
	struct fragi_spec_source source = {
		.graph = {"app.yaml", two_fragments, strlen(two_fragments)}};
	struct drv_record record = {
		.kind = DRV_RECORD_RUN, .run = run, .name = "mine", .who = "me"};
	struct fw_message message = {.kind = FW_OUTCOME, .run = run};
	uint8_t *frame = NULL;
	void *packed;
	int r;

	cr_assert_eq(fragi_source_pack(&source, &packed, &record.source_bytes), 0);
	record.source = packed;
	message.outcome.name = "mine";
	message.outcome.reached = FW_ENDED;
	message.outcome.summary = (struct fragi_summary){
		.application = "mine",
		.result = FRAGI_SUMMARY_FAILED,
		.exit_code = 7,
		.duration_ns = 5,
		.failure = {.code = FRAGI_FAILURE_HOST_CRASHED, .sentence = "it crashed"}};
	cr_assert_eq(fw_encode(&message, &frame, &record.outcome_bytes), 0);
	record.outcome = frame;
	if (!has_ended)
		record.outcome_bytes = 0;
	r = drv_core_restore(core, &record);
	fragi_free(packed);
	fragi_free(frame);
	return r;
}

/* A driver that has no memory says so; it does not take its own records for damaged ones. */
Test(driver_history, memory_that_is_short_at_a_start_is_no_damage)
{
	for (int has_ended = 0; has_ended < 2; has_ended++) {
		int64_t skip = 0, failed = 1;

		for (; failed != 0; skip++) {
			struct fragi_spec_source source = {
				.graph = {"app.yaml", two_fragments, strlen(two_fragments)}};
			struct fw_message message = {.kind = FW_OUTCOME, .run = 1};
			struct drv_record record = {
				.kind = DRV_RECORD_RUN, .run = 1, .name = "mine", .who = "me"};
			uint8_t *frame = NULL;
			struct world w;
			void *packed;
			int r;

			world_init(&w);
			cr_assert_eq(fragi_source_pack(&source, &packed, &record.source_bytes), 0);
			record.source = packed;
			message.outcome = (struct fw_outcome){
				.name = "mine", .reached = FW_ENDED, .summary.application = "mine"};
			cr_assert_eq(fw_encode(&message, &frame, &record.outcome_bytes), 0);
			record.outcome = frame;
			if (!has_ended)
				record.outcome_bytes = 0;
			fragi_alloc_fail_after(skip, 1);
			r = drv_core_restore(w.core, &record);
			failed = fragi_alloc_fail_off();
			cr_expect_eq(r, failed != 0 ? -ENOMEM : 0, "%d: %d", (int)skip, r);
			cr_expect_eq(w.core->history.ended_count, failed == 0, "%d", (int)skip);
			fragi_free(packed);
			fragi_free(frame);
			world_fini(&w);
		}
		cr_expect_gt(skip, 4);
	}
}

/* What the records of drivers before lead to. */
WORLD_TEST(driver_history, a_run_of_a_driver_before_is_shown_as_it_ended, NULL)
{
	const struct drv_ended *ended;

	world_init(w);
	cr_assert_eq(restore(w->core, 4, true), 0);
	ended = w->core->history.ended;
	cr_expect_eq(ended->run, 4);
	cr_expect_str_eq(ended->name, "mine");
	cr_expect_str_eq(ended->started_by, "me");
	cr_expect_eq(ended->result, FRAGI_SUMMARY_FAILED);
	cr_expect_eq(ended->exit_code, 7);
	cr_expect_eq(ended->duration_ns, 5);
	cr_expect_eq(ended->failure.code, FRAGI_FAILURE_HOST_CRASHED);
	cr_expect_str_eq(ended->failure.sentence, "it crashed");
	cr_expect(ended->is_earlier);
	cr_expect_not(ended->is_cut);
	cr_assert_eq(restore(w->core, 6, false), 0);
	ended = w->core->history.ended;
	cr_expect_eq(ended->run, 6);
	cr_expect_str_eq(ended->failure.sentence,
			 "driverd ended while it ran; what it counted is not known");
	cr_expect_not(ended->is_earlier);
	cr_expect(ended->is_cut);
	cr_expect_eq(w->core->history.ended_count, 2);
	cr_expect_eq(w->core->last_run, 6);
}

/* Numbers of runs that a driver before has given are written again, and not given. */
WORLD_TEST(driver_history, numbers_of_a_driver_before_stay_given, NULL)
{
	struct fw_message message = {.kind = FW_STOP_APP, .seq = 2, .stop_app = {"x", false, true}};

	world_init_with(w, (struct drv_config){.version = "test", .keeps_state = true});
	cr_assert_eq(drv_core_restore(w->core, &(struct drv_record){.kind = DRV_RECORD_NUMBERS,
								    .epoch = 100,
								    .run = 41}),
		     0);
	drv_actions_reset(&w->actions);
	w->core->actions = &w->actions;
	drv_persist_numbers(w->core);
	w->core->actions = NULL;
	cr_assert_eq(w->actions.count, 1);
	cr_expect_eq(w->actions.items[0].record.kind, DRV_RECORD_NUMBERS);
	cr_expect_eq(w->actions.items[0].record.run, 41);
	cr_expect_eq(w->actions.items[0].record.epoch, 100 + 1024);
	client_hello(w, CLIENT, "");
	say(w, CLIENT, &message);
	app(w, two_fragments);
	cr_expect_eq(w->core->apps[0]->run, 42);
	cr_expect_eq(w->core->apps[0]->epoch, 101);
	cr_expect_eq(w->epochs, 101 + 1024);
}

/* Of events only the last ones are kept, which is as many as there may be. */
WORLD_TEST(driver_history, events_of_a_driver_before_are_bounded, NULL)
{
	struct drv_record record = {.kind = DRV_RECORD_NOTICE,
				    .notice_kind = FW_NOTICE_START,
				    .name = "mine",
				    .who = "user alice",
				    .text = "1 fragment"};

	world_init(w);
	for (record.notice = 1; record.notice <= 2 * DRV_NOTICES_MAX + 10; record.notice++) {
		cr_assert_eq(drv_core_restore(w->core, &record), 0);
		cr_assert_eq(w->core->history.last_notice, record.notice);
		cr_assert_leq(w->core->history.last_notice - w->core->history.first_notice,
			      DRV_NOTICES_MAX - 1);
	}
	cr_expect_eq(w->core->history.first_notice, 2 * DRV_NOTICES_MAX + 1);
}
