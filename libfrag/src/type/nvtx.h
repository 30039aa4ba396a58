/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_NVTX_H
#define FRAGI_TYPE_NVTX_H

/* Ranges of NVTX, for profilers of NVIDIA. They nest, on each thread for itself. */
struct fragi_nvtx {
	int (*push)(const char *name);
	int (*pop)(void);
};

/*
 * The first call opens the library of a profiler, if the environment names one
 * (NVTX_INJECTION64_PATH); one that cannot be used is logged. NULL: no profiler is attached.
 */
const struct fragi_nvtx *fragi_nvtx(void);

#endif
