/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <workerd/shell.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <uv.h>

#define LOG_TOPIC "worker"
#include <base/alloc.h>
#include <base/log.h>
#include <base/stamp.h>
#include <workerd/core/core.h>
#include <workerd/environment.h>
#include <workerd/interface.h>
#include <workerd/link.h>
#include <workerd/process.h>

/*
 * Callbacks of libuv become events, actions of the core become calls. An event that an action
 * causes waits until the actions of the present step are done, so that steps never nest.
 */
#define PENDING_TEXT 512

struct pending {
	struct pending *next;
	struct wrk_event event;
	char text[PENDING_TEXT];
	struct fw_host_stats stats;
};

static const int stop_signals[] = {SIGTERM, SIGINT};

struct wrk_shell {
	const struct wrk_options *options;
	char program[PATH_MAX]; /* fraghost */
	uv_loop_t loop;
	uv_timer_t timer;
	uv_signal_t signals[FRAG_COUNT_OF(stop_signals)];
	struct wrk_core *core;
	struct wrk_actions actions;
	struct wrk_link *link; /* the present one; NULL: none */
	struct wrk_process *processes[WRK_HOSTS_MAX];
	char local_address[64]; /* of the control connection */
	struct pending *first, **last;
	bool stepping, ended;
	int exit_code;
};

static void shell_raise(struct wrk_shell *shell, const struct wrk_event *event);

static struct wrk_process *process_of(struct wrk_shell *shell, uint32_t host)
{
	for (size_t i = 0; i < WRK_HOSTS_MAX; i++)
		if (shell->processes[i] != NULL && wrk_process_host(shell->processes[i]) == host)
			return shell->processes[i];
	return NULL;
}

static void on_host_message(void *arg, uint32_t host, struct fw_message *message)
{
	shell_raise(arg, &(struct wrk_event){
				 .kind = WRK_HOST_MESSAGE, .host = host, .message = message});
	fw_message_free(message);
}

static void on_host_link_lost(void *arg, uint32_t host, const char *sentence, bool cut)
{
	shell_raise(arg, &(struct wrk_event){.kind = WRK_HOST_LINK_LOST,
					     .host = host,
					     .text = sentence,
					     .cut = cut});
}

static void on_host_exited(void *arg, uint32_t host, const struct wrk_exited *exited)
{
	shell_raise(arg,
		    &(struct wrk_event){.kind = WRK_HOST_EXITED, .host = host, .exited = exited});
}

static void on_host_freed(void *arg, struct wrk_process *process)
{
	struct wrk_shell *shell = arg;

	for (size_t i = 0; i < WRK_HOSTS_MAX; i++)
		if (shell->processes[i] == process)
			shell->processes[i] = NULL;
}

static const struct wrk_process_ops process_ops = {
	.message = on_host_message,
	.link_lost = on_host_link_lost,
	.exited = on_host_exited,
	.freed = on_host_freed,
};

static void on_link_connected(void *arg, uint64_t id, const char *local_address)
{
	struct wrk_shell *shell = arg;

	snprintf(shell->local_address, sizeof(shell->local_address), "%s", local_address);
	shell_raise(shell,
		    &(struct wrk_event){.kind = WRK_CONNECTED, .link = id, .text = local_address});
}

static void on_link_failed(void *arg, uint64_t id, const char *why)
{
	shell_raise(arg, &(struct wrk_event){.kind = WRK_CONNECT_FAILED, .link = id, .text = why});
}

static void on_link_message(void *arg, uint64_t id, struct fw_message *message)
{
	shell_raise(arg, &(struct wrk_event){
				 .kind = WRK_DRIVER_MESSAGE, .link = id, .message = message});
	fw_message_free(message);
}

static void on_link_lost(void *arg, uint64_t id, const char *why)
{
	shell_raise(arg, &(struct wrk_event){.kind = WRK_DRIVER_LOST, .link = id, .text = why});
}

static void on_link_freed(void *arg, struct wrk_link *link)
{
	struct wrk_shell *shell = arg;

	if (shell->link == link)
		shell->link = NULL;
}

static const struct wrk_link_ops link_ops = {
	.connected = on_link_connected,
	.failed = on_link_failed,
	.message = on_link_message,
	.lost = on_link_lost,
	.freed = on_link_freed,
};

/* The environment and the process of one host. Returns 0 or negative errno with a sentence. */
static int start_process(struct wrk_shell *shell, uint32_t host, struct wrk_process **out_process,
			 struct frag_err *err)
{
	const struct wrk_options *options = shell->options;
	char device[IF_NAMESIZE];
	struct wrk_environment environment = {
		.library_path = options->library_path,
		.app_root = options->app_root,
		.device = device,
		.port_first = options->has_worker_address ? options->worker_address.port
							  : WRK_DATA_PORT_FIRST,
		.port_last = options->has_worker_address ? options->worker_address.port_last
							 : WRK_DATA_PORT_LAST,
	};
	struct fragi_arena arena = {0};
	char *const *variables;
	int r = wrk_interface_find(options->has_worker_address ? options->worker_address.host
							       : shell->local_address,
				   device, err);

	if (r < 0)
		return r;
	variables = wrk_environment_make(&environment, &arena);
	if (variables == NULL)
		r = frag_err_set(err, -ENOMEM, "cannot start a host: out of memory");
	else
		r = wrk_process_start(&shell->loop, host, shell->program, variables, &process_ops,
				      shell, out_process, err);
	fragi_arena_fini(&arena);
	return r;
}

static void do_spawn(struct wrk_shell *shell, const struct wrk_action *action)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct wrk_process **place = NULL;

	for (size_t i = 0; i < WRK_HOSTS_MAX && place == NULL; i++)
		if (shell->processes[i] == NULL)
			place = &shell->processes[i];
	if (place == NULL)
		frag_err_set(&err, -EBUSY,
			     "cannot start a host: those that ended are not cleared away yet");
	else if (start_process(shell, action->host, place, &err) == 0) {
		shell_raise(shell, &(struct wrk_event){.kind = WRK_HOST_SPAWNED,
						       .host = action->host,
						       .pid = wrk_process_pid(*place)});
		wrk_process_send(*place, action->message);
		return;
	}
	shell_raise(shell, &(struct wrk_event){.kind = WRK_HOST_FAILED,
					       .host = action->host,
					       .text = err.text});
}

static void do_connect(struct wrk_shell *shell, uint64_t id)
{
	int r = wrk_link_open(&shell->loop, &shell->options->driver, id, &link_ops, shell,
			      &shell->link);

	if (r < 0) {
		shell->link = NULL;
		on_link_failed(shell, id, frag_strerror(r));
	}
}

static void do_sample(struct wrk_shell *shell, uint32_t host)
{
	struct wrk_process *process = process_of(shell, host);
	struct fw_host_stats stats;

	if (process != NULL && wrk_process_sample(process, &stats))
		shell_raise(shell, &(struct wrk_event){.kind = WRK_HOST_SAMPLED,
						       .host = host,
						       .stats = &stats});
}

static void on_handle_closed(uv_handle_t *handle)
{
	(void)handle;
}

/* Everything that keeps the loop alive goes; it ends when the last words have left. */
static void shell_end(struct wrk_shell *shell, int exit_code)
{
	if (shell->ended)
		return;
	shell->ended = true;
	shell->exit_code = exit_code;
	uv_close((uv_handle_t *)&shell->timer, on_handle_closed);
	for (size_t i = 0; i < FRAG_COUNT_OF(shell->signals); i++) {
		uv_close((uv_handle_t *)&shell->signals[i], on_handle_closed);
		/* the result stands: none changes it any more */
		(void)signal(stop_signals[i], SIG_IGN);
	}
	if (shell->link != NULL)
		wrk_link_finish(shell->link);
	shell->link = NULL;
	for (size_t i = 0; i < WRK_HOSTS_MAX; i++)
		if (shell->processes[i] != NULL)
			wrk_process_abandon(shell->processes[i]);
}

static void perform(struct wrk_shell *shell, const struct wrk_action *action)
{
	struct wrk_process *process = process_of(shell, action->host);
	bool present = shell->link != NULL && wrk_link_id(shell->link) == action->link;

	switch (action->kind) {
	case WRK_DO_CONNECT:
		do_connect(shell, action->link);
		break;
	case WRK_DO_DISCONNECT:
		if (present) {
			wrk_link_finish(shell->link);
			shell->link = NULL;
		}
		break;
	case WRK_DO_SEND_DRIVER:
		if (present)
			wrk_link_send(shell->link, action->message);
		break;
	case WRK_DO_SPAWN:
		do_spawn(shell, action);
		break;
	case WRK_DO_SEND_HOST:
		if (process != NULL)
			wrk_process_send(process, action->message);
		break;
	case WRK_DO_SIGNAL_HOST:
		if (process != NULL)
			wrk_process_signal(process, action->signal);
		break;
	case WRK_DO_SAMPLE_HOST:
		do_sample(shell, action->host);
		break;
	case WRK_DO_LOG:
		fragi_log(action->level, NULL, "%s", action->text);
		break;
	case WRK_DO_EXIT:
		shell_end(shell, action->exit_code);
		break;
	}
}

static void on_timer(uv_timer_t *timer)
{
	shell_raise(timer->data, &(struct wrk_event){.kind = WRK_TIMER});
}

static void set_timer(struct wrk_shell *shell)
{
	int64_t deadline = wrk_core_deadline_ns(shell->core), now = fragi_now_ns();

	if (shell->ended)
		return;
	if (deadline == INT64_MAX) {
		uv_timer_stop(&shell->timer);
		return;
	}
	uv_update_time(&shell->loop);
	uv_timer_start(&shell->timer, on_timer,
		       deadline > now ? (uint64_t)((deadline - now) / 1000000) + 1 : 0, 0);
}

static void step(struct wrk_shell *shell, const struct wrk_event *event)
{
	wrk_actions_reset(&shell->actions);
	if (wrk_core_step(shell->core, event, fragi_now_ns(), &shell->actions) < 0) {
		log_error(NULL, "out of memory: this worker and its hosts end");
		shell_end(shell, 3);
		return;
	}
	for (size_t i = 0; i < shell->actions.count; i++)
		perform(shell, &shell->actions.items[i]);
}

/*
 * Messages and exits never come from within a step: only what an action itself causes is kept for
 * later.
 */
static void keep_for_later(struct wrk_shell *shell, const struct wrk_event *event)
{
	struct pending *pending = fragi_calloc(1, sizeof(*pending));

	if (pending == NULL) {
		log_error(NULL, "out of memory: this worker and its hosts end");
		shell_end(shell, 3);
		return;
	}
	pending->event = *event;
	if (event->text != NULL) {
		snprintf(pending->text, sizeof(pending->text), "%s", event->text);
		pending->event.text = pending->text;
	}
	if (event->stats != NULL) {
		pending->stats = *event->stats;
		pending->event.stats = &pending->stats;
	}
	*shell->last = pending;
	shell->last = &pending->next;
}

static void shell_raise(struct wrk_shell *shell, const struct wrk_event *event)
{
	if (shell->ended)
		return;
	if (shell->stepping) {
		keep_for_later(shell, event);
		return;
	}
	shell->stepping = true;
	step(shell, event);
	while (shell->first != NULL) {
		struct pending *pending = shell->first;

		if (!shell->ended)
			step(shell, &pending->event);
		shell->first = pending->next;
		if (shell->first == NULL)
			shell->last = &shell->first;
		fragi_free(pending);
	}
	shell->stepping = false;
	set_timer(shell);
}

static void on_signal(uv_signal_t *handle, int number)
{
	(void)number;
	shell_raise(handle->data, &(struct wrk_event){.kind = WRK_STOP});
}

/*
 * build/bin/workerd finds build/libexec/frag/fraghost, /usr/bin/workerd finds
 * /usr/libexec/frag/fraghost.
 */
static int find_program(char *out, size_t size)
{
	char self[PATH_MAX - 32];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return -errno;
	self[n] = '\0';
	for (int i = 0; i < 2; i++) {
		slash = strrchr(self, '/');
		if (slash == NULL)
			return -ENOENT;
		*slash = '\0';
	}
	snprintf(out, size, "%s/libexec/frag/fraghost", self);
	return access(out, X_OK) < 0 ? -errno : 0;
}

static int64_t env_ms(const char *name)
{
	const char *text = getenv(name);
	int64_t ms = 0;

	if (text == NULL || fragi_parse_i64(text, &ms) < 0 || ms < 1 || ms > 600000)
		return 0;
	return ms * 1000000;
}

static int make_core(struct wrk_shell *shell)
{
	const struct wrk_options *options = shell->options;
	static char name[HOST_NAME_MAX + 1], node[128];
	struct wrk_config config = {
		.name = options->name,
		.fragments = options->fragments,
		.fragment_count = options->fragment_count,
		.driver = options->driver_text,
		.worker_address = options->has_worker_address ? options->worker_address.host : "",
		.node = node,
		.version = FRAG_VERSION,
		.cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
		.once = options->once,
		.beat_ns = env_ms("FRAG_BEAT_MS"),
		.dead_ns = env_ms("FRAG_DEAD_MS"),
	};
	struct sysinfo info;
	int r;

	if (config.name == NULL) {
		if (gethostname(name, sizeof(name)) < 0)
			strcpy(name, "worker");
		config.name = name;
	}
	r = wrk_interface_node(node, sizeof(node));
	if (r < 0)
		return r;
	if (sysinfo(&info) == 0)
		config.memory_bytes = (uint64_t)info.totalram * info.mem_unit;
	if (getrandom(&config.seed, sizeof(config.seed), GRND_NONBLOCK) < 0)
		config.seed = (uint64_t)fragi_now_ns();
	return wrk_core_create(&config, &shell->core);
}

static int shell_prepare(struct wrk_shell *shell)
{
	char device[IF_NAMESIZE];
	struct frag_err err = FRAG_ERR_INIT;
	int r = find_program(shell->program, sizeof(shell->program));

	if (r < 0) {
		log_error(NULL, "cannot find fraghost at %s: %s; install it beside workerd",
			  shell->program, frag_strerror(r));
		return r;
	}
	if (shell->options->has_worker_address &&
	    wrk_interface_find(shell->options->worker_address.host, device, &err) < 0) {
		log_error(NULL, "--worker-address: %s", err.text);
		return -ENOENT;
	}
	r = make_core(shell);
	if (r == 0)
		r = uv_loop_init(&shell->loop);
	if (r < 0) {
		log_error(NULL, "cannot start: %s", frag_strerror(r));
		return r;
	}
	uv_timer_init(&shell->loop, &shell->timer);
	shell->timer.data = shell;
	for (size_t i = 0; i < FRAG_COUNT_OF(shell->signals); i++) {
		uv_signal_init(&shell->loop, &shell->signals[i]);
		shell->signals[i].data = shell;
		uv_signal_start(&shell->signals[i], on_signal, stop_signals[i]);
	}
	return 0;
}

int wrk_shell_run(const struct wrk_options *options)
{
	static struct wrk_shell shell;
	int exit_code;

	shell.options = options;
	shell.last = &shell.first;
	(void)signal(SIGPIPE, SIG_IGN);
	if (shell_prepare(&shell) < 0) {
		wrk_core_destroy(shell.core);
		return 3;
	}
	shell_raise(&shell, &(struct wrk_event){.kind = WRK_START});
	uv_run(&shell.loop, UV_RUN_DEFAULT);
	exit_code = shell.exit_code;
	wrk_core_destroy(shell.core);
	wrk_actions_fini(&shell.actions);
	uv_loop_close(&shell.loop);
	return exit_code;
}
