// SPDX-License-Identifier: Apache-2.0
/* Operators and composers that do little, for what composes and inspects graphs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/frag.h>

struct scale {
	double factor;
	bool loud;
	int64_t count;
	uint64_t room;
	int64_t pause;
	const char *mode;
	const char *path;
	struct frag_resource *pool;
	struct frag_condition *gate;
	struct frag_i64_list sizes;
	struct frag_string_list names;
};

static const char *const modes[] = {"fast", "slow", NULL};
static const struct frag_param scale_params[] = {
	FRAG_PARAM_F64(struct scale, factor, 2.0, .headline = "Factor", .flags = FRAG_PARAM_DYNAMIC,
		       .min = -100, .max = 100),
	FRAG_PARAM_BOOL(struct scale, loud, false, .headline = "Says what it does"),
	FRAG_PARAM_I64(struct scale, count, 10, .min = 1, .max = 1000),
	FRAG_PARAM_SIZE(struct scale, room, 4096),
	FRAG_PARAM_DURATION(struct scale, pause, 1000),
	FRAG_PARAM_STRING(struct scale, mode, "fast", .choices = modes),
	FRAG_PARAM_PATH(struct scale, path, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_RESOURCE(struct scale, pool, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_CONDITION(struct scale, gate, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_I64_LIST(struct scale, sizes, "[1, 2]"),
	FRAG_PARAM_STRING_LIST(struct scale, names, NULL),
};
enum { IN, OUT };
static const struct frag_port scale_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "f64"},
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "f64"},
};

static int scale_compute(void *state, struct frag_tick *tick)
{
	const struct scale *s = state;
	double x;
	int r = frag_tick_receive_f64(tick, IN, &x);

	return r < 0 ? r : frag_tick_emit_f64(tick, OUT, s->factor * x);
}

static const struct frag_op_type scale_type = {
	FRAG_OP_TYPE_INIT,
	.name = "scale",
	.headline = "Multiplies a number",
	.state_size = sizeof(struct scale),
	FRAG_PORTS(scale_ports),
	FRAG_PARAMS(scale_params),
	.compute = scale_compute,
};

/* A source and a sink; the sink has as many inputs as it is told, made in setup. */
struct wide {
	int64_t inputs;
	const char *fail;
};

static const struct frag_param source_params[] = {
	FRAG_PARAM_I64(struct wide, inputs, 0, .flags = FRAG_PARAM_REQUIRED),
};
static const struct frag_port source_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "f64"}};

static int source_compute(void *state, struct frag_tick *tick)
{
	struct wide *s = state;

	if (s->inputs-- <= 0)
		return FRAG_DONE;
	return frag_tick_emit_f64(tick, 0, 1.0);
}

static const struct frag_op_type source_type = {
	FRAG_OP_TYPE_INIT,         .name = "source",
	.headline = "Sends ones",  .state_size = sizeof(struct wide),
	FRAG_PORTS(source_ports),  FRAG_PARAMS(source_params),
	.compute = source_compute,
};

static const char *const failures[] = {"never", "setup", "word", "port", "crash", NULL};
static const struct frag_param sink_params[] = {
	FRAG_PARAM_I64(struct wide, inputs, 1, .min = 0, .max = 8),
	FRAG_PARAM_STRING(struct wide, fail, "never", .choices = failures),
};

static int sink_setup(void *state, struct frag_op *op)
{
	const struct wide *s = state;
	char name[16];
	int r;

	if (strcmp(s->fail, "setup") == 0)
		return -EIO;
	if (strcmp(s->fail, "word") == 0)
		return frag_op_fail(op, -ENOENT, "there is no device; plug one in");
	if (strcmp(s->fail, "crash") == 0)
		raise(SIGSEGV);
	for (int64_t i = 0; i < s->inputs; i++) {
		snprintf(name, sizeof(name), "in%d", strcmp(s->fail, "port") == 0 ? 0 : (int)i);
		r = frag_op_add_port(
			op, &(struct frag_port){.name = name, .dir = FRAG_IN, .type = "f64"});
		if (r < 0)
			return r;
	}
	return 0;
}

static int sink_compute(void *state, struct frag_tick *tick)
{
	const struct wide *s = state;
	double x;

	for (int64_t i = 0; i < s->inputs; i++)
		frag_tick_receive_f64(tick, (uint32_t)i, &x);
	return 0;
}

static const struct frag_op_type sink_type = {
	FRAG_OP_TYPE_INIT,        .name = "sink",      .state_size = sizeof(struct wide),
	FRAG_PARAMS(sink_params), .setup = sink_setup, .compute = sink_compute,
};

/* source -> double -> sink, where `double` may be told otherwise by the graph. */
static int compose_line(struct frag_fragment *fragment)
{
	const char *inputs = frag_fragment_config(fragment, "line.inputs");
	struct frag_op *source = frag_make_operator(
		fragment, "ones", "source", FRAG_ARGS({"inputs", inputs != NULL ? inputs : "5"}));
	struct frag_op *twice = frag_make_operator(
		fragment, "twice", "scale", FRAG_ARGS({"factor", "2"}, {"sizes", "[7, 8, 9]"}));
	struct frag_op *sink = frag_make_operator(fragment, "sink", "sink", FRAG_NO_ARGS);
	int r = frag_add_flow(fragment, source, NULL, twice, NULL);

	if (r == 0)
		r = frag_add_flow_with(fragment, twice, "out", sink, "in0", 3, FRAG_POLICY_POP);
	return r;
}

/* The same with what else C can make: a pool, and a gate that begins closed. */
static int compose_equipped(struct frag_fragment *fragment)
{
	struct frag_op *source =
		frag_make_operator(fragment, "ones", "source", FRAG_ARGS({"inputs", "5"}));
	struct frag_op *twice = frag_make_operator(fragment, "twice", "scale",
						   FRAG_ARGS({"pool", "$pool"}, {"gate", "$gate"}));
	struct frag_op *sink = frag_make_operator(fragment, "sink", "sink", FRAG_NO_ARGS);
	int r = frag_add_flow(fragment, source, NULL, twice, NULL);

	frag_make_resource(
		fragment, "pool", "block_memory_pool",
		FRAG_ARGS({"storage_type", "2"}, {"block_size", "64"}, {"num_blocks", "3"}));
	frag_make_condition(twice, "gate", "boolean", FRAG_ARGS({"enable_tick", "false"}));
	frag_make_condition(twice, NULL, "count", FRAG_ARGS({"count", "9"}));
	return r < 0 ? r : frag_add_flow(fragment, twice, NULL, sink, NULL);
}

static int compose_forgetful(struct frag_fragment *fragment)
{
	frag_make_operator(fragment, "lost", "scale", FRAG_NO_ARGS);
	return 0;
}

static int compose_failing(struct frag_fragment *fragment)
{
	const char *how = frag_fragment_argument(fragment, "how");

	if (how != NULL && strcmp(how, "positive") == 0)
		return 1;
	if (how != NULL && strcmp(how, "worded") == 0)
		return frag_fragment_fail(fragment, -EINVAL,
					  "no camera named \"%s\"; see the manual", how);
	if (how != NULL && strcmp(how, "type") == 0)
		return frag_add_operator(fragment,
					 frag_make_operator(fragment, "x", "scal", FRAG_NO_ARGS));
	if (how != NULL && strcmp(how, "null") == 0)
		return frag_add_operator(fragment, NULL);
	if (how != NULL && strcmp(how, "crash") == 0)
		abort();
	return -EIO;
}

/* A condition: so many ticks, of which some may be saved. */
struct budget {
	int64_t ticks, saved;
	int64_t used;
};

static const struct frag_param budget_params[] = {
	FRAG_PARAM_I64(struct budget, ticks, 0, .flags = FRAG_PARAM_REQUIRED, .min = 1, .max = 1000,
		       .headline = "Ticks that may be used up"),
	FRAG_PARAM_I64(struct budget, saved, 0, .min = 0, .max = 1000),
};

static int budget_bind(void *state, struct frag_condition *condition, struct frag_err *err)
{
	const struct budget *s = state;

	if (s->saved == 13) /* without a sentence */
		return -EDOM;
	if (s->saved >= s->ticks)
		return frag_err_set(err, -EINVAL, "%s saves all its ticks; save less",
				    frag_condition_name(condition));
	return 0;
}

static enum frag_ready budget_check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	const struct budget *s = state;

	return s->used < s->ticks - s->saved ? FRAG_READY : FRAG_NEVER;
}

static void budget_ticked(void *state, int64_t now_ns)
{
	struct budget *s = state;

	s->used++;
}

static const struct frag_condition_type budget_type = {
	FRAG_CONDITION_TYPE_INIT,
	.name = "budget",
	.headline = "Ticks that are used up",
	.state_size = sizeof(struct budget),
	FRAG_PARAMS(budget_params),
	.flags = FRAG_CONDITION_ENDS,
	.bind = budget_bind,
	.check = budget_check,
	.ticked = budget_ticked,
};

/* The line, with a condition of this plugin. */
static int compose_thrifty(struct frag_fragment *fragment)
{
	struct frag_op *source =
		frag_make_operator(fragment, "ones", "source", FRAG_ARGS({"inputs", "5"}));
	struct frag_op *sink = frag_make_operator(fragment, "sink", "sink", FRAG_NO_ARGS);

	frag_make_condition(source, NULL, "budget", FRAG_ARGS({"ticks", "3"}));
	frag_make_condition(source, "more", "budget", FRAG_ARGS({"ticks", "9"}, {"saved", "2"}));
	return frag_add_flow(fragment, source, NULL, sink, NULL);
}

static const struct frag_op_type *const ops[] = {&scale_type, &source_type, &sink_type};
static const struct frag_composer composers[] = {
	{"line", "source, scale and sink in a line", compose_line},
	{"forgetful", NULL, compose_forgetful},
	{"failing", NULL, compose_failing},
	{"equipped", NULL, compose_equipped},
	{"thrifty", NULL, compose_thrifty},
};
static const struct frag_condition_type *const conditions[] = {&budget_type};
FRAG_PLUGIN(.name = "good", .version = "1.2.3", FRAG_OPS(ops), FRAG_COMPOSERS(composers),
	    FRAG_CONDITIONS(conditions));
