/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_DOCTOR_WORKERS_H
#define CTL_DOCTOR_WORKERS_H

#include <fragctl/driver.h>

/* What `fragctl doctor --workers` asks a driver for. */

/*
 * Writes findings as `fragctl doctor` does, and counts those that are wrong.
 * - json: NULL: a line each for people
 */
struct ctl_json;
size_t ctl_doctor_put(struct ctl_json *json, const struct fw_finding *findings, size_t count);
/*
 * Looks at the nodes of all workers of a driver, and at the connection between each two of them.
 * Returns CTL_OK, CTL_FAILED if something is wrong, or the exit code, complained.
 */
int ctl_doctor_workers(struct ctl_driver *driver, bool json);

/*
 * Measures the connection between two workers by an application of the driver. Returns what there
 * is to say; its texts are valid until the next call.
 */
struct fw_finding ctl_doctor_connect(struct ctl_driver *driver, const char *a, const char *b);

#endif
