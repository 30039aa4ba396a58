/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_HANDOVER_H
#define FRAGI_BASE_HANDOVER_H

#include <base/diag.h>

/*
 * Sockets over which processes of one machine hand each other descriptors: abstract unix sockets of
 * packets, each packet with some descriptors. Both ends are processes of the same user, as the
 * kernel vouches, or the call fails. The name of such a socket is known to all users; a secret in
 * the first packet has to show that the other end may have what it asks for. No call blocks, and no
 * socket is inherited by another program.
 */
#define FRAGI_HANDOVER_NAME_MAX 106 /* of a name, without the NUL */
#define FRAGI_HANDOVER_FDS_MAX 4    /* in a packet */

/* Returns 0; -EADDRINUSE: the name is taken; -ENAMETOOLONG; other negative errno. */
FRAGI_API int fragi_handover_listen(const char *name, int *out_fd);
/*
 * Returns 0; -ECONNREFUSED: nobody listens; -EAGAIN: too many connect at this moment; -EACCES: a
 * process of another user listens; other negative errno.
 */
FRAGI_API int fragi_handover_connect(const char *name, int *out_fd);
/* Returns 0; -EAGAIN: nobody waits; -EACCES: another user's process did; other negative errno. */
FRAGI_API int fragi_handover_accept(int listener, int *out_fd);
/* The descriptors stay the caller's. Returns 0; -EAGAIN: there is no room; other negative errno. */
FRAGI_API int fragi_handover_send(int fd, const void *bytes, size_t size, const int *fds,
				  size_t count);
/*
 * Takes a packet of exactly `size` bytes with exactly `count` descriptors. All descriptors of any
 * other are closed. Returns 0; -EAGAIN: nothing has come; -EBADMSG: another packet; -EMFILE: no
 * descriptor is left; -ECONNRESET: the other end is gone; other negative errno.
 */
FRAGI_API int fragi_handover_receive(int fd, void *out_bytes, size_t size, int *out_fds,
				     size_t count);

#endif
