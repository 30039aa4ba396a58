// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

#include <driverd/core/applications/source.h>
#include <driverd/core/hosts/swap.h>

/* What clients can make the driver keep is bounded; what is held for a command is given back. */
#define CLIENT 50
#define ROOM 131072 /* for what a command leaves in the state folder beside a graph */

#define GRAPH(f2, more)                                                                            \
	"frag: 1\n"                                                                                \
	"application: app\n"                                                                       \
	"fragments:\n"                                                                             \
	"  f1: {operators: {tx: {type: t}}}\n"                                                     \
	"  f2: {extensions: [libold.so], operators: {rx: {type: t" f2 "}}, "                       \
	"on_failure: {policy: restart, intensity: 2}}\n"                                           \
	"flows: [f1.tx.out -> f2.rx.in]\n" more
static const char graph[] = GRAPH("", "");

static void runs_with(struct world *w, bool keeps_state)
{
	world_init_with(w, (struct drv_config){.version = "test", .keeps_state = keeps_state});
	speaking_run = 1;
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	client_hello(w, CLIENT, "top");
	both_come(w);
	say_start(w, CLIENT, 2, "", graph);
	if (keeps_state)
		step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
	cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
	both_prepare(w);
	both_run(w);
	forget_requests(w, 2);
	w->many_end = true;
}

/* A run that has ended, and is to start again with the next driver. */
static struct drv_ended *remember(struct world *w, const char *name, size_t source_bytes)
{
	struct drv_ended *ended = fragi_calloc(1, sizeof(*ended));

	ended->name = fragi_strdup(name);
	ended->started_by = fragi_strdup("");
	ended->source = fragi_calloc(1, 1);
	ended->source_bytes = source_bytes;
	ended->is_wanted = true;
	ended->next = w->core->history.ended;
	w->core->history.ended = ended;
	return ended;
}

/* Room is left for so many bytes of source. */
static void leave(struct world *w, size_t bytes)
{
	remember(w, "large", DRV_SOURCES_MAX - drv_source_bytes_of_all(w->core) - bytes);
	cr_assert_eq(drv_source_bytes_of_all(w->core), DRV_SOURCES_MAX - bytes);
}

static void stop(struct world *w, bool restart)
{
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_STOP_APP, .seq = 3, .stop_app = {"app", true, restart}});
}

static void ask_for_another(struct world *w)
{
	say_start(w, CLIENT, 3, "other", graph);
}

static void ask_to_swap(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_SWAP, .seq = 3, .swap = {"app", "f2", "libnew.so", "", SECOND}});
}

static void ask_to_restart(struct world *w)
{
	stop(w, true);
}

static void ask_to_apply(struct world *w)
{
	say_apply(w, CLIENT, 3, GRAPH("", "# longer\n"), false);
}

static size_t bytes_of(const char *text, const char *set)
{
	struct fragi_spec_source source = {
		.graph = {"app.yaml", text, strlen(text)}, .sets = &set, .set_count = set != NULL};
	void *packed;
	size_t bytes;

	cr_assert_eq(fragi_source_pack(&source, &packed, &bytes), 0);
	fragi_free(packed);
	return bytes;
}

/* The application is at its end, and stays known. */
static void has_ended(struct world *w)
{
	stop(w, false);
	both_are_killed(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	while (taken(w, CLIENT, FW_ANSWER) != NULL)
		;
	w->core->history.ended->is_wanted = false;
}

Test(driver_full, graphs_are_kept_up_to_so_many_bytes)
{
	const struct {
		void (*begin)(struct world *w);
		void (*ask)(struct world *w);
		size_t bytes;
	} cases[] = {
		{NULL, ask_for_another, bytes_of(graph, NULL)},
		{has_ended, ask_to_restart, bytes_of(graph, NULL)},
		{NULL, ask_to_apply, sizeof("# longer\n") - 1},
		{NULL, ask_to_swap, bytes_of(graph, "swap:f2/libold.so=libnew.so")},
	};

	for (size_t i = 0; i < 2 * FRAG_COUNT_OF(cases); i++) {
		const size_t too_few = i % 2;
		const struct fw_message *m;
		struct world w;

		runs_with(&w, false);
		if (cases[i / 2].begin != NULL)
			cases[i / 2].begin(&w);
		leave(&w, cases[i / 2].bytes - too_few);
		cases[i / 2].ask(&w);
		m = taken(&w, CLIENT, FW_ANSWER);
		if (too_few) {
			cr_assert_not_null(m, "%zu: %s", i, w.log);
			cr_expect_eq(m->answer.failure.code, FRAGI_FAILURE_DRIVER_FULL, "%zu: %s",
				     i, m->answer.failure.sentence);
			cr_expect_str_eq(m->answer.failure.sentence,
					 "the graphs of all applications would have more than 256 "
					 "MiB, the most that driverd keeps; stop one first");
		} else {
			cr_expect(m == NULL || m->answer.failure.code == FRAGI_FAILURE_NONE,
				  "%zu: %s", i, m->answer.failure.sentence);
		}
		world_fini(&w);
	}
}

Test(driver_full, so_many_applications_run)
{
	static const struct {
		int others;
		const char *name;
		bool is_refused;
	} cases[] = {{DRV_APPS_MAX - 2, "other", false},
		     {DRV_APPS_MAX - 1, "other", true},
		     {DRV_APPS_MAX - 1, "kept0", false}};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct fw_message *m;
		struct world w;
		char name[20];

		runs_with(&w, false);
		for (int k = 0; k < cases[i].others; k++) {
			snprintf(name, sizeof(name), "kept%d", k);
			remember(&w, name, 1);
		}
		say_start(&w, CLIENT, 3, cases[i].name, graph);
		m = must_take(&w, CLIENT, FW_ANSWER);
		cr_expect_str_eq(m->answer.failure.sentence,
				 cases[i].is_refused
					 ? "driverd keeps 1000 applications running, as "
					   "many as it takes; stop one first"
					 : "");
		world_fini(&w);
	}
}

/* What was set is a part of the graph, which has a limit of its own. */
Test(driver_full, a_graph_takes_so_much_that_is_set)
{
	static const char text[] = "f2.rx.value=4";

	for (size_t more = 0; more < 2; more++) {
		const struct fw_message *m;
		struct world w;
		size_t *size, real;

		runs_with(&w, false);
		pass_beating(&w, 300 * MS, 1, 2); /* so it may ask for something large */
		size = &w.core->apps[0]->source.size;
		real = *size;
		*size = FRAGI_SOURCE_MAX - strlen(text) - DRV_SET_ROOM + more;
		say(&w, CLIENT,
		    &(struct fw_message){.kind = FW_SET, .seq = 3, .set = {"app", text}});
		*size = real;
		cr_expect_eq(taken(&w, 2, FW_HOST_SET) != NULL, more == 0, "%zu %s", more, w.log);
		m = taken(&w, CLIENT, FW_ANSWER);
		cr_expect_str_eq(m != NULL ? m->answer.failure.sentence : "",
				 more == 0 ? ""
					   : "the graph of app and what was set have 4 MiB, the "
					     "most that driverd keeps");
		world_fini(&w);
	}
}

static void ask_to_apply_to_a_host(struct world *w)
{
	say_apply(w, CLIENT, 3, GRAPH(", parameters: {a: 1}", ""), false);
}

static void ask_to_apply_anew(struct world *w)
{
	say_apply(w, CLIENT, 3, GRAPH("", "services: {s: {type: s}}\n"), false);
}

static void ask_to_apply_junk(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_APPLY, .seq = 3, .apply = {"app", "junk", 4, false}});
}

static void ask_to_restart_another(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_STOP_APP, .seq = 3, .stop_app = {"other", false, true}});
}

static void ask_to_drain(struct world *w)
{
	say(w, CLIENT, &(struct fw_message){.kind = FW_DRAIN, .seq = 3, .drain = {.worker = "b"}});
}

static void ask_to_move_back(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_DRAIN,
				 .seq = 3,
				 .drain = {.worker = "b", .undo = true, .rebalance = true}});
}

static void ask_to_undo(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_DRAIN, .seq = 3, .drain = {.worker = "b", .undo = true}});
}

static size_t sum_of(const struct world *w, enum drv_record_kind kind)
{
	size_t bytes = 0;

	cr_assert_lt(w->kept_count, KEPT_MAX);
	for (size_t i = 0; i < w->kept_count; i++)
		bytes += w->kept[i].kind == kind ? w->kept[i].bytes : 0;
	return bytes;
}

static void keep(struct world *w, const char *why_not)
{
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_PERSISTED, .change = w->persist, .text = why_not});
}

/* Twice a graph, since it is written twice; until the next run is written where one follows. */
Test(driver_full, room_that_is_held_for_a_command_is_given_back)
{
	const struct {
		void (*ask)(struct world *w);
		size_t bytes;
		bool restarts;
	} cases[] = {
		{ask_to_restart, ROOM + 2 * bytes_of(graph, NULL), true},
		{ask_to_restart_another, ROOM, false},
		{ask_to_apply, ROOM + 2 * bytes_of(GRAPH("", "# longer\n"), NULL), false},
		{ask_to_apply_to_a_host,
		 ROOM + 2 * bytes_of(GRAPH(", parameters: {a: 1}", ""), NULL), false},
		{ask_to_apply_anew,
		 ROOM + 2 * bytes_of(GRAPH("", "services: {s: {type: s}}\n"), NULL), true},
		{ask_to_apply_junk, ROOM + 2 * 4, false},
		{ask_to_drain, ROOM, false},
		{ask_to_move_back, ROOM, false},
		{ask_to_undo, 0, false},
		{ask_to_swap, ROOM, false},
		{ask_for_another, 0, false},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct world w;

		runs_with(&w, true);
		cases[i].ask(&w);
		cr_expect_eq(sum_of(&w, DRV_RECORD_RESERVED), cases[i].bytes, "%zu: %zu", i,
			     sum_of(&w, DRV_RECORD_RESERVED));
		cr_expect_eq(sum_of(&w, DRV_RECORD_RELEASED), 0, "%zu", i);
		keep(&w, NULL);
		cr_expect_eq(sum_of(&w, DRV_RECORD_RELEASED),
			     cases[i].restarts ? 0 : cases[i].bytes, "%zu", i);
		if (cases[i].restarts) {
			both_are_done(&w);
			both_are_killed(&w);
			step(&w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
			cr_expect_eq(sum_of(&w, DRV_RECORD_RELEASED), cases[i].bytes, "%zu: %s", i,
				     w.log);
		}
		cr_expect_eq(w.core->held_count, 0);
		world_fini(&w);
		/* what was not to be had is not given back */
		runs_with(&w, true);
		cases[i].ask(&w);
		keep(&w, "it is full");
		keep(&w, NULL);
		cr_expect_eq(sum_of(&w, DRV_RECORD_RELEASED), 0, "%zu", i);
		world_fini(&w);
		/* the client goes before it is known */
		runs_with(&w, true);
		cases[i].ask(&w);
		step(&w, &(struct drv_event){.kind = DRV_EVENT_CLOSED,
					     .connection = CLIENT,
					     .text = "it closed"});
		cr_expect_eq(sum_of(&w, DRV_RECORD_RELEASED), cases[i].bytes, "%zu", i);
		cr_expect_eq(w.core->held_count, 0);
		world_fini(&w);
	}
}

/* As many events as a message takes; the others follow in one of their own. */
WORLD_TEST(driver_full, a_message_has_so_many_events, world_init)
{
	const struct fw_message *m;

	client_hello(w, CLIENT, "");
	for (int i = 0; i < 300; i++)
		step(w, &(struct drv_event){.kind = DRV_EVENT_KEYS_KEPT, .text = "it is damaged"});
	say(w, CLIENT, &(struct fw_message){.kind = FW_WATCH, .seq = 2, .watch = {0, true}});
	m = must_take(w, CLIENT, FW_EVENTS);
	cr_expect_eq(m->events.count, 256);
	cr_expect_eq(m->events.rows[0].number, 1);
	m = must_take(w, CLIENT, FW_EVENTS);
	cr_expect_eq(m->events.count, 300 - 256);
	cr_expect_eq(m->events.rows[0].number, 257);
	cr_expect_eq(m->reply_to, 2);
	cr_expect_null(taken(w, CLIENT, FW_EVENTS));
}

WORLD_TEST(driver_full, so_many_answers_wait_for_the_state_folder, NULL)
{
	for (uint32_t waiting = 1023; waiting <= 1024; waiting++) {
		const struct fw_message *m;

		runs_with(w, true);
		w->core->held_answer_count = waiting;
		stop(w, false);
		m = taken(w, CLIENT, FW_ANSWER);
		cr_expect_eq(m != NULL, waiting == 1024, "%u", waiting);
		if (m != NULL)
			cr_expect_str_eq(
				m->answer.remark,
				"the state folder cannot be written: if driverd ends before "
				"that is mended, the next driverd starts app again");
		w->core->held_answer_count -= waiting;
		if (waiting == 1023)
			world_fini(w);
	}
}

/* Gaps in the numbers of runs, which a lost driver may have given. */
WORLD_TEST(driver_full, so_many_gaps_in_the_numbers_of_runs_are_known, world_init)
{
	for (uint64_t i = 1; i <= DRV_FOREIGN_MAX + 2; i++) {
		drv_persist_raise_runs(w->core, 10 * i);
		drv_persist_raise_runs(w->core, 10 * i);
		cr_expect_eq(w->core->last_run, 10 * i);
		cr_assert_eq(w->core->foreign_count, i < DRV_FOREIGN_MAX ? i : DRV_FOREIGN_MAX);
		w->core->last_run++; /* that one this driver has given */
	}
	for (uint64_t i = 0; i < DRV_FOREIGN_MAX; i++) {
		cr_expect_eq(w->core->foreign[i].first, 10 * i + (i == 0 ? 1 : 2));
		cr_expect_eq(w->core->foreign[i].last, 10 * i + 10);
	}
}

/* Its length counts beside the row, up to that of the longest text. */
WORLD_TEST(driver_full, a_row_of_a_reply_costs_more_if_it_is_long, world_init)
{
	static const struct {
		size_t length;
		int64_t items;
	} cases[] = {{0, 1}, {63, 1}, {64, 2}, {4095, 64}, {4096, 65}, {5000, 65}};
	const int64_t least = DRV_STEP_ITEMS - DRV_REPLY_ITEMS; /* for others */
	static char text[5001];

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		memset(text, 120, sizeof(text));
		text[cases[i].length] = 0;
		w->core->items = least + cases[i].items - 1;
		cr_expect_not(drv_session_take_row(w->core, text), "%zu", cases[i].length);
		cr_expect_eq(w->core->items, least + cases[i].items - 1);
		w->core->items++;
		cr_expect(drv_session_take_row(w->core, text), "%zu", cases[i].length);
		cr_expect_eq(w->core->items, least);
	}
}

WORLD_TEST(driver_full, what_is_not_given_has_a_default, NULL)
{
	const struct drv_config *config;

	world_init_with(w, (struct drv_config){0});
	config = &w->core->config;
	cr_expect_eq(config->beat_ns, 250 * MS);
	cr_expect_eq(config->dead_ns, 3 * SECOND);
	cr_expect_eq(config->wire_ns, 10 * SECOND);
	cr_expect_eq(config->prepare_ns, 0);
	cr_expect_eq(config->start_ns, 0);
	cr_expect_eq(config->drain_ns, 10 * SECOND);
	cr_expect_eq(config->close_ns, 2 * SECOND);
	cr_expect_eq(config->kill_ns, SECOND);
	cr_expect_eq(config->report_missing_ns, 10 * SECOND);
	cr_expect_eq(config->progress_ns, SECOND);
	cr_expect_eq(config->adopt_ns, 8 * SECOND);
	world_fini(w);
	world_init_with(w, (struct drv_config){.beat_ns = MS, .progress_ns = -1});
	config = &w->core->config;
	cr_expect_eq(config->beat_ns, MS);
	cr_expect_eq(config->progress_ns, -1);
}

/* All bytes of the keys of a run are drawn, and no others. */
WORLD_TEST(driver_full, the_keys_of_a_run_are_drawn_whole, world_init)
{
	uint64_t random = w->random;
	const struct drv_keys *keys;
	uint8_t drawn[FW_DATA_KEY_BYTES + FW_VARIABLES_KEY_BYTES];

	for (size_t i = 0; i < sizeof(drawn); i++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		drawn[i] = (uint8_t)(random >> 56);
	}
	app(w, graph);
	keys = &w->core->apps[0]->keys;
	cr_expect_eq(w->random, random);
	cr_expect_arr_eq(keys->data, drawn, FW_DATA_KEY_BYTES);
	cr_expect_arr_eq(keys->variables, drawn + FW_DATA_KEY_BYTES, FW_VARIABLES_KEY_BYTES);
}

/* A sentence that leads back to the graph before is cut so that this can be read. */
WORLD_TEST(driver_full, a_long_sentence_keeps_what_follows_from_it, NULL)
{
	static char sentence[FW_TEXT_MAX];
	const char *shown;

	runs_with(w, false);
	ask_to_apply_anew(w);
	both_are_done(w);
	both_exit(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	speaking_run = 2;
	speaking_epoch[1] = speaking_epoch[2] = 2;
	memset(sentence, 120, sizeof(sentence) - 1);
	say_event(w, 1, 1, FW_STATE_FAILED, sentence);
	shown = w->core->apps[0]->summary.failure.sentence;
	cr_assert_not_null(shown, "%s", w->log);
	cr_expect_str_eq(shown + strspn(shown, "x"),
			 "; app starts again with the graph before, as run 3");
	cr_expect_eq(strlen(shown), FW_TEXT_MAX - 1);
}
