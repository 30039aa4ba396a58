// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/service.h>

#include "left.h"

static char folder[] = "/tmp/frag-service-XXXXXX";
static char name[64];
static int manager;

/* A service manager that listens at name; @ begins an abstract one. */
static void listen_at(const char *where)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(where);

	memcpy(address.sun_path, where, length);
	if (where[0] == '@')
		address.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cr_assert_eq(bind(manager, (const struct sockaddr *)(const void *)&address,
			  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
		     0);
	setenv("NOTIFY_SOCKET", where, 1);
}

/* The next report; "" : there is none. A datagram to a local socket is there when send returns. */
static const char *report(void)
{
	static char text[1024];
	ssize_t n = recv(manager, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void begin(void)
{
	cr_assert_not_null(mkdtemp(folder));
	snprintf(name, sizeof(name), "%s/notify", folder);
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	left_own.descriptors = 1; /* a daemon reports until its end */
}
static void end(void)
{
	close(manager);
	(void)unlink(name);
	(void)rmdir(folder);
}
TestSuite(service, .init = begin, .fini = end);

Test(service, a_daemon_reports_its_life)
{
	listen_at(name);
	setenv("WATCHDOG_USEC", "3000000", 1);
	fragi_service_open();
	cr_expect_null(getenv("NOTIFY_SOCKET"), "no child may report");
	cr_expect_null(getenv("WATCHDOG_USEC"));
	cr_expect_eq(fragi_service_watchdog_ns(), 1500000000);
	fragi_service_ready();
	cr_expect_str_eq(report(), "READY=1");
	fragi_service_alive();
	cr_expect_str_eq(report(), "WATCHDOG=1");
	fragi_service_stopping();
	cr_expect_str_eq(report(), "STOPPING=1");
	cr_expect_str_eq(report(), "");
}

Test(service, a_status_is_one_line_and_sent_once)
{
	char longer[2000];

	listen_at(name);
	fragi_service_open();
	fragi_service_status("running\nREADY=1");
	cr_expect_str_eq(report(), "STATUS=running READY=1");
	fragi_service_status("running\nREADY=1");
	cr_expect_str_eq(report(), "");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	fragi_service_status(longer);
	cr_expect_eq(strlen(report()), strlen("STATUS=") + 500);
}

Test(service, an_abstract_socket)
{
	char abstract[64];

	snprintf(abstract, sizeof(abstract), "@frag-service-%d", (int)getpid());
	listen_at(abstract);
	fragi_service_open();
	fragi_service_ready();
	cr_expect_str_eq(report(), "READY=1");
}

Test(service, the_watchdog_of_another_process_is_not_ours)
{
	listen_at(name);
	setenv("WATCHDOG_USEC", "3000000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	fragi_service_open();
	cr_expect_eq(fragi_service_watchdog_ns(), 0);
}

Test(service, without_a_service_manager_nothing_happens)
{
	manager = -1;
	setenv("NOTIFY_SOCKET", name, 1); /* nobody listens there */
	setenv("WATCHDOG_USEC", "3000000", 1);
	fragi_service_open();
	cr_expect_eq(fragi_service_watchdog_ns(), 0);
	fragi_service_ready();
	fragi_service_status("nobody reads it");
}

Test(service, a_manager_that_does_not_read_holds_nobody_up)
{
	listen_at(name);
	fragi_service_open();
	for (int i = 0; i < 10000; i++)
		fragi_service_alive();
	cr_expect_str_eq(report(), "WATCHDOG=1");
}
