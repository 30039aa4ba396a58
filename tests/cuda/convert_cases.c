// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/frag.h>
#include <frag/harness.h>

#include "cuda/convert_cases.h"
#include "vision/vision.h"

#define SIDE_MAX 70
#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define CPU ((struct frag_device){FRAG_DEVICE_CPU, 0})

/* A frame, and the parameters that convert it. */
struct one {
	bool is_float, is_padded, frame_is_on_gpu, pool_is_on_gpu;
	int64_t rows, columns, channels;
	char width[12], height[12], mode[8], scale_min[32], scale_max[32], alpha[8], order[32];
	char pad_value[8];
	const char *out_dtype, *layout, *pad;
};

/* splitmix64, of S. Vigna */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int below(uint64_t *state, int limit)
{
	return (int)(next(state) % (uint64_t)limit);
}

/* What is asked for most: RGB to planes or pixels of floats, linear. It has kernels of its own. */
static void choose_usual(uint64_t *state, struct one *one)
{
	static const char *const orders[] = {"[0, 1, 2]", "[2, 1, 0]", "[1, 2, 0]", "[0, 0, 1]"};

	one->is_float = false;
	one->channels = 3;
	one->columns = below(state, 8) == 0 ? one->columns : 4 * (1 + below(state, SIDE_MAX / 4));
	one->out_dtype = "float32";
	snprintf(one->mode, sizeof(one->mode), "2");
	snprintf(one->order, sizeof(one->order), "%s", orders[below(state, 4)]);
	if (below(state, 2) == 0) {
		snprintf(one->scale_min, sizeof(one->scale_min), "0");
		snprintf(one->scale_max, sizeof(one->scale_max), "1");
	}
}

static struct one choose(uint64_t *state)
{
	static const char *const dtypes[] = {"rgb888",  "rgba8888", "uint8",
					     "float32", "gray8",    "gray32f"};
	static const char *const modes[] = {"0", "1", "2", "4", "8"};
	static const int channels[] = {1, 3, 4};
	struct one one = {
		.is_float = below(state, 3) == 0,
		.is_padded = below(state, 2) == 0,
		.frame_is_on_gpu = below(state, 4) != 0,
		.pool_is_on_gpu = below(state, 2) == 0,
		.rows = 1 + below(state, SIDE_MAX),
		.columns = 1 + below(state, SIDE_MAX),
		.channels = channels[below(state, 3)],
		.out_dtype = dtypes[below(state, 6)],
		.layout = below(state, 2) == 0 ? "hwc" : "chw",
		.pad = "false",
	};
	int mode = below(state, 5), width = 0, height = 0;
	double scale = (double)below(state, 2000) / 7.0 - 100.0;
	int64_t out = strncmp(one.out_dtype, "gray", 4) == 0   ? 1
		      : strcmp(one.out_dtype, "rgba8888") == 0 ? 4
		      : strcmp(one.out_dtype, "rgb888") == 0   ? 3
		      : one.channels == 1                      ? 1
							       : 3;

	one.pool_is_on_gpu = one.pool_is_on_gpu || !one.frame_is_on_gpu;
	if (below(state, 4) != 0) {
		/* mode 8 only makes smaller, and of padded frames a part is used */
		width = 1 + below(state, mode == 4 && one.columns > 3 ? (int)one.columns - 3
					 : mode == 4                  ? 1
								      : SIDE_MAX);
		height = 1 + below(state, mode == 4 && one.rows > 1 ? (int)one.rows - 1
					  : mode == 4               ? 1
								    : SIDE_MAX);
	}
	if (width > 0 && below(state, 3) == 0)
		one.pad = "true";
	snprintf(one.pad_value, sizeof(one.pad_value), "%d", below(state, 256));
	snprintf(one.width, sizeof(one.width), "%d", width);
	snprintf(one.height, sizeof(one.height), "%d", height);
	snprintf(one.mode, sizeof(one.mode), "%s", modes[mode]);
	snprintf(one.scale_min, sizeof(one.scale_min), "%.17g", below(state, 2) == 0 ? 0.0 : scale);
	snprintf(one.scale_max, sizeof(one.scale_max), "%.17g",
		 scale + 0.5 + (double)below(state, 500));
	snprintf(one.alpha, sizeof(one.alpha), "%d", below(state, 256));
	snprintf(one.order, sizeof(one.order), "[%d", below(state, 4));
	for (int64_t i = 1; i < out; i++)
		snprintf(one.order + strlen(one.order), sizeof(one.order) - strlen(one.order),
			 ", %d", below(state, 4));
	strcat(one.order, "]");
	if (below(state, 3) == 0)
		choose_usual(state, &one);
	return one;
}

/* Floats are of the scale, beyond it, and now and then none, infinite or very small. */
static float any_float(uint64_t *state, const struct one *one)
{
	static const float rare[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-42f, 3e38f};
	double from = atof(one->scale_min), to = atof(one->scale_max);

	if (below(state, 50) == 0)
		return rare[below(state, 6)];
	return (float)(from + (to - from) * ((double)below(state, 1 << 20) / (1 << 19) - 0.5));
}

/* Rows may have a distance. */
static struct frag_tensor *make_frame(uint64_t *state, const struct one *one)
{
	const struct frag_dtype dtype = {one->is_float ? FRAG_DTYPE_FLOAT : FRAG_DTYPE_UINT,
					 one->is_float ? 32 : 8, 1};
	const int64_t shape[] = {one->rows, one->columns, one->channels};
	struct frag_tensor *tensor;
	size_t elements;

	if (frag_tensor_create(NULL, dtype, 3, shape, &tensor) < 0)
		abort();
	elements = (size_t)(one->rows * one->columns * one->channels);
	for (size_t i = 0; i < elements; i++)
		if (one->is_float)
			((float *)frag_tensor_writable(tensor))[i] = any_float(state, one);
		else
			((uint8_t *)frag_tensor_writable(tensor))[i] = (uint8_t)next(state);
	return tensor;
}

static void drop(void *tensor)
{
	frag_tensor_unref(tensor);
}

/* A view of all rows but the last, without the first pixel of each, and without the last two. */
static struct frag_tensor *view_of(struct frag_tensor *whole)
{
	struct frag_dltensor dl = *frag_tensor_dl(whole);
	int64_t shape[3], strides[3];
	struct frag_tensor *view;

	memcpy(shape, dl.shape, sizeof(shape));
	if (shape[0] < 2 || shape[1] < 4)
		return whole;
	strides[2] = 1;
	strides[1] = shape[2];
	strides[0] = shape[1] * shape[2];
	shape[0] -= 1;
	shape[1] -= 3;
	dl.shape = shape;
	dl.strides = strides;
	dl.byte_offset += (uint64_t)(shape[2] * dl.dtype.bits / 8);
	if (frag_tensor_wrap(&dl, drop, whole, &view) < 0)
		abort();
	return view;
}

/* Takes `frame`. Returns the result in host memory; NULL: why says what failed. */
static struct frag_tensor *run(const struct one *one, bool pool_is_on_gpu,
			       struct frag_tensor *frame, int32_t *out_device, char *why,
			       size_t size)
{
	const struct frag_harness_resource pools[] = {
		{"pool", pool_is_on_gpu ? "block_memory_pool" : "unbounded_allocator",
		 pool_is_on_gpu ? FRAG_ARGS({"storage_type", "1"}, {"block_size", "100000"},
					    {"num_blocks", "2"})
				: NULL},
		{NULL, NULL, NULL}};
	const struct frag_arg args[] = {{"out_dtype", one->out_dtype},
					{"out_layout", one->layout},
					{"resize_width", one->width},
					{"resize_height", one->height},
					{"resize_mode", one->mode},
					{"pad", one->pad},
					{"pad_value", one->pad_value},
					{"scale_min", one->scale_min},
					{"scale_max", one->scale_max},
					{"alpha_value", one->alpha},
					{"out_channel_order", one->order},
					{"pool", "$pool"},
					{NULL, NULL}};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h =
		frag_harness_create_with(&vision_format_converter_type, args, pools, &err);
	struct frag_message *message = NULL;
	struct frag_tensor *result = NULL;

	if (h == NULL) {
		frag_tensor_unref(frame);
		snprintf(why, size, "%s", err.text);
		return NULL;
	}
	if (frag_harness_give_tensor(h, "source_video", "", frame) == 0 &&
	    frag_harness_tick(h) == 0 && frag_harness_take(h, "tensor", &message) == 0) {
		const struct frag_tensor *out = frag_message_tensor(message, "");

		*out_device = frag_tensor_dl(out)->device.type;
		if (frag_tensor_copy(out, NULL, CPU, &result, &err) < 0)
			snprintf(why, size, "%s", err.text);
		frag_message_unref(message);
	} else {
		snprintf(why, size, "%s", frag_harness_error(h));
	}
	frag_harness_destroy(h);
	return result;
}

static bool same_f32(uint32_t a, uint32_t b)
{
	float x, y;

	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	return a == b || (isnan(x) && isnan(y));
}

static bool same(const struct frag_tensor *a, const struct frag_tensor *b, char *why, size_t size)
{
	const struct frag_dltensor *x = frag_tensor_dl(a), *y = frag_tensor_dl(b);
	size_t bytes = frag_tensor_size_bytes(a);

	if (x->ndim != y->ndim || memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof(*x->shape)) ||
	    x->dtype.bits != y->dtype.bits || bytes != frag_tensor_size_bytes(b)) {
		snprintf(why, size, "the results have not the same shape");
		return false;
	}
	for (size_t i = 0; i < bytes; i += x->dtype.bits / 8u) {
		uint32_t p = 0, q = 0;

		memcpy(&p, (const char *)frag_tensor_data(a) + i, x->dtype.bits / 8u);
		memcpy(&q, (const char *)frag_tensor_data(b) + i, x->dtype.bits / 8u);
		if (x->dtype.bits == 32 ? same_f32(p, q) : p == q)
			continue;
		snprintf(why, size, "element %zu is %08x on the CPU and %08x on the GPU",
			 i / (x->dtype.bits / 8u), p, q);
		return false;
	}
	return true;
}

static struct frag_tensor *to_gpu(struct frag_tensor *frame, char *why, size_t size)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *there = NULL;

	if (frag_tensor_copy(frame, NULL, GPU, &there, &err) < 0)
		snprintf(why, size, "%s", err.text);
	return there;
}

bool convert_case(uint64_t seed, char *why, size_t size)
{
	uint64_t state = seed;
	const struct one one = choose(&state);
	struct frag_tensor *frame = make_frame(&state, &one), *there, *want = NULL, *got = NULL;
	int32_t device = -1;
	char what[200];
	bool ok;

	snprintf(what, sizeof(what),
		 "seed %llu: %s [%d, %d, %d]%s to %s %s %s, mode %s, %s x %s, pad %s: ",
		 (unsigned long long)seed, one.is_float ? "f32" : "u8", (int)one.rows,
		 (int)one.columns, (int)one.channels, one.is_padded ? " with gaps" : "",
		 one.out_dtype, one.layout, one.order, one.mode, one.width, one.height, one.pad);
	snprintf(why, size, "%s", what);
	why += strlen(why);
	size -= strlen(what);
	there = one.frame_is_on_gpu ? to_gpu(frame, why, size) : frag_tensor_ref(frame);
	if (there != NULL)
		want = run(&one, false, one.is_padded ? view_of(frame) : frame, &device, why, size);
	if (want != NULL)
		got = run(&one, one.pool_is_on_gpu, one.is_padded ? view_of(there) : there, &device,
			  why, size);
	ok = got != NULL && same(want, got, why, size);
	if (ok && device != FRAG_DEVICE_CUDA && one.frame_is_on_gpu) {
		snprintf(why, size, "the result lies on device %d", (int)device);
		ok = false;
	}
	frag_tensor_unref(want);
	frag_tensor_unref(got);
	return ok;
}
