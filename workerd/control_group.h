/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_CONTROL_GROUP_H
#define WRK_CONTROL_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * Limits of hosts, by control groups (cgroup v2). Where the group of this process was delegated to
 * it, as systemd does for frag-worker.service, the process moves into a group "worker" below, since
 * a group with controllers has no processes of its own, and each host with limits gets a group
 * "host-N" beside it. Nothing is done before the first host has a limit.
 */
#define WRK_CONTROL_GROUPS_MAX 512 /* whose hosts, or what these left behind, still live */

struct wrk_control_groups {
	char folder[4096]; /* of this process; empty: there is none to use */
	char why[256];     /* why not; empty: it can */
	bool is_ready;     /* this process has moved */
	uint32_t last;
	uint32_t left[WRK_CONTROL_GROUPS_MAX]; /* groups that were made */
	uint32_t left_count;
};

/*
 * Looks whether limits can be enforced.
 * - proc, root: "/proc", "/sys/fs/cgroup"
 */
void wrk_control_groups_init(struct wrk_control_groups *groups, const char *proc, const char *root);
/*
 * Makes the group of the next host.
 * - cpu_limit: thousandths of a core; 0: none
 * - memory_limit: bytes; 0: none
 * - out_fd: its folder, for the two functions below
 * Returns 0; negative errno with a sentence.
 */
int wrk_control_groups_make(struct wrk_control_groups *groups, uint32_t cpu_limit,
			    uint64_t memory_limit, int *out_fd, struct frag_err *err);
/* This process enters the group. Only system calls. Returns 0 or negative errno. */
int wrk_control_group_enter(int fd);
/*
 * The limit of memory, in bytes, for which the kernel has killed processes of the group; 0: it has
 * killed none.
 */
uint64_t wrk_control_group_exceeded(int fd);
/* Removes the groups of hosts that have ended. */
void wrk_control_groups_clear(struct wrk_control_groups *groups);

#endif
