// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <driverd/core/core.h>

#include "store_rig.h"

TestSuite(driver_store, .init = make_folders, .fini = remove_folders);

/* The state folder as a unit, with files on a disk that fails when a test says so. */
#define RUNS 3

/* Over a disk that can fail, with a run in it. */
static void rig_open_failing(struct rig *rig)
{
	shim_register();
	rig_open(rig);
	put(rig, run_of(1), 1);
	wait_tried(rig, 1);
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
