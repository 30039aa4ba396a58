// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "run"
#include <fragctl/run_clients.h>

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/log.h>

#define STRANGERS_MAX 16 /* that have not said who they are */

static void on_message(struct fw_connection *stream, struct fw_message *message, void *arg)
{
	struct drv_connection *connection = arg;
	struct ctl_run_clients *clients = connection->shell;
	char user[FW_USER_NAME_MAX];
	struct drv_event event;

	(void)stream;
	if (!drv_connection_message(connection, message, &clients->users, user, &event))
		return;
	event.connection |= RUNNER_CLIENT;
	runner_step(clients->runner, &event);
}

static void on_closed(struct fw_connection *stream, int reason, const char *sentence, void *arg)
{
	struct drv_connection *connection = arg;
	struct ctl_run_clients *clients = connection->shell;

	(void)stream;
	(void)reason;
	if (!connection->closing && connection->admitted)
		runner_step(clients->runner,
			    &(struct drv_event){.kind = DRV_EVENT_CLOSED,
						.connection = RUNNER_CLIENT | connection->id,
						.text = sentence});
	drv_connections_remove(&clients->connections, connection);
}

static const struct fw_connection_ops connection_ops = {on_message, on_closed};

static int take_connection(struct drv_listener *listener, void *arg)
{
	struct ctl_run_clients *clients = arg;
	const struct fw_connection_options options = {.users = &clients->users,
						      .is_accepted = true};
	struct drv_connection *connection = drv_connections_add(&clients->connections);
	int r = connection == NULL
			? -ENOMEM
			: fw_connection_create(clients->loop, FW_STREAM_PIPE, &connection_ops,
					       connection, &options, &connection->stream);

	if (r != 0) {
		if (connection != NULL)
			drv_connections_remove(&clients->connections, connection);
		return r;
	}
	connection->shell = clients;
	connection->is_local = true;
	r = uv_accept(&listener->server.stream, fw_connection_stream(connection->stream));
	if (r == 0)
		r = fw_connection_start(connection->stream);
	if (r < 0 || clients->connections.strangers > STRANGERS_MAX) {
		drv_connections_cut(&clients->connections, connection);
		fw_connection_close(connection->stream);
	}
	return 0;
}

/* Holds a number that no driver of this machine can have. Returns 0 or negative errno. */
static int hold_port(struct ctl_run_clients *clients, uint16_t *out_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	struct sockaddr *any = (struct sockaddr *)(void *)&address;
	socklen_t size = sizeof(address);

	clients->port_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (clients->port_fd < 0 || bind(clients->port_fd, any, size) < 0 ||
	    getsockname(clients->port_fd, any, &size) < 0)
		return -errno;
	*out_port = ntohs(address.sin_port);
	return 0;
}

void ctl_run_clients_open(struct ctl_run_clients *clients, uv_loop_t *loop, struct runner *runner)
{
	struct frag_err err = FRAG_ERR_INIT;
	uint16_t port = 0;
	int r;

	*clients = (struct ctl_run_clients){.runner = runner, .loop = loop, .port_fd = -1};
	drv_listener_init(&clients->listener, loop, FW_STREAM_PIPE, take_connection, clients);
	r = fw_users_init(&clients->users, "fragctl run", NULL, 0, false, &err);
	if (r == 0)
		r = hold_port(clients, &port);
	if (r == 0)
		r = drv_listener_open_local(&clients->listener, port, &clients->users, &err);
	if (r < 0)
		log_debug(NULL, "nobody can look at this run: %s",
			  frag_err_set(&err, r, "%s", frag_strerror(r)) < 0 ? err.text : "");
}

void ctl_run_clients_act(struct ctl_run_clients *clients, struct drv_action *action)
{
	struct drv_connection *connection =
		drv_connections_find(&clients->connections, action->connection & ~RUNNER_CLIENT);

	if (connection == NULL || connection->closing)
		return;
	if (action->kind == DRV_DO_ADMIT) {
		drv_connections_admit(&clients->connections, connection);
		fw_connection_admit(connection->stream);
	} else if (action->kind == DRV_DO_CLOSE) {
		connection->closing = true;
		fw_connection_finish(connection->stream);
	} else if (!drv_connection_drops(connection, action)) {
		fw_connection_send(connection->stream, action->frame, action->frame_bytes);
		action->frame = NULL;
	}
}

void ctl_run_clients_close(struct ctl_run_clients *clients)
{
	if (clients->runner == NULL)
		return;
	drv_listener_close(&clients->listener);
	for (size_t i = 0; i < clients->connections.count; i++) {
		clients->connections.items[i]->closing = true;
		fw_connection_finish(clients->connections.items[i]->stream);
	}
}

void ctl_run_clients_fini(struct ctl_run_clients *clients)
{
	drv_connections_fini(&clients->connections);
	fw_users_fini(&clients->users);
	if (clients->runner != NULL && clients->port_fd >= 0)
		close(clients->port_fd);
}
