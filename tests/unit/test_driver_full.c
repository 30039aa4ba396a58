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
