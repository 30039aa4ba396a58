// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
/*
 * What somebody between two hosts can do to encrypted flows, by the relay of the tests' own
 * transport: read what passes, change it, repeat it, take it away, move it, add to it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "message.h"
#include "pair.h"
#include "socket.h"
#include <data/message.h>
#include <data/metadata.h>
#include <edge/remote/header.h>

#define FLOW 7
#define SEAL_AT FRAGI_HEADER_BYTES

static enum fragi_header_kind kind_of(const struct message *m)
{
	return (enum fragi_header_kind)m->header[6];
}

static bool is_of(const struct message *m, enum fragi_header_kind kind)
{
	return kind_of(m) == kind && fragi_get32(m->header + 24) == FLOW;
}

/* Reads. */

#define TAP_BYTES (4u << 20)
static uint8_t *tapped;
static size_t tapped_bytes;

static void tap(const void *bytes, size_t size)
{
	cr_assert_leq(tapped_bytes + size, TAP_BYTES);
	memcpy(tapped + tapped_bytes, bytes, size);
	tapped_bytes += size;
}

static uint32_t relay_tap(struct message *m)
{
	tap(m->header, m->header_bytes);
	for (uint32_t i = 0; i < m->count; i++)
		tap(m->bodies[i].data, m->bodies[i].bytes);
	return 1;
}

static bool was_tapped(const void *bytes, size_t size)
{
	return memmem(tapped, tapped_bytes, bytes, size) != NULL;
}

/* A message with a secret in each part, the last of them so long that it travels ahead. */
static struct frag_message *secrets(size_t long_bytes)
{
	struct frag_message *message = frag_message_create();
	struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_DEFAULT);
	char *text = calloc(1, long_bytes + 1);

	memset(text, 'x', long_bytes);
	memcpy(text + long_bytes / 2, "longsecret", 10);
	frag_message_add_tensor(message, "secretname", bytes_tensor(1000, 5));
	cr_assert_eq(frag_metadata_set_string(metadata, "secretkey", "secretmeta"), 0);
	cr_assert_eq(frag_metadata_set_string(metadata, "long", text), 0);
	cr_assert_eq(frag_message_set_value(message, &frag_type_string, "secretvalue", 12, NULL),
		     0);
	fragi_message_set_metadata(message, metadata);
	fragi_message_share(message);
	free(text);
	return message;
}

static void tap_secrets(const struct kind *kind, bool expect)
{
	static const char *const words[] = {"secretname", "secretkey", "secretmeta", "secretvalue",
					    "longsecret"};
	struct frag_tensor *body = bytes_tensor(1000, 5);
	struct pair pair = {.edges = 1};

	tapped = calloc(1, TAP_BYTES);
	tapped_bytes = 0;
	socket_settings.relay = relay_tap;
	pair_open(&pair, kind);
	for (size_t i = 0; i < 3; i++) {
		struct frag_message *message;

		cr_assert_eq(pair.tx->ops->send(pair.tx, secrets(i * 5000 + 20), fragi_stamp()), 0);
		pair_settle(&pair);
		message = fragi_rx_take(pair.rx, fragi_stamp());
		cr_assert_not_null(message);
		cr_expect(tensor_holds(frag_message_tensor(message, "secretname"), 1000, 5));
		frag_message_unref(message);
		pair_settle(&pair);
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		cr_expect_eq(was_tapped(words[i], strlen(words[i])), expect, "%s", words[i]);
	for (size_t i = 0; i < 1000; i += 8)
		cr_expect_eq(was_tapped((const char *)frag_tensor_data(body) + i, 8), expect);
	frag_tensor_unref(body);
	socket_settings.relay = NULL; /* the two ends are closed on two threads */
	pair_close(&pair);
	free(tapped);
}

Test(encrypted, a_plain_flow_can_be_read)
{
	tap_secrets(&kind_socket, true);
}

Test(encrypted, nothing_of_a_message_can_be_read)
{
	tap_secrets(&kind_encrypted_socket, false);
}

/* Nonces. */

static uint64_t next_number[4][2];
static uint8_t tags[200000][16];
static uint32_t tag_count;

static uint32_t relay_numbers(struct message *m)
{
	uint32_t flow = fragi_get32(m->header + 24) - FLOW;
	bool back = (m->header[7] & FRAGI_FLAG_BACK) != 0;

	cr_assert_lt(flow, 4);
	cr_assert_eq(fragi_get64(m->header + SEAL_AT), next_number[flow][back]++);
	if (kind_of(m) == FRAGI_KIND_DATA && tag_count < 200000)
		memcpy(tags[tag_count++], m->header + SEAL_AT + 8, 16);
	return 1;
}

static int compare_tags(const void *a, const void *b)
{
	return memcmp(a, b, 16);
}

/* Across keys too, which change after 65,536 messages; and a fan-out has a nonce in each flow. */
Test(encrypted, no_number_comes_twice, .timeout = 300)
{
	struct pair pair = {.edges = 2, .capacity = 64};
	struct frag_message *message;

	memset(next_number, 0, sizeof(next_number));
	socket_settings.relay = relay_numbers;
	pair_open(&pair, &kind_encrypted_socket);
	for (int64_t sent = 0, taken = 0; taken < 70000;) {
		for (; sent < 70000 && pair.tx->ops->room(pair.tx) > 0; sent++)
			cr_assert_eq(send_value(&pair, sent), 0);
		pair_turn(&pair);
		for (int64_t value; (value = take_value(&pair)) >= 0; taken++)
			cr_assert_eq(value, taken);
	}
	message = message_of(1);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pair.txs[i]->ops->send(pair.txs[i], frag_message_ref(message),
						    fragi_stamp()),
			     0);
	frag_message_unref(message);
	pair_settle(&pair);
	cr_expect_gt(next_number[0][false], 70000);
	cr_expect_gt(next_number[0][true], 0);
	cr_expect_gt(next_number[1][false], 0);
	qsort(tags, tag_count, sizeof(tags[0]), compare_tags);
	for (uint32_t i = 1; i < tag_count; i++)
		cr_expect_neq(memcmp(tags[i - 1], tags[i], 16), 0);
	pair_close(&pair);
}

static uint8_t bodies_seen[6][100];
static uint32_t bodies_count;

static uint32_t relay_bodies(struct message *m)
{
	if (m->count > 0 && bodies_count < 6)
		memcpy(bodies_seen[bodies_count++], m->bodies[0].data, 100);
	return 1;
}

static struct frag_message *message_with_tensor(int64_t value)
{
	struct frag_message *message = frag_message_create();

	frag_message_add_tensor(message, "t", bytes_tensor(100, (uint8_t)value));
	cr_assert_eq(frag_message_set_value(message, &frag_type_i64, &value, sizeof(value), NULL),
		     0);
	fragi_message_share(message);
	return message;
}

/* One after the other, and over two flows. */
Test(encrypted, equal_messages_do_not_look_equal)
{
	struct pair pair = {.edges = 2};
	struct frag_message *message = message_with_tensor(1);

	socket_settings.relay = relay_bodies;
	pair_open(&pair, &kind_encrypted_socket);
	for (int i = 0; i < 6; i++)
		cr_assert_eq(pair.txs[i % 2]->ops->send(pair.txs[i % 2], frag_message_ref(message),
							fragi_stamp()),
			     0);
	frag_message_unref(message);
	pair_settle(&pair);
	cr_assert_eq(bodies_count, 6);
	for (uint32_t i = 1; i < 6; i++)
		for (uint32_t k = 0; k < i; k++)
			cr_expect_neq(memcmp(bodies_seen[i], bodies_seen[k], 100), 0);
	pair_close(&pair);
}

/* Changes, repeats, removes. */

static struct {
	enum fragi_header_kind kind;
	uint32_t nth;   /* of that kind, from 0 */
	size_t at;      /* a byte of the header, or of the bodies behind it */
	uint32_t times; /* that it travels */
	bool flip, cut_short, cut_body;
	uint32_t seen;
	size_t bytes; /* of the one that was meant */
} plan;

static uint32_t relay_plan(struct message *m)
{
	if (!is_of(m, plan.kind) || plan.seen++ != plan.nth)
		return 1;
	plan.bytes = m->header_bytes + m->bytes;
	if (plan.flip && plan.at < m->header_bytes)
		m->header[plan.at] ^= 0x10;
	else if (plan.flip && plan.at < plan.bytes)
		((uint8_t *)m->bodies[0].data)[plan.at - m->header_bytes] ^= 0x10;
	if (plan.cut_short)
		m->header_bytes--;
	if (plan.cut_body) {
		m->bodies[0].bytes--;
		m->bytes--;
	}
	return plan.times;
}

static bool is_lost(struct pair *pair)
{
	return atomic_load(&pair->lost[0]) > 0 || atomic_load(&pair->lost[1]) > 0;
}

static bool is_ready(struct pair *pair)
{
	return is_lost(pair) ||
	       (atomic_load(&pair->ready[0]) > 0 && atomic_load(&pair->ready[1]) > 0);
}

/*
 * Sends some messages under the plan, with a credit, a close and the goodbye. What arrives is what
 * was sent, in order, and one of the hosts says what happened.
 */
static void suffers(bool expect_tampered)
{
	struct pair pair = {.capacity = 2, .dead_ns = 300000000};
	int64_t next = 0, until = fragi_now_ns() + 20000000000;
	int tampered = 0;

	plan.seen = 0;
	plan.bytes = 0;
	socket_settings.relay = relay_plan;
	pair_begin(&pair, &kind_encrypted_socket);
	cr_assert(pair_until(&pair, is_ready));
	for (int64_t sent = 0; !is_lost(&pair) && next < 6;) {
		struct frag_message *message;

		if (sent < 6 && pair.tx->ops->room(pair.tx) > 0)
			cr_assert_eq(pair.tx->ops->send(pair.tx, message_with_tensor(sent++),
							fragi_stamp()),
				     0);
		pair_turn(&pair);
		cr_assert_lt(fragi_now_ns(), until, "kind %d, byte %zu: neither lost nor whole",
			     (int)plan.kind, plan.at);
		message = fragi_rx_take(pair.rx, fragi_stamp());
		if (message == NULL)
			continue;
		cr_assert_eq(value_of(message), next);
		cr_assert(tensor_holds(frag_message_tensor(message, "t"), 100, (uint8_t)next));
		frag_message_unref(message);
		next++;
	}
	if (!is_lost(&pair))
		pair.tx->ops->close(pair.tx);
	if (expect_tampered)
		cr_expect(pair_until(&pair, is_lost));
	else
		pair_settle(&pair);
	for (int i = 0; i < 2; i++)
		if (atomic_load(&pair.lost[i]) > 0 &&
		    pair.failure[i] == FRAGI_FAILURE_DATA_TAMPERED) {
			cr_expect_not_null(
				strstr(pair.sentence[i],
				       "a message of the encrypted flow 7 was changed, repeated or removed on its way here"),
				"%s", pair.sentence[i]);
			tampered++;
		}
	cr_expect_eq(tampered > 0, expect_tampered, "kind %d, byte %zu: %s / %s", (int)plan.kind,
		     plan.at, pair.sentence[0], pair.sentence[1]);
	cr_expect_gt(plan.bytes, 0);
	pair_close(&pair);
}

Test(encrypted, an_undisturbed_flow_suffers_nothing)
{
	memset(&plan, 0, sizeof(plan));
	plan.kind = FRAGI_KIND_DATA;
	plan.times = 1;
	suffers(false);
}

/*
 * Also of what tells whose message it is: without it the message is dropped, and missing then.
 */
Test(encrypted, no_byte_of_a_message_can_be_changed, .timeout = 300)
{
	memset(&plan, 0, sizeof(plan));
	plan.kind = FRAGI_KIND_DATA;
	plan.nth = 2;
	plan.times = 1;
	plan.flip = true;
	do
		suffers(true);
	while (++plan.at < plan.bytes);
	cr_expect_gt(plan.bytes, 64 + 24 + 16 + 100);
}

static const enum fragi_header_kind kinds[] = {FRAGI_KIND_DATA, FRAGI_KIND_CREDIT, FRAGI_KIND_CLOSE,
					       FRAGI_KIND_BEAT, FRAGI_KIND_HELLO};

Test(encrypted, no_message_of_any_kind_can_be_changed)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (size_t at = 40; at < 88; at += 8) {
			memset(&plan, 0, sizeof(plan));
			plan.kind = kinds[i];
			plan.times = 1;
			plan.at = at;
			plan.flip = true;
			suffers(true);
		}
}

Test(encrypted, no_message_of_any_kind_can_be_repeated_or_removed)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (uint32_t times = 0; times < 4; times += 2) {
			memset(&plan, 0, sizeof(plan));
			plan.kind = kinds[i];
			plan.times = times;
			if (kinds[i] == FRAGI_KIND_HELLO && times == 0)
				continue; /* it is said again */
			suffers(true);
		}
}

Test(encrypted, no_message_can_be_cut_short)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		memset(&plan, 0, sizeof(plan));
		plan.kind = kinds[i];
		plan.times = 1;
		plan.cut_short = true;
		suffers(true);
	}
	memset(&plan, 0, sizeof(plan));
	plan.kind = FRAGI_KIND_DATA;
	plan.times = 1;
	plan.cut_body = true;
	suffers(true);
}

/* Adds. */

static enum fragi_header_kind injected_kind;
static uint32_t injected;

/* A plain message with everything that can be read off the wire, as an unencrypted flow has it. */
static uint32_t relay_inject(struct message *m)
{
	uint8_t header[FRAGI_HEADER_BYTES];

	if (!is_of(m, FRAGI_KIND_DATA) || injected++ != 1)
		return 1;
	memcpy(header, m->header, sizeof(header));
	header[6] = (uint8_t)injected_kind;
	header[7] = 0;
	memset(header + 28, 0, 4);
	memset(header + 40, 0, 24);
	socket_inject(m, header, sizeof(header));
	return 1;
}

Test(encrypted, a_plain_message_is_not_taken_for_an_encrypted_one)
{
	for (injected_kind = FRAGI_KIND_HELLO; injected_kind < FRAGI_KINDS; injected_kind++) {
		struct pair pair = {.capacity = 4};

		if (injected_kind == FRAGI_KIND_CREDIT || injected_kind == FRAGI_KIND_DONE)
			continue; /* against the direction */
		injected = 0;
		socket_settings.relay = relay_inject;
		pair_open(&pair, &kind_encrypted_socket);
		for (int64_t i = 0; i < 4; i++)
			send_value(&pair, i);
		cr_expect(pair_until(&pair, is_lost));
		cr_expect_eq(pair.failure[1], FRAGI_FAILURE_DATA_TAMPERED);
		cr_expect_eq(take_value(&pair), 0);
		cr_expect_eq(take_value(&pair), -1, "kind %d", (int)injected_kind);
		pair_close(&pair);
	}
}

/* What is said for a whole endpoint is said by an encrypted flow, if there is one. */
Test(encrypted, a_plain_flow_does_not_speak_for_the_endpoint)
{
	static const enum fragi_header_kind own[] = {FRAGI_KIND_HELLO, FRAGI_KIND_BEAT,
						     FRAGI_KIND_SYNC};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		struct pair pair = {.capacity = 4, .edges = 2, .first_is_plain = true};

		injected = 0;
		injected_kind = own[i];
		socket_settings.relay = relay_inject; /* into the plain flow */
		pair_open(&pair, &kind_encrypted_socket);
		for (int64_t k = 0; k < 3; k++)
			send_value(&pair, k);
		pair_settle(&pair);
		cr_expect_eq(injected, 2); /* the third value travels as NEXT */
		cr_expect_not(is_lost(&pair));
		for (int64_t k = 0; k < 3; k++)
			cr_expect_eq(take_value(&pair), k);
		pair_close(&pair);
	}
}

PAIR_TEST(encrypted, a_flow_needs_a_key_and_the_module, &kind_socket, .edges = 2)
{
	struct fragi_edge_config config = {
		.flow = 1, .window_messages = 1, .window_bytes = 1, .encrypt = true};
	struct fragi_tx *tx;

	cr_expect_eq(fragi_remote_tx_create(pair->endpoint[0][0], &config,
					    &pair->ledger[0].flows[0], &tx),
		     -EINVAL);
}
