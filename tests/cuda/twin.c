// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/twin.h"

#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define CPU ((struct frag_device){FRAG_DEVICE_CPU, 0})

uint64_t twin_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

int twin_below(uint64_t *state, int limit)
{
	return (int)(twin_next(state) % (uint64_t)limit);
}

void twin_arg(struct twin *twin, const char *name, const char *format, ...)
{
	va_list list;
	size_t i = 0;

	while (twin->args[i].name != NULL)
		i++;
	if (i >= TWIN_ARGS - 3)
		abort();
	va_start(list, format);
	vsnprintf(twin->texts[i], sizeof(twin->texts[i]), format, list);
	va_end(list);
	twin->args[i] = (struct frag_arg){name, twin->texts[i]};
}

struct frag_tensor *twin_tensor(struct frag_dtype dtype, int32_t ndim, const int64_t *shape)
{
	struct frag_tensor *tensor;

	if (frag_tensor_create(NULL, dtype, ndim, shape, &tensor) < 0)
		abort();
	return tensor;
}

static void drop(void *tensor)
{
	frag_tensor_unref(tensor);
}

/* All rows of a tensor but for the last columns of each: takes it. */
static struct frag_tensor *narrower(struct frag_tensor *whole, int64_t columns)
{
	struct frag_dltensor dl = *frag_tensor_dl(whole);
	int64_t shape[4], strides[4], step = 1;
	struct frag_tensor *view;

	memcpy(shape, dl.shape, (size_t)dl.ndim * sizeof(*shape));
	for (int32_t i = dl.ndim - 1; i >= 0; i--) {
		strides[i] = step;
		step *= shape[i];
	}
	shape[1] = columns;
	dl.shape = shape;
	dl.strides = strides;
	if (frag_tensor_wrap(&dl, drop, whole, &view) < 0)
		abort();
	return view;
}

struct frag_tensor *twin_noise(uint64_t *state, struct frag_dtype dtype, int32_t ndim,
			       const int64_t *shape, bool has_gaps)
{
	int64_t wide[4];
	struct frag_tensor *tensor;
	unsigned char *at;

	memcpy(wide, shape, (size_t)ndim * sizeof(*shape));
	wide[1] += has_gaps ? 6 : 0;
	tensor = twin_tensor(dtype, ndim, wide);
	at = frag_tensor_writable(tensor);
	if (dtype.code == FRAG_DTYPE_FLOAT)
		for (size_t i = 0; i < frag_tensor_size_bytes(tensor) / 4; i++)
			((float *)(void *)at)[i] =
				(float)twin_below(state, 1 << 20) / (1 << 19) - 0.5f;
	else
		for (size_t i = 0; i < frag_tensor_size_bytes(tensor); i++)
			at[i] = (unsigned char)twin_next(state);
	return has_gaps ? narrower(tensor, shape[1]) : tensor;
}

/* The tensor on the GPU, with the distances between its rows. Keeps `tensor`. */
static struct frag_tensor *to_gpu(const struct frag_tensor *tensor, char *why, size_t size)
{
	struct frag_dltensor dl = *frag_tensor_dl(tensor), whole = dl;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *there = NULL, *all;
	int64_t bytes = (int64_t)frag_tensor_size_bytes(tensor);

	if (dl.strides == NULL || frag_tensor_is_compact(tensor)) {
		if (frag_tensor_copy(tensor, NULL, GPU, &there, &err) < 0)
			snprintf(why, size, "%s", err.text);
		return there;
	}
	/* all that lies between the first element and the last */
	bytes = dl.dtype.bits / 8;
	for (int32_t i = 0; i < dl.ndim; i++)
		bytes += (dl.shape[i] - 1) * dl.strides[i] * (dl.dtype.bits / 8);
	whole.dtype = (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1};
	whole.ndim = 1;
	whole.shape = &bytes;
	whole.strides = NULL;
	if (frag_tensor_wrap(&whole, NULL, NULL, &all) < 0)
		abort();
	if (frag_tensor_copy(all, NULL, GPU, &there, &err) < 0)
		snprintf(why, size, "%s", err.text);
	frag_tensor_unref(all);
	if (there == NULL)
		return NULL;
	dl.data = frag_tensor_dl(there)->data;
	dl.byte_offset = frag_tensor_dl(there)->byte_offset;
	dl.device = frag_tensor_dl(there)->device;
	if (frag_tensor_wrap(&dl, drop, there, &all) < 0)
		abort();
	return all;
}

static bool give(struct frag_harness *h, const struct twin *twin, bool on_gpu, char *why,
		 size_t size)
{
	for (size_t i = 0; i < TWIN_INPUTS && twin->in[i].port != NULL;) {
		struct frag_message *message = frag_message_create();
		const char *port = twin->in[i].port;

		/* those of a port that follow each other are one message */
		for (; i < TWIN_INPUTS && twin->in[i].port != NULL &&
		       strcmp(twin->in[i].port, port) == 0;
		     i++) {
			const struct twin_input *in = &twin->in[i];
			struct frag_tensor *tensor = on_gpu && !in->stays
							     ? to_gpu(in->tensor, why, size)
							     : frag_tensor_ref(in->tensor);

			if (tensor == NULL) {
				frag_message_unref(message);
				return false;
			}
			if (frag_message_add_tensor(message, in->name, tensor) < 0)
				abort();
		}
		if (frag_harness_give(h, port, message) < 0)
			abort();
	}
	return true;
}

/* Returns what the operator emits; NULL: why says what failed. */
static struct frag_message *run(struct twin *twin, bool on_gpu, char *why, size_t size)
{
	const struct frag_harness_resource pools[] = {
		{"pool", "block_memory_pool",
		 FRAG_ARGS({"storage_type", "1"}, {"block_size", "800000"}, {"num_blocks", "4"})},
		{"streams", "cuda_stream_pool", NULL},
		{NULL, NULL, NULL}};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_message *message = NULL;
	struct frag_harness *h;
	size_t i = 0, first;

	while (twin->args[i].name != NULL)
		i++;
	first = i;
	if (on_gpu && twin->pool_is_on_gpu)
		twin->args[i++] = (struct frag_arg){twin->pool, "$pool"};
	if (on_gpu && twin->has_streams)
		twin->args[i++] = (struct frag_arg){"cuda_stream_pool", "$streams"};
	h = frag_harness_create_with(twin->type, twin->args, on_gpu ? pools : NULL, &err);
	memset(&twin->args[first], 0, 2 * sizeof(twin->args[0]));
	if (h == NULL) {
		snprintf(why, size, "%s", err.text);
		return NULL;
	}
	if (give(h, twin, on_gpu, why, size) &&
	    (frag_harness_tick(h) < 0 || frag_harness_take(h, twin->out_port, &message) < 0)) {
		snprintf(why, size, "%s", frag_harness_error(h));
		message = NULL;
	}
	if (message != NULL) {
		/* on the host, because the operator's memory goes with it */
		struct frag_message *kept = frag_message_create();

		for (size_t k = 0; twin->outputs[k] != NULL && kept != NULL; k++) {
			const struct frag_tensor *tensor =
				frag_message_tensor(message, twin->outputs[k]);
			struct frag_tensor *copy;

			if (tensor != NULL && frag_tensor_copy(tensor, NULL, CPU, &copy, &err) == 0)
				(void)frag_message_add_tensor(kept, twin->outputs[k], copy);
			else
				snprintf(why, size, "%s: %s", twin->outputs[k], err.text);
		}
		frag_message_unref(message);
		message = kept;
	}
	frag_harness_destroy(h);
	return message;
}

static bool same_element(struct frag_dtype dtype, const unsigned char *a, const unsigned char *b)
{
	float x = 0, y = 0;

	if (memcmp(a, b, dtype.bits / 8u) == 0)
		return true;
	if (dtype.code != FRAG_DTYPE_FLOAT)
		return false;
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return isnan(x) && isnan(y);
}

static bool same(const char *name, const struct frag_tensor *a, const struct frag_tensor *b,
		 char *why, size_t size)
{
	const struct frag_dltensor *x = a != NULL ? frag_tensor_dl(a) : NULL;
	const struct frag_dltensor *y = b != NULL ? frag_tensor_dl(b) : NULL;
	size_t bytes = x != NULL ? x->dtype.bits / 8u : 0;
	const unsigned char *p, *q;

	if (x == NULL || y == NULL || x->ndim != y->ndim || x->dtype.bits != y->dtype.bits ||
	    memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof(*x->shape)) != 0) {
		snprintf(why, size, "the tensor \"%s\" has not the same shape (%lld and %lld rows)",
			 name, x != NULL ? (long long)x->shape[0] : -1LL,
			 y != NULL ? (long long)y->shape[0] : -1LL);
		return false;
	}
	p = frag_tensor_data(a);
	q = frag_tensor_data(b);
	for (size_t i = 0; i < frag_tensor_size_bytes(a); i += bytes)
		if (!same_element(x->dtype, p + i, q + i)) {
			snprintf(
				why, size,
				"element %zu of \"%s\" differs: its first byte is %02x on the CPU and %02x on the GPU",
				i / bytes, name, p[i], q[i]);
			return false;
		}
	return true;
}

bool twin_same(struct twin *twin, char *why, size_t size)
{
	struct frag_message *want = NULL, *got = NULL;
	char failed[512] = "";
	bool ok;

	want = run(twin, false, why, size);
	if (want != NULL || twin->fails)
		got = run(twin, true, failed, sizeof(failed));
	if (twin->fails) {
		ok = want == NULL && got == NULL && strcmp(why, failed) == 0;
	} else {
		ok = want != NULL && got != NULL;
		for (size_t k = 0; twin->outputs[k] != NULL && ok; k++)
			ok = same(twin->outputs[k], frag_message_tensor(want, twin->outputs[k]),
				  frag_message_tensor(got, twin->outputs[k]), why, size);
	}
	if (!ok && failed[0] != '\0')
		snprintf(why, size, "on the GPU: %s", failed);
	for (size_t i = 0; i < TWIN_INPUTS; i++)
		frag_tensor_unref(twin->in[i].tensor);
	frag_message_unref(want);
	frag_message_unref(got);
	return ok;
}
