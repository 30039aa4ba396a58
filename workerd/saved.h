/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_SAVED_H
#define WRK_SAVED_H

#include <workerd/core/core.h>

/*
 * The memory in which operators save their states (libfrag/src/sched/saved.h), one for each host
 * that may be started again. It is kept here when the host is gone, and the next host of the same
 * number in the same run gets it. A process that is prepared beside the host has a memory of its
 * own, which becomes that of the host with it: another library may lay it out differently. This
 * process only copies it, when a host goes on in such a process. It takes no memory until a host
 * writes, and its size is sealed, so a host can neither grow nor cut it.
 */
struct wrk_saved {
	struct wrk_saved_of {
		uint64_t run;
		uint32_t number;
		uint64_t epoch; /* of a process beside the host; 0: it is that of the host */
		int fd;
	} items[2 * WRK_HOSTS_MAX]; /* one beside each host */
	size_t count;
};

/*
 * Returns the memory of this host, or of the process of that epoch beside it, which stays the
 * table's; or negative errno.
 */
int wrk_saved_of(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch);
/* The process of that epoch is the host: its memory, if it has one, is that of the host. */
void wrk_saved_promote(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch);
/*
 * The most that is sent to another worker. A host that has saved more begins anew there.
 */
#define WRK_SAVED_SENT_MAX (16u << 20)
/*
 * Calls fn for each part of the memory that was written. Returns 0, -EFBIG (more than
 * WRK_SAVED_SENT_MAX), or negative errno.
 */
int wrk_saved_read(struct wrk_saved *saved, uint64_t run, uint32_t number,
		   void (*fn)(void *arg, uint64_t offset, const void *bytes, uint32_t size),
		   void *arg);
/* A part of what was saved elsewhere; that from 0 on is the first. Returns 0 or negative errno. */
int wrk_saved_take(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch,
		   const struct fw_host_saved *part);
/* Gives up that of a run; 0: of all. number: of that host; 0: of all. epoch: only that beside. */
void wrk_saved_forget(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch);

#endif
