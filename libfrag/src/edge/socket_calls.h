/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_SOCKET_CALLS_H
#define FRAGI_EDGE_SOCKET_CALLS_H

#include <stdatomic.h>
#include <sys/socket.h>

#include <base/diag.h>

/*
 * The calls with which a library makes connections and sends on them. A transport may stand on a
 * library that has no means of its own to keep strangers out, or that does not survive a send which
 * fails (modules/ucx/gate.c). That library calls these functions through the dynamic linker, which
 * looks in the executable first. So an executable that runs hosts exports functions of these names
 * (workerd/host/socket_calls.c). They pass every call to the C library, or to what a transport has
 * put in between.
 */
struct fragi_socket_calls {
	int (*listen)(int fd, int backlog);
	/* flags: as of accept4; 0 for accept */
	int (*accept)(int fd, struct sockaddr *address, socklen_t *size, int flags);
	/* caller: where it was called from */
	int (*connect)(int fd, const struct sockaddr *address, socklen_t size, const void *caller);
	int (*getpeername)(int fd, struct sockaddr *address, socklen_t *size);
	ssize_t (*send)(int fd, const void *data, size_t size, int flags, const void *caller);
	ssize_t (*sendmsg)(int fd, const struct msghdr *message, int flags, const void *caller);
};

struct fragi_socket_switch {
	const struct fragi_socket_calls *system;        /* the C library's */
	_Atomic(const struct fragi_socket_calls *) now; /* what the exported functions call */
};

/* By the executable, before main: it exports them. */
FRAGI_API void fragi_socket_switch_offer(struct fragi_socket_switch *offered);
/* NULL: the executable exports none. */
FRAGI_API struct fragi_socket_switch *fragi_socket_switch(void);

#endif
