// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <frag/harness.h>

#include "cuda/load.h"
#include "cuda/twin_cases.h"
#include "inference/inference.h"
#include "vision/kernels.h"
#include "vision/vision.h"
#include "open_gpu.h"

/*
 * Operators with a body for GPUs beside that for the CPU, over the driver of tests, which runs the
 * code of the kernels on the CPU. make gpu-check compares the same cases on a real GPU.
 */
#define CASES 60

static void open_gpu_with_kernels(void)
{
	if (vision_ptx == NULL)
		cr_skip_test("this build has no kernels for GPUs");
	open_gpu();
}

TestSuite(ops_twins, .init = open_gpu_with_kernels);

GPU_TEST(ops_twins, results_are_those_of_the_cpu)
{
	char why[1024];

	for (const struct twin_cases *c = twin_cases; c->name != NULL; c++)
		for (uint64_t seed = 0; seed < CASES; seed++)
			cr_expect(c->run(seed, why, sizeof(why)), "%s", why);
	cr_expect_gt(fake.calls("cuLaunchKernel"), CASES);
}

/* Lets the GPU go on when the tick asks to be resumed. *context: how often it was waited for */
static void *let_go_on(void *context)
{
	const int before = fake.calls("cuStreamSynchronize");

	for (int i = 0; i < 10000 && fake.calls("cuLaunchHostFunc") == 0; i++)
		usleep(1000);
	*(int *)context = fake.calls("cuStreamSynchronize") - before;
	fake.hold(false);
	return NULL;
}

static struct frag_tensor *floats_on(int32_t gpu, int32_t ndim, const int64_t *shape,
				     const float *values)
{
	struct frag_tensor *host, *there;

	cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, ndim,
					shape, &host),
		     0);
	memcpy(frag_tensor_writable(host), values, frag_tensor_size_bytes(host));
	cr_assert_eq(frag_tensor_copy(host, NULL, (struct frag_device){FRAG_DEVICE_CUDA, gpu},
				      &there, NULL),
		     0);
	frag_tensor_unref(host);
	return there;
}

static struct frag_tensor *floats_on_gpu(int32_t ndim, const int64_t *shape, const float *values)
{
	return floats_on(0, ndim, shape, values);
}

/* Boxes are needed on the host, so the tick goes on when the GPU has found them. */
GPU_TEST(ops_twins, detections_are_waited_for_by_no_thread)
{
	const struct frag_harness_resource streams[] = {{"streams", "cuda_stream_pool", NULL},
							{NULL, NULL, NULL}};
	const float boxes[] = {0.1f, 0.1f, 0.4f, 0.4f, 0.5f, 0.5f, 0.9f, 0.9f};
	struct frag_message *m = frag_message_create();
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h;
	int waits = 1;
	pthread_t thread;

	h = frag_harness_create_with(&inference_detection_postprocessor_type,
				     FRAG_ARGS({"cuda_stream_pool", "$streams"}), streams, &err);
	cr_assert_not_null(h, "%s", err.text);
	cr_assert_eq(frag_message_add_tensor(m, "boxes",
					     floats_on_gpu(2, (const int64_t[]){2, 4}, boxes)),
		     0);
	cr_assert_eq(frag_message_add_tensor(
			     m, "scores",
			     floats_on_gpu(1, (const int64_t[]){2}, (const float[]){0.7f, 0.9f})),
		     0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	fake.hold(true);
	cr_assert_eq(pthread_create(&thread, NULL, let_go_on, &waits), 0);
	cr_expect_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	pthread_join(thread, NULL);
	cr_expect_eq(waits, 0, "it waited %d times", waits);
	cr_assert_eq(frag_harness_take(h, "out", &m), 0);
	cr_expect_eq(frag_tensor_dl(frag_message_tensor(m, "boxes"))->shape[0], 2);
	cr_expect_float_eq(((const float *)frag_tensor_data(frag_message_tensor(m, "scores")))[0],
			   0.9f, 1e-6);
	frag_message_unref(m);
	frag_harness_destroy(h);
}

/* What the driver refuses fails the tick with a sentence, and the next tick is well. */
GPU_TEST(ops_twins, what_the_driver_refuses_has_a_sentence)
{
	static const char *const calls[] = {"cuModuleLoadData", "cuModuleGetFunction",
					    "cuLaunchKernel",   "cuMemAlloc_v2",
					    "cuMemHostAlloc",   "cuStreamSynchronize"};
	const float boxes[] = {0.1f, 0.1f, 0.4f, 0.4f};

	for (size_t i = 0; i < FRAG_COUNT_OF(calls); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct frag_harness *h =
			frag_harness_create(&inference_detection_postprocessor_type, NULL, &err);

		cr_assert_not_null(h, "%s", err.text);
		for (int k = 0; k < 2; k++) {
			struct frag_message *m = frag_message_create();

			cr_assert_eq(frag_message_add_tensor(
					     m, "boxes",
					     floats_on_gpu(2, (const int64_t[]){1, 4}, boxes)),
				     0);
			cr_assert_eq(frag_message_add_tensor(m, "scores",
							     floats_on_gpu(1, (const int64_t[]){1},
									   (const float[]){0.7f})),
				     0);
			cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
			if (k == 0)
				fake.fail(calls[i], 1, 719);
			cr_expect_eq(frag_harness_tick(h) < 0, k == 0, "%s: %s", calls[i],
				     frag_harness_error(h));
			cr_expect(k > 0 || strstr(frag_harness_error(h), "GPU 0") != NULL, "%s: %s",
				  calls[i], frag_harness_error(h));
			cr_expect_eq(frag_harness_take(h, "out", &m), k == 0 ? -ENOMSG : 0);
			if (k > 0)
				frag_message_unref(m);
		}
		frag_harness_destroy(h);
	}
}

static int use_second_gpu(void *state, struct frag_op *op)
{
	return frag_op_use_device(op, (struct frag_device){FRAG_DEVICE_CUDA, 1});
}

TEST_OP_BY(second_opener, do_nothing, .initialize = use_second_gpu);

static void open_two_gpus(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *opener;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	open_gpu_with_kernels();
	opener = frag_harness_create(&second_opener_type, NULL, &err);
	cr_assert_not_null(opener, "%s", err.text);
	frag_harness_destroy(opener);
}

TestSuite(ops_twins_on_two_gpus, .init = open_two_gpus);

/*
 * Without a stream an operator follows its input to another GPU; a stream stays where it is, on the
 * GPU of its pool.
 */
Test(ops_twins_on_two_gpus, an_operator_with_a_stream_stays_on_its_gpu)
{
	const struct frag_arg *const of_gpu[] = {NULL, FRAG_ARGS({"dev_id", "0"}),
						 FRAG_ARGS({"dev_id", "1"})};
	static const char *const words[] = {
		"", "came in memory of GPU 1, and the operator works on GPU 0;",
		"came in memory of GPU 0, and the operator works on GPU 1;"};
	const float boxes[] = {0.1f, 0.1f, 0.4f, 0.4f}, score = 0.7f;

	for (int with = 0; with < 3; with++) {
		const struct frag_harness_resource streams[] = {
			{"streams", "cuda_stream_pool", of_gpu[with]}, {NULL, NULL, NULL}};
		struct frag_err err = FRAG_ERR_INIT;
		struct frag_harness *h = frag_harness_create_with(
			&inference_detection_postprocessor_type,
			with ? FRAG_ARGS({"cuda_stream_pool", "$streams"}) : NULL,
			with ? streams : NULL, &err);

		cr_assert_not_null(h, "%s", err.text);
		for (int i = 0; i < 2; i++) {
			const int32_t gpu = with == 2 ? 1 - i : i;
			const bool refused = with && i == 1;
			struct frag_message *m = frag_message_create();

			cr_assert_eq(frag_message_add_tensor(
					     m, "boxes",
					     floats_on(gpu, 2, (const int64_t[]){1, 4}, boxes)),
				     0);
			cr_assert_eq(frag_message_add_tensor(
					     m, "scores",
					     floats_on(gpu, 1, (const int64_t[]){1}, &score)),
				     0);
			cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
			cr_expect_eq(frag_harness_tick(h), refused ? -EXDEV : 0, "%s",
				     frag_harness_error(h));
			cr_expect(!refused || strstr(frag_harness_error(h), words[with]) != NULL,
				  "%s", frag_harness_error(h));
			cr_assert_eq(frag_harness_take(h, "out", &m), refused ? -ENOMSG : 0);
			if (refused)
				continue;
			cr_expect_eq(frag_tensor_dl(frag_message_tensor(m, "boxes"))->shape[0], 1);
			frag_message_unref(m);
		}
		frag_harness_destroy(h);
		cr_expect_eq(fake.used(), 0);
	}
}

/* What kernels work in is large enough for each message: for more boxes than the one before had. */
GPU_TEST(ops_twins, messages_may_have_more_boxes_than_those_before)
{
	static const int64_t counts[] = {1, 64, 2, 90, 64};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h =
		frag_harness_create(&inference_detection_postprocessor_type, NULL, &err);

	cr_assert_not_null(h, "%s", err.text);
	for (size_t i = 0; i < FRAG_COUNT_OF(counts); i++) {
		struct frag_message *m = frag_message_create();
		float boxes[100][4], scores[100];
		const float *found;

		for (int64_t k = 0; k < counts[i]; k++) {
			const float left = (float)(k % 10) / 10, top = (float)(k / 10) / 10;

			memcpy(boxes[k], (const float[]){top, left, top + 0.05f, left + 0.05f},
			       sizeof(boxes[k]));
			scores[k] = 0.9f - (float)k / 1000;
		}
		cr_assert_eq(frag_message_add_tensor(
				     m, "boxes",
				     floats_on_gpu(2, (const int64_t[]){counts[i], 4}, boxes[0])),
			     0);
		cr_assert_eq(frag_message_add_tensor(
				     m, "scores",
				     floats_on_gpu(1, (const int64_t[]){counts[i]}, scores)),
			     0);
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		cr_assert_eq(frag_harness_tick(h), 0, "%d boxes: %s", (int)counts[i],
			     frag_harness_error(h));
		cr_assert_eq(frag_harness_take(h, "out", &m), 0);
		cr_assert_eq(frag_tensor_dl(frag_message_tensor(m, "boxes"))->shape[0], counts[i]);
		found = frag_tensor_data(frag_message_tensor(m, "boxes"));
		for (int64_t k = 0; k < counts[i]; k++)
			cr_expect(found[4 * k] == boxes[k][1] && found[4 * k + 1] == boxes[k][0],
				  "box %d of %d", (int)k, (int)counts[i]);
		frag_message_unref(m);
	}
	frag_harness_destroy(h);
}

/* The CPU cannot read boxes that lie on a GPU; with pictures there, it need not. */
GPU_TEST(ops_twins, boxes_on_a_gpu_need_pictures_there)
{
	const float box[] = {0.0f, 0.0f, 1.0f, 1.0f}, number = 1.0f;
	const int64_t shape[] = {1, 1, 1, 1};

	for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct frag_harness *h =
			frag_harness_create(&inference_segmentation_postprocessor_type,
					    FRAG_ARGS({"rows", "2"}, {"columns", "2"},
						      {"network_output_type", "sigmoid"}),
					    &err);
		struct frag_tensor *picture;
		struct frag_message *m;

		cr_assert_not_null(h, "%s", err.text);
		cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1},
						4, shape, &picture),
			     0);
		*(float *)frag_tensor_writable(picture) = number;
		if (on_gpu) {
			frag_tensor_unref(picture);
			picture = floats_on_gpu(4, shape, &number);
		}
		cr_assert_eq(frag_harness_give_tensor(h, "in_tensor", "", picture), 0);
		cr_assert_eq(
			frag_harness_give_tensor(h, "boxes", "boxes",
						 floats_on_gpu(2, (const int64_t[]){1, 4}, box)),
			0);
		cr_expect_eq(frag_harness_tick(h), on_gpu ? 0 : -EINVAL, "%s",
			     frag_harness_error(h));
		cr_expect(on_gpu || strstr(frag_harness_error(h), "the boxes lie on GPU 0") != NULL,
			  "%s", frag_harness_error(h));
		if (frag_harness_take(h, "out_tensor", &m) == 0) {
			struct frag_tensor *back;

			cr_assert_eq(frag_tensor_copy(frag_message_tensor(m, "out_tensor"), NULL,
						      (struct frag_device){FRAG_DEVICE_CPU, 0},
						      &back, NULL),
				     0);
			cr_expect_eq(memcmp(frag_tensor_data(back), "\1\1\1\1", 4), 0);
			frag_tensor_unref(back);
			frag_message_unref(m);
		}
		frag_harness_destroy(h);
	}
}

/* A frame of one u8 value with 3 channels, on the GPU or the host. */
static struct frag_tensor *gray_frame(bool on_gpu)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_tensor *host, *there;

	cr_assert_eq(frag_tensor_create(NULL, u8, 3, (const int64_t[]){20, 30, 3}, &host), 0);
	memset(frag_tensor_writable(host), 100, frag_tensor_size_bytes(host));
	if (!on_gpu)
		return host;
	cr_assert_eq(frag_tensor_copy(host, NULL, GPU, &there, NULL), 0);
	frag_tensor_unref(host);
	return there;
}

/* The pools of draw: 0: none; 1: of the host; 2: of the GPU. */
static struct frag_harness *make_draw(int pool, const char *layers)
{
	const struct frag_harness_resource pools[] = {
		{"pool", "block_memory_pool",
		 FRAG_ARGS({"storage_type", pool == 2 ? "1" : "2"}, {"block_size", "100000"},
			   {"num_blocks", "4"})},
		{NULL, NULL, NULL}};
	const struct frag_arg with[] = {{"tensors", layers}, {"pool", "$pool"}, {NULL, NULL}};
	const struct frag_arg without[] = {{"tensors", layers}, {NULL, NULL}};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create_with(
		&vision_draw_type, pool > 0 ? with : without, pool > 0 ? pools : NULL, &err);

	cr_assert_not_null(h, "%s", err.text);
	return h;
}

/* What is drawn lies where the pool is, and without a pool where the frames are. */
GPU_TEST(ops_twins, pictures_are_drawn_where_the_pool_is)
{
	static const struct {
		int pool;
		bool frame_on_gpu, picture_on_gpu;
	} cases[] = {{0, false, false},
		     {0, true, true},
		     {1, true, false},
		     {1, false, false},
		     {2, true, true}};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_harness *h = make_draw(cases[i].pool, "[]");
		const int launches = fake.calls("cuLaunchKernel");
		struct frag_message *m;
		struct frag_tensor *back;

		for (int n = 0; n < 20; n++) { /* more than there is pinned memory for */
			cr_assert_eq(frag_harness_give_tensor(h, "receivers", "",
							      gray_frame(cases[i].frame_on_gpu)),
				     0);
			cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
			cr_assert_eq(frag_harness_take(h, "out", &m), 0);
			cr_expect_eq(frag_tensor_dl(frag_message_tensor(m, ""))->device.type,
				     cases[i].picture_on_gpu ? FRAG_DEVICE_CUDA : FRAG_DEVICE_CPU);
			cr_assert_eq(frag_tensor_copy(frag_message_tensor(m, ""), NULL,
						      (struct frag_device){FRAG_DEVICE_CPU, 0},
						      &back, NULL),
				     0);
			cr_expect_eq(((const uint8_t *)frag_tensor_data(back))[20 * 30 * 3 - 1],
				     100);
			frag_tensor_unref(back);
			frag_message_unref(m);
		}
		cr_expect_eq(fake.calls("cuLaunchKernel") - launches,
			     cases[i].picture_on_gpu ? 60 : 0);
		frag_harness_destroy(h);
	}
}

/* Without a pool a GPU draws what lies there alone. */
GPU_TEST(ops_twins, frames_of_both_places_are_drawn_by_the_cpu)
{
	static const struct {
		bool on_gpu[2];
	} rows[] = {{{true, true}}, {{true, false}}, {{false, true}}, {{false, false}}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_harness *h = make_draw(0, "[]");
		struct frag_message *m = frag_message_create();
		const bool is_there = rows[i].on_gpu[0] && rows[i].on_gpu[1];
		struct frag_tensor *back;

		for (int k = 0; k < 2; k++)
			cr_assert_eq(frag_message_add_tensor(m, k == 0 ? "" : "second",
							     gray_frame(rows[i].on_gpu[k])),
				     0);
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		cr_assert_eq(frag_harness_tick(h), 0, "row %zu: %s", i, frag_harness_error(h));
		cr_assert_eq(frag_harness_take(h, "out", &m), 0);
		cr_expect_eq(frag_tensor_dl(frag_message_tensor(m, ""))->device.type,
			     is_there ? FRAG_DEVICE_CUDA : FRAG_DEVICE_CPU, "row %zu", i);
		cr_assert_eq(frag_tensor_copy(frag_message_tensor(m, ""), NULL,
					      (struct frag_device){FRAG_DEVICE_CPU, 0}, &back,
					      NULL),
			     0);
		cr_expect_eq(((const uint8_t *)frag_tensor_data(back))[20 * 30 * 3 - 1], 100,
			     "row %zu", i);
		frag_tensor_unref(back);
		frag_message_unref(m);
		frag_harness_destroy(h);
	}
}

/* What a kernel writes into pinned memory is waited for; nothing else is on the host. */
GPU_TEST(ops_twins, pinned_memory_is_read_after_the_stream)
{
	static const struct {
		bool is_pinned[2];
		int waits;
	} rows[] = {{{false, false}, 0}, {{true, false}, 1}, {{false, true}, 1}, {{true, true}, 1}};
	const struct frag_dtype f32 = {FRAG_DTYPE_FLOAT, 32, 1};
	const struct frag_device devices[] = {{FRAG_DEVICE_CPU, 0}, {FRAG_DEVICE_CUDA_HOST, 0}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_harness *h = make_draw(
			2,
			"[{name: '', type: color}, {name: a, type: points}, {name: b, type: points}]");
		struct frag_message *m = frag_message_create();
		int before;

		cr_assert_eq(frag_message_add_tensor(m, "", gray_frame(true)), 0);
		for (int k = 0; k < 2; k++) {
			struct frag_tensor *points;

			cr_assert_eq(frag_tensor_create_on(NULL, devices[rows[i].is_pinned[k]], f32,
							   2, (const int64_t[]){1, 2}, &points),
				     0);
			memset(frag_tensor_writable(points), 0, frag_tensor_size_bytes(points));
			cr_assert_eq(frag_message_add_tensor(m, k == 0 ? "a" : "b", points), 0);
		}
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		before = fake.calls("cuStreamSynchronize");
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		cr_expect_eq(fake.calls("cuStreamSynchronize") - before, rows[i].waits, "row %zu",
			     i);
		frag_harness_destroy(h);
	}
}

GPU_TEST(ops_twins, what_a_gpu_does_not_draw_has_a_sentence)
{
	enum { LINES = 2000 };
	static const char *const layers =
		"[{name: '', type: color}, {name: lines, type: lines, color: [1, 1, 1]}]";
	const int64_t shape[] = {LINES, 4};
	struct frag_harness *h = make_draw(2, "[]");
	struct frag_tensor *lines;

	cr_assert_eq(frag_harness_give_tensor(h, "receivers", "", gray_frame(false)), 0);
	cr_expect_eq(frag_harness_tick(h), -EINVAL);
	cr_expect_not_null(strstr(frag_harness_error(h), "not all frames lie on one"), "%s",
			   frag_harness_error(h));
	frag_harness_destroy(h);

	/* each has a part for each of 30 columns */
	for (int pool = 1; pool <= 2; pool++) {
		struct frag_message *m = frag_message_create();

		cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1},
						2, shape, &lines),
			     0);
		for (int i = 0; i < LINES; i++)
			memcpy((float *)frag_tensor_writable(lines) + i * 4,
			       (const float[]){0.0f, 0.2f, 1.0f, 0.9f}, 4 * sizeof(float));
		cr_assert_eq(frag_message_add_tensor(m, "", gray_frame(true)), 0);
		cr_assert_eq(frag_message_add_tensor(m, "lines", lines), 0);
		h = make_draw(pool, layers);
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		cr_expect_eq(frag_harness_tick(h), pool == 1 ? 0 : -E2BIG);
		cr_expect(pool == 1 ||
				  strstr(frag_harness_error(h), "more than 16384 parts") != NULL,
			  "%s", frag_harness_error(h));
		frag_harness_destroy(h);
	}
}
