// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <data/type_check.h>

/* The name of the array type has two bytes more. */
#define TYPE_NAME_MAX (FRAG_NAME_MAX - 2)
/* Of the first version of the struct. */
#define FIELD_SIZE_MIN (offsetof(struct frag_field, count) + sizeof(uint32_t))

static bool name_is_valid(const char *name)
{
	size_t length;

	if (name == NULL ||
	    !((name[0] >= 'A' && name[0] <= 'Z') || (name[0] >= 'a' && name[0] <= 'z')))
		return false;
	length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.");
	return length <= TYPE_NAME_MAX && name[length] == '\0' && strcmp(name, "message") != 0 &&
	       strcmp(name, "tensor") != 0;
}

static int check_head(const struct frag_type *type, struct frag_err *err)
{
	if (type->struct_size < offsetof(struct frag_type, fini) + sizeof(type->fini))
		return frag_err_set(
			err, -EINVAL,
			"a type's table has struct_size %zu, less than this library knows; begin it with FRAG_TYPE_INIT",
			type->struct_size);
	if (!name_is_valid(type->name))
		return frag_err_set(
			err, -EINVAL,
			"\"%.80s\" is not a valid name of a type; take up to %d of A-Z a-z 0-9 _ - . after a letter, other than \"message\" and \"tensor\"",
			type->name != NULL ? type->name : "", TYPE_NAME_MAX);
	if (type->size == 0 || type->size > FRAGI_TYPE_SIZE_MAX)
		return frag_err_set(
			err, -EINVAL,
			"type \"%s\" has size %zu; a value has 1 to %u bytes (use \"bytes\", or \"%s[]\", for more of them)",
			type->name, type->size, FRAGI_TYPE_SIZE_MAX, type->name);
	if ((type->align & (type->align - 1)) != 0 || type->align > FRAGI_TYPE_ALIGN_MAX)
		return frag_err_set(
			err, -EINVAL,
			"type \"%s\" has align %zu; give a power of two up to %u, or 0 for 8",
			type->name, type->align, FRAGI_TYPE_ALIGN_MAX);
	if ((type->encode == NULL) != (type->decode == NULL))
		return frag_err_set(
			err, -EINVAL,
			"type \"%s\" has only one of encode and decode; give both or none",
			type->name);
	if (type->field_count > 0 && (type->encode != NULL || type->fini != NULL))
		return frag_err_set(
			err, -EINVAL,
			"type \"%s\" has both fields and functions; a plain struct has fields alone",
			type->name);
	if (type->field_count > 0 &&
	    (type->fields == NULL || type->field_count > FRAGI_TYPE_FIELDS_MAX ||
	     type->field_size < FIELD_SIZE_MIN))
		return frag_err_set(
			err, -EINVAL,
			"type \"%s\" has an invalid table of fields (at most %u); write it with FRAG_FIELDS",
			type->name, FRAGI_TYPE_FIELDS_MAX);
	return 0;
}

/* Looks up one field's type and checks that the field lies within the struct. */
static int check_field(const struct frag_type *type, const struct frag_field *field,
		       struct fragi_type_info *(*find)(const char *name),
		       struct fragi_type_field *out, struct frag_err *err)
{
	const struct fragi_type_info *of;
	uint64_t end;

	if (field->name == NULL || field->name[0] == '\0' || strlen(field->name) > FRAG_NAME_MAX)
		return frag_err_set(
			err, -EINVAL,
			"type \"%s\" has a field without a name of 1 to %d bytes; name it",
			type->name, FRAG_NAME_MAX);
	of = field->type != NULL ? find(field->type) : NULL;
	if (of == NULL)
		return frag_err_set(
			err, -EINVAL,
			"%s.%s has the unknown type \"%.80s\"; register that type first",
			type->name, field->name, field->type != NULL ? field->type : "");
	if (of->kind != FRAGI_TYPE_SCALAR && of->kind != FRAGI_TYPE_PLAIN)
		return frag_err_set(
			err, -EINVAL,
			"%s.%s has type \"%s\"; a field is a scalar or a plain struct (for others, give the type encode and decode)",
			type->name, field->name, field->type);
	if (field->count == 0)
		return frag_err_set(err, -EINVAL,
				    "%s.%s has count 0; give 1, or the array's length", type->name,
				    field->name);
	if (type->field_size >= offsetof(struct frag_field, size) + sizeof(field->size) &&
	    field->size != 0 && field->size != of->type->size)
		return frag_err_set(
			err, -EINVAL,
			"%s.%s has %u bytes in C, and its type \"%s\" has %zu; name the type of the field",
			type->name, field->name, field->size, field->type, of->type->size);
	end = (uint64_t)field->offset + (uint64_t)field->count * of->type->size;
	if (end > type->size)
		return frag_err_set(
			err, -EINVAL,
			"%s.%s reaches from byte %u to %llu, beyond the struct's %zu bytes; check its type, offset and count",
			type->name, field->name, field->offset, (unsigned long long)end,
			type->size);
	out->of = of;
	out->offset = field->offset;
	out->count = field->count;
	return 0;
}

struct span {
	uint64_t from, to;
	const char *name;
};

static int by_from(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static int by_name(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int check_overlaps(const struct fragi_type_info *info, struct frag_err *err)
{
	struct span *spans = fragi_calloc(info->field_count, sizeof(*spans));
	int r = 0;

	if (spans == NULL)
		return frag_err_set(err, -ENOMEM,
				    "type \"%s\" cannot be registered: there is no memory",
				    info->type->name);
	for (uint32_t i = 0; i < info->field_count; i++) {
		spans[i].name = fragi_type_field_at(info->type, i)->name;
		spans[i].from = info->fields[i].offset;
		spans[i].to = spans[i].from +
			      (uint64_t)info->fields[i].count * info->fields[i].of->type->size;
	}
	qsort(spans, info->field_count, sizeof(*spans), by_from);
	for (uint32_t i = 1; i < info->field_count && r == 0; i++)
		if (spans[i].from < spans[i - 1].to)
			r = frag_err_set(
				err, -EINVAL,
				"%s.%s and %s.%s overlap; check their types, offsets and counts",
				info->type->name, spans[i - 1].name, info->type->name,
				spans[i].name);
	qsort(spans, info->field_count, sizeof(*spans), by_name);
	for (uint32_t i = 1; i < info->field_count && r == 0; i++)
		if (strcmp(spans[i].name, spans[i - 1].name) == 0)
			r = frag_err_set(err, -EINVAL,
					 "type \"%s\" has two fields \"%s\"; rename one",
					 info->type->name, spans[i].name);
	fragi_free(spans);
	return r;
}

static int check_fields(struct fragi_type_info *info, struct fragi_type_field *fields,
			struct fragi_type_info *(*find)(const char *name), struct frag_err *err)
{
	uint64_t packed = 0; /* offset of the next field, if there is no padding */
	int r;

	info->is_dense = true;
	for (uint32_t i = 0; i < info->field_count; i++) {
		r = check_field(info->type, fragi_type_field_at(info->type, i), find, &fields[i],
				err);
		if (r < 0)
			return r;
		/* Cannot overflow: at most FRAGI_TYPE_FIELDS_MAX times the struct's size. */
		info->wire_size += fields[i].of->wire_size * fields[i].count;
		info->is_dense =
			info->is_dense && fields[i].of->is_dense && fields[i].offset == packed;
		packed += fields[i].of->type->size * fields[i].count;
		if (fields[i].of->depth + 1 > info->depth)
			info->depth = fields[i].of->depth + 1;
	}
	info->is_dense = info->is_dense && packed == info->type->size;
	if (info->depth > FRAGI_TYPE_DEPTH_MAX)
		return frag_err_set(err, -EINVAL,
				    "type \"%s\" nests structs more than %u deep; flatten it",
				    info->type->name, FRAGI_TYPE_DEPTH_MAX);
	return check_overlaps(info, err);
}

int fragi_type_check(const struct frag_type *type,
		     struct fragi_type_info *(*find)(const char *name),
		     struct fragi_type_info **out_info, struct frag_err *err)
{
	struct fragi_type_info *info;
	struct fragi_type_field *fields;
	int r;

	r = check_head(type, err);
	if (r < 0)
		return r;
	info = fragi_calloc(1, sizeof(*info) + type->field_count * sizeof(*fields));
	if (info == NULL)
		return frag_err_set(err, -ENOMEM,
				    "type \"%s\" cannot be registered: there is no memory",
				    type->name);
	fields = (struct fragi_type_field *)(info + 1);
	info->type = type;
	info->kind = type->field_count > 0  ? FRAGI_TYPE_PLAIN
		     : type->encode != NULL ? FRAGI_TYPE_CUSTOM
					    : FRAGI_TYPE_OPAQUE;
	if (info->kind == FRAGI_TYPE_PLAIN) {
		info->fields = fields;
		info->field_count = type->field_count;
		r = check_fields(info, fields, find, err);
		if (r < 0) {
			fragi_free(info);
			return r;
		}
	}
	*out_info = info;
	return 0;
}
