/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_AMOUNTS_H
#define FRAGI_BASE_AMOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * What a worker has and a fragment requires. Cores and GPUs are counted in thousandths, threads of
 * GPUs in thousandths of a percent, memory in bytes; no amount is beyond its maximum, so the sum of
 * a million of them fits into 64 bits.
 */
enum fragi_amount {
	FRAGI_AMOUNT_CPU,
	FRAGI_AMOUNT_GPU,
	FRAGI_AMOUNT_MEMORY,
	FRAGI_AMOUNT_SHARED_MEMORY,
	FRAGI_AMOUNT_GPU_MEMORY,
	FRAGI_AMOUNT_GPU_THREADS, /* of each GPU: what MPS lets a process use */
	FRAGI_AMOUNTS
};
#define FRAGI_AMOUNT_ONE INT64_C(1000)                   /* core, GPU, percent */
#define FRAGI_AMOUNT_COUNT_MAX (4096 * FRAGI_AMOUNT_ONE) /* cores, GPUs */
#define FRAGI_AMOUNT_BYTES_MAX (INT64_C(1) << 43)        /* 8 TiB */
#define FRAGI_AMOUNT_TEXT 32

/* As graphs call it: "cpu", "sharedMemory". */
FRAGI_API const char *fragi_amount_name(enum fragi_amount amount);
/* The maximum for people: "4096", "8 TiB", "100%". */
FRAGI_API const char *fragi_amount_max(enum fragi_amount amount);
FRAGI_API bool fragi_amount_is_size(enum fragi_amount amount);
/* Returns the one of that name, or FRAGI_AMOUNTS. */
FRAGI_API enum fragi_amount fragi_amount_named(const char *name, size_t length);
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
