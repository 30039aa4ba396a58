/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_LEASE_H
#define HOST_LEASE_H

#include <stdint.h>

/*
 * The end of this process's lease: a timer of the kernel that kills it. It needs nobody who runs:
 * it fires while this process or its workerd is stopped, and when a suspended machine wakes up,
 * before any process of it does.
 */

/*
 * Sets or moves the end, by CLOCK_BOOTTIME. Returns 0; negative errno: there is no such timer, so
 * this process must not run.
 */
int host_lease_hold_until(int64_t until_ns);

#endif
