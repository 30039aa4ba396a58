/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_DIAG_H
#define FRAGI_BASE_DIAG_H

#include <frag/error.h>

/*
 * Marks the functions of libfrag.so that fraghost, fragctl and the modules of the same build use.
 * They are exported under the symbol version FRAG_PRIVATE.
 */
#define FRAGI_API __attribute__((visibility("default")))

/*
 * A list of errors, so that all mistakes in a graph are reported at once. At most FRAGI_DIAG_MAX
 * are kept; the rest are counted.
 */
#define FRAGI_DIAG_MAX 100

struct fragi_diag {
	struct frag_err *items; /* owned */
	size_t count;
	size_t capacity;
	size_t beyond; /* errors not kept */
};

/*
 * Adds one error.
 * - file: NULL: none
 * - line, column: from 1; 0: no place
 * Returns code.
 */
FRAGI_API int fragi_diag_add(struct fragi_diag *diag, int code, const char *file, int line,
			     int column, const char *format, ...) FRAG_PRINTF(6, 7);
/* Adds a copy of err. Returns err->code. */
FRAGI_API int fragi_diag_add_err(struct fragi_diag *diag, const struct frag_err *err);
/*
 * Tells of the error that was added last what was wanted and what was there, for programs that read
 * the list; its sentence says both already. Nothing if that error was not kept.
 */
FRAGI_API void fragi_diag_compare(struct fragi_diag *diag, const char *required,
				  const char *provided);
/*
 * Sorts the items from index `first` on by place: by file, in the order in which the files first
 * appear, then by line and column. Items without a place, and items of the same place, keep their
 * order. What several items say of the same place is kept once.
 */
FRAGI_API void fragi_diag_sort(struct fragi_diag *diag, size_t first);
/* Frees the items; diag is empty afterwards. */
FRAGI_API void fragi_diag_fini(struct fragi_diag *diag);
/*
 * Writes "file:line:column: text" into out, or the text alone when err has no place. Returns out.
 */
FRAGI_API const char *fragi_err_line(const struct frag_err *err, char *out, size_t size);

#endif
