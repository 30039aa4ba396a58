// SPDX-License-Identifier: Apache-2.0
#include "socket.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mischief.h"

/*
 * A host reads from one end of a socketpair, and its peers write to the other one: addresses of
 * messages, or NULL to wake it.
 */
#define STOPS 3 /* so often an endpoint that was cut is asked to stop before it does */

struct socket_settings socket_settings;

static struct transport *all; /* never freed: its messages may be released later */
static pthread_mutex_t lock =
	PTHREAD_MUTEX_INITIALIZER; /* guards out, in which other hosts write */

static bool post(const struct transport *to, const struct message *m)
{
	bool posted;

	pthread_mutex_lock(&lock);
	posted = to->out >= 0 && send(to->out, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
	pthread_mutex_unlock(&lock);
	return posted;
}

static void socket_wake(struct fragi_transport *base)
{
	post((struct transport *)base, NULL); /* one that is full is awake */
}

/* Behind all others of the endpoint. */
static void line_up(struct endpoint *e, struct message *m)
{
	struct message **last = &e->messages;

	while (*last != NULL)
		last = &(*last)->next;
	*last = m;
	e->unsent = e->unsent != NULL ? e->unsent : m;
}

/* Returns whether the message travels; it may travel several times. */
static bool relay(struct endpoint *e, struct message *m)
{
	uint32_t times;

	m->over = e;
	times = socket_settings.relay != NULL ? socket_settings.relay(m) : 1;
	for (uint32_t i = 1; i < times; i++)
		line_up(e, message_copy(m));
	if (times > 0)
		return true;
	message_unref(m);
	message_unref(m);
	return false;
}

static bool socket_send(struct fragi_endpoint *base, struct fragi_send *send,
			const struct fragi_body *bodies, uint32_t count)
{
	struct endpoint *e = (struct endpoint *)base;
	struct message *m;
	bool under_way = count > 0 && random_below(&of(e)->seed, 3) > 0;

	if (e->is_cut)
		return false;
	m = message_create(base->transport, send->header, send->header_bytes, bodies, count);
	for (uint32_t i = 0; i < count; i++)
		under_way = under_way || m->copies[i] == NULL;
	if (!relay(e, m))
		return false;
	m->send = under_way ? send : NULL;
	line_up(e, m);
	return under_way;
}

void socket_inject(const struct message *beside, const void *header, uint32_t header_bytes)
{
	line_up(beside->over, message_create(beside->from, header, header_bytes, NULL, 0));
}

void socket_end_send(struct endpoint *e, struct message **at, bool abandoned)
{
	struct message *m = *at;

	*at = m->next;
	if (m->send != NULL)
		of(e)->config.events->sent(m->send, abandoned);
	message_unref(m);
}

void socket_end_receive(struct message **at, const char *cause)
{
	struct message *m = *at;

	*at = m->next_receive;
	of(m->to)->config.events->received(m->receive, cause, m->received);
	message_unref(m);
}

void socket_cut(struct endpoint *e, const char *cause)
{
	struct message *m;

	if (atomic_exchange(&e->is_cut, true))
		return;
	while ((m = e->unsent) != NULL) {
		e->unsent = m->next;
		message_unref(m);
	}
	post(e->there, NULL);
	if (cause != NULL && e->base.owner != NULL)
		of(e)->config.events->failed(e->base.owner, cause);
}

bool socket_write_one(struct endpoint *e)
{
	struct message *m = e->unsent;

	if (m == NULL || e->peer == NULL)
		return false;
	m->to = e->peer;
	if (!post(e->there, m))
		return false;
	e->unsent = m->next;
	return true;
}

static uint32_t socket_progress(struct fragi_transport *base, int64_t now_ns)
{
	return mischief_progress((struct transport *)base);
}

static int socket_arm(struct fragi_transport *base)
{
	return mischief_is_busy((struct transport *)base) ? -EBUSY : 0;
}

static int socket_fd(const struct fragi_transport *base)
{
	return ((const struct transport *)base)->in;
}

static void complete(struct message *m)
{
	static uint32_t depth;

	if (++depth > socket_counts.depth_max)
		socket_counts.depth_max = depth;
	while (!message_receive_some(m, &of(m->to)->seed))
		;
	socket_end_receive(&m->to->receives, NULL);
	depth--;
}

static int socket_receive(struct fragi_transport *base, void *handle,
			  const struct fragi_body *bodies, uint32_t count,
			  struct fragi_receive *receive)
{
	struct message *m = handle;

	memcpy(receive->room, bodies, count * sizeof(*bodies));
	m->receive = receive;
	m->next_receive = m->to->receives;
	m->to->receives = m;
	socket_counts.received++;
	if (socket_settings.receives == RECEIVES_AT_ONCE)
		complete(m);
	return 0;
}

static void socket_discard(struct fragi_transport *base, void *handle)
{
	message_unref(handle);
}

static int socket_connect(struct fragi_transport *base, uint32_t host, const void *address,
			  size_t size, void *owner, struct fragi_endpoint **out,
			  struct frag_err *err)
{
	struct transport *t = (struct transport *)base, *there;
	struct endpoint *e, *peer;

	if (size != sizeof(there))
		return frag_err_set(err, -EBADMSG, "host %u has no socket address", host);
	memcpy(&there, address, size);
	e = calloc(1, sizeof(*e));
	e->base = (struct fragi_endpoint){.transport = base,
					  .owner = owner,
					  .same_node = true,
					  .timeline = {.state = FRAGI_TIMELINE_SAME},
					  .version = "1"};
	e->there = there;
	e->next = t->endpoints;
	t->endpoints = e;
	for (peer = there->endpoints; peer != NULL && peer->there != t;)
		peer = peer->next;
	if (peer != NULL) {
		e->peer = peer;
		peer->peer = e;
	}
	if (t->number == socket_settings.dies && socket_settings.at_step == 0)
		socket_cut(e, "planted");
	*out = &e->base;
	return 0;
}

static void socket_close(struct fragi_endpoint *base, bool silent)
{
	while (socket_write_one((struct endpoint *)base)) /* what answers a goodbye */
		;
	if (silent)
		socket_cut((struct endpoint *)base, NULL);
}

static bool socket_stop(struct fragi_endpoint *base, int64_t now_ns)
{
	struct endpoint *e = (struct endpoint *)base;

	if (e->is_cut && ++e->stops < STOPS)
		return false;
	while (e->is_cut && e->messages != NULL)
		socket_end_send(e, &e->messages, true);
	return true;
}

static void socket_free(struct fragi_endpoint *base)
{
	base->owner = NULL;
}

static int socket_create(const struct fragi_transport_config *config, struct fragi_transport **out,
			 struct frag_err *err)
{
	struct transport *t = calloc(1, sizeof(*t));
	size_t header_max = socket_settings.header_max;
	int pair[2];

	if (t == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		free(t);
		return frag_err_set(err, -errno, "no socketpair");
	}
	t->base = (struct fragi_transport){
		.ops = &socket_transport,
		.version = "1",
		.detail = "pair",
		.header_max = header_max != 0 ? header_max : FRAGI_HEADER_MAX,
		.names_sender = true,
		.lends = true,
		.receive_room = FRAG_MESSAGE_TENSORS_MAX * sizeof(struct fragi_body),
		.devices = 1u << FRAG_DEVICE_CPU,
	};
	t->config = *config;
	t->number = ++socket_counts.created;
	t->seed = socket_settings.seed + t->number;
	t->in = pair[0];
	t->out = pair[1];
	t->next = all;
	all = t->self = t;
	*out = &t->base;
	return 0;
}

static void socket_destroy(struct fragi_transport *base)
{
	struct transport *t = (struct transport *)base;
	struct message *m;

	for (struct endpoint *e = t->endpoints; e != NULL; e = e->next) {
		socket_cut(e, NULL);
		while (e->messages != NULL)
			socket_end_send(e, &e->messages, true);
		while (e->receives != NULL)
			socket_end_receive(&e->receives, "given up");
	}
	pthread_mutex_lock(&lock);
	close(t->out);
	t->out = -1;
	pthread_mutex_unlock(&lock);
	while (recv(t->in, &m, sizeof(m), 0) > 0)
		if (m != NULL)
			message_unref(m);
	close(t->in);
}

static const void *socket_address(const struct fragi_transport *base, size_t *out_size)
{
	*out_size = sizeof(struct transport *);
	return &((const struct transport *)base)->self;
}

static struct frag_resource *socket_memory(struct fragi_transport *base, struct frag_device device)
{
	return (struct frag_resource *)(void *)&message_memory;
}

const struct fragi_transport_ops socket_transport = {
	.struct_size = sizeof(struct fragi_transport_ops),
	.name = "socket",
	.title = "the socket",
	.create = socket_create,
	.destroy = socket_destroy,
	.address = socket_address,
	.memory = socket_memory,
	.connect = socket_connect,
	.close = socket_close,
	.stop = socket_stop,
	.free = socket_free,
	.send = socket_send,
	.receive = socket_receive,
	.discard = socket_discard,
	.progress = socket_progress,
	.arm = socket_arm,
	.fd = socket_fd,
	.wake = socket_wake,
};
