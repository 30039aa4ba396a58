// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "module.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * One memfd, as large as the machine's memory or as the limits of this process leave it, of which
 * the kernel only backs what was written. Peers map it once, read-only, and a body is then a place
 * in it: none is ever announced. Its seals keep it from shrinking under them, and from being mapped
 * for writing. Such memory cannot be given back to the kernel in parts: what was needed at most
 * stays until the process ends.
 *
 * The memory is cut into classes of sizes, four for each power of two. A block that is given back
 * goes to the blocks of its class. All that is known about blocks is in private memory, where no
 * peer sees or changes it.
 */
#define CHUNK_BYTES ((uint64_t)64 << 10) /* begins with a block, and has blocks of one class */
#define ALIGN 64u
#define STEPS 4u         /* classes for each power of two from ALIGN * STEPS on */
#define SMALL_CLASSES 3u /* multiples of ALIGN below that */
#define CLASSES 160u
#define SLAB_BYTES ((uint64_t)256 << 10) /* taken at once for blocks that are smaller */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define NO_CLASS UINT8_MAX
#define SIZE_MIN ((uint64_t)1 << 20) /* of a heap; a channel is smaller */
#define ADDRESS_SHARE 16u            /* of the address space, a heap has this part of it */

struct block_class {
	uint64_t *free;             /* offsets, the newest last */
	uint32_t free_count, count; /* count: of all blocks, for which there is room */
};

struct shm_heap {
	struct fragi_allocator allocator; /* first: what a tensor knows of its resource */
	int fd;
	uint8_t *base;
	uint64_t size;
	pthread_mutex_t lock; /* guards what follows */
	uint64_t used;
	uint8_t *chunk_class; /* by chunk */
	struct block_class classes[CLASSES];
	struct shm_areas areas; /* memory of devices */
};

static uint64_t class_bytes(uint32_t class)
{
	uint64_t octave;

	if (class < SMALL_CLASSES)
		return (uint64_t)ALIGN * (class + 1);
	class -= SMALL_CLASSES;
	octave = (uint64_t)ALIGN * STEPS << class / STEPS;
	return octave + octave / STEPS * (class % STEPS);
}

/* The smallest class that holds so many bytes; CLASSES: none. */
static uint32_t class_of(uint64_t bytes)
{
	uint32_t class;

	if (bytes <= (uint64_t)ALIGN * SMALL_CLASSES)
		return bytes == 0 ? 0 : (uint32_t)((bytes - 1) / ALIGN);
	/* the octave in which bytes - 1 lies; the first begins with ALIGN * STEPS = 2^8 */
	class = 63u - (uint32_t)__builtin_clzll(bytes - 1);
	class = SMALL_CLASSES + (class > 8 ? (class - 8) * STEPS : 0);
	while (class < CLASSES && class_bytes(class) < bytes)
		class ++;
	return class;
}

/* From here to heap_alloc: with the lock. */

/* Fresh blocks of a class. */
static int class_extend(struct shm_heap *heap, uint32_t index)
{
	struct block_class *class = &heap->classes[index];
	uint64_t bytes = class_bytes(index), run, at = heap->used, *free;
	uint32_t more;

	run = bytes < SLAB_BYTES ? SLAB_BYTES : (bytes + CHUNK_BYTES - 1) & ~(CHUNK_BYTES - 1);
	if (run > heap->size - at)
		return -ENOMEM;
	more = (uint32_t)(run / bytes);
	free = fragi_realloc(class->free, (class->count + more) * sizeof(*free));
	if (free == NULL)
		return -ENOMEM;
	class->free = free;
	class->count += more;
	heap->used += run;
	memset(heap->chunk_class + at / CHUNK_BYTES, (int)index, run / CHUNK_BYTES);
	for (uint32_t i = more; i-- > 0;)
		free[class->free_count++] = at + i * bytes;
	return 0;
}

static int take_locked(struct shm_heap *heap, uint32_t index, uint64_t *out_offset)
{
	struct block_class *class = &heap->classes[index];

	if (class->free_count == 0 && class_extend(heap, index) < 0)
		return -ENOMEM;
	*out_offset = class->free[--class->free_count];
	return 0;
}

static int heap_alloc(void *state, size_t size, void **out_memory)
{
	struct shm_heap *heap = state;
	uint32_t index = class_of(size);
	uint64_t offset;
	int r;

	if (index >= CLASSES || fragi_alloc_fails())
		return -ENOMEM;
	pthread_mutex_lock(&heap->lock);
	r = take_locked(heap, index, &offset);
	pthread_mutex_unlock(&heap->lock);
	if (r < 0)
		return r;
	*out_memory = heap->base + offset;
	SHM_STEP(BLOCK_TAKEN);
	return 0;
}

static void heap_free(void *state, void *memory)
{
	struct shm_heap *heap = state;
	uint64_t offset = (uint64_t)((uint8_t *)memory - heap->base);
	struct block_class *class;

	pthread_mutex_lock(&heap->lock);
	class = &heap->classes[heap->chunk_class[offset / CHUNK_BYTES]];
	class->free[class->free_count++] = offset;
	pthread_mutex_unlock(&heap->lock);
	SHM_STEP(BLOCK_GIVEN);
}

static int heap_alloc_on(void *state, struct frag_device device, size_t size, void **out_memory)
{
	struct shm_heap *heap = state;

	return device.type == FRAG_DEVICE_CPU
		       ? heap_alloc(heap, size, out_memory)
		       : shm_area_alloc(&heap->areas, device, size, out_memory);
}

static void heap_free_on(void *state, struct frag_device device, void *memory)
{
	struct shm_heap *heap = state;

	if (device.type == FRAG_DEVICE_CPU)
		heap_free(heap, memory);
	else
		shm_area_free(&heap->areas, memory);
}

static void heap_release(struct shm_heap *heap)
{
	for (uint32_t i = 0; i < CLASSES; i++)
		fragi_free(heap->classes[i].free);
	if (heap->base != NULL)
		munmap(heap->base, heap->size);
	if (heap->fd >= 0)
		close(heap->fd);
	fragi_free(heap->chunk_class);
	pthread_mutex_destroy(&heap->lock);
	pthread_mutex_destroy(&heap->areas.lock);
	fragi_free(heap);
}

static void heap_destroy(struct frag_resource *resource)
{
	heap_release((struct shm_heap *)(void *)resource);
}

static uint64_t machine_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	if (pages <= 0 || page <= 0)
		return (uint64_t)4 << 30;
	return (uint64_t)pages * (uint64_t)page;
}

/*
 * As much as the machine has, or as this process may have: a file beyond its limit would end it by
 * a signal, and the heaps of its peers need address space as well.
 */
static uint64_t heap_bytes(void)
{
	uint64_t bytes = machine_bytes();
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
		bytes = limit.rlim_cur;
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur / ADDRESS_SHARE < bytes)
		bytes = limit.rlim_cur / ADDRESS_SHARE;
	return bytes & ~(CHUNK_BYTES - 1);
}

static int heap_map(struct shm_heap *heap)
{
	if (heap->size < SIZE_MIN)
		return -EFBIG;
	heap->fd = memfd_create("frag-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (heap->fd < 0 || ftruncate(heap->fd, (off_t)heap->size) < 0)
		return -errno;
	heap->base = mmap(NULL, heap->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			  heap->fd, 0);
	if (heap->base == MAP_FAILED) {
		heap->base = NULL;
		return -errno;
	}
	if (fcntl(heap->fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	/* Where the kernel gives huge pages to shared memory at all, it does so when asked. */
	(void)madvise(heap->base, heap->size, MADV_HUGEPAGE);
	/* What an operator has in flight is of no use in a core file, and would make it huge. */
	(void)madvise(heap->base, heap->size, MADV_DONTDUMP);
	return 0;
}

int shm_heap_create(struct shm_heap **out_heap, struct frag_err *err)
{
	struct shm_heap *heap = fragi_calloc(1, sizeof(*heap));
	uint64_t needed;
	int r;

	if (heap == NULL)
		return frag_err_set(err, -ENOMEM, "there is no memory left for the shared heap");
	heap->fd = -1;
	heap->size = heap_bytes();
	needed = heap->size < SIZE_MIN ? ADDRESS_SHARE * SIZE_MIN : heap->size;
	pthread_mutex_init(&heap->lock, NULL);
	pthread_mutex_init(&heap->areas.lock, NULL);
	atomic_init(&heap->allocator.refs, 1);
	heap->allocator.alloc = heap_alloc;
	heap->allocator.free = heap_free;
	heap->allocator.alloc_on = heap_alloc_on;
	heap->allocator.free_on = heap_free_on;
	heap->allocator.state = heap;
	heap->allocator.destroy = heap_destroy;
	heap->chunk_class = fragi_malloc(heap->size / CHUNK_BYTES);
	r = heap->chunk_class == NULL ? -ENOMEM : heap_map(heap);
	if (r < 0) {
		heap_release(heap);
		return frag_err_set(
			err, r,
			"cannot make memory that hosts of this machine share (%s): a kernel of 5.1 or later, %llu MiB of address space and files of 1 MiB (ulimit -v, ulimit -f) are needed; use edge: ucx otherwise",
			frag_strerror(r), (unsigned long long)(needed >> 20));
	}
	memset(heap->chunk_class, NO_CLASS, heap->size / CHUNK_BYTES);
	*out_heap = heap;
	return 0;
}

void shm_heap_unref(struct shm_heap *heap)
{
	if (heap != NULL)
		fragi_resource_unref(shm_heap_resource(heap));
}

struct frag_resource *shm_heap_resource(struct shm_heap *heap)
{
	return (struct frag_resource *)(void *)heap;
}

int shm_heap_fd(const struct shm_heap *heap)
{
	return heap->fd;
}

struct shm_areas *shm_heap_areas(struct shm_heap *heap)
{
	return &heap->areas;
}

uint64_t shm_heap_size(const struct shm_heap *heap)
{
	return heap->size;
}

bool shm_heap_offset(const struct shm_heap *heap, const void *memory, uint64_t bytes,
		     uint64_t *out_offset)
{
	uintptr_t at = (uintptr_t)memory, base = (uintptr_t)heap->base;

	if (at < base || at - base > heap->size || bytes > heap->size - (at - base))
		return false;
	*out_offset = at - base;
	return true;
}
