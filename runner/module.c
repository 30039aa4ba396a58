// SPDX-License-Identifier: Apache-2.0
/*
 * The module that libfrag opens for frag/run.h: a runner as a guest of somebody's program. Its loop
 * has a thread of its own, and the host another one; both block all signals that are not faults,
 * since signals are the program's. An async handle carries what other threads want into the loop.
 */
#define LOG_TOPIC "run"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/kernel.h>
#include <base/log.h>
#include <run/application.h>
#include <runner/runner.h>
#include <runner/thread.h>
#include <track/summary.h>
#include <workerd/host/host.h>
#include <workerd/host/process.h>

struct fragi_runner {
	/* constant once started */
	struct fragi_runner_app app;
	pthread_t thread;
	uv_async_t wake; /* any thread */
	/* the loop's */
	uv_loop_t loop;
	struct runner runner;
	unsigned int stops_done;
	/* under lock */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool is_closed; /* the loop takes nothing any more */
	bool has_ended;
	unsigned int stops_wanted;
	bool is_stuck; /* an operator hangs */
	int result;
	struct frag_err err;
	char *summary;
};

static pthread_mutex_t present_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct fragi_runner *present; /* the one that runs in this process */

static int occupy(const struct fragi_runner *runner, struct frag_err *err)
{
	const char *why = NULL;

	pthread_mutex_lock(&present_lock);
	if (runner_thread_is_stuck())
		why = "an operator of an application that has ended still hangs in this process; start another process";
	else if (present != NULL)
		why = "another application runs in this process; wait for its end";
	else
		present = runner;
	pthread_mutex_unlock(&present_lock);
	return why == NULL ? 0
			   : frag_err_set(err, -EBUSY, "cannot start %s: %s",
					  runner->app.spec->application, why);
}

static void vacate(void)
{
	pthread_mutex_lock(&present_lock);
	present = NULL;
	pthread_mutex_unlock(&present_lock);
}

/* What the runner reports, on the loop's thread. */

static void report_line(const struct fragi_runner *runner, const char *text)
{
	if (runner->app.error != NULL) {
		runner->app.error(runner->app.arg, text);
		return;
	}
	fragi_log_print("%s\n", text);
}

static void on_log(void *arg, const struct drv_action *action)
{
	const struct fragi_runner *runner = arg;

	if (action->level == FRAGI_LOG_ERROR)
		report_line(runner, action->text);
	else if (action->level == FRAGI_LOG_WARN)
		log_warn(action->subject, "%s", action->text);
	else
		log_debug(action->subject, "%s", action->text);
}

/* The errno of a failure, as frag/run.h lists them. */
static int errno_of(enum fragi_failure code)
{
	if (code == FRAGI_FAILURE_OUT_OF_MEMORY)
		return -ENOMEM;
	switch (fragi_failure_exit(code)) {
	case FRAGI_EXIT_USAGE:
		return -EINVAL;
	case FRAGI_EXIT_MISSING:
		return -ENOENT;
	default:
		return -EIO;
	}
}

static char *render(const struct fragi_summary *summary)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (out == NULL)
		return NULL;
	r = fragi_summary_print_json(summary, out);
	if (fclose(out) == 0 && r == 0)
		return text;
	free(text);
	return NULL;
}

/* The loop takes nothing any more, and ends when what the runner has on it is closed. */
static void close_loop(struct fragi_runner *runner)
{
	runner->is_closed = true;
	uv_close((uv_handle_t *)&runner->wake, NULL);
}

static int on_ended(void *arg, const struct fragi_summary *ended)
{
	struct fragi_runner *runner = arg;
	struct fragi_summary summary = *ended;

	if (summary.result == FRAGI_SUMMARY_STOPPED)
		summary.exit_code = FRAGI_EXIT_OK;
	pthread_mutex_lock(&runner->lock);
	runner->summary = render(&summary);
	if (summary.result == FRAGI_SUMMARY_FAILED) {
		const struct fragi_summary_failure *failure = &summary.failure;

		runner->result = errno_of(failure->code);
		frag_err_set(&runner->err, runner->result, "%s",
			     failure->sentence != NULL ? failure->sentence : "it failed");
		fragi_err_classify(&runner->err, failure->code, failure->op);
	}
	close_loop(runner);
	pthread_mutex_unlock(&runner->lock);
	return summary.exit_code;
}

static int on_broken(void *arg, int r)
{
	struct fragi_runner *runner = arg;

	pthread_mutex_lock(&runner->lock);
	runner->result = r;
	frag_err_set(&runner->err, r, "%s cannot go on: %s", runner->app.spec->application,
		     frag_strerror(r));
	close_loop(runner);
	pthread_mutex_unlock(&runner->lock);
	report_line(runner, runner->err.text);
	return fragi_failure_exit(FRAGI_FAILURE_OTHER);
}

static const struct runner_ops runner_ops = {.log = on_log, .ended = on_ended, .broken = on_broken};

static void on_wake(uv_async_t *wake)
{
	struct fragi_runner *runner = wake->data;
	unsigned int wanted;

	pthread_mutex_lock(&runner->lock);
	wanted = runner->stops_wanted;
	pthread_mutex_unlock(&runner->lock);
	while (runner->stops_done < wanted && !runner->runner.is_over) {
		runner->stops_done++;
		runner_stop(&runner->runner, SIGTERM);
	}
}

/* The thread of the loop. */

static void *thread_main(void *arg)
{
	struct fragi_runner *runner = arg;
	const struct runner_config config = {
		.name = "this process",
		.source = runner->app.source,
		.app_folder = runner->app.spec->app_folder,
		.library_path = runner->app.library_path,
		.host = &runner_guest_thread,
		.is_guest = true,
	};
	int r = runner_init(&runner->runner, &runner->loop, &config, &runner_ops, runner);
	bool is_stuck;

	if (r < 0)
		(void)on_broken(runner, r);
	uv_run(&runner->loop, UV_RUN_DEFAULT);
	is_stuck = !runner_thread_join();
	if (!is_stuck && r == 0)
		runner_fini(&runner->runner);
	uv_loop_close(&runner->loop);
	vacate();
	pthread_mutex_lock(&runner->lock);
	runner->is_stuck = is_stuck;
	runner->has_ended = true;
	pthread_cond_broadcast(&runner->ended);
	pthread_mutex_unlock(&runner->lock);
	return NULL;
}

/* All signals but faults, which must reach the program's handlers. */
static int create_thread(struct fragi_runner *runner)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	sigset_t all, before;
	int r;

	sigfillset(&all);
	for (size_t i = 0; i < FRAG_COUNT_OF(faults); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&runner->thread, NULL, thread_main, runner);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static void init_locks(struct fragi_runner *runner)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&runner->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&runner->ended, &attr);
	pthread_condattr_destroy(&attr);
}

static void free_runner(struct fragi_runner *runner)
{
	pthread_cond_destroy(&runner->ended);
	pthread_mutex_destroy(&runner->lock);
	free(runner->summary);
	fragi_free(runner);
}

static int start_loop(struct fragi_runner *runner)
{
	int r = uv_loop_init(&runner->loop);

	if (r < 0)
		return r;
	runner->wake.data = runner;
	r = uv_async_init(&runner->loop, &runner->wake, on_wake);
	if (r < 0)
		goto err_loop;
	r = create_thread(runner);
	if (r < 0)
		goto err_wake;
	return 0;

err_wake:
	uv_close((uv_handle_t *)&runner->wake, NULL);
	uv_run(&runner->loop, UV_RUN_DEFAULT);
err_loop:
	uv_loop_close(&runner->loop);
	return r;
}

static int module_start(const struct fragi_runner_app *app, struct fragi_runner **out_runner,
			struct frag_err *err)
{
	struct fragi_runner *runner = fragi_calloc(1, sizeof(*runner));
	int r;

	if (runner == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory");
	runner->app = *app;
	runner->err = (struct frag_err)FRAG_ERR_INIT;
	init_locks(runner);
	r = occupy(runner, err);
	if (r < 0)
		goto err_free;
	r = fragi_kernel_check(true, err);
	if (r == 0)
		r = start_loop(runner);
	if (r < 0) {
		vacate();
		frag_err_set(err, r, "cannot start %s: %s", app->spec->application,
			     frag_strerror(r));
		goto err_free;
	}
	*out_runner = runner;
	return 0;

err_free:
	free_runner(runner);
	return r;
}

/* The callers' side. */

static struct timespec after(int64_t timeout_ns)
{
	struct timespec until;
	int64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns = until.tv_nsec + timeout_ns % 1000000000;
	until.tv_sec += (time_t)(timeout_ns / 1000000000 + ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	return until;
}

static int module_wait(struct fragi_runner *runner, int64_t timeout_ns, struct frag_err *err)
{
	const bool is_forever = timeout_ns < 0;
	const struct timespec until = after(is_forever ? 0 : timeout_ns);
	int r = 0;

	pthread_mutex_lock(&runner->lock);
	while (!runner->has_ended && r == 0)
		r = is_forever ? pthread_cond_wait(&runner->ended, &runner->lock)
			       : pthread_cond_timedwait(&runner->ended, &runner->lock, &until);
	r = runner->has_ended ? runner->result : -ETIMEDOUT;
	pthread_mutex_unlock(&runner->lock);
	if (r == -ETIMEDOUT)
		return frag_err_set(err, r, "%s still runs", runner->app.spec->application);
	if (r < 0 && err != NULL && err->text[0] == '\0')
		*err = runner->err;
	return r;
}

static void module_stop(struct fragi_runner *runner)
{
	pthread_mutex_lock(&runner->lock);
	runner->stops_wanted += runner->stops_wanted < 2;
	if (!runner->is_closed)
		uv_async_send(&runner->wake);
	pthread_mutex_unlock(&runner->lock);
}

static int module_set(struct fragi_runner *runner, const char *text, struct frag_err *err)
{
	int r;

	/* Under the lock, so that no other application can run instead. */
	pthread_mutex_lock(&runner->lock);
	r = runner->is_closed
		    ? frag_err_set(err, -EAGAIN, "%s has ended", runner->app.spec->application)
		    : host_set(text, "the program", err);
	pthread_mutex_unlock(&runner->lock);
	return r;
}

static const char *module_summary(struct fragi_runner *runner)
{
	const char *summary;

	pthread_mutex_lock(&runner->lock);
	summary = runner->has_ended ? runner->summary : NULL;
	pthread_mutex_unlock(&runner->lock);
	return summary;
}

static bool module_destroy(struct fragi_runner *runner)
{
	pthread_join(runner->thread, NULL);
	if (runner->is_stuck) /* the host uses what is ours */
		return false;
	free_runner(runner);
	return true;
}

FRAG_API const struct fragi_runner_ops fragi_runner_v1;
const struct fragi_runner_ops fragi_runner_v1 = {
	.struct_size = sizeof(fragi_runner_v1),
	.name = "run",
	.start = module_start,
	.wait = module_wait,
	.stop = module_stop,
	.set = module_set,
	.summary = module_summary,
	.destroy = module_destroy,
	.host = host_process_main,
};
