// SPDX-License-Identifier: Apache-2.0
#include "basic.h"

static const struct frag_op_type *const basic_ops[] = {
	&basic_ping_tx_type,        &basic_ping_rx_type, &basic_ping_tensor_tx_type,
	&basic_ping_tensor_rx_type, &basic_forward_type,
};

FRAG_PLUGIN(.name = "basic", .version = FRAG_VERSION, FRAG_OPS(basic_ops));
