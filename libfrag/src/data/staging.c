// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <sys/mman.h>

#define LOG_TOPIC "gpu"
#include <base/alloc.h>
#include <base/log.h>
#include <data/area_heap.h>
#include <data/staging.h>

#define HUGE_PAGE ((size_t)2 << 20)

/*
 * Memory of the host that is to be pinned. Where other hosts read memory of this one, it is some of
 * that: then they read what the GPU has copied where it lies. Else it is of huge pages, which are
 * pinned in a third of the time that the driver takes for its own, and which the CPU copies faster.
 */
static int take_pages(size_t size, struct fragi_area *out)
{
	struct frag_resource *shared = fragi_default_memory();

	*out = (struct fragi_area){.pinned_bytes = size};
	if (size % HUGE_PAGE != 0)
		return -ENOTSUP;
	if (shared != NULL && frag_alloc(shared, size, &out->memory) == 0) {
		out->from = fragi_resource_ref(shared);
		return 0;
	}
	out->memory = fragi_bulk_alloc(size);
	/*
	 * After a fork, what this process writes would go to copies of pages that the device still
	 * knows, so a child does not get them.
	 */
	if (out->memory != NULL && madvise(out->memory, size, MADV_DONTFORK) == 0)
		return 0;
	fragi_free(out->memory);
	return -ENOMEM;
}

static void give_pages(const struct fragi_area *area)
{
	if (area->from == NULL) {
		(void)madvise(area->memory, area->pinned_bytes, MADV_DOFORK);
		fragi_free(area->memory);
		return;
	}
	frag_free(area->from, area->memory);
	fragi_resource_unref(area->from);
}

static int take_area(struct frag_device device, size_t size, struct fragi_area *out,
		     struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;

	if (take_pages(size, out) == 0) {
		if (fragi_memory_of(device)->pin(out->memory, size, &why) == 0)
			return 0;
		give_pages(out);
		log_info(NULL, "the driver's own memory is used between hosts: %s", why.text);
	}
	return fragi_area_own.take(device, size, out, err);
}

static void give_area(struct frag_device device, const struct fragi_area *area)
{
	if (area->pinned_bytes == 0) {
		fragi_area_own.give(device, area);
		return;
	}
	fragi_memory_of(device)->unpin(area->memory);
	give_pages(area);
}

static const struct fragi_area_source source = {.take = take_area, .give = give_area};
static struct fragi_area_heap heap = {
	.device = {FRAG_DEVICE_CUDA_HOST, 0},
	.step_bytes = FRAGI_STAGING_STEP,
	.max_bytes = FRAGI_STAGING_MAX,
	.page_bytes = HUGE_PAGE,
};
static _Atomic bool ran_out; /* and that was logged */

static int staging_alloc(void *state, size_t size, void **out_memory)
{
	(void)state;
	if (fragi_area_heap_alloc(&heap, size, out_memory) == 0)
		return 0;
	if (!atomic_exchange(&ran_out, true))
		log_warn(
			NULL,
			"a tensor of %zu bytes found no pinned memory on its way between hosts (%llu MiB at most): such tensors go through ordinary memory, which is slower; lower the capacity of these flows",
			size, (unsigned long long)(FRAGI_STAGING_MAX >> 20));
	*out_memory = fragi_bulk_alloc(size);
	return *out_memory != NULL ? 0 : -ENOMEM;
}

static void staging_free(void *state, void *memory)
{
	(void)state;
	if (fragi_area_heap_free(&heap, memory) == 0)
		fragi_free(memory);
}

static int staging_alloc_on(void *state, struct frag_device device, size_t size, void **out_memory)
{
	const struct fragi_memory *memory = fragi_memory_of(device);
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	(void)state;
	if (device.type != FRAG_DEVICE_CUDA)
		return -EXDEV;
	if (memory == NULL)
		return -ENODEV;
	r = memory->pool_alloc(device, size, out_memory, &err);
	if (r < 0)
		log_error(NULL, "there is no memory for a tensor that has arrived: %s", err.text);
	return r;
}

static void staging_free_on(void *state, struct frag_device device, void *memory)
{
	(void)state;
	fragi_memory_of(device)->pool_free(device, memory);
}

static struct fragi_allocator staging = {
	.refs = 1, /* is never given up */
	.alloc = staging_alloc,
	.free = staging_free,
	.alloc_on = staging_alloc_on,
	.free_on = staging_free_on,
};

struct frag_resource *fragi_staging(void)
{
	return (struct frag_resource *)(void *)&staging;
}

void fragi_staging_install(void)
{
	fragi_lock_take(&heap.lock);
	heap.source = &source;
	fragi_lock_leave(&heap.lock);
}

void fragi_staging_prepare(bool arrives)
{
	struct frag_device gpu;
	void *memory;

	if (!fragi_memory_gpu(&gpu))
		return;
	if (fragi_area_heap_alloc(&heap, 1, &memory) == 0)
		(void)fragi_area_heap_free(&heap, memory);
	if (arrives &&
	    fragi_memory_of(gpu)->pool_alloc(gpu, FRAGI_STAGING_STEP, &memory, NULL) == 0)
		fragi_memory_of(gpu)->pool_free(gpu, memory);
}

void fragi_staging_trim(void)
{
	fragi_area_heap_trim(&heap);
}
