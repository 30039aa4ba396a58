// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <frag/config.h>
#include <graph/subgraph.h>
#include <type/tree.h>

#define FROM_CONFIG "from_config"

/* The configuration as arguments. */

/* Settings that are being collected. */
struct collection {
	struct frag_fragment *fragment;
	const char *subject;
	struct fragi_spec_setting *items;
	uint32_t count, capacity;
	int result;
};

static void put(struct collection *c, const char *name, const struct fragi_node *value,
		const struct fragi_node *place)
{
	struct fragi_spec_setting *items =
		fragi_making_room(c->fragment, c->items, c->count, &c->capacity, sizeof(*items));

	if (items == NULL) {
		c->result = -ENOMEM;
		return;
	}
	c->items = items;
	items[c->count++] = (struct fragi_spec_setting){name, value, place};
}

/* The configuration of the subgraph that is being composed; NULL: none. */
static const struct fragi_node *own_config(const struct frag_fragment *fragment)
{
	const struct frag_subgraph *subgraph =
		fragment->making != NULL ? fragment->making->subgraph : NULL;

	return subgraph != NULL ? subgraph->config : NULL;
}

static const struct fragi_node *config_of(const struct frag_fragment *fragment)
{
	const struct fragi_node *own = own_config(fragment);

	if (own != NULL)
		return own;
	return fragment->spec != NULL ? fragment->spec->config : NULL;
}

/* The value at a path, in that of the subgraph if it has the first key; NULL: there is none. */
static const struct fragi_node *value_at(const struct frag_fragment *fragment, const char *path)
{
	const struct fragi_node *own = own_config(fragment);
	size_t length = path != NULL ? strcspn(path, ".") : 0;

	if (path == NULL)
		return NULL;
	for (const struct fragi_node *child = own != NULL ? own->first : NULL; child != NULL;
	     child = child->next)
		if (strncmp(child->key->text, path, length) == 0 &&
		    child->key->text[length] == '\0')
			return fragi_node_at(own, path);
	if (fragment->spec == NULL || fragment->spec->config == NULL)
		return NULL;
	return fragi_node_at(fragment->spec->config, path);
}

/* The value at a path; NULL: there is none, which is reported. */
static const struct fragi_node *find(struct collection *c, const char *path)
{
	const struct fragi_node *config = config_of(c->fragment);
	const struct fragi_node *node = value_at(c->fragment, path);
	const char *names[64];
	size_t count = 0;
	char advice[400];

	if (node != NULL)
		return node;
	for (const struct fragi_node *child = config != NULL ? config->first : NULL;
	     child != NULL && count < FRAG_COUNT_OF(names); child = child->next)
		names[count++] = child->key->text;
	c->result = fragi_making_fail(
		c->fragment, -EINVAL, NULL, c->subject, FROM_CONFIG ": config has no \"%.200s\"%s",
		path, fragi_advise(advice, sizeof(advice), path, "its keys", names, count));
	return NULL;
}

/* Of a map its children, else the value itself, under the last part of the path. */
static void put_config(struct collection *c, const char *path)
{
	const struct fragi_node *node = find(c, path);

	if (node == NULL)
		return;
	if (node->kind != FRAGI_NODE_MAP) {
		put(c, node->key->text, node, node->key);
		return;
	}
	for (const struct fragi_node *child = node->first; child != NULL; child = child->next)
		put(c, child->key->text, child, child->key);
}

/* A text that stands for more than itself. Returns NULL after an error. */
static const struct fragi_node *parse(struct collection *c, const char *name, const char *text)
{
	struct fragi_node *root = NULL;
	struct fragi_diag ignored = {0};
	int r = fragi_yaml_parse(&c->fragment->arena, "arguments", text, strlen(text), &ignored,
				 &root);

	fragi_diag_fini(&ignored);
	if (r == 0 && root != NULL)
		return root;
	c->result = fragi_making_fail(c->fragment, r == -ENOMEM ? r : -EINVAL, NULL, c->subject,
				      "%.80s: \"%.200s\" is not valid YAML", name, text);
	return NULL;
}

/* from_config: one path, or a list of them */
static void put_configs(struct collection *c, const char *text)
{
	const struct fragi_node *root;

	if (text == NULL || text[0] != '[') {
		put_config(c, text != NULL ? text : "");
		return;
	}
	root = parse(c, FROM_CONFIG, text);
	for (const struct fragi_node *child = root != NULL ? root->first : NULL; child != NULL;
	     child = child->next)
		put_config(c, child->kind == FRAGI_NODE_SCALAR ? child->text : "");
}

/* {from_config: a.b}: the value there. Returns whether the text is one, and puts it then. */
static bool put_value(struct collection *c, const char *name, const char *text)
{
	const struct fragi_node *root, *path;

	if (text == NULL || text[0] != '{' || strstr(text, FROM_CONFIG) == NULL)
		return false;
	root = parse(c, name, text);
	path = fragi_node_get(root, FROM_CONFIG);
	if (root == NULL)
		return true;
	if (path == NULL || root->count != 1 || path->kind != FRAGI_NODE_SCALAR)
		return false;
	root = find(c, path->text);
	if (root != NULL)
		put(c, name, root, root->key);
	return true;
}

static bool is_from_config(const struct frag_arg *args)
{
	for (; args != NULL && args->name != NULL; args++)
		if (strcmp(args->name, FROM_CONFIG) == 0 ||
		    (args->text != NULL && strstr(args->text, FROM_CONFIG) != NULL))
			return true;
	return false;
}

int fragi_making_settings(struct frag_fragment *fragment, const char *subject,
			  const struct frag_arg *args, struct fragi_spec_setting **out_settings,
			  size_t *out_count)
{
	struct collection c = {.fragment = fragment, .subject = subject};
	struct fragi_spec_setting *own;
	size_t count;
	int r = fragi_settings_from_args(&fragment->arena, args, &own, &count);

	if (r == 0 && is_from_config(args)) {
		for (size_t i = 0; i < count; i++)
			if (strcmp(args[i].name, FROM_CONFIG) == 0)
				put_configs(&c, args[i].text);
			else if (!put_value(&c, own[i].name, args[i].text))
				put(&c, own[i].name, own[i].value, NULL);
		own = c.items;
		count = c.count;
		r = c.result;
	}
	if (r == 0)
		r = fragi_subgraph_qualify_args(fragment, own, count);
	if (r == -ENOMEM)
		return fragi_making_fail(fragment, r, NULL, subject,
					 "out of memory for its arguments");
	*out_settings = own;
	*out_count = count;
	return r;
}

/* Value by value. */

/* Reports -EINVAL. */
static int read_value(struct frag_fragment *fragment, const char *path, enum frag_param_kind kind,
		      void *out)
{
	const struct fragi_node *node = value_at(fragment, path);
	const struct frag_param param = {.name = path, .kind = kind};
	const struct fragi_param_table table = {&param, 1, sizeof(param)};
	const struct fragi_spec_setting setting = {path, node, node};
	struct fragi_diag unseen = {0}; /* of a fragment that is complete */
	const struct fragi_param_context context = {.arena = &fragment->arena,
						    .diag = fragment->diag != NULL ? fragment->diag
										   : &unseen,
						    .subject = fragment->name,
						    .what = "config"};
	union {
		int64_t i64;
		double f64;
		void *pointer;
		struct frag_string_map map;
	} value = {0};
	int r;

	if (node == NULL || node->kind == FRAGI_NODE_NULL)
		return -ENOENT;
	r = fragi_params_set(&table, &setting, &value, &context);
	fragi_diag_fini(&unseen);
	fragi_making_note(fragment, r);
	if (r == 0)
		memcpy(out, &value, fragi_param_kind(kind)->size);
	return r;
}

int frag_config_bool(struct frag_fragment *fragment, const char *path, bool *out)
{
	return read_value(fragment, path, FRAG_PARAM_KIND_BOOL, out);
}

int frag_config_i64(struct frag_fragment *fragment, const char *path, int64_t min, int64_t max,
		    int64_t *out)
{
	int64_t value;
	int r = read_value(fragment, path, FRAG_PARAM_KIND_I64, &value);

	if (r < 0)
		return r;
	if (value < min || value > max)
		return fragi_making_fail(
			fragment, -EINVAL, value_at(fragment, path), NULL,
			"config \"%s\": %lld is out of range; it must be from %lld to %lld", path,
			(long long)value, (long long)min, (long long)max);
	*out = value;
	return 0;
}

int frag_config_f64(struct frag_fragment *fragment, const char *path, double *out)
{
	return read_value(fragment, path, FRAG_PARAM_KIND_F64, out);
}

int frag_config_string(struct frag_fragment *fragment, const char *path, const char **out)
{
	return read_value(fragment, path, FRAG_PARAM_KIND_STRING, out);
}

int frag_config_size(struct frag_fragment *fragment, const char *path, uint64_t *out)
{
	return read_value(fragment, path, FRAG_PARAM_KIND_SIZE, out);
}

int frag_config_duration(struct frag_fragment *fragment, const char *path, int64_t *out)
{
	return read_value(fragment, path, FRAG_PARAM_KIND_DURATION, out);
}

int frag_config_i64_list(struct frag_fragment *fragment, const char *path,
			 struct frag_i64_list *out)
{
	return read_value(fragment, path, FRAG_PARAM_KIND_I64_LIST, out);
}

int frag_config_f64_list(struct frag_fragment *fragment, const char *path,
			 struct frag_f64_list *out)
{
	return read_value(fragment, path, FRAG_PARAM_KIND_F64_LIST, out);
}

int frag_config_string_list(struct frag_fragment *fragment, const char *path,
			    struct frag_string_list *out)
{
	return read_value(fragment, path, FRAG_PARAM_KIND_STRING_LIST, out);
}

int frag_config_string_map(struct frag_fragment *fragment, const char *path,
			   struct frag_string_map *out)
{
	return read_value(fragment, path, FRAG_PARAM_KIND_STRING_MAP, out);
}

int frag_config_tree(struct frag_fragment *fragment, const char *path, const struct frag_tree **out)
{
	const struct fragi_node *config =
		path != NULL ? value_at(fragment, path) : config_of(fragment);
	struct frag_tree *tree;

	if (config == NULL || config->kind == FRAGI_NODE_NULL)
		return -ENOENT;
	tree = fragi_tree_create(&fragment->arena, config);
	if (tree == NULL)
		return fragi_making_fail(fragment, -ENOMEM, NULL, NULL,
					 "out of memory for the configuration");
	*out = tree;
	return 0;
}

static size_t count_keys(const struct fragi_node *map)
{
	size_t count = 0;

	for (const struct fragi_node *child = map->kind == FRAGI_NODE_MAP ? map->first : NULL;
	     child != NULL; child = child->next)
		count += 1 + count_keys(child);
	return count;
}

static bool list_keys(struct fragi_arena *arena, const struct fragi_node *map, const char *path,
		      const char **keys, size_t *count)
{
	for (const struct fragi_node *child = map->kind == FRAGI_NODE_MAP ? map->first : NULL;
	     child != NULL; child = child->next) {
		const char *key =
			path != NULL ? fragi_arena_printf(arena, "%s.%s", path, child->key->text)
				     : child->key->text;

		if (key == NULL)
			return false;
		keys[(*count)++] = key;
		if (!list_keys(arena, child, key, keys, count))
			return false;
	}
	return true;
}

struct frag_string_list frag_config_keys(struct frag_fragment *fragment)
{
	const struct fragi_node *config = config_of(fragment);
	struct frag_string_list list = {0};
	const char **keys;

	if (config == NULL || config->kind != FRAGI_NODE_MAP || config->count == 0)
		return list;
	keys = fragi_arena_alloc(&fragment->arena, count_keys(config) * sizeof(*keys));
	if (keys == NULL || !list_keys(&fragment->arena, config, NULL, keys, &list.count)) {
		fragi_making_fail(fragment, -ENOMEM, NULL, NULL,
				  "out of memory for the keys of the configuration");
		return (struct frag_string_list){0};
	}
	list.items = keys;
	return list;
}
