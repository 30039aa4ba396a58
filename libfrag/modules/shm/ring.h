/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHM_RING_H
#define SHM_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <edge/transport.h>
#include <frag/tensor.h>

/*
 * A channel: what one host writes for one peer. The first page holds its counters, behind it lies
 * the ring. Everything in it is written by its owner alone; the peer maps it read-only and tells
 * how far it has read in its own channel.
 *
 * The ring is mapped twice in a row, so that a record is always in one piece. A record begins with
 * a cache line, and a small message takes no other: the host that writes the next record takes no
 * line that the peer still reads. Its head is one word, which is stored last and is 0 until then.
 * The peer waits for that word, in the line that it reads next. Behind the last record there is
 * always a 0.
 *
 *   0 the head (struct shm_record_head)   8 u64 slot   16 the header, padded to 8
 *   then the places (u64 offset, u64 bytes), or the bytes themselves
 *
 * The upper 16 bits of an offset say in what: 0: the sender's heap; n: its area n - 1.
 */
#define SHM_RING_BYTES ((uint64_t)256 << 10)
#define SHM_LINE_BYTES 64u                /* of a cache */
#define SHM_HEADER_AT 16u                 /* in a record */
#define SHM_INLINE_MAX FRAGI_INLINE_MAX   /* bodies up to so many bytes travel in the ring */
#define SHM_RETURNS_MAX 64u               /* slots in one record */
#define SHM_PLACE_MAX ((uint64_t)1 << 46) /* bytes of a heap or an area */
#define SHM_PLACE_AREA 48u                /* bits of an offset */

enum shm_kind {
	SHM_MESSAGE = 1,
	SHM_RETURN, /* slots that the peer has no use for any more */
};

struct shm_record_head {
	uint8_t kind;  /* never 0 */
	uint8_t count; /* of places, or of slots */
	uint16_t header_bytes;
	uint32_t inline_bytes;
};

/* A body in the sender's heap, or in one of its areas. */
struct shm_place {
	uint64_t offset, bytes;
};

struct shm_record {
	enum shm_kind kind;
	uint32_t header_bytes, count, inline_bytes;
	uint64_t slot;
	const uint8_t *header; /* in the ring, where the peer may change it */
	const uint8_t *rest;   /* places, bytes or slots, the same */
	uint64_t bytes;        /* of the record */
};

/* the writer's end */
struct shm_ring_out {
	int fd;
	uint8_t *memory;
	uint64_t produced;
	uint64_t consumed; /* by the peer, as of the last look at what it writes */
};

/* the reader's end */
struct shm_ring_in {
	const uint8_t *memory; /* NULL: the peer's is not here yet */
	uint64_t consumed;
};

/* Returns 0 or negative errno. */
int shm_ring_create(struct shm_ring_out *out);
void shm_ring_destroy(struct shm_ring_out *out);
/* Maps a peer's. Returns 0, -EBADMSG when it is none, or negative errno. */
int shm_ring_map(struct shm_ring_in *in, int fd);
void shm_ring_unmap(struct shm_ring_in *in);

/*
 * Room for a record of that size, or NULL: the ring is full. in: the peer's channel, which tells
 * how far it has read; what it says is not believed beyond what is possible, and only looked at
 * when there is no room otherwise, because it would have to come from the peer's core. Before the
 * peer's channel is mapped the ring takes no more than it holds.
 */
uint8_t *shm_ring_room(struct shm_ring_out *out, const struct shm_ring_in *in, uint64_t bytes);
/* Shows the record that was written to the room, but for its head, to the peer. */
void shm_ring_publish(struct shm_ring_out *out, struct shm_record_head head, uint64_t bytes);

/*
 * The next record; its head is checked. Returns 1; 0: there is none; -EBADMSG: the peer has
 * written what cannot be.
 */
int shm_ring_next(struct shm_ring_in *in, struct shm_record *out_record);
/* The record has been read; `own` is this host's channel, where the peer sees it. */
void shm_ring_consume(struct shm_ring_in *in, struct shm_ring_out *own,
		      const struct shm_record *record);
bool shm_ring_is_empty(const struct shm_ring_in *in);

/* The owner has mapped these areas of the peer, a bit each; the peer's answer to the same. */
void shm_ring_tell_areas(struct shm_ring_out *own, uint64_t areas);
uint64_t shm_ring_areas(const struct shm_ring_in *in);

/* Whether the peer says that it has read what was never written. */
bool shm_ring_is_wrong(const struct shm_ring_out *out, const struct shm_ring_in *in);

/* Sleep: the owner is about to sleep, or awake; a peer reads whether it must ring. */
void shm_ring_sleep(struct shm_ring_out *own, bool sleeps);
/* Odd while the owner sleeps; changes with every sleep. */
uint32_t shm_ring_sleeps(const struct shm_ring_in *in);
/* The owner waits for room in its ring; and whether the peer does. */
void shm_ring_want_room(struct shm_ring_out *own, bool wants);
bool shm_ring_wants_room(const struct shm_ring_in *in);

static inline uint32_t shm_padded(uint32_t bytes)
{
	return (bytes + 7u) & ~7u;
}

/* Of a record, up to the next one. */
static inline uint64_t shm_record_bytes(struct shm_record_head head)
{
	uint64_t rest = head.kind == SHM_RETURN ? head.count * sizeof(uint64_t)
			: head.inline_bytes > 0 ? shm_padded(head.inline_bytes)
						: head.count * sizeof(struct shm_place);
	uint64_t bytes = SHM_HEADER_AT + shm_padded(head.header_bytes) + rest;

	return (bytes + SHM_LINE_BYTES - 1) & ~(uint64_t)(SHM_LINE_BYTES - 1);
}

#endif
