// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "ucx_stranger.h"

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
