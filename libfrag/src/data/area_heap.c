// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <data/area_heap.h>

#define ALIGN 256u

struct fragi_area_span {
	unsigned char *at;
	size_t size;
	size_t asked;           /* bytes, 1 at least; 0: it is free */
	struct fragi_area area; /* that begins here; no memory: none does */
};

/* Makes room for one more span at `index`. */
static int insert_span(struct fragi_area_heap *heap, size_t index,
		       const struct fragi_area_span *span)
{
	size_t capacity = heap->span_capacity > 0 ? 2 * heap->span_capacity : 16;
	struct fragi_area_span *spans;

	if (heap->span_count == heap->span_capacity) {
		spans = fragi_realloc(heap->spans, capacity * sizeof(*spans));
		if (spans == NULL)
			return -ENOMEM;
		heap->spans = spans;
		heap->span_capacity = capacity;
	}
	assert(index <= heap->span_count && heap->span_count < heap->span_capacity);
	memmove(&heap->spans[index + 1], &heap->spans[index],
		(heap->span_count - index) * sizeof(*span));
	heap->spans[index] = *span;
	heap->span_count++;
	return 0;
}

/* Joins span i with the one behind it, if both are free and of one area. */
static void join(struct fragi_area_heap *heap, size_t i)
{
	struct fragi_area_span *span = &heap->spans[i];

	if (i + 1 >= heap->span_count || span[0].asked > 0 || span[1].asked > 0 ||
	    span[1].area.memory != NULL)
		return;
	assert(span[0].at + span[0].size == span[1].at);
	span->size += span[1].size;
	heap->span_count--;
	memmove(span + 1, span + 2, (heap->span_count - i - 1) * sizeof(*span));
}

/* Adds an area with room for `size` bytes. */
static int grow(struct fragi_area_heap *heap, uint64_t size, struct frag_err *err)
{
	const uint64_t left = heap->max_bytes - heap->bytes;
	struct fragi_area_span span = {0};
	int r;

	assert(heap->bytes <= heap->max_bytes);
	if (size > left)
		return frag_err_set(err, -ENOMEM, "%llu bytes are more than the maximum",
				    (unsigned long long)size);
	if (heap->page_bytes > 0 && size % heap->page_bytes != 0 &&
	    size < left - left % heap->page_bytes)
		size += heap->page_bytes - size % heap->page_bytes;
	if (size < heap->step_bytes)
		size = heap->step_bytes < left ? heap->step_bytes : left;
	r = heap->source->take(heap->device, (size_t)size, &span.area, err);
	if (r < 0)
		return r;
	span.at = span.area.memory;
	span.size = (size_t)size;
	r = insert_span(heap, heap->span_count, &span);
	if (r < 0)
		heap->source->give(heap->device, &span.area);
	else
		heap->bytes += size;
	return r;
}

static size_t first_fit(const struct fragi_area_heap *heap, size_t size)
{
	size_t i = 0;

	while (i < heap->span_count && (heap->spans[i].asked > 0 || heap->spans[i].size < size))
		i++;
	return i;
}

/* Returns 0 or -ENOMEM. Takes the first bytes of span i. */
static int take(struct fragi_area_heap *heap, size_t i, size_t size, size_t asked,
		void **out_memory)
{
	const struct fragi_area_span rest = {.at = heap->spans[i].at + size,
					     .size = heap->spans[i].size - size};

	assert(heap->spans[i].asked == 0 && heap->spans[i].size >= size && asked > 0);
	if (rest.size > 0 && insert_span(heap, i + 1, &rest) < 0)
		return -ENOMEM;
	heap->spans[i].size = size;
	heap->spans[i].asked = asked;
	*out_memory = heap->spans[i].at;
	return 0;
}

int fragi_area_heap_init(struct fragi_area_heap *heap, const struct fragi_area_source *source,
			 struct frag_device device, uint64_t first_bytes, uint64_t max_bytes,
			 struct frag_err *err)
{
	int r;

	heap->source = source;
	heap->device = device;
	heap->step_bytes = first_bytes;
	heap->max_bytes = max_bytes;
	r = first_bytes > 0 ? grow(heap, first_bytes, err) : 0;
	if (r < 0)
		fragi_area_heap_fini(heap);
	return r;
}

static void free_areas(struct fragi_area_heap *heap)
{
	for (size_t i = 0; i < heap->span_count; i++)
		if (heap->spans[i].area.memory != NULL)
			heap->source->give(heap->device, &heap->spans[i].area);
	fragi_free(heap->spans);
	heap->spans = NULL;
	heap->span_count = heap->span_capacity = 0;
	heap->bytes = 0;
}

void fragi_area_heap_fini(struct fragi_area_heap *heap)
{
	free_areas(heap);
	memset(heap, 0, sizeof(*heap));
}

void fragi_area_heap_trim(struct fragi_area_heap *heap)
{
	size_t i = 0;

	fragi_lock_take(&heap->lock);
	while (i < heap->span_count && heap->spans[i].asked == 0)
		i++;
	if (i == heap->span_count)
		free_areas(heap);
	fragi_lock_leave(&heap->lock);
}

int fragi_area_heap_alloc(struct fragi_area_heap *heap, size_t size, void **out_memory)
{
	size_t rounded = (size > 0 ? size - 1 : 0) / ALIGN * ALIGN + ALIGN, i;
	int r = 0;

	if (rounded < size)
		return -ENOMEM;
	fragi_lock_take(&heap->lock);
	i = first_fit(heap, rounded);
	if (i == heap->span_count)
		r = heap->source != NULL ? grow(heap, rounded, NULL) : -ENOMEM;
	if (r == 0)
		r = take(heap, i, rounded, size > 0 ? size : 1, out_memory);
	fragi_lock_leave(&heap->lock);
	return r;
}

size_t fragi_area_heap_free(struct fragi_area_heap *heap, void *memory)
{
	size_t i = 0, asked = 0;

	fragi_lock_take(&heap->lock);
	while (i < heap->span_count && (heap->spans[i].asked == 0 || heap->spans[i].at != memory))
		i++;
	if (i < heap->span_count) {
		asked = heap->spans[i].asked;
		heap->spans[i].asked = 0;
		join(heap, i);
		if (i > 0 && heap->spans[i].area.memory == NULL)
			join(heap, i - 1);
	}
	fragi_lock_leave(&heap->lock);
	return asked;
}
