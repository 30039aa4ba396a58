/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_MAY_WRITE_H
#define FRAGI_BASE_MAY_WRITE_H

#include <base/diag.h>

/* Set by workerd for a host that may not write everywhere: "below /a, /b only", or "nowhere". */
#define FRAGI_MAY_WRITE "FRAG_MAY_WRITE"

/*
 * For the sentence about an operator that failed with this code: where its host may write, when the
 * kernel may have refused a write for that reason. Writes text that begins with "; ", or none, into
 * out.
 */
#define FRAGI_MAY_WRITE_HINT_SIZE 512
void fragi_may_write_hint(int code, char *out, size_t size);

#endif
