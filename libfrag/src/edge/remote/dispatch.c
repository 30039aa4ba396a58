// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <edge/remote/state.h>

#define LOG_TOPIC "edge"
#include <base/log.h>

/*
 * Anybody who reaches a transport's port can send a message, so each is authenticated first: magic,
 * version, flow, token, epoch, direction. NEXT has no token: it is taken only where the transport
 * says that it is of the flow's peer. What fails is dropped and counted, and disturbs nobody; what
 * passes and then breaks a rule loses its peer. What passes all this and is not genuine on an
 * encrypted flow was made by somebody who sees the flow's messages: it loses the peer too.
 */

static int flows_grow(struct fragi_remote *remote, uint32_t flow)
{
	uint32_t size = remote->flows_size > 0 ? remote->flows_size : 16;
	struct fragi_remote_flow *flows;

	while (size <= flow)
		size *= 2;
	if (size == remote->flows_size)
		return 0;
	flows = fragi_realloc(remote->flows, size * sizeof(*flows));
	if (flows == NULL)
		return -ENOMEM;
	memset(flows + remote->flows_size, 0, (size - remote->flows_size) * sizeof(*flows));
	remote->flows = flows;
	remote->flows_size = size;
	return 0;
}

int fragi_remote_edge_add(struct fragi_remote_endpoint *endpoint, struct fragi_remote_edge *edge,
			  const struct fragi_edge_config *config, bool is_tx)
{
	struct fragi_remote *remote = fragi_remote_of(endpoint);
	struct fragi_remote_flow *flow;
	int r;

	if (config->flow >= FRAGI_FLOWS_MAX || config->window_messages == 0 ||
	    config->window_messages > FRAGI_CAPACITY_MAX || config->window_bytes == 0)
		return -EINVAL;
	if (flows_grow(remote, config->flow) < 0)
		return -ENOMEM;
	flow = &remote->flows[config->flow];
	if ((is_tx ? flow->tx != NULL : flow->rx != NULL) ||
	    ((flow->tx != NULL || flow->rx != NULL) &&
	     (flow->endpoint != endpoint || !fragi_token_equal(flow->token, config->token))))
		return -EEXIST;
	r = fragi_remote_seal_prepare(flow, endpoint, config, is_tx);
	if (r < 0)
		return r;
	flow->endpoint = endpoint;
	memcpy(flow->token, config->token, sizeof(flow->token));
	edge->endpoint = endpoint;
	edge->seal = flow->seal;
	edge->is_tx = is_tx;
	edge->link = remote->config.epoch + endpoint->peer->epoch;
	edge->config = *config;
	edge->next = endpoint->edges;
	endpoint->edges = edge;
	if (is_tx)
		flow->tx = fragi_remote_tx_of(edge);
	else
		flow->rx = fragi_remote_rx_of(edge);
	if (!endpoint->has_name || (endpoint->seal == NULL && flow->seal != NULL)) {
		endpoint->has_name = true;
		endpoint->flow = config->flow;
		memcpy(endpoint->token, config->token, sizeof(endpoint->token));
		endpoint->seal = flow->seal;
		endpoint->back = !is_tx;
	}
	remote->tick_ns = 0; /* HELLO goes out with the next round */
	endpoint->transport->ops->wake(endpoint->transport->transport);
	return 0;
}

void fragi_remote_edge_remove(struct fragi_remote_edge *edge)
{
	struct fragi_remote_flow *flow = &fragi_remote_of(edge->endpoint)->flows[edge->config.flow];
	struct fragi_remote_edge **at = &edge->endpoint->edges;

	while (*at != edge)
		at = &(*at)->next;
	*at = edge->next;
	if (edge->is_tx)
		flow->tx = NULL;
	else
		flow->rx = NULL;
}

static bool is_power_of_two(uint64_t n)
{
	return (n & (n - 1)) == 0;
}

static struct fragi_remote_flow *refuse(struct fragi_remote *remote, const char *why)
{
	remote->refused++;
	if (is_power_of_two(remote->refused))
		log_warn(NULL, "dropped a message on the data plane: %s (%llu so far)", why,
			 (unsigned long long)remote->refused);
	return NULL;
}

/* A message for one end of a flow that has only the other here. */
static bool goes_astray(const struct fragi_remote_flow *flow, enum fragi_header_kind kind)
{
	bool for_tx = kind == FRAGI_KIND_CREDIT || kind == FRAGI_KIND_DONE;
	bool for_rx = kind == FRAGI_KIND_DATA || kind == FRAGI_KIND_DESCRIPTORS ||
		      kind == FRAGI_KIND_CLOSE;

	return (for_tx && flow->tx == NULL && flow->rx != NULL) ||
	       (for_rx && flow->rx == NULL && flow->tx != NULL);
}

/* What an endpoint sends in the name of one of its flows: an encrypted one if it has any. */
static bool is_of_endpoint(const struct fragi_header *header)
{
	return header->kind == FRAGI_KIND_HELLO || header->kind == FRAGI_KIND_SYNC ||
	       (header->kind == FRAGI_KIND_BEAT && (header->flags & FRAGI_FLAG_WANT) == 0);
}

/* NULL: dropped, and counted where it is odd. */
static struct fragi_remote_flow *authenticate(struct fragi_remote *remote, const void *bytes,
					      size_t size, struct fragi_header *out)
{
	struct fragi_remote_endpoint *endpoint;
	struct fragi_remote_flow *flow;

	if (bytes == NULL || !fragi_header_unpack(bytes, size, out))
		return refuse(remote, "its header is none of ours");
	flow = out->flow < remote->flows_size ? &remote->flows[out->flow] : NULL;
	endpoint = flow != NULL ? flow->endpoint : NULL;
	/* Of a peer that was wired, or took another one's place, before we know; it asks again. */
	if (out->kind == FRAGI_KIND_HELLO &&
	    (endpoint == NULL || fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_LOST ||
	     out->epoch > endpoint->peer->epoch))
		return NULL;
	if (endpoint == NULL)
		return refuse(remote, "it names a flow that is not wired here");
	if (!fragi_token_equal(out->token, flow->token))
		return refuse(remote, "its token is wrong");
	if (out->epoch != endpoint->peer->epoch)
		return refuse(remote, "it is of another epoch of its host");
	if (goes_astray(flow, out->kind))
		return refuse(remote, "it goes against the direction of its flow");
	if (fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_LOST || endpoint->failed ||
	    endpoint->closing)
		return NULL;
	if (out->kind != FRAGI_KIND_HELLO && !endpoint->heard)
		return refuse(remote, "it came before HELLO");
	if (endpoint->seal != NULL && flow->seal == NULL && is_of_endpoint(out))
		return refuse(remote,
			      "it is not sealed, and other flows of that host are encrypted");
	return flow;
}

static void heard(struct fragi_remote_endpoint *endpoint)
{
	struct fragi_remote *remote = fragi_remote_of(endpoint);

	endpoint->heard_ns = remote->now_ns;
	remote->happened++;
}

/* Credit of a flow to the sender of a message of rx, which carries it. False: it broke a rule. */
static bool carried_credit(struct fragi_remote_rx *rx, const uint8_t *bytes, size_t size)
{
	struct fragi_remote_endpoint *endpoint = rx->edge.endpoint;
	const struct fragi_remote *remote = fragi_remote_of(endpoint);
	struct fragi_credit credit;
	struct fragi_remote_flow *flow;

	if (size < FRAGI_CREDIT_BYTES) {
		fragi_remote_rx_broke_rule(rx, "credit cut short");
		return false;
	}
	credit = fragi_credit_unpack(bytes);
	flow = credit.flow < remote->flows_size ? &remote->flows[credit.flow] : NULL;
	if (flow == NULL || flow->endpoint != endpoint || goes_astray(flow, FRAGI_KIND_CREDIT) ||
	    (flow->seal != NULL && rx->edge.seal == NULL))
		fragi_remote_rx_broke_rule(rx, "credit of a flow that does not lead to it");
	else if (flow->tx != NULL)
		fragi_remote_tx_on_credit(flow->tx, credit.messages, credit.bytes);
	return !endpoint->failed;
}

/* rest: what stands behind the header */
static enum fragi_arrival_use on_data(struct fragi_remote_rx *rx, const struct fragi_header *header,
				      const struct fragi_seal_mark *mark, const uint8_t *rest,
				      size_t rest_bytes, const struct fragi_arrival *arrival)
{
	if ((header->flags & FRAGI_FLAG_CREDITED) != 0) {
		if (!carried_credit(rx, rest, rest_bytes))
			return FRAGI_ARRIVAL_USED;
		rest += FRAGI_CREDIT_BYTES;
		rest_bytes -= FRAGI_CREDIT_BYTES;
	}
	return fragi_remote_on_data(rx, header, mark, rest, rest_bytes, arrival);
}

/* A message that carries no token: its transport says whose it is. */
static enum fragi_arrival_use on_next(struct fragi_remote *remote, const struct fragi_next *next,
				      const struct fragi_arrival *arrival)
{
	struct fragi_remote_flow *flow =
		next->flow < remote->flows_size ? &remote->flows[next->flow] : NULL;
	struct fragi_remote_endpoint *endpoint = flow != NULL ? flow->endpoint : NULL;

	if (endpoint == NULL || arrival->from == NULL || endpoint->base != arrival->from ||
	    flow->seal != NULL || (flow->rx == NULL && flow->tx != NULL) || !endpoint->heard) {
		(void)refuse(remote, "it is short, and is none of a flow to here");
		return FRAGI_ARRIVAL_USED;
	}
	if (__builtin_expect(flow->rx == NULL || endpoint->failed || endpoint->closing ||
				     fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_LOST,
			     0))
		return FRAGI_ARRIVAL_USED;
	heard(endpoint);
	return fragi_remote_on_next(flow->rx, next, arrival);
}

/* A message without bodies. An end that was freed needs none any more. */
static void on_control(const struct fragi_remote_flow *flow, const struct fragi_header *header)
{
	switch (header->kind) {
	case FRAGI_KIND_HELLO:
		fragi_remote_on_hello(flow->endpoint, header);
		break;
	case FRAGI_KIND_SYNC:
		fragi_remote_on_sync(flow->endpoint, header);
		break;
	case FRAGI_KIND_BEAT:
		if ((header->flags & FRAGI_FLAG_WANT) != 0 && flow->rx != NULL)
			fragi_remote_rx_on_want(flow->rx);
		else
			fragi_remote_on_beat(flow->endpoint, header);
		break;
	case FRAGI_KIND_CLOSE:
		if (flow->rx != NULL)
			fragi_remote_rx_on_close(flow->rx, header);
		break;
	case FRAGI_KIND_CREDIT:
		if (flow->tx != NULL)
			fragi_remote_tx_on_credit(flow->tx, header->sequence, header->body_bytes);
		break;
	case FRAGI_KIND_DONE:
		if (flow->tx != NULL)
			fragi_remote_tx_on_done(flow->tx);
		break;
	default:
		break;
	}
}

/* What begins with the full header. */
static __attribute__((noinline)) enum fragi_arrival_use
on_header(struct fragi_remote *remote, const struct fragi_arrival *arrival)
{
	struct fragi_header header;
	struct fragi_remote_flow *flow =
		authenticate(remote, arrival->header, arrival->header_bytes, &header);
	const uint8_t *rest = (const uint8_t *)arrival->header + FRAGI_HEADER_BYTES;
	size_t rest_bytes = arrival->header_bytes - FRAGI_HEADER_BYTES;
	const struct fragi_seal_mark *mark = NULL;
	struct fragi_sealed sealed;

	if (flow == NULL)
		return FRAGI_ARRIVAL_USED;
	if (__builtin_expect(flow->seal != NULL, 0)) {
		if (!fragi_remote_open_header(flow, arrival, &header, &sealed)) {
			fragi_remote_tampered(flow->endpoint, header.flow);
			return FRAGI_ARRIVAL_USED;
		}
		rest = sealed.rest;
		rest_bytes = sealed.rest_bytes;
		mark = &sealed.mark;
	}
	heard(flow->endpoint);
	if (header.kind == FRAGI_KIND_DATA || header.kind == FRAGI_KIND_DESCRIPTORS) {
		if (flow->rx == NULL)
			return FRAGI_ARRIVAL_USED;
		return header.kind == FRAGI_KIND_DATA
			       ? on_data(flow->rx, &header, mark, rest, rest_bytes, arrival)
			       : fragi_remote_on_descriptors(flow->rx, &header, mark, arrival);
	}
	if (arrival->body_bytes != 0 || rest_bytes != 0)
		fragi_remote_endpoint_fail(flow->endpoint, FRAGI_FAILURE_PROTOCOL,
					   "sent a malformed message of kind %d", (int)header.kind);
	else
		on_control(flow, &header);
	return FRAGI_ARRIVAL_USED;
}

enum fragi_arrival_use fragi_remote_dispatch(struct fragi_remote *remote,
					     const struct fragi_arrival *arrival)
{
	struct fragi_next next;

	return fragi_next_unpack(arrival->header, arrival->header_bytes, &next)
		       ? on_next(remote, &next, arrival)
		       : on_header(remote, arrival);
}
