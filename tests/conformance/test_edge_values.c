// SPDX-License-Identifier: Apache-2.0
/* Every kind of edge carries every type of value. */
#include <complex.h>
#include <criterion/criterion.h>

#include "pair.h"
#include <base/stamp.h>
#include <data/metadata.h>
#include <frag/collection.h>

static bool has_room(struct pair *pair)
{
	return pair->tx->ops->room(pair->tx) > 0;
}

static bool has_message(struct pair *pair)
{
	return fragi_rx_available(pair->rx) > 0;
}

/* Sends message (taken). Returns the one that arrives. */
static struct frag_message *across(struct pair *pair, struct frag_message *message)
{
	fragi_message_share(message);
	cr_assert(pair_until(pair, has_room));
	cr_assert_eq(pair->tx->ops->send(pair->tx, message, fragi_stamp()), 0);
	cr_assert(pair_until(pair, has_message));
	return fragi_rx_take(pair->rx, fragi_stamp());
}

/* Sends a value, and expects the same bytes. */
static void expect_same(struct pair *pair, const struct frag_type *type, const void *value,
			size_t size)
{
	struct frag_message *message = frag_message_create();
	const void *got;
	size_t got_size;

	cr_assert_eq(frag_message_set_value(message, type, value, size, NULL), 0, "%s", type->name);
	message = across(pair, message);
	cr_assert(frag_type_equal(frag_message_value(message, &got, &got_size), type), "%s",
		  type->name);
	cr_assert_eq(got_size, size, "%s", type->name);
	cr_assert_eq(memcmp(got, value, size), 0, "%s", type->name);
	frag_message_unref(message);
}

/* Sends the value of a collection (taken). */
static void expect_same_collection(struct pair *pair, struct frag_collection *collection)
{
	const void *value;
	size_t size;

	cr_assert_eq(frag_collection_value(collection, &value, &size), 0);
	expect_same(pair, frag_collection_type(collection), value, size);
	frag_collection_destroy(collection);
}

EDGE_TEST(complex_numbers_cross)
{
	const double _Complex wide[2] = {1.5 - 2.5 * I, 3 * I};
	const float _Complex narrow = 0.25f - 1.0f * I;

	expect_same(pair, &frag_type_complex64, &narrow, sizeof(narrow));
	expect_same(pair, &frag_type_complex128, wide, sizeof(wide[0]));
	expect_same(pair, frag_type_find("complex128[]"), wide, sizeof(wide));
}

KIND_TEST(nested_arrays_and_maps_cross)
{
	struct frag_collection *rows, *texts, *map, *lists;
	struct pair pair = {0};
	const void *value;
	double row[40];
	char text[16];
	size_t size;

	for (int i = 0; i < 40; i++)
		row[i] = i / 3.0;
	pair_open(&pair, kind);
	cr_assert_eq(frag_collection_create("f64[][]", &rows, NULL), 0);
	cr_assert_eq(frag_collection_create("string[]", &texts, NULL), 0);
	cr_assert_eq(frag_collection_create("string{}", &map, NULL), 0);
	cr_assert_eq(frag_collection_create("string[]{}", &lists, NULL), 0);
	expect_same_collection(&pair, lists); /* empty */
	cr_assert_eq(frag_collection_create("string[]{}", &lists, NULL), 0);
	for (uint32_t i = 0; i < 3000; i++) { /* more than one packet */
		snprintf(text, sizeof(text), "text %u", i);
		cr_assert_eq(frag_collection_add(rows, row, i % 40 * sizeof(row[0])), 0);
		cr_assert_eq(frag_collection_add(texts, text, strlen(text)), 0);
		cr_assert_eq(frag_collection_put(map, text, text, strlen(text)), 0);
	}
	cr_assert_eq(frag_collection_value(texts, &value, &size), 0);
	cr_assert_eq(frag_collection_put(lists, "many", value, size), 0);
	expect_same_collection(&pair, rows);
	expect_same_collection(&pair, texts);
	expect_same_collection(&pair, map);
	expect_same_collection(&pair, lists);
	pair_close(&pair);
}

EDGE_TEST(collections_cross_in_metadata)
{
	struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_DEFAULT);
	const struct frag_type *type;
	struct frag_collection *map;
	struct frag_message *message;
	const void *value;
	size_t size;

	cr_assert_eq(frag_collection_create("string{}", &map, NULL), 0);
	frag_collection_put(map, "colour", "red", 3);
	frag_collection_value(map, &value, &size);
	cr_assert_eq(frag_metadata_set(metadata, "tags", frag_collection_type(map), value, size),
		     0);
	frag_collection_destroy(map);
	message = frag_message_create();
	fragi_message_set_metadata(message, metadata);
	message = across(pair, message);
	cr_assert_eq(
		frag_metadata_get(frag_message_metadata(message), "tags", &type, &value, &size), 0);
	cr_assert_str_eq(type->name, "string{}");
	cr_assert_str_eq(frag_collection_get(value, "colour", NULL), "red");
	frag_message_unref(message);
}

EDGE_TEST(tensors_cross_in_metadata)
{
	static const size_t sizes[] = {0, 1, 192, 193, 70000, 2000000};
	struct frag_tensor *tensor;
	struct frag_message *message;
	char key[8];

	for (int round = 0; round < 2; round++) { /* without a body beside it, and with one */
		struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_DEFAULT);

		for (uint8_t i = 0; i < 6; i++) {
			snprintf(key, sizeof(key), "t%d", i);
			cr_assert_eq(
				frag_metadata_set_tensor(metadata, key, bytes_tensor(sizes[i], i)),
				0);
		}
		message = frag_message_create();
		if (round > 0)
			frag_message_add_tensor(message, "body", bytes_tensor(100000, 77));
		fragi_message_set_metadata(message, metadata);
		message = across(pair, message);
		for (uint8_t i = 0; i < 6; i++) {
			snprintf(key, sizeof(key), "t%d", i);
			cr_assert_eq(frag_metadata_get_tensor(frag_message_metadata(message), key,
							      &tensor),
				     0);
			cr_assert(tensor_holds(tensor, sizes[i], i), "%s", key);
			cr_assert_null(frag_tensor_writable(tensor));
		}
		if (round > 0)
			cr_assert(tensor_holds(frag_message_tensor(message, "body"), 100000, 77));
		frag_message_unref(message);
		pair_settle(pair);
	}
}
