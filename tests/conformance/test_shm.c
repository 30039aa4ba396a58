// SPDX-License-Identifier: Apache-2.0
/* Hosts that share memory: what is shared, what is copied, and what strangers and liars can do. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include <base/handover.h>
#include <base/stamp.h>
#include <data/allocator.h>

static struct frag_message *message_with(struct frag_tensor *tensor)
{
	struct frag_message *message = frag_message_create();

	cr_assert_eq(frag_message_add_tensor(message, "", tensor), 0);
	fragi_message_share(message);
	return message;
}

/* Sends `bytes` of `value` from memory of the sender's, and returns what the receiver took. */
static struct frag_message *pass(struct pair *pair, struct frag_resource *memory, int64_t bytes,
				 uint8_t value, uint8_t **out_sent)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_tensor *tensor;
	struct frag_message *taken;

	cr_assert_eq(frag_tensor_create(memory, u8, 1, &bytes, &tensor), 0);
	*out_sent = frag_tensor_writable(tensor);
	memset(*out_sent, value, (size_t)bytes);
	cr_assert_eq(pair->tx->ops->send(pair->tx, message_with(tensor), fragi_stamp()), 0);
	pair_settle(pair);
	taken = fragi_rx_take(pair->rx, fragi_stamp());
	cr_assert_not_null(taken);
	return taken;
}

static const uint8_t *bytes_of(const struct frag_message *message)
{
	return frag_tensor_data(frag_message_tensor(message, NULL));
}

PAIR_TEST(shm, a_body_in_shared_memory_is_not_copied, &kind_shm, .capacity = 2)
{
	struct frag_message *message;
	uint8_t *sent;

	message = pass(pair, pair_memory(pair, 0), 100000, 'a', &sent);
	cr_expect_eq(bytes_of(message)[99999], 'a');
	sent[99999] = 'b';
	cr_expect_eq(bytes_of(message)[99999], 'b', "the receiver reads the sender's memory");
	frag_message_unref(message);
}

PAIR_TEST(shm, a_receiver_cannot_write_to_what_it_got, &kind_shm, .capacity = 2)
{
	struct frag_message *message;
	uint8_t *sent;
	int status;
	pid_t pid;

	message = pass(pair, pair_memory(pair, 0), 100000, 'a', &sent);
	pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		*(volatile uint8_t *)(uintptr_t)bytes_of(message) = 'x';
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	cr_expect_eq(sent[0], 'a');
	frag_message_unref(message);
}

PAIR_TEST(shm, other_memory_is_copied_once, &kind_shm, .capacity = 2)
{
	struct frag_message *message;
	uint8_t *sent;

	message = pass(pair, NULL, 100000, 'a', &sent);
	cr_expect_eq(bytes_of(message)[99999], 'a');
	cr_expect_neq((void *)(uintptr_t)bytes_of(message), sent);
	frag_message_unref(message);
}

PAIR_TEST(shm, the_sender_has_its_memory_back_when_the_receiver_lets_go, &kind_shm, .capacity = 2)
{
	struct frag_message *message;
	void *again;
	uint8_t *sent;

	message = pass(pair, pair_memory(pair, 0), 100000, 'a', &sent);
	cr_assert_eq(frag_alloc(pair_memory(pair, 0), 100000, &again), 0);
	cr_expect_neq(again, (void *)sent, "the receiver still reads it");
	frag_free(pair_memory(pair, 0), again);
	frag_message_unref(message);
	pair_settle(pair);
	cr_expect_eq(fragi_remote_tx_kept(pair->tx), 0);
	cr_assert_eq(frag_alloc(pair_memory(pair, 0), 100000, &again), 0);
	cr_expect_eq(again, (void *)sent, "the block that was given back last");
	frag_free(pair_memory(pair, 0), again);
}

/* A message outlives the connection that it came over, and its sender. */
Test(shm, a_message_stays_whole_when_its_sender_is_gone, .init = set_environment)
{
	struct pair pair = {.capacity = 2};
	struct frag_message *message;
	uint8_t *sent;

	pair_open(&pair, &kind_shm);
	message = pass(&pair, pair_memory(&pair, 0), 1 << 20, 'a', &sent);
	pair_close(&pair);
	for (int i = 0; i < 1 << 20; i += 4096)
		cr_assert_eq(bytes_of(message)[i], 'a');
	frag_message_unref(message);
}

PAIR_TEST(shm, a_full_ring_holds_messages_back_and_loses_none, &kind_shm, .capacity = 2000)
{
	struct frag_message *message;

	for (int i = 0; i < 2000; i++) {
		message = message_with(bytes_tensor(700, (uint8_t)i));
		cr_assert_eq(pair->tx->ops->send(pair->tx, message, fragi_stamp()), 0);
	}
	pair_settle(pair);
	for (int i = 0; i < 2000; i++) {
		message = fragi_rx_take(pair->rx, fragi_stamp());
		cr_assert_not_null(message, "message %d", i);
		cr_assert(tensor_holds(frag_message_tensor(message, NULL), 700, (uint8_t)i));
		frag_message_unref(message);
		pair_turn(pair);
	}
	check_balance(pair, 0);
}

/* The heap. */

PAIR_TEST(shm, memory_of_any_size_is_aligned_and_its_own, &kind_shm)
{
	uint8_t *blocks[200];
	size_t size;

	for (size_t i = 0; i < 200; i++) {
		size = 1 + i * i * 7;
		cr_assert_eq(frag_alloc(pair_memory(pair, 0), size, (void **)&blocks[i]), 0);
		cr_assert_eq((uintptr_t)blocks[i] % 64, 0, "%zu bytes", size);
		memset(blocks[i], (int)i, size);
	}
	for (size_t i = 0; i < 200; i++) {
		size = 1 + i * i * 7;
		cr_expect(blocks[i][0] == i && blocks[i][size - 1] == i, "%zu bytes", size);
		frag_free(pair_memory(pair, 0), blocks[i]);
	}
	cr_expect_eq(frag_alloc(pair_memory(pair, 0), SIZE_MAX / 4, (void **)&blocks[0]), -ENOMEM);
}

PAIR_TEST(shm, memory_that_was_given_back_is_used_again, &kind_shm)
{
	void *blocks[4], *again;
	bool is_known = false;

	for (int i = 0; i < 4; i++)
		cr_assert_eq(frag_alloc(pair_memory(pair, 0), 16 << 20, &blocks[i]), 0);
	for (int i = 0; i < 4; i++)
		frag_free(pair_memory(pair, 0), blocks[i]);
	for (int round = 0; round < 1000; round++) {
		cr_assert_eq(frag_alloc(pair_memory(pair, 0), 16 << 20, &again), 0);
		is_known = false;
		for (int i = 0; i < 4; i++)
			is_known = is_known || again == blocks[i];
		cr_assert(is_known, "round %d", round);
		frag_free(pair_memory(pair, 0), again);
	}
}

/* Liars: what a peer writes to its own memory. */

struct channel {
	uint8_t *memory;
	size_t bytes;
};

/* Where this process has mapped the channels that it writes. */
static int find_channels(struct channel *out, int most)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long begin, end;
	char line[512];
	int count = 0;

	while (fgets(line, sizeof(line), maps) != NULL && count < most)
		if (strstr(line, "memfd:frag-channel") != NULL && strstr(line, "rw-s") != NULL &&
		    sscanf(line, "%lx-%lx", &begin, &end) == 2)
			out[count++] = (struct channel){(uint8_t *)begin, end - begin};
	fclose(maps);
	return count;
}

/* Half of it where the first records lie, in the mapping that begins with the ring. */
static void scribble(const struct channel *channel, unsigned int *seed)
{
	static const size_t counters[] = {0, 8, 64, 128, 132};
	size_t bytes = rand_r(seed) % 2 == 0 ? 32768 : channel->bytes - 8;
	size_t at = rand_r(seed) % 3 == 0 ? counters[(size_t)rand_r(seed) % FRAG_COUNT_OF(counters)]
					  : (size_t)rand_r(seed) % bytes & ~(size_t)7;
	uint64_t value = (uint64_t)rand_r(seed) << (rand_r(seed) % 48);

	memcpy(channel->memory + at, &value, sizeof(value));
}

/* In a process of its own: whatever happens to the connection, the process goes on. */
static int survives_scribbles(unsigned int seed)
{
	struct pair pair = {.capacity = 4};
	struct channel channels[8];
	struct frag_message *message;
	int count;

	pair_open(&pair, &kind_shm);
	count = find_channels(channels, 8);
	if (count < 2)
		return 2;
	for (int i = 0; i < 300 && atomic_load(&pair.lost[0]) + atomic_load(&pair.lost[1]) == 0;
	     i++) {
		message = message_with(bytes_tensor(i % 2 == 0 ? 500 : 5000, (uint8_t)i));
		if (pair.tx->ops->room(pair.tx) > 0)
			(void)pair.tx->ops->send(pair.tx, message, fragi_stamp());
		else
			frag_message_unref(message);
		for (int k = rand_r(&seed) % 4; k > 0; k--)
			scribble(&channels[rand_r(&seed) % count], &seed);
		pair_turn(&pair);
		while ((message = fragi_rx_take(pair.rx, fragi_stamp())) != NULL) {
			if (rand_r(&seed) % 2 == 0)
				(void)frag_message_tensor(message, NULL);
			frag_message_unref(message);
		}
	}
	pair_close(&pair);
	return 0;
}

Test(shm, whatever_a_peer_writes_ends_the_connection_at_worst, .init = set_environment,
     .timeout = 120)
{
	int status;
	pid_t pid;

	for (unsigned int seed = 1; seed <= 60; seed++) {
		pid = fork();
		if (pid == 0) {
			alarm(30);
			_exit(survives_scribbles(seed));
		}
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "seed %u: status %x", seed,
			  (unsigned int)status);
	}
}

/* Strangers that connect. */

#define AT_NAME 16 /* in the address of a host */
#define AT_SECRET 32
#define NAME_BYTES 16

struct hello {
	uint32_t magic, layout;
	uint8_t secret[16], name[16];
	uint64_t heap_bytes;
	uint32_t areas, zero;
};

static int knock(const struct pair *pair, int side)
{
	const struct fragi_transport *transport = pair_transport(pair, side, 0);
	size_t size, used;
	const uint8_t *address = transport->ops->address(transport, &size);
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	used = (size_t)snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "frag-shm-");
	for (int i = 0; i < NAME_BYTES; i++)
		used += (size_t)snprintf(at.sun_path + 1 + used, sizeof(at.sun_path) - 1 - used,
					 "%02x", address[AT_NAME + i]);
	if (connect(fd, (const struct sockaddr *)&at,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + used)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Whether the host has closed the connection after some of its rounds. */
static bool is_sent_away(struct pair *pair, int fd)
{
	struct pollfd ended = {.fd = fd, .events = POLLIN};
	int64_t until = fragi_now_ns() + 5000000000;
	char byte;

	while (fragi_now_ns() < until) {
		pair_turn(pair);
		if (poll(&ended, 1, 1) == 1)
			return recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
	}
	return false;
}

static void expect_working(struct pair *pair)
{
	cr_assert_eq(send_value(pair, 7), 0);
	pair_settle(pair);
	cr_assert_eq(take_value(pair), 7);
}

PAIR_TEST(shm, who_does_not_know_the_secret_is_sent_away, &kind_shm)
{
	struct hello hello = {.magic = 0x48534646u, .layout = 4, .heap_bytes = 65536};
	int fds[3], fd;

	for (int i = 0; i < 3; i++)
		fds[i] = memfd_create("stranger", MFD_CLOEXEC);
	fd = knock(pair, 0);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fragi_handover_send(fd, &hello, sizeof(hello), fds, 3), 0);
	cr_expect(is_sent_away(pair, fd));
	expect_working(pair);
	close(fd);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

PAIR_TEST(shm, a_thousand_silent_connections_keep_nobody_out, &kind_shm)
{
	struct rlimit files = {0};
	int others[1000], count = 0, wanted;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	/* this process has both ends, and other files */
	wanted = files.rlim_cur < 1500 ? (int)files.rlim_cur - 500 : 1000;
	for (int i = 0; i < wanted; i++) {
		others[count] = knock(pair, 0);
		count += others[count] >= 0;
		pair_turn(pair);
	}
	cr_expect_gt(count, wanted * 9 / 10);
	expect_working(pair);
	cr_expect(is_sent_away(pair, others[0]), "the oldest goes");
	for (int i = 0; i < count; i++)
		close(others[i]);
}

Test(shm, another_user_is_sent_away, .init = set_environment)
{
	struct pair pair = {0};
	int status, fd, pipes[2];
	pid_t pid;
	char byte;

	if (geteuid() != 0)
		cr_skip_test("only root can become another user");
	pair_open(&pair, &kind_shm);
	cr_assert_eq(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		struct pollfd ended = {.events = POLLIN};

		if (setuid(65534) < 0)
			_exit(2);
		fd = knock(&pair, 0);
		ended.fd = fd;
		(void)!write(pipes[1], "k", 1);
		_exit(poll(&ended, 1, 10000) == 1 && recv(fd, &byte, 1, 0) <= 0 ? 0 : 1);
	}
	cr_assert_eq(read(pipes[0], &byte, 1), 1);
	for (status = -1; waitpid(pid, &status, WNOHANG) == 0;)
		pair_turn(&pair);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect_working(&pair);
	pair_close(&pair);
	close(pipes[0]);
	close(pipes[1]);
}

/* Connects host 0 to an address of host 1 that was changed. */
static int connect_changed(struct pair *pair, size_t at, const void *bytes, size_t count,
			   struct frag_err *err)
{
	const struct fragi_transport *transport;
	struct fragi_remote_endpoint *endpoint;
	struct fragi_remote_peer *peer;
	uint8_t address[FRAGI_HOST_ADDRESS_MAX];
	size_t size;
	int r;

	transport = pair_transport(pair, 1, 0);
	memcpy(address, transport->ops->address(transport, &size), 240);
	memcpy(address + at, bytes, count);
	fragi_pump_lock(pair->pump[0]);
	cr_assert_eq(fragi_remote_peer_create(pair->remote[0], 9, 1, &peer), 0);
	r = fragi_remote_connect(peer, "shm", address, size, &endpoint, err);
	fragi_pump_unlock(pair->pump[0]);
	return r;
}

PAIR_TEST(shm, hosts_that_cannot_share_memory_are_told_why, &kind_shm)
{
	struct frag_err err = FRAG_ERR_INIT;
	const uint32_t other_user = 12345;

	cr_expect_lt(connect_changed(pair, 48, "another machine", 16, &err), 0);
	cr_expect_not_null(strstr(err.text, "is on another machine"), "%s", err.text);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_lt(connect_changed(pair, 112, "another namespace", 18, &err), 0);
	cr_expect_not_null(strstr(err.text, "in another network namespace"), "%s", err.text);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_lt(connect_changed(pair, 8, &other_user, 4, &err), 0);
	cr_expect_not_null(strstr(err.text, "runs as user 12345"), "%s", err.text);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_lt(connect_changed(pair, 0, "junk", 4, &err), 0);
	cr_expect_not_null(strstr(err.text, "malformed"), "%s", err.text);
}

/* Sleep: a round that finds nothing must not take the wake-up of a thread that sleeps. */
PAIR_TEST(shm, a_wake_up_is_not_lost_beside_a_round_that_finds_nothing, &kind_shm)
{
	struct fragi_remote *receiver;

	pair_settle(pair);
	receiver = pair->remote[1];
	for (int i = 0; i < 20; i++) {
		struct pollfd fd = {.fd = fragi_remote_pump_ops.fd(receiver), .events = POLLIN};

		fragi_pump_lock(pair->pump[1]);
		while (fragi_remote_pump_ops.arm(receiver) < 0)
			fragi_remote_pump_ops.progress(receiver, fragi_now_ns());
		if (fragi_remote_pump_ops.progress(receiver, fragi_now_ns()) > 0)
			while (fragi_remote_pump_ops.arm(receiver) < 0)
				fragi_remote_pump_ops.progress(receiver, fragi_now_ns());
		fragi_pump_unlock(pair->pump[1]);
		cr_assert_eq(send_value(pair, i), 0);
		cr_assert_eq(poll(&fd, 1, 5000), 1, "round %d", i);
		pair_settle(pair);
		cr_assert_eq(take_value(pair), i);
		pair_settle(pair);
	}
}

/* Bells. */

#define NO_BEATS_NS INT64_C(1000000000000)

/* What the bells of this process have counted, and other eventfds that are idle meanwhile. */
static uint64_t rings(void)
{
	const struct dirent *entry;
	DIR *folder = opendir("/proc/self/fdinfo");
	char path[300], text[512];
	uint64_t sum = 0, count;
	FILE *file;

	cr_assert_not_null(folder);
	while ((entry = readdir(folder)) != NULL) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", entry->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		while (fgets(text, sizeof(text), file) != NULL)
			if (sscanf(text, "eventfd-count: %" SCNx64, &count) == 1)
				sum += count;
		fclose(file);
	}
	closedir(folder);
	return sum;
}

/* The host is about to sleep. */
static void arm(const struct pair *pair, int side)
{
	fragi_pump_lock(pair->pump[side]);
	while (fragi_remote_pump_ops.arm(pair->remote[side]) < 0)
		fragi_remote_pump_ops.progress(pair->remote[side], fragi_now_ns());
	fragi_pump_unlock(pair->pump[side]);
}

PAIR_TEST(shm, a_host_is_rung_when_it_sleeps_and_only_once, &kind_shm, .capacity = 8,
	  .dead_ns = NO_BEATS_NS)
{
	uint64_t before;

	pair_settle(pair);
	before = rings();
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(send_value(pair, i), 0);
		pair_settle(pair);
		cr_assert_eq(take_value(pair), i);
	}
	pair_settle(pair);
	cr_expect_eq(rings(), before, "both were awake");
	arm(pair, 1);
	cr_assert_eq(send_value(pair, 100), 0);
	cr_expect_gt(rings(), before);
	before = rings();
	cr_assert_eq(send_value(pair, 101), 0);
	cr_expect_eq(rings(), before, "it was rung already");
}

PAIR_TEST(shm, memory_that_is_given_back_does_not_wake_the_sender, &kind_shm, .capacity = 2,
	  .dead_ns = NO_BEATS_NS)
{
	struct frag_message *message;
	uint64_t before;
	uint8_t *sent;

	message = pass(pair, pair_memory(pair, 0), 100000, 'a', &sent);
	pair_settle(pair);
	cr_assert_eq(fragi_remote_tx_kept(pair->tx), 1);
	arm(pair, 0);
	before = rings();
	frag_message_unref(message);
	fragi_pump_lock(pair->pump[1]);
	for (int i = 0; i < 10; i++)
		fragi_remote_pump_ops.progress(pair->remote[1], fragi_now_ns());
	fragi_pump_unlock(pair->pump[1]);
	cr_expect_eq(rings(), before);
	fragi_pump_lock(pair->pump[0]);
	fragi_remote_pump_ops.progress(pair->remote[0], fragi_now_ns());
	fragi_pump_unlock(pair->pump[0]);
	cr_expect_eq(fragi_remote_tx_kept(pair->tx), 0, "the sender's next round finds it");
}

static bool is_eventfd(int fd)
{
	char path[64], target[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 &&
	       strcmp(target, "anon_inode:[eventfd]") == 0;
}

/* As full as an eventfd gets. */
static void fill(int fd)
{
	uint64_t count = 0, more;

	(void)!read(fd, &count, sizeof(count));
	more = UINT64_MAX - 1;
	cr_assert_eq(write(fd, &more, sizeof(more)), sizeof(more));
}

Test(shm, a_bell_that_is_full_wakes_all_the_same, .init = set_environment)
{
	struct pair pair = {.dead_ns = NO_BEATS_NS};
	struct pollfd fd = {.events = POLLIN};
	bool others[1024];

	for (int i = 0; i < 1024; i++)
		others[i] = fcntl(i, F_GETFD) >= 0;
	pair_open(&pair, &kind_shm);
	pair_settle(&pair);
	fd.fd = fragi_remote_pump_ops.fd(pair.remote[1]);
	arm(&pair, 1);
	for (int i = 0; i < 1024; i++)
		if (!others[i] && is_eventfd(i))
			fill(i);
	cr_assert_eq(poll(&fd, 1, 5000), 1);
	pair_settle(&pair);
	arm(&pair, 1);
	cr_assert_eq(poll(&fd, 1, 0), 0, "nothing has happened since");
	cr_assert_eq(send_value(&pair, 1), 0);
	cr_expect_eq(poll(&fd, 1, 5000), 1);
	pair_settle(&pair);
	cr_expect_eq(take_value(&pair), 1);
	pair_close(&pair);
}
