// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/barrier.h>
#include <sched/event.h>

void fragi_event_futex_wake(_Atomic uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

void fragi_event_futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t until_ns)
{
	struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen,
		until_ns == INT64_MAX ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

enum wake_target fragi_event_choose_idle_locked(struct event *event)
{
	if (event->idle == 0 || atomic_load_explicit(&event->waking, memory_order_relaxed))
		return WAKE_NOBODY;
	atomic_store(&event->waking, true);
	if (event->parked == 0)
		return WAKE_PUMP;
	atomic_fetch_add(&event->park, 1);
	return WAKE_PARKED;
}

void fragi_event_wake(struct event *event, enum wake_target target)
{
	if (target == WAKE_PARKED)
		fragi_event_futex_wake(&event->park, 1);
	if (target == WAKE_PUMP) {
		/*
		 * Orders the work that was published before this against the pump's list of
		 * sleepers: either the sleeping thread sees the work in has_work, or poke sees the
		 * sleeping thread.
		 */
		atomic_thread_fence(memory_order_seq_cst);
		fragi_pump_poke(event->base.config.pump, &event->waiter);
	}
}

void fragi_event_end(struct event *event)
{
	atomic_store(&event->ending, true);
	fragi_lock_take(&event->lock);
	atomic_fetch_add(&event->park, 1);
	fragi_lock_leave(&event->lock);
	fragi_event_futex_wake(&event->park, INT_MAX);
	fragi_event_crews_end(event);
	fragi_pump_poke(event->base.config.pump, &event->waiter);
}

void fragi_event_operators_started(struct event *event)
{
	fragi_lock_take(&event->lock);
	event->operators_started = true;
	atomic_fetch_add(&event->park, 1);
	fragi_lock_leave(&event->lock);
	fragi_event_futex_wake(&event->park, INT_MAX);
}

void fragi_event_wait_for_start(struct event *event)
{
	uint32_t park;
	bool operators_started;

	for (;;) {
		fragi_lock_take(&event->lock);
		park = atomic_load(&event->park);
		operators_started = event->operators_started;
		fragi_lock_leave(&event->lock);
		if (operators_started || atomic_load(&event->ending))
			return;
		fragi_event_futex_wait(&event->park, park, INT64_MAX);
	}
}

/*
 * The home thread does not touch its round while it holds what a tick notifies. It stores that it
 * holds no more, then reads whether it still has the role; here the role is taken, then `holding`
 * is read. So either the round may be taken, or the thread puts it into the queue itself. The
 * thread pays no fence for that at each tick, because the kernel executes one for it here. Where
 * the kernel does not, the round is left to the thread.
 */
void fragi_event_leave_home_locked(struct event *event, uint64_t *stalled_turns)
{
	struct event_thread *home = atomic_load(&event->home);
	uint64_t turns = event_turns(home); /* of this one: another may take the role at any time */

	if (turns != 0 && turns == *stalled_turns) {
		atomic_store(&event->home, NULL);
		if (fragi_barrier_everywhere() &&
		    atomic_load_explicit(&home->holding, memory_order_acquire))
			event_share_round_locked(event, home);
	}
	*stalled_turns = turns;
}

/* Timers. */

static void set_next_locked(struct event *event, int64_t next_ns)
{
	event->next_ns = next_ns;
	atomic_store_explicit(&event->timer_ns, fragi_clock_machine_ns(event->clock, next_ns),
			      memory_order_relaxed);
}

static void timers_fire_locked(struct event *event, int64_t now_ns)
{
	int64_t earliest = INT64_MAX;

	for (uint32_t i = 0; i < event->base.count; i++) {
		struct fragi_exec *exec = event->base.execs[i];

		if (!exec->timer_armed)
			continue;
		if (exec->until_ns > now_ns) {
			earliest = exec->until_ns < earliest ? exec->until_ns : earliest;
			continue;
		}
		exec->timer_armed = false;
		if (atomic_fetch_or_explicit(&exec->state, FRAGI_QUEUED, memory_order_acq_rel) == 0)
			event_push_locked(event, exec);
	}
	set_next_locked(event, earliest);
}

void fragi_event_timer_arm(struct event *event, struct fragi_exec *exec)
{
	fragi_lock_take(&event->lock);
	atomic_store_explicit(&exec->timer_armed, true, memory_order_relaxed);
	if (exec->until_ns < event->next_ns)
		set_next_locked(event, exec->until_ns);
	/* It may have been moved since the operator was evaluated. */
	if (fragi_clock_is_virtual(event->clock))
		timers_fire_locked(event, fragi_clock_now_ns(event->clock));
	fragi_lock_leave(&event->lock);
}

void fragi_event_timer_disarm(struct event *event, struct fragi_exec *exec)
{
	int64_t earliest = INT64_MAX;

	fragi_lock_take(&event->lock);
	exec->timer_armed = false;
	for (uint32_t i = 0; i < event->base.count; i++)
		if (event->base.execs[i]->timer_armed && event->base.execs[i]->until_ns < earliest)
			earliest = event->base.execs[i]->until_ns;
	set_next_locked(event, earliest);
	fragi_lock_leave(&event->lock);
}

void fragi_event_timers_fire(struct event *event)
{
	fragi_lock_take(&event->lock);
	timers_fire_locked(event, fragi_clock_now_ns(event->clock));
	fragi_lock_leave(&event->lock);
}

/* Called by the clock. */

static bool waits_for_clock(void *arg, int64_t *out_next_ns, uint64_t *out_rounds)
{
	struct event *event = arg;
	int64_t crews_ns;
	bool waits;

	*out_next_ns = INT64_MAX;
	*out_rounds = 0;
	if (atomic_load(&event->base.live) == 0)
		return true;
	fragi_lock_take(&event->lock);
	waits = fragi_event_waits_locked(event);
	*out_next_ns = event->next_ns;
	*out_rounds = event->rounds;
	fragi_lock_leave(&event->lock);
	crews_ns = fragi_event_crews_next_ns(event);
	*out_next_ns = crews_ns < *out_next_ns ? crews_ns : *out_next_ns;
	*out_rounds += fragi_event_crews_rounds(event);
	return waits;
}

static void clock_moved(void *arg, int64_t waited_ns)
{
	struct event *event = arg;
	enum wake_target target;

	(void)waited_ns;
	fragi_lock_take(&event->lock);
	timers_fire_locked(event, fragi_clock_now_ns(event->clock));
	target = fragi_event_choose_idle_locked(event);
	fragi_lock_leave(&event->lock);
	fragi_event_wake(event, target);
	fragi_event_crews_clock_moved(event);
}

void fragi_event_use_clock(struct event *event, struct frag_clock *clock)
{
	event->clock = clock;
	event->next_ns = INT64_MAX;
	event->clock_user = (struct fragi_clock_user){
		.arg = event, .waits = waits_for_clock, .moved = clock_moved};
	fragi_clock_join(clock, &event->clock_user);
}

/* Idle threads. */

static bool has_work(void *arg)
{
	struct event *event = arg;

	return atomic_load(&event->long_count) > 0 || atomic_load(&event->ending) ||
	       atomic_load(&event->waking) ||
	       (atomic_load(&event->home) == NULL && atomic_load(&event->queued) > 0);
}

bool fragi_event_waits_locked(const struct event *event)
{
	return event->operators_started && event->idle == event->thread_count &&
	       atomic_load_explicit(&event->queued, memory_order_relaxed) == 0 &&
	       atomic_load(&event->base.pending) == 0;
}

/* Only operators move a synthetic clock, so that its timers end no rest. */
bool fragi_event_at_rest_locked(const struct event *event)
{
	return fragi_event_waits_locked(event) &&
	       (fragi_clock_kind_of(event->clock) == FRAGI_CLOCK_SYNTHETIC ||
		(event->next_ns == INT64_MAX && fragi_event_crews_next_ns(event) == INT64_MAX));
}

/*
 * Returns until when an idle thread may sleep: until the next timer and, while other threads work,
 * no longer than its recheck time; INT64_MAX when another idle thread wakes by then anyway.
 */
static int64_t sleep_until_locked(struct event *event, struct event_thread *thread)
{
	int64_t until_ns = atomic_load_explicit(&event->timer_ns, memory_order_relaxed), recheck;

	if (event->polls && event->idle < event->thread_count) {
		thread->recheck_ns = thread->recheck_ns * 2 < RECHECK_MAX_NS
					     ? thread->recheck_ns * 2
					     : RECHECK_MAX_NS;
		recheck = fragi_now_ns() + thread->recheck_ns;
		until_ns = recheck < until_ns ? recheck : until_ns;
	}
	if (event->covers_ns <= until_ns)
		return INT64_MAX;
	event->covers_ns = until_ns;
	return until_ns;
}

/* Whether there is work for a thread that looks. rank: how many looked when it began, with it. */
static bool work_comes(struct event *event, const struct event_thread *thread, uint32_t rank)
{
	uint32_t behind = atomic_load_explicit(&event->spinning, memory_order_relaxed);

	behind = behind > rank ? behind - rank : 0;
	return atomic_load_explicit(&event->long_count, memory_order_relaxed) > behind ||
	       (behind == 0 && !event_is_empty_for(event, thread)) ||
	       atomic_load_explicit(&event->ending, memory_order_relaxed);
}

static void relax(struct event *event, struct event_thread *thread)
{
	fragi_relax();
	fragi_sched_pump_turn(&thread->here, event->base.config.pump);
	thread->here.stamp = fragi_stamp();
}

enum frag_ready fragi_event_keep(struct event *event, struct event_thread *thread,
				 struct fragi_exec *exec, int r)
{
	uint64_t begin = thread->here.stamp, kept = 0;
	uint32_t rank = 0;
	enum frag_ready ready;
	bool comes = !event_is_empty_for(event, thread);

	event_set_holding(thread, false);
	atomic_exchange_explicit(&exec->state, FRAGI_RUNNING, memory_order_acq_rel);
	ready = r == 0 ? fragi_exec_ready(exec) : FRAG_READY;
	while (ready == FRAG_WAIT && !comes && kept < thread->keep_stamps && thread->held == NULL) {
		relax(event, thread);
		kept = thread->here.stamp - begin;
		if (atomic_load_explicit(&exec->state, memory_order_relaxed) != FRAGI_RUNNING) {
			atomic_exchange_explicit(&exec->state, FRAGI_RUNNING, memory_order_acq_rel);
			ready = fragi_exec_ready(exec);
		}
		if (kept < event->move_stamps)
			continue;
		if (rank == 0)
			rank = atomic_fetch_add(&event->spinning, 1) + 1;
		comes = work_comes(event, thread, rank);
	}
	if (rank != 0)
		atomic_fetch_sub(&event->spinning, 1);
	thread->look_until = begin + thread->keep_stamps;
	thread->keep_stamps = 0;
	return ready;
}

bool fragi_event_look(struct event *event, struct event_thread *thread)
{
	bool comes = false;
	uint32_t rank;

	if (thread->here.stamp >= thread->look_until)
		return false;
	rank = atomic_fetch_add(&event->spinning, 1) + 1;
	while (!comes && thread->here.stamp < thread->look_until) {
		relax(event, thread);
		comes = work_comes(event, thread, rank);
	}
	atomic_fetch_sub(&event->spinning, 1);
	return comes;
}

void fragi_event_idle(struct event *event, struct event_thread *thread)
{
	struct fragi_sched *sched = &event->base;
	bool pumps, rests, waits;
	int64_t until_ns;
	uint32_t park;

	fragi_lock_take(&event->lock);
	atomic_store(&event->waking, false);
	event_give_home_up_locked(event, thread);
	if (has_work(event)) {
		fragi_lock_leave(&event->lock);
		return;
	}
	event->idle++;
	pumps = !event->in_pump;
	if (pumps)
		event->in_pump = true;
	else
		event->parked++;
	until_ns = sleep_until_locked(event, thread);
	thread->stalled_turns = event_turns(atomic_load(&event->home));
	rests = fragi_event_at_rest_locked(event);
	waits = fragi_event_waits_locked(event);
	park = atomic_load(&event->park);
	fragi_lock_leave(&event->lock);

	if (rests && sched->config.rested != NULL)
		sched->config.rested(sched->config.arg);
	if (waits)
		fragi_clock_waiting(event->clock);
	if (pumps)
		fragi_pump_wait(sched->config.pump, &event->waiter, until_ns, has_work, event);
	else
		fragi_event_futex_wait(&event->park, park, until_ns);

	thread->base_ns = fragi_now_ns();
	fragi_lock_take(&event->lock);
	event->idle--;
	if (pumps)
		event->in_pump = false;
	else
		event->parked--;
	atomic_store(&event->waking, false);
	if (until_ns != INT64_MAX && event->covers_ns == until_ns)
		event->covers_ns = INT64_MAX;
	if (thread->base_ns >= until_ns)
		fragi_event_leave_home_locked(event, &thread->stalled_turns);
	fragi_lock_leave(&event->lock);
	fragi_clock_going_on(event->clock);
	thread->base_stamp = thread->here.stamp = thread->here.pump_stamp = fragi_stamp();
}
