// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "set"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/log.h>
#include <base/units.h>
#include <cond/condition.h>
#include <sched/kind.h>
#include <type/params.h>

/*
 * Parameters that change while the application runs. Any thread makes a change: it checks the value
 * as the graph's are checked and writes it into a state of its own. The change waits in a list of
 * the exec until the thread that works on the exec evaluates its conditions, between two ticks; it
 * then copies the field. Plain ticks pay nothing: a change sets needs_full_check, and only
 * fragi_exec_ready_all looks at the list.
 */
struct fragi_set {
	struct fragi_set *next;
	size_t offset, size; /* of the field */
	char *state;         /* with the field in its place; the rest is unused */
};

#define WAITING_MAX 64u /* changes of one operator that wait for its next tick */
#define STATE_ALIGN 64u

/* The condition of the operator that is called so, or has a parameter of that name; NULL: none. */
static const struct frag_condition *find_condition(const struct frag_op *op, const char *name)
{
	for (uint32_t i = 0; i < op->condition_count; i++) {
		const struct frag_condition *condition = op->conditions[i];
		const struct frag_condition_type *type = condition->type;

		if (strcmp(condition->name, name) == 0 || strcmp(type->name, name) == 0)
			return condition;
		for (uint32_t k = 0; k < type->param_count; k++)
			if (strcmp(type->params[k].name, name) == 0)
				return condition;
	}
	return NULL;
}

/* Reports that there is no parameter of that name, or none that can change, and which can. */
static void refuse(const struct frag_op *op, const char *name, bool is_known,
		   const char *const *names, const char *const *dynamic, uint32_t dynamic_count,
		   struct frag_err *err)
{
	const struct frag_condition *condition = is_known ? NULL : find_condition(op, name);
	char advice[512];

	if (condition != NULL)
		frag_err_set(err, -EINVAL,
			     "%s: \"%.80s\" is of its condition %s, and conditions cannot be "
			     "changed while it runs; `fragctl apply` brings a graph with another "
			     "value",
			     op->subject, name, condition->name);
	else if (!is_known)
		frag_err_set(err, -EINVAL, "%s: unknown parameter \"%.80s\"%s", op->subject, name,
			     op->type->param_count == 0
				     ? "; it has none"
				     : fragi_advise(advice, sizeof(advice), name, "its parameters",
						    names, op->type->param_count));
	else
		frag_err_set(err, -EINVAL,
			     "%s: parameter \"%.80s\" cannot be changed while it runs%s; "
			     "`fragctl apply` brings a graph with another value",
			     op->subject, name,
			     dynamic_count == 0
				     ? "; none of its parameters can"
				     : fragi_advise(advice, sizeof(advice), name, "those that can",
						    dynamic, dynamic_count));
}

/* NULL: there is none of that name, or it is not dynamic; err says which are. */
static const struct frag_param *find(const struct frag_op *op, const char *name,
				     struct frag_err *err)
{
	const struct frag_op_type *type = op->type;
	const char *names[FRAGI_PARAMS_MAX], *dynamic[FRAGI_PARAMS_MAX];
	uint32_t dynamic_count = 0;
	bool is_known = false;

	for (uint32_t i = 0; i < type->param_count; i++) {
		bool is_it = strcmp(type->params[i].name, name) == 0;

		if (is_it && fragi_param_is_dynamic(&type->params[i]))
			return &type->params[i];
		is_known |= is_it;
		names[i] = type->params[i].name;
		if (fragi_param_is_dynamic(&type->params[i]))
			dynamic[dynamic_count++] = names[i];
	}
	refuse(op, name, is_known, names, dynamic, dynamic_count, err);
	return NULL;
}

static void set_free(struct fragi_set *set)
{
	if (set != NULL)
		fragi_free(set->state);
	fragi_free(set);
}

/* The text of the table, which stays, instead of one in the arena. */
static void use_choice(const struct frag_param *param, char *state)
{
	const char **field = (const char **)(void *)(state + param->offset);

	for (const char *const *choice = param->choices; *choice != NULL; choice++)
		if (strcmp(*choice, *field) == 0)
			*field = *choice;
}

/* Checks the value and writes it into the state of the change. */
static int fill(struct fragi_set *set, const struct frag_op *op, const struct frag_param *param,
		const char *value, struct fragi_arena *arena, struct fragi_diag *diag)
{
	const struct fragi_param_table table = {op->type->params, op->type->param_count,
						sizeof(struct frag_param)};
	const struct fragi_param_context context = {
		.arena = arena, .diag = diag, .subject = op->subject};
	const struct fragi_node node = {.kind = FRAGI_NODE_SCALAR, .text = value};
	const struct fragi_spec_setting setting = {.name = param->name, .value = &node};
	int r;

	set->offset = param->offset;
	set->size = fragi_param_kind(param->kind)->size;
	set->state = fragi_aligned_alloc(STATE_ALIGN, op->type->state_size);
	if (set->state == NULL)
		return -ENOMEM;
	memset(set->state, 0, op->type->state_size);
	r = fragi_params_set(&table, &setting, set->state, &context);
	if (r == 0 && param->kind == FRAG_PARAM_KIND_STRING)
		use_choice(param, set->state);
	return r;
}

static int make(const struct frag_op *op, const struct frag_param *param, const char *value,
		struct fragi_set **out_set, struct frag_err *err)
{
	struct fragi_set *set = fragi_calloc(1, sizeof(*set));
	struct fragi_arena arena = {0};
	struct fragi_diag diag = {0};
	int r = set != NULL ? fill(set, op, param, value, &arena, &diag) : -ENOMEM;

	if (r == 0) {
		*out_set = set;
	} else {
		set_free(set);
		frag_err_set(err, r, "%s", diag.count > 0 ? diag.items[0].text : frag_strerror(r));
	}
	fragi_diag_fini(&diag);
	fragi_arena_fini(&arena);
	return r;
}

int fragi_exec_set(struct frag_op *op, const char *name, const char *value, const char *who,
		   struct frag_err *err)
{
	struct fragi_exec *exec = op->exec;
	const struct frag_param *param = find(op, name, err);
	struct fragi_set *set, *first;
	int r;

	if (param == NULL)
		return -EINVAL;
	if (exec == NULL || exec->sched == NULL)
		return frag_err_set(err, -EAGAIN, "%s does not run yet", op->subject);
	if (atomic_load(&exec->row->state) >= FRAGI_OP_DONE)
		return frag_err_set(err, -ESRCH, "%s has ended: its parameters stay as they are",
				    op->subject);
	r = make(op, param, value, &set, err);
	if (r < 0)
		return r;
	if (atomic_fetch_add(&exec->sets_waiting, 1) >= WAITING_MAX) {
		atomic_fetch_sub(&exec->sets_waiting, 1);
		set_free(set);
		return frag_err_set(err, -EBUSY,
				    "%s: %u changes of its parameters wait for its next tick",
				    op->subject, WAITING_MAX);
	}
	log_info(op->subject, "parameter \"%s\" is set to %.200s by %s", name, value, who);
	first = atomic_load(&exec->sets);
	do
		set->next = first;
	while (!atomic_compare_exchange_weak(&exec->sets, &first, set));
	atomic_store(&exec->needs_full_check, true);
	exec->sched->kind->notify(exec);
	return 0;
}

void fragi_exec_apply_sets(struct fragi_exec *exec)
{
	struct fragi_set *set = atomic_exchange(&exec->sets, NULL), *ordered = NULL, *next;

	for (; set != NULL; set = next) { /* the newest comes first */
		next = set->next;
		set->next = ordered;
		ordered = set;
	}
	for (set = ordered; set != NULL; set = next) {
		next = set->next;
		memcpy((char *)exec->self + set->offset, set->state + set->offset, set->size);
		set_free(set);
		atomic_fetch_sub(&exec->sets_waiting, 1);
	}
}

void fragi_exec_free_sets(struct fragi_exec *exec)
{
	struct fragi_set *set, *next;

	for (set = atomic_load(&exec->sets); set != NULL; set = next) {
		next = set->next;
		set_free(set);
	}
}
