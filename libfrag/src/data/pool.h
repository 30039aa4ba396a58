/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_POOL_H
#define FRAGI_DATA_POOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * Pools of small objects that are created on one thread and dropped on any. A thread takes objects
 * from its own pool without an atomic operation. An object that is dropped on another thread is
 * pushed on the return stack of its pool. The owner takes the whole stack at once when its own list
 * is empty, so no single node is ever popped and there is no ABA problem. A pool grows by slabs and
 * never shrinks. When a thread ends, the next new thread takes over its pools.
 */
enum fragi_pool_kind {
	FRAGI_POOL_MESSAGE,
	FRAGI_POOL_TENSOR,
	FRAGI_POOL_BLOB, /* encoded descriptors */
	FRAGI_POOL_BODY, /* the bytes of a small tensor that was received */
	FRAGI_POOL_TRAIL,
	FRAGI_POOL_KINDS
};

/* First member of a pooled object. New objects are zeroed; a returned one keeps its content. */
struct fragi_pooled {
	struct fragi_pool *pool;
	struct fragi_pooled *next;
};

struct fragi_pool {
	/* of the owning thread */
	struct fragi_pooled *free;
	struct fragi_slab *slabs;
	uint64_t total; /* objects in the slabs */
	enum fragi_pool_kind kind;
	/* guarded by the lock in pool.c */
	struct fragi_pool *next_pool, *next_orphan;
	int is_orphan;
	/* any thread */
	_Alignas(64) _Atomic(struct fragi_pooled *) returned;
};

extern __thread struct fragi_pool *fragi_pool_mine[FRAGI_POOL_KINDS]
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Takes an object when the thread's free list is empty. Returns NULL when memory is short. */
struct fragi_pooled *fragi_pool_refill(enum fragi_pool_kind kind);
/* Returns an object to the pool of another thread. */
void fragi_pool_give_back(struct fragi_pooled *object);

static inline void *fragi_pool_take(enum fragi_pool_kind kind)
{
	struct fragi_pool *pool = fragi_pool_mine[kind];
	struct fragi_pooled *object = pool != NULL ? pool->free : NULL;

	if (__builtin_expect(object == NULL, 0))
		return fragi_pool_refill(kind);
	pool->free = object->next;
	return object;
}

static inline void fragi_pool_give(enum fragi_pool_kind kind, struct fragi_pooled *object)
{
	struct fragi_pool *pool = fragi_pool_mine[kind];

	if (__builtin_expect(object->pool != pool, 0)) {
		fragi_pool_give_back(object);
		return;
	}
	object->next = pool->free;
	pool->free = object;
}

/*
 * For tests: returns how many objects of a kind are in use, in all pools. It is exact while no
 * thread takes or returns any.
 */
FRAGI_API uint64_t fragi_pool_live(enum fragi_pool_kind kind);

#if defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
/* Poison the part of an object that nobody may touch while it lies in a pool. */
#define fragi_pool_poison(from, size) __asan_poison_memory_region(from, size)
#define fragi_pool_unpoison(from, size) __asan_unpoison_memory_region(from, size)
#else
#define fragi_pool_poison(from, size) ((void)0)
#define fragi_pool_unpoison(from, size) ((void)0)
#endif

#endif
