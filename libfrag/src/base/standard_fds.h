/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_STANDARD_FDS_H
#define FRAGI_BASE_STANDARD_FDS_H

#include <base/failure.h>

/*
 * Opens /dev/null, to be read, as each of stdin, stdout and stderr that this program was started
 * without: no socket or file gets their numbers, and what is written to them still fails. To be
 * called before anything is opened.
 */
FRAGI_API void fragi_standard_fds_open(void);
/*
 * Whether a daemon can begin: libuv aborts when it gets none of the few descriptors that it makes
 * for itself. Returns 0; -EMFILE or another error with a sentence.
 */
FRAGI_API int fragi_standard_fds_check(struct frag_err *err);

#endif
