// SPDX-License-Identifier: Apache-2.0
#include <cond/condition.h>

struct periodic {
	int64_t recess_period;
	const char *policy;
	int64_t next_ns; /* of the clock, once it has ticked */
	bool has_ticked;
};

static const char *const policies[] = {"catch_up_missed_ticks", "min_time_between_ticks",
				       "no_catch_up_missed_ticks", NULL};
static const struct frag_param params[] = {
	FRAG_PARAM_DURATION(struct periodic, recess_period, 0, .flags = FRAG_PARAM_REQUIRED,
			    .min = 1, .max = 1e18,
			    .headline = "Time between two ticks, or a frequency: 10ms, 30hz"),
	FRAG_PARAM_STRING(struct periodic, policy, "catch_up_missed_ticks", .choices = policies,
			  .headline = "What happens to ticks whose time went by"),
};

static enum frag_ready check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	const struct periodic *s = state;

	if (!s->has_ticked || s->next_ns <= now_ns)
		return FRAG_READY;
	*out_until_ns = s->next_ns;
	return FRAG_WAIT_TIME;
}

/*
 * The three policies, for ticks that should have been at 0, P, 2P ... and of which one began late:
 * catch_up_missed_ticks holds all of them, at once where their time is over; min_time_between_ticks
 * counts from the late one; no_catch_up_missed_ticks goes on with the next multiple of P that is
 * still to come.
 */
static void ticked(void *state, int64_t now_ns)
{
	struct periodic *s = state;
	int64_t period = s->recess_period;
	int64_t due = s->has_ticked ? s->next_ns : now_ns;

	s->has_ticked = true;
	switch (s->policy[0]) {
	case 'm':
		s->next_ns = now_ns + period;
		break;
	case 'n':
		s->next_ns = due + ((now_ns - due) / period + 1) * period;
		break;
	default:
		s->next_ns = due + period;
		break;
	}
}

const struct fragi_built_in_condition fragi_condition_periodic = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "periodic", .headline = "A tick every so often",
		 .state_size = sizeof(struct periodic), FRAG_PARAMS(params),
		 .flags = FRAG_CONDITION_TIMED, .check = check, .ticked = ticked},
};
