// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <driverd/shell.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOG_TOPIC "driver"
#include <base/identity.h>
#include <base/kernel.h>
#include <base/log.h>
#include <base/sentence.h>
#include <base/service.h>
#include <base/stamp.h>
#include <driverd/core/core.h>
#include <driverd/connections.h>
#include <driverd/facts.h>
#include <driverd/listener.h>
#include <driverd/system.h>
#include <driverd/progress.h>
#include <driverd/result.h>
#include <driverd/store.h>
#include <wire/deadline.h>
#include <wire/connection.h>
#include <wire/credentials.h>

/*
 * libuv's callbacks become events of the core, its actions become calls of libuv. One thread. The
 * loop ends when the application of --app has ended, or, without one, when the driver was told to
 * end and every application has, and every handle is closed: connections get LINGER_MS to take our
 * last words.
 */
#define STRANGERS_MAX 64
#define LINGER_MS 50
#define ANSWERS_MS 1000 /* the end of a service waits so long for a disk that clients wait for */
#define BEGIN_AGAIN -1  /* no exit code: see drv_core_is_given_up */

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

struct shell {
	struct drv_options *options;
	uv_loop_t loop;
	struct drv_listener server, local; /* TCP; for clients of this machine */
	struct fw_deadline deadline;
	uv_timer_t linger, watchdog;
	uv_signal_t signals[FRAG_COUNT_OF(stop_signals)];
	struct drv_core *core;
	struct drv_actions actions;
	struct drv_connections connections;
	struct drv_progress progress;
	struct drv_store store; /* with --state-dir */
	struct fw_credentials credentials;
	struct drv_facts facts;
	int fds_max;          /* that may be open */
	size_t strangers_max; /* connections that have not said who they are */
	char clock[FRAGI_IDENTITY_SIZE];
	bool is_service;  /* there is no application of --app */
	bool is_stopping; /* it was told to end */
	bool is_leaving;  /* the same, and its hosts run on */
	bool is_over;
	/* of the application of --app, which has ended; the core's. NULL: none to show */
	const struct fragi_summary *summary;
	int exit_code;
};

static void shell_step(struct shell *shell, struct drv_event *event);

static void close_handle(void *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void on_linger(uv_timer_t *timer)
{
	struct shell *shell = timer->data;

	close_handle(timer);
	for (size_t i = 0; i < shell->connections.count; i++)
		fw_connection_close(shell->connections.items[i]->stream);
}

/* Nothing new begins; the loop runs out. */
static void shell_end(struct shell *shell, int exit_code)
{
	if (shell->is_over)
		return;
	shell->is_over = true;
	shell->exit_code = exit_code;
	if (exit_code != BEGIN_AGAIN)
		fragi_service_stopping();
	close_handle(&shell->watchdog);
	drv_listener_close(&shell->server);
	drv_listener_close(&shell->local);
	fw_deadline_close(&shell->deadline);
	fw_credentials_close(&shell->credentials);
	drv_store_finish(&shell->store);
	for (size_t i = 0; i < FRAG_COUNT_OF(shell->signals); i++) {
		close_handle(&shell->signals[i]);
		/* the result stands: none changes it any more */
		if (exit_code != BEGIN_AGAIN)
			(void)signal(stop_signals[i], SIG_IGN);
	}
	for (size_t i = 0; i < shell->connections.count; i++) {
		shell->connections.items[i]->closing = true;
		fw_connection_finish(shell->connections.items[i]->stream);
	}
	if (shell->connections.count != 0)
		uv_timer_start(&shell->linger, on_linger, LINGER_MS, 0);
	else
		close_handle(&shell->linger);
}

/*
 * With --app the driver ends with its application, after this step, in which clients may hear of
 * it, and shows how it ended once the workers are dismissed: the result may wait for a reader.
 */
#define COMMAND_LINE_APP 1

static void on_answers_late(uv_timer_t *timer)
{
	shell_end(timer->data, FRAGI_EXIT_OK);
}

/* Ends a service when the clients whose commands wait for the disk have their answers. */
static void shell_end_answered(struct shell *shell)
{
	if (!drv_core_holds_answers(shell->core))
		shell_end(shell, FRAGI_EXIT_OK);
	else if (!uv_is_active((uv_handle_t *)&shell->linger))
		uv_timer_start(&shell->linger, on_answers_late, ANSWERS_MS, 0);
}

/* The core cannot go on, so no application can; what they counted goes with it. */
static void out_of_memory(struct shell *shell)
{
	struct frag_err err = FRAG_ERR_INIT;

	drv_progress_clear(&shell->progress);
	fragi_err_fail(&err, FRAGI_FAILURE_OUT_OF_MEMORY, NULL, -ENOMEM,
		       "there is no memory left; the application ends with its driver");
	log_error(NULL, "%s", err.text);
	shell_end(shell, drv_result_fail(&shell->options->output, NULL, &err));
}

static void perform(struct shell *shell, struct drv_action *action)
{
	struct drv_connection *connection =
		drv_connections_find(&shell->connections, action->connection);

	switch (action->kind) {
	case DRV_DO_SEND:
		if (connection == NULL || connection->closing || action->frame == NULL ||
		    drv_connection_drops(connection, action))
			break;
		fw_connection_send(connection->stream, action->frame, action->frame_bytes);
		action->frame = NULL;
		break;
	case DRV_DO_ADMIT:
		if (connection == NULL)
			break;
		drv_connections_admit(&shell->connections, connection);
		fw_connection_admit(connection->stream);
		break;
	case DRV_DO_CLOSE:
		if (connection == NULL)
			break;
		connection->closing = true;
		fw_connection_finish(connection->stream);
		break;
	case DRV_DO_LOG:
		fragi_log(action->level, action->subject, "%s", action->text);
		break;
	case DRV_DO_PROGRESS:
		drv_progress_show(&shell->progress, action->text);
		if (!shell->is_service)
			fragi_service_status(action->text);
		break;
	case DRV_DO_PERSIST:
		if (drv_store_put(&shell->store, &action->record, action->change) < 0)
			out_of_memory(shell);
		break;
	case DRV_DO_ENDED:
		drv_progress_clear(&shell->progress);
		if (action->app == COMMAND_LINE_APP)
			shell->summary = action->summary;
		break;
	}
}

static void on_deadline(void *arg)
{
	fragi_log_catch_up(0);
	shell_step(arg, &(struct drv_event){.kind = DRV_EVENT_TIMER});
}

/* Several applications share one line. */
static void report_count(const struct shell *shell)
{
	const char *failed = drv_core_failed(shell->core);
	size_t count = drv_core_app_count(shell->core);
	const char *kept = shell->credentials.why_kept;
	char text[1500], runs[64] = "waits for applications";

	if (count > 0)
		snprintf(runs, sizeof(runs), "runs %zu application%s", count,
			 count == 1 ? "" : "s");
	fragi_sentence(text, sizeof(text), "%s%s%s%s%s%s", runs, failed != NULL ? "; " : "",
		       failed != NULL ? failed : "",
		       failed != NULL ? " has failed, and `fragctl list` says why" : "",
		       kept[0] != '\0' ? "; " : "", kept);
	fragi_service_status(text);
}

static void shell_step(struct shell *shell, struct drv_event *event)
{
	int64_t now_ns = fragi_now_ns();

	if (!shell->is_over && drv_core_is_given_up(shell->core, event, now_ns)) {
		log_warn(
			NULL,
			"did not run for so long that a worker has left it; begins again, and adopts what runs");
		shell_end(shell, BEGIN_AGAIN);
	}
	if (shell->is_over) {
		fw_message_free(event->message);
		return;
	}
	drv_actions_reset(&shell->actions);
	drv_facts_tell(&shell->facts, shell->core, shell->store.folder, shell->credentials.tls,
		       now_ns);
	if (drv_core_step(shell->core, event, now_ns, &shell->actions) < 0) {
		out_of_memory(shell);
		return;
	}
	drv_actions_join(&shell->actions);
	for (size_t i = 0; i < shell->actions.count && !shell->is_over; i++)
		perform(shell, &shell->actions.items[i]);
	if (shell->summary != NULL)
		shell_end(shell, shell->summary->exit_code);
	if (!shell->is_over && shell->is_service &&
	    (shell->is_leaving || (shell->is_stopping && drv_core_app_count(shell->core) == 0)))
		shell_end_answered(shell);
	if (shell->is_over)
		return;
	if (shell->is_service)
		report_count(shell);
	fw_deadline_set(&shell->deadline, drv_core_deadline_ns(shell->core), now_ns);
}

static void on_message(struct fw_connection *stream, struct fw_message *message, void *arg)
{
	struct drv_connection *connection = arg;
	struct shell *shell = connection->shell;
	char user[FW_USER_NAME_MAX];
	struct drv_event event;

	(void)stream;
	if (drv_connection_message(connection, message, &shell->options->users, user, &event))
		shell_step(shell, &event);
}

static void on_closed(struct fw_connection *stream, int reason, const char *sentence, void *arg)
{
	struct drv_connection *connection = arg;
	struct shell *shell = connection->shell;
	bool is_stranger = !connection->closing && !connection->admitted;
	struct drv_event event = {.kind = is_stranger           ? DRV_EVENT_STRANGER
					  : connection->closing ? DRV_EVENT_UNHEARD
								: DRV_EVENT_CLOSED,
				  .connection = connection->id,
				  .peer = fw_connection_peer(stream),
				  .text = sentence};

	if (is_stranger)
		drv_connections_log_stranger(&shell->connections, event.peer, reason, sentence);
	if (is_stranger ? reason == -EKEYREJECTED : !connection->closing || reason == -ETIMEDOUT)
		shell_step(shell, &event);
	drv_connections_remove(&shell->connections, connection);
	if (shell->is_over && shell->connections.count == 0)
		close_handle(&shell->linger);
}

static const struct fw_connection_ops connection_ops = {on_message, on_closed};

static int take_connection(struct drv_listener *listener, void *arg)
{
	struct shell *shell = arg;
	bool is_local = listener->kind == FW_STREAM_PIPE;
	const struct fw_connection_options options = {
		.tls = is_local ? NULL : shell->credentials.tls,
		.users = &shell->options->users,
		.is_accepted = true,
	};
	struct drv_connection *connection = drv_connections_add(&shell->connections);
	int fd, r = connection == NULL
			    ? -ENOMEM
			    : fw_connection_create(&shell->loop, listener->kind, &connection_ops,
						   connection, &options, &connection->stream);

	if (r != 0) {
		if (connection != NULL)
			drv_connections_remove(&shell->connections, connection);
		return r;
	}
	connection->shell = shell;
	connection->is_local = is_local;
	r = uv_accept(&listener->server.stream, fw_connection_stream(connection->stream));
	if (r == 0 && uv_fileno((uv_handle_t *)fw_connection_stream(connection->stream), &fd) == 0)
		drv_source_read(fd, &connection->source);
	if (r == 0)
		r = fw_connection_start(connection->stream);
	if (r == 0 && drv_connections_has_one_too_many(&shell->connections, connection->stream,
						       shell->fds_max))
		r = -EMFILE;
	if (r < 0) {
		drv_connections_cut(&shell->connections, connection);
		fw_connection_close(connection->stream);
		return 0;
	}
	while (shell->connections.strangers > shell->strangers_max) {
		connection = drv_connections_displaced(&shell->connections);
		drv_connections_cut(&shell->connections, connection);
		fw_connection_close(connection->stream);
	}
	return 0;
}

static bool accepts(void *arg, const struct fw_identity *identity)
{
	return fw_tls_accepts(arg, identity);
}

/* Keys were read again: who has proven one that is gone leaves. */
static void on_keys_changed(void *arg, struct fw_tls *next)
{
	struct shell *shell = arg;
	struct fw_tls *tls = shell->credentials.tls;

	fw_credentials_use(&shell->credentials, next);
	for (size_t i = 0; i < shell->connections.count; i++) {
		struct drv_connection *connection = shell->connections.items[i];
		const struct fw_identity *identity = drv_core_identity(
			shell->core, connection->id, fw_connection_identity(connection->stream));

		if (identity == NULL || fw_tls_accepts(tls, identity))
			continue;
		shell_step(shell,
			   &(struct drv_event){.kind = DRV_EVENT_REVOKED,
					       .connection = connection->id,
					       .peer = fw_connection_peer(connection->stream),
					       .identity = identity});
	}
	shell_step(shell,
		   &(struct drv_event){.kind = DRV_EVENT_KEYS, .accepts = accepts, .arg = tls});
}

static void on_keys_kept(void *arg)
{
	shell_step(arg, &(struct drv_event){.kind = DRV_EVENT_KEYS_KEPT,
					    .text = ((struct shell *)arg)->credentials.why_kept});
}

/* Leaves the hosts of a service for the next driver, which adopts them. SIGINT stops what runs. */
static void leave(struct shell *shell)
{
	size_t count = drv_core_app_count(shell->core);

	if (count > 0)
		log_info(
			NULL,
			"SIGTERM: leaves %zu application%s running; the next driverd adopts what its workers run, `fragctl stop --all` ends it",
			count, count == 1 ? "" : "s");
	shell->is_leaving = true;
	shell_step(shell, &(struct drv_event){.kind = DRV_EVENT_LEAVE});
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct shell *shell = handle->data;
	bool rereads = shell->credentials.tls != NULL || shell->is_service;

	if (shell->is_leaving) {
		shell_end(shell, FRAGI_EXIT_OK);
		return;
	}
	if (number == SIGHUP && (rereads || shell->is_stopping))
		return; /* keys are read again, if any; a closed terminal sends it twice */
	if (number == SIGTERM && shell->is_service && !shell->is_stopping) {
		leave(shell);
		return;
	}
	log_info(NULL, "SIG%s: stops", sigabbrev_np(number));
	fragi_service_stopping();
	shell->is_stopping = true;
	shell_step(shell, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = number});
}

static void on_persisted(void *arg, uint64_t change, const char *why_not)
{
	shell_step(arg, &(struct drv_event){
				.kind = DRV_EVENT_PERSISTED, .change = change, .text = why_not});
}

static int on_record(void *arg, const struct drv_record *record)
{
	struct shell *shell = arg;

	return drv_core_restore(shell->core, record);
}

/* Once, to the descriptor from which whoever started this driver on a free port reads it. */
static void write_address(const struct shell *shell)
{
	const char *text = getenv("FRAG_ADDRESS_FD");
	int64_t fd;

	if (text == NULL || fragi_parse_i64(text, &fd) < 0 || fd <= STDERR_FILENO || fd > INT_MAX)
		return;
	dprintf((int)fd, "%s\n", shell->server.address);
	close((int)fd);
	unsetenv("FRAG_ADDRESS_FD");
}

static int shell_listen(struct shell *shell, struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;
	int r = drv_listener_open(&shell->server, &shell->options->address, err);

	if (r < 0)
		return r;
	shell->options->address.port = shell->server.port; /* also when it begins again */
	write_address(shell);
	if (drv_listener_open_local(&shell->local, shell->server.port, &shell->options->users,
				    &why) < 0)
		log_warn(NULL, "has no unix socket for clients of this machine: %s", why.text);
	return 0;
}

/* Strangers take no more than a quarter of the descriptors: who belongs here finds one. */
static void read_limits(struct shell *shell)
{
	struct rlimit files = {.rlim_cur = 1024};

	(void)getrlimit(RLIMIT_NOFILE, &files);
	shell->fds_max = files.rlim_cur < INT_MAX ? (int)files.rlim_cur : INT_MAX;
	shell->strangers_max = STRANGERS_MAX;
	if (shell->fds_max / 4 >= STRANGERS_MAX)
		return;
	shell->strangers_max = (size_t)shell->fds_max / 4;
	log_info(
		NULL,
		"%d files may be open (ulimit -n): at most %zu connections may not have said who they are",
		shell->fds_max, shell->strangers_max);
}

/* The core, with what the state folder keeps. Until its disk answers, signals end the process. */
static int make_core(struct shell *shell, struct drv_config *config, struct frag_err *err)
{
	const char *folder = shell->options->state_dir;
	int r = 0;

	config->keeps_state = folder != NULL;
	if (folder != NULL)
		r = drv_store_open(&shell->store, folder, &shell->loop, on_persisted, shell, err);
	if (r == 0 && drv_core_create(config, &shell->core) < 0)
		return fragi_err_fail(err, FRAGI_FAILURE_OUT_OF_MEMORY, NULL, -ENOMEM,
				      "there is no memory left for a driver");
	if (r == 0 && folder != NULL)
		r = drv_database_read(shell->store.database, on_record, shell, err);
	if (r < 0)
		fragi_err_classify(err, FRAGI_FAILURE_STATE_UNWRITABLE, NULL);
	return r;
}

static void on_watchdog(uv_timer_t *timer)
{
	(void)timer;
	fragi_service_alive();
}

static void watch_loop(struct shell *shell)
{
	uint64_t ms = (uint64_t)fragi_service_watchdog_ns() / 1000000;

	uv_timer_init(&shell->loop, &shell->watchdog);
	if (ms > 0)
		uv_timer_start(&shell->watchdog, on_watchdog, ms, ms);
}

static int shell_init(struct shell *shell, struct frag_err *err)
{
	struct drv_config config = {
		.version = FRAG_VERSION,
		.clock = shell->clock,
		.address = shell->server.address,
		.beat_ns = shell->options->beat_ns,
		.dead_ns = shell->options->dead_ns,
		.ends_with_app = !shell->is_service,
		.adopts = shell->is_service,
		.progress_ns = shell->is_service ? -1 : 0,
		.expected = shell->options->expected.items,
		.expected_count = shell->options->expected.count,
		.encrypts_data = shell->options->encrypt_data,
		.realtime_offset_ns = drv_system_realtime_offset_ns(),
		.random = drv_system_random,
	};
	int r = fragi_identity_clock(false, shell->clock);

	drv_progress_init(&shell->progress, shell->is_service || shell->options->verbosity < 0);
	read_limits(shell);
	drv_listener_init(&shell->server, &shell->loop, FW_STREAM_TCP, take_connection, shell);
	drv_listener_init(&shell->local, &shell->loop, FW_STREAM_PIPE, take_connection, shell);
	fw_deadline_init(&shell->deadline, &shell->loop, on_deadline, shell);
	uv_timer_init(&shell->loop, &shell->linger);
	shell->linger.data = shell;
	watch_loop(shell);
	for (size_t i = 0; i < FRAG_COUNT_OF(stop_signals); i++) {
		uv_signal_init(&shell->loop, &shell->signals[i]);
		shell->signals[i].data = shell;
	}
	if (r == 0 && make_core(shell, &config, err) < 0)
		return err->code;
	for (size_t i = 0; r == 0 && i < FRAG_COUNT_OF(stop_signals); i++)
		r = uv_signal_start(&shell->signals[i], on_signal, stop_signals[i]);
	if (r < 0)
		return fragi_err_fail(err, FRAGI_FAILURE_SYSTEM_REFUSED, NULL, r,
				      "cannot set up the event loop: %s", frag_strerror(r));
	return fw_credentials_open(&shell->credentials, &shell->loop, &shell->options->tls,
				   on_keys_changed, on_keys_kept, shell, err);
}

static int run_once(struct drv_options *options, const void *source, size_t source_bytes)
{
	struct shell shell = {.options = options, .is_service = source == NULL, .store.folder = -1};
	struct drv_event event = {.kind = DRV_EVENT_APP};
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a write beyond ulimit -f returns EFBIG */
	r = fragi_kernel_check(false, &err);
	if (r == 0)
		r = uv_loop_init(&shell.loop);
	if (r < 0) {
		fragi_err_fail(&err, FRAGI_FAILURE_SYSTEM_REFUSED, NULL, r,
			       "cannot set up the event loop: %s", frag_strerror(r));
		log_error(NULL, "%s", err.text);
		return drv_result_fail(&options->output, NULL, &err);
	}
	r = shell_init(&shell, &err);
	if (r == 0)
		r = shell_listen(&shell, &err);
	if (r < 0) {
		log_error(NULL, "%s", err.text);
		shell_end(&shell, drv_result_fail(&options->output, NULL, &err));
	} else if (shell.is_service) {
		log_info(NULL, "waits for applications: fragctl start APP.yaml");
		fragi_service_ready();
		report_count(&shell);
		fw_deadline_set(&shell.deadline, drv_core_deadline_ns(shell.core), fragi_now_ns());
	} else {
		event.app = (struct drv_event_app){.source = source,
						   .source_bytes = source_bytes,
						   .start_timeout_ns = options->start_timeout_ns,
						   .id = COMMAND_LINE_APP};
		fragi_service_ready();
		shell_step(&shell, &event);
	}
	uv_run(&shell.loop, UV_RUN_DEFAULT);
	if (shell.summary != NULL)
		shell.exit_code = drv_result_show(&options->output, shell.summary);
	fragi_log_catch_up(0);
	drv_store_exit_if_stuck(&shell.store, shell.exit_code);
	uv_loop_close(&shell.loop);
	drv_core_destroy(shell.core);
	drv_actions_fini(&shell.actions);
	drv_connections_fini(&shell.connections);
	drv_store_close(&shell.store);
	fw_credentials_fini(&shell.credentials);
	return shell.exit_code;
}

int drv_shell_run(const struct drv_options *options, const void *source, size_t source_bytes)
{
	struct drv_options own = *options;
	int exit_code;

	do
		exit_code = run_once(&own, source, source_bytes);
	while (exit_code == BEGIN_AGAIN);
	return exit_code;
}
