/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_IDENTITY_H
#define FRAGI_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

#include <base/diag.h>

/*
 * What a process shares with others of its machine, as texts to be compared. These are different
 * questions: two containers of a machine may have one clock and no common loopback, or the
 * reverse. Empty: not known, because there is no /proc. Each returns 0 or negative errno.
 */
#define FRAGI_IDENTITY_SIZE 64

/* One kernel: its boot id. */
FRAGI_API int fragi_identity_machine(char out[FRAGI_IDENTITY_SIZE]);
/* One loopback interface: machine and network namespace. */
FRAGI_API int fragi_identity_loopback(char out[FRAGI_IDENTITY_SIZE]);
/*
 * One CLOCK_MONOTONIC: machine and time namespace. of_children: as processes have it that this one
 * starts.
 */
FRAGI_API int fragi_identity_clock(bool of_children, char out[FRAGI_IDENTITY_SIZE]);
/*
 * Processes that can share memory over an abstract unix socket whose ends check each other's user:
 * machine, network namespace, user namespace and, as it is numbered there, the user. In this order,
 * with dots in between, so that fragi_identity_apart can say what differs.
 */
#define FRAGI_IDENTITY_MEMORY_SIZE 96
FRAGI_API int fragi_identity_memory(uid_t user, char out[FRAGI_IDENTITY_MEMORY_SIZE]);

/* The first thing that two texts of fragi_identity_memory do not have in common. */
enum fragi_apart {
	FRAGI_APART_NOT,
	FRAGI_APART_UNKNOWN, /* one of them is empty */
	FRAGI_APART_MACHINE,
	FRAGI_APART_NETWORK,
	FRAGI_APART_USER,
};
FRAGI_API enum fragi_apart fragi_identity_apart(const char *a, const char *b);

/* What is not known is the same as nothing. */
FRAGI_API bool fragi_identity_is_same(const char *a, const char *b);

#endif
