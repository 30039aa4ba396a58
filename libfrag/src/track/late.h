/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TRACK_LATE_H
#define FRAGI_TRACK_LATE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <base/blame.h>
#include <base/counters.h>

/* What is to blame for messages that were late on paths: how often each cause was, and where. */

#define FRAGI_LATE_TEXT_SIZE 1200u
#define FRAGI_LATE_PLACE_SIZE 400u

/* Those among the counters of an operator. */
FRAGI_API const uint64_t *fragi_late_of(const uint64_t counters[FRAGI_OP_COUNTERS]);
FRAGI_API uint64_t fragi_late_sum(const uint64_t late[FRAGI_BLAME_CAUSES]);
/* Writes "b on worker w", or "a -> b" for a cause that is about a flow. Returns out. */
FRAGI_API const char *fragi_late_place(const struct fragi_late_place *place,
				       enum fragi_blame_cause cause,
				       char out[FRAGI_LATE_PLACE_SIZE]);
/*
 * Writes "8 b on worker w computed long, 3 a -> b network", the most frequent ones first. What was
 * late at none of the places has its cause alone. Returns out.
 */
FRAGI_API const char *fragi_late_text(const uint64_t late[FRAGI_BLAME_CAUSES],
				      const struct fragi_late_place *places, uint32_t count,
				      char out[FRAGI_LATE_TEXT_SIZE]);
/* Prints them as a JSON array, each with its causes above 0. */
FRAGI_API void fragi_late_json(const struct fragi_late_place *places, uint32_t count, FILE *out);

#endif
