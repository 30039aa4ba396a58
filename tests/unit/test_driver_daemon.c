// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <driverd/shell.c> /* over a core and parts that this file plays */

#include <fcntl.h>

#include <base/alloc.h>

#include "logged.h"

/*
 * driverd around its core: what becomes of what peers, signals, files and the core itself bring,
 * and what is given back at the end.
 */
static FILE *out;
static struct shell own;
static struct drv_options options;
static int fails_at, calls; /* that call of those that may fail does; 0: none */

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
	if (text != NULL)
		fprintf(out, ", %s '%s'", name, text);
}

/* The core: each step has these actions. */
static struct drv_action next_actions[4];
static size_t next_count, app_count;
static bool is_short, is_given_up, holds_answers;
static const char *failed_app;
static struct fw_identity identities[4];

int drv_core_create(const struct drv_config *config, struct drv_core **out_core)
{
	fprintf(out, "  a core");
	show_text("at", config->address);
	fprintf(out,
		", beat %d, dead %d, ends with app %d, adopts %d, keeps state %d, encrypts %d, progress %d, expects %u\n",
		(int)config->beat_ns, (int)config->dead_ns, config->ends_with_app, config->adopts,
		config->keeps_state, config->encrypts_data, (int)config->progress_ns,
		(unsigned int)config->expected_count);
	cr_expect(config->clock[0] != '\0' && config->random == drv_system_random);
	*out_core = (struct drv_core *)&own;
	return may_fail("core", -ENOMEM, NULL);
}

void drv_core_destroy(struct drv_core *core)
{
	fprintf(out, "  the core is %s\n", core != NULL ? "destroyed" : "not there");
}

int drv_core_restore(struct drv_core *core, const struct drv_record *record)
{
	(void)core;
	fprintf(out, "  restores record %d\n", record->kind);
	return 0;
}

bool drv_core_is_given_up(const struct drv_core *core, const struct drv_event *event,
			  int64_t now_ns)
{
	(void)core, (void)event;
	cr_expect_gt(now_ns, 0);
	return is_given_up;
}

int drv_core_step(struct drv_core *core, struct drv_event *event, int64_t now_ns,
		  struct drv_actions *actions)
{
	(void)core;
	cr_expect_gt(now_ns, 0);
	fprintf(out, "  event %d", event->kind);
	if (event->connection != 0)
		fprintf(out, " of %d", (int)event->connection);
	show_text("peer", event->peer);
	show_text("text", event->text);
	if (event->message != NULL)
		show_text("message", fw_kind_name(event->message->kind));
	if (event->signal != 0)
		fprintf(out, ", signal %d", event->signal);
	if (event->change != 0)
		fprintf(out, ", change %d", (int)event->change);
	if (event->app.source != NULL)
		fprintf(out, ", app %d of %zu bytes within %d", (int)event->app.id,
			event->app.source_bytes, (int)event->app.start_timeout_ns);
	if (event->accepts != NULL)
		fprintf(out, ", accepts %d and %d", event->accepts(event->arg, &identities[1]),
			event->accepts(event->arg, &identities[2]));
	if (event->kind == DRV_EVENT_REVOKED)
		show_text("identity", event->identity->name);
	fprintf(out, "\n");
	fw_message_free(event->message);
	actions->items = next_actions;
	actions->count = next_count;
	next_count = 0;
	return is_short ? -ENOMEM : 0;
}

int64_t drv_core_deadline_ns(const struct drv_core *core)
{
	(void)core;
	return 4711;
}

size_t drv_core_app_count(const struct drv_core *core)
{
	(void)core;
	return app_count;
}

const char *drv_core_failed(const struct drv_core *core)
{
	(void)core;
	return failed_app;
}

bool drv_core_holds_answers(const struct drv_core *core)
{
	(void)core;
	return holds_answers;
}

const struct fw_identity *drv_core_identity(const struct drv_core *core, uint64_t connection,
					    const struct fw_identity *first)
{
	(void)core, (void)connection;
	return first;
}

void drv_actions_reset(struct drv_actions *actions)
{
	actions->count = 0;
}

void drv_actions_join(struct drv_actions *actions)
{
	(void)actions;
}

void drv_actions_fini(struct drv_actions *actions)
{
	actions->items = NULL;
	note("actions are given back");
}

/* Connections. */
struct fw_connection {
	uint64_t id;
	const struct fw_connection_ops *ops;
	void *arg;
	const struct fw_identity *identity;
};
static struct fw_connection streams[8];
static size_t stream_count;
static bool has_room = true;

int fw_connection_create(uv_loop_t *loop, enum fw_stream_kind kind,
			 const struct fw_connection_ops *ops, void *arg,
			 const struct fw_connection_options *wanted,
			 struct fw_connection **out_connection)
{
	cr_expect(loop == &own.loop && wanted->users == &options.users && wanted->is_accepted);
	cr_expect_eq(wanted->tls, kind == FW_STREAM_PIPE ? NULL : own.credentials.tls);
	streams[stream_count] = (struct fw_connection){stream_count + 1, ops, arg, NULL};
	*out_connection = &streams[stream_count++];
	return may_fail(kind == FW_STREAM_TCP ? "connection" : "local connection", -ENOMEM, NULL);
}

uv_stream_t *fw_connection_stream(struct fw_connection *c)
{
	return (uv_stream_t *)c;
}

int uv_accept(uv_stream_t *server, uv_stream_t *client)
{
	(void)server, (void)client;
	return may_fail("accept", -EAGAIN, NULL);
}

int uv_fileno(const uv_handle_t *handle, uv_os_fd_t *fd)
{
	*fd = 40 + (int)((const struct fw_connection *)handle)->id;
	return 0;
}

void drv_source_read(int fd, struct drv_source *out_source)
{
	*out_source = (struct drv_source){.is_user = true, .user = (uid_t)(fd / 43)};
}

bool drv_source_is_same(const struct drv_source *a, const struct drv_source *b)
{
	return a->user == b->user;
}

int fw_connection_start(struct fw_connection *c)
{
	(void)c;
	return may_fail("start", -EPIPE, NULL);
}

void fw_connection_admit(struct fw_connection *c)
{
	fprintf(out, "  admits %d\n", (int)c->id);
}

int fw_connection_send(struct fw_connection *c, uint8_t *frame, size_t size)
{
	fprintf(out, "  sends %zu bytes to %d\n", size, (int)c->id);
	free(frame);
	return 0;
}

void fw_connection_finish(struct fw_connection *c)
{
	fprintf(out, "  finishes %d\n", (int)c->id);
}

void fw_connection_close(struct fw_connection *c)
{
	fprintf(out, "  closes %d\n", (int)c->id);
}

const struct fw_identity *fw_connection_identity(const struct fw_connection *c)
{
	return c->identity;
}

const char *fw_connection_peer(const struct fw_connection *c)
{
	static char name[16];

	snprintf(name, sizeof(name), "peer%d", (int)c->id);
	return name;
}

bool fw_connection_user(const struct fw_connection *c, uid_t *out_user)
{
	(void)c, (void)out_user;
	return false;
}

size_t fw_connection_queued(const struct fw_connection *c)
{
	(void)c;
	return 0;
}

bool fw_connection_has_room(const struct fw_connection *c, size_t most)
{
	(void)c, (void)most;
	return has_room;
}

bool fw_tls_accepts(const struct fw_tls *tls, const struct fw_identity *identity)
{
	cr_expect_eq(tls, own.credentials.tls);
	return identity->serial != 2;
}

/* The rest. */
void drv_listener_init(struct drv_listener *listener, uv_loop_t *loop, enum fw_stream_kind kind,
		       int (*take)(struct drv_listener *listener, void *arg), void *arg)
{
	(void)loop, (void)take, (void)arg;
	listener->kind = kind;
	snprintf(listener->address, sizeof(listener->address), "host:%d", (int)kind);
}

int drv_listener_open(struct drv_listener *listener, const struct fragi_address *wanted,
		      struct frag_err *err)
{
	fprintf(out, "  listens at %s, port %u\n", wanted->host, wanted->port);
	listener->port = 57777;
	return may_fail("listener", -EADDRINUSE, err);
}

int drv_listener_open_local(struct drv_listener *listener, uint16_t port,
			    const struct fw_users *users, struct frag_err *err)
{
	cr_expect_eq(listener->kind, FW_STREAM_PIPE);
	cr_expect_eq(users->program, options.users.program);
	fprintf(out, "  local socket of %u\n", port);
	return may_fail("local listener", -EACCES, err);
}

void drv_listener_close(struct drv_listener *listener)
{
	fprintf(out, "  closes listener %d\n", listener->kind);
}

void fw_deadline_init(struct fw_deadline *deadline, uv_loop_t *loop, void (*due)(void *arg),
		      void *arg)
{
	(void)loop, (void)arg;
	cr_expect_eq(due, on_deadline);
	deadline->due = due;
}

static int signal_to_raise;

void fw_deadline_set(struct fw_deadline *deadline, int64_t at_ns, int64_t now_ns)
{
	(void)deadline;
	cr_expect(at_ns == 4711 && now_ns > 0);
	note("waits");
	if (signal_to_raise != 0)
		raise(signal_to_raise);
	signal_to_raise = 0;
}

void fw_deadline_close(struct fw_deadline *deadline)
{
	(void)deadline;
	note("waits no more");
}

int fw_credentials_open(struct fw_credentials *credentials, uv_loop_t *loop,
			const struct fw_tls_config *config,
			void (*changed)(void *arg, struct fw_tls *next), void (*kept)(void *arg),
			void *arg, struct frag_err *err)
{
	(void)credentials, (void)loop, (void)config, (void)arg;
	cr_expect(changed == on_keys_changed && kept == on_keys_kept);
	return may_fail("keys", -EACCES, err);
}

void fw_credentials_use(struct fw_credentials *credentials, struct fw_tls *next)
{
	cr_expect(credentials == &own.credentials && next == (struct fw_tls *)&options);
	note("uses the keys");
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

int drv_store_open(struct drv_store *store, const char *path, uv_loop_t *loop, drv_store_fn done,
		   void *arg, struct frag_err *err)
{
	(void)store, (void)loop, (void)arg;
	cr_expect_eq(done, on_persisted);
	fprintf(out, "  state in %s\n", path);
	return may_fail("store", -EBUSY, err);
}

int drv_store_put(struct drv_store *store, const struct drv_record *record, uint64_t change)
{
	(void)store;
	fprintf(out, "  keeps record %d, change %d\n", record->kind, (int)change);
	return may_fail("record", -ENOMEM, NULL);
}

void drv_store_finish(struct drv_store *store)
{
	(void)store;
	note("the store finishes");
}

void drv_store_exit_if_stuck(const struct drv_store *store, int exit_code)
{
	(void)store;
	fprintf(out, "  may be stuck, with %d\n", exit_code);
}

void drv_store_close(struct drv_store *store)
{
	(void)store;
	note("the store is closed");
}

int drv_database_read(struct drv_database *database, drv_database_fn fn, void *arg,
		      struct frag_err *err)
{
	(void)database;
	(void)fn(arg, &(struct drv_record){.kind = DRV_RECORD_END});
	return may_fail("records", -EUCLEAN, err);
}

void drv_progress_init(struct drv_progress *progress, bool off)
{
	(void)progress;
	fprintf(out, "  progress is %s\n", off ? "off" : "on");
}

void drv_progress_show(struct drv_progress *progress, const char *text)
{
	(void)progress;
	fprintf(out, "  progress: %s\n", text);
}

void drv_progress_clear(struct drv_progress *progress)
{
	(void)progress;
	note("no progress");
}

int drv_result_show(const struct drv_output *output, const struct fragi_summary *summary)
{
	(void)output;
	fprintf(out, "  shows the result of %s\n", summary->application);
	return summary->exit_code + 10;
}

int drv_result_fail(const struct drv_output *output, const char *application,
		    const struct frag_err *err)
{
	(void)output;
	cr_expect_null(application);
	fprintf(out, "  shows a failure, %s: %s\n", fragi_failure_name(fragi_err_failure(err)),
		err->text);
	return 20;
}

void drv_facts_tell(struct drv_facts *facts, struct drv_core *core, int folder,
		    const struct fw_tls *tls, int64_t now_ns)
{
	(void)core;
	cr_expect(facts == &own.facts || own.core == NULL || core != own.core);
	(void)folder, (void)tls;
	cr_expect_gt(now_ns, 0);
}

void drv_system_random(void *arg, void *bytes, size_t size)
{
	(void)arg, (void)bytes, (void)size;
}

int64_t drv_system_realtime_offset_ns(void)
{
	return 7;
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

/* A shell in the middle of its life. */
static void begin(bool is_service)
{
	own = (struct shell){.options = &options,
			     .core = (struct drv_core *)&own,
			     .store.folder = -1,
			     .fds_max = 1024,
			     .strangers_max = 2,
			     .is_service = is_service};
	cr_assert_eq(uv_loop_init(&own.loop), 0);
	uv_timer_init(&own.loop, &own.linger);
	uv_timer_init(&own.loop, &own.watchdog);
	own.linger.data = &own;
	for (size_t i = 0; i < FRAG_COUNT_OF(own.signals); i++) {
		uv_signal_init(&own.loop, &own.signals[i]);
		own.signals[i].data = &own;
	}
	own.server.kind = FW_STREAM_TCP;
	own.local.kind = FW_STREAM_PIPE;
	stream_count = next_count = app_count = 0;
	fails_at = calls = 0;
	is_short = is_given_up = holds_answers = false;
	failed_app = NULL;
	has_room = true;
}

/* Whatever is open is closed, with no word of it: a test of the end has ended the shell before. */
static void finish(void)
{
	FILE *shown = out;

	out = fopen("/dev/null", "w");
	cr_assert_not_null(out);
	shell_end(&own, FRAGI_EXIT_OK);
	uv_run(&own.loop, UV_RUN_DEFAULT);
	while (own.connections.count > 0)
		on_closed(own.connections.items[0]->stream, 0, "", own.connections.items[0]);
	uv_run(&own.loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(&own.loop), 0);
	drv_connections_fini(&own.connections);
	fclose(out);
	out = shown;
}

static void end(const char *name, char **text)
{
	fclose(out);
	expected_compare(name, *text);
	free(*text);
}

static struct drv_connection *take_one(struct drv_listener *listener)
{
	int r = take_connection(listener, &own);

	fprintf(out, "  taken: %d of %zu, %zu strangers\n", r, own.connections.count,
		own.connections.strangers);
	return own.connections.count > 0 ? own.connections.items[own.connections.count - 1] : NULL;
}

static void step_with(struct drv_action action)
{
	fprintf(out, "action %d\n", action.kind);
	next_actions[0] = action;
	next_count = 1;
	shell_step(&own, &(struct drv_event){.kind = DRV_EVENT_TIMER});
}

static uint8_t *frame(void)
{
	return malloc(3);
}

Test(driver_daemon, actions_of_the_core)
{
	static const struct fragi_summary summary = {.application = "app", .exit_code = 4};
	struct drv_connection *connection;
	uint8_t *kept;
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	begin(false);
	connection = take_one(&own.server);
	step_with((struct drv_action){
		.kind = DRV_DO_SEND, .connection = 1, .frame = frame(), .frame_bytes = 3});
	cr_expect_null(next_actions[0].frame, "it was taken");
	step_with((struct drv_action){.kind = DRV_DO_SEND, .connection = 1});
	step_with((struct drv_action){.kind = DRV_DO_SEND,
				      .connection = 1,
				      .frame = frame(),
				      .frame_bytes = 3,
				      .may_drop = true});
	kept = frame();
	has_room = false;
	step_with((struct drv_action){
		.kind = DRV_DO_SEND, .connection = 1, .frame = kept, .may_drop = true});
	cr_expect_eq(next_actions[0].frame, kept);
	step_with((struct drv_action){.kind = DRV_DO_SEND, .connection = 9, .frame = kept});
	step_with((struct drv_action){.kind = DRV_DO_ADMIT, .connection = 9});
	step_with((struct drv_action){.kind = DRV_DO_ADMIT, .connection = 1});
	cr_expect(connection->admitted && own.connections.strangers == 0);
	step_with((struct drv_action){.kind = DRV_DO_CLOSE, .connection = 9});
	step_with((struct drv_action){.kind = DRV_DO_CLOSE, .connection = 1});
	cr_expect(connection->closing);
	step_with((struct drv_action){.kind = DRV_DO_SEND, .connection = 1, .frame = kept});
	free(kept);
	logged_begin();
	step_with((struct drv_action){
		.kind = DRV_DO_LOG, .level = FRAGI_LOG_WARN, .subject = "app/f", .text = "so"});
	logged_end(out);
	step_with((struct drv_action){.kind = DRV_DO_PROGRESS, .text = "waits"});
	step_with((struct drv_action){
		.kind = DRV_DO_PERSIST, .change = 5, .record.kind = DRV_RECORD_WANTED});
	step_with((struct drv_action){.kind = DRV_DO_ENDED, .app = 2, .summary = &summary});
	cr_expect_null(own.summary);
	note("the application of the command line");
	step_with((struct drv_action){.kind = DRV_DO_ENDED, .app = 1, .summary = &summary});
	cr_expect(own.is_over && own.exit_code == 4 && own.summary == &summary);
	note("nothing follows");
	shell_step(&own, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	finish();
	note("a service");
	begin(true);
	step_with((struct drv_action){.kind = DRV_DO_PROGRESS, .text = "waits"});
	note("a record for which there is no memory");
	fails_at = 1;
	logged_begin();
	step_with((struct drv_action){
		.kind = DRV_DO_PERSIST, .change = 5, .record.kind = DRV_RECORD_WANTED});
	logged_end(out);
	cr_expect(own.is_over && own.exit_code == 20);
	finish();
	note("a step for which there is none");
	begin(true);
	is_short = true;
	logged_begin();
	step_with((struct drv_action){.kind = DRV_DO_PROGRESS, .text = "waits"});
	logged_end(out);
	finish();
	note("a driver that has been given up");
	begin(true);
	is_given_up = true;
	logged_begin();
	shell_step(&own, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	logged_end(out);
	cr_expect_eq(own.exit_code, BEGIN_AGAIN);
	finish();
	end("driver/daemon_actions", &text);
}

Test(driver_daemon, connections_come_and_go)
{
	static const struct {
		bool is_admitted, is_closing;
		int reason;
	} rows[] = {{false, false, 0},
		    {false, false, -EKEYREJECTED},
		    {false, true, -EKEYREJECTED},
		    {true, false, 0},
		    {true, false, -EKEYREJECTED},
		    {true, true, 0},
		    {true, true, -ETIMEDOUT},
		    {false, true, -ETIMEDOUT}};
	struct drv_connection *connection;
	struct fw_message *message;
	size_t size, bytes;
	char *text;

	out = open_memstream(&text, &size);
	begin(false);
	(void)take_one(&own.server);
	connection = take_one(&own.local);
	cr_expect(connection->is_local && connection->shell == &own && connection->id == 2);
	note("one more than may be strangers: the oldest of the source with most of them goes");
	(void)take_one(&own.server);
	cr_expect_not(own.connections.items[2]->is_local);
	for (int i = 1; i <= 3; i++) {
		fprintf(out, "the call %d fails\n", i);
		calls = 0;
		fails_at = i;
		(void)take_one(&own.server);
	}
	fails_at = 0;
	note("the last descriptors are kept");
	own.fds_max = 48;
	logged_begin();
	(void)take_one(&own.server);
	logged_end(out);
	own.fds_max = 1024;
	note("a message");
	cr_assert_eq(fw_message_copy(&(struct fw_message){.kind = FW_BEAT}, &message, &bytes), 0);
	connection_ops.message(connection->stream, message, connection);
	finish();
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		begin(false);
		fprintf(out, "admitted %d, closing %d, reason %d\n", rows[i].is_admitted,
			rows[i].is_closing, rows[i].reason);
		connection = take_one(&own.server);
		connection->admitted = rows[i].is_admitted;
		connection->closing = rows[i].is_closing;
		logged_begin();
		connection_ops.closed(connection->stream, rows[i].reason, "why", connection);
		logged_end(out);
		cr_expect_eq(own.connections.count, 0);
		finish();
	}
	note("the loop waits for those that are there");
	begin(false);
	connection = take_one(&own.server);
	shell_end(&own, 3);
	cr_expect(connection->closing && uv_is_active((uv_handle_t *)&own.linger));
	connection_ops.closed(connection->stream, -ECANCELED, "closed", connection);
	cr_expect(uv_is_closing((uv_handle_t *)&own.linger));
	finish();
	note("and not for long");
	begin(false);
	(void)take_one(&own.server);
	(void)take_one(&own.local);
	shell_end(&own, 3);
	on_linger(&own.linger);
	finish();
	end("driver/daemon_connections", &text);
}

Test(driver_daemon, keys_that_are_read_again)
{
	struct drv_connection *connection;
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	begin(true);
	own.strangers_max = 9;
	own.credentials.tls = (struct fw_tls *)&own;
	for (uint64_t i = 0; i < 4; i++) {
		connection = take_one(&own.server);
		identities[i] = (struct fw_identity){.serial = i};
		snprintf(identities[i].name, sizeof(identities[i].name), "key%d", (int)i);
		streams[i].identity = i > 0 ? &identities[i] : NULL;
		connection->admitted = true;
	}
	note("changed");
	on_keys_changed(&own, (struct fw_tls *)&options);
	note("kept");
	snprintf(own.credentials.why_kept, sizeof(own.credentials.why_kept), "keeps keys");
	on_keys_kept(&own);
	note("persisted");
	on_persisted(&own, 9, "no room");
	on_persisted(&own, 10, NULL);
	finish();
	end("driver/daemon_keys", &text);
}

static void send_signal(int number, bool is_service, bool has_keys, bool is_stopping,
			bool is_leaving)
{
	begin(is_service);
	own.credentials.tls = has_keys ? (struct fw_tls *)&own : NULL;
	own.is_stopping = is_stopping;
	own.is_leaving = is_leaving;
	app_count = 1;
	fprintf(out, "SIG%s%s%s%s%s\n", sigabbrev_np(number), is_service ? ", a service" : "",
		has_keys ? ", keys" : "", is_stopping ? ", stopping" : "",
		is_leaving ? ", leaving" : "");
	logged_begin();
	on_signal(&own.signals[0], number);
	logged_end(out);
	fprintf(out, "  stopping %d, leaving %d, over %d\n", own.is_stopping, own.is_leaving,
		own.is_over);
	finish();
}

Test(driver_daemon, signals)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 8; k++)
			send_signal(numbers[i], (k & 1) != 0, (k & 2) != 0, (k & 4) != 0, false);
	send_signal(SIGINT, true, false, false, true);
	send_signal(SIGHUP, true, false, false, true);
	end("driver/daemon_signals", &text);
}

Test(driver_daemon, the_end_of_a_service)
{
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	for (app_count = 0; app_count < 3; app_count++) {
		failed_app = app_count == 2 ? "app" : NULL;
		report_count(&own);
	}
	snprintf(own.credentials.why_kept, sizeof(own.credentials.why_kept), "keeps keys");
	report_count(&own);
	for (int k = 0; k < 8; k++) {
		begin(true);
		own.is_stopping = (k & 1) != 0;
		app_count = (k & 2) != 0;
		holds_answers = (k & 4) != 0;
		fprintf(out, "stopping %d, applications %zu, answers held %d\n", own.is_stopping,
			app_count, holds_answers);
		shell_step(&own, &(struct drv_event){.kind = DRV_EVENT_TIMER});
		fprintf(out, "  over %d, lingers %d\n", own.is_over,
			uv_is_active((uv_handle_t *)&own.linger));
		if (holds_answers && own.is_stopping && app_count == 0) {
			uint64_t due = uv_timer_get_due_in(&own.linger);

			cr_expect(due > 900 && due <= 1000);
			uv_timer_start(&own.linger, on_answers_late, 500, 0);
			shell_step(&own, &(struct drv_event){.kind = DRV_EVENT_TIMER});
			cr_expect_leq(uv_timer_get_due_in(&own.linger), 500, "it goes on");
			on_answers_late(&own.linger);
			cr_expect(own.is_over);
		}
		finish();
	}
	on_watchdog(NULL);
	end("driver/daemon_end", &text);
}

static void show_limits(rlim_t files)
{
	const struct rlimit limit = {files, files};

	begin(true);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	logged_begin();
	read_limits(&own);
	logged_end(out);
	fprintf(out, "  %d files: %d, %zu strangers\n", (int)files, own.fds_max, own.strangers_max);
	finish();
}

static void show_address(const char *text, int fd)
{
	char written[64] = "";
	bool is_open;

	begin(true);
	snprintf(own.server.address, sizeof(own.server.address), "127.0.0.1:7");
	if (text != NULL)
		setenv("FRAG_ADDRESS_FD", text, 1);
	write_address(&own);
	is_open = fcntl(fd, F_GETFD) >= 0;
	if (is_open)
		(void)!pread(fd, written, sizeof(written) - 1, 0);
	fprintf(out, "  %s: open %d, '%s', variable %s\n", text != NULL ? text : "none", is_open,
		written, getenv("FRAG_ADDRESS_FD") != NULL ? "there" : "gone");
	unsetenv("FRAG_ADDRESS_FD");
	finish();
}

Test(driver_daemon, limits_and_its_address)
{
	static const rlim_t limits[] = {300, 256, 255, 100, 60};
	char line[32] = "", *text;
	size_t size;
	int fds[2];

	out = open_memstream(&text, &size);
	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(dup2(fds[1], 30), 30);
	show_address(NULL, 30);
	show_address("x", 30);
	show_address("2", 2);
	show_address("99999999999", 30);
	show_address("30", 30);
	cr_expect_eq(read(fds[0], line, sizeof(line)), 12);
	cr_expect_str_eq(line, "127.0.0.1:7\n");
	close(fds[0]);
	close(fds[1]);
	for (size_t i = 0; i < FRAG_COUNT_OF(limits); i++)
		show_limits(limits[i]);
	end("driver/daemon_limits", &text);
}

static void live(const char *what, const void *source, int fails)
{
	static const struct fragi_summary summary = {.application = "app", .exit_code = 4};
	int code;

	own = (struct shell){.core = NULL};
	calls = 0;
	fails_at = fails;
	app_count = 0;
	next_count = 0;
	is_short = is_given_up = holds_answers = false;
	signal_to_raise = source == NULL ? SIGTERM : 0;
	if (source != NULL) {
		next_actions[0] =
			(struct drv_action){.kind = DRV_DO_ENDED, .app = 1, .summary = &summary};
		next_count = 1;
	}
	fprintf(out, "%s\n", what);
	logged_begin();
	code = drv_shell_run(&options, source, source != NULL ? 5 : 0);
	logged_end(out);
	fprintf(out, "  ends with %d\n", code);
}

Test(driver_daemon, its_whole_life)
{
	size_t size;
	char *text;

	options = (struct drv_options){.address = {.host = "127.0.0.1", .port = 9},
				       .start_timeout_ns = 11,
				       .beat_ns = 12,
				       .dead_ns = 13};
	unsetenv("FRAG_ADDRESS_FD");
	out = open_memstream(&text, &size);
	live("one application", "graph", 0);
	options.verbosity = -1;
	options.encrypt_data = true;
	options.state_dir = "/state";
	live("a service", NULL, 0);
	for (int i = 1; i <= 6; i++) {
		char what[32];

		snprintf(what, sizeof(what), "the call %d fails", i);
		live(what, NULL, i);
	}
	end("driver/daemon_life", &text);
}

Test(driver_daemon, a_watchdog_is_told_as_often_as_it_asks)
{
	static struct shell shell;
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
