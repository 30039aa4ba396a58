/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_STDOUT_H
#define DRV_STDOUT_H

#include <stddef.h>

/*
 * Writes a result. It is not a log: it waits for its reader as long as it takes, but ends with
 * -EINTR when SIGINT, SIGTERM or SIGHUP comes while it waits. Returns 0 or negative errno; the
 * output is then incomplete.
 */
int drv_stdout_write(const char *text, size_t size);

#endif
