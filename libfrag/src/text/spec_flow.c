// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <base/policy.h>
#include <base/transports.h>
#include <base/units.h>
#include <text/builder.h>

#define POLICY_WORDS_MAX 32
#define EDGE_WORDS_MAX 16
#define NAMES_MAX 256

void fragi_spec_read_policy(struct fragi_builder *builder, struct fragi_node *node,
			    const char *subject, void *out)
{
	const char *words[POLICY_WORDS_MAX];
	unsigned int policies[POLICY_WORDS_MAX] = {0};
	size_t count = 0;
	int i;

	for (int holoscan = 0; holoscan < 2; holoscan++) {
		for (unsigned int policy = FRAG_POLICY_DEFAULT + 1; fragi_policy(policy) != NULL;
		     policy++) {
			words[count] = holoscan != 0 ? fragi_policy(policy)->holoscan
						     : fragi_policy(policy)->name;
			policies[count] = policy;
			if (words[count] != NULL && count + 1 < POLICY_WORDS_MAX)
				count++;
		}
	}
	i = fragi_read_word(builder, node, subject, "policy", words, count);
	if (i >= 0)
		*(enum frag_policy *)out = (enum frag_policy)policies[i];
}

/* Removes an end that was refused, so that no further error about it is reported. */
static void refuse_end(struct fragi_spec_end *end, bool fragment_too)
{
	end->op = end->port = NULL;
	if (fragment_too)
		end->fragment = NULL;
}

/* Why an end was refused. */
enum end_fault { END_FITS, END_FORM, END_FRAGMENT, END_OPERATOR };

bool fragi_spec_may_be_lost(const struct fragi_builder *builder, const struct fragi_node *map,
			    const char *name)
{
	const char *names[NAMES_MAX];
	size_t count = 0;

	if (map != NULL && map->kind == FRAGI_NODE_MAP && map->count > 0 && !map->lost_a_name)
		return false;
	if (!fragi_builder_failed(builder)) /* as `operators:` without any */
		return false;
	for (const struct fragi_node *child = map != NULL ? map->first : NULL;
	     child != NULL && count < NAMES_MAX; child = child->next)
		if (child->key != NULL && fragi_name_is_valid(child->key->text))
			names[count++] = child->key->text;
	return fragi_suggest(name, names, count) == NULL;
}

/* Checks that the fragment and the operator exist. Operators of a composer are checked later. */
static enum end_fault check_end(struct fragi_builder *builder, const char *fragment,
				const char *text, enum end_fault other, struct fragi_spec_end *end)
{
	const struct fragi_node *known = fragi_strmap_get(&builder->fragments, fragment);
	const struct fragi_node *fragments, *operators;
	char *path = fragi_builder_join(builder, fragment, end->op), advice[512];

	if (path == NULL)
		return END_FITS;
	if (fragi_strmap_get(&builder->excluded, fragment) != NULL) {
		fragi_builder_error(
			builder, end->place, NULL,
			"flow end %s: fragment %s is excluded by its when; give the flow the same when",
			text, fragment);
		refuse_end(end, true);
	} else if (known == NULL) {
		fragments = fragi_node_get(builder->root, "fragments");
		if (other != END_FRAGMENT && !fragi_spec_may_be_lost(builder, fragments, fragment))
			fragi_builder_error(
				builder, end->place, NULL, "flow end %s: unknown fragment \"%s\"%s",
				text, fragment,
				fragi_builder_advise_keys(builder, advice, sizeof(advice), fragment,
							  "fragments", fragments));
		refuse_end(end, true);
		return END_FRAGMENT;
	} else if (fragi_strmap_get(&builder->excluded, path) != NULL) {
		fragi_builder_error(
			builder, end->place, NULL,
			"flow end %s: operator %s is excluded by its when; give the flow the same when",
			text, path);
		refuse_end(end, false);
	} else if (strcmp(end->op, FRAGI_START_OP) != 0 &&
		   fragi_strmap_get(&builder->composed, fragment) == NULL &&
		   fragi_strmap_get(&builder->operators, path) == NULL) {
		operators = fragi_node_get(known, "operators");
		if (!fragi_spec_may_be_lost(builder, operators, end->op))
			fragi_builder_error(builder, end->place, NULL,
					    "flow end %s: unknown operator \"%s\"%s", text, path,
					    fragi_builder_advise_keys(builder, advice,
								      sizeof(advice), end->op,
								      "operators", operators));
		refuse_end(end, false);
		return END_OPERATOR;
	}
	return END_FITS;
}

/* Whether the part of an end has a name that it may have; of: the last that there may be. */
static bool is_valid_part(const char *part, size_t i, size_t of)
{
	if (i + 1 == of &&
	    (strcmp(part, FRAG_INPUT_EXEC) == 0 || strcmp(part, FRAG_OUTPUT_EXEC) == 0))
		return true;
	return fragi_name_is_valid(part) || (i + 2 == of && strcmp(part, FRAGI_START_OP) == 0);
}

/*
 * "fragment.operator.port" (fragment NULL) or "operator.port"; the port may be left out.
 * - other: of the other end of the flow: whoever writes both in the same wrong form has made one
 *   mistake, which is reported once
 */
static enum end_fault read_end(struct fragi_builder *builder, const struct fragi_node *place,
			       const char *text, const char *fragment, enum end_fault other,
			       struct fragi_spec_end *end)
{
	char *parts[3], *rest = fragi_builder_strdup(builder, text), *dot;
	size_t count = 0, most = fragment == NULL ? 3 : 2;

	end->place = place;
	if (rest == NULL)
		return END_FITS;
	do {
		dot = strchr(rest, '.');
		if (dot != NULL)
			*dot = '\0';
		parts[count++] = rest;
		rest = dot != NULL ? dot + 1 : NULL;
	} while (rest != NULL && count < most);
	for (size_t i = 0; i < count; i++)
		if (!is_valid_part(parts[i], i, most))
			count = 0;
	if (rest != NULL || count < most - 1) {
		if (other != END_FORM)
			fragi_builder_error(
				builder, place, fragment,
				"\"%.200s\" is not a valid end of a flow; write %s", text,
				fragment != NULL ? "OPERATOR.PORT or OPERATOR"
						 : "FRAGMENT.OPERATOR.PORT or FRAGMENT.OPERATOR");
		return END_FORM;
	}
	if (fragment == NULL)
		end->fragment = parts[0];
	end->op = parts[most - 2];
	end->port = count == most ? parts[most - 1] : NULL;
	return check_end(builder, fragment != NULL ? fragment : end->fragment, text, other, end);
}

static void read_arrow(struct fragi_builder *builder, const struct fragi_node *node,
		       const char *fragment, struct fragi_spec_flow *flow)
{
	const char *arrow = strstr(node->text, "->");
	enum end_fault fault;
	char *from, *to;

	if (arrow == NULL || strstr(arrow + 2, "->") != NULL) {
		fragi_builder_error(
			builder, node, fragment,
			"\"%.200s\" is not a valid flow; write `A.OUT -> B.IN`, or {from: A.OUT, to: [B.IN, C.IN]}",
			node->text);
		return;
	}
	from = fragi_builder_trimmed(builder, node->text, (size_t)(arrow - node->text));
	to = fragi_builder_trimmed(builder, arrow + 2, strlen(arrow + 2));
	flow->to = fragi_builder_alloc(builder, 1, sizeof(*flow->to));
	if (from == NULL || to == NULL || flow->to == NULL)
		return;
	fault = read_end(builder, node, from, fragment, END_FITS, &flow->from);
	read_end(builder, node, to, fragment, fault, &flow->to[flow->to_count++]);
}

static void read_to(struct fragi_builder *builder, struct fragi_node *node, const char *fragment,
		    struct fragi_spec_flow *flow)
{
	const char *text;

	if (node->kind != FRAGI_NODE_LIST) {
		text = fragi_read_text(builder, node, fragment, "to");
		flow->to = fragi_builder_alloc(builder, 1, sizeof(*flow->to));
		if (text != NULL && flow->to != NULL)
			read_end(builder, node, text, fragment, END_FITS,
				 &flow->to[flow->to_count++]);
		return;
	}
	if (node->count == 0)
		fragi_builder_error(builder, node, fragment,
				    "to is empty; name the inputs of the flow");
	flow->to = fragi_builder_alloc(builder, node->count, sizeof(*flow->to));
	for (struct fragi_node *child = node->first; flow->to != NULL && child != NULL;
	     child = child->next) {
		text = fragi_read_text(builder, child, fragment, "an end in to");
		if (text != NULL)
			read_end(builder, child, text, fragment, END_FITS,
				 &flow->to[flow->to_count++]);
	}
}

static void read_edge(struct fragi_builder *builder, struct fragi_node *node, const char *fragment,
		      void *out)
{
	const char *words[EDGE_WORDS_MAX] = {"auto", "inproc"}, *name;
	size_t count = 2;
	int i;

	for (size_t k = 0; (name = fragi_transport_name(k)) != NULL && count < EDGE_WORDS_MAX; k++)
		words[count++] = name;
	i = fragi_read_word(builder, node, fragment, "edge", words, count);
	if (i >= 2 && fragment != NULL) {
		fragi_builder_error(
			builder, node, fragment,
			"edge %s inside a fragment: both ends are in one process; leave edge out",
			words[i]);
		return;
	}
	if (i >= 0)
		*(const char **)out = words[i];
}

#define MEMBER(m) FRAGI_MEMBER(struct fragi_spec_flow, m)
static const struct fragi_key keys[] = {
	{"from"},
	{"to"},
	{"capacity", FRAGI_KEY_INTEGER, MEMBER(capacity), .min = 1, .max = FRAGI_CAPACITY_MAX},
	{"policy", MEMBER(policy), .read = fragi_spec_read_policy},
	{"edge", MEMBER(edge), .read = read_edge},
	{"when"},
	{"encrypt", FRAGI_KEY_BOOL, MEMBER(encrypt)},
	{"dynamic", FRAGI_KEY_BOOL, MEMBER(is_dynamic)},
};

static void read_flow_map(struct fragi_builder *builder, struct fragi_node *node,
			  const char *fragment, struct fragi_spec_flow *flow)
{
	struct fragi_node *from, *to;
	const char *text;

	if (node->first != NULL && strstr(node->first->key->text, "->") != NULL) {
		fragi_builder_error(
			builder, node, fragment,
			"a flow with an arrow takes no keys; write {from: A.OUT, to: B.IN, capacity: 4}");
		return;
	}
	fragi_keys_check(builder, node, fragment, FRAGI_KEYS(keys));
	from = fragi_node_get(node, "from");
	to = fragi_node_get(node, "to");
	if (from == NULL || to == NULL)
		fragi_builder_error(builder, node, fragment, "a flow without `%s`; add it",
				    from == NULL ? "from" : "to");
	text = fragi_read_text(builder, from, fragment, "from");
	if (text != NULL)
		read_end(builder, from, text, fragment, END_FITS, &flow->from);
	if (to != NULL)
		read_to(builder, to, fragment, flow);
	fragi_keys_read(builder, node, fragment, FRAGI_KEYS(keys), flow);
	if (fragi_policy(flow->policy)->capacity != 0 && flow->capacity != 0)
		fragi_builder_error(
			builder, fragi_node_get(node, "capacity")->key, fragment,
			"policy %s keeps the newest message only and has no capacity; leave capacity out",
			fragi_policy(flow->policy)->name);
}

static void check_apart(struct fragi_builder *builder, const struct fragi_spec_flow *flow)
{
	for (size_t i = 0; i < flow->to_count; i++)
		if (flow->from.fragment != NULL && flow->to[i].fragment != NULL &&
		    strcmp(flow->from.fragment, flow->to[i].fragment) == 0)
			fragi_builder_error(
				builder, flow->to[i].place, NULL,
				"both ends of this flow are in fragment %s; write it into the flows of that fragment",
				flow->from.fragment);
}

void fragi_spec_read_flows(struct fragi_builder *builder, struct fragi_node *list,
			   const char *fragment, struct fragi_spec_flow **out_flows,
			   size_t *out_count)
{
	struct fragi_spec_flow *flows;
	uint32_t order = 0;
	size_t count = 0;

	if (list == NULL || (list->kind == FRAGI_NODE_NULL && !list->is_reported))
		return;
	list = fragi_read_list(builder, list, fragment, "flows");
	if (list == NULL) {
		/* A flow without ends stands for those that cannot be read. */
		*out_flows = fragi_builder_alloc(builder, 1, sizeof(*flows));
		*out_count = *out_flows != NULL ? 1 : 0;
		return;
	}
	flows = fragi_builder_alloc(builder, list->count, sizeof(*flows));
	for (struct fragi_node *child = list->first; flows != NULL && child != NULL;
	     child = child->next) {
		struct fragi_spec_flow *flow = &flows[count++];

		flow->place = child;
		flow->order = order;
		if (child->is_reported)
			continue;
		if (child->kind == FRAGI_NODE_SCALAR)
			read_arrow(builder, child, fragment, flow);
		else if (child->kind == FRAGI_NODE_MAP)
			read_flow_map(builder, child, fragment, flow);
		else
			fragi_builder_error(
				builder, child, fragment,
				"a flow is neither `A.OUT -> B.IN` nor {from: A.OUT, to: B.IN}");
		if (fragment == NULL)
			check_apart(builder, flow);
		order += (uint32_t)flow->to_count;
	}
	*out_flows = flows;
	*out_count = count;
}
