/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_UCX_DOORS_H
#define FRAGI_UCX_DOORS_H

#include "preface.h"

/*
 * Where hosts listen, and what came of connecting there. Nothing here is locked: the gate does
 * that.
 */
#define UCX_LISTENERS_MAX 16u

/*
 * dial: where other hosts connect to reach that end. It is the same, unless the worker has
 * announced ports that somebody forwards to it (workerd --announce-address).
 */
struct ucx_door {
	uint8_t end[UCX_END_BYTES], dial[UCX_END_BYTES];
};

/* Where a host listens: a part of its address. */
struct ucx_entrance {
	uint8_t identity[UCX_IDENTITY_BYTES];
	uint32_t count;
	struct ucx_door doors[UCX_LISTENERS_MAX];
};

/* Fills `dial` from `end`. Returns 0 or -EINVAL where the environment is not as workerd sets it. */
int ucx_door_announce(struct ucx_door *door);
/* Whether this host is reached by other addresses than its own. */
bool ucx_door_is_announced(void);

struct ucx_peer {
	struct ucx_door door;
	uint8_t identity[UCX_IDENTITY_BYTES];
	int outcome; /* of ucx_gate_outcome */
};

struct ucx_peers {
	struct ucx_peer *items; /* owned */
	uint32_t count, capacity;
};

/* NULL: no peer listens there. */
struct ucx_peer *ucx_peers_at(const struct ucx_peers *peers, const uint8_t *end);
/* Returns 0 or -ENOMEM. */
int ucx_peers_add(struct ucx_peers *peers, const struct ucx_entrance *entrance);
/* As ucx_gate_outcome. */
int ucx_peers_outcome(const struct ucx_peers *peers, const struct ucx_entrance *entrance,
		      uint8_t *out_dial);

/* connect was called, getpeername not yet */
struct ucx_attempt {
	int fd;
	uint64_t cookie;                                          /* 0: none */
	uint8_t end[UCX_END_BYTES], identity[UCX_IDENTITY_BYTES]; /* of the peer */
};

/* No two of one descriptor. */
struct ucx_attempts {
	struct ucx_attempt *items; /* owned */
	uint32_t count;
};

/*
 * A place for the descriptor: the one that it had, or a free one. So there are never more than a
 * process has descriptors, though not each connection comes about. NULL when memory is short.
 */
struct ucx_attempt *ucx_attempts_place(struct ucx_attempts *attempts, int fd);

#endif
