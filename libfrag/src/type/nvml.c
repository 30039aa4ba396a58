// SPDX-License-Identifier: Apache-2.0
#include <type/nvml.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

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

int fragi_nvml_read(struct fragi_gpu_load *out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
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
