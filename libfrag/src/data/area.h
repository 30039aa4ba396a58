/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_AREA_H
#define FRAGI_DATA_AREA_H

#include <data/allocator.h>
#include <data/memory.h>

/* Memory of a device that a pool takes at once. */
struct fragi_area {
	void *memory;
	struct frag_resource *from; /* a reference; NULL: no resource */
	size_t pinned_bytes;        /* of pages that its source pinned; 0: it did not */
};

/* Where areas come from. Thread: any. */
struct fragi_area_source {
	/* As alloc of struct fragi_memory. */
	int (*take)(struct frag_device device, size_t size, struct fragi_area *out,
		    struct frag_err *err);
	/* NULL as memory is accepted. */
	void (*give)(struct frag_device device, const struct fragi_area *area);
};

/* The device's own memory. */
extern const struct fragi_area_source fragi_area_own;
/*
 * From where other hosts of this machine can map it, if there are such hosts and it can be had;
 * else the device's own.
 */
extern const struct fragi_area_source fragi_area_shared;

#endif
