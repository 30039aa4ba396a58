// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <text/builder.h>

/* `deadline` of an operator, and `deadlines`: of paths through a fragment or the application. */

static const char *const misses[] = {"count", "drop", "stop", NULL};
static const char *const froms[] = {"tick", "acquisition", NULL};

#define BUDGET(type)                                                                               \
	{                                                                                          \
		"budget", FRAGI_KEY_TIME, FRAGI_MEMBER(type, budget_ns),                           \
			.missing = "a deadline has no budget; add for example `budget: 20ms`",     \
			.zero = FRAGI_DEADLINE_NO_BUDGET                                           \
	}
static const struct fragi_key deadline_keys[] = {
	BUDGET(struct fragi_deadline),
	{"from", FRAGI_KEY_WORD, FRAGI_MEMBER(struct fragi_deadline, from_acquisition),
	 .words = froms},
	{"on_miss", FRAGI_KEY_WORD, FRAGI_MEMBER(struct fragi_deadline, on_miss), .words = misses},
};
static const struct fragi_key path_keys[] = {
	{"path"},
	BUDGET(struct fragi_spec_path),
	{"on_miss", FRAGI_KEY_WORD, FRAGI_MEMBER(struct fragi_spec_path, on_miss), .words = misses},
};

void fragi_spec_read_deadline(struct fragi_builder *builder, struct fragi_node *node,
			      const char *subject, void *out)
{
	struct fragi_deadline *out_deadline = out, deadline = {0};

	if (node == NULL || node->kind == FRAGI_NODE_NULL)
		return;
	if (node->kind == FRAGI_NODE_SCALAR) {
		struct fragi_key alone = deadline_keys[0];

		alone.name = "deadline"; /* as the user has written it */
		fragi_key_read(builder, node, subject, &alone, out_deadline);
		return;
	}
	if (!fragi_section_read(builder, node, subject, "deadline", FRAGI_KEYS(deadline_keys),
				&deadline))
		return;
	if (deadline.on_miss == FRAG_ON_MISS_DROP && !deadline.from_acquisition)
		fragi_builder_error(builder, fragi_node_get(node, "on_miss"), subject,
				    FRAGI_DEADLINE_DROPS_TICK);
	*out_deadline = deadline;
}

int fragi_spec_find_op(struct fragi_builder *builder, const struct fragi_node *node,
		       const char *subject, const char *fragment, struct fragi_spec_end *out)
{
	const char *text = fragi_read_text(builder, node, subject, "an operator");
	const char *dot = text != NULL ? strchr(text, '.') : NULL;
	const struct fragi_node *known;
	char *path, *name, advice[512];

	if (text == NULL)
		return -1;
	if ((dot == NULL) != (fragment != NULL)) {
		fragi_builder_error(builder, node, subject,
				    "\"%.80s\" is not an operator; write %s", text,
				    fragment != NULL ? "its name" : "fragment.operator");
		return -1;
	}
	name = fragi_builder_strdup(builder, text);
	if (name == NULL)
		return -1;
	*out = (struct fragi_spec_end){.fragment = fragment, .op = name, .place = node};
	if (dot != NULL) {
		name[dot - text] = '\0';
		out->fragment = name;
		out->op = name + (dot - text) + 1;
	}
	path = fragi_builder_join(builder, out->fragment, out->op);
	if (path == NULL)
		return -1;
	if (fragi_strmap_get(&builder->excluded, path) != NULL ||
	    fragi_strmap_get(&builder->excluded, out->fragment) != NULL)
		return 0;
	if (fragi_strmap_get(&builder->operators, path) != NULL ||
	    fragi_strmap_get(&builder->composed, out->fragment) != NULL)
		return 1;
	known = fragi_node_get(fragi_strmap_get(&builder->fragments, out->fragment), "operators");
	if (!fragi_spec_may_be_lost(builder, known, out->op))
		fragi_builder_error(builder, node, subject, "unknown operator \"%.160s\"%s", path,
				    fragi_builder_advise_keys(builder, advice, sizeof(advice),
							      out->op, "operators", known));
	return -1;
}

/* Returns whether the path is whole, and none of it is excluded. */
static bool read_path(struct fragi_builder *builder, struct fragi_node *node, const char *fragment,
		      struct fragi_spec_path *path)
{
	const char *subject = fragment != NULL ? fragment : NULL;
	struct fragi_node *list;
	bool is_whole = true;

	path->place = node;
	if (!fragi_section_read(builder, node, subject, "a deadline", FRAGI_KEYS(path_keys), path))
		return false;
	list = fragi_read_list(builder, fragi_node_get(node, "path"), subject, "path");
	if (list == NULL || list->count < 2 || list->count > FRAGI_SPEC_PATH_MAX) {
		fragi_builder_error(builder, list != NULL ? list : node, subject,
				    FRAGI_DEADLINE_PATH_LENGTH, FRAGI_SPEC_PATH_MAX);
		return false;
	}
	path->ops = fragi_builder_alloc(builder, list->count, sizeof(*path->ops));
	for (const struct fragi_node *child = list->first; path->ops != NULL && child != NULL;
	     child = child->next)
		is_whole &= fragi_spec_find_op(builder, child, subject, fragment,
					       &path->ops[path->op_count++]) == 1;
	return is_whole && path->ops != NULL;
}

void fragi_spec_read_deadlines(struct fragi_builder *builder, struct fragi_node *node,
			       const char *fragment, struct fragi_spec_path **out_paths,
			       size_t *out_count)
{
	struct fragi_node *list = fragi_read_list(builder, node, fragment, "deadlines");

	if (list == NULL)
		return;
	*out_paths = fragi_builder_alloc(builder, list->count, sizeof(**out_paths));
	for (struct fragi_node *child = list->first; *out_paths != NULL && child != NULL;
	     child = child->next)
		if (read_path(builder, child, fragment, &(*out_paths)[*out_count]))
			++*out_count;
		else
			(*out_paths)[*out_count] = (struct fragi_spec_path){0};
}
