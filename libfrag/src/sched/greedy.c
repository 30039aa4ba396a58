// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <sched/kind.h>

/*
 * One thread visits the operators in topological order, in rounds, and ticks each one that is ready
 * once a round. An operator that waits is not visited until it is notified: the scheduler's thread
 * marks it with a plain store, other threads with an atomic one. When no operator is marked the
 * thread waits in the pump.
 */
struct greedy {
	struct fragi_sched base;
	struct fragi_sched_thread here;
	pthread_t thread;
	uint64_t hint_stamps; /* FRAGI_HINT_NS */
	/* used by the thread alone */
	uint64_t *marks, *marks_end; /* one bit for each exec, which asks for a visit */
	uint32_t armed;              /* operators that wait for a time */
	int64_t until_ns;            /* the earliest such time */
	struct frag_clock *clock;    /* the fragment's */
	struct fragi_clock_user clock_user;
	/* used by any thread */
	_Alignas(64) _Atomic bool remote; /* another thread has set `remote` of some exec */
	_Atomic bool resting;
	struct fragi_pump_waiter waiter;
	_Atomic int64_t rests_until_ns; /* while it rests on a virtual clock; INT64_MAX: for ever */
	_Atomic bool clock_moved;       /* since the thread has looked at its timers */
	_Atomic uint64_t rounds;        /* how many times rest has ended */
};

static void greedy_notify(void *arg)
{
	struct fragi_exec *exec = arg;
	struct greedy *greedy = (struct greedy *)exec->sched;

	if (__builtin_expect(fragi_sched_here == &greedy->here, 1)) {
		*exec->mark |= exec->mark_bit;
		return;
	}
	atomic_store_explicit(&exec->remote, true, memory_order_release);
	atomic_store(&greedy->remote, true);
	fragi_pump_poke(greedy->base.config.pump, &greedy->waiter);
}

static bool has_mark(const struct greedy *greedy)
{
	for (const uint64_t *word = greedy->marks; word < greedy->marks_end; word++)
		if (*word != 0)
			return true;
	return false;
}

/*
 * Marks are the thread's own, so nobody else sees that one ends its rest. The pump asks this under
 * its lock, where a message arrives: whoever counts messages under that lock does not find the
 * thread at rest beside a message that has arrived.
 */
static bool has_work(void *arg)
{
	struct greedy *greedy = arg;

	if (has_mark(greedy)) {
		atomic_store_explicit(&greedy->resting, false, memory_order_release);
		return true;
	}
	return atomic_load(&greedy->remote) || atomic_load(&greedy->base.halting) ||
	       atomic_load(&greedy->base.live) == 0 ||
	       (greedy->armed > 0 && atomic_load(&greedy->clock_moved));
}

/* Marks the operators whose timer is due. */
static void timers_fire(struct greedy *greedy)
{
	int64_t now_ns;

	if (fragi_clock_kind_of(greedy->clock) != FRAGI_CLOCK_MACHINE)
		atomic_exchange(&greedy->clock_moved, false);
	now_ns = fragi_clock_now_ns(greedy->clock);
	if (now_ns < greedy->until_ns)
		return;
	greedy->until_ns = INT64_MAX;
	for (uint32_t i = 0; i < greedy->base.count; i++) {
		struct fragi_exec *exec = greedy->base.execs[i];

		if (!exec->timer_armed)
			continue;
		if (exec->until_ns <= now_ns) {
			exec->timer_armed = false;
			greedy->armed--;
			*exec->mark |= exec->mark_bit;
		} else if (exec->until_ns < greedy->until_ns) {
			greedy->until_ns = exec->until_ns;
		}
	}
}

static void timer_arm(struct greedy *greedy, struct fragi_exec *exec)
{
	assert(!exec->timer_armed && !exec->done);
	exec->timer_armed = true;
	greedy->armed++;
	if (exec->until_ns < greedy->until_ns)
		greedy->until_ns = exec->until_ns;
}

/* Takes the mark from an operator that is not ready. */
static void unmark(struct greedy *greedy, struct fragi_exec *exec, enum frag_ready ready)
{
	*exec->mark &= ~exec->mark_bit;
	if (__builtin_expect(greedy->armed > 0, 0) && exec->timer_armed) {
		exec->timer_armed = false;
		greedy->armed--;
	}
	if (ready == FRAG_WAIT) /* the usual case */
		return;
	if (ready == FRAG_WAIT_TIME)
		timer_arm(greedy, exec);
	else if (ready == FRAG_NEVER && !exec->done)
		fragi_sched_finish_op(&greedy->base, exec);
}

/* Before a tick of an operator that had a long one, as long as that counts. */
static __attribute__((noinline)) void expect_long_tick(struct greedy *greedy,
						       struct fragi_exec *exec)
{
	if (exec->expected > greedy->hint_stamps) {
		fragi_pump_hint(greedy->base.config.pump);
		exec->expected -= exec->expected >> 4;
	} else {
		exec->expected = 0;
	}
}

/* Ticks an operator once if it is ready; it then keeps its mark. */
static inline void visit(struct greedy *greedy, struct fragi_exec *exec)
{
	struct fragi_sched *sched = &greedy->base;
	enum frag_ready ready = fragi_exec_ready(exec);
	uint64_t begin;
	int r;

	if (__builtin_expect(ready != FRAG_READY, 0)) {
		unmark(greedy, exec, ready);
		return;
	}
	if (__builtin_expect(exec->expected != 0, 0))
		expect_long_tick(greedy, exec);
	begin = greedy->here.stamp;
	r = fragi_exec_tick(exec, greedy->here.current, begin, &greedy->here.stamp);
	if (__builtin_expect(greedy->here.stamp - begin > greedy->hint_stamps, 0))
		exec->expected = greedy->here.stamp - begin; /* only long ticks matter here */
	if (__builtin_expect(r < 0, 0))
		fragi_sched_fail(sched, exec, FRAGI_CALL_COMPUTE, r);
	else if (__builtin_expect(r == FRAG_DONE, 0))
		fragi_sched_finish_op(sched, exec);
}

/* Marks the operators that other threads have notified. */
static void collect_remote(struct greedy *greedy)
{
	atomic_exchange(&greedy->remote, false);
	for (uint32_t i = 0; i < greedy->base.count; i++) {
		struct fragi_exec *exec = greedy->base.execs[i];

		if (atomic_load_explicit(&exec->remote, memory_order_relaxed) &&
		    atomic_exchange(&exec->remote, false))
			*exec->mark |= exec->mark_bit;
	}
}

/* Visits each marked operator once, in order, also those that are marked during the round. */
static void run_round(struct greedy *greedy)
{
	struct fragi_exec **execs = greedy->base.execs;

	for (uint64_t *word = greedy->marks; word < greedy->marks_end; word++, execs += 64) {
		uint64_t later = UINT64_MAX, due;

		while ((due = *word & later) != 0) {
			uint32_t i = (uint32_t)__builtin_ctzll(due);

			later = ~(uint64_t)1 << i;
			visit(greedy, execs[i]);
		}
	}
}

/* The earliest time of a timer. until_ns may be that of one that was disarmed. */
static int64_t earliest(const struct greedy *greedy)
{
	int64_t until_ns = INT64_MAX;

	for (uint32_t i = 0; greedy->armed > 0 && i < greedy->base.count; i++)
		if (greedy->base.execs[i]->timer_armed &&
		    greedy->base.execs[i]->until_ns < until_ns)
			until_ns = greedy->base.execs[i]->until_ns;
	return until_ns;
}

/* On a virtual clock the thread also rests while it waits for a time. */
static bool begin_rest(struct greedy *greedy)
{
	struct fragi_sched *sched = &greedy->base;

	if (atomic_load(&sched->pending) != 0)
		return false;
	if (fragi_clock_is_virtual(greedy->clock))
		atomic_store(&greedy->rests_until_ns, earliest(greedy));
	else if (greedy->armed > 0)
		return false;
	atomic_store(&greedy->resting, true);
	if (has_work(greedy))
		return true;
	if (sched->config.rested != NULL)
		sched->config.rested(sched->config.arg);
	fragi_clock_waiting(greedy->clock);
	return true;
}

static void wait(struct greedy *greedy)
{
	struct fragi_sched *sched = &greedy->base;
	bool rest = begin_rest(greedy);

	fragi_pump_wait(sched->config.pump, &greedy->waiter,
			greedy->armed > 0 ? fragi_clock_machine_ns(greedy->clock, greedy->until_ns)
					  : INT64_MAX,
			has_work, greedy);
	if (rest) {
		atomic_fetch_add(&greedy->rounds, 1);
		atomic_store(&greedy->resting, false);
		fragi_clock_going_on(greedy->clock);
	}
	greedy->here.stamp = greedy->here.pump_stamp = fragi_stamp();
}

static void run_rounds(struct greedy *greedy)
{
	struct fragi_sched *sched = &greedy->base;

	while (!atomic_load_explicit(&sched->halting, memory_order_relaxed)) {
		if (atomic_load_explicit(&greedy->remote, memory_order_relaxed))
			collect_remote(greedy);
		run_round(greedy);
		if (greedy->armed > 0)
			timers_fire(greedy);
		if (has_mark(greedy))
			fragi_sched_pump_turn(&greedy->here, sched->config.pump);
		else if (atomic_load_explicit(&sched->live, memory_order_relaxed) == 0)
			return;
		else if (!has_work(greedy))
			wait(greedy);
	}
}

/* Not inlined: the caller saves its registers for a cleanup handler, which would cost each tick. */
static __attribute__((noinline)) void thread_run(struct greedy *greedy)
{
	struct fragi_sched *sched = &greedy->base;

	fragi_sched_thread_begin(&greedy->here);
	if (fragi_sched_start_ops(sched) == 0) {
		for (uint32_t i = 0; i < sched->count; i++)
			*sched->execs[i]->mark |= sched->execs[i]->mark_bit;
		greedy->here.stamp = greedy->here.pump_stamp = fragi_stamp();
		run_rounds(greedy);
	}
	fragi_sched_finish_ops(sched);
	fragi_sched_here = NULL;
	sched->config.finished(sched->config.arg);
}

static void *greedy_main(void *arg)
{
	struct greedy *greedy = arg;
	struct fragi_sched_alive alive;

	fragi_sched_alive_begin(&greedy->base, &alive);
	pthread_cleanup_push(fragi_sched_thread_lost, &alive);
	thread_run(greedy);
	pthread_cleanup_pop(0);
	fragi_sched_alive_end(&alive);
	return NULL;
}

/* Called by the clock. */

static bool waits_for_clock(void *arg, int64_t *out_next_ns, uint64_t *out_rounds)
{
	struct greedy *greedy = arg;

	*out_next_ns = INT64_MAX;
	*out_rounds = 0;
	if (atomic_load(&greedy->base.live) == 0)
		return true;
	*out_rounds = atomic_load(&greedy->rounds);
	if (!atomic_load(&greedy->resting) || atomic_load(&greedy->remote))
		return false;
	*out_next_ns = atomic_load(&greedy->rests_until_ns);
	return *out_next_ns == INT64_MAX || !atomic_load(&greedy->clock_moved);
}

static void clock_moved(void *arg, int64_t waited_ns)
{
	struct greedy *greedy = arg;

	(void)waited_ns;
	atomic_store(&greedy->clock_moved, true);
	fragi_pump_poke(greedy->base.config.pump, &greedy->waiter);
}

static int greedy_create(const struct fragi_sched_config *config, struct fragi_sched **out_sched)
{
	struct greedy *greedy = fragi_aligned_alloc(64, sizeof(*greedy));
	uint32_t words;

	if (greedy == NULL)
		return -ENOMEM;
	memset(greedy, 0, sizeof(*greedy));
	words = (config->fragment->op_count + 63) / 64;
	greedy->marks = fragi_calloc(words + 1, sizeof(uint64_t));
	greedy->marks_end = greedy->marks + words;
	if (greedy->marks == NULL) {
		fragi_free(greedy);
		return -ENOMEM;
	}
	greedy->here.sched = &greedy->base;
	greedy->until_ns = INT64_MAX;
	greedy->rests_until_ns = INT64_MAX;
	greedy->clock = config->fragment->clock;
	greedy->clock_user = (struct fragi_clock_user){
		.arg = greedy, .waits = waits_for_clock, .moved = clock_moved};
	fragi_clock_join(greedy->clock, &greedy->clock_user);
	greedy->hint_stamps = fragi_sched_stamps(FRAGI_HINT_NS);
	greedy->here.turn_stamps = fragi_sched_stamps(FRAGI_PUMP_TURN_NS);
	*out_sched = &greedy->base;
	return 0;
}

static int greedy_start(struct fragi_sched *sched, struct frag_err *err)
{
	const struct fragi_sched_cores cores = fragi_sched_own_cores(sched);
	struct greedy *greedy = (struct greedy *)sched;

	for (uint32_t i = 0; i < sched->count; i++) {
		sched->execs[i]->mark = &greedy->marks[i / 64];
		sched->execs[i]->mark_bit = (uint64_t)1 << i % 64;
	}
	return fragi_sched_thread_create(sched, &cores, greedy_main, greedy, &greedy->thread, err);
}

static void greedy_wake(struct fragi_sched *sched)
{
	fragi_pump_poke(sched->config.pump, &((struct greedy *)sched)->waiter);
}

static void greedy_join(struct fragi_sched *sched)
{
	pthread_join(((struct greedy *)sched)->thread, NULL);
}

static bool greedy_at_rest(struct fragi_sched *sched, uint64_t *out_rounds)
{
	struct greedy *greedy = (struct greedy *)sched;

	if (atomic_load(&sched->live) == 0) {
		*out_rounds = 0;
		return true;
	}
	*out_rounds = atomic_load(&greedy->rounds);
	/* A manual clock will be moved; a synthetic one only by those who are at rest too. */
	return atomic_load(&greedy->resting) && !atomic_load(&greedy->remote) &&
	       (fragi_clock_kind_of(greedy->clock) != FRAGI_CLOCK_MANUAL ||
		atomic_load(&greedy->rests_until_ns) == INT64_MAX);
}

static void greedy_wake_stalled(struct fragi_sched *sched, int64_t now_ns)
{
	(void)sched;
	(void)now_ns; /* its only thread either works or waits in the pump */
}

static void greedy_destroy(struct fragi_sched *sched)
{
	struct greedy *greedy = (struct greedy *)sched;

	fragi_clock_leave(greedy->clock, &greedy->clock_user);
	fragi_free(greedy->marks);
	fragi_free(sched);
}

const struct fragi_sched_kind fragi_sched_greedy = {
	.name = "greedy",
	.create = greedy_create,
	.start = greedy_start,
	.wake = greedy_wake,
	.join = greedy_join,
	.at_rest = greedy_at_rest,
	.wake_stalled = greedy_wake_stalled,
	.destroy = greedy_destroy,
	.notify = greedy_notify,
};
