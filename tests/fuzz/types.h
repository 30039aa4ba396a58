/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_TYPES_H
#define TESTS_FUZZ_TYPES_H

#include "fuzz.h"

#include <errno.h>

#include <frag/type.h>

/* The types that the targets' values have: one of each kind. */
struct fuzz_point {
	float x, y;
};
struct fuzz_box {
	struct fuzz_point corners[2];
	bool filled;
	int32_t label;
};
struct fuzz_blob {
	uint32_t length;
	char *bytes; /* owned */
};

static int fuzz_blob_encode(const void *value, struct frag_writer *writer)
{
	const struct fuzz_blob *blob = value;

	frag_writer_put_u32(writer, blob->length);
	return frag_writer_put(writer, blob->bytes, blob->length);
}

static int fuzz_blob_decode(void *value, struct frag_reader *reader)
{
	struct fuzz_blob *blob = value;
	uint32_t length;

	if (frag_reader_get_u32(reader, &length) < 0 || length > frag_reader_left(reader))
		return -EBADMSG;
	blob->bytes = malloc(length + 1);
	if (blob->bytes == NULL)
		return -ENOMEM;
	blob->length = length;
	return frag_reader_get(reader, blob->bytes, length);
}

static void fuzz_blob_fini(void *value)
{
	free(((struct fuzz_blob *)value)->bytes);
}

static const struct frag_field fuzz_point_fields[] = {
	FRAG_FIELD(struct fuzz_point, x, "f32"),
	FRAG_FIELD(struct fuzz_point, y, "f32"),
};
static const struct frag_type fuzz_point_type = {FRAG_TYPE_INIT, .name = "point",
						 .size = sizeof(struct fuzz_point),
						 FRAG_FIELDS(fuzz_point_fields)};
static const struct frag_field fuzz_box_fields[] = {
	FRAG_FIELD_ARRAY(struct fuzz_box, corners, "point", 2),
	FRAG_FIELD(struct fuzz_box, filled, "bool"),
	FRAG_FIELD(struct fuzz_box, label, "i32"),
};
static const struct frag_type fuzz_box_type = {FRAG_TYPE_INIT, .name = "box",
					       .size = sizeof(struct fuzz_box),
					       FRAG_FIELDS(fuzz_box_fields)};
static const struct frag_type fuzz_blob_type = {
	FRAG_TYPE_INIT,
	.name = "blob",
	.size = sizeof(struct fuzz_blob),
	.encode = fuzz_blob_encode,
	.decode = fuzz_blob_decode,
	.fini = fuzz_blob_fini,
};
static const struct frag_type fuzz_opaque_type = {FRAG_TYPE_INIT, .name = "opaque", .size = 16};

#define FUZZ_TYPES 30
static inline const struct frag_type *fuzz_type(uint8_t which)
{
	static const char *const names[FUZZ_TYPES] = {
		"bool",     "i8",        "i16",       "i32",          "i64",      "u8",
		"u16",      "u32",       "u64",       "f32",          "f64",      "string",
		"bytes",    "bool[]",    "f64[]",     "point",        "box[]",    "blob",
		"blob[]",   "opaque",    "complex64", "complex128[]", "string[]", "f64[][]",
		"string{}", "box[][]{}", "bool[]{}",  "bytes[][]",    "tensor",   "tensor[]"};
	static bool registered;

	if (!registered) {
		fuzz_check(frag_type_register(&fuzz_point_type, NULL) == 0);
		fuzz_check(frag_type_register(&fuzz_box_type, NULL) == 0);
		fuzz_check(frag_type_register(&fuzz_blob_type, NULL) == 0);
		fuzz_check(frag_type_register(&fuzz_opaque_type, NULL) == 0);
		registered = true;
	}
	return frag_type_find(names[which % FUZZ_TYPES]);
}

#endif
