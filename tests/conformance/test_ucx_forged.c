// SPDX-License-Identifier: Apache-2.0
/*
 * What a stranger, or a peer gone wrong, may send: active messages made by hand and sent to the
 * receiving host's port, beside a healthy edge.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "../../libfrag/modules/ucx/module.h"
#include "pair.h"
#include <data/allocator.h>
#include <edge/remote/state.h>

#define FLOW 7
#define SENDER_EPOCH 10
#define RECEIVER_EPOCH 11

struct stranger {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
};

static const void *pair_address(const struct pair *pair, int i, size_t *out_size)
{
	const struct fragi_transport *transport = pair_transport(pair, i, 0);

	return transport->ops->address(transport, out_size);
}

/* Connects to side i of the pair. */
static void stranger_open(struct stranger *stranger, struct pair *pair, int i)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
	ucp_worker_params_t worker_params = {0};
	ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	ucp_config_t *config;
	const char *address;
	size_t size;

	address = pair_address(pair, i, &size);
	ep_params.address = (const void *)(address + ucx_address_head(address));
	cr_assert_eq(ucp_config_read(NULL, NULL, &config), UCS_OK);
	cr_assert_eq(ucp_init(&params, config, &stranger->context), UCS_OK);
	ucp_config_release(config);
	cr_assert_eq(ucp_worker_create(stranger->context, &worker_params, &stranger->worker),
		     UCS_OK);
	cr_assert_eq(ucp_ep_create(stranger->worker, &ep_params, &stranger->ep), UCS_OK);
}

static void stranger_close(struct stranger *stranger)
{
	ucp_worker_destroy(stranger->worker);
	ucp_cleanup(stranger->context);
}

/* Sends, and lets both sides turn until it has arrived. */
static void stranger_send(struct stranger *stranger, struct pair *pair, const void *header,
			  size_t header_bytes, const void *body, size_t body_bytes)
{
	ucp_request_param_t param = {0};
	ucs_status_ptr_t request =
		ucp_am_send_nbx(stranger->ep, 0, header, header_bytes, body, body_bytes, &param);

	cr_assert_not(UCS_PTR_IS_ERR(request));
	for (int quiet = 0; quiet < 20;) {
		if (ucp_worker_progress(stranger->worker) + pair_turn(pair) > 0)
			quiet = 0;
		else
			quiet++;
		if (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS)
			quiet = 0;
	}
	if (UCS_PTR_IS_PTR(request))
		ucp_request_free(request);
	pair_settle(pair);
}

/* What the sender of the pair's first flow would send as its next message: an i64, no tensor. */
struct forged {
	uint8_t bytes[8192];
	size_t header_bytes;
	struct fragi_header header;
	uint8_t body[65536];
	size_t body_bytes;
	size_t flip_at; /* a byte of the packed header, and the bits that are flipped there */
	uint8_t flip;
};

static void forge(struct forged *forged, const struct frag_message *message)
{
	const struct fragi_blob *blob;

	memset(forged, 0, sizeof(*forged));
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	forged->header = (struct fragi_header){
		.kind = FRAGI_KIND_DATA,
		.token = "0123456789abcde",
		.flow = FLOW,
		.epoch = SENDER_EPOCH,
		.descriptor_bytes = blob->size,
		.publish_ns = fragi_now_ns(),
	};
	for (uint32_t i = 0; i < message->tensor_count; i++)
		forged->body_bytes += message->tensors[i].tensor->compact_bytes;
	forged->header.body_bytes = forged->body_bytes;
	memcpy(forged->bytes + FRAGI_HEADER_BYTES, blob->bytes, blob->size);
	forged->header_bytes = FRAGI_HEADER_BYTES + blob->size;
}

static void forge_value(struct forged *forged)
{
	struct frag_message *message = message_of(1);

	forge(forged, message);
	frag_message_unref(message);
}

static void forge_tensor(struct forged *forged, size_t size)
{
	struct frag_message *message = frag_message_create();

	frag_message_add_tensor(message, "t", bytes_tensor(size, 1));
	fragi_message_share(message);
	forge(forged, message);
	frag_message_unref(message);
}

static void send_forged(struct stranger *stranger, struct pair *pair, struct forged *forged)
{
	fragi_header_pack(&forged->header, forged->bytes);
	forged->bytes[forged->flip_at] ^= forged->flip;
	stranger_send(stranger, pair, forged->bytes, forged->header_bytes, forged->body,
		      forged->body_bytes);
}

/* The edge still works: ten messages cross. */
static void check_alive(struct pair *pair)
{
	for (int i = 0; i < 10; i++) {
		cr_assert_eq(send_value(pair, i), 0);
		pair_settle(pair);
		cr_assert_eq(take_value(pair), i);
		pair_settle(pair);
	}
	cr_assert_eq(atomic_load(&pair->lost[0]), 0);
	cr_assert_eq(atomic_load(&pair->lost[1]), 0);
	cr_assert_eq(atomic_load(&pair->faults[1]), 0);
}

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

/*
 * Changes at random places of a message that would pass, by classes: for each it is known what has
 * to become of the message.
 */
enum outcome {
	DROPPED,    /* as from a stranger: the edge goes on as if nothing had come */
	DELIVERED,  /* one message, the one that was sent */
	HELD,       /* until the messages before it are there */
	BROKEN,     /* the peer is closed, and the rule named */
	AS_DECODED, /* one of the others, as its descriptors can be read */
};

/* A number of so many bits that is not `other`, and often a small one or a large one. */
static uint64_t any_but(uint64_t other, int bits, unsigned int *seed)
{
	uint64_t most = UINT64_MAX >> (64 - bits), number;

	do {
		number = (uint64_t)rand_r(seed) << 33 ^ (uint64_t)rand_r(seed);
		number >>= rand_r(seed) % bits;
		number = (rand_r(seed) % 4 == 0 ? ~number : number) & most;
	} while (number == other);
	return number;
}

static void other_magic(struct forged *f, unsigned int *seed)
{
	f->flip_at = (size_t)rand_r(seed) % 6; /* the version behind it */
	f->flip = (uint8_t)(1 + rand_r(seed) % 255);
}

static void no_kind(struct forged *f, unsigned int *seed)
{
	f->header.kind = (enum fragi_header_kind)(FRAGI_KINDS + rand_r(seed) % (256 - FRAGI_KINDS));
}

static void other_token(struct forged *f, unsigned int *seed)
{
	f->header.token[rand_r(seed) % FRAGI_TOKEN_BYTES] ^= (uint8_t)(1 + rand_r(seed) % 255);
}

static void other_flow(struct forged *f, unsigned int *seed)
{
	f->header.flow = (uint32_t)any_but(FLOW, 32, seed);
}

static void other_epoch(struct forged *f, unsigned int *seed)
{
	f->header.epoch = any_but(f->header.epoch, 64, seed);
}

static void against_the_direction(struct forged *f, unsigned int *seed)
{
	f->header.kind = rand_r(seed) % 2 == 0 ? FRAGI_KIND_CREDIT : FRAGI_KIND_DONE;
}

static void without_a_meaning(struct forged *f, unsigned int *seed)
{
	f->header.flags = (uint8_t)(rand_r(seed) & ~(FRAGI_FLAG_AHEAD | FRAGI_FLAG_CREDITED));
	f->header.publish_ns = (int64_t)any_but(0, 64, seed);
}

static void out_of_turn(struct forged *f, unsigned int *seed)
{
	f->header.sequence += 1 + (uint64_t)rand_r(seed) % 3;
}

static void out_of_the_window(struct forged *f, unsigned int *seed)
{
	uint64_t number = any_but(f->header.sequence, 64, seed);

	if (number - f->header.sequence < 4)
		number += 4;
	f->header.sequence = number;
}

static void other_sizes(struct forged *f, unsigned int *seed)
{
	if (rand_r(seed) % 2 == 0)
		f->header.body_bytes = any_but(f->header.body_bytes, 64, seed);
	else
		f->header.descriptor_bytes =
			(uint32_t)any_but(f->header.descriptor_bytes, 32, seed);
}

static void other_bytes(struct forged *f, unsigned int *seed)
{
	if (rand_r(seed) % 2 == 0)
		f->body_bytes += 1 + (size_t)rand_r(seed) % 5000;
	else
		f->header_bytes -= 1 + (size_t)rand_r(seed) % f->header.descriptor_bytes;
}

static void other_protocol(struct forged *f, unsigned int *seed)
{
	static const enum fragi_header_kind kinds[] = {FRAGI_KIND_HELLO, FRAGI_KIND_BEAT,
						       FRAGI_KIND_CLOSE, FRAGI_KIND_SYNC,
						       FRAGI_KIND_DESCRIPTORS};

	f->header.kind = kinds[(size_t)rand_r(seed) % FRAG_COUNT_OF(kinds)];
}

static void ahead_or_credited(struct forged *f, unsigned int *seed)
{
	f->header.flags = (uint8_t)rand_r(seed) |
			  (rand_r(seed) % 2 == 0 ? FRAGI_FLAG_AHEAD : FRAGI_FLAG_CREDITED);
}

static void other_descriptors(struct forged *f, unsigned int *seed)
{
	for (int n = 1 + rand_r(seed) % 3; n > 0; n--)
		f->bytes[FRAGI_HEADER_BYTES + (size_t)rand_r(seed) % f->header.descriptor_bytes] ^=
			(uint8_t)(1 + rand_r(seed) % 255);
}

static const struct change {
	const char *name;
	void (*change)(struct forged *f, unsigned int *seed);
	enum outcome outcome;
	const char *rules[4]; /* of which one is broken */
} changes[] = {
	{"magic", other_magic, DROPPED, {0}},
	{"kind", no_kind, DROPPED, {0}},
	{"token", other_token, DROPPED, {0}},
	{"flow", other_flow, DROPPED, {0}},
	{"epoch", other_epoch, DROPPED, {0}},
	{"direction", against_the_direction, DROPPED, {0}},
	{"what DATA has no use for", without_a_meaning, DELIVERED, {0}},
	{"sequence ahead", out_of_turn, HELD, {0}},
	{"sequence", out_of_the_window, BROKEN, {"a message beyond its credit"}},
	{"sizes stated", other_sizes, BROKEN, {"sizes that contradict", "beyond the limit"}},
	{"sizes", other_bytes, BROKEN, {"sizes that contradict"}},
	{"other protocol", other_protocol, BROKEN, {"malformed message of kind", "contradict"}},
	{"flags",
	 ahead_or_credited,
	 BROKEN,
	 {"sizes that contradict", "does not lead to it", "credit cut short"}},
	{"descriptors", other_descriptors, AS_DECODED, {"malformed", "do not describe"}},
};

/* What has to become of descriptors; -ENOENT: a type that is not known here. */
static int decoded(const struct forged *f)
{
	struct frag_message *message;
	uint64_t bodies = 0, type_id;
	int r = fragi_message_decode(f->bytes + FRAGI_HEADER_BYTES, f->header.descriptor_bytes,
				     f->header.body_bytes, &message, &type_id);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < message->tensor_count; i++)
		bodies += message->tensors[i].tensor->compact_bytes;
	frag_message_unref(message);
	return bodies == f->header.body_bytes ? 0 : -EBADMSG;
}

static void expect_lost(const struct pair *pair, const struct change *change)
{
	bool named = false;

	cr_assert_eq(atomic_load(&pair->lost[1]), 1, "%s", change->name);
	for (int i = 0; i < 4 && change->rules[i] != NULL; i++)
		named = named || strstr(pair->sentence[1], change->rules[i]) != NULL;
	cr_assert(named, "%s: %s", change->name, pair->sentence[1]);
	cr_assert_eq(pair->failure[1], FRAGI_FAILURE_PROTOCOL, "%s", change->name);
	cr_assert_eq(fragi_rx_available(pair->rx), 0, "%s", change->name);
}

static uint64_t awaited;

static bool have_come(struct pair *pair)
{
	return fragi_rx_available(pair->rx) >= awaited;
}

/* So many messages wait in the queue; where others want the cores, the kernel brings them late. */
static void expect_waiting(struct pair *pair, uint64_t count)
{
	awaited = count;
	cr_assert(pair_until(pair, have_come), "%llu messages", (unsigned long long)count);
	cr_assert_eq(fragi_rx_available(pair->rx), count);
}

/* The message that waits in the queue is the forged one, but for what its descriptors say. */
static void expect_delivered(struct pair *pair, const struct forged *f, bool is_as_sent)
{
	struct frag_message *message;
	const struct fragi_blob *blob;

	expect_waiting(pair, 1);
	cr_assert_eq(atomic_load(&pair->lost[1]) + atomic_load(&pair->faults[1]), 0);
	message = fragi_rx_take(pair->rx, fragi_stamp());
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	if (is_as_sent) {
		cr_assert_eq(blob->size, f->header.descriptor_bytes);
		cr_assert_arr_eq(blob->bytes, f->bytes + FRAGI_HEADER_BYTES, blob->size);
	}
	for (uint32_t i = 0; i < message->tensor_count; i++)
		for (size_t k = 0; k < message->tensors[i].tensor->compact_bytes; k++)
			cr_assert_eq(((uint8_t *)message->tensors[i].tensor->dl.data)[k], 0xab);
	frag_message_unref(message);
}

/* The messages before it come: all are delivered, in order. */
static void expect_held(struct pair *pair, struct stranger *stranger, const struct forged *f)
{
	struct forged before = *f;

	cr_assert_eq(fragi_rx_available(pair->rx), 0);
	for (uint64_t i = 10; i < f->header.sequence; i++) {
		expect_waiting(pair, i - 10);
		before.header.sequence = i;
		send_forged(stranger, pair, &before);
	}
	expect_waiting(pair, f->header.sequence - 10 + 1);
	cr_assert_eq(atomic_load(&pair->lost[1]), 0);
}

/* The receiver has given all credit back, which a slow machine lets it do in other batches. */
static bool has_all_room(struct pair *pair)
{
	return pair->tx->ops->room(pair->tx) == pair->capacity;
}

static void change_one(const struct change *change, bool tensor, unsigned int *seed)
{
	struct pair pair = {0};
	struct stranger stranger;
	struct forged f;
	enum outcome outcome = change->outcome;
	int r = 0;

	pair_open(&pair, &kind_ucx);
	check_alive(&pair);
	cr_assert(pair_until(&pair, has_all_room));
	stranger_open(&stranger, &pair, 1);
	if (tensor)
		forge_tensor(&f, 500);
	else
		forge_value(&f);
	memset(f.body, 0xab, sizeof(f.body));
	f.header.sequence = 10;
	change->change(&f, seed);
	if (outcome == AS_DECODED) {
		r = decoded(&f);
		outcome = r == 0 ? DELIVERED : BROKEN;
	}
	send_forged(&stranger, &pair, &f);
	if (r == -ENOENT) {
		cr_assert_eq(atomic_load(&pair.faults[1]), 1, "%s", change->name);
		cr_assert_not_null(strstr(pair.sentence[1], "flow 7"), "%s", pair.sentence[1]);
	} else if (outcome == BROKEN) {
		expect_lost(&pair, change);
	} else if (outcome == DELIVERED) {
		expect_delivered(&pair, &f, change->outcome == DELIVERED);
	} else if (outcome == HELD) {
		expect_held(&pair, &stranger, &f);
	} else {
		cr_assert_eq(fragi_rx_available(pair.rx), 0, "%s", change->name);
		check_alive(&pair);
		check_balance(&pair, 0);
	}
	stranger_close(&stranger);
	pair_close(&pair);
}

Test(ucx_forged, random_changes, .init = set_environment, .timeout = 200)
{
	unsigned int seed = 12345;

	for (size_t i = 0; i < FRAG_COUNT_OF(changes); i++)
		for (int round = 0; round < (changes[i].outcome == AS_DECODED ? 16 : 4); round++)
			change_one(&changes[i], round % 2 == 1, &seed);
}

/* Addresses of hosts that cannot work together. */

static int add_with(struct pair *pair, size_t at, const char *text, struct frag_err *err)
{
	char address[FRAGI_HOST_ADDRESS_MAX];
	struct fragi_remote_endpoint *endpoint;
	struct fragi_remote_peer *peer;
	const void *own;
	size_t size;

	own = pair_address(pair, 1, &size);
	memcpy(address, own, size);
	if (text != NULL)
		strcpy(address + at, text);
	else
		size = at;
	cr_assert_eq(fragi_remote_peer_create(pair->remote[0], 9, 1, &peer), 0);
	return fragi_remote_connect(peer, "ucx", address, size, &endpoint, err);
}

PAIR_TEST(ucx_address, what_cannot_work_together_is_refused_naming_both, &kind_ucx)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(add_with(pair, 152, "64K", &err), -EPROTO);
	cr_assert_not_null(
		strstr(err.text, "UCX_TCP_RX_SEG_SIZE is 256K here and 64K on the other host"),
		"%s", err.text);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_assert_eq(add_with(pair, 168, "y", &err), -EPROTO);
	cr_assert_not_null(strstr(err.text, "UCX_PROTO_ENABLE"), "%s", err.text);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_assert_eq(add_with(pair, 8, "1.0.7", &err), -EPROTO);
	cr_assert_not_null(strstr(err.text, "1.0.7"), "%s", err.text);
	for (size_t size = 0; size < 120; size += 5) {
		err = (struct frag_err)FRAG_ERR_INIT;
		cr_assert_eq(add_with(pair, size, NULL, &err), -EBADMSG);
	}
}

/* The sockets of UCX. */

Test(ucx_sockets, a_listener_elsewhere_is_refused, .init = set_environment)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct ucx_sockets before, after;
	struct frag_err err = FRAG_ERR_INIT;
	int fd;

	ucx_sockets_list(&before);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	cr_assert_eq(ucx_sockets_check(&before, "eth7,lo", &err), 0, "%s", err.text);
	cr_assert_eq(ucx_sockets_check(&before, "eth7", &err), -EPERM);
	cr_assert_not_null(strstr(err.text, "127.0.0.1"), "%s", err.text);
	ucx_sockets_list(&after);
	cr_assert_eq(ucx_sockets_check(&after, "eth7", &err), 0);
	close(fd);
}

static void set_unknown_interface(void)
{
	setenv("UCX_NET_DEVICES", "nosuch0", 1);
	set_environment();
}

Test(ucx_sockets, an_unknown_interface_is_refused, .init = set_unknown_interface)
{
	const struct fragi_transport_ops *ops;
	static const uint8_t key[FRAGI_DATA_KEY_BYTES] = "the key";
	struct fragi_remote_config config = {.data_key = key};
	struct fragi_remote *remote;
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_pump_create(&config.pump), 0);
	cr_assert_eq(fragi_remote_create(&config, &remote), 0);
	cr_assert_eq(fragi_transport_open("ucx", &ops, &err), 0);
	cr_assert_lt(fragi_remote_open(remote, ops, &err), 0);
	cr_assert_not_null(strstr(err.text, "nosuch0"), "%s", err.text);
	fragi_remote_destroy(remote);
	fragi_pump_destroy(config.pump);
}

PAIR_TEST(ucx_sockets, what_it_listens_on_is_described, &kind_ucx)
{
	cr_assert_not_null(strstr(pair_transport(pair, 0, 0)->detail, "tcp lo"));
}
