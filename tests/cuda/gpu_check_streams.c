// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <data/message.h>
#include <frag/frag.h>
#include <frag/harness.h>
#include <res/resource.h>
#include <type/cuda.h>

#include "gpu_check.h"
#include "ops.h"

#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define CPU ((struct frag_device){FRAG_DEVICE_CPU, 0})
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})
#define LARGE ((size_t)64 << 20)
#define PATIENCE_US 10e6

/* The driver itself, for the work of the operators. */
static struct {
	int (*set)(uint64_t memory, unsigned char byte, size_t size, void *stream);
	int (*copy)(uint64_t to, uint64_t from, size_t size, void *stream);
	int (*call)(void *stream, void (*fn)(void *arg), void *arg);
} driver;

/* Of the operators. */
static struct {
	struct frag_resource *pool;
	size_t size;
	unsigned char byte;          /* what the writer writes */
	bool is_late;                /* its stream is held by `gate` before that */
	struct frag_message *last;   /* that a late writer has sent, with a reference */
	struct frag_tensor *result;  /* what the reader copies to */
	struct frag_tensor *arrived; /* what the operator without a stream has copied */
} now;
static _Atomic bool gate_is_open;

/* On a thread of the driver: the stream waits for it. */
static void gate(void *unused)
{
	while (!atomic_load(&gate_is_open))
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static int use_stream(void *state, struct frag_op *op)
{
	return frag_op_use_stream(op, NULL, GPU);
}

static uint64_t address(const struct frag_tensor *tensor)
{
	return (uintptr_t)frag_tensor_data(tensor);
}

static int make_tensor(struct frag_resource *pool, struct frag_tensor **out)
{
	return frag_tensor_create_on(pool, GPU, U8, 1, (const int64_t[]){(int64_t)now.size}, out);
}

static int write_compute(void *state, struct frag_tick *tick)
{
	void *stream = frag_tick_stream(tick);
	struct frag_message *message;
	struct frag_tensor *tensor;
	int r = make_tensor(now.pool, &tensor);

	if (r < 0)
		return r;
	if ((now.is_late && driver.call(stream, gate, NULL) != 0) ||
	    driver.set(address(tensor), now.byte, now.size, stream) != 0)
		return -EIO;
	message = frag_message_create();
	r = frag_message_add_tensor(message, "", tensor);
	if (now.is_late)
		now.last = frag_message_ref(message);
	return r < 0 ? r : frag_tick_emit(tick, 0, message);
}

static int read_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = frag_tick_receive(tick, 0, &message);

	if (r < 0)
		return r;
	return driver.copy(address(now.result), address(frag_message_tensor(message, "")), now.size,
			   frag_tick_stream(tick)) == 0
		       ? 0
		       : -EIO;
}

static int look_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = frag_tick_receive(tick, 0, &message);

	return r < 0 ? r
		     : frag_tensor_copy(frag_message_tensor(message, ""), NULL, CPU, &now.arrived,
					NULL);
}

static int wait_for_buffer(void *state, struct frag_op *op)
{
	return frag_make_condition(op, NULL, "cuda_buffer", NULL) != NULL ? 0 : -EINVAL;
}

static const struct frag_port out_port[] = {{.name = "out", .dir = FRAG_OUT}};
static const struct frag_port in_port[] = {{.name = "in", .dir = FRAG_IN}};
TEST_OP_BY(writer, write_compute, FRAG_PORTS(out_port), .initialize = use_stream);
TEST_OP_BY(reader, read_compute, FRAG_PORTS(in_port), .initialize = use_stream);
TEST_OP_BY(looker, look_compute, FRAG_PORTS(in_port), .setup = wait_for_buffer);

static struct frag_harness *harness(const struct frag_op_type *type)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create(type, NULL, &err);

	if (h == NULL) {
		printf("FAIL an operator with a stream: %s\n", err.text);
		exit(1);
	}
	return h;
}

static int tick(struct frag_harness *h)
{
	int r = frag_harness_tick(h);

	if (r < 0)
		printf("     %s\n", frag_harness_error(h));
	return r;
}

static bool all_are(const struct frag_tensor *tensor, unsigned char byte)
{
	const unsigned char *at = frag_tensor_data(tensor);

	for (size_t i = 0; i < frag_tensor_size_bytes(tensor); i++)
		if (at[i] != byte)
			return false;
	return true;
}

static void make_pool(int64_t blocks)
{
	const struct fragi_built_in_resource *type = fragi_built_in_resource("block_memory_pool");
	const char *const names[] = {"storage_type", "block_size", "num_blocks"};
	const int64_t values[] = {1, (int64_t)now.size, blocks};
	struct frag_err err = FRAG_ERR_INIT;
	unsigned char *state;
	int r = fragi_resource_create(&type->type, type, "pool", &now.pool);

	state = fragi_resource_state(now.pool);
	for (uint32_t i = 0; i < type->type.param_count; i++)
		for (size_t k = 0; k < FRAG_COUNT_OF(names); k++)
			if (strcmp(type->type.params[i].name, names[k]) == 0)
				memcpy(state + type->type.params[i].offset, &values[k],
				       sizeof(values[k]));
	if (r == 0)
		r = fragi_resource_set_up(now.pool, &err);
	if (r == 0)
		r = type->type.initialize(state, now.pool, &err);
	check(r == 0, "a pool for operators with streams", err.text);
}

static bool blocks_come_back(size_t blocks)
{
	double until = now_us() + PATIENCE_US;

	while (frag_resource_blocks_free(now.pool) < blocks && now_us() < until)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	return frag_resource_blocks_free(now.pool) >= blocks;
}

/* Drops what the writer's queue holds, once it is written. */
static void take_all(struct frag_harness *writer)
{
	struct frag_message *message;

	while (frag_harness_take(writer, "out", &message) == 0)
		frag_message_unref(message);
}

static void check_late(void)
{
	struct frag_harness *writer = harness(&writer_type), *reader = harness(&reader_type),
			    *looker = harness(&looker_type);
	struct frag_tensor *copy = NULL;
	struct frag_message *message;

	now.size = LARGE;
	now.byte = 7;
	make_pool(1);
	if (make_tensor(NULL, &now.result) < 0)
		return;
	/* Before anything is held: what the driver loads at its first use may wait for streams. */
	if (!check(tick(writer) == 0 && frag_harness_take(writer, "out", &message) == 0 &&
			   frag_harness_give(reader, "in", message) == 0 && tick(reader) == 0 &&
			   blocks_come_back(1),
		   "a tensor passes from stream to stream", ""))
		return;
	now.is_late = true;
	now.byte = 9;
	if (!check(tick(writer) == 0, "an emit of a tensor that is not written", ""))
		return;
	now.is_late = false;
	message = now.last;
	check(!fragi_work_is_over(message->tensors[0].tensor->written), "an emit waits for nothing",
	      "");
	check(frag_harness_give(reader, "in", frag_message_ref(message)) == 0 && tick(reader) == 0,
	      "a receive waits for nothing", "");
	check(frag_harness_give(looker, "in", message) == 0 && frag_harness_ready(looker) == 0,
	      "cuda_buffer waits", "");
	atomic_store(&gate_is_open, true);
	for (double until = now_us() + PATIENCE_US; now_us() < until;)
		if (frag_harness_ready(looker) == 1)
			break;
	check(frag_harness_ready(looker) == 1, "cuda_buffer is met once the GPU has written", "");
	check(tick(looker) == 0 && all_are(now.arrived, 9), "the CPU gets what was written", "");
	frag_tensor_unref(now.arrived);
	take_all(writer);
	check(blocks_come_back(1), "the block comes back when it was read", "");
	check(frag_tensor_copy(now.result, NULL, CPU, &copy, NULL) == 0 && all_are(copy, 9),
	      "the reader's stream has waited for the writer's", "");
	frag_tensor_unref(copy);
	frag_tensor_unref(now.result);
	now.result = NULL;
	frag_harness_destroy(looker);
	frag_harness_destroy(reader);
	frag_harness_destroy(writer);
	fragi_resource_unref(now.pool);
	now.pool = NULL;
}

/* Two blocks are written and read in turn: what is read last is what was written last. */
static void check_reuse(void)
{
	struct frag_harness *writer = harness(&writer_type), *reader = harness(&reader_type);
	struct frag_message *message;
	struct frag_tensor *copy = NULL;
	bool ok;

	now.size = LARGE / 16;
	make_pool(2);
	ok = make_tensor(NULL, &now.result) == 0;
	for (int i = 0; ok && i < 200; i++) {
		now.byte = (unsigned char)i;
		ok = blocks_come_back(1) && tick(writer) == 0 &&
		     frag_harness_take(writer, "out", &message) == 0 &&
		     frag_harness_give(reader, "in", message) == 0 && tick(reader) == 0;
	}
	check(ok && blocks_come_back(2), "blocks are used again and again", "");
	check(frag_tensor_copy(now.result, NULL, CPU, &copy, NULL) == 0 && all_are(copy, 199),
	      "and the last reader has read the last writer's", "");
	frag_tensor_unref(copy);
	frag_tensor_unref(now.result);
	now.result = NULL;
	frag_harness_destroy(reader);
	frag_harness_destroy(writer);
	fragi_resource_unref(now.pool);
	now.pool = NULL;
}

/* A stream in a part of the GPU writes memory; a stream outside of it waits for that. */
static bool write_in_part(const struct fragi_cuda_ops *cuda, void *part, unsigned char byte)
{
	const struct fragi_stream_ops *ops = fragi_memory_of(GPU)->streams;
	struct fragi_stream *inside = NULL, *outside = NULL;
	struct frag_tensor *tensor = NULL, *copy = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_work *work = NULL;
	void *stream = NULL;
	bool ok;

	now.size = LARGE;
	ok = cuda->stream_create(0, part, 0, 0, &stream, &err) == 0 &&
	     make_tensor(NULL, &tensor) == 0 && ops->open(GPU, stream, &inside, &err) == 0 &&
	     ops->open(GPU, NULL, &outside, &err) == 0 &&
	     driver.set(address(tensor), byte, now.size, stream) == 0 &&
	     ops->record(inside, &work, &err) == 0 &&
	     fragi_work_follow(work, outside->handle, &err) == 0 &&
	     ops->finish(outside, &err) == 0 &&
	     frag_tensor_copy(tensor, NULL, CPU, &copy, &err) == 0 && all_are(copy, byte);
	if (!ok)
		printf("     %s\n", err.text);
	if (work != NULL)
		fragi_work_unref(work);
	if (inside != NULL)
		(void)ops->finish(inside, NULL);
	ops->close(inside);
	ops->close(outside);
	frag_tensor_unref(copy);
	frag_tensor_unref(tensor);
	if (stream != NULL)
		cuda->stream_destroy(0, stream);
	return ok;
}

static void check_green(const char *what, const int64_t *wanted)
{
	const struct fragi_cuda_ops *cuda;
	struct frag_err err = FRAG_ERR_INIT;
	uint32_t sms[2];
	void *parts[2];
	int r = fragi_cuda_use(GPU, &cuda, &err);

	if (r == 0)
		r = cuda->green_create(0, wanted, 2, parts, sms, &err);
	if (r == -ENOTSUP) {
		printf("     no green contexts: %s\n", err.text);
		return;
	}
	if (!check(r == 0, what, err.text))
		return;
	printf("     green contexts of %u and %u SMs\n", sms[0], sms[1]);
	check(write_in_part(cuda, parts[0], 3) && write_in_part(cuda, parts[1], 4),
	      "streams in both parts write, and others wait for them", "");
	cuda->green_destroy(0, parts[0]);
	cuda->green_destroy(0, parts[1]);
}

/* Not judged: the machine may have other work. */
static void measure(void)
{
	const struct fragi_stream_ops *ops = fragi_memory_of(GPU)->streams;
	struct fragi_stream *a, *b;
	struct fragi_work *work;
	int r;
	double record = 1e12, follow = 1e12, ask = 1e12, wait = 1e12, began;

	if (ops->open(GPU, NULL, &a, NULL) < 0 || ops->open(GPU, NULL, &b, NULL) < 0)
		return;
#define BEST(best, what)                                                                           \
	do {                                                                                       \
		began = now_us();                                                                  \
		what;                                                                              \
		best = now_us() - began < best ? now_us() - began : best;                          \
	} while (0)
	for (int i = 0; i < 1000; i++) {
		BEST(record, r = ops->record(a, &work, NULL));
		if (r < 0)
			break;
		BEST(follow, (void)fragi_work_follow(work, b->handle, NULL));
		BEST(ask, (void)work->ops->is_done(work, NULL));
		BEST(wait, (void)work->ops->wait(work, NULL));
		fragi_work_unref(work);
	}
	printf("     an event: %.2f us to record, %.2f to make a stream wait, %.2f to ask, %.2f to "
	       "wait for what is done\n",
	       record, follow, ask, wait);
	(void)ops->finish(a, NULL);
	(void)ops->finish(b, NULL);
	ops->close(a);
	ops->close(b);
}

void check_streams(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	*(void **)&driver.set = dlsym(library, "cuMemsetD8Async");
	*(void **)&driver.copy = dlsym(library, "cuMemcpyAsync");
	*(void **)&driver.call = dlsym(library, "cuLaunchHostFunc");
	check_late();
	check_reuse();
	check_green("a GPU is divided into two equal green contexts", NULL);
	check_green("a GPU is divided into two unlike green contexts", (const int64_t[]){8, 16});
	measure();
}
