// SPDX-License-Identifier: Apache-2.0
#include "viewer.h"

static const struct frag_op_type *const viewer_ops[] = {
	&viewer_viewer_type,
};

FRAG_PLUGIN(.name = "viewer", .version = FRAG_VERSION, FRAG_OPS(viewer_ops));
