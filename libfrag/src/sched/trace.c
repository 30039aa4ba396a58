// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <sched/trace.h>

#include <unistd.h>

#include <base/alloc.h>
#include <data/memory.h>
#include <data/work.h>
#include <sched/around.h>
#include <sched/kind.h>
#include <sched/probes.h>
#include <sched/tap.h>

struct sent {
	const struct fragi_tx *tx;
	const _Atomic uint64_t *counter; /* grows with each message that is sent */
	const char *port;
	uint64_t seen;
	uint32_t row;
};
struct received {
	const struct fragi_rx *rx;
	const char *port;
	uint64_t delivered;
	uint64_t first; /* of those that this tick receives */
	uint32_t row;
};

/* What the stream of an operator was given in a tick; its end is recorded on another thread. */
struct work {
	struct fragi_exec_trace *trace;
	uint64_t begin;
	_Atomic bool is_pending;
};
#define WORKS 64 /* ticks that a GPU is behind; the work of others is left out */

struct fragi_exec_trace {
	/* the control thread; NULL: it takes part no more */
	_Atomic(struct fragi_trace_ring *) wanted;
	_Atomic uint32_t seen_use; /* plus 1; 0: none since a trace began */
	/* constant */
	uint32_t op, tx_count, rx_count;
	/* the operator's thread */
	struct fragi_trace_ring *ring;
	struct sent *txs;
	struct received *rxs;
	struct work *works; /* NULL: it has no stream */
	uint32_t next_work;
	_Atomic uint64_t work_ended; /* that of an earlier tick */
};

static uint32_t thread_id(void)
{
	static __thread uint32_t id __attribute__((tls_model("initial-exec")));

	if (__builtin_expect(id == 0, 0))
		id = (uint32_t)gettid();
	return id;
}

static uint64_t count_of(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/*
 * Inside a process a message has the place in the queue, which is the same at both ends. Between
 * hosts it is the count of those that have left: what was dropped here before is not among them.
 */
static uint64_t sent_by(const struct fragi_tx *tx)
{
	uint64_t sent;

	if (tx->rx != NULL)
		return count_of(&tx->rx->queue.tail);
	sent = count_of(&tx->row->sent);
	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		sent -= count_of(&tx->row->tx_dropped[i]);
	return sent;
}

static uint64_t received_by(const struct fragi_rx *rx)
{
	return count_of(&rx->queue.head);
}

static void look(struct fragi_exec_trace *trace)
{
	for (uint32_t i = 0; i < trace->tx_count; i++)
		trace->txs[i].seen = count_of(trace->txs[i].counter);
	for (uint32_t i = 0; i < trace->rx_count; i++)
		trace->rxs[i].delivered = count_of(&trace->rxs[i].rx->row->delivered);
}

/* A record for each flow on which the tick sent or received. Returns how many. */
static uint32_t gather(struct fragi_exec *exec, struct fragi_exec_trace *trace, uint64_t begin,
		       struct fragi_trace_record *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < trace->rx_count; i++) {
		struct received *in = &trace->rxs[i];
		uint64_t delivered = count_of(&in->rx->row->delivered),
			 n = delivered - in->delivered;

		if (n == 0 || count == FRAGI_TRACE_TICK_MAX - 1)
			continue;
		in->delivered = delivered;
		FRAGI_PROBE(receive, exec->op->subject, in->port, n);
		out[count++] = (struct fragi_trace_record){
			.begin = begin,
			.value = exec->timing != NULL ? received_by(in->rx) - n : in->first,
			.object = in->row & 0xffffff,
			.kind = FRAGI_TRACE_RECEIVED,
			.count = n & 0xffffff,
		};
	}
	for (uint32_t i = 0; i < trace->tx_count; i++) {
		struct sent *to = &trace->txs[i];
		uint64_t seen = count_of(to->counter), n = seen - to->seen;

		if (n == 0 || count == FRAGI_TRACE_TICK_MAX - 1)
			continue;
		to->seen = seen;
		FRAGI_PROBE(emit, exec->op->subject, to->port, n);
		out[count++] = (struct fragi_trace_record){
			.begin = begin,
			.value = sent_by(to->tx) - n,
			.object = to->row & 0xffffff,
			.kind = FRAGI_TRACE_SENT,
			.count = n & 0xffffff,
		};
	}
	return count;
}

/* A stream does one thing after the other, so what a tick gave it begins after what was before. */
static void on_work_done(void *arg)
{
	struct work *work = arg;
	struct fragi_exec_trace *trace = work->trace;
	struct fragi_trace_ring *ring = atomic_load(&trace->wanted);
	const uint64_t end = fragi_stamp(), before = atomic_exchange(&trace->work_ended, end);
	const struct fragi_trace_record record = {
		.begin = (int64_t)(before - work->begin) > 0 && before != 0 ? before : work->begin,
		.value = end,
		.object = trace->op & 0xffffff,
		.kind = FRAGI_TRACE_GPU,
	};

	if (ring != NULL)
		fragi_trace_put(ring, fragi_trace_take(ring, 1), &record);
	atomic_store_explicit(&work->is_pending, false, memory_order_release);
}

/* What fails here is left out of the trace: the operator will see that its GPU has failed. */
static void follow_work(struct fragi_exec *exec, struct fragi_exec_trace *trace, uint64_t begin)
{
	const struct fragi_op_stream *stream = exec->op->stream;
	struct work *work = &trace->works[trace->next_work % WORKS];
	struct fragi_work *recorded;

	if (atomic_load_explicit(&work->is_pending, memory_order_acquire) ||
	    stream->ops->record(stream->stream, &recorded, NULL) < 0)
		return;
	trace->next_work++;
	work->begin = begin;
	atomic_store_explicit(&work->is_pending, true, memory_order_relaxed);
	if (recorded->ops->then(recorded, on_work_done, work) < 0)
		atomic_store_explicit(&work->is_pending, false, memory_order_relaxed);
	fragi_work_unref(recorded);
}

static int compute(void *self, struct frag_tick *tick)
{
	struct fragi_exec *exec = (struct fragi_exec *)tick;
	struct fragi_exec_trace *trace = exec->trace;
	struct fragi_trace_record records[FRAGI_TRACE_TICK_MAX];
	/* The tick's own stamp may be older than the end of its last tick on another thread. */
	const uint64_t begin = fragi_stamp();
	uint64_t end, place;
	uint32_t flows;
	int r;

	/*
	 * Where the sender drops the oldest message it moves the head too: what is received stood
	 * there when the tick began.
	 */
	for (uint32_t i = 0; i < trace->rx_count; i++)
		trace->rxs[i].first = received_by(trace->rxs[i].rx);
	FRAGI_PROBE(tick__begin, exec->op->subject);
	if (trace->works != NULL)
		exec->op->stream->has_work = false;
	r = fragi_inside_compute(FRAGI_AROUND_TRACE, self, tick);
	end = fragi_stamp();
	if (trace->works != NULL && exec->op->stream->has_work)
		follow_work(exec, trace, begin);
	FRAGI_PROBE(tick__end, exec->op->subject, fragi_stamp_diff_ns(begin, end));
	flows = gather(exec, trace, begin, records + 1);
	records[0] = (struct fragi_trace_record){
		.begin = begin,
		.value = end,
		.object = trace->op & 0xffffff,
		.flows = flows & 0xff,
		.kind = FRAGI_TRACE_TICK,
		.count = thread_id() & 0xffffff,
	};
	place = fragi_trace_take(trace->ring, 1 + flows);
	for (uint32_t i = 0; i <= flows; i++)
		fragi_trace_put(trace->ring, place + i, &records[i]);
	return r;
}

void fragi_exec_trace_use(const struct fragi_exec *exec, uint32_t use)
{
	struct fragi_exec_trace *trace = atomic_load(&exec->trace);
	struct fragi_trace_ring *ring = trace != NULL ? atomic_load(&trace->wanted) : NULL;

	if (ring != NULL && atomic_exchange(&trace->seen_use, use + 1) != use + 1)
		fragi_trace_note(ring, FRAGI_TRACE_USE, trace->op, use);
}

void fragi_exec_trace_late(const struct fragi_exec *exec, const struct fragi_exec *blamed,
			   uint32_t cause, uint64_t took_ns)
{
	const struct fragi_exec_trace *trace = atomic_load(&exec->trace);
	struct fragi_trace_ring *ring = trace != NULL ? atomic_load(&trace->wanted) : NULL;
	struct fragi_trace_record record = {
		.begin = fragi_stamp(), .value = took_ns, .kind = FRAGI_TRACE_LATE};

	if (ring == NULL)
		return;
	record.object = trace->op & 0xffffff;
	record.flows = cause & 0xff;
	trace = blamed != NULL ? atomic_load(&blamed->trace) : NULL;
	record.count = trace != NULL ? (trace->op + 1) & 0xffffff : 0;
	fragi_trace_put(ring, fragi_trace_take(ring, 1), &record);
}

/* Asked on the operator's thread, between two ticks. */
static bool is_wanted(const struct fragi_exec *exec)
{
	struct fragi_exec_trace *trace = exec->trace;
	struct fragi_trace_ring *wanted;

	if (trace == NULL)
		return false;
	wanted = atomic_load(&trace->wanted);
	if (trace->ring == NULL && wanted != NULL)
		look(trace);
	trace->ring = wanted;
	return wanted != NULL;
}

const struct fragi_around fragi_around_trace = {
	.is_wanted = is_wanted,
	.compute = compute,
};

/* The control thread. */

void fragi_exec_trace_free(struct fragi_exec *exec)
{
	struct fragi_exec_trace *trace = exec->trace;

	exec->trace = NULL;
	if (trace == NULL)
		return;
	fragi_free(trace->txs);
	fragi_free(trace->rxs);
	fragi_free(trace->works);
	fragi_free(trace);
}

/* The port of that tx, or of that rx; "": of no plain one (struct fragi_exec_port). */
static const char *port_of(const struct fragi_exec *exec, const struct fragi_tx *tx,
			   const struct fragi_rx *rx)
{
	for (uint32_t i = 0; i < exec->tick.port_count; i++) {
		const struct fragi_exec_port *port = &exec->tick.ports[i];

		for (uint32_t k = 0; k < port->count; k++)
			if (port->dir == FRAG_OUT ? port->tx[k] == tx : port->rx[k] == rx)
				return exec->op->ports[i].name;
	}
	return "";
}

static struct fragi_exec_trace *create(const struct fragi_exec *exec,
				       const struct fragi_op_row *ops,
				       const struct fragi_flow_row *flows)
{
	struct fragi_exec_trace *trace = fragi_calloc(1, sizeof(*trace));

	if (trace == NULL)
		return NULL;
	trace->op = (uint32_t)(exec->row - ops);
	trace->txs = fragi_calloc(exec->tx_count + 1, sizeof(*trace->txs));
	trace->rxs = fragi_calloc(exec->rx_count + 1, sizeof(*trace->rxs));
	if (exec->op->stream != NULL)
		trace->works = fragi_calloc(WORKS, sizeof(*trace->works));
	if (trace->txs == NULL || trace->rxs == NULL ||
	    (exec->op->stream != NULL && trace->works == NULL)) {
		fragi_free(trace->txs);
		fragi_free(trace->rxs);
		fragi_free(trace->works);
		fragi_free(trace);
		return NULL;
	}
	for (uint32_t i = 0; trace->works != NULL && i < WORKS; i++)
		trace->works[i].trace = trace;
	trace->tx_count = exec->tx_count;
	trace->rx_count = exec->rx_count;
	for (uint32_t i = 0; i < exec->tx_count; i++) {
		const struct fragi_tx *tx = exec->txs[i];

		trace->txs[i] = (struct sent){
			.tx = tx,
			.counter = tx->rx != NULL ? &tx->rx->queue.tail : &tx->row->sent,
			.port = port_of(exec, tx, NULL),
			.row = (uint32_t)(tx->row - flows),
		};
	}
	for (uint32_t i = 0; i < exec->rx_count; i++)
		trace->rxs[i] = (struct received){
			.rx = exec->rxs[i],
			.port = port_of(exec, NULL, exec->rxs[i]),
			.row = (uint32_t)(exec->rxs[i]->row - flows),
		};
	return trace;
}

void fragi_exec_trace(struct fragi_exec *exec, struct fragi_trace_ring *ring,
		      const struct fragi_op_row *ops, const struct fragi_flow_row *flows)
{
	struct fragi_exec_trace *trace = atomic_load(&exec->trace);

	if (trace == NULL && ring != NULL)
		trace = create(exec, ops, flows);
	if (trace == NULL)
		return;
	atomic_store(&trace->seen_use, 0);
	atomic_store(&trace->wanted, ring);
	atomic_store(&exec->trace, trace);
	fragi_exec_change_taps(exec);
}
