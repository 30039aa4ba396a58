/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_SHELL_H
#define WRK_SHELL_H

#include <workerd/options.h>

/*
 * Runs workerd's core on a libuv loop until it ends. Returns the exit code (docs/CLI.md); the
 * reason has been logged.
 */
int wrk_shell_run(const struct wrk_options *options);

#endif
