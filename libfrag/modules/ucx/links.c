// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "module.h"

#define LOG_TOPIC "ucx"
#include <base/log.h>

/*
 * Anybody who reaches the port can call these handlers, so each looks first at the door: magic,
 * version, flow, token, epoch, direction. What does not pass is dropped and counted, and disturbs
 * nobody; what passes and then breaks a rule closes its peer.
 */

int ucx_link_add(struct fragi_peer *peer, struct ucx_link *link, const struct fragi_link *config,
		 bool is_tx)
{
	struct fragi_transport *transport = peer->transport;
	uint32_t size = transport->links_size > 0 ? transport->links_size : 16;
	struct ucx_link **links;

	if (config->flow >= UCX_FLOWS_MAX || config->window_messages == 0 ||
	    config->window_messages > UCX_WINDOW_MAX || config->window_bytes == 0)
		return -EINVAL;
	if (config->flow < transport->links_size && transport->links[config->flow] != NULL)
		return -EEXIST;
	while (size <= config->flow)
		size *= 2;
	if (size > transport->links_size) {
		links = fragi_realloc(transport->links, size * sizeof(struct ucx_link *));
		if (links == NULL)
			return -ENOMEM;
		for (uint32_t i = transport->links_size; i < size; i++)
			links[i] = NULL;
		transport->links = links;
		transport->links_size = size;
	}
	link->peer = peer;
	link->is_tx = is_tx;
	link->config = *config;
	link->next = peer->links;
	peer->links = link;
	transport->links[config->flow] = link;
	transport->tick_ns = 0; /* HELLO goes out with the next round */
	ucp_worker_signal(transport->worker);
	return 0;
}

static bool is_power_of_two(uint64_t n)
{
	return (n & (n - 1)) == 0;
}

static struct ucx_link *refuse(struct fragi_transport *transport, const char *why)
{
	transport->refused++;
	if (is_power_of_two(transport->refused))
		log_warn(NULL, "dropped a message on the data plane: %s (%llu so far)", why,
			 (unsigned long long)transport->refused);
	return NULL;
}

/* NULL: dropped and counted. */
static struct ucx_link *door(struct fragi_transport *transport, enum wire_kind kind,
			     const void *bytes, size_t size, struct wire_header *out)
{
	struct ucx_link *link;
	bool for_tx = kind == WIRE_CREDIT || kind == WIRE_DONE;
	bool for_rx = kind == WIRE_DATA || kind == WIRE_DESCRIPTORS || kind == WIRE_CLOSE;

	if (bytes == NULL || !wire_unpack(bytes, size, kind, out))
		return refuse(transport, "its header is none of ours");
	link = out->flow < transport->links_size ? transport->links[out->flow] : NULL;
	if (link == NULL && kind == WIRE_HELLO)
		return NULL; /* of a peer that was wired earlier than we were; it will ask again */
	if (link == NULL)
		return refuse(transport, "it names a flow that is not wired here");
	if (!wire_token_equal(out->token, link->config.token))
		return refuse(transport, "its token is wrong");
	if (out->epoch != link->peer->epoch)
		return refuse(transport, "it is of another epoch of its host");
	if ((for_tx && !link->is_tx) || (for_rx && link->is_tx))
		return refuse(transport, "it goes against the direction of its flow");
	if (ucx_peer_state(link->peer) == UCX_PEER_LOST || link->peer->failed)
		return NULL;
	if (kind != WIRE_HELLO && !link->peer->heard)
		return refuse(transport, "it came before HELLO");
	link->peer->heard_ns = transport->now_ns;
	transport->happened++;
	return link;
}

/*
 * Credit that DATA of rx's sender carries, of a flow to it. Returns false when that broke a rule.
 */
static bool carried_credit(struct ucx_rx *rx, const uint8_t *bytes, size_t size)
{
	struct fragi_peer *peer = rx->link.peer;
	struct fragi_transport *transport = peer->transport;
	struct wire_credit credit;
	struct ucx_link *link;

	if (size < WIRE_CREDIT_BYTES) {
		ucx_rx_broke_rule(rx, "credit cut short");
		return false;
	}
	credit = wire_credit_unpack(bytes);
	link = credit.flow < transport->links_size ? transport->links[credit.flow] : NULL;
	if (link == NULL || !link->is_tx || link->peer != peer)
		ucx_rx_broke_rule(rx, "credit of a flow that does not lead to it");
	else
		ucx_tx_on_credit(ucx_tx_of(link), credit.messages, credit.bytes);
	return !peer->failed;
}

static ucs_status_t on_data(void *arg, const void *bytes, size_t size, void *data, size_t length,
			    const ucp_am_recv_param_t *param)
{
	struct wire_header header;
	struct ucx_link *link = door(arg, WIRE_DATA, bytes, size, &header);
	size_t at = WIRE_FIXED_BYTES;

	if (link == NULL)
		return UCS_OK;
	if ((header.flags & WIRE_CREDITED) != 0) {
		if (!carried_credit(ucx_rx_of(link), (const uint8_t *)bytes + at, size - at))
			return UCS_OK;
		at += WIRE_CREDIT_BYTES;
	}
	return ucx_rx_on_data(ucx_rx_of(link), &header, (const uint8_t *)bytes + at, size - at,
			      data, length, param);
}

static ucs_status_t on_descriptors(void *arg, const void *bytes, size_t size, void *data,
				   size_t length, const ucp_am_recv_param_t *param)
{
	struct wire_header header;
	struct ucx_link *link = door(arg, WIRE_DESCRIPTORS, bytes, size, &header);

	if (link == NULL)
		return UCS_OK;
	return ucx_rx_on_descriptors(ucx_rx_of(link), &header, data, length, param);
}

#define CONTROL_HANDLER(name, KIND, call)                                                          \
	static ucs_status_t name(void *arg, const void *bytes, size_t size, void *data,            \
				 size_t length, const ucp_am_recv_param_t *param)                  \
	{                                                                                          \
		struct wire_header header;                                                         \
		struct ucx_link *link = door(arg, KIND, bytes, size, &header);                     \
                                                                                                   \
		(void)data, (void)param;                                                           \
		if (link == NULL)                                                                  \
			return UCS_OK;                                                             \
		if (length != 0 || size != WIRE_FIXED_BYTES)                                       \
			ucx_peer_fail(link->peer, "sent a malformed message of kind %d",           \
				      (int)KIND);                                                  \
		else                                                                               \
			call;                                                                      \
		return UCS_OK;                                                                     \
	}

CONTROL_HANDLER(on_hello, WIRE_HELLO, ucx_peer_on_hello(link, &header))
CONTROL_HANDLER(on_credit, WIRE_CREDIT,
		ucx_tx_on_credit(ucx_tx_of(link), header.sequence, header.body_bytes))
CONTROL_HANDLER(on_beat, WIRE_BEAT, ucx_peer_on_beat(link, &header))
CONTROL_HANDLER(on_close, WIRE_CLOSE, ucx_rx_on_close(ucx_rx_of(link), &header))
CONTROL_HANDLER(on_done, WIRE_DONE, ucx_tx_on_done(ucx_tx_of(link)))
CONTROL_HANDLER(on_sync, WIRE_SYNC, ucx_peer_on_sync(link, &header))

int ucx_handlers_set(struct fragi_transport *transport)
{
	static const ucp_am_recv_callback_t handlers[WIRE_KINDS] = {
		[WIRE_HELLO] = on_hello,
		[WIRE_DATA] = on_data,
		[WIRE_DESCRIPTORS] = on_descriptors,
		[WIRE_CREDIT] = on_credit,
		[WIRE_BEAT] = on_beat,
		[WIRE_CLOSE] = on_close,
		[WIRE_DONE] = on_done,
		[WIRE_SYNC] = on_sync,
	};
	ucp_am_handler_param_t param = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
			      UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.arg = transport,
	};

	for (unsigned int id = 0; id < WIRE_KINDS; id++) {
		param.id = id;
		param.cb = handlers[id];
		if (ucp_worker_set_am_recv_handler(transport->worker, &param) != UCS_OK)
			return -EIO;
	}
	return 0;
}
