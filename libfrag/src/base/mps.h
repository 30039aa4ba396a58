/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_MPS_H
#define FRAGI_BASE_MPS_H

#include <stdbool.h>

#include <base/diag.h>

/* NVIDIA's Multi-Process Service, by which processes share the threads of a GPU. */

/* Where its control daemon and its clients meet: CUDA_MPS_PIPE_DIRECTORY, or its default. */
FRAGI_API const char *fragi_mps_folder(void);
/*
 * Whether a daemon of MPS is there. CUDA looks in the same way when a process opens a GPU, and goes
 * on without MPS if there is none: then shares of threads have no effect. The daemon sees nothing
 * of it.
 */
FRAGI_API bool fragi_mps_runs(const char *folder);

#endif
