// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <dirent.h>
#include <sched.h>

#include "meeting_op.h"

/*
 * Threads that run the operators of fragment app, which bear its name; out_cores: where the last
 * may run.
 */
static int threads_of_app(cpu_set_t *out_cores)
{
	DIR *folder = opendir("/proc/self/task");
	const struct dirent *entry;
	char path[300], name[32] = "";
	int count = 0;
	FILE *file;

	cr_assert_not_null(folder);
	while ((entry = readdir(folder)) != NULL) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) != NULL && strcmp(name, "frag:app\n") == 0) {
			count++;
			sched_getaffinity(atoi(entry->d_name), sizeof(*out_cores), out_cores);
		}
		fclose(file);
	}
	closedir(folder);
	return count;
}

/*
 * Eight operators that wait for a time which does not come; the threads are there as long as they
 * are.
 */
static int threads_of(const char *scheduler, int expected, cpu_set_t *out_cores)
{
	struct rig rig;
	char text[2048];
	int n = snprintf(text, sizeof(text),
			 "frag: 1\napplication: app\nscheduler: %s\noperators:\n", scheduler);

	for (int i = 0; i < 8; i++)
		n += snprintf(
			text + n, sizeof(text) - (size_t)n,
			"  o%d: {type: source, conditions: [{type: periodic, recess_period: 1h}]}\n",
			i);
	rig_prepare_good(&rig, &rig_plugin, text);
	rig_start(&rig);
	/* Once operators are started all threads are there; each then gives itself its name. */
	RIG_AWAIT(notes[SLOTS - 1] != NULL && atomic_load(&notes[SLOTS - 1]->started) >= 8);
	RIG_AWAIT(threads_of_app(out_cores) >= expected);
	n = threads_of_app(out_cores);
	fragi_run_halt(rig.run);
	cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS));
	rig_end(&rig);
	notes_clear();
	return n;
}

Test(threads, are_as_many_as_the_graph_says)
{
	cpu_set_t cores;
	int available;

	cr_assert_eq(sched_getaffinity(0, sizeof(cores), &cores), 0);
	available = CPU_COUNT(&cores) < 8 ? CPU_COUNT(&cores) : 8;
	cr_expect_eq(threads_of("{type: greedy, worker_thread_number: 3}", 1, &cores), 1);
	cr_expect_eq(threads_of("{type: event_based, worker_thread_number: 3}", 3, &cores), 3);
	cr_expect_eq(threads_of("{type: multi_thread, worker_thread_number: 5}", 5, &cores), 5);
	cr_expect_eq(threads_of("{type: event_based}", available, &cores), available);
}

RIG_ONE_TEST(threads, run_where_they_are_pinned)
{
	struct frag_err err = FRAG_ERR_INIT;
	char scheduler[128];
	cpu_set_t cores;
	size_t core = 0;

	cr_assert_eq(sched_getaffinity(0, sizeof(cores), &cores), 0);
	while (!CPU_ISSET(core, &cores))
		core++;
	snprintf(
		scheduler, sizeof(scheduler),
		"{type: event_based, worker_thread_number: 2, pin_cores: [%zu], require_pin_cores: true}",
		core);
	cr_expect_eq(threads_of(scheduler, 2, &cores), 2);
	cr_expect(CPU_COUNT(&cores) == 1 && CPU_ISSET(core, &cores));
	/* Cores that are not there: a warning, or with require_pin_cores an error. */
	cr_expect_eq(threads_of("{type: event_based, worker_thread_number: 2, pin_cores: [1023]}",
				2, &cores),
		     2);
	cr_assert_eq(
		rig_prepare(
			rig, &rig_plugin,
			"frag: 1\napplication: app\nscheduler: {type: event_based, pin_cores: [1023],\n"
			"  require_pin_cores: true}\n"
			"operators: {tx: {type: source}, rx: {type: sink}}\nflows: [tx -> rx]\n"),
		0);
	cr_assert_eq(fragi_run_wire(rig->run, NULL, 0, NULL, 0, &err), 0);
	cr_expect_lt(fragi_run_start(rig->run, &err), 0);
	cr_expect_not_null(strstr(err.text, "pin_cores"), "%s", err.text);
}

/* The kernel drops cores that a process may not use, without a word. */
Test(threads, strict_pinning_wants_all_cores)
{
	struct frag_err err = FRAG_ERR_INIT;
	cpu_set_t cores, after;
	char graph[512];
	struct rig rig;
	size_t core = 0;

	cr_assert_eq(sched_getaffinity(0, sizeof(cores), &cores), 0);
	while (!CPU_ISSET(core, &cores))
		core++;
	for (int strict = 0; strict < 2; strict++) {
		snprintf(
			graph, sizeof(graph),
			"frag: 1\napplication: app\n"
			"scheduler: {type: event_based, pin_cores: [%zu, 1023], require_pin_cores: %s}\n"
			"operators: {tx: {type: source, parameters: {count: 10}}, rx: {type: sink}}\nflows: [tx -> rx]\n",
			core, strict ? "true" : "false");
		cr_assert_eq(rig_prepare(&rig, &rig_plugin, graph), 0);
		cr_assert_eq(fragi_run_wire(rig.run, NULL, 0, NULL, 0, &err), 0);
		cr_expect_eq(fragi_run_start(rig.run, &err) < 0, strict);
		if (strict)
			cr_expect_not_null(strstr(err.text, "all cores of pin_cores"), "%s",
					   err.text);
		else
			cr_expect(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS));
		rig_end(&rig);
	}
	cr_assert_eq(sched_getaffinity(0, sizeof(after), &after), 0);
	cr_expect(CPU_EQUAL(&cores, &after), "the caller's cores stay");
}

TEST_PLUGIN(meeting, &source_type, &meeting_type);

/* Between two messages all threads sleep, and the first that wakes has to wake another. */
RIG_ONE_TEST(threads, all_of_them_wake_for_work)
{
	rig_run(rig, &meeting_plugin,
		"frag: 1\napplication: app\nscheduler: {type: event_based, worker_thread_number: 2}\n"
		"operators:\n  tx: {type: source, parameters: {count: 50},\n"
		"       conditions: [{type: periodic, recess_period: 5ms}]}\n"
		"  a: {type: meeting}\n  b: {type: meeting}\nflows: [tx -> a, tx -> b]\n");
	cr_expect_eq(rig->failed, 0);
	cr_expect_not(missed);
	cr_expect_eq(met, 100);
}
