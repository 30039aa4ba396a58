// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <graph/resolve_end.h>
#include <text/subgraph.h>

#define ADVICE_PORTS_MAX 64

static const char *advise(const struct fragi_resolving *resolving, char *out, size_t size,
			  const char *word, const char *what, const char *const *names,
			  size_t count)
{
	out[0] = '\0'; /* nobody reads it when diag is full */
	return resolving->diag->count < FRAGI_DIAG_MAX
		       ? fragi_advise(out, size, word, what, names, count)
		       : out;
}

static const char *dir_text(enum frag_dir dir)
{
	return dir == FRAG_IN ? "input" : "output";
}

/* A look makes two for each flow: printf would be a tenth of its time. */
const char *fragi_end_text(const struct fragi_fragment_info *fragments, const struct fragi_end *end,
			   char *out, size_t size)
{
	const char *const parts[] = {fragments[end->fragment].name, ".",
				     fragments[end->fragment].ops[end->op].name, ".",
				     fragi_end_port(fragments, end)->name};
	size_t at = 0;

	for (size_t i = 0; i < FRAG_COUNT_OF(parts); i++) {
		size_t length = strnlen(parts[i], size - 1 - at);

		memcpy(out + at, parts[i], length);
		at += length;
	}
	out[at] = '\0';
	return out;
}

/* "; its outputs: out, mask" or "; did you mean "out"?" */
static const char *advise_ports(const struct fragi_resolving *resolving, char *out, size_t size,
				const char *word, const struct fragi_op_info *op, enum frag_dir dir)
{
	const char *names[ADVICE_PORTS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < op->port_count && count < ADVICE_PORTS_MAX; i++)
		if (op->ports[i].dir == dir && !fragi_port_is_execution(op->ports[i].name))
			names[count++] = op->ports[i].name;
	if (count == 0)
		snprintf(out, size, "; it has no %ss", dir_text(dir));
	else
		advise(resolving, out, size, word, dir == FRAG_IN ? "its inputs" : "its outputs",
		       names, count);
	return out;
}

static bool find_fragment(struct fragi_resolving *resolving, const struct fragi_spec_end *from,
			  struct fragi_end *end)
{
	const char *names[ADVICE_PORTS_MAX];
	char advice[512];
	size_t i, count = 0;

	if (resolving->own_fragment >= 0) {
		end->fragment = (uint32_t)resolving->own_fragment;
		return true;
	}
	i = from->fragment != NULL ? fragi_resolving_get(&resolving->by_name, from->fragment)
				   : SIZE_MAX;
	end->fragment = (uint32_t)i;
	if (i != SIZE_MAX)
		return true;
	for (; count < resolving->fragment_count && count < ADVICE_PORTS_MAX; count++)
		names[count] = resolving->fragments[count].name;
	fragi_resolving_error(resolving, from->place, "flow end %s.%s: unknown fragment \"%s\"%s",
			      from->fragment, from->op, from->fragment,
			      advise(resolving, advice, sizeof(advice), from->fragment, "fragments",
				     names, count));
	return false;
}

static bool find_op(struct fragi_resolving *resolving, const struct fragi_spec_end *from,
		    struct fragi_end *end)
{
	const struct fragi_fragment_info *fragment = &resolving->fragments[end->fragment];
	struct fragi_strmap *index = &resolving->ops[end->fragment];
	const char *names[ADVICE_PORTS_MAX];
	char advice[512];
	size_t i, count = 0;

	if (index->count == 0) {
		for (i = 0; i < fragment->op_count; i++)
			fragi_resolving_put(resolving, index, fragment->ops[i].name, i);
		resolving->items -= (int64_t)fragment->op_count;
	}
	if (resolving->no_memory) /* an incomplete index would report known names as unknown */
		return false;
	i = fragi_resolving_get(index, from->op);
	end->op = (uint32_t)i;
	if (i != SIZE_MAX || fragment->has_gaps)
		return i != SIZE_MAX;
	for (; count < fragment->op_count && count < ADVICE_PORTS_MAX; count++)
		names[count] = fragment->ops[count].name;
	fragi_resolving_error(
		resolving, from->place, "flow end %s.%s: unknown operator \"%s.%s\"%s",
		fragment->name, from->op, fragment->name, from->op,
		advise(resolving, advice, sizeof(advice), from->op, "operators", names, count));
	return false;
}

/* Where the end is written: in a flow, or in the subgraph whose port stands there. */
static const struct fragi_node *place_of(const struct fragi_spec_end *end)
{
	return end->place != NULL && end->place->inner != NULL ? end->place->inner->place
							       : end->place;
}

/* What an error calls the end. Returns out. */
static const char *name_of(const struct fragi_spec_end *end, const char *fragment, const char *op,
			   char out[FRAGI_SUBGRAPH_INNER_SIZE])
{
	if (end->place != NULL && end->place->inner != NULL)
		return fragi_subgraph_inner_text(end->place->inner, out, FRAGI_SUBGRAPH_INNER_SIZE);
	snprintf(out, FRAGI_SUBGRAPH_INNER_SIZE, "flow end %s.%s%s%s", fragment, op,
		 end->port != NULL ? "." : "", end->port != NULL ? end->port : "");
	return out;
}

static bool find_only_port(struct fragi_resolving *resolving, const struct fragi_spec_end *from,
			   enum frag_dir dir, struct fragi_end *end)
{
	const struct fragi_fragment_info *fragment = &resolving->fragments[end->fragment];
	const struct fragi_op_info *op = &fragment->ops[end->op];
	char advice[512], name[FRAGI_SUBGRAPH_INNER_SIZE];
	struct fragi_only_port only = {0};

	if (op->has_gaps)
		return false;
	for (size_t i = 0; i < op->port_count; i++)
		if (op->ports[i].dir == dir && !fragi_port_is_execution(op->ports[i].name))
			fragi_only_port_add(&only, (uint32_t)i, op->ports[i].flags);
	end->port = only.port;
	if (fragi_only_port_is_known(&only))
		return true;
	if (only.count == 0 && resolving->end_in_doubt && dir == FRAG_OUT)
		return false;
	if (only.count == 0)
		fragi_resolving_error(
			resolving, place_of(from), "%s: the operator has no %ss%s",
			name_of(from, fragment->name, op->name, name), dir_text(dir),
			strcmp(op->name, FRAGI_START_OP) == 0
				? "; it begins execution flows: to operators without inputs, or to " FRAG_INPUT_EXEC
				: "");
	else
		fragi_resolving_error(resolving, place_of(from),
				      "%s: several could be meant; name the port%s",
				      name_of(from, fragment->name, op->name, name),
				      advise_ports(resolving, advice, sizeof(advice), "", op, dir));
	return false;
}

static enum fragi_found find_port(struct fragi_resolving *resolving,
				  const struct fragi_spec_end *from, enum frag_dir dir,
				  struct fragi_end *end)
{
	const struct fragi_fragment_info *fragment = &resolving->fragments[end->fragment];
	const struct fragi_op_info *op = &fragment->ops[end->op];
	enum fragi_found found = FRAGI_FOUND_NOTHING;
	char advice[512], name[FRAGI_SUBGRAPH_INNER_SIZE];

	if (from->port == NULL)
		return find_only_port(resolving, from, dir, end) ? FRAGI_FOUND_END
								 : FRAGI_FOUND_NOTHING;
	for (size_t i = 0; i < op->port_count; i++) {
		if (strcmp(op->ports[i].name, from->port) != 0)
			continue;
		end->port = (uint32_t)i;
		if (op->ports[i].dir == dir)
			return FRAGI_FOUND_END;
		found = FRAGI_FOUND_OTHER_DIRECTION;
	}
	if (found == FRAGI_FOUND_NOTHING && !op->has_gaps)
		fragi_resolving_error(
			resolving, place_of(from), "%s: no %s \"%s\"%s",
			name_of(from, fragment->name, op->name, name), dir_text(dir), from->port,
			advise_ports(resolving, advice, sizeof(advice), from->port, op, dir));
	return found;
}

bool fragi_end_find_op(struct fragi_resolving *resolving, const struct fragi_spec_end *from,
		       struct fragi_end *end)
{
	/* an end without an operator was refused when the text was read */
	return from->op != NULL && find_fragment(resolving, from, end) &&
	       find_op(resolving, from, end);
}

/* Finds an execution port. Where there are inputs for messages, a flow must name it. */
static bool find_execution(const struct fragi_resolving *resolving, const char *name, bool is_named,
			   struct fragi_end *end)
{
	const struct fragi_op_info *op = &resolving->fragments[end->fragment].ops[end->op];
	bool found = false;

	for (size_t i = 0; i < op->port_count; i++) {
		if (strcmp(op->ports[i].name, name) == 0) {
			end->port = (uint32_t)i;
			found = true;
		} else if (op->ports[i].dir == FRAG_IN && !is_named) {
			return false;
		}
	}
	return found;
}

static bool names(const struct fragi_spec_end *end, const char *port)
{
	return end->port != NULL && strcmp(end->port, port) == 0;
}

enum fragi_found fragi_end_find_to(struct fragi_resolving *resolving,
				   const struct fragi_spec_flow *spec,
				   const struct fragi_spec_end *to, struct fragi_end *end)
{
	bool is_named = names(&spec->from, FRAG_OUTPUT_EXEC);

	if (to->op != NULL && strcmp(to->op, FRAGI_START_OP) == 0) {
		if (find_fragment(resolving, to, end))
			fragi_resolving_error(
				resolving, to->place,
				"flow end %s.%s: flows only begin at the start operator",
				resolving->fragments[end->fragment].name, to->op);
		return FRAGI_FOUND_NOTHING;
	}
	if (!fragi_end_find_op(resolving, to, end))
		return FRAGI_FOUND_NOTHING;
	if (to->port == NULL && (spec->from.port == NULL || is_named) &&
	    find_execution(resolving, FRAG_INPUT_EXEC, is_named, end))
		return FRAGI_FOUND_END;
	return find_port(resolving, to, FRAG_IN, end);
}

/* The output of a flow to that end. One without a name is looked for when its kind is known. */
enum fragi_found fragi_end_find_from(struct fragi_resolving *resolving,
				     const struct fragi_spec_flow *spec, bool to_execution,
				     struct fragi_end *out)
{
	*out = resolving->from;
	if (!resolving->from_is_op)
		return FRAGI_FOUND_NOTHING;
	if (to_execution && spec->from.port == NULL)
		return find_execution(resolving, FRAG_OUTPUT_EXEC, true, out) ? FRAGI_FOUND_END
									      : FRAGI_FOUND_NOTHING;
	if (!resolving->from_looked)
		resolving->from_found =
			find_port(resolving, &spec->from, FRAG_OUT, &resolving->from);
	resolving->from_looked = true;
	*out = resolving->from;
	return resolving->from_found;
}

void fragi_end_refuse_direction(struct fragi_resolving *resolving,
				const struct fragi_spec_end *from, enum frag_dir dir,
				const struct fragi_end *end)
{
	const struct fragi_op_info *op = &resolving->fragments[end->fragment].ops[end->op];
	const struct fragi_subgraph_inner *inner = from->place != NULL && from->place->inner != NULL
							   ? from->place->inner->directed
							   : NULL;
	char name[FRAGI_SUBGRAPH_INNER_SIZE], advice[512];

	if (inner != NULL)
		fragi_subgraph_inner_text(inner, name, sizeof(name));
	else
		snprintf(name, sizeof(name), "flow end %s.%s.%s",
			 resolving->fragments[end->fragment].name, op->name,
			 op->ports[end->port].name);
	fragi_resolving_error(resolving, inner != NULL ? inner->place : from->place,
			      "%s: this is an %s, and a flow %s%s", name,
			      dir == FRAG_IN ? "output" : "input",
			      dir == FRAG_IN ? "ends at an input" : "begins at an output",
			      advise_ports(resolving, advice, sizeof(advice), "", op, dir));
}

void fragi_end_refuse_reversed(struct fragi_resolving *resolving, const struct fragi_node *place,
			       const struct fragi_end *from, const struct fragi_end *to)
{
	char from_text[FRAGI_END_SIZE], to_text[FRAGI_END_SIZE];

	fragi_end_text(resolving->fragments, from, from_text, sizeof(from_text));
	fragi_end_text(resolving->fragments, to, to_text, sizeof(to_text));
	fragi_resolving_error(
		resolving, place,
		"flow %s -> %s: it begins at an input and ends at an output; turn it round: %s -> %s",
		from_text, to_text, to_text, from_text);
}

void fragi_end_refuse_mixed(struct fragi_resolving *resolving, const struct fragi_node *place,
			    const struct fragi_end *from, const struct fragi_end *to)
{
	char from_text[FRAGI_END_SIZE], to_text[FRAGI_END_SIZE];

	fragi_resolving_error(
		resolving, place,
		"flow %s -> %s: only one of these ports is for execution; connect " FRAG_OUTPUT_EXEC
		" with " FRAG_INPUT_EXEC ", or an output with an input",
		fragi_end_text(resolving->fragments, from, from_text, sizeof(from_text)),
		fragi_end_text(resolving->fragments, to, to_text, sizeof(to_text)));
}
