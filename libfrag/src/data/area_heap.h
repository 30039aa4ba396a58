/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_AREA_HEAP_H
#define FRAGI_DATA_AREA_HEAP_H

#include <stdbool.h>

#include <base/lock.h>
#include <data/area.h>

/*
 * Pieces of any size out of a few large areas of memory of a device, which takes the driver 50 us
 * and more to make, and pinned memory 0.5 ms for each MiB. Areas are added as they are needed, and
 * kept. What is known about pieces is in memory of the host, so the CPU need not reach the
 * device's. Zeroed: empty, to be initialised.
 */
struct fragi_area_span;

struct fragi_area_heap {
	struct fragi_lock lock;                 /* of all below */
	const struct fragi_area_source *source; /* constant; NULL: not initialised */
	struct frag_device device;              /* constant: of the areas */
	uint64_t step_bytes, max_bytes;         /* constant: of an area; of all of them */
	uint64_t page_bytes; /* constant: areas are multiples, if there is room; 0: any size */
	uint64_t bytes;      /* of all areas */
	struct fragi_area_span *spans; /* sorted by area, then by address */
	size_t span_count, span_capacity;
};

/* first_bytes: of the first area, made now; 0: none. Returns 0; -ENOMEM; -EIO. */
int fragi_area_heap_init(struct fragi_area_heap *heap, const struct fragi_area_source *source,
			 struct frag_device device, uint64_t first_bytes, uint64_t max_bytes,
			 struct frag_err *err);
/* All pieces have been given back. */
void fragi_area_heap_fini(struct fragi_area_heap *heap);
/* Gives all areas back, unless a piece is in use. Thread: any. */
void fragi_area_heap_trim(struct fragi_area_heap *heap);
/*
 * Memory aligned to 256 bytes. Returns 0; -ENOMEM: no piece is large enough, and max_bytes, or the
 * machine, has no more. Thread: any.
 */
int fragi_area_heap_alloc(struct fragi_area_heap *heap, size_t size, void **out_memory);
/* Returns the bytes that were asked for; 0: the memory is none of its pieces. Thread: any. */
size_t fragi_area_heap_free(struct fragi_area_heap *heap, void *memory);

#endif
