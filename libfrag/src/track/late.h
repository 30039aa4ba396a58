/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TRACK_LATE_H
#define FRAGI_TRACK_LATE_H

#include <stddef.h>
#include <stdint.h>

#include <base/blame.h>
#include <base/counters.h>

/* What is to blame for messages that were late on paths: how often each cause was. */

#define FRAGI_LATE_TEXT_SIZE 400u

/* Those among the counters of an operator. */
FRAGI_API const uint64_t *fragi_late_of(const uint64_t counters[FRAGI_OP_COUNTERS]);
FRAGI_API uint64_t fragi_late_sum(const uint64_t late[FRAGI_BLAME_CAUSES]);
/* Writes "8 computed long, 3 network", the most frequent one first. Returns out. */
FRAGI_API const char *fragi_late_text(const uint64_t late[FRAGI_BLAME_CAUSES],
				      char out[FRAGI_LATE_TEXT_SIZE]);

#endif
