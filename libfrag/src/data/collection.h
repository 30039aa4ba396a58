/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_COLLECTION_H
#define FRAGI_DATA_COLLECTION_H

#include <frag/collection.h>

#include <data/type.h>

/*
 * The value of a collection: this head, a slot for each part, then the parts in the order of their
 * slots, each aligned for its type. The parts of an array are its elements, those of a map its keys
 * and then its elements, in the order of the keys. A text is followed by a NUL, which its size does
 * not count. Gaps are zero.
 */
struct fragi_collection_slot {
	uint32_t offset; /* from the start of the value */
	uint32_t size;   /* bytes */
};
struct fragi_collection_head {
	uint32_t count; /* of elements */
	uint32_t parts; /* count; of a map 2 * count */
	struct fragi_collection_slot slots[];
};
#define FRAGI_COLLECTION_HEAD sizeof(struct fragi_collection_head)
#define FRAGI_COLLECTION_ALIGN 8u

/* The alignment of an element of that type in a collection, in bytes. */
static inline size_t fragi_element_align(const struct fragi_type_info *element)
{
	return element->type->align != 0 ? element->type->align : 8;
}

/*
 * Lays out a value, part by part.
 * - bytes: zeroed memory for the value; NULL: only computes how much that is
 * - used: bytes so far; more than `limit`: the value is too large, and nothing more is written
 */
struct fragi_layout {
	uint8_t *bytes;
	uint64_t used, limit;
	uint32_t part;
};

static inline struct fragi_layout fragi_layout_begin(void *bytes, uint64_t limit, uint64_t count,
						     uint64_t parts)
{
	struct fragi_collection_head *head = bytes;
	uint64_t used = FRAGI_COLLECTION_HEAD + parts * sizeof(head->slots[0]);

	if (bytes != NULL) {
		head->count = (uint32_t)count;
		head->parts = (uint32_t)parts;
	}
	return (struct fragi_layout){bytes, used, limit, 0};
}

/*
 * Makes room for the next part. Returns its address; NULL: the layout only computes, or the value
 * is too large.
 */
static inline uint8_t *fragi_layout_add(struct fragi_layout *layout, uint64_t size, size_t align,
					bool is_text)
{
	struct fragi_collection_head *head = (struct fragi_collection_head *)(void *)layout->bytes;
	uint64_t offset;

	if (layout->used > layout->limit || size > layout->limit) {
		layout->used = UINT64_MAX;
		return NULL;
	}
	offset = (layout->used + align - 1) / align * align;
	layout->used = offset + size + is_text;
	if (head == NULL || layout->used > layout->limit)
		return NULL;
	head->slots[layout->part++] =
		(struct fragi_collection_slot){(uint32_t)offset, (uint32_t)size};
	return layout->bytes + offset;
}

/* Returns whether `size` bytes hold all that the head and the slots of a value refer to. */
bool fragi_collection_is_whole(const struct fragi_type_info *info, const void *value, size_t size);

#endif
