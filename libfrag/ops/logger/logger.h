/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOGGER_LOGGER_H
#define LOGGER_LOGGER_H

#include <stdio.h>

#include <frag/frag.h>

/* The data loggers of this library. Of each kind one logs at once and one has queues. */
extern const struct frag_data_logger_type logger_basic_console_type, logger_async_console_type;
extern const struct frag_data_logger_type logger_basic_json_type, logger_async_json_type;
extern const struct frag_data_logger_type logger_basic_csv_type, logger_async_csv_type;
extern const struct frag_data_logger_type logger_basic_npy_type, logger_async_npy_type;

/*
 * Opens the file of a logger, into which whole lines are written; makes the folders on the way.
 * - folder: "" or "NAME/": between the folder of path and the file's name
 */
int logger_open(const char *path, const char *folder, const struct frag_resource *logger,
		FILE **out, struct frag_err *err);
/* Returns 0; -EFBIG: it has that many bytes. max_bytes: 0: it may have any. */
int logger_check_room(FILE *file, uint64_t max_bytes);

#endif
