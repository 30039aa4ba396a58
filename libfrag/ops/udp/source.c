// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* recvmmsg, ppoll */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "sequence.h"
#include "udp.h"

#define NS 1000000000LL
/* How long compute waits for packets, before other operators of its thread get their turn. */
#define WAIT_NS 20000000

/* What the kernel tells about a packet: when it came, and how many it has dropped before. */
union control {
	char bytes[CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(uint32_t))];
	struct cmsghdr align;
};

struct source {
	const char *address, *interface, *only_from;
	int64_t port, batch_size, max_payload_size;
	uint64_t receive_buffer;
	bool sequence;
	int64_t idle_timeout;
	struct frag_resource *pool;

	struct udp_address here, peer;
	bool bound;
	int fd;
	size_t slot_bytes; /* of a packet in `memory` */
	uint8_t *memory;
	struct mmsghdr *messages;
	struct iovec *parts;
	struct udp_address *senders;
	union control *controls;
	struct udp_sequence numbers;
	int64_t packets, bytes, overflowed, cut, malformed, strangers;
	int64_t last_packet_ns; /* by the clock of the ticks; 0: none has come yet */
};

enum { OUTPUT };
static const struct frag_port source_ports[] = {
	[OUTPUT] = {.name = "output",
		    .dir = FRAG_OUT,
		    .type = "tensor",
		    .headline = "data: packets one after the other; lengths: of each"},
};

static const struct frag_param source_params[] = {
	FRAG_PARAM_STRING(struct source, address, "127.0.0.1",
			  .headline = "Address to receive on, or a multicast group to join",
			  .description =
				  "0.0.0.0 or :: receives on every interface, from everybody"),
	FRAG_PARAM_I64(struct source, port, 0, .headline = "Port; 0: any free one, which is logged",
		       .min = 0, .max = 65535),
	FRAG_PARAM_STRING(struct source, interface, "",
			  .headline = "Network interface of a multicast group"),
	FRAG_PARAM_STRING(
		struct source, only_from, "",
		.headline = "Take packets of this address only; empty: of everybody",
		.description =
			"Whoever can send packets on the network can also forge this address"),
	FRAG_PARAM_I64(struct source, batch_size, 64,
		       .headline = "The most packets in a message: those that are there", .min = 1,
		       .max = UDP_BATCH_MAX),
	FRAG_PARAM_I64(struct source, max_payload_size, 1472,
		       .headline = "Bytes of the largest packet; longer ones are dropped", .min = 1,
		       .max = UDP_PAYLOAD_MAX),
	FRAG_PARAM_SIZE(struct source, receive_buffer, 0,
			.headline = "Bytes that the kernel keeps; 0: its default", .min = 0,
			.max = INT_MAX / 2),
	FRAG_PARAM_BOOL(
		struct source, sequence, false, .headline = "Packets are numbered (by udp_sink)",
		.description =
			"Each begins with two big-endian u64, its number and its time, which are taken away"),
	FRAG_PARAM_DURATION(struct source, idle_timeout, 0,
			    .headline = "End when no packet came for so long; 0: never", .min = 0,
			    .max = 9e18),
	FRAG_PARAM_RESOURCE(struct source, pool, NULL, .headline = "Allocator of the data",
			    .flags = FRAG_PARAM_OPTIONAL),
};

static int source_setup(void *state, struct frag_op *op)
{
	struct source *s = state;
	struct frag_err err = FRAG_ERR_INIT;
	int r = udp_address_read(s->address, s->port, s->interface, &s->here, &err);

	s->fd = -1;
	if (r == 0 && s->only_from[0] != '\0')
		r = udp_address_read(s->only_from, 0, "", &s->peer, &err);
	if (r < 0)
		return frag_op_fail(op, r, "%s", err.text);
	if (s->only_from[0] != '\0' && s->peer.any.sa_family != s->here.any.sa_family)
		return frag_op_fail(
			op, -EINVAL,
			"address is %s and only_from is %s; give both as IPv4 or both as IPv6",
			s->address, s->only_from);
	return 0;
}

static int join_group(struct source *s)
{
	if (s->here.any.sa_family == AF_INET) {
		struct ip_mreqn group = {.imr_multiaddr = s->here.v4.sin_addr,
					 .imr_ifindex = (int)s->here.interface};

		return setsockopt(s->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group));
	}
	struct ipv6_mreq group = {.ipv6mr_multiaddr = s->here.v6.sin6_addr,
				  .ipv6mr_interface = s->here.interface};

	return setsockopt(s->fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &group, sizeof(group));
}

static void enlarge_buffer(struct source *s, struct frag_op *op)
{
	int wanted = (int)s->receive_buffer, given = 0;
	socklen_t size = sizeof(given);

	if (wanted == 0)
		return;
	if (setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted)) == 0 &&
	    getsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &given, &size) == 0 && given / 2 < wanted)
		frag_op_log(
			op,
			"the kernel keeps %d bytes of packets instead of %d; raise net.core.rmem_max with sysctl",
			given / 2, wanted);
}

/* Opens the socket here, so that a port in use is reported before anything runs. */
static int source_initialize(void *state, struct frag_op *op)
{
	struct source *s = state;
	char text[UDP_ADDRESS_TEXT_MAX];
	const int on = 1;
	socklen_t size = s->here.size;

	udp_address_text(&s->here, text);
	s->fd = socket(s->here.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return frag_op_fail(op, -errno, "cannot open a socket for %s: %s", text,
				    frag_strerror(-errno));
	if (s->here.multicast)
		setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(s->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	setsockopt(s->fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
	if (s->here.any.sa_family == AF_INET6)
		setsockopt(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	enlarge_buffer(s, op);
	if (bind(s->fd, &s->here.any, s->here.size) < 0)
		return frag_op_fail(
			op, -errno,
			"cannot receive on %s: %s; give an address of this machine and a free port",
			text, frag_strerror(-errno));
	if (s->here.multicast && join_group(s) < 0)
		return frag_op_fail(
			op, -errno,
			"cannot join the multicast group %s: %s; name the network interface with the parameter interface",
			text, frag_strerror(-errno));
	if (getsockname(s->fd, &s->here.any, &size) < 0)
		return frag_op_fail(op, -errno, "cannot find out the port: %s",
				    frag_strerror(-errno));
	s->bound = true;
	return 0;
}

static int source_start(void *state, struct frag_op *op)
{
	struct source *s = state;
	size_t n = (size_t)s->batch_size;
	char text[UDP_ADDRESS_TEXT_MAX];

	s->slot_bytes = (size_t)s->max_payload_size + (s->sequence ? UDP_HEADER_BYTES : 0);
	s->memory = calloc(n, s->slot_bytes);
	s->messages = calloc(n, sizeof(*s->messages));
	s->parts = calloc(n, sizeof(*s->parts));
	s->senders = calloc(n, sizeof(*s->senders));
	s->controls = calloc(n, sizeof(*s->controls));
	if (s->memory == NULL || s->messages == NULL || s->parts == NULL || s->senders == NULL ||
	    s->controls == NULL)
		return frag_op_fail(
			op, -ENOMEM,
			"no memory for %zu packets of %zu bytes; make batch_size or max_payload_size smaller",
			n, s->slot_bytes);
	for (size_t i = 0; i < n; i++)
		s->parts[i] = (struct iovec){.iov_base = s->memory + i * s->slot_bytes,
					     .iov_len = s->slot_bytes};
	frag_op_log(op, "receives packets on %s", udp_address_text(&s->here, text));
	return 0;
}

/* Returns whether packets are there, after a short wait for them. */
static bool wait_for_packets(struct source *s, struct frag_tick *tick)
{
	struct pollfd fds[] = {
		{.fd = s->fd, .events = POLLIN},
		{.fd = frag_op_stop_fd(frag_tick_op(tick)), .events = POLLIN},
	};
	const struct timespec limit = {.tv_nsec = WAIT_NS};

	return ppoll(fds, FRAG_COUNT_OF(fds), &limit, NULL) > 0 && (fds[0].revents & POLLIN);
}

/* Takes up to a batch of packets out of the socket. Returns how many, or a negative errno. */
static int take_packets(struct source *s)
{
	for (int64_t i = 0; i < s->batch_size; i++)
		s->messages[i].msg_hdr = (struct msghdr){
			.msg_name = &s->senders[i],
			.msg_namelen = sizeof(struct sockaddr_in6),
			.msg_iov = &s->parts[i],
			.msg_iovlen = 1,
			.msg_control = &s->controls[i],
			.msg_controllen = sizeof(s->controls[i]),
		};
	int n = recvmmsg(s->fd, s->messages, (unsigned int)s->batch_size, MSG_DONTWAIT, NULL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n;
}

/* Reads what the kernel says about a packet. Returns when it came, in Unix time; 0: unknown. */
static int64_t read_control(struct source *s, struct msghdr *header)
{
	int64_t arrived_ns = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SO_TIMESTAMPNS) {
			struct timespec t;

			memcpy(&t, CMSG_DATA(c), sizeof(t));
			arrived_ns = t.tv_sec * NS + t.tv_nsec;
		} else if (c->cmsg_type == SO_RXQ_OVFL) {
			uint32_t dropped;

			/* The kernel's counter wraps. */
			memcpy(&dropped, CMSG_DATA(c), sizeof(dropped));
			s->overflowed += (uint32_t)(dropped - (uint32_t)s->overflowed);
		}
	}
	return arrived_ns;
}

/* Decides on the i-th packet that was taken. Returns whether it is passed on. */
static bool accept_packet(struct source *s, int i)
{
	const struct mmsghdr *m = &s->messages[i];

	if (s->only_from[0] != '\0' && !udp_address_same_host(&s->senders[i], &s->peer)) {
		s->strangers++;
		return false;
	}
	if (m->msg_hdr.msg_flags & MSG_TRUNC) {
		s->cut++;
		return false;
	}
	if (!s->sequence)
		return true;
	if (m->msg_len < UDP_HEADER_BYTES) {
		s->malformed++;
		return false;
	}
	switch (udp_sequence_take(&s->numbers, udp_get_u64(s->parts[i].iov_base))) {
	case UDP_NEW:
	case UDP_LATE:
		return true;
	case UDP_REPEATED:
	case UDP_STRAY:
		return false;
	}
	return false;
}

static int make_tensors(struct source *s, struct frag_message *message, int64_t packets,
			int64_t bytes, uint8_t **out_data, int32_t **out_lengths)
{
	struct frag_tensor *data, *lengths = NULL;
	int r = frag_tensor_create(s->pool, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1, &bytes,
				   &data);

	if (r < 0)
		return r;
	*out_data = frag_tensor_writable(data);
	r = frag_message_add_tensor(message, UDP_DATA, data);
	if (r == 0)
		r = frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_INT, 32, 1}, 1,
				       &packets, &lengths);
	if (r != 0)
		return r;
	*out_lengths = frag_tensor_writable(lengths);
	return frag_message_add_tensor(message, UDP_LENGTHS, lengths);
}

/* Copies the accepted packets into tensors of the message. */
static int fill_message(struct source *s, struct frag_message *message, const int *accepted,
			int count)
{
	size_t header = s->sequence ? UDP_HEADER_BYTES : 0;
	int64_t bytes = 0;
	uint8_t *data = NULL;
	int32_t *lengths = NULL;
	int r;

	for (int k = 0; k < count; k++)
		bytes += (int64_t)(s->messages[accepted[k]].msg_len - header);
	r = make_tensors(s, message, count, bytes, &data, &lengths);
	if (r != 0)
		return r;
	for (int k = 0; k < count; k++) {
		size_t length = s->messages[accepted[k]].msg_len - header;

		if (length > 0)
			memcpy(data, (uint8_t *)s->parts[accepted[k]].iov_base + header, length);
		data += length;
		lengths[k] = (int32_t)length;
	}
	s->packets += count;
	s->bytes += bytes;
	return 0;
}

static int set_metadata(const struct source *s, struct frag_metadata *metadata, int first)
{
	const struct {
		const char *key;
		int64_t value;
	} counts[] = {
		{"lost", udp_sequence_lost(&s->numbers)},
		{"late", s->numbers.late},
		{"repeated", s->numbers.repeated},
		{"overflowed", s->overflowed},
		{"refused", s->cut + s->malformed + s->strangers + s->numbers.stray},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < FRAG_COUNT_OF(counts); i++)
		r = frag_metadata_set_i64(metadata, counts[i].key, counts[i].value);
	if (r < 0 || !s->sequence)
		return r;
	const uint8_t *header = s->parts[first].iov_base;

	r = frag_metadata_set_i64(metadata, "number", (int64_t)udp_get_u64(header));
	return r < 0 ? r
		     : frag_metadata_set_i64(metadata, "sent_unix_ns",
					     (int64_t)udp_get_u64(header + 8));
}

static int emit_packets(struct source *s, struct frag_tick *tick, const int *accepted, int count,
			int64_t arrived_ns)
{
	struct frag_message *message = frag_message_create();
	int r = message == NULL ? -ENOMEM : fill_message(s, message, accepted, count);

	if (r == 0)
		r = set_metadata(s, frag_tick_metadata(tick), accepted[0]);
	if (r < 0) {
		frag_message_unref(message);
		return frag_op_fail(
			frag_tick_op(tick), r,
			"cannot make a message of %d packets: %s; give the pool larger or more blocks",
			count, frag_strerror(r));
	}
	frag_message_set_acquisition_ns(message, arrived_ns);
	return frag_tick_emit(tick, OUTPUT, message);
}

/* Packets come by the machine's clock, whatever the fragment's is. */
static int64_t machine_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int source_compute(void *state, struct frag_tick *tick)
{
	struct source *s = state;
	int accepted[UDP_BATCH_MAX], count = 0;
	int n = wait_for_packets(s, tick) ? take_packets(s) : 0;
	int64_t arrived_ns = 0, now_ns = s->idle_timeout > 0 ? machine_ns() : 0;

	if (n < 0)
		return frag_op_fail(frag_tick_op(tick), n, "cannot receive packets: %s",
				    frag_strerror(n));
	if (n > 0 || s->last_packet_ns == 0)
		s->last_packet_ns = now_ns;
	if (n == 0)
		return s->idle_timeout > 0 && now_ns - s->last_packet_ns >= s->idle_timeout
			       ? FRAG_DONE
			       : 0;
	for (int i = 0; i < n; i++) {
		int64_t came_ns = read_control(s, &s->messages[i].msg_hdr);

		if (!accept_packet(s, i))
			continue;
		if (count == 0)
			arrived_ns = came_ns;
		accepted[count++] = i;
	}
	return count > 0 ? emit_packets(s, tick, accepted, count, arrived_ns) : 0;
}

static int source_stop(void *state, struct frag_op *op)
{
	const struct source *s = state;
	const struct udp_sequence *n = &s->numbers;

	frag_op_log(
		op,
		"received %lld packets of %lld bytes; dropped %lld that came too fast, %lld longer than max_payload_size, %lld of other senders, %lld without a header",
		(long long)s->packets, (long long)s->bytes, (long long)s->overflowed,
		(long long)s->cut, (long long)s->strangers, (long long)s->malformed);
	if (s->sequence)
		frag_op_log(
			op,
			"of the numbered packets %lld are lost, %lld came late, %lld were repeated, %lld were far from the others and dropped; the sender began anew %lld times",
			(long long)udp_sequence_lost(n), (long long)n->late, (long long)n->repeated,
			(long long)n->stray, (long long)n->restarts);
	return 0;
}

static void source_fini(void *state, struct frag_op *op)
{
	struct source *s = state;

	(void)op;
	if (s->fd >= 0)
		close(s->fd);
	free(s->memory);
	free(s->messages);
	free(s->parts);
	free(s->senders);
	free(s->controls);
}

int udp_source_bound_port(const void *state)
{
	const struct source *s = state;

	return ntohs(s->here.any.sa_family == AF_INET ? s->here.v4.sin_port : s->here.v6.sin6_port);
}

const struct frag_op_type udp_source_type = {
	FRAG_OP_TYPE_INIT,
	.name = "udp_source",
	.headline = "Receives UDP packets",
	.description =
		"It is for raw packets; video_replayer plays streams of cameras (its url: rtsp:// or udp://). One message a tick, with the packets that are there. Metadata, all i64 and counted since the start: lost, late, repeated (of numbered packets), overflowed (dropped by the kernel), refused; and of the first packet number and sent_unix_ns. The acquisition time is when it arrived.",
	.state_size = sizeof(struct source),
	FRAG_PORTS(source_ports),
	FRAG_PARAMS(source_params),
	.setup = source_setup,
	.initialize = source_initialize,
	.start = source_start,
	.compute = source_compute,
	.stop = source_stop,
	.fini = source_fini,
};
