// SPDX-License-Identifier: Apache-2.0
#include "pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libavutil/error.h>
#include <libavutil/mem.h>

#define BUFFER_BYTES (1 << 16)

#define RETRY_MS 50  /* between two looks for a reader */
#define AFTER_MS 500 /* a reader that takes nothing for so long after the stop is given up */

struct pipe {
	int fd;
	struct video_watch *watch; /* of a reading end */
	int stop_fd;               /* of a writing end */
};

bool video_pipe_is(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* A pipe without a writer has ended as soon as somebody has written; before, it is waited for. */
static int read_pipe(void *arg, uint8_t *to, int size)
{
	struct pipe *pipe = arg;
	struct pollfd fds[] = {{.fd = pipe->watch->stop_fd, .events = POLLIN},
			       {.fd = pipe->fd, .events = POLLIN}};

	for (;;) {
		ssize_t n;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return AVERROR(errno);
		if (fds[0].revents != 0) {
			pipe->watch->is_stopped = true;
			return AVERROR_EXIT;
		}
		if (fds[1].revents == 0)
			continue;
		n = read(pipe->fd, to, (size_t)size);
		if (n >= 0)
			return n > 0 ? (int)n : AVERROR_EOF;
		if (errno != EINTR && errno != EAGAIN)
			return AVERROR(errno);
	}
}

int video_pipe_open(const char *path, struct video_watch *watch, AVIOContext **out)
{
	struct pipe *pipe = calloc(1, sizeof(*pipe));
	uint8_t *buffer = av_malloc(BUFFER_BYTES);
	int r = AVERROR(ENOMEM);

	if (pipe == NULL || buffer == NULL)
		goto err_free;
	pipe->watch = watch;
	/* O_NONBLOCK: open() would wait for a writer. */
	pipe->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (pipe->fd < 0) {
		r = AVERROR(errno);
		goto err_free;
	}
	*out = avio_alloc_context(buffer, BUFFER_BYTES, 0, pipe, read_pipe, NULL, NULL);
	if (*out != NULL)
		return 0;
	close(pipe->fd);
err_free:
	av_free(buffer);
	free(pipe);
	return r;
}

int video_pipe_open_output(const char *path, int stop_fd)
{
	struct pollfd stop = {.fd = stop_fd, .events = POLLIN};

	for (;;) {
		/* O_NONBLOCK: open() would wait for a reader, and write() for room. */
		int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

		if (fd >= 0 || errno != ENXIO)
			return fd >= 0 ? fd : -errno;
		if (poll(&stop, 1, RETRY_MS) > 0)
			return -ECANCELED;
	}
}

static int write_pipe(void *arg, uint8_t *from, int size)
{
	const struct pipe *pipe = arg;
	struct pollfd fds[] = {{.fd = pipe->fd, .events = POLLOUT},
			       {.fd = pipe->stop_fd, .events = POLLIN}};
	int done = 0;

	while (done < size) {
		ssize_t n = write(pipe->fd, from + done, (size_t)(size - done));

		if (n > 0)
			done += (int)n;
		else if (errno == EAGAIN && poll(fds, 2, -1) > 0 && fds[0].revents == 0 &&
			 poll(fds, 1, AFTER_MS) == 0)
			return AVERROR(ETIMEDOUT);
		else if (errno != EAGAIN && errno != EINTR)
			return AVERROR(errno);
	}
	return size;
}

int video_pipe_write_to(int fd, int stop_fd, AVIOContext **out)
{
	struct pipe *pipe = calloc(1, sizeof(*pipe));
	uint8_t *buffer = av_malloc(BUFFER_BYTES);

	if (pipe != NULL) {
		pipe->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		pipe->stop_fd = stop_fd;
		if (buffer != NULL && pipe->fd >= 0)
			*out = avio_alloc_context(buffer, BUFFER_BYTES, 1, pipe, NULL, write_pipe,
						  NULL);
		if (*out != NULL)
			return 0;
		close(pipe->fd);
	}
	av_free(buffer);
	free(pipe);
	return AVERROR(ENOMEM);
}

void video_pipe_close(AVIOContext *io)
{
	struct pipe *pipe;

	if (io == NULL)
		return;
	pipe = io->opaque;
	close(pipe->fd);
	free(pipe);
	av_freep(&io->buffer);
	avio_context_free(&io);
}
