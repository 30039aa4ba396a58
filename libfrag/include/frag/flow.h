/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_FLOW_H
#define FRAG_FLOW_H

#include <frag/operator.h>

FRAG_BEGIN_DECLS

/*
 * Dynamic flow control, as in Holoscan (Holoscan SDK user guide, "Dynamic Flow Control").
 *
 * An execution flow carries no data: the operator at its end is ticked once for each tick of the
 * operator at its begin. It leads from the execution output of one to the execution input of the
 * other. An operator gets these two ports where a flow needs them: a flow that names no port, to an
 * operator without inputs, is an execution flow; so is one that names them.
 *
 * The flows of an operator with a callback (frag_set_dynamic_flows) are dynamic: the callback
 * chooses after each tick which of them are taken. What the tick has emitted goes to the chosen
 * ones only. On the others nothing is sent, so nothing is counted as sent or dropped.
 */
#define FRAG_INPUT_EXEC "__input_exec__"
#define FRAG_OUTPUT_EXEC "__output_exec__"

/* One flow that leads away from an operator. The texts live as long as the operator runs. */
struct frag_flow_info {
	/* the output that it begins at */
	const char *out_port;
	/* the fragment, the operator and the input that it leads to */
	const char *next_fragment, *next_op, *in_port;
	/* that operator; NULL: it runs in another process */
	const struct frag_op *next;
};

/*
 * Chooses which flows are taken, by frag_tick_add_dynamic_flow and the like. It is called after
 * each tick in which compute returned 0 or FRAG_DONE, on the same thread. It may read what the tick
 * has received, and change the metadata that an execution flow passes on.
 * - self: the operator's state
 * - arg: as given to frag_set_dynamic_flows
 * Returns 0 or a negative errno, which fails the operator as one from compute does.
 */
typedef int (*frag_dynamic_flows_fn)(void *self, struct frag_tick *tick, void *arg);

/*
 * Makes the flows of an operator dynamic. Inside a composer, or in the operator's setup; the last
 * call counts.
 * - choose: the callback; NULL: all flows are taken in each tick, as if this had not been called
 * - arg: passed to the callback; it must live as long as the fragment
 * Returns 0; -EINVAL: op is NULL; -EBUSY: neither inside a composer nor in setup.
 * Thread: the composer's or the callback's. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_set_dynamic_flows(struct frag_op *op, frag_dynamic_flows_fn choose, void *arg);

/*
 * Returns the number of flows that lead away from an operator with a callback, from start on; 0
 * before, and for an operator without one, and for NULL.
 * - out_flows: receives an array of them, ordered by output and as in the graph; may be NULL
 * Thread: the callback's. Blocks: no. RT-safe: yes.
 */
FRAG_API uint32_t frag_op_next_flows(const struct frag_op *op,
				     const struct frag_flow_info *const **out_flows);
/*
 * Finds a flow that leads away from an operator with a callback, from start on.
 * - out_port: its output; NULL: any
 * - next_op: the operator that it leads to, "op" or "fragment.op"; NULL: any
 * Returns the first one; NULL when there is none, and for an op of NULL.
 * Thread: the callback's. Blocks: no. RT-safe: it compares strings: call it in start.
 */
FRAG_API const struct frag_flow_info *
frag_op_find_flow_info(const struct frag_op *op, const char *out_port, const char *next_op);

/*
 * Takes a flow in this tick; to take it twice is to take it once. Only inside the callback.
 * - next: the operator that the flow leads to, which runs in this process
 * Returns 0; -EINVAL: tick or next is NULL, no flow leads there, or several do (name the output);
 * -EBUSY: not inside the callback. A failure is worded in the operator, and fails the tick.
 * Thread: the callback's. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_tick_add_dynamic_flow(struct frag_tick *tick, const struct frag_op *next);
/*
 * Adds the flow of one output that leads to next; otherwise as frag_tick_add_dynamic_flow.
 * - out_port: its name; FRAG_OUTPUT_EXEC: an execution flow
 */
FRAG_API int frag_tick_add_dynamic_flow_from(struct frag_tick *tick, const char *out_port,
					     const struct frag_op *next);
/*
 * Adds a flow of this operator, wherever it leads; otherwise as frag_tick_add_dynamic_flow.
 * - flow: of frag_op_next_flows or frag_op_find_flow_info
 * Returns also -EINVAL: flow is NULL, or leads away from another operator.
 */
FRAG_API int frag_tick_add_dynamic_flow_info(struct frag_tick *tick,
					     const struct frag_flow_info *flow);

FRAG_END_DECLS

#endif
