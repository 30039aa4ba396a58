// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/failure.h>
#include <base/policy.h>
#include <base/sentence.h>
#include <base/units.h>
#include <graph/compose.h>

static int gravity(int code)
{
	return code == 0 ? 0 : code == -ENOMEM ? 3 : code == -ENOENT ? 2 : 1;
}

void fragi_making_refuse_type(struct frag_fragment *fragment, const struct fragi_node *place,
			      const char *subject, enum fragi_holoscan_kind kind, const char *type,
			      const char *const *names, size_t count)
{
	char sentence[700];

	fragi_making_fail(fragment, -EINVAL, place, subject, "%s",
			  fragi_refuse_type(sentence, sizeof(sentence), kind, type, names, count));
}

void fragi_making_note(struct frag_fragment *fragment, int code)
{
	if (fragment->making != NULL && gravity(code) > gravity(fragment->making->code))
		fragment->making->code = gravity(code) == 1 ? -EINVAL : code;
}

/* An error in the graph; missing files and failed allocations have codes of their own. */
static void making_error(struct frag_fragment *fragment, int code, const struct fragi_node *place,
			 const char *subject, const char *text)
{
	struct fragi_diag *diag = fragment->diag;
	size_t first;

	fragi_making_note(fragment, code);
	if (diag == NULL)
		return;
	first = diag->count;
	fragi_node_error(diag, place, subject != NULL ? subject : fragment->name, "%s", text);
	if (first < diag->count && gravity(code) > 1)
		diag->items[first].code = code;
}

int fragi_making_fail(struct frag_fragment *fragment, int code, const struct fragi_node *place,
		      const char *subject, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	making_error(fragment, code, place, subject, text);
	return code;
}

void fragi_making_fail_by(struct frag_fragment *fragment, const struct frag_err *cause,
			  const struct fragi_node *place, const char *subject, const char *what)
{
	size_t first = fragment->diag != NULL ? fragment->diag->count : 0;
	char text[sizeof(cause->text) + 128];

	fragi_sentence(text, sizeof(text), "%s%s", what, cause->text);
	making_error(fragment, cause->code, place, subject, text);
	if (fragment->diag != NULL && cause->failure != FRAGI_FAILURE_NONE)
		fragi_diag_classify(fragment->diag, first, fragi_err_failure(cause), NULL);
}

void *fragi_making_room(struct frag_fragment *fragment, void *items, uint32_t count,
			uint32_t *capacity, size_t size)
{
	uint32_t wider = *capacity == 0 ? 8 : *capacity * 2;
	void *memory;

	if (count < *capacity)
		return items;
	memory = fragi_arena_alloc(&fragment->arena, wider * size);
	if (memory == NULL) {
		fragi_making_fail(fragment, -ENOMEM, NULL, NULL, "out of memory");
		return NULL;
	}
	if (count > 0)
		memcpy(memory, items, count * size);
	*capacity = wider;
	return memory;
}

void fragi_making_note_bad(struct frag_fragment *fragment, struct fragi_strmap *bad,
			   const char *name)
{
	const char *copy = fragi_arena_strdup(&fragment->arena, name);

	if (copy == NULL || fragi_strmap_put(bad, copy, (void *)(uintptr_t)copy) == -ENOMEM)
		fragi_making_note(fragment, -ENOMEM);
}

bool fragi_making_is_open(struct frag_fragment *fragment)
{
	if (fragment->making == NULL)
		return false;
	if (fragment->making->sealed)
		fragi_making_fail(fragment, -EBUSY, NULL, NULL,
				  "a graph can only be added to inside a composer, not in setup");
	return !fragment->making->sealed;
}

/*
 * Reports that an operator is NULL, unless that follows from an error that was reported: a composer
 * may pass on the result of frag_make_operator unchecked.
 */
static int refuse_null(struct frag_fragment *fragment, const char *function)
{
	if (fragment->making->code == 0 && !fragment->making->no_library)
		fragi_making_fail(fragment, -EINVAL, NULL, NULL, "%s: the operator is NULL",
				  function);
	return -EINVAL;
}

static struct frag_op *make_operator(struct frag_fragment *fragment, const char *name,
				     const char *type_name, const struct frag_op_type *type,
				     const struct frag_arg *args)
{
	struct frag_op *op;

	if (!fragi_making_is_open(fragment))
		return NULL;
	op = fragi_op_make(fragment, fragi_subgraph_qualify(fragment, name), type_name, type, NULL);
	if (op == NULL)
		return NULL;
	if (fragi_making_settings(fragment, op->subject, args, &op->made->args,
				  &op->made->arg_count) < 0)
		op->made->failed = true;
	return op;
}

struct frag_op *frag_make_operator(struct frag_fragment *fragment, const char *name,
				   const char *type, const struct frag_arg *args)
{
	return make_operator(fragment, name, type != NULL ? type : "", NULL, args);
}

struct frag_op *frag_make_operator_of(struct frag_fragment *fragment, const char *name,
				      const struct frag_op_type *type, const struct frag_arg *args)
{
	return make_operator(fragment, name, NULL, type, args);
}

int frag_add_operator(struct frag_fragment *fragment, struct frag_op *op)
{
	if (!fragi_making_is_open(fragment))
		return -EBUSY;
	if (op == NULL)
		return refuse_null(fragment, "frag_add_operator");
	if (op->fragment != fragment)
		return fragi_making_fail(fragment, -EINVAL, NULL, NULL,
					 "operator \"%s\" is of fragment \"%s\"", op->name,
					 op->fragment->name);
	return fragi_op_add(op);
}

int frag_add_flow(struct frag_fragment *fragment, struct frag_op *from, const char *out_port,
		  struct frag_op *to, const char *in_port)
{
	return frag_add_flow_with(fragment, from, out_port, to, in_port, 0, FRAG_POLICY_DEFAULT);
}

int fragi_making_keep(struct frag_fragment *fragment, const char *name, const char **out_name)
{
	*out_name = fragi_arena_strdup(&fragment->arena, name);
	return name != NULL && *out_name == NULL ? -ENOMEM : 0;
}

int fragi_making_check_flow(struct frag_fragment *fragment, const char *from, const char *to,
			    uint32_t capacity, enum frag_policy policy)
{
	if (fragi_policy(policy) == NULL)
		return fragi_making_fail(
			fragment, -EINVAL, NULL, NULL,
			"flow %s -> %s: %d is not a valid policy; take one of FRAG_POLICY_...",
			from, to, (int)policy);
	if (capacity > FRAGI_CAPACITY_MAX)
		return fragi_making_fail(fragment, -EINVAL, NULL, NULL,
					 "flow %s -> %s: its capacity is %u; give %u at most", from,
					 to, capacity, FRAGI_CAPACITY_MAX);
	return 0;
}

int fragi_making_flow(struct frag_fragment *fragment, const struct fragi_spec_end *from,
		      const struct fragi_spec_end *to, uint32_t capacity, enum frag_policy policy)
{
	struct fragi_making *making = fragment->making;
	struct fragi_spec_flow *flows;
	struct fragi_spec_end *end;

	flows = fragi_making_room(fragment, (void *)(uintptr_t)making->flows, making->flow_count,
				  &making->flow_capacity, sizeof(*flows));
	if (flows != NULL)
		making->flows = flows;
	end = fragi_arena_alloc(&fragment->arena, sizeof(*end));
	if (flows == NULL || end == NULL)
		return fragi_making_fail(fragment, -ENOMEM, NULL, NULL, "out of memory for a flow");
	*end = *to;
	flows[making->flow_count++] = (struct fragi_spec_flow){
		.from = *from,
		.to = end,
		.to_count = 1,
		.capacity = capacity,
		.policy = policy,
	};
	return 0;
}

int frag_add_flow_with(struct frag_fragment *fragment, struct frag_op *from, const char *out_port,
		       struct frag_op *to, const char *in_port, uint32_t capacity,
		       enum frag_policy policy)
{
	struct fragi_spec_end from_end = {0}, to_end = {0};
	int r;

	if (!fragi_making_is_open(fragment))
		return -EBUSY;
	if (from == NULL || to == NULL)
		return refuse_null(fragment, "frag_add_flow");
	from_end.op = from->name;
	to_end.op = to->name;
	r = fragi_making_check_flow(fragment, from->name, to->name, capacity, policy);
	if (r == 0)
		r = frag_add_operator(fragment, from);
	if (r == 0)
		r = frag_add_operator(fragment, to);
	if (r < 0)
		return r;
	if (fragi_making_keep(fragment, out_port, &from_end.port) < 0 ||
	    fragi_making_keep(fragment, in_port, &to_end.port) < 0)
		return fragi_making_fail(fragment, -ENOMEM, NULL, NULL, "out of memory for a flow");
	return fragi_making_flow(fragment, &from_end, &to_end, capacity, policy);
}

static int set_policy(struct frag_fragment *fragment, const char *subject,
		      enum frag_metadata_policy policy, enum frag_metadata_policy *out)
{
	if (!fragi_making_is_open(fragment))
		return -EBUSY;
	if (policy < FRAG_METADATA_DEFAULT || policy > FRAG_METADATA_RAISE)
		return fragi_making_fail(
			fragment, -EINVAL, NULL, subject,
			"%d is not a valid metadata policy; take one of FRAG_METADATA_...",
			(int)policy);
	*out = policy;
	return 0;
}

int frag_set_metadata_policy(struct frag_op *op, enum frag_metadata_policy policy)
{
	return op != NULL ? set_policy(op->fragment, op->subject, policy, &op->metadata_policy)
			  : -EINVAL;
}

int frag_fragment_set_metadata_policy(struct frag_fragment *fragment,
				      enum frag_metadata_policy policy)
{
	enum frag_metadata_policy unused;

	return set_policy(fragment, NULL, policy,
			  fragment->making != NULL ? &fragment->making->metadata_policy : &unused);
}

int frag_enable_metadata(struct frag_op *op, int enable)
{
	if (op == NULL)
		return -EINVAL;
	if (!fragi_making_is_open(op->fragment))
		return -EBUSY;
	op->made->metadata = enable != 0;
	return 0;
}

int frag_fragment_enable_metadata(struct frag_fragment *fragment, int enable)
{
	if (!fragi_making_is_open(fragment))
		return -EBUSY;
	fragment->making->metadata = enable != 0;
	return 0;
}

struct frag_condition *frag_make_condition(struct frag_op *op, const char *name, const char *type,
					   const struct frag_arg *args)
{
	struct fragi_spec_setting *settings;
	size_t count;

	if (op == NULL || (!op->in_setup && !fragi_making_is_open(op->fragment)))
		return NULL;
	if (fragi_making_settings(op->fragment, op->subject, args, &settings, &count) < 0) {
		op->made->failed = true;
		return NULL;
	}
	return fragi_condition_make(op, name, type != NULL ? type : "", settings, count, NULL);
}

int frag_or_combine_port_conditions(struct frag_op *op, const char *const *ports, size_t count)
{
	char *text;

	if (op == NULL)
		return -EINVAL;
	if (!op->in_setup && !fragi_making_is_open(op->fragment))
		return -EBUSY;
	text = fragi_arena_printf(&op->fragment->arena, "[");
	for (size_t i = 0; text != NULL && i < count; i++) {
		if (ports[i] == NULL || !fragi_name_is_valid(ports[i]))
			return fragi_making_fail(op->fragment, -EINVAL, NULL, op->subject,
						 "\"%.80s\" is not a valid name of a port",
						 ports[i] != NULL ? ports[i] : "");
		text = fragi_arena_printf(&op->fragment->arena, "%s%s%s", text, i > 0 ? ", " : "",
					  ports[i]);
	}
	if (text != NULL)
		text = fragi_arena_printf(&op->fragment->arena, "%s]", text);
	if (text == NULL)
		return fragi_making_fail(op->fragment, -ENOMEM, NULL, op->subject,
					 "out of memory for a condition");
	return frag_make_condition(op, NULL, "or", FRAG_ARGS({"ports", text})) != NULL ? 0
										       : -EINVAL;
}

int frag_fragment_fail(struct frag_fragment *fragment, int code, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	return fragi_making_fail(fragment, code, NULL, NULL, "%s", text);
}

const char *frag_fragment_name(const struct frag_fragment *fragment)
{
	return fragment->name;
}

const char *frag_fragment_argument(const struct frag_fragment *fragment, const char *name)
{
	return fragment->spec != NULL ? fragi_spec_argument(fragment->spec, name) : NULL;
}

const char *frag_fragment_config(const struct frag_fragment *fragment, const char *path)
{
	const struct fragi_node *node;

	if (fragment->spec == NULL || fragment->spec->config == NULL)
		return NULL;
	node = fragi_node_at(fragment->spec->config, path);
	return node != NULL && node->kind == FRAGI_NODE_SCALAR ? node->text : NULL;
}
