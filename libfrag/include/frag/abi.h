/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_ABI_H
#define FRAG_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define FRAG_BEGIN_DECLS extern "C" {
#define FRAG_END_DECLS }
#else
#define FRAG_BEGIN_DECLS
#define FRAG_END_DECLS
#endif

/* Functions and objects that libfrag.so offers to operators and programs. */
#define FRAG_API __attribute__((visibility("default")))
#define FRAG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/*
 * The ABI of plugins. A plugin built for another major is refused when it is loaded, naming both
 * numbers. Within a major, structs and tables grow at their end only: every struct that crosses the
 * ABI starts with its size, every table travels with its element size, and a field that an older
 * caller did not know reads as zero, which always means "default".
 */
#define FRAG_ABI_MAJOR 1
#define FRAG_ABI_MINOR 0

#define FRAG_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Longest name of an application, fragment, operator, port, parameter, type, tensor or metadata
 * key, in bytes without the terminating NUL. A name matches [A-Za-z][A-Za-z0-9_-]{0,62}; type names
 * may also hold . and [].
 */
#define FRAG_NAME_MAX 63

#endif
