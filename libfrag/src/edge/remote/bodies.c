// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>

#include <data/allocator.h>
#include <edge/remote/state.h>

/*
 * Memory for the bodies that arrive. A stream brings the same sizes again and again, and the C
 * library gives large blocks back to the kernel between two messages: their pages would be faulted
 * in and zeroed anew for each (a third of the cost of an 8 MiB message on loopback). So large
 * blocks are kept for the next message, newest first, because it is still in the cache. Small ones
 * are the C library's business, but for their alignment: asked for it, it cuts a larger block to
 * size, at five times the cost of the whole. Tensors hold references: the bodies outlive the
 * transport.
 *
 * A block is taken by the holder of the progress lock and given back by any thread.
 */
#define KEEP_FROM_BYTES (64u << 10)
#define KEPT_BYTES_MAX (64u << 20)
#define KEPT_MAX 64
#define ALIGN 64
#define HEAD_BYTES (ALIGN + sizeof(struct block)) /* room for it, and to align what follows */

/* lies before its memory */
struct block {
	void *start;
	size_t size;
};

struct bodies {
	struct fragi_allocator allocator; /* first: what a tensor knows of its resource */
	pthread_mutex_t lock;
	size_t kept_bytes;
	uint32_t count;
	struct block *kept[KEPT_MAX]; /* the newest last */
};

static void remove_locked(struct bodies *bodies, uint32_t i)
{
	bodies->kept_bytes -= bodies->kept[i]->size;
	bodies->count--;
	memmove(&bodies->kept[i], &bodies->kept[i + 1],
		(bodies->count - i) * sizeof(struct block *));
}

/* A block that fits and does not waste more than an eighth. */
static struct block *take_locked(struct bodies *bodies, size_t size)
{
	struct block *block;

	for (uint32_t i = bodies->count; i-- > 0;) {
		block = bodies->kept[i];
		if (block->size >= size && block->size - size <= block->size / 8) {
			remove_locked(bodies, i);
			return block;
		}
	}
	return NULL;
}

static struct block *block_create(size_t size)
{
	struct block *block;
	uintptr_t memory;
	void *start;

	if (size > SIZE_MAX - HEAD_BYTES)
		return NULL;
	start = size < KEEP_FROM_BYTES ? fragi_malloc(HEAD_BYTES + size)
				       : fragi_bulk_alloc(HEAD_BYTES + size);
	if (start == NULL)
		return NULL;
	memory = ((uintptr_t)start + HEAD_BYTES) & ~(uintptr_t)(ALIGN - 1);
	block = (struct block *)memory - 1;
	block->start = start;
	block->size = size;
	return block;
}

static int bodies_alloc(void *state, size_t size, void **out_memory)
{
	struct bodies *bodies = state;
	struct block *block = NULL;

	if (size >= KEEP_FROM_BYTES) {
		pthread_mutex_lock(&bodies->lock);
		block = take_locked(bodies, size);
		pthread_mutex_unlock(&bodies->lock);
	}
	if (block == NULL)
		block = block_create(size);
	if (block == NULL)
		return -ENOMEM;
	*out_memory = block + 1;
	return 0;
}

static void bodies_free(void *state, void *memory)
{
	struct bodies *bodies = state;
	struct block *block = (struct block *)memory - 1, *oldest[KEPT_MAX];
	uint32_t dropped = 0;

	if (block->size < KEEP_FROM_BYTES || block->size > KEPT_BYTES_MAX) {
		fragi_free(block->start);
		return;
	}
	pthread_mutex_lock(&bodies->lock);
	while (bodies->count == KEPT_MAX || bodies->kept_bytes + block->size > KEPT_BYTES_MAX) {
		oldest[dropped++] = bodies->kept[0];
		remove_locked(bodies, 0);
	}
	bodies->kept[bodies->count++] = block;
	bodies->kept_bytes += block->size;
	pthread_mutex_unlock(&bodies->lock);
	while (dropped > 0)
		fragi_free(oldest[--dropped]->start);
}

void *fragi_remote_bodies_take(struct frag_resource *bodies, size_t size)
{
	void *memory;

	return bodies_alloc(bodies, size, &memory) < 0 ? NULL : memory;
}

void fragi_remote_bodies_give_back(struct frag_resource *bodies, void *memory)
{
	if (memory != NULL)
		bodies_free(bodies, memory);
}

static void bodies_destroy(struct frag_resource *resource)
{
	struct bodies *bodies = (struct bodies *)(void *)resource;

	while (bodies->count > 0)
		fragi_free(bodies->kept[--bodies->count]->start);
	pthread_mutex_destroy(&bodies->lock);
	fragi_free(bodies);
}

struct frag_resource *fragi_remote_bodies_create(void)
{
	struct bodies *bodies = fragi_calloc(1, sizeof(*bodies));

	if (bodies == NULL)
		return NULL;
	atomic_init(&bodies->allocator.refs, 1);
	bodies->allocator.alloc = bodies_alloc;
	bodies->allocator.free = bodies_free;
	bodies->allocator.state = bodies;
	bodies->allocator.destroy = bodies_destroy;
	pthread_mutex_init(&bodies->lock, NULL);
	return (struct frag_resource *)(void *)bodies;
}
