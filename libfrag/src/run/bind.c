// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <run/state.h>

/* Gives the ends of the flows to the ports of the operators, once all edges are there. */

static int end_compare(const void *a, const void *b)
{
	const struct fragi_run_end *x = a, *y = b;

	if (x->fragment != y->fragment)
		return x->fragment < y->fragment ? -1 : 1;
	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void fragi_run_unbind(struct fragi_run *run)
{
	struct fragi_run_bindings *bindings = &run->bindings;

	for (size_t i = 0; bindings->ports != NULL && i < bindings->port_count; i++)
		fragi_free((void *)(uintptr_t)bindings->ports[i].flows);
	fragi_free(bindings->fragments);
	fragi_free(bindings->ops);
	fragi_free(bindings->ports);
	fragi_free(bindings->rx);
	fragi_free(bindings->tx);
	*bindings = (struct fragi_run_bindings){0};
}

static int bindings_alloc(struct fragi_run *run)
{
	struct fragi_run_bindings *bindings = &run->bindings;
	size_t op_count = 0, port_count = 0;

	for (size_t i = 0; i < run->fragment_count; i++) {
		const struct frag_fragment *fragment = run->fragments[i].fragment;

		op_count += fragment->op_count;
		for (uint32_t k = 0; k < fragment->op_count; k++)
			port_count += fragment->ops[k]->port_count;
	}
	bindings->fragments =
		fragi_calloc(run->fragment_count + 1, sizeof(struct fragi_binding **));
	bindings->ops = fragi_calloc(op_count + 1, sizeof(struct fragi_binding *));
	bindings->ports = fragi_calloc(port_count + 1, sizeof(struct fragi_binding));
	bindings->rx = fragi_calloc(run->end_count + 1, sizeof(struct fragi_rx *));
	bindings->tx = fragi_calloc(run->end_count + 1, sizeof(struct fragi_tx *));
	if (bindings->fragments == NULL || bindings->ops == NULL || bindings->ports == NULL ||
	    bindings->rx == NULL || bindings->tx == NULL)
		return -ENOMEM;
	op_count = 0;
	for (size_t i = 0; i < run->fragment_count; i++) {
		const struct frag_fragment *fragment = run->fragments[i].fragment;

		bindings->fragments[i] = &bindings->ops[op_count];
		for (uint32_t k = 0; k < fragment->op_count; k++) {
			bindings->ops[op_count++] = &bindings->ports[bindings->port_count];
			bindings->port_count += fragment->ops[k]->port_count;
		}
	}
	return 0;
}

static const struct frag_op *op_at(const struct fragi_run *run, const struct fragi_run_end *end)
{
	return run->fragments[end->fragment].fragment->ops[end->op];
}

/* Cuts what is before the next dot off a text, which is changed; "" when there is no more. */
static const char *cut(char **text)
{
	char *part = *text, *dot = strchr(part, '.');

	*text = dot != NULL ? dot + 1 : part + strlen(part);
	if (dot != NULL)
		*dot = '\0';
	return part;
}

/* Where a flow leads, for an operator that chooses its flows. */
static int name_flow(const struct fragi_run *run, struct fragi_run_end *end,
		     struct frag_flow_info *out)
{
	const struct fragi_flow_info *flow;
	const struct frag_op *next;
	char *rest;

	out->out_port = op_at(run, end)->ports[end->port].name;
	if (!end->between_hosts) {
		flow = &run->flows[end->flow];
		next = run->fragments[flow->to_fragment].fragment->ops[flow->to_op];
		out->next_fragment = next->fragment->name;
		out->next_op = next->name;
		out->in_port = next->ports[flow->to_port].name;
		out->next = next;
		return 0;
	}
	end->names = fragi_strdup(end->other_end != NULL ? end->other_end : "");
	if (end->names == NULL)
		return -ENOMEM;
	rest = end->names;
	out->next_fragment = cut(&rest);
	out->next_op = cut(&rest);
	out->in_port = cut(&rest);
	return 0;
}

static int name_flows(const struct fragi_run *run, struct fragi_run_end *ends,
		      struct fragi_binding *binding)
{
	struct frag_flow_info *flows = fragi_calloc(binding->count, sizeof(*flows));

	binding->flows = flows;
	for (uint32_t k = 0; flows != NULL && k < binding->count; k++)
		if (name_flow(run, &ends[k], &flows[k]) < 0)
			return -ENOMEM;
	return flows != NULL ? 0 : -ENOMEM;
}

/* Gives each port its ends, in order. */
int fragi_run_bind(struct fragi_run *run)
{
	size_t i = 0, n;

	if (fragi_run_mark_cycles(run) < 0 || bindings_alloc(run) < 0)
		return -ENOMEM;
	if (run->end_count > 1)
		qsort(run->ends, run->end_count, sizeof(*run->ends), end_compare);
	while (i < run->end_count) {
		struct fragi_run_end *end = &run->ends[i];
		struct fragi_binding *binding =
			&run->bindings.fragments[end->fragment][end->op][end->port];

		for (n = 1; i + n < run->end_count && end[n].fragment == end->fragment &&
			    end[n].op == end->op && end[n].port == end->port;
		     n++)
			;
		binding->rx = &run->bindings.rx[i];
		binding->tx = &run->bindings.tx[i];
		binding->count = (uint32_t)n;
		for (size_t k = 0; k < n; k++) {
			binding->rx[k] = end[k].rx;
			binding->tx[k] = end[k].tx;
		}
		if (end->tx != NULL && op_at(run, end)->choose_flows != NULL &&
		    name_flows(run, end, binding) < 0)
			return -ENOMEM;
		i += n;
	}
	return 0;
}

void fragi_run_unwire(struct fragi_run *run)
{
	for (size_t i = 0; run->inproc != NULL && i < run->flow_count; i++)
		fragi_inproc_destroy(run->inproc[i]);
	fragi_free(run->inproc);
	for (size_t i = 0; i < run->end_count; i++) {
		fragi_free(run->ends[i].other_end);
		fragi_free(run->ends[i].names);
	}
	fragi_free(run->ends);
	fragi_free(run->flows);
	fragi_free(run->peers);
}
