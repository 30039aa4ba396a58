// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <base/alloc.h>

#include "shm_liar.h"

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

static void meet(struct host *host, struct liar *liar)
{
	meet_with(host, liar, 0, NULL, 0, -1);
}

/* Everything that the ring can hold. */
static void liar_reads(struct liar *liar)
{
	atomic_fetch_add((_Atomic uint64_t *)(void *)(liar->memory + AT_CONSUMED),
			 RING_BYTES / 2 + 8192);
}

#define ALL_HERE                                                                                   \
	struct host host = {0};                                                                    \
	struct liar liar = {0};                                                                    \
                                                                                                   \
	cr_assert_eq(host_create(&host), 0);                                                       \
	liar_create(&liar);                                                                        \
	meet(&host, &liar);                                                                        \
	cr_assert_eq(host.failed, 0, "%s", host.cause)

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
	struct host host = {0};
	struct liar liar = {0};
	struct hello hello;
	int fds[3];

	cr_assert_eq(host_create(&host), 0);
	liar_create(&liar);
	hello = hello_of(&host, &liar);
	hello.heap_bytes = heap_bytes;
	connect_both(&host, &liar);
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

/* An older frag, whose rings are others: neither its address nor its introduction is taken. */
Test(shm_liars, a_host_of_another_layout_is_refused, .init = set_environment)
{
	uint8_t address[FRAGI_HOST_ADDRESS_MAX];
	struct frag_err err = FRAG_ERR_INIT;
	struct host host = {0};
	struct liar liar = {0};
	struct hello hello;
	size_t size;

	cr_assert_eq(host_create(&host), 0);
	liar_create(&liar);
	size = liar_address(&host, &liar, address);
	cr_assert_eq(fragi_get16(address + AT_LAYOUT), LAYOUT);
	fragi_put16(address + AT_LAYOUT, LAYOUT - 1);
	cr_expect_eq(
		host.ops->connect(host.transport, 2, address, size, &host, &host.endpoint, &err),
		-EPROTO);
	cr_expect_str_eq(
		err.text,
		"the other host's data address has layout 3, this frag knows 4; use the same frag for all workers of a node");
	connect_both(&host, &liar);
	hello = hello_of(&host, &liar);
	hello.layout--;
	say(liar.socket, &hello, sizeof(hello), (const int[]){liar.heap, liar.channel, liar.bell},
	    3);
	turns(&host);
	cr_expect_eq(recv(liar.socket, address, 1, MSG_DONTWAIT), 0, "it is sent away");
	cr_expect_eq(host.failed, 0, "%s", host.cause);
	all_gone(&host, &liar);
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

LIAR_TEST(shm_liars, no_descriptor_of_a_stranger_is_kept)
{
	const struct hello wrong = {.magic = 0x48534646u, .layout = LAYOUT};
	unsigned int before;
	int stranger;
	int fds[5];

	for (int i = 0; i < 5; i++)
		fds[i] = liar->heap;
	before = left_entries("/proc/self/fd");
	for (size_t count = 1; count <= 5; count++) {
		for (int empty = 0; empty < 2; empty++) {
			stranger = knock(host);
			say(stranger, &wrong, empty != 0 ? 0 : sizeof(wrong), fds, count);
			turns(host);
			close(stranger);
			turns(host);
			cr_expect_eq(left_entries("/proc/self/fd"), before, "%zu, %d", count,
				     empty);
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

/*
 * Its ring is full of a record that it never takes back, and it reads nothing: what is returned to
 * it has nowhere to go.
 */
LIAR_TEST(shm_liars, a_peer_that_shows_more_than_a_host_can_is_lost)
{
	const uint64_t places[] = {0, 5000};
	uint32_t most = 1u << 20; /* messages that a host can have shown at a time */

	while (liar->produced < RING_BYTES)
		liar_writes(liar, RECORD_MESSAGE, 1, 7, places, 2);
	liar_stores(liar, 0, RECORD_MESSAGE | 1 << 8);
	while (host->failed == 0 && host->arrived < 2 * most)
		(void)turn(host);
	cr_expect_eq(host->failed, 1);
	cr_expect_str_eq(host->cause, "it wrote to shared memory what no host writes");
	cr_expect_geq(host->arrived, most, "as many may be on their way back");
	cr_expect_leq(host->arrived, most + RING_BYTES / 8, "and those in the ring");
	release_kept(host);
}

LIAR_TEST(shm_liars, a_peer_that_speaks_where_none_speaks_is_lost)
{
	cr_assert_eq(send(liar->socket, "x", 1, MSG_NOSIGNAL), 1);
	turns(host);
	cr_expect_eq(host->failed, 1);
}

/* Limits. */

static int works_within(__rlimit_resource_t resource, rlim_t limit)
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
	left_own.descriptors = 1;
	stranger = knock(host);
	none.rlim_cur = (rlim_t)stranger + 1;
	for (int fd = dup(0); fd >= 0 && fd < stranger; fd = dup(0))
		left_own.descriptors++; /* those below are in use as well */
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
	unsigned int before = left_entries("/proc/self/fd");
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
		cr_expect_eq(left_entries("/proc/self/fd"), before, "allocation %lld",
			     (long long)n);
	}
	cr_expect(all_there);
}
