/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_GPUS_H
#define WRK_GPUS_H

#include <stdint.h>
#include <uv.h>

#include <base/diag.h>
#include <workerd/gpu_share.h>

/*
 * The argument with which fraghost starts no run: it asks the driver of NVIDIA for the GPUs that it
 * sees, and prints how many and the bytes of their memory, and then its parts (gpu_share.h) if GPUs
 * are divided; or why it cannot and ends with a status other than 0.
 */
#define WRK_HOST_GPUS "--gpus"

/*
 * Has fraghost ask, once: a driver that nothing uses takes seconds to start, and one that is ill
 * may hold a caller for long.
 */
struct wrk_gpu_survey {
	uv_pipe_t output;
	uv_timer_t patience; /* 20 s */
	pid_t pid;           /* of fraghost; 0: it has ended */
	char answer[WRK_GPU_PARTS_BYTES];
	size_t used;
	/*
	 * Called once, on the loop.
	 * - r: 0; -ENODEV with what fraghost says, -ETIMEDOUT
	 * - parts: as of wrk_gpu_share_offer; empty: no GPU is divided
	 */
	void (*done)(struct wrk_gpu_survey *survey, int r, uint32_t count, uint64_t bytes,
		     const char *parts, const struct frag_err *err);
	void *arg; /* the caller's */
};

/*
 * Starts it; done and arg are set.
 * - program: path of fraghost
 * Returns 0; negative errno with the reason, and done is not called.
 */
int wrk_gpu_survey_start(struct wrk_gpu_survey *survey, uv_loop_t *loop, const char *program,
			 struct frag_err *err);
/* The loop is about to end: done is not called any more. */
void wrk_gpu_survey_end(struct wrk_gpu_survey *survey);

/*
 * The same, and waits for it.
 * - out_mig: as wrk_gpu_share_text writes it
 * Returns 0; negative errno with the reason, and the outputs are untouched.
 */
int wrk_gpus_survey(const char *program, uint32_t *out_count, uint64_t *out_bytes,
		    char out_mig[static WRK_MIG_TEXT_MAX], struct frag_err *err);

#endif
