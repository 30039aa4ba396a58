// SPDX-License-Identifier: Apache-2.0
#include "window.h"

static const struct frag_op_type *const window_ops[] = {
	&window_window_type,
};

FRAG_PLUGIN(.name = "window", .version = FRAG_VERSION, FRAG_OPS(window_ops));
