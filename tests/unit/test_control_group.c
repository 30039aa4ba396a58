// SPDX-License-Identifier: Apache-2.0
/* Limits of hosts, over a tree of files that looks like /sys/fs/cgroup. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <workerd/control_group.h>

#include "scratch.h"

static const char *get(const char *name)
{
	static char text[256];
	FILE *file = fopen(at(name), "r");
	size_t n = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;

	text[n] = '\0';
	if (file != NULL)
		fclose(file);
	return text;
}

/* The kernel makes the files of a group with its folder; here that is done before. */
static void make_group(const char *name)
{
	static const char *const files[] = {"cgroup.procs",    "cgroup.subtree_control",
					    "cpu.max",         "memory.max",
					    "memory.swap.max", "memory.oom.group"};
	char path[128];

	mkdir(at(name), 0755);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", name, files[i]);
		put(path, "");
	}
}

static void make_tree(void)
{
	char pid[32];

	scratch_make();
	put("fs/cgroup.controllers", "cpuset cpu io memory pids\n");
	put("proc/self/cgroup", "1:name=systemd:/old\n0::/frag.service\n");
	make_group("fs/frag.service");
	make_group("fs/frag.service/worker");
	make_group("fs/frag.service/host-1");
	make_group("fs/frag.service/host-2");
	put("fs/frag.service/cgroup.controllers", "cpu memory\n");
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	put("fs/frag.service/cgroup.procs", pid);
}

TestSuite(control_group, .init = make_tree, .fini = scratch_remove);

static void init(struct wrk_control_groups *groups)
{
	wrk_control_groups_init(groups, at("proc"), at("fs"));
}

Test(control_group, a_host_gets_its_limits)
{
	struct wrk_control_groups groups;
	struct frag_err err = FRAG_ERR_INIT;
	char pid[32];
	int fd = -1, other = -1;

	init(&groups);
	cr_expect_str_eq(groups.why, "");
	cr_expect_str_eq(get("fs/frag.service/cgroup.subtree_control"), "", "nothing is done yet");
	cr_assert_eq(wrk_control_groups_make(&groups, 2500, 512 << 20, &fd, &err), 0, "%s",
		     err.text);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	cr_expect_str_eq(get("fs/frag.service/worker/cgroup.procs"), pid, "the worker has moved");
	cr_expect_str_eq(get("fs/frag.service/cgroup.subtree_control"), "+cpu +memory");
	cr_expect_str_eq(get("fs/frag.service/host-1/cpu.max"), "250000 100000");
	cr_expect_str_eq(get("fs/frag.service/host-1/memory.max"), "536870912");
	cr_expect_str_eq(get("fs/frag.service/host-1/memory.oom.group"), "1");
	cr_expect_str_eq(get("fs/frag.service/host-1/memory.swap.max"), "0",
			 "what is swapped out counts too");
	cr_expect_eq(wrk_control_group_enter(fd), 0);
	cr_expect_str_eq(get("fs/frag.service/host-1/cgroup.procs"), "0");
	cr_assert_eq(wrk_control_groups_make(&groups, 0, 4096, &other, &err), 0, "%s", err.text);
	cr_expect_str_eq(get("fs/frag.service/host-2/cpu.max"), "", "it has no limit of cores");
	cr_expect_str_eq(get("fs/frag.service/host-2/memory.max"), "4096");
	close(fd);
	close(other);
	cr_expect_eq(groups.left_count, 2);
	wrk_control_groups_clear(&groups);
	cr_expect_eq(groups.left_count, 2, "both still hold something");
}

/* The kernel takes no quota below a millisecond. */
Test(control_group, a_limit_of_cores_is_a_quota)
{
	static const struct {
		uint32_t limit;
		const char *quota;
	} rows[] = {{1, "1000 100000"},  {5, "1000 100000"},  {9, "1000 100000"},
		    {10, "1000 100000"}, {11, "1100 100000"}, {30, "3000 100000"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wrk_control_groups groups;
		struct frag_err err = FRAG_ERR_INIT;
		int fd = -1;

		init(&groups);
		put("fs/frag.service/host-1/cpu.max", "");
		cr_assert_eq(wrk_control_groups_make(&groups, rows[i].limit, 0, &fd, &err), 0, "%s",
			     err.text);
		cr_expect_str_eq(get("fs/frag.service/host-1/cpu.max"), rows[i].quota, "%u",
				 rows[i].limit);
		close(fd);
	}
}

/* The file is read after the kernel has killed, and after the group is gone. */
Test(control_group, what_the_kernel_killed_for_its_memory_is_known)
{
	struct wrk_control_groups groups;
	struct frag_err err = FRAG_ERR_INIT;
	int fd = -1;

	init(&groups);
	unlink(at("fs/frag.service/host-1/memory.swap.max")); /* a kernel without swap */
	cr_assert_eq(wrk_control_groups_make(&groups, 0, 1 << 20, &fd, &err), 0, "%s", err.text);
	put("fs/frag.service/host-1/memory.max", "1048576\n");
	cr_expect_eq(wrk_control_group_exceeded(fd), 0, "there is no such file");
	put("fs/frag.service/host-1/memory.events", "low 0\nmax 12\noom 0\noom_kill 0\n");
	cr_expect_eq(wrk_control_group_exceeded(fd), 0, "it was reclaimed in time");
	put("fs/frag.service/host-1/memory.events",
	    "low 0\nmax 12\noom 1\noom_kill 2\noom_group_kill 1\n");
	cr_expect_eq(wrk_control_group_exceeded(fd), 1 << 20);
	close(fd);
	cr_expect_eq(wrk_control_group_exceeded(-1), 0, "a host without limits");
}

Test(control_group, groups_of_hosts_that_ended_are_removed)
{
	struct wrk_control_groups groups = {.last = 7, .left = {6, 7}, .left_count = 2};

	snprintf(groups.folder, sizeof(groups.folder), "%s", at("fs/frag.service"));
	mkdir(at("fs/frag.service/host-6"), 0755);
	make_group("fs/frag.service/host-7");
	wrk_control_groups_clear(&groups);
	cr_expect_eq(access(at("fs/frag.service/host-6"), F_OK), -1);
	cr_assert_eq(groups.left_count, 1);
	cr_expect_eq(groups.left[0], 7);
}

/* Each file in turn is missing, or is a folder, which cannot be written. */
Test(control_group, a_limit_that_the_kernel_refuses_is_an_error)
{
	static const struct {
		const char *file;
		bool is_folder;
		int r;
	} rows[] = {
		{"cpu.max", false, -ENOENT},         {"cpu.max", true, -EISDIR},
		{"memory.max", false, -ENOENT},      {"memory.max", true, -EISDIR},
		{"memory.swap.max", false, 0}, /* a kernel without swap */
		{"memory.swap.max", true, -EISDIR},  {"memory.oom.group", false, -ENOENT},
		{"memory.oom.group", true, -EISDIR},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wrk_control_groups groups;
		struct frag_err err = FRAG_ERR_INIT;
		char wanted[512], file[128];
		int fd = -1;

		make_group("fs/frag.service/host-1");
		snprintf(file, sizeof(file), "fs/frag.service/host-1/%s", rows[i].file);
		unlink(at(file));
		if (rows[i].is_folder)
			mkdir(at(file), 0755);
		init(&groups);
		cr_expect_eq(wrk_control_groups_make(&groups, 500, 4096, &fd, &err), rows[i].r,
			     "row %zu: %s", i, err.text);
		cr_expect_eq(groups.left_count, 1, "row %zu: the folder is to be removed", i);
		cr_expect_eq(fd >= 0, rows[i].r == 0, "row %zu", i);
		snprintf(wanted, sizeof(wanted),
			 "cannot start a host with limits: its control group %.80s: %s",
			 at("fs/frag.service/host-1"), strerror(-rows[i].r));
		cr_expect_str_eq(err.text, rows[i].r == 0 ? "" : wanted, "row %zu", i);
		if (fd >= 0)
			close(fd);
		rmdir(at(file));
	}
}

Test(control_group, why_limits_cannot_be_enforced)
{
	struct wrk_control_groups groups;

	put("fs/frag.service/cgroup.controllers", "cpuset memory\n");
	init(&groups);
	cr_expect_str_eq(
		groups.why,
		"the controllers cpu and memory are not delegated to this worker; run it as frag-worker.service, or with Delegate=cpu memory");
	put("fs/frag.service/cgroup.controllers", "cpu memory\n");
	mkdir(at("proc/1"), 0755);
	put("proc/1/stat", "1 (some (shell)) S 0 1 1\n");
	put("fs/frag.service/cgroup.procs", "1\n");
	init(&groups);
	cr_expect(strstr(groups.why, "its control group has other processes; ") == groups.why, "%s",
		  groups.why);
	put("proc/self/cgroup", "4:memory:/x\n");
	init(&groups);
	cr_expect(strstr(groups.why, "there is no cgroup v2 at /tmp/frag-scratch") == groups.why);
	cr_expect_str_eq(groups.folder, "");
}
