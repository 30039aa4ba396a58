// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include <base/starved.h>
#include <data/message.h>
#include <sched/path_deadline.h>

/*
 * The messages of a tick are all held until it ends, so their trails are read from there: when the
 * first message is emitted, and at the end by an operator that ends a path. What one tick makes of
 * several messages of a path goes on as one, since the begin of the oldest. So a trail has at most
 * one entry for each time that the operator is on a path.
 *
 * An entry also says what its time was spent with (base/blame.h): when a message is received, what
 * the way to here took, and when it is emitted or its path ends, what the tick took until then.
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

/* Those uses of an operator that a message may have waited for, ns; away: of room. */
struct waited {
	uint64_t pool, thread, room, away, suspended;
};

/* Ticks that are remembered: behind so many messages one may wait and know why. */
#define PAST 64u

struct past {
	uint64_t begun, ended; /* stamps */
	/* what its thread was denied before it and in it; what had been waited for by its end */
	uint64_t starved_ns, denied_ns;
	struct waited waited;
};

struct fragi_on_path {
	struct fragi_path_step *steps, *last_steps; /* those where the path goes on, or ends */
	uint32_t travelling; /* of steps: those of paths that lead to other processes */
	/* of the tick */
	uint64_t tick;
	uint32_t seen; /* received messages that were read */
	/* a bit for each of the first 64 of them: it was delivered before, and has left the path */
	uint64_t redelivered;
	/* what its thread was denied: when the call of compute began, in calls before, before it */
	uint64_t starved_from, preempted_ns, starved_ns;
	uint64_t gpu_ns;        /* it waited for work of a GPU */
	uint64_t pending_since; /* stamp: for work of its stream; 0: it does not */
	uint64_t begun;         /* stamp; that of the tick is of the latest call of compute */
	uint64_t started;       /* stamp: when its operator was; 0: not read yet */
	struct past past[PAST]; /* the latest ticks */
	uint64_t past_count;    /* ever */
	/* room was waited for in a flow whose receiver's host was away, ns; of who looks */
	_Atomic uint64_t away_ns;
};

static uint64_t read_use(const _Atomic uint64_t *use)
{
	return atomic_load_explicit(use, memory_order_relaxed);
}

static struct waited waited_of(const struct fragi_exec *exec)
{
	const struct fragi_op_row *row = exec->row;

	return (struct waited){
		.pool = read_use(&row->use_memory),
		.thread = read_use(&row->use_thread),
		.room = read_use(&row->use_room),
		.away = read_use(&exec->op->on_path->away_ns),
		.suspended = read_use(&row->use_suspended),
	};
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) > 0 ? a : b;
}

/* What this thread had been denied when its last tick of a path ended; at first there was none. */
static _Thread_local uint64_t starved_until = UINT64_MAX;

/* What messages have waited for that are received by a tick that begins at `begin`. */
static void end_wait(struct fragi_on_path *on, const struct fragi_exec *exec, uint64_t begin)
{
	if (on->started == 0) {
		const uint64_t since = read_use(&exec->row->started_ns),
			       now = (uint64_t)fragi_clock_now_ns(exec->clock) + 1;

		on->started = fragi_stamp_before(begin, now > since ? now - since : 0);
	}
	on->starved_from = fragi_starved_ns(begin);
	on->starved_ns = on->starved_from > starved_until ? on->starved_from - starved_until : 0;
}

/*
 * While a message waited: how long ticks with earlier ones took, and what their threads were denied
 * before and in them; and what had been waited for before it came.
 */
struct since {
	uint64_t busy_ns, starved_ns, denied_ns;
	struct waited then;
	bool is_first; /* no tick has ended before it came */
};

static struct since since(const struct fragi_on_path *on, uint64_t queued)
{
	struct since since = {.is_first = on->past_count < PAST};

	for (uint64_t i = 1; i <= PAST && i <= on->past_count; i++) {
		const struct past *past = &on->past[(on->past_count - i) % PAST];
		const uint64_t ns = fragi_stamp_diff_ns(queued, past->ended);

		if (ns == 0 || i == PAST) { /* of more ticks it is not known */
			since.then = past->waited;
			since.is_first = false;
			break;
		}
		since.busy_ns += fragi_stamp_diff_ns(later(queued, past->begun), past->ended);
		since.denied_ns += ns < past->denied_ns ? ns : past->denied_ns;
		since.starved_ns += past->starved_ns;
	}
	return since;
}

/* Adds what the way of a message took, which is received by a tick that began at `begin`. */
static void add_way(struct fragi_blame_parts *parts, const struct fragi_exec *exec,
		    const struct fragi_trail *trail, const struct fragi_trail_entry *entry,
		    uint64_t begin)
{
	const struct fragi_on_path *on = exec->op->on_path;
	const uint64_t queued = trail->arrived != 0 ? trail->arrived : entry->published;
	const struct since before = since(on, queued);
	const struct waited now = waited_of(exec), *then = &before.then;
	const struct fragi_blame_way way = {
		.at = (uint16_t)(entry->at + 1u),
		.took_ns = fragi_stamp_diff_ns(entry->published, begin),
		.arrived_ns = trail->arrived != 0
				      ? fragi_stamp_diff_ns(entry->published, trail->arrived)
				      : 0,
		.held_ns = trail->arrived != 0 ? trail->held.ns : 0,
		.restart_ns = trail->held.restart_ns,
		.gpu_ns = trail->held.gpu_ns,
		.unstarted_ns = fragi_stamp_diff_ns(queued, on->started),
		.busy_ns = before.busy_ns,
		.pool_ns = now.pool - then->pool,
		.thread_ns = now.thread - then->thread,
		.room_ns = now.room - then->room,
		.away_ns = now.away - then->away,
		.suspended_ns = before.is_first ? 0 : now.suspended - then->suspended,
		.starved_ns = before.starved_ns + on->starved_ns,
		.denied_ns = before.denied_ns,
	};

	if ((entry->flags & FRAGI_TRAIL_FOREIGN) == 0)
		fragi_blame_way(parts, &way);
}

/* Whether a path leads through it: others only look at trails. */
static bool is_on_any(const struct fragi_on_path *on)
{
	return on->steps != NULL || on->last_steps != NULL;
}

/* What the thread was denied since the call of compute began. */
static uint64_t starved_here(const struct fragi_on_path *on, uint64_t now)
{
	return is_on_any(on) ? fragi_starved_ns(now) - on->starved_from : 0;
}

/* Adds what the tick took until now, of a message that it has received, as an entry says. */
static void add_stay(struct fragi_blame_parts *parts, const struct fragi_on_path *on,
		     const struct fragi_trail_entry *entry, uint32_t at, uint64_t now)
{
	const bool is_foreign = (entry->flags & FRAGI_TRAIL_FOREIGN) != 0;
	const uint64_t received = is_foreign ? on->begun : later(on->begun, entry->published);
	const struct fragi_blame_stay stay = {
		.at = (uint16_t)at,
		.took_ns = fragi_stamp_diff_ns(received, now),
		.preempted_ns = on->preempted_ns + starved_here(on, now),
		.gpu_ns = on->gpu_ns,
	};

	fragi_blame_stay(parts, &stay);
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
		step->entry = *entry;
		add_way(&step->entry.parts, exec, trail, entry, exec->op->on_path->begun);
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
static struct fragi_trail_entry entry_of(const struct fragi_on_path *on,
					 const struct fragi_path_step *step, uint64_t now)
{
	struct fragi_trail_entry entry = step->entry;
	uint64_t ns = own_ns(&entry, now);

	if (ns > entry.slowest_ns) {
		entry.slowest_ns = ns;
		entry.slowest = (uint16_t)step->at;
	}
	add_stay(&entry.parts, on, &step->entry, step->at, now);
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
	(*out_trail)->arrived = 0;
	(*out_trail)->held = (struct fragi_trail_held){0};
	count = 0;
	for (const struct fragi_path_step *step = on->steps; step != NULL; step = step->next)
		if (step->is_open)
			(*out_trail)->entries[count++] = entry_of(on, step, now);
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

/*
 * Returns how long a late message took, which is counted; 0: it is not late.
 * - parts: from the begin of the path until now
 */
static uint64_t check(struct fragi_exec *exec, const struct fragi_path_step *step,
		      const struct fragi_trail_entry *entry, const struct fragi_blame_parts *parts,
		      uint64_t now, uint32_t *out_slowest)
{
	struct fragi_path_deadline *deadline = step->deadline;
	uint64_t ns = fragi_stamp_diff_ns(entry->begin, now);

	if ((entry->flags & FRAGI_TRAIL_FOREIGN) != 0 || ns <= (uint64_t)deadline->budget_ns)
		return 0;
	*out_slowest = own_ns(entry, now) > entry->slowest_ns ? step->at : entry->slowest;
	count_miss(exec, deadline, *out_slowest, ns);
	fragi_path_blame(exec, deadline, parts, ns, entry);
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
		    const struct fragi_trail *trail, const struct fragi_trail_entry *entry,
		    uint64_t now)
{
	struct fragi_exec *exec = (struct fragi_exec *)tick;
	const struct fragi_on_path *on = tick->op->on_path;
	struct fragi_path_deadline *deadline = step->deadline;
	struct fragi_blame_parts parts = entry->parts;
	char what[4 * FRAG_NAME_MAX + 80];
	uint32_t slowest;
	uint64_t ns;

	add_way(&parts, exec, trail, entry, on->begun);
	add_stay(&parts, on, entry, step->at, now);
	count_checked(exec, deadline, entry);
	ns = check(exec, step, entry, &parts, now, &slowest);
	if (ns == 0 && (entry->flags & FRAGI_TRAIL_FOREIGN) == 0)
		fragi_blame_learn(&deadline->usual, &parts);
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
	uint64_t now = fragi_stamp();
	uint32_t slowest;

	if (trail != NULL && on != NULL && on->last_steps != NULL)
		end_wait(on, exec, now);
	for (uint32_t i = 0; trail != NULL && on != NULL && i < trail->count; i++)
		for (const struct fragi_path_step *step = on->last_steps; step != NULL;
		     step = step->next) {
			struct fragi_blame_parts parts;

			if (step->deadline->on_miss != FRAG_ON_MISS_DROP ||
			    !is_of(step, &trail->entries[i]))
				continue;
			parts = trail->entries[i].parts;
			add_way(&parts, exec, trail, &trail->entries[i], now);
			if (check(exec, step, &trail->entries[i], &parts, now, &slowest) == 0)
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
	on->begun = tick->stamp;
	on->preempted_ns = on->gpu_ns = on->pending_since = 0;
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
	const struct fragi_exec *exec = (const struct fragi_exec *)tick;
	struct fragi_on_path *on = tick->op->on_path;
	int r, missed = 0;

	if (is_on_any(on))
		end_wait(on, exec, tick->stamp);
	if (!exec->pending)
		begin_tick(on, tick);
	else if (on->pending_since != 0)
		on->gpu_ns += fragi_stamp_diff_ns(on->pending_since, tick->stamp);
	on->pending_since = 0;
	r = fragi_inside_compute(FRAGI_AROUND_PATH, self, tick);
	if (fragi_tick_goes_on(tick, r)) {
		on->preempted_ns += starved_here(on, fragi_stamp());
		return r;
	}
	if (r >= 0 && on->last_steps != NULL)
		missed = end_paths(on, tick);
	if (is_on_any(on)) {
		const uint64_t ended = fragi_stamp();

		starved_until = fragi_starved_ns(ended);
		on->past[on->past_count++ % PAST] = (struct past){
			.begun = on->begun,
			.ended = ended,
			.starved_ns = on->starved_ns,
			.denied_ns = on->preempted_ns + starved_until - on->starved_from,
			.waited = waited_of(exec),
		};
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
