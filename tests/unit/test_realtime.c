// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <inttypes.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <graph/thread_pool.h>
#include <sched/realtime.h>

#include "graph_texts.h"
#include "rig_ops.h"

/* Real-time operators: what the kernel grants, and what it is said to lack when it refuses. */

/* The kernel's struct sched_attr. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};
#define POLICY_DEADLINE 6

static struct attributes seen, seen_by_child;
static cpu_set_t seen_cores;

static void look(struct attributes *out)
{
	cr_assert_eq(syscall(SYS_sched_getattr, 0, out, sizeof(*out), 0), 0);
}

static void *child(void *arg)
{
	look(&seen_by_child);
	return NULL;
}

/* Looks how the kernel schedules it, and a thread that it creates. */
static int looking_compute(void *state, struct frag_tick *tick)
{
	pthread_t thread;

	look(&seen);
	cr_assert_eq(sched_getaffinity(0, sizeof(seen_cores), &seen_cores), 0);
	cr_assert_eq(pthread_create(&thread, NULL, child, NULL), 0);
	pthread_join(thread, NULL);
	return FRAG_DONE;
}

TEST_OP(looking);

static struct frag_realtime wanted;
static int added;
static struct fragi_realtime taken; /* of the operator's place, where it was added */

static int compose(struct frag_fragment *fragment)
{
	struct frag_op *op = frag_make_operator(fragment, "a", "looking", FRAG_NO_ARGS);

	frag_add_operator(fragment, op);
	added = frag_thread_pool_add_realtime(frag_make_thread_pool(fragment, "p", 1), op, &wanted);
	if (added == 0)
		taken = op->pool_place->realtime;
	return added;
}

static const struct frag_composer composers[] = {{.name = "realtime", .compose = compose}};
static const struct frag_op_type *const ops[] = {&looking_type, &source_type, &sink_type};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT, .name = "rig", FRAG_OPS(ops),
					  FRAG_COMPOSERS(composers)};

#define ONE_OP "operators: {a: {type: looking}}\n"

/* Whether this process may have real-time threads. */
static bool is_allowed(void)
{
	struct attributes own = {.size = sizeof(own), .policy = SCHED_FIFO, .priority = 1};
	struct attributes usual = {.size = sizeof(usual)};

	if (syscall(SYS_sched_setattr, 0, &own, 0) < 0)
		return false;
	cr_assert_eq(syscall(SYS_sched_setattr, 0, &usual, 0), 0);
	return true;
}

/* From now on it may not. */
static void give_up_privileges(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2];
	struct rlimit none = {0, 0};

	cr_assert_eq(syscall(SYS_capget, &head, sets), 0);
	sets[0].effective &= ~(uint32_t)CAP_TO_MASK(CAP_SYS_NICE);
	cr_assert_eq(syscall(SYS_capset, &head, sets), 0);
	cr_assert_eq(setrlimit(RLIMIT_RTPRIO, &none), 0);
}

/* Runs a graph. Returns 0, or what the start was refused with, whose sentence is in err. */
static int run(const char *graph, struct rig *rig, struct frag_err *err)
{
	char text[2048];
	int r;

	*err = (struct frag_err)FRAG_ERR_INIT;
	seen = seen_by_child = (struct attributes){0};
	snprintf(text, sizeof(text), "frag: 1\napplication: app\n%s", graph);
	rig_prepare_good(rig, &plugin, text);
	cr_assert_eq(fragi_run_wire(rig->run, NULL, 0, NULL, 0, err), 0);
	r = fragi_run_start(rig->run, err);
	if (r == 0)
		cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	return r;
}

/* What the ledger says about the operator. */
static enum fragi_sched_policy granted(const struct rig *rig, uint32_t *out_priority)
{
	uint64_t sched = atomic_load(&fragi_run_ledger(rig->run)->ops[0].sched);

	*out_priority = (uint32_t)(sched >> 32);
	return (enum fragi_sched_policy)(sched & UINT32_MAX);
}

/* One of the two must be so: granted, or refused with the reason. */
static bool is_granted(int r, const struct frag_err *err)
{
	bool allowed = is_allowed();

	cr_expect_eq(r, allowed ? 0 : -EPERM, "%s", err->text);
	if (!allowed)
		cr_expect_not_null(strstr(err->text, "CAP_SYS_NICE"), "%s", err->text);
	return allowed;
}

Test(realtime, a_thread_has_the_policy_and_the_priority)
{
	static const struct {
		const char *name;
		enum fragi_sched_policy policy;
		uint32_t kernel;
	} cases[] = {
		{"fifo", FRAGI_SCHED_FIFO, SCHED_FIFO},
		{"SCHED_RR", FRAGI_SCHED_RR, SCHED_RR},
	};
	char graph[512];

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err;
		struct rig rig;
		uint32_t priority;
		int r;

		snprintf(
			graph, sizeof(graph),
			"thread_pools: {p: {add: [{operators: a, sched_policy: %s, sched_priority: 7}]}}\n" ONE_OP,
			cases[i].name);
		r = run(graph, &rig, &err);
		if (is_granted(r, &err)) {
			cr_expect_eq(seen.policy, cases[i].kernel);
			cr_expect_eq(seen.priority, 7);
			cr_expect_eq(seen_by_child.policy, SCHED_OTHER);
			cr_expect_eq(granted(&rig, &priority), cases[i].policy);
			cr_expect_eq(priority, 7);
		}
		rig_end(&rig);
	}
}

RIG_ONE_TEST(realtime, a_thread_has_a_deadline)
{
	const char *graph =
		"thread_pools: {p: {add: [{operators: a, sched_policy: deadline,\n"
		"  sched_runtime: 100us, sched_deadline: 5ms, sched_period: 10000000}]}}\n" ONE_OP;
	const struct fragi_op_row *row;
	struct frag_err err;
	uint32_t priority;

	if (is_granted(run(graph, rig, &err), &err)) {
		row = &fragi_run_ledger(rig->run)->ops[0];
		cr_expect_eq(seen.policy, POLICY_DEADLINE);
		cr_expect(seen.runtime == 100000 && seen.deadline == 5000000 &&
			  seen.period == 10000000);
		cr_expect_eq(seen_by_child.policy, SCHED_OTHER);
		cr_expect_eq(granted(rig, &priority), FRAGI_SCHED_DEADLINE);
		cr_expect(row->sched_runtime_ns == 100000 && row->sched_deadline_ns == 5000000 &&
			  row->sched_period_ns == 10000000);
	}
}

/* Where the kernel keeps no period: a tick that was late moves the periods after it. */
Test(realtime, a_period_begins_anew_behind_a_late_tick)
{
	struct fragi_pace pace = {.period_ns = 4000000};
	int64_t begin_ns = fragi_now_ns(), first_ns;

	pace.next_ns = begin_ns - 23 * pace.period_ns;
	fragi_pace_wait(&pace);
	first_ns = pace.next_ns;
	cr_expect_geq(first_ns, begin_ns + pace.period_ns);
	cr_expect_geq(fragi_now_ns(), first_ns, "it has waited");
	pace.next_ns = fragi_now_ns() + pace.period_ns / 4; /* a tick that was not late */
	first_ns = pace.next_ns;
	fragi_pace_wait(&pace);
	cr_expect_eq(pace.next_ns, first_ns + pace.period_ns);
	cr_expect_geq(fragi_now_ns(), pace.next_ns);
}

/* Without a periodic condition: by the kernel where it grants that, and else as well. */
Test(realtime, a_deadline_ticks_once_a_period)
{
	struct frag_err err;
	struct rig rig;

	for (int without = 0; without < 2; without++, notes_clear()) {
		if (without)
			give_up_privileges();
		cr_assert_eq(
			run("thread_pools: {p: {add: [{operators: a, sched_policy: deadline, best_effort: true,\n"
			    "  sched_runtime: 2ms, sched_period: 20ms}]}}\n"
			    "operators: {a: {type: source, parameters: {count: 6}}, b: {type: sink}}\n"
			    "flows: [{from: a, to: b, capacity: 8}]\n",
			    &rig, &err),
			0);
		cr_assert_eq(noted(0), 6);
		cr_expect_geq(notes[0]->times[5] - notes[0]->times[0], 75000000, "%d: %lld",
			      without, (long long)(notes[0]->times[5] - notes[0]->times[0]));
		rig_end(&rig);
	}
}

/* More than there is, and on some cores alone, which the kernel promises nobody. */
RIG_ONE_TEST(realtime, a_deadline_that_cannot_be_kept_is_refused)
{
	struct frag_err err;
	char graph[512];
	int64_t runtime = 0;
	FILE *file = fopen("/proc/sys/kernel/sched_rt_runtime_us", "r");

	cr_assert_not_null(file);
	cr_assert_eq(fscanf(file, "%" SCNd64, &runtime), 1);
	fclose(file);
	if (!is_allowed() || runtime < 0 || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		cr_skip_test("no deadlines here, or no limits of them");
	snprintf(graph, sizeof(graph),
		 "thread_pools: {p: {add: [{operators: a, pin_cores: [0], sched_policy: deadline,\n"
		 "  sched_runtime: 100us, sched_period: 10ms}]}}\n" ONE_OP);
	cr_expect_eq(run(graph, rig, &err), -EPERM);
	cr_expect_not_null(strstr(err.text, "app.a: SCHED_DEADLINE, 100 us within 10.0 ms"), "%s",
			   err.text);
	cr_expect_not_null(strstr(err.text, "cpuset"), "%s", err.text);
	cr_expect_not_null(strstr(err.text, "kernel.sched_rt_runtime_us"), "%s", err.text);
	rig_end(rig);
	snprintf(graph, sizeof(graph),
		 "thread_pools: {p: {add: [{operators: a, sched_policy: deadline,\n"
		 "  sched_runtime: 9us, sched_period: 10us}]}}\n" ONE_OP);
	cr_expect_eq(run(graph, rig, &err), -EINVAL);
	cr_expect_not_null(strstr(err.text, "sched_deadline_period_min_us"), "%s", err.text);
}

RIG_ONE_TEST(realtime, what_is_missing_is_named)
{
	struct frag_err err;

	give_up_privileges();
	cr_expect_eq(
		run("thread_pools: {p: {add: [{operators: a, sched_policy: rr, sched_priority: 30}]}}\n" ONE_OP,
		    rig, &err),
		-EPERM);
	cr_expect_str_eq(
		err.text,
		"app.a: SCHED_RR, priority 30 is refused (Operation not permitted): the process has neither CAP_SYS_NICE nor an rtprio limit of 30 (it is 0); give it one of them (systemd: LimitRTPRIO=30; a shell: ulimit -r 30), or write best_effort: true",
		"%s", err.text);
	cr_expect_eq(seen.size, 0, "nothing ran");
	rig_end(rig);
	cr_expect_eq(run("thread_pools: {p: {add: [{operators: a, sched_policy: deadline,\n"
			 "  sched_runtime: 1ms, sched_period: 10ms}]}}\n" ONE_OP,
			 rig, &err),
		     -EPERM);
	cr_expect_not_null(strstr(err.text, "the process lacks CAP_SYS_NICE"), "%s", err.text);
}

RIG_ONE_TEST(realtime, best_effort_runs_without)
{
	struct frag_err err;
	uint32_t priority;

	give_up_privileges();
	cr_expect_eq(
		run("thread_pools: {p: {add: [{operators: a, sched_policy: fifo, sched_priority: 30,\n"
		    "  best_effort: true}]}}\n" ONE_OP,
		    rig, &err),
		0);
	cr_expect_eq(seen.policy, SCHED_OTHER);
	cr_expect_gt(seen.size, 0);
	cr_expect_eq(granted(rig, &priority), FRAGI_SCHED_OTHER);
}

RIG_ONE_TEST(realtime, may_be_asked_for_in_c)
{
	static const uint32_t cores[] = {0};
	struct frag_err err;

	wanted = (struct frag_realtime){FRAG_REALTIME_INIT, .sched_policy = FRAG_SCHED_FIFO,
					.sched_priority = 3, .pin_cores = cores, .core_count = 1};
	if (is_granted(run("compose: realtime\n", rig, &err), &err)) {
		cr_expect(seen.policy == SCHED_FIFO && seen.priority == 3);
		cr_expect(CPU_COUNT(&seen_cores) == 1 && CPU_ISSET(0, &seen_cores));
	}
	rig_end(rig);
	give_up_privileges();
	wanted.best_effort = 1;
	cr_expect_eq(run("compose: realtime\n", rig, &err), 0);
	cr_expect_eq(seen.policy, SCHED_OTHER);
}

/* A deadline that is left out is the period; one that is given stays. */
Test(realtime, the_deadline_is_the_period_where_it_is_left_out)
{
	static const uint64_t deadlines[][2] = {{0, 20000000}, {7000000, 7000000}};
	struct rig rig;

	for (size_t i = 0; i < FRAG_COUNT_OF(deadlines); i++) {
		wanted = (struct frag_realtime){
			FRAG_REALTIME_INIT, .sched_policy = FRAG_SCHED_DEADLINE,
			.sched_runtime = 5000000, .sched_deadline = deadlines[i][0],
			.sched_period = 20000000};
		rig_prepare_good(&rig, &plugin, "frag: 1\napplication: app\ncompose: realtime\n");
		cr_expect_eq(taken.runtime_ns, 5000000);
		cr_expect_eq(taken.deadline_ns, deadlines[i][1]);
		cr_expect_eq(taken.period_ns, 20000000);
		rig_end(&rig);
	}
}

static void expect_flaw(struct frag_realtime realtime, const char *sentence)
{
	char errors[512];
	struct rig rig;

	wanted = realtime;
	cr_expect_eq(rig_prepare(&rig, &plugin, "frag: 1\napplication: app\ncompose: realtime\n"),
		     -EINVAL);
	cr_expect_eq(added, -EINVAL);
	snprintf(errors, sizeof(errors), "app: thread pool \"p\": %s\n", sentence);
	expect_errors(&rig.diag, errors);
	rig_end(&rig);
}

Test(realtime, what_makes_no_sense_in_c_is_refused)
{
	expect_flaw((struct frag_realtime){FRAG_REALTIME_INIT, .sched_priority = 3},
		    "sched_policy is none of FRAG_SCHED_...; set one");
	expect_flaw((struct frag_realtime){FRAG_REALTIME_INIT, .sched_policy = FRAG_SCHED_RR},
		    "sched_policy fifo and rr need sched_priority, 1 to 99");
	expect_flaw((struct frag_realtime){FRAG_REALTIME_INIT, .sched_policy = FRAG_SCHED_FIFO,
					   .sched_priority = 100},
		    "sched_policy fifo and rr need sched_priority, 1 to 99");
	expect_flaw(
		(struct frag_realtime){FRAG_REALTIME_INIT, .sched_policy = FRAG_SCHED_FIFO,
				       .sched_priority = 1, .sched_period = 5},
		"sched_runtime, sched_deadline and sched_period are for sched_policy deadline; leave them out");
	expect_flaw(
		(struct frag_realtime){FRAG_REALTIME_INIT, .sched_policy = FRAG_SCHED_DEADLINE,
				       .sched_runtime = 10000, .sched_deadline = 9000,
				       .sched_period = 20000},
		"sched_runtime must not be longer than sched_deadline, nor that than sched_period");
}

RIG_ONE_TEST(realtime, what_makes_no_sense_in_a_graph_is_refused)
{
	cr_expect_eq(
		rig_prepare(
			rig, &plugin,
			"frag: 1\napplication: app\n" ONE_OP "thread_pools:\n  p:\n    add:\n"
			"    - {operators: a, sched_policy: fif, sched_priority: 0}\n"
			"    - {operators: a, sched_policy: fifo}\n"
			"    - {operators: a, sched_policy: fifo, sched_priority: 5, pin_operator: false}\n"
			"    - {operators: a, sched_priority: 5, best_effort: true}\n"
			"    - {operators: a, sched_policy: deadline, sched_runtime: 2ms, sched_period: 1ms}\n"
			"    - {operators: a, sched_policy: deadline, sched_runtime: soon}\n"),
		-EINVAL);
	expect_errors(
		&rig->diag,
		"test.yaml:7:36: app.thread_pools.p: sched_policy \"fif\" is not known; did you mean \"fifo\"?\n"
		"test.yaml:7:57: app.thread_pools.p: sched_priority \"0\" is not a whole number from 1 to 99\n"
		"test.yaml:8:36: app.thread_pools.p: sched_policy fifo and rr need sched_priority, 1 to 99\n"
		"test.yaml:9:75: app.thread_pools.p: real-time operators have threads of their own; leave pin_operator out\n"
		"test.yaml:10:22: app.thread_pools.p: sched_priority needs sched_policy: fifo, rr or deadline\n"
		"test.yaml:10:41: app.thread_pools.p: best_effort needs sched_policy: fifo, rr or deadline\n"
		"test.yaml:11:36: app.thread_pools.p: sched_runtime must not be longer than sched_deadline, nor that than sched_period\n"
		"test.yaml:12:61: app.thread_pools.p: sched_runtime \"soon\" is not a valid duration; write nanoseconds, or for example 10ms\n");
}
