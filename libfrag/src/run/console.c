// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "console"
#include <base/alloc.h>
#include <base/log.h>
#include <base/nowait.h>
#include <graph/op.h>
#include <run/console.h>

/*
 * The streams are unbuffered, so that each call arrives here on the thread that made it; a line is
 * collected in memory of that thread until it is whole, its operator changes, or the thread ends.
 */
#define LINE_BYTES 2048

struct line {
	const struct frag_op *op;  /* that began it; compared, never followed */
	size_t prefix_bytes, used; /* used includes the prefix; 0: no line has begun */
	char bytes[LINE_BYTES];
};

static FILE *saved_stdout, *saved_stderr, *console_stdout, *console_stderr;
static pthread_key_t line_key;

/*
 * What is written outside of callbacks. Returns how many bytes were written, with errno if not all;
 * what nobody reads is dropped, and counts as written.
 */
static size_t pass_on(int fd, const char *bytes, size_t size)
{
	int64_t patience_ns = fragi_log_is_dropping() ? 0 : FRAGI_LOG_PATIENCE_NS;
	size_t written = fragi_write_within(fd, bytes, size, patience_ns);

	if (written == size || errno != EAGAIN)
		return written;
	fragi_log_drop();
	return size;
}

static void line_flush(struct line *line)
{
	line->bytes[line->used++] = '\n';
	fragi_log_put_within(line->bytes, line->used, FRAGI_LOG_PATIENCE_NS);
	line->used = 0;
}

static void line_end(void *arg)
{
	struct line *line = arg;

	if (line->used > line->prefix_bytes)
		line_flush(line);
	fragi_free(line);
}

static struct line *line_of_thread(void)
{
	struct line *line = pthread_getspecific(line_key);

	if (line != NULL)
		return line;
	line = fragi_calloc(1, sizeof(*line));
	if (line != NULL && pthread_setspecific(line_key, line) != 0) {
		fragi_free(line);
		return NULL;
	}
	return line;
}

static void line_add(struct line *line, const struct frag_op *op, const char *bytes, size_t size)
{
	const char *end = bytes + size;

	while (bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		size_t take = (size_t)((newline != NULL ? newline : end) - bytes), room;

		if (line->used == 0) {
			line->op = op;
			line->prefix_bytes =
				(size_t)snprintf(line->bytes, LINE_BYTES / 2,
						 "%s%s: ", fragi_log_line_begin(), op->subject);
			if (line->prefix_bytes >= LINE_BYTES / 2)
				line->prefix_bytes = LINE_BYTES / 2 - 1;
			line->used = line->prefix_bytes;
		}
		room = LINE_BYTES - 1 - line->used;
		if (take > room) {
			take = room;
			newline = NULL;
		}
		memcpy(line->bytes + line->used, bytes, take);
		line->used += take;
		bytes += take;
		if (newline != NULL)
			bytes++;
		if (newline != NULL || line->used == LINE_BYTES - 1)
			line_flush(line);
	}
}

static ssize_t console_write(void *cookie, const char *bytes, size_t size)
{
	int fd = cookie == &saved_stdout ? STDOUT_FILENO : STDERR_FILENO;
	const struct frag_op *op = fragi_current()->op;
	struct line *line = pthread_getspecific(line_key);

	if (line != NULL && line->used > 0 && line->op != op)
		line_flush(line);
	if (op != NULL)
		line = line_of_thread();
	if (op == NULL || line == NULL)
		return (ssize_t)pass_on(fd, bytes, size);
	line_add(line, op, bytes, size);
	return (ssize_t)size;
}

static FILE *console_open(FILE **cookie)
{
	FILE *file = fopencookie(cookie, "w", (cookie_io_functions_t){.write = console_write});

	if (file != NULL)
		setvbuf(file, NULL, _IONBF, 0);
	return file;
}

int fragi_console_begin(void)
{
	if (pthread_key_create(&line_key, line_end) != 0)
		return -ENOMEM;
	console_stdout = console_open(&saved_stdout);
	console_stderr = console_open(&saved_stderr);
	if (console_stdout == NULL || console_stderr == NULL)
		goto err_files;
	fflush(stdout);
	fflush(stderr);
	saved_stdout = stdout;
	saved_stderr = stderr;
	stdout = console_stdout;
	stderr = console_stderr;
	return 0;

err_files:
	if (console_stdout != NULL)
		fclose(console_stdout);
	if (console_stderr != NULL)
		fclose(console_stderr);
	pthread_key_delete(line_key);
	return -ENOMEM;
}

void fragi_console_end(void)
{
	struct line *line = pthread_getspecific(line_key);

	stdout = saved_stdout;
	stderr = saved_stderr;
	if (line != NULL) {
		pthread_setspecific(line_key, NULL);
		line_end(line);
	}
	/*
	 * The streams stay open and the key stays: a plugin's thread, or its C++ library, may have
	 * kept them.
	 */
}
