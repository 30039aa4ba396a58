/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_SHELL_H
#define DRV_SHELL_H

#include <driverd/options.h>

/*
 * Listens, runs the packed source as an application and prints its summary; without a source (NULL)
 * serves until it is told to end. Returns the exit code; blocks until all is over. source is
 * borrowed.
 */
int drv_shell_run(const struct drv_options *options, const void *source, size_t source_bytes);

#endif
