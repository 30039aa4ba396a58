// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#define LOG_TOPIC "nvtx"
#include <base/log.h>
#include <type/nvtx.h>

/*
 * What a profiler's library expects of a program with NVTX 3, whose headers frag does not need: it
 * asks for tables of functions and puts its own into their slots. Of these frag calls two.
 *
 * Source: the headers of NVTX 3 (nvtx3/nvtxDetail/nvtxTypes.h).
 */
typedef void (*function)(void);

enum { TABLE_CALLBACKS = 1, TABLE_VERSION = 3 };
enum { MODULE_CORE = 1, MODULES = 7 };
enum { CORE_RANGE_PUSH = 9, CORE_RANGE_POP = 11 };
#define SLOTS_MAX 16

struct callbacks {
	size_t struct_size;
	int (*get_functions)(int module, function ***out_table, unsigned int *out_count);
};

struct version_info {
	size_t struct_size;
	uint32_t version, reserved;
	void (*set_version)(uint32_t version);
};

/* Slots of each module, from NVTX_CBID_..._SIZE; the first one is not used. */
static const unsigned int slot_counts[MODULES] = {0, 16, 9, 15, 7, 16, 7};
static function slots[MODULES][SLOTS_MAX];
static function *tables[MODULES][SLOTS_MAX + 1];

static int get_functions(int module, function ***out_table, unsigned int *out_count)
{
	if (module <= 0 || module >= MODULES)
		return 0;
	for (unsigned int i = 1; i < slot_counts[module]; i++)
		tables[module][i] = &slots[module][i];
	if (out_count != NULL)
		*out_count = slot_counts[module];
	if (out_table != NULL)
		*out_table = tables[module];
	return 1;
}

static void set_version(uint32_t version)
{
	(void)version;
}

static const void *get_table(uint32_t id)
{
	static const struct callbacks callbacks = {sizeof(callbacks), get_functions};
	static const struct version_info version = {sizeof(version), 3, 0, set_version};

	return id == TABLE_CALLBACKS ? (const void *)&callbacks
	       : id == TABLE_VERSION ? (const void *)&version
				     : NULL;
}

static struct fragi_nvtx ranges; /* push is NULL: no profiler is attached */

static void attach(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	int (*initialize)(const void *(*get)(uint32_t id)) = NULL;
	void *library;

	if (path == NULL || path[0] == '\0')
		return;
	library = dlopen(path, RTLD_LAZY | RTLD_NODELETE);
	if (library == NULL) {
		log_warn(NULL, "the profiler that NVTX_INJECTION64_PATH names is not used: %s",
			 dlerror());
		return;
	}
	*(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
	if (initialize == NULL || initialize(get_table) == 0) {
		log_warn(NULL, "the profiler that NVTX_INJECTION64_PATH names is not used: %s %s",
			 path, initialize == NULL ? "is no library for NVTX" : "refuses");
		return;
	}
	if (slots[MODULE_CORE][CORE_RANGE_PUSH] == NULL ||
	    slots[MODULE_CORE][CORE_RANGE_POP] == NULL)
		return;
	ranges.pop = (int (*)(void))slots[MODULE_CORE][CORE_RANGE_POP];
	ranges.push = (int (*)(const char *))slots[MODULE_CORE][CORE_RANGE_PUSH];
	log_info(NULL, "ticks are ranges of the profiler %s", path);
}

const struct fragi_nvtx *fragi_nvtx(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, attach);
	return ranges.push != NULL ? &ranges : NULL;
}
