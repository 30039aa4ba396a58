// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "inference/inference.h"
#include "open_gpu.h"
#include "vision/kernels.h"
#include "vision/vision.h"

#include "recorded.h"

/*
 * The operators with a body for GPUs, over the driver of tests: the lines of test_recorded, where
 * what comes lies on a GPU. Then each call of the driver fails once.
 */
#define OF_STREAMS 3 /* how many of them come as often however late a stream is */
static const char *const driver_calls[] = {
	"cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel",      "cuMemAlloc_v2",
	"cuMemHostAlloc",   "cuMemcpyAsync",       "cuStreamSynchronize",
};

static struct {
	const char *name; /* NULL: all do */
	int until, seen;  /* the call that fails, and how many there were before */
	int before;       /* those of the process */
} failing;

static void let_fail(bool begins)
{
	if (failing.name == NULL)
		return;
	if (begins) {
		failing.before = fake.calls(failing.name);
		if (failing.until > failing.seen)
			fake.fail(failing.name, failing.until - failing.seen, 719);
	} else {
		failing.seen += fake.calls(failing.name) - failing.before;
		fake.fail(failing.name, 0, 0);
	}
}

static void run_driver(const struct subject *s, const char *changed, size_t calls)
{
	for (size_t i = 0; i < calls; i++) {
		failing.name = driver_calls[i];
		failing.until = 0;
		do {
			char head[128];

			failing.until++;
			failing.seen = 0;
			snprintf(head, sizeof(head), "%s call %d of %s fails", changed,
				 failing.until, failing.name);
			run_case(s, changed, s->feed, true, head);
		} while (failing.seen >= failing.until && failing.until < 40);
	}
	failing.name = NULL;
}

/* The lines where what comes lies in the host, and the results in a pool of the GPU. */
static void run_from_host(const struct subject *s, const char *changed)
{
	struct subject there = *s;
	char args[512];

	snprintf(args, sizeof(args), "%s; %s", s->args, changed);
	there.args = args;
	there.on_gpu = false;
	fprintf(out, "-- %s, from the host\n", changed);
	run_case(&there, "", s->feed, true, "the first from the host");
	run_more(&there);
}

/* Also where its results lie in a pool of the GPU, and where it has a stream. */
static void run_resources(const struct subject *s)
{
	run_driver(s, "", FRAG_COUNT_OF(driver_calls));
	for (size_t i = 0; i < s->type->param_count; i++) {
		const struct frag_param *p = &s->type->params[i];
		char changed[64];

		if (p->kind != FRAG_PARAM_KIND_RESOURCE)
			continue;
		snprintf(changed, sizeof(changed), "%s=%s", p->name,
			 strcmp(p->name, "cuda_stream_pool") == 0 ? "$streams" : "$gpu");
		run_case(s, changed, s->feed, true, changed);
		run_driver(s, changed, OF_STREAMS);
		if (strcmp(p->name, "cuda_stream_pool") != 0)
			run_from_host(s, changed);
	}
}

#define ON_GPU(name_, type_)                                                                       \
	Test(recorded_gpu, name_)                                                                  \
	{                                                                                          \
		if (vision_ptx == NULL)                                                            \
			cr_skip_test("this build has no kernels for GPUs");                        \
		open_gpu();                                                                        \
		record(&(struct subject){.type = (type_),                                          \
					 .name = #name_,                                           \
					 .on_gpu = true,                                           \
					 .tries_kernel = true,                                     \
					 .run_own = run_resources,                                 \
					 .around = let_fail});                                     \
		expect_nothing_left();                                                             \
	}

ON_GPU(crop, &vision_crop_type)
ON_GPU(format_converter, &vision_format_converter_type)
ON_GPU(draw, &vision_draw_type)
ON_GPU(detection_postprocessor, &inference_detection_postprocessor_type)
ON_GPU(segmentation_postprocessor, &inference_segmentation_postprocessor_type)
