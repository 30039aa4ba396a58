// SPDX-License-Identifier: Apache-2.0
/*
 * An application that runs on this machine without daemons: a runner (runner/runner.h) whose host
 * is a child of this process (or, with --in-process, a thread of it). What the cores log of their
 * life cycle is of no interest where both are in one process; what concerns the application is
 * printed as this program prints.
 */
#define LOG_TOPIC "run"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <base/log.h>
#include <base/signals.h>
#include <driverd/progress.h>
#include <fragctl/run.h>
#include <fragctl/run_clients.h>
#include <runner/runner.h>
#include <runner/thread.h>
#include <workerd/host/process.h>
#include <workerd/strays.h>

#define PROGRESS_TTY_NS INT64_C(250000000)

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

struct local {
	const struct ctl_run_options *options;
	uv_loop_t loop;
	uv_signal_t signals[FRAG_COUNT_OF(stop_signals)];
	uv_signal_t child_ended;
	struct drv_progress progress;
	struct runner runner;
	struct ctl_run_clients clients;
	bool is_stopping;
};

static const char *application(const struct local *local)
{
	return local->options->graph.application;
}

static void close_handles(struct local *local)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(local->signals); i++) {
		uv_close((uv_handle_t *)&local->signals[i], NULL);
		/* the result stands: none changes it any more */
		(void)signal(stop_signals[i], SIG_IGN);
	}
	if (!local->options->in_process)
		uv_close((uv_handle_t *)&local->child_ended, NULL);
	ctl_run_clients_close(&local->clients);
}

/* Neither the driver nor the worker can go on. Returns the exit code. */
static int show_failure(const struct local *local, int r)
{
	struct frag_err err = FRAG_ERR_INIT;

	frag_err_set(&err, r, "%s cannot go on: %s", application(local), frag_strerror(r));
	if (r != -ENOMEM)
		fragi_err_classify(&err, FRAGI_FAILURE_OTHER, NULL);
	ctl_fail(CTL_FAILED, "%s", err.text);
	return drv_result_fail(&local->options->output, application(local), &err);
}

static int on_broken(void *arg, int r)
{
	struct local *local = arg;
	int exit_code;

	drv_progress_clear(&local->progress);
	exit_code = show_failure(local, r);
	close_handles(local);
	return exit_code;
}

/*
 * An application that a person stops has not failed, also when it took two signals. Of a graph that
 * was refused the errors have been printed: there is nothing to show in a table.
 */
static int on_ended(void *arg, const struct fragi_summary *driver_summary)
{
	struct local *local = arg;
	struct drv_output output = local->options->output;
	struct fragi_summary summary = *driver_summary;
	int exit_code;

	drv_progress_clear(&local->progress);
	if (summary.result == FRAGI_SUMMARY_STOPPED)
		summary.exit_code = CTL_OK;
	output.no_table = !local->runner.is_running && summary.exit_code != CTL_OK &&
			  summary.exit_code != CTL_FAILED;
	exit_code = drv_result_show(&output, &summary);
	close_handles(local);
	return exit_code;
}

static void print_line(const char *text)
{
	fragi_log_print("%s\n", text);
}

/* An error before the start is a plain line, as a compiler prints it; later it is a log line. */
static void on_log(void *arg, const struct drv_action *action)
{
	struct local *local = arg;
	enum fragi_log_level level = action->level;

	if (level == FRAGI_LOG_INFO)
		level = FRAGI_LOG_DEBUG;
	if ((int)level < fragi_log_threshold)
		return;
	drv_progress_clear(&local->progress);
	if (level == FRAGI_LOG_ERROR && !local->runner.is_running)
		print_line(action->text);
	else
		fragi_log(level, action->subject, "%s", action->text);
}

static void on_progress(void *arg, const char *text)
{
	struct local *local = arg;

	drv_progress_show(&local->progress, text);
}

static void on_client(void *arg, struct drv_action *action)
{
	struct local *local = arg;

	ctl_run_clients_act(&local->clients, action);
}

static const struct runner_ops runner_ops = {
	.log = on_log,
	.client = on_client,
	.progress = on_progress,
	.ended = on_ended,
	.broken = on_broken,
};

static void on_signal(uv_signal_t *handle, int number)
{
	struct local *local = handle->data;

	if (number == SIGHUP && local->is_stopping)
		return; /* both the shell and the kernel send it when a terminal is closed */
	if (!local->is_stopping)
		log_info(application(local), "stopping; again: at once");
	local->is_stopping = true;
	runner_stop(&local->runner, number);
}

static int host_main(void)
{
	(void)prctl(PR_SET_NAME, "fraghost"); /* as ps and core files call it everywhere */
	return host_process_run(FRAGI_LIBRARY_PATHS_ANY, false);
}

/* In the background a terminal's input belongs to others. */
static bool has_input(void)
{
	return fcntl(STDIN_FILENO, F_GETFD) >= 0 &&
	       (isatty(STDIN_FILENO) == 0 || tcgetpgrp(STDIN_FILENO) == getpgrp());
}

static void on_child_ended(uv_signal_t *handle, int number)
{
	(void)handle;
	(void)number;
	wrk_process_reap_strays();
}

/* With --in-process the operators' children are this process's too, and theirs to wait for. */
static void adopt_strays(struct local *local)
{
	wrk_strays_adopt();
	if (local->options->in_process)
		return;
	uv_signal_init(&local->loop, &local->child_ended);
	uv_signal_start(&local->child_ended, on_child_ended, SIGCHLD);
}

static int watch_signals(struct local *local)
{
	int r = 0;

	for (size_t i = 0; i < FRAG_COUNT_OF(stop_signals) && r == 0; i++) {
		uv_signal_init(&local->loop, &local->signals[i]);
		local->signals[i].data = local;
		if (stop_signals[i] != SIGHUP || !fragi_signal_is_ignored(SIGHUP))
			r = uv_signal_start(&local->signals[i], on_signal, stop_signals[i]);
	}
	return r;
}

int ctl_run_local(const struct ctl_run_options *options)
{
	struct local local = {.options = options};
	struct runner_config config = {
		.name = "fragctl",
		.source = &options->graph.source,
		.app_folder = options->graph.app_folder,
		.library_path = options->graph.library_path,
		.host = options->in_process ? &runner_thread : &wrk_spawn_process,
		.host_main = host_main,
		.keeps_stdin = has_input(),
	};
	int r = uv_loop_init(&local.loop);

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a write beyond ulimit -f returns EFBIG */
	drv_progress_init(&local.progress, options->verbosity < 0);
	config.progress_ns = local.progress.is_terminal ? PROGRESS_TTY_NS : 0;
	if (r == 0)
		r = watch_signals(&local);
	if (r == 0) {
		adopt_strays(&local);
		r = runner_init(&local.runner, &local.loop, &config, &runner_ops, &local);
	}
	if (r < 0)
		return show_failure(&local, r);
	if (!local.runner.is_over)
		ctl_run_clients_open(&local.clients, &local.loop, &local.runner);
	uv_run(&local.loop, UV_RUN_DEFAULT);
	if (options->in_process && !runner_thread_join()) {
		wrk_strays_end_all();
		_exit(local.runner.exit_code); /* nothing that the host uses can be taken away */
	}
	runner_fini(&local.runner);
	ctl_run_clients_fini(&local.clients);
	uv_loop_close(&local.loop);
	fragi_log_catch_up(0);
	return local.runner.exit_code;
}
