// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <data/area.h>

static int take_own(struct frag_device device, size_t size, struct fragi_area *out,
		    struct frag_err *err)
{
	const struct fragi_memory *memory = fragi_memory_of(device);

	if (memory == NULL)
		return frag_err_set(err, -ENODEV, "nothing has opened the device");
	*out = (struct fragi_area){0};
	return memory->alloc(device, size, &out->memory, err);
}

static int take_shared(struct frag_device device, size_t size, struct fragi_area *out,
		       struct frag_err *err)
{
	struct frag_resource *shared = fragi_default_memory();

	*out = (struct fragi_area){0};
	if (shared == NULL || fragi_alloc_on(shared, device, size, &out->memory) < 0)
		return take_own(device, size, out, err);
	out->from = fragi_resource_ref(shared);
	return 0;
}

static void give(struct frag_device device, const struct fragi_area *area)
{
	fragi_free_on(area->from, device, area->memory);
	fragi_resource_unref(area->from);
}

const struct fragi_area_source fragi_area_own = {.take = take_own, .give = give};
const struct fragi_area_source fragi_area_shared = {.take = take_shared, .give = give};
