// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#define LOG_TOPIC "gpu"
#include <base/alloc.h>
#include <base/log.h>
#include <data/pinned_heap.h>
#include <data/staging.h>

static struct fragi_pinned_heap heap = {
	.step_bytes = FRAGI_STAGING_STEP,
	.max_bytes = FRAGI_STAGING_MAX,
	.huge_pages = true,
};
static _Atomic bool ran_out; /* and that was logged */

static int staging_alloc(void *state, size_t size, void **out_memory)
{
	(void)state;
	if (fragi_pinned_heap_alloc(&heap, size, out_memory) == 0)
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
	if (!fragi_pinned_heap_free(&heap, memory))
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

void fragi_staging_install(const struct fragi_memory *cuda)
{
	fragi_lock_take(&heap.lock);
	heap.memory = cuda;
	fragi_lock_leave(&heap.lock);
}

void fragi_staging_prepare(bool arrives)
{
	struct frag_device gpu;
	void *memory;

	if (!fragi_memory_gpu(&gpu))
		return;
	if (fragi_pinned_heap_alloc(&heap, 1, &memory) == 0)
		(void)fragi_pinned_heap_free(&heap, memory);
	if (arrives &&
	    fragi_memory_of(gpu)->pool_alloc(gpu, FRAGI_STAGING_STEP, &memory, NULL) == 0)
		fragi_memory_of(gpu)->pool_free(gpu, memory);
}

void fragi_staging_trim(void)
{
	fragi_pinned_heap_trim(&heap);
}
