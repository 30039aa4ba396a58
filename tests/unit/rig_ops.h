/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_RIG_OPS_H
#define TESTS_UNIT_RIG_OPS_H

/*
 * Operators that number what they send and write down what they get. A sink's notes lie in `notes`
 * by its `slot` parameter, so that they outlive the graph.
 */
#include "../left.h"
#include "rig.h"

#define NOTES_MAX 300000
#define SLOTS 16

struct note {
	_Atomic uint32_t count;
	_Atomic uint32_t started, stopped, closed_before_stop;
	_Atomic uint64_t ticks;
	int64_t values[NOTES_MAX];
	int64_t times[NOTES_MAX];
};
static struct note *_Atomic notes[SLOTS];

static inline struct note *note_of(int64_t slot)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (notes[slot] == NULL)
		notes[slot] = calloc(1, sizeof(struct note));
	pthread_mutex_unlock(&lock);
	return notes[slot];
}

static inline void notes_clear(void)
{
	for (int i = 0; i < SLOTS; i++) {
		free(notes[i]);
		notes[i] = NULL;
	}
}

/* How much there is in a slot; nothing yet is nothing. */
static inline uint32_t noted(int64_t slot)
{
	return notes[slot] != NULL ? atomic_load(&notes[slot]->count) : 0;
}

static inline void note_add(struct note *note, int64_t value)
{
	uint32_t i = atomic_load_explicit(&note->count, memory_order_relaxed);

	if (i < NOTES_MAX) {
		note->values[i] = value;
		note->times[i] = fragi_now_ns();
	}
	atomic_store_explicit(&note->count, i + 1, memory_order_release);
}

/*
 * count numbers from 0, `burst` a tick; then FRAG_DONE (count 0: for ever, or until a condition
 * ends it).
 */
struct source {
	int64_t count, burst, slot, fail_at, hang_at, work_us, stop_app_at;
	int64_t next;
	struct note *note;
};
enum { SOURCE_OUT };
static const struct frag_port source_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "i64"}};
static const struct frag_param source_params[] = {
	FRAG_PARAM_I64(struct source, count, 0),        FRAG_PARAM_I64(struct source, burst, 1),
	FRAG_PARAM_I64(struct source, slot, SLOTS - 1), FRAG_PARAM_I64(struct source, fail_at, -1),
	FRAG_PARAM_I64(struct source, hang_at, -1),     FRAG_PARAM_I64(struct source, work_us, 0),
	FRAG_PARAM_I64(struct source, stop_app_at, -1),
};

static inline void work_for(int64_t us)
{
	int64_t end = fragi_now_ns() + us * 1000;

	while (us > 0 && fragi_now_ns() < end)
		;
}

static int source_start(void *state, struct frag_op *op)
{
	struct source *s = state;

	s->note = note_of(s->slot);
	s->note->started++;
	return 0;
}

static int source_compute(void *state, struct frag_tick *tick)
{
	struct source *s = state;

	atomic_fetch_add(&s->note->ticks, 1);
	work_for(s->work_us);
	if (s->next == s->fail_at)
		return -EIO;
	while (s->next == s->hang_at)
		usleep(1000);
	if (s->next == s->stop_app_at)
		frag_fragment_stop_execution(frag_op_fragment(frag_tick_op(tick)));
	for (int64_t i = 0; i < s->burst; i++) {
		if (s->count > 0 && s->next >= s->count)
			return FRAG_DONE;
		frag_tick_emit_i64(tick, SOURCE_OUT, s->next++);
	}
	return s->count > 0 && s->next >= s->count ? FRAG_DONE : 0;
}

static int source_stop(void *state, struct frag_op *op)
{
	struct source *s = state;

	s->note->stopped++;
	return 0;
}

TEST_OP(source, .headline = "Numbers", .state_size = sizeof(struct source),
	FRAG_PORTS(source_ports), FRAG_PARAMS(source_params), .start = source_start,
	.stop = source_stop);

/* Passes on what comes, plus `add`. */
struct middle {
	int64_t add, slot, fail_at, work_us, done_after, start_fails;
	int64_t seen;
	struct note *note;
};
enum { MIDDLE_IN, MIDDLE_OUT };
static const struct frag_port middle_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64"},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static const struct frag_param middle_params[] = {
	FRAG_PARAM_I64(struct middle, add, 0),
	FRAG_PARAM_I64(struct middle, slot, SLOTS - 2),
	FRAG_PARAM_I64(struct middle, fail_at, -1),
	FRAG_PARAM_I64(struct middle, work_us, 0),
	FRAG_PARAM_I64(struct middle, done_after, -1),
	FRAG_PARAM_I64(struct middle, start_fails, 0),
};

static int middle_start(void *state, struct frag_op *op)
{
	struct middle *s = state;

	if (s->start_fails)
		return frag_op_fail(op, -ENODEV, "there is no device; plug one in");
	s->note = note_of(s->slot);
	s->note->started++;
	return 0;
}

static int middle_compute(void *state, struct frag_tick *tick)
{
	struct middle *s = state;
	int64_t x;
	int r = frag_tick_receive_i64(tick, MIDDLE_IN, &x);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	work_for(s->work_us);
	if (x == s->fail_at)
		return frag_op_fail(frag_tick_op(tick), -EINVAL, "number %lld is bad; send others",
				    (long long)x);
	r = frag_tick_emit_i64(tick, MIDDLE_OUT, x + s->add);
	return r < 0 ? r : ++s->seen == s->done_after ? FRAG_DONE : 0;
}

static int middle_stop(void *state, struct frag_op *op)
{
	struct middle *s = state;

	s->note->stopped++;
	return 0;
}

TEST_OP(middle, .headline = "Passes on", .state_size = sizeof(struct middle),
	FRAG_PORTS(middle_ports), FRAG_PARAMS(middle_params), .start = middle_start,
	.stop = middle_stop);

/* Writes down what comes. */
struct sink {
	int64_t slot, work_us, done_after, stop_self_at, beside;
	struct note *note;
};
enum { SINK_IN };
static const struct frag_port sink_ports[] = {{.name = "in", .dir = FRAG_IN, .type = "i64"}};
static const struct frag_param sink_params[] = {
	FRAG_PARAM_I64(struct sink, slot, 0),          FRAG_PARAM_I64(struct sink, work_us, 0),
	FRAG_PARAM_I64(struct sink, beside, -1),       FRAG_PARAM_I64(struct sink, done_after, -1),
	FRAG_PARAM_I64(struct sink, stop_self_at, -1),
};

static int sink_start(void *state, struct frag_op *op)
{
	struct sink *s = state;

	s->note = note_of(s->slot);
	s->note->started++;
	return 0;
}

/* Waits until the source with the slot `beside` is in the tick behind the one of this message. */
static int sink_await_source(struct sink *s, struct frag_tick *tick)
{
	int64_t end_ns = fragi_now_ns() + RIG_LIMIT_NS;

	while (atomic_load(&note_of(s->beside)->ticks) <= atomic_load(&s->note->ticks))
		if (fragi_now_ns() > end_ns)
			return frag_op_fail(frag_tick_op(tick), -ETIMEDOUT, "the source waits");
	return 0;
}

static int sink_compute(void *state, struct frag_tick *tick)
{
	struct sink *s = state;
	int64_t x;
	int r;

	atomic_fetch_add(&s->note->ticks, 1);
	r = frag_tick_receive_i64(tick, SINK_IN, &x);
	if (r == -ENOMSG)
		return 0;
	if (r < 0)
		return r;
	work_for(s->work_us);
	/* The first ticks show how long they are; the source has none behind the last one. */
	r = s->beside >= 0 && x >= 10 && x < 90 ? sink_await_source(s, tick) : 0;
	if (r < 0)
		return r;
	note_add(s->note, x);
	if (x == s->stop_self_at)
		frag_op_stop_execution(frag_tick_op(tick));
	return atomic_load(&s->note->count) == s->done_after ? FRAG_DONE : 0;
}

static int sink_stop(void *state, struct frag_op *op)
{
	struct sink *s = state;

	s->note->stopped++;
	return 0;
}

TEST_OP(sink, .headline = "Writes down", .state_size = sizeof(struct sink), FRAG_PORTS(sink_ports),
	FRAG_PARAMS(sink_params), .start = sink_start, .stop = sink_stop);

/*
 * A multi-receiver: takes `rounds` messages of each flow a tick, and notes 1000 * flow + value for
 * each, -1 - flow for each that is missing.
 */
struct gather {
	int64_t slot, rounds;
	struct note *note;
};
static const struct frag_port gather_ports[] = {
	{.name = "receivers", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_MULTI}};
static const struct frag_param gather_params[] = {FRAG_PARAM_I64(struct gather, slot, 0),
						  FRAG_PARAM_I64(struct gather, rounds, 1)};

static int gather_round(struct gather *s, struct frag_tick *tick)
{
	const struct frag_message *const *messages;
	const void *value;
	int n = frag_tick_receive_all(tick, 0, &messages);

	for (int i = 0; i < n; i++) {
		if (messages[i] == NULL) {
			note_add(s->note, -1 - i);
			continue;
		}
		frag_message_value(messages[i], &value, NULL);
		note_add(s->note, 1000 * i + *(const int64_t *)value);
	}
	return n < 0 ? n : 0;
}

static int gather_compute(void *state, struct frag_tick *tick)
{
	struct gather *s = state;
	int r = 0;

	s->note = note_of(s->slot);
	for (int64_t i = 0; i < s->rounds && r == 0; i++)
		r = gather_round(s, tick);
	return r;
}

TEST_OP(gather, .headline = "Takes from all", .state_size = sizeof(struct gather),
	FRAG_PORTS(gather_ports), FRAG_PARAMS(gather_params));

/* Takes all that waits, and notes how many that were. */
struct taker {
	int64_t slot;
};
static const struct frag_param taker_params[] = {FRAG_PARAM_I64(struct taker, slot, 0)};

static int taker_compute(void *state, struct frag_tick *tick)
{
	const struct taker *s = state;
	int64_t x, n = 0;

	while (frag_tick_receive_i64(tick, SINK_IN, &x) == 0)
		n++;
	note_add(note_of(s->slot), n);
	return 0;
}

TEST_OP(taker, .headline = "Takes all that waits", .state_size = sizeof(struct taker),
	FRAG_PORTS(sink_ports), FRAG_PARAMS(taker_params));

/* Sends 0 in its first tick, then one more than what came back. */
struct ring {
	int64_t slot;
	struct note *note;
};
static const struct frag_port ring_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_NO_CONDITION},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static const struct frag_param ring_params[] = {FRAG_PARAM_I64(struct ring, slot, 0)};

static int ring_compute(void *state, struct frag_tick *tick)
{
	struct ring *s = state;
	int64_t x;
	int r;

	s->note = note_of(s->slot);
	if (frag_tick_count(tick) == 0)
		return frag_tick_emit_i64(tick, 1, 0);
	r = frag_tick_receive_i64(tick, 0, &x);
	if (r == -ENOMSG)
		return 0;
	note_add(s->note, x);
	return r < 0 ? r : frag_tick_emit_i64(tick, 1, x + 1);
}

TEST_OP(ring, .headline = "Sends round and round", .state_size = sizeof(struct ring),
	FRAG_PORTS(ring_ports), FRAG_PARAMS(ring_params));

TEST_PLUGIN(rig, &source_type, &middle_type, &sink_type, &gather_type, &taker_type, &ring_type);

/* Both schedulers, one thread and several, and the name that is accepted as an alias. */
static const char *const rig_schedulers[] = {
	"{type: greedy}",
	"{type: event_based, worker_thread_number: 1}",
	"{type: event_based, worker_thread_number: 2}",
	"{type: multi_thread, worker_thread_number: 4}",
};
#define RIG_ONE_THREAD 2 /* so many of them, the first ones, have one thread */

/* Runs what follows under each of them; notes are new each time. */
#define FOR_EACH_SCHEDULER(s)                                                                      \
	for (size_t s = 0; s < FRAG_COUNT_OF(rig_schedulers); s++, notes_clear())

/* An application under the s-th scheduler; valid until the next call. */
static inline const char *rig_graph(size_t s, const char *rest)
{
	static char text[70000];

	snprintf(text, sizeof(text), "frag: 1\napplication: app\nscheduler: %s\n%s",
		 rig_schedulers[s], rest);
	return text;
}

/*
 * A test of a rig that is new under each scheduler, s. What was prepared in it is given back after
 * it; no descriptor, thread or shared memory may be left then.
 */
#define RIG_TEST(suite, name)                                                                      \
	static void suite##_##name(struct rig *rig, size_t s);                                     \
	Test(suite, name)                                                                          \
	{                                                                                          \
		FOR_EACH_SCHEDULER(s)                                                              \
		rig_test(suite##_##name, s);                                                       \
	}                                                                                          \
	static void suite##_##name(struct rig *rig, size_t s)

/* The same once. */
#define RIG_ONE_TEST(suite, name)                                                                  \
	static void suite##_##name(struct rig *rig, size_t s);                                     \
	Test(suite, name)                                                                          \
	{                                                                                          \
		rig_test(suite##_##name, 0);                                                       \
	}                                                                                          \
	static void suite##_##name(struct rig *rig, size_t s)

static inline void rig_test(void (*test)(struct rig *rig, size_t s), size_t s)
{
	struct left before = left_now();
	struct rig rig = {0};

	test(&rig, s);
	rig_end(&rig);
	if (left_is_more(before))
		RIG_FAIL("something is left (scheduler %zu)\n", s);
}

#endif
