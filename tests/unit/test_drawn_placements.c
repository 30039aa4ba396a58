// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>

#include "../expected.h"
#include "draw.h"

#include <driverd/core/placement/place.h>

/*
 * Drawn graphs, workers, and what runs already, and what placement says of each fragment: its
 * worker, the reason, and why it is none of the others. The comparison is with a recorded text.
 */
#define WORLDS 800
#define WORLDS_SHOWN 8
#define WORKERS_MAX 48
#define FRAGMENTS_MAX 90

static char graph[32768];

static void add(const char *format, ...) FRAG_PRINTF(1, 2);
static void add(const char *format, ...)
{
	size_t at = strlen(graph);
	va_list args;

	va_start(args, format);
	vsnprintf(graph + at, sizeof(graph) - at, format, args);
	va_end(args);
}

static void draw_requirements(uint32_t count)
{
	static const char *const amounts[][3] = {
		{"cpu: 0.5", "cpu: 2", "cpu: 3.5"},
		{"memory: 64Mi", "memory: 1Gi", "memory: 3Gi"},
		{"gpu: 1", "gpuThreads: 25%", "gpuThreads: 60%"},
		{"sharedMemory: 1Gi", "gpuMemory: 1Gi", "gpuMemory: 2Gi"}};
	static const char *const labels[] = {"zone: a", "zone: b", "zone: a, rack: r1",
					     "worker: w1", "rack: r2, worker: w2"};
	const bool has_mig = draw_percent(20);

	add(", requirements: {");
	if (has_mig)
		add("mig: %s, ", draw_percent(60) ? "1g.10gb" : "3g.40gb");
	for (size_t i = 0; i < (has_mig ? 2 : sizeof(amounts) / sizeof(amounts[0])); i++)
		if (draw_percent(35))
			add("%s, ", DRAW_OF(amounts[i]));
	if (draw_percent(15))
		add("labels: {%s}, ", DRAW_OF(labels));
	if (draw_percent(count > 9 ? 4 : 15))
		add("near: [f%u], ", draw(count));
	if (draw_percent(count > 9 ? 2 : 15))
		add("apart: [f%u], ", draw(count));
	add("}");
}

static void draw_graph(uint32_t count)
{
	static const char *const leases[] = {"0s", "2s", "9s"};

	graph[0] = '\0';
	add("frag: 1\napplication: app\nfragments:\n");
	for (uint32_t i = 0; i < count; i++) {
		add("  f%u: {operators: {o: {type: t}}", i);
		if (draw_percent(15))
			add(", on_failure: {policy: migrate, lease: %s}", DRAW_OF(leases));
		if (draw_percent(70))
			draw_requirements(count);
		add("}\n");
	}
	for (uint32_t i = 1; i < count; i++)
		if (draw_percent(70))
			add("%s  - f%u.o -> f%u.o\n", strstr(graph, "flows:") ? "" : "flows:\n",
			    draw(i), i);
}

/* Of a worker: what its tables point to. */
static struct offer {
	char name[16];
	const char *fragments[3], *labels[2];
	struct drv_mig mig;
} offers[WORKERS_MAX];
static struct drv_place_worker workers[WORKERS_MAX];

static void draw_worker(uint32_t w, uint32_t count, FILE *out)
{
	static const char *const named[] = {"f0", "f1", "app/f1",   "app/f2", "f2",
					    "f3", "f3", "other/f0", "all"};
	static const char *const labels[] = {"zone=a", "zone=b", "rack=r1", "rack=r2"};
	static const char *const migs[] = {
		"", "", "1g.10gb=1", "1g.10gb=2,3g.40gb=1", "3g.40gb=2", "1g.10gb=0,3g.40gb=1"};
	static const int64_t most[] = {
		4000, 3000, INT64_C(4) << 30, INT64_C(3) << 30, INT64_C(4) << 30, 100000};
	struct offer *offer = &offers[w];
	struct drv_place_worker *worker = &workers[w];
	const char *mig = DRAW_OF(migs);

	*offer = (struct offer){0};
	/* not in the order of their names */
	snprintf(offer->name, sizeof(offer->name), "w%u", (w * 7 + 3) % (count * 2 + 1));
	*worker = (struct drv_place_worker){.name = offer->name,
					    .fragments = offer->fragments,
					    .labels = offer->labels,
					    .waits = draw_percent(6),
					    .is_drained = draw_percent(8),
					    .is_all = draw_percent(2),
					    .has_leases = draw_percent(85),
					    .is_full = draw_percent(5),
					    .is_left = draw_percent(5),
					    .is_out_of_reach = draw_percent(7),
					    .mig = draw_percent(80) ? &offer->mig : NULL};
	fprintf(out, "  %s:%s%s%s%s%s%s%s mig \"%s\"%s names", worker->name,
		worker->waits ? " waits" : "", worker->is_drained ? " drained" : "",
		worker->is_all ? " all" : "", worker->has_leases ? "" : " no leases",
		worker->is_full ? " full" : "", worker->is_left ? " left" : "",
		worker->is_out_of_reach ? " out of reach" : "", mig,
		worker->mig == NULL ? " hidden" : "");
	for (uint32_t i = draw_percent(50) ? draw(4) : 0; i > 0; i--) {
		offer->fragments[worker->fragment_count] = DRAW_OF(named);
		fprintf(out, " %s", offer->fragments[worker->fragment_count++]);
	}
	for (uint32_t i = draw(3); i > 0; i--) {
		offer->labels[worker->label_count] = DRAW_OF(labels);
		fprintf(out, ", %s", offer->labels[worker->label_count++]);
	}
	drv_mig_offer(&offer->mig, mig);
	if (draw_percent(20)) {
		drv_mig_take(&offer->mig, "1g.10gb", 1);
		fprintf(out, ", one 1g.10gb is taken");
	}
	for (int i = 0; i < FRAGI_AMOUNTS; i++) {
		worker->has[i] = most[i] / 4 * draw(5);
		worker->used[i] = draw_percent(30) ? worker->has[i] / 4 * draw(5) : 0;
		fprintf(out, ", %" PRId64 " of %" PRId64, worker->used[i], worker->has[i]);
	}
	worker->load = worker->used[FRAGI_AMOUNT_CPU] + FRAGI_AMOUNT_ONE * draw(2);
	fprintf(out, ", load %" PRId64 "\n", worker->load);
}

static void show(FILE *out, const struct fragi_spec *spec, const struct drv_place *places,
		 int missing)
{
	struct fragi_arena arena = {0};

	fprintf(out, "= %d missing\n", missing);
	for (size_t f = 0; f < spec->fragment_count; f++) {
		const struct drv_place *place = &places[f];

		fprintf(out, "= %s on %d%s: %s, load %" PRId64 "\n", spec->fragments[f].name,
			place->worker, place->is_unfit ? " unfit" : "",
			place->reason != NULL ? place->reason : "it stays",
			drv_place_load(&spec->fragments[f]));
		for (uint32_t i = 0; i < place->other_count; i++)
			fprintf(out, "=   %s: %s\n", place->others[i].worker,
				drv_place_why(&arena, &place->others[i]));
		if (place->others_beyond > 0)
			fprintf(out, "=   and %u others\n", place->others_beyond);
	}
	fragi_arena_fini(&arena);
}

/* What runs already, -1: it is to be placed; NULL: nothing runs. */
static const int *draw_stays(FILE *out, uint32_t count, uint32_t worker_count)
{
	static int stays[FRAGMENTS_MAX];

	if (!draw_percent(25) || worker_count == 0)
		return NULL;
	fprintf(out, "  runs on:");
	for (uint32_t f = 0; f < count; f++) {
		stays[f] = draw_percent(60) ? (int)draw(worker_count) : -1;
		fprintf(out, " %d", stays[f]);
	}
	fprintf(out, "\n");
	return stays;
}

static void place_drawn(FILE *out, const struct fragi_spec *spec, bool is_large)
{
	const uint32_t worker_count = is_large ? 30 + draw(WORKERS_MAX - 29) : draw(20) % 7;
	struct drv_place places[FRAGMENTS_MAX];
	struct fragi_arena arena = {0};
	const int *stays;
	int missing;

	for (uint32_t w = 0; w < worker_count; w++)
		draw_worker(w, worker_count, out);
	stays = draw_stays(out, (uint32_t)spec->fragment_count, worker_count);
	missing = stays != NULL ? drv_place_rest(spec, workers, worker_count, stays, &arena, places)
				: drv_place(spec, workers, worker_count, &arena, places);
	show(out, spec, places, missing);
	fragi_arena_fini(&arena);
}

/* A graph that has no mistake: near and apart may contradict each other. */
static struct fragi_spec *draw_spec(uint32_t count)
{
	struct fragi_spec *spec = NULL;

	while (spec == NULL) {
		struct fragi_diag diag = {0};

		draw_graph(count);
		(void)fragi_spec_parse(
			&(struct fragi_spec_source){.graph = {"app.yaml", graph, strlen(graph)}},
			&diag, &spec);
		fragi_diag_fini(&diag);
	}
	return spec;
}

Test(drawn_placements, are_as_they_were)
{
	char *all, *text;
	size_t size;
	FILE *recorded = open_memstream(&all, &size), *out;

	for (uint32_t world = 1; world <= WORLDS; world++) {
		struct fragi_spec *spec;

		draw_from(world);
		spec = draw_spec(world % 100 == 99 ? FRAGMENTS_MAX : 2 + draw(6));
		out = open_memstream(&text, &size);
		fprintf(out, "world %u\n%s", world, graph);
		place_drawn(out, spec, world % 50 == 49);
		fragi_spec_destroy(spec);
		fclose(out);
		draw_life_ends(recorded, world, text, world <= WORLDS_SHOWN);
	}
	fclose(recorded);
	expected_compare("driver/placements", all);
	free(all);
}
