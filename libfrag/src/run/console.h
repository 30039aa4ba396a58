/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RUN_CONSOLE_H
#define FRAGI_RUN_CONSOLE_H

#include <base/diag.h>

/*
 * What operators print. While the console stands, stdout and stderr are streams of its own: a line
 * that is written inside an operator's callback goes to descriptor 2 with `fragment.operator: `
 * before it, whole, in one write; lines of different threads never mix. What is written outside of
 * callbacks passes through unchanged, stdout's to descriptor 1. A line longer than 2 KiB is cut
 * into several. What bypasses stdio (write(2), a child process) is not prefixed. A line waits up to
 * a second for its reader; then lines are dropped and counted, as log lines are (base/log.h).
 *
 * begin: before the first thread and before plugins are loaded. Returns 0 or -ENOMEM. end: after
 * the last callback; unfinished lines of the calling thread are written. Neither nests.
 */
FRAGI_API int fragi_console_begin(void);
FRAGI_API void fragi_console_end(void);

#endif
