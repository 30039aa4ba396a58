/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNER_THREAD_H
#define RUNNER_THREAD_H

#include <stdbool.h>

#include <workerd/spawn.h>

/*
 * A host that is a thread of this process, one at a time. It speaks over the same socket as a
 * process. What crashes it ends everything, and it cannot be killed: then it is left behind.
 */

/*
 * The process is ours (fragctl run --in-process, for debuggers and profilers): its environment, its
 * stdout and stderr and its signal handlers are set up as in a host.
 */
extern const struct wrk_spawn_ops runner_thread;
/*
 * The process is somebody's program: nothing of it is changed. Of the environment that a host is to
 * get only FRAG_LIBRARY_PATH is looked at.
 */
extern const struct wrk_spawn_ops runner_guest_thread;

/*
 * Once it has been reaped. false: it still runs, or hangs in an operator, and nothing that it uses
 * may be taken away; no other host can be started.
 */
bool runner_thread_join(void);
/* Whether runner_thread_join has returned false. */
bool runner_thread_is_stuck(void);

#endif
