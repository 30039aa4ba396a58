/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_PATH_PARTS_H
#define FRAGI_SCHED_PATH_PARTS_H

#include <base/starved.h>
#include <sched/path_deadline.h>

/*
 * What the time of a message on a path with a deadline was spent with, as an operator of the path
 * knows it: path_deadline.c follows messages, and has the parts added up here. What was short is
 * added to the rest at once; path_parts.c splits the others.
 */

/* One place of the operator on one path. */
struct fragi_path_step {
	struct fragi_path_step *next;
	struct fragi_path_deadline *deadline;
	uint32_t at;
	/* of the tick, for what it emits */
	bool is_open;
	struct fragi_trail_entry entry; /* as its messages brought it, or of a path that begins */
};

/*
 * Those uses of an operator that a message may have waited for, ns; away: of room. On a virtual
 * clock none: the thread that looks counts them by the machine's.
 */
struct fragi_path_waited {
	uint64_t pool, thread, room, away, suspended;
};

/* Ticks that are remembered: behind so many messages one may wait and know why. */
#define FRAGI_PATH_PAST 64u

struct fragi_path_past {
	uint64_t begun, ended; /* stamps */
	/* what its thread was denied before it and in it; what had been waited for by its end */
	uint64_t starved_ns, denied_ns;
	struct fragi_path_waited waited;
};

struct fragi_on_path {
	struct fragi_path_step *steps, *last_steps; /* those where the path goes on, or ends */
	uint32_t travelling; /* of steps: those of paths that lead to other processes */
	/* of the tick */
	uint64_t tick;
	uint32_t seen; /* received messages that were read */
	/* one of them that has a trail, which was not taken over yet; NULL: none */
	struct frag_message *from;
	/* a bit for each of the first 64 of them: it was delivered before, and has left the path */
	uint64_t redelivered;
	/* what its thread was denied: when the call of compute began, in calls before, before it */
	uint64_t starved_from, preempted_ns, starved_ns;
	uint64_t gpu_ns;        /* it waited for work of a GPU */
	uint64_t pending_since; /* stamp: for work of its stream; 0: it does not */
	uint64_t begun;         /* stamp; that of the tick is of the latest call of compute */
	uint64_t started;       /* stamp: when its operator was; 0: not read yet */
	struct fragi_path_past past[FRAGI_PATH_PAST]; /* the latest ticks */
	uint64_t past_count;                          /* ever */
	/* room was waited for in a flow whose receiver's host was away, ns; of who looks */
	_Atomic uint64_t away_ns;
};

static inline uint64_t fragi_path_use(const _Atomic uint64_t *use)
{
	return atomic_load_explicit(use, memory_order_relaxed);
}

static inline struct fragi_path_waited fragi_path_waited_of(const struct fragi_exec *exec)
{
	const struct fragi_op_row *row = exec->row;

	if (fragi_stamp_is_virtual())
		return (struct fragi_path_waited){0};
	return (struct fragi_path_waited){
		.pool = fragi_path_use(&row->use_memory),
		.thread = fragi_path_use(&row->use_thread),
		.room = fragi_path_use(&row->use_room),
		.away = fragi_path_use(&exec->op->on_path->away_ns),
		.suspended = fragi_path_use(&row->use_suspended),
	};
}

static inline uint64_t fragi_path_later(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) > 0 ? a : b;
}

/* Whether a path leads through it: others only look at trails. */
static inline bool fragi_path_is_on_any(const struct fragi_on_path *on)
{
	return on->steps != NULL || on->last_steps != NULL;
}

/* What the thread was denied since the call of compute began. */
static inline uint64_t fragi_path_starved(const struct fragi_on_path *on, uint64_t now)
{
	return fragi_path_is_on_any(on) ? fragi_starved_ns(now) - on->starved_from : 0;
}

/* When the operator was started, as a stamp. */
void fragi_path_read_start(struct fragi_on_path *on, const struct fragi_exec *exec, uint64_t begin);
/* Add a way, and a stay, that was not short. */
void fragi_path_split_way(struct fragi_blame_parts *parts, const struct fragi_exec *exec,
			  const struct fragi_trail *trail, const struct fragi_trail_entry *entry,
			  uint64_t begin);
void fragi_path_split_stay(struct fragi_blame_parts *parts, const struct fragi_on_path *on,
			   uint32_t at, uint64_t took_ns, uint64_t now);

/* Adds what the way of a message took, which is received by a tick that began at `begin`. */
static inline void fragi_path_add_way(struct fragi_blame_parts *parts,
				      const struct fragi_path_step *step,
				      const struct fragi_exec *exec,
				      const struct fragi_trail *trail,
				      const struct fragi_trail_entry *entry, uint64_t begin)
{
	const uint64_t took_ns = fragi_stamp_diff_ns(entry->published, begin);

	if ((entry->flags & FRAGI_TRAIL_FOREIGN) != 0)
		return;
	if (took_ns < step->deadline->short_ns)
		parts->rest_ns += took_ns;
	else
		fragi_path_split_way(parts, exec, trail, entry, begin);
}

/* Adds what the tick took until now, of a message that it has received, as an entry says. */
static inline void fragi_path_add_stay(struct fragi_blame_parts *parts,
				       const struct fragi_on_path *on,
				       const struct fragi_path_step *step,
				       const struct fragi_trail_entry *entry, uint64_t now)
{
	const bool is_foreign = (entry->flags & FRAGI_TRAIL_FOREIGN) != 0;
	const uint64_t received =
		is_foreign ? on->begun : fragi_path_later(on->begun, entry->published);
	const uint64_t took_ns = fragi_stamp_diff_ns(received, now);

	if (took_ns < step->deadline->short_ns)
		parts->rest_ns += took_ns;
	else
		fragi_path_split_stay(parts, on, step->at, took_ns, now);
}

#endif
