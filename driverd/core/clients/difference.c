// SPDX-License-Identifier: Apache-2.0
#include <base/sentence.h>
#include <driverd/core/clients/difference.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VALUE_MAX 40 /* bytes of a value that are shown */

FRAG_PRINTF(4, 5)
static struct drv_difference *add(struct drv_differences *out, enum fw_effect effect,
				  const char *fragment, const char *format, ...)
{
	struct drv_difference *row = &out->rows[out->count];
	char what[512];
	va_list args;

	if (out->count == FW_CHANGES_MAX) {
		out->more++;
		if (effect > out->more_effect)
			out->more_effect = effect;
		return NULL;
	}
	va_start(args, format);
	fragi_sentence_of(what, sizeof(what), format, args);
	va_end(args);
	*row = (struct drv_difference){.change = {.effect = effect}, .fragment = fragment};
	row->change.what = fragi_arena_strdup(out->arena, what);
	row->change.set = "";
	if (row->change.what == NULL) {
		out->out_of_memory = true;
		row->change.what = "";
	}
	out->count++;
	return row;
}

static bool texts_same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool nodes_same(const struct fragi_node *a, const struct fragi_node *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	if (a->kind != b->kind || a->quoted != b->quoted)
		return false;
	if (a->kind == FRAGI_NODE_SCALAR)
		return strcmp(a->text, b->text) == 0;
	a = a->first;
	b = b->first;
	for (; a != NULL && b != NULL; a = a->next, b = b->next)
		if (!nodes_same(a, b) ||
		    (a->key != NULL && strcmp(a->key->text, b->key->text) != 0)) /* of a map */
			return false;
	return a == b;
}

/* A value as a person reads it. */
static const char *shown(const struct fragi_node *node, char *out)
{
	if (node == NULL)
		return "its default";
	if (node->kind != FRAGI_NODE_SCALAR)
		return node->kind == FRAGI_NODE_LIST  ? "[...]"
		       : node->kind == FRAGI_NODE_MAP ? "{...}"
						      : "nothing";
	snprintf(out, VALUE_MAX, "%s", node->text);
	return out;
}

static const struct fragi_node *value_of(const struct fragi_spec_setting *settings, size_t count,
					 const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(settings[i].name, name) == 0)
			return settings[i].value;
	return NULL;
}

static void compare_value(const char *fragment, const char *op, const char *name,
			  const struct fragi_node *before, const struct fragi_node *after,
			  struct drv_differences *out)
{
	bool may_set = after != NULL && after->kind == FRAGI_NODE_SCALAR;
	char old[VALUE_MAX], new[VALUE_MAX];
	struct drv_difference *row;

	/* A value that was set live is kept without its quotes. */
	if (nodes_same(before, after) ||
	    (may_set && before != NULL && before->kind == FRAGI_NODE_SCALAR &&
	     after->text[0] != '$' && strcmp(before->text, after->text) == 0))
		return;
	row = add(out, may_set ? FW_EFFECT_SET : FW_EFFECT_FRAGMENT, fragment, "%s.%s.%s: %s -> %s",
		  fragment, op, name, shown(before, old), shown(after, new));
	if (row == NULL || !may_set)
		return;
	row->op = op;
	row->param = name;
	row->change.set =
		fragi_arena_printf(out->arena, "%s.%s.%s=%s", fragment, op, name, after->text);
	if (row->change.set == NULL)
		out->out_of_memory = true;
}

static void compare_parameters(const char *fragment, const struct fragi_spec_operator *a,
			       const struct fragi_spec_operator *b, struct drv_differences *out)
{
	for (size_t i = 0; i < b->setting_count; i++)
		compare_value(fragment, b->name, b->settings[i].name,
			      value_of(a->settings, a->setting_count, b->settings[i].name),
			      b->settings[i].value, out);
	for (size_t i = 0; i < a->setting_count; i++)
		if (value_of(b->settings, b->setting_count, a->settings[i].name) == NULL)
			compare_value(fragment, b->name, a->settings[i].name, a->settings[i].value,
				      NULL, out);
}

static bool objects_same(const struct fragi_spec_object *a, size_t a_count,
			 const struct fragi_spec_object *b, size_t b_count)
{
	bool same = a_count == b_count;

	for (size_t i = 0; same && i < a_count; i++) {
		same = texts_same(a[i].name, b[i].name) && texts_same(a[i].type, b[i].type) &&
		       a[i].kind == b[i].kind && texts_same(a[i].id, b[i].id) &&
		       a[i].is_shared == b[i].is_shared && texts_same(a[i].scope, b[i].scope) &&
		       a[i].setting_count == b[i].setting_count;
		for (size_t k = 0; same && k < a[i].setting_count; k++)
			same = nodes_same(
				a[i].settings[k].value,
				value_of(b[i].settings, b[i].setting_count, a[i].settings[k].name));
	}
	return same;
}

static bool ends_same(const struct fragi_spec_end *a, const struct fragi_spec_end *b)
{
	return texts_same(a->fragment, b->fragment) && texts_same(a->op, b->op) &&
	       texts_same(a->port, b->port);
}

static bool end_lists_same(const struct fragi_spec_end *a, size_t a_count,
			   const struct fragi_spec_end *b, size_t b_count)
{
	bool same = a_count == b_count;

	for (size_t i = 0; same && i < a_count; i++)
		same = ends_same(&a[i], &b[i]);
	return same;
}

static bool flows_same(const struct fragi_spec_flow *a, size_t a_count,
		       const struct fragi_spec_flow *b, size_t b_count)
{
	bool same = a_count == b_count;

	for (size_t i = 0; same && i < a_count; i++)
		same = ends_same(&a[i].from, &b[i].from) &&
		       end_lists_same(a[i].to, a[i].to_count, b[i].to, b[i].to_count) &&
		       a[i].capacity == b[i].capacity && a[i].policy == b[i].policy &&
		       texts_same(a[i].edge, b[i].edge) && a[i].encrypt == b[i].encrypt &&
		       a[i].is_dynamic == b[i].is_dynamic;
	return same;
}

static bool timing_same(const struct fragi_timing *a, const struct fragi_timing *b)
{
	return a->take == b->take && a->missing == b->missing && a->age_ns == b->age_ns &&
	       texts_same(a->default_text, b->default_text);
}

static bool ports_same(const struct fragi_spec_operator *a, const struct fragi_spec_operator *b)
{
	bool same = a->port_count == b->port_count;

	for (size_t i = 0; same && i < a->port_count; i++)
		same = strcmp(a->ports[i].name, b->ports[i].name) == 0 &&
		       a->ports[i].capacity == b->ports[i].capacity &&
		       a->ports[i].policy == b->ports[i].policy &&
		       a->ports[i].no_condition == b->ports[i].no_condition &&
		       a->ports[i].rate_ns == b->ports[i].rate_ns &&
		       a->ports[i].size == b->ports[i].size &&
		       timing_same(&a->ports[i].timing, &b->ports[i].timing);
	return same;
}

/* Operators and flows, from which tables are made that the driver keeps for the whole run. */
static bool shape_same(const struct fragi_spec_fragment *a, const struct fragi_spec_fragment *b)
{
	bool same = a->operator_count == b->operator_count && texts_same(a->compose, b->compose) &&
		    flows_same(a->flows, a->flow_count, b->flows, b->flow_count);

	for (size_t i = 0; same && i < a->operator_count; i++)
		same = strcmp(a->operators[i].name, b->operators[i].name) == 0 &&
		       texts_same(a->operators[i].type, b->operators[i].type) &&
		       texts_same(a->operators[i].subgraph, b->operators[i].subgraph) &&
		       ports_same(&a->operators[i], &b->operators[i]);
	return same;
}

static bool node_lists_same(const struct fragi_node **a, size_t a_count,
			    const struct fragi_node **b, size_t b_count)
{
	bool same = a_count == b_count;

	for (size_t i = 0; same && i < a_count; i++)
		same = nodes_same(a[i], b[i]);
	return same;
}

static const char *mig_of(const struct fragi_spec_requirements *requirements)
{
	return requirements->mig != NULL ? requirements->mig->text : NULL;
}

static bool requirements_same(const struct fragi_spec_requirements *a,
			      const struct fragi_spec_requirements *b)
{
	bool same = memcmp(a->wanted, b->wanted, sizeof(a->wanted)) == 0 &&
		    memcmp(a->limit, b->limit, sizeof(a->limit)) == 0 &&
		    a->gives_cpu == b->gives_cpu && a->label_count == b->label_count &&
		    texts_same(mig_of(a), mig_of(b)) &&
		    node_lists_same(a->near, a->near_count, b->near, b->near_count) &&
		    node_lists_same(a->apart, a->apart_count, b->apart, b->apart_count);

	for (size_t i = 0; same && i < a->label_count; i++)
		same = strcmp(a->labels[i].key, b->labels[i].key) == 0 &&
		       strcmp(a->labels[i].value, b->labels[i].value) == 0;
	return same;
}

static bool places_same(const struct fragi_spec_fragment *a, const struct fragi_spec_fragment *b)
{
	return texts_same(a->host, b->host) &&
	       fragi_spec_same_on_failure(&a->on_failure, &b->on_failure) &&
	       requirements_same(&a->requirements, &b->requirements);
}

static bool extensions_same(const struct fragi_spec_fragment *a,
			    const struct fragi_spec_fragment *b)
{
	bool same = a->extension_count == b->extension_count;

	for (size_t i = 0; same && i < a->extension_count; i++)
		same = strcmp(a->extensions[i].library, b->extensions[i].library) == 0 &&
		       texts_same(a->extensions[i].sha256, b->extensions[i].sha256);
	return same;
}

static bool cores_same(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count)
{
	return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof(*a)) == 0);
}

static bool numbers_same(double a, double b)
{
	return !(a < b) && !(a > b);
}

static bool schedulers_same(const struct fragi_spec_scheduler *a,
			    const struct fragi_spec_scheduler *b)
{
	return a->kind == b->kind && a->worker_thread_number == b->worker_thread_number &&
	       a->stop_on_deadlock == b->stop_on_deadlock &&
	       a->stop_on_deadlock_timeout_ms == b->stop_on_deadlock_timeout_ms &&
	       a->max_duration_ms == b->max_duration_ms &&
	       numbers_same(a->check_recession_period_ms, b->check_recession_period_ms) &&
	       a->require_pin_cores == b->require_pin_cores &&
	       cores_same(a->pin_cores, a->pin_core_count, b->pin_cores, b->pin_core_count);
}

static bool pool_entries_same(const struct fragi_spec_pool_entry *a,
			      const struct fragi_spec_pool_entry *b)
{
	const struct fragi_realtime *x = &a->realtime, *y = &b->realtime;
	bool same = a->member_count == b->member_count && a->pin_operator == b->pin_operator &&
		    cores_same(a->pin_cores, a->pin_core_count, b->pin_cores, b->pin_core_count) &&
		    a->best_effort == b->best_effort && x->policy == y->policy &&
		    x->priority == y->priority && x->runtime_ns == y->runtime_ns &&
		    x->deadline_ns == y->deadline_ns && x->period_ns == y->period_ns;

	for (size_t i = 0; same && i < a->member_count; i++)
		same = strcmp(a->members[i].op, b->members[i].op) == 0;
	return same;
}

static bool pools_same(const struct fragi_spec_fragment *a, const struct fragi_spec_fragment *b)
{
	bool same = a->thread_pool_count == b->thread_pool_count;

	for (size_t i = 0; same && i < a->thread_pool_count; i++) {
		const struct fragi_spec_thread_pool *x = &a->thread_pools[i];
		const struct fragi_spec_thread_pool *y = &b->thread_pools[i];

		same = texts_same(x->name, y->name) && x->initial_size == y->initial_size &&
		       x->entry_count == y->entry_count;
		for (size_t k = 0; same && k < x->entry_count; k++)
			same = pool_entries_same(&x->entries[k], &y->entries[k]);
	}
	return same;
}

static bool clocks_same(const struct fragi_spec_clock *a, const struct fragi_spec_clock *b)
{
	const struct fragi_clock_config *x = &a->config, *y = &b->config;

	return x->kind == y->kind && numbers_same(x->offset_s, y->offset_s) &&
	       numbers_same(x->scale, y->scale) && x->since_epoch == y->since_epoch &&
	       x->initial_ns == y->initial_ns && x->max_error_ns == y->max_error_ns;
}

static bool paths_same(const struct fragi_spec_path *a, size_t a_count,
		       const struct fragi_spec_path *b, size_t b_count)
{
	bool same = a_count == b_count;

	for (size_t i = 0; same && i < a_count; i++)
		same = end_lists_same(a[i].ops, a[i].op_count, b[i].ops, b[i].op_count) &&
		       a[i].budget_ns == b[i].budget_ns && a[i].on_miss == b[i].on_miss;
	return same;
}

/* Whether the settings of time are the same: deadline, align, rate, budget. */
static bool times_same(const struct fragi_spec_operator *a, const struct fragi_spec_operator *b)
{
	bool same = a->deadline.budget_ns == b->deadline.budget_ns &&
		    a->deadline.from_acquisition == b->deadline.from_acquisition &&
		    a->deadline.on_miss == b->deadline.on_miss && a->rate_ns == b->rate_ns &&
		    a->budget_ns == b->budget_ns &&
		    (a->align.place == NULL) == (b->align.place == NULL) &&
		    a->align.input_count == b->align.input_count &&
		    a->align.window_ns == b->align.window_ns &&
		    a->align.timeout_ns == b->align.timeout_ns;

	for (size_t i = 0; same && i < a->align.input_count; i++)
		same = strcmp(a->align.inputs[i], b->align.inputs[i]) == 0;
	return same;
}

static bool references_same(const struct fragi_spec_operator *a,
			    const struct fragi_spec_operator *b)
{
	bool same = a->resource_count == b->resource_count;

	for (size_t i = 0; same && i < a->resource_count; i++)
		same = strcmp(a->resources[i].name, b->resources[i].name) == 0;
	return same;
}

static bool tracking_same(const struct fragi_spec_tracking *a, const struct fragi_spec_tracking *b)
{
	return a->is_on == b->is_on && a->skip == b->skip && a->discard == b->discard &&
	       a->threshold_ms == b->threshold_ms && a->is_limited == b->is_limited &&
	       end_lists_same(a->probes, a->probe_count, b->probes, b->probe_count) &&
	       texts_same(a->log, b->log) && a->buffered == b->buffered && a->print == b->print;
}

static void compare_operators(const struct fragi_spec_fragment *a,
			      const struct fragi_spec_fragment *b, struct drv_differences *out)
{
	for (size_t i = 0; i < b->operator_count; i++) {
		const struct fragi_spec_operator *x = &a->operators[i], *y = &b->operators[i];

		compare_parameters(b->name, x, y, out);
		if (!objects_same(x->conditions, x->condition_count, y->conditions,
				  y->condition_count))
			add(out, FW_EFFECT_FRAGMENT, b->name, "%s.%s: its conditions", b->name,
			    y->name);
		if (!references_same(x, y))
			add(out, FW_EFFECT_FRAGMENT, b->name, "%s.%s: its resources", b->name,
			    y->name);
		if (!times_same(x, y))
			add(out, FW_EFFECT_FRAGMENT, b->name,
			    "%s.%s: its deadline, align, rate or budget", b->name, y->name);
		if (x->watchdog_ns != y->watchdog_ns || x->metadata != y->metadata ||
		    x->metadata_policy != y->metadata_policy)
			add(out, FW_EFFECT_FRAGMENT, b->name, "%s.%s: its watchdog or metadata",
			    b->name, y->name);
	}
}

static void compare_fragment(const struct fragi_spec_fragment *a,
			     const struct fragi_spec_fragment *b, bool read_same,
			     struct drv_differences *out)
{
	if (!shape_same(a, b)) {
		add(out, FW_EFFECT_APPLICATION, b->name, "%s: its operators, ports or flows",
		    b->name);
		return;
	}
	if (!places_same(a, b))
		add(out, FW_EFFECT_APPLICATION, b->name, "%s: its host, requirements or on_failure",
		    b->name);
	compare_operators(a, b, out);
	if (!objects_same(a->resources, a->resource_count, b->resources, b->resource_count))
		add(out, FW_EFFECT_FRAGMENT, b->name, "%s: its resources or services", b->name);
	if (!objects_same(a->loggers, a->logger_count, b->loggers, b->logger_count))
		add(out, FW_EFFECT_FRAGMENT, b->name, "%s: its data_loggers", b->name);
	if (!extensions_same(a, b))
		add(out, FW_EFFECT_FRAGMENT, b->name, "%s: its extensions", b->name);
	if (!schedulers_same(&a->scheduler, &b->scheduler))
		add(out, FW_EFFECT_FRAGMENT, b->name, "%s: its scheduler", b->name);
	if (!pools_same(a, b))
		add(out, FW_EFFECT_FRAGMENT, b->name, "%s: its thread_pools", b->name);
	if (!clocks_same(&a->clock, &b->clock) ||
	    !paths_same(a->deadlines, a->deadline_count, b->deadlines, b->deadline_count))
		add(out, FW_EFFECT_FRAGMENT, b->name, "%s: its clock or deadlines", b->name);
	if (a->watchdog_ns != b->watchdog_ns || a->metadata != b->metadata ||
	    a->metadata_policy != b->metadata_policy || !tracking_same(&a->tracking, &b->tracking))
		add(out, FW_EFFECT_FRAGMENT, b->name, "%s: its watchdog, metadata or tracking",
		    b->name);
	if (b->is_composed && !read_same)
		add(out, FW_EFFECT_FRAGMENT, b->name,
		    "%s: the arguments, config or subgraphs that its composer may read", b->name);
}

static bool parties_same(const struct fragi_spec_party *a, const struct fragi_spec_party *b)
{
	return texts_same(a->fragment, b->fragment) && texts_same(a->op, b->op);
}

static bool variables_same(const struct fragi_spec *a, const struct fragi_spec *b)
{
	bool same = a->variable_count == b->variable_count;

	for (size_t i = 0; same && i < a->variable_count; i++) {
		const struct fragi_spec_variable *x = &a->variables[i], *y = &b->variables[i];

		same = strcmp(x->name, y->name) == 0 && texts_same(x->path, y->path) &&
		       x->ndim == y->ndim && memcmp(&x->dtype, &y->dtype, sizeof(x->dtype)) == 0 &&
		       memcmp(x->shape, y->shape, sizeof(x->shape)) == 0 &&
		       parties_same(&x->writer, &y->writer) && x->reader_count == y->reader_count;
		for (size_t k = 0; same && k < x->reader_count; k++)
			same = parties_same(&x->readers[k], &y->readers[k]);
	}
	return same;
}

static bool arguments_same(const struct fragi_spec *a, const struct fragi_spec *b)
{
	bool same = a->argument_count == b->argument_count;

	for (size_t i = 0; same && i < a->argument_count; i++)
		same = strcmp(a->arguments[i].name, b->arguments[i].name) == 0 &&
		       texts_same(a->arguments[i].value, b->arguments[i].value);
	return same;
}

static bool fragments_same(const struct fragi_spec *a, const struct fragi_spec *b)
{
	bool same = a->fragment_count == b->fragment_count;

	for (size_t i = 0; same && i < a->fragment_count; i++)
		same = strcmp(a->fragments[i].name, b->fragments[i].name) == 0;
	return same;
}

void drv_difference_find(const struct fragi_spec *before, const struct fragi_spec *after,
			 struct drv_differences *out)
{
	bool read_same = arguments_same(before, after) &&
			 nodes_same(before->config, after->config) &&
			 nodes_same(before->subgraphs, after->subgraphs);

	if (!fragments_same(before, after)) {
		add(out, FW_EFFECT_APPLICATION, NULL, "the application: its fragments");
		return;
	}
	if (!flows_same(before->flows, before->flow_count, after->flows, after->flow_count))
		add(out, FW_EFFECT_APPLICATION, NULL,
		    "the application: its flows between fragments");
	if (!variables_same(before, after))
		add(out, FW_EFFECT_APPLICATION, NULL, "the application: its variables");
	if (!objects_same(before->services, before->service_count, after->services,
			  after->service_count))
		add(out, FW_EFFECT_APPLICATION, NULL, "the application: its services");
	if (!clocks_same(&before->clock, &after->clock) ||
	    !paths_same(before->deadlines, before->deadline_count, after->deadlines,
			after->deadline_count))
		add(out, FW_EFFECT_APPLICATION, NULL, "the application: its clock or deadlines");
	if (before->metadata != after->metadata ||
	    before->metadata_policy != after->metadata_policy ||
	    !tracking_same(&before->tracking, &after->tracking) ||
	    !tracking_same(&before->set_tracking, &after->set_tracking))
		add(out, FW_EFFECT_APPLICATION, NULL, "the application: its metadata or tracking");
	if (!texts_same(before->app_folder, after->app_folder))
		add(out, FW_EFFECT_APPLICATION, NULL, "the application: the folder of its file");
	for (size_t i = 0; i < after->fragment_count; i++)
		compare_fragment(&before->fragments[i], &after->fragments[i], read_same, out);
}
