/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_PROCESS_H
#define HOST_PROCESS_H

#include <stdbool.h>

/*
 * The whole life of a process that is a host: signals, crash reports and operators' output as they
 * are to be, then the host itself over the descriptors of workerd/spawn.h. allow_paths: libraries
 * may be named by a path, since whoever wrote the graph started this process. Returns the exit
 * status for main; leaves by _exit when operators hang.
 */
int host_process_run(bool allow_paths);

#endif
