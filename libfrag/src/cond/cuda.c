// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <base/alloc.h>
#include <base/lock.h>
#include <cond/condition.h>
#include <data/message.h>

/*
 * The conditions of an operator that is to be ticked only once a GPU has written what it will
 * receive: its receive then waits for nothing. They differ in what they look at: in frag the work
 * that a stream has been given is an event, and events belong to tensors.
 *
 * The end of the work is reported on another thread, when the condition may be gone. So what is
 * told about it is a waker of its own, which the condition leaves when its operator stops.
 */
struct waker {
	_Atomic uint32_t refs;            /* of the condition, and of the report that is due */
	struct fragi_lock lock;           /* of condition */
	struct frag_condition *condition; /* NULL: it needs no report any more */
	_Atomic(const void *) awaited;    /* the work whose end will be reported; NULL: none */
};

struct written {
	const char *receiver;
	const char *event_name; /* NULL: of all tensors */
	struct waker *waker;
};

static const struct frag_param params[] = {
	FRAG_PARAM_STRING(struct written, receiver, NULL, .flags = FRAG_PARAM_OPTIONAL,
			  .headline = "Input; may be left out where the operator has one"),
};
static const struct frag_param event_params[] = {
	FRAG_PARAM_STRING(struct written, receiver, NULL, .flags = FRAG_PARAM_OPTIONAL,
			  .headline = "Input; may be left out where the operator has one"),
	FRAG_PARAM_STRING(struct written, event_name, NULL, .flags = FRAG_PARAM_OPTIONAL,
			  .headline = "Tensor whose event it is; left out: those of all tensors"),
};

static void unref(struct waker *waker)
{
	uint32_t before = atomic_fetch_sub_explicit(&waker->refs, 1, memory_order_acq_rel);

	assert(before > 0);
	if (before == 1)
		fragi_free(waker);
}

static int bind(void *state, struct frag_condition *condition, struct frag_err *err)
{
	struct written *s = state;

	condition->sum = 1;
	s->waker = fragi_calloc(1, sizeof(*s->waker));
	if (s->waker == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory");
	atomic_init(&s->waker->refs, 1);
	s->waker->condition = condition;
	return 0;
}

static void leave(struct waker *waker)
{
	fragi_lock_take(&waker->lock);
	waker->condition = NULL;
	fragi_lock_leave(&waker->lock);
}

static int stop(void *state, struct frag_condition *condition)
{
	(void)condition;
	leave(((struct written *)state)->waker);
	return 0;
}

static void fini(void *state)
{
	struct waker *waker = ((struct written *)state)->waker;

	if (waker == NULL)
		return;
	leave(waker);
	unref(waker);
}

static void report(void *arg)
{
	struct waker *waker = arg;

	atomic_store_explicit(&waker->awaited, NULL, memory_order_release);
	fragi_lock_take(&waker->lock);
	if (waker->condition != NULL)
		frag_condition_changed(waker->condition);
	fragi_lock_leave(&waker->lock);
	unref(waker);
}

static struct fragi_work *unwritten(const void *state, const struct frag_message *message)
{
	const struct written *s = state;

	for (uint32_t i = 0; i < message->tensor_count; i++) {
		struct fragi_work *work = message->tensors[i].tensor->written;

		if (s->event_name != NULL && strcmp(message->tensors[i].name, s->event_name) != 0)
			continue;
		if (!fragi_work_is_over(work))
			return work;
	}
	return NULL;
}

/* Where the end is not reported, the receive waits. */
static enum frag_ready await(struct waker *waker, struct fragi_work *work)
{
	if (atomic_load_explicit(&waker->awaited, memory_order_acquire) == work)
		return FRAG_WAIT_EVENT;
	atomic_store_explicit(&waker->awaited, work, memory_order_relaxed);
	atomic_fetch_add_explicit(&waker->refs, 1, memory_order_relaxed);
	if (work->ops->then(work, report, waker) == 0)
		return FRAG_WAIT_EVENT;
	atomic_store_explicit(&waker->awaited, NULL, memory_order_relaxed);
	unref(waker);
	return FRAG_READY;
}

static enum frag_ready check_inputs(void *state, const struct fragi_waiting *inputs, uint32_t count,
				    int64_t now_ns, int64_t *out_until_ns)
{
	(void)count;
	(void)now_ns;
	(void)out_until_ns;
	if (inputs->ended)
		return FRAG_NEVER;
	if (inputs->count == 0 || inputs->least == 0)
		return FRAG_WAIT;
	return inputs->unwritten != NULL
		       ? await(((struct written *)state)->waker, inputs->unwritten)
		       : FRAG_READY;
}

#define CONDITION(symbol, graph_name, line, parameters)                                            \
	const struct fragi_built_in_condition symbol = {                                           \
		.type = {FRAG_CONDITION_TYPE_INIT, .name = graph_name, .headline = line,           \
			 .state_size = sizeof(struct written), FRAG_PARAMS(parameters),            \
			 .flags = FRAG_CONDITION_OUTSIDE, .bind = bind, .stop = stop,              \
			 .fini = fini},                                                            \
		.port_param = "receiver",                                                          \
		.port_dir = FRAG_IN,                                                               \
		.check_inputs = check_inputs,                                                      \
		.unwritten = unwritten,                                                            \
	}

CONDITION(fragi_condition_cuda_stream, "cuda_stream",
	  "A message waits, and its sender's stream has done what it had been given", params);
CONDITION(fragi_condition_cuda_event, "cuda_event",
	  "A message waits, and the event of a tensor has happened", event_params);
CONDITION(fragi_condition_cuda_buffer, "cuda_buffer",
	  "A message waits, and its tensors are written", params);
