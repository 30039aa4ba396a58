/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_PREDICT_H
#define FRAGI_GRAPH_PREDICT_H

#include <stdio.h>

#include <graph/resolve.h>

/*
 * What a graph will do by the rates and budgets that it declares, before anything runs: how often
 * operators tick, how much of a thread they take, how many messages wait, which queues overflow,
 * and how many blocks of a pool are in use.
 *
 * A source ticks at its rate; another operator as often as all its inputs have a message, and at
 * most once a budget. One that is too slow for its input slows its sender where the policy blocks,
 * and loses messages where it drops. A message waits while its receiver, and the other operators of
 * the fragment on as many threads, compute. Operators in cycles are not predicted.
 */
struct fragi_predicted_op {
	double demand; /* ticks a second that its inputs, or its rate, ask for; 0: not known */
	double rate;   /* that it will have */
	int64_t budget_ns;
};

struct fragi_predicted_flow {
	double offered, taken; /* messages a second; 0: not known */
	double wait_s;         /* until a message is taken, at most */
	uint32_t depth;        /* messages that wait at most; 0: not known */
};

struct fragi_prediction {
	struct fragi_predicted_op *ops; /* fragment by fragment */
	uint32_t *first_op;             /* [fragment] */
	struct fragi_predicted_flow *flows;
};

/* Whether anything in the graph says how often or how long. */
FRAGI_API bool fragi_predict_wanted(const struct fragi_spec *spec);
/*
 * - fragments: as in spec, all of them; flows: inner ones too
 * Returns 0 or -ENOMEM.
 */
FRAGI_API int fragi_predict(const struct fragi_spec *spec,
			    const struct fragi_fragment_info *fragments,
			    const struct fragi_flow_info *flows, size_t flow_count,
			    struct fragi_prediction *out);
FRAGI_API void fragi_prediction_fini(struct fragi_prediction *prediction);

/*
 * predict_print.c: prints the arithmetic, a line for each operator, flow, fragment and pool, and
 * adds a warning for what will not work.
 * - cores: of the machine
 */
FRAGI_API void fragi_predict_print(const struct fragi_prediction *prediction,
				   const struct fragi_spec *spec,
				   const struct fragi_fragment_info *fragments,
				   const struct fragi_flow_info *flows, size_t flow_count,
				   uint32_t cores, FILE *out, struct fragi_diag *warnings);
/* Of the periodic condition of an operator; 0: it has none. */
FRAGI_API int64_t fragi_predict_period_ns(const struct fragi_spec_operator *op);
/* The threads of a fragment's scheduler. */
FRAGI_API uint32_t fragi_predict_threads(const struct fragi_spec_fragment *own, size_t op_count,
					 uint32_t cores);
/* What the graph says of an operator, which is mostly at that place; NULL: nothing. */
FRAGI_API const struct fragi_spec_operator *
fragi_predict_spec(const struct fragi_spec_fragment *own, const char *name, size_t place);

#endif
