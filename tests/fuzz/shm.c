// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/bytes.h>
#include <base/handover.h>
#include <modules/shm/module.h>

/*
 * Three hosts that share memory, in one process: a liar, its victim, and an honest peer of the
 * victim. Each byte says what happens next (enum step), the bytes behind it how. The liar has the
 * module's own transport, whose memory is changed under it: whatever a peer can write.
 *
 * There is a GPU, whose memory is that of the host: each host has an area of it.
 *
 * Each send ends once; an endpoint fails once; the victim shows bodies only where memory is mapped,
 * and loses no descriptor; and between the victim and the honest peer everything arrives.
 */
enum step {
	STEP_PROGRESS, /* one round of some hosts, or they are armed */
	STEP_SEND,     /* some messages over one of the links */
	STEP_RELEASE,  /* bodies that a host has kept */
	STEP_RECORD,   /* the liar writes a record of its own */
	STEP_HEAD,     /* it changes a counter */
	STEP_RING,     /* it changes bytes of its ring */
	STEP_BODY,     /* it changes a body that it has sent */
	STEP_KNOCK,    /* somebody connects to the victim's socket and introduces itself */
	STEP_SOCKET,   /* bytes on a socket of the liar, or its end */
	STEP_END,      /* one of the three steps of the end of a link */
	STEP_SHORT,    /* an allocation fails */
	STEPS
};

extern const struct fragi_transport_ops fuzz_shm_transport;

#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})

enum { LIAR, VICTIM, HONEST, HOSTS };
enum { LIAR_TO_VICTIM, VICTIM_TO_LIAR, VICTIM_TO_HONEST, HONEST_TO_VICTIM, VICTIM_TO_GHOST, LINKS };

#define BODIES_MAX 3
#define PENDING_MAX 400
#define KEPT_MAX 64
#define KNOCKS_MAX 8
#define AREA_BYTES (64u << 10)
#define AREA_FILL 0x5a            /* every byte of an area */
#define HEAP_BYTES (64u << 20)    /* of each host: small ones are made and gone sooner */
#define LIVE_BYTES_MAX (8u << 20) /* of bodies, so that the heaps suffice */
#define HEAD_BYTES 65536u         /* of a channel, before its ring */
#define MARK 24u /* bytes at the start of a header: link, number, seed, bytes of the bodies */

struct link {
	uint8_t host; /* whose end it is */
	struct fragi_endpoint *endpoint;
	uint64_t sent, arrived;
	bool failed, closed, freed;
};

struct pending {
	uint8_t link;
	bool ended, abandoned;
	struct fragi_body bodies[BODIES_MAX];
	uint32_t count;
	struct frag_resource *memory; /* of the bodies; NULL: of the C library */
	struct fragi_send *send;
};

struct kept {
	struct fragi_body body;
	uint8_t host, seed;
};

static struct world {
	struct fragi_transport *hosts[HOSTS];
	void *areas[HOSTS];
	struct link links[LINKS];
	struct pending pending[PENDING_MAX];
	uint32_t pending_count;
	uint64_t live_bytes;
	struct kept kept[KEPT_MAX];
	uint32_t kept_count;
	int knocks[KNOCKS_MAX], ghost, plain, descriptors;
	uint8_t ghost_name[SHM_NAME_BYTES];
	int64_t now_ns;
	bool is_short; /* an allocation may have failed */
} world;

static struct shm_endpoint *end_of(int link)
{
	return world.links[link].freed ? NULL : shm_endpoint_of(world.links[link].endpoint);
}

/* Bodies have a pattern by which the honest peers know them. */
static uint8_t pattern(uint8_t seed, uint64_t at)
{
	return (uint8_t)(seed + at * 7);
}

static bool holds(const struct fragi_body *body, uint8_t seed)
{
	const uint8_t *data = body->data;

	if (body->device.type == FRAG_DEVICE_CUDA)
		return data[0] == AREA_FILL && data[body->bytes - 1] == AREA_FILL;

	for (uint64_t i = 0; i < body->bytes; i += 509)
		if (data[i] != pattern(seed, i))
			return false;
	return data[body->bytes - 1] == pattern(seed, body->bytes - 1);
}

/* The GPU. */

static const uint8_t gpu_name[FRAGI_GPU_NAME_BYTES] = "the GPU";
static struct {
	void *memory;
	int fd;
} gpu_memory[8];

static int gpu_alloc(struct frag_device device, size_t size, void **out_memory, size_t *out_bytes,
		     struct frag_err *err)
{
	int fd = memfd_create("gpu", MFD_CLOEXEC), i = 0;

	(void)device, (void)err;
	while (gpu_memory[i].memory != NULL)
		i++;
	fuzz_check(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	*out_memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fuzz_check(*out_memory != MAP_FAILED);
	*out_bytes = size;
	gpu_memory[i].memory = *out_memory;
	gpu_memory[i].fd = fd;
	return 0;
}

static void gpu_free(struct frag_device device, void *memory, size_t bytes)
{
	int i = 0;

	while (gpu_memory[i].memory != memory)
		i++;
	munmap(memory, bytes);
	close(gpu_memory[i].fd);
	gpu_memory[i].memory = NULL;
}

static int gpu_show(struct frag_device device, void *memory, int *out_fd,
		    uint8_t out_gpu[FRAGI_GPU_NAME_BYTES], struct frag_err *err)
{
	int i = 0;

	(void)device, (void)err;
	while (gpu_memory[i].memory != memory)
		i++;
	memcpy(out_gpu, gpu_name, sizeof(gpu_name));
	*out_fd = fcntl(gpu_memory[i].fd, F_DUPFD_CLOEXEC, 0);
	return *out_fd >= 0 ? 0 : -EMFILE;
}

/* As the driver does, it looks at what it is given. */
static int gpu_map(int fd, const uint8_t gpu[FRAGI_GPU_NAME_BYTES], size_t bytes,
		   struct frag_device *out_device, void **out_memory, struct frag_err *err)
{
	struct stat status;

	if (memcmp(gpu, gpu_name, sizeof(gpu_name)) != 0)
		return -ENODEV;
	if (fstat(fd, &status) < 0 || (uint64_t)status.st_size != bytes)
		return frag_err_set(err, -EIO, "it is no memory of a GPU");
	*out_memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	*out_device = (struct frag_device){FRAG_DEVICE_CUDA, 0};
	return *out_memory != MAP_FAILED ? 0 : -ENOMEM;
}

static void gpu_unmap(struct frag_device device, void *memory, size_t bytes)
{
	munmap(memory, bytes);
}

static const struct fragi_shared_memory gpu_shared = {
	.alloc = gpu_alloc, .free = gpu_free, .show = gpu_show, .map = gpu_map, .unmap = gpu_unmap};
static const struct fragi_memory gpu = {.shared = &gpu_shared};

/* Upcalls. */

static void on_sent(struct fragi_send *send, bool abandoned)
{
	for (uint32_t i = 0; i < world.pending_count; i++) {
		struct pending *pending = &world.pending[i];

		if (pending->send != send)
			continue;
		fuzz_check(!pending->ended);
		pending->ended = true;
		pending->abandoned = abandoned;
		for (uint32_t k = 0; k < pending->count; k++) {
			memset(pending->bodies[k].data, 0xee, pending->bodies[k].bytes);
			world.live_bytes -= pending->bodies[k].bytes;
			frag_free(pending->memory, pending->bodies[k].data);
		}
		pending->count = 0;
		if (!abandoned) {
			free(pending->send);
			pending->send = NULL;
		}
		return;
	}
	fuzz_check(false);
}

static void on_failed(void *owner, const char *cause)
{
	struct link *link = owner;

	fuzz_check(!link->failed && cause[0] != '\0');
	link->failed = true;
}

static void on_fault(void *arg, enum fragi_failure failure, const char *sentence)
{
	(void)arg, (void)failure;
	fuzz_check(sentence[0] != '\0' && world.is_short);
}

static bool is_in_area(const struct shm_view *view, const struct fragi_body *body)
{
	uintptr_t at = (uintptr_t)body->data;

	for (uint32_t i = 0; view->areas != NULL && i < SHM_AREAS_MAX; i++) {
		uintptr_t base = (uintptr_t)view->areas[i].memory;

		if (at >= base && at - base < view->areas[i].bytes &&
		    body->bytes <= view->areas[i].bytes - (at - base))
			return true;
	}
	return false;
}

/* Whether it lies in memory that a peer of the victim has shown. */
static bool is_shown(const struct fragi_body *body)
{
	uintptr_t at = (uintptr_t)body->data;

	for (const struct shm_endpoint *e = shm_of(world.hosts[VICTIM])->endpoints; e != NULL;
	     e = e->next)
		if (e->view != NULL && body->device.type == FRAG_DEVICE_CUDA) {
			if (is_in_area(e->view, body))
				return true;
		} else if (e->view != NULL && at >= (uintptr_t)e->view->base &&
			   at - (uintptr_t)e->view->base <= e->view->size &&
			   body->bytes <= e->view->size - (at - (uintptr_t)e->view->base))
			return true;
	return false;
}

/* What came to the honest peer is what the victim sent to it. */
static void check_honest(const struct fragi_arrival *arrival)
{
	struct link *from = &world.links[VICTIM_TO_HONEST];
	const uint8_t *header = arrival->header;
	uint64_t number;

	fuzz_check(arrival->header_bytes >= MARK && header[0] == VICTIM_TO_HONEST);
	number = fragi_get64(header + 8);
	fuzz_check(number == from->arrived || (world.is_short && number > from->arrived));
	fuzz_check(number < from->sent && arrival->body_bytes == fragi_get64(header + 16));
	from->arrived = number + 1;
	for (uint32_t i = 0; i < arrival->mapped_count; i++)
		fuzz_check(holds(&arrival->mapped[i], header[1]));
}

/* Every byte that is shown can be read. */
static void read_all(const struct fragi_arrival *arrival)
{
	volatile uint8_t sum = 0;

	for (size_t i = 0; i < arrival->header_bytes; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)arrival->header)[i]);
	for (uint64_t i = 0; arrival->data != NULL && i < arrival->body_bytes; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)arrival->data)[i]);
	for (uint32_t i = 0; i < arrival->mapped_count; i++) {
		const uint8_t *data = arrival->mapped[i].data;

		fuzz_check(arrival->mapped[i].bytes > 0);
		sum = (uint8_t)(sum + data[0] + data[arrival->mapped[i].bytes - 1]);
	}
}

static enum fragi_arrival_use on_arrived(void *arg, const struct fragi_arrival *arrival)
{
	uint8_t host = (uint8_t)(uintptr_t)arg, seed = 0;

	fuzz_check(arrival->header_bytes <= FRAGI_HEADER_MAX && arrival->handle == NULL);
	if (arrival->header_bytes > 1)
		seed = ((const uint8_t *)arrival->header)[1];
	if (host == HONEST)
		check_honest(arrival);
	for (uint32_t i = 0; host == VICTIM && i < arrival->mapped_count; i++)
		fuzz_check(is_shown(&arrival->mapped[i]));
	read_all(arrival);
	if (arrival->header_bytes >= MARK && host == VICTIM &&
	    ((const uint8_t *)arrival->header)[0] == HONEST_TO_VICTIM)
		world.links[HONEST_TO_VICTIM].arrived++;
	if (arrival->mapped_count == 0 || world.kept_count + arrival->mapped_count > KEPT_MAX)
		return FRAGI_ARRIVAL_USED;
	for (uint32_t i = 0; i < arrival->mapped_count; i++)
		world.kept[world.kept_count++] = (struct kept){arrival->mapped[i], host, seed};
	return FRAGI_ARRIVAL_KEPT;
}

static void release_kept(uint32_t i)
{
	struct kept kept = world.kept[i];

	fuzz_check(kept.host != HONEST || holds(&kept.body, kept.seed));
	world.kept[i] = world.kept[--world.kept_count];
	kept.body.release(kept.body.owner);
}

/* Sends. */

static struct frag_resource *memory_of(int host)
{
	return fuzz_shm_transport.memory(world.hosts[host],
					 (struct frag_device){FRAG_DEVICE_CPU, 0});
}

/* Returns false when there is no memory. */
static bool pending_fill(struct pending *pending, const uint64_t *sizes, uint32_t count,
			 uint8_t seed)
{
	void *memory;

	for (uint32_t i = 0; i < count; i++) {
		if (frag_alloc(pending->memory, sizes[i], &memory) < 0)
			return false;
		world.live_bytes += sizes[i];
		pending->bodies[pending->count++] = (struct fragi_body){
			.data = memory, .bytes = sizes[i], .device = {FRAG_DEVICE_CPU, 0}};
		for (uint64_t at = 0; at < sizes[i]; at++)
			((uint8_t *)memory)[at] = pattern(seed, at);
	}
	return true;
}

static void send_one(uint8_t which, bool in_heap, uint32_t header_bytes, const uint64_t *sizes,
		     uint32_t count, uint8_t seed)
{
	struct link *link = &world.links[which];
	struct pending *pending;
	uint64_t bytes = 0;

	if (world.pending_count == PENDING_MAX || world.live_bytes > LIVE_BYTES_MAX ||
	    link->endpoint == NULL || link->closed)
		return;
	pending = &world.pending[world.pending_count++];
	*pending =
		(struct pending){.link = which, .memory = in_heap ? memory_of(link->host) : NULL};
	pending->send = calloc(1, sizeof(*pending->send) + world.hosts[VICTIM]->send_room);
	fuzz_check(pending->send != NULL);
	for (uint32_t i = 0; i < count; i++)
		bytes += sizes[i];
	pending->send->header[0] = which;
	pending->send->header[1] = seed;
	fragi_put64(pending->send->header + 8, link->sent);
	fragi_put64(pending->send->header + 16, bytes);
	pending->send->header_bytes = header_bytes;
	if (!pending_fill(pending, sizes, count, seed)) {
		on_sent(pending->send, false);
		return;
	}
	link->sent++;
	if (!fuzz_shm_transport.send(link->endpoint, pending->send, pending->bodies, count))
		on_sent(pending->send, false);
}

/* Out of the sender's area, if the other host has mapped it. */
static void send_from_area(uint8_t which, uint64_t offset, uint64_t bytes)
{
	struct link *link = &world.links[which];
	struct pending *pending;
	struct fragi_body body = {.bytes = bytes, .device = {FRAG_DEVICE_CUDA, 0}};

	if (world.pending_count == PENDING_MAX || link->endpoint == NULL || link->closed ||
	    (fuzz_shm_transport.areas(link->endpoint) & 1) == 0)
		return;
	body.data = (uint8_t *)world.areas[link->host] + offset;
	fuzz_check(fuzz_shm_transport.area(world.hosts[link->host], &body) == 0);
	pending = &world.pending[world.pending_count++];
	*pending = (struct pending){.link = which};
	pending->send = calloc(1, sizeof(*pending->send) + world.hosts[VICTIM]->send_room);
	fuzz_check(pending->send != NULL);
	pending->send->header[0] = which;
	fragi_put64(pending->send->header + 8, link->sent++);
	fragi_put64(pending->send->header + 16, bytes);
	pending->send->header_bytes = MARK;
	if (!fuzz_shm_transport.send(link->endpoint, pending->send, &body, 1))
		on_sent(pending->send, false);
}

static void step_send(struct fuzz_input *input)
{
	static const uint64_t sizes[] = {1, 8, 300, 1024, 1025, 3000, 9000, 20000};
	uint8_t how = fuzz_u8(input), which = fuzz_u8(input), seed = fuzz_u8(input);
	uint32_t header_bytes = MARK + fuzz_u8(input) * 16u, count = how >> 2 & 3;
	uint64_t bytes[BODIES_MAX];

	for (uint32_t i = 0; i < count; i++)
		bytes[i] = sizes[(which >> 3 * i & 7) & (how >> 4 > 2 ? 3 : 7)];
	if ((how & 0xfc) == 0xfc)
		send_from_area(how & 3, seed, (uint64_t)which << 8 | 1);
	for (int times = 0; times <= (how >> 4) * 4; times++)
		send_one(how & 3, (seed & 1) != 0,
			 header_bytes < FRAGI_HEADER_MAX ? header_bytes : FRAGI_HEADER_MAX, bytes,
			 count, (uint8_t)(seed + times));
}

static void progress(uint8_t which)
{
	world.now_ns += 700000;
	for (int i = 0; i < HOSTS; i++) {
		if ((which >> i & 1) != 0)
			(void)fuzz_shm_transport.progress(world.hosts[i], world.now_ns);
		if ((which >> (i + 3) & 1) != 0)
			(void)fuzz_shm_transport.arm(world.hosts[i]);
	}
}

/* What the liar writes. */

static void step_record(struct fuzz_input *input)
{
	struct shm_endpoint *liar = end_of(LIAR_TO_VICTIM);
	uint8_t kind = fuzz_u8(input), count = fuzz_u8(input), how = fuzz_u8(input);
	uint32_t header_bytes = fuzz_u8(input), inline_bytes = fuzz_u8(input), words;
	uint64_t slot = fuzz_u16(input), bytes, word, head;
	uint8_t *at, *ring, *record;

	if (liar == NULL || liar->out.memory == NULL)
		return;
	words = inline_bytes > 0 ? shm_padded(inline_bytes) / 8
				 : count * (kind == SHM_MESSAGE ? 2u : 1u);
	words = words > 600 ? 600 : words;
	bytes = (SHM_HEADER_AT + shm_padded(header_bytes) + words * 8 + 63) / 64 * 64;
	ring = liar->out.memory + HEAD_BYTES;
	at = record = ring + liar->out.produced % SHM_RING_BYTES;
	head = kind | (uint64_t)count << 8;
	head |= (uint64_t)(header_bytes << ((how & 2) != 0 ? 6 : 0)) << 16;
	head |= (uint64_t)(inline_bytes << ((how & 4) != 0 ? 4 : 0)) << 32;
	if ((how & 1) != 0)
		head ^= (uint64_t)fuzz_u8(input) << 42;
	fragi_put64(at + 8, slot | (uint64_t)(how >> 4) << 32);
	at += SHM_HEADER_AT + shm_padded(header_bytes);
	for (uint32_t i = 0; i < words; i++) {
		word = i < 6 ? fuzz_u16(input) : i;
		if ((how & 8) != 0)
			word |= (uint64_t)fuzz_u8(input) << (fuzz_u8(input) & 63);
		fragi_put64(at + (uint64_t)i * 8, word);
	}
	liar->out.produced += bytes;
	fragi_put64(ring + liar->out.produced % SHM_RING_BYTES, 0);
	fragi_put64(record, head);
}

static void step_head(struct fuzz_input *input)
{
	static const uint32_t counters[] = {0, 64, 128, 132};
	struct shm_endpoint *liar = end_of(LIAR_TO_VICTIM), *victim = end_of(VICTIM_TO_LIAR);
	uint8_t how = fuzz_u8(input), *at;
	uint64_t value;

	if (liar == NULL)
		return;
	at = liar->out.memory + ((how & 0xe0) == 0xe0 ? 8 : counters[how & 3]); /* 8: areas */
	value = fragi_get64(at);
	switch (how >> 2 & 7) {
	case 0:
		value += fuzz_u8(input) * 8u;
		break;
	case 1:
		value -= fuzz_u8(input) * 8u;
		break;
	case 2:
		value += SHM_RING_BYTES;
		break;
	case 3:
		value = victim != NULL ? victim->out.produced : 0;
		break;
	case 4:
		value ^= (uint64_t)1 << (fuzz_u8(input) & 63);
		break;
	default:
		value = fuzz_u64(input);
		break;
	}
	fragi_put64(at, value);
}

static void step_ring(struct fuzz_input *input)
{
	struct shm_endpoint *liar = end_of(LIAR_TO_VICTIM), *victim = end_of(VICTIM_TO_LIAR);
	uint16_t where = fuzz_u16(input);
	uint64_t from = victim != NULL ? victim->in.consumed : 0;
	const uint8_t *bytes;
	size_t count;

	if (liar == NULL)
		return;
	bytes = fuzz_bytes(input, 1 + (where & 15), &count);
	if (count > 0) /* the last byte lies in the mapping that repeats the ring */
		memcpy(liar->out.memory + HEAD_BYTES + (from + (where >> 4)) % SHM_RING_BYTES,
		       bytes, count);
}

static void step_body(struct fuzz_input *input)
{
	uint8_t which = fuzz_u8(input), at = fuzz_u8(input);
	struct pending *pending = &world.pending[which % PENDING_MAX];

	if (which < world.pending_count && pending->link == LIAR_TO_VICTIM && pending->count > 0)
		((uint8_t *)pending->bodies[0].data)[at % pending->bodies[0].bytes] =
			fuzz_u8(input);
}

static void step_socket(struct fuzz_input *input)
{
	struct shm_endpoint *liar = end_of(LIAR_TO_VICTIM);
	uint8_t how = fuzz_u8(input);
	int fd;

	if (liar == NULL)
		return;
	fd = (how & 1) != 0 ? liar->out_fd : liar->in_fd;
	if (fd < 0)
		return;
	if ((how & 2) != 0)
		(void)shutdown(fd, SHUT_RDWR);
	else
		(void)send(fd, "bytes", how >> 2 & 3, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The handshake. */

static socklen_t name_of(const uint8_t *name, struct sockaddr_un *out)
{
	size_t used;

	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	used = (size_t)snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "frag-shm-");
	for (size_t i = 0; i < SHM_NAME_BYTES; i++)
		used += (size_t)snprintf(out->sun_path + 1 + used, sizeof(out->sun_path) - 1 - used,
					 "%02x", name[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + used);
}

static int unix_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	fuzz_check(fd >= 0);
	return fd;
}

/* The packet of an introduction, as in handshake.c. */
struct hello {
	uint32_t magic, layout;
	uint8_t secret[SHM_SECRET_BYTES], name[SHM_NAME_BYTES];
	uint64_t heap_bytes;
	uint32_t areas, zero;
};

/* One of the areas that the ghost has spoken of, as areas.c lays it out; or none. */
static void show_area(int fd, struct fuzz_input *input)
{
	uint8_t how = fuzz_u8(input);
	int fds[] = {(how & 1) != 0 ? world.plain : gpu_memory[LIAR].fd, world.plain};
	struct {
		uint64_t bytes;
		uint32_t number, zero;
		uint8_t gpu[FRAGI_GPU_NAME_BYTES];
	} what = {.bytes = AREA_BYTES, .number = how >> 5};

	memcpy(what.gpu, gpu_name, sizeof(gpu_name));
	if ((how & 2) != 0)
		((uint8_t *)&what)[fuzz_u8(input) % sizeof(what)] ^= fuzz_u8(input);
	(void)fragi_handover_send(fd, &what, (how & 4) != 0 ? 8 : sizeof(what), fds,
				  (how & 8) != 0 ? 2 : 1);
}

/* Introduces itself as the ghost, to which the victim connects, with memory of the liar's. */
static void introduce(int fd, struct fuzz_input *input)
{
	uint8_t how = fuzz_u8(input), fd_count = fuzz_u8(input);
	const struct shm_transport *liar = shm_of(world.hosts[LIAR]);
	struct shm_endpoint *end = end_of(LIAR_TO_VICTIM);
	int of_liar[4] = {shm_heap_fd(liar->heap), end != NULL ? end->out.fd : world.plain,
			  liar->bell->fd, world.plain};
	int fds[5];
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fds))] = {0};
	struct hello hello = {.magic = 0x48534646u, .layout = SHM_LAYOUT};
	struct iovec bytes = {&hello, sizeof(hello)};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
	struct cmsghdr *head;
	size_t count = fd_count % 16 < 6 ? fd_count % 16 : 3;

	hello.heap_bytes = shm_heap_size(liar->heap);
	memcpy(hello.secret, shm_of(world.hosts[VICTIM])->secret, sizeof(hello.secret));
	memcpy(hello.name, world.ghost_name, sizeof(hello.name));
	for (size_t i = 0; i < count; i++)
		fds[i] = of_liar[(how >> 7) != 0 ? fuzz_u8(input) & 3 : i & 3];
	hello.areas = (how & 4) != 0 ? how >> 3 & 7 : 0;
	if ((how & 1) != 0)
		((uint8_t *)&hello)[fuzz_u8(input) % sizeof(hello)] ^= fuzz_u8(input);
	if ((how & 2) != 0)
		bytes.iov_len = fuzz_u8(input) % (sizeof(hello) + 1);
	if (count > 0) {
		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(head), fds, count * sizeof(int));
	}
	(void)sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	for (uint32_t i = 0; i < hello.areas && i < 4 && (how & 4) != 0; i++)
		show_area(fd, input);
}

static void step_knock(struct fuzz_input *input)
{
	uint8_t how = fuzz_u8(input);
	int *fd = &world.knocks[how % KNOCKS_MAX];
	struct sockaddr_un at;
	socklen_t size = name_of(shm_of(world.hosts[VICTIM])->name, &at);

	if (*fd >= 0 && (how & 0x10) != 0) {
		close(*fd);
		*fd = -1;
		return;
	}
	if (*fd < 0) {
		*fd = unix_socket();
		(void)connect(*fd, (const struct sockaddr *)&at, size);
	}
	if ((how & 0x20) == 0)
		introduce(*fd, input);
}

static void connect_link(int which, uint8_t from, const void *address, size_t size)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct link *link = &world.links[which];

	link->host = from;
	fuzz_check(fuzz_shm_transport.connect(world.hosts[from], 2, address, size, link,
					      &link->endpoint, &err) == 0);
}

static void connect_hosts(int which, uint8_t from, int to)
{
	size_t size;
	const void *address = fuzz_shm_transport.address(world.hosts[to], &size);

	connect_link(which, from, address, size);
}

/* A host whose socket is there, and that introduces itself as the input says. */
static void connect_ghost(void)
{
	const uint8_t *address;
	uint8_t changed[FRAGI_HOST_ADDRESS_MAX];
	struct sockaddr_un at;
	socklen_t bytes;
	size_t size;

	address = fuzz_shm_transport.address(world.hosts[LIAR], &size);
	memcpy(changed, address, size);
	memcpy(world.ghost_name, address + 16, SHM_NAME_BYTES);
	world.ghost_name[0] ^= 0x55;
	memcpy(changed + 16, world.ghost_name, SHM_NAME_BYTES);
	bytes = name_of(world.ghost_name, &at);
	world.ghost = unix_socket();
	fuzz_check(bind(world.ghost, (const struct sockaddr *)&at, bytes) == 0 &&
		   listen(world.ghost, 5) == 0);
	connect_link(VICTIM_TO_GHOST, VICTIM, changed, size);
}

/* Ends. */

static void end_link(struct link *link, bool silent)
{
	if (link->endpoint == NULL || link->freed)
		return;
	if (!link->closed) {
		link->closed = true;
		fuzz_shm_transport.close(link->endpoint, silent);
	} else {
		(void)fuzz_shm_transport.stop(link->endpoint, world.now_ns);
		fuzz_shm_transport.free(link->endpoint);
		link->freed = true;
	}
}

static void step_end(uint8_t how)
{
	static const uint8_t links[] = {LIAR_TO_VICTIM, VICTIM_TO_LIAR, VICTIM_TO_GHOST};

	end_link(&world.links[links[how % 3]], (how & 0x80) != 0);
}

static void step(struct fuzz_input *input)
{
	uint8_t how;

	switch (fuzz_u8(input) % STEPS) {
	case STEP_PROGRESS:
		progress(fuzz_u8(input));
		break;
	case STEP_SEND:
		step_send(input);
		break;
	case STEP_RELEASE:
		how = fuzz_u8(input);
		for (int i = 0; i <= how >> 5 && world.kept_count > 0; i++)
			release_kept(how % world.kept_count);
		break;
	case STEP_RECORD:
		step_record(input);
		break;
	case STEP_HEAD:
		step_head(input);
		break;
	case STEP_RING:
		step_ring(input);
		break;
	case STEP_BODY:
		step_body(input);
		break;
	case STEP_KNOCK:
		step_knock(input);
		break;
	case STEP_SOCKET:
		step_socket(input);
		break;
	case STEP_END:
		step_end(fuzz_u8(input));
		break;
	default:
		world.is_short = true;
		fragi_alloc_fail_after(fuzz_u8(input) & 15, 1);
		break;
	}
}

/* Everything arrives between the victim and its honest peer. */
static void check_others(void)
{
	static const uint64_t sizes[] = {5000};
	struct link *out = &world.links[VICTIM_TO_HONEST], *back = &world.links[HONEST_TO_VICTIM];

	if (world.is_short)
		return;
	send_one(VICTIM_TO_HONEST, true, MARK, sizes, 1, 3);
	send_one(HONEST_TO_VICTIM, false, MARK, sizes, 1, 3);
	for (int i = 0; i < 60 && (out->arrived < out->sent || back->arrived < back->sent); i++) {
		progress(1u << VICTIM | 1u << HONEST);
		while (world.kept_count > 0)
			release_kept(0);
	}
	fuzz_check(!out->failed && !back->failed);
	fuzz_check(out->arrived == out->sent && back->arrived >= back->sent);
}

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 100; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void open_world(void)
{
	static const struct fragi_transport_events events = {
		.arrived = on_arrived, .sent = on_sent, .failed = on_failed, .fault = on_fault};
	struct fragi_transport_config config = {.struct_size = sizeof(config), .events = &events};
	struct frag_err err = FRAG_ERR_INIT;
	struct rlimit limit, heap;

	memset(&world, 0, sizeof(world));
	fragi_memory_install(&gpu, GPU);
	world.descriptors = count_descriptors();
	for (int i = 0; i < KNOCKS_MAX; i++)
		world.knocks[i] = -1;
	world.plain = memfd_create("plain", MFD_CLOEXEC);
	fuzz_check(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	heap = limit;
	heap.rlim_cur = HEAP_BYTES;
	(void)setrlimit(RLIMIT_FSIZE, &heap);
	for (uintptr_t i = 0; i < HOSTS; i++) {
		config.arg = (void *)i;
		fuzz_check(fuzz_shm_transport.create(&config, &world.hosts[i], &err) == 0);
	}
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	for (int i = 0; i < HOSTS; i++) {
		fuzz_check(fragi_alloc_on(memory_of(i), GPU, AREA_BYTES, &world.areas[i]) == 0);
		memset(world.areas[i], AREA_FILL, AREA_BYTES);
	}
	connect_hosts(LIAR_TO_VICTIM, LIAR, VICTIM);
	connect_hosts(VICTIM_TO_LIAR, VICTIM, LIAR);
	connect_hosts(VICTIM_TO_HONEST, VICTIM, HONEST);
	connect_hosts(HONEST_TO_VICTIM, HONEST, VICTIM);
	connect_ghost();
}

static void close_world(bool late)
{
	while (!late && world.kept_count > 0)
		release_kept(0);
	for (int i = 0; i < LINKS; i++)
		if (i != VICTIM_TO_HONEST && i != HONEST_TO_VICTIM) {
			end_link(&world.links[i], true);
			end_link(&world.links[i], true);
		}
	for (int i = 0; i < HOSTS; i++) {
		fragi_free_on(memory_of(i), GPU, world.areas[i]);
		fuzz_shm_transport.destroy(world.hosts[i]);
	}
	while (world.kept_count > 0) { /* of a host that is gone: only its memory is still there */
		world.kept[0].host = VICTIM;
		release_kept(0);
	}
	for (uint32_t i = 0; i < world.pending_count; i++) {
		fuzz_check(world.pending[i].ended);
		free(world.pending[i].send);
	}
	for (int i = 0; i < KNOCKS_MAX; i++)
		if (world.knocks[i] >= 0)
			close(world.knocks[i]);
	close(world.ghost);
	close(world.plain);
	fuzz_check(count_descriptors() == world.descriptors);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = {bytes, bytes + size};
	uint8_t how = fuzz_u8(&input);

	open_world();
	for (int i = 0; i < (how & 3); i++)
		progress(7);
	for (int steps = 0; steps < 300 && fuzz_left(&input) > 0; steps++)
		step(&input);
	(void)fragi_alloc_fail_off();
	check_others();
	close_world((how & 4) != 0);
	return 0;
}
