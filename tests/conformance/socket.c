// SPDX-License-Identifier: Apache-2.0
#include "socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <data/allocator.h>

/*
 * Messages over a SEQPACKET socketpair. Bodies are in them, or in blocks of memory that both sides
 * can read; the receiver shows those as mapped, or as a handle that it fills from in pieces of any
 * size and in any order among messages. FREE says that they are free again.
 */
#define IN_MESSAGE_MAX 30000

struct socket_settings socket_settings;
struct socket_counts socket_counts;

struct message {
	struct message *next;
	struct wire {
		uint32_t id, header_bytes; /* header_bytes 0: FREE */
		uint64_t body_bytes;
		uint32_t blocks, size; /* size: of the payload */
	} wire;
	uint8_t payload[]; /* header, then bodies or blocks */
};

struct out { /* the room of a send */
	struct out *next;
	uint32_t id, count;
	void *blocks[FRAG_MESSAGE_TENSORS_MAX];
};

struct in { /* a message whose bodies are in blocks */
	struct in *next;
	struct endpoint *endpoint;
	uint32_t id, count;
	uint64_t bytes, at;
	_Atomic uint32_t left;
	struct fragi_body bodies[FRAG_MESSAGE_TENSORS_MAX];
	struct fragi_receive *receive;
};

struct endpoint {
	struct fragi_endpoint base;
	struct endpoint *next;
	int in, out; /* the same, but from a host to itself; -1: cut */
	uint32_t stops, next_id;
	struct message *first, **last; /* to be sent */
	struct out *sends;
};

struct transport {
	struct fragi_transport base;
	struct transport *next;
	struct fragi_transport_config config;
	struct fragi_allocator memory;
	uint32_t id, steps;
	int fd, wake_fd;
	unsigned int seed;
	struct endpoint *endpoints;
	struct in *receives;
	_Atomic(struct in *) released;
};

static void *given_up;        /* blocks, each with the next one before it */
static struct transport *all; /* what was mapped outlives its transport, so they stay */
static struct waiting {       /* the other end of a socketpair, for the host that connects later */
	struct waiting *next;
	uint32_t from, to;
	int fd;
} * waiting;

static uint32_t draw(struct transport *t, uint32_t n)
{
	return (uint32_t)rand_r(&t->seed) % n;
}

static struct transport *of(const struct fragi_endpoint *endpoint)
{
	return (struct transport *)(void *)endpoint->transport;
}

/* Blocks: their references are in the 64 bytes before them. */

static int block_alloc(void *state, size_t size, void **out)
{
	char *block = aligned_alloc(64, 64 + (size + 63) / 64 * 64);

	(void)state;
	if (block == NULL)
		return -ENOMEM;
	atomic_init((_Atomic uint32_t *)(void *)block, 1);
	*out = block + 64;
	return 0;
}

static void block_unref(void *state, void *memory)
{
	(void)state;
	if (atomic_fetch_sub((_Atomic uint32_t *)(void *)((char *)memory - 64), 1) == 1)
		free((char *)memory - 64);
}

static void *block_ref(void *memory)
{
	atomic_fetch_add((_Atomic uint32_t *)(void *)((char *)memory - 64), 1);
	return memory;
}

/* Of one body, on any thread. */
static void release(void *owner)
{
	struct in *in = owner, *head;
	struct transport *t = of(&in->endpoint->base);

	if (atomic_fetch_sub(&in->left, 1) != 1)
		return;
	for (uint32_t i = 0; i < in->count; i++)
		block_unref(NULL, in->bodies[i].data);
	head = atomic_load(&t->released);
	do
		in->next = head;
	while (!atomic_compare_exchange_weak(&t->released, &head, in));
	socket_transport.wake(&t->base);
}

static void release_all(struct in *in)
{
	for (uint32_t i = in->count; i > 0; i--)
		release(in);
}

/* Out. */

static void message_add(struct endpoint *e, const struct wire *wire, struct message *message)
{
	message = message != NULL ? message : calloc(1, sizeof(*message));
	message->wire = *wire;
	*e->last = message;
	e->last = &message->next;
}

static uint32_t flush(struct endpoint *e, bool drop)
{
	uint32_t count = 0;

	for (struct message *m; (m = e->first) != NULL; count++) {
		if (!drop && (e->out < 0 || send(e->out, &m->wire, sizeof(m->wire) + m->wire.size,
						 MSG_DONTWAIT | MSG_NOSIGNAL) < 0))
			break;
		e->first = m->next;
		e->last = e->first == NULL ? &e->first : e->last;
		free(m);
	}
	return count;
}

static void sent(struct endpoint *e, struct out **at, bool abandoned)
{
	struct out *out = *at;

	*at = out->next;
	for (uint32_t i = 0; i < out->count; i++) {
		if (!abandoned) {
			block_unref(NULL, out->blocks[i]);
			continue;
		}
		/* The other side may still read what was given up: it is never freed. */
		((void **)out->blocks[i])[-1] = given_up;
		given_up = out->blocks[i];
	}
	of(&e->base)->config.events->sent(
		(struct fragi_send *)(void *)((char *)out - offsetof(struct fragi_send, room)),
		abandoned);
}

static bool socket_send(struct fragi_endpoint *base, struct fragi_send *send,
			const struct fragi_body *bodies, uint32_t count)
{
	struct endpoint *e = (struct endpoint *)base;
	struct out *out = (struct out *)(void *)send->room;
	struct wire wire = {.id = ++e->next_id, .header_bytes = send->header_bytes};
	struct fragi_body mapped[FRAG_MESSAGE_TENSORS_MAX];
	struct message *message;
	uint8_t *at;

	if (e->out < 0)
		return false;
	for (uint32_t i = 0; i < count; i++)
		wire.body_bytes += bodies[i].bytes;
	wire.blocks =
		wire.body_bytes > IN_MESSAGE_MAX || (count > 0 && draw(of(base), 3)) ? count : 0;
	wire.size = send->header_bytes +
		    (uint32_t)(wire.blocks > 0 ? count * sizeof(*bodies) : wire.body_bytes);
	*out = (struct out){e->sends, wire.id, wire.blocks, {0}};
	for (uint32_t i = 0; i < wire.blocks; i++) {
		bool own = bodies[i].owner == (void *)&of(base)->memory;

		mapped[i] = bodies[i];
		if (!own && block_alloc(NULL, bodies[i].bytes, &mapped[i].data) == 0)
			memcpy(mapped[i].data, bodies[i].data, bodies[i].bytes);
		out->blocks[i] = own ? block_ref(mapped[i].data) : mapped[i].data;
		own ? socket_counts.handed_over++ : socket_counts.copied++;
	}
	message = calloc(1, sizeof(*message) + wire.size);
	at = memcpy(message->payload, send->header, send->header_bytes);
	at += send->header_bytes;
	if (wire.blocks > 0)
		memcpy(at, mapped, count * sizeof(*mapped));
	for (uint32_t i = wire.blocks; i < count; at += bodies[i++].bytes)
		memcpy(at, bodies[i].data, bodies[i].bytes);
	message_add(e, &wire, message);
	if (wire.blocks > 0)
		e->sends = out;
	return wire.blocks > 0;
}

static void cut(struct endpoint *e, const char *cause)
{
	if (e->in < 0)
		return;
	close(e->in);
	if (e->out != e->in)
		close(e->out);
	e->in = e->out = -1;
	flush(e, true);
	if (cause != NULL && e->base.owner != NULL)
		of(&e->base)->config.events->failed(e->base.owner, cause);
}

/* In. */

static void arrive(struct endpoint *e, const struct wire *wire, uint8_t *payload)
{
	struct transport *t = of(&e->base);
	struct fragi_arrival arrival = {payload, wire->header_bytes, wire->body_bytes};
	struct in *in = NULL;

	arrival.data = wire->blocks == 0 ? payload + wire->header_bytes : NULL;
	if (wire->blocks > 0) {
		in = calloc(1, sizeof(*in));
		in->endpoint = e;
		in->id = wire->id;
		in->bytes = wire->body_bytes;
		in->count = wire->blocks;
		atomic_store(&in->left, in->count);
		memcpy(in->bodies, payload + wire->header_bytes, in->count * sizeof(*in->bodies));
		for (uint32_t i = 0; i < in->count; i++) {
			block_ref(in->bodies[i].data);
			in->bodies[i].owner = in;
			in->bodies[i].release = release;
		}
		if (draw(t, 2) == 0) {
			arrival.handle = in;
		} else {
			arrival.mapped = in->bodies;
			arrival.mapped_count = in->count;
			socket_counts.mapped++;
		}
	}
	if (t->config.events->arrived(t->config.arg, &arrival) == FRAGI_ARRIVAL_USED && in != NULL)
		release_all(in);
}

static int socket_receive(struct fragi_transport *base, void *handle,
			  const struct fragi_body *bodies, uint32_t count,
			  struct fragi_receive *receive)
{
	struct transport *t = (struct transport *)base;
	struct in *in = handle;

	memcpy(receive->room, bodies, count * sizeof(*bodies));
	in->receive = receive;
	in->next = t->receives;
	t->receives = in;
	socket_counts.received++;
	return 0;
}

static void socket_discard(struct fragi_transport *base, void *handle)
{
	(void)base;
	release_all(handle);
}

/* A piece of some receive. */
static bool copy_some(struct transport *t)
{
	struct in **at = &t->receives, *in;
	struct fragi_body *to;
	const struct fragi_body *from;
	uint64_t offset, other, n;

	for (uint32_t seen = 0; *at != NULL && draw(t, ++seen + 1) != 0 && (*at)->next != NULL;)
		at = &(*at)->next;
	in = *at;
	if (in == NULL || in->endpoint->in < 0)
		return false;
	from = in->bodies;
	to = (struct fragi_body *)(void *)in->receive->room;
	for (offset = in->at; in->at < in->bytes && offset >= from->bytes; from++)
		offset -= from->bytes;
	for (other = in->at; in->at < in->bytes && other >= to->bytes; to++)
		other -= to->bytes;
	if (in->at < in->bytes) {
		n = from->bytes - offset < to->bytes - other ? from->bytes - offset
							     : to->bytes - other;
		n = n > 1 ? 1 + draw(t, n > 1u << 20 ? 1u << 20 : (uint32_t)n) : n;
		memcpy((char *)to->data + other, (const char *)from->data + offset, n);
		in->at += n;
	}
	if (in->at < in->bytes)
		return true;
	*at = in->next;
	t->config.events->received(in->receive, NULL, in->bytes);
	release_all(in);
	return true;
}

static bool is_receiving(const struct transport *t)
{
	for (const struct in *in = t->receives; in != NULL; in = in->next)
		if (in->endpoint->in >= 0)
			return true;
	return false;
}

static bool read_one(struct endpoint *e)
{
	static _Thread_local struct {
		struct wire wire;
		uint8_t payload[FRAGI_HEADER_MAX + IN_MESSAGE_MAX];
	} in;
	ssize_t n = e->in < 0 ? -1 : recv(e->in, &in, sizeof(in), MSG_DONTWAIT);
	struct out **at = &e->sends;

	if (n == 0)
		cut(e, "Connection reset by remote peer");
	if (n <= 0)
		return false;
	if (in.wire.header_bytes > 0) {
		arrive(e, &in.wire, in.payload);
		return true;
	}
	while ((*at)->id != in.wire.id)
		at = &(*at)->next;
	sent(e, at, false);
	return true;
}

static uint32_t socket_progress(struct fragi_transport *base, int64_t now_ns)
{
	struct transport *t = (struct transport *)base;
	struct in *in = atomic_exchange(&t->released, NULL), *next;
	uint32_t happened = 0;
	eventfd_t n;

	(void)now_ns;
	(void)eventfd_read(t->wake_fd, &n);
	for (; in != NULL; in = next, happened++) {
		next = in->next;
		message_add(in->endpoint, &(struct wire){.id = in->id}, NULL);
		free(in);
	}
	while (draw(t, 8) != 0 && copy_some(t))
		happened++;
	for (struct endpoint *e = t->endpoints; e != NULL; e = e->next) {
		for (uint32_t i = draw(t, 20); i > 0 && read_one(e); i--) {
			happened++;
			if (++t->steps == socket_settings.at_step && t->id == socket_settings.dies)
				cut(e, "planted");
		}
		happened += draw(t, 3) != 0 ? flush(e, e->out < 0) : 0;
		happened += e->first != NULL;
	}
	return happened + is_receiving(t);
}

static int socket_arm(struct fragi_transport *base)
{
	struct transport *t = (struct transport *)base;
	bool busy = is_receiving(t) || atomic_load(&t->released) != NULL;
	eventfd_t n;

	for (const struct endpoint *e = t->endpoints; e != NULL; e = e->next)
		busy = busy || e->first != NULL;
	return eventfd_read(t->wake_fd, &n) == 0 || busy ? -EBUSY : 0;
}

static int socket_fd(const struct fragi_transport *base)
{
	return ((const struct transport *)base)->fd;
}

static void socket_wake(struct fragi_transport *base)
{
	if (((struct transport *)base)->wake_fd >= 0)
		eventfd_write(((struct transport *)base)->wake_fd, 1);
}

/* Life. */

static void connect_pair(const struct transport *t, uint32_t to, struct endpoint *e)
{
	struct waiting **at = &waiting, *found;
	int pair[2];

	while (*at != NULL && ((*at)->from != to || (*at)->to != t->id))
		at = &(*at)->next;
	found = *at;
	if (found != NULL) {
		*at = found->next;
		e->in = e->out = found->fd;
		free(found);
		return;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	e->in = pair[0];
	e->out = to == t->id ? pair[1] : pair[0];
	if (to == t->id)
		return;
	found = calloc(1, sizeof(*found));
	*found = (struct waiting){waiting, t->id, to, pair[1]};
	waiting = found;
}

static int socket_connect(struct fragi_transport *base, uint32_t host, const void *address,
			  size_t size, void *owner, struct fragi_endpoint **out,
			  struct frag_err *err)
{
	struct transport *t = (struct transport *)base;
	struct epoll_event readable = {.events = EPOLLIN};
	struct endpoint *e;

	if (size != sizeof(t->id))
		return frag_err_set(err, -EBADMSG, "host %u has no socket address", host);
	e = calloc(1, sizeof(*e));
	e->base = (struct fragi_endpoint){base, owner, true, "1"};
	e->last = &e->first;
	connect_pair(t, *(const uint32_t *)address, e);
	epoll_ctl(t->fd, EPOLL_CTL_ADD, e->in, &readable);
	e->next = t->endpoints;
	t->endpoints = e;
	*out = &e->base;
	return 0;
}

static void socket_close(struct fragi_endpoint *base, bool silent)
{
	flush((struct endpoint *)base, false); /* what answers a goodbye */
	if (silent)
		cut((struct endpoint *)base, NULL);
}

static bool socket_stop(struct fragi_endpoint *base, int64_t now_ns)
{
	struct endpoint *e = (struct endpoint *)base;

	(void)now_ns;
	if (e->in >= 0)
		return true;
	if (++e->stops < 3)
		return false;
	while (e->sends != NULL)
		sent(e, &e->sends, true);
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
	struct epoll_event readable = {.events = EPOLLIN};

	(void)err;
	t->base = (struct fragi_transport){
		.ops = &socket_transport,
		.version = "1",
		.description = "socket 1",
		.header_max = socket_settings.header_max != 0 ? socket_settings.header_max
							      : FRAGI_HEADER_MAX,
		.send_room = sizeof(struct out),
		.receive_room = FRAG_MESSAGE_TENSORS_MAX * sizeof(struct fragi_body),
		.devices = 1u << FRAG_DEVICE_CPU,
	};
	t->config = *config;
	t->id = ++socket_counts.created;
	t->next = all;
	all = t;
	t->seed = socket_settings.seed + t->id;
	t->memory = (struct fragi_allocator){1, block_alloc, block_unref, NULL, NULL};
	t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->fd = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(t->fd, EPOLL_CTL_ADD, t->wake_fd, &readable);
	*out = &t->base;
	return 0;
}

static void socket_destroy(struct fragi_transport *base)
{
	struct transport *t = (struct transport *)base;

	for (struct endpoint *e = t->endpoints; e != NULL; e = e->next) {
		cut(e, NULL);
		while (e->sends != NULL)
			sent(e, &e->sends, true);
	}
	for (struct in *in; (in = t->receives) != NULL;) {
		t->receives = in->next;
		t->config.events->received(in->receive, "given up", 0);
		release_all(in);
	}
	close(t->fd);
	close(t->wake_fd);
	t->wake_fd = -1;
}

static const void *socket_address(const struct fragi_transport *base, size_t *out_size)
{
	*out_size = sizeof(uint32_t);
	return &((const struct transport *)base)->id;
}

static struct frag_resource *socket_memory(struct fragi_transport *base, struct frag_device device)
{
	(void)device;
	return (struct frag_resource *)(void *)&((struct transport *)base)->memory;
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
