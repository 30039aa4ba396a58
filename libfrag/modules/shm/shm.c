// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "module.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#define LOOK_NS 1000000 /* between two looks at the sockets of a host that does not sleep */

__attribute__((visibility("default"))) extern const struct fragi_transport_ops fragi_transport_v1;

static void shm_destroy(struct fragi_transport *base)
{
	struct shm_transport *transport = shm_of(base);

	for (struct shm_endpoint *e = transport->endpoints, *next; e != NULL; e = next) {
		next = e->next;
		shm_cut(e);
		shm_sends_end(e);
		shm_endpoint_destroy(e);
	}
	shm_handshake_close(transport);
	if (transport->epoll >= 0)
		close(transport->epoll);
	shm_bell_unref(transport->bell);
	shm_heap_unref(transport->heap);
	fragi_free(transport->address);
	explicit_bzero(transport->secret, sizeof(transport->secret));
	fragi_free(transport);
	SHM_STEP(GONE);
}

static int open_all(struct shm_transport *transport, struct frag_err *err)
{
	int r;

	if (getrandom(transport->name, sizeof(transport->name), 0) !=
		    (ssize_t)sizeof(transport->name) ||
	    getrandom(transport->secret, sizeof(transport->secret), 0) !=
		    (ssize_t)sizeof(transport->secret))
		return frag_err_set(err, -EIO, "the kernel has no random numbers");
	r = shm_bell_create(&transport->bell);
	transport->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r == 0 && transport->epoll < 0)
		r = -errno;
	if (r < 0)
		return frag_err_set(err, r, "cannot wait for other hosts (%s)", frag_strerror(r));
	r = shm_heap_create(&transport->heap, err);
	SHM_STEP(HEAP_MADE);
	if (r == 0)
		r = shm_handshake_open(transport, err);
	SHM_STEP(LISTENING);
	return r == 0 ? shm_address_make(transport, err) : r;
}

static int shm_create(const struct fragi_transport_config *config,
		      struct fragi_transport **out_transport, struct frag_err *err)
{
	struct shm_transport *transport;
	int r;

	if (config->struct_size != sizeof(*config) || config->events == NULL)
		return frag_err_set(err, -EINVAL,
				    "the shm module and libfrag are of two builds; reinstall frag");
	transport = fragi_calloc(1, sizeof(*transport));
	if (transport == NULL)
		return frag_err_set(err, -ENOMEM, "there is no memory left for the transport");
	transport->config = *config;
	transport->epoll = transport->listener = -1;
	transport->base = (struct fragi_transport){
		.ops = &fragi_transport_v1,
		.version = "1",
		.header_max = FRAGI_HEADER_MAX,
		.names_sender = true,
		.lends = true,
		.send_room = sizeof(struct shm_send),
		.receive_room = 0,
		.devices = 1u << FRAG_DEVICE_CPU | 1u << FRAG_DEVICE_CUDA_HOST |
			   1u << FRAG_DEVICE_CUDA, /* that of areas */
	};
	r = open_all(transport, err);
	if (r < 0) {
		shm_destroy(&transport->base);
		return r;
	}
	*out_transport = &transport->base;
	return 0;
}

static const void *shm_address(const struct fragi_transport *base, size_t *out_size)
{
	*out_size = shm_of(base)->address_size;
	return shm_of(base)->address;
}

static struct frag_resource *shm_memory(struct fragi_transport *base, struct frag_device device)
{
	return device.type == FRAG_DEVICE_CPU || device.type == FRAG_DEVICE_CUDA
		       ? shm_heap_resource(shm_of(base)->heap)
		       : NULL;
}

static int shm_area(const struct fragi_transport *base, const struct fragi_body *body)
{
	return shm_area_find(shm_heap_areas(shm_of(base)->heap), body->data, body->bytes);
}

static uint64_t shm_areas(const struct fragi_endpoint *base)
{
	return shm_ring_areas(&shm_endpoint_of((struct fragi_endpoint *)(uintptr_t)base)->in);
}

/* Bodies are always mapped or in the ring: there are no handles. */
static int shm_receive(struct fragi_transport *base, void *handle, const struct fragi_body *bodies,
		       uint32_t count, struct fragi_receive *receive)
{
	(void)base;
	(void)handle;
	(void)bodies;
	(void)count;
	(void)receive;
	return -ENOMEM;
}

static void shm_discard(struct fragi_transport *base, void *handle)
{
	(void)base;
	(void)handle;
}

/*
 * Returns whether it was armed: a thread that makes progress beside one that sleeps has then taken
 * its wake-up, and arms again for it.
 */
static bool awake(struct shm_transport *transport)
{
	if (!transport->armed)
		return false;
	transport->armed = false;
	atomic_store(&transport->bell->wanted, false);
	for (struct shm_endpoint *e = transport->endpoints; e != NULL; e = e->next) {
		shm_ring_sleep(&e->out, false);
		shm_ring_want_room(&e->out, false);
	}
	transport->look_ns = 0;
	return true;
}

static uint32_t shm_progress(struct fragi_transport *base, int64_t now_ns)
{
	struct shm_transport *transport = shm_of(base);
	uint32_t happened = awake(transport);

	for (struct shm_endpoint *e = transport->endpoints; e != NULL; e = e->next)
		happened += shm_exchange(e);
	if (now_ns >= transport->look_ns) {
		transport->look_ns = now_ns + LOOK_NS;
		happened += shm_handshake_poll(transport);
	}
	return happened;
}

static int shm_arm(struct fragi_transport *base)
{
	struct shm_transport *transport = shm_of(base);
	bool has_work = false;

	transport->armed = true;
	atomic_store(&transport->bell->wanted, true);
	for (struct shm_endpoint *e = transport->endpoints; e != NULL; e = e->next) {
		shm_ring_want_room(&e->out, e->waiting != NULL || e->unsent != NULL);
		shm_ring_sleep(&e->out, true);
	}
	atomic_thread_fence(memory_order_seq_cst); /* against wake_peer's and release's */
	for (struct shm_endpoint *e = transport->endpoints; e != NULL && !has_work; e = e->next)
		has_work = shm_has_work(e);
	SHM_STEP(ASLEEP);
	if (!has_work)
		return 0;
	(void)awake(transport);
	return -EBUSY;
}

static int shm_fd(const struct fragi_transport *base)
{
	return shm_of(base)->epoll;
}

static void shm_wake(struct fragi_transport *base)
{
	shm_bell_ring(shm_of(base)->bell->fd);
}

const struct fragi_transport_ops fragi_transport_v1 = {
	.struct_size = sizeof(struct fragi_transport_ops),
	.name = "shm",
	.title = "shared memory",
	.create = shm_create,
	.destroy = shm_destroy,
	.address = shm_address,
	.memory = shm_memory,
	.area = shm_area,
	.areas = shm_areas,
	.connect = shm_connect,
	.close = shm_close,
	.stop = shm_stop,
	.free = shm_free,
	.send = shm_send,
	.receive = shm_receive,
	.discard = shm_discard,
	.progress = shm_progress,
	.arm = shm_arm,
	.fd = shm_fd,
	.wake = shm_wake,
};
