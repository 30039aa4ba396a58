// SPDX-License-Identifier: Apache-2.0
/* Built for an ABI that is still to come, under the name that this one looks for. */
#include <frag/frag.h>

extern FRAG_API const struct frag_plugin frag_plugin_v1;
const struct frag_plugin frag_plugin_v1 = {
	.struct_size = sizeof(struct frag_plugin),
	.abi_major = 9,
	.name = "major",
};
