/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_ABI_H
#define FRAG_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Around the declarations of a header: C++ links them as C. */
#ifdef __cplusplus
#define FRAG_BEGIN_DECLS extern "C" {
#define FRAG_END_DECLS }
#else
#define FRAG_BEGIN_DECLS
#define FRAG_END_DECLS
#endif

/* Marks the functions and objects that libfrag.so exports to operators and programs. */
#define FRAG_API __attribute__((visibility("default")))
/* Has the compiler check the arguments of a printf format; both numbers are from 1. */
#define FRAG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/*
 * The comments of these headers use a few words in a fixed sense:
 * - Thread: which threads may call the function. "any" means every thread, also at the same time as
 *   others. "the tick's" means the thread that runs compute, before compute returns. "the
 *   callback's" means the thread that runs any callback of the operator, before it returns.
 * - Blocks: whether the call may wait for another thread, a file or the network. A mutex that is
 *   only ever held for a few instructions counts as "no".
 * - RT-safe: whether a real-time thread may call it: it does not block and does not allocate from
 *   the heap. It may make a system call to wake another thread. "after warm-up" means that the
 *   first calls of a thread allocate, and later ones do not as long as no more objects are in use
 *   than before.
 * - borrowed: the pointer stays valid for the stated time, and the caller gives nothing back.
 * - takes: the function owns the argument from now on, also when it fails.
 * - a new reference: the caller gives it back with the type's unref function.
 * A pointer argument must not be NULL unless its comment says that NULL is accepted. An out_
 * argument is written on success only.
 */

/*
 * The ABI of plugins. A plugin that was built for another major version is refused when it is
 * loaded; the sentence names both numbers. Within one major version structs and tables only grow at
 * their end: every struct that crosses the ABI starts with its size, every table travels with the
 * size of its elements, and a field that an older caller does not know reads as zero, which always
 * means "default".
 */
#define FRAG_ABI_MAJOR 1
#define FRAG_ABI_MINOR 0

/* The number of elements of an array. */
#define FRAG_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Longest name of an application, fragment, operator, port, parameter, type, tensor or metadata
 * key, in bytes without the terminating NUL. A name matches [A-Za-z][A-Za-z0-9_-]{0,62}. The name
 * of a type may also contain "." and "[]".
 */
#define FRAG_NAME_MAX 63

#endif
