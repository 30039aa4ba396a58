// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

#include <driverd/core/placement/placement.h>

/*
 * Which workers may take a host over, and what keeps it where it is. Each rule holds for every
 * fragment, reader and place in a list, the last one like the first.
 */
#define HERE "boot.net.user.7"
#define ELSEWHERE "other.net.user.7"
#define HEAD "frag: 1\napplication: app\nfragments:\n"
#define F(name, rest) "  " name ": {operators: {o: {type: t}}, host: " name rest "}\n"
#define NEAR(list) ", requirements: {near: " list "}"

static struct drv_host *host_of(struct world *w, const char *fragment)
{
	struct drv_app *app = w->core->apps[0];

	for (uint32_t i = 0; i < app->host_count; i++)
		if (strcmp(app->hosts[i].name, fragment) == 0)
			return &app->hosts[i];
	cr_assert_fail("no host of %s", fragment);
	return NULL;
}

static bool may_leave(struct world *w, const char *fragment)
{
	struct fragi_arena arena = {0};
	struct drv_session *found;
	struct drv_place place;

	cr_assert_eq(drv_candidate_find(host_of(w, fragment), &arena, &found, &place), 0);
	fragi_arena_fini(&arena);
	return found != NULL;
}

/*
 * All on worker a, each in a process of its own. b is the only other choice, and its session comes
 * before or after that of a.
 */
static void placed(struct world *w, const char *text, bool b_is_first)
{
	world_init(w);
	app(w, text);
	hello_by_memory(w, 2, "a", NULL, HERE);
	hello_by_memory(w, b_is_first ? 1 : 3, "b", NULL, ELSEWHERE);
	w->core->sessions[b_is_first]->is_drained = true;
	cr_assert_eq(w->core->apps[0]->host_count, w->core->apps[0]->spec->fragment_count, "%s",
		     w->log);
	w->core->actions = &w->actions; /* what is asked for is part of no step */
}

Test(driver_candidate, what_is_to_be_near_stays)
{
	static const struct {
		const char *text, *host, *near; /* NULL: nothing keeps it */
	} rows[] = {
		{HEAD F("f1", "") F("f2", NEAR("f1")) F("f3", ""), "f1", "f2"},
		{HEAD F("f1", "") F("f2", NEAR("f1")) F("f3", ""), "f2", "f1"},
		{HEAD F("f1", "") F("f2", NEAR("f1")) F("f3", ""), "f3", NULL},
		{HEAD F("f1", NEAR("[f2]")) F("f2", NEAR("[f3]")) F("f3", ""), "f3", "f2"},
		{HEAD F("f1", NEAR("[f2, f3]")) F("f2", "") F("f3", ""), "f3", "f1"},
		{HEAD F("f1", NEAR("[f2, f3]")) F("f2", NEAR("f3")) F("f3", NEAR("f4")) F("f4", ""),
		 "f4", "f3"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct world w;
		const char *why;
		char expected[100];

		placed(&w, rows[i].text, i % 2 != 0);
		why = drv_candidate_worker_obstacle(host_of(&w, rows[i].host));
		snprintf(expected, sizeof(expected),
			 "it is to be near %s, which runs in another process",
			 rows[i].near != NULL ? rows[i].near : "");
		if (rows[i].near == NULL)
			cr_expect_null(why, "%zu: %s", i, why);
		else
			cr_expect_str_eq(why != NULL ? why : "", expected, "%zu", i);
		cr_expect_eq(may_leave(&w, rows[i].host), rows[i].near == NULL, "%zu", i);
		world_fini(&w);
	}
}

/* b shares no memory with a. */
Test(driver_candidate, readers_of_a_variable_stay_where_its_memory_is)
{
#define V(readers) "variables: {v: {type: f32, writer: f1.o, readers: " readers "}}\n"
	static const struct {
		const char *variables, *host;
		bool may_leave, is_its;
	} rows[] = {
		{V("[f2, f3]"), "f2", false, true},
		{V("[f2, f3]"), "f3", false, true},
		{V("[f2, f3]"), "f4", true, false},
		{V("[f4, f2, f3]"), "f4", false, true},
		{V("[f3]"), "f2", true, false},
		{V("[f2, f3]"), "f1", true, true},
		{"variables: {v: {type: f32, writer: f1.o, readers: [f2]}, "
		 "u: {type: f32, writer: f1.o, readers: [f3]}}\n",
		 "f2", false, true},
		{"variables: {v: {type: path, path: /data, readers: [f2.o, f3.o]}}\n", "f2", true,
		 false},
	};
	char text[600];

	for (size_t n = 0; n < 2 * FRAG_COUNT_OF(rows); n++) {
		const size_t i = n / 2;
		struct world w;

		snprintf(text, sizeof(text),
			 HEAD F("f1", "") F("f2", "") F("f3", "") F("f4", "") "%s",
			 rows[i].variables);
		placed(&w, text, n % 2 != 0);
		cr_expect_eq(may_leave(&w, rows[i].host), rows[i].may_leave, "%zu", n);
		cr_expect_eq(drv_candidate_process_obstacle(host_of(&w, rows[i].host)) != NULL,
			     rows[i].is_its, "%zu", n);
		world_fini(&w);
	}
}

/* What has an address of the loopback is reached on its own node only. */
WORLD_TEST(driver_candidate, the_other_end_of_a_flow_is_to_be_reached, NULL)
{
	static const char *const nodes[] = {"node", "other"};

	for (size_t i = 0; i < FRAG_COUNT_OF(nodes); i++) {
		if (i > 0)
			world_fini(w);
		two_run(w, two_fragments);
		hello_from(w, 3, "c", NULL, nodes[i], "127.0.0.1");
		w->core->sessions[0]->is_drained = w->core->sessions[1]->is_drained = true;
		w->core->actions = &w->actions; /* what is asked for is part of no step */
		cr_expect_eq(may_leave(w, "f1"), i == 0, "%zu", i);
		cr_expect_eq(may_leave(w, "f2"), i == 0, "%zu", i);
	}
}

/* f1 is being moved to c, the only worker to which f2 could go. */
WORLD_TEST(driver_candidate, where_another_one_moves_is_no_place_apart_from_it, NULL)
{
	static const struct {
		const char *text;
		bool may_leave;
	} rows[] = {
		{HEAD F("f1", "") F("f2", ", requirements: {apart: [f1]}"), false},
		{HEAD F("f1", ", requirements: {apart: [f2]}") F("f2", ""), false},
		{HEAD F("f1", "") F("f2", ""), true},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		if (i > 0)
			world_fini(w);
		world_init(w);
		app(w, rows[i].text);
		both_come(w);
		hello(w, 3, "c", NULL);
		w->core->sessions[0]->is_drained = w->core->sessions[1]->is_drained = true;
		w->core->actions = &w->actions; /* what is asked for is part of no step */
		cr_expect(may_leave(w, "f2"), "%zu", i);
		w->core->apps[0]->moving = host_of(w, "f1");
		host_of(w, "f1")->next.session = w->core->sessions[2];
		cr_expect_eq(may_leave(w, "f2"), rows[i].may_leave, "%zu", i);
		host_of(w, "f1")->next.session = NULL;
		w->core->apps[0]->moving = NULL;
	}
}

/* Its own worker, and those at the other ends of its flows, must know how. */
WORLD_TEST(driver_candidate, a_worker_of_an_older_frag_cannot_have_its_host_taken_over, NULL)
{
	static const struct {
		uint32_t own, other;
		const char *why;
	} rows[] = {
		{DRV_MOVES_MINOR, DRV_MOVES_MINOR, NULL},
		{DRV_MOVES_MINOR - 1, DRV_MOVES_MINOR,
		 "that worker is of an older frag, which cannot do so"},
		{DRV_MOVES_MINOR, DRV_MOVES_MINOR - 1,
		 "worker b, which runs f2, is of an older frag, which cannot do so"},
	};

	two_run(w, two_fragments);
	w->core->actions = &w->actions; /* what is asked for is part of no step */
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		const char *why;

		w->core->sessions[0]->minor = rows[i].own;
		w->core->sessions[1]->minor = rows[i].other;
		why = drv_candidate_process_obstacle(host_of(w, "f1"));
		cr_assert_eq(why == NULL, rows[i].why == NULL, "%zu: %s", i, why);
		if (why != NULL)
			cr_expect_str_eq(why, rows[i].why);
	}
}
