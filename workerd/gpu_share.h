/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_GPU_SHARE_H
#define WRK_GPU_SHARE_H

#include <stdint.h>

#include <base/arena.h>
#include <base/diag.h>
#include <wire/message.h>

/*
 * Which part of the GPUs a host gets, as its environment says it to CUDA: a MIG instance of the
 * profile that its graph requires, which no other host has, or a share of the threads by MPS. An
 * instance is of a host: all its processes, one after another or beside one another, have the same.
 * Workers of one machine that offer the same instances see which ones others have given away.
 */
#define WRK_MIG_MAX 256           /* instances of a worker */
#define WRK_GPU_PARTS_BYTES 24576 /* what fraghost --gpus says of them */
#define WRK_MIG_TEXT_MAX 512      /* "1g.10gb=4,3g.40gb=1" */

struct wrk_gpu_share {
	struct wrk_mig_instance {
		const char *uuid, *profile;
		uint64_t run;
		uint32_t host;
		uint32_t users; /* processes; 0: nobody has it */
		int lock_fd;
	} * instances;
	uint32_t count;
	const char *whole; /* UUIDs of GPUs that are not divided, for hosts without an instance */
	struct fragi_arena arena;
};

/*
 * Takes over the instances that were found; once.
 * - parts: "mig UUID PROFILE" or "gpu UUID", each on a line
 * Returns 0 or -ENOMEM.
 */
int wrk_gpu_share_offer(struct wrk_gpu_share *share, const char *parts);
/* Writes how many of each profile there are in such lines, as HELLO says it. */
void wrk_gpu_share_text(const char *parts, char out[static WRK_MIG_TEXT_MAX]);
/*
 * Gives the host of a HOST_CREATE its part, by its environment (in arena).
 * - gpus: of this worker
 * - out_instance: what is to be given back when its process is gone; 0: nothing
 * Returns 0; negative errno with a sentence, and nothing is taken.
 */
int wrk_gpu_share_take(struct wrk_gpu_share *share, const struct fw_message *create, uint32_t gpus,
		       struct fragi_arena *arena, char *const **environment, uint32_t *out_instance,
		       struct frag_err *err);
/* A process is gone. instance: 0 does nothing. */
void wrk_gpu_share_give(struct wrk_gpu_share *share, uint32_t instance);
void wrk_gpu_share_fini(struct wrk_gpu_share *share);

#endif
