/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_STORE_RIG_H
#define TESTS_UNIT_STORE_RIG_H

#include <criterion/criterion.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <driverd/store.h>

#include "failing_disk.h"

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void make_folders(void)
{
	snprintf(folder, sizeof(folder), "/tmp/frag-store-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(synced, sizeof(synced), "/tmp/frag-synced-XXXXXX");
	cr_assert_not_null(mkdtemp(synced));
}

static inline void remove_folders(void)
{
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	nftw(synced, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* What is in the folder. */
struct seen {
	uint64_t epoch, runs, sources, ends, events, last_run, last_event;
};

static inline int see(void *arg, const struct drv_record *record)
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

static inline struct seen look(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_database *database;
	struct seen seen = {0};

	cr_assert_eq(drv_database_open(folder, &database, &err), 0, "%s", err.text);
	cr_assert_eq(drv_database_read(database, see, &seen, &err), 0, "%s", err.text);
	drv_database_close(database);
	return seen;
}

static inline struct drv_record numbers(uint64_t epoch)
{
	return (struct drv_record){.kind = DRV_RECORD_NUMBERS, .is_attempt = true, .epoch = epoch};
}

static inline struct drv_record run_of(uint64_t run)
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

static inline struct drv_record end_of(uint64_t run)
{
	return (struct drv_record){.kind = DRV_RECORD_END,
				   .run = run,
				   .ended_unix_ns = 5,
				   .outcome = "outcome",
				   .outcome_bytes = 7};
}

static inline struct drv_record event_of(uint64_t event, uint64_t first)
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

static inline void on_tried(void *arg, uint64_t change, const char *why_not)
{
	struct rig *rig = arg;

	cr_expect_geq(change, rig->tried);
	rig->tried = change;
	rig->failed += why_not != NULL;
	snprintf(rig->why, sizeof(rig->why), "%s", why_not != NULL ? why_not : "");
	if (change == rig->last)
		drv_store_finish(&rig->store);
}

static inline void rig_open(struct rig *rig)
{
	struct frag_err err = FRAG_ERR_INIT;

	memset(rig, 0, sizeof(*rig));
	cr_assert_eq(uv_loop_init(&rig->loop), 0);
	cr_assert_eq(drv_store_open(&rig->store, folder, &rig->loop, on_tried, rig, &err), 0, "%s",
		     err.text);
}

static inline void put(struct rig *rig, const struct drv_record record, uint64_t change)
{
	cr_assert_eq(drv_store_put(&rig->store, &record, change), 0);
}

static inline void wait_tried(struct rig *rig, uint64_t change)
{
	while (rig->tried < change)
		uv_run(&rig->loop, UV_RUN_ONCE);
}

static inline void rig_close(struct rig *rig)
{
	drv_store_finish(&rig->store);
	uv_run(&rig->loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(&rig->loop), 0);
	drv_store_close(&rig->store);
}

static inline struct drv_record space(enum drv_record_kind kind, size_t bytes)
{
	return (struct drv_record){.kind = kind, .is_attempt = true, .bytes = bytes};
}

/* The size of the file that holds space; -1: there is none. */
static inline int64_t held(void)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/reserve", folder);
	return stat(path, &st) == 0 ? st.st_size : -1;
}

#endif
