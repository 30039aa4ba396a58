/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_VARIABLE_H
#define FRAG_VARIABLE_H

#include <frag/operator.h>

FRAG_BEGIN_DECLS

/*
 * Shared variables: typed memory that operators of one application share, in one process or in
 * several of one machine. A graph declares them under `variables` (docs/GRAPH.md) with the one
 * operator or fragment that writes and those that read; or an operator creates one by name while
 * the application runs, and every other may read it.
 *
 * A variable goes round in this order, and readers see it in the third step only:
 *
 * 	writer: map to write, fill in, unmap -> publish -> readers: map, read, unmap
 *
 * - Memory that a reader has mapped is read-only and does not change: the writer gets it again when
 *   no reader has it.
 * - Mapping to write withdraws what was published, until it is published anew. What was written
 *   stays in the memory.
 * - A second writer is refused, and so is a reader while somebody writes.
 * - No flow and no condition comes of it: a reader is not scheduled because a variable was
 *   published. Where a reader has to wait for the writer it gives map or wait a time.
 * - All variables are freed with the application. What was published stays readable when the
 *   process that wrote it is gone.
 *
 * A handle belongs to the operator that opened it and lives as long as the operator. The functions
 * below word their failures in that operator (frag_op_fail). They are for initialize and for what
 * comes later; variables of other processes can be mapped from start on.
 */
struct frag_variable;

/* The access for which a variable is mapped. */
enum frag_variable_access {
	/* to read what is published */
	FRAG_VARIABLE_READ = 1,
	/* to write, alone */
	FRAG_VARIABLE_WRITE = 2,
};

/*
 * Opens a variable: one that the graph declares, or one that was created and published on this
 * machine. Opening it again returns the same handle.
 * - name: of the variable
 * - out: receives the handle, borrowed
 * Returns 0; -ENOENT: none is declared by that name, and none of that name is published; -EACCES:
 * the graph does not name this operator as its writer or a reader; -EINVAL: inside setup; -ENOMEM;
 * other negative errno: its memory cannot be mapped.
 * Thread: the callback's. Blocks: for a created variable of another process as long as that takes
 * to answer, 2 s at most. RT-safe: no.
 */
FRAG_API int frag_variable_open(struct frag_op *op, const char *name, struct frag_variable **out);

/*
 * Creates a variable that the graph does not declare. It has no memory yet, and nobody else sees
 * it before it is published. Only this operator may write it.
 * - name: as of an operator (FRAG_NAME_MAX)
 * - out: receives the handle, borrowed
 * Returns 0; -EINVAL: this is no name, or inside setup; -EEXIST: the graph or an operator of this
 * process has one of that name; -ENOSPC: there are FRAG_VARIABLES_MAX; -ENOMEM.
 * Thread: the callback's. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_variable_create(struct frag_op *op, const char *name, struct frag_variable **out);

/* The most variables that one process has: those that its graph declares, and created ones. */
#define FRAG_VARIABLES_MAX 1024

/*
 * Says what the variable holds, and gives it memory, which is zero at first. A declared variable
 * with fixed dimensions has memory from the start. One with a dimension of -1, or a string, can be
 * allocated again with other dimensions, which withdraws what was published; the memory keeps its
 * bytes. A created one is allocated once.
 * - dtype: element type, lanes 1; of a declared variable the one that was declared
 * - ndim: number of dimensions, 0 to FRAG_TENSOR_NDIM_MAX; 0: one element
 * - shape: [ndim] elements in each dimension, >= 0; NULL when ndim is 0
 * Returns 0; -EACCES: the handle may only read; -EINVAL: frag does not know the type or shape, or
 * the graph declares another; -EBUSY: it is mapped, here or by a reader, or was created and has
 * memory; -EMSGSIZE: larger than the memory of this machine; -ENOMEM.
 * Thread: the callback's. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_variable_allocate(struct frag_variable *variable, struct frag_dtype dtype,
				    int32_t ndim, const int64_t *shape);

/*
 * Maps the memory, and returns what it holds. The pointer is valid until unmap; one handle maps
 * once at a time. An operator that waits longer than a tick may take holds its thread meanwhile.
 * - access: to read, what is published, as it stays until unmap; to write, alone
 * - timeout_ns: how long it waits until it may be mapped, in nanoseconds from now; 0: not at all
 * - out: receives the description: host memory, compact, row-major. data is to be written only when
 *   access is FRAG_VARIABLE_WRITE: else writing ends the process by a signal.
 * Returns 0. With timeout_ns 0: -EAGAIN: nothing is published; -EBUSY: somebody writes it, or (to
 * write) somebody has it. Otherwise -ETIMEDOUT for either. -EACCES: the graph does not let this
 * operator; -EINVAL: the handle has mapped it, or it was never allocated; -ECANCELED: the
 * application stops, and compute is to return FRAG_DONE; -EBADMSG: its writer describes it wrongly;
 * other negative errno: the system refused.
 * Thread: the callback's. Blocks: for timeout_ns at most. RT-safe: no.
 */
FRAG_API int frag_variable_map(struct frag_variable *variable, enum frag_variable_access access,
			       int64_t timeout_ns, const struct frag_dltensor **out);

/*
 * Ends a mapping. What was written is not published by this.
 * Returns 0; -EINVAL: the handle has not mapped it.
 * Thread: the callback's. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_variable_unmap(struct frag_variable *variable);

/*
 * Publishes what the memory holds: from now on it can be mapped to read, and who waits for it goes
 * on. A created variable becomes visible to others by this.
 * Returns 0; -EACCES: the handle may only read; -EBUSY: it is mapped to write; -EINVAL: it was
 * never allocated; -EEXIST: another process of the application has published one of that name;
 * other negative errno: the system refused.
 * Thread: the callback's. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_variable_publish(struct frag_variable *variable);

/*
 * Waits for a publication that is newer than one that is known.
 * - after: the version of that one; 0: any is new
 * - timeout_ns: as of map
 * - out_version: receives its number, from 1; NULL is accepted
 * Returns 0; -ETIMEDOUT, with timeout_ns 0 -EAGAIN: there is none; -EACCES, -ECANCELED: as map.
 * Thread: the callback's. Blocks: for timeout_ns at most. RT-safe: no.
 */
FRAG_API int frag_variable_wait(struct frag_variable *variable, uint64_t after, int64_t timeout_ns,
				uint64_t *out_version);

/*
 * Returns the path that the graph declares by this name (`type: path`), absolute where the folder
 * of the graph is known; NULL when there is none, or when the graph does not name this operator as
 * its writer or a reader. Borrowed as long as the operator.
 * Thread: the callback's. Blocks: no. RT-safe: yes.
 */
FRAG_API const char *frag_variable_path(struct frag_op *op, const char *name);

FRAG_END_DECLS

#endif
