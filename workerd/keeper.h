/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_KEEPER_H
#define WRK_KEEPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/diag.h>
#include <wire/message.h>

/*
 * The keeper: a child of workerd that outlives it for a moment, so that what its hosts have counted
 * is not lost when workerd alone is killed or crashes. It has a second descriptor of the connection
 * to the driver, and of each host its ledger and its process. When workerd is gone its hosts die.
 * The keeper waits for that, WRK_KEEPER_END_NS at most, sends their final HOST_STATS over the same
 * connection and closes it. The driver, which sees only then that the connection is closed, needs
 * to know nothing of all this. When the keeper is killed too, as with its node or its control
 * group, the connection is closed at once.
 *
 * The keeper cannot continue a frame that workerd had not written to its end. It closes the
 * connection then.
 */
#define WRK_KEEPER_END_NS 1000000000ll
#define WRK_KEEPER_NAME "frag-keeper" /* of its process */
#define WRK_KEEPER_SLOTS 8

/* zeroed: there is none, and the functions below do nothing */
struct wrk_keeper {
	pid_t pid; /* 0: none */
	int socket;
	/* in memory shared with it: by the id of a connection, whether a frame has left in part */
	_Atomic bool *is_mid_frame;
};

/*
 * Forks. This process has one thread. Returns 0 or negative errno with a sentence: there is none
 * then.
 */
int wrk_keeper_start(struct wrk_keeper *keeper, struct frag_err *err);
/*
 * Where the connection with this id is to note that a frame has left in part
 * (fw_connection_options); NULL: nowhere.
 */
_Atomic bool *wrk_keeper_mid_frame(const struct wrk_keeper *keeper, uint64_t connection);
/* fd: its socket. Hosts that are added from now on belong to it. */
void wrk_keeper_connected(struct wrk_keeper *keeper, uint64_t connection, int fd);
/* It is closed here; the driver sees that once the keeper has closed it as well. */
void wrk_keeper_disconnected(struct wrk_keeper *keeper, uint64_t connection);
/* create: the HOST_CREATE that it was made for; exit_fd: readable once it has ended */
void wrk_keeper_add(struct wrk_keeper *keeper, uint32_t host, const struct fw_message *create,
		    int ledger_fd, int exit_fd);
/* Its end has been reported. */
void wrk_keeper_remove(struct wrk_keeper *keeper, uint32_t host);
/* Kills it. */
void wrk_keeper_end(struct wrk_keeper *keeper);

#endif
