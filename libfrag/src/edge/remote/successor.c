// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <edge/remote/state.h>

/*
 * The process of a peer has ended and another one takes its place. Operators read the endpoints of
 * their edges without the lock, so an endpoint stays, with its edges, and only what lies below it
 * is replaced: once the connection to the old process is closed and stopped, it connects again, and
 * is what it was at the beginning. The ends count on where they were, and remember up to where they
 * had come (`before`), because an operator counts on its side of a window too.
 */

struct fragi_remote_peer *fragi_remote_peer_find(const struct fragi_remote *remote, uint32_t host)
{
	struct fragi_remote_peer *peer = remote->peers;

	while (peer != NULL && peer->host != host)
		peer = peer->next;
	return peer;
}

void fragi_remote_keep_open(struct fragi_remote *remote)
{
	atomic_store(&remote->keeps_open, true);
}

uint64_t fragi_remote_peer_epoch(const struct fragi_remote_peer *peer)
{
	return peer->epoch;
}

bool fragi_remote_peer_was_ready(const struct fragi_remote_peer *peer)
{
	return peer->ready;
}

bool fragi_remote_peer_was_lost(const struct fragi_remote_peer *peer)
{
	return peer->lost;
}

int fragi_remote_peer_succeed(struct fragi_remote_peer *peer, uint64_t epoch)
{
	if (epoch <= peer->epoch)
		return -ESTALE;
	peer->epoch = epoch;
	peer->ready = false;
	peer->lost = true; /* as the driver knows; no report */
	for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
	     endpoint = endpoint->next) {
		fragi_remote_endpoint_forget_successor(endpoint);
		if (fragi_remote_endpoint_state(endpoint) != FRAGI_ENDPOINT_LOST)
			fragi_remote_endpoint_lose(endpoint);
	}
	return 0;
}

int fragi_remote_edge_succeed(struct fragi_remote_peer *peer, uint32_t flow,
			      const uint8_t token[FRAGI_TOKEN_BYTES])
{
	struct fragi_remote *remote = peer->remote;
	struct fragi_remote_flow *own = flow < remote->flows_size ? &remote->flows[flow] : NULL;

	if (own == NULL || own->endpoint == NULL || own->endpoint->peer != peer)
		return -ENOENT;
	memcpy(own->token, token, sizeof(own->token));
	if (own->tx != NULL)
		memcpy(own->tx->edge.config.token, token, FRAGI_TOKEN_BYTES);
	if (own->rx != NULL)
		memcpy(own->rx->edge.config.token, token, FRAGI_TOKEN_BYTES);
	if (own->endpoint->flow == flow)
		memcpy(own->endpoint->token, token, FRAGI_TOKEN_BYTES);
	return 0;
}

int fragi_remote_endpoint_succeed(struct fragi_remote_peer *peer, const char *kind,
				  const void *address, size_t size)
{
	struct fragi_remote_endpoint *endpoint = peer->endpoints;
	void *copy;

	while (endpoint != NULL && strcmp(endpoint->transport->ops->name, kind) != 0)
		endpoint = endpoint->next;
	if (endpoint == NULL)
		return -ENOENT;
	copy = fragi_malloc(size + 1);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, address, size);
	fragi_remote_endpoint_forget_successor(endpoint);
	endpoint->successor = copy;
	endpoint->successor_size = size;
	fragi_remote_endpoint_close(endpoint);
	peer->remote->endpoints_closing = true; /* also where it has stopped before */
	endpoint->transport->ops->wake(endpoint->transport->transport);
	return 0;
}

void fragi_remote_endpoint_forget_successor(struct fragi_remote_endpoint *endpoint)
{
	fragi_free(endpoint->successor);
	endpoint->successor = NULL;
}

/* As at the beginning. */
static void begin_anew(struct fragi_remote_endpoint *endpoint)
{
	endpoint->heard = endpoint->failed = endpoint->broken = endpoint->suspend_wanted = false;
	endpoint->closing = endpoint->stopped = false;
	endpoint->failure = FRAGI_FAILURE_NONE;
	endpoint->leave_wanted = endpoint->leave_sent = endpoint->leave_heard = false;
	endpoint->sync_owed = endpoint->leave_owed = false;
	endpoint->sent_count = endpoint->sync_asked = endpoint->sync_answered = 0;
	endpoint->hello_ns = endpoint->connect_until_ns = 0;
	endpoint->waits_longer = false;
	endpoint->heard_ns = endpoint->sent_ns = fragi_now_ns();
	atomic_store(&endpoint->owing, NULL);
	atomic_store_explicit(&endpoint->takes_next, false, memory_order_relaxed);
	fragi_remote_of(endpoint)->tick_ns = 0;
	fragi_remote_endpoint_transition(endpoint, FRAGI_ENDPOINT_CONNECTING);
}

static int restart_edge(struct fragi_remote_edge *edge)
{
	edge->link = fragi_remote_of(edge->endpoint)->config.epoch + edge->endpoint->peer->epoch;
	if (edge->is_tx)
		fragi_remote_tx_restart(fragi_remote_tx_of(edge));
	else
		fragi_remote_rx_restart(fragi_remote_rx_of(edge));
	return fragi_remote_seal_restart(edge);
}

void fragi_remote_endpoint_reconnect(struct fragi_remote_endpoint *endpoint)
{
	struct fragi_remote_transport *transport = endpoint->transport;
	struct fragi_remote_peer *peer = endpoint->peer;
	struct fragi_endpoint *before = endpoint->base;
	struct frag_err err = FRAG_ERR_INIT;
	int r = 0;

	fragi_remote_sends_detach(endpoint, NULL);
	peer->lost = false;
	begin_anew(endpoint);
	for (struct fragi_remote_edge *edge = endpoint->edges; edge != NULL && r == 0;
	     edge = edge->next)
		r = restart_edge(edge);
	if (r == 0)
		r = transport->ops->connect(transport->transport, peer->host, endpoint->successor,
					    endpoint->successor_size, endpoint, &endpoint->base,
					    &err);
	if (r == 0)
		transport->ops->free(before);
	else
		fragi_remote_endpoint_fail(endpoint,
					   r == -ENOMEM ? FRAGI_FAILURE_OUT_OF_MEMORY
							: FRAGI_FAILURE_EDGE_REFUSED,
					   "was started again and cannot be connected to: %s",
					   err.text[0] != '\0' ? err.text : frag_strerror(r));
	fragi_remote_endpoint_forget_successor(endpoint);
}
