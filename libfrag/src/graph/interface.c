// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/strmap.h>
#include <graph/interface.h>
#include <text/builder.h>

#define ENDS_MAX 300000 /* that ends of flows may stand for, in one call */
#define KEY_SIZE (3 * FRAG_NAME_MAX + 3)
#define ADVICE_PORTS_MAX 64

/* An interface port, and one port that it stands for. */
struct row {
	const struct fragi_fragment_info *fragment;
	const struct fragi_interface_info *interface;
	struct row *next_of_port, *next_of_instance;
};

struct rows {
	struct row *first;
};

struct applying {
	struct fragi_arena *arena;
	struct fragi_strmap rows; /* "fragment.instance", "fragment.instance.port": struct rows */
	const struct fragi_fragment_info *own; /* NULL: flows between fragments */
	struct fragi_diag *diag;
	size_t ends;
	bool failed, no_memory;
};

/* Puts the row before those of the same instance, or port. */
static void index_row(struct applying *applying, struct row *row, const char *port)
{
	char key[KEY_SIZE];
	struct rows *rows;
	const char *copy;

	snprintf(key, sizeof(key), "%s.%s%s%s", row->fragment->name, row->interface->instance,
		 port != NULL ? "." : "", port != NULL ? port : "");
	rows = fragi_strmap_get(&applying->rows, key);
	if (rows == NULL) {
		rows = fragi_arena_alloc(applying->arena, sizeof(*rows));
		copy = fragi_arena_strdup(applying->arena, key);
		if (rows == NULL || copy == NULL ||
		    fragi_strmap_put(&applying->rows, copy, rows) == -ENOMEM) {
			applying->no_memory = true;
			return;
		}
	}
	if (port != NULL)
		row->next_of_port = rows->first;
	else
		row->next_of_instance = rows->first;
	rows->first = row;
}

static void index_fragment(struct applying *applying, const struct fragi_fragment_info *fragment)
{
	struct row *rows =
		fragi_arena_alloc(applying->arena, fragment->interface_count * sizeof(*rows));

	if (rows == NULL) {
		applying->no_memory = true;
		return;
	}
	for (size_t i = fragment->interface_count; i-- > 0;) {
		rows[i].fragment = fragment;
		rows[i].interface = &fragment->interfaces[i];
		index_row(applying, &rows[i], NULL);
		index_row(applying, &rows[i], rows[i].interface->port);
	}
}

static struct row *find(const struct applying *applying, const struct fragi_spec_end *end,
			const char *port)
{
	const char *fragment = applying->own != NULL ? applying->own->name : end->fragment;
	const struct rows *rows;
	char key[KEY_SIZE];

	if (fragment == NULL || end->op == NULL)
		return NULL;
	snprintf(key, sizeof(key), "%s.%s%s%s", fragment, end->op, port != NULL ? "." : "",
		 port != NULL ? port : "");
	rows = fragi_strmap_get(&applying->rows, key);
	return rows != NULL ? rows->first : NULL;
}

static const struct fragi_port_info *port_of(const struct row *row)
{
	return &row->fragment->ops[row->interface->op].ports[row->interface->op_port];
}

static enum frag_dir dir_of(const struct row *row)
{
	return port_of(row)->dir;
}

static bool is_execution(const struct row *row)
{
	return fragi_port_is_execution(port_of(row)->name);
}

static const char *dir_text(enum frag_dir dir)
{
	return dir == FRAG_IN ? "input" : "output";
}

#define applying_error(applying, place, ...)                                                       \
	do {                                                                                       \
		fragi_node_error((applying)->diag, place, NULL, __VA_ARGS__);                      \
		(applying)->failed = true;                                                         \
	} while (0)

/* "; its inputs: in, left" */
static const char *advise(const struct row *instance, const char *word, enum frag_dir dir,
			  char *out, size_t size)
{
	const char *names[ADVICE_PORTS_MAX], *name;
	size_t count = 0, i;

	for (const struct row *row = instance; row != NULL && count < ADVICE_PORTS_MAX;
	     row = row->next_of_instance) {
		name = row->interface->port;
		for (i = 0; i < count && strcmp(names[i], name) != 0; i++)
			;
		if (dir_of(row) == dir && i == count)
			names[count++] = name;
	}
	if (count > 0)
		return fragi_advise(out, size, word, dir == FRAG_IN ? "its inputs" : "its outputs",
				    names, count);
	snprintf(out, size, "; it has no %ss", dir_text(dir));
	return out;
}

/*
 * Returns the first row of the port that an end of an instance names or can only mean: of those for
 * messages, else of those for execution.
 */
static struct row *find_port(struct applying *applying, const struct fragi_spec_end *end,
			     struct row *instance, enum frag_dir dir)
{
	struct row *only = NULL, *found;
	bool execution = true;
	char advice[512];

	if (end->port != NULL) {
		found = find(applying, end, end->port);
		if (found == NULL && !instance->fragment->has_gaps)
			applying_error(applying, end->place,
				       "flow end %s.%s.%s: the subgraph has no port \"%s\"%s",
				       instance->fragment->name, end->op, end->port, end->port,
				       advise(instance, end->port, dir, advice, sizeof(advice)));
		return found;
	}
	for (struct row *row = instance; row != NULL; row = row->next_of_instance)
		execution &= dir_of(row) != dir || is_execution(row);
	for (struct row *row = instance; row != NULL; row = row->next_of_instance) {
		applying->ends++;
		if (dir_of(row) != dir || is_execution(row) != execution)
			continue;
		if (only != NULL && strcmp(only->interface->port, row->interface->port) != 0) {
			applying_error(applying, end->place,
				       "flow end %s.%s: several could be meant; name the port%s",
				       instance->fragment->name, end->op,
				       advise(instance, "", dir, advice, sizeof(advice)));
			return NULL;
		}
		only = row;
	}
	if (only == NULL && !instance->fragment->has_gaps)
		applying_error(applying, end->place, "flow end %s.%s: the subgraph has no %ss",
			       instance->fragment->name, end->op, dir_text(dir));
	return only != NULL ? find(applying, end, only->interface->port) : NULL;
}

static size_t count_rows(const struct row *row)
{
	size_t count = 0;

	for (; row != NULL; row = row->next_of_port)
		count++;
	return count;
}

static struct fragi_spec_end inner_end(const struct fragi_spec_end *end, const struct row *row)
{
	const struct fragi_op_info *op = &row->fragment->ops[row->interface->op];

	return (struct fragi_spec_end){
		.fragment = end->fragment,
		.op = op->name,
		.port = op->ports[row->interface->op_port].name,
		.place = end->place,
	};
}

static void apply_from(struct applying *applying, struct fragi_spec_flow *flow)
{
	struct row *instance = find(applying, &flow->from, NULL), *row;

	if (instance == NULL)
		return;
	row = find_port(applying, &flow->from, instance, FRAG_OUT);
	if (row != NULL && row->next_of_port != NULL) {
		applying_error(
			applying, flow->from.place,
			"flow end %s.%s.%s: it stands for several inner inputs, and a flow begins at an output",
			instance->fragment->name, flow->from.op, row->interface->port);
		row = NULL;
	}
	if (row != NULL)
		flow->from = inner_end(&flow->from, row);
	else
		flow->from.op = NULL; /* no further error is reported about it */
}

/* Returns the ports that an input stands for; NULL: after an error, or it is of no instance. */
static struct row *rows_of(struct applying *applying, const struct fragi_spec_end *end,
			   bool *out_is_instance)
{
	struct row *instance = find(applying, end, NULL);

	*out_is_instance = instance != NULL;
	return instance != NULL ? find_port(applying, end, instance, FRAG_IN) : NULL;
}

/* What the ends of a flow's list stand for. */
struct plan {
	struct row **rows; /* of each end; NULL: none of the ends is of an instance */
	size_t flow_count; /* that take the place of this one */
};

static void plan_flow(struct applying *applying, struct fragi_spec_flow *flow, struct plan *plan)
{
	bool is_instance, any = false;
	struct row **rows =
		fragi_arena_alloc(applying->arena, (flow->to_count + 1) * sizeof(struct row *));

	if (rows == NULL) {
		applying->no_memory = true;
		return;
	}
	apply_from(applying, flow);
	for (size_t i = 0; i < flow->to_count; i++) {
		rows[i] = rows_of(applying, &flow->to[i], &is_instance);
		any = any || is_instance;
		plan->flow_count += rows[i] != NULL ? count_rows(rows[i]) : 1;
	}
	if (any)
		plan->rows = rows;
	else
		plan->flow_count = 1;
	applying->ends += any ? plan->flow_count : 0;
}

/*
 * Puts a flow for each inner port in the place of a flow. All flows of one end have that end's
 * order, which so depends on the graph alone, and not on the tables that are known.
 */
static size_t put_flows(struct applying *applying, const struct fragi_spec_flow *flow,
			const struct plan *plan, struct fragi_spec_flow *out)
{
	struct fragi_spec_end *ends;
	size_t count = 0;

	if (plan->rows == NULL) {
		*out = *flow;
		return 1;
	}
	ends = fragi_arena_alloc(applying->arena, (plan->flow_count + 1) * sizeof(*ends));
	if (ends == NULL) {
		applying->no_memory = true;
		return 0;
	}
	for (size_t i = 0; i < flow->to_count; i++) {
		const struct row *row = plan->rows[i];

		do {
			if (row != NULL)
				ends[count] = inner_end(&flow->to[i], row);
			else
				ends[count] = flow->to[i];
			if (row == NULL && find(applying, &flow->to[i], NULL) != NULL)
				ends[count].op = NULL; /* no further error is reported about it */
			out[count] = *flow;
			out[count].to = &ends[count];
			out[count].to_count = 1;
			out[count++].order = flow->order + (uint32_t)i;
			row = row != NULL ? row->next_of_port : NULL;
		} while (row != NULL);
	}
	return count;
}

static void apply_all(struct applying *applying, const struct fragi_spec_flow *specs, size_t count,
		      const struct fragi_spec_flow **out_specs, size_t *out_count)
{
	struct plan *plans = fragi_arena_alloc(applying->arena, (count + 1) * sizeof(*plans));
	struct fragi_spec_flow *own, *flows;
	size_t total = 0;

	own = fragi_arena_alloc(applying->arena, (count + 1) * sizeof(*own));
	applying->no_memory = applying->no_memory || plans == NULL || own == NULL;
	if (count > 0 && !applying->no_memory)
		memcpy(own, specs, count * sizeof(*own));
	for (size_t i = 0; i < count && !applying->no_memory && applying->ends <= ENDS_MAX; i++) {
		plan_flow(applying, &own[i], &plans[i]);
		total += plans[i].flow_count;
	}
	if (applying->ends > ENDS_MAX) {
		applying_error(
			applying, NULL,
			"the ports of subgraphs make more than %d ends of flows; connect fewer",
			ENDS_MAX);
		return;
	}
	flows = fragi_arena_alloc(applying->arena, (total + 1) * sizeof(*flows));
	applying->no_memory = applying->no_memory || flows == NULL;
	total = 0;
	for (size_t i = 0; i < count && !applying->no_memory; i++)
		total += put_flows(applying, &own[i], &plans[i], flows + total);
	*out_specs = flows;
	*out_count = total;
}

int fragi_interfaces_apply(struct fragi_arena *arena, const struct fragi_spec_flow *specs,
			   size_t spec_count, int own_fragment,
			   const struct fragi_fragment_info *fragments, size_t fragment_count,
			   struct fragi_diag *diag, const struct fragi_spec_flow **out_specs,
			   size_t *out_count)
{
	struct applying applying = {.arena = arena, .diag = diag};

	for (size_t i = 0; i < fragment_count; i++)
		if ((own_fragment < 0 || i == (size_t)own_fragment) &&
		    fragments[i].interface_count > 0)
			index_fragment(&applying, &fragments[i]);
	*out_specs = specs;
	*out_count = spec_count;
	if (own_fragment >= 0)
		applying.own = &fragments[own_fragment];
	if (applying.rows.count > 0 && !applying.no_memory)
		apply_all(&applying, specs, spec_count, out_specs, out_count);
	fragi_strmap_fini(&applying.rows);
	if (applying.no_memory)
		return -ENOMEM;
	return applying.failed ? -EINVAL : 0;
}
