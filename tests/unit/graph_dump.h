/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_GRAPH_DUMP_H
#define TESTS_UNIT_GRAPH_DUMP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/policy.h>
#include <text/spec.h>

/*
 * A parsed graph as text, with all that the parser has decided. A line holds one object and names
 * it, so that two graphs can be compared line by line; what is not given is not shown.
 */
static FILE *dump;

/* What comes before a value that is not the usual one: " NAME". */
static inline bool dump_if(bool is_unusual, const char *name)
{
	if (is_unusual)
		fprintf(dump, " %s", name);
	return is_unusual;
}

static inline void dump_ns(const char *name, int64_t ns)
{
	static const struct {
		int64_t ns;
		const char *unit;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
	size_t i = 0;

	while (ns % units[i].ns != 0)
		i++;
	if (ns != 0)
		fprintf(dump, " %s %" PRId64 "%s", name, ns / units[i].ns, units[i].unit);
}

static inline void dump_text(const char *name, const char *text)
{
	if (text != NULL)
		fprintf(dump, " %s \"%s\"", name, text);
}

static inline void dump_count(const char *name, int64_t value)
{
	if (value != 0)
		fprintf(dump, " %s %" PRId64, name, value);
}

/* A value that is not given is -1. */
static inline void dump_given(const char *name, int64_t value)
{
	if (value != -1)
		fprintf(dump, " %s %" PRId64, name, value);
}

static inline void dump_place(const struct fragi_node *place)
{
	if (place != NULL)
		fprintf(dump, " @%s%s%d", strcmp(place->file, "g") != 0 ? place->file : "",
			strcmp(place->file, "g") != 0 ? ":" : "", place->line);
}

static inline void dump_value(const struct fragi_node *node)
{
	const char *before = "";

	if (node == NULL || node->kind == FRAGI_NODE_NULL) {
		fputs("~", dump);
		return;
	}
	if (node->kind == FRAGI_NODE_SCALAR) {
		fprintf(dump, node->quoted ? "\"%s\"" : "%s", node->text);
		return;
	}
	fputs(node->kind == FRAGI_NODE_LIST ? "[" : "{", dump);
	for (const struct fragi_node *child = node->first; child != NULL; child = child->next) {
		fputs(before, dump);
		if (node->kind == FRAGI_NODE_MAP)
			fprintf(dump, "%s: ", child->key->text);
		dump_value(child);
		before = ", ";
	}
	fputs(node->kind == FRAGI_NODE_LIST ? "]" : "}", dump);
}

static inline void dump_settings(const struct fragi_spec_setting *settings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		fprintf(dump, "%s%s: ", i > 0 ? ", " : " {", settings[i].name);
		dump_value(settings[i].value);
	}
	fputs(count > 0 ? "}" : "", dump);
}

static inline void dump_object(const char *what, const char *path,
			       const struct fragi_spec_object *object)
{
	fprintf(dump, "%s %s.%s %s", what, path, object->name != NULL ? object->name : "-",
		object->type);
	dump_count("kind", object->kind);
	dump_text("id", object->id);
	dump_if(object->is_shared, "shared");
	dump_text("scope", object->scope);
	dump_settings(object->settings, object->setting_count);
	dump_place(object->place);
	fputc('\n', dump);
}

static inline void dump_timing(const struct fragi_timing *timing)
{
	dump_count("take", timing->take);
	dump_count("missing", timing->missing);
	dump_ns("age", timing->age_ns);
	dump_text("default", timing->default_text);
}

static inline void dump_end(const struct fragi_spec_end *end)
{
	fprintf(dump, "%s%s%s%s%s", end->fragment != NULL ? end->fragment : "",
		end->fragment != NULL ? "." : "", end->op != NULL ? end->op : "?",
		end->port != NULL ? "." : "", end->port != NULL ? end->port : "");
}

static inline const char *dump_policy(enum frag_policy policy)
{
	return policy != FRAG_POLICY_DEFAULT ? fragi_policy(policy)->name : "default";
}

static inline void dump_flow(const char *path, const struct fragi_spec_flow *flow)
{
	fprintf(dump, "flow %s: ", path);
	dump_end(&flow->from);
	for (size_t i = 0; i < flow->to_count; i++) {
		fputs(i > 0 ? ", " : " -> ", dump);
		dump_end(&flow->to[i]);
	}
	dump_count("capacity", flow->capacity);
	if (flow->policy != FRAG_POLICY_DEFAULT)
		fprintf(dump, " %s", dump_policy(flow->policy));
	dump_text("edge", flow->edge);
	dump_if(flow->encrypt, "encrypt");
	dump_if(flow->is_dynamic, "dynamic");
	fprintf(dump, " order %u", flow->order);
	dump_place(flow->place);
	fputc('\n', dump);
}

static inline void dump_port(const char *path, const struct fragi_spec_port *port)
{
	fprintf(dump, "  port %s.%s", path, port->name);
	dump_count("capacity", port->capacity);
	if (port->policy != FRAG_POLICY_DEFAULT)
		fprintf(dump, " %s", dump_policy(port->policy));
	dump_if(port->no_condition, "no_condition");
	dump_timing(&port->timing);
	dump_ns("rate", port->rate_ns);
	dump_given("size", port->size);
	if (dump_if(port->timed != NULL, "timed"))
		dump_place(port->timed);
	dump_place(port->place);
	fputc('\n', dump);
}

static inline void dump_operator(const char *fragment, const struct fragi_spec_operator *op)
{
	char path[256];

	snprintf(path, sizeof(path), "%s.%s", fragment, op->name);
	fprintf(dump, "operator %s", path);
	dump_text("type", op->type);
	dump_text("subgraph", op->subgraph);
	dump_text("scope", op->scope);
	dump_settings(op->settings, op->setting_count);
	for (size_t i = 0; i < op->resource_count; i++)
		fprintf(dump, " $%s", op->resources[i].name);
	dump_ns("deadline", op->deadline.budget_ns);
	dump_if(op->deadline.from_acquisition, "from_acquisition");
	dump_count("on_miss", op->deadline.on_miss);
	dump_count("metadata_policy", op->metadata_policy);
	dump_given("metadata", op->metadata);
	dump_ns("watchdog", op->watchdog_ns);
	dump_ns("rate", op->rate_ns);
	dump_ns("budget", op->budget_ns);
	dump_if(op->is_invalid, "invalid");
	if (dump_if(op->align.place != NULL, "align")) {
		for (size_t i = 0; i < op->align.input_count; i++)
			fprintf(dump, " %s", op->align.inputs[i]);
		dump_ns("window", op->align.window_ns);
		dump_ns("timeout", op->align.timeout_ns);
	}
	dump_place(op->place);
	fputc('\n', dump);
	for (size_t i = 0; i < op->condition_count; i++)
		dump_object("  condition", path, &op->conditions[i]);
	for (size_t i = 0; i < op->port_count; i++)
		dump_port(path, &op->ports[i]);
}

static inline void dump_cores(const uint32_t *cores, size_t count)
{
	if (count > 0)
		fputs(" cores", dump);
	for (size_t i = 0; i < count; i++)
		fprintf(dump, " %u", cores[i]);
}

static inline void dump_realtime(const struct fragi_realtime *realtime)
{
	char text[200];

	if (realtime->policy != FRAGI_SCHED_NONE)
		fprintf(dump, " %s", fragi_realtime_text(realtime, text, sizeof(text)));
	dump_count("priority", realtime->priority);
	dump_ns("runtime", (int64_t)realtime->runtime_ns);
	dump_ns("deadline", (int64_t)realtime->deadline_ns);
	dump_ns("period", (int64_t)realtime->period_ns);
}

static inline void dump_thread_pool(const char *fragment, const struct fragi_spec_thread_pool *pool)
{
	fprintf(dump, "thread_pool %s.%s size %u", fragment, pool->name, pool->initial_size);
	dump_place(pool->place);
	fputc('\n', dump);
	for (size_t i = 0; i < pool->entry_count; i++) {
		const struct fragi_spec_pool_entry *entry = &pool->entries[i];

		fprintf(dump, "  add to %s:", pool->name);
		for (size_t k = 0; k < entry->member_count; k++)
			fprintf(dump, " %s", entry->members[k].op);
		dump_if(entry->pin_operator, "pinned");
		dump_cores(entry->pin_cores, entry->pin_core_count);
		dump_realtime(&entry->realtime);
		dump_if(entry->best_effort, "best_effort");
		dump_place(entry->place);
		fputc('\n', dump);
	}
}

static inline void dump_clock_config(const char *path, const struct fragi_clock_config *clock)
{
	static const char *const kinds[] = {"machine", "realtime", "manual", "synthetic"};

	fprintf(dump, "clock %s: %s", path, kinds[clock->kind]);
	if (clock->kind == FRAGI_CLOCK_REALTIME)
		fprintf(dump, " offset %g scale %g", clock->offset_s, clock->scale);
	dump_if(clock->since_epoch, "since_epoch");
	dump_ns("initial", clock->initial_ns);
	dump_ns("max_error", clock->max_error_ns);
	fputc('\n', dump);
}

static inline void dump_clock(const char *path, const struct fragi_spec_clock *clock)
{
	if (clock->place != NULL || clock->config.max_error_ns != 0)
		dump_clock_config(path, &clock->config);
}

static inline void dump_scheduler(const char *path, const struct fragi_spec_scheduler *scheduler)
{
	fprintf(dump, "scheduler %s: %s", path,
		scheduler->kind == FRAGI_SCHEDULER_GREEDY ? "greedy" : "event_based");
	dump_count("threads", scheduler->worker_thread_number);
	dump_if(!scheduler->stop_on_deadlock, "goes_on_at_deadlock");
	dump_count("timeout_ms", scheduler->stop_on_deadlock_timeout_ms);
	dump_count("max_duration_ms", scheduler->max_duration_ms);
	fprintf(dump, " recession %g", scheduler->check_recession_period_ms);
	dump_cores(scheduler->pin_cores, scheduler->pin_core_count);
	dump_if(scheduler->require_pin_cores, "require_pin_cores");
	dump_if(scheduler->pins_strictly, "pins_strictly");
	fputc('\n', dump);
}

static inline void dump_on_failure(const char *path, const struct fragi_spec_on_failure *on_failure)
{
	static const char *const policies[] = {"stop", "restart", "migrate"};

	fprintf(dump, "on_failure %s: %s", path, policies[on_failure->policy]);
	dump_count("intensity", on_failure->intensity);
	dump_ns("period", on_failure->period_ns);
	dump_ns("backoff", on_failure->backoff_ns);
	dump_ns("lease", on_failure->lease_ns);
	fputc('\n', dump);
}

static inline void dump_names(const char *what, const struct fragi_node **nodes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fprintf(dump, " %s %s", what, nodes[i]->text);
}

static inline void dump_requirements(const char *path, const struct fragi_spec_requirements *wants)
{
	if (wants->place == NULL)
		return;
	fprintf(dump, "requirements %s:", path);
	for (int i = 0; i < FRAGI_AMOUNTS; i++) {
		char name[40];

		dump_count(fragi_amount_name((enum fragi_amount)i), wants->wanted[i]);
		snprintf(name, sizeof(name), "%sLimit", fragi_amount_name((enum fragi_amount)i));
		dump_count(name, wants->limit[i]);
	}
	dump_if(wants->gives_cpu, "gives_cpu");
	if (wants->mig != NULL)
		fprintf(dump, " mig %s", wants->mig->text);
	for (size_t i = 0; i < wants->label_count; i++)
		fprintf(dump, " %s=%s", wants->labels[i].key, wants->labels[i].value);
	dump_names("near", wants->near, wants->near_count);
	dump_names("apart", wants->apart, wants->apart_count);
	dump_place(wants->place);
	fputc('\n', dump);
}

static inline void dump_tracking(const char *path, const struct fragi_spec_tracking *tracking)
{
	if (!tracking->is_on)
		return;
	fprintf(dump, "tracking %s:", path);
	dump_count("skip", tracking->skip);
	dump_count("discard", tracking->discard);
	dump_count("threshold_ms", tracking->threshold_ms);
	dump_if(tracking->is_limited, "limited");
	for (size_t i = 0; i < tracking->probe_count; i++) {
		fputs(" probe ", dump);
		dump_end(&tracking->probes[i]);
	}
	dump_text("log", tracking->log);
	dump_count("buffered", tracking->buffered);
	dump_if(tracking->print, "print");
	dump_place(tracking->place);
	fputc('\n', dump);
}

static inline void dump_deadlines(const char *path, const struct fragi_spec_path *paths,
				  size_t count)
{
	for (size_t i = 0; i < count; i++) {
		fprintf(dump, "deadline %s:", path);
		for (size_t k = 0; k < paths[i].op_count; k++) {
			fputc(' ', dump);
			dump_end(&paths[i].ops[k]);
		}
		dump_ns("budget", paths[i].budget_ns);
		dump_count("on_miss", paths[i].on_miss);
		dump_place(paths[i].place);
		fputc('\n', dump);
	}
}

static inline void dump_extensions(const char *path, const struct fragi_spec_extension *extensions,
				   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		fprintf(dump, "extension %s: %s", path, extensions[i].library);
		dump_text("named", extensions[i].named);
		dump_text("sha256", extensions[i].sha256);
		dump_place(extensions[i].place);
		fputc('\n', dump);
	}
}

static inline void dump_fragment(const struct fragi_spec_fragment *fragment)
{
	const char *name = fragment->name;

	fprintf(dump, "fragment %s", name);
	dump_text("compose", fragment->compose);
	dump_if(fragment->is_composed, "composed");
	dump_if(fragment->lost_resources, "lost_resources");
	dump_text("host", fragment->host);
	dump_ns("watchdog", fragment->watchdog_ns);
	dump_given("metadata", fragment->metadata);
	dump_count("metadata_policy", fragment->metadata_policy);
	dump_place(fragment->place);
	fputc('\n', dump);
	dump_extensions(name, fragment->extensions, fragment->extension_count);
	for (size_t i = 0; i < fragment->resource_count; i++)
		dump_object("resource", name, &fragment->resources[i]);
	for (size_t i = 0; i < fragment->logger_count; i++)
		dump_object("logger", name, &fragment->loggers[i]);
	for (size_t i = 0; i < fragment->operator_count; i++)
		dump_operator(name, &fragment->operators[i]);
	for (size_t i = 0; i < fragment->flow_count; i++)
		dump_flow(name, &fragment->flows[i]);
	dump_scheduler(name, &fragment->scheduler);
	for (size_t i = 0; i < fragment->thread_pool_count; i++)
		dump_thread_pool(name, &fragment->thread_pools[i]);
	dump_on_failure(name, &fragment->on_failure);
	dump_tracking(name, &fragment->tracking);
	dump_clock(name, &fragment->clock);
	dump_deadlines(name, fragment->deadlines, fragment->deadline_count);
	dump_requirements(name, &fragment->requirements);
}

static inline void dump_party(const char *what, const struct fragi_spec_party *party)
{
	if (party->fragment != NULL)
		fprintf(dump, " %s %s%s%s", what, party->fragment, party->op != NULL ? "." : "",
			party->op != NULL ? party->op : "");
}

static inline void dump_variable(const struct fragi_spec_variable *variable)
{
	fprintf(dump, "variable %s", variable->name);
	dump_text("path", variable->path);
	fprintf(dump, " dtype %u.%u.%u", variable->dtype.code, variable->dtype.bits,
		variable->dtype.lanes);
	for (int32_t i = 0; i < variable->ndim; i++)
		fprintf(dump, "%s%" PRId64, i > 0 ? ", " : " shape ", variable->shape[i]);
	dump_if(variable->is_dynamic, "dynamic");
	dump_party("writer", &variable->writer);
	for (size_t i = 0; i < variable->reader_count; i++)
		dump_party("reader", &variable->readers[i]);
	dump_place(variable->place);
	fputc('\n', dump);
}

static inline void dump_argument(const struct fragi_spec_argument *argument)
{
	fprintf(dump, "argument %s", argument->name);
	dump_text("value", argument->value);
	dump_text("default", argument->default_text);
	dump_text("help", argument->help);
	for (size_t i = 0; argument->choices != NULL && argument->choices[i] != NULL; i++)
		dump_text(i == 0 ? "of" : "or", argument->choices[i]);
	dump_if(argument->is_boolean, "boolean");
	fputc('\n', dump);
}

static inline void dump_diag(const char *what, const struct fragi_diag *diag)
{
	char line[1400];

	for (size_t i = 0; i < diag->count; i++) {
		const struct frag_err *err = &diag->items[i];

		fprintf(dump, "%s%s", what, fragi_err_line(err, line, sizeof(line)));
		dump_if(err->code != -EINVAL, strerrorname_np(-err->code));
		if (err->failure != 0 || err->op[0] != '\0')
			fprintf(dump, " (failure %d, %s)", err->failure, err->op);
		fputc('\n', dump);
	}
	if (diag->beyond > 0)
		fprintf(dump, "%sand %zu more\n", what, diag->beyond);
}

/* Which fragments go together: near one another, and in one host. */
static inline void dump_together(const struct fragi_spec *spec)
{
	struct fragi_spec_group group = {0};

	if (fragi_spec_group(spec, &group) == 0)
		for (size_t i = 0; i < spec->fragment_count; i++)
			if (group.of[i] != i)
				fprintf(dump, "near %s: %s\n", spec->fragments[i].name,
					spec->fragments[group.of[i]].name);
	fragi_spec_group_fini(&group);
	for (size_t i = 0; i < spec->fragment_count; i++)
		for (size_t k = i + 1; k < spec->fragment_count; k++)
			if (fragi_spec_share_host(&spec->fragments[i], &spec->fragments[k]))
				fprintf(dump, "in one host: %s, %s\n", spec->fragments[i].name,
					spec->fragments[k].name);
}

static inline void dump_spec(struct fragi_spec *spec)
{
	fprintf(dump, "application %s", spec->application);
	dump_if(spec->has_extensions, "has_extensions");
	dump_if(!spec->metadata, "no_metadata");
	dump_count("metadata_policy", spec->metadata_policy);
	fputc('\n', dump);
	for (size_t i = 0; i < spec->argument_count; i++)
		dump_argument(&spec->arguments[i]);
	fputs(fragi_spec_arguments_help(spec), dump);
	fputs("config ", dump);
	dump_value(spec->config);
	fputc('\n', dump);
	for (size_t i = 0; i < spec->fragment_count; i++)
		dump_fragment(&spec->fragments[i]);
	for (size_t i = 0; i < spec->flow_count; i++)
		dump_flow("between", &spec->flows[i]);
	for (size_t i = 0; i < spec->logger_count; i++)
		dump_object("logger", "all", &spec->loggers[i]);
	for (size_t i = 0; i < spec->variable_count; i++)
		dump_variable(&spec->variables[i]);
	for (size_t i = 0; i < spec->service_count; i++)
		dump_object("service", "all", &spec->services[i]);
	dump_extensions("all", spec->extensions, spec->extension_count);
	dump_clock("all", &spec->clock);
	dump_tracking("all", &spec->tracking);
	dump_deadlines("all", spec->deadlines, spec->deadline_count);
	dump_together(spec);
	dump_diag("warning ", &spec->warnings);
	dump_diag("remark ", &spec->remarks);
}

#endif
