/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_DIAG_H
#define FRAGI_BASE_DIAG_H

#include <frag/error.h>

/*
 * Marks what fraghost, fragctl and modules use of libfrag.so: exported under the version
 * FRAG_PRIVATE.
 */
#define FRAGI_API __attribute__((visibility("default")))

/*
 * A list of errors, so that all that is wrong with a graph is told in one go. At most
 * FRAGI_DIAG_MAX are kept; the rest are counted.
 */
#define FRAGI_DIAG_MAX 100

struct fragi_diag {
	struct frag_err *items; /* owned */
	size_t count;
	size_t capacity;
	size_t beyond; /* errors not kept */
};

/* Adds one error; file may be NULL; line and column 0 when there is no place. Returns code. */
FRAGI_API int fragi_diag_add(struct fragi_diag *diag, int code, const char *file, int line,
			     int column, const char *format, ...) FRAG_PRINTF(6, 7);
/* Adds a copy of err. Returns err->code. */
FRAGI_API int fragi_diag_add_err(struct fragi_diag *diag, const struct frag_err *err);
/*
 * Puts the items from `first` on in the order of their places, file by file in the order in which
 * files were first named; items of one place, and those without one, stay in their order.
 */
FRAGI_API void fragi_diag_sort(struct fragi_diag *diag, size_t first);
/* Frees the items; diag is empty afterwards. */
FRAGI_API void fragi_diag_fini(struct fragi_diag *diag);
/*
 * Writes "file:line:column: text" of err (without a place: the text alone) into out. Returns out.
 */
FRAGI_API const char *fragi_err_line(const struct frag_err *err, char *out, size_t size);

#endif
