/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_TRACE_SHOWN_H
#define TESTS_UNIT_TRACE_SHOWN_H

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/trace.h>

#include "state_sum.h"

/* What the chunks of a trace say, as a text: for fragi_run_traced, with the stream that gets it. */

/* Of records the sum: without times, threads and what another thread sees now and then. */
static inline void trace_sum_records(const struct fragi_trace_read *read)
{
	for (uint32_t i = 0; i < read->record_count; i++) {
		const struct fragi_trace_record record = fragi_trace_record_at(read, i);

		if (record.kind == FRAGI_TRACE_USE || record.kind == FRAGI_TRACE_POOL)
			continue;
		STATE(record.kind), STATE(record.object);
		if (record.kind != FRAGI_TRACE_TICK)
			STATE(record.value);
		if (record.kind != FRAGI_TRACE_LATE)
			STATE(record.flows);
		if (record.kind == FRAGI_TRACE_SENT || record.kind == FRAGI_TRACE_RECEIVED)
			STATE(record.count);
	}
}

/* Whether names are shown, too. */
static bool trace_shows_names;

static inline bool trace_shown(void *arg, uint32_t id, const struct fragi_trace_chunk *chunk)
{
	struct fragi_trace_read read;
	FILE *out = arg;
	uint32_t at = 0;

	while (fragi_trace_read(chunk->bytes, chunk->size, &at, &read) > 0)
		if (read.kind == FRAGI_TRACE_RECORDS)
			trace_sum_records(&read);
		else if (read.kind == FRAGI_TRACE_HOST &&
			 llabs(read.host.unix_ns / 1000000000 - time(NULL)) > 60)
			fprintf(out, "  of another day\n");
		else if (!trace_shows_names)
			continue;
		else if (read.kind == FRAGI_TRACE_HOST)
			fprintf(out,
				"  trace %u of host %u, epoch %d: %.*s, number %d, %d lost, end %d\n",
				id, read.host.host, (int)read.host.epoch,
				(int)(strstr(read.text, " on ") - read.text), read.text,
				(int)read.host.number, (int)read.host.lost, read.host.end);
		else if (read.kind == FRAGI_TRACE_OPERATOR)
			fprintf(out, "  operator %u: %s\n", read.row, read.text);
		else if (read.kind == FRAGI_TRACE_POOL_NAME)
			fprintf(out, "  pool %u: %s\n", read.row, read.text);
		else if (read.kind == FRAGI_TRACE_FLOW)
			fprintf(out,
				"  flow %u, %d %d, capacity %u, number %u of link %d behind %d: %s -> %s\n",
				read.flow.row, read.flow.is_received, read.flow.is_sent,
				read.flow.capacity, read.flow.flow, (int)read.flow.link,
				(int)read.flow.before, read.text, read.other);
		else if (read.kind == FRAGI_TRACE_PEER)
			fprintf(out, "  host %u, epoch %d: %d ns ahead, within %d\n",
				read.peer.host, (int)read.peer.epoch, (int)read.peer.ahead_ns,
				(int)read.peer.error_ns);
	fprintf(out, "  records: sum %016" PRIx64 "\n", state_sum);
	return true;
}

#endif
