// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/alloc.h>
#include <data/message.h>
#include <frag/cuda.h>
#include <sched/path_deadline.h>

/*
 * The work of an operator that has a stream. Emits record it for the tensors that they send, and
 * the end of a tick records it for what the tick received: each message is kept by one more
 * reference until that work is done. So whatever memory is made of, nothing that a GPU still reads
 * is released.
 */

static bool is_of_gpu(const struct frag_tensor *tensor)
{
	return tensor->dl.device.type != FRAG_DEVICE_CPU;
}

/* What the stream was given until now; where it cannot be recorded, waits for it. */
static int record(struct frag_tick *tick, struct fragi_work **out)
{
	struct fragi_op_stream *stream = tick->op->stream;
	struct frag_err why = FRAG_ERR_INIT;
	int r = stream->ops->record(stream->stream, out, &why);

	stream->has_work = true;
	if (r == 0)
		return 0;
	(void)stream->ops->finish(stream->stream, NULL);
	return frag_op_fail(tick->op, r, "the work of its stream cannot be followed: %s", why.text);
}

int fragi_stream_receive(struct frag_tick *tick, const struct frag_message *message)
{
	const struct fragi_op_stream *stream = tick->op->stream;
	struct frag_err why = FRAG_ERR_INIT;
	const uint64_t since = fragi_stamp();
	int r = stream != NULL ? fragi_message_follow(message, stream->stream->handle, &why)
			       : fragi_message_wait(message, &why);

	fragi_path_waited_for_gpu(tick, since);
	return r < 0 ? frag_op_fail(tick->op, r,
				    "the tensors of a received message are not written: %s",
				    why.text)
		     : 0;
}

/* Gives the new tensors of a message the work that writes them. */
static int set_written(struct frag_tick *tick, struct frag_message *message)
{
	struct fragi_work *work = NULL;
	struct frag_tensor *tensor;
	int r;

	for (uint32_t i = 0; i < message->tensor_count; i++) {
		tensor = message->tensors[i].tensor;
		if (!is_of_gpu(tensor))
			continue;
		if (!atomic_load_explicit(&tensor->frozen, memory_order_relaxed)) {
			r = work == NULL ? record(tick, &work) : 0;
			if (r < 0)
				return r;
			fragi_tensor_set_written(tensor, fragi_work_ref(work));
		}
		if (tensor->written != NULL)
			message->at_receive |= FRAGI_AT_RECEIVE_WORK;
	}
	fragi_work_unref(work);
	return 0;
}

static struct frag_message *emit(struct frag_tick *tick, uint32_t port,
				 struct frag_message *message)
{
	message = fragi_inside_emit(FRAGI_AROUND_STREAM, tick, port, message);
	/* What was emitted before is as it was. */
	if (message != NULL && !message->shared && set_written(tick, message) < 0) {
		fragi_message_unref(message);
		return NULL;
	}
	return message;
}

static bool has_tensor_of_gpu(const struct frag_message *message)
{
	for (uint32_t i = 0; i < message->tensor_count; i++)
		if (is_of_gpu(message->tensors[i].tensor))
			return true;
	return false;
}

static bool uses_memory(const struct frag_tick *tick)
{
	if (tick->op->stream->held_count > 0)
		return true;
	for (uint32_t i = 0; i < tick->received_count; i++)
		if (has_tensor_of_gpu(tick->received[i]))
			return true;
	return false;
}

static void unref_message(void *message)
{
	frag_message_unref(message);
}

static void unref_tensor(void *tensor)
{
	frag_tensor_unref(tensor);
}

/* Keeps what the tick has received and held until the stream's work is done. */
static int keep_memory(struct frag_tick *tick)
{
	struct fragi_op_stream *stream = tick->op->stream;
	struct fragi_work *work = NULL;
	int r = uses_memory(tick) ? record(tick, &work) : 0;
	bool is_over = fragi_work_is_over(work);

	for (uint32_t i = 0; i < stream->held_count; i++)
		if (is_over)
			frag_tensor_unref(stream->held[i]);
		else
			fragi_work_defer(work, unref_tensor, stream->held[i]);
	stream->held_count = 0;
	for (uint32_t i = 0; i < tick->received_count && !is_over; i++)
		if (has_tensor_of_gpu(tick->received[i]))
			fragi_work_defer(work, unref_message, frag_message_ref(tick->received[i]));
	fragi_work_unref(work);
	return r;
}

static bool is_wanted(const struct fragi_exec *exec)
{
	return exec->op->stream != NULL;
}

static int compute(void *self, struct frag_tick *tick)
{
	int r = fragi_inside_compute(FRAGI_AROUND_STREAM, self, tick), kept;

	if (fragi_tick_goes_on(tick, r))
		return r;
	kept = keep_memory(tick);
	return r < 0 ? r : kept < 0 ? kept : r;
}

const struct fragi_around fragi_around_stream = {
	.is_wanted = is_wanted,
	.compute = compute,
	.emit = emit,
};

/* The messages of a tick that is still pending are given up after this. */
void fragi_stream_end(struct fragi_exec *exec)
{
	struct fragi_op_stream *stream = exec->op->stream;

	if (stream == NULL)
		return;
	(void)stream->ops->finish(stream->stream, NULL);
	for (uint32_t i = 0; i < stream->held_count; i++)
		frag_tensor_unref(stream->held[i]);
	stream->held_count = 0;
}

void *frag_tick_stream(const struct frag_tick *tick)
{
	return frag_op_stream(tick->op);
}

void *frag_op_stream(const struct frag_op *op)
{
	return op->stream != NULL ? op->stream->stream->handle : NULL;
}

static int grow_held(struct fragi_op_stream *stream)
{
	uint32_t capacity = stream->held_capacity > 0 ? 2 * stream->held_capacity : 8;
	struct frag_tensor **held =
		fragi_realloc(stream->held, capacity * sizeof(struct frag_tensor *));

	if (held == NULL)
		return -ENOMEM;
	stream->held = held;
	stream->held_capacity = capacity;
	return 0;
}

int frag_tick_hold(struct frag_tick *tick, struct frag_tensor *tensor)
{
	struct fragi_op_stream *stream = tick->op->stream;

	if (stream == NULL || tensor == NULL) {
		frag_tensor_unref(tensor);
		return -EINVAL;
	}
	if (stream->held_count == stream->held_capacity && grow_held(stream) < 0) {
		(void)stream->ops->finish(stream->stream, NULL);
		frag_tensor_unref(tensor);
		return -ENOMEM;
	}
	stream->held[stream->held_count++] = tensor;
	return 0;
}

static void resume(void *op)
{
	frag_op_resume(op);
}

int frag_tick_await_stream(struct frag_tick *tick)
{
	struct fragi_work *work = NULL;
	int r = tick->op->stream != NULL ? record(tick, &work) : 0;

	if (r == 0 && !fragi_work_is_over(work)) {
		fragi_path_awaits_gpu(tick);
		fragi_work_defer(work, resume, tick->op);
		r = FRAG_PENDING;
	}
	fragi_work_unref(work);
	return r;
}
