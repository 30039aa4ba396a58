// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>

#include <edge/remote/state.h>

/*
 * A send is made for one message, and is over at once or with on_sent. Those that are under way
 * hang on their endpoint. One that the transport gave up with its endpoint may still be pointed to
 * by it: its message goes back, the send itself stays until the transport is gone.
 */
#define FREE_SENDS_MAX 256
#define OWN_SENDS_MAX 256 /* of an endpoint; a peer that goes on taking them has a few */

struct fragi_remote_send *fragi_remote_send_create(struct fragi_remote_endpoint *endpoint)
{
	struct fragi_remote_transport *transport = endpoint->transport;
	struct fragi_remote_send *send = transport->free_sends;

	if (send != NULL) {
		transport->free_sends = send->next;
		transport->free_send_count--;
	} else {
		send = fragi_malloc(sizeof(*send) + transport->transport->send_room);
		if (send == NULL)
			return NULL;
	}
	send->base.copied_bytes = 0;
	send->base.waits = false;
	send->endpoint = endpoint;
	send->transport = transport;
	send->tx = NULL;
	send->message = NULL;
	send->seal = NULL;
	send->sealed = NULL;
	return send;
}

static void give_back(struct fragi_remote_send *send)
{
	if (send->message != NULL)
		fragi_pump_dispose(send->transport->remote->config.pump, send->message);
	send->message = NULL;
	if (send->sealed != NULL)
		fragi_remote_bodies_give_back(send->transport->remote->bodies, send->sealed);
	send->sealed = NULL;
}

static void over(struct fragi_remote_send *send)
{
	struct fragi_remote_transport *transport = send->transport;

	give_back(send);
	if (transport->free_send_count >= FREE_SENDS_MAX) {
		fragi_free(send);
		return;
	}
	send->next = transport->free_sends;
	transport->free_sends = send;
	transport->free_send_count++;
}

static void list(struct fragi_remote_send *send)
{
	struct fragi_remote_endpoint *endpoint = send->endpoint;

	send->previous = NULL;
	send->next = endpoint->sends;
	if (send->next != NULL)
		send->next->previous = send;
	endpoint->sends = send;
	if (send->tx != NULL)
		send->tx->under_way++;
	else
		endpoint->own_sends += send->is_own;
}

static void unlist(struct fragi_remote_send *send)
{
	if (send->endpoint == NULL)
		return;
	if (send->previous != NULL)
		send->previous->next = send->next;
	else
		send->endpoint->sends = send->next;
	if (send->next != NULL)
		send->next->previous = send->previous;
	if (send->tx != NULL)
		fragi_remote_tx_on_sent(send->tx);
	else
		send->endpoint->own_sends -= send->is_own;
}

/* What goes ahead of a message is none. */
static bool is_message(const struct fragi_remote_send *send)
{
	return fragi_get32(send->base.header) == FRAGI_NEXT_MAGIC ||
	       send->base.header[FRAGI_HEADER_KIND_AT] == FRAGI_KIND_DATA;
}

uint64_t fragi_remote_sends_waiting(const struct fragi_remote_tx *tx)
{
	uint64_t count = 0;

	/* the newest is first, and none waits behind one that does not */
	for (const struct fragi_remote_send *send = tx->edge.endpoint->sends;
	     send != NULL && send->base.waits; send = send->next)
		count += send->tx == tx && is_message(send);
	return count;
}

void fragi_remote_on_sent(struct fragi_send *base, bool abandoned)
{
	struct fragi_remote_send *send =
		(struct fragi_remote_send *)(void *)((char *)base -
						     offsetof(struct fragi_remote_send, base));
	struct fragi_remote_transport *transport = send->transport;

	transport->remote->happened++;
	unlist(send);
	if (!abandoned) {
		over(send);
		return;
	}
	give_back(send);
	send->next = transport->abandoned_sends;
	transport->abandoned_sends = send;
}

/* Bodies are replaced by the encrypted ones, and the message is needed no more. */
static bool seal(struct fragi_remote_send *send, size_t header_bytes,
		 const struct fragi_body **bodies, uint32_t *count, struct fragi_body *sealed)
{
	int r = fragi_remote_seal_send(send, header_bytes, *bodies, *count, sealed);

	if (r < 0) {
		fragi_remote_endpoint_fail(
			send->endpoint,
			r == -ENOMEM ? FRAGI_FAILURE_OUT_OF_MEMORY : FRAGI_FAILURE_SYSTEM_REFUSED,
			"cannot be sent to: %s",
			r == -ENOMEM
				? "there is no memory left here"
				: "OpenSSL does not encrypt; look at its configuration (openssl.cnf)");
		return false;
	}
	if (*count > 0) {
		*bodies = sealed;
		*count = 1;
		send->base.copied_bytes += fragi_remote_copied(sealed->bytes, sealed->bytes);
	}
	if (send->message != NULL)
		fragi_pump_dispose(send->transport->remote->config.pump, send->message);
	send->message = NULL;
	return true;
}

static bool is_sent_to(const struct fragi_remote_endpoint *endpoint)
{
	return !endpoint->failed && !endpoint->closing &&
	       fragi_remote_endpoint_state(endpoint) != FRAGI_ENDPOINT_LOST;
}

static inline void hand_over(struct fragi_remote_send *send, bool is_data,
			     const struct fragi_body *bodies, uint32_t count)
{
	struct fragi_remote_endpoint *endpoint = send->endpoint;
	bool is_under_way;

	endpoint->sent_ns = fragi_remote_of(endpoint)->now_ns;
	is_under_way = send->transport->ops->send(endpoint->base, &send->base, bodies, count);
	if (is_data)
		fragi_remote_tx_count_copied(send->tx, send->base.copied_bytes);
	if (is_under_way)
		list(send);
	else
		over(send);
}

void fragi_remote_send_next(struct fragi_remote_send *send, const struct fragi_body *bodies,
			    uint32_t count)
{
	if (!is_sent_to(send->endpoint)) {
		over(send);
		return;
	}
	send->endpoint->sent_count++;
	hand_over(send, true, bodies, count);
}

void fragi_remote_send_start(struct fragi_remote_send *send, const struct fragi_header *header,
			     size_t header_bytes, const struct fragi_body *bodies, uint32_t count)
{
	struct fragi_remote_endpoint *endpoint = send->endpoint;
	enum fragi_header_kind kind = header->kind;
	struct fragi_body sealed;

	if (!is_sent_to(endpoint)) {
		over(send);
		return;
	}
	fragi_header_pack(header, send->base.header);
	if (__builtin_expect(send->seal != NULL, 0) &&
	    !seal(send, header_bytes, &bodies, &count, &sealed)) {
		over(send);
		return;
	}
	send->base.header_bytes = (uint32_t)header_bytes;
	if (kind != FRAGI_KIND_HELLO && kind != FRAGI_KIND_BEAT && kind != FRAGI_KIND_SYNC)
		endpoint->sent_count++;
	hand_over(send, kind == FRAGI_KIND_DATA, bodies, count);
}

static void send_control(struct fragi_remote_endpoint *endpoint, uint32_t flow,
			 const uint8_t token[FRAGI_TOKEN_BYTES], struct fragi_remote_seal *seal_of,
			 bool back, bool is_own, struct fragi_header *header)
{
	struct fragi_remote_send *send = fragi_remote_send_create(endpoint);

	if (send == NULL) {
		fragi_remote_endpoint_fail(endpoint, FRAGI_FAILURE_OUT_OF_MEMORY,
					   "cannot be answered: there is no memory left here");
		return;
	}
	send->seal = seal_of;
	send->back = back;
	send->is_own = is_own;
	header->flow = flow;
	header->epoch = fragi_remote_of(endpoint)->config.epoch;
	memcpy(header->token, token, sizeof(header->token));
	fragi_remote_send_start(
		send, header, FRAGI_HEADER_BYTES + fragi_remote_seal_room(seal_of, false), NULL, 0);
}

void fragi_remote_send_control(struct fragi_remote_edge *edge, enum fragi_header_kind kind,
			       uint8_t flags, uint64_t sequence, uint64_t bytes)
{
	struct fragi_header header = {
		.kind = kind, .flags = flags, .sequence = sequence, .body_bytes = bytes};

	send_control(edge->endpoint, edge->config.flow, edge->config.token, edge->seal,
		     !edge->is_tx, false, &header);
}

bool fragi_remote_send_own(struct fragi_remote_endpoint *endpoint, enum fragi_header_kind kind,
			   uint8_t flags, uint64_t sequence)
{
	struct fragi_header header = {.kind = kind, .flags = flags, .sequence = sequence};

	return fragi_remote_send_header(endpoint, &header);
}

/*
 * A peer may ask at any time, and take none of the answers. HELLO and BEAT are said again and
 * again; a SYNC is not, so who has no room for it tries again.
 */
bool fragi_remote_send_header(struct fragi_remote_endpoint *endpoint, struct fragi_header *header)
{
	if (endpoint->own_sends >= OWN_SENDS_MAX)
		return false;
	send_control(endpoint, endpoint->flow, endpoint->token, endpoint->seal, endpoint->back,
		     true, header);
	return true;
}

void fragi_remote_sends_detach(struct fragi_remote_endpoint *endpoint,
			       const struct fragi_remote_tx *tx)
{
	struct fragi_remote_send *next;

	for (struct fragi_remote_send *send = endpoint->sends; send != NULL; send = next) {
		next = send->next;
		if (tx != NULL && send->tx != tx)
			continue;
		send->is_own = send->tx == NULL && send->is_own;
		send->tx = NULL;
		if (tx == NULL)
			send->endpoint = NULL;
	}
	if (tx != NULL)
		return;
	endpoint->sends = NULL;
	endpoint->own_sends = 0;
}

static void free_list(struct fragi_remote_send *send)
{
	struct fragi_remote_send *next;

	for (; send != NULL; send = next) {
		next = send->next;
		fragi_free(send);
	}
}

void fragi_remote_sends_free(struct fragi_remote_transport *transport)
{
	free_list(transport->free_sends);
	free_list(transport->abandoned_sends);
	transport->free_sends = NULL;
	transport->abandoned_sends = NULL;
	transport->free_send_count = 0;
}
