/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_TRACE_H
#define FRAGI_BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <base/diag.h>
#include <base/stamp.h>

/*
 * The trace of a host (docs/TRACE.md): what its threads did, in a ring of records of one size.
 * Threads write and wait for nobody: each takes places by one addition, and what is too old is
 * overwritten. One thread reads. The same file has the format in which a host sends its records,
 * with the names that they need, to the program that writes the trace.
 *
 * The records of a tick stand together: the tick, then one for each flow on which it sent or
 * received. The messages of a flow are numbered from 0, in the same way at both ends. What
 * operators wait for, pools and losses are looked at from time to time, by other threads.
 */
#define FRAGI_TRACE_SLOTS (UINT32_C(1) << 16) /* of 32 bytes */
#define FRAGI_TRACE_TICK_MAX 256u             /* records of a tick; other flows are left out */

enum fragi_trace_kind {
	FRAGI_TRACE_TICK = 1, /* object: row of the operator; value: its end */
	FRAGI_TRACE_SENT,     /* object: row of the flow; value: number of the first message */
	FRAGI_TRACE_RECEIVED, /* the same */
	/* each by itself, when it was seen to have changed; begin: when */
	FRAGI_TRACE_USE,  /* object: row of the operator; value: enum fragi_use */
	FRAGI_TRACE_POOL, /* object: the pool; value: its blocks in use */
	FRAGI_TRACE_LOST, /* object: row of the flow; value: messages lost so far */
	/* by itself: work of a GPU, as a tick; object: row of the operator; value: its end */
	FRAGI_TRACE_GPU,
	/*
	 * by itself: a message was late; object: row of the operator that ends the path; value: how
	 * long it took, ns; flows: enum fragi_blame_cause; count: row of the operator to blame plus
	 * 1, 0: it is in another process, or it is a flow
	 */
	FRAGI_TRACE_LATE,
};

struct fragi_trace_record {
	uint64_t begin; /* of the tick; in the ring a stamp, and later CLOCK_MONOTONIC, ns */
	uint64_t value;
	uint32_t object : 24;
	uint32_t flows : 8; /* of a tick: how many records of flows follow */
	uint32_t kind : 8;
	uint32_t count : 24; /* of a tick: the thread's id; else: messages */
};

#define FRAGI_TRACE_WORDS (sizeof(struct fragi_trace_record) / sizeof(uint64_t))
#define FRAGI_TRACE_BUSY (UINT64_C(1) << 63)
struct fragi_trace_slot {
	/* of its record in all that were written, plus 1; 0: none; BUSY: a thread writes it */
	_Atomic uint64_t place;
	_Atomic uint64_t words[FRAGI_TRACE_WORDS]; /* the record */
};

/*
 * How far a trace has been sent, for whoever reads the ring after the host is gone. Chunk n begins
 * at at[n % 2], so that what is known of the last chunk stays until the one after it is made: then
 * the last one has left.
 */
struct fragi_trace_reader {
	_Atomic uint32_t id;     /* of the trace; 0: none */
	_Atomic uint64_t number; /* of the next chunk */
	struct {
		_Atomic uint64_t place, lost, stamp;
		_Atomic int64_t ns; /* CLOCK_MONOTONIC at that stamp */
	} at[2];
};
#define FRAGI_TRACE_READERS 8

/*
 * It lies in the page of the ledger (edge/ledger.h), which outlives the host. All zero: it is
 * empty. Memory that nobody has written takes no room.
 */
struct fragi_trace_ring {
	_Atomic uint64_t next; /* place of the next record */
	_Alignas(64) struct fragi_trace_reader readers[FRAGI_TRACE_READERS];
	_Alignas(64) struct fragi_trace_slot slots[FRAGI_TRACE_SLOTS];
};

/* Takes places for the records of a tick. Thread: any. */
static inline uint64_t fragi_trace_take(struct fragi_trace_ring *ring, uint32_t count)
{
	return atomic_fetch_add_explicit(&ring->next, count, memory_order_relaxed);
}

/*
 * A slot has one writer at a time: where a thread was preempted in it for a whole turn of the ring,
 * the records of others for that slot are lost until it goes on.
 */
static inline void fragi_trace_put(struct fragi_trace_ring *ring, uint64_t place,
				   const struct fragi_trace_record *record)
{
	struct fragi_trace_slot *slot = &ring->slots[place % FRAGI_TRACE_SLOTS];
	uint64_t held = atomic_load_explicit(&slot->place, memory_order_relaxed);
	uint64_t words[FRAGI_TRACE_WORDS];

	if (held > place ||
	    !atomic_compare_exchange_strong_explicit(&slot->place, &held, FRAGI_TRACE_BUSY,
						     memory_order_acquire, memory_order_relaxed))
		return;
	/* a reader sees that the record changes before it does */
	atomic_thread_fence(memory_order_release);
	memcpy(words, record, sizeof(words));
	for (size_t i = 0; i < FRAGI_TRACE_WORDS; i++)
		atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
	atomic_store_explicit(&slot->place, place + 1, memory_order_release);
}

/* Writes a record that stands by itself, of this moment. Thread: any. */
static inline void fragi_trace_note(struct fragi_trace_ring *ring, enum fragi_trace_kind kind,
				    uint32_t object, uint64_t value)
{
	const struct fragi_trace_record record = {
		.begin = fragi_stamp(),
		.value = value,
		.object = object & 0xffffff,
		.kind = kind & 0xff,
	};

	fragi_trace_put(ring, fragi_trace_take(ring, 1), &record);
}

/*
 * Reads the records of the tick at *place, or what stands there by itself, and moves it on. Returns
 * how many; 0: they are not written yet. Records that were overwritten are passed over, and added
 * to *lost.
 */
FRAGI_API uint32_t fragi_trace_next(const struct fragi_trace_ring *ring, uint64_t *place,
				    uint64_t *lost,
				    struct fragi_trace_record out[FRAGI_TRACE_TICK_MAX]);

/*
 * A chunk: items of a kind and some bytes (little-endian), which are complete in themselves. A
 * chunk that is lost takes its records with it, and the number of the next one shows it.
 */
enum fragi_trace_item {
	FRAGI_TRACE_HOST = 1,
	FRAGI_TRACE_OPERATOR,
	FRAGI_TRACE_FLOW,
	FRAGI_TRACE_THREAD,
	FRAGI_TRACE_PEER,
	FRAGI_TRACE_RECORDS,
	FRAGI_TRACE_POOL_NAME,
};
#define FRAGI_TRACE_CHUNK_MAX (96u << 10)
#define FRAGI_TRACE_TEXT_MAX 1024u
#define FRAGI_TRACE_RECORD_BYTES 24u

/* Whether more follows. Of the last chunk of a host that ends, `left` is 0. */
enum fragi_trace_end {
	FRAGI_TRACE_GOES_ON,
	FRAGI_TRACE_ENDS,   /* the host ends in order, and this is of its last burst of chunks */
	FRAGI_TRACE_KILLED, /* the same of a host that ended by itself */
};

struct fragi_trace_host {
	uint32_t host; /* its number in the application */
	uint32_t pid;
	uint64_t epoch;  /* of this process of it */
	uint64_t number; /* of the chunk in this trace, from 0 */
	uint64_t lost;   /* records that were overwritten before they were read, since the begin */
	int64_t now_ns;  /* CLOCK_MONOTONIC */
	int64_t unix_ns; /* CLOCK_REALTIME at that time */
	uint64_t left;   /* records that are not in this chunk, or in one before it */
	enum fragi_trace_end end;
};

struct fragi_trace_flow {
	uint32_t row;
	bool is_received; /* row is that of the receiving end */
	bool is_sent;     /* ... of the sending end; both: inside this host */
	uint32_t capacity;
	/*
	 * Between hosts: the number in the application, and which two processes count together, as
	 * fragi_remote_tx_link (edge/remote/remote.h) has it; `before` messages of the end's own
	 * count belong to older ones.
	 */
	uint32_t flow;
	uint64_t link, before;
};

struct fragi_trace_peer {
	uint32_t host;
	uint64_t epoch;
	int64_t ahead_ns; /* its CLOCK_MONOTONIC minus that of this host, now */
	int64_t error_ns; /* at most this far from the truth */
};

/*
 * An item as it was read; texts are borrowed from the chunk. An empty name or clock of a host is
 * the one that was sent before.
 */
struct fragi_trace_read {
	enum fragi_trace_item kind;
	union {
		struct fragi_trace_host host; /* text: what it is called; other: its clock */
		struct fragi_trace_flow flow; /* text: where it begins; other: where it leads */
		struct fragi_trace_peer peer;
		uint32_t row; /* of an operator; text: its name */
		uint32_t tid; /* text: its name */
	};
	const char *text, *other;
	/* of FRAGI_TRACE_RECORDS: fragi_trace_record_at */
	const uint8_t *records;
	uint32_t record_count;
};

struct fragi_trace_chunk {
	uint32_t size;
	uint8_t bytes[FRAGI_TRACE_CHUNK_MAX];
};

/* Each adds an item. Returns false, and adds nothing: the chunk is full. */
FRAGI_API bool fragi_trace_add_host(struct fragi_trace_chunk *chunk,
				    const struct fragi_trace_host *host, const char *name,
				    const char *clock);
FRAGI_API bool fragi_trace_add_name(struct fragi_trace_chunk *chunk, enum fragi_trace_item kind,
				    uint32_t number, const char *name);
FRAGI_API bool fragi_trace_add_flow(struct fragi_trace_chunk *chunk,
				    const struct fragi_trace_flow *flow, const char *from,
				    const char *to);
FRAGI_API bool fragi_trace_add_peer(struct fragi_trace_chunk *chunk,
				    const struct fragi_trace_peer *peer);
/*
 * The last item: the records of as many ticks as there is room for. The chunk then says how many
 * are lost and left.
 */
FRAGI_API void fragi_trace_add_records(struct fragi_trace_chunk *chunk,
				       const struct fragi_trace_ring *ring,
				       const struct fragi_interval *interval, uint64_t *place,
				       uint64_t *lost);
/* Before a chunk is made: it begins at *place. */
FRAGI_API void fragi_trace_publish(struct fragi_trace_reader *reader, uint64_t number,
				   uint64_t place, uint64_t lost, const struct fragi_moment *begin);

/*
 * What a host that is gone had not sent of a trace. Whatever its ring holds is accepted.
 * begin: host: of the last chunk that has come from it. Returns false: it has no such trace.
 * next: the next chunk. Returns whether there is another one.
 */
struct fragi_trace_rest {
	struct fragi_trace_host host; /* of the next chunk */
	struct fragi_interval interval;
	uint64_t place, end;
};
FRAGI_API bool fragi_trace_rest_begin(struct fragi_trace_rest *rest,
				      const struct fragi_trace_ring *ring, uint32_t id,
				      const struct fragi_trace_host *host);
FRAGI_API bool fragi_trace_rest_next(struct fragi_trace_rest *rest,
				     const struct fragi_trace_ring *ring, enum fragi_trace_end end,
				     struct fragi_trace_chunk *chunk);

/*
 * Reads the next item at *at, 0 at first, and moves it on. Any bytes are accepted. Returns 1; 0:
 * there is no more; -EBADMSG.
 */
FRAGI_API int fragi_trace_read(const uint8_t *bytes, uint32_t size, uint32_t *at,
			       struct fragi_trace_read *out);
/* Whether the bytes begin as a chunk does, and with which host. */
FRAGI_API bool fragi_trace_is_chunk(const uint8_t *bytes, uint32_t size,
				    struct fragi_trace_host *out_host);
FRAGI_API struct fragi_trace_record fragi_trace_record_at(const struct fragi_trace_read *read,
							  uint32_t i);

#endif
