/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_SHARED_MEMORY_H
#define WRK_SHARED_MEMORY_H

#include <base/identity.h>
#include <workerd/rights.h>

/*
 * With whom the hosts of this worker can share memory: the text that it gives its driver. Empty:
 * with nobody, and out_why says why, as part of a sentence.
 */
void wrk_shared_memory(const struct wrk_rights *rights, char out[FRAGI_IDENTITY_MEMORY_SIZE],
		       char *out_why, size_t size);

#endif
