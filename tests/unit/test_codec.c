// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>

#include "codec_messages.h"

TestSuite(codec, .init = register_types);

/* Sends a value across and compares it, byte by byte. */
static void expect_same(const struct frag_type *type, const void *value, size_t size)
{
	struct frag_message *arrived = across(message_of(type, value, size));
	const void *got;
	size_t got_size;

	cr_assert_eq(frag_message_value(arrived, &got, &got_size), type, "%s", type->name);
	cr_expect_eq(got_size, size, "%s", type->name);
	cr_expect(size == 0 || memcmp(got, value, size) == 0, "%s", type->name);
	frag_message_unref(arrived);
}

Test(codec, scalars_text_bytes_and_arrays_cross)
{
	static const char *const names[] = {"i8",  "i16", "i32", "i64", "u8",
					    "u16", "u32", "u64", "f32", "f64"};
	static const uint8_t bytes[64] = {1, 2, 3, 0xFF, 0xFE, 0x80, 0, 9, 77};
	const bool flags[] = {true, false, true};
	char array[16];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		expect_same(frag_type_find(names[i]), bytes, frag_type_find(names[i])->size);
		snprintf(array, sizeof(array), "%s[]", names[i]);
		expect_same(frag_type_find(array), bytes, sizeof(bytes));
		expect_same(frag_type_find(array), bytes, 0);
	}
	expect_same(&frag_type_bool, flags, 1);
	expect_same(frag_type_find("bool[]"), flags, 3);
	expect_same(&frag_type_string, "", 0);
	expect_same(&frag_type_string, "gr\xC3\xBC\xC3\x9F", 6);
	expect_same(&frag_type_string, "a text that is longer than the message's own room", 49);
	expect_same(&frag_type_bytes, bytes, sizeof(bytes));
}

/* The table of another file that includes the header of the struct. */
Test(codec, an_equal_table_crosses_as_the_registered_type)
{
	static const struct frag_type twin = {FRAG_TYPE_INIT, .name = "point",
					      .size = sizeof(struct point),
					      FRAG_FIELDS(point_fields)};
	const struct point point = {1.5f, -2.0f};
	struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_DEFAULT);
	struct frag_message *message = message_of(&twin, &point, sizeof(point)), *arrived;
	const void *got;

	cr_assert_eq(frag_metadata_set(metadata, "at", &twin, &point, sizeof(point)), 0);
	fragi_message_set_metadata(message, metadata);
	arrived = across(message);
	cr_expect_eq(frag_message_value(arrived, &got, NULL), &point_type);
	cr_expect(memcmp(got, &point, sizeof(point)) == 0);
	cr_expect_eq(frag_metadata_get(frag_message_metadata(arrived), "at", NULL, &got, NULL), 0);
	cr_expect(memcmp(got, &point, sizeof(point)) == 0);
	frag_message_unref(arrived);
}

Test(codec, plain_structs_cross_without_their_padding)
{
	struct box boxes[3];
	const struct box *got;
	struct frag_message *arrived;
	const struct fragi_blob *blob;
	const void *value;
	size_t size;

	memset(boxes, 0xAA, sizeof(boxes)); /* padding too */
	for (int i = 0; i < 3; i++) {
		boxes[i].corners[0] = (struct point){1.5f, (float)i};
		boxes[i].corners[1] = (struct point){-2, 4};
		boxes[i].filled = i == 1;
		boxes[i].label = -i;
	}
	arrived = message_of(&box_type, boxes, sizeof(boxes[0]));
	cr_assert_eq(fragi_message_encode(arrived, &blob), 0);
	cr_expect_eq(blob->size, 16 + 21 + 2);
	frag_message_unref(arrived);
	arrived = across(message_of(frag_type_find("box[]"), boxes, sizeof(boxes)));
	frag_message_value(arrived, &value, &size);
	cr_assert_eq(size, sizeof(boxes));
	got = value;
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(memcmp(got[i].corners, boxes[i].corners, sizeof(boxes[i].corners)), 0);
		cr_expect_eq(got[i].filled, i == 1);
		cr_expect_eq(got[i].label, -i);
	}
	frag_message_unref(arrived);
}

Test(codec, types_with_their_own_functions_cross)
{
	struct blob one = blob_of("one"), many[] = {blob_of("a"), blob_of(""), blob_of("ccc")};
	struct frag_message *arrived = across(message_of(&blob_type, &one, sizeof(one)));
	const struct blob *got;
	const void *value;
	size_t size;

	cr_assert_eq(frag_message_value(arrived, &value, &size), &blob_type);
	got = value;
	cr_expect(got->length == 3 && memcmp(got->bytes, "one", 3) == 0);
	frag_message_unref(arrived);

	arrived = across(message_of(frag_type_find("blob[]"), many, sizeof(many)));
	frag_message_value(arrived, &value, &size);
	cr_assert_eq(size, sizeof(many));
	got = value;
	cr_expect(got[0].length == 1 && got[1].length == 0 && got[2].length == 3);
	cr_expect_eq(memcmp(got[2].bytes, "ccc", 3), 0);
	frag_message_unref(arrived);
	cr_expect_eq(blobs, 0);
}

Test(codec, a_message_with_everything_crosses)
{
	struct frag_message *arrived = across(rich_message());
	const struct frag_metadata *metadata = frag_message_metadata(arrived);
	const struct frag_type *type;
	struct frag_tensor *tensor = frag_message_tensor(arrived, "frame");
	const char *text = "", *name;
	const void *value;
	int64_t index = 0;
	size_t size;

	cr_expect_eq(frag_message_acquisition_ns(arrived), 1234567890123456789);
	cr_expect_eq(frag_message_value(arrived, NULL, NULL), &box_type);
	cr_assert_not_null(tensor);
	cr_expect_eq(frag_tensor_dl(tensor)->ndim, 3);
	cr_expect_eq(frag_tensor_dl(tensor)->shape[2], 4);
	cr_expect_eq(frag_tensor_dl(tensor)->dtype.bits, 8);
	cr_expect_not_null(fragi_tensor_body(tensor, &size));
	cr_expect_eq(size, 24);
	cr_expect_null(frag_tensor_writable(tensor), "it arrived in a message");
	cr_expect_eq(frag_tensor_dl(frag_message_tensor_at(arrived, 1, &name))->dtype.code,
		     FRAG_DTYPE_FLOAT);
	cr_expect_str_eq(name, "");
	cr_assert_not_null(metadata);
	cr_expect_eq(frag_metadata_count(metadata), 3);
	cr_expect_str_eq(frag_metadata_key(metadata, 1), "source");
	cr_expect(frag_metadata_get_i64(metadata, "index", &index) == 0 && index == 42);
	cr_expect_eq(frag_metadata_get_string(metadata, "source", &text), 0);
	cr_expect_str_eq(text, "camera");
	cr_expect_eq(frag_metadata_get(metadata, "blob", &type, &value, &size), 0);
	cr_expect(type == &blob_type && ((const struct blob *)value)->length == 4);
	cr_expect_eq(frag_message_set_value(arrived, &frag_type_i64, NULL, 8, NULL), -EBUSY);
	frag_message_unref(arrived);
	cr_expect_eq(blobs, 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

/* Other builds read these bytes: a change here is a new version. */
Test(codec, the_bytes_are_as_documented)
{
	static const uint8_t expected[] = {
		2,    0x0D, 1,    0,                            /* version, stamps, tensors */
		8,    0,    0,    0,                            /* value bytes */
		0xF2, 0x8B, 0xD0, 0x67, 0xC4, 0xCD, 0x93, 0x10, /* i64 */
		5,    0,    0,    0,    0,    0,    0,    0,    /* acquisition */
		1,    0,    0,    0,                            /* its clock */
		9,    0,    0,    0,    0,    0,    0,    0,    /* sequence */
		1,    't',  2,    32,   1,    0,    1,    1,    /* name, dtype, device, ndim */
		3,    0,    0,    0,    0,    0,    0,    0,    /* shape */
		12,   0,    0,    0,    0,    0,    0,    0,    /* body bytes */
		0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, /* value */
		1,    0,    1,    'k',                          /* keys, key */
	};
	struct frag_message *message;
	struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_UPDATE);
	struct frag_tensor *tensor;
	const struct fragi_blob *blob = NULL;
	int64_t shape[] = {3}, value = -2;
	uint64_t bool_id = fragi_type_id(&frag_type_bool);
	const size_t head = sizeof(expected);

	message = message_of(&frag_type_i64, &value, sizeof(value));
	cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, 1,
					shape, &tensor),
		     0);
	frag_message_add_tensor(message, "t", tensor);
	frag_metadata_set_bool(metadata, "k", 1);
	fragi_message_set_metadata(message, metadata);
	frag_message_set_acquisition(message, 5, FRAG_CLOCK_TAI);
	frag_message_set_sequence(message, 9);
	frag_message_set_flags(message, FRAG_MESSAGE_DEGRADED);
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	cr_assert_eq(blob->size, head + 8 + 4 + 1);
	cr_expect_eq(memcmp(blob->bytes, expected, head), 0);
	cr_expect_eq(memcmp(blob->bytes + head, &bool_id, 8), 0);
	cr_expect_eq(memcmp(blob->bytes + head + 8, "\1\0\0\0\1", 5), 0);
	frag_message_unref(message);
}

Test(codec, each_combination_of_stamps_crosses)
{
	struct frag_message *arrived;
	uint32_t clock;
	uint64_t sequence;
	int64_t time_ns;

	for (uint32_t stamps = 0; stamps < 64; stamps++) {
		struct frag_message *message = message_of(&frag_type_i64, NULL, 8);

		frag_message_set_flags(message, stamps & 3);
		if (stamps & 4)
			frag_message_set_acquisition(message, INT64_MIN, FRAG_CLOCK_OWN + 7);
		if (stamps & 8)
			frag_message_set_sequence(message, UINT64_MAX);
		if (stamps & 16) {
			message->tracking_id = 77;
			message->stamps |= FRAGI_STAMP_TRACKED;
		}
		if (stamps & 32)
			message->stamps |= FRAGI_STAMP_FOREIGN;
		arrived = across(message);
		cr_expect_eq(frag_message_flags(arrived), stamps & 3);
		clock = 0;
		time_ns = 0;
		cr_expect_eq(frag_message_acquisition(arrived, &time_ns, &clock),
			     stamps & 4 ? 0 : -ENODATA);
		cr_expect_eq(time_ns, stamps & 4 ? INT64_MIN : 0);
		cr_expect_eq(clock, stamps & 4 ? FRAG_CLOCK_OWN + 7 : 0);
		sequence = 0;
		cr_expect_eq(frag_message_sequence(arrived, &sequence), stamps & 8 ? 0 : -ENODATA);
		cr_expect_eq(sequence, stamps & 8 ? UINT64_MAX : 0);
		cr_expect_eq(arrived->stamps, stamps);
		cr_expect(!(stamps & 16) || arrived->tracking_id == 77);
		frag_message_unref(arrived);
	}
}

Test(codec, a_message_is_encoded_once)
{
	struct frag_message *message = rich_message();
	const struct fragi_blob *first = NULL, *second = NULL;
	int64_t acquisition_ns;

	cr_assert_eq(fragi_message_encode(message, &first), 0);
	fragi_alloc_fail_after(0, INT64_MAX);
	cr_assert_eq(fragi_message_encode(message, &second), 0);
	cr_expect_eq(fragi_alloc_fail_off(), 0);
	cr_expect_eq(first, second);
	fragi_message_share(message);
	message = frag_message_writable(message); /* what was encoded no longer holds */
	frag_message_set_acquisition_ns(message, 1);
	cr_assert_eq(fragi_message_encode(message, &first), 0);
	memcpy(&acquisition_ns, first->bytes + 16, sizeof(acquisition_ns));
	cr_expect_eq(acquisition_ns, 1);
	frag_message_unref(message);
}

static void *encode_it(void *message)
{
	const struct fragi_blob *blob = NULL;

	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	return (void *)(uintptr_t)blob;
}

Test(codec, threads_that_encode_at_once_agree)
{
	for (int round = 0; round < 100; round++) {
		struct frag_message *message = rich_message();
		pthread_t threads[4];
		void *encoded[4];

		for (int i = 0; i < 4; i++)
			cr_assert_eq(pthread_create(&threads[i], NULL, encode_it, message), 0);
		for (int i = 0; i < 4; i++) {
			pthread_join(threads[i], &encoded[i]);
			cr_assert_eq(encoded[i], encoded[0]);
		}
		frag_message_unref(message);
	}
}

static int nothing_encode(const void *value, struct frag_writer *writer)
{
	return 0;
}

static int nothing_decode(void *value, struct frag_reader *reader)
{
	return 0;
}

Test(codec, a_type_may_encode_to_nothing_but_not_in_an_array)
{
	static const struct frag_type nothing = {FRAG_TYPE_INIT, .name = "nothing", .size = 1,
						 .encode = nothing_encode,
						 .decode = nothing_decode};
	struct frag_message *message = message_of(&nothing, "", 1);
	const struct fragi_blob *blob = NULL;

	cr_assert_eq(frag_type_register(&nothing, NULL), 0);
	message = across(message);
	cr_expect_eq(frag_message_value(message, NULL, NULL), &nothing);
	frag_message_unref(message);
	message = message_of(frag_type_find("nothing[]"), "ab", 2);
	cr_expect_eq(fragi_message_encode(message, &blob), -EPROTOTYPE);
	frag_message_unref(message);
}

Test(codec, a_reader_stays_at_its_end)
{
	static const uint8_t bytes[] = {1, 0, 0, 0, 2};
	struct frag_reader reader = {bytes, bytes + sizeof(bytes)};
	uint64_t wide = 7;
	uint32_t x = 7;

	cr_expect_eq(frag_reader_get_u64(&reader, &wide), -EBADMSG);
	cr_expect_eq(wide, 7);
	cr_expect_eq(frag_reader_get_u32(&reader, &x), 0);
	cr_expect_eq(x, 1);
	cr_expect_eq(frag_reader_get_u32(&reader, &x), -EBADMSG);
	cr_expect_eq(x, 1);
	cr_expect_eq(frag_reader_left(&reader), 1);
	cr_expect_eq(frag_reader_get(&reader, &x, SIZE_MAX), -EBADMSG);
	cr_expect_eq(frag_reader_get(&reader, NULL, 0), 0);
}
