// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <data/codec.h>
#include <data/collection.h>
#include <frag/frag.h>

#include "shapes.h"

static struct frag_collection *create(const char *type)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_collection *collection = NULL;

	cr_assert_eq(frag_collection_create(type, &collection, &err), 0, "%s", err.text);
	return collection;
}

/* Adds a collection (taken) as an element of another one. */
static void add(struct frag_collection *to, const char *key, struct frag_collection *element)
{
	const void *value;
	size_t size;

	cr_assert_eq(frag_collection_value(element, &value, &size), 0);
	cr_assert_eq(key != NULL ? frag_collection_put(to, key, value, size)
				 : frag_collection_add(to, value, size),
		     0);
	frag_collection_destroy(element);
}

/*
 * Sends the value of a collection (taken) across. Returns the message that arrives, and its value.
 */
static struct frag_message *across(struct frag_collection *collection, const void **out_value)
{
	struct frag_message *message = frag_message_create(), *arrived = NULL;
	const struct frag_type *type = frag_collection_type(collection);
	const struct fragi_blob *blob = NULL;
	const void *value;
	size_t size, got;

	cr_assert_eq(frag_collection_value(collection, &value, &size), 0);
	cr_assert_eq(frag_message_set_value(message, type, value, size, NULL), 0);
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	cr_assert_eq(fragi_message_decode(blob->bytes, blob->size, 0, &arrived, NULL), 0);
	cr_assert_eq(frag_message_value(arrived, out_value, &got), type);
	cr_expect_eq(got, size);
	cr_expect_eq(memcmp(*out_value, value, size), 0, "%s", type->name);
	frag_message_unref(message);
	frag_collection_destroy(collection);
	return arrived;
}

Test(collection, texts)
{
	static const char *const texts[] = {"one", "", "three and more", "x"};
	struct frag_collection *list = create("string[]");
	struct frag_message *message;
	const void *value;
	size_t size;

	for (size_t i = 0; i < 4; i++)
		cr_assert_eq(frag_collection_add(list, texts[i], strlen(texts[i])), 0);
	message = across(list, &value);
	cr_assert_eq(frag_collection_count(value), 4);
	for (uint32_t i = 0; i < 4; i++) {
		cr_expect_str_eq(frag_collection_at(value, i, &size), texts[i]);
		cr_expect_eq(size, strlen(texts[i]));
	}
	cr_expect_null(frag_collection_at(value, 4, NULL));
	cr_expect_null(frag_collection_key(value, 0), "an array has no keys");
	cr_expect_null(frag_collection_get(value, "one", NULL));
	frag_message_unref(message);
}

Test(collection, arrays_of_arrays)
{
	const double rows[3][4] = {{1, 2, 3, 4}, {0}, {5.5}};
	const size_t lengths[3] = {4, 0, 1};
	struct frag_collection *list = create("f64[][]");
	struct frag_message *message;
	const void *value;
	const double *row;
	size_t size;

	for (int i = 0; i < 3; i++)
		cr_assert_eq(frag_collection_add(list, rows[i], lengths[i] * sizeof(double)), 0);
	cr_expect_eq(frag_collection_add(list, rows[0], 7), -EINVAL, "no whole number of f64");
	cr_expect_eq(frag_collection_put(list, "k", rows[0], 8), -EINVAL, "an array has no keys");
	message = across(list, &value);
	cr_assert_eq(frag_collection_count(value), 3);
	for (uint32_t i = 0; i < 3; i++) {
		row = frag_collection_at(value, i, &size);
		cr_assert_eq(size, lengths[i] * sizeof(double));
		cr_expect_eq((uintptr_t)row % _Alignof(double), 0);
		for (size_t k = 0; k < lengths[i]; k++)
			cr_expect_eq(row[k], rows[i][k]);
	}
	frag_message_unref(message);
}

Test(collection, maps)
{
	struct frag_collection *map = create("string{}"), *numbers = create("i64{}");
	const int64_t one = 1, two = 2;
	struct frag_message *message;
	const void *value;
	size_t size;

	frag_collection_put(map, "patient", "nobody", 6);
	frag_collection_put(map, "b", "will be replaced", 16);
	frag_collection_put(map, "", "of the empty key", 16);
	frag_collection_put(map, "a", "first", 5);
	frag_collection_put(map, "b", "second", 6);
	cr_expect_eq(frag_collection_add(map, "x", 1), -EINVAL, "a map has keys");
	cr_expect_eq(frag_collection_put(map, NULL, "x", 1), -EINVAL);
	message = across(map, &value);
	cr_assert_eq(frag_collection_count(value), 4);
	cr_expect_str_eq(frag_collection_key(value, 0), "");
	cr_expect_str_eq(frag_collection_key(value, 1), "a");
	cr_expect_str_eq(frag_collection_key(value, 2), "b");
	cr_expect_str_eq(frag_collection_key(value, 3), "patient");
	cr_expect_null(frag_collection_key(value, 4));
	cr_expect_str_eq(frag_collection_at(value, 1, NULL), "first");
	cr_expect_str_eq(frag_collection_get(value, "b", &size), "second");
	cr_expect_eq(size, 6);
	cr_expect_str_eq(frag_collection_get(value, "", NULL), "of the empty key");
	cr_expect_str_eq(frag_collection_get(value, "patient", NULL), "nobody");
	cr_expect_null(frag_collection_get(value, "c", NULL));
	cr_expect_null(frag_collection_get(value, "patien", NULL));
	frag_message_unref(message);

	frag_collection_put(numbers, "two", &two, sizeof(two));
	frag_collection_put(numbers, "one", &one, sizeof(one));
	cr_expect_eq(frag_collection_put(numbers, "x", &one, 4), -EINVAL);
	message = across(numbers, &value);
	cr_expect_eq(*(const int64_t *)frag_collection_get(value, "two", NULL), 2);
	cr_expect_eq(*(const int64_t *)frag_collection_get(value, "one", NULL), 1);
	frag_message_unref(message);
}

/* Structs with padding, bools, bytes: maps of arrays of arrays of them, and the other way round. */
Test(collection, everything_nests)
{
	struct box boxes[2];
	struct frag_collection *outer, *inner, *texts;
	struct frag_message *message;
	const struct box *got;
	const void *value, *element;
	const bool flags[3] = {true, false, true};
	size_t size;

	memset(boxes, 0, sizeof(boxes));
	boxes[0] = (struct box){.corners = {{1, 2}, {3, 4}}, .filled = true, .label = 5};
	boxes[1].label = 6;
	frag_type_register(&point_type, NULL);
	frag_type_register(&box_type, NULL);
	outer = create("box[][]{}");
	inner = create("box[][]");
	frag_collection_add(inner, boxes, sizeof(boxes));
	frag_collection_add(inner, boxes + 1, sizeof(boxes[1]));
	add(outer, "seen", inner);
	add(outer, "empty", create("box[][]"));
	message = across(outer, &value);
	element = frag_collection_get(value, "seen", NULL);
	cr_assert_eq(frag_collection_count(element), 2);
	got = frag_collection_at(element, 0, &size);
	cr_assert_eq(size, sizeof(boxes));
	cr_expect(got[0].filled && got[0].label == 5 && got[0].corners[1].y == 4);
	cr_expect_eq(got[1].label, 6);
	cr_expect_eq(frag_collection_count(frag_collection_get(value, "empty", NULL)), 0);
	frag_message_unref(message);

	outer = create("string{}[]{}");
	inner = create("string{}[]");
	texts = create("string{}");
	frag_collection_put(texts, "k", "v", 1);
	add(inner, NULL, texts);
	add(outer, "m", inner);
	message = across(outer, &value);
	element = frag_collection_at(frag_collection_get(value, "m", NULL), 0, NULL);
	cr_expect_str_eq(frag_collection_get(element, "k", NULL), "v");
	frag_message_unref(message);

	outer = create("bool[][]");
	frag_collection_add(outer, flags, sizeof(flags));
	message = across(outer, &value);
	cr_expect_eq(memcmp(frag_collection_at(value, 0, &size), flags, 3), 0);
	frag_message_unref(message);

	outer = create("bytes[]");
	frag_collection_add(outer, "\0\1\2", 3);
	frag_collection_add(outer, NULL, 0);
	frag_collection_add(outer, "\3", 1);
	message = across(outer, &value);
	element = frag_collection_at(value, 2, &size);
	cr_expect(size == 1 && *(const char *)element == 3);
	cr_expect_eq((uintptr_t)element % 16, 0);
	frag_message_unref(message);
}

Test(collection, complex_numbers)
{
	const double _Complex wide[2] = {1.5 + 2.5i, -3};
	const float _Complex narrow = 0.25f - 1.0if;
	struct wave {
		float _Complex amplitude;
		double _Complex phases[2];
	};
	static const struct frag_field fields[] = {
		FRAG_FIELD(struct wave, amplitude, "complex64"),
		FRAG_FIELD_ARRAY(struct wave, phases, "complex128", 2),
	};
	static const struct frag_type wave_type = {
		FRAG_TYPE_INIT, .name = "wave", .size = sizeof(struct wave), FRAG_FIELDS(fields)};
	struct frag_collection *list = create("complex128[][]");
	const struct wave wave = {narrow, {wide[0], wide[1]}};
	struct frag_message *message;
	const struct wave *got;
	const void *value;
	size_t size;

	cr_expect_eq(frag_type_find("complex64"), &frag_type_complex64);
	cr_expect_eq(frag_type_complex64.size, 8);
	cr_expect_eq(frag_type_complex128.size, 16);
	frag_collection_add(list, wide, sizeof(wide));
	message = across(list, &value);
	cr_expect_eq(memcmp(frag_collection_at(value, 0, &size), wide, sizeof(wide)), 0);
	frag_message_unref(message);
	cr_assert_eq(frag_type_register(&wave_type, NULL), 0);
	list = create("wave{}");
	frag_collection_put(list, "w", &wave, sizeof(wave));
	message = across(list, &value);
	got = frag_collection_get(value, "w", &size);
	cr_expect(got->amplitude == narrow && got->phases[0] == wide[0] &&
		  got->phases[1] == wide[1]);
	frag_message_unref(message);
}

static int no_encode(const void *value, struct frag_writer *writer)
{
	return 0;
}

static int no_decode(void *value, struct frag_reader *reader)
{
	return 0;
}

Test(collection, what_is_no_collection_is_refused_with_a_sentence)
{
	static const struct frag_type custom = {FRAG_TYPE_INIT, .name = "custom", .size = 8,
						.encode = no_encode, .decode = no_decode};
	static const struct {
		const char *type, *says;
	} cases[] = {
		{"f64", "is no collection"},
		{"f64[]", "is no collection"},
		{"string", "is no collection"},
		{"unheard_of[][]", "register the type of its elements first"},
		{"message[]", "register the type"},
		{"[]", "register the type"},
		{"", "register the type"},
		{"string[", "register the type"},
		{"string[]{", "register the type"},
		{"string[}", "register the type"},
		{"f64[][][][][]", "nest at most 4 deep"},
		{"string{}{}{}{}{}", "nest at most 4 deep"},
		{"custom[][]", "arrays of arrays and maps hold scalars"},
		{"custom{}", "arrays of arrays and maps hold scalars"},
	};
	char deep[2 * 1000 + 8] = "f64";

	cr_assert_eq(frag_type_register(&custom, NULL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frag_collection *none = NULL;
		struct frag_err err = FRAG_ERR_INIT;

		cr_expect_eq(frag_collection_create(cases[i].type, &none, &err), -EINVAL, "%s",
			     cases[i].type);
		cr_expect_not_null(strstr(err.text, cases[i].says), "%s: %s", cases[i].type,
				   err.text);
	}
	for (int i = 0; i < 1000; i++)
		strcat(deep, i % 2 == 0 ? "[]" : "{}");
	cr_expect_null(frag_type_find(deep));
	cr_expect_not_null(frag_type_find("f64[][][][]"));
	cr_expect_not_null(frag_type_find("string{}[]{}[]"));
	cr_expect_not_null(frag_type_find("custom[]"), "its own kind of array");
}

/* A receiver that never names a type still knows it: any message, metadata. */
Test(collection, a_receiver_knows_the_collections_of_what_it_knows)
{
	/* the ids of a sender: i64[] is known, what follows is not */
	const struct frag_type *named = frag_type_find("string[]{}");
	uint64_t id = fragi_type_id(named);

	cr_expect_eq(fragi_type_by_id(id), named);
	/* Other builds send these ids: they may not change. */
	cr_expect_eq(id, UINT64_C(0xD888E30BD6C23108));
	cr_expect_str_eq(fragi_type_by_id(UINT64_C(0x068694A864AF091D))->name, "i64[]{}[]{}");
	cr_expect_eq(frag_type_find("i64[]{}[]{}"), fragi_type_by_id(UINT64_C(0x068694A864AF091D)));
	cr_expect_null(fragi_type_by_id(0));
	for (uint64_t i = 1; i < 1000; i++)
		cr_expect_null(fragi_type_by_id(i));
}

/* Returns not_one when a type is not the one of its name. */
static void *find_all(void *not_one)
{
	static const char *const names[] = {"i8[][]", "i16{}", "string[][][]", "u8[]{}[]", "f32{}"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct frag_type *type = frag_type_find(names[i]);

		if (type == NULL || strcmp(type->name, names[i]) != 0 ||
		    fragi_type_by_id(fragi_type_id(type)) != type)
			return not_one;
	}
	return NULL;
}

Test(collection, threads_that_name_a_type_at_once_get_one)
{
	pthread_t threads[8];
	void *wrong;

	for (int i = 0; i < 8; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, find_all, threads), 0);
	for (int i = 0; i < 8; i++) {
		cr_assert_eq(pthread_join(threads[i], &wrong), 0);
		cr_expect_null(wrong);
	}
}

static int measure(const char *type, const void *wire, size_t wire_size)
{
	size_t size;
	int r = fragi_value_measure(fragi_type_info(frag_type_find(type)), wire, wire_size, &size);

	cr_expect(r < 0 || size <= FRAGI_DECODED_MAX);
	return r;
}

/* Each is refused before any memory is allocated for it. */
Test(collection, hostile_bytes_are_refused_without_memory)
{
	static const struct {
		const char *type;
		const char *wire;
		size_t size;
	} cases[] = {
		{"string[]", "", 0},
		{"string[]", "\1\0\0", 3},
		{"string[]", "\377\377\377\377", 4},      /* more than there is */
		{"string[]", "\2\0\0\0\0\0\0\0", 8},      /* the second is missing */
		{"string[]", "\1\0\0\0\5\0\0\0abcd", 12}, /* one byte too few */
		{"string[]", "\1\0\0\0\1\0\0\0ab", 10},   /* and one too many */
		{"string[]", "\0\0\0\0x", 5},
		{"f64[][]", "\1\0\0\0\3\0\0\0abc", 11},                         /* no f64s */
		{"string[][]", "\1\0\0\0\4\0\0\0\377\377\377\377", 12},         /* inside */
		{"string{}", "\1\0\0\0\1\0\0\0k", 9},                           /* no value */
		{"string{}", "\1\0\0\0\2\0\0\0k\0\0\0\0\0", 14},                /* a NUL in a key */
		{"string{}", "\2\0\0\0\1\0\0\0k\0\0\0\0\1\0\0\0k\0\0\0\0", 22}, /* twice */
		{"string{}", "\2\0\0\0\1\0\0\0l\0\0\0\0\1\0\0\0k\0\0\0\0", 22}, /* order */
		{"i64{}", "\1\0\0\0\0\0\0\0\4\0\0\0abcd", 16},                  /* no i64 */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		frag_type_find(cases[i].type);
		fragi_alloc_fail_after(0, INT64_MAX);
		cr_expect_eq(measure(cases[i].type, cases[i].wire, cases[i].size), -EBADMSG,
			     "case %zu", i);
		cr_expect_eq(fragi_alloc_fail_off(), 0, "case %zu allocated", i);
	}
	cr_expect_eq(measure("string{}", "\2\0\0\0\1\0\0\0k\0\0\0\0\2\0\0\0kk\0\0\0\0", 23), 0);
	cr_expect_eq(measure("string[]", "\0\0\0\0", 4), 0);
}

/* Few bytes cannot become many: an empty text takes 4 of them, and 9 in memory. */
Test(collection, memory_is_bounded_by_the_limit)
{
	size_t count = FRAGI_DECODED_MAX / 8, size = 4 + count * 4;
	uint8_t *wire = calloc(1, size);
	uint32_t stated = (uint32_t)count;

	cr_assert_not_null(wire);
	memcpy(wire, &stated, sizeof(stated));
	cr_expect_eq(measure("string[]", wire, size), -EMSGSIZE);
	cr_expect_eq(measure("bytes[]", wire, size), -EMSGSIZE);
	stated = (uint32_t)count / 2;
	memcpy(wire, &stated, sizeof(stated));
	cr_expect_eq(measure("string[]", wire, 4 + (size_t)stated * 4), 0);
	free(wire);
}

/* What an operator sets as a value without having built it is not followed outside of it. */
Test(collection, a_value_that_is_not_whole_is_not_encoded)
{
	const struct fragi_type_info *info = fragi_type_info(frag_type_find("i64{}"));
#ifdef __clang__ /* whose head ends with an array of unknown length */
#pragma clang diagnostic ignored "-Wgnu-variable-sized-type-not-at-end"
#endif
	struct {
		struct fragi_collection_head head;
		struct fragi_collection_slot slots[2];
		char key[8];
		int64_t value;
	} good = {{1, 2}, {{24, 1}, {32, 8}}, "k", 7}, bad;
	struct frag_writer writer = {.limit = 1 << 16};

	_Static_assert(sizeof(good) == 40, "as it is laid out");
	cr_expect_eq(fragi_value_encode(info, &good, sizeof(good), &writer), 0);
#define EXPECT_REFUSED(change)                                                                     \
	do {                                                                                       \
		bad = good;                                                                        \
		change;                                                                            \
		cr_expect_eq(fragi_value_encode(info, &bad, sizeof(bad), &writer), -EPROTOTYPE,    \
			     #change);                                                             \
	} while (0)
	EXPECT_REFUSED(bad.head.count = 2);
	EXPECT_REFUSED(bad.head.parts = 1);
	EXPECT_REFUSED((bad.head.count = 0x80000000, bad.head.parts = 0));
	EXPECT_REFUSED(bad.slots[0].offset = UINT32_MAX);
	EXPECT_REFUSED(bad.slots[0].size = 8);
	EXPECT_REFUSED(bad.slots[1].offset = 40);
	EXPECT_REFUSED(bad.slots[1].offset = 31);
	EXPECT_REFUSED(bad.slots[1].size = 4);
#undef EXPECT_REFUSED
	cr_expect_eq(fragi_value_encode(info, &good, 7, &writer), -EPROTOTYPE);
	fragi_free(writer.bytes);
}

Test(collection, one_is_built_again_and_again)
{
	struct frag_collection *map = create("f64[]{}");
	const void *value;
	double numbers[100];
	char key[16];
	size_t size;

	for (int i = 0; i < 100; i++)
		numbers[i] = i;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 200; i++) {
			snprintf(key, sizeof(key), "k%d", (i * 37) % 100);
			cr_assert_eq(frag_collection_put(map, key, numbers,
							 (size_t)(i % 100) * sizeof(double)),
				     0);
			if (i % 50 == 0)
				cr_assert_eq(frag_collection_value(map, &value, &size), 0);
		}
		cr_assert_eq(frag_collection_value(map, &value, &size), 0);
		cr_expect_eq(frag_collection_count(value), 100);
		for (int i = 100; i < 200; i++) {
			snprintf(key, sizeof(key), "k%d", (i * 37) % 100);
			cr_assert_not_null(frag_collection_get(value, key, &size));
			cr_expect_eq(size, (size_t)(i - 100) * sizeof(double));
		}
		frag_collection_clear(map);
		cr_assert_eq(frag_collection_value(map, &value, &size), 0);
		cr_expect_eq(frag_collection_count(value), 0);
	}
	frag_collection_destroy(map);
	frag_collection_destroy(NULL);
}

Test(collection, building_survives_every_failed_allocation)
{
	int64_t failed = 1;

	frag_type_find("string{}");
	for (int64_t n = 0; failed > 0; n++) {
		struct frag_collection *map = NULL;
		const void *value;
		size_t size;
		int r;

		fragi_alloc_fail_after(n, 1);
		r = frag_collection_create("string{}", &map, NULL);
		for (int i = 0; i < 20 && r == 0; i++)
			r = frag_collection_put(map, "key", "value", 5);
		if (r == 0)
			r = frag_collection_value(map, &value, &size);
		failed = fragi_alloc_fail_off();
		cr_assert_eq(r, failed > 0 ? -ENOMEM : 0);
		frag_collection_destroy(map);
	}
}
