// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/resource.h>
#include <frag/tensor.h>
#include <res/resource.h>
#include <type/cuda.h>

#include "cuda/load.h"
#include "expected.h"
/* The names of the functions. */
#include "modules/cuda/driver.h"

/*
 * Drawn lives of a process with two GPUs over the driver of tests: pools, tensors and streams are
 * made, copied and given back in any order, and calls of the driver fail. What comes of each step,
 * and which functions of the driver it calls how often, is compared with a recorded text.
 */
#define STEPS 220
#define TENSORS 6
#define POOLS 4
#define THINGS 3

static const char *const functions[] = {
#define NAME(name, parameters) #name,
	FRAGI_CU_FUNCTIONS(NAME) FRAGI_CU_GREEN_FUNCTIONS(NAME)
#undef NAME
};
#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

static const struct {
	const char *name;
	struct frag_device device;
} places[] = {
	{"the host", {FRAG_DEVICE_CPU, 0}},
	{"pinned memory", {FRAG_DEVICE_CUDA_HOST, 0}},
	{"managed memory", {FRAG_DEVICE_CUDA_MANAGED, 0}},
	{"GPU 0", {FRAG_DEVICE_CUDA, 0}},
	{"GPU 1", {FRAG_DEVICE_CUDA, 1}},
};
static const struct {
	const char *name, *type;
	const char *names[5];
	int64_t values[4];
} kinds[] = {
	{"blocks of GPU 0",
	 "block_memory_pool",
	 {"storage_type", "block_size", "num_blocks", "dev_id"},
	 {1, 256, 2, 0}},
	{"blocks of GPU 1",
	 "block_memory_pool",
	 {"storage_type", "block_size", "num_blocks", "dev_id"},
	 {1, 256, 3, 1}},
	{"pinned blocks",
	 "block_memory_pool",
	 {"storage_type", "block_size", "num_blocks"},
	 {0, 200, 2}},
	{"a pool of the driver on GPU 0", "rmm_allocator", {"dev_id"}, {0}},
	{"a pool of the driver on GPU 1", "stream_ordered_allocator", {"dev_id"}, {1}},
	{"the heap", "unbounded_allocator", {NULL}, {0}},
};

struct life {
	uint32_t seed;
	FILE *out;
	struct frag_tensor *tensors[TENSORS];
	struct frag_resource *pools[POOLS];
	void *streams[THINGS], *greens[THINGS];
	int32_t stream_gpus[THINGS], green_gpus[THINGS];
	int calls[FUNCTIONS];
	const struct fragi_cuda_ops *ops;
	struct frag_err err;
};

static uint32_t below(struct life *l, uint32_t n)
{
	l->seed = l->seed * 1664525u + 1013904223u;
	return (l->seed >> 8) % n;
}

static int make_resource(struct life *l, size_t kind, struct frag_resource **out)
{
	const struct fragi_built_in_resource *built_in = fragi_built_in_resource(kinds[kind].type);
	struct frag_resource *resource;
	int r;

	cr_assert_eq(fragi_resource_create(&built_in->type, built_in, "pool", &resource), 0);
	for (size_t i = 0; kinds[kind].names[i] != NULL; i++)
		for (uint32_t p = 0; p < built_in->type.param_count; p++)
			if (strcmp(built_in->type.params[p].name, kinds[kind].names[i]) == 0)
				memcpy((char *)fragi_resource_state(resource) +
					       built_in->type.params[p].offset,
				       &kinds[kind].values[i], sizeof(int64_t));
	r = fragi_resource_set_up(resource, &l->err);
	if (r == 0 && built_in->type.initialize != NULL)
		r = built_in->type.initialize(fragi_resource_state(resource), resource, &l->err);
	if (r == 0)
		*out = resource;
	else
		fragi_resource_unref(resource);
	return r;
}

/* The sum of a tensor's bytes, each with the weight of its place, wherever it lies. */
static int read_back(struct life *l, const struct frag_tensor *tensor)
{
	struct frag_tensor *back;
	unsigned int sum = 0;
	int r = frag_tensor_copy(tensor, NULL, places[0].device, &back, &l->err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < frag_tensor_size_bytes(back); i++)
		sum += ((const uint8_t *)frag_tensor_data(back))[i] * (unsigned int)(i % 13 + 1);
	fprintf(l->out, " holds %u", sum);
	frag_tensor_unref(back);
	return 0;
}

/* Bytes that count up, in memory of the host. */
static int make_numbers(struct life *l, struct frag_tensor **out)
{
	const int64_t shape[] = {1 + below(l, 5), 1 + below(l, 6), 2};
	uint8_t first = (uint8_t)below(l, 200), *at;
	int r = frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 16, 1}, 3, shape,
				   out);

	if (r < 0)
		return r;
	at = frag_tensor_writable(*out);
	for (size_t i = 0; i < frag_tensor_size_bytes(*out); i++)
		at[i] = (uint8_t)(first + i);
	fprintf(l->out, " %" PRId64 " x %" PRId64 " x 2 from %u", shape[0], shape[1], first);
	return 0;
}

/* A copy of a tensor, or of every second row of it. */
static int copy(struct life *l, const struct frag_tensor *from, struct frag_resource *pool,
		struct frag_device device, struct frag_tensor **out)
{
	struct frag_dltensor dl = *frag_tensor_dl(from);
	int64_t shape[3], strides[3];
	struct frag_tensor *part;
	int r;

	if (below(l, 3) > 0 || dl.shape[1] < 2)
		return frag_tensor_copy(from, pool, device, out, &l->err);
	memcpy(shape, dl.shape, sizeof(shape));
	memcpy(strides, dl.strides, sizeof(strides));
	shape[1] /= 2;
	strides[1] *= 2;
	dl.shape = shape;
	dl.strides = strides;
	fprintf(l->out, " (every second row)");
	cr_assert_eq(frag_tensor_wrap(&dl, NULL, NULL, &part), 0);
	r = frag_tensor_copy(part, pool, device, out, &l->err);
	frag_tensor_unref(part);
	return r;
}

static int step_tensor(struct life *l, uint32_t what, uint32_t slot)
{
	uint32_t place = below(l, 5), pool = below(l, POOLS + 2);
	struct frag_resource *allocator = pool < POOLS ? l->pools[pool] : NULL;
	struct frag_tensor *made = NULL;
	int r;

	if (l->tensors[slot] != NULL && what == 0) {
		fprintf(l->out, "tensor %u", slot);
		return read_back(l, l->tensors[slot]);
	}
	if (l->tensors[slot] != NULL && what == 1) {
		fprintf(l->out, "tensor %u is dropped", slot);
		frag_tensor_unref(l->tensors[slot]);
		l->tensors[slot] = NULL;
		return 0;
	}
	if (l->tensors[slot] == NULL) {
		fprintf(l->out, "tensor %u is made:", slot);
		return make_numbers(l, &l->tensors[slot]);
	}
	fprintf(l->out, "tensor %u goes to %s", slot, places[place].name);
	if (allocator != NULL)
		fprintf(l->out, " by pool %u", pool);
	r = copy(l, l->tensors[slot], allocator, places[place].device, &made);
	if (r == 0) {
		frag_tensor_unref(l->tensors[slot]);
		l->tensors[slot] = made;
		r = read_back(l, made);
	}
	return r;
}

static int step_pool(struct life *l)
{
	uint32_t pool = below(l, POOLS), kind = below(l, FRAG_COUNT_OF(kinds));

	if (l->pools[pool] != NULL) {
		fprintf(l->out, "pool %u is dropped", pool);
		fragi_resource_unref(l->pools[pool]);
		l->pools[pool] = NULL;
		return 0;
	}
	fprintf(l->out, "pool %u is made: %s", pool, kinds[kind].name);
	return make_resource(l, kind, &l->pools[pool]);
}

static int step_stream(struct life *l)
{
	uint32_t i = below(l, THINGS);
	int32_t gpu = (int32_t)below(l, 2);
	uint32_t flags = below(l, 2);
	int priority = -(int)below(l, 3), r;

	if (l->streams[i] == NULL) {
		void *green = l->greens[i] != NULL && l->green_gpus[i] == gpu ? l->greens[i] : NULL;

		fprintf(l->out, "stream %u of GPU %d is made, flags %u, priority %d%s", i, gpu,
			flags, priority, green != NULL ? ", in a part" : "");
		l->stream_gpus[i] = gpu;
		return l->ops->stream_create(gpu, green, flags, priority, &l->streams[i], &l->err);
	}
	fprintf(l->out, "stream %u is waited for and dropped", i);
	r = l->ops->stream_wait(l->stream_gpus[i], l->streams[i], &l->err);
	l->ops->stream_destroy(l->stream_gpus[i], l->streams[i]);
	l->streams[i] = NULL;
	return r;
}

static int step_green(struct life *l)
{
	uint32_t i = below(l, THINGS), got = 0;
	int32_t gpu = (int32_t)below(l, 2);
	const int64_t sms = (int64_t[]){8, 9, 132, 133, 1}[below(l, 5)];
	int r;

	for (uint32_t k = 0; k < THINGS; k++)
		if ((l->greens[k] != NULL && k != i) || l->streams[k] != NULL) {
			fprintf(l->out, "no part is made: another one is there, or a stream");
			return 0;
		}
	if (l->greens[i] != NULL) {
		fprintf(l->out, "part %u is dropped", i);
		l->ops->green_destroy(l->green_gpus[i], l->greens[i]);
		l->greens[i] = NULL;
		return 0;
	}
	fprintf(l->out, "part %u of GPU %d is made, of %" PRId64 " SMs", i, gpu, sms);
	l->green_gpus[i] = gpu;
	r = l->ops->green_create(gpu, &sms, 1, &l->greens[i], &got, &l->err);
	if (r == 0)
		fprintf(l->out, ": it has %u", got);
	return r;
}

static void print_calls(struct life *l)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		int calls = fake.calls(functions[i]), more = calls - l->calls[i];

		l->calls[i] = calls;
		/* How often is asked whether an event has come depends on the time. */
		if (more > 1 && strcmp(functions[i], "cuEventQuery") != 0)
			fprintf(l->out, "    %s %d times\n", functions[i], more);
		else if (more > 0 && strcmp(functions[i], "cuEventQuery") != 0)
			fprintf(l->out, "    %s\n", functions[i]);
	}
}

/*
 * Not those that give back, because what cannot be given back is left, and logged; nor those that
 * wait, because streams would go on.
 */
static const char *const failing[] = {
	"cuMemAlloc_v2",
	"cuMemHostAlloc",
	"cuMemAllocManaged",
	"cuMemcpyAsync",
	"cuMemcpy2DAsync_v2",
	"cuMemcpyPeerAsync",
	"cuStreamCreateWithPriority",
	"cuMemPoolCreate",
	"cuMemPoolSetAttribute",
	"cuMemPoolSetAccess",
	"cuMemAllocFromPoolAsync",
	"cuDeviceCanAccessPeer",
	"cuGreenCtxCreate",
	"cuDevSmResourceSplitByCount",
	"cuDevResourceGenerateDesc",
	"cuDeviceGetDevResource",
};

static void step(struct life *l, bool may_fail)
{
	const int results[] = {2, 1, 999, 801};
	const char *name = failing[below(l, FRAG_COUNT_OF(failing))];
	int nth = 1 + (int)below(l, 2);
	uint32_t result = below(l, 4), what = below(l, 12), slot = below(l, TENSORS);
	bool fails = may_fail && below(l, 2) == 0;
	int r;

	l->err = (struct frag_err)FRAG_ERR_INIT;
	if (fails) {
		fake.fail(name, nth, results[result]);
		fprintf(l->out, "%s returns %d%s: ", name, results[result],
			nth > 1 ? " the second time" : "");
	}
	r = what < 8    ? step_tensor(l, what, slot)
	    : what < 10 ? step_pool(l)
	    : what < 11 ? step_stream(l)
			: step_green(l);
	fake.fail(name, 0, 0);
	if (r < 0)
		fprintf(l->out, ": %d %s", r, l->err.text);
	fprintf(l->out, "\n");
	print_calls(l);
}

static void end(struct life *l)
{
	fprintf(l->out, "all is dropped\n");
	for (size_t i = 0; i < TENSORS; i++)
		frag_tensor_unref(l->tensors[i]);
	for (size_t i = 0; i < POOLS; i++)
		fragi_resource_unref(l->pools[i]);
	for (size_t i = 0; i < THINGS; i++) {
		if (l->streams[i] != NULL)
			l->ops->stream_destroy(l->stream_gpus[i], l->streams[i]);
		if (l->greens[i] != NULL)
			l->ops->green_destroy(l->green_gpus[i], l->greens[i]);
	}
	/* but for the streams by which the module frees, one of each GPU */
	for (int i = 0; i < 2000 && (fake.used() > 0 || fake.left() > 2); i++)
		usleep(1000);
	cr_expect_eq(fake.used(), 0, "%zu bytes of memory are left", fake.used());
	cr_expect_leq(fake.left(), 2, "%zu streams, pools and other things are left", fake.left());
	print_calls(l);
}

static void live(uint32_t seed, const char *lacking, bool may_fail, const char *name)
{
	struct life l = {.seed = seed};
	char *text;
	size_t bytes;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	setenv("FAKE_CUDA_WITHOUT", lacking, 1);
	load_fake();
	l.out = open_memstream(&text, &bytes);
	for (int gpu = 0; gpu < 2; gpu++)
		cr_assert_eq(
			fragi_cuda_use((struct frag_device){FRAG_DEVICE_CUDA, gpu}, &l.ops, &l.err),
			0, "%s", l.err.text);
	fprintf(l.out, "both GPUs are opened, without %s\n", lacking[0] != '\0' ? lacking : "lack");
	print_calls(&l);
	for (int i = 0; i < STEPS; i++)
		step(&l, may_fail);
	end(&l);
	fclose(l.out);
	expected_compare(name, text);
	free(text);
}

Test(cuda_lives, with_all)
{
	live(1, "", false, "cuda/with_all");
}

Test(cuda_lives, where_calls_fail)
{
	live(2, "", true, "cuda/where_calls_fail");
}

Test(cuda_lives, without_pools_of_the_driver)
{
	live(3, "pools", true, "cuda/without_pools");
}

Test(cuda_lives, without_peers)
{
	live(4, "peers managed", true, "cuda/without_peers");
}

Test(cuda_lives, without_memory_to_share)
{
	live(5, "shared", true, "cuda/without_shared");
}
