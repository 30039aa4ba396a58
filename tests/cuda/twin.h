/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_TWIN_H
#define TESTS_CUDA_TWIN_H

#include <frag/frag.h>
#include <frag/harness.h>

/* An operator with its inputs, which runs once on the CPU and once on the GPU. */
#define TWIN_ARGS 20
#define TWIN_INPUTS 8
struct twin {
	const struct frag_op_type *type;
	struct frag_arg args[TWIN_ARGS]; /* without that of the pool */
	char texts[TWIN_ARGS][48];       /* for values of args */
	const char *pool;                /* the parameter of the allocator */
	bool pool_is_on_gpu;             /* in the run on the GPU; else there is none */
	bool has_streams;                /* cuda_stream_pool, in the run on the GPU */
	struct twin_input {
		const char *port, *name;
		struct frag_tensor *tensor; /* taken */
		bool stays;                 /* in memory of the host, in both runs */
	} in[TWIN_INPUTS];
	const char *out_port;
	const char *outputs[8]; /* names of tensors; NULL ends */
	bool fails; /* both are to fail with the same sentence, but for where the tensors lie */
};

/* splitmix64, of S. Vigna */
uint64_t twin_next(uint64_t *state);
int twin_below(uint64_t *state, int limit);
/* Adds an argument whose value is written as printf does. */
void twin_arg(struct twin *twin, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A tensor of the host, to be filled. */
struct frag_tensor *twin_tensor(struct frag_dtype dtype, int32_t ndim, const int64_t *shape);
/* The same with numbers by chance; a part of it, with distances between the rows, if has_gaps. */
struct frag_tensor *twin_noise(uint64_t *state, struct frag_dtype dtype, int32_t ndim,
			       const int64_t *shape, bool has_gaps);
bool twin_same(struct twin *twin, char *why, size_t size);

#define TWIN_U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})
#define TWIN_U16 ((struct frag_dtype){FRAG_DTYPE_UINT, 16, 1})
#define TWIN_F32 ((struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1})
#define TWIN_I32 ((struct frag_dtype){FRAG_DTYPE_INT, 32, 1})

#endif
