/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_PAUSE_H
#define DRV_PAUSE_H

#include <driverd/core/core.h>

/* A part of state.h: that this driver did not run (pause.c). */
struct drv_core;

struct drv_pause {
	int64_t sum_ns;    /* of the pauses that count together */
	int64_t end_ns;    /* real: when the last one ended; 0: there was none */
	int64_t beaten_ns; /* real: when all sessions got a beat because of lateness */
	bool owes_beats;   /* they are late in this step */
	bool defers;       /* the last timer did nothing: the next one does, however late it is */
};

/*
 * A step begins, at that real time; before the core's clock is read. Returns whether a pause has
 * ended just now.
 */
bool drv_pause_begin_step(struct drv_core *core, int64_t real_now_ns);
/* Whoever waits for beats gets one if they are late. */
void drv_pause_catch_up(struct drv_core *core);
/* Whether those that wait for beats may have taken this driver for dead. */
bool drv_pause_is_death(const struct drv_core *core, int64_t real_now_ns);
/* Why a worker left: `why`, unless this driver is the cause. */
const char *drv_pause_why(struct drv_core *core, const char *why);

#endif
