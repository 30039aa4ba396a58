/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFORMANCE_SHM_LIAR_H
#define TESTS_CONFORMANCE_SHM_LIAR_H

/*
 * A host that shares memory with a peer that does what no host does. The peer is written by hand:
 * its socket, its heap and its channel are this program's.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../left.h"
#include "gpu.h"
#include "pair.h"
#include <base/bytes.h>

#define AT_LAYOUT 4 /* in the address of a host */
#define AT_NAME 16
#define AT_SECRET 32
#define NAME_BYTES 16
#define HEAP_BYTES ((size_t)2 << 20) /* of the liar */
#define HEAD_BYTES ((size_t)65536)   /* of a channel, before the ring */
#define RING_BYTES ((size_t)256 << 10)
#define AT_CONSUMED 64 /* in a channel */
#define LAYOUT 4u
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

struct hello {
	uint32_t magic, layout;
	uint8_t secret[NAME_BYTES], name[NAME_BYTES];
	uint64_t heap_bytes;
	uint32_t areas, zero;
};

enum { RECORD_MESSAGE = 1, RECORD_RETURN };

/* The host: a transport without the protocol above it. */
struct host {
	const struct fragi_transport_ops *ops;
	struct fragi_transport *transport;
	struct fragi_endpoint *endpoint;
	int64_t now_ns;
	uint32_t failed, arrived, sent, abandoned;
	char cause[256];
	struct fragi_body kept[64]; /* bodies that have arrived */
	uint32_t kept_count;
	struct liar *answers; /* writes another record at each arrival */
};

/* Its peer. */
struct liar {
	int listener, socket, heap, channel, bell;
	uint8_t name[NAME_BYTES];
	uint8_t *memory; /* of the channel */
	uint64_t produced;
};

static inline void on_sent(struct fragi_send *send, bool abandoned)
{
	struct host *host;

	memcpy(&host, send->header, sizeof(host));
	host->sent++;
	host->abandoned += abandoned;
	free(send);
}

static inline void liar_writes(struct liar *liar, int kind, uint8_t count, uint64_t slot,
			       const uint64_t *rest, uint32_t words);

static inline enum fragi_arrival_use on_arrived(void *arg, const struct fragi_arrival *arrival)
{
	struct host *host = arg;

	host->arrived++;
	if (host->answers != NULL)
		liar_writes(host->answers, RECORD_MESSAGE, 0, 0, NULL, 0);
	if (arrival->mapped_count == 0 || host->kept_count + arrival->mapped_count > 64)
		return FRAGI_ARRIVAL_USED;
	for (uint32_t i = 0; i < arrival->mapped_count; i++)
		host->kept[host->kept_count++] = arrival->mapped[i];
	return FRAGI_ARRIVAL_KEPT;
}

static inline void on_failed(void *owner, const char *cause)
{
	struct host *host = owner;

	host->failed++;
	snprintf(host->cause, sizeof(host->cause), "%s", cause);
}

static inline void on_fault(void *arg, enum fragi_failure failure, const char *sentence)
{
	(void)arg, (void)failure, (void)sentence;
}

static inline int host_create(struct host *host)
{
	static const struct fragi_transport_events events = {
		.arrived = on_arrived, .sent = on_sent, .failed = on_failed, .fault = on_fault};
	const struct fragi_transport_config config = {.struct_size = sizeof(config),
						      .events = &events,
						      .arg = host,
						      .data_key = pair_key};
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	cr_assert_eq(fragi_transport_open("shm", &host->ops, &err), 0, "%s", err.text);
	r = host->ops->create(&config, &host->transport, &err);
	cr_assert(r == 0 || err.text[0] != '\0');
	return r;
}

static inline uint32_t turn(struct host *host)
{
	host->now_ns += 10000000;
	return host->ops->progress(host->transport, host->now_ns);
}

static inline void turns(struct host *host)
{
	for (int i = 0; i < 100; i++)
		(void)turn(host);
}

static inline void release_kept(struct host *host)
{
	while (host->kept_count > 0) {
		host->kept_count--;
		host->kept[host->kept_count].release(host->kept[host->kept_count].owner);
	}
}

static inline void host_close(struct host *host)
{
	if (host->endpoint != NULL) {
		host->ops->close(host->endpoint, true);
		(void)host->ops->stop(host->endpoint, host->now_ns);
		host->ops->free(host->endpoint);
	}
	host->ops->destroy(host->transport);
	release_kept(host);
}

/* The liar. */

static inline socklen_t socket_name(const uint8_t *name, struct sockaddr_un *out)
{
	size_t used;

	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	used = (size_t)snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "frag-shm-");
	for (int i = 0; i < NAME_BYTES; i++)
		used += (size_t)snprintf(out->sun_path + 1 + used, sizeof(out->sun_path) - 1 - used,
					 "%02x", name[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + used);
}

static inline int unix_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	cr_assert_geq(fd, 0);
	return fd;
}

static inline int shared_memory(size_t bytes, int seals)
{
	int fd = memfd_create("liar", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static inline const uint8_t *address_of(const struct host *host)
{
	size_t size;

	return host->ops->address(host->transport, &size);
}

static inline int knock(const struct host *host)
{
	struct sockaddr_un at;
	socklen_t size = socket_name(address_of(host) + AT_NAME, &at);
	int fd = unix_socket();

	cr_assert_eq(connect(fd, (const struct sockaddr *)&at, size), 0);
	return fd;
}

static inline void say(int fd, const void *text, size_t size, const int *fds, size_t count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {0};
	struct iovec bytes = {(void *)(uintptr_t)text, size};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = CMSG_SPACE(count * sizeof(int))};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(head), fds, count * sizeof(int));
	cr_assert_eq(sendmsg(fd, &message, MSG_NOSIGNAL), (ssize_t)size);
}

static inline struct hello hello_of(const struct host *host, const struct liar *liar)
{
	struct hello hello = {.magic = 0x48534646u, .layout = LAYOUT, .heap_bytes = HEAP_BYTES};

	memcpy(hello.secret, address_of(host) + AT_SECRET, NAME_BYTES);
	memcpy(hello.name, liar->name, NAME_BYTES);
	return hello;
}

static inline void liar_create(struct liar *liar)
{
	const uint32_t magic = 0x43534646u;
	struct sockaddr_un at;
	socklen_t size;

	snprintf((char *)liar->name, NAME_BYTES, "liar %d", (int)getpid());
	size = socket_name(liar->name, &at);
	liar->listener = unix_socket();
	cr_assert_eq(bind(liar->listener, (const struct sockaddr *)&at, size), 0);
	cr_assert_eq(listen(liar->listener, 5), 0);
	liar->heap = shared_memory(HEAP_BYTES, SEALS);
	liar->channel = shared_memory(HEAD_BYTES + RING_BYTES, F_SEAL_SHRINK);
	liar->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	liar->memory = mmap(NULL, HEAD_BYTES + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			    liar->channel, 0);
	memcpy(liar->memory, &magic, sizeof(magic));
}

static inline void liar_destroy(struct liar *liar)
{
	munmap(liar->memory, HEAD_BYTES + RING_BYTES);
	close(liar->listener);
	close(liar->socket);
	close(liar->heap);
	close(liar->channel);
	close(liar->bell);
}

/* Of device memory. */
struct area {
	uint64_t bytes;
	uint32_t number, zero;
	uint8_t gpu[FRAGI_GPU_NAME_BYTES];
};

/* The host's own address with the liar's name. Returns its size. */
static inline size_t liar_address(const struct host *host, const struct liar *liar,
				  uint8_t address[FRAGI_HOST_ADDRESS_MAX])
{
	size_t size;

	memcpy(address, host->ops->address(host->transport, &size), 240);
	memcpy(address + AT_NAME, liar->name, NAME_BYTES);
	return size;
}

/* The host connects to the liar, which connects to the host, and says nothing yet. */
static inline void connect_both(struct host *host, struct liar *liar)
{
	uint8_t address[FRAGI_HOST_ADDRESS_MAX];
	size_t size = liar_address(host, liar, address);
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(
		host->ops->connect(host->transport, 2, address, size, host, &host->endpoint, &err),
		0, "%s", err.text);
	liar->socket = knock(host);
}

/*
 * The host connects to the liar, which introduces itself, says that so many areas follow, and sends
 * the first count of them, each with fd.
 */
static inline void meet_with(struct host *host, struct liar *liar, uint32_t said,
			     const struct area *areas, uint32_t count, int fd)
{
	struct hello hello = hello_of(host, liar);

	connect_both(host, liar);
	hello.areas = said;
	say(liar->socket, &hello, sizeof(hello),
	    (const int[]){liar->heap, liar->channel, liar->bell}, 3);
	for (uint32_t i = 0; i < count; i++) {
		if (said > 64)
			break;
		turns(host);
		say(liar->socket, &areas[i], sizeof(areas[i]), &fd, 1);
	}
	turns(host);
}

/* The head of a record. */
static inline void liar_stores(struct liar *liar, uint64_t position, uint64_t head)
{
	uint8_t *at = liar->memory + HEAD_BYTES + position % RING_BYTES;

	atomic_store((_Atomic uint64_t *)(void *)at, head);
}

/* A record of a message without a header, or of returned slots. */
static inline void liar_writes(struct liar *liar, int kind, uint8_t count, uint64_t slot,
			       const uint64_t *rest, uint32_t words)
{
	uint8_t record[1024] = {0};
	uint32_t bytes = (16 + words * 8 + 63) / 64 * 64;

	fragi_put64(record + 8, slot);
	for (uint32_t i = 0; i < words; i++)
		fragi_put64(record + 16 + i * 8, rest[i]);
	for (uint32_t i = 8; i < bytes; i++)
		liar->memory[HEAD_BYTES + (liar->produced + i) % RING_BYTES] = record[i];
	liar_stores(liar, liar->produced + bytes, 0);
	liar_stores(liar, liar->produced, (uint64_t)kind | (uint64_t)count << 8);
	liar->produced += bytes;
}

static inline void liar_shows(struct liar *liar, uint64_t slot, uint64_t offset, uint64_t bytes)
{
	liar_writes(liar, RECORD_MESSAGE, 1, slot, (const uint64_t[]){offset, bytes}, 2);
}

static inline void all_gone(struct host *host, struct liar *liar)
{
	host_close(host);
	liar_destroy(liar);
}

/* The socket. */

#endif
