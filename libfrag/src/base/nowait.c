// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/nowait.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <base/stamp.h>

#define LOOK_NS INT64_C(50000000)
#define PAUSE_NS 1000000L

static bool is_ready(int fd, int timeout_ms)
{
	struct pollfd fds = {.fd = fd, .events = POLLOUT};

	return poll(&fds, 1, timeout_ms) > 0;
}

/* A descriptor of this process alone for the same terminal or pipe; -1: it may not be opened. */
static int open_again(int fd)
{
	char path[32] = "/proc/self/fd/";
	size_t at = 14, digits = 1;

	for (int rest = fd; rest >= 10; rest /= 10)
		digits++;
	path[at + digits] = '\0';
	for (; digits > 0; fd /= 10)
		path[at + --digits] = (char)('0' + fd % 10);
	return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

ssize_t fragi_write_nowait(int fd, const void *bytes, size_t size)
{
	const struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
	struct stat st;
	ssize_t n;
	int own, saved;

	if (fstat(fd, &st) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return write(fd, bytes, size);
	n = pwritev2(fd, &part, 1, -1, RWF_NOWAIT);
	if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL))
		return n;
	/* Terminals, and pipes of kernels before 6.5. */
	own = open_again(fd);
	if (own >= 0) {
		n = write(own, bytes, size);
		saved = errno;
		close(own);
		errno = saved;
		return n;
	}
	/* Another user's. Blocks when another process takes the room in this moment. */
	if (!is_ready(fd, 0)) {
		errno = EAGAIN;
		return -1;
	}
	return write(fd, bytes, size < PIPE_BUF ? size : PIPE_BUF);
}

size_t fragi_write_within(int fd, const void *bytes, size_t size, int64_t patience_ns)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	const char *at = bytes;
	int64_t until_ns = 0, left_ns;
	size_t written = 0;
	bool was_ready = false;

	while (written < size) {
		ssize_t n = fragi_write_nowait(fd, at + written, size - written);

		if (n > 0) {
			written += (size_t)n;
			was_ready = false;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || errno != EAGAIN || patience_ns <= 0)
			break;
		if (until_ns == 0)
			until_ns = fragi_now_ns() + patience_ns;
		left_ns = until_ns - fragi_now_ns();
		if (left_ns <= 0) {
			errno = EAGAIN;
			break;
		}
		if (was_ready) /* for less than the kernel wants to take as a whole */
			nanosleep(&pause, NULL);
		was_ready =
			is_ready(fd, (int)((left_ns < LOOK_NS ? left_ns : LOOK_NS) / 1000000) + 1);
	}
	return written;
}
