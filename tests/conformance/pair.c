// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "../slow.h"
#include "../left.h"
#include "pair.h"
#include "socket.h"
#include <base/stamp.h>
#include <edge/ucx_env.h>

#define QUIET_ROUNDS 50
#define YIELD_ROUNDS 25

static void on_arrival(void *arg)
{
	struct pair *pair = arg;

	atomic_fetch_add(&pair->arrivals, 1);
	if (pair->threads)
		fragi_pump_poke(pair->pump[1], &pair->waiter[1]);
}

static void on_room(void *arg)
{
	struct pair *pair = arg;

	atomic_fetch_add(&pair->rooms, 1);
	if (pair->threads)
		fragi_pump_poke(pair->pump[0], &pair->waiter[0]);
}

/* Inside a host. */

static void inproc_open(struct pair *pair)
{
	for (uint32_t i = 0; i < pair->edges; i++)
		cr_assert_eq(fragi_inproc_create(pair->capacity, pair->policy,
						 &pair->ledger[0].flows[i], &pair->txs[i],
						 &pair->rxs[i]),
			     0);
}

/* Between hosts. */

static struct pair *the_pair; /* a test program runs one test a process */

static void on_ready(void *arg, uint32_t host)
{
	atomic_fetch_add(&the_pair->ready[(uintptr_t)arg], 1);
}

static void on_lost(void *arg, uint32_t host, enum fragi_failure failure, const char *sentence)
{
	uintptr_t i = (uintptr_t)arg;

	the_pair->failure[i] = failure;
	strncpy(the_pair->sentence[i], sentence, sizeof(the_pair->sentence[i]) - 1);
	atomic_fetch_add(&the_pair->lost[i], 1);
}

static void on_fault(void *arg, enum fragi_failure failure, const char *op, const char *sentence)
{
	uintptr_t i = (uintptr_t)arg;

	the_pair->failure[i] = failure;
	strncpy(the_pair->sentence[i], sentence, sizeof(the_pair->sentence[i]) - 1);
	snprintf(the_pair->op[i], sizeof(the_pair->op[i]), "%s", op != NULL ? op : "");
	atomic_fetch_add(&the_pair->faults[i], 1);
}

static bool is_ready(struct pair *pair)
{
	return atomic_load(&pair->ready[0]) > 0 &&
	       (pair->itself || atomic_load(&pair->ready[1]) > 0);
}

static void open_transport(struct fragi_remote *remote, const char *name)
{
	const struct fragi_transport_ops *ops = &socket_transport;
	struct frag_err err = FRAG_ERR_INIT;

	if (strcmp(name, "socket") != 0)
		cr_assert_eq(fragi_transport_open(name, &ops, &err), 0, "%s", err.text);
	cr_assert_eq(fragi_remote_open(remote, ops, &err), 0, "%s", err.text);
}

const uint8_t pair_key[FRAGI_DATA_KEY_BYTES] = "the key of the pair";

static void set_crypto(struct fragi_remote *remote)
{
	const struct fragi_crypto_ops *crypto;
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_crypto_open("", &crypto, &err), 0, "%s", err.text);
	fragi_remote_set_crypto(remote, crypto);
}

static void remote_open(struct pair *pair, uintptr_t i)
{
	const struct fragi_remote_config config = {
		.data_key = pair_key,
		.host = (uint32_t)i + 1,
		.epoch = pair->epoch[i],
		.pump = pair->pump[i],
		.dead_ns = pair->dead_ns,
		.beat_ns = pair->dead_ns / 4,
		.arg = (void *)i,
		.peer_ready = on_ready,
		.peer_lost = on_lost,
		.fault = on_fault,
	};

	cr_assert_eq(fragi_remote_create(&config, &pair->remote[i]), 0);
	if (is_encrypted(pair->kind))
		set_crypto(pair->remote[i]);
	for (int k = 0; k < 2 && pair->kind->transports[k] != NULL; k++)
		open_transport(pair->remote[i], pair->kind->transports[k]);
	if (pair->opened != NULL)
		pair->opened(pair, (int)i);
}

const struct fragi_transport *pair_transport(const struct pair *pair, int side, int which)
{
	return fragi_remote_transport(pair->remote[side], pair->kind->transports[which]);
}

struct frag_resource *pair_memory(const struct pair *pair, int side)
{
	const struct frag_device cpu = {FRAG_DEVICE_CPU, 0};
	const struct fragi_transport *transport = pair_transport(pair, side, 0);

	return transport->ops->memory((struct fragi_transport *)(uintptr_t)transport, cpu);
}

static void connect_side(struct pair *pair, int i)
{
	int other = pair->itself ? i : 1 - i;
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_remote_peer_create(pair->remote[i], (uint32_t)other + 1,
					      pair->epoch[other], &pair->peer[i]),
		     0);
	for (int k = 0; k < 2 && pair->kind->transports[k] != NULL; k++) {
		const struct fragi_transport *transport = pair_transport(pair, other, k);
		size_t size;
		const void *address = transport->ops->address(transport, &size);

		cr_assert_eq(fragi_remote_connect(pair->peer[i], transport->ops->name, address,
						  size, &pair->endpoint[i][k], &err),
			     0, "%s", err.text);
	}
}

static struct fragi_edge_config edge_config(const struct pair *pair, uint32_t i)
{
	struct fragi_edge_config config = {
		.flow = 7 + i,
		.token = "0123456789abcde",
		.window_messages = pair->capacity,
		.window_bytes = pair->window_bytes,
		.message_bytes_max = pair->message_bytes_max,
		.policy = pair->policy,
		.op = "one.tx",
		.encrypt = is_encrypted(pair->kind) && !(pair->first_is_plain && i == 0),
	};

	config.token[0] = (uint8_t)(config.token[0] + pair->replaced_count);
	config.token[15] = (uint8_t)i;
	return config;
}

static void wire_side(struct pair *pair, int side, bool sends)
{
	for (uint32_t i = 0; i < pair->edges; i++) {
		const struct fragi_edge_config config = edge_config(pair, i);
		uint32_t k = pair->kind->transports[1] != NULL ? i % 2 : 0;
		struct fragi_remote_endpoint *endpoint = pair->endpoint[side][k];

		if (sends)
			cr_assert_eq(fragi_remote_tx_create(endpoint, &config,
							    &pair->ledger[0].flows[i],
							    &pair->txs[i]),
				     0);
		else
			cr_assert_eq(fragi_remote_rx_create(endpoint, &config,
							    &pair->ledger[1].flows[i],
							    &pair->rxs[i]),
				     0);
	}
}

static void wire(struct pair *pair)
{
	wire_side(pair, 0, true);
	wire_side(pair, pair->itself ? 0 : 1, false);
}

static void take_ends(struct pair *pair)
{
	pair->tx = pair->txs[0];
	pair->rx = pair->rxs[0];
	pair->tx_row = pair->tx->row;
	pair->rx_row = pair->rx->row;
	for (uint32_t i = 0; i < pair->edges; i++) {
		pair->rxs[i]->arrival = (struct fragi_notify){on_arrival, pair};
		pair->txs[i]->room = (struct fragi_notify){on_room, pair};
	}
}

void pair_replace_begin(struct pair *pair, int side)
{
	uint32_t at = pair->replaced_count++;

	cr_assert_lt(at, PAIR_REPLACED_MAX);
	pair->replaced[at].remote = pair->remote[side];
	pair->replaced[at].pump = pair->pump[side];
	pair->replaced[at].ledger = pair->ledger[side];
	pair->epoch[side] += 2;
	pair->ledger[side] = (struct fragi_ledger){0};
	cr_assert_eq(fragi_ledger_create(&pair->ledger[side], -1, 1, pair->edges), 0);
	cr_assert_eq(fragi_pump_create(&pair->pump[side]), 0);
	remote_open(pair, (uintptr_t)side);
	atomic_store(&pair->ready[0], 0);
	atomic_store(&pair->ready[1], 0);
	connect_side(pair, side);
	wire_side(pair, side, side == 0);
	take_ends(pair);
}

static void tell_other(struct pair *pair, int side)
{
	int other = 1 - side;

	fragi_pump_lock(pair->pump[other]);
	cr_assert_eq(fragi_remote_peer_succeed(pair->peer[other], pair->epoch[side]), 0);
	for (uint32_t i = 0; i < pair->edges; i++) {
		const struct fragi_edge_config config = edge_config(pair, i);

		cr_assert_eq(
			fragi_remote_edge_succeed(pair->peer[other], config.flow, config.token), 0);
	}
	for (int k = 0; k < 2 && pair->kind->transports[k] != NULL; k++) {
		const struct fragi_transport *transport = pair_transport(pair, side, k);
		size_t size;
		const void *address = transport->ops->address(transport, &size);

		cr_assert_eq(fragi_remote_endpoint_succeed(pair->peer[other], transport->ops->name,
							   address, size),
			     0);
	}
	fragi_pump_unlock(pair->pump[other]);
}

void pair_replace_end(struct pair *pair, int side)
{
	tell_other(pair, side);
	cr_assert(pair_until(pair, is_ready), "never ready again: %s %s", pair->sentence[0],
		  pair->sentence[1]);
}

void pair_replace(struct pair *pair, int side)
{
	pair_replace_begin(pair, side);
	pair_replace_end(pair, side);
}

static void remotes_open(struct pair *pair)
{
	int count = pair->itself ? 1 : 2;

	the_pair = pair;
	for (int i = 0; i < count; i++)
		remote_open(pair, (uintptr_t)i);
	for (int i = 0; i < count; i++)
		connect_side(pair, i);
	wire(pair);
}

static void wait_until_ready(struct pair *pair)
{
	cr_assert(pair_until(pair, is_ready), "never ready: %s %s", pair->sentence[0],
		  pair->sentence[1]);
	for (int i = 0; i < (pair->itself ? 1 : 2) && pair->threads; i++)
		cr_assert_eq(
			fragi_pump_attach(pair->pump[i], &fragi_remote_pump_ops, pair->remote[i]),
			0);
}

uint32_t pair_turn(struct pair *pair)
{
	uint32_t happened = 0;

	for (int i = 0; i < 2; i++) {
		if (pair->remote[i] == NULL || !fragi_pump_try_lock(pair->pump[i]))
			continue;
		happened += fragi_remote_pump_ops.progress(pair->remote[i], fragi_now_ns());
		fragi_pump_unlock(pair->pump[i]);
	}
	return happened;
}

static void *destroy_one(void *remote)
{
	fragi_remote_destroy(remote);
	return NULL;
}

void pair_end(struct pair *pair)
{
	pthread_t thread;

	if (!is_between_hosts(pair->kind)) {
		for (uint32_t i = 0; i < pair->edges; i++)
			fragi_inproc_destroy(pair->txs[i]);
		return;
	}
	for (int i = 0; i < 2; i++)
		fragi_pump_detach(pair->pump[i]);
	/* Each waits for the other's goodbye, as two processes do. */
	pthread_create(&thread, NULL, destroy_one, pair->remote[0]);
	destroy_one(pair->remote[1]);
	pthread_join(thread, NULL);
}

#define SET(name, value) setenv(name, value, 0);

void set_environment(void)
{
	FRAGI_UCX_ENV(SET)
	setenv("UCX_NET_DEVICES", "lo", 0);
}

#define DEFINE(name, first, second, unused)                                                        \
	const struct kind kind_##name = {#name, {first, second}};
KINDS_WITH(DEFINE, 0)

void pair_begin(struct pair *pair, const struct kind *kind)
{
	pair->kind = kind;
	if (pair->capacity == 0)
		pair->capacity = 4;
	if (pair->policy == FRAG_POLICY_DEFAULT)
		pair->policy = FRAG_POLICY_BLOCK;
	if (pair->window_bytes == 0)
		pair->window_bytes = FRAGI_WINDOW_BYTES;
	if (pair->message_bytes_max == 0)
		pair->message_bytes_max = FRAGI_MESSAGE_BYTES_MAX;
	if (pair->edges == 0)
		pair->edges = 1;
	if (kind->transports[1] != NULL && pair->edges == 1)
		pair->edges = 2; /* both transports are in use */
	for (int i = 0; i < 2; i++) {
		pair->epoch[i] = 10 + (uint64_t)i;
		cr_assert_eq(fragi_ledger_create(&pair->ledger[i], -1, 1, pair->edges), 0);
		cr_assert_eq(fragi_pump_create(&pair->pump[i]), 0);
	}
	if (is_between_hosts(kind))
		remotes_open(pair);
	else
		inproc_open(pair);
	take_ends(pair);
}

void pair_open(struct pair *pair, const struct kind *kind)
{
	pair_begin(pair, kind);
	if (is_between_hosts(kind))
		wait_until_ready(pair);
}

void pair_close(struct pair *pair)
{
	pair_end(pair);
	for (uint32_t i = 0; i < pair->replaced_count; i++) {
		fragi_remote_destroy(pair->replaced[i].remote);
		fragi_pump_destroy(pair->replaced[i].pump);
		fragi_ledger_close(&pair->replaced[i].ledger);
	}
	for (int i = 0; i < 2; i++) {
		fragi_pump_destroy(pair->pump[i]);
		fragi_ledger_close(&pair->ledger[i]);
	}
}

void pair_test(struct pair *pair, const struct kind *kind,
	       void (*test)(struct pair *pair, const struct kind *kind))
{
	struct left before = left_now();

	pair_open(pair, kind);
	test(pair, kind);
	pair_close(pair);
	cr_expect_not(left_is_more(before));
}

void pair_settle(struct pair *pair)
{
	int64_t until = fragi_now_ns() + patience_ns();

	for (int quiet = 0; quiet < QUIET_ROUNDS;) {
		if (pair_turn(pair) > 0)
			quiet = 0;
		else
			quiet++;
		cr_assert_lt(fragi_now_ns(), until, "never at rest");
		/* Beside busy processes a yield costs their slices, so most rounds do without. */
		if (quiet % YIELD_ROUNDS == YIELD_ROUNDS - 1)
			sched_yield();
	}
}

bool pair_until(struct pair *pair, bool (*done)(struct pair *pair))
{
	int64_t until = fragi_now_ns() + patience_ns();

	while (!done(pair)) {
		if (fragi_now_ns() > until)
			return false;
		if (pair_turn(pair) == 0)
			sched_yield();
	}
	return true;
}

struct frag_message *message_of(int64_t value)
{
	struct frag_message *message = frag_message_create();

	cr_assert_not_null(message);
	cr_assert_eq(frag_message_set_value(message, &frag_type_i64, &value, sizeof(value), NULL),
		     0);
	fragi_message_share(message);
	return message;
}

int64_t value_of(const struct frag_message *message)
{
	const void *value;
	int64_t x;

	if (message == NULL)
		return -1;
	cr_assert_eq(frag_message_value(message, &value, NULL), &frag_type_i64);
	memcpy(&x, value, sizeof(x));
	return x;
}

int send_value(struct pair *pair, int64_t value)
{
	return pair->tx->ops->send(pair->tx, message_of(value), fragi_stamp());
}

int64_t take_value(struct pair *pair)
{
	struct frag_message *message = fragi_rx_take(pair->rx, fragi_stamp());
	int64_t value = value_of(message);

	frag_message_unref(message);
	return value;
}

/* Words that differ from their neighbours and between seeds; what is left over, by bytes. */
static void fill(uint8_t *data, size_t size, uint8_t seed)
{
	uint64_t word = 0x9e3779b97f4a7c15u * (seed + 1u);

	for (size_t i = 0; i < size / 8; i++) {
		memcpy(data + i * 8, &word, 8);
		word += 0x0102030405060709u;
	}
	for (size_t i = size / 8 * 8; i < size; i++)
		data[i] = (uint8_t)(seed + i);
}

struct frag_tensor *bytes_tensor(size_t size, uint8_t seed)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	int64_t shape = (int64_t)size;
	struct frag_tensor *tensor;

	cr_assert_eq(frag_tensor_create(NULL, u8, 1, &shape, &tensor), 0);
	fill(frag_tensor_writable(tensor), size, seed);
	return tensor;
}

bool tensor_holds(const struct frag_tensor *tensor, size_t size, uint8_t seed)
{
	uint64_t word = 0x9e3779b97f4a7c15u * (seed + 1u), different = 0, there;
	const uint8_t *data = tensor != NULL ? frag_tensor_data(tensor) : NULL;

	if (tensor == NULL || frag_tensor_size_bytes(tensor) != size)
		return false;
	for (size_t i = 0; i < size / 8; i++) {
		memcpy(&there, data + i * 8, 8);
		different |= there ^ word;
		word += 0x0102030405060709u;
	}
	for (size_t i = size / 8 * 8; i < size; i++)
		different |= data[i] ^ (uint8_t)(seed + i);
	return different == 0;
}

uint64_t dropped(const struct pair *pair, enum fragi_drop reason)
{
	return atomic_load(&pair->tx_row->tx_dropped[reason]) +
	       atomic_load(&pair->rx_row->rx_dropped[reason]);
}

void check_balance(struct pair *pair, uint64_t under_way)
{
	uint64_t sum = atomic_load(&pair->rx_row->delivered) + under_way;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		sum += dropped(pair, (enum fragi_drop)i);
	cr_assert_eq(sum, atomic_load(&pair->tx_row->sent), "%llu accounted for, %llu sent",
		     (unsigned long long)sum, (unsigned long long)atomic_load(&pair->tx_row->sent));
}
