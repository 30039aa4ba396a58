/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <workerd/gpus.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/printable.h>
#include <base/stamp.h>

#define PATIENCE_NS (INT64_C(20) * 1000000000)

static int start(const char *program, int output, pid_t *out_pid)
{
	char *argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)WRK_HOST_GPUS, NULL};
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn(out_pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* Reads to the end of file. Returns 0 or -ETIMEDOUT. */
static int read_answer(int fd, char *out, size_t size)
{
	int64_t end = fragi_now_ns() + PATIENCE_NS;
	size_t used = 0;

	for (;;) {
		int64_t left = end - fragi_now_ns();
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		int r = poll(&wait, 1, left > 0 ? (int)(left / 1000000) : 0);
		ssize_t n = r > 0 ? read(fd, out + used, size - 1 - used) : 0;

		if (r == 0)
			return -ETIMEDOUT;
		if ((r < 0 || n < 0) && errno == EINTR)
			continue;
		if (r < 0 || n <= 0) {
			out[used] = '\0';
			return 0;
		}
		used += (size_t)n;
	}
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status;
}

int wrk_gpus_survey(const char *program, uint32_t *out_count, uint64_t *out_bytes,
		    struct frag_err *err)
{
	char answer[512] = "";
	int output[2], status, r;
	uint32_t count;
	uint64_t bytes;
	pid_t pid;

	if (pipe2(output, O_CLOEXEC) < 0)
		return frag_err_set(err, -errno, "%s", frag_strerror(-errno));
	r = start(program, output[1], &pid);
	close(output[1]);
	if (r < 0) {
		close(output[0]);
		return frag_err_set(err, r, "%s: %s", program, frag_strerror(r));
	}
	r = read_answer(output[0], answer, sizeof(answer));
	close(output[0]);
	if (r < 0)
		kill(pid, SIGKILL);
	status = wait_for(pid);
	if (r < 0)
		return frag_err_set(err, r, "the driver of NVIDIA has not answered for %d s",
				    (int)(PATIENCE_NS / 1000000000));
	if (status == 0 && sscanf(answer, "%" SCNu32 " %" SCNu64, &count, &bytes) == 2) {
		*out_count = count;
		*out_bytes = bytes;
		return 0;
	}
	answer[strcspn(answer, "\n")] = '\0';
	fragi_make_printable(answer, '?');
	return frag_err_set(err, -ENODEV, "%s",
			    answer[0] != '\0' ? answer : "fraghost --gpus failed");
}
