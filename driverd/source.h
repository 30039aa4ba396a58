/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_SOURCE_H
#define DRV_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Where a connection comes from, as far as it shows before the peer has said anything: a user of
 * this machine, else a network address. Of IPv6 the first 64 bits count, because one machine has
 * all addresses of such a network.
 */
struct drv_source {
	bool is_user;
	uid_t user;
	uint8_t network[16];
};

/* fd: a connected socket. A source that is not known is all zero. */
void drv_source_read(int fd, struct drv_source *out_source);
bool drv_source_is_same(const struct drv_source *a, const struct drv_source *b);

#endif
