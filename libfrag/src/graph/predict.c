// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/policy.h>
#include <base/strmap.h>
#include <base/units.h>
#include <frag/operator.h>
#include <graph/predict.h>
#include <text/holoscan.h>

/* Enough for what is slowed to slow others: each round moves a limit to the next branch. */
#define ROUNDS_MAX 16
#define SLACK 1.000001 /* rates that differ by less are equal */

struct node {
	const struct fragi_op_info *info;
	const struct fragi_spec_operator *spec; /* NULL: the graph says nothing about it */
	double declared;                        /* ticks a second; 0: it declares none */
	double limit;                           /* by those that it sends to; 0: none */
	uint32_t fragment;
	uint32_t pending; /* flows from operators that were not computed yet */
};

struct predicting {
	const struct fragi_spec *spec;
	const struct fragi_fragment_info *fragments;
	const struct fragi_flow_info *flows;
	size_t flow_count;
	struct node *nodes;
	uint32_t node_count;
	uint32_t *order, ordered; /* those that are in no cycle, nor behind one */
	uint32_t *from, *to;      /* [flow] */
	/* the flows of an operator: [first[i], first[i + 1]) of `of`, those in and those out */
	uint32_t *in, *in_first, *out, *out_first;
	int64_t *budget_ns; /* [fragment]: of its operators together */
	struct fragi_prediction *result;
};

static double per_second(int64_t period_ns)
{
	return period_ns > 0 ? 1e9 / (double)period_ns : 0;
}

static bool has_rates(const struct fragi_spec_operator *op)
{
	bool has = op->rate_ns > 0 || op->budget_ns > 0;

	for (size_t i = 0; i < op->port_count; i++)
		has |= op->ports[i].rate_ns > 0;
	return has;
}

bool fragi_predict_wanted(const struct fragi_spec *spec)
{
	for (size_t f = 0; f < spec->fragment_count; f++)
		for (size_t i = 0; i < spec->fragments[f].operator_count; i++)
			if (has_rates(&spec->fragments[f].operators[i]))
				return true;
	return false;
}

const struct fragi_spec_operator *fragi_predict_spec(const struct fragi_spec_fragment *own,
						     const char *name, size_t place)
{
	for (size_t i = 0; i < own->operator_count; i++) {
		const struct fragi_spec_operator *op =
			&own->operators[(place + i) % own->operator_count];

		if (strcmp(op->name, name) == 0)
			return op;
	}
	return NULL;
}

uint32_t fragi_predict_threads(const struct fragi_spec_fragment *own, size_t op_count,
			       uint32_t cores)
{
	if (own->scheduler.kind == FRAGI_SCHEDULER_GREEDY)
		return 1;
	if (own->scheduler.worker_thread_number > 0)
		return own->scheduler.worker_thread_number;
	return op_count < cores ? (uint32_t)(op_count > 0 ? op_count : 1) : cores;
}

int64_t fragi_predict_period_ns(const struct fragi_spec_operator *op)
{
	int64_t period_ns;

	for (size_t i = 0; i < op->condition_count; i++) {
		const struct fragi_spec_object *condition = &op->conditions[i];

		if (condition->type == NULL ||
		    strcmp(fragi_alias(FRAGI_HOLOSCAN_CONDITION, condition->type), "periodic") != 0)
			continue;
		for (size_t k = 0; k < condition->setting_count; k++)
			if (strcmp(condition->settings[k].name, "recess_period") == 0 &&
			    condition->settings[k].value->kind == FRAGI_NODE_SCALAR &&
			    fragi_parse_duration(condition->settings[k].value->text, &period_ns) ==
				    0)
				return period_ns;
	}
	return 0;
}

/* The rate that the graph gives a source, or that of its periodic condition. */
static double declared_rate(const struct fragi_spec_operator *op)
{
	int64_t period_ns = 0;

	if (op != NULL)
		period_ns = op->rate_ns > 0 ? op->rate_ns : fragi_predict_period_ns(op);
	return period_ns > 0 ? per_second(period_ns) : 0;
}

static double port_rate(const struct node *node, uint32_t port)
{
	for (size_t i = 0; node->spec != NULL && i < node->spec->port_count; i++)
		if (node->spec->ports[i].name != NULL &&
		    strcmp(node->spec->ports[i].name, node->info->ports[port].name) == 0)
			return per_second(node->spec->ports[i].rate_ns);
	return 0;
}

static int add_nodes(struct predicting *p)
{
	struct fragi_strmap specs = {0};
	uint32_t at = 0;
	int r = 0;

	for (uint32_t f = 0; r == 0 && f < p->spec->fragment_count; f++) {
		const struct fragi_spec_fragment *own = &p->spec->fragments[f];

		p->result->first_op[f] = at;
		for (size_t i = 0; r == 0 && i < own->operator_count; i++)
			r = fragi_strmap_put(&specs, own->operators[i].name, &own->operators[i]);
		for (size_t i = 0; i < p->fragments[f].op_count; i++, at++) {
			struct node *node = &p->nodes[at];

			node->info = &p->fragments[f].ops[i];
			node->fragment = f;
			node->spec = fragi_strmap_get(&specs, node->info->name);
			node->declared = declared_rate(node->spec);
			p->result->ops[at].budget_ns =
				node->spec != NULL ? node->spec->budget_ns : 0;
			p->budget_ns[f] += p->result->ops[at].budget_ns;
		}
		fragi_strmap_fini(&specs);
		specs = (struct fragi_strmap){0};
	}
	return r;
}

/* Lists the flows of each operator, in the order of the flows. */
static void list_flows(const struct predicting *p, const uint32_t *op_of, uint32_t *list,
		       uint32_t *first)
{
	for (size_t i = 0; i < p->flow_count; i++)
		first[op_of[i] + 1]++;
	for (uint32_t i = 0; i < p->node_count; i++)
		first[i + 1] += first[i];
	for (size_t i = p->flow_count; i-- > 0;)
		list[--first[op_of[i] + 1]] = (uint32_t)i;
	/* Each begin has moved to its place, one further on. */
	memmove(first, first + 1, p->node_count * sizeof(*first));
	first[p->node_count] = (uint32_t)p->flow_count;
}

static void sort(struct predicting *p)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < p->node_count; i++) {
		p->nodes[i].pending = p->in_first[i + 1] - p->in_first[i];
		if (p->nodes[i].pending == 0)
			p->order[p->ordered++] = i;
	}
	for (; done < p->ordered; done++) {
		uint32_t op = p->order[done];

		for (uint32_t k = p->out_first[op]; k < p->out_first[op + 1]; k++)
			if (--p->nodes[p->to[p->out[k]]].pending == 0)
				p->order[p->ordered++] = p->to[p->out[k]];
	}
}

static bool is_multi(const struct node *node, uint32_t port)
{
	return (node->info->ports[port].flags & FRAG_PORT_MULTI) != 0;
}

/*
 * The messages a second at an input: of the flows together where they are taken in turn, of the
 * slowest one where each must have a message. 0: not known.
 */
static double arrivals(const struct predicting *p, uint32_t op, uint32_t port)
{
	const struct node *node = &p->nodes[op];
	double rate = port_rate(node, port), sum = 0, least = 0;

	if (rate > 0)
		return rate;
	for (uint32_t k = p->in_first[op]; k < p->in_first[op + 1]; k++) {
		uint32_t flow = p->in[k];

		if (p->flows[flow].to_port != port)
			continue;
		rate = p->result->flows[flow].offered;
		if (rate <= 0)
			return 0;
		sum += rate;
		least = least == 0 || rate < least ? rate : least;
	}
	return is_multi(node, port) ? least : sum;
}

/* The rate of an output, for a source that says nothing else. */
static double output_rate(const struct node *node)
{
	double most = 0, rate;

	for (uint32_t port = 0; port < node->info->port_count; port++) {
		rate = node->info->ports[port].dir == FRAG_OUT ? port_rate(node, port) : 0;
		most = rate > most ? rate : most;
	}
	return most;
}

/* How often the operator is asked to tick; 0: not known. */
static double demand_of(const struct predicting *p, uint32_t op)
{
	const struct node *node = &p->nodes[op];
	double demand = node->declared, rate;
	bool is_known = demand > 0;

	for (uint32_t port = 0; port < node->info->port_count; port++) {
		if (node->info->ports[port].dir != FRAG_IN ||
		    (node->info->ports[port].flags & FRAG_PORT_NO_CONDITION) != 0)
			continue;
		rate = arrivals(p, op, port);
		if (rate <= 0)
			continue;
		demand = !is_known || rate < demand ? rate : demand;
		is_known = true;
	}
	if (!is_known && p->in_first[op] == p->in_first[op + 1])
		return output_rate(node);
	return demand;
}

/* In the first round nothing is held up: that is what is asked for. */
static void compute(struct predicting *p, uint32_t op, bool is_first)
{
	const struct node *node = &p->nodes[op];
	struct fragi_predicted_op *result = &p->result->ops[op];
	double most = per_second(result->budget_ns), rate;

	result->rate = demand_of(p, op);
	if (is_first)
		result->demand = result->rate;
	if (most > 0 && result->rate > most)
		result->rate = most;
	if (node->limit > 0 && result->rate > node->limit)
		result->rate = node->limit;
	for (uint32_t k = p->out_first[op]; k < p->out_first[op + 1]; k++) {
		rate = port_rate(node, p->flows[p->out[k]].from_port);
		/* A port sends at its own rate, unless the operator is held up. */
		if (rate > 0 && result->demand > 0 && result->rate < result->demand)
			rate *= result->rate / result->demand;
		p->result->flows[p->out[k]].offered = rate > 0 ? rate : result->rate;
	}
}

/* What the receiver takes of each flow: a message a tick, shared where flows take turns. */
static void take(struct predicting *p, size_t flow)
{
	const struct fragi_flow_info *info = &p->flows[flow];
	struct fragi_predicted_flow *result = &p->result->flows[flow];
	const struct node *node = &p->nodes[p->to[flow]];
	double rate = p->result->ops[p->to[flow]].rate,
	       all = arrivals(p, p->to[flow], info->to_port);

	result->taken = result->offered;
	if (rate <= 0 || all <= 0 ||
	    (node->info->ports[info->to_port].flags & FRAG_PORT_NO_CONDITION) != 0)
		return;
	if (is_multi(node, info->to_port))
		result->taken = rate < result->offered ? rate : result->offered;
	else if (rate < all)
		result->taken = result->offered * rate / all;
}

/* A blocking flow whose receiver is too slow limits its sender. Returns whether one is new. */
static bool hold_up(struct predicting *p)
{
	bool is_new = false;

	for (size_t i = 0; i < p->flow_count; i++) {
		const struct fragi_predicted_flow *flow = &p->result->flows[i];
		struct node *sender = &p->nodes[p->from[i]];
		double rate = p->result->ops[p->from[i]].rate, limit;

		if (!fragi_policy(p->flows[i].policy)->blocking || flow->offered <= 0 ||
		    flow->offered <= flow->taken * SLACK || rate <= 0)
			continue;
		limit = rate * flow->taken / flow->offered;
		if (sender->limit == 0 || limit * SLACK < sender->limit) {
			sender->limit = limit;
			is_new = true;
		}
	}
	return is_new;
}

/* How many messages wait: those that come while the receiver and its neighbours compute. */
static void wait_for(struct predicting *p, size_t i)
{
	struct fragi_predicted_flow *flow = &p->result->flows[i];
	uint32_t op = p->to[i], fragment = p->nodes[op].fragment;
	int64_t own_ns = p->result->ops[op].budget_ns;
	double others_ns = (double)(p->budget_ns[fragment] - own_ns), count;

	if (flow->offered <= 0)
		return;
	if (flow->offered > flow->taken * SLACK) {
		flow->depth = p->flows[i].capacity;
		return;
	}
	flow->wait_s = ((double)own_ns +
			others_ns / fragi_predict_threads(&p->spec->fragments[fragment],
							  p->fragments[fragment].op_count, 1)) /
		       1e9;
	count = flow->offered * flow->wait_s;
	flow->depth = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
	flow->depth += flow->depth < count || flow->depth == 0 ? 1 : 0;
}

static int allocate(struct predicting *p)
{
	for (size_t f = 0; f < p->spec->fragment_count; f++)
		p->node_count += (uint32_t)p->fragments[f].op_count;
	p->nodes = fragi_calloc(p->node_count + 1, sizeof(*p->nodes));
	p->order = fragi_calloc(p->node_count + 1, sizeof(*p->order));
	/* They are never empty, which calloc may answer with NULL. */
	p->from = fragi_calloc(4 * p->flow_count + 1, sizeof(*p->from));
	p->in_first = fragi_calloc(2 * ((size_t)p->node_count + 1), sizeof(*p->in_first));
	p->result->ops = fragi_calloc(p->node_count + 1, sizeof(*p->result->ops));
	p->result->first_op = fragi_calloc(p->spec->fragment_count + 1, sizeof(uint32_t));
	p->result->flows = fragi_calloc(p->flow_count + 1, sizeof(*p->result->flows));
	p->budget_ns = fragi_calloc(p->spec->fragment_count + 1, sizeof(*p->budget_ns));
	if (p->nodes == NULL || p->order == NULL || p->from == NULL || p->in_first == NULL ||
	    p->result->ops == NULL || p->result->first_op == NULL || p->result->flows == NULL ||
	    p->budget_ns == NULL)
		return -ENOMEM;
	p->to = p->from + p->flow_count;
	p->in = p->to + p->flow_count;
	p->out = p->in + p->flow_count;
	p->out_first = p->in_first + p->node_count + 1;
	return add_nodes(p);
}

int fragi_predict(const struct fragi_spec *spec, const struct fragi_fragment_info *fragments,
		  const struct fragi_flow_info *flows, size_t flow_count,
		  struct fragi_prediction *out)
{
	struct predicting p = {.spec = spec,
			       .fragments = fragments,
			       .flows = flows,
			       .flow_count = flow_count,
			       .result = out};
	int r;

	*out = (struct fragi_prediction){0};
	r = allocate(&p);
	for (size_t i = 0; r == 0 && i < flow_count; i++) {
		p.from[i] = out->first_op[flows[i].from_fragment] + flows[i].from_op;
		p.to[i] = out->first_op[flows[i].to_fragment] + flows[i].to_op;
	}
	if (r == 0) {
		list_flows(&p, p.to, p.in, p.in_first);
		list_flows(&p, p.from, p.out, p.out_first);
		sort(&p);
	}
	for (int round = 0; r == 0 && round < ROUNDS_MAX; round++) {
		for (uint32_t i = 0; i < p.ordered; i++)
			compute(&p, p.order[i], round == 0);
		for (size_t i = 0; i < flow_count; i++)
			take(&p, i);
		if (!hold_up(&p))
			break;
	}
	for (size_t i = 0; r == 0 && i < flow_count; i++)
		wait_for(&p, i);
	fragi_free(p.budget_ns);
	fragi_free(p.nodes);
	fragi_free(p.order);
	fragi_free(p.from);
	fragi_free(p.in_first);
	if (r < 0)
		fragi_prediction_fini(out);
	return r;
}

void fragi_prediction_fini(struct fragi_prediction *prediction)
{
	fragi_free(prediction->ops);
	fragi_free(prediction->first_op);
	fragi_free(prediction->flows);
	*prediction = (struct fragi_prediction){0};
}
