/* SPDX-License-Identifier: Apache-2.0 */
#include <workerd/lines.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>

static void write_all(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);

		if (n > 0) {
			bytes += n;
			size -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			if (poll(&wait, 1, 100) <= 0)
				return;
		} else if (n == 0 || errno != EINTR) {
			return;
		}
	}
}

static void keep(struct wrk_lines *lines, const char *line, size_t size)
{
	char *copy = fragi_malloc(size + 1);

	if (copy == NULL) /* one line of the report less */
		return;
	memcpy(copy, line, size);
	copy[size] = '\0';
	fragi_free(lines->last[lines->next]);
	lines->last[lines->next] = copy;
	lines->next = (lines->next + 1) % FW_LINES_MAX;
	if (lines->count < FW_LINES_MAX)
		lines->count++;
}

static void flush(struct wrk_lines *lines, int fd)
{
	keep(lines, lines->partial, lines->partial_bytes);
	lines->partial[lines->partial_bytes++] = '\n';
	write_all(fd, lines->partial, lines->partial_bytes);
	lines->partial_bytes = 0;
}

void wrk_lines_feed(struct wrk_lines *lines, const char *bytes, size_t size, int fd)
{
	const char *end = bytes + size;

	while (bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		size_t room = sizeof(lines->partial) - 1 - lines->partial_bytes;
		size_t take = (size_t)((newline != NULL ? newline : end) - bytes);
		bool whole = newline != NULL && take <= room;

		if (take > room)
			take = room;
		memcpy(lines->partial + lines->partial_bytes, bytes, take);
		lines->partial_bytes += take;
		bytes += take + (whole ? 1 : 0);
		if ((whole && !(lines->cut && lines->partial_bytes == 0)) ||
		    lines->partial_bytes == sizeof(lines->partial) - 1)
			flush(lines, fd);
		lines->cut = !whole && lines->partial_bytes == 0;
	}
}

void wrk_lines_end(struct wrk_lines *lines, int fd)
{
	if (lines->partial_bytes > 0)
		flush(lines, fd);
}

size_t wrk_lines_last(const struct wrk_lines *lines, const char **out_lines)
{
	size_t first = (lines->next + FW_LINES_MAX - lines->count) % FW_LINES_MAX;

	for (size_t i = 0; i < lines->count; i++)
		out_lines[i] = lines->last[(first + i) % FW_LINES_MAX];
	return lines->count;
}

void wrk_lines_fini(struct wrk_lines *lines)
{
	for (size_t i = 0; i < FW_LINES_MAX; i++)
		fragi_free(lines->last[i]);
	memset(lines, 0, sizeof(*lines));
}
