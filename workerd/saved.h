/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_SAVED_H
#define WRK_SAVED_H

#include <workerd/core/core.h>

/*
 * The memory in which operators save their states (libfrag/src/sched/saved.h), one for each host
 * that may be started again. It is kept here when the host is gone, and the next host of the same
 * number in the same run gets it. This process never reads it. It takes no memory until a host
 * writes, and its size is sealed, so a host can neither grow nor cut it.
 */
struct wrk_saved {
	struct wrk_saved_of {
		uint64_t run;
		uint32_t number;
		int fd;
	} items[WRK_HOSTS_MAX];
	size_t count;
};

/* Returns the memory of this host, which stays the table's; or negative errno. */
int wrk_saved_of(struct wrk_saved *saved, uint64_t run, uint32_t number);
/* Gives up that of a run; 0: of all. */
void wrk_saved_forget(struct wrk_saved *saved, uint64_t run);

#endif
