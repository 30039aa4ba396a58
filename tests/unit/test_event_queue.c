// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sched.h>

#include <criterion/criterion.h>

#include <sched/event.h>

/*
 * Which thread of the event-based scheduler runs an operator, and when another one is woken. Times
 * are plain numbers here: no clock is read.
 */
#define MOVE 100
#define WAKE 1000
#define WAITED 5000
#define LONG 10000
#define OF(stamps)                                                                                 \
	{                                                                                          \
		.expected = (stamps), .long_from = MOVE                                            \
	}

/* A scheduler without threads of its own; one thread waits in the pump. */
static void event_init(struct event *event)
{
	memset(event, 0, sizeof(*event));
	event->shorts.tail = &event->shorts.head;
	event->longs.tail = &event->longs.head;
	event->wake_stamps = WAKE;
	event->waited_stamps = WAITED;
	event->long_stamps = LONG;
	event->timer_ns = INT64_MAX;
	event->covers_ns = INT64_MAX;
	event->in_pump = true;
}

Test(event_queue, one_thread_runs_all_short_operators)
{
	struct fragi_exec a = OF(99), b = OF(1), c = OF(0);
	struct event_thread home = {.streak = 0}, other = {.streak = 0};
	struct event event;

	event_init(&event);
	event_push_locked(&event, &a);
	event_push_locked(&event, &b);
	event_push_locked(&event, &c);
	cr_expect_not(event_is_empty_for(&event, &other));
	cr_expect_eq(event_pop_locked(&event, &home), &a);
	cr_expect(event_is_empty_for(&event, &other));
	cr_expect_null(event_pop_locked(&event, &other));
	cr_expect_not(event_is_empty_for(&event, &home));
	cr_expect_eq(event_pop_locked(&event, &home), &b);
	/* The role is free: the next one that comes has it. */
	atomic_store(&event.home, NULL);
	cr_expect_eq(event_pop_locked(&event, &other), &c);
	cr_expect_not(event_settle(&event, &home));
	cr_expect(event_settle(&event, &other));
	cr_expect_null(event_pop_locked(&event, &other));
	cr_expect_eq(event.queued, 0);
}

Test(event_queue, any_thread_runs_long_operators)
{
	struct fragi_exec is_short = OF(99), a = OF(100), b = OF(700);
	struct event_thread home = {.streak = 0}, other = {.streak = 0};
	struct event event;

	event_init(&event);
	cr_assert(event_settle(&event, &home));
	event_push_locked(&event, &is_short);
	event_push_locked(&event, &a);
	event_push_locked(&event, &b);
	cr_expect_eq(event.long_count, 2);
	cr_expect_eq(event.backlog, 800);
	cr_expect_eq(event_pop_locked(&event, &other), &a);
	cr_expect_eq(event.backlog, 700);
	cr_expect_eq(event_pop_locked(&event, &other), &b);
	cr_expect_null(event_pop_locked(&event, &other));
	cr_expect_eq(event.backlog, 0);
	cr_expect_eq(event.long_count, 0);
	cr_expect_eq(event_pop_locked(&event, &home), &is_short);
}

Test(event_queue, the_home_thread_takes_them_in_the_order_in_which_they_came)
{
	struct fragi_exec execs[6];
	struct event_thread home = {.streak = 0};
	struct event event;

	event_init(&event);
	for (int i = 0; i < 6; i++) {
		execs[i] = (struct fragi_exec)OF(i % 2 == 0 ? 10 : 500);
		event_push_locked(&event, &execs[i]);
	}
	for (int i = 0; i < 6; i++)
		cr_expect_eq(event_pop_locked(&event, &home), &execs[i], "%d", i);
	cr_expect_null(event_pop_locked(&event, &home));
}

Test(event_queue, long_operators_are_left_to_the_thread_that_wakes_up)
{
	struct fragi_exec is_long = OF(500), is_short = OF(10);
	struct event_thread home = {.streak = 0};
	struct event event;

	event_init(&event);
	event.waking = true;
	event_push_locked(&event, &is_long);
	event_push_locked(&event, &is_short);
	cr_expect_eq(event_pop_locked(&event, &home), &is_short);
	/* But better this thread than none. */
	cr_expect_eq(event_pop_locked(&event, &home), &is_long);
	/* The same for one that looks for work. */
	event.waking = false;
	event.spinning = 1;
	event_push_locked(&event, &is_long);
	event_push_locked(&event, &is_short);
	cr_expect_eq(event_pop_locked(&event, &home), &is_short);
}

Test(event_queue, another_thread_takes_over_from_one_that_stays_in_a_turn)
{
	struct fragi_exec a = OF(10), b = OF(10), c = OF(10);
	struct event_thread home = {.turns = 7}, other = {.streak = 0};
	uint64_t turns = 0;
	struct event event;

	event_init(&event);
	home.round.tail = &home.round.head;
	event_enqueue(&home.round, &a);
	event_enqueue(&home.round, &b);
	fragi_event_leave_home_locked(&event, &turns); /* nobody has the role */
	cr_expect_eq(turns, 0);
	event_push_locked(&event, &c);
	cr_assert(event_settle(&event, &home));
	event_set_holding(&home, true);
	fragi_event_leave_home_locked(&event, &turns);
	cr_expect_eq(event.home, &home);
	atomic_store(&home.turns, 8);
	fragi_event_leave_home_locked(&event, &turns); /* it has run another one */
	cr_expect_eq(event.home, &home);
	fragi_event_leave_home_locked(&event, &turns);
	cr_expect_null(event.home);
	cr_expect_null(home.round.head);
	cr_expect_eq(event_pop_locked(&event, &other), &c);
	cr_expect_eq(event_pop_locked(&event, &other), &a);
	cr_expect_eq(event_pop_locked(&event, &other), &b);
	cr_expect_eq(event.queued, 0);
	/* An empty round takes operators again. */
	event_enqueue(&home.round, &b);
	cr_expect_eq(event_dequeue(&home.round), &b);
}

/* It may be changing it; it will see that it has lost the role, and put it into the queue. */
Test(event_queue, the_round_of_a_thread_between_two_ticks_is_left_to_it)
{
	struct fragi_exec a = OF(10);
	struct event_thread home = {.turns = 7};
	uint64_t turns = 7;
	struct event event;

	event_init(&event);
	home.round.tail = &home.round.head;
	event_enqueue(&home.round, &a);
	cr_assert(event_settle(&event, &home));
	fragi_event_leave_home_locked(&event, &turns);
	cr_expect_null(event.home);
	cr_expect_eq(home.round.head, &a);
	event_share_round_locked(&event, &home);
	cr_expect_null(home.round.head);
	cr_expect_eq(event.queued, 1);
}

/* Before its long tick, when another has found it in one turn for too long just before. */
Test(event_queue, a_thread_that_has_lost_the_role_does_not_take_it_from_the_next_one)
{
	struct event_thread first = {.was_home = true}, next = {.streak = 0};
	struct fragi_exec a = OF(10);
	struct event event;

	event_init(&event);
	first.round.tail = &first.round.head;
	event_enqueue(&first.round, &a);
	cr_assert(event_settle(&event, &next));
	event_give_home_up_locked(&event, &first);
	cr_expect_eq(event.home, &next);
	cr_expect_not(first.was_home);
	cr_expect_eq(event_pop_locked(&event, &next), &a);
	next.round.tail = &next.round.head;
	event_give_home_up_locked(&event, &next);
	cr_expect_null(event.home);
}

struct comer {
	struct event event;
	struct event_thread thread;
	_Atomic bool ending;
};

static void *come_and_go(void *arg)
{
	struct comer *comer = arg;

	while (!atomic_load(&comer->ending)) {
		event_settle(&comer->event, &comer->thread);
		atomic_store(&comer->event.home, NULL);
	}
	return NULL;
}

/* Threads take the role without the lock, and may do so in the turn in which they gave it up. */
Test(event_queue, the_role_may_be_taken_while_another_thread_looks)
{
	static struct comer comer;
	pthread_t pthread;

	event_init(&comer.event);
	comer.thread.turns = 7;
	comer.thread.round.tail = &comer.thread.round.head;
	cr_assert_eq(pthread_create(&pthread, NULL, come_and_go, &comer), 0);
	/* Where both share a core it is found seldom. */
	for (int i = 0, found = 0; i < 20000000 && found < 20000; i++) {
		uint64_t turns = 7;

		fragi_event_leave_home_locked(&comer.event, &turns);
		cr_assert(turns == 0 || turns == 7);
		found += turns == 7;
	}
	atomic_store(&comer.ending, true);
	pthread_join(pthread, NULL);
}

/* An operator that was ticked, and is ready again when a message has come. */
struct kept {
	struct event event;
	struct event_thread thread;
	struct fragi_exec exec, other;
	struct fragi_distance messages;
	_Atomic uint64_t sent, received;
	_Atomic bool closed;
};

static void kept_init(struct kept *kept, uint64_t keep_stamps)
{
	memset(kept, 0, sizeof(*kept));
	event_init(&kept->event);
	kept->other = (struct fragi_exec)OF(500);
	kept->messages = (struct fragi_distance){&kept->sent, &kept->received, 1, &kept->closed};
	kept->exec.distances = &kept->messages;
	kept->exec.distances_end = &kept->messages + 1;
	kept->exec.receiver_done = &kept->closed;
	kept->exec.state = FRAGI_QUEUED;
	kept->thread.here.stamp = fragi_stamp();
	kept->thread.here.turn_stamps = UINT64_MAX;
	kept->thread.keep_stamps = keep_stamps;
}

static void *notify_kept(void *arg)
{
	struct kept *kept = arg;

	while (atomic_load(&kept->exec.state) != FRAGI_RUNNING)
		sched_yield();
	atomic_store(&kept->sent, 1);
	/* So the one that notifies queues nothing. */
	cr_expect_eq(atomic_fetch_or(&kept->exec.state, FRAGI_QUEUED), FRAGI_RUNNING);
	return NULL;
}

static void *queue_beside_kept(void *arg)
{
	struct kept *kept = arg;

	while (atomic_load(&kept->event.spinning) == 0)
		sched_yield();
	fragi_lock_take(&kept->event.lock);
	event_push_locked(&kept->event, &kept->other);
	fragi_lock_leave(&kept->event.lock);
	return NULL;
}

static enum frag_ready keep_beside(struct kept *kept, void *(*beside)(void *arg))
{
	enum frag_ready ready;
	pthread_t pthread;

	kept_init(kept, INT64_MAX);
	cr_assert_eq(pthread_create(&pthread, NULL, beside, kept), 0);
	ready = fragi_event_keep(&kept->event, &kept->thread, &kept->exec, 0);
	pthread_join(pthread, NULL);
	cr_expect_eq(kept->exec.state, FRAGI_RUNNING);
	cr_expect_eq(kept->event.spinning, 0);
	cr_expect_eq(kept->thread.keep_stamps, 0);
	return ready;
}

Test(event_queue, a_kept_operator_goes_on_when_it_is_notified)
{
	static struct kept kept;

	cr_expect_eq(keep_beside(&kept, notify_kept), FRAG_READY);
	cr_expect_eq(kept.event.queued, 0);
}

Test(event_queue, a_kept_operator_is_given_up_for_others_and_in_the_end)
{
	static struct kept kept;

	cr_expect_eq(keep_beside(&kept, queue_beside_kept), FRAG_WAIT);
	cr_expect_eq(event_pop_locked(&kept.event, &kept.thread), &kept.other);
	kept_init(&kept, 1);
	cr_expect_eq(fragi_event_keep(&kept.event, &kept.thread, &kept.exec, 0), FRAG_WAIT);
	/* What was queued before is looked at first, and without a wait. */
	kept_init(&kept, INT64_MAX);
	event_push_locked(&kept.event, &kept.other);
	cr_expect_eq(fragi_event_keep(&kept.event, &kept.thread, &kept.exec, 0), FRAG_WAIT);
	/* What the tick has notified runs before. */
	kept_init(&kept, INT64_MAX);
	kept.thread.held = &kept.other;
	cr_expect_eq(fragi_event_keep(&kept.event, &kept.thread, &kept.exec, 0), FRAG_WAIT);
	/* It has ended, which is another's to say. */
	kept_init(&kept, INT64_MAX);
	cr_expect_eq(fragi_event_keep(&kept.event, &kept.thread, &kept.exec, FRAG_DONE),
		     FRAG_READY);
}

/* Of two threads that see one operator the slower one finds nothing, and does not sleep yet. */
Test(event_queue, a_thread_that_finds_nothing_looks_on_for_as_long_as_it_would_have_kept)
{
	static struct kept kept;
	pthread_t pthread;

	kept_init(&kept, 1000);
	event_push_locked(&kept.event, &kept.other);
	cr_expect_eq(fragi_event_keep(&kept.event, &kept.thread, &kept.exec, 0), FRAG_WAIT);
	cr_expect_eq(kept.thread.look_until, kept.thread.here.stamp + 1000);
	cr_expect_eq(event_pop_locked(&kept.event, &kept.thread), &kept.other);
	/* Nothing comes. */
	cr_expect_not(fragi_event_look(&kept.event, &kept.thread));
	cr_expect_geq(kept.thread.here.stamp, kept.thread.look_until);
	cr_expect_eq(kept.event.spinning, 0);
	/* Something comes. */
	kept.thread.look_until = UINT64_MAX;
	cr_assert_eq(pthread_create(&pthread, NULL, queue_beside_kept, &kept), 0);
	cr_expect(fragi_event_look(&kept.event, &kept.thread));
	pthread_join(pthread, NULL);
	cr_expect_eq(kept.event.spinning, 0);
	/* There is some, but the time is over: that it sleeps is not decided here. */
	kept.thread.look_until = kept.thread.here.stamp;
	cr_expect_not(fragi_event_look(&kept.event, &kept.thread));
	/* The scheduler ends. */
	cr_expect_eq(event_pop_locked(&kept.event, &kept.thread), &kept.other);
	kept.thread.look_until = UINT64_MAX;
	atomic_store(&kept.event.ending, true);
	cr_expect(fragi_event_look(&kept.event, &kept.thread));
}

Test(event_queue, long_operators_are_left_to_one_that_comes_while_the_round_lasts)
{
	struct fragi_exec is_long = OF(500), is_short = OF(10);
	struct event_thread home = {.streak = 0};
	struct event event;

	event_init(&event);
	home.round.tail = &home.round.head;
	event_enqueue(&home.round, &is_short);
	event_push_locked(&event, &is_long);
	event.waking = true;
	cr_expect_null(event_pop_locked(&event, &home));
	event.waking = false;
	cr_expect_eq(event_pop_locked(&event, &home), &is_long);
}

/* However many short operators wait, and however long they do. */
Test(event_queue, no_thread_is_woken_for_short_operators)
{
	static struct fragi_exec execs[1000];
	struct event_thread home = {.streak = 0};
	struct event event;

	event_init(&event);
	for (int i = 0; i < 1000; i++) {
		execs[i] = (struct fragi_exec)OF(1 + (uint64_t)i % (MOVE - 1));
		event_push_locked(&event, &execs[i]);
	}
	for (int i = 0; i < 100000; i++) {
		struct fragi_exec *exec = event_pop_locked(&event, &home);

		cr_assert_not(event_may_delay(&event, exec));
		event_push_locked(&event, exec);
	}
	cr_expect_eq(event.waited, 0);
}

Test(event_queue, a_first_tick_and_a_long_one_may_delay_others)
{
	struct fragi_exec fresh = OF(0), is_long = OF(5000);
	struct fragi_exec is_short = OF(10);
	struct event event;

	event_init(&event);
	cr_expect(event_may_delay(&event, &fresh));
	cr_expect(event_may_delay(&event, &is_long));
	cr_expect_not(event_may_delay(&event, &is_short));
	event_push_locked(&event, &is_long);
	cr_expect(event_may_delay(&event, &is_short));
}

Test(event_queue, a_thread_is_woken_for_operators_that_would_wait_for_long)
{
	struct fragi_exec is_short = OF(10), is_long = OF(500);
	struct event event;

	event_init(&event);
	cr_expect_not(event_is_worth_waking(&event, LONG), "nothing waits");
	event_push_locked(&event, &is_short);
	cr_expect_not(event_is_worth_waking(&event, WAKE));
	cr_expect(event_is_worth_waking(&event, WAKE + 1));
	event_push_locked(&event, &is_long);
	cr_expect_not(event_is_worth_waking(&event, WAKE - 500));
	cr_expect(event_is_worth_waking(&event, WAKE - 500 + 1));
	event.spinning = 1;
	cr_expect_not(event_is_worth_waking(&event, WAKE - 500 + 1), "a thread looks for them");
}

Test(event_queue, a_thread_is_woken_for_operators_that_wait_again_and_again)
{
	struct fragi_exec is_long = OF(500);
	struct event event;
	int ticks = 1;

	event_init(&event);
	event_push_locked(&event, &is_long);
	while (!event_is_worth_waking(&event, 10))
		ticks++;
	cr_expect_eq(ticks, WAITED / 10 + 1);
}

Test(event_queue, a_thread_is_woken_to_watch_during_a_long_tick)
{
	struct event event;

	event_init(&event);
	cr_expect_not(event_is_worth_waking(&event, LONG + 1));
	event.in_pump = false;
	cr_expect(event_is_worth_waking(&event, LONG + 1));
	cr_expect_not(event_is_worth_waking(&event, LONG));
	event.in_pump = true;
	event.timer_ns = 1000; /* nobody sleeps until then only */
	cr_expect(event_is_worth_waking(&event, LONG + 1));
	event.covers_ns = 1000;
	cr_expect_not(event_is_worth_waking(&event, LONG + 1));
}
