// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* pipe2 */
#include <workerd/gpus.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/printable.h>
#include <workerd/strays.h>

#define PATIENCE_MS 20000

static int spawn(const char *program, int output, pid_t *out_pid)
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

void wrk_gpu_survey_end(struct wrk_gpu_survey *survey)
{
	if (survey->pid == 0)
		return;
	kill(survey->pid, SIGKILL);
	/* One that is held in the driver ends when it comes back, and is reaped with strays. */
	if (waitpid(survey->pid, NULL, WNOHANG) == survey->pid)
		wrk_strays_reaped(survey->pid);
	survey->pid = 0;
	uv_close((uv_handle_t *)&survey->output, NULL);
	uv_close((uv_handle_t *)&survey->patience, NULL);
}

static void on_late(uv_timer_t *timer)
{
	struct wrk_gpu_survey *survey = timer->data;
	struct frag_err err = FRAG_ERR_INIT;
	int r = frag_err_set(&err, -ETIMEDOUT, "the driver of NVIDIA has not answered for %d s",
			     PATIENCE_MS / 1000);

	wrk_gpu_survey_end(survey);
	survey->done(survey, r, 0, 0, "", &err);
}

static void take_answer(struct wrk_gpu_survey *survey)
{
	struct frag_err err = FRAG_ERR_INIT;
	const char *parts = "";
	uint32_t count = 0;
	uint64_t bytes = 0;
	int r = 0;

	survey->answer[survey->used] = '\0';
	if (strchr(survey->answer, '\n') == NULL ||
	    sscanf(survey->answer, "%" SCNu32 " %" SCNu64, &count, &bytes) != 2) {
		survey->answer[strcspn(survey->answer, "\n")] = '\0';
		fragi_make_printable(survey->answer, '?');
		r = frag_err_set(&err, -ENODEV, "%s",
				 survey->answer[0] != '\0' ? survey->answer
							   : "fraghost --gpus failed");
	} else {
		parts = strchr(survey->answer, '\n') + 1;
	}
	survey->done(survey, r, count, bytes, parts, &err);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
	struct wrk_gpu_survey *survey = handle->data;

	(void)wanted;
	*out = uv_buf_init(survey->answer + survey->used,
			   (unsigned int)(sizeof(survey->answer) - 1 - survey->used));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct wrk_gpu_survey *survey = stream->data;

	(void)buf;
	if (n > 0)
		survey->used += (size_t)n;
	if (n >= 0)
		return;
	wrk_gpu_survey_end(survey); /* it has said all, or more than there is room for */
	take_answer(survey);
}

int wrk_gpu_survey_start(struct wrk_gpu_survey *survey, uv_loop_t *loop, const char *program,
			 struct frag_err *err)
{
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return frag_err_set(err, -errno, "%s", frag_strerror(-errno));
	r = spawn(program, fds[1], &survey->pid);
	close(fds[1]);
	if (r < 0) {
		survey->pid = 0;
		close(fds[0]);
		return frag_err_set(err, r, "%s: %s", program, frag_strerror(r));
	}
	wrk_strays_except(survey->pid);
	survey->used = 0;
	survey->output.data = survey->patience.data = survey;
	uv_pipe_init(loop, &survey->output, 0);
	uv_timer_init(loop, &survey->patience);
	uv_timer_start(&survey->patience, on_late, PATIENCE_MS, 0);
	r = uv_pipe_open(&survey->output, fds[0]);
	if (r < 0)
		close(fds[0]);
	else
		r = uv_read_start((uv_stream_t *)&survey->output, on_room, on_read);
	if (r == 0)
		return 0;
	wrk_gpu_survey_end(survey);
	return frag_err_set(err, r, "%s", frag_strerror(r));
}

struct answer {
	int r;
	uint32_t count;
	uint64_t bytes;
	char *mig;
	struct frag_err *err;
};

static void keep_answer(struct wrk_gpu_survey *survey, int r, uint32_t count, uint64_t bytes,
			const char *parts, const struct frag_err *err)
{
	struct answer *answer = survey->arg;

	answer->r = r;
	answer->count = count;
	answer->bytes = bytes;
	wrk_gpu_share_text(parts, answer->mig);
	*answer->err = *err;
}

int wrk_gpus_survey(const char *program, uint32_t *out_count, uint64_t *out_bytes,
		    char out_mig[static WRK_MIG_TEXT_MAX], struct frag_err *err)
{
	struct answer answer = {.mig = out_mig, .err = err};
	struct wrk_gpu_survey survey = {.done = keep_answer, .arg = &answer};
	uv_loop_t loop;
	int r = uv_loop_init(&loop);

	if (r < 0)
		return frag_err_set(err, r, "%s", frag_strerror(r));
	r = wrk_gpu_survey_start(&survey, &loop, program, err);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	if (r == 0)
		r = answer.r;
	if (r < 0)
		return r;
	*out_count = answer.count;
	*out_bytes = answer.bytes;
	return 0;
}
