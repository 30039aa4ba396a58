// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/sentence.h>
#include <data/message.h>
#include <sched/path_parts.h>

/*
 * The messages of a tick are all held until it ends, so their trails are read from there: when the
 * first message is emitted, and at the end by an operator that ends a path. What one tick makes of
 * several messages of a path goes on as one, since the begin of the oldest. So a trail has at most
 * one entry for each time that the operator is on a path.
 *
 * An entry also says what its time was spent with (base/blame.h): when a message is received, what
 * the way to here took, and when it is emitted or its path ends, what the tick took until then.
 * Short ones are added up and not looked into, so a path costs its hops little.
 */

/* What this thread had been denied when its last tick of a path ended; at first there was none. */
static __thread uint64_t starved_until __attribute__((tls_model("initial-exec"))) = UINT64_MAX;

/* What messages have waited for that are received by a tick that begins at `begin`. */
static inline void end_wait(struct fragi_on_path *on, const struct fragi_exec *exec, uint64_t begin)
{
	if (__builtin_expect(on->started == 0, 0))
		fragi_path_read_start(on, exec, begin);
	on->starved_from = fragi_starved_ns(begin);
	on->starved_ns = on->starved_from > starved_until ? on->starved_from - starved_until : 0;
}

static bool is_of(const struct fragi_path_step *step, const struct fragi_trail_entry *entry)
{
	return step->deadline->number == entry->deadline && step->at == entry->at + 1u &&
	       entry->slowest <= entry->at;
}

/* Takes over what a message has brought, unless there is an older one. */
static void take(struct fragi_path_step *step, const struct fragi_exec *exec,
		 const struct fragi_trail *trail, const struct fragi_trail_entry *entry)
{
	uint16_t flags = entry->flags & FRAGI_TRAIL_FOREIGN;
	bool is_first = !step->is_open;

	if (!is_first)
		flags |= step->entry.flags & FRAGI_TRAIL_FOREIGN;
	if (is_first || (int64_t)(entry->begin - step->entry.begin) < 0) {
		fragi_trail_copy_entry(&step->entry, entry);
		fragi_path_add_way(&step->entry.parts, step, exec, trail, entry,
				   exec->op->on_path->begun);
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

		if (trail == NULL)
			continue;
		on->from = tick->received[on->seen];
		for (uint32_t i = 0; i < trail->count; i++)
			for (struct fragi_path_step *step = on->steps; step != NULL;
			     step = step->next)
				if (is_of(step, &trail->entries[i]))
					take(step, (const struct fragi_exec *)tick, trail,
					     &trail->entries[i]);
	}
}

/* How long the operator had the message: in its queue and in its tick. */
static uint64_t own_ns(const struct fragi_trail_entry *entry, uint64_t now)
{
	return fragi_stamp_diff_ns(entry->published, now);
}

/* What the step says of a message that is emitted now. */
static void write_entry(struct fragi_trail_entry *out, const struct fragi_on_path *on,
			const struct fragi_path_step *step, uint64_t now)
{
	uint64_t ns = own_ns(&step->entry, now);

	fragi_trail_copy_entry(out, &step->entry);
	if (ns > out->slowest_ns) {
		out->slowest_ns = ns;
		out->slowest = (uint16_t)step->at;
	}
	fragi_path_add_stay(&out->parts, on, step, &step->entry, now);
	out->deadline = step->deadline->number;
	out->at = (uint16_t)step->at;
	out->published = now;
	if (step->deadline->is_local)
		out->flags |= FRAGI_TRAIL_LOCAL;
}

/*
 * A trail for so many entries: that of a received message which nobody else holds, because its path
 * goes on in what is emitted; else a new one. NULL: memory is short.
 */
static struct fragi_trail *take_over(struct fragi_on_path *on, uint32_t count)
{
	struct fragi_trail *trail = on->from != NULL ? on->from->trail : NULL;

	if (trail == NULL || on->last_steps != NULL || trail->count != count ||
	    atomic_load_explicit(&on->from->refs, memory_order_acquire) != 1 ||
	    atomic_load_explicit(&trail->refs, memory_order_acquire) != 1)
		return fragi_trail_create(count);
	fragi_message_leave_trail(on->from);
	on->from = NULL;
	return trail;
}

/* *out_trail: NULL when the message is on no path. Returns 0 or -ENOMEM. */
static int make_trail(struct fragi_on_path *on, struct fragi_trail **out_trail)
{
	uint64_t now = fragi_stamp();
	struct fragi_trail *trail;
	uint32_t count = 0;

	*out_trail = NULL;
	for (const struct fragi_path_step *step = on->steps; step != NULL; step = step->next)
		count += step->is_open;
	if (count == 0)
		return 0;
	trail = take_over(on, count);
	if (trail == NULL)
		return -ENOMEM;
	trail->maker = on;
	trail->tick = on->tick;
	trail->arrived = 0;
	trail->held = (struct fragi_trail_held){0};
	count = 0;
	for (const struct fragi_path_step *step = on->steps; step != NULL; step = step->next)
		if (step->is_open)
			write_entry(&trail->entries[count++], on, step, now);
	*out_trail = trail;
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
	if (!fragi_message_takes_paths(message)) {
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

/* Returns how long a late message took; 0: it is not late, or it is not known. */
static uint64_t late_ns(const struct fragi_path_step *step, const struct fragi_trail_entry *entry,
			uint64_t now)
{
	const uint64_t ns = fragi_stamp_diff_ns(entry->begin, now);

	return (entry->flags & FRAGI_TRAIL_FOREIGN) == 0 && ns > (uint64_t)step->deadline->budget_ns
		       ? ns
		       : 0;
}

/*
 * Counts a message that was late. Returns the slowest operator.
 * - parts: from the begin of the path until now
 */
static uint32_t miss(struct fragi_exec *exec, const struct fragi_path_step *step,
		     const struct fragi_trail_entry *entry, const struct fragi_blame_parts *parts,
		     uint64_t ns, uint64_t now)
{
	const uint32_t slowest = own_ns(entry, now) > entry->slowest_ns ? step->at : entry->slowest;

	count_miss(exec, step->deadline, slowest, ns);
	fragi_path_blame(exec, step->deadline, parts, ns, entry);
	return slowest;
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
		    const struct fragi_trail *trail, const struct fragi_trail_entry *entry,
		    uint64_t now)
{
	struct fragi_exec *exec = (struct fragi_exec *)tick;
	const struct fragi_on_path *on = tick->op->on_path;
	struct fragi_path_deadline *deadline = step->deadline;
	const uint64_t ns = late_ns(step, entry, now);
	char what[4 * FRAG_NAME_MAX + 80];
	struct fragi_trail_entry whole;
	uint32_t slowest;

	fragi_trail_copy_entry(&whole, entry);
	fragi_path_add_way(&whole.parts, step, exec, trail, entry, on->begun);
	fragi_path_add_stay(&whole.parts, on, step, entry, now);
	count_checked(exec, deadline, entry);
	if (ns == 0 && (entry->flags & FRAGI_TRAIL_FOREIGN) == 0)
		fragi_blame_learn(&deadline->usual, &whole.parts);
	if (ns == 0)
		return 0;
	slowest = miss(exec, step, entry, &whole.parts, ns, now);
	if (deadline->on_miss != FRAG_ON_MISS_STOP)
		return 0;
	fragi_sentence(what, sizeof(what), "the path from %s (slowest: %s)", deadline->names[0],
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
				one = end_path(tick, step, trail, &trail->entries[i], now);
				r = one < 0 ? one : r;
			}
	}
	return r;
}

bool fragi_path_is_late(struct fragi_exec *exec, const struct frag_message *message)
{
	const struct fragi_trail *trail = trail_of(message);
	struct fragi_on_path *on = exec->op->on_path;
	uint64_t now = fragi_stamp(), ns;

	if (trail == NULL)
		return false;
	end_wait(on, exec, now);
	for (uint32_t i = 0; i < trail->count; i++)
		for (const struct fragi_path_step *step = on->last_steps; step != NULL;
		     step = step->next) {
			const struct fragi_trail_entry *entry = &trail->entries[i];
			struct fragi_blame_parts parts;

			if (step->deadline->on_miss != FRAG_ON_MISS_DROP || !is_of(step, entry))
				continue;
			ns = late_ns(step, entry, now);
			if (ns == 0)
				continue;
			parts = entry->parts;
			fragi_path_add_way(&parts, step, exec, trail, entry, now);
			(void)miss(exec, step, entry, &parts, ns, now);
			count_checked(exec, step->deadline, entry);
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
	on->from = NULL;
	on->redelivered = 0;
	on->begun = tick->stamp;
	on->preempted_ns = on->gpu_ns = on->pending_since = 0;
	for (struct fragi_path_step *step = on->steps; step != NULL; step = step->next) {
		step->is_open = step->at == 0;
		if (!step->is_open)
			continue;
		memset(&step->entry, 0, offsetof(struct fragi_trail_entry, parts.parts));
		step->entry.begin = step->entry.published = tick->stamp;
	}
}

static int compute(void *self, struct frag_tick *tick)
{
	const struct fragi_exec *exec = (const struct fragi_exec *)tick;
	struct fragi_on_path *on = tick->op->on_path;
	int r, missed = 0;

	if (fragi_path_is_on_any(on))
		end_wait(on, exec, tick->stamp);
	if (!exec->pending)
		begin_tick(on, tick);
	else if (on->pending_since != 0)
		on->gpu_ns += fragi_stamp_diff_ns(on->pending_since, tick->stamp);
	on->pending_since = 0;
	r = fragi_inside_compute(FRAGI_AROUND_PATH, self, tick);
	if (fragi_tick_goes_on(tick, r)) {
		on->preempted_ns += fragi_path_starved(on, fragi_stamp());
		return r;
	}
	if (r >= 0 && on->last_steps != NULL)
		missed = end_paths(on, tick);
	if (fragi_path_is_on_any(on)) {
		struct fragi_path_past *past = &on->past[on->past_count++ % FRAGI_PATH_PAST];

		past->begun = on->begun;
		past->ended = fragi_stamp();
		starved_until = fragi_starved_ns(past->ended);
		past->starved_ns = on->starved_ns;
		past->denied_ns = on->preempted_ns + starved_until - on->starved_from;
		past->waited = fragi_path_waited_of(exec);
	}
	return missed < 0 ? missed : r;
}

void fragi_path_awaits_gpu(const struct frag_tick *tick)
{
	if (tick->op->on_path != NULL)
		tick->op->on_path->pending_since = fragi_stamp();
}

void fragi_path_waited_for_gpu(const struct frag_tick *tick, uint64_t since)
{
	if (tick->op->on_path != NULL)
		tick->op->on_path->gpu_ns += fragi_stamp_diff_ns(since, fragi_stamp());
}

void fragi_path_awaits_host(const struct frag_op *op, uint64_t ns)
{
	if (op->on_path != NULL)
		fragi_count(&op->on_path->away_ns, ns);
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
