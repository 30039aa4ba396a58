// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <workerd/shell.c> /* over parts that this file plays */

#include <base/alloc.h>

#include "logged.h"

/*
 * workerd around its worker: what becomes of what the driver, the network, signals and files bring,
 * what a host is launched with, and what is given back at the end.
 */
static FILE *out;
static struct wrk_shell own;
static struct wrk_options options;
static const struct wrk_worker_ops *ops; /* that the worker was given, and for whom */
static void *ops_arg;
static uv_loop_t *life_loop; /* of a whole life */
static bool is_ready;        /* it has begun */
static int fails_at, calls;  /* that call of those that may fail does; 0: none */

static int may_fail(const char *what, int code, struct frag_err *err)
{
	bool fails = ++calls == fails_at;

	fprintf(out, "  %s%s\n", what, fails ? ": fails" : "");
	if (!fails)
		return 0;
	return err != NULL
		       ? fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, code, "no %s", what)
		       : code;
}

static void note(const char *what)
{
	fprintf(out, "  %s\n", what);
}

static void show_text(const char *name, const char *text)
{
	if (text != NULL && text[0] != '\0')
		fprintf(out, ", %s '%s'", name, text);
}

/* The worker. */
static enum wrk_session session = WRK_SESSION_CONNECTING;
static uint32_t host_count;
static const char *refusal;

void wrk_worker_raise(struct wrk_worker *worker, const struct wrk_event *event)
{
	(void)worker;
	fprintf(out, "  event %d", event->kind);
	if (event->connection != 0)
		fprintf(out, " of %d", (int)event->connection);
	if (event->failure != FRAGI_FAILURE_NONE)
		fprintf(out, ", %s", fragi_failure_name(event->failure));
	if (event->message != NULL)
		fprintf(out, ", %s", fw_kind_name(event->message->kind));
	show_text("text", event->text);
	show_text("proof", event->proof);
	fprintf(out, "\n");
	if (event->kind == WRK_EVENT_START)
		ops->ended(ops_arg, 7);
}

int wrk_worker_init(struct wrk_worker *worker, uv_loop_t *loop, const struct wrk_config *config,
		    const struct wrk_worker_ops *worker_operations, void *arg)
{
	life_loop = loop;
	(void)worker, (void)loop;
	ops = worker_operations;
	ops_arg = arg;
	fprintf(out, "  a worker");
	show_text("name", config->name);
	show_text("driver", config->driver);
	show_text("address", config->worker_address);
	show_text("memory", config->memory);
	show_text("none, as", config->no_memory);
	show_text("no limits, as", config->no_limits);
	fprintf(out, ", %u fragments, once %d, outlives %d, beat %d, dead %d, seed %d\n",
		config->fragment_count, config->once, config->outlives_refusal,
		(int)(config->beat_ns / 1000000), (int)(config->dead_ns / 1000000),
		config->seed != 0);
	cr_expect(config->node[0] != '\0' && config->clock[0] != '\0');
	cr_expect_str_eq(config->version, FRAG_VERSION);
	return may_fail("worker", -ENOMEM, NULL);
}

void wrk_worker_fini(struct wrk_worker *worker)
{
	(void)worker;
	note("the worker is given back");
}

void wrk_worker_find_gpus(struct wrk_worker *worker, struct wrk_inventory *inventory,
			  const char *program)
{
	(void)worker, (void)inventory;
	fprintf(out, "  looks for GPUs by %s\n", program);
}

uint32_t wrk_core_host_count(const struct wrk_core *core)
{
	(void)core;
	return host_count;
}

const char *wrk_core_refusal(const struct wrk_core *core)
{
	(void)core;
	return refusal;
}

enum wrk_session wrk_core_session(const struct wrk_core *core)
{
	(void)core;
	return session;
}

/* The connection to the driver. */
struct wrk_driver {
	uint64_t id;
	bool is_own_user;
};
static struct wrk_driver drivers[2] = {{.id = 1}, {.id = 2}};

int wrk_driver_open(uv_loop_t *loop, const struct fragi_address *address, uint64_t id,
		    const struct fw_connection_options *wanted, const struct wrk_driver_ops *driver,
		    void *arg, struct wrk_driver **out_driver)
{
	cr_expect(loop == &own.loop && address == &options.driver && arg == &own &&
		  driver == &driver_ops);
	cr_expect(wanted->tls == own.credentials.tls && wanted->users == &options.users &&
		  !wanted->is_accepted);
	fprintf(out, "  opens %d\n", (int)id);
	*out_driver = &drivers[id - 1];
	return may_fail("connection", -ENOMEM, NULL);
}

void wrk_driver_finish(struct wrk_driver *driver)
{
	fprintf(out, "  finishes %d\n", (int)driver->id);
}

void wrk_driver_send(struct wrk_driver *driver, const struct fw_message *message)
{
	fprintf(out, "  sends %s to %d\n", fw_kind_name(message->kind), (int)driver->id);
}

uint64_t wrk_driver_id(const struct wrk_driver *driver)
{
	return driver->id;
}

int wrk_driver_fd(const struct wrk_driver *driver)
{
	return 40 + (int)driver->id;
}

bool wrk_driver_is_own_user(const struct wrk_driver *driver)
{
	return driver->is_own_user;
}

void wrk_driver_renew(struct wrk_driver *driver)
{
	fprintf(out, "  renews %d\n", (int)driver->id);
}

void wrk_driver_lose(struct wrk_driver *driver, const char *why)
{
	fprintf(out, "  loses %d: %s\n", (int)driver->id, why);
}

void wrk_renewal_begin(struct wrk_renewal *renewal, struct fw_tls *next,
		       const struct wrk_driver *present)
{
	cr_expect(renewal == &own.renewal && next == (struct fw_tls *)&own);
	fprintf(out, "  renewal begins over %d\n", present != NULL ? (int)present->id : 0);
}

void wrk_renewal_attached(struct wrk_renewal *renewal, const struct fw_welcome *welcome,
			  struct wrk_driver *present)
{
	(void)renewal;
	fprintf(out, "  renewal for session %d over %d\n", (int)welcome->session, (int)present->id);
}

enum fragi_failure wrk_renewal_lost(struct wrk_renewal *renewal, enum fragi_failure failure)
{
	(void)renewal;
	fprintf(out, "  renewal lost: %s\n", fragi_failure_name(failure));
	return failure == FRAGI_FAILURE_KEY_REFUSED ? FRAGI_FAILURE_NONE : failure;
}

void wrk_renewal_end(struct wrk_renewal *renewal)
{
	(void)renewal;
	note("renewal ends");
}

int wrk_reporter_start(struct wrk_reporter *reporter, const struct fw_tls_config *tls,
		       const struct fw_users *users, struct frag_err *err)
{
	(void)reporter;
	cr_expect(tls == &options.tls && users == &options.users);
	return may_fail("reporter", -EAGAIN, err);
}

void wrk_reporter_attached(struct wrk_reporter *reporter, uint64_t connection,
			   const struct fw_welcome *welcome, int fd)
{
	(void)reporter;
	fprintf(out, "  reporter: session %d over %d by %d\n", (int)welcome->session,
		(int)connection, fd);
}

void wrk_reporter_disconnected(struct wrk_reporter *reporter, uint64_t connection)
{
	(void)reporter;
	fprintf(out, "  reporter: without %d\n", (int)connection);
}

void wrk_reporter_end(struct wrk_reporter *reporter)
{
	(void)reporter;
	note("the reporter ends");
}

int fw_credentials_open(struct fw_credentials *credentials, uv_loop_t *loop,
			const struct fw_tls_config *config,
			void (*changed)(void *arg, struct fw_tls *next), void (*kept)(void *arg),
			void *arg, struct frag_err *err)
{
	(void)credentials, (void)loop, (void)arg;
	cr_expect(config == &options.tls && changed == on_keys_changed && kept == NULL);
	return may_fail("keys", -EACCES, err);
}

void fw_credentials_close(struct fw_credentials *credentials)
{
	(void)credentials;
	note("keys are not read again");
}

void fw_credentials_fini(struct fw_credentials *credentials)
{
	(void)credentials;
	note("keys are given back");
}

/* The machine. */
static bool has_interface = true;

int wrk_interface_find(const char *address, char out_device[IF_NAMESIZE], struct frag_err *err)
{
	if (strcmp(address, "no address") == 0)
		return frag_err_set(err, -EINVAL, "it is none");
	if (!has_interface)
		return frag_err_set(err, -ENOENT, "nothing has %s", address);
	snprintf(out_device, IF_NAMESIZE, "eth0");
	return 0;
}

int wrk_spawn_find_host(char *path, size_t size)
{
	snprintf(path, size, "/libexec/fraghost");
	return may_fail("fraghost", -ENOENT, NULL);
}

const struct wrk_spawn_ops wrk_spawn_process = {NULL, NULL, NULL};

int wrk_rights_init(struct wrk_rights *rights, const struct wrk_rights_config *config,
		    struct frag_err *err)
{
	cr_expect_eq(config, &options.rights);
	rights->landlock_abi = 7;
	return may_fail("rights", -EPERM, err);
}

void wrk_rights_fini(struct wrk_rights *rights)
{
	(void)rights;
	note("rights are given back");
}

void wrk_rights_log(const struct wrk_rights *rights)
{
	(void)rights;
	note("rights are logged");
}

int wrk_rights_writable(const struct wrk_rights *rights, bool is_own_user, const char *folder,
			struct fragi_arena *arena, const char *const **out_paths, size_t *out_count)
{
	static const char *const paths[] = {"/a", "/b"};

	(void)rights, (void)arena;
	fprintf(out, "  writable: own user %d", is_own_user);
	show_text("folder", folder);
	fprintf(out, "\n");
	*out_paths = paths;
	*out_count = 2;
	return may_fail("folders", -ENOMEM, NULL);
}

const char *wrk_rights_list(struct fragi_arena *arena, const char *const *paths, size_t count)
{
	return fragi_arena_printf(arena, "%zu of %s", count, paths[0]);
}

int wrk_rights_apply(struct wrk_rights *rights, const char *const *paths, size_t count,
		     struct frag_err *err)
{
	(void)rights;
	fprintf(out, "  rules for %zu, the first %s\n", count, paths[0]);
	return may_fail("rules", -EPERM, err);
}

int wrk_rights_check_python(const struct wrk_rights *rights, const char *path, struct frag_err *err)
{
	(void)rights;
	fprintf(out, "  checks %s\n", path);
	return may_fail("trust", -EPERM, err);
}

void wrk_control_groups_init(struct wrk_control_groups *groups, const char *proc, const char *root)
{
	(void)groups;
	fprintf(out, "  groups of %s and %s\n", proc, root);
}

int wrk_control_groups_make(struct wrk_control_groups *groups, uint32_t cpu_limit,
			    uint64_t memory_limit, int *out_fd, struct frag_err *err)
{
	(void)groups;
	fprintf(out, "  a group of %u and %d\n", cpu_limit, (int)memory_limit);
	*out_fd = 33;
	return may_fail("group", -EBUSY, err);
}

void wrk_control_groups_clear(struct wrk_control_groups *groups)
{
	(void)groups;
	note("groups are cleared away");
}

char *const *wrk_environment_make(const struct wrk_environment *e, struct fragi_arena *arena)
{
	static char *const made[] = {NULL};

	(void)arena;
	fprintf(out, "  environment: own user %d, ports %u-%u", e->is_own_user, e->port_first,
		e->port_last);
	show_text("device", e->device);
	show_text("libraries", e->library_path);
	show_text("app root", e->app_root);
	show_text("UCX", e->ucx_folder);
	show_text("announced", e->announced);
	show_text("writes", e->may_write);
	show_text("as", e->user->name);
	fprintf(out, "\n");
	return may_fail("environment", -ENOMEM, NULL) < 0 ? NULL : made;
}

int wrk_interpreter_choose(const struct fw_host_create *create, const char *python,
			   struct fragi_arena *arena, char *const **out_arguments,
			   struct frag_err *err)
{
	static char program[] = "/bin/python";
	static char *const arguments[] = {program, NULL};

	(void)arena;
	*out_arguments = create->is_beside ? arguments : NULL;
	fprintf(out, "  interpreter %s\n", python != NULL ? python : "none");
	return may_fail("interpreter", -ENOENT, err);
}

void wrk_shared_memory(const struct wrk_rights *rights, char memory[FRAGI_IDENTITY_MEMORY_SIZE],
		       char *out_why, size_t size)
{
	(void)rights;
	memory[0] = '\0';
	snprintf(out_why, size, "there is none");
}

void wrk_inventory_find(struct wrk_inventory *inventory, const char *proc, const char *dev,
			const char *groups)
{
	(void)inventory;
	fprintf(out, "  inventory of %s, %s and %s\n", proc, dev, groups);
}

void wrk_inventory_offer(const struct wrk_inventory *inventory, struct wrk_config *config)
{
	(void)inventory, (void)config;
}

void wrk_examiner_init(struct wrk_examiner *examiner, const char *driver, const char *certificate)
{
	(void)examiner;
	fprintf(out, "  examiner for %s", driver);
	show_text("certificate", certificate);
	fprintf(out, "\n");
}

void wrk_process_reap_strays(void)
{
	note("strays are reaped");
}

void wrk_strays_adopt(void)
{
	note("strays are adopted");
}

bool fragi_service_is_managed(void)
{
	return true;
}

static int64_t watchdog_ns = INT64_C(60000000000);

int64_t fragi_service_watchdog_ns(void)
{
	return watchdog_ns;
}

void fragi_service_open(void)
{
}

void fragi_service_alive(void)
{
	note("service: alive");
}

void fragi_service_ready(void)
{
	is_ready = true;
	note("service: ready");
}

void fragi_service_stopping(void)
{
	note("service: stopping");
}

void fragi_service_status(const char *text)
{
	fprintf(out, "  service: %s\n", text);
}

static void begin(void)
{
	own = (struct wrk_shell){.options = &options,
				 .program = "/libexec/fraghost",
				 .rights = {.landlock_abi = 7, .user = {.name = "user"}}};
	options = (struct wrk_options){.driver_text = "driver:1", .name = "w"};
	fails_at = calls = 0;
	has_interface = true;
	drivers[0].is_own_user = false;
}

static void end(const char *name, char **text)
{
	fclose(out);
	expected_compare(name, *text);
	free(*text);
}

Test(worker_daemon, what_the_driver_brings)
{
	const struct fw_welcome welcome = {.session = 77};
	const struct fw_message beat = {.kind = FW_BEAT};
	struct fw_message *copy;
	size_t bytes, size;
	char *text;

	out = open_memstream(&text, &size);
	begin();
	note("- connections");
	shell_connect(&own, 1);
	shell_send(&own, 1, &beat);
	shell_send(&own, 2, &beat);
	shell_keep(&own, 2, &welcome);
	shell_keep(&own, 1, &welcome);
	driver_ops.connected(&own, 1, "10.0.0.1", "key k 1");
	cr_expect_str_eq(own.local_address, "10.0.0.1");
	cr_assert_eq(fw_message_copy(&beat, &copy, &bytes), 0);
	driver_ops.message(&own, 1, copy);
	shell_disconnect(&own, 2);
	note("- is lost");
	driver_ops.lost(&own, 1, FRAGI_FAILURE_KEY_REFUSED, "it has no such key");
	driver_ops.lost(&own, 1, FRAGI_FAILURE_USER_REFUSED, "another user");
	driver_ops.freed(&own, &drivers[1]);
	cr_expect_eq(own.driver, &drivers[0]);
	driver_ops.freed(&own, &drivers[0]);
	cr_expect_null(own.driver);
	shell_send(&own, 1, &beat);
	note("- cannot be opened");
	fails_at = ++calls + 1;
	shell_connect(&own, 2);
	cr_expect_null(own.driver);
	driver_ops.failed(&own, 2, FRAGI_FAILURE_KEY_REFUSED, "nobody");
	note("- is left");
	shell_connect(&own, 2);
	shell_disconnect(&own, 2);
	cr_expect_null(own.driver);
	shell_disconnect(&own, 2);
	note("- keys");
	on_keys_changed(&own, (struct fw_tls *)&own);
	on_renewed(&own, "key k 2");
	cr_expect_not(on_session_refused(&own, 1, "why"));
	shell_connect(&own, 1);
	on_keys_changed(&own, (struct fw_tls *)&own);
	on_renewed(&own, "key k 2");
	cr_expect(on_session_refused(&own, 1, "why"));
	cr_expect_not(on_session_refused(&own, 2, "why"));
	end("worker/daemon_driver", &text);
}

Test(worker_daemon, what_the_network_brings)
{
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	begin();
	has_interface = false;
	note("- nothing is known yet");
	look_at_network(&own);
	snprintf(own.local_address, sizeof(own.local_address), "10.0.0.1");
	note("- the address of the connection");
	for (int i = 0; i < 4; i++) {
		has_interface = i >= 2;
		look_at_network(&own);
	}
	options.has_worker_address = true;
	snprintf(options.worker_address.host, sizeof(options.worker_address.host), "10.0.0.2");
	note("- the address of the flag");
	has_interface = false;
	look_at_network(&own);
	has_interface = true;
	look_at_network(&own);
	end("worker/daemon_network", &text);
}

static void launch(const char *what, struct fw_host_create create, int fails)
{
	const struct fw_message message = {.kind = FW_HOST_CREATE, .create = create};
	struct wrk_launch made = {.program = NULL};
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_arena arena = {0};
	int r;

	fprintf(out, "%s\n", what);
	calls = 0;
	fails_at = fails;
	r = shell_launch(&own, &message, &arena, &made, &err);
	fprintf(out, "  %s%s", r < 0 ? strerrorname_np(-r) : "launched", r < 0 ? ", " : "");
	fprintf(out, "%s\n", err.text);
	if (r == 0)
		fprintf(out, "  %s%s, plain %d, %u lines a second\n", made.program,
			made.arguments != NULL ? ", with arguments" : "", made.names_plain,
			made.line_rate);
	cr_expect(r < 0 || (made.ops == &wrk_spawn_process && made.environment != NULL &&
			    made.confine == &own.rights.confine));
	fragi_arena_fini(&arena);
}

Test(worker_daemon, what_a_host_is_launched_with)
{
	static const char graph[] = "frag: 1\n";
	const struct fragi_spec_source source = {.graph = {"app.yaml", graph, strlen(graph)},
						 .app_folder = "/graphs"};
	struct fw_host_create create = {.application = "app"};
	size_t bytes, size;
	void *packed;
	char *text;

	cr_assert_eq(fragi_source_pack(&source, &packed, &bytes), 0);
	create.source = packed;
	create.source_bytes = (uint32_t)bytes;
	out = open_memstream(&text, &size);
	begin();
	snprintf(own.local_address, sizeof(own.local_address), "10.0.0.1");
	launch("nobody's", create, 0);
	own.driver = &drivers[0];
	launch("another user's", create, 0);
	drivers[0].is_own_user = true;
	own.rights.landlock_abi = -ENOSYS;
	launch("its own user's, without Landlock", create, 0);
	own.rights.landlock_abi = 7;
	options.library_path = "/l";
	options.app_root = "/r";
	options.ucx_folder = "/u";
	options.rights.python = "py";
	options.has_worker_address = true;
	options.worker_address = (struct fragi_address){"10.0.0.2", 20000, 20009};
	snprintf(options.announced_text, sizeof(options.announced_text), "192.0.2.1/5");
	create.is_beside = true;
	create.limits[FRAGI_AMOUNT_CPU] = 1500;
	launch("with all flags, an interpreter and a limit of cores", create, 0);
	create.limits[FRAGI_AMOUNT_CPU] = 0;
	create.limits[FRAGI_AMOUNT_MEMORY] = 4096;
	launch("a limit of memory", create, 0);
	snprintf(own.groups.why, sizeof(own.groups.why), "no groups");
	launch("limits that cannot be enforced", create, 0);
	own.groups.why[0] = '\0';
	for (int i = 1; i <= 6; i++) {
		char what[32];

		snprintf(what, sizeof(what), "the call %d fails", i);
		launch(what, create, i);
	}
	has_interface = false;
	launch("without an interface", create, 0);
	note("- its end");
	ops = NULL;
	shell_host_gone(&own);
	fragi_free(packed);
	end("worker/daemon_launch", &text);
}

Test(worker_daemon, what_signals_and_timers_bring)
{
	static const int numbers[] = {SIGHUP, SIGTERM, SIGINT};
	uv_signal_t handle = {.data = &own};
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	for (int has_keys = 0; has_keys < 2; has_keys++)
		for (int is_stopping = 0; is_stopping < 2; is_stopping++)
			for (int i = 0; i < 3; i++) {
				begin();
				own.credentials.tls = has_keys ? (struct fw_tls *)&own : NULL;
				own.is_stopping = is_stopping;
				fprintf(out, "SIG%s%s%s\n", sigabbrev_np(numbers[i]),
					has_keys ? ", keys" : "", is_stopping ? ", again" : "");
				on_signal(&handle, numbers[i]);
				cr_expect_eq(own.is_stopping,
					     is_stopping || numbers[i] != SIGHUP || !has_keys);
			}
	begin();
	on_child_ended(&handle, SIGCHLD);
	on_watchdog(NULL);
	for (host_count = 0; host_count < 3; host_count++) {
		session = WRK_SESSION_ATTACHED;
		report_status(&own);
	}
	snprintf(own.credentials.why_kept, sizeof(own.credentials.why_kept), "keeps keys");
	report_status(&own);
	session = WRK_SESSION_BACKOFF;
	report_status(&own);
	refusal = "it is full";
	on_network(&(uv_timer_t){.data = &own});
	shell_log(&own, FRAGI_LOG_DEBUG, NULL, "not shown");
	end("worker/daemon_signals", &text);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	uv_close(handle, NULL);
}

/* A life that never began leaves its loop to the end of the process. */
static void close_loop(uv_loop_t *loop)
{
	uv_walk(loop, close_handle, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(loop), 0);
}

static void live(const char *what, int fails)
{
	int code;

	fprintf(out, "%s\n", what);
	is_ready = false;
	life_loop = NULL;
	calls = 0;
	fails_at = fails;
	logged_begin();
	code = wrk_shell_run(&options);
	logged_end(out);
	fprintf(out, "  ends with %d\n", code);
	if (!is_ready && life_loop != NULL)
		close_loop(life_loop);
}

Test(worker_daemon, its_whole_life)
{
	static const char *const times[] = {"1", "0", "x", "600000", "600001", "-5"};
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	begin();
	live("all goes well", 0);
	options.has_worker_address = options.once = true;
	snprintf(options.worker_address.host, sizeof(options.worker_address.host), "10.0.0.2");
	options.tls.certificate = "cert.pem";
	options.fragment_count = 3;
	setenv("FRAG_BEAT_MS", "100", 1);
	setenv("FRAG_DEAD_MS", "900", 1);
	live("with flags", 0);
	snprintf(options.announced.host, sizeof(options.announced.host), "192.0.2.1");
	for (int i = 1; i <= 5; i++) {
		char name[32];

		snprintf(name, sizeof(name), "the call %d fails", i);
		live(name, i);
	}
	snprintf(options.worker_address.host, sizeof(options.worker_address.host), "no address");
	live("an address that is none", 0);
	logged_begin();
	for (size_t i = 0; i < FRAG_COUNT_OF(times); i++) {
		setenv("FRAG_DEAD_MS", times[i], 1);
		fprintf(out, "%s ms: %d\n", times[i], (int)(env_ms("FRAG_DEAD_MS") / 1000000));
	}
	logged_end(out);
	end("worker/daemon_life", &text);
}

Test(worker_daemon, a_watchdog_is_told_as_often_as_it_asks)
{
	static struct wrk_shell shell;
	static const int64_t often[] = {0, 999999, 1000000, INT64_C(60000000000)};

	for (size_t i = 0; i < FRAG_COUNT_OF(often); i++) {
		const uint64_t ms = (uint64_t)(often[i] / 1000000);

		watchdog_ns = often[i];
		cr_assert_eq(uv_loop_init(&shell.loop), 0);
		watch_loop(&shell);
		cr_expect_eq(uv_is_active((uv_handle_t *)&shell.watchdog), ms > 0);
		cr_expect_eq(uv_timer_get_repeat(&shell.watchdog), ms);
		cr_expect(ms == 0 || uv_timer_get_due_in(&shell.watchdog) == ms);
		uv_close((uv_handle_t *)&shell.watchdog, NULL);
		uv_run(&shell.loop, UV_RUN_DEFAULT);
		cr_expect_eq(uv_loop_close(&shell.loop), 0);
	}
}
