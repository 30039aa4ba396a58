/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KEPT_H
#define KEPT_H

#include <driverd/core/core.h>

/*
 * The state folder of a fleet's driver, in memory: its numbers, and the runs that have not ended.
 * Zeroed: empty.
 */
struct kept_run {
	struct drv_record record; /* owns what it points to */
	char *placed;             /* NULL: not known */
};
struct kept {
	uint64_t epoch, run;
	struct kept_run *runs;
	size_t count, capacity;
};
void kept_take(struct kept *kept, const struct drv_record *record);
void kept_restore(const struct kept *kept, struct drv_core *core);
void kept_fini(struct kept *kept);

#endif
