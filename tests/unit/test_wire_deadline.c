// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <string.h>
#include <unistd.h>

#include <wire/deadline.h>

static struct fw_deadline deadline;
static uv_loop_t loop;
static uv_poll_t socket_of;
static int ends[2];
static char order[16];

static void note(const char *what)
{
	strncat(order, what, sizeof(order) - strlen(order) - 1);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	note("r");
	uv_close((uv_handle_t *)poll, NULL);
}

/* What was due has taken long, and is due again; meanwhile something has come. */
static void on_due(void *arg)
{
	note("d");
	if (strlen(order) > 1) {
		fw_deadline_close(&deadline);
		return;
	}
	usleep(5000);
	cr_assert_eq(write(ends[1], "x", 1), 1);
	fw_deadline_set(&deadline, 0, 0);
}

static void on_begin(uv_timer_t *timer)
{
	fw_deadline_set(&deadline, 0, 0);
	uv_close((uv_handle_t *)timer, NULL);
}

Test(wire_deadline, what_is_due_at_once_comes_after_what_can_be_read)
{
	uv_timer_t begin;

	cr_assert_eq(pipe(ends), 0);
	uv_loop_init(&loop);
	uv_timer_init(&loop, &begin);
	uv_poll_init(&loop, &socket_of, ends[0]);
	uv_poll_start(&socket_of, UV_READABLE, on_readable);
	fw_deadline_init(&deadline, &loop, on_due, NULL);
	fw_deadline_set(&deadline, 2000000, 0); /* it is due in the pause of what is done before */
	uv_timer_start(&begin, on_begin, 0, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	cr_expect_str_eq(order, "drd");
	cr_expect_eq(uv_loop_close(&loop), 0);
	close(ends[0]);
	close(ends[1]);
}
