/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_CONNECTIONS_H
#define DRV_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <driverd/source.h>
#include <wire/users.h>

struct drv_action;
struct drv_event;
struct fw_connection;
struct fw_message;

/*
 * The connections of the control port, by id. Ids count up and are never used again, so the table
 * stays sorted by itself.
 */
struct drv_connection {
	uint64_t id;
	struct fw_connection *stream;
	void *shell;
	bool is_local; /* it came over the unix socket */
	struct drv_source source;
	bool admitted; /* it has sent HELLO, and was accepted */
	bool closing;  /* the core has given it up; it may still read why */
	bool cut;      /* closed at once */
};

/* zeroed: empty */
struct drv_connections {
	struct drv_connection **items;
	size_t count, capacity;
	uint64_t last_id;
	size_t strangers; /* not admitted, not cut */
	int64_t complain_at_ns;
};

struct drv_connection *
drv_connections_add(struct drv_connections *connections); /* NULL: no memory */
void drv_connections_remove(struct drv_connections *connections,
			    struct drv_connection *connection); /* frees it */
struct drv_connection *drv_connections_find(const struct drv_connections *connections, uint64_t id);
/*
 * Makes the core's event of a message; takes message. user: holds the name of its user as long as
 * the event needs it. Returns false: the connection is closing, and nothing more is heard of it.
 */
bool drv_connection_message(const struct drv_connection *connection, struct fw_message *message,
			    const struct fw_users *users, char user[FW_USER_NAME_MAX],
			    struct drv_event *out);
/* Whether DRV_DO_SEND is not done, because too much waits to be sent. */
bool drv_connection_drops(const struct drv_connection *connection, const struct drv_action *action);
/*
 * The stranger that goes when there are too many: the oldest of the source that has most of them,
 * so that strangers of one source do not displace those of others. NULL: there are none.
 */
struct drv_connection *drv_connections_displaced(const struct drv_connections *connections);
void drv_connections_admit(struct drv_connections *connections, struct drv_connection *connection);
void drv_connections_cut(struct drv_connections *connections,
			 struct drv_connection *connection); /* marks it as closed */
/*
 * Whether a connection takes one of the last of fds_max descriptors, which no connection gets: they
 * are for the summary, and to refuse with words. Logs so.
 */
bool drv_connections_has_one_too_many(struct drv_connections *connections,
				      struct fw_connection *stream, int fds_max);
void drv_connections_log_stranger(struct drv_connections *connections, const char *peer, int reason,
				  const char *sentence); /* whose connection was closed */
void drv_connections_fini(struct drv_connections *connections);

#endif
