// SPDX-License-Identifier: Apache-2.0
#include "adopt_world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <driverd/database.h>

/* The sources of runs, as an earlier driver kept them, which are what its workers report. */
struct old_state {
	struct world w;
	struct {
		void *bytes;
		uint32_t size;
	} sources[8];
};

static int restore_old(void *arg, const struct drv_record *record)
{
	struct old_state *old = arg;

	if (record->kind == DRV_RECORD_RUN && record->source_bytes != 0) {
		old->sources[record->run].bytes = fragi_malloc(record->source_bytes);
		memcpy(old->sources[record->run].bytes, record->source, record->source_bytes);
		old->sources[record->run].size = (uint32_t)record->source_bytes;
	}
	return drv_core_restore(old->w.core, record);
}

static void read_old(struct old_state *old, const char *path)
{
	char folder[] = "/tmp/frag-old-XXXXXX", name[64], sql[16384] = "";
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_database *database;
	sqlite3 *sqlite;
	FILE *file = fopen(path, "r");

	cr_assert_not_null(file, "%s", path);
	cr_assert_lt(fread(sql, 1, sizeof(sql) - 1, file), sizeof(sql) - 1);
	fclose(file);
	cr_assert_not_null(mkdtemp(folder));
	snprintf(name, sizeof(name), "%s/" DRV_DATABASE_FILE, folder);
	cr_assert_eq(sqlite3_open(name, &sqlite), SQLITE_OK);
	cr_assert_eq(sqlite3_exec(sqlite, sql, NULL, NULL, NULL), SQLITE_OK, "%s",
		     sqlite3_errmsg(sqlite));
	sqlite3_close(sqlite);
	cr_assert_eq(drv_database_open(folder, &database, &err), 0, "%s", err.text);
	cr_assert_eq(drv_database_read(database, restore_old, old, &err), 0, "%s", err.text);
	drv_database_close(database);
	cr_expect_eq(unlink(name), 0);
	cr_expect_eq(rmdir(folder), 0, "nothing is left beside it");
}

/* What the worker of that connection has of a run: its two hosts, of these epochs. */
static void report_old(struct old_state *old, uint64_t connection, const char *name, uint64_t run,
		       const uint64_t *epochs)
{
	const char *fragments[] = {"source", "sink"};

	speaking_run = run;
	for (uint32_t host = 1; host <= 2; host++) {
		struct fw_message message = of_host(FW_HOST_REPORT, host);

		message.epoch = epochs[host - 1];
		message.report.create =
			(struct fw_host_create){.application = name,
						.fragments = &fragments[host - 1],
						.fragment_count = 1,
						.source = old->sources[run].bytes,
						.source_bytes = old->sources[run].size};
		message.report.started = message.report.has_run = true;
		say(&old->w, connection, &message);
		speaking_epoch[host] = epochs[host - 1];
		say_prepared(&old->w, connection, host, fragments[host - 1], host == 1);
	}
}

Test(driver_adopt, what_an_earlier_driver_kept_is_read_and_what_it_ran_is_adopted)
{
	static struct old_state old;
	struct world *w = &old.w;
	const struct fw_message *create;

	comes_back(w);
	read_old(&old, "tests/data/state/driverd-0.1.sql");
	hello_reporting(w, 1, 4);
	hello_reporting(w, 2, 2);
	report_old(&old, 1, "moved", 2, (uint64_t[]){3, 4});
	report_old(&old, 1, "swapped", 4, (uint64_t[]){7, 6});
	say_reported(w, 1);
	report_old(&old, 2, "restarted", 3, (uint64_t[]){8, 5});
	say_reported(w, 2);
	written(w);
	cr_assert_eq(drv_core_app_count(w->core), 3);
	cr_expect_eq(drv_core_named_state(w->core, "moved"), DRV_APP_RUNNING, "%s", w->log);
	cr_expect_eq(drv_core_named_state(w->core, "restarted"), DRV_APP_RUNNING);
	cr_expect_eq(drv_core_named_state(w->core, "swapped"), DRV_APP_RUNNING);
	cr_expect_null(taken(w, 1, FW_HOST_CREATE), "nothing is started anew");
	cr_expect_null(taken(w, 2, FW_HOST_CREATE));
	/* Its epochs go on above those of the folder, by the policy and with the graph of then. */
	speaking_run = 3;
	speaking_epoch[1] = 8;
	say_exit(w, 2, 1, 139, 11, "");
	written(w);
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_expect_gt(create->epoch, 1030);
	cr_expect_eq(create->run, 3);
	cr_expect_eq(drv_core_named_state(w->core, "restarted"), DRV_APP_RUNNING);
	world_fini(w);
	for (size_t i = 0; i < FRAG_COUNT_OF(old.sources); i++)
		fragi_free(old.sources[i].bytes);
}
