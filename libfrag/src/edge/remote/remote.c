// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <base/beat.h>
#include <data/allocator.h>
#include <data/memory.h>
#include <edge/remote/state.h>

/*
 * A round: every transport makes progress, which delivers what has arrived; then failures are
 * settled, credit that operators kept back goes out when nothing else happened, and what is due by
 * the clock is done.
 */

/* Upcalls of the transports. */

static enum fragi_arrival_use on_arrived(void *arg, const struct fragi_arrival *arrival)
{
	return fragi_remote_dispatch(arg, arrival);
}

static void on_fault(void *arg, enum fragi_failure failure, const char *sentence)
{
	const struct fragi_remote *remote = arg;

	if (remote->config.fault != NULL)
		remote->config.fault(remote->config.arg, failure, NULL, sentence);
}

static const struct fragi_transport_events events = {
	.arrived = on_arrived,
	.sent = fragi_remote_on_sent,
	.received = fragi_remote_on_received,
	.failed = fragi_remote_on_failed,
	.fault = on_fault,
};

int fragi_remote_create(const struct fragi_remote_config *config, struct fragi_remote **out_remote)
{
	struct fragi_remote *remote = fragi_calloc(1, sizeof(*remote));

	if (remote == NULL)
		return -ENOMEM;
	remote->bodies = fragi_remote_bodies_create();
	if (remote->bodies == NULL) {
		fragi_free(remote);
		return -ENOMEM;
	}
	remote->config = *config;
	remote->fd = -1;
	if (remote->config.beat_ns <= 0)
		remote->config.beat_ns = FRAGI_BEAT_NS;
	if (remote->config.dead_ns <= 0)
		remote->config.dead_ns = FRAGI_DEAD_NS;
	remote->moment = fragi_moment_now();
	remote->moment_stamps =
		(int64_t)(remote->moment.stamp -
			  fragi_stamp_before(remote->moment.stamp, FRAGI_MOMENT_NS));
	remote->now_ns = remote->moment.ns;
	*out_remote = remote;
	return 0;
}

/* Transports. */

static int epoll_add(const struct fragi_remote *remote, const struct fragi_remote_transport *own)
{
	struct epoll_event readable = {.events = EPOLLIN};

	return epoll_ctl(remote->fd, EPOLL_CTL_ADD, own->ops->fd(own->transport), &readable) < 0
		       ? -errno
		       : 0;
}

/* One descriptor for all: that of the only transport, or of the epoll that waits for them. */
static int watch(struct fragi_remote *remote)
{
	struct fragi_remote_transport *own = &remote->transports[remote->transport_count];
	int r;

	if (remote->transport_count == 0)
		return 0;
	if (remote->fd >= 0)
		return epoll_add(remote, own);
	remote->fd = epoll_create1(EPOLL_CLOEXEC);
	if (remote->fd < 0)
		return -errno;
	r = epoll_add(remote, &remote->transports[0]);
	return r < 0 ? r : epoll_add(remote, own);
}

int fragi_remote_open(struct fragi_remote *remote, const struct fragi_transport_ops *ops,
		      struct frag_err *err)
{
	struct fragi_remote_transport *own = &remote->transports[remote->transport_count];
	const struct fragi_transport_config config = {
		.struct_size = sizeof(config),
		.events = &events,
		.arg = remote,
		.data_key = remote->config.data_key,
	};
	int r;

	if (remote->transport_count == FRAGI_HOST_TRANSPORTS_MAX ||
	    fragi_remote_transport(remote, ops->name) != NULL)
		return frag_err_set(err, -EEXIST, "the transport %s is open already", ops->name);
	r = ops->create(&config, &own->transport, err);
	if (r < 0)
		return r;
	assert(own->transport->header_max >= FRAGI_HEADER_MIN);
	own->remote = remote;
	own->ops = ops;
	own->header_max = own->transport->header_max < FRAGI_HEADER_MAX ? own->transport->header_max
									: FRAGI_HEADER_MAX;
	r = watch(remote);
	if (r < 0) {
		ops->destroy(own->transport);
		memset(own, 0, sizeof(*own));
		return frag_err_set(err, r, "cannot wait for the transport %s (%s)", ops->name,
				    frag_strerror(r));
	}
	remote->transport_count++;
	return 0;
}

void fragi_remote_set_crypto(struct fragi_remote *remote, const struct fragi_crypto_ops *crypto)
{
	remote->crypto = crypto;
}

const struct fragi_transport *fragi_remote_transport(const struct fragi_remote *remote,
						     const char *kind)
{
	for (uint32_t i = 0; i < remote->transport_count; i++)
		if (strcmp(remote->transports[i].ops->name, kind) == 0)
			return remote->transports[i].transport;
	return NULL;
}

/* Rounds. */

bool fragi_remote_is_flushed(struct fragi_remote *remote)
{
	for (struct fragi_remote_peer *peer = remote->peers; peer != NULL; peer = peer->next)
		for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
		     endpoint = endpoint->next) {
			if (fragi_remote_endpoint_is_flushed(endpoint))
				continue;
			remote->flush_wanted = true;
			/* A thread that sleeps may have armed before. */
			endpoint->transport->ops->wake(endpoint->transport->transport);
			return false;
		}
	return true;
}

/* Asks each endpoint that has not yet heard all for an answer behind it. */
static void flush(struct fragi_remote *remote)
{
	remote->flush_wanted = false;
	for (struct fragi_remote_peer *peer = remote->peers; peer != NULL; peer = peer->next)
		for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
		     endpoint = endpoint->next)
			fragi_remote_endpoint_flush(endpoint);
}

/* Operators have taken messages whose credit they kept back; now nothing else is to do. */
static void return_credits(struct fragi_remote *remote)
{
	atomic_exchange_explicit(&remote->credits_waiting, false, memory_order_acquire);
	for (struct fragi_remote_peer *peer = remote->peers; peer != NULL; peer = peer->next)
		for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
		     endpoint = endpoint->next) {
			if (!fragi_remote_endpoint_is_up(endpoint))
				continue;
			for (struct fragi_remote_edge *edge = endpoint->edges; edge != NULL;
			     edge = edge->next)
				if (!edge->is_tx)
					fragi_remote_rx_return_credit(fragi_remote_rx_of(edge),
								      false);
		}
}

/*
 * This process was stopped, or made no progress for long: then it is not the peers who were silent.
 * Time is counted as base/awake.h does.
 */
static void extend_deadlines(struct fragi_remote *remote, int64_t now_ns)
{
	int64_t due_ns = remote->tick_ns > remote->now_ns ? remote->tick_ns : remote->now_ns;
	int64_t late_ns = now_ns - due_ns;

	if (remote->now_ns == 0 || late_ns <= remote->config.beat_ns)
		return;
	for (struct fragi_remote_peer *peer = remote->peers; peer != NULL; peer = peer->next)
		for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
		     endpoint = endpoint->next) {
			/* it may have been connected meanwhile */
			endpoint->heard_ns = endpoint->heard_ns + late_ns < now_ns
						     ? endpoint->heard_ns + late_ns
						     : now_ns;
			if (endpoint->connect_until_ns != 0)
				endpoint->connect_until_ns += late_ns;
		}
}

/*
 * The bytes of a receive came, and nothing that says from whom. A large message holds back the
 * beats behind it for as long as it takes, so each peer that is sending one over this transport
 * counts as heard.
 */
static void note_senders_alive(struct fragi_remote *remote,
			       const struct fragi_remote_transport *transport)
{
	for (struct fragi_remote_peer *peer = remote->peers; peer != NULL; peer = peer->next)
		for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
		     endpoint = endpoint->next)
			for (struct fragi_remote_edge *edge = endpoint->edges;
			     edge != NULL && endpoint->transport == transport; edge = edge->next)
				if (!edge->is_tx && fragi_remote_rx_of(edge)->receiving > 0)
					endpoint->heard_ns = remote->now_ns;
}

static uint32_t progress_transports(struct fragi_remote *remote, int64_t now_ns)
{
	uint32_t happened = 0, before, events_of_one;

	for (uint32_t i = 0; i < remote->transport_count; i++) {
		struct fragi_remote_transport *own = &remote->transports[i];

		before = remote->happened;
		events_of_one = own->ops->progress(own->transport, now_ns);
		if (own->receiving > 0 && events_of_one > 0 && remote->happened == before)
			note_senders_alive(remote, own);
		happened += events_of_one;
	}
	return happened;
}

static uint32_t remote_progress(void *object, int64_t now_ns)
{
	struct fragi_remote *remote = object;
	uint32_t happened;

	if (__builtin_expect(now_ns - remote->now_ns > remote->config.beat_ns, 0))
		extend_deadlines(remote, now_ns);
	remote->now_ns = now_ns;
	if (__builtin_expect(now_ns - remote->moment.ns > FRAGI_MOMENT_NS, 0))
		remote->moment = fragi_moment_now();
	happened = progress_transports(remote, now_ns);
	if (__builtin_expect(remote->endpoint_failed || remote->endpoints_closing, 0))
		fragi_remote_settle(remote);
	if (happened == 0 && atomic_load_explicit(&remote->credits_waiting, memory_order_relaxed))
		return_credits(remote);
	if (__builtin_expect(now_ns >= remote->tick_ns, 0))
		remote->tick_ns = fragi_remote_peers_tick(remote, now_ns);
	if (__builtin_expect(remote->flush_wanted, 0))
		flush(remote);
	happened += remote->happened;
	remote->happened = 0;
	return happened;
}

static int remote_arm(void *object)
{
	struct fragi_remote *remote = object;
	int r;

	if (remote->endpoint_failed ||
	    atomic_load_explicit(&remote->credits_waiting, memory_order_relaxed))
		return -EBUSY;
	for (uint32_t i = 0; i < remote->transport_count; i++) {
		r = remote->transports[i].ops->arm(remote->transports[i].transport);
		if (r < 0)
			return r;
	}
	return 0;
}

static int remote_fd(const void *object)
{
	const struct fragi_remote *remote = object;

	return remote->fd >= 0 ? remote->fd
			       : remote->transports[0].ops->fd(remote->transports[0].transport);
}

static int64_t remote_deadline_ns(const void *object)
{
	const struct fragi_remote *remote = object;

	return remote->tick_ns;
}

static void remote_wake(void *object)
{
	struct fragi_remote *remote = object;

	remote->transports[0].ops->wake(remote->transports[0].transport);
}

const struct fragi_pump_ops fragi_remote_pump_ops = {
	.progress = remote_progress,
	.arm = remote_arm,
	.fd = remote_fd,
	.deadline_ns = remote_deadline_ns,
	.wake = remote_wake,
};

bool fragi_remote_run_until(struct fragi_remote *remote, int64_t until_ns, bool (*done)(void *arg),
			    void *arg)
{
	struct pollfd p = {.fd = remote->transport_count > 0 ? remote_fd(remote) : -1,
			   .events = POLLIN};
	int64_t now;
	bool idle;

	while (!done(arg)) {
		now = fragi_now_ns();
		if (now >= until_ns)
			return false;
		idle = remote_progress(remote, now) == 0 && remote_arm(remote) == 0;
		fragi_pump_unlock(remote->config.pump); /* which runs what was submitted */
		if (idle)
			poll(&p, 1, 1);
		fragi_pump_lock(remote->config.pump);
	}
	return true;
}

/* The end. */

static bool has_said_goodbye(void *arg)
{
	const struct fragi_remote *remote = arg;
	bool all = true;

	for (struct fragi_remote_peer *peer = remote->peers; peer != NULL; peer = peer->next)
		for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
		     endpoint = endpoint->next)
			all = fragi_remote_endpoint_leave(endpoint) && all;
	return all;
}

static bool is_stopped(void *arg)
{
	return !((const struct fragi_remote *)arg)->endpoints_closing;
}

void fragi_remote_destroy(struct fragi_remote *remote)
{
	struct fragi_pump *pump;
	struct fragi_remote_peer *peer;

	if (remote == NULL)
		return;
	pump = remote->config.pump;
	fragi_pump_lock(pump);
	remote->config.fault = NULL;
	/* The schedulers behind the edges may be gone already. */
	for (peer = remote->peers; peer != NULL; peer = peer->next)
		fragi_remote_peer_silence(peer);
	fragi_pump_unlock(pump); /* which runs what was submitted */
	fragi_pump_lock(pump);
	fragi_remote_run_until(remote, fragi_now_ns() + FRAGI_GOODBYE_NS, has_said_goodbye, remote);
	for (peer = remote->peers; peer != NULL; peer = peer->next)
		for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
		     endpoint = endpoint->next)
			fragi_remote_endpoint_close(endpoint);
	fragi_remote_run_until(remote, fragi_now_ns() + FRAGI_TRANSPORTS_STOP_NS, is_stopped,
			       remote);
	while (remote->peers != NULL)
		fragi_remote_peer_free(remote->peers);
	fragi_streams_free(remote->arrivals);
	for (uint32_t i = 0; i < remote->transport_count; i++) {
		remote->transports[i].ops->destroy(remote->transports[i].transport);
		fragi_remote_sends_free(&remote->transports[i]);
		fragi_remote_receives_free(&remote->transports[i]);
	}
	fragi_resource_unref(remote->bodies);
	for (uint32_t i = 0; i < remote->flows_size; i++)
		fragi_remote_seal_free(remote->flows[i].seal);
	fragi_free(remote->flows);
	if (remote->aead != NULL)
		remote->crypto->aead_destroy(remote->aead);
	fragi_free(remote->opened);
	if (remote->fd >= 0)
		close(remote->fd);
	fragi_free(remote);
	fragi_pump_unlock(pump);
}
