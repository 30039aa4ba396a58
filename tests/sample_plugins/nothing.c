// SPDX-License-Identifier: Apache-2.0
/* A shared object that is not a plugin. */
#include <frag/abi.h>

extern FRAG_API const int nothing;
const int nothing = 0;
