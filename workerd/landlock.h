/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_LANDLOCK_H
#define WRK_LANDLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * Landlock: the kernel lets a host, and every process that it starts, change only what is below
 * certain folders. Reading, executing and the network are not restricted, nor what is done to a
 * file without opening it for writing (chmod, chown, utime, ioctl): for these the user of the host
 * counts alone.
 */

/* Each version (ABI) of Landlock can refuse more. */
struct wrk_landlock_rights {
	uint64_t handled; /* refused outside of the folders */
	uint64_t scoped;  /* refused towards processes that are not of this host */
};

/* Returns the version of the running kernel, from 1, or negative errno: it has none. */
int wrk_landlock_abi(void);
/* abi: from 1. One that is newer than this program gets what is known. */
struct wrk_landlock_rights wrk_landlock_rights_of(int abi);

/*
 * Makes the rules of one host. Paths that do not exist are left out; a path may be a file or a
 * device. To these come the devices that every program may write (/dev/null) or that graphics and
 * network cards need, /dev/shm where there is a device of NVIDIA, and, for core files, the folder
 * that the kernel's core_pattern names.
 * Returns a descriptor, 10 at least, which is closed on exec, or negative errno with a sentence.
 */
int wrk_landlock_create(int abi, const char *const *paths, size_t count, struct frag_err *err);
/*
 * Restricts this thread, and what it forks and executes, for good; this process may also write what
 * /proc has of its threads. Only system calls.
 */
int wrk_landlock_restrict(int rules_fd);

#endif
