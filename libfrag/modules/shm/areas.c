// SPDX-License-Identifier: Apache-2.0
#include "module.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "edge"
#include <base/log.h>

/*
 * Memory of devices that this host hands over lies in areas: what a pool takes at once is one. A
 * host shows its areas to a peer when it connects, each with a descriptor; the peer maps those of
 * GPUs that it uses itself, read-only, and says in its channel which. From then on a body is a
 * place in an area, as it is one in the heap. Areas that are made later, or beyond as many as there
 * can be, are not handed over.
 *
 * An area is found by its address on any thread without a lock, so its place in the table is set
 * once and never used again.
 */
int shm_area_alloc(struct shm_areas *areas, struct frag_device device, size_t size,
		   void **out_memory)
{
	const struct fragi_memory *memory = fragi_memory_of(device);
	struct frag_err err = FRAG_ERR_INIT;
	struct shm_area *area;
	uint32_t number;
	size_t bytes;
	int r;

	if (memory == NULL || memory->shared == NULL)
		return -EXDEV;
	pthread_mutex_lock(&areas->lock);
	number = atomic_load_explicit(&areas->count, memory_order_relaxed);
	area = &areas->all[number];
	r = number == SHM_AREAS_MAX
		    ? frag_err_set(&err, -ENOTSUP, "a host shares %d areas of GPUs at most",
				   SHM_AREAS_MAX)
		    : memory->shared->alloc(device, size, out_memory, &bytes, &err);
	if (r == 0) {
		area->device = device;
		area->base = (uintptr_t)*out_memory;
		atomic_store_explicit(&area->bytes, bytes, memory_order_relaxed);
		atomic_store_explicit(&areas->count, number + 1, memory_order_release);
	}
	pthread_mutex_unlock(&areas->lock);
	if (r < 0 && err.text[0] != '\0')
		log_info(
			NULL,
			"memory of a GPU is not shared with other hosts, so tensors in it are copied when they go there: %s",
			err.text);
	return r;
}

void shm_area_free(struct shm_areas *areas, void *memory)
{
	struct shm_area *area;
	int number = shm_area_find(areas, memory, 1);
	size_t bytes;

	pthread_mutex_lock(&areas->lock);
	area = &areas->all[number];
	bytes = atomic_exchange_explicit(&area->bytes, 0, memory_order_relaxed);
	fragi_memory_of(area->device)->shared->free(area->device, memory, bytes);
	pthread_mutex_unlock(&areas->lock);
}

int shm_area_find(const struct shm_areas *areas, const void *memory, uint64_t bytes)
{
	uint32_t count = atomic_load_explicit(&areas->count, memory_order_acquire);
	uintptr_t at = (uintptr_t)memory;

	for (uint32_t i = 0; i < count; i++) {
		const struct shm_area *area = &areas->all[i];
		uint64_t size = atomic_load_explicit(&area->bytes, memory_order_relaxed);

		if (at >= area->base && at - area->base < size)
			return bytes <= size - (at - area->base) ? (int)i : -1;
	}
	return -1;
}

uint32_t shm_areas_show(struct shm_areas *areas, struct shm_shown out[SHM_AREAS_MAX])
{
	struct frag_err err = FRAG_ERR_INIT;
	uint32_t count = 0;

	pthread_mutex_lock(&areas->lock);
	for (uint32_t i = 0; i < atomic_load_explicit(&areas->count, memory_order_relaxed); i++) {
		const struct shm_area *area = &areas->all[i];
		struct shm_shown *shown = &out[count];

		memset(shown, 0, sizeof(*shown));
		shown->what.bytes = atomic_load_explicit(&area->bytes, memory_order_relaxed);
		shown->what.number = i;
		if (shown->what.bytes == 0)
			continue;
		if (fragi_memory_of(area->device)
			    ->shared->show(area->device, (void *)area->base, &shown->fd,
					   shown->what.gpu, &err) < 0)
			log_warn(NULL, "memory of a GPU is not shown to another host: %s",
				 err.text);
		else
			count++;
	}
	pthread_mutex_unlock(&areas->lock);
	return count;
}

void shm_shown_close(struct shm_shown *shown, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		close(shown[i].fd);
}

/* The other end. */

/* Returns 0; -EBADMSG: it is none. */
int shm_shown_check(const struct shm_shown *shown, uint32_t before)
{
	if (shown[before].what.number >= SHM_AREAS_MAX || shown[before].what.bytes == 0 ||
	    shown[before].what.bytes > SHM_PLACE_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < before; i++)
		if (shown[i].what.number == shown[before].what.number)
			return -EBADMSG;
	return 0;
}

static bool map_area(const struct shm_shown *shown, struct shm_mapped *out)
{
	const struct fragi_memory *memory =
		fragi_memory_of((struct frag_device){FRAG_DEVICE_CUDA, 0});
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	if (memory == NULL || memory->shared == NULL)
		return false;
	r = memory->shared->map(shown->fd, shown->what.gpu, shown->what.bytes, &out->device,
				&out->memory, &err);
	if (r < 0 && r != -ENODEV)
		log_warn(NULL, "memory of a GPU that another host has shown is not mapped: %s",
			 err.text);
	if (r == 0)
		out->bytes = shown->what.bytes;
	SHM_STEP(AREA_MAPPED);
	return r == 0;
}

int shm_areas_map(struct shm_view *view, const struct shm_shown *shown, uint32_t count,
		  uint64_t *out_areas)
{
	*out_areas = 0;
	if (count == 0)
		return 0;
	view->areas = fragi_calloc(SHM_AREAS_MAX, sizeof(*view->areas));
	if (view->areas == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		if (map_area(&shown[i], &view->areas[shown[i].what.number]))
			*out_areas |= (uint64_t)1 << shown[i].what.number;
	return 0;
}

void shm_areas_unmap(struct shm_view *view)
{
	for (uint32_t i = 0; view->areas != NULL && i < SHM_AREAS_MAX; i++) {
		struct shm_mapped *area = &view->areas[i];

		if (area->bytes > 0)
			fragi_memory_of(area->device)
				->shared->unmap(area->device, area->memory, area->bytes);
	}
	fragi_free(view->areas);
}
