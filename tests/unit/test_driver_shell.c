// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "../scratch.h"
#include "store_records.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <base/log.h>
#include <driverd/facts.h>
#include <driverd/progress.h>
#include <driverd/result.h>
#include <driverd/source.h>
#include <driverd/store.h>
#include <wire/peer_user.h>

/*
 * What the parts of driverd's shell do, as text: over a database, a disk, a clock, certificates and
 * peers that this file makes up.
 */
static FILE *out;
static char *text;
static size_t text_size;

static void begin(void)
{
	scratch_make();
	out = open_memstream(&text, &text_size);
	cr_assert_not_null(out);
}
TestSuite(driver_shell, .init = begin, .fini = scratch_remove);

static void end(const char *name)
{
	fclose(out);
	expected_compare(name, text);
	free(text);
}

/* The database: shows what is written, fails as it is told, and can keep silent. */
static struct {
	int fails_at; /* 0: begin; n: the n-th record; -1: end; other: never */
	int code, put_count;
	bool is_silent;
	sem_t asks, answers;
} database;
#define NEVER 1000000

int drv_database_fail(const char *folder, int code, struct frag_err *err)
{
	(void)folder;
	return frag_err_set(err, code, "the disk: %s", strerrorname_np(-code));
}

int drv_database_open(const char *folder, struct drv_database **out_database, struct frag_err *err)
{
	(void)folder, (void)err;
	*out_database = (struct drv_database *)&database;
	return 0;
}

static int fail_at(int at, struct frag_err *err)
{
	if (at != database.fails_at)
		return 0;
	fprintf(out, "    fails\n");
	return drv_database_fail("", database.code, err);
}

int drv_database_begin(struct drv_database *own, struct frag_err *err)
{
	cr_expect_eq(own, (struct drv_database *)&database);
	if (database.is_silent) {
		sem_post(&database.asks);
		sem_wait(&database.answers);
	}
	database.put_count = 0;
	return fail_at(0, err);
}

static int most = INT32_MAX; /* records of a commit that are shown */

int drv_database_put(struct drv_database *own, const struct drv_record *record,
		     struct frag_err *err)
{
	(void)own;
	if (++database.put_count <= most) {
		fprintf(out, "    writes");
		show_record(out, record);
		fprintf(out, "\n");
	}
	return fail_at(database.put_count, err);
}

int drv_database_end(struct drv_database *own, struct frag_err *err)
{
	(void)own;
	fprintf(out, "    ends after %d\n", database.put_count);
	return fail_at(-1, err);
}

void drv_database_close(struct drv_database *own)
{
	(void)own;
}

static struct drv_store store;
static uv_loop_t loop;
static uint64_t tried;

static void on_done(void *arg, uint64_t up_to, const char *why_not)
{
	(void)arg;
	uv_stop(&loop);
	tried = up_to;
	fprintf(out, "  done up to %d%s%s\n", (int)up_to, why_not != NULL ? ": " : "",
		why_not == NULL                               ? ""
		: strstr(why_not, "has not answered") != NULL ? "it keeps silent"
							      : why_not);
}

static int64_t held(void)
{
	struct stat st;

	return stat(at("reserve"), &st) == 0 ? st.st_size : -1;
}

static uint64_t change;

static void put_some(uint32_t count)
{
	for (; count > 0; count--) {
		const struct drv_record r = some_record();

		fprintf(out, "%d:", (int)++change);
		show_record(out, &r);
		fprintf(out, "\n");
		cr_assert_eq(drv_store_put(&store, &r, change), 0);
	}
}

static void wait_done(void)
{
	while (tried < change)
		uv_run(&loop, UV_RUN_ONCE);
}

/* Nobody waits for the disk, then it answers after all. */
static void be_silent(void)
{
	database.is_silent = true;
	store.silent_ms = 1;
	wait_done();
	put_some(draw(3));
	wait_done();
	sem_wait(&database.asks);
	store.silent_ms = 60000;
	database.is_silent = false;
	fprintf(out, "  the disk answers\n");
	sem_post(&database.answers);
	while (store.is_writing || store.waiting.first != NULL)
		uv_run(&loop, UV_RUN_ONCE);
}

static void open_store(void)
{
	struct frag_err err = FRAG_ERR_INIT;

	tried = change = 0;
	database.fails_at = NEVER;
	database.is_silent = false;
	sem_init(&database.asks, 0, 0);
	sem_init(&database.answers, 0, 0);
	cr_assert_eq(uv_loop_init(&loop), 0);
	cr_assert_eq(drv_store_open(&store, scratch, &loop, on_done, NULL, &err), 0, "%s",
		     err.text);
	store.silent_ms = 60000;
}

/* What is printed meanwhile. */
static int saved_fd, printed_fd, into;

static void catch_output(int fd)
{
	fflush(NULL);
	into = fd;
	saved_fd = dup(fd);
	printed_fd = memfd_create("printed", 0);
	cr_assert_geq(printed_fd, 0);
	dup2(printed_fd, fd);
}

/* "2026-11-22T20:24:04.159Z " of a line of the log is left out. */
#define TIME_BYTES 25
static void show_output(void)
{
	char bytes[8192], *at = bytes;
	ssize_t n;

	fflush(NULL);
	dup2(saved_fd, into);
	n = pread(printed_fd, bytes, sizeof(bytes) - 1, 0);
	bytes[n > 0 ? n : 0] = '\0';
	close(printed_fd);
	close(saved_fd);
	for (; *at != '\0'; at++) {
		if ((at == bytes || at[-1] == '\n') && strlen(at) > TIME_BYTES &&
		    strncmp(at + TIME_BYTES - 2, "Z ", 2) == 0)
			at += TIME_BYTES;
		if (*at == '\033' || *at == '\r')
			fprintf(out, "%s", *at == '\r' ? "<return>" : "<escape>");
		else
			fputc(*at, out);
	}
}

static void close_store(void)
{
	fprintf(out, "finish\n");
	catch_output(STDERR_FILENO);
	drv_store_finish(&store);
	while (uv_run(&loop, UV_RUN_DEFAULT) != 0)
		;
	show_output();
	cr_expect_eq(uv_loop_close(&loop), 0);
	drv_store_close(&store);
	drv_store_close(&store);
	sem_destroy(&database.asks);
	sem_destroy(&database.answers);
}

Test(driver_shell, lives_of_a_store)
{
	static const int failures[] = {0, 1, 2, 3, -1, -1}, codes[] = {-EIO, -ENOSPC};

	for (uint64_t seed = 1; seed <= 60; seed++) {
		fprintf(out, "life %d\n", (int)seed);
		draw_from(seed);
		open_store();
		for (int i = 0; i < 8; i++) {
			put_some(1 + draw(4));
			database.fails_at = draw_percent(45) ? DRAW_OF(failures) : NEVER;
			database.code = DRAW_OF(codes);
			if (draw_percent(12)) {
				database.fails_at = NEVER;
				be_silent();
			} else {
				wait_done();
			}
			if (held() >= 0)
				fprintf(out, "  held %d\n", (int)held());
			database.fails_at = NEVER;
		}
		put_some(draw(2));
		database.fails_at = draw_percent(20) ? -1 : NEVER;
		database.code = -ENOSPC;
		close_store();
	}
	end("driver/store");
}

/* What waits and what is put back are not more together than a driver keeps. */
Test(driver_shell, notices_that_wait_are_bounded)
{
	static const int counts[][2] = {{DRV_NOTICES_MAX, 0},     {DRV_NOTICES_MAX, 1},
					{DRV_NOTICES_MAX - 1, 1}, {DRV_NOTICES_MAX - 1, 2},
					{3, DRV_NOTICES_MAX - 2}, {DRV_NOTICES_MAX + 5, 0}};
	struct drv_record r = {.kind = DRV_RECORD_NOTICE, .first_notice = 1};

	most = 3;
	for (size_t i = 0; i < FRAG_COUNT_OF(counts); i++) {
		fprintf(out, "%d fail, %d come\n", counts[i][0], counts[i][1]);
		open_store();
		database.fails_at = 0;
		database.code = -ENOSPC;
		for (r.notice = 1; (int)r.notice <= counts[i][0]; r.notice++)
			cr_assert_eq(drv_store_put(&store, &r, ++change), 0);
		database.is_silent = true;
		while (!store.is_writing)
			uv_run(&loop, UV_RUN_NOWAIT);
		sem_wait(&database.asks);
		database.is_silent = false;
		for (; (int)r.notice <= counts[i][0] + counts[i][1]; r.notice++)
			cr_assert_eq(drv_store_put(&store, &r, ++change), 0);
		sem_post(&database.answers);
		while (store.is_writing)
			uv_run(&loop, UV_RUN_ONCE);
		database.fails_at = NEVER;
		close_store();
	}
	end("driver/notices");
}

/* The core, and what the machine says. */
static struct drv_machine machine;
static time_t clock_s;
static int64_t clock_offset_ns;
static int folder_error;
static int64_t left_s;

void drv_core_set_machine(struct drv_core *core, const struct drv_machine *own)
{
	(void)core;
	machine = *own;
}

void drv_core_set_clock(struct drv_core *core, int64_t realtime_offset_ns)
{
	(void)core;
	clock_offset_ns = realtime_offset_ns;
}

time_t time(time_t *out_s)
{
	if (out_s != NULL)
		*out_s = clock_s;
	return clock_s;
}

int fstatvfs(int fd, struct statvfs *disk)
{
	if (fd != 17 || folder_error != 0)
		return -1;
	*disk = (struct statvfs){.f_bsize = 8192,
				 .f_frsize = 1000,
				 .f_blocks = 70 + (fsblkcnt_t)clock_s,
				 .f_bfree = 50,
				 .f_bavail = 30};
	return 0;
}

int64_t fw_tls_left_s(const struct fw_tls *tls)
{
	(void)tls;
	return left_s;
}

Test(driver_shell, facts_of_a_driver)
{
	static const struct {
		int64_t now_s, clock_s, left_s;
		int folder, error;
		bool has_tls;
	} steps[] = {
		{1, 1000, INT64_MAX, -1, 0, false}, {5, 1001, 60, 17, 0, true},
		{10, 1002, 60, 17, 0, true},        {11, 1003, 60, 17, 0, true},
		{20, 1004, 50, 17, 1, true},        {21, 1005, INT64_MAX, 17, 1, true},
		{31, 1006, -5, 17, 0, true},        {41, 1007, 40, 17, 0, false},
	};
	struct drv_facts facts = {0};

	for (size_t i = 0; i < FRAG_COUNT_OF(steps); i++) {
		clock_s = steps[i].clock_s;
		left_s = steps[i].left_s;
		folder_error = steps[i].error;
		clock_offset_ns = 0;
		drv_facts_tell(&facts, NULL, steps[i].folder,
			       steps[i].has_tls ? (const struct fw_tls *)&facts : NULL,
			       steps[i].now_s * 1000000000);
		cr_expect_gt(clock_offset_ns, INT64_C(1000000000000000000), "since 1970");
		fprintf(out,
			"at %d: since %" PRId64 ", disk %" PRIu64 ", free %" PRIu64
			", certificate until %" PRId64 "\n",
			(int)steps[i].now_s, machine.started_unix_s, machine.state_bytes,
			machine.state_free_bytes, machine.certificate_ends_unix_s);
	}
	end("driver/facts");
}

static void show_progress(struct drv_progress *progress, const char *what)
{
	catch_output(STDERR_FILENO);
	if (what != NULL)
		drv_progress_show(progress, what);
	else
		drv_progress_clear(progress);
	show_output();
	fprintf(out, "|shown %d, last %.20s\n", progress->is_shown, progress->last);
}

/* How many columns of a terminal a text takes that is longer than its lines. */
static int columns_taken(unsigned short columns, struct drv_progress *progress, const char *wide)
{
	const struct winsize size = {.ws_col = columns, .ws_row = 5};
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), other,
	    stderr_fd = dup(STDERR_FILENO);
	char line[512];
	ssize_t n;

	cr_assert(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
	other = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	cr_assert_eq(ioctl(other, TIOCSWINSZ, &size), 0);
	dup2(other, STDERR_FILENO);
	drv_progress_show(progress, wide);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	n = read(terminal, line, sizeof(line) - 1);
	line[n > 0 ? n : 0] = '\0';
	close(other);
	close(terminal);
	return (int)strspn(line, "x");
}

Test(driver_shell, progress)
{
	const int64_t period_ns = INT64_C(10000000000);
	struct drv_progress progress;
	char large[300], *json;
	size_t json_bytes;
	FILE *shown;

	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	for (int kind = 0; kind < 3; kind++) {
		drv_progress_init(&progress, kind == 2);
		progress.is_terminal = kind == 1;
		fprintf(out, "%s\n", kind == 0 ? "a log" : kind == 1 ? "a terminal" : "off");
		show_progress(&progress, "one");
		show_progress(&progress, "one");
		show_progress(&progress, "two");
		progress.last_ns -= period_ns;
		show_progress(&progress, "one");
		show_progress(&progress, "three");
		progress.last_ns -= period_ns - 1000000000;
		show_progress(&progress, "four");
		show_progress(&progress, NULL);
		show_progress(&progress, NULL);
		progress.last_ns -= period_ns;
		show_progress(&progress, large);
		show_progress(&progress, NULL);
		if (kind == 1) {
			cr_expect_eq(columns_taken(41, &progress, large), 40);
			cr_expect_eq(columns_taken(1, &progress, large), 0);
			cr_expect_eq(columns_taken(0, &progress, large), 79, "it is not known");
		}
	}
	setenv("FRAG_LOG_FORMAT", "json", 1);
	fragi_log_init(0);
	drv_progress_init(&progress, false);
	shown = out;
	out = open_memstream(&json, &json_bytes);
	show_progress(&progress, "one");
	fclose(out);
	out = shown;
	cr_expect_not_null(strstr(json, "\"text\": \"one\"}"), "%s", json);
	free(json);
	end("driver/progress");
}

static void show_result(const char *what, const struct drv_output *output,
			const struct fragi_summary *summary)
{
	int exit_code, stdout_fd = dup(STDOUT_FILENO);

	fflush(NULL);
	fprintf(out, "%s\n", what);
	catch_output(STDERR_FILENO);
	dup2(printed_fd, STDOUT_FILENO);
	exit_code = drv_result_show(output, summary);
	fflush(NULL);
	dup2(stdout_fd, STDOUT_FILENO);
	close(stdout_fd);
	show_output();
	fprintf(out, "|exit code %d\n", exit_code);
}

Test(driver_shell, results)
{
	struct fragi_summary summary = {
		.application = "app", .result = FRAGI_SUMMARY_FAILED, .exit_code = 1};
	struct drv_output output = {.json = false};
	char *file = NULL;
	FILE *in;

	static const enum fragi_failure codes[] = {
		FRAGI_FAILURE_OPERATOR_FAILED,  FRAGI_FAILURE_SYSTEM_REFUSED,
		FRAGI_FAILURE_EDGE_UNREACHABLE, FRAGI_FAILURE_GPU_MISSING,
		FRAGI_FAILURE_STATE_UNWRITABLE, FRAGI_FAILURE_PORT_IN_USE};

	for (size_t i = 0; i < FRAG_COUNT_OF(codes); i++) {
		summary.failure.code = codes[i];
		summary.failure.sentence = "it broke";
		show_result("a table", &output, &summary);
	}
	output.json = true;
	show_result("JSON", &output, &summary);
	output.no_table = true;
	show_result("JSON without a table", &output, &summary);
	output.json = false;
	show_result("nothing", &output, &summary);
	output.file = at("summary.json");
	show_result("a file", &output, &summary);
	in = fopen(output.file, "r");
	cr_assert_not_null(in);
	cr_assert_gt(getdelim(&file, &(size_t){0}, '\0', in), 0);
	fprintf(out, "%s", file);
	fclose(in);
	free(file);
	output.file = "/none/summary.json";
	show_result("a file that cannot be written", &output, &summary);
	summary.exit_code = 0;
	summary.result = FRAGI_SUMMARY_DONE;
	summary.failure.code = FRAGI_FAILURE_NONE;
	show_result("the same, after a success", &output, &summary);
	end("driver/results");
}

/* Peers: users by the number of their descriptor, or addresses. */
static struct sockaddr_storage peer;

int fw_peer_user(int fd, uid_t *out_user)
{
	if (fd < 100)
		return -ENOENT;
	*out_user = (uid_t)fd;
	return 0;
}

int getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
	if (fd == 99)
		return -1;
	cr_assert_geq(*size, sizeof(peer));
	memcpy(address, &peer, sizeof(peer));
	return 0;
}

Test(driver_shell, sources_of_connections)
{
	static const struct {
		int fd;
		const char *address;
	} rows[] = {{100, NULL},
		    {101, NULL},
		    {99, "192.0.2.1"},
		    {1, "192.0.2.1"},
		    {1, "192.0.2.2"},
		    {1, "::ffff:192.0.2.2"},
		    {1, "2001:db8:1:2:3:4:5:6"},
		    {1, "2001:db8:1:2:f:f:f:f"},
		    {1, "2001:db8:1:3:3:4:5:6"},
		    {2, "192.0.2.1"},
		    {1, NULL}};
	struct drv_source sources[FRAG_COUNT_OF(rows)];

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&peer;
		struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&peer;

		memset(&peer, 0, sizeof(peer));
		if (rows[i].address != NULL &&
		    inet_pton(AF_INET, rows[i].address, &v4->sin_addr) == 1)
			peer.ss_family = AF_INET;
		else if (rows[i].address != NULL &&
			 inet_pton(AF_INET6, rows[i].address, &v6->sin6_addr) == 1)
			peer.ss_family = AF_INET6;
		drv_source_read(rows[i].fd, &sources[i]);
		fprintf(out, "%d, %s: user %d %u, network ", rows[i].fd,
			rows[i].address != NULL ? rows[i].address : "none", sources[i].is_user,
			sources[i].user);
		for (size_t k = 0; k < sizeof(sources[i].network); k++)
			fprintf(out, "%02x", sources[i].network[k]);
		fprintf(out, ", as ");
		for (size_t k = 0; k <= i; k++)
			if (drv_source_is_same(&sources[i], &sources[k]))
				fprintf(out, " %zu", k);
		fprintf(out, "\n");
	}
	end("driver/sources");
}
