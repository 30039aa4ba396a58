// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdarg.h>
#include <string.h>

#include <base/units.h>
#include <type/params.h>

#define PARAMS_MAX 1024u
#define PARAM_FLAGS (FRAG_PARAM_REQUIRED | FRAG_PARAM_OPTIONAL | FRAG_PARAM_DYNAMIC)

/* What a kind is called, what its field is, and how a person is told to write one. */
static const struct kind {
	const char *name;
	size_t size, align;
	const char *is_no; /* `"abc" is no ...` */
} kinds[] = {
	[FRAG_PARAM_KIND_BOOL] = {"bool", sizeof(bool), _Alignof(bool),
				  "bool; write true or false"},
	[FRAG_PARAM_KIND_I64] = {"i64", sizeof(int64_t), _Alignof(int64_t), "integer"},
	[FRAG_PARAM_KIND_F64] = {"f64", sizeof(double), _Alignof(double), "number"},
	[FRAG_PARAM_KIND_STRING] = {"string", sizeof(char *), _Alignof(char *), "string"},
	[FRAG_PARAM_KIND_SIZE] =
		{"size", sizeof(uint64_t), _Alignof(uint64_t),
		 "size; write bytes, or a number with a unit such as 512Mi or 2MB"},
	[FRAG_PARAM_KIND_DURATION] =
		{"duration", sizeof(int64_t), _Alignof(int64_t),
		 "duration; write nanoseconds, or a number with a unit such as 10ms, 2s or 30hz"},
	[FRAG_PARAM_KIND_PATH] = {"path", sizeof(char *), _Alignof(char *), "path"},
	[FRAG_PARAM_KIND_RESOURCE] = {"resource", sizeof(void *), _Alignof(void *),
				      "reference to a resource; write $NAME"},
	[FRAG_PARAM_KIND_I64_LIST] = {"i64[]", sizeof(struct frag_i64_list),
				      _Alignof(struct frag_i64_list),
				      "list of integers; write [1, 2]"},
	[FRAG_PARAM_KIND_F64_LIST] = {"f64[]", sizeof(struct frag_f64_list),
				      _Alignof(struct frag_f64_list),
				      "list of numbers; write [0.5, 2]"},
	[FRAG_PARAM_KIND_STRING_LIST] = {"string[]", sizeof(struct frag_string_list),
					 _Alignof(struct frag_string_list),
					 "list of strings; write [a, b]"},
	[FRAG_PARAM_KIND_STRING_MAP] = {"string map", sizeof(struct frag_string_map),
					_Alignof(struct frag_string_map),
					"map of strings; write {key: text}"},
	[FRAG_PARAM_KIND_CONDITION] = {"condition", sizeof(void *), _Alignof(void *),
				       "reference to a condition; write $NAME"},
};

/* One fill under way. */
struct filling {
	const struct fragi_param_table *table;
	const struct fragi_param_context *context;
	char *state;
	bool *given; /* [table->count] */
	int failed;  /* 0 or the first error */
};

static const struct kind *kind_of(enum frag_param_kind kind)
{
	return (size_t)kind < FRAG_COUNT_OF(kinds) && kinds[kind].name != NULL ? &kinds[kind]
									       : NULL;
}

const char *fragi_param_kind_name(enum frag_param_kind kind)
{
	const struct kind *k = kind_of(kind);

	return k != NULL ? k->name : "unknown";
}

struct frag_param fragi_param_at(const struct fragi_param_table *table, uint32_t i)
{
	struct frag_param param = {0};
	size_t size = table->item_size < sizeof(param) ? table->item_size : sizeof(param);

	memcpy(&param, (const char *)table->items + (size_t)i * table->item_size, size);
	return param;
}

static int param_check(const struct frag_param *param, size_t state_size, struct frag_err *err)
{
	const struct kind *kind = kind_of(param->kind);

	if (param->name == NULL || !fragi_name_is_valid(param->name))
		return frag_err_set(err, -EINVAL, "\"%.80s\" is no name of a parameter",
				    param->name != NULL ? param->name : "");
	if (kind == NULL)
		return frag_err_set(
			err, -EINVAL,
			"parameter \"%s\" is of kind %d, which this libfrag does not know",
			param->name, (int)param->kind);
	if ((param->flags & ~PARAM_FLAGS) != 0)
		return frag_err_set(
			err, -EINVAL,
			"parameter \"%s\" has flags 0x%x, which this libfrag does not know",
			param->name, param->flags & ~PARAM_FLAGS);
	if ((param->flags & FRAG_PARAM_REQUIRED) != 0 && (param->flags & FRAG_PARAM_OPTIONAL) != 0)
		return frag_err_set(err, -EINVAL, "parameter \"%s\" is both required and optional",
				    param->name);
	if (param->offset > state_size || kind->size > state_size - param->offset ||
	    param->offset % kind->align != 0)
		return frag_err_set(
			err, -EINVAL,
			"parameter \"%s\" (%s at offset %u) does not lie in the state of %zu bytes",
			param->name, kind->name, param->offset, state_size);
	return 0;
}

int fragi_params_check(const struct fragi_param_table *table, size_t state_size,
		       struct frag_err *err)
{
	struct frag_param param, other;
	int r;

	if (table->count == 0)
		return 0;
	if (table->items == NULL || table->count > PARAMS_MAX)
		return frag_err_set(err, -EINVAL, "%u parameters in a table that cannot be",
				    table->count);
	if (table->item_size < offsetof(struct frag_param, def_int) || table->item_size % 8 != 0)
		return frag_err_set(
			err, -EINVAL,
			"parameters of %u bytes each are none; set the table with FRAG_PARAMS",
			table->item_size);
	for (uint32_t i = 0; i < table->count; i++) {
		param = fragi_param_at(table, i);
		r = param_check(&param, state_size, err);
		if (r < 0)
			return r;
		for (uint32_t j = 0; j < i; j++) {
			other = fragi_param_at(table, j);
			if (strcmp(other.name, param.name) == 0)
				return frag_err_set(err, -EINVAL,
						    "two parameters are called \"%s\"", param.name);
		}
	}
	return 0;
}

/* Adds an error about this subject at the place of node. */
static void complain(struct filling *filling, const struct fragi_node *node, const char *format,
		     ...) FRAG_PRINTF(3, 4);

static void complain(struct filling *filling, const struct fragi_node *node, const char *format,
		     ...)
{
	const struct fragi_param_context *context = filling->context;
	char text[800];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fragi_diag_add(context->diag, -EINVAL, node != NULL ? node->file : NULL,
		       node != NULL ? node->line : 0, node != NULL ? node->column : 0, "%s%s%s",
		       context->subject != NULL ? context->subject : "",
		       context->subject != NULL ? ": " : "", text);
	if (filling->failed == 0)
		filling->failed = -EINVAL;
}

/* What the arena gave; NULL ends the fill with -ENOMEM. */
static void *kept(struct filling *filling, void *memory)
{
	if (memory == NULL && filling->failed != -ENOMEM) {
		fragi_diag_add(filling->context->diag, -ENOMEM, NULL, 0, 0,
			       "%s: memory is short for its parameters", filling->context->subject);
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

	if (node->kind == FRAGI_NODE_SCALAR)
		complain(filling, node, "parameter \"%s\": \"%.80s\" is no %s", param->name,
			 node->text, kinds[param->kind].is_no);
	else
		complain(filling, node, "parameter \"%s\": %s is no %s", param->name,
			 what[node->kind], kinds[param->kind].is_no);
}

static void format_bound(const struct frag_param *param, double bound, char *out, size_t size)
{
	if (param->kind == FRAG_PARAM_KIND_DURATION && fabs(bound) < 9e18)
		fragi_format_duration((int64_t)bound, out, size);
	else if (fabs(bound) < 1e15 && rint(bound) == bound)
		snprintf(out, size, "%.0f", bound);
	else
		snprintf(out, size, "%g", bound);
}

/* Whether value lies in the parameter's range; complains when not. */
static bool in_range(struct filling *filling, const struct frag_param *param,
		     const struct fragi_node *node, double value)
{
	char min[40], max[40];

	if (!(param->min < param->max) || (value >= param->min && value <= param->max))
		return true;
	format_bound(param, param->min, min, sizeof(min));
	format_bound(param, param->max, max, sizeof(max));
	if (param->max >= 9.2e18)
		complain(filling, node, "parameter \"%s\": %.80s is out of range; the least is %s",
			 param->name, node->text, min);
	else if (param->min <= -9.2e18)
		complain(filling, node, "parameter \"%s\": %.80s is out of range; the most is %s",
			 param->name, node->text, max);
	else
		complain(filling, node,
			 "parameter \"%s\": %.80s is out of range; allowed is %s to %s",
			 param->name, node->text, min, max);
	return false;
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
	if (r < 0) {
		complain_kind(filling, param, node);
		return;
	}
	if (!in_range(filling, param, node, f64))
		return;
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
		       strcmp(param->choices[count], node->text) != 0)
			count++;
		if (param->choices[count] == NULL) {
			complain(filling, node, "parameter \"%s\": \"%.80s\" is no choice%s",
				 param->name, node->text,
				 fragi_advise(advice, sizeof(advice), node->text, "choices",
					      param->choices, count));
			return;
		}
	}
	*field = kept(filling, fragi_arena_strdup(filling->context->arena, node->text));
}

static void fill_path(struct filling *filling, const char *text, const char **field)
{
	const char *folder = filling->context->app_folder;

	if (text[0] == '/' || text[0] == '\0' || folder == NULL)
		*field = kept(filling, fragi_arena_strdup(filling->context->arena, text));
	else
		*field = kept(filling,
			      fragi_arena_printf(filling->context->arena, "%s/%s", folder, text));
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
		 kinds[param->kind].name, name,
		 fragi_advise(advice, sizeof(advice), name,
			      is_resource ? "resources" : "conditions", names, count));
}

/*
 * The list or map that node is, or that its text is when C or --set gave it; NULL: none,
 * complained.
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

static bool is_collection(enum frag_param_kind kind)
{
	return kind == FRAG_PARAM_KIND_I64_LIST || kind == FRAG_PARAM_KIND_F64_LIST ||
	       kind == FRAG_PARAM_KIND_STRING_LIST || kind == FRAG_PARAM_KIND_STRING_MAP;
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
		memset(field, 0, kinds[param->kind].size);
		if (node.text == NULL && (param->flags & FRAG_PARAM_OPTIONAL) == 0)
			node.text = "";
		break;
	default:
		memset(field, 0, kinds[param->kind].size);
		break;
	}
	if (node.text != NULL && (param->flags & FRAG_PARAM_REQUIRED) == 0)
		fill_field(filling, param, &node);
}

/* A setting without a value takes back what was set before it. */
static void fill_nothing(struct filling *filling, const struct frag_param *param, uint32_t i,
			 const struct fragi_spec_setting *setting)
{
	if ((param->flags & FRAG_PARAM_OPTIONAL) == 0) {
		complain(filling, setting->place, "parameter \"%s\" has no value", param->name);
		filling->given[i] = true;
		return;
	}
	memset(filling->state + param->offset, 0, kinds[param->kind].size);
	filling->given[i] = false;
}

static void complain_unknown(struct filling *filling, const struct fragi_spec_setting *setting)
{
	const char *names[PARAMS_MAX];
	char advice[600];

	for (uint32_t i = 0; i < filling->table->count; i++)
		names[i] = fragi_param_at(filling->table, i).name;
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
				 kinds[param.kind].name);
	}
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
