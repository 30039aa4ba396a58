// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "testing.h"
#include "script.h"

/*
 * Stands for an operator in a test: at the times of its files it emits their messages. The
 * condition test_times, which reads the same files, has it ticked then.
 */
struct test_source {
	struct frag_string_map files;
	struct script script;
	size_t next;
};

static const struct frag_param source_params[] = {
	FRAG_PARAM_STRING_MAP(struct test_source, files, NULL, .flags = FRAG_PARAM_REQUIRED,
			      .headline = "Of each output: the file with its messages"),
};

static int source_setup(void *state, struct frag_op *op)
{
	const struct test_source *s = state;

	for (size_t i = 0; i < s->files.count; i++) {
		const struct frag_port port = {.name = s->files.items[i].key, .dir = FRAG_OUT};
		int r = frag_op_add_port(op, &port);

		if (r < 0)
			return r;
	}
	return 0;
}

static int source_initialize(void *state, struct frag_op *op)
{
	struct test_source *s = state;
	struct frag_err err = FRAG_ERR_INIT;
	int r = script_read(&s->script, &s->files, false, &err);

	return r < 0 ? frag_op_fail(op, r, "%s", err.text) : 0;
}

static int source_compute(void *state, struct frag_tick *tick)
{
	struct test_source *s = state;
	size_t end;
	int r = 0;

	if (s->next == s->script.count)
		return FRAG_DONE;
	for (end = script_after(&s->script, s->next); r == 0 && s->next < end; s->next++) {
		const struct script_message *next = &s->script.messages[s->next];
		struct frag_message *message = script_message_create(next);

		r = message != NULL ? frag_tick_emit(tick, next->port, message) : -ENOMEM;
	}
	return r;
}

static void source_fini(void *state, struct frag_op *op)
{
	(void)op;
	script_fini(&((struct test_source *)state)->script);
}

const struct frag_op_type testing_source_type = {
	FRAG_OP_TYPE_INIT,
	.name = "test_source",
	.headline = "Emits the messages of files, for fragctl test",
	.state_size = sizeof(struct test_source),
	FRAG_PARAMS(source_params),
	.setup = source_setup,
	.initialize = source_initialize,
	.compute = source_compute,
	.fini = source_fini,
};

struct test_times {
	struct frag_string_map files;
	struct script script;
	size_t next;
};

static const struct frag_param times_params[] = {
	FRAG_PARAM_STRING_MAP(struct test_times, files, NULL, .flags = FRAG_PARAM_REQUIRED,
			      .headline = "As those of test_source"),
};

static int times_initialize(void *state, struct frag_condition *condition, struct frag_err *err)
{
	struct test_times *s = state;

	(void)condition;
	return script_read(&s->script, &s->files, true, err);
}

static enum frag_ready times_check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	const struct test_times *s = state;

	if (s->next == s->script.count)
		return FRAG_NEVER;
	if (s->script.messages[s->next].at_ns <= now_ns)
		return FRAG_READY;
	*out_until_ns = s->script.messages[s->next].at_ns;
	return FRAG_WAIT_TIME;
}

static void times_ticked(void *state, int64_t now_ns)
{
	struct test_times *s = state;

	(void)now_ns;
	s->next = script_after(&s->script, s->next);
}

static void times_fini(void *state)
{
	script_fini(&((struct test_times *)state)->script);
}

const struct frag_condition_type testing_times_type = {
	FRAG_CONDITION_TYPE_INIT,
	.name = "test_times",
	.headline = "A tick at each time of the files of a test_source",
	.state_size = sizeof(struct test_times),
	FRAG_PARAMS(times_params),
	.flags = FRAG_CONDITION_TIMED | FRAG_CONDITION_ENDS,
	.initialize = times_initialize,
	.check = times_check,
	.ticked = times_ticked,
	.fini = times_fini,
};
