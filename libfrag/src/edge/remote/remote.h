/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_REMOTE_H
#define FRAGI_EDGE_REMOTE_H

#include <edge/edge.h>
#include <edge/pump.h>
#include <edge/transport.h>
#include <type/crypto.h>

/*
 * A host's edges to other hosts, over any number of transports: the protocol that stands above
 * them. A *peer* is another host, an *endpoint* the connection to it over one transport, and each
 * edge belongs to an endpoint. One object a host process.
 *
 * Everything is called under the pump's progress lock (fragi_pump_lock), except where a comment
 * says otherwise.
 */
#define FRAGI_TOKEN_BYTES 16

struct fragi_remote;
struct fragi_remote_peer;
struct fragi_remote_endpoint;

struct fragi_remote_config {
	uint32_t host;           /* this host's number in its run */
	uint64_t epoch;          /* of this host */
	struct fragi_pump *pump; /* the lock and the wake-up that sends use */
	/* data-plane beats, and the silence after which a peer is reported; 0: base/beat.h */
	int64_t beat_ns, dead_ns;
	/* a time of a peer that is less exact counts as not known (timeline.h); 0: none does */
	int64_t max_error_ns;
	/* FRAGI_DATA_KEY_BYTES; borrowed until destroy. For transports and encrypted flows. */
	const uint8_t *data_key;
	/* Upward events, called under the progress lock; they must not block. */
	void *arg;
	/* HELLO went both ways on all endpoints of the peer. */
	void (*peer_ready)(void *arg, uint32_t host);
	/* Once a peer; edges to it are dead, and after fragi_remote_drain they end. */
	void (*peer_lost)(void *arg, uint32_t host, enum fragi_failure failure,
			  const char *sentence);
	/*
	 * This host cannot go on: no memory is left for a message, its type is not known here, a
	 * GPU has failed, or a transport is at its end. op: whose message it is; NULL: nobody's.
	 */
	void (*fault)(void *arg, enum fragi_failure failure, const char *op, const char *sentence);
};

/* One flow between hosts, as the driver gave it to both ends. */
struct fragi_edge_config {
	uint32_t flow; /* index in the run: what the header carries */
	uint8_t token[FRAGI_TOKEN_BYTES];
	uint32_t window_messages;
	uint64_t window_bytes; /* a single larger message travels alone */
	uint64_t message_bytes_max;
	enum frag_policy policy;
	bool encrypt; /* needs data_key and fragi_remote_set_crypto */
	/* the operator at this end, "fragment.operator", for reports; outlives the end */
	const char *op;
};

/* Thread: any. Returns 0 or -ENOMEM. */
FRAGI_API int fragi_remote_create(const struct fragi_remote_config *config,
				  struct fragi_remote **out_remote);
/*
 * After the pump was detached from it, without the lock: says goodbye to the peers that are there
 * (at most 0.5 s: what was sent, closes and credits included, has then arrived), and frees peers,
 * edges and transports. Nobody is notified any more. The pump and the ledger must still be there.
 * NULL is accepted.
 */
FRAGI_API void fragi_remote_destroy(struct fragi_remote *remote);
/* What the pump drives: its object is the struct fragi_remote. */
FRAGI_API extern const struct fragi_pump_ops fragi_remote_pump_ops;

/*
 * Opens a transport; each kind at most once. Before the pump is attached and before the first peer.
 * Thread: any. Returns 0, or negative errno with a sentence.
 */
FRAGI_API int fragi_remote_open(struct fragi_remote *remote, const struct fragi_transport_ops *ops,
				struct frag_err *err);
/* What encrypted edges need; before the first of them. */
FRAGI_API void fragi_remote_set_crypto(struct fragi_remote *remote,
				       const struct fragi_crypto_ops *crypto);
/* The open transport of a kind, for its address and detail; NULL: there is none. */
FRAGI_API const struct fragi_transport *fragi_remote_transport(const struct fragi_remote *remote,
							       const char *kind);

/* Another host, or this one itself. Returns 0 or -ENOMEM. */
FRAGI_API int fragi_remote_peer_create(struct fragi_remote *remote, uint32_t host, uint64_t epoch,
				       struct fragi_remote_peer **out_peer);
/* What sentences call it; "host 2" until then. */
FRAGI_API void fragi_remote_peer_set_name(struct fragi_remote_peer *peer, const char *name);
/*
 * Connects to a peer over the transport of that kind, at the address that its own gave; once a
 * kind. peer_ready or peer_lost follow when the endpoint has an edge. Refused with a sentence when
 * the two cannot work together, or the transport is not open here.
 */
FRAGI_API int fragi_remote_connect(struct fragi_remote_peer *peer, const char *kind,
				   const void *address, size_t size,
				   struct fragi_remote_endpoint **out_endpoint,
				   struct frag_err *err);
/*
 * The two ends of an edge. Returns 0, -EINVAL for a window, flow or encryption that cannot be,
 * -EEXIST for an end that is there already, -ENOMEM.
 */
FRAGI_API int fragi_remote_tx_create(struct fragi_remote_endpoint *endpoint,
				     const struct fragi_edge_config *config,
				     struct fragi_flow_row *row, struct fragi_tx **out_tx);
FRAGI_API int fragi_remote_rx_create(struct fragi_remote_endpoint *endpoint,
				     const struct fragi_edge_config *config,
				     struct fragi_flow_row *row, struct fragi_rx **out_rx);

/*
 * A peer's process has ended and another one, of a higher epoch, takes its place. The edges of a
 * lost peer are suspended: a sender that blocks waits, the queues of the others go on as their
 * policies say, receivers wait. With a successor the endpoints connect again, and when they have,
 * the edges resume, with fresh credit: what had not left this host goes to the successor. What was
 * on its way is lost. What had arrived here stays to be received, before what the successor sends;
 * and a receiver that had closed, or a sender, is so for the successor too. peer_ready or peer_lost
 * follow as for a new peer.
 *
 * First the peer, which is not heard any more from then on; then each edge, with its new token;
 * then each endpoint, with the new address, which is copied. Returns 0; -ESTALE for an epoch that
 * is not higher; -ENOENT for a flow or an endpoint that the peer does not have; -ENOMEM.
 */
FRAGI_API int fragi_remote_peer_succeed(struct fragi_remote_peer *peer, uint64_t epoch);
FRAGI_API int fragi_remote_edge_succeed(struct fragi_remote_peer *peer, uint32_t flow,
					const uint8_t token[FRAGI_TOKEN_BYTES]);
FRAGI_API int fragi_remote_endpoint_succeed(struct fragi_remote_peer *peer, const char *kind,
					    const void *address, size_t size);
/* The peer of that host number; NULL: there is none. */
FRAGI_API struct fragi_remote_peer *fragi_remote_peer_find(const struct fragi_remote *remote,
							   uint32_t host);
FRAGI_API uint64_t fragi_remote_peer_epoch(const struct fragi_remote_peer *peer);
/* Whether it was reported ready, and whether it was reported lost, in its present epoch. */
FRAGI_API bool fragi_remote_peer_was_ready(const struct fragi_remote_peer *peer);
FRAGI_API bool fragi_remote_peer_was_lost(const struct fragi_remote_peer *peer);

/*
 * What CLOCK_MONOTONIC of the peer is ahead of ours at a time of ours, and how wrong that is at
 * most. Returns false: it is not known. Under the pump's lock.
 */
FRAGI_API bool fragi_remote_peer_ahead(const struct fragi_remote_peer *peer, int64_t now_ns,
				       int64_t *out_ahead_ns, int64_t *out_error_ns);

/*
 * What an end counted in older epochs of its peer: messages that were sent, or arrived. Under the
 * pump's lock.
 */
FRAGI_API uint64_t fragi_remote_tx_before(const struct fragi_tx *tx);
FRAGI_API uint64_t fragi_remote_rx_before(const struct fragi_rx *rx);
/*
 * Messages whose credit came back in the present epoch of the peer, also behind its DONE. Under the
 * pump's lock.
 */
FRAGI_API uint64_t fragi_remote_tx_credited(const struct fragi_tx *tx);
/*
 * Which two processes an end has counted for since: the sum of their epochs, the same at both ends,
 * which grows with each successor of either. Under the pump's lock.
 */
FRAGI_API uint64_t fragi_remote_tx_link(const struct fragi_tx *tx);
FRAGI_API uint64_t fragi_remote_rx_link(const struct fragi_rx *rx);

/*
 * How many messages the end keeps in memory: those not sent yet, and those that the transport still
 * reads. Under the pump's lock.
 */
FRAGI_API uint32_t fragi_remote_tx_kept(const struct fragi_tx *tx);

/*
 * The application stops: from now on the edges of a lost peer end, as if it had closed them, so
 * that the operators at this end can end too. Before that they wait for the driver, which judges
 * what the loss means.
 */
FRAGI_API void fragi_remote_drain(struct fragi_remote *remote);

/*
 * This host will be started again: from now on its ends that close do not say so, because their
 * peers would end with them. Thread: any.
 */
FRAGI_API void fragi_remote_keep_open(struct fragi_remote *remote);

/*
 * This host is to be replaced by another process that goes on for it: it drains, and its ends that
 * close do not say so, because its peers go on with the other one. Thread: any.
 */
FRAGI_API void fragi_remote_yield(struct fragi_remote *remote);
/* Whether it is so; also because a peer has suspended its edges to it. Thread: any. */
FRAGI_API bool fragi_remote_yields(const struct fragi_remote *remote);
/*
 * The other side of it: the peer is to be replaced. What was sent to it is followed by the word
 * that nothing more comes, and what is sent from now on waits here for its successor. What the peer
 * still sends is received, and its credit goes back.
 */
FRAGI_API void fragi_remote_peer_suspend(struct fragi_remote_peer *peer);

/*
 * True when everything that was sent, closes and credits included, has arrived at the peers that
 * are there. Asks them; to be called again after some rounds of progress.
 */
FRAGI_API bool fragi_remote_is_flushed(struct fragi_remote *remote);

#endif
