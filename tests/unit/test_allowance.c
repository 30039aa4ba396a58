// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <base/allowance.h>

#include "scratch.h"

/* /proc and /sys/fs/cgroup are folders of the test. */
static struct fragi_allowance may;

TestSuite(allowance, .init = scratch_make, .fini = scratch_remove);

static void look(void)
{
	fragi_allowance_read(at("proc"), at("groups"), &may);
}

Test(allowance, nothing_limits_where_nothing_is_said)
{
	look();
	cr_expect_eq(may.memory_bytes, INT64_MAX);
	cr_expect_null(may.memory_why);
	cr_expect_leq(may.cores, may.machine_cores);
	put("proc/self/cgroup", "0::/worker\n");
	put("groups/worker/memory.max", "max\n");
	put("groups/worker/cpu.max", "max 100000\n");
	look();
	cr_expect_eq(may.memory_bytes, INT64_MAX);
	cr_expect_str_neq(may.cores_why != NULL ? may.cores_why : "",
			  "the CPU quota of its control group");
}

/* The least of a group and of those above it. */
Test(allowance, of_groups_of_version_2)
{
	put("proc/self/cgroup", "0::/pod/worker\n");
	put("groups/pod/worker/memory.max", "314572801\n");
	put("groups/pod/memory.max", "314572800\n");
	put("groups/memory.max", "314572802\n");
	put("groups/pod/worker/cpu.max", "199999 100000\n");
	look();
	cr_expect_eq(may.memory_bytes, 314572800);
	cr_expect_str_eq(may.memory_why, "the memory limit of its control group");
	cr_expect_eq(may.cores, 1, "a part of a core more is left out");
	put("groups/pod/worker/memory.high", "1000\n");
	put("groups/pod/worker/cpu.max", "20000 100000\n");
	look();
	cr_expect_eq(may.memory_bytes, 1000, "beyond it the kernel slows it down");
	cr_expect_eq(may.cores, 1, "a part of one counts as one");
}

/* A container names the machine's groups, and sees its own part of them. */
Test(allowance, of_groups_of_version_1)
{
	put("proc/self/cgroup",
	    "5:cpu,cpuacct:/docker/4711\n4:memory:/docker/4711\n1:name=systemd:/\n");
	put("groups/memory/memory.limit_in_bytes", "209715200\n");
	put("groups/cpu/cpu.cfs_quota_us", "-1\n");
	put("groups/cpu/cpu.cfs_period_us", "100000\n");
	look();
	cr_expect_eq(may.memory_bytes, 209715200);
	cr_expect_str_neq(may.cores_why != NULL ? may.cores_why : "",
			  "the CPU quota of its control group");
	put("groups/memory/docker/4711/memory.limit_in_bytes", "104857600\n");
	put("groups/cpu/docker/4711/cpu.cfs_quota_us", "100000\n");
	put("groups/cpu/docker/4711/cpu.cfs_period_us", "100000\n");
	look();
	cr_expect_eq(may.memory_bytes, 104857600);
	cr_expect_eq(may.cores, 1);
}

/* Controllers stand in any order, and others have names that contain theirs. */
Test(allowance, of_controllers_by_their_whole_names)
{
	static const struct {
		const char *controllers;
		bool is_memory;
	} rows[] = {
		{"memory", true},          {"cpuset,memory", true},  {"memory,cpu", true},
		{"cpu,memory,pids", true}, {"name=memory", false},   {"memoryless", false},
		{"tmemory,cpu", false},    {"tmemory,memory", true},
	};
	char line[100];

	put("groups/memory/pod/memory.limit_in_bytes", "104857600\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(line, sizeof(line), "4:%s:/pod\n", rows[i].controllers);
		put("proc/self/cgroup", line);
		look();
		cr_expect_eq(may.memory_bytes, rows[i].is_memory ? 104857600 : INT64_MAX, "%s",
			     rows[i].controllers);
	}
}

Test(allowance, a_group_outside_of_the_container_is_passed_by)
{
	put("proc/self/cgroup", "0::/../other\n");
	put("other/memory.max", "5\n");
	put("groups/memory.max", "314572800\n");
	look();
	cr_expect_eq(may.memory_bytes, 314572800);
}

/* Of the group with room for the fewest more, which need not be the one with the least limit. */
Test(allowance, of_processes)
{
	look();
	cr_expect_eq(may.processes_left, INT64_MAX);
	put("proc/self/cgroup", "0::/pod/worker\n");
	put("groups/pod/worker/pids.max", "20\n");
	put("groups/pod/worker/pids.current", "3\n");
	put("groups/pod/pids.max", "30\n");
	put("groups/pod/pids.current", "30\n");
	put("groups/pids.max", "max\n");
	look();
	cr_expect_eq(may.processes, 30);
	cr_expect_eq(may.processes_left, 0);
	put("proc/self/cgroup", "7:pids:/pod\n");
	put("groups/pids/pod/pids.max", "41\n");
	put("groups/pids/pod/pids.current", "40\n");
	look();
	cr_expect_eq(may.processes, 41);
	cr_expect_eq(may.processes_left, 1);
}

Test(allowance, of_the_affinity)
{
	cpu_set_t cores, one;
	size_t first = 0;

	cr_assert_eq(sched_getaffinity(0, sizeof(cores), &cores), 0);
	while (!CPU_ISSET(first, &cores))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	look();
	cr_expect_eq(may.cores, 1);
	if (may.machine_cores > 1)
		cr_expect_str_eq(may.cores_why, "its affinity");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* whose memory is above it */
Test(allowance, of_resource_limits)
{
	struct rlimit limit = {INT64_C(1) << 40, RLIM_INFINITY};

	cr_assert_eq(setrlimit(RLIMIT_DATA, &limit), 0);
	look();
	cr_expect_eq(may.memory_bytes, INT64_C(1) << 40);
	cr_expect_str_eq(may.memory_why, "ulimit -d");
}
#endif
