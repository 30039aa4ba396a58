/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TRACE_MODEL_H
#define CTL_TRACE_MODEL_H

#include <base/identity.h>
#include <fragctl/trace.h>

/* What the files of a trace share: trace_take.c reads chunks, trace_join.c finds messages,
 * trace_write.c writes them. */
#define TRACE_HOSTS_MAX 1024u
#define TRACE_TICKS_MAX (UINT32_C(1) << 22)
#define TRACE_ENDS_MAX (UINT32_C(1) << 23)
#define TRACE_ROWS_MAX 65536u
#define TRACE_THREADS_MAX 1024u
#define TRACE_MESSAGES_MAX (UINT32_C(1) << 22)

struct trace_flow {
	char *from, *to; /* NULL: it is not named yet */
	struct fragi_trace_flow info;
};

struct trace_thread {
	uint32_t tid;
	char name[32];
};

struct trace_host {
	struct fragi_trace_host first, last;
	int64_t first_ns, last_ns; /* on the trace's clock */
	char *name;
	char clock[FRAGI_IDENTITY_SIZE];
	struct fragi_trace_peer *peers; /* as it knew them last */
	uint32_t peer_count;
	char **ops;
	uint32_t op_count;
	struct trace_flow *flows;
	uint32_t flow_count;
	struct trace_thread threads[TRACE_THREADS_MAX];
	uint32_t thread_count;
	uint64_t lost_chunks;
	/* its clock minus that of the trace; error_ns -1: not known yet */
	int64_t ahead_ns, error_ns, worst_ns;
	bool is_unsure;
};

struct trace_tick {
	int64_t begin_ns, end_ns; /* of the host, and after the join of the trace */
	int64_t ahead_ns;         /* of its host's clock when it came */
	uint32_t host, op, tid;
	bool is_placed;
	/* its marks, after the join */
	uint32_t first_sent, first_received, sent_count, received_count;
};

/* What a tick has sent or received on a flow. */
struct trace_end {
	uint64_t key; /* of the flow, the same at both ends */
	uint64_t first;
	uint32_t count, tick, row;
	bool is_sent;
};

/* An end of a message that was matched. */
struct trace_mark {
	uint32_t tick;
	uint64_t id;
	int64_t at_ns; /* within its tick; 0: at its begin */
};

struct ctl_trace {
	struct trace_host *hosts;
	uint32_t host_count;
	struct trace_tick *ticks;
	uint32_t tick_count, tick_room;
	struct trace_end *ends;
	uint32_t end_count, end_room;
	uint64_t cut;
	/* after the join */
	uint32_t *order;                    /* of ticks: by host, thread and begin */
	struct trace_mark *sent, *received; /* by tick */
	uint32_t message_count;
	uint64_t unmatched; /* messages beyond those that are kept or looked at */
	/* messages whose receiver's tick ended before that of the sender began */
	uint64_t backwards;
};

#endif
