/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include <base/json.h>
#include <base/policy.h>
#include <base/units.h>
#include <data/type_check.h>
#include <fragctl/inspect.h>
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
static const char *range(const struct frag_param *param, char *out, size_t size)
{
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

static const char *flags(const struct frag_param *param, char *out, size_t size)
{
	snprintf(out, size, "%s%s",
		 (param->flags & FRAG_PARAM_REQUIRED) != 0   ? "required "
		 : (param->flags & FRAG_PARAM_OPTIONAL) != 0 ? "optional "
							     : "",
		 (param->flags & FRAG_PARAM_DYNAMIC) != 0 ? "dynamic " : "");
	if (out[0] != '\0')
		out[strlen(out) - 1] = '\0';
	return out;
}

/* A line without blanks at its end. */
static void print_line(char *line, FILE *out)
{
	size_t length = strlen(line);

	while (length > 0 && line[length - 1] == ' ')
		length--;
	fprintf(out, "%.*s\n", (int)length, line);
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
	}
	if (type->kind == CTL_OPERATOR && type->adds_ports)
		fputs(type->port_count > 0 ? "  setup may add more\n"
					   : "\nports are added by setup\n",
		      out);
}

static void print_params(const struct ctl_type *type, FILE *out)
{
	static const char *const heads[] = {"name", "type", "default", "range", "flags"};
	int widths[] = {4, 4, 7, 5, 5};
	char text[3][200], line[1200];
	const char *cells[5];
	size_t used;

	if (type->param_count == 0) {
		if (type->kind != CTL_COMPOSER && type->kind != CTL_SUBGRAPH &&
		    type->kind != CTL_VALUE)
			fputs("\nno parameters\n", out);
		return;
	}
	fputs("\nparameters\n", out);
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i <= type->param_count; i++) {
			const struct frag_param *param = &type->params[i > 0 ? i - 1 : 0];

			cells[0] = param->name;
			cells[1] = fragi_param_kind_name(param->kind);
			cells[2] = ctl_param_default(param, text[0], sizeof(text[0]));
			cells[2] = cells[2] == NULL ? "-" : cells[2][0] == '\0' ? "\"\"" : cells[2];
			cells[3] = range(param, text[1], sizeof(text[1]));
			cells[4] = flags(param, text[2], sizeof(text[2]));
			used = 0;
			for (int c = 0; c < 5; c++) {
				const char *cell = i == 0 ? heads[c] : cells[c];

				if (pass == 0 && (int)strlen(cell) > widths[c])
					widths[c] = (int)strlen(cell);
				else if (pass == 1 && used < sizeof(line))
					used += (size_t)snprintf(line + used, sizeof(line) - used,
								 "  %-*s", widths[c], cell);
			}
			if (pass == 0)
				continue;
			if (used < sizeof(line))
				snprintf(line + used, sizeof(line) - used, "  %s",
					 i == 0 ? "" : or_empty(param->headline));
			print_line(line, out);
		}
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

static void json_member(const char *name, const char *text, FILE *out)
{
	fprintf(out, ", \"%s\": ", name);
	fragi_json_text(text, out);
}

static void json_port(const struct frag_port *port, FILE *out)
{
	fputs("{\"name\": ", out);
	fragi_json_text(port->name, out);
	json_member("direction", port->dir == FRAG_IN ? "in" : "out", out);
	json_member("type", port->type != NULL ? port->type : "message", out);
	json_member("headline", port->headline, out);
	fprintf(out, ", \"multi\": %s, \"optional\": %s",
		(port->flags & FRAG_PORT_MULTI) != 0 ? "true" : "false",
		(port->flags & FRAG_PORT_OPTIONAL) != 0 ? "true" : "false");
	json_member("condition",
		    (port->flags & FRAG_PORT_NO_CONDITION) != 0 ? NULL
		    : port->dir == FRAG_IN                      ? "message_available"
								: "downstream_affordable",
		    out);
	fprintf(out, ", \"min_size\": %u, \"capacity\": %u",
		port->min_size > 0 ? port->min_size : 1, port->capacity);
	json_member("policy", fragi_policy(port->policy)->name, out);
	fputc('}', out);
}

static void json_param(const struct frag_param *param, FILE *out)
{
	char text[64];

	fputs("{\"name\": ", out);
	fragi_json_text(param->name, out);
	json_member("type", fragi_param_kind_name(param->kind), out);
	json_member("default", ctl_param_default(param, text, sizeof(text)), out);
	fprintf(out, ", \"required\": %s, \"optional\": %s, \"dynamic\": %s",
		(param->flags & FRAG_PARAM_REQUIRED) != 0 ? "true" : "false",
		(param->flags & FRAG_PARAM_OPTIONAL) != 0 ? "true" : "false",
		(param->flags & FRAG_PARAM_DYNAMIC) != 0 ? "true" : "false");
	if (param->min < param->max && param->min > -1e300)
		fprintf(out, ", \"min\": %.17g", param->min);
	if (param->min < param->max && param->max < 1e300)
		fprintf(out, ", \"max\": %.17g", param->max);
	if (param->choices != NULL) {
		fputs(", \"choices\": [", out);
		for (size_t i = 0; param->choices[i] != NULL; i++) {
			fputs(i > 0 ? ", " : "", out);
			fragi_json_text(param->choices[i], out);
		}
		fputc(']', out);
	}
	json_member("headline", param->headline, out);
	json_member("description", param->description, out);
	fputc('}', out);
}

static void json_value(const struct frag_type *type, FILE *out)
{
	fprintf(out, ", \"size\": %zu, \"crosses_processes\": %s, \"fields\": [", type->size,
		fragi_type_has_codec(type) ? "true" : "false");
	for (uint32_t i = 0; i < type->field_count; i++) {
		const struct frag_field *field = fragi_type_field_at(type, i);

		fprintf(out, "%s{\"name\": ", i > 0 ? ", " : "");
		fragi_json_text(field->name, out);
		json_member("type", field->type, out);
		fprintf(out, ", \"count\": %u, \"offset\": %u}", field->count, field->offset);
	}
	fputc(']', out);
}

static void json_type(const struct ctl_type *type, FILE *out)
{
	fputs("{\"name\": ", out);
	fragi_json_text(type->name, out);
	json_member("kind", ctl_type_kind_name(type->kind), out);
	json_member("headline", type->headline, out);
	json_member("description", type->description, out);
	json_member("library", type->library, out);
	json_member("plugin", type->plugin, out);
	json_member("version", type->version, out);
	fputs(", \"ports\": [", out);
	for (uint32_t i = 0; i < type->port_count; i++) {
		fputs(i > 0 ? ", " : "", out);
		json_port(&type->ports[i], out);
	}
	fprintf(out, "], \"setup_adds_ports\": %s, \"parameters\": [",
		type->adds_ports ? "true" : "false");
	for (uint32_t i = 0; i < type->param_count; i++) {
		fputs(i > 0 ? ", " : "", out);
		json_param(&type->params[i], out);
	}
	fputs("]", out);
	if (type->saved_bytes > 0)
		fprintf(out, ", \"saved_bytes\": %zu, \"save_period_ns\": %lld", type->saved_bytes,
			(long long)type->save_period_ns);
	if (type->kind == CTL_VALUE)
		json_value(type->value, out);
	fputs("}", out);
}

static void json_library(const struct ctl_library *library, FILE *out)
{
	fputs("{\"path\": ", out);
	fragi_json_text(library->path, out);
	json_member("plugin", library->plugin, out);
	json_member("version", library->version, out);
	json_member("sha256", library->sha256[0] != '\0' ? library->sha256 : NULL, out);
	fputs("}", out);
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
	fputs("{\"types\": [", out);
	for (size_t i = 0; i < count; i++) {
		fputs(i > 0 ? ",\n " : "\n ", out);
		json_type(&types[i], out);
	}
	fputs("\n], \"libraries\": [", out);
	for (size_t i = 0; i < library_count; i++) {
		fputs(i > 0 ? ",\n " : "\n ", out);
		json_library(&libraries[i], out);
	}
	fputs("\n]}\n", out);
}
