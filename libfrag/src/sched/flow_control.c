// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <sched/exec.h>

/*
 * Execution flows and dynamic flows: execution messages are taken before compute, and one is sent
 * after it.
 *
 * A tick takes as many execution messages as its condition asks for: one, unless the graph gives
 * the input a message_available with another min_size. So the number of ticks follows from the
 * graph, whatever the order in which the messages come.
 *
 * Outputs of an operator that chooses its flows have no flows in the tick's table (their count is
 * 0), so emit comes to fragi_flow_control_keep. The gates have all flows: there must be room on
 * each, since nobody knows before the tick which are taken.
 *
 * An execution flow from an operator to itself counts as closed from the beginning: nothing comes
 * on it unless the operator is ticked for another reason, and it is no receiver whose end the
 * operator waits for. Its message is taken before all others, so there is always room on it.
 */
#define NONE UINT32_MAX

/* A flow that leads away from an operator that chooses. */
struct route {
	struct frag_flow_info info;
	uint32_t port;
	struct fragi_tx *tx;
	bool taken;
};

struct kept {
	uint32_t port;
	struct frag_message *message;
};

struct fragi_flow_control {
	uint32_t in, out;      /* the execution ports; NONE: without a flow */
	uint32_t take;         /* messages that a tick takes from `in` */
	struct fragi_rx *self; /* of the flow from `out` to `in`; NULL: none */
	frag_dynamic_flows_fn choose;
	void *arg;
	bool choosing; /* the callback runs */
	struct route *routes;
	const struct frag_flow_info **infos; /* of the routes */
	uint32_t route_count;
	struct fragi_tx **txs; /* those of one message; room for route_count */
	struct kept *kept;
	uint32_t kept_count, kept_capacity;
};

static int take_messages(struct fragi_flow_control *control, struct frag_tick *tick)
{
	struct fragi_exec_port *in = &tick->ports[control->in];
	const struct frag_message *message;
	int r = 0;

	for (uint32_t i = 0; i < control->take && r == 0; i++) {
		if (control->self != NULL && fragi_rx_available(control->self) > 0)
			in->next_rx = control->self;
		r = frag_tick_receive(tick, control->in, &message);
	}
	return r == -ENOMSG ? 0 : r; /* the graph has removed the condition */
}

int fragi_flow_control_keep(struct fragi_flow_control *control, uint32_t port,
			    struct frag_message *message)
{
	uint32_t capacity = control->kept_capacity > 0 ? 2 * control->kept_capacity : 8;
	struct kept *kept;

	if (control->choose == NULL) {
		fragi_message_unref(message);
		return 0;
	}
	if (control->kept_count == control->kept_capacity) {
		kept = capacity <= FRAGI_RECEIVED_MAX
			       ? fragi_realloc(control->kept, capacity * sizeof(*kept))
			       : NULL;
		if (kept == NULL) {
			fragi_message_unref(message);
			return capacity <= FRAGI_RECEIVED_MAX ? -ENOMEM : -ENOBUFS;
		}
		control->kept = kept;
		control->kept_capacity = capacity;
	}
	control->kept[control->kept_count++] = (struct kept){port, message};
	return 0;
}

static void drop_kept(struct fragi_flow_control *control)
{
	while (control->kept_count > 0)
		fragi_message_unref(control->kept[--control->kept_count].message);
}

static int send_execution(const struct fragi_flow_control *control, struct frag_tick *tick)
{
	struct frag_message *message = fragi_message_take();

	return message != NULL ? frag_tick_emit(tick, control->out, message) : -ENOMEM;
}

/* Sends what the tick has emitted on the flows that were chosen. Returns the first failure. */
static int send_kept(struct fragi_flow_control *control, struct frag_tick *tick)
{
	int r = 0, one;

	for (uint32_t i = 0; i < control->kept_count; i++) {
		const struct kept *kept = &control->kept[i];
		uint32_t count = 0;

		for (uint32_t k = 0; k < control->route_count; k++)
			if (control->routes[k].taken && control->routes[k].port == kept->port)
				control->txs[count++] = control->routes[k].tx;
		if (count == 0) {
			fragi_message_unref(kept->message);
			continue;
		}
		one = fragi_tick_send(tick, kept->port, control->txs, count, kept->message);
		r = r < 0 ? r : one;
	}
	control->kept_count = 0;
	return r;
}

static bool takes_execution(const struct fragi_flow_control *control)
{
	for (uint32_t k = 0; k < control->route_count; k++)
		if (control->routes[k].taken && control->routes[k].port == control->out)
			return true;
	return false;
}

static int choose(struct fragi_flow_control *control, void *self, struct frag_tick *tick)
{
	struct frag_op *op = tick->op;
	int r;

	for (uint32_t k = 0; k < control->route_count; k++)
		control->routes[k].taken = false;
	control->choosing = true;
	r = control->choose(self, tick, control->arg);
	control->choosing = false;
	if (r != 0)
		return frag_op_fail(
			op, r < 0 ? r : -EINVAL,
			"the callback that chooses its flows returned %d; return 0 or a negative errno",
			r);
	if (op->failed.code != 0)
		return op->failed.code;
	if (takes_execution(control))
		r = send_execution(control, tick);
	return r < 0 ? r : send_kept(control, tick);
}

static bool is_wanted(const struct fragi_exec *exec)
{
	return exec->flow_control != NULL;
}

static int compute(void *self, struct frag_tick *tick)
{
	struct fragi_exec *exec = (struct fragi_exec *)tick;
	struct fragi_flow_control *control = exec->flow_control;
	int r = 0, sent = 0;

	if (control->in != NONE && !exec->pending)
		r = take_messages(control, tick);
	if (r == 0)
		r = fragi_inside_compute(FRAGI_AROUND_FLOW_CONTROL, self, tick);
	if (fragi_tick_goes_on(tick, r))
		return r;
	if ((r == 0 || r == FRAG_DONE) && exec->op->failed.code == 0 && tick->fault == 0) {
		if (control->choose != NULL)
			sent = choose(control, self, tick);
		else if (control->out != NONE)
			sent = send_execution(control, tick);
	}
	drop_kept(control);
	return sent < 0 ? sent : r;
}

const struct fragi_around fragi_around_flow_control = {
	.is_wanted = is_wanted,
	.compute = compute,
};

static bool is_execution(const struct fragi_exec *exec, uint32_t port, enum frag_dir dir)
{
	return exec->tick.ports[port].dir == dir && exec->tick.ports[port].count > 0 &&
	       fragi_port_is_execution(exec->op->ports[port].name);
}

/* Finds the flow from the operator to itself, and puts its sending end last. */
static void find_self(struct fragi_exec *exec, struct fragi_flow_control *control)
{
	struct fragi_exec_port *in, *out;
	struct fragi_tx *last;

	if (control->in == NONE || control->out == NONE)
		return;
	in = &exec->tick.ports[control->in];
	out = &exec->tick.ports[control->out];
	for (uint32_t i = 0; i < out->count; i++)
		for (uint32_t k = 0; k < in->count; k++) {
			if (out->tx[i]->rx != in->rx[k])
				continue;
			control->self = in->rx[k];
			last = out->tx[i];
			out->tx[i] = out->tx[out->count - 1];
			out->tx[out->count - 1] = last;
			return;
		}
}

/* No gate asks for room on the flow to itself: the tick makes it. */
static void leave_out_of_gates(struct fragi_exec *exec, const struct fragi_exec_port *out)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < exec->out_count; i++) {
		struct fragi_gate gate = exec->out[i];

		assert(gate.count > 0);
		if (gate.tx == out->tx)
			gate.count--;
		if (gate.count > 0)
			exec->out[kept++] = gate;
	}
	exec->out_count = kept;
}

/* The most that a condition of the input asks for. */
static uint32_t asked_for(const struct fragi_exec *exec, const struct fragi_exec_port *in)
{
	uint32_t most = 1;

	for (uint32_t i = 0; i < exec->in_count; i++)
		if (exec->in[i].rx == in->rx && exec->in[i].min > most)
			most = exec->in[i].min;
	return most;
}

static int routes_create(struct fragi_exec *exec, struct fragi_flow_control *control,
			 const struct fragi_binding *bindings)
{
	struct route *route;

	control->routes = fragi_calloc(exec->tx_count + 1, sizeof(*control->routes));
	control->infos = fragi_calloc(exec->tx_count + 1, sizeof(struct frag_flow_info *));
	control->txs = fragi_calloc(exec->tx_count + 1, sizeof(struct fragi_tx *));
	if (control->routes == NULL || control->infos == NULL || control->txs == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < exec->tick.port_count; i++) {
		struct fragi_exec_port *port = &exec->tick.ports[i];

		if (port->dir != FRAG_OUT)
			continue;
		for (uint32_t k = 0; k < port->count; k++) {
			route = &control->routes[control->route_count];
			*route = (struct route){.port = i, .tx = bindings[i].tx[k]};
			if (bindings[i].flows != NULL)
				route->info = bindings[i].flows[k];
			control->infos[control->route_count++] = &route->info;
		}
		port->count = 0;
		port->only_tx = NULL;
	}
	return 0;
}

int fragi_flow_control_create(struct fragi_exec *exec, const struct fragi_binding *bindings)
{
	struct fragi_flow_control draft = {.in = NONE, .out = NONE, .take = 1}, *control;

	for (uint32_t i = 0; i < exec->tick.port_count; i++) {
		if (is_execution(exec, i, FRAG_IN))
			draft.in = i;
		if (is_execution(exec, i, FRAG_OUT))
			draft.out = i;
	}
	draft.choose = exec->op->choose_flows;
	draft.arg = exec->op->choose_arg;
	if (draft.in == NONE && draft.out == NONE && draft.choose == NULL)
		return 0;
	control = exec->flow_control = fragi_calloc(1, sizeof(*control));
	if (control == NULL)
		return -ENOMEM;
	*control = draft;
	find_self(exec, control);
	if (control->self != NULL) {
		leave_out_of_gates(exec, &exec->tick.ports[control->out]);
		assert(exec->receiver_count > 0);
		if (exec->tx_count > 1)
			exec->receiver_count--;
		fragi_rx_sender_close(control->self);
	}
	if (control->in != NONE)
		control->take = asked_for(exec, &exec->tick.ports[control->in]);
	return control->choose != NULL ? routes_create(exec, control, bindings) : 0;
}

void fragi_flow_control_destroy(struct fragi_exec *exec)
{
	struct fragi_flow_control *control = exec->flow_control;

	if (control == NULL)
		return;
	exec->flow_control = NULL;
	drop_kept(control);
	fragi_free(control->kept);
	fragi_free(control->txs);
	fragi_free(control->infos);
	fragi_free(control->routes);
	fragi_free(control);
}

/* What callbacks call. */

static struct fragi_flow_control *control_of(const struct frag_op *op)
{
	struct fragi_exec *exec = op != NULL ? op->exec : NULL;

	return exec != NULL && exec->flow_control != NULL && exec->flow_control->choose != NULL
		       ? exec->flow_control
		       : NULL;
}

uint32_t frag_op_next_flows(const struct frag_op *op,
			    const struct frag_flow_info *const **out_flows)
{
	const struct fragi_flow_control *control = control_of(op);

	if (control == NULL)
		return 0;
	if (out_flows != NULL)
		*out_flows = control->infos;
	return control->route_count;
}

/* Whether the flow leads to "op" or "fragment.op". */
static bool leads_to(const struct frag_flow_info *info, const char *next)
{
	const char *dot = strchr(next, '.');
	size_t length = dot != NULL ? (size_t)(dot - next) : 0;

	if (info->next_op == NULL || info->next_fragment == NULL)
		return false;
	return dot == NULL ? strcmp(info->next_op, next) == 0
			   : strcmp(info->next_op, dot + 1) == 0 &&
				     strlen(info->next_fragment) == length &&
				     strncmp(info->next_fragment, next, length) == 0;
}

static bool begins_at(const struct frag_flow_info *info, const char *out_port)
{
	return out_port == NULL ||
	       (info->out_port != NULL && strcmp(info->out_port, out_port) == 0);
}

const struct frag_flow_info *frag_op_find_flow_info(const struct frag_op *op, const char *out_port,
						    const char *next_op)
{
	const struct fragi_flow_control *control = control_of(op);

	for (uint32_t k = 0; control != NULL && k < control->route_count; k++)
		if (begins_at(control->infos[k], out_port) &&
		    (next_op == NULL || leads_to(control->infos[k], next_op)))
			return control->infos[k];
	return NULL;
}

/* "; its flows lead to b, c" */
static const char *advise_next(const struct fragi_flow_control *control, char *out, size_t size)
{
	int n = snprintf(out, size,
			 control->route_count > 0 ? "; its flows lead to" : "; it has no flows");

	for (uint32_t k = 0; k < control->route_count && n >= 0 && (size_t)n < size; k++)
		n += snprintf(out + n, size - (size_t)n, "%s %s.%s", k > 0 ? "," : "",
			      control->infos[k]->next_fragment, control->infos[k]->next_op);
	return out;
}

/* The flow control of a callback that runs. NULL: a failure was worded. */
static struct fragi_flow_control *choosing(struct frag_tick *tick, int *out_code)
{
	struct fragi_flow_control *control = control_of(tick != NULL ? tick->op : NULL);

	*out_code = -EINVAL;
	if (tick == NULL)
		return NULL;
	if (control != NULL && control->choosing)
		return control;
	*out_code = frag_op_fail(
		tick->op, -EBUSY,
		"a dynamic flow can only be added in the callback of frag_set_dynamic_flows");
	return NULL;
}

static int add(struct frag_tick *tick, const char *out_port, const struct frag_op *next)
{
	struct route *found = NULL;
	char advice[300];
	int code;
	struct fragi_flow_control *control = choosing(tick, &code);

	if (control == NULL)
		return code;
	if (next == NULL)
		return frag_op_fail(tick->op, -EINVAL,
				    "cannot add a dynamic flow: the next operator is NULL");
	for (uint32_t k = 0; k < control->route_count; k++) {
		struct route *route = &control->routes[k];

		if (route->info.next != next || !begins_at(&route->info, out_port))
			continue;
		if (found != NULL)
			return frag_op_fail(
				tick->op, -EINVAL,
				"cannot add a dynamic flow: several lead to %s, at %s and %s; name the output, or pass the flow",
				next->subject, found->info.out_port, route->info.out_port);
		found = route;
	}
	if (found == NULL)
		return frag_op_fail(
			tick->op, -EINVAL, "cannot add a dynamic flow: none leads%s%s to %s%s",
			out_port != NULL ? " from " : "", out_port != NULL ? out_port : "",
			next->subject, advise_next(control, advice, sizeof(advice)));
	found->taken = true;
	return 0;
}

int frag_tick_add_dynamic_flow(struct frag_tick *tick, const struct frag_op *next)
{
	return add(tick, NULL, next);
}

int frag_tick_add_dynamic_flow_from(struct frag_tick *tick, const char *out_port,
				    const struct frag_op *next)
{
	return add(tick, out_port, next);
}

int frag_tick_add_dynamic_flow_info(struct frag_tick *tick, const struct frag_flow_info *flow)
{
	char advice[300];
	int code;
	struct fragi_flow_control *control = choosing(tick, &code);

	if (control == NULL)
		return code;
	for (uint32_t k = 0; k < control->route_count; k++)
		if (control->infos[k] == flow) {
			control->routes[k].taken = true;
			return 0;
		}
	return frag_op_fail(
		tick->op, -EINVAL,
		flow == NULL ? "cannot add a dynamic flow: it is NULL%s"
			     : "cannot add a dynamic flow: it leads away from another operator%s",
		advise_next(control, advice, sizeof(advice)));
}
