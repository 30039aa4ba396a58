/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_READABLE_H
#define FRAGI_BASE_READABLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether this process can read the first and the last byte of memory that somebody else describes.
 * Two short system calls; what lies between is not looked at.
 */
bool fragi_memory_is_readable(const void *start, size_t size);

#endif
