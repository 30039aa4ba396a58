// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* Changed graphs for an application that runs. */

#define CLIENT 50
#define GRAPH(f1, f2, more)                                                                        \
	"frag: 1\n"                                                                                \
	"application: app\n"                                                                       \
	"fragments:\n"                                                                             \
	"  f1: {operators: {tx: {type: t" f1 "}}}\n"                                               \
	"  f2: {operators: {rx: {type: t" f2                                                       \
	"}}, on_failure: {policy: restart, intensity: 2, period: 60s}}\n" more                     \
	"flows: [f1.tx.out -> f2.rx.in]\n"

static void runs(struct world *w)
{
	world_init(w);
	speaking_run = 1;
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	client_hello(w, CLIENT, "");
	both_come(w);
	say_start(w, CLIENT, 2, "", GRAPH("", "", ""));
	cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
	both_prepare(w);
	both_run(w);
	while (taken(w, 1, FW_HOST_CREATE) != NULL || taken(w, 2, FW_HOST_CREATE) != NULL)
		;
}

static const struct fw_changes *apply(struct world *w, uint64_t seq, const char *text,
				      bool only_shows)
{
	const struct fw_message *m;

	say_apply(w, CLIENT, seq, text, only_shows);
	m = taken(w, CLIENT, FW_CHANGES);
	if (m != NULL)
		cr_expect_eq(m->reply_to, seq);
	return m != NULL ? &m->changes : NULL;
}

static void expect_refused(struct world *w, enum fragi_failure code, const char *sentence)
{
	const struct fw_message *m = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(m->answer.failure.code, code, "%s", m->answer.failure.sentence);
	assert_has(m->answer.failure.sentence, sentence);
}

WORLD_TEST(driver_apply, showing_changes_nothing, runs)
{
	const struct fw_changes *changes;

	changes = apply(w, 3, GRAPH(", parameters: {a: 1}", ", parameters: {b: 2}", ""), true);
	cr_assert_not_null(changes, "%s", w->log);
	cr_assert_eq(changes->count, 2);
	cr_expect_str_eq(changes->rows[0].what, "f1.tx.a: its default -> 1");
	cr_expect_eq(changes->rows[0].effect, FW_EFFECT_APPLICATION,
		     "nobody has said that it is dynamic, and f1 is not started again alone");
	cr_expect_eq(changes->rows[1].effect, FW_EFFECT_FRAGMENT);
	cr_expect_eq(changes->effect, FW_EFFECT_APPLICATION);
	cr_expect_null(taken(w, 2, FW_HOST_KILL));
	cr_expect_null(taken(w, 2, FW_HOST_STOP));
	changes = apply(w, 4, GRAPH("", "", ""), true);
	cr_assert_not_null(changes);
	cr_expect_eq(changes->effect, FW_EFFECT_NONE);
}

WORLD_TEST(driver_apply, a_host_that_may_is_started_again_with_the_new_graph, runs)
{
	const char *changed = GRAPH("", ", parameters: {b: 2}", "");
	const struct fw_changes *changes;
	const struct fw_message *create;
	struct fragi_source source;

	changes = apply(w, 3, changed, false);
	cr_assert_not_null(changes, "%s", w->log);
	cr_expect_eq(changes->effect, FW_EFFECT_FRAGMENT);
	cr_expect_str_eq(changes->restarts, "f2");
	cr_expect_null(taken(w, 1, FW_HOST_KILL));
	cr_assert_not_null(taken(w, 2, FW_HOST_KILL));
	apply(w, 4, GRAPH("", ", parameters: {b: 3}", ""), false);
	expect_refused(w, FRAGI_FAILURE_NO_SERVICE, "f2 is being started again");
	say_exit(w, 2, 2, 137, 9, "");
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_assert_eq(
		fragi_source_unpack(create->create.source, create->create.source_bytes, &source),
		0);
	cr_expect_str_eq(source.source.graph.text, changed);
	fragi_source_fini(&source);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

/* It runs, and another process is prepared for it on another worker. */
WORLD_TEST(driver_apply, a_host_that_is_about_to_move_is_not_started_again, runs)
{
	const char *changed = GRAPH("", ", parameters: {b: 2}", "");

	hello(w, 3, "c", "f2");
	say(w, CLIENT, &(struct fw_message){.kind = FW_DRAIN, .seq = 3, .drain = {"b", false}});
	cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
	cr_assert(must_take(w, 3, FW_HOST_CREATE)->create.is_beside);
	apply(w, 4, changed, false);
	expect_refused(w, FRAGI_FAILURE_NO_SERVICE, "f2 is being started again");
	cr_expect_null(taken(w, 2, FW_HOST_KILL));
	cr_expect_null(taken(w, 3, FW_HOST_KILL));
}

/* The second one of the operators, and the second of its parameters, may change while it runs. */
static void says_what_is_dynamic(struct world *w)
{
	const char *first[] = {"a"}, *second[] = {"b", "c"};
	struct fw_message message = of_host(FW_HOST_PREPARED, 2);
	struct fw_port port = {.name = "in", .type = "message", .dir = FRAG_IN, .has_codec = true};
	struct fw_op ops[] = {{.name = "rx",
			       .type = "t",
			       .ports = &port,
			       .port_count = 1,
			       .dynamic = first,
			       .dynamic_count = 1},
			      {.name = "more", .type = "t", .dynamic = second, .dynamic_count = 2}};
	struct fw_fragment fragment = {.name = "f2", .ops = ops, .op_count = 2};
	struct fw_address address = {"ucx", "address", 7, "tcp lo"};

	message.prepared = (struct fw_host_prepared){.ok = true,
						     .fragments = &fragment,
						     .fragment_count = 1,
						     .addresses = &address,
						     .address_count = 1,
						     .pid = 102};
	say(w, 2, &message);
}

#define TWO_OPS(rx, more, policy)                                                                  \
	"frag: 1\n"                                                                                \
	"application: app\n"                                                                       \
	"fragments:\n"                                                                             \
	"  f1: {operators: {tx: {type: t}}}\n"                                                     \
	"  f2: {operators: {rx: {type: t, parameters: {" rx                                        \
	"}}, more: {type: t, parameters: {" more "}}}" policy "}\n"                                \
	"flows: [f1.tx.out -> f2.rx.in]\n"
#define RESTARTS ", on_failure: {policy: restart, intensity: 2}"

Test(driver_apply, what_is_dynamic_can_be_set)
{
	static const struct {
		const char *graph, *set;
		enum fw_effect effect;
	} cases[] = {
		{TWO_OPS("", "c: 1", RESTARTS), "f2.more.c=1", FW_EFFECT_SET},
		{TWO_OPS("", "b: 1", RESTARTS), "f2.more.b=1", FW_EFFECT_SET},
		{TWO_OPS("a: 1", "", RESTARTS), "f2.rx.a=1", FW_EFFECT_SET},
		{TWO_OPS("", "a: 1", RESTARTS), NULL, FW_EFFECT_FRAGMENT},
		{TWO_OPS("c: 1", "", RESTARTS), NULL, FW_EFFECT_FRAGMENT},
		{TWO_OPS("a: 1", "a: 1", RESTARTS), NULL, FW_EFFECT_FRAGMENT},
	};
	char sentence[200];

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct fw_changes *changes;
		struct world w;

		world_init(&w);
		speaking_run = 1;
		memset(speaking_epoch, 0, sizeof(speaking_epoch));
		client_hello(&w, CLIENT, "");
		both_come(&w);
		say_start(&w, CLIENT, 2, "", TWO_OPS("", "", RESTARTS));
		cr_assert_not_null(taken(&w, CLIENT, FW_ANSWER));
		say_prepared(&w, 1, 1, "f1", true);
		says_what_is_dynamic(&w);
		both_run(&w);
		changes = apply(&w, 3, cases[i].graph, true);
		cr_assert_not_null(changes, "%s", w.log);
		cr_expect_eq(changes->effect, cases[i].effect, "%zu", i);
		cr_expect_str_eq(changes->restarts,
				 cases[i].effect == FW_EFFECT_FRAGMENT ? "f2" : "");
		if (cases[i].set != NULL) {
			cr_expect_str_eq(changes->rows[0].set, cases[i].set);
			cr_expect_null(apply(&w, 4, cases[i].graph, false));
			snprintf(sentence, sizeof(sentence),
				 "%s has not been set; `fragctl apply app` does so first",
				 cases[i].set);
			expect_refused(&w, FRAGI_FAILURE_NO_SERVICE, sentence);
		} else { /* what is set comes with the restart */
			cr_expect_not_null(apply(&w, 4, cases[i].graph, false), "%zu", i);
			cr_expect_not_null(taken(&w, 2, FW_HOST_KILL));
		}
		world_fini(&w);
	}
}

/* Whatever happens to the driver until the next run is kept: it is wanted. */
WORLD_TEST(driver_apply, an_application_that_starts_anew_is_wanted_all_the_time, NULL)
{
	world_init_with(w, (struct drv_config){.version = "test", .keeps_state = true});
	client_hello(w, CLIENT, "");
	both_come(w);
	say_start(w, CLIENT, 2, "", GRAPH("", "", ""));
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
	both_prepare(w);
	both_run(w);
	w->many_end = true;
	w->core->apps[0]->next.is_wanted = false; /* as of one that only workers knew */
	say_apply(w, CLIENT, 3, GRAPH(", parameters: {a: 1}", "", ""), false);
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
	cr_assert_not_null(kept(w, DRV_RECORD_WANTED, 1), "%s", w->log);
	cr_expect(kept(w, DRV_RECORD_WANTED, 1)->is_wanted);
	both_are_done(w);
	both_exit(w);
	cr_expect(kept(w, DRV_RECORD_END, 1)->is_wanted);
}

WORLD_TEST(driver_apply, else_the_application_starts_anew_with_it, runs)
{
	const char *changed = GRAPH(", parameters: {a: 1}", "", "");
	const struct fw_message *m;
	struct fragi_source source;

	say_apply(w, CLIENT, 3, changed, false);
	m = must_take(w, CLIENT, FW_CHANGES);
	cr_expect_eq(m->run, 2);
	cr_assert_not_null(taken(w, 1, FW_HOST_STOP));
	both_are_done(w);
	both_exit(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	m = must_take(w, 1, FW_HOST_CREATE);
	cr_expect_eq(m->run, 2);
	cr_assert_eq(fragi_source_unpack(m->create.source, m->create.source_bytes, &source), 0);
	cr_expect_str_eq(source.source.graph.text, changed);
	fragi_source_fini(&source);
}

WORLD_TEST(driver_apply, what_cannot_be_is_refused_and_changes_nothing, runs)
{
	apply(w, 3, "frag: 1\napplication: app\nfragmentz: {}\n", false);
	expect_refused(w, FRAGI_FAILURE_GRAPH_INVALID, "app.yaml:3:1: ");
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_APPLY, .seq = 4, .apply = {"app", "junk", 4, false}});
	expect_refused(w, FRAGI_FAILURE_GRAPH_INVALID, "not a packed source");
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_APPLY, .seq = 5, .apply = {"other", "junk", 4, false}});
	expect_refused(w, FRAGI_FAILURE_APPLICATION_UNKNOWN, "there is no application other");
	cr_expect_null(taken(w, 2, FW_HOST_KILL));
	cr_expect_null(taken(w, 2, FW_HOST_STOP));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_STOP_APP, .seq = 6, .stop_app = {"app", false, false}});
	cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
	apply(w, 7, GRAPH("", "", ""), false);
	expect_refused(w, FRAGI_FAILURE_APPLICATION_UNKNOWN,
		       "app is draining; a changed graph is taken while it runs");
}

WORLD_TEST(driver_apply, an_event_names_who_brought_it, runs)
{
	const struct fw_message *m;

	cr_assert_not_null(apply(w, 3, GRAPH("", ", parameters: {b: 2}", ""), false));
	say(w, CLIENT, &(struct fw_message){.kind = FW_WATCH, .seq = 10});
	m = must_take(w, CLIENT, FW_EVENTS);
	cr_expect_eq(m->events.rows[m->events.count - 1].kind, FW_NOTICE_APPLY);
	cr_expect_str_eq(m->events.rows[m->events.count - 1].text, "starts f2 again");
}

/* Both hosts have ended, and the next run is to be prepared with that graph. */
static void expect_next(struct world *w, uint64_t run, const char *graph)
{
	const struct fw_message *create;
	struct fragi_source source;

	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	for (uint64_t connection = 1; connection <= 2; connection++) {
		create = must_take(w, connection, FW_HOST_CREATE);
		cr_assert_eq(create->run, run);
		speaking_epoch[create->host] = create->epoch;
		cr_assert_eq(fragi_source_unpack(create->create.source, create->create.source_bytes,
						 &source),
			     0);
		cr_expect_str_eq(source.source.graph.text, graph);
		fragi_source_fini(&source);
	}
	speaking_run = run;
}

/* A changed graph has ended run 1, and run 2 is to be prepared with it. */
static void applies(struct world *w, const char *changed)
{
	runs(w);
	w->many_end = true;
	cr_assert_not_null(apply(w, 3, changed, false), "%s", w->log);
	both_are_done(w);
	both_exit(w);
	expect_next(w, 2, changed);
}

static void fails(struct world *w)
{
	say_event(w, 1, 1, FW_STATE_FAILED, "cannot load libnew.so");
	both_are_killed(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
}

static const struct fw_message *outcome_of(struct world *w, uint64_t run)
{
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_AWAIT, .seq = 20, .run = run, .await.until = FW_RUNNING});
	return taken(w, CLIENT, FW_OUTCOME);
}

/* Whoever awaits that it runs waits until the host that was started again does. */
WORLD_TEST(driver_apply, it_runs_again_when_its_hosts_do, runs)
{
	const struct fw_message *create, *m;

	cr_assert_not_null(outcome_of(w, 1), "%s", w->log);
	cr_assert_not_null(apply(w, 3, GRAPH("", ", parameters: {b: 2}", ""), false));
	cr_assert_not_null(taken(w, 2, FW_HOST_KILL));
	cr_expect_null(outcome_of(w, 1), "it is not prepared yet");
	say_exit(w, 2, 2, 137, 9, "");
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	create = must_take(w, 2, FW_HOST_CREATE);
	speaking_epoch[2] = create->epoch;
	cr_expect_null(taken(w, CLIENT, FW_OUTCOME));
	say_prepared(w, 2, 2, "f2", false);
	cr_expect_null(taken(w, CLIENT, FW_OUTCOME), "it is not wired yet");
	say_result(w, 2, 2, FW_HOST_WIRED);
	cr_expect_null(taken(w, CLIENT, FW_OUTCOME), "it is not started yet");
	say_result(w, 2, 2, FW_HOST_STARTED);
	m = must_take(w, CLIENT, FW_OUTCOME);
	cr_expect_eq(m->outcome.reached, FW_RUNNING);
	cr_expect_eq(m->run, 1);
}

/* One that fails too often has not come to run. */
WORLD_TEST(driver_apply, an_application_that_is_to_fail_does_not_run_again, runs)
{
	cr_assert_not_null(apply(w, 3, GRAPH("", ", parameters: {b: 2}", ""), false));
	w->many_end = true;
	fails(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_ENDED);
	cr_expect_neq(outcome_of(w, 1)->outcome.reached, FW_RUNNING);
}

/* The command that started it again is no failure, and not what is named as the first one. */
WORLD_TEST(driver_apply, a_host_that_fails_then_names_why, runs)
{
	const struct fw_message *create;

	w->many_end = true;
	cr_assert_not_null(apply(w, 3, GRAPH("", ", parameters: {b: 2}", ""), false));
	say_exit(w, 2, 2, 137, 9, "");
	for (int i = 0; i < 2; i++) {
		pass_beating(w, 3 * SECOND, 1, 2);
		create = must_take(w, 2, FW_HOST_CREATE);
		speaking_epoch[2] = create->epoch;
		say_exit(w, 2, 2, 3, 0, i == 0 ? "it exited first" : "it exited last");
	}
	both_are_killed(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_ENDED);
	assert_has(w->errors,
		   "failed again after 2 restarts within 60.0 s, as many as its on_failure "
		   "allows; the first time: it exited first");
}

WORLD_TEST(driver_apply, a_graph_that_cannot_be_prepared_gives_way_to_the_one_before, NULL)
{
	const struct fw_message *m;

	applies(w, GRAPH(", parameters: {a: 1}", "", ""));
	fails(w);
	expect_next(w, 3, GRAPH("", "", ""));
	m = outcome_of(w, 2);
	cr_assert_not_null(m, "%s", w->log);
	assert_has(m->outcome.summary.failure.sentence, "cannot load libnew.so");
	assert_has(m->outcome.summary.failure.sentence,
		   "; app starts again with the graph before, as run 3");
	both_prepare(w);
	both_run(w);
	m = outcome_of(w, 3);
	cr_assert_not_null(m, "%s", w->log);
	cr_expect_eq(m->outcome.reached, FW_RUNNING);
}

WORLD_TEST(driver_apply, the_graph_before_is_not_tried_twice, NULL)
{
	applies(w, GRAPH(", parameters: {a: 1}", "", ""));
	fails(w);
	expect_next(w, 3, GRAPH("", "", ""));
	fails(w);
	cr_expect_null(taken(w, 1, FW_HOST_CREATE));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_ENDED);
}

WORLD_TEST(driver_apply, the_graph_before_does_not_return_where_the_application_was_stopped, NULL)
{
	applies(w, GRAPH(", parameters: {a: 1}", "", ""));
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_STOP_APP, .seq = 6, .stop_app = {"app", false, false}});
	fails(w);
	cr_expect_null(taken(w, 1, FW_HOST_CREATE));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_ENDED);
}

WORLD_TEST(driver_apply, once_it_has_run_the_new_graph_stays, NULL)
{
	applies(w, GRAPH(", parameters: {a: 1}", "", ""));
	both_prepare(w);
	both_run(w);
	fails(w);
	cr_expect_null(taken(w, 1, FW_HOST_CREATE));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_ENDED);
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_STOP_APP, .seq = 7, .stop_app = {"app", false, true}});
	expect_next(w, 3, GRAPH(", parameters: {a: 1}", "", ""));
}

WORLD_TEST(driver_apply, a_restart_keeps_the_graph_before, NULL)
{
	const char *changed = GRAPH(", parameters: {a: 1}", "", "");

	applies(w, changed);
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_STOP_APP, .seq = 6, .stop_app = {"app", false, true}});
	both_are_killed(w);
	expect_next(w, 3, changed);
	fails(w);
	expect_next(w, 4, GRAPH("", "", ""));
}

/* It ends with its application, and what it keeps is no part of an answer. */
WORLD_TEST(driver_apply, a_driver_for_one_application_answers_without_its_disk, NULL)
{
	const struct fw_changes *changes;

	world_init_with(w, (struct drv_config){
				   .version = "test", .ends_with_app = true, .keeps_state = true});
	client_hello(w, CLIENT, "");
	both_come(w);
	app(w, GRAPH("", "", ""));
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
	both_prepare(w);
	both_run(w);
	app(w, GRAPH("", "", "")); /* refused: the name is taken; its numbers are on no disk yet */
	changes = apply(w, 3, GRAPH("", ", parameters: {b: 2}", ""), false);
	cr_assert_not_null(changes, "%s", w->log);
	cr_expect_str_eq(changes->remark, "");
	cr_expect_not_null(taken(w, 2, FW_HOST_KILL));
}

static bool has_text(const struct drv_source *source, const char *text)
{
	const size_t size = strlen(text);
	bool found = false;

	for (size_t i = 0; i + size <= source->size; i++)
		found = found || memcmp((const char *)source->bytes + i, text, size) == 0;
	return found;
}

Test(driver_apply, memory_that_is_short_refuses_or_ends_one_application)
{
	for (int64_t skip = 0; skip >= 0; skip++) {
		struct world w;

		runs(&w);
		w.runs_short = true;
		w.step_count = 0;
		w.short_step = 0;
		w.short_skip = skip;
		w.many_end = true;
		say_apply(&w, CLIENT, 3, GRAPH("", ", parameters: {b: 2}", ""), false);
		if (w.short_skip < 0)
			skip = -2;
		if (!w.broken && taken(&w, CLIENT, FW_CHANGES) != NULL)
			cr_expect(has_text(&w.core->apps[0]->source, "b: 2"), "%d", (int)skip);
		w.runs_short = false;
		world_fini(&w);
	}
}

/* What a folder that cannot be written keeps from being done can be shown all the same. */
WORLD_TEST(driver_apply, showing_needs_no_room_in_the_state_folder, NULL)
{
	const char *changed = GRAPH("", ", parameters: {b: 2}", "");

	world_init_with(w, (struct drv_config){.version = "test", .keeps_state = true});
	client_hello(w, CLIENT, "");
	both_come(w);
	say_start(w, CLIENT, 2, "", GRAPH("", "", ""));
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
	cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
	both_prepare(w);
	both_run(w);
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_PERSISTED, .change = w->persist, .text = "it is full"});
	cr_expect_not_null(apply(w, 3, changed, true), "%s", w->log);
	cr_expect_null(apply(w, 4, changed, false));
}

/* The graphs of two clients come to the state folder as they were, though one follows the other. */
WORLD_TEST(driver_apply, two_that_are_taken_at_once_are_both_kept, NULL)
{
	static const char *const ends[] = {"# one\n", "# two\n"};
	char texts[2][1024];
	size_t seen = 0;

	world_init_with(w, (struct drv_config){.version = "test", .keeps_state = true});
	both_come(w);
	for (uint64_t i = 0; i < 2; i++) {
		client_hello(w, CLIENT + i, "");
		snprintf(texts[i], sizeof(texts[i]), "%s%s", GRAPH("", "", ""), ends[i]);
	}
	say_start(w, CLIENT, 2, "", GRAPH("", "", ""));
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
	both_prepare(w);
	both_run(w);
	for (uint64_t i = 0; i < 2; i++)
		say_apply(w, CLIENT + i, 3, texts[i], false);
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
	for (size_t i = 0; i < w->actions.count; i++) {
		const struct drv_record *record = &w->actions.items[i].record;
		struct fragi_spec_source source = {
			.graph = {"app.yaml", texts[seen % 2], strlen(texts[seen % 2])}};
		size_t bytes;
		void *packed;

		if (w->actions.items[i].kind != DRV_DO_PERSIST || record->kind != DRV_RECORD_SOURCE)
			continue;
		cr_assert_eq(fragi_source_pack(&source, &packed, &bytes), 0);
		cr_expect(record->source_bytes == bytes &&
				  memcmp(record->source, packed, bytes) == 0,
			  "of client %zu", seen);
		fragi_free(packed);
		seen++;
	}
	cr_expect_eq(seen, 2, "%s", w->log);
}
