/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_SUMMARY_H
#define FRAGI_BASE_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include <base/counters.h>
#include <base/failure.h>
#include <base/realtime.h>

/*
 * What happened to every message of a run, as plain tables: the driver fills them, the wire carries
 * them to clients, track/summary.h prints them. All texts are borrowed; NULL is an empty text, or
 * none where a comment says so.
 */
enum fragi_summary_result {
	FRAGI_SUMMARY_DONE,
	FRAGI_SUMMARY_STOPPED,
	FRAGI_SUMMARY_FAILED,
};

struct fragi_summary_operator {
	const char *name, *type;
	uint64_t ticks;
	struct fragi_quantiles compute; /* ns a tick */
	/* of its last epoch: in compute, within 7 %; between start and end and not in compute */
	uint64_t time_ns, waiting_ns;
	FRAGI_OP_COUNTER_FIELDS;
	/* how the kernel scheduled its thread; policy NONE: nothing was asked for */
	struct fragi_realtime realtime;
	/* as the graph's rates and budgets promised (graph/predict.h); 0: nothing is known */
	uint64_t predicted_rate_mhz, budget_ns;
	/* where messages were late by the counters late_, as far as that is known */
	const struct fragi_late_place *late_places;
	uint32_t late_place_count;
};

struct fragi_summary_fragment {
	const char *name;
	const char *worker; /* NULL: null, as under fragctl run, which has no workers */
	int64_t host_pid;   /* 0: it never had one */
	/* "waiting", "prepared", "running", "done", "stopped", "failed", "lost" */
	const char *state;
	uint64_t epoch;
	uint32_t restarts;
	const struct fragi_summary_operator *operators;
	size_t operator_count;
};

#define FRAGI_SUMMARY_OPEN UINT64_MAX

struct fragi_summary_flow {
	const char *from, *to;   /* "fragment1.tx.out" */
	const char *edge;        /* "inproc", "ucx" */
	const char *edge_detail; /* for people: "ucx tcp lo"; NULL: as edge */
	bool encrypted;
	uint32_t capacity;
	const char *policy;   /* "block" */
	FRAGI_COUNTER_FIELDS; /* base/counters.h: sent, delivered, ... */
	uint64_t dropped[FRAGI_DROP_REASONS];
	uint64_t lost, in_flight;
	const char *lost_because; /* the failure after which an end was started again; NULL: none */
	/*
	 * Whether the last counts of both ends are known. If not, lost is the most that can have
	 * been lost, sent and delivered are what it assumes, and the ranges are:
	 */
	bool exact;
	uint64_t sent_at_least, delivered_at_least, lost_at_least;
	uint64_t sent_at_most, delivered_at_most; /* FRAGI_SUMMARY_OPEN: nobody knows */
	struct fragi_quantiles latency;           /* ns */
	const char *latency_reason;               /* why there is no latency; NULL: there is */
};

/* The first cause. */
struct fragi_summary_failure {
	enum fragi_failure code; /* NONE: it did not fail */
	const char *sentence;
	const char *op;     /* "fragment.operator"; NULL: null, none in particular */
	const char *worker; /* NULL: null */
};

struct fragi_summary {
	const char *application;
	enum fragi_summary_result result;
	struct fragi_summary_failure failure;
	int exit_code;
	int64_t started_unix_ns;  /* when the operators were started; 0: never */
	int64_t first_message_ns; /* from there to the first message; 0: none */
	/* from there to the end; before a start: from when the application was given */
	int64_t duration_ns;
	int64_t shutdown_ns; /* of that, from the decision to end to the last host's exit */
	const struct fragi_summary_fragment *fragments;
	size_t fragment_count;
	const struct fragi_summary_flow *flows;
	size_t flow_count;
};

#endif
