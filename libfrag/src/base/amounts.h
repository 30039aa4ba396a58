/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_AMOUNTS_H
#define FRAGI_BASE_AMOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * What a worker has and a fragment requires: X(NAME, name, UNIT, BOUND, TIME).
 * - name: as graphs and --inventory call it
 * - UNIT: COUNT is in thousandths, PERCENT in thousandths of a percent, SIZE in bytes; no amount is
 *   beyond the maximum of its unit, so the sum of a million of them fits into 64 bits
 * - BOUND: what a host gets of it (enum fragi_bound)
 * - TIME: a worker knows it from its START, or after a SURVEY of GPUs; then beats carry it
 * GPU_THREADS are those of each GPU: what MPS lets a process use.
 */
#define FRAGI_AMOUNT_LIST(X)                                                                       \
	X(CPU, "cpu", COUNT, GROUP, START)                                                         \
	X(GPU, "gpu", COUNT, NONE, SURVEY)                                                         \
	X(MEMORY, "memory", SIZE, GROUP, START)                                                    \
	X(SHARED_MEMORY, "sharedMemory", SIZE, NONE, START)                                        \
	X(GPU_MEMORY, "gpuMemory", SIZE, HOST, SURVEY)                                             \
	X(GPU_THREADS, "gpuThreads", PERCENT, SHARE, START)

#define FRAGI_AMOUNT_ENUM(NAME, name, UNIT, BOUND, TIME) FRAGI_AMOUNT_##NAME,
enum fragi_amount { FRAGI_AMOUNT_LIST(FRAGI_AMOUNT_ENUM) FRAGI_AMOUNTS };
#undef FRAGI_AMOUNT_ENUM

enum fragi_bound {
	FRAGI_BOUND_NONE,  /* as much as there is: nobody enforces its limit */
	FRAGI_BOUND_GROUP, /* its limit, which the worker's control groups enforce */
	FRAGI_BOUND_HOST,  /* ... the host itself enforces */
	FRAGI_BOUND_SHARE, /* what its fragments require: it has no limit beside */
};
#define FRAGI_AMOUNT_ONE INT64_C(1000)                   /* core, GPU, percent */
#define FRAGI_AMOUNT_COUNT_MAX (4096 * FRAGI_AMOUNT_ONE) /* cores, GPUs */
#define FRAGI_AMOUNT_BYTES_MAX (INT64_C(1) << 43)        /* 8 TiB */
#define FRAGI_AMOUNT_TEXT 32

/* As graphs call it: "cpu", "sharedMemory". */
FRAGI_API const char *fragi_amount_name(enum fragi_amount amount);
/* The maximum for people: "4096", "8 TiB", "100%". */
FRAGI_API const char *fragi_amount_max(enum fragi_amount amount);
FRAGI_API bool fragi_amount_is_count(enum fragi_amount amount);
FRAGI_API enum fragi_bound fragi_amount_bound(enum fragi_amount amount);
/* Whether it is known only after a survey of GPUs. */
FRAGI_API bool fragi_amount_is_surveyed(enum fragi_amount amount);
/* The value, or the maximum if it is beyond that. */
FRAGI_API int64_t fragi_amount_clamp(enum fragi_amount amount, uint64_t value);
/* Returns the one of that name, or FRAGI_AMOUNTS. */
FRAGI_API enum fragi_amount fragi_amount_named(const char *name, size_t length);
/* "cpu, gpu, memory, ..." */
FRAGI_API const char *fragi_amount_names(void);
/* What a valid one is, for people: "not a valid size; write for example 512Mi or 2GB". */
FRAGI_API const char *fragi_amount_flaw(enum fragi_amount amount);
/*
 * "2.5" of cores and GPUs, of which any part of a thousandth counts as a whole one; "512Mi" of
 * memory; "25%" of threads, whole. Returns 0; -EINVAL: no such value; -ERANGE: beyond the maximum.
 * On failure *out is untouched.
 */
FRAGI_API int fragi_amount_parse(enum fragi_amount amount, const char *text, int64_t *out);
/* Writes "2.5", "512 MiB" or "25%" into out. Returns out. */
FRAGI_API const char *fragi_amount_text(enum fragi_amount amount, int64_t value,
					char out[static FRAGI_AMOUNT_TEXT]);

#endif
