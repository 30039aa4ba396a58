// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <cond/condition.h>
#include <data/allocator.h>

struct memory_available {
	struct frag_resource *allocator;
	uint64_t min_bytes;
	int64_t min_blocks;
	struct fragi_memory_watch watch;
};

static const struct frag_param params[] = {
	FRAG_PARAM_RESOURCE(struct memory_available, allocator, NULL, .flags = FRAG_PARAM_REQUIRED,
			    .headline = "Allocator that must have memory"),
	FRAG_PARAM_SIZE(struct memory_available, min_bytes, 0,
			.headline = "Bytes that must be free; give this or min_blocks"),
	FRAG_PARAM_I64(struct memory_available, min_blocks, 0, .min = 0, .max = 1e9,
		       .headline = "Blocks that must be free, of a block_memory_pool"),
};

static struct fragi_allocator *allocator_of(const struct memory_available *s)
{
	return (struct fragi_allocator *)s->allocator;
}

static void freed(void *arg)
{
	frag_condition_changed(arg);
}

static int refuse_size(const struct memory_available *s, const char *name, struct frag_err *err)
{
	struct fragi_blocks blocks;

	if (allocator_of(s)->blocks == NULL && s->min_blocks > 0)
		return frag_err_set(err, -EINVAL, "resource \"%s\" has no blocks; give min_bytes",
				    name);
	if (allocator_of(s)->level == NULL)
		return 0;
	allocator_of(s)->level(allocator_of(s)->state, &blocks);
	if ((uint64_t)s->min_blocks > blocks.all)
		return frag_err_set(
			err, -EINVAL,
			"min_blocks is %lld, and resource \"%s\" has %zu blocks; lower min_blocks, or raise its num_blocks",
			(long long)s->min_blocks, name, blocks.all);
	if (s->min_bytes > blocks.all * blocks.block_bytes)
		return frag_err_set(
			err, -EINVAL,
			"min_bytes is %llu, and resource \"%s\" has %zu bytes; lower min_bytes, or make the pool larger",
			(unsigned long long)s->min_bytes, name, blocks.all * blocks.block_bytes);
	return 0;
}

static int bind(void *state, struct frag_condition *condition, struct frag_err *err)
{
	struct memory_available *s = state;
	const char *name = frag_resource_name(s->allocator);
	int r;

	if ((s->min_bytes == 0) == (s->min_blocks == 0))
		return frag_err_set(err, -EINVAL,
				    "give either min_bytes or min_blocks, more than 0");
	if (allocator_of(s)->alloc == NULL)
		return frag_err_set(err, -EINVAL,
				    "resource \"%s\" is no allocator; name one that is", name);
	r = refuse_size(s, name, err);
	if (r == 0 && allocator_of(s)->level != NULL)
		fragi_memory_watch(&s->watch, allocator_of(s),
				   (struct fragi_notify){freed, condition});
	return r;
}

/* An allocator that nothing bounds takes from the system, and has what the system has. */
static enum frag_ready check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	const struct memory_available *s = state;
	const struct fragi_allocator *allocator = allocator_of(s);
	struct fragi_blocks blocks;

	(void)now_ns;
	(void)out_until_ns;
	if (allocator->level == NULL)
		return FRAG_READY;
	allocator->level(allocator->state, &blocks);
	return blocks.free >= (uint64_t)s->min_blocks &&
			       blocks.free * blocks.block_bytes >= s->min_bytes
		       ? FRAG_READY
		       : FRAG_WAIT;
}

static void fini(void *state)
{
	fragi_memory_unwatch(&((struct memory_available *)state)->watch);
}

const struct fragi_built_in_condition fragi_condition_memory_available = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "memory_available",
		 .headline = "An allocator has memory",
		 .state_size = sizeof(struct memory_available), FRAG_PARAMS(params), .bind = bind,
		 .check = check, .fini = fini},
};

const struct frag_resource *fragi_condition_memory(const struct frag_condition *condition)
{
	return condition->built_in == &fragi_condition_memory_available
		       ? ((const struct memory_available *)condition->state)->allocator
		       : NULL;
}
