// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <base/handover.h>
#include <base/secret.h>
#include <base/stamp.h>
#include <var/variable.h>

#define LOG_TOPIC "variable"
#include <base/log.h>

/*
 * The server of shared variables. A process that needs a variable connects to the socket of its
 * name and sends the secret, which the driver gives to the processes of the application; the answer
 * is a descriptor. A process that has variables for others answers on a thread of its own; other
 * processes have no such thread.
 */
#define ASK_NS 2000000000
#define RETRY_NS 1000000
#define SHORTAGE_NS 10000000
#define ANSWER_MAGIC 0x31564646u /* "FFV1" */

static void socket_name(const struct fragi_variables *variables, const char *name,
			char out[FRAGI_HANDOVER_NAME_MAX + 1])
{
	size_t used = (size_t)snprintf(out, FRAGI_HANDOVER_NAME_MAX + 1, "frag-var-");

	for (size_t i = 0; i < FRAGI_VARIABLES_KEY_BYTES - FRAGI_VARIABLES_SECRET_BYTES; i++)
		used += (size_t)snprintf(out + used, FRAGI_HANDOVER_NAME_MAX + 1 - used, "%02x",
					 variables->config.key[i]);
	snprintf(out + used, FRAGI_HANDOVER_NAME_MAX + 1 - used, "-%s", name);
}

static const uint8_t *secret_of(const struct fragi_variables *variables)
{
	return variables->config.key + FRAGI_VARIABLES_KEY_BYTES - FRAGI_VARIABLES_SECRET_BYTES;
}

static void close_client(struct fragi_variable_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

/* Accepts a client. If there are too many, the oldest one is closed. */
static void accept_client(struct fragi_variables *variables, struct fragi_variable *variable)
{
	struct fragi_variable_server *server = &variables->server;
	struct fragi_variable_client *client = &server->clients[server->oldest];
	struct epoll_event readable = {.events = EPOLLIN, .data.ptr = client};
	const struct timespec shortage = {0, SHORTAGE_NS};
	int fd, r = fragi_handover_accept(variable->listener, &fd);

	if (r == -EMFILE || r == -ENFILE) /* the client waits, and epoll reports it again at once */
		nanosleep(&shortage, NULL);
	if (r < 0)
		return;
	close_client(client);
	*client = (struct fragi_variable_client){fd, variable};
	server->oldest = (server->oldest + 1) % FRAGI_VARIABLE_CLIENTS_MAX;
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &readable) < 0) {
		log_warn(NULL, "cannot hand variable %s to a reader (%s)", variable->name,
			 strerror(errno));
		close_client(client);
	}
}

/* The client has sent something: it gets the variable if that is the secret. */
static void answer(struct fragi_variables *variables, struct fragi_variable_client *client)
{
	const uint32_t magic = ANSWER_MAGIC;
	uint8_t secret[FRAGI_VARIABLES_SECRET_BYTES];
	int r = fragi_handover_receive(client->fd, secret, sizeof(secret), NULL, 0), fd;

	if (r == 0 && fragi_secret_equal(secret, secret_of(variables), sizeof(secret))) {
		fd = r = fragi_variable_memory_reopen(&client->variable->memory);
		if (fd >= 0) {
			r = fragi_handover_send(client->fd, &magic, sizeof(magic), &fd, 1);
			close(fd);
		}
		if (r < 0)
			log_warn(NULL, "cannot hand variable %s to a reader (%s)",
				 client->variable->name, frag_strerror(r));
	}
	explicit_bzero(secret, sizeof(secret));
	close_client(client);
}

static void *server_main(void *arg)
{
	struct fragi_variables *variables = arg;
	struct fragi_variable_server *server = &variables->server;
	const uintptr_t first = (uintptr_t)server->clients,
			end = (uintptr_t)(server->clients + FRAGI_VARIABLE_CLIENTS_MAX);
	struct epoll_event event;
	uintptr_t at;

	(void)prctl(PR_SET_NAME, "frag-variables");
	for (;;) {
		/* One event at a time: handling it may close the clients of others. */
		if (epoll_wait(server->epoll, &event, 1, -1) != 1)
			continue;
		at = (uintptr_t)event.data.ptr;
		if (at == 0)
			break;
		if (at >= first && at < end)
			answer(variables, event.data.ptr);
		else
			accept_client(variables, event.data.ptr);
	}
	return NULL;
}

static int start_thread(struct fragi_variables *variables)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&variables->server.thread, NULL, server_main, variables);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static void close_descriptors(struct fragi_variable_server *server)
{
	if (server->epoll >= 0)
		close(server->epoll);
	if (server->stop >= 0)
		close(server->stop);
	server->epoll = server->stop = -1;
}

static int start_server(struct fragi_variables *variables)
{
	struct fragi_variable_server *server = &variables->server;
	struct epoll_event stop = {.events = EPOLLIN, .data.ptr = NULL};
	int r = 0;

	if (server->epoll >= 0)
		return 0;
	for (uint32_t i = 0; i < FRAGI_VARIABLE_CLIENTS_MAX; i++)
		server->clients[i].fd = -1;
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	server->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->epoll < 0 || server->stop < 0 ||
	    epoll_ctl(server->epoll, EPOLL_CTL_ADD, server->stop, &stop) < 0)
		r = -errno;
	if (r == 0)
		r = start_thread(variables);
	if (r < 0)
		close_descriptors(server);
	return r;
}

int fragi_variable_server_add(struct fragi_variables *variables, struct fragi_variable *variable)
{
	struct epoll_event readable = {.events = EPOLLIN, .data.ptr = variable};
	char name[FRAGI_HANDOVER_NAME_MAX + 1];
	int r = start_server(variables);

	if (r < 0)
		return r;
	socket_name(variables, variable->name, name);
	r = fragi_handover_listen(name, &variable->listener);
	if (r == 0 &&
	    epoll_ctl(variables->server.epoll, EPOLL_CTL_ADD, variable->listener, &readable) < 0) {
		r = -errno;
		close(variable->listener);
		variable->listener = -1;
	}
	return r;
}

void fragi_variable_server_close(struct fragi_variables *variables)
{
	struct fragi_variable_server *server = &variables->server;
	const uint64_t one = 1;

	if (server->epoll < 0)
		return;
	(void)!write(server->stop, &one, sizeof(one));
	pthread_join(server->thread, NULL);
	for (uint32_t i = 0; i < FRAGI_VARIABLE_CLIENTS_MAX; i++)
		close_client(&server->clients[i]);
	close_descriptors(server);
}

static int connect_until(const char *name, int64_t end_ns, int *out_fd)
{
	const struct timespec again = {0, RETRY_NS};
	int r = fragi_handover_connect(name, out_fd);

	while (r == -EAGAIN && fragi_now_ns() < end_ns) {
		nanosleep(&again, NULL);
		r = fragi_handover_connect(name, out_fd);
	}
	return r == -ECONNREFUSED ? -ENOENT : r;
}

static int receive_until(int fd, int64_t end_ns, int *out_fd)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	uint32_t magic = 0;
	int64_t left_ns;
	int r;

	do {
		left_ns = end_ns - fragi_now_ns();
		if (left_ns <= 0)
			return -ETIMEDOUT;
		(void)poll(&readable, 1, (int)(left_ns / 1000000) + 1);
		r = fragi_handover_receive(fd, &magic, sizeof(magic), out_fd, 1);
	} while (r == -EAGAIN);
	if (r == 0 && magic != ANSWER_MAGIC) {
		close(*out_fd);
		r = -EBADMSG;
	}
	return r;
}

int fragi_variable_request(const struct fragi_variables *variables, const char *name,
			   struct fragi_variable_memory *out_memory)
{
	int64_t end_ns = fragi_now_ns() + ASK_NS;
	char socket[FRAGI_HANDOVER_NAME_MAX + 1];
	int fd, memory = -1, r;

	socket_name(variables, name, socket);
	r = connect_until(socket, end_ns, &fd);
	if (r < 0)
		return r;
	r = fragi_handover_send(fd, secret_of(variables), FRAGI_VARIABLES_SECRET_BYTES, NULL, 0);
	if (r == 0)
		r = receive_until(fd, end_ns, &memory);
	close(fd);
	return r < 0 ? r : fragi_variable_memory_open(out_memory, memory);
}
