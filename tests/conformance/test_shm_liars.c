// SPDX-License-Identifier: Apache-2.0
/*
 * A host that shares memory with a peer that does what no host does. The peer is written by hand:
 * its socket, its heap and its channel are this program's.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "gpu.h"
#include "pair.h"
#include <base/alloc.h>
#include <base/bytes.h>
#include <base/stamp.h>
#include <data/allocator.h>
#include <data/memory.h>

#define AT_NAME 16 /* in the address of a host */
#define AT_SECRET 32
#define NAME_BYTES 16
#define HEAP_BYTES ((size_t)2 << 20) /* of the liar */
#define HEAD_BYTES ((size_t)65536)   /* of a channel, before the ring */
#define RING_BYTES ((size_t)256 << 10)
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

static void on_sent(struct fragi_send *send, bool abandoned)
{
	struct host *host;

	memcpy(&host, send->header, sizeof(host));
	host->sent++;
	host->abandoned += abandoned;
	free(send);
}

static void liar_writes(struct liar *liar, int kind, uint8_t count, uint64_t slot,
			const uint64_t *rest, uint32_t words);

static enum fragi_arrival_use on_arrived(void *arg, const struct fragi_arrival *arrival)
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

static void on_failed(void *owner, const char *cause)
{
	struct host *host = owner;

	host->failed++;
	snprintf(host->cause, sizeof(host->cause), "%s", cause);
}

static void on_fault(void *arg, enum fragi_failure failure, const char *sentence)
{
	(void)arg, (void)failure, (void)sentence;
}

static int host_create(struct host *host)
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

static uint32_t turn(struct host *host)
{
	host->now_ns += 10000000;
	return host->ops->progress(host->transport, host->now_ns);
}

static void turns(struct host *host)
{
	for (int i = 0; i < 100; i++)
		(void)turn(host);
}

static void release_kept(struct host *host)
{
	while (host->kept_count > 0) {
		host->kept_count--;
		host->kept[host->kept_count].release(host->kept[host->kept_count].owner);
	}
}

static void host_close(struct host *host)
{
	if (host->endpoint != NULL) {
		host->ops->close(host->endpoint, true);
		(void)host->ops->stop(host->endpoint, host->now_ns);
		host->ops->free(host->endpoint);
	}
	host->ops->destroy(host->transport);
	release_kept(host);
}

/* Returns whether it is under way. */
static bool send_bytes(struct host *host, const void *memory, size_t bytes)
{
	struct fragi_send *send = calloc(1, sizeof(*send) + host->transport->send_room);
	const struct fragi_body body = {
		.data = (void *)(uintptr_t)memory, .bytes = bytes, .device = {1, 0}};

	send->header_bytes = 64;
	memcpy(send->header, &host, sizeof(host));
	if (host->ops->send(host->endpoint, send, &body, 1))
		return true;
	free(send);
	return false;
}

/* The liar. */

static socklen_t socket_name(const uint8_t *name, struct sockaddr_un *out)
{
	size_t used;

	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	used = (size_t)snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "frag-shm-");
	for (int i = 0; i < NAME_BYTES; i++)
		used += (size_t)snprintf(out->sun_path + 1 + used, sizeof(out->sun_path) - 1 - used,
					 "%02x", name[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + used);
}

static int unix_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	cr_assert_geq(fd, 0);
	return fd;
}

static int shared_memory(size_t bytes, int seals)
{
	int fd = memfd_create("liar", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static const uint8_t *address_of(const struct host *host)
{
	size_t size;

	return host->ops->address(host->transport, &size);
}

static int knock(const struct host *host)
{
	struct sockaddr_un at;
	socklen_t size = socket_name(address_of(host) + AT_NAME, &at);
	int fd = unix_socket();

	cr_assert_eq(connect(fd, (const struct sockaddr *)&at, size), 0);
	return fd;
}

static void say(int fd, const void *text, size_t size, const int *fds, size_t count)
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

static struct hello hello_of(const struct host *host, const struct liar *liar)
{
	struct hello hello = {.magic = 0x48534646u, .layout = 2, .heap_bytes = HEAP_BYTES};

	memcpy(hello.secret, address_of(host) + AT_SECRET, NAME_BYTES);
	memcpy(hello.name, liar->name, NAME_BYTES);
	return hello;
}

static void liar_create(struct liar *liar)
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

static void liar_destroy(struct liar *liar)
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

/*
 * The host connects to the liar, which introduces itself, says that so many areas follow, and sends
 * the first count of them, each with fd.
 */
static void meet_with(struct host *host, struct liar *liar, uint32_t said, const struct area *areas,
		      uint32_t count, int fd)
{
	struct hello hello = hello_of(host, liar);
	uint8_t address[FRAGI_HOST_ADDRESS_MAX];
	struct frag_err err = FRAG_ERR_INIT;
	size_t size;

	memcpy(address, host->ops->address(host->transport, &size), 240);
	memcpy(address + AT_NAME, liar->name, NAME_BYTES);
	cr_assert_eq(
		host->ops->connect(host->transport, 2, address, size, host, &host->endpoint, &err),
		0, "%s", err.text);
	liar->socket = knock(host);
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

static void meet(struct host *host, struct liar *liar)
{
	meet_with(host, liar, 0, NULL, 0, -1);
}

/* A record of a message without a header, or of returned slots. */
static void liar_writes(struct liar *liar, int kind, uint8_t count, uint64_t slot,
			const uint64_t *rest, uint32_t words)
{
	uint8_t record[1024] = {0};
	uint32_t bytes = 24 + words * 8;

	fragi_put32(record, bytes);
	record[4] = (uint8_t)kind;
	record[5] = count;
	fragi_put64(record + 8, slot);
	for (uint32_t i = 0; i < words; i++)
		fragi_put64(record + 24 + i * 8, rest[i]);
	for (uint32_t i = 0; i < bytes; i++)
		liar->memory[HEAD_BYTES + (liar->produced + i) % RING_BYTES] = record[i];
	liar->produced += bytes;
	atomic_store((_Atomic uint64_t *)(void *)(liar->memory + 64), liar->produced);
}

/* Everything that the ring can hold. */
static void liar_reads(struct liar *liar)
{
	atomic_fetch_add((_Atomic uint64_t *)(void *)(liar->memory + 128), RING_BYTES / 2 + 8192);
}

static void liar_shows(struct liar *liar, uint64_t slot, uint64_t offset, uint64_t bytes)
{
	liar_writes(liar, RECORD_MESSAGE, 1, slot, (const uint64_t[]){offset, bytes}, 2);
}

#define ALL_HERE                                                                                   \
	struct host host = {0};                                                                    \
	struct liar liar = {0};                                                                    \
                                                                                                   \
	cr_assert_eq(host_create(&host), 0);                                                       \
	liar_create(&liar);                                                                        \
	meet(&host, &liar);                                                                        \
	cr_assert_eq(host.failed, 0, "%s", host.cause)

static void all_gone(struct host *host, struct liar *liar)
{
	host_close(host);
	liar_destroy(liar);
}

/* With a host and a liar that are connected. */
#define LIAR_TEST(suite, name)                                                                     \
	static void name##_by(struct host *host, struct liar *liar);                               \
	Test(suite, name, .init = set_environment)                                                 \
	{                                                                                          \
		ALL_HERE;                                                                          \
		name##_by(&host, &liar);                                                           \
		all_gone(&host, &liar);                                                            \
	}                                                                                          \
	static void name##_by(struct host *host, struct liar *liar)

LIAR_TEST(shm_liars, a_liar_that_behaves_is_a_peer)
{
	liar_shows(liar, 5, 4096, 100);
	turns(host);
	cr_assert_eq(host->arrived, 1);
	cr_assert_eq(host->kept_count, 1);
	release_kept(host);
	turns(host);
	cr_assert_eq(host->failed, 0, "%s", host->cause);
}

/* Slots. */

/* The host has sent more than its ring holds, and the liar reads nothing. */
static uint32_t fill_ring(struct host *host, void *memory)
{
	uint32_t count = 0;

	for (; count < 4000; count++)
		cr_assert(send_bytes(host, memory, 2000));
	return count;
}

static struct frag_resource *memory_of(const struct host *host)
{
	return host->ops->memory(host->transport, (struct frag_device){FRAG_DEVICE_CPU, 0});
}

LIAR_TEST(shm_liars, a_slot_is_not_returned_before_its_message_was_shown)
{
	uint32_t count;
	void *memory;

	cr_assert_eq(frag_alloc(memory_of(host), 2000, &memory), 0);
	count = fill_ring(host, memory);
	liar_writes(liar, RECORD_RETURN, 1, 0, (const uint64_t[]){count - 1}, 1);
	turns(host);
	cr_expect_eq(host->failed, 1);
	cr_expect_eq(host->sent, 0, "what waits is not over");
	host->ops->close(host->endpoint, true);
	(void)host->ops->stop(host->endpoint, host->now_ns);
	cr_expect_eq(host->sent, count, "each ends once");
	cr_expect_eq(host->abandoned, count);
	frag_free(memory_of(host), memory);
}

LIAR_TEST(shm_liars, a_copy_is_not_returned_before_its_message_was_shown)
{
	void *memory = calloc(1, 2000);
	uint32_t sent = 0, waiting = 0;

	for (; sent < 4000; sent++)
		waiting += send_bytes(host, memory, 2000);
	cr_expect_gt(waiting, 0);
	liar_writes(liar, RECORD_RETURN, 1, 0, (const uint64_t[]){sent - 1}, 1);
	turns(host);
	cr_expect_eq(host->failed, 1);
	host->ops->close(host->endpoint, true);
	(void)host->ops->stop(host->endpoint, host->now_ns);
	cr_expect_eq(host->sent, waiting, "each ends once");
	free(memory);
}

LIAR_TEST(shm_liars, a_slot_is_returned_once)
{
	void *memory;

	cr_assert_eq(frag_alloc(memory_of(host), 2000, &memory), 0);
	cr_assert(send_bytes(host, memory, 2000));
	liar_writes(liar, RECORD_RETURN, 2, 0, (const uint64_t[]){0, 0}, 2);
	turns(host);
	cr_expect_eq(host->sent, 1);
	cr_expect_eq(host->failed, 1);
	frag_free(memory_of(host), memory);
}

LIAR_TEST(shm_liars, a_slot_of_the_past_is_not_returned)
{
	void *memory;

	cr_assert_eq(frag_alloc(memory_of(host), 2000, &memory), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert(send_bytes(host, memory, 2000));
		liar_writes(liar, RECORD_RETURN, 1, 0, (const uint64_t[]){0}, 1);
		turns(host);
	}
	cr_expect_eq(host->sent, 1, "the second has another generation");
	cr_expect_eq(host->failed, 1);
	frag_free(memory_of(host), memory);
}

Test(shm_liars, slots_that_never_were_are_not_returned, .init = set_environment)
{
	for (uint64_t name = 0; name < (uint64_t)1 << 40; name = name * 33 + 7) {
		ALL_HERE;
		liar_writes(&liar, RECORD_RETURN, 1, 0, &name, 1);
		turns(&host);
		cr_expect_eq(host.failed, 1);
		all_gone(&host, &liar);
	}
}

LIAR_TEST(shm_liars, a_return_of_nothing_is_refused)
{
	liar_writes(liar, RECORD_RETURN, 0, 0, NULL, 0);
	turns(host);
	cr_expect_eq(host->failed, 1);
}

/* Memory. */

static int mapped_heaps(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	while (fgets(line, sizeof(line), maps) != NULL)
		count += strstr(line, name) != NULL;
	fclose(maps);
	return count;
}

/* Returned, but its ring was full of what the liar does not read. */
Test(shm_liars, memory_of_a_peer_that_reads_nothing_is_let_go, .init = set_environment)
{
	void *memory;

	ALL_HERE;
	cr_assert_eq(frag_alloc(memory_of(&host), 2000, &memory), 0);
	cr_assert_gt(mapped_heaps("memfd:liar"), 0);
	(void)fill_ring(&host, memory);
	for (uint64_t i = 0; i < 10; i++)
		liar_shows(&liar, i, 4096 * i, 5000);
	turns(&host);
	cr_assert_eq(host.kept_count, 10);
	release_kept(&host);
	turns(&host);
	frag_free(memory_of(&host), memory);
	close(liar.socket);
	liar.socket = -1;
	munmap(liar.memory, HEAD_BYTES + RING_BYTES);
	host_close(&host);
	cr_expect_eq(mapped_heaps("memfd:liar"), 0);
	liar.memory =
		mmap(NULL, HEAD_BYTES + RING_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	liar_destroy(&liar);
}

/* The host connects, and the liar offers these three. */
static void expect_refused(int heap, uint64_t heap_bytes, int channel, int bell)
{
	uint8_t address[FRAGI_HOST_ADDRESS_MAX];
	struct frag_err err = FRAG_ERR_INIT;
	struct host host = {0};
	struct liar liar = {0};
	struct hello hello;
	size_t size;
	int fds[3];

	cr_assert_eq(host_create(&host), 0);
	liar_create(&liar);
	hello = hello_of(&host, &liar);
	hello.heap_bytes = heap_bytes;
	memcpy(address, host.ops->address(host.transport, &size), 240);
	memcpy(address + AT_NAME, liar.name, NAME_BYTES);
	cr_assert_eq(
		host.ops->connect(host.transport, 2, address, size, &host, &host.endpoint, &err),
		0);
	liar.socket = knock(&host);
	fds[0] = heap >= 0 ? heap : liar.heap;
	fds[1] = channel >= 0 ? channel : liar.channel;
	fds[2] = bell >= 0 ? bell : liar.bell;
	say(liar.socket, &hello, sizeof(hello), fds, 3);
	turns(&host);
	cr_expect_eq(host.failed, 1);
	cr_expect_str_eq(host.cause, "it offers memory that is no host's");
	all_gone(&host, &liar);
}

Test(shm_liars, memory_that_could_vanish_is_refused, .init = set_environment)
{
	int open_end = shared_memory(HEAP_BYTES, F_SEAL_GROW);
	int short_one = shared_memory(HEAP_BYTES / 2, SEALS);
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int huge = memfd_create("liar", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	expect_refused(open_end, HEAP_BYTES, -1, -1);
	expect_refused(short_one, HEAP_BYTES, -1, -1);
	expect_refused(file, HEAP_BYTES, -1, -1);
	expect_refused(-1, HEAP_BYTES, open_end, -1);
	/* A page of it that is not there is no page of zeros: it kills who reads it. */
	if (huge >= 0 && ftruncate(huge, (off_t)HEAP_BYTES) == 0 &&
	    fcntl(huge, F_ADD_SEALS, SEALS) == 0)
		expect_refused(huge, HEAP_BYTES, -1, -1);
	close(open_end);
	close(short_one);
	close(file);
	if (huge >= 0)
		close(huge);
}

/* To ring it would block, or raise SIGPIPE. */
Test(shm_liars, a_bell_that_is_none_is_refused, .init = set_environment)
{
	int waits = eventfd(0, EFD_CLOEXEC), pipes[2];

	cr_assert_eq(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	close(pipes[0]);
	expect_refused(-1, HEAP_BYTES, -1, pipes[1]);
	expect_refused(-1, HEAP_BYTES, -1, waits);
	close(pipes[1]);
	close(waits);
}

/* The socket. */

static int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

LIAR_TEST(shm_liars, no_descriptor_of_a_stranger_is_kept)
{
	const struct hello wrong = {.magic = 0x48534646u, .layout = 2};
	int before, stranger;
	int fds[5];

	for (int i = 0; i < 5; i++)
		fds[i] = liar->heap;
	before = count_descriptors();
	for (size_t count = 1; count <= 5; count++) {
		for (int empty = 0; empty < 2; empty++) {
			stranger = knock(host);
			say(stranger, &wrong, empty != 0 ? 0 : sizeof(wrong), fds, count);
			turns(host);
			close(stranger);
			turns(host);
			cr_expect_eq(count_descriptors(), before, "%zu, %d", count, empty);
		}
	}
}

/* Its process lives on and writes as fast as it is read. */
Test(shm_liars, a_peer_that_is_gone_and_goes_on_writing_holds_nobody, .init = set_environment,
     .timeout = 30)
{
	ALL_HERE;
	host.answers = &liar;
	liar_writes(&liar, RECORD_MESSAGE, 0, 0, NULL, 0);
	close(liar.socket);
	liar.socket = -1;
	(void)turn(&host);
	turns(&host);
	cr_expect_eq(host.failed, 1);
	cr_expect_lt(host.arrived, 100000);
	all_gone(&host, &liar);
}

LIAR_TEST(shm_liars, a_peer_that_speaks_where_none_speaks_is_lost)
{
	cr_assert_eq(send(liar->socket, "x", 1, MSG_NOSIGNAL), 1);
	turns(host);
	cr_expect_eq(host->failed, 1);
}

/* Limits. */

static int works_within(int resource, rlim_t limit)
{
	const struct rlimit most = {limit, limit};
	struct host host = {0};
	void *memory;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(30);
		if (setrlimit(resource, &most) < 0)
			_exit(2);
		if (host_create(&host) < 0)
			_exit(3);
		if (frag_alloc(memory_of(&host), 1 << 20, &memory) < 0)
			_exit(4);
		memset(memory, 1, 1 << 20);
		frag_free(memory_of(&host), memory);
		host_close(&host);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

Test(shm_liars, a_limit_of_files_limits_the_heap, .init = set_environment)
{
	cr_expect_eq(works_within(RLIMIT_FSIZE, 64 << 20), 0);
	cr_expect_eq(works_within(RLIMIT_FSIZE, 1 << 20), 0, "a block that ends with the heap");
	cr_expect_eq(works_within(RLIMIT_FSIZE, (1 << 20) - 1), 3);
	cr_expect_eq(works_within(RLIMIT_FSIZE, 4096), 3, "a sentence, and no signal");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
Test(shm_liars, a_limit_of_address_space_limits_the_heap, .init = set_environment)
{
	cr_expect_eq(works_within(RLIMIT_AS, (rlim_t)1 << 30), 0);
}
#endif

static bool is_awake(const struct host *host)
{
	struct pollfd fd = {.fd = host->ops->fd(host->transport), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

/* A connection for which there is no descriptor must not keep the host from its sleep. */
LIAR_TEST(shm_liars, a_shortage_of_descriptors_is_waited_out_asleep)
{
	struct rlimit limit, none;
	int stranger;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	stranger = knock(host);
	none.rlim_cur = (rlim_t)stranger + 1;
	for (int fd = dup(0); fd >= 0 && fd < stranger; fd = dup(0))
		; /* those below are in use as well */
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	while (dup(0) >= 0)
		;
	while (host->ops->arm(host->transport) < 0)
		turns(host);
	cr_expect(is_awake(host), "somebody has come");
	turns(host);
	while (host->ops->arm(host->transport) < 0)
		turns(host);
	cr_expect_not(is_awake(host), "for nothing that it can do");
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	turns(host);
	close(stranger);
	turns(host);
	cr_expect_eq(host->failed, 0, "%s", host->cause);
	stranger = knock(host);
	while (host->ops->arm(host->transport) < 0)
		turns(host);
	cr_expect(is_awake(host), "it hears again");
	close(stranger);
}

/* A thread that sends beside one that sleeps: nobody else would ask the peer for room. */
LIAR_TEST(shm_liars, who_sleeps_is_woken_when_the_ring_is_full)
{
	void *memory;

	cr_assert_eq(frag_alloc(memory_of(host), 2000, &memory), 0);
	cr_assert(send_bytes(host, memory, 2000));
	while (host->ops->arm(host->transport) < 0)
		turns(host);
	cr_assert_not(is_awake(host));
	(void)fill_ring(host, memory);
	cr_expect(is_awake(host), "to ask for room");
	turns(host);
	cr_assert_eq(host->ops->arm(host->transport), 0);
	cr_expect_not(is_awake(host), "the peer has not read anything");
	liar_reads(liar);
	cr_expect_eq(host->ops->arm(host->transport), -EBUSY);
	frag_free(memory_of(host), memory);
}

/* Every allocation fails once. */
Test(shm_liars, short_memory_is_an_error_and_no_crash, .init = set_environment)
{
	int before = count_descriptors();
	bool all_there = false;

	for (int64_t n = 0; !all_there && n < 1000; n++) {
		uint8_t address[FRAGI_HOST_ADDRESS_MAX];
		struct frag_err err = FRAG_ERR_INIT;
		struct host host = {0};
		size_t size;

		errno = 0;
		fragi_alloc_fail_after(n, 1);
		if (host_create(&host) == 0) {
			memcpy(address, host.ops->address(host.transport, &size), 240);
			if (host.ops->connect(host.transport, 2, address, size, &host,
					      &host.endpoint, &err) == 0) {
				turns(&host);
				(void)send_bytes(&host, "text", 4);
				turns(&host);
			}
			all_there = fragi_alloc_fail_off() == 0;
			host_close(&host);
		}
		(void)fragi_alloc_fail_off();
		cr_expect_eq(count_descriptors(), before, "allocation %lld", (long long)n);
	}
	cr_expect(all_there);
}

/* Areas of device memory. */

#define AREA_BYTES ((uint64_t)1 << 20)
#define IN_AREA(number, offset) (((uint64_t)(number) + 1) << 48 | (offset))

/* Memory of the GPU, which the liar shows; its descriptor. */
static int area_create(struct area *out, void **out_memory)
{
	const struct fragi_shared_memory *shared = fragi_memory_of(GPU)->shared;
	struct frag_err err = FRAG_ERR_INIT;
	size_t bytes;
	int fd;

	cr_assert_eq(shared->alloc(GPU, AREA_BYTES, out_memory, &bytes, &err), 0, "%s", err.text);
	*out = (struct area){.bytes = AREA_BYTES};
	cr_assert_eq(shared->show(GPU, *out_memory, &fd, out->gpu, &err), 0, "%s", err.text);
	return fd;
}

static void area_destroy(void *memory, int fd)
{
	fragi_memory_of(GPU)->shared->free(GPU, memory, AREA_BYTES);
	close(fd);
}

static void set_up_gpu(void)
{
	set_environment();
	gpu_open();
}

Test(shm_liars, a_body_in_an_area_is_within_it, .init = set_up_gpu)
{
	static const struct {
		uint64_t offset, bytes;
		bool good;
	} places[] = {
		{IN_AREA(0, 0), AREA_BYTES, true},
		{IN_AREA(0, AREA_BYTES - 1), 1, true},
		{IN_AREA(0, AREA_BYTES - 1), 2, false},
		{IN_AREA(0, 1), AREA_BYTES, false},
		{IN_AREA(0, 0), 0, false},
		{IN_AREA(0, 8), UINT64_MAX - 4, false},
		{IN_AREA(0, (uint64_t)1 << 46), 1, false},
		{IN_AREA(1, 0), 1, false},
		{IN_AREA(63, 0), 1, false},
		{IN_AREA(64, 0), 1, false},
		{IN_AREA(65534, 0), 1, false},
	};
	struct area area;
	void *memory;

	for (size_t i = 0; i < FRAG_COUNT_OF(places); i++) {
		struct host host = {0};
		struct liar liar = {0};
		int fd;

		cr_assert_eq(host_create(&host), 0);
		liar_create(&liar);
		fd = area_create(&area, &memory);
		meet_with(&host, &liar, 1, &area, 1, fd);
		cr_assert_eq(host.failed, 0, "%s", host.cause);
		liar_shows(&liar, 5, places[i].offset, places[i].bytes);
		turns(&host);
		cr_expect_eq(host.arrived, places[i].good, "place %zu", i);
		cr_expect_eq(host.failed, !places[i].good, "place %zu", i);
		if (places[i].good)
			cr_expect_eq(host.kept[0].device.type, FRAG_DEVICE_CUDA);
		all_gone(&host, &liar);
		area_destroy(memory, fd);
		cr_expect_eq(fake.used(), 0);
	}
}

Test(shm_liars, an_area_that_cannot_be_is_refused, .init = set_up_gpu)
{
	struct area good, areas[2];
	void *memory;
	int fd = area_create(&good, &memory), before;
	const struct area wrong[][2] = {
		{{.bytes = AREA_BYTES, .number = 64}},
		{{.bytes = AREA_BYTES, .number = UINT32_MAX}},
		{{.bytes = 0}},
		{{.bytes = ((uint64_t)1 << 46) + 1}},
		{good, good},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(wrong) + 1; i++) {
		struct host host = {0};
		struct liar liar = {0};
		bool too_many = i == FRAG_COUNT_OF(wrong);
		char byte;

		cr_assert_eq(host_create(&host), 0);
		liar_create(&liar);
		before = count_descriptors();
		memcpy(areas, wrong[too_many ? 0 : i], sizeof(areas));
		meet_with(&host, &liar, too_many ? 65 : 2, areas, areas[1].bytes > 0 ? 2 : 1, fd);
		cr_expect_eq(recv(liar.socket, &byte, 1, MSG_DONTWAIT), 0, "%zu: is sent away", i);
		liar_shows(&liar, 5, 4096, 100);
		turns(&host);
		cr_expect_eq(host.arrived, 0, "%zu", i);
		/* the liar's socket, what the host made for its peer, and its end of that */
		cr_expect_leq(count_descriptors(), before + 4, "%zu", i);
		all_gone(&host, &liar);
	}
	area_destroy(memory, fd);
}

/* Its messages come as long as they are somewhere else. */
static void expect_unmapped(const struct area *area, int fd)
{
	struct host host = {0};
	struct liar liar = {0};

	cr_assert_eq(host_create(&host), 0);
	liar_create(&liar);
	meet_with(&host, &liar, 1, area, 1, fd);
	liar_shows(&liar, 5, 4096, 100);
	turns(&host);
	cr_expect_eq(host.arrived, 1);
	liar_shows(&liar, 6, IN_AREA(0, 0), 100);
	turns(&host);
	cr_expect_eq(host.failed, 1);
	cr_expect_str_eq(host.cause, "it wrote to shared memory what no host writes");
	all_gone(&host, &liar);
}

Test(shm_liars, memory_that_is_none_of_a_gpu_is_not_mapped, .init = set_up_gpu)
{
	struct area area = {.bytes = AREA_BYTES, .gpu = "Fake 0"};
	int fd = memfd_create("fake", MFD_CLOEXEC);

	cr_assert_eq(ftruncate(fd, (off_t)AREA_BYTES), 0);
	expect_unmapped(&area, fd);
	close(fd);
	cr_expect_eq(fake.used(), 0);
}

Test(shm_liars, memory_of_a_gpu_that_is_not_used_here_is_not_mapped, .init = set_up_gpu)
{
	struct area area;
	void *memory;
	int fd = area_create(&area, &memory);

	area.gpu[5] = '1';
	expect_unmapped(&area, fd);
	area_destroy(memory, fd);
	cr_expect_eq(fake.used(), 0);
}

/* A host that never says which areas follow is not waited for: it is a guest as any other. */
Test(shm_liars, an_area_that_does_not_come_holds_nobody, .init = set_up_gpu)
{
	struct host host = {0};
	struct liar liar = {0};
	int before;

	cr_assert_eq(host_create(&host), 0);
	liar_create(&liar);
	before = count_descriptors();
	meet_with(&host, &liar, 3, NULL, 0, -1);
	liar_shows(&liar, 5, 4096, 100);
	turns(&host);
	cr_expect_eq(host.arrived, 0);
	close(liar.socket);
	liar.socket = -1;
	turns(&host);
	cr_expect_leq(count_descriptors(), before + 3);
	all_gone(&host, &liar);
}
