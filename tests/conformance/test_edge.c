// SPDX-License-Identifier: Apache-2.0
/* What every kind of edge must do; test_policies.c: what each policy drops. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#include "../slow.h"
#include "pair.h"
#include <base/stamp.h>
#include <data/codec.h>
#include <data/metadata.h>

static uint32_t room(const struct pair *pair)
{
	return pair->tx->ops->room(pair->tx);
}

EDGE_TEST(keeps_order_and_balance, .capacity = 3)
{
	int64_t sent = 0, received = 0;

	for (int round = 0; round < 200; round++) {
		while (room(pair) > 0)
			cr_assert_eq(send_value(pair, sent++), 0);
		check_balance(pair, (uint64_t)(sent - received));
		pair_settle(pair);
		for (int i = 0; i <= round % 3; i++)
			cr_assert_eq(take_value(pair), received++);
		check_balance(pair, (uint64_t)(sent - received));
		pair_settle(pair);
	}
	cr_assert_gt(atomic_load(&pair->arrivals), 0);
	cr_assert_eq(atomic_load(&pair->rx_row->latency.count), (uint64_t)received);
}

EDGE_TEST(holds_its_capacity_and_no_more, .capacity = 3)
{
	cr_assert_eq(room(pair), 3);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(send_value(pair, i), 0);
		cr_assert_eq(room(pair), (uint32_t)(2 - i));
	}
	pair_settle(pair);
	cr_assert_eq(room(pair), 0);
	cr_assert_eq(fragi_rx_available(pair->rx), 3);
	cr_assert_eq(send_value(pair, 3), -ENOBUFS);
	cr_assert_eq(dropped(pair, FRAGI_DROP_NO_ROOM), 1);
	check_balance(pair, 3);
}

static bool has_room(struct pair *pair)
{
	return room(pair) > 0;
}

EDGE_TEST(tells_the_sender_of_room, .capacity = 1)
{
	uint32_t before;

	for (int i = 0; i < 10; i++) {
		cr_assert_eq(send_value(pair, i), 0);
		pair_settle(pair);
		cr_assert_eq(room(pair), 0);
		before = atomic_load(&pair->rooms);
		cr_assert_eq(take_value(pair), i);
		cr_assert(pair_until(pair, has_room));
		cr_assert_gt(atomic_load(&pair->rooms), before);
	}
}

/* A receiver that takes fewer than half a batch and then rests must not keep the sender waiting. */
EDGE_TEST(gives_all_room_back_at_rest, .capacity = 8)
{
	for (int i = 0; i < 8; i++)
		cr_assert_eq(send_value(pair, i), 0);
	pair_settle(pair);
	cr_assert_eq(take_value(pair), 0);
	cr_assert(pair_until(pair, has_room));
}

EDGE_TEST(latest_keeps_the_newest_only, .capacity = 4, .policy = FRAG_POLICY_LATEST)
{
	for (int i = 0; i < 50; i++) {
		cr_assert_eq(send_value(pair, i), 0);
		pair_settle(pair);
	}
	cr_assert_eq(fragi_rx_available(pair->rx), 1);
	cr_assert_eq(take_value(pair), 49);
	cr_assert_eq(take_value(pair), -1);
	check_balance(pair, 0);
}

static struct frag_message *message_with(size_t bytes, int64_t value)
{
	struct frag_message *message = frag_message_create();

	cr_assert_eq(frag_message_set_value(message, &frag_type_i64, &value, sizeof(value), NULL),
		     0);
	cr_assert_eq(frag_message_add_tensor(message, "", bytes_tensor(bytes, (uint8_t)value)), 0);
	fragi_message_share(message);
	return message;
}

/* Nobody takes anything while they are sent; then everything that is left. */
static void flood(const struct kind *kind, enum frag_policy policy, uint32_t capacity, size_t bytes)
{
	struct pair pair = {.capacity = capacity, .policy = policy};
	int64_t sent = 0, last = -1, value, first = -1;
	struct frag_message *message;

	pair_open(&pair, kind);
	for (; sent < 2 * capacity + 10; sent++) {
		if (policy == FRAG_POLICY_BLOCK && room(&pair) == 0)
			break;
		cr_assert_eq(pair.tx->ops->send(pair.tx, message_with(bytes, sent), fragi_stamp()),
			     0);
	}
	pair_settle(&pair);
	while ((message = fragi_rx_take(pair.rx, fragi_stamp())) != NULL) {
		value = value_of(message);
		first = first < 0 ? value : first;
		cr_assert_gt(value, last);
		cr_assert(tensor_holds(frag_message_tensor(message, NULL), bytes, (uint8_t)value));
		frag_message_unref(message);
		last = value;
		pair_settle(&pair);
	}
	if (policy == FRAG_POLICY_BLOCK || policy == FRAG_POLICY_REJECT)
		cr_expect_eq(first, 0, "the oldest stays");
	else
		cr_expect_eq(last, sent - 1, "the newest comes");
	check_balance(&pair, 0);
	pair_close(&pair);
}

KIND_TEST(each_policy_holds_at_each_capacity)
{
	static const enum frag_policy policies[] = {FRAG_POLICY_BLOCK, FRAG_POLICY_POP,
						    FRAG_POLICY_REJECT, FRAG_POLICY_LATEST};
	static const uint32_t capacities[] = {1, 2, 100};

	for (size_t i = 0; i < FRAG_COUNT_OF(policies); i++)
		for (size_t k = 0; k < FRAG_COUNT_OF(capacities); k++)
			flood(kind, policies[i], capacities[k], k % 2 == 0 ? 100 : 20000);
}

/* One message for two receivers, of which one takes nothing. */
static void one_of_two_is_slow(const struct kind *kind, enum frag_policy policy)
{
	struct pair pair = {.capacity = 2, .policy = policy, .edges = 2};
	struct frag_message *message, *taken;

	pair_open(&pair, kind);
	for (int i = 0; i < 100; i++) {
		message = message_with(100000, i);
		for (int k = 0; k < 2; k++) {
			cr_assert_gt(pair.txs[k]->ops->room(pair.txs[k]), 0, "message %d", i);
			cr_assert_eq(pair.txs[k]->ops->send(pair.txs[k], frag_message_ref(message),
							    fragi_stamp()),
				     0);
		}
		frag_message_unref(message);
		pair_settle(&pair);
		taken = fragi_rx_take(pair.rxs[1], fragi_stamp());
		cr_assert_eq(value_of(taken), i, "the other receiver waits for nobody");
		cr_assert(tensor_holds(frag_message_tensor(taken, NULL), 100000, (uint8_t)i));
		frag_message_unref(taken);
		pair_settle(&pair);
	}
	while ((taken = fragi_rx_take(pair.rxs[0], fragi_stamp())) != NULL) {
		cr_assert(tensor_holds(frag_message_tensor(taken, NULL), 100000,
				       (uint8_t)value_of(taken)));
		frag_message_unref(taken);
		pair_settle(&pair);
	}
	check_balance(&pair, 0);
	pair_close(&pair);
}

KIND_TEST(a_slow_receiver_under_pop_delays_no_other)
{
	one_of_two_is_slow(kind, FRAG_POLICY_POP);
}

KIND_TEST(a_slow_receiver_under_latest_delays_no_other)
{
	one_of_two_is_slow(kind, FRAG_POLICY_LATEST);
}

EDGE_TEST(close_comes_after_the_last_message, .capacity = 4)
{
	uint32_t before;

	for (int i = 0; i < 3; i++)
		send_value(pair, i);
	before = atomic_load(&pair->arrivals);
	pair->tx->ops->close(pair->tx);
	pair_settle(pair);
	cr_assert_gt(atomic_load(&pair->arrivals), before);
	for (int i = 0; i < 3; i++) {
		cr_assert_not(fragi_rx_is_finished(pair->rx));
		cr_assert_eq(take_value(pair), i);
	}
	cr_assert(fragi_rx_is_finished(pair->rx));
	check_balance(pair, 0);
}

EDGE_TEST(close_of_an_empty_edge_arrives)
{
	cr_assert_not(fragi_rx_is_finished(pair->rx));
	pair->tx->ops->close(pair->tx);
	pair_settle(pair);
	cr_assert(fragi_rx_is_finished(pair->rx));
	cr_assert_gt(atomic_load(&pair->arrivals), 0);
}

static bool is_done(struct pair *pair)
{
	return atomic_load(&pair->tx->receiver_done);
}

EDGE_TEST(receiver_close_drops_what_comes, .capacity = 4)
{
	for (int i = 0; i < 3; i++)
		send_value(pair, i);
	pair_settle(pair);
	cr_assert_eq(take_value(pair), 0);
	fragi_rx_close(pair->rx);
	cr_assert(pair_until(pair, is_done));
	cr_assert_gt(atomic_load(&pair->rooms), 0);
	cr_assert_eq(room(pair), FRAGI_ROOM_UNLIMITED);
	for (int i = 3; i < 20; i++)
		cr_assert_eq(send_value(pair, i), 0);
	pair_settle(pair);
	cr_assert_eq(dropped(pair, FRAGI_DROP_RECEIVER_DONE), 19);
	check_balance(pair, 0);
}

EDGE_TEST(messages_that_meet_a_close_are_counted, .capacity = 4)
{
	for (int i = 0; i < 4; i++)
		send_value(pair, i);
	fragi_rx_close(pair->rx); /* some are under way */
	cr_assert(pair_until(pair, is_done));
	pair_settle(pair);
	cr_assert_eq(dropped(pair, FRAGI_DROP_RECEIVER_DONE), 4);
	check_balance(pair, 0);
}

/*
 * The account of a receiver whose counts nobody has calls delivered what its sender saw confirmed:
 * what the close drops is not, wherever the close meets it.
 */
static void close_confirms_nothing(const struct kind *kind, enum frag_policy policy, int turns)
{
	struct pair pair = {.capacity = 4, .policy = policy};
	uint64_t delivered, stamp, queued = policy == FRAG_POLICY_BLOCK ? 0 : pair.capacity;

	pair_open(&pair, kind);
	for (int i = 0; i < 4; i++)
		send_value(&pair, i);
	pair_settle(&pair);
	cr_assert_eq(take_value(&pair), 0);
	for (int i = 0; i < turns; i++)
		pair_turn(&pair);
	while (policy != FRAG_POLICY_BLOCK && fragi_rx_available(pair.rx) < pair.capacity) {
		send_value(&pair, 4);
		pair_settle(&pair);
	}
	if (fragi_rx_available(pair.rx) > 0)
		fragi_rx_drop_last(pair.rx, fragi_rx_hold(pair.rx, &stamp), FRAGI_DROP_STOPPED);
	(turns % 2 == 0 ? fragi_rx_close : fragi_rx_stop)(pair.rx);
	for (int i = 5; i < 30 && !is_done(&pair); i++) {
		if (room(&pair) > 0)
			send_value(&pair, i);
		pair_turn(&pair);
	}
	cr_assert(pair_until(&pair, is_done));
	pair_settle(&pair);
	delivered = atomic_load(&pair.rx_row->delivered);
	cr_assert_eq(delivered, 1);
	if (is_between_hosts(kind))
		cr_expect_leq(atomic_load(&pair.tx_row->confirmed), delivered + queued,
			      "%d turns: %llu confirmed", turns,
			      (unsigned long long)atomic_load(&pair.tx_row->confirmed));
	check_balance(&pair, 0);
	pair_close(&pair);
}

KIND_TEST(what_a_close_drops_is_not_confirmed)
{
	for (int turns = 0; turns < 4; turns++) {
		close_confirms_nothing(kind, FRAG_POLICY_BLOCK, turns);
		close_confirms_nothing(kind, FRAG_POLICY_POP, turns);
	}
}

KIND_TEST(what_is_left_at_the_end_is_stopped)
{
	struct pair pair = {.capacity = 4};
	struct fragi_flow_row tx_row, rx_row;
	uint32_t before;

	pair_open(&pair, kind);
	for (int i = 0; i < 4; i++)
		send_value(&pair, i);
	pair_settle(&pair);
	cr_assert_eq(take_value(&pair), 0);
	before = atomic_load(&pair.arrivals) + atomic_load(&pair.rooms);
	pair_end(&pair);
	/* Credits and closes may still go back and forth, but the operators are gone. */
	cr_assert_eq(atomic_load(&pair.arrivals) + atomic_load(&pair.rooms), before);
	tx_row = *pair.tx_row;
	rx_row = *pair.rx_row;
	pair.tx_row = &tx_row;
	pair.rx_row = &rx_row;
	cr_assert_eq(dropped(&pair, FRAGI_DROP_STOPPED), 3);
	check_balance(&pair, 0);
	for (int i = 0; i < 2; i++) {
		fragi_pump_destroy(pair.pump[i]);
		fragi_ledger_close(&pair.ledger[i]);
	}
}

static bool has_message(struct pair *pair)
{
	return fragi_rx_available(pair->rx) > 0;
}

EDGE_TEST(ten_tensors_a_value_and_metadata_cross)
{
	static const size_t sizes[10] = {0, 1, 3, 64, 1000, 4096, 0, 65536, 100000, 1500000};
	struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_DEFAULT);
	struct frag_message *message;
	int64_t number = 42, time_ns;
	uint64_t sequence;
	uint32_t clock;
	const char *text;
	char name[8];

	message = frag_message_create();
	frag_message_set_value(message, &frag_type_i64, &number, sizeof(number), NULL);
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		cr_assert_eq(
			frag_message_add_tensor(message, name, bytes_tensor(sizes[i], (uint8_t)i)),
			0);
	}
	frag_metadata_set_string(metadata, "patient", "nobody");
	frag_metadata_set_i64(metadata, "frame", 7);
	fragi_message_set_metadata(message, metadata);
	frag_message_set_acquisition(message, 123456789, FRAG_CLOCK_TAI);
	frag_message_set_sequence(message, 11);
	frag_message_set_flags(message, FRAG_MESSAGE_DEGRADED);
	fragi_message_share(message);
	cr_assert_eq(pair->tx->ops->send(pair->tx, message, fragi_stamp()), 0);
	cr_assert(pair_until(pair, has_message));
	message = fragi_rx_take(pair->rx, fragi_stamp());
	cr_assert_eq(value_of(message), 42);
	cr_assert_eq(frag_message_acquisition(message, &time_ns, &clock), 0);
	cr_assert(time_ns == 123456789 && clock == FRAG_CLOCK_TAI);
	cr_assert(frag_message_sequence(message, &sequence) == 0 && sequence == 11);
	cr_assert_eq(frag_message_flags(message), FRAG_MESSAGE_DEGRADED);
	cr_assert_eq(frag_message_tensor_count(message), 10);
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		cr_assert(tensor_holds(frag_message_tensor(message, name), sizes[i], (uint8_t)i),
			  "tensor %d", i);
	}
	cr_assert_eq(frag_metadata_get_string(frag_message_metadata(message), "patient", &text), 0);
	cr_assert_str_eq(text, "nobody");
	number = 0;
	cr_assert_eq(frag_metadata_get_i64(frag_message_metadata(message), "frame", &number), 0);
	cr_assert_eq(number, 7);
	frag_message_unref(message);
}

EDGE_TEST(small_tensors_cross_in_one_piece)
{
	struct frag_message *message;

	for (uint8_t n = 1; n <= 64; n++) {
		char name[8];

		message = frag_message_create();
		for (uint8_t i = 0; i < n; i++) {
			snprintf(name, sizeof(name), "t%d", i);
			cr_assert_eq(frag_message_add_tensor(message, name, bytes_tensor(i, n)), 0);
		}
		cr_assert(pair_until(pair, has_room));
		cr_assert_eq(pair->tx->ops->send(pair->tx, message, fragi_stamp()), 0);
		cr_assert(pair_until(pair, has_message));
		message = fragi_rx_take(pair->rx, fragi_stamp());
		for (uint8_t i = 0; i < n; i++)
			cr_assert(tensor_holds(frag_message_tensor_at(message, i, NULL), i, n));
		frag_message_unref(message);
	}
}

KIND_TEST(a_strided_tensor_arrives_as_what_it_shows)
{
	static uint16_t matrix[6][8];
	int64_t shape[2] = {6, 3}, strides[2] = {8, 2};
	struct frag_dltensor view = {
		.data = matrix,
		.device = {FRAG_DEVICE_CPU, 0},
		.ndim = 2,
		.dtype = {FRAG_DTYPE_UINT, 16, 1},
		.shape = shape,
		.strides = strides,
		.byte_offset = 2,
	};
	const struct frag_dltensor *dl;
	struct pair pair = {0};
	struct frag_message *message;
	struct frag_tensor *tensor;

	for (int i = 0; i < 48; i++)
		matrix[i / 8][i % 8] = (uint16_t)(i * 3);
	pair_open(&pair, kind);
	cr_assert_eq(frag_tensor_wrap(&view, NULL, NULL, &tensor), 0);
	message = frag_message_create();
	frag_message_add_tensor(message, "m", tensor);
	cr_assert_eq(pair.tx->ops->send(pair.tx, message, fragi_stamp()), 0);
	cr_assert(pair_until(&pair, has_message));
	message = fragi_rx_take(pair.rx, fragi_stamp());
	dl = frag_tensor_dl(frag_message_tensor(message, "m"));
	for (int64_t y = 0; y < 6; y++)
		for (int64_t x = 0; x < 3; x++) {
			const uint16_t *first = frag_tensor_data(frag_message_tensor(message, "m"));

			cr_assert_eq(first[y * dl->strides[0] + x * dl->strides[1]],
				     matrix[y][x * 2 + 1]);
		}
	frag_message_unref(message);
	pair_close(&pair);
}

/* Memory that this process cannot read, as device memory is. */
KIND_TEST(a_strided_device_tensor_is_refused_unread)
{
	int64_t shape[2] = {6, 3}, strides[2] = {8, 2};
	struct frag_dltensor view = {
		.data = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		.device = {FRAG_DEVICE_CUDA, 0},
		.ndim = 2,
		.dtype = {FRAG_DTYPE_UINT, 16, 1},
		.shape = shape,
		.strides = strides,
	};
	struct pair pair = {0};
	struct frag_message *message;
	struct frag_tensor *tensor;

	if (!is_between_hosts(kind))
		return;
	pair_open(&pair, kind);
	cr_assert_eq(frag_tensor_wrap(&view, NULL, NULL, &tensor), 0);
	message = frag_message_create();
	frag_message_add_tensor(message, "m", tensor);
	cr_assert_eq(pair.tx->ops->send(pair.tx, message, fragi_stamp()), -ENOTSUP);
	cr_assert_eq(atomic_load(&pair.tx_row->sent), 0);
	pair_close(&pair);
	munmap(view.data, 4096);
}

KIND_TEST(long_values_cross)
{
	static uint8_t big[3000000], small[5000];
	const void *value;
	struct pair pair = {0};
	struct frag_message *message;
	size_t size;

	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)(i * 13);
	for (size_t i = 0; i < sizeof(small); i++)
		small[i] = (uint8_t)(i * 11);
	pair_open(&pair, kind);
	for (int i = 0; i < 8;
	     i++) { /* with and without bodies, long and longer than a rendezvous */
		message = frag_message_create();
		if (i % 2 == 0)
			frag_message_set_value(message, &frag_type_bytes, big, sizeof(big), NULL);
		else
			frag_message_set_value(message, &frag_type_bytes, small, sizeof(small),
					       NULL);
		if (i % 4 >= 2)
			frag_message_add_tensor(message, "t",
						bytes_tensor(i >= 4 ? 2000000 : 3, 9));
		cr_assert_eq(pair.tx->ops->send(pair.tx, message, fragi_stamp()), 0);
		cr_assert(pair_until(&pair, has_message));
		message = fragi_rx_take(pair.rx, fragi_stamp());
		cr_assert_eq(frag_message_value(message, &value, &size), &frag_type_bytes);
		cr_assert_eq(size, i % 2 == 0 ? sizeof(big) : sizeof(small));
		cr_assert_eq(memcmp(value, i % 2 == 0 ? big : small, size), 0);
		if (i % 4 >= 2)
			cr_assert(tensor_holds(frag_message_tensor(message, "t"),
					       i >= 4 ? 2000000 : 3, 9));
		frag_message_unref(message);
		pair_settle(&pair);
	}
	pair_close(&pair);
}

EDGE_TEST(a_message_without_anything_crosses)
{
	struct frag_message *message;

	cr_assert_eq(pair->tx->ops->send(pair->tx, frag_message_create(), fragi_stamp()), 0);
	cr_assert(pair_until(pair, has_message));
	message = fragi_rx_take(pair->rx, fragi_stamp());
	cr_assert_null(frag_message_value(message, NULL, NULL));
	cr_assert_eq(frag_message_tensor_count(message), 0);
	frag_message_unref(message);
}

/* The next edge gets a message that others hold too. */
EDGE_TEST(fan_out_shares_the_message_and_what_is_encoded, .edges = 3)
{
	struct frag_message *message, *out;
	const struct fragi_blob *blob, *first;

	message = frag_message_create();
	frag_message_add_tensor(message, "t", bytes_tensor(100000, 1));
	fragi_message_share(message);
	cr_assert_eq(fragi_message_encode(message, &first), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pair->txs[i]->ops->send(pair->txs[i], frag_message_ref(message),
						     fragi_stamp()),
			     0);
	pair_settle(pair);
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	cr_assert_eq(blob, first);
	for (int i = 0; i < 3; i++) {
		out = fragi_rx_take(pair->rxs[i], fragi_stamp());
		cr_assert(tensor_holds(frag_message_tensor(out, "t"), 100000, 1));
		frag_message_unref(out);
	}
	frag_message_unref(message);
}

/* Two threads, each waiting in its own pump, as two hosts have them. */

struct stream {
	struct pair *pair;
	int count;
	size_t bytes;
	int received, wrong;
};

static bool sender_may(void *arg)
{
	struct stream *s = arg;

	return s->pair->tx->ops->room(s->pair->tx) > 0;
}

static void *stream_sender(void *arg)
{
	struct stream *s = arg;
	struct pair *pair = s->pair;
	struct frag_message *message;
	int64_t number;

	for (int i = 0; i < s->count; i++) {
		while (!sender_may(s))
			fragi_pump_wait(pair->pump[0], &pair->waiter[0],
					fragi_now_ns() + 1000000000, sender_may, s);
		message = frag_message_create();
		number = i;
		frag_message_set_value(message, &frag_type_i64, &number, sizeof(number), NULL);
		if (s->bytes > 0)
			frag_message_add_tensor(message, "", bytes_tensor(s->bytes, (uint8_t)i));
		fragi_message_share(message);
		if (pair->tx->ops->send(pair->tx, message, fragi_stamp()) != 0)
			s->wrong++;
	}
	pair->tx->ops->close(pair->tx);
	return NULL;
}

static bool receiver_may(void *arg)
{
	struct stream *s = arg;

	return fragi_rx_available(s->pair->rx) > 0 || fragi_rx_is_finished(s->pair->rx);
}

static void stream_receive(struct stream *s, int64_t until)
{
	struct frag_message *message;

	while (!fragi_rx_is_finished(s->pair->rx) && fragi_now_ns() < until) {
		message = fragi_rx_take(s->pair->rx, fragi_stamp());
		if (message == NULL) {
			fragi_pump_wait(s->pair->pump[1], &s->pair->waiter[1],
					fragi_now_ns() + 1000000000, receiver_may, s);
			continue;
		}
		if (value_of(message) != s->received ||
		    (s->bytes > 0 && !tensor_holds(frag_message_tensor(message, NULL), s->bytes,
						   (uint8_t)s->received)))
			s->wrong++;
		s->received++;
		frag_message_unref(message);
	}
}

static bool never(void *arg)
{
	return false;
}

/* So many of them, more in nightly, or fewer where all takes longer. */
static void stream(const struct kind *kind, uint32_t capacity, int most, size_t bytes,
		   uint64_t window_bytes)
{
	const int count = most * times_more() / (int)times_slower();
	struct pair pair = {.capacity = capacity, .window_bytes = window_bytes, .threads = true};
	struct stream s = {.pair = &pair, .count = count, .bytes = bytes};
	pthread_t thread;

	pair_open(&pair, kind);
	cr_assert_eq(pthread_create(&thread, NULL, stream_sender, &s), 0);
	stream_receive(&s, fragi_now_ns() + 100000000000 * times_slower());
	pthread_join(thread, NULL);
	cr_assert_eq(s.received, count);
	cr_assert_eq(s.wrong, 0);
	/* The last credit, too, comes back. */
	for (int i = 0; i < 10000 && is_between_hosts(kind) &&
			atomic_load(&pair.tx_row->confirmed) < (uint64_t)count;
	     i++)
		for (int side = 0; side < 2; side++)
			fragi_pump_wait(pair.pump[side], &pair.waiter[side],
					fragi_now_ns() + 5000000, never, NULL);
	if (is_between_hosts(kind))
		cr_assert_eq(atomic_load(&pair.tx_row->confirmed), (uint64_t)count);
	check_balance(&pair, 0);
	pair_close(&pair);
}

KIND_TEST(thousands_of_messages_at_full_speed)
{
	stream(kind, 4, 2500, 65536, 0);
}

KIND_TEST(a_window_of_one_streams)
{
	stream(kind, 1, 2000, 0, 0);
}

KIND_TEST(small_messages_stream)
{
	stream(kind, 64, 10000, 0, 0);
}

KIND_TEST(large_messages_stream)
{
	stream(kind, 4, 12, 6000000, 16u << 20); /* four times the window of bytes */
}

EDGE_TEST(a_tensor_larger_than_the_window_crosses, .window_bytes = 8u << 20)
{
	const size_t size = 10u << 20; /* it travels alone */
	struct frag_message *message;

	message = frag_message_create();
	frag_message_add_tensor(message, "t", bytes_tensor(size, 5));
	cr_assert_eq(pair->tx->ops->send(pair->tx, message, fragi_stamp()), 0);
	cr_assert_eq(send_value(pair, 1), 0);
	cr_assert(pair_until(pair, has_message));
	message = fragi_rx_take(pair->rx, fragi_stamp());
	cr_assert(tensor_holds(frag_message_tensor(message, "t"), size, 5));
	frag_message_unref(message);
	cr_assert(pair_until(pair, has_message));
	cr_assert_eq(take_value(pair), 1);
	pair_settle(pair);
	check_balance(pair, 0);
}

/* Returns for how long it travelled. */
static int64_t send_large(const struct kind *kind, size_t size, int64_t dead_ns)
{
	struct pair pair = {.dead_ns = dead_ns};
	struct frag_message *message;
	int64_t begin_ns, took_ns;

	pair_open(&pair, kind);
	message = frag_message_create();
	frag_message_add_tensor(message, "t", bytes_tensor(size, 5));
	begin_ns = fragi_now_ns();
	cr_assert_eq(pair.tx->ops->send(pair.tx, message, fragi_stamp()), 0);
	cr_assert(pair_until(&pair, has_message), "%s %s", pair.sentence[0], pair.sentence[1]);
	took_ns = fragi_now_ns() - begin_ns;
	message = fragi_rx_take(pair.rx, fragi_stamp());
	cr_assert(tensor_holds(frag_message_tensor(message, "t"), size, 5));
	frag_message_unref(message);
	pair_close(&pair);
	return took_ns;
}

/*
 * Its bytes hold back the beats behind it for longer than a peer may be silent, which is a part of
 * the time that it takes here and now.
 */
KIND_TEST(a_large_message_is_no_silence)
{
	const size_t size = (120u << 20) / (size_t)times_slower();
	int64_t dead_ns = send_large(kind, size, 0) / 2;

	send_large(kind, size, dead_ns > 60000000 ? dead_ns : 60000000);
}

KIND_TEST(what_is_too_large_is_refused_and_not_counted)
{
	struct pair pair = {.message_bytes_max = 1000000};
	struct frag_message *message;

	if (!is_between_hosts(kind))
		return;
	pair_open(&pair, kind);
	message = frag_message_create();
	frag_message_add_tensor(message, "t", bytes_tensor(1000001, 5));
	cr_assert_eq(pair.tx->ops->send(pair.tx, message, fragi_stamp()), -EMSGSIZE);
	cr_assert_eq(atomic_load(&pair.tx_row->sent), 0);
	message = frag_message_create();
	frag_message_add_tensor(message, "t", bytes_tensor(1000000, 5));
	cr_assert_eq(pair.tx->ops->send(pair.tx, message, fragi_stamp()), 0);
	cr_assert(pair_until(&pair, has_message));
	pair_close(&pair);
}

/*
 * Messages of more bytes than the window holds at once go on without the receiver doing more than
 * taking.
 */
KIND_TEST(a_window_of_bytes_holds_back_and_goes_on)
{
	struct pair pair = {.capacity = 8, .window_bytes = 100000};
	struct frag_message *message;
	int sent = 0, received = 0;

	if (!is_between_hosts(kind))
		return;
	pair_open(&pair, kind);
	while (received < 40) {
		while (sent < 40 && room(&pair) > 0) {
			message = frag_message_create();
			frag_message_add_tensor(
				message, "", bytes_tensor(30000u + (size_t)(sent % 3) * 40000, 2));
			cr_assert_eq(pair.tx->ops->send(pair.tx, message, fragi_stamp()), 0);
			sent++;
		}
		cr_assert_leq(sent - received, 5);
		cr_assert(pair_until(&pair, has_message));
		message = fragi_rx_take(pair.rx, fragi_stamp());
		cr_assert(tensor_holds(frag_message_tensor(message, NULL),
				       30000u + (size_t)(received % 3) * 40000, 2));
		frag_message_unref(message);
		received++;
		pair_settle(&pair);
	}
	check_balance(&pair, 0);
	pair_close(&pair);
}
