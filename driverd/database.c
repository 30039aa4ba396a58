// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <driverd/database.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/trusted_path.h>

/*
 * A write-ahead log that is synced at each commit (synchronous FULL): whenever the process or the
 * power goes, what was committed is there and what was not is not. The lock on the file is kept as
 * long as it is open, so there is no shared memory beside it. Memory and the log are bounded.
 */
#define APPLICATION_ID 0x66726167 /* "frag" */
#define SCHEMA_VERSION 1

static const char settings[] = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
			       "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
			       "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 1048576;"
			       "PRAGMA wal_autocheckpoint = 64;"
			       "PRAGMA cache_size = -2048;";
static const char schema[] =
	"BEGIN IMMEDIATE;"
	"CREATE TABLE numbers (id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, "
	"run INTEGER NOT NULL) STRICT;"
	"INSERT INTO numbers VALUES (1, 0, 0);"
	"CREATE TABLE runs (run INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, "
	"application TEXT NOT NULL, started_by TEXT NOT NULL, start_timeout_ns INTEGER NOT NULL, "
	"wanted INTEGER NOT NULL, ended_unix_ns INTEGER NOT NULL, source BLOB, outcome BLOB) STRICT;"
	"CREATE TABLE events (event INTEGER PRIMARY KEY, unix_ns INTEGER NOT NULL, "
	"kind INTEGER NOT NULL, application TEXT NOT NULL, run INTEGER NOT NULL, "
	"who TEXT NOT NULL, text TEXT NOT NULL) STRICT;"
	"PRAGMA application_id = 1718772071; PRAGMA user_version = 1;"
	"COMMIT;";
/* An earlier driverd knows nothing of it, and needs nothing of it. */
static const char placements[] =
	"CREATE TABLE IF NOT EXISTS placements (run INTEGER PRIMARY KEY, workers TEXT NOT NULL) "
	"STRICT;"
	"DELETE FROM placements WHERE run NOT IN (SELECT run FROM runs);";
/*
 * The table of drained workers has no version of its own: a driverd that does not know it leaves it
 * as it is.
 */
static const char schema_more[] = "CREATE TABLE IF NOT EXISTS drained "
				  "(worker TEXT PRIMARY KEY) STRICT";
static const char check_writable[] = "BEGIN IMMEDIATE; UPDATE numbers SET epoch = epoch; COMMIT;";

static const char *const puts_of[DRV_RECORD_KINDS] = {
	[DRV_RECORD_NUMBERS] =
		"UPDATE numbers SET epoch = max(epoch, :epoch), run = max(run, :run)",
	[DRV_RECORD_RUN] = "INSERT OR REPLACE INTO runs VALUES "
			   "(:run, :epoch, :name, :who, :timeout, :wanted, 0, :source, NULL)",
	[DRV_RECORD_SOURCE] = "UPDATE runs SET source = :source WHERE run = :run",
	[DRV_RECORD_WANTED] = "UPDATE runs SET wanted = :wanted WHERE run = :run",
	[DRV_RECORD_END] = "UPDATE runs SET wanted = :wanted, ended_unix_ns = :ended, "
			   "outcome = :outcome WHERE run = :run",
	[DRV_RECORD_SOURCELESS] = "UPDATE runs SET source = NULL WHERE run = :run",
	[DRV_RECORD_FORGOTTEN] = "DELETE FROM runs WHERE run = :run",
	[DRV_RECORD_PLACED] = "INSERT OR REPLACE INTO placements VALUES (:run, :text)",
	[DRV_RECORD_DRAINED] = "INSERT OR IGNORE INTO drained VALUES (:name)",
	[DRV_RECORD_UNDRAINED] = "DELETE FROM drained WHERE worker = :name",
	[DRV_RECORD_NOTICE] = "INSERT OR REPLACE INTO events VALUES "
			      "(:event, :unix, :kind, :name, :run, :who, :text)",
};
static const char forget_events[] = "DELETE FROM events WHERE event < :first";
static const char forget_placement[] = "DELETE FROM placements WHERE run = :run";

static const char select_numbers[] = "SELECT epoch, run FROM numbers WHERE id = 1";
static const char select_placements[] = "SELECT run, workers FROM placements";
static const char select_runs[] = "SELECT run, epoch, application, started_by, start_timeout_ns, "
				  "wanted, ended_unix_ns, source, outcome FROM runs ORDER BY run";
static const char select_drained[] = "SELECT worker FROM drained ORDER BY worker";
static const char select_events[] = "SELECT event, unix_ns, kind, application, run, who, text "
				    "FROM events ORDER BY event";

struct drv_database {
	const char *folder;
	char path[PATH_MAX + sizeof(DRV_DATABASE_FILE) + 1];
	bool is_doubted; /* the disk has failed: SQLite may have in memory what is not there */
	sqlite3 *sqlite;
	sqlite3_stmt *puts[DRV_RECORD_KINDS], *forget_events, *forget_placement;
};

/* SQLite's codes are mapped here and nowhere else. */
static int code_of(sqlite3 *sqlite, int result)
{
	int system = sqlite != NULL ? sqlite3_system_errno(sqlite) : 0;

	switch (result & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR: /* a table is missing */
		return -EUCLEAN;
	default:
		return system > 0 ? -system : -EIO;
	}
}

static const char *advice_for(int code)
{
	switch (code) {
	case -ENOSPC:
	case -EDQUOT:
		return "make room there, or give --state-dir another folder";
	case -EIO:
		return "its disk fails, as dmesg says more closely; nothing shows that what is there is damaged: copy the folder to another disk, and give that copy to --state-dir";
	case -EROFS:
		return "its file system is mounted read-only, which is also what the kernel does after errors of a disk (dmesg); mount it for writing, or give --state-dir a folder that driverd may write to";
	default:
		return "give --state-dir a folder that driverd may write to";
	}
}

int drv_database_fail(const char *folder, int code, struct frag_err *err)
{
	if (code == -EUCLEAN)
		return frag_err_set(
			err, code,
			"%s/" DRV_DATABASE_FILE
			" is damaged, or of another program or a newer driverd; install that driverd, or see that nothing runs any more that this folder's driver started, move the file away, and start the applications anew",
			folder);
	return frag_err_set(err, code, "cannot keep state in %s: %s; %s", folder,
			    frag_strerror(code), advice_for(code));
}

/* Whether the disk does not give back what the file at `which` holds. */
static bool cannot_read(sqlite3 *sqlite, int which)
{
	sqlite3_file *file = NULL;
	sqlite3_int64 size = 0;
	char page[4096];
	int result;

	(void)sqlite3_file_control(sqlite, "main", which, &file);
	if (file == NULL || file->pMethods == NULL)
		return false;
	result = file->pMethods->xFileSize(file, &size);
	for (sqlite3_int64 at = 0; result == SQLITE_OK && at + (int)sizeof(page) <= size;
	     at += (int)sizeof(page))
		result = file->pMethods->xRead(file, page, sizeof(page), at);
	return result != SQLITE_OK;
}

/* SQLite may call a page damaged that the disk did not give it. */
static int fail_as(struct drv_database *database, int result, struct frag_err *err)
{
	int code = code_of(database->sqlite, result);

	if (code == -EUCLEAN && (cannot_read(database->sqlite, SQLITE_FCNTL_FILE_POINTER) ||
				 cannot_read(database->sqlite, SQLITE_FCNTL_JOURNAL_POINTER)))
		code = -EIO;
	database->is_doubted |= code == -EIO || code == -EUCLEAN;
	return drv_database_fail(database->folder, code, err);
}

static int64_t number_of(sqlite3 *sqlite, const char *pragma)
{
	sqlite3_stmt *statement;
	int64_t number = -1;

	if (sqlite3_prepare_v2(sqlite, pragma, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return number;
}

/* Whether all pages and indices fit together. */
static int check_pages(sqlite3 *sqlite)
{
	sqlite3_stmt *statement;
	int result = sqlite3_prepare_v2(sqlite, "PRAGMA quick_check(1)", -1, &statement, NULL);

	if (result == SQLITE_OK)
		result = sqlite3_step(statement);
	if (result == SQLITE_ROW &&
	    sqlite3_stricmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0)
		result = SQLITE_CORRUPT;
	sqlite3_finalize(statement);
	return result == SQLITE_ROW ? SQLITE_OK : result;
}

static int check_schema(sqlite3 *sqlite)
{
	int64_t id = number_of(sqlite, "PRAGMA application_id"),
		version = number_of(sqlite, "PRAGMA user_version");

	if (id < 0 || version < 0)
		return sqlite3_errcode(sqlite);
	if (id != APPLICATION_ID || version != SCHEMA_VERSION)
		return SQLITE_NOTADB;
	/* Without them a driver would give epochs anew that hosts have had. */
	if (number_of(sqlite, "SELECT min(epoch, run) FROM numbers WHERE id = 1") >= 0)
		return SQLITE_OK;
	return sqlite3_errcode(sqlite) == SQLITE_OK ? SQLITE_CORRUPT : sqlite3_errcode(sqlite);
}

static int prepare(struct drv_database *database)
{
	int result = SQLITE_OK;

	for (int kind = 0; result == SQLITE_OK && kind < DRV_RECORD_KINDS; kind++)
		result = sqlite3_prepare_v3(database->sqlite, puts_of[kind], -1,
					    SQLITE_PREPARE_PERSISTENT, &database->puts[kind], NULL);
	if (result == SQLITE_OK)
		result = sqlite3_prepare_v3(database->sqlite, forget_events, -1,
					    SQLITE_PREPARE_PERSISTENT, &database->forget_events,
					    NULL);
	if (result == SQLITE_OK)
		result = sqlite3_prepare_v3(database->sqlite, forget_placement, -1,
					    SQLITE_PREPARE_PERSISTENT, &database->forget_placement,
					    NULL);
	return result;
}

#define OPEN_FLAGS (SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE)

/*
 * A new file gets its tables under another name: whenever the power goes, a file without tables is
 * damage. Logs of a file that was moved away would be taken for those of the new one.
 */
static int create_file(const char *path)
{
	static const char *const left_over[] = {"-new", "-new-journal", "-wal", "-journal"};
	char name[PATH_MAX + 64];
	sqlite3 *sqlite = NULL;
	int fd, r;

	for (size_t i = FRAG_COUNT_OF(left_over); i-- > 0;) {
		snprintf(name, sizeof(name), "%s%s", path, left_over[i]);
		(void)unlink(name);
	}
	snprintf(name, sizeof(name), "%s-new", path);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	r = sqlite3_open_v2(name, &sqlite, OPEN_FLAGS, NULL);
	if (r == SQLITE_OK)
		r = sqlite3_exec(sqlite, schema, NULL, NULL, NULL);
	r = code_of(sqlite, r);
	sqlite3_close(sqlite);
	if (r == 0 && rename(name, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(name);
	return r;
}

/*
 * The file is made here, for its owner only; SQLite gives its log the same rights. What somebody
 * has left in the folder when he could still write there is not believed.
 */
static int make_file(const char *folder, const char *path, struct frag_err *err)
{
	static const char *const logs[] = {"", "-wal", "-shm", "-journal"};
	char log[PATH_MAX + 64];
	struct stat st;
	int r;

	for (size_t i = 0; i < FRAG_COUNT_OF(logs); i++) {
		struct frag_err why = FRAG_ERR_INIT;

		snprintf(log, sizeof(log), "%s%s", path, logs[i]);
		r = fragi_trusted_path_check(log, geteuid(), &why);
		if (r == -EIO)
			return drv_database_fail(folder, r, err);
		if (r < 0 && r != -ENOENT)
			return frag_err_set(err, r, "--state-dir: driverd %s", why.text);
	}
	r = 0;
	if (lstat(path, &st) < 0)
		r = errno == ENOENT ? create_file(path) : -errno;
	else if (S_ISREG(st.st_mode) && st.st_size == 0)
		return frag_err_set(
			err, -EUCLEAN,
			"%s/" DRV_DATABASE_FILE
			" is empty: something has truncated it, and what driverd kept there is lost; restore it from a backup, or see that nothing runs any more that this folder's driver started, remove the file, and start the applications anew",
			folder);
	return r < 0 ? drv_database_fail(folder, r, err) : 0;
}

static int connect(struct drv_database *database)
{
	int result = sqlite3_open_v2(database->path, &database->sqlite, OPEN_FLAGS, NULL);

	if (result == SQLITE_OK)
		result = sqlite3_db_config(database->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	if (result == SQLITE_OK)
		result = sqlite3_exec(database->sqlite, settings, NULL, NULL, NULL);
	if (result == SQLITE_OK)
		result = check_pages(database->sqlite);
	if (result == SQLITE_OK)
		result = check_schema(database->sqlite);
	if (result == SQLITE_OK)
		result = sqlite3_exec(database->sqlite, placements, NULL, NULL, NULL);
	if (result == SQLITE_OK)
		result = sqlite3_exec(database->sqlite, schema_more, NULL, NULL, NULL);
	if (result == SQLITE_OK)
		result = prepare(database);
	if (result == SQLITE_OK)
		result = sqlite3_exec(database->sqlite, check_writable, NULL, NULL, NULL);
	return result;
}

static void disconnect(struct drv_database *database)
{
	for (int kind = 0; kind < DRV_RECORD_KINDS; kind++) {
		sqlite3_finalize(database->puts[kind]);
		database->puts[kind] = NULL;
	}
	sqlite3_finalize(database->forget_events);
	sqlite3_finalize(database->forget_placement);
	database->forget_events = database->forget_placement = NULL;
	sqlite3_close(database->sqlite);
	database->sqlite = NULL;
}

int drv_database_open(const char *folder, struct drv_database **out_database, struct frag_err *err)
{
	char real[PATH_MAX];
	struct drv_database *database = fragi_calloc(1, sizeof(*database));
	int r = database == NULL ? -ENOMEM : 0, result;

	/* O_NOFOLLOW is for the file alone, SQLITE_OPEN_NOFOLLOW for each folder too */
	if (r == 0 && realpath(folder, real) == NULL)
		r = -errno;
	if (r < 0) {
		drv_database_fail(folder, r, err);
		goto err_database;
	}
	snprintf(database->path, sizeof(database->path), "%s/" DRV_DATABASE_FILE, real);
	r = make_file(folder, database->path, err);
	if (r < 0)
		goto err_database;
	database->folder = folder;
	result = connect(database);
	if (result != SQLITE_OK) {
		r = fail_as(database, result, err);
		drv_database_close(database);
		return r;
	}
	*out_database = database;
	return 0;
err_database:
	fragi_free(database);
	return r;
}

/* A text of a row that has one; what is not is damage. */
static const char *text_at(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return text != NULL ? text : "";
}

static void read_run(sqlite3_stmt *row, struct drv_record *record)
{
	*record = (struct drv_record){
		.kind = DRV_RECORD_RUN,
		.run = (uint64_t)sqlite3_column_int64(row, 0),
		.epoch = (uint64_t)sqlite3_column_int64(row, 1),
		.name = text_at(row, 2),
		.who = text_at(row, 3),
		.start_timeout_ns = sqlite3_column_int64(row, 4),
		.is_wanted = sqlite3_column_int64(row, 5) != 0,
		.ended_unix_ns = sqlite3_column_int64(row, 6),
		.source = sqlite3_column_blob(row, 7),
		.source_bytes = (size_t)sqlite3_column_bytes(row, 7),
		.outcome = sqlite3_column_blob(row, 8),
		.outcome_bytes = (size_t)sqlite3_column_bytes(row, 8),
	};
}

static void read_event(sqlite3_stmt *row, struct drv_record *record)
{
	*record = (struct drv_record){
		.kind = DRV_RECORD_NOTICE,
		.notice = (uint64_t)sqlite3_column_int64(row, 0),
		.unix_ns = sqlite3_column_int64(row, 1),
		.notice_kind = (uint32_t)sqlite3_column_int64(row, 2),
		.name = text_at(row, 3),
		.run = (uint64_t)sqlite3_column_int64(row, 4),
		.who = text_at(row, 5),
		.text = text_at(row, 6),
	};
}

static void read_placement(sqlite3_stmt *row, struct drv_record *record)
{
	*record = (struct drv_record){
		.kind = DRV_RECORD_PLACED,
		.run = (uint64_t)sqlite3_column_int64(row, 0),
		.text = text_at(row, 1),
	};
}

static void read_drained(sqlite3_stmt *row, struct drv_record *record)
{
	*record = (struct drv_record){.kind = DRV_RECORD_DRAINED, .name = text_at(row, 0)};
}

static void read_numbers(sqlite3_stmt *row, struct drv_record *record)
{
	*record = (struct drv_record){
		.kind = DRV_RECORD_NUMBERS,
		.epoch = (uint64_t)sqlite3_column_int64(row, 0),
		.run = (uint64_t)sqlite3_column_int64(row, 1),
	};
}

static int read_table(struct drv_database *database, const char *select,
		      void (*read)(sqlite3_stmt *row, struct drv_record *record),
		      drv_database_fn fn, void *arg, struct frag_err *err)
{
	struct drv_record record;
	sqlite3_stmt *row = NULL;
	int result = sqlite3_prepare_v2(database->sqlite, select, -1, &row, NULL), r = 0;

	while (result == SQLITE_OK && r == 0 && (result = sqlite3_step(row)) == SQLITE_ROW) {
		read(row, &record);
		r = fn(arg, &record);
		result = SQLITE_OK;
	}
	sqlite3_finalize(row);
	if (r == 0 && result != SQLITE_DONE)
		r = fail_as(database, result, err);
	else if (r < 0)
		r = drv_database_fail(database->folder, r, err);
	return r;
}

int drv_database_read(struct drv_database *database, drv_database_fn fn, void *arg,
		      struct frag_err *err)
{
	int r = read_table(database, select_numbers, read_numbers, fn, arg, err);

	if (r == 0)
		r = read_table(database, select_placements, read_placement, fn, arg, err);
	if (r == 0)
		r = read_table(database, select_runs, read_run, fn, arg, err);
	if (r == 0)
		r = read_table(database, select_events, read_event, fn, arg, err);
	if (r == 0)
		r = read_table(database, select_drained, read_drained, fn, arg, err);
	return r;
}

/* Each statement has some of these parameters; what it does not have is not bound. */
static int bind_number(sqlite3_stmt *statement, const char *name, int64_t value)
{
	int at = sqlite3_bind_parameter_index(statement, name);

	return at != 0 ? sqlite3_bind_int64(statement, at, value) : SQLITE_OK;
}

static int bind_text(sqlite3_stmt *statement, const char *name, const char *value)
{
	int at = sqlite3_bind_parameter_index(statement, name);

	return at != 0 ? sqlite3_bind_text(statement, at, value != NULL ? value : "", -1,
					   SQLITE_STATIC)
		       : SQLITE_OK;
}

static int bind_bytes(sqlite3_stmt *statement, const char *name, const void *value, size_t size)
{
	int at = sqlite3_bind_parameter_index(statement, name);

	return at != 0 && size != 0 ? sqlite3_bind_blob64(statement, at, value, size, SQLITE_STATIC)
				    : SQLITE_OK;
}

static int bind_record(sqlite3_stmt *statement, const struct drv_record *record)
{
	const int results[] = {
		bind_number(statement, ":run", (int64_t)record->run),
		bind_number(statement, ":epoch", (int64_t)record->epoch),
		bind_text(statement, ":name", record->name),
		bind_text(statement, ":who", record->who),
		bind_number(statement, ":timeout", record->start_timeout_ns),
		bind_number(statement, ":wanted", record->is_wanted),
		bind_bytes(statement, ":source", record->source, record->source_bytes),
		bind_number(statement, ":ended", record->ended_unix_ns),
		bind_bytes(statement, ":outcome", record->outcome, record->outcome_bytes),
		bind_number(statement, ":event", (int64_t)record->notice),
		bind_number(statement, ":first", (int64_t)record->first_notice),
		bind_number(statement, ":kind", record->notice_kind),
		bind_number(statement, ":unix", record->unix_ns),
		bind_text(statement, ":text", record->text),
	};

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i] != SQLITE_OK)
			return results[i];
	return SQLITE_OK;
}

static int execute(sqlite3_stmt *statement, const struct drv_record *record)
{
	int result = bind_record(statement, record);

	if (result == SQLITE_OK)
		result = sqlite3_step(statement);
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

/* Some errors have ended the transaction already. */
static int give_up(struct drv_database *database, int result, struct frag_err *err)
{
	int r = fail_as(database, result, err);

	if (database->sqlite != NULL && !sqlite3_get_autocommit(database->sqlite))
		sqlite3_exec(database->sqlite, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

int drv_database_begin(struct drv_database *database, struct frag_err *err)
{
	int result, has_moved = 0;

	/* What is written to a file without a name would be lost, and nothing would say so. */
	if (database->sqlite != NULL)
		(void)sqlite3_file_control(database->sqlite, "main", SQLITE_FCNTL_HAS_MOVED,
					   &has_moved);
	if (has_moved != 0)
		return frag_err_set(
			err, -ENOENT,
			"%s/" DRV_DATABASE_FILE
			" is gone: something has removed or replaced it; restart driverd: it begins a new one and adopts what its workers run",
			database->folder);
	result = SQLITE_OK;
	if (database->is_doubted) {
		if (database->sqlite != NULL)
			(void)sqlite3_db_config(database->sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
						1, NULL);
		disconnect(database);
		result = connect(database);
		database->is_doubted = result != SQLITE_OK;
	}
	if (result == SQLITE_OK)
		result = sqlite3_exec(database->sqlite, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	return result == SQLITE_OK ? 0 : give_up(database, result, err);
}

int drv_database_put(struct drv_database *database, const struct drv_record *record,
		     struct frag_err *err)
{
	int result = execute(database->puts[record->kind], record);

	if (result == SQLITE_OK && record->kind == DRV_RECORD_NOTICE)
		result = execute(database->forget_events, record);
	if (result == SQLITE_OK &&
	    (record->kind == DRV_RECORD_END || record->kind == DRV_RECORD_FORGOTTEN))
		result = execute(database->forget_placement, record);
	return result == SQLITE_OK ? 0 : give_up(database, result, err);
}

int drv_database_end(struct drv_database *database, struct frag_err *err)
{
	int result = sqlite3_exec(database->sqlite, "COMMIT", NULL, NULL, NULL);

	return result == SQLITE_OK ? 0 : give_up(database, result, err);
}

void drv_database_close(struct drv_database *database)
{
	if (database == NULL)
		return;
	disconnect(database);
	fragi_free(database);
}
