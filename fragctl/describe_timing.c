// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include <base/units.h>
#include <fragctl/describe.h>

/* The timing of inputs in a plan, and deadlines. */

static const char *const takes[] = {"every", "latest_within"};
static const char *const missings[] = {"wait", "skip", "reuse_last", "default"};

static void print_port(const struct fragi_port *port, FILE *out)
{
	const struct fragi_timing *timing = port->timing;
	char age[32];

	fprintf(out, "%s(take: %s", port->name, takes[timing->take]);
	if (timing->age_ns > 0)
		fprintf(out, ", age: %s", fragi_format_duration(timing->age_ns, age, sizeof(age)));
	fprintf(out, ", missing: %s%s)", missings[timing->missing],
		port->is_aligned ? ", aligned" : "");
}

static const char *const on_misses[] = {"count", "drop", "stop"};

static const char *from_of(const struct fragi_deadline *deadline)
{
	return deadline->from_acquisition ? "acquisition" : "tick";
}

void ctl_timing_print(const struct frag_op *op, FILE *out)
{
	bool first = true;
	char time[32];

	if (op->deadline.budget_ns > 0)
		fprintf(out, "\n      deadline   %s from %s, on_miss: %s",
			fragi_format_duration(op->deadline.budget_ns, time, sizeof(time)),
			from_of(&op->deadline), on_misses[op->deadline.on_miss]);
	for (uint32_t i = 0; i < op->port_count; i++) {
		if (op->ports[i].timing == NULL)
			continue;
		fputs(first ? "\n      timing     " : ", ", out);
		print_port(&op->ports[i], out);
		first = false;
	}
	if (op->align.window_ns == 0)
		return;
	fprintf(out, "; window %s", fragi_format_duration(op->align.window_ns, time, sizeof(time)));
	if (op->align.timeout_ns > 0)
		fprintf(out, ", timeout %s",
			fragi_format_duration(op->align.timeout_ns, time, sizeof(time)));
}

void ctl_timing_json(struct ctl_json *json, const struct fragi_port *port)
{
	const struct fragi_timing *timing = port->timing;

	if (timing == NULL)
		return;
	ctl_json_open(json, "timing", '{');
	ctl_json_text(json, "take", takes[timing->take]);
	ctl_json_number(json, "age_ns", timing->age_ns);
	ctl_json_text(json, "missing", missings[timing->missing]);
	ctl_json_text(json, "default", timing->default_text);
	ctl_json_bool(json, "aligned", port->is_aligned);
	ctl_json_close(json, '}');
}

void ctl_timing_json_op(struct ctl_json *json, const struct frag_op *op)
{
	if (op->deadline.budget_ns > 0) {
		ctl_json_open(json, "deadline", '{');
		ctl_json_number(json, "budget_ns", op->deadline.budget_ns);
		ctl_json_text(json, "from", from_of(&op->deadline));
		ctl_json_text(json, "on_miss", on_misses[op->deadline.on_miss]);
		ctl_json_close(json, '}');
	}
	if (op->align.window_ns > 0) {
		ctl_json_open(json, "align", '{');
		ctl_json_number(json, "window_ns", op->align.window_ns);
		ctl_json_number(json, "timeout_ns", op->align.timeout_ns);
		ctl_json_close(json, '}');
	}
}

static void each_path(const struct fragi_spec *spec, const struct ctl_composed *composed,
		      void (*fn)(const struct fragi_spec_path *path, bool is_first, void *arg),
		      void *arg)
{
	bool is_first = true;

	for (uint32_t f = 0; f <= composed->fragment_count; f++) {
		const struct frag_fragment *fragment = f > 0 ? composed->fragments[f - 1] : NULL;
		const struct fragi_spec_path *paths =
			fragment != NULL ? fragment->own->deadlines : spec->deadlines;
		size_t count =
			fragment != NULL ? fragment->own->deadline_count : spec->deadline_count;

		for (size_t i = 0; i < count; i++, is_first = false)
			fn(&paths[i], is_first, arg);
		for (uint32_t i = 0; fragment != NULL && i < fragment->path_count; i++) {
			fn(&fragment->paths[i], is_first, arg);
			is_first = false;
		}
	}
}

static void print_path(const struct fragi_spec_path *path, bool is_first, void *arg)
{
	FILE *out = arg;
	char time[32];

	fputs(is_first ? "\ndeadlines of paths\n  " : "  ", out);
	for (size_t i = 0; i < path->op_count; i++)
		fprintf(out, "%s%s.%s", i > 0 ? " -> " : "", path->ops[i].fragment,
			path->ops[i].op);
	fprintf(out, ": %s, on_miss: %s\n",
		fragi_format_duration(path->budget_ns, time, sizeof(time)),
		on_misses[path->on_miss]);
}

static void json_path(const struct fragi_spec_path *path, bool is_first, void *arg)
{
	char name[2 * (FRAG_NAME_MAX + 1)];
	struct ctl_json *json = arg;

	if (is_first) {
		ctl_json_gap(json, "\n ");
		ctl_json_open(json, "deadlines", '[');
	}
	ctl_json_gap(json, "\n  ");
	ctl_json_open(json, NULL, '{');
	ctl_json_open(json, "path", '[');
	for (size_t i = 0; i < path->op_count; i++) {
		snprintf(name, sizeof(name), "%s.%s", path->ops[i].fragment, path->ops[i].op);
		ctl_json_text(json, NULL, name);
	}
	ctl_json_close(json, ']');
	ctl_json_number(json, "budget_ns", path->budget_ns);
	ctl_json_text(json, "on_miss", on_misses[path->on_miss]);
	ctl_json_close(json, '}');
}

void ctl_paths_print(const struct fragi_spec *spec, const struct ctl_composed *composed, FILE *out)
{
	each_path(spec, composed, print_path, out);
}

static bool has_paths(const struct fragi_spec *spec, const struct ctl_composed *composed)
{
	size_t count = spec->deadline_count;

	for (uint32_t f = 0; f < composed->fragment_count; f++)
		count += composed->fragments[f]->own->deadline_count +
			 composed->fragments[f]->path_count;
	return count > 0;
}

void ctl_paths_json(struct ctl_json *json, const struct fragi_spec *spec,
		    const struct ctl_composed *composed)
{
	each_path(spec, composed, json_path, json);
	if (has_paths(spec, composed))
		ctl_json_close(json, ']');
}
