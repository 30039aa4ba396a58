/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_TRAIL_H
#define FRAGI_DATA_TRAIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <base/blame.h>
#include <base/timeline.h>
#include <data/pool.h>
#include <data/stream.h>

/*
 * A trail: how far a message has come on paths that have a deadline, since when, which operator of
 * each path was the slowest so far, and what its time was spent with (base/blame.h). It is made
 * when the message is emitted and never changed afterwards, so copies of a message may share it. It
 * goes with the message to other processes.
 */

/* The operators behind the place before, until `to`, ran on that worker. */
struct fragi_trail_place {
	uint16_t to, worker;
};
#define FRAGI_TRAIL_PLACES_MAX 6u /* of more, the later ones are not known */
struct fragi_trail_places {
	uint32_t count;
	struct fragi_trail_place items[FRAGI_TRAIL_PLACES_MAX];
};

struct fragi_trail_entry {
	uint16_t deadline;  /* number in the run; below that of the graph's, the same everywhere */
	uint16_t at;        /* which operator of the path has emitted the message */
	uint16_t slowest;   /* which one of those so far had it for longest */
	uint16_t flags;     /* FRAGI_TRAIL_* */
	uint64_t begin;     /* stamp: the begin of the first operator's tick */
	uint64_t published; /* stamp: when operator `at` emitted it */
	uint64_t slowest_ns;
	uint64_t error_ns; /* begin is at most so far from the truth: it was on other clocks */
	struct fragi_trail_places places; /* of operators in other processes */
	struct fragi_blame_parts parts;   /* from begin to published */
};

/* Copies no parts that are not there: most entries of messages that are in time have none. */
static inline void fragi_trail_copy_entry(struct fragi_trail_entry *to,
					  const struct fragi_trail_entry *from)
{
	memcpy(to, from, offsetof(struct fragi_trail_entry, parts.parts));
	for (uint32_t i = 0; i < from->parts.count; i++)
		to->parts.parts[i] = from->parts.parts[i];
}

/* How long a message waited at the host that sent it, by that host's clock. In descriptors so. */
struct fragi_trail_held {
	uint64_t ns, restart_ns, gpu_ns; /* in all; of these without a receiver, for a GPU */
};

/* it was on a machine with another clock: its times mean nothing here */
#define FRAGI_TRAIL_FOREIGN 1u
/* its path ends in this process, so it stays here */
#define FRAGI_TRAIL_LOCAL 2u

/* The most entries of a message that comes from another process. */
#define FRAGI_TRAIL_MAX 256u
/* A trail with so many entries is from a pool, a longer one from the heap. */
#define FRAGI_TRAIL_POOLED 4u

struct fragi_trail {
	struct fragi_pooled home; /* pool is NULL: from the heap */
	_Atomic uint32_t refs;
	uint32_t count;
	/* who made it, and in which tick; NULL: another process */
	const void *maker;
	uint64_t tick;
	/* of one from another process: when it was here; 0: it was made here */
	uint64_t arrived;
	struct fragi_trail_held held;
	struct fragi_trail_entry entries[];
};

/* Creates a trail with one reference, its entries not filled in; NULL: memory is short. */
FRAGI_API struct fragi_trail *fragi_trail_create(uint32_t count);
FRAGI_API void fragi_trail_unref(struct fragi_trail *trail);
/* Converts its times, which are a peer's, or marks it as foreign. Before others can see it. */
FRAGI_API void fragi_trail_convert_times(struct fragi_trail *trail,
					 const struct fragi_timeline *peer);

/* trail_place.c: names of workers, which may be anything. */
#define FRAGI_TRAIL_NOWHERE 0u
#define FRAGI_TRAIL_WORKER_MAX 255u
/* Returns the number of a name in this process; FRAGI_TRAIL_NOWHERE: it cannot be one. */
FRAGI_API uint16_t fragi_trail_worker(const char *name, size_t size);
FRAGI_API const char *fragi_trail_worker_name(uint16_t worker); /* NULL: not known */
/* All of its operators that have no place were on that worker. Before others can see it. */
FRAGI_API void fragi_trail_came_from(struct fragi_trail *trail, uint16_t worker);
/* Where an operator of the path was; NULL: not known, or in this process. */
FRAGI_API const char *fragi_trail_where(const struct fragi_trail_places *places, uint16_t at);

/*
 * Between the descriptors (codec.h). Stamps travel as CLOCK_MONOTONIC, whatever the sender takes
 * them from.
 */
/* Whether anything of it leaves the process. */
bool fragi_trail_travels(const struct fragi_trail *trail);
/* Failures stay in the writer. */
void fragi_trail_encode(const struct fragi_trail *trail, struct frag_writer *writer);
/* Returns 0, -EBADMSG or -ENOMEM. */
int fragi_trail_decode(struct frag_reader *reader, struct fragi_trail **out_trail);

#endif
