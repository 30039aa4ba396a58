// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <run/state.h>
#include <sched/tracking.h>

/*
 * Data flow tracking of this process: which fragments share a tracker, and which operators are
 * roots and leaves. A flow counts if both its ends have the same tracker, which spans the hosts if
 * the application is tracked.
 */

static bool is_whole(const struct fragi_run *run)
{
	return run->fragment_count == run->config.spec->fragment_count;
}

/* Those of fragments in this process. */
static int add_probes(const struct fragi_run *run, struct frag_tracker *tracker,
		      const struct fragi_spec_tracking *spec)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < spec->probe_count * run->fragment_count; i++) {
		const struct fragi_spec_end *probe = &spec->probes[i / run->fragment_count];
		const struct frag_fragment *fragment =
			run->fragments[i % run->fragment_count].fragment;
		char name[2 * FRAG_NAME_MAX + 2];

		if (strcmp(fragment->name, probe->fragment) != 0)
			continue;
		snprintf(name, sizeof(name), "%s.%s", probe->fragment, probe->op);
		r = frag_tracker_add_probe_operator(tracker, name);
	}
	return r;
}

/* The tracker of a graph's `tracking` for a fragment, made for the first. */
static int track(const struct fragi_run *run, struct frag_fragment *fragment,
		 const struct fragi_spec_tracking *spec, struct frag_tracker **shared,
		 struct fragi_diag *diag)
{
	struct frag_tracker *tracker = *shared;

	if (tracker != NULL) {
		frag_tracker_unref(fragment->tracker);
		fragment->tracker = frag_tracker_ref(tracker);
		return 0;
	}
	if (fragment->tracker == NULL)
		fragment->tracker = fragi_tracker_create();
	tracker = fragment->tracker;
	if (tracker == NULL)
		return fragi_diag_add(diag, -ENOMEM, NULL, 0, 0, "%s: out of memory",
				      fragment->name);
	if (spec == &run->config.spec->tracking)
		fragi_tracker_set_spans(tracker);
	frag_tracker_set_skip_starting_messages(tracker, (uint64_t)spec->skip);
	frag_tracker_set_discard_last_messages(tracker, (uint64_t)spec->discard);
	frag_tracker_set_skip_latencies(tracker, spec->threshold_ms);
	fragi_tracker_set_limited(tracker, spec->is_limited);
	*shared = tracker;
	return add_probes(run, tracker, spec) < 0
		       ? fragi_diag_add(diag, -ENOMEM, NULL, 0, 0, "%s: out of memory",
					fragment->name)
		       : 0;
}

/*
 * Opens the log. Where this process has a part of the application, it adds the name of its first
 * fragment to that of the file, since other processes may be given the same file.
 */
static int open_log(const struct fragi_run *run, struct frag_tracker *tracker,
		    const struct fragi_spec_tracking *spec, bool for_all, struct fragi_diag *diag)
{
	char *name;
	int r, length;

	if (spec->log == NULL || tracker == NULL)
		return 0;
	length = snprintf(NULL, 0, "%s.%s", spec->log, run->fragments[0].fragment->name);
	name = fragi_malloc((size_t)length + 1);
	if (name == NULL)
		return fragi_diag_add(diag, -ENOMEM, NULL, 0, 0, "out of memory for a tracker");
	snprintf(name, (size_t)length + 1, for_all && !is_whole(run) ? "%s.%s" : "%s", spec->log,
		 run->fragments[0].fragment->name);
	r = frag_tracker_enable_logging(tracker, name, (uint64_t)spec->buffered);
	if (r < 0)
		fragi_diag_add(
			diag, r, NULL, 0, 0,
			"cannot write the log of data flow tracking, %s: %s; name another file",
			name, frag_strerror(r));
	fragi_free(name);
	return r;
}

static struct frag_op *op_at(const struct fragi_run *run, uint32_t fragment, uint32_t op)
{
	return run->fragments[fragment].fragment->ops[op];
}

/* Marks operators that have a flow of their tracker: from them, to them. [row of the ledger] */
static void mark(const struct fragi_run *run, bool *sends, bool *receives)
{
	for (size_t i = 0; i < run->flow_count; i++) {
		const struct fragi_flow_info *flow = &run->flows[i];
		const struct frag_op *from = op_at(run, flow->from_fragment, flow->from_op),
				     *to = op_at(run, flow->to_fragment, flow->to_op);

		if (from->fragment->tracker != to->fragment->tracker)
			continue;
		sends[run->fragments[flow->from_fragment].first_op + flow->from_op] = true;
		receives[run->fragments[flow->to_fragment].first_op + flow->to_op] = true;
	}
}

static bool is_shared(const struct fragi_run *run, const struct frag_fragment *fragment)
{
	for (size_t i = 0; i < run->fragment_count; i++)
		if (run->fragments[i].fragment != fragment &&
		    run->fragments[i].fragment->tracker == fragment->tracker)
			return true;
	return false;
}

static int install(struct fragi_run *run)
{
	uint32_t count = 0;
	bool *sends, *receives;
	int r = 0;

	for (size_t i = 0; i < run->fragment_count; i++)
		count += run->fragments[i].fragment->op_count;
	sends = fragi_calloc(2 * (size_t)count + 1, sizeof(*sends));
	if (sends == NULL)
		return -ENOMEM;
	receives = sends + count;
	mark(run, sends, receives);
	for (size_t i = 0; i < run->fragment_count; i++) {
		struct frag_fragment *fragment = run->fragments[i].fragment;
		uint32_t first = run->fragments[i].first_op;

		for (uint32_t k = 0; fragment->tracker != NULL && r == 0 && k < fragment->op_count;
		     k++) {
			struct frag_op *op = fragment->ops[k];
			const bool spans = fragi_tracker_names(fragment->tracker) != NULL;

			r = fragi_tracking_install(
				op, fragment->tracker,
				(spans && !is_whole(run)) || is_shared(run, fragment) ? op->subject
										      : op->name,
				!receives[first + k] && !(spans && op->receives_from_away),
				!sends[first + k] && !(spans && op->sends_away));
		}
	}
	fragi_free(sends);
	return r;
}

int fragi_run_track(struct fragi_run *run, struct fragi_diag *diag)
{
	const struct fragi_spec *spec = run->config.spec;
	struct frag_tracker *shared = NULL;
	bool any = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < run->fragment_count; i++) {
		struct frag_fragment *fragment = run->fragments[i].fragment;
		const struct fragi_spec_tracking *own = &fragment->own->tracking;
		struct frag_tracker *alone = NULL;

		if (spec->tracking.is_on)
			r = track(run, fragment, &spec->tracking, &shared, diag);
		else if (own->is_on)
			r = track(run, fragment, own, &alone, diag);
		if (r == 0)
			r = open_log(run, alone, own, false, diag);
		any |= fragment->tracker != NULL;
	}
	if (r == 0)
		r = open_log(run, shared, &spec->tracking, true, diag);
	if (r < 0 || !any)
		return r;
	if (install(run) < 0)
		return fragi_diag_add(diag, -ENOMEM, NULL, 0, 0,
				      "out of memory for data flow tracking");
	for (size_t i = 0; i < run->fragment_count; i++) {
		const struct frag_fragment *fragment = run->fragments[i].fragment;
		const char *lost = fragment->tracker != NULL
					   ? fragi_tracker_lost_probe(fragment->tracker)
					   : NULL;

		if (lost != NULL)
			return fragi_diag_add(
				diag, -EINVAL, NULL, 0, 0,
				"%s: data flow tracking has the probe %s, and there is no such operator",
				fragment->name, lost);
	}
	return 0;
}

void fragi_run_end_tracking(struct fragi_run *run)
{
	const struct fragi_spec *spec = run->config.spec;

	for (size_t i = 0; i < run->fragment_count; i++) {
		struct frag_fragment *fragment = run->fragments[i].fragment;
		bool print = spec->tracking.is_on ? spec->tracking.print && i == 0
						  : fragment->own->tracking.is_on &&
							    fragment->own->tracking.print;

		if (fragment->tracker == NULL)
			continue;
		(void)frag_tracker_flush(fragment->tracker); /* which logs a failure */
		if (print)
			frag_tracker_print(fragment->tracker);
	}
}
