/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_BOX_H
#define FRAGI_DATA_BOX_H

#include <stdatomic.h>

#include <data/type.h>

/*
 * A box: reference-counted memory of one value. The value is written before the box is shared and
 * never afterwards, so copies of a message can share it, whatever its type.
 */
/* Alignment of every value, in bytes; more when its type asks for more. */
#define FRAGI_BOX_ALIGN 16u

struct fragi_box {
	_Atomic uint32_t refs;
	uint32_t offset; /* bytes from the box to the value */
	size_t capacity; /* bytes of memory for the value */
};

/*
 * Creates a box for a value of up to `capacity` bytes, not zeroed.
 * - align: of the value, a power of two
 * Returns one reference, or NULL when memory is short.
 */
struct fragi_box *fragi_box_create(size_t capacity, size_t align);
/*
 * Drops a reference. The last one calls the type's fini on the value and frees the box.
 * - type: of the value; NULL: the box is empty
 * - size: bytes of the value
 */
void fragi_box_unref(struct fragi_box *box, const struct frag_type *type, size_t size);

static inline void *fragi_box_value(struct fragi_box *box)
{
	return (char *)box + box->offset;
}

static inline struct fragi_box *fragi_box_ref(struct fragi_box *box)
{
	atomic_fetch_add_explicit(&box->refs, 1, memory_order_relaxed);
	return box;
}

static inline bool fragi_box_is_mine(struct fragi_box *box)
{
	return atomic_load_explicit(&box->refs, memory_order_acquire) == 1;
}

#endif
