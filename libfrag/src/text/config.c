// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOG_TOPIC "config"
#include <base/log.h>
#include <base/names.h>
#include <text/builder.h>

#define INDEX_FROM 8 /* maps with more keys are merged by hash */

/*
 * Replaces the content of into by that of node; into keeps its key and its place among its
 * siblings.
 */
static void take_meaning(struct fragi_node *into, const struct fragi_node *node)
{
	struct fragi_node *next = into->next;
	const struct fragi_node *key = into->key;

	*into = *node;
	into->next = next;
	into->key = key;
}

static void merge(struct fragi_builder *builder, struct fragi_node *base, struct fragi_node *over)
{
	struct fragi_strmap index = {0};
	struct fragi_node *next, *known;

	if (base->count > INDEX_FROM)
		for (struct fragi_node *child = base->first; child != NULL; child = child->next)
			fragi_builder_note(builder, &index, child->key->text, child);
	for (struct fragi_node *child = over->first; child != NULL; child = next) {
		next = child->next;
		child->next = NULL;
		known = index.count > 0 ? fragi_strmap_get(&index, child->key->text)
					: fragi_node_get(base, child->key->text);
		if (known != NULL && known->kind == FRAGI_NODE_MAP &&
		    child->kind == FRAGI_NODE_MAP) {
			merge(builder, known, child);
		} else if (known != NULL) {
			log_debug(NULL, "config: %s of %s:%d takes the place of that of %s:%d",
				  child->key->text, child->file, child->line, known->file,
				  known->line);
			take_meaning(known, child);
			known->key = child->key;
		} else {
			if (base->last != NULL)
				base->last->next = child;
			else
				base->first = child;
			base->last = child;
			base->count++;
			if (index.count > 0)
				fragi_builder_note(builder, &index, child->key->text, child);
		}
	}
	fragi_strmap_fini(&index);
}

static struct fragi_node *parse_config(struct fragi_builder *builder,
				       const struct fragi_spec_text *text)
{
	struct fragi_node *root;
	int r = fragi_yaml_parse(&builder->spec->arena, text->file, text->text, text->length,
				 builder->diag, &root);

	if (r == -ENOMEM)
		builder->no_memory = true;
	builder->config_refused = builder->config_refused || r < 0;
	if (r < 0 || root->kind == FRAGI_NODE_NULL)
		return NULL;
	if (root->kind == FRAGI_NODE_MAP)
		return root;
	builder->config_refused = true;
	fragi_builder_error(
		builder, root, NULL,
		"a file of --config is a map, with the keys that stand below config: in the graph; write for example `detection: {threshold: 0.5}`");
	return NULL;
}

static void keep_keys(struct fragi_builder *builder, const struct fragi_node *root,
		      struct fragi_config_keys *keys)
{
	keys->keys = fragi_builder_alloc(builder, root->count, sizeof(const struct fragi_node *));
	for (const struct fragi_node *child = root->first; keys->keys != NULL && child != NULL;
	     child = child->next)
		keys->keys[keys->count++] = child->key;
}

void fragi_config_merge(struct fragi_builder *builder, struct fragi_node *own)
{
	const struct fragi_spec_source *source = builder->source;
	struct fragi_node *root;

	builder->config = fragi_read_map(builder, own, NULL, "config");
	builder->config_refused = builder->config == NULL && own != NULL &&
				  (own->kind != FRAGI_NODE_NULL || own->is_reported);
	builder->config_keys =
		fragi_builder_alloc(builder, source->config_count, sizeof(*builder->config_keys));
	for (size_t i = 0; i < source->config_count && builder->config_keys != NULL; i++) {
		root = parse_config(builder, &source->configs[i]);
		if (root == NULL)
			continue;
		keep_keys(builder, root, &builder->config_keys[i]);
		if (builder->config == NULL)
			builder->config = root;
		else
			merge(builder, builder->config, root);
	}
	fragi_replace(builder, builder->config);
}

static void each_file(struct fragi_builder *builder, struct fragi_node *node,
		      void (*found)(void *context, struct fragi_node *map,
				    const struct fragi_node *path),
		      void *context)
{
	struct fragi_node *only = node->first;

	if (node->kind == FRAGI_NODE_MAP && node->count == 1 &&
	    strcmp(only->key->text, "from_file") == 0) {
		if (fragi_read_text(builder, only, "config", "from_file") != NULL)
			found(context, node, only);
		return;
	}
	for (struct fragi_node *child = node->first; child != NULL; child = child->next)
		each_file(builder, child, found, context);
}

void fragi_config_each_file(struct fragi_builder *builder, struct fragi_node *config,
			    void (*found)(void *context, struct fragi_node *map,
					  const struct fragi_node *path),
			    void *context)
{
	if (config != NULL)
		each_file(builder, config, found, context);
}

struct files {
	struct fragi_builder *builder;
	struct fragi_strmap roots; /* path: struct fragi_node */
};

struct fragi_node *fragi_builder_parse_file(struct fragi_builder *builder,
					    const struct fragi_node *path, const char *subject)
{
	const struct fragi_spec_source *source = builder->source;
	struct fragi_node *root = NULL;
	size_t i;
	int r;

	for (i = 0; i < source->file_count && strcmp(source->files[i].file, path->text) != 0; i++)
		;
	if (i == source->file_count) {
		fragi_builder_error(
			builder, path, subject,
			"the text of from_file \"%.200s\" does not come with the graph; start the application where the file is",
			path->text);
		return NULL;
	}
	r = fragi_yaml_parse(&builder->spec->arena, source->files[i].file, source->files[i].text,
			     source->files[i].length, builder->diag, &root);
	if (r == -ENOMEM)
		builder->no_memory = true;
	return root;
}

/* Each file is parsed once. Its tree is never written to again, so all references share it. */
static void attach(void *context, struct fragi_node *map, const struct fragi_node *path)
{
	static struct fragi_node failed = {.kind = FRAGI_NODE_NULL};
	struct files *files = context;
	struct fragi_node *root = fragi_strmap_get(&files->roots, path->text);

	if (root == NULL) {
		root = fragi_builder_parse_file(files->builder, path, "config");
		fragi_builder_note(files->builder, &files->roots, path->text,
				   root != NULL ? root : &failed);
	}
	if (root != NULL && root != &failed)
		take_meaning(map, root);
}

void fragi_config_attach(struct fragi_builder *builder, struct fragi_node *config)
{
	struct files files = {.builder = builder};

	fragi_config_each_file(builder, config, attach, &files);
	fragi_strmap_fini(&files.roots);
}

void fragi_config_attach_files(struct fragi_builder *builder)
{
	fragi_config_attach(builder, builder->config);
	if (builder->config == NULL)
		return;
	for (struct fragi_node *child = builder->config->first; child != NULL; child = child->next)
		fragi_builder_note(builder, &builder->configs, child->key->text, child);
	builder->spec->config = builder->config;
}

const struct fragi_node *fragi_config_find(struct fragi_builder *builder,
					   const struct fragi_node *path, const char *subject,
					   bool may_be_missing)
{
	const struct fragi_node *own = path->origin != NULL ? path->origin->config : NULL;
	const char *text = path->text, *rest = strchr(text, '.');
	const struct fragi_node *node, *below;
	bool is_refused;
	char first[256], advice[512];
	size_t length = rest != NULL ? (size_t)(rest - text) : strlen(text);

	snprintf(first, sizeof(first), "%.*s",
		 (int)(length < sizeof(first) ? length : sizeof(first) - 1), text);
	node = fragi_node_get(own, first);
	if (node == NULL && length < sizeof(first)) {
		node = fragi_strmap_get(&builder->configs, first);
		if (node != NULL)
			fragi_builder_note(builder, &builder->configs_read, node->key->text, node);
	}
	is_refused = builder->config_refused || (own != NULL && own->kind != FRAGI_NODE_MAP);
	if (node == NULL && (may_be_missing || is_refused))
		return NULL;
	if (node == NULL) {
		below = fragi_node_get(fragi_node_get(builder->config, "config"), first);
		if (below != NULL)
			snprintf(advice, sizeof(advice),
				 "; %.200s:%d has it below a key config, which is left out there",
				 below->file, below->line);
		else
			fragi_builder_advise_keys(builder, advice, sizeof(advice), first,
						  "its keys", own != NULL ? own : builder->config);
		fragi_builder_error(builder, path, subject,
				    "from_config: config has no \"%.80s\"%s", first, advice);
		return NULL;
	}
	if (rest == NULL)
		return node;
	node = fragi_node_at(node, rest + 1);
	if (node == NULL && !may_be_missing)
		fragi_builder_error(builder, path, subject, "from_config: config has no \"%.200s\"",
				    text);
	return node;
}

static bool is_read(const struct fragi_builder *builder, const struct fragi_node *key)
{
	return fragi_strmap_get(&builder->configs_read, key->text) != NULL;
}

/*
 * A key that nothing reads may be misspelt, or be for another graph. Composers may read any key, so
 * with them nothing is known.
 */
static void remark_file(struct fragi_builder *builder, const struct fragi_config_keys *file)
{
	char names[400] = "";
	const struct fragi_node *first = NULL;
	struct fragi_names list = {.text = names, .size = sizeof(names)};

	for (size_t i = 0; i < file->count; i++) {
		if (is_read(builder, file->keys[i]))
			continue;
		fragi_names_add(&list, "%.80s", file->keys[i]->text);
		first = first != NULL ? first : file->keys[i];
	}
	if (first == NULL)
		return;
	if (file->count == 1 && strcmp(first->text, "config") == 0)
		fragi_builder_warn(
			builder, first, NULL,
			"the only key of this file is config, and no from_config reads it; a file of --config holds the keys below config: themselves, so leave config: out");
	else
		fragi_builder_remark(builder, first, NULL, "no from_config reads: %s", names);
}

void fragi_config_remark(struct fragi_builder *builder)
{
	if (builder->config_keys == NULL || builder->composed.count > 0)
		return;
	for (size_t i = 0; i < builder->source->config_count; i++)
		remark_file(builder, &builder->config_keys[i]);
}
