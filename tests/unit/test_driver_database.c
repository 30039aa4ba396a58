// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "../scratch.h"
#include "store_records.h"

#include <sqlite3.h>
#include <unistd.h>

#include <driverd/database.c> /* for its codes */

/* What a database gives back of what was written, and what it says of files that others changed. */
static FILE *out;
static char *text;
static size_t text_size;

static void begin(void)
{
	scratch_make();
	out = open_memstream(&text, &text_size);
	cr_assert_not_null(out);
}
TestSuite(driver_database, .init = begin, .fini = scratch_remove);

static void end(const char *name)
{
	fclose(out);
	expected_compare(name, text);
	free(text);
}

/* Without the name of the folder, which the machine has chosen. */
static void show_error(int r, const char *sentence)
{
	fprintf(out, "  %s: ", strerrorname_np(-r));
	for (const char *at; (at = strstr(sentence, scratch)) != NULL;
	     sentence = at + strlen(scratch))
		fprintf(out, "%.*sFOLDER", (int)(at - sentence), sentence);
	fprintf(out, "%s\n", sentence);
}

static int read_left;

static int show_read(void *arg, const struct drv_record *record)
{
	(void)arg;
	if (read_left-- == 0)
		return -EINVAL;
	fprintf(out, "  reads");
	show_record(out, record);
	fprintf(out, "\n");
	return 0;
}

static struct drv_database *open_it(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_database *database = NULL;
	int r = drv_database_open(scratch, &database, &err);

	if (r < 0)
		show_error(r, err.text);
	return database;
}

static void read_it(struct drv_database *database, int most)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	read_left = most;
	r = drv_database_read(database, show_read, NULL, &err);
	if (r < 0)
		show_error(r, err.text);
}

Test(driver_database, gives_back_what_was_written)
{
	struct drv_database *database = open_it();
	struct frag_err err = FRAG_ERR_INIT;

	draw_from(7);
	for (int commit = 0; commit < 40; commit++) {
		fprintf(out, "commit %d\n", commit);
		cr_assert_eq(drv_database_begin(database, &err), 0);
		for (uint32_t count = 1 + draw(4); count > 0; count--) {
			struct drv_record r = some_record();

			if (r.kind >= DRV_RECORD_KINDS)
				continue;
			fprintf(out, "  puts");
			show_record(out, &r);
			fprintf(out, "\n");
			cr_assert_eq(drv_database_put(database, &r, &err), 0, "%s", err.text);
		}
		cr_assert_eq(drv_database_end(database, &err), 0);
		if (draw_percent(30)) {
			drv_database_close(database);
			fprintf(out, "opened again\n");
			database = open_it();
			cr_assert_not_null(database);
		}
		read_it(database, INT32_MAX);
	}
	fprintf(out, "its reader has enough\n");
	for (int most = 0; most < 3; most++)
		read_it(database, most);
	drv_database_close(database);
	drv_database_close(NULL);
	end("driver/database");
}

static void change_file(const char *sql)
{
	sqlite3 *sqlite;

	cr_assert_eq(sqlite3_open(at(DRV_DATABASE_FILE), &sqlite), SQLITE_OK);
	cr_assert_eq(sqlite3_exec(sqlite, sql, NULL, NULL, NULL), SQLITE_OK, "%s: %s", sql,
		     sqlite3_errmsg(sqlite));
	sqlite3_close(sqlite);
}

Test(driver_database, files_that_others_changed)
{
	static const char *const changes[] = {
		"PRAGMA user_version = 2",
		"PRAGMA user_version = 0",
		"PRAGMA application_id = 1",
		"DROP TABLE numbers",
		"DROP TABLE runs",
		"DROP TABLE events",
		"DROP TABLE placements",
		"DROP TABLE drained",
		"DELETE FROM numbers",
		"ALTER TABLE runs RENAME COLUMN source TO graph",
		"CREATE TABLE other (x INTEGER)",
		"INSERT INTO placements VALUES (9, 'a')",
		"UPDATE numbers SET epoch = -5",
	};
	struct drv_database *database;

	for (size_t i = 0; i < FRAG_COUNT_OF(changes); i++) {
		(void)unlink(at(DRV_DATABASE_FILE));
		database = open_it();
		cr_assert_not_null(database);
		drv_database_close(database);
		change_file(changes[i]);
		fprintf(out, "%s\n", changes[i]);
		database = open_it();
		if (database != NULL)
			read_it(database, INT32_MAX);
		drv_database_close(database);
	}
	for (int kind = 0; kind < 4; kind++) {
		static const char *const kinds[] = {"empty", "not a database", "cut",
						    "a folder for others"};

		fprintf(out, "%s\n", kinds[kind]);
		(void)unlink(at(DRV_DATABASE_FILE));
		if (kind == 2) {
			drv_database_close(open_it());
			cr_assert_eq(truncate(at(DRV_DATABASE_FILE), 6000), 0);
		} else if (kind < 2) {
			put(DRV_DATABASE_FILE, kind == 0 ? "" : "this is no database at all");
		} else {
			put(DRV_DATABASE_FILE "-wal", "left");
			cr_assert_eq(chmod(at(DRV_DATABASE_FILE "-wal"), 0666), 0);
		}
		drv_database_close(open_it());
	}
	end("driver/changed_files");
}

static void show_begin(struct drv_database *database, const char *what)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = drv_database_begin(database, &err);

	fprintf(out, "%s\n", what);
	show_error(r, err.text);
	if (r == 0)
		cr_expect_eq(drv_database_end(database, &err), 0);
}

Test(driver_database, a_file_that_is_gone_or_replaced_is_not_written)
{
	struct drv_database *database = open_it();

	show_begin(database, "as it was");
	cr_assert_eq(rename(at(DRV_DATABASE_FILE), at("elsewhere")), 0);
	show_begin(database, "moved away");
	cr_assert_eq(rename(at("elsewhere"), at(DRV_DATABASE_FILE)), 0);
	show_begin(database, "moved back");
	cr_assert_eq(unlink(at(DRV_DATABASE_FILE)), 0);
	put(DRV_DATABASE_FILE, "another");
	show_begin(database, "replaced");
	show_begin(database, "again");
	drv_database_close(database);
	end("driver/moved_files");
}

Test(driver_database, codes_of_sqlite)
{
	static const int results[] = {SQLITE_OK,          SQLITE_ROW,      SQLITE_DONE,
				      SQLITE_FULL,        SQLITE_READONLY, SQLITE_READONLY_DBMOVED,
				      SQLITE_BUSY,        SQLITE_LOCKED,   SQLITE_NOMEM,
				      SQLITE_IOERR_NOMEM, SQLITE_PERM,     SQLITE_AUTH,
				      SQLITE_CORRUPT,     SQLITE_NOTADB,   SQLITE_ERROR,
				      SQLITE_IOERR,       SQLITE_CANTOPEN, SQLITE_TOOBIG};
	static const int codes[] = {-ENOSPC, -EDQUOT, -EIO, -EROFS, -EACCES, -EUCLEAN};

	for (size_t i = 0; i < FRAG_COUNT_OF(results); i++)
		fprintf(out, "%s: %s\n", sqlite3_errstr(results[i]),
			code_of(NULL, results[i]) == 0
				? "0"
				: strerrorname_np(-code_of(NULL, results[i])));
	for (size_t i = 0; i < FRAG_COUNT_OF(codes); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_expect_eq(drv_database_fail("/state", codes[i], &err), codes[i]);
		show_error(codes[i], err.text);
	}
	end("driver/codes");
}
