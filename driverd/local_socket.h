/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_LOCAL_SOCKET_H
#define DRV_LOCAL_SOCKET_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include <base/diag.h>
#include <wire/users.h>

/*
 * The unix socket at which clients of this machine reach a driver: PORT.sock in a folder of the
 * driver's user, which is, the first that there is:
 * - $RUNTIME_DIRECTORY, which systemd makes for a service
 * - $XDG_RUNTIME_DIR/frag, if that folder is this user's
 * - /run/frag of root, /tmp/frag-UID of another user
 * Only its user may write there, so nobody else can put another socket in its place. Who may
 * connect follows from users: the permissions of the files only keep out whom nothing allows; the
 * kernel says who has connected.
 */
struct drv_local_socket {
	struct sockaddr_un address; /* sun_path empty: there is none */
	int folder;
	dev_t device; /* of the socket's file */
	ino_t inode;
};

/*
 * Makes the socket, which listens, in the place of one whose driver is gone.
 * - out_fd: the caller's to close
 * Returns 0, or negative errno with a sentence: there is none then.
 */
int drv_local_socket_open(struct drv_local_socket *local, uint16_t port,
			  const struct fw_users *users, int *out_fd, struct frag_err *err);
/*
 * Removes its file, unless another one has taken its place. Before the socket itself is closed: so
 * long no other file has the same number. Zeroed, or closed before: nothing.
 */
void drv_local_socket_close(struct drv_local_socket *local);

#endif
