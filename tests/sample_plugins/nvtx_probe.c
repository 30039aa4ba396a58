// SPDX-License-Identifier: Apache-2.0
/*
 * Stands for a profiler's library for NVTX 3: writes down the ranges of a process. With
 * NVTX_PROBE_REFUSES in the environment it refuses.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef void (*function)(void);
struct callbacks {
	size_t struct_size;
	int (*get_functions)(int module, function ***table, unsigned int *count);
};

EXPORT int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));
EXPORT extern char nvtx_probe_ranges[4096];
char nvtx_probe_ranges[4096];

static int push(const char *name)
{
	size_t length = strlen(nvtx_probe_ranges);

	snprintf(nvtx_probe_ranges + length, sizeof(nvtx_probe_ranges) - length, "<%s", name);
	return 0;
}

static int pop(void)
{
	size_t length = strlen(nvtx_probe_ranges);

	snprintf(nvtx_probe_ranges + length, sizeof(nvtx_probe_ranges) - length, ">");
	return 0;
}

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id))
{
	const struct callbacks *callbacks = get_table(1);
	function **table = NULL;
	unsigned int count = 0;

	if (getenv("NVTX_PROBE_REFUSES") != NULL || get_table(2) != NULL ||
	    callbacks->struct_size < sizeof(*callbacks) ||
	    callbacks->get_functions(7, &table, &count) != 0)
		return 0;
	/* A profiler fills in all that it knows, of all modules. */
	for (int module = 1; module < 7; module++) {
		if (callbacks->get_functions(module, &table, &count) == 0)
			return 0;
		for (unsigned int i = 1; i < count; i++)
			*table[i] = NULL;
	}
	callbacks->get_functions(1, &table, &count);
	*table[9] = (function)push;
	*table[11] = (function)pop;
	return 1;
}
