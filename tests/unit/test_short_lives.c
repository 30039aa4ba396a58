// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdarg.h>

#include "../expected.h"
#include "lives_ops.h"
#include "logged.h"
#include "trace_shown.h"

#include <base/alloc.h>
#include <data/pool.h>

/*
 * A whole life of a graph with many features, from its text to its end, on a manual clock, in which
 * the n-th allocation fails, for every n. What comes of it is compared with a recorded text: the
 * errors with their places and codes, what was logged and traced, and how it ended. What comes of
 * several n in a row is written once.
 */
#define GRAPH                                                                                      \
	"frag: 1\napplication: x\nclock: manual\n"                                                 \
	"arguments: {many: {default: 6, help: how many}}\n"                                        \
	"config: {own: {done: \"${many}\"}}\n"                                                     \
	"scheduler: {type: greedy, max_duration_ms: 300}\n"                                        \
	"metadata: true\n"                                                                         \
	"tracking: {num_start_messages_to_skip: 1, num_last_messages_to_discard: 1, "              \
	"probes: [b], print: false}\n"                                                             \
	"data_loggers: {log: {type: scribe, allowlist_patterns: [\"x.a\"]}}\n"                     \
	"resources:\n"                                                                             \
	"  pool: {type: block_memory_pool, storage_type: 2, block_size: 4Ki, num_blocks: 3}\n"     \
	"  heap: {type: unbounded_allocator}\n"                                                    \
	"subgraphs:\n"                                                                             \
	"  pair:\n"                                                                                \
	"    parameters: {last: {default: 5}}\n"                                                   \
	"    data_loggers: {inner: {type: scribe, log_inputs: false}}\n"                           \
	"    operators:\n"                                                                         \
	"      m: {type: mid, parameters: {done: \"${last}\"}, "                                   \
	"conditions: [{type: message_available, receiver: in, min_size: 1}]}\n"                    \
	"      n: {type: mid, parameters: {done: 7}}\n"                                            \
	"    flows: [{from: m.out, to: n.in, capacity: 2}]\n"                                      \
	"    ports: {in: m.in, out: n.out}\n"                                                      \
	"operators:\n"                                                                             \
	"  a: {type: src, parameters: {from_config: own}, resources: [$pool, $heap], conditions: " \
	"[{type: periodic, recess_period: 5ms}, {type: count, count: 9}, "                         \
	"{type: memory_available, allocator: $pool, min_blocks: 1}]}\n"                            \
	"  b: {type: two, parameters: {done: 4}, ports: {a: {take: every, age: 40ms}, "            \
	"b: {missing: default, default: 8}}, align: {window: 8ms, timeout: 24ms}, "                \
	"deadline: {budget: 9ms, from: acquisition, on_miss: count}}\n"                            \
	"  c: {type: mid, parameters: {done: 5, enable_at: 2, enable: d}, conditions: "            \
	"[{type: expiring_message_available, receiver: in, max_batch_size: 2, "                    \
	"max_delay_ns: 3ms}]}\n"                                                                   \
	"  d: {type: all, parameters: {done: 4}, conditions: [{type: boolean, name: gate, "        \
	"enable_tick: true}, {type: or, terms: [gate]}], "                                         \
	"ports: {receivers: {capacity: 4}}}\n"                                                     \
	"  p: {subgraph: pair, parameters: {last: 4}}\n"                                           \
	"flows:\n"                                                                                 \
	"  - {from: a.out, to: b.a, capacity: 3}\n"                                                \
	"  - {from: a.out, to: b.b, policy: latest}\n"                                             \
	"  - {from: a.out, to: [c.in, p.in], policy: pop, capacity: 2}\n"                          \
	"  - {from: c.out, to: d.receivers}\n"                                                     \
	"  - {from: b.out, to: d.receivers, policy: reject}\n"                                     \
	"deadlines: [{path: [a, c, d], budget: 3ms, on_miss: count}]\n"

static struct rig rig;

static bool is_over(struct rig *r)
{
	return r->done > 0 || r->failed > 0;
}

/* As far as it comes. */
static int run(struct frag_err *err)
{
	const struct fragi_spec_source source = {.graph = {"test.yaml", GRAPH, strlen(GRAPH)}};
	const struct fragi_registry_config registry = {0};
	struct fragi_run_config config = {.epoch = 1, .ledger_fd = -1, .saved_fd = -1};
	int r;

	memset(&rig, 0, sizeof(rig));
	r = fragi_spec_parse(&source, &rig.diag, &rig.spec);
	if (r == 0)
		r = fragi_registry_create(&registry, &rig.registry);
	if (r == 0)
		r = fragi_registry_add(rig.registry, "rig", &lives_plugin, err);
	config.spec = rig.spec;
	config.registry = rig.registry;
	if (r == 0)
		r = fragi_run_create(&config, &rig.run);
	if (r == 0)
		r = fragi_run_prepare(rig.run, &rig.diag);
	if (r == 0)
		r = fragi_run_wire(rig.run, NULL, 0, NULL, 0, err);
	if (r == 0)
		r = fragi_run_tap(rig.run, &(struct fragi_run_tap_wish){.id = 5,
									.for_ns = INT64_MAX / 2,
									.traces = true});
	if (r == 0)
		r = fragi_run_start(rig.run, err);
	if (r == 0)
		cr_assert(rig_wait(&rig, is_over, RIG_LIMIT_NS), "it hangs");
	return r;
}

static void print_counts(FILE *out)
{
	const struct fragi_ledger *ledger = fragi_run_ledger(rig.run);
	size_t count, fragments;
	const struct fragi_flow_info *flows = fragi_run_flows(rig.run, &count);
	const struct fragi_fragment_info *infos = fragi_run_fragments(rig.run, &fragments);

	for (size_t i = 0; i < count; i++) {
		const struct fragi_flow_row *row = &ledger->flows[i];
		char from[200], to[200];

		fprintf(out, "  %s -> %s: %d of %d\n",
			fragi_flow_from(infos, &flows[i], from, sizeof(from)),
			fragi_flow_to(infos, &flows[i], to, sizeof(to)), (int)row->delivered,
			(int)row->sent);
	}
}

/* Returns what came of it, which the caller frees. */
static char *live(int64_t skip, bool *out_hit)
{
	struct frag_err err = FRAG_ERR_INIT;
	char *text, *ticks, *own, line[2048];
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int r;

	lives_out = open_memstream(&ticks, &size);
	lives_own[0] = open_memstream(&own, &size);
	for (int i = 1; i < 26; i++)
		lives_own[i] = lives_own[0];
	logged_begin();
	if (skip >= 0)
		fragi_alloc_fail_after(skip, 1);
	r = run(&err);
	*out_hit = fragi_alloc_fail_off() > 0;
	fclose(lives_out);
	fclose(lives_own[0]);
	if (r < 0)
		fprintf(out, "= %d\n", r);
	for (size_t i = 0; i < rig.diag.count; i++)
		fprintf(out, "  error %d, failure %d: %s\n", rig.diag.items[i].code,
			(int)rig.diag.items[i].failure,
			fragi_err_line(&rig.diag.items[i], line, sizeof(line)));
	if (err.text[0] != '\0')
		fprintf(out, "  %d, failure %d: %s\n", err.code, (int)err.failure, err.text);
	if (r == 0) {
		fprintf(out, "%s", ticks);
		fprintf(out, "ends:%s%s%s%s %d %s\n", rig.failed > 0 ? " failed" : "",
			rig.stopped > 0 ? " stopped" : "", rig.idle > 0 ? " idle" : "",
			rig.done > 0 ? " done" : "", (int)rig.failure, rig.sentence);
		print_counts(out);
		state_begin();
		trace_shows_names = skip < 0;
		fragi_run_traced(rig.run, true, trace_shown, out);
	}
	rig_end(&rig);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
	logged_end(out);
	fclose(out);
	free(ticks);
	free(own);
	return text;
}

Test(short_lives, do_what_is_recorded)
{
	bool is_hit = true;
	char *all, *before = strdup(""), *whole;
	size_t size;
	FILE *out = open_memstream(&all, &size);

	free(live(-1, &is_hit)); /* what is made once a process is made now */
	whole = live(-1, &is_hit);
	fprintf(out, "with all its memory\n%s", whole);
	is_hit = true;
	for (int64_t skip = 0; is_hit; skip++) {
		char *text = live(skip, &is_hit);

		if (is_hit && strcmp(text, before) != 0)
			fprintf(out, "\nwith less\n%s",
				strcmp(text, whole) == 0 ? "nothing is missing\n" : text);
		free(before);
		before = text;
	}
	fclose(out);
	expected_compare("lives/short", all);
	free(all);
	free(before);
	free(whole);
}
