// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <base/alloc.h>
#include <data/pinned_heap.h>

#define ALIGN 256u
#define HUGE_PAGE ((size_t)2 << 20)

struct fragi_pinned_span {
	unsigned char *at;
	size_t size;
	bool used;
	bool begins_area;
	size_t area_bytes; /* of an area of huge pages, which begins here; 0: it is the driver's */
};

static const struct frag_device pinned = {FRAG_DEVICE_CUDA_HOST, 0};

/* Makes room for one more span at `index`. */
static int insert_span(struct fragi_pinned_heap *heap, size_t index,
		       const struct fragi_pinned_span *span)
{
	size_t capacity = heap->span_capacity > 0 ? 2 * heap->span_capacity : 16;
	struct fragi_pinned_span *spans;

	if (heap->span_count == heap->span_capacity) {
		spans = fragi_realloc(heap->spans, capacity * sizeof(*spans));
		if (spans == NULL)
			return -ENOMEM;
		heap->spans = spans;
		heap->span_capacity = capacity;
	}
	memmove(&heap->spans[index + 1], &heap->spans[index],
		(heap->span_count - index) * sizeof(*span));
	heap->spans[index] = *span;
	heap->span_count++;
	return 0;
}

/* Joins span i with the one behind it, if both are free and of one area. */
static void join(struct fragi_pinned_heap *heap, size_t i)
{
	struct fragi_pinned_span *span = &heap->spans[i];

	if (i + 1 >= heap->span_count || span[0].used || span[1].used || span[1].begins_area)
		return;
	span->size += span[1].size;
	heap->span_count--;
	memmove(span + 1, span + 2, (heap->span_count - i - 1) * sizeof(*span));
}

static void huge_free(void *area, size_t size)
{
	if (area != NULL)
		(void)madvise(area, size, MADV_DOFORK);
	fragi_free(area);
}

/*
 * Memory of huge pages that is then pinned. After a fork, what this process writes would go to
 * copies of pages that the device still knows, so a child does not get them. NULL: refused.
 */
static void *huge_alloc(const struct fragi_memory *memory, size_t size)
{
	void *area = fragi_bulk_alloc(size);

	if (area != NULL && madvise(area, size, MADV_DONTFORK) == 0 &&
	    memory->pin(area, size, NULL) == 0)
		return area;
	huge_free(area, size);
	return NULL;
}

static int area_alloc(const struct fragi_pinned_heap *heap, size_t size,
		      struct fragi_pinned_span *span, struct frag_err *err)
{
	void *area = NULL;
	int r = 0;

	if (heap->huge_pages && heap->memory->pin != NULL && size % HUGE_PAGE == 0)
		area = huge_alloc(heap->memory, size);
	span->area_bytes = area != NULL ? size : 0;
	if (area == NULL)
		r = heap->memory->alloc(pinned, size, &area, err);
	span->at = area;
	span->size = size;
	return r;
}

static void area_free(const struct fragi_pinned_heap *heap, const struct fragi_pinned_span *span)
{
	if (span->area_bytes == 0) {
		heap->memory->free(pinned, span->at);
		return;
	}
	heap->memory->unpin(span->at);
	huge_free(span->at, span->area_bytes);
}

/* Adds an area with room for `size` bytes. */
static int grow(struct fragi_pinned_heap *heap, uint64_t size, struct frag_err *err)
{
	const uint64_t left = heap->max_bytes - heap->bytes;
	struct fragi_pinned_span span = {.begins_area = true};
	int r;

	if (size > left)
		return frag_err_set(err, -ENOMEM, "%llu bytes are more than the maximum",
				    (unsigned long long)size);
	if (heap->huge_pages && size % HUGE_PAGE != 0 && size < left - left % HUGE_PAGE)
		size += HUGE_PAGE - size % HUGE_PAGE;
	if (size < heap->step_bytes)
		size = heap->step_bytes < left ? heap->step_bytes : left;
	r = area_alloc(heap, (size_t)size, &span, err);
	if (r < 0)
		return r;
	r = insert_span(heap, heap->span_count, &span);
	if (r < 0)
		area_free(heap, &span);
	else
		heap->bytes += size;
	return r;
}

static size_t first_fit(const struct fragi_pinned_heap *heap, size_t size)
{
	size_t i = 0;

	while (i < heap->span_count && (heap->spans[i].used || heap->spans[i].size < size))
		i++;
	return i;
}

/* Returns 0 or -ENOMEM. Takes the first bytes of span i. */
static int take(struct fragi_pinned_heap *heap, size_t i, size_t size, void **out_memory)
{
	const struct fragi_pinned_span rest = {.at = heap->spans[i].at + size,
					       .size = heap->spans[i].size - size};

	if (rest.size > 0 && insert_span(heap, i + 1, &rest) < 0)
		return -ENOMEM;
	heap->spans[i].size = size;
	heap->spans[i].used = true;
	*out_memory = heap->spans[i].at;
	return 0;
}

int fragi_pinned_heap_init(struct fragi_pinned_heap *heap, const struct fragi_memory *memory,
			   uint64_t first_bytes, uint64_t max_bytes, struct frag_err *err)
{
	int r;

	heap->memory = memory;
	heap->step_bytes = first_bytes;
	heap->max_bytes = max_bytes;
	r = first_bytes > 0 ? grow(heap, first_bytes, err) : 0;
	if (r < 0)
		fragi_pinned_heap_fini(heap);
	return r;
}

static void free_areas(struct fragi_pinned_heap *heap)
{
	for (size_t i = 0; i < heap->span_count; i++)
		if (heap->spans[i].begins_area)
			area_free(heap, &heap->spans[i]);
	fragi_free(heap->spans);
	heap->spans = NULL;
	heap->span_count = heap->span_capacity = 0;
	heap->bytes = 0;
}

void fragi_pinned_heap_fini(struct fragi_pinned_heap *heap)
{
	free_areas(heap);
	memset(heap, 0, sizeof(*heap));
}

void fragi_pinned_heap_trim(struct fragi_pinned_heap *heap)
{
	size_t i = 0;

	fragi_lock_take(&heap->lock);
	while (i < heap->span_count && !heap->spans[i].used)
		i++;
	if (i == heap->span_count)
		free_areas(heap);
	fragi_lock_leave(&heap->lock);
}

int fragi_pinned_heap_alloc(struct fragi_pinned_heap *heap, size_t size, void **out_memory)
{
	size_t rounded = (size > 0 ? size - 1 : 0) / ALIGN * ALIGN + ALIGN, i;
	int r = 0;

	if (rounded < size)
		return -ENOMEM;
	fragi_lock_take(&heap->lock);
	i = first_fit(heap, rounded);
	if (i == heap->span_count)
		r = heap->memory != NULL ? grow(heap, rounded, NULL) : -ENOMEM;
	if (r == 0)
		r = take(heap, i, rounded, out_memory);
	fragi_lock_leave(&heap->lock);
	return r;
}

bool fragi_pinned_heap_free(struct fragi_pinned_heap *heap, void *memory)
{
	size_t i = 0;
	bool found;

	fragi_lock_take(&heap->lock);
	while (i < heap->span_count && (!heap->spans[i].used || heap->spans[i].at != memory))
		i++;
	found = i < heap->span_count;
	if (found) {
		heap->spans[i].used = false;
		join(heap, i);
		if (i > 0 && !heap->spans[i].begins_area)
			join(heap, i - 1);
	}
	fragi_lock_leave(&heap->lock);
	return found;
}
