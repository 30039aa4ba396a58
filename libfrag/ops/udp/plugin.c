// SPDX-License-Identifier: Apache-2.0
#include "udp.h"

static const struct frag_op_type *const udp_ops[] = {&udp_source_type, &udp_sink_type};

FRAG_PLUGIN(.name = "udp", .version = FRAG_VERSION, FRAG_OPS(udp_ops));
