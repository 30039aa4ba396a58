// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <base/blame.h>
#include <sched/path_deadline.h>

/* Which part of the time of a late message is to blame: pure functions, by tables. */

#define PLACES 4
#define MS UINT64_C(1000000)

static uint64_t part_of(const struct fragi_blame_parts *parts, uint32_t at,
			enum fragi_blame_cause cause)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < parts->count; i++)
		if (parts->parts[i].at == at && parts->parts[i].cause == cause)
			ns += parts->parts[i].ns;
	return ns;
}

/* Each row: what is known of a way to operator 2, and the part that is expected of it. */
static const struct {
	struct fragi_blame_way way;
	uint16_t at;
	enum fragi_blame_cause cause;
	uint64_t ns;
} ways[] = {
	/* in one process */
	{{.took_ns = 17}, 2, FRAGI_BLAME_QUEUE, 17},
	{{.took_ns = 17, .busy_ns = 12, .thread_ns = 3}, 2, FRAGI_BLAME_THREAD, 3},
	{{.took_ns = 17, .busy_ns = 12, .thread_ns = 3}, 2, FRAGI_BLAME_QUEUE, 14},
	{{.took_ns = 17, .busy_ns = 12, .thread_ns = 9}, 2, FRAGI_BLAME_THREAD, 5},
	{{.took_ns = 17, .thread_ns = 99}, 2, FRAGI_BLAME_THREAD, 17},
	{{.took_ns = 17, .busy_ns = 6, .pool_ns = 7}, 2, FRAGI_BLAME_POOL, 7},
	{{.took_ns = 17, .busy_ns = 6, .room_ns = 7}, 3, FRAGI_BLAME_WINDOW, 7},
	{{.took_ns = 17, .busy_ns = 6, .room_ns = 7, .away_ns = 4}, 3, FRAGI_BLAME_RESTART, 4},
	{{.took_ns = 17, .busy_ns = 6, .room_ns = 7, .away_ns = 4}, 3, FRAGI_BLAME_WINDOW, 3},
	{{.took_ns = 17, .busy_ns = 6, .room_ns = 7, .away_ns = 9}, 3, FRAGI_BLAME_RESTART, 7},
	{{.took_ns = 17, .busy_ns = 6, .suspended_ns = 7}, 2, FRAGI_BLAME_RESTART, 7},
	{{.took_ns = 17, .unstarted_ns = 11}, 2, FRAGI_BLAME_RESTART, 11},
	{{.took_ns = 17, .unstarted_ns = 11, .thread_ns = 9}, 2, FRAGI_BLAME_THREAD, 6},
	{{.took_ns = 17, .busy_ns = 19, .thread_ns = 9, .pool_ns = 9}, 2, FRAGI_BLAME_QUEUE, 17},
	/* the kernel kept its thread waiting */
	{{.took_ns = 17, .busy_ns = 12, .denied_ns = 9}, 2, FRAGI_BLAME_PREEMPTED, 9},
	{{.took_ns = 17, .busy_ns = 12, .denied_ns = 19}, 2, FRAGI_BLAME_PREEMPTED, 12},
	{{.took_ns = 17, .busy_ns = 12, .denied_ns = 9, .starved_ns = 3}, 2, FRAGI_BLAME_QUEUE, 5},
	{{.took_ns = 17, .busy_ns = 12, .starved_ns = 3}, 2, FRAGI_BLAME_PREEMPTED, 3},
	{{.took_ns = 17, .busy_ns = 12, .starved_ns = 9}, 2, FRAGI_BLAME_QUEUE, 12},
	{{.took_ns = 17, .busy_ns = 6, .thread_ns = 9, .starved_ns = 7}, 2, FRAGI_BLAME_THREAD, 4},
	{{.took_ns = 17, .busy_ns = 6, .pool_ns = 9, .starved_ns = 7}, 2, FRAGI_BLAME_PREEMPTED, 2},
	/* between processes */
	{{.took_ns = 23, .arrived_ns = 17}, 2, FRAGI_BLAME_NETWORK, 17},
	{{.took_ns = 23, .arrived_ns = 17}, 2, FRAGI_BLAME_QUEUE, 6},
	{{.took_ns = 23, .arrived_ns = 17, .held_ns = 11}, 2, FRAGI_BLAME_NETWORK, 6},
	{{.took_ns = 23, .arrived_ns = 17, .held_ns = 11}, 2, FRAGI_BLAME_WINDOW, 11},
	{{.took_ns = 23, .arrived_ns = 17, .held_ns = 11, .restart_ns = 7},
	 2,
	 FRAGI_BLAME_RESTART,
	 7},
	{{.took_ns = 23, .arrived_ns = 17, .held_ns = 11, .restart_ns = 7},
	 2,
	 FRAGI_BLAME_WINDOW,
	 4},
	{{.took_ns = 23, .arrived_ns = 17, .held_ns = 11, .gpu_ns = 5}, 1, FRAGI_BLAME_GPU, 5},
	{{.took_ns = 23, .arrived_ns = 17, .held_ns = 11, .restart_ns = 7, .gpu_ns = 5},
	 1,
	 FRAGI_BLAME_GPU,
	 4},
	/* clocks that are not exact: it arrived before it was sent, or after its tick began */
	{{.took_ns = 23, .arrived_ns = 17, .held_ns = 19}, 2, FRAGI_BLAME_WINDOW, 17},
	{{.took_ns = 23, .arrived_ns = 29}, 2, FRAGI_BLAME_NETWORK, 23},
	{{.took_ns = 0, .arrived_ns = 29, .held_ns = 29}, 2, FRAGI_BLAME_WINDOW, 0},
};

Test(blame, a_way_falls_into_parts_that_add_up)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct fragi_blame_parts parts = {0};
		struct fragi_blame_way way = ways[i].way;

		way.at = 2;
		fragi_blame_way(&parts, &way);
		cr_expect_eq(part_of(&parts, ways[i].at, ways[i].cause), ways[i].ns, "row %zu", i);
		cr_expect_eq(fragi_blame_sum(&parts), way.took_ns, "row %zu", i);
	}
}

Test(blame, a_tick_falls_into_parts_that_add_up)
{
	static const struct {
		struct fragi_blame_stay stay;
		uint64_t compute, preempted, gpu;
	} rows[] = {
		{{0, 23, 0, 0}, 23, 0, 0},    {{0, 23, 17, 0}, 6, 17, 0},
		{{0, 23, 0, 11}, 12, 0, 11},  {{0, 23, 7, 11}, 5, 7, 11},
		{{0, 23, 17, 11}, 0, 12, 11}, {{0, 23, 29, 0}, 0, 23, 0},
		{{0, 0, 29, 29}, 0, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fragi_blame_parts parts = {0};

		fragi_blame_stay(&parts, &rows[i].stay);
		cr_expect_eq(part_of(&parts, 0, FRAGI_BLAME_COMPUTE), rows[i].compute, "%zu", i);
		cr_expect_eq(part_of(&parts, 0, FRAGI_BLAME_PREEMPTED), rows[i].preempted, "%zu",
			     i);
		cr_expect_eq(part_of(&parts, 0, FRAGI_BLAME_GPU), rows[i].gpu, "%zu", i);
		cr_expect_eq(fragi_blame_sum(&parts), rows[i].stay.took_ns, "%zu", i);
	}
}

Test(blame, of_many_parts_the_smallest_are_added_up)
{
	struct fragi_blame_parts parts = {0};
	uint64_t sum = 0;

	for (uint32_t at = 0; at < 20; at++) {
		uint64_t ns = 10 + (at * 7) % 20; /* each of 10 to 29 once */

		fragi_blame_add(&parts, at, FRAGI_BLAME_COMPUTE, ns);
		sum += ns;
	}
	cr_expect_eq(parts.count, FRAGI_BLAME_PARTS_MAX);
	cr_expect_eq(fragi_blame_sum(&parts), sum);
	for (uint32_t i = 0; i < parts.count; i++)
		cr_expect_gt(parts.parts[i].ns, 29 - FRAGI_BLAME_PARTS_MAX);
	fragi_blame_add(&parts, parts.parts[3].at, FRAGI_BLAME_COMPUTE, 1000); /* one of them */
	cr_expect_geq(parts.parts[3].ns, 1022);
	cr_expect_eq(fragi_blame_sum(&parts), sum + 1000);
}

/* Each cause once is what takes longest, or takes longer than it usually does. */
Test(blame, each_cause_is_found)
{
	static uint64_t ns[PLACES * FRAGI_BLAME_CAUSES];
	struct fragi_blame_usual none = {0, ns, PLACES};

	for (uint32_t cause = 0; cause < FRAGI_BLAME_CLOCK; cause++)
		for (uint32_t at = 0; at < PLACES; at++) {
			struct fragi_blame_parts parts = {0};
			struct fragi_blame_part part;

			fragi_blame_add(&parts, 1, FRAGI_BLAME_COMPUTE, 5 * MS);
			fragi_blame_add(&parts, at, (enum fragi_blame_cause)cause, 9 * MS);
			fragi_blame_add(&parts, 2, FRAGI_BLAME_QUEUE, 7 * MS);
			part = fragi_blame(&parts, &none, MS, 0);
			cr_expect_eq(part.cause, cause);
			cr_expect_eq(part.at, at);
		}
}

Test(blame, what_is_usual_is_not_to_blame)
{
	static uint64_t ns[PLACES * FRAGI_BLAME_CAUSES];
	struct fragi_blame_usual usual = {0, ns, PLACES};
	struct fragi_blame_parts parts = {0}, late = {0};
	struct fragi_blame_part part;

	fragi_blame_add(&parts, 1, FRAGI_BLAME_COMPUTE, 50 * MS);
	fragi_blame_add(&parts, 2, FRAGI_BLAME_NETWORK, 2 * MS);
	fragi_blame_learn(&usual, &parts);
	parts.parts[0].ns = 52 * MS;
	fragi_blame_learn(&usual, &parts); /* 51 ms is usual */
	fragi_blame_add(&late, 1, FRAGI_BLAME_COMPUTE, 53 * MS);
	fragi_blame_add(&late, 2, FRAGI_BLAME_NETWORK, 5 * MS);
	part = fragi_blame(&late, &usual, MS, 0);
	cr_expect_eq(part.cause, FRAGI_BLAME_NETWORK);
	cr_expect_eq(part.ns, 5 * MS);
	late.parts[1].ns = 4 * MS; /* both are 2 ms above it: the first one */
	cr_expect_eq(fragi_blame(&late, &usual, MS, 0).cause, FRAGI_BLAME_COMPUTE);
	late.parts[0].ns = 51 * MS;
	late.parts[1].ns = 2 * MS; /* none is above it: the largest one */
	cr_expect_eq(fragi_blame(&late, &usual, MS, 0).cause, FRAGI_BLAME_COMPUTE);
	late.parts[0].at = PLACES; /* another host may say anything */
	fragi_blame_learn(&usual, &late);
	cr_expect_eq(fragi_blame(&late, &usual, MS, 0).at, PLACES);
}

Test(blame, a_clock_that_is_not_exact_enough_is_to_blame)
{
	static const struct {
		uint64_t late_ns, error_ns;
		bool is_clock;
	} rows[] = {{10, 0, false}, {10, 9, false}, {10, 10, true}, {10, 11, true}, {0, 0, false}};
	struct fragi_blame_usual none = {0, NULL, 0};
	struct fragi_blame_parts parts = {0};

	fragi_blame_add(&parts, 0, FRAGI_BLAME_COMPUTE, 100);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(fragi_blame(&parts, &none, rows[i].late_ns, rows[i].error_ns).cause ==
				     FRAGI_BLAME_CLOCK,
			     rows[i].is_clock, "row %zu", i);
}

Test(blame, causes_have_names)
{
	cr_expect_str_eq(fragi_blame_name(FRAGI_BLAME_QUEUE), "queue");
	cr_expect_str_eq(fragi_blame_text(FRAGI_BLAME_CLOCK), "clock unsure");
	cr_expect(fragi_blame_is_edge(FRAGI_BLAME_NETWORK));
	cr_expect_not(fragi_blame_is_edge(FRAGI_BLAME_GPU));
}

/*
 * Ten lines a second about late messages of a path; those left out are counted until the next line,
 * and each second begins anew.
 */
Test(blame, lines_about_late_messages_are_bounded)
{
	static const struct {
		int messages;
		bool is_later; /* a second after the line before */
		uint32_t lines;
		uint64_t left_out;
	} rows[] = {
		{1, false, 1, 0},  {8, false, 9, 0}, {1, false, 10, 0}, {1, false, 10, 1},
		{3, false, 10, 4}, {1, true, 1, 0},  {9, false, 10, 0}, {2, false, 10, 2},
		{11, true, 10, 1}, {1, true, 1, 0},
	};
	const char *names[] = {"a", "b"};
	struct frag_op *ops[] = {NULL, NULL}; /* of other hosts */
	uint64_t ns[2 * FRAGI_BLAME_CAUSES] = {0}, blamed[3 * FRAGI_BLAME_CAUSES] = {0}, sum = 0;
	struct fragi_late_row *places[3] = {NULL}; /* beyond FRAGI_LATE_PLACES_MAX */
	struct fragi_op_row row = {0};
	struct fragi_exec *exec = calloc(1, sizeof(*exec));
	struct fragi_path_deadline path = {.names = names,
					   .ops = ops,
					   .count = 2,
					   .budget_ns = 2 * MS,
					   .usual = {.ns = ns, .places = 2},
					   .blamed = blamed,
					   .rows = places};
	const struct fragi_blame_parts parts = {
		.count = 1, .parts = {{.at = 1, .cause = FRAGI_BLAME_QUEUE, .ns = 5 * MS}}};
	const struct fragi_trail_entry entry = {0};

	cr_assert_not_null(exec);
	exec->row = &row;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].is_later)
			path.log.since_ns -= 1000000000;
		for (int k = 0; k < rows[i].messages; k++, sum++)
			fragi_path_blame(exec, &path, &parts, 5 * MS, &entry);
		cr_expect_eq(path.log.lines, rows[i].lines, "row %zu: %u", i, path.log.lines);
		cr_expect_eq(path.log.left_out, rows[i].left_out, "row %zu", i);
	}
	cr_expect_eq(blamed[1 * FRAGI_BLAME_CAUSES + FRAGI_BLAME_QUEUE], sum, "all are counted");
	free(exec);
}

/* The name of a path, and of a part of it, ends with a mark where it does not fit. */
Test(blame, a_path_whose_name_is_cut_says_so)
{
	char names_of[64][FRAG_NAME_MAX + 1], out[600];
	const char *names[64];
	const struct fragi_blame_part part = {.at = 1, .cause = FRAGI_BLAME_QUEUE};
	struct fragi_path_deadline path = {.names = names, .count = 64};

	for (int i = 0; i < 64; i++) {
		snprintf(names_of[i], sizeof(names_of[i]), "operator_%02d", i);
		names[i] = names_of[i];
	}
	fragi_path_name(&path, out, sizeof(out));
	cr_expect_eq(strlen(out), sizeof(out) - 1);
	cr_expect_eq(strncmp(out, "operator_00 -> operator_01 -> ", 30), 0);
	cr_expect_str_eq(out + strlen(out) - 3, "...");
	cr_expect_str_eq(fragi_path_part(&path, NULL, &part, out, 20), "operator_01 wait...");
	path.count = 2;
	fragi_path_name(&path, out, sizeof(out));
	cr_expect_str_eq(out, "operator_00 -> operator_01");
}

/* By the operator and by the flow that leads to it, and room behind the last operator by itself. */
Test(blame, places_of_late_messages_are_counted)
{
	static const struct {
		uint16_t at, cause;
		int messages;
	} cases[] = {
		{0, FRAGI_BLAME_COMPUTE, 2}, {1, FRAGI_BLAME_NETWORK, 3},
		{1, FRAGI_BLAME_QUEUE, 5},   {2, FRAGI_BLAME_WINDOW, 7},
		{9, FRAGI_BLAME_WINDOW, 11}, {1, FRAGI_BLAME_CLOCK, 13},
	};
	const char *names[] = {"a", "b"};
	struct frag_op *ops[] = {NULL, NULL};
	uint64_t ns[2 * FRAGI_BLAME_CAUSES] = {0}, blamed[3 * FRAGI_BLAME_CAUSES] = {0}, all = 0;
	struct fragi_late_row rows[3] = {0}, *places[] = {&rows[0], &rows[1], &rows[2]};
	struct fragi_op_row row = {0};
	struct fragi_exec *exec = calloc(1, sizeof(*exec));
	struct fragi_path_deadline path = {.names = names,
					   .ops = ops,
					   .count = 2,
					   .budget_ns = 2 * MS,
					   .usual = {.ns = ns, .places = 2},
					   .blamed = blamed,
					   .rows = places};

	cr_assert_not_null(exec);
	exec->row = &row;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool is_clock = cases[i].cause == FRAGI_BLAME_CLOCK;
		const struct fragi_trail_entry entry = {.error_ns = is_clock ? 4 * MS : 0};
		const struct fragi_blame_parts parts = {
			.count = 1, .parts = {{cases[i].at, cases[i].cause, 5 * MS}}};

		for (int k = 0; k < cases[i].messages; k++)
			fragi_path_blame(exec, &path, &parts, 5 * MS, &entry);
	}
	cr_expect_eq(atomic_load(&rows[0].late[FRAGI_BLAME_COMPUTE]), 2);
	cr_expect_eq(atomic_load(&rows[1].late[FRAGI_BLAME_NETWORK]), 3);
	cr_expect_eq(atomic_load(&rows[1].late[FRAGI_BLAME_QUEUE]), 5);
	cr_expect_eq(atomic_load(&rows[2].late[FRAGI_BLAME_WINDOW]), 7 + 11);
	cr_expect_eq(atomic_load(&row.late_clock), 13, "it is about no place");
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < FRAGI_BLAME_CAUSES; k++)
			all += atomic_load(&rows[i].late[k]);
	cr_expect_eq(all, 2 + 3 + 5 + 7 + 11);
	free(exec);
}
