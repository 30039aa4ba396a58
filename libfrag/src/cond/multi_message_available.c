// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/policy.h>
#include <cond/condition.h>

struct multi {
	struct frag_string_list receivers;
	const char *sampling_mode;
	int64_t min_sum;
	struct frag_i64_list min_sizes;
};

/* The same with a time; multi is its first member. */
struct multi_timeout {
	struct multi multi;
	int64_t execution_frequency, tolerance;
	int64_t due_ns; /* a tick is due without messages too; 0 before the first check */
};

static const char *const modes[] = {"SumOfAll", "PerReceiver", NULL};

#define PARAMS(T, field)                                                                           \
	{.name = "receivers",                                                                      \
	 .kind = FRAG_PARAM_KIND_STRING_LIST,                                                      \
	 .offset = FRAG_PARAM_OFFSET(T, field receivers, struct frag_string_list),                 \
	 .flags = FRAG_PARAM_OPTIONAL,                                                             \
	 .headline = "Inputs; left out: all inputs of the operator"},                              \
		{.name = "sampling_mode",                                                          \
		 .kind = FRAG_PARAM_KIND_STRING,                                                   \
		 .offset = FRAG_PARAM_OFFSET(T, field sampling_mode, const char *),                \
		 .def_text = "SumOfAll",                                                           \
		 .choices = modes,                                                                 \
		 .headline = "Whether min_sum counts, or min_sizes"},                              \
		{.name = "min_sum",                                                                \
		 .kind = FRAG_PARAM_KIND_I64,                                                      \
		 .offset = FRAG_PARAM_OFFSET(T, field min_sum, int64_t),                           \
		 .def_int = 1,                                                                     \
		 .min = 1,                                                                         \
		 .max = 1e9,                                                                       \
		 .headline = "Messages that must wait at all inputs together"},                    \
	{                                                                                          \
		.name = "min_sizes", .kind = FRAG_PARAM_KIND_I64_LIST,                             \
		.offset = FRAG_PARAM_OFFSET(T, field min_sizes, struct frag_i64_list),             \
		.flags = FRAG_PARAM_OPTIONAL,                                                      \
		.headline = "Messages that must wait at each input; left out: 1"                   \
	}

static const struct frag_param params[] = {PARAMS(struct multi, )};
static const struct frag_param timeout_params[] = {
	PARAMS(struct multi_timeout, multi.),
	FRAG_PARAM_DURATION(struct multi_timeout, execution_frequency, 0,
			    .flags = FRAG_PARAM_REQUIRED, .min = 1, .max = 1e18,
			    .headline = "Time since the last tick that is enough: 10ms, 30hz"),
	FRAG_PARAM_DURATION(struct multi_timeout, tolerance, 0, .max = 1e18,
			    .headline = "How much later it may be, to take the next message along"),
};

static bool is_per_receiver(const struct multi *s)
{
	return s->sampling_mode[0] == 'P';
}

static int bind(void *state, struct frag_condition *condition, struct frag_err *err)
{
	const struct multi *s = state;

	if (!is_per_receiver(s)) {
		if (s->min_sizes.count > 0)
			return frag_err_set(
				err, -EINVAL,
				"min_sizes counts in sampling_mode PerReceiver only; give min_sum, or that mode");
		condition->sum = (uint64_t)s->min_sum;
		return 0;
	}
	if (s->min_sizes.count == 0)
		return 0;
	if (s->min_sizes.count != condition->port_count)
		return frag_err_set(
			err, -EINVAL,
			"min_sizes is a list of %zu, and there are %u inputs; give one number for each",
			s->min_sizes.count, condition->port_count);
	for (size_t i = 0; i < s->min_sizes.count; i++)
		if (s->min_sizes.items[i] < 1 || s->min_sizes.items[i] > FRAGI_CAPACITY_MAX)
			return frag_err_set(err, -EINVAL,
					    "min_sizes has %lld; give numbers from 1 to %u",
					    (long long)s->min_sizes.items[i], FRAGI_CAPACITY_MAX);
	condition->sizes = s->min_sizes.items;
	return 0;
}

/* Each input must have its messages, as with a message_available of its own. */
static enum frag_ready check_each(const struct multi *s, const struct fragi_waiting *inputs,
				  uint32_t count)
{
	enum frag_ready ready = FRAG_READY;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t least = s->min_sizes.count > 0 ? (uint64_t)s->min_sizes.items[i] : 1;

		if (inputs[i].ended)
			return FRAG_NEVER;
		if (inputs[i].least < least)
			ready = FRAG_WAIT;
	}
	return ready;
}

/* All together must have them; when none can get more, what is left is enough. */
static enum frag_ready check_sum(const struct multi *s, const struct fragi_waiting *inputs,
				 uint32_t count)
{
	bool ended = true, closed = true;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		ended = ended && inputs[i].ended;
		closed = closed && inputs[i].least == UINT64_MAX;
		sum += inputs[i].count;
	}
	if (ended)
		return FRAG_NEVER;
	return sum >= (uint64_t)s->min_sum || closed ? FRAG_READY : FRAG_WAIT;
}

static enum frag_ready check_inputs(void *state, const struct fragi_waiting *inputs, uint32_t count,
				    int64_t now_ns, int64_t *out_until_ns)
{
	const struct multi *s = state;

	(void)now_ns;
	(void)out_until_ns;
	return is_per_receiver(s) ? check_each(s, inputs, count) : check_sum(s, inputs, count);
}

static enum frag_ready timeout_check_inputs(void *state, const struct fragi_waiting *inputs,
					    uint32_t count, int64_t now_ns, int64_t *out_until_ns)
{
	struct multi_timeout *s = state;
	enum frag_ready ready = check_inputs(state, inputs, count, now_ns, out_until_ns);

	if (s->due_ns == 0)
		s->due_ns = now_ns + s->execution_frequency;
	if (ready != FRAG_WAIT)
		return ready;
	*out_until_ns = s->due_ns + s->tolerance;
	return now_ns >= s->due_ns ? FRAG_READY : FRAG_WAIT_TIME;
}

static void timeout_ticked(void *state, int64_t now_ns)
{
	struct multi_timeout *s = state;

	s->due_ns = now_ns + s->execution_frequency;
}

const struct fragi_built_in_condition fragi_condition_multi_message_available = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "multi_message_available",
		 .headline = "Messages are waiting at several inputs",
		 .state_size = sizeof(struct multi), FRAG_PARAMS(params), .bind = bind},
	.port_param = "receivers",
	.port_dir = FRAG_IN,
	.all_ports = true,
	.takes_list = true,
	.check_inputs = check_inputs,
};

const struct fragi_built_in_condition fragi_condition_multi_message_available_timeout = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "multi_message_available_timeout",
		 .headline = "Messages are waiting at several inputs, or a time has passed",
		 .state_size = sizeof(struct multi_timeout), FRAG_PARAMS(timeout_params),
		 .flags = FRAG_CONDITION_TIMED, .bind = bind, .ticked = timeout_ticked},
	.port_param = "receivers",
	.port_dir = FRAG_IN,
	.all_ports = true,
	.takes_list = true,
	.check_inputs = timeout_check_inputs,
};
