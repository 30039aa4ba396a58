// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include <frag/compose.h>
#include <frag/operator.h>
#include <frag/service.h>
#include <frag/thread_pool.h>
#include <graph/op.h>

#include "graph_texts.h"

/* What is composed in C: what its author can get wrong, and what can be looked at. */

struct gated {
	struct frag_condition *gate, *other;
};

static int compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

static const struct frag_port ports[] = {{.name = "in", .dir = FRAG_IN, .flags = FRAG_PORT_MULTI},
					 {.name = "out", .dir = FRAG_OUT}};
static const struct frag_op_type plain = {FRAG_OP_TYPE_INIT, .name = "plain", FRAG_PORTS(ports),
					  .compute = compute};

static struct frag_fragment *begin(struct fragi_diag *diag)
{
	struct frag_fragment *fragment;

	cr_assert_eq(fragi_fragment_begin("app", NULL, NULL, NULL, diag, &fragment), 0);
	return fragment;
}

static void end(struct frag_fragment *fragment, struct fragi_diag *diag, const char *errors)
{
	cr_expect_eq(fragi_fragment_complete(fragment), errors[0] != '\0' ? -EINVAL : 0);
	expect_errors(diag, errors);
	cr_expect_null(frag_make_operator_of(fragment, "late", &plain, FRAG_NO_ARGS),
		       "a complete fragment takes nothing more");
	fragi_fragment_destroy(fragment);
	fragi_diag_fini(diag);
}

Test(composed, names_that_are_none_or_taken_are_refused)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);
	struct frag_op *op = frag_make_operator_of(fragment, "op", &plain, FRAG_NO_ARGS);

	cr_assert_eq(frag_add_operator(fragment, op), 0);
	cr_expect_null(frag_make_operator_of(fragment, NULL, &plain, FRAG_NO_ARGS));
	cr_expect_not_null(frag_make_condition(op, "gate", "boolean", FRAG_NO_ARGS));
	cr_expect_null(frag_make_condition(op, "gate", "count", FRAG_NO_ARGS));
	cr_expect_null(frag_make_condition(op, "a gate", "count", FRAG_NO_ARGS));
	cr_expect_null(frag_make_condition(op, "gate2", NULL, FRAG_NO_ARGS));
	cr_expect_not_null(
		frag_make_resource(fragment, "pool", "unbounded_allocator", FRAG_NO_ARGS));
	cr_expect_null(frag_make_resource(fragment, "pool", "unbounded_allocator", FRAG_NO_ARGS));
	cr_expect_null(frag_make_resource(fragment, "a pool", "unbounded_allocator", FRAG_NO_ARGS));
	cr_expect_null(frag_make_resource(fragment, NULL, NULL, FRAG_NO_ARGS));
	end(fragment, &diag,
	    "app: \"\" is not a valid name of an operator; write a letter, then letters, digits, _ or -, 63 at most\n"
	    "app.op: two conditions are called \"gate\"\n"
	    "app.op: \"a gate\" is not a valid name of a condition\n"
	    "app.op: unknown condition type \"\"; valid: message_available, expiring_message_available, multi_message_available, multi_message_available_timeout, downstream_affordable, memory_available, count, boolean, asynchronous, periodic, cuda_stream, cuda_event, cuda_buffer, or, none\n"
	    "app: two resources or services are called \"pool\"\n"
	    "app: \"a pool\" is not a valid name of a resource\n"
	    "app: \"\" is not a valid name of a resource\n");
}

Test(composed, a_policy_of_metadata)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);
	struct frag_op *op = frag_make_operator_of(fragment, "op", &plain, FRAG_NO_ARGS);

	cr_expect_eq(frag_add_operator(fragment, op), 0);
	cr_expect_eq(frag_set_metadata_policy(op, FRAG_METADATA_UPDATE), 0);
	cr_expect_eq(op->metadata_policy, FRAG_METADATA_UPDATE);
	cr_expect_eq(frag_set_metadata_policy(NULL, FRAG_METADATA_UPDATE), -EINVAL);
	cr_expect_eq(frag_set_metadata_policy(op, (enum frag_metadata_policy)9), -EINVAL);
	end(fragment, &diag,
	    "app.op: 9 is not a valid metadata policy; take one of FRAG_METADATA_...\n");
}

/* The inner level wins: an operator, its fragment. */
Test(composed, metadata_of_an_operator_and_of_its_fragment)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);
	struct frag_op *ops[3];

	for (int i = 0; i < 3; i++) {
		const char name[] = {(char)('a' + i), '\0'};

		ops[i] = frag_make_operator_of(fragment, name, &plain, FRAG_NO_ARGS);
		cr_assert_eq(frag_add_operator(fragment, ops[i]), 0);
	}
	cr_expect_eq(frag_enable_metadata(ops[0], 1), 0);
	cr_expect_eq(frag_set_metadata_policy(ops[1], FRAG_METADATA_UPDATE), 0);
	cr_expect_eq(frag_fragment_enable_metadata(fragment, 0), 0);
	cr_expect_eq(frag_fragment_set_metadata_policy(fragment, FRAG_METADATA_REJECT), 0);
	cr_expect_eq(frag_enable_metadata(NULL, 1), -EINVAL);
	cr_assert_eq(fragi_fragment_complete(fragment), 0);
	cr_expect(ops[0]->metadata && ops[0]->metadata_policy == FRAG_METADATA_REJECT);
	cr_expect(!ops[1]->metadata && ops[1]->metadata_policy == FRAG_METADATA_UPDATE);
	cr_expect(!ops[2]->metadata && ops[2]->metadata_policy == FRAG_METADATA_REJECT);
	cr_expect_eq(frag_enable_metadata(ops[0], 0), -EBUSY, "only inside a composer");
	cr_expect_eq(frag_fragment_enable_metadata(fragment, 0), -EBUSY);
	cr_expect_eq(frag_fragment_set_metadata_policy(fragment, FRAG_METADATA_RAISE), -EBUSY);
	fragi_fragment_destroy(fragment);
	expect_errors(&diag, "");
	fragi_diag_fini(&diag);
}

Test(composed, an_operator_made_twice_is_refused)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);

	cr_assert_eq(frag_add_operator(fragment,
				       frag_make_operator_of(fragment, "op", &plain, FRAG_NO_ARGS)),
		     0);
	cr_expect_null(frag_make_operator_of(fragment, "op", &plain, FRAG_NO_ARGS));
	end(fragment, &diag, "app: operator \"op\" is made twice\n");
}

Test(composed, flows_of_nothing_or_by_no_policy_are_refused)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag), *other = begin(&diag);
	struct frag_op *a = frag_make_operator_of(fragment, "a", &plain, FRAG_NO_ARGS);
	struct frag_op *b = frag_make_operator_of(fragment, "b", &plain, FRAG_NO_ARGS);
	struct frag_op *stranger = frag_make_operator_of(other, "stranger", &plain, FRAG_NO_ARGS);

	cr_expect_eq(frag_add_flow(fragment, a, "out", b, "in"), 0);
	cr_expect_eq(frag_add_flow(fragment, NULL, "out", b, "in"), -EINVAL);
	cr_expect_eq(frag_add_flow(fragment, stranger, "out", b, "in"), -EINVAL);
	cr_expect_eq(frag_add_flow_with(fragment, a, "out", b, "in", 1, (enum frag_policy)9),
		     -EINVAL);
	cr_expect_eq(frag_add_flow_with(fragment, a, "out", b, "in", 65537, FRAG_POLICY_DEFAULT),
		     -EINVAL);
	cr_expect_null(frag_make_condition(NULL, NULL, "count", FRAG_NO_ARGS));
	fragi_fragment_destroy(other);
	end(fragment, &diag,
	    "app: frag_add_flow: the operator is NULL\n"
	    "app: operator \"stranger\" is of fragment \"app\"\n"
	    "app: flow a -> b: 9 is not a valid policy; take one of FRAG_POLICY_...\n"
	    "app: flow a -> b: its capacity is 65537; give 65536 at most\n");
}

Test(composed, a_condition_may_name_a_port_that_is_there_only)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);
	struct frag_op *op = frag_make_operator_of(fragment, "op", &plain, FRAG_NO_ARGS);

	cr_assert_eq(frag_add_operator(fragment, op), 0);
	frag_make_condition(op, NULL, "message_available", FRAG_ARGS({"receiver", "inn"}));
	frag_make_condition(op, NULL, "downstream_affordable", FRAG_ARGS({"transmitter", "in"}));
	end(fragment, &diag,
	    "app.op: condition message_available: there is no input \"inn\"; did you mean \"in\"?\n"
	    "app.op: condition downstream_affordable: there is no output \"in\"; its outputs: out\n");
}

static struct frag_op *grows;

static int grow(void *state, struct frag_op *op)
{
	struct frag_fragment *fragment = op->fragment;
	struct frag_op *other = fragment->ops[1];

	cr_expect_null(frag_make_operator_of(fragment, "late", &plain, FRAG_NO_ARGS));
	cr_expect_eq(frag_add_flow(fragment, op, "out", op, "in"), -EBUSY);
	cr_expect_null(frag_make_resource(fragment, "late", "unbounded_allocator", FRAG_NO_ARGS));
	cr_expect_null(frag_make_condition(other, NULL, "count", FRAG_NO_ARGS));
	cr_expect_eq(frag_or_combine_port_conditions(other, NULL, 0), -EBUSY);
	cr_expect_not_null(frag_make_condition(op, NULL, "count", FRAG_NO_ARGS), "its own");
	grows = op;
	return 0;
}

Test(composed, nothing_but_its_own_conditions_is_added_in_setup)
{
	struct frag_op_type type = plain;
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);

	type.setup = grow;
	cr_assert_eq(frag_add_operator(fragment,
				       frag_make_operator_of(fragment, "op", &type, FRAG_NO_ARGS)),
		     0);
	cr_assert_eq(frag_add_operator(fragment, frag_make_operator_of(fragment, "other", &plain,
								       FRAG_NO_ARGS)),
		     0);
	cr_expect_eq(fragi_fragment_complete(fragment), -EINVAL);
	cr_expect_not_null(grows, "setup ran");
	cr_assert_geq(diag.count, 1);
	cr_expect_not_null(strstr(diag.items[0].text,
				  "a graph can only be added to inside a composer, not in setup"));
	fragi_fragment_destroy(fragment);
	fragi_diag_fini(&diag);
}

static int add_no_port(void *state, struct frag_op *op)
{
	cr_expect_eq(frag_op_add_port(op, NULL), -EINVAL);
	grows = op;
	return -EINVAL;
}

Test(composed, ports_that_are_none)
{
	static const char *const none[] = {NULL}, *const spaces[] = {"in", "a b"};
	struct frag_op_type type = plain;
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);
	struct frag_op *op;

	type.setup = add_no_port;
	op = frag_make_operator_of(fragment, "op", &type, FRAG_NO_ARGS);
	cr_assert_eq(frag_add_operator(fragment, op), 0);
	cr_expect_eq(frag_or_combine_port_conditions(op, none, 1), -EINVAL);
	cr_expect_eq(frag_or_combine_port_conditions(op, spaces, 2), -EINVAL);
	end(fragment, &diag,
	    "app.op: \"\" is not a valid name of a port\n"
	    "app.op: \"a b\" is not a valid name of a port\n"
	    "app.op: cannot add a port: there is none\n");
	cr_expect_eq(grows, op, "setup ran");
}

/* What is left when the composer has returned, and what is no operator. */
Test(composed, nothing_is_composed_later)
{
	static const char *const inputs[] = {"in"};
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);
	struct frag_op *op = frag_make_operator_of(fragment, "op", &plain, FRAG_NO_ARGS);
	struct frag_thread_pool *pool = frag_make_thread_pool(fragment, "pool", 1);
	struct frag_resource *resource =
		frag_make_resource(fragment, "memory", "unbounded_allocator", FRAG_NO_ARGS);

	cr_assert(pool != NULL && resource != NULL);
	cr_assert_eq(frag_add_operator(fragment, op), 0);
	for (int i = 0; i < 2; i++) {
		struct frag_op *one = i == 0 ? op : NULL;
		struct frag_op *const path[] = {one, one};
		const int r = i == 0 ? -EBUSY : -EINVAL;

		if (i == 0)
			cr_assert_eq(fragi_fragment_complete(fragment), 0);
		cr_expect_eq(frag_enable_metadata(one, 1), r);
		cr_expect_eq(frag_set_metadata_policy(one, FRAG_METADATA_UPDATE), r);
		cr_expect_eq(frag_or_combine_port_conditions(one, inputs, 1), r);
		cr_expect_eq(frag_set_deadline(one, 1000000, FRAG_DEADLINE_FROM_TICK,
					       FRAG_ON_MISS_COUNT),
			     r);
		cr_expect_eq(frag_set_input_timing(one, "in", FRAG_TAKE_EVERY, 0, FRAG_MISSING_WAIT,
						   NULL),
			     r);
		cr_expect_eq(frag_align_inputs(one, inputs, 1, 1, 1), r);
		cr_expect_eq(frag_add_resource(one, resource), r);
		cr_expect_eq(frag_thread_pool_add(i == 0 ? pool : NULL, path, 1, 0, NULL, 0), r);
		cr_expect_eq(frag_thread_pool_add_realtime(i == 0 ? pool : NULL, op, NULL), r);
		cr_expect_eq(frag_add_path_deadline(fragment, path, 2, 1, FRAG_ON_MISS_COUNT),
			     -EBUSY);
		cr_expect_eq(frag_add_operator(fragment, one), -EBUSY);
		cr_expect_eq(frag_add_flow(fragment, one, "out", one, "in"), -EBUSY);
		cr_expect_eq(frag_add_named_flow(fragment, "op", "out", "op", "in", 0,
						 FRAG_POLICY_BLOCK),
			     -EBUSY);
	}
	cr_expect_eq(frag_fragment_set_clock(fragment, "manual", FRAG_NO_ARGS), -EBUSY);
	cr_expect_eq(frag_application_set_clock(fragment, "manual", FRAG_NO_ARGS), -EBUSY);
	cr_expect_eq(frag_add_data_logger(fragment, resource), -EBUSY);
	cr_expect_eq(frag_register_service(fragment, resource, "id"), -EBUSY);
	cr_expect_null(frag_make_thread_pool(fragment, "late", 1));
	fragi_fragment_destroy(fragment);
	expect_errors(&diag, "");
	fragi_diag_fini(&diag);
}

Test(composed, an_operator_shows_its_conditions)
{
	static const struct frag_param params[] = {
		FRAG_PARAM_CONDITION(struct gated, gate, NULL),
		FRAG_PARAM_CONDITION(struct gated, other, NULL, .flags = FRAG_PARAM_OPTIONAL),
	};
	static const struct frag_op_type type = {FRAG_OP_TYPE_INIT, .name = "gated",
						 .state_size = sizeof(struct gated),
						 FRAG_PARAMS(params), .compute = compute};
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);
	struct frag_op *op =
		frag_make_operator_of(fragment, "op", &type, FRAG_ARGS({"gate", "$gate"}));
	char *text;

	cr_assert_eq(frag_add_operator(fragment, op), 0);
	frag_make_condition(op, "gate", "boolean", FRAG_ARGS({"enable_tick", "false"}));
	frag_make_condition(op, NULL, "count", FRAG_ARGS({"count", "9"}));
	cr_assert_eq(fragi_fragment_complete(fragment), 0);
	cr_expect_str_eq(frag_fragment_name(fragment), "app");
	cr_expect_str_eq(frag_op_fragment_name(op), "app");
	text = frag_op_describe(op);
	cr_expect_str_eq(text, "name: op\n"
			       "fragment: app\n"
			       "type: gated\n"
			       "parameters:\n"
			       "  gate: \"$gate\"\n"
			       "  other: null\n"
			       "conditions:\n"
			       "  - name: gate\n"
			       "    type: boolean\n"
			       "    parameters:\n"
			       "      enable_tick: false\n"
			       "  - name: count\n"
			       "    type: count\n"
			       "    parameters:\n"
			       "      count: 9\n");
	free(text);
	expect_errors(&diag, "");
	fragi_fragment_destroy(fragment);
}
