/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_GPUS_H
#define WRK_GPUS_H

#include <stdint.h>

#include <base/diag.h>

/*
 * The argument with which fraghost starts no run: it asks the driver of NVIDIA for the GPUs that it
 * sees, and prints how many and the bytes of their memory, or why it cannot and ends with a status
 * other than 0.
 */
#define WRK_HOST_GPUS "--gpus"

/*
 * Has fraghost ask; waits for it, 20 s at most: a driver that nothing uses takes seconds to start.
 * - program: its path
 * Returns 0; negative errno with the reason, and the outputs are untouched.
 */
int wrk_gpus_survey(const char *program, uint32_t *out_count, uint64_t *out_bytes,
		    struct frag_err *err);

#endif
