// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/frag.h>

/*
 * An operator that does with shared variables what its graph says, one step a tick, and logs what
 * comes of it: "begins read gain", "read gain: 0 7". A step is "VERB VARIABLE [NUMBER]"; "must" before it lets the
 * operator fail with it.
 */
#define PATIENCE_NS (600 * INT64_C(1000000000))

struct sharer {
	struct frag_string_list steps;
	size_t at;
	double value; /* of the last read */
	bool has_value;
};

static const struct frag_param sharer_params[] = {
	FRAG_PARAM_STRING_LIST(struct sharer, steps, NULL, .flags = FRAG_PARAM_REQUIRED),
};

static const struct frag_dtype f64 = {FRAG_DTYPE_FLOAT, 64, 1};

static int map_and(struct sharer *s, struct frag_variable *variable, bool writes,
		   int64_t timeout_ns, double value)
{
	const struct frag_dltensor *tensor;
	int r = frag_variable_map(variable, writes ? FRAG_VARIABLE_WRITE : FRAG_VARIABLE_READ,
				  timeout_ns, &tensor);

	if (r < 0)
		return r;
	if (writes)
		*(double *)tensor->data = value;
	s->has_value = !writes;
	s->value = *(const double *)tensor->data;
	return 0;
}

static int read_once(struct sharer *s, struct frag_variable *variable, int64_t timeout_ns)
{
	int r = map_and(s, variable, false, timeout_ns, 0);

	return r < 0 ? r : frag_variable_unmap(variable);
}

static int act(struct sharer *s, struct frag_op *op, const char *verb, const char *name,
	       double number)
{
	struct frag_variable *variable;
	int r;

	if (strcmp(verb, "abort") == 0)
		abort();
	if (strcmp(verb, "create") == 0)
		return frag_variable_create(op, name, &variable);
	r = frag_variable_open(op, name, &variable);
	if (r < 0 || strcmp(verb, "open") == 0)
		return r;
	if (strcmp(verb, "allocate") == 0)
		return frag_variable_allocate(variable, f64, 0, NULL);
	if (strcmp(verb, "write") == 0) /* stays mapped */
		return map_and(s, variable, true, 0, number);
	if (strcmp(verb, "hold") == 0)
		return map_and(s, variable, false, 0, 0);
	if (strcmp(verb, "unmap") == 0)
		return frag_variable_unmap(variable);
	if (strcmp(verb, "publish") == 0)
		return frag_variable_publish(variable);
	if (strcmp(verb, "read") == 0)
		return read_once(s, variable, 0);
	if (strcmp(verb, "await") == 0)
		return read_once(s, variable, PATIENCE_NS);
	if (strcmp(verb, "wait") == 0)
		return frag_variable_wait(variable, (uint64_t)number, PATIENCE_NS, NULL);
	return -ENOSYS;
}

static int sharer_compute(void *state, struct frag_tick *tick)
{
	struct sharer *s = state;
	const char *step = s->steps.items[s->at];
	struct frag_op *op = frag_tick_op(tick);
	char verb[16] = "", name[64] = "";
	bool must = strncmp(step, "must ", 5) == 0;
	double number = 0;
	int r;

	s->has_value = false;
	(void)sscanf(step + (must ? 5 : 0), "%15s %63s %lf", verb, name, &number);
	frag_op_log(op, "begins %s", step);
	r = act(s, op, verb, name, number);
	if (s->has_value)
		frag_op_log(op, "%s: %d %g", step, r, s->value);
	else
		frag_op_log(op, "%s: %d", step, r);
	if (r == -ECANCELED)
		return FRAG_DONE;
	if (r < 0 && must)
		return r;
	return ++s->at < s->steps.count ? 0 : FRAG_DONE;
}

static const struct frag_op_type sharer_type = {
	FRAG_OP_TYPE_INIT,
	.name = "sharer",
	.headline = "Does with shared variables what its graph says",
	.state_size = sizeof(struct sharer),
	FRAG_PARAMS(sharer_params),
	.compute = sharer_compute,
};

static const struct frag_op_type *const sharer_ops[] = {&sharer_type};
FRAG_PLUGIN(.name = "sharer", .version = "1.0.0", FRAG_OPS(sharer_ops));
