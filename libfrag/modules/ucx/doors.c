// SPDX-License-Identifier: Apache-2.0
#include "doors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <edge/ucx_env.h>

bool ucx_door_is_announced(void)
{
	const char *text = getenv(FRAGI_UCX_ANNOUNCED);

	return text != NULL && *text != '\0';
}

/* "203.0.113.5/1000": what others connect to, and how much higher its ports are. */
int ucx_door_announce(struct ucx_door *door)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address;
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address;
	char host[INET6_ADDRSTRLEN];
	int higher, port;

	memcpy(door->dial, door->end, UCX_END_BYTES);
	if (!ucx_door_is_announced())
		return 0;
	if (sscanf(getenv(FRAGI_UCX_ANNOUNCED), "%45[^/]/%d", host, &higher) != 2)
		return -EINVAL;
	port = (door->end[16] << 8 | door->end[17]) + higher;
	if (port < 1 || port > UINT16_MAX)
		return -EINVAL;
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_port = htons((uint16_t)port);
	} else if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
		address.ss_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
	} else {
		return -EINVAL;
	}
	return ucx_end_of((struct sockaddr *)&address, door->dial);
}

struct ucx_peer *ucx_peers_at(const struct ucx_peers *peers, const uint8_t *end)
{
	for (uint32_t i = 0; i < peers->count; i++)
		if (memcmp(peers->items[i].door.end, end, UCX_END_BYTES) == 0)
			return &peers->items[i];
	return NULL;
}

/* A host that was started again at the same address has another identity. */
static int add(struct ucx_peers *peers, const struct ucx_door *door, const uint8_t *identity)
{
	struct ucx_peer *peer = ucx_peers_at(peers, door->end);

	if (peer == NULL && peers->count == peers->capacity) {
		uint32_t capacity = peers->capacity == 0 ? 16 : 2 * peers->capacity;
		struct ucx_peer *items = fragi_realloc(peers->items, capacity * sizeof(*items));

		if (items == NULL)
			return -ENOMEM;
		peers->items = items;
		peers->capacity = capacity;
	}
	if (peer == NULL)
		peer = &peers->items[peers->count++];
	*peer = (struct ucx_peer){.door = *door, .outcome = -EALREADY};
	memcpy(peer->identity, identity, sizeof(peer->identity));
	return 0;
}

int ucx_peers_add(struct ucx_peers *peers, const struct ucx_entrance *entrance)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < entrance->count; i++)
		r = add(peers, &entrance->doors[i], entrance->identity);
	return r;
}

int ucx_peers_outcome(const struct ucx_peers *peers, const struct ucx_entrance *entrance,
		      uint8_t *out_dial)
{
	const struct ucx_peer *peer;
	int outcome = -EALREADY;

	memset(out_dial, 0, UCX_END_BYTES);
	if (entrance->count > 0)
		memcpy(out_dial, entrance->doors[0].dial, UCX_END_BYTES);
	for (uint32_t i = 0; i < entrance->count; i++) {
		peer = ucx_peers_at(peers, entrance->doors[i].end);
		if (peer == NULL || peer->outcome == -EALREADY)
			continue;
		outcome = peer->outcome;
		memcpy(out_dial, peer->door.dial, UCX_END_BYTES);
	}
	return outcome;
}

struct ucx_attempt *ucx_attempts_place(struct ucx_attempts *attempts, int fd)
{
	struct ucx_attempt *place = NULL, *items;

	for (uint32_t i = 0; i < attempts->count; i++) {
		if (attempts->items[i].fd == fd)
			return &attempts->items[i];
		if (attempts->items[i].cookie == 0)
			place = &attempts->items[i];
	}
	if (place != NULL)
		return place;
	items = fragi_realloc(attempts->items, (attempts->count + 1) * sizeof(*items));
	if (items == NULL)
		return NULL;
	attempts->items = items;
	return &items[attempts->count++];
}
