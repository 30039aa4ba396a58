/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_ALLOWANCE_H
#define FRAGI_BASE_ALLOWANCE_H

#include <stdint.h>

#include <base/diag.h>

/*
 * What this process may use of its machine: the least of its affinity (to which cpusets belong),
 * the quota and memory limits of its control groups, version 1 or 2, and its resource limits.
 */
struct fragi_allowance {
	int64_t cores;          /* a part of one counts as one, of more it is left out */
	int64_t memory_bytes;   /* INT64_MAX: no limit */
	const char *cores_why;  /* what limits it, for people; NULL: nothing does */
	const char *memory_why; /* ... */
	int64_t machine_cores;  /* that are online */
	/* of the control group that has room for the fewest more; INT64_MAX: none has a limit */
	int64_t processes, processes_left;
};

/* proc, groups: "/proc", "/sys/fs/cgroup". What cannot be read limits nothing. */
FRAGI_API void fragi_allowance_read(const char *proc, const char *groups,
				    struct fragi_allowance *out);

#endif
