/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_TRACKER_H
#define FRAGI_GRAPH_TRACKER_H

#include <base/stamp.h>
#include <data/label.h>
#include <frag/track.h>

/*
 * A tracker collects what messages took, path by path. It knows operators by numbers; who emits and
 * receives is sched/tracking.c's. Fragments share one: it goes with the last reference.
 */

/* Returns a tracker with one reference, NULL when memory is short. */
FRAGI_API struct frag_tracker *fragi_tracker_create(void);

/* Its operators are not all in this process: labels go along with messages. Before they run. */
FRAGI_API void fragi_tracker_set_spans(struct frag_tracker *tracker);
/* What labels take names from; NULL: they stay in this process. */
FRAGI_API const struct fragi_label_names *fragi_tracker_names(const struct frag_tracker *tracker);
/*
 * The number of an operator by its name, which is that of another process where there is none here
 * yet; such numbers are bounded. Thread: any. Returns it, or negative errno.
 */
FRAGI_API int64_t fragi_tracker_number_of(struct frag_tracker *tracker, const char *name);
/* How far the times of a path that has been counted may be from the truth. */
FRAGI_API void fragi_tracker_note_error(struct frag_tracker *tracker,
					const struct fragi_step *steps, uint64_t error_ns);

FRAGI_API bool fragi_tracker_is_limited(const struct frag_tracker *tracker);
/* Before the operators run. */
FRAGI_API void fragi_tracker_set_limited(struct frag_tracker *tracker, bool limited);

/*
 * Adds an operator. Before the operators run.
 * - name: copied
 * Returns its number, or -ENOMEM.
 */
FRAGI_API int fragi_tracker_add_op(struct frag_tracker *tracker, const char *name);
/*
 * Adds an output of a root. Before the operators run. Returns its count of messages, which is the
 * tracker's; NULL when memory is short.
 */
FRAGI_API _Atomic uint64_t *fragi_tracker_add_source(struct frag_tracker *tracker, const char *op,
						     const char *port);

/* Returns whether an operator was named as a probe, and notes that there is one of that name. */
FRAGI_API bool fragi_tracker_is_probe(struct frag_tracker *tracker, const struct frag_op *op);
/* Returns a probe of whose name no operator was; NULL: there is none. */
FRAGI_API const char *fragi_tracker_lost_probe(const struct frag_tracker *tracker);

/* Counts a path of a message, which has reached its end. steps: steps[0].left of them */
FRAGI_API void fragi_tracker_record(struct frag_tracker *tracker, const struct fragi_step *steps);
/* The same with a latency that is known. */
FRAGI_API void fragi_tracker_count(struct frag_tracker *tracker, const struct fragi_step *steps,
				   uint64_t latency_ns);
/*
 * Writes paths into the log, if there is one, as one entry.
 * - steps, count: the paths, one behind the other
 */
FRAGI_API void fragi_tracker_log(struct frag_tracker *tracker, const struct fragi_step *steps,
				 size_t count);
/* Counts a path beyond a bound; the first one is logged. why: "more than 64 paths in a message" */
FRAGI_API void fragi_tracker_miss(struct frag_tracker *tracker, const char *why);

#endif
