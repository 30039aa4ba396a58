// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdatomic.h>

#include <cond/condition.h>

/*
 * Until it is switched for the first time the parameter counts. One that begins disabled waits to
 * be enabled; one that was disabled is for ever.
 */
enum { NOT_SWITCHED, ON, OFF };

struct boolean {
	bool enable_tick;
	_Atomic int switched;
};

static const struct frag_param params[] = {
	FRAG_PARAM_BOOL(struct boolean, enable_tick, true,
			.headline = "Whether it may be ticked before it is enabled"),
};

static enum frag_ready check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	struct boolean *s = state;
	int switched = atomic_load_explicit(&s->switched, memory_order_acquire);

	(void)now_ns;
	(void)out_until_ns;
	if (switched == NOT_SWITCHED)
		return s->enable_tick ? FRAG_READY : FRAG_WAIT_EVENT;
	return switched == ON ? FRAG_READY : FRAG_NEVER;
}

static int switch_to(struct frag_condition *condition, int to)
{
	struct boolean *s = frag_condition_state(condition, fragi_condition_boolean.type.name);

	if (s == NULL)
		return -EINVAL;
	atomic_store_explicit(&s->switched, to, memory_order_release);
	frag_condition_changed(condition);
	return 0;
}

int frag_condition_enable_tick(struct frag_condition *condition)
{
	return switch_to(condition, ON);
}

int frag_condition_disable_tick(struct frag_condition *condition)
{
	return switch_to(condition, OFF);
}

const struct fragi_built_in_condition fragi_condition_boolean = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "boolean",
		 .headline =
			 "Switched by frag_condition_enable_tick and frag_condition_disable_tick",
		 .state_size = sizeof(struct boolean), FRAG_PARAMS(params), .check = check},
};
