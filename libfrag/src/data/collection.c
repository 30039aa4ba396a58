// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* qsort_r */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <data/collection.h>

/* Reading. */

static const void *part_at(const struct fragi_collection_head *head, uint32_t part,
			   size_t *out_size)
{
	if (out_size != NULL)
		*out_size = head->slots[part].size;
	return (const char *)head + head->slots[part].offset;
}

static bool is_map(const struct fragi_collection_head *head)
{
	return head->parts > head->count;
}

uint32_t frag_collection_count(const void *value)
{
	return ((const struct fragi_collection_head *)value)->count;
}

const void *frag_collection_at(const void *value, uint32_t i, size_t *out_size)
{
	const struct fragi_collection_head *head = value;

	return i < head->count ? part_at(head, head->parts - head->count + i, out_size) : NULL;
}

const char *frag_collection_key(const void *value, uint32_t i)
{
	const struct fragi_collection_head *head = value;

	return i < head->count && is_map(head) ? part_at(head, i, NULL) : NULL;
}

const void *frag_collection_get(const void *value, const char *key, size_t *out_size)
{
	const struct fragi_collection_head *head = value;
	uint32_t from = 0, to = is_map(head) ? head->count : 0, middle;
	int order;

	while (from < to) {
		middle = from + (to - from) / 2;
		order = strcmp(key, part_at(head, middle, NULL));
		if (order == 0)
			return frag_collection_at(value, middle, out_size);
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return NULL;
}

/* A text in `size` bytes: the NUL after it is there. */
static bool text_is_whole(const struct fragi_collection_slot *slot, const char *value, size_t size)
{
	uint64_t end = (uint64_t)slot->offset + slot->size;

	return end < size && value[end] == '\0';
}

static bool element_is_whole(const struct fragi_collection_slot *slot,
			     const struct fragi_type_info *element, const char *value, size_t size)
{
	if (slot->offset % fragi_element_align(element) != 0 ||
	    (uint64_t)slot->offset + slot->size > size)
		return false;
	return element->kind == FRAGI_TYPE_STRING
		       ? text_is_whole(slot, value, size)
		       : fragi_type_check_size(element->type, slot->size) == 0;
}

bool fragi_collection_is_whole(const struct fragi_type_info *info, const void *value, size_t size)
{
	const struct fragi_collection_head *head = value;
	uint32_t keys;

	if (size < sizeof(*head))
		return false;
	keys = info->kind == FRAGI_TYPE_MAP ? head->count : 0;
	if ((uint64_t)head->count + keys != head->parts ||
	    head->parts > (size - sizeof(*head)) / sizeof(head->slots[0]))
		return false;
	for (uint32_t i = 0; i < head->parts; i++)
		if (i < keys ? !text_is_whole(&head->slots[i], value, size)
			     : !element_is_whole(&head->slots[i], info->element, value, size))
			return false;
	return true;
}

/* Building. */

/* An element, and the key of a map, whose bytes lie in frag_collection.bytes. */
struct entry {
	size_t key, key_size; /* the key ends with a NUL, which key_size does not count */
	size_t value, size;
	size_t number; /* in the order in which they were put */
};

struct frag_collection {
	const struct fragi_type_info *info;
	struct entry *entries;
	size_t count, capacity;
	uint8_t *bytes;
	size_t used, room; /* bytes */
	void *value;       /* memory for the value */
	size_t value_capacity;
};

int frag_collection_create(const char *type, struct frag_collection **out, struct frag_err *err)
{
	const struct frag_type *found = frag_type_find(type);
	const struct fragi_type_info *info = found != NULL ? fragi_type_info(found) : NULL;
	const char *why = fragi_type_why_not(type);

	if (info == NULL)
		return frag_err_set(err, -EINVAL, "no type \"%.80s\" is registered; %s", type,
				    why != NULL ? why : "register the type of its elements first");
	if (!fragi_type_is_collection(info))
		return frag_err_set(
			err, -EINVAL,
			"type \"%.80s\" is no collection: its values need not be built; take an array of arrays, texts or bytes, or a map",
			type);
	*out = fragi_calloc(1, sizeof(**out));
	if (*out == NULL)
		return frag_err_set(err, -ENOMEM, "no collection can be made: there is no memory");
	(*out)->info = info;
	return 0;
}

void frag_collection_destroy(struct frag_collection *collection)
{
	if (collection == NULL)
		return;
	fragi_free(collection->entries);
	fragi_free(collection->bytes);
	fragi_free(collection->value);
	fragi_free(collection);
}

const struct frag_type *frag_collection_type(const struct frag_collection *collection)
{
	return collection->info->type;
}

void frag_collection_clear(struct frag_collection *collection)
{
	collection->count = 0;
	collection->used = 0;
}

/* Copies bytes, and a NUL after them if they are a text, to the end. The room is there. */
static size_t append(struct frag_collection *collection, const void *bytes, size_t size,
		     bool is_text)
{
	size_t at = collection->used;

	assert(size + is_text <= collection->room - at);
	if (size > 0)
		memcpy(collection->bytes + at, bytes, size);
	if (is_text)
		collection->bytes[at + size] = '\0';
	collection->used += size + is_text;
	return at;
}

/* Makes room for one more entry, and for `size` more bytes. */
static int reserve(struct frag_collection *collection, size_t size)
{
	size_t capacity = collection->capacity * 2 + 8, room = collection->used + size;
	void *memory;

	if (size > FRAG_COLLECTION_BYTES_MAX || room > FRAG_COLLECTION_BYTES_MAX)
		return -EMSGSIZE;
	if (collection->count == collection->capacity) {
		memory = fragi_realloc(collection->entries, capacity * sizeof(struct entry));
		if (memory == NULL)
			return -ENOMEM;
		collection->entries = memory;
		collection->capacity = capacity;
	}
	if (room > collection->room) {
		room += room / 2 + 64;
		memory = fragi_realloc(collection->bytes, room);
		if (memory == NULL)
			return -ENOMEM;
		collection->bytes = memory;
		collection->room = room;
	}
	return 0;
}

static int put(struct frag_collection *collection, const char *key, size_t key_size,
	       const void *value, size_t size)
{
	const struct fragi_type_info *element = collection->info->element;
	bool is_text = element->kind == FRAGI_TYPE_STRING;
	struct entry *entry;
	int r;

	if ((value == NULL && size > 0) || fragi_type_check_size(element->type, size) < 0)
		return -EINVAL;
	if (size > FRAG_COLLECTION_BYTES_MAX || key_size > FRAG_COLLECTION_BYTES_MAX)
		return -EMSGSIZE;
	r = reserve(collection, key_size + 1 + size + is_text);
	if (r < 0)
		return r;
	entry = &collection->entries[collection->count];
	entry->number = collection->count++;
	entry->key = append(collection, key, key_size, true);
	entry->key_size = key_size;
	entry->value = append(collection, value, size, is_text);
	entry->size = size;
	return 0;
}

int frag_collection_add(struct frag_collection *collection, const void *value, size_t size)
{
	if (collection->info->kind != FRAGI_TYPE_LIST)
		return -EINVAL;
	return put(collection, "", 0, value, size);
}

int frag_collection_put(struct frag_collection *collection, const char *key, const void *value,
			size_t size)
{
	if (collection->info->kind != FRAGI_TYPE_MAP || key == NULL)
		return -EINVAL;
	return put(collection, key, strlen(key), value, size);
}

/* By key; of equal ones in the order in which they were put. */
static int by_key(const void *a, const void *b, void *collection)
{
	const struct frag_collection *of = collection;
	const struct entry *x = a, *y = b;
	int order = strcmp((const char *)of->bytes + x->key, (const char *)of->bytes + y->key);

	return order != 0 ? order : x->number < y->number ? -1 : x->number > y->number;
}

/* Sorts the entries of a map, and keeps the last one of each key. */
static void sort(struct frag_collection *collection)
{
	struct entry *entries = collection->entries;
	size_t kept = 0;

	if (collection->count == 0)
		return;
	qsort_r(entries, collection->count, sizeof(*entries), by_key, collection);
	for (size_t i = 1; i < collection->count; i++) {
		if (strcmp((const char *)collection->bytes + entries[kept].key,
			   (const char *)collection->bytes + entries[i].key) != 0)
			kept++;
		entries[kept] = entries[i];
	}
	collection->count = kept + 1;
	for (size_t i = 0; i < collection->count; i++)
		entries[i].number = i;
}

/* Lays the entries out in `bytes`, or only computes their size. Returns the bytes. */
static uint64_t lay_out(const struct frag_collection *collection, void *bytes)
{
	const struct fragi_type_info *element = collection->info->element;
	bool is_map = collection->info->kind == FRAGI_TYPE_MAP;
	struct fragi_layout layout =
		fragi_layout_begin(bytes, FRAG_COLLECTION_BYTES_MAX, collection->count,
				   collection->count * (is_map ? 2 : 1));
	const struct entry *entry;
	uint8_t *at;

	for (size_t i = 0; i < collection->count && is_map; i++) {
		entry = &collection->entries[i];
		at = fragi_layout_add(&layout, entry->key_size, 1, true);
		if (at != NULL)
			memcpy(at, collection->bytes + entry->key, entry->key_size);
	}
	for (size_t i = 0; i < collection->count; i++) {
		entry = &collection->entries[i];
		at = fragi_layout_add(&layout, entry->size, fragi_element_align(element),
				      element->kind == FRAGI_TYPE_STRING);
		if (at != NULL)
			memcpy(at, collection->bytes + entry->value, entry->size);
	}
	return layout.used;
}

int frag_collection_value(struct frag_collection *collection, const void **out_value,
			  size_t *out_size)
{
	uint64_t size;
	void *value;

	if (collection->info->kind == FRAGI_TYPE_MAP)
		sort(collection);
	size = lay_out(collection, NULL);
	if (size > FRAG_COLLECTION_BYTES_MAX)
		return -EMSGSIZE;
	if (size > collection->value_capacity || collection->value == NULL) {
		value = fragi_aligned_alloc(FRAGI_TYPE_ALIGN_MAX, size);
		if (value == NULL)
			return -ENOMEM;
		fragi_free(collection->value);
		collection->value = value;
		collection->value_capacity = size;
	}
	memset(collection->value, 0, size);
	lay_out(collection, collection->value);
	*out_value = collection->value;
	*out_size = size;
	return 0;
}
