// SPDX-License-Identifier: Apache-2.0
/* The protocol between hosts, over a transport that does what transports may do. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "../slow.h"
#include "pair.h"
#include "socket.h"
#include <base/beat.h>
#include <base/stamp.h>
#include <edge/remote/state.h>

static size_t size_of(unsigned int n, uint32_t tensor)
{
	static const size_t sizes[] = {0, 1, 100, 5000, 40000, 300000, 2000000};

	return sizes[(n * 7 + tensor * 3) % 7];
}

/* A message whose number says what is in it. */
static struct frag_message *message_number(unsigned int n)
{
	struct frag_message *message = frag_message_create();
	int64_t number = n;
	char name[64];

	frag_message_set_value(message, &frag_type_i64, &number, sizeof(number), NULL);
	for (uint32_t i = 0; i < n % 5; i++) {
		snprintf(name, sizeof(name), "a_name_that_takes_some_room_%u", i);
		cr_assert_eq(frag_message_add_tensor(message, name,
						     bytes_tensor(size_of(n, i), (uint8_t)(n + i))),
			     0);
	}
	fragi_message_share(message);
	return message;
}

/* One of which two are not received at the same time. */
static struct frag_message *large_number(unsigned int n)
{
	struct frag_message *message = frag_message_create();
	int64_t number = n;

	frag_message_set_value(message, &frag_type_i64, &number, sizeof(number), NULL);
	cr_assert_eq(frag_message_add_tensor(message, "large",
					     bytes_tensor(FRAGI_RECEIVE_BYTES / 2 + 1, (uint8_t)n)),
		     0);
	fragi_message_share(message);
	return message;
}

static bool is_number(const struct frag_message *message, unsigned int n)
{
	if (value_of(message) != n || frag_message_tensor_count(message) != n % 5)
		return false;
	for (uint32_t i = 0; i < n % 5; i++)
		if (!tensor_holds(frag_message_tensor_at(message, i, NULL), size_of(n, i),
				  (uint8_t)(n + i)))
			return false;
	return true;
}

/* Sends and takes until all have come, or the peer is lost. Returns how many have come. */
static unsigned int exchange(struct pair *pair, unsigned int count)
{
	int64_t until = fragi_now_ns() + patience_ns();
	unsigned int sent = 0, received = 0;
	struct frag_message *message;

	while (received < count && atomic_load(&pair->lost[0]) + atomic_load(&pair->lost[1]) == 0) {
		cr_assert_lt(fragi_now_ns(), until, "%u sent, %u received", sent, received);
		while (sent < count && pair->tx->ops->room(pair->tx) > 0)
			cr_assert_eq(pair->tx->ops->send(pair->tx, message_number(sent++),
							 fragi_stamp()),
				     0);
		pair_turn(pair);
		while ((message = fragi_rx_take(pair->rx, fragi_stamp())) != NULL) {
			cr_assert(is_number(message, received), "message %u", received);
			received++;
			frag_message_unref(message);
		}
	}
	return received;
}

static void drain(struct pair *pair)
{
	for (int side = 0; side < 2; side++) {
		fragi_pump_lock(pair->pump[side]);
		fragi_remote_drain(pair->remote[side]);
		fragi_pump_unlock(pair->pump[side]);
	}
}

Test(remote, every_seed_delivers_all_in_order, .timeout = 200)
{
	for (unsigned int seed = 0; seed < 60; seed++) {
		struct pair pair = {.capacity = 1 + seed % 8};

		/* Descriptors of every length go ahead with the smallest header. */
		socket_settings = (struct socket_settings){
			.seed = seed * 1000, .header_max = seed % 3 == 0 ? FRAGI_HEADER_MIN : 512};
		if (seed % 4 == 3)
			pair.window_bytes = 500000;
		pair_open(&pair, &kind_socket);
		cr_assert_eq(exchange(&pair, 60), 60);
		pair.tx->ops->close(pair.tx);
		pair_settle(&pair);
		cr_assert(fragi_rx_is_finished(pair.rx));
		check_balance(&pair, 0);
		cr_assert_eq(atomic_load(&pair.tx_row->confirmed), 60);
		pair_close(&pair);
	}
	cr_assert_gt(socket_counts.received, 100);
	cr_assert_gt(socket_counts.mapped, 100);
	cr_assert_gt(socket_counts.copied, 100);
}

/* One side's connection breaks, at every step of an exchange. */
Test(remote, a_transport_that_dies_at_any_step_does_no_harm, .timeout = 300)
{
	for (uint32_t side = 0; side < 2; side++) {
		unsigned int received = 0;
		uint32_t step;

		for (step = 1; received < 40; step++) {
			struct pair pair = {0};

			socket_settings = (struct socket_settings){
				.seed = step * 100 + side,
				.header_max = step % 2 == 0 ? FRAGI_HEADER_MIN : 512};
			pair_open(&pair, &kind_socket);
			socket_settings.dies = socket_counts.created - 1 + side;
			socket_settings.at_step = step;
			received = exchange(&pair, 40);
			if (received < 40) {
				pair_settle(&pair);
				cr_assert_eq(atomic_load(&pair.lost[0]), 1, "side %u step %u", side,
					     step);
				cr_assert_eq(atomic_load(&pair.lost[1]), 1);
				cr_assert_not_null(strstr(pair.sentence[side], "planted"));
				cr_assert_eq(pair.failure[side], FRAGI_FAILURE_EDGE_LOST);
				cr_assert_eq(pair.tx->ops->room(pair.tx), 0);
			}
			cr_assert_eq(atomic_load(&pair.faults[0]) + atomic_load(&pair.faults[1]),
				     0);
			cr_assert_leq(atomic_load(&pair.tx_row->confirmed), received);
			pair_close(&pair);
		}
		cr_assert_gt(step, 90);
	}
}

/* The application may stop before or after the peer is lost. */
Test(remote, the_edges_of_a_lost_peer_end_when_the_application_stops)
{
	for (int lost_first = 0; lost_first < 2; lost_first++) {
		struct pair pair = {.capacity = 4};

		socket_settings = (struct socket_settings){.seed = 1};
		pair_open(&pair, &kind_socket);
		for (int64_t n = 0; n < 2; n++)
			cr_assert_eq(send_value(&pair, n), 0);
		pair_settle(&pair);
		if (!lost_first)
			drain(&pair);
		socket_settings.dies = socket_counts.created - 1;
		socket_settings.at_step = 1;
		cr_assert_eq(send_value(&pair, 2), 0);
		pair_settle(&pair);
		cr_assert_eq(atomic_load(&pair.lost[0]), 1);
		cr_assert_eq(atomic_load(&pair.lost[1]), 1);
		if (lost_first) {
			cr_expect_eq(pair.tx->ops->room(pair.tx), 0, "it waits");
			cr_expect_not(fragi_rx_is_finished(pair.rx));
			drain(&pair);
		}
		cr_expect_gt(pair.tx->ops->room(pair.tx), 0);
		cr_assert_eq(send_value(&pair, 3), 0);
		cr_expect_geq(dropped(&pair, FRAGI_DROP_RECEIVER_DONE), 1, "it goes nowhere");
		for (int64_t n = 0; n < 2; n++)
			cr_expect_eq(take_value(&pair), n, "what had arrived is still there");
		take_value(&pair); /* the one that broke it may have arrived */
		cr_expect(fragi_rx_is_finished(pair.rx));
		pair_close(&pair);
	}
}

/* As UCX does when nobody listens at the peer's address any more. */
Test(remote, a_transport_may_fail_within_connect)
{
	struct pair pair = {0};

	socket_settings = (struct socket_settings){.dies = socket_counts.created + 1, .at_step = 0};
	pair_begin(&pair, &kind_socket);
	pair_settle(&pair);
	cr_assert_eq(atomic_load(&pair.lost[0]), 1);
	cr_assert_not_null(strstr(pair.sentence[0], "could not be connected to (planted)"), "%s",
			   pair.sentence[0]);
	cr_assert_eq(pair.failure[0], FRAGI_FAILURE_EDGE_UNREACHABLE);
	cr_assert_eq(pair.tx->ops->room(pair.tx), 0);
	pair_close(&pair);
}

/* The other host makes no progress. */
static void progress_alone(struct pair *pair, int side, int64_t now_ns)
{
	fragi_pump_lock(pair->pump[side]);
	fragi_remote_pump_ops.progress(pair->remote[side], now_ns);
	fragi_pump_unlock(pair->pump[side]);
}

Test(remote, a_peer_that_never_answers_was_not_reached)
{
	const int64_t step_ns = 10000000, begin_ns = fragi_now_ns();
	struct pair pair = {0};
	int64_t at_ns = 0;

	socket_settings = (struct socket_settings){0};
	pair_begin(&pair, &kind_socket);
	for (; at_ns < FRAGI_CONNECT_NS; at_ns += step_ns)
		progress_alone(&pair, 0, begin_ns + at_ns);
	cr_assert_eq(atomic_load(&pair.lost[0]), 0);
	for (; at_ns < FRAGI_CONNECT_NS + 2 * step_ns; at_ns += step_ns)
		progress_alone(&pair, 0, begin_ns + at_ns);
	cr_assert_eq(atomic_load(&pair.lost[0]), 1);
	cr_assert_eq(pair.failure[0], FRAGI_FAILURE_EDGE_UNREACHABLE);
	cr_assert_not_null(strstr(pair.sentence[0], "did not answer within 5 s"), "%s",
			   pair.sentence[0]);
	pair_close(&pair);
}

/* Many handles wait for the first to be received; then each completes within its receive. */
Test(remote, receives_may_complete_at_once)
{
	struct pair pair = {.capacity = 8};
	unsigned int received = 0;
	struct frag_message *message;
	int64_t until = fragi_now_ns() + patience_ns();

	socket_settings = (struct socket_settings){.by_handle = true, .receives = RECEIVES_NOTHING};
	pair_open(&pair, &kind_socket);
	for (unsigned int n = 0; n < 8; n++)
		cr_assert_eq(pair.tx->ops->send(pair.tx, large_number(n), fragi_stamp()), 0);
	while (fragi_remote_rx_of(pair.endpoint[1][0]->edges)->waiting < 7) {
		cr_assert_lt(fragi_now_ns(), until);
		pair_turn(&pair);
	}
	socket_settings.receives = RECEIVES_AT_ONCE;
	while (received < 8) {
		cr_assert_lt(fragi_now_ns(), until, "%u of 8 received", received);
		pair_turn(&pair);
		message = fragi_rx_take(pair.rx, fragi_stamp());
		if (message == NULL)
			continue;
		cr_assert_eq(value_of(message), received++);
		frag_message_unref(message);
	}
	cr_assert_eq(socket_counts.depth_max, 1, "receives within receives, %u deep",
		     socket_counts.depth_max);
	pair_close(&pair);
}

Test(remote, a_transport_hands_over_memory_of_its_own)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct pair pair = {0};
	struct fragi_transport *transport;
	struct frag_resource *memory;
	struct frag_message *message;
	struct frag_tensor *tensor;
	int64_t shape = 1000000;
	const void *data;

	socket_settings = (struct socket_settings){0};
	pair_open(&pair, &kind_socket);
	transport = (struct fragi_transport *)(uintptr_t)pair_transport(&pair, 0, 0);
	memory = transport->ops->memory(transport, (struct frag_device){FRAG_DEVICE_CPU, 0});
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(frag_tensor_create(memory, u8, 1, &shape, &tensor), 0);
		memset(frag_tensor_writable(tensor), i, 1000000);
		data = frag_tensor_data(tensor);
		message = frag_message_create();
		cr_assert_eq(frag_message_add_tensor(message, "t", tensor), 0);
		fragi_message_share(message);
		cr_assert_eq(pair.tx->ops->send(pair.tx, message, fragi_stamp()), 0);
		while ((message = fragi_rx_take(pair.rx, fragi_stamp())) == NULL)
			pair_turn(&pair);
		tensor = (struct frag_tensor *)(uintptr_t)frag_message_tensor(message, "t");
		cr_assert_eq(((const uint8_t *)frag_tensor_data(tensor))[999999], i);
		if (socket_counts.mapped > 0 && frag_tensor_data(tensor) == data)
			socket_counts.mapped = 1000; /* the same memory on both sides */
		frag_message_unref(message);
		pair_settle(&pair);
	}
	cr_assert_geq(socket_counts.mapped, 1000);
	cr_assert_eq(socket_counts.handed_over, 20);
	cr_assert_eq(socket_counts.copied, 0);
	pair_close(&pair);
}

/* A host's edge to itself: both ends of a flow in one table. */
static void connects_to_itself(const struct kind *kind)
{
	struct pair pair = {.itself = true};

	socket_settings = (struct socket_settings){0};
	pair_open(&pair, kind);
	cr_assert_eq(exchange(&pair, 40), 40);
	pair.tx->ops->close(pair.tx);
	pair_settle(&pair);
	cr_assert(fragi_rx_is_finished(pair.rx));
	check_balance(&pair, 0);
	pair_close(&pair);
}

Test(remote, a_host_may_be_its_own_peer)
{
	connects_to_itself(&kind_socket);
}

Test(remote, a_host_may_be_its_own_peer_over_ucx, .init = set_environment)
{
	connects_to_itself(&kind_ucx);
}

Test(remote, a_host_may_be_its_own_peer_over_shm, .init = set_environment)
{
	connects_to_itself(&kind_shm);
}

/* A host that was taken over: it sends what it likes, and its peer takes it for genuine. */
struct forger {
	const struct fragi_remote_endpoint *endpoint;
	struct fragi_header header; /* of what it sends next */
	struct fragi_send *send;
};

static struct forger forger_of(struct pair *pair, int side, enum fragi_header_kind kind,
			       uint64_t sequence)
{
	const struct fragi_remote_endpoint *endpoint = pair->endpoint[side][0];
	struct forger forger = {.endpoint = endpoint,
				.header = {.kind = kind,
					   .flow = 7,
					   .epoch = pair->epoch[side],
					   .sequence = sequence,
					   .publish_ns = 1}};

	memcpy(forger.header.token, endpoint->token, sizeof(forger.header.token));
	forger.send = calloc(1, sizeof(*forger.send) + endpoint->transport->transport->send_room);
	forger.send->header_bytes = FRAGI_HEADER_BYTES;
	return forger;
}

static void forger_send(struct forger *forger)
{
	fragi_header_pack(&forger->header, forger->send->header);
	cr_assert_not(forger->endpoint->transport->ops->send(forger->endpoint->base, forger->send,
							     NULL, 0),
		      "no room");
}

/*
 * It asks again and again and takes no answer: what waits for it is bounded. Once it takes them all
 * goes on.
 */
static void ask_often(struct pair *pair, enum fragi_header_kind kind, uint64_t sequence, int times)
{
	struct forger asks = forger_of(pair, 0, kind, sequence);

	for (int i = 1; i <= times; i++) {
		forger_send(&asks);
		if (i % 100 == 0 || i == times)
			progress_alone(pair, 1, fragi_now_ns());
	}
	free(asks.send);
}

static void answers_are_bounded(enum fragi_header_kind question)
{
	struct pair pair = {0};
	uint32_t count = 0;

	pair_open(&pair, &kind_shm);
	pair_settle(&pair);
	ask_often(&pair, question, 1, 20000);
	for (const struct fragi_remote_send *s = pair.endpoint[1][0]->sends; s != NULL; s = s->next)
		count++;
	cr_expect_gt(count, 0, "answers of kind %d fill the ring", (int)question);
	cr_expect_leq(count, 256, "%u answers of kind %d wait", count, (int)question);
	pair_settle(&pair);
	cr_expect_null(pair.endpoint[1][0]->sends);
	cr_expect_eq(exchange(&pair, 10), 10);
	cr_expect_eq(atomic_load(&pair.lost[0]) + atomic_load(&pair.lost[1]), 0);
	pair_close(&pair);
}

Test(remote, answers_that_a_peer_does_not_take_are_bounded, .init = set_environment)
{
	answers_are_bounded(FRAGI_KIND_HELLO);
	answers_are_bounded(FRAGI_KIND_BEAT);
	answers_are_bounded(FRAGI_KIND_SYNC);
}

static bool hears_its_sync(struct pair *pair)
{
	return pair->endpoint[0][0]->sync_answered == pair->endpoint[0][0]->sent_count;
}

static bool is_flushed_there(struct pair *pair)
{
	bool flushed;

	fragi_pump_lock(pair->pump[1]);
	flushed = fragi_remote_is_flushed(pair->remote[1]);
	fragi_pump_unlock(pair->pump[1]);
	return flushed;
}

/* A SYNC is said once: who has no room for it says it when there is. */
Test(remote, a_sync_is_not_lost_where_many_answers_wait, .init = set_environment)
{
	struct pair pair = {0};
	struct fragi_remote_endpoint *asks, *answers;

	pair_open(&pair, &kind_shm);
	cr_assert_eq(exchange(&pair, 10), 10);
	pair_settle(&pair);
	asks = pair.endpoint[0][0];
	answers = pair.endpoint[1][0];
	cr_assert(!hears_its_sync(&pair), "it has asked already");
	cr_assert_neq(answers->sync_answered, answers->sent_count, "it has asked already");
	ask_often(&pair, FRAGI_KIND_BEAT, 1, 20000);
	cr_assert_eq(answers->own_sends, 256);
	cr_assert_not(is_flushed_there(&pair));
	progress_alone(&pair, 1, fragi_now_ns());
	asks->sync_asked = asks->sent_count;
	ask_often(&pair, FRAGI_KIND_SYNC, asks->sync_asked, 1);
	cr_assert_eq(answers->own_sends, 256, "no room was made");
	cr_expect(pair_until(&pair, hears_its_sync), "the answer was lost");
	cr_expect(pair_until(&pair, is_flushed_there), "the question was lost");
	pair_close(&pair);
}

/*
 * It receives, and gives back credit for messages that are not in the ring yet, so that its sender
 * would keep ever more of them.
 */
Test(remote, credit_for_what_waits_for_room_is_refused, .init = set_environment)
{
	struct pair pair = {0};
	const struct fragi_remote_tx *sender;
	struct forger receiver;
	uint32_t sent = 0;

	pair_open(&pair, &kind_shm);
	pair_settle(&pair);
	sender = fragi_remote_tx_of(pair.endpoint[0][0]->edges);
	receiver = forger_of(&pair, 1, FRAGI_KIND_CREDIT, 0);
	for (int i = 0; i < 20000 && atomic_load(&pair.lost[0]) == 0; i++) {
		while (pair.tx->ops->room(pair.tx) > 0) {
			cr_assert_eq(send_value(&pair, sent++), 0);
			progress_alone(&pair, 0, fragi_now_ns());
		}
		receiver.header.sequence = sent;
		receiver.header.body_bytes = sender->window.sent_bytes;
		forger_send(&receiver);
		progress_alone(&pair, 0, fragi_now_ns());
	}
	free(receiver.send);
	cr_expect_gt(sent, 1000, "what is in the ring may have been read");
	cr_expect_eq(atomic_load(&pair.lost[0]), 1, "%u sent", sent);
	cr_expect_eq(pair.failure[0], FRAGI_FAILURE_PROTOCOL);
	cr_expect_not_null(strstr(pair.sentence[0], "gave back credit that it never had"), "%s",
			   pair.sentence[0]);
	pair_close(&pair);
}

/* Over UCX nobody knows what a peer has received, so it is bounded what waits for it. */
Test(remote, messages_that_a_liar_does_not_receive_are_bounded, .init = set_environment)
{
	struct pair pair = {0};
	struct fragi_header header = {.kind = FRAGI_KIND_CREDIT, .flow = 7, .epoch = 11};
	struct fragi_remote_endpoint *liar, *sender;
	struct fragi_remote_tx *tx;
	struct fragi_send *sends;
	uint32_t count = 0;

	pair_open(&pair, &kind_ucx);
	pair_settle(&pair);
	liar = pair.endpoint[1][0];
	sender = pair.endpoint[0][0];
	tx = fragi_remote_tx_of(sender->edges);
	memcpy(header.token, liar->token, sizeof(header.token));
	for (unsigned int i = 0; i < 100; i++) {
		while (pair.tx->ops->room(pair.tx) > 0)
			cr_assert_eq(pair.tx->ops->send(pair.tx, large_number(i), fragi_stamp()),
				     0);
		sends = calloc(1, sizeof(*sends) + liar->transport->transport->send_room);
		sends->header_bytes = FRAGI_HEADER_BYTES;
		header.sequence = tx->window.sent;
		header.body_bytes = tx->window.sent_bytes;
		fragi_header_pack(&header, sends->header);
		cr_assert_not(liar->transport->ops->send(liar->base, sends, NULL, 0), "no room");
		free(sends);
		for (int k = 0; k < 20; k++)
			progress_alone(&pair, 0, fragi_now_ns());
	}
	for (const struct fragi_remote_send *s = sender->sends; s != NULL; s = s->next)
		count++;
	cr_expect_eq(count, 16, "%u messages of 2 MiB wait", count);
	cr_expect_eq(atomic_load(&pair.lost[0]), 0);
	/* As fragi_remote_destroy, which may free the tx before the lock is free. */
	fragi_pump_lock(pair.pump[0]);
	sender->closing = pair.remote[0]->endpoints_closing = true;
	sender->transport->ops->close(sender->base, true);
	while (!sender->stopped)
		fragi_remote_pump_ops.progress(pair.remote[0], fragi_now_ns());
	cr_expect_eq(tx->under_way, 0);
	cr_expect_not(atomic_load(&tx->kicked));
	fragi_pump_unlock(pair.pump[0]);
	pair_close(&pair);
}
