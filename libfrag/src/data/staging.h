/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_STAGING_H
#define FRAGI_DATA_STAGING_H

#include <data/allocator.h>
#include <data/memory.h>

/*
 * The memory that tensors of GPUs pass through between hosts, one for this process:
 * - pinned memory of the host, which the GPU copies to and from at full speed. It is taken before
 *   the first tensor, or when more is needed, kept, and bounded: beyond FRAGI_STAGING_MAX, ordinary
 *   memory is used, which the driver copies through pinned memory of its own, while the caller
 *   waits. Nothing ever waits for a piece: those who have them may need this thread to let go of
 *   them. Where hosts share memory, it is some of that.
 * - device memory for what arrives, out of pools of the driver.
 */
#define FRAGI_STAGING_MAX ((uint64_t)256 << 20)
#define FRAGI_STAGING_STEP ((uint64_t)16 << 20) /* taken at once */

/* Its `alloc` gives memory of the host. Never NULL, and of use once a GPU was opened. */
FRAGI_API struct frag_resource *fragi_staging(void);
/* When a GPU was opened first. */
void fragi_staging_install(void);
/*
 * Takes from the driver what the first tensors need, if this process has opened a GPU: it takes
 * some milliseconds, which they would wait for. What cannot be had is left to them to report.
 * - arrives: tensors come to this host too
 */
FRAGI_API void fragi_staging_prepare(bool arrives);
/* Gives pinned memory back when nothing of it is in use. */
FRAGI_API void fragi_staging_trim(void);

#endif
