/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_CONDITION_H
#define FRAG_CONDITION_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Conditions decide when an operator is ticked: when all its conditions answer READY. Otherwise, of
 * the answers that its conditions give, the one that stands last in enum frag_ready counts. A
 * combination (type `or`, or a type with `combine`) takes the place of the conditions that it
 * combines.
 *
 * The built-in conditions, and their parameters in graphs with the defaults in parentheses:
 * - message_available: every flow of an input has messages
 *   - receiver: the input; optional where the operator has exactly one
 *   - min_size (1): messages that each flow must have
 *   - front_stage_max_size (0): not while more messages than this are waiting; 0: no limit
 * - expiring_message_available: a batch of messages waits at an input, or the oldest one has waited
 *   for long enough
 *   - receiver: the input; optional where the operator has exactly one
 *   - max_batch_size: messages of the batch, of all flows together; required
 *   - max_delay_ns: time since the oldest waiting message was emitted; required
 * - multi_message_available: enough messages wait at several inputs
 *   - receivers: the inputs; left out: all inputs of the operator
 *   - sampling_mode (SumOfAll): SumOfAll: min_sum; PerReceiver: min_sizes
 *   - min_sum (1): messages that must wait at all these inputs together
 *   - min_sizes: messages that must wait at each of them, in their order; left out: 1 each
 * - multi_message_available_timeout: the same, or a time has passed since the last tick
 *   - the parameters of multi_message_available
 *   - execution_frequency: that time, as a duration or a frequency; required
 * - downstream_affordable: every flow of an output has room
 *   - transmitter: the output; optional where the operator has exactly one
 *   - min_size (1): messages for which each flow must have room
 * - memory_available: an allocator has memory; give one of min_bytes and min_blocks
 *   - allocator: the resource; required
 *   - min_bytes: bytes that must be free
 *   - min_blocks: blocks that must be free, of a block_memory_pool
 * - count: a number of ticks, then NEVER
 *   - count (1): that number; below 0: without end
 * - boolean: READY until frag_condition_disable_tick ends the operator
 *   - enable_tick (true): false: it waits for frag_condition_enable_tick, but does not keep alive
 *     an application in which nothing else can happen any more
 * - asynchronous: follows an event outside of the application; see enum frag_event_state
 * - periodic: one tick in each period
 *   - recess_period: a duration or a frequency; required
 *   - policy (catch_up_missed_ticks): what happens to ticks that were missed; also
 *     min_time_between_ticks and no_catch_up_missed_ticks
 * - cuda_stream, cuda_event, cuda_buffer: a message waits on every flow of an input, and a GPU has
 *   written the next message of each, so that its receive waits for nothing. In frag events belong
 *   to tensors, so cuda_stream and cuda_buffer are the same. Of a flow whose policy drops the
 *   oldest message only the message is waited for: its sender may replace it at any time.
 *   - receiver: the input; optional where the operator has exactly one
 *   - event_name: of cuda_event: the tensor that must be written; left out: all
 * - or: one of the conditions that it combines is READY; NEVER of one of them is its answer too
 *   - terms: names of conditions of the operator, which stand before it in the list
 *   - ports: names of ports, whose conditions it combines
 * - none: removes the default conditions of the operator's ports
 *   - port: one port; left out: all ports
 *
 * Source: Holoscan SDK user guide, "Conditions"; the order of enum frag_ready is that of its AND
 * combination.
 */
struct frag_condition;
struct frag_op;
struct frag_param;

/* The answer of a condition. */
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
 * - FRAG_CONDITION_OUTSIDE: the event that it waits for comes from outside of the application.
 *   While it answers WAIT_EVENT the application does not end for lack of work.
 */
#define FRAG_CONDITION_TIMED 1u
#define FRAG_CONDITION_ENDS 2u
#define FRAG_CONDITION_POLLED 4u
#define FRAG_CONDITION_OUTSIDE 8u

/* The answer of one of the conditions that a combination combines. */
struct frag_term {
	/* of the condition */
	const char *name;
	enum frag_ready ready;
	/* with FRAG_WAIT_TIME: the time of its next check, on the fragment's clock */
	int64_t until_ns;
};

/*
 * The table of a condition type. A plugin lists its own with FRAG_CONDITIONS (plugin.h).
 *
 * The callbacks, in the order of their calls; all but check, or combine, may be NULL:
 * - bind: the condition's setup: once, while the graph is built, with the parameters in place and
 *   after the operator's setup
 * - initialize: once, before anything runs, and before the operator's own initialize
 * - start: once, on a thread of the scheduler, before the operator's start
 * - check: before each tick that may come. Answers one of enum frag_ready. out_until_ns: receives,
 *   with FRAG_WAIT_TIME, the time of the next check.
 * - combine: in place of check, of a type that combines other conditions: those that its parameter
 *   `terms`, a FRAG_PARAM_STRING_LIST, names and, if it has such a parameter `ports`, those of the
 *   ports that this names. Its terms count through it alone. It gets their answers, in the order of
 *   the parameters; of an input that has ended it gets FRAG_WAIT. When all inputs that its terms
 *   look at have ended it is not called any more: the operator ends.
 * - ticked: after each tick
 * - stop: once if start succeeded, or is NULL and the operator's start succeeded; after the
 *   operator's stop
 * - fini: once if bind succeeded, or is NULL and the parameters are in place
 *
 * A negative errno from bind or initialize refuses the application before anything ran; from start
 * it stops the application with a sentence. frag_err_set words all three. One from stop is logged.
 * check and combine fail the application by returning what frag_condition_fail returns.
 *
 * state is `state_size` zeroed bytes, aligned for any type, that live as long as the operator.
 * now_ns is the time of the fragment's clock (clock.h) in nanoseconds, for ticked that of the tick's
 * begin; 0 without FRAG_CONDITION_TIMED. check, combine and ticked are called by one thread at a
 * time; they must neither block nor allocate.
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
	/* the callbacks, as above; NULL: none, but check or combine must be there */
	int (*bind)(void *state, struct frag_condition *condition, struct frag_err *err);
	enum frag_ready (*check)(void *state, int64_t now_ns, int64_t *out_until_ns);
	void (*ticked)(void *state, int64_t now_ns);
	void (*fini)(void *state);
	enum frag_ready (*combine)(void *state, const struct frag_term *terms, uint32_t count,
				   int64_t *out_until_ns);
	int (*initialize)(void *state, struct frag_condition *condition, struct frag_err *err);
	int (*start)(void *state, struct frag_condition *condition, struct frag_err *err);
	int (*stop)(void *state, struct frag_condition *condition);
	/* for callbacks that several types share, such as those of another language; NULL: none */
	void *context;
};

/* The first member of a struct frag_condition_type. */
#define FRAG_CONDITION_TYPE_INIT .struct_size = sizeof(struct frag_condition_type)

/*
 * Returns the name of a condition, borrowed as long as its operator lives.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const char *frag_condition_name(const struct frag_condition *condition);
/* Returns the operator of a condition, borrowed. Thread: any. Blocks: no. RT-safe: yes. */
FRAG_API struct frag_op *frag_condition_op(const struct frag_condition *condition);
/* Returns the member context of the condition's type. Thread: any. Blocks: no. RT-safe: yes. */
FRAG_API void *frag_condition_context(const struct frag_condition *condition);
/*
 * Words a failure that check or combine has met, which fails the application:
 *
 * 	return frag_condition_fail(condition, -EIO, "cannot read %s: %s; ...", ...);
 *
 * - code: negative errno
 * - format: printf format of the sentence
 * Returns the answer that tells it. Thread: the callback's. Blocks: no. RT-safe: no (it formats).
 */
FRAG_API enum frag_ready frag_condition_fail(struct frag_condition *condition, int code,
					     const char *format, ...) FRAG_PRINTF(3, 4);
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
 * Switches a boolean condition on or off. One that is off when it is checked ends the operator, and
 * that is final; an operator that is only to pause has an asynchronous condition.
 * Returns 0; -EINVAL: condition is NULL or no boolean condition.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_condition_enable_tick(struct frag_condition *condition);
FRAG_API int frag_condition_disable_tick(struct frag_condition *condition);

/*
 * The states of an asynchronous condition, which the operator, and whoever brings the event, set:
 * - FRAG_EVENT_READY: at first: the operator may be ticked, and asks for the event then
 * - FRAG_EVENT_WAIT: nothing was asked for yet; the operator waits
 * - FRAG_EVENT_WAITING: the event was asked for and has not come; the operator waits, and keeps the
 *   application alive
 * - FRAG_EVENT_DONE: the event has come: the operator may be ticked
 * - FRAG_EVENT_NEVER: the operator ends
 * Source: Holoscan SDK user guide, AsynchronousCondition and AsynchronousEventState.
 */
enum frag_event_state {
	FRAG_EVENT_READY = 0,
	FRAG_EVENT_WAIT = 1,
	FRAG_EVENT_WAITING = 2,
	FRAG_EVENT_DONE = 3,
	FRAG_EVENT_NEVER = 4,
};
/*
 * Sets the state of an asynchronous condition, and has the operator looked at again.
 * - condition: of an operator that has not stopped; NULL is accepted
 * Returns 0; -EINVAL: condition is NULL or no asynchronous condition, or state is none.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_condition_set_event_state(struct frag_condition *condition,
					    enum frag_event_state state);
/*
 * Returns the state of an asynchronous condition; -EINVAL: condition is NULL or no asynchronous
 * condition. Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_condition_event_state(struct frag_condition *condition);

FRAG_END_DECLS

#endif
