/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHM_MODULE_H
#define SHM_MODULE_H

#include <pthread.h>
#include <stdatomic.h>

#include <base/alloc.h>
#include <base/identity.h>
#include <data/allocator.h>
#include <data/memory.h>
#include <edge/transport.h>

#include "ring.h"
#include "step.h"

/*
 * The transport between hosts of one machine. Each host has three pieces of shared memory, each a
 * memfd: its heap, where the bodies of messages lie; and for every peer a channel with a ring that
 * it writes and the peer reads. Peers map both read-only, so whatever a host writes is its own, and
 * what it reads from a peer it checks. Two hosts exchange them over a unix socket that lasts as
 * long as the connection: its end is the end of the peer.
 */
#define SHM_NAME_BYTES 16   /* of a host's socket */
#define SHM_SECRET_BYTES 16 /* the secret that lets a peer in */
#define SHM_AREAS_MAX 64u   /* areas of device memory of a host */
#define SHM_LAYOUT 4u       /* of addresses, introductions and channels */

/* What wakes a host: an eventfd. It outlives its transport for those who return bodies late. */
struct shm_bell {
	_Atomic uint32_t refs;
	int fd;
	_Atomic bool wanted; /* its host sleeps, or is about to */
};

/* Memory of a device that this host hands over. */
struct shm_area {
	uintptr_t base;
	_Atomic uint64_t bytes; /* 0: it was given back */
	struct frag_device device;
};

struct shm_areas {
	pthread_mutex_t lock; /* of those that make, free and show areas */
	_Atomic uint32_t count;
	struct shm_area all[SHM_AREAS_MAX];
};

/* What a host says of an area to another. */
struct shm_shown {
	struct {
		uint64_t bytes;
		uint32_t number, zero;
		uint8_t gpu[FRAGI_GPU_NAME_BYTES];
	} what;
	int fd;
};

/* An area of a peer in this process. */
struct shm_mapped {
	void *memory;
	uint64_t bytes; /* 0: it is not mapped */
	struct frag_device device;
};

struct shm_view;

/* areas.c */
/* As the functions of struct fragi_allocator. */
int shm_area_alloc(struct shm_areas *areas, struct frag_device device, size_t size,
		   void **out_memory);
void shm_area_free(struct shm_areas *areas, void *memory);
/* The number of the area that it lies in; negative: none. Thread: any. */
int shm_area_find(const struct shm_areas *areas, const void *memory, uint64_t bytes);
/* All areas, each with a descriptor for shm_shown_close. Returns how many. */
uint32_t shm_areas_show(struct shm_areas *areas, struct shm_shown out[SHM_AREAS_MAX]);
void shm_shown_close(struct shm_shown *shown, uint32_t count);
/* Whether what a peer says of its area `before` can be, given the ones before. 0 or -EBADMSG. */
int shm_shown_check(const struct shm_shown *shown, uint32_t before);
/*
 * Maps those of a peer's areas that are of GPUs of this process; out_areas: which, a bit each.
 * Returns 0 or -ENOMEM.
 */
int shm_areas_map(struct shm_view *view, const struct shm_shown *shown, uint32_t count,
		  uint64_t *out_areas);
void shm_areas_unmap(struct shm_view *view);

/* heap.c: the shared memory of this host's own bodies */
struct shm_heap;
int shm_heap_create(struct shm_heap **out_heap, struct frag_err *err);
void shm_heap_unref(struct shm_heap *heap);
struct frag_resource *shm_heap_resource(struct shm_heap *heap);
int shm_heap_fd(const struct shm_heap *heap);
uint64_t shm_heap_size(const struct shm_heap *heap);
struct shm_areas *shm_heap_areas(struct shm_heap *heap);
/* Where it lies in the heap. Returns false when it is not of this heap. */
bool shm_heap_offset(const struct shm_heap *heap, const void *memory, uint64_t bytes,
		     uint64_t *out_offset);

/* A body that a peer has shown; what the consumer of a message gives back. */
struct shm_taken {
	struct shm_taken *next;
	struct shm_view *view;
	_Atomic uint32_t bodies; /* not released yet */
	uint64_t slot;           /* the producer's name for it */
};

/*
 * A peer's heap as this host sees it. The messages over it hold references, so it outlives the
 * endpoint, and the peer.
 */
struct shm_view {
	_Atomic uint32_t refs;
	const uint8_t *base;
	uint64_t size;
	struct shm_mapped *areas;             /* by number; NULL: the peer has shown none */
	struct shm_bell *bell;                /* of this host */
	_Atomic(struct shm_taken *) returned; /* to be told to the producer */
	_Atomic bool closed;                  /* nobody tells it any more */
};

void shm_view_unref(struct shm_view *view);

/* A message that the peer has not given back: it may still read its bodies. */
struct shm_slot {
	uint32_t generation;
	bool in_use, shown; /* shown: its record is in the ring */
	uint32_t next_free;
	struct fragi_send *send; /* NULL: it is over, the bodies are copies */
	void *copies[FRAG_MESSAGE_TENSORS_MAX];
	uint32_t copy_count;
};

/* In the room of a send. */
struct shm_send {
	struct shm_send *next; /* waits for room in the ring */
	uint32_t count;
	uint64_t slot;
	bool has_slot;
	struct shm_place places[FRAG_MESSAGE_TENSORS_MAX];
	uint32_t inline_bytes;
	uint8_t bytes[SHM_INLINE_MAX];
};

enum shm_endpoint_state {
	SHM_CONNECTING, /* the peer's socket has not taken our connection yet */
	SHM_OPEN,
	SHM_CLOSED,
};

struct shm_endpoint {
	struct fragi_endpoint base;
	struct shm_endpoint *next;
	enum shm_endpoint_state state;
	bool failed; /* reported */
	uint8_t name[SHM_NAME_BYTES], secret[SHM_SECRET_BYTES];
	int out_fd, in_fd; /* sockets; -1: not there yet */
	/* what this host writes */
	struct shm_ring_out out;
	struct shm_send *waiting, **waiting_end;
	/* what it reads */
	struct shm_ring_in in;
	struct shm_view *view;
	struct shm_taken *spare;  /* to be used again */
	struct shm_taken *unsent; /* returned, and there was no room in the ring to say so */
	uint32_t taken_count;     /* shown by the peer, and not told to be returned */
	int peer_bell;            /* -1: not there yet */
	uint32_t rung_at;         /* the peer's sleep for which the bell was rung */
	/* messages that the peer may still read */
	struct shm_slot *slots;
	uint32_t slot_count, slot_free; /* index + 1; 0: none */
	uint32_t slots_in_use;
};

struct shm_transport {
	struct fragi_transport base;
	struct fragi_transport_config config;
	struct shm_heap *heap;
	struct shm_bell *bell;
	int epoll, listener;
	bool deaf; /* the listener is not waited for: there is no descriptor for who connects */
	uint8_t name[SHM_NAME_BYTES], secret[SHM_SECRET_BYTES];
	char machine[FRAGI_IDENTITY_SIZE], loopback[FRAGI_IDENTITY_SIZE],
		clock[FRAGI_IDENTITY_SIZE];
	uint8_t *address;
	size_t address_size;
	struct shm_endpoint *endpoints;
	struct shm_guest *guests; /* who came before connect was called for them */
	uint32_t guest_count;
	int64_t look_ns; /* when the sockets are looked at next */
	bool armed;
};

static inline struct shm_transport *shm_of(const struct fragi_transport *transport)
{
	return (struct shm_transport *)(uintptr_t)transport;
}

static inline struct shm_endpoint *shm_endpoint_of(struct fragi_endpoint *endpoint)
{
	return (struct shm_endpoint *)(void *)endpoint;
}

/* bell.c */
int shm_bell_create(struct shm_bell **out_bell);
struct shm_bell *shm_bell_ref(struct shm_bell *bell);
void shm_bell_unref(struct shm_bell *bell);
void shm_bell_ring(int fd);

/* address.c: what peers need to find this host */
int shm_address_make(struct shm_transport *transport, struct frag_err *err);
int shm_address_check(const struct shm_transport *transport, const void *address, size_t size,
		      struct shm_endpoint *out_peer, struct frag_err *err);

/* handshake.c: the sockets over which hosts exchange the descriptors of their memory */
int shm_handshake_open(struct shm_transport *transport, struct frag_err *err);
void shm_handshake_close(struct shm_transport *transport);
/* Advances open connections and notices peers that have gone. Returns how much has happened. */
uint32_t shm_handshake_poll(struct shm_transport *transport);
/* Connects the endpoint to its peer, which may have connected to this host already. */
void shm_handshake_match(struct shm_transport *transport, struct shm_endpoint *endpoint);

/* endpoint.c */
int shm_connect(struct fragi_transport *base, uint32_t host, const void *address, size_t size,
		void *owner, struct fragi_endpoint **out_endpoint, struct frag_err *err);
void shm_close(struct fragi_endpoint *base, bool silent);
bool shm_stop(struct fragi_endpoint *base, int64_t now_ns);
void shm_free(struct fragi_endpoint *base);
/* Reports it, once. */
void shm_failed(struct shm_endpoint *endpoint, const char *cause);
/* Nothing goes in or out any more; its slots are free. */
void shm_cut(struct shm_endpoint *endpoint);
void shm_endpoint_destroy(struct shm_endpoint *endpoint);

/* message.c */
bool shm_send(struct fragi_endpoint *base, struct fragi_send *send, const struct fragi_body *bodies,
	      uint32_t count);
/* Reads what has come, writes what waits. Returns what happened. */
uint32_t shm_exchange(struct shm_endpoint *endpoint);
/* The same for a peer that is gone: as much as its ring holds, if a liar goes on writing to it. */
uint32_t shm_exchange_rest(struct shm_endpoint *endpoint);
/* Whether there is something to read or to write. */
bool shm_has_work(struct shm_endpoint *endpoint);
/* Ends what waits and what the peer has. */
void shm_sends_end(struct shm_endpoint *endpoint);
/* Frees a list of them, of which the producer is not told. */
void shm_taken_free(struct shm_taken *taken);

#endif
