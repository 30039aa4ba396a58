// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/log.h>
#include <frag/tensor.h>
#include <res/resource.h>

/* A block_memory_pool, its parameters written by the table as a graph would. */
static int make_pool(int64_t storage_type, uint64_t block_size, int64_t num_blocks,
		     struct frag_resource **out, struct frag_err *err)
{
	const struct fragi_built_in_resource *built_in =
		fragi_built_in_resource("block_memory_pool");
	const struct frag_resource_type *type = &built_in->type;
	struct frag_resource *pool;
	unsigned char *state;
	int r = fragi_resource_create(type, built_in, "pool", &pool);

	if (r < 0)
		return frag_err_set(err, r, "there is no memory for \"pool\"");
	state = fragi_resource_state(pool);
	for (uint32_t i = 0; i < type->param_count; i++) {
		void *at = state + type->params[i].offset;

		if (strcmp(type->params[i].name, "storage_type") == 0)
			*(int64_t *)at = storage_type;
		if (strcmp(type->params[i].name, "block_size") == 0)
			*(uint64_t *)at = block_size;
		if (strcmp(type->params[i].name, "num_blocks") == 0)
			*(int64_t *)at = num_blocks;
	}
	r = fragi_resource_set_up(pool, err);
	if (r < 0)
		fragi_resource_unref(pool);
	else
		*out = pool;
	return r;
}

static void make_unbounded(struct frag_resource **out)
{
	const struct fragi_built_in_resource *built_in =
		fragi_built_in_resource("unbounded_allocator");

	cr_assert_eq(fragi_resource_create(&built_in->type, built_in, "u", out), 0);
	cr_assert_eq(fragi_resource_set_up(*out, NULL), 0);
}

Test(resource, types_are_found_and_listed)
{
	size_t n = 0;

	cr_expect_null(fragi_built_in_resource("no_such"));
	for (; fragi_built_in_resource_at(n) != NULL; n++) {
		cr_expect_eq(fragi_built_in_resource(fragi_built_in_resource_at(n)->type.name),
			     fragi_built_in_resource_at(n));
		cr_expect_not_null(fragi_built_in_resource_at(n)->type.headline);
	}
	cr_expect_eq(n, 8);
}

Test(resource, a_pool_has_so_many_blocks)
{
	struct frag_resource *pool = NULL;
	void *blocks[3], *more;

	cr_assert_eq(make_pool(2, 100, 3, &pool, NULL), 0);
	cr_expect_str_eq(frag_resource_name(pool), "pool");
	cr_expect_eq(frag_resource_blocks_free(pool), 3);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(frag_alloc(pool, 100, &blocks[i]), 0);
		cr_expect_eq((uintptr_t)blocks[i] % 64, 0);
		memset(blocks[i], i, 100);
	}
	cr_expect_eq(frag_resource_blocks_free(pool), 0);
	cr_expect_eq(frag_alloc(pool, 1, &more), -ENOMEM);
	cr_expect_eq(frag_alloc(pool, 101, &more), -EMSGSIZE);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(((char *)blocks[i])[99], i);
	frag_free(pool, blocks[1]);
	cr_expect_eq(frag_alloc(pool, 1, &more), 0);
	cr_expect_eq(more, blocks[1]);
	frag_free(pool, NULL);
	for (int i = 0; i < 3; i++)
		frag_free(pool, blocks[i]);
	cr_expect_eq(frag_resource_blocks_free(pool), 3);
	fragi_resource_unref(pool);
	fragi_resource_unref(NULL);
}

Test(resource, a_block_given_back_twice_or_from_elsewhere_is_ignored)
{
	struct frag_resource *pool = NULL;
	void *block, *same;
	char elsewhere;

	fragi_log_threshold = FRAGI_LOG_OFF;
	cr_assert_eq(make_pool(2, 64, 2, &pool, NULL), 0);
	cr_assert_eq(frag_alloc(pool, 64, &block), 0);
	frag_free(pool, (char *)block + 1);
	frag_free(pool, &elsewhere);
	cr_expect_eq(frag_resource_blocks_free(pool), 1);
	frag_free(pool, block);
	frag_free(pool, block);
	cr_expect_eq(frag_resource_blocks_free(pool), 2);
	cr_assert_eq(frag_alloc(pool, 64, &block), 0);
	cr_assert_eq(frag_alloc(pool, 64, &same), 0);
	cr_expect_neq(block, same);
	fragi_resource_unref(pool);
}

Test(resource, bad_parameters_are_refused_with_a_sentence)
{
	static const struct {
		int64_t storage_type;
		uint64_t block_size;
		int64_t num_blocks;
		int code;
		const char *says;
	} cases[] = {
		{3, 64, 1, -EINVAL, "not a kind of memory"},
		{2, 0, 1, -EINVAL, "block_size is 0"},
		{2, 64, 0, -EINVAL, "num_blocks is 0"},
		{2, 64, -1, -EINVAL, "num_blocks is -1"},
		{2, UINT64_MAX, 2, -EINVAL, "fewer or smaller"},
		{2, UINT64_MAX / 4, 16, -EINVAL, "fewer or smaller"},
		{2, UINT64_C(1) << 61, 1, -ENOMEM, "fewer or smaller"},
	};
	struct frag_resource *pool = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		if (cases[i].code == -ENOMEM)
			fragi_alloc_fail_after(4, 1); /* the blocks themselves */
		cr_expect_eq(make_pool(cases[i].storage_type, cases[i].block_size,
				       cases[i].num_blocks, &pool, &err),
			     cases[i].code, "%zu", i);
		fragi_alloc_fail_off();
		cr_expect_not_null(strstr(err.text, cases[i].says), "%s", err.text);
		cr_expect_not_null(strstr(err.text, "\"pool\""), "%s", err.text);
	}
	cr_expect_null(pool);
}

Test(resource, every_failed_allocation_is_survived)
{
	struct frag_resource *pool = NULL;
	int64_t failed = 1;
	int r;

	for (int64_t n = 0; failed > 0; n++) {
		struct frag_err err = FRAG_ERR_INIT;

		fragi_alloc_fail_after(n, 1);
		r = make_pool(2, 64, 2, &pool, &err);
		failed = fragi_alloc_fail_off();
		cr_assert_eq(r, failed > 0 ? -ENOMEM : 0);
		cr_assert_eq(err.text[0] != '\0', failed > 0);
	}
	fragi_resource_unref(pool);
}

Test(resource, tensors_keep_their_pool)
{
	struct frag_resource *pool = NULL;
	struct frag_tensor *tensor = NULL, *large = NULL;
	int64_t shape[] = {64}, too_large[] = {65};

	cr_assert_eq(make_pool(2, 64, 1, &pool, NULL), 0);
	cr_assert_eq(frag_tensor_create(pool, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1, shape,
					&tensor),
		     0);
	cr_expect_eq(frag_tensor_create(pool, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1,
					too_large, &large),
		     -EMSGSIZE);
	cr_expect_eq(frag_tensor_create(pool, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1, shape,
					&large),
		     -ENOMEM);
	cr_expect_eq(frag_resource_blocks_free(pool), 0);
	fragi_resource_unref(pool);
	memset(frag_tensor_writable(tensor), 1, 64);
	frag_tensor_unref(tensor);
}

Test(resource, the_unbounded_allocator_and_the_default)
{
	struct frag_resource *unbounded = NULL;
	void *memory;

	make_unbounded(&unbounded);
	cr_assert_eq(frag_alloc(unbounded, 1000, &memory), 0);
	cr_expect_eq((uintptr_t)memory % 64, 0);
	frag_free(unbounded, memory);
	cr_expect_eq(frag_resource_blocks_free(unbounded), SIZE_MAX);
	fragi_resource_unref(unbounded);
	cr_assert_eq(frag_alloc(NULL, 0, &memory), 0);
	cr_expect_not_null(memory);
	frag_free(NULL, memory);
	fragi_alloc_fail_after(0, 1);
	cr_expect_eq(frag_alloc(NULL, 8, &memory), -ENOMEM);
	fragi_alloc_fail_off();
}

/* Memory that a host shares with others, for instance. */
static int lent, given;

static int lend(void *state, size_t size, void **out_memory)
{
	*out_memory = aligned_alloc(64, (size + 63) / 64 * 64);
	lent++;
	return 0;
}

static void take_back(void *state, void *memory)
{
	free(memory);
	given++;
}

static void nothing(struct frag_resource *resource)
{
}

Test(resource, memory_comes_from_where_the_host_says_and_goes_back_there)
{
	struct fragi_allocator lender = {
		.refs = 1, .alloc = lend, .free = take_back, .destroy = nothing};
	struct frag_resource *unbounded = NULL, *pool = NULL;
	const int64_t shape = 1000;
	struct frag_tensor *tensor;
	void *memory;

	fragi_default_memory_set((struct frag_resource *)(void *)&lender);
	make_unbounded(&unbounded);
	cr_assert_eq(make_pool(2, 100, 3, &pool, NULL), 0);
	cr_expect_eq(lent, 1, "a pool takes its memory when it is made");
	cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1, &shape,
					&tensor),
		     0);
	cr_assert_eq(frag_alloc(unbounded, 1000, &memory), 0);
	cr_expect_eq(lent, 3);
	fragi_default_memory_set(NULL);
	frag_tensor_unref(tensor);
	frag_free(unbounded, memory);
	fragi_resource_unref(unbounded);
	fragi_resource_unref(pool);
	cr_expect_eq(given, 3);
	cr_expect_eq(atomic_load(&lender.refs), 1);
}

static struct frag_resource *stormed;

static void *storm(void *failures)
{
	unsigned char mark = (unsigned char)(uintptr_t)&mark, *block;

	for (int i = 0; i < 20000; i++) {
		if (frag_alloc(stormed, 64, (void **)&block) < 0)
			continue;
		memset(block, mark, 64);
		for (int k = 0; k < 64; k++)
			*(int *)failures += block[k] != mark;
		frag_free(stormed, block);
	}
	return NULL;
}

Test(resource, no_block_is_given_to_two_threads)
{
	pthread_t threads[4];
	int failures[4] = {0};

	cr_assert_eq(make_pool(2, 64, 3, &stormed, NULL), 0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, storm, &failures[i]), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		cr_expect_eq(failures[i], 0);
	}
	cr_expect_eq(frag_resource_blocks_free(stormed), 3);
	fragi_resource_unref(stormed);
}
