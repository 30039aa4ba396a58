/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DRIVER_LIVES_GRAPHS_H
#define TESTS_UNIT_DRIVER_LIVES_GRAPHS_H

#include "driver_lives.h"

/* The graphs of a life. */
#define SHAPES 5
static const char *const app_names[] = {"app", "cam", "lab"};
static const struct shape {
	unsigned int fragments[3], count;
} shapes[SHAPES] = {{{0, 1}, 2}, {{0, 1, 3}, 3}, {{4}, 1}, {{0, 2, 3}, 3}, {{4, 0, 1}, 3}};
static const struct {
	const char *name, *op;
} fragments[] = {{"f1", "tx"}, {"f2", "rx"}, {"f3", "mid"}, {"f4", "rx"}, {"f5", "tx"}};
/* Of an operator's port, by place in the tables that its fragment answers. */
static const struct {
	unsigned int from, from_op, from_port, to, to_op;
	const char *from_name, *to_name;
} flows[] = {{0, 0, 0, 1, 0, "f1.tx.out", "f2.rx.in"},
	     {0, 0, 0, 2, 0, "f1.tx.out", "f3.mid.in"},
	     {2, 0, 1, 3, 0, "f3.mid.out", "f4.rx.in"},
	     {0, 0, 0, 3, 0, "f1.tx.out", "f4.rx.in"}};
static const char *const policies[] = {
	"", "", "on_failure: {policy: restart, intensity: 2, period: 60s, backoff: 1s}, ",
	"on_failure: {policy: migrate, intensity: 3, period: 20s, backoff: 500ms, lease: 2s}, ",
	"on_failure: {policy: migrate, lease: 0s}, "};
static const char *const needs[] = {"",
				    "",
				    "",
				    "requirements: {cpu: 2, memory: 1Gi}, ",
				    "requirements: {gpu: 1, cpuLimit: 1.5, memoryLimit: 64Mi}, ",
				    "requirements: {labels: {zone: or1}}, ",
				    "requirements: {apart: [f1]}, ",
				    "requirements: {near: [f1]}, "};

/* Of an operator, a fragment and the application: what only shows in a difference. */
static const char *const op_more[] = {"",
				      "",
				      "",
				      "",
				      ", deadline: 20ms",
				      ", rate: 30hz",
				      ", rate: 25hz, budget: 2ms",
				      ", watchdog: 2s",
				      ", conditions: [{type: count, count: 3}]",
				      ", conditions: [{type: count, count: 4}]",
				      ", metadata: false"};
static const char *const fragment_more[] = {
	"",
	"",
	"",
	"",
	"scheduler: {type: greedy}, ",
	"watchdog: 2s, ",
	"clock: manual, ",
	"thread_pools: {slow: {initial_size: 1, add: [{operators: [tx]}]}}, ",
	"thread_pools: {slow: {initial_size: 1, add: [{operators: [tx], pin_operator: true}]}}, ",
	"resources: {pool: {type: p, size: 4}}, ",
	"resources: {pool: {type: p, size: [5, {a: 1}]}}, ",
	"data_loggers: {l: {type: x}}, ",
	"services: {found: {type: s, size: 1}}, "};
static const char *const top_more[] = {
	"",
	"",
	"",
	"",
	"clock: {max_error: 1ms}\n",
	"services: {found: {type: s}}\n",
	"deadlines: [{path: [f1.tx, f2.rx], budget: 5ms}]\n",
	"deadlines: [{path: [f1.tx, f2.rx], budget: 6ms, on_miss: stop}]\n",
	"watchdog: 9s\n",
	"variables: {v: {type: f32, shape: [2], writer: f1.tx, readers: [f2.rx]}}\n",
	"variables: {v: {type: f32, shape: [3], writer: f1.tx, readers: [f2.rx]}}\n"};

static inline bool has_fragment(const struct life_graph *g, unsigned int fragment)
{
	for (unsigned int i = 0; i < shapes[g->shape].count; i++)
		if (shapes[g->shape].fragments[i] == fragment)
			return true;
	return false;
}

static inline bool has_flow(const struct life_graph *g, size_t flow)
{
	return has_fragment(g, flows[flow].from) && has_fragment(g, flows[flow].to) &&
	       (flow < 3 || !has_fragment(g, 2));
}

static inline const char *graph_text(const struct life_graph *g, const char *name)
{
	static char text[81920];
	FILE *out = fmemopen(text, sizeof(text), "w");

	fprintf(out, "frag: 1\napplication: %s\n%sfragments:\n", name,
		has_fragment(g, 0) && has_fragment(g, 1) ? top_more[g->more[2]] : "");
	for (unsigned int i = 0; i < shapes[g->shape].count; i++) {
		unsigned int f = shapes[g->shape].fragments[i];
		unsigned int need =
			(f == 0 || !has_fragment(g, 0)) && g->needs[f] >= 6 ? 0 : g->needs[f];

		fprintf(out, "  %s: {%s%s", fragments[f].name, policies[g->policy[f]], needs[need]);
		if (g->alone & (1u << f))
			fprintf(out, "host: own%u, ", f);
		if (f <= 1)
			fprintf(out,
				g->library % 3 == 2 ? "extensions: [libone%u.so, libtwo.so], "
						    : "extensions: [libone%u.so], ",
				g->library);
		if (f == 0)
			fprintf(out, "%s", fragment_more[g->more[1]]);
		fprintf(out, "operators: {");
		fprintf(out, "%s: {type: t", fragments[f].op);
		if (f == 0 || f == 4)
			fprintf(out, ", parameters: {value: %u}", g->value);
		fprintf(out, "%s}%s", f == 0 ? op_more[g->more[0]] : "",
			f == 4 ? ", rx: {type: t}" : "");
		fprintf(out, "}%s}\n", f == 4 ? ", flows: [tx.out -> rx.in]" : "");
	}
	if (g->shape != 2)
		fprintf(out, "flows:\n");
	for (size_t i = 0; i < FRAG_COUNT_OF(flows); i++)
		if (has_flow(g, i))
			fprintf(out, "  - {from: %s, to: %s%s%s}\n", flows[i].from_name,
				flows[i].to_name,
				(const char *[]){"", ", capacity: 7, policy: pop",
						 ", capacity: 2, policy: reject"}[g->capacity],
				(const char *[]){"", ", edge: ucx", ", encrypt: on",
						 ", edge: shm"}[g->edge]);
	if (g->is_mistaken)
		fprintf(out, "  - f1.tx.out -> f9.rx.in\n");
	for (int i = 0; g->is_large && i < 900; i++)
		fprintf(out,
			"# a line that makes this graph as long as those of many fragments are are\n");
	fclose(out);
	return text;
}

static inline void draw_graph(struct life *l, struct life_graph *g)
{
	g->shape = (unsigned int)drawn(l, SHAPES);
	g->value = 1;
	g->library = (unsigned int)drawn(l, 3);
	g->capacity = (unsigned int)drawn(l, 3);
	g->edge = one_in(l, 3) ? (unsigned int)drawn(l, 4) : 0;
	g->alone = one_in(l, 2) ? 31 : (unsigned int)drawn(l, 32);
	for (size_t i = 0; i < 3; i++)
		g->more[i] = 0;
	g->is_large = one_in(l, 30);
	if (one_in(l, 3)) {
		g->more[0] = (unsigned int)drawn(l, FRAG_COUNT_OF(op_more));
		g->more[1] = (unsigned int)drawn(l, FRAG_COUNT_OF(fragment_more));
		g->more[2] = (unsigned int)drawn(l, FRAG_COUNT_OF(top_more));
	}
	for (size_t i = 0; i < 5; i++) {
		g->policy[i] = l->is_calm && !one_in(l, 6)
				       ? 2 + (unsigned int)drawn(l, 3)
				       : (unsigned int)drawn(l, FRAG_COUNT_OF(policies));
		g->needs[i] = l->is_calm && !one_in(l, 5)
				      ? 0
				      : (unsigned int)drawn(l, FRAG_COUNT_OF(needs));
	}
}

#endif
