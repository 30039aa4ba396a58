// SPDX-License-Identifier: Apache-2.0
/* A host ends, another one takes its place, and the edges of its peer go on. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#define KIND_FITS is_between_hosts
#include "pair.h"
#include <base/stamp.h>
#include <edge/in_flight.h>

static uint32_t room(const struct pair *pair)
{
	return pair->tx->ops->room(pair->tx);
}

static bool has_message(struct pair *pair)
{
	return fragi_rx_available(pair->rx) > 0;
}

static bool has_room(struct pair *pair)
{
	return room(pair) > 0;
}

static bool is_finished(struct pair *pair)
{
	return fragi_rx_is_finished(pair->rx);
}

static void expect_value(struct pair *pair, int64_t value)
{
	cr_assert(pair_until(pair, has_message), "%lld never came", (long long)value);
	cr_assert_eq(take_value(pair), value);
}

/* Sends and takes so many, one after the other, from that number on. */
static void pass(struct pair *pair, int64_t from, int64_t count)
{
	for (int64_t n = from; n < from + count; n++) {
		cr_assert(pair_until(pair, has_room));
		cr_assert_eq(send_value(pair, n), 0);
		expect_value(pair, n);
	}
}

EDGE_TEST(a_sender_that_blocks_waits, .capacity = 4)
{
	for (int64_t n = 0; n < 4; n++)
		cr_assert_eq(send_value(pair, n), 0);
	expect_value(pair, 0);
	pair_settle(pair);
	pair_replace_begin(pair, 1);
	cr_expect_leq(room(pair), 1, "nobody gives credit");
}

EDGE_TEST(a_new_receiver_gets_what_comes_after, .capacity = 4)
{
	for (int64_t n = 0; n < 4; n++)
		cr_assert_eq(send_value(pair, n), 0);
	expect_value(pair, 0);
	pair_settle(pair);
	pair_replace(pair, 1);
	cr_expect_eq(room(pair), 4, "it has all its credit");
	for (int64_t n = 4; n < 8; n++)
		cr_assert_eq(send_value(pair, n), 0);
	cr_expect_eq(room(pair), 0);
	for (int64_t n = 4; n < 8; n++)
		expect_value(pair, n);
	pass(pair, 8, 20);
	cr_expect_eq(atomic_load(&pair->tx_row->sent), 28);
	cr_expect_eq(atomic_load(&pair->rx_row->delivered), 24);
	cr_expect_eq(atomic_load(&pair->replaced[0].ledger.flows[0].delivered), 1,
		     "and three are lost");
}

EDGE_TEST(what_a_sender_had_sent_is_received_first, .capacity = 4)
{
	struct frag_message *message;
	uint64_t epoch;

	for (int64_t n = 0; n < 4; n++)
		cr_assert_eq(send_value(pair, n), 0);
	pair_settle(pair);
	pair_replace(pair, 0);
	cr_expect_eq(room(pair), 4, "it has all its credit, though the queue is full");
	for (int64_t n = 4; n < 8; n++)
		cr_assert_eq(send_value(pair, n), 0);
	pair_settle(pair);
	cr_expect_eq(fragi_rx_available(pair->rx), 4, "and not more than it may hold");
	for (int64_t n = 0; n < 8; n++) {
		cr_assert(pair_until(pair, has_message), "%lld never came", (long long)n);
		message = fragi_rx_take(pair->rx, fragi_stamp());
		epoch = frag_message_epoch(message);
		cr_expect_eq(epoch, n < 4 ? 10 : 12, "%lld is of epoch %llu", (long long)n,
			     (unsigned long long)epoch);
		cr_expect_eq(value_of(message), n);
		frag_message_unref(message);
	}
	pass(pair, 8, 20);
	cr_expect_eq(atomic_load(&pair->rx_row->delivered), 28);
	cr_expect_eq(dropped(pair, FRAGI_DROP_NO_ROOM), 0);
}

/* As the hosts count after three messages that were sent and received. */
static void count_three(const struct pair *pair, struct fragi_in_flight *tx,
			struct fragi_in_flight *rx)
{
	*tx = *rx = (struct fragi_in_flight){0};
	fragi_in_flight_sender(tx, 0, fragi_remote_tx_link(pair->tx), 3, false, 3, false);
	fragi_in_flight_receiver(rx, 0, fragi_remote_rx_link(pair->rx), 3, false, 3, false);
}

static bool is_at_rest(const struct fragi_in_flight *tx, const struct fragi_in_flight *rx)
{
	return tx->sent + rx->sent == tx->arrived + rx->arrived;
}

EDGE_TEST(counts_of_two_links_are_never_equal, .capacity = 4)
{
	struct fragi_in_flight tx, rx, former_tx, former_rx;

	count_three(pair, &tx, &rx);
	cr_expect(is_at_rest(&tx, &rx));
	for (int side = 0; side < 2; side++) {
		former_tx = tx;
		former_rx = rx;
		pair_replace_begin(pair, side);
		count_three(pair, &tx, &rx);
		cr_expect(!is_at_rest(&tx, &rx), "the other end has not been told");
		pair_replace_end(pair, side);
		count_three(pair, &tx, &rx);
		cr_expect(is_at_rest(&tx, &rx));
		cr_expect(!is_at_rest(&former_tx, &rx) && !is_at_rest(&tx, &former_rx));
	}
}

KIND_TEST(the_slot_of_pop_stays_fresh)
{
	struct pair pair = {.capacity = 2, .policy = FRAG_POLICY_POP};

	pair_open(&pair, kind);
	pass(&pair, 0, 3);
	pair_settle(&pair);
	pair_replace_begin(&pair, 1);
	for (int64_t n = 3; n < 10; n++) /* two leave, two wait, and three make room */
		cr_assert_eq(send_value(&pair, n), 0);
	cr_expect_eq(dropped(&pair, FRAGI_DROP_QUEUE_FULL), 3);
	pair_close(&pair);

	pair = (struct pair){.capacity = 2, .policy = FRAG_POLICY_POP};
	pair_open(&pair, kind);
	pair_replace(&pair, 1);
	pass(&pair, 0, 9);
	check_balance(&pair, 0);
	pair_close(&pair);
}

EDGE_TEST(a_close_is_said_again, .capacity = 4)
{
	pass(pair, 0, 3);
	fragi_tx_close(pair->tx);
	cr_assert(pair_until(pair, is_finished));
	pair_replace(pair, 1);
	cr_assert(pair_until(pair, is_finished), "the new receiver does not know");
}

static struct frag_message *message_with_tensor(int64_t n)
{
	struct frag_message *message = frag_message_create();

	cr_assert_eq(frag_message_add_tensor(message, "",
					     bytes_tensor((size_t)(n % 4) * 70000 + 5, (uint8_t)n)),
		     0);
	fragi_message_share(message);
	return message;
}

static bool is_receiver_done(struct pair *pair)
{
	return atomic_load(&pair->tx->receiver_done);
}

EDGE_TEST(a_receiver_that_is_done_is_so_again, .capacity = 4)
{
	pass(pair, 0, 3);
	fragi_rx_close(pair->rx);
	cr_assert(pair_until(pair, is_receiver_done));
	pair_replace(pair, 0);
	cr_assert(pair_until(pair, is_receiver_done), "the new sender does not know");
}

/* As of a process that died: what it drops was not received, and nobody is told that it ends. */
EDGE_TEST(what_one_that_is_followed_drops_is_not_confirmed, .capacity = 4)
{
	for (int64_t n = 0; n < 4; n++)
		cr_assert_eq(send_value(pair, n), 0);
	expect_value(pair, 0);
	pair_settle(pair);
	fragi_remote_keep_open(pair->remote[1]);
	fragi_rx_stop(pair->rx);
	pair_settle(pair);
	cr_expect_eq(atomic_load(&pair->tx_row->confirmed), 1);
	cr_expect_not(is_receiver_done(pair));
	pair_replace(pair, 1);
	pass(pair, 4, 10);
	cr_expect_eq(fragi_remote_tx_credited(pair->tx) + 1, atomic_load(&pair->tx_row->confirmed));
}

/* What waited for credit when the receiver was done was dropped. */
EDGE_TEST(one_that_follows_a_receiver_that_was_done_gives_the_whole_window, .capacity = 3,
	  .window_bytes = 100000)
{
	for (int64_t n = 0; n < 3 && room(pair) > 0; n++)
		cr_assert_eq(pair->tx->ops->send(pair->tx, message_with_tensor(3), fragi_stamp()),
			     0);
	pair_settle(pair);
	fragi_rx_close(pair->rx);
	cr_assert(pair_until(pair, is_receiver_done));
	cr_assert_geq(dropped(pair, FRAGI_DROP_RECEIVER_DONE), 1);
	pair_replace(pair, 1);
	cr_expect_eq(room(pair), 3);
	pass(pair, 0, 20);
}

/* In the middle of whatever is under way. */
EDGE_TEST(again_and_again, .capacity = 4, .edges = 2)
{
	uint64_t sent = 0;

	for (uint32_t round = 0; round < 12; round++) {
		for (int64_t n = 0; n < 4 && room(pair) > 0; n++, sent++) {
			cr_assert_eq(pair->tx->ops->send(pair->tx, message_with_tensor(n),
							 fragi_stamp()),
				     0);
			for (uint32_t turn = 0; turn < round % 5; turn++)
				pair_turn(pair);
		}
		if (round % 3 == 1)
			frag_message_unref(fragi_rx_take(pair->rx, fragi_stamp()));
		pair_replace(pair, (int)(round / 2 % 2));
	}
	while (fragi_rx_available(pair->rx) > 0)
		frag_message_unref(fragi_rx_take(pair->rx, fragi_stamp()));
	pair_settle(pair);
	while (fragi_rx_available(pair->rx) > 0)
		frag_message_unref(fragi_rx_take(pair->rx, fragi_stamp()));
	pass(pair, 1000, 20);
	cr_expect_eq(atomic_load(&pair->lost[0]) + atomic_load(&pair->lost[1]), 0, "%s%s",
		     pair->sentence[0], pair->sentence[1]);
}

/* Its peers send nothing more to a host that is to be replaced, which gets all that had left. */
EDGE_TEST(what_was_sent_before_a_yield_arrives_and_the_rest_waits, .capacity = 16)
{
	pass(pair, 0, 3);
	for (int64_t n = 3; n < 5; n++)
		cr_assert_eq(send_value(pair, n), 0);
	fragi_pump_lock(pair->pump[0]);
	fragi_remote_peer_suspend(pair->peer[0]);
	fragi_pump_unlock(pair->pump[0]);
	for (int64_t n = 5; n < 7; n++)
		cr_assert_eq(send_value(pair, n), 0);
	for (int64_t n = 3; n < 5; n++)
		expect_value(pair, n);
	cr_assert(pair_until(pair, is_finished), "the receiver waits for more");
	cr_expect(fragi_remote_yields(pair->remote[1]));
	pair_replace(pair, 1);
	for (int64_t n = 5; n < 7; n++)
		expect_value(pair, n);
	pass(pair, 7, 8);
	cr_expect_not(is_finished(pair));
	cr_expect_eq(dropped(pair, FRAGI_DROP_NO_ROOM), 0);
}

static bool is_flushed(struct pair *pair)
{
	bool flushed;

	fragi_pump_lock(pair->pump[0]);
	flushed = fragi_remote_is_flushed(pair->remote[0]);
	fragi_pump_unlock(pair->pump[0]);
	return flushed;
}

/* A host that is to be replaced does not end its peers. */
EDGE_TEST(the_end_of_a_sender_that_yields_is_no_close, .capacity = 16)
{
	pass(pair, 0, 3);
	for (int64_t n = 3; n < 5; n++)
		cr_assert_eq(send_value(pair, n), 0);
	fragi_remote_yield(pair->remote[0]);
	fragi_tx_close(pair->tx);
	cr_assert(pair_until(pair, is_flushed), "what it sent has not arrived");
	for (int64_t n = 3; n < 5; n++)
		expect_value(pair, n);
	pair_settle(pair);
	cr_expect_not(is_finished(pair), "the receiver has ended with it");
	pair_replace(pair, 0);
	pass(pair, 5, 8);
}

/* An epoch that is not higher is one that was given before. */
PAIR_TEST(successor, an_epoch_that_is_not_higher_is_refused, &kind_socket)
{
	fragi_pump_lock(pair->pump[0]);
	cr_expect_eq(fragi_remote_peer_succeed(pair->peer[0], 11), -ESTALE);
	cr_expect_eq(fragi_remote_peer_find(pair->remote[0], 2), pair->peer[0]);
	cr_expect_null(fragi_remote_peer_find(pair->remote[0], 3));
	fragi_pump_unlock(pair->pump[0]);
	pass(pair, 0, 3);
}
