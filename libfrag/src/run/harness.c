// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <edge/edge.h>
#include <frag/harness.h>
#include <graph/compose.h>
#include <sched/exec.h>
#include <var/variable.h>

/*
 * One operator in a private fragment. Each of its ports is bound to edges whose other end the
 * harness holds: it pushes into those of the inputs and takes from those of the outputs, all on the
 * calling thread.
 */
#define QUEUE 64u
/* Between two looks whether a pending tick was resumed. */
#define RESUME_US 20

struct end {
	struct fragi_tx *tx;
	struct fragi_rx *rx;
	struct fragi_flow_row row;
};

struct port {
	struct end **ends;
	uint32_t count;
};

struct frag_harness {
	struct fragi_diag diag;
	struct frag_fragment *fragment;
	struct frag_clock *clock;
	struct fragi_variables *variables; /* what the operator creates; the graph declares none */
	struct frag_op *op;
	struct port *ports;
	struct fragi_op_row *row;
	bool started;
	char error[1024];
};

static void port_end_fini(struct end *end)
{
	if (end != NULL)
		fragi_inproc_destroy(end->tx);
	fragi_free(end);
}

static int port_end_add(struct frag_harness *harness, uint32_t index)
{
	struct port *port = &harness->ports[index];
	struct end **ends = fragi_realloc(port->ends, (port->count + 1) * sizeof(struct end *));
	struct end *end;

	if (ends == NULL)
		return -ENOMEM;
	port->ends = ends;
	end = fragi_aligned_alloc(64, (sizeof(*end) + 63) & ~(size_t)63);
	if (end == NULL)
		return -ENOMEM;
	memset(end, 0, sizeof(*end));
	if (fragi_inproc_create(QUEUE, FRAG_POLICY_BLOCK, &end->row, &end->tx, &end->rx) < 0) {
		fragi_free(end);
		return -ENOMEM;
	}
	port->ends[port->count++] = end;
	harness->op->ports[index].flow_count = port->count;
	return 0;
}

/* (Re)binds the operator to its ends. */
static int bind(struct frag_harness *harness)
{
	struct frag_op *op = harness->op;
	struct fragi_binding *bindings = fragi_calloc(op->port_count + 1, sizeof(*bindings));
	uint64_t number = op->exec != NULL ? op->exec->tick.number : 0;
	int r = -ENOMEM;

	if (bindings == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < op->port_count; i++) {
		struct port *port = &harness->ports[i];

		bindings[i].rx = fragi_calloc(port->count + 1, sizeof(struct fragi_rx *));
		bindings[i].tx = fragi_calloc(port->count + 1, sizeof(struct fragi_tx *));
		if (bindings[i].rx == NULL || bindings[i].tx == NULL)
			goto out;
		bindings[i].count = port->count;
		for (uint32_t k = 0; k < port->count; k++) {
			bindings[i].rx[k] = port->ends[k]->rx;
			bindings[i].tx[k] = port->ends[k]->tx;
		}
	}
	fragi_exec_destroy(op);
	r = fragi_exec_create(op, bindings, harness->row, NULL, NULL);
	if (r == 0) {
		op->exec->tick.number = number;
		op->exec->started = harness->started;
	}
out:
	for (uint32_t i = 0; i < op->port_count; i++) {
		fragi_free(bindings[i].rx);
		fragi_free(bindings[i].tx);
	}
	fragi_free(bindings);
	return r;
}

static int made_nothing(const struct frag_harness *harness)
{
	const struct fragi_making *making = harness->fragment->making;

	return making != NULL && making->code < 0 ? making->code : -EINVAL;
}

/* The operator, its ports and start. */
static int harness_make(struct frag_harness *harness, const struct frag_op_type *type,
			const struct frag_arg *args, const struct frag_harness_resource *resources,
			int (*compose)(struct frag_fragment *fragment))
{
	int r = fragi_fragment_begin("harness", NULL, NULL, NULL, &harness->diag,
				     &harness->fragment);

	if (r < 0)
		return r;
	for (; resources != NULL && resources->name != NULL; resources++)
		if (frag_make_resource(harness->fragment, resources->name, resources->type,
				       resources->args) == NULL)
			return made_nothing(harness);
	if (compose != NULL)
		r = compose(harness->fragment);
	if (r < 0 || harness->fragment->making->code < 0)
		return r < 0 ? r : made_nothing(harness);
	r = fragi_variables_create(&(struct fragi_variables_config){.stop_fd = -1},
				   &harness->variables);
	if (r < 0)
		return r;
	harness->op = frag_make_operator_of(harness->fragment, type->name, type, args);
	if (harness->op == NULL)
		return made_nothing(harness);
	r = frag_add_operator(harness->fragment, harness->op);
	if (r == 0)
		r = fragi_fragment_complete(harness->fragment);
	if (r < 0)
		return r;
	r = fragi_clock_create(&(struct fragi_clock_config){.kind = FRAGI_CLOCK_MANUAL},
			       &harness->clock);
	if (r < 0)
		return r;
	harness->fragment->clock = harness->clock;
	harness->fragment->variables = harness->variables;
	harness->ports = fragi_calloc(harness->op->port_count + 1, sizeof(*harness->ports));
	harness->row = fragi_aligned_alloc(64, (sizeof(*harness->row) + 63) & ~(size_t)63);
	if (harness->ports == NULL || harness->row == NULL)
		return -ENOMEM;
	memset(harness->row, 0, sizeof(*harness->row));
	for (uint32_t i = 0; r == 0 && i < harness->op->port_count; i++)
		r = port_end_add(harness, i);
	if (r == 0)
		r = fragi_fragment_initialize(harness->fragment, &harness->diag);
	if (r == 0)
		r = bind(harness);
	if (r < 0)
		return r;
	r = fragi_exec_start(harness->op->exec);
	if (r < 0)
		fragi_exec_failure_text(harness->op->exec, FRAGI_CALL_START, r, harness->error,
					sizeof(harness->error));
	harness->started = r == 0;
	return r;
}

static struct frag_harness *create(const struct frag_op_type *type, const struct frag_arg *args,
				   const struct frag_harness_resource *resources,
				   int (*compose)(struct frag_fragment *fragment),
				   struct frag_err *err)
{
	struct frag_harness *harness = fragi_calloc(1, sizeof(*harness));
	int r;

	if (harness == NULL) {
		frag_err_set(err, -ENOMEM, "out of memory for a harness");
		return NULL;
	}
	r = harness_make(harness, type, args, resources, compose);
	if (r == 0)
		return harness;
	if (harness->diag.count > 0)
		frag_err_set(err, r, "%s", harness->diag.items[0].text);
	else
		frag_err_set(err, r, "%s",
			     harness->error[0] != '\0' ? harness->error : frag_strerror(r));
	frag_harness_destroy(harness);
	return NULL;
}

struct frag_harness *frag_harness_create_with(const struct frag_op_type *type,
					      const struct frag_arg *args,
					      const struct frag_harness_resource *resources,
					      struct frag_err *err)
{
	return create(type, args, resources, NULL, err);
}

struct frag_harness *frag_harness_create_composed(const struct frag_op_type *type,
						  const struct frag_arg *args,
						  int (*compose)(struct frag_fragment *fragment),
						  struct frag_err *err)
{
	return create(type, args, NULL, compose, err);
}

struct frag_harness *frag_harness_create(const struct frag_op_type *type,
					 const struct frag_arg *args, struct frag_err *err)
{
	return create(type, args, NULL, NULL, err);
}

void frag_harness_destroy(struct frag_harness *harness)
{
	uint32_t port_count;

	if (harness == NULL)
		return;
	port_count = harness->op != NULL ? harness->op->port_count : 0;
	if (harness->op != NULL && harness->op->exec != NULL) {
		(void)fragi_exec_finish(harness->op->exec, false);
		fragi_exec_destroy(harness->op);
	}
	for (uint32_t i = 0; harness->ports != NULL && i < port_count; i++) {
		for (uint32_t k = 0; k < harness->ports[i].count; k++)
			port_end_fini(harness->ports[i].ends[k]);
		fragi_free(harness->ports[i].ends);
	}
	fragi_free(harness->ports);
	fragi_free(harness->row);
	fragi_fragment_destroy(harness->fragment);
	fragi_variables_destroy(harness->variables);
	fragi_clock_destroy(harness->clock);
	fragi_diag_fini(&harness->diag);
	fragi_free(harness);
}

/* The port of that name, with ":2" for a further flow of a multi-receiver. */
static int port_find(const struct frag_harness *harness, const char *name, enum frag_dir dir,
		     uint32_t *out_port, uint32_t *out_flow)
{
	const char *colon = strchr(name, ':');
	size_t length = colon != NULL ? (size_t)(colon - name) : strlen(name);
	const struct frag_op *op = harness->op;
	char *end;
	unsigned long flow = 0;

	if (colon != NULL) {
		flow = strtoul(colon + 1, &end, 10);
		if (end == colon + 1 || *end != '\0' || flow >= 1024)
			return -EINVAL;
	}
	for (uint32_t i = 0; i < op->port_count; i++)
		if (op->ports[i].dir == dir && strlen(op->ports[i].name) == length &&
		    strncmp(op->ports[i].name, name, length) == 0) {
			if (flow > 0 &&
			    (dir != FRAG_IN || (op->ports[i].flags & FRAG_PORT_MULTI) == 0))
				return -EINVAL;
			*out_port = i;
			*out_flow = (uint32_t)flow;
			return 0;
		}
	return -EINVAL;
}

int frag_harness_give(struct frag_harness *harness, const char *port, struct frag_message *message)
{
	uint32_t index, flow;
	int r = port_find(harness, port, FRAG_IN, &index, &flow);
	bool more = false;

	if (message == NULL)
		return -EINVAL;
	while (r == 0 && flow >= harness->ports[index].count) {
		r = port_end_add(harness, index);
		more = true;
	}
	if (r == 0 && more)
		r = bind(harness);
	if (r < 0) {
		frag_message_unref(message);
		return r;
	}
	fragi_message_share(message);
	return harness->ports[index].ends[flow]->tx->ops->send(harness->ports[index].ends[flow]->tx,
							       message, fragi_stamp());
}

int frag_harness_give_value(struct frag_harness *harness, const char *port,
			    const struct frag_type *type, const void *value, size_t size)
{
	struct frag_message *message;
	int r = fragi_message_of_value(type, value, size, &message);

	return r < 0 ? r : frag_harness_give(harness, port, message);
}

int frag_harness_give_bool(struct frag_harness *harness, const char *port, int value)
{
	bool b = value != 0;

	return frag_harness_give_value(harness, port, &frag_type_bool, &b, sizeof(b));
}

int frag_harness_give_i64(struct frag_harness *harness, const char *port, int64_t value)
{
	return frag_harness_give_value(harness, port, &frag_type_i64, &value, sizeof(value));
}

int frag_harness_give_f64(struct frag_harness *harness, const char *port, double value)
{
	return frag_harness_give_value(harness, port, &frag_type_f64, &value, sizeof(value));
}

int frag_harness_give_string(struct frag_harness *harness, const char *port, const char *value)
{
	return frag_harness_give_value(harness, port, &frag_type_string, value, strlen(value));
}

int frag_harness_give_tensor(struct frag_harness *harness, const char *port, const char *name,
			     struct frag_tensor *tensor)
{
	struct frag_message *message;
	int r = fragi_message_of_tensor(name, tensor, &message);

	return r < 0 ? r : frag_harness_give(harness, port, message);
}

int frag_harness_tick(struct frag_harness *harness)
{
	struct fragi_exec *exec = harness->op->exec;
	uint64_t end;
	int r;

	exec->begin_ns = fragi_clock_now_ns(harness->clock);
	r = fragi_exec_tick(exec, fragi_exec_current(), fragi_stamp(), &end);
	while (exec->pending) {
		while (!atomic_load(&exec->resumed))
			usleep(RESUME_US);
		r = fragi_exec_tick(exec, fragi_exec_current(), fragi_stamp(), &end);
	}
	if (r < 0)
		fragi_exec_failure_text(exec, FRAGI_CALL_COMPUTE, r, harness->error,
					sizeof(harness->error));
	fragi_op_forget_failure(harness->op);
	exec->tick.fault = 0;
	return r;
}

int frag_harness_ready(struct frag_harness *harness)
{
	return fragi_exec_ready(harness->op->exec) == FRAG_READY;
}

struct frag_clock *frag_harness_clock(struct frag_harness *harness)
{
	return harness->clock;
}

const char *frag_harness_error(const struct frag_harness *harness)
{
	return harness->error;
}

int frag_harness_take(struct frag_harness *harness, const char *port,
		      struct frag_message **out_message)
{
	struct frag_message *message;
	uint32_t index, flow;
	int r = port_find(harness, port, FRAG_OUT, &index, &flow);

	if (r < 0)
		return r;
	message = fragi_rx_take(harness->ports[index].ends[0]->rx, fragi_stamp());
	if (message == NULL)
		return -ENOMSG;
	r = fragi_message_wait(message, NULL);
	if (r < 0)
		frag_message_unref(message);
	else
		*out_message = message;
	return r;
}

/* Takes a message whose value is of this type. */
static int take_typed(struct frag_harness *harness, const char *port, const struct frag_type *type,
		      struct frag_message **out_message)
{
	struct frag_message *message;
	int r = frag_harness_take(harness, port, &message);

	if (r < 0)
		return r;
	if (!frag_type_equal(message->type, type)) {
		frag_message_unref(message);
		return -EPROTOTYPE;
	}
	*out_message = message;
	return 0;
}

int frag_harness_take_value(struct frag_harness *harness, const char *port,
			    const struct frag_type *type, void *out_value, size_t size)
{
	struct frag_message *message;
	int r = take_typed(harness, port, type, &message);

	if (r < 0)
		return r;
	if (message->value_size == size)
		memcpy(out_value, message->value, size);
	else
		r = -EMSGSIZE;
	frag_message_unref(message);
	return r;
}

int frag_harness_take_bool(struct frag_harness *harness, const char *port, int *out_value)
{
	bool b;
	int r = frag_harness_take_value(harness, port, &frag_type_bool, &b, sizeof(b));

	if (r == 0)
		*out_value = b;
	return r;
}

int frag_harness_take_i64(struct frag_harness *harness, const char *port, int64_t *out_value)
{
	return frag_harness_take_value(harness, port, &frag_type_i64, out_value,
				       sizeof(*out_value));
}

int frag_harness_take_f64(struct frag_harness *harness, const char *port, double *out_value)
{
	return frag_harness_take_value(harness, port, &frag_type_f64, out_value,
				       sizeof(*out_value));
}

int frag_harness_take_string(struct frag_harness *harness, const char *port, char *out_text,
			     size_t size)
{
	struct frag_message *message;
	int r = take_typed(harness, port, &frag_type_string, &message);

	if (r < 0)
		return r;
	if (message->value_size < size)
		memcpy(out_text, message->value, message->value_size + 1);
	else
		r = -EMSGSIZE;
	frag_message_unref(message);
	return r;
}

void *frag_harness_state(struct frag_harness *harness)
{
	return harness->op->state;
}
