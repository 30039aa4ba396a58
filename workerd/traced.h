/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_TRACED_H
#define WRK_TRACED_H

#include <base/trace.h>
#include <wire/message.h>

/*
 * What a host has sent of its traces, so that what it had not sent when it ended, or was killed,
 * can follow: the ring lies in its page, which is still here (base/trace.h).
 */
struct wrk_traced {
	uint64_t run, epoch; /* of the host's messages */
	uint32_t host;
	uint32_t next; /* who makes room: those that go on come back with their next chunk */
	struct {
		uint32_t tap; /* 0: none */
		struct fragi_trace_host last;
	} traces[FRAGI_TRACE_READERS];
};

/* A HOST_TAPPED of the host; any bytes are accepted. */
void wrk_traced_note(struct wrk_traced *traced, const struct fw_message *message);
/*
 * It is gone: `take` takes the last parts of each trace (fw_message_free), as if it had sent them.
 * is_end: it ended in order.
 */
void wrk_traced_rest(const struct wrk_traced *traced, const struct fragi_trace_ring *ring,
		     bool is_end, void (*take)(void *arg, uint32_t id, struct fw_message *message),
		     void *arg, uint32_t id);

#endif
