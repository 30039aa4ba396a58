/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_KEEPER_H
#define WRK_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/diag.h>
#include <wire/message.h>
#include <wire/tls.h>
#include <wire/users.h>

/*
 * The keeper: a child of workerd that outlives it for a moment, so that what its hosts have counted
 * is not lost when workerd alone is killed or crashes. It has a second descriptor of the connection
 * to the driver, and of each host its ledger and its process. When workerd is gone its hosts die.
 * The keeper waits for that; connects to the driver itself, with the id and the secret of the
 * session (workerd/keeper_link.h), and sends their final HOST_STATS; waits until the driver has
 * closed that connection; and closes workerd's. So the driver sees the end of workerd's connection
 * after the counts, and has no state in which it waits for them. workerd's own connection cannot
 * carry the counts: it may stand in the middle of a frame, and its encryption ends with workerd.
 *
 * It waits for the hosts WRK_KEEPER_END_NS at most, and for the driver WRK_KEEPER_LINK_NS: longer
 * than the usual time of death, so a driver that runs has closed the connection by then, and one
 * that is stopped for a moment still gets the counts. When the keeper is killed too, as with its
 * node or its control group, or the driver has given workerd up before, as after SIGSTOP, or closes
 * the keeper's connections again and again because strangers take its room, then workerd's
 * connection ends without the counts.
 */
#define WRK_KEEPER_END_NS 1000000000ll
#define WRK_KEEPER_LINK_NS 5000000000ll
#define WRK_KEEPER_NAME "frag-keeper" /* of its process */

/* zeroed: there is none, and the functions below do nothing */
struct wrk_keeper {
	pid_t pid; /* 0: none */
	int socket;
};

/*
 * Forks. This process has one thread. Returns 0 or negative errno with a sentence: there is none
 * then.
 * - tls: keys or certificates of workerd's connections. The keeper reads the files itself, and only
 *   when it has to report: so the keys are in the memory of one process less, and it has those that
 *   SIGHUP brought, without a further message. (It could not take over what workerd has read: the
 *   memory of keys is empty in children.)
 * - users: as in fw_connection_options
 */
int wrk_keeper_start(struct wrk_keeper *keeper, const struct fw_tls_config *tls,
		     const struct fw_users *users, struct frag_err *err);
/* fd: the connection's socket. Hosts that are added from now on belong to that session. */
void wrk_keeper_attached(struct wrk_keeper *keeper, uint64_t connection,
			 const struct fw_welcome *session, int fd);
/* It is closed here; the driver sees that once the keeper has closed it as well. */
void wrk_keeper_disconnected(struct wrk_keeper *keeper, uint64_t connection);
/* create: the HOST_CREATE that it was made for; exit_fd: readable once it has ended */
void wrk_keeper_add(struct wrk_keeper *keeper, uint32_t host, const struct fw_message *create,
		    int ledger_fd, int exit_fd);
/* It belongs to the session that was attached last, too. */
void wrk_keeper_adopt(struct wrk_keeper *keeper, uint32_t host);
/* Its end has been reported. */
void wrk_keeper_remove(struct wrk_keeper *keeper, uint32_t host);
/* Kills it. */
void wrk_keeper_end(struct wrk_keeper *keeper);

#endif
