// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <data/codec.h>
#include <data/staging.h>
#include <frag/resource.h>
#include <type/cuda.h>

#include "cuda/load.h"

/*
 * What tensors of GPUs pass through on their way to another host, over the driver of tests. A
 * device pointer that the CPU touched would end the test.
 */

static struct fragi_stream *arrivals;

#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})
#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)

static void load_driver(void)
{
	setenv("FAKE_CUDA_MEMORY", "1073741824", 1);
	load_fake();
}

TestSuite(staging, .init = load_driver);

static void use_gpu(void)
{
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_cuda_use(GPU, &ops, &err), 0, "%s", err.text);
}

/* On the GPU, each byte of it `value`. */
static struct frag_tensor *on_gpu(int64_t bytes, int value)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *host, *there;

	cr_assert_eq(frag_tensor_create(NULL, U8, 1, &bytes, &host), 0);
	memset(frag_tensor_writable(host), value, (size_t)bytes);
	cr_assert_eq(frag_tensor_copy(host, NULL, GPU, &there, &err), 0, "%s", err.text);
	frag_tensor_unref(host);
	return there;
}

static void expect_bytes(const void *memory, int64_t bytes, int value)
{
	const unsigned char *at = memory;

	cr_assert_not_null(at);
	for (int64_t i = 0; i < bytes; i++)
		cr_assert_eq(at[i], value, "byte %lld is %d", (long long)i, at[i]);
}

static void expect_sent(struct frag_tensor *tensor, int64_t bytes, int value)
{
	size_t size;

	expect_bytes(fragi_tensor_body(tensor, &size), bytes, value);
	cr_expect_eq(size, (size_t)bytes);
}

GPU_TEST(staging, nothing_is_pinned_before_a_tensor_leaves)
{
	use_gpu();
	cr_expect_eq(fake.calls("cuMemHostRegister_v2"), 0);
	cr_expect_eq(fake.used(), 0);
}

GPU_TEST(staging, pinned_memory_is_taken_once_and_used_again)
{
	use_gpu();
	for (int i = 0; i < 20; i++) {
		struct frag_tensor *tensor = on_gpu(MIB, i);

		expect_sent(tensor, MIB, i);
		expect_sent(tensor, MIB, i);
		frag_tensor_unref(tensor);
	}
	cr_expect_eq(fake.calls("cuMemHostRegister_v2"), 1);
	cr_expect_eq(fake.calls("cuMemHostAlloc"), 0);
	cr_expect_eq(fake.used(), FRAGI_STAGING_STEP);
	fragi_staging_trim();
	cr_expect_eq(fake.calls("cuMemHostUnregister"), 1);
	cr_expect_eq(fake.used(), 0);
	/* It can be taken anew. */
	struct frag_tensor *tensor = on_gpu(KIB, 7);

	expect_sent(tensor, KIB, 7);
	fragi_staging_trim();
	cr_expect_eq(fake.used(), FRAGI_STAGING_STEP + (size_t)KIB, "a piece is in use");
	frag_tensor_unref(tensor);
	fragi_staging_trim();
	cr_expect_eq(fake.used(), 0);
}

/* Without pinned memory the tensor leaves all the same; nothing waits. */
GPU_TEST(staging, pinned_memory_is_bounded)
{
	void *pieces[3];
	struct frag_tensor *tensor;

	use_gpu();
	for (int i = 0; i < 3; i++)
		cr_assert_eq(frag_alloc(fragi_staging(), 100 * MIB, &pieces[i]), 0);
	cr_expect_leq(fake.used(), FRAGI_STAGING_MAX);
	memset(pieces[2], 1, 100 * MIB);
	tensor = on_gpu(60 * MIB, 3);
	expect_sent(tensor, 60 * MIB, 3);
	cr_expect_leq(fake.used(), FRAGI_STAGING_MAX + 60 * MIB, "that of the device, and no more");
	frag_tensor_unref(tensor);
	for (int i = 0; i < 3; i++)
		frag_free(fragi_staging(), pieces[i]);
	fragi_staging_trim();
	cr_expect_eq(fake.used(), 0);
}

/* The driver's own memory is pinned too. */
GPU_TEST(staging, where_pages_cannot_be_pinned_the_driver_gives_its_own)
{
	struct frag_tensor *tensor;

	use_gpu();
	fake.fail("cuMemHostRegister_v2", 1, 801);
	tensor = on_gpu(MIB, 5);
	expect_sent(tensor, MIB, 5);
	frag_tensor_unref(tensor);
	cr_expect_eq(fake.calls("cuMemHostAlloc"), 1);
	cr_expect_eq(fake.used(), FRAGI_STAGING_STEP);
	fragi_staging_trim();
	cr_expect_eq(fake.calls("cuMemFreeHost"), 1);
	cr_expect_eq(fake.used(), 0);
}

/* After a fork, the pages that the device knows stay those of this process. */
GPU_TEST(staging, a_child_does_not_get_pinned_pages)
{
	void *memory;
	unsigned char resident;
	pid_t child;
	int status;

	use_gpu();
	cr_assert_eq(frag_alloc(fragi_staging(), 4 * MIB, &memory), 0);
	child = fork();
	if (child == 0)
		_exit(mincore(memory, 1, &resident) == 0 || errno != ENOMEM);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	frag_free(fragi_staging(), memory);
	fragi_staging_trim();
}

GPU_TEST(staging, what_cannot_be_prepared_is_left_to_the_first_tensor)
{
	struct frag_tensor *tensor;

	use_gpu();
	fake.fail("cuMemHostRegister_v2", 1, 2);
	fake.fail("cuMemHostAlloc", 1, 2);
	fragi_staging_prepare(false);
	cr_expect_eq(fake.used(), 0);
	tensor = on_gpu(MIB, 5);
	expect_sent(tensor, MIB, 5);
	frag_tensor_unref(tensor);
	fragi_staging_trim();
}

GPU_TEST(staging, a_tensor_leaves_where_nothing_can_be_pinned)
{
	struct frag_tensor *tensor;

	use_gpu();
	fake.fail("cuMemHostRegister_v2", 1, 2);
	fake.fail("cuMemHostAlloc", 1, 2);
	tensor = on_gpu(MIB, 5);
	expect_sent(tensor, MIB, 5);
	frag_tensor_unref(tensor);
	cr_expect_eq(fake.used(), 0);
}

GPU_TEST(staging, a_copy_that_fails_is_no_body)
{
	static const char *const failing[] = {"cuMemcpyAsync", "cuStreamSynchronize"};
	struct frag_tensor *tensor;
	size_t size;

	use_gpu();
	for (size_t i = 0; i < FRAG_COUNT_OF(failing); i++) {
		tensor = on_gpu(MIB, 5);
		fake.fail(failing[i], 1, 700);
		cr_expect_null(fragi_tensor_body(tensor, &size), "%s", failing[i]);
		/* It is tried again. */
		expect_sent(tensor, MIB, 5);
		frag_tensor_unref(tensor);
	}
	fragi_staging_trim();
	cr_expect_eq(fake.used(), 0);
}

static struct frag_message *received(int64_t bytes, int value)
{
	struct frag_tensor *tensor = on_gpu(bytes, value);
	struct frag_message *message, *arrived;
	const struct fragi_blob *blob;
	const void *body;
	size_t size;

	message = frag_message_create();
	cr_assert_eq(frag_message_add_tensor(message, "", tensor), 0);
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	cr_assert_eq(fragi_message_decode(blob->bytes, blob->size, (uint64_t)bytes, &arrived, NULL),
		     0);
	body = fragi_tensor_body(tensor, &size);
	memcpy(fragi_tensor_body(frag_message_tensor(arrived, NULL), &size), body, (size_t)bytes);
	frag_message_unref(message);
	return arrived;
}

/* Then the first tensors take nothing from the driver: it takes some milliseconds. */
Test(staging, what_is_prepared_is_there_for_the_first_tensors)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_message *message;
	int made;

	fragi_staging_prepare(true); /* no GPU was opened */
	use_gpu();
	fragi_staging_prepare(false);
	cr_expect_eq(fake.calls("cuMemHostRegister_v2"), 1);
	cr_expect_eq(fake.calls("cuMemPoolCreate"), 0, "nothing arrives");
	fragi_staging_prepare(true);
	made = fake.calls("cuMemAllocFromPoolAsync");
	cr_expect_eq(made, 1);
	message = received(4 * MIB, 7);
	cr_assert_eq(fragi_message_to_gpu(message, &arrivals, &err), 0, "%s", err.text);
	frag_message_unref(message);
	fragi_streams_settle(arrivals);
	cr_expect_eq(fake.calls("cuMemHostRegister_v2"), 1);
	cr_expect_eq(fake.calls("cuMemPoolCreate"), 1);
	fragi_staging_trim();
	cr_expect_eq(fake.calls("cuMemHostUnregister"), 1, "nothing of it is still in use");
	fragi_streams_free(arrivals);
}

Test(staging, what_arrives_goes_through_pinned_memory_into_a_pool)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_message *message;
	struct frag_tensor *back;
	int taken = 0;

	use_gpu();
	for (int i = 0; i < 20; i++) {
		message = received(MIB, i);
		taken = fake.calls("cuMemAlloc_v2");
		cr_assert_eq(fragi_message_to_gpu(message, &arrivals, &err), 0, "%s", err.text);
		cr_expect_eq(fake.calls("cuMemAlloc_v2"), taken, "nothing waits for the device");
		cr_expect_eq(frag_tensor_dl(frag_message_tensor(message, NULL))->device.type,
			     FRAG_DEVICE_CUDA);
		cr_assert_eq(frag_tensor_copy(frag_message_tensor(message, NULL), NULL,
					      (struct frag_device){FRAG_DEVICE_CPU, 0}, &back,
					      &err),
			     0, "%s", err.text);
		expect_bytes(frag_tensor_data(back), MIB, i);
		frag_tensor_unref(back);
		taken = fake.calls("cuMemFree_v2");
		frag_message_unref(message);
		cr_expect_eq(fake.calls("cuMemFree_v2"), taken);
	}
	cr_expect_eq(fake.calls("cuMemPoolCreate"), 1);
	cr_expect_eq(fake.calls("cuMemHostRegister_v2"), 1, "both ways, and for all");
}

/* Whoever receives waits for the copy; what it reads stays until then, and no longer. */
Test(staging, what_arrives_is_announced_before_it_is_copied)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_message *message;
	struct frag_tensor *tensor;
	void *piece = NULL, *others[FRAGI_STAGING_STEP / MIB];
	size_t before;

	use_gpu();
	for (int i = 0; i < 2; i++) { /* the first one makes the pool */
		message = received(MIB, 7 + i);
		piece = (void *)(uintptr_t)frag_tensor_data(frag_message_tensor(message, NULL));
		fake.hold(i == 1);
		cr_assert_eq(fragi_message_to_gpu(message, &arrivals, &err), 0, "%s", err.text);
		tensor = frag_message_tensor(message, NULL);
		cr_assert_not_null(tensor->written);
		cr_expect((message->at_receive & FRAGI_AT_RECEIVE_WORK) != 0);
		if (i == 0) {
			cr_assert_eq(fragi_tensor_wait(tensor, &err), 0, "%s", err.text);
			fragi_streams_settle(arrivals);
			frag_message_unref(message);
		}
	}
	cr_expect_eq(tensor->written->ops->is_done(tensor->written, &err), 0);
	before = fake.used();
	for (size_t i = 0; i < FRAG_COUNT_OF(others); i++) {
		cr_assert_eq(frag_alloc(fragi_staging(), (size_t)MIB, &others[i]), 0);
		cr_expect_neq(others[i], piece, "the GPU still reads it");
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(others); i++)
		frag_free(fragi_staging(), others[i]);
	fake.hold(false);
	cr_assert_eq(fragi_tensor_wait(tensor, &err), 0, "%s", err.text);
	fragi_streams_settle(arrivals);
	fragi_staging_trim();
	cr_expect_eq(fake.used(), before - FRAGI_STAGING_STEP);
	frag_message_unref(message);
	fragi_streams_free(arrivals);
}

Test(staging, an_arrival_that_fails_says_why_and_stays_in_memory_of_the_host)
{
	static const struct {
		const char *call;
		int result, r;
	} cases[] = {
		{"cuMemPoolCreate", 2, -ENOMEM},
		{"cuMemPoolSetAttribute", 999, -EIO},
		{"cuStreamCreateWithPriority", 999, -EIO},
		{"cuMemAllocFromPoolAsync", 2, -ENOMEM},
		{"cuMemcpyAsync", 700, -EIO},
		{"cuStreamSynchronize", 700, -EIO},
		{"cuEventRecord", 700, -EIO},
	};

	use_gpu();
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_message *message = received(MIB, 9);
		struct frag_err err = FRAG_ERR_INIT;
		const struct frag_tensor *tensor = frag_message_tensor(message, NULL);

		fake.fail(cases[i].call, 1, cases[i].result);
		cr_expect_eq(fragi_message_to_gpu(message, &arrivals, &err), cases[i].r, "%s: %s",
			     cases[i].call, err.text);
		cr_expect_neq(err.text[0], '\0');
		expect_bytes(frag_tensor_data(tensor), MIB, 9);
		frag_message_unref(message);
	}
}
