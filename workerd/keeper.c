/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <workerd/keeper.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOG_TOPIC "worker"
#include <base/log.h>
#include <workerd/keeper_note.h>

/* workerd's side: what it tells its keeper. */

void wrk_keeper_end(struct wrk_keeper *keeper)
{
	if (keeper->pid == 0)
		return;
	kill(keeper->pid, SIGKILL); /* whoever reaps strays reaps it */
	close(keeper->socket);
	keeper->pid = 0;
}

/* Never waits: a keeper that does not read what it is told is of no use. */
static void tell(struct wrk_keeper *keeper, const struct wrk_note *note, const int *fds,
		 size_t fd_count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(WRK_NOTE_FDS_MAX * sizeof(int))] = {0};
	struct iovec bytes = {(void *)(uintptr_t)note, sizeof(*note)};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};

	if (keeper->pid == 0)
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
	if (sendmsg(keeper->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return;
	log_warn(
		NULL,
		"lost the process that keeps the counts of hosts: %s; if this worker is killed, they are not known exactly",
		frag_strerror(-errno));
	wrk_keeper_end(keeper);
}

void wrk_keeper_attached(struct wrk_keeper *keeper, uint64_t connection,
			 const struct fw_welcome *session, int fd)
{
	struct wrk_note note = {
		.kind = WRK_NOTE_ATTACHED, .connection = connection, .session = session->session};

	memcpy(note.secret, session->secret, sizeof(note.secret));
	tell(keeper, &note, &fd, 1);
	explicit_bzero(note.secret, sizeof(note.secret));
}

void wrk_keeper_disconnected(struct wrk_keeper *keeper, uint64_t connection)
{
	tell(keeper, &(struct wrk_note){.kind = WRK_NOTE_DISCONNECTED, .connection = connection},
	     NULL, 0);
}

void wrk_keeper_add(struct wrk_keeper *keeper, uint32_t host, const struct fw_message *create,
		    int ledger_fd, int exit_fd)
{
	const int fds[WRK_NOTE_FDS_MAX] = {ledger_fd, exit_fd};

	tell(keeper,
	     &(struct wrk_note){.kind = WRK_NOTE_HOST,
				.host = host,
				.number = create->host,
				.run = create->run,
				.epoch = create->epoch},
	     fds, WRK_NOTE_FDS_MAX);
}

void wrk_keeper_adopt(struct wrk_keeper *keeper, uint32_t host)
{
	tell(keeper, &(struct wrk_note){.kind = WRK_NOTE_HOST_ADOPTED, .host = host}, NULL, 0);
}

void wrk_keeper_remove(struct wrk_keeper *keeper, uint32_t host)
{
	tell(keeper, &(struct wrk_note){.kind = WRK_NOTE_HOST_REPORTED, .host = host}, NULL, 0);
}
