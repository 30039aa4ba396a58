/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_RESOURCE_H
#define FRAG_RESOURCE_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Resources are shared by the operators of a fragment. The built-in ones are allocators. Their
 * names in graphs, and their parameters with the defaults in parentheses:
 * - block_memory_pool: a fixed number of blocks of one size. A request for more than one block
 *   holds, or for one block more than there are, fails.
 *   - block_size: bytes of a block; required
 *   - num_blocks: number of blocks; required
 *   - storage_type (2): 0: pinned host memory, 1: device memory, 2: system memory; 0 and 1 need a
 *     GPU
 *   - dev_id (0): number of the GPU, for device memory
 * - unbounded_allocator: the heap of the process, and memory of GPUs without a pool; no parameters
 * - rmm_allocator, stream_ordered_allocator: memory of a GPU from pools; cuda_stream_pool: streams
 *   of a GPU; cuda_green_context_pool, cuda_green_context: parts of a GPU, for such streams.
 *   `fragctl inspect TYPE` lists their parameters.
 *
 * A plugin brings types of its own: see struct frag_resource_type. An operator reaches a resource
 * - by a parameter: FRAG_PARAM_RESOURCE in its table, `pool: $pool` in the graph
 * - by name: frag_op_resource(op, "pool"), any of its fragment
 * - by position: frag_op_resource_at(op, 0), of those that its graph lists (`resources: [$pool]`)
 *   or its composer gives it (frag_add_resource)
 * - as a service, by type: service.h
 */
struct frag_resource;
struct frag_fragment;
struct frag_param;

/*
 * The table of a resource type. A plugin lists its own with FRAG_RESOURCES (plugin.h).
 *
 * The callbacks, in the order of their calls; all of them may be NULL:
 * - setup: once, when the resource is made, with the parameters in place; before the setup of every
 *   operator. A parameter of kind FRAG_PARAM_KIND_RESOURCE names a resource made before it.
 * - initialize: once, before anything runs, in the order in which the resources were made, and
 *   before the initialize of every condition and operator
 * - driver_start, worker_connect, worker_disconnect, driver_stop: of a service of the whole
 *   application, see service.h
 * - fini: once if setup succeeded, or is NULL and the parameters are in place: when the fragment
 *   has gone, and the last tensor whose memory is the resource's. Resources are finished in the
 *   opposite order, and each before those that its parameters name.
 *
 * A negative errno from setup refuses the application, together with all other errors of its graph;
 * one from initialize refuses it before anything ran. frag_err_set words both.
 *
 * state is `state_size` zeroed bytes, aligned to 64, that live until fini has returned. Callbacks
 * are called by one thread at a time. What operators call beside them is theirs to protect, because
 * operators may run at the same time.
 *
 * A type with alloc and free is an allocator: tensors take their memory from it. They are called on
 * any thread, also at the same time. alloc returns as frag_alloc does and gives memory aligned to
 * 64 bytes; free gets what alloc gave.
 */
struct frag_resource_type {
	/* set by FRAG_RESOURCE_TYPE_INIT */
	size_t struct_size;
	/* of the type, in graphs */
	const char *name;
	/* one line for people; NULL: none */
	const char *headline;
	/* more lines for people; NULL: none */
	const char *description;
	/* in bytes */
	size_t state_size;
	/* see FRAG_PARAMS */
	const struct frag_param *params;
	uint32_t param_count;
	uint32_t param_size;
	int (*setup)(void *state, struct frag_resource *resource, struct frag_err *err);
	int (*initialize)(void *state, struct frag_resource *resource, struct frag_err *err);
	void (*fini)(void *state);
	int (*alloc)(void *state, size_t size, void **out_memory);
	void (*free)(void *state, void *memory);
	int (*driver_start)(void *state, struct frag_resource *resource, struct frag_err *err);
	int (*driver_stop)(void *state, struct frag_resource *resource);
	int (*worker_connect)(void *state, struct frag_resource *resource, const char *driver,
			      struct frag_err *err);
	int (*worker_disconnect)(void *state, struct frag_resource *resource);
	/* for callbacks that several types share, such as those of another language; NULL: none */
	void *context;
};

/* Begins the table of a resource type. */
#define FRAG_RESOURCE_TYPE_INIT .struct_size = sizeof(struct frag_resource_type)

/*
 * Returns the state of a resource, for the functions by which a plugin lets operators use it.
 * - resource: NULL is accepted
 * - type: name of the type that it must be of
 * NULL: it is of another type, or is built in.
 * Thread: any; the state is then the caller's to protect. Blocks: no. RT-safe: it compares a text;
 * call it in setup, initialize or start.
 */
FRAG_API void *frag_resource_state(struct frag_resource *resource, const char *type);

/*
 * Takes memory of the host, aligned to 64 bytes, from an allocator. Tensors get memory of a GPU
 * (frag_tensor_create_on).
 * - allocator: NULL: the heap of the process
 * - size: in bytes
 * - out_memory: receives the memory; give it back with frag_free
 * Returns 0; -ENOMEM: nothing is left; -EMSGSIZE: larger than a block of the pool; -EINVAL: the
 * resource is no allocator; -EXDEV: it has memory of a GPU only.
 * Thread: any. Blocks: no. RT-safe: from a block_memory_pool.
 */
FRAG_API int frag_alloc(struct frag_resource *allocator, size_t size, void **out_memory);
/*
 * Gives memory back.
 * - allocator: the one that it was taken from
 * - memory: NULL is accepted
 * Thread: any. Blocks: no. RT-safe: to a block_memory_pool.
 */
FRAG_API void frag_free(struct frag_resource *allocator, void *memory);

/*
 * Returns the resource's name in the graph, borrowed as long as the resource lives.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const char *frag_resource_name(const struct frag_resource *resource);
/* Returns the member context of the resource's type. Thread: any. Blocks: no. RT-safe: yes. */
FRAG_API void *frag_resource_context(const struct frag_resource *resource);
/*
 * Returns the fragment of a resource, borrowed; NULL: it has gone, and a tensor keeps the resource.
 * Thread: a callback's. Blocks: no. RT-safe: yes.
 */
FRAG_API struct frag_fragment *frag_resource_fragment(const struct frag_resource *resource);
/*
 * Returns the resource's type and the values of its parameters as YAML, for people; NULL when
 * memory is short. The caller calls free() on it. Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API char *frag_resource_describe(const struct frag_resource *resource);
/*
 * Returns the number of blocks of a block_memory_pool that are not in use; SIZE_MAX for an
 * allocator that has no blocks. Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API size_t frag_resource_blocks_free(const struct frag_resource *resource);

/*
 * Takes a stream from a cuda_stream_pool, for work that an operator gives to a GPU: in start or
 * initialize, once for the life of the operator. Work that was given to it before may still run.
 * - pool: the operator's parameter, a resource of type cuda_stream_pool
 * - out_stream: receives a cudaStream_t (CUstream); give it back with frag_cuda_stream_give
 * Returns 0; -EINVAL: the resource is no cuda_stream_pool; -EBUSY: max_size streams are in use;
 * -ENODEV: no GPU was opened; -ENOMEM; -EIO: the GPU refuses.
 * Thread: any. Blocks: while it makes a stream. RT-safe: no.
 */
FRAG_API int frag_cuda_stream_take(struct frag_resource *pool, void **out_stream);
/*
 * Gives a stream back to its pool. stream: NULL is accepted. Streams that were not given back end
 * with the pool. Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API void frag_cuda_stream_give(struct frag_resource *pool, void *stream);

FRAG_END_DECLS

#endif
