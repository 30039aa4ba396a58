/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_PROCESS_H
#define HOST_PROCESS_H

#include <stdbool.h>

#include <type/registry.h>

/*
 * The whole life of a process that is a host: signals, crash reports and operators' output as they
 * are to be, then the host itself over the descriptors of workerd/spawn.h. paths: which libraries
 * may be named by a path. trusted_only: as in struct fragi_registry_config. Returns the exit status
 * for main; leaves by _exit when operators hang.
 */
int host_process_run(enum fragi_library_paths paths, bool trusted_only);
/*
 * The same for a process that workerd has started, with what its environment says about libraries.
 * Returns 0 and the exit status; negative errno: workerd has not started it.
 */
int host_process_main(int *out_status);

#endif
