// SPDX-License-Identifier: Apache-2.0
#include "module.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void shm_failed(struct shm_endpoint *endpoint, const char *cause)
{
	const struct fragi_transport_config *config = &shm_of(endpoint->base.transport)->config;

	if (endpoint->failed)
		return;
	endpoint->failed = true;
	if (endpoint->base.owner != NULL)
		config->events->failed(endpoint->base.owner, cause);
}

int shm_connect(struct fragi_transport *base, uint32_t host, const void *address, size_t size,
		void *owner, struct fragi_endpoint **out_endpoint, struct frag_err *err)
{
	struct shm_transport *transport = shm_of(base);
	struct shm_endpoint *endpoint = fragi_calloc(1, sizeof(*endpoint));
	int r;

	if (endpoint == NULL)
		return frag_err_set(err, -ENOMEM, "there is no memory left for the peer host %u",
				    host);
	endpoint->base.transport = base;
	endpoint->base.owner = owner;
	snprintf(endpoint->base.version, sizeof(endpoint->base.version), "%s", base->version);
	endpoint->out_fd = endpoint->in_fd = endpoint->peer_bell = -1;
	endpoint->waiting_end = &endpoint->waiting;
	r = shm_address_check(transport, address, size, endpoint, err);
	if (r == 0) {
		r = shm_ring_create(&endpoint->out);
		if (r < 0)
			frag_err_set(err, r, "cannot share memory with host %u (%s)", host,
				     frag_strerror(r));
	}
	if (r < 0) {
		fragi_free(endpoint);
		return r;
	}
	SHM_STEP(CHANNEL_MADE);
	endpoint->next = transport->endpoints;
	transport->endpoints = endpoint;
	*out_endpoint = &endpoint->base;
	shm_handshake_match(transport, endpoint);
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void shm_cut(struct shm_endpoint *endpoint)
{
	if (endpoint->state == SHM_CLOSED)
		return;
	endpoint->state = SHM_CLOSED;
	endpoint->failed = true;
	close_fd(&endpoint->out_fd);
	close_fd(&endpoint->in_fd);
	close_fd(&endpoint->peer_bell);
	SHM_STEP(CUT);
	shm_ring_unmap(&endpoint->in);
	if (endpoint->view != NULL) {
		atomic_store(&endpoint->view->closed, true);
		shm_taken_free(atomic_exchange(&endpoint->view->returned, NULL));
		shm_taken_free(endpoint->unsent);
		endpoint->unsent = NULL;
		shm_view_unref(endpoint->view);
		endpoint->view = NULL;
	}
	SHM_STEP(UNMAPPED);
}

void shm_close(struct fragi_endpoint *base, bool silent)
{
	struct shm_endpoint *endpoint = shm_endpoint_of(base);

	if (silent)
		shm_cut(endpoint);
	else if (!endpoint->failed)
		(void)shm_exchange(endpoint); /* what answers a goodbye */
}

bool shm_stop(struct fragi_endpoint *base, int64_t now_ns)
{
	struct shm_endpoint *endpoint = shm_endpoint_of(base);

	(void)now_ns;
	if (endpoint->state == SHM_CLOSED)
		shm_sends_end(endpoint);
	return true;
}

void shm_endpoint_destroy(struct shm_endpoint *endpoint)
{
	struct shm_endpoint **at = &shm_of(endpoint->base.transport)->endpoints;
	struct shm_taken *next;

	while (*at != endpoint)
		at = &(*at)->next;
	*at = endpoint->next;
	shm_cut(endpoint);
	for (struct shm_taken *taken = endpoint->spare; taken != NULL; taken = next) {
		next = taken->next;
		fragi_free(taken);
	}
	shm_ring_destroy(&endpoint->out);
	fragi_free(endpoint->slots);
	fragi_free(endpoint);
}

/* What the peer may still read stays until it has given it back, or the transport goes. */
void shm_free(struct fragi_endpoint *base)
{
	struct shm_endpoint *endpoint = shm_endpoint_of(base);

	base->owner = NULL;
	if (endpoint->state == SHM_CLOSED && endpoint->slots_in_use == 0 &&
	    endpoint->waiting == NULL)
		shm_endpoint_destroy(endpoint);
}
