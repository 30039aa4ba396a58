// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <limits.h>
#include <netinet/in.h>
#include <sys/eventfd.h>

#include <workerd/reporter.h>
#undef WRK_REPORTER_END_NS
#define WRK_REPORTER_END_NS 30000000ll
#include <workerd/reporter_process.c> /* with a connection that this file plays */

#include "key_file.h"

/* What the crash reporter keeps of what its worker tells it, and what it tells the driver then. */
static FILE *out;
static struct kept kept;
static struct wrk_reporter reporter;
static int pair[2]; /* a connection to the driver, and the driver's end */

int fw_connection_send(struct fw_connection *connection, uint8_t *frame, size_t size)
{
	struct fw_message *message;

	cr_expect_null(connection);
	cr_assert_eq(fw_decode(frame + 4, size - 4, &message, NULL), 0);
	fprintf(out, "  sends %s of %d/%u, epoch %d, number %d, final %d, %u operators\n",
		fw_kind_name(message->kind), (int)message->run, message->host, (int)message->epoch,
		(int)message->seq, message->stats.final, message->stats.op_count);
	fw_message_free(message);
	fragi_free(frame);
	return 0;
}

void wrk_reporter_link_run(const struct wrk_reporter_link *link)
{
	const struct sockaddr_in *driver = (const void *)link->driver;
	int64_t left_ns = link->until_ns - fragi_now_ns();

	cr_expect(link->arg == &kept && link->secret == kept.secret && link->users == kept.users);
	cr_expect(left_ns > WRK_REPORTER_LINK_NS - 4000000000 && left_ns <= WRK_REPORTER_LINK_NS);
	fprintf(out, "  connects to %s, session %d, with a key %d\n",
		driver->sin_addr.s_addr == htonl(INADDR_LOOPBACK) ? "the driver" : "nobody",
		(int)link->session, link->tls != NULL);
	link->counts(link->arg, NULL);
}

static void connect_pair(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(bind(listener, (struct sockaddr *)&address, size), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(connect(pair[0], (struct sockaddr *)&address, size), 0);
	pair[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	cr_assert_geq(pair[1], 0);
	close(listener);
}

static void begin(void)
{
	int sockets[2], high;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	high = fcntl(sockets[1], F_DUPFD_CLOEXEC, 50);
	/* a process that is not there */
	reporter = (struct wrk_reporter){INT_MAX, fcntl(sockets[0], F_DUPFD_CLOEXEC, 60)};
	close(sockets[0]);
	close(sockets[1]);
	cr_assert_eq(dup2(high, FD_SOCKET), FD_SOCKET);
	close(high);
	kept = (struct kept){.fd = -1};
	connect_pair();
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void show(const char *what)
{
	struct wrk_note note = {0};
	int fds[WRK_NOTE_FDS_MAX];

	fprintf(out, "%s\n", what);
	cr_assert(next_note(&note, fds));
	take_note(&kept, &note, fds);
	fprintf(out, "  connection %d, session %d, secret %c, open %d\n", (int)kept.connection,
		(int)kept.session, kept.secret[FW_SECRET_BYTES - 1] != 0 ? 's' : '-',
		is_open(kept.fd));
	for (size_t i = 0; i < WRK_PROCESSES_MAX; i++)
		if (kept.hosts[i].is_kept)
			fprintf(out, "  host %u of connection %d: %d/%u, epoch %d, open %d %d\n",
				kept.hosts[i].host, (int)kept.hosts[i].connection,
				(int)kept.hosts[i].run, kept.hosts[i].number,
				(int)kept.hosts[i].epoch, is_open(kept.hosts[i].exit_fd),
				is_open(kept.hosts[i].page.fd));
}

static void attach(uint64_t connection)
{
	struct fw_welcome session = {.session = connection + 100};

	memset(session.secret, 's', sizeof(session.secret));
	wrk_reporter_attached(&reporter, connection, &session, pair[0]);
	show("attached");
}

static void add_host(uint32_t host, int exit_fd)
{
	const struct fw_message create = {.run = 7, .host = host + 20, .epoch = host + 30};
	struct wrk_page page = {0};
	struct fragi_ledger ledger = {0};

	cr_assert_eq(wrk_page_init(&page), 0);
	cr_assert_eq(fragi_ledger_create(&ledger, page.fd, host, 1), 0);
	wrk_reporter_add(&reporter, host, &create, page.fd, exit_fd);
	show("a host");
	fragi_ledger_close(&ledger);
	wrk_page_fini(&page);
}

static void finish(void)
{
	for (size_t i = 0; i < WRK_PROCESSES_MAX; i++)
		if (kept.hosts[i].is_kept)
			drop_host(&kept.hosts[i]);
	close_if_open(kept.fd);
	close(FD_SOCKET);
	close(reporter.socket);
	close(pair[0]);
	close(pair[1]);
}

static void compare(const char *name, char **text)
{
	fclose(out);
	expected_compare(name, *text);
	free(*text);
}

Test(reporter_process, what_it_keeps_and_reports)
{
	static const struct fw_tls_config no_key = {.key_file = NULL};
	struct fw_tls_config with_key = {.roles = 0};
	struct key_file file;
	int ended, runs, kept_fd;
	struct fw_users users = {.program = "workerd"};
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	begin();
	ended = eventfd(1, EFD_CLOEXEC);
	runs = eventfd(0, EFD_CLOEXEC);
	kept.tls = &no_key;
	kept.users = &users;
	attach(1);
	add_host(1, ended);
	add_host(2, ended);
	kept_fd = kept.fd;
	attach(2);
	cr_expect(!is_open(kept_fd) || kept_fd == kept.fd);
	add_host(3, runs);
	add_host(4, ended);
	wrk_reporter_adopt(&reporter, 2);
	show("adopted");
	wrk_reporter_disconnected(&reporter, 1);
	show("disconnected from the one before");
	wrk_reporter_remove(&reporter, 4);
	show("reported");
	fprintf(out, "the end\n");
	report_hosts(&kept);
	key_file_init(&file, "frag-key-1 a worker " SECRET_A "\n");
	with_key.key_file = file.path;
	kept.tls = &with_key;
	fprintf(out, "with a key\n");
	report_hosts(&kept);
	key_file_fini(&file);
	fprintf(out, "with a key that is gone\n");
	report_hosts(&kept);
	kept.tls = &no_key;
	fprintf(out, "none of the session's has ended\n");
	wrk_reporter_remove(&reporter, 2);
	show("reported");
	report_hosts(&kept);
	wrk_reporter_disconnected(&reporter, 2);
	show("disconnected");
	add_host(5, ended);
	fprintf(out, "no driver\n");
	report_hosts(&kept);
	finish();
	close(ended);
	close(runs);
	compare("worker/reporter", &text);
}

/* What the driver still sends is read, and so it sees an end in order. */
Test(reporter_process, its_worker_s_connection_ends_in_order)
{
	struct wrk_note note;
	int fds[WRK_NOTE_FDS_MAX];
	char bytes[10000] = "";

	out = stderr;
	begin();
	cr_assert_eq(write(pair[1], bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
	cr_assert_eq(shutdown(pair[1], SHUT_WR), 0);
	close_connection(pair[0]);
	cr_expect_not(is_open(pair[0]));
	cr_expect_eq(recv(pair[1], bytes, sizeof(bytes), 0), 0, "no reset");
	cr_assert_eq(write(reporter.socket, "short", 5), 5);
	cr_expect_not(next_note(&note, fds));
	cr_expect_eq(fds[0], -1);
	shutdown(reporter.socket, SHUT_RDWR);
	cr_expect_not(next_note(&note, fds), "its worker is gone");
	finish();
}

Test(reporter_process, its_files_have_absolute_names)
{
	const char *none = NULL, *full = "/a/b", *name = "b";

	cr_assert_eq(chdir("/tmp"), 0);
	make_absolute(&none);
	cr_expect_null(none);
	make_absolute(&full);
	cr_expect_str_eq(full, "/a/b");
	make_absolute(&name);
	cr_expect_str_eq(name, "/tmp/b");
	free((char *)(uintptr_t)name);
}

/* It keeps as many as a worker may have. */
Test(reporter_process, more_hosts_than_it_has_room_for)
{
	const struct wrk_note note = {.kind = WRK_NOTE_HOST, .host = 9};
	int fds[WRK_NOTE_FDS_MAX] = {-1, -1};

	for (size_t i = 0; i < WRK_PROCESSES_MAX; i++)
		kept.hosts[i].is_kept = i != WRK_PROCESSES_MAX - 1;
	take_note(&kept, &note, fds);
	cr_expect_eq(kept.hosts[WRK_PROCESSES_MAX - 1].host, 9);
	fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fds[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	take_note(&kept, &note, fds);
	cr_expect_not(is_open(fds[0]) || is_open(fds[1]));
}
