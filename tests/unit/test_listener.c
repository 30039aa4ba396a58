// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
/* A listener lets the loop go on while connections arrive. */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <driverd/listener.h>

#include "scratch.h"

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

/* A name server may take its time. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		struct addrinfo **out)
{
	static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

	if (strcmp(host, "nowhere") == 0)
		return EAI_NONAME;
	if (real == NULL)
		*(void **)(void *)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(host, port, hints, out);
}

/* port: 0 for a new one */
static int open_once(uv_loop_t *loop, struct drv_listener *listener, const char *host,
		     uint16_t port, struct frag_err *err)
{
	struct fragi_address address = {.port = port};

	snprintf(address.host, sizeof(address.host), "%s", host);
	*err = (struct frag_err)FRAG_ERR_INIT;
	drv_listener_init(listener, loop, FW_STREAM_TCP, NULL, NULL);
	return drv_listener_open(listener, &address, err);
}

static void close_one(uv_loop_t *loop, struct drv_listener *listener)
{
	drv_listener_close(listener);
	drv_listener_close(listener);
	uv_run(loop, UV_RUN_DEFAULT);
}

Test(listener, its_address_is_shown_and_what_is_wrong_with_it)
{
	static const char *const hosts[][2] = {{"127.0.0.1", "127.0.0.1"}, {"::1", "[::1]"}};
	struct drv_listener first, second;
	struct frag_err err;
	uv_loop_t loop;

	cr_assert_eq(uv_loop_init(&loop), 0);
	for (int i = 0; i < 2; i++) {
		char expected[256];
		int r = open_once(&loop, &first, hosts[i][0], 0, &err);

		if (i == 1 && r < 0) { /* a machine without IPv6 */
			close_one(&loop, &first);
			continue;
		}
		cr_assert_eq(r, 0, "%s", err.text);
		cr_expect_gt(first.port, 0);
		snprintf(expected, sizeof(expected), "%s:%u", hosts[i][1], first.port);
		cr_expect_str_eq(first.address, expected);
		cr_expect_eq(open_once(&loop, &second, hosts[i][0], first.port, &err), -EADDRINUSE);
		snprintf(
			expected, sizeof(expected),
			"cannot listen on %s:%u: the port is in use, perhaps by another driverd; give --address another port",
			hosts[i][1], first.port);
		cr_expect_str_eq(err.text, expected);
		cr_expect_eq(fragi_err_failure(&err), FRAGI_FAILURE_PORT_IN_USE);
		drv_listener_close(&second);
		close_one(&loop, &first);
	}
	cr_expect_eq(open_once(&loop, &first, "192.0.2.77", 7, &err), -EADDRNOTAVAIL);
	cr_expect_str_eq(
		err.text,
		"cannot listen on 192.0.2.77:7: Cannot assign requested address; give --address an address of this machine");
	cr_expect_eq(fragi_err_failure(&err), FRAGI_FAILURE_ADDRESS_UNUSABLE);
	close_one(&loop, &first);
	cr_expect_eq(open_once(&loop, &first, "nowhere", 7, &err), -EADDRNOTAVAIL);
	cr_expect_str_eq(
		err.text,
		"the address nowhere cannot be found: Name or service not known; give --address an address of this machine");
	cr_expect_eq(fragi_err_failure(&err), FRAGI_FAILURE_ADDRESS_UNUSABLE);
	close_one(&loop, &first);
	cr_expect_eq(uv_loop_close(&loop), 0);
}

static int take_local(struct drv_listener *listener, void *arg)
{
	uv_pipe_t *peer = malloc(sizeof(*peer));

	cr_assert_eq(uv_pipe_init(arg, peer, 0), 0);
	cr_assert_eq(uv_accept(&listener->server.stream, (uv_stream_t *)peer), 0);
	uv_close((uv_handle_t *)peer, free_handle);
	listener->arg = NULL;
	return 0;
}

Test(listener, clients_of_this_machine_have_a_socket_of_their_own, .init = scratch_make,
     .fini = scratch_remove)
{
	const struct fw_users users = {.count = 0};
	struct drv_listener listener;
	struct frag_err err = FRAG_ERR_INIT;
	uv_loop_t loop;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	unsetenv("RUNTIME_DIRECTORY");
	setenv("XDG_RUNTIME_DIR", scratch, 1);
	cr_assert_eq(uv_loop_init(&loop), 0);
	drv_listener_init(&listener, &loop, FW_STREAM_PIPE, take_local, &loop);
	cr_assert_eq(drv_listener_open_local(&listener, 7, &users, &err), 0, "%s", err.text);
	cr_expect_str_eq(listener.address, at("frag/7.sock"));
	cr_assert_eq(connect(fd, (struct sockaddr *)&listener.local.address,
			     sizeof(listener.local.address)),
		     0);
	while (listener.arg != NULL)
		uv_run(&loop, UV_RUN_ONCE);
	close_one(&loop, &listener);
	cr_expect_lt(access(at("frag/7.sock"), F_OK), 0);
	close(fd);

	cr_assert_eq(chmod(at("frag"), 0777), 0);
	drv_listener_init(&listener, &loop, FW_STREAM_PIPE, take_local, &loop);
	cr_expect_eq(drv_listener_open_local(&listener, 7, &users, &err), -EPERM);
	cr_expect_str_eq(listener.address, "");
	close_one(&loop, &listener);
	cr_expect_eq(uv_loop_close(&loop), 0);
}
