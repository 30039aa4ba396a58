/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_CONDITION_H
#define FRAG_CONDITION_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Conditions decide when an operator is ticked. All conditions of an operator are combined: NEVER
 * before WAIT_EVENT before WAIT before WAIT_TIME before READY.
 *
 * Built in, by their names in graphs and their parameters:
 *   message_available      receiver (port), min_size (1), front_stage_max_size (0: none)
 *   downstream_affordable  transmitter (port), min_size (1)
 *   count                  count (1): that many ticks, then NEVER
 *   boolean                enable_tick (true); a disabled one does not keep an application alive
 *   that is
 *                          otherwise at rest
 *   periodic               recess_period (duration), policy (catch_up_missed_ticks,
 *   min_time_between_ticks,
 *                          no_catch_up_missed_ticks)
 *   none                   takes away the default conditions of the operator (or of `port`)
 */
struct frag_condition;

/*
 * boolean: lets the operator be ticked, or not. Returns 0, or -EINVAL when it is no boolean
 * condition. Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_condition_enable_tick(struct frag_condition *condition);
FRAG_API int frag_condition_disable_tick(struct frag_condition *condition);

FRAG_END_DECLS

#endif
