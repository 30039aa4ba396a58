// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <pthread.h>
#include <string.h>

#include <base/alloc.h>
#include <data/message.h>
#include <data/pool.h>
#include <data/tensor.h>
#include <data/trail.h>

#define SLAB_OBJECTS 32u
#define CACHE_LINE 64u

struct fragi_slab {
	struct fragi_slab *next;
	_Alignas(CACHE_LINE) unsigned char objects[];
};

static const struct {
	size_t size;
	void (*fini)(void *object); /* frees what an object keeps while it lies in the pool */
} kinds[FRAGI_POOL_KINDS] = {
	[FRAGI_POOL_MESSAGE] = {sizeof(struct frag_message), fragi_message_fini},
	[FRAGI_POOL_TENSOR] = {sizeof(struct frag_tensor), NULL},
	[FRAGI_POOL_BLOB] = {FRAGI_BLOB_POOLED, NULL},
	[FRAGI_POOL_BODY] = {sizeof(struct fragi_small_body), NULL},
	[FRAGI_POOL_TRAIL] = {sizeof(struct fragi_trail) +
				      FRAGI_TRAIL_POOLED * sizeof(struct fragi_trail_entry),
			      NULL},
};

__thread struct fragi_pool *fragi_pool_mine[FRAGI_POOL_KINDS]
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fragi_pool *pools, *orphans; /* guarded by lock */
static pthread_key_t thread_end;
static bool has_thread_end;

static size_t object_stride(enum fragi_pool_kind kind)
{
	return (kinds[kind].size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
}

static int pool_grow(struct fragi_pool *pool)
{
	size_t stride = object_stride(pool->kind);
	size_t size = offsetof(struct fragi_slab, objects) + SLAB_OBJECTS * stride;
	struct fragi_slab *slab = fragi_aligned_alloc(CACHE_LINE, size);
	struct fragi_pooled *object;

	if (slab == NULL)
		return -1;
	memset(slab, 0, size);
	slab->next = pool->slabs;
	pool->slabs = slab;
	pool->total += SLAB_OBJECTS;
	for (size_t i = SLAB_OBJECTS; i-- > 0;) {
		object = (struct fragi_pooled *)(void *)(slab->objects + i * stride);
		object->pool = pool;
		object->next = pool->free;
		pool->free = object;
	}
	return 0;
}

static struct fragi_pool *orphan_adopt(enum fragi_pool_kind kind)
{
	struct fragi_pool **at, *pool = NULL;

	pthread_mutex_lock(&lock);
	for (at = &orphans; *at != NULL && (*at)->kind != kind; at = &(*at)->next_orphan)
		;
	if (*at != NULL) {
		pool = *at;
		assert(pool->is_orphan);
		*at = pool->next_orphan;
		pool->is_orphan = 0;
	}
	pthread_mutex_unlock(&lock);
	return pool;
}

/* Gives this thread a pool: one that a thread which ended has left, or a new one. */
static struct fragi_pool *pool_acquire(enum fragi_pool_kind kind)
{
	struct fragi_pool *pool = orphan_adopt(kind);

	if (pool == NULL) {
		pool = fragi_aligned_alloc(CACHE_LINE, sizeof(*pool));
		if (pool == NULL)
			return NULL;
		memset(pool, 0, sizeof(*pool));
		pool->kind = kind;
		pthread_mutex_lock(&lock);
		pool->next_pool = pools;
		pools = pool;
		pthread_mutex_unlock(&lock);
	}
	fragi_pool_mine[kind] = pool;
	if (has_thread_end)
		pthread_setspecific(thread_end, fragi_pool_mine);
	return pool;
}

struct fragi_pooled *fragi_pool_refill(enum fragi_pool_kind kind)
{
	struct fragi_pool *pool = fragi_pool_mine[kind];
	struct fragi_pooled *object;

	if (pool == NULL)
		pool = pool_acquire(kind);
	if (pool == NULL)
		return NULL;
	if (pool->free == NULL)
		pool->free = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
	if (pool->free == NULL && pool_grow(pool) < 0)
		return NULL;
	object = pool->free;
	assert(object->pool == pool && pool->kind == kind && !pool->is_orphan);
	pool->free = object->next;
	return object;
}

void fragi_pool_give_back(struct fragi_pooled *object)
{
	struct fragi_pool *pool = object->pool;
	struct fragi_pooled *top = atomic_load_explicit(&pool->returned, memory_order_relaxed);

	do {
		object->next = top;
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->returned, &top, object, memory_order_release, memory_order_relaxed));
}

static uint64_t list_length(const struct fragi_pooled *object)
{
	uint64_t n = 0;

	for (; object != NULL; object = object->next)
		n++;
	return n;
}

uint64_t fragi_pool_live(enum fragi_pool_kind kind)
{
	uint64_t live = 0;

	pthread_mutex_lock(&lock);
	for (struct fragi_pool *pool = pools; pool != NULL; pool = pool->next_pool)
		if (pool->kind == kind)
			live += pool->total - list_length(pool->free) -
				list_length(atomic_load_explicit(&pool->returned,
								 memory_order_acquire));
	pthread_mutex_unlock(&lock);
	return live;
}

/*
 * Runs when a thread ends: leaves its pools for the next new thread. It runs again when a later
 * destructor of the thread creates messages.
 */
static void leave_pools(void *unused)
{
	struct fragi_pool *pool;

	(void)unused;
	pthread_mutex_lock(&lock);
	for (size_t kind = 0; kind < FRAGI_POOL_KINDS; kind++) {
		pool = fragi_pool_mine[kind];
		fragi_pool_mine[kind] = NULL;
		if (pool == NULL)
			continue;
		assert(pool->kind == kind && !pool->is_orphan);
		pool->is_orphan = 1;
		pool->next_orphan = orphans;
		orphans = pool;
	}
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void pools_init(void)
{
	has_thread_end = pthread_key_create(&thread_end, leave_pools) == 0;
}

static void pool_destroy(struct fragi_pool *pool)
{
	struct fragi_slab *slab, *next;

	for (slab = pool->slabs; slab != NULL; slab = next) {
		next = slab->next;
		for (size_t i = 0; kinds[pool->kind].fini != NULL && i < SLAB_OBJECTS; i++)
			kinds[pool->kind].fini(slab->objects + i * object_stride(pool->kind));
		fragi_pool_unpoison(slab->objects, SLAB_OBJECTS * object_stride(pool->kind));
		fragi_free(slab);
	}
	fragi_free(pool);
}

/*
 * Runs when the library is unloaded or the process ends. Other threads may still run, so it frees
 * only pools that no thread owns and all of whose objects have been returned.
 */
__attribute__((destructor)) static void pools_fini(void)
{
	struct fragi_pool **at = &pools, *pool;

	if (has_thread_end)
		pthread_key_delete(thread_end);
	has_thread_end = false;
	leave_pools(NULL);
	pthread_mutex_lock(&lock);
	while (*at != NULL) {
		pool = *at;
		if (pool->is_orphan &&
		    list_length(pool->free) + list_length(atomic_load(&pool->returned)) ==
			    pool->total) {
			*at = pool->next_pool;
			pool_destroy(pool);
		} else {
			at = &pool->next_pool;
		}
	}
	orphans = NULL;
	pthread_mutex_unlock(&lock);
}
