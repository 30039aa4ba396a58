/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_REALTIME_H
#define FRAGI_BASE_REALTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <base/diag.h>

/* How the kernel schedules a thread, as a graph asks for it and as the kernel says that it does. */
enum fragi_sched_policy {
	FRAGI_SCHED_NONE, /* nothing was asked for */
	FRAGI_SCHED_FIFO,
	FRAGI_SCHED_RR,
	FRAGI_SCHED_DEADLINE,
	FRAGI_SCHED_OTHER, /* of a thread that may go on without real time, and has to */
};

struct fragi_realtime {
	enum fragi_sched_policy policy;
	uint32_t priority;                           /* fifo, rr: 1 to 99 */
	uint64_t runtime_ns, deadline_ns, period_ns; /* deadline */
};

/* Writes it for people: "SCHED_FIFO, priority 50". Returns out. */
FRAGI_API const char *fragi_realtime_text(const struct fragi_realtime *realtime, char *out,
					  size_t size);
/* Writes it as JSON: {"policy": "fifo", "priority": 50} */
FRAGI_API void fragi_realtime_json(const struct fragi_realtime *realtime, FILE *out);
/* Returns why it makes no sense, the end of a sentence; NULL: it does. */
FRAGI_API const char *fragi_realtime_flaw(const struct fragi_realtime *realtime);

#endif
