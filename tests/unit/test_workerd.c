// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "daemon.h"

#include <signal.h>

#include <text/spec.h>

#include "wire_peer.h"

/*
 * The real workerd and its real fraghosts, with a driver that this file plays: every frame that it
 * gets, but for beats, samples and what a host at rest says again; what the worker logs, what it
 * keeps open, and how it ends. What depends on the machine or the time is left out.
 */
static int listen_fd;
static uint16_t port;
static struct daemon worker = {.manager = -1};
static struct wire_peer driver = {.fd = -1};
static pid_t host_pid;   /* that was prepared last */
static char *lines_text; /* of hosts that ping: they come at any time between other frames */
static size_t lines_size;
static FILE *lines;

static void listen_here(void)
{
	struct sockaddr_in address = wire_peer_address(0);
	socklen_t size = sizeof(address);

	listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(listen_fd, 8), 0);
	cr_assert_eq(getsockname(listen_fd, (struct sockaddr *)&address, &size), 0);
	port = ntohs(address.sin_port);
}

/* Flags after those that each worker has; up to NULL. */
static void start_worker(const char *const *flags)
{
	char address[32], libraries[512];
	const char *all[24] = {
		"--address", address,       "--name",
		"w",         "--inventory", "cpu=2,gpu=0,memory=3GiB,sharedMemory=2GiB,gpuMemory=0",
		"--label",   "room=1",      "--worker-address",
		"127.0.0.1"};
	int count = 10;

	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	snprintf(libraries, sizeof(libraries), "%s", built("tests/sample_plugins"));
	setenv("FRAG_LIBRARY_PATH", libraries, 1);
	for (; *flags != NULL; flags++)
		all[count++] = *flags;
	daemon_start(&worker, "bin/workerd", all, NULL, -1);
	lines = open_memstream(&lines_text, &lines_size);
}

static void hang_up(void)
{
	wire_peer_close(&driver);
}

static void take_connection(void)
{
	hang_up();
	wire_peer_open(&driver, accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC));
}

static bool is_shown(const struct fw_message *message)
{
	if (message->kind == FW_BEAT)
		return false;
	if (message->kind == FW_HOST_STATS)
		return message->stats.final;
	return message->kind != FW_HOST_EVENT ||
	       (message->event.state != FW_STATE_IDLE && message->event.state != FW_STATE_RUNNING);
}

/* "fraghost 4711 of f" has another number each time. */
static void show_sentence(const char *name, const char *sentence)
{
	const char *at = strstr(sentence, "fraghost ");

	if (at == NULL)
		fprintf(transcript, ", %s: %s", name, sentence);
	else
		fprintf(transcript, ", %s: %.*sfraghost N%s", name, (int)(at - sentence), sentence,
			at + 9 + strspn(at + 9, "0123456789"));
}

static void show_frame(const struct fw_message *m)
{
	const struct fw_hello *hello = &m->hello;

	fprintf(transcript, "  %s %d/%u/%d", fw_kind_name(m->kind), (int)m->run, m->host,
		(int)m->epoch);
	if (m->kind == FW_HELLO) {
		fprintf(transcript,
			", role %u, name %s, session %d, last name %s, reports %u, last epoch %d, cores %u, memory %llu %llu",
			hello->role, hello->name, (int)hello->session, hello->last_name,
			hello->reports, (int)hello->last_epoch,
			(unsigned int)(hello->has[FRAGI_AMOUNT_CPU] / FRAGI_AMOUNT_ONE),
			(unsigned long long)hello->has[FRAGI_AMOUNT_MEMORY],
			(unsigned long long)hello->has[FRAGI_AMOUNT_SHARED_MEMORY]);
		for (uint32_t i = 0; i < hello->label_count; i++)
			fprintf(transcript, ", label %s", hello->labels[i]);
		for (uint32_t i = 0; i < hello->fragment_count; i++)
			fprintf(transcript, ", fragment %s", hello->fragments[i]);
		fprintf(transcript, ", at %s from %s", hello->worker_address, hello->local_address);
	} else if (m->kind == FW_HOST_PREPARED) {
		fprintf(transcript, ", ok %d, fragments %u, flows %u", m->prepared.ok,
			m->prepared.fragment_count, m->prepared.flow_count);
		for (uint32_t i = 0; i < m->prepared.error_count; i++)
			show_sentence("error", m->prepared.errors[i].sentence);
	} else if (m->kind == FW_HOST_EXIT) {
		fprintf(transcript, ", code %d, signal %d, asked %d, failure %d", m->exit.exit_code,
			m->exit.signal, m->exit.asked, m->exit.failure.code);
		show_sentence("sentence", m->exit.failure.sentence);
	} else if (m->kind == FW_HOST_STATS) {
		fprintf(transcript, ", operators %u", m->stats.op_count);
		for (uint32_t i = 0; m->stats.op_count > 1 && i < m->stats.op_count; i++)
			fprintf(transcript, ", ticks %d", (int)m->stats.ops[i].ticks);
	} else if (m->kind == FW_HOST_REPORT) {
		fprintf(transcript, ", started %d, wired %d, stop %d, restarts %d",
			m->report.started, m->report.is_wired, m->report.stop,
			(int)m->report.restarts);
	} else if (m->kind != FW_REPORTED) {
		fprintf(transcript, ": ");
		transcript_body(m);
	}
	fprintf(transcript, "\n");
}

static void keep_lines(const struct fw_message *m)
{
	for (uint32_t i = 0; i < m->host_lines.count; i++)
		if (strstr(m->host_lines.rows[i].op, "dial") == NULL)
			fprintf(lines, "  line of %d/%u/%d, %u, %s.%s: %s\n", (int)m->run, m->host,
				(int)m->epoch, m->host_lines.rows[i].level,
				m->host_lines.rows[i].fragment, m->host_lines.rows[i].op,
				m->host_lines.rows[i].text);
}

/* Shows what comes up to a frame of that kind; lines of hosts, which come at any time, not. */
static void show_until(enum fw_kind kind)
{
	struct fw_message *message;
	bool is_last = false;

	while (!is_last && (message = wire_peer_hear(&driver)) != NULL) {
		is_last = message->kind == kind && is_shown(message);
		if (message->kind == FW_HOST_LINES)
			keep_lines(message);
		if (message->kind == FW_HOST_PREPARED)
			host_pid = message->prepared.pid;
		if (is_last || (is_shown(message) && message->kind != FW_HOST_LINES))
			show_frame(message);
		fw_message_free(message);
	}
	if (!is_last)
		fprintf(transcript, "  hangs up\n");
}

static void say(const char *what, struct fw_message message)
{
	fprintf(transcript, "%s\n", what);
	wire_peer_tell(&driver, message);
}

static int64_t dead_ns = 10000 * MS;

static void say_welcome(bool takes_lines, bool keeps_hosts)
{
	struct fw_message message = {.kind = FW_WELCOME};

	message.welcome = (struct fw_welcome){.session = 5,
					      .name = "w#2",
					      .beat_ns = 100 * MS,
					      .dead_ns = dead_ns,
					      .version = "test",
					      .secret = {7},
					      .takes_lines = takes_lines,
					      .keeps_hosts = keeps_hosts};
	say("WELCOME", message);
	driver.beats = true;
}

static struct fw_message of(enum fw_kind kind, uint32_t host, uint64_t epoch)
{
	return (struct fw_message){.kind = kind, .run = 7, .host = host, .epoch = epoch};
}

#define PING(count)                                                                                \
	"frag: 1\napplication: app\nfragments:\n  f:\n    operators:\n"                            \
	"      tx: {type: ping_tx, conditions: [{type: count, count: " count "}]}\n"               \
	"      rx: {type: ping_rx}\n    flows: [tx -> rx]\n"
#define DIAL                                                                                       \
	"frag: 1\napplication: app\nextensions: [libdial.so]\n"                                    \
	"fragments:\n  f:\n    operators:\n"                                                       \
	"      dial: {type: dial, conditions: [{type: periodic, recess_period: 20ms}]}\n"

static void create(const char *graph, uint32_t host, uint64_t epoch)
{
	const struct fragi_spec_source source = {.graph = {"app.yaml", graph, strlen(graph)},
						 .app_folder = "/"};
	static const char *names[] = {"f"};
	struct fw_message message = of(FW_HOST_CREATE, host, epoch);
	void *bytes;
	size_t size;

	cr_assert_eq(fragi_source_pack(&source, &bytes, &size), 0);
	message.create = (struct fw_host_create){.application = "app",
						 .source = bytes,
						 .source_bytes = (uint32_t)size,
						 .fragments = names,
						 .fragment_count = 1,
						 .beat_ns = 100 * MS,
						 .dead_ns = 10000 * MS};
	say("HOST_CREATE", message);
	fragi_free(bytes);
	show_until(message.epoch != 0 ? FW_HOST_PREPARED : FW_HOST_EXIT);
}

static void run_host(const char *graph, uint32_t host, uint64_t epoch)
{
	create(graph, host, epoch);
	say("HOST_WIRE", of(FW_HOST_WIRE, host, epoch));
	show_until(FW_HOST_WIRED);
	say("HOST_START", of(FW_HOST_START, host, epoch));
	show_until(FW_HOST_STARTED);
}

/* It has hung up, or waits for the driver for a second. */
static void show_end(void)
{
	daemon_show_end(&worker);
	fclose(lines);
	fputs(lines_text, transcript);
	free(lines_text);
}

static void show_exit(void)
{
	hang_up();
	show_end();
}

static void meet(bool takes_lines, bool keeps_hosts)
{
	take_connection();
	show_until(FW_HELLO);
	say_welcome(takes_lines, keeps_hosts);
}

#define FLAGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void send_signal(int number)
{
	fprintf(transcript, "SIG%s\n", sigabbrev_np(number));
	kill(worker.pid, number);
}

/* A host that is done, one whose parameter is set, and one that is killed. */
static void serve(void)
{
	struct fw_message set = of(FW_HOST_SET, 2, 4);
	int descriptors;

	daemon_have_manager(&worker);
	start_worker(FLAGS("--fragments", "f,app/g"));
	meet(true, false);
	descriptors = daemon_descriptors(&worker);
	run_host(PING("2"), 1, 3);
	show_until(FW_HOST_EVENT);
	say("HOST_STOP", of(FW_HOST_STOP, 1, 3));
	show_until(FW_HOST_EXIT);
	run_host(DIAL, 2, 4);
	set.host_set.number = 9;
	set.host_set.text = "f.dial.value=7";
	set.host_set.who = "user alice";
	say("HOST_SET", set);
	show_until(FW_HOST_SET_DONE);
	say("HOST_CREATE of an old epoch, HOST_KILL", of(FW_HOST_KILL, 2, 4));
	show_until(FW_HOST_EXIT);
	create("no graph", 3, 5);
	say("HOST_STOP", of(FW_HOST_STOP, 3, 5));
	show_until(FW_HOST_EXIT);
	daemon_show_descriptors(&worker, descriptors);
	send_signal(SIGTERM);
	show_until(FW_LEAVE);
	show_exit();
}

/* The worker has read what it was told: its beats are of later rounds of its loop. */
static void await_beats(void)
{
	struct fw_message *message;

	for (int count = 0; count < 2 && (message = wire_peer_hear(&driver)) != NULL;) {
		count += message->kind == FW_BEAT;
		fw_message_free(message);
	}
}

/* The driver goes and comes back, to a host that runs on. */
static void come_back(void)
{
	int descriptors;

	start_worker(FLAGS("--fragments", "all"));
	meet(false, true);
	descriptors = daemon_descriptors(&worker);
	run_host(DIAL, 1, 3);
	fprintf(transcript, "the driver goes, and comes back\n");
	meet(false, true);
	show_until(FW_REPORTED);
	say("APP_ENDED", of(FW_APP_ENDED, 0, 0));
	await_beats();
	say("the driver goes, and another one comes", of(FW_BEAT, 0, 0));
	meet(false, false);
	daemon_show_descriptors(&worker, descriptors);
	run_host(DIAL, 2, 1);
	fprintf(transcript, "the driver goes, with its hosts\n");
	meet(false, false);
	daemon_show_descriptors(&worker, descriptors);
	send_signal(SIGTERM);
	show_until(FW_LEAVE);
	show_exit();
}

static void once(void)
{
	struct fw_message ended = {.kind = FW_APP_ENDED, .run = 7};

	start_worker(FLAGS("--once"));
	meet(false, false);
	run_host(PING("1"), 1, 3);
	show_until(FW_HOST_EVENT);
	say("HOST_STOP", of(FW_HOST_STOP, 1, 3));
	show_until(FW_HOST_EXIT);
	ended.app_ended.exit_code = 4;
	say("APP_ENDED with 4", ended);
	show_until(FW_LEAVE);
	show_exit();
}

static void refuse(void)
{
	struct fw_message refused = {.kind = FW_REFUSED};

	start_worker(FLAGS("--once"));
	take_connection();
	show_until(FW_HELLO);
	refused.refused.failure = (struct fw_failure){FRAGI_FAILURE_PROTOCOL, "too new", ""};
	say("REFUSED", refused);
	show_exit();
	start_worker(FLAGS("--once"));
	take_connection();
	show_until(FW_HELLO);
	say("HOST_START", of(FW_HOST_START, 1, 1));
	take_connection();
	show_until(FW_HELLO);
	send_signal(SIGINT);
	show_end();
	hang_up();
}

/* Hosts that are lost, and a driver that is silent or sends what is no frame. */
static void suffer(void)
{
	static const char garbage[64] = "GET / HTTP/1.1\r\n\r\n";
	int descriptors;

	start_worker(FLAGS("--fragments", "f"));
	meet(true, true);
	descriptors = daemon_descriptors(&worker);
	run_host(DIAL, 1, 3);
	fprintf(transcript, "its host is killed\n");
	kill(host_pid, SIGKILL);
	show_until(FW_HOST_EXIT);
	run_host(PING("3"), 2, 4);
	show_until(FW_HOST_EVENT);
	say("HOST_STOP", of(FW_HOST_STOP, 2, 4));
	show_until(FW_HOST_EXIT);
	daemon_show_descriptors(&worker, descriptors);
	run_host(DIAL, 3, 5);
	fprintf(transcript, "the driver sends what is no frame\n");
	cr_assert_eq(send(driver.fd, garbage, sizeof(garbage), MSG_NOSIGNAL), sizeof(garbage));
	show_until(FW_REPORTED);
	dead_ns = 300 * MS;
	meet(true, false);
	daemon_show_descriptors(&worker, descriptors);
	run_host(DIAL, 4, 6);
	fprintf(transcript, "the driver is silent\n");
	driver.beats = false;
	show_until(FW_REPORTED);
	dead_ns = 10000 * MS;
	meet(true, false);
	daemon_show_descriptors(&worker, descriptors);
	run_host(DIAL, 5, 7);
	send_signal(SIGTERM);
	show_until(FW_LEAVE);
	show_exit();
}

static void refuse_to_start(const char *const *flags)
{
	start_worker(flags);
	show_exit();
}

static void refuse_some(void)
{
	refuse_to_start(FLAGS("--nothing"));
	refuse_to_start(FLAGS("--worker-address", "127.0.0.1:7000-6000"));
	refuse_to_start(FLAGS("--inventory", "cpu=x"));
	refuse_to_start(FLAGS("--host-user", "nobody-of-this-name"));
	refuse_to_start(FLAGS("--key-file", at("none")));
	refuse_to_start(FLAGS("--host-limit", "nofile=1", "--host-limit", "none=2"));
	start_worker(FLAGS("--once"));
	take_connection();
	show_until(FW_HELLO);
	send_signal(SIGHUP);
	show_end();
	hang_up();
}

static void begin(void)
{
	unsetenv("FRAG_BUILD"); /* of the tests, and no variable that a daemon knows */
	scratch_make();
	listen_here();
	transcript_begin();
}

static void end(const char *name)
{
	fclose(transcript);
	close(listen_fd);
	expected_compare(name, transcript_text);
	free(transcript_text);
}

Test(workerd, what_a_driver_gets, .init = begin, .fini = scratch_remove, .timeout = 200)
{
	serve();
	come_back();
	once();
	refuse();
	end("worker/workerd");
}

Test(workerd, what_it_suffers, .init = begin, .fini = scratch_remove, .timeout = 200)
{
	suffer();
	refuse_some();
	end("worker/suffered");
}
