// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <frag/frag.h>
#include <frag/harness.h>
#include <data/message.h>
#include <res/resource.h>
#include <type/cuda.h>

#include "cuda/load.h"
#include "ops.h"

/*
 * Operators that give work to a GPU, over the driver of tests, whose streams are late: a test holds
 * a stream for as long as it likes.
 */

TestSuite(cuda_streams, .init = load_fake);

#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})
#define BYTES 1000

/* What the operators of a test use and leave. */
static struct {
	struct frag_resource *pool;           /* for tensors; NULL: none */
	struct frag_message *sent;            /* the last one, with a reference */
	void *writer, *reader;                /* their streams */
	struct frag_tensor *result, *scratch; /* what the reader's kernel writes; held for a tick */
	unsigned char byte;                   /* what the writer's kernel writes */
	unsigned char seen;                   /* by the CPU, in compute */
	int (*hold)(struct frag_tick *tick);
} now;

struct gpu_op {
	struct frag_resource *streams;
};

static const struct frag_param params[] = {
	FRAG_PARAM_RESOURCE(struct gpu_op, streams, NULL, .flags = FRAG_PARAM_OPTIONAL),
};

static int use_stream(void *state, struct frag_op *op)
{
	return frag_op_use_stream(op, ((struct gpu_op *)state)->streams, GPU);
}

static unsigned long long address(const struct frag_tensor *tensor)
{
	return (uintptr_t)frag_tensor_data(tensor);
}

static int make_tensor(struct frag_tensor **out)
{
	return frag_tensor_create_on(now.pool, GPU, U8, 1, (const int64_t[]){BYTES}, out);
}

static int write_compute(void *state, struct frag_tick *tick)
{
	struct frag_tensor *tensor;
	int r = make_tensor(&tensor);

	if (r < 0)
		return r;
	now.writer = frag_tick_stream(tick);
	cr_assert_eq(fake.write(now.writer, address(tensor), now.byte, BYTES), 0);
	frag_message_unref(now.sent);
	now.sent = frag_message_create();
	r = frag_message_add_tensor(now.sent, "image", tensor);
	return r < 0 ? r : frag_tick_emit(tick, 0, frag_message_ref(now.sent));
}

static int read_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = frag_tick_receive(tick, 0, &message);

	if (r < 0)
		return r;
	now.reader = frag_tick_stream(tick);
	cr_assert_eq(fake.copy(now.reader, address(now.result),
			       address(frag_message_tensor(message, "image")), BYTES),
		     0);
	return now.hold != NULL ? now.hold(tick) : 0;
}

/* It knows nothing of streams, and reads with the CPU. */
static int look_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = frag_tick_receive(tick, 0, &message);

	cr_expect_null(frag_tick_stream(tick));
	return r < 0 ? r : fake.peek(address(frag_message_tensor(message, "image")), &now.seen, 1);
}

static const struct frag_port out_port[] = {{.name = "out", .dir = FRAG_OUT}};
static const struct frag_port in_port[] = {{.name = "in", .dir = FRAG_IN}};

TEST_OP_BY(writer, write_compute, FRAG_PORTS(out_port), FRAG_PARAMS(params),
	   .state_size = sizeof(struct gpu_op), .initialize = use_stream);
TEST_OP_BY(reader, read_compute, FRAG_PORTS(in_port), FRAG_PARAMS(params),
	   .state_size = sizeof(struct gpu_op), .initialize = use_stream);
static int choose_nothing(void *self, struct frag_tick *tick, void *arg)
{
	return 0;
}

static int choose_flows(void *state, struct frag_op *op)
{
	return frag_set_dynamic_flows(op, choose_nothing, NULL);
}

/* The same, with more than its stream around its ticks. */
TEST_OP_BY(choosing_reader, read_compute, FRAG_PORTS(in_port), FRAG_PARAMS(params),
	   .state_size = sizeof(struct gpu_op), .setup = choose_flows, .initialize = use_stream);
TEST_OP_BY(looker, look_compute, FRAG_PORTS(in_port));

static struct frag_harness *harness(const struct frag_op_type *type)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create(type, NULL, &err);

	cr_assert_not_null(h, "%s", err.text);
	return h;
}

static void tick(struct frag_harness *h)
{
	sigset_t blocked;

	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	cr_expect(!sigismember(&blocked, SIGTERM), "signals still reach the operator's thread");
}

/* A pool of device memory, which `now.pool` is from now on. */
static void use_pool(int64_t blocks)
{
	const struct fragi_built_in_resource *type = fragi_built_in_resource("block_memory_pool");
	static const char *const names[] = {"storage_type", "block_size", "num_blocks"};
	const int64_t values[] = {1, BYTES, blocks};
	struct frag_err err = FRAG_ERR_INIT;
	unsigned char *state;

	cr_assert_eq(fragi_resource_create(&type->type, type, "pool", &now.pool), 0);
	state = fragi_resource_state(now.pool);
	for (uint32_t i = 0; i < type->type.param_count; i++)
		for (size_t k = 0; k < FRAG_COUNT_OF(names); k++)
			if (strcmp(type->type.params[i].name, names[k]) == 0)
				memcpy(state + type->type.params[i].offset, &values[k],
				       sizeof(values[k]));
	cr_assert_eq(fragi_resource_set_up(now.pool, &err), 0, "%s", err.text);
	cr_assert_eq(type->type.initialize(state, now.pool, &err), 0, "%s", err.text);
}

static void drop_pool(void)
{
	fragi_resource_unref(now.pool);
	now.pool = NULL;
}

/* The first byte of memory of the GPU, as it is now. */
static unsigned char look(const struct frag_tensor *tensor)
{
	unsigned char byte;

	cr_assert_eq(fake.peek(address(tensor), &byte, 1), 0);
	return byte;
}

static const struct frag_tensor *image(void)
{
	return frag_message_tensor(now.sent, "image");
}

static void drop_sent(void)
{
	frag_message_unref(now.sent);
	now.sent = NULL;
}

/* Hands the last message of the writer to the reader, who has the only reference then. */
static void pass(struct frag_harness *writer, struct frag_harness *reader)
{
	struct frag_message *message;

	drop_sent();
	cr_assert_eq(frag_harness_take(writer, "out", &message), 0);
	cr_assert_eq(frag_harness_give(reader, "in", message), 0);
}

/* For what another thread brings about; a test that fails waits for ten seconds. */
#define EVENTUALLY(condition)                                                                      \
	do {                                                                                       \
		for (int i_ = 0; !(condition) && i_ < 10000; i_++)                                 \
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);                   \
		cr_assert(condition);                                                              \
	} while (0)

static bool waits_for_gpu(void)
{
	return fake.calls("cuStreamSynchronize") + fake.calls("cuEventSynchronize") > 0;
}

GPU_TEST(cuda_streams, an_emit_waits_for_nothing_and_its_tensors_are_written_later)
{
	struct frag_harness *writer = harness(&writer_type);
	struct frag_tensor *copy;

	fake.hold(true);
	now.byte = 7;
	tick(writer);
	cr_expect_not(waits_for_gpu());
	cr_expect_neq(look(image()), 7);
	cr_assert_not_null(image()->written);
	cr_expect_not(fragi_work_is_over(image()->written));
	fake.hold(false);
	/* What copies a tensor waits for it. */
	cr_assert_eq(frag_tensor_copy(image(), NULL, (struct frag_device){FRAG_DEVICE_CPU, 0},
				      &copy, NULL),
		     0);
	cr_expect_eq(*(const unsigned char *)frag_tensor_data(copy), 7);
	frag_tensor_unref(copy);
	drop_sent();
	frag_harness_destroy(writer);
}

/* The writer's stream is held: that of the reader must not overtake it. */
GPU_TEST(cuda_streams, a_receive_makes_the_stream_wait_and_not_the_thread)
{
	struct frag_harness *writer = harness(&writer_type), *reader = harness(&reader_type);

	cr_assert_eq(make_tensor(&now.result), 0);
	tick(writer); /* to know its stream */
	fake.hold_stream(now.writer, true);
	now.byte = 9;
	tick(writer);
	cr_assert_eq(frag_harness_give(reader, "in", frag_message_ref(now.sent)), 0);
	tick(reader);
	cr_expect_not(waits_for_gpu());
	cr_expect_neq(now.reader, now.writer);
	fake.hold_stream(now.writer, false);
	EVENTUALLY(look(now.result) != 0xa5);
	cr_expect_eq(look(now.result), 9, "%d", look(now.result));
	drop_sent();
	frag_tensor_unref(now.result);
	frag_harness_destroy(reader);
	frag_harness_destroy(writer);
}

static void *let_go_when_awaited(void *unused)
{
	EVENTUALLY(fake.calls("cuEventSynchronize") > 0);
	fake.hold(false);
	return unused;
}

GPU_TEST(cuda_streams, an_operator_without_a_stream_gets_what_is_written)
{
	struct frag_harness *writer = harness(&writer_type), *looker = harness(&looker_type);
	pthread_t thread;

	fake.hold(true);
	now.byte = 11;
	tick(writer);
	cr_assert_eq(frag_harness_give(looker, "in", frag_message_ref(now.sent)), 0);
	cr_assert_eq(pthread_create(&thread, NULL, let_go_when_awaited, NULL), 0);
	tick(looker);
	cr_expect_eq(now.seen, 11);
	pthread_join(thread, NULL);
	drop_sent();
	frag_harness_destroy(looker);
	frag_harness_destroy(writer);
}

static _Atomic int freed;

static void count_freed(void *unused)
{
	atomic_fetch_add(&freed, 1);
}

/* The one block of the pool comes back when the reader's kernel is done, and not before. */
GPU_TEST(cuda_streams, memory_is_used_again_when_its_reader_is_done)
{
	struct frag_harness *writer, *reader;
	struct fragi_memory_watch watch = {0};

	use_pool(1);
	writer = harness(&writer_type);
	reader = harness(&reader_type);
	cr_assert_eq(frag_tensor_create_on(NULL, GPU, U8, 1, (const int64_t[]){BYTES}, &now.result),
		     0);
	fragi_memory_watch(&watch, &now.pool->allocator, (struct fragi_notify){count_freed, NULL});
	now.byte = 1;
	tick(writer);
	pass(writer, reader);
	fake.hold(true);
	tick(reader);
	cr_expect_eq(frag_resource_blocks_free(now.pool), 0);
	cr_expect_eq(frag_harness_tick(writer), -ENOMEM, "its block is still read");
	cr_expect_eq(atomic_load(&freed), 0);
	fake.hold(false);
	EVENTUALLY(atomic_load(&freed) == 1);
	cr_expect_eq(frag_resource_blocks_free(now.pool), 1);
	cr_expect_eq(look(now.result), 1, "the reader has read what was written");
	now.byte = 2;
	tick(writer);
	fragi_memory_unwatch(&watch);
	frag_tensor_unref(now.result);
	drop_sent();
	frag_harness_destroy(reader);
	frag_harness_destroy(writer);
	drop_pool();
}

/* Two readers of one message: the slower one keeps the memory. */
GPU_TEST(cuda_streams, memory_stays_for_the_slowest_reader)
{
	struct frag_harness *writer, *fast, *slow;
	void *slow_stream;

	use_pool(1);
	writer = harness(&writer_type);
	fast = harness(&reader_type);
	slow = harness(&reader_type);
	cr_assert_eq(frag_tensor_create_on(NULL, GPU, U8, 1, (const int64_t[]){BYTES}, &now.result),
		     0);
	now.byte = 3;
	tick(writer);
	cr_assert_eq(frag_harness_give(slow, "in", frag_message_ref(now.sent)), 0);
	pass(writer, fast);
	fake.hold(true);
	tick(slow);
	slow_stream = now.reader;
	tick(fast);
	fake.hold_stream(slow_stream, true);
	fake.hold(false);
	EVENTUALLY(look(now.result) == 3);
	cr_expect_eq(frag_resource_blocks_free(now.pool), 0);
	fake.hold_stream(slow_stream, false);
	EVENTUALLY(frag_resource_blocks_free(now.pool) == 1);
	frag_tensor_unref(now.result);
	frag_harness_destroy(slow);
	frag_harness_destroy(fast);
	frag_harness_destroy(writer);
	drop_pool();
}

/* Of a message that a queue drops, for example. */
GPU_TEST(cuda_streams, memory_that_nobody_takes_stays_until_it_is_written)
{
	const struct fragi_stream_ops *ops;
	struct fragi_stream *stream;
	struct frag_tensor *tensor;
	struct fragi_work *work;

	use_pool(1);
	ops = fragi_memory_of(GPU)->streams;
	cr_assert_eq(ops->open(GPU, NULL, &stream, NULL), 0);
	cr_assert_eq(make_tensor(&tensor), 0);
	fake.hold(true);
	cr_assert_eq(fake.write(stream->handle, address(tensor), 1, BYTES), 0);
	cr_assert_eq(ops->record(stream, &work, NULL), 0);
	fragi_tensor_set_written(tensor, work);
	frag_tensor_unref(tensor);
	cr_expect_eq(frag_resource_blocks_free(now.pool), 0);
	fake.hold(false);
	EVENTUALLY(frag_resource_blocks_free(now.pool) == 1);
	/* Also when the stream is closed before. */
	cr_assert_eq(make_tensor(&tensor), 0);
	fake.hold(true);
	cr_assert_eq(ops->record(stream, &work, NULL), 0);
	fragi_tensor_set_written(tensor, work);
	ops->close(stream);
	frag_tensor_unref(tensor);
	cr_expect_eq(frag_resource_blocks_free(now.pool), 0);
	fake.hold(false);
	EVENTUALLY(frag_resource_blocks_free(now.pool) == 1);
	drop_pool();
}

static int hold_scratch(struct frag_tick *t)
{
	return frag_tick_hold(t, now.scratch);
}

static void hold_a_tensor(const struct frag_op_type *type)
{
	struct frag_harness *writer, *reader;

	use_pool(2);
	writer = harness(&writer_type);
	reader = harness(type);
	cr_assert_eq(frag_tensor_create_on(NULL, GPU, U8, 1, (const int64_t[]){BYTES}, &now.result),
		     0);
	cr_assert_eq(make_tensor(&now.scratch), 0);
	now.hold = hold_scratch;
	tick(writer);
	pass(writer, reader);
	fake.hold(true);
	tick(reader);
	cr_expect_eq(frag_resource_blocks_free(now.pool), 0);
	fake.hold(false);
	EVENTUALLY(frag_resource_blocks_free(now.pool) == 2);
	now.hold = NULL;
	frag_harness_destroy(writer);
	frag_harness_destroy(reader);
	frag_tensor_unref(now.result);
	drop_pool();
}

GPU_TEST(cuda_streams, a_tensor_that_is_held_stays_until_the_work_is_done)
{
	hold_a_tensor(&reader_type);
}

GPU_TEST(cuda_streams, an_operator_that_chooses_its_flows_has_a_stream_too)
{
	hold_a_tensor(&choosing_reader_type);
}

/* Each call that a stream needs fails once: the tick says which, and nothing is lost or hangs. */
GPU_TEST(cuda_streams, each_call_of_the_driver_may_fail)
{
	static const char *const emits[] = {"cuEventCreate", "cuEventRecord"};
	static const char *const receives[] = {"cuStreamWaitEvent", "cuEventRecord"};
	struct frag_harness *writer, *reader;

	for (size_t i = 0; i < FRAG_COUNT_OF(emits); i++) {
		writer = harness(&writer_type);
		fake.fail(emits[i], 1, 700);
		cr_expect_lt(frag_harness_tick(writer), 0, "%s", emits[i]);
		cr_expect_not_null(strstr(frag_harness_error(writer), emits[i]), "%s: %s", emits[i],
				   frag_harness_error(writer));
		drop_sent();
		frag_harness_destroy(writer);
		cr_expect_eq(fake.used(), 0, "%s", emits[i]);
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(receives); i++) {
		writer = harness(&writer_type);
		reader = harness(&reader_type);
		cr_assert_eq(make_tensor(&now.result), 0);
		fake.hold(true);
		tick(writer);
		cr_assert_eq(frag_harness_give(reader, "in", frag_message_ref(now.sent)), 0);
		fake.fail(receives[i], 1, 700);
		if (strcmp(receives[i], "cuEventRecord") == 0)
			fake.hold(false); /* it then waits for the stream */
		cr_expect_eq(frag_harness_tick(reader), -EIO, "%s", receives[i]);
		cr_expect_not_null(strstr(frag_harness_error(reader), receives[i]), "%s: %s",
				   receives[i], frag_harness_error(reader));
		fake.hold(false);
		drop_sent();
		frag_harness_destroy(reader);
		frag_harness_destroy(writer);
		frag_tensor_unref(now.result);
		cr_expect_eq(fake.used(), 0, "%s", receives[i]);
	}
}

static void *let_go(void *unused)
{
	EVENTUALLY(waits_for_gpu());
	fake.hold(false);
	return unused;
}

/* Where the driver cannot report the end of work, frag waits for it, and loses nothing. */
GPU_TEST(cuda_streams, memory_is_safe_when_the_driver_reports_nothing)
{
	static const char *const failing[] = {"cuLaunchHostFunc", "cuStreamWaitEvent"};
	struct frag_harness *writer, *reader;
	pthread_t thread;

	for (size_t i = 0; i < FRAG_COUNT_OF(failing); i++) {
		use_pool(1);
		writer = harness(&writer_type);
		reader = harness(&reader_type);
		cr_assert_eq(frag_tensor_create_on(NULL, GPU, U8, 1, (const int64_t[]){BYTES},
						   &now.result),
			     0);
		now.byte = 5;
		tick(writer);
		EVENTUALLY(fragi_work_is_over(image()->written));
		pass(writer, reader);
		fake.hold(true);
		/* The work that the reader waits for is done, so this is the end of its tick. */
		fake.fail(failing[i], 1, 999);
		cr_assert_eq(pthread_create(&thread, NULL, let_go, NULL), 0);
		tick(reader);
		pthread_join(thread, NULL);
		EVENTUALLY(frag_resource_blocks_free(now.pool) == 1);
		cr_expect_eq(look(now.result), 5);
		frag_tensor_unref(now.result);
		frag_harness_destroy(reader);
		frag_harness_destroy(writer);
		drop_pool();
		cr_expect_eq(fake.used(), 0);
	}
}

/* An operator that ends waits for its stream: nothing of it is called later. */
GPU_TEST(cuda_streams, the_end_of_an_operator_waits_for_its_work)
{
	struct frag_harness *writer, *reader;
	pthread_t thread;

	use_pool(1);
	writer = harness(&writer_type);
	reader = harness(&reader_type);
	cr_assert_eq(frag_tensor_create_on(NULL, GPU, U8, 1, (const int64_t[]){BYTES}, &now.result),
		     0);
	now.byte = 4;
	tick(writer);
	pass(writer, reader);
	fake.hold(true);
	tick(reader);
	cr_assert_eq(pthread_create(&thread, NULL, let_go, NULL), 0);
	frag_harness_destroy(reader);
	cr_expect_eq(frag_resource_blocks_free(now.pool), 1);
	cr_expect_eq(look(now.result), 4);
	pthread_join(thread, NULL);
	frag_tensor_unref(now.result);
	frag_harness_destroy(writer);
	drop_pool();
}

GPU_TEST(cuda_streams, events_are_used_again)
{
	struct frag_harness *writer = harness(&writer_type), *reader = harness(&reader_type);
	int made = 0;

	cr_assert_eq(make_tensor(&now.result), 0);
	for (int i = 0; i < 50; i++) {
		if (i == 10)
			made = fake.calls("cuEventCreate");
		now.byte = (unsigned char)(i + 1);
		tick(writer);
		pass(writer, reader);
		tick(reader);
		EVENTUALLY(look(now.result) == i + 1);
	}
	/* Each of the 40 ticks needs an event of two streams; most find one that has come back. */
	cr_expect_lt(fake.calls("cuEventCreate"), made + 40, "%d", fake.calls("cuEventCreate"));
	frag_tensor_unref(now.result);
	frag_harness_destroy(reader);
	frag_harness_destroy(writer);
}

static int wait_for_buffer(void *state, struct frag_op *op)
{
	return frag_make_condition(op, NULL, "cuda_buffer", NULL) != NULL ? 0 : -EINVAL;
}

/* The end is reported by the driver; what is told of it is checked in test_cond_cuda.c. */
GPU_TEST(cuda_streams, a_tick_waits_until_its_message_is_written)
{
	struct frag_op_type type = looker_type;
	struct frag_harness *writer = harness(&writer_type), *looker;

	type.setup = wait_for_buffer;
	looker = harness(&type);
	cr_expect_eq(frag_harness_ready(looker), 0, "there is no message");
	fake.hold(true);
	now.byte = 21;
	tick(writer);
	cr_assert_eq(frag_harness_give(looker, "in", frag_message_ref(now.sent)), 0);
	cr_expect_eq(frag_harness_ready(looker), 0);
	cr_expect_eq(frag_harness_ready(looker), 0);
	cr_expect_eq(fake.calls("cuLaunchHostFunc"), 1, "its end is asked for once");
	fake.hold(false);
	EVENTUALLY(frag_harness_ready(looker) == 1);
	tick(looker);
	cr_expect_eq(now.seen, 21);
	cr_expect_not(waits_for_gpu());
	drop_sent();
	frag_harness_destroy(looker);
	frag_harness_destroy(writer);
}

static const struct frag_arg *streams_arg(void)
{
	static const struct frag_arg args[] = {{"streams", "$streams"}, {NULL, NULL}};

	return args;
}

Test(cuda_streams, the_stream_comes_from_the_pool_that_the_operator_names)
{
	static const struct frag_arg one[] = {{"max_size", "1"}, {NULL, NULL}};
	static const struct frag_arg other_gpu[] = {{"dev_id", "1"}, {NULL, NULL}};
	const struct frag_harness_resource pool[] = {{"streams", "cuda_stream_pool", one},
						     {.name = NULL}};
	const struct frag_harness_resource other[] = {{"streams", "cuda_stream_pool", other_gpu},
						      {.name = NULL}};
	const struct frag_harness_resource wrong[] = {{"streams", "unbounded_allocator", NULL},
						      {.name = NULL}};
	struct frag_err err = FRAG_ERR_INIT, wrong_err = FRAG_ERR_INIT, other_err = FRAG_ERR_INIT;
	struct frag_harness *h;
	int made;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	h = frag_harness_create_with(&writer_type, streams_arg(), pool, &err);
	cr_assert_not_null(h, "%s", err.text);
	made = fake.calls("cuStreamCreateWithPriority");
	tick(h);
	cr_expect_not_null(now.writer);
	cr_expect_eq(fake.calls("cuStreamCreateWithPriority"), made);
	drop_sent();
	frag_harness_destroy(h);
	cr_expect_null(frag_harness_create_with(&writer_type, streams_arg(), wrong, &wrong_err));
	cr_expect_not_null(strstr(wrong_err.text, "resource \"streams\" is no cuda_stream_pool"),
			   "%s", wrong_err.text);
	cr_expect_null(frag_harness_create_with(&writer_type, streams_arg(), other, &other_err));
	cr_expect_not_null(strstr(other_err.text, "set dev_id of the resource to 0"), "%s",
			   other_err.text);
}

static int twice(void *state, struct frag_op *op)
{
	int r = use_stream(state, op);

	return r < 0 ? r : use_stream(state, op);
}

static int on_the_cpu(void *state, struct frag_op *op)
{
	return frag_op_use_stream(op, NULL, (struct frag_device){FRAG_DEVICE_CPU, 0});
}

static void refuse(const struct frag_op_type *type, const char *says)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_null(frag_harness_create(type, NULL, &err));
	cr_expect_not_null(strstr(err.text, says), "%s", err.text);
}

GPU_TEST(cuda_streams, streams_that_cannot_be_had)
{
	struct frag_op_type type = reader_type;

	type.initialize = twice;
	refuse(&type, "it has a stream; call frag_op_use_stream once");
	type.initialize = on_the_cpu;
	refuse(&type, "a stream is of a GPU; give a device of type FRAG_DEVICE_CUDA");
	fake.fail("cuStreamCreateWithPriority", 2, 999);
	refuse(&reader_type, "there is no stream: GPU 0 (Fake 0): cuStreamCreateWithPriority");
}

/* What was taken of the pool before a failure is there again. */
static int after_a_failure(void *state, struct frag_op *op)
{
	fake.fail("cuStreamCreateWithPriority", 1, 999);
	cr_expect_lt(use_stream(state, op), 0);
	cr_expect_eq(use_stream(state, op), 0, "the only stream of the pool is free");
	return 0;
}

GPU_TEST(cuda_streams, a_failure_gives_the_stream_of_a_pool_back)
{
	static const struct frag_arg one[] = {{"max_size", "1"}, {NULL, NULL}};
	const struct frag_harness_resource pool[] = {{"streams", "cuda_stream_pool", one},
						     {.name = NULL}};
	struct frag_op_type type = writer_type;
	struct frag_err err = FRAG_ERR_INIT;

	type.initialize = after_a_failure;
	frag_harness_destroy(frag_harness_create_with(&type, streams_arg(), pool, &err));
	cr_expect_null(strstr(err.text, "are in use"), "%s", err.text);
}

GPU_TEST(cuda_streams, a_stream_needs_a_gpu)
{
	setenv("FAKE_CUDA_DEVICES", "0", 1);
	refuse(&reader_type, "it needs GPU 0");
}

/* Whether it is done is asked of the driver until it is, by a look or a wait, and never again. */
GPU_TEST(cuda_streams, work_that_is_done_is_not_asked_for_again)
{
	static const char *const calls[] = {"cuEventQuery", "cuEventSynchronize"};
	struct frag_harness *writer;
	struct fragi_work *work;
	int queries, waits;

	for (size_t i = 0; i < FRAG_COUNT_OF(calls); i++) {
		writer = harness(&writer_type);
		fake.hold(true);
		tick(writer);
		work = image()->written;
		cr_expect(!fragi_work_is_over(work));
		fake.hold(false);
		if (i == 0)
			EVENTUALLY(fragi_work_is_over(work));
		else
			cr_expect_eq(fragi_work_wait(work, NULL), 0);
		queries = fake.calls("cuEventQuery");
		waits = fake.calls("cuEventSynchronize");
		cr_expect(fragi_work_is_over(work));
		cr_expect_eq(fragi_work_wait(work, NULL), 0);
		cr_expect_eq(fake.calls("cuEventQuery"), queries, "after %s", calls[i]);
		cr_expect_eq(fake.calls("cuEventSynchronize"), waits, "after %s", calls[i]);
		drop_sent();
		frag_harness_destroy(writer);
	}
}

GPU_TEST(cuda_streams, the_cpu_waits_for_any_stream)
{
	const struct fragi_cuda_ops *driver;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *tensor;
	unsigned char seen = 0;
	void *stream;

	cr_assert_eq(fragi_cuda_use(GPU, &driver, &err), 0);
	cr_assert_eq(driver->stream_create(0, NULL, 0, 0, &stream, &err), 0);
	cr_assert_eq(make_tensor(&tensor), 0);
	for (unsigned char byte = 1; byte <= 2; byte++) {
		fake.write(stream, address(tensor), byte, BYTES);
		cr_assert_eq(frag_stream_wait(GPU, byte == 1 ? stream : FRAG_STREAM_DEFAULT, &err),
			     0, "%s", err.text);
		cr_assert_eq(fake.peek(address(tensor), &seen, 1), 0);
		cr_expect_eq(seen, byte);
	}
	cr_expect_eq(frag_stream_wait(GPU, &seen, &err), -EIO);
	cr_expect_str_eq(err.text, "GPU 0 (Fake 0): cuStreamSynchronize: "
				   "CUDA_ERROR_FAKE (400): an error of the tests");
	cr_expect_eq(frag_stream_wait((struct frag_device){FRAG_DEVICE_CUDA, 7}, NULL, &err),
		     -ENODEV);
	cr_expect_eq(frag_stream_wait((struct frag_device){FRAG_DEVICE_CPU, 0}, NULL, NULL),
		     -EINVAL);
	frag_tensor_unref(tensor);
	driver->stream_destroy(0, stream);
}
