/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_HINT_H
#define FRAGI_GRAPH_HINT_H

#include <base/diag.h>

/*
 * The end of a sentence about an unknown name: `; did you mean "threshold"?` when one of names is near, else
 * `; LEAD a, b, c` (the first ones when there are many), else "" (no names: `; NONE` when it is given).
 * Written into out; returns out.
 */
FRAGI_API const char *fragi_hint(const char *word, const char *const *names, size_t count, const char *lead,
				 const char *none, char *out, size_t size);

#endif
