// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include <base/alloc.h>
#include <base/stamp.h>

#include "variables_world.h"

/* Variables as operators use them: who reads, writes, waits and may map what. */
#define SECOND 1000000000

static const struct frag_dtype f32 = {FRAG_DTYPE_FLOAT, 32, 1}, i16 = {FRAG_DTYPE_INT, 16, 1},
			       u8 = {FRAG_DTYPE_UINT, 8, 1};

TestSuite(variables, .init = world_init, .fini = world_fini);

static struct frag_variable *opened(struct frag_op *op, const char *name)
{
	struct frag_variable *handle = NULL;

	cr_assert_eq(frag_variable_open(op, name, &handle), 0, "%s", fragi_op_own_error(op));
	return handle;
}

static void *mapped(struct frag_variable *handle, enum frag_variable_access access)
{
	const struct frag_dltensor *tensor = NULL;

	cr_assert_eq(frag_variable_map(handle, access, 0, &tensor), 0, "%s",
		     fragi_op_own_error(handle->op));
	return tensor->data;
}

/* What a call answers, and the sentence that it left. */
static void expect_refusal(struct frag_op *op, int r, int wanted, const char *sentence)
{
	cr_expect_eq(r, wanted, "%d: %s", r, fragi_op_own_error(op));
	cr_expect_str_eq(fragi_op_own_error(op), sentence);
	fragi_op_forget_failure(op);
}

static void write_gain(struct frag_variable *handle, float value)
{
	float *gain = mapped(handle, FRAG_VARIABLE_WRITE);

	for (int i = 0; i < 4; i++)
		gain[i] = value;
	cr_assert_eq(frag_variable_unmap(handle), 0);
}

Test(variables, are_read_only_once_they_are_published)
{
	struct frag_variable *tx = opened(&world.a.op, "gain"), *rx = opened(&world.b.op, "gain");
	const struct frag_dltensor *tensor;
	uint64_t version = 0;

	expect_refusal(&world.b.op, frag_variable_map(rx, FRAG_VARIABLE_READ, 0, &tensor), -EAGAIN,
		       "variable gain cannot be read: nothing is published");
	write_gain(tx, 2);
	expect_refusal(&world.b.op, frag_variable_map(rx, FRAG_VARIABLE_READ, 0, &tensor), -EAGAIN,
		       "variable gain cannot be read: nothing is published");
	cr_assert_eq(frag_variable_publish(tx), 0);
	cr_assert_eq(frag_variable_map(rx, FRAG_VARIABLE_READ, 0, &tensor), 0);
	cr_expect_eq(tensor->ndim, 2);
	cr_expect_eq(tensor->shape[1], 2);
	cr_expect_eq(tensor->strides[0], 2);
	cr_expect_eq(((const float *)tensor->data)[3], 2);
	cr_expect_eq(frag_variable_unmap(rx), 0);
	cr_expect_eq(frag_variable_wait(rx, 0, 0, &version), 0);
	cr_expect_eq(version, 1);
	write_gain(tx, 3);
	expect_refusal(&world.b.op, frag_variable_map(rx, FRAG_VARIABLE_READ, 0, &tensor), -EAGAIN,
		       "variable gain cannot be read: nothing is published");
	cr_assert_eq(frag_variable_publish(tx), 0);
	cr_expect_eq(frag_variable_wait(rx, 1, 0, &version), 0);
	cr_expect_eq(version, 2);
	cr_expect_eq(((const float *)mapped(rx, FRAG_VARIABLE_READ))[0], 3);
}

Test(variables, have_one_writer_and_no_reader_beside_it)
{
	struct frag_variable *tx = opened(&world.a.op, "gain"), *rx = opened(&world.b.op, "gain"),
			     *other = opened(&world.a.other, "gain");
	const struct frag_dltensor *tensor;

	mapped(tx, FRAG_VARIABLE_WRITE);
	expect_refusal(&world.a.other, frag_variable_map(other, FRAG_VARIABLE_WRITE, 0, &tensor),
		       -EBUSY, "variable gain cannot be written: another operator has it mapped");
	expect_refusal(&world.a.other, frag_variable_map(other, FRAG_VARIABLE_READ, 0, &tensor),
		       -EBUSY, "variable gain cannot be read: it is being written");
	expect_refusal(&world.b.op, frag_variable_map(rx, FRAG_VARIABLE_READ, 0, &tensor), -EBUSY,
		       "variable gain cannot be read: it is being written");
	expect_refusal(&world.a.op, frag_variable_publish(tx), -EBUSY,
		       "cannot publish variable gain (it is being written; unmap it first)");
	expect_refusal(&world.a.op, frag_variable_map(tx, FRAG_VARIABLE_WRITE, 0, &tensor), -EINVAL,
		       "cannot map variable gain: this operator has mapped it; unmap it first");
	expect_refusal(
		&world.b.op, frag_variable_map(rx, FRAG_VARIABLE_WRITE, 0, &tensor), -EACCES,
		"variable gain is not for this operator to write: its writer in the graph is another");
	cr_expect_eq(frag_variable_unmap(tx), 0);
	expect_refusal(&world.a.op, frag_variable_unmap(tx), -EINVAL,
		       "variable gain is not mapped");
}

Test(variables, are_not_written_while_somebody_reads)
{
	struct frag_variable *tx = opened(&world.a.op, "gain"), *rx = opened(&world.b.op, "gain"),
			     *other = opened(&world.a.other, "gain");
	const struct frag_dltensor *tensor;

	cr_assert_eq(frag_variable_publish(tx), 0);
	mapped(rx, FRAG_VARIABLE_READ);
	mapped(other, FRAG_VARIABLE_READ);
	expect_refusal(&world.a.op, frag_variable_map(tx, FRAG_VARIABLE_WRITE, 0, &tensor), -EBUSY,
		       "variable gain cannot be written: another operator has it mapped");
	cr_expect_eq(frag_variable_unmap(other), 0);
	expect_refusal(&world.a.op, frag_variable_map(tx, FRAG_VARIABLE_WRITE, 1000000, &tensor),
		       -ETIMEDOUT, "variable gain was not free to be written in time");
	cr_expect_eq(frag_variable_unmap(rx), 0);
	mapped(tx, FRAG_VARIABLE_WRITE);
}

/* A thread of the writer, and what it waits for. */
static void *publish_later(void *arg)
{
	usleep(20000);
	cr_assert_eq(frag_variable_publish(arg), 0);
	return NULL;
}

Test(variables, a_reader_waits_for_the_writer)
{
	struct frag_variable *tx = opened(&world.a.op, "gain"), *rx = opened(&world.b.op, "gain");
	const struct frag_dltensor *tensor;
	uint64_t version = 0;
	pthread_t thread;

	expect_refusal(&world.b.op, frag_variable_map(rx, FRAG_VARIABLE_READ, 1000000, &tensor),
		       -ETIMEDOUT, "variable gain was not published in time");
	expect_refusal(&world.b.op, frag_variable_wait(rx, 0, 1000000, &version), -ETIMEDOUT,
		       "variable gain has no publication after 0 (Connection timed out)");
	cr_assert_eq(pthread_create(&thread, NULL, publish_later, tx), 0);
	cr_expect_eq(frag_variable_map(rx, FRAG_VARIABLE_READ, 600 * (int64_t)SECOND, &tensor), 0);
	pthread_join(thread, NULL);
	cr_expect_eq(frag_variable_unmap(rx), 0);
	cr_assert_eq(pthread_create(&thread, NULL, publish_later, tx), 0);
	cr_expect_eq(frag_variable_wait(rx, 1, INT64_MAX, &version), 0);
	cr_expect_eq(version, 2);
	pthread_join(thread, NULL);
}

/* Waits for one publication after the other. */
static void *wait_for_many(void *arg)
{
	uint64_t version = 0;

	while (version < 2000) {
		const struct frag_dltensor *tensor;

		cr_assert_eq(frag_variable_map(arg, FRAG_VARIABLE_READ, INT64_MAX, &tensor), 0);
		for (int i = 1; i < 4; i++)
			cr_assert_eq(((const float *)tensor->data)[i],
				     ((const float *)tensor->data)[0]);
		cr_assert_eq(frag_variable_unmap(arg), 0);
		cr_assert_eq(frag_variable_wait(arg, version, INT64_MAX, &version), 0);
	}
	return NULL;
}

Test(variables, nobody_sees_what_is_half_written)
{
	struct frag_variable *tx = opened(&world.a.op, "gain"), *rx = opened(&world.b.op, "gain");
	const struct frag_dltensor *tensor;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, wait_for_many, rx), 0);
	for (int n = 1; n <= 2000; n++) {
		cr_assert_eq(frag_variable_map(tx, FRAG_VARIABLE_WRITE, INT64_MAX, &tensor), 0);
		for (int i = 0; i < 4; i++)
			((float *)tensor->data)[i] = (float)n;
		cr_assert_eq(frag_variable_unmap(tx), 0);
		cr_assert_eq(frag_variable_publish(tx), 0);
	}
	pthread_join(thread, NULL);
}

static _Atomic bool enough;

static void *try_to_read(void *arg)
{
	const struct frag_dltensor *tensor;

	while (!atomic_load(&enough))
		cr_assert_neq(frag_variable_map(arg, FRAG_VARIABLE_READ, 0, &tensor), 0);
	return NULL;
}

Test(variables, who_waits_does_not_lock_the_writer_out)
{
	struct frag_variable *tx = opened(&world.a.op, "gain"), *rx = opened(&world.b.op, "gain");
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, try_to_read, rx), 0);
	for (int i = 0; i < 20000; i++)
		write_gain(tx, 1);
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
}

static void *stop_later(void *arg)
{
	const uint64_t one = 1;

	usleep(20000);
	cr_assert_eq(write(world.stop_fd, &one, sizeof(one)), (ssize_t)sizeof(one));
	return NULL;
}

Test(variables, a_stop_ends_a_wait)
{
	struct frag_variable *rx = opened(&world.b.op, "gain");
	const struct frag_dltensor *tensor;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, stop_later, NULL), 0);
	cr_expect_eq(frag_variable_map(rx, FRAG_VARIABLE_READ, INT64_MAX, &tensor), -ECANCELED);
	cr_expect_eq(frag_variable_wait(rx, 0, INT64_MAX, NULL), -ECANCELED);
	pthread_join(thread, NULL);
}

Test(variables, a_reader_cannot_write_to_what_it_has_mapped, .signal = SIGSEGV)
{
	struct frag_variable *tx = opened(&world.a.op, "gain"), *rx = opened(&world.b.op, "gain");

	cr_assert_eq(frag_variable_publish(tx), 0);
	*(volatile float *)mapped(rx, FRAG_VARIABLE_READ) = 1;
}

Test(variables, nor_does_one_of_the_writers_process, .signal = SIGSEGV)
{
	struct frag_variable *tx = opened(&world.a.op, "gain"),
			     *other = opened(&world.a.other, "gain");

	cr_assert_eq(frag_variable_publish(tx), 0);
	*(volatile float *)mapped(other, FRAG_VARIABLE_READ) = 1;
}

Test(variables, no_other_process_can_map_the_memory_for_writing)
{
	const struct frag_variable *rx = opened(&world.b.op, "gain");
	int fd = rx->variable->memory.fd, again;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR);
	cr_expect_eq(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	if (again >= 0) {
		cr_expect_eq(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
		cr_expect_eq(write(again, "x", 1), -1);
		cr_expect_eq(ftruncate(again, 0), -1);
		close(again);
	}
}

Test(variables, shapes_that_the_writer_decides)
{
	struct frag_variable *tx = opened(&world.a.op, "rows"), *rx = opened(&world.b.op, "rows"),
			     *text = opened(&world.a.op, "name"),
			     *seen = opened(&world.b.op, "name");
	const int64_t two[] = {2, 3}, none[] = {0, 3}, wrong[] = {2, 4}, length = 5, shorter = 2;
	const struct frag_dltensor *tensor;

	expect_refusal(&world.a.op, frag_variable_publish(tx), -EINVAL,
		       "cannot publish variable rows (it was not allocated)");
	cr_expect_eq(frag_variable_map(tx, FRAG_VARIABLE_WRITE, 0, &tensor), -EINVAL);
	fragi_op_forget_failure(&world.a.op);
	expect_refusal(&world.a.op, frag_variable_allocate(tx, i16, 2, wrong), -EINVAL,
		       "cannot allocate variable rows: the graph declares another type or shape");
	cr_expect_eq(frag_variable_allocate(tx, f32, 2, two), -EINVAL);
	cr_expect_eq(frag_variable_allocate(rx, i16, 2, two), -EACCES);
	cr_assert_eq(frag_variable_allocate(tx, i16, 2, two), 0);
	((int16_t *)mapped(tx, FRAG_VARIABLE_WRITE))[5] = 7;
	cr_assert_eq(frag_variable_unmap(tx), 0);
	cr_assert_eq(frag_variable_publish(tx), 0);
	cr_assert_eq(frag_variable_map(rx, FRAG_VARIABLE_READ, 0, &tensor), 0);
	cr_expect_eq(tensor->shape[0], 2);
	cr_expect_eq(((const int16_t *)tensor->data)[5], 7);
	cr_expect_eq(frag_variable_allocate(tx, i16, 2, none), -EBUSY, "a reader has it");
	cr_expect_eq(frag_variable_unmap(rx), 0);
	cr_assert_eq(frag_variable_allocate(tx, i16, 2, none), 0);
	cr_expect_eq(frag_variable_map(rx, FRAG_VARIABLE_READ, 0, &tensor), -EAGAIN);
	cr_assert_eq(frag_variable_publish(tx), 0);
	cr_assert_eq(frag_variable_map(rx, FRAG_VARIABLE_READ, 0, &tensor), 0);
	cr_expect_eq(tensor->shape[0], 0);

	cr_assert_eq(frag_variable_allocate(text, u8, 1, &length), 0);
	memcpy(mapped(text, FRAG_VARIABLE_WRITE), "hello", 5);
	cr_assert_eq(frag_variable_unmap(text), 0);
	cr_assert_eq(frag_variable_allocate(text, u8, 1, &shorter), 0);
	cr_assert_eq(frag_variable_publish(text), 0);
	cr_assert_eq(frag_variable_map(seen, FRAG_VARIABLE_READ, 0, &tensor), 0);
	cr_expect_eq(tensor->shape[0], 2);
	cr_expect_eq(memcmp(tensor->data, "he", 2), 0);
}

/* Neither shape nor strides touch what is beside them. */
Test(variables, of_as_many_dimensions_as_a_tensor_may_have)
{
	int64_t shape[FRAG_TENSOR_NDIM_MAX], stride = 1;
	const struct frag_dltensor *tensor;
	struct frag_variable *handle;

	for (int32_t i = 0; i < FRAG_TENSOR_NDIM_MAX; i++)
		shape[i] = i % 2 == 0 ? 2 : i == 1 ? 3 : 1;
	cr_assert_eq(frag_variable_create(&world.a.op, "deep", &handle), 0);
	cr_assert_eq(frag_variable_allocate(handle, u8, FRAG_TENSOR_NDIM_MAX, shape), 0);
	cr_assert_eq(frag_variable_map(handle, FRAG_VARIABLE_WRITE, 0, &tensor), 0);
	cr_expect_eq(tensor->ndim, FRAG_TENSOR_NDIM_MAX);
	for (int32_t i = FRAG_TENSOR_NDIM_MAX - 1; i >= 0; i--) {
		cr_expect_eq(tensor->shape[i], shape[i], "%d: %lld", (int)i,
			     (long long)tensor->shape[i]);
		cr_expect_eq(tensor->strides[i], stride, "%d", (int)i);
		stride *= shape[i];
	}
	cr_expect_eq(frag_variable_unmap(handle), 0);
}

Test(variables, only_whom_the_graph_names_may_open_them)
{
	struct frag_variable *handle;

	expect_refusal(
		&world.b.other, frag_variable_open(&world.b.other, "gain", &handle), -EACCES,
		"the graph names this operator neither as the writer nor as a reader of variable gain; add it there");
	expect_refusal(&world.b.op, frag_variable_open(&world.b.op, "gone", &handle), -ENOENT,
		       "no variable gone is declared, nor published on this machine");
	expect_refusal(&world.b.op, frag_variable_open(&world.b.op, NULL, &handle), -ENOENT,
		       "there is no variable \"\"");
	expect_refusal(&world.b.op, frag_variable_open(&world.b.op, "a b", &handle), -ENOENT,
		       "there is no variable \"a b\"");
	expect_refusal(&world.b.op, frag_variable_create(&world.b.op, NULL, &handle), -EINVAL,
		       "cannot create a variable \"\": that is no name");
	expect_refusal(&world.b.op, frag_variable_create(&world.b.op, "a b", &handle), -EINVAL,
		       "cannot create a variable \"a b\": that is no name");
	expect_refusal(&world.b.op, frag_variable_open(&world.b.op, "data", &handle), -EACCES,
		       "variable data is a path: get it with frag_variable_path");
	cr_expect_eq(opened(&world.b.op, "gain"), opened(&world.b.op, "gain"));
	cr_expect_str_eq(frag_variable_path(&world.b.op, "data"), "/data/in");
	cr_expect_null(frag_variable_path(&world.b.other, "data"));
	cr_expect_null(frag_variable_path(&world.b.op, "gain"));
}

Test(variables, created_ones_go_round_without_the_graph)
{
	struct frag_variable *tx, *rx, *again, *here;
	const struct frag_dltensor *tensor;
	const int64_t shape = 3;

	cr_assert_eq(frag_variable_create(&world.a.op, "table", &tx), 0);
	expect_refusal(&world.a.other, frag_variable_create(&world.a.other, "table", &again),
		       -EEXIST, "cannot create variable table (there is one of that name)");
	expect_refusal(&world.a.other, frag_variable_create(&world.a.other, "gain", &again),
		       -EEXIST, "cannot create variable gain (there is one of that name)");
	expect_refusal(&world.a.op, frag_variable_map(tx, FRAG_VARIABLE_WRITE, 0, &tensor), -EINVAL,
		       "cannot map variable table: it was not allocated");
	cr_expect_eq(frag_variable_publish(tx), -EINVAL);
	cr_assert_eq(frag_variable_allocate(tx, f32, 1, &shape), 0);
	cr_expect_eq(frag_variable_allocate(tx, f32, 1, &shape), -EBUSY);
	((float *)mapped(tx, FRAG_VARIABLE_WRITE))[2] = 9;
	cr_assert_eq(frag_variable_unmap(tx), 0);
	cr_expect_eq(frag_variable_open(&world.a.other, "table", &here), -ENOENT);
	cr_expect_eq(frag_variable_open(&world.b.op, "table", &rx), -ENOENT);
	cr_assert_eq(frag_variable_publish(tx), 0);

	here = opened(&world.a.other, "table");
	rx = opened(&world.b.op, "table");
	cr_expect_eq(((const float *)mapped(here, FRAG_VARIABLE_READ))[2], 9);
	cr_expect_eq(((const float *)mapped(rx, FRAG_VARIABLE_READ))[2], 9);
	cr_expect_eq(frag_variable_map(tx, FRAG_VARIABLE_WRITE, 0, &tensor), -EBUSY);
	cr_expect_eq(frag_variable_unmap(rx), 0);
	cr_expect_eq(frag_variable_unmap(here), 0);
	mapped(tx, FRAG_VARIABLE_WRITE);
	cr_expect_eq(frag_variable_map(rx, FRAG_VARIABLE_READ, 0, &tensor), -EBUSY);
	fragi_op_forget_failure(&world.b.op);
	fragi_op_forget_failure(&world.a.other);
	expect_refusal(&world.b.op, frag_variable_map(rx, FRAG_VARIABLE_WRITE, 0, &tensor), -EACCES,
		       "variable table is not for this operator to write: another one created it");
	expect_refusal(&world.a.other, frag_variable_map(here, FRAG_VARIABLE_WRITE, 0, &tensor),
		       -EACCES,
		       "variable table is not for this operator to write: another one created it");
}

Test(variables, a_name_is_published_by_one_process_only)
{
	struct frag_variable *first, *second;

	cr_assert_eq(frag_variable_create(&world.a.op, "table", &first), 0);
	cr_assert_eq(frag_variable_create(&world.b.op, "table", &second), 0);
	cr_assert_eq(frag_variable_allocate(first, f32, 0, NULL), 0);
	cr_assert_eq(frag_variable_allocate(second, f32, 0, NULL), 0);
	cr_assert_eq(frag_variable_publish(first), 0);
	expect_refusal(
		&world.b.op, frag_variable_publish(second), -EEXIST,
		"cannot publish variable table (an operator elsewhere has published one of that name)");
}

Test(variables, what_was_published_outlives_its_writer)
{
	struct frag_variable *tx = opened(&world.a.op, "gain"), *rx = opened(&world.b.op, "gain");
	const struct frag_dltensor *tensor;
	uint64_t version;

	write_gain(tx, 5);
	cr_assert_eq(frag_variable_publish(tx), 0);
	fragi_variables_destroy(world.a.variables);
	world.a.variables = NULL;
	cr_expect_eq(((const float *)mapped(rx, FRAG_VARIABLE_READ))[3], 5);
	cr_expect_eq(frag_variable_wait(rx, 0, 0, &version), 0);
	cr_expect_eq(frag_variable_unmap(rx), 0);
	rx = opened(&world.b.op, "rows");
	cr_expect_eq(frag_variable_map(rx, FRAG_VARIABLE_READ, 1000000, &tensor), -ETIMEDOUT);
}

Test(variables, what_a_writer_was_writing_when_it_died_is_not_read)
{
	struct frag_variable *tx = opened(&world.a.op, "gain"), *rx = opened(&world.b.op, "gain");
	const struct frag_dltensor *tensor;

	cr_assert_eq(frag_variable_publish(tx), 0);
	mapped(tx, FRAG_VARIABLE_WRITE);
	fragi_variables_destroy(world.a.variables);
	world.a.variables = NULL;
	expect_refusal(&world.b.op, frag_variable_map(rx, FRAG_VARIABLE_READ, 1000000, &tensor),
		       -ETIMEDOUT, "variable gain was not published in time");
}

Test(variables, a_reader_that_dies_leaves_no_lock)
{
	struct frag_variable *tx = opened(&world.a.op, "gain"), *rx = opened(&world.b.op, "gain");

	cr_assert_eq(frag_variable_publish(tx), 0);
	mapped(rx, FRAG_VARIABLE_READ);
	fragi_variables_destroy(world.b.variables);
	world.b.variables = NULL;
	mapped(tx, FRAG_VARIABLE_WRITE);
}

static void expect_unbelievable(struct frag_variable *rx)
{
	const struct frag_dltensor *tensor = NULL;

	expect_refusal(
		rx->op, frag_variable_map(rx, FRAG_VARIABLE_READ, 0, &tensor), -EBADMSG,
		"variable rows is not what the graph declares: its writer's host has written beside it");
	cr_expect_null(tensor);
}

Test(variables, a_reader_believes_nothing_that_the_writer_says)
{
	struct frag_variable *tx = opened(&world.a.op, "rows"), *rx = opened(&world.b.op, "rows");
	struct fragi_variable_page *page = tx->variable->memory.own;
	const int64_t shape[] = {1, 3};
	struct fragi_variable_page good;
	uint32_t seed = 1;

	cr_assert_eq(frag_variable_allocate(tx, i16, 2, shape), 0);
	cr_assert_eq(frag_variable_publish(tx), 0);
	memcpy(&good, page, sizeof(good));
	page->ndim = 9;
	expect_unbelievable(rx);
	page->ndim = -1;
	expect_unbelievable(rx);
	page->ndim = 1;
	expect_unbelievable(rx);
	page->ndim = 2;
	page->shape[0] = -1;
	expect_unbelievable(rx);
	page->shape[0] = INT64_MAX;
	expect_unbelievable(rx);
	page->shape[0] = (int64_t)1 << 44;
	expect_unbelievable(rx);
	page->shape[0] = 1;
	page->shape[1] = 4;
	expect_unbelievable(rx);
	page->shape[1] = 3;
	page->dtype.bits = 32;
	expect_unbelievable(rx);
	page->dtype = i16;
	mapped(rx, FRAG_VARIABLE_READ);
	cr_expect_eq(frag_variable_unmap(rx), 0);
	for (int i = 0; i < 20000; i++) {
		const struct frag_dltensor *tensor;

		memcpy(page, &good, sizeof(good));
		for (int k = 0; k < 3; k++)
			((uint8_t *)page)[(size_t)rand_r(&seed) % sizeof(good)] =
				(uint8_t)rand_r(&seed);
		if (frag_variable_map(rx, FRAG_VARIABLE_READ, 0, &tensor) != 0)
			continue;
		cr_assert_eq(tensor->ndim, 2);
		cr_assert_eq(tensor->shape[1], 3);
		cr_assert_leq((uint64_t)tensor->shape[0] * 6, rx->variable->memory.size);
		cr_assert_eq(frag_variable_unmap(rx), 0);
	}
	memcpy(page, &good, sizeof(good));
}

Test(variables, what_is_not_on_this_machine_is_refused_with_a_sentence)
{
	struct frag_err err = FRAG_ERR_INIT;

	fragi_variables_destroy(world.a.variables);
	world.a.variables = NULL;
	fragi_variable_memory_fini(&fragi_variables_find(world.b.variables, "gain")->memory);
	cr_expect_eq(fragi_variables_fetch(world.b.variables, "gain", &err), -ENOENT);
	cr_expect_eq(err.failure, FRAGI_FAILURE_MEMORY_NOT_SHARED);
	cr_expect_str_eq(
		err.text,
		"cannot map variable gain of fragment f1 (its host is not on this machine); run both fragments on one machine, as one user and in one network namespace, or use a flow");
}

Test(variables, memory_that_the_machine_has_not_is_refused_with_a_sentence)
{
	struct fragi_spec_variable spec = world.spec->variables[0];
	struct frag_err err = FRAG_ERR_INIT;
	struct side c = {0};

	spec.shape[0] = (int64_t)1 << 50;
	make_side(&c, "f1", "tx", "other");
	cr_expect_eq(fragi_variables_declare(c.variables, &spec, true, false, &err), -EMSGSIZE);
	cr_expect_eq(err.failure, FRAGI_FAILURE_SYSTEM_REFUSED);
	cr_expect_str_eq(
		err.text,
		"cannot make the shared memory of variable gain (larger than the limit); this machine, or ulimit, has less memory");
	fragi_variables_destroy(c.variables);
}

/* Each step needs memory, and what there was before stays as it was. */
Test(variables, no_memory_is_reported)
{
	const struct fragi_variables_config config = {world.spec, world.key, world.stop_fd};
	struct fragi_variables *variables = NULL;
	struct fragi_variable *variable = NULL;
	uint32_t had = world.b.variables->count;
	int64_t failed = 1;
	int r;

	fragi_alloc_fail_after(0, 1);
	cr_expect_eq(fragi_variables_create(&config, &variables), -ENOMEM);
	cr_expect_eq(fragi_alloc_fail_off(), 1);
	cr_expect_null(variables);
	for (int64_t n = 0; failed > 0; n++) {
		fragi_alloc_fail_after(n, 1);
		r = fragi_variables_add(world.b.variables, "more", &variable);
		failed = fragi_alloc_fail_off();
		cr_assert_eq(r, failed > 0 ? -ENOMEM : 0);
		cr_assert_eq(world.b.variables->count, failed > 0 ? had : had + 1);
	}
}

/* What was removed makes room. */
Test(variables, as_many_as_there_may_be)
{
	struct fragi_variable *variable = NULL;
	uint32_t had = world.b.variables->count;
	char name[32];

	for (int round = 0; round < 2; round++) {
		for (uint32_t i = had; i < FRAG_VARIABLES_MAX; i++) {
			snprintf(name, sizeof(name), "v%u", i);
			cr_assert_eq(fragi_variables_add(world.b.variables, name, &variable), 0);
		}
		cr_expect_eq(fragi_variables_add(world.b.variables, "more", &variable), -ENOSPC);
		cr_expect_null(fragi_variables_find(world.b.variables, "more"));
		while (world.b.variables->count > had)
			fragi_variables_remove_first(world.b.variables);
		cr_expect_null(fragi_variables_find(world.b.variables, name));
	}
}
