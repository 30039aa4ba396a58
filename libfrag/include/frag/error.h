/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_ERROR_H
#define FRAG_ERROR_H

#include <frag/abi.h>

FRAG_BEGIN_DECLS

/*
 * Functions that can fail return 0 or a negative errno value, and a positive value only for
 * outcomes that their comment names. Where the caller needs more than a number it passes a struct
 * frag_err, which then holds one sentence: what failed, why, and what to do.
 */

/* compute: this operator is finished and is never ticked again; its ports close in order. */
#define FRAG_DONE 1

/*
 * A sentence about one failure. Zero it, or use FRAG_ERR_INIT, before it is passed; NULL is
 * accepted everywhere.
 */
struct frag_err {
	size_t struct_size;
	int code;         /* negative errno */
	int line, column; /* 1-based; 0: no place in a text */
	char file[256];   /* empty: no file */
	char text[1024];  /* one sentence, no newline; empty: no error */
};

#define FRAG_ERR_INIT                                                                              \
	{                                                                                          \
		sizeof(struct frag_err), 0, 0, 0, "", ""                                           \
	}

/*
 * Fills *err (which may be NULL) with code and the formatted sentence, unless it already holds one:
 * the function that decides an error words it, and its callers only pass it on. Returns code, so
 * that a caller writes `return frag_err_set(err, -EINVAL, "...")`. Thread: any. Blocks: no.
 * RT-safe: no (formats).
 */
FRAG_API int frag_err_set(struct frag_err *err, int code, const char *format, ...)
	FRAG_PRINTF(3, 4);

/*
 * The text for a negative errno value, with frag's own wording where errno's is vague. Never NULL;
 * static storage. Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const char *frag_strerror(int code);

FRAG_END_DECLS

#endif
