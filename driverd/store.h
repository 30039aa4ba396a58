/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_STORE_H
#define DRV_STORE_H

#include <driverd/core/record.h>
#include <driverd/database.h>
#include <uv.h>

/*
 * The state folder: what a driver must still know after it was killed. One driver at a time has the
 * folder. Records are written by libuv's thread pool, all that have come meanwhile in one commit.
 * When that fails, attempts are void, the others are tried again with the next records and every
 * DRV_STORE_RETRY_MS: nothing that has happened is lost as long as the driver lives.
 */
#define DRV_STORE_RETRY_MS 5000
#define DRV_STORE_LOOK_MS 5000
/*
 * A disk may also keep silent: a frozen file system, a server of files that is away. The thread
 * that writes cannot be called back then. After this time all that was put has failed, as above,
 * and so has what is put until the disk answers; what is written late is taken back.
 */
#define DRV_STORE_SILENT_MS 10000

/*
 * All records up to that change were tried: why_not is NULL when they are on the disk, else a
 * sentence, valid during the call.
 */
typedef void (*drv_store_fn)(void *arg, uint64_t change, const char *why_not);

struct drv_store_item;
struct drv_store_list {
	struct drv_store_item *first, **last;
	size_t count, notices; /* of the items */
};
struct drv_store {
	const char *path; /* borrowed */
	int folder;       /* -1: not open */
	struct drv_database *database;
	drv_store_fn done;
	void *arg;
	uv_loop_t *loop;
	uv_timer_t retry; /* while something is written: the end of our patience */
	uv_timer_t look;  /* every DRV_STORE_LOOK_MS, whether the folder is still there */
	uv_work_t work;
	int64_t silent_ms; /* DRV_STORE_SILENT_MS; tests wait for less */
	bool is_writing, is_closing;
	bool is_silent;   /* what is being written has been reported as failed */
	bool is_in_doubt; /* the thread's while it writes: the last commit failed, or did not */
	struct drv_store_list waiting, writing; /* the latter is the thread's while it writes */
	uint64_t waiting_change, writing_change;
	struct frag_err err;   /* of the commit */
	size_t reserved_bytes; /* the thread's while it writes */
	size_t gained_bytes;   /* of them by the last write */
};

/*
 * Makes the folder where there is none (not its parents). Blocks. Returns 0, -EBUSY (another driver
 * has it), or as drv_database_open.
 */
int drv_store_open(struct drv_store *store, const char *path, uv_loop_t *loop, drv_store_fn done,
		   void *arg, struct frag_err *err);
/*
 * Copies the record. What is put before the loop runs on is one commit. change: grows. Does not
 * block. Returns 0 or -ENOMEM.
 */
int drv_store_put(struct drv_store *store, const struct drv_record *record, uint64_t change);
/*
 * Nothing is tried again; the loop runs out when what was put was tried, which is logged if it is
 * not on the disk. If a thread waits for the disk for silent_ms, the loop is stopped.
 */
void drv_store_finish(struct drv_store *store);
/* After the loop: if a thread still waits for the disk, the process ends here, with a failure. */
void drv_store_exit_if_stuck(const struct drv_store *store, int exit_code);
void drv_store_close(struct drv_store *store); /* after the loop has run out */

#endif
