/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_DATABASE_H
#define DRV_DATABASE_H

#include <driverd/core/record.h>
#include <frag/error.h>

/*
 * The records of a driver in a file of SQLite, DRV_DATABASE_FILE of its state folder. The only file
 * that knows SQLite; another database gets the same calls. All of them block, and one thread at a
 * time may call.
 */
#define DRV_DATABASE_FILE "state.db"

struct drv_database;

/* Says in one sentence that the folder cannot be used, why, and what to do. Returns code. */
int drv_database_fail(const char *folder, int code, struct frag_err *err);
/*
 * folder: of this driver alone; borrowed. Makes the file where there is none, checks it, and proves
 * that it can be written. Returns 0, -EUCLEAN (it is damaged, or of another program or version), or
 * what the system says, each with a sentence.
 */
int drv_database_open(const char *folder, struct drv_database **out_database, struct frag_err *err);
/* Returns 0 to go on. */
typedef int (*drv_database_fn)(void *arg, const struct drv_record *record);
/*
 * Passes on NUMBERS, each PLACED, each RUN with what is known of its end, the oldest first, and
 * each EVENT, the oldest first. Returns 0, what fn returned, or as open.
 */
int drv_database_read(struct drv_database *database, drv_database_fn fn, void *arg,
		      struct frag_err *err);
/*
 * A commit: between begin and end records are put, and all of them are on the disk when end
 * returns 0. After any failure, which has its sentence, none of them is, and the commit is over;
 * after -EIO of end all of them may be. After an error of the disk begin reads the file anew.
 */
int drv_database_begin(struct drv_database *database, struct frag_err *err);
int drv_database_put(struct drv_database *database, const struct drv_record *record,
		     struct frag_err *err);
int drv_database_end(struct drv_database *database, struct frag_err *err);
void drv_database_close(struct drv_database *database); /* NULL is accepted */

#endif
