// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <driverd/store.h>

#include "store_rig.h"

TestSuite(driver_store, .init = make_folders, .fini = remove_folders);

static int see_source(void *arg, const struct drv_record *record)
{
	if (record->kind == DRV_RECORD_RUN)
		snprintf(arg, 16, "%.*s", (int)record->source_bytes, (const char *)record->source);
	return 0;
}

Test(driver_store, a_source_that_changed_replaces_the_one_before)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_database *database;
	char source[16] = "";
	struct rig rig;

	rig_open(&rig);
	put(&rig, run_of(1), 1);
	put(&rig,
	    (struct drv_record){
		    .kind = DRV_RECORD_SOURCE, .run = 1, .source = "changed", .source_bytes = 7},
	    2);
	rig_close(&rig);
	cr_assert_eq(drv_database_open(folder, &database, &err), 0, "%s", err.text);
	cr_assert_eq(drv_database_read(database, see_source, source, &err), 0, "%s", err.text);
	drv_database_close(database);
	cr_expect_str_eq(source, "changed");
}

Test(driver_store, what_was_put_is_there)
{
	struct seen seen;
	struct rig rig;

	rig_open(&rig);
	put(&rig, numbers(7), 1);
	put(&rig, run_of(1), 2);
	put(&rig, event_of(1, 1), 3);
	wait_tried(&rig, 3);
	cr_expect_eq(rig.failed, 0);
	put(&rig, end_of(1), 4);
	put(&rig, numbers(3), 5);
	put(&rig, run_of(2), 6);
	for (uint64_t event = 2; event <= 100; event++)
		put(&rig, event_of(event, event > 10 ? event - 9 : 1), 5 + event);
	rig_close(&rig);
	seen = look();
	cr_expect_eq(seen.epoch, 7, "it never falls");
	cr_expect_eq(seen.runs, 2);
	cr_expect_eq(seen.ends, 1);
	cr_expect_eq(seen.events, 10);
	cr_expect_eq(seen.last_event, 100);

	rig_open(&rig);
	put(&rig, (struct drv_record){.kind = DRV_RECORD_SOURCELESS, .run = 2}, 1);
	put(&rig, (struct drv_record){.kind = DRV_RECORD_FORGOTTEN, .run = 1}, 2);
	rig_close(&rig);
	seen = look();
	cr_expect_eq(seen.runs, 1);
	cr_expect_eq(seen.sources, 0);
	cr_expect_eq(seen.last_run, 2);
}

/* With what is written with it, in one go: what is released is there for those records. */
Test(driver_store, space_is_held_and_given_back)
{
	static const struct {
		size_t reserved, released;
		int64_t held; /* after it */
		bool fails;
	} steps[] = {
		{50000, 0, 50000, false},     {30000, 0, 80000, false},    {0, 60000, 20000, false},
		{30000, 10000, 40000, false}, {10000, 45000, 5000, false}, {200000, 0, 5000, true},
		{200000, 100, 4900, true},    {0, 4900, -1, false},        {0, 7000, -1, false},
		{200000, 0, -1, true},        {100000, 0, 100000, false},
	};
	const struct rlimit limit = {150000, RLIM_INFINITY};
	uint64_t change = 0;
	int failed = 0;
	struct rig rig;

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	rig_open(&rig);
	for (size_t i = 0; i < FRAG_COUNT_OF(steps); i++) {
		put(&rig, space(DRV_RECORD_RESERVED, steps[i].reserved), ++change);
		put(&rig, space(DRV_RECORD_RELEASED, steps[i].released), ++change);
		put(&rig, end_of(1), ++change);
		wait_tried(&rig, change);
		cr_expect_eq(held(), steps[i].held, "%zu: %lld", i, (long long)held());
		cr_expect_eq(rig.failed, failed += steps[i].fails, "%zu: %s", i, rig.why);
	}
	rig_close(&rig);
	cr_expect_eq(held(), 100000, "as after a kill");
	rig_open(&rig);
	cr_expect_eq(held(), -1, "the next driver needs none of it");
	rig_close(&rig);
}

/* Its file is removed, or has another in its place; when it is back it goes on. */
Test(driver_store, a_file_that_is_gone_is_missed)
{
	char path[PATH_MAX], away[PATH_MAX + 8];
	struct rig rig;

	snprintf(path, sizeof(path), "%s/" DRV_DATABASE_FILE, folder);
	snprintf(away, sizeof(away), "%s.away", path);
	rig_open(&rig);
	put(&rig, run_of(1), 1);
	wait_tried(&rig, 1);
	for (uint64_t other = 0; other < 2; other++) {
		cr_assert_eq(rename(path, away), 0);
		cr_assert(other == 0 || close(creat(path, 0600)) == 0);
		put(&rig, run_of(2 + other), 2 + other);
		wait_tried(&rig, 2 + other);
		cr_expect_eq(rig.failed, (int)other + 1);
		cr_expect_not_null(strstr(rig.why, "state.db is gone: something has removed"), "%s",
				   rig.why);
		cr_assert_eq(rename(away, path), 0);
	}
	put(&rig, run_of(4), 4);
	wait_tried(&rig, 4);
	cr_expect_eq(rig.failed, 2);
	rig_close(&rig);
	cr_expect_eq(look().runs, 2, "those between were attempts");
}

static void expect_refused(int code, const char *sentence)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_database *database;

	cr_expect_eq(drv_database_open(folder, &database, &err), code, "%s", err.text);
	cr_expect_not_null(strstr(err.text, sentence), "%s", err.text);
}

static void overwrite_file(const char *name, off_t at, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
	close(fd);
}

static void overwrite(off_t at, const char *text)
{
	overwrite_file(DRV_DATABASE_FILE, at, text);
}

static size_t size_of(const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return stat(path, &st) == 0 ? (size_t)st.st_size : SIZE_MAX;
}

/* It has lost what it had: that is no new folder. */
Test(driver_store, an_empty_file_is_refused_and_kept)
{
	char path[128];
	struct rig rig;

	rig_open(&rig);
	put(&rig, run_of(1), 1);
	rig_close(&rig);
	snprintf(path, sizeof(path), "%s/" DRV_DATABASE_FILE, folder);
	cr_assert_eq(truncate(path, 0), 0);
	expect_refused(-EUCLEAN, "is empty: something has truncated it");
	expect_refused(-EUCLEAN, "remove the file, and start the applications anew");
	cr_expect_eq(size_of(DRV_DATABASE_FILE), 0);
	cr_assert_eq(unlink(path), 0);
	overwrite_file(DRV_DATABASE_FILE "-wal", 0,
		       "what was kept in its log is no part of a new one");
	rig_open(&rig);
	rig_close(&rig);
	cr_expect_eq(look().runs, 0);
	cr_expect_eq(size_of(DRV_DATABASE_FILE "-new"), SIZE_MAX);
}

Test(driver_store, a_file_that_is_damaged_or_not_ours_is_refused_and_kept)
{
	struct rig rig;

	overwrite(0, "this is no database, and it is long enough to be seen as none at all");
	expect_refused(-EUCLEAN, "is damaged, or of another program or a newer driverd");
	remove_folders();
	cr_assert_eq(mkdir(folder, 0700) | mkdir(synced, 0700), 0);
	rig_open(&rig);
	put(&rig, run_of(1), 1);
	rig_close(&rig);
	overwrite(4096 * 2, "scribbled over");
	expect_refused(-EUCLEAN, "is damaged");
	remove_folders();
	cr_assert_eq(mkdir(folder, 0700) | mkdir(synced, 0700), 0);
	rig_open(&rig);
	rig_close(&rig);
	overwrite(60 + 3, "\2"); /* the version in the header */
	expect_refused(-EUCLEAN, "or a newer driverd");
}

Test(driver_store, a_file_that_cannot_be_read_is_not_called_damaged)
{
	struct rig rig;

	shim_register();
	rig_open(&rig);
	put(&rig, run_of(1), 1);
	rig_close(&rig);
	read_error = SQLITE_IOERR_READ;
	expect_refused(-EIO, "its disk fails, as dmesg says more closely");
	read_error = SQLITE_OK;
	cr_expect_eq(look().runs, 1);
}

Test(driver_store, one_driver_at_a_time)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_store second;
	struct rig rig;

	rig_open(&rig);
	cr_expect_eq(drv_store_open(&second, folder, &rig.loop, on_tried, NULL, &err), -EBUSY);
	cr_expect_not_null(strstr(err.text, "another driverd keeps its state in"), "%s", err.text);
	rig_close(&rig);
}

Test(driver_store, the_file_does_not_grow_without_end)
{
	struct stat st;
	char path[128];
	struct rig rig;

	rig_open(&rig);
	for (uint64_t n = 1; n <= 2000; n++) {
		put(&rig, run_of(n), 3 * n);
		put(&rig, (struct drv_record){.kind = DRV_RECORD_FORGOTTEN, .run = n - 1},
		    3 * n + 1);
		put(&rig, event_of(n, n > 50 ? n - 49 : 1), 3 * n + 2);
		if (n % 20 == 0)
			wait_tried(&rig, 3 * n + 2);
	}
	rig_close(&rig);
	snprintf(path, sizeof(path), "%s/" DRV_DATABASE_FILE, folder);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_lt(st.st_size, 128 * 1024);
	cr_expect_eq(st.st_mode & 0777, 0600);
	snprintf(path, sizeof(path), "%s/" DRV_DATABASE_FILE "-wal", folder);
	cr_expect_eq(access(path, F_OK), -1);
}

struct told {
	uint64_t epoch;
	int of_kind[DRV_RECORD_KINDS];
};

static int note_told(void *arg, const struct drv_record *record)
{
	struct told *told = arg;

	told->of_kind[record->kind]++;
	if (record->kind == DRV_RECORD_NUMBERS)
		told->epoch = record->epoch;
	return 0;
}

static struct told tell(struct drv_database *database)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct told told = {0};

	cr_assert_eq(drv_database_read(database, note_told, &told, &err), 0, "%s", err.text);
	return told;
}

Test(driver_store, what_is_said_anew_replaces_what_waits)
{
	struct drv_record record = run_of(1);
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_database *database;
	struct told told;
	struct rig rig;

	shim_register();
	rig_open(&rig);
	full_at = 90000;
	record.source_bytes = 100000;
	record.source = calloc(1, record.source_bytes);
	record.is_attempt = false;
	put(&rig, record, 1);
	free((void *)record.source);
	for (uint64_t i = 1; i <= 200; i++) {
		record = numbers(i);
		record.is_attempt = false;
		put(&rig, record, 5 * i);
		record = (struct drv_record){.kind = DRV_RECORD_WANTED, .run = 1};
		put(&rig, record, 5 * i + 1);
		record.kind = i % 2 != 0 ? DRV_RECORD_DRAINED : DRV_RECORD_UNDRAINED;
		record.name = "a";
		put(&rig, record, 5 * i + 2);
		record.name = "b";
		put(&rig, record, 5 * i + 3);
		record = (struct drv_record){.kind = DRV_RECORD_PLACED, .run = 1, .text = "a\n"};
		put(&rig, record, 5 * i + 4);
		if (i % 10 == 0)
			wait_tried(&rig, 5 * i + 4);
	}
	cr_expect_eq(rig.store.waiting.count, 6, "the run, and the last word about each: %zu",
		     rig.store.waiting.count);
	full_at = INT64_MAX;
	rig_close(&rig);
	cr_assert_eq(drv_database_open(folder, &database, &err), 0, "%s", err.text);
	told = tell(database);
	cr_expect_eq(told.epoch, 200);
	cr_expect_eq(told.of_kind[DRV_RECORD_PLACED], 1);
	cr_expect_eq(told.of_kind[DRV_RECORD_DRAINED], 0, "that was the last word");
	drv_database_close(database);
}

/* Unless that is noted once more: hosts of it may run on. */
Test(driver_store, where_a_run_is_placed_is_forgotten_with_its_end)
{
	const struct drv_record records[] = {
		run_of(1),
		run_of(2),
		run_of(3),
		{.kind = DRV_RECORD_PLACED, .run = 1, .text = "a\n"},
		{.kind = DRV_RECORD_PLACED, .run = 2, .text = "a\n"},
		{.kind = DRV_RECORD_PLACED, .run = 3, .text = "a\n"},
		end_of(1),
		{.kind = DRV_RECORD_FORGOTTEN, .run = 2},
	};
	const struct drv_record again = records[3];
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_database *database;

	cr_assert_eq(drv_database_open(folder, &database, &err), 0, "%s", err.text);
	cr_assert_eq(drv_database_begin(database, &err), 0);
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		cr_assert_eq(drv_database_put(database, &records[i], &err), 0, "%s", err.text);
	cr_assert_eq(drv_database_end(database, &err), 0);
	cr_expect_eq(tell(database).of_kind[DRV_RECORD_PLACED], 1, "while it is open");
	cr_assert_eq(drv_database_begin(database, &err), 0);
	cr_assert_eq(drv_database_put(database, &again, &err), 0, "%s", err.text);
	cr_assert_eq(drv_database_end(database, &err), 0);
	drv_database_close(database);
	cr_assert_eq(drv_database_open(folder, &database, &err), 0, "%s", err.text);
	cr_expect_eq(tell(database).of_kind[DRV_RECORD_PLACED], 2, "the next driver reads it");
	drv_database_close(database);
}
