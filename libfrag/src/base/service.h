/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_SERVICE_H
#define FRAGI_BASE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * What a daemon reports to the service manager that has started it, by the protocol of
 * sd_notify(3): a datagram for each report, to the unix socket that NOTIFY_SOCKET names. No report
 * blocks, and one that the socket does not take is dropped. Without a service manager these
 * functions do nothing. All calls come from the thread of the event loop.
 */

/*
 * Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and removes them from the environment, so
 * that no child reports in place of this process. Once, before any child.
 */
void fragi_service_open(void);
bool fragi_service_is_managed(void); /* a service manager has started this process */
/*
 * Returns how often fragi_service_alive is to be called: half the time after which the service
 * manager restarts a process that is silent. 0: it does not watch this process.
 */
int64_t fragi_service_watchdog_ns(void);
/* From a timer of the event loop, so that the reports end when the loop hangs. */
void fragi_service_alive(void);
void fragi_service_ready(void); /* the daemon serves */
void fragi_service_stopping(void);
/* A line for people (systemctl status). The same text as before is not sent again. */
void fragi_service_status(const char *text);

#endif
