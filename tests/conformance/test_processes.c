// SPDX-License-Identifier: Apache-2.0
/* Two processes over each transport, one of which is killed, stopped, or leaves. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../left.h"
#include "../slow.h"
#include "pair.h"
#include <base/stamp.h>
#include <edge/socket_calls.h>

/* A test for each transport, in a process of its own. */
#define PROCESS_TEST(what)                                                                         \
	static void what(void);                                                                    \
	Test(ucx_processes, what, .init = over_ucx)                                                \
	{                                                                                          \
		what();                                                                            \
	}                                                                                          \
	Test(shm_processes, what, .init = over_shm)                                                \
	{                                                                                          \
		what();                                                                            \
	}                                                                                          \
	static void what(void)

static const char *transport_name;

static void over_ucx(void)
{
	set_environment();
	transport_name = "ucx";
}

static void over_shm(void)
{
	set_environment();
	transport_name = "shm";
}

/* One host; the test is host 1, its child host 2. */
struct host {
	uint32_t number;
	int other; /* socket to the other process */
	struct fragi_pump *pump;
	struct fragi_pump_waiter waiter;
	struct fragi_remote *remote;
	struct fragi_tx *tx;
	struct fragi_rx *rx;
	struct fragi_ledger ledger;
	_Atomic bool ready, lost, wake;
	int64_t lost_ns;
	char sentence[1024];
	int sent;
};

static _Atomic int live_buffers; /* of messages this process has made */

static void release_buffer(void *memory)
{
	free(memory);
	atomic_fetch_sub(&live_buffers, 1);
}

static struct frag_message *message_with(size_t bytes)
{
	struct frag_message *message = frag_message_create();
	int64_t shape = (int64_t)bytes;
	struct frag_dltensor view = {
		.data = calloc(1, bytes),
		.device = {FRAG_DEVICE_CPU, 0},
		.ndim = 1,
		.dtype = {FRAG_DTYPE_UINT, 8, 1},
		.shape = &shape,
	};
	struct frag_tensor *tensor;

	cr_assert_eq(frag_tensor_wrap(&view, release_buffer, view.data, &tensor), 0);
	atomic_fetch_add(&live_buffers, 1);
	frag_message_add_tensor(message, "", tensor);
	fragi_message_share(message);
	return message;
}

static void on_event(void *arg)
{
	struct host *host = arg;

	fragi_pump_poke(host->pump, &host->waiter);
}

static void on_ready(void *arg, uint32_t number)
{
	struct host *host = arg;

	atomic_store(&host->ready, true);
}

static void on_lost(void *arg, uint32_t number, enum fragi_failure failure, const char *sentence)
{
	struct host *host = arg;

	host->lost_ns = fragi_now_ns();
	strncpy(host->sentence, sentence, sizeof(host->sentence) - 1);
	atomic_store(&host->lost, true);
}

/* wiring: 't' sends, 'r' receives. */
static void host_open(struct host *host, uint32_t number, int other, char direction,
		      int64_t dead_ns)
{
	static const uint8_t key[FRAGI_DATA_KEY_BYTES] = "the key of both";
	struct fragi_remote_config config = {
		.data_key = key,
		.host = number,
		.epoch = 1,
		.dead_ns = dead_ns,
		.beat_ns = dead_ns / 4,
		.arg = host,
		.peer_ready = on_ready,
		.peer_lost = on_lost,
	};
	const struct fragi_edge_config edge = {
		.flow = 3,
		.token = "fifteen letters",
		.window_messages = 4,
		.window_bytes = FRAGI_WINDOW_BYTES,
		.message_bytes_max = FRAGI_MESSAGE_BYTES_MAX,
		.policy = FRAG_POLICY_BLOCK,
	};
	const struct fragi_transport_ops *ops;
	struct fragi_remote_endpoint *endpoint;
	struct fragi_remote_peer *peer;
	struct frag_err err = FRAG_ERR_INIT;
	char theirs[FRAGI_HOST_ADDRESS_MAX];
	const void *address;
	ssize_t n;
	size_t size;

	host->number = number;
	host->other = other;
	cr_assert_eq(fragi_pump_create(&host->pump), 0);
	cr_assert_eq(fragi_ledger_create(&host->ledger, -1, 1, 1), 0);
	config.pump = host->pump;
	cr_assert_eq(fragi_remote_create(&config, &host->remote), 0);
	cr_assert_eq(fragi_transport_open(transport_name, &ops, &err), 0, "%s", err.text);
	cr_assert_eq(fragi_remote_open(host->remote, ops, &err), 0, "%s", err.text);
	address = ops->address(fragi_remote_transport(host->remote, transport_name), &size);
	cr_assert_eq(send(other, address, size, 0), (ssize_t)size);
	n = recv(other, theirs, sizeof(theirs), 0);
	cr_assert_gt(n, 0);
	cr_assert_eq(fragi_pump_attach(host->pump, &fragi_remote_pump_ops, host->remote), 0);
	fragi_pump_lock(host->pump);
	cr_assert_eq(fragi_remote_peer_create(host->remote, 3 - number, 1, &peer), 0);
	cr_assert_eq(fragi_remote_connect(peer, transport_name, theirs, (size_t)n, &endpoint, &err),
		     0, "%s", err.text);
	if (direction == 't')
		cr_assert_eq(fragi_remote_tx_create(endpoint, &edge, host->ledger.flows, &host->tx),
			     0);
	else
		cr_assert_eq(fragi_remote_rx_create(endpoint, &edge, host->ledger.flows, &host->rx),
			     0);
	if (direction == 't')
		host->tx->room = (struct fragi_notify){on_event, host};
	else
		host->rx->arrival = (struct fragi_notify){on_event, host};
	fragi_pump_unlock(host->pump);
}

static void host_close(struct host *host)
{
	fragi_pump_detach(host->pump);
	fragi_remote_destroy(host->remote);
	fragi_pump_destroy(host->pump);
	fragi_ledger_close(&host->ledger);
	close(host->other);
}

static bool wait_for(struct host *host, bool (*what)(void *host))
{
	int64_t until = fragi_now_ns() + patience_ns();

	while (!what(host)) {
		if (fragi_now_ns() > until)
			return false;
		fragi_pump_wait(host->pump, &host->waiter, fragi_now_ns() + 20000000, what, host);
	}
	return true;
}

static bool is_ready(void *arg)
{
	return atomic_load(&((struct host *)arg)->ready);
}

static bool is_lost(void *arg)
{
	return atomic_load(&((struct host *)arg)->lost);
}

static bool has_room_or_lost(void *arg)
{
	struct host *host = arg;

	return is_lost(host) || host->tx->ops->room(host->tx) > 0;
}

static bool has_message_or_lost(void *arg)
{
	struct host *host = arg;

	return is_lost(host) || fragi_rx_available(host->rx) > 0 || fragi_rx_is_finished(host->rx);
}

/* The child's part; never returns. */
static void child_streams_out(int other, size_t bytes)
{
	struct host host = {0};

	host_open(&host, 2, other, 't', 0);
	for (;;) {
		if (!wait_for(&host, has_room_or_lost) || is_lost(&host))
			_exit(1);
		host.tx->ops->send(host.tx, message_with(bytes), fragi_stamp());
	}
}

static void child_streams_in(int other, size_t bytes)
{
	struct host host = {0};
	struct frag_message *message;

	host_open(&host, 2, other, 'r', 0);
	while (wait_for(&host, has_message_or_lost) && !is_lost(&host)) {
		message = fragi_rx_take(host.rx, fragi_stamp());
		if (message == NULL)
			break;
		frag_message_unref(message);
		if (send(other, "m", 1, MSG_NOSIGNAL) != 1)
			break;
	}
	host_close(&host);
	_exit(0);
}

static pid_t spawn(void (*child)(int other, size_t bytes), size_t bytes, int *out_other)
{
	int pair[2];
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		alarm(60);
		child(pair[1], bytes);
	}
	close(pair[1]);
	*out_other = pair[0];
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void send_one(struct host *host, size_t bytes)
{
	cr_assert_eq(host->tx->ops->send(host->tx, message_with(bytes), fragi_stamp()), 0);
	host->sent++;
}

/* ends: kills the receiver, or sees to it that it is killed, while messages are on their way. */
static void receiver_ends(size_t bytes, void (*ends)(struct host *host, pid_t pid, size_t bytes))
{
	struct host host = {0};
	int other, got = 0;
	int64_t killed_ns;
	pid_t pid = spawn(child_streams_in, bytes, &other);
	char c;

	host_open(&host, 1, other, 't', 0);
	cr_assert(wait_for(&host, is_ready), "%s", host.sentence);
	while (got < 20) {
		cr_assert(wait_for(&host, has_room_or_lost));
		cr_assert_not(is_lost(&host), "%s", host.sentence);
		send_one(&host, bytes);
		while (recv(other, &c, 1, MSG_DONTWAIT) == 1)
			got++;
	}
	ends(&host, pid, bytes);
	killed_ns = fragi_now_ns();
	while (!is_lost(&host)) {
		cr_assert(wait_for(&host, has_room_or_lost));
		if (is_lost(&host))
			break;
		host.tx->ops->send(host.tx, message_with(bytes), fragi_stamp());
		host.sent++;
	}
	cr_assert_lt(host.lost_ns - killed_ns, 10000000000);
	cr_assert_not_null(strstr(host.sentence, "host 2"), "%s", host.sentence);
	end(pid);
	cr_assert_eq(host.tx->ops->room(host.tx), 0);
	while (recv(other, &c, 1, MSG_DONTWAIT) == 1)
		got++;
	/*
	 * What is confirmed was received (the last perhaps not told), and what is open is within
	 * the window.
	 */
	cr_assert_leq(atomic_load(&host.ledger.flows[0].confirmed), (uint64_t)got + 1);
	cr_assert_eq(atomic_load(&host.ledger.flows[0].sent), (uint64_t)host.sent);
	cr_assert_leq(host.sent - (int)atomic_load(&host.ledger.flows[0].confirmed), 4);
	host_close(&host);
	cr_assert_eq(atomic_load(&live_buffers), 0);
}

static void at_once(struct host *host, pid_t pid, size_t bytes)
{
	kill(pid, SIGKILL);
}

static void receiver_is_killed(size_t bytes)
{
	receiver_ends(bytes, at_once);
}

PROCESS_TEST(receiver_killed_within_large_messages)
{
	receiver_is_killed(8 << 20);
}

PROCESS_TEST(receiver_killed_within_messages)
{
	receiver_is_killed(60000);
}

PROCESS_TEST(receiver_killed_within_small_messages)
{
	receiver_is_killed(100);
}

static bool is_never(void *arg);

/* The window, and what the kernel holds for the receiver, are full then. */
static void frozen_first(struct host *host, pid_t pid, size_t bytes)
{
	int64_t until = fragi_now_ns() + 300000000;

	kill(pid, SIGSTOP);
	while (host->tx->ops->room(host->tx) > 0)
		send_one(host, bytes);
	while (fragi_now_ns() < until)
		fragi_pump_wait(host->pump, &host->waiter, until, is_never, NULL);
	kill(pid, SIGKILL);
}

PROCESS_TEST(receiver_frozen_and_killed_within_large_messages)
{
	receiver_ends(8 << 20, frozen_first);
}

PROCESS_TEST(receiver_frozen_and_killed_within_messages)
{
	receiver_ends(60000, frozen_first);
}

/* The kernel, as UCX meets it below the gate. */
static struct {
	struct fragi_socket_calls calls;
	const struct fragi_socket_calls *system;
	pid_t receiver;
	/* It takes a message in two parts. */
	_Atomic bool is_armed; /* the backup poller sends too */
	bool has_begun, has_failed;
	int failure; /* of the second part, an errno; 0: that of a receiver which is killed */
	/* So many sends until the receiver is killed; first: counted from the first connect. */
	int first_sends, sends;
} kernel;

static void kill_receiver(void)
{
	siginfo_t ended;

	kill(kernel.receiver, SIGKILL);
	waitid(P_PID, (id_t)kernel.receiver, &ended, WEXITED | WNOWAIT);
}

static ssize_t first_part(int fd, const struct msghdr *message, int flags, const void *caller)
{
	struct iovec parts[64];
	struct msghdr half = {.msg_iov = parts, .msg_iovlen = message->msg_iovlen};

	memcpy(parts, message->msg_iov, message->msg_iovlen * sizeof(*parts));
	parts[half.msg_iovlen - 1].iov_len /= 2;
	return kernel.system->sendmsg(fd, &half, flags, caller);
}

static ssize_t kernel_sendmsg(int fd, const struct msghdr *message, int flags, const void *caller)
{
	if (!kernel.is_armed || kernel.has_failed)
		return kernel.system->sendmsg(fd, message, flags, caller);
	if (!kernel.has_begun) {
		kernel.has_begun = true;
		/* Or it has perhaps read all by the time it is killed, and resets nothing. */
		kill(kernel.receiver, SIGSTOP);
		return first_part(fd, message, flags, caller);
	}
	kernel.has_failed = true;
	if (kernel.failure != 0) {
		errno = kernel.failure;
		return -1;
	}
	kill_receiver();
	return kernel.system->sendmsg(fd, message, flags, caller);
}

static ssize_t kernel_send(int fd, const void *data, size_t size, int flags, const void *caller)
{
	if (kernel.sends > 0 && --kernel.sends == 0)
		kill_receiver();
	return kernel.system->send(fd, data, size, flags, caller);
}

static int kernel_connect(int fd, const struct sockaddr *address, socklen_t size,
			  const void *caller)
{
	if (kernel.first_sends > 0)
		kernel.sends = kernel.first_sends;
	kernel.first_sends = 0;
	return kernel.system->connect(fd, address, size, caller);
}

static void stand_below_the_gate(void)
{
	struct fragi_socket_switch *calls = fragi_socket_switch();

	kernel.system = calls->system;
	kernel.calls = *calls->system;
	kernel.calls.connect = kernel_connect;
	kernel.calls.send = kernel_send;
	kernel.calls.sendmsg = kernel_sendmsg;
	calls->system = &kernel.calls;
}

static void within_a_send(struct host *host, pid_t pid, size_t bytes)
{
	kernel.receiver = pid;
	kernel.is_armed = true;
}

static void a_send_fails(size_t bytes, int failure)
{
	stand_below_the_gate();
	kernel.failure = failure;
	receiver_ends(bytes, within_a_send);
	cr_assert(kernel.has_failed);
}

/* UCX learns of the death from a send, and not from what it reads. */
Test(ucx_processes, receiver_killed_between_parts_of_a_large_message, .init = over_ucx)
{
	a_send_fails(8 << 20, 0);
}

Test(ucx_processes, receiver_killed_between_parts_of_a_message, .init = over_ucx)
{
	a_send_fails(300000, 0); /* not by rendezvous */
}

Test(ucx_processes, a_send_that_fails_ends_the_connection_and_not_the_host, .init = over_ucx)
{
	a_send_fails(8 << 20, ENOBUFS);
}

/*
 * The first sends, the gate's and UCX's, connect the two. Which of two connections is kept depends
 * on chance, so each is tried several times.
 */
Test(ucx_processes, receiver_killed_before_each_of_the_first_sends, .init = over_ucx)
{
	stand_below_the_gate();
	for (int i = 0; i < 20; i++) {
		struct host host = {0};
		int other;

		kernel.receiver = spawn(child_streams_in, 0, &other);
		kernel.first_sends = 1 + i % 4;
		host_open(&host, 1, other, 't', 0);
		send_one(&host, 2 << 20);
		cr_assert(wait_for(&host, is_lost), "%d", i);
		cr_assert_eq(kernel.first_sends + kernel.sends, 0, "%d", i);
		host_close(&host);
		end(kernel.receiver);
		cr_assert_eq(atomic_load(&live_buffers), 0);
	}
}

static void sender_is_killed(size_t bytes)
{
	struct host host = {0};
	struct frag_message *message;
	int other, got = 0;
	pid_t pid = spawn(child_streams_out, bytes, &other);
	int64_t killed_ns = 0;

	host_open(&host, 1, other, 'r', 0);
	while (wait_for(&host, has_message_or_lost)) {
		message = fragi_rx_take(host.rx, fragi_stamp());
		if (message == NULL && is_lost(&host))
			break;
		if (message == NULL)
			continue;
		cr_assert_eq(frag_tensor_size_bytes(frag_message_tensor(message, NULL)), bytes);
		frag_message_unref(message);
		if (++got == 20) {
			kill(pid, SIGKILL);
			killed_ns = fragi_now_ns();
		}
	}
	cr_assert(is_lost(&host));
	cr_assert_lt(host.lost_ns - killed_ns, 10000000000);
	waitpid(pid, NULL, 0);
	cr_assert_not(fragi_rx_is_finished(host.rx)); /* it did not close */
	cr_assert_eq(atomic_load(&host.ledger.flows[0].delivered), (uint64_t)got);
	cr_assert_eq(atomic_load(&host.ledger.flows[0].arrived), (uint64_t)got);
	host_close(&host);
}

PROCESS_TEST(sender_killed_within_large_messages)
{
	sender_is_killed(8 << 20);
}

PROCESS_TEST(sender_killed_within_messages)
{
	sender_is_killed(60000);
}

PROCESS_TEST(sender_killed_within_small_messages)
{
	sender_is_killed(100);
}

PROCESS_TEST(a_stopped_peer_is_found_by_its_silence)
{
	struct host host = {0};
	int other;
	pid_t pid = spawn(child_streams_in, 0, &other);
	int64_t stopped_ns;

	host_open(&host, 1, other, 't', 600000000);
	cr_assert(wait_for(&host, is_ready), "%s", host.sentence);
	kill(pid, SIGSTOP);
	stopped_ns = fragi_now_ns();
	cr_assert(wait_for(&host, is_lost));
	cr_assert_gt(host.lost_ns - stopped_ns, 100000000);
	cr_assert_lt(host.lost_ns - stopped_ns, 8000000000);
	cr_assert_not_null(strstr(host.sentence, "silent"), "%s", host.sentence);
	host_close(&host);
	end(pid);
}

/*
 * What a lost peer still sends when it wakes up must not meet memory that was given to somebody
 * else.
 */
PROCESS_TEST(a_peer_that_wakes_up_after_its_loss_does_no_harm)
{
	for (int i = 0; i < 4; i++) {
		struct host host = {0};
		struct frag_message *message;
		int64_t until;
		int other, got = 0;
		pid_t pid = spawn(child_streams_out, 48 << 20, &other);

		host_open(&host, 1, other, 'r', 500000000);
		while (wait_for(&host, has_message_or_lost) && !is_lost(&host)) {
			message = fragi_rx_take(host.rx, fragi_stamp());
			frag_message_unref(message);
			if (++got == 2 + i)
				kill(pid, SIGSTOP);
		}
		cr_assert(is_lost(&host));
		kill(pid, SIGCONT);
		for (until = fragi_now_ns() + 200000000; fragi_now_ns() < until;)
			fragi_pump_wait(host.pump, &host.waiter, until, is_never, NULL);
		host_close(&host);
		end(pid);
	}
}

static bool is_never(void *arg)
{
	return false;
}

/* Beats keep two hosts together that have nothing to say. */
PROCESS_TEST(a_quiet_peer_is_not_lost)
{
	struct host host = {0};
	int other;
	pid_t pid = spawn(child_streams_in, 0, &other);
	int64_t until;

	host_open(&host, 1, other, 't', 0);
	cr_assert(wait_for(&host, is_ready), "%s", host.sentence);
	for (until = fragi_now_ns() + 3500000000; fragi_now_ns() < until;)
		fragi_pump_wait(host.pump, &host.waiter, until, is_never, NULL);
	cr_assert_not(is_lost(&host), "%s", host.sentence);
	host_close(&host);
	end(pid);
}

static void child_leaves(int other, size_t bytes)
{
	struct host host = {0};
	struct frag_message *message;

	host_open(&host, 2, other, 'r', 0);
	if (!wait_for(&host, has_message_or_lost) || is_lost(&host))
		_exit(1);
	message = fragi_rx_take(host.rx, fragi_stamp());
	frag_message_unref(message);
	fragi_rx_close(host.rx);
	host_close(&host);
	_exit(0);
}

static bool is_done(void *arg)
{
	return atomic_load(&((struct host *)arg)->tx->receiver_done);
}

/*
 * The last credit and DONE arrive from a host that ends right after them, and it is not called
 * lost.
 */
PROCESS_TEST(a_host_that_leaves_in_order_is_not_lost)
{
	for (int i = 0; i < 10; i++) {
		struct host host = {0};
		int other, status;
		pid_t pid = spawn(child_leaves, 0, &other);
		int64_t until;

		host_open(&host, 1, other, 't', 0);
		cr_assert_eq(host.tx->ops->send(host.tx, message_with(1000), fragi_stamp()), 0);
		cr_assert(wait_for(&host, is_done), "%s", host.sentence);
		until = fragi_now_ns() + 10000000000;
		while (waitpid(pid, &status, WNOHANG) == 0 && fragi_now_ns() < until)
			fragi_pump_wait(host.pump, &host.waiter, fragi_now_ns() + 1000000, is_never,
					NULL);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		for (until = fragi_now_ns() + 50000000; fragi_now_ns() < until;)
			fragi_pump_wait(host.pump, &host.waiter, until, is_never, NULL);
		cr_assert_not(is_lost(&host), "%s", host.sentence);
		cr_assert_eq(atomic_load(&host.ledger.flows[0].confirmed), 1);
		host_close(&host);
	}
}

static void child_exits_at_once(int other, size_t bytes)
{
	struct host host = {0};

	char begun;

	host_open(&host, 2, other, 'r', 0);
	/* One that is gone earlier is found when the other one begins to connect. */
	(void)recv(other, &begun, 1, 0);
	_exit(0);
}

PROCESS_TEST(a_peer_that_is_gone_before_it_is_connected_is_lost)
{
	struct host host = {0};
	int other;
	pid_t pid = spawn(child_exits_at_once, 0, &other);

	host_open(&host, 1, other, 't', 0);
	cr_assert_eq(send(other, "b", 1, 0), 1);
	waitpid(pid, NULL, 0);
	cr_assert(wait_for(&host, is_lost));
	host_close(&host);
}

/* Nothing of it stays behind in a host that goes on: descriptors, threads. */
PROCESS_TEST(losing_peers_leaks_nothing)
{
	unsigned int files = 0, threads = 0;

	for (int i = 0; i < 4; i++) {
		receiver_is_killed(2 << 20);
		if (i == 0) {
			files = left_entries("/proc/self/fd");
			threads = left_entries("/proc/self/task");
		}
	}
	cr_assert_leq(left_entries("/proc/self/fd"), files);
	cr_assert_leq(left_entries("/proc/self/task"), threads);
}
