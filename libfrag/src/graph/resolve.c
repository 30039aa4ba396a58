// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/policy.h>
#include <graph/interface.h>
#include <graph/resolve_end.h>
#include <graph/transport.h>
#include <text/port_tensor.h>

/*
 * Defaults depend on the graph and never on where fragments run, so that behaviour does not either.
 */
#define CAPACITY_INSIDE 1u /* of a flow within a fragment */
#define CAPACITY_BETWEEN 4u

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
		fragi_resolving_error(
			resolving, place,
			"flow %s -> %s: the output has type \"%s\", the input \"%s\"; connect ports of one type",
			from_text, to_text, sent, taken);
		fragi_diag_compare(resolving->diag, taken, sent);
	} else if (from->type_id != 0 && to->type_id != 0 && from->type_id != to->type_id) {
		fragi_resolving_error(
			resolving, place,
			"flow %s -> %s: type \"%s\" has other fields at the output than at the input; build both sides with one definition of it",
			from_text, to_text, sent);
	}
}

/* Layout and unit of tensors have to be the same where both ends declare them. */
static void check_tensors(struct fragi_resolving *resolving, const struct fragi_node *place,
			  const char *from_text, const struct fragi_port_info *from,
			  const char *to_text, const struct fragi_port_info *to)
{
	struct fragi_port_tensor sent, taken, *converter;
	char advice[FRAG_PORT_TENSORS_MAX + 50] = "convert it between them";

	if (!fragi_port_tensors_differ(from->tensors, to->tensors, &sent, &taken))
		return;
	converter = taken.converter_length > 0 ? &taken : &sent;
	if (converter->converter_length > 0)
		snprintf(advice, sizeof(advice), "put an operator of type %.*s between them",
			 (int)converter->converter_length, converter->converter);
	fragi_resolving_error(
		resolving, place,
		"flow %s -> %s: the output sends %.*s as \"%.*s\", the input takes \"%.*s\"; %s",
		from_text, to_text, (int)sent.kind_length, sent.kind, (int)sent.text_length,
		sent.text, (int)taken.text_length, taken.text, advice);
}

/* Checks what only a flow between processes must satisfy. */
static void check_crossing(struct fragi_resolving *resolving, const struct fragi_spec_flow *spec,
			   const struct fragi_node *place, const char *from_text,
			   const struct fragi_end *from, const char *to_text,
			   const struct fragi_end *to)
{
	const struct fragi_end *ends[] = {from, to};

	if (spec->edge != NULL && strcmp(spec->edge, "inproc") == 0)
		fragi_resolving_error(
			resolving, place,
			"flow %s -> %s: edge inproc needs both ends in one process; give their fragments one host or leave edge out",
			from_text, to_text);
	for (size_t i = 0; i < FRAG_COUNT_OF(ends); i++) {
		const struct fragi_port_info *port = fragi_end_port(resolving->fragments, ends[i]);

		if (!is_open(type_of(port)) && !port->has_codec)
			fragi_resolving_error(
				resolving, place,
				"flow %s -> %s: it crosses processes, and type \"%s\" has no codec in fragment %s (the %s); give the type fields, or encode and decode (in Python frag.register_codec)",
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

uint32_t fragi_flow_capacity(const struct fragi_spec_flow *spec,
			     const struct fragi_port_info *input, bool between_fragments)
{
	const struct fragi_policy *policy =
		fragi_policy(spec->policy != FRAG_POLICY_DEFAULT ? spec->policy : input->policy);

	if (policy->capacity != 0)
		return policy->capacity;
	if (spec->capacity != 0)
		return spec->capacity;
	if (input->capacity != 0)
		return input->capacity;
	return between_fragments ? CAPACITY_BETWEEN : CAPACITY_INSIDE;
}

static void decide(const struct fragi_spec_flow *spec, const struct fragi_port_info *input,
		   struct fragi_flow_info *flow)
{
	flow->policy = spec->policy != FRAG_POLICY_DEFAULT ? spec->policy : input->policy;
	if (flow->policy == FRAG_POLICY_DEFAULT)
		flow->policy = FRAG_POLICY_BLOCK;
	flow->capacity = fragi_flow_capacity(spec, input, flow->from_fragment != flow->to_fragment);
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
	i = fragi_resolving_get(&resolving->pairs, key);
	if (i == SIZE_MAX) {
		fragi_resolving_put(resolving, &resolving->pairs, key, resolving->count);
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
	fragi_resolving_error(
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
			 const struct fragi_end *from, const struct fragi_spec_end *to_end,
			 const struct fragi_end *to)
{
	const struct fragi_port_info *output = fragi_end_port(resolving->fragments, from);
	const struct fragi_port_info *input = fragi_end_port(resolving->fragments, to);
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
	char from_text[FRAGI_END_SIZE], to_text[FRAGI_END_SIZE];

	if (fragi_port_is_execution(output->name) != fragi_port_is_execution(input->name)) {
		fragi_end_refuse_mixed(resolving, place, from, to);
		return;
	}
	choose_transport(resolving->fragments, spec, &flow);
	fragi_end_text(resolving->fragments, from, from_text, sizeof(from_text));
	fragi_end_text(resolving->fragments, to, to_text, sizeof(to_text));
	check_types(resolving, place, from_text, output, to_text, input);
	check_tensors(resolving, place, from_text, output, to_text, input);
	if (flow.between_hosts)
		check_crossing(resolving, spec, place, from_text, from, to_text, to);
	decide(spec, input, &flow);
	add_flow(resolving, &flow, place, from_text, to_text);
}

static void resolve_end(struct fragi_resolving *resolving, const struct fragi_spec_flow *spec,
			const struct fragi_spec_end *to_end)
{
	struct fragi_end from, to = {0};
	enum fragi_found found = fragi_end_find_to(resolving, spec, to_end, &to), from_found;

	resolving->end_in_doubt = found == FRAGI_FOUND_NOTHING;
	from_found = fragi_end_find_from(
		resolving, spec,
		found == FRAGI_FOUND_END &&
			fragi_port_is_execution(fragi_end_port(resolving->fragments, &to)->name),
		&from);
	if (found == FRAGI_FOUND_END && from_found == FRAGI_FOUND_END) {
		resolve_pair(resolving, spec, &from, to_end, &to);
	} else if (found == FRAGI_FOUND_OTHER_DIRECTION &&
		   from_found == FRAGI_FOUND_OTHER_DIRECTION && spec->to_count == 1) {
		fragi_end_refuse_reversed(resolving, spec->place, &from, &to);
		resolving->from_found = FRAGI_FOUND_NOTHING;
	} else if (found == FRAGI_FOUND_OTHER_DIRECTION) {
		fragi_end_refuse_direction(resolving, to_end, FRAG_IN, &to);
	}
}

static void resolve_spec(struct fragi_resolving *resolving, const struct fragi_spec_flow *spec)
{
	struct fragi_end from;

	if (resolving->next_to == 0) {
		resolving->from_is_op = fragi_end_find_op(resolving, &spec->from, &resolving->from);
		resolving->from_looked = false;
		resolving->from_found = FRAGI_FOUND_NOTHING;
		if (spec->from.port != NULL)
			fragi_end_find_from(resolving, spec, false, &from);
	}
	while (resolving->next_to < spec->to_count) {
		resolve_end(resolving, spec, &spec->to[resolving->next_to++]);
		if (--resolving->items <= 0 && resolving->next_to < spec->to_count)
			return;
	}
	if (resolving->from_found == FRAGI_FOUND_OTHER_DIRECTION)
		fragi_end_refuse_direction(resolving, &spec->from, FRAG_OUT, &resolving->from);
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
		fragi_resolving_put(resolving, &resolving->by_name, resolving->fragments[i].name,
				    i);
	return resolving->no_memory ? -ENOMEM : 0;
}

struct fragi_resolving *
fragi_resolving_begin(const struct fragi_spec_flow *specs, size_t spec_count, int own_fragment,
		      const struct fragi_fragment_info *fragments, size_t fragment_count,
		      const struct fragi_flow_info *flows, size_t count, struct fragi_diag *diag)
{
	struct fragi_resolving *resolving = fragi_calloc(1, sizeof(*resolving));
	int r;

	if (resolving == NULL)
		return NULL;
	resolving->fragments = fragments;
	resolving->fragment_count = fragment_count;
	resolving->own_fragment = own_fragment;
	resolving->diag = diag;
	r = fragi_interfaces_apply(&resolving->arena, specs, spec_count, own_fragment, fragments,
				   fragment_count, diag, &resolving->specs, &resolving->spec_count);
	resolving->failed = r < 0;
	if (r != -ENOMEM && resolving_init(resolving, flows, count) == 0)
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
		fragi_resolving_put(resolving, &resolving->pairs,
				    pair_key(resolving, &resolving->flows[i]), i);
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
	assert(resolving->next_known == resolving->known_count &&
	       resolving->next_spec == resolving->spec_count && "all is resolved");
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
	const struct fragi_end end = {.fragment = fragment, .op = op, .port = port};

	return fragi_end_text(fragments, &end, out, size);
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
