// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <wire/frame.h>
#include <workerd/reporter.h>
#include <workerd/page.h>

/*
 * This process plays workerd, which is killed: the socket to its reporter closes. A child plays a
 * host. This process plays the driver too: `driver` is its end of workerd's connection, `reporters`
 * its end of the reporter's own.
 */
#define CONNECTION 3
#define FD_OF_A_CHECKER 256 /* valgrind has its own descriptors above */

struct host {
	struct wrk_page page;
	struct fragi_ledger ledger;
	pid_t pid;
	int pidfd;
};

static const struct fw_welcome session = {
	.session = 77, .name = "a", .beat_ns = 1, .dead_ns = 1, .version = "", .secret = {1, 2, 3}};
static struct wrk_reporter reporter;
static int listener, driver, reporters = -1;
static bool is_killed; /* workerd */
static struct fw_reader reader;

static void connect_driver(uint64_t id)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	int end = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	cr_assert_eq(connect(end, (struct sockaddr *)&address, size), 0);
	driver = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	cr_assert_geq(driver, 0);
	wrk_reporter_attached(&reporter, id, &session, end);
	close(end);
}

static void begin(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(wrk_reporter_start(&reporter, &(struct fw_tls_config){0}, NULL, &err), 0, "%s",
		     err.text);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(listener, 8), 0);
	connect_driver(CONNECTION);
	fw_reader_init(&reader, FW_FRAME_MAX);
}
static void end(void)
{
	fw_reader_fini(&reader);
	close(driver);
	close(listener);
	if (reporters >= 0)
		close(reporters);
	if (reporter.pid > 0)
		kill(reporter.pid, SIGKILL);
	if (reporter.pid > 0 && !is_killed)
		close(reporter.socket);
	while (waitpid(-1, NULL, WNOHANG) >= 0)
		continue;
}
TestSuite(worker_reporter, .init = begin, .fini = end);

static void start_host(struct host *host)
{
	cr_assert_eq(wrk_page_init(&host->page), 0);
	host->ledger = (struct fragi_ledger){0};
	cr_assert_eq(fragi_ledger_create(&host->ledger, host->page.fd, 0, 1), 0);
	host->pid = fork();
	if (host->pid == 0) {
		close(reporter.socket);
		close(driver);
		for (;;)
			pause();
	}
	host->pidfd = (int)syscall(SYS_pidfd_open, host->pid, 0u);
	cr_assert_geq(host->pidfd, 0);
}

static void add_host(const struct host *host, uint32_t id)
{
	struct fw_message create = {.kind = FW_HOST_CREATE, .run = 7, .host = id, .epoch = 9};

	wrk_reporter_add(&reporter, id, &create, host->page.fd, host->pidfd);
}

static void end_host(struct host *host)
{
	kill(host->pid, SIGKILL);
	close(host->pidfd);
	fragi_ledger_close(&host->ledger);
	wrk_page_fini(&host->page);
}

static void kill_workerd(void)
{
	close(reporter.socket);
	is_killed = true;
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, timeout_ms) == 1;
}

/* The next frame on the reporter's connection; NULL: it sends no more. */
static struct fw_message *next_frame(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message;
	const uint8_t *envelope;
	uint8_t bytes[4096];
	size_t size;
	ssize_t n;

	while (fw_reader_next(&reader, &envelope, &size, &err) == 0) {
		cr_assert(is_readable(reporters, 20000), "the connection stays open");
		n = read(reporters, bytes, sizeof(bytes));
		if (n <= 0)
			return NULL;
		cr_assert_eq(fw_reader_feed(&reader, bytes, (size_t)n, fragi_now_ns()), 0);
	}
	cr_assert_eq(fw_decode(envelope, size, &message, &err), 0, "%s", err.text);
	return message;
}

static void answer(const struct fw_message *message)
{
	uint8_t *frame;
	size_t size;

	cr_assert_eq(fw_encode(message, &frame, &size), 0);
	cr_assert_eq(write(reporters, frame, size), (ssize_t)size);
	fragi_free(frame);
}

/* The reporter connects and speaks for its session. */
static void expect_reporter(void)
{
	struct fw_message *message;

	cr_assert(is_readable(listener, 20000), "no reporter comes");
	reporters = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	message = next_frame();
	cr_assert_not_null(message);
	cr_assert_eq(message->kind, FW_HELLO);
	cr_expect_eq(message->hello.role, FW_ROLE_REPORTER);
	cr_expect_eq(message->hello.session, session.session);
	cr_expect_arr_eq(message->hello.secret, session.secret, FW_SECRET_BYTES);
	fw_message_free(message);
}

static void welcome_reporter(void)
{
	expect_reporter();
	answer(&(struct fw_message){.kind = FW_WELCOME, .welcome = session});
}

/* workerd's connection ends, and no bytes come before that. */
static void expect_end(void)
{
	char byte;

	cr_assert(is_readable(driver, 20000), "the connection stays open");
	cr_expect_eq(read(driver, &byte, 1), 0);
}

/* The reporter has sent all, and workerd's connection outlasts its own. */
static void expect_no_more(void)
{
	cr_expect_null(next_frame());
	cr_expect(!is_readable(driver, 50), "workerd's connection ended first");
	close(reporters);
	reporters = -1;
	expect_end();
}

static void expect_counts(uint32_t host, uint64_t sent)
{
	struct fw_message *message = next_frame();

	cr_assert_not_null(message);
	cr_assert_eq(message->kind, FW_HOST_STATS);
	cr_expect(message->stats.final);
	cr_expect_eq(message->run, 7);
	cr_expect_eq(message->host, host);
	cr_expect_eq(message->epoch, 9);
	cr_assert_eq(message->stats.flow_count, 1);
	cr_expect_eq(message->stats.flows[0].sent, sent);
	fw_message_free(message);
}

Test(worker_reporter, the_last_counts_are_read_when_the_hosts_have_ended)
{
	struct host a, b;

	start_host(&a);
	start_host(&b);
	add_host(&a, 1);
	add_host(&b, 2);
	fragi_count(&a.ledger.flows[0].sent, 5);
	kill_workerd();
	fragi_count(&a.ledger.flows[0].sent, 1); /* it lives a moment longer */
	fragi_count(&b.ledger.flows[0].sent, 2);
	end_host(&a);
	end_host(&b);
	welcome_reporter();
	expect_counts(1, 6);
	expect_counts(2, 2);
	expect_no_more();
}

Test(worker_reporter, a_host_that_does_not_end_is_not_waited_for_for_ever)
{
	struct host a, b;

	start_host(&a);
	start_host(&b);
	add_host(&a, 1);
	add_host(&b, 2);
	fragi_count(&b.ledger.flows[0].sent, 2);
	end_host(&b);
	kill_workerd();
	welcome_reporter();
	expect_counts(2, 2);
	expect_no_more();
	cr_expect_eq(kill(a.pid, 0), 0);
	end_host(&a);
}

Test(worker_reporter, without_hosts_it_has_nothing_to_report)
{
	struct host a;

	start_host(&a);
	add_host(&a, 1);
	kill_workerd(); /* the host lives on */
	expect_end();
	cr_expect(!is_readable(listener, 0));
	end_host(&a);
}

Test(worker_reporter, a_driver_that_refuses_it_is_not_asked_again)
{
	struct host a;

	start_host(&a);
	add_host(&a, 1);
	end_host(&a);
	kill_workerd();
	expect_reporter();
	answer(&(struct fw_message){
		.kind = FW_REFUSED,
		.refused.failure = {FRAGI_FAILURE_SESSION_REFUSED, "it has ended", ""}});
	cr_expect_null(next_frame());
	expect_end();
	cr_expect(!is_readable(listener, 0));
}

Test(worker_reporter, a_driver_that_closes_its_connection_too_early_is_asked_again)
{
	struct host a;

	start_host(&a);
	add_host(&a, 1);
	end_host(&a);
	kill_workerd();
	for (int i = 0; i < 2; i++) {
		expect_reporter();
		close(reporters);
	}
	welcome_reporter();
	expect_counts(1, 0);
	expect_no_more();
}

Test(worker_reporter, a_driver_that_does_not_answer_is_not_waited_for_for_ever)
{
	struct host a;

	start_host(&a);
	add_host(&a, 1);
	end_host(&a);
	kill_workerd();
	expect_reporter();
	cr_expect_null(next_frame());
	expect_end();
}

Test(worker_reporter, a_driver_that_does_not_close_is_not_waited_for_for_ever)
{
	struct host a;

	start_host(&a);
	add_host(&a, 1);
	end_host(&a);
	kill_workerd();
	welcome_reporter();
	expect_counts(1, 0);
	cr_expect_null(next_frame());
	expect_end();
}

Test(worker_reporter, a_host_that_was_reported_is_forgotten)
{
	struct host a, b;

	start_host(&a);
	start_host(&b);
	add_host(&a, 1);
	add_host(&b, 2);
	end_host(&a);
	end_host(&b);
	wrk_reporter_remove(&reporter, 1);
	kill_workerd();
	welcome_reporter();
	expect_counts(2, 0);
	expect_no_more();
}

Test(worker_reporter, a_driver_hears_of_the_hosts_of_its_own_connection_only)
{
	struct host a, b;

	start_host(&a);
	add_host(&a, 1);
	close(driver);
	connect_driver(CONNECTION + 1);
	wrk_reporter_disconnected(&reporter, CONNECTION); /* late */
	start_host(&b);
	add_host(&b, 2);
	end_host(&a);
	end_host(&b);
	kill_workerd();
	welcome_reporter();
	expect_counts(2, 0);
	expect_no_more();
}

Test(worker_reporter, a_connection_that_workerd_closes_is_closed)
{
	wrk_reporter_disconnected(&reporter, CONNECTION);
	expect_end();
}

Test(worker_reporter, it_goes_with_its_workerd)
{
	kill_workerd();
	cr_expect_eq(waitpid(reporter.pid, NULL, 0), reporter.pid);
}

Test(worker_reporter, it_holds_nothing_of_its_workerd)
{
	char path[64];
	int open_fds = 0;
	const struct dirent *entry;
	DIR *folder;

	wrk_reporter_disconnected(&reporter, CONNECTION);
	expect_end(); /* it is at its work */
	cr_expect_eq(getsid(reporter.pid), reporter.pid);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)reporter.pid);
	folder = opendir(path);
	cr_assert_not_null(folder);
	while ((entry = readdir(folder)) != NULL)
		open_fds += entry->d_name[0] != '.' && atoi(entry->d_name) < FD_OF_A_CHECKER;
	closedir(folder);
	cr_expect_eq(open_fds, 4, "/dev/null three times, and the socket: %d", open_fds);
}

Test(worker_reporter, a_lost_reporter_is_given_up)
{
	kill(reporter.pid, SIGKILL);
	waitpid(reporter.pid, NULL, 0);
	wrk_reporter_remove(&reporter, 1);
	cr_expect_eq(reporter.pid, 0);
	wrk_reporter_disconnected(&reporter, CONNECTION);
}
