// SPDX-License-Identifier: Apache-2.0
/*
 * Tensors in memory of a GPU, from operator to operator. The source sends the same tensor again and
 * again, and says in the metadata when; with `fresh` a new tensor over the same memory, because a
 * copy of a tensor for other hosts is made once, and kept with it. The sink notes when it has each,
 * and with `kernel` when a kernel has read all of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench.h"
#include "gpu_kernels.h"
#include "gpu_ptx.h"

#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define CPU ((struct frag_device){FRAG_DEVICE_CPU, 0})

struct gpu_source {
	bool gpu, fresh, planes;
	int64_t count, rows, columns, pictures, next;
	uint64_t bytes;
	struct frag_resource *allocator;
	struct frag_tensor *tensor;
};

static const struct frag_port source_ports[] = {{.name = "out", .dir = FRAG_OUT}};
static const struct frag_param source_params[] = {
	FRAG_PARAM_BOOL(struct gpu_source, gpu, true),
	FRAG_PARAM_BOOL(struct gpu_source, fresh, false),
	FRAG_PARAM_BOOL(struct gpu_source, planes, false,
			.headline = "the picture is f32 [3, rows, columns], as networks take it"),
	FRAG_PARAM_I64(struct gpu_source, count, 0),
	FRAG_PARAM_I64(struct gpu_source, rows, 0, .headline = "of an RGB picture; else bytes"),
	FRAG_PARAM_I64(struct gpu_source, columns, 0),
	FRAG_PARAM_I64(struct gpu_source, pictures, 0,
		       .headline = "RGB pictures in a tensor, as its first side; 0: no such side"),
	FRAG_PARAM_SIZE(struct gpu_source, bytes, 1024),
	FRAG_PARAM_RESOURCE(struct gpu_source, allocator, NULL, .flags = FRAG_PARAM_OPTIONAL),
};

static int source_initialize(void *state, struct frag_op *op)
{
	struct gpu_source *s = state;
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1}, f32 = {FRAG_DTYPE_FLOAT, 32, 1};
	const int64_t pictures[] = {s->pictures, s->rows, s->columns, 3};
	const int64_t planes[] = {3, s->rows, s->columns}, bytes = (int64_t)s->bytes;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *host;
	int r = frag_tensor_create(NULL, s->planes ? f32 : u8,
				   s->rows == 0      ? 1
				   : s->pictures > 0 ? 4
						     : 3,
				   s->rows == 0      ? &bytes
				   : s->planes       ? planes
				   : s->pictures > 0 ? pictures
						     : pictures + 1,
				   &host);

	if (r < 0)
		return frag_op_fail(op, r, "no memory");
	memset(frag_tensor_writable(host), 7, frag_tensor_size_bytes(host));
	r = s->gpu ? frag_op_use_device(op, GPU) : 0;
	if (r == 0) {
		r = frag_tensor_copy(host, s->allocator, s->gpu ? GPU : CPU, &s->tensor, &err);
		if (r < 0)
			r = frag_op_fail(op, r, "%s: %s", frag_strerror(r), err.text);
	}
	frag_tensor_unref(host);
	return r;
}

static void release(void *tensor)
{
	frag_tensor_unref(tensor);
}

static int tensor_of(const struct gpu_source *s, struct frag_tensor **out)
{
	struct frag_tensor *tensor = frag_tensor_ref(s->tensor);
	int r = 0;

	if (!s->fresh)
		*out = tensor;
	else
		r = frag_tensor_wrap(frag_tensor_dl(tensor), release, tensor, out);
	if (r < 0)
		frag_tensor_unref(tensor);
	return r;
}

static int source_compute(void *state, struct frag_tick *tick)
{
	struct gpu_source *s = state;
	struct frag_tensor *tensor;
	int r = frag_metadata_set_i64(frag_tick_metadata(tick), "sent_ns", bench_now_ns());

	if (r == 0)
		r = tensor_of(s, &tensor);
	if (r == 0)
		r = frag_tick_emit_tensor(tick, 0, "", tensor);
	return r < 0 ? r : ++s->next == s->count ? FRAG_DONE : 0;
}

static void source_fini(void *state, struct frag_op *op)
{
	frag_tensor_unref(((struct gpu_source *)state)->tensor);
}

const struct frag_op_type bench_gpu_source_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_gpu_source",
	.headline = "Sends a tensor on a GPU and says when",
	.state_size = sizeof(struct gpu_source),
	FRAG_PORTS(source_ports),
	FRAG_PARAMS(source_params),
	.initialize = source_initialize,
	.compute = source_compute,
	.fini = source_fini,
};

struct gpu_sink {
	const char *file;
	bool gpu, kernel;
	int64_t count, period_ns, received, first_ns;
	uint64_t bytes;
	int64_t *seen_ns, *done_ns, *at_ns;
	struct frag_kernel *touch;
	struct frag_tensor *result;
};

static const struct frag_port sink_ports[] = {{.name = "in", .dir = FRAG_IN}};
static const struct frag_param sink_params[] = {
	FRAG_PARAM_STRING(struct gpu_sink, file, NULL, .flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_BOOL(struct gpu_sink, gpu, true),
	FRAG_PARAM_BOOL(struct gpu_sink, kernel, false),
	FRAG_PARAM_I64(struct gpu_sink, count, 1000, .min = 1),
	FRAG_PARAM_I64(struct gpu_sink, period_ns, 0),
};

static int make_kernel(struct gpu_sink *s, struct frag_op *op)
{
	const int64_t size = 64;
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	if (bench_ptx == NULL)
		return frag_op_fail(op, -ENOTSUP, "built without nvcc");
	r = frag_kernel_create(GPU, bench_ptx, "bench_touch", &s->touch, &err);
	if (r == 0)
		r = frag_tensor_create_on(NULL, GPU, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1,
					  &size, &s->result);
	return r < 0 ? frag_op_fail(op, r, "%s: %s", frag_strerror(r), err.text) : 0;
}

static int sink_initialize(void *state, struct frag_op *op)
{
	struct gpu_sink *s = state;
	int r = s->gpu ? frag_op_use_device(op, GPU) : 0;

	if (r < 0)
		return r;
	s->seen_ns = calloc((size_t)s->count, sizeof(*s->seen_ns));
	s->done_ns = calloc((size_t)s->count, sizeof(*s->done_ns));
	s->at_ns = calloc((size_t)s->count, sizeof(*s->at_ns));
	if (s->seen_ns == NULL || s->done_ns == NULL || s->at_ns == NULL)
		return frag_op_fail(op, -ENOMEM, "no memory");
	return s->kernel ? make_kernel(s, op) : 0;
}

static int touch(const struct gpu_sink *s, struct frag_op *op, const struct frag_tensor *tensor)
{
	struct bench_job job = {
		.in = frag_tensor_data(tensor),
		.out = (void *)(uintptr_t)frag_tensor_data(s->result),
		.count = frag_tensor_size_bytes(tensor) / 16,
	};
	const struct frag_launch launch = {FRAG_LAUNCH_INIT, .grid = {BENCH_BLOCKS, 1, 1},
					   .block = {BENCH_THREADS, 1, 1}};
	struct frag_err err = FRAG_ERR_INIT;
	int r = frag_tensor_dl(tensor)->device.type != FRAG_DEVICE_CUDA ? -EXDEV : 0;

	if (r == 0)
		r = frag_kernel_launch(s->touch, &launch, (void *[]){&job}, &err);
	if (r == 0)
		r = frag_kernel_wait(s->touch, NULL, &err);
	return r < 0 ? frag_op_fail(op, r, "no kernel ran: %s: %s", frag_strerror(r), err.text) : 0;
}

static int sink_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	struct gpu_sink *s = state;
	int64_t now_ns, sent_ns = 0;
	int r = frag_tick_receive(tick, 0, &message);

	if (r < 0)
		return r;
	now_ns = bench_now_ns(); /* the tensor is written */
	if (s->received == s->count)
		return 0;
	(void)frag_metadata_get_i64(frag_tick_metadata(tick), "sent_ns", &sent_ns);
	s->bytes = frag_tensor_size_bytes(frag_message_tensor_at(message, 0, NULL));
	s->at_ns[s->received] = now_ns;
	s->seen_ns[s->received] = now_ns - sent_ns;
	r = s->kernel ? touch(s, frag_tick_op(tick), frag_message_tensor_at(message, 0, NULL)) : 0;
	s->done_ns[s->received++] = bench_now_ns() - sent_ns;
	return r;
}

/* Of the times behind the first tenth. */
static void percentiles(int64_t *times, int64_t count, int64_t *out_p50, int64_t *out_p99)
{
	int64_t skipped = count / 10, n = count - skipped;

	qsort(times + skipped, (size_t)n, sizeof(*times), bench_by_size);
	*out_p50 = times[skipped + n / 2];
	*out_p99 = times[skipped + n * 99 / 100];
}

/* How many came a period or more later than the one that was the earliest for its turn. */
static int64_t count_late(const struct gpu_sink *s)
{
	int64_t earliest = INT64_MAX, late = 0;

	for (int64_t i = 0; i < s->received; i++)
		if (s->at_ns[i] - i * s->period_ns < earliest)
			earliest = s->at_ns[i] - i * s->period_ns;
	for (int64_t i = 0; i < s->received; i++)
		late += s->at_ns[i] - i * s->period_ns - earliest >= s->period_ns;
	return late;
}

/*
 * "RECEIVED LATE SEEN_P50 SEEN_P99 DONE_P50 DONE_P99 BYTES SPAN CPU COUNTED FIRST": times in ns;
 * SPAN: in which the last COUNTED messages came, which are all but the first tenth; CPU: of this
 * process; FIRST: the first message's trip.
 */
static int sink_stop(void *state, struct frag_op *op)
{
	struct gpu_sink *s = state;
	int64_t seen50, seen99, done50, done99, cpu_ns, first_trip_ns, last, from;
	struct rusage used;
	FILE *f = fopen(s->file, "w");

	if (f == NULL || s->received == 0)
		return frag_op_fail(op, -EIO, "nothing was received, or %s cannot be written",
				    s->file);
	getrusage(RUSAGE_SELF, &used);
	cpu_ns = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * INT64_C(1000000000) +
		 (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * INT64_C(1000);
	last = s->received - 1;
	from = s->received / 10;
	first_trip_ns = s->seen_ns[0];
	percentiles(s->seen_ns, s->received, &seen50, &seen99);
	percentiles(s->done_ns, s->received, &done50, &done99);
	fprintf(f,
		"%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64
		" %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
		s->received, s->period_ns > 0 ? count_late(s) : 0, seen50, seen99, done50, done99,
		s->bytes, s->at_ns[last] - s->at_ns[from], cpu_ns, last - from, first_trip_ns);
	return fclose(f) == 0 ? 0 : -EIO;
}

static void sink_fini(void *state, struct frag_op *op)
{
	struct gpu_sink *s = state;

	free(s->seen_ns);
	free(s->done_ns);
	free(s->at_ns);
	frag_kernel_destroy(s->touch);
	frag_tensor_unref(s->result);
}

const struct frag_op_type bench_gpu_sink_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_gpu_sink",
	.headline = "Notes when it has each tensor, and when a kernel has read it",
	.state_size = sizeof(struct gpu_sink),
	FRAG_PORTS(sink_ports),
	FRAG_PARAMS(sink_params),
	.initialize = sink_initialize,
	.compute = sink_compute,
	.stop = sink_stop,
	.fini = sink_fini,
};
