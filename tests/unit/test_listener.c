// SPDX-License-Identifier: Apache-2.0
/* A listener lets the loop go on while connections arrive. */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <driverd/listener.h>

#define CROWD 100 /* fewer than wait in the kernel */

struct rig {
	uv_loop_t loop;
	struct drv_listener listener;
	int crowd[CROWD], taken, short_of_memory;
};

static void free_handle(uv_handle_t *handle)
{
	free(handle);
}

static int take(struct drv_listener *listener, void *arg)
{
	struct rig *rig = arg;
	uv_tcp_t *peer;

	if (rig->short_of_memory > 0 && rig->short_of_memory-- > 0)
		return -ENOMEM;
	peer = malloc(sizeof(*peer));
	cr_assert_eq(uv_tcp_init(&rig->loop, peer), 0);
	cr_assert_eq(uv_accept(&listener->server.stream, (uv_stream_t *)peer), 0);
	uv_close((uv_handle_t *)peer, free_handle);
	rig->taken++;
	return 0;
}

static void open_rig(struct rig *rig)
{
	struct fragi_address address = {.host = "127.0.0.1"};
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct frag_err err = FRAG_ERR_INIT;

	*rig = (struct rig){0};
	cr_assert_eq(uv_loop_init(&rig->loop), 0);
	drv_listener_init(&rig->listener, &rig->loop, FW_STREAM_TCP, take, rig);
	cr_assert_eq(drv_listener_open(&rig->listener, &address, &err), 0, "%s", err.text);
	to.sin_port = htons(rig->listener.port);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < CROWD; i++) {
		rig->crowd[i] = socket(AF_INET, SOCK_STREAM, 0);
		cr_assert_eq(connect(rig->crowd[i], (struct sockaddr *)&to, sizeof(to)), 0);
	}
}

static void close_rig(struct rig *rig)
{
	for (int i = 0; i < CROWD; i++)
		close(rig->crowd[i]);
	drv_listener_close(&rig->listener);
	uv_run(&rig->loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(&rig->loop), 0);
}

Test(listener, a_crowd_is_taken_a_few_at_a_time)
{
	struct rig rig;
	int before;

	open_rig(&rig);
	do {
		before = rig.taken;
		uv_run(&rig.loop, UV_RUN_ONCE);
		cr_expect_lt(rig.taken - before, CROWD / 2);
	} while (rig.taken < CROWD);
	cr_expect_eq(rig.taken, CROWD);
	close_rig(&rig);
}

Test(listener, who_finds_no_memory_is_taken_later)
{
	struct rig rig;

	open_rig(&rig);
	rig.short_of_memory = 3;
	while (rig.taken < CROWD)
		uv_run(&rig.loop, UV_RUN_ONCE);
	cr_expect_eq(rig.short_of_memory, 0);
	close_rig(&rig);
}
