/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_GPU_LOAD_H
#define WRK_GPU_LOAD_H

#include <uv.h>

#include <wire/message.h>

/* The argument with which fraghost prints the load of the GPUs every second (host/gpu_load.h). */
#define WRK_HOST_GPU_LOAD "--gpu-load"

/*
 * The load of the GPUs of this machine. workerd opens no libraries, and a GPU that is ill may hold
 * a caller for long: so a child reads it, while somebody looks.
 */
struct wrk_gpu_load {
	uint64_t count, busy_permille, memory_bytes, memory_used_bytes;
};
struct wrk_gpu_reader {
	const char *program; /* fraghost; NULL: the machine has no GPU */
	uv_pipe_t output;
	pid_t pid; /* of the child; 0: there is none */
	bool is_closing, has_failed;
	int64_t asked_ns; /* when somebody looked last */
	char line[128];
	size_t used;
	struct wrk_gpu_load last;
};

/* Fills in what the child said last, and starts one where there is none. */
void wrk_gpu_load_read(struct wrk_gpu_reader *reader, uv_loop_t *loop, struct fw_facts *out);
/* The loop is about to end. */
void wrk_gpu_load_end(struct wrk_gpu_reader *reader);

#endif
