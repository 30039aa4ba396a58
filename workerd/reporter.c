// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/reporter.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOG_TOPIC "worker"
#include <base/log.h>
#include <workerd/reporter_note.h>

/* workerd's side: sends notes to its crash reporter. */

void wrk_reporter_end(struct wrk_reporter *reporter)
{
	if (reporter->pid == 0)
		return;
	kill(reporter->pid, SIGKILL); /* strays.c reaps it */
	close(reporter->socket);
	reporter->pid = 0;
}

/* Never waits: a reporter that does not read its notes is of no use. */
static void send_note(struct wrk_reporter *reporter, const struct wrk_note *note, const int *fds,
		      size_t fd_count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(WRK_NOTE_FDS_MAX * sizeof(int))] = {0};
	struct iovec bytes = {(void *)(uintptr_t)note, sizeof(*note)};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};

	if (reporter->pid == 0)
		return;
	if (fd_count > 0) {
		struct cmsghdr *head = (struct cmsghdr *)(void *)control;

		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(head), fds, fd_count * sizeof(int));
	}
	if (sendmsg(reporter->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return;
	log_warn(
		NULL,
		"lost the process that keeps the counts of hosts: %s; if this worker is killed, they are not known exactly",
		frag_strerror(-errno));
	wrk_reporter_end(reporter);
}

void wrk_reporter_attached(struct wrk_reporter *reporter, uint64_t connection,
			   const struct fw_welcome *session, int fd)
{
	struct wrk_note note = {
		.kind = WRK_NOTE_ATTACHED, .connection = connection, .session = session->session};

	memcpy(note.secret, session->secret, sizeof(note.secret));
	send_note(reporter, &note, &fd, 1);
	explicit_bzero(note.secret, sizeof(note.secret));
}

void wrk_reporter_disconnected(struct wrk_reporter *reporter, uint64_t connection)
{
	send_note(reporter,
		  &(struct wrk_note){.kind = WRK_NOTE_DISCONNECTED, .connection = connection}, NULL,
		  0);
}

void wrk_reporter_add(struct wrk_reporter *reporter, uint32_t host, const struct fw_message *create,
		      int ledger_fd, int exit_fd)
{
	const int fds[WRK_NOTE_FDS_MAX] = {ledger_fd, exit_fd};

	send_note(reporter,
		  &(struct wrk_note){.kind = WRK_NOTE_HOST,
				     .host = host,
				     .number = create->host,
				     .run = create->run,
				     .epoch = create->epoch},
		  fds, WRK_NOTE_FDS_MAX);
}

void wrk_reporter_adopt(struct wrk_reporter *reporter, uint32_t host)
{
	send_note(reporter, &(struct wrk_note){.kind = WRK_NOTE_HOST_ADOPTED, .host = host}, NULL,
		  0);
}

void wrk_reporter_remove(struct wrk_reporter *reporter, uint32_t host)
{
	send_note(reporter, &(struct wrk_note){.kind = WRK_NOTE_HOST_REPORTED, .host = host}, NULL,
		  0);
}
