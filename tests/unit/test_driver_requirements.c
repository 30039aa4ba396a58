// SPDX-License-Identifier: Apache-2.0
/* Which worker has what a fragment requires, and which one comes nearest. */

#include <driverd/core/placement/place.h>

#include "unit/graph_texts.h"

#define HEAD "frag: 1\napplication: app\nfragments:\n"
#define FRAGMENT(name, required)                                                                   \
	"  " name ": {operators: {o: {type: t}}, requirements: {" required "}}\n"
#define GIB (INT64_C(1) << 30)

struct fixture {
	struct fragi_spec *spec;
	struct fragi_arena arena;
	struct drv_place places[8];
	int missing;
};

static void place(struct fixture *f, const char *text, const struct drv_place_worker *workers,
		  size_t count)
{
	memset(f, 0, sizeof(*f));
	f->spec = good_graph(&(const struct graph_text){text});
	f->missing = drv_place(f->spec, workers, count, &f->arena, f->places);
}

static void fini(struct fixture *f)
{
	fragi_spec_destroy(f->spec);
	fragi_arena_fini(&f->arena);
}

/* Why the worker does not run fragment f; empty: it is not among the others. */
static const char *why_not(struct fixture *f, size_t fragment, const char *worker)
{
	const struct drv_place *place = &f->places[fragment];

	for (uint32_t i = 0; i < place->other_count; i++)
		if (strcmp(place->others[i].worker, worker) == 0)
			return drv_place_why(&f->arena, &place->others[i]);
	return "";
}

Test(driver_requirements, a_worker_must_have_free_what_is_required)
{
	const struct drv_place_worker workers[] = {
		{.name = "a", .has = {8000, 0, 4 * GIB}, .used = {6500}},
		{.name = "b", .has = {2000, 1000, 4 * GIB}, .used = {0, 0, 3 * GIB}},
		{.name = "c", .has = {2000, 0, 2 * GIB}},
	};
	struct fixture f;

	place(&f, HEAD FRAGMENT("f1", "cpu: 2, memory: 2Gi") FRAGMENT("f2", "gpu: 0.5"), workers,
	      3);
	cr_expect_eq(f.missing, 0);
	cr_expect_eq(f.places[0].worker, 2);
	cr_expect_str_eq(
		f.places[0].reason,
		"worker c is the only one that takes whatever fits and has what it requires");
	cr_expect_eq(f.places[0].other_count, 2);
	cr_expect_str_eq(why_not(&f, 0, "a"), "1.5 of 8 cpu are free, and 2 are required");
	cr_expect_str_eq(why_not(&f, 0, "b"),
			 "1 GiB of 4 GiB memory are free, and 2 GiB are required");
	cr_expect_eq(f.places[1].worker, 1);
	fini(&f);
}

/* Instances of a profile are counted, whatever else is free, and are of one fragment at a time. */
Test(driver_requirements, instances_of_mig_are_counted)
{
	struct drv_mig small = {0}, large = {0};
	struct drv_place_worker workers[] = {{.name = "a", .has = {1000}, .mig = &small},
					     {.name = "b", .has = {9000}, .mig = &large},
					     {.name = "c", .has = {99000, 8000}}};
	struct fixture f;

	drv_mig_offer(&small, "1g.10gb=2");
	drv_mig_offer(&large, "3g.40gb=1,1g.10gb=1");
	drv_mig_take(&large, "1g.10gb", 1); /* of another application */
	place(&f,
	      HEAD FRAGMENT("f1", "mig: 1g.10gb") FRAGMENT("f2", "mig: 3g.40gb")
		      FRAGMENT("f3", "mig: 1g.10gb") FRAGMENT("f4", "cpu: 1"),
	      workers, 3);
	cr_expect_eq(f.missing, 0);
	cr_expect_eq(f.places[0].worker, 0);
	cr_expect_eq(f.places[1].worker, 1);
	cr_expect_eq(f.places[2].worker, 0);
	cr_expect_eq(f.places[3].worker, 2);
	cr_expect_str_eq(why_not(&f, 0, "b"),
			 "of its 1 MIG instances 1g.10gb none is free, or too few");
	cr_expect_str_eq(why_not(&f, 0, "c"), "it has no MIG instance 1g.10gb");
	cr_expect_str_eq(why_not(&f, 1, "a"), "it has no MIG instance 3g.40gb, but 2 of 1g.10gb");
	fini(&f);
	cr_expect_eq(small.profiles[0].used, 0, "placement takes nothing itself");
	drv_mig_take(&large, "1g.10gb", -1);
	place(&f,
	      HEAD FRAGMENT("f1", "mig: 1g.10gb") FRAGMENT("f2", "mig: 1g.10gb")
		      FRAGMENT("f3", "mig: 1g.10gb") FRAGMENT("f4", "mig: 1g.10gb"),
	      workers, 3);
	cr_expect_eq(f.missing, 1);
	cr_expect_eq(f.places[0].worker, 1, "it has most free cores");
	cr_expect_eq(f.places[2].worker, 0);
	cr_expect_eq(f.places[3].worker, -1);
	cr_expect(f.places[3].is_unfit);
	cr_expect_str_eq(
		f.places[3].reason,
		"no worker fits f4; worker a is nearest: of its 2 MIG instances 1g.10gb none is free, or too few");
	fini(&f);
	place(&f, HEAD FRAGMENT("f1", "mig: 1g.10gb, near: f2") FRAGMENT("f2", "mig: 1g.10gb"),
	      workers, 3);
	cr_expect_eq(f.missing, 0);
	cr_expect_eq(f.places[0].worker, 0, "only there are two");
	cr_expect_eq(f.places[1].worker, 0);
	fini(&f);
	place(&f, HEAD FRAGMENT("f1", "mig: 7g.80gb"), &workers[2], 1);
	cr_expect_str_eq(f.places[0].reason,
			 "no worker fits f1; worker c is nearest: it has no MIG instance 7g.80gb");
	fini(&f);
	workers[2].is_all = true;
	place(&f, HEAD FRAGMENT("f1", "mig: 7g.80gb"), &workers[2], 1);
	cr_expect_eq(f.missing, 0, "fragctl run looks at no requirements");
	fini(&f);
}

/* What a worker says of its instances is not believed without a look. */
Test(driver_requirements, offers_of_instances_are_read_with_care)
{
	struct fragi_arena arena = {0};
	struct drv_mig mig = {0};
	char many[1024] = "";

	drv_mig_offer(&mig, "1g.10gb=2,,=,x=1,2g.20gb,2g.20gb=-1,3g.40gb=99999999,1g.10gb+me=1");
	cr_expect_str_eq(drv_mig_text(&mig, &arena),
			 "2 of 1g.10gb, 4096 of 3g.40gb, 1 of 1g.10gb+me");
	drv_mig_take(&mig, "1g.10gb", 1);
	drv_mig_take(&mig, "4g.40gb", 1); /* it runs there already */
	drv_mig_offer(&mig, "4g.40gb=1");
	cr_expect_str_eq(drv_mig_text(&mig, &arena), "1 of 4g.40gb");
	cr_expect_not(drv_mig_is_free(&mig, "1g.10gb"));
	cr_expect_not(drv_mig_is_free(&mig, "4g.40gb"));
	drv_mig_take(&mig, "4g.40gb", -1);
	drv_mig_take(&mig, "4g.40gb", -1);
	cr_expect(drv_mig_is_free(&mig, "4g.40gb"));
	drv_mig_offer(&mig, "1g.10gb=2");
	cr_expect(drv_mig_is_free(&mig, "1g.10gb"));
	drv_mig_take(&mig, "1g.10gb", 1);
	cr_expect_not(drv_mig_is_free(&mig, "1g.10gb"), "what was taken before counts");
	for (int i = 1; i < 40; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "%dg.9gb=1,", i);
	drv_mig_offer(&mig, many);
	cr_expect_eq(mig.count, DRV_MIG_MAX);
	drv_mig_offer(&mig, "");
	cr_expect_null(drv_mig_text(&mig, &arena));
	fragi_arena_fini(&arena);
}

/* Shares of threads are of a worker that has found MPS. */
Test(driver_requirements, threads_of_gpus_are_divided_by_mps)
{
	const struct drv_place_worker workers[] = {
		{.name = "a", .has = {[FRAGI_AMOUNT_GPU_THREADS] = 100000}},
		{.name = "b", .has = {[FRAGI_AMOUNT_CPU] = 8000}}};
	const char *no_mps =
		"it offers no gpuThreads: workerd found no GPU or no MPS of NVIDIA when it started, or is of an older frag; on a node with a GPU start `nvidia-cuda-mps-control -d` before workerd";
	char reason[400];
	struct fixture f;

	place(&f,
	      HEAD FRAGMENT("f1", "gpuThreads: 60%") FRAGMENT("f2", "gpuThreads: 40%")
		      FRAGMENT("f3", "gpuThreads: 1%"),
	      workers, 2);
	cr_expect_eq(f.missing, 1);
	cr_expect_eq(f.places[0].worker, 0);
	cr_expect_eq(f.places[1].worker, 0);
	cr_expect_str_eq(why_not(&f, 1, "b"), no_mps);
	cr_expect_str_eq(
		f.places[2].reason,
		"no worker fits f3; worker a is nearest: 0% of 100% gpuThreads are free, and 1% are required");
	fini(&f);
	place(&f, HEAD FRAGMENT("f1", "gpuThreads: 60%"), &workers[1], 1);
	snprintf(reason, sizeof(reason), "no worker fits f1; worker b is nearest: %s", no_mps);
	cr_expect_str_eq(f.places[0].reason, reason);
	fini(&f);
}

Test(driver_requirements, what_was_placed_is_subtracted)
{
	const struct drv_place_worker workers[] = {{.name = "a", .has = {4000}},
						   {.name = "b", .has = {3000}}};
	struct fixture f;

	place(&f, HEAD FRAGMENT("f1", "cpu: 2") FRAGMENT("f2", "cpu: 2") FRAGMENT("f3", "cpu: 2"),
	      workers, 2);
	cr_expect_eq(f.missing, 0);
	cr_expect_eq(f.places[0].worker, 0);
	cr_expect_eq(f.places[1].worker, 1);
	cr_expect_eq(f.places[2].worker, 0);
	fini(&f);
	place(&f, HEAD FRAGMENT("f1", "cpu: 3") FRAGMENT("f2", "cpu: 3") FRAGMENT("f3", "cpu: 2"),
	      workers, 2);
	cr_expect_eq(f.missing, 1);
	cr_expect_eq(f.places[2].worker, -1);
	cr_expect(f.places[2].is_unfit);
	cr_expect_str_eq(
		f.places[2].reason,
		"no worker fits f3; worker a is nearest: 1 of 4 cpu are free, and 2 are required");
	fini(&f);
}

Test(driver_requirements, the_largest_go_first_where_the_order_of_the_graph_fails)
{
	const struct drv_place_worker workers[] = {{.name = "a", .has = {4000}},
						   {.name = "b", .has = {1000}}};
	struct fixture f;

	place(&f, HEAD FRAGMENT("f1", "cpu: 1") FRAGMENT("f2", "cpu: 4"), workers, 2);
	cr_expect_eq(f.missing, 0, "f1 alone would go to a, which has most free cores");
	cr_expect_eq(f.places[0].worker, 1);
	cr_expect_eq(f.places[1].worker, 0);
	fini(&f);
}

Test(driver_requirements, more_than_any_worker_has)
{
	const struct drv_place_worker workers[] = {{.name = "a", .has = {4000, 1000}},
						   {.name = "b", .has = {8000}}};
	struct fixture f;

	place(&f, HEAD FRAGMENT("f1", "cpu: 64") FRAGMENT("f2", "gpu: 2, cpu: 1"), workers, 2);
	cr_expect_eq(f.missing, 2);
	cr_expect_str_eq(f.places[0].reason,
			 "f1 wants 64 cpu, and no worker has so much; worker b has 8");
	cr_expect_str_eq(f.places[1].reason,
			 "f2 wants 2 gpu, and no worker has so much; worker a has 1");
	fini(&f);
}

Test(driver_requirements, a_worker_has_its_name_as_a_label)
{
	static const char *const other[] = {"worker=c"};
	const struct drv_place_worker workers[] = {
		{.name = "a", .has = {9000}},
		{.name = "b", .has = {1000}},
		{.name = "x", .has = {9000}, .labels = other, .label_count = 1},
	};
	struct fixture f;

	place(&f,
	      HEAD FRAGMENT("f1", "labels: {worker: b}") FRAGMENT("f2", "labels: {worker: c}")
		      FRAGMENT("f3", "labels: {wirker: a}"),
	      workers, 3);
	cr_expect_eq(f.places[0].worker, 1);
	cr_expect_eq(f.places[1].worker, 2, "a label of that name holds too");
	cr_expect_eq(f.places[2].worker, -1);
	cr_expect_str_eq(why_not(&f, 0, "a"), "it has no label worker=b");
	fini(&f);
}

Test(driver_requirements, labels_of_workers)
{
	static const char *const or1[] = {"slot=3", "zone=or1"}, *const or2[] = {"zone=or2",
										 "slot=3"};
	const struct drv_place_worker workers[] = {
		{.name = "a", .has = {4000}, .labels = or2, .label_count = 2},
		{.name = "b", .has = {1000}, .labels = or1, .label_count = 2},
		{.name = "c", .has = {9000}},
	};
	struct fixture f;

	place(&f,
	      HEAD FRAGMENT("f1", "labels: {zone: or1, slot: 3}")
		      FRAGMENT("f2", "labels: {slot: 4}"),
	      workers, 3);
	cr_expect_eq(f.missing, 1);
	cr_expect_eq(f.places[1].worker, -1);
	cr_expect_str_eq(why_not(&f, 0, "a"), "it has no label zone=or1");
	cr_expect_str_eq(why_not(&f, 1, "c"), "it has no label slot=4");
	cr_expect_eq(f.places[0].worker, 1);
	fini(&f);
}

Test(driver_requirements, near_ones_are_placed_as_one)
{
	const struct drv_place_worker workers[] = {
		{.name = "a", .has = {3000}},
		{.name = "b", .has = {2000, 1000}},
		{.name = "c", .has = {2500, 1000}, .used = {1000}},
	};
	struct fixture f;

	place(&f, HEAD FRAGMENT("f1", "cpu: 1") FRAGMENT("f2", "gpu: 1, cpu: 1, near: f1"), workers,
	      3);
	cr_expect_eq(f.missing, 0);
	cr_expect_eq(f.places[0].worker, 1);
	cr_expect_eq(f.places[1].worker, 1);
	cr_expect_str_eq(why_not(&f, 0, "c"), "1.5 of 2.5 cpu are free, and 2 are required");
	fini(&f);
	place(&f, HEAD FRAGMENT("f1", "cpu: 2") FRAGMENT("f2", "cpu: 2, near: f1"), workers, 3);
	cr_expect_eq(f.missing, 2, "each of them would fit alone");
	cr_expect_str_eq(
		f.places[1].reason,
		"f1 together with f2 wants 4 cpu, and no worker has so much; worker a has 3");
	fini(&f);
}

Test(driver_requirements, apart_holds_for_both)
{
	const struct drv_place_worker workers[] = {{.name = "a", .has = {9000}},
						   {.name = "b", .has = {2000}}};
	struct fixture f;

	place(&f,
	      HEAD FRAGMENT("f1", "") FRAGMENT("f2", "apart: f1") FRAGMENT("f3", "apart: f1")
		      FRAGMENT("f4", ""),
	      workers, 2);
	cr_expect_eq(f.missing, 0);
	cr_expect_eq(f.places[0].worker, 0);
	cr_expect_eq(f.places[1].worker, 1);
	cr_expect_eq(f.places[2].worker, 1);
	cr_expect_str_eq(why_not(&f, 1, "a"), "f1 is there, from which it is to be apart");
	fini(&f);
	place(&f, HEAD FRAGMENT("f1", "apart: [f2]") FRAGMENT("f2", ""), workers, 2);
	cr_expect_neq(f.places[0].worker, f.places[1].worker, "f2 does not say so itself");
	fini(&f);
	place(&f, HEAD FRAGMENT("f1", "apart: [f2]") FRAGMENT("f2", ""), workers, 1);
	cr_expect_eq(f.missing, 1);
	cr_expect_str_eq(
		f.places[1].reason,
		"no worker fits f2; worker a is nearest: f1 is there, from which it is to be apart");
	fini(&f);
}

Test(driver_requirements, a_drained_worker_is_given_nothing)
{
	static const char *const names[] = {"f1"};
	struct drv_place_worker workers[] = {
		{.name = "a", .has = {9000}, .is_drained = true},
		{.name = "b", .has = {1000}},
		{.name = "c",
		 .has = {1000},
		 .is_drained = true,
		 .fragments = names,
		 .fragment_count = 1},
	};
	struct fixture f;

	place(&f, HEAD FRAGMENT("f2", ""), workers, 3);
	cr_expect_eq(f.places[0].worker, 1);
	cr_expect_str_eq(why_not(&f, 0, "a"), "it is drained");
	cr_expect_str_eq(why_not(&f, 0, "c"), "it takes only the fragments that it names");
	fini(&f);
	place(&f, HEAD FRAGMENT("f1", ""), workers, 3);
	cr_expect_eq(f.places[0].worker, 1, "what it names is for others, as if it were gone");
	cr_expect_str_eq(why_not(&f, 0, "c"), "it is drained");
	fini(&f);
	workers[2].is_drained = false;
	place(&f, HEAD FRAGMENT("f1", ""), workers, 3);
	cr_expect_eq(f.places[0].worker, 2, "from then on it is its own again");
	fini(&f);
	workers[2].is_drained = workers[1].is_drained = true;
	place(&f, HEAD FRAGMENT("f1", "") FRAGMENT("f2", ""), workers, 3);
	cr_expect_eq(f.missing, 2);
	cr_expect_str_eq(
		f.places[0].reason,
		"no worker fits f1; worker a is nearest: it is drained, and takes fragments again by `fragctl drain a --undo`");
	fini(&f);
}

Test(driver_requirements, all_in_one_process_looks_at_no_requirements)
{
	const struct drv_place_worker all = {.name = "here", .is_all = true};
	struct fixture f;

	place(&f, HEAD FRAGMENT("f1", "cpu: 64, labels: {a: b}") FRAGMENT("f2", "apart: f1"), &all,
	      1);
	cr_expect_eq(f.missing, 0);
	fini(&f);
}

Test(driver_requirements, reasons_are_kept_of_so_many_workers)
{
	static struct drv_place_worker workers[DRV_PLACE_OTHERS_MAX + 10];
	static char names[DRV_PLACE_OTHERS_MAX + 10][8];
	struct fixture f;

	for (int i = 0; i < DRV_PLACE_OTHERS_MAX + 10; i++) {
		snprintf(names[i], sizeof(names[i]), "w%02d", i);
		workers[i] = (struct drv_place_worker){.name = names[i], .has = {1000 + 10 * i}};
	}
	place(&f, HEAD FRAGMENT("f1", "cpu: 1"), workers, DRV_PLACE_OTHERS_MAX + 10);
	cr_expect_eq(f.places[0].worker, DRV_PLACE_OTHERS_MAX + 9);
	cr_expect_eq(f.places[0].other_count, DRV_PLACE_OTHERS_MAX);
	cr_expect_eq(f.places[0].others_beyond, 9);
	cr_expect_str_eq(why_not(&f, 0, "w00"), "it fits, but it has fewer free cores");
	fini(&f);
}

/* What is kept of an application is bounded, whatever it has and there is. */
Test(driver_requirements, many_fragments_keep_fewer_reasons_each)
{
	enum { WORKERS = DRV_PLACE_OTHERS_MAX * 2, MANY = DRV_PLACE_ROWS_MAX / 4 };
	static struct drv_place_worker workers[WORKERS];
	static struct drv_place places[MANY];
	static char names[WORKERS][8];
	struct fragi_arena arena = {0};
	struct fragi_spec *spec;
	char *text = NULL;
	size_t size, kept = 0;
	FILE *out = open_memstream(&text, &size);

	for (int i = 0; i < WORKERS; i++) {
		snprintf(names[i], sizeof(names[i]), "w%02d", i);
		workers[i] = (struct drv_place_worker){.name = names[i], .has = {64000}};
	}
	fprintf(out, HEAD);
	for (int f = 0; f < MANY; f++)
		fprintf(out, "  f%d: {operators: {o: {type: t}}}\n", f);
	fclose(out);
	spec = good_graph(&(const struct graph_text){text});
	cr_expect_eq(drv_place(spec, workers, WORKERS, &arena, places), 0);
	for (int f = 0; f < MANY; f++) {
		kept += places[f].other_count;
		cr_expect_eq(places[f].other_count, 4, "each as many");
		cr_expect_eq(places[f].other_count + places[f].others_beyond, WORKERS - 1);
		cr_expect_not_null(places[f].reason);
	}
	cr_expect_leq(kept, DRV_PLACE_ROWS_MAX);
	fragi_spec_destroy(spec);
	fragi_arena_fini(&arena);
	free(text);
}

/* Never more than a worker has, whatever the order, over many graphs. */
Test(driver_requirements, no_worker_is_ever_over_committed)
{
	uint64_t random = 1;
	int placed = 0;

	for (int round = 0; round < 300; round++) {
		struct drv_place_worker workers[3];
		int64_t sums[3][FRAGI_AMOUNTS] = {0};
		char text[2048];
		size_t used = (size_t)snprintf(text, sizeof(text), "%s", HEAD);
		struct fixture f;

		for (int w = 0; w < 3; w++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			workers[w] = (struct drv_place_worker){
				.name = (const char *[]){"a", "b", "c"}[w],
				.has = {(int64_t)(random >> 60) * 1000,
					(int64_t)(random >> 58 & 3) * 1000},
				.used = {w * 500}};
		}
		for (int i = 0; i < 6; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			used += (size_t)snprintf(
				text + used, sizeof(text) - used,
				"  f%d: {operators: {o: {type: t}}, requirements: {cpu: %d, gpu: 0.%d%s}}\n",
				i, (int)(random >> 62), (int)(random >> 58 & 3),
				i > 0 && (random >> 40 & 7) == 0 ? ", near: f0" : "");
		}
		place(&f, text, workers, 3);
		cr_assert_geq(f.missing, 0);
		for (int i = 0; i < 6; i++) {
			if (f.places[i].worker < 0)
				continue;
			placed++;
			for (int a = 0; a < FRAGI_AMOUNTS; a++)
				sums[f.places[i].worker][a] +=
					f.spec->fragments[i].requirements.wanted[a];
		}
		for (int w = 0; w < 3; w++)
			for (int a = 0; a < FRAGI_AMOUNTS; a++)
				cr_expect(sums[w][a] == 0 || sums[w][a] + workers[w].used[a] <=
								     workers[w].has[a],
					  "round %d, worker %d", round, w);
		fini(&f);
	}
	cr_expect_gt(placed, 600);
}
