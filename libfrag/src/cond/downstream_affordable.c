// SPDX-License-Identifier: Apache-2.0
#include <base/policy.h>
#include <cond/condition.h>

struct downstream_affordable {
	const char *transmitter;
	int64_t min_size;
};

static const struct frag_param params[] = {
	FRAG_PARAM_STRING(struct downstream_affordable, transmitter, NULL,
			  .flags = FRAG_PARAM_OPTIONAL,
			  .headline = "Output; may be left out where the operator has one"),
	FRAG_PARAM_I64(struct downstream_affordable, min_size, 1, .min = 1,
		       .max = FRAGI_CAPACITY_MAX,
		       .headline = "Messages for which every flow must have room"),
};

static int bind(void *state, struct frag_condition *condition, struct frag_err *err)
{
	const struct downstream_affordable *s = state;

	(void)err;
	condition->gate_min = (uint32_t)s->min_size;
	return 0;
}

const struct fragi_built_in_condition fragi_condition_downstream_affordable = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "downstream_affordable",
		 .headline = "The receivers of an output have room",
		 .state_size = sizeof(struct downstream_affordable), FRAG_PARAMS(params),
		 .bind = bind},
	.port_param = "transmitter",
	.port_dir = FRAG_OUT,
};
