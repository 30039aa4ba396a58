// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/reporter.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/kernel.h>
#include <base/stamp.h>
#include <wire/credentials.h>
#include <workerd/core/core.h>
#include <workerd/reporter_link.h>
#include <workerd/reporter_note.h>
#include <workerd/page.h>
#include <workerd/spawn.h>
#include <workerd/strays.h>

/* The process of the crash reporter, and its start. */
#define FD_SOCKET 3
#define FD_FIRST_OTHER 4

/* The reporter's own memory. */
struct kept_host {
	bool is_kept;
	uint32_t host, number;
	uint64_t connection, run, epoch;
	int exit_fd;
	bool has_ended;
	struct wrk_page page;
};
struct kept {
	uint64_t connection, session;
	uint8_t secret[FW_SECRET_BYTES];
	int fd; /* -1: there is no connection */
	const struct fw_tls_config *tls;
	const struct fw_users *users;
	struct kept_host hosts[WRK_PROCESSES_MAX];
};

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void drop_host(struct kept_host *host)
{
	wrk_page_fini(&host->page);
	close_if_open(host->exit_fd);
	*host = (struct kept_host){0};
}

static void take_host(struct kept *kept, const struct wrk_note *note, const int *fds)
{
	for (size_t i = 0; i < WRK_PROCESSES_MAX; i++) {
		if (kept->hosts[i].is_kept)
			continue;
		kept->hosts[i] = (struct kept_host){.is_kept = true,
						    .host = note->host,
						    .number = note->number,
						    .connection = kept->connection,
						    .run = note->run,
						    .epoch = note->epoch,
						    .exit_fd = fds[1],
						    .page = {.fd = fds[0]}};
		return;
	}
	close_if_open(fds[0]);
	close_if_open(fds[1]);
}

/* Takes fds: WRK_NOTE_FDS_MAX descriptors, -1 where none came. */
static void take_note(struct kept *kept, const struct wrk_note *note, const int *fds)
{
	switch (note->kind) {
	case WRK_NOTE_ATTACHED:
		close_if_open(kept->fd);
		kept->connection = note->connection;
		kept->session = note->session;
		memcpy(kept->secret, note->secret, sizeof(kept->secret));
		kept->fd = fds[0];
		break;
	case WRK_NOTE_DISCONNECTED:
		if (note->connection != kept->connection)
			break;
		close_if_open(kept->fd);
		kept->fd = -1;
		break;
	case WRK_NOTE_HOST:
		take_host(kept, note, fds);
		break;
	case WRK_NOTE_HOST_ADOPTED:
		for (size_t i = 0; i < WRK_PROCESSES_MAX; i++)
			if (kept->hosts[i].is_kept && kept->hosts[i].host == note->host)
				kept->hosts[i].connection = kept->connection;
		break;
	case WRK_NOTE_HOST_REPORTED:
		for (size_t i = 0; i < WRK_PROCESSES_MAX; i++)
			if (kept->hosts[i].is_kept && kept->hosts[i].host == note->host)
				drop_host(&kept->hosts[i]);
		break;
	}
}

/* Returns false when no further note can come: workerd is gone. */
static bool next_note(struct wrk_note *out_note, int *out_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(WRK_NOTE_FDS_MAX * sizeof(int))];
	struct iovec bytes = {out_note, sizeof(*out_note)};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(FD_SOCKET, &message, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	for (size_t i = 0; i < WRK_NOTE_FDS_MAX; i++)
		out_fds[i] = -1;
	if (head != NULL && head->cmsg_type == SCM_RIGHTS)
		memcpy(out_fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
	return n == (ssize_t)sizeof(*out_note);
}

/* Whether the descriptor is ready by then. */
static bool await(int fd, short events, int64_t until_ns)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};
	int64_t left_ns = until_ns - fragi_now_ns();

	return poll(&poll_fd, 1, left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0) == 1;
}

/* Waits for the hosts, which die because workerd is gone. Returns how many of the session have. */
static size_t await_hosts(struct kept *kept)
{
	int64_t until_ns = fragi_now_ns() + WRK_REPORTER_END_NS;
	size_t ended = 0;

	for (size_t i = 0; i < WRK_PROCESSES_MAX; i++) {
		struct kept_host *host = &kept->hosts[i];

		if (!host->is_kept || host->connection != kept->connection || host->exit_fd < 0)
			continue;
		host->has_ended = await(host->exit_fd, POLLIN, until_ns);
		ended += host->has_ended;
	}
	return ended;
}

static void send_counts(void *arg, struct fw_connection *connection)
{
	struct kept *kept = arg;
	uint64_t seq = 1; /* of HELLO */

	for (size_t i = 0; i < WRK_PROCESSES_MAX; i++) {
		struct kept_host *host = &kept->hosts[i];
		struct fw_message message = {.kind = FW_HOST_STATS,
					     .seq = ++seq,
					     .run = host->run,
					     .host = host->number,
					     .epoch = host->epoch};
		uint8_t *frame;
		size_t size;

		if (!host->has_ended || wrk_page_read(&host->page, &message.stats) < 0)
			continue;
		message.stats.final = true;
		if (fw_encode(&message, &frame, &size) == 0)
			(void)fw_connection_send(connection, frame, size);
	}
}

static void report_hosts(struct kept *kept)
{
	struct sockaddr_storage driver;
	socklen_t size = sizeof(driver);
	struct wrk_reporter_link link = {
		.driver = (struct sockaddr *)&driver,
		.session = kept->session,
		.secret = kept->secret,
		.users = kept->users,
		.counts = send_counts,
		.arg = kept,
	};

	if (await_hosts(kept) == 0 || getpeername(kept->fd, (struct sockaddr *)&driver, &size) < 0)
		return;
	if (fw_credentials_given(kept->tls) && fw_tls_create(kept->tls, &link.tls, NULL) < 0)
		return;
	link.until_ns = fragi_now_ns() + WRK_REPORTER_LINK_NS;
	wrk_reporter_link_run(&link);
	fw_tls_destroy(link.tls);
}

/*
 * Reads what is unread before it closes: otherwise the close would reset the connection, and the
 * driver could lose what workerd sent last.
 */
static void close_connection(int fd)
{
	int64_t until_ns = fragi_now_ns() + WRK_REPORTER_END_NS;
	char unread[4096];

	(void)shutdown(fd, SHUT_WR);
	while (await(fd, POLLIN, until_ns) && recv(fd, unread, sizeof(unread), MSG_DONTWAIT) > 0)
		;
	close(fd);
}

static void reporter_main(const struct fw_tls_config *tls, const struct fw_users *users)
{
	struct kept *kept = fragi_calloc(1, sizeof(*kept));
	int fds[WRK_NOTE_FDS_MAX];
	struct wrk_note note = {0};

	if (kept == NULL)
		return;
	kept->fd = -1;
	kept->tls = tls;
	kept->users = users;
	while (next_note(&note, fds))
		take_note(kept, &note, fds);
	if (kept->fd < 0)
		return;
	report_hosts(kept);
	close_connection(kept->fd);
}

/*
 * Makes the path absolute, because the reporter leaves the working folder. A link in the path is
 * followed only when the file is read.
 */
static void make_absolute(const char **path)
{
	char folder[PATH_MAX];
	char *absolute = NULL;

	if (*path == NULL || **path == '/')
		return;
	if (getcwd(folder, sizeof(folder)) == NULL ||
	    asprintf(&absolute, "%s/%s", folder, *path) < 0)
		_exit(1);
	*path = absolute;
}

/*
 * Runs in the child. The child keeps nothing of workerd but the socket. It has a session of its
 * own: signals to workerd's process group are for workerd to act on.
 */
static void become_reporter(int socket, struct fw_tls_config tls, const struct fw_users *users)
{
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int other = fcntl(socket, F_DUPFD_CLOEXEC, FD_FIRST_OTHER);

	(void)setsid();
	for (size_t i = 0; i < FRAG_COUNT_OF(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	(void)prctl(PR_SET_NAME, WRK_REPORTER_NAME);
	for (int fd = 0; fd < FD_SOCKET; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			_exit(1);
	make_absolute(&tls.key_file);
	make_absolute(&tls.certificate);
	make_absolute(&tls.certificate_key);
	make_absolute(&tls.ca);
	if (other < 0 || dup2(other, FD_SOCKET) < 0 || chdir("/") < 0)
		_exit(1);
	wrk_spawn_close_from(FD_FIRST_OTHER);
	reporter_main(&tls, users);
	_exit(0);
}

int wrk_reporter_start(struct wrk_reporter *reporter, const struct fw_tls_config *tls,
		       const struct fw_users *users, struct frag_err *err)
{
	char remedy[FRAGI_KERNEL_REMEDY_MAX];
	int sockets[2], r;
	pid_t pid;

	*reporter = (struct wrk_reporter){0};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
		r = -errno;
		goto err_socket;
	}
	pid = fork();
	if (pid < 0) {
		r = -errno;
		goto err_fork;
	}
	if (pid == 0) {
		close(sockets[0]);
		become_reporter(sockets[1], *tls, users);
	}
	close(sockets[1]);
	*reporter = (struct wrk_reporter){pid, sockets[0]};
	wrk_strays_except(pid);
	return 0;

err_fork:
	close(sockets[0]);
	close(sockets[1]);
err_socket:
	return frag_err_set(
		err, r,
		"cannot start a process that keeps the counts of hosts: %s%s; if this worker is killed, they are not known exactly",
		frag_strerror(r), fragi_kernel_remedy(r, remedy));
}
