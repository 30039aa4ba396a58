/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_CONNECTIONS_H
#define DRV_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fw_connection;

/*
 * The connections of the control port, by id. Ids count up and are never used again, so the table
 * stays sorted by itself.
 */
struct drv_connection {
	uint64_t id;
	struct fw_connection *stream;
	void *shell;
	bool is_local; /* it came over the unix socket */
	bool admitted; /* it has sent HELLO, and was accepted */
	bool closing;  /* the core has given it up, or we have */
};

/* zeroed: empty */
struct drv_connections {
	struct drv_connection **items;
	size_t count, capacity;
	uint64_t last_id;
	size_t strangers; /* not admitted, not closing */
};

struct drv_connection *
drv_connections_add(struct drv_connections *connections); /* NULL: no memory */
void drv_connections_remove(struct drv_connections *connections,
			    struct drv_connection *connection); /* frees it */
struct drv_connection *drv_connections_find(const struct drv_connections *connections, uint64_t id);
struct drv_connection *drv_connections_oldest_stranger(const struct drv_connections *connections);
void drv_connections_admit(struct drv_connections *connections, struct drv_connection *connection);
void drv_connections_close(struct drv_connections *connections,
			   struct drv_connection *connection); /* marks it as closing */
void drv_connections_fini(struct drv_connections *connections);

#endif
