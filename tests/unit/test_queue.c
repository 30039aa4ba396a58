// SPDX-License-Identifier: Apache-2.0
/* The queue of an edge between two threads that push, take and close at the same time. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include <base/stamp.h>
#include <edge/edge.h>

/* A race is seen in the first rounds under ThreadSanitizer, which makes them slow. */
#ifdef __SANITIZE_THREAD__
#define ROUNDS 100000
#else
#define ROUNDS 300000
#endif
/*
 * A queue of one message needs a switch of threads for each. Beside other work the kernel makes few
 * in a second, so the sender ends after this time, and the sums are those of what it has sent.
 */
#define LONG_NS (2 * INT64_C(1000000000))

struct contest {
	int64_t rounds, end_ns, sent;
	struct fragi_tx *tx;
	struct fragi_rx *rx;
	struct fragi_flow_row row;
	_Atomic bool over;
};

static struct frag_message *message_of(int64_t value)
{
	struct frag_message *message = frag_message_create();

	frag_message_set_value(message, &frag_type_i64, &value, sizeof(value), NULL);
	fragi_message_share(message);
	return message;
}

static int64_t value_of(const struct frag_message *message)
{
	const void *value;

	cr_assert_not_null(frag_message_value(message, &value, NULL));
	return *(const int64_t *)value;
}

static void *push_all(void *arg)
{
	struct contest *c = arg;

	for (; c->sent < c->rounds && fragi_now_ns() < c->end_ns; c->sent++) {
		while (c->tx->ops->room(c->tx) == 0)
			sched_yield();
		c->tx->ops->send(c->tx, message_of(c->sent), fragi_stamp());
	}
	c->tx->ops->close(c->tx);
	return NULL;
}

static uint64_t drops(const struct contest *c)
{
	uint64_t sum = 0;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		sum += c->row.tx_dropped[i] + c->row.rx_dropped[i];
	return sum;
}

static void run(enum frag_policy policy, uint32_t capacity, int64_t close_after, int64_t rounds)
{
	static struct contest c;
	struct frag_message *message;
	int64_t last = -1, value, taken = 0;
	pthread_t thread;

	memset(&c, 0, sizeof(c));
	c.rounds = rounds;
	c.end_ns = close_after < 0 ? fragi_now_ns() + LONG_NS : INT64_MAX;
	cr_assert_eq(fragi_inproc_create(capacity, policy, &c.row, &c.tx, &c.rx), 0);
	pthread_create(&thread, NULL, push_all, &c);
	while (!fragi_rx_is_finished(c.rx)) {
		message = fragi_rx_take(c.rx, fragi_stamp());
		if (message == NULL) {
			sched_yield();
			continue;
		}
		value = value_of(message);
		if (policy == FRAG_POLICY_BLOCK)
			cr_assert_eq(value, last + 1);
		cr_assert_gt(value, last);
		last = value;
		frag_message_unref(message);
		if (++taken == close_after)
			fragi_rx_close(c.rx);
	}
	pthread_join(thread, NULL);
	/* At rest nothing is left in the queue, also where a push met the close. */
	cr_assert_eq(fragi_rx_available(c.rx), 0);
	cr_assert_gt(c.sent, 0);
	cr_assert_eq(c.row.sent, c.sent);
	cr_assert_eq(c.row.delivered + drops(&c), c.sent);
	cr_assert_eq(c.row.latency.count, c.row.delivered);
	if (close_after < 0)
		cr_assert_eq(last, c.sent - 1);
	else if (policy == FRAG_POLICY_BLOCK)
		cr_assert_gt(c.row.tx_dropped[FRAGI_DROP_RECEIVER_DONE], 0);
	fragi_inproc_destroy(c.tx);
}

Test(queue, block_between_threads)
{
	run(FRAG_POLICY_BLOCK, 1, -1, ROUNDS);
	run(FRAG_POLICY_BLOCK, 5, -1, ROUNDS);
	run(FRAG_POLICY_BLOCK, 64, -1, ROUNDS);
}

Test(queue, pop_between_threads)
{
	run(FRAG_POLICY_POP, 1, -1, ROUNDS);
	run(FRAG_POLICY_POP, 3, -1, ROUNDS);
}

Test(queue, latest_between_threads)
{
	run(FRAG_POLICY_LATEST, 0, -1, ROUNDS);
}

/*
 * Where the oldest message makes room for a new one, a message that the receiver has seen may be
 * gone, but then another one is there: an operator that is ready always receives one.
 */
static void expect_one_for_each_look(enum frag_policy policy)
{
	static struct contest c;
	struct frag_message *message;
	pthread_t thread;

	memset(&c, 0, sizeof(c));
	c.rounds = ROUNDS;
	c.end_ns = fragi_now_ns() + LONG_NS;
	cr_assert_eq(fragi_inproc_create(1, policy, &c.row, &c.tx, &c.rx), 0);
	pthread_create(&thread, NULL, push_all, &c);
	while (!fragi_rx_is_finished(c.rx)) {
		if (fragi_rx_available(c.rx) == 0) {
			sched_yield();
			continue;
		}
		message = fragi_rx_take(c.rx, fragi_stamp());
		cr_assert_not_null(message, "after %llu", (unsigned long long)c.row.delivered);
		frag_message_unref(message);
	}
	pthread_join(thread, NULL);
	cr_assert_eq(c.row.delivered + drops(&c), c.sent);
	fragi_inproc_destroy(c.tx);
}

Test(queue, a_receiver_that_has_seen_a_message_gets_one)
{
	expect_one_for_each_look(FRAG_POLICY_POP);
	expect_one_for_each_look(FRAG_POLICY_LATEST);
}

static struct fragi_rx *watched;
static uint32_t available[4], gone;

static void count_available(void *value)
{
	if (gone < FRAG_COUNT_OF(available))
		available[gone++] = fragi_rx_available(watched);
}

/* The same in one thread: when a dropped message is freed the newer one is there already. */
Test(queue, the_oldest_goes_when_the_newest_is_there)
{
	static const struct frag_type type = {FRAG_TYPE_INIT, .name = "watched", .size = 8,
					      .fini = count_available};
	struct fragi_flow_row row = {0};
	struct frag_message *message;
	struct fragi_tx *tx;

	cr_assert_eq(fragi_inproc_create(1, FRAG_POLICY_LATEST, &row, &tx, &watched), 0);
	for (int i = 0; i < 3; i++) {
		message = frag_message_create();
		cr_assert_eq(frag_message_set_value(message, &type, NULL, 8, NULL), 0);
		cr_assert_eq(tx->ops->send(tx, message, fragi_stamp()), 0);
	}
	cr_expect_eq(gone, 2);
	cr_expect_eq(available[0], 1);
	cr_expect_eq(available[1], 1);
	fragi_inproc_destroy(tx);
}

/* As the summary says when the first message of a flow was sent. */
Test(queue, the_first_message_has_its_time)
{
	const uint64_t before_ns = (uint64_t)fragi_now_ns();
	struct fragi_flow_row row = {0};
	struct fragi_tx *tx;
	struct fragi_rx *rx;
	uint64_t first_ns;

	cr_assert_eq(fragi_inproc_create(4, FRAG_POLICY_BLOCK, &row, &tx, &rx), 0);
	cr_expect_eq(row.first_ns, 0);
	cr_assert_eq(tx->ops->send(tx, frag_message_create(), fragi_stamp()), 0);
	first_ns = row.first_ns;
	cr_expect(first_ns >= before_ns && first_ns <= (uint64_t)fragi_now_ns());
	while ((uint64_t)fragi_now_ns() == first_ns)
		;
	cr_assert_eq(tx->ops->send(tx, frag_message_create(), fragi_stamp()), 0);
	cr_expect_eq(row.first_ns, first_ns);
	fragi_inproc_destroy(tx);
}

Test(queue, close_between_threads)
{
	const int64_t end_ns = fragi_now_ns() + 4 * LONG_NS;

	for (int i = 0; i < 100 && (i < 4 || fragi_now_ns() < end_ns); i++) {
		run(FRAG_POLICY_BLOCK, 2, 100 + i, 2000);
		run(FRAG_POLICY_POP, 2, 100 + i, 2000);
	}
}

Test(queue, capacity_that_cannot_be_is_refused)
{
	struct fragi_queue queue;

	cr_assert_eq(fragi_queue_init(&queue, 0, 0), -EINVAL);
	cr_assert_eq(fragi_queue_init(&queue, FRAGI_CAPACITY_MAX + 1, 0), -EINVAL);
	cr_assert_eq(fragi_queue_init(&queue, 8, 0), 0);
	cr_assert_eq(queue.mask, 7);
	fragi_queue_fini(&queue);
	cr_assert_eq(fragi_queue_init(&queue, 8, 1), 0);
	cr_assert_eq(queue.mask, 15);
	fragi_queue_fini(&queue);
}
