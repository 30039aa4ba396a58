/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RUN_CRASH_H
#define FRAGI_RUN_CRASH_H

#include <base/crash_note.h>
#include <base/diag.h>

/*
 * When a signal of a crash comes, one line on stderr says in which operator's callback its thread
 * was; then the signal does what it does by default, core file included. note_fd gets a struct
 * fragi_crash_note with the same; -1: none.
 */
FRAGI_API void fragi_crash_init(const char *program, int note_fd);
/*
 * Ends this process by SIGABRT, with this sentence instead of the place of a crash: a library that
 * frag uses cannot go on.
 */
FRAGI_API _Noreturn void fragi_crash_give_up(const char *cause);
/* Leaves that note for a process that will end, about the callback that this thread is in. */
FRAGI_API void fragi_crash_leave_note(void);
/*
 * Ends the process at once, with the same status and one line, when exit is called and
 * fragi_crash_orderly was not. Again after libraries were loaded, since what is registered last is
 * called first.
 */
FRAGI_API void fragi_crash_guard_exit(void);
FRAGI_API void fragi_crash_orderly(void);

#endif
