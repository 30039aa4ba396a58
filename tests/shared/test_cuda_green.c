// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include <frag/frag.h>
#include <frag/harness.h>

#include "cuda/load.h"
#include "ops.h"

/* Green contexts over the driver of tests, whose GPUs have 132 SMs and divide them by 8. */

TestSuite(cuda_green, .init = load_fake);

#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})
#define BYTES 1000

static void *stream_of_tick;

struct gpu_op {
	struct frag_resource *streams;
};

static const struct frag_param params[] = {
	FRAG_PARAM_RESOURCE(struct gpu_op, streams, NULL),
};

static int use_stream(void *state, struct frag_op *op)
{
	return frag_op_use_stream(op, ((struct gpu_op *)state)->streams, GPU);
}

static int write_compute(void *state, struct frag_tick *tick)
{
	struct frag_tensor *tensor;
	int r = frag_tensor_create_on(NULL, GPU, U8, 1, (const int64_t[]){BYTES}, &tensor);

	if (r < 0)
		return r;
	stream_of_tick = frag_tick_stream(tick);
	cr_assert_eq(fake.write(stream_of_tick, (uintptr_t)frag_tensor_data(tensor), 7, BYTES), 0);
	return frag_tick_emit_tensor(tick, 0, "image", tensor);
}

static const struct frag_port out_port[] = {{.name = "out", .dir = FRAG_OUT}};
TEST_OP_BY(writer, write_compute, FRAG_PORTS(out_port), FRAG_PARAMS(params),
	   .state_size = sizeof(struct gpu_op), .initialize = use_stream);

/* Parameters of the pool of contexts, of the context, and of the pool of streams. */
struct parts {
	struct frag_arg pool[6], context[4], streams[4];
};

static struct frag_harness *make(const struct parts *parts, struct frag_err *err)
{
	static const struct frag_arg args[] = {{"streams", "$streams"}, {NULL, NULL}};
	struct frag_arg context[5] = {{"green_context_pool", "$parts"}},
			streams[5] = {{"cuda_green_context", "$part"}};
	const struct frag_harness_resource resources[] = {
		{"parts", "cuda_green_context_pool", parts->pool},
		{"part", "cuda_green_context", context},
		{"streams", "cuda_stream_pool", streams},
		{.name = NULL},
	};

	memcpy(context + 1, parts->context, sizeof(parts->context));
	memcpy(streams + 1, parts->streams, sizeof(parts->streams));
	return frag_harness_create_with(&writer_type, args, resources, err);
}

/* The SMs of the stream that an operator gets. */
static unsigned int sms_of(const struct parts *parts)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = make(parts, &err);
	const struct frag_message *message;
	struct frag_message *taken;
	struct frag_tensor *copy;
	unsigned int sms;

	cr_assert_not_null(h, "%s", err.text);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	sms = fake.sms(stream_of_tick);
	/* Events follow the work of its stream as they do elsewhere. */
	cr_assert_eq(frag_harness_take(h, "out", &taken), 0);
	message = taken;
	cr_assert_eq(frag_tensor_copy(frag_message_tensor(message, "image"), NULL,
				      (struct frag_device){FRAG_DEVICE_CPU, 0}, &copy, NULL),
		     0);
	cr_expect_eq(*(const unsigned char *)frag_tensor_data(copy), 7);
	frag_tensor_unref(copy);
	frag_message_unref(taken);
	frag_harness_destroy(h);
	/* Contexts go after their streams, or the driver of tests ends the process. */
	cr_expect_eq(fake.calls("cuGreenCtxDestroy"), fake.calls("cuGreenCtxCreate"));
	cr_expect_eq(fake.used(), 0);
	return sms;
}

static void refuse(const struct parts *parts, const char *says)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_null(make(parts, &err));
	cr_expect_not_null(strstr(err.text, says), "%s", err.text);
}

#define TWO                                                                                        \
	{                                                                                          \
		{"num_partitions", "2"}, {"sms_per_partition", "[8, 20]"},                         \
	}

GPU_TEST(cuda_green, a_stream_is_made_in_the_part_that_its_pool_names)
{
	cr_expect_eq(sms_of(&(struct parts){.pool = TWO, .context = {{"index", "0"}}}), 8);
	cr_expect_eq(sms_of(&(struct parts){.pool = TWO, .context = {{"index", "1"}}}), 24,
		     "rounded up");
	cr_expect_eq(sms_of(&(struct parts){.pool = TWO}), 24, "the last");
	cr_expect_eq(sms_of(&(struct parts){.pool = {{"num_partitions", "2"},
						     {"sms_per_partition", "[8, 20]"},
						     {"default_context_index", "0"}}}),
		     8);
}

GPU_TEST(cuda_green, without_numbers_all_parts_are_the_same)
{
	cr_expect_eq(sms_of(&(struct parts){.pool = {{"num_partitions", "2"}}}), 64);
	cr_expect_eq(sms_of(&(struct parts){.pool = {{"num_partitions", "16"}}}), 8);
	cr_expect_eq(sms_of(&(struct parts){.pool = {{"num_partitions", "0"}}}), 132);
	cr_expect_eq(sms_of(&(struct parts){.streams = {{"stream_flags", "0"}}}), 132);
}

/* The SMs of the `index`-th of `count` parts. */
static unsigned int sms_of_part(const char *count, const char *sms, const char *index)
{
	return sms_of(
		&(struct parts){.pool = {{"num_partitions", count}, {"sms_per_partition", sms}},
				.context = {{"index", index}}});
}

GPU_TEST(cuda_green, unlike_parts_are_made_of_equal_groups)
{
	cr_expect_eq(sms_of_part("2", "[16, 96]", "0"), 16);
	cr_expect_eq(sms_of_part("2", "[16, 96]", "1"), 96);
	cr_expect_eq(sms_of_part("2", "[96, 16]", "0"), 96);
	cr_expect_eq(sms_of_part("4", "[8, 24, 8, 40]", "1"), 24);
	cr_expect_eq(sms_of_part("4", "[8, 24, 8, 40]", "2"), 8);
	cr_expect_eq(sms_of_part("4", "[8, 24, 8, 40]", "3"), 40);
	/* No larger than it must be: 17 is rounded up to 24 and 101 to 104. */
	cr_expect_eq(sms_of_part("2", "[17, 101]", "0"), 24);
	cr_expect_eq(sms_of_part("2", "[17, 101]", "1"), 104);
	/* min_sm_size is of a part, whose groups may be smaller. */
	cr_expect_eq(sms_of(&(struct parts){.pool = {{"num_partitions", "2"},
						     {"sms_per_partition", "[24, 40]"},
						     {"min_sm_size", "24"}}}),
		     40);
}

/* A part may have all SMs, and parts may take the last one. */
GPU_TEST(cuda_green, parts_may_take_all_that_there_is)
{
	static const struct {
		const char *count, *sms, *index;
		unsigned int has;
	} rows[] = {{"1", "[128]", "0", 128},
		    {"1", "[121]", "0", 128},
		    {"2", "[64, 64]", "1", 64},
		    {"2", "[120, 8]", "0", 120},
		    {"2", "[8, 120]", "1", 120}};

	setenv("FAKE_CUDA_SMS", "128", 1);
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		cr_expect_eq(sms_of_part(rows[i].count, rows[i].sms, rows[i].index), rows[i].has,
			     "row %zu", i);
	refuse(&(struct parts){.pool = {{"num_partitions", "1"}, {"sms_per_partition", "[129]"}}},
	       "0 of 1 groups of 129 SMs fit");
	refuse(&(struct parts){.pool = {{"num_partitions", "2"},
					{"sms_per_partition", "[121, 1]"},
					{"min_sm_size", "1"}}},
	       "GPU 0 (Fake 0) has 128 SMs, not enough for all partitions");
}

GPU_TEST(cuda_green, parts_that_make_no_sense)
{
	refuse(&(struct parts){.pool = {{"num_partitions", "3"}, {"sms_per_partition", "[8, 8]"}}},
	       "sms_per_partition has 2 numbers and num_partitions is 3; give a number for each partition, or none");
	refuse(&(struct parts){.pool = {{"num_partitions", "2"}, {"sms_per_partition", "[8, 1]"}}},
	       "sms_per_partition[1] is 1; give 2 (min_sm_size) to 65536");
	refuse(&(struct parts){.pool = {{"num_partitions", "2"}, {"default_context_index", "2"}}},
	       "default_context_index is 2; give 0 to 1, or -1 for the last");
	refuse(&(struct parts){.pool = TWO, .context = {{"index", "2"}}},
	       "index is 2 and resource \"parts\" has 2 partitions; give 0 to 1, or -1");
	refuse(&(struct parts){.pool = {{"dev_id", "1"}}},
	       "dev_id is 0 and resource \"part\" is of GPU 1; give both the same");
	cr_expect_eq(fake.calls("cuInit"), 0, "no GPU is opened to check a graph");
}

GPU_TEST(cuda_green, parts_that_the_gpu_does_not_have)
{
	refuse(&(struct parts){.pool = {{"num_partitions", "2"},
					{"sms_per_partition", "[72, 64]"}}},
	       "GPU 0 (Fake 0) has 132 SMs, not enough for all partitions: 16 of 17 groups of 8 SMs fit");
	refuse(&(struct parts){.pool = {{"num_partitions", "3"},
					{"sms_per_partition", "[60, 60, 60]"}}},
	       "2 of 3 groups of 64 SMs fit");
	refuse(&(struct parts){.pool = {{"num_partitions", "2"},
					{"sms_per_partition", "[8, 200]"}}},
	       "0 of 1 groups of 200 SMs fit");
	refuse(&(struct parts){.pool = {{"num_partitions", "17"}}},
	       "GPU 0 (Fake 0) has 132 SMs, not enough for 17 partitions");
	refuse(&(struct parts){.pool = {{"num_partitions", "16"}, {"min_sm_count", "10"}}},
	       "each of 16 partitions of GPU 0 has 8 SMs, and min_sm_size is 10; make fewer partitions");
	cr_expect_eq(fake.calls("cuGreenCtxDestroy"), fake.calls("cuGreenCtxCreate"));
}

GPU_TEST(cuda_green, what_is_no_green_context)
{
	static const struct frag_arg args[] = {{"streams", "$streams"}, {NULL, NULL}};
	static const struct frag_arg of_other[] = {{"cuda_green_context", "$other"}, {NULL, NULL}};
	static const struct frag_arg of_none[] = {{"cuda_green_context_pool", "$other"},
						  {NULL, NULL}};
	const struct frag_harness_resource streams[] = {
		{"other", "unbounded_allocator", NULL},
		{"streams", "cuda_stream_pool", of_other},
		{.name = NULL},
	};
	const struct frag_harness_resource context[] = {
		{"other", "unbounded_allocator", NULL},
		{"streams", "cuda_green_context", of_none},
		{.name = NULL},
	};
	struct frag_err err = FRAG_ERR_INIT, other_err = FRAG_ERR_INIT;

	cr_expect_null(frag_harness_create_with(&writer_type, args, streams, &err));
	cr_expect_not_null(strstr(err.text, "resource \"other\" is no cuda_green_context"), "%s",
			   err.text);
	cr_expect_null(frag_harness_create_with(&writer_type, args, context, &other_err));
	cr_expect_not_null(
		strstr(other_err.text, "cuda_green_context_pool names no cuda_green_context_pool"),
		"%s", other_err.text);
}

GPU_TEST(cuda_green, an_old_driver_is_refused)
{
	setenv("FAKE_CUDA_VERSION", "12040", 1);
	refuse(&(struct parts){.pool = TWO},
	       "harness.parts: the driver of GPU 0 (Fake 0) has no function cuDeviceGetDevResource: green contexts need a driver of NVIDIA for CUDA 12.5 or newer");
}

GPU_TEST(cuda_green, a_machine_without_a_gpu)
{
	setenv("FAKE_CUDA_DEVICES", "0", 1);
	refuse(&(struct parts){.pool = TWO}, "it needs GPU 0");
}

GPU_TEST(cuda_green, each_call_of_the_driver_may_fail)
{
	static const char *const names[] = {"cuDeviceGetDevResource", "cuDevSmResourceSplitByCount",
					    "cuDevResourceGenerateDesc", "cuGreenCtxCreate",
					    "cuGreenCtxStreamCreate"};
	static const int calls[] = {1, 4, 2, 2, 1}; /* of each, for two unlike parts */
	int failed = 0;

	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
		for (int nth = 1; nth <= calls[i]; nth++) {
			fake.fail(names[i], nth, 999);
			failed += i == 3;
			refuse(&(struct parts){.pool = TWO}, names[i]);
			cr_expect_eq(fake.calls("cuGreenCtxDestroy"),
				     fake.calls("cuGreenCtxCreate") - failed, "%s", names[i]);
		}
}
