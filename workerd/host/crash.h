/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_CRASH_H
#define HOST_CRASH_H

/*
 * When a signal of a crash comes, one line on stderr says in which operator's callback its thread was; then
 * the signal does what it does by default, core file included. The ledger tells the same, but for setup and
 * initialize, and not which of several running operators it was.
 */
void host_crash_init(void);
/*
 * Ends the process at once, with the same status and one line, when exit is called and host_crash_orderly was
 * not. Again after libraries were loaded, since what is registered last is called first.
 */
void host_crash_guard_exit(void);
void host_crash_orderly(void);

#endif
