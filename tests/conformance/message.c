// SPDX-License-Identifier: Apache-2.0
#include "message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "socket.h"

#define PIECE_BYTES_MAX (1u << 20)
#define MEMORY_BYTES (32u << 20)

struct socket_counts socket_counts;

uint32_t random_below(unsigned int *seed, uint32_t n)
{
	return (uint32_t)rand_r(seed) % n;
}

/* Never used again: the peer may still read what was freed here when the endpoint was cut. */
static int memory_alloc(void *state, size_t size, void **out)
{
	static _Alignas(64) char memory[MEMORY_BYTES];
	static _Atomic size_t used;
	size_t at = atomic_fetch_add(&used, (size + 63) / 64 * 64);

	if (at + size > MEMORY_BYTES)
		return -ENOMEM;
	*out = memory + at;
	return 0;
}

static void memory_free(void *state, void *memory)
{
}

struct fragi_allocator message_memory = {1, memory_alloc, memory_free, NULL, NULL};

struct message *message_create(struct fragi_transport *from, const void *header,
			       uint32_t header_bytes, const struct fragi_body *bodies,
			       uint32_t count)
{
	struct message *m = calloc(1, sizeof(*m) + header_bytes);

	m->from = from;
	atomic_init(&m->refs, 2);
	m->header_bytes = header_bytes;
	memcpy(m->header, header, header_bytes);
	m->count = count;
	for (uint32_t i = 0; i < count; i++) {
		m->bytes += bodies[i].bytes;
		m->bodies[i] = bodies[i];
		m->bodies[i].owner = m;
		m->bodies[i].release = message_unref;
		if (bodies[i].owner == (void *)&message_memory) {
			socket_counts.handed_over++;
			continue;
		}
		if (posix_memalign(&m->copies[i], 64, bodies[i].bytes) != 0)
			abort();
		m->bodies[i].data = memcpy(m->copies[i], bodies[i].data, bodies[i].bytes);
		socket_counts.copied++;
	}
	return m;
}

struct message *message_copy(const struct message *m)
{
	struct fragi_body bodies[FRAG_MESSAGE_TENSORS_MAX];

	memcpy(bodies, m->bodies, m->count * sizeof(*bodies));
	for (uint32_t i = 0; i < m->count; i++)
		bodies[i].owner = NULL;
	return message_create(m->from, m->header, m->header_bytes, bodies, m->count);
}

void message_unref(void *message)
{
	struct message *m = message;
	struct fragi_transport *from = m->from;
	uint32_t refs = atomic_fetch_sub(&m->refs, 1) - 1;

	if (refs == 1)
		from->ops->wake(from);
	if (refs > 0)
		return;
	for (uint32_t i = 0; i < m->count; i++)
		free(m->copies[i]);
	free(m);
}

/* Shows the bodies in one of the three ways. Returns how many references that takes. */
static uint32_t show(struct message *m, uint32_t way, struct fragi_arrival *arrival)
{
	uint8_t *data;

	if (way == 0) {
		arrival->handle = m;
		return 1;
	}
	if (way == 1) {
		arrival->mapped = m->bodies;
		arrival->mapped_count = m->count;
		socket_counts.mapped++;
		return m->count;
	}
	arrival->data = data = malloc(m->bytes);
	for (uint32_t i = 0; i < m->count; data += m->bodies[i++].bytes)
		memcpy(data, m->bodies[i].data, m->bodies[i].bytes);
	return 0;
}

void message_arrive(struct message *m, const struct fragi_transport_config *config,
		    unsigned int *seed)
{
	struct fragi_arrival arrival = {.header = m->header,
					.header_bytes = m->header_bytes,
					.body_bytes = m->bytes,
					.from = (const struct fragi_endpoint *)(void *)m->to};
	uint32_t way = socket_settings.by_handle ? 0 : random_below(seed, 3);
	uint32_t refs = m->count > 0 ? show(m, way, &arrival) : 0;

	atomic_fetch_add(&m->refs, refs);
	if (config->events->arrived(config->arg, &arrival) == FRAGI_ARRIVAL_USED)
		for (; refs > 0; refs--)
			message_unref(m); /* NOLINT: m->refs counts all of them */
	free((void *)(uintptr_t)arrival.data);
}

/* Where byte `at` of the bodies is, and how many bytes follow it there. */
static char *place(const struct fragi_body *body, uint64_t at, uint64_t *out_bytes)
{
	for (; at >= body->bytes; body++)
		at -= body->bytes;
	*out_bytes = body->bytes - at;
	return (char *)body->data + at;
}

bool message_receive_some(struct message *m, unsigned int *seed)
{
	const struct fragi_body *bodies = (const struct fragi_body *)(void *)m->receive->room;
	uint64_t here, there, n = 1 + random_below(seed, PIECE_BYTES_MAX);
	char *to = place(bodies, m->received, &here);
	const char *from = place(m->bodies, m->received, &there);

	n = n < here ? n : here;
	n = n < there ? n : there;
	memcpy(to, from, n);
	m->received += n;
	return m->received == m->bytes;
}
