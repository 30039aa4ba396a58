/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_LISTENER_H
#define DRV_LISTENER_H

#include <uv.h>

#include <base/units.h>
#include <driverd/local_socket.h>
#include <wire/connection.h>

/* So many connections are taken before the loop goes on with those that are there. */
#define DRV_TAKEN_AT_ONCE 16

/*
 * A socket at which peers arrive: TCP, or the unix socket for clients of this machine. Both lead to
 * the same function of the owner, so the same bounds hold for all who come.
 */
struct drv_listener {
	enum fw_stream_kind kind;
	char address[300]; /* for people: "127.0.0.1:57777", or the path */
	uint16_t port;     /* TCP */
	/* the owner's: accepts the connection. Returns 0, or -ENOMEM: it is asked again later. */
	int (*take)(struct drv_listener *listener, void *arg);
	void *arg;
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} server;
	uv_timer_t retry;   /* a connection waits, for memory or for others to have their turn */
	uint64_t turn_ms;   /* the loop's time when the last one was taken ... */
	unsigned int taken; /* ... and how many were taken at that time */
	struct drv_local_socket local;
};

/* Closes by drv_listener_close, whether it was opened or not. */
void drv_listener_init(struct drv_listener *listener, uv_loop_t *loop, enum fw_stream_kind kind,
		       int (*take)(struct drv_listener *listener, void *arg), void *arg);
/* Opens a listener on TCP (FW_STREAM_TCP). Returns 0 or negative errno with a sentence. */
int drv_listener_open(struct drv_listener *listener, const struct fragi_address *wanted,
		      struct frag_err *err);
/* Opens the unix socket of a driver with that port (FW_STREAM_PIPE). Returns as above. */
int drv_listener_open_local(struct drv_listener *listener, uint16_t port,
			    const struct fw_users *users, struct frag_err *err);
void drv_listener_close(struct drv_listener *listener);

#endif
