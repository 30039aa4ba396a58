// SPDX-License-Identifier: Apache-2.0
#include "testing.h"

static const struct frag_op_type *const testing_ops[] = {&testing_source_type, &testing_sink_type,
							 &testing_connection_type};
static const struct frag_condition_type *const testing_conditions[] = {&testing_times_type};

FRAG_PLUGIN(.name = "testing", .version = FRAG_VERSION, FRAG_OPS(testing_ops),
	    FRAG_CONDITIONS(testing_conditions));
