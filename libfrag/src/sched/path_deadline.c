// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include <data/message.h>
#include <sched/path_deadline.h>

/*
 * The messages of a tick are all held until it ends, so their trails are read from there: when the
 * first message is emitted, and at the end by an operator that ends a path. What one tick makes of
 * several messages of a path goes on as one, since the begin of the oldest. So a trail has at most
 * one entry for each time that the operator is on a path.
 */

/* One place of the operator on one path. */
struct fragi_path_step {
	struct fragi_path_step *next;
	struct fragi_path_deadline *deadline;
	uint32_t at;
	/* of the tick, for what it emits */
	bool is_open;
	struct fragi_trail_entry entry; /* as its messages brought it, or of a path that begins */
};

struct fragi_on_path {
	struct fragi_path_step *steps, *last_steps; /* those where the path goes on, or ends */
	uint32_t travelling; /* of steps: those of paths that lead to other processes */
	/* of the tick */
	uint64_t tick;
	uint32_t seen; /* received messages that were read */
	/* a bit for each of the first 64 of them: it was delivered before, and has left the path */
	uint64_t redelivered;
};

static bool is_of(const struct fragi_path_step *step, const struct fragi_trail_entry *entry)
{
	return step->deadline->number == entry->deadline && step->at == entry->at + 1u &&
	       entry->slowest <= entry->at;
}

/* Takes over what a message has brought. */
static void take(struct fragi_path_step *step, const struct fragi_trail_entry *entry)
{
	uint16_t flags = entry->flags & FRAGI_TRAIL_FOREIGN;

	if (step->is_open) {
		flags |= step->entry.flags & FRAGI_TRAIL_FOREIGN;
		if ((int64_t)(entry->begin - step->entry.begin) < 0)
			step->entry = *entry;
	} else {
		step->entry = *entry;
	}
	step->entry.flags = flags;
	step->is_open = true;
}

static const struct fragi_trail *trail_of(const struct frag_message *message)
{
	return (message->stamps & FRAGI_STAMP_TRAIL) != 0 ? message->trail : NULL;
}

/* NULL also for a message that an earlier tick has received. */
static const struct fragi_trail *received_trail(const struct fragi_on_path *on,
						const struct frag_tick *tick, uint32_t i)
{
	if (i < 64 && (on->redelivered >> i & 1) != 0)
		return NULL;
	return trail_of(tick->received[i]);
}

void fragi_path_redelivered(struct frag_tick *tick)
{
	struct fragi_on_path *on = tick->op->on_path;

	if (on != NULL && tick->received_count < 64)
		on->redelivered |= (uint64_t)1 << tick->received_count;
}

/* Reads the trails of the messages that were received since the last call. */
static void collect(struct fragi_on_path *on, const struct frag_tick *tick)
{
	for (; on->seen < tick->received_count; on->seen++) {
		const struct fragi_trail *trail = received_trail(on, tick, on->seen);

		for (uint32_t i = 0; trail != NULL && i < trail->count; i++)
			for (struct fragi_path_step *step = on->steps; step != NULL;
			     step = step->next)
				if (is_of(step, &trail->entries[i]))
					take(step, &trail->entries[i]);
	}
}

/* How long the operator had the message: in its queue and in its tick. */
static uint64_t own_ns(const struct fragi_trail_entry *entry, uint64_t now)
{
	return fragi_stamp_diff_ns(entry->published, now);
}

/* What the step says of a message that is emitted now. */
static struct fragi_trail_entry entry_of(const struct fragi_path_step *step, uint64_t now)
{
	struct fragi_trail_entry entry = step->entry;
	uint64_t ns = own_ns(&entry, now);

	if (ns > entry.slowest_ns) {
		entry.slowest_ns = ns;
		entry.slowest = (uint16_t)step->at;
	}
	entry.deadline = step->deadline->number;
	entry.at = (uint16_t)step->at;
	entry.published = now;
	if (step->deadline->is_local)
		entry.flags |= FRAGI_TRAIL_LOCAL;
	return entry;
}

/* *out_trail: NULL when the message is on no path. Returns 0 or -ENOMEM. */
static int make_trail(const struct fragi_on_path *on, struct fragi_trail **out_trail)
{
	uint64_t now = fragi_stamp();
	uint32_t count = 0;

	*out_trail = NULL;
	for (const struct fragi_path_step *step = on->steps; step != NULL; step = step->next)
		count += step->is_open;
	if (count == 0)
		return 0;
	*out_trail = fragi_trail_create(count);
	if (*out_trail == NULL)
		return -ENOMEM;
	(*out_trail)->maker = on;
	(*out_trail)->tick = on->tick;
	count = 0;
	for (const struct fragi_path_step *step = on->steps; step != NULL; step = step->next)
		if (step->is_open)
			(*out_trail)->entries[count++] = entry_of(step, now);
	return 0;
}

/*
 * As in data flow tracking, a message that others hold gets its trail in a copy that shares its
 * content, and one that this tick has emitted before has it already.
 */
static struct frag_message *emit(struct frag_tick *tick, uint32_t port,
				 struct frag_message *message)
{
	struct fragi_on_path *on = tick->op->on_path;
	const struct fragi_trail *before;
	struct fragi_trail *trail;

	message = fragi_inside_emit(FRAGI_AROUND_PATH, tick, port, message);
	if (message == NULL)
		return NULL;
	before = trail_of(message);
	if (before != NULL && before->maker == on && before->tick == on->tick)
		return message;
	collect(on, tick);
	if (make_trail(on, &trail) < 0) {
		fragi_message_unref(message);
		return NULL;
	}
	if (trail == NULL && before == NULL)
		return message;
	if (fragi_message_is_busy(message)) {
		message = frag_message_writable(message);
		if (message == NULL) {
			if (trail != NULL)
				fragi_trail_unref(trail);
			return NULL;
		}
	}
	fragi_message_set_trail(message, trail);
	return message;
}

/* The end of a path. */

static void count_miss(struct fragi_exec *exec, struct fragi_path_deadline *deadline,
		       uint32_t slowest, uint64_t ns)
{
	struct fragi_exec *slow =
		deadline->ops[slowest] != NULL ? deadline->ops[slowest]->exec : NULL;

	deadline->misses++;
	deadline->slowest[slowest]++;
	deadline->longest_ns = ns > deadline->longest_ns ? ns : deadline->longest_ns;
	fragi_count(&exec->row->path_misses, 1);
	if (slow != NULL)
		atomic_fetch_add_explicit(&slow->row->slowest, 1, memory_order_relaxed);
}

/* Returns how long a late message took, which is counted; 0: it is not late. */
static uint64_t check(struct fragi_exec *exec, const struct fragi_path_step *step,
		      const struct fragi_trail_entry *entry, uint64_t now, uint32_t *out_slowest)
{
	struct fragi_path_deadline *deadline = step->deadline;
	uint64_t ns = fragi_stamp_diff_ns(entry->begin, now);

	if ((entry->flags & FRAGI_TRAIL_FOREIGN) != 0 || ns <= (uint64_t)deadline->budget_ns)
		return 0;
	*out_slowest = own_ns(entry, now) > entry->slowest_ns ? step->at : entry->slowest;
	count_miss(exec, deadline, *out_slowest, ns);
	return ns;
}

static void count_checked(struct fragi_exec *exec, struct fragi_path_deadline *deadline,
			  const struct fragi_trail_entry *entry)
{
	deadline->checked++;
	if ((entry->flags & FRAGI_TRAIL_FOREIGN) == 0)
		return;
	deadline->incomparable++;
	fragi_count(&exec->row->path_clocks, 1);
}

static int end_path(struct frag_tick *tick, const struct fragi_path_step *step,
		    const struct fragi_trail_entry *entry, uint64_t now)
{
	struct fragi_exec *exec = (struct fragi_exec *)tick;
	const struct fragi_path_deadline *deadline = step->deadline;
	char what[4 * FRAG_NAME_MAX + 80];
	uint32_t slowest;
	uint64_t ns;

	count_checked(exec, step->deadline, entry);
	ns = check(exec, step, entry, now, &slowest);
	if (ns == 0 || deadline->on_miss != FRAG_ON_MISS_STOP)
		return 0;
	snprintf(what, sizeof(what), "the path from %s (slowest: %s)", deadline->names[0],
		 deadline->names[slowest]);
	return fragi_deadline_fail(tick, (int64_t)ns, deadline->budget_ns, what);
}

/* Returns 0, or the failure of a deadline that stops. */
static int end_paths(const struct fragi_on_path *on, struct frag_tick *tick)
{
	uint64_t now = fragi_stamp();
	int r = 0, one;

	for (uint32_t m = 0; m < tick->received_count; m++) {
		const struct fragi_trail *trail = received_trail(on, tick, m);

		for (uint32_t i = 0; trail != NULL && i < trail->count; i++)
			for (const struct fragi_path_step *step = on->last_steps; step != NULL;
			     step = step->next) {
				if (!is_of(step, &trail->entries[i]))
					continue;
				one = end_path(tick, step, &trail->entries[i], now);
				r = one < 0 ? one : r;
			}
	}
	return r;
}

bool fragi_path_is_late(struct fragi_exec *exec, const struct frag_message *message)
{
	const struct fragi_trail *trail = trail_of(message);
	const struct fragi_on_path *on = exec->op->on_path;
	uint64_t now = fragi_stamp();
	uint32_t slowest;

	for (uint32_t i = 0; trail != NULL && on != NULL && i < trail->count; i++)
		for (const struct fragi_path_step *step = on->last_steps; step != NULL;
		     step = step->next) {
			if (step->deadline->on_miss != FRAG_ON_MISS_DROP ||
			    !is_of(step, &trail->entries[i]) ||
			    check(exec, step, &trail->entries[i], now, &slowest) == 0)
				continue;
			count_checked(exec, step->deadline, &trail->entries[i]);
			return true;
		}
	return false;
}

/* The tick. */

static bool is_wanted(const struct fragi_exec *exec)
{
	return exec->op->on_path != NULL;
}

static void begin_tick(struct fragi_on_path *on, const struct frag_tick *tick)
{
	on->tick = tick->number;
	on->seen = 0;
	on->redelivered = 0;
	for (struct fragi_path_step *step = on->steps; step != NULL; step = step->next) {
		step->is_open = step->at == 0;
		if (step->is_open)
			step->entry = (struct fragi_trail_entry){
				.begin = tick->stamp,
				.published = tick->stamp,
			};
	}
}

static int compute(void *self, struct frag_tick *tick)
{
	struct fragi_on_path *on = tick->op->on_path;
	int r, missed;

	if (!((struct fragi_exec *)tick)->pending)
		begin_tick(on, tick);
	r = fragi_inside_compute(FRAGI_AROUND_PATH, self, tick);
	if (r < 0 || fragi_tick_goes_on(tick, r) || on->last_steps == NULL)
		return r;
	missed = end_paths(on, tick);
	return missed < 0 ? missed : r;
}

const struct fragi_around fragi_around_path = {
	.is_wanted = is_wanted,
	.compute = compute,
	.emit = emit,
};

int fragi_path_watch(struct frag_op *op)
{
	struct fragi_on_path *on;

	if (op->on_path != NULL)
		return 0;
	on = fragi_arena_alloc(&op->fragment->arena, sizeof(*on));
	if (on == NULL)
		return -ENOMEM;
	*on = (struct fragi_on_path){0};
	op->on_path = on;
	return 0;
}

int fragi_path_add_step(struct frag_op *op, struct fragi_path_deadline *deadline, uint32_t at)
{
	struct fragi_path_step *step = fragi_arena_alloc(&op->fragment->arena, sizeof(*step));
	struct fragi_path_step **list =
		at + 1 < deadline->count ? &op->on_path->steps : &op->on_path->last_steps;

	if (step == NULL)
		return -ENOMEM;
	if (!deadline->is_local && at + 1 < deadline->count &&
	    op->on_path->travelling++ == FRAGI_TRAIL_MAX)
		return -E2BIG;
	*step = (struct fragi_path_step){.next = *list, .deadline = deadline, .at = at};
	*list = step;
	return 0;
}

bool fragi_path_goes_on(const struct frag_op *op)
{
	return op->on_path != NULL && op->on_path->steps != NULL;
}
