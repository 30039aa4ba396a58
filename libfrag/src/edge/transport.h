/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_TRANSPORT_H
#define FRAGI_EDGE_TRANSPORT_H

#include <edge/edge.h>

/*
 * A transport moves messages between hosts: one ops table, the only symbol of its module
 * (modules/ucx.so: fragi_transport_v1). One transport object a host process. It is not thread-safe
 * but for wake: whoever holds the pump's progress lock (pump.h) may call into it, except where a
 * comment says otherwise.
 */
#define FRAGI_TOKEN_BYTES 16
#define FRAGI_WINDOW_BYTES_DEFAULT (64ull << 20)
#define FRAGI_MESSAGE_BYTES_MAX (1ull << 30)
#define FRAGI_HOST_ADDRESS_MAX 4096

struct fragi_pump;
struct fragi_transport;
struct fragi_peer;

struct fragi_transport_config {
	size_t struct_size;
	uint32_t host;           /* this host's number in its run */
	uint64_t epoch;          /* of this host */
	struct fragi_pump *pump; /* the lock and the wake-up that sends use */
	int64_t beat_ns,
		dead_ns; /* data-plane beats and silence after which a peer is reported; 0: base/beat.h */
	/* Upward events, called under the progress lock; they must not block. */
	void *arg;
	void (*peer_ready)(void *arg, uint32_t host); /* HELLO went both ways */
	void (*peer_lost)(void *arg, uint32_t host,
			  const char *sentence); /* once a peer; edges to it are dead */
	void (*fault)(
		void *arg, int code,
		const char *sentence); /* this host cannot go on (fault policy, bad message) */
};

/* one flow between hosts, as the driver gave it to both ends */
struct fragi_link {
	uint32_t flow; /* index in the run: what the header carries */
	uint8_t token[FRAGI_TOKEN_BYTES];
	uint32_t window_messages;
	uint64_t window_bytes; /* a single larger message travels alone */
	uint64_t message_bytes_max;
	enum frag_policy policy;
};

struct fragi_transport_ops {
	size_t struct_size;
	const char *name; /* "ucx" */
	/*
	 * Fills err with what to do (interface not found, UCX too old ...). Thread: any, before the
	 * pump starts.
	 */
	int (*create)(const struct fragi_transport_config *config,
		      struct fragi_transport **out_transport, struct frag_err *err);
	/*
	 * After the pump was detached from it: says goodbye to the peers that are there (at most
	 * 0.5 s: what was sent, closes and credits included, has then arrived), and frees peers, tx
	 * and rx too. Nobody is notified any more. The pump and the ledger must still be there.
	 */
	void (*destroy)(struct fragi_transport *transport);
	/*
	 * What peers need to reach this host; opaque, at most FRAGI_HOST_ADDRESS_MAX bytes. Owned
	 * by the transport.
	 */
	const void *(*address)(const struct fragi_transport *transport, size_t *out_size);
	/*
	 * "ucx 1.13.1 tcp lo": version, transports and interface, for people and for the summary.
	 */
	const char *(*describe)(const struct fragi_transport *transport);
	/*
	 * Connects to a host. Nothing blocks; peer_ready or peer_lost follow. Refused with a
	 * sentence when the other side's settings (version, wire settings) cannot work with ours.
	 */
	int (*peer_add)(struct fragi_transport *transport, uint32_t host, uint64_t epoch,
			const void *address, size_t size, struct fragi_peer **out_peer,
			struct frag_err *err);
	int (*tx_create)(struct fragi_peer *peer, const struct fragi_link *link,
			 struct fragi_flow_row *row, struct fragi_tx **out_tx);
	int (*rx_create)(struct fragi_peer *peer, const struct fragi_link *link,
			 struct fragi_flow_row *row, struct fragi_rx **out_rx);
	/*
	 * True when everything sent on this transport, closes and credits included, has arrived at
	 * the peers that are there. Asks them; to be called again after some rounds of progress.
	 */
	bool (*is_flushed)(struct fragi_transport *transport);
	/*
	 * One round; returns how many things happened. Also sends beats and finds dead peers when
	 * their time has come.
	 */
	uint32_t (*progress)(struct fragi_transport *transport, int64_t now_ns);
	/* Prepares to sleep on fd: 0, or -EBUSY when there is work (progress again). */
	int (*arm)(struct fragi_transport *transport);
	int (*fd)(const struct fragi_transport *transport);
	/* When progress must be called next at the latest, CLOCK_MONOTONIC ns. */
	int64_t (*deadline_ns)(const struct fragi_transport *transport);
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
