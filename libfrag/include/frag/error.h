/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_ERROR_H
#define FRAG_ERROR_H

#include <frag/abi.h>

FRAG_BEGIN_DECLS

/*
 * Functions that can fail return 0 or a negative errno value. They return a positive value only for
 * outcomes that their comment names. Where the caller needs more than a number it passes a struct
 * frag_err, which then holds one sentence: what failed, why, and what to do.
 */

/* Returned by compute: the operator is finished and is never ticked again. Its ports close. */
#define FRAG_DONE 1
/*
 * Returned by compute: the tick is not over, because something outside has to happen first. compute
 * is called again in the same tick after frag_op_resume (operator.h).
 */
#define FRAG_PENDING 2

/*
 * A sentence about one failure. Initialise it with FRAG_ERR_INIT before it is passed. Every
 * function that takes a struct frag_err * accepts NULL.
 */
struct frag_err {
	/* set by FRAG_ERR_INIT */
	size_t struct_size;
	/* negative errno; 0: no error */
	int code;
	/* place in a file, from 1; 0: no place */
	int line, column;
	/* name of the file; empty: no file */
	char file[256];
	/* one sentence without a newline; empty: no error */
	char text[1024];
	/* set by frag: which failure it is, a number of its own table; 0: not classified */
	int failure;
	/* set by frag: "fragment.operator" that failed; empty: none */
	char op[2 * FRAG_NAME_MAX + 2];
	/* set by frag, where a value was refused: what was wanted, what was there; empty: not so */
	char required[128], provided[128];
};

/* No error yet. */
#define FRAG_ERR_INIT                                                                              \
	{                                                                                          \
		sizeof(struct frag_err), 0, 0, 0, "", "", 0, "", "", ""                            \
	}

/*
 * Stores a failure in *err, unless *err already holds one: the function that decides on an error
 * words it, and its callers only pass it on.
 * - err: where to store it; NULL is accepted
 * - code: negative errno
 * - format: printf format of the sentence; longer text is cut to the size of err->text
 * Returns code, so that a caller can write `return frag_err_set(err, -EINVAL, "...")`.
 * Thread: any. Blocks: no. RT-safe: no (it formats).
 */
FRAG_API int frag_err_set(struct frag_err *err, int code, const char *format, ...)
	FRAG_PRINTF(3, 4);

/*
 * The text of an error code, with frag's own wording where that of errno is vague.
 * - code: negative errno
 * Returns a static string, never NULL.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const char *frag_strerror(int code);

/*
 * Removes users and passwords from the URLs in a text, as errors and the log do with theirs. Of a
 * URL there stay scheme, host and port, and of its path what can neither be nor name a user, a
 * password or a key: cameras take them before the host, in the query, and in the path.
 * - text: changed in place; it grows no longer
 * - size: of its buffer: a URL at the end of a text that fills it counts as cut off; 0: none does
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API void frag_hide_credentials(char *text, size_t size);

FRAG_END_DECLS

#endif
