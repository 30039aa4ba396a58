/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_UCX_GATE_H
#define FRAGI_UCX_GATE_H

#include <base/diag.h>

#include "doors.h"

/*
 * UCX does what the peer of a TCP connection says, down to writing memory and to abort(). So no
 * byte of a connection reaches UCX before its preface has proved that a host of the same
 * application opened it. The gate stands in the socket calls of UCX (edge/socket_calls.h), one for
 * each transport:
 *
 * - listen: the kernel reports a connection only once it has sent something (TCP_DEFER_ACCEPT), so
 *   those that say nothing cost no descriptor, and no thread waits for them.
 * - accept: takes a connection, reads the preface without waiting, and closes it unless the preface
 *   is right; UCX never sees it.
 * - connect: remembers a socket that connects to the data port of a host of this application.
 * - getpeername, by which UCX learns that it is connected: sends the preface ahead of UCX.
 * - send, sendmsg: one that fails reaches UCX as the end of the connection, since UCX does not
 *   survive it in the middle of some messages.
 *
 * Which sockets are UCX's is known exactly: those that listen while ucp_worker_create runs on this
 * thread, and those that UCX's own code connects to an address which a peer has given as its data
 * port; from then on each is recognised by the cookie that the kernel gave it. All others pass
 * untouched: those of operators, whichever thread they are on, and those of a UCX that an operator
 * uses (but its failed sends, if both use the same libraries). On the path of a message stands one
 * jump.
 */
struct ucx_gate;

/*
 * Fails with a sentence where the executable exports no socket calls: UCX would listen ungated.
 * data_key: FRAGI_DATA_KEY_BYTES.
 */
int ucx_gate_create(const uint8_t *data_key, struct ucx_gate **out_gate, struct frag_err *err);
/* After UCX's worker is destroyed. NULL: nothing. */
void ucx_gate_destroy(struct ucx_gate *gate);

/* What listens on this thread from here to there belongs to the gate; what did before does not. */
void ucx_gate_open(struct ucx_gate *gate);
void ucx_gate_close(void);
/* What it listens on since then; the gate's. */
const struct ucx_entrance *ucx_gate_entrance(const struct ucx_gate *gate);
/* Connections to that host get a preface from now on. Returns 0 or -ENOMEM. */
int ucx_gate_peer(struct ucx_gate *gate, const struct ucx_entrance *peer);
/*
 * What came of connecting to that host. out_dial: receives where. Returns 0 when it is connected,
 * -EINPROGRESS while nothing has answered, another errno that the kernel gave, or -EALREADY when
 * UCX has not tried.
 */
int ucx_gate_outcome(struct ucx_gate *gate, const struct ucx_entrance *peer,
		     uint8_t out_dial[UCX_END_BYTES]);

/*
 * failed_send.c: a send of UCX's has failed with this errno. Closes the connection. Returns the
 * errno to report to UCX. may_insist: UCX perhaps calls again at once until it does not hear that
 * there is no room.
 */
int ucx_failed_send(int fd, int reason, bool may_insist);
/* By which the kernel tells a socket from all others; 0: it is none. */
uint64_t ucx_cookie_of(int fd);

#endif
