// SPDX-License-Identifier: Apache-2.0
#include <wire/layout.h>

/* Layouts of the messages that report on a host, and of the summary of a run. */

/* A policy of a newer peer is another one. */
TUPLE_LAYOUT(realtime) = {
	ITEM(struct fragi_realtime, policy, .max = FRAGI_SCHED_OTHER,
	     .otherwise = FRAGI_SCHED_OTHER),
	ITEM(struct fragi_realtime, priority),
	ITEM(struct fragi_realtime, runtime_ns),
	ITEM(struct fragi_realtime, deadline_ns),
	ITEM(struct fragi_realtime, period_ns),
	END,
};

LAYOUT(host_event, struct fw_host_event, HostEvent, NULL) = {
	WITHIN(host_event, state, FW_STATE_RUNNING, FW_STATE_STOPPED, "an unknown state"),
	FIELD(host_event, peer),
	FIELD(host_event, peer_epoch),
	ONE(host_event, failure, failure),
	FIELD(host_event, idle_rounds),
	FIELD(host_event, sent),
	FIELD(host_event, delivered),
	END,
};

LAYOUT(op_stats, struct fw_op_stats, OpStats, NULL) = {
	FIELD(op_stats, state),
	FIELD(op_stats, running),
	FIELD(op_stats, ticks),
	ONE(op_stats, compute, quantiles),
	FIELD(op_stats, time_ns),
	FIELD(op_stats, waiting_ns),
	ARRAY(FW_NUMBERS, op_stats, counters, counters, FRAGI_OP_COUNTERS),
	TUPLE(op_stats, offsetof(struct fw_op_stats, realtime), realtime, realtime),
	END,
};

LAYOUT(flow_stats, struct fragi_flow_stats, FlowStats, NULL) = {
	ARRAY(FW_NUMBERS, flow_stats, counters, sender, FRAGI_SENDER_COUNTERS),
	ARRAY(FW_NUMBERS, flow_stats, counters[FRAGI_SENDER_COUNTERS], receiver,
	      FRAGI_RECEIVER_COUNTERS),
	ARRAY(FW_SUMS, flow_stats, tx_dropped, tx_dropped, FRAGI_DROP_REASONS),
	ARRAY(FW_SUMS, flow_stats, rx_dropped, rx_dropped, FRAGI_DROP_REASONS),
	ONE(flow_stats, latency, quantiles),
	END,
};

TUPLE_LAYOUT(facts) = {
	ITEM(struct fw_facts, at_ns),
	ITEM(struct fw_facts, cpu_ns),
	ITEM(struct fw_facts, starved_ns),
	ITEM(struct fw_facts, io_ns),
	ITEM(struct fw_facts, rss_bytes),
	ITEM(struct fw_facts, major_faults),
	ITEM(struct fw_facts, cores),
	ITEM(struct fw_facts, machine_cores),
	ITEM(struct fw_facts, machine_cpu_ns),
	ITEM(struct fw_facts, memory_bytes),
	ITEM(struct fw_facts, memory_used_bytes),
	ITEM(struct fw_facts, received_bytes),
	ITEM(struct fw_facts, sent_bytes),
	ITEM(struct fw_facts, gpus),
	ITEM(struct fw_facts, gpu_busy_permille),
	ITEM(struct fw_facts, gpu_memory_bytes),
	ITEM(struct fw_facts, gpu_memory_used_bytes),
	END,
};

LAYOUT(pool_stats, struct fragi_pool_stats, PoolStats, NULL) = {
	FIELD(pool_stats, blocks),  FIELD(pool_stats, block_bytes), FIELD(pool_stats, free),
	FIELD(pool_stats, refused), FIELD(pool_stats, empty_ns),    END,
};

LAYOUT(late_counts, struct fw_late_counts, LateCounts, NULL) = {
	ARRAY(FW_NUMBERS, late_counts, late, late, FRAGI_BLAME_CAUSES),
	END,
};

LAYOUT(host_stats, struct fw_host_stats, HostStats, NULL) = {
	FIELD(host_stats, final),
	TUPLE(host_stats, offsetof(struct fw_host_stats, facts), facts, facts),
#define TABLE(type, rows, count, row, most) ROWS(host_stats, rows, count, most, row),
	FW_STATS_LIST(TABLE)
#undef TABLE
		END,
};

LAYOUT(host_exit, struct fw_host_exit, HostExit, NULL) = {
	WITHIN(host_exit, signal, 0, 127, "a signal out of range"),
	EXIT_CODE(host_exit, exit_code),
	ONE(host_exit, failure, failure),
	TEXTS(host_exit, lines, line_count, FW_LINES_MAX, .beyond = FW_LAST_ROWS),
	FIELD(host_exit, asked),
	END,
};

LAYOUT(summary_operator, struct fragi_summary_operator, SummaryOperator, NULL) = {
	FIELD(summary_operator, name),
	FIELD(summary_operator, type),
	FIELD(summary_operator, ticks),
	ONE(summary_operator, compute, quantiles),
	FIELD(summary_operator, time_ns),
	FIELD(summary_operator, waiting_ns),
	ARRAY(FW_NUMBERS, summary_operator, counters, counters, FRAGI_OP_COUNTERS),
	TUPLE(summary_operator, offsetof(struct fragi_summary_operator, realtime), realtime,
	      realtime),
	FIELD(summary_operator, predicted_rate_mhz),
	FIELD(summary_operator, budget_ns),
	ROWS(summary_operator, late_places, late_place_count, FRAGI_LATE_PLACES_MAX, late_at),
	END,
};

LAYOUT(summary_fragment, struct fragi_summary_fragment, SummaryFragment, NULL) = {
	FIELD(summary_fragment, name),
	OPTIONAL(summary_fragment, worker),
	FIELD(summary_fragment, host_pid),
	FIELD(summary_fragment, state),
	FIELD(summary_fragment, epoch),
	FIELD(summary_fragment, restarts),
	ROWS(summary_fragment, operators, operator_count, FW_ROWS_MAX, summary_operator),
	END,
};

TUPLE_LAYOUT(at_least) = {
	ITEM(struct fragi_summary_flow, sent_at_least),
	ITEM(struct fragi_summary_flow, delivered_at_least),
	ITEM(struct fragi_summary_flow, lost_at_least),
	END,
};
TUPLE_LAYOUT(at_most) = {
	ITEM(struct fragi_summary_flow, sent_at_most),
	ITEM(struct fragi_summary_flow, delivered_at_most),
	END,
};

LAYOUT(summary_flow, struct fragi_summary_flow, SummaryFlow, NULL) = {
	FIELD(summary_flow, from),
	FIELD(summary_flow, to),
	FIELD(summary_flow, edge),
	OPTIONAL(summary_flow, edge_detail),
	FIELD(summary_flow, encrypted),
	FIELD(summary_flow, capacity),
	FIELD(summary_flow, policy),
	ARRAY(FW_NUMBERS, summary_flow, counters, sender, FRAGI_SENDER_COUNTERS),
	ARRAY(FW_NUMBERS, summary_flow, counters[FRAGI_SENDER_COUNTERS], receiver,
	      FRAGI_RECEIVER_COUNTERS),
	ARRAY(FW_NUMBERS, summary_flow, dropped, dropped, FRAGI_DROP_REASONS),
	FIELD(summary_flow, lost),
	FIELD(summary_flow, in_flight),
	FIELD(summary_flow, exact),
	TUPLE(summary_flow, 0, at_least, at_least),
	TUPLE(summary_flow, 0, at_most, at_most),
	ONE(summary_flow, latency, quantiles),
	OPTIONAL(summary_flow, latency_reason),
	OPTIONAL(summary_flow, lost_because),
	END,
};

LAYOUT_OF(summary_failure, struct fragi_summary_failure, failure, Failure, NULL) = {
	OR_ELSE(summary_failure, code, FRAGI_FAILURE_NONE + 1, FRAGI_FAILURES - 1,
		FRAGI_FAILURE_OTHER),
	FIELD(summary_failure, sentence),
	OPTIONAL(summary_failure, op),
	END,
};

LAYOUT(summary, struct fragi_summary, Summary, NULL) = {
	FIELD(summary, application),
	WITHIN(summary, result, 0, FRAGI_SUMMARY_FAILED, "an unknown result"),
	ONE(summary, failure, summary_failure),
	ROW(FW_OPTIONAL, summary, failure.worker, worker),
	EXIT_CODE(summary, exit_code),
	TIME(summary, started_unix_ns),
	TIME(summary, first_message_ns),
	TIME(summary, duration_ns),
	TIME(summary, shutdown_ns),
	ROWS(summary, fragments, fragment_count, FW_ROWS_MAX, summary_fragment),
	ROWS(summary, flows, flow_count, FW_ROWS_MAX, summary_flow),
	END,
};

static const char *outcome_flaw(const void *proto, void *plain)
{
	const Frag__V1__Outcome *in = proto;

	return ((const struct fw_outcome *)plain)->reached == FW_ENDED && in->summary == NULL
		       ? "no summary"
		       : NULL;
}

LAYOUT(outcome, struct fw_outcome, Outcome, outcome_flaw) = {
	FIELD(outcome, name),
	WITHIN(outcome, reached, FW_RUNNING, FW_ENDED, "an unknown milestone"),
	FIELD(outcome, left_out),
	ONE(outcome, summary, summary),
	END,
};
