/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TRACK_LATE_H
#define FRAGI_TRACK_LATE_H

#include <stdint.h>
#include <stdio.h>

#include <base/counters.h>

/*
 * What is to blame for messages that were late on paths, as an operator has counted it.
 * - counters: of that operator
 */

/* " (8 computed long, 3 network)", the most frequent one first; nothing where nothing is. */
void fragi_late_print(const uint64_t counters[FRAGI_OP_COUNTERS], FILE *out);
/* `, "late": {"queue": 0, ...}`, all of them */
FRAGI_API void fragi_late_json(const uint64_t counters[FRAGI_OP_COUNTERS], FILE *out);

#endif
