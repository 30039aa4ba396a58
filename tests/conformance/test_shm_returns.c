// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that a receiver gives back rings nobody. It is there before the credit that its sender may
 * wait for, and with the next beat where no credit follows.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <time.h>

#include "pair.h"
#include <base/stamp.h>
#include <data/allocator.h>
#include "../slow.h"

#define BYTES 100000
#define BEAT_NS INT64_C(1000000000)
#define NO_BEATS_NS INT64_C(1000000000000)
/* A message whose tensor lies in the sender's shared memory. */
static struct frag_message *message_in_heap(const struct pair *pair, uint8_t value)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_message *message = frag_message_create();
	struct frag_tensor *tensor;
	int64_t bytes = BYTES;

	if (frag_tensor_create(pair_memory(pair, 0), u8, 1, &bytes, &tensor) < 0)
		abort();
	memset(frag_tensor_writable(tensor), value, BYTES);
	frag_message_add_tensor(message, "", tensor);
	fragi_message_share(message);
	return message;
}

static uint32_t kept(const struct pair *pair)
{
	uint32_t count;

	fragi_pump_lock(pair->pump[0]);
	count = fragi_remote_tx_kept(pair->tx);
	fragi_pump_unlock(pair->pump[0]);
	return count;
}

/* What the sender finds when it learns that there is room. */
struct news {
	const struct pair *pair;
	uint32_t count, kept_max;
};

static void on_room(void *arg)
{
	struct news *news = arg;
	uint32_t now = fragi_remote_tx_kept(news->pair->tx);

	news->count++;
	news->kept_max = now > news->kept_max ? now : news->kept_max;
}

PAIR_TEST(shm_returns, a_slot_comes_back_before_the_credit_for_it, &kind_shm, .capacity = 1,
	  .dead_ns = NO_BEATS_NS)
{
	struct news news = {.pair = pair};
	struct frag_message *message;

	pair->tx->room = (struct fragi_notify){on_room, &news};
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(pair->tx->ops->send(pair->tx, message_in_heap(pair, (uint8_t)i),
						 fragi_stamp()),
			     0);
		pair_settle(pair);
		cr_assert_eq(pair->tx->ops->room(pair->tx), 0);
		cr_assert_eq(news.count, (uint32_t)i);
		/* As where the operator is done before its host sends: both travel in one round. */
		fragi_pump_lock(pair->pump[1]);
		message = fragi_rx_take(pair->rx, fragi_stamp());
		cr_assert_not_null(message);
		frag_message_unref(message);
		fragi_pump_unlock(pair->pump[1]);
		pair_settle(pair);
		cr_assert_eq(news.count, (uint32_t)i + 1);
		cr_assert_eq(news.kept_max, 0, "round %d: the credit came first", i);
	}
}

/* A sender and a receiver, each of which sleeps in its pump. */
struct stream {
	struct pair *pair;
	int count, sent;
	uint32_t kept_max;
};

static bool sender_may(void *arg)
{
	const struct stream *s = arg;

	return s->pair->tx->ops->room(s->pair->tx) > 0;
}

static bool receiver_may(void *arg)
{
	const struct stream *s = arg;

	return fragi_rx_available(s->pair->rx) > 0;
}

static void *send_all(void *arg)
{
	struct stream *s = arg;
	uint32_t now;

	for (; s->sent < s->count; s->sent++) {
		while (!sender_may(s))
			fragi_pump_wait(s->pair->pump[0], &s->pair->waiter[0], INT64_MAX,
					sender_may, s);
		now = kept(s->pair);
		s->kept_max = now > s->kept_max ? now : s->kept_max;
		s->pair->tx->ops->send(s->pair->tx, message_in_heap(s->pair, (uint8_t)s->sent),
				       fragi_stamp());
	}
	return NULL;
}

static bool is_whole(const struct frag_message *message, int number)
{
	const uint8_t *bytes = frag_tensor_data(frag_message_tensor(message, NULL));

	return bytes[0] == (uint8_t)number && bytes[BYTES - 1] == (uint8_t)number;
}

/* Nothing but the credit wakes the sender: no beat, and no sleep that ends by time. */
Test(shm_returns, a_sender_that_is_woken_has_credit_and_memory, .init = set_environment,
     .timeout = 120)
{
	const struct timespec tick = {.tv_nsec = 300000};

	for (uint32_t capacity = 1; capacity <= 4; capacity *= 2) {
		struct pair pair = {.capacity = capacity, .threads = true, .dead_ns = NO_BEATS_NS};
		struct stream s = {.pair = &pair, .count = 300};
		struct frag_message *message;
		pthread_t thread;

		pair_open(&pair, &kind_shm);
		cr_assert_eq(pthread_create(&thread, NULL, send_all, &s), 0);
		for (int i = 0; i < s.count; i++) {
			while ((message = fragi_rx_take(pair.rx, fragi_stamp())) == NULL)
				fragi_pump_wait(pair.pump[1], &pair.waiter[1], INT64_MAX,
						receiver_may, &s);
			cr_assert(is_whole(message, i), "message %d", i);
			if (i % 3 == 0)
				nanosleep(&tick, NULL); /* the sender falls asleep */
			frag_message_unref(message);
		}
		pthread_join(thread, NULL);
		/* those that wait, and the one that was just received: the rule for a pool */
		cr_expect_leq(s.kept_max, capacity);
		check_balance(&pair, 0);
		pair_close(&pair);
	}
}

/* Under these policies the credit has long come when the receiver lets go. */
Test(shm_returns, memory_that_no_credit_follows_comes_with_a_beat, .init = set_environment,
     .timeout = 120)
{
	static const enum frag_policy policies[] = {FRAG_POLICY_POP, FRAG_POLICY_LATEST};

	for (size_t i = 0; i < FRAG_COUNT_OF(policies); i++) {
		struct pair pair = {.capacity = 1,
				    .policy = policies[i],
				    .threads = true,
				    .dead_ns = 4 * BEAT_NS};
		const struct timespec tick = {.tv_nsec = 1000000};
		struct stream s = {.pair = &pair};
		struct frag_message *message;
		int64_t until;

		pair_open(&pair, &kind_shm);
		cr_assert_eq(pair.tx->ops->send(pair.tx, message_in_heap(&pair, 7), fragi_stamp()),
			     0);
		while ((message = fragi_rx_take(pair.rx, fragi_stamp())) == NULL)
			fragi_pump_wait(pair.pump[1], &pair.waiter[1], INT64_MAX, receiver_may, &s);
		cr_assert_eq(kept(&pair), 1);
		frag_message_unref(message);
		until = fragi_now_ns() + patience_ns();
		while (kept(&pair) > 0 && fragi_now_ns() < until)
			nanosleep(&tick, NULL);
		cr_expect_eq(kept(&pair), 0);
		pair_close(&pair);
	}
}

/* All of them: three messages in turn lie in the same places. */
PAIR_TEST(shm_returns, copies_are_given_back_when_the_receiver_lets_go, &kind_shm, .capacity = 2)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	const int64_t bytes = 100000;
	const void *places[3][2];

	for (int i = 0; i < 3; i++) {
		struct frag_message *message = frag_message_create(), *taken;
		struct frag_tensor *tensor;

		for (int k = 0; k < 2; k++) {
			cr_assert_eq(frag_tensor_create(NULL, u8, 1, &bytes, &tensor), 0);
			memset(frag_tensor_writable(tensor), 'a' + k, (size_t)bytes);
			cr_assert_eq(frag_message_add_tensor(message, k == 0 ? "a" : "b", tensor),
				     0);
		}
		fragi_message_share(message);
		cr_assert_eq(pair->tx->ops->send(pair->tx, message, fragi_stamp()), 0);
		pair_settle(pair);
		taken = fragi_rx_take(pair->rx, fragi_stamp());
		cr_assert_not_null(taken);
		places[i][0] = frag_tensor_data(frag_message_tensor(taken, "a"));
		places[i][1] = frag_tensor_data(frag_message_tensor(taken, "b"));
		cr_expect(*(const char *)places[i][0] == 'a' && *(const char *)places[i][1] == 'b');
		frag_message_unref(taken);
		pair_settle(pair);
		cr_expect((places[i][0] == places[0][0] && places[i][1] == places[0][1]) ||
				  (places[i][0] == places[0][1] && places[i][1] == places[0][0]),
			  "message %d", i);
	}
}
