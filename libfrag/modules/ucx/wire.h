/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_UCX_WIRE_H
#define FRAGI_UCX_WIRE_H

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include <edge/transport.h>

/*
 * What travels between hosts: UCX active messages with this fixed little-endian header. A message
 * is DATA: the header, then its descriptors (data/codec.h) while both fit into WIRE_HEADER_MAX, and
 * the tensors' bytes as the payload. Longer descriptors go ahead in a DESCRIPTORS message of the
 * same sequence as its payload.
 *
 *    0 u32 magic          4 u16 version   6 u8 kind   7 u8 flags   8 u8[16] token of the flow
 *   24 u32 flow          28 u32 bytes of descriptors              32 u64 epoch of the sending host
 *   40 u64 sequence      48 u64 bytes of bodies                   56 i64 publish time, ns
 *
 * sequence: DATA, DESCRIPTORS: of the message in its flow, from 0; CREDIT: messages that have been
 * given back so far; CLOSE: how many messages the flow has had; HELLO: the sender's host number;
 * SYNC: the count that the answer repeats. bodies, in CREDIT: bytes (descriptors and bodies) that
 * have been given back so far. publish time: CLOCK_MONOTONIC of the sending node.
 *
 * DATA may carry credit of a flow that comes the other way, so that an answer needs no message
 * beside it. Behind the header then stand: u32 that flow   u64 messages   u64 bytes, as in CREDIT.
 */
#define WIRE_MAGIC 0x47415246u /* "FRAG" */
#define WIRE_VERSION 1u
#define WIRE_FIXED_BYTES 64u
#define WIRE_CREDIT_BYTES 20u
#define WIRE_HEADER_MAX 4096u

/* active message ids: dense, small, registered in this order */
enum wire_kind {
	WIRE_HELLO,
	WIRE_DATA,
	WIRE_DESCRIPTORS,
	WIRE_CREDIT,
	WIRE_BEAT,
	WIRE_CLOSE, /* by the sender of the flow */
	WIRE_DONE,  /* by its receiver */
	WIRE_SYNC,
	WIRE_KINDS
};

enum wire_flag {
	WIRE_HEARD = 1,     /* HELLO: your HELLO has arrived here */
	WIRE_AHEAD = 2,     /* DATA: the descriptors are in a message of their own */
	WIRE_REPLY = 4,     /* SYNC: an answer */
	WIRE_LEAVE = 8,     /* SYNC: the sender goes, in order */
	WIRE_WANT = 16,     /* BEAT: this flow's sender waits for bytes of credit */
	WIRE_CREDITED = 32, /* DATA: credit of another flow stands behind the header */
};

struct wire_credit {
	uint32_t flow;
	uint64_t messages, bytes; /* given back so far */
};

struct wire_header {
	enum wire_kind kind;
	uint8_t flags;
	uint8_t token[FRAGI_TOKEN_BYTES];
	uint32_t flow;
	uint32_t descriptor_bytes;
	uint64_t epoch;
	uint64_t sequence;
	uint64_t body_bytes;
	int64_t publish_ns;
};

static inline void wire_put16(uint8_t *at, uint16_t v)
{
	v = htole16(v);
	memcpy(at, &v, sizeof(v));
}

static inline void wire_put32(uint8_t *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
}

static inline void wire_put64(uint8_t *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
}

static inline uint16_t wire_get16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return le16toh(v);
}

static inline uint32_t wire_get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

static inline uint64_t wire_get64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return le64toh(v);
}

static inline void wire_pack(const struct wire_header *header, uint8_t out[WIRE_FIXED_BYTES])
{
	wire_put32(out, WIRE_MAGIC);
	wire_put16(out + 4, WIRE_VERSION);
	out[6] = (uint8_t)header->kind;
	out[7] = header->flags;
	memcpy(out + 8, header->token, FRAGI_TOKEN_BYTES);
	wire_put32(out + 24, header->flow);
	wire_put32(out + 28, header->descriptor_bytes);
	wire_put64(out + 32, header->epoch);
	wire_put64(out + 40, header->sequence);
	wire_put64(out + 48, header->body_bytes);
	wire_put64(out + 56, (uint64_t)header->publish_ns);
}

/* False for bytes that are no header of this kind. */
static inline bool wire_unpack(const uint8_t *bytes, size_t size, enum wire_kind kind,
			       struct wire_header *out)
{
	if (size < WIRE_FIXED_BYTES || wire_get32(bytes) != WIRE_MAGIC ||
	    wire_get16(bytes + 4) != WIRE_VERSION || bytes[6] != (uint8_t)kind)
		return false;
	out->kind = kind;
	out->flags = bytes[7];
	memcpy(out->token, bytes + 8, FRAGI_TOKEN_BYTES);
	out->flow = wire_get32(bytes + 24);
	out->descriptor_bytes = wire_get32(bytes + 28);
	out->epoch = wire_get64(bytes + 32);
	out->sequence = wire_get64(bytes + 40);
	out->body_bytes = wire_get64(bytes + 48);
	out->publish_ns = (int64_t)wire_get64(bytes + 56);
	return true;
}

static inline void wire_credit_pack(const struct wire_credit *credit,
				    uint8_t out[WIRE_CREDIT_BYTES])
{
	wire_put32(out, credit->flow);
	wire_put64(out + 4, credit->messages);
	wire_put64(out + 12, credit->bytes);
}

static inline struct wire_credit wire_credit_unpack(const uint8_t in[WIRE_CREDIT_BYTES])
{
	return (struct wire_credit){wire_get32(in), wire_get64(in + 4), wire_get64(in + 12)};
}

/* In a time that does not depend on where they differ. */
static inline bool wire_token_equal(const uint8_t *a, const uint8_t *b)
{
	uint64_t x[2], y[2];

	_Static_assert(sizeof(x) == FRAGI_TOKEN_BYTES, "a token is two words");
	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

#endif
