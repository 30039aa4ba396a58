// SPDX-License-Identifier: Apache-2.0
/*
 * The exchange between the two cores (runner/exchange.h) is emptied each time before the loop
 * sleeps, so nothing waits and steps of the cores never nest. What the worker's core logs of its
 * life cycle is of no interest where both are in one process.
 */
#define LOG_TOPIC "run"
#include <runner/runner.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <base/alloc.h>
#include <base/log.h>
#include <base/stamp.h>
#include <driverd/system.h>
#include <edge/ucx_env.h>
#include <workerd/environment.h>
#include <workerd/interpreter.h>

/*
 * Whoever started this waits and can end it: a start may take a day, and nothing is judged by its
 * silence.
 */
#define PATIENCE_NS (INT64_C(86400) * 1000000000)
/* For operators to end in order once all is done; their fini may flush a file. */
#define CLOSE_NS INT64_C(5000000000)
#define GRACE_NS INT64_C(1000000000) /* for operators to be stopped after a failure */
#define NODE "here"

static void close_loop_handles(struct runner *runner, int exit_code)
{
	runner->exit_code = exit_code;
	uv_close((uv_handle_t *)&runner->before_sleep, NULL);
	fw_deadline_close(&runner->deadline);
	wrk_worker_end(&runner->worker, exit_code);
}

static void fail(struct runner *runner, int r)
{
	if (runner->is_over)
		return;
	runner->is_over = true;
	close_loop_handles(runner, runner->ops->broken(runner->arg, r));
}

/* What the exchange returned. */
static void check_sent(struct runner *runner, int r)
{
	if (r < 0)
		fail(runner, r);
}

static void deliver(struct runner *runner, const struct runner_transit *transit)
{
	struct drv_event to_driver = {.connection = transit->connection, .peer = "this process"};
	struct wrk_event to_worker = {.connection = transit->connection, .text = "it left"};

	if (transit->to == RUNNER_EXCHANGE_DRIVER) {
		if (transit->message != NULL && transit->message->kind == FW_HOST_STARTED)
			runner->is_running = true;
		to_driver.kind = transit->message != NULL ? DRV_EVENT_MESSAGE : DRV_EVENT_CLOSED;
		to_driver.text = "it left";
		to_driver.message = transit->message;
		runner_step(runner, &to_driver);
		return;
	}
	to_worker.kind =
		transit->message != NULL ? WRK_EVENT_DRIVER_MESSAGE : WRK_EVENT_DRIVER_LOST;
	to_worker.message = transit->message;
	wrk_worker_raise(&runner->worker, &to_worker);
	fw_message_free(transit->message);
}

static void empty_exchange(struct runner *runner)
{
	struct runner_transit transit;
	int r;

	while ((r = runner_exchange_take(&runner->exchange, &transit)) != -ENOENT)
		if (r < 0)
			fail(runner, r);
		else
			deliver(runner, &transit);
}

static void before_sleep(uv_prepare_t *handle)
{
	empty_exchange(handle->data);
}

/* The driver's half. */

static void end(struct runner *runner, const struct fragi_summary *summary)
{
	runner->is_over = true;
	close_loop_handles(runner, runner->ops->ended(runner->arg, summary));
}

static void driver_act(struct runner *runner, struct drv_action *action)
{
	if ((action->connection & RUNNER_CLIENT) != 0) {
		runner->ops->client(runner->arg, action);
		return;
	}
	switch (action->kind) {
	case DRV_DO_SEND:
		check_sent(runner, runner_exchange_send_frame(
					   &runner->exchange, RUNNER_EXCHANGE_WORKER,
					   action->connection, action->frame, action->frame_bytes));
		break;
	case DRV_DO_ADMIT:
		break;
	case DRV_DO_CLOSE:
		check_sent(runner, runner_exchange_close(&runner->exchange, RUNNER_EXCHANGE_WORKER,
							 action->connection));
		break;
	case DRV_DO_LOG:
		runner->ops->log(runner->arg, action);
		break;
	case DRV_DO_PROGRESS:
		if (runner->ops->progress != NULL)
			runner->ops->progress(runner->arg, action->text);
		break;
	case DRV_DO_PERSIST: /* it keeps no state */
		break;
	case DRV_DO_ENDED:
		runner->summary = action->summary;
		break;
	}
}

static void on_deadline(void *arg)
{
	runner_step(arg, &(struct drv_event){.kind = DRV_EVENT_TIMER});
}

void runner_step(struct runner *runner, struct drv_event *event)
{
	int64_t now_ns = fragi_now_ns();

	if (runner->is_over) {
		fw_message_free(event->message);
		return;
	}
	drv_actions_reset(&runner->actions);
	if (drv_core_step(runner->driver, event, now_ns, &runner->actions) < 0) {
		fail(runner, -ENOMEM);
		return;
	}
	for (size_t i = 0; i < runner->actions.count && !runner->is_over; i++)
		driver_act(runner, &runner->actions.items[i]);
	if (!runner->is_over && runner->summary != NULL)
		end(runner, runner->summary);
	if (!runner->is_over)
		fw_deadline_set(&runner->deadline, drv_core_deadline_ns(runner->driver), now_ns);
}

void runner_stop(struct runner *runner, int signal)
{
	runner_step(runner, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = signal});
}

/* The worker's half. */

static void worker_connect(void *arg, uint64_t connection)
{
	struct runner *runner = arg;

	wrk_worker_raise(&runner->worker, &(struct wrk_event){.kind = WRK_EVENT_CONNECTED,
							      .connection = connection,
							      .text = "127.0.0.1"});
}

static void worker_disconnect(void *arg, uint64_t connection)
{
	struct runner *runner = arg;

	check_sent(runner,
		   runner_exchange_close(&runner->exchange, RUNNER_EXCHANGE_DRIVER, connection));
}

static void worker_send(void *arg, uint64_t connection, const struct fw_message *message)
{
	struct runner *runner = arg;
	struct fw_message copy = *message;
	int r;

	if (message->kind == FW_HOST_EXIT) /* its lines stand on this stderr already */
		copy.exit.line_count = 0;
	r = runner_exchange_send(&runner->exchange, RUNNER_EXCHANGE_DRIVER, connection, &copy);
	if (r == -EMSGSIZE && message->kind == FW_HOST_STATS)
		log_debug(NULL, "the counters do not fit into a message");
	else
		check_sent(runner, r);
}

/* --library-path, then those of the environment: as where the graph is composed in this process. */
static const char *library_path(const struct runner *runner, struct fragi_arena *arena)
{
	const char *flag = runner->config->library_path, *own = getenv("FRAG_LIBRARY_PATH");

	if (flag == NULL || own == NULL)
		return flag;
	return fragi_arena_printf(arena, "%s:%s", flag, own);
}

static int worker_launch(void *arg, const struct fw_message *create, struct fragi_arena *arena,
			 struct wrk_launch *out_launch, struct frag_err *err)
{
	const struct runner *runner = arg;
	const struct wrk_environment environment = {
		.library_path = library_path(runner, arena),
		.app_root = runner->config->app_folder,
		.ucx_folder = getenv(FRAGI_UCX_FOLDER),
		.is_own_user = true,
		.device = "lo",
		.port_first = WRK_DATA_PORT_FIRST,
		.port_last = WRK_DATA_PORT_LAST,
	};

	const char *python = getenv("FRAG_PYTHON");
	int r = 0;

	*out_launch = (struct wrk_launch){
		.ops = runner->config->host,
		.main = runner->config->host_main,
		.environment = wrk_environment_make(&environment, arena),
		.keeps_stdin = runner->config->keeps_stdin,
	};
	if (out_launch->environment == NULL)
		return frag_err_set(err, -ENOMEM, "cannot start a host: out of memory");
	if (runner->config->host_main != NULL)
		r = wrk_interpreter_choose(&create->create, python != NULL ? python : "python3",
					   arena, &out_launch->arguments, err);
	if (r == 0 && out_launch->arguments != NULL)
		out_launch->program = out_launch->arguments[0];
	if (!runner->config->is_guest)
		fflush(NULL); /* the child has copies of what is not written yet */
	return r;
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
	struct runner *runner = arg;

	(void)exit_code;
	fail(runner, -ENOMEM);
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

static int make_cores(struct runner *runner)
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
		.progress_ns = runner->config->progress_ns,
		.realtime_offset_ns = drv_system_realtime_offset_ns(),
		.random = drv_system_random,
	};
	struct wrk_config worker = {
		.driver = "this process",
		.worker_address = "127.0.0.1",
		.node = NODE,
		.clock = NODE,
		.version = FRAG_VERSION,
		.dead_ns = PATIENCE_NS,
		.grace_ns = GRACE_NS,
		.seed = 1,
	};
	int r = drv_core_create(&driver, &runner->driver);

	if (r < 0)
		return r;
	runner->worker_ops = worker_ops;
	runner->worker_ops.is_guest = runner->config->is_guest;
	worker.name = runner->config->name;
	r = wrk_worker_init(&runner->worker, runner->loop, &worker, &runner->worker_ops, runner);
	if (r < 0)
		drv_core_destroy(runner->driver);
	return r;
}

static int give_application(struct runner *runner)
{
	struct drv_event event = {.kind = DRV_EVENT_APP};
	void *source;
	size_t size;
	int r = fragi_source_pack(&runner->config->source->source, &source, &size);

	if (r < 0)
		return r;
	event.app = (struct drv_event_app){.source = source, .source_bytes = size};
	runner_step(runner, &event);
	fragi_free(source);
	wrk_worker_raise(&runner->worker, &(struct wrk_event){.kind = WRK_EVENT_START});
	return 0;
}

int runner_init(struct runner *runner, uv_loop_t *loop, const struct runner_config *config,
		const struct runner_ops *ops, void *arg)
{
	int r;

	*runner = (struct runner){.config = config, .ops = ops, .arg = arg, .loop = loop};
	runner_exchange_init(&runner->exchange);
	r = make_cores(runner);
	if (r < 0)
		return r;
	fw_deadline_init(&runner->deadline, loop, on_deadline, runner);
	uv_prepare_init(loop, &runner->before_sleep);
	runner->before_sleep.data = runner;
	uv_prepare_start(&runner->before_sleep, before_sleep);
	r = give_application(runner);
	if (r < 0)
		fail(runner, r);
	return 0;
}

void runner_fini(struct runner *runner)
{
	empty_exchange(runner);
	wrk_worker_fini(&runner->worker);
	drv_core_destroy(runner->driver);
	drv_actions_fini(&runner->actions);
}
