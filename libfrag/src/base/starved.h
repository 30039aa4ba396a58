/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_STARVED_H
#define FRAGI_BASE_STARVED_H

#include <stdint.h>

#include <base/diag.h>

/*
 * For how long the calling thread could run since it began, and the kernel gave it no core; 0 where
 * the kernel does not count that. The difference between wall and CPU time would also be that of a
 * thread that sleeps or waits for a disk, which is no preemption. A system call: some microseconds.
 */
FRAGI_API uint64_t fragi_starved_ns(void);

#endif
