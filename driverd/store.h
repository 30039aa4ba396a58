/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_STORE_H
#define DRV_STORE_H

#include <frag/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/*
 * The state folder: what a driver must still know after it was killed. That is the last epoch it
 * gave: the file `epoch`, a number and a newline, replaced as a whole. One driver at a time has the
 * folder.
 */

/* why_not: NULL when epoch is on the disk, else a sentence, valid during the call. */
typedef void (*drv_store_fn)(void *arg, uint64_t epoch, const char *why_not);

struct drv_store {
	const char *path; /* borrowed */
	int folder;       /* -1: not open */
	drv_store_fn done;
	void *arg;
	uv_work_t work;
	bool writing;
	uint64_t wanted, epoch; /* the newest asked for; the one being written */
	struct frag_err err;    /* of the write */
};

/*
 * Makes the folder where there is none (not its parents) and reads it; no file: epoch 0. Blocks.
 * Returns 0, -EBUSY (another driver has it), -EINVAL (the file holds no number), or what the system
 * says, each with a sentence. done is called on the loop's thread for each epoch written; later
 * ones stand for earlier ones.
 */
int drv_store_open(struct drv_store *store, const char *path, drv_store_fn done, void *arg,
		   uint64_t *out_epoch, struct frag_err *err);
/* Does not block: libuv's thread pool writes. */
void drv_store_write(struct drv_store *store, uv_loop_t *loop, uint64_t epoch);
/* After the loop has run out. */
void drv_store_close(struct drv_store *store);

#endif
