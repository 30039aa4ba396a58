// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* pipe2 */
#include <workerd/gpu_load.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/stamp.h>
#include <workerd/strays.h>

#define UNSEEN_NS INT64_C(5000000000) /* nobody looks any more: the child ends */

static void on_closed(uv_handle_t *handle)
{
	struct wrk_gpu_reader *reader = handle->data;

	reader->is_closing = false;
}

/* The child is gone, or is not waited for: wait_flags. One that has said nothing never will. */
static void forget(struct wrk_gpu_reader *reader, int wait_flags)
{
	if (waitpid(reader->pid, NULL, wait_flags) == reader->pid)
		wrk_strays_reaped(reader->pid);
	reader->has_failed = reader->last.count == 0;
	reader->pid = 0;
	reader->last = (struct wrk_gpu_load){0};
	reader->is_closing = true;
	uv_close((uv_handle_t *)&reader->output, on_closed);
}

static void take_line(struct wrk_gpu_reader *reader)
{
	struct wrk_gpu_load load;

	if (sscanf(reader->line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &load.count,
		   &load.busy_permille, &load.memory_bytes, &load.memory_used_bytes) == 4)
		reader->last = load;
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
	struct wrk_gpu_reader *reader = handle->data;

	(void)wanted;
	*out = uv_buf_init(reader->line + reader->used,
			   (unsigned int)(sizeof(reader->line) - 1 - reader->used));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct wrk_gpu_reader *reader = stream->data;
	char *end;

	(void)buf;
	if (n < 0) { /* it ends, or has */
		forget(reader, 0);
		return;
	}
	if (fragi_boot_ns() - reader->asked_ns > UNSEEN_NS)
		kill(reader->pid, SIGKILL);
	reader->used += (size_t)n;
	reader->line[reader->used] = '\0';
	while ((end = strchr(reader->line, '\n')) != NULL) {
		*end = '\0';
		take_line(reader);
		reader->used -= (size_t)(end + 1 - reader->line);
		memmove(reader->line, end + 1, reader->used + 1);
	}
	if (reader->used == sizeof(reader->line) - 1)
		reader->used = 0; /* no line of fraghost is as long as that */
}

static int spawn(struct wrk_gpu_reader *reader, int output)
{
	char *argv[] = {(char *)(uintptr_t)reader->program, (char *)(uintptr_t)WRK_HOST_GPU_LOAD,
			NULL};
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn(&reader->pid, reader->program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static void start(struct wrk_gpu_reader *reader, uv_loop_t *loop)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	reader->used = 0;
	reader->has_failed = spawn(reader, fds[1]) < 0;
	close(fds[1]);
	if (reader->has_failed) {
		reader->pid = 0;
		close(fds[0]);
		return;
	}
	wrk_strays_except(reader->pid);
	uv_pipe_init(loop, &reader->output, 0);
	reader->output.data = reader;
	if (uv_pipe_open(&reader->output, fds[0]) < 0)
		close(fds[0]);
	else if (uv_read_start((uv_stream_t *)&reader->output, on_room, on_read) == 0)
		return;
	wrk_gpu_load_end(reader);
}

void wrk_gpu_load_read(struct wrk_gpu_reader *reader, uv_loop_t *loop, struct fw_facts *out)
{
	reader->asked_ns = fragi_boot_ns();
	if (reader->program != NULL && reader->pid == 0 && !reader->is_closing &&
	    !reader->has_failed)
		start(reader, loop);
	out->gpus = reader->last.count;
	out->gpu_busy_permille = reader->last.busy_permille;
	out->gpu_memory_bytes = reader->last.memory_bytes;
	out->gpu_memory_used_bytes = reader->last.memory_used_bytes;
}

void wrk_gpu_load_end(struct wrk_gpu_reader *reader)
{
	if (reader->pid == 0)
		return;
	kill(reader->pid, SIGKILL);
	forget(reader, WNOHANG);
}
