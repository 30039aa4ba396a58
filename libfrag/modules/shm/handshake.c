// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "module.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <base/handover.h>
#include <base/secret.h>

#define LOG_TOPIC "edge"
#include <base/log.h>

/*
 * Every host listens on an abstract socket and connects to that of each peer. The host that
 * connects sends one packet: its name, the peer's secret, and the descriptors of its heap, of its
 * channel for this peer, and of its bell; its areas of device memory follow, each in a packet. So
 * each pair has two sockets, one for each direction, and a connection is complete when both are
 * there. On both sides a host accepts processes of its own user only.
 */
#define FDS 3 /* heap, channel, bell */
#define GUESTS_MAX 256
#define HELLO_MAGIC 0x48534646u /* "FFSH" */

/* Both ends are of one machine. */
struct hello {
	uint32_t magic, layout;
	uint8_t secret[SHM_SECRET_BYTES]; /* of the host that is connected to */
	uint8_t name[SHM_NAME_BYTES];     /* of the one that connects */
	uint64_t heap_bytes;
	uint32_t areas, zero; /* how many packets follow */
};

/* A host that has connected, before it is an endpoint's peer. */
struct shm_guest {
	struct shm_guest *next;
	int fd;
	bool introduced;
	struct hello hello;
	int fds[FDS];
	struct shm_shown *areas; /* of hello.areas, those that have come */
	uint32_t area_count;
};

static void close_if_open(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void socket_name(const uint8_t name[SHM_NAME_BYTES], char out[FRAGI_HANDOVER_NAME_MAX + 1])
{
	size_t used = (size_t)snprintf(out, FRAGI_HANDOVER_NAME_MAX + 1, "frag-shm-");

	for (size_t i = 0; i < SHM_NAME_BYTES; i++)
		used += (size_t)snprintf(out + used, FRAGI_HANDOVER_NAME_MAX + 1 - used, "%02x",
					 name[i]);
}

static int watch(const struct shm_transport *transport, int fd)
{
	uint32_t events = fd == transport->bell->fd ? EPOLLIN | EPOLLET : EPOLLIN | EPOLLRDHUP;
	struct epoll_event event = {.events = events, .data.fd = fd};

	return epoll_ctl(transport->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int shm_handshake_open(struct shm_transport *transport, struct frag_err *err)
{
	char name[FRAGI_HANDOVER_NAME_MAX + 1];
	int r;

	socket_name(transport->name, name);
	r = fragi_handover_listen(name, &transport->listener);
	if (r == 0)
		r = watch(transport, transport->listener);
	if (r == 0)
		r = watch(transport, transport->bell->fd);
	return r < 0 ? frag_err_set(err, r, "cannot listen for other hosts of this machine (%s)",
				    frag_strerror(r))
		     : 0;
}

static void guest_remove(struct shm_transport *transport, struct shm_guest **at)
{
	struct shm_guest *guest = *at;

	*at = guest->next;
	transport->guest_count--;
	close_if_open(&guest->fd);
	for (int i = 0; i < FDS; i++)
		close_if_open(&guest->fds[i]);
	shm_shown_close(guest->areas, guest->area_count);
	fragi_free(guest->areas);
	fragi_free(guest);
}

void shm_handshake_close(struct shm_transport *transport)
{
	while (transport->guests != NULL)
		guest_remove(transport, &transport->guests);
	close_if_open(&transport->listener);
}

/* Out. */

static int introduce(const struct shm_transport *transport, struct shm_endpoint *endpoint)
{
	const int fds[FDS] = {shm_heap_fd(transport->heap), endpoint->out.fd, transport->bell->fd};
	struct shm_shown areas[SHM_AREAS_MAX];
	struct hello hello = {.magic = HELLO_MAGIC,
			      .layout = SHM_LAYOUT,
			      .heap_bytes = shm_heap_size(transport->heap),
			      .areas = shm_areas_show(shm_heap_areas(transport->heap), areas)};
	int r;

	memcpy(hello.secret, endpoint->secret, sizeof(hello.secret));
	memcpy(hello.name, transport->name, sizeof(hello.name));
	r = fragi_handover_send(endpoint->out_fd, &hello, sizeof(hello), fds, FDS);
	for (uint32_t i = 0; i < hello.areas && r == 0; i++) {
		r = fragi_handover_send(endpoint->out_fd, &areas[i].what, sizeof(areas[i].what),
					&areas[i].fd, 1);
		SHM_STEP(AREA_SHOWN);
	}
	shm_shown_close(areas, hello.areas);
	return r;
}

/* Connects if the peer's socket takes it now. */
static void connect_out(struct shm_transport *transport, struct shm_endpoint *endpoint)
{
	char name[FRAGI_HANDOVER_NAME_MAX + 1];
	int r;

	socket_name(endpoint->name, name);
	r = fragi_handover_connect(name, &endpoint->out_fd);
	if (r == -EAGAIN) /* many connect to it at this moment */
		return;
	SHM_STEP(CONNECTED);
	if (r == 0)
		r = watch(transport, endpoint->out_fd);
	if (r == 0)
		r = introduce(transport, endpoint);
	SHM_STEP(INTRODUCED);
	if (r < 0)
		shm_failed(endpoint, frag_strerror(r));
	else
		endpoint->state = SHM_OPEN;
}

/* In. */

/*
 * Whether the descriptor is an eventfd that does not block: any other could block the host that
 * rings it, or kill that host by a signal.
 */
static bool is_bell(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat status;

	return flags >= 0 && (flags & O_NONBLOCK) != 0 && fstat(fd, &status) == 0 &&
	       (status.st_mode & S_IFMT) == 0; /* no pipe, socket or file */
}

/*
 * Whether the memory can be read whatever its owner does. If it could shrink, a read beyond its end
 * would kill this process; so would a huge page that the kernel cannot provide.
 */
static bool is_lasting(int fd, uint64_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs status;

	return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && size <= SHM_PLACE_MAX &&
	       lseek(fd, 0, SEEK_END) == (off_t)size && fstatfs(fd, &status) == 0 &&
	       status.f_type == TMPFS_MAGIC;
}

static int view_create(struct shm_transport *transport, int fd, uint64_t size,
		       struct shm_view **out_view)
{
	struct shm_view *view;
	void *base;

	if (!is_lasting(fd, size))
		return -EBADMSG;
	view = fragi_calloc(1, sizeof(*view));
	if (view == NULL)
		return -ENOMEM;
	base = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED) {
		fragi_free(view);
		return -errno;
	}
	(void)madvise(base, size, MADV_DONTDUMP);
	atomic_init(&view->refs, 1);
	view->base = base;
	view->size = size;
	view->bell = shm_bell_ref(transport->bell);
	*out_view = view;
	return 0;
}

void shm_view_unref(struct shm_view *view)
{
	if (view == NULL || atomic_fetch_sub_explicit(&view->refs, 1, memory_order_acq_rel) != 1)
		return;
	munmap((void *)(uintptr_t)view->base, view->size);
	shm_areas_unmap(view);
	shm_bell_unref(view->bell);
	fragi_free(view);
}

/* The guest is this endpoint's peer. Takes the guest. */
static void admit(struct shm_transport *transport, struct shm_endpoint *endpoint,
		  struct shm_guest **at)
{
	struct shm_guest *guest = *at;
	int r = is_bell(guest->fds[2]) ? 0 : -EBADMSG;
	uint64_t areas = 0;

	if (r == 0)
		r = shm_ring_map(&endpoint->in, guest->fds[1]);
	SHM_STEP(RING_MAPPED);
	if (r == 0)
		r = view_create(transport, guest->fds[0], guest->hello.heap_bytes, &endpoint->view);
	SHM_STEP(HEAP_MAPPED);
	if (r == 0)
		r = shm_areas_map(endpoint->view, guest->areas, guest->area_count, &areas);
	if (r == 0) {
		shm_ring_tell_areas(&endpoint->out, areas);
		endpoint->in_fd = guest->fd;
		endpoint->peer_bell = guest->fds[2];
		guest->fd = guest->fds[2] = -1;
		/* The peer may not have seen what was sent before its bell was here. */
		shm_bell_ring(endpoint->peer_bell);
	} else {
		shm_failed(endpoint,
			   r == -EBADMSG ? "it offers memory that is no host's" : frag_strerror(r));
	}
	guest_remove(transport, at);
}

void shm_handshake_match(struct shm_transport *transport, struct shm_endpoint *endpoint)
{
	for (struct shm_guest **at = &transport->guests; *at != NULL; at = &(*at)->next)
		if ((*at)->introduced && (*at)->area_count == (*at)->hello.areas &&
		    memcmp((*at)->hello.name, endpoint->name, sizeof(endpoint->name)) == 0) {
			admit(transport, endpoint, at);
			break;
		}
	if (endpoint->state == SHM_CONNECTING && !endpoint->failed)
		connect_out(transport, endpoint);
}

/* There are too many guests: the oldest one without an introduction goes, or the oldest of all. */
static void dismiss_one(struct shm_transport *transport)
{
	struct shm_guest **oldest = NULL, **silent = NULL;

	for (struct shm_guest **at = &transport->guests; *at != NULL; at = &(*at)->next) {
		oldest = at;
		if (!(*at)->introduced)
			silent = at;
	}
	guest_remove(transport, silent != NULL ? silent : oldest);
}

/*
 * A connection that cannot be accepted for want of descriptors would keep the host awake until
 * there are some. So the listener is not waited for meanwhile; the connection is accepted at a
 * later poll, when the host is awake for something else.
 */
static void set_deaf(struct shm_transport *transport, bool deaf)
{
	if (transport->deaf == deaf)
		return;
	if (deaf)
		(void)epoll_ctl(transport->epoll, EPOLL_CTL_DEL, transport->listener, NULL);
	else if (watch(transport, transport->listener) < 0)
		return;
	transport->deaf = deaf;
}

/* Takes the connection. Returns 0 or negative errno. */
static int guest_create(struct shm_transport *transport, int fd)
{
	struct shm_guest *guest = fragi_calloc(1, sizeof(*guest));
	int r = guest == NULL ? -ENOMEM : watch(transport, fd);

	if (r < 0) {
		fragi_free(guest);
		close(fd);
		return r;
	}
	*guest = (struct shm_guest){.next = transport->guests, .fd = fd};
	for (int i = 0; i < FDS; i++)
		guest->fds[i] = -1;
	transport->guests = guest;
	SHM_STEP(GUEST_ACCEPTED);
	if (++transport->guest_count > GUESTS_MAX)
		dismiss_one(transport);
	return 0;
}

static uint32_t take_guests(struct shm_transport *transport)
{
	uint32_t happened = 0;
	int fd, r;

	while ((r = fragi_handover_accept(transport->listener, &fd)) == 0 || r == -EACCES) {
		happened++;
		if (r == 0)
			r = guest_create(transport, fd);
		if (r < 0 && r != -EACCES) /* another user's */
			log_warn(NULL, "cannot take the connection of a host of this machine (%s)",
				 frag_strerror(r));
	}
	set_deaf(transport, r == -EMFILE || r == -ENFILE);
	return happened;
}

/* Returns 1 when the guest has introduced itself, 0 when it has not yet, negative: it must go. */
static int receive_hello(const struct shm_transport *transport, struct shm_guest *guest)
{
	int r = fragi_handover_receive(guest->fd, &guest->hello, sizeof(guest->hello), guest->fds,
				       FDS);

	if (r == -EAGAIN || r == -EINTR)
		return 0;
	if (r == -EMFILE)
		log_warn(NULL, "no descriptor is left for the memory of a host of this machine");
	if (r < 0 || guest->hello.magic != HELLO_MAGIC || guest->hello.layout != SHM_LAYOUT ||
	    guest->hello.areas > SHM_AREAS_MAX ||
	    !fragi_secret_equal(guest->hello.secret, transport->secret, SHM_SECRET_BYTES))
		return -EACCES;
	guest->introduced = true;
	SHM_STEP(GUEST_HEARD);
	return 1;
}

/*
 * Returns 1 when all areas of the guest have come, 0 when some are missing, negative: it must go.
 */
static int receive_areas(struct shm_guest *guest)
{
	struct shm_shown *next;
	int r;

	if (guest->areas == NULL && guest->hello.areas > 0)
		guest->areas = fragi_calloc(guest->hello.areas, sizeof(*guest->areas));
	if (guest->areas == NULL && guest->hello.areas > 0)
		return -ENOMEM;
	while (guest->area_count < guest->hello.areas) {
		next = &guest->areas[guest->area_count];
		r = fragi_handover_receive(guest->fd, &next->what, sizeof(next->what), &next->fd,
					   1);
		if (r == -EAGAIN || r == -EINTR)
			return 0;
		if (r < 0)
			return r;
		SHM_STEP(AREA_HEARD);
		if (shm_shown_check(guest->areas, guest->area_count++) < 0)
			return -EBADMSG;
	}
	return 1;
}

static struct shm_endpoint *expected(const struct shm_transport *transport,
				     const struct shm_guest *guest)
{
	for (struct shm_endpoint *e = transport->endpoints; e != NULL; e = e->next)
		if (e->state != SHM_CLOSED && e->view == NULL && !e->failed &&
		    memcmp(e->name, guest->hello.name, sizeof(e->name)) == 0)
			return e;
	return NULL;
}

/* Hosts send nothing after the introduction. Returns 0; -EPIPE: it has gone; -EBADMSG: it sent. */
static int listen_on(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

	if (n > 0)
		return -EBADMSG;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EPIPE;
}

static uint32_t receive_from_guests(struct shm_transport *transport)
{
	struct shm_guest **at = &transport->guests;
	struct shm_endpoint *endpoint;
	uint32_t happened = 0;

	while (*at != NULL) {
		struct shm_guest *guest = *at;
		int r = guest->introduced ? 1 : receive_hello(transport, guest);

		if (r == 1)
			r = receive_areas(guest);
		if (r == 1 && listen_on(guest->fd) < 0)
			r = -EPIPE;
		if (r < 0) {
			happened++;
			guest_remove(transport, at);
			continue;
		}
		endpoint = r == 1 ? expected(transport, guest) : NULL;
		if (endpoint != NULL) {
			happened++;
			admit(transport, endpoint, at);
			continue;
		}
		at = &guest->next;
	}
	return happened;
}

/*
 * Whether a socket has to be looked at. One epoll_wait instead of a call for each socket; it also
 * takes the ring of the bell that ended a sleep.
 */
static bool is_due(const struct shm_transport *transport)
{
	struct epoll_event events[2];
	int n = epoll_wait(transport->epoll, events, FRAG_COUNT_OF(events), 0);

	for (int i = 0; i < n; i++)
		if (events[i].data.fd != transport->bell->fd)
			return true;
	if (transport->deaf) /* the listener is not in the epoll */
		return true;
	for (const struct shm_endpoint *e = transport->endpoints; e != NULL; e = e->next)
		if (e->state == SHM_CONNECTING)
			return true;
	return n < 0;
}

uint32_t shm_handshake_poll(struct shm_transport *transport)
{
	uint32_t happened;
	int r;

	if (!is_due(transport))
		return 0;
	happened = take_guests(transport) + receive_from_guests(transport);
	for (struct shm_endpoint *e = transport->endpoints; e != NULL; e = e->next) {
		if (e->state == SHM_CLOSED || e->failed)
			continue;
		if (e->state == SHM_CONNECTING)
			connect_out(transport, e);
		if (e->state != SHM_OPEN)
			continue;
		r = listen_on(e->out_fd);
		if (r == 0 && e->in_fd >= 0)
			r = listen_on(e->in_fd);
		if (r == 0)
			continue;
		happened += shm_exchange_rest(e); /* reads what the peer had written before */
		shm_failed(e, r == -EPIPE ? "Connection reset by remote peer"
					  : "it sent what no host sends");
	}
	return happened;
}
