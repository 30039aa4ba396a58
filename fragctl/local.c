/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application that runs on this machine without daemons: the cores of a driver and of a worker
 * on one loop, and one host for all fragments, which is a child of this process (or, with
 * --in-process, a thread of it).
 *
 * The exchange between the two cores (fragctl/exchange.h) is emptied each time before the loop
 * sleeps, so nothing waits and steps of the cores never nest. What the cores log of their life
 * cycle is of no interest where both are in one process; what concerns the application is printed
 * as this program prints.
 */
#define LOG_TOPIC "run"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/log.h>
#include <base/stamp.h>
#include <driverd/core/core.h>
#include <driverd/deadline.h>
#include <driverd/system.h>
#include <driverd/progress.h>
#include <fragctl/run.h>
#include <fragctl/thread.h>
#include <fragctl/exchange.h>
#include <workerd/environment.h>
#include <workerd/host/process.h>
#include <workerd/strays.h>
#include <workerd/worker.h>

/*
 * Whoever started this waits and can end it: a start may take a day, and nothing is judged by its
 * silence.
 */
#define PATIENCE_NS (INT64_C(86400) * 1000000000)
/* For operators to end in order once all is done; their fini may flush a file. */
#define CLOSE_NS INT64_C(5000000000)
#define GRACE_NS INT64_C(1000000000) /* for operators to be stopped after a failure */
#define PROGRESS_TTY_NS INT64_C(250000000)
#define NODE "here"

static const int stop_signals[] = {SIGINT, SIGTERM};

struct local {
	const struct ctl_run_options *options;
	uv_loop_t loop;
	uv_prepare_t before_sleep;
	struct drv_deadline deadline; /* of the driver's core */
	uv_signal_t signals[FRAG_COUNT_OF(stop_signals)];
	uv_signal_t child_ended;
	struct drv_core *driver;
	struct drv_actions actions;
	struct drv_progress progress;
	struct wrk_worker worker;
	struct ctl_exchange exchange;
	bool is_stopping, is_running, is_over;
	int exit_code;
};

static const char *application(const struct local *local)
{
	return local->options->graph.spec->application;
}

static void end(struct local *local, int exit_code)
{
	if (local->is_over)
		return;
	local->is_over = true;
	local->exit_code = exit_code;
	uv_close((uv_handle_t *)&local->before_sleep, NULL);
	drv_deadline_close(&local->deadline);
	for (size_t i = 0; i < FRAG_COUNT_OF(local->signals); i++) {
		uv_close((uv_handle_t *)&local->signals[i], NULL);
		/* the result stands: none changes it any more */
		(void)signal(stop_signals[i], SIG_IGN);
	}
	if (!local->options->in_process)
		uv_close((uv_handle_t *)&local->child_ended, NULL);
	wrk_worker_end(&local->worker, exit_code);
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

static void fail(struct local *local, int r)
{
	if (local->is_over)
		return;
	drv_progress_clear(&local->progress);
	end(local, show_failure(local, r));
}

/* What the exchange returned. */
static void check_sent(struct local *local, int r)
{
	if (r < 0)
		fail(local, r);
}

static void driver_step(struct local *local, struct drv_event *event);

static void deliver(struct local *local, const struct ctl_transit *transit)
{
	struct drv_event to_driver = {.connection = transit->connection, .peer = "this process"};
	struct wrk_event to_worker = {.connection = transit->connection, .text = "it left"};

	if (transit->to == CTL_EXCHANGE_DRIVER) {
		if (transit->message != NULL && transit->message->kind == FW_HOST_STARTED)
			local->is_running = true;
		to_driver.kind = transit->message != NULL ? DRV_EVENT_MESSAGE : DRV_EVENT_CLOSED;
		to_driver.text = "it left";
		to_driver.message = transit->message;
		driver_step(local, &to_driver);
		return;
	}
	to_worker.kind =
		transit->message != NULL ? WRK_EVENT_DRIVER_MESSAGE : WRK_EVENT_DRIVER_LOST;
	to_worker.message = transit->message;
	wrk_worker_raise(&local->worker, &to_worker);
	fw_message_free(transit->message);
}

static void empty_exchange(struct local *local)
{
	struct ctl_transit transit;

	while (ctl_exchange_take(&local->exchange, &transit))
		deliver(local, &transit);
}

static void before_sleep(uv_prepare_t *handle)
{
	empty_exchange(handle->data);
}

/* The driver's half. */

/*
 * An application that a person stops has not failed, also when it took two signals. Of a graph that
 * was refused the errors have been printed: there is nothing to show in a table.
 */
static void show_summary(struct local *local, const struct fragi_summary *driver_summary)
{
	struct drv_output output = local->options->output;
	struct fragi_summary summary = *driver_summary;

	drv_progress_clear(&local->progress);
	if (summary.result == FRAGI_SUMMARY_STOPPED)
		summary.exit_code = CTL_OK;
	output.no_table = !local->is_running && summary.exit_code != CTL_OK &&
			  summary.exit_code != CTL_FAILED;
	end(local, drv_result_show(&output, &summary));
}

static void print_line(const char *text)
{
	char line[2048];

	snprintf(line, sizeof(line), "%.*s\n", (int)sizeof(line) - 2, text);
	fragi_log_put(line, strlen(line));
}

/* An error before the start is a plain line, as a compiler prints it; later it is a log line. */
static void driver_log(struct local *local, const struct drv_action *action)
{
	enum fragi_log_level level = action->level;

	if (level == FRAGI_LOG_INFO)
		level = FRAGI_LOG_DEBUG;
	if ((int)level < fragi_log_threshold)
		return;
	drv_progress_clear(&local->progress);
	if (level == FRAGI_LOG_ERROR && !local->is_running)
		print_line(action->text);
	else
		fragi_log(level, action->subject, "%s", action->text);
}

static void driver_act(struct local *local, struct drv_action *action)
{
	switch (action->kind) {
	case DRV_DO_SEND:
		check_sent(local, ctl_exchange_send_frame(&local->exchange, CTL_EXCHANGE_WORKER,
							  action->connection, action->frame,
							  action->frame_bytes));
		break;
	case DRV_DO_ADMIT:
		break;
	case DRV_DO_CLOSE:
		check_sent(local, ctl_exchange_close(&local->exchange, CTL_EXCHANGE_WORKER,
						     action->connection));
		break;
	case DRV_DO_LOG:
		driver_log(local, action);
		break;
	case DRV_DO_PROGRESS:
		drv_progress_show(&local->progress, action->text);
		break;
	case DRV_DO_PERSIST: /* it keeps no state */
		break;
	case DRV_DO_ENDED:
		show_summary(local, action->summary);
		break;
	}
}

static void on_deadline(void *arg)
{
	driver_step(arg, &(struct drv_event){.kind = DRV_EVENT_TIMER});
}

static void driver_step(struct local *local, struct drv_event *event)
{
	int64_t now_ns = fragi_now_ns();

	if (local->is_over) {
		fw_message_free(event->message);
		return;
	}
	drv_actions_reset(&local->actions);
	if (drv_core_step(local->driver, event, now_ns, &local->actions) < 0) {
		fail(local, -ENOMEM);
		return;
	}
	for (size_t i = 0; i < local->actions.count && !local->is_over; i++)
		driver_act(local, &local->actions.items[i]);
	if (!local->is_over)
		drv_deadline_set(&local->deadline, drv_core_deadline_ns(local->driver), now_ns);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct local *local = handle->data;

	if (!local->is_stopping)
		log_info(application(local), "stopping; again: at once");
	local->is_stopping = true;
	driver_step(local, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = number});
}

/* The worker's half. */

static void worker_connect(void *arg, uint64_t connection)
{
	struct local *local = arg;

	wrk_worker_raise(&local->worker, &(struct wrk_event){.kind = WRK_EVENT_CONNECTED,
							     .connection = connection,
							     .text = "127.0.0.1"});
}

static void worker_disconnect(void *arg, uint64_t connection)
{
	struct local *local = arg;

	check_sent(local, ctl_exchange_close(&local->exchange, CTL_EXCHANGE_DRIVER, connection));
}

static void worker_send(void *arg, uint64_t connection, const struct fw_message *message)
{
	struct local *local = arg;
	struct fw_message copy = *message;
	int r;

	if (message->kind == FW_HOST_EXIT) /* its lines stand on this stderr already */
		copy.exit.line_count = 0;
	r = ctl_exchange_send(&local->exchange, CTL_EXCHANGE_DRIVER, connection, &copy);
	if (r == -EMSGSIZE && message->kind == FW_HOST_STATS)
		log_debug(NULL, "the counters do not fit into a message");
	else
		check_sent(local, r);
}

static int host_main(void)
{
	(void)prctl(PR_SET_NAME, "fraghost"); /* as ps and core files call it everywhere */
	return host_process_run(FRAGI_LIBRARY_PATHS_ANY);
}

/* --library-path, then those of the environment: as where the graph is composed in this process. */
static const char *library_path(const struct local *local, struct fragi_arena *arena)
{
	const char *flag = local->options->graph.library_path, *own = getenv("FRAG_LIBRARY_PATH");

	if (flag == NULL || own == NULL)
		return flag;
	return fragi_arena_printf(arena, "%s:%s", flag, own);
}

/* In the background a terminal's input belongs to others. */
static bool has_input(void)
{
	return fcntl(STDIN_FILENO, F_GETFD) >= 0 &&
	       (isatty(STDIN_FILENO) == 0 || tcgetpgrp(STDIN_FILENO) == getpgrp());
}

static int worker_launch(void *arg, const struct fw_message *create, struct fragi_arena *arena,
			 struct wrk_launch *out_launch, struct frag_err *err)
{
	const struct local *local = arg;
	const struct wrk_environment environment = {
		.library_path = library_path(local, arena),
		.app_root = local->options->graph.spec->app_folder,
		.is_own_user = true,
		.device = "lo",
		.port_first = WRK_DATA_PORT_FIRST,
		.port_last = WRK_DATA_PORT_LAST,
	};

	(void)create;
	*out_launch = (struct wrk_launch){
		.ops = local->options->in_process ? &ctl_thread : &wrk_spawn_process,
		.main = host_main,
		.environment = wrk_environment_make(&environment, arena),
		.keeps_stdin = has_input(),
	};
	if (out_launch->environment == NULL)
		return frag_err_set(err, -ENOMEM, "cannot start a host: out of memory");
	fflush(NULL); /* the child has copies of what is not written yet */
	return 0;
}

/* The driver reports what concerns the application. */
static void worker_log(void *arg, enum fragi_log_level level, const char *subject, const char *text)
{
	(void)arg;
	(void)level;
	log_debug(subject, "%s", text);
}

/* Before the application only for want of memory. */
static void worker_ended(void *arg, int exit_code)
{
	struct local *local = arg;

	(void)exit_code;
	fail(local, -ENOMEM);
}

static const struct wrk_worker_ops worker_ops = {
	.connect = worker_connect,
	.disconnect = worker_disconnect,
	.send = worker_send,
	.launch = worker_launch,
	.log = worker_log,
	.ended = worker_ended,
};

/* Both halves together. */

static int make_cores(struct local *local)
{
	const struct drv_config driver = {
		.version = FRAG_VERSION,
		.clock = NODE,
		.is_local = true,
		.ends_with_app = true,
		.dead_ns = PATIENCE_NS,
		.wire_ns = PATIENCE_NS,
		.close_ns = CLOSE_NS,
		.kill_ns = 2 * GRACE_NS,
		.progress_ns = local->progress.is_terminal ? PROGRESS_TTY_NS : 0,
		.realtime_offset_ns = drv_system_realtime_offset_ns(),
		.random = drv_system_random,
	};
	static const struct wrk_config worker = {
		.name = "fragctl",
		.driver = "this process",
		.worker_address = "127.0.0.1",
		.node = NODE,
		.clock = NODE,
		.version = FRAG_VERSION,
		.dead_ns = PATIENCE_NS,
		.grace_ns = GRACE_NS,
		.seed = 1,
	};
	int r = drv_core_create(&driver, &local->driver);

	return r < 0 ? r
		     : wrk_worker_init(&local->worker, &local->loop, &worker, &worker_ops, local);
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

static int make_handles(struct local *local)
{
	int r;

	drv_deadline_init(&local->deadline, &local->loop, on_deadline, local);
	uv_prepare_init(&local->loop, &local->before_sleep);
	local->before_sleep.data = local;
	r = uv_prepare_start(&local->before_sleep, before_sleep);
	for (size_t i = 0; i < FRAG_COUNT_OF(stop_signals) && r == 0; i++) {
		uv_signal_init(&local->loop, &local->signals[i]);
		local->signals[i].data = local;
		r = uv_signal_start(&local->signals[i], on_signal, stop_signals[i]);
	}
	return r;
}

static int give_application(struct local *local)
{
	struct drv_event event = {.kind = DRV_EVENT_APP};
	void *source;
	size_t size;
	int r = fragi_source_pack(&local->options->graph.source.source, &source, &size);

	if (r < 0)
		return r;
	event.app = (struct drv_event_app){.source = source, .source_bytes = size};
	driver_step(local, &event);
	fragi_free(source);
	wrk_worker_raise(&local->worker, &(struct wrk_event){.kind = WRK_EVENT_START});
	return 0;
}

int ctl_run_local(const struct ctl_run_options *options)
{
	struct local local = {.options = options};
	int r = uv_loop_init(&local.loop);

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a write beyond ulimit -f returns EFBIG */
	ctl_exchange_init(&local.exchange);
	drv_progress_init(&local.progress, options->verbosity < 0);
	if (r == 0)
		r = make_cores(&local);
	if (r == 0)
		r = make_handles(&local);
	if (r == 0)
		adopt_strays(&local);
	if (r == 0)
		r = give_application(&local);
	if (r < 0)
		return show_failure(&local, r);
	uv_run(&local.loop, UV_RUN_DEFAULT);
	if (options->in_process && !ctl_thread_join()) {
		wrk_strays_end_all();
		_exit(local.exit_code); /* nothing that the host uses can be taken away */
	}
	empty_exchange(&local);
	wrk_worker_fini(&local.worker);
	drv_core_destroy(local.driver);
	drv_actions_fini(&local.actions);
	uv_loop_close(&local.loop);
	fragi_log_catch_up(0);
	return local.exit_code;
}
