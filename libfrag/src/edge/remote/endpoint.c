// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <base/beat.h>
#include <base/machine.h>
#include <edge/remote/state.h>

#define LOG_TOPIC "edge"
#include <base/log.h>
#include <base/sentence.h>

/*
 * Happy path: the transport connects to the peer's address, HELLO goes to it again and again until
 * the answer says that ours was heard (the peer may be wired later than we are), then data flows,
 * with beats where it does not. At the end SYNC with LEAVE says goodbye, and its answer says that
 * all before it has arrived.
 *
 * Failure: the transport reports it, nothing is heard for too long, or the peer breaks a rule. The
 * endpoint is then lost. One that the transport reported is closed. Else the peer may live: what it
 * sends is dropped when it arrives, nothing is sent to it, and its endpoint stays open, because a
 * connection may not survive being cut under what a living peer goes on sending.
 */

#define REACH_MAX 256
#define OPEN_PORTS "open TCP to the data ports there, 10000-32767 or those of its --worker-address"

static const char *const state_names[] = {"connecting", "ready", "suspended", "left", "lost"};
static const uint32_t endpoint_transitions[] = {
	[FRAGI_ENDPOINT_CONNECTING] =
		FRAGI_TO(FRAGI_ENDPOINT_READY) | FRAGI_TO(FRAGI_ENDPOINT_LOST),
	[FRAGI_ENDPOINT_READY] = FRAGI_TO(FRAGI_ENDPOINT_SUSPENDED) |
				 FRAGI_TO(FRAGI_ENDPOINT_LEFT) | FRAGI_TO(FRAGI_ENDPOINT_LOST),
	[FRAGI_ENDPOINT_SUSPENDED] = FRAGI_TO(FRAGI_ENDPOINT_LEFT) | FRAGI_TO(FRAGI_ENDPOINT_LOST),
	[FRAGI_ENDPOINT_LEFT] = FRAGI_TO(FRAGI_ENDPOINT_LOST),
	[FRAGI_ENDPOINT_LOST] = FRAGI_TO(FRAGI_ENDPOINT_CONNECTING), /* to a successor */
};

/* Between two rounds; a peer may have sent anything. */
static void endpoint_check(const void *object)
{
	const struct fragi_remote_endpoint *endpoint = object;
	const struct fragi_remote *remote = fragi_remote_of(endpoint);
	int state = fragi_remote_endpoint_state(endpoint);

	(void)remote;
	if (state == FRAGI_ENDPOINT_CONNECTING) {
		assert((!endpoint->has_name || endpoint->closing ||
			endpoint->connect_until_ns != 0) &&
		       "no attempt lasts for ever");
		assert(!endpoint->leave_wanted && !endpoint->leave_sent);
	} else if (fragi_remote_endpoint_is_up(endpoint)) {
		assert(endpoint->heard && endpoint->has_name);
		assert((endpoint->failed || endpoint->closing ||
			remote->now_ns - endpoint->heard_ns < remote->config.dead_ns) &&
		       "silence is judged");
		assert((endpoint->failed || endpoint->closing || !endpoint->sync_owed ||
			endpoint->arriving > 0 || endpoint->own_sends > 0) &&
		       "SYNC waits for arrivals and for room only");
	} else if (state == FRAGI_ENDPOINT_LOST) {
		assert(!endpoint->failed && "it is lost once");
		assert((endpoint->closing || !endpoint->broken || remote->endpoint_failed) &&
		       "nothing comes back on a broken connection");
	}
	if (endpoint->failed)
		assert(endpoint->failure != FRAGI_FAILURE_NONE && remote->endpoint_failed);
	assert((!endpoint->stopped || endpoint->closing) && "it is closed, then stopped");
	assert(endpoint->sync_asked <= endpoint->sent_count &&
	       endpoint->sync_answered <= endpoint->sent_count);
}

static const struct fragi_machine machine = {
	.name = "endpoint",
	.state_names = state_names,
	.transitions = endpoint_transitions,
	.count = FRAG_COUNT_OF(endpoint_transitions),
	.check = endpoint_check,
};

void fragi_remote_endpoint_transition(struct fragi_remote_endpoint *endpoint,
				      enum fragi_endpoint_state state)
{
	int before = fragi_remote_endpoint_state(endpoint);
	bool legal = fragi_machine_transition(&machine, (uint32_t)before, state);

	fragi_log(legal ? FRAGI_LOG_DEBUG : FRAGI_LOG_ERROR, NULL,
		  "endpoint to host %u, epoch %llu, over %s: %s -> %s%s", endpoint->peer->host,
		  (unsigned long long)endpoint->peer->epoch, endpoint->transport->ops->name,
		  state_names[before], state_names[state], fragi_machine_remark(legal));
	if (legal)
		atomic_store_explicit(&endpoint->state, state, memory_order_release);
}

int fragi_remote_endpoint_create(struct fragi_remote_peer *peer,
				 struct fragi_remote_transport *transport, const void *address,
				 size_t size, struct fragi_remote_endpoint **out_endpoint,
				 struct frag_err *err)
{
	struct fragi_remote_endpoint *endpoint = fragi_calloc(1, sizeof(*endpoint));
	int r;

	if (endpoint == NULL)
		return frag_err_set(err, -ENOMEM, "there is no memory left for the peer host %u",
				    peer->host);
	endpoint->peer = peer;
	endpoint->transport = transport;
	r = transport->ops->connect(transport->transport, peer->host, address, size, endpoint,
				    &endpoint->base, err);
	if (r < 0) {
		fragi_free(endpoint);
		return r;
	}
	endpoint->heard_ns = endpoint->sent_ns = fragi_now_ns();
	endpoint->next = peer->endpoints;
	peer->endpoints = endpoint;
	peer->remote->tick_ns = 0;
	*out_endpoint = endpoint;
	return 0;
}

void fragi_remote_endpoint_free(struct fragi_remote_endpoint *endpoint)
{
	struct fragi_remote *remote = fragi_remote_of(endpoint);

	fragi_remote_sends_detach(endpoint, NULL);
	for (uint32_t i = 0; i < remote->flows_size; i++)
		if (remote->flows[i].endpoint == endpoint)
			remote->flows[i].endpoint = NULL;
	endpoint->transport->ops->free(endpoint->base);
	fragi_remote_endpoint_forget_successor(endpoint);
	fragi_free(endpoint);
}

void fragi_remote_endpoint_fail(struct fragi_remote_endpoint *endpoint, enum fragi_failure failure,
				const char *format, ...)
{
	va_list args;

	if (endpoint->failed || fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_LOST)
		return;
	endpoint->failed = true;
	endpoint->failure = failure;
	fragi_remote_of(endpoint)->endpoint_failed = true;
	va_start(args, format);
	fragi_sentence_of(endpoint->sentence, sizeof(endpoint->sentence), format, args);
	va_end(args);
}

/* What the transport knows of the way there. */
static bool reach(const struct fragi_remote_endpoint *endpoint, char out[REACH_MAX])
{
	const struct fragi_transport_ops *ops = endpoint->transport->ops;

	out[0] = '\0';
	return ops->reach != NULL && endpoint->base != NULL &&
	       ops->reach(endpoint->base,
			  fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_CONNECTING, out,
			  REACH_MAX);
}

void fragi_remote_on_failed(void *owner, const char *cause)
{
	struct fragi_remote_endpoint *endpoint = owner;
	const struct fragi_transport *transport = endpoint->transport->transport;
	/* It may fail within connect, when the peer's version is not known yet. */
	const char *there = endpoint->base != NULL ? endpoint->base->version : "another version";
	char way[REACH_MAX];

	(void)reach(endpoint, way);
	endpoint->broken = true;
	fragi_remote_of(endpoint)->endpoint_failed = true;
	if (fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_CONNECTING)
		fragi_remote_endpoint_fail(
			endpoint, FRAGI_FAILURE_EDGE_UNREACHABLE,
			"could not be connected to%s (%s): its process has ended, a firewall is between (" OPEN_PORTS
			"), or %s %s here and %s there do not understand each other",
			way, cause, transport->ops->title, transport->version, there);
	else
		fragi_remote_endpoint_fail(
			endpoint, FRAGI_FAILURE_EDGE_LOST,
			"has ended, or the network between is cut: the data link%s broke (%s)", way,
			cause);
}

void fragi_remote_endpoint_close(struct fragi_remote_endpoint *endpoint)
{
	bool silent = endpoint->broken || endpoint->leave_heard || endpoint->successor != NULL ||
		      fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_LEFT;

	if (endpoint->closing)
		return;
	endpoint->closing = true;
	fragi_remote_of(endpoint)->endpoints_closing = true;
	endpoint->transport->ops->close(endpoint->base, silent);
}

/* HELLO. */

static void send_hello(struct fragi_remote_endpoint *endpoint)
{
	struct fragi_header header = {
		.kind = FRAGI_KIND_HELLO,
		.flags = endpoint->heard ? FRAGI_FLAG_HEARD : 0,
		.sequence = fragi_remote_of(endpoint)->config.host,
		.body_bytes = endpoint->transport->transport->names_sender ? FRAGI_TAKES_NEXT : 0,
	};

	fragi_remote_send_header(endpoint, &header);
}

static void become_ready(struct fragi_remote_endpoint *endpoint)
{
	const struct fragi_transport *transport = endpoint->transport->transport;

	if (transport->ops->areas != NULL)
		atomic_store(&endpoint->areas, transport->ops->areas(endpoint->base));
	endpoint->ready_ns = fragi_now_ns();
	fragi_remote_endpoint_transition(endpoint, FRAGI_ENDPOINT_READY);
	log_debug(NULL, "host %u is connected: %s %s%s", endpoint->peer->host, transport->ops->name,
		  endpoint->base->version, endpoint->base->same_node ? ", on this node" : "");
	fragi_remote_clock_begin(endpoint);
	fragi_remote_peer_is_ready(endpoint->peer);
	for (struct fragi_remote_edge *edge = endpoint->edges; edge != NULL; edge = edge->next)
		if (edge->is_tx)
			fragi_remote_tx_transmit(fragi_remote_tx_of(edge));
		else
			fragi_remote_rx_settle(fragi_remote_rx_of(edge));
	if (endpoint->suspend_wanted)
		fragi_remote_endpoint_suspend(endpoint);
}

void fragi_remote_on_hello(struct fragi_remote_endpoint *endpoint,
			   const struct fragi_header *header)
{
	bool was_heard = endpoint->heard;

	if (header->sequence != endpoint->peer->host) {
		fragi_remote_endpoint_fail(
			endpoint, FRAGI_FAILURE_PROTOCOL,
			"says it is host %llu; the driver has mixed up two hosts",
			(unsigned long long)header->sequence);
		return;
	}
	endpoint->heard = true;
	atomic_store_explicit(&endpoint->takes_next,
			      endpoint->transport->transport->names_sender &&
				      (header->body_bytes & FRAGI_TAKES_NEXT) != 0,
			      memory_order_relaxed);
	if (!was_heard || (header->flags & FRAGI_FLAG_HEARD) == 0)
		send_hello(endpoint);
	if ((header->flags & FRAGI_FLAG_HEARD) != 0 &&
	    fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_CONNECTING)
		become_ready(endpoint);
}

/*
 * SYNC. Headers arrive in order, and the answer waits for the bodies: so it says that what was sent
 * before has arrived, though the memory that it was sent from may not be free yet.
 */

static void ask_sync(struct fragi_remote_endpoint *endpoint, uint8_t flags)
{
	if (!endpoint->has_name)
		return;
	if (!fragi_remote_send_own(endpoint, FRAGI_KIND_SYNC, flags, endpoint->sent_count))
		return;
	endpoint->sync_asked = endpoint->sent_count;
	endpoint->leave_sent = endpoint->leave_sent || (flags & FRAGI_FLAG_LEAVE) != 0;
}

static void answer_sync(struct fragi_remote_endpoint *endpoint)
{
	uint8_t leave = endpoint->leave_owed ? FRAGI_FLAG_LEAVE : 0;

	if (!fragi_remote_send_own(endpoint, FRAGI_KIND_SYNC, (uint8_t)(FRAGI_FLAG_REPLY | leave),
				   endpoint->sync_sequence))
		return;
	endpoint->sync_owed = endpoint->leave_owed = false;
	if (leave != 0 && fragi_remote_endpoint_is_up(endpoint))
		fragi_remote_endpoint_transition(endpoint, FRAGI_ENDPOINT_LEFT);
}

void fragi_remote_on_sync(struct fragi_remote_endpoint *endpoint, const struct fragi_header *header)
{
	bool leave = (header->flags & FRAGI_FLAG_LEAVE) != 0;

	if ((header->flags & FRAGI_FLAG_REPLY) != 0) {
		if (header->sequence <= endpoint->sent_count &&
		    header->sequence >= endpoint->sync_answered)
			endpoint->sync_answered = header->sequence;
		endpoint->leave_heard = endpoint->leave_heard || leave;
		return;
	}
	endpoint->sync_owed = true;
	endpoint->leave_owed = endpoint->leave_owed || leave;
	endpoint->sync_sequence = header->sequence;
	if (endpoint->arriving == 0)
		answer_sync(endpoint);
}

void fragi_remote_endpoint_arrived(struct fragi_remote_endpoint *endpoint)
{
	assert(endpoint->arriving > 0);
	if (--endpoint->arriving == 0 && endpoint->sync_owed)
		answer_sync(endpoint);
}

bool fragi_remote_endpoint_is_flushed(const struct fragi_remote_endpoint *endpoint)
{
	int state = fragi_remote_endpoint_state(endpoint);

	if (state == FRAGI_ENDPOINT_LOST || state == FRAGI_ENDPOINT_LEFT)
		return true;
	for (struct fragi_remote_edge *edge = endpoint->edges; edge != NULL; edge = edge->next)
		if (edge->is_tx ? state == FRAGI_ENDPOINT_READY &&
					  !fragi_remote_tx_is_empty(fragi_remote_tx_of(edge))
				: fragi_window_owes(&fragi_remote_rx_of(edge)->window))
			return false;
	return endpoint->sync_answered == endpoint->sent_count;
}

static void return_credits(const struct fragi_remote_endpoint *endpoint)
{
	for (struct fragi_remote_edge *edge = endpoint->edges; edge != NULL; edge = edge->next)
		if (!edge->is_tx)
			fragi_remote_rx_return_credit(fragi_remote_rx_of(edge), true);
}

void fragi_remote_endpoint_flush(struct fragi_remote_endpoint *endpoint)
{
	if (!fragi_remote_endpoint_is_up(endpoint))
		return;
	return_credits(endpoint);
	if (endpoint->sync_asked != endpoint->sent_count)
		ask_sync(endpoint, 0);
	if (!fragi_remote_endpoint_is_flushed(endpoint))
		fragi_remote_of(endpoint)->flush_wanted = true;
	else if (endpoint->leave_wanted && !endpoint->leave_sent)
		ask_sync(endpoint, FRAGI_FLAG_LEAVE);
}

bool fragi_remote_endpoint_leave(struct fragi_remote_endpoint *endpoint)
{
	if (!fragi_remote_endpoint_is_up(endpoint) || endpoint->leave_heard)
		return true;
	if (!endpoint->leave_sent) {
		endpoint->leave_wanted = true;
		fragi_remote_endpoint_flush(endpoint);
	}
	return false;
}

/* Time. */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t tick_connecting(struct fragi_remote_endpoint *endpoint, int64_t now_ns)
{
	const struct fragi_transport *transport = endpoint->transport->transport;
	char way[REACH_MAX];

	if (!endpoint->has_name)
		return INT64_MAX; /* no flow yet to say HELLO with */
	if (endpoint->connect_until_ns == 0)
		endpoint->connect_until_ns = now_ns + FRAGI_CONNECT_NS;
	/*
	 * Where the way there is open, the way back may be closed: the other host says it better.
	 */
	if (now_ns >= endpoint->connect_until_ns && reach(endpoint, way) &&
	    !endpoint->waits_longer) {
		endpoint->waits_longer = true;
		endpoint->connect_until_ns = now_ns + FRAGI_CONNECT_NS / 4;
	}
	if (now_ns >= endpoint->connect_until_ns) {
		fragi_remote_endpoint_fail(
			endpoint, FRAGI_FAILURE_EDGE_UNREACHABLE,
			"did not answer within %d s on the data plane%s; " OPEN_PORTS
			", and check --worker-address of both (%s here is %s, there %s)",
			(int)(FRAGI_CONNECT_NS / 1000000000), way, transport->ops->title,
			transport->version, endpoint->base->version);
		return now_ns;
	}
	if (now_ns >= endpoint->hello_ns) {
		send_hello(endpoint);
		endpoint->hello_ns = now_ns + FRAGI_HELLO_RETRY_NS;
	}
	return earlier(endpoint->hello_ns, endpoint->connect_until_ns);
}

/* A GPU that has failed may never report the end of its work. */
static void ask_gpus_again(const struct fragi_remote_endpoint *endpoint)
{
	for (struct fragi_remote_edge *edge = endpoint->edges; edge != NULL; edge = edge->next)
		if (edge->is_tx && fragi_remote_tx_of(edge)->awaited != NULL)
			fragi_remote_tx_transmit(fragi_remote_tx_of(edge));
}

static int64_t tick_ready(struct fragi_remote_endpoint *endpoint, int64_t now_ns)
{
	const struct fragi_remote_config *config = &fragi_remote_of(endpoint)->config;
	int64_t next_ns = INT64_MAX;

	if (now_ns - endpoint->heard_ns >= config->dead_ns) {
		fragi_remote_endpoint_fail(
			endpoint, FRAGI_FAILURE_EDGE_LOST,
			"has been silent on the data plane for %.1f s: it is stopped or hangs, or the network between is cut",
			(double)(now_ns - endpoint->heard_ns) / 1e9);
		return now_ns;
	}
	return_credits(endpoint);
	ask_gpus_again(endpoint);
	if (endpoint->sync_owed && endpoint->arriving == 0)
		answer_sync(endpoint);
	if (fragi_remote_clock_is_other(endpoint))
		next_ns = fragi_remote_clock_tick(endpoint, now_ns);
	if (now_ns - endpoint->sent_ns >= config->beat_ns) {
		fragi_remote_send_own(endpoint, FRAGI_KIND_BEAT, 0, 0);
		endpoint->sent_ns = now_ns;
	}
	next_ns = earlier(next_ns, endpoint->heard_ns + config->dead_ns);
	return earlier(next_ns, endpoint->sent_ns + config->beat_ns);
}

static int64_t tick(struct fragi_remote_endpoint *endpoint, int64_t now_ns)
{
	if (endpoint->closing)
		return endpoint->stopped ? INT64_MAX : now_ns + 1000000;
	switch (fragi_remote_endpoint_state(endpoint)) {
	case FRAGI_ENDPOINT_CONNECTING:
		return tick_connecting(endpoint, now_ns);
	case FRAGI_ENDPOINT_READY:
	case FRAGI_ENDPOINT_SUSPENDED:
		return tick_ready(endpoint, now_ns);
	default:
		return INT64_MAX;
	}
}

int64_t fragi_remote_endpoint_tick(struct fragi_remote_endpoint *endpoint, int64_t now_ns)
{
	int64_t next_ns = tick(endpoint, now_ns);

	fragi_machine_check(&machine, endpoint);
	return next_ns;
}
