// SPDX-License-Identifier: Apache-2.0
#include <wire/deadline.h>

static void on_timer(uv_timer_t *timer)
{
	struct fw_deadline *deadline = timer->data;

	deadline->due(deadline->arg);
}

/* The loop does not wait for sockets. */
static void on_idle(uv_idle_t *idle)
{
	(void)idle;
}

static void on_work(uv_check_t *work)
{
	struct fw_deadline *deadline = work->data;

	deadline->due(deadline->arg);
}

void fw_deadline_init(struct fw_deadline *deadline, uv_loop_t *loop, void (*due)(void *arg),
		      void *arg)
{
	uv_timer_init(loop, &deadline->timer);
	uv_idle_init(loop, &deadline->idle);
	uv_check_init(loop, &deadline->work);
	deadline->timer.data = deadline->work.data = deadline;
	deadline->due = due;
	deadline->arg = arg;
}

void fw_deadline_set(struct fw_deadline *deadline, int64_t at_ns, int64_t now_ns)
{
	/* A timer that is due at once would fire again and again before any socket is looked at. */
	if (at_ns <= now_ns) {
		uv_timer_stop(&deadline->timer); /* it would come before the sockets, too */
		uv_idle_start(&deadline->idle, on_idle);
		uv_check_start(&deadline->work, on_work);
		return;
	}
	uv_idle_stop(&deadline->idle);
	uv_check_stop(&deadline->work);
	if (at_ns != INT64_MAX)
		uv_timer_start(&deadline->timer, on_timer,
			       (uint64_t)((at_ns - now_ns + 999999) / 1000000), 0);
}

void fw_deadline_close(struct fw_deadline *deadline)
{
	if (uv_is_closing((uv_handle_t *)&deadline->timer))
		return;
	uv_close((uv_handle_t *)&deadline->timer, NULL);
	uv_close((uv_handle_t *)&deadline->idle, NULL);
	uv_close((uv_handle_t *)&deadline->work, NULL);
}
