// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "driver"
#include <driverd/connections.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/log.h>
#include <base/stamp.h>
#include <driverd/core/core.h>
#include <wire/connection.h>

#define COMPLAIN_NS INT64_C(1000000000) /* once in */
#define FDS_KEPT 8                      /* descriptors that no connection gets */

struct drv_connection *drv_connections_add(struct drv_connections *connections)
{
	struct drv_connection *connection = fragi_calloc(1, sizeof(*connection));

	if (connection != NULL && connections->count == connections->capacity) {
		size_t capacity = connections->capacity == 0 ? 64 : connections->capacity * 2;
		struct drv_connection **items =
			fragi_realloc(connections->items, capacity * sizeof(*items));

		if (items == NULL) {
			fragi_free(connection);
			return NULL;
		}
		connections->items = items;
		connections->capacity = capacity;
	}
	if (connection == NULL)
		return NULL;
	connection->id = ++connections->last_id;
	connections->items[connections->count++] = connection;
	connections->strangers++;
	return connection;
}

static size_t index_of(const struct drv_connections *connections, uint64_t id)
{
	size_t low = 0, high = connections->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (connections->items[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct drv_connection *drv_connections_find(const struct drv_connections *connections, uint64_t id)
{
	size_t i = index_of(connections, id);

	return i < connections->count && connections->items[i]->id == id ? connections->items[i]
									 : NULL;
}

static bool is_stranger(const struct drv_connection *connection)
{
	return !connection->admitted && !connection->cut;
}

static size_t strangers_of(const struct drv_connections *connections,
			   const struct drv_source *source)
{
	size_t count = 0;

	for (size_t i = 0; i < connections->count; i++)
		count += is_stranger(connections->items[i]) &&
			 drv_source_is_same(&connections->items[i]->source, source);
	return count;
}

bool drv_connection_message(const struct drv_connection *connection, struct fw_message *message,
			    const struct fw_users *users, char user[FW_USER_NAME_MAX],
			    struct drv_event *out)
{
	uid_t number;

	if (connection->closing) {
		fw_message_free(message);
		return false;
	}
	*out = (struct drv_event){.kind = DRV_EVENT_MESSAGE,
				  .connection = connection->id,
				  .peer = fw_connection_peer(connection->stream),
				  .identity = fw_connection_identity(connection->stream),
				  .is_local = connection->is_local,
				  .message = message};
	if (message->kind == FW_HELLO && fw_connection_user(connection->stream, &number)) {
		out->user = fw_user_name(number, user);
		out->user_roles = fw_users_roles(users, number);
		out->is_admin = number == 0 || number == geteuid();
	}
	return true;
}

bool drv_connection_drops(const struct drv_connection *connection, const struct drv_action *action)
{
	if (!action->may_drop)
		return false;
	return action->room_bytes > 0
		       ? fw_connection_queued(connection->stream) > action->room_bytes
		       : !fw_connection_has_room(connection->stream, FW_CONNECTION_IDLE_BYTES);
}

struct drv_connection *drv_connections_displaced(const struct drv_connections *connections)
{
	struct drv_connection *found = NULL;
	size_t most = 0, count;

	for (size_t i = 0; i < connections->count; i++) {
		if (!is_stranger(connections->items[i]))
			continue;
		count = strangers_of(connections, &connections->items[i]->source);
		if (count > most) {
			most = count;
			found = connections->items[i];
		}
	}
	return found;
}

void drv_connections_admit(struct drv_connections *connections, struct drv_connection *connection)
{
	connections->strangers -= is_stranger(connection);
	connection->admitted = true;
}

void drv_connections_cut(struct drv_connections *connections, struct drv_connection *connection)
{
	connections->strangers -= is_stranger(connection);
	connection->closing = connection->cut = true;
}

void drv_connections_remove(struct drv_connections *connections, struct drv_connection *connection)
{
	size_t i = index_of(connections, connection->id);

	drv_connections_cut(connections, connection);
	connections->count--;
	memmove(connections->items + i, connections->items + i + 1,
		(connections->count - i) * sizeof(*connections->items));
	fragi_free(connection);
}

/*
 * Whether an error of a stranger may be logged: so seldom that a scan of the port does not fill the
 * log.
 */
static bool may_complain(struct drv_connections *connections)
{
	int64_t now_ns = fragi_now_ns();
	bool may = now_ns >= connections->complain_at_ns;

	if (may)
		connections->complain_at_ns = now_ns + COMPLAIN_NS;
	return may;
}

bool drv_connections_has_one_too_many(struct drv_connections *connections,
				      struct fw_connection *stream, int fds_max)
{
	int fd;

	if (uv_fileno((uv_handle_t *)fw_connection_stream(stream), &fd) < 0 ||
	    fd < fds_max - FDS_KEPT)
		return false;
	if (may_complain(connections))
		log_warn(
			NULL,
			"closed the connection of %s: this process may have %d files open and has no more than it needs itself; raise the limit (ulimit -n)",
			fw_connection_peer(stream), fds_max);
	return true;
}

/*
 * Whether the peer has only closed the connection, which is no error: health checks connect and go.
 * -ENOENT: it was gone before the kernel could say whose process it is.
 */
static bool has_gone(int reason)
{
	return reason == 0 || reason == -ECONNRESET || reason == -ESHUTDOWN || reason == -ENOENT ||
	       reason == -ECANCELED;
}

void drv_connections_log_stranger(struct drv_connections *connections, const char *peer, int reason,
				  const char *sentence)
{
	bool odd = !has_gone(reason) && may_complain(connections);

	fragi_log(odd ? FRAGI_LOG_WARN : FRAGI_LOG_DEBUG, NULL, "closed the connection of %s: %s",
		  peer, sentence);
}

void drv_connections_fini(struct drv_connections *connections)
{
	fragi_free(connections->items);
	*connections = (struct drv_connections){0};
}
