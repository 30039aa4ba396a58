/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_LOOK_H
#define FRAGI_SCHED_LOOK_H

#include <base/look.h>
#include <sched/sched.h>

/*
 * What each operator of a fragment does at this moment: adds ns to that use of it in the ledger, to
 * what lacks of the flows that it waits for, and to those that are full. One thread at a time; it
 * may be any, until the scheduler is destroyed.
 */
FRAGI_API void fragi_sched_look(struct fragi_sched *sched, uint64_t ns);

#endif
