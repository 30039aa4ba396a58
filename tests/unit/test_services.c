// SPDX-License-Identifier: Apache-2.0
#include <frag/harness.h>
#include <graph/compose.h>

#include "graph_texts.h"
#include "rig_ops.h"

/* Services: who finds which, and when the callbacks of an application's services are called. */

static char lived[512];

static int live(const char *what, const char *mark)
{
	size_t length = strlen(lived);

	snprintf(lived + length, sizeof(lived) - length, "%s%s ", what, mark);
	return 0;
}

/* Shared by those who find it. */
struct counter {
	const char *mark;
	int64_t calls;
};
static const struct frag_param counter_params[] = {
	FRAG_PARAM_STRING(struct counter, mark, "?"),
};
static const struct frag_resource_type counter_type = {
	FRAG_RESOURCE_TYPE_INIT,
	.name = "counter",
	.state_size = sizeof(struct counter),
	FRAG_PARAMS(counter_params),
};

/* A service of the application. */
struct hub {
	const char *mark, *fails_in, *says;
};
static const struct frag_param hub_params[] = {
	FRAG_PARAM_STRING(struct hub, mark, "h"),
	FRAG_PARAM_STRING(struct hub, fails_in, ""),
	FRAG_PARAM_STRING(struct hub, says, NULL, .flags = FRAG_PARAM_OPTIONAL),
};

static int hub_initialize(void *state, struct frag_resource *resource, struct frag_err *err)
{
	cr_expect_eq(frag_service_announce(resource, "x"), -EBUSY);
	return live("init:", ((const struct hub *)state)->mark);
}

static int hub_driver_start(void *state, struct frag_resource *resource, struct frag_err *err)
{
	const struct hub *s = state;
	char large[FRAG_ANNOUNCEMENT_MAX + 2];

	live("start:", s->mark);
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	cr_expect_eq(frag_service_announce(resource, large), -EMSGSIZE);
	large[sizeof(large) - 2] = '\0';
	cr_expect_eq(frag_service_announce(resource, large), 0, "the longest one");
	cr_expect_eq(frag_service_announce(resource, ""), 0, "the last one counts");
	cr_expect_eq(frag_service_announce(resource, NULL), -EINVAL);
	if (s->says != NULL)
		cr_expect_eq(frag_service_announce(resource, s->says), 0);
	return strcmp(s->fails_in, "start") == 0
		       ? frag_err_set(err, -EADDRINUSE, "port 4711 is in use; give another")
		       : 0;
}

static int hub_driver_stop(void *state, struct frag_resource *resource)
{
	live("stop:", ((const struct hub *)state)->mark);
	return -EIO; /* is only logged */
}

static int hub_worker_connect(void *state, struct frag_resource *resource, const char *driver,
			      struct frag_err *err)
{
	const struct hub *s = state;

	live("connect:", s->mark);
	live("to:", driver != NULL ? driver : "nobody");
	if (strcmp(s->fails_in, "asked") == 0)
		return frag_err_set(err, -EINVAL, "give a port");
	if (strcmp(s->fails_in, "wrong") == 0)
		return 1;
	return strcmp(s->fails_in, "connect") == 0 ? -ECONNREFUSED : 0;
}

static int hub_worker_disconnect(void *state, struct frag_resource *resource)
{
	return live("disconnect:", ((const struct hub *)state)->mark);
}

static void hub_fini(void *state)
{
	live("fini:", ((const struct hub *)state)->mark);
}

static const struct frag_resource_type hub_type = {
	FRAG_RESOURCE_TYPE_INIT,
	.name = "hub",
	.state_size = sizeof(struct hub),
	FRAG_PARAMS(hub_params),
	.initialize = hub_initialize,
	.fini = hub_fini,
	.driver_start = hub_driver_start,
	.driver_stop = hub_driver_stop,
	.worker_connect = hub_worker_connect,
	.worker_disconnect = hub_worker_disconnect,
};

static const char *mark_of(struct frag_resource *service)
{
	const struct counter *counter = frag_resource_state(service, "counter");

	return counter != NULL ? counter->mark : "-";
}

/* Notes which counter it finds, and calls it. */
struct user {
	const char *id;
};
static const struct frag_param user_params[] = {FRAG_PARAM_STRING(struct user, id, "")};

static int user_start(void *state, struct frag_op *op)
{
	const struct user *s = state;
	struct frag_resource *service = frag_op_service(op, "counter", s->id);
	char what[100];

	snprintf(what, sizeof(what), "%s:", frag_op_name(op));
	cr_expect_eq(frag_op_service(op, "counter", s->id[0] != '\0' ? s->id : NULL), service);
	return live(what, mark_of(service));
}

static int user_compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

static int user_stop(void *state, struct frag_op *op)
{
	return live("stopped", "");
}

TEST_OP(user, .state_size = sizeof(struct user), FRAG_PARAMS(user_params), .start = user_start,
	.stop = user_stop);

/* A condition and a resource that look for a service. */
static int seek_bind(void *state, struct frag_condition *condition, struct frag_err *err)
{
	(void)state, (void)err;
	return live("condition:", mark_of(frag_condition_service(condition, "counter", "left")));
}

static enum frag_ready seek_check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	(void)state, (void)now_ns, (void)out_until_ns;
	return FRAG_READY;
}

static const struct frag_condition_type seek_condition = {FRAG_CONDITION_TYPE_INIT, .name = "seek",
							  .bind = seek_bind, .check = seek_check};

static int seek_initialize(void *state, struct frag_resource *resource, struct frag_err *err)
{
	(void)state, (void)err;
	return live("resource:", mark_of(frag_resource_service(resource, "counter", "left")));
}

static const struct frag_resource_type seek_resource = {FRAG_RESOURCE_TYPE_INIT, .name = "seeker",
							.initialize = seek_initialize};

/* A subgraph that has a counter of its own, and two users. */
static int compose_pair(struct frag_subgraph *pair, struct frag_fragment *fragment)
{
	const char *mark = frag_subgraph_argument(pair, "mark");
	struct frag_resource *own =
		frag_make_resource(fragment, "own", "counter", FRAG_ARGS({"mark", mark}));
	int r = frag_register_service(fragment, own, NULL);

	if (r == 0)
		r = frag_add_operator(fragment, frag_make_operator(fragment, "a", "user", NULL));
	return r;
}
static const struct frag_subgraph_type subgraphs[] = {{"pair", NULL, compose_pair}};

static int compose_both(struct frag_fragment *fragment)
{
	struct frag_resource *left =
		frag_make_resource(fragment, "l", "counter", FRAG_ARGS({"mark", "left"}));
	struct frag_resource *pool = frag_make_resource(fragment, "p", "unbounded_allocator", NULL);

	cr_expect_eq(frag_register_service(fragment, left, "left"), 0);
	cr_expect_eq(frag_register_service(fragment, left, ""), 0);
	cr_expect_eq(frag_register_service(fragment, pool, NULL), 0);
	cr_expect_eq(frag_fragment_service(fragment, "counter", "left"), left);
	cr_expect_eq(frag_fragment_service(fragment, "counter", "right"), NULL);
	cr_expect_eq(frag_fragment_service(fragment, "UnboundedAllocator", NULL), pool);
	cr_expect_eq(frag_fragment_service(fragment, NULL, NULL), NULL);
	return frag_add_operator(fragment, frag_make_operator(fragment, "u", "user", NULL));
}

static int compose_wrong(struct frag_fragment *fragment)
{
	struct frag_resource *one = frag_make_resource(fragment, "one", "counter", NULL);
	struct frag_resource *two = frag_make_resource(fragment, "two", "counter", NULL);
	struct frag_resource *hub = frag_make_resource(fragment, "hub", "hub", NULL);

	cr_expect_eq(frag_register_service(fragment, NULL, NULL), -EINVAL);
	cr_expect_eq(frag_register_service(fragment, one, "a b"), -EINVAL);
	cr_expect_eq(frag_register_service(fragment, one, NULL), 0);
	cr_expect_eq(frag_register_service(fragment, two, NULL), -EEXIST);
	cr_expect_eq(frag_register_service(fragment, one, "id"), 0);
	cr_expect_eq(frag_register_service(fragment, two, "id"), -EEXIST);
	cr_expect_eq(frag_register_service(fragment, hub, NULL), -EINVAL);
	return frag_add_operator(fragment, frag_make_operator(fragment, "u", "user", NULL));
}

static const struct frag_op_type *const ops[] = {&user_type};
static const struct frag_resource_type *const resources[] = {&counter_type, &hub_type,
							     &seek_resource};
static const struct frag_condition_type *const conditions[] = {&seek_condition};
static const struct frag_composer composers[] = {{"both", NULL, compose_both},
						 {"wrong", NULL, compose_wrong}};
static const struct frag_plugin plugin = {
	TEST_PLUGIN_INIT,          .name = "services",          FRAG_OPS(ops),
	FRAG_RESOURCES(resources), FRAG_CONDITIONS(conditions), FRAG_SUBGRAPHS(subgraphs),
	FRAG_COMPOSERS(composers)};

#define HEAD "frag: 1\napplication: app\n"
/* One thread, so that the order of what is noted is that of the graph. */
#define GREEDY "scheduler: {type: greedy}\n"

/* Runs it as its host does. Returns what was noted. */
static const char *run(const char *yaml)
{
	struct frag_err err = FRAG_ERR_INIT;
	const char *announced[8];
	struct rig rig;
	uint32_t count;

	lived[0] = '\0';
	rig_prepare_good(&rig, &plugin, yaml);
	count = fragi_run_service_count(rig.run);
	for (uint32_t i = 0; i < count; i++)
		announced[i] = fragi_run_announced(rig.run, i);
	cr_assert_eq(fragi_run_connect_services(rig.run, announced, count, &err), 0);
	rig_start(&rig);
	cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS));
	rig_end(&rig);
	return lived;
}

static void refused(const char *yaml, const char *lines)
{
	struct rig rig;

	lived[0] = '\0';
	cr_expect_lt(rig_prepare(&rig, &plugin, yaml), 0);
	expect_errors(&rig.diag, lines);
	rig_end(&rig);
}

Test(services, by_type_or_by_type_and_id)
{
	cr_expect_str_eq(run(HEAD "fragments:\n"
				  "  f:\n"
				  "    services:\n"
				  "      any: {type: counter, mark: any}\n"
				  "      left: {type: counter, id: left, mark: left}\n"
				  "    operators:\n"
				  "      a: {type: user}\n"
				  "      b: {type: user, parameters: {id: left}}\n"
				  "      c: {type: user, parameters: {id: right}}\n"
				  "    " GREEDY),
			 "a:any b:left c:- stopped stopped stopped ");
	cr_expect_str_eq(run(HEAD "fragments:\n"
				  "  f:\n"
				  "    services: {left: {type: counter, id: left, mark: left}}\n"
				  "    operators: {a: {type: user}}\n"),
			 "a:- stopped ", "one with an id is not found without");
}

Test(services, conditions_and_resources_find_them_too)
{
	cr_expect_str_eq(
		run(HEAD
		    "resources: {r: {type: seeker}}\n"
		    "services: {l: {type: counter, id: left, mark: left}}\n"
		    "operators: {a: {type: user, conditions: [{type: seek}], parameters: {id: left}}}\n"),
		"condition:left resource:left a:left stopped ");
}

Test(services, those_of_the_application_are_in_all_fragments_after_their_own)
{
	cr_expect_str_eq(run(HEAD "services:\n"
				  "  any: {type: counter, mark: app}\n"
				  "  left: {type: counter, mark: left, id: left}\n"
				  "fragments:\n"
				  "  f: {operators: {a: {type: user}}, " GREEDY "}\n"),
			 "a:app stopped ");
	cr_expect_str_eq(run(HEAD "services: {any: {type: counter, mark: app}}\n"
				  "fragments:\n"
				  "  f:\n"
				  "    services: {any: {type: counter, mark: own}}\n"
				  "    operators: {a: {type: user}}\n"),
			 "a:own stopped ");
}

Test(services, a_composer_registers_them)
{
	cr_expect_str_eq(run(HEAD "compose: both\n"), "u:left stopped ");
	refused(HEAD "compose: wrong\n",
		"app: frag_register_service: the resource is NULL\n"
		"app: \"a b\" is not a valid id of a service\n"
		"app: two services of type counter have no id; give one of them an id\n"
		"app: two services of type counter have the id \"id\"; give one of them another id\n"
		"app: service \"hub\" is of type hub, which follows the driver and the workers of an application; declare it in `services` at the top of the graph\n");
}

Test(services, instances_of_subgraphs_find_their_own_first)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_diag diag = {0};
	struct fragi_registry *registry;
	struct frag_fragment *fragment;
	struct frag_op *outside;

	cr_assert_eq(fragi_registry_create(&(struct fragi_registry_config){0}, &registry), 0);
	cr_assert_eq(fragi_registry_add(registry, "services", &plugin, &err), 0);
	cr_assert_eq(fragi_fragment_begin("f", NULL, NULL, registry, &diag, &fragment), 0);
	cr_assert_not_null(frag_make_subgraph(fragment, "x", "pair", FRAG_ARGS({"mark", "x"})));
	/* its name begins as those of what is in the instance */
	outside = frag_make_operator(fragment, "x_out", "user", NULL);
	cr_assert_eq(frag_add_operator(fragment, outside), 0);
	cr_expect_str_eq(mark_of(frag_op_service(outside, "counter", NULL)), "x",
			 "the only one is found everywhere");
	cr_assert_not_null(frag_make_subgraph(fragment, "y", "pair", FRAG_ARGS({"mark", "y"})));
	cr_assert_eq(fragi_fragment_complete(fragment), 0);
	cr_expect_str_eq(mark_of(frag_op_service(outside, "counter", NULL)), "-");
	cr_expect_str_eq(mark_of(frag_op_service(fragment->ops[0], "counter", NULL)), "x");
	cr_expect_str_eq(mark_of(frag_op_service(fragment->ops[2], "counter", NULL)), "y");
	cr_expect_str_eq(mark_of(frag_resource_service(fragment->resources[1], "counter", NULL)),
			 "y");
	fragi_fragment_destroy(fragment);
	fragi_registry_destroy(registry);
	fragi_diag_fini(&diag);
}

Test(services, instances_of_subgraphs_of_a_graph_have_their_own)
{
	cr_expect_str_eq(
		run(HEAD
		    "subgraphs:\n"
		    "  s:\n"
		    "    parameters: {mark: {}}\n"
		    "    services:\n"
		    "      own: {type: counter, mark: \"${mark}\"}\n"
		    "      left: {type: counter, id: left, mark: \"left of ${mark}\"}\n"
		    "    operators: {a: {type: user}, b: {type: user, parameters: {id: left}}}\n"
		    "services: {own: {type: counter, mark: app}}\n"
		    "operators:\n"
		    "  x: {subgraph: s, parameters: {mark: x}}\n"
		    "  y: {subgraph: s, parameters: {mark: y}}\n"
		    "  c: {type: user}\n" GREEDY),
		"x_a:x x_b:left of x y_a:y y_b:left of y c:app "
		"stopped stopped stopped stopped stopped ");
}

Test(services, callbacks_of_the_application_come_in_order)
{
	cr_expect_str_eq(run(HEAD "services:\n"
				  "  h: {type: hub, says: here}\n"
				  "  k: {type: hub, mark: k, id: k}\n"
				  "operators: {u: {type: user}}\n"),
			 "init:h init:k start:h start:k connect:h to:here connect:k to:nobody "
			 "u:- stopped disconnect:k disconnect:h stop:k stop:h fini:k fini:h ");
}

Test(services, a_host_without_the_first_fragment_only_connects)
{
	static const char *const second[] = {"f2", NULL};
	const char *const announced[] = {"10.0.0.7:4711"};
	struct frag_err err = FRAG_ERR_INIT;
	struct rig rig;

	lived[0] = '\0';
	cr_assert_eq(rig_prepare_host(&rig, &plugin,
				      HEAD "services: {h: {type: hub}}\n"
					   "fragments:\n"
					   "  f1: {operators: {u: {type: user}}}\n"
					   "  f2: {operators: {v: {type: user}}}\n",
				      second, 1),
		     0);
	cr_expect_not(fragi_run_is_driver(rig.run));
	cr_assert_eq(fragi_run_connect_services(rig.run, announced, 1, &err), 0);
	rig_start(&rig);
	cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_str_eq(lived, "init:h connect:h to:10.0.0.7:4711 v:- stopped disconnect:h ");
	rig_end(&rig);
	cr_expect_str_eq(strstr(lived, "disconnect"), "disconnect:h fini:h ");
}

Test(services, failures_of_callbacks_refuse_the_application)
{
	const char *const announced[] = {"", ""};
	struct frag_err err = FRAG_ERR_INIT;
	struct rig rig;

	refused(HEAD "services: {h: {type: hub}, k: {type: hub, id: k, mark: k, fails_in: start}}\n"
		     "operators: {u: {type: user}}\n",
		"app.k: port 4711 is in use; give another\n");
	cr_expect_str_eq(lived, "init:h init:k start:h start:k stop:h fini:k fini:h ");
	lived[0] = '\0';
	rig_prepare_good(
		&rig, &plugin,
		HEAD
		"services: {h: {type: hub}, k: {type: hub, id: k, mark: k, fails_in: connect}}\n"
		"operators: {u: {type: user}}\n");
	cr_expect_eq(fragi_run_connect_services(rig.run, announced, 2, &err), -ECONNREFUSED);
	cr_expect_str_eq(err.text, "app.k: Connection refused");
	rig_end(&rig);
	cr_expect_str_eq(lived, "init:h init:k start:h start:k connect:h to:nobody connect:k "
				"to:nobody disconnect:h stop:k stop:h fini:k fini:h ");
}

/* Connects one service, which fails. Returns what its class is. */
static enum fragi_failure failure_of(const char *fails_in, const char *text)
{
	struct frag_err err = FRAG_ERR_INIT;
	char yaml[200];
	struct rig rig;

	lived[0] = '\0';
	snprintf(yaml, sizeof(yaml),
		 HEAD "services: {h: {type: hub, fails_in: %s}}\noperators: {u: {type: user}}\n",
		 fails_in);
	rig_prepare_good(&rig, &plugin, yaml);
	cr_expect_eq(fragi_run_connect_services(rig.run, NULL, 0, &err), err.code);
	cr_expect_str_eq(err.text, text);
	rig_end(&rig);
	cr_expect_str_eq(lived, "init:h start:h connect:h to:nobody stop:h fini:h ");
	return fragi_err_failure(&err);
}

Test(services, one_that_refuses_differs_from_one_that_fails)
{
	cr_expect_eq(failure_of("asked", "app.h: give a port"), FRAGI_FAILURE_OPERATOR_REFUSED);
	cr_expect_eq(failure_of("connect", "app.h: Connection refused"),
		     FRAGI_FAILURE_OPERATOR_FAILED);
	cr_expect_eq(failure_of("wrong", "app.h: worker_connect returned 1; return 0 or a negative "
					 "errno"),
		     FRAGI_FAILURE_OPERATOR_REFUSED);
}

Test(services, what_goes_wrong_at_the_end_is_logged)
{
	int ends[2], saved = dup(STDERR_FILENO);
	char heard[1000] = "";

	cr_assert_eq(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	run(HEAD "services: {h: {type: hub}}\noperators: {u: {type: user}}\n");
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[1]);
	cr_expect_gt(read(ends[0], heard, sizeof(heard) - 1), 0);
	close(ends[0]);
	cr_expect_not_null(strstr(heard, "h: driver_stop returned -5 (Input/output error)"), "%s",
			   heard);
	cr_expect_null(strstr(heard, "worker_disconnect"), "%s", heard);
}

static int compose_counter(struct frag_fragment *fragment)
{
	return frag_register_service(
		fragment,
		frag_make_resource_of(fragment, "c", &counter_type, FRAG_ARGS({"mark", "mine"})),
		"left");
}

static int compose_nothing(struct frag_fragment *fragment)
{
	return frag_register_service(fragment, NULL, NULL);
}

Test(services, the_harness_takes_them_from_a_composer)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h;

	lived[0] = '\0';
	h = frag_harness_create_composed(&user_type, FRAG_ARGS({"id", "left"}), compose_counter,
					 &err);
	cr_assert_not_null(h, "%s", err.text);
	cr_expect_str_eq(lived, "user:mine ");
	frag_harness_destroy(h);
	cr_expect_null(frag_harness_create_composed(&user_type, NULL, compose_nothing, &err));
	cr_expect_str_eq(err.text, "harness: frag_register_service: the resource is NULL");
}

Test(services, wrong_declarations_are_all_reported)
{
	refused(HEAD "services:\n"
		     "  a: {id: x}\n"
		     "  b: {type: counter, id: [1]}\n"
		     "  c: {type: counter, id: a b}\n"
		     "  d: 7\n"
		     "  \"e f\": {type: counter}\n"
		     "operators: {u: {type: user}}\n",
		"test.yaml:4:3: app.a: a service has no type; write for example {type: unbounded_allocator}\n"
		"test.yaml:5:26: app.b: id is a list; it must be a single value\n"
		"test.yaml:6:26: app.c: id \"a b\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"test.yaml:7:6: app.d: a service is a single value; it must be a map (keys and values)\n"
		"test.yaml:8:3: app: service \"e f\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n");
	refused(HEAD "services: [counter]\noperators: {u: {type: user}}\n",
		"test.yaml:3:11: services is a list; it must be a map (keys and values)\n");
	refused(HEAD
		"services: {a: {type: countr}, b: {type: counter, marc: x}, c: {type: counter}, d: {type: counter}}\n"
		"operators: {u: {type: user}}\n",
		"test.yaml:3:12: app.a: unknown resource type \"countr\"; did you mean \"counter\"?\n"
		"test.yaml:3:50: app.b: unknown parameter \"marc\"; did you mean \"mark\"?\n"
		"test.yaml:3:80: app: two services of type counter have no id; give one of them an id\n");
	refused(HEAD "fragments:\n"
		     "  f:\n"
		     "    resources: {a: {type: counter}}\n"
		     "    services: {a: {type: counter}, h: {type: hub}}\n"
		     "    operators: {u: {type: user}}\n",
		"test.yaml:6:16: f: two resources or services are called \"a\"\n"
		"test.yaml:6:36: f: service \"h\" is of type hub, which follows the driver and the workers of an application; declare it in `services` at the top of the graph\n");
}
