// SPDX-License-Identifier: Apache-2.0
/*
 * The floor of shared memory: a bare ring in a memfd between two processes, without operators,
 * queues, credit, order or accounts. A slot holds what the shm module's record does: 128 bytes of
 * header, and the bytes themselves (up to 1 KiB) or where they are.
 *   ring lat BYTES ROUNDS WAIT       us one way: half of a round trip; p50 p99 p99.9, longest
 *   ring paced BYTES ROUNDS HZ WAIT  the same, begun HZ times a second
 *   ring alone BYTES ROUNDS HZ WAIT  us one way, HZ times a second, without an answer: each finds a
 *                                    peer that has slept since the one before
 *   ring bw BYTES MESSAGES WAIT      messages a second
 *   ring wakes ROUNDS WAIT           ns of processor time that the thread takes which wakes
 *   ring touch BYTES KIND            us of the first and of the second writing to fresh memory, of
 *                                    kind 4k, huge (as the heap: huge pages where allowed) or
 *                                    hugetlb (of those that are reserved)
 * WAIT: spin; futex; waitv (futex_waitv); eventfd (ppoll on an epoll descriptor, as the pump waits)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 1024u
#define HEADER_BYTES 128u
#define INLINE_MAX 1024u
#define SLOT_BYTES (HEADER_BYTES + INLINE_MAX)

/* What one process writes for the other. */
struct channel {
	_Alignas(64) _Atomic uint64_t head;
	_Alignas(64) _Atomic uint64_t tail; /* of the other's channel */
	_Alignas(64) _Atomic uint32_t sleeps;
	_Atomic uint32_t other; /* a second futex for futex_waitv, which nobody wakes */
	_Alignas(64) uint8_t slots[SLOTS][SLOT_BYTES];
};

struct side {
	struct channel *own, *peer;
	uint64_t head, tail, seen; /* seen: of the peer's tail */
	int bell, peer_bell, epoll;
	const char *wait;
	uint64_t bytes;
	uint8_t *body;
	int64_t sent_ns; /* written to the next slot, or read from the latest one */
	uint64_t sum;    /* of what was read, so that it is */
};

static void die(const char *what)
{
	fprintf(stderr, "ring: %s\n", what);
	exit(1);
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void *shared(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("no memory");
	return memory;
}

static void sleep_now(struct side *s)
{
	struct pollfd p = {.fd = s->epoll, .events = POLLIN};
	struct timespec t = {.tv_nsec = 500000000};
	uint64_t rings;

	if (strcmp(s->wait, "futex") == 0) {
		syscall(SYS_futex, &s->own->sleeps, FUTEX_WAIT, 1, NULL, NULL, 0);
	} else if (strcmp(s->wait, "waitv") == 0) {
		struct {
			uint64_t value, address;
			uint32_t flags, reserved;
		} waiters[2] = {{1, (uintptr_t)&s->own->sleeps, 2, 0},
				{0, (uintptr_t)&s->own->other, 2, 0}};

		if (syscall(449 /* futex_waitv */, waiters, 2, 0, NULL, 0) < 0 && errno != EAGAIN &&
		    errno != EINTR)
			die("there is no futex_waitv");
	} else if (ppoll(&p, 1, &t, NULL) > 0) {
		(void)!read(s->bell, &rings, sizeof(rings));
	}
}

static void wake(struct side *s)
{
	const uint64_t one = 1;

	if (*s->wait == 's')
		return;
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&s->peer->sleeps, memory_order_relaxed) == 0 ||
	    atomic_exchange(&s->peer->sleeps, 0) == 0)
		return;
	if (*s->wait == 'e')
		(void)!write(s->peer_bell, &one, sizeof(one));
	else
		syscall(SYS_futex, &s->peer->sleeps, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool has_message(struct side *s)
{
	return atomic_load_explicit(&s->peer->head, memory_order_acquire) != s->tail;
}

static bool has_room(struct side *s)
{
	if (s->head - s->seen < SLOTS)
		return true;
	s->seen = atomic_load_explicit(&s->peer->tail, memory_order_acquire);
	return s->head - s->seen < SLOTS;
}

static void wait_for(struct side *s, bool (*condition)(struct side *s))
{
	while (!condition(s)) {
		if (*s->wait == 's') {
#if defined(__x86_64__)
			__builtin_ia32_pause();
#endif
			continue;
		}
		atomic_store(&s->own->sleeps, 1);
		atomic_thread_fence(memory_order_seq_cst);
		if (!condition(s))
			sleep_now(s);
		atomic_store(&s->own->sleeps, 0);
	}
}

static void put(struct side *s)
{
	uint8_t *slot;

	wait_for(s, has_room);
	slot = s->own->slots[s->head % SLOTS];
	memset(slot, (int)s->head, HEADER_BYTES);
	memcpy(slot, &s->sent_ns, sizeof(s->sent_ns));
	if (s->bytes <= INLINE_MAX)
		memcpy(slot + HEADER_BYTES, s->body, s->bytes);
	atomic_store_explicit(&s->own->head, ++s->head, memory_order_release);
	wake(s);
}

static void get(struct side *s)
{
	uint8_t copy[SLOT_BYTES];

	wait_for(s, has_message);
	memcpy(copy, s->peer->slots[s->tail % SLOTS],
	       HEADER_BYTES + (s->bytes <= INLINE_MAX ? s->bytes : 0));
	memcpy(&s->sent_ns, copy, sizeof(s->sent_ns));
	s->sum += copy[sizeof(s->sent_ns)];
	atomic_store_explicit(&s->own->tail, ++s->tail, memory_order_release);
	if (s->tail % (SLOTS / 2) == 0)
		wake(s);
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void until(int64_t ns)
{
	struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

static void print_percentiles(int64_t *ns, int count, double unit)
{
	qsort(ns, (size_t)count, sizeof(*ns), by_size);
	printf("%.3f %.3f %.3f %.3f\n", (double)ns[count / 2] / unit,
	       (double)ns[count * 99 / 100] / unit, (double)ns[count * 999 / 1000] / unit,
	       (double)ns[count - 1] / unit);
}

/* The peer answers each message. period_ns: 0: at once. */
static void trips(struct side *s, int rounds, int64_t period_ns)
{
	int64_t *ns = calloc((size_t)rounds, sizeof(*ns)), start, next = now_ns(CLOCK_MONOTONIC);

	for (int i = -rounds / 10 - 10; i < rounds; i++) {
		if (period_ns > 0)
			until(next += period_ns);
		start = now_ns(CLOCK_MONOTONIC);
		put(s);
		get(s);
		if (i >= 0)
			ns[i] = now_ns(CLOCK_MONOTONIC) - start;
	}
	print_percentiles(ns, rounds, 2e3);
	free(ns);
}

static void answer(struct side *s, int rounds)
{
	for (int i = -rounds / 10 - 10; i < rounds; i++) {
		get(s);
		put(s);
	}
}

static void send_paced(struct side *s, int rounds, int64_t period_ns)
{
	int64_t next = now_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < rounds; i++) {
		until(next += period_ns);
		s->sent_ns = now_ns(CLOCK_MONOTONIC);
		put(s);
	}
}

static void receive_paced(struct side *s, int rounds)
{
	int64_t *ns = calloc((size_t)rounds, sizeof(*ns));

	for (int i = 0; i < rounds; i++) {
		get(s);
		ns[i] = now_ns(CLOCK_MONOTONIC) - s->sent_ns;
	}
	print_percentiles(ns, rounds, 1e3);
	fflush(stdout);
	free(ns);
}

static void stream(struct side *s, int messages)
{
	int64_t start = now_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < messages; i++)
		put(s);
	get(s); /* the other side has them all */
	printf("%.0f\n", messages * 1e9 / (double)(now_ns(CLOCK_MONOTONIC) - start));
}

static void drain(struct side *s, int messages)
{
	for (int i = 0; i < messages; i++)
		get(s);
	put(s);
}

/* What a wake-up costs the thread that wakes: the peer sleeps each time. */
static void wakes(struct side *s, int rounds)
{
	int64_t before, spent = 0, next = now_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < rounds; i++) {
		until(next += 1000000);
		before = now_ns(CLOCK_THREAD_CPUTIME_ID);
		put(s);
		spent += now_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	}
	get(s);
	printf("%.0f\n", (double)spent / rounds);
}

static void between_processes(const char *what, uint64_t bytes, int count, int hz, const char *wait)
{
	struct channel *channels = shared(2 * sizeof(*channels));
	int bells[2] = {eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK)};
	struct epoll_event readable = {.events = EPOLLIN};
	pid_t pid = fork();
	int i = pid == 0;
	struct side s = {
		.own = &channels[i],
		.peer = &channels[1 - i],
		.bell = bells[i],
		.peer_bell = bells[1 - i],
		.epoll = epoll_create1(0),
		.wait = wait,
		.bytes = bytes,
		.body = shared(bytes + 1),
	};
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)i, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	epoll_ctl(s.epoll, EPOLL_CTL_ADD, s.bell, &readable);
	memset(s.body, 1, bytes);
	if (strcmp(what, "bw") == 0)
		pid == 0 ? drain(&s, count) : stream(&s, count);
	else if (strcmp(what, "alone") == 0)
		pid == 0 ? receive_paced(&s, count) : send_paced(&s, count, 1000000000 / hz);
	else if (strcmp(what, "wakes") == 0)
		pid == 0 ? drain(&s, count) : wakes(&s, count);
	else if (pid == 0)
		answer(&s, count);
	else
		trips(&s, count, hz > 0 ? 1000000000 / hz : 0);
	if (pid == 0)
		_exit(s.sum == 1 ? 1 : 0);
	waitpid(pid, NULL, 0);
}

static void touch(uint64_t bytes, const char *kind)
{
	bool huge = strcmp(kind, "huge") == 0, hugetlb = strcmp(kind, "hugetlb") == 0;
	int fd = memfd_create("ring", hugetlb ? MFD_HUGETLB : 0);
	int64_t start, first;
	uint8_t *memory;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		die(strerror(errno));
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		die(strerror(errno));
	if (!hugetlb)
		(void)madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	start = now_ns(CLOCK_MONOTONIC);
	memset(memory, 1, bytes);
	first = now_ns(CLOCK_MONOTONIC);
	memset(memory, 2, bytes);
	printf("%.0f %.0f\n", (double)(first - start) / 1e3,
	       (double)(now_ns(CLOCK_MONOTONIC) - first) / 1e3);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "touch") == 0 && argc == 4)
		touch((uint64_t)atoll(argv[2]), argv[3]);
	else if ((strcmp(what, "paced") == 0 || strcmp(what, "alone") == 0) && argc == 6)
		between_processes(what, (uint64_t)atoll(argv[2]), atoi(argv[3]), atoi(argv[4]),
				  argv[5]);
	else if (strcmp(what, "wakes") == 0 && argc == 4)
		between_processes(what, 8, atoi(argv[2]), 0, argv[3]);
	else if ((strcmp(what, "lat") == 0 || strcmp(what, "bw") == 0) && argc == 5)
		between_processes(what, (uint64_t)atoll(argv[2]), atoi(argv[3]), 0, argv[4]);
	else
		die("usage: ring lat BYTES ROUNDS WAIT | paced|alone BYTES ROUNDS HZ WAIT | bw BYTES MESSAGES WAIT | wakes ROUNDS WAIT | touch BYTES KIND");
	return 0;
}
