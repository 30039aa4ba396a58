// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <driverd/core/core.h>
#include <driverd/store.h>

#include "failing_disk.h"

/* The state folder as a unit, with files on a disk that fails when a test says so. */
#define RUNS 3

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void make_folders(void)
{
	snprintf(folder, sizeof(folder), "/tmp/frag-store-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(synced, sizeof(synced), "/tmp/frag-synced-XXXXXX");
	cr_assert_not_null(mkdtemp(synced));
}

static void remove_folders(void)
{
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	nftw(synced, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(driver_store, .init = make_folders, .fini = remove_folders);

/* What is in the folder. */
struct seen {
	uint64_t epoch, runs, sources, ends, events, last_run, last_event;
};

static int see(void *arg, const struct drv_record *record)
{
	struct seen *seen = arg;

	switch (record->kind) {
	case DRV_RECORD_NUMBERS:
		seen->epoch = record->epoch;
		break;
	case DRV_RECORD_RUN:
		seen->runs++;
		seen->last_run = record->run;
		seen->ends += record->outcome_bytes != 0;
		seen->sources += record->source_bytes != 0;
		cr_expect_str_eq(record->name, "app");
		cr_expect_str_eq(record->who, "user alice");
		if (record->source_bytes != 0)
			cr_expect_eq(memcmp(record->source, "source", record->source_bytes), 0);
		break;
	case DRV_RECORD_NOTICE:
		seen->events++;
		seen->last_event = record->notice;
		cr_expect_str_eq(record->text, "text");
		break;
	default:
		cr_assert_fail();
	}
	return 0;
}

static struct seen look(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_database *database;
	struct seen seen = {0};

	cr_assert_eq(drv_database_open(folder, &database, &err), 0, "%s", err.text);
	cr_assert_eq(drv_database_read(database, see, &seen, &err), 0, "%s", err.text);
	drv_database_close(database);
	return seen;
}

static struct drv_record numbers(uint64_t epoch)
{
	return (struct drv_record){.kind = DRV_RECORD_NUMBERS, .is_attempt = true, .epoch = epoch};
}

static struct drv_record run_of(uint64_t run)
{
	return (struct drv_record){.kind = DRV_RECORD_RUN,
				   .is_attempt = true,
				   .run = run,
				   .name = "app",
				   .who = "user alice",
				   .is_wanted = true,
				   .source = "source",
				   .source_bytes = 6};
}

static struct drv_record end_of(uint64_t run)
{
	return (struct drv_record){.kind = DRV_RECORD_END,
				   .run = run,
				   .ended_unix_ns = 5,
				   .outcome = "outcome",
				   .outcome_bytes = 7};
}

static struct drv_record event_of(uint64_t event, uint64_t first)
{
	return (struct drv_record){.kind = DRV_RECORD_NOTICE,
				   .notice = event,
				   .first_notice = first,
				   .name = "app",
				   .who = "",
				   .text = "text"};
}

/* A store on a loop, and what it has reported. */
struct rig {
	uv_loop_t loop;
	struct drv_store store;
	uint64_t tried, last; /* last: the change with which its driver ends; 0: none */
	int failed;
	char why[512];
};

static void on_tried(void *arg, uint64_t change, const char *why_not)
{
	struct rig *rig = arg;

	cr_expect_geq(change, rig->tried);
	rig->tried = change;
	rig->failed += why_not != NULL;
	snprintf(rig->why, sizeof(rig->why), "%s", why_not != NULL ? why_not : "");
	if (change == rig->last)
		drv_store_finish(&rig->store);
}

static void rig_open(struct rig *rig)
{
	struct frag_err err = FRAG_ERR_INIT;

	memset(rig, 0, sizeof(*rig));
	cr_assert_eq(uv_loop_init(&rig->loop), 0);
	cr_assert_eq(drv_store_open(&rig->store, folder, &rig->loop, on_tried, rig, &err), 0, "%s",
		     err.text);
}

static void put(struct rig *rig, const struct drv_record record, uint64_t change)
{
	cr_assert_eq(drv_store_put(&rig->store, &record, change), 0);
}

static void wait_tried(struct rig *rig, uint64_t change)
{
	while (rig->tried < change)
		uv_run(&rig->loop, UV_RUN_ONCE);
}

/* Over a disk that can fail, with a run in it. */
static void rig_open_failing(struct rig *rig)
{
	shim_register();
	rig_open(rig);
	put(rig, run_of(1), 1);
	wait_tried(rig, 1);
}

static void rig_close(struct rig *rig)
{
	drv_store_finish(&rig->store);
	uv_run(&rig->loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(&rig->loop), 0);
	drv_store_close(&rig->store);
}

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

/* In a child: run after run, each acknowledged through the pipe. */
static void work_until_death(int pipe_fd)
{
	struct rig rig;

	rig_open(&rig);
	for (uint64_t run = 1; run <= RUNS; run++) {
		put(&rig, numbers(run), 3 * run - 2);
		put(&rig, run_of(run), 3 * run - 1);
		put(&rig, event_of(run, 1), 3 * run);
		wait_tried(&rig, 3 * run);
		if (write(pipe_fd, "", 1) != 1)
			_exit(1);
	}
	rig_close(&rig);
	_exit(0);
}

/* Returns whether it died at that step; out_acknowledged: how many runs were reported as kept. */
static bool die(int step, uint64_t *out_acknowledged)
{
	int fds[2], status;
	char byte;
	pid_t child;

	cr_assert_eq(pipe(fds), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		step_count = 0;
		die_at = step;
		close(fds[0]);
		work_until_death(fds[1]);
	}
	close(fds[1]);
	*out_acknowledged = 0;
	while (read(fds[0], &byte, 1) == 1)
		++*out_acknowledged;
	close(fds[0]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 42),
		  "status %d", status);
	return WEXITSTATUS(status) == 42;
}

/* What was acknowledged is there, and of the next one either all or nothing. */
static void expect_whole(int step, uint64_t acknowledged)
{
	struct seen seen = look();

	cr_expect(seen.runs == acknowledged || seen.runs == acknowledged + 1,
		  "step %d: %d runs were acknowledged, %d are there", step, (int)acknowledged,
		  (int)seen.runs);
	cr_expect_eq(seen.epoch, seen.runs, "step %d", step);
	cr_expect_eq(seen.events, seen.runs, "step %d", step);
}

Test(driver_store, a_kill_at_any_step_leaves_whole_commits)
{
	uint64_t acknowledged;
	int step = 1;

	shim_register();
	for (; die(step, &acknowledged); step++) {
		expect_whole(step, acknowledged);
		remove_folders();
		cr_assert_eq(mkdir(folder, 0700) | mkdir(synced, 0700), 0);
	}
	cr_expect_gt(step, 3 * RUNS);
	cr_expect_eq(acknowledged, RUNS);
}

/* Every file has only what was synced; one that never was is empty. */
static void lose_unsynced(void)
{
	static const char *const names[] = {DRV_DATABASE_FILE, DRV_DATABASE_FILE "-wal",
					    DRV_DATABASE_FILE "-journal"};
	char path[128], kept[128];

	/* It was synced under the name that it had before. */
	snprintf(path, sizeof(path), "%s/" DRV_DATABASE_FILE "-new", synced);
	snprintf(kept, sizeof(kept), "%s/" DRV_DATABASE_FILE, synced);
	if (access(kept, F_OK) < 0)
		(void)rename(path, kept);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		snprintf(kept, sizeof(kept), "%s/%s", synced, names[i]);
		if (access(path, F_OK) < 0)
			continue;
		if (access(kept, F_OK) == 0)
			copy(synced, folder, names[i]);
		else
			cr_assert_eq(truncate(path, 0), 0);
	}
}

Test(driver_store, power_that_goes_at_any_step_loses_nothing_that_was_acknowledged)
{
	uint64_t acknowledged;

	shim_register();
	for (int step = 1; die(step, &acknowledged); step++) {
		lose_unsynced();
		expect_whole(step, acknowledged);
		remove_folders();
		cr_assert_eq(mkdir(folder, 0700) | mkdir(synced, 0700), 0);
	}
}

Test(driver_store, a_full_disk_voids_attempts_and_tries_the_others_again)
{
	struct drv_record large = run_of(3);
	struct seen seen;
	struct rig rig;

	rig_open_failing(&rig);
	full_at = 90000;
	large.source_bytes = 100000;
	large.source = calloc(1, large.source_bytes);
	put(&rig, large, 2);
	put(&rig, end_of(1), 3);
	wait_tried(&rig, 3);
	free((void *)large.source);
	cr_expect_eq(rig.failed, 1);
	cr_expect_not_null(strstr(rig.why, "No space left on device; make room there"), "%s",
			   rig.why);
	put(&rig, run_of(2), 4); /* there is room for this one, and for the end of run 1 */
	wait_tried(&rig, 4);
	cr_expect_eq(rig.failed, 1);
	rig_close(&rig);
	seen = look();
	cr_expect_eq(seen.runs, 2);
	cr_expect_eq(seen.ends, 1);
	cr_expect_eq(seen.last_run, 2);
}

/* An error of the disk is no damage, and what it did to SQLite's memory goes with it. */
Test(driver_store, a_disk_that_fails_is_not_called_damage_and_is_tried_again)
{
	struct rig rig;

	rig_open_failing(&rig);
	write_error = SQLITE_IOERR_WRITE;
	for (uint64_t run = 2; run <= 4; run++) {
		put(&rig, run_of(run), run);
		wait_tried(&rig, run);
		cr_expect_eq(rig.failed, (int)run - 1);
		cr_expect_not_null(strstr(rig.why, "Input/output error; its disk fails"), "%s",
				   rig.why);
	}
	write_error = SQLITE_OK;
	put(&rig, run_of(5), 5);
	wait_tried(&rig, 5);
	cr_expect_eq(rig.failed, 3, "%s", rig.why);
	rig_close(&rig);
	cr_expect_eq(look().runs, 2);
}

/* What was written before the disk failed to say so is there, and was refused. */
Test(driver_store, a_refused_start_that_is_on_the_disk_all_the_same_is_taken_back)
{
	struct rig rig;

	rig_open_failing(&rig);
	sync_error = SQLITE_IOERR_FSYNC;
	put(&rig, run_of(2), 2);
	wait_tried(&rig, 2);
	cr_expect_eq(rig.failed, 1);
	sync_error = SQLITE_OK;
	put(&rig, event_of(1, 0), 3);
	wait_tried(&rig, 3);
	cr_expect_eq(rig.failed, 1, "%s", rig.why);
	rig_close(&rig);
	cr_expect_eq(look().last_run, 1);
	cr_expect_eq(look().events, 1);
}

static struct drv_record space(enum drv_record_kind kind, size_t bytes)
{
	return (struct drv_record){.kind = kind, .is_attempt = true, .bytes = bytes};
}

/* The size of the file that holds space; -1: there is none. */
static int64_t held(void)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/reserve", folder);
	return stat(path, &st) == 0 ? st.st_size : -1;
}

/* Everybody gets an answer meanwhile; what is written late is what was not refused. */
Test(driver_store, a_silent_disk_voids_attempts_and_the_others_are_written_when_it_is_back)
{
	struct rig rig;

	rig_open_failing(&rig);
	rig.store.silent_ms = 10;
	pthread_mutex_lock(&freezer);
	put(&rig, run_of(2), 2);
	put(&rig, end_of(1), 3);
	put(&rig, space(DRV_RECORD_RESERVED, 50000), 4);
	wait_tried(&rig, 4);
	cr_expect_eq(rig.failed, 1);
	cr_expect_not_null(strstr(rig.why, "has not answered for"), "%s", rig.why);
	put(&rig, run_of(3), 5);
	put(&rig, event_of(1, 0), 6);
	uv_run(&rig.loop, UV_RUN_NOWAIT);
	cr_expect_eq(rig.tried, 6);
	cr_expect_eq(rig.failed, 2, "also what comes when it is known");
	rig.store.silent_ms = DRV_STORE_SILENT_MS;
	pthread_mutex_unlock(&freezer);
	while (rig.why[0] != '\0')
		uv_run(&rig.loop, UV_RUN_ONCE);
	put(&rig, run_of(4), 7);
	wait_tried(&rig, 7);
	cr_expect_eq(rig.failed, 2, "%s", rig.why);
	cr_expect_eq(held(), -1, "nobody has the space that was refused");
	rig_close(&rig);
	cr_expect_eq(look().runs, 2);
	cr_expect_eq(look().ends, 1);
	cr_expect_eq(look().events, 1);
	cr_expect_eq(look().last_run, 4);
}

/* The loop ends all the same, and the thread still has what it needs. */
Test(driver_store, a_driver_that_ends_waits_for_a_silent_disk_no_longer_than_others)
{
	struct rig rig;

	rig_open_failing(&rig);
	rig.store.silent_ms = 10;
	pthread_mutex_lock(&freezer);
	put(&rig, end_of(1), 2);
	wait_tried(&rig, 2);
	put(&rig, event_of(1, 0), 3);
	drv_store_finish(&rig.store);
	uv_run(&rig.loop, UV_RUN_DEFAULT);
	cr_expect(rig.store.is_writing);
	rig.store.silent_ms = DRV_STORE_SILENT_MS;
	pthread_mutex_unlock(&freezer);
	uv_run(&rig.loop, UV_RUN_DEFAULT);
	drv_store_exit_if_stuck(&rig.store, 0);
	cr_expect_eq(uv_loop_close(&rig.loop), 0);
	drv_store_close(&rig.store);
	cr_expect_eq(look().ends, 1);
	cr_expect_eq(look().events, 1);
}

/* It has waited for a change that clients wait for. */
Test(driver_store, a_driver_may_end_when_it_hears_that_a_change_is_written)
{
	struct rig rig;

	rig_open(&rig);
	rig.last = 1;
	put(&rig, run_of(1), 1);
	wait_tried(&rig, 1);
	rig_close(&rig);
	cr_expect_eq(look().runs, 1);
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

Test(driver_store, what_is_tried_again_is_bounded)
{
	struct drv_record large = run_of(1);
	struct rig rig;

	shim_register();
	rig_open(&rig);
	full_at = 90000;
	large.source_bytes = 100000;
	large.source = calloc(1, large.source_bytes);
	large.is_attempt = false;
	put(&rig, large, 1);
	free((void *)large.source);
	for (uint64_t event = 1; event <= 3 * DRV_NOTICES_MAX; event++) {
		put(&rig, event_of(event, 1), event + 1);
		if (event % 100 == 0)
			wait_tried(&rig, event + 1);
	}
	wait_tried(&rig, 3 * DRV_NOTICES_MAX + 1);
	cr_expect_leq(rig.store.waiting.notices, DRV_NOTICES_MAX);
	cr_expect_geq(rig.store.waiting.notices, DRV_NOTICES_MAX - 1);
	rig_close(&rig);
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
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_database *database;

	cr_assert_eq(drv_database_open(folder, &database, &err), 0, "%s", err.text);
	cr_assert_eq(drv_database_begin(database, &err), 0);
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		cr_assert_eq(drv_database_put(database, &records[i], &err), 0, "%s", err.text);
	cr_assert_eq(drv_database_end(database, &err), 0);
	cr_expect_eq(tell(database).of_kind[DRV_RECORD_PLACED], 1, "while it is open");
	drv_database_close(database);
}
