/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RUN_CRASH_H
#define FRAGI_RUN_CRASH_H

#include <base/diag.h>

/*
 * When a signal of a crash comes, one line on stderr says in which operator's callback its thread
 * was; then the signal does what it does by default, core file included. The ledger shows the same,
 * but for setup and initialize, and not which of several running operators it was.
 */
FRAGI_API void fragi_crash_init(const char *program);
/*
 * Ends the process at once, with the same status and one line, when exit is called and
 * fragi_crash_orderly was not. Again after libraries were loaded, since what is registered last is
 * called first.
 */
FRAGI_API void fragi_crash_guard_exit(void);
FRAGI_API void fragi_crash_orderly(void);

#endif
