// SPDX-License-Identifier: Apache-2.0
#include <workerd/host/gpu_load.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <base/failure.h>

struct load {
	uint64_t count, busy_permille, memory_bytes, memory_used_bytes;
};

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
} nvml;

/* Returns whether it is there and works. */
static bool open_library(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (library == NULL)
		return false;
	*(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
	*(void **)&nvml.count = dlsym(library, "nvmlDeviceGetCount_v2");
	*(void **)&nvml.by_index = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&nvml.utilization = dlsym(library, "nvmlDeviceGetUtilizationRates");
	*(void **)&nvml.memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
	return nvml.init != NULL && nvml.count != NULL && nvml.by_index != NULL &&
	       nvml.utilization != NULL && nvml.memory != NULL && nvml.init() == 0;
}

/* One that does not answer counts as idle: others may. */
static void add_gpu(unsigned int index, struct load *load)
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

static struct load load_of_all(void)
{
	struct load load = {0};
	unsigned int count = 0;

	if (nvml.count(&count) != 0)
		return load;
	for (unsigned int i = 0; i < count; i++)
		add_gpu(i, &load);
	if (load.count > 0)
		load.busy_permille /= load.count;
	return load;
}

int host_gpu_load_print(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || !open_library())
		return FRAGI_EXIT_MISSING;
	(void)signal(SIGPIPE, SIG_IGN);
	for (;;) {
		struct load load = load_of_all();

		if (load.count == 0)
			return FRAGI_EXIT_MISSING;
		if (printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", load.count,
			   load.busy_permille, load.memory_bytes, load.memory_used_bytes) < 0 ||
		    fflush(stdout) != 0)
			return FRAGI_EXIT_OK;
		sleep(1);
	}
}
