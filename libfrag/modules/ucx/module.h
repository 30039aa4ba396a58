/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_UCX_MODULE_H
#define FRAGI_UCX_MODULE_H

#include <ucp/api/ucp.h>

#include <base/alloc.h>
#include <base/identity.h>
#include <base/stamp.h>
#include <edge/transport.h>
#include <edge/ucx_env.h>

#include "gate.h"

/*
 * The transport over UCX: a message is an active message, its header the active message's, its
 * bodies the payload. Everything is touched under the pump's progress lock alone.
 */
#define UCX_CLOSE_NS 1000000000 /* the longest that a forced close is waited for */

/* A request of UCX's that is under way. */
struct ucx_request {
	struct ucx_request *next, *previous;
	void *handle; /* UCX's; NULL once given up */
	bool posting, over;
};

/* the room of a send */
struct ucx_send {
	struct ucx_request request;
	struct ucx_endpoint *endpoint;
	ucp_dt_iov_t iov[FRAG_MESSAGE_TENSORS_MAX];
};

/* the room of a receive */
struct ucx_receive {
	struct ucx_request request;
	struct ucx_transport *transport;
	ucp_dt_iov_t *iov; /* into several bodies; from the heap */
	ucs_status_t status;
	size_t bytes;
};

struct ucx_endpoint {
	struct fragi_endpoint base;
	struct ucx_endpoint *next;
	ucp_ep_h ep;                  /* NULL once closed */
	bool failed;                  /* reported */
	struct ucx_entrance entrance; /* of the peer */
	void *close_request;
	int64_t close_until_ns;
	struct ucx_request *sends; /* under way */
};

struct ucx_transport {
	struct fragi_transport base;
	struct fragi_transport_config config;
	ucp_context_h context;
	ucp_worker_h worker;
	int fd;
	struct ucx_gate *gate;
	bool takes_log; /* UCX's lines go through log.c */
	char machine[FRAGI_IDENTITY_SIZE], clock[FRAGI_IDENTITY_SIZE];
	char loopback[FRAGI_IDENTITY_SIZE];
	uint8_t *address;
	size_t address_size;
	struct ucx_endpoint *endpoints;
	struct ucx_request *receives; /* under way */
};

static inline struct ucx_transport *ucx_of(const struct fragi_transport *transport)
{
	return (struct ucx_transport *)(uintptr_t)transport;
}

/* log.c */
/* Takes UCX's lines into frag's log, unless the user has set UCX_LOG_LEVEL. */
void ucx_log_begin(struct ucx_transport *transport);
void ucx_log_end(const struct ucx_transport *transport);
/* Why UCX failed on this thread: the last error that it reported, else the text of its status. */
const char *ucx_reason(ucs_status_t status);

/* endpoint.c */
int ucx_connect(struct fragi_transport *base, uint32_t host, const void *address, size_t size,
		void *owner, struct fragi_endpoint **out_endpoint, struct frag_err *err);
void ucx_close(struct fragi_endpoint *base, bool silent);
bool ucx_stop(struct fragi_endpoint *base, int64_t now_ns);
void ucx_free(struct fragi_endpoint *base);
bool ucx_reach(const struct fragi_endpoint *base, bool tells, char *out, size_t size);
/* Reports the endpoint failed, once. */
void ucx_failed(struct ucx_endpoint *endpoint, ucs_status_t status);
void ucx_force_close(struct ucx_endpoint *endpoint);
void ucx_forget_close(struct ucx_endpoint *endpoint);

/* message.c: active messages, out and in */
bool ucx_send(struct fragi_endpoint *base, struct fragi_send *send, const struct fragi_body *bodies,
	      uint32_t count);
int ucx_receive(struct fragi_transport *base, void *data, const struct fragi_body *bodies,
		uint32_t count, struct fragi_receive *receive);
void ucx_discard(struct fragi_transport *transport, void *handle);
int ucx_handler_set(struct ucx_transport *transport);
/* Gives up what an endpoint has sent: UCX calls nobody back for it any more. */
void ucx_sends_abandon(struct ucx_endpoint *endpoint);
/* Reports it, when UCX has let go of its memory. */
void ucx_sends_end(struct ucx_endpoint *endpoint);
void ucx_receives_abandon(struct ucx_transport *transport);
void ucx_receives_end(struct ucx_transport *transport);

/*
 * address.c: what peers need to reach this host, and whether the two can work together. out_peer:
 * receives what is known of the peer; out_entrance: where it listens.
 */
int ucx_address_make(struct ucx_transport *transport, const void *worker_address, size_t size);
int ucx_address_check(const struct ucx_transport *transport, const void *address, size_t size,
		      const void **out_worker_address, struct fragi_endpoint *out_peer,
		      struct ucx_entrance *out_entrance, struct frag_err *err);
/* UCX's own address lies behind so many bytes of a host's: the last part of them is counted. */
#define UCX_ADDRESS_ENDS_AT 265u

static inline size_t ucx_address_head(const void *address)
{
	const uint8_t *count = (const uint8_t *)address + UCX_ADDRESS_ENDS_AT - 1;

	return UCX_ADDRESS_ENDS_AT + *count * sizeof(struct ucx_door);
}

/* descriptors.c: refuses to go on when fewer than `wanted` descriptors can be opened. */
#define UCX_DESCRIPTORS_TO_OPEN 20u
#define UCX_DESCRIPTORS_TO_CONNECT 8u
int ucx_descriptors_check(uint32_t wanted, struct frag_err *err);

/*
 * port_range.c: ucp_worker_create, but UCS_ERR_BUSY when no port of the range is free. What it
 * listens on belongs to the gate. interfaces: a list with commas; NULL: all.
 */
ucs_status_t ucx_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
			       const char *interfaces, struct ucx_gate *gate,
			       ucp_worker_h *out_worker);

/*
 * probe.c: whether a peer can be connected to at all: 0, or the errno with which each of its doors
 * was refused; no answer is no refusal. out_dial: receives the last of them. Blocks for
 * 200 ms at most.
 */
int ucx_probe(const struct ucx_entrance *peer, uint8_t out_dial[UCX_END_BYTES]);

/* sockets.c: on which addresses this process listens */
struct ucx_sockets {
	size_t count;
	uint64_t inodes[256];
};
int ucx_sockets_list(struct ucx_sockets *out);
bool ucx_interfaces_have(const char *list, const char *name);
/*
 * UCX opens without close-on-exec, so a program that an operator starts would keep what it opened.
 * What has been opened since `before` is closed by exec from then on. (The gate sees to sockets.)
 */
struct ucx_descriptors {
	uint64_t open[64];
};
void ucx_descriptors_note(struct ucx_descriptors *out);
void ucx_descriptors_close_on_exec(const struct ucx_descriptors *before);
/* Whether a socket that was opened since then listens. */
bool ucx_descriptors_listen(const struct ucx_descriptors *before);
/*
 * Refuses listening sockets that are not in `before` and not on one of the interfaces (a list with
 * commas).
 */
int ucx_sockets_check(const struct ucx_sockets *before, const char *interfaces,
		      struct frag_err *err);

#endif
