/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_REMOTE_HEADER_H
#define FRAGI_EDGE_REMOTE_HEADER_H

#include <base/bytes.h>
#include <edge/remote/remote.h>

/*
 * The messages of the protocol between hosts. Each begins with this fixed little-endian header.
 * DATA carries one message of a flow: the header, then its descriptors (data/codec.h) if both fit
 * into the transport's header, and the tensors' bytes as bodies. Longer descriptors go ahead as the
 * body of a DESCRIPTORS message with the same sequence.
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
 * CREDIT ahead of DONE is for messages that the receiving operator took, or, with the policies pop,
 * reject and latest, for those that arrived. Behind DONE it is for those that were dropped because
 * the operator had ended.
 *
 * A BEAT to a host that reads another clock asks for its time (clock.c). publish time: when it was
 * sent; sequence, bodies: what CLOCK_REALTIME and CLOCK_TAI of the sender are ahead of
 * CLOCK_MONOTONIC, ns, signed; descriptors: how often that has stepped, times 2^16, and its rate
 * been changed, each counted to 2^16. The answer has the flag REPLY. sequence: the publish time of
 * the question; bodies: when it came; publish time: when the answer was sent; descriptors: as
 * above.
 *
 * A message of an encrypted flow, of whatever kind, is sealed. Behind the header then stand
 *
 *   64 u64 number of the message        72 u8[16] tag
 *   88 u8[16] tag of the bodies, if there are any; then credit and descriptors as in plain messages
 *
 * What stands at 88 and behind it is encrypted, and so are the bodies; the tag at 72 is of all but
 * the bodies. The header and the number can be read by everybody, and changed by nobody (seal.c).
 *
 * NEXT stands for DATA without credit whose descriptors are those of the flow's last DATA with the
 * flag LAYOUT. It is sent only over a transport that says whose a message is, to a host whose HELLO
 * has FRAGI_TAKES_NEXT in `bodies`, and never sealed. It is shorter than the header above:
 *
 *    0 u32 magic          4 u32 flow      8 u64 sequence          16 i64 publish time, ns
 *
 * The value follows, if the layout has one, and the bodies are those of DATA.
 *
 * DATA may carry credit of a flow that goes the other way, so that an answer needs no message
 * beside it. Behind the header then stand: u32 that flow   u64 messages   u64 bytes, as in CREDIT.
 */
#define FRAGI_HEADER_MAGIC 0x47415246u /* "FRAG" */
#define FRAGI_HEADER_VERSION 1u
#define FRAGI_HEADER_BYTES 64u
#define FRAGI_HEADER_KIND_AT 6
#define FRAGI_HEADER_FLAGS_AT 7
#define FRAGI_SEAL_BYTES 24u      /* number and tag */
#define FRAGI_SEAL_BODY_BYTES 16u /* the bodies' tag */
#define FRAGI_CREDIT_BYTES 20u
#define FRAGI_NEXT_MAGIC 0x5458454eu /* "NEXT" */
#define FRAGI_NEXT_BYTES 24u
#define FRAGI_TAKES_NEXT 1u

_Static_assert(FRAGI_HEADER_MIN >= FRAGI_HEADER_BYTES + FRAGI_SEAL_BYTES + FRAGI_SEAL_BODY_BYTES +
					   FRAGI_CREDIT_BYTES,
	       "every transport carries a header with credit");

enum fragi_header_kind {
	FRAGI_KIND_HELLO,
	FRAGI_KIND_DATA,
	FRAGI_KIND_DESCRIPTORS,
	FRAGI_KIND_CREDIT,
	FRAGI_KIND_BEAT,
	FRAGI_KIND_CLOSE, /* by the sender of the flow */
	FRAGI_KIND_DONE,  /* by its receiver */
	FRAGI_KIND_SYNC,
	FRAGI_KINDS
};

enum fragi_header_flag {
	FRAGI_FLAG_HEARD = 1,     /* HELLO: your HELLO has arrived here */
	FRAGI_FLAG_LEAP = 1,      /* BEAT: a leap second is announced to the kernel here */
	FRAGI_FLAG_LAYOUT = 1,    /* DATA: NEXT may follow that has its descriptors */
	FRAGI_FLAG_AHEAD = 2,     /* DATA: the descriptors are in a message of their own */
	FRAGI_FLAG_REPLY = 4,     /* SYNC, BEAT: an answer */
	FRAGI_FLAG_LEAVE = 8,     /* SYNC: the sender goes, in order */
	FRAGI_FLAG_WANT = 16,     /* BEAT: this flow's sender waits for bytes of credit */
	FRAGI_FLAG_CREDITED = 32, /* DATA: credit of another flow stands behind the header */
	FRAGI_FLAG_BACK = 64,     /* sealed: sent by the end that receives the flow */
	FRAGI_FLAG_YIELD =
		128, /* CLOSE: not for ever, but because the receiver is to be replaced */
};

struct fragi_credit {
	uint32_t flow;
	uint64_t messages, bytes; /* given back so far */
};

struct fragi_header {
	enum fragi_header_kind kind;
	uint8_t flags;
	uint8_t token[FRAGI_TOKEN_BYTES];
	uint32_t flow;
	uint32_t descriptor_bytes;
	uint64_t epoch;
	uint64_t sequence;
	uint64_t body_bytes;
	int64_t publish_ns;
};

static inline void fragi_header_pack(const struct fragi_header *header,
				     uint8_t out[FRAGI_HEADER_BYTES])
{
	fragi_put32(out, FRAGI_HEADER_MAGIC);
	fragi_put16(out + 4, FRAGI_HEADER_VERSION);
	out[6] = (uint8_t)header->kind;
	out[7] = header->flags;
	memcpy(out + 8, header->token, FRAGI_TOKEN_BYTES);
	fragi_put32(out + 24, header->flow);
	fragi_put32(out + 28, header->descriptor_bytes);
	fragi_put64(out + 32, header->epoch);
	fragi_put64(out + 40, header->sequence);
	fragi_put64(out + 48, header->body_bytes);
	fragi_put64(out + 56, (uint64_t)header->publish_ns);
}

/* Returns false for bytes that are no header. */
static inline bool fragi_header_unpack(const uint8_t *bytes, size_t size, struct fragi_header *out)
{
	if (size < FRAGI_HEADER_BYTES || fragi_get32(bytes) != FRAGI_HEADER_MAGIC ||
	    fragi_get16(bytes + 4) != FRAGI_HEADER_VERSION || bytes[6] >= FRAGI_KINDS)
		return false;
	out->kind = (enum fragi_header_kind)bytes[6];
	out->flags = bytes[7];
	memcpy(out->token, bytes + 8, FRAGI_TOKEN_BYTES);
	out->flow = fragi_get32(bytes + 24);
	out->descriptor_bytes = fragi_get32(bytes + 28);
	out->epoch = fragi_get64(bytes + 32);
	out->sequence = fragi_get64(bytes + 40);
	out->body_bytes = fragi_get64(bytes + 48);
	out->publish_ns = (int64_t)fragi_get64(bytes + 56);
	return true;
}

/* How many bytes follow the header as bodies. */
static inline uint64_t fragi_header_body_bytes(const struct fragi_header *header)
{
	return header->kind == FRAGI_KIND_DATA          ? header->body_bytes
	       : header->kind == FRAGI_KIND_DESCRIPTORS ? header->descriptor_bytes
							: 0;
}

struct fragi_next {
	uint32_t flow;
	uint64_t sequence;
	int64_t publish_ns;
};

static inline void fragi_next_pack(const struct fragi_next *next, uint8_t out[FRAGI_NEXT_BYTES])
{
	fragi_put32(out, FRAGI_NEXT_MAGIC);
	fragi_put32(out + 4, next->flow);
	fragi_put64(out + 8, next->sequence);
	fragi_put64(out + 16, (uint64_t)next->publish_ns);
}

/* Returns false for bytes that are no NEXT. */
static inline bool fragi_next_unpack(const uint8_t *bytes, size_t size, struct fragi_next *out)
{
	if (size < FRAGI_NEXT_BYTES || fragi_get32(bytes) != FRAGI_NEXT_MAGIC)
		return false;
	out->flow = fragi_get32(bytes + 4);
	out->sequence = fragi_get64(bytes + 8);
	out->publish_ns = (int64_t)fragi_get64(bytes + 16);
	return true;
}

static inline void fragi_credit_pack(const struct fragi_credit *credit,
				     uint8_t out[FRAGI_CREDIT_BYTES])
{
	fragi_put32(out, credit->flow);
	fragi_put64(out + 4, credit->messages);
	fragi_put64(out + 12, credit->bytes);
}

static inline struct fragi_credit fragi_credit_unpack(const uint8_t in[FRAGI_CREDIT_BYTES])
{
	return (struct fragi_credit){fragi_get32(in), fragi_get64(in + 4), fragi_get64(in + 12)};
}

/* Takes a time that does not depend on where the two differ. */
static inline bool fragi_token_equal(const uint8_t *a, const uint8_t *b)
{
	uint64_t x[2], y[2];

	_Static_assert(sizeof(x) == FRAGI_TOKEN_BYTES, "a token is two words");
	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

#endif
