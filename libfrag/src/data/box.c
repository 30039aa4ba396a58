// SPDX-License-Identifier: Apache-2.0
#include <base/alloc.h>
#include <data/box.h>

struct fragi_box *fragi_box_create(size_t capacity, size_t align)
{
	size_t offset = sizeof(struct fragi_box);
	struct fragi_box *box;

	if (align < FRAGI_BOX_ALIGN)
		align = FRAGI_BOX_ALIGN;
	offset = (offset + align - 1) & ~(align - 1);
	if (capacity > PTRDIFF_MAX - offset)
		return NULL;
	box = align == FRAGI_BOX_ALIGN ? fragi_malloc(offset + capacity)
				       : fragi_aligned_alloc(align, offset + capacity);
	if (box == NULL)
		return NULL;
	atomic_init(&box->refs, 1);
	box->offset = (uint32_t)offset;
	box->capacity = capacity;
	return box;
}

void fragi_box_unref(struct fragi_box *box, const struct frag_type *type, size_t size)
{
	if (atomic_fetch_sub_explicit(&box->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (type != NULL && type->fini != NULL)
		fragi_value_fini(type, fragi_box_value(box), size);
	fragi_free(box);
}
