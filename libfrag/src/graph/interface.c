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

static enum frag_dir dir_of(const struct row *row)
{
	return row->fragment->ops[row->interface->op].ports[row->interface->op_port].dir;
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

/* Returns the first row of the port that an end of an instance names or can only mean. */
static struct row *find_port(struct applying *applying, const struct fragi_spec_end *end,
			     struct row *instance, enum frag_dir dir)
{
	struct row *only = NULL, *found;
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
	for (struct row *row = instance; row != NULL; row = row->next_of_instance) {
		applying->ends++;
		if (dir_of(row) != dir)
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
			"flow end %s.%s: it stands for several inner inputs, and a flow begins at an output",
			instance->fragment->name, flow->from.op);
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

static void apply_to(struct applying *applying, struct fragi_spec_flow *flow)
{
	struct fragi_spec_end *ends;
	size_t count = 0, wanted = 0;
	bool is_instance, any = false;
	struct row **rows =
		fragi_arena_alloc(applying->arena, (flow->to_count + 1) * sizeof(struct row *));

	for (size_t i = 0; rows != NULL && i < flow->to_count; i++) {
		rows[i] = rows_of(applying, &flow->to[i], &is_instance);
		any = any || is_instance;
		wanted += is_instance && rows[i] != NULL ? count_rows(rows[i]) : 1;
	}
	if (rows != NULL && !any)
		return;
	applying->ends += wanted;
	if (applying->ends > ENDS_MAX)
		return;
	ends = fragi_arena_alloc(applying->arena, (wanted + 1) * sizeof(*ends));
	if (rows == NULL || ends == NULL) {
		applying->no_memory = true;
		return;
	}
	for (size_t i = 0; i < flow->to_count; i++) {
		if (rows[i] == NULL) {
			ends[count] = flow->to[i];
			if (find(applying, &flow->to[i], NULL) != NULL)
				ends[count].op = NULL; /* no further error is reported about it */
			count++;
		}
		for (const struct row *row = rows[i]; row != NULL; row = row->next_of_port)
			ends[count++] = inner_end(&flow->to[i], row);
	}
	flow->to = ends;
	flow->to_count = count;
}

static void apply_all(struct applying *applying, struct fragi_spec_flow *flows, size_t count)
{
	uint32_t order = 0;

	for (size_t i = 0; i < count && applying->ends <= ENDS_MAX; i++) {
		apply_from(applying, &flows[i]);
		apply_to(applying, &flows[i]);
		if (flows[i].place == NULL) /* composed in C: they come before all others */
			continue;
		flows[i].order = order;
		order += (uint32_t)flows[i].to_count;
	}
	if (applying->ends > ENDS_MAX)
		applying_error(
			applying, NULL,
			"the ports of subgraphs make more than %d ends of flows; connect fewer",
			ENDS_MAX);
}

int fragi_interfaces_apply(struct fragi_arena *arena, const struct fragi_spec_flow *specs,
			   size_t spec_count, int own_fragment,
			   const struct fragi_fragment_info *fragments, size_t fragment_count,
			   struct fragi_diag *diag, const struct fragi_spec_flow **out_specs)
{
	struct applying applying = {.arena = arena, .diag = diag};
	struct fragi_spec_flow *flows;

	for (size_t i = 0; i < fragment_count; i++)
		if (own_fragment < 0 || i == (size_t)own_fragment)
			if (fragments[i].interface_count > 0)
				index_fragment(&applying, &fragments[i]);
	*out_specs = specs;
	if (applying.rows.count == 0 && !applying.no_memory)
		return 0;
	if (own_fragment >= 0)
		applying.own = &fragments[own_fragment];
	flows = fragi_arena_alloc(arena, (spec_count + 1) * sizeof(*flows));
	if (flows != NULL && !applying.no_memory) {
		if (spec_count > 0)
			memcpy(flows, specs, spec_count * sizeof(*flows));
		apply_all(&applying, flows, spec_count);
		*out_specs = flows;
	}
	fragi_strmap_fini(&applying.rows);
	if (flows == NULL || applying.no_memory)
		return -ENOMEM;
	return applying.failed ? -EINVAL : 0;
}
