/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_SYSTEM_H
#define DRV_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

/* What the core asks of the machine by its config. */

/* As drv_config.random; aborts where there is no randomness. arg is not used. */
void drv_system_random(void *arg, void *bytes, size_t size);
/* CLOCK_REALTIME - CLOCK_MONOTONIC. */
int64_t drv_system_realtime_offset_ns(void);

#endif
