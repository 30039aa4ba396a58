// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/policy.h>
#include <base/strmap.h>
#include <text/builder.h>
#include <graph/resolve.h>
#include <graph/transport.h>

/*
 * Defaults depend on the graph and never on where fragments run, so that behaviour does not either.
 */
#define CAPACITY_INSIDE 1u /* of a flow within a fragment */
#define CAPACITY_BETWEEN 4u
#define END_SIZE (3 * FRAG_NAME_MAX + 3)
#define ADVICE_PORTS_MAX 64

struct end {
	uint32_t fragment, op, port;
};

enum found {
	FOUND_NOTHING, /* an error was reported */
	FOUND_END,
	FOUND_OTHER_DIRECTION, /* an output where an input must stand, or the other way round */
};

/* A resolution under way. */
struct fragi_resolving {
	const struct fragi_spec_flow *specs;
	size_t spec_count;
	/* next: a flow that was there, then one of specs, and an end of that one's list */
	size_t next_known, next_spec, next_to;
	size_t known_count;
	struct end from; /* of the present one of specs */
	enum found from_found;
	const struct fragi_fragment_info *fragments;
	size_t fragment_count;
	int own_fragment;
	struct fragi_diag *diag;
	struct fragi_arena arena;      /* of the pairs' keys */
	struct fragi_strmap by_name;   /* fragments: index + 1 */
	struct fragi_strmap *ops;      /* per fragment, made when it is first named: index + 1 */
	struct fragi_strmap pairs;     /* both ends: index of the flow + 1 */
	struct fragi_flow_info *flows; /* with room for all that may be added */
	size_t count;
	int64_t items; /* items that this step may still handle */
	bool failed, no_memory;
};

static const char *advise(const struct fragi_resolving *resolving, char *out, size_t size,
			  const char *word, const char *what, const char *const *names,
			  size_t count)
{
	out[0] = '\0'; /* nobody reads it when diag is full */
	return resolving->diag->count < FRAGI_DIAG_MAX
		       ? fragi_advise(out, size, word, what, names, count)
		       : out;
}

#define resolving_error(resolving, place, ...)                                                     \
	do {                                                                                       \
		fragi_node_error((resolving)->diag, place, NULL, __VA_ARGS__);                     \
		(resolving)->failed = true;                                                        \
	} while (0)

static const char *dir_text(enum frag_dir dir)
{
	return dir == FRAG_IN ? "input" : "output";
}

static const struct fragi_port_info *port_at(const struct fragi_fragment_info *fragments,
					     const struct end *end)
{
	return &fragments[end->fragment].ops[end->op].ports[end->port];
}

static const char *end_text(const struct fragi_fragment_info *fragments, const struct end *end,
			    char *out, size_t size)
{
	snprintf(out, size, "%s.%s.%s", fragments[end->fragment].name,
		 fragments[end->fragment].ops[end->op].name, port_at(fragments, end)->name);
	return out;
}

/* "; its outputs: out, mask" or "; did you mean "out"?" */
static const char *advise_ports(const struct fragi_resolving *resolving, char *out, size_t size,
				const char *word, const struct fragi_op_info *op, enum frag_dir dir)
{
	const char *names[ADVICE_PORTS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < op->port_count && count < ADVICE_PORTS_MAX; i++)
		if (op->ports[i].dir == dir)
			names[count++] = op->ports[i].name;
	if (count == 0)
		snprintf(out, size, "; it has no %ss", dir_text(dir));
	else
		advise(resolving, out, size, word, dir == FRAG_IN ? "its inputs" : "its outputs",
		       names, count);
	return out;
}

static void put(struct fragi_resolving *resolving, struct fragi_strmap *map, const char *name,
		size_t index)
{
	if (name == NULL || fragi_strmap_put(map, name, (void *)(uintptr_t)(index + 1)) == -ENOMEM)
		resolving->no_memory = true;
}

/* Returns the index of a name; SIZE_MAX when it is not there. */
static size_t get(const struct fragi_strmap *map, const char *name)
{
	return (size_t)(uintptr_t)fragi_strmap_get(map, name) - 1;
}

static bool find_fragment(struct fragi_resolving *resolving, const struct fragi_spec_end *from,
			  struct end *end)
{
	const char *names[ADVICE_PORTS_MAX];
	char advice[512];
	size_t i, count = 0;

	if (resolving->own_fragment >= 0) {
		end->fragment = (uint32_t)resolving->own_fragment;
		return true;
	}
	i = from->fragment != NULL ? get(&resolving->by_name, from->fragment) : SIZE_MAX;
	end->fragment = (uint32_t)i;
	if (i != SIZE_MAX)
		return true;
	for (; count < resolving->fragment_count && count < ADVICE_PORTS_MAX; count++)
		names[count] = resolving->fragments[count].name;
	resolving_error(resolving, from->place, "flow end %s.%s: unknown fragment \"%s\"%s",
			from->fragment, from->op, from->fragment,
			advise(resolving, advice, sizeof(advice), from->fragment, "fragments",
			       names, count));
	return false;
}

static bool find_op(struct fragi_resolving *resolving, const struct fragi_spec_end *from,
		    struct end *end)
{
	const struct fragi_fragment_info *fragment = &resolving->fragments[end->fragment];
	struct fragi_strmap *index = &resolving->ops[end->fragment];
	const char *names[ADVICE_PORTS_MAX];
	char advice[512];
	size_t i, count = 0;

	if (index->count == 0) {
		for (i = 0; i < fragment->op_count; i++)
			put(resolving, index, fragment->ops[i].name, i);
		resolving->items -= (int64_t)fragment->op_count;
	}
	if (resolving->no_memory) /* an incomplete index would report known names as unknown */
		return false;
	i = get(index, from->op);
	end->op = (uint32_t)i;
	if (i != SIZE_MAX || fragment->has_gaps)
		return i != SIZE_MAX;
	for (; count < fragment->op_count && count < ADVICE_PORTS_MAX; count++)
		names[count] = fragment->ops[count].name;
	resolving_error(
		resolving, from->place, "flow end %s.%s: unknown operator \"%s.%s\"%s",
		fragment->name, from->op, fragment->name, from->op,
		advise(resolving, advice, sizeof(advice), from->op, "operators", names, count));
	return false;
}

static bool find_only_port(struct fragi_resolving *resolving, const struct fragi_spec_end *from,
			   enum frag_dir dir, struct end *end)
{
	const struct fragi_fragment_info *fragment = &resolving->fragments[end->fragment];
	const struct fragi_op_info *op = &fragment->ops[end->op];
	char advice[512];
	size_t count = 0;

	if (op->has_gaps)
		return false;
	for (size_t i = 0; i < op->port_count; i++) {
		if (op->ports[i].dir != dir)
			continue;
		end->port = (uint32_t)i;
		count++;
	}
	if (count == 1)
		return true;
	if (count == 0)
		resolving_error(resolving, from->place, "flow end %s.%s: the operator has no %ss",
				fragment->name, op->name, dir_text(dir));
	else
		resolving_error(resolving, from->place,
				"flow end %s.%s: several could be meant; name the port%s",
				fragment->name, op->name,
				advise_ports(resolving, advice, sizeof(advice), "", op, dir));
	return false;
}

static enum found find_port(struct fragi_resolving *resolving, const struct fragi_spec_end *from,
			    enum frag_dir dir, struct end *end)
{
	const struct fragi_fragment_info *fragment = &resolving->fragments[end->fragment];
	const struct fragi_op_info *op = &fragment->ops[end->op];
	enum found found = FOUND_NOTHING;
	char advice[512];

	if (from->port == NULL)
		return find_only_port(resolving, from, dir, end) ? FOUND_END : FOUND_NOTHING;
	for (size_t i = 0; i < op->port_count; i++) {
		if (strcmp(op->ports[i].name, from->port) != 0)
			continue;
		end->port = (uint32_t)i;
		if (op->ports[i].dir == dir)
			return FOUND_END;
		found = FOUND_OTHER_DIRECTION;
	}
	if (found == FOUND_NOTHING && !op->has_gaps)
		resolving_error(
			resolving, from->place, "flow end %s.%s.%s: no %s \"%s\"%s", fragment->name,
			op->name, from->port, dir_text(dir), from->port,
			advise_ports(resolving, advice, sizeof(advice), from->port, op, dir));
	return found;
}

static enum found find_end(struct fragi_resolving *resolving, const struct fragi_spec_end *from,
			   enum frag_dir dir, struct end *end)
{
	/* an end without an operator was refused when the text was read */
	return from->op != NULL && find_fragment(resolving, from, end) &&
			       find_op(resolving, from, end)
		       ? find_port(resolving, from, dir, end)
		       : FOUND_NOTHING;
}

static void refuse_direction(struct fragi_resolving *resolving, const struct fragi_spec_end *from,
			     enum frag_dir dir, const struct end *end)
{
	const struct fragi_op_info *op = &resolving->fragments[end->fragment].ops[end->op];
	char text[END_SIZE], advice[512];

	resolving_error(resolving, from->place, "flow end %s: this is an %s, and a flow %s%s",
			end_text(resolving->fragments, end, text, sizeof(text)),
			dir == FRAG_IN ? "output" : "input",
			dir == FRAG_IN ? "ends at an input" : "begins at an output",
			advise_ports(resolving, advice, sizeof(advice), "", op, dir));
}

static void refuse_reversed(struct fragi_resolving *resolving, const struct fragi_node *place,
			    const struct end *from, const struct end *to)
{
	char from_text[END_SIZE], to_text[END_SIZE];

	end_text(resolving->fragments, from, from_text, sizeof(from_text));
	end_text(resolving->fragments, to, to_text, sizeof(to_text));
	resolving_error(
		resolving, place,
		"flow %s -> %s: it begins at an input and ends at an output; turn it round: %s -> %s",
		from_text, to_text, to_text, from_text);
}

static const char *type_of(const struct fragi_port_info *port)
{
	return port->type != NULL ? port->type : "message";
}

static bool is_open(const char *type) /* does not name a type of values */
{
	return strcmp(type, "message") == 0 || strcmp(type, "tensor") == 0;
}

static void check_types(struct fragi_resolving *resolving, const struct fragi_node *place,
			const char *from_text, const struct fragi_port_info *from,
			const char *to_text, const struct fragi_port_info *to)
{
	const char *sent = type_of(from), *taken = type_of(to);

	if (strcmp(sent, "message") == 0 || strcmp(taken, "message") == 0)
		return;
	if (strcmp(sent, taken) != 0) {
		resolving_error(
			resolving, place,
			"flow %s -> %s: the output has type \"%s\", the input \"%s\"; connect ports of one type",
			from_text, to_text, sent, taken);
		fragi_diag_compare(resolving->diag, taken, sent);
	} else if (from->type_id != 0 && to->type_id != 0 && from->type_id != to->type_id) {
		resolving_error(
			resolving, place,
			"flow %s -> %s: type \"%s\" has other fields at the output than at the input; build both sides with one definition of it",
			from_text, to_text, sent);
	}
}

/* Checks what only a flow between processes must satisfy. */
static void check_crossing(struct fragi_resolving *resolving, const struct fragi_spec_flow *spec,
			   const struct fragi_node *place, const char *from_text,
			   const struct end *from, const char *to_text, const struct end *to)
{
	const struct end *ends[] = {from, to};

	if (spec->edge != NULL && strcmp(spec->edge, "inproc") == 0)
		resolving_error(
			resolving, place,
			"flow %s -> %s: edge inproc needs both ends in one process; give their fragments one host or leave edge out",
			from_text, to_text);
	for (size_t i = 0; i < FRAG_COUNT_OF(ends); i++) {
		const struct fragi_port_info *port = port_at(resolving->fragments, ends[i]);

		if (!is_open(type_of(port)) && !port->has_codec)
			resolving_error(
				resolving, place,
				"flow %s -> %s: it crosses processes, and type \"%s\" has no codec in fragment %s (the %s); give the type fields, or encode and decode",
				from_text, to_text, type_of(port),
				resolving->fragments[ends[i]->fragment].name,
				i == 0 ? "sender" : "receiver");
	}
}

static char *pair_key(struct fragi_resolving *resolving, const struct fragi_flow_info *flow)
{
	return fragi_arena_printf(&resolving->arena, "%x.%x.%x.%x.%x.%x", flow->from_fragment,
				  flow->from_op, flow->from_port, flow->to_fragment, flow->to_op,
				  flow->to_port);
}

static void decide(const struct fragi_spec_flow *spec, const struct fragi_port_info *input,
		   struct fragi_flow_info *flow)
{
	flow->policy = spec->policy != FRAG_POLICY_DEFAULT ? spec->policy : input->policy;
	if (flow->policy == FRAG_POLICY_DEFAULT)
		flow->policy = FRAG_POLICY_BLOCK;
	flow->capacity = spec->capacity != 0 ? spec->capacity : input->capacity;
	if (flow->capacity == 0)
		flow->capacity = flow->from_fragment != flow->to_fragment ? CAPACITY_BETWEEN
									  : CAPACITY_INSIDE;
	if (fragi_policy(flow->policy)->capacity != 0)
		flow->capacity = fragi_policy(flow->policy)->capacity;
}

static void add_flow(struct fragi_resolving *resolving, const struct fragi_flow_info *flow,
		     const struct fragi_node *place, const char *from_text, const char *to_text)
{
	char *key = pair_key(resolving, flow), first[300] = "";
	const struct fragi_flow_info *known;
	size_t i;

	if (key == NULL) {
		resolving->no_memory = true;
		return;
	}
	i = get(&resolving->pairs, key);
	if (i == SIZE_MAX) {
		put(resolving, &resolving->pairs, key, resolving->count);
		resolving->flows[resolving->count++] = *flow;
		return;
	}
	known = &resolving->flows[i];
	if (known->capacity == flow->capacity && known->policy == flow->policy &&
	    known->encrypt == flow->encrypt)
		return;
	if (known->place != NULL && known->place->file != NULL)
		snprintf(first, sizeof(first), " (first at %.200s:%d:%d)", known->place->file,
			 known->place->line, known->place->column);
	resolving_error(
		resolving, place,
		"flow %s -> %s: it is there already with another capacity, policy or encryption%s; keep one of them",
		from_text, to_text, first);
}

static void choose_transport(const struct fragi_fragment_info *fragments,
			     const struct fragi_spec_flow *spec, struct fragi_flow_info *flow)
{
	const struct fragi_choice choice = fragi_transport_choose(
		spec->edge, &fragments[flow->from_fragment], &fragments[flow->to_fragment]);

	flow->between_hosts = choice.transport != NULL;
	flow->transport = choice.transport;
	flow->transport_reason = choice.reason;
}

static void resolve_pair(struct fragi_resolving *resolving, const struct fragi_spec_flow *spec,
			 const struct end *from, const struct fragi_spec_end *to_end,
			 const struct end *to)
{
	const struct fragi_port_info *output = port_at(resolving->fragments, from);
	const struct fragi_port_info *input = port_at(resolving->fragments, to);
	const struct fragi_node *place = to_end->place != NULL ? to_end->place : spec->place;
	struct fragi_flow_info flow = {
		.from_fragment = from->fragment,
		.from_op = from->op,
		.from_port = from->port,
		.to_fragment = to->fragment,
		.to_op = to->op,
		.to_port = to->port,
		.order = spec->order + (uint32_t)(to_end - spec->to),
		.encrypt = spec->encrypt,
		.place = spec->place,
	};
	char from_text[END_SIZE], to_text[END_SIZE];

	choose_transport(resolving->fragments, spec, &flow);
	end_text(resolving->fragments, from, from_text, sizeof(from_text));
	end_text(resolving->fragments, to, to_text, sizeof(to_text));
	check_types(resolving, place, from_text, output, to_text, input);
	if (flow.between_hosts)
		check_crossing(resolving, spec, place, from_text, from, to_text, to);
	decide(spec, input, &flow);
	add_flow(resolving, &flow, place, from_text, to_text);
}

static void resolve_spec(struct fragi_resolving *resolving, const struct fragi_spec_flow *spec)
{
	const struct fragi_spec_end *to_end;
	struct end to = {0};
	enum found found;

	if (resolving->next_to == 0)
		resolving->from_found =
			find_end(resolving, &spec->from, FRAG_OUT, &resolving->from);
	while (resolving->next_to < spec->to_count) {
		to_end = &spec->to[resolving->next_to++];
		found = find_end(resolving, to_end, FRAG_IN, &to);
		if (found == FOUND_END && resolving->from_found == FOUND_END) {
			resolve_pair(resolving, spec, &resolving->from, to_end, &to);
		} else if (found == FOUND_OTHER_DIRECTION &&
			   resolving->from_found == FOUND_OTHER_DIRECTION && spec->to_count == 1) {
			refuse_reversed(resolving, spec->place, &resolving->from, &to);
			resolving->from_found = FOUND_NOTHING;
		} else if (found == FOUND_OTHER_DIRECTION) {
			refuse_direction(resolving, to_end, FRAG_IN, &to);
		}
		if (--resolving->items <= 0 && resolving->next_to < spec->to_count)
			return;
	}
	if (resolving->from_found == FOUND_OTHER_DIRECTION)
		refuse_direction(resolving, &spec->from, FRAG_OUT, &resolving->from);
	resolving->next_to = 0;
	resolving->next_spec++;
}

/* Indexes the fragments and makes room. */
static int resolving_init(struct fragi_resolving *resolving, const struct fragi_flow_info *flows,
			  size_t count)
{
	size_t most = count;

	for (size_t i = 0; i < resolving->spec_count; i++)
		most += resolving->specs[i].to_count;
	resolving->ops = fragi_calloc(resolving->fragment_count + 1, sizeof(*resolving->ops));
	resolving->flows = fragi_calloc(most + 1, sizeof(*flows));
	if (resolving->ops == NULL || resolving->flows == NULL)
		return -ENOMEM;
	if (count > 0)
		memcpy(resolving->flows, flows, count * sizeof(*flows));
	resolving->count = resolving->known_count = count;
	for (size_t i = 0; resolving->own_fragment < 0 && i < resolving->fragment_count; i++)
		put(resolving, &resolving->by_name, resolving->fragments[i].name, i);
	return resolving->no_memory ? -ENOMEM : 0;
}

struct fragi_resolving *
fragi_resolving_begin(const struct fragi_spec_flow *specs, size_t spec_count, int own_fragment,
		      const struct fragi_fragment_info *fragments, size_t fragment_count,
		      const struct fragi_flow_info *flows, size_t count, struct fragi_diag *diag)
{
	struct fragi_resolving *resolving = fragi_calloc(1, sizeof(*resolving));

	if (resolving == NULL)
		return NULL;
	resolving->specs = specs;
	resolving->spec_count = spec_count;
	resolving->fragments = fragments;
	resolving->fragment_count = fragment_count;
	resolving->own_fragment = own_fragment;
	resolving->diag = diag;
	if (resolving_init(resolving, flows, count) == 0)
		return resolving;
	fragi_resolving_end(resolving);
	return NULL;
}

int fragi_resolving_step(struct fragi_resolving *resolving, int64_t *items)
{
	size_t i;

	resolving->items = *items;
	for (; resolving->next_known < resolving->known_count && resolving->items > 0;
	     resolving->items--) {
		i = resolving->next_known++;
		put(resolving, &resolving->pairs, pair_key(resolving, &resolving->flows[i]), i);
	}
	while (resolving->next_spec < resolving->spec_count && resolving->items > 0)
		resolve_spec(resolving, &resolving->specs[resolving->next_spec]);
	*items = resolving->items;
	if (resolving->no_memory)
		return -ENOMEM;
	if (resolving->next_known < resolving->known_count ||
	    resolving->next_spec < resolving->spec_count)
		return -EAGAIN;
	return resolving->failed ? -EINVAL : 0;
}

void fragi_resolving_take(struct fragi_resolving *resolving, struct fragi_flow_info **flows,
			  size_t *count)
{
	fragi_free(*flows);
	*flows = resolving->flows;
	*count = resolving->count;
	resolving->flows = NULL;
}

void fragi_resolving_end(struct fragi_resolving *resolving)
{
	if (resolving == NULL)
		return;
	for (size_t i = 0; resolving->ops != NULL && i < resolving->fragment_count; i++)
		fragi_strmap_fini(&resolving->ops[i]);
	fragi_free(resolving->ops);
	fragi_free(resolving->flows);
	fragi_strmap_fini(&resolving->by_name);
	fragi_strmap_fini(&resolving->pairs);
	fragi_arena_fini(&resolving->arena);
	fragi_free(resolving);
}

int fragi_flows_resolve(const struct fragi_spec_flow *specs, size_t spec_count, int own_fragment,
			const struct fragi_fragment_info *fragments, size_t fragment_count,
			struct fragi_diag *diag, struct fragi_flow_info **flows, size_t *count)
{
	struct fragi_resolving *resolving = fragi_resolving_begin(
		specs, spec_count, own_fragment, fragments, fragment_count, *flows, *count, diag);
	int64_t items = INT64_MAX;
	int r = resolving != NULL ? fragi_resolving_step(resolving, &items) : -ENOMEM;

	if (r == 0)
		fragi_resolving_take(resolving, flows, count);
	fragi_resolving_end(resolving);
	return r;
}

static const char *flow_end(const struct fragi_fragment_info *fragments, uint32_t fragment,
			    uint32_t op, uint32_t port, char *out, size_t size)
{
	const struct end end = {.fragment = fragment, .op = op, .port = port};

	return end_text(fragments, &end, out, size);
}

const char *fragi_flow_from(const struct fragi_fragment_info *fragments,
			    const struct fragi_flow_info *flow, char *out, size_t size)
{
	return flow_end(fragments, flow->from_fragment, flow->from_op, flow->from_port, out, size);
}

const char *fragi_flow_to(const struct fragi_fragment_info *fragments,
			  const struct fragi_flow_info *flow, char *out, size_t size)
{
	return flow_end(fragments, flow->to_fragment, flow->to_op, flow->to_port, out, size);
}
