/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_CODEC_MESSAGES_H
#define TESTS_UNIT_CODEC_MESSAGES_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <data/codec.h>
#include <data/metadata.h>

#include "shapes.h"

/* Messages that cross as bytes, and a type that owns memory. */

/* A type that owns memory: u32 length, then as many bytes. */
struct blob {
	uint32_t length;
	char *bytes;
};
static int blobs; /* with memory */

static inline int blob_encode(const void *value, struct frag_writer *writer)
{
	const struct blob *blob = value;

	frag_writer_put_u32(writer, blob->length);
	return frag_writer_put(writer, blob->bytes, blob->length);
}

static inline int blob_decode(void *value, struct frag_reader *reader)
{
	struct blob *blob = value;

	if (frag_reader_get_u32(reader, &blob->length) < 0 ||
	    blob->length > frag_reader_left(reader))
		return -EBADMSG;
	blob->bytes = malloc(blob->length + 1);
	blobs++;
	return frag_reader_get(reader, blob->bytes, blob->length);
}

static inline void blob_fini(void *value)
{
	struct blob *blob = value;

	blobs -= blob->bytes != NULL;
	free(blob->bytes);
}

static const struct frag_type blob_type = {
	FRAG_TYPE_INIT,        .name = "blob",        .size = sizeof(struct blob),
	.encode = blob_encode, .decode = blob_decode, .fini = blob_fini,
};

static inline struct blob blob_of(const char *text)
{
	struct blob blob = {(uint32_t)strlen(text), strdup(text)};

	blobs++;
	return blob;
}

static inline void register_types(void)
{
	cr_assert_eq(frag_type_register(&point_type, NULL), 0);
	cr_assert_eq(frag_type_register(&box_type, NULL), 0);
	cr_assert_eq(frag_type_register(&blob_type, NULL), 0);
}

static inline struct frag_message *message_of(const struct frag_type *type, const void *value,
					      size_t size)
{
	struct frag_message *message = frag_message_create();

	cr_assert_eq(frag_message_set_value(message, type, value, size, NULL), 0);
	return message;
}

/* Encodes message (taken) and decodes it. */
static inline struct frag_message *across(struct frag_message *message)
{
	struct frag_message *arrived = NULL;
	const struct fragi_blob *blob = NULL;

	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	cr_assert_eq(fragi_message_decode(blob->bytes, blob->size, 1 << 20, &arrived, NULL), 0);
	frag_message_unref(message);
	return arrived;
}

/* A message with everything: a value, two tensors, metadata. */
static inline struct frag_message *rich_message(void)
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

#endif
