/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_THREAD_H
#define CTL_THREAD_H

#include <stdbool.h>

#include <workerd/spawn.h>

/*
 * --in-process: the host is a thread of this process, one at a time, for debuggers and profilers.
 * It speaks over the same socket. What crashes it ends everything, and it cannot be killed: then it
 * is left behind.
 */
extern const struct wrk_spawn_ops ctl_thread;

/* Once it has been reaped. false: it still runs, and the process must end by _exit. */
bool ctl_thread_join(void);

#endif
