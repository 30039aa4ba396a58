// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include <base/policy.h>
#include <base/units.h>
#include <data/type_check.h>
#include <fragctl/inspect.h>
#include <fragctl/table.h>
#include <text/port_tensor.h>
#include <type/params.h>

const char *ctl_type_kind_name(enum ctl_type_kind kind)
{
	static const char *const names[] = {"operator", "condition", "resource",
					    "composer", "subgraph",  "value type"};

	return names[kind];
}

static const char *or_empty(const char *text)
{
	return text != NULL ? text : "";
}

const char *ctl_param_default(const struct frag_param *param, char *out, size_t size)
{
	if ((param->flags & FRAG_PARAM_REQUIRED) != 0)
		return NULL;
	switch (param->kind) {
	case FRAG_PARAM_KIND_BOOL:
		snprintf(out, size, "%s", param->def_int != 0 ? "true" : "false");
		return out;
	case FRAG_PARAM_KIND_I64:
		snprintf(out, size, "%" PRId64, param->def_int);
		return out;
	case FRAG_PARAM_KIND_SIZE:
		snprintf(out, size, "%" PRIu64, (uint64_t)param->def_int);
		return out;
	case FRAG_PARAM_KIND_F64:
		snprintf(out, size, "%g", param->def_float);
		return out;
	case FRAG_PARAM_KIND_DURATION:
		if (param->def_int % 1000000 == 0 && param->def_int != 0)
			snprintf(out, size, "%" PRId64 "ms", param->def_int / 1000000);
		else
			snprintf(out, size, "%" PRId64 "%s", param->def_int,
				 param->def_int != 0 ? "ns" : "");
		return out;
	default:
		return param->def_text;
	}
}

/* "1 to 1000", "fast, slow", "" */
static const char *range_of(const void *row, char *out, size_t size)
{
	const struct frag_param *param = row;
	size_t used = 0;
	int n;

	out[0] = '\0';
	if (param->choices != NULL) {
		for (size_t i = 0; param->choices[i] != NULL && used < size; i++) {
			n = snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "",
				     param->choices[i]);
			used += n > 0 ? (size_t)n : 0;
		}
	} else if (param->min < param->max && param->max >= 9.2e18) {
		snprintf(out, size, "from %.12g", param->min);
	} else if (param->min < param->max && param->min <= -9.2e18) {
		snprintf(out, size, "to %.12g", param->max);
	} else if (param->min < param->max) {
		snprintf(out, size, "%.12g to %.12g", param->min, param->max);
	}
	return out;
}

static const char *flags_of(const void *row)
{
	const struct frag_param *param = row;
	bool is_dynamic = (param->flags & FRAG_PARAM_DYNAMIC) != 0;

	if ((param->flags & FRAG_PARAM_REQUIRED) != 0)
		return is_dynamic ? "required dynamic" : "required";
	if ((param->flags & FRAG_PARAM_OPTIONAL) != 0)
		return is_dynamic ? "optional dynamic" : "optional";
	return is_dynamic ? "dynamic" : "";
}

/* Prints layout and unit of what a port's tensors hold, one kind a line. */
static void print_tensors(const struct frag_port *port, int indent, FILE *out)
{
	struct fragi_port_tensor tensor;
	const char *rest = port->tensors;

	while (rest != NULL && fragi_port_tensor_next(&rest, &tensor)) {
		fprintf(out, "  %*s    %.*s: %.*s", indent, "", (int)tensor.kind_length,
			tensor.kind, (int)tensor.text_length, tensor.text);
		if (tensor.converter_length > 0)
			fprintf(out, "; %.*s converts others", (int)tensor.converter_length,
				tensor.converter);
		fputc('\n', out);
	}
}

static void print_ports(const struct ctl_type *type, FILE *out)
{
	int width = 4;

	for (uint32_t i = 0; i < type->port_count; i++)
		if ((int)strlen(type->ports[i].name) > width)
			width = (int)strlen(type->ports[i].name);
	if (type->port_count > 0)
		fputs("\nports\n", out);
	else if (type->kind == CTL_OPERATOR && !type->adds_ports)
		fputs("\nno ports\n", out);
	for (uint32_t i = 0; i < type->port_count; i++) {
		const struct frag_port *port = &type->ports[i];

		fprintf(out, "  %-*s  %-3s  %s", width, port->name,
			port->dir == FRAG_IN ? "in" : "out",
			port->type != NULL ? port->type : "message");
		if ((port->flags & FRAG_PORT_MULTI) != 0)
			fputs("  any number of flows", out);
		if ((port->flags & FRAG_PORT_OPTIONAL) != 0)
			fputs("  optional", out);
		if (port->capacity > 0)
			fprintf(out, "  capacity %u", port->capacity);
		if (fragi_policy(port->policy) != fragi_policy(FRAG_POLICY_DEFAULT))
			fprintf(out, "  %s", fragi_policy(port->policy)->name);
		if (port->headline != NULL)
			fprintf(out, "  %s", port->headline);
		fputc('\n', out);
		print_tensors(port, width, out);
	}
	if (type->kind == CTL_OPERATOR && type->adds_ports)
		fputs(type->port_count > 0 ? "  setup may add more\n"
					   : "\nports are added by setup\n",
		      out);
}

static const char *kind_of(const void *row)
{
	return fragi_param_kind_name(((const struct frag_param *)row)->kind);
}

static const char *default_of(const void *row, char *out, size_t size)
{
	const char *text = ctl_param_default(row, out, size);

	return text == NULL ? "-" : text[0] == '\0' ? "\"\"" : text;
}

static const char *headline_of(const void *row)
{
	return or_empty(((const struct frag_param *)row)->headline);
}

static const struct ctl_column param_items[] = {
	{NULL, "name", CTL_AT(CTL_TEXT, frag_param, name)},
	{NULL, "type", .kind = CTL_NAME, .name = kind_of},
	{NULL, "default", .kind = CTL_MADE, .make = default_of},
	{NULL, "range", .kind = CTL_MADE, .make = range_of},
	{NULL, "flags", .kind = CTL_NAME, .name = flags_of},
	{NULL, "", .kind = CTL_NAME, .name = headline_of},
};
static const struct ctl_columns params = {param_items, FRAG_COUNT_OF(param_items), .indent = 2};

static void put_params(struct ctl_table *table, const void *arg)
{
	const struct ctl_type *type = arg;

	for (uint32_t i = 0; i < type->param_count; i++)
		ctl_table_row(table, &params, &type->params[i]);
}

static void print_params(const struct ctl_type *type, FILE *out)
{
	if (type->param_count > 0) {
		fputs("\nparameters\n", out);
		ctl_table_print(out, &params, put_params, type);
	} else if (type->kind != CTL_COMPOSER && type->kind != CTL_SUBGRAPH &&
		   type->kind != CTL_VALUE) {
		fputs("\nno parameters\n", out);
	}
}

static void print_conditions(const struct ctl_type *type, FILE *out)
{
	bool any = false;

	for (uint32_t i = 0; i < type->port_count; i++) {
		const struct frag_port *port = &type->ports[i];

		if ((port->flags & FRAG_PORT_NO_CONDITION) != 0)
			continue;
		fprintf(out, "%s  %s of %s",
			any ? "\n" : "\nconditions unless the graph says otherwise\n",
			port->dir == FRAG_IN ? "message_available" : "downstream_affordable",
			port->name);
		if (port->min_size > 1)
			fprintf(out, ", min_size %u", port->min_size);
		any = true;
	}
	if (any)
		fputc('\n', out);
}

static const char *crossing(const struct frag_type *type)
{
	return fragi_type_has_codec(type) ? "may cross processes" : "cannot leave its process";
}

static void print_value(const struct frag_type *type, FILE *out)
{
	char text[FRAG_NAME_MAX + 16];
	int width = 4;

	if (type->size > 0)
		fprintf(out, "  %zu byte%s, %s\n", type->size, type->size > 1 ? "s" : "",
			crossing(type));
	else
		fprintf(out, "  any number of bytes, %s\n", crossing(type));
	for (uint32_t i = 0; i < type->field_count; i++)
		if ((int)strlen(fragi_type_field_at(type, i)->name) > width)
			width = (int)strlen(fragi_type_field_at(type, i)->name);
	if (type->field_count > 0)
		fprintf(out, "\nfields\n  %-*s  %-8s  offset\n", width, "name", "type");
	for (uint32_t i = 0; i < type->field_count; i++) {
		const struct frag_field *field = fragi_type_field_at(type, i);

		snprintf(text, sizeof(text), field->count > 1 ? "%.63s[%u]" : "%.63s", field->type,
			 field->count);
		fprintf(out, "  %-*s  %-8s  %u\n", width, field->name, text, field->offset);
	}
}

static void print_saved(const struct ctl_type *type, FILE *out)
{
	char period[32];

	if (type->saved_bytes == 0)
		return;
	fprintf(out,
		"\nits state outlives its process where on_failure starts it again: %zu bytes at most, saved %s%s\n",
		type->saved_bytes, type->save_period_ns > 0 ? "every " : "after every tick",
		type->save_period_ns > 0
			? fragi_format_duration(type->save_period_ns, period, sizeof(period))
			: "");
}

void ctl_type_print(const struct ctl_type *type, FILE *out)
{
	fprintf(out, "%s (%s", type->name, ctl_type_kind_name(type->kind));
	if (type->library != NULL)
		fprintf(out, " of %s, plugin %s%s%s", type->library, type->plugin,
			type->version[0] != '\0' ? " " : "", type->version);
	fprintf(out, ")\n");
	if (type->headline != NULL)
		fprintf(out, "  %s\n", type->headline);
	if (type->description != NULL)
		fprintf(out, "  %s\n", type->description);
	if (type->kind == CTL_VALUE)
		print_value(type->value, out);
	print_ports(type, out);
	print_params(type, out);
	print_conditions(type, out);
	print_saved(type, out);
}

void ctl_types_print(const struct ctl_type *types, size_t count, FILE *out)
{
	const char *file;
	int width = 4;

	for (size_t i = 0; i < count; i++)
		if ((int)strlen(types[i].name) > width)
			width = (int)strlen(types[i].name);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || types[i].kind != types[i - 1].kind)
			fprintf(out, "%s%ss\n", i > 0 ? "\n" : "",
				ctl_type_kind_name(types[i].kind));
		fprintf(out, "  %-*s  %s", width, types[i].name, or_empty(types[i].headline));
		file = types[i].library != NULL ? strrchr(types[i].library, '/') : NULL;
		if (file != NULL)
			fprintf(out, "%s(%s)", types[i].headline != NULL ? " " : "", file + 1);
		fputc('\n', out);
	}
}

/* length 0: null */
static void json_piece(struct ctl_json *json, const char *name, const char *piece, size_t length)
{
	char text[FRAG_PORT_TENSORS_MAX + 1];

	snprintf(text, sizeof(text), "%.*s", (int)length, piece != NULL ? piece : "");
	ctl_json_text(json, name, length > 0 ? text : NULL);
}

static void json_tensors(struct ctl_json *json, const struct frag_port *port)
{
	struct fragi_port_tensor tensor;
	const char *rest = port->tensors;

	ctl_json_open(json, "tensors", '[');
	while (rest != NULL && fragi_port_tensor_next(&rest, &tensor)) {
		ctl_json_open(json, NULL, '{');
		json_piece(json, "kind", tensor.kind, tensor.kind_length);
		json_piece(json, "layout", tensor.text, tensor.text_length);
		json_piece(json, "converter", tensor.converter, tensor.converter_length);
		ctl_json_close(json, '}');
	}
	ctl_json_close(json, ']');
}

static void json_port(struct ctl_json *json, const struct frag_port *port)
{
	const char *condition =
		port->dir == FRAG_IN ? "message_available" : "downstream_affordable";

	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "name", port->name);
	ctl_json_text(json, "direction", port->dir == FRAG_IN ? "in" : "out");
	ctl_json_text(json, "type", port->type != NULL ? port->type : "message");
	ctl_json_text(json, "headline", port->headline);
	ctl_json_bool(json, "multi", (port->flags & FRAG_PORT_MULTI) != 0);
	ctl_json_bool(json, "optional", (port->flags & FRAG_PORT_OPTIONAL) != 0);
	ctl_json_text(json, "condition",
		      (port->flags & FRAG_PORT_NO_CONDITION) != 0 ? NULL : condition);
	ctl_json_unsigned(json, "min_size", port->min_size > 0 ? port->min_size : 1);
	ctl_json_unsigned(json, "capacity", port->capacity);
	ctl_json_text(json, "policy", fragi_policy(port->policy)->name);
	json_tensors(json, port);
	ctl_json_close(json, '}');
}

static void json_param(struct ctl_json *json, const struct frag_param *param)
{
	char text[64];

	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "name", param->name);
	ctl_json_text(json, "type", fragi_param_kind_name(param->kind));
	ctl_json_text(json, "default", ctl_param_default(param, text, sizeof(text)));
	ctl_json_bool(json, "required", (param->flags & FRAG_PARAM_REQUIRED) != 0);
	ctl_json_bool(json, "optional", (param->flags & FRAG_PARAM_OPTIONAL) != 0);
	ctl_json_bool(json, "dynamic", (param->flags & FRAG_PARAM_DYNAMIC) != 0);
	if (param->min < param->max && param->min > -1e300)
		fprintf(ctl_json_value(json, "min"), "%.17g", param->min);
	if (param->min < param->max && param->max < 1e300)
		fprintf(ctl_json_value(json, "max"), "%.17g", param->max);
	if (param->choices != NULL) {
		ctl_json_open(json, "choices", '[');
		for (size_t i = 0; param->choices[i] != NULL; i++)
			ctl_json_text(json, NULL, param->choices[i]);
		ctl_json_close(json, ']');
	}
	ctl_json_text(json, "headline", param->headline);
	ctl_json_text(json, "description", param->description);
	ctl_json_close(json, '}');
}

static void json_value(struct ctl_json *json, const struct frag_type *type)
{
	ctl_json_unsigned(json, "size", type->size);
	ctl_json_bool(json, "crosses_processes", fragi_type_has_codec(type));
	ctl_json_open(json, "fields", '[');
	for (uint32_t i = 0; i < type->field_count; i++) {
		const struct frag_field *field = fragi_type_field_at(type, i);

		ctl_json_open(json, NULL, '{');
		ctl_json_text(json, "name", field->name);
		ctl_json_text(json, "type", field->type);
		ctl_json_unsigned(json, "count", field->count);
		ctl_json_unsigned(json, "offset", field->offset);
		ctl_json_close(json, '}');
	}
	ctl_json_close(json, ']');
}

static void json_type(struct ctl_json *json, const struct ctl_type *type)
{
	ctl_json_gap(json, "\n ");
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "name", type->name);
	ctl_json_text(json, "kind", ctl_type_kind_name(type->kind));
	ctl_json_text(json, "headline", type->headline);
	ctl_json_text(json, "description", type->description);
	ctl_json_text(json, "library", type->library);
	ctl_json_text(json, "plugin", type->plugin);
	ctl_json_text(json, "version", type->version);
	ctl_json_open(json, "ports", '[');
	for (uint32_t i = 0; i < type->port_count; i++)
		json_port(json, &type->ports[i]);
	ctl_json_close(json, ']');
	ctl_json_bool(json, "setup_adds_ports", type->adds_ports);
	ctl_json_open(json, "parameters", '[');
	for (uint32_t i = 0; i < type->param_count; i++)
		json_param(json, &type->params[i]);
	ctl_json_close(json, ']');
	if (type->saved_bytes > 0) {
		ctl_json_unsigned(json, "saved_bytes", type->saved_bytes);
		ctl_json_number(json, "save_period_ns", type->save_period_ns);
	}
	if (type->kind == CTL_VALUE)
		json_value(json, type->value);
	ctl_json_close(json, '}');
}

static void json_library(struct ctl_json *json, const struct ctl_library *library)
{
	ctl_json_gap(json, "\n ");
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "path", library->path);
	ctl_json_text(json, "plugin", library->plugin);
	ctl_json_text(json, "version", library->version);
	ctl_json_optional(json, "sha256", library->sha256);
	ctl_json_close(json, '}');
}

void ctl_library_print(const struct ctl_library *library, FILE *out)
{
	fprintf(out, "%s (library, plugin %s%s%s)\n", library->path, library->plugin,
		library->version[0] != '\0' ? " " : "", library->version);
	if (library->sha256[0] != '\0')
		fprintf(out, "  sha256 %s\n", library->sha256);
	fputc('\n', out);
}

void ctl_types_print_json(const struct ctl_type *types, size_t count,
			  const struct ctl_library *libraries, size_t library_count, FILE *out)
{
	struct ctl_json json = ctl_json_begin(out);

	ctl_json_open(&json, "types", '[');
	for (size_t i = 0; i < count; i++)
		json_type(&json, &types[i]);
	fputc('\n', out);
	ctl_json_close(&json, ']');
	ctl_json_open(&json, "libraries", '[');
	for (size_t i = 0; i < library_count; i++)
		json_library(&json, &libraries[i]);
	fputc('\n', out);
	ctl_json_close(&json, ']');
	ctl_json_end(&json);
}
