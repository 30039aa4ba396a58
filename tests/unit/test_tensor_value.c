// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <data/codec.h>
#include <data/metadata.h>

/* Tensors as values of metadata, between processes. */

/* Encodes message (taken) and decodes it. */
static struct frag_message *across(struct frag_message *message)
{
	struct frag_message *arrived = NULL;
	const struct fragi_blob *blob = NULL;

	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	cr_assert_eq(fragi_message_decode(blob->bytes, blob->size, 0, &arrived, NULL), 0);
	frag_message_unref(message);
	return arrived;
}

/* A matrix of which every second column is seen. */
static struct frag_tensor *strided_tensor(const uint16_t *matrix)
{
	int64_t shape[2] = {2, 2}, strides[2] = {4, 2};
	const struct frag_dltensor view = {
		.data = (void *)(uintptr_t)matrix,
		.device = {FRAG_DEVICE_CPU, 0},
		.ndim = 2,
		.dtype = {FRAG_DTYPE_UINT, 16, 1},
		.shape = shape,
		.strides = strides,
	};
	struct frag_tensor *tensor = NULL;

	cr_assert_eq(frag_tensor_wrap(&view, NULL, NULL, &tensor), 0);
	return tensor;
}

static struct frag_message *with_tensor(struct frag_tensor *tensor)
{
	struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_DEFAULT);
	struct frag_message *message = frag_message_create();

	cr_assert_eq(frag_metadata_set_tensor(metadata, "t", tensor), 0);
	fragi_message_set_metadata(message, metadata);
	return message;
}

Test(tensor_value, crosses_in_metadata)
{
	static const uint16_t matrix[8] = {1, 2, 3, 4, 5, 6, 7, 8}, seen[4] = {1, 3, 5, 7};
	struct frag_message *arrived = across(with_tensor(strided_tensor(matrix)));
	struct frag_tensor *tensor = NULL;
	struct frag_dltensor device = {.data = (void *)16,
				       .device = {FRAG_DEVICE_CUDA, 0},
				       .dtype = {FRAG_DTYPE_UINT, 8, 1}};
	const struct fragi_blob *blob = NULL;
	struct frag_message *message;

	cr_assert_eq(frag_metadata_get_tensor(frag_message_metadata(arrived), "t", &tensor), 0);
	cr_expect_eq(frag_tensor_dl(tensor)->ndim, 2);
	cr_expect_eq(frag_tensor_dl(tensor)->dtype.bits, 16);
	cr_expect_eq(frag_tensor_is_compact(tensor), 1);
	cr_expect_eq(memcmp(frag_tensor_data(tensor), seen, sizeof(seen)), 0);
	cr_expect_null(frag_tensor_writable(tensor));
	frag_message_unref(arrived);
	cr_assert_eq(frag_tensor_wrap(&device, NULL, NULL, &tensor), 0);
	message = with_tensor(tensor);
	cr_expect_eq(fragi_message_encode(message, &blob), -ENOTSUP);
	frag_message_unref(message);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

/* What a tensor in metadata claims to be is compared with the bytes before it gets memory. */
Test(tensor_value, hostile_bytes_are_refused)
{
	static const struct {
		uint8_t head[5];
		int64_t shape[2];
		size_t data;
	} cases[] = {
		{{2, 32, 1, 0, 1}, {4}, 15},                    /* one byte too few */
		{{2, 32, 1, 0, 1}, {4}, 17},                    /* and one too many */
		{{2, 32, 1, 0, 1}, {1 << 28}, 16},              /* more than there is */
		{{2, 32, 1, 0, 2}, {INT64_MAX, INT64_MAX}, 16}, /* more than can be */
		{{2, 32, 1, 0, 1}, {-1}, 16},                   /* less than none */
		{{2, 33, 1, 0, 1}, {4}, 16},                    /* no type */
		{{9, 32, 1, 0, 1}, {4}, 16},
		{{2, 32, 0, 0, 1}, {4}, 16},
		{{2, 32, 1, 0, 255}, {4}, 16}, /* dimensions */
		{{2, 32, 1, 0, 2}, {4}, 0},
	};
	const struct fragi_type_info *info = fragi_type_info(&frag_type_tensor);
	uint8_t wire[64] = {0};
	struct frag_tensor *tensor = NULL;
	size_t dims, size;

	/* A good one first: what it takes comes from pools from now on. */
	memcpy(wire, cases[0].head, 5);
	memcpy(wire + 5, cases[0].shape, sizeof(int64_t));
	cr_assert_eq(fragi_value_decode(info, wire, 13 + 16, &tensor, sizeof(tensor)), 0);
	frag_tensor_unref(tensor);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		dims = cases[i].head[4] == 2 && cases[i].data > 0 ? 2 : 1;
		memcpy(wire, cases[i].head, 5);
		memcpy(wire + 5, cases[i].shape, dims * sizeof(int64_t));
		size = 5 + dims * sizeof(int64_t) + cases[i].data;
		tensor = NULL;
		fragi_alloc_fail_after(0, INT64_MAX);
		cr_expect_eq(fragi_value_decode(info, wire, size, &tensor, sizeof(tensor)),
			     -EBADMSG, "case %zu", i);
		cr_expect_eq(fragi_alloc_fail_off(), 0, "case %zu allocated", i);
		frag_tensor_unref(tensor);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}
