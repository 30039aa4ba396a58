// SPDX-License-Identifier: Apache-2.0
/*
 * NVIDIA's management library of a machine with three GPUs, the second of which is ill: as
 * libfrag/src/type/nvml.c uses it.
 */
#define EXPORT __attribute__((visibility("default")))

struct utilization {
	unsigned int gpu, memory;
};
struct memory {
	unsigned long long total, free, used;
};

static char devices[3];

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *out);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **out);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct utilization *out);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *out);

int nvmlInit_v2(void)
{
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *out)
{
	*out = 3;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **out)
{
	*out = &devices[index];
	return index == 1 ? 15 : 0; /* GPU_IS_LOST */
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *out)
{
	*out = device == &devices[0] ? (struct utilization){21, 90} : (struct utilization){54, 5};
	return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *out)
{
	if (device == &devices[0])
		*out = (struct memory){80ull << 30, 73ull << 30, 7ull << 30};
	else
		*out = (struct memory){24ull << 30, 13ull << 30, 11ull << 30};
	return 0;
}
