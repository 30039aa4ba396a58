// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <data/codec.h>
#include <data/metadata.h>

#include "shapes.h"

/* A type that owns memory: u32 length, then as many bytes. */
struct blob {
	uint32_t length;
	char *bytes;
};
static int blobs; /* with memory */

static int blob_encode(const void *value, struct frag_writer *writer)
{
	const struct blob *blob = value;

	frag_writer_put_u32(writer, blob->length);
	return frag_writer_put(writer, blob->bytes, blob->length);
}

static int blob_decode(void *value, struct frag_reader *reader)
{
	struct blob *blob = value;

	if (frag_reader_get_u32(reader, &blob->length) < 0 ||
	    blob->length > frag_reader_left(reader))
		return -EBADMSG;
	blob->bytes = malloc(blob->length + 1);
	blobs++;
	return frag_reader_get(reader, blob->bytes, blob->length);
}

static void blob_fini(void *value)
{
	struct blob *blob = value;

	blobs -= blob->bytes != NULL;
	free(blob->bytes);
}

static const struct frag_type blob_type = {
	FRAG_TYPE_INIT,        .name = "blob",        .size = sizeof(struct blob),
	.encode = blob_encode, .decode = blob_decode, .fini = blob_fini,
};

static struct blob blob_of(const char *text)
{
	struct blob blob = {(uint32_t)strlen(text), strdup(text)};

	blobs++;
	return blob;
}

static void register_types(void)
{
	cr_assert_eq(frag_type_register(&point_type, NULL), 0);
	cr_assert_eq(frag_type_register(&box_type, NULL), 0);
	cr_assert_eq(frag_type_register(&blob_type, NULL), 0);
}

TestSuite(codec, .init = register_types);

static struct frag_message *message_of(const struct frag_type *type, const void *value, size_t size)
{
	struct frag_message *message = frag_message_create();

	cr_assert_eq(frag_message_set_value(message, type, value, size, NULL), 0);
	return message;
}

/* Encodes message (taken) and decodes it. */
static struct frag_message *across(struct frag_message *message)
{
	struct frag_message *arrived = NULL;
	const struct fragi_blob *blob = NULL;

	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	cr_assert_eq(fragi_message_decode(blob->bytes, blob->size, 1 << 20, &arrived, NULL), 0);
	frag_message_unref(message);
	return arrived;
}

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

/* A message with everything: a value, two tensors, metadata. */
static struct frag_message *rich_message(void)
{
	const struct box box = {.corners = {{1, 2}, {3, 4}}, .filled = true, .label = 5};
	struct frag_message *message = message_of(&box_type, &box, sizeof(box));
	struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_UPDATE);
	struct blob blob = blob_of("meta");
	int64_t shape[] = {2, 3, 4};
	struct frag_tensor *tensor;

	cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3, shape,
					&tensor),
		     0);
	cr_assert_eq(frag_message_add_tensor(message, "frame", tensor), 0);
	cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_FLOAT, 64, 1}, 0, NULL,
					&tensor),
		     0);
	cr_assert_eq(frag_message_add_tensor(message, "", tensor), 0);
	frag_metadata_set_i64(metadata, "index", 42);
	frag_metadata_set_string(metadata, "source", "camera");
	frag_metadata_set(metadata, "blob", &blob_type, &blob, sizeof(blob));
	fragi_message_set_metadata(message, metadata);
	frag_message_set_acquisition_ns(message, 1234567890123456789);
	return message;
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

/* A trail of so many entries, every third of which stays in the process. */
static struct fragi_trail *trail_of(uint32_t count)
{
	struct fragi_trail *trail = fragi_trail_create(count);
	uint64_t now = fragi_stamp();

	trail->maker = trail;
	trail->tick = 5;
	for (uint32_t i = 0; i < count; i++)
		trail->entries[i] = (struct fragi_trail_entry){
			.deadline = (uint16_t)i,
			.at = 9,
			.slowest = 4,
			.flags = i % 3 == 2   ? FRAGI_TRAIL_LOCAL
				 : i % 3 == 1 ? FRAGI_TRAIL_FOREIGN
					      : 0,
			.begin = fragi_stamp_before(now, 5000000000),
			.published = now,
			.slowest_ns = UINT64_MAX - i,
			.error_ns = 300 + i,
			.parts = {.rest_ns = 5 + i,
				  .count = i % (FRAGI_BLAME_PARTS_MAX + 1),
				  .parts = {{.at = 3, .cause = FRAGI_BLAME_GPU, .ns = 17 + i},
					    {.at = 4, .cause = FRAGI_BLAME_CLOCK, .ns = 1}}},
		};
	trail->arrived = 0;
	trail->held = (struct fragi_trail_held){0};
	return trail;
}

Test(codec, a_trail_crosses_but_for_what_ends_here)
{
	static const uint32_t counts[] = {1, 2, 3, 4, 5, 100};

	fragi_stamp_refine();
	for (size_t c = 0; c < FRAG_COUNT_OF(counts); c++) {
		struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived;
		uint32_t number = 0;

		frag_message_set_sequence(message, 3);
		fragi_message_set_trail(message, trail_of(counts[c]));
		arrived = across(message);
		cr_assert_eq(arrived->stamps, FRAGI_STAMP_SEQUENCE | FRAGI_STAMP_TRAIL);
		cr_expect_eq(arrived->trail->count, counts[c] - counts[c] / 3);
		cr_expect_null(arrived->trail->maker);
		for (uint32_t i = 0; i < arrived->trail->count; i++, number++) {
			const struct fragi_trail_entry *entry = &arrived->trail->entries[i];
			uint64_t ns = fragi_stamp_diff_ns(entry->begin, entry->published);

			number += number % 3 == 2;
			cr_expect_eq(entry->deadline, number);
			cr_expect_eq(entry->at, 9);
			cr_expect_eq(entry->slowest, 4);
			cr_expect_eq(entry->flags, number % 3 == 1 ? FRAGI_TRAIL_FOREIGN : 0);
			cr_expect_eq(entry->slowest_ns, UINT64_MAX - number);
			cr_expect(ns > 4999900000 && ns < 5000100000, "%llu",
				  (unsigned long long)ns);
			cr_expect_eq(entry->error_ns, 300 + number);
			cr_expect_eq(entry->parts.rest_ns, 5 + number);
			cr_expect_eq(entry->parts.count, number % (FRAGI_BLAME_PARTS_MAX + 1));
			cr_expect(entry->parts.count < 2 ||
				  (entry->parts.parts[0].at == 3 &&
				   entry->parts.parts[0].cause == FRAGI_BLAME_GPU &&
				   entry->parts.parts[0].ns == 17 + number &&
				   entry->parts.parts[1].cause == FRAGI_BLAME_CLOCK));
		}
		frag_message_unref(arrived);
	}
}

static const char *name_of_step(const struct fragi_label_names *names, uint32_t op)
{
	static const char *const all[] = {"left.tx", "left.mx", "right.rx"};

	(void)names;
	return all[op];
}
static const struct fragi_label_names step_names = {name_of_step};

/* Two paths, of three operators and of one. */
static struct fragi_label *label_of_two_paths(void)
{
	static const uint32_t ops[] = {0, 1, 2, 1}, left[] = {3, 2, 1, 1};
	struct fragi_label *label = fragi_label_create(4);
	const uint64_t now = fragi_stamp();

	label->maker = label;
	label->names = &step_names;
	label->error_ns = 40;
	for (uint32_t i = 0; i < 4; i++)
		label->steps[i] = (struct fragi_step){
			ops[i],
			left[i],
			fragi_stamp_before(now, (10 - i) * 1000000000ull),
			fragi_stamp_before(now, (10 - i) * 1000000000ull - 500000000),
			17 + i,
			23 + i};
	return label;
}

/* How long a message was held is written into its descriptors when it is sent. */
Test(codec, a_trail_says_how_long_its_message_was_held)
{
	static const struct fragi_trail_held held = {23, 17, 11};
	static const uint32_t stamps[] = {0, 1, 2, 3}; /* what stands in front of it */

	for (size_t i = 0; i < FRAG_COUNT_OF(stamps); i++) {
		struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived;
		const struct fragi_blob *blob;
		uint8_t copy[512];

		if ((stamps[i] & 1) != 0)
			frag_message_set_sequence(message, 3);
		if ((stamps[i] & 2) != 0)
			frag_message_set_acquisition(message, 5, FRAG_CLOCK_UNIX);
		fragi_message_set_trail(message, trail_of(1));
		fragi_message_set_label(message, label_of_two_paths());
		cr_expect_neq(message->at_receive & FRAGI_AT_SEND_TRAIL, 0);
		cr_assert_eq(fragi_message_encode(message, &blob), 0);
		cr_assert_leq(blob->size, sizeof(copy));
		memcpy(copy, blob->bytes, blob->size);
		fragi_blob_set_held(blob, copy, &held);
		cr_assert_eq(fragi_message_decode(copy, blob->size, 1 << 20, &arrived, NULL), 0);
		cr_expect_eq(arrived->label->held_ns, 23);
		cr_expect_neq(arrived->label->arrived, 0);
		cr_expect_eq(arrived->trail->held.ns, 23);
		cr_expect_eq(arrived->trail->held.restart_ns, 17);
		cr_expect_eq(arrived->trail->held.gpu_ns, 11);
		cr_expect_neq(arrived->trail->arrived, 0);
		cr_expect_eq(arrived->trail->entries[0].deadline, 0);
		frag_message_unref(arrived);
		fragi_message_set_trail(message, NULL);
		cr_expect_neq(message->at_receive & FRAGI_AT_SEND_TRAIL, 0, "it has a label");
		message->label->names = NULL;
		fragi_message_set_trail(message, NULL);
		cr_expect_eq(message->at_receive & FRAGI_AT_SEND_TRAIL, 0, "of this process");
		frag_message_unref(message);
	}
}

/* Causes and numbers of parts that cannot be are refused, and so are trails of older hosts. */
Test(codec, a_trail_with_parts_that_cannot_be_is_refused)
{
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived = NULL;
	struct fragi_trail *trail = trail_of(1);
	const struct fragi_blob *blob;
	uint8_t copy[FRAGI_BLOB_POOLED];
	/* the descriptors' head, that of the trail, then the entry's members */
	const size_t entry = 16 + 26, flags = entry + 6, count = entry + 48, cause = entry + 52;

	trail->entries[0].parts.count = 1;
	fragi_message_set_trail(message, trail);
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	memcpy(copy, blob->bytes, blob->size);
	cr_assert_eq(fragi_message_decode(copy, blob->size, 1 << 20, &arrived, NULL), 0);
	frag_message_unref(arrived);
	for (int i = 0; i < 4; i++) {
		static const uint8_t wrong[] = {0, 4, FRAGI_BLAME_PARTS_MAX + 1,
						FRAGI_BLAME_CAUSES};
		const size_t at[] = {flags, flags, count, cause};

		memcpy(copy, blob->bytes, blob->size);
		copy[at[i]] = wrong[i];
		cr_expect_eq(fragi_message_decode(copy, blob->size, 1 << 20, &arrived, NULL),
			     -EBADMSG, "%d", i);
	}
	frag_message_unref(message);
}

static const char *where(const struct frag_message *message, uint16_t at)
{
	const char *name = fragi_trail_where(&message->trail->entries[0].places, at);

	return name != NULL ? name : "";
}

/* From worker "left" over "right" to here: each notes where what it receives came from. */
Test(codec, a_trail_says_on_which_workers_the_operators_of_a_path_were)
{
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived, *again;
	struct fragi_trail *trail = trail_of(1);
	const uint16_t left = fragi_trail_worker("left", 4), right = fragi_trail_worker("right", 5);

	cr_assert_neq(left, FRAGI_TRAIL_NOWHERE);
	cr_expect_eq(fragi_trail_worker("left!", 4), left);
	cr_expect_neq(left, right);
	cr_expect_eq(fragi_trail_worker("", 0), FRAGI_TRAIL_NOWHERE);
	cr_expect_eq(fragi_trail_worker("a\033[2J", 5), FRAGI_TRAIL_NOWHERE, "not printable");
	cr_expect_null(fragi_trail_worker_name(FRAGI_TRAIL_NOWHERE));
	cr_expect_null(fragi_trail_worker_name(UINT16_MAX));
	trail->entries[0].at = 2;
	fragi_message_set_trail(message, trail);
	arrived = across(message);
	fragi_trail_came_from(arrived->trail, left);
	cr_expect_str_eq(where(arrived, 0), "left");
	cr_expect_str_eq(where(arrived, 2), "left");
	cr_expect_str_eq(where(arrived, 3), "", "it is here");
	arrived->trail->entries[0].at = 4;
	again = across(arrived);
	fragi_trail_came_from(again->trail, right);
	cr_expect_str_eq(where(again, 2), "left");
	cr_expect_str_eq(where(again, 3), "right");
	cr_expect_str_eq(where(again, 4), "right");
	cr_expect_str_eq(where(again, 5), "");
	again->trail->entries[0].at = 6;
	fragi_trail_came_from(again->trail, right);
	cr_expect_eq(again->trail->entries[0].places.count, 2, "one worker after itself");
	cr_expect_str_eq(where(again, 6), "right");
	for (uint16_t i = 0; i < 20; i++)
		fragi_trail_came_from(again->trail, i % 2 == 0 ? left : right);
	cr_expect_eq(again->trail->entries[0].places.count, FRAGI_TRAIL_PLACES_MAX);
	frag_message_unref(again);
}

Test(codec, of_too_many_places_a_trail_is_refused)
{
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived = NULL;
	const struct fragi_blob *blob;
	uint8_t copy[FRAGI_BLOB_POOLED];
	const size_t count = 16 + 26 + 50; /* heads of the descriptors, the trail, its entry */

	fragi_message_set_trail(message, trail_of(1));
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	memcpy(copy, blob->bytes, blob->size);
	cr_assert_eq(copy[count], 0);
	cr_assert_eq(fragi_message_decode(copy, blob->size, 1 << 20, &arrived, NULL), 0);
	frag_message_unref(arrived);
	copy[count] = FRAGI_TRAIL_PLACES_MAX + 1;
	cr_expect_eq(fragi_message_decode(copy, blob->size, 1 << 20, &arrived, NULL), -EBADMSG);
	frag_message_unref(message);
}

/* An offset that is known to 9 ns, of which `most` is allowed. */
#define ESTIMATED(offset, most, has_unix, has_tai)                                                 \
	{                                                                                          \
		.state = FRAGI_TIMELINE_ESTIMATED,                                                 \
		.line = {.base_ns = 60000000000,                                                   \
			 .offset_ns = offset,                                                      \
			 .low_ns = offset - 8,                                                     \
			 .high_ns = offset + 8},                                                   \
		.max_error_ns = most, .knows_unix = has_unix, .knows_tai = has_tai,                \
		.unix_ahead_ns = 100000000000, .our_unix_ahead_ns = 102000000000,                  \
		.tai_ahead_ns = 130000000000, .our_tai_ahead_ns = 133000000000,                    \
	}

/* What becomes of times that a peer took: the table is written for 60 s of its clock. */
Test(codec, times_of_a_peer_are_converted_by_its_timeline)
{
	const int64_t theirs_ns = fragi_now_ns(), since_ns = theirs_ns - 60000000000;
	static const struct {
		struct fragi_timeline peer;
		uint32_t clock; /* of the acquisition */
		int64_t ours_ns;
		bool is_foreign, trail_is_foreign;
	} cases[] = {
		{{.state = FRAGI_TIMELINE_SAME}, FRAG_CLOCK_MONOTONIC, 60000000000, false, false},
		{{.state = FRAGI_TIMELINE_SAME}, FRAG_CLOCK_UNIX, 60000000000, false, false},
		{{.state = FRAGI_TIMELINE_SAME}, FRAG_CLOCK_OWN, 60000000000, false, false},
		{{.state = FRAGI_TIMELINE_UNKNOWN}, FRAG_CLOCK_MONOTONIC, 60000000000, true, true},
		{{.state = FRAGI_TIMELINE_UNKNOWN}, FRAG_CLOCK_OWN, 60000000000, true, true},
		{ESTIMATED(7000000000, 0, false, false), FRAG_CLOCK_MONOTONIC, 67000000000, false,
		 false},
		{ESTIMATED(-3000000000, 9, false, false), FRAG_CLOCK_MONOTONIC, 57000000000, false,
		 false},
		{ESTIMATED(7000000000, 8, true, true), FRAG_CLOCK_MONOTONIC, 60000000000, true,
		 true},
		/* the other clocks: 100 s and 130 s ahead over there, 102 s and 133 s here */
		{ESTIMATED(7000000000, 9, true, false), FRAG_CLOCK_UNIX, 69000000000, false, false},
		{ESTIMATED(7000000000, 9, false, true), FRAG_CLOCK_UNIX, 60000000000, true, false},
		{ESTIMATED(7000000000, 9, false, true), FRAG_CLOCK_TAI, 70000000000, false, false},
		{ESTIMATED(7000000000, 9, true, false), FRAG_CLOCK_TAI, 60000000000, true, false},
		{ESTIMATED(7000000000, 9, true, true), FRAG_CLOCK_OWN, 60000000000, true, false},
	};

	fragi_stamp_refine();
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_message *message = message_of(&frag_type_i64, NULL, 8);
		struct fragi_timeline peer = cases[i].peer;
		const int64_t offset_ns = peer.line.offset_ns;
		const struct fragi_moment moment = fragi_moment_now();
		const struct fragi_trail_entry *entry;
		int64_t acquired_ns = 0, begin_ns, published_ns;

		peer.line.base_ns = theirs_ns;
		fragi_message_convert_times(message, &peer);
		cr_expect_eq(message->stamps, 0, "%zu: a message without times", i);
		frag_message_set_acquisition(message, theirs_ns, cases[i].clock);
		fragi_message_set_trail(message, trail_of(1));
		begin_ns = fragi_moment_ns_at(&moment, message->trail->entries[0].begin);
		published_ns = fragi_moment_ns_at(&moment, message->trail->entries[0].published);
		fragi_message_convert_times(message, &peer);
		entry = &message->trail->entries[0];
		frag_message_acquisition(message, &acquired_ns, NULL);
		cr_expect_eq(acquired_ns, cases[i].ours_ns + since_ns, "%zu", i);
		cr_expect_eq((message->stamps & FRAGI_STAMP_FOREIGN) != 0, cases[i].is_foreign,
			     "%zu", i);
		cr_expect_eq(entry->flags, cases[i].trail_is_foreign ? FRAGI_TRAIL_FOREIGN : 0,
			     "%zu", i);
		if (!cases[i].trail_is_foreign) {
			begin_ns += offset_ns - fragi_moment_ns_at(&moment, entry->begin);
			published_ns += offset_ns - fragi_moment_ns_at(&moment, entry->published);
			cr_expect(begin_ns > -100000 && begin_ns < 100000, "%zu", i);
			cr_expect(published_ns > -100000 && published_ns < 100000, "%zu", i);
		}
		frag_message_unref(message);
	}
}

Test(codec, a_label_crosses_with_its_names_and_times)
{
	static const char *const names[] = {"left.tx", "left.mx", "right.rx", "left.mx"};
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived;
	struct fragi_timeline peer = ESTIMATED(7000000000, 0, false, false);
	uint64_t now;
	int64_t took_ns;

	fragi_stamp_refine();
	now = fragi_stamp();
	fragi_message_set_trail(message, trail_of(1));
	fragi_message_set_label(message, label_of_two_paths());
	arrived = across(message);
	cr_assert_eq(arrived->stamps, FRAGI_STAMP_TRAIL | FRAGI_STAMP_LABEL);
	cr_assert_eq(arrived->label->step_count, 4);
	cr_expect_null(arrived->label->maker);
	peer.line.base_ns = fragi_now_ns();
	fragi_message_convert_times(arrived, &peer);
	took_ns = (int64_t)fragi_stamp_diff_ns(now, fragi_stamp());
	cr_expect_eq(arrived->label->error_ns, 40 + 9, "both clocks");
	cr_expect_eq(arrived->label->held_ns, 0, "nobody has written it");
	for (uint32_t i = 0; i < 4; i++) {
		const struct fragi_step *step = &arrived->label->steps[i];
		/* 10, 9, 8 and 7 s ago by a clock that is 7 s behind */
		int64_t ns = (int64_t)fragi_stamp_diff_ns(fragi_stamp_before(now, 20000000000),
							  step->received);

		cr_expect_str_eq(fragi_label_name(arrived->label, step), names[i]);
		cr_expect_eq(step->left, i == 3 ? 1 : 3 - i);
		cr_expect_eq(step->held_ns, 17 + i);
		cr_expect_eq(step->network_ns, 23 + i);
		ns -= (17 + (int64_t)i) * 1000000000;
		cr_expect(ns > -50000000 && ns < 50000000 + took_ns, "%lld", (long long)ns);
		ns = (int64_t)fragi_stamp_diff_ns(step->received, step->published);
		cr_expect(llabs(ns - 500000000) < 1000000, "%lld", (long long)ns);
	}
	peer.state = FRAGI_TIMELINE_UNKNOWN;
	fragi_message_convert_times(arrived, &peer);
	cr_expect_eq(arrived->label->step_count, 0,
		     "there are paths, and nothing is known of them");
	frag_message_unref(arrived);

	message = message_of(&frag_type_i64, NULL, 8);
	fragi_message_set_label(message, label_of_two_paths());
	message->label->names = NULL;
	arrived = across(message);
	cr_expect_eq(arrived->stamps, 0, "it stays in its process");
	frag_message_unref(arrived);
}

static int decode_label(const uint8_t *bytes, size_t size)
{
	struct frag_reader reader = {bytes, bytes + size};
	struct fragi_label *label = NULL;
	int r = fragi_label_decode(&reader, &label);

	if (r == 0)
		fragi_label_unref(label);
	return r;
}

Test(codec, labels_that_are_none_are_refused)
{
	struct fragi_label *label = label_of_two_paths();
	struct frag_writer writer = {.limit = 1 << 16};
	uint8_t *bytes;

	fragi_label_encode(label, &writer);
	bytes = writer.bytes;
	cr_assert_eq(decode_label(bytes, writer.size), 0);
	for (size_t size = 0; size < writer.size; size++)
		cr_expect_eq(decode_label(bytes, size), -EBADMSG, "%zu bytes", size);
	bytes[12] = 2; /* a path of three that says it has two */
	cr_expect_eq(decode_label(bytes, writer.size), -EBADMSG);
	bytes[12] = 3;
	bytes[0] = 3; /* the second path is missing: that is a label too */
	cr_expect_eq(decode_label(bytes, writer.size), 0);
	bytes[0] = 2; /* its first path ends too early */
	cr_expect_eq(decode_label(bytes, writer.size), -EBADMSG);
	bytes[0] = 4;
	bytes[3] = 0; /* of a host that knows no ways */
	cr_expect_eq(decode_label(bytes, writer.size), -EBADMSG);
	bytes[3] = 0x80;
	bytes[12 + 36] = '\n'; /* in a name, which goes into logs */
	cr_expect_eq(decode_label(bytes, writer.size), -EBADMSG);
	bytes[12 + 36] = 'l';
	cr_expect_eq(decode_label(bytes, writer.size), 0);
	bytes[11] = 0x80; /* an error of centuries */
	cr_expect_eq(decode_label(bytes, writer.size), -EBADMSG);
	fragi_free(writer.bytes);
	fragi_label_unref(label);
}

Test(codec, a_trail_that_stays_here_is_not_sent)
{
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived;

	fragi_message_set_trail(message, trail_of(1));
	message->trail->entries[0].flags = FRAGI_TRAIL_LOCAL;
	arrived = across(message);
	cr_expect_eq(arrived->stamps, 0);
	frag_message_unref(arrived);
}

Test(codec, a_copy_is_on_no_path)
{
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *copy;

	fragi_message_set_trail(message, trail_of(1));
	frag_message_ref(message);
	copy = frag_message_writable(message);
	cr_expect_neq(copy, message);
	cr_expect_eq(copy->stamps, 0);
	cr_expect_eq(message->stamps, FRAGI_STAMP_TRAIL);
	frag_message_unref(copy);
	frag_message_unref(message);
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

Test(codec, what_cannot_leave_is_refused)
{
	static const struct frag_type opaque = {FRAG_TYPE_INIT, .name = "opaque", .size = 8},
				      stranger = {FRAG_TYPE_INIT, .name = "stranger", .size = 8};
	struct frag_message *message = message_of(&stranger, NULL, 8);
	struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_UPDATE);
	static char memory[8];
	int64_t shape[] = {8}, x = 0;
	struct frag_dltensor device = {.data = memory,
				       .device = {FRAG_DEVICE_CUDA, 0},
				       .ndim = 1,
				       .dtype = {FRAG_DTYPE_UINT, 8, 1},
				       .shape = shape};
	struct frag_tensor *tensor;
	const struct fragi_blob *blob = NULL;

	cr_assert_eq(frag_type_register(&opaque, NULL), 0);
	cr_expect_eq(fragi_message_encode(message, &blob), -EPROTOTYPE);
	frag_message_set_value(message, &opaque, &x, 8, NULL);
	cr_expect_eq(fragi_message_encode(message, &blob), -EPROTOTYPE);
	frag_message_set_value(message, frag_type_find("opaque[]"), &x, 8, NULL);
	cr_expect_eq(fragi_message_encode(message, &blob), -EPROTOTYPE);
	frag_message_set_value(message, &frag_type_i64, &x, 8, NULL);
	frag_metadata_set(metadata, "k", &opaque, &x, 8);
	fragi_message_set_metadata(message, metadata);
	cr_expect_eq(fragi_message_encode(message, &blob), -EPROTOTYPE);
	fragi_message_set_metadata(message, NULL);
	cr_assert_eq(frag_tensor_wrap(&device, NULL, NULL, &tensor), 0);
	frag_message_add_tensor(message, "gpu", tensor);
	cr_expect_eq(fragi_message_encode(message, &blob), -ENOTSUP);
	cr_expect_null(blob);
	frag_message_unref(message);
}

Test(codec, descriptors_are_bounded)
{
	struct frag_message *message = message_of(&frag_type_bytes, NULL, FRAGI_DESCRIPTOR_MAX);
	struct frag_message *arrived = NULL;
	const struct fragi_blob *blob = NULL;
	char byte;

	cr_expect_eq(fragi_message_encode(message, &blob), -EMSGSIZE);
	frag_message_unref(message);
	cr_expect_eq(
		fragi_message_decode(&byte, (size_t)FRAGI_DESCRIPTOR_MAX + 1, 0, &arrived, NULL),
		-EMSGSIZE);
}

Test(codec, encoding_survives_every_failed_allocation)
{
	struct frag_message *message = rich_message(), *arrived = NULL;
	const struct fragi_blob *blob = NULL;
	int64_t failed = 1;
	int r;

	for (int64_t n = 0; failed > 0; n++) {
		fragi_alloc_fail_after(n, 1);
		r = fragi_message_encode(message, &blob);
		failed = fragi_alloc_fail_off();
		cr_assert_eq(r, failed > 0 ? -ENOMEM : 0);
	}
	failed = 1;
	for (int64_t n = 0; failed > 0; n++) {
		fragi_alloc_fail_after(n, 1);
		r = fragi_message_decode(blob->bytes, blob->size, 1 << 20, &arrived, NULL);
		failed = fragi_alloc_fail_off();
		cr_assert_eq(r, failed > 0 ? -ENOMEM : 0, "%s", frag_strerror(r));
	}
	frag_message_unref(arrived);
	frag_message_unref(message);
	cr_expect_eq(blobs, 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

/* Decodes bytes from a buffer of exactly their size, so that a sanitizer sees a read beyond it. */
static int decode_exactly(const uint8_t *bytes, size_t size, uint64_t limit)
{
	uint8_t *exact = malloc(size > 0 ? size : 1);
	struct frag_message *arrived = NULL;
	int r;

	memcpy(exact, bytes, size);
	r = fragi_message_decode(exact, size, limit, &arrived, NULL);
	cr_assert_eq(arrived != NULL, r == 0);
	frag_message_unref(arrived);
	free(exact);
	return r;
}

Test(codec, every_truncation_is_refused)
{
	struct frag_message *message = rich_message();
	const struct fragi_blob *blob = NULL;
	uint8_t *more;

	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	for (size_t size = 0; size < blob->size; size++)
		cr_assert_eq(decode_exactly(blob->bytes, size, 1 << 20), -EBADMSG, "%zu", size);
	more = calloc(1, blob->size + 1);
	memcpy(more, blob->bytes, blob->size);
	cr_expect_eq(decode_exactly(more, blob->size + 1, 1 << 20), -EBADMSG);
	cr_expect_eq(decode_exactly(blob->bytes, blob->size, 31), -EMSGSIZE);
	cr_expect_eq(decode_exactly(blob->bytes, blob->size, 32), 0);
	free(more);
	frag_message_unref(message);
	cr_expect_eq(blobs, 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

Test(codec, any_changed_bytes_are_survived)
{
	struct frag_message *message = rich_message();
	const struct fragi_blob *blob = NULL;
	uint64_t x = 88172645463325252u;
	uint8_t *bytes;
	int r, refused = 0;

	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	bytes = malloc(blob->size);
	for (int round = 0; round < 20000; round++) {
		memcpy(bytes, blob->bytes, blob->size);
		for (uint64_t n = 0; n <= x % 3; n++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			bytes[x % blob->size] =
				(uint8_t)(x >> 32 & 1 ? x >> 40 : (x >> 33 & 1) * 255);
		}
		r = decode_exactly(bytes, blob->size, 1 << 20);
		cr_assert(r == 0 || r == -EBADMSG || r == -EMSGSIZE || r == -ENOENT, "%d", r);
		refused += r < 0;
	}
	cr_expect_gt(refused, 5000);
	free(bytes);
	frag_message_unref(message);
	cr_expect_eq(blobs, 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

/* A message with only a value, written by hand. */
static size_t value_bytes(uint8_t *out, uint64_t type_id, const void *value, uint32_t size)
{
	static const uint8_t head[4] = {FRAGI_DESCRIPTOR_VERSION};

	memcpy(out, head, 4);
	memcpy(out + 4, &size, 4);
	memcpy(out + 8, &type_id, 8);
	memcpy(out + 16, value, size);
	memset(out + 16 + size, 0, 2);
	return 16 + size + 2;
}

Test(codec, values_that_are_none_are_refused)
{
	static const uint8_t two = 2, many[] = {0xFF, 0xFF, 0xFF, 0x7F, 1, 2, 3},
			     trailing[] = {0, 0, 0, 0, 9};
	struct frag_message *arrived = NULL;
	uint64_t unknown = 0;
	uint8_t bytes[128];
	size_t size;

	size = value_bytes(bytes, fragi_type_id(&frag_type_bool), &two, 1);
	cr_expect_eq(decode_exactly(bytes, size, 0), -EBADMSG, "a bool of 2");
	size = value_bytes(bytes, fragi_type_id(frag_type_find("bool[]")), &two, 1);
	cr_expect_eq(decode_exactly(bytes, size, 0), -EBADMSG);
	size = value_bytes(bytes, fragi_type_id(frag_type_find("blob[]")), many, sizeof(many));
	cr_expect_eq(decode_exactly(bytes, size, 0), -EBADMSG, "more elements than bytes");
	size = value_bytes(bytes, fragi_type_id(&blob_type), trailing, sizeof(trailing));
	cr_expect_eq(decode_exactly(bytes, size, 0), -EBADMSG, "bytes behind the value");
	size = value_bytes(bytes, fragi_type_id(frag_type_find("i16[]")), many, 7);
	cr_expect_eq(decode_exactly(bytes, size, 0), -EBADMSG, "half an element");
	size = value_bytes(bytes, 0, many, 7);
	cr_expect_eq(decode_exactly(bytes, size, 0), -EBADMSG, "a value of no type");
	size = value_bytes(bytes, 0, many, 0);
	cr_expect_eq(decode_exactly(bytes, size, 0), 0);
	size = value_bytes(bytes, 0x1234, many, 7);
	cr_expect_eq(fragi_message_decode(bytes, size, 0, &arrived, &unknown), -ENOENT);
	cr_expect_eq(unknown, 0x1234);
	cr_expect_eq(blobs, 0);
}

Test(codec, stamps_that_do_not_exist_are_refused)
{
	const uint8_t head[] = {FRAGI_DESCRIPTOR_VERSION,
				4,
				0,
				0,
				0,
				0,
				0,
				0,
				0,
				0,
				0,
				0,
				0,
				0,
				0,
				0,
				5,
				0,
				0,
				0,
				0,
				0,
				0,
				0,
				1,
				0,
				0,
				0,
				0,
				0};
	uint8_t bytes[sizeof(head)];

	memcpy(bytes, head, sizeof(head));
	cr_expect_eq(decode_exactly(bytes, sizeof(bytes), 0), 0);
	for (size_t size = 0; size < sizeof(bytes); size++)
		cr_expect_eq(decode_exactly(bytes, size, 0), -EBADMSG, "%zu bytes", size);
	bytes[24] = FRAG_CLOCK_MEDIA + 1;
	cr_expect_eq(decode_exactly(bytes, sizeof(bytes), 0), -EBADMSG, "a clock of no kind");
	memcpy(bytes, head, sizeof(head));
	for (unsigned stamps = 64; stamps < 256; stamps += 64) {
		bytes[1] = (uint8_t)(4 | stamps);
		cr_expect_eq(decode_exactly(bytes, sizeof(bytes), 0), -EBADMSG, "%u", stamps);
	}
	bytes[1] = 4;
	bytes[0] = FRAGI_DESCRIPTOR_VERSION - 1;
	cr_expect_eq(decode_exactly(bytes, sizeof(bytes), 0), -EBADMSG, "another version");
}

struct padded {
	uint8_t used;
	uint8_t unused[65535];
};

/* A byte on the wire that becomes 64 KiB in memory must not be multiplied at will. */
Test(codec, memory_for_values_is_bounded)
{
	static const struct frag_field fields[] = {FRAG_FIELD(struct padded, used, "u8")};
	static const struct frag_type padded_type = {FRAG_TYPE_INIT, .name = "padded",
						     .size = sizeof(struct padded),
						     FRAG_FIELDS(fields)};
	static uint8_t bytes[1 << 20], zeros[(1 << 20) - 18];
	size_t size;

	cr_assert_eq(frag_type_register(&padded_type, NULL), 0);
	size = value_bytes(bytes, fragi_type_id(frag_type_find("padded[]")), zeros, sizeof(zeros));
	cr_expect_eq(decode_exactly(bytes, size, 0), -EMSGSIZE);
	size = value_bytes(bytes, fragi_type_id(frag_type_find("padded[]")), zeros, 100);
	cr_expect_eq(decode_exactly(bytes, size, 0), 0);
}

/*
 * The most that can be asked for with the bytes there are, and that it takes time in proportion
 * (0.3 s; a checker may make it a hundred times slower).
 */
Test(codec, the_largest_input_takes_bounded_time)
{
	size_t size = FRAGI_DESCRIPTOR_MAX;
	uint8_t *bytes = calloc(1, size);
	uint32_t value_size = (uint32_t)(size - 18), count = (value_size - 4) / 4;
	uint64_t id = fragi_type_id(frag_type_find("bool[]"));
	struct timespec before, after;
	int64_t cpu_ns;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	bytes[0] = FRAGI_DESCRIPTOR_VERSION;
	memcpy(bytes + 4, &value_size, 4);
	memcpy(bytes + 8, &id, 8);
	cr_expect_eq(decode_exactly(bytes, size, 0), 0);
	id = fragi_type_id(frag_type_find("blob[]"));
	memcpy(bytes + 8, &id, 8);
	memcpy(bytes + 16, &count, 4);
	cr_expect_eq(decode_exactly(bytes, size, 0), -EMSGSIZE);
	count = FRAGI_DECODED_MAX / sizeof(struct blob);
	memcpy(bytes + 16, &count, 4);
	cr_expect_eq(decode_exactly(bytes, size, 0), -EBADMSG);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	cpu_ns = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
	cr_expect_lt(cpu_ns, INT64_C(60000000000), "%lld ns", (long long)cpu_ns);
	free(bytes);
	cr_expect_eq(blobs, 0);
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
