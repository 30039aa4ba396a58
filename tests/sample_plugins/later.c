// SPDX-License-Identifier: Apache-2.0
/* Has the symbol of another ABI, and not this one's. */
#include <frag/abi.h>

extern FRAG_API const int frag_plugin_v2;
const int frag_plugin_v2 = 2;
