// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <sched/tracking.h>

/*
 * The messages of a tick are all held until it ends, so their labels are read from there, when the
 * first message is emitted and at the end. Of the paths that have reached this operator it keeps
 * copies, each with a step more: they become the label of what it emits and, in a leaf, the result.
 */
struct fragi_tracked {
	struct frag_tracker *tracker;
	uint32_t id;
	bool is_leaf, is_probe;
	bool keeps_steps;           /* it adds itself to the paths */
	_Atomic uint64_t **emitted; /* [port]: messages of a root or probe; NULL: it is none */
	/* of the tick */
	uint64_t tick, begin;
	uint32_t seen;     /* received messages that were read */
	bool lost;         /* there were paths beyond a bound: none begins here instead */
	bool begins;       /* a cycle has ended here, and the next turn begins */
	uint64_t error_ns; /* of the paths so far, of which some came from other nodes */
	struct fragi_step *steps;
	uint32_t step_count, path_count, capacity;
};

/* Makes room for so many more steps. Returns them; NULL: memory is short. */
static struct fragi_step *steps_add(struct fragi_tracked *tracked, uint32_t count)
{
	uint32_t capacity = tracked->capacity;
	struct fragi_step *steps;

	if (tracked->step_count + count > capacity) {
		while (capacity < tracked->step_count + count)
			capacity = capacity > 0 ? capacity * 2 : 16;
		steps = fragi_realloc(tracked->steps, capacity * sizeof(*steps));
		if (steps == NULL)
			return NULL;
		tracked->steps = steps;
		tracked->capacity = capacity;
	}
	steps = tracked->steps + tracked->step_count;
	tracked->step_count += count;
	return steps;
}

/*
 * The begin of a tick may have been read before another thread published what the tick receives.
 * Times along a path do not go back.
 */
static uint64_t later(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) > 0 ? a : b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void lose(struct fragi_tracked *tracked, const char *why)
{
	tracked->lost = true;
	fragi_tracker_miss(tracked->tracker, why);
}

static void record(const struct fragi_tracked *tracked, const struct fragi_step *path)
{
	fragi_tracker_record(tracked->tracker, path);
	if (tracked->error_ns > 0)
		fragi_tracker_note_error(tracked->tracker, path, tracked->error_ns);
}

static void begin_path(struct fragi_tracked *tracked)
{
	struct fragi_step *step = steps_add(tracked, 1);

	if (step == NULL) {
		lose(tracked, "out of memory");
		return;
	}
	*step = (struct fragi_step){.op = tracked->id,
				    .left = 1,
				    .received = tracked->begin,
				    .published = tracked->begin};
	tracked->path_count++;
}

static bool contains(const struct fragi_step *path, uint32_t op)
{
	for (uint32_t i = 0; i < path->left; i++)
		if (path[i].op == op)
			return true;
	return false;
}

/* The step of this operator behind that before it, whose message has a label. */
static struct fragi_step next_step(const struct fragi_tracked *tracked,
				   const struct fragi_label *label, const struct fragi_step *before)
{
	struct fragi_step step = {
		.op = tracked->id, .left = 1, .received = later(tracked->begin, before->published)};
	uint64_t arrived_ns;

	step.published = step.received;
	if (label->arrived == 0)
		return step;
	arrived_ns = least(fragi_stamp_diff_ns(before->published, label->arrived),
			   fragi_stamp_diff_ns(before->published, step.received));
	step.held_ns = least(label->held_ns, arrived_ns);
	step.network_ns = arrived_ns - step.held_ns;
	return step;
}

/*
 * Takes over a path that a message has brought with its label. One that was here before is a cycle:
 * it ends now, at the receive.
 */
static void take_path(struct fragi_tracked *tracked, const struct fragi_label *label,
		      const struct fragi_step *path)
{
	bool is_cycle = contains(path, tracked->id);
	uint32_t length = path->left + (tracked->keeps_steps || is_cycle ? 1 : 0);
	struct fragi_step *steps = NULL;

	if (length > FRAG_TRACK_STEPS_MAX || tracked->path_count == FRAG_TRACK_MESSAGE_PATHS_MAX) {
		lose(tracked, length > FRAG_TRACK_STEPS_MAX ? "more than 256 operators in a path"
							    : "more than 64 paths in a message");
		return;
	}
	steps = steps_add(tracked, length);
	if (steps == NULL) {
		lose(tracked, "out of memory");
		return;
	}
	memcpy(steps, path, path->left * sizeof(*steps));
	if (length > path->left) {
		for (uint32_t i = 0; i < path->left; i++)
			steps[i].left++;
		steps[path->left] = next_step(tracked, label, &path[path->left - 1]);
	}
	if (!is_cycle) {
		tracked->path_count++;
		return;
	}
	record(tracked, steps);
	fragi_tracker_log(tracked->tracker, steps, length);
	assert(length <= tracked->step_count);
	tracked->step_count -= length;
	tracked->begins = true;
}

/* A path from another process has names in place of numbers. */
static void take_path_from_elsewhere(struct fragi_tracked *tracked, const struct fragi_label *label,
				     const struct fragi_step *path)
{
	struct fragi_step steps[FRAG_TRACK_STEPS_MAX];
	int64_t number;

	if (path->left > FRAG_TRACK_STEPS_MAX) {
		lose(tracked, "more than 256 operators in a path");
		return;
	}
	for (uint32_t i = 0; i < path->left; i++) {
		number = fragi_tracker_number_of(tracked->tracker,
						 fragi_label_name(label, &path[i]));
		if (number < 0) {
			lose(tracked, "more than 4096 operators elsewhere, or out of memory");
			return;
		}
		steps[i] = path[i];
		steps[i].op = (uint32_t)number;
	}
	take_path(tracked, label, steps);
}

static bool is_of_tracker(const struct fragi_tracked *tracked, const struct fragi_label *label)
{
	if (label->maker == NULL)
		return fragi_tracker_names(tracked->tracker) != NULL;
	return ((const struct fragi_tracked *)label->maker)->tracker == tracked->tracker;
}

static void take_label(struct fragi_tracked *tracked, const struct fragi_label *label)
{
	if (label->step_count == 0 && label->maker == NULL)
		lose(tracked, "paths whose clocks are not compared yet, or too many of them");
	tracked->lost |= label->step_count == 0;
	if (label->error_ns > tracked->error_ns)
		tracked->error_ns = label->error_ns;
	for (const struct fragi_step *path = label->steps; path < label->steps + label->step_count;
	     path += path->left)
		if (label->maker == NULL)
			take_path_from_elsewhere(tracked, label, path);
		else
			take_path(tracked, label, path);
}

/* Reads the labels of the messages that were received since the last call. */
static void collect(struct fragi_tracked *tracked, const struct frag_tick *tick)
{
	for (; tracked->seen < tick->received_count; tracked->seen++) {
		const struct frag_message *message = tick->received[tracked->seen];

		if ((message->stamps & FRAGI_STAMP_LABEL) != 0 &&
		    is_of_tracker(tracked, message->label))
			take_label(tracked, message->label);
	}
}

/* Sets when this operator published, in all paths that end with it. */
static void publish(const struct fragi_tracked *tracked, struct fragi_step *steps, uint32_t count)
{
	uint64_t now = fragi_stamp();

	for (struct fragi_step *path = steps; path < steps + count; path += path->left)
		if (path[path->left - 1].op == tracked->id)
			path[path->left - 1].published = later(now, path[path->left - 1].received);
}

/* A label without paths is that of a message whose paths are beyond a bound. */
static struct fragi_label *label_create(struct fragi_tracked *tracked)
{
	struct fragi_label *label;

	if (tracked->begins || (tracked->path_count == 0 && !tracked->lost))
		begin_path(tracked);
	tracked->begins = false;
	label = fragi_label_create(tracked->step_count);
	if (label == NULL)
		return NULL;
	if (tracked->step_count > 0)
		memcpy(label->steps, tracked->steps, tracked->step_count * sizeof(label->steps[0]));
	publish(tracked, label->steps, label->step_count);
	label->maker = tracked;
	label->names = fragi_tracker_names(tracked->tracker);
	label->error_ns = tracked->error_ns;
	label->tick = tracked->tick;
	return label;
}

static bool is_mine(const struct fragi_tracked *tracked, const struct frag_message *message)
{
	return (message->stamps & FRAGI_STAMP_LABEL) != 0 && message->label->maker == tracked &&
	       message->label->tick == tracked->tick;
}

/*
 * A message that others hold, because it is forwarded, is labelled in a copy that shares its
 * content: the others are to find the label that it came with. One that this tick has emitted
 * before has its label already.
 */
static struct frag_message *emit(struct frag_tick *tick, uint32_t port,
				 struct frag_message *message)
{
	struct fragi_tracked *tracked = tick->op->tracked;
	struct fragi_label *label;

	message = fragi_inside_emit(FRAGI_AROUND_TRACKING, tick, port, message);
	if (message == NULL)
		return NULL;
	if (tracked->emitted != NULL)
		atomic_fetch_add_explicit(tracked->emitted[port], 1, memory_order_relaxed);
	if (is_mine(tracked, message))
		return message;
	if (!fragi_message_takes_paths(message)) {
		message = frag_message_writable(message);
		if (message == NULL)
			return NULL;
	}
	collect(tracked, tick);
	label = label_create(tracked);
	if (label == NULL)
		fragi_tracker_miss(tracked->tracker, "out of memory");
	fragi_message_set_label(message, label);
	return message;
}

static void end_leaf(struct fragi_tracked *tracked)
{
	publish(tracked, tracked->steps, tracked->step_count);
	for (uint32_t i = 0; i < tracked->step_count; i += tracked->steps[i].left)
		record(tracked, &tracked->steps[i]);
	if (tracked->step_count > 0)
		fragi_tracker_log(tracked->tracker, tracked->steps, tracked->step_count);
}

/* Those that go on count here too. One that has begun here leads to nothing yet. */
static void end_probe(struct fragi_tracked *tracked)
{
	publish(tracked, tracked->steps, tracked->step_count);
	for (uint32_t i = 0; i < tracked->step_count; i += tracked->steps[i].left)
		if (tracked->steps[i].left > 1)
			record(tracked, &tracked->steps[i]);
}

static bool is_wanted(const struct fragi_exec *exec)
{
	return exec->op->tracked != NULL;
}

static int compute(void *self, struct frag_tick *tick)
{
	struct fragi_tracked *tracked = tick->op->tracked;
	int r;

	if (!((struct fragi_exec *)tick)->pending) {
		tracked->tick = tick->number;
		tracked->begin = tick->stamp;
		tracked->seen = tracked->step_count = tracked->path_count = 0;
		tracked->error_ns = 0;
		tracked->lost = tracked->begins = false;
	}
	r = fragi_inside_compute(FRAGI_AROUND_TRACKING, self, tick);
	if (fragi_tick_goes_on(tick, r))
		return r;
	collect(tracked, tick);
	if (tracked->is_leaf) {
		if (tracked->path_count == 0 && tracked->emitted != NULL && !tracked->lost)
			begin_path(tracked);
		end_leaf(tracked);
	} else if (tracked->is_probe) {
		end_probe(tracked);
	}
	return r;
}

const struct fragi_around fragi_around_tracking = {
	.is_wanted = is_wanted,
	.compute = compute,
	.emit = emit,
};

static int sources_add(struct fragi_tracked *tracked, struct frag_op *op, const char *name)
{
	tracked->emitted = fragi_arena_alloc(&op->fragment->arena,
					     (op->port_count + 1) * sizeof(*tracked->emitted));
	if (tracked->emitted == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < op->port_count; i++) {
		if (op->ports[i].dir != FRAG_OUT)
			continue;
		tracked->emitted[i] =
			fragi_tracker_add_source(tracked->tracker, name, op->ports[i].name);
		if (tracked->emitted[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

int fragi_tracking_install(struct frag_op *op, struct frag_tracker *tracker, const char *name,
			   bool is_root, bool is_leaf)
{
	struct fragi_tracked *tracked = fragi_arena_alloc(&op->fragment->arena, sizeof(*tracked));
	bool is_named = fragi_tracker_is_probe(tracker, op);
	int id = fragi_tracker_add_op(tracker, name);

	if (tracked == NULL || id < 0)
		return -ENOMEM;
	*tracked = (struct fragi_tracked){
		.tracker = tracker,
		.id = (uint32_t)id,
		.is_leaf = is_leaf,
		.is_probe = !is_leaf && is_named,
	};
	tracked->keeps_steps = is_leaf || tracked->is_probe || !fragi_tracker_is_limited(tracker);
	if ((is_root || tracked->is_probe) && sources_add(tracked, op, name) < 0)
		return -ENOMEM;
	op->tracked = tracked;
	return 0;
}

void fragi_tracking_release(struct frag_op *op)
{
	if (op->tracked == NULL)
		return;
	fragi_free(op->tracked->steps);
	op->tracked->steps = NULL;
	op->tracked->capacity = op->tracked->step_count = op->tracked->path_count = 0;
}
