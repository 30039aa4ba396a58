/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_DEADLINE_H
#define DRV_DEADLINE_H

#include <stdint.h>

#include <uv.h>

/* Calls the driver's core on a libuv loop when it wants its next step (drv_core_deadline_ns). */
struct drv_deadline {
	uv_timer_t timer;
	/* while the core has work left: a step in each turn of the loop, after its sockets */
	uv_idle_t idle;
	uv_check_t work;
	void (*due)(void *arg);
	void *arg;
};

/* due is called when the deadline has come. */
void drv_deadline_init(struct drv_deadline *deadline, uv_loop_t *loop, void (*due)(void *arg),
		       void *arg);
/* now_ns: the time of the core's last step. at_ns: INT64_MAX: never. */
void drv_deadline_set(struct drv_deadline *deadline, int64_t at_ns, int64_t now_ns);
/* Closes the handles. A second call does nothing. */
void drv_deadline_close(struct drv_deadline *deadline);

#endif
