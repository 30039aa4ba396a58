/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_GPUS_H
#define HOST_GPUS_H

#include <stdint.h>
#include <stdio.h>

#include <base/diag.h>
#include <type/nvml.h>

/* fragi_cuda_survey, or that of a test */
typedef int host_gpus_survey_fn(uint32_t *out_count, uint64_t *out_bytes, struct frag_err *err);

/*
 * The GPUs that the driver of NVIDIA shows this process, and the bytes of their memory. The driver
 * takes 0.2 s to answer and answers one process at a time, so it is asked once: the answer stands
 * in shared memory of this user until the machine is booted, or another driver is loaded, or other
 * GPUs are visible.
 * - proc: "/proc"
 * - name: of the shared memory, "/frag-gpus-1000"
 * Returns 0; negative errno of survey with its reason, which is not kept.
 */
int host_gpus_find(const char *proc, const char *name, host_gpus_survey_fn *survey,
		   uint32_t *out_count, uint64_t *out_bytes, struct frag_err *err);
/*
 * Writes what wrk_gpu_survey reads (workerd/gpus.h). Where GPUs are divided (MIG), and
 * CUDA_VISIBLE_DEVICES does not name a single instance, they are listed, since CUDA would show the
 * first instance alone; elsewhere CUDA is asked. Returns 0; negative errno, and the reason was
 * written.
 */
int host_gpus_write(const char *proc, const char *name, host_gpus_survey_fn *survey,
		    fragi_gpu_parts_fn *parts, FILE *out);
/* What fraghost --gpus prints. Returns its status. */
int host_gpus_print(void);

#endif
