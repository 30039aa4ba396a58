/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_SAVED_BYTES_H
#define FRAGI_BASE_SAVED_BYTES_H

/*
 * The memory that a worker keeps for what the operators of one host save (sched/saved.h), in bytes.
 * Pages are used where something is written.
 */
#define FRAGI_SAVED_BYTES_MAX (1ull << 30)

#endif
