/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_DECIDE_H
#define DRV_DECIDE_H

#include <driverd/core/core.h>

/* A part of state.h: what is decided at the end of a step. */
struct drv_app;
struct drv_core;

/* decide.c */
/* All that are awake decide; those with nothing left to look at sleep from then on. */
void drv_decide(struct drv_core *core);

/* termination.c */
bool drv_app_is_at_rest(const struct drv_app *app); /* no operator can ever run again */

#endif
