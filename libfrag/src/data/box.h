/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_BOX_H
#define FRAGI_DATA_BOX_H

#include <stdatomic.h>

#include <data/type.h>

/*
 * Reference-counted memory of one value. The value is written before the box is shared and never
 * afterwards, so that copies of a message share it, whatever it holds.
 */
#define FRAGI_BOX_ALIGN 16u /* of every value; more when its type asks for more */

struct fragi_box {
	_Atomic uint32_t refs;
	uint32_t offset; /* of the value, from the box's address */
	size_t capacity; /* bytes of memory for the value */
};

/*
 * A box for capacity bytes at the given alignment (a power of two), not zeroed; NULL when memory is
 * short.
 */
struct fragi_box *fragi_box_create(size_t capacity, size_t align);
/*
 * Drops a reference; the last one runs the type's fini on the value of size bytes (type NULL: the
 * box is empty) and frees the box.
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
