// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "module.h"
#include <base/beat.h>
#include <data/allocator.h>

#define LOG_TOPIC "ucx"
#include <base/log.h>

static int create_worker(struct fragi_transport *transport, struct frag_err *err)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
	};
	ucp_worker_params_t worker_params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SERIALIZED,
	};
	const char *interfaces = getenv("UCX_NET_DEVICES");
	ucp_config_t *config;
	ucs_status_t status;

	status = ucp_config_read(NULL, NULL, &config);
	if (status != UCS_OK)
		return frag_err_set(
			err, -EINVAL,
			"UCX does not accept its settings (%s); check the UCX_ variables",
			ucs_status_string(status));
	status = ucp_init(&params, config, &transport->context);
	ucp_config_release(config);
	if (status != UCS_OK)
		return frag_err_set(
			err, -ENODEV,
			"UCX finds no device to use (%s): UCX_NET_DEVICES is %s and UCX_TLS is %s; check the interface's name and that it is up",
			ucs_status_string(status), interfaces != NULL ? interfaces : "not set",
			getenv("UCX_TLS") != NULL ? getenv("UCX_TLS") : "not set");
	status = ucp_worker_create(transport->context, &worker_params, &transport->worker);
	if (status != UCS_OK)
		return frag_err_set(
			err, -EADDRNOTAVAIL,
			"UCX cannot open %s (%s): the interface is down, or no port of the data port range (UCX_TCP_PORT_RANGE is %s) is free",
			interfaces != NULL ? interfaces : "its devices", ucs_status_string(status),
			getenv("UCX_TCP_PORT_RANGE") != NULL ? getenv("UCX_TCP_PORT_RANGE")
							     : "not set");
	status = ucp_worker_get_efd(transport->worker, &transport->fd);
	if (status != UCS_OK)
		return frag_err_set(
			err, -ENOTSUP,
			"UCX cannot wait for events (%s): UCX_TLS is %s, and one of these transports has no wake-up; use tcp",
			ucs_status_string(status),
			getenv("UCX_TLS") != NULL ? getenv("UCX_TLS") : "not set");
	return 0;
}

static int take_address(struct fragi_transport *transport, struct frag_err *err)
{
	ucp_worker_attr_t attr = {
		.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER,
	};
	ucs_status_t status = ucp_worker_query(transport->worker, &attr);
	int r;

	if (status != UCS_OK)
		return frag_err_set(err, -EIO, "UCX does not tell its worker's address (%s)",
				    ucs_status_string(status));
	if (attr.max_am_header < WIRE_HEADER_MAX)
		r = frag_err_set(
			err, -ENOTSUP,
			"UCX takes %zu bytes of header where frag needs %u; leave the UCX_TCP_*_SEG_SIZE variables as they are",
			attr.max_am_header, WIRE_HEADER_MAX);
	else
		r = ucx_address_make(transport, attr.address, attr.address_length);
	ucp_worker_release_address(transport->worker, attr.address);
	return r;
}

static void release(struct fragi_transport *transport)
{
	if (transport->worker != NULL)
		ucp_worker_destroy(transport->worker);
	if (transport->context != NULL)
		ucp_cleanup(transport->context);
	ucx_ops_free(transport);
	ucx_parts_free(transport);
	fragi_resource_unref(transport->bodies);
	fragi_free(transport->links);
	fragi_free(transport->address);
	fragi_free(transport);
}

static int ucx_create(const struct fragi_transport_config *config,
		      struct fragi_transport **out_transport, struct frag_err *err)
{
	const char *interfaces = getenv("UCX_NET_DEVICES"), *transports = getenv("UCX_TLS");
	struct fragi_transport *transport;
	struct ucx_sockets before;
	unsigned int major, minor, release_number;
	int r;

	if (config->struct_size != sizeof(*config) || config->pump == NULL)
		return frag_err_set(err, -EINVAL,
				    "the ucx module and libfrag are of two builds; reinstall frag");
	transport = fragi_calloc(1, sizeof(*transport));
	if (transport == NULL)
		return frag_err_set(err, -ENOMEM, "there is no memory left for the transport");
	transport->config = *config;
	if (transport->config.beat_ns <= 0)
		transport->config.beat_ns = FRAGI_BEAT_NS;
	if (transport->config.dead_ns <= 0)
		transport->config.dead_ns = FRAGI_DEAD_NS;
	ucp_get_version(&major, &minor, &release_number);
	snprintf(transport->version, sizeof(transport->version), "%u.%u.%u", major, minor,
		 release_number);
	transport->bodies = ucx_bodies_create();
	if (transport->bodies == NULL) {
		r = frag_err_set(err, -ENOMEM, "there is no memory left for the transport");
		goto err_release;
	}
	r = ucx_sockets_list(&before);
	if (r < 0)
		frag_err_set(err, r, "cannot list this process's sockets: %s", frag_strerror(r));
	else
		r = create_worker(transport, err);
	if (r < 0)
		goto err_release;
	/* What a user names in UCX_NET_DEVICES is wanted; "all" and nothing mean everywhere. */
	if (interfaces != NULL && *interfaces != '\0' && strcmp(interfaces, "all") != 0) {
		r = ucx_sockets_check(&before, interfaces, err);
		if (r < 0)
			goto err_release;
	}
	r = ucx_handlers_set(transport);
	if (r < 0) {
		frag_err_set(err, r, "UCX refuses frag's message handlers");
		goto err_release;
	}
	r = take_address(transport, err);
	if (r < 0) {
		frag_err_set(err, r, "cannot make this host's data address (%s)", frag_strerror(r));
		goto err_release;
	}
	snprintf(transport->description, sizeof(transport->description), "ucx %s %s %s",
		 transport->version, transports != NULL ? transports : "all",
		 interfaces != NULL ? interfaces : "all");
	transport->moment = fragi_moment_now();
	transport->moment_stamps =
		(int64_t)(transport->moment.stamp -
			  fragi_stamp_before(transport->moment.stamp, UCX_MOMENT_NS));
	transport->now_ns = transport->moment.ns;
	*out_transport = transport;
	return 0;

err_release:
	release(transport);
	return r;
}

static const void *ucx_address(const struct fragi_transport *transport, size_t *out_size)
{
	*out_size = transport->address_size;
	return transport->address;
}

static const char *ucx_describe(const struct fragi_transport *transport)
{
	return transport->description;
}

static bool ucx_is_flushed(struct fragi_transport *transport)
{
	for (struct fragi_peer *peer = transport->peers; peer != NULL; peer = peer->next) {
		if (!ucx_peer_is_flushed(peer)) {
			transport->flush_wanted = true;
			ucp_worker_signal(transport->worker); /* who sleeps may have armed before */
			return false;
		}
	}
	return true;
}

/* Asks each peer that has not yet heard all for an answer behind it. */
static void flush(struct fragi_transport *transport)
{
	transport->flush_wanted = false;
	for (struct fragi_peer *peer = transport->peers; peer != NULL; peer = peer->next) {
		if (ucx_peer_state(peer) != UCX_PEER_READY)
			continue;
		for (struct ucx_link *link = peer->links; link != NULL; link = link->next)
			if (!link->is_tx)
				ucx_rx_return_credit(ucx_rx_of(link), true);
		if (peer->sync_asked != peer->sent_count)
			ucx_peer_ask_sync(peer, 0);
		if (!ucx_peer_is_flushed(peer))
			transport->flush_wanted = true;
	}
}

/* Operators have taken messages whose credit they kept back; now nothing else is to do. */
static void return_credits(struct fragi_transport *transport)
{
	atomic_store_explicit(&transport->credits_waiting, false, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* against on_taken's */
	for (struct fragi_peer *peer = transport->peers; peer != NULL; peer = peer->next) {
		if (ucx_peer_state(peer) != UCX_PEER_READY)
			continue;
		for (struct ucx_link *link = peer->links; link != NULL; link = link->next)
			if (!link->is_tx)
				ucx_rx_return_credit(ucx_rx_of(link), false);
	}
}

/*
 * This process was stopped, or did not come to progress for long: then it is not the peers who were
 * silent.
 */
static void forgive(struct fragi_transport *transport, int64_t now_ns)
{
	for (struct fragi_peer *peer = transport->peers; peer != NULL; peer = peer->next) {
		peer->heard_ns = now_ns;
		if (peer->connect_until_ns != 0)
			peer->connect_until_ns = now_ns + UCX_CONNECT_NS;
	}
}

/*
 * The bytes of a rendezvous came, and nothing that says from whom. A large message holds back the
 * beats behind it for as long as it takes, so it counts as hearing of everybody who is sending one.
 */
static void hear_of_senders(struct fragi_transport *transport)
{
	for (struct fragi_peer *peer = transport->peers; peer != NULL; peer = peer->next)
		for (struct ucx_link *link = peer->links; link != NULL; link = link->next)
			if (!link->is_tx && ucx_rx_of(link)->receiving > 0)
				peer->heard_ns = transport->now_ns;
}

static uint32_t ucx_progress(struct fragi_transport *transport, int64_t now_ns)
{
	uint32_t happened;

	if (now_ns - transport->now_ns > transport->config.dead_ns / 2)
		forgive(transport, now_ns);
	transport->now_ns = now_ns;
	if (__builtin_expect(now_ns - transport->moment.ns > UCX_MOMENT_NS, 0))
		transport->moment = fragi_moment_now();
	happened = ucp_worker_progress(transport->worker);
	if (transport->receiving > 0 && happened > 0 && transport->happened == 0)
		hear_of_senders(transport);
	if (__builtin_expect(transport->peer_failed || transport->closing_peers, 0))
		ucx_peers_settle(transport);
	if (happened == 0 &&
	    atomic_load_explicit(&transport->credits_waiting, memory_order_relaxed))
		return_credits(transport);
	if (__builtin_expect(now_ns >= transport->tick_ns, 0))
		transport->tick_ns = ucx_peers_tick(transport, now_ns);
	if (__builtin_expect(transport->flush_wanted, 0))
		flush(transport);
	happened += transport->happened;
	transport->happened = 0;
	return happened;
}

static int ucx_arm(struct fragi_transport *transport)
{
	ucs_status_t status;

	if (transport->peer_failed ||
	    atomic_load_explicit(&transport->credits_waiting, memory_order_relaxed))
		return -EBUSY;
	status = ucp_worker_arm(transport->worker);
	if (status == UCS_OK)
		return 0;
	if (status != UCS_ERR_BUSY && transport->config.fault != NULL)
		transport->config.fault(transport->config.arg, -EIO,
					"UCX cannot wait for events any more");
	return -EBUSY;
}

static int ucx_fd(const struct fragi_transport *transport)
{
	return transport->fd;
}

static int64_t ucx_deadline_ns(const struct fragi_transport *transport)
{
	return transport->tick_ns;
}

static void ucx_wake(struct fragi_transport *transport)
{
	ucp_worker_signal(transport->worker);
}

/*
 * One bounded step of the shutdown: rounds until done says so. Returns false when the time is over.
 */
static bool run_until(struct fragi_transport *transport, int64_t until_ns,
		      bool (*done)(struct fragi_transport *transport))
{
	struct pollfd p = {.fd = transport->fd, .events = POLLIN};
	int64_t now;

	while (!done(transport)) {
		now = fragi_now_ns();
		if (now >= until_ns)
			return false;
		if (ucx_progress(transport, now) == 0 && ucx_arm(transport) == 0)
			poll(&p, 1, 1);
	}
	return true;
}

/* All that was sent has arrived, and who is still there has heard that this host goes. */
static bool has_said_goodbye(struct fragi_transport *transport)
{
	bool all = true;

	for (struct fragi_peer *peer = transport->peers; peer != NULL; peer = peer->next) {
		if (ucx_peer_state(peer) != UCX_PEER_READY || peer->leave_heard)
			continue;
		all = false;
		if (peer->leave_sent)
			continue;
		if (ucx_peer_is_flushed(peer))
			ucx_peer_ask_sync(peer, WIRE_LEAVE);
		else
			transport->flush_wanted = true;
	}
	return all;
}

static bool is_closed(struct fragi_transport *transport)
{
	return !transport->closing_peers;
}

/* The schedulers behind the edges may be gone already. */
static void silence(struct fragi_transport *transport)
{
	for (struct fragi_peer *peer = transport->peers; peer != NULL; peer = peer->next) {
		for (struct ucx_link *link = peer->links; link != NULL; link = link->next) {
			if (link->is_tx)
				ucx_tx_of(link)->tx.room.fn = NULL;
			else
				ucx_rx_of(link)->rx.arrival.fn = NULL;
		}
	}
	transport->config.peer_ready = NULL;
	transport->config.peer_lost = NULL;
	transport->config.fault = NULL;
}

static void ucx_destroy(struct fragi_transport *transport)
{
	struct fragi_pump *pump;
	struct fragi_peer *peer, *next;

	if (transport == NULL)
		return;
	pump = transport->config.pump;
	fragi_pump_lock(pump);
	silence(transport);
	run_until(transport, fragi_now_ns() + UCX_GOODBYE_NS, has_said_goodbye);
	/* Who has not said goodbye may still be sending, and is closed with the worker. */
	for (peer = transport->peers; peer != NULL; peer = peer->next) {
		if (peer->leave_heard || ucx_peer_state(peer) == UCX_PEER_LEFT)
			ucx_peer_close(peer);
		atomic_store(&peer->state, UCX_PEER_LOST);
	}
	run_until(transport, fragi_now_ns() + UCX_CLOSE_NS, is_closed);
	for (peer = transport->peers; peer != NULL; peer = peer->next)
		ucx_peer_end(peer);
	/*
	 * With requests left, as within a rendezvous, UCX aborts when the worker takes the endpoint
	 * along.
	 */
	for (peer = transport->peers; peer != NULL; peer = peer->next)
		ucx_peer_close(peer);
	ucp_worker_destroy(transport->worker);
	transport->worker = NULL;
	for (peer = transport->peers; peer != NULL; peer = next) {
		next = peer->next;
		ucx_peer_free(peer);
	}
	release(transport);
	fragi_pump_unlock(pump);
}

__attribute__((visibility("default"))) extern const struct fragi_transport_ops fragi_transport_v1;
const struct fragi_transport_ops fragi_transport_v1 = {
	.struct_size = sizeof(struct fragi_transport_ops),
	.name = "ucx",
	.create = ucx_create,
	.destroy = ucx_destroy,
	.address = ucx_address,
	.describe = ucx_describe,
	.peer_add = ucx_peer_add,
	.tx_create = ucx_tx_create,
	.rx_create = ucx_rx_create,
	.is_flushed = ucx_is_flushed,
	.progress = ucx_progress,
	.arm = ucx_arm,
	.fd = ucx_fd,
	.deadline_ns = ucx_deadline_ns,
	.wake = ucx_wake,
};
