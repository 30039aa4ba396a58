/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAILING_DISK_H
#define FAILING_DISK_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A shim of SQLite's own file layer counts what is done to files, can end the process before any
 * step, and keeps what each file had when it was synced last. It fails when a test says so.
 */
static char folder[64], synced[64];
static int step_count, die_at;
static sqlite3_int64 full_at = INT64_MAX;       /* no file may grow beyond */
static int write_error, sync_error, read_error; /* of the disk; SQLITE_OK: none */
static pthread_mutex_t freezer = PTHREAD_MUTEX_INITIALIZER;

struct shim_file {
	sqlite3_file base;
	char name[32];
	sqlite3_file *real;
};
static sqlite3_vfs shim;
static sqlite3_vfs *real_vfs;

static void before_step(void)
{
	if (++step_count == die_at)
		_exit(42);
}

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct shim_file *)file)->real;
}

static int shim_close(sqlite3_file *file)
{
	return real_of(file)->pMethods->xClose(real_of(file));
}

static int shim_read(sqlite3_file *file, void *to, int size, sqlite3_int64 at)
{
	if (at >= 4096 && read_error != SQLITE_OK) /* the file is there, and opens */
		return read_error;
	return real_of(file)->pMethods->xRead(real_of(file), to, size, at);
}

static int shim_write(sqlite3_file *file, const void *from, int size, sqlite3_int64 at)
{
	before_step();
	pthread_mutex_lock(&freezer);
	pthread_mutex_unlock(&freezer);
	if (at + size > full_at)
		return SQLITE_FULL;
	if (write_error != SQLITE_OK)
		return write_error;
	return real_of(file)->pMethods->xWrite(real_of(file), from, size, at);
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	before_step();
	return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static void copy(const char *from_folder, const char *to_folder, const char *name)
{
	char path[128], bytes[65536];
	int from, to;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", from_folder, name);
	from = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/%s", to_folder, name);
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert(from >= 0 && to >= 0);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		cr_assert_eq(write(to, bytes, (size_t)n), n);
	cr_assert_eq(n, 0);
	close(from);
	close(to);
}

static int shim_sync(sqlite3_file *file, int flags)
{
	int result;

	before_step();
	result = real_of(file)->pMethods->xSync(real_of(file), flags);
	if (sync_error != SQLITE_OK)
		return sync_error;
	if (result == SQLITE_OK && die_at != 0)
		copy(folder, synced, ((struct shim_file *)file)->name);
	return result;
}

static int shim_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int shim_lock(sqlite3_file *file, int lock)
{
	return real_of(file)->pMethods->xLock(real_of(file), lock);
}

static int shim_unlock(sqlite3_file *file, int lock)
{
	return real_of(file)->pMethods->xUnlock(real_of(file), lock);
}

static int shim_reserved(sqlite3_file *file, int *out)
{
	return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int shim_control(sqlite3_file *file, int op, void *arg)
{
	return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int shim_sector(sqlite3_file *file)
{
	return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int shim_traits(sqlite3_file *file)
{
	return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

/* Without shared memory: WAL then works in exclusive mode only, which is the driver's. */
static const sqlite3_io_methods shim_methods = {
	.iVersion = 1,
	.xClose = shim_close,
	.xRead = shim_read,
	.xWrite = shim_write,
	.xTruncate = shim_truncate,
	.xSync = shim_sync,
	.xFileSize = shim_size,
	.xLock = shim_lock,
	.xUnlock = shim_unlock,
	.xCheckReservedLock = shim_reserved,
	.xFileControl = shim_control,
	.xSectorSize = shim_sector,
	.xDeviceCharacteristics = shim_traits,
};

static int shim_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
		     int *out_flags)
{
	struct shim_file *own = (struct shim_file *)file;
	int result;

	own->real = (sqlite3_file *)(own + 1);
	snprintf(own->name, sizeof(own->name), "%s",
		 name != NULL ? strrchr(name, '/') + 1 : "none");
	result = real_vfs->xOpen(real_vfs, name, own->real, flags, out_flags);
	own->base.pMethods = own->real->pMethods != NULL ? &shim_methods : NULL;
	return result;
}

static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	before_step();
	return real_vfs->xDelete(real_vfs, name, sync);
}

static void shim_register(void)
{
	full_at = INT64_MAX;
	if (real_vfs != NULL)
		return;
	real_vfs = sqlite3_vfs_find(NULL);
	shim = *real_vfs;
	shim.zName = "shim";
	shim.szOsFile += (int)sizeof(struct shim_file);
	shim.xOpen = shim_open;
	shim.xDelete = shim_delete;
	cr_assert_eq(sqlite3_vfs_register(&shim, 1), SQLITE_OK);
}

#endif
