// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/service.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/printable.h>
#include <base/units.h>

static int manager = -1; /* connected to its socket */
static int64_t watchdog_ns;
static char last_status[512];

static void send_report(const char *report)
{
	if (manager >= 0)
		(void)send(manager, report, strlen(report), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A name that begins with @ is an abstract one. */
static void connect_manager(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || length < 2 || length >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, name, length);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager >= 0 &&
	    connect(manager, (const struct sockaddr *)(const void *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0) {
		close(manager);
		manager = -1;
	}
}

void fragi_service_open(void)
{
	const char *name = getenv("NOTIFY_SOCKET"), *interval = getenv("WATCHDOG_USEC"),
		   *watched = getenv("WATCHDOG_PID");
	int64_t us = 0, pid = 0;

	if (name != NULL)
		connect_manager(name);
	if (manager >= 0 && interval != NULL && fragi_parse_i64(interval, &us) == 0 && us > 0 &&
	    us <= INT64_MAX / 1000 &&
	    (watched == NULL || (fragi_parse_i64(watched, &pid) == 0 && pid == getpid())))
		watchdog_ns = us * 1000 / 2;
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
}

bool fragi_service_is_managed(void)
{
	return manager >= 0;
}

int64_t fragi_service_watchdog_ns(void)
{
	return watchdog_ns;
}

void fragi_service_alive(void)
{
	send_report("WATCHDOG=1");
}

void fragi_service_ready(void)
{
	send_report("READY=1");
}

void fragi_service_stopping(void)
{
	send_report("STOPPING=1");
}

void fragi_service_status(const char *text)
{
	char report[sizeof(last_status)];

	snprintf(report, sizeof(report), "STATUS=%.500s", text);
	fragi_make_printable(report, ' '); /* a newline would begin another report */
	if (strcmp(report, last_status) == 0)
		return;
	memcpy(last_status, report, sizeof(report));
	send_report(report);
}
