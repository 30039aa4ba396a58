// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "udp/sequence.h"
#include "udp/udp.h"

static const char *port_of(struct frag_harness *source)
{
	static char text[4][8];
	static unsigned int next;
	char *port = text[next++ % 4];

	snprintf(port, sizeof(text[0]), "%d", udp_source_bound_port(frag_harness_state(source)));
	return port;
}

/* A socket of the test that is connected to the source. */
static int sender(struct frag_harness *source)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)udp_source_bound_port(frag_harness_state(source))),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void send_bytes(int fd, const void *data, size_t size)
{
	cr_assert_eq(send(fd, data, size, 0), (ssize_t)size);
}

static void send_numbered(int fd, uint64_t number)
{
	uint8_t packet[UDP_HEADER_BYTES + 1] = {0};

	udp_put_u64(packet, number);
	udp_put_u64(packet + 8, 1000 + number);
	packet[UDP_HEADER_BYTES] = (uint8_t)number;
	send_bytes(fd, packet, sizeof(packet));
}

/* Ticks the source until it emits; loopback delivers what was sent before. */
static struct frag_message *receive(struct frag_harness *source)
{
	struct frag_message *m = NULL;

	while (frag_harness_take(source, "output", &m) != 0)
		cr_assert_eq(frag_harness_tick(source), 0, "%s", frag_harness_error(source));
	return m;
}

static int64_t count_of(const struct frag_message *m, const char *key)
{
	int64_t value = -1;

	cr_assert_eq(frag_metadata_get_i64(frag_message_metadata(m), key, &value), 0, "%s", key);
	return value;
}

/* The message holds these packets, each of one byte. */
static void check_bytes(const struct frag_message *m, const char *bytes)
{
	const struct frag_tensor *data = frag_message_tensor(m, UDP_DATA);
	const struct frag_tensor *lengths = frag_message_tensor(m, UDP_LENGTHS);
	size_t n = strlen(bytes);

	cr_assert_eq(frag_tensor_dl(lengths)->shape[0], (int64_t)n);
	cr_assert_eq(frag_tensor_size_bytes(data), n);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(((const int32_t *)frag_tensor_data(lengths))[i], 1);
	cr_assert_arr_eq((const char *)frag_tensor_data(data), bytes, n);
}

Test(ops_udp, packets_arrive_with_lengths_and_time)
{
	struct frag_harness *source = make(&udp_source_type, NULL);
	int fd = sender(source);
	struct frag_message *m;
	const int32_t *lengths;

	send_bytes(fd, "one", 3);
	send_bytes(fd, "", 0);
	send_bytes(fd, "three", 5);
	m = receive(source);
	lengths = frag_tensor_data(frag_message_tensor(m, UDP_LENGTHS));
	cr_assert_eq(frag_tensor_dl(frag_message_tensor(m, UDP_LENGTHS))->shape[0], 3);
	cr_assert(lengths[0] == 3 && lengths[1] == 0 && lengths[2] == 5);
	cr_assert_arr_eq((const char *)frag_tensor_data(frag_message_tensor(m, UDP_DATA)),
			 "onethree", 8);
	cr_assert_gt(frag_message_acquisition_ns(m), INT64_C(1600000000000000000));
	frag_message_unref(m);
	close(fd);
	frag_harness_destroy(source);
}

Test(ops_udp, a_message_holds_a_batch_at_most)
{
	struct frag_harness *source = make(&udp_source_type, FRAG_ARGS({"batch_size", "2"}));
	int fd = sender(source);

	for (int i = 0; i < 5; i++)
		send_bytes(fd, &"abcde"[i], 1);
	for (int i = 0; i < 3; i++) {
		static const char *const batches[] = {"ab", "cd", "e"};
		struct frag_message *m = receive(source);

		check_bytes(m, batches[i]);
		frag_message_unref(m);
	}
	close(fd);
	frag_harness_destroy(source);
}

Test(ops_udp, a_tensor_is_split_and_comes_whole)
{
	struct frag_harness *source = make(
		&udp_source_type, FRAG_ARGS({"sequence", "true"}, {"max_payload_size", "1000"}));
	struct frag_harness *sink =
		make(&udp_sink_type, FRAG_ARGS({"port", port_of(source)}, {"sequence", "true"},
					       {"max_payload_size", "1000"}));
	int64_t size = 70500;
	struct frag_tensor *t;
	size_t have = 0;

	cr_assert_eq(
		frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1, &size, &t),
		0);
	for (int64_t i = 0; i < size; i++)
		((uint8_t *)frag_tensor_writable(t))[i] = (uint8_t)(i * 7 + i / 251);
	give_tensor(sink, "input", "any", frag_tensor_ref(t));
	cr_assert_eq(frag_harness_tick(sink), 0, "%s", frag_harness_error(sink));
	while (have < (size_t)size) {
		struct frag_message *m = receive(source);
		const struct frag_tensor *data = frag_message_tensor(m, UDP_DATA);

		cr_assert_eq(memcmp(frag_tensor_data(data),
				    (const uint8_t *)frag_tensor_data(t) + have,
				    frag_tensor_size_bytes(data)),
			     0);
		have += frag_tensor_size_bytes(data);
		cr_assert_eq(count_of(m, "lost") + count_of(m, "late") + count_of(m, "refused"), 0);
		/* It begins at random, and far from where numbers end. */
		cr_assert(count_of(m, "number") > 0 && count_of(m, "number") < INT64_C(1) << 49);
		frag_message_unref(m);
	}
	frag_tensor_unref(t);
	frag_harness_destroy(sink);
	frag_harness_destroy(source);
}

Test(ops_udp, packets_are_passed_on_as_they_came)
{
	struct frag_harness *from = make(&udp_source_type, NULL);
	struct frag_harness *to = make(&udp_source_type, NULL);
	struct frag_harness *sink = make(&udp_sink_type, FRAG_ARGS({"port", port_of(to)}));
	int fd = sender(from);
	struct frag_message *m;

	send_bytes(fd, "a", 1);
	send_bytes(fd, "b", 1);
	m = receive(from);
	cr_assert_eq(frag_harness_give(sink, "input", m), 0);
	cr_assert_eq(frag_harness_tick(sink), 0, "%s", frag_harness_error(sink));
	m = receive(to);
	check_bytes(m, "ab");
	frag_message_unref(m);
	close(fd);
	frag_harness_destroy(sink);
	frag_harness_destroy(to);
	frag_harness_destroy(from);
}

Test(ops_udp, lost_late_and_repeated_packets_are_counted)
{
	static const uint8_t numbers[] = {'a', 'b', 'e', 'd', 'e', 'b', 'h'};
	struct frag_harness *source = make(&udp_source_type, FRAG_ARGS({"sequence", "true"}));
	int fd = sender(source);
	struct frag_message *m;

	for (size_t i = 0; i < sizeof(numbers); i++)
		send_numbered(fd, numbers[i]);
	m = receive(source);
	check_bytes(m, "abedh");
	cr_assert_eq(count_of(m, "lost"), 3, "c, f and g");
	cr_assert_eq(count_of(m, "late"), 1);
	cr_assert_eq(count_of(m, "repeated"), 2);
	cr_assert_eq(count_of(m, "number"), 'a');
	cr_assert_eq(count_of(m, "sent_unix_ns"), 1000 + 'a');
	frag_message_unref(m);
	close(fd);
	frag_harness_destroy(source);
}

static int64_t unix_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/*
 * The kernel begins to stamp packets some time after the first socket has asked for that; until
 * then it gives the time when they are received. Returns a source that keeps it at that.
 */
static struct frag_harness *wait_for_stamps(void)
{
	struct frag_harness *source = make(&udp_source_type, NULL);
	int fd = sender(source);
	bool is_stamped = false;

	while (!is_stamped) {
		int64_t sent_ns;
		struct frag_message *m;

		send_bytes(fd, "a", 1);
		sent_ns = unix_ns();
		usleep(2000);
		m = receive(source);
		is_stamped = frag_message_acquisition_ns(m) <= sent_ns;
		frag_message_unref(m);
	}
	close(fd);
	return source;
}

/* Number and times of a message are those of its first packet, without those that were refused. */
Test(ops_udp, the_first_packet_of_a_message_gives_its_number_and_time)
{
	static const struct {
		uint8_t numbers[3];
		size_t first;
		const char *bytes;
	} rows[] = {
		{{'a', 'b', 'c'}, 0, "abc"}, {{'c', 'd', 'e'}, 1, "de"}, {{'d', 'e', 'f'}, 2, "f"}};
	struct frag_harness *stamped = wait_for_stamps();
	struct frag_harness *source = make(&udp_source_type, FRAG_ARGS({"sequence", "true"}));
	int fd = sender(source);

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		int64_t sent_ns[4];
		struct frag_message *m;

		for (size_t k = 0; k < 3; k++) {
			sent_ns[k] = unix_ns();
			send_numbered(fd, rows[i].numbers[k]);
			usleep(2000);
		}
		sent_ns[3] = unix_ns();
		m = receive(source);
		check_bytes(m, rows[i].bytes);
		cr_expect_eq(count_of(m, "number"), rows[i].numbers[rows[i].first], "row %zu", i);
		cr_expect_eq(count_of(m, "sent_unix_ns"), 1000 + rows[i].numbers[rows[i].first],
			     "row %zu", i);
		cr_expect(frag_message_acquisition_ns(m) >= sent_ns[rows[i].first] &&
				  frag_message_acquisition_ns(m) <= sent_ns[rows[i].first + 1],
			  "row %zu: the time of another packet", i);
		frag_message_unref(m);
	}
	close(fd);
	frag_harness_destroy(source);
	frag_harness_destroy(stamped);
}

Test(ops_udp, what_is_too_long_or_has_no_number_is_refused_and_counted)
{
	struct frag_harness *source =
		make(&udp_source_type, FRAG_ARGS({"sequence", "true"}, {"max_payload_size", "1"}));
	int fd = sender(source);
	char garbage[3000];
	struct frag_message *m;

	srand(1);
	for (size_t i = 0; i < sizeof(garbage); i++)
		garbage[i] = (char)rand();
	send_numbered(fd, 'a');
	for (size_t size = 0; size < UDP_HEADER_BYTES; size++)
		send_bytes(fd, garbage, size);
	for (size_t size = UDP_HEADER_BYTES + 2; size < sizeof(garbage); size += 500)
		send_bytes(fd, garbage, size);
	for (int i = 0; i < 10; i++)
		send_bytes(fd, garbage + i, UDP_HEADER_BYTES);
	send_numbered(fd, 'b');
	m = receive(source);
	check_bytes(m, "ab");
	cr_assert_eq(count_of(m, "refused"), UDP_HEADER_BYTES + 6 + 10);
	cr_assert_eq(count_of(m, "lost"), 0);
	frag_message_unref(m);
	close(fd);
	frag_harness_destroy(source);
}

Test(ops_udp, packets_of_other_senders_are_refused)
{
	struct frag_harness *source = make(&udp_source_type, FRAG_ARGS({"only_from", "127.0.0.2"}));
	struct sockaddr_in second = {.sin_family = AF_INET,
				     .sin_addr = {htonl(INADDR_LOOPBACK + 1)}};
	int stranger = sender(source), fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to;
	socklen_t size = sizeof(to);
	struct frag_message *m;

	cr_assert_eq(getpeername(stranger, (struct sockaddr *)&to, &size), 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&second, sizeof(second)), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, size), 0);
	send_bytes(stranger, "x", 1);
	send_bytes(fd, "a", 1);
	m = receive(source);
	check_bytes(m, "a");
	cr_assert_eq(count_of(m, "refused"), 1);
	frag_message_unref(m);
	close(fd);
	close(stranger);
	frag_harness_destroy(source);
}

/* Twice more than the kernel keeps: its count goes on, and the numbers say the same. */
Test(ops_udp, what_the_kernel_drops_is_counted)
{
	struct frag_harness *source =
		make(&udp_source_type, FRAG_ARGS({"sequence", "true"}, {"receive_buffer", "2048"}));
	int fd = sender(source);
	int64_t received = 0, overflowed = 0, before;
	uint64_t number = 0;
	int calm; /* messages since the kernel has said so */

	for (int flood = 0; flood < 2; flood++) {
		for (int i = 0; i < 200; i++)
			send_numbered(fd, number++);
		before = overflowed;
		for (calm = 0; overflowed == before || calm < 3;) {
			struct frag_message *m;

			send_numbered(fd, number++);
			m = receive(source);
			received += frag_tensor_dl(frag_message_tensor(m, UDP_LENGTHS))->shape[0];
			overflowed = count_of(m, "overflowed");
			calm += overflowed > before;
			if (overflowed > before) {
				cr_assert_eq(count_of(m, "lost"), overflowed);
				cr_assert_eq(received + overflowed, (int64_t)number);
			}
			frag_message_unref(m);
		}
	}
	close(fd);
	frag_harness_destroy(source);
}

Test(ops_udp, a_source_without_packets_ends_when_asked)
{
	struct frag_harness *source = make(&udp_source_type, FRAG_ARGS({"idle_timeout", "50ms"}));
	int r = 0;

	while (r == 0)
		r = frag_harness_tick(source);
	cr_assert_eq(r, FRAG_DONE);
	frag_harness_destroy(source);
}

/*
 * Nobody receives: the network says so about the first packet, and the sink goes on. A socket that
 * takes packets of another peer only keeps the port, so that no other test gets them.
 */
Test(ops_udp, a_sink_without_a_receiver_goes_on)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in peer = own;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(own);
	struct frag_harness *sink;
	int64_t bytes = 3;
	char port[8];

	peer.sin_port = htons(9);
	cr_assert_eq(bind(fd, (struct sockaddr *)&own, size), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&peer, size), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&own, &size), 0);
	snprintf(port, sizeof(port), "%d", ntohs(own.sin_port));
	sink = make(&udp_sink_type, FRAG_ARGS({"port", port}));
	for (int i = 0; i < 20; i++) {
		struct frag_tensor *t;

		cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1,
						&bytes, &t),
			     0);
		memset(frag_tensor_writable(t), i, 3);
		give_tensor(sink, "input", "", t);
		cr_assert_eq(frag_harness_tick(sink), 0, "%s", frag_harness_error(sink));
	}
	frag_harness_destroy(sink);
	close(fd);
}

static void give_packets(struct frag_harness *sink, int64_t bytes, const int32_t *lengths,
			 int64_t count)
{
	struct frag_message *m = frag_message_create();
	struct frag_tensor *data, *t;

	cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1, &bytes,
					&data),
		     0);
	if (bytes > 0)
		memset(frag_tensor_writable(data), 1, (size_t)bytes);
	cr_assert_eq(
		frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_INT, 32, 1}, 1, &count, &t),
		0);
	memcpy(frag_tensor_writable(t), lengths, (size_t)count * sizeof(*lengths));
	cr_assert_eq(frag_message_add_tensor(m, UDP_DATA, data), 0);
	cr_assert_eq(frag_message_add_tensor(m, UDP_LENGTHS, t), 0);
	cr_assert_eq(frag_harness_give(sink, "input", m), 0);
}

/* Lengths that another host sent are believed in nothing. */
Test(ops_udp, lengths_that_do_not_fit_the_data_are_refused)
{
	static const struct {
		int32_t lengths[2];
		const char *says;
	} cases[] = {
		{{4, 5}, "have 9 bytes in all, and tensor \"data\" has 8"},
		{{-1, 9}, "packet 0 has -1 bytes"},
		{{8, INT32_MAX}, "packet 1 has 2147483647 bytes"},
		{{0, 1473}, "max_payload_size is 1472"},
		{{1473, 0}, "max_payload_size is 1472"},
		{{4, 3}, "have 7 bytes in all, and tensor \"data\" has 8"},
	};
	static const int32_t good[][2] = {{1472, 1472}, {0, 1472}, {0, 0}, {1, 1471}};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_harness *sink = make(&udp_sink_type, FRAG_ARGS({"port", "9"}));

		give_packets(sink, 8, cases[i].lengths, 2);
		cr_assert_lt(frag_harness_tick(sink), 0);
		cr_assert(strstr(frag_harness_error(sink), cases[i].says) != NULL, "said: %s",
			  frag_harness_error(sink));
		frag_harness_destroy(sink);
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(good); i++) {
		struct frag_harness *sink = make(&udp_sink_type, FRAG_ARGS({"port", "9"}));

		give_packets(sink, good[i][0] + good[i][1], good[i], 2);
		cr_expect_eq(frag_harness_tick(sink), 0, "good %zu: %s", i,
			     frag_harness_error(sink));
		frag_harness_destroy(sink);
	}
}

Test(ops_udp, addresses_that_cannot_be_used_are_explained)
{
	struct frag_harness *taken = make(&udp_source_type, NULL);
	const char *port = port_of(taken);
	const struct {
		const struct frag_op_type *type;
		struct frag_arg args[4];
		const char *says;
	} cases[] = {
		{&udp_source_type, {{"address", "localhost"}}, "is not an IPv4 or IPv6 address"},
		{&udp_source_type, {{"port", port}}, "in use; give an address of this machine"},
		{&udp_source_type, {{"address", "192.0.2.1"}}, "cannot receive on 192.0.2.1:0"},
		{&udp_source_type,
		 {{"address", "224.0.0.251"}, {"interface", "none0"}},
		 "no network interface none0"},
		{&udp_source_type, {{"address", "fe80::1"}}, "name the network interface"},
		{&udp_source_type, {{"address", "ff02::1"}}, "ff02::1 is an address of one link"},
		{&udp_source_type, {{"interface", "lo"}}, "127.0.0.1 is no multicast address"},
		{&udp_source_type, {{"only_from", "::1"}}, "both as IPv4 or both as IPv6"},
		{&udp_sink_type,
		 {{"port", "9"}, {"sequence", "true"}, {"max_payload_size", "65507"}},
		 "may be 65491 at most"},
		{&udp_sink_type,
		 {{"port", "9"}, {"address", "255.255.255.255"}},
		 "cannot send to 255.255.255.255:9"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_assert_null(frag_harness_create(cases[i].type, cases[i].args, &err), "case %zu",
			       i);
		cr_assert(strstr(err.text, cases[i].says) != NULL, "case %zu said: %s", i,
			  err.text);
	}
	frag_harness_destroy(taken);
}

Test(ops_udp, multicast_on_loopback)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *source = frag_harness_create(
		&udp_source_type, FRAG_ARGS({"address", "239.255.77.1"}, {"interface", "lo"}),
		&err);
	struct frag_harness *sink;
	const int32_t lengths[] = {1, 1};
	struct frag_message *m;

	cr_assert_not_null(source, "%s", err.text);
	sink = make(&udp_sink_type, FRAG_ARGS({"address", "239.255.77.1"}, {"interface", "lo"},
					      {"port", port_of(source)}));
	give_packets(sink, 2, lengths, 2);
	cr_assert_eq(frag_harness_tick(sink), 0, "%s", frag_harness_error(sink));
	m = receive(source);
	check_bytes(m, "\x01\x01");
	finish(sink, m);
	frag_harness_destroy(source);
}

Test(ops_udp, sequence_counts_what_never_came)
{
	struct udp_sequence s = {0};

	cr_assert_eq(udp_sequence_take(&s, 10), UDP_NEW);
	cr_assert_eq(udp_sequence_take(&s, 9), UDP_LATE);
	cr_assert_eq(udp_sequence_lost(&s), 0);
	cr_assert_eq(udp_sequence_take(&s, 12), UDP_NEW);
	cr_assert_eq(udp_sequence_lost(&s), 1);
	cr_assert_eq(udp_sequence_take(&s, 11), UDP_LATE);
	cr_assert_eq(udp_sequence_lost(&s), 0);
	for (uint64_t by = 1; by <= 200; by++)
		cr_assert_eq(udp_sequence_take(&s, s.highest + by), UDP_NEW);
	cr_assert_eq(udp_sequence_lost(&s), 199 * 200 / 2);
}

Test(ops_udp, sequence_is_not_misled_by_one_packet)
{
	struct udp_sequence s = {0};

	cr_assert_eq(udp_sequence_take(&s, 1000), UDP_NEW);
	cr_assert_eq(udp_sequence_take(&s, UINT64_MAX), UDP_STRAY);
	cr_assert_eq(udp_sequence_take(&s, 1001), UDP_NEW);
	cr_assert_eq(udp_sequence_take(&s, 5), UDP_STRAY);
	cr_assert_eq(udp_sequence_take(&s, 7), UDP_STRAY);
	cr_assert_eq(udp_sequence_lost(&s), 0);
	cr_assert_eq(udp_sequence_take(&s, 8), UDP_NEW);
	cr_assert_eq(s.restarts, 1);
	cr_assert_eq(udp_sequence_take(&s, 9), UDP_NEW);
	cr_assert_eq(udp_sequence_lost(&s), 0);
}

/* Both ends of the window of 64 numbers; and only the packet right behind a stray one follows. */
Test(ops_udp, sequence_of_the_last_numbers)
{
	static const struct {
		uint64_t number;
		enum udp_verdict verdict;
		int64_t lost;
	} rows[] = {
		{100, UDP_NEW, 0},       {163, UDP_NEW, 62},      {100, UDP_REPEATED, 62},
		{101, UDP_LATE, 61},     {164, UDP_NEW, 61},      {100, UDP_STRAY, 61},
		{164, UDP_REPEATED, 61}, {101, UDP_REPEATED, 61}, {102, UDP_LATE, 60},
		{5, UDP_STRAY, 60},      {165, UDP_NEW, 60},      {6, UDP_STRAY, 60},
		{7, UDP_NEW, 60},        {8, UDP_NEW, 60},        {8, UDP_REPEATED, 60},
	};
	struct udp_sequence s = {0};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		cr_expect_eq(udp_sequence_take(&s, rows[i].number), rows[i].verdict, "row %zu", i);
		cr_expect_eq(udp_sequence_lost(&s), rows[i].lost, "row %zu: %d", i,
			     (int)udp_sequence_lost(&s));
	}
	cr_expect_eq(s.restarts, 1);
	cr_expect_eq(s.stray, 3);
}
