/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_DEADLINE_H
#define FW_DEADLINE_H

#include <stdint.h>

#include <uv.h>

/*
 * Calls a core on a libuv loop when it wants its next step (drv_core_deadline_ns,
 * wrk_core_deadline_ns). Sockets have their turn between two steps, however long a step takes.
 */
struct fw_deadline {
	uv_timer_t timer;
	/* while the core has work left: a step in each turn of the loop, after its sockets */
	uv_idle_t idle;
	uv_check_t work;
	void (*due)(void *arg);
	void *arg;
};

/* due is called when the deadline has come. */
void fw_deadline_init(struct fw_deadline *deadline, uv_loop_t *loop, void (*due)(void *arg),
		      void *arg);
/* now_ns: the time of the core's last step. at_ns: INT64_MAX: never. */
void fw_deadline_set(struct fw_deadline *deadline, int64_t at_ns, int64_t now_ns);
/* Closes the handles. A second call does nothing. */
void fw_deadline_close(struct fw_deadline *deadline);

#endif
