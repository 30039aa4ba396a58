// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <driverd/store.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/draft.h>
#include <base/units.h>

/*
 * A write goes to a draft, which is synced, takes the file's name, and the folder is synced:
 * whenever the power goes, the file holds the old number or the new one.
 */
#define FILE_NAME "epoch"
#define TEXT_MAX 24

static int cannot_write(const struct drv_store *store, int code, struct frag_err *err)
{
	return frag_err_set(
		err, code,
		"cannot keep state in %s: %s; give --state-dir a folder that driverd may write to",
		store->path, frag_strerror(code));
}

static int store_read(struct drv_store *store, uint64_t *out_epoch, struct frag_err *err)
{
	int fd = openat(store->folder, FILE_NAME, O_RDONLY | O_CLOEXEC), code;
	char text[TEXT_MAX];
	int64_t value = -1;
	ssize_t n;

	*out_epoch = 0;
	if (fd < 0 && errno == ENOENT)
		return 0;
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	code = n < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return frag_err_set(err, code, "cannot read %s/" FILE_NAME ": %s", store->path,
				    frag_strerror(code));
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (fragi_parse_i64(text, &value) < 0 || value < 0)
		return frag_err_set(
			err, -EINVAL,
			"%s/" FILE_NAME
			" does not hold the number of an epoch; see that nothing runs any more that this folder's driver started, and remove the file",
			store->path);
	*out_epoch = (uint64_t)value;
	return 0;
}

int drv_store_open(struct drv_store *store, const char *path, drv_store_fn done, void *arg,
		   uint64_t *out_epoch, struct frag_err *err)
{
	int r;

	*store = (struct drv_store){.path = path, .folder = -1, .done = done, .arg = arg};
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return cannot_write(store, -errno, err);
	store->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->folder < 0)
		return cannot_write(store, -errno, err);
	if (flock(store->folder, LOCK_EX | LOCK_NB) < 0)
		r = errno == EWOULDBLOCK
			    ? frag_err_set(
				      err, -EBUSY,
				      "another driverd keeps its state in %s; give --state-dir a folder of its own",
				      path)
			    : cannot_write(store, -errno, err);
	else
		r = store_read(store, out_epoch, err);
	if (r < 0)
		drv_store_close(store);
	return r;
}

static int write_synced(FILE *file, uint64_t epoch)
{
	if (fprintf(file, "%llu\n", (unsigned long long)epoch) < 0 || fflush(file) != 0 ||
	    fsync(fileno(file)) < 0)
		return -errno;
	return 0;
}

static int replace(int folder, uint64_t epoch)
{
	struct frag_draft *draft;
	int r = fragi_draft_create(folder, FILE_NAME, 0600, &draft);

	if (r < 0)
		return r;
	r = write_synced(frag_draft_stream(draft), epoch);
	if (r < 0) {
		frag_draft_destroy(draft);
		return r;
	}
	r = frag_draft_commit(draft);
	return r == 0 && fsync(folder) < 0 ? -errno : r;
}

/* In the thread pool. */
static void on_work(uv_work_t *work)
{
	struct drv_store *store = work->data;
	int r = replace(store->folder, store->epoch);

	if (r < 0)
		cannot_write(store, r, &store->err);
}

static void begin(struct drv_store *store, uv_loop_t *loop);

static void on_written(uv_work_t *work, int status)
{
	struct drv_store *store = work->data;

	store->writing = false;
	if (status < 0)
		cannot_write(store, status, &store->err);
	if (store->wanted > store->epoch)
		begin(store, work->loop);
	else
		store->done(store->arg, store->epoch, store->err.code < 0 ? store->err.text : NULL);
}

static void begin(struct drv_store *store, uv_loop_t *loop)
{
	store->writing = true;
	store->epoch = store->wanted;
	store->err = (struct frag_err)FRAG_ERR_INIT;
	store->work.data = store;
	uv_queue_work(loop, &store->work, on_work, on_written); /* fails only without a function */
}

void drv_store_write(struct drv_store *store, uv_loop_t *loop, uint64_t epoch)
{
	store->wanted = epoch;
	if (!store->writing)
		begin(store, loop);
}

void drv_store_close(struct drv_store *store)
{
	if (store->folder >= 0)
		close(store->folder);
	store->folder = -1;
}
