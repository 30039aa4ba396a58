// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <cond/cond.h>

#define PARAM(member, k, ...)                                                                      \
	{                                                                                          \
		.name = #member, .kind = (k),                                                      \
		.offset = offsetof(struct fragi_cond_params, member), __VA_ARGS__                  \
	}

static const char *const periodic_policies[] = {"catch_up_missed_ticks", "min_time_between_ticks",
						"no_catch_up_missed_ticks", NULL};

static const struct frag_param message_available_params[] = {
	PARAM(receiver, FRAG_PARAM_KIND_STRING, .flags = FRAG_PARAM_OPTIONAL,
	      .headline = "Input; may be left out where the operator has one"),
	PARAM(min_size, FRAG_PARAM_KIND_I64, .def_int = 1, .min = 1, .max = 1 << 20,
	      .headline = "Messages that must be waiting, on each flow of a multi-receiver port"),
	PARAM(front_stage_max_size, FRAG_PARAM_KIND_I64, .def_int = 0, .min = 0, .max = 1 << 20,
	      .headline = "Not while more than this many are waiting; 0: no such limit"),
};
static const struct frag_param downstream_affordable_params[] = {
	PARAM(transmitter, FRAG_PARAM_KIND_STRING, .flags = FRAG_PARAM_OPTIONAL,
	      .headline = "Output; may be left out where the operator has one"),
	PARAM(min_size, FRAG_PARAM_KIND_I64, .def_int = 1, .min = 1, .max = 1 << 20,
	      .headline = "Messages for which every flow must have room"),
};
static const struct frag_param count_params[] = {
	PARAM(count, FRAG_PARAM_KIND_I64, .def_int = 1, .headline = "Ticks, then never again"),
};
static const struct frag_param boolean_params[] = {
	PARAM(enable_tick, FRAG_PARAM_KIND_BOOL, .def_int = true,
	      .headline = "Whether it may be ticked at first"),
};
static const struct frag_param periodic_params[] = {
	PARAM(recess_period, FRAG_PARAM_KIND_DURATION, .flags = FRAG_PARAM_REQUIRED, .min = 1,
	      .max = 1e18, .headline = "Time between two ticks, or a frequency: 10ms, 30hz"),
	PARAM(policy, FRAG_PARAM_KIND_STRING, .def_text = "catch_up_missed_ticks",
	      .choices = periodic_policies, .headline = "What happens to ticks whose time went by"),
};
static const struct frag_param none_params[] = {
	PARAM(port, FRAG_PARAM_KIND_STRING, .flags = FRAG_PARAM_OPTIONAL,
	      .headline = "Port; left out: all ports of the operator"),
};

static enum fragi_ready count_check(struct frag_condition *condition, int64_t now_ns,
				    int64_t *out_until_ns)
{
	(void)now_ns;
	(void)out_until_ns;
	return condition->left > 0 ? FRAGI_READY : FRAGI_NEVER;
}

static void count_ticked(struct frag_condition *condition, int64_t now_ns)
{
	(void)now_ns;
	condition->left--;
}

static enum fragi_ready boolean_check(struct frag_condition *condition, int64_t now_ns,
				      int64_t *out_until_ns)
{
	(void)now_ns;
	(void)out_until_ns;
	return atomic_load_explicit(&condition->enabled, memory_order_acquire) ? FRAGI_READY
									       : FRAGI_WAIT_EVENT;
}

static enum fragi_ready periodic_check(struct frag_condition *condition, int64_t now_ns,
				       int64_t *out_until_ns)
{
	if (condition->next_ns <= now_ns)
		return FRAGI_READY;
	*out_until_ns = condition->next_ns;
	return FRAGI_WAIT_TIME;
}

/*
 * The three policies, for ticks that should have been at 0, P, 2P ... and of which one began late:
 * catch_up_missed_ticks holds all of them, at once where their time is over; min_time_between_ticks
 * counts from the late one; no_catch_up_missed_ticks goes on with the next multiple of P that is
 * still to come.
 */
static void periodic_ticked(struct frag_condition *condition, int64_t now_ns)
{
	int64_t period = condition->params.recess_period;
	int64_t due = condition->next_ns == 0 ? now_ns : condition->next_ns;

	switch (condition->params.policy != NULL ? condition->params.policy[0] : 'c') {
	case 'm':
		condition->next_ns = now_ns + period;
		break;
	case 'n':
		condition->next_ns = due + ((now_ns - due) / period + 1) * period;
		break;
	default:
		condition->next_ns = due + period;
		break;
	}
}

#define PARAMS(table) .params = (table), .param_count = (uint32_t)FRAG_COUNT_OF(table)

static const struct fragi_cond_type types[] = {
	{.kind = FRAGI_COND_MESSAGE_AVAILABLE,
	 .name = "message_available",
	 .headline = "Messages are waiting at an input",
	 PARAMS(message_available_params)},
	{.kind = FRAGI_COND_DOWNSTREAM_AFFORDABLE,
	 .name = "downstream_affordable",
	 .headline = "The receivers of an output have room",
	 PARAMS(downstream_affordable_params)},
	{.kind = FRAGI_COND_COUNT,
	 .name = "count",
	 .headline = "A number of ticks, then never again",
	 PARAMS(count_params),
	 .check = count_check,
	 .ticked = count_ticked},
	{.kind = FRAGI_COND_BOOLEAN,
	 .name = "boolean",
	 .headline = "Switched by frag_condition_enable_tick and frag_condition_disable_tick",
	 PARAMS(boolean_params),
	 .check = boolean_check},
	{.kind = FRAGI_COND_PERIODIC,
	 .name = "periodic",
	 .headline = "A tick every so often",
	 PARAMS(periodic_params),
	 .check = periodic_check,
	 .ticked = periodic_ticked},
	{.kind = FRAGI_COND_NONE,
	 .name = "none",
	 .headline = "Takes away the default conditions of the ports",
	 PARAMS(none_params)},
};

const struct fragi_cond_type *fragi_cond_type_find(const char *name)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(types); i++)
		if (strcmp(types[i].name, name) == 0)
			return &types[i];
	return NULL;
}

const struct fragi_cond_type *fragi_cond_types(size_t *out_count)
{
	*out_count = FRAG_COUNT_OF(types);
	return types;
}

void fragi_cond_reset(struct frag_condition *condition)
{
	condition->left = condition->params.count;
	condition->next_ns = 0;
	atomic_store_explicit(&condition->enabled, condition->params.enable_tick,
			      memory_order_relaxed);
}

static int boolean_set(struct frag_condition *condition, bool enabled)
{
	if (condition == NULL || condition->type->kind != FRAGI_COND_BOOLEAN)
		return -EINVAL;
	atomic_store_explicit(&condition->enabled, enabled, memory_order_release);
	if (condition->changed.fn != NULL)
		condition->changed.fn(condition->changed.arg);
	return 0;
}

int frag_condition_enable_tick(struct frag_condition *condition)
{
	return boolean_set(condition, true);
}

int frag_condition_disable_tick(struct frag_condition *condition)
{
	return boolean_set(condition, false);
}
