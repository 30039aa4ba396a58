// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/handover.h>

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* One that can be bound or connected to, and its address. */
static int make(const char *name, struct sockaddr_un *address, socklen_t *out_bytes)
{
	size_t length = strlen(name);
	int fd;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (length > FRAGI_HANDOVER_NAME_MAX || length + 1 > sizeof(address->sun_path))
		return -ENAMETOOLONG;
	memcpy(address->sun_path + 1, name, length);
	*out_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 ? -errno : fd;
}

int fragi_handover_listen(const char *name, int *out_fd)
{
	struct sockaddr_un address;
	socklen_t bytes;
	int fd = make(name, &address, &bytes), r;

	if (fd < 0)
		return fd;
	if (bind(fd, (const struct sockaddr *)&address, bytes) < 0 || listen(fd, SOMAXCONN) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	*out_fd = fd;
	return 0;
}

/* Closes it when its other end is another user's. */
static int check_user(int fd)
{
	struct ucred other;
	socklen_t size = sizeof(other);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid())
		return 0;
	close(fd);
	return -EACCES;
}

int fragi_handover_connect(const char *name, int *out_fd)
{
	struct sockaddr_un address;
	socklen_t bytes;
	int fd = make(name, &address, &bytes), r;

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)&address, bytes) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	r = check_user(fd);
	if (r == 0)
		*out_fd = fd;
	return r;
}

int fragi_handover_accept(int listener, int *out_fd)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), r;

	if (fd < 0)
		return -errno;
	r = check_user(fd);
	if (r == 0)
		*out_fd = fd;
	return r;
}

int fragi_handover_send(int fd, const void *bytes, size_t size, const int *fds, size_t count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(FRAGI_HANDOVER_FDS_MAX * sizeof(int))] = {
		0};
	struct iovec part = {(void *)(uintptr_t)bytes, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *head;

	assert(count <= FRAGI_HANDOVER_FDS_MAX && size > 0);
	if (count > 0) {
		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(head), fds, count * sizeof(int));
	}
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Closes the descriptors of a packet beyond `keep`. Returns how many it had. */
static size_t take_fds(struct msghdr *message, int *out_fds, size_t keep)
{
	size_t count = 0, here;
	int fd;

	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head != NULL;
	     head = CMSG_NXTHDR(message, head)) {
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		here = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < here; i++) {
			memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
			if (count < keep)
				out_fds[count] = fd;
			else
				close(fd);
			count++;
		}
	}
	return count;
}

int fragi_handover_receive(int fd, void *out_bytes, size_t size, int *out_fds, size_t count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(FRAGI_HANDOVER_FDS_MAX * sizeof(int))];
	struct iovec part = {out_bytes, size};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	int fds[FRAGI_HANDOVER_FDS_MAX];
	size_t got;
	ssize_t n;

	assert(count <= FRAGI_HANDOVER_FDS_MAX);
	n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	got = take_fds(&message, fds, count);
	if ((size_t)n == size && got == count &&
	    (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) {
		for (size_t i = 0; i < count; i++)
			out_fds[i] = fds[i];
		return 0;
	}
	for (size_t i = 0; i < got && i < count; i++)
		close(fds[i]);
	if (got < count && (message.msg_flags & MSG_CTRUNC) != 0)
		return -EMFILE; /* the kernel keeps those that it cannot give */
	return n == 0 && got == 0 ? -ECONNRESET : -EBADMSG;
}
