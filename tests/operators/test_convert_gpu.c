// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <frag/harness.h>

#include "cuda/convert_cases.h"
#include "cuda/load.h"
#include "vision/convert_gpu.h"
#include "vision/vision.h"
#include "open_gpu.h"

/*
 * format_converter on a GPU, over the driver of tests, which runs the code of the kernels on the
 * CPU. make gpu-check compares the same cases on a real GPU.
 */
#define CPU ((struct frag_device){FRAG_DEVICE_CPU, 0})
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})

TestSuite(ops_convert_gpu, .init = open_gpu);

static void skip_without_kernels(void)
{
	if (!vision_convert_gpu_is_built())
		cr_skip_test("this build has no kernels for GPUs");
}

/* A frame of one u8 value in memory of the GPU. */
static struct frag_tensor *frame_on_gpu(int64_t rows, int64_t columns, uint8_t value)
{
	const int64_t shape[] = {rows, columns, 3};
	struct frag_tensor *host, *there;

	cr_assert_eq(frag_tensor_create(NULL, U8, 3, shape, &host), 0);
	memset(frag_tensor_writable(host), value, frag_tensor_size_bytes(host));
	cr_assert_eq(frag_tensor_copy(host, NULL, GPU, &there, NULL), 0);
	frag_tensor_unref(host);
	return there;
}

static struct frag_harness *make(const struct frag_arg *args)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create(&vision_format_converter_type, args, &err);

	cr_assert_not_null(h, "%s", err.text);
	return h;
}

GPU_TEST(ops_convert_gpu, results_are_those_of_the_cpu)
{
	char why[512];

	skip_without_kernels();
	for (uint64_t seed = 0; seed < 400; seed++)
		cr_expect(convert_case(seed, why, sizeof(why)), "%s", why);
	cr_expect_eq(fake.used(), 0);
	cr_expect_gt(fake.calls("cuLaunchKernel"), 300);
}

/* The kernel reads the frame, and the tables, when the GPU gets to it. */
GPU_TEST(ops_convert_gpu, a_tick_ends_when_the_frame_is_converted)
{
	struct frag_harness *h;
	struct frag_message *m;
	struct frag_tensor *back;

	skip_without_kernels();
	h = make(FRAG_ARGS({"out_dtype", "float32"}, {"scale_max", "510"}, {"resize_width", "2"},
			   {"resize_height", "2"}, {"out_layout", "chw"}));
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(frag_harness_give_tensor(h, "source_video", "",
						      frame_on_gpu(4 + i, 4, (uint8_t)(i + 1))),
			     0);
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		cr_assert_eq(frag_harness_take(h, "tensor", &m), 0);
		cr_assert_eq(frag_tensor_copy(frag_message_tensor(m, ""), NULL, CPU, &back, NULL),
			     0);
		cr_expect_eq(frag_tensor_dl(back)->shape[0], 3);
		for (int k = 0; k < 12; k++)
			cr_expect_float_eq(((const float *)frag_tensor_data(back))[k],
					   2.0 * (i + 1), 1e-6);
		frag_tensor_unref(back);
		frag_message_unref(m);
	}
	/* one format, one kernel */
	cr_expect_eq(fake.calls("cuModuleLoadData"), 1);
	frag_harness_destroy(h);
	cr_expect_eq(fake.calls("cuModuleUnload"), 1);
	cr_expect_eq(fake.used(), 0);
}

/* With a pool on the GPU, the operator has a stream, and no tick waits. */
GPU_TEST(ops_convert_gpu, a_message_travels_before_its_frame_is_converted)
{
	const struct frag_harness_resource pools[] = {
		{"pool", "block_memory_pool",
		 FRAG_ARGS({"storage_type", "1"}, {"block_size", "1K"}, {"num_blocks", "2"})},
		{NULL, NULL, NULL}};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h;
	struct frag_message *m;
	struct frag_tensor *back, *frame;

	skip_without_kernels();
	h = frag_harness_create_with(
		&vision_format_converter_type,
		FRAG_ARGS({"out_dtype", "float32"}, {"scale_max", "255"}, {"pool", "$pool"}), pools,
		&err);
	cr_assert_not_null(h, "%s", err.text);
	/* the first frame loads the kernel and the tables */
	cr_assert_eq(frag_harness_give_tensor(h, "source_video", "", frame_on_gpu(4, 4, 1)), 0);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, "tensor", &m), 0);
	frag_message_unref(m);
	frame = frame_on_gpu(4, 4, 9);
	fake.hold(true);
	cr_assert_eq(frag_harness_give_tensor(h, "source_video", "", frame), 0);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	fake.hold(false);
	cr_assert_eq(frag_harness_take(h, "tensor", &m), 0);
	cr_assert_eq(frag_tensor_copy(frag_message_tensor(m, ""), NULL, CPU, &back, NULL), 0);
	for (int k = 0; k < 48; k++)
		cr_expect_float_eq(((const float *)frag_tensor_data(back))[k], 9.0, 1e-6);
	frag_tensor_unref(back);
	frag_message_unref(m);
	frag_harness_destroy(h);
	cr_expect_eq(fake.used(), 0);
}

GPU_TEST(ops_convert_gpu, what_the_driver_refuses_has_a_sentence)
{
	static const struct {
		const char *call, *sentence;
		int nth;
		bool pads;
	} cases[] = {
		{"cuModuleLoadData", "cuModuleLoadData for kernel convert_u8_3_0: CUDA_ERROR_FAKE",
		 1},
		{"cuModuleGetFunction", "cuModuleGetFunction of convert_u8_3_0", 1},
		{"cuLaunchKernel", "cuLaunchKernel of convert_u8_3_0", 1},
		/* the first is that of the tables */
		{"cuStreamSynchronize", "cuStreamSynchronize after convert_u8_3_0", 2},
		{"cuMemAlloc_v2", "cannot make a tensor of 192 bytes for GPU 0", 1},
		{"cuMemcpyAsync", "cuMemcpyAsync", 1},
		{"cuModuleLoadData", "cuModuleLoadData for kernel convert_rgb_f32_line: ", 1,
		 .pads = true},
		{"cuModuleLoadData", "cuModuleLoadData for kernel convert_beside: ", 2,
		 .pads = true},
		{"cuLaunchKernel", "cuLaunchKernel of convert_beside", 1, .pads = true},
	};

	skip_without_kernels();
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_harness *h = make(
			cases[i].pads ? FRAG_ARGS({"out_dtype", "float32"}, {"resize_width", "2"},
						  {"resize_height", "3"}, {"resize_mode", "2"},
						  {"pad", "true"})
				      : FRAG_ARGS({"out_dtype", "float32"}));
		struct frag_message *m;

		cr_assert_eq(frag_harness_give_tensor(h, "source_video", "", frame_on_gpu(4, 4, 1)),
			     0);
		fake.fail(cases[i].call, cases[i].nth, 719);
		cr_expect_lt(frag_harness_tick(h), 0, "%s", cases[i].call);
		cr_expect(strstr(frag_harness_error(h), cases[i].sentence), "%s",
			  frag_harness_error(h));
		cr_expect_eq(frag_harness_take(h, "tensor", &m), -ENOMSG);
		/* and the next frame is converted */
		cr_assert_eq(frag_harness_give_tensor(h, "source_video", "", frame_on_gpu(4, 4, 1)),
			     0);
		cr_expect_eq(frag_harness_tick(h), 0, "%s: %s", cases[i].call,
			     frag_harness_error(h));
		frag_harness_destroy(h);
		cr_expect_eq(fake.used(), 0, "%s: %zu", cases[i].call, fake.used());
	}
}

/* With a pool on the GPU, the first frame finds its kernel there. */
GPU_TEST(ops_convert_gpu, the_kernel_is_loaded_before_the_first_frame)
{
	const struct frag_harness_resource pools[] = {
		{"pool", "block_memory_pool",
		 FRAG_ARGS({"storage_type", "1"}, {"block_size", "1K"}, {"num_blocks", "2"})},
		{NULL, NULL, NULL}};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h;

	skip_without_kernels();
	h = frag_harness_create_with(&vision_format_converter_type,
				     FRAG_ARGS({"out_dtype", "float32"}, {"pool", "$pool"},
					       {"resize_width", "2"}, {"resize_height", "3"}),
				     pools, &err);
	cr_assert_not_null(h, "%s", err.text);
	cr_expect_eq(fake.calls("cuModuleLoadData"), 1);
	cr_assert_eq(frag_harness_give_tensor(h, "source_video", "", frame_on_gpu(4, 4, 1)), 0);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_expect_eq(fake.calls("cuModuleLoadData"), 1);
	frag_harness_destroy(h);
	/* that of what is beside the picture too: 4 x 4 in 2 x 3 leaves a row */
	h = frag_harness_create_with(&vision_format_converter_type,
				     FRAG_ARGS({"out_dtype", "float32"}, {"pool", "$pool"},
					       {"resize_width", "2"}, {"resize_height", "3"},
					       {"resize_mode", "2"}, {"pad", "true"}),
				     pools, &err);
	cr_assert_not_null(h, "%s", err.text);
	cr_expect_eq(fake.calls("cuModuleLoadData"), 3);
	cr_assert_eq(frag_harness_give_tensor(h, "source_video", "", frame_on_gpu(4, 4, 1)), 0);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_expect_eq(fake.calls("cuModuleLoadData"), 3);
	frag_harness_destroy(h);
	fake.fail("cuModuleLoadData", 1, 222);
	cr_expect_null(frag_harness_create_with(
		&vision_format_converter_type,
		FRAG_ARGS({"out_dtype", "float32"}, {"pool", "$pool"}), pools, &err));
	cr_expect(strstr(err.text, "no kernel for GPU 0: "), "%s", err.text);
}

GPU_TEST(ops_convert_gpu, frames_that_cannot_be_converted_have_a_sentence)
{
	const struct frag_harness_resource pools[] = {
		{"pool", "block_memory_pool",
		 FRAG_ARGS({"storage_type", "2"}, {"block_size", "1K"}, {"num_blocks", "2"})},
		{NULL, NULL, NULL}};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h;

	skip_without_kernels();
	h = frag_harness_create_with(&vision_format_converter_type,
				     FRAG_ARGS({"out_dtype", "float32"}, {"pool", "$pool"}), pools,
				     &err);
	cr_assert_not_null(h, "%s", err.text);
	cr_assert_eq(frag_harness_give_tensor(h, "source_video", "", frame_on_gpu(4, 4, 1)), 0);
	cr_expect_eq(frag_harness_tick(h), -EXDEV);
	cr_expect(strstr(frag_harness_error(h),
			 "its input came in memory of GPU 0, and its allocator"),
		  "%s", frag_harness_error(h));
	frag_harness_destroy(h);
	cr_expect_eq(fake.used(), 0);
}
