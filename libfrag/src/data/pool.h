/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_POOL_H
#define FRAGI_DATA_POOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * Pools of small objects that are made on one thread and dropped on any. A thread takes from its
 * own pool without an atomic operation; an object dropped on another thread is pushed on its pool's
 * return stack, which the owner takes over as a whole when its own list is empty (so no node is
 * ever popped alone, and there is no ABA). A pool grows by slabs and never shrinks. When a thread
 * ends, its pools wait for the next new thread.
 */
enum fragi_pool_kind { FRAGI_POOL_MESSAGE, FRAGI_POOL_TENSOR, FRAGI_POOL_KINDS };

/*
 * First member of a pooled object. Objects are zeroed when new, and as they were left afterwards.
 */
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

struct fragi_pooled *fragi_pool_refill(enum fragi_pool_kind kind); /* NULL when memory is short */
void fragi_pool_give_back(struct fragi_pooled *object);            /* to another thread's pool */

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
 * How many objects of a kind are in use, in all pools; exact while no thread takes or gives. For
 * tests.
 */
FRAGI_API uint64_t fragi_pool_live(enum fragi_pool_kind kind);

#if defined(__has_feature) /* clang's way to say it */
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
/* The part of an object that is not to be touched while it lies in a pool. */
#define fragi_pool_poison(from, size) __asan_poison_memory_region(from, size)
#define fragi_pool_unpoison(from, size) __asan_unpoison_memory_region(from, size)
#else
#define fragi_pool_poison(from, size) ((void)0)
#define fragi_pool_unpoison(from, size) ((void)0)
#endif

#endif
