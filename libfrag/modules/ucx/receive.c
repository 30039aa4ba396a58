// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "module.h"

/*
 * A message arrives in parts: its descriptors (in DATA's header, or ahead), then its bodies, eager
 * or by rendezvous into the tensors that decoding has allocated. Parts of later messages may be
 * complete before those of earlier ones; they are delivered in the order of their sequence. How
 * many may be on their way is bounded by the window, so that `parts` has a place for each.
 *
 * A sender that has passed the door and then breaks a rule (beyond its credit, twice the same
 * sequence, sizes that contradict each other) is closed.
 */

void ucx_rx_broke_rule(struct ucx_rx *rx, const char *what)
{
	ucx_peer_fail(rx->link.peer, "broke the rules of flow %u: %s", rx->link.config.flow, what);
}

void ucx_part_reset(struct ucx_part *part)
{
	struct ucx_rx *rx = part->rx;

	if (part->message != NULL)
		fragi_pump_dispose(rx->link.peer->transport->config.pump, part->message);
	if (part->data != NULL && part->data_is_handle)
		ucp_am_data_release(rx->link.peer->transport->worker, part->data);
	else
		fragi_free(part->data);
	fragi_free(part->descriptors);
	fragi_free(part->iov);
	memset(part, 0, sizeof(*part));
	part->rx = rx;
}

/*
 * A peer that was lost for its silence may wake up and go on with a rendezvous: UCX then writes to
 * where it was told to, whatever was closed and freed since. So that memory stays until the worker
 * is gone.
 */
struct ucx_abandoned {
	struct ucx_abandoned *next;
	struct frag_message *message;
	uint8_t *descriptors;
	ucp_dt_iov_t *iov;
};

void ucx_part_abandon(struct ucx_part *part)
{
	struct fragi_transport *transport = part->rx->link.peer->transport;
	struct ucx_abandoned *abandoned;

	if (part->request != NULL) {
		ucp_request_free(part->request); /* and with it the callback */
		part->request = NULL;
		abandoned = fragi_malloc(sizeof(*abandoned));
		if (abandoned != NULL) { /* else it leaks, which is the lesser evil */
			abandoned->message = part->message;
			abandoned->descriptors = part->descriptors;
			abandoned->iov = part->iov;
			abandoned->next = transport->abandoned_parts;
			transport->abandoned_parts = abandoned;
		}
		part->message = NULL;
		part->descriptors = NULL;
		part->iov = NULL;
	}
	ucx_part_reset(part);
}

void ucx_parts_free(struct fragi_transport *transport)
{
	struct ucx_abandoned *abandoned, *next;

	for (abandoned = transport->abandoned_parts; abandoned != NULL; abandoned = next) {
		next = abandoned->next;
		frag_message_unref(abandoned->message);
		fragi_free(abandoned->descriptors);
		fragi_free(abandoned->iov);
		fragi_free(abandoned);
	}
	transport->abandoned_parts = NULL;
}

/*
 * The part a header belongs to, checked against the credit; a new one is opened. NULL: the peer
 * broke a rule, or this flow has already failed.
 */
static struct ucx_part *part_of(struct ucx_rx *rx, const struct wire_header *header)
{
	const struct fragi_link *config = &rx->link.config;
	struct ucx_part *part = &rx->parts[header->sequence & rx->mask];

	if (rx->broken)
		return NULL;
	if (header->sequence < rx->next || !fragi_window_covers(&rx->window, header->sequence) ||
	    (rx->close_known && header->sequence >= rx->close_sequence)) {
		ucx_rx_broke_rule(rx, "a message beyond its credit");
		return NULL;
	}
	if (part->state == UCX_PART_ARRIVING &&
	    header->descriptor_bytes == part->descriptor_bytes &&
	    header->body_bytes == part->body_bytes)
		return part;
	if (part->state != UCX_PART_FREE) {
		ucx_rx_broke_rule(rx, "the same message twice");
		return NULL;
	}
	if (header->descriptor_bytes > FRAGI_DESCRIPTOR_MAX ||
	    header->body_bytes > config->message_bytes_max) {
		ucx_rx_broke_rule(rx, "a message beyond the limit");
		return NULL;
	}
	if (!fragi_window_accept(&rx->window, header->descriptor_bytes + header->body_bytes)) {
		ucx_rx_broke_rule(rx, "more bytes than its credit");
		return NULL;
	}
	part->state = UCX_PART_ARRIVING;
	part->descriptor_bytes = header->descriptor_bytes;
	part->body_bytes = header->body_bytes;
	part->publish_ns = header->publish_ns;
	return part;
}

/* This host cannot go on. */
static void fault(struct ucx_rx *rx, int code, const char *format, ...) FRAG_PRINTF(3, 4);
static void fault(struct ucx_rx *rx, int code, const char *format, ...)
{
	const struct fragi_transport_config *config = &rx->link.peer->transport->config;
	char sentence[UCX_SENTENCE_MAX];
	va_list args;

	rx->broken = true;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	if (config->fault != NULL)
		config->fault(config->arg, code, sentence);
}

/* Makes the message. Returns false when it cannot be. */
static bool part_decode(struct ucx_part *part, const uint8_t *descriptors)
{
	struct ucx_rx *rx = part->rx;
	struct frag_message *message;
	uint64_t bodies = 0, type_id = 0;
	int r = fragi_message_decode_in(rx->link.peer->transport->bodies, descriptors,
					part->descriptor_bytes, part->body_bytes, &message,
					&type_id);

	if (r == -ENOENT) {
		fault(rx, r,
		      "a message of flow %u holds a value of type %016llx, which is not known here; load the library that registers it, in the same version as at the sender",
		      rx->link.config.flow, (unsigned long long)type_id);
		return false;
	}
	if (r == -ENOMEM) {
		fault(rx, r,
		      "there is no memory left for a message of %llu bytes of flow %u; give the host more memory or make the flow's window smaller",
		      (unsigned long long)part->body_bytes, rx->link.config.flow);
		return false;
	}
	if (r < 0) {
		ucx_rx_broke_rule(rx, "malformed descriptors");
		return false;
	}
	for (uint32_t i = 0; i < message->tensor_count; i++)
		bodies += message->tensors[i].tensor->compact_bytes;
	if (bodies != part->body_bytes) {
		fragi_message_unref(message);
		ucx_rx_broke_rule(rx, "bodies that its descriptors do not describe");
		return false;
	}
	part->message = message;
	part->has_descriptors = true;
	return true;
}

static void part_completed(struct ucx_part *part)
{
	if (part->rx->broken) { /* of a peer that is lost */
		ucx_part_reset(part);
		return;
	}
	part->state = UCX_PART_COMPLETE;
	ucx_rx_deliver(part->rx);
}

/* Eager bytes, `length` of which was checked, into the tensors. */
static void scatter(struct frag_message *message, const uint8_t *bytes)
{
	size_t size;

	for (uint32_t i = 0; i < message->tensor_count; i++) {
		void *body = fragi_tensor_body(message->tensors[i].tensor, &size);

		if (size > 0)
			memcpy(body, bytes, size);
		bytes += size;
	}
}

static void link_broke(struct ucx_part *part, ucs_status_t status)
{
	ucx_peer_fail(
		part->rx->link.peer,
		"the data link broke within a message (%s): its process has ended, or the network between is cut",
		ucs_status_string(status));
}

static void receive_waiting(struct ucx_rx *rx);

static void on_bodies(void *request, ucs_status_t status, size_t length, void *user_data)
{
	struct ucx_part *part = user_data;
	struct ucx_rx *rx = part->rx;
	struct fragi_transport *transport = rx->link.peer->transport;

	ucp_request_free(request);
	part->request = NULL;
	part->receiving = false;
	fragi_free(part->iov);
	part->iov = NULL;
	transport->happened++;
	rx->link.peer->heard_ns = transport->now_ns;
	rx->receiving--;
	transport->receiving--;
	rx->receiving_bytes -= part->body_bytes;
	if (status != UCS_OK)
		link_broke(part, status);
	else if (length != part->body_bytes)
		ucx_rx_broke_rule(rx, "bodies of another length");
	else
		part_completed(part);
	receive_waiting(rx);
}

/* Receives a rendezvous, or eager data that was kept, into memory. */
static void receive(struct ucx_part *part, void *handle, void *buffer, size_t count,
		    ucp_datatype_t datatype, ucp_am_recv_data_nbx_callback_t done)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE |
				UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
		.cb.recv_am = done,
		.user_data = part,
		.datatype = datatype,
		.memory_type = UCS_MEMORY_TYPE_HOST,
	};
	ucs_status_ptr_t request;

	/*
	 * Where the peer has just died, done is called (and the request freed) before this returns.
	 */
	part->receiving = true;
	request = ucp_am_recv_data_nbx(part->rx->link.peer->transport->worker, handle, buffer,
				       count, &param);
	if (UCS_PTR_IS_ERR(request)) {
		part->receiving = false;
		link_broke(part, UCS_PTR_STATUS(request));
	} else if (part->receiving) {
		part->request = request;
	}
}

/* The bodies of a rendezvous go straight into the tensors. */
static void receive_bodies(struct ucx_part *part, void *handle)
{
	struct frag_message *message = part->message;
	ucp_dt_iov_t one, *iov = &one;
	size_t count = 0, size;
	void *body;

	if (message->tensor_count > 1) {
		iov = part->iov = fragi_calloc(message->tensor_count, sizeof(*iov));
		if (iov == NULL) {
			part->data = handle; /* goes back to UCX with the part */
			part->data_is_handle = true;
			fault(part->rx, -ENOMEM,
			      "there is no memory left to receive a message of flow %u",
			      part->rx->link.config.flow);
			return;
		}
	}
	for (uint32_t i = 0; i < message->tensor_count; i++) {
		body = fragi_tensor_body(message->tensors[i].tensor, &size);
		if (size == 0)
			continue;
		iov[count].buffer = body;
		iov[count].length = size;
		count++;
	}
	part->rx->receiving++;
	part->rx->link.peer->transport->receiving++;
	part->rx->receiving_bytes += part->body_bytes;
	if (count == 1)
		receive(part, handle, iov[0].buffer, iov[0].length, ucp_dt_make_contig(1),
			on_bodies);
	else
		receive(part, handle, iov, count, ucp_dt_make_iov(), on_bodies);
}

/*
 * A rendezvous takes no memory before it is received, and those that are received at the same time
 * share the link: a few at a time come sooner, one after the other, and into memory that is still
 * in the cache.
 */
static bool may_receive(const struct ucx_rx *rx, uint64_t bytes)
{
	return rx->receiving == 0 || rx->receiving_bytes + bytes <= UCX_RECEIVE_BYTES;
}

/* Receives what waits, in order, as far as may_receive allows. */
static void receive_waiting(struct ucx_rx *rx)
{
	for (uint64_t i = 0; i < rx->link.config.window_messages && rx->waiting > 0; i++) {
		struct ucx_part *part = &rx->parts[(rx->next + i) & rx->mask];
		void *handle = part->data;

		if (!part->waiting)
			continue;
		if (rx->broken || rx->link.peer->failed || !may_receive(rx, part->body_bytes))
			return;
		part->waiting = false;
		rx->waiting--;
		if (!part->has_descriptors && !part_decode(part, part->descriptors))
			return;
		part->data = NULL;
		receive_bodies(part, handle);
	}
}

/*
 * Keeps the handle until it is its turn; descriptors NULL: they are decoded. Returns false without
 * memory.
 */
static bool wait_for_turn(struct ucx_part *part, void *handle, const uint8_t *descriptors)
{
	if (descriptors != NULL) {
		part->descriptors = fragi_malloc(part->descriptor_bytes + 1u);
		if (part->descriptors == NULL) {
			fault(part->rx, -ENOMEM,
			      "there is no memory left to receive a message of flow %u",
			      part->rx->link.config.flow);
			return false;
		}
		memcpy(part->descriptors, descriptors, part->descriptor_bytes);
	}
	part->data = handle;
	part->data_is_handle = true;
	part->waiting = true;
	part->rx->waiting++;
	return true;
}

/* Bodies that came before their descriptors, which are here now. */
static void resume_bodies(struct ucx_part *part)
{
	void *data = part->data;

	if (!part->has_data)
		return;
	if (part->data_is_handle) {
		wait_for_turn(part, data, NULL);
		receive_waiting(part->rx);
		return;
	}
	part->data = NULL;
	scatter(part->message, data);
	fragi_free(data);
	part_completed(part);
}

/* True when the data may stay with UCX and be asked for later. */
static bool is_handle(const ucp_am_recv_param_t *param)
{
	return (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
}

/* Bodies whose descriptors are not complete yet. */
static ucs_status_t keep_bodies(struct ucx_part *part, void *data, size_t length,
				const ucp_am_recv_param_t *param)
{
	part->has_data = true;
	part->data_is_handle = is_handle(param);
	part->data = data;
	if (part->data_is_handle)
		return UCS_INPROGRESS;
	part->data = fragi_malloc(length + 1);
	if (part->data == NULL)
		fault(part->rx, -ENOMEM, "there is no memory left to receive a message of flow %u",
		      part->rx->link.config.flow);
	else if (length > 0)
		memcpy(part->data, data, length);
	return UCS_OK;
}

ucs_status_t ucx_rx_on_data(struct ucx_rx *rx, const struct wire_header *header,
			    const uint8_t *descriptors, size_t descriptor_bytes, void *data,
			    size_t length, const ucp_am_recv_param_t *param)
{
	bool ahead = (header->flags & WIRE_AHEAD) != 0;
	struct ucx_part *part = part_of(rx, header);

	if (part == NULL)
		return UCS_OK;
	if (part->has_data || length != header->body_bytes ||
	    descriptor_bytes != (ahead ? 0 : header->descriptor_bytes) ||
	    (!ahead && (part->has_descriptors || part->descriptors != NULL))) {
		ucx_rx_broke_rule(rx, "sizes that contradict each other");
		return UCS_OK;
	}
	if (ahead && !part->has_descriptors)
		return keep_bodies(part, data, length, param);
	part->has_data = true;
	if (is_handle(param) && (rx->waiting > 0 || !may_receive(rx, header->body_bytes)))
		return wait_for_turn(part, data, ahead ? NULL : descriptors) ? UCS_INPROGRESS
									     : UCS_OK;
	if (!ahead && !part_decode(part, descriptors))
		return UCS_OK;
	if (is_handle(param)) {
		receive_bodies(part, data);
		return UCS_INPROGRESS;
	}
	scatter(part->message, data);
	part_completed(part);
	return UCS_OK;
}

static void descriptors_completed(struct ucx_part *part)
{
	uint8_t *descriptors = part->descriptors;
	/* A flow that has failed meanwhile may not have the bodies that came before. */
	bool decoded = !part->rx->broken && part_decode(part, descriptors);

	part->descriptors = NULL;
	fragi_free(descriptors);
	if (decoded)
		resume_bodies(part);
}

static void on_descriptors(void *request, ucs_status_t status, size_t length, void *user_data)
{
	struct ucx_part *part = user_data;
	struct fragi_transport *transport = part->rx->link.peer->transport;

	ucp_request_free(request);
	part->request = NULL;
	part->receiving = false;
	transport->happened++;
	part->rx->link.peer->heard_ns = transport->now_ns;
	if (status != UCS_OK)
		link_broke(part, status);
	else if (length != part->descriptor_bytes)
		ucx_rx_broke_rule(part->rx, "descriptors of another length");
	else
		descriptors_completed(part);
}

ucs_status_t ucx_rx_on_descriptors(struct ucx_rx *rx, const struct wire_header *header, void *data,
				   size_t length, const ucp_am_recv_param_t *param)
{
	struct ucx_part *part = part_of(rx, header);

	if (part == NULL)
		return UCS_OK;
	if (part->has_descriptors || part->descriptors != NULL ||
	    length != header->descriptor_bytes) {
		ucx_rx_broke_rule(rx, "sizes that contradict each other");
		return UCS_OK;
	}
	part->descriptors = fragi_malloc(length + 1);
	if (part->descriptors == NULL) {
		fault(rx, -ENOMEM, "there is no memory left to receive a message of flow %u",
		      rx->link.config.flow);
		return UCS_OK;
	}
	if (is_handle(param)) {
		receive(part, data, part->descriptors, length, ucp_dt_make_contig(1),
			on_descriptors);
		return UCS_INPROGRESS;
	}
	if (length > 0)
		memcpy(part->descriptors, data, length);
	descriptors_completed(part);
	return UCS_OK;
}
