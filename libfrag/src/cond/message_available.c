// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/policy.h>
#include <cond/condition.h>

struct message_available {
	const char *receiver;
	int64_t min_size;
	int64_t front_stage_max_size;
};

static const struct frag_param params[] = {
	FRAG_PARAM_STRING(struct message_available, receiver, NULL, .flags = FRAG_PARAM_OPTIONAL,
			  .headline = "Input; may be left out where the operator has one"),
	FRAG_PARAM_I64(
		struct message_available, min_size, 1, .min = 1, .max = FRAGI_CAPACITY_MAX,
		.headline = "Messages that must be waiting, on each flow of a multi-receiver port"),
	FRAG_PARAM_I64(struct message_available, front_stage_max_size, 0, .min = 0,
		       .max = FRAGI_CAPACITY_MAX,
		       .headline = "Not while more than this many are waiting; 0: no such limit"),
};

static int bind(void *state, struct frag_condition *condition, struct frag_err *err)
{
	const struct message_available *s = state;

	if (s->front_stage_max_size > 0 && s->min_size > s->front_stage_max_size)
		return frag_err_set(
			err, -EINVAL,
			"min_size is %lld and front_stage_max_size %lld, so no number of messages is right; lower min_size",
			(long long)s->min_size, (long long)s->front_stage_max_size);
	condition->gate_min = (uint32_t)s->min_size;
	condition->gate_max = (uint32_t)s->front_stage_max_size;
	return 0;
}

const struct fragi_built_in_condition fragi_condition_message_available = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "message_available",
		 .headline = "Messages are waiting at an input",
		 .state_size = sizeof(struct message_available), FRAG_PARAMS(params), .bind = bind},
	.port_param = "receiver",
	.port_dir = FRAG_IN,
};
