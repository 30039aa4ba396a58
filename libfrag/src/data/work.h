/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_WORK_H
#define FRAGI_DATA_WORK_H

#include <stdatomic.h>
#include <stdbool.h>

#include <base/diag.h>
#include <frag/tensor.h>

/*
 * Work of a GPU: all that a stream had been given at one moment, which the GPU does later. A tensor
 * refers to the work that writes it (tensor.h), so a message is sent before its data is there, and
 * neither side waits with the CPU. Memory that work reads or writes is released after it.
 *
 * Work is counted by references. Every function may be called on any thread, but for those of a
 * stream. Where no stream was opened there is no work.
 */
struct fragi_work {
	_Atomic uint32_t refs;
	_Atomic bool done; /* known to be done: the driver is not asked again */
	const struct fragi_work_ops *ops;
};

/* A stream of a GPU (CUstream) from which work is recorded. */
struct fragi_stream {
	void *handle;
	struct frag_device gpu;
	struct fragi_stream *next; /* its owner's, on another GPU; NULL: none */
};

struct fragi_work_ops {
	/*
	 * What `handle`, a CUstream, is given from now on begins after the work, without waiting
	 * here. Returns 0; -EIO: the GPU refuses.
	 */
	int (*follow)(struct fragi_work *work, void *handle, struct frag_err *err);
	/* Waits with the CPU. Returns 0; -EIO: the GPU has failed. */
	int (*wait)(struct fragi_work *work, struct frag_err *err);
	/* Returns 1; 0: not yet; -EIO: the GPU has failed, and does nothing any more. */
	int (*is_done)(struct fragi_work *work, struct frag_err *err);
	/*
	 * Calls fn once after the work, on a thread of its own that may call the driver. Returns 0;
	 * -EIO: the GPU refuses, -ENOMEM: it is not called.
	 */
	int (*then)(struct fragi_work *work, void (*fn)(void *arg), void *arg);
	/* The last reference is gone. */
	void (*free)(struct fragi_work *work);
};

/* What a device's table (memory.h) has for streams. Thread: one at a time for a stream. */
struct fragi_stream_ops {
	/*
	 * - handle: a CUstream of that GPU, borrowed until close; NULL: makes one that does not
	 *   wait for the default stream
	 * Returns 0; -ENOMEM; -ENODEV; -EIO.
	 */
	int (*open)(struct frag_device gpu, void *handle, struct fragi_stream **out,
		    struct frag_err *err);
	/*
	 * Waits with the CPU for all that the stream was given, then until every function that
	 * `then` was given for its work has returned. Returns 0; -EIO: the GPU has failed, and
	 * the functions have returned all the same.
	 */
	int (*finish)(struct fragi_stream *stream, struct frag_err *err);
	/* What was recorded may outlive the stream. NULL is accepted. */
	void (*close)(struct fragi_stream *stream);
	/*
	 * What the stream has been given until now. After warm-up it makes no event, and takes no
	 * lock. Returns 0 and a reference; -ENOMEM; -EIO.
	 */
	int (*record)(struct fragi_stream *stream, struct fragi_work **out, struct frag_err *err);
	/*
	 * Gives the stream a copy of a tensor's elements, without gaps and in row-major order, to
	 * `to`. Each side is memory of the stream's GPU or of the host, and stays as it is until
	 * the copy is done. Returns 0; -EIO: the GPU refuses.
	 */
	int (*copy)(struct fragi_stream *stream, const struct frag_dltensor *from,
		    size_t element_bytes, void *to, struct frag_err *err);
};

static inline struct fragi_work *fragi_work_ref(struct fragi_work *work)
{
	atomic_fetch_add_explicit(&work->refs, 1, memory_order_relaxed);
	return work;
}

/* NULL is accepted. */
static inline void fragi_work_unref(struct fragi_work *work)
{
	if (work != NULL && atomic_fetch_sub_explicit(&work->refs, 1, memory_order_acq_rel) == 1)
		work->ops->free(work);
}

/* Whether memory that the work uses may be used again. NULL: there is no work. */
static inline bool fragi_work_is_over(struct fragi_work *work)
{
	return work == NULL || atomic_load_explicit(&work->done, memory_order_acquire) ||
	       work->ops->is_done(work, NULL) != 0;
}

/* As the functions of struct fragi_work_ops; NULL: there is no work. */
static inline int fragi_work_follow(struct fragi_work *work, void *handle, struct frag_err *err)
{
	return work == NULL || atomic_load_explicit(&work->done, memory_order_acquire)
		       ? 0
		       : work->ops->follow(work, handle, err);
}

static inline int fragi_work_wait(struct fragi_work *work, struct frag_err *err)
{
	return work == NULL || atomic_load_explicit(&work->done, memory_order_acquire)
		       ? 0
		       : work->ops->wait(work, err);
}

/*
 * Calls fn once after work that is not over yet, on another thread; where that is refused, here,
 * after waiting.
 */
static inline void fragi_work_defer(struct fragi_work *work, void (*fn)(void *arg), void *arg)
{
	if (work->ops->then(work, fn, arg) == 0)
		return;
	(void)work->ops->wait(work, NULL);
	fn(arg);
}

/* The same with work that may be over: then here, at once. */
static inline void fragi_work_then(struct fragi_work *work, void (*fn)(void *arg), void *arg)
{
	if (fragi_work_is_over(work))
		fn(arg);
	else
		fragi_work_defer(work, fn, arg);
}

#endif
