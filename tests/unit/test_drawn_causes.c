// SPDX-License-Identifier: Apache-2.0
#include "../expected.h"
#include "draw.h"

#include <base/alloc.h>
#include <track/cause.h>

/*
 * Drawn tables of where the time of an application goes, and the root cause that is found in each:
 * its sentence, what helps, and the chain that leads to it. The comparison is with a recorded text.
 */
#define LOOKS 2400
#define LOOKS_SHOWN 240
#define ROWS 6
#define HOSTS 3
#define POOLS 3
#define S UINT64_C(1000000000)

static const char *const names[ROWS] = {"f.video", "f.crop", "g.net", "g.draw", "h.out", "h.log"};
static struct fragi_look look;
static struct fragi_look_operator ops[ROWS];
static struct fragi_look_flow flows[ROWS];
static struct fragi_look_host hosts[HOSTS];
static struct fragi_look_pool pools[POOLS];
static struct fragi_look_worker workers[2];

/* Part of the window; often nothing, or nearly all, or about a threshold. */
static uint64_t part(void)
{
	static const uint64_t permille[] = {0,   0,   0,   0,   9,   10,  50, 99,
					    100, 200, 250, 500, 740, 850, 990};

	return look.window_ns / 1000 * DRAW_OF(permille);
}

static void draw_operator(uint32_t i)
{
	static const uint64_t ticks[] = {0, 1, 8, 9, 10, 30, 100},
			      promised[] = {0, 0, 10000, 30000, 100000},
			      periods[] = {0, 0, 0, S / 10, S / 30, S};
	static const char *const waited[] = {NULL, "frames", "frames, masks"};
	struct fragi_look_operator *op = &ops[i];
	uint64_t left_ns = look.window_ns;

	*op = (struct fragi_look_operator){.name = names[i],
					   .host = draw(HOSTS),
					   .input_flow = FRAGI_LOOK_NONE,
					   .room_flow = FRAGI_LOOK_NONE,
					   .pool = DRAW_OF(waited),
					   .ticks = DRAW_OF(ticks),
					   .promised_mhz = DRAW_OF(promised),
					   .period_ns = DRAW_OF(periods),
					   .has_ended = draw_percent(4)};
	for (int k = 0; k < 2; k++) {
		uint64_t ns = part();
		int use = (int)draw(draw_percent(80) ? FRAGI_USE_SUSPENDED : FRAGI_USES);

		ns = ns < left_ns ? ns : left_ns;
		op->use_ns[use] += ns;
		left_ns -= ns;
	}
	op->use_ns[draw_percent(50) ? FRAGI_USE_INPUT : FRAGI_USE_BUSY] += left_ns;
	op->compute.p99 = draw(4) * 10000000;
	op->budget_ns = draw(3) * 10000000;
}

static void draw_flow(uint32_t i)
{
	static const uint64_t sent[] = {0, 1, 10, 100, 1000}, dropped[] = {0, 1, 2, 3, 30};
	static const char *const edges[] = {"inproc", "shm", "ucx"}, *const policies[] = {"block",
											  "pop",
											  "latest"};
	struct fragi_look_flow *flow = &flows[i];

	*flow = (struct fragi_look_flow){.from = "f.a.out",
					 .to = "f.b.in",
					 .edge = DRAW_OF(edges),
					 .policy = DRAW_OF(policies),
					 .capacity = 1 + draw(4),
					 .sent = DRAW_OF(sent),
					 .full_ns = part(),
					 .depth = draw(4)};
	flow->sender = draw_percent(3)    ? FRAGI_LOOK_NONE
		       : draw_percent(70) ? i % look.operator_count
					  : draw(look.operator_count);
	flow->receiver = draw_percent(3)    ? FRAGI_LOOK_NONE
			 : draw_percent(70) ? (i + 1) % look.operator_count
					    : draw(look.operator_count);
	flow->delivered = flow->sent;
	if (draw_percent(15))
		flow->dropped[draw(FRAGI_DROP_REASONS)] = DRAW_OF(dropped);
	if (draw_percent(15))
		flow->dropped[draw(FRAGI_DROP_REASONS)] += DRAW_OF(dropped);
	flow->lost = draw_percent(5) ? draw(3) : 0;
	if (flow->sender < look.operator_count)
		ops[flow->sender].room_flow = i;
	if (flow->receiver < look.operator_count)
		ops[flow->receiver].input_flow = i;
}

static void draw_host(uint32_t i)
{
	static const char *const called[HOSTS] = {"f", "g+h", "h"}, *const at[HOSTS] = {"w1", "w2",
											NULL};

	hosts[i] = (struct fragi_look_host){.name = called[i],
					    .worker = at[i],
					    .threads = draw(4),
					    .cores = draw(5),
					    .cpu_ns = part() * draw(3),
					    .starved_ns = draw_percent(30) ? part() : 0,
					    .io_ns = draw_percent(20) ? part() : 0,
					    .restarts = draw(2)};
	if (draw_percent(10))
		hosts[i].suspended_because = "it is started again: it crashed";
}

static void draw_look(void)
{
	static const uint64_t windows[] = {S, S, S / 2, 10 * S};

	look = (struct fragi_look){.application = "app",
				   .state = "running",
				   .window_ns = DRAW_OF(windows),
				   .operators = ops,
				   .flows = flows,
				   .hosts = hosts,
				   .workers = workers,
				   .pools = pools,
				   .operator_count = 1 + draw(ROWS),
				   .flow_count = draw(ROWS),
				   .host_count = draw_percent(90) ? HOSTS : draw(HOSTS),
				   .worker_count = 2,
				   .pool_count = draw(POOLS + 1)};
	if (draw_percent(2))
		look.window_ns = 0;
	if (draw_percent(2))
		look.operator_count = 0;
	for (uint32_t i = 0; i < look.operator_count; i++)
		draw_operator(i);
	look.flow_count = look.operator_count > 0 ? look.flow_count : 0;
	for (uint32_t i = 0; i < look.flow_count; i++)
		draw_flow(i);
	for (uint32_t i = 0; i < HOSTS; i++)
		draw_host(i);
	for (uint32_t i = 0; i < POOLS; i++)
		pools[i] = (struct fragi_look_pool){.name = i == 1 ? "g.masks" : "f.frames",
						    .host = draw(HOSTS),
						    .blocks = 2 + draw(8),
						    .block_bytes = 4096,
						    .used = draw(3),
						    .empty_ns = part()};
	for (uint32_t i = 0; i < 2; i++)
		workers[i] = (struct fragi_look_worker){.name = i == 0 ? "w1" : "w2",
							.cores = 2 + draw(3),
							.cpu_ns = part() * draw(5)};
}

/* What was drawn, in short. */
static void show_look(FILE *out)
{
	fprintf(out, "  of %d ms:", (int)(look.window_ns / 1000000));
	for (uint32_t i = 0; i < look.operator_count; i++) {
		fprintf(out, " %s", ops[i].name);
		for (int k = 0; k < FRAGI_USES; k++)
			fprintf(out, "%c%d", k == 0 ? ' ' : '/', (int)(ops[i].use_ns[k] / 1000000));
		fprintf(out, " ticks %d of %d;", (int)ops[i].ticks,
			(int)(ops[i].promised_mhz / 1000));
	}
	fputc('\n', out);
}

static void show_cause(FILE *out, const struct fragi_cause *cause)
{
	fprintf(out, "  %s: op %d, flow %d, host %d\n  %s\n", fragi_cause_name(cause->kind),
		(int)cause->op, (int)cause->flow, (int)cause->host, cause->sentence);
	if (cause->help != NULL)
		fprintf(out, "  help: %s\n", cause->help);
	for (uint32_t i = 0; i < cause->chain_count; i++)
		fprintf(out, "  - op %d, flow %d: %s\n", (int)cause->chain[i].op,
			(int)cause->chain[i].flow, cause->chain[i].text);
}

/* Whichever allocation fails, that is said, and with all memory the same comes. */
static void with_less(void)
{
	for (int64_t skip = 0;; skip++) {
		struct fragi_arena arena = {0};
		struct fragi_cause cause;
		int r;

		fragi_alloc_fail_after(skip, 1);
		r = fragi_cause_find(&look, &arena, &cause);
		if (fragi_alloc_fail_off() == 0)
			skip = INT64_MAX - 1;
		else
			cr_expect_eq(r, -ENOMEM);
		fragi_arena_fini(&arena);
		if (skip == INT64_MAX - 1)
			return;
	}
}

Test(drawn_causes, are_as_they_were)
{
	char *all, *text;
	size_t size;
	FILE *recorded = open_memstream(&all, &size), *out;

	for (uint32_t seed = 1; seed <= LOOKS; seed++) {
		struct fragi_arena arena = {0};
		struct fragi_cause cause;

		draw_from(seed);
		draw_look();
		out = open_memstream(&text, &size);
		fprintf(out, "look %u\n", seed);
		show_look(out);
		cr_assert_eq(fragi_cause_find(&look, &arena, &cause), 0);
		show_cause(out, &cause);
		fclose(out);
		fragi_arena_fini(&arena);
		draw_life_ends(recorded, seed, text, seed <= LOOKS_SHOWN);
		if (seed % 100 == 0)
			with_less();
	}
	fclose(recorded);
	expected_compare("graphs/causes", all);
	free(all);
}
