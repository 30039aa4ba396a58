// SPDX-License-Identifier: Apache-2.0
/*
 * Questions and answers between two hosts: each is one message, and the credit travels with them.
 */
#include <criterion/criterion.h>

#include "pair.h"
#include <edge/remote/state.h>

#define ROUNDS 100

static struct fragi_rx *answer_rx;

static bool has_question(struct pair *pair)
{
	return fragi_rx_available(pair->rx) > 0;
}

static bool has_answer(struct pair *pair)
{
	return fragi_rx_available(answer_rx) > 0;
}

/* How many messages the two hosts send one another for ROUNDS questions and as many answers. */
static uint64_t messages_for(uint32_t window)
{
	/* Beats carry credit too: none falls into the exchange, however slow the machine. */
	struct pair pair = {.capacity = window, .dead_ns = INT64_C(3600000000000)};
	static struct fragi_flow_row rows[2];
	struct fragi_edge_config config = {
		.flow = 100,
		.window_messages = window,
		.window_bytes = FRAGI_WINDOW_BYTES,
		.message_bytes_max = FRAGI_MESSAGE_BYTES_MAX,
		.policy = FRAG_POLICY_BLOCK,
	};
	struct frag_message *message;
	struct fragi_tx *answer_tx;
	uint64_t before, sent;

	pair_open(&pair, &kind_ucx);
	cr_assert_eq(fragi_remote_rx_create(pair.endpoint[0][0], &config, &rows[0], &answer_rx), 0);
	cr_assert_eq(fragi_remote_tx_create(pair.endpoint[1][0], &config, &rows[1], &answer_tx), 0);
	pair_settle(&pair);
	before = pair.endpoint[0][0]->sent_count + pair.endpoint[1][0]->sent_count;
	for (int64_t i = 0; i < ROUNDS; i++) {
		cr_assert_eq(send_value(&pair, i), 0);
		cr_assert(pair_until(&pair, has_question));
		cr_assert_eq(take_value(&pair), i);
		cr_assert_eq(answer_tx->ops->send(answer_tx, message_of(i), fragi_stamp()), 0);
		cr_assert(pair_until(&pair, has_answer));
		message = fragi_rx_take(answer_rx, fragi_stamp());
		cr_assert_eq(value_of(message), i);
		frag_message_unref(message);
	}
	sent = pair.endpoint[0][0]->sent_count + pair.endpoint[1][0]->sent_count - before;
	pair_settle(&pair);
	cr_expect_geq(atomic_load(&pair.tx_row->confirmed), ROUNDS - window / 2);
	cr_expect_eq(atomic_load(&pair.lost[0]) + atomic_load(&pair.lost[1]), 0);
	pair_close(&pair);
	return sent;
}

Test(ucx_answers, carry_the_credit_of_questions, .init = set_environment)
{
	cr_expect_eq(messages_for(4), 2 * ROUNDS);
}

Test(ucx_answers, carry_it_with_an_odd_window_too, .init = set_environment)
{
	cr_expect_leq(messages_for(5), 2 * ROUNDS);
}

Test(ucx_answers, a_window_of_one_has_to_ask_for_it, .init = set_environment)
{
	cr_expect_eq(messages_for(1), 4 * ROUNDS,
		     "credit goes at once: it cannot wait for an answer");
}
