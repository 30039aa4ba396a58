// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <edge/window.h>

/* Both halves of a window; what leaves arrives at once, what comes back is told by hand. */
static struct fragi_window_tx tx;
static struct fragi_window_rx rx;

static void make(uint64_t messages, uint64_t bytes)
{
	tx = (struct fragi_window_tx){.messages = messages, .bytes = bytes};
	rx = (struct fragi_window_rx){.messages = messages, .bytes = bytes};
}

/* Returns whether the window let it through. */
static bool pass(uint64_t bytes)
{
	if (!fragi_window_is_open(&tx) || !fragi_window_fits(&tx, bytes))
		return false;
	cr_assert(fragi_window_covers(&rx, tx.sent));
	fragi_window_spend(&tx, bytes);
	cr_assert(fragi_window_accept(&rx, bytes));
	return true;
}

static void give_back(void)
{
	uint64_t messages, bytes;

	fragi_window_give_back(&rx, &messages, &bytes);
	cr_assert(fragi_window_credit(&tx, messages, bytes));
}

Test(window, holds_so_many_messages_and_comes_back_as_they_are_consumed)
{
	make(4, 1000);
	for (int i = 0; i < 4; i++)
		cr_expect(pass(1));
	cr_expect_not(pass(1));
	cr_expect_not(fragi_window_covers(&rx, tx.sent), "the receiver knows it too");
	cr_expect_not(fragi_window_owes(&rx));
	fragi_window_consume(&rx, 1);
	cr_expect(fragi_window_owes(&rx));
	give_back();
	cr_expect_not(fragi_window_owes(&rx));
	cr_expect(pass(1));
	cr_expect_not(pass(1));
}

Test(window, bytes_count_and_a_message_larger_than_all_travels_alone)
{
	make(4, 100);
	cr_expect(pass(60));
	cr_expect_not(pass(50));
	cr_expect(fragi_window_want(&tx));
	cr_expect_not(fragi_window_want(&tx), "it was said");
	fragi_window_consume(&rx, 60);
	give_back();
	cr_expect(pass(5000));
	cr_expect_not(tx.wanted);
	cr_expect_not(pass(1));
	cr_expect_not(fragi_window_accept(&rx, 1), "the receiver knows it too");
	cr_expect_eq(rx.accepted, 2);
	fragi_window_consume(&rx, 5000);
	give_back();
	cr_expect(pass(100));
}

/* Of 100 bytes: what fits beside 60, what makes a sender wait, and what is given back at once. */
Test(window, each_limit_of_bytes_is_the_last_one_that_is_within)
{
	static const struct {
		uint64_t bytes;
		bool beside_60, may_post_another, may_wait, is_due;
	} rows[] = {
		{39, true, true, false, false},   {40, true, false, false, false},
		{41, false, false, false, false}, {49, false, false, false, false},
		{50, false, false, true, true},   {51, false, false, true, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		make(8, 100);
		pass(60);
		cr_expect_eq(fragi_window_fits(&tx, rows[i].bytes), rows[i].beside_60, "%zu", i);
		cr_expect_eq(fragi_window_accept(&rx, rows[i].bytes), rows[i].beside_60, "%zu", i);
		make(8, 100);
		fragi_window_post(&tx, 60);
		fragi_window_post(&tx, rows[i].bytes);
		cr_expect_eq(fragi_window_room(&tx) > 0, rows[i].may_post_another, "%zu", i);
		make(8, 100);
		pass(rows[i].bytes);
		cr_expect_eq(fragi_window_sender_may_wait(&rx), rows[i].may_wait, "%zu", i);
		fragi_window_consume(&rx, rows[i].bytes);
		cr_expect_eq(fragi_window_is_due(&rx, 0), rows[i].is_due, "%zu", i);
	}
}

/* The same of 8 messages and of 7. */
Test(window, each_limit_of_messages_is_the_last_one_that_is_within)
{
	for (uint64_t window = 7; window <= 8; window++)
		for (uint64_t count = 0; count <= window; count++) {
			make(window, 1000);
			for (uint64_t i = 0; i < count; i++)
				pass(1);
			cr_expect_eq(fragi_window_is_open(&tx), count < window, "%d", (int)count);
			cr_expect_eq(fragi_window_covers(&rx, tx.sent), count < window, "%d",
				     (int)count);
			cr_expect_eq(fragi_window_has_place(&rx, count), count < window, "%d",
				     (int)count);
			cr_expect_eq(fragi_window_sender_may_wait(&rx), count >= 4, "%d",
				     (int)count);
			for (uint64_t i = 0; i < count; i++)
				fragi_window_consume(&rx, 1);
			cr_expect_eq(fragi_window_owes(&rx), count > 0, "%d", (int)count);
			cr_expect_eq(fragi_window_owes_batch(&rx), count >= 4, "%d", (int)count);
			cr_expect_eq(fragi_window_is_due(&rx, 0), count > 4, "%d", (int)count);
		}
}

Test(window, what_is_posted_and_what_is_under_way_share_it)
{
	make(2, 100);
	cr_expect_eq(fragi_window_room(&tx), 2);
	cr_expect(fragi_window_post(&tx, 30));
	cr_expect_eq(fragi_window_room(&tx), 1);
	cr_expect(fragi_window_post(&tx, 80));
	cr_expect_not(fragi_window_post(&tx, 1));
	cr_expect(pass(30));
	fragi_window_consume(&rx, 30);
	give_back();
	cr_expect_eq(fragi_window_room(&tx), 1);
}

/* The second is made while the first is under way, and leaves when that is consumed. */
Test(window, two_messages_may_be_posted_whatever_their_size)
{
	make(9, 100);
	cr_expect(fragi_window_post(&tx, 500));
	cr_expect_gt(fragi_window_room(&tx), 0);
	cr_expect(fragi_window_post(&tx, 500));
	cr_expect_eq(fragi_window_room(&tx), 0, "no bytes");
	cr_expect(pass(500));
	cr_expect_not(pass(500));
	fragi_window_consume(&rx, 500);
	give_back();
	cr_expect(pass(500));
	cr_expect_gt(fragi_window_room(&tx), 0);
}

Test(window, credit_that_was_never_spent_or_was_given_back_is_refused)
{
	make(4, 100);
	pass(10);
	pass(10);
	cr_expect_not(fragi_window_credit(&tx, 3, 20));
	cr_expect_not(fragi_window_credit(&tx, 2, 21));
	cr_expect(fragi_window_credit(&tx, 2, 20));
	cr_expect(fragi_window_credit(&tx, 2, 20), "saying it again says nothing new");
	cr_expect_not(fragi_window_credit(&tx, 1, 20));
	cr_expect_not(fragi_window_credit(&tx, 2, 19));
}

Test(window, a_batch_waits_only_while_the_sender_has_as_much_left)
{
	for (uint64_t window = 1; window <= 9; window++) {
		uint64_t batch = (window + 1) / 2;

		make(window, 1000);
		for (uint64_t i = 0; i < batch; i++) {
			cr_expect_not(fragi_window_is_due(&rx, window - i), "%d of %d", (int)i,
				      (int)window);
			pass(1);
			fragi_window_consume(&rx, 1);
		}
		cr_expect(fragi_window_owes_batch(&rx));
		cr_expect_eq(fragi_window_is_due(&rx, 0), window == 1, "%d", (int)window);
		cr_expect(fragi_window_is_due(&rx, 1), "%d", (int)window);
	}
}

Test(window, goes_back_in_batches_unless_the_sender_may_wait)
{
	make(8, 100);
	for (int i = 0; i < 5; i++)
		pass(1);
	for (int i = 0; i < 3; i++)
		fragi_window_consume(&rx, 1);
	cr_expect_not(fragi_window_is_due(&rx, 2), "less than half");
	cr_expect(fragi_window_sender_may_wait(&rx), "it has less than half left");
	fragi_window_consume(&rx, 1);
	cr_expect(fragi_window_is_due(&rx, 1));
	cr_expect_not(fragi_window_is_due(&rx, 0), "the sender has the other half");
	fragi_window_consume(&rx, 1);
	give_back();
	pass(60);
	fragi_window_consume(&rx, 60);
	cr_expect(fragi_window_is_due(&rx, 0), "half of the bytes");
	give_back();
	cr_expect_not(fragi_window_sender_may_wait(&rx));
	pass(1);
	rx.wanted = true;
	cr_expect(fragi_window_sender_may_wait(&rx));
	cr_expect(fragi_window_is_due(&rx, 0));
	fragi_window_consume(&rx, 1);
	give_back();
	cr_expect_not(rx.wanted, "all that it waited for is there");
	for (int i = 0; i < 3; i++)
		pass(2);
	fragi_window_consume_to(&rx, rx.accepted, rx.accepted_bytes);
	give_back();
	cr_expect_eq(tx.sent, tx.credited);
	cr_expect_eq(tx.sent_bytes, tx.credited_bytes);
}

/* The sender has spent all and the receiver has consumed one of four, when one of them is new. */
static void spend_and_consume_one(void)
{
	make(4, 1000);
	for (int i = 0; i < 4; i++)
		cr_expect(pass(10));
	fragi_window_consume(&rx, 10);
}

Test(window, a_new_receiver_has_all_its_credit_to_give)
{
	spend_and_consume_one();
	tx.posted = 4;
	tx.posted_bytes = 40;
	fragi_window_restart_tx(&tx);
	cr_expect_eq(fragi_window_room(&tx), 4);
	cr_expect(fragi_window_is_open(&tx));
	cr_expect(fragi_window_fits(&tx, 1000));
	cr_expect_not(fragi_window_credit(&tx, 3, 30), "what is written off does not come back");
}

/* They waited for bytes of credit when the one before was done. */
Test(window, a_new_receiver_gives_credit_for_what_was_dropped_too)
{
	make(4, 1000);
	for (int i = 0; i < 4; i++)
		cr_expect(fragi_window_post(&tx, 600));
	fragi_window_spend(&tx, 600);
	cr_expect_not(fragi_window_fits(&tx, 600));
	for (int i = 0; i < 3; i++)
		fragi_window_drop(&tx, 600);
	cr_expect_eq(fragi_window_restart_tx(&tx), 3);
	cr_expect_eq(fragi_window_room(&tx), 4);
	cr_expect(fragi_window_fits(&tx, 1000));
	for (int i = 0; i < 4; i++)
		cr_expect(fragi_window_post(&tx, 10));
	cr_expect_eq(fragi_window_room(&tx), 0);
	cr_expect_eq(fragi_window_restart_tx(&tx), 0, "nothing was dropped since");
}

Test(window, a_new_sender_has_the_whole_window_and_what_was_there_before_owes_nothing)
{
	spend_and_consume_one();
	fragi_window_restart_rx(&rx, 4, 40);
	cr_expect(fragi_window_covers(&rx, 4));
	cr_expect(fragi_window_covers(&rx, 7));
	cr_expect_not(fragi_window_covers(&rx, 8));
	for (int i = 0; i < 4; i++) {
		cr_expect(fragi_window_accept(&rx, 250));
		cr_expect_not(fragi_window_owes(&rx));
		cr_expect_not(fragi_window_owes_batch(&rx));
		cr_expect_not(fragi_window_is_due(&rx, 0));
		cr_expect(fragi_window_has_place(&rx, 4 + (uint64_t)i));
		cr_expect_not(fragi_window_has_place(&rx, 5 + (uint64_t)i), "one was consumed");
		if (i < 3)
			fragi_window_consume(&rx, 10);
	}
	cr_expect_not(fragi_window_owes(&rx), "all that is consumed was there before");
	fragi_window_consume(&rx, 250);
	cr_expect(fragi_window_owes(&rx));
	cr_expect_eq(fragi_window_owed(&rx), 1);
}
