// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include <frag/frag.h>

/* Ends the application when all operators that it watches are done. */
struct monitor {
	struct frag_string_list watch;
	struct frag_op **ops;
	bool *reported;
};

static const struct frag_param monitor_params[] = {
	FRAG_PARAM_STRING_LIST(struct monitor, watch, NULL, .headline = "Operators to watch",
			       .flags = FRAG_PARAM_REQUIRED),
};

/* Names are looked up once; compute has the operators. */
static int monitor_initialize(void *state, struct frag_op *op)
{
	struct monitor *m = state;

	m->ops = calloc(m->watch.count + 1, sizeof(struct frag_op *));
	m->reported = calloc(m->watch.count + 1, sizeof(bool));
	if (m->ops == NULL || m->reported == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < m->watch.count; i++) {
		m->ops[i] = frag_op_find(op, m->watch.items[i]);
		if (m->ops[i] == NULL)
			return frag_op_fail(op, -EINVAL,
					    "there is no operator \"%s\" in this fragment; name "
					    "those to watch",
					    m->watch.items[i]);
	}
	return 0;
}

static int monitor_compute(void *state, struct frag_tick *tick)
{
	struct monitor *m = state;
	struct frag_op *self = frag_tick_op(tick);
	size_t done = 0;

	for (size_t i = 0; i < m->watch.count; i++) {
		if (frag_op_status_get(m->ops[i]) != FRAG_OP_STATUS_DONE)
			continue;
		done++;
		if (!m->reported[i])
			frag_op_log(self, "%s is done after %llu ticks", m->watch.items[i],
				    (unsigned long long)frag_op_ticks(m->ops[i]));
		m->reported[i] = true;
	}
	if (done == m->watch.count)
		frag_fragment_stop_execution(frag_op_fragment(self));
	return 0;
}

static void monitor_fini(void *state, struct frag_op *op)
{
	struct monitor *m = state;

	(void)op;
	free(m->ops);
	free(m->reported);
}

static const struct frag_op_type monitor_type = {
	FRAG_OP_TYPE_INIT,
	.name = "monitor",
	.headline = "Ends the application when others are done",
	.state_size = sizeof(struct monitor),
	FRAG_PARAMS(monitor_params),
	.initialize = monitor_initialize,
	.compute = monitor_compute,
	.fini = monitor_fini,
};
static const struct frag_op_type *const monitor_ops[] = {&monitor_type};
FRAG_PLUGIN(.name = "operator_status_tracking", .version = "1.0.0", FRAG_OPS(monitor_ops));
