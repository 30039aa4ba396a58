/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_PINNED_H
#define FRAGI_TYPE_PINNED_H

#include <stdint.h>

#include <frag/error.h>
#include <type/registry.h>

/*
 * A pinned library is one whose sha256 the graph states. Its bytes are copied once into memory that
 * is then sealed, so that nobody, not even who may write the file, changes them any more; the copy
 * is hashed, and the copy is loaded.
 * - path, file: its real path, and its name for sentences
 * - sha256: FRAGI_SHA256_DIGITS lower-case hexadecimal digits
 * - out_fd: receives the copy, to be loaded as /proc/self/fd/N; the caller closes it
 * Returns 0; -ENOENT: the file cannot be read, or the module crypto is missing; -EBADMSG: it has
 * another sha256; -ENOMEM.
 */
int fragi_pinned_open(const char *path, const char *file, const char *sha256, int *out_fd,
		      struct frag_err *err);

/*
 * A library is loaded once: whether it was as sha256 demands. Returns 0, or -EBADMSG with a
 * sentence.
 */
int fragi_pinned_check(const struct fragi_library *library, const char *sha256,
		       struct frag_err *err);

/*
 * The sha256 of bytes, as the graph writes it.
 * - what: whose they are, for the sentence
 * - advice: what a person can do where the module crypto is missing
 * Returns 0, or -ENOENT with a sentence.
 */
FRAGI_API int fragi_sha256(const void *bytes, size_t size, const char *what, const char *advice,
			   char out[FRAGI_SHA256_DIGITS + 1], struct frag_err *err);
/* The sha256 of a file, as the graph writes it. Returns 0, -ENOENT with a sentence, or -ENOMEM. */
FRAGI_API int fragi_file_sha256(const char *path, char out[FRAGI_SHA256_DIGITS + 1],
				struct frag_err *err);

#endif
