// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <edge/remote/state.h>

#define LOG_TOPIC "edge"
#include <base/log.h>
#include <base/sentence.h>

/*
 * A peer is ready when all its endpoints are, and lost with the first of them that is. Both are
 * reported once.
 */

int fragi_remote_peer_create(struct fragi_remote *remote, uint32_t host, uint64_t epoch,
			     struct fragi_remote_peer **out_peer)
{
	struct fragi_remote_peer *peer = fragi_calloc(1, sizeof(*peer));

	if (peer == NULL)
		return -ENOMEM;
	peer->remote = remote;
	peer->host = host;
	peer->epoch = epoch;
	snprintf(peer->name, sizeof(peer->name), "host %u", host);
	peer->next = remote->peers;
	remote->peers = peer;
	*out_peer = peer;
	return 0;
}

/* The name is "HOST on worker WORKER". */
void fragi_remote_peer_set_name(struct fragi_remote_peer *peer, const char *name)
{
	static const char before[] = " on worker ";
	const char *worker = NULL;

	snprintf(peer->name, sizeof(peer->name), "%s", name);
	for (const char *at = name; (at = strstr(at, before)) != NULL;)
		worker = at += sizeof(before) - 1;
	if (worker != NULL)
		peer->worker = fragi_trail_worker(worker, strlen(worker));
}

int fragi_remote_connect(struct fragi_remote_peer *peer, const char *kind, const void *address,
			 size_t size, struct fragi_remote_endpoint **out_endpoint,
			 struct frag_err *err)
{
	struct fragi_remote *remote = peer->remote;
	uint32_t i = 0;

	while (i < remote->transport_count && strcmp(remote->transports[i].ops->name, kind) != 0)
		i++;
	if (i == remote->transport_count)
		return frag_err_set(err, -ENOENT, "this host has no transport %s to host %u", kind,
				    peer->host);
	for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
	     endpoint = endpoint->next)
		if (endpoint->transport == &remote->transports[i])
			return frag_err_set(err, -EEXIST, "host %u is connected over %s already",
					    peer->host, kind);
	return fragi_remote_endpoint_create(peer, &remote->transports[i], address, size,
					    out_endpoint, err);
}

void fragi_remote_peer_is_ready(struct fragi_remote_peer *peer)
{
	const struct fragi_remote_config *config = &peer->remote->config;

	for (const struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
	     endpoint = endpoint->next)
		if ((endpoint->has_name &&
		     fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_CONNECTING) ||
		    fragi_remote_clock_is_awaited(endpoint))
			return;
	if (peer->ready)
		return;
	peer->ready = true;
	if (config->peer_ready != NULL)
		config->peer_ready(config->arg, peer->host);
}

void fragi_remote_endpoint_lose(struct fragi_remote_endpoint *endpoint)
{
	endpoint->failed = false;
	fragi_remote_endpoint_transition(endpoint, FRAGI_ENDPOINT_LOST);
	for (struct fragi_remote_edge *edge = endpoint->edges; edge != NULL; edge = edge->next)
		if (!edge->is_tx)
			fragi_remote_rx_of(edge)->broken = true;
}

static void end_edges(const struct fragi_remote_peer *peer)
{
	for (const struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
	     endpoint = endpoint->next)
		for (struct fragi_remote_edge *edge = endpoint->edges; edge != NULL;
		     edge = edge->next)
			if (edge->is_tx)
				fragi_remote_tx_end(fragi_remote_tx_of(edge));
			else
				fragi_remote_rx_end(fragi_remote_rx_of(edge));
}

/* Edges to a lost peer are dead, over whichever endpoint. */
static void peer_lose(struct fragi_remote_peer *peer, enum fragi_failure failure, const char *why)
{
	const struct fragi_remote_config *config = &peer->remote->config;
	char sentence[FRAGI_SENTENCE_MAX + sizeof(peer->name)];

	fragi_sentence(sentence, sizeof(sentence), "%s %s", peer->name, why);
	for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
	     endpoint = endpoint->next)
		if (fragi_remote_endpoint_state(endpoint) != FRAGI_ENDPOINT_LOST)
			fragi_remote_endpoint_lose(endpoint);
	if (peer->lost)
		return;
	peer->lost = true;
	log_debug(NULL, "%s", sentence);
	if (config->peer_lost != NULL)
		config->peer_lost(config->arg, peer->host, failure, sentence);
	if (peer->remote->draining)
		end_edges(peer);
}

void fragi_remote_drain(struct fragi_remote *remote)
{
	if (remote->draining)
		return;
	remote->draining = true;
	for (const struct fragi_remote_peer *peer = remote->peers; peer != NULL; peer = peer->next)
		if (peer->lost)
			end_edges(peer);
}

static void settle_failed(struct fragi_remote_peer *peer)
{
	for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
	     endpoint = endpoint->next) {
		if (endpoint->failed &&
		    fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_LEFT)
			fragi_remote_endpoint_lose(endpoint); /* as was to be expected */
		else if (endpoint->failed)
			peer_lose(peer, endpoint->failure, endpoint->sentence);
		if (endpoint->broken &&
		    fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_LOST)
			fragi_remote_endpoint_close(endpoint);
	}
}

static void abandon_arrivals(const struct fragi_remote_endpoint *endpoint)
{
	for (struct fragi_remote_edge *edge = endpoint->edges; edge != NULL; edge = edge->next)
		if (!edge->is_tx)
			fragi_remote_rx_abandon(fragi_remote_rx_of(edge));
}

/* Returns whether some endpoint of the peer is still closing. */
static bool settle_closing(struct fragi_remote_peer *peer)
{
	bool closing = false;

	for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
	     endpoint = endpoint->next) {
		if (endpoint->closing && !endpoint->stopped) {
			endpoint->stopped = endpoint->transport->ops->stop(endpoint->base,
									   peer->remote->now_ns);
			if (endpoint->stopped && endpoint->broken)
				abandon_arrivals(endpoint);
			closing = closing || !endpoint->stopped;
		}
		if (endpoint->stopped && endpoint->successor != NULL && !peer->remote->draining)
			fragi_remote_endpoint_reconnect(endpoint);
	}
	return closing;
}

void fragi_remote_settle(struct fragi_remote *remote)
{
	struct fragi_remote_peer *peer;
	bool closing = false;

	if (remote->endpoint_failed) {
		remote->endpoint_failed = false;
		remote->tick_ns = 0;
		for (peer = remote->peers; peer != NULL; peer = peer->next)
			settle_failed(peer);
	}
	if (!remote->endpoints_closing)
		return;
	for (peer = remote->peers; peer != NULL; peer = peer->next)
		closing = settle_closing(peer) || closing;
	remote->endpoints_closing = closing;
}

int64_t fragi_remote_peers_tick(struct fragi_remote *remote, int64_t now_ns)
{
	int64_t next = now_ns + remote->config.beat_ns, at;

	for (struct fragi_remote_peer *peer = remote->peers; peer != NULL; peer = peer->next)
		for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
		     endpoint = endpoint->next) {
			at = fragi_remote_endpoint_tick(endpoint, now_ns);
			next = at < next ? at : next;
		}
	return next;
}

/* The end. */

void fragi_remote_peer_silence(struct fragi_remote_peer *peer)
{
	peer->ready = peer->lost = true;
	for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
	     endpoint = endpoint->next) {
		fragi_remote_endpoint_forget_successor(endpoint);
		for (struct fragi_remote_edge *edge = endpoint->edges; edge != NULL;
		     edge = edge->next)
			if (edge->is_tx)
				fragi_remote_tx_silence(fragi_remote_tx_of(edge));
			else
				fragi_remote_rx_of(edge)->rx.arrival.fn = NULL;
	}
}

void fragi_remote_peer_free(struct fragi_remote_peer *peer)
{
	struct fragi_remote_endpoint *endpoint, *next;

	assert(peer->remote->peers == peer);
	for (endpoint = peer->endpoints; endpoint != NULL; endpoint = next) {
		next = endpoint->next;
		fragi_remote_endpoint_close(endpoint);
		while (endpoint->edges != NULL)
			if (endpoint->edges->is_tx)
				fragi_remote_tx_free(fragi_remote_tx_of(endpoint->edges));
			else
				fragi_remote_rx_free(fragi_remote_rx_of(endpoint->edges));
		fragi_remote_endpoint_free(endpoint);
	}
	peer->remote->peers = peer->next;
	fragi_free(peer);
}
