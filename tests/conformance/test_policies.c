// SPDX-License-Identifier: Apache-2.0
/* Every policy at the smallest and the greatest capacities, over every kind of edge. */
#include <criterion/criterion.h>
#include <errno.h>

#include "../slow.h"
#include "pair.h"
#include <base/policy.h>

/* Sent beyond the capacity. */
#define BEYOND 40

static bool is_of_tests(const struct kind *kind)
{
	return kind->transports[0] != NULL && strcmp(kind->transports[0], "socket") == 0;
}

/*
 * The transport of the tests is not made for so many messages under way, and flows that are
 * encrypted have as many only in nightly.
 */
static uint32_t next_capacity(const struct kind *kind, uint32_t capacity)
{
	switch (capacity) {
	case 1:
		return 2;
	case 2:
		return is_of_tests(kind) || (is_encrypted(kind) && times_more() == 1)
			       ? 200
			       : FRAGI_CAPACITY_MAX;
	default:
		return 0;
	}
}
#define FOR_EACH_CAPACITY(n) for (uint32_t n = 1; n != 0; n = next_capacity(kind, n))

static uint32_t room(const struct pair *pair)
{
	return pair->tx->ops->room(pair->tx);
}

static bool has_all_room(struct pair *pair)
{
	return room(pair) == pair->capacity;
}

static bool has_message(struct pair *pair)
{
	return fragi_rx_available(pair->rx) > 0;
}

/* Sends this many numbers from `first` on. Returns how many were refused with `refusal`. */
static uint32_t send_all(struct pair *pair, int64_t first, int64_t count, int refusal)
{
	uint32_t refused = 0;

	for (int64_t i = 0; i < count; i++) {
		int r = send_value(pair, first + i);

		cr_assert(r == 0 || r == refusal, "%lld: %d", (long long)i, r);
		refused += r != 0;
	}
	return refused;
}

/* Takes what there is and what follows: rising numbers. Returns how many. */
static int64_t take_all(struct pair *pair, int64_t *out_first, int64_t *out_last)
{
	int64_t count = 0, value;

	*out_first = *out_last = -1;
	for (;;) {
		value = take_value(pair);
		if (value < 0) {
			pair_settle(pair);
			value = take_value(pair);
		}
		if (value < 0)
			return count;
		cr_assert_gt(value, *out_last);
		if (count++ == 0)
			*out_first = value;
		*out_last = value;
	}
}

KIND_TEST(block_holds_its_capacity_to_the_last_message)
{
	int64_t first, last;

	FOR_EACH_CAPACITY(capacity)
	{
		struct pair pair = {.capacity = capacity};

		pair_open(&pair, kind);
		for (int64_t round = 0; round < 2; round++) {
			cr_assert_eq(room(&pair), capacity);
			cr_assert_eq(send_all(&pair, round * capacity, capacity, 0), 0);
			cr_assert_eq(room(&pair), 0);
			cr_assert_eq(send_value(&pair, -5), -ENOBUFS);
			pair_settle(&pair);
			cr_assert_eq(fragi_rx_available(pair.rx), capacity);
			check_balance(&pair, (uint64_t)capacity);
			cr_assert_eq(take_all(&pair, &first, &last), capacity);
			cr_assert(first == round * capacity && last == first + capacity - 1);
			cr_assert(pair_until(&pair, has_all_room));
		}
		cr_assert_eq(dropped(&pair, FRAGI_DROP_NO_ROOM), 2);
		check_balance(&pair, 0);
		pair_close(&pair);
	}
}

/* Inside a host there is one queue; between hosts the sender has one of the same size too. */
static void check_kept(const struct pair *pair, int64_t kept, int64_t sent)
{
	int64_t most = pair->capacity * (is_between_hosts(pair->kind) ? 2 : 1);

	cr_expect(kept >= pair->capacity && kept <= most, "%s: %lld of %lld were kept, capacity %u",
		  pair->kind->name, (long long)kept, (long long)sent, pair->capacity);
	cr_expect_eq(dropped(pair, FRAGI_DROP_QUEUE_FULL), (uint64_t)(sent - kept));
}

KIND_TEST(pop_keeps_the_newest)
{
	int64_t first, last, kept, sent;

	FOR_EACH_CAPACITY(capacity)
	{
		struct pair pair = {.capacity = capacity, .policy = FRAG_POLICY_POP};

		pair_open(&pair, kind);
		sent = 2 * capacity + BEYOND;
		cr_assert_eq(room(&pair), FRAGI_ROOM_UNLIMITED);
		cr_assert_eq(send_all(&pair, 0, sent, 0), 0);
		pair_settle(&pair);
		kept = take_all(&pair, &first, &last);
		cr_expect_eq(last, sent - 1, "the newest comes");
		if (!is_between_hosts(kind))
			cr_expect_eq(first, sent - pair.capacity, "the oldest went");
		check_kept(&pair, kept, sent);
		check_balance(&pair, 0);
		pair_close(&pair);
	}
}

KIND_TEST(reject_keeps_the_oldest)
{
	int64_t first, last, kept, sent;

	FOR_EACH_CAPACITY(capacity)
	{
		struct pair pair = {.capacity = capacity, .policy = FRAG_POLICY_REJECT};

		pair_open(&pair, kind);
		sent = 2 * capacity + BEYOND;
		cr_assert_eq(send_all(&pair, 0, sent, 0), 0);
		pair_settle(&pair);
		kept = take_all(&pair, &first, &last);
		cr_expect_eq(first, 0, "the oldest stays");
		cr_expect_eq(last, kept - 1, "none in between is missing");
		check_kept(&pair, kept, sent);
		cr_expect_eq(send_value(&pair, sent), 0);
		cr_assert(pair_until(&pair, has_message));
		cr_expect_eq(take_value(&pair), sent, "there is room again");
		check_balance(&pair, 0);
		pair_close(&pair);
	}
}

KIND_TEST(fault_refuses_what_the_queue_cannot_hold)
{
	int64_t first, last, taken;
	uint32_t refused;

	FOR_EACH_CAPACITY(capacity)
	{
		struct pair pair = {.capacity = capacity, .policy = FRAG_POLICY_FAULT};

		pair_open(&pair, kind);
		cr_assert_eq(send_all(&pair, 0, capacity, 0), 0, "so many it holds");
		cr_expect_eq(room(&pair), 0);
		refused = send_all(&pair, capacity, BEYOND, -EOVERFLOW);
		cr_expect_gt(refused, 0);
		if (!is_between_hosts(kind))
			cr_expect_eq(refused, BEYOND);
		pair_settle(&pair);
		taken = take_all(&pair, &first, &last);
		cr_expect_eq(first, 0);
		cr_expect_eq(taken, (int64_t)capacity + BEYOND - refused);
		check_balance(&pair, 0);
		pair_close(&pair);
	}
}

KIND_TEST(latest_has_no_capacity)
{
	int64_t first, last;

	FOR_EACH_CAPACITY(capacity)
	{
		struct pair pair = {.capacity = capacity, .policy = FRAG_POLICY_LATEST};

		pair_open(&pair, kind);
		for (int64_t sent = 1; sent <= 1000; sent *= 10) {
			cr_assert_eq(room(&pair), FRAGI_ROOM_UNLIMITED);
			cr_assert_eq(send_all(&pair, sent, sent, 0), 0);
			pair_settle(&pair);
			cr_expect_eq(fragi_rx_available(pair.rx), 1);
			cr_expect_eq(take_all(&pair, &first, &last), 1);
			cr_expect_eq(last, 2 * sent - 1, "the newest alone");
		}
		check_balance(&pair, 0);
		pair_close(&pair);
	}
}
