// SPDX-License-Identifier: Apache-2.0
/*
 * Counts what is copied from GPUs to the host, and how often a thread waits for a GPU, whatever
 * library of the process does it: CUPTI reports both, also the copies within CUDA graphs. NVIDIA's
 * driver loads this file into each process that uses it, if CUDA_INJECTION64_PATH names it. When
 * the process ends, it adds a line "BYTES COPIES WAITS LOST" to the file that BENCH_COPIES names;
 * LOST: records that CUPTI could not keep, so 0 where the others are all.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
#define BUFFER_BYTES ((size_t)1 << 20)

/* What is used of cupti_activity.h; the beginnings of records are the same in all versions. */
enum { KIND_COPY = 1, KIND_WAIT = 38, COPY_TO_HOST = 2, WAIT_OF_STREAM = 2 };
struct record {
	uint32_t kind;
	union {
		struct {
			uint8_t way, from, to, flags;
		} copy;
		uint32_t wait; /* WAIT_OF_STREAM: a stream waits for an event, and no thread does */
	};
	uint64_t bytes; /* of a copy */
};

static struct {
	int (*cuptiActivityRegisterCallbacks)(void (*)(uint8_t **, size_t *, size_t *),
					      void (*)(void *, uint32_t, uint8_t *, size_t,
						       size_t));
	int (*cuptiActivityEnable)(uint32_t kind);
	int (*cuptiActivityFlushAll)(uint32_t forced);
	int (*cuptiActivityGetNextRecord)(uint8_t *buffer, size_t valid, struct record **record);
	int (*cuptiActivityGetNumDroppedRecords)(void *context, uint32_t stream, size_t *count);
} cupti;

static _Atomic size_t bytes, copies, waits, lost;

static void give_buffer(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*size = *buffer != NULL ? BUFFER_BYTES : 0;
	*records = 0; /* as many as fit */
}

static void take_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	struct record *record = NULL;
	size_t dropped = 0;

	(void)size;
	while (cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == 0) {
		if (record->kind == KIND_WAIT)
			atomic_fetch_add(&waits, record->wait != WAIT_OF_STREAM);
		if (record->kind != KIND_COPY || record->copy.way != COPY_TO_HOST)
			continue;
		atomic_fetch_add(&bytes, record->bytes);
		atomic_fetch_add(&copies, 1);
	}
	if (cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == 0)
		atomic_fetch_add(&lost, dropped);
	free(buffer);
}

static void report(void)
{
	const char *path = getenv("BENCH_COPIES");
	FILE *f;

	cupti.cuptiActivityFlushAll(1);
	f = path != NULL ? fopen(path, "a") : NULL;
	if (f == NULL)
		return;
	fprintf(f, "%zu %zu %zu %zu\n", bytes, copies, waits, lost);
	fclose(f);
}

static int find_functions(void)
{
	void *library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);

	if (library == NULL)
		library = dlopen("libcupti.so.12", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return -1;
#define FIND(name)                                                                                 \
	*(void **)&cupti.name = dlsym(library, #name);                                             \
	if (cupti.name == NULL)                                                                    \
		return -1;
	FIND(cuptiActivityRegisterCallbacks)
	FIND(cuptiActivityEnable)
	FIND(cuptiActivityFlushAll)
	FIND(cuptiActivityGetNextRecord)
	FIND(cuptiActivityGetNumDroppedRecords)
	return 0;
}

/* Called by the driver, in cuInit. Returns 1. */
EXPORT int InitializeInjection(void);
int InitializeInjection(void)
{
	if (find_functions() < 0) {
		const char *why = dlerror();

		fprintf(stderr, "copies: no CUPTI: %s\n", why != NULL ? why : "it is too old");
	} else if (cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != 0 ||
		   cupti.cuptiActivityEnable(KIND_COPY) != 0 ||
		   cupti.cuptiActivityEnable(KIND_WAIT) != 0) {
		fprintf(stderr, "copies: CUPTI does not report copies and waits here\n");
	} else {
		atexit(report);
	}
	return 1;
}
