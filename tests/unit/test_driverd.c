// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "daemon.h"

#include <fcntl.h>
#include <signal.h>

#include <text/spec.h>

#include "key_file.h"
#include "wire_peer.h"

/*
 * The real driverd, with workers, clients and strangers that this file plays: what each of them
 * gets, but for beats and what depends on the machine or the time; what the driver logs, prints and
 * leaves behind, and how it ends.
 */
#define GRAPH                                                                                      \
	"frag: 1\napplication: app\nfragments:\n  f:\n    operators:\n"                            \
	"      tx: {type: ping_tx, conditions: [{type: count, count: 2}]}\n"                       \
	"      rx: {type: ping_rx}\n    flows: [tx -> rx]\n"

static struct daemon driver = {.manager = -1};
static uint16_t port;
static struct wire_peer worker = {.fd = -1}, client = {.fd = -1};
static uint64_t run, epoch; /* of the last HOST_CREATE */

/* Flags after those that each driver has; up to NULL. */
static void start_driver(const char *const *flags)
{
	const char *all[16] = {"--address", "127.0.0.1:0"};
	char address[64] = "";
	int count = 2, fds[2];

	for (; *flags != NULL; flags++)
		all[count++] = *flags;
	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	setenv("FRAG_ADDRESS_FD", "9", 1);
	daemon_start(&driver, "bin/driverd", all, NULL, fds[1]);
	unsetenv("FRAG_ADDRESS_FD");
	close(fds[1]);
	cr_assert_gt(read(fds[0], address, sizeof(address) - 1), 0, "driverd does not listen");
	cr_expect_eq(poll(&(struct pollfd){.fd = fds[0]}, 1, 10000), 1, "it keeps that descriptor");
	close(fds[0]);
	port = (uint16_t)atoi(strrchr(address, ':') + 1);
}

/* Names and modes: sizes depend on the version of SQLite. */
static void show_folder(const char *name)
{
	struct dirent **entries = NULL;
	int count = scandir(at(name), &entries, NULL, alphasort);

	for (int i = 0; i < count; i++) {
		struct stat st;

		if (entries[i]->d_name[0] != '.') {
			char path[512];

			snprintf(path, sizeof(path), "%s/%s", at(name), entries[i]->d_name);
			cr_assert_eq(lstat(path, &st), 0);
			fprintf(transcript, "  there is %s, %o\n",
				strstr(path, ".sock") == NULL ? entries[i]->d_name : "N.sock",
				(unsigned int)st.st_mode);
		}
		free(entries[i]);
	}
	free(entries);
}

static void show_exit(void)
{
	wire_peer_close(&worker);
	wire_peer_close(&client);
	daemon_show_end(&driver);
	show_folder("run/frag");
}

static void connect_to_socket(struct wire_peer *peer)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char name[64];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(name, sizeof(name), "run/frag/%u.sock", port);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", at(name));
	wire_peer_close(peer);
	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	wire_peer_open(peer, fd);
}

static void connect_to_driver(struct wire_peer *peer)
{
	struct sockaddr_in address = wire_peer_address(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	wire_peer_close(peer);
	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	wire_peer_open(peer, fd);
}

static void show_notice(const struct fw_notice *notice)
{
	fprintf(transcript, ", %d %s: ", notice->kind, notice->application);
	if (strncmp(notice->text, "after ", 6) == 0)
		fprintf(transcript, "after a time");
	else
		daemon_show_text(notice->text);
}

static void show_frame(const char *who, const struct fw_message *m)
{
	fprintf(transcript, "  %s gets %s", who, fw_kind_name(m->kind));
	if (m->host != 0)
		fprintf(transcript, " %d/%u/%d", (int)m->run, m->host, (int)m->epoch);
	if (m->kind == FW_WELCOME) {
		fprintf(transcript, ", name %s, beat %d, dead %d, takes lines %d, keeps hosts %d",
			m->welcome.name, (int)(m->welcome.beat_ns / MS),
			(int)(m->welcome.dead_ns / MS), m->welcome.takes_lines,
			m->welcome.keeps_hosts);
	} else if (m->kind == FW_HOST_CREATE) {
		run = m->run;
		epoch = m->epoch;
		fprintf(transcript, ", %s, source %d", m->create.application,
			m->create.source_bytes > 0);
		for (uint32_t i = 0; i < m->create.fragment_count; i++)
			fprintf(transcript, ", %s", m->create.fragments[i]);
	} else if (m->kind == FW_OUTCOME) {
		fprintf(transcript, ", %s reached %d, result %d, exit code %d: %s", m->outcome.name,
			m->outcome.reached, m->outcome.summary.result, m->outcome.summary.exit_code,
			m->outcome.summary.failure.sentence);
		for (size_t i = 0; i < m->outcome.summary.flow_count; i++)
			fprintf(transcript, ", sent %d, delivered %d",
				(int)m->outcome.summary.flows[i].sent,
				(int)m->outcome.summary.flows[i].delivered);
	} else if (m->kind == FW_REPLY) {
		for (uint32_t i = 0; i < m->reply.application_count; i++)
			fprintf(transcript, ", %s is %s, waits for '%s'",
				m->reply.applications[i].name, m->reply.applications[i].state,
				m->reply.applications[i].missing);
		for (uint32_t i = 0; i < m->reply.worker_count; i++)
			fprintf(transcript, ", worker %s is %s, cores %u, fragments %u",
				m->reply.workers[i].name, m->reply.workers[i].state,
				m->reply.workers[i].cores, m->reply.workers[i].fragments);
		fprintf(transcript, ", ended %u", m->reply.ended_count);
	} else if (m->kind == FW_EVENTS) {
		for (uint32_t i = 0; i < m->events.count; i++)
			show_notice(&m->events.rows[i]);
	} else if (m->kind == FW_ANSWER) {
		fprintf(transcript, " of run %d, failure %d: %s", (int)m->run,
			m->answer.failure.code, m->answer.failure.sentence);
	} else if (m->kind == FW_REFUSED) {
		fprintf(transcript, ", failure %d", m->refused.failure.code);
	} else if (m->kind == FW_APP_ENDED) {
		fprintf(transcript, " of run %d, exit code %d", (int)m->run,
			m->app_ended.exit_code);
	} else if (m->kind == FW_HOST_STOP || m->kind == FW_HOST_KILL) {
		fprintf(transcript, ", drain %d, exit code %d, restarts %d: %s",
			(int)(m->stop.drain_ns / MS), m->stop.exit_code, m->stop.restarts,
			m->stop.reason);
	}
	fprintf(transcript, "\n");
}

/* Shows what comes up to a frame of that kind, or the end of the connection. */
static void show_until(struct wire_peer *peer, enum fw_kind kind)
{
	const char *who = peer == &worker ? "worker" : "client";
	struct fw_message *message;
	bool is_last = false;

	while (!is_last && (message = wire_peer_hear(peer)) != NULL) {
		is_last = message->kind == kind;
		if (message->kind != FW_BEAT)
			show_frame(who, message);
		fw_message_free(message);
	}
	if (!is_last)
		fprintf(transcript, "  %s is hung up on\n", who);
}

static void say(struct wire_peer *peer, struct fw_message message)
{
	fprintf(transcript, "%s says %s\n", peer == &worker ? "worker" : "client",
		fw_kind_name(message.kind));
	wire_peer_tell(peer, message);
}

/* On a connection that is open. */
static void say_who(struct wire_peer *peer, enum fw_role role, uint32_t major)
{
	struct fw_message message = {.kind = FW_HELLO};

	message.hello = (struct fw_hello){.major = major,
					  .minor = FW_PROTOCOL_MINOR,
					  .role = role,
					  .name = role == FW_ROLE_WORKER ? "w" : "c",
					  .worker_address = "127.0.0.1",
					  .local_address = "127.0.0.1",
					  .node = "node",
					  .clock = "clock",
					  .version = "test",
					  .has = {[FRAGI_AMOUNT_CPU] = 4 * FRAGI_AMOUNT_ONE,
						  [FRAGI_AMOUNT_MEMORY] = 1 << 30}};
	say(peer, message);
	peer->beats = true;
	show_until(peer, FW_WELCOME);
}

static void say_hello(struct wire_peer *peer, enum fw_role role, uint32_t major)
{
	connect_to_driver(peer);
	say_who(peer, role, major);
}

static void start_app(const char *graph)
{
	const struct fragi_spec_source source = {.graph = {"app.yaml", graph, strlen(graph)},
						 .app_folder = "/"};
	struct fw_message message = {.kind = FW_START_APP};
	void *bytes;
	size_t size;

	cr_assert_eq(fragi_source_pack(&source, &bytes, &size), 0);
	message.start_app =
		(struct fw_start_app){.name = "", .source = bytes, .source_bytes = (uint32_t)size};
	say(&client, message);
	fragi_free(bytes);
	show_until(&client, FW_ANSWER);
}

static struct fw_message of(enum fw_kind kind)
{
	return (struct fw_message){.kind = kind, .run = run, .host = 1, .epoch = epoch};
}

/* The tables of GRAPH. */
static void say_prepared(void)
{
	struct fw_message message = of(FW_HOST_PREPARED);
	struct fw_port out = {.name = "out", .type = "i64", .dir = FRAG_OUT, .type_id = 5},
		       in = {.name = "in", .type = "i64", .dir = FRAG_IN, .type_id = 5};
	struct fw_op ops[] = {{.name = "tx", .type = "ping_tx", .ports = &out, .port_count = 1},
			      {.name = "rx", .type = "ping_rx", .ports = &in, .port_count = 1}};
	struct fw_fragment fragment = {.name = "f", .ops = ops, .op_count = 2};
	struct fw_inner_flow flow = {.to_op = 1, .capacity = 1, .policy = FRAG_POLICY_BLOCK};

	message.prepared = (struct fw_host_prepared){.ok = true,
						     .fragments = &fragment,
						     .fragment_count = 1,
						     .flows = &flow,
						     .flow_count = 1,
						     .pid = 99};
	say(&worker, message);
}

static void await(enum fw_milestone until)
{
	struct fw_message message = {.kind = FW_AWAIT, .run = run};

	message.await.until = until;
	say(&client, message);
}

static void up_to_started(void)
{
	show_until(&worker, FW_HOST_CREATE);
	say_prepared();
	show_until(&worker, FW_HOST_WIRE);
	say(&worker, of(FW_HOST_WIRED));
	show_until(&worker, FW_HOST_START);
	say(&worker, of(FW_HOST_STARTED));
	if (client.fd < 0)
		return;
	await(FW_RUNNING);
	show_until(&client, FW_OUTCOME);
}

static void end_host(int signal_number)
{
	struct fw_message stats = of(FW_HOST_STATS), exit = of(FW_HOST_EXIT);
	struct fw_op_stats ops[2] = {{.ticks = 2}, {.ticks = 2}};
	struct fragi_flow_stats flow = {.sent = 2, .delivered = 2};

	stats.stats = (struct fw_host_stats){
		.final = true, .ops = ops, .op_count = 2, .flows = &flow, .flow_count = 1};
	say(&worker, stats);
	exit.exit.signal = signal_number;
	exit.exit.exit_code = signal_number != 0 ? 128 + signal_number : 0;
	exit.exit.asked = signal_number == 0;
	if (signal_number != 0)
		exit.exit.failure =
			(struct fw_failure){FRAGI_FAILURE_HOST_CRASHED, "it crashed", ""};
	say(&worker, exit);
}

static void say_done(void)
{
	struct fw_message event = of(FW_HOST_EVENT);

	event.event.state = FW_STATE_DONE;
	say(&worker, event);
	show_until(&worker, FW_HOST_STOP);
}

static void ask(enum fw_kind kind, enum fw_kind answer)
{
	struct fw_message message = {.kind = kind};

	if (kind == FW_REQUEST)
		message.request = (struct fw_request){FW_REQUEST_STATE, ""};
	say(&client, message);
	show_until(&client, answer);
}

#define FLAGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void send_signal(int number)
{
	fprintf(transcript, "SIG%s\n", sigabbrev_np(number));
	kill(driver.pid, number);
}

/* A driver of its own that does not come up. */
static void refuse_to_start(const char *const *flags)
{
	struct daemon other = {.manager = -1};

	daemon_start(&other, "bin/driverd", flags, NULL, -1);
	daemon_show_end(&other);
}

/* While this one runs. */
static void refuse_second(void)
{
	char address[32];

	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	refuse_to_start(FLAGS("--address", "127.0.0.1:0", "--state-dir", at("state")));
	refuse_to_start(FLAGS("--address", address));
}

static void serve(void)
{
	struct fw_message stop = {.kind = FW_STOP_APP};
	int descriptors;

	daemon_have_manager(&driver);
	start_driver(FLAGS("--state-dir", at("state")));
	say_hello(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR);
	descriptors = daemon_descriptors(&driver) - 1;
	show_folder("run/frag");
	start_app("no graph");
	start_app(GRAPH);
	start_app(GRAPH);
	ask(FW_REQUEST, FW_REPLY);
	say_hello(&worker, FW_ROLE_WORKER, FW_PROTOCOL_MAJOR);
	up_to_started();
	ask(FW_REQUEST, FW_REPLY);
	say_done();
	await(FW_ENDED);
	end_host(0);
	show_until(&worker, FW_APP_ENDED);
	show_until(&client, FW_OUTCOME);
	start_app(GRAPH);
	up_to_started();
	stop.stop_app = (struct fw_stop_app){.name = "app", .at_once = true};
	say(&client, stop);
	show_until(&client, FW_ANSWER);
	show_until(&worker, FW_HOST_KILL);
	end_host(0);
	show_until(&worker, FW_APP_ENDED);
	start_app(GRAPH);
	up_to_started();
	await(FW_ENDED);
	end_host(SIGSEGV);
	show_until(&worker, FW_APP_ENDED);
	show_until(&client, FW_OUTCOME);
	ask(FW_WATCH, FW_EVENTS);
	wire_peer_close(&worker);
	wire_peer_close(&client);
	daemon_show_descriptors(&driver, descriptors);
	refuse_second();
	send_signal(SIGTERM);
	show_exit();
	show_folder("state");
}

/* What it has written down is there. */
static void serve_again(void)
{
	start_driver(FLAGS("--state-dir", at("state")));
	say_hello(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR);
	ask(FW_REQUEST, FW_REPLY);
	fprintf(transcript, "a client of another version\n");
	say_hello(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR + 1);
	send_signal(SIGINT);
	show_exit();
}

/* Sends bytes as they are, and shows what comes. */
static void send_bytes(const char *what, const void *bytes, size_t size)
{
	fprintf(transcript, "a stranger sends %s\n", what);
	connect_to_driver(&client);
	if (size > 0)
		cr_assert_eq(send(client.fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
	shutdown(client.fd, SHUT_WR);
	show_until(&client, FW_WELCOME);
}

static void meet_strangers(void)
{
	static const char garbage[64] = "GET / HTTP/1.1\r\n\r\n";
	static const uint8_t part[] = {40, 0, 0, 0, 8, 1}, long_one[] = {255, 255, 255, 255};
	int descriptors;

	start_driver(FLAGS("--expect-workers", "w,v", "-v"));
	connect_to_driver(&worker);
	say_who(&worker, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR);
	descriptors = daemon_descriptors(&driver) - 1;
	send_bytes("nothing", NULL, 0);
	send_bytes("what is no frame", garbage, sizeof(garbage));
	send_bytes("a part of a frame", part, sizeof(part));
	send_bytes("a frame that is too long", long_one, sizeof(long_one));
	connect_to_driver(&client);
	say(&client, (struct fw_message){.kind = FW_WATCH});
	show_until(&client, FW_WELCOME);
	say_hello(&client, 77, FW_PROTOCOL_MAJOR);
	say_hello(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR);
	say_who(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR);
	fprintf(transcript, "by the unix socket\n");
	connect_to_socket(&client);
	say_who(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR);
	ask(FW_REQUEST, FW_REPLY);
	fprintf(transcript, "two of one name\n");
	say_hello(&worker, FW_ROLE_WORKER, FW_PROTOCOL_MAJOR);
	ask(FW_REQUEST, FW_REPLY);
	say_hello(&client, FW_ROLE_WORKER, FW_PROTOCOL_MAJOR);
	say(&client, (struct fw_message){.kind = FW_LEAVE, .leave.reason = "it was told to end"});
	show_until(&client, FW_WELCOME);
	wire_peer_close(&worker);
	wire_peer_close(&client);
	daemon_show_descriptors(&driver, descriptors);
	send_signal(SIGHUP);
	send_signal(SIGINT);
	show_exit();
}

static void write_keys(const char *text, mode_t mode)
{
	put("new", text);
	cr_assert_eq(chmod(at("new"), mode), 0);
	cr_assert_eq(rename(at("new"), at("keys")), 0);
}

/* status: how its answer to SIGHUP ends, which comes after a while */
static void reread_keys(const char *text, mode_t mode, const char *status)
{
	write_keys(text, mode);
	send_signal(SIGHUP);
	daemon_await_status(&driver, status);
}

#define KEYS_A "frag-key-1 a any " SECRET_A "\n"
#define KEYS_B "frag-key-1 b client " SECRET_B "\n"

static void use_keys(void)
{
	int descriptors;

	write_keys("", 0600);
	refuse_to_start(FLAGS("--address", "127.0.0.1:0", "--key-file", at("keys")));
	write_keys(KEYS_A, 0644);
	refuse_to_start(FLAGS("--address", "127.0.0.1:0", "--key-file", at("keys")));
	write_keys(KEYS_A, 0600);
	daemon_have_manager(&driver);
	start_driver(FLAGS("--key-file", at("keys"), "-v"));
	send_bytes("no hello", NULL, 0);
	say_hello(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR);
	fprintf(transcript, "by the unix socket\n");
	connect_to_socket(&client);
	say_who(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR);
	descriptors = daemon_descriptors(&driver) - 1;
	reread_keys("what is no key\n", 0600, "fragctl key new` prints one");
	ask(FW_REQUEST, FW_REPLY);
	reread_keys(KEYS_A KEYS_B, 0600, "waits for applications");
	reread_keys(KEYS_B, 0644, at("keys"));
	ask(FW_WATCH, FW_EVENTS);
	wire_peer_close(&client);
	daemon_show_descriptors(&driver, descriptors);
	send_signal(SIGTERM);
	show_exit();
}

/* number: how the host ends, or a signal that the driver gets; then it ends by itself */
static void run_one(const char *const *flags, int host_signal, int driver_signal)
{
	const char *all[16] = {"--app", at("app.yaml")};
	int count = 2;

	for (; *flags != NULL; flags++)
		all[count++] = *flags;
	start_driver(all);
	say_hello(&worker, FW_ROLE_WORKER, FW_PROTOCOL_MAJOR);
	up_to_started();
	if (driver_signal != 0) {
		/* An answer on a later connection says that it has read what the worker sent. */
		say_hello(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR);
		ask(FW_REQUEST, FW_REPLY);
		send_signal(driver_signal);
		show_until(&worker, FW_HOST_STOP);
	} else if (host_signal == 0) {
		say_done();
	}
	end_host(host_signal);
	show_until(&worker, FW_APP_ENDED);
	show_exit();
}

static void show_summary(void)
{
	FILE *file = fopen(at("summary.json"), "r");

	cr_assert_not_null(file);
	daemon_show_file("  summary: ", file);
	(void)unlink(at("summary.json"));
}

static void run_some(void)
{
	put("app.yaml", GRAPH);
	run_one(FLAGS("--output", "json"), 0, 0);
	run_one(FLAGS("--output", "json"), SIGSEGV, 0);
	run_one(FLAGS("--summary", at("summary.json")), 0, 0);
	show_summary();
	run_one(FLAGS("-q", "--summary", at("summary.json")), SIGSEGV, 0);
	show_summary();
	run_one(FLAGS("-o", "json"), 0, SIGINT);
	run_one(FLAGS("-q"), 0, SIGTERM);
	run_one(FLAGS("-q"), 0, SIGHUP);
}

static void refuse_some(void)
{
	put("wrong.yaml", "frag: 1\nfragments:\n  f:\n    operators:\n      tx: {typo: x}\n");
	put("open.yaml", GRAPH);
	cr_assert_eq(chmod(at("open.yaml"), 0666), 0);
	refuse_to_start(FLAGS("--app", at("none.yaml")));
	refuse_to_start(FLAGS("--app", at("none.yaml"), "-o", "json"));
	refuse_to_start(FLAGS("--app", at("wrong.yaml")));
	refuse_to_start(FLAGS("--app", at("wrong.yaml"), "-o", "json"));
	refuse_to_start(FLAGS("--app", at("open.yaml")));
	refuse_to_start(FLAGS("--app", at("app.yaml"), "--config", at("none.yaml")));
	refuse_to_start(FLAGS("--app", at("app.yaml"), "--config", at("open.yaml")));
	refuse_to_start(FLAGS("--app", at("app.yaml"), "--summary", at("none/summary.json")));
	refuse_to_start(FLAGS("--app", at("app.yaml"), "--start-timeout", "50ms", "--address",
			      "127.0.0.1:0"));
	refuse_to_start(FLAGS("--app", at("app.yaml"), "--start-timeout", "50ms", "--address",
			      "127.0.0.1:0", "-q", "-o", "json"));
	refuse_to_start(FLAGS("--address", "192.0.2.1:0"));
	refuse_to_start(FLAGS("--address", "192.0.2.1:0", "--insecure"));
	refuse_to_start(FLAGS("--address", "127.0.0.1:0", "--state-dir", at("none/state")));
	refuse_to_start(FLAGS("--address", "127.0.0.1:0", "--state-dir", at("app.yaml")));
	refuse_to_start(FLAGS("--address", "127.0.0.1:0", "--key-file", at("none")));
	refuse_to_start(FLAGS("--nothing"));
	refuse_to_start(FLAGS("--nothing", "-o", "json"));
}

static void begin(void)
{
	scratch_make();
	cr_assert_eq(mkdir(at("run"), 0700), 0);
	setenv("XDG_RUNTIME_DIR", at("run"), 1);
	unsetenv("FRAG_BUILD"); /* of the tests, and no variable that a daemon knows */
	unsetenv("RUNTIME_DIRECTORY");
	unsetenv("STATE_DIRECTORY");
	umask(022);
	transcript_begin();
}

static void end(const char *name)
{
	fclose(transcript);
	expected_compare(name, transcript_text);
	free(transcript_text);
}

Test(driverd, what_its_peers_get, .init = begin, .fini = scratch_remove, .timeout = 200)
{
	serve();
	serve_again();
	end("driver/driverd");
}

Test(driverd, what_strangers_get, .init = begin, .fini = scratch_remove, .timeout = 200)
{
	meet_strangers();
	use_keys();
	end("driver/strangers");
}

Test(driverd, how_one_application_ends, .init = begin, .fini = scratch_remove, .timeout = 200)
{
	run_some();
	refuse_some();
	end("driver/one_application");
}
