/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_PERFETTO_H
#define CTL_PERFETTO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes a trace for Perfetto (https://ui.perfetto.dev): packets of its protocol buffers, as
 * protos/perfetto/trace/{trace_packet,track_event/track_descriptor,track_event/track_event}.proto
 * of its repository number the fields. Errors of the stream stay in it (ferror).
 *
 * uuid of a track: any number but 0. Times are of the trace's own clock, ns.
 */
void ctl_perfetto_begin(FILE *out, int64_t now_ns, int64_t unix_ns);
void ctl_perfetto_process(FILE *out, uint64_t uuid, uint32_t pid, const char *name);
void ctl_perfetto_thread(FILE *out, uint64_t uuid, uint32_t pid, uint32_t tid, const char *name);
void ctl_perfetto_track(FILE *out, uint64_t uuid, uint64_t process, const char *name);
void ctl_perfetto_counter(FILE *out, uint64_t uuid, uint64_t process, const char *name);

/* flows: numbers of messages, the same where they are sent and where they are received. */
struct ctl_perfetto_flows {
	const uint64_t *sent, *received;
	uint32_t sent_count, received_count;
};
void ctl_perfetto_slice(FILE *out, uint64_t track, int64_t begin_ns, const char *name,
			const struct ctl_perfetto_flows *flows);
void ctl_perfetto_slice_end(FILE *out, uint64_t track, int64_t end_ns,
			    const struct ctl_perfetto_flows *flows);
void ctl_perfetto_instant(FILE *out, uint64_t track, int64_t at_ns, const char *name);
void ctl_perfetto_value(FILE *out, uint64_t track, int64_t at_ns, int64_t value);

#endif
