/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIEWER_LISTENER_H
#define VIEWER_LISTENER_H

#include <frag/frag.h>

#define LISTENER_URL_SIZE 80

/* A TCP socket that listens for browsers. */
struct listener {
	int fd;
	bool is_loopback; /* nobody outside of this machine reaches it */
	char url[LISTENER_URL_SIZE];
};

/*
 * - address: an IPv4 or IPv6 address
 * - port: 0: the kernel chooses one
 * Returns 0, or a failure with a sentence; then *out is untouched.
 */
int viewer_listener_open(const char *address, int64_t port, struct listener *out,
			 struct frag_err *err);

#endif
