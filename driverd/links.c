// SPDX-License-Identifier: Apache-2.0
#include <driverd/links.h>

#include <string.h>

#include <base/alloc.h>

struct drv_link *drv_links_add(struct drv_links *links)
{
	struct drv_link *link = fragi_calloc(1, sizeof(*link));

	if (link != NULL && links->count == links->capacity) {
		size_t capacity = links->capacity == 0 ? 64 : links->capacity * 2;
		struct drv_link **items = fragi_realloc(links->items, capacity * sizeof(*items));

		if (items == NULL) {
			fragi_free(link);
			return NULL;
		}
		links->items = items;
		links->capacity = capacity;
	}
	if (link == NULL)
		return NULL;
	link->id = ++links->last_id;
	links->items[links->count++] = link;
	links->strangers++;
	return link;
}

static size_t index_of(const struct drv_links *links, uint64_t id)
{
	size_t low = 0, high = links->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (links->items[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct drv_link *drv_links_find(const struct drv_links *links, uint64_t id)
{
	size_t i = index_of(links, id);

	return i < links->count && links->items[i]->id == id ? links->items[i] : NULL;
}

struct drv_link *drv_links_oldest_stranger(const struct drv_links *links)
{
	for (size_t i = 0; i < links->count; i++)
		if (!links->items[i]->admitted && !links->items[i]->closing)
			return links->items[i];
	return NULL;
}

void drv_links_admit(struct drv_links *links, struct drv_link *link)
{
	if (!link->admitted && !link->closing)
		links->strangers--;
	link->admitted = true;
}

void drv_links_close(struct drv_links *links, struct drv_link *link)
{
	if (!link->admitted && !link->closing)
		links->strangers--;
	link->closing = true;
}

void drv_links_remove(struct drv_links *links, struct drv_link *link)
{
	size_t i = index_of(links, link->id);

	drv_links_close(links, link);
	links->count--;
	memmove(links->items + i, links->items + i + 1, (links->count - i) * sizeof(*links->items));
	fragi_free(link);
}

void drv_links_fini(struct drv_links *links)
{
	fragi_free(links->items);
	*links = (struct drv_links){0};
}
