// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#define LOG_TOPIC "graph"
#include <base/log.h>
#include <text/builder.h>
#include <text/subgraph.h>

#define SCHEMA_VERSION 1

/*
 * The keys at the top of a graph with `fragments`, then those of a graph of one fragment. Help
 * lists them in this order.
 */
static const struct fragi_key application_keys[] = {
	{"frag"},      {"application"}, {"arguments"}, {"config"},          {"extensions"},
	{"fragments"}, {"flows"},       {"metadata"},  {"metadata_policy"}, {"variables"},
	{"subgraphs"}, {"clock"},       {"services"},  {"data_loggers"},    {"tracking"},
	{"deadlines"},
};
static const struct fragi_key single_keys[] = {
	{"frag"},       {"application"}, {"arguments"},    {"config"},          {"extensions"},
	{"fragments"},  {"flows"},       {"metadata"},     {"metadata_policy"}, {"resources"},
	{"operators"},  {"compose"},     {"scheduler"},    {"requirements"},    {"host"},
	{"on_failure"}, {"watchdog"},    {"variables"},    {"thread_pools"},    {"subgraphs"},
	{"clock"},      {"services"},    {"data_loggers"}, {"tracking"},        {"deadlines"},
};

/* Of a graph of one fragment the fragment reads the policy. */
static const struct fragi_key metadata_keys[] = {
	{"metadata", FRAGI_KEY_BOOL, FRAGI_MEMBER(struct fragi_spec, metadata)},
	{"metadata_policy", FRAGI_KEY_WORD, FRAGI_MEMBER(struct fragi_spec, metadata_policy),
	 .min = FRAG_METADATA_UPDATE, .words = fragi_metadata_policies},
};

static void parse_graph(struct fragi_builder *builder)
{
	const struct fragi_spec_text *graph = &builder->source->graph;
	struct fragi_node *root = NULL;
	int r = fragi_yaml_parse(&builder->spec->arena, graph->file, graph->text, graph->length,
				 builder->diag, &root);

	if (r == -ENOMEM)
		builder->no_memory = true;
	if (root == NULL)
		return;
	if (root->kind == FRAGI_NODE_NULL)
		fragi_builder_error(
			builder, root, NULL,
			"the graph is empty; it begins with `frag: %d` and `application: NAME`",
			SCHEMA_VERSION);
	builder->root = fragi_read_map(builder, root, NULL, "the graph");
}

/*
 * With another schema version everything else would be reported wrongly, so this is the only error.
 */
static bool check_version(struct fragi_builder *builder)
{
	const struct fragi_node *node = fragi_node_get(builder->root, "frag");

	if (node == NULL || (node->kind == FRAGI_NODE_SCALAR && strcmp(node->text, "1") == 0))
		return true;
	fragi_builder_error(builder, node, NULL,
			    "schema version %.40s is not known; this program reads version %d",
			    node->kind == FRAGI_NODE_SCALAR ? node->text : "(no number)",
			    SCHEMA_VERSION);
	return false;
}

static size_t find_key(const struct fragi_key *keys, size_t count, const char *name)
{
	size_t i = 0;

	while (i < count && strcmp(keys[i].name, name) != 0)
		i++;
	return i;
}

static void check_top(struct fragi_builder *builder)
{
	struct fragi_node *map = builder->root;
	const struct fragi_node *fragments = fragi_node_get(map, "fragments");
	struct fragi_key keys[FRAG_COUNT_OF(single_keys)];
	size_t count = FRAG_COUNT_OF(application_keys), i;

	if (fragments == NULL || fragments->kind != FRAGI_NODE_MAP) {
		fragi_keys_check(builder, map, NULL, single_keys, FRAG_COUNT_OF(single_keys));
		return;
	}
	/* A section of a fragment is a known key in the wrong place. */
	memcpy(keys, application_keys, sizeof(application_keys));
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next) {
		i = find_key(single_keys, FRAG_COUNT_OF(single_keys), child->key->text);
		if (i == FRAG_COUNT_OF(single_keys) ||
		    find_key(keys, count, child->key->text) <
			    count) /* also when it is there twice */
			continue;
		fragi_builder_error(
			builder, child->key, NULL,
			"%s stands at the top, and there are fragments; move it into the fragment it is for",
			child->key->text);
		keys[count++] = single_keys[i];
	}
	fragi_keys_check(builder, map, NULL, keys, count);
}

static void take_application(struct fragi_builder *builder)
{
	struct fragi_node *node = fragi_node_get(builder->root, "application");

	if (node == NULL) {
		fragi_builder_error(builder, builder->root, NULL,
				    "the application has no name; add `application: NAME`");
		return;
	}
	fragi_replace(builder, node);
	builder->spec->application = fragi_read_name(builder, node, NULL, "application");
}

/* Replaces ${} everywhere except where it was done already, or must not be done. */
static void replace_rest(struct fragi_builder *builder)
{
	static const char *const done[] = {"frag", "application", "arguments", "config"};
	size_t i;

	for (struct fragi_node *child = builder->root->first; child != NULL; child = child->next) {
		for (i = 0; i < FRAG_COUNT_OF(done) && strcmp(done[i], child->key->text) != 0; i++)
			;
		if (i < FRAG_COUNT_OF(done))
			continue;
		if (strcmp(child->key->text, "subgraphs") == 0 && child->kind == FRAGI_NODE_MAP)
			for (struct fragi_node *graph = child->first; graph != NULL;
			     graph = graph->next)
				fragi_subgraph_replace(builder, graph);
		else
			fragi_replace(builder, child);
	}
}

void fragi_builder_begin(struct fragi_builder *builder)
{
	parse_graph(builder);
	if (builder->root == NULL)
		return;
	if (!check_version(builder)) {
		builder->root = NULL;
		return;
	}
	fragi_arguments_declare(builder, fragi_node_get(builder->root, "arguments"));
	fragi_arguments_give(builder);
	if (builder->spec->help_wanted)
		return;
	check_top(builder);
	if (fragi_node_get(builder->root, "frag") == NULL)
		fragi_builder_error(builder, builder->root, NULL,
				    "the schema version is missing; begin with `frag: %d`",
				    SCHEMA_VERSION);
	take_application(builder);
	fragi_when_prune(builder, builder->spec->application);
	fragi_config_merge(builder, fragi_node_get(builder->root, "config"));
}

static void read_fragments(struct fragi_builder *builder, struct fragi_node *map,
			   struct fragi_spec_extension *extensions, size_t extension_count)
{
	struct fragi_spec *spec = builder->spec;

	if (map->kind != FRAGI_NODE_MAP && map->kind != FRAGI_NODE_NULL)
		(void)fragi_read_map(builder, map, NULL, "fragments");
	else if (map->count == 0 && !map->is_reported)
		fragi_builder_error(
			builder, fragi_node_get(builder->root, "fragments")->key, NULL,
			"there are no fragments (or `when` excludes all of them); add one");
	if (map->kind != FRAGI_NODE_MAP || map->count == 0)
		return;
	spec->fragments = fragi_builder_alloc(builder, map->count, sizeof(*spec->fragments));
	for (struct fragi_node *child = map->first; spec->fragments != NULL && child != NULL;
	     child = child->next) {
		fragi_builder_note(builder, &builder->fragments, child->key->text, child);
		if (strcmp(child->key->text, "all") == 0)
			fragi_builder_error(
				builder, child->key, NULL,
				"no fragment can be called all, which stands for all of them in --fragments; rename it");
		if (fragi_check_name(builder, child->key, NULL, "fragment", child->key->text))
			fragi_spec_read_fragment(builder, child, child->key->text, extensions,
						 extension_count,
						 &spec->fragments[spec->fragment_count++]);
		else
			map->lost_a_name = true;
	}
}

static void read_all(struct fragi_builder *builder)
{
	struct fragi_spec *spec = builder->spec;
	struct fragi_node *fragments = fragi_node_get(builder->root, "fragments");
	struct fragi_spec_extension *extensions;
	size_t extension_count;

	replace_rest(builder);
	fragi_config_attach_files(builder);
	fragi_subgraphs_expand(builder);
	fragi_sets_read(builder);
	fragi_spec_read_extensions(builder, fragi_node_get(builder->root, "extensions"), NULL, NULL,
				   0, &extensions, &extension_count);
	spec->extensions = extensions;
	spec->extension_count = extension_count;
	fragi_spec_read_services(builder, fragi_node_get(builder->root, "services"));
	fragi_keys_read(builder, builder->root, NULL, metadata_keys,
			fragments != NULL ? FRAG_COUNT_OF(metadata_keys) : 1, spec);
	fragi_spec_read_tracking(builder, fragi_node_get(builder->root, "tracking"), NULL,
				 &spec->tracking);
	fragi_spec_read_clock(builder, fragi_node_get(builder->root, "clock"), NULL, &spec->clock);
	if (fragments != NULL) {
		fragi_spec_read_loggers(builder, fragi_node_get(builder->root, "data_loggers"),
					spec->application, NULL, &spec->loggers,
					&spec->logger_count);
		read_fragments(builder, fragments, extensions, extension_count);
		fragi_spec_read_flows(builder, fragi_node_get(builder->root, "flows"), NULL,
				      &spec->flows, &spec->flow_count);
	} else if (spec->application != NULL) {
		spec->fragments = fragi_builder_alloc(builder, 1, sizeof(*spec->fragments));
		if (spec->fragments == NULL)
			return;
		fragi_builder_note(builder, &builder->fragments, spec->application, builder->root);
		fragi_spec_read_fragment(builder, builder->root, spec->application, extensions,
					 extension_count, &spec->fragments[spec->fragment_count++]);
	}
	fragi_spec_read_deadlines(builder, fragi_node_get(builder->root, "deadlines"),
				  fragments != NULL ? NULL : spec->application, &spec->deadlines,
				  &spec->deadline_count);
	fragi_spec_read_variables(builder, fragi_node_get(builder->root, "variables"));
	spec->subgraphs = fragi_node_get(builder->root, "subgraphs");
	spec->has_extensions = extension_count > 0;
	for (size_t i = 0; i < spec->fragment_count; i++)
		spec->has_extensions |= spec->fragments[i].extension_count > 0;
	fragi_spec_check_hosts(builder);
	fragi_spec_swap_extensions(builder);
	fragi_spec_spread_sha256(builder);
	fragi_spec_merge_tracking(builder);
	fragi_spec_merge_clocks(builder);
	fragi_spec_apply_test(builder);
	fragi_sets_check(builder);
	fragi_config_remark(builder);
	fragi_spec_check_requirements(builder);
}

/* Whether an item was lost that there would have been a place for. */
static bool is_short_of_memory(const struct fragi_diag *remarks)
{
	return remarks->beyond > 0 && remarks->count < FRAGI_DIAG_MAX;
}

int fragi_spec_read(const struct fragi_spec_source *source, struct fragi_diag *diag,
		    bool keep_partial, struct fragi_spec **out_spec)
{
	struct fragi_builder builder;
	struct fragi_spec *spec = fragi_calloc(1, sizeof(*spec));
	int r = 0;

	if (spec == NULL)
		return fragi_diag_add(diag, -ENOMEM, source->graph.file, 0, 0, "out of memory");
	if (source->config_count > FRAGI_SPEC_TEXTS_MAX ||
	    source->file_count > FRAGI_SPEC_TEXTS_MAX) {
		fragi_free(spec);
		return fragi_diag_add(diag, -EINVAL, source->graph.file, 0, 0,
				      "more than %d configurations or files; merge some of them",
				      FRAGI_SPEC_TEXTS_MAX);
	}
	fragi_builder_init(&builder, source, spec, diag);
	spec->metadata = true;
	spec->app_folder = fragi_builder_strdup(&builder, source->app_folder);
	fragi_builder_begin(&builder);
	if (builder.root != NULL && !spec->help_wanted)
		read_all(&builder);
	if (builder.no_memory || is_short_of_memory(&spec->warnings) ||
	    is_short_of_memory(&spec->remarks))
		r = fragi_diag_add(diag, -ENOMEM, source->graph.file, 0, 0,
				   "out of memory, or the graph needs more than %zu MiB of it",
				   FRAGI_SPEC_MEMORY_MAX >> 20);
	else if (fragi_builder_failed(&builder))
		r = -EINVAL;
	fragi_diag_sort(diag, builder.errors_before);
	keep_partial =
		keep_partial && r == -EINVAL && builder.root != NULL && spec->application != NULL;
	fragi_builder_fini(&builder);
	if (keep_partial)
		fragi_spec_prune(spec);
	if (r < 0 && !keep_partial)
		fragi_spec_destroy(spec);
	else
		*out_spec = spec;
	return r;
}

void fragi_spec_log_remarks(const struct fragi_spec *spec)
{
	char line[sizeof(struct frag_err)];

	for (size_t i = 0; i < spec->warnings.count; i++)
		log_warn(NULL, "%s", fragi_err_line(&spec->warnings.items[i], line, sizeof(line)));
	if (spec->warnings.beyond > 0)
		log_warn(NULL, "and %zu more warnings", spec->warnings.beyond);
	for (size_t i = 0; i < spec->remarks.count; i++)
		log_info(NULL, "%s", fragi_err_line(&spec->remarks.items[i], line, sizeof(line)));
}
