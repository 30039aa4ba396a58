// SPDX-License-Identifier: Apache-2.0
#include <base/policy.h>
#include <cond/condition.h>

struct expiring {
	const char *receiver;
	int64_t max_batch_size;
	int64_t max_delay_ns;
	/* of a message whose emit has no known time: when it was seen first */
	int64_t seen_ns;
	bool is_seen;
};

static const struct frag_param params[] = {
	FRAG_PARAM_STRING(struct expiring, receiver, NULL, .flags = FRAG_PARAM_OPTIONAL,
			  .headline = "Input; may be left out where the operator has one"),
	FRAG_PARAM_I64(struct expiring, max_batch_size, 0, .flags = FRAG_PARAM_REQUIRED, .min = 1,
		       .max = FRAGI_CAPACITY_MAX,
		       .headline = "Messages that are enough, on all flows together"),
	FRAG_PARAM_DURATION(struct expiring, max_delay_ns, 0, .flags = FRAG_PARAM_REQUIRED,
			    .min = 0, .max = 1e18,
			    .headline = "Time since the emit of the oldest message that is enough"),
};

static int bind(void *state, struct frag_condition *condition, struct frag_err *err)
{
	const struct expiring *s = state;

	(void)err;
	condition->sum = (uint64_t)s->max_batch_size;
	return 0;
}

/* What is left when no flow can get more is a batch of its own. */
static enum frag_ready check_inputs(void *state, const struct fragi_waiting *inputs, uint32_t count,
				    int64_t now_ns, int64_t *out_until_ns)
{
	struct expiring *s = state;
	int64_t since_ns = inputs->oldest_ns;

	(void)count;
	if (inputs->ended)
		return FRAG_NEVER;
	if (inputs->count == 0) {
		s->is_seen = false;
		return FRAG_WAIT;
	}
	if (inputs->count >= (uint64_t)s->max_batch_size || inputs->least == UINT64_MAX)
		return FRAG_READY;
	if (since_ns == FRAGI_TIME_UNKNOWN) {
		s->seen_ns = s->is_seen ? s->seen_ns : now_ns;
		s->is_seen = true;
		since_ns = s->seen_ns;
	}
	if (now_ns - since_ns >= s->max_delay_ns)
		return FRAG_READY;
	*out_until_ns = since_ns + s->max_delay_ns;
	return FRAG_WAIT_TIME;
}

static void ticked(void *state, int64_t now_ns)
{
	(void)now_ns;
	((struct expiring *)state)->is_seen = false;
}

const struct fragi_built_in_condition fragi_condition_expiring_message_available = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "expiring_message_available",
		 .headline = "A batch of messages waits, or one message for long enough",
		 .state_size = sizeof(struct expiring), FRAG_PARAMS(params),
		 .flags = FRAG_CONDITION_TIMED, .bind = bind, .ticked = ticked},
	.port_param = "receiver",
	.port_dir = FRAG_IN,
	.check_inputs = check_inputs,
};
