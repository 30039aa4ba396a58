// SPDX-License-Identifier: Apache-2.0
/*
 * What an edge costs.
 *   edge hop [CAPACITY]          ns from emit to receive and back through a queue, in one thread
 *   edge lat BYTES ROUNDS [shm [HZ]]  us one way between two processes: half of a round trip, one
 *                                behind the other or begun HZ times a second: p50, p99, p99.9, the
 *                                longest; then the processor time of both in percent of a core
 *   edge bw BYTES MESSAGES [shm] MB/s, and messages a second, between two processes; window 64 (up
 *                                to 64 KiB) or 8
 *   edge turns BYTES MESSAGES [shm [BATCH]]  sends and receives in turns, BATCH (1) at a time, both
 *                                ends in one thread: for counting instructions
 * Over ucx, or shared memory. FRAG_PUMP chooses how to wait. Compare with ucx_perftest -t
 * ucp_am_lat, ucp_am_bw.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/stamp.h>
#include <data/allocator.h>
#include <edge/remote/remote.h>
#include <edge/ucx_env.h>
#include <frag/frag.h>

#define SET(name, value) setenv(name, value, 0);

static const char *transport = "ucx";

struct side {
	struct fragi_pump *pump;
	struct fragi_pump_waiter waiter;
	struct fragi_remote *remote;
	struct fragi_tx *tx;
	struct fragi_rx *rx;
	struct fragi_ledger ledger;
	_Atomic bool ready, lost;
	bool sends;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "edge: %s\n", what);
	exit(1);
}

static void on_ready(void *arg, uint32_t host)
{
	atomic_store(&((struct side *)arg)->ready, true);
}

static void on_lost(void *arg, uint32_t host, enum fragi_failure failure, const char *sentence)
{
	atomic_store(&((struct side *)arg)->lost, true);
}

static void on_event(void *arg)
{
	struct side *at = arg;

	fragi_pump_poke(at->pump, &at->waiter);
}

static bool is_ready(void *arg)
{
	return atomic_load(&((struct side *)arg)->ready);
}

static bool has_message(void *arg)
{
	struct side *side = arg;

	return fragi_rx_available(side->rx) > 0 || atomic_load(&side->lost);
}

static bool has_room(void *arg)
{
	struct side *side = arg;

	return side->tx->ops->room(side->tx) > 0 || atomic_load(&side->lost);
}

/* Where the transport has memory of its own, tensors lie in it. */
static void share_memory(const struct side *side)
{
	const struct frag_device device = {FRAG_DEVICE_CPU, 0};
	const struct fragi_transport *own = fragi_remote_transport(side->remote, transport);

	if (own->ops->memory != NULL)
		fragi_default_memory_set(
			own->ops->memory((struct fragi_transport *)(uintptr_t)own, device));
}

static const void *address_of(const struct side *side, size_t *out_size)
{
	const struct fragi_transport *own = fragi_remote_transport(side->remote, transport);

	return own->ops->address(own, out_size);
}

static void make_side(struct side *side, uint32_t number)
{
	static const uint8_t key[FRAGI_DATA_KEY_BYTES] = "the key of both";
	struct fragi_remote_config config = {
		.data_key = key,
		.host = number,
		.epoch = 1,
		.arg = side,
		.peer_ready = on_ready,
		.peer_lost = on_lost,
	};
	const struct fragi_transport_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;

	if (fragi_pump_create(&side->pump) < 0 ||
	    fragi_ledger_create(&side->ledger, -1, 0, 2) < 0 ||
	    fragi_transport_open(transport, &ops, &err) < 0)
		die(err.text);
	config.pump = side->pump;
	if (fragi_remote_create(&config, &side->remote) < 0 ||
	    fragi_remote_open(side->remote, ops, &err) < 0)
		die(err.text);
}

/* Host 1 sends on flow 0 and receives on flow 1. */
static void connect_side(struct side *side, uint32_t number, uint32_t window, const void *theirs,
			 size_t size)
{
	struct fragi_edge_config edge = {
		.window_messages = window,
		.window_bytes = FRAGI_WINDOW_BYTES * 8,
		.message_bytes_max = FRAGI_MESSAGE_BYTES_MAX,
		.policy = FRAG_POLICY_BLOCK,
	};
	struct fragi_remote_endpoint *endpoint;
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_remote_peer *peer;

	fragi_pump_lock(side->pump);
	if (fragi_remote_peer_create(side->remote, 3 - number, 1, &peer) < 0 ||
	    fragi_remote_connect(peer, transport, theirs, size, &endpoint, &err) < 0)
		die(err.text);
	edge.flow = number == 1 ? 0 : 1;
	if (fragi_remote_tx_create(endpoint, &edge, &side->ledger.flows[edge.flow], &side->tx) < 0)
		die("no memory");
	edge.flow = 1 - edge.flow;
	if (fragi_remote_rx_create(endpoint, &edge, &side->ledger.flows[edge.flow], &side->rx) < 0)
		die("no memory");
	side->tx->room = (struct fragi_notify){on_event, side};
	side->rx->arrival = (struct fragi_notify){on_event, side};
	fragi_pump_unlock(side->pump);
}

static void open_side(struct side *side, uint32_t number, int other, uint32_t window)
{
	char theirs[FRAGI_HOST_ADDRESS_MAX];
	const void *address;
	cpu_set_t cpus;
	ssize_t n;
	size_t size;

	CPU_ZERO(&cpus);
	CPU_SET(number - 1, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	make_side(side, number);
	share_memory(side);
	address = address_of(side, &size);
	if (send(other, address, size, 0) != (ssize_t)size ||
	    (n = recv(other, theirs, sizeof(theirs), 0)) <= 0)
		die("the other side is gone");
	if (fragi_pump_attach(side->pump, &fragi_remote_pump_ops, side->remote) < 0)
		die("no thread");
	connect_side(side, number, window, theirs, (size_t)n);
	while (!is_ready(side))
		fragi_pump_wait(side->pump, &side->waiter, fragi_now_ns() + 100000000, is_ready,
				side);
}

static void close_side(struct side *side)
{
	fragi_pump_detach(side->pump);
	fragi_remote_destroy(side->remote);
	fragi_pump_destroy(side->pump);
	fragi_ledger_close(&side->ledger);
}

/* What sends: the same tensor again and again, in a new message. */
static void send_bytes(struct side *side, struct frag_tensor *tensor)
{
	struct frag_message *message = frag_message_create();
	int64_t zero = 0;

	if (tensor != NULL)
		frag_message_add_tensor(message, "", frag_tensor_ref(tensor));
	else
		frag_message_set_value(message, &frag_type_i64, &zero, sizeof(zero), NULL);
	fragi_message_share(message);
	while (!has_room(side))
		fragi_pump_wait(side->pump, &side->waiter, fragi_now_ns() + 100000000, has_room,
				side);
	side->tx->ops->send(side->tx, message, fragi_stamp());
}

static bool receive_one(struct side *side)
{
	struct frag_message *message;

	while ((message = fragi_rx_take(side->rx, fragi_stamp())) == NULL) {
		if (atomic_load(&side->lost) || fragi_rx_is_finished(side->rx))
			return false;
		fragi_pump_wait(side->pump, &side->waiter, fragi_now_ns() + 100000000, has_message,
				side);
	}
	frag_message_unref(message);
	return true;
}

static struct frag_tensor *tensor_of(size_t bytes)
{
	int64_t shape = (int64_t)bytes;
	struct frag_tensor *tensor;

	if (bytes <= 8)
		return NULL;
	if (frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1, &shape,
			       &tensor) < 0)
		die("no memory");
	memset(frag_tensor_writable(tensor), 1, bytes);
	return tensor;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void wait_until(struct side *side, int64_t ns)
{
	while (fragi_now_ns() < ns)
		fragi_pump_wait(side->pump, &side->waiter, ns, has_message, side);
}

/* hz: 0: one after the other. */
static void measure_latency(struct side *side, struct frag_tensor *tensor, int rounds, int hz)
{
	int64_t *ns = calloc((size_t)rounds, sizeof(*ns)), start, next = fragi_now_ns();

	for (int i = -rounds / 10 - 10; i < rounds; i++) {
		if (hz > 0)
			wait_until(side, next += 1000000000 / hz);
		start = fragi_now_ns();
		send_bytes(side, tensor);
		receive_one(side);
		if (i >= 0)
			ns[i] = fragi_now_ns() - start;
	}
	qsort(ns, (size_t)rounds, sizeof(*ns), by_size);
	printf("%.2f %.2f %.2f %.2f ", (double)ns[rounds / 2] / 2e3,
	       (double)ns[rounds * 99 / 100] / 2e3, (double)ns[rounds * 999 / 1000] / 2e3,
	       (double)ns[rounds - 1] / 2e3);
	free(ns);
}

static void measure_bandwidth(struct side *side, struct frag_tensor *tensor, size_t bytes,
			      int messages)
{
	int64_t start = fragi_now_ns();

	for (int i = 0; i < messages; i++)
		send_bytes(side, tensor);
	receive_one(side); /* the other side has them all */
	printf("%.1f %.0f\n", (double)bytes * messages * 1e3 / (double)(fragi_now_ns() - start),
	       messages * 1e9 / (double)(fragi_now_ns() - start));
}

/* Processor time of this process and of those that it has waited for. */
static int64_t spent_ns(void)
{
	static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	struct rusage usage;
	int64_t us = 0;

	for (int i = 0; i < 2; i++) {
		getrusage(whose[i], &usage);
		us += (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		      usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
	}
	return us * 1000;
}

static void between_processes(bool latency, size_t bytes, int count, int hz)
{
	int64_t start = fragi_now_ns();
	struct side side = {0};
	struct frag_tensor *tensor;
	int pair[2];
	pid_t pid;

	FRAGI_UCX_ENV(SET)
	setenv("UCX_NET_DEVICES", "lo", 0);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		die("no socket");
	pid = fork();
	open_side(&side, pid == 0 ? 2 : 1, pair[pid == 0], bytes <= 65536 ? 64 : 8);
	tensor = tensor_of(bytes);
	if (pid == 0) {
		if (latency) {
			while (receive_one(&side))
				send_bytes(&side, tensor);
		} else {
			for (int i = 0; i < count; i++)
				receive_one(&side);
			send_bytes(&side, NULL);
			receive_one(&side);
		}
	} else if (latency) {
		measure_latency(&side, tensor, count, hz);
	} else {
		measure_bandwidth(&side, tensor, bytes, count);
	}
	side.tx->ops->close(side.tx);
	frag_tensor_unref(tensor);
	close_side(&side);
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	if (latency)
		printf("%.2f\n", (double)spent_ns() * 100 / (double)(fragi_now_ns() - start));
}

static void turn(struct side *side)
{
	if (!fragi_pump_try_lock(side->pump))
		return;
	fragi_remote_pump_ops.progress(side->remote, fragi_now_ns());
	fragi_pump_unlock(side->pump);
}

static void *destroy_remote(void *remote)
{
	fragi_remote_destroy(remote);
	return NULL;
}

/* Every batch is received, and given back, before the next one is sent. */
static void in_turns(size_t bytes, int messages, int batch)
{
	struct side sides[2] = {0};
	struct frag_tensor *tensor;
	const void *address;
	pthread_t thread;
	size_t size;

	FRAGI_UCX_ENV(SET)
	setenv("UCX_NET_DEVICES", "lo", 0);
	for (uint32_t i = 0; i < 2; i++)
		make_side(&sides[i], i + 1);
	share_memory(&sides[0]);
	for (uint32_t i = 0; i < 2; i++) {
		address = address_of(&sides[1 - i], &size);
		connect_side(&sides[i], i + 1, 64, address, size);
	}
	while (!is_ready(&sides[0]) || !is_ready(&sides[1])) {
		turn(&sides[0]);
		turn(&sides[1]);
	}
	tensor = tensor_of(bytes);
	for (int i = 0; i < messages; i += batch) {
		for (int k = 0; k < batch; k++)
			send_bytes(&sides[0], tensor);
		while (fragi_rx_available(sides[1].rx) < (uint32_t)batch)
			turn(&sides[1]);
		for (int k = 0; k < batch; k++)
			receive_one(&sides[1]);
		turn(&sides[1]);
		turn(&sides[0]);
	}
	frag_tensor_unref(tensor);
	pthread_create(&thread, NULL, destroy_remote, sides[0].remote);
	destroy_remote(sides[1].remote);
	pthread_join(thread, NULL);
	printf("%d\n", messages);
}

static void hop(uint32_t capacity)
{
	static struct fragi_flow_row row;
	struct frag_message *message = frag_message_create();
	struct fragi_tx *tx;
	struct fragi_rx *rx;
	uint64_t start, stamp;
	const int rounds = 20000000;
	int64_t value = 1;

	frag_message_set_value(message, &frag_type_i64, &value, sizeof(value), NULL);
	fragi_message_share(message);
	if (fragi_inproc_create(capacity, FRAG_POLICY_BLOCK, &row, &tx, &rx) < 0)
		die("no memory");
	start = fragi_stamp();
	for (int i = 0; i < rounds; i++) {
		stamp = fragi_stamp();
		tx->ops->send(tx, message, stamp);
		message = fragi_rx_take(rx, stamp);
	}
	printf("%.1f ns a hop, ledger and histogram with it, one stamp\n",
	       (double)fragi_stamp_diff_ns(start, fragi_stamp()) / rounds);
	frag_message_unref(message);
	start = fragi_stamp();
	for (int i = 0; i < rounds; i++) {
		message = frag_message_create();
		frag_message_set_value(message, &frag_type_i64, &value, sizeof(value), NULL);
		fragi_message_share(message);
		stamp = fragi_stamp();
		tx->ops->send(tx, message, stamp);
		frag_message_unref(fragi_rx_take(rx, stamp));
	}
	printf("%.1f ns with making, filling and dropping the message\n",
	       (double)fragi_stamp_diff_ns(start, fragi_stamp()) / rounds);
	fragi_inproc_destroy(tx);
}

int main(int argc, char **argv)
{
	if (argc >= 5)
		transport = argv[4];
	if (argc >= 2 && strcmp(argv[1], "hop") == 0)
		hop(argc > 2 ? (uint32_t)atoi(argv[2]) : 1);
	else if (argc >= 4 && strcmp(argv[1], "lat") == 0)
		between_processes(true, (size_t)atoll(argv[2]), atoi(argv[3]),
				  argc > 5 ? atoi(argv[5]) : 0);
	else if (argc >= 4 && strcmp(argv[1], "bw") == 0)
		between_processes(false, (size_t)atoll(argv[2]), atoi(argv[3]), 0);
	else if (argc >= 4 && strcmp(argv[1], "turns") == 0)
		in_turns((size_t)atoll(argv[2]), atoi(argv[3]), argc > 5 ? atoi(argv[5]) : 1);
	else
		die("usage: edge hop [CAPACITY] | edge lat BYTES COUNT [shm [HZ]] | edge bw BYTES COUNT [shm] | edge turns BYTES COUNT [shm [BATCH]]");
	return 0;
}
