// SPDX-License-Identifier: Apache-2.0
/* What a stranger, or a peer gone wrong, may send. */
#include <errno.h>
#include <stdlib.h>

#include "ucx_stranger.h"
#include <base/alloc.h>

PAIR_TEST(ucx_forged, a_true_copy_would_pass, &kind_ucx)
{
	struct stranger stranger;
	struct forged f;

	stranger_open(&stranger, pair, 1);
	forge_value(&f);
	send_forged(&stranger, pair, &f);
	cr_assert_eq(take_value(pair), 1);
	stranger_close(&stranger);
}

PAIR_TEST(ucx_forged, strangers_are_dropped_and_disturb_nobody, &kind_ucx)
{
	struct stranger stranger;
	struct forged f;

	stranger_open(&stranger, pair, 1);
	for (int i = 0; i < FRAGI_TOKEN_BYTES; i++) {
		forge_value(&f);
		f.header.token[i] ^= 0x80;
		send_forged(&stranger, pair, &f);
	}
	forge_value(&f);
	f.header.epoch = SENDER_EPOCH - 1; /* an earlier life */
	send_forged(&stranger, pair, &f);
	forge_value(&f);
	f.header.epoch = SENDER_EPOCH + 1;
	send_forged(&stranger, pair, &f);
	forge_value(&f);
	f.header.flow = 1000000000;
	send_forged(&stranger, pair, &f);
	forge_value(&f);
	f.header.flow = FLOW + 1;
	send_forged(&stranger, pair, &f);
	forge_value(&f);
	f.header.kind = FRAGI_KIND_CREDIT; /* to the receiver: against the direction */
	send_forged(&stranger, pair, &f);
	for (size_t size = 0; size < FRAGI_HEADER_BYTES; size += 7) {
		forge_value(&f);
		f.header_bytes = size;
		send_forged(&stranger, pair, &f);
	}
	fragi_next_pack(&(const struct fragi_next){.flow = FLOW}, f.bytes); /* without a token */
	stranger_send(&stranger, pair, f.bytes, FRAGI_NEXT_BYTES, NULL, 0);
	forge_value(&f);
	fragi_header_pack(&f.header, f.bytes);
	f.bytes[0] ^= 1;
	stranger_send(&stranger, pair, f.bytes, f.header_bytes, NULL, 0);
	forge_value(&f);
	fragi_header_pack(&f.header, f.bytes);
	f.bytes[4] = 99; /* version */
	stranger_send(&stranger, pair, f.bytes, f.header_bytes, NULL, 0);
	cr_assert_eq(fragi_rx_available(pair->rx), 0);
	check_alive(pair);
	check_balance(pair, 0);
	stranger_close(&stranger);
}

/* With a valid token: the peer is closed, and the rule that it broke is named. */
static void expect_broken(struct pair *pair, struct stranger *stranger, struct forged *f,
			  const char *rule)
{
	send_forged(stranger, pair, f);
	cr_assert_eq(atomic_load(&pair->lost[1]), 1);
	cr_assert_not_null(strstr(pair->sentence[1], "flow 7"), "%s", pair->sentence[1]);
	cr_assert_not_null(strstr(pair->sentence[1], rule), "%s", pair->sentence[1]);
}

static void breaks(void (*change)(struct forged *forged), bool tensor, const char *rule)
{
	struct pair pair = {0};
	struct stranger stranger;
	struct forged f;

	pair_open(&pair, &kind_ucx);
	check_alive(&pair);
	stranger_open(&stranger, &pair, 1);
	if (tensor)
		forge_tensor(&f, 1000);
	else
		forge_value(&f);
	f.header.sequence = 10;
	change(&f);
	expect_broken(&pair, &stranger, &f, rule);
	stranger_close(&stranger);
	pair_close(&pair);
}

/* Puts credit of a flow behind the header. */
static void carry(struct forged *f, uint32_t flow)
{
	struct fragi_credit credit = {.flow = flow, .messages = 1, .bytes = 1};
	uint8_t *at = f->bytes + FRAGI_HEADER_BYTES;

	memmove(at + FRAGI_CREDIT_BYTES, at, f->header_bytes - FRAGI_HEADER_BYTES);
	fragi_credit_pack(&credit, at);
	f->header.flags |= FRAGI_FLAG_CREDITED;
	f->header_bytes += FRAGI_CREDIT_BYTES;
}

#define BREAKS(name, tensor, rule, statement)                                                      \
	static void name(struct forged *f)                                                         \
	{                                                                                          \
		statement;                                                                         \
	}                                                                                          \
	Test(ucx_forged, name, .init = set_environment)                                            \
	{                                                                                          \
		breaks(name, tensor, rule);                                                        \
	}

BREAKS(beyond_its_credit, false, "beyond its credit", f->header.sequence += 4)
BREAKS(far_beyond_its_credit, false, "beyond its credit", f->header.sequence = UINT64_MAX)
BREAKS(an_old_sequence, false, "beyond its credit", f->header.sequence = 3)
BREAKS(fewer_bodies_than_stated, true, "contradict", f->body_bytes -= 1)
BREAKS(more_bodies_than_stated, true, "contradict", f->body_bytes += 1)
BREAKS(bodies_beyond_the_descriptors, true, "do not describe",
       f->body_bytes = f->header.body_bytes = 1001)
BREAKS(bodies_below_the_descriptors, true, "malformed", f->body_bytes = f->header.body_bytes = 999)
BREAKS(bodies_without_tensors, false, "do not describe", f->body_bytes = f->header.body_bytes = 8)
BREAKS(a_message_beyond_the_limit, true, "beyond the limit",
       f->header.body_bytes = FRAGI_MESSAGE_BYTES_MAX + 1)
BREAKS(descriptors_cut_short, true, "contradict", f->header_bytes -= 1)
BREAKS(descriptors_longer_than_stated, true, "contradict", f->header_bytes += 1)
BREAKS(descriptors_stated_shorter, true, "malformed", f->header.descriptor_bytes -= 1;
       f->header_bytes -= 1)
BREAKS(descriptors_of_zeroes, true, "malformed",
       memset(f->bytes + FRAGI_HEADER_BYTES, 0, f->header.descriptor_bytes))
BREAKS(too_many_tensors, true, "malformed", f->bytes[FRAGI_HEADER_BYTES + 2] = 0xff;
       f->bytes[FRAGI_HEADER_BYTES + 3] = 0xff)
BREAKS(no_descriptors, false, "malformed", f->header.descriptor_bytes = 0;
       f->header_bytes = FRAGI_HEADER_BYTES)
BREAKS(huge_descriptors, false, "beyond the limit", f->header.descriptor_bytes = UINT32_MAX)
BREAKS(a_close_of_the_past, false, "a close that cannot be", f->header.kind = FRAGI_KIND_CLOSE;
       f->header.sequence = 2; f->header_bytes = FRAGI_HEADER_BYTES; f->body_bytes = 0)
BREAKS(a_close_of_the_far_future, false, "a close that cannot be",
       f->header.kind = FRAGI_KIND_CLOSE;
       f->header.sequence = UINT64_MAX; f->header_bytes = FRAGI_HEADER_BYTES; f->body_bytes = 0)
BREAKS(credit_of_the_flow_itself, false, "does not lead to it", carry(f, FLOW))
BREAKS(credit_of_no_flow, false, "does not lead to it", carry(f, UINT32_MAX))
BREAKS(credit_cut_short, false, "credit cut short", carry(f, FLOW);
       f->header_bytes = FRAGI_HEADER_BYTES + FRAGI_CREDIT_BYTES - 1)

PAIR_TEST(ucx_forged, the_same_message_twice, &kind_ucx)
{
	struct stranger stranger;
	struct forged f;

	stranger_open(&stranger, pair, 1);
	forge_value(&f);
	f.header.sequence = 1; /* waits for 0 */
	send_forged(&stranger, pair, &f);
	cr_assert_eq(atomic_load(&pair->lost[1]), 0);
	send_forged(&stranger, pair, &f);
	cr_assert_eq(atomic_load(&pair->lost[1]), 1);
	stranger_close(&stranger);
}

/* It lies in the queue, so the sender's credit for it is not given back yet. */
PAIR_TEST(ucx_forged, a_delivered_message_again, &kind_ucx)
{
	struct stranger stranger;
	struct forged f;

	stranger_open(&stranger, pair, 1);
	forge_value(&f);
	send_forged(&stranger, pair, &f);
	cr_assert_eq(fragi_rx_available(pair->rx), 1);
	expect_broken(pair, &stranger, &f, "beyond its credit");
	cr_assert_eq(fragi_rx_available(pair->rx), 1);
	stranger_close(&stranger);
}

static void forge_close(struct forged *f, uint64_t sequence)
{
	forge_value(f);
	f->header.kind = FRAGI_KIND_CLOSE;
	f->header.sequence = sequence;
	f->header_bytes = FRAGI_HEADER_BYTES;
	f->header.body_bytes = 0;
}

/* A close may overtake the messages before it, and nothing comes behind it. */
PAIR_TEST(ucx_forged, a_message_behind_the_close, &kind_ucx, .capacity = 4)
{
	struct stranger stranger;
	struct forged f;

	stranger_open(&stranger, pair, 1);
	forge_close(&f, 2);
	send_forged(&stranger, pair, &f);
	for (uint64_t i = 0; i < 2; i++) {
		cr_assert_not(fragi_rx_is_finished(pair->rx));
		forge_value(&f);
		f.header.sequence = i;
		send_forged(&stranger, pair, &f);
		cr_assert_eq(take_value(pair), 1);
	}
	cr_assert(fragi_rx_is_finished(pair->rx));
	cr_assert_eq(atomic_load(&pair->lost[1]), 0);
	f.header.sequence = 2;
	expect_broken(pair, &stranger, &f, "beyond its credit");
	stranger_close(&stranger);
}

PAIR_TEST(ucx_forged, a_close_twice, &kind_ucx, .capacity = 4)
{
	struct stranger stranger;
	struct forged f;

	stranger_open(&stranger, pair, 1);
	forge_close(&f, 4); /* as far ahead as the window lets be under way */
	send_forged(&stranger, pair, &f);
	cr_assert_eq(atomic_load(&pair->lost[1]), 0);
	expect_broken(pair, &stranger, &f, "a close that cannot be");
	stranger_close(&stranger);
}

BREAKS(a_close_beyond_the_window, false, "a close that cannot be", forge_close(f, 10 + 4 + 1))

PAIR_TEST(ucx_forged, more_bytes_than_the_window, &kind_ucx, .window_bytes = 10000)
{
	struct stranger stranger;
	struct forged f;

	stranger_open(&stranger, pair, 1);
	forge_tensor(&f, 60000); /* alone: allowed */
	send_forged(&stranger, pair, &f);
	cr_assert_eq(atomic_load(&pair->lost[1]), 0);
	cr_assert_eq(fragi_rx_available(pair->rx), 1);
	forge_tensor(&f, 10);
	f.header.sequence = 1;
	send_forged(&stranger, pair, &f);
	cr_assert_eq(atomic_load(&pair->lost[1]), 1);
	stranger_close(&stranger);
}

static bool ten_confirmed(struct pair *pair)
{
	return atomic_load(&pair->tx_row->confirmed) == 10;
}

PAIR_TEST(ucx_forged, credit_that_was_never_given, &kind_ucx)
{
	struct stranger stranger;
	struct forged f;

	check_alive(pair);
	cr_assert(pair_until(pair, ten_confirmed));
	stranger_open(&stranger, pair, 0);
	forge_value(&f);
	f.header.kind = FRAGI_KIND_CREDIT;
	f.header.epoch = RECEIVER_EPOCH;
	f.header.sequence = 11;
	f.header.body_bytes = 1;
	f.header_bytes = FRAGI_HEADER_BYTES;
	send_forged(&stranger, pair, &f);
	cr_assert_eq(atomic_load(&pair->lost[0]), 1);
	cr_assert_eq(atomic_load(&pair->tx_row->confirmed), 10);
	stranger_close(&stranger);
}

/* An unknown type is this host's fault: a library is missing. */
PAIR_TEST(ucx_forged, an_unknown_type_names_the_flow, &kind_ucx)
{
	struct stranger stranger;
	struct forged f;

	stranger_open(&stranger, pair, 1);
	forge_value(&f);
	f.bytes[FRAGI_HEADER_BYTES + 12] ^= 0x55; /* the type id */
	send_forged(&stranger, pair, &f);
	cr_assert_eq(atomic_load(&pair->faults[1]), 1);
	cr_assert_not_null(strstr(pair->sentence[1], "flow 7"), "%s", pair->sentence[1]);
	cr_assert_eq(pair->failure[1], FRAGI_FAILURE_TYPE_UNKNOWN);
	stranger_close(&stranger);
}

/*
 * The memory for bodies that came before their descriptors is short: the host cannot go on, and the
 * descriptors that are still under way must not be matched with bodies that were never kept.
 */
PAIR_TEST(ucx_forged, bodies_that_cannot_be_kept_end_the_host, &kind_ucx)
{
	ucp_request_param_t rendezvous = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
					  .flags = UCP_AM_SEND_FLAG_RNDV};
	ucp_request_param_t eager = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
				     .flags = UCP_AM_SEND_FLAG_EAGER};
	struct stranger stranger;
	struct forged f, ahead;
	ucs_status_ptr_t requests[2];

	stranger_open(&stranger, pair, 1);
	forge_tensor(&f, 1000);
	f.header.flags = FRAGI_FLAG_AHEAD;
	ahead = f;
	ahead.header.kind = FRAGI_KIND_DESCRIPTORS;
	ahead.header.flags = 0;
	fragi_header_pack(&ahead.header, ahead.bytes);
	fragi_header_pack(&f.header, f.bytes);
	/* The descriptors are announced; their bytes come when the stranger makes progress. */
	requests[0] = ucp_am_send_nbx(stranger.ep, 0, ahead.bytes, FRAGI_HEADER_BYTES,
				      ahead.bytes + FRAGI_HEADER_BYTES,
				      ahead.header.descriptor_bytes, &rendezvous);
	requests[1] = ucp_am_send_nbx(stranger.ep, 0, f.bytes, FRAGI_HEADER_BYTES, f.body,
				      f.body_bytes, &eager);
	fragi_alloc_fail_after(1, 1); /* after the one for the descriptors */
	for (int i = 0; i < 1000000 && atomic_load(&pair->faults[1]) == 0; i++)
		if (ucp_worker_progress(stranger.worker) == 0)
			pair_turn(pair);
	cr_assert_eq(fragi_alloc_fail_off(), 1);
	cr_assert_eq(atomic_load(&pair->faults[1]), 1);
	cr_assert_not_null(strstr(pair->sentence[1], "no memory left"), "%s", pair->sentence[1]);
	cr_assert_eq(pair->failure[1], FRAGI_FAILURE_OUT_OF_MEMORY);
	for (int quiet = 0; quiet < 100; quiet++)
		if (ucp_worker_progress(stranger.worker) + pair_turn(pair) > 0)
			quiet = 0;
	for (int i = 0; i < 2; i++)
		if (UCS_PTR_IS_PTR(requests[i]))
			ucp_request_free(requests[i]);
	cr_assert_eq(fragi_rx_available(pair->rx), 0);
	stranger_close(&stranger);
}
