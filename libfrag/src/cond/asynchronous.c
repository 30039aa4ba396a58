// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdatomic.h>

#include <cond/condition.h>

struct asynchronous {
	_Atomic int event_state; /* enum frag_event_state */
};

static enum frag_ready check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	struct asynchronous *s = state;

	(void)now_ns;
	(void)out_until_ns;
	switch (atomic_load_explicit(&s->event_state, memory_order_acquire)) {
	case FRAG_EVENT_WAIT:
		return FRAG_WAIT;
	case FRAG_EVENT_WAITING:
		return FRAG_WAIT_EVENT;
	case FRAG_EVENT_NEVER:
		return FRAG_NEVER;
	default:
		return FRAG_READY;
	}
}

int frag_condition_set_event_state(struct frag_condition *condition, enum frag_event_state state)
{
	struct asynchronous *s =
		frag_condition_state(condition, fragi_condition_asynchronous.type.name);

	if (s == NULL || state < FRAG_EVENT_READY || state > FRAG_EVENT_NEVER)
		return -EINVAL;
	atomic_store_explicit(&s->event_state, state, memory_order_release);
	frag_condition_changed(condition);
	return 0;
}

int frag_condition_event_state(struct frag_condition *condition)
{
	struct asynchronous *s =
		frag_condition_state(condition, fragi_condition_asynchronous.type.name);

	return s != NULL ? atomic_load_explicit(&s->event_state, memory_order_acquire) : -EINVAL;
}

const struct fragi_built_in_condition fragi_condition_asynchronous = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "asynchronous",
		 .headline = "An event from outside, reported by frag_condition_set_event_state",
		 .state_size = sizeof(struct asynchronous), .flags = FRAG_CONDITION_OUTSIDE,
		 .check = check},
};
