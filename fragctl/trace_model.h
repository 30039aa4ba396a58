/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TRACE_MODEL_H
#define CTL_TRACE_MODEL_H

#include <base/identity.h>
#include <edge/ledger.h>
#include <fragctl/trace.h>

/* What the files of a trace share: trace_take.c reads chunks, trace_join.c finds messages,
 * trace_write.c writes them. */
#define TRACE_HOSTS_MAX 1024u
/* All arrays together take less than 500 MB. */
#define TRACE_TICKS_MAX (UINT32_C(1) << 21)
#define TRACE_SAMPLES_MAX (UINT32_C(1) << 20)
#define TRACE_ENDS_MAX (UINT32_C(1) << 22)
#define TRACE_ROWS_MAX 65536u
#define TRACE_THREADS_MAX 1024u
#define TRACE_MESSAGES_MAX (UINT32_C(1) << 21)

struct trace_flow {
	char *from, *to; /* NULL: it is not named yet */
	struct fragi_trace_flow info;
};

struct trace_thread {
	uint32_t tid;
	char name[32];
};

/* By how much a host can be moved on the clock of the trace, and would have to be (join). */
struct trace_moves {
	int64_t later_ns, earlier_ns, later_max_ns, earlier_max_ns;
};

#define TRACE_BENDS 16u /* the longest tick that is placed exactly takes half as many chunks */

struct trace_host {
	struct fragi_trace_host first, last;
	int64_t first_ns, last_ns; /* on the trace's clock */
	char *name;
	char clock[FRAGI_IDENTITY_SIZE];
	struct fragi_trace_peer *peers; /* as it knew them last */
	uint32_t peer_count;
	char **ops;
	uint32_t op_count;
	char *pools[FRAGI_POOLS_MAX]; /* NULL: it is not named */
	struct trace_flow *flows;
	uint32_t flow_count;
	struct trace_thread threads[TRACE_THREADS_MAX];
	uint32_t thread_count;
	uint64_t lost_chunks;
	/* its clock minus that of the trace, now; error_ns -1: not known yet */
	int64_t ahead_ns, error_ns, worst_ns;
	/*
	 * The line that its times are placed by. What is known changes from chunk to chunk; times
	 * in between are placed by both, so that no later time comes before an earlier one.
	 */
	int64_t first_ahead_ns; /* before the first bend */
	struct trace_bend {
		int64_t at_ns, ahead_ns;
	} bends[TRACE_BENDS]; /* a ring of the last ones: a chunk adds two at most */
	uint64_t bend_count;
	int64_t placed_until_ns; /* the latest time that was placed */
	int64_t moved_ns;        /* by what its messages prove */
	struct trace_moves moves;
	bool is_unsure;
};

struct trace_tick {
	int64_t begin_ns, end_ns; /* of the trace; not is_placed: of the host, until the join */
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
	uint32_t tick, id;
	int64_t at_ns; /* within its tick; 0: at its begin */
};

/* What was seen of an operator, a pool or a flow. */
struct trace_sample {
	int64_t at_ns;  /* as the times of a tick */
	uint64_t value; /* of work of a GPU for how long, ns */
	uint32_t host, row;
	enum fragi_trace_kind kind;
	uint32_t cause, blamed; /* of a late message, as in its record */
	bool is_placed;
};

struct ctl_trace {
	struct trace_host *hosts;
	uint32_t host_count;
	struct trace_tick *ticks;
	uint32_t tick_count, tick_room;
	struct trace_end *ends;
	uint32_t end_count, end_room; /* after the join by flow, those that sent first */
	struct trace_sample *samples; /* after the join by what they are of, and time */
	uint32_t sample_count, sample_room;
	uint64_t cut; /* ticks that made room for later ones */
	/* after the join */
	uint32_t *order;                    /* of ticks: by host, thread and begin */
	struct trace_mark *sent, *received; /* by tick */
	uint32_t message_count;
	uint64_t unmatched; /* messages beyond those that are kept or looked at */
	/* messages whose receiver's tick ended before that of the sender began */
	uint64_t backwards;
};

/* A number for each track of the file. */
enum trace_track {
	TRACE_TRACK_PROCESS,
	TRACE_TRACK_THREAD,
	TRACE_TRACK_QUEUE,
	TRACE_TRACK_OPERATOR,
	TRACE_TRACK_POOL,
	TRACE_TRACK_LOST,
	TRACE_TRACK_GPU,
	TRACE_TRACK_LATE,
};
static inline uint64_t ctl_trace_track(uint32_t host, enum trace_track kind, uint32_t row)
{
	return (uint64_t)(host + 1) << 40 | (uint64_t)kind << 32 | row;
}
/* Puts the numbers of all ticks in the order of hosts, then threads or operators, then begins. */
enum trace_of { TRACE_OF_THREADS, TRACE_OF_OPERATORS };
void ctl_trace_sort_ticks(const struct ctl_trace *trace, enum trace_of of, uint32_t *order);
/* "a.out -> b.in: WHAT" */
void ctl_trace_name_flow(const struct trace_flow *flow, const char *what, char *out, size_t size);
/* trace_waits.c: what operators waited for, pools and losses. */
void ctl_trace_write_samples(const struct ctl_trace *trace, FILE *out);

/* What the host's clock is ahead of that of the trace at a time of the host. */
int64_t ctl_trace_ahead_at(const struct trace_host *host, int64_t at_ns);

/* Of times that a host may have made up. */
static inline int64_t ctl_trace_minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

#endif
