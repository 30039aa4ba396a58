/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_REPORTER_H
#define WRK_REPORTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/diag.h>
#include <wire/message.h>
#include <wire/tls.h>
#include <wire/users.h>

/*
 * The crash reporter: a child of workerd that outlives it for a moment, so that what its hosts have
 * counted is not lost when workerd alone is killed or crashes. It has a second descriptor of the
 * connection to the driver, and of each host its ledger and its process. When workerd is gone its
 * hosts die. The reporter waits for that; connects to the driver itself, with the id and the secret
 * of the session (workerd/reporter_link.h), and sends their final HOST_STATS; waits until the
 * driver has closed that connection; and closes workerd's. So the driver sees the end of workerd's
 * connection after the counts, and has no state in which it waits for them. workerd's own
 * connection cannot carry the counts: it may stand in the middle of a frame, and its encryption
 * ends with workerd.
 *
 * The reporter waits for the hosts WRK_REPORTER_END_NS at most, and for the driver
 * WRK_REPORTER_LINK_NS: longer than the usual time of death, so a driver that runs has closed the
 * connection by then, and one that is stopped for a moment still gets the counts. workerd's
 * connection ends without the counts when the reporter is killed too (with its node or its control
 * group), when the driver has given workerd up before (as after SIGSTOP), and when the driver keeps
 * closing the reporter's connections because strangers take its room.
 */
#define WRK_REPORTER_END_NS 1000000000ll
#define WRK_REPORTER_LINK_NS 5000000000ll
#define WRK_REPORTER_NAME "frag-reporter" /* of its process */

/* zeroed: there is no reporter, and the functions below do nothing */
struct wrk_reporter {
	pid_t pid; /* 0: none */
	int socket;
};

/*
 * Forks the reporter; this process must have one thread. Returns 0, or negative errno with a
 * sentence: there is no reporter then.
 * - tls: keys or certificates of workerd's connections. The reporter reads the files itself, and
 *   only when it has to report: so the keys are in the memory of one process less, and it reads the
 *   ones that SIGHUP brought, without a further message. (It could not inherit what workerd has
 *   read: the memory of keys is empty in children.)
 * - users: as in fw_connection_options
 */
int wrk_reporter_start(struct wrk_reporter *reporter, const struct fw_tls_config *tls,
		       const struct fw_users *users, struct frag_err *err);
/* fd: the connection's socket. Hosts that are added from now on belong to that session. */
void wrk_reporter_attached(struct wrk_reporter *reporter, uint64_t connection,
			   const struct fw_welcome *session, int fd);
/* The connection is closed here; the driver sees that once the reporter has closed it as well. */
void wrk_reporter_disconnected(struct wrk_reporter *reporter, uint64_t connection);
/* Adds a host. create: its HOST_CREATE; exit_fd: readable once the host has ended. */
void wrk_reporter_add(struct wrk_reporter *reporter, uint32_t host, const struct fw_message *create,
		      int ledger_fd, int exit_fd);
/* The host now belongs to the session that was attached last. */
void wrk_reporter_adopt(struct wrk_reporter *reporter, uint32_t host);
/* Removes a host whose end has been reported. */
void wrk_reporter_remove(struct wrk_reporter *reporter, uint32_t host);
/* Kills the reporter. */
void wrk_reporter_end(struct wrk_reporter *reporter);

#endif
