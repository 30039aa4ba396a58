// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "daemon.h"

#include <fcntl.h>

#include "wire_peer.h"

/*
 * The real fragctl, with a driver that this file plays, over TCP and by the unix socket: what it
 * sends, prints and returns when the driver refuses it, is silent, goes away or sends anything.
 */
static int listen_fd = -1;
static uint16_t port;
static bool by_socket;
static struct daemon ctl = {.manager = -1};
static struct wire_peer peer = {.fd = -1};

static void name_socket(struct sockaddr_un *address)
{
	char name[64];

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(name, sizeof(name), "run/frag/%u.sock", port);
	snprintf(address->sun_path, sizeof(address->sun_path), "%s", at(name));
}

/* The port stays: it is the number of the socket, too. */
static void listen_here(void)
{
	struct sockaddr_in address = wire_peer_address(port);
	struct sockaddr_un local;
	socklen_t size = sizeof(address);
	int on = 1;

	name_socket(&local);
	listen_fd = socket(by_socket ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	cr_assert_eq(bind(listen_fd,
			  by_socket ? (struct sockaddr *)&local : (struct sockaddr *)&address,
			  by_socket ? sizeof(local) : sizeof(address)),
		     0);
	cr_assert_eq(listen(listen_fd, 8), 0);
	if (by_socket)
		return;
	cr_assert_eq(getsockname(listen_fd, (struct sockaddr *)&address, &size), 0);
	port = ntohs(address.sin_port);
}

static void listen_no_more(void)
{
	struct sockaddr_un local;

	if (listen_fd >= 0)
		close(listen_fd);
	listen_fd = -1;
	name_socket(&local);
	(void)unlink(local.sun_path);
}

static void take(void)
{
	wire_peer_close(&peer);
	wire_peer_open(&peer, accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC));
}

static void hang_up(void)
{
	fprintf(transcript, "the driver hangs up\n");
	wire_peer_close(&peer);
}

/* What comes but for beats; the answer goes to it. */
static uint64_t show_next(void)
{
	struct fw_message *message;
	uint64_t seq = 0;

	do {
		message = wire_peer_hear(&peer);
		if (message == NULL) {
			fprintf(transcript, "  it hangs up\n");
		} else if (message->kind == FW_HELLO) {
			fprintf(transcript, "  sends: HELLO, role %u, protocol %d\n",
				message->hello.role, message->hello.major == FW_PROTOCOL_MAJOR);
		} else if (message->kind != FW_BEAT) {
			seq = message->seq;
			transcript_message("sends", message);
		}
	} while (message != NULL && message->kind == FW_BEAT && (fw_message_free(message), true));
	fw_message_free(message);
	return seq;
}

static void say(struct fw_message message)
{
	fprintf(transcript, "the driver says %s\n", fw_kind_name(message.kind));
	wire_peer_tell(&peer, message);
}

static void say_welcome(const char *version, int64_t dead_ns)
{
	struct fw_message message = {.kind = FW_WELCOME};

	take();
	show_next();
	message.welcome = (struct fw_welcome){.session = 5,
					      .name = "c",
					      .beat_ns = 50 * MS,
					      .dead_ns = dead_ns,
					      .version = version};
	say(message);
}

static void say_refused(enum fragi_failure code)
{
	struct fw_message message = {.kind = FW_REFUSED};

	take();
	show_next();
	message.refused.failure = (struct fw_failure){code, "it is refused", ""};
	say(message);
}

static void say_reply(uint64_t to)
{
	struct fw_application_row row = {.name = "a", .state = "running", .missing = ""};
	struct fw_message message = {.kind = FW_REPLY, .reply_to = to};

	message.reply = (struct fw_reply){.applications = &row, .application_count = 1};
	say(message);
}

static void say_answer(uint64_t to, enum fragi_failure code)
{
	struct fw_message message = {.kind = FW_ANSWER, .reply_to = to, .run = 7};

	message.answer.failure = (struct fw_failure){code, code == 0 ? NULL : "it cannot be", ""};
	say(message);
}

static void say_bytes(const void *bytes, size_t size)
{
	fprintf(transcript, "the driver sends %zu bytes\n", size);
	cr_assert_eq(send(peer.fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

#define FLAGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The words of the verb, and where the driver is. */
static void start(const char *const *words)
{
	const char *all[16];
	char address[32];
	int count = 0;

	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	for (; *words != NULL; words++)
		all[count++] = *words;
	all[count++] = "--address";
	all[count++] = address;
	all[count] = NULL;
	daemon_start(&ctl, "bin/fragctl", all, NULL, -1);
}

static void end(void)
{
	wire_peer_close(&peer);
	daemon_show_end(&ctl);
	listen_no_more(); /* nor is there what it may have tried meanwhile */
	listen_here();
}

static void be_nobody(void)
{
	listen_no_more();
	start(FLAGS("list"));
	end();
	listen_no_more();
	start(FLAGS("list", "-o", "json"));
	end();
	listen_no_more();
	start(FLAGS("events", "--follow"));
	end();
}

static void be_refusing(void)
{
	static const enum fragi_failure codes[] = {FRAGI_FAILURE_USAGE, FRAGI_FAILURE_PROTOCOL,
						   FRAGI_FAILURE_OUT_OF_MEMORY,
						   FRAGI_FAILURE_SYSTEM_REFUSED};

	for (size_t i = 0; i < FRAG_COUNT_OF(codes); i++) {
		start(i == 0 ? FLAGS("list", "-o", "json") : FLAGS("list"));
		say_refused(codes[i]);
		end();
	}
}

static void be_rude(void)
{
	static const char garbage[64] = "GET / HTTP/1.1\r\n\r\n";

	if (!by_socket) { /* where it would come again for ten seconds */
		start(FLAGS("list"));
		take();
		hang_up();
		end();
	}
	start(FLAGS("list", "--timeout", "1s"));
	take();
	show_next();
	say_bytes(garbage, sizeof(garbage));
	show_next();
	end();
	start(FLAGS("list"));
	say_welcome(FRAG_VERSION, 10000 * MS);
	show_next();
	hang_up();
	end();
	start(FLAGS("set", "a", "f.op.p=1"));
	say_welcome(FRAG_VERSION, 10000 * MS);
	say_answer(show_next(), FRAGI_FAILURE_USAGE);
	end();
}

static void be_silent(void)
{
	start(FLAGS("list", "--timeout", "900ms"));
	take();
	show_next();
	show_next();
	end();
}

static void be_silent_later(void)
{
	start(FLAGS("list", "--timeout", "900ms", "-o", "json"));
	say_welcome(FRAG_VERSION, 10000 * MS);
	show_next();
	show_next();
	end();
}

static void be_silent_at_last(void)
{
	start(FLAGS("list"));
	say_welcome(FRAG_VERSION, 300 * MS);
	show_next();
	show_next();
	end();
}

/* Waits for so many beats of the client. */
static void show_beats(int count)
{
	struct fw_message *message = NULL;

	for (int i = 0; i < count && (i == 0 || message != NULL); i++) {
		message = wire_peer_hear(&peer);
		fprintf(transcript, "  sends: %s\n",
			message != NULL ? fw_kind_name(message->kind) : "nothing");
		fw_message_free(message);
	}
}

static void be_good(void)
{
	uint64_t seq;

	start(FLAGS("list"));
	say_welcome(FRAG_VERSION, 10000 * MS);
	seq = show_next();
	show_beats(3);
	say_reply(seq + 1);
	say_answer(seq + 2, FRAGI_FAILURE_NONE);
	say_reply(seq);
	show_next();
	end();
	start(FLAGS("list"));
	say_welcome("0.0.9", 10000 * MS);
	say_answer(show_next(), FRAGI_FAILURE_PROTOCOL);
	end();
	start(FLAGS("set", "a", "f.op.p=1"));
	say_welcome(FRAG_VERSION, 10000 * MS);
	say_answer(show_next(), FRAGI_FAILURE_NONE);
	show_next();
	end();
}

/* A verb that follows connects again, once it was there. */
static void come_and_go(void)
{
	struct fw_notice notice = {.number = 3, .kind = FW_NOTICE_START, .application = "a"};
	struct fw_message events = {.kind = FW_EVENTS};

	notice.who = notice.text = "";
	start(FLAGS("events", "--follow", "-o", "json"));
	say_welcome(FRAG_VERSION, 10000 * MS);
	events.reply_to = show_next();
	say(events); /* none */
	events.reply_to = show_next();
	events.events = (struct fw_events){&notice, 1};
	say(events);
	hang_up();
	say_welcome(FRAG_VERSION, 10000 * MS);
	show_next();
	hang_up();
	say_refused(FRAGI_FAILURE_PROTOCOL);
	end();
}

/* A process for each part, so that their times run beside each other. */
static void (*const parts[])(void) = {be_nobody,       be_refusing,       be_rude, be_silent,
				      be_silent_later, be_silent_at_last, be_good, come_and_go};
#define PARTS FRAG_COUNT_OF(parts)
#define RUNS (2 * PARTS) /* by TCP, then by the unix socket */

/* Held at the same time: no two parts have the same. */
static void choose_ports(uint16_t ports[RUNS])
{
	int held[RUNS];

	for (size_t i = 0; i < RUNS; i++) {
		port = 0;
		listen_here();
		ports[i] = port;
		held[i] = listen_fd;
	}
	for (size_t i = 0; i < RUNS; i++)
		close(held[i]);
}

static pid_t begin_part(void (*part)(void), FILE *out)
{
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child > 0)
		return child;
	transcript = out;
	listen_here();
	part();
	listen_no_more();
	fclose(transcript);
	exit(0);
}

static void show_part(pid_t child, FILE *out, FILE *all)
{
	char line[4096];
	int status;

	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "a part ended with status %x", status);
	rewind(out);
	while (fgets(line, sizeof(line), out) != NULL)
		fputs(line, all);
	fclose(out);
}

Test(ctl_driver, what_comes_of_a_driver, .init = scratch_make, .fini = scratch_remove,
     .timeout = 200)
{
	uint16_t ports[RUNS];
	pid_t children[RUNS];
	FILE *outs[RUNS];

	unsetenv("FRAG_BUILD");
	put("run/frag/none", "");
	setenv("XDG_RUNTIME_DIR", at("run"), 1);
	unsetenv("RUNTIME_DIRECTORY");
	choose_ports(ports);
	for (size_t i = 0; i < RUNS; i++) {
		by_socket = i >= PARTS;
		port = ports[i];
		outs[i] = tmpfile();
		cr_assert_not_null(outs[i]);
		children[i] = begin_part(parts[i % PARTS], outs[i]);
	}
	transcript_begin();
	for (size_t i = 0; i < RUNS; i++) {
		if (i % PARTS == 0)
			fprintf(transcript, "by %s\n", i == 0 ? "TCP" : "the unix socket");
		show_part(children[i], outs[i], transcript);
	}
	fclose(transcript);
	expected_compare("fragctl/driver", transcript_text);
	free(transcript_text);
}
