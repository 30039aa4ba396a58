// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#define LOG_TOPIC "cuda"
#include <base/alloc.h>
#include <base/log.h>

#include "calls.h"
#include "module.h"

/*
 * Work is an event, and belongs to the stream that it was recorded on. The stream's thread takes
 * events from `free`; other threads give them back to `returned`, and the stream's thread takes all
 * of those at once. So there is no lock, and no event is popped while another thread pushes it.
 *
 * The stream stays until it is closed and all its work was given back.
 */
struct cuda_work {
	struct fragi_work base;
	CUevent event;
	struct cuda_stream *stream;
	struct cuda_work *next;
};

struct cuda_stream {
	struct fragi_stream base;
	const struct cuda_device *gpu;
	CUstream side; /* waits for work, to report its end (calls.h) */
	bool is_mine;  /* made here, and not the user's */
	struct cuda_work *free;
	_Atomic(struct cuda_work *) returned;
	_Atomic uint32_t refs; /* until it is closed, and of work */
	struct cuda_calls calls;
};

static struct cuda_stream *stream_of(struct fragi_stream *stream)
{
	return (struct cuda_stream *)stream;
}

static struct cuda_work *work_of(struct fragi_work *work)
{
	return (struct cuda_work *)work;
}

static CUstream handle_of(const struct cuda_stream *stream)
{
	return stream->base.handle;
}

static void destroy_events(struct cuda_work *work)
{
	struct cuda_work *next;

	for (; work != NULL; work = next) {
		next = work->next;
		(void)cu.cuEventDestroy_v2(work->event);
		fragi_free(work);
	}
}

/* The driver does first what a stream still has. */
static void destroy_stream(struct cuda_stream *stream)
{
	struct frag_err err = FRAG_ERR_INIT;

	if (cuda_device_enter(stream->gpu, &err) < 0) {
		log_error(NULL, "a stream was not destroyed: %s", err.text);
		return;
	}
	destroy_events(stream->free);
	destroy_events(atomic_load_explicit(&stream->returned, memory_order_acquire));
	if (stream->side != NULL)
		(void)cu.cuStreamDestroy_v2(stream->side);
	if (stream->is_mine)
		(void)cu.cuStreamDestroy_v2(handle_of(stream));
	cuda_device_leave();
	fragi_free(stream);
}

static void unref_stream(struct cuda_stream *stream)
{
	if (atomic_fetch_sub_explicit(&stream->refs, 1, memory_order_acq_rel) == 1)
		destroy_stream(stream);
}

static int make_stream(const struct cuda_device *gpu, CUstream *out, struct frag_err *err)
{
	return cuda_check(cu.cuStreamCreateWithPriority(out, CU_STREAM_NON_BLOCKING, 0), err,
			  "GPU %d (%s): cuStreamCreateWithPriority", (int)gpu->id, gpu->name);
}

static int stream_open(struct frag_device device, void *handle, struct fragi_stream **out,
		       struct frag_err *err)
{
	const struct cuda_device *gpu = cuda_device_of(device.id);
	struct cuda_stream *stream;
	CUstream mine = handle;
	int r;

	if (gpu == NULL)
		return frag_err_set(err, -ENODEV, "nothing has opened GPU %d", (int)device.id);
	stream = fragi_calloc(1, sizeof(*stream));
	if (stream == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory");
	stream->gpu = gpu;
	stream->base.gpu = device;
	atomic_init(&stream->refs, 1);
	r = cuda_device_enter(gpu, err);
	if (r == 0) {
		r = make_stream(gpu, &stream->side, err);
		if (r == 0 && handle == NULL)
			r = make_stream(gpu, &mine, err);
		if (r < 0 && stream->side != NULL)
			(void)cu.cuStreamDestroy_v2(stream->side);
		cuda_device_leave();
	}
	if (r < 0) {
		fragi_free(stream);
		return r;
	}
	stream->base.handle = mine;
	stream->is_mine = handle == NULL;
	*out = &stream->base;
	return 0;
}

static int stream_finish(struct fragi_stream *base, struct frag_err *err)
{
	struct cuda_stream *stream = stream_of(base);
	const struct cuda_device *gpu = stream->gpu;
	int r = cuda_device_enter(gpu, err);

	if (r == 0) {
		r = cuda_check(cu.cuStreamSynchronize(handle_of(stream)), err,
			       "GPU %d (%s): cuStreamSynchronize", (int)gpu->id, gpu->name);
		cuda_device_leave();
	}
	cuda_calls_settle(&stream->calls);
	return r;
}

static void stream_close(struct fragi_stream *stream)
{
	if (stream != NULL)
		unref_stream(stream_of(stream));
}

static int work_follow(struct fragi_work *work, void *handle, struct frag_err *err)
{
	const struct cuda_device *gpu = work_of(work)->stream->gpu;
	int r;

	if (handle == handle_of(work_of(work)->stream))
		return 0; /* a stream does one thing after the other */
	r = cuda_device_enter(gpu, err);
	if (r < 0)
		return r;
	r = cuda_check(cu.cuStreamWaitEvent(handle, work_of(work)->event, 0), err,
		       "GPU %d (%s): cuStreamWaitEvent", (int)gpu->id, gpu->name);
	cuda_device_leave();
	return r;
}

static int work_wait(struct fragi_work *work, struct frag_err *err)
{
	const struct cuda_device *gpu = work_of(work)->stream->gpu;
	int r = cuda_device_enter(gpu, err);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuEventSynchronize(work_of(work)->event), err,
		       "GPU %d (%s): cuEventSynchronize", (int)gpu->id, gpu->name);
	cuda_device_leave();
	if (r == 0)
		atomic_store_explicit(&work->done, true, memory_order_release);
	return r;
}

static int work_is_done(struct fragi_work *work, struct frag_err *err)
{
	const struct cuda_device *gpu = work_of(work)->stream->gpu;
	CUresult result;
	int r = cuda_device_enter(gpu, err);

	if (r < 0)
		return r;
	result = cu.cuEventQuery(work_of(work)->event);
	cuda_device_leave();
	if (result == CUDA_ERROR_NOT_READY)
		return 0;
	if (result != CUDA_SUCCESS) {
		(void)cuda_check(result, err, "GPU %d (%s): cuEventQuery", (int)gpu->id, gpu->name);
		return -EIO;
	}
	atomic_store_explicit(&work->done, true, memory_order_release);
	return 1;
}

static int work_then(struct fragi_work *work, void (*fn)(void *arg), void *arg)
{
	struct cuda_stream *stream = work_of(work)->stream;

	return cuda_call_after(stream->gpu, stream->side, work_of(work)->event, work,
			       &stream->calls, fn, arg);
}

static void work_free(struct fragi_work *base)
{
	struct cuda_work *work = work_of(base), *top;
	struct cuda_stream *stream = work->stream;

	top = atomic_load_explicit(&stream->returned, memory_order_relaxed);
	do {
		work->next = top;
	} while (!atomic_compare_exchange_weak_explicit(
		&stream->returned, &top, work, memory_order_release, memory_order_relaxed));
	unref_stream(stream);
}

static const struct fragi_work_ops work_ops = {
	.follow = work_follow,
	.wait = work_wait,
	.is_done = work_is_done,
	.then = work_then,
	.free = work_free,
};

/* In the context. One more event for the stream. */
static int make_work(struct cuda_stream *stream, struct frag_err *err)
{
	const struct cuda_device *gpu = stream->gpu;
	struct cuda_work *work = fragi_calloc(1, sizeof(*work));
	int r;

	if (work == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory");
	r = cuda_check(
		cu.cuEventCreate(&work->event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC),
		err, "GPU %d (%s): cuEventCreate", (int)gpu->id, gpu->name);
	if (r < 0) {
		fragi_free(work);
		return r;
	}
	work->base.ops = &work_ops;
	work->stream = stream;
	stream->free = work;
	return 0;
}

/* In the context. Records the first free event. */
static int record_free(struct cuda_stream *stream, struct frag_err *err)
{
	const struct cuda_device *gpu = stream->gpu;
	int r = 0;

	if (stream->free == NULL)
		stream->free =
			atomic_exchange_explicit(&stream->returned, NULL, memory_order_acquire);
	if (stream->free == NULL)
		r = make_work(stream, err);
	if (stream->free == NULL)
		return r;
	return cuda_check(cu.cuEventRecord(stream->free->event, handle_of(stream)), err,
			  "GPU %d (%s): cuEventRecord", (int)gpu->id, gpu->name);
}

static int stream_record(struct fragi_stream *base, struct fragi_work **out, struct frag_err *err)
{
	struct cuda_stream *stream = stream_of(base);
	struct cuda_work *work;
	int r = cuda_device_enter(stream->gpu, err);

	if (r < 0)
		return r;
	r = record_free(stream, err);
	cuda_device_leave();
	if (r < 0)
		return r;
	work = stream->free;
	stream->free = work->next;
	atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
	atomic_store_explicit(&work->base.done, false, memory_order_relaxed);
	atomic_store_explicit(&work->base.refs, 1, memory_order_relaxed);
	*out = &work->base;
	return 0;
}

static int stream_copy(struct fragi_stream *base, const struct frag_dltensor *from,
		       size_t element_bytes, void *to, struct frag_err *err)
{
	struct cuda_stream *stream = stream_of(base);

	return cuda_pack(stream->gpu, handle_of(stream), from, element_bytes, to, err);
}

const struct fragi_stream_ops cuda_streams = {
	.open = stream_open,
	.finish = stream_finish,
	.close = stream_close,
	.record = stream_record,
	.copy = stream_copy,
};
