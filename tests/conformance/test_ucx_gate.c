// SPDX-License-Identifier: Apache-2.0
/*
 * The gate below UCX: what a preface proves, and what becomes of connections to a data port that
 * bring none, beside a healthy edge.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../libfrag/modules/ucx/module.h"
#include "descriptors.h"
#include "pair.h"
#include "uct_put.h"

#define PATIENCE_MS 30000

/* The preface alone. */

static const uint8_t key[UCX_GATE_KEY_BYTES] = "the key of the application";
static const struct ucx_ends some_ends = {.from = "from", .to = "to", .identity = "the host"};

static void preface_of(uint32_t number, const struct ucx_ends *ends, uint8_t *bytes)
{
	memset(bytes, 7, UCX_PREFACE_BYTES);
	memcpy(bytes, &number, sizeof(number));
	cr_assert_eq(ucx_preface_make(key, ends, bytes), 0);
}

Test(ucx_preface, it_admits_one_connection)
{
	struct ucx_judge judge = {.key = key};
	uint8_t bytes[UCX_PREFACE_BYTES];

	preface_of(1, &some_ends, bytes);
	cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)), UCX_ADMITTED);
	cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)), UCX_REFUSED_REPLAYED);
	preface_of(2, &some_ends, bytes);
	cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)), UCX_ADMITTED);
	ucx_judge_fini(&judge);
}

Test(ucx_preface, every_bit_of_it_counts)
{
	struct ucx_judge judge = {.key = key};
	uint8_t bytes[UCX_PREFACE_BYTES];

	preface_of(1, &some_ends, bytes);
	for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)),
			     UCX_REFUSED_FORGED, "bit %zu", bit);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t size = 0; size < sizeof(bytes); size++)
		cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, size),
			     size == 0 ? UCX_REFUSED_SILENT : UCX_REFUSED_SHORT);
	cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)), UCX_ADMITTED);
	ucx_judge_fini(&judge);
}

/* The port counts as the address does, and the host that listens there now as the one before. */
Test(ucx_preface, it_is_worth_nothing_between_other_ends)
{
	struct ucx_judge judge = {.key = key};
	struct ucx_ends ends = some_ends;
	uint8_t bytes[UCX_PREFACE_BYTES], *at = (uint8_t *)&ends;

	preface_of(1, &some_ends, bytes);
	for (size_t i = 0; i < sizeof(ends); i++) {
		at[i] ^= 1;
		cr_expect_eq(ucx_judge(&judge, &ends, bytes, sizeof(bytes)), UCX_REFUSED_FORGED,
			     "byte %zu", i);
		at[i] ^= 1;
	}
	cr_expect_eq(ucx_judge(&judge, &ends, bytes, sizeof(bytes)), UCX_ADMITTED);
	ucx_judge_fini(&judge);
}

/* Where the sender's end is translated on the way; the receiver's end still counts. */
Test(ucx_preface, a_sender_behind_nat_leaves_its_end_out)
{
	struct ucx_judge judge = {.key = key};
	struct ucx_ends ends = some_ends;
	uint8_t bytes[UCX_PREFACE_BYTES];

	memset(ends.from, 0, sizeof(ends.from));
	preface_of(1, &ends, bytes);
	ends = some_ends;
	ends.to[0] ^= 1;
	cr_expect_eq(ucx_judge(&judge, &ends, bytes, sizeof(bytes)), UCX_REFUSED_FORGED);
	cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)), UCX_ADMITTED);
	cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)), UCX_REFUSED_REPLAYED);
	ucx_judge_fini(&judge);
}

Test(ucx_preface, another_key_makes_another_one)
{
	uint8_t data_key[FRAGI_DATA_KEY_BYTES] = "the data key", keys[2][UCX_GATE_KEY_BYTES];
	uint8_t bytes[UCX_PREFACE_BYTES] = "some nonce";
	struct ucx_judge judge = {.key = keys[1]};

	cr_assert_eq(ucx_gate_key(data_key, keys[0]), 0);
	data_key[FRAGI_DATA_KEY_BYTES - 1] ^= 1;
	cr_assert_eq(ucx_gate_key(data_key, keys[1]), 0);
	cr_assert_eq(ucx_preface_make(keys[0], &some_ends, bytes), 0);
	cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)), UCX_REFUSED_FORGED);
}

/* Of the key of the application as of the one that is made of it. */
Test(ucx_preface, every_bit_of_a_key_counts)
{
	uint8_t data_key[FRAGI_DATA_KEY_BYTES] = "of the application", made[UCX_GATE_KEY_BYTES];
	uint8_t other[UCX_GATE_KEY_BYTES], bytes[UCX_PREFACE_BYTES];
	struct ucx_judge judge = {.key = other};

	cr_assert_eq(ucx_gate_key(data_key, made), 0);
	for (size_t bit = 0; bit < 8 * sizeof(data_key); bit++) {
		data_key[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(ucx_gate_key(data_key, other), 0);
		cr_expect_neq(memcmp(made, other, sizeof(made)), 0, "bit %zu", bit);
		data_key[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	preface_of(1, &some_ends, bytes);
	memcpy(other, key, sizeof(other));
	for (size_t bit = 0; bit < 8 * sizeof(other); bit++) {
		other[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)),
			     UCX_REFUSED_FORGED, "bit %zu", bit);
		other[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)), UCX_ADMITTED);
	ucx_judge_fini(&judge);
}

Test(ucx_preface, none_of_many_is_forgotten)
{
	enum { MANY = 2000 };
	struct ucx_judge judge = {.key = key};
	uint8_t bytes[UCX_PREFACE_BYTES];

	for (uint32_t i = 0; i < MANY; i++) {
		preface_of(i, &some_ends, bytes);
		cr_assert_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)), UCX_ADMITTED);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		preface_of(i, &some_ends, bytes);
		cr_assert_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)),
			     UCX_REFUSED_REPLAYED);
	}
	judge.count = UCX_ADMITTED_MAX;
	preface_of(MANY, &some_ends, bytes);
	cr_expect_eq(ucx_judge(&judge, &some_ends, bytes, sizeof(bytes)), UCX_REFUSED_FULL);
	ucx_judge_fini(&judge);
}

/* Real connections to the data port of side 1 of a pair. */

static struct sockaddr_in data_port(const struct pair *pair)
{
	const struct fragi_transport *transport = pair_transport(pair, 1, 0);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	const uint8_t *bytes;
	size_t size;

	bytes = transport->ops->address(transport, &size);
	cr_assert_eq(bytes[UCX_ADDRESS_ENDS_AT - 1], 1, "it listens on lo alone");
	memcpy(&address.sin_port, bytes + UCX_ADDRESS_ENDS_AT + 16, 2);
	return address;
}

static int connect_to(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(connect(fd, (const struct sockaddr *)address, sizeof(*address)), 0, "%s",
		     strerror(errno));
	return fd;
}

static int listen_on(struct sockaddr_in *out_address)
{
	socklen_t size = sizeof(*out_address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*out_address =
		(struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	cr_assert_eq(bind(fd, (struct sockaddr *)out_address, size), 0);
	cr_assert_eq(listen(fd, 8), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)out_address, &size), 0);
	return fd;
}

/* Turns the pair until the other end has closed it; no byte comes before. */
static bool is_closed(struct pair *pair, int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	char byte;

	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		pair_turn(pair);
		if (poll(&wait, 1, 1) == 1)
			return recv(fd, &byte, 1, 0) <= 0;
	}
	return false;
}

static void expect_working(struct pair *pair)
{
	static int64_t number;

	cr_assert_eq(send_value(pair, ++number), 0);
	pair_settle(pair);
	cr_expect_eq(take_value(pair), number);
	cr_expect_eq(pair->lost[0] + pair->lost[1] + pair->faults[0] + pair->faults[1], 0);
}

static void send_and_close(struct pair *pair, const void *bytes, size_t size)
{
	struct sockaddr_in address = data_port(pair);
	int fd = connect_to(&address);

	cr_assert_eq(send(fd, bytes, size, 0), (ssize_t)size);
	cr_expect(is_closed(pair, fd));
	close(fd);
	expect_working(pair);
}

Test(ucx_gate, strangers_are_closed, .init = set_environment)
{
	uint8_t magic[64] = {0x78, 0x56, 0x34, 0x12, 0xbe, 0xba, 0xfe, 0xca};
	struct pair pair = {0};

	memset(magic + 8, 0xff, sizeof(magic) - 8);
	pair_open(&pair, &kind_ucx);
	expect_working(&pair);
	send_and_close(&pair, magic, 24); /* which makes UCX 1.13 abort */
	send_and_close(&pair, magic, 1);
	send_and_close(&pair, magic, 47);
	send_and_close(&pair, magic, 48);
	send_and_close(&pair, magic, 64);
	pair_close(&pair);
}

/* A third host of the application. */

struct third {
	struct fragi_pump *pump;
	struct fragi_remote *remote;
	_Atomic uint32_t ready;
};

static void on_ready(void *arg, uint32_t host)
{
	atomic_fetch_add((_Atomic uint32_t *)arg, 1);
}

static struct fragi_remote_endpoint *
connect_hosts(struct fragi_remote *from, struct fragi_remote *to, uint32_t number, uint64_t epoch)
{
	const struct fragi_transport *there = fragi_remote_transport(to, "ucx");
	struct fragi_remote_endpoint *endpoint;
	struct fragi_remote_peer *peer;
	struct frag_err err = FRAG_ERR_INIT;
	const void *address;
	size_t size;

	address = there->ops->address(there, &size);
	cr_assert_eq(fragi_remote_peer_create(from, number, epoch, &peer), 0);
	cr_assert_eq(fragi_remote_connect(peer, "ucx", address, size, &endpoint, &err), 0, "%s",
		     err.text);
	return endpoint;
}

/* Whether a host with this key and side 1 of the pair become each other's peers. */
static bool third_joins(struct pair *pair, const uint8_t *data_key)
{
	struct third third = {0};
	struct fragi_remote_config config = {.host = 3,
					     .epoch = 33,
					     .data_key = data_key,
					     .arg = &third.ready,
					     .peer_ready = on_ready};
	const struct fragi_edge_config edge = {.flow = 50,
					       .window_messages = 4,
					       .window_bytes = FRAGI_WINDOW_BYTES,
					       .message_bytes_max = FRAGI_MESSAGE_BYTES_MAX,
					       .policy = FRAG_POLICY_BLOCK};
	static struct fragi_flow_row rows[2];
	const struct fragi_transport_ops *ops;
	struct fragi_tx *tx;
	struct fragi_rx *rx;
	struct frag_err err = FRAG_ERR_INIT;
	int64_t until = fragi_now_ns() + (int64_t)PATIENCE_MS * 1000000;

	cr_assert_eq(fragi_pump_create(&third.pump), 0);
	config.pump = third.pump;
	cr_assert_eq(fragi_remote_create(&config, &third.remote), 0);
	cr_assert_eq(fragi_transport_open("ucx", &ops, &err), 0);
	cr_assert_eq(fragi_remote_open(third.remote, ops, &err), 0, "%s", err.text);
	cr_assert_eq(fragi_remote_tx_create(connect_hosts(third.remote, pair->remote[1], 2, 11),
					    &edge, &rows[0], &tx),
		     0);
	cr_assert_eq(fragi_remote_rx_create(connect_hosts(pair->remote[1], third.remote, 3, 33),
					    &edge, &rows[1], &rx),
		     0);
	while (atomic_load(&third.ready) == 0 && atomic_load(&pair->lost[1]) == 0 &&
	       fragi_now_ns() < until) {
		pair_turn(pair);
		fragi_pump_lock(third.pump);
		(void)fragi_remote_pump_ops.progress(third.remote, fragi_now_ns());
		fragi_pump_unlock(third.pump);
	}
	fragi_remote_destroy(third.remote);
	fragi_pump_destroy(third.pump);
	return atomic_load(&third.ready) == 1;
}

/* A host of the same application connects while so many connections say nothing. */
Test(ucx_gate, silent_connections_keep_nobody_out, .init = set_environment)
{
	enum { SILENT = 1000, OTHERS = 300 };
	struct sockaddr_in address;
	struct pair pair = {0};
	struct rlimit limit;
	int fds[SILENT], count = SILENT;

	/* valgrind grants fewer descriptors. */
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < SILENT + OTHERS)
		limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < SILENT + OTHERS)
		count = (int)limit.rlim_cur - OTHERS;
	if (count <= 100)
		cr_skip_test("it needs 400 descriptors");
	pair_open(&pair, &kind_ucx);
	address = data_port(&pair);
	for (int i = 0; i < count; i++)
		fds[i] = connect_to(&address);
	cr_expect(third_joins(&pair, pair_key));
	expect_working(&pair);
	for (int i = 0; i < count; i++)
		close(fds[i]);
	expect_working(&pair);
	pair_close(&pair);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* A network of its own in which a socket listens for 16 connections at most. */
static bool enter_small_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	if (unshare(CLONE_NEWNET) < 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	write_text("/proc/sys/net/core/somaxconn", "16");
	return true;
}

/*
 * The kernel then does without TCP_DEFER_ACCEPT (SYN cookies): connections that say nothing come at
 * once and are refused, while a host's preface comes with the segment that makes its connection.
 */
Test(ucx_gate, a_flood_beyond_the_backlog_keeps_nobody_out, .init = set_environment)
{
	enum { SILENT = 200 };
	struct sockaddr_in address;
	struct pair pair = {0};
	int fds[SILENT];

	if (!enter_small_network())
		cr_skip_test("no network namespaces here");
	pair_open(&pair, &kind_ucx);
	address = data_port(&pair);
	for (int i = 0; i < SILENT; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)connect(fds[i], (struct sockaddr *)&address, sizeof(address));
	}
	cr_expect(third_joins(&pair, pair_key));
	expect_working(&pair);
	for (int i = 0; i < SILENT; i++)
		close(fds[i]);
	pair_close(&pair);
}

PAIR_TEST(ucx_gate, a_host_with_another_key_is_refused, &kind_ucx)
{
	const uint8_t other_key[FRAGI_DATA_KEY_BYTES] = "the key of another application";

	cr_expect_not(third_joins(pair, other_key));
	cr_expect_eq(pair->lost[1], 1, "only the third host is lost");
	pair->lost[1] = 0;
	expect_working(pair);
}

/* Puts another port in the place of every one in a host's address: what listens there stands in. */
static size_t address_with_port(const struct pair *pair, in_port_t port, uint8_t *out)
{
	const struct fragi_transport *transport = pair_transport(pair, 1, 0);
	in_port_t own = data_port(pair).sin_port;
	size_t size, found = 0;
	const uint8_t *address = transport->ops->address(transport, &size);

	memcpy(out, address, size);
	for (size_t i = UCX_ADDRESS_ENDS_AT; i + sizeof(own) <= size; i++)
		if (memcmp(out + i, &own, sizeof(own)) == 0) {
			memcpy(out + i, &port, sizeof(port));
			found++;
		}
	cr_assert_geq(found, 2, "in the gate's part and in UCX's");
	return size;
}

/* Whoever stands between two hosts and passes on what came from one may not speak for it. */
PAIR_TEST(ucx_gate, a_preface_that_is_passed_on_is_refused, &kind_ucx)
{
	uint8_t address[FRAGI_HOST_ADDRESS_MAX], bytes[UCX_PREFACE_BYTES];
	struct sockaddr_in between;
	struct fragi_remote_endpoint *endpoint;
	struct fragi_remote_peer *peer;
	struct frag_err err = FRAG_ERR_INIT;
	int server, taken;
	ssize_t n = 0;
	size_t size;

	server = listen_on(&between);
	size = address_with_port(pair, between.sin_port, address);
	cr_assert_eq(fragi_remote_peer_create(pair->remote[0], 9, 1, &peer), 0);
	cr_assert_eq(fragi_remote_connect(peer, "ucx", address, size, &endpoint, &err), 0, "%s",
		     err.text);
	taken = accept(server, NULL, NULL);
	cr_assert_geq(taken, 0);
	for (int ms = 0; ms < PATIENCE_MS && n < (ssize_t)sizeof(bytes); ms++) {
		pair_turn(pair);
		n = recv(taken, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno == ECONNRESET)) { /* the host's trial */
			close(taken);
			taken = accept(server, NULL, NULL);
		}
		usleep(1000);
	}
	cr_assert_eq(n, (ssize_t)sizeof(bytes));
	send_and_close(pair, bytes, sizeof(bytes));
	close(taken);
	close(server);
}

/* As the hosts of a large application do when they are wired. */
Test(ucx_gate, many_connections_at_once_are_admitted, .init = set_environment)
{
	int log = memfd_create("log", MFD_CLOEXEC), err = dup(2);
	struct pair pair = {0};
	char text[4096] = "";

	need_descriptors(1000); /* of both ends */
	pair_open(&pair, &kind_ucx);
	cr_assert_eq(dup2(log, 2), 2);
	for (uint32_t host = 100; host < 300; host++)
		(void)connect_hosts(pair.remote[0], pair.remote[1], host, 1);
	pair_settle(&pair);
	cr_assert_eq(dup2(err, 2), 2);
	cr_expect_geq(pread(log, text, sizeof(text) - 1, 0), 0);
	cr_expect_null(strstr(text, "refused"), "%s", text);
	expect_working(&pair);
	pair_close(&pair);
	close(log);
	close(err);
}

/* What comes while no descriptor is left is dropped; UCX listens on. */
PAIR_TEST(ucx_gate, the_port_survives_a_shortage_of_descriptors, &kind_ucx)
{
	struct sockaddr_in address;
	struct rlimit limit, none;
	int fds[4];

	address = data_port(pair);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < 4; i++)
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	none = (struct rlimit){.rlim_cur = (rlim_t)fds[3] + 1, .rlim_max = limit.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		;
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(connect(fds[i], (struct sockaddr *)&address, sizeof(address)), 0);
		cr_assert_eq(send(fds[i], "x", 1, 0), 1);
		cr_expect(is_closed(pair, fds[i]));
	}
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect(third_joins(pair, pair_key));
	expect_working(pair);
}

/* Others in this process: sockets of an operator, on the thread that makes progress. */

PAIR_TEST(ucx_gate, sockets_of_others_are_untouched, &kind_ucx)
{
	struct sockaddr_in address, peer = {0};
	socklen_t size = sizeof(peer), int_size = sizeof(int);
	int server, client, taken, option = -1;
	char text[64];

	server = listen_on(&address);
	cr_expect_eq(getsockopt(server, IPPROTO_TCP, TCP_DEFER_ACCEPT, &option, &int_size), 0);
	cr_expect_eq(option, 0);
	for (int i = 0; i < 3; i++) {
		client = connect_to(&address);
		/* A client that says nothing is accepted, by either call. */
		taken = i == 0 ? accept(server, (struct sockaddr *)&peer, &size)
			       : accept4(server, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC);
		cr_assert_geq(taken, 0);
		cr_expect_eq(getpeername(client, (struct sockaddr *)&peer, &size), 0);
		cr_expect_eq(peer.sin_port, address.sin_port);
		cr_assert_eq(send(client, "GET / HTTP/1.0", 14, 0), 14);
		cr_expect_eq(recv(taken, text, sizeof(text), 0), 14);
		cr_expect_eq(memcmp(text, "GET / HTTP/1.0", 14), 0);
		expect_working(pair);
		close(client);
		close(taken);
	}
	close(server);
}

static bool fd_is_inet(int fd)
{
	socklen_t size = sizeof(int);
	int domain = 0;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_INET;
}

/* A program that an operator starts has none of UCX's connections. */
PAIR_TEST(ucx_gate, its_sockets_are_closed_by_exec, &kind_ucx)
{
	struct stat status;
	int sockets = 0;

	expect_working(pair);
	for (int fd = 3; fd < 1024; fd++)
		if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) && fd_is_inet(fd)) {
			cr_expect_neq(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0, "descriptor %d", fd);
			sockets++;
		}
	cr_expect_geq(sockets, 4, "two that listen, and one connection's ends");
}

/* What a stranger would write through UCX's own client; the same address in parent and child. */
static volatile char target[32];

static void stranger_writes(int port_fd)
{
	char text[] = "written by a stranger";
	in_port_t port;

	if (read(port_fd, &port, sizeof(port)) != (ssize_t)sizeof(port))
		_exit(2);
	_exit(uct_put(port, (uint64_t)(uintptr_t)target, text, sizeof(text)) ? 0 : 1);
}

Test(ucx_gate, a_stranger_writes_nothing_into_a_host, .init = set_environment)
{
	struct sockaddr_in address;
	struct pair pair = {0};
	int ends[2], status;
	pid_t child;

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	child = fork(); /* before UCX is used here */
	cr_assert_geq(child, 0);
	if (child == 0)
		stranger_writes(ends[0]);
	pair_open(&pair, &kind_ucx);
	address = data_port(&pair);
	cr_assert_eq(write(ends[1], &address.sin_port, sizeof(address.sin_port)),
		     (ssize_t)sizeof(address.sin_port));
	while (waitpid(child, &status, WNOHANG) == 0)
		pair_turn(&pair);
	pair_settle(&pair);
	cr_expect_eq(target[0], '\0');
	expect_working(&pair);
	close(ends[0]);
	close(ends[1]);
	pair_close(&pair);
}
