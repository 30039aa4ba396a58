// SPDX-License-Identifier: Apache-2.0
#include <cond/condition.h>

/* It is about its ports, and asks nothing of them. */
struct none {
	const char *port;
};

static const struct frag_param params[] = {
	FRAG_PARAM_STRING(struct none, port, NULL, .flags = FRAG_PARAM_OPTIONAL,
			  .headline = "Port; left out: all ports of the operator"),
};

const struct fragi_built_in_condition fragi_condition_none = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "none",
		 .headline = "Takes away the default conditions of the ports",
		 .state_size = sizeof(struct none), FRAG_PARAMS(params)},
	.port_param = "port",
	.all_ports = true,
};
