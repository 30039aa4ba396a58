/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_TRACK_PATH_H
#define FRAGI_GRAPH_TRACK_PATH_H

#include <stdbool.h>
#include <stdio.h>

#include <base/hist.h>
#include <data/label.h>
#include <frag/track.h>

/* What a tracker knows of one path. The tracker's lock guards it. */
struct fragi_track_path {
	struct fragi_track_path *next; /* of the same bucket */
	char *name;
	uint32_t *ops, length;
	uint64_t skipped, counted;
	double max_ms, min_ms, mean_ms;
	struct fragi_hist_alone latency; /* of those that were counted */
	double error_ms;                 /* clocks of several nodes; 0: one clock took all times */
	/* of all messages: [operator] how long they waited in front of it, and it had them */
	struct fragi_track_wait {
		/* sent: it was held by its sender, in another process; network: then, until here */
		uint64_t waited_ns, sent_ns, network_ns, held_ns;
	} * waits;
	uint64_t messages;
	uint64_t max_id, min_id;
	/* the latencies that may still be discarded: a ring of `capacity` */
	double *last_ms;
	uint32_t last_count, last_at, capacity;
};

/*
 * Creates one for the operators of steps[0].left steps; NULL when memory is short.
 */
struct fragi_track_path *fragi_track_path_create(const struct fragi_label_names *names,
						 const struct fragi_step *steps);
/* Adds where a message waited. */
void fragi_track_path_add_waits(struct fragi_track_path *path, const struct fragi_step *steps);
void fragi_track_path_destroy(struct fragi_track_path *path);
/* Returns whether it is that of the steps. */
bool fragi_track_path_is(const struct fragi_track_path *path, const struct fragi_step *steps);
/*
 * Counts a latency, unless it is among the first or last messages that are not counted.
 * Returns 0 or -ENOMEM.
 */
int fragi_track_path_put(struct fragi_track_path *path, double ms, uint64_t skip, uint64_t discard);
/* As frag_tracker_metric. */
int fragi_track_path_metric(const struct fragi_track_path *path, enum frag_track_metric metric,
			    double *out_value);
void fragi_track_path_describe(const struct fragi_track_path *path, FILE *out);

#endif
