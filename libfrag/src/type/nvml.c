// SPDX-License-Identifier: Apache-2.0
#include <type/nvml.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* What is used of nvml.h, whose ABI does not change: its functions have versions in their names. */
struct nvml_utilization {
	unsigned int gpu, memory; /* per cent of the time */
};
struct nvml_memory {
	unsigned long long total, free, used; /* bytes */
};

static struct {
	int (*init)(void);
	int (*count)(unsigned int *out);
	int (*by_index)(unsigned int index, void **out_device);
	int (*utilization)(void *device, struct nvml_utilization *out);
	int (*memory)(void *device, struct nvml_memory *out);
	bool is_there;
	/* of MIG */
	int (*uuid)(void *device, char *out, unsigned int size);
	int (*name)(void *device, char *out, unsigned int size);
	int (*mig_mode)(void *device, unsigned int *out_current, unsigned int *out_pending);
	int (*mig_max)(void *device, unsigned int *out);
	int (*mig_by_index)(void *device, unsigned int index, void **out_device);
	bool knows_mig;
} nvml;

static void open_library(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (library == NULL)
		return;
	*(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
	*(void **)&nvml.count = dlsym(library, "nvmlDeviceGetCount_v2");
	*(void **)&nvml.by_index = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&nvml.utilization = dlsym(library, "nvmlDeviceGetUtilizationRates");
	*(void **)&nvml.memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
	nvml.is_there = nvml.init != NULL && nvml.count != NULL && nvml.by_index != NULL &&
			nvml.utilization != NULL && nvml.memory != NULL && nvml.init() == 0;
	*(void **)&nvml.uuid = dlsym(library, "nvmlDeviceGetUUID");
	*(void **)&nvml.name = dlsym(library, "nvmlDeviceGetName");
	*(void **)&nvml.mig_mode = dlsym(library, "nvmlDeviceGetMigMode");
	*(void **)&nvml.mig_max = dlsym(library, "nvmlDeviceGetMaxMigDeviceCount");
	*(void **)&nvml.mig_by_index = dlsym(library, "nvmlDeviceGetMigDeviceHandleByIndex");
	nvml.knows_mig = nvml.is_there && nvml.uuid != NULL && nvml.name != NULL &&
			 nvml.mig_mode != NULL && nvml.mig_max != NULL && nvml.mig_by_index != NULL;
}

/* One that does not answer counts as idle: others may. */
static void add_gpu(unsigned int index, struct fragi_gpu_load *load)
{
	struct nvml_utilization utilization = {0};
	struct nvml_memory memory = {0};
	void *device;

	if (nvml.by_index(index, &device) != 0)
		return;
	load->count++;
	if (nvml.utilization(device, &utilization) == 0)
		load->busy_permille += utilization.gpu * 10;
	if (nvml.memory(device, &memory) == 0) {
		load->memory_bytes += memory.total;
		load->memory_used_bytes += memory.used;
	}
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

int fragi_nvml_read(struct fragi_gpu_load *out)
{
	struct fragi_gpu_load load = {0};
	unsigned int count = 0;

	(void)pthread_once(&once, open_library);
	if (!nvml.is_there || nvml.count(&count) != 0)
		return -ENODEV;
	for (unsigned int i = 0; i < count; i++)
		add_gpu(i, &load);
	if (load.count == 0)
		return -ENODEV;
	load.busy_permille /= load.count;
	*out = load;
	return 0;
}

static bool add_part(void *device, struct fragi_gpu_part *part)
{
	struct nvml_memory memory = {0};

	if (nvml.uuid(device, part->uuid, sizeof(part->uuid)) != 0)
		return false;
	if (nvml.memory(device, &memory) == 0)
		part->memory_bytes = memory.total;
	return true;
}

/* Its name is that of its GPU with its own, "NVIDIA A100-SXM4-40GB MIG 1g.5gb". */
static bool add_instance(void *device, struct fragi_gpu_part *part)
{
	static const char mark[] = "MIG ";
	char name[96];
	const char *profile;

	if (!add_part(device, part) || nvml.name(device, name, sizeof(name)) != 0)
		return false;
	profile = strstr(name, mark);
	if (profile == NULL || !fragi_mig_profile_is_valid(profile + strlen(mark)))
		return false;
	snprintf(part->profile, sizeof(part->profile), "%s", profile + strlen(mark));
	return true;
}

/* One that does not answer, and an instance that cannot be named, are left out. */
static size_t add_parts(unsigned int index, struct fragi_gpu_part *out, size_t room)
{
	unsigned int is_divided = 0, pending, most = 0;
	struct fragi_gpu_part part = {.gpu = index};
	size_t count = 0;
	void *device, *instance;

	if (nvml.by_index(index, &device) != 0 || !add_part(device, &part))
		return 0;
	memcpy(part.gpu_uuid, part.uuid, sizeof(part.uuid));
	if (nvml.mig_mode(device, &is_divided, &pending) != 0 || is_divided == 0) {
		if (room > 0)
			out[0] = part;
		return room > 0 ? 1 : 0;
	}
	if (nvml.mig_max(device, &most) != 0)
		return 0;
	for (unsigned int i = 0; i < most && count < room; i++) {
		out[count] = (struct fragi_gpu_part){.gpu = index};
		memcpy(out[count].gpu_uuid, part.gpu_uuid, sizeof(part.gpu_uuid));
		if (nvml.mig_by_index(device, i, &instance) == 0 &&
		    add_instance(instance, &out[count]))
			count++;
	}
	return count;
}

int fragi_nvml_parts(struct fragi_gpu_part out[FRAGI_GPU_PARTS_MAX], size_t *out_count)
{
	unsigned int gpus = 0;
	size_t count = 0;

	(void)pthread_once(&once, open_library);
	if (!nvml.knows_mig || nvml.count(&gpus) != 0)
		return -ENODEV;
	for (unsigned int i = 0; i < gpus; i++)
		count += add_parts(i, out + count, FRAGI_GPU_PARTS_MAX - count);
	if (count == 0)
		return -ENODEV;
	*out_count = count;
	return 0;
}
