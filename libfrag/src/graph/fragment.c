// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/call.h>
#include <base/units.h>
#include <data/codec.h>
#include <graph/compose.h>
#include <graph/interface.h>
#include <graph/thread_pool.h>
#include <graph/tracker.h>
#include <res/data_logger.h>
#include <text/instance.h>

int fragi_fragment_begin(const char *name, const struct fragi_spec *spec,
			 const struct fragi_spec_fragment *own, struct fragi_registry *registry,
			 struct fragi_diag *diag, struct frag_fragment **out_fragment)
{
	struct frag_fragment *fragment = fragi_calloc(1, sizeof(*fragment));

	if (fragment == NULL)
		return -ENOMEM;
	fragment->spec = spec;
	fragment->own = own;
	fragment->registry = registry;
	fragment->diag = diag;
	fragment->name = fragi_arena_strdup(&fragment->arena, name);
	fragment->making = fragi_arena_alloc(&fragment->arena, sizeof(*fragment->making));
	if (fragment->name == NULL || fragment->making == NULL) {
		fragi_fragment_destroy(fragment);
		return -ENOMEM;
	}
	fragment->making->metadata = -1;
	*out_fragment = fragment;
	return 0;
}

/* Frees what is only needed until the fragment is complete. */
static void making_fini(struct frag_fragment *fragment)
{
	struct fragi_making *making = fragment->making;

	if (making == NULL)
		return;
	fragi_strmap_fini(&making->ops);
	fragi_strmap_fini(&making->bad_ops);
	fragi_strmap_fini(&making->bad_resources);
	fragi_strmap_fini(&making->subgraphs);
	for (uint32_t i = 0; i < fragment->made_count; i++)
		fragment->made[i]->made = NULL;
	fragi_arena_fini(&making->arena);
	fragment->making = NULL;
	fragment->diag = NULL;
}

void fragi_fragment_destroy(struct frag_fragment *fragment)
{
	bool logger_hangs = false;
	struct frag_op *op;

	if (fragment == NULL)
		return;
	making_fini(fragment);
	for (uint32_t i = fragment->made_count; i-- > 0;) {
		op = fragment->made[i];
		if (op->setup_done && op->type->fini != NULL) {
			fragi_current_set(op, FRAGI_CALL_FINI);
			op->type->fini(op->state, op);
			fragi_current_set(NULL, FRAGI_CALL_NONE);
		}
		fragi_conditions_fini(op);
		fragi_op_release_stream(op);
		fragi_free(op->failed.text);
		fragi_free(op->state);
	}
	for (uint32_t i = 0; i < fragment->logger_count; i++)
		logger_hangs |= fragi_data_logger_of(fragment->loggers[i])->hangs;
	fragi_resources_release(fragment);
	fragi_free(fragment->flows);
	frag_tracker_unref(fragment->tracker);
	fragi_registry_destroy(fragment->own_registry);
	if (logger_hangs) /* its thread may still use what is in the arena */
		return;
	fragi_arena_fini(&fragment->arena);
	fragi_free(fragment);
}

void fragi_extensions_load(struct frag_fragment *fragment,
			   const struct fragi_spec_extension *extensions, size_t count)
{
	int r;

	for (size_t i = 0; i < count; i++) {
		struct frag_err err = FRAG_ERR_INIT;

		r = fragi_registry_load_pinned(fragment->registry, extensions[i].library,
					       extensions[i].sha256, &err);
		if (r == 0)
			continue;
		/*
		 * without the fragment's name, so that a library listed at the top is one error for
		 * all fragments
		 */
		fragi_making_fail_by(fragment, &err, extensions[i].place, "", "");
		fragment->making->no_library = true;
	}
}

/* Operators with errors in the text keep their names, which may be referred to. */
static bool is_invalid_operator(struct frag_fragment *fragment,
				const struct fragi_spec_operator *spec_op)
{
	if (spec_op->is_invalid)
		fragi_making_note_bad(fragment, &fragment->making->bad_ops, spec_op->name);
	return spec_op->is_invalid;
}

static void make_conditions(struct frag_op *op, const struct fragi_spec_operator *own)
{
	const struct fragi_spec_object *object;

	for (size_t i = 0; i < own->condition_count; i++) {
		object = &own->conditions[i];
		fragi_condition_make(op, object->name, object->type, object->settings,
				     object->setting_count, object->place);
	}
}

/* Makes the instance of a subgraph that a library lists. */
static void make_instance(struct frag_fragment *fragment, const struct fragi_spec_operator *own)
{
	if (fragi_subgraph_make(fragment, own->name, own->subgraph, NULL, own->settings,
				own->setting_count, own->place) == NULL)
		fragment->making->no_composer = true; /* its operators are missing */
}

static bool has_output(const struct frag_op_type *type, const char *name)
{
	for (uint32_t i = 0; i < type->port_count; i++)
		if (type->ports[i].dir == FRAG_OUT && strcmp(type->ports[i].name, name) == 0)
			return true;
	return false;
}

/*
 * A test_source has the outputs that its files are given for: the type in whose place it is must
 * have them. A type with a setup may add some.
 */
static void check_replaced(const struct frag_op *op, const char *replaced)
{
	struct frag_fragment *fragment = op->fragment;
	const struct fragi_node *file = op->made->own->settings[0].value->first;
	struct frag_err err = FRAG_ERR_INIT;
	const struct frag_op_type *type = fragi_registry_op(fragment->registry, replaced, &err);
	const char *names[64];
	char advice[400];
	size_t count = 0;

	if (type == NULL || type->setup != NULL)
		return;
	for (uint32_t i = 0; i < type->port_count && count < FRAG_COUNT_OF(names); i++)
		if (type->ports[i].dir == FRAG_OUT)
			names[count++] = type->ports[i].name;
	for (; file != NULL; file = file->next)
		if (!has_output(type, file->key->text))
			fragi_making_fail(fragment, -EINVAL, file, op->subject,
					  "there is no output \"%.80s\"%s", file->key->text,
					  fragi_advise(advice, sizeof(advice), file->key->text,
						       "outputs", names, count));
}

void fragi_operators_make(struct frag_fragment *fragment, const struct fragi_spec_operator *ops,
			  size_t count)
{
	const char *scope = fragment->making->scope;
	const struct fragi_spec_operator *spec_op;
	struct frag_op *op;

	for (size_t i = 0; i < count; i++) {
		spec_op = &ops[i];
		if (is_invalid_operator(fragment, spec_op))
			continue;
		fragment->making->scope = spec_op->scope;
		if (spec_op->subgraph != NULL)
			make_instance(fragment, spec_op);
		op = spec_op->type == NULL ? NULL
					   : fragi_op_make(fragment, spec_op->name, spec_op->type,
							   NULL, spec_op->place);
		fragment->making->scope = scope;
		if (op == NULL)
			continue;
		op->made->own = spec_op;
		if (spec_op->replaced != NULL)
			check_replaced(op, spec_op->replaced);
		make_conditions(op, spec_op);
		fragi_op_add(op);
	}
}

static void run_composer(struct frag_fragment *fragment)
{
	const struct fragi_spec_fragment *own = fragment->own;
	struct frag_err err = FRAG_ERR_INIT;
	const struct frag_composer *composer;
	size_t errors = fragment->diag->count + fragment->diag->beyond;
	int r;

	if (own->compose == NULL)
		return;
	composer = fragi_registry_composer(fragment->registry, own->compose, &err);
	if (composer == NULL) {
		fragment->making->no_composer = true;
		if (!fragment->making->no_library)
			fragi_making_fail_by(fragment, &err, own->place, NULL, "compose: ");
		return;
	}
	fragi_current_set(NULL, FRAGI_CALL_COMPOSE);
	fragi_call_begin(fragment->name, FRAGI_CALL_COMPOSE, 0);
	r = composer->compose(fragment);
	fragi_current_set(NULL, FRAGI_CALL_NONE);
	if (r > 0) {
		fragi_making_fail(fragment, -EINVAL, own->place, NULL,
				  "composer \"%s\" returned %d; return 0 or a negative errno",
				  own->compose, r);
		r = -EINVAL;
	}
	if (r == 0)
		return;
	fragment->making->no_composer = true;
	fragi_making_note(fragment, r);
	if (fragment->diag->count + fragment->diag->beyond == errors &&
	    !fragment->making->no_library)
		fragi_making_fail(fragment, r, own->place, NULL, "composer \"%s\" returned %d (%s)",
				  own->compose, r, frag_strerror(r));
}

/* Takes from the graph the operators without a type: settings for operators that C composed. */
static void match_untyped(struct frag_fragment *fragment)
{
	const struct fragi_spec_fragment *own = fragment->own;
	const struct fragi_spec_operator *spec_op;
	const char *names[64];
	struct frag_op *op;
	size_t count = 0;
	char advice[400];

	for (uint32_t i = 0; i < fragment->made_count && count < FRAG_COUNT_OF(names); i++)
		if (fragment->made[i]->made->place == NULL)
			names[count++] = fragment->made[i]->name;
	for (size_t i = 0; i < own->operator_count; i++) {
		spec_op = &own->operators[i];
		if (spec_op->is_invalid || spec_op->type != NULL || spec_op->subgraph != NULL)
			continue;
		op = fragi_strmap_get(&fragment->making->ops, spec_op->name);
		if (op != NULL) {
			op->made->own = op->made->own != NULL
						? fragi_spec_operator_over(&fragment->arena,
									   op->made->own, spec_op)
						: spec_op;
			if (op->made->own == NULL) {
				fragi_making_note(fragment, -ENOMEM);
				continue;
			}
			op->place = spec_op->place;
			make_conditions(op, spec_op);
			continue;
		}
		if (fragment->making->no_composer ||
		    fragi_strmap_get(&fragment->making->bad_ops, spec_op->name) != NULL) {
			fragi_making_note_bad(fragment, &fragment->making->bad_ops, spec_op->name);
			continue;
		}
		if (own->compose == NULL)
			fragi_making_fail(
				fragment, -EINVAL, spec_op->place, NULL,
				"operator \"%s\" has no type, and no subgraph makes it; give it a type",
				spec_op->name);
		else
			fragi_making_fail(
				fragment, -EINVAL, spec_op->place, NULL,
				"operator \"%s\" has no type, and composer \"%s\" makes none of this name%s",
				spec_op->name, own->compose,
				fragi_advise(advice, sizeof(advice), spec_op->name, "its operators",
					     names, count));
		fragi_making_note_bad(fragment, &fragment->making->bad_ops, spec_op->name);
	}
}

static int compose(const struct fragi_spec *spec, const struct fragi_spec_fragment *own,
		   struct frag_fragment *shared, struct fragi_registry *registry,
		   struct fragi_diag *diag, bool keep_partial, struct frag_fragment **out_fragment)
{
	struct frag_fragment *fragment;
	size_t errors = diag->count;
	int r = fragi_fragment_begin(own->name, spec, own, registry, diag, &fragment);

	if (r < 0)
		return fragi_diag_add(diag, r, NULL, 0, 0, "%s: out of memory", own->name);
	r = fragi_registry_create_within(registry, &fragment->own_registry);
	if (r < 0) {
		fragi_fragment_destroy(fragment);
		return fragi_diag_add(diag, r, NULL, 0, 0, "%s: out of memory", own->name);
	}
	fragment->registry = fragment->own_registry;
	fragment->shared = shared;
	fragi_extensions_load(fragment, own->extensions, own->extension_count);
	fragi_resources_make(fragment, own->resources, own->resource_count);
	fragi_loggers_make(fragment);
	fragi_operators_make(fragment, own->operators, own->operator_count);
	run_composer(fragment);
	match_untyped(fragment);
	r = fragi_fragment_complete(fragment);
	fragi_diag_sort(diag, errors);
	if (r < 0 && (!keep_partial || fragment->info.name == NULL))
		fragi_fragment_destroy(fragment);
	else
		*out_fragment = fragment;
	return r;
}

int fragi_fragment_compose(const struct fragi_spec *spec, const struct fragi_spec_fragment *own,
			   struct fragi_registry *registry, struct fragi_diag *diag,
			   struct frag_fragment **out_fragment)
{
	return compose(spec, own, NULL, registry, diag, false, out_fragment);
}

int fragi_fragment_compose_partial(const struct fragi_spec *spec,
				   const struct fragi_spec_fragment *own,
				   struct frag_fragment *shared, struct fragi_registry *registry,
				   struct fragi_diag *diag, struct frag_fragment **out_fragment)
{
	return compose(spec, own, shared, registry, diag, true, out_fragment);
}

static bool is_bad(const struct frag_fragment *fragment, const char *op)
{
	return fragi_strmap_get(&fragment->making->bad_ops, op) != NULL;
}

/* The allocators whose memory it waits for. Returns 0 or -ENOMEM. */
static int pools_of(struct frag_fragment *fragment, const struct frag_op *op,
		    const char **out_pools)
{
	const char *pools = NULL;

	for (uint32_t i = 0; i < op->condition_count; i++) {
		const struct frag_resource *pool = fragi_condition_memory(op->conditions[i]);

		if (pool == NULL)
			continue;
		pools = fragi_arena_printf(&fragment->arena, "%s%s%s", pools != NULL ? pools : "",
					   pools != NULL ? ", " : "", frag_resource_name(pool));
		if (pools == NULL)
			return -ENOMEM;
	}
	*out_pools = pools;
	return 0;
}

static int op_info_build(struct frag_fragment *fragment, const struct frag_op *op,
			 struct fragi_op_info *out_info)
{
	struct fragi_port_info *ports =
		fragi_arena_alloc(&fragment->arena, (op->port_count + 1) * sizeof(*ports));

	if (ports == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < op->port_count; i++) {
		const struct fragi_port *port = &op->ports[i];

		ports[i] = (struct fragi_port_info){
			.name = port->name,
			.dir = port->dir,
			.type = port->type_name,
			.type_id = port->type != NULL ? fragi_type_id(port->type) : 0,
			.has_codec = port->type == NULL || fragi_type_has_codec(port->type),
			.flags = port->flags,
			.capacity = port->capacity,
			.policy = port->policy,
			.tensors = port->tensors,
		};
	}
	*out_info = (struct fragi_op_info){
		.name = op->name,
		.type = op->type->name,
		.ports = ports,
		.port_count = op->port_count,
		.has_gaps = is_bad(fragment, op->name),
		.table = op->type,
	};
	return pools_of(fragment, op, &out_info->pools);
}

/*
 * Fills the tables by which other parts know this fragment. After errors they list operators that
 * could not be made by name alone.
 */
static int info_build(struct frag_fragment *fragment)
{
	const struct fragi_spec_fragment *own = fragment->own;
	size_t named = own != NULL ? own->operator_count : 0, count = fragment->op_count;
	struct fragi_op_info *info =
		fragi_arena_alloc(&fragment->arena, (count + named + 1) * sizeof(*info));
	int r = info != NULL ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < fragment->op_count; i++)
		r = op_info_build(fragment, fragment->ops[i], &info[i]);
	if (r < 0)
		return r;
	for (size_t i = 0; i < named; i++)
		if (is_bad(fragment, own->operators[i].name) &&
		    fragi_strmap_get(&fragment->making->ops, own->operators[i].name) == NULL)
			info[count++] = (struct fragi_op_info){
				.name = own->operators[i].name,
				.type = own->operators[i].type,
				.has_gaps = true,
			};
	fragment->info = (struct fragi_fragment_info){
		.name = fragment->name,
		.ops = info,
		.op_count = count,
		.has_gaps = fragment->making->no_composer,
	};
	return 0;
}

/* Resolves the flows made in C, then those of the graph. */
static int flows_resolve(struct frag_fragment *fragment)
{
	struct fragi_making *making = fragment->making;
	const struct fragi_spec_fragment *own = fragment->own;
	size_t own_count = own != NULL ? own->flow_count : 0;
	struct fragi_spec_flow *flows = fragi_arena_alloc(
		&making->arena, (making->flow_count + own_count + 1) * sizeof(*flows));
	const struct fragi_spec_flow *applied;
	const struct fragi_flow_info *flow;
	size_t count;
	int r;

	if (flows == NULL)
		return -ENOMEM;
	if (making->flow_count > 0)
		memcpy(flows, making->flows, making->flow_count * sizeof(*flows));
	if (own_count > 0)
		memcpy(flows + making->flow_count, own->flows, own_count * sizeof(*flows));
	making->flow_count += (uint32_t)own_count;
	r = fragi_interfaces_apply(&making->arena, flows, making->flow_count, 0, &fragment->info, 1,
				   fragment->diag, &applied, &count);
	if (r == -ENOMEM)
		return r;
	fragi_making_note(fragment, r);
	making->flow_count = (uint32_t)count;
	making->flows = applied;
	r = fragi_flows_resolve(applied, making->flow_count, 0, &fragment->info, 1, fragment->diag,
				&fragment->flows, &fragment->flow_count);
	for (size_t i = 0; i < fragment->flow_count; i++) {
		flow = &fragment->flows[i];
		fragment->ops[flow->from_op]->ports[flow->from_port].flow_count++;
		fragment->ops[flow->to_op]->ports[flow->to_port].flow_count++;
	}
	return r;
}

int fragi_fragment_complete(struct frag_fragment *fragment)
{
	struct fragi_making *making = fragment->making;
	int r;

	assert(!making->sealed && "a fragment is completed once");
	fragi_execution_begin(fragment);
	making->sealed = true;
	for (uint32_t i = 0; i < fragment->made_count; i++)
		if (fragment->made[i]->index == UINT32_MAX)
			fragi_making_fail(
				fragment, -EINVAL, NULL, NULL,
				"operator \"%s\" was made but never added; pass it to frag_add_operator or frag_add_flow",
				fragment->made[i]->name);
	for (uint32_t i = 0; i < fragment->op_count; i++)
		assert(fragment->ops[i]->index == i);
	for (uint32_t i = 0; i < fragment->op_count; i++)
		fragi_op_complete(fragment->ops[i]);
	fragi_execution_add_outputs(fragment);
	fragi_thread_pools_complete(fragment);
	r = info_build(fragment);
	if (r == 0)
		r = fragi_subgraphs_complete(fragment);
	if (r == 0)
		r = flows_resolve(fragment);
	fragi_making_note(fragment, r);
	if (r != -ENOMEM && fragment->spec != NULL && fragment->own != NULL) {
		fragi_making_note(fragment, fragi_fragment_check_inputs(fragment));
		fragi_fragment_check_variables(fragment);
	}
	if (r == 0)
		fragi_making_note(fragment, fragi_fragment_check_capacity(fragment));
	if (r == 0)
		fragi_thread_pools_check_gpus(fragment);
	r = making->code;
	if (r == 0 && making->no_library)
		r = -ENOENT;
	if (r == 0 && fragi_fragment_order(fragment) == NULL)
		r = fragi_making_fail(fragment, -ENOMEM, NULL, NULL, "out of memory");
	making_fini(fragment);
	return r;
}

static int conditions_initialize(struct frag_op *op)
{
	for (uint32_t i = 0; i < op->condition_count; i++) {
		struct frag_condition *condition = op->conditions[i];
		struct frag_err err = FRAG_ERR_INIT;
		int r;

		if (condition->type->initialize == NULL)
			continue;
		r = condition->type->initialize(condition->state, condition, &err);
		if (r > 0)
			r = frag_err_set(&err, -EINVAL,
					 "initialize returned %d; return 0 or a negative errno", r);
		if (r < 0)
			return frag_op_fail(op, r, "condition %s: %s", condition->name,
					    err.text[0] != '\0' ? err.text : frag_strerror(r));
	}
	return 0;
}

int fragi_fragment_initialize(struct frag_fragment *fragment, struct fragi_diag *diag)
{
	const uint32_t *order = fragi_fragment_order(fragment);
	struct frag_op *op;
	int r;

	if (order == NULL)
		return fragi_diag_add(diag, -ENOMEM, NULL, 0, 0, "%s: out of memory",
				      fragment->name);
	r = fragi_resources_initialize(fragment, diag);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < fragment->op_count; i++) {
		op = fragment->ops[order[i]];
		fragi_current_set(op, FRAGI_CALL_INITIALIZE);
		r = conditions_initialize(op);
		if (r == 0 && op->type->initialize != NULL)
			r = op->type->initialize(op->state, op);
		fragi_current_set(NULL, FRAGI_CALL_NONE);
		r = fragi_op_callback_result(op, FRAGI_CALL_INITIALIZE, r);
		if (r < 0)
			return fragi_op_callback_failed(op, diag, FRAGI_CALL_INITIALIZE, r);
	}
	return 0;
}
