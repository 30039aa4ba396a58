// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>

#include "../expected.h"
#include "draw.h"
#include "rig_ops.h"

#include <graph/predict.h>
#include <run/state.h>

/*
 * Drawn graphs with rates, budgets, periods, policies, pools and threads, and what is predicted of
 * each: all numbers, lines and warnings. The comparison is with a recorded text.
 */
#define GRAPHS 300
#define GRAPHS_SHOWN 60
#define OPS 7

static const struct frag_port join_ports[] = {
	{.name = "a", .dir = FRAG_IN, .type = "i64"},
	{.name = "b", .dir = FRAG_IN, .type = "i64"},
	{.name = "free", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_NO_CONDITION},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"}};
static int join_compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}
TEST_OP(join, FRAG_PORTS(join_ports));
TEST_PLUGIN(predict, &source_type, &middle_type, &sink_type, &gather_type, &join_type);

static char graph[16384];

static void add(const char *format, ...) FRAG_PRINTF(1, 2);
static void add(const char *format, ...)
{
	size_t at = strlen(graph);
	va_list args;

	va_start(args, format);
	vsnprintf(graph + at, sizeof(graph) - at, format, args);
	va_end(args);
}

static const char *rate(void)
{
	static const char *const rates[] = {"10hz", "20hz", "50hz", "100hz", "1000hz", "29.97hz"};

	return DRAW_OF(rates);
}

static void draw_op(uint32_t i, const char *type)
{
	static const char *const budgets[] = {"1us", "900us", "4ms", "15ms", "20ms", "100ms"};

	add("  o%u: {type: %s", i, type);
	if (draw_percent(strcmp(type, "source") == 0 ? 70 : 8))
		add(", rate: %s", rate());
	if (draw_percent(55))
		add(", budget: %s", DRAW_OF(budgets));
	if (draw_percent(20) && strcmp(type, "sink") != 0 && strcmp(type, "gather") != 0)
		add(", ports: {out: {rate: %s}}", rate());
	else if (draw_percent(12) && (strcmp(type, "sink") == 0 || strcmp(type, "middle") == 0))
		add(", ports: {in: {rate: %s}}", rate());
	if (draw_percent(20))
		add(", conditions: [{type: periodic, recess_period: %s}]", DRAW_OF(budgets));
	if (draw_percent(15))
		add(", resources: [$pool]");
	add("}\n");
}

static void draw_to(const char *from, uint32_t i, const char *input)
{
	static const char *const policies[] = {"block",  "block",  "pop",
					       "reject", "latest", "fault"};
	const char *policy = DRAW_OF(policies);

	add("  - {from: %s.out, to: o%u.%s, policy: %s", from, i, input, policy);
	if (strcmp(policy, "latest") != 0)
		add(", capacity: %u", 1 + draw(8));
	add("}\n");
}

static void draw_graph(void)
{
	static const char *const types[] = {"source", "source", "middle", "middle",
					    "sink",   "sink",   "gather", "join"};
	const char *type[OPS];
	char from[8];
	uint32_t count = 2 + draw(OPS - 1);

	graph[0] = '\0';
	add("frag: 1\napplication: app\n");
	if (draw_percent(40))
		add("resources: {pool: {type: block_memory_pool, block_size: 64, num_blocks: %u}}\n",
		    1 + draw(20));
	else
		add("resources: {pool: {type: unbounded_allocator}}\n");
	if (draw_percent(30))
		add("scheduler: {type: event_based, worker_thread_number: %u}\n", 1 + draw(3));
	else if (draw_percent(30))
		add("scheduler: {type: multi_thread}\n");
	add("operators:\n");
	for (uint32_t i = 0; i < count; i++) {
		type[i] = i == 0 ? "source" : DRAW_OF(types);
		draw_op(i, type[i]);
	}
	add("flows:\n");
	for (uint32_t i = 1; i < count; i++) {
		const bool is_join = strcmp(type[i], "join") == 0;
		const bool gathers = strcmp(type[i], "gather") == 0;
		uint32_t inputs = is_join ? 3 : gathers ? 2 + draw(2) : 1 + draw_percent(20);

		for (uint32_t k = 0; k < inputs && strcmp(type[i], "source") != 0; k++) {
			uint32_t sender = draw(draw_percent(90) ? i : count);

			while (strcmp(type[sender], "sink") == 0 ||
			       strcmp(type[sender], "gather") == 0)
				sender = sender > 0 ? sender - 1 : 0;
			snprintf(from, sizeof(from), "o%u", sender);
			draw_to(from, i,
				is_join   ? (const char *[]){"a", "b", "free"}[k]
				: gathers ? "receivers"
					  : "in");
		}
	}
}

static void show(FILE *out, struct rig *rig)
{
	struct fragi_prediction prediction;
	struct fragi_diag warnings = {0};
	char line[2048];

	if (!fragi_predict_wanted(rig->spec)) {
		fprintf(out, "= nothing is wanted\n");
		return;
	}
	cr_assert_eq(fragi_predict(rig->spec, rig->run->infos, rig->run->flows,
				   rig->run->flow_count, &prediction),
		     0);
	for (size_t i = 0; i < rig->run->infos[0].op_count; i++)
		fprintf(out, "= %s: demand %.6g, rate %.6g, budget %d us\n",
			rig->run->infos[0].ops[i].name, prediction.ops[i].demand,
			prediction.ops[i].rate, (int)(prediction.ops[i].budget_ns / 1000));
	for (size_t i = 0; i < rig->run->flow_count; i++)
		fprintf(out, "= flow %zu: offered %.6g, taken %.6g, wait %.6g, depth %u\n", i,
			prediction.flows[i].offered, prediction.flows[i].taken,
			prediction.flows[i].wait_s, prediction.flows[i].depth);
	fragi_predict_print(&prediction, rig->spec, rig->run->infos, rig->run->flows,
			    rig->run->flow_count, 1 + draw(4), out, &warnings);
	for (size_t i = 0; i < warnings.count; i++)
		fprintf(out, "warning: %s\n",
			fragi_err_line(&warnings.items[i], line, sizeof(line)));
	fragi_diag_fini(&warnings);
	fragi_prediction_fini(&prediction);
}

Test(drawn_predictions, are_as_they_were)
{
	char *all, *text, line[2048];
	size_t size;
	FILE *recorded = open_memstream(&all, &size), *out;

	for (uint32_t seed = 1; seed <= GRAPHS; seed++) {
		struct rig rig = {0};

		draw_from(seed);
		draw_graph();
		out = open_memstream(&text, &size);
		fprintf(out, "graph %u\n%s", seed, graph);
		if (rig_prepare(&rig, &predict_plugin, graph) == 0)
			show(out, &rig);
		else
			fprintf(out, "= refused: %s\n",
				fragi_err_line(&rig.diag.items[0], line, sizeof(line)));
		rig_end(&rig);
		fclose(out);
		draw_life_ends(recorded, seed, text, seed <= GRAPHS_SHOWN);
	}
	fclose(recorded);
	expected_compare("graphs/predictions", all);
	free(all);
}
