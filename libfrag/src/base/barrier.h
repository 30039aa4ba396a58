/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_BARRIER_H
#define FRAGI_BASE_BARRIER_H

#include <stdbool.h>

/*
 * Executes a full fence here, and on every core that runs a thread of this process. So a frequent
 * writer that must store one word before it loads another needs no fence of its own, only a
 * compiler's (atomic_signal_fence), if the rare thread at the other end calls this between its own
 * store and load. It takes microseconds. Returns false: the kernel refuses, and other cores have
 * executed nothing.
 */
bool fragi_barrier_everywhere(void);

#endif
