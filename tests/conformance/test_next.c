// SPDX-License-Identifier: Apache-2.0
/* Messages like those before: what arrives, when they leave short, and peers that lie about it. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "message.h"
#include "pair.h"
#include "socket.h"
#include <base/stamp.h>
#include <data/metadata.h>
#include <edge/remote/header.h>

/* Each differs from others in one thing; those of one tensor have as many bytes. */
static const struct shape {
	const char *name;
	uint8_t bits;
	int32_t ndim;
	int64_t shape[3];
	int64_t second; /* bytes of another tensor; -1: there is none */
	const struct frag_type *type;
	bool has_metadata;
} shapes[] = {
	['a'] = {.name = "", .bits = 8, .ndim = 1, .shape = {64}, .second = -1},
	['n'] = {.name = "n", .bits = 8, .ndim = 1, .shape = {64}, .second = -1},
	['m'] = {.name = "m", .bits = 8, .ndim = 1, .shape = {64}, .second = -1},
	['s'] = {.name = "", .bits = 8, .ndim = 2, .shape = {2, 32}, .second = -1},
	['t'] = {.name = "", .bits = 8, .ndim = 2, .shape = {32, 2}, .second = -1},
	['w'] = {.name = "", .bits = 16, .ndim = 1, .shape = {32}, .second = -1},
	['e'] = {.name = "", .bits = 8, .ndim = 1, .shape = {0}, .second = -1},
	['l'] = {.name = "", .bits = 8, .ndim = 3, .shape = {100, 100, 7}, .second = -1},
	['2'] = {.name = "x", .bits = 8, .ndim = 1, .shape = {8}, .second = 3000},
	['3'] = {.name = "x", .bits = 8, .ndim = 1, .shape = {3000}, .second = 8},
	['0'] = {.name = "x", .bits = 8, .ndim = 1, .shape = {100}, .second = 0},
	['i'] = {.name = "",
		 .bits = 8,
		 .ndim = 1,
		 .shape = {64},
		 .second = -1,
		 .type = &frag_type_i64},
	['u'] = {.name = "",
		 .bits = 8,
		 .ndim = 1,
		 .shape = {64},
		 .second = -1,
		 .type = &frag_type_u64},
	['b'] = {.name = "",
		 .bits = 8,
		 .ndim = 1,
		 .shape = {64},
		 .second = -1,
		 .type = &frag_type_bool},
	['v'] = {.name = "",
		 .bits = 8,
		 .ndim = 1,
		 .shape = {64},
		 .second = -1,
		 .type = &frag_type_string},
	['k'] = {.name = "",
		 .bits = 8,
		 .ndim = 1,
		 .shape = {64},
		 .second = -1,
		 .has_metadata = true},
};

static size_t bytes_of(const struct shape *shape)
{
	size_t bytes = shape->bits / 8;

	for (int32_t i = 0; i < shape->ndim; i++)
		bytes *= (size_t)shape->shape[i];
	return bytes;
}

/* Bytes of the value, and its bytes. */
static size_t shape_size(const struct shape *shape)
{
	return shape->type->size > 0 ? shape->type->size : 5;
}

static uint64_t shape_value(const struct shape *shape, uint8_t seed)
{
	return shape->type == &frag_type_bool ? seed % 2 : 0x0101010101010101u * (seed % 100 + 1u);
}

static struct frag_message *message_like(char which, uint8_t seed)
{
	const struct shape *shape = &shapes[(int)which];
	struct frag_message *message = frag_message_create();
	struct frag_metadata *metadata;
	struct frag_tensor *tensor;
	uint64_t value = shape_value(shape, seed);

	cr_assert_not_null(shape->name, "%c", which);
	cr_assert_eq(frag_tensor_create(fragi_default_memory(),
					(struct frag_dtype){FRAG_DTYPE_UINT, shape->bits, 1},
					shape->ndim, shape->shape, &tensor),
		     0);
	for (size_t i = 0; i < bytes_of(shape); i++)
		((uint8_t *)frag_tensor_writable(tensor))[i] = (uint8_t)(seed + i);
	cr_assert_eq(frag_message_add_tensor(message, shape->name, tensor), 0);
	if (shape->second >= 0)
		cr_assert_eq(frag_message_add_tensor(message, "y",
						     bytes_tensor((size_t)shape->second, seed)),
			     0);
	if (shape->type != NULL)
		cr_assert_eq(frag_message_set_value(message, shape->type, &value, shape_size(shape),
						    NULL),
			     0);
	if (shape->has_metadata) {
		metadata = fragi_metadata_create(FRAG_METADATA_DEFAULT);
		frag_metadata_set_i64(metadata, "k", seed);
		fragi_message_set_metadata(message, metadata);
	}
	fragi_message_share(message);
	return message;
}

static void expect_like(const struct frag_message *message, char which, uint8_t seed)
{
	const struct shape *shape = &shapes[(int)which];
	const struct frag_dltensor *dl;
	struct frag_tensor *tensor;
	uint64_t expected;
	const void *value;
	const char *name;
	int64_t key = -1;
	size_t size;

	cr_assert_eq(frag_message_tensor_count(message), shape->second >= 0 ? 2 : 1, "%c", which);
	tensor = frag_message_tensor_at(message, 0, &name);
	dl = frag_tensor_dl(tensor);
	cr_assert_str_eq(name, shape->name);
	cr_assert_eq(dl->dtype.bits, shape->bits);
	cr_assert_eq(dl->ndim, shape->ndim);
	cr_assert_eq(memcmp(dl->shape, shape->shape, (size_t)dl->ndim * sizeof(int64_t)), 0);
	cr_assert_eq(frag_tensor_size_bytes(tensor), bytes_of(shape));
	cr_assert(frag_tensor_is_compact(tensor));
	for (int32_t i = dl->ndim - 1, stride = 1; i >= 0; stride *= (int32_t)shape->shape[i--])
		cr_assert(dl->strides[i] == stride || bytes_of(shape) == 0);
	for (size_t i = 0; i < bytes_of(shape); i++)
		cr_assert_eq(((const uint8_t *)frag_tensor_data(tensor))[i], (uint8_t)(seed + i));
	cr_assert_null(frag_tensor_writable(tensor));
	if (shape->second >= 0) {
		tensor = frag_message_tensor_at(message, 1, &name);
		cr_assert_str_eq(name, "y");
		cr_assert(tensor_holds(tensor, (size_t)shape->second, seed));
	}
	cr_assert_eq(frag_message_value(message, &value, &size), shape->type, "%c", which);
	expected = shape_value(shape, seed);
	cr_assert(shape->type == NULL ||
		  (size == shape_size(shape) && memcmp(value, &expected, size) == 0));
	if (shape->has_metadata)
		frag_metadata_get_i64(frag_message_metadata(message), "k", &key);
	cr_assert_eq(key, shape->has_metadata ? seed : -1);
}

static bool has_room(struct pair *pair)
{
	return pair->tx->ops->room(pair->tx) > 0;
}

static bool has_message(struct pair *pair)
{
	return fragi_rx_available(pair->rx) > 0;
}

static bool is_lost(struct pair *pair)
{
	return atomic_load(&pair->lost[1]) > 0;
}

static void put(struct pair *pair, char which, uint8_t seed)
{
	cr_assert(pair_until(pair, has_room));
	cr_assert_eq(pair->tx->ops->send(pair->tx, message_like(which, seed), fragi_stamp()), 0);
}

/* Sends these and takes them, so many at a time. */
static void pass(struct pair *pair, const char *whiches, size_t at_a_time)
{
	struct frag_message *message;
	size_t taken = 0, count = strlen(whiches);

	for (size_t sent = 0; taken < count;) {
		for (size_t i = 0; i < at_a_time && sent < count; i++, sent++)
			put(pair, whiches[sent], (uint8_t)(sent * 7));
		for (; taken < sent; taken++) {
			cr_assert(pair_until(pair, has_message), "%zu of %s", taken, whiches);
			message = fragi_rx_take(pair->rx, fragi_stamp());
			expect_like(message, whiches[taken], (uint8_t)(taken * 7));
			frag_message_unref(message);
		}
	}
}

static const char *const orders[] = {
	"aaaaaa",       "aaannnaaammmnnnn", "ananananan", "aanana",     "aassttsstt",
	"ttttwwwwaaaa", "eeeeaaae",         "avavaavvaa", "aakakaakka", "iiiiuuuuii",
	"bbbiibbib",    "iavikaii",         "llllalll",   "22223333",   "2223332322000022",
};

EDGE_TEST(messages_keep_their_layout_whatever_came_before, .capacity = 4)
{
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		pass(pair, orders[i], 1);
		pass(pair, orders[i], 4);
	}
	check_balance(pair, 0);
}

/* A transport may show bodies in any way, complete them in any order, and have short headers. */
KIND_TEST(a_layout_crosses_in_each_way)
{
	if (strcmp(kind->name, "socket") != 0)
		return;
	for (unsigned int seed = 0; seed < 20; seed++) {
		struct pair pair = {.capacity = 4};

		socket_settings = (struct socket_settings){
			.seed = seed * 10, .header_max = seed % 2 == 0 ? FRAGI_HEADER_MIN : 0};
		pair_open(&pair, kind);
		for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
			pass(&pair, orders[i], 1 + seed % 4);
		pair_close(&pair);
	}
	socket_settings = (struct socket_settings){0};
}

EDGE_TEST(a_peer_that_was_replaced_knows_no_layout, .capacity = 4)
{
	if (!is_between_hosts(kind))
		return;
	pass(pair, "aaaa", 1);
	put(pair, 'a', 1);
	pair_replace(pair, 1);
	pass(pair, "aaaa", 4);
	pair_replace(pair, 0);
	pass(pair, "aaaa", 1);
	put(pair, 'a', 200);
	pair_settle(pair);
	pair_replace(pair, 0); /* one of the sender before is still queued */
	for (uint8_t i = 0; i < 4; i++)
		put(pair, 'a', (uint8_t)(201 + i));
	for (uint8_t i = 0; i < 5; i++) {
		struct frag_message *message;

		cr_assert(pair_until(pair, has_message));
		message = fragi_rx_take(pair->rx, fragi_stamp());
		expect_like(message, 'a', (uint8_t)(200 + i));
		frag_message_unref(message);
	}
	cr_expect_eq(atomic_load(&pair->lost[0]) + atomic_load(&pair->lost[1]), 0, "%s%s",
		     pair->sentence[0], pair->sentence[1]);
}

/* What passes between two hosts over the socket. */
static uint32_t shorts, longs;

static bool is_next(const struct message *m)
{
	return fragi_get32(m->header) == FRAGI_NEXT_MAGIC;
}

static bool is_data(const struct message *m)
{
	return !is_next(m) && m->header[6] == FRAGI_KIND_DATA;
}

static uint32_t relay_count(struct message *m)
{
	shorts += is_next(m);
	longs += is_data(m);
	return 1;
}

static void expect_shorts(struct pair *pair, const char *whiches, uint32_t expect)
{
	shorts = longs = 0;
	pass(pair, whiches, 1);
	cr_expect_eq(shorts, expect, "%u of %s", shorts, whiches);
	cr_expect_eq(shorts + longs, strlen(whiches));
}

/* The first, and the one that announces the layout, are whole. */
PAIR_TEST(next, a_message_like_those_before_leaves_short, &kind_socket, .capacity = 200)
{
	socket_settings.relay = relay_count;
	expect_shorts(pair, "aaaaa", 3);
	expect_shorts(pair, "aaavavak", 5);
	expect_shorts(pair, "sssss", 3);
	expect_shorts(pair, "nsn", 1); /* the second n announces n */
	expect_shorts(pair, "nsnnn", 4);
	expect_shorts(pair, "vvkkbb", 0);
	expect_shorts(pair, "iiiii", 4); /* as many bytes as the last that was whole, s */
	expect_shorts(pair, "uu", 1);    /* other, with as many bytes */
	pair_replace(pair, 1);
	expect_shorts(pair, "nnn", 1);
	socket_settings.relay = NULL;
}

static void expect_none_short(const struct kind *kind)
{
	struct pair pair = {.capacity = 4};

	socket_settings.relay = relay_count;
	pair_open(&pair, kind);
	expect_shorts(&pair, "aaaaa", 0);
	socket_settings.relay = NULL;
	pair_close(&pair);
}

Test(next, a_message_of_an_encrypted_flow_is_whole)
{
	expect_none_short(&kind_encrypted_socket);
}

/* HELLO of an older host. */
static uint32_t relay_old(struct message *m)
{
	if (!is_next(m) && m->header[6] == FRAGI_KIND_HELLO)
		fragi_put64(m->header + 48, 0);
	return relay_count(m);
}

Test(next, a_host_that_knows_none_gets_none)
{
	struct pair pair = {.capacity = 4};

	socket_settings.relay = relay_old;
	pair_open(&pair, &kind_socket);
	expect_shorts(&pair, "aaaaa", 0);
	socket_settings.relay = NULL;
	pair_close(&pair);
}

/* A sender that lies, each in one way, about its fifth message. */
static uint32_t shown;

static uint32_t relay_honest(struct message *m)
{
	(void)m;
	return 1;
}

/* The first message is short. */
static uint32_t relay_first(struct message *m)
{
	const struct fragi_next next = {.flow = fragi_get32(m->header + 24)};

	if (is_data(m) && shown++ == 0) {
		fragi_next_pack(&next, m->header);
		m->header_bytes = FRAGI_NEXT_BYTES;
	}
	return 1;
}

static uint32_t relay_twice(struct message *m)
{
	return is_next(m) && shown++ == 2 ? 2 : 1;
}

static uint32_t relay_number(struct message *m)
{
	if (is_next(m) && shown++ == 2)
		fragi_put64(m->header + 8, 1000);
	return 1;
}

static uint32_t relay_shorter(struct message *m)
{
	if (is_next(m) && shown++ == 2) {
		m->bytes--;
		m->bodies[0].bytes--;
	}
	return 1;
}

static uint32_t relay_value_cut(struct message *m)
{
	if (fragi_get32(m->header) == FRAGI_NEXT_MAGIC && shown++ == 2)
		m->header_bytes--;
	return 1;
}

/* Of a flow that goes the other way, or of none: dropped, and so is its number missing. */
static uint32_t relay_flow(struct message *m)
{
	if (is_next(m) && shown++ == 2)
		fragi_put32(m->header + 4, fragi_get32(m->header + 4) + 1000000);
	return 1;
}

/* A message with a text says that others are like it. */
static uint32_t relay_value(struct message *m)
{
	if (is_data(m))
		m->header[7] |= FRAGI_FLAG_LAYOUT;
	return 1;
}

static const struct lie {
	const char *name, *whiches;
	uint32_t (*relay)(struct message *message);
	const char *rule; /* that it broke; NULL: none */
	uint32_t arrive;
} lies[] = {
	{"none", "aaaaa", relay_honest, NULL, 5},
	{"none, with a value", "iiiii", relay_honest, NULL, 5},
	{"none, with a text", "vvvvv", relay_honest, NULL, 5},
	{"like nothing", "aaaaa", relay_first, "like one that it never sent", 0},
	{"twice", "aaaaa", relay_twice, "broke the rules of flow", 5},
	{"number", "aaaaa", relay_number, "beyond its credit", 4},
	{"shorter", "aaaaa", relay_shorter, "sizes that contradict each other", 4},
	{"flow", "aaaaa", relay_flow, NULL, 4},
	{"value", "iiiii", relay_value_cut, "a value of another layout", 4},
	{"no layout", "v", relay_value, "a layout that it does not have", 0},
	{"each announces itself", "aaaaa", relay_value, NULL, 5},
};

Test(next, a_sender_that_lies_loses_its_peer)
{
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		const struct lie *lie = &lies[i];
		struct pair pair = {.capacity = 8};
		uint32_t taken = 0;

		shown = 0;
		pair_open(&pair, &kind_socket);
		socket_settings.relay = lie->relay;
		for (size_t n = 0; lie->whiches[n] != '\0'; n++)
			put(&pair, lie->whiches[n], (uint8_t)n);
		pair_settle(&pair);
		if (lie->rule != NULL)
			cr_expect(pair_until(&pair, is_lost), "%s", lie->name);
		for (struct frag_message *m; (m = fragi_rx_take(pair.rx, fragi_stamp())) != NULL;
		     taken++) {
			expect_like(m, lie->whiches[taken], (uint8_t)taken);
			frag_message_unref(m);
		}
		cr_expect_eq(taken, lie->arrive, "%s: %u", lie->name, taken);
		cr_expect_eq(is_lost(&pair), lie->rule != NULL, "%s: %s", lie->name,
			     pair.sentence[1]);
		if (lie->rule != NULL)
			cr_expect_not_null(strstr(pair.sentence[1], lie->rule), "%s: %s", lie->name,
					   pair.sentence[1]);
		socket_settings.relay = NULL;
		pair_close(&pair);
	}
}
