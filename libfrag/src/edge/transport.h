/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_TRANSPORT_H
#define FRAGI_EDGE_TRANSPORT_H

#include <base/failure.h>
#include <base/timeline.h>
#include <data/codec.h>

/*
 * A transport moves bytes between hosts, or hands over memory, and knows nothing else: queues,
 * policies, credit, order and silence are the protocol's (edge/remote), which is the same above all
 * transports. A transport is one ops table, the only symbol of its module (modules/ucx.so:
 * fragi_transport_v1). docs/ARCHITECTURE.md ("Transports") says how UCX, shared memory and GPU
 * memory map onto it.
 *
 * Everything here is called under the pump's progress lock (pump.h), in both directions, except
 * where a comment says otherwise. Nothing here blocks but create and destroy.
 *
 * What a transport promises:
 * - Headers sent to one endpoint arrive in the order in which they were sent. Bodies may complete
 *   in any order.
 * - Each send and each receive that is under way ends with exactly one upcall, at the latest within
 *   destroy. Until then its memory is the transport's to read or write.
 * - An endpoint that has failed is reported once.
 */
#define FRAGI_DATA_KEY_BYTES 32 /* of the application's key */
#define FRAGI_HOST_ADDRESS_MAX 4096
#define FRAGI_HOST_TRANSPORTS_MAX 4
#define FRAGI_HEADER_MAX 4096 /* bytes; the protocol never sends a longer header */
#define FRAGI_HEADER_MIN 128  /* bytes; every transport accepts at least this many */

struct fragi_transport;
struct fragi_endpoint;

/*
 * Bodies of a message of up to so many bytes together may travel beside its header: to copy them
 * costs less than to hand them over, so they are not counted as copied.
 */
#define FRAGI_INLINE_MAX 1024

/* One message on its way out. Made by the protocol, with room for the transport. */
struct fragi_send {
	uint32_t header_bytes;
	uint64_t copied_bytes; /* of its bodies: what `send` copies is added */
	bool waits;            /* set by the transport while the peer cannot have it yet */
	_Alignas(16) uint8_t header[FRAGI_HEADER_MAX];
	_Alignas(16) uint8_t room[]; /* send_room bytes */
};

/* Bodies on their way in. Made by the protocol, with room for the transport. */
struct fragi_receive {
	_Alignas(16) uint8_t room[0]; /* receive_room bytes */
};

/* A message that has come, as the transport shows it. Valid during the upcall only. */
struct fragi_arrival {
	const void *header;
	size_t header_bytes;
	uint64_t body_bytes; /* of all bodies together */
	/* whose it can only be; NULL: the header alone says whose */
	const struct fragi_endpoint *from;
	/* The bodies are in one of three places, unless there are none: */
	const void *data;                /* one behind the other, valid during the upcall */
	const struct fragi_body *mapped; /* mapped into this process until it is released */
	uint32_t mapped_count;
	void *handle; /* still at the sender, or in buffers that the transport can hold */
};

enum fragi_arrival_use {
	FRAGI_ARRIVAL_USED, /* nothing of it is needed any more */
	/*
	 * The protocol has the handle, for receive or discard (or has called them already); or the
	 * mapped bodies, each of which it releases.
	 */
	FRAGI_ARRIVAL_KEPT,
};

/* What a transport reports to the protocol. The strings are copied. */
struct fragi_transport_events {
	enum fragi_arrival_use (*arrived)(void *arg, const struct fragi_arrival *arrival);
	/*
	 * The send is over: its bodies are the sender's again. abandoned: its endpoint is closed,
	 * and whether it arrived is not known; the bodies are free, but the send itself (with the
	 * header in it) must stay where it is until destroy returns.
	 */
	void (*sent)(struct fragi_send *send, bool abandoned);
	/* The receive is over. cause: why not all bytes came; NULL: `bytes` of them have. */
	void (*received)(struct fragi_receive *receive, const char *cause, uint64_t bytes);
	/* The connection is gone: cause says how, in the words of whoever found out. */
	void (*failed)(void *owner, const char *cause);
	/* This host cannot go on. */
	void (*fault)(void *arg, enum fragi_failure failure, const char *sentence);
};

struct fragi_transport_config {
	size_t struct_size;
	const struct fragi_transport_events *events;
	void *arg; /* of events */
	/* FRAGI_DATA_KEY_BYTES that all hosts of the application have and nobody else; copied. */
	const uint8_t *data_key;
};

/* The first member of a transport's own struct. Constant once created. */
struct fragi_transport {
	const struct fragi_transport_ops *ops;
	char version[16];  /* "1.13.1", of what stands below */
	char detail[128];  /* "tcp lo": what it goes over, for people */
	size_t header_max; /* FRAGI_HEADER_MIN .. */
	size_t send_room, receive_room;
	uint32_t devices;  /* kinds of memory that it reads and fills: 1 << enum frag_device_type */
	bool names_sender; /* arrivals say `from` */
	bool lends;        /* a send is under way for as long as the peer keeps its memory */
};

/* The first member of a transport's own struct: one connection to one host. */
struct fragi_endpoint {
	struct fragi_transport *transport;
	void *owner;                    /* the protocol's */
	bool same_node;                 /* both hosts run on one machine */
	char version[16];               /* as the transport's, over there */
	struct fragi_timeline timeline; /* the peer's */
};

struct fragi_transport_ops {
	size_t struct_size;
	const char *name;  /* "ucx": the kind, in graphs and addresses */
	const char *title; /* "UCX": in sentences */
	/*
	 * Fills err with what to do (interface not found, UCX too old ...). Thread: any, before the
	 * pump starts.
	 */
	int (*create)(const struct fragi_transport_config *config,
		      struct fragi_transport **out_transport, struct frag_err *err);
	/* Ends what is still under way (sent, received), closes and frees endpoints and itself. */
	void (*destroy)(struct fragi_transport *transport);
	/*
	 * What peers need to reach this host; opaque, at most FRAGI_HOST_ADDRESS_MAX bytes. Owned
	 * by the transport.
	 */
	const void *(*address)(const struct fragi_transport *transport, size_t *out_size);
	/*
	 * An allocator of memory on a device that this transport hands over without a copy, for
	 * those who make tensors; borrowed. NULL, or a NULL op: it has none.
	 */
	struct frag_resource *(*memory)(struct fragi_transport *transport,
					struct frag_device device);

	/*
	 * Memory of a device that is handed over lies in areas of that allocator, at most 64. area:
	 * the number of the one in which this body lies; negative: none. Thread: any, without the
	 * lock. areas: those that the other host has mapped, a bit each, and to which bodies may
	 * be sent; constant once it has sent a message after it has received one. NULL: there are
	 * none.
	 */
	int (*area)(const struct fragi_transport *transport, const struct fragi_body *body);
	uint64_t (*areas)(const struct fragi_endpoint *endpoint);

	/*
	 * Begins to connect to a host (its number is for sentences only). What does not connect
	 * fails later, or is reported as failed before this returns. Refused with a sentence when
	 * the two cannot work together (versions, settings that change the wire).
	 */
	int (*connect)(struct fragi_transport *transport, uint32_t host, const void *address,
		       size_t size, void *owner, struct fragi_endpoint **out_endpoint,
		       struct frag_err *err);
	/*
	 * An endpoint ends in three steps. close: nothing is sent any more. silent: nothing more
	 * comes from over there either (it failed, or said goodbye), so the connection may be cut;
	 * else a transport that cannot cut a living one keeps it until destroy.
	 */
	void (*close)(struct fragi_endpoint *endpoint, bool silent);
	/*
	 * True when there is nothing more to wait for: what was under way on a connection that was
	 * cut is over. To be called again after a round of progress. `now_ns` bounds the wait.
	 */
	bool (*stop)(struct fragi_endpoint *endpoint, int64_t now_ns);
	/*
	 * Where the other end is, for a sentence, as " at 10.0.0.1:11022"; tells: with what came of
	 * connecting to it, as " at 10.0.0.1:11022: refused". NULL, or nothing written: it is not
	 * known. Returns whether the way there is open.
	 */
	bool (*reach)(const struct fragi_endpoint *endpoint, bool tells, char *out, size_t size);
	/* The owner is gone. What is under way still ends with an upcall. */
	void (*free)(struct fragi_endpoint *endpoint);

	/*
	 * Sends a header with bodies behind it; `bodies` itself is read during the call only.
	 * Returns true when it is under way; false when it is over already, without an upcall (sent
	 * at once, or the endpoint has failed).
	 */
	bool (*send)(struct fragi_endpoint *endpoint, struct fragi_send *send,
		     const struct fragi_body *bodies, uint32_t count);
	/*
	 * Fills the memory of bodies with what the handle stands for. Takes the handle in every
	 * case. Returns 0 (received follows, perhaps before this returns) or -ENOMEM.
	 */
	int (*receive)(struct fragi_transport *transport, void *handle,
		       const struct fragi_body *bodies, uint32_t count,
		       struct fragi_receive *receive);
	/* Gives the handle up: its bodies are free over there. */
	void (*discard)(struct fragi_transport *transport, void *handle);

	/* One round; returns how many things happened. */
	uint32_t (*progress)(struct fragi_transport *transport, int64_t now_ns);
	/* Prepares to sleep on fd: 0, or -EBUSY when there is work (progress again). */
	int (*arm)(struct fragi_transport *transport);
	int (*fd)(const struct fragi_transport *transport);
	/* Makes fd readable. Thread: any, without the lock. */
	void (*wake)(struct fragi_transport *transport);
};

#define FRAGI_TRANSPORT_SYMBOL "fragi_transport_v1"

/*
 * Opens the module of that name ("ucx") from the modules folder beside libfrag. Returns 0, or
 * -ENOENT with a sentence that says what is missing.
 */
FRAGI_API int fragi_transport_open(const char *name, const struct fragi_transport_ops **out_ops,
				   struct frag_err *err);

#endif
