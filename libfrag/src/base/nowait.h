/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_NOWAIT_H
#define FRAGI_BASE_NOWAIT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/diag.h>

/*
 * Writes to descriptors that other processes share: a terminal, a pipe to a pager. O_NONBLOCK would
 * change them for everybody, so it is not set. May be called in a signal handler and after fork.
 */

/*
 * Writes what can be written at once. Returns the number of bytes, or -1 with errno; EAGAIN:
 * nothing, the reader is behind. A pipe takes PIPE_BUF bytes as a whole or not at all. Files are
 * written as write(2) does.
 */
FRAGI_API ssize_t fragi_write_nowait(int fd, const void *bytes, size_t size);
/*
 * Writes as the reader reads, for patience_ns at most. Returns the number of bytes written; when
 * they are fewer than size, errno says why (EAGAIN: the patience is over).
 */
FRAGI_API size_t fragi_write_within(int fd, const void *bytes, size_t size, int64_t patience_ns);

#endif
