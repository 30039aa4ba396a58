/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/stamp.h>
#include <wire/frame.h>
#include <workerd/keeper.h>
#include <workerd/page.h>

/*
 * This process plays workerd, which is killed: the socket to its keeper closes. A child plays a
 * host, a socketpair the connection to the driver.
 */
#define CONNECTION 3
#define FD_OF_A_CHECKER 256 /* valgrind has its own descriptors above */

struct host {
	struct wrk_page page;
	struct fragi_ledger ledger;
	pid_t pid;
	int pidfd;
};

static struct wrk_keeper keeper;
static int driver; /* the driver's end */
static struct fw_reader reader;

static void connect_driver(uint64_t id)
{
	int ends[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	wrk_keeper_connected(&keeper, id, ends[1]);
	close(ends[1]);
	driver = ends[0];
}

static void begin(void)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(wrk_keeper_start(&keeper, &err), 0, "%s", err.text);
	connect_driver(CONNECTION);
	fw_reader_init(&reader, FW_FRAME_MAX);
}
static void end(void)
{
	fw_reader_fini(&reader);
	close(driver);
	if (keeper.pid > 0)
		kill(keeper.pid, SIGKILL);
	while (waitpid(-1, NULL, WNOHANG) >= 0)
		continue;
}
TestSuite(worker_keeper, .init = begin, .fini = end);

static void start_host(struct host *host)
{
	cr_assert_eq(wrk_page_init(&host->page), 0);
	host->ledger = (struct fragi_ledger){0};
	cr_assert_eq(fragi_ledger_create(&host->ledger, host->page.fd, 0, 1), 0);
	host->pid = fork();
	if (host->pid == 0) {
		close(keeper.socket);
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

	wrk_keeper_add(&keeper, id, &create, host->page.fd, host->pidfd);
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
	close(keeper.socket);
}

/* The next frame for the driver; NULL: the connection is closed. */
static struct fw_message *next_frame(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message;
	const uint8_t *envelope;
	uint8_t bytes[4096];
	size_t size;
	ssize_t n;

	while (fw_reader_next(&reader, &envelope, &size, &err) == 0) {
		struct pollfd wait = {.fd = driver, .events = POLLIN};

		cr_assert_eq(poll(&wait, 1, 20000), 1, "the connection stays open");
		n = read(driver, bytes, sizeof(bytes));
		if (n <= 0)
			return NULL;
		cr_assert_eq(fw_reader_feed(&reader, bytes, (size_t)n, fragi_now_ns()), 0);
	}
	cr_assert_eq(fw_decode(envelope, size, &message, &err), 0, "%s", err.text);
	return message;
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

Test(worker_keeper, the_last_counts_are_read_when_the_hosts_have_ended)
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
	expect_counts(1, 6);
	expect_counts(2, 2);
	cr_expect_null(next_frame());
}

Test(worker_keeper, a_host_that_does_not_end_is_not_waited_for_for_ever)
{
	struct host a, b;

	start_host(&a);
	start_host(&b);
	add_host(&a, 1);
	add_host(&b, 2);
	fragi_count(&b.ledger.flows[0].sent, 2);
	end_host(&b);
	kill_workerd();
	expect_counts(2, 2);
	cr_expect_null(next_frame());
	cr_expect_eq(kill(a.pid, 0), 0);
	end_host(&a);
}

Test(worker_keeper, nothing_follows_a_frame_that_was_cut)
{
	struct host a;

	start_host(&a);
	add_host(&a, 1);
	atomic_store(wrk_keeper_mid_frame(&keeper, CONNECTION), true);
	end_host(&a);
	kill_workerd();
	cr_expect_null(next_frame());
}

Test(worker_keeper, a_host_that_was_reported_is_forgotten)
{
	struct host a, b;

	start_host(&a);
	start_host(&b);
	add_host(&a, 1);
	add_host(&b, 2);
	end_host(&a);
	end_host(&b);
	wrk_keeper_remove(&keeper, 1);
	kill_workerd();
	expect_counts(2, 0);
	cr_expect_null(next_frame());
}

Test(worker_keeper, a_driver_hears_of_the_hosts_of_its_own_connection_only)
{
	struct host a, b;

	start_host(&a);
	add_host(&a, 1);
	close(driver);
	connect_driver(CONNECTION + 1);
	wrk_keeper_disconnected(&keeper, CONNECTION); /* late */
	start_host(&b);
	add_host(&b, 2);
	end_host(&a);
	end_host(&b);
	kill_workerd();
	expect_counts(2, 0);
	cr_expect_null(next_frame());
}

Test(worker_keeper, a_connection_that_workerd_closes_is_closed)
{
	wrk_keeper_disconnected(&keeper, CONNECTION);
	cr_expect_null(next_frame());
}

Test(worker_keeper, it_goes_with_its_workerd)
{
	kill_workerd();
	cr_expect_eq(waitpid(keeper.pid, NULL, 0), keeper.pid);
}

Test(worker_keeper, it_holds_nothing_of_its_workerd)
{
	char path[64];
	int open_fds = 0;
	const struct dirent *entry;
	DIR *folder;

	wrk_keeper_disconnected(&keeper, CONNECTION);
	cr_expect_null(next_frame()); /* it is at its work */
	cr_expect_eq(getsid(keeper.pid), keeper.pid);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)keeper.pid);
	folder = opendir(path);
	cr_assert_not_null(folder);
	while ((entry = readdir(folder)) != NULL)
		open_fds += entry->d_name[0] != '.' && atoi(entry->d_name) < FD_OF_A_CHECKER;
	closedir(folder);
	cr_expect_eq(open_fds, 4, "/dev/null three times, and the socket: %d", open_fds);
}

Test(worker_keeper, a_lost_keeper_is_given_up)
{
	kill(keeper.pid, SIGKILL);
	waitpid(keeper.pid, NULL, 0);
	wrk_keeper_remove(&keeper, 1);
	cr_expect_eq(keeper.pid, 0);
	wrk_keeper_disconnected(&keeper, CONNECTION);
}
