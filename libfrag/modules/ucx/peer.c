// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "module.h"

#define LOG_TOPIC "ucx"
#include <base/log.h>

/*
 * Happy path: an endpoint is made from the peer's address, HELLO goes to it again and again until
 * the answer says that ours was heard (the peer may be wired later than we are), then data flows,
 * with beats where it does not. At the end SYNC with LEAVE says goodbye and its answer says that
 * all before it has arrived.
 *
 * Failure: UCX reports an error, nothing is heard for too long, or the peer breaks a rule. The peer
 * is then lost, and reported once. Where UCX reported it, the endpoint is force-closed, and when
 * that is done all its requests are abandoned. Else the peer may live: what it sends is dropped at
 * the door, nothing is sent to it, and its endpoint stays, because UCX does not survive a forced
 * close under what a living peer goes on sending; its requests end by themselves, or with the
 * worker.
 */

void ucx_peer_fail(struct fragi_peer *peer, const char *format, ...)
{
	va_list args;

	if (peer->failed || ucx_peer_state(peer) == UCX_PEER_LOST)
		return;
	peer->failed = true;
	peer->transport->peer_failed = true;
	va_start(args, format);
	vsnprintf(peer->sentence, sizeof(peer->sentence), format, args);
	va_end(args);
}

void ucx_peer_broken(struct fragi_peer *peer)
{
	peer->broken = true;
	peer->transport->peer_failed = true;
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct fragi_peer *peer = arg;

	(void)ep;
	ucx_peer_broken(peer);
	if (ucx_peer_state(peer) == UCX_PEER_CONNECTING)
		ucx_peer_fail(
			peer,
			"could not be connected to (%s): its process has ended, a firewall is between, or UCX %s here and %s there do not understand each other",
			ucs_status_string(status), peer->transport->version, peer->version);
	else
		ucx_peer_fail(
			peer,
			"the data link broke (%s): its process has ended, or the network between is cut",
			ucs_status_string(status));
}

int ucx_peer_add(struct fragi_transport *transport, uint32_t host, uint64_t epoch,
		 const void *address, size_t size, struct fragi_peer **out_peer,
		 struct frag_err *err)
{
	struct fragi_peer *peer = fragi_calloc(1, sizeof(*peer));
	const void *worker_address;
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
			      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = {.cb = on_error, .arg = peer},
	};
	ucs_status_t status;
	int r;

	if (peer == NULL)
		return frag_err_set(err, -ENOMEM, "there is no memory left for the peer host %u",
				    host);
	peer->transport = transport;
	peer->host = host;
	peer->epoch = epoch;
	atomic_store(&peer->state, UCX_PEER_CONNECTING);
	r = ucx_address_check(transport, address, size, &worker_address, &peer->same_node,
			      peer->version, err);
	if (r < 0)
		goto err_free;
	params.address = worker_address;
	status = ucp_ep_create(transport->worker, &params, &peer->ep);
	if (status != UCS_OK) {
		r = frag_err_set(
			err, -EHOSTUNREACH,
			"cannot connect to host %u over UCX (%s); UCX here is %s, there %s; check that the two nodes reach each other's --worker-address and that UCX_TLS allows it",
			host, ucs_status_string(status), transport->version, peer->version);
		goto err_free;
	}
	peer->heard_ns = peer->sent_ns = fragi_now_ns();
	peer->next = transport->peers;
	transport->peers = peer;
	transport->tick_ns = 0;
	*out_peer = peer;
	return 0;

err_free:
	fragi_free(peer);
	return r;
}

void ucx_peer_close(struct fragi_peer *peer)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};
	ucs_status_ptr_t request;

	if (peer->ep == NULL)
		return;
	request = ucp_ep_close_nbx(peer->ep, &param);
	peer->ep = NULL;
	peer->close_request = UCS_PTR_IS_PTR(request) ? request : NULL;
	peer->close_until_ns = fragi_now_ns() + UCX_CLOSE_NS;
	peer->transport->closing_peers = true;
}

void ucx_peer_end(struct fragi_peer *peer)
{
	bool is_closed = peer->ep == NULL;
	struct ucx_link *link;

	if (peer->close_request != NULL)
		ucp_request_free(peer->close_request);
	peer->close_request = NULL;
	peer->close_until_ns = 0;
	ucx_ops_abandon(peer, is_closed);
	for (link = peer->links; link != NULL; link = link->next)
		if (!link->is_tx)
			ucx_rx_abandon(ucx_rx_of(link));
}

static void peer_lose(struct fragi_peer *peer)
{
	const struct fragi_transport_config *config = &peer->transport->config;
	bool expected = ucx_peer_state(peer) == UCX_PEER_LEFT;
	char sentence[UCX_SENTENCE_MAX + 64];

	peer->failed = false;
	atomic_store_explicit(&peer->state, UCX_PEER_LOST, memory_order_release);
	for (struct ucx_link *link = peer->links; link != NULL; link = link->next)
		if (!link->is_tx)
			ucx_rx_of(link)->broken = true;
	peer->transport->tick_ns = 0;
	if (expected)
		return;
	snprintf(sentence, sizeof(sentence), "host %u %s", peer->host, peer->sentence);
	log_debug(NULL, "%s", sentence);
	if (config->peer_lost != NULL)
		config->peer_lost(config->arg, peer->host, sentence);
}

void ucx_peers_settle(struct fragi_transport *transport)
{
	struct fragi_peer *peer;
	bool closing = false;

	if (transport->peer_failed) {
		transport->peer_failed = false;
		for (peer = transport->peers; peer != NULL; peer = peer->next) {
			if (peer->failed)
				peer_lose(peer);
			if (peer->broken && ucx_peer_state(peer) == UCX_PEER_LOST)
				ucx_peer_close(peer);
		}
	}
	if (!transport->closing_peers)
		return;
	for (peer = transport->peers; peer != NULL; peer = peer->next) {
		if (peer->close_until_ns == 0)
			continue;
		if (peer->close_request != NULL &&
		    ucp_request_check_status(peer->close_request) == UCS_INPROGRESS &&
		    transport->now_ns < peer->close_until_ns)
			closing = true;
		else
			ucx_peer_end(peer);
	}
	transport->closing_peers = closing;
}

void ucx_peer_free(struct fragi_peer *peer)
{
	struct ucx_link *link, *next;

	ucx_peer_end(peer);
	for (link = peer->links; link != NULL; link = next) {
		next = link->next;
		if (link->is_tx)
			ucx_tx_free(ucx_tx_of(link));
		else
			ucx_rx_free(ucx_rx_of(link));
	}
	fragi_free(peer);
}

/* HELLO. */

static void send_hello(struct fragi_peer *peer)
{
	ucx_op_send_control(peer->links, WIRE_HELLO, peer->heard ? WIRE_HEARD : 0,
			    peer->transport->config.host, 0);
}

void ucx_peer_on_hello(struct ucx_link *link, const struct wire_header *header)
{
	struct fragi_peer *peer = link->peer;
	const struct fragi_transport_config *config = &peer->transport->config;
	bool was_heard = peer->heard;

	if (header->sequence != peer->host) {
		ucx_peer_fail(peer, "says it is host %llu; the driver has mixed up two hosts",
			      (unsigned long long)header->sequence);
		return;
	}
	peer->heard = true;
	if (!was_heard || (header->flags & WIRE_HEARD) == 0)
		send_hello(peer);
	if ((header->flags & WIRE_HEARD) == 0 || ucx_peer_state(peer) != UCX_PEER_CONNECTING)
		return;
	atomic_store_explicit(&peer->state, UCX_PEER_READY, memory_order_release);
	log_debug(NULL, "host %u is connected: ucx %s%s", peer->host, peer->version,
		  peer->same_node ? ", on this node" : "");
	if (config->peer_ready != NULL)
		config->peer_ready(config->arg, peer->host);
	for (struct ucx_link *l = peer->links; l != NULL; l = l->next)
		if (l->is_tx)
			ucx_tx_transmit(ucx_tx_of(l));
		else
			ucx_rx_settle(ucx_rx_of(l));
}

void ucx_peer_on_beat(struct ucx_link *link, const struct wire_header *header)
{
	if ((header->flags & WIRE_WANT) == 0 || link->is_tx)
		return;
	atomic_store_explicit(&ucx_rx_of(link)->window.wanted, true, memory_order_relaxed);
	ucx_rx_return_credit(ucx_rx_of(link), true);
}

/* SYNC: on one lane, so its answer says that what was sent before has been handled over there. */

void ucx_peer_ask_sync(struct fragi_peer *peer, uint8_t flags)
{
	if (peer->links == NULL || peer->ops != NULL)
		return;
	peer->sync_asked = peer->sent_count;
	peer->leave_sent = peer->leave_sent || (flags & WIRE_LEAVE) != 0;
	ucx_op_send_control(peer->links, WIRE_SYNC, flags, peer->sent_count, 0);
}

void ucx_peer_on_sync(struct ucx_link *link, const struct wire_header *header)
{
	struct fragi_peer *peer = link->peer;

	if ((header->flags & WIRE_REPLY) != 0) {
		if (header->sequence <= peer->sent_count && header->sequence >= peer->sync_answered)
			peer->sync_answered = header->sequence;
		if ((header->flags & WIRE_LEAVE) != 0)
			peer->leave_heard = true;
		return;
	}
	ucx_op_send_control(link, WIRE_SYNC, (uint8_t)(WIRE_REPLY | (header->flags & WIRE_LEAVE)),
			    header->sequence, 0);
	if ((header->flags & WIRE_LEAVE) != 0 && ucx_peer_state(peer) == UCX_PEER_READY)
		atomic_store_explicit(&peer->state, UCX_PEER_LEFT, memory_order_release);
}

bool ucx_peer_is_flushed(struct fragi_peer *peer)
{
	int state = ucx_peer_state(peer);

	if (state == UCX_PEER_LOST || state == UCX_PEER_LEFT)
		return true;
	for (struct ucx_link *link = peer->links; link != NULL; link = link->next)
		if (link->is_tx ? !ucx_tx_is_empty(ucx_tx_of(link))
				: fragi_window_owes(&ucx_rx_of(link)->window))
			return false;
	return peer->ops == NULL && peer->sync_answered == peer->sent_count;
}

/* Time. */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t tick_connecting(struct fragi_peer *peer, int64_t now_ns)
{
	if (peer->links == NULL)
		return INT64_MAX; /* no flow yet to say HELLO with */
	if (peer->connect_until_ns == 0)
		peer->connect_until_ns = now_ns + UCX_CONNECT_NS;
	if (now_ns >= peer->connect_until_ns) {
		ucx_peer_fail(
			peer,
			"did not answer within %d s on the data plane; check that the two nodes reach each other's --worker-address and data ports (UCX here is %s, there %s)",
			(int)(UCX_CONNECT_NS / 1000000000), peer->transport->version,
			peer->version);
		return now_ns;
	}
	if (now_ns >= peer->hello_ns) {
		send_hello(peer);
		peer->hello_ns = now_ns + UCX_HELLO_RETRY_NS;
	}
	return earlier(peer->hello_ns, peer->connect_until_ns);
}

static int64_t tick_ready(struct fragi_peer *peer, int64_t now_ns)
{
	const struct fragi_transport_config *config = &peer->transport->config;

	if (now_ns - peer->heard_ns >= config->dead_ns) {
		ucx_peer_fail(
			peer,
			"has been silent on the data plane for %.1f s: it is stopped or hangs, or the network between is cut",
			(double)(now_ns - peer->heard_ns) / 1e9);
		return now_ns;
	}
	for (struct ucx_link *link = peer->links; link != NULL; link = link->next)
		if (!link->is_tx)
			ucx_rx_return_credit(ucx_rx_of(link), true);
	if (now_ns - peer->sent_ns >= config->beat_ns) {
		ucx_op_send_control(peer->links, WIRE_BEAT, 0, 0, 0);
		peer->sent_ns = now_ns;
	}
	return earlier(peer->sent_ns + config->beat_ns, peer->heard_ns + config->dead_ns);
}

int64_t ucx_peers_tick(struct fragi_transport *transport, int64_t now_ns)
{
	int64_t next = now_ns + transport->config.beat_ns;

	for (struct fragi_peer *peer = transport->peers; peer != NULL; peer = peer->next) {
		if (ucx_peer_state(peer) == UCX_PEER_CONNECTING)
			next = earlier(next, tick_connecting(peer, now_ns));
		else if (ucx_peer_state(peer) == UCX_PEER_READY)
			next = earlier(next, tick_ready(peer, now_ns));
		if (peer->close_until_ns != 0)
			next = now_ns + 1000000;
	}
	return next;
}
