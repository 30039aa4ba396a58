/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_TRACK_H
#define FRAG_TRACK_H

#include <frag/compose.h>

FRAG_BEGIN_DECLS

/*
 * Data flow tracking, as Holoscan's (its user guide, "Data Flow Tracking"): how long messages take
 * along each path, from the start of a root operator's tick to the end of a leaf operator's. A
 * root has no flow to it, a leaf has none from it, from or to operators that are tracked. In a
 * cycle a path ends when an operator receives what comes from itself, and a new one begins there.
 *
 * Where the application is tracked (`tracking` at the top of the graph), paths lead through all its
 * hosts: the tracker of the host in which a path ends has it. That of a single fragment does not
 * follow flows to other hosts.
 *
 * A path is written as the names of its operators: "camera,detect,viewer". Where several fragments
 * are tracked together, a name has its fragment's in front: "fragment1.camera". All messages of
 * one tick are received when the tick begins. A message made from several received ones has the
 * paths of them all.
 *
 * Bounds: FRAG_TRACK_PATHS_MAX different paths; FRAG_TRACK_MESSAGE_PATHS_MAX paths in one message;
 * FRAG_TRACK_STEPS_MAX operators in a path. What is beyond is not tracked, and counted.
 *
 * Unless it is said otherwise: Thread: any. Blocks: for a lock that is held shortly. RT-safe: no.
 */
struct frag_tracker;

/* The bounds of what is tracked, as above. */
#define FRAG_TRACK_PATHS_MAX 1024
#define FRAG_TRACK_MESSAGE_PATHS_MAX 64
#define FRAG_TRACK_STEPS_MAX 256
/* The most messages to be discarded at the end: so many latencies are kept for each path. */
#define FRAG_TRACK_DISCARD_MAX 10000

/* Holoscan's defaults. */
#define FRAG_TRACK_SKIP_DEFAULT 10
#define FRAG_TRACK_DISCARD_DEFAULT 10
#define FRAG_TRACK_BUFFERED_DEFAULT 100

/*
 * Tracks the operators of a fragment. A graph's `tracking` wins over it.
 * - num_start_messages_to_skip: so many messages of each path are not counted at its begin
 * - num_last_messages_to_discard: nor are so many at its end; up to FRAG_TRACK_DISCARD_MAX
 * - latency_threshold_ms: nor are those that took less
 * - is_limited_tracking: other than 0: only root and leaf are noted, so paths between the same two
 *   are not told apart
 * Returns the tracker, borrowed as long as the fragment lives; NULL on failure, which the fragment
 * words. Thread: the composer's; call it inside the composer.
 */
FRAG_API struct frag_tracker *frag_fragment_track(struct frag_fragment *fragment,
						  uint64_t num_start_messages_to_skip,
						  uint64_t num_last_messages_to_discard,
						  int64_t latency_threshold_ms,
						  int is_limited_tracking);
/*
 * Returns the tracker of a fragment, borrowed as long as the fragment lives; NULL: it is not
 * tracked. From `start` of its operators on it is the one that counts.
 */
FRAG_API struct frag_tracker *frag_fragment_tracker(const struct frag_fragment *fragment);

/*
 * Takes a reference to a tracker, which then outlives its fragment: its results can be read when
 * the application has ended. Returns tracker.
 */
FRAG_API struct frag_tracker *frag_tracker_ref(struct frag_tracker *tracker);
/* Drops a reference. NULL is accepted. Blocks: for the log, with the last one. */
FRAG_API void frag_tracker_unref(struct frag_tracker *tracker);

/*
 * Set the limits of tracking for messages that arrive later. Return 0; discard also -EINVAL: num is
 * too large.
 */
FRAG_API int frag_tracker_set_skip_starting_messages(struct frag_tracker *tracker, uint64_t num);
FRAG_API int frag_tracker_set_discard_last_messages(struct frag_tracker *tracker, uint64_t num);
FRAG_API int frag_tracker_set_skip_latencies(struct frag_tracker *tracker, int64_t threshold_ms);

/*
 * Has the paths to an operator inside the graph counted too, such as "root,middle" beside
 * "root,middle,leaf", and what it sends, as of a root. A path to it ends with its tick.
 * - op: its name, or "fragment.operator"; copied. The run is refused if there is no such operator.
 *   The same one again adds nothing
 * Returns 0; -EINVAL: op is NULL or empty; -ENOMEM. Thread: the composer's; call it inside the
 * composer.
 * Source: DataFlowTracker::add_probe_operator of Holoscan SDK 4.
 */
FRAG_API int frag_tracker_add_probe_operator(struct frag_tracker *tracker, const char *op);

/* The measures of a path; frag_tracker_metric returns their numbers. */
enum frag_track_metric {
	/* the number, from 1, of the counted message that took longest, or shortest */
	FRAG_TRACK_MAX_MESSAGE_ID,
	FRAG_TRACK_MIN_MESSAGE_ID,
	/* in milliseconds */
	FRAG_TRACK_MAX_E2E_LATENCY,
	FRAG_TRACK_AVG_E2E_LATENCY,
	FRAG_TRACK_MIN_E2E_LATENCY,
	/* of an output of a root, not of a path: frag_tracker_source */
	FRAG_TRACK_NUM_SRC_MESSAGES,
	/* messages of the path that were counted */
	FRAG_TRACK_NUM_DST_MESSAGES,
	/* in milliseconds, within an eighth: of 1000 messages 500, 990 or 999 took less */
	FRAG_TRACK_P50_E2E_LATENCY,
	FRAG_TRACK_P99_E2E_LATENCY,
	FRAG_TRACK_P999_E2E_LATENCY,
	/*
	 * in milliseconds: latencies of the path lie at most so far from the truth, because clocks
	 * of several nodes took the times; 0: one clock did
	 */
	FRAG_TRACK_CLOCK_ERROR
};

/* Returns how many different paths have been seen so far, those of which nothing is counted too. */
FRAG_API uint32_t frag_tracker_num_paths(struct frag_tracker *tracker);
/*
 * Returns the i-th path, from 0, in the order of their first message, borrowed as long as the
 * tracker; NULL beyond the last.
 */
FRAG_API const char *frag_tracker_path(struct frag_tracker *tracker, uint32_t i);
/*
 * Reads a metric of a path.
 * - path: "a,b,c"
 * - out_value: receives it
 * Returns 0; -ENOENT: no such path; -ENODATA: no message of it is counted, because all are skipped
 * or discarded (FRAG_TRACK_NUM_DST_MESSAGES is 0 then); -EINVAL: it is no metric of a path.
 */
FRAG_API int frag_tracker_metric(struct frag_tracker *tracker, const char *path,
				 enum frag_track_metric metric, double *out_value);
/*
 * Reads FRAG_TRACK_NUM_SRC_MESSAGES of the i-th output of the roots, from 0.
 * - out_messages: receives how many messages were emitted there
 * Returns its name, "operator->port", borrowed as long as the tracker; NULL beyond the last.
 */
FRAG_API const char *frag_tracker_source(struct frag_tracker *tracker, uint32_t i,
					 uint64_t *out_messages);
/* Returns how many times a path was not tracked because it is beyond a bound, or for memory. */
FRAG_API uint64_t frag_tracker_untracked(struct frag_tracker *tracker);

/*
 * Writes from now on every path of every message into a file, when its leaf's tick has ended:
 *
 *   1:
 *   (camera,1700000000000000,1700000000000100) -> (viewer,1700000000000200,1700000000000300)
 *
 * An entry has its number, and for each operator when it received and published, in microseconds of
 * Unix time. No entry is skipped or discarded.
 * - path: of the file, which is overwritten; copied
 * - num_buffered_messages: the file is written after so many entries, and at the end; from 1
 * Returns 0; -EINVAL; or why the file cannot be written. Blocks: for the file, and so do leaf
 * operators while they write.
 */
FRAG_API int frag_tracker_enable_logging(struct frag_tracker *tracker, const char *path,
					 uint64_t num_buffered_messages);
/* Writes what is still buffered. Returns 0, or the failure of the first write. Blocks: yes. */
FRAG_API int frag_tracker_flush(struct frag_tracker *tracker);

/*
 * Returns all metrics as a text, for people; NULL when memory is short. The caller calls free() on
 * it.
 */
FRAG_API char *frag_tracker_describe(struct frag_tracker *tracker);
/* Prints that on stdout. Blocks: yes. */
FRAG_API void frag_tracker_print(struct frag_tracker *tracker);

FRAG_END_DECLS

#endif
