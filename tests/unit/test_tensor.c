// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <base/alloc.h>
#include <data/tensor.h>

static const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1}, f32 = {FRAG_DTYPE_FLOAT, 32, 1};

Test(tensor, compact_and_aligned)
{
	struct frag_tensor *tensor = NULL;
	int64_t shape[] = {480, 640, 3};
	const struct frag_dltensor *dl;

	cr_assert_eq(frag_tensor_create(NULL, f32, 3, shape, &tensor), 0);
	dl = frag_tensor_dl(tensor);
	cr_expect_eq(dl->device.type, FRAG_DEVICE_CPU);
	cr_expect_eq(dl->ndim, 3);
	cr_expect_eq(dl->shape[1], 640);
	cr_expect_eq(dl->strides[0], 1920);
	cr_expect_eq(dl->strides[2], 1);
	cr_expect_eq((uintptr_t)dl->data % 64, 0);
	cr_expect_eq(frag_tensor_size_bytes(tensor), 480 * 640 * 3 * 4);
	cr_expect_eq(frag_tensor_is_compact(tensor), 1);
	cr_expect_eq(frag_tensor_data(tensor), dl->data);
	memset(frag_tensor_writable(tensor), 1, frag_tensor_size_bytes(tensor));
	frag_tensor_unref(tensor);
	frag_tensor_unref(NULL);
}

Test(tensor, scalars_and_empty_ones)
{
	struct frag_tensor *tensor = NULL;
	int64_t shape[] = {INT64_MAX, 0, INT64_MAX};
	size_t size = 1;

	cr_assert_eq(frag_tensor_create(NULL, f32, 0, NULL, &tensor), 0);
	cr_expect_eq(frag_tensor_size_bytes(tensor), 4);
	frag_tensor_unref(tensor);
	cr_assert_eq(frag_tensor_create(NULL, f32, 3, shape, &tensor), 0);
	cr_expect_eq(frag_tensor_size_bytes(tensor), 0);
	cr_expect_eq(frag_tensor_is_compact(tensor), 1);
	cr_expect_null(fragi_tensor_body(tensor, &size));
	cr_expect_eq(size, 0);
	frag_tensor_unref(tensor);
}

Test(tensor, what_cannot_be_is_refused)
{
	struct frag_tensor *tensor = NULL;
	int64_t shape[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, negative[] = {-1},
		huge[] = {INT64_MAX, INT64_MAX}, large[] = {INT64_MAX};
	static const struct frag_dtype bad[] = {
		{FRAG_DTYPE_UINT, 7, 1},
		{FRAG_DTYPE_UINT, 4, 1},
		{FRAG_DTYPE_UINT, 128, 1},
		{FRAG_DTYPE_FLOAT, 8, 1},
		{FRAG_DTYPE_BOOL, 1, 1},
		{FRAG_DTYPE_COMPLEX, 32, 1},
		{3, 64, 1},
		{200, 8, 1},
		{FRAG_DTYPE_UINT, 8, 0},
		{FRAG_DTYPE_UINT, 8, 4},
	};

	cr_expect_eq(frag_tensor_create(NULL, u8, 9, shape, &tensor), -EINVAL);
	cr_expect_eq(frag_tensor_create(NULL, u8, -1, shape, &tensor), -EINVAL);
	cr_expect_eq(frag_tensor_create(NULL, u8, 1, NULL, &tensor), -EINVAL);
	cr_expect_eq(frag_tensor_create(NULL, u8, 1, negative, &tensor), -EINVAL);
	cr_expect_eq(frag_tensor_create(NULL, u8, 2, huge, &tensor), -EOVERFLOW);
	cr_expect_eq(frag_tensor_create(NULL, f32, 1, large, &tensor), -EOVERFLOW);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(frag_tensor_create(NULL, bad[i], 1, shape, &tensor), -EINVAL, "%zu",
			     i);
	fragi_alloc_fail_after(0, INT64_MAX);
	cr_expect_eq(frag_tensor_create(NULL, u8, 1, shape, &tensor), -ENOMEM);
	fragi_alloc_fail_off();
	cr_expect_null(tensor);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

static int released;

static void count_release(void *context)
{
	released += *(int *)context;
}

Test(tensor, wrapped_memory_is_released_once)
{
	static float data[24];
	int64_t shape[] = {2, 3}, strides[] = {8, 2};
	struct frag_dltensor dl = {.data = data,
				   .device = {FRAG_DEVICE_CPU, 0},
				   .ndim = 2,
				   .dtype = {FRAG_DTYPE_FLOAT, 32, 1},
				   .shape = shape,
				   .strides = strides,
				   .byte_offset = 4};
	struct frag_tensor *tensor = NULL;
	int one = 1;

	cr_assert_eq(frag_tensor_wrap(&dl, count_release, &one, &tensor), 0);
	memset(shape, 0, sizeof(shape)); /* copied */
	cr_expect_eq(frag_tensor_dl(tensor)->shape[1], 3);
	cr_expect_eq(frag_tensor_data(tensor), &data[1]);
	cr_expect_eq(frag_tensor_size_bytes(tensor), (8 + 4 + 1) * 4);
	cr_expect_eq(frag_tensor_is_compact(tensor), 0);
	cr_expect_eq(frag_tensor_ref(tensor), tensor);
	cr_expect_null(frag_tensor_writable(tensor));
	frag_tensor_unref(tensor);
	cr_expect_eq(released, 0);
	cr_expect_not_null(frag_tensor_writable(tensor));
	frag_tensor_unref(tensor);
	cr_expect_eq(released, 1);
}

Test(tensor, wrapping_checks_the_description)
{
	static uint8_t data[24];
	int64_t shape[] = {2, 3}, strides[] = {-3, 1}, wide[] = {INT64_MAX, 1};
	struct frag_dltensor good = {.data = data,
				     .device = {FRAG_DEVICE_CPU, 0},
				     .ndim = 2,
				     .dtype = {FRAG_DTYPE_UINT, 8, 1},
				     .shape = shape},
			     bad;
	struct frag_tensor *tensor = NULL;
	int one = 1;

	bad = good;
	bad.strides = strides;
	cr_expect_eq(frag_tensor_wrap(&bad, count_release, &one, &tensor), -EINVAL);
	bad.strides = wide;
	cr_expect_eq(frag_tensor_wrap(&bad, count_release, &one, &tensor), -EINVAL);
	bad = good;
	bad.data = NULL;
	cr_expect_eq(frag_tensor_wrap(&bad, count_release, &one, &tensor), -EINVAL);
	bad = good;
	bad.device.type = 99;
	cr_expect_eq(frag_tensor_wrap(&bad, count_release, &one, &tensor), -EINVAL);
	bad = good;
	bad.byte_offset = UINT64_MAX;
	cr_expect_eq(frag_tensor_wrap(&bad, count_release, &one, &tensor), -EINVAL);
	cr_expect_eq(released, 0);
	cr_assert_eq(frag_tensor_wrap(&good, NULL, NULL, &tensor), 0);
	cr_expect_eq(frag_tensor_dl(tensor)->strides[0], 3);
	cr_expect_eq(frag_tensor_is_compact(tensor), 1);
	frag_tensor_unref(tensor);
}

Test(tensor, the_body_of_a_strided_one_is_compact)
{
	uint16_t data[4 * 10], *body;
	int64_t shape[] = {4, 2, 3}, strides[] = {10, 5, 1}, transposed[] = {1, 10, 5};
	struct frag_dltensor dl = {.data = data,
				   .device = {FRAG_DEVICE_CPU, 0},
				   .ndim = 3,
				   .dtype = {FRAG_DTYPE_UINT, 16, 1},
				   .shape = shape,
				   .strides = strides};
	struct frag_tensor *tensor = NULL;
	size_t size = 0;

	for (uint16_t i = 0; i < 40; i++)
		data[i] = i;
	cr_assert_eq(frag_tensor_wrap(&dl, NULL, NULL, &tensor), 0);
	fragi_alloc_fail_after(0, 1);
	cr_expect_null(fragi_tensor_body(tensor, &size));
	fragi_alloc_fail_off();
	body = fragi_tensor_body(tensor, &size);
	cr_assert_eq(size, 4 * 2 * 3 * 2);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 2; j++)
			for (int k = 0; k < 3; k++)
				cr_expect_eq(body[(i * 2 + j) * 3 + k], i * 10 + j * 5 + k);
	cr_expect_eq(fragi_tensor_body(tensor, &size), body);
	frag_tensor_unref(tensor);

	dl.strides = transposed;
	cr_assert_eq(frag_tensor_wrap(&dl, NULL, NULL, &tensor), 0);
	body = fragi_tensor_body(tensor, &size);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 2; j++)
			for (int k = 0; k < 3; k++)
				cr_expect_eq(body[(i * 2 + j) * 3 + k], i + j * 10 + k * 5);
	frag_tensor_unref(tensor);
}

/* All dimensions that a tensor may have, each with a gap of its own. */
Test(tensor, every_dimension_of_a_strided_one_is_followed)
{
	enum { N = FRAG_TENSOR_NDIM_MAX };
	int64_t shape[N], strides[N], at;
	uint16_t data[6561], *body;
	struct frag_dltensor dl = {.data = data,
				   .device = {FRAG_DEVICE_CPU, 0},
				   .dtype = {FRAG_DTYPE_UINT, 16, 1},
				   .shape = shape,
				   .strides = strides};
	struct frag_tensor *tensor = NULL;
	size_t size = 0;

	_Static_assert(N == 8, "3 to the power of 8 elements");
	for (size_t i = 0; i < FRAG_COUNT_OF(data); i++)
		data[i] = (uint16_t)i;
	for (int32_t ndim = 1; ndim <= N; ndim++) {
		dl.ndim = ndim;
		for (int32_t i = ndim - 1, stride = 1; i >= 0; i--, stride *= 3) {
			shape[i] = 2; /* of 3, so that each dimension leaves a gap */
			strides[i] = stride;
		}
		cr_assert_eq(frag_tensor_wrap(&dl, NULL, NULL, &tensor), 0);
		body = fragi_tensor_body(tensor, &size);
		cr_assert_eq(size, sizeof(*body) << ndim);
		for (int32_t i = 0; i < 1 << ndim; i++) {
			at = 0;
			for (int32_t k = 0; k < ndim; k++)
				at += ((i >> (ndim - 1 - k)) & 1) * strides[k];
			cr_expect_eq(body[i], at, "%d dimensions, element %d", ndim, i);
		}
		frag_tensor_unref(tensor);
	}
}
