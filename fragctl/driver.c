// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <fragctl/driver.h>

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/beat.h>
#include <base/kernel.h>
#include <base/sentence.h>
#include <base/stamp.h>

/* A driver ends the connection of a client that asks 64 times between two beats. */
#define ASKED_MAX 32

/* A driver takes so many clients at once. Another one waits for a place, without --timeout: */
#define PLACE_TIMEOUT_NS 60000000000
#define BUSY_TIMEOUT_NS 10000000000 /* where the driver is there, but says nothing */
#define PLACE_RETRY_MIN_MS 20
#define PLACE_RETRY_MAX_MS 500
static const char silence[] =
	"does not answer: its process is stopped, or waits for a disk; see its log, and its state with `ps -C driverd -o pid,stat,wchan`";

/* A message that came and was not taken yet. */
struct ctl_received {
	struct ctl_received *next;
	struct fw_message *message;
};

static void fail_with(struct ctl_driver *driver, int code, enum fragi_failure failure,
		      const char *why)
{
	if (driver->failed != 0)
		return;
	driver->failed = code;
	driver->failure = failure;
	if (driver->is_welcome && strcmp(driver->version, FRAG_VERSION) != 0)
		snprintf(
			driver->why, sizeof(driver->why),
			"%.2000s; the driver is of frag %s and this program of frag %s: if it ends so again, install the same version on both",
			why, driver->version, FRAG_VERSION);
	else
		fragi_sentence(driver->why, sizeof(driver->why), "%s", why);
}

static int send_message(struct ctl_driver *driver, struct fw_message *message)
{
	uint8_t *frame;
	size_t size;
	int r;

	message->seq = ++driver->seq;
	r = fw_encode(message, &frame, &size);
	return r < 0 ? r : fw_connection_send(driver->connection, frame, size);
}

static void on_beat(uv_timer_t *timer)
{
	struct ctl_driver *driver = timer->data;

	if (driver->connection == NULL || !driver->is_welcome)
		return;
	/* Beats, not time: this process may have been stopped. */
	if (++driver->silent_beats * driver->beat_ns > driver->dead_ns)
		fw_connection_fail(driver->connection, -ETIMEDOUT, "it has not been heard");
	else
		(void)send_message(driver, &(struct fw_message){.kind = FW_BEAT});
}

static void send_hello(struct ctl_driver *driver)
{
	struct fw_message hello = {.kind = FW_HELLO};

	hello.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					.minor = FW_PROTOCOL_MINOR,
					.role = FW_ROLE_CLIENT,
					.name = "fragctl",
					.version = FRAG_VERSION};
	(void)send_message(driver, &hello);
}

static void keep(struct ctl_driver *driver, struct fw_message *message)
{
	struct ctl_received *received = fragi_calloc(1, sizeof(*received));

	if (received == NULL) {
		fw_message_free(message);
		fw_connection_fail(driver->connection, -ENOMEM, "out of memory");
		return;
	}
	received->message = message;
	*driver->last = received;
	driver->last = &received->next;
}

static void on_message(struct fw_connection *connection, struct fw_message *message, void *arg)
{
	struct ctl_driver *driver = arg;

	driver->silent_beats = 0;
	switch (message->kind) {
	case FW_WELCOME:
		fw_connection_admit(connection);
		driver->is_welcome = true;
		snprintf(driver->version, sizeof(driver->version), "%s", message->welcome.version);
		driver->beat_ns = message->welcome.beat_ns;
		driver->dead_ns = message->welcome.dead_ns;
		uv_timer_start(&driver->beat, on_beat, (uint64_t)(driver->beat_ns / 1000000),
			       (uint64_t)(driver->beat_ns / 1000000));
		break;
	case FW_REFUSED:
		driver->has_refused = true;
		fail_with(driver, -EACCES, message->refused.failure.code,
			  message->refused.failure.sentence);
		break;
	case FW_BEAT:
		driver->asked = 0;
		break;
	default:
		keep(driver, message);
		return;
	}
	fw_message_free(message);
}

static void on_closed(struct fw_connection *connection, int reason, const char *sentence, void *arg)
{
	struct ctl_driver *driver = arg;

	(void)connection;
	driver->connection = NULL;
	fail_with(driver, reason != 0 ? reason : -ECONNRESET,
		  reason == -EKEYREJECTED                   ? FRAGI_FAILURE_KEY_REFUSED
		  : reason == -EACCES && driver->is_reached ? FRAGI_FAILURE_USER_REFUSED
							    : FRAGI_FAILURE_DRIVER_LOST,
		  sentence);
}

static void on_ready(struct fw_connection *connection, void *arg)
{
	(void)connection;
	send_hello(arg);
}

static const struct fw_connection_ops connection_ops = {on_message, on_closed, on_ready};

static void on_connect(uv_connect_t *request, int status)
{
	struct ctl_driver *driver = request->data;

	driver->is_connecting = false;
	if (driver->connection == NULL)
		return;
	driver->is_reached = status == 0;
	if (status == 0)
		status = fw_connection_start(driver->connection);
	if (status < 0)
		fw_connection_fail(driver->connection, status, frag_strerror(status));
}

/* Waits until the driver says WELCOME, or the connection is gone. Returns 0 or negative errno. */
static int await_welcome(struct ctl_driver *driver, int r)
{
	if (r < 0)
		fw_connection_fail(driver->connection, r, frag_strerror(r));
	else
		driver->is_connecting = true;
	while (driver->is_connecting || (driver->connection != NULL && !driver->is_welcome))
		uv_run(&driver->loop, UV_RUN_ONCE);
	return driver->connection != NULL ? 0 : driver->failed;
}

static int make_connection(struct ctl_driver *driver, enum fw_stream_kind kind)
{
	const struct fw_connection_options options = {
		.users = &driver->users,
		.tls = kind == FW_STREAM_TCP ? driver->tls : NULL,
	};

	driver->failed = 0;
	driver->is_reached = driver->has_refused = false;
	driver->connect.data = driver;
	return fw_connection_create(&driver->loop, kind, &connection_ops, driver, &options,
				    &driver->connection);
}

/*
 * Only root can have made a folder in one that belongs to root and into which nobody else may
 * write, such as /run/frag: its owner is the user of the machine's driver.
 */
static int trust_owner(struct ctl_driver *driver, const char *folder)
{
	char above[sizeof(driver->where)];
	struct stat at;

	snprintf(above, sizeof(above), "%.200s", folder);
	*strrchr(above, '/') = '\0';
	if (stat(above, &at) < 0 || at.st_uid != 0 || (at.st_mode & 0022) != 0 ||
	    lstat(folder, &at) < 0 || !S_ISDIR(at.st_mode) ||
	    fw_users_allow(&driver->users, at.st_uid))
		return 0;
	return fw_users_add(&driver->users, at.st_uid);
}

/* Returns 0, or negative errno: nobody is there. */
static int try_socket(struct ctl_driver *driver, const char *folder)
{
	struct stat at;
	int r;

	snprintf(driver->where, sizeof(driver->where), "%.200s/%u.sock", folder,
		 (unsigned int)driver->address.port);
	if (lstat(driver->where, &at) < 0) {
		driver->is_denied |= errno == EACCES;
		return -errno;
	}
	if (!S_ISSOCK(at.st_mode))
		return -ENOTSOCK;
	r = trust_owner(driver, folder);
	if (r == 0)
		r = make_connection(driver, FW_STREAM_PIPE);
	if (r < 0)
		return r;
	uv_pipe_connect(&driver->connect,
			(uv_pipe_t *)(void *)fw_connection_stream(driver->connection),
			driver->where, on_connect);
	r = await_welcome(driver, 0);
	driver->is_denied |= r == -EACCES && driver->failure == FRAGI_FAILURE_DRIVER_LOST;
	/* Of many that come at once, the driver closes some, or their turn comes too late. */
	driver->is_busy = r == -EAGAIN || (r < 0 && r != -EACCES && driver->is_reached &&
					   driver->failure == FRAGI_FAILURE_DRIVER_LOST);
	return r;
}

/* A driver has refused, or somebody else listens in its place: TCP would only hide that. */
static bool is_refused(const struct ctl_driver *driver)
{
	return driver->failure != FRAGI_FAILURE_NONE &&
	       driver->failure != FRAGI_FAILURE_DRIVER_LOST;
}

static int try_sockets(struct ctl_driver *driver)
{
	char folders[CTL_FOLDERS][200];
	int r = -ENOENT;

	ctl_driver_folders(folders);
	for (size_t i = 0; i < FRAG_COUNT_OF(folders); i++) {
		if (folders[i][0] == '\0')
			continue;
		r = try_socket(driver, folders[i]);
		if (r == 0 || driver->is_busy || driver->has_refused)
			return r;
	}
	return r;
}

static int try_tcp(struct ctl_driver *driver)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	char port[8];
	int r;

	snprintf(driver->where, sizeof(driver->where), "%.255s:%u", driver->address.host,
		 (unsigned int)driver->address.port);
	snprintf(port, sizeof(port), "%u", (unsigned int)driver->address.port);
	r = getaddrinfo(driver->address.host, port, &hints, &found);
	if (r != 0) {
		fail_with(driver, -EADDRNOTAVAIL, FRAGI_FAILURE_DRIVER_LOST, gai_strerror(r));
		return -EADDRNOTAVAIL;
	}
	r = -EADDRNOTAVAIL;
	for (struct addrinfo *at = found; at != NULL && r < 0; at = at->ai_next) {
		r = make_connection(driver, FW_STREAM_TCP);
		if (r == 0)
			r = await_welcome(driver,
					  uv_tcp_connect(&driver->connect,
							 (uv_tcp_t *)(void *)fw_connection_stream(
								 driver->connection),
							 at->ai_addr, on_connect));
	}
	freeaddrinfo(found);
	return r;
}

static int read_keys(struct ctl_driver *driver, struct frag_err *err)
{
	static const struct fragi_module module = {
		.name = "tls",
		.kind = "module",
		.advice = "install it to connect with --key-file",
		.symbol = CTL_TLS_SYMBOL,
		.table_size = sizeof(struct ctl_tls_module),
	};
	const void *table;
	int r = fragi_module_open(&module, &table, err);

	if (r < 0)
		return r;
	driver->tls_module = table;
	driver->keys.roles = FW_ROLE_BIT(FW_ROLE_CLIENT) | FW_ROLE_BIT(FW_ROLE_OBSERVER);
	return driver->tls_module->create(&driver->keys, &driver->tls, err);
}

static int read_flags(struct ctl_driver *driver)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = fragi_parse_address(driver->address_text != NULL ? driver->address_text : "",
				    "127.0.0.1", FRAGI_PORT_DEFAULT, &driver->address, &err);

	if (r == 0)
		r = fw_users_init(&driver->users, "fragctl", driver->allowed.items,
				  driver->allowed.count, false, &err);
	driver->users.insecure = driver->insecure;
	if (r == 0)
		r = driver->insecure && driver->keys.key_file != NULL
			    ? frag_err_set(&err, -EINVAL,
					   "--insecure and --key-file exclude each other")
			    : 0;
	if (r == 0 && driver->timeout_text != NULL &&
	    (fragi_duration_lacks_unit(driver->timeout_text) ||
	     fragi_parse_time(driver->timeout_text, &driver->timeout_ns) < 0 ||
	     driver->timeout_ns <= 0))
		r = frag_err_set(&err, -EINVAL,
				 "--timeout \"%.40s\" is not a valid time; give it as 30s or 500ms",
				 driver->timeout_text);
	if (r == 0 && driver->keys.key_file != NULL && read_keys(driver, &err) < 0)
		return ctl_fail_with(fragi_err_failure(&err), "%s", err.text);
	return r < 0 ? ctl_fail(CTL_USAGE, "%s", err.text[0] != '\0' ? err.text : frag_strerror(r))
		     : CTL_OK;
}

static void on_timeout(uv_timer_t *timer)
{
	struct ctl_driver *driver = timer->data;

	driver->timed_out = true;
	uv_stop(timer->loop); /* which waits for something else after its timers */
	if (driver->connection != NULL && !driver->is_welcome)
		fw_connection_fail(driver->connection, -ETIMEDOUT, silence);
}

static int refuse(struct ctl_driver *driver, enum fragi_failure failure, const char *format, ...)
	FRAG_PRINTF(3, 4);
static int refuse(struct ctl_driver *driver, enum fragi_failure failure, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fragi_sentence_of(driver->sentence, sizeof(driver->sentence), format, args);
	va_end(args);
	return driver->is_quiet ? fragi_failure_exit(failure)
				: ctl_fail_with(failure, "%s", driver->sentence);
}

static void forget(struct ctl_driver *driver)
{
	while (driver->first != NULL) {
		struct ctl_received *received = driver->first;

		driver->first = received->next;
		fw_message_free(received->message);
		fragi_free(received);
	}
	driver->last = &driver->first;
}

static void begin_again(struct ctl_driver *driver)
{
	forget(driver);
	uv_timer_stop(&driver->beat);
	driver->is_welcome = driver->is_busy = false;
	driver->failure = FRAGI_FAILURE_NONE;
	driver->silent_beats = 0;
	driver->asked = 0;
	driver->why[0] = '\0';
}

static int connect_once(struct ctl_driver *driver)
{
	int r = ctl_driver_is_near(&driver->address) ? try_sockets(driver) : -ENOENT;

	if (r < 0 && !driver->is_busy && !is_refused(driver))
		r = try_tcp(driver);
	return r;
}

static void on_retry(uv_timer_t *timer)
{
	((struct ctl_driver *)timer->data)->retries = true;
	uv_stop(timer->loop); /* which waits for something else after its timers, for ever */
}

/*
 * Connects; while the driver has no place for this client, again and again, less and less often.
 * Those that came together do not come together again.
 */
static int connect_when_there_is_place(struct ctl_driver *driver)
{
	int64_t busy_until_ns = fragi_now_ns() + BUSY_TIMEOUT_NS;
	unsigned int seed = (unsigned int)getpid();
	int r = connect_once(driver);

	for (unsigned int ms = PLACE_RETRY_MIN_MS;
	     r < 0 && (driver->failure == FRAGI_FAILURE_DRIVER_FULL ||
		       (driver->is_busy && fragi_now_ns() < busy_until_ns));
	     ms = ms < PLACE_RETRY_MAX_MS ? 2 * ms : ms) {
		driver->retries = false;
		uv_timer_start(&driver->beat, on_retry, ms / 2 + (unsigned int)rand_r(&seed) % ms,
			       0);
		while (!driver->retries && !driver->timed_out)
			uv_run(&driver->loop, UV_RUN_ONCE);
		if (driver->timed_out)
			break;
		begin_again(driver);
		r = connect_once(driver);
	}
	return r;
}

static int connect_to(struct ctl_driver *driver)
{
	int64_t timeout_ns = driver->timeout_ns > 0 ? driver->timeout_ns : PLACE_TIMEOUT_NS;
	bool is_silent;
	int r;

	if (!uv_is_active((uv_handle_t *)&driver->timeout))
		uv_timer_start(&driver->timeout, on_timeout,
			       (uint64_t)(timeout_ns + 999999) / 1000000, 0);
	r = connect_when_there_is_place(driver);
	is_silent = driver->is_reached && driver->failed == -ETIMEDOUT;
	if (driver->timeout_ns == 0)
		uv_timer_stop(&driver->timeout);
	if (r == 0)
		return CTL_OK;
	if (driver->timed_out && driver->timeout_ns > 0)
		return refuse(driver, FRAGI_FAILURE_WAIT_TIMEOUT,
			      "gave up after %s (--timeout): the driver at %s %s%s",
			      driver->timeout_text, driver->where,
			      is_silent ? "" : "refused: ", is_silent ? silence : driver->why);
	/* One that has a key was refused because of that. */
	if (driver->is_denied && (driver->tls == NULL || !is_refused(driver)))
		return refuse(
			driver, FRAGI_FAILURE_USER_REFUSED,
			"you have no permission for a driver at port %u of this machine, if there is one: its socket is for its user, root and the group of driverd (usermod -a -G frag NAME, then log in again)",
			(unsigned int)driver->address.port);
	if (driver->failure == FRAGI_FAILURE_DRIVER_LOST && is_silent)
		return refuse(driver, driver->failure, "the driver at %s %s", driver->where,
			      silence);
	if (driver->failure == FRAGI_FAILURE_DRIVER_LOST || driver->failure == FRAGI_FAILURE_NONE)
		return refuse(
			driver, FRAGI_FAILURE_DRIVER_LOST,
			"there is no driver at %s: %s; start it (as a service: systemctl start frag-driver), or name the right one with --address",
			driver->where, driver->why[0] != '\0' ? driver->why : frag_strerror(r));
	return refuse(driver, driver->failure, "the driver at %s refused: %s", driver->where,
		      driver->why);
}

int ctl_driver_begin(struct ctl_driver *driver)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = read_flags(driver);

	if (r != CTL_OK)
		return r;
	(void)signal(SIGPIPE, SIG_IGN);
	driver->last = &driver->first;
	r = fragi_kernel_check(false, &err);
	if (r == 0)
		r = uv_loop_init(&driver->loop);
	if (r < 0) {
		frag_err_set(&err, r, "cannot set up the event loop: %s", frag_strerror(r));
		return ctl_fail(CTL_MISSING, "%s", err.text);
	}
	driver->has_loop = true;
	uv_timer_init(&driver->loop, &driver->beat);
	driver->beat.data = driver;
	uv_timer_init(&driver->loop, &driver->timeout);
	driver->timeout.data = driver;
	return CTL_OK;
}

int ctl_driver_open(struct ctl_driver *driver)
{
	int r = ctl_driver_begin(driver);

	return r == CTL_OK ? connect_to(driver) : r;
}

int ctl_driver_open_any(struct ctl_driver *driver)
{
	ctl_driver_find(driver);
	return ctl_driver_open(driver);
}

int ctl_driver_next(struct ctl_driver *driver, struct fw_message **out_message)
{
	struct ctl_received *received;

	while (driver->first == NULL && driver->connection != NULL && !driver->timed_out)
		uv_run(&driver->loop, UV_RUN_ONCE);
	received = driver->first;
	if (received == NULL && driver->timed_out)
		return ctl_fail_with(
			FRAGI_FAILURE_WAIT_TIMEOUT,
			"gave up after %s (--timeout); what was asked for goes on at the driver",
			driver->timeout_text);
	if (received == NULL && driver->follows) {
		ctl_complain("lost the driver at %s: %s; connects again", driver->where,
			     driver->why);
		return CTL_MISSING;
	}
	if (received == NULL)
		return ctl_fail_with(driver->failure, "lost the driver at %s: %s", driver->where,
				     driver->why);
	driver->first = received->next;
	if (driver->first == NULL)
		driver->last = &driver->first;
	*out_message = received->message;
	fragi_free(received);
	return CTL_OK;
}

int ctl_driver_send(struct ctl_driver *driver, struct fw_message *request)
{
	return driver->connection != NULL ? send_message(driver, request) : -ECONNRESET;
}

int ctl_driver_ask(struct ctl_driver *driver, struct fw_message *request,
		   struct fw_message **out_reply)
{
	int r;

	while (driver->asked >= ASKED_MAX && driver->connection != NULL && !driver->timed_out)
		uv_run(&driver->loop, UV_RUN_ONCE);
	driver->asked++;
	r = ctl_driver_send(driver, request);
	if (r < 0 && driver->connection != NULL)
		return ctl_fail(CTL_FAILED, "cannot send %s: %s", fw_kind_name(request->kind),
				frag_strerror(r));
	return ctl_driver_answer(driver, request, out_reply);
}

int ctl_driver_answer(struct ctl_driver *driver, const struct fw_message *request,
		      struct fw_message **out_reply)
{
	struct fw_message *reply;
	int r;

	for (;;) {
		r = ctl_driver_next(driver, &reply);
		if (r != CTL_OK)
			return r;
		if (reply->reply_to == request->seq)
			break;
		fw_message_free(reply);
	}
	*out_reply = reply;
	return CTL_OK;
}

int ctl_driver_reopen(struct ctl_driver *driver)
{
	begin_again(driver);
	return connect_to(driver);
}

void ctl_driver_close(struct ctl_driver *driver)
{
	forget(driver);
	if (driver->has_loop) {
		uv_close((uv_handle_t *)&driver->beat, NULL);
		uv_close((uv_handle_t *)&driver->timeout, NULL);
		if (driver->connection != NULL)
			fw_connection_close(driver->connection);
		uv_run(&driver->loop, UV_RUN_DEFAULT);
		uv_loop_close(&driver->loop);
	}
	if (driver->tls_module != NULL)
		driver->tls_module->destroy(driver->tls);
	fw_users_fini(&driver->users);
	fragi_texts_fini(&driver->allowed);
}
