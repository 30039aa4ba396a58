/* SPDX-License-Identifier: Apache-2.0 */
#include <workerd/link.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_TOPIC "worker"
#include <base/alloc.h>
#include <base/log.h>
#include <wire/connection.h>

#define ADDRESSES_MAX 8

struct wrk_link {
	/* constant once made */
	uint64_t id;
	const struct wrk_link_ops *ops;
	void *arg;
	uv_loop_t *loop;
	/* the loop's */
	uv_getaddrinfo_t lookup;
	uv_connect_t connect;
	struct sockaddr_storage addresses[ADDRESSES_MAX];
	int address_count, address_next;
	struct fw_connection *connection;
	uint64_t seq;
	uint32_t refused; /* bits of kinds that could not be encoded: said once each */
	bool looking_up, connecting, up, ended; /* ended: nobody is told anything more */
	char why[256];
};

static void try_next(struct wrk_link *link);

static void free_if_done(struct wrk_link *link)
{
	if (!link->ended || link->connection != NULL || link->looking_up || link->connecting)
		return;
	link->ops->freed(link->arg, link);
	fragi_free(link);
}

static void give_up(struct wrk_link *link)
{
	if (!link->ended) {
		link->ended = true;
		link->ops->failed(link->arg, link->id, link->why);
	}
}

static void on_message(struct fw_connection *connection, struct fw_message *message, void *arg)
{
	struct wrk_link *link = arg;

	(void)connection;
	if (link->ended)
		fw_message_free(message);
	else
		link->ops->message(link->arg, link->id, message);
}

static void on_closed(struct fw_connection *connection, int reason, const char *sentence, void *arg)
{
	struct wrk_link *link = arg;

	(void)connection;
	if (reason ==
	    -ENOMEM) /* also when nobody is told any more: the driver misses what was to be sent */
		log_error(NULL, "gave up the connection to the driver: %s", sentence);
	link->connection = NULL;
	if (!link->ended && link->up) {
		link->ended = true;
		link->ops->lost(link->arg, link->id, sentence);
	} else if (!link->ended) {
		try_next(link);
	}
	free_if_done(link);
}

static const struct fw_connection_ops connection_ops = {on_message, on_closed};

static void local_address(struct fw_connection *connection, char *out, size_t size)
{
	struct sockaddr_storage address;
	int length = sizeof(address);

	out[0] = '\0';
	if (uv_tcp_getsockname((uv_tcp_t *)(void *)fw_connection_stream(connection),
			       (struct sockaddr *)&address, &length) < 0)
		return;
	if (address.ss_family == AF_INET)
		uv_ip4_name((const struct sockaddr_in *)(const void *)&address, out, size);
	else if (address.ss_family == AF_INET6)
		uv_ip6_name((const struct sockaddr_in6 *)(const void *)&address, out, size);
}

static void on_connect(uv_connect_t *request, int status)
{
	struct wrk_link *link = request->data;
	char local[64];

	link->connecting = false;
	if (link->connection == NULL || link->ended) {
		free_if_done(link);
		return;
	}
	if (status == 0)
		status = fw_connection_start(link->connection);
	if (status < 0) {
		snprintf(link->why, sizeof(link->why), "%s", frag_strerror(status));
		fw_connection_close(link->connection); /* on_closed tries the next address */
		return;
	}
	fw_connection_admit(link->connection);
	link->up = true;
	local_address(link->connection, local, sizeof(local));
	link->ops->connected(link->arg, link->id, local);
}

static void try_next(struct wrk_link *link)
{
	int r;

	if (link->address_next == link->address_count) {
		give_up(link);
		return;
	}
	r = fw_connection_create(link->loop, FW_STREAM_TCP, &connection_ops, link, NULL,
				 &link->connection);
	if (r < 0) {
		snprintf(link->why, sizeof(link->why), "%s", frag_strerror(r));
		give_up(link);
		return;
	}
	link->connect.data = link;
	r = uv_tcp_connect(
		&link->connect, (uv_tcp_t *)(void *)fw_connection_stream(link->connection),
		(const struct sockaddr *)&link->addresses[link->address_next++], on_connect);
	if (r < 0) {
		snprintf(link->why, sizeof(link->why), "%s", frag_strerror(r));
		fw_connection_close(link->connection);
		return;
	}
	link->connecting = true;
}

static void on_lookup(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
	struct wrk_link *link = request->data;

	link->looking_up = false;
	for (struct addrinfo *a = found; a != NULL && link->address_count < ADDRESSES_MAX;
	     a = a->ai_next)
		if (a->ai_addrlen <= sizeof(link->addresses[0]))
			memcpy(&link->addresses[link->address_count++], a->ai_addr, a->ai_addrlen);
	uv_freeaddrinfo(found);
	if (!link->ended) {
		snprintf(link->why, sizeof(link->why), "its name cannot be looked up: %s",
			 status < 0 ? uv_strerror(status) : "it has no address");
		try_next(link);
	}
	free_if_done(link);
}

int wrk_link_open(uv_loop_t *loop, const struct fragi_address *address, uint64_t id,
		  const struct wrk_link_ops *ops, void *arg, struct wrk_link **out_link)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct wrk_link *link = fragi_calloc(1, sizeof(*link));
	char port[8];
	int r;

	if (link == NULL)
		return -ENOMEM;
	link->id = id;
	link->ops = ops;
	link->arg = arg;
	link->loop = loop;
	*out_link = link;
	if (uv_ip4_addr(address->host, address->port,
			(struct sockaddr_in *)(void *)&link->addresses[0]) == 0 ||
	    uv_ip6_addr(address->host, address->port,
			(struct sockaddr_in6 *)(void *)&link->addresses[0]) == 0) {
		link->address_count = 1;
		try_next(link);
		free_if_done(link);
		return 0;
	}
	snprintf(port, sizeof(port), "%u", (unsigned int)address->port);
	link->lookup.data = link;
	r = uv_getaddrinfo(loop, &link->lookup, on_lookup, address->host, port, &hints);
	if (r < 0) {
		fragi_free(link);
		return r;
	}
	link->looking_up = true;
	return 0;
}

uint64_t wrk_link_id(const struct wrk_link *link)
{
	return link->id;
}

void wrk_link_send(struct wrk_link *link, const struct fw_message *message)
{
	struct fw_message copy = *message;
	uint8_t *frame;
	size_t size;
	int r;

	if (link->connection == NULL || !link->up)
		return;
	copy.seq = ++link->seq;
	copy.reply_to = 0;
	r = fw_encode(&copy, &frame, &size);
	if (r == 0) {
		(void)fw_connection_send(link->connection, frame, size);
		return;
	}
	if ((link->refused & (1u << message->kind)) == 0)
		log_error(NULL, "cannot send %s to the driver: %s", fw_kind_name(message->kind),
			  frag_strerror(r));
	if (r != -ENOMEM)
		link->refused |= 1u << message->kind;
	else if (message->kind != FW_BEAT) /* the driver would wait for it */
		fw_connection_fail(link->connection, r, frag_strerror(r));
}

void wrk_link_finish(struct wrk_link *link)
{
	link->ended = true;
	if (link->looking_up)
		uv_cancel((uv_req_t *)&link->lookup);
	if (link->connection != NULL && link->up)
		fw_connection_finish(link->connection);
	else if (link->connection != NULL)
		fw_connection_close(link->connection);
}
