/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_LOGGING_H
#define FRAGI_SCHED_LOGGING_H

#include <sched/exec.h>

/*
 * The part of the data loggers that is in the ticks (around.h): the flows of an operator whose
 * messages a logger wants report what is taken from them.
 */

/*
 * Has the operator's messages logged by those loggers of its fragment that want them. Once, before
 * its exec is created. Returns 0 or -ENOMEM.
 */
int fragi_logging_install(struct frag_op *op);
/* Watches the flows of op->exec, whose ports are bound. Returns 0 or -ENOMEM. */
int fragi_logging_bind(struct frag_op *op);
/* timing.c: a message of the flow is about to be received by the tick of a logged operator. */
void fragi_logging_given(struct frag_tick *tick, const struct fragi_rx *rx);
void fragi_logging_release(struct frag_op *op);

#endif
