// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdarg.h>
#include <string.h>

#define LOG_TOPIC "graph"
#include <base/log.h>
#include <base/sentence.h>
#include <base/units.h>
#include <type/params.h>
#include <type/tree.h>

#define BARE_DURATION_MIN_NS 1000 /* shorter ones without a unit are warned of */

/* The state of one fill. */
struct filling {
	const struct fragi_param_table *table;
	const struct fragi_param_context *context;
	char *state;
	bool *given; /* [table->count] */
	int failed;  /* 0, or the first error */
};

/* Adds an error about this subject at the place of node. */
static void complain(struct filling *filling, const struct fragi_node *node, const char *format,
		     ...) FRAG_PRINTF(3, 4);

static void complain(struct filling *filling, const struct fragi_node *node, const char *format,
		     ...)
{
	const struct fragi_param_context *context = filling->context;
	char text[800], *rest = text;
	va_list args;

	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	if (context->what != NULL && strncmp(text, "parameter ", 10) == 0)
		rest += 9;
	fragi_diag_add(context->diag, -EINVAL, node != NULL ? node->file : NULL,
		       node != NULL ? node->line : 0, node != NULL ? node->column : 0, "%s%s%s%s",
		       context->subject != NULL ? context->subject : "",
		       context->subject != NULL ? ": " : "", rest != text ? context->what : "",
		       rest);
	if (filling->failed == 0)
		filling->failed = -EINVAL;
}

/* Checks an allocation; NULL ends the fill with -ENOMEM. */
static void *kept(struct filling *filling, void *memory)
{
	if (memory == NULL && filling->failed != -ENOMEM) {
		fragi_diag_add(filling->context->diag, -ENOMEM, NULL, 0, 0,
			       "%s: out of memory for its parameters", filling->context->subject);
		filling->failed = -ENOMEM;
	}
	return memory;
}

static void complain_kind(struct filling *filling, const struct frag_param *param,
			  const struct fragi_node *node)
{
	static const char *const what[] = {[FRAGI_NODE_NULL] = "nothing",
					   [FRAGI_NODE_LIST] = "a list",
					   [FRAGI_NODE_MAP] = "a map"};

	const char *wanted = fragi_param_kind(param->kind)->is_no;

	if (node->kind == FRAGI_NODE_SCALAR)
		complain(filling, node, "parameter \"%s\": \"%.80s\" is not a valid %s",
			 param->name, node->text, wanted);
	else
		complain(filling, node, "parameter \"%s\": %s is not a valid %s", param->name,
			 what[node->kind], wanted);
	fragi_diag_compare(filling->context->diag, wanted,
			   node->kind == FRAGI_NODE_SCALAR ? node->text : what[node->kind]);
}

static void format_bound(const struct frag_param *param, double bound, char *out, size_t size)
{
	if (param->kind == FRAG_PARAM_KIND_DURATION && fabs(bound) < 9e18)
		fragi_format_duration((int64_t)bound, out, size);
	else if (fabs(bound) < 1e15 && (double)(int64_t)bound == bound)
		snprintf(out, size, "%.0f", bound);
	else
		snprintf(out, size, "%g", bound);
}

/* Returns whether value is in the parameter's range; reports an error otherwise. */
static bool in_range(struct filling *filling, const struct frag_param *param,
		     const struct fragi_node *node, double value)
{
	char min[40], max[40], range[100], unit[120] = "";

	if (!(param->min < param->max) || (value >= param->min && value <= param->max))
		return true;
	format_bound(param, param->min, min, sizeof(min));
	format_bound(param, param->max, max, sizeof(max));
	if (param->max >= 9.2e18)
		snprintf(range, sizeof(range), "at least %s", min);
	else if (param->min <= -9.2e18)
		snprintf(range, sizeof(range), "at most %s", max);
	else
		snprintf(range, sizeof(range), "from %s to %s", min, max);
	if (param->kind == FRAG_PARAM_KIND_DURATION && fragi_duration_lacks_unit(node->text))
		snprintf(unit, sizeof(unit), " (it means %.30s ns; write for example %.30ss)",
			 node->text, node->text);
	complain(filling, node, "parameter \"%s\": %.80s is out of range; it must be %s%s",
		 param->name, node->text, range, unit);
	fragi_diag_compare(filling->context->diag, range, node->text);
	return false;
}

/*
 * Holoscan's periods are numbers of nanoseconds, so a bare number is accepted; a very short one was
 * hardly meant in that unit.
 */
static void warn_of_bare_duration(const struct filling *filling, const struct frag_param *param,
				  const struct fragi_node *node)
{
	const struct fragi_param_context *context = filling->context;
	struct frag_err err = FRAG_ERR_INIT;
	char line[sizeof(err)];

	frag_err_set(
		&err, -EINVAL,
		"%s%sparameter \"%s\": %.40s has no unit and means nanoseconds; write %.40sns, or for example %.40sms",
		context->subject != NULL ? context->subject : "",
		context->subject != NULL ? ": " : "", param->name, node->text, node->text,
		node->text);
	snprintf(err.file, sizeof(err.file), "%s", node->file != NULL ? node->file : "");
	err.line = node->line;
	err.column = node->column;
	log_warn(NULL, "%s", fragi_err_line(&err, line, sizeof(line)));
}

static void fill_number(struct filling *filling, const struct frag_param *param,
			const struct fragi_node *node, void *field)
{
	int64_t i64 = 0;
	uint64_t u64 = 0;
	double f64 = 0;
	int r;

	switch (param->kind) {
	case FRAG_PARAM_KIND_I64:
		r = fragi_parse_i64(node->text, &i64);
		f64 = (double)i64;
		break;
	case FRAG_PARAM_KIND_SIZE:
		r = fragi_parse_size(node->text, &u64);
		f64 = (double)u64;
		break;
	case FRAG_PARAM_KIND_DURATION:
		r = fragi_parse_duration(node->text, &i64);
		f64 = (double)i64;
		break;
	default:
		r = fragi_parse_f64(node->text, &f64);
		break;
	}
	if (r == -ERANGE) {
		complain(filling, node, "parameter \"%s\": \"%.80s\" is too large for 64 bits",
			 param->name, node->text);
		return;
	}
	if (r == -EDOM) {
		complain(
			filling, node,
			"parameter \"%s\": \"%.80s\" is no frequency of a period; write one above 0 and up to 1000000000hz",
			param->name, node->text);
		return;
	}
	if (r < 0) {
		complain_kind(filling, param, node);
		return;
	}
	if (!in_range(filling, param, node, f64))
		return;
	if (param->kind == FRAG_PARAM_KIND_DURATION && i64 < BARE_DURATION_MIN_NS &&
	    fragi_duration_lacks_unit(node->text))
		warn_of_bare_duration(filling, param, node);
	if (param->kind == FRAG_PARAM_KIND_F64)
		*(double *)field = f64;
	else if (param->kind == FRAG_PARAM_KIND_SIZE)
		*(uint64_t *)field = u64;
	else
		*(int64_t *)field = i64;
}

static void fill_string(struct filling *filling, const struct frag_param *param,
			const struct fragi_node *node, const char **field)
{
	size_t count = 0;
	char advice[400];

	if (param->choices != NULL) {
		while (param->choices[count] != NULL &&
		       !fragi_same_choice(param->choices[count], node->text))
			count++;
		if (param->choices[count] == NULL) {
			complain(filling, node,
				 "parameter \"%s\": \"%.80s\" is not a valid choice%s", param->name,
				 node->text,
				 fragi_advise(advice, sizeof(advice), node->text, "choices",
					      param->choices, count));
			fragi_diag_compare(filling->context->diag, "one of its choices",
					   node->text);
			return;
		}
	}
	*field = kept(filling, fragi_arena_strdup(filling->context->arena,
						  param->choices != NULL ? param->choices[count]
									 : node->text));
}

static void fill_path(struct filling *filling, const char *text, const char **field)
{
	const struct fragi_param_context *context = filling->context;

	*field = kept(filling, fragi_arena_path(context->arena, context->app_folder, text));
}

static void fill_reference(struct filling *filling, const struct frag_param *param,
			   const struct fragi_node *node, void *field)
{
	const struct fragi_param_context *context = filling->context;
	bool is_resource = param->kind == FRAG_PARAM_KIND_RESOURCE;
	struct frag_resource *resource = NULL;
	struct frag_condition *condition = NULL;
	const char *name = node->text + 1, *names[64];
	size_t count = 0;
	char advice[400];

	if (node->text[0] != '$' || name[0] == '\0') {
		complain_kind(filling, param, node);
		return;
	}
	if (is_resource && context->resource != NULL)
		resource = context->resource(context->arg, name);
	if (!is_resource && context->condition != NULL)
		condition = context->condition(context->arg, name);
	if (resource != NULL) {
		*(struct frag_resource **)field = resource;
		return;
	}
	if (condition != NULL) {
		*(struct frag_condition **)field = condition;
		return;
	}
	while (context->name_at != NULL && count < FRAG_COUNT_OF(names) &&
	       (names[count] = context->name_at(context->arg, param->kind, count)) != NULL)
		count++;
	complain(filling, node, "parameter \"%s\": there is no %s \"%.80s\"%s", param->name,
		 fragi_param_kind(param->kind)->name, name,
		 fragi_advise(advice, sizeof(advice), name,
			      is_resource ? "resources" : "conditions", names, count));
}

/*
 * Returns the list or map that node is, or that its text holds (from C or --set); NULL: neither,
 * with an error.
 */
static const struct fragi_node *collection_of(struct filling *filling,
					      const struct frag_param *param,
					      const struct fragi_node *node,
					      enum fragi_node_kind kind)
{
	struct fragi_diag diag = {0};
	struct fragi_node *root = NULL;
	int r = -EINVAL;

	if (node->kind == kind)
		return node;
	if (node->kind == FRAGI_NODE_SCALAR &&
	    node->text[0] == (kind == FRAGI_NODE_LIST ? '[' : '{'))
		r = fragi_yaml_parse(filling->context->arena, node->file != NULL ? node->file : "",
				     node->text, strlen(node->text), &diag, &root);
	fragi_diag_fini(&diag);
	if (r == -ENOMEM)
		return kept(filling, NULL);
	if (r == 0 && root->kind == kind)
		return root;
	complain_kind(filling, param, node);
	return NULL;
}

static void fill_list(struct filling *filling, const struct frag_param *param,
		      const struct fragi_node *node, void *field)
{
	const struct fragi_node *list = collection_of(filling, param, node, FRAGI_NODE_LIST);
	struct frag_param item = *param;
	size_t width = param->kind == FRAG_PARAM_KIND_STRING_LIST ? sizeof(char *) : 8, i = 0;
	char *items;

	if (list == NULL)
		return;
	items = kept(filling,
		     fragi_arena_alloc(filling->context->arena, (list->count + 1) * width));
	if (items == NULL)
		return;
	item.min = item.max = 0;
	for (const struct fragi_node *child = list->first; child != NULL;
	     child = child->next, i++) {
		if (child->kind != FRAGI_NODE_SCALAR) {
			complain_kind(filling, param, child);
			continue;
		}
		if (param->kind == FRAG_PARAM_KIND_STRING_LIST) {
			fill_string(filling, &item, child,
				    (const char **)(void *)(items + i * width));
			continue;
		}
		item.kind = param->kind == FRAG_PARAM_KIND_I64_LIST ? FRAG_PARAM_KIND_I64
								    : FRAG_PARAM_KIND_F64;
		fill_number(filling, &item, child, items + i * width);
	}
	if (param->kind == FRAG_PARAM_KIND_I64_LIST)
		*(struct frag_i64_list *)field =
			(struct frag_i64_list){(const int64_t *)(const void *)items, list->count};
	else if (param->kind == FRAG_PARAM_KIND_F64_LIST)
		*(struct frag_f64_list *)field =
			(struct frag_f64_list){(const double *)(const void *)items, list->count};
	else
		*(struct frag_string_list *)field = (struct frag_string_list){
			(const char *const *)(const void *)items, list->count};
}

static void fill_map(struct filling *filling, const struct frag_param *param,
		     const struct fragi_node *node, struct frag_string_map *field)
{
	const struct fragi_node *map = collection_of(filling, param, node, FRAGI_NODE_MAP);
	struct frag_param item = *param;
	struct frag_string_entry *items;
	size_t i = 0;

	if (map == NULL)
		return;
	items = kept(filling,
		     fragi_arena_alloc(filling->context->arena, (map->count + 1) * sizeof(*items)));
	if (items == NULL)
		return;
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next, i++) {
		items[i].key = kept(filling,
				    fragi_arena_strdup(filling->context->arena, child->key->text));
		if (child->kind != FRAGI_NODE_SCALAR)
			complain_kind(filling, param, child);
		else
			fill_string(filling, &item, child, &items[i].text);
	}
	*field = (struct frag_string_map){items, map->count};
}

static void fill_tree(struct filling *filling, const struct frag_param *param,
		      const struct fragi_node *node, const struct frag_tree **field)
{
	bool is_map = node->kind == FRAGI_NODE_MAP ||
		      (node->kind == FRAGI_NODE_SCALAR && node->text[0] == '{');

	node = collection_of(filling, param, node, is_map ? FRAGI_NODE_MAP : FRAGI_NODE_LIST);
	if (node != NULL)
		*field = kept(filling, fragi_tree_create(filling->context->arena, node));
}

static bool is_collection(enum frag_param_kind kind)
{
	return kind == FRAG_PARAM_KIND_I64_LIST || kind == FRAG_PARAM_KIND_F64_LIST ||
	       kind == FRAG_PARAM_KIND_STRING_LIST || kind == FRAG_PARAM_KIND_STRING_MAP ||
	       kind == FRAG_PARAM_KIND_TREE;
}

/* Returns whether a text of a graph is $name, which only references are; reports it. */
static bool refuse_reference(struct filling *filling, const struct frag_param *param,
			     const struct fragi_node *node)
{
	const struct fragi_param_context *context = filling->context;
	const char *name = node->text + 1;
	bool is_known;

	if (node->text[0] != '$' || node->quoted || node->replaced || node->file == NULL ||
	    !fragi_name_is_valid(name))
		return false;
	is_known = (context->resource != NULL && context->resource(context->arg, name) != NULL) ||
		   (context->condition != NULL && context->condition(context->arg, name) != NULL);
	complain(
		filling, node,
		"parameter \"%s\": %.80s %s; write \"${%.60s}\" for an argument, or quotes around a text that begins with $",
		param->name, node->text,
		is_known ? "is a resource or condition, and the parameter takes none"
			 : "names nothing",
		name);
	return true;
}

static void fill_field(struct filling *filling, const struct frag_param *param,
		       const struct fragi_node *node)
{
	void *field = filling->state + param->offset;
	bool value;

	if (node->kind != FRAGI_NODE_SCALAR && !is_collection(param->kind)) {
		complain_kind(filling, param, node);
		return;
	}
	if (param->kind != FRAG_PARAM_KIND_RESOURCE && param->kind != FRAG_PARAM_KIND_CONDITION &&
	    node->kind == FRAGI_NODE_SCALAR && refuse_reference(filling, param, node))
		return;
	switch (param->kind) {
	case FRAG_PARAM_KIND_BOOL:
		if (fragi_parse_bool(node->text, &value) < 0)
			complain_kind(filling, param, node);
		else
			*(bool *)field = value;
		break;
	case FRAG_PARAM_KIND_I64:
	case FRAG_PARAM_KIND_F64:
	case FRAG_PARAM_KIND_SIZE:
	case FRAG_PARAM_KIND_DURATION:
		fill_number(filling, param, node, field);
		break;
	case FRAG_PARAM_KIND_STRING:
		fill_string(filling, param, node, field);
		break;
	case FRAG_PARAM_KIND_PATH:
		fill_path(filling, node->text, field);
		break;
	case FRAG_PARAM_KIND_RESOURCE:
	case FRAG_PARAM_KIND_CONDITION:
		fill_reference(filling, param, node, field);
		break;
	case FRAG_PARAM_KIND_I64_LIST:
	case FRAG_PARAM_KIND_F64_LIST:
	case FRAG_PARAM_KIND_STRING_LIST:
		fill_list(filling, param, node, field);
		break;
	case FRAG_PARAM_KIND_STRING_MAP:
		fill_map(filling, param, node, field);
		break;
	case FRAG_PARAM_KIND_TREE:
		fill_tree(filling, param, node, field);
		break;
	}
}

static void fill_default(struct filling *filling, const struct frag_param *param)
{
	struct fragi_node node = {.kind = FRAGI_NODE_SCALAR, .text = param->def_text};
	void *field = filling->state + param->offset;

	switch (param->kind) {
	case FRAG_PARAM_KIND_BOOL:
		*(bool *)field = param->def_int != 0;
		return;
	case FRAG_PARAM_KIND_I64:
	case FRAG_PARAM_KIND_DURATION:
		*(int64_t *)field = param->def_int;
		return;
	case FRAG_PARAM_KIND_SIZE:
		*(uint64_t *)field = (uint64_t)param->def_int;
		return;
	case FRAG_PARAM_KIND_F64:
		*(double *)field = param->def_float;
		return;
	case FRAG_PARAM_KIND_STRING:
	case FRAG_PARAM_KIND_PATH:
		memset(field, 0, fragi_param_kind(param->kind)->size);
		if (node.text == NULL && (param->flags & FRAG_PARAM_OPTIONAL) == 0)
			node.text = "";
		break;
	default:
		memset(field, 0, fragi_param_kind(param->kind)->size);
		break;
	}
	if (node.text != NULL && (param->flags & FRAG_PARAM_REQUIRED) == 0)
		fill_field(filling, param, &node);
}

/* A setting without a value undoes earlier ones. */
static void fill_nothing(struct filling *filling, const struct frag_param *param, uint32_t i,
			 const struct fragi_spec_setting *setting)
{
	if ((param->flags & FRAG_PARAM_OPTIONAL) == 0) {
		complain(filling, setting->place, "parameter \"%s\" has no value", param->name);
		filling->given[i] = true;
		return;
	}
	memset(filling->state + param->offset, 0, fragi_param_kind(param->kind)->size);
	filling->given[i] = false;
}

/* The parameter that was probably meant counts as given, so that it is not missed as well. */
static void complain_unknown(struct filling *filling, const struct fragi_spec_setting *setting)
{
	const char *names[FRAGI_PARAMS_MAX], *meant;
	char advice[600];

	for (uint32_t i = 0; i < filling->table->count; i++)
		names[i] = fragi_param_at(filling->table, i).name;
	meant = fragi_suggest(setting->name, names, filling->table->count);
	for (uint32_t i = 0; i < filling->table->count; i++)
		filling->given[i] = filling->given[i] || names[i] == meant;
	complain(filling, setting->place, "unknown parameter \"%.80s\"%s", setting->name,
		 filling->table->count == 0
			 ? "; it has no parameters"
			 : fragi_advise(advice, sizeof(advice), setting->name, "its parameters",
					names, filling->table->count));
}

static void fill_setting(struct filling *filling, const struct fragi_spec_setting *setting)
{
	struct frag_param param;

	for (uint32_t i = 0; i < filling->table->count; i++) {
		param = fragi_param_at(filling->table, i);
		if (strcmp(param.name, setting->name) != 0)
			continue;
		if (setting->value != NULL && setting->value->is_reported) {
			filling->given[i] = true;
			filling->failed = filling->failed != 0 ? filling->failed : -EINVAL;
			return;
		}
		if (setting->value == NULL || setting->value->kind == FRAGI_NODE_NULL) {
			fill_nothing(filling, &param, i, setting);
			return;
		}
		filling->given[i] = true;
		fill_field(filling, &param, setting->value);
		return;
	}
	complain_unknown(filling, setting);
}

int fragi_params_fill(const struct fragi_param_table *table,
		      const struct fragi_spec_setting *settings, size_t count, void *state,
		      const struct fragi_param_context *context)
{
	struct filling filling = {.table = table, .context = context, .state = state};
	struct frag_param param;

	filling.given = kept(&filling, fragi_arena_alloc(context->arena, table->count + 1));
	if (filling.given == NULL)
		return filling.failed;
	for (uint32_t i = 0; i < table->count; i++) {
		param = fragi_param_at(table, i);
		fill_default(&filling, &param);
	}
	for (size_t i = 0; i < count; i++)
		fill_setting(&filling, &settings[i]);
	for (uint32_t i = 0; i < table->count; i++) {
		param = fragi_param_at(table, i);
		if ((param.flags & FRAG_PARAM_REQUIRED) != 0 && !filling.given[i])
			complain(&filling, context->place,
				 "parameter \"%s\" (%s) is required and not set", param.name,
				 fragi_param_kind(param.kind)->name);
	}
	return filling.failed;
}

int fragi_params_set(const struct fragi_param_table *table,
		     const struct fragi_spec_setting *setting, void *state,
		     const struct fragi_param_context *context)
{
	struct filling filling = {.table = table, .context = context, .state = state};

	filling.given = kept(&filling, fragi_arena_alloc(context->arena, table->count + 1));
	if (filling.given != NULL)
		fill_setting(&filling, setting);
	return filling.failed;
}

int fragi_settings_from_args(struct fragi_arena *arena, const struct frag_arg *args,
			     struct fragi_spec_setting **out_settings, size_t *out_count)
{
	struct fragi_spec_setting *settings;
	struct fragi_node *nodes;
	size_t count = 0;

	while (args != NULL && args[count].name != NULL)
		count++;
	settings = fragi_arena_alloc(arena, (count + 1) * sizeof(*settings));
	nodes = fragi_arena_alloc(arena, (count + 1) * sizeof(*nodes));
	if (settings == NULL || nodes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		nodes[i].kind = args[i].text != NULL ? FRAGI_NODE_SCALAR : FRAGI_NODE_NULL;
		nodes[i].text = fragi_arena_strdup(arena, args[i].text);
		settings[i].name = fragi_arena_strdup(arena, args[i].name);
		settings[i].value = &nodes[i];
		if (settings[i].name == NULL || (args[i].text != NULL && nodes[i].text == NULL))
			return -ENOMEM;
	}
	*out_settings = settings;
	*out_count = count;
	return 0;
}
