// SPDX-License-Identifier: Apache-2.0
/* What placed fragments take of their workers, and what a client hears of it. */
#include "driver_world.h"

#define CLIENT 50
#define HEAD_OF(name) "frag: 1\napplication: " name "\nfragments:\n"
#define GIB (UINT64_C(1) << 30)

static const char wants_two[] = TWO_FRAGMENTS(", requirements: {cpu: 2, gpu: 1}",
					      ", requirements: {memory: 1Gi, memoryLimit: 2Gi}");

static void ask(struct world *w, uint64_t connection, const char *name, const char *what)
{
	struct fw_message message = {.kind = FW_EXPLAIN, .seq = 7, .explain = {name, what}};

	say(w, connection, &message);
}

static const struct fw_explanation *explained(struct world *w, const char *name, const char *what)
{
	const struct fw_message *message;

	ask(w, CLIENT, name, what);
	message = must_take(w, CLIENT, FW_EXPLANATION);
	cr_expect_eq(message->reply_to, 7);
	return &message->explanation;
}

static void comes(struct world *w, uint64_t connection, const char *name, uint32_t gpus)
{
	hello_by(w, connection, name, NULL,
		 (struct fw_hello){.node = "n",
				   .has = {[FRAGI_AMOUNT_MEMORY] = 4 * GIB,
					   [FRAGI_AMOUNT_GPU] = gpus * FRAGI_AMOUNT_ONE}});
}

WORLD_TEST(driver_explain, why_a_fragment_waits_and_why_it_runs_there, world_init)
{
	const struct fw_explanation *all;

	client_hello(w, CLIENT, "top");
	app(w, wants_two);
	comes(w, 1, "a", 0);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	all = explained(w, "app", "");
	cr_expect_str_eq(all->state, "waiting");
	cr_assert_eq(all->placement_count, 2);
	cr_expect_str_eq(all->placements[0].fragment, "f1");
	cr_expect_str_eq(all->placements[0].worker, "");
	cr_expect_str_eq(all->placements[0].required, "cpu 2, gpu 1");
	cr_expect_str_eq(all->placements[0].reason,
			 "f1 wants 1 gpu, and no worker has so much; worker a has 0");
	cr_expect_str_eq(all->placements[1].required, "memory 1 GiB, at most memory 2 GiB");
	cr_expect(strstr(all->placements[1].reason, "it has a place, but others have none") !=
		  NULL);
	cr_assert_eq(all->route_count, 1);
	cr_expect_str_eq(all->routes[0].edge, "");
	cr_expect_str_eq(all->routes[0].reason, "its fragments have no workers yet");
	comes(w, 2, "b", 1);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
	cr_expect_eq(drv_core_placed(w->core), 2);
	cr_expect_eq(taken(w, 2, FW_HOST_CREATE)->create.limits[FRAGI_AMOUNT_MEMORY], 0,
		     "f1 of the same host has no limit");
	all = explained(w, "app", "f1");
	cr_assert_eq(all->placement_count, 1);
	cr_expect_str_eq(all->placements[0].worker, "b");
	cr_assert_eq(all->placements[0].other_count, 1);
	cr_expect_str_eq(all->placements[0].others[0].worker, "a");
	cr_expect_str_eq(all->placements[0].others[0].reason,
			 "0 of 0 gpu are free, and 1 are required");
	cr_expect_not(all->placements[0].others[0].fits);
	cr_assert_eq(all->route_count, 1, "its flows are shown with it");
	cr_expect_str_eq(all->routes[0].from, "f1.tx.out");
	cr_expect_str_eq(all->routes[0].edge, "inproc");
	cr_expect_str_eq(all->routes[0].reason, "both fragments run in one process");
	cr_expect_eq(explained(w, "app", "f1.tx.out -> f2.rx.in")->placement_count, 0);
}

/* Of three flows each by itself, and all of them: the first and the last one, too. */
WORLD_TEST(driver_explain, each_flow_says_why_it_has_its_transport, world_init)
{
	static const struct {
		const char *from, *to, *edge, *reason;
	} routes[] = {
		{"f1.tx", "f2.rx", "ucx", "the graph asks for it"},
		{"f1.tx", "f3.rx", "shm", "both hosts are on one machine and run as one user"},
		{"f2.rx", "f3.ry", "shm", "both hosts are on one machine and run as one user"},
	};
	const struct fw_explanation *all;

	client_hello(w, CLIENT, "top");
	app(w, "frag: 1\napplication: app\nfragments:\n"
	       "  f1: {host: x, operators: {tx: {type: t}}}\n"
	       "  f2: {host: y, operators: {rx: {type: t}}}\n"
	       "  f3: {host: z, operators: {rx: {type: t}, ry: {type: t}}}\n"
	       "flows:\n"
	       "  - {from: f1.tx, to: f2.rx, edge: ucx}\n"
	       "  - f1.tx -> f3.rx\n"
	       "  - f2.rx -> f3.ry\n");
	hello_by_memory(w, 1, "a", NULL, "boot.net.user.7");
	all = explained(w, "app", "");
	cr_assert_eq(all->route_count, FRAG_COUNT_OF(routes));
	for (size_t i = 0; i < FRAG_COUNT_OF(routes); i++) {
		char name[100];

		cr_expect_str_eq(all->routes[i].from, routes[i].from, "%zu", i);
		cr_expect_str_eq(all->routes[i].to, routes[i].to, "%zu", i);
		cr_expect_str_eq(all->routes[i].edge, routes[i].edge, "%zu", i);
		cr_expect_str_eq(all->routes[i].reason, routes[i].reason, "%zu", i);
		snprintf(name, sizeof(name), "%s -> %s", routes[i].from, routes[i].to);
		cr_assert_eq(explained(w, "app", name)->route_count, 1, "%s", name);
		all = explained(w, "app", "");
	}
}

WORLD_TEST(driver_explain, a_worker_that_fits_less_well_fits, world_init)
{
	static const struct {
		const char *fragment, *reason;
	} rows[] = {{"f1", "it fits as well, but its name comes later"},
		    {"f2", "it fits, but fewer neighbours are there"}};

	client_hello(w, CLIENT, "top");
	comes(w, 1, "a", 1);
	comes(w, 2, "b", 1);
	app(w, wants_two);
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		const struct fw_placement_row *row =
			&explained(w, "app", rows[i].fragment)->placements[0];

		cr_expect_str_eq(row->worker, "a");
		cr_assert_eq(row->other_count, 1);
		cr_expect_eq(row->others_beyond, 0);
		cr_expect_str_eq(row->others[0].worker, "b");
		cr_expect_str_eq(row->others[0].reason, rows[i].reason);
		cr_expect(row->others[0].fits, "%s", rows[i].fragment);
	}
}

WORLD_TEST(driver_explain, workers_beyond_those_that_are_shown_are_counted, world_init)
{
	enum { KEPT = 32 };
	const struct fw_placement_row *row;

	client_hello(w, CLIENT, "top");
	for (uint64_t i = 1; i <= KEPT + 4; i++) {
		char name[8];

		snprintf(name, sizeof(name), "w%02u", (unsigned int)i);
		comes(w, CLIENT + i, name, 1);
	}
	app(w, wants_two);
	row = &explained(w, "app", "f1")->placements[0];
	cr_expect_str_eq(row->worker, "w01");
	cr_expect_eq(row->other_count, KEPT);
	cr_expect_str_eq(row->others[KEPT - 1].worker, "w33");
	cr_expect_eq(row->others_beyond, 3);
}

WORLD_TEST(driver_explain, what_is_not_there, world_init)
{
	const struct fw_message *message;

	client_hello(w, CLIENT, "top");
	app(w, wants_two);
	ask(w, CLIENT, "none", "");
	message = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(message->answer.failure.code, FRAGI_FAILURE_APPLICATION_UNKNOWN);
	ask(w, CLIENT, "app", "f22");
	message = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_str_eq(message->answer.failure.sentence,
			 "app has no fragment and no flow \"f22\"; did you mean \"f2\"?");
	comes(w, 1, "a", 1);
	ask(w, 1, "app", "");
	cr_expect_eq(w->closed_count, 1, "only clients ask");
}

/* Also of a worker that comes after the first line, as each of fragctl run --workers does. */
WORLD_TEST(driver_explain, the_log_says_soon_why_a_worker_that_has_come_is_not_given_it, world_init)
{
	static const char line[] =
		"waiting for a worker for f1 (1 worker here); f1 wants 1 gpu, and no worker has so much; worker a has 0";

	app(w, wants_two);
	pass(w, 100 * MS);
	comes(w, 1, "a", 0);
	pass_beating(w, 900 * MS, 1, 1);
	cr_expect_null(strstr(w->log, line), "others may come");
	pass_beating(w, 200 * MS, 1, 1);
	cr_expect_not_null(strstr(w->log, line), "%s", w->log);
	w->log[0] = '\0';
	pass_beating(w, 9 * SECOND, 1, 1);
	cr_expect_null(strstr(w->log, line), "once in 10 s");
	pass_beating(w, 2 * SECOND, 1, 1);
	cr_expect_not_null(strstr(w->log, line));
}

WORLD_TEST(driver_explain, an_application_that_ends_gives_back_what_it_took, world_init)
{
	char text[sizeof(wants_two) + 16];

	w->many_end = true;
	comes(w, 1, "a", 1);
	app(w, wants_two);
	cr_expect_eq(drv_core_named_state(w->core, "app"), DRV_APP_PREPARING);
	snprintf(text, sizeof(text), "%s", wants_two);
	memcpy(strstr(text, "app\n"), "two\n", 4);
	app(w, text);
	cr_expect_eq(drv_core_named_state(w->core, "two"), DRV_APP_WAITING);
	cr_expect(
		strstr(w->log,
		       "waiting for a worker for f1 (1 worker here); no worker fits f1; worker a is nearest: 0 of 1 gpu are free, and 1 are required") !=
			NULL,
		"%s", w->log);
	say_exit(w, 1, 1, 1, 0, "fraghost 1 ended");
	pass(w, 1000000);
	cr_expect_eq(drv_core_named_state(w->core, "app"), DRV_APP_ENDED);
	cr_expect_eq(drv_core_named_state(w->core, "two"), DRV_APP_PREPARING, "its turn has come");
	cr_expect_eq(drv_core_placed(w->core), 2);
}

WORLD_TEST(driver_explain, a_start_timeout_names_the_nearest_miss, world_init)
{
	app_timed(w, wants_two, 2 * SECOND);
	comes(w, 1, "a", 0);
	pass_beating(w, 3 * SECOND, 1, 1);
	cr_assert(w->ended);
	cr_expect_str_eq(
		w->reason,
		"not started within 2.0 s: there is no worker for f1: f1 wants 1 gpu, and no worker has so much; worker a has 0");
}

WORLD_TEST(driver_explain, limits_travel_with_the_host, world_init)
{
	static const char text[] =
		"frag: 1\napplication: app\nfragments:\n"
		"  f1: {operators: {a: {type: t}}, requirements: {cpuLimit: 1.5, memoryLimit: 1Gi}}\n"
		"  f2: {operators: {a: {type: t}}, requirements: {cpuLimit: 1, memoryLimit: 1Gi}}\n";
	const struct fw_explanation *all;
	const struct fw_message *create;

	client_hello(w, CLIENT, "top");
	hello_by(w, 1, "a", NULL,
		 (struct fw_hello){.node = "n", .no_limits = "/sys/fs/cgroup is read-only"});
	app(w, text);
	create = must_take(w, 1, FW_HOST_CREATE);
	cr_expect_eq(create->create.limits[FRAGI_AMOUNT_CPU], 2500, "the sum of its fragments");
	cr_expect_eq(create->create.limits[FRAGI_AMOUNT_MEMORY], 2 * GIB);
	cr_expect(
		strstr(w->log,
		       "the limits of f1 are not enforced on worker a: /sys/fs/cgroup is read-only") !=
		NULL);
	all = explained(w, "app", "f2");
	cr_expect_str_eq(all->placements[0].no_limits, "/sys/fs/cgroup is read-only");
}

/* Each limit of a control group alone, and what is none. */
WORLD_TEST(driver_explain, a_limit_that_is_not_enforced_is_reported, NULL)
{
	static const struct {
		const char *required;
		bool is_limit;
	} rows[] = {{"cpuLimit: 2", true}, {"memoryLimit: 1Gi", true}, {"cpu: 1", false}};
	char text[256];

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		world_init(w);
		hello_by(w, 1, "a", NULL, (struct fw_hello){.node = "n", .no_limits = "no groups"});
		snprintf(text, sizeof(text),
			 "frag: 1\napplication: app\nfragments:\n"
			 "  f1: {operators: {a: {type: t}}, requirements: {%s}}\n",
			 rows[i].required);
		app(w, text);
		cr_assert_not_null(taken(w, 1, FW_HOST_CREATE), "%s", w->log);
		cr_expect_eq(strstr(w->log,
				    "limits of f1 are not enforced on worker a: no groups") != NULL,
			     rows[i].is_limit, "%s: %s", rows[i].required, w->log);
		world_fini(w);
	}
	world_init(w);
}

/* Hosts enforce it themselves, control groups or not. */
WORLD_TEST(driver_explain, a_limit_of_gpu_memory_travels_with_the_host, world_init)
{
	static const char text[] =
		"frag: 1\napplication: app\nfragments:\n"
		"  f1: {operators: {a: {type: t}}, requirements: {gpuMemoryLimit: 5Gi}}\n"
		"  f2: {operators: {a: {type: t}}, requirements: {gpuMemoryLimit: 3Gi}}\n"
		"  f3: {operators: {a: {type: t}}, host: own, requirements: {memory: 1Gi}}\n";
	const struct fw_host_create *create;

	client_hello(w, CLIENT, "top");
	hello_by(w, 1, "a", NULL,
		 (struct fw_hello){.node = "n",
				   .has = {[FRAGI_AMOUNT_MEMORY] = 2 * GIB},
				   .no_limits = "it has no groups"});
	app(w, text);
	create = &must_take(w, 1, FW_HOST_CREATE)->create;
	cr_expect_str_eq(create->fragments[0], "f1");
	cr_expect_eq(create->limits[FRAGI_AMOUNT_GPU_MEMORY], 8 * GIB, "the sum of its fragments");
	create = &must_take(w, 1, FW_HOST_CREATE)->create;
	cr_expect_str_eq(create->fragments[0], "f3");
	cr_expect_eq(create->limits[FRAGI_AMOUNT_GPU_MEMORY], 0);
	cr_expect_null(strstr(w->log, "are not enforced"), "%s", w->log);
	cr_expect_str_eq(explained(w, "app", "f1")->placements[0].no_limits, "");
}

/* A host of an older worker does not count its memory of GPUs. */
WORLD_TEST(driver_explain, a_limit_of_gpu_memory_needs_a_worker_that_knows_it, world_init)
{
	static const char why[] =
		"its frag is older and knows no gpuMemoryLimit; install this one there";
	static const char text[] =
		"frag: 1\napplication: app\nfragments:\n"
		"  f1: {operators: {a: {type: t}}, requirements: {gpuMemoryLimit: 5Gi}}\n";

	client_hello(w, CLIENT, "top");
	hello(w, 1, "a", NULL);
	w->core->sessions[0]->minor = FW_GPU_LIMIT_MINOR - 1;
	app(w, text);
	cr_expect_not_null(strstr(w->log, why), "%s", w->log);
	cr_expect_str_eq(explained(w, "app", "f1")->placements[0].no_limits, why);
}

/* What needs none does not wait for the driver of NVIDIA, and what needs one waits for it alone. */
WORLD_TEST(driver_explain, gpus_may_be_known_later_than_their_worker, world_init)
{
	struct fw_message beat = {.kind = FW_BEAT, .beat.waits_for = ""};

	hello_by(
		w, 1, "a", NULL,
		(struct fw_hello){.node = "n", .has = {[FRAGI_AMOUNT_GPU] = 2 * FRAGI_AMOUNT_ONE}});
	app(w, HEAD_OF("plain") "  f1: {operators: {a: {type: t}}}\n");
	cr_expect_not_null(taken(w, 1, FW_HOST_CREATE), "%s", w->log);
	forget_requests(w, 1);
	app(w,
	    HEAD_OF("large") "  f1: {operators: {a: {type: t}}, requirements: {gpuMemory: 8Gi}}\n");
	say(w, 1, &beat);
	cr_expect_null(taken(w, 1, FW_HOST_CREATE), "%s", w->log);
	beat.beat.has_gpus = true;
	beat.beat.has[FRAGI_AMOUNT_GPU] = FRAGI_AMOUNT_ONE;
	beat.beat.has[FRAGI_AMOUNT_GPU_MEMORY] = 4 * GIB;
	say(w, 1, &beat);
	cr_expect_null(taken(w, 1, FW_HOST_CREATE), "it has too little");
	beat.beat.has[FRAGI_AMOUNT_GPU_MEMORY] = 24 * GIB;
	say(w, 1, &beat);
	cr_expect_not_null(taken(w, 1, FW_HOST_CREATE), "%s", w->log);
}

/* Shares of threads are summed in a host; an instance has a host of its own. */
WORLD_TEST(driver_explain, parts_of_gpus_travel_with_the_host, world_init)
{
	static const char text[] =
		"frag: 1\napplication: app\nfragments:\n"
		"  f1: {operators: {a: {type: t}}, requirements: {gpuThreads: 25%}}\n"
		"  f2: {operators: {a: {type: t}}, requirements: {mig: 1g.10gb}}\n"
		"  f3: {operators: {a: {type: t}}, requirements: {gpuThreads: 30%}}\n"
		"  f4: {operators: {a: {type: t}}}\n"
		"  f5: {operators: {a: {type: t}}, requirements: {mig: 3g.40gb}, host: own}\n"
		"  f6: {operators: {a: {type: t}}, host: own}\n";
	const struct fw_host_create *create;

	client_hello(w, CLIENT, "top");
	hello_by(w, 1, "a", NULL,
		 (struct fw_hello){.node = "n",
				   .has = {[FRAGI_AMOUNT_GPU_THREADS] = 60 * FRAGI_AMOUNT_ONE},
				   .mig = "1g.10gb=1,3g.40gb=1"});
	app(w, text);
	create = &must_take(w, 1, FW_HOST_CREATE)->create;
	cr_expect_str_eq(create->fragments[0], "f1");
	cr_expect_eq(create->fragment_count, 3);
	cr_expect_eq(create->limits[FRAGI_AMOUNT_GPU_THREADS], 55 * FRAGI_AMOUNT_ONE,
		     "the sum of its fragments");
	cr_expect_str_eq(create->mig, "");
	create = &must_take(w, 1, FW_HOST_CREATE)->create;
	cr_expect_str_eq(create->fragments[0], "f2");
	cr_expect_eq(create->fragment_count, 1);
	cr_expect_str_eq(create->mig, "1g.10gb");
	cr_expect_eq(create->limits[FRAGI_AMOUNT_GPU_THREADS], 0);
	create = &must_take(w, 1, FW_HOST_CREATE)->create;
	cr_expect_str_eq(create->fragments[0], "f5");
	cr_expect_eq(create->fragment_count, 2);
	cr_expect_str_eq(create->mig, "3g.40gb");
	cr_expect_str_eq(explained(w, "app", "f1")->placements[0].required, "gpuThreads 25%");
	cr_expect_str_eq(explained(w, "app", "f2")->placements[0].required, "mig 1g.10gb");
	cr_expect_null(strstr(w->log, "no part of a GPU"), "each has its part");
}

/* What an application had is free again when it has ended, however it ends. */
WORLD_TEST(driver_explain, an_instance_returns_with_the_end_of_its_host, world_init)
{
	struct fw_message beat = {.kind = FW_BEAT, .beat = {.waits_for = "", .has_gpus = true}};

	hello_by(w, 1, "a", NULL, (struct fw_hello){.node = "n"});
	app(w, HEAD_OF("one") "  f1: {operators: {a: {type: t}}, requirements: {mig: 1g.10gb}}\n");
	cr_expect_null(taken(w, 1, FW_HOST_CREATE), "it has no instance");
	beat.beat.mig = "1g.10gb=1";
	say(w, 1, &beat);
	cr_expect_not_null(taken(w, 1, FW_HOST_CREATE), "%s", w->log);
	forget_requests(w, 1);
	app(w, HEAD_OF("two") "  f1: {operators: {a: {type: t}}, requirements: {mig: 1g.10gb}}\n");
	cr_expect_null(taken(w, 1, FW_HOST_CREATE), "the other one has it");
	cr_expect_eq(drv_mig_find(&w->core->sessions[0]->mig, "1g.10gb")->used, 1);
	say_exit(w, 1, 1, 3, 0, "it was refused");
	pass_beating(w, 3 * SECOND, 1, 1);
	cr_expect_not_null(taken(w, 1, FW_HOST_CREATE), "%s", w->log);
	cr_expect_eq(drv_mig_find(&w->core->sessions[0]->mig, "1g.10gb")->used, 1);
}

WORLD_TEST(driver_explain, all_that_a_fragment_requires_is_named, world_init)
{
	static const char text[] =
		"frag: 1\napplication: app\nfragments:\n"
		"  f1: {operators: {a: {type: t}}, requirements: {labels: {zone: or1, slot: 3}, "
		"near: [f2, f3], apart: [f4, f5]}}\n"
		"  f2: {operators: {a: {type: t}}}\n  f3: {operators: {a: {type: t}}}\n"
		"  f4: {operators: {a: {type: t}}}\n  f5: {operators: {a: {type: t}}}\n";

	client_hello(w, CLIENT, "top");
	app(w, text);
	cr_expect_str_eq(
		explained(w, "app", "f1")->placements[0].required,
		"label zone=or1, label slot=3, near f2, near f3, apart from f4, apart from f5");
}

WORLD_TEST(driver_explain, a_fragment_in_python_has_a_host_of_its_own, world_init)
{
	static const char text[] =
		"frag: 1\napplication: app\nfragments:\n"
		"  p1: {extensions: [a.py], operators: {a: {type: t}}}\n"
		"  p2: {extensions: [a.py], operators: {a: {type: t}}}\n"
		"  c1: {operators: {a: {type: t}}}\n"
		"  c2: {extensions: [lib.pyx.so], operators: {a: {type: t}}}\n"
		"  h1: {extensions: [a.py], host: h, operators: {a: {type: t}}}\n"
		"  h2: {host: h, operators: {a: {type: t}}}\n";
	static const char *const hosts[][2] = {{"p1"}, {"p2"}, {"c1", "c2"}, {"h1", "h2"}};
	const struct fw_explanation *all;
	const struct fw_message *create;
	const char *reason;

	client_hello(w, CLIENT, "top");
	app(w, text);
	comes(w, 1, "a", 1);
	for (size_t i = 0; i < FRAG_COUNT_OF(hosts); i++) {
		create = must_take(w, 1, FW_HOST_CREATE);
		cr_assert_eq(create->create.fragment_count, hosts[i][1] != NULL ? 2 : 1);
		for (size_t f = 0; f < create->create.fragment_count; f++)
			cr_expect_str_eq(create->create.fragments[f], hosts[i][f]);
	}
	cr_expect_null(taken(w, 1, FW_HOST_CREATE));
	all = explained(w, "app", "");
	cr_assert_eq(all->placement_count, 6);
	for (size_t i = 0; i < 6; i++) {
		reason =
			strstr(all->placements[i].reason, "; it is in Python, so it has a host of");
		cr_expect_eq(reason != NULL, i < 2, "%s", all->placements[i].reason);
		if (reason != NULL)
			cr_expect_not_null(strstr(reason, "on the GPU takes about 50 us"));
	}
}

WORLD_TEST(driver_explain, without_a_gpu_a_host_of_its_own_costs_nothing_there, world_init)
{
	static const char text[] = "frag: 1\napplication: app\nfragments:\n"
				   "  p1: {extensions: [a.py], operators: {a: {type: t}}}\n"
				   "  c1: {operators: {a: {type: t}}}\n";
	const char *reason;

	client_hello(w, CLIENT, "top");
	app(w, text);
	comes(w, 1, "a", 0);
	reason = explained(w, "app", "p1")->placements[0].reason;
	cr_expect_not_null(strstr(reason, "it is in Python"));
	cr_expect_null(strstr(reason, "GPU"));
}

WORLD_TEST(driver_explain, without_other_fragments_it_would_have_a_host_of_its_own_anyway,
	   world_init)
{
	client_hello(w, CLIENT, "top");
	app(w, "frag: 1\napplication: app\nfragments:\n"
	       "  p1: {extensions: [a.py], operators: {a: {type: t}}}\n");
	comes(w, 1, "a", 0);
	cr_expect_null(strstr(explained(w, "app", "p1")->placements[0].reason, "Python"));
}
