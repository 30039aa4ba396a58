// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/units.h>
#include <graph/compose.h>
#include <graph/thread_pool.h>
#include <res/resource.h>
#include <type/params.h>

static struct frag_thread_pool *find_pool(const struct frag_fragment *fragment, const char *name)
{
	for (uint32_t i = 0; i < fragment->pool_count; i++)
		if (strcmp(fragment->pools[i]->name, name) == 0)
			return fragment->pools[i];
	return NULL;
}

static struct frag_thread_pool *make_pool(struct frag_fragment *fragment, const char *name,
					  uint32_t initial_size, const struct fragi_node *place)
{
	struct fragi_making *making = fragment->making;
	struct frag_thread_pool *pool, **pools;

	if (name == NULL || !fragi_name_is_valid(name)) {
		fragi_making_fail(
			fragment, -EINVAL, place, NULL,
			"\"%.200s\" is not a valid name of a thread pool; write a letter, then letters, digits, _ or -, %d in all at most",
			name != NULL ? name : "", FRAG_NAME_MAX);
		return NULL;
	}
	if (initial_size > FRAGI_POOL_THREADS_MAX) {
		fragi_making_fail(fragment, -EINVAL, place, NULL,
				  "thread pool \"%s\" has an initial size of %u; give %u at most",
				  name, initial_size, FRAGI_POOL_THREADS_MAX);
		return NULL;
	}
	if (fragment->pool_count == FRAGI_POOL_THREADS_MAX) {
		fragi_making_fail(fragment, -EINVAL, place, NULL,
				  "thread pool \"%s\": there are more than %u thread pools", name,
				  FRAGI_POOL_THREADS_MAX);
		return NULL;
	}
	if (find_pool(fragment, name) != NULL) {
		fragi_making_fail(fragment, -EINVAL, place, NULL,
				  "two thread pools are called \"%s\"; rename one of them", name);
		return NULL;
	}
	pools = fragi_making_room(fragment, fragment->pools, fragment->pool_count,
				  &making->pool_capacity, sizeof(*pools));
	pool = fragi_arena_alloc(&fragment->arena, sizeof(*pool));
	if (pools != NULL)
		fragment->pools = pools;
	if (pool != NULL) {
		pool->name = fragi_arena_strdup(&fragment->arena, name);
		pool->subject = fragi_arena_printf(&fragment->arena, "%s.%s", fragment->name, name);
	}
	if (pools == NULL || pool == NULL || pool->name == NULL || pool->subject == NULL) {
		fragi_making_fail(fragment, -ENOMEM, NULL, NULL, "out of memory for a thread pool");
		return NULL;
	}
	pool->fragment = fragment;
	pool->initial_size = initial_size;
	pool->place = place;
	pools[fragment->pool_count++] = pool;
	return pool;
}

/*
 * Puts an operator into a pool, as `how` says, whose cores are those of the fragment's arena, or of
 * the graph.
 */
static int add(struct frag_thread_pool *pool, struct frag_op *op,
	       const struct fragi_pool_place *how, const struct fragi_node *place)
{
	struct frag_fragment *fragment = pool->fragment;
	struct fragi_pool_place *own;

	if (op->pool_place != NULL && op->pool_place->pool == pool)
		return fragi_making_fail(
			fragment, -EINVAL, place, NULL,
			"operator \"%s\" is in thread pool \"%s\" twice; take it out once",
			op->name, pool->name);
	if (op->pool_place != NULL)
		return fragi_making_fail(
			fragment, -EINVAL, place, NULL,
			"operator \"%s\" is in thread pools \"%s\" and \"%s\"; take it out of one of them",
			op->name, op->pool_place->pool->name, pool->name);
	own = fragi_arena_alloc(&fragment->arena, sizeof(*own));
	if (own == NULL)
		return fragi_making_fail(fragment, -ENOMEM, NULL, NULL,
					 "out of memory for a thread pool");
	*own = *how;
	own->pool = pool;
	op->pool_place = own;
	pool->pinned_count += own->is_pinned;
	pool->shared_count += !own->is_pinned;
	return 0;
}

struct frag_thread_pool *frag_make_thread_pool(struct frag_fragment *fragment, const char *name,
					       uint32_t initial_size)
{
	if (!fragi_making_is_open(fragment))
		return NULL;
	return make_pool(fragment, fragi_subgraph_qualify(fragment, name), initial_size, NULL);
}

/* Checks what frag_thread_pool_add was given, before anything is changed. */
static int check_ops(struct frag_thread_pool *pool, struct frag_op *const *ops, size_t count)
{
	struct frag_fragment *fragment = pool->fragment;

	for (size_t i = 0; i < count; i++) {
		if (ops[i] == NULL && fragment->making->code == 0 && !fragment->making->no_library)
			fragi_making_fail(fragment, -EINVAL, NULL, NULL,
					  "frag_thread_pool_add: the operator is NULL");
		if (ops[i] == NULL)
			return -EINVAL;
		if (ops[i]->fragment != fragment)
			return fragi_making_fail(fragment, -EINVAL, NULL, NULL,
						 "operator \"%s\" is of fragment \"%s\"",
						 ops[i]->name, ops[i]->fragment->name);
	}
	return 0;
}

/* Adds operators as `how` says, with copies of the cores. */
static int add_all(struct frag_thread_pool *pool, struct frag_op *const *ops, size_t count,
		   struct fragi_pool_place *how)
{
	struct frag_fragment *fragment = pool->fragment;
	uint32_t *cores = NULL;
	int r = check_ops(pool, ops, count);

	if (r < 0)
		return r;
	if (how->core_count > 0) {
		cores = fragi_arena_alloc(&fragment->arena, how->core_count * sizeof(*cores));
		if (cores == NULL)
			return fragi_making_fail(fragment, -ENOMEM, NULL, NULL,
						 "out of memory for a thread pool");
		memcpy(cores, how->cores, how->core_count * sizeof(*cores));
	}
	how->cores = cores;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add(pool, ops[i], how, NULL);
	return r;
}

int frag_thread_pool_add(struct frag_thread_pool *pool, struct frag_op *const *ops, size_t count,
			 int pin_operator, const uint32_t *pin_cores, size_t core_count)
{
	struct fragi_pool_place how = {
		.is_pinned = pin_operator != 0,
		.cores = pin_cores,
		.core_count = core_count,
	};

	if (pool == NULL) /* why was worded when it could not be made */
		return -EINVAL;
	if (!fragi_making_is_open(pool->fragment))
		return -EBUSY;
	if (core_count > 0 && pin_operator == 0)
		return fragi_making_fail(
			pool->fragment, -EINVAL, NULL, NULL,
			"thread pool \"%s\": cores are for operators with a thread of their own; pass pin_operator 1",
			pool->name);
	return add_all(pool, ops, count, &how);
}

int frag_thread_pool_add_realtime(struct frag_thread_pool *pool, struct frag_op *op,
				  const struct frag_realtime *realtime)
{
	struct frag_realtime own = {0};
	struct fragi_pool_place how = {.is_pinned = true};
	const char *flaw = NULL;

	if (pool == NULL) /* why was worded when it could not be made */
		return -EINVAL;
	if (!fragi_making_is_open(pool->fragment))
		return -EBUSY;
	if (realtime != NULL)
		memcpy(&own, realtime,
		       realtime->struct_size < sizeof(own) ? realtime->struct_size : sizeof(own));
	how.realtime = (struct fragi_realtime){
		.policy = (enum fragi_sched_policy)own.sched_policy,
		.priority = own.sched_priority,
		.runtime_ns = own.sched_runtime,
		.deadline_ns = own.sched_deadline != 0 ? own.sched_deadline : own.sched_period,
		.period_ns = own.sched_period,
	};
	how.cores = own.pin_cores;
	how.core_count = own.core_count;
	how.best_effort = own.best_effort != 0;
	if (own.sched_policy < FRAG_SCHED_FIFO || own.sched_policy > FRAG_SCHED_DEADLINE)
		flaw = "sched_policy is none of FRAG_SCHED_...; set one";
	else
		flaw = fragi_realtime_flaw(&how.realtime);
	if (flaw != NULL)
		return fragi_making_fail(pool->fragment, -EINVAL, NULL, NULL,
					 "thread pool \"%s\": %s", pool->name, flaw);
	return add_all(pool, &op, 1, &how);
}

/* Reports a name in the graph that no operator has, unless that follows from another error. */
static void refuse_unknown(struct frag_fragment *fragment, const struct frag_thread_pool *pool,
			   const struct fragi_spec_pool_member *member)
{
	const struct fragi_making *making = fragment->making;
	const char *names[64];
	char advice[400];
	size_t count = 0;

	if (making->no_composer || making->no_library ||
	    fragi_strmap_get(&making->bad_ops, member->op) != NULL)
		return;
	if (fragi_strmap_get(&making->subgraphs, member->op) != NULL) {
		fragi_making_fail(
			fragment, -EINVAL, member->place, NULL,
			"thread pool \"%s\": \"%s\" is an instance of a subgraph; name its operators, as %s_OPERATOR",
			pool->name, member->op, member->op);
		return;
	}
	for (uint32_t i = 0; i < fragment->made_count && count < FRAG_COUNT_OF(names); i++)
		names[count++] = fragment->made[i]->name;
	fragi_making_fail(
		fragment, -EINVAL, member->place, NULL,
		"thread pool \"%s\": unknown operator \"%s\"%s", pool->name, member->op,
		fragi_advise(advice, sizeof(advice), member->op, "operators", names, count));
}

static void add_entry(struct frag_thread_pool *pool, const struct fragi_spec_pool_entry *entry)
{
	struct frag_fragment *fragment = pool->fragment;
	const struct fragi_pool_place how = {
		.is_pinned = entry->pin_operator,
		.cores = entry->pin_cores,
		.core_count = entry->pin_core_count,
		.realtime = entry->realtime,
		.best_effort = entry->best_effort,
	};

	for (size_t i = 0; i < entry->member_count; i++) {
		const struct fragi_spec_pool_member *member = &entry->members[i];
		struct frag_op *op = fragi_strmap_get(&fragment->making->ops, member->op);

		if (op == NULL)
			refuse_unknown(fragment, pool, member);
		else
			add(pool, op, &how, member->place);
	}
}

static void make_of_graph(struct frag_fragment *fragment)
{
	const struct fragi_spec_fragment *own = fragment->own;
	const struct fragi_spec_thread_pool *spec;
	struct frag_thread_pool *pool;

	for (size_t i = 0; own != NULL && i < own->thread_pool_count; i++) {
		spec = &own->thread_pools[i];
		pool = make_pool(fragment, spec->name, spec->initial_size, spec->place);
		for (size_t k = 0; pool != NULL && k < spec->entry_count; k++)
			add_entry(pool, &spec->entries[k]);
	}
}

/* The threads that the operators of the pool share that are not pinned. */
static uint32_t shared_threads(const struct frag_thread_pool *pool)
{
	if (pool->initial_size > pool->pinned_count)
		return pool->initial_size - pool->pinned_count;
	return pool->shared_count > 0;
}

static void add_crew(struct frag_fragment *fragment, const struct fragi_crew *crew)
{
	fragment->crews[fragment->crew_count++] = *crew;
}

/* Makes the crews, pool by pool, and numbers the operators by them. */
static void make_crews(struct frag_fragment *fragment)
{
	size_t most = (size_t)fragment->pool_count + fragment->op_count;
	uint64_t threads = 0;

	for (uint32_t i = 0; i < fragment->pool_count; i++)
		threads += fragment->pools[i]->pinned_count + shared_threads(fragment->pools[i]);
	if (threads > FRAGI_POOL_THREADS_MAX) {
		fragi_making_fail(fragment, -EINVAL, fragment->pools[0]->place, NULL,
				  "its thread pools have %llu threads together; %u are allowed",
				  (unsigned long long)threads, FRAGI_POOL_THREADS_MAX);
		return;
	}
	fragment->crews = fragi_arena_alloc(&fragment->arena, most * sizeof(*fragment->crews));
	if (fragment->crews == NULL) {
		fragi_making_fail(fragment, -ENOMEM, NULL, NULL, "out of memory for thread pools");
		return;
	}
	for (uint32_t i = 0; i < fragment->pool_count; i++) {
		const struct frag_thread_pool *pool = fragment->pools[i];
		uint32_t shared = shared_threads(pool), crew = fragment->crew_count;

		if (shared > 0)
			add_crew(fragment,
				 &(struct fragi_crew){.pool = pool, .thread_count = shared});
		for (uint32_t k = 0; k < fragment->op_count; k++) {
			struct frag_op *op = fragment->ops[k];
			const struct fragi_pool_place *own = op->pool_place;

			if (own == NULL || own->pool != pool)
				continue;
			if (own->is_pinned)
				add_crew(fragment, &(struct fragi_crew){
							   pool, op, 1, own->cores, own->core_count,
							   own->realtime, own->best_effort});
			op->crew = own->is_pinned ? fragment->crew_count : crew + 1;
		}
	}
}

void fragi_thread_pools_complete(struct frag_fragment *fragment)
{
	make_of_graph(fragment);
	if (fragment->pool_count > 0)
		make_crews(fragment);
}

static const int64_t *integer_of(const struct frag_resource *resource, const char *name)
{
	const struct fragi_param_table table = {resource->type.params, resource->type.param_count,
						sizeof(struct frag_param)};

	for (uint32_t i = 0; i < table.count; i++) {
		struct frag_param param = fragi_param_at(&table, i);

		if (param.kind == FRAG_PARAM_KIND_I64 && strcmp(param.name, name) == 0)
			return (const void *)((const char *)resource->allocator.state +
					      param.offset);
	}
	return NULL;
}

/* Returns the GPU of a resource that has one by its dev_id; -1: it has none. */
static int64_t gpu_of(const struct frag_resource *resource)
{
	const int64_t device_storage = 1;
	const int64_t *gpu = integer_of(resource, "dev_id");
	const int64_t *storage = integer_of(resource, "storage_type");

	return gpu != NULL && (storage == NULL || *storage == device_storage) ? *gpu : -1;
}

/* Notes the first use of a GPU in a pool. Returns whether this one is of the same. */
static bool is_same_gpu(struct frag_thread_pool *pool, const struct frag_op *op, int64_t gpu)
{
	if (pool->first_use.op == NULL) {
		pool->first_use.op = op;
		pool->first_use.gpu = gpu;
	}
	return pool->first_use.gpu == gpu;
}

int fragi_thread_pool_use_gpu(struct frag_op *op, int64_t gpu)
{
	struct frag_thread_pool *pool = op->pool_place != NULL ? op->pool_place->pool : NULL;

	if (pool == NULL || is_same_gpu(pool, op, gpu))
		return 0;
	return frag_op_fail(
		op, -EINVAL,
		"it uses GPU %lld, and operator \"%s\" of the same thread pool \"%s\" GPU %lld; give operators of several GPUs pools of their own",
		(long long)gpu, pool->first_use.op->name, pool->name,
		(long long)pool->first_use.gpu);
}

static void check_gpu(struct frag_thread_pool *pool, const struct frag_op *op,
		      const struct frag_resource *resource)
{
	int64_t gpu = resource != NULL ? gpu_of(resource) : -1;

	if (gpu < 0 || is_same_gpu(pool, op, gpu))
		return;
	fragi_making_fail(
		pool->fragment, -EINVAL, pool->place, NULL,
		"thread pool \"%s\": operator \"%s\" uses GPU %lld (resource \"%s\") and operator \"%s\" GPU %lld; give operators of several GPUs pools of their own",
		pool->name, op->name, (long long)gpu, resource->name, pool->first_use.op->name,
		(long long)pool->first_use.gpu);
}

void fragi_thread_pools_check_gpus(struct frag_fragment *fragment)
{
	for (uint32_t i = 0; i < fragment->pool_count; i++) {
		for (uint32_t k = 0; k < fragment->op_count; k++) {
			const struct frag_op *op = fragment->ops[k];
			const struct fragi_param_table table = {
				op->type->params, op->type->param_count, op->type->param_size};

			if (op->pool_place == NULL || op->pool_place->pool != fragment->pools[i])
				continue;
			for (uint32_t j = 0; j < op->resource_count; j++)
				check_gpu(fragment->pools[i], op, op->resources[j]);
			for (uint32_t j = 0; op->state != NULL && j < table.count; j++) {
				struct frag_param param = fragi_param_at(&table, j);

				if (param.kind == FRAG_PARAM_KIND_RESOURCE)
					check_gpu(
						fragment->pools[i], op,
						*(struct frag_resource *const
							  *)(const void *)((const char *)op->state +
									   param.offset));
			}
		}
	}
}

uint32_t fragi_thread_pools_unpooled(const struct frag_fragment *fragment)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < fragment->op_count; i++)
		count += fragment->ops[i]->crew == 0;
	return count;
}
