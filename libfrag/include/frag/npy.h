/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_NPY_H
#define FRAG_NPY_H

#include <frag/tensor.h>

FRAG_BEGIN_DECLS

/*
 * Tensors as files of NumPy, which numpy.load and numpy.save read and write.
 * Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays".
 */

/*
 * Reads a tensor into host memory.
 * - path: a .npy file of version 1 to 3, little-endian, in C order, with elements of the types
 *   bool, i1 to i8, u1 to u8, f2 to f8, c8 and c16
 * - out: receives a new reference; untouched on failure
 * - err: receives what is wrong, with the file's name; NULL is accepted
 * Returns 0; -ENOENT and the like: it cannot be read; -EINVAL: it is no such file, or shorter than
 * its header says; -ENOMEM.
 * Thread: any. Blocks: while it reads. RT-safe: no.
 */
FRAG_API int frag_npy_read(const char *path, struct frag_tensor **out, struct frag_err *err);
/*
 * Writes a tensor of host memory, whatever its strides. Lanes become one more dimension; bfloat16,
 * which NumPy has not, becomes its void type of 2 bytes.
 * - path: the file; what it held is lost
 * - out_bytes: receives the bytes of the elements; NULL is accepted
 * Returns 0; -EOPNOTSUPP: its memory is that of a device; -EIO, -ENOENT and the like.
 * Thread: any. Blocks: while it writes. RT-safe: no.
 */
FRAG_API int frag_npy_write(const char *path, const struct frag_tensor *tensor,
			    uint64_t *out_bytes);

FRAG_END_DECLS

#endif
