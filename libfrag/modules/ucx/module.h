/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_UCX_MODULE_H
#define FRAGI_UCX_MODULE_H

#include <ucp/api/ucp.h>

#include "wire.h"
#include <base/alloc.h>
#include <base/stamp.h>
#include <data/codec.h>
#include <edge/pump.h>
#include <edge/window.h>

/*
 * Everything here is touched by the holder of the pump's progress lock alone, except where a field
 * says otherwise. A *link* is one end of a flow; several links to one host share its peer, which
 * owns the endpoint.
 */
#define UCX_HELLO_RETRY_NS 50000000
#define UCX_CONNECT_NS 5000000000
#define UCX_GOODBYE_NS 500000000 /* the longest that destroy waits for peers */
#define UCX_CLOSE_NS 1000000000
#define UCX_RECEIVE_BYTES (4u << 20) /* of a flow's rendezvous at the same time, or one larger */
#define UCX_FLOWS_MAX (1u << 20)
#define UCX_WINDOW_MAX (1u << 16)
#define UCX_SENTENCE_MAX 512
/* an error of the stamps' calibration has not grown to 0.1 us by then */
#define UCX_MOMENT_NS 1000000

struct ucx_op;

enum ucx_peer_state {
	UCX_PEER_CONNECTING,
	UCX_PEER_READY,
	UCX_PEER_LEFT, /* it said goodbye */
	UCX_PEER_LOST,
};

struct fragi_peer {
	struct fragi_transport *transport;
	struct fragi_peer *next;
	uint32_t host;
	uint64_t epoch;
	bool same_node;
	char version[16]; /* of its UCX */
	ucp_ep_h ep;      /* NULL once closed */
	_Atomic int state;
	bool heard;                      /* its HELLO has come */
	bool failed;                     /* to be lost after this round */
	bool broken;                     /* as UCX says */
	char sentence[UCX_SENTENCE_MAX]; /* why */
	struct ucx_link *links;
	_Atomic(struct ucx_rx *) owing; /* one that owes a batch of credit; set by its operator */
	struct ucx_op *ops;             /* under way */
	int64_t heard_ns, sent_ns;
	int64_t hello_ns, connect_until_ns; /* 0: no HELLO was sent yet */
	void *close_request;
	int64_t close_until_ns;
	uint64_t sent_count;                /* active messages but HELLO, BEAT and SYNC */
	uint64_t sync_asked, sync_answered; /* sent_count, as SYNC carries it */
	bool leave_sent, leave_heard;       /* our goodbye, and that it has arrived */
};

/* the first member of both ends */
struct ucx_link {
	struct fragi_peer *peer;
	struct ucx_link *next; /* of the peer */
	bool is_tx;
	struct fragi_link config;
};

struct ucx_tx {
	struct ucx_link link;
	struct fragi_tx tx;
	enum frag_policy policy;    /* LATEST is held as POP with a capacity of 1 */
	bool blocking;              /* block or fault: credit comes back when the receiver takes */
	struct fragi_queue pending; /* the sending operator pushes, the holder takes */
	struct fragi_pump_work kick;
	_Atomic bool kicked;           /* kick is with the pump */
	_Atomic bool closing;          /* set by the sending operator */
	struct fragi_window_tx window; /* posted: blocking only */
	/* the holder's */
	struct frag_message *held; /* taken from pending, waits for bytes of credit */
	uint64_t held_stamp;
	bool close_sent;
};

enum ucx_part_state {
	UCX_PART_FREE,
	UCX_PART_ARRIVING,
	UCX_PART_COMPLETE,
};

/* a message on its way in */
struct ucx_part {
	enum ucx_part_state state;
	struct ucx_rx *rx;
	struct frag_message *message;
	uint32_t descriptor_bytes;
	uint64_t body_bytes;
	int64_t publish_ns;
	bool has_descriptors, has_data;
	uint8_t *descriptors; /* that came ahead */
	void *data; /* rendezvous handle, or a copy of eager data, that waits for the descriptors */
	bool data_is_handle;
	void *request;     /* of the receive under way */
	bool receiving;    /* between the call and its end */
	bool waiting;      /* a rendezvous whose turn has not come */
	ucp_dt_iov_t *iov; /* of it, when it has several */
};

struct ucx_rx {
	struct ucx_link link;
	struct fragi_rx rx;
	struct fragi_notify taken; /* of rx, if blocking */
	bool blocking;
	struct ucx_part *parts; /* by sequence */
	/* bytes of credit, by sequence; the receiving operator reads those it takes */
	uint64_t *sizes;
	uint64_t mask;
	struct fragi_pump_work kick;
	_Atomic bool kicked;
	_Atomic bool done; /* the receiver has closed; set by its operator */
	struct fragi_window_rx
		window; /* the receiving operator consumes, or the holder: not blocking, or done */
	/* the holder's */
	uint64_t next, next_bytes; /* to be delivered */
	uint64_t receiving_bytes;  /* of the rendezvous that are being received */
	uint32_t receiving, waiting;
	bool close_known, close_told, done_sent, broken;
	uint64_t close_sequence;
};

/* One active message being sent. The header must stay until UCX has let go of it. */
struct ucx_op {
	struct ucx_op *next, *previous;
	struct fragi_peer *peer;
	struct frag_message *message; /* what UCX still reads from; may be NULL */
	void *request;
	bool posting, done_while_posting;
	ucp_dt_iov_t iov[FRAG_MESSAGE_TENSORS_MAX];
	uint8_t header[WIRE_HEADER_MAX];
};

struct fragi_transport {
	struct fragi_transport_config config;
	ucp_context_h context;
	ucp_worker_h worker;
	int fd;
	char boot_id[40];
	char version[16];
	char description[128];
	uint8_t *address;
	size_t address_size;
	struct fragi_peer *peers;
	struct ucx_link **links; /* by flow */
	uint32_t links_size;
	struct frag_resource *bodies;
	struct ucx_abandoned *abandoned_parts;
	uint32_t receiving; /* rendezvous of all peers */
	struct ucx_op *free_ops, *abandoned_ops;
	uint32_t free_op_count;
	int64_t now_ns, tick_ns;    /* of the last round; of the next housekeeping */
	struct fragi_moment moment; /* UCX_MOMENT_NS old at most where it is used */
	int64_t moment_stamps;      /* UCX_MOMENT_NS */
	uint32_t happened;          /* in this round */
	bool peer_failed;           /* some peer's `failed` is set */
	bool closing_peers;         /* some peer's close is under way */
	bool flush_wanted;
	/* set by operators: some credit was not worth a message yet */
	_Atomic bool credits_waiting;
	uint64_t refused; /* active messages that nobody here should have got */
};

/* peer.c */
int ucx_peer_add(struct fragi_transport *transport, uint32_t host, uint64_t epoch,
		 const void *address, size_t size, struct fragi_peer **out_peer,
		 struct frag_err *err);
/*
 * To be lost at the end of this round, with a sentence; the first reason counts. Callable from
 * callbacks.
 */
void ucx_peer_fail(struct fragi_peer *peer, const char *format, ...) FRAG_PRINTF(2, 3);
/* UCX has reported that the link is broken: what is under way on it never ends. */
void ucx_peer_broken(struct fragi_peer *peer);
/* Loses the peers that have failed, and ends those whose endpoint is closed. */
void ucx_peers_settle(struct fragi_transport *transport);
/* HELLO, beats, silence, credits that were held back. Returns when to be called again. */
int64_t ucx_peers_tick(struct fragi_transport *transport, int64_t now_ns);
bool ucx_peer_is_flushed(struct fragi_peer *peer);
void ucx_peer_ask_sync(struct fragi_peer *peer, uint8_t flags);
/* Force-closes the endpoint; ucx_peers_settle ends it. */
void ucx_peer_close(struct fragi_peer *peer);
/* Gives up all that is under way with the peer. */
void ucx_peer_end(struct fragi_peer *peer);
/* After its end, when the worker is gone. */
void ucx_peer_free(struct fragi_peer *peer);
static inline int ucx_peer_state(const struct fragi_peer *peer)
{
	return atomic_load_explicit(&peer->state, memory_order_acquire);
}
/* Handlers of HELLO, BEAT and SYNC. */
void ucx_peer_on_hello(struct ucx_link *link, const struct wire_header *header);
void ucx_peer_on_beat(struct ucx_link *link, const struct wire_header *header);
void ucx_peer_on_sync(struct ucx_link *link, const struct wire_header *header);

/* address.c: what peers need to reach this host, and whether the two can work together. */
int ucx_address_make(struct fragi_transport *transport, const void *worker_address, size_t size);
int ucx_address_check(const struct fragi_transport *transport, const void *address, size_t size,
		      const void **out_worker_address, bool *out_same_node, char version[16],
		      struct frag_err *err);

/* sockets.c: on which addresses this process listens. */
struct ucx_sockets {
	size_t count;
	uint64_t inodes[256];
};
int ucx_sockets_list(struct ucx_sockets *out);
/*
 * Refuses listening sockets that are not in `before` and not on one of the interfaces (a list with
 * commas).
 */
int ucx_sockets_check(const struct ucx_sockets *before, const char *interfaces,
		      struct frag_err *err);

/* send.c */
int ucx_tx_create(struct fragi_peer *peer, const struct fragi_link *link,
		  struct fragi_flow_row *row, struct fragi_tx **out_tx);
void ucx_tx_free(struct ucx_tx *tx);
/* Sends what may be sent now. */
void ucx_tx_transmit(struct ucx_tx *tx);
bool ucx_tx_is_empty(struct ucx_tx *tx);
void ucx_tx_on_credit(struct ucx_tx *tx, uint64_t messages, uint64_t bytes);
void ucx_tx_on_done(struct ucx_tx *tx);

/* op.c: active messages being sent */
struct ucx_op *ucx_op_create(struct fragi_peer *peer);
/* Starts op, whose header is filled; takes it in every case. */
void ucx_op_send(struct ucx_op *op, enum wire_kind kind, size_t header_bytes, const void *buffer,
		 size_t count, ucp_datatype_t datatype);
/* A header without a payload, about link. */
void ucx_op_send_control(struct ucx_link *link, enum wire_kind kind, uint8_t flags,
			 uint64_t sequence, uint64_t bytes);
/* Gives up all that a peer still has under way; its messages with it if its endpoint is closed. */
void ucx_ops_abandon(struct fragi_peer *peer, bool is_closed);
void ucx_ops_free(struct fragi_transport *transport);

/* rx.c: the receiving end */
int ucx_rx_create(struct fragi_peer *peer, const struct fragi_link *link,
		  struct fragi_flow_row *row, struct fragi_rx **out_rx);
void ucx_rx_free(struct ucx_rx *rx);
/* Of a closed peer: what was still arriving will not come. */
void ucx_rx_abandon(struct ucx_rx *rx);
/*
 * Of a peer that has just become ready, and whenever the operator has asked for it: DONE, credit.
 */
void ucx_rx_settle(struct ucx_rx *rx);
/* Delivers what is complete, in order. */
void ucx_rx_deliver(struct ucx_rx *rx);
void ucx_rx_on_close(struct ucx_rx *rx, const struct wire_header *header);

/* receive.c: messages on their way in */
ucs_status_t ucx_rx_on_data(struct ucx_rx *rx, const struct wire_header *header,
			    const uint8_t *descriptors, size_t descriptor_bytes, void *data,
			    size_t length, const ucp_am_recv_param_t *param);
ucs_status_t ucx_rx_on_descriptors(struct ucx_rx *rx, const struct wire_header *header, void *data,
				   size_t length, const ucp_am_recv_param_t *param);
void ucx_part_reset(struct ucx_part *part);
/*
 * Gives the part up. What UCX may still write into is kept until ucx_parts_free, after the worker
 * is gone.
 */
void ucx_part_abandon(struct ucx_part *part);
void ucx_parts_free(struct fragi_transport *transport);
void ucx_rx_broke_rule(struct ucx_rx *rx, const char *what);

/*
 * bodies.c: the memory of tensors that arrive; one reference for the caller. NULL when memory is
 * short.
 */
struct frag_resource *ucx_bodies_create(void);

/* credit.c */
/* Gives credit back: all of it, or only where the sender may be waiting for it. */
void ucx_rx_return_credit(struct ucx_rx *rx, bool all);
/* Credit that a message to peer is to carry. Returns false when there is none. */
bool ucx_peer_take_credit(struct fragi_peer *peer, struct wire_credit *out);
/* Whether credit is to go back at once. */
bool ucx_rx_credit_is_due(const struct ucx_rx *rx);
/* The oldest delivered message that was not consumed yet is now. */
void ucx_rx_consume(struct ucx_rx *rx);
/* After the receiver's close nobody takes: what was delivered counts as consumed. */
void ucx_rx_consume_delivered(struct ucx_rx *rx);

static inline struct ucx_tx *ucx_tx_of(struct ucx_link *link)
{
	return (struct ucx_tx *)link;
}

static inline struct ucx_rx *ucx_rx_of(struct ucx_link *link)
{
	return (struct ucx_rx *)link;
}

/* links.c: the links by flow, and the door that every active message passes. */
int ucx_link_add(struct fragi_peer *peer, struct ucx_link *link, const struct fragi_link *config,
		 bool is_tx);
int ucx_handlers_set(struct fragi_transport *transport);

#endif
