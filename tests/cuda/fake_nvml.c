// SPDX-License-Identifier: Apache-2.0
/*
 * NVIDIA's management library of a machine with three GPUs, the second of which is ill: as
 * libfrag/src/type/nvml.c uses it. FAKE_NVML_MIG="1g.10gb,,3g.40gb": the last one is divided (MIG)
 * into these instances; an empty word is a place without one. FAKE_NVML_ID: a part of their UUIDs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct utilization {
	unsigned int gpu, memory;
};
struct memory {
	unsigned long long total, free, used;
};

#define INSTANCES 8
#define NOT_FOUND 6

static char devices[3], instances[INSTANCES];

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *out);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **out);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct utilization *out);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *out);
EXPORT int nvmlDeviceGetUUID(void *device, char *out, unsigned int size);
EXPORT int nvmlDeviceGetName(void *device, char *out, unsigned int size);
EXPORT int nvmlDeviceGetMigMode(void *device, unsigned int *out_now, unsigned int *out_later);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned int *out);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned int index, void **out);

/* The number of an instance; -1: it is a GPU. */
static int instance_of(const void *device)
{
	for (int i = 0; i < INSTANCES; i++)
		if (device == &instances[i])
			return i;
	return -1;
}

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
	if (instance_of(device) >= 0)
		*out = (struct memory){10ull << 30, 10ull << 30, 0};
	else if (device == &devices[0])
		*out = (struct memory){80ull << 30, 73ull << 30, 7ull << 30};
	else
		*out = (struct memory){24ull << 30, 13ull << 30, 11ull << 30};
	return 0;
}

/* Copies the word of FAKE_NVML_MIG at that place. */
static int word_at(unsigned int index, char *out, unsigned int size)
{
	const char *words = getenv("FAKE_NVML_MIG");
	size_t length;

	for (; words != NULL && index > 0; index--) {
		words = strchr(words, ',');
		words += words != NULL;
	}
	length = words != NULL ? strcspn(words, ",") : 0;
	if (length == 0)
		return NOT_FOUND;
	snprintf(out, size, "%.*s", (int)length, words);
	return 0;
}

int nvmlDeviceGetUUID(void *device, char *out, unsigned int size)
{
	int instance = instance_of(device);

	if (instance >= 0)
		snprintf(out, size, "MIG-%s-%d",
			 getenv("FAKE_NVML_ID") != NULL ? getenv("FAKE_NVML_ID") : "", instance);
	else
		snprintf(out, size, "GPU-%d", (int)((char *)device - devices));
	return 0;
}

int nvmlDeviceGetName(void *device, char *out, unsigned int size)
{
	int instance = instance_of(device), r = 0;
	char profile[32] = "";

	if (instance >= 0)
		r = word_at((unsigned int)instance, profile, sizeof(profile));
	snprintf(out, size, "NVIDIA H200%s%s", instance >= 0 ? " MIG " : "", profile);
	return r;
}

int nvmlDeviceGetMigMode(void *device, unsigned int *out_now, unsigned int *out_later)
{
	*out_now = *out_later = getenv("FAKE_NVML_MIG") != NULL && device == &devices[2];
	return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned int *out)
{
	(void)device;
	*out = INSTANCES;
	return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned int index, void **out)
{
	char word[32];

	(void)device;
	*out = &instances[index];
	return word_at(index, word, sizeof(word));
}
