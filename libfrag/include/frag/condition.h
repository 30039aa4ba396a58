/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_CONDITION_H
#define FRAG_CONDITION_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Conditions decide when an operator is ticked: when all its conditions answer READY. Otherwise, of
 * the answers that its conditions give, the one that stands last in enum frag_ready counts.
 *
 * The built-in conditions, and their parameters in graphs with the defaults in parentheses:
 * - message_available: every flow of an input has messages
 *   - receiver: the input; optional where the operator has exactly one
 *   - min_size (1): messages that each flow must have
 *   - front_stage_max_size (0): not while more messages than this are waiting; 0: no limit
 * - downstream_affordable: every flow of an output has room
 *   - transmitter: the output; optional where the operator has exactly one
 *   - min_size (1): messages for which each flow must have room
 * - count: a number of ticks, then NEVER
 *   - count (1): that number
 * - boolean: switched on and off by the functions below. One that is off does not keep alive an
 *   application in which nothing else can happen any more.
 *   - enable_tick (true): the state at the start
 * - periodic: one tick in each period
 *   - recess_period: a duration or a frequency; required
 *   - policy (catch_up_missed_ticks): what happens to ticks that were missed; also
 *     min_time_between_ticks and no_catch_up_missed_ticks
 * - none: removes the default conditions of the operator's ports
 *   - port: one port; left out: all ports
 *
 * Source: Holoscan SDK user guide, "Conditions"; the order above is that of its AND combination.
 */
struct frag_condition;
struct frag_param;

/* What a condition answers. */
enum frag_ready {
	/* the operator may be ticked now */
	FRAG_READY = 0,
	/* not before a time */
	FRAG_WAIT_TIME = 1,
	/* not before a message arrives at the operator, or a receiver has room */
	FRAG_WAIT = 2,
	/* not before frag_condition_changed is called */
	FRAG_WAIT_EVENT = 3,
	/* never again: the operator ends */
	FRAG_NEVER = 4,
};

/*
 * Flags of a condition type:
 * - FRAG_CONDITION_TIMED: its callbacks get the time; an operator without such a condition does not
 *   read the clock
 * - FRAG_CONDITION_ENDS: it answers NEVER after some ticks. An operator without outputs whose
 *   inputs have no conditions is then ticked until that, instead of ending with its inputs.
 * - FRAG_CONDITION_POLLED: nobody calls frag_condition_changed when what it looks at changes. While
 *   it answers WAIT it is checked again every check_recession_period_ms of the scheduler.
 */
#define FRAG_CONDITION_TIMED 1u
#define FRAG_CONDITION_ENDS 2u
#define FRAG_CONDITION_POLLED 4u

/*
 * The table of a condition type. A plugin lists its own with FRAG_CONDITIONS (plugin.h).
 *
 * The callbacks; all but check may be NULL:
 * - bind: once, while the graph is built, with the parameters in place and after the operator's
 *   setup. A negative errno refuses the application; frag_err_set words it.
 * - check: before each tick that may come. Answers one of enum frag_ready. out_until_ns: receives,
 *   with FRAG_WAIT_TIME, the time of the next check.
 * - ticked: after each tick
 * - fini: once if bind succeeded, or is NULL and the parameters are in place
 *
 * state is `state_size` zeroed bytes, aligned for any type, that live as long as the operator.
 * now_ns is CLOCK_MONOTONIC in nanoseconds, for ticked that of the tick's begin; 0 without
 * FRAG_CONDITION_TIMED. check and ticked are called by one thread at a time; they must neither
 * block nor allocate.
 */
struct frag_condition_type {
	/* set by FRAG_CONDITION_TYPE_INIT */
	size_t struct_size;
	/* of the type, in graphs */
	const char *name;
	/* one line for people; NULL: none */
	const char *headline;
	/* more lines for people; NULL: none */
	const char *description;
	/* in bytes */
	size_t state_size;
	/* see FRAG_PARAMS */
	const struct frag_param *params;
	uint32_t param_count;
	uint32_t param_size;
	/* FRAG_CONDITION_... */
	uint32_t flags;
	int (*bind)(void *state, struct frag_condition *condition, struct frag_err *err);
	enum frag_ready (*check)(void *state, int64_t now_ns, int64_t *out_until_ns);
	void (*ticked)(void *state, int64_t now_ns);
	void (*fini)(void *state);
};

#define FRAG_CONDITION_TYPE_INIT .struct_size = sizeof(struct frag_condition_type)

/*
 * Returns the name of a condition, borrowed as long as its operator lives.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const char *frag_condition_name(const struct frag_condition *condition);
/*
 * Returns the state of a condition, for the functions by which a plugin lets operators use it.
 * - condition: NULL is accepted
 * - type: name of the type that it must be of
 * NULL: it is of another type.
 * Thread: any; the state is then the caller's to protect. Blocks: no. RT-safe: yes.
 */
FRAG_API void *frag_condition_state(struct frag_condition *condition, const char *type);
/*
 * Has a condition checked again: what check looks at has changed.
 * - condition: of an operator that has not been destroyed; before it runs nothing happens
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API void frag_condition_changed(struct frag_condition *condition);

/*
 * Switches a boolean condition on or off.
 * Returns 0; -EINVAL: condition is NULL or no boolean condition.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_condition_enable_tick(struct frag_condition *condition);
FRAG_API int frag_condition_disable_tick(struct frag_condition *condition);

FRAG_END_DECLS

#endif
