// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* pipe2 */
#include <workerd/examiner.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/error.h>

#include <workerd/strays.h>

void wrk_examiner_init(struct wrk_examiner *examiner, const char *driver, const char *certificate)
{
	const char *const argv[] = {
		examiner->program, "doctor", "--for-worker",
		"--address",       driver,   certificate != NULL ? "--cert" : NULL,
		certificate,       NULL};
	char self[sizeof(examiner->program) - sizeof("/fragctl")] = "";
	const char *slash;

	(void)!readlink("/proc/self/exe", self, sizeof(self) - 1);
	slash = strrchr(self, '/');
	if (slash == NULL)
		return;
	snprintf(examiner->program, sizeof(examiner->program), "%.*s/fragctl", (int)(slash - self),
		 self);
	memcpy(examiner->argv, argv, sizeof(argv));
}

/* A line is "check<TAB>ok<TAB>found<TAB>cost<TAB>mend", or "wrong" in place of "ok". */
static void read_line(char *line, struct fw_finding *out)
{
	const char *words[5] = {"", "", "", "", ""};

	for (size_t i = 0; i < FRAG_COUNT_OF(words) && line != NULL; i++)
		words[i] = strsep(&line, "\t");
	*out = (struct fw_finding){words[0], strcmp(words[1], "ok") != 0, words[2], words[3],
				   words[4]};
}

static void answer(struct wrk_examiner *examiner)
{
	struct fw_examined *examined = &examiner->answer.examined;
	char *rest = examiner->text, *end;

	examiner->text[examiner->used] = '\0';
	examiner->answer = (struct fw_message){.kind = FW_EXAMINED};
	examined->findings = examiner->findings;
	for (; (end = strchr(rest, '\n')) != NULL && examined->finding_count < FW_FINDINGS_MAX;
	     rest = end + 1) {
		*end = '\0';
		read_line(rest, &examiner->findings[examined->finding_count++]);
	}
	if (examiner->why_not[0] == '\0' && examined->finding_count == 0)
		snprintf(examiner->why_not, sizeof(examiner->why_not),
			 "`%.200s doctor` prints nothing; run it there", examiner->program);
	examined->why_not = examiner->why_not;
	examiner->done(examiner->arg, &examiner->answer);
}

static void on_closed(uv_handle_t *handle)
{
	struct wrk_examiner *examiner = handle->data;

	examiner->is_busy = false;
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
	struct wrk_examiner *examiner = handle->data;

	(void)wanted;
	*out = uv_buf_init(examiner->text + examiner->used,
			   (unsigned int)(sizeof(examiner->text) - 1 - examiner->used));
}

/* Also when there is no room for more: libuv says so by an error. */
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct wrk_examiner *examiner = stream->data;
	int status = 0;

	(void)buf;
	if (n >= 0) {
		examiner->used += (size_t)n;
		return;
	}
	if (n != UV_EOF)
		kill(examiner->pid, SIGKILL);
	wrk_strays_reaped(examiner->pid);
	if (waitpid(examiner->pid, &status, 0) == examiner->pid && WIFSIGNALED(status))
		snprintf(examiner->why_not, sizeof(examiner->why_not),
			 WTERMSIG(status) == SIGALRM
				 ? "`%.200s doctor` hangs there; what it has found before is below"
				 : "`%.200s doctor` was killed; run it there",
			 examiner->program);
	uv_close((uv_handle_t *)&examiner->output, on_closed);
	answer(examiner);
}

static int spawn(struct wrk_examiner *examiner, int output)
{
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn(&examiner->pid, examiner->program, &actions, NULL,
				(char *const *)(uintptr_t)examiner->argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int start(struct wrk_examiner *examiner, uv_loop_t *loop)
{
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	r = spawn(examiner, fds[1]);
	close(fds[1]);
	if (r == 0)
		wrk_strays_except(examiner->pid);
	if (r < 0) {
		close(fds[0]);
		return r;
	}
	uv_pipe_init(loop, &examiner->output, 0);
	examiner->output.data = examiner;
	examiner->is_busy = true;
	r = uv_pipe_open(&examiner->output, fds[0]);
	if (r < 0)
		close(fds[0]);
	else
		r = uv_read_start((uv_stream_t *)&examiner->output, on_room, on_read);
	if (r < 0)
		wrk_examiner_end(examiner);
	return r;
}

void wrk_examiner_begin(struct wrk_examiner *examiner, uv_loop_t *loop,
			void (*done)(void *arg, const struct fw_message *answer), void *arg)
{
	int r;

	if (examiner->is_busy)
		return;
	examiner->done = done;
	examiner->arg = arg;
	examiner->used = 0;
	examiner->why_not[0] = '\0';
	if (examiner->program[0] == '\0') {
		snprintf(examiner->why_not, sizeof(examiner->why_not),
			 "it is a part of the program that runs the graph; run `fragctl doctor`");
		answer(examiner);
		return;
	}
	r = start(examiner, loop);
	if (r == 0)
		return;
	snprintf(examiner->why_not, sizeof(examiner->why_not),
		 "cannot run %.200s: %s; install fragctl beside workerd", examiner->program,
		 frag_strerror(r));
	answer(examiner);
}

void wrk_examiner_end(struct wrk_examiner *examiner)
{
	if (!examiner->is_busy || uv_is_closing((uv_handle_t *)&examiner->output))
		return;
	kill(examiner->pid, SIGKILL);
	(void)waitpid(examiner->pid, NULL, 0);
	uv_close((uv_handle_t *)&examiner->output, on_closed);
}
