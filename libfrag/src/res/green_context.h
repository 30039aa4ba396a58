/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RES_GREEN_CONTEXT_H
#define FRAGI_RES_GREEN_CONTEXT_H

#include <res/resource.h>

/* Whether a resource is a cuda_green_context, and of which GPU. NULL is accepted. */
bool fragi_is_green_context(const struct frag_resource *resource, int64_t *out_dev_id);
/* Its CUgreenCtx, once its pool is initialised. */
void *fragi_green_context(const struct frag_resource *resource);

#endif
