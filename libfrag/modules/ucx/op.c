// SPDX-License-Identifier: Apache-2.0
#include "module.h"

/*
 * An op is posted, and then done, or abandoned with its peer: requests to a dead peer may never
 * complete. An abandoned op gives its message back if the endpoint is closed, and keeps the rest
 * (the header is in it) until the worker is gone, because UCX may still hold a pointer to it.
 */
#define FREE_OPS_MAX 256

struct ucx_op *ucx_op_create(struct fragi_peer *peer)
{
	struct fragi_transport *transport = peer->transport;
	struct ucx_op *op = transport->free_ops;

	if (op != NULL) {
		transport->free_ops = op->next;
		transport->free_op_count--;
	} else {
		op = fragi_malloc(sizeof(*op));
		if (op == NULL)
			return NULL;
	}
	op->peer = peer;
	op->message = NULL;
	op->request = NULL;
	op->previous = NULL;
	op->next = peer->ops;
	if (op->next != NULL)
		op->next->previous = op;
	peer->ops = op;
	return op;
}

static void give_back(struct ucx_op *op)
{
	if (op->message != NULL)
		fragi_pump_dispose(op->peer->transport->config.pump, op->message);
	op->message = NULL;
}

static void unlist(struct ucx_op *op)
{
	if (op->previous != NULL)
		op->previous->next = op->next;
	else
		op->peer->ops = op->next;
	if (op->next != NULL)
		op->next->previous = op->previous;
}

static void op_done(struct ucx_op *op)
{
	struct fragi_transport *transport = op->peer->transport;

	give_back(op);
	unlist(op);
	if (transport->free_op_count >= FREE_OPS_MAX) {
		fragi_free(op);
		return;
	}
	op->next = transport->free_ops;
	transport->free_ops = op;
	transport->free_op_count++;
}

static void on_sent(void *request, ucs_status_t status, void *user_data)
{
	struct ucx_op *op = user_data;

	if (status != UCS_OK)
		ucx_peer_broken(op->peer);
	if (status != UCS_OK)
		ucx_peer_fail(
			op->peer,
			"the data link broke (%s): its process has ended, or the network between is cut",
			ucs_status_string(status));
	op->peer->transport->happened++;
	ucp_request_free(request);
	if (op->posting)
		op->done_while_posting = true;
	else
		op_done(op);
}

void ucx_op_send(struct ucx_op *op, enum wire_kind kind, size_t header_bytes, const void *buffer,
		 size_t count, ucp_datatype_t datatype)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.cb.send = on_sent,
		.user_data = op,
		.datatype = datatype,
		.memory_type = UCS_MEMORY_TYPE_HOST,
	};
	struct fragi_peer *peer = op->peer;
	ucs_status_ptr_t request;

	if (peer->ep == NULL || peer->failed || ucx_peer_state(peer) == UCX_PEER_LOST) {
		op_done(op);
		return;
	}
	peer->sent_ns = peer->transport->now_ns;
	if (kind != WIRE_HELLO && kind != WIRE_BEAT && kind != WIRE_SYNC)
		peer->sent_count++;
	/*
	 * Where the peer has just died, on_sent is called (and the request freed) before this
	 * returns.
	 */
	op->posting = true;
	op->done_while_posting = false;
	request = ucp_am_send_nbx(peer->ep, (unsigned int)kind, op->header, header_bytes, buffer,
				  count, &param);
	op->posting = false;
	if (request == NULL || op->done_while_posting) {
		op_done(op);
	} else if (UCS_PTR_IS_ERR(request)) {
		ucx_peer_broken(peer);
		ucx_peer_fail(
			peer,
			"the data link broke (%s): its process has ended, or the network between is cut",
			ucs_status_string(UCS_PTR_STATUS(request)));
		op_done(op);
	} else {
		op->request = request;
	}
}

void ucx_op_send_control(struct ucx_link *link, enum wire_kind kind, uint8_t flags,
			 uint64_t sequence, uint64_t bytes)
{
	struct wire_header header = {
		.kind = kind,
		.flags = flags,
		.flow = link->config.flow,
		.epoch = link->peer->transport->config.epoch,
		.sequence = sequence,
		.body_bytes = bytes,
	};
	struct ucx_op *op = ucx_op_create(link->peer);

	if (op == NULL) {
		ucx_peer_fail(link->peer, "cannot be answered: there is no memory left here");
		return;
	}
	memcpy(header.token, link->config.token, sizeof(header.token));
	wire_pack(&header, op->header);
	ucx_op_send(op, kind, WIRE_FIXED_BYTES, NULL, 0, ucp_dt_make_contig(1));
}

void ucx_ops_abandon(struct fragi_peer *peer, bool is_closed)
{
	struct fragi_transport *transport = peer->transport;
	struct ucx_op *op;

	while ((op = peer->ops) != NULL) {
		if (op->request != NULL)
			ucp_request_free(op->request); /* and with it the callback */
		op->request = NULL;
		if (is_closed)
			give_back(op);
		unlist(op);
		op->next = transport->abandoned_ops;
		transport->abandoned_ops = op;
	}
}

static void free_list(struct ucx_op *op)
{
	struct ucx_op *next;

	for (; op != NULL; op = next) {
		next = op->next;
		frag_message_unref(op->message);
		fragi_free(op);
	}
}

void ucx_ops_free(struct fragi_transport *transport)
{
	free_list(transport->free_ops);
	free_list(transport->abandoned_ops);
	transport->free_ops = NULL;
	transport->abandoned_ops = NULL;
	transport->free_op_count = 0;
}
