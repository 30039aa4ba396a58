/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_CONNECTION_H
#define FW_CONNECTION_H

#include <uv.h>

#include <wire/frame.h>
#include <wire/tls.h>
#include <wire/users.h>

/*
 * A control connection on a libuv loop: TCP or a pipe, cut into frames, decoded; with a bounded
 * queue to send, a deadline for the peer's introduction and one for every frame. One thread, the
 * loop's. Nothing blocks.
 *
 * create, then uv_accept into, or uv_tcp_connect / uv_pipe_connect of, fw_connection_stream(), then
 * start. No frame is read or sent before the peer has proven who it is; then ready() is called. It
 * ends once, by closed(), whoever ended it; its memory is gone when closed() returns. A connection
 * that was never started ends by fw_connection_close as well.
 *
 * A key or certificate is one proof (tls, fw_connection_identity). Without, it is the user whose
 * process of this machine the peer is (users, fw_connection_user); a peer on another machine then
 * proves nothing, and is taken with --insecure only.
 */
struct fw_connection;

enum fw_stream_kind {
	FW_STREAM_TCP,
	FW_STREAM_PIPE,
};

struct fw_connection_ops {
	/* Takes message (fw_message_free). May send and close. */
	void (*message)(struct fw_connection *connection, struct fw_message *message, void *arg);
	/*
	 * After the last callback. reason: 0 the peer closed; -ECANCELED this side did; -ETIMEDOUT
	 * a deadline; -EBADMSG, -EMSGSIZE what it sent; -EPROTOTYPE the same before its first
	 * message, so over TCP it is no frag program; -EKEYREJECTED no key in common;
	 * -EACCES it is a process of a user that is not trusted; -ENOBUFS it does not read; or what
	 * the system said. sentence: the same in words, without the peer's name.
	 */
	void (*closed)(struct fw_connection *connection, int reason, const char *sentence,
		       void *arg);
	/*
	 * Once, before the first message, perhaps within start: the peer has proven who it is, and
	 * frames may be sent. NULL: nobody waits for it. May send and close.
	 */
	void (*ready)(struct fw_connection *connection, void *arg);
};

/* zero: the default */
struct fw_connection_options {
	int64_t admit_ns;   /* from start to fw_connection_admit; default 2 s */
	int64_t frame_ns;   /* from a frame's first byte to its last; default 10 s */
	size_t queue_bytes; /* to send; default 64 MiB */
	struct fw_tls *tls; /* borrowed; NULL: the stream is in clear */
	/* Without tls: whose processes may have the other end; borrowed. NULL: anybody's. */
	const struct fw_users *users;
	bool is_accepted; /* by this side: it sends REFUSED to a user that is not trusted */
};

/* ops is borrowed and must outlive the connection. Returns 0, -ENOMEM, or what libuv says. */
int fw_connection_create(uv_loop_t *loop, enum fw_stream_kind kind,
			 const struct fw_connection_ops *ops, void *arg,
			 const struct fw_connection_options *options,
			 struct fw_connection **out_connection);
uv_stream_t *fw_connection_stream(struct fw_connection *connection);
/* The stream is connected: reads from now on. Returns 0 or what libuv says; close it then. */
int fw_connection_start(struct fw_connection *connection);
/*
 * The peer has said who it is: its introduction's deadline and the limit of its frames
 * (FW_HELLO_MAX) go.
 */
void fw_connection_admit(struct fw_connection *connection);
/*
 * Sends a frame of fw_encode, which it takes in every case. Returns 0; -EPIPE when it is closing;
 * -ENOBUFS when the queue is full, and the connection ends; -ENOMEM.
 */
int fw_connection_send(struct fw_connection *connection, uint8_t *frame, size_t size);
/*
 * Sends what is queued, waits at most 1 s for the peer to close, then closes: with -ECANCELED if
 * the peer closed, which has then read everything, else with -ETIMEDOUT. No message comes any more.
 */
void fw_connection_finish(struct fw_connection *connection);
/* Closes now; closed() comes later from the loop. Again: nothing. */
void fw_connection_close(struct fw_connection *connection);
/* The same, and closed() gets this reason (negative errno) and sentence. */
void fw_connection_fail(struct fw_connection *connection, int reason, const char *sentence);
/* What the peer has proven by its key or certificate; NULL: not yet, or there is no TLS. */
const struct fw_identity *fw_connection_identity(const struct fw_connection *connection);
/*
 * Returns whether the peer is known to be a process of a user of this machine, and whose. From
 * ready() on.
 */
bool fw_connection_user(const struct fw_connection *connection, uid_t *out_user);
/* "10.0.0.7:41234"; "process 4711 of user 1000" of a unix socket; "?" before start. */
const char *fw_connection_peer(const struct fw_connection *connection);
size_t fw_connection_queued(const struct fw_connection *connection); /* bytes still to send */
/* Whether no more bytes than these wait, here and in the kernel. For what may be dropped. */
bool fw_connection_has_room(const struct fw_connection *connection, size_t most);
#define FW_CONNECTION_IDLE_BYTES 16384 /* as many delay nothing for long */

#endif
