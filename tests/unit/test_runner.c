// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <runner/exchange.c>
#include <runner/runner.c> /* over cores that this file plays */

#include <base/alloc.h>

/*
 * What one of the cores of a runner does reaches the other one, or the owner, as text. Nothing of
 * it waits for the other core, and nothing is called once it has ended.
 */
static FILE *out;
static uv_loop_t loop;
static struct runner own;
static struct fragi_source source;

static void show_text(const char *name, const char *text)
{
	if (text != NULL)
		fprintf(out, ", %s '%s'", name, text);
}

/* The cores: the driver's has these actions in its next step. */
static struct drv_action next_actions[4];
static size_t next_count;
static int driver_result, worker_result, step_result;

int drv_core_create(const struct drv_config *config, struct drv_core **out_core)
{
	fprintf(out,
		"  a driver: clock %s, local %d, ends with it %d, dead %lld, wire %lld, close %lld, kill %lld, progress %lld\n",
		config->clock, config->is_local, config->ends_with_app, (long long)config->dead_ns,
		(long long)config->wire_ns, (long long)config->close_ns, (long long)config->kill_ns,
		(long long)config->progress_ns);
	cr_expect(config->random == drv_system_random && config->realtime_offset_ns == 7);
	*out_core = (struct drv_core *)&own;
	return driver_result;
}

void drv_core_destroy(struct drv_core *core)
{
	cr_expect_eq(core, (struct drv_core *)&own);
	fprintf(out, "  the driver is gone\n");
}

int drv_core_step(struct drv_core *core, struct drv_event *event, int64_t now_ns,
		  struct drv_actions *actions)
{
	cr_expect(core == (struct drv_core *)&own && now_ns > 0);
	fprintf(out, "  driver: event %d", event->kind);
	if (event->connection != 0)
		fprintf(out, " of %d", (int)event->connection);
	show_text("peer", event->peer);
	show_text("text", event->text);
	if (event->message != NULL)
		fprintf(out, ", %s with %d lines", fw_kind_name(event->message->kind),
			event->message->kind == FW_HOST_EXIT ? (int)event->message->exit.line_count
							     : 0);
	if (event->signal != 0)
		fprintf(out, ", signal %d", event->signal);
	if (event->kind == DRV_EVENT_APP)
		cr_expect(event->app.source != NULL && event->app.source_bytes > 8);
	fprintf(out, "\n");
	fw_message_free(event->message);
	actions->items = next_actions;
	actions->count = next_count;
	next_count = 0;
	return step_result;
}

int64_t drv_core_deadline_ns(const struct drv_core *core)
{
	(void)core;
	return 4711;
}

void drv_actions_reset(struct drv_actions *actions)
{
	actions->count = 0;
}

void drv_actions_fini(struct drv_actions *actions)
{
	cr_expect_eq(actions, &own.actions);
	fprintf(out, "  actions are given back\n");
}

void drv_system_random(void *arg, void *bytes, size_t size)
{
	(void)arg, (void)bytes, (void)size;
}

int64_t drv_system_realtime_offset_ns(void)
{
	return 7;
}

int wrk_worker_init(struct wrk_worker *worker, uv_loop_t *on, const struct wrk_config *config,
		    const struct wrk_worker_ops *ops, void *arg)
{
	cr_expect(on == &loop && arg == &own && worker == &own.worker);
	fprintf(out,
		"  a worker %s of '%s' at %s: node %s, clock %s, dead %lld, grace %lld, seed %d, guest %d\n",
		config->name, config->driver, config->worker_address, config->node, config->clock,
		(long long)config->dead_ns, (long long)config->grace_ns, (int)config->seed,
		ops->is_guest);
	return worker_result;
}

void wrk_worker_raise(struct wrk_worker *worker, const struct wrk_event *event)
{
	cr_expect_eq(worker, &own.worker);
	fprintf(out, "  worker: event %d", event->kind);
	if (event->connection != 0)
		fprintf(out, " of %d", (int)event->connection);
	show_text("text", event->text);
	if (event->message != NULL)
		show_text("message", fw_kind_name(event->message->kind));
	fprintf(out, "\n");
}

void wrk_worker_end(struct wrk_worker *worker, int exit_code)
{
	(void)worker;
	fprintf(out, "  the worker ends with %d\n", exit_code);
}

void wrk_worker_fini(struct wrk_worker *worker)
{
	cr_expect_eq(worker, &own.worker);
	fprintf(out, "  the worker is gone\n");
}

void fw_deadline_init(struct fw_deadline *deadline, uv_loop_t *on, void (*due)(void *arg),
		      void *arg)
{
	cr_expect(deadline == &own.deadline && on == &loop && due == on_deadline && arg == &own);
}

void fw_deadline_set(struct fw_deadline *deadline, int64_t at_ns, int64_t now_ns)
{
	cr_expect(deadline == &own.deadline && at_ns == 4711 && now_ns > 0);
	fprintf(out, "  waits\n");
}

void fw_deadline_close(struct fw_deadline *deadline)
{
	cr_expect_eq(deadline, &own.deadline);
	fprintf(out, "  waits no more\n");
}

/* How a host is started. */
static const char *interpreter;
static char python_name[] = "/usr/bin/python3";
static char *found[] = {python_name, NULL};
static char *variables[] = {NULL};
static bool is_short;

char *const *wrk_environment_make(const struct wrk_environment *environment,
				  struct fragi_arena *arena)
{
	(void)arena;
	fprintf(out, "  environment: own user %d, device %s, ports %u to %u",
		environment->is_own_user, environment->device, environment->port_first,
		environment->port_last);
	show_text("libraries", environment->library_path);
	show_text("folder", environment->app_root);
	show_text("UCX", environment->ucx_folder);
	fprintf(out, "\n");
	return is_short ? NULL : variables;
}

int wrk_interpreter_choose(const struct fw_host_create *create, const char *python,
			   struct fragi_arena *arena, char *const **out_arguments,
			   struct frag_err *err)
{
	(void)create, (void)arena;
	fprintf(out, "  looks for %s\n", python);
	if (interpreter == NULL)
		return frag_err_set(err, -ENOENT, "no such program");
	*out_arguments = interpreter[0] != '\0' ? found : NULL;
	return 0;
}

/* The owner. */
static void on_log(void *arg, const struct drv_action *action)
{
	cr_expect_eq(arg, &source);
	fprintf(out, "  owner: log %d %s: %s\n", action->level, action->subject, action->text);
}

static void on_client(void *arg, struct drv_action *action)
{
	cr_expect_eq(arg, &source);
	fprintf(out, "  owner: action %d of its connection %d\n", action->kind,
		(int)(action->connection & 0xff));
}

static void on_progress(void *arg, const char *text)
{
	cr_expect_eq(arg, &source);
	fprintf(out, "  owner: progress %s\n", text);
}

static int on_ended(void *arg, const struct fragi_summary *summary)
{
	cr_expect_eq(arg, &source);
	fprintf(out, "  owner: %s has ended\n", summary->application);
	return 3;
}

static int on_broken(void *arg, int r)
{
	cr_expect_eq(arg, &source);
	fprintf(out, "  owner: broken by %s\n", strerrorname_np(-r));
	return 4;
}

static const struct runner_ops loud_ops = {.log = on_log,
					   .client = on_client,
					   .progress = on_progress,
					   .ended = on_ended,
					   .broken = on_broken};
static const struct runner_ops quiet_ops = {.log = on_log, .ended = on_ended, .broken = on_broken};

static int host_main(void)
{
	return 0;
}

static struct runner_config config = {.name = "me", .source = &source, .progress_ns = 9};

static void begin_in_sight(const struct runner_ops *ops)
{
	cr_assert_eq(uv_loop_init(&loop), 0);
	driver_result = worker_result = step_result = 0;
	cr_assert_eq(runner_init(&own, &loop, &config, ops, &source), 0);
}

static void begin(const struct runner_ops *ops)
{
	FILE *shown = out;

	out = fopen("/dev/null", "w");
	cr_assert_not_null(out);
	begin_in_sight(ops);
	fclose(out);
	out = shown;
}

/* Whether it has ended by then. */
static void finish(bool is_over)
{
	cr_expect_eq(own.is_over, is_over);
	if (!is_over)
		fail(&own, -ECANCELED);
	uv_run(&loop, UV_RUN_DEFAULT);
	runner_fini(&own);
	cr_expect_eq(uv_loop_close(&loop), 0);
}

static void compare(const char *name, char **text)
{
	fclose(out);
	expected_compare(name, *text);
	free(*text);
}

static void step_with(struct drv_action action)
{
	fprintf(out, "action %d\n", action.kind);
	next_actions[0] = action;
	next_count = 1;
	runner_step(&own, &(struct drv_event){.kind = DRV_EVENT_TIMER});
}

static void give_graph(void)
{
	source.source = (struct fragi_spec_source){
		.graph = {.file = "app.yaml", .text = "frag: 1\n", .length = 8}};
}

Test(runner, actions_of_the_driver)
{
	static const struct fragi_summary summary = {.application = "app"};
	uint8_t *frame;
	size_t size, bytes;
	char *text;

	give_graph();
	out = open_memstream(&text, &size);
	begin_in_sight(&loud_ops);
	cr_assert_eq(fw_encode(&(struct fw_message){.kind = FW_BEAT, .seq = 1}, &frame, &bytes), 0);
	step_with((struct drv_action){
		.kind = DRV_DO_SEND, .connection = 5, .frame = frame, .frame_bytes = bytes});
	cr_expect_eq(next_actions[0].frame, frame, "it was copied");
	free(frame);
	step_with((struct drv_action){.kind = DRV_DO_ADMIT, .connection = 5});
	step_with((struct drv_action){.kind = DRV_DO_CLOSE, .connection = 5});
	step_with((struct drv_action){
		.kind = DRV_DO_LOG, .level = FRAGI_LOG_WARN, .subject = "app", .text = "so"});
	step_with((struct drv_action){.kind = DRV_DO_PROGRESS, .text = "waits"});
	step_with((struct drv_action){.kind = DRV_DO_PERSIST});
	for (int kind = DRV_DO_SEND; kind <= DRV_DO_CLOSE; kind++)
		step_with((struct drv_action){.kind = (enum drv_action_kind)kind,
					      .connection = RUNNER_CLIENT | 6});
	fprintf(out, "before the loop sleeps\n");
	before_sleep(&own.before_sleep);
	fprintf(out, "stop\n");
	runner_stop(&own, SIGTERM);
	on_deadline(&own);
	fprintf(out, "the end, after all actions of that step\n");
	next_actions[1] = (struct drv_action){.kind = DRV_DO_PROGRESS, .text = "still there"};
	next_actions[0] = (struct drv_action){.kind = DRV_DO_ENDED, .summary = &summary};
	next_count = 2;
	on_deadline(&own);
	cr_expect_eq(own.exit_code, 3);
	fprintf(out, "nothing more\n");
	on_deadline(&own);
	finish(true);
	fprintf(out, "nobody looks at its progress\n");
	begin(&quiet_ops);
	step_with((struct drv_action){.kind = DRV_DO_PROGRESS, .text = "waits"});
	fprintf(out, "memory is short\n");
	step_result = -ENOMEM;
	next_actions[0] = (struct drv_action){.kind = DRV_DO_PROGRESS, .text = "waits"};
	on_deadline(&own);
	cr_expect_eq(own.exit_code, 4);
	finish(true);
	compare("runner/driver", &text);
}

Test(runner, what_the_worker_does)
{
	static const char *lines[] = {"a", "b"};
	struct fw_message message = {.kind = FW_HOST_STARTED};
	size_t size;
	char *text;

	give_graph();
	out = open_memstream(&text, &size);
	begin(&loud_ops);
	worker_connect(&own, 5);
	worker_send(&own, 5, &(struct fw_message){.kind = FW_BEAT});
	fprintf(out, "before the loop sleeps\n");
	before_sleep(&own.before_sleep);
	cr_expect_not(own.is_running);
	worker_send(&own, 5, &message);
	message = (struct fw_message){.kind = FW_HOST_EXIT,
				      .exit = {.lines = lines, .line_count = 2}};
	worker_send(&own, 5, &message);
	cr_expect_eq(message.exit.line_count, 2);
	worker_disconnect(&own, 5);
	fprintf(out, "and again\n");
	before_sleep(&own.before_sleep);
	cr_expect(own.is_running);
	worker_log(&own, FRAGI_LOG_WARN, "me", "not shown");
	worker_ended(&own, 0);
	finish(true);
	compare("runner/worker", &text);
}

static void send_all(enum fw_kind kind)
{
	static struct fw_late_counts lates[FRAGI_LATE_PLACES_MAX + 1];
	static uint8_t program[FRAGI_SOURCE_MAX + 1];
	struct fw_message message = {.kind = kind};

	if (kind == FW_HOST_STATS)
		message.stats =
			(struct fw_host_stats){.lates = lates, .late_count = FRAG_COUNT_OF(lates)};
	else
		message.start_app =
			(struct fw_start_app){.source = program, .source_bytes = sizeof(program)};
	worker_send(&own, 5, &message);
}

/* What does not fit into a frame, is none, or has no memory. */
Test(runner, what_cannot_be_sent)
{
	static uint8_t frame[] = {3, 0, 0, 0, 255, 255, 255};
	size_t size;
	char *text;

	give_graph();
	out = open_memstream(&text, &size);
	begin(&loud_ops);
	fprintf(out, "counters\n");
	send_all(FW_HOST_STATS);
	cr_expect_not(own.is_over);
	fprintf(out, "a program\n");
	send_all(FW_START_APP);
	finish(true);
	begin(&loud_ops);
	fprintf(out, "what is no message, and one behind it\n");
	step_with((struct drv_action){
		.kind = DRV_DO_SEND, .connection = 5, .frame = frame, .frame_bytes = 7});
	worker_disconnect(&own, 5);
	before_sleep(&own.before_sleep);
	finish(true);
	for (int i = 0; i < 3; i++) {
		begin(&loud_ops);
		fprintf(out, "memory is short, %d\n", i);
		fragi_alloc_fail_after(0, 1);
		if (i == 0)
			worker_disconnect(&own, 5);
		else
			step_with((struct drv_action){.kind = i == 1 ? DRV_DO_SEND : DRV_DO_CLOSE,
						      .connection = 5,
						      .frame = frame,
						      .frame_bytes = 7});
		cr_expect_eq(fragi_alloc_fail_off(), 1);
		finish(true);
	}
	compare("runner/unsent", &text);
}

static void launch(const char *what, int expected)
{
	struct fw_message create = {.kind = FW_HOST_CREATE};
	struct fragi_arena arena = {0};
	struct wrk_launch launch;
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	fprintf(out, "%s\n", what);
	r = worker_launch(&own, &create, &arena, &launch, &err);
	cr_expect_eq(r, expected);
	fprintf(out, "  %s: stdin %d, main %d, program %s, with arguments %d\n", err.text,
		launch.keeps_stdin, launch.main != NULL,
		launch.program != NULL ? launch.program : "none", launch.arguments != NULL);
	cr_expect_eq(launch.ops, config.host);
	cr_expect_eq(launch.environment, is_short ? NULL : variables);
	fragi_arena_fini(&arena);
}

Test(runner, how_a_host_is_started)
{
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	unsetenv("FRAG_LIBRARY_PATH");
	unsetenv("FRAG_PYTHON");
	unsetenv(FRAGI_UCX_FOLDER);
	own.config = &config;
	config.host = &wrk_spawn_process;
	config.is_guest = true;
	launch("a thread", 0);
	setenv("FRAG_LIBRARY_PATH", "/own", 1);
	setenv(FRAGI_UCX_FOLDER, "/ucx", 1);
	launch("only the variable", 0);
	config.library_path = "/flag";
	config.app_folder = "/app";
	config.keeps_stdin = true;
	launch("both paths", 0);
	unsetenv("FRAG_LIBRARY_PATH");
	launch("only the flag", 0);
	config.is_guest = false;
	config.host_main = host_main;
	interpreter = "";
	launch("a child", 0);
	interpreter = "python3";
	setenv("FRAG_PYTHON", "python3.12", 1);
	launch("a child of Python", 0);
	interpreter = NULL;
	launch("there is no Python", -ENOENT);
	is_short = true;
	launch("memory is short", -ENOMEM);
	compare("runner/launch", &text);
}

Test(runner, what_is_missing_at_the_start)
{
	size_t size;
	char *text;

	give_graph();
	out = open_memstream(&text, &size);
	cr_assert_eq(uv_loop_init(&loop), 0);
	driver_result = -ENOMEM;
	cr_expect_eq(runner_init(&own, &loop, &config, &loud_ops, &source), -ENOMEM);
	fprintf(out, "no worker\n");
	driver_result = 0;
	worker_result = -EMFILE;
	cr_expect_eq(runner_init(&own, &loop, &config, &loud_ops, &source), -EMFILE);
	cr_expect_eq(uv_loop_close(&loop), 0);
	fprintf(out, "no memory for the graph\n");
	fragi_alloc_fail_after(0, 1);
	begin_in_sight(&loud_ops);
	(void)fragi_alloc_fail_off();
	finish(true);
	compare("runner/missing", &text);
}
