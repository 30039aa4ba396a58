/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_REMOTE_STATE_H
#define FRAGI_EDGE_REMOTE_STATE_H

#include <base/alloc.h>
#include <base/peer_clock.h>
#include <base/policy.h>
#include <base/stamp.h>
#include <data/layout.h>
#include <edge/remote/header.h>
#include <edge/window.h>

/*
 * What the files of edge/remote share. Everything here is touched by the holder of the pump's
 * progress lock alone, except where a field says otherwise.
 */
#define FRAGI_HELLO_RETRY_NS 50000000
#define FRAGI_GOODBYE_NS 500000000          /* the longest that destroy waits for peers */
#define FRAGI_TRANSPORTS_STOP_NS 2000000000 /* and for transports to close their endpoints */
#define FRAGI_RECEIVE_BYTES (4u << 20) /* of a flow's handles at the same time, or one larger */
#define FRAGI_FLOWS_MAX (1u << 20)
#define FRAGI_SENTENCE_MAX 512
/* an error of the stamps' calibration has not grown to 0.1 us by then */
#define FRAGI_MOMENT_NS 1000000

struct fragi_remote_tx;
struct fragi_remote_rx;

enum fragi_endpoint_state {
	FRAGI_ENDPOINT_CONNECTING,
	FRAGI_ENDPOINT_READY,
	FRAGI_ENDPOINT_SUSPENDED, /* no more messages go there, as the peer is to be replaced */
	FRAGI_ENDPOINT_LEFT,      /* the peer has said goodbye */
	FRAGI_ENDPOINT_LOST,
};

/* A transport, and the requests that were made for it. */
struct fragi_remote_transport {
	struct fragi_remote *remote;
	const struct fragi_transport_ops *ops;
	struct fragi_transport *transport;
	size_t header_max;
	struct fragi_remote_send *free_sends, *abandoned_sends;
	uint32_t free_send_count;
	struct fragi_remote_receive *free_receives;
	uint32_t receiving; /* receives of bodies under way */
};

/* A message on its way out. The transport may read it until it is over. */
struct fragi_remote_send {
	struct fragi_remote_send *next, *previous; /* of the endpoint, while under way */
	struct fragi_remote_endpoint *endpoint;    /* NULL: it was freed meanwhile */
	struct fragi_remote_transport *transport;
	struct fragi_remote_tx *tx;     /* whose message it is; may be NULL */
	struct frag_message *message;   /* whose memory the bodies are; may be NULL */
	struct fragi_remote_seal *seal; /* of the flow; NULL: plain */
	bool back, is_own;              /* by the flow's receiver; of the endpoint, without a tx */
	void *sealed;                   /* the encrypted bodies; may be NULL */
	struct fragi_send base;         /* last: the transport's room is behind it */
};

/* Bodies or descriptors on their way in. The transport may write to them until it is over. */
struct fragi_remote_receive {
	struct fragi_remote_receive *next; /* free */
	struct fragi_remote_transport *transport;
	struct fragi_remote_part *part; /* NULL: given up; then these keep the memory: */
	struct frag_message *message;
	uint8_t *descriptors;
	bool of_bodies;
	struct fragi_receive base; /* last: the transport's room is behind it */
};

struct fragi_remote_endpoint {
	struct fragi_remote_peer *peer;
	struct fragi_remote_transport *transport;
	struct fragi_remote_endpoint *next; /* of the peer */
	struct fragi_endpoint *base;        /* NULL once freed */
	_Atomic int state;                  /* enum fragi_endpoint_state; operators read it */
	_Atomic uint64_t areas;  /* of this host that the peer has mapped; operators read it */
	_Atomic bool takes_next; /* the peer takes NEXT; operators read it */
	bool heard;              /* its HELLO has come */
	bool suspend_wanted;     /* ... once it is ready */
	bool failed;             /* to be lost after this round */
	bool broken;             /* the transport has said so: nothing more comes */
	bool closing, stopped;   /* base is being closed; and that is over */
	/* why it failed */
	enum fragi_failure failure;
	char sentence[FRAGI_SENTENCE_MAX];
	struct fragi_remote_edge *edges;
	/* the flow in whose name HELLO, BEAT and SYNC are sent: its first */
	bool has_name, back;
	uint32_t flow;
	uint8_t token[FRAGI_TOKEN_BYTES];
	struct fragi_remote_seal *seal; /* an encrypted flow is preferred */
	/* an end that owes a batch of credit; set by its operator */
	_Atomic(struct fragi_remote_rx *) owing;
	struct fragi_remote_send *sends; /* under way */
	uint32_t own_sends;              /* of these, HELLO, BEAT and SYNC */
	int64_t heard_ns, sent_ns;
	int64_t ready_ns;                           /* since when; 0: it was not yet */
	int64_t hello_ns, connect_until_ns;         /* 0: no HELLO was sent yet */
	bool waits_longer;                          /* it has had some time more than that */
	uint64_t sent_count;                        /* messages but HELLO, BEAT and SYNC */
	uint64_t sync_asked, sync_answered;         /* sent_count, as SYNC carries it */
	bool leave_wanted, leave_sent, leave_heard; /* our goodbye, and that it has arrived */
	/* of its successor; NULL: there is none */
	void *successor;
	size_t successor_size;
	uint32_t arriving; /* messages that have begun to arrive */
	/* clock.c, of a peer that reads another clock; timeline of base follows from it */
	struct fragi_peer_clock clock;
	enum fragi_peer_clock_state clock_reported;
	int64_t asked_ns, clock_until_ns; /* a peer is ready at the latter, or when compared */
	uint32_t questions;               /* that may be asked before the next beat */
	int refused; /* why its other clocks are not compared, as logged: clock.c; 0: they are */
	int64_t smeared_until_ns;
	/* a SYNC that is answered when they are here and there is room, and what it carries */
	bool sync_owed, leave_owed;
	uint64_t sync_sequence;
};

struct fragi_remote_peer {
	struct fragi_remote *remote;
	struct fragi_remote_peer *next;
	uint32_t host;
	uint64_t epoch;
	char name[160];   /* for sentences */
	uint16_t worker;  /* fragi_trail_worker_name */
	bool ready, lost; /* reported */
	struct fragi_remote_endpoint *endpoints;
};

/* The first member of both ends. */
struct fragi_remote_edge {
	struct fragi_remote_endpoint *endpoint;
	struct fragi_remote_seal *seal; /* the flow's; NULL: plain */
	struct fragi_remote_edge *next; /* of the endpoint */
	bool is_tx;
	uint64_t link; /* that it counts for: the sum of both epochs */
	struct fragi_edge_config config;
};

/* What NEXT stands for in a flow. */
struct fragi_remote_layout {
	struct fragi_layout *known; /* NULL: none yet */
	uint8_t *descriptors;       /* at the receiver */
	/* at the sender: of the last message that had a layout but not this one */
	uint32_t descriptor_bytes;
	uint64_t body_bytes;
};

struct fragi_remote_tx {
	struct fragi_remote_edge edge;
	struct fragi_tx tx;
	/* blocking: credit comes back when the receiver takes */
	const struct fragi_policy *policy;
	struct fragi_queue pending; /* the sending operator pushes, the holder takes */
	struct fragi_pump_work kick;
	_Atomic bool kicked;           /* kick is with the pump */
	_Atomic bool closing;          /* set by the sending operator */
	struct fragi_window_tx window; /* posted: blocking only */
	struct fragi_stream *copies;   /* the sending operator's: to the host */
	/* FRAGI_AT_RECEIVE_WORK since copies are made: any message may wait for one */
	_Atomic uint8_t at_send;
	/* the holder's */
	struct frag_message *held; /* taken from pending, waits for bytes of credit */
	uint64_t held_stamp;
	/* the GPU's work that the held one waits for; a name only */
	const struct fragi_work *awaited;
	int64_t awaited_ns;        /* CLOCK_MONOTONIC: since when; 0: for none */
	bool gpu_failed;           /* and the fault is reported */
	_Atomic uint32_t awaiting; /* reports of such work that are to come, on any thread */
	uint32_t under_way, under_way_max; /* sends */
	bool close_sent;
	/* sent in older epochs of the peer: messages of this one count from 0 */
	uint64_t before, before_bytes;
	uint64_t dropped_before;           /* of these, counted as sent but dropped */
	struct fragi_remote_layout layout; /* the holder's */
};

enum fragi_part_state {
	FRAGI_PART_FREE,
	FRAGI_PART_ARRIVING,
	FRAGI_PART_COMPLETE,
};

/* What opens the body of a sealed message. */
struct fragi_seal_mark {
	uint64_t number;
	uint8_t tag[FRAGI_AEAD_TAG_SIZE];
};

/* A sealed message whose header was opened. */
struct fragi_sealed {
	uint8_t *rest; /* of what stood behind the header; valid until the next message */
	size_t rest_bytes;
	struct fragi_seal_mark mark;
};

/* A message on its way in. */
struct fragi_remote_part {
	enum fragi_part_state state;
	struct fragi_remote_rx *rx;
	struct frag_message *message;
	uint32_t descriptor_bytes;
	uint64_t body_bytes;
	int64_t publish_ns;
	bool has_descriptors, has_bodies;
	bool was_on_gpu; /* a tensor of it was, at the sender */
	struct fragi_seal_mark bodies_mark, descriptors_mark; /* where the flow is encrypted */
	uint8_t *descriptors; /* that came ahead, or with bodies whose turn has not come */
	/* bodies that wait, for the descriptors or for their turn, in one of three places */
	void *data; /* a copy */
	void *handle;
	struct fragi_body *mapped; /* a copy of what the transport showed */
	uint32_t mapped_count;
	bool waiting;                         /* a handle whose turn has not come */
	struct fragi_remote_receive *receive; /* under way */
};

struct fragi_remote_rx {
	struct fragi_remote_edge edge;
	struct fragi_rx rx;
	struct fragi_notify taken; /* of rx, if blocking */
	bool blocking;
	struct fragi_remote_part *parts; /* by sequence */
	/* bytes of credit, by sequence; the receiving operator reads those it takes */
	uint64_t *sizes;
	uint64_t mask;
	struct fragi_pump_work kick;
	_Atomic bool kicked;
	_Atomic bool done; /* the receiver has closed; set by its operator */
	/* the receiving operator consumes, or the holder: not blocking, or done */
	struct fragi_window_rx window;
	/* the holder's */
	uint64_t next, next_bytes; /* to be delivered */
	/* delivered of older epochs of the peer: messages of this one count from 0 */
	uint64_t before, before_bytes;
	bool waits_for_place;     /* in the queue, which holds messages of an older epoch */
	uint64_t receiving_bytes; /* of the handles that are being received */
	uint32_t receiving, waiting;
	bool taking_turns; /* receives what waits */
	bool close_known, close_reported, done_sent;
	bool broken; /* takes nothing more: it failed, or its endpoint is lost */
	uint64_t close_sequence;
	struct fragi_remote_layout layout;
};

/* A flow with an end here. It stays when its ends are freed, so that late messages find it. */
struct fragi_remote_flow {
	struct fragi_remote_endpoint *endpoint; /* NULL: none */
	uint8_t token[FRAGI_TOKEN_BYTES];
	struct fragi_remote_seal *seal; /* NULL: plain */
	struct fragi_remote_tx *tx;
	struct fragi_remote_rx *rx;
};

/* What the clocks of this machine did when they were looked at last; all of it from clock.c. */
struct fragi_remote_clock {
	int64_t looked_ns; /* 0: never; only where a peer reads another clock */
	int64_t boot_ahead_ns, unix_ahead_ns, tai_ahead_ns; /* of CLOCK_MONOTONIC */
	int64_t monotonic_ns, raw_ns;                       /* at the same time */
	int64_t rate;                                       /* of the two, ns a second */
	bool knows_rate;
	uint16_t steps, slews; /* as beats carry them */
	bool awaits_leap;
};

struct fragi_remote {
	struct fragi_remote_config config;
	struct fragi_remote_transport transports[FRAGI_HOST_TRANSPORTS_MAX];
	uint32_t transport_count;
	int fd; /* epoll of the transports' where there are several; else -1 */
	struct fragi_remote_peer *peers;
	struct fragi_remote_flow *flows; /* by number */
	uint32_t flows_size;
	struct frag_resource *bodies;
	const struct fragi_crypto_ops *crypto; /* NULL: no flow is encrypted */
	struct fragi_aead *aead;
	uint8_t *opened; /* FRAGI_HEADER_MAX: what stood behind the header of a sealed message */
	struct fragi_stream *arrivals; /* copies what has arrived to the GPU */
	int64_t now_ns, tick_ns;       /* of the last round; of the next housekeeping */
	struct fragi_moment moment;    /* FRAGI_MOMENT_NS old at most where it is used */
	int64_t moment_stamps;         /* FRAGI_MOMENT_NS */
	struct fragi_remote_clock clock;
	uint32_t happened;      /* in this round */
	bool endpoint_failed;   /* `failed` or `broken` of some endpoint was set */
	bool endpoints_closing; /* some endpoint is closing and not stopped */
	bool flush_wanted;
	bool draining; /* edges of lost peers end */
	_Atomic bool keeps_open, yields;
	/* set by operators: some credit was not worth a message yet */
	_Atomic bool credits_waiting;
	uint64_t refused; /* messages that nobody here should have got */
};

static inline struct fragi_remote *fragi_remote_of(const struct fragi_remote_endpoint *endpoint)
{
	return endpoint->peer->remote;
}

/* remote.c: makes rounds until done(arg), or until the time is over; then false. */
bool fragi_remote_run_until(struct fragi_remote *remote, int64_t until_ns, bool (*done)(void *arg),
			    void *arg);

/* dispatch.c: flows by number, and what every message that arrives passes first. */
int fragi_remote_edge_add(struct fragi_remote_endpoint *endpoint, struct fragi_remote_edge *edge,
			  const struct fragi_edge_config *config, bool is_tx);
void fragi_remote_edge_remove(struct fragi_remote_edge *edge);
enum fragi_arrival_use fragi_remote_dispatch(struct fragi_remote *remote,
					     const struct fragi_arrival *arrival);

/* endpoint.c */
int fragi_remote_endpoint_create(struct fragi_remote_peer *peer,
				 struct fragi_remote_transport *transport, const void *address,
				 size_t size, struct fragi_remote_endpoint **out_endpoint,
				 struct frag_err *err);
/* Detaches what is under way, and frees. Its edges are gone. */
void fragi_remote_endpoint_free(struct fragi_remote_endpoint *endpoint);
/*
 * To be lost at the end of this round, with a code and a sentence; the first reason counts.
 * Callable from upcalls.
 */
void fragi_remote_endpoint_fail(struct fragi_remote_endpoint *endpoint, enum fragi_failure failure,
				const char *format, ...) FRAG_PRINTF(3, 4);
void fragi_remote_endpoint_transition(struct fragi_remote_endpoint *endpoint,
				      enum fragi_endpoint_state state);
/* Closes it; fragi_remote_settle stops it. */
void fragi_remote_endpoint_close(struct fragi_remote_endpoint *endpoint);
/* HELLO, beats, silence, credits that were held back. Returns when to be called again. */
int64_t fragi_remote_endpoint_tick(struct fragi_remote_endpoint *endpoint, int64_t now_ns);
bool fragi_remote_endpoint_is_flushed(const struct fragi_remote_endpoint *endpoint);
/* Asks for an answer behind all that was sent, unless it has been asked for. */
void fragi_remote_endpoint_flush(struct fragi_remote_endpoint *endpoint);
/* Goodbye, once all else has arrived. Returns true when that has, or there is nobody. */
bool fragi_remote_endpoint_leave(struct fragi_remote_endpoint *endpoint);
void fragi_remote_on_hello(struct fragi_remote_endpoint *endpoint,
			   const struct fragi_header *header);
void fragi_remote_on_sync(struct fragi_remote_endpoint *endpoint,
			  const struct fragi_header *header);
void fragi_remote_on_failed(void *owner, const char *cause);
/* A message that had begun to arrive is here, or given up. */
void fragi_remote_endpoint_arrived(struct fragi_remote_endpoint *endpoint);
static inline int fragi_remote_endpoint_state(const struct fragi_remote_endpoint *endpoint)
{
	return atomic_load_explicit(&endpoint->state, memory_order_acquire);
}

/* Whether what is not a message of a flow goes both ways. */
static inline bool fragi_remote_endpoint_is_up(const struct fragi_remote_endpoint *endpoint)
{
	int state = fragi_remote_endpoint_state(endpoint);

	return state == FRAGI_ENDPOINT_READY || state == FRAGI_ENDPOINT_SUSPENDED;
}

/* clock.c: the clock of a peer, where it is not that of this host */
static inline bool fragi_remote_clock_is_other(const struct fragi_remote_endpoint *endpoint)
{
	return endpoint->base->timeline.state != FRAGI_TIMELINE_SAME;
}
/* The first messages of a peer are to be compared too, so it is not ready yet. */
static inline bool fragi_remote_clock_is_awaited(const struct fragi_remote_endpoint *endpoint)
{
	return endpoint->clock_until_ns != 0 && fragi_remote_endpoint_is_up(endpoint);
}
/* Of an endpoint that has become ready. */
void fragi_remote_clock_begin(struct fragi_remote_endpoint *endpoint);
/* Asks with each beat. Returns when to be called again. */
int64_t fragi_remote_clock_tick(struct fragi_remote_endpoint *endpoint, int64_t now_ns);
void fragi_remote_on_beat(struct fragi_remote_endpoint *endpoint,
			  const struct fragi_header *header);

/* yield.c: nothing more is sent to a peer that is ready, and it hears so. */
void fragi_remote_endpoint_suspend(struct fragi_remote_endpoint *endpoint);

/* successor.c */
/* The endpoint is closed and stopped: it connects to the successor of its peer. */
void fragi_remote_endpoint_reconnect(struct fragi_remote_endpoint *endpoint);
void fragi_remote_endpoint_forget_successor(struct fragi_remote_endpoint *endpoint);

/* peer.c */
void fragi_remote_endpoint_lose(struct fragi_remote_endpoint *endpoint);
/* Loses the endpoints that have failed, and stops those that are closing. */
void fragi_remote_settle(struct fragi_remote *remote);
int64_t fragi_remote_peers_tick(struct fragi_remote *remote, int64_t now_ns);
void fragi_remote_peer_is_ready(struct fragi_remote_peer *peer);
/* No notifications from its edges any more. */
void fragi_remote_peer_silence(struct fragi_remote_peer *peer);
void fragi_remote_peer_free(struct fragi_remote_peer *peer);

/* send.c: messages on their way out */
struct fragi_remote_send *fragi_remote_send_create(struct fragi_remote_endpoint *endpoint);
/* Packs the header, and starts; takes the send in every case. */
void fragi_remote_send_start(struct fragi_remote_send *send, const struct fragi_header *header,
			     size_t header_bytes, const struct fragi_body *bodies, uint32_t count);
/* The same of a send whose header, NEXT, is packed. */
void fragi_remote_send_next(struct fragi_remote_send *send, const struct fragi_body *bodies,
			    uint32_t count);
/* A header without bodies, in the name of an edge. */
void fragi_remote_send_control(struct fragi_remote_edge *edge, enum fragi_header_kind kind,
			       uint8_t flags, uint64_t sequence, uint64_t bytes);
/* In the name of the endpoint; header: filled in. False, and not sent: too many wait there. */
bool fragi_remote_send_own(struct fragi_remote_endpoint *endpoint, enum fragi_header_kind kind,
			   uint8_t flags, uint64_t sequence);
bool fragi_remote_send_header(struct fragi_remote_endpoint *endpoint, struct fragi_header *header);
void fragi_remote_on_sent(struct fragi_send *base, bool abandoned);
uint64_t fragi_remote_sends_waiting(const struct fragi_remote_tx *tx); /* the peer has none */
/* Those of an endpoint, or of a tx, go on without it. */
void fragi_remote_sends_detach(struct fragi_remote_endpoint *endpoint,
			       const struct fragi_remote_tx *tx);
void fragi_remote_sends_free(struct fragi_remote_transport *transport); /* once destroyed */

/* tx.c: the sending end */
/* Sends what may be sent now. */
void fragi_remote_tx_transmit(struct fragi_remote_tx *tx);
void fragi_remote_tx_on_sent(struct fragi_remote_tx *tx); /* a send is over */
void fragi_remote_tx_count_copied(struct fragi_remote_tx *tx, uint64_t bytes);
bool fragi_remote_tx_is_empty(const struct fragi_remote_tx *tx);
void fragi_remote_tx_on_credit(struct fragi_remote_tx *tx, uint64_t messages, uint64_t bytes);
void fragi_remote_tx_on_done(struct fragi_remote_tx *tx);
/* Its receiver is lost, and another one takes its place. */
void fragi_remote_tx_restart(struct fragi_remote_tx *tx);
/* Its receiver is lost, and nobody waits for what that means. */
void fragi_remote_tx_end(struct fragi_remote_tx *tx);
/* The operator sends nothing any more: nobody is told of room, and no copy is under way. */
void fragi_remote_tx_silence(struct fragi_remote_tx *tx);
void fragi_remote_tx_free(struct fragi_remote_tx *tx);

/* depart.c: a message on its way out */
/* Takes the message, whose descriptors are in blob. has_trail: it says how long it was held. */
void fragi_remote_tx_depart(struct fragi_remote_tx *tx, struct frag_message *message,
			    const struct fragi_blob *blob, uint64_t stamp, bool has_trail);
/* The host cannot go on sending to the peer. */
void fragi_remote_tx_fail_for_memory(struct fragi_remote_tx *tx);
static inline int64_t fragi_remote_publish_ns(struct fragi_remote *remote, uint64_t stamp)
{
	if ((int64_t)(stamp - remote->moment.stamp) > remote->moment_stamps)
		remote->moment = fragi_moment_now();
	return fragi_moment_ns_at(&remote->moment, stamp);
}

/* next.c: messages that are like those before */
void fragi_remote_layout_forget(struct fragi_remote_layout *layout);
/* Whether the message can leave as NEXT. */
bool fragi_remote_tx_has_next(const struct fragi_remote_tx *tx, const struct frag_message *message);
/* Takes such a message. */
void fragi_remote_tx_send_next(struct fragi_remote_tx *tx, struct frag_message *message,
			       uint64_t stamp);
/*
 * A message leaves as DATA with its descriptors in the header. Returns FRAGI_FLAG_LAYOUT if
 * messages that are like it leave as NEXT from now on, else 0.
 */
uint8_t fragi_remote_tx_learn(struct fragi_remote_tx *tx, const struct frag_message *message,
			      uint32_t descriptor_bytes, uint64_t body_bytes);
/* NEXT may follow that has these descriptors. Returns false when the flow has failed. */
bool fragi_remote_rx_learn(struct fragi_remote_rx *rx, const uint8_t *descriptors, size_t size);
enum fragi_arrival_use fragi_remote_on_next(struct fragi_remote_rx *rx,
					    const struct fragi_next *next,
					    const struct fragi_arrival *arrival);

/* gpu.c: tensors in memory of a GPU, on their way out */
/*
 * Whether the other host maps the tensor's memory, so that it gets a place in it and no bytes.
 * Thread: the sending operator's, or the holder of the lock.
 */
bool fragi_remote_tx_is_mapped(const struct fragi_remote_tx *tx, const struct frag_tensor *tensor);
/*
 * Whether the GPU still writes the message, or copies it. Then the tx is kicked when it has; if the
 * GPU has failed, the host ends. A GPU that has failed may report nothing, so each beat asks it
 * again.
 */
bool fragi_remote_tx_awaits(struct fragi_remote_tx *tx, const struct frag_message *message);
/*
 * The tensors' bytes; empty ones have none. Returns 0; 1: all that is on GPUs is sent as copies;
 * -EIO: a GPU refuses to give them, which it is asked here only when the message was prepared for a
 * host that mapped its memory, and has been replaced since.
 */
int fragi_remote_tx_gather(struct fragi_remote_tx *tx, const struct frag_message *message,
			   struct fragi_body *bodies, uint32_t *out_count, uint64_t *out_bytes);

/* rx.c: the receiving end */
/* Gives up what is still arriving, of an endpoint that is closed or freed. */
void fragi_remote_rx_abandon(struct fragi_remote_rx *rx);
void fragi_remote_rx_free(struct fragi_remote_rx *rx);
/* Of an endpoint that has become ready, and when the operator has asked for it: DONE, credit. */
void fragi_remote_rx_settle(struct fragi_remote_rx *rx);
/* Delivers what is complete, in order. */
void fragi_remote_rx_deliver(struct fragi_remote_rx *rx);
/* Delivers a message that is the next one, for which there is a place. bytes: of its credit. */
void fragi_remote_rx_deliver_next(struct fragi_remote_rx *rx, struct frag_message *message,
				  uint64_t bytes, int64_t publish_ns);
void fragi_remote_rx_on_close(struct fragi_remote_rx *rx, const struct fragi_header *header);
/* Its sender is lost, and another one takes its place. */
void fragi_remote_rx_restart(struct fragi_remote_rx *rx);
/* Its sender is lost, and nobody waits for what that means. */
void fragi_remote_rx_end(struct fragi_remote_rx *rx);
void fragi_remote_rx_on_want(struct fragi_remote_rx *rx);
void fragi_remote_rx_broke_rule(struct fragi_remote_rx *rx, const char *what);

/* arrival.c: messages on their way in */
/* mark: of a sealed message; NULL: plain */
enum fragi_arrival_use fragi_remote_on_data(struct fragi_remote_rx *rx,
					    const struct fragi_header *header,
					    const struct fragi_seal_mark *mark,
					    const uint8_t *descriptors, size_t descriptor_bytes,
					    const struct fragi_arrival *arrival);
enum fragi_arrival_use fragi_remote_on_descriptors(struct fragi_remote_rx *rx,
						   const struct fragi_header *header,
						   const struct fragi_seal_mark *mark,
						   const struct fragi_arrival *arrival);
/* This host cannot go on, for want of memory to receive a message. */
void fragi_remote_rx_fault_for_memory(struct fragi_remote_rx *rx);
void fragi_remote_part_reset(struct fragi_remote_part *part);
/* Gives the part up. What the transport may still write to is kept until its receive is over. */
void fragi_remote_part_abandon(struct fragi_remote_part *part);
void fragi_remote_on_received(struct fragi_receive *base, const char *cause, uint64_t bytes);

/* receive.c: requests to fill memory */
struct fragi_remote_receive *fragi_remote_receive_create(struct fragi_remote_transport *transport);
void fragi_remote_receive_free(struct fragi_remote_receive *receive);
void fragi_remote_receives_free(struct fragi_remote_transport *transport);

/*
 * bodies.c: the memory of tensors that arrive; one reference for the caller. NULL when memory is
 * short.
 */
struct frag_resource *fragi_remote_bodies_create(void);
/* A block of it for something else than a tensor. */
void *fragi_remote_bodies_take(struct frag_resource *bodies, size_t size);
void fragi_remote_bodies_give_back(struct frag_resource *bodies, void *memory);

/* seal.c: messages of encrypted flows */
/*
 * For an end of a flow that is added: keys if it is encrypted. Returns 0; -EINVAL: there is no data
 * key or no crypto; -EEXIST: the other end is not as this one; -ENOMEM.
 */
int fragi_remote_seal_prepare(struct fragi_remote_flow *flow,
			      const struct fragi_remote_endpoint *endpoint,
			      const struct fragi_edge_config *config, bool is_tx);
void fragi_remote_seal_free(struct fragi_remote_seal *seal); /* NULL is accepted */
/*
 * The same for an end whose peer has another epoch now: keys of its own, with numbers from 0.
 * Returns 0 or -ENOMEM.
 */
int fragi_remote_seal_restart(struct fragi_remote_edge *edge);
/* How many bytes stand between the header and the rest. */
/* What of `bytes` that were copied counts, of a message with bodies of body_bytes. */
static inline uint64_t fragi_remote_copied(uint64_t body_bytes, uint64_t bytes)
{
	return body_bytes > FRAGI_INLINE_MAX ? bytes : 0;
}

static inline size_t fragi_remote_seal_room(const struct fragi_remote_seal *seal, bool has_body)
{
	return seal == NULL ? 0 : FRAGI_SEAL_BYTES + (has_body ? FRAGI_SEAL_BODY_BYTES : 0);
}
/*
 * Seals a send whose header is packed and whose rest stands behind the room. out_body: all bodies,
 * encrypted, if count > 0. Returns 0, -ENOMEM or -EIO.
 */
int fragi_remote_seal_send(struct fragi_remote_send *send, size_t header_bytes,
			   const struct fragi_body *bodies, uint32_t count,
			   struct fragi_body *out_body);
/* Returns false when the message is not genuine or not the next one of its sender. */
bool fragi_remote_open_header(struct fragi_remote_flow *flow, const struct fragi_arrival *arrival,
			      struct fragi_header *header, struct fragi_sealed *out);
/*
 * Decrypts `from`, as many bytes as `to` has, which may be the same memory. Returns false when they
 * are not genuine: then the endpoint has failed, and nothing in `to` may be used.
 */
bool fragi_remote_open_body(struct fragi_remote_rx *rx, struct fragi_seal_mark *mark,
			    const struct fragi_body *from, const struct fragi_body *to,
			    uint32_t count);
/* Counts the message, and fails the endpoint. */
void fragi_remote_tampered(struct fragi_remote_endpoint *endpoint, uint32_t flow);

/* credit.c */
/* Gives credit back: all of it, or only where the sender may be waiting for it. */
void fragi_remote_rx_return_credit(struct fragi_remote_rx *rx, bool all);
/* Credit that a message of the edge is to carry. Returns false when there is none. */
bool fragi_remote_take_credit(const struct fragi_remote_edge *carrier, struct fragi_credit *out);
/* Whether credit is to go back at once. */
bool fragi_remote_rx_credit_is_due(const struct fragi_remote_rx *rx);
/* The oldest delivered message that was not consumed yet is now. */
void fragi_remote_rx_consume(struct fragi_remote_rx *rx);
/* After the receiver's close nobody takes: what was delivered counts as consumed. */
void fragi_remote_rx_consume_delivered(struct fragi_remote_rx *rx);

static inline struct fragi_remote_tx *fragi_remote_tx_of(struct fragi_remote_edge *edge)
{
	return (struct fragi_remote_tx *)edge;
}

static inline struct fragi_remote_rx *fragi_remote_rx_of(struct fragi_remote_edge *edge)
{
	return (struct fragi_remote_rx *)edge;
}

#endif
