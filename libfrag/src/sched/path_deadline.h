/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_PATH_DEADLINE_H
#define FRAGI_SCHED_PATH_DEADLINE_H

#include <data/trail.h>
#include <sched/exec.h>

/*
 * Deadlines of paths: what operators on a path emit carries a trail (data/trail.h), and the last
 * operator compares the time. Operators behind one on a path look at trails too, since a message
 * that they pass on has left the path there.
 */

/* How many lines about late messages were written, and when. */
struct fragi_late_log {
	int64_t since_ns; /* of the second that is counted */
	uint32_t lines;
	uint64_t left_out; /* since the last line */
};

/* From the begin of the tick of the first operator to the end of compute of the last one. */
struct fragi_path_deadline {
	const char **names;   /* "fragment.operator", from the first to the last one */
	struct frag_op **ops; /* NULL: in another process */
	uint32_t count;
	uint16_t number; /* in trails */
	bool is_local;   /* all of them are in this process */
	int64_t budget_ns;
	/*
	 * A way or a stay shorter than this is part of the rest, and nobody asks what it was spent
	 * with: of a late message it is less than 1 %, and all of them are less than a quarter.
	 */
	uint64_t short_ns;
	enum frag_on_miss on_miss;
	/* what there was: written by the thread that works on the last operator */
	uint64_t checked, misses, longest_ns;
	uint64_t incomparable; /* of those checked: on another clock's time, so not compared */
	uint64_t *slowest;     /* [op]: in how many of the misses it had the message for longest */
	struct fragi_blame_usual usual; /* of those in time */
	/*
	 * [place * FRAGI_BLAME_CAUSES + cause]: of the misses (base/blame.h). A place is the number
	 * of an operator; `count` is behind the last one: room for what that emits.
	 */
	uint64_t *blamed;
	struct fragi_late_row **rows; /* [place]: of the ledger, which counts too; NULL: none */
	struct fragi_late_log log;
};

/*
 * Has an operator look at trails. Once, before its exec is created. Returns 0 or -ENOMEM.
 */
FRAGI_API int fragi_path_watch(struct frag_op *op);
/*
 * It is the operator `at` of the path. After fragi_path_watch. Returns 0; -E2BIG: it is on more
 * paths to other processes than a trail has entries; -ENOMEM.
 */
FRAGI_API int fragi_path_add_step(struct frag_op *op, struct fragi_path_deadline *deadline,
				  uint32_t at);
/* Whether what it emits has a trail, unless it comes from elsewhere. */
FRAGI_API bool fragi_path_goes_on(const struct frag_op *op);

/*
 * timing.c: whether the message is past a deadline that drops it, before it is received. Then the
 * miss is counted.
 */
bool fragi_path_is_late(struct fragi_exec *exec, const struct frag_message *message);

/* stream.c: the tick becomes pending until work of its stream is done, or has waited for some. */
void fragi_path_awaits_gpu(const struct frag_tick *tick);
void fragi_path_waited_for_gpu(const struct frag_tick *tick, uint64_t since);
/* look.c: it has waited so long for room of a flow whose receiver's host is not there. */
void fragi_path_awaits_host(const struct frag_op *op, uint64_t ns);

/* late.c: "a -> b -> c", cut where it is too long */
FRAGI_API void fragi_path_name(const struct fragi_path_deadline *deadline, char *out, size_t size);
/*
 * What a part is about and its cause: "a -> b network", "b on worker w computed long". Returns out.
 * - places: where operators in other processes ran; NULL: it was not always the same
 */
FRAGI_API const char *fragi_path_part(const struct fragi_path_deadline *deadline,
				      const struct fragi_trail_places *places,
				      const struct fragi_blame_part *part, char *out, size_t size);
/*
 * Counts a message that was late, and logs where its time went.
 * - parts: of all of its time; those of the entry end where it was emitted
 */
void fragi_path_blame(struct fragi_exec *exec, struct fragi_path_deadline *deadline,
		      const struct fragi_blame_parts *parts, uint64_t took_ns,
		      const struct fragi_trail_entry *entry);

/*
 * timing.c: the message that is received next was received by an earlier tick, and took its path
 * then. Beyond the 64th message of a tick that is forgotten.
 */
void fragi_path_redelivered(struct frag_tick *tick);

#endif
