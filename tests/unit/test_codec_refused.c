// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/alloc.h>

#include "codec_messages.h"

TestSuite(codec, .init = register_types);

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

/* A two cannot travel. */
static int picky_encode(const void *value, struct frag_writer *writer)
{
	int64_t x;

	memcpy(&x, value, sizeof(x));
	return x == 2 ? -EIO : frag_writer_put_u64(writer, (uint64_t)x);
}

static int picky_decode(void *value, struct frag_reader *reader)
{
	return frag_reader_get(reader, value, sizeof(int64_t));
}

Test(codec, the_error_of_a_codec_is_that_of_the_message)
{
	static const struct frag_type picky = {FRAG_TYPE_INIT,          .name = "picky",
					       .size = sizeof(int64_t), .align = _Alignof(int64_t),
					       .encode = picky_encode,  .decode = picky_decode};
	static const struct {
		const char *type;
		int64_t values[3];
		size_t count;
		int r;
	} cases[] = {
		{"picky", {1}, 1, 0},
		{"picky", {2}, 1, -EIO},
		{"picky[]", {1, 3, 5}, 3, 0},
		{"picky[]", {2, 1, 3}, 3, -EIO},
		{"picky[]", {1, 3, 2}, 3, -EIO},
	};

	cr_assert_eq(frag_type_register(&picky, NULL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct frag_type *type = frag_type_find(cases[i].type);
		const size_t size = cases[i].count * sizeof(int64_t);
		struct frag_message *message = message_of(type, cases[i].values, size);
		struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_UPDATE);
		const struct fragi_blob *blob = NULL;

		cr_expect_eq(fragi_message_encode(message, &blob), cases[i].r, "%zu", i);
		frag_message_unref(message);
		message = message_of(&frag_type_i64, cases[0].values, sizeof(int64_t));
		cr_assert_eq(frag_metadata_set(metadata, "k", type, cases[i].values, size), 0);
		fragi_message_set_metadata(message, metadata);
		cr_expect_eq(fragi_message_encode(message, &blob), cases[i].r, "%zu", i);
		frag_message_unref(message);
	}
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

/* As many tensors and keys as there may be. No pool has room for those that arrive. */
Test(codec, full_messages_cross)
{
	struct frag_message *message = frag_message_create(), *arrived = NULL;
	struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_UPDATE);
	const struct fragi_blob *blob = NULL;
	int64_t failed = 1, value = -1;
	int r;

	for (int i = 0; i < FRAG_MESSAGE_TENSORS_MAX; i++) {
		struct frag_tensor *tensor;
		char name[16];

		snprintf(name, sizeof(name), "t%d", i);
		cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 0,
						NULL, &tensor),
			     0);
		cr_assert_eq(frag_message_add_tensor(message, name, tensor), 0);
	}
	for (int64_t i = 0; i < FRAG_METADATA_KEYS_MAX; i++) {
		char key[16];

		snprintf(key, sizeof(key), "k%d", (int)i);
		cr_assert_eq(frag_metadata_set_i64(metadata, key, i), 0);
	}
	fragi_message_set_metadata(message, metadata);
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	for (int64_t n = 0; failed > 0; n++) {
		fragi_alloc_fail_after(n, 1);
		r = fragi_message_decode(blob->bytes, blob->size, 1 << 20, &arrived, NULL);
		failed = fragi_alloc_fail_off();
		cr_assert_eq(r, failed > 0 ? -ENOMEM : 0, "%s", frag_strerror(r));
	}
	cr_expect_eq(frag_message_tensor_count(arrived), FRAG_MESSAGE_TENSORS_MAX);
	cr_expect_not_null(frag_message_tensor(arrived, "t63"));
	cr_expect_eq(frag_metadata_get_i64(frag_message_metadata(arrived), "k1023", &value), 0);
	cr_expect_eq(value, 1023);
	frag_message_unref(arrived);
	frag_message_unref(message);
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

/* Also where the value and the metadata of a message share it. */
Test(codec, memory_for_all_values_of_a_message_is_bounded)
{
	static const struct frag_field fields[] = {FRAG_FIELD(struct padded, used, "u8")};
	static const struct frag_type padded_type = {FRAG_TYPE_INIT, .name = "padded",
						     .size = sizeof(struct padded),
						     FRAG_FIELDS(fields)};
	const uint32_t half = FRAGI_DECODED_MAX / sizeof(struct padded) / 2;
	static uint8_t bytes[8192], zeros[4096];
	uint64_t type_id;

	cr_assert_eq(frag_type_register(&padded_type, NULL), 0);
	type_id = fragi_type_id(frag_type_find("padded[]"));
	for (uint32_t more = 0; more < 2; more++) {
		const uint8_t one_key[] = {1, 0, 1, 'k'};
		const uint32_t count = half + more;
		size_t size = value_bytes(bytes, type_id, zeros, half) - 2;

		memcpy(bytes + size, one_key, sizeof(one_key));
		memcpy(bytes + size + 4, &type_id, 8);
		memcpy(bytes + size + 12, &count, 4);
		memset(bytes + size + 16, 0, count);
		cr_expect_eq(decode_exactly(bytes, size + 16 + count, 0), more > 0 ? -EMSGSIZE : 0,
			     "%u more", more);
	}
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
