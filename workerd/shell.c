// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/shell.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <uv.h>

#define LOG_TOPIC "worker"
#include <base/beat.h>
#include <base/identity.h>
#include <base/kernel.h>
#include <base/log.h>
#include <base/sentence.h>
#include <base/service.h>
#include <base/signals.h>
#include <base/stamp.h>
#include <text/spec.h>
#include <wire/credentials.h>
#include <workerd/control_group.h>
#include <workerd/environment.h>
#include <workerd/interface.h>
#include <workerd/interpreter.h>
#include <workerd/renewal.h>
#include <workerd/shared_memory.h>
#include <workerd/spawn.h>
#include <workerd/strays.h>
#include <workerd/worker.h>

/*
 * workerd: a worker (workerd/worker.h), its socket to the driver, and signals. The loop ends when
 * the worker has ended and its last words have left.
 */
static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};
#define NETWORK_MS 500
#define LINE_RATE 1000 /* lines a second of each host */

struct wrk_shell {
	const struct wrk_options *options;
	char program[PATH_MAX]; /* fraghost */
	uv_loop_t loop;
	uv_signal_t signals[FRAG_COUNT_OF(stop_signals)];
	uv_timer_t network; /* looks at the interface of the hosts' address */
	bool network_waits; /* the core knows that it is not there */
	uv_timer_t watchdog;
	uv_signal_t child_ended;
	bool is_stopping;
	struct wrk_rights rights;
	struct wrk_control_groups groups;
	struct fw_credentials credentials;
	struct wrk_renewal renewal;
	struct wrk_worker worker;
	struct wrk_inventory inventory;
	struct wrk_reporter reporter;
	struct wrk_driver *driver; /* the present one; NULL: none */
	char local_address[64];    /* of the control connection */
	int exit_code;
};

/* The address at which hosts listen; empty: unknown until there is a driver. */
static const char *address_of_hosts(const struct wrk_shell *shell)
{
	return shell->options->has_worker_address ? shell->options->worker_address.host
						  : shell->local_address;
}

/* At boot the interface may come later than this program; a cable may be pulled. */
static void look_at_network(struct wrk_shell *shell)
{
	const char *flag = shell->options->has_worker_address ? "--worker-address: " : "";
	const char *address = address_of_hosts(shell);
	char device[IF_NAMESIZE];
	struct frag_err err = FRAG_ERR_INIT;
	bool waits = address[0] != '\0' && wrk_interface_find(address, device, &err) < 0;

	if (!waits && !shell->network_waits)
		return;
	shell->network_waits = waits;
	if (waits) {
		char why[sizeof(err.text) + 32];

		fragi_sentence(why, sizeof(why), "%s%s", flag, err.text);
		wrk_worker_raise(&shell->worker,
				 &(struct wrk_event){.kind = WRK_EVENT_NETWORK, .text = why});
	} else {
		wrk_worker_raise(&shell->worker, &(struct wrk_event){.kind = WRK_EVENT_NETWORK});
	}
}

static void on_driver_connected(void *arg, uint64_t id, const char *local_address,
				const char *proof)
{
	struct wrk_shell *shell = arg;

	snprintf(shell->local_address, sizeof(shell->local_address), "%s", local_address);
	look_at_network(shell); /* HELLO carries what the worker waits for */
	wrk_worker_raise(&shell->worker, &(struct wrk_event){.kind = WRK_EVENT_CONNECTED,
							     .connection = id,
							     .text = local_address,
							     .proof = proof});
}

static void on_driver_failed(void *arg, uint64_t id, enum fragi_failure failure, const char *why)
{
	struct wrk_shell *shell = arg;

	failure = wrk_renewal_lost(&shell->renewal, failure);
	wrk_worker_raise(&shell->worker, &(struct wrk_event){.kind = WRK_EVENT_CONNECT_FAILED,
							     .connection = id,
							     .failure = failure,
							     .text = why});
}

static void on_driver_message(void *arg, uint64_t id, struct fw_message *message)
{
	struct wrk_shell *shell = arg;

	wrk_worker_raise(&shell->worker, &(struct wrk_event){.kind = WRK_EVENT_DRIVER_MESSAGE,
							     .connection = id,
							     .message = message});
	fw_message_free(message);
}

static void on_driver_lost(void *arg, uint64_t id, enum fragi_failure failure, const char *why)
{
	struct wrk_shell *shell = arg;

	failure = wrk_renewal_lost(&shell->renewal, failure);
	wrk_worker_raise(&shell->worker, &(struct wrk_event){.kind = WRK_EVENT_DRIVER_LOST,
							     .connection = id,
							     .failure = failure,
							     .text = why});
}

static void on_driver_freed(void *arg, struct wrk_driver *driver)
{
	struct wrk_shell *shell = arg;

	wrk_reporter_disconnected(&shell->reporter, wrk_driver_id(driver));
	if (shell->driver == driver)
		shell->driver = NULL;
}

static const struct wrk_driver_ops driver_ops = {
	.connected = on_driver_connected,
	.failed = on_driver_failed,
	.message = on_driver_message,
	.lost = on_driver_lost,
	.freed = on_driver_freed,
};

static void shell_connect(void *arg, uint64_t id)
{
	struct wrk_shell *shell = arg;
	const struct fw_connection_options options = {
		.tls = shell->credentials.tls,
		.users = &shell->options->users,
	};
	int r = wrk_driver_open(&shell->loop, &shell->options->driver, id, &options, &driver_ops,
				shell, &shell->driver);

	if (r < 0) {
		shell->driver = NULL;
		on_driver_failed(shell, id, FRAGI_FAILURE_NONE, frag_strerror(r));
	}
}

static bool is_present(const struct wrk_shell *shell, uint64_t id)
{
	return shell->driver != NULL && wrk_driver_id(shell->driver) == id;
}

static void shell_disconnect(void *arg, uint64_t id)
{
	struct wrk_shell *shell = arg;

	if (!is_present(shell, id))
		return;
	(void)wrk_renewal_lost(&shell->renewal, FRAGI_FAILURE_NONE);
	wrk_driver_finish(shell->driver);
	shell->driver = NULL;
}

static void shell_send(void *arg, uint64_t id, const struct fw_message *message)
{
	struct wrk_shell *shell = arg;

	if (is_present(shell, id))
		wrk_driver_send(shell->driver, message);
}

static void shell_keep(void *arg, uint64_t id, const struct fw_welcome *session)
{
	struct wrk_shell *shell = arg;

	if (!is_present(shell, id))
		return;
	wrk_reporter_attached(&shell->reporter, id, session, wrk_driver_fd(shell->driver));
	wrk_renewal_attached(&shell->renewal, session, shell->driver);
}

/*
 * The folder of the graph that this HOST_CREATE brings, in arena; NULL: unknown. Relative paths of
 * the graph start from it where --app-root is not given.
 */
static const char *graph_folder(const struct fw_message *create, struct fragi_arena *arena)
{
	const char *folder = NULL;
	struct fragi_source source;

	if (fragi_source_unpack(create->create.source, create->create.source_bytes, &source) == 0) {
		if (source.source.app_folder != NULL)
			folder = fragi_arena_strdup(arena, source.source.app_folder);
		fragi_source_fini(&source);
	}
	return folder;
}

/* Sets what hosts may write, and the sentence part for those that try elsewhere. */
static int confine(struct wrk_shell *shell, const struct fw_message *create,
		   struct fragi_arena *arena, struct wrk_environment *environment,
		   struct frag_err *err)
{
	const char *folder = environment->is_own_user ? graph_folder(create, arena) : NULL;
	const char *const *paths;
	size_t count;
	int r = wrk_rights_writable(&shell->rights, environment->is_own_user, folder, arena, &paths,
				    &count);

	if (r < 0)
		return frag_err_set(err, r, "cannot start a host: %s", frag_strerror(r));
	if (shell->rights.landlock_abi > 0)
		environment->may_write = wrk_rights_list(arena, paths, count);
	return wrk_rights_apply(&shell->rights, paths, count, err);
}

/* The next host is one with limits. */
static int limit(struct wrk_shell *shell, const struct fw_host_create *create, struct frag_err *err)
{
	const int64_t cpu = create->limits[FRAGI_AMOUNT_CPU];
	const int64_t bytes = create->limits[FRAGI_AMOUNT_MEMORY];

	if ((cpu == 0 && bytes == 0) ||
	    shell->groups.why[0] != '\0') /* the driver knows, and says so */
		return 0;
	return wrk_control_groups_make(&shell->groups, (uint32_t)cpu, (uint64_t)bytes,
				       &shell->rights.confine.group_fd, err);
}

static int shell_launch(void *arg, const struct fw_message *create, struct fragi_arena *arena,
			struct wrk_launch *out_launch, struct frag_err *err)
{
	struct wrk_shell *shell = arg;
	const struct wrk_options *options = shell->options;
	char device[IF_NAMESIZE];
	struct wrk_environment environment = {
		.library_path = options->library_path,
		.app_root = options->app_root,
		.ucx_folder = options->ucx_folder,
		.is_own_user = shell->driver != NULL && wrk_driver_is_own_user(shell->driver),
		.device = device,
		.port_first = options->has_worker_address ? options->worker_address.port
							  : WRK_DATA_PORT_FIRST,
		.port_last = options->has_worker_address ? options->worker_address.port_last
							 : WRK_DATA_PORT_LAST,
		.announced = options->announced_text,
		.user = &shell->rights.user,
	};
	int r = wrk_interface_find(address_of_hosts(shell), device, err);

	if (r == 0)
		r = confine(shell, create, arena, &environment, err);
	if (r == 0)
		r = limit(shell, &create->create, err);
	if (r < 0)
		return r;
	*out_launch = (struct wrk_launch){.ops = &wrk_spawn_process,
					  .names_plain = true,
					  .program = shell->program,
					  .environment = wrk_environment_make(&environment, arena),
					  .confine = &shell->rights.confine,
					  .line_rate = LINE_RATE};
	if (out_launch->environment == NULL)
		return frag_err_set(err, -ENOMEM, "cannot start a host: out of memory");
	r = wrk_interpreter_choose(&create->create, options->rights.python, arena,
				   &out_launch->arguments, err);
	if (r < 0 || out_launch->arguments == NULL)
		return r;
	out_launch->program = out_launch->arguments[0];
	return wrk_rights_check_python(&shell->rights, out_launch->program, err);
}

static void shell_host_gone(void *arg)
{
	struct wrk_shell *shell = arg;

	wrk_control_groups_clear(&shell->groups);
}

static void shell_log(void *arg, enum fragi_log_level level, const char *subject, const char *text)
{
	(void)arg;
	fragi_log(level, subject, "%s", text);
}

/* Everything that keeps the loop alive goes; it ends when the last words have left. */
static void shell_ended(void *arg, int exit_code)
{
	struct wrk_shell *shell = arg;

	shell->exit_code = exit_code;
	fragi_service_stopping();
	uv_close((uv_handle_t *)&shell->network, NULL);
	uv_close((uv_handle_t *)&shell->watchdog, NULL);
	for (size_t i = 0; i < FRAG_COUNT_OF(shell->signals); i++) {
		uv_close((uv_handle_t *)&shell->signals[i], NULL);
		/* the result stands: none changes it any more */
		(void)signal(stop_signals[i], SIG_IGN);
	}
	uv_close((uv_handle_t *)&shell->child_ended, NULL);
	fw_credentials_close(&shell->credentials);
	wrk_renewal_end(&shell->renewal);
	if (shell->driver != NULL)
		wrk_driver_finish(shell->driver);
	shell->driver = NULL;
}

static const struct wrk_worker_ops worker_ops = {
	.connect = shell_connect,
	.disconnect = shell_disconnect,
	.send = shell_send,
	.keep = shell_keep,
	.launch = shell_launch,
	.host_gone = shell_host_gone,
	.log = shell_log,
	.ended = shell_ended,
};

static void on_signal(uv_signal_t *handle, int number)
{
	struct wrk_shell *shell = handle->data;

	if (number == SIGHUP && shell->credentials.tls != NULL)
		return; /* keys are read again */
	if (number == SIGHUP && shell->is_stopping)
		return; /* both the shell and the kernel send it when a terminal is closed */
	shell->is_stopping = true;
	fragi_service_stopping();
	wrk_worker_raise(&shell->worker, &(struct wrk_event){.kind = WRK_EVENT_STOP});
}

static void on_keys_changed(void *arg, struct fw_tls *next)
{
	struct wrk_shell *shell = arg;

	wrk_renewal_begin(&shell->renewal, next, shell->driver);
}

static void on_renewed(void *arg, const char *proof)
{
	struct wrk_shell *shell = arg;

	if (shell->driver == NULL)
		return;
	wrk_driver_renew(shell->driver);
	wrk_worker_raise(&shell->worker,
			 &(struct wrk_event){.kind = WRK_EVENT_RENEWED, .proof = proof});
}

static bool on_session_refused(void *arg, uint64_t id, const char *why)
{
	struct wrk_shell *shell = arg;

	if (!is_present(shell, id))
		return false;
	wrk_driver_lose(shell->driver, why);
	return true;
}

static void on_child_ended(uv_signal_t *handle, int number)
{
	(void)handle;
	(void)number;
	wrk_process_reap_strays();
}

static int64_t env_ms(const char *name)
{
	const char *text = getenv(name);
	int64_t ms = 0;

	if (text == NULL)
		return 0;
	if (fragi_parse_i64(text, &ms) < 0 || ms < 1 || ms > FRAGI_DEAD_MAX_NS / 1000000) {
		log_warn(NULL, "%s is \"%.40s\", which is ignored; give milliseconds, %d at most",
			 name, text, (int)(FRAGI_DEAD_MAX_NS / 1000000));
		return 0;
	}
	return ms * 1000000;
}

static int make_worker(struct wrk_shell *shell)
{
	const struct wrk_options *options = shell->options;
	static char name[HOST_NAME_MAX + 1], node[FRAGI_IDENTITY_SIZE], clock[FRAGI_IDENTITY_SIZE];
	static char memory[FRAGI_IDENTITY_MEMORY_SIZE], why[128];
	struct wrk_config config = {
		.name = options->name,
		.fragments = options->fragments,
		.fragment_count = options->fragment_count,
		.driver = options->driver_text,
		.worker_address = options->announced.host[0] != '\0' ? options->announced.host
				  : options->has_worker_address      ? options->worker_address.host
								     : "",
		.node = node,
		.clock = clock,
		.memory = memory,
		.no_memory = why,
		.version = FRAG_VERSION,
		.once = options->once,
		.outlives_refusal = fragi_service_is_managed(),
		.beat_ns = env_ms("FRAG_BEAT_MS"),
		.dead_ns = env_ms("FRAG_DEAD_MS"),
	};
	int r;

	if (config.name == NULL) {
		if (gethostname(name, sizeof(name)) < 0)
			strcpy(name, "worker");
		config.name = name;
	}
	r = fragi_identity_loopback(node);
	if (r == 0)
		r = fragi_identity_clock(true, clock);
	if (r < 0)
		return r;
	wrk_shared_memory(&shell->rights, memory, why, sizeof(why));
	if (memory[0] == '\0')
		log_info(NULL, "hosts share no memory with those of other workers: %s", why);
	shell->inventory = options->inventory; /* borrows its texts */
	wrk_inventory_find(&shell->inventory, "/proc", "/dev", "/sys/fs/cgroup");
	wrk_inventory_offer(&shell->inventory, &config);
	wrk_control_groups_init(&shell->groups, "/proc", "/sys/fs/cgroup");
	config.no_limits = shell->groups.why;
	if (getrandom(&config.seed, sizeof(config.seed), GRND_NONBLOCK) < 0)
		config.seed = (uint64_t)fragi_now_ns();
	r = wrk_worker_init(&shell->worker, &shell->loop, &config, &worker_ops, shell);
	wrk_examiner_init(&shell->worker.examiner, options->driver_text, options->tls.certificate);
	return r;
}

static void report_status(const struct wrk_shell *shell)
{
	uint32_t hosts = wrk_core_host_count(shell->worker.core);
	const char *refusal = wrk_core_refusal(shell->worker.core);
	const char *kept = shell->credentials.why_kept;
	char text[sizeof(shell->options->driver_text) + 1500];

	if (wrk_core_session(shell->worker.core) == WRK_SESSION_ATTACHED)
		fragi_sentence(text, sizeof(text),
			       "attached to the driver at %s, runs %u host%s%s%s",
			       shell->options->driver_text, (unsigned int)hosts,
			       hosts == 1 ? "" : "s", kept[0] != '\0' ? "; " : "", kept);
	else if (refusal != NULL)
		fragi_sentence(text, sizeof(text), "refused by the driver at %s: %s",
			       shell->options->driver_text, refusal);
	else
		snprintf(text, sizeof(text), "waiting for the driver at %s",
			 shell->options->driver_text);
	fragi_service_status(text);
}

static void on_network(uv_timer_t *timer)
{
	look_at_network(timer->data);
	report_status(timer->data);
}

static void watch_network(struct wrk_shell *shell)
{
	uv_timer_init(&shell->loop, &shell->network);
	shell->network.data = shell;
	look_at_network(shell);
	uv_timer_start(&shell->network, on_network, NETWORK_MS, NETWORK_MS);
}

static void on_watchdog(uv_timer_t *timer)
{
	(void)timer;
	fragi_service_alive();
}

static void watch_loop(struct wrk_shell *shell)
{
	uint64_t ms = (uint64_t)fragi_service_watchdog_ns() / 1000000;

	uv_timer_init(&shell->loop, &shell->watchdog);
	if (ms > 0)
		uv_timer_start(&shell->watchdog, on_watchdog, ms, ms);
}

/* Logs what is wrong. */
static enum fragi_failure shell_prepare(struct wrk_shell *shell)
{
	char device[IF_NAMESIZE];
	struct frag_err err = FRAG_ERR_INIT;
	int r = wrk_spawn_find_host(shell->program, sizeof(shell->program));

	if (r < 0) {
		log_error(NULL, "cannot find fraghost at %s: %s; install it beside workerd",
			  shell->program, frag_strerror(r));
		return FRAGI_FAILURE_SYSTEM_REFUSED;
	}
	r = wrk_rights_init(&shell->rights, &shell->options->rights, &err);
	if (r < 0) {
		log_error(NULL, "%s", err.text);
		return fragi_err_failure(&err);
	}
	if (shell->options->has_worker_address &&
	    wrk_interface_find(shell->options->worker_address.host, device, &err) == -EINVAL) {
		log_error(NULL, "--worker-address: %s", err.text);
		return FRAGI_FAILURE_USAGE;
	}
	r = uv_loop_init(&shell->loop);
	if (r == 0)
		r = make_worker(shell);
	if (r < 0) {
		log_error(NULL, "cannot start: %s", frag_strerror(r));
		return FRAGI_FAILURE_SYSTEM_REFUSED;
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(shell->signals); i++) {
		uv_signal_init(&shell->loop, &shell->signals[i]);
		shell->signals[i].data = shell;
		if (stop_signals[i] != SIGHUP || !fragi_signal_is_ignored(SIGHUP))
			uv_signal_start(&shell->signals[i], on_signal, stop_signals[i]);
	}
	if (fw_credentials_open(&shell->credentials, &shell->loop, &shell->options->tls,
				on_keys_changed, NULL, shell, &err) < 0) {
		log_error(NULL, "%s", err.text);
		return fragi_err_failure(&err);
	}
	shell->renewal = (struct wrk_renewal){.credentials = &shell->credentials,
					      .address = &shell->options->driver,
					      .users = &shell->options->users,
					      .loop = &shell->loop,
					      .renewed = on_renewed,
					      .refused = on_session_refused,
					      .arg = shell};
	wrk_strays_adopt();
	shell->worker.reporter = &shell->reporter;
	uv_signal_init(&shell->loop, &shell->child_ended);
	uv_signal_start(&shell->child_ended, on_child_ended, SIGCHLD);
	wrk_rights_log(&shell->rights); /* after all that can fail, so that an error stands alone */
	return FRAGI_FAILURE_NONE;
}

int wrk_shell_run(const struct wrk_options *options)
{
	static struct wrk_shell shell;
	struct frag_err err = FRAG_ERR_INIT;
	enum fragi_failure failure;
	int exit_code;

	shell.options = options;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a write beyond ulimit -f returns EFBIG */
	if (fragi_kernel_check(true, &err) < 0) {
		log_error(NULL, "%s", err.text);
		return fragi_failure_exit(FRAGI_FAILURE_SYSTEM_REFUSED);
	}
	if (wrk_reporter_start(&shell.reporter, &options->tls, &options->users, &err) < 0)
		log_warn(NULL, "%s", err.text);
	failure = shell_prepare(&shell);
	if (failure != FRAGI_FAILURE_NONE) {
		wrk_reporter_end(&shell.reporter);
		wrk_worker_fini(&shell.worker);
		wrk_rights_fini(&shell.rights);
		return fragi_failure_exit(failure);
	}
	watch_network(&shell);
	watch_loop(&shell);
	fragi_service_ready();
	wrk_worker_raise(&shell.worker, &(struct wrk_event){.kind = WRK_EVENT_START});
	wrk_worker_find_gpus(&shell.worker, &shell.inventory, shell.program);
	uv_run(&shell.loop, UV_RUN_DEFAULT);
	exit_code = shell.exit_code;
	wrk_reporter_end(&shell.reporter);
	wrk_worker_fini(&shell.worker);
	wrk_rights_fini(&shell.rights);
	uv_loop_close(&shell.loop);
	fw_credentials_fini(&shell.credentials);
	fragi_log_catch_up(0);
	return exit_code;
}
