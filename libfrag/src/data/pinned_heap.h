/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_PINNED_HEAP_H
#define FRAGI_DATA_PINNED_HEAP_H

#include <stdbool.h>

#include <base/lock.h>
#include <data/memory.h>

/*
 * Pieces of any size out of a few large areas of pinned memory, which takes the driver 50 us and
 * more to make, and 0.5 ms for each MiB. Areas are added as they are needed, and kept. With
 * huge_pages they are made in a third of that time, and the CPU copies in and out of them faster;
 * where the driver refuses such pages, areas are its own. Zeroed: empty, to be initialised.
 */
struct fragi_pinned_span;

struct fragi_pinned_heap {
	struct fragi_lock lock;            /* of all below */
	const struct fragi_memory *memory; /* constant; NULL: not initialised */
	uint64_t step_bytes, max_bytes;    /* constant: of an area; of all of them */
	bool huge_pages;                   /* constant: kernels do not use the memory (memory.h) */
	uint64_t bytes;                    /* of all areas */
	struct fragi_pinned_span *spans;   /* sorted by area, then by address */
	size_t span_count, span_capacity;
};

/* first_bytes: of the first area, made now; 0: none. Returns 0; -ENOMEM; -EIO. */
int fragi_pinned_heap_init(struct fragi_pinned_heap *heap, const struct fragi_memory *memory,
			   uint64_t first_bytes, uint64_t max_bytes, struct frag_err *err);
/* All pieces have been given back. */
void fragi_pinned_heap_fini(struct fragi_pinned_heap *heap);
/* Gives all areas back to the driver, unless a piece is in use. Thread: any. */
void fragi_pinned_heap_trim(struct fragi_pinned_heap *heap);
/*
 * Memory aligned to 256 bytes. Returns 0; -ENOMEM: no piece is large enough, and max_bytes, or the
 * machine, has no more. Thread: any.
 */
int fragi_pinned_heap_alloc(struct fragi_pinned_heap *heap, size_t size, void **out_memory);
/* Returns false when the memory is none of its pieces. Thread: any. */
bool fragi_pinned_heap_free(struct fragi_pinned_heap *heap, void *memory);

#endif
