/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_CONDITION_H
#define FRAG_CONDITION_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Conditions decide when an operator is ticked. The operator is ticked when all its conditions say
 * READY. Otherwise the first of these answers that any of them gives counts: NEVER, WAIT_EVENT,
 * WAIT, WAIT_TIME.
 *
 * Built-in conditions, with their parameters in graphs and the defaults of those:
 * - message_available: every flow of an input has messages. receiver (an input; optional where the
 *   operator has one), min_size (1: messages on each flow), front_stage_max_size (0: no limit; else
 *   not while more messages are waiting)
 * - downstream_affordable: every flow of an output has room. transmitter (an output; optional where
 *   the operator has one), min_size (1: messages on each flow)
 * - count: ticks the operator that many times, then says NEVER. count (1)
 * - boolean: switched on and off by the functions below. One that is off does not keep alive an
 *   application in which nothing else can happen any more. enable_tick (true: the state at the
 *   start)
 * - periodic: ticks the operator once a period. recess_period (duration or frequency; required),
 *   policy (catch_up_missed_ticks, the default; min_time_between_ticks; no_catch_up_missed_ticks)
 * - none: removes the default conditions of the operator's ports. port (one port; left out: all)
 *
 * Source: Holoscan SDK user guide, "Conditions", and "Condition Combination" for the order above.
 */
struct frag_condition;

/*
 * Switches a boolean condition on or off.
 * Returns 0; -EINVAL: condition is NULL or no boolean condition.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_condition_enable_tick(struct frag_condition *condition);
FRAG_API int frag_condition_disable_tick(struct frag_condition *condition);

FRAG_END_DECLS

#endif
