// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>
#include <data/print.h>
#include <data/type.h>
#include <frag/value.h>
#include <text/node.h>

/* Values of messages as JSON, which YAML includes: they are read as trees of YAML. */

int frag_value_print(const struct frag_type *type, const void *value, size_t size, FILE *out)
{
	fragi_value_print(type, value, size, UINT64_MAX, out);
	return ferror(out) != 0 ? -EIO : 0;
}

/* The value that is read; errors go to diag, with places in the text. */
struct reading {
	struct fragi_diag *diag;
};

#define refuse(reading, node, ...) fragi_node_error((reading)->diag, node, NULL, __VA_ARGS__)

static int fill(const struct reading *reading, const struct fragi_node *node,
		const struct fragi_type_info *info, unsigned char *out);

static const char *text_of(const struct fragi_node *node)
{
	return node->kind == FRAGI_NODE_SCALAR && !node->quoted ? node->text : "";
}

static int refuse_scalar(const struct reading *reading, const struct fragi_node *node,
			 const struct frag_type *type)
{
	static const char *const kinds[] = {"null", NULL, "a list", "an object"};

	if (node->kind == FRAGI_NODE_SCALAR)
		return refuse(reading, node, "%s%.80s%s is no %s", node->quoted ? "\"" : "",
			      node->text, node->quoted ? "\"" : "", type->name);
	return refuse(reading, node, "%s is no %s", kinds[node->kind], type->name);
}

/* The low bytes of a number are the number in any smaller type (little-endian). */
static int fill_integer(const struct reading *reading, const struct fragi_node *node,
			const struct frag_type *type, unsigned char *out)
{
	const unsigned int bits = (unsigned int)type->size * 8;
	const char *text = text_of(node);
	uint64_t unsigned_value;
	int64_t value;
	char *end;

	if (type->name[0] == 'u' && bits == 64) {
		errno = 0;
		unsigned_value = strtoull(text, &end, 10);
		if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
			return refuse_scalar(reading, node, type);
		memcpy(out, &unsigned_value, sizeof(unsigned_value));
		return 0;
	}
	if (fragi_parse_i64(text, &value) < 0 ||
	    (type->name[0] == 'u' && (value < 0 || value >> bits != 0)) ||
	    (type->name[0] == 'i' && bits < 64 &&
	     (value < -(INT64_C(1) << (bits - 1)) || value >= INT64_C(1) << (bits - 1))))
		return refuse_scalar(reading, node, type);
	memcpy(out, &value, type->size);
	return 0;
}

/* bits: of the number in C */
static int fill_float(const struct reading *reading, const struct fragi_node *node,
		      const struct frag_type *type, size_t size, unsigned char *out)
{
	double value = NAN;
	float narrow;

	if (node->kind != FRAGI_NODE_NULL &&
	    (fragi_parse_f64(text_of(node), &value) < 0 ||
	     (size == sizeof(float) && isfinite(value) && fabs(value) > (double)FLT_MAX)))
		return refuse_scalar(reading, node, type);
	narrow = (float)value;
	memcpy(out, size == sizeof(float) ? (void *)&narrow : (void *)&value, size);
	return 0;
}

static int fill_complex(const struct reading *reading, const struct fragi_node *node,
			const struct frag_type *type, unsigned char *out)
{
	size_t half = type->size / 2;
	int r;

	if (node->kind != FRAGI_NODE_LIST || node->count != 2)
		return refuse(reading, node, "a %s is a list of two numbers", type->name);
	r = fill_float(reading, node->first, type, half, out);
	return r < 0 ? r : fill_float(reading, node->last, type, half, out + half);
}

static int fill_scalar(const struct reading *reading, const struct fragi_node *node,
		       const struct frag_type *type, unsigned char *out)
{
	bool is_true;

	switch (type->name[0]) {
	case 'b':
		is_true = strcmp(text_of(node), "true") == 0;
		if (!is_true && strcmp(text_of(node), "false") != 0)
			return refuse_scalar(reading, node, type);
		memcpy(out, &is_true, sizeof(is_true));
		return 0;
	case 'f':
		return fill_float(reading, node, type, type->size, out);
	case 'c':
		return fill_complex(reading, node, type, out);
	default:
		return fill_integer(reading, node, type, out);
	}
}

static int fill_list(const struct reading *reading, const struct fragi_node *list,
		     const struct fragi_type_info *element, unsigned char *out)
{
	int r = 0;

	for (const struct fragi_node *child = list->first; child != NULL; child = child->next) {
		int one = fill(reading, child, element, out);

		r = r < 0 ? r : one;
		out += element->type->size;
	}
	return r;
}

static int check_fields(const struct reading *reading, const struct fragi_node *map,
			const struct fragi_type_info *info)
{
	const char *names[FRAGI_TYPE_FIELDS_MAX];
	char advice[300];
	int r = 0;

	for (uint32_t i = 0; i < info->field_count; i++)
		names[i] = info->type->fields[i].name;
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next) {
		uint32_t i = 0;

		while (i < info->field_count && strcmp(names[i], child->key->text) != 0)
			i++;
		if (i == info->field_count)
			r = refuse(reading, child->key, "%s has no field \"%.80s\"%s",
				   info->type->name, child->key->text,
				   fragi_advise(advice, sizeof(advice), child->key->text, "fields",
						names, info->field_count));
	}
	for (uint32_t i = 0; r == 0 && i < info->field_count; i++)
		if (fragi_node_get(map, names[i]) == NULL)
			r = refuse(reading, map, "field \"%s\" of %s is missing", names[i],
				   info->type->name);
	return r;
}

static int fill_struct(const struct reading *reading, const struct fragi_node *map,
		       const struct fragi_type_info *info, unsigned char *out)
{
	int r, one;

	if (map->kind != FRAGI_NODE_MAP)
		return refuse(reading, map, "a %s is an object: {\"%s\": ...}", info->type->name,
			      info->type->fields[0].name);
	r = check_fields(reading, map, info);
	for (uint32_t i = 0; i < info->field_count; i++) {
		const struct fragi_type_field *field = &info->fields[i];
		const char *name = info->type->fields[i].name;
		const struct fragi_node *node = fragi_node_get(map, name);

		if (node == NULL)
			continue;
		if (field->count == 1)
			one = fill(reading, node, field->of, out + field->offset);
		else if (node->kind != FRAGI_NODE_LIST || node->count != field->count)
			one = refuse(reading, node, "field \"%s\" of %s is a list of %u", name,
				     info->type->name, field->count);
		else
			one = fill_list(reading, node, field->of, out + field->offset);
		r = r < 0 ? r : one;
	}
	return r;
}

static int fill(const struct reading *reading, const struct fragi_node *node,
		const struct fragi_type_info *info, unsigned char *out)
{
	return info->kind == FRAGI_TYPE_PLAIN ? fill_struct(reading, node, info, out)
					      : fill_scalar(reading, node, info->type, out);
}

static bool can_read(const struct fragi_type_info *info)
{
	if (info->kind == FRAGI_TYPE_ARRAY)
		info = info->element;
	else if (info->kind == FRAGI_TYPE_STRING)
		return true;
	return info->kind == FRAGI_TYPE_PLAIN || info->kind == FRAGI_TYPE_SCALAR;
}

/* Reads into memory of its own, so that nothing of a wrong value gets into the message. */
static int set_value(const struct reading *reading, const struct fragi_node *node,
		     const struct fragi_type_info *info, struct frag_message *message)
{
	bool is_array = info->kind == FRAGI_TYPE_ARRAY;
	size_t size = is_array ? node->count * info->element->type->size : info->type->size;
	unsigned char *value;
	int r;

	if (info->kind == FRAGI_TYPE_STRING) {
		if (node->kind != FRAGI_NODE_SCALAR)
			return refuse_scalar(reading, node, info->type);
		return frag_message_set_value(message, info->type, node->text, strlen(node->text),
					      NULL);
	}
	if (is_array && node->kind != FRAGI_NODE_LIST)
		return refuse(reading, node, "a %s is a list", info->type->name);
	value = fragi_calloc(1, size + 1);
	if (value == NULL)
		return -ENOMEM;
	r = is_array ? fill_list(reading, node, info->element, value)
		     : fill(reading, node, info, value);
	if (r == 0)
		r = frag_message_set_value(message, info->type, value, size, NULL);
	fragi_free(value);
	return r;
}

int frag_message_read_value(struct frag_message *message, const struct frag_type *type,
			    const char *json, struct frag_err *err)
{
	const struct fragi_type_info *info = fragi_type_resolve(type);
	struct fragi_arena arena = {0};
	struct fragi_diag diag = {0};
	const struct reading reading = {&diag};
	struct fragi_node *root = NULL;
	int r;

	if (info == NULL || !can_read(info))
		return frag_err_set(err, -EOPNOTSUPP, "values of type %s cannot be read from text",
				    type->name);
	r = fragi_yaml_parse(&arena, "", json, strlen(json), &diag, &root);
	if (r == 0 && root != NULL)
		r = set_value(&reading, root, info, message);
	if (diag.count > 0) {
		fragi_diag_sort(&diag, 0);
		r = frag_err_set(err, -EINVAL, "%s", diag.items[0].text);
		if (err != NULL) {
			err->line = diag.items[0].line;
			err->column = diag.items[0].column;
		}
	} else if (r < 0) {
		frag_err_set(err, r, "%s", frag_strerror(r));
	}
	fragi_diag_fini(&diag);
	fragi_arena_fini(&arena);
	return r;
}
