// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* sendmmsg */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "udp.h"

#define NS 1000000000LL
#define BATCH 64
/* How long a full socket is waited for, before packets are dropped. */
#define WAIT_MS 1000

struct sink {
	const char *address, *interface, *in_tensor_name;
	int64_t port, max_payload_size, multicast_ttl;
	bool multicast_loop, sequence;
	uint64_t send_buffer;

	struct udp_address to;
	int fd;
	uint64_t number; /* of the next packet */
	int64_t packets, bytes, dropped;

	int queued; /* packets that wait to be sent in one call */
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH][2];
	uint8_t headers[BATCH][UDP_HEADER_BYTES];
};

enum { INPUT };
static const struct frag_port sink_ports[] = {
	[INPUT] = {.name = "input",
		   .dir = FRAG_IN,
		   .type = "tensor",
		   .headline = "packets as of udp_source, or one tensor, which is split"},
};

static const struct frag_param sink_params[] = {
	FRAG_PARAM_STRING(struct sink, address, "127.0.0.1",
			  .headline = "Address or multicast group to send to"),
	FRAG_PARAM_I64(struct sink, port, 0, .headline = "Port to send to",
		       .flags = FRAG_PARAM_REQUIRED, .min = 1, .max = 65535),
	FRAG_PARAM_STRING(struct sink, interface, "",
			  .headline = "Network interface for a multicast group"),
	FRAG_PARAM_STRING(
		struct sink, in_tensor_name, "",
		.headline =
			"Tensor to split, where there is no lengths; empty: the one without a name, else the first"),
	FRAG_PARAM_I64(struct sink, max_payload_size, 1472,
		       .headline = "Bytes of the largest packet, without its number", .min = 1,
		       .max = UDP_PAYLOAD_MAX),
	FRAG_PARAM_BOOL(
		struct sink, sequence, false, .headline = "Number the packets (for udp_source)",
		.description = "Each begins with two big-endian u64: its number and its time"),
	FRAG_PARAM_SIZE(struct sink, send_buffer, 0,
			.headline = "Bytes that the kernel keeps; 0: its default", .min = 0,
			.max = INT_MAX / 2),
	FRAG_PARAM_I64(struct sink, multicast_ttl, 1,
		       .headline = "Routers that a packet to a multicast group may pass, plus 1",
		       .min = 0, .max = 255),
	FRAG_PARAM_BOOL(struct sink, multicast_loop, true,
			.headline = "This machine receives its packets to a multicast group too"),
};

static int sink_setup(void *state, struct frag_op *op)
{
	struct sink *s = state;
	struct frag_err err = FRAG_ERR_INIT;
	int r = udp_address_read(s->address, s->port, s->interface, &s->to, &err);

	s->fd = -1;
	if (r < 0)
		return frag_op_fail(op, r, "%s", err.text);
	if (s->sequence && s->max_payload_size > UDP_PAYLOAD_MAX - UDP_HEADER_BYTES)
		return frag_op_fail(
			op, -EINVAL,
			"max_payload_size is %lld; with sequence it may be %d at most, because the number takes %d bytes",
			(long long)s->max_payload_size, UDP_PAYLOAD_MAX - UDP_HEADER_BYTES,
			UDP_HEADER_BYTES);
	return 0;
}

static int set_multicast(const struct sink *s)
{
	const int ttl = (int)s->multicast_ttl, loop = s->multicast_loop;
	const unsigned int index = s->to.interface;

	if (s->to.any.sa_family == AF_INET) {
		const struct ip_mreqn interface = {.imr_ifindex = (int)index};

		return setsockopt(s->fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof(ttl)) < 0 ||
				       setsockopt(s->fd, IPPROTO_IP, IP_MULTICAST_LOOP, &loop,
						  sizeof(loop)) < 0 ||
				       (index != 0 && setsockopt(s->fd, IPPROTO_IP, IP_MULTICAST_IF,
								 &interface, sizeof(interface)) < 0)
			       ? -errno
			       : 0;
	}
	return setsockopt(s->fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &ttl, sizeof(ttl)) < 0 ||
			       setsockopt(s->fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &loop,
					  sizeof(loop)) < 0 ||
			       (index != 0 && setsockopt(s->fd, IPPROTO_IPV6, IPV6_MULTICAST_IF,
							 &index, sizeof(index)) < 0)
		       ? -errno
		       : 0;
}

static int64_t unix_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

/* Connects, so that the kernel looks the route up once and reports what comes back as an error. */
static int sink_initialize(void *state, struct frag_op *op)
{
	struct sink *s = state;
	char text[UDP_ADDRESS_TEXT_MAX];
	const int wanted = (int)s->send_buffer;
	int r;

	udp_address_text(&s->to, text);
	s->fd = socket(s->to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return frag_op_fail(op, -errno, "cannot open a socket for %s: %s", text,
				    frag_strerror(-errno));
	if (wanted > 0)
		setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof(wanted));
	/* At random, so that a receiver notices that the sender began anew. */
	if (getrandom(&s->number, sizeof(s->number), 0) != sizeof(s->number))
		s->number = (uint64_t)unix_ns();
	s->number >>= 16;
	r = s->to.multicast ? set_multicast(s) : 0;
	if (r == 0 && connect(s->fd, &s->to.any, s->to.size) < 0)
		r = -errno;
	return r == 0 ? 0
		      : frag_op_fail(
				op, r,
				"cannot send to %s: %s; check the address and the routes of this machine",
				text, frag_strerror(r));
}

/* Returns whether the socket has room again. */
static bool wait_for_room(const struct sink *s, struct frag_op *op)
{
	struct pollfd fds[] = {
		{.fd = s->fd, .events = POLLOUT},
		{.fd = frag_op_stop_fd(op), .events = POLLIN},
	};

	return poll(fds, FRAG_COUNT_OF(fds), WAIT_MS) > 0 && (fds[0].revents & POLLOUT);
}

/*
 * Returns whether the network may send again what it refused now: nobody listens yet, a link is
 * down, a queue is full. Such a packet is lost, as it would be on its way.
 */
static bool is_loss(int error)
{
	return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH ||
	       error == ENETDOWN || error == EHOSTDOWN || error == ENOBUFS || error == ENOMEM;
}

/* Sends the packets that wait. Returns 0 or a failure that is worded in the operator. */
static int flush(struct sink *s, struct frag_op *op)
{
	int sent = 0;

	while (sent < s->queued) {
		int n = sendmmsg(s->fd, s->messages + sent, (unsigned int)(s->queued - sent), 0);

		if (n > 0) {
			s->packets += n;
			sent += n;
		} else if (errno == EINTR || (errno == EAGAIN && wait_for_room(s, op))) {
			continue;
		} else if (errno == EAGAIN) {
			s->dropped += s->queued - sent;
			sent = s->queued;
		} else if (is_loss(errno)) {
			s->dropped++;
			sent++;
		} else {
			int r = -errno;

			s->dropped += s->queued - sent;
			s->queued = 0;
			return frag_op_fail(op, r, "cannot send packets to %s port %lld: %s%s",
					    s->address, (long long)s->port, frag_strerror(r),
					    r == -EMSGSIZE ? "; make max_payload_size smaller"
							   : "");
		}
	}
	s->queued = 0;
	return 0;
}

static int queue_packet(struct sink *s, struct frag_op *op, const uint8_t *data, size_t length,
			int64_t time_ns)
{
	int i = s->queued++;
	int parts = 0;

	if (s->sequence) {
		udp_put_u64(s->headers[i], s->number);
		udp_put_u64(s->headers[i] + 8, (uint64_t)time_ns);
		s->parts[i][parts++] = (struct iovec){s->headers[i], UDP_HEADER_BYTES};
	}
	s->number++;
	s->bytes += (int64_t)length;
	s->parts[i][parts++] = (struct iovec){(void *)data, length};
	s->messages[i].msg_hdr =
		(struct msghdr){.msg_iov = s->parts[i], .msg_iovlen = (size_t)parts};
	return s->queued == BATCH ? flush(s, op) : 0;
}

/* Queues the packets whose lengths the message says. What came from outside is checked first. */
static int queue_given(struct sink *s, struct frag_op *op, const uint8_t *data, size_t size,
		       const struct frag_tensor *lengths, int64_t time_ns)
{
	const struct frag_dltensor *dl = frag_tensor_dl(lengths);
	const int32_t *length = frag_tensor_data(lengths);
	size_t sum = 0;
	int r = 0;

	if (dl->ndim != 1 || dl->dtype.code != FRAG_DTYPE_INT || dl->dtype.bits != 32 ||
	    !frag_tensor_is_compact(lengths) || dl->device.type == FRAG_DEVICE_CUDA)
		return frag_op_fail(
			op, -EINVAL,
			"tensor \"lengths\" is not i32 [packets]; send what udp_source sends");
	for (int64_t i = 0; i < dl->shape[0]; i++) {
		if (length[i] < 0 || length[i] > s->max_payload_size)
			return frag_op_fail(
				op, -EMSGSIZE,
				"packet %lld has %d bytes, and max_payload_size is %lld; make it larger, or the packets smaller",
				(long long)i, length[i], (long long)s->max_payload_size);
		sum += (size_t)length[i];
	}
	if (sum != size)
		return frag_op_fail(
			op, -EINVAL,
			"the packets of tensor \"lengths\" have %zu bytes in all, and tensor \"data\" has %zu",
			sum, size);
	for (int64_t i = 0; r == 0 && i < dl->shape[0]; i++) {
		r = queue_packet(s, op, data, (size_t)length[i], time_ns);
		data += length[i];
	}
	return r;
}

/* Returns the tensor to send; NULL: the failure is worded in the operator. */
static const struct frag_tensor *find_data(const struct sink *s, struct frag_op *op,
					   const struct frag_message *message, bool given)
{
	const char *name = given ? UDP_DATA : s->in_tensor_name;
	const struct frag_tensor *tensor = frag_message_tensor(message, name);

	if (tensor == NULL && name[0] == '\0')
		tensor = frag_message_tensor(message, NULL);
	if (tensor == NULL) {
		frag_op_fail(
			op, -EINVAL,
			"the message holds no tensor \"%s\"; set in_tensor_name to the name that the sender gives",
			name);
		return NULL;
	}
	if (frag_tensor_dl(tensor)->device.type == FRAG_DEVICE_CUDA ||
	    !frag_tensor_is_compact(tensor)) {
		frag_op_fail(
			op, -EINVAL,
			"tensor \"%s\" has gaps or is in the memory of a device; send a compact one in host memory",
			name);
		return NULL;
	}
	return tensor;
}

static int sink_compute(void *state, struct frag_tick *tick)
{
	struct sink *s = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	const struct frag_tensor *lengths, *tensor;
	int r = frag_tick_receive(tick, INPUT, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	lengths = frag_message_tensor(message, UDP_LENGTHS);
	tensor = find_data(s, op, message, lengths != NULL);
	if (tensor == NULL)
		return -EINVAL;

	const uint8_t *data = frag_tensor_data(tensor);
	size_t size = frag_tensor_size_bytes(tensor);
	int64_t acquired_ns = frag_message_acquisition_ns(message);
	int64_t time_ns = acquired_ns != 0 ? acquired_ns : unix_ns();

	if (lengths != NULL)
		r = queue_given(s, op, data, size, lengths, time_ns);
	for (size_t at = 0; lengths == NULL && r == 0 && at < size;) {
		size_t part = size - at;

		if (part > (size_t)s->max_payload_size)
			part = (size_t)s->max_payload_size;
		r = queue_packet(s, op, data + at, part, time_ns);
		at += part;
	}
	if (r < 0) {
		s->queued = 0;
		return r;
	}
	return flush(s, op);
}

static int sink_stop(void *state, struct frag_op *op)
{
	const struct sink *s = state;

	frag_op_log(op, "sent %lld packets; %lld were dropped because the network took none",
		    (long long)s->packets, (long long)s->dropped);
	return 0;
}

static void sink_fini(void *state, struct frag_op *op)
{
	struct sink *s = state;

	(void)op;
	if (s->fd >= 0)
		close(s->fd);
}

const struct frag_op_type udp_sink_type = {
	FRAG_OP_TYPE_INIT,
	.name = "udp_sink",
	.headline = "Sends UDP packets",
	.description =
		"Sends the packets of a message of udp_source, or the bytes of one tensor in packets of max_payload_size. Nobody has to receive them. What the network does not take is dropped and counted.",
	.state_size = sizeof(struct sink),
	FRAG_PORTS(sink_ports),
	FRAG_PARAMS(sink_params),
	.setup = sink_setup,
	.initialize = sink_initialize,
	.compute = sink_compute,
	.stop = sink_stop,
	.fini = sink_fini,
};
