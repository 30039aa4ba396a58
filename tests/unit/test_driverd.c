// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "../scratch.h"
#include "transcript.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <text/spec.h>

#include "built.h"
#include "wire_peer.h"

/*
 * The real driverd, with a worker and a client that this file plays: what each of them gets, but
 * for beats and what depends on the machine or the time, and how the driver ends.
 */
#define GRAPH                                                                                      \
	"frag: 1\napplication: app\nfragments:\n  f:\n    operators:\n"                            \
	"      tx: {type: ping_tx, conditions: [{type: count, count: 2}]}\n"                       \
	"      rx: {type: ping_rx}\n    flows: [tx -> rx]\n"

static pid_t driver;
static int driver_output;
static uint16_t port;
static struct wire_peer worker = {.fd = -1}, client = {.fd = -1};
static uint64_t run, epoch; /* of the last HOST_CREATE */

/* Reads its log up to the line that says where it listens. */
static void read_port(int fd)
{
	char text[8192], *at = NULL;
	size_t used = 0;

	while (at == NULL || strchr(at, '\n') == NULL) {
		ssize_t n = read(fd, text + used, sizeof(text) - 1 - used);

		cr_assert_gt(n, 0, "driverd ended: %s", text);
		used += (size_t)n;
		text[used] = '\0';
		at = strstr(text, "listening on 127.0.0.1:");
	}
	port = (uint16_t)atoi(at + strlen("listening on 127.0.0.1:"));
}

/* Flags after those that each driver has; up to NULL. */
static void start_driver(const char *const *flags)
{
	const char *argv[16] = {"driverd", "--address", "127.0.0.1:0"};
	int count = 3, fds[2], out_fds[2];
	posix_spawn_file_actions_t actions;

	fprintf(transcript, "driverd");
	for (; *flags != NULL; flags++) {
		argv[count++] = *flags;
		fprintf(transcript, " %s", strncmp(*flags, "/tmp", 4) == 0 ? "FOLDER" : *flags);
	}
	fprintf(transcript, "\n");
	cr_assert(pipe2(fds, O_CLOEXEC) == 0 && pipe2(out_fds, O_CLOEXEC) == 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out_fds[1], STDOUT_FILENO);
	cr_assert_eq(posix_spawn(&driver, built("bin/driverd"), &actions, NULL,
				 (char *const *)(uintptr_t)argv, environ),
		     0);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	close(out_fds[1]);
	driver_output = out_fds[0];
	read_port(fds[0]);
	/* what it logs from now on stays in the pipe, which has room for it */
}

static void show_exit(void)
{
	char text[8192];
	size_t used = 0;
	int status;
	ssize_t n;

	wire_peer_close(&worker);
	wire_peer_close(&client);
	cr_assert_eq(waitpid(driver, &status, 0), driver);
	fprintf(transcript, "driverd ends, status %d, signal %d\n",
		WIFEXITED(status) ? WEXITSTATUS(status) : 0,
		WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	while ((n = read(driver_output, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(driver_output);
	/* of its summary what is the same each time */
	for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;)
		if (strstr(line, "\"result\"") != NULL)
			fprintf(transcript, "  %s\n", line);
}

static void connect_to_driver(struct wire_peer *peer)
{
	struct sockaddr_in address = wire_peer_address(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	wire_peer_close(peer);
	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	wire_peer_open(peer, fd);
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
			fprintf(transcript, ", %d %s: %s", m->events.rows[i].kind,
				m->events.rows[i].application,
				strncmp(m->events.rows[i].text, "after ", 6) == 0
					? "after a time"
					: m->events.rows[i].text);
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

static void say_hello(struct wire_peer *peer, enum fw_role role, uint32_t major)
{
	struct fw_message message = {.kind = FW_HELLO};

	connect_to_driver(peer);
	message.hello = (struct fw_hello){.major = major,
					  .minor = FW_PROTOCOL_MINOR,
					  .role = role,
					  .name = role == FW_ROLE_WORKER ? "w" : "c",
					  .worker_address = "127.0.0.1",
					  .local_address = "127.0.0.1",
					  .node = "node",
					  .clock = "clock",
					  .version = "test",
					  .cores = 4,
					  .memory_bytes = UINT64_C(1) << 30};
	say(peer, message);
	peer->beats = true;
	show_until(peer, FW_WELCOME);
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

static void serve(void)
{
	struct fw_message stop = {.kind = FW_STOP_APP};

	start_driver(FLAGS("--state-dir", scratch));
	say_hello(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR);
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
	fprintf(transcript, "SIGTERM\n");
	kill(driver, SIGTERM);
	show_exit();
}

/* What it has written down is there. */
static void serve_again(void)
{
	start_driver(FLAGS("--state-dir", scratch));
	say_hello(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR);
	ask(FW_REQUEST, FW_REPLY);
	fprintf(transcript, "a client of another version\n");
	say_hello(&client, FW_ROLE_CLIENT, FW_PROTOCOL_MAJOR + 1);
	fprintf(transcript, "SIGINT\n");
	kill(driver, SIGINT);
	show_exit();
}

static void run_one(int signal_number)
{
	put("app.yaml", GRAPH);
	start_driver(FLAGS("--app", at("app.yaml"), "--output", "json"));
	say_hello(&worker, FW_ROLE_WORKER, FW_PROTOCOL_MAJOR);
	up_to_started();
	if (signal_number == 0)
		say_done();
	end_host(signal_number);
	show_until(&worker, FW_APP_ENDED);
	show_exit();
}

Test(driverd, what_its_peers_get, .init = scratch_make, .fini = scratch_remove, .timeout = 200)
{
	transcript_begin();
	serve();
	serve_again();
	run_one(0);
	run_one(SIGSEGV);
	fclose(transcript);
	expected_compare("driver/driverd", transcript_text);
	free(transcript_text);
}
