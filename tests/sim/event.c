// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdlib.h>

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void insert(struct sim *sim, struct sim_event event)
{
	struct sim_events *events = &sim->events;
	size_t place;

	if (events->count == events->capacity) {
		events->capacity = events->capacity == 0 ? 1024 : events->capacity * 2;
		events->heap = realloc(events->heap, events->capacity * sizeof(*events->heap));
		if (events->heap == NULL)
			abort();
	}
	for (place = events->count++; place > 0; place = (place - 1) / 2) {
		if (!before(&event, &events->heap[(place - 1) / 2]))
			break;
		events->heap[place] = events->heap[(place - 1) / 2];
	}
	events->heap[place] = event;
}

void sim_put(struct sim *sim, int64_t at_ns, enum sim_event_kind kind, uint32_t a, uint32_t b,
	     uint64_t c)
{
	insert(sim, (struct sim_event){at_ns < sim->now_ns ? sim->now_ns : at_ns,
				       ++sim->events.last_order, kind, a, b, c});
}

void sim_put_back(struct sim *sim, struct sim_event event, int64_t at_ns)
{
	event.at_ns = at_ns;
	insert(sim, event);
}

bool sim_take(struct sim *sim, struct sim_event *out_event)
{
	struct sim_events *events = &sim->events;
	struct sim_event last;
	size_t place = 0, child;

	if (events->count == 0)
		return false;
	*out_event = events->heap[0];
	last = events->heap[--events->count];
	while ((child = 2 * place + 1) < events->count) {
		if (child + 1 < events->count &&
		    before(&events->heap[child + 1], &events->heap[child]))
			child++;
		if (!before(&events->heap[child], &last))
			break;
		events->heap[place] = events->heap[child];
		place = child;
	}
	events->heap[place] = last;
	return true;
}

void sim_pipe_put(struct sim *sim, struct sim_pipe *pipe, int64_t at_ns, enum sim_frame_kind kind,
		  uint8_t *bytes, size_t size)
{
	struct sim_frame *frame = malloc(sizeof(*frame));

	(void)sim;
	if (frame == NULL)
		abort();
	if (at_ns < pipe->last_at_ns)
		at_ns = pipe->last_at_ns;
	pipe->last_at_ns = at_ns;
	*frame = (struct sim_frame){.at_ns = at_ns, .kind = kind, .bytes = bytes, .size = size};
	if (pipe->last != NULL)
		pipe->last->next = frame;
	else
		pipe->first = frame;
	pipe->last = frame;
	pipe->count++;
}

/* The caller frees the frame and its bytes. */
struct sim_frame *sim_pipe_take(struct sim_pipe *pipe)
{
	struct sim_frame *frame = pipe->first;

	if (frame == NULL)
		return NULL;
	pipe->first = frame->next;
	if (pipe->first == NULL)
		pipe->last = NULL;
	pipe->count--;
	return frame;
}

void sim_pipe_clear(struct sim_pipe *pipe)
{
	struct sim_frame *frame;

	while ((frame = sim_pipe_take(pipe)) != NULL) {
		free(frame->bytes);
		free(frame);
	}
}
