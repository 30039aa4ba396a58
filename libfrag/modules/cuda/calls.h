/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_CUDA_CALLS_H
#define FRAGI_CUDA_CALLS_H

#include <data/work.h>

#include "device.h"

/*
 * Calls that are due after work of a GPU. The driver reports the end of work on a thread of its own
 * (cuLaunchHostFunc), which may not call the driver, so a thread of this module makes the calls.
 */

/* The calls that one owner waits for. Zeroed: none. */
struct cuda_calls {
	uint32_t count; /* guarded by the lock in calls.c */
};

/*
 * Has fn called once `event`, of that GPU and of `work`, is complete.
 * - side: a stream that holds nothing but such waits; they are reported in order
 * Takes a reference to work until then. Returns 0; -ENOMEM, -EIO: fn is not called.
 */
int cuda_call_after(const struct cuda_device *gpu, CUstream side, CUevent event,
		    struct fragi_work *work, struct cuda_calls *owner, void (*fn)(void *arg),
		    void *arg);
/* Waits until all calls of the owner have returned. A GPU that has failed is not waited for. */
void cuda_calls_settle(struct cuda_calls *owner);

#endif
