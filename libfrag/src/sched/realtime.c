// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <base/stamp.h>
#include <sched/realtime.h>

/* The kernel's struct sched_attr, which older C libraries do not declare. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};
#define POLICY_DEADLINE 6u
#define RESET_ON_FORK 1u

static uint32_t kernel_policy(enum fragi_sched_policy policy)
{
	return policy == FRAGI_SCHED_FIFO ? (uint32_t)SCHED_FIFO
	       : policy == FRAGI_SCHED_RR ? (uint32_t)SCHED_RR
					  : POLICY_DEADLINE;
}

static void read_back(struct fragi_realtime *out)
{
	struct attributes own = {.size = sizeof(own)};

	*out = (struct fragi_realtime){.policy = FRAGI_SCHED_OTHER};
	if (syscall(SYS_sched_getattr, 0, &own, sizeof(own), 0) < 0)
		return;
	if (own.policy == (uint32_t)SCHED_FIFO || own.policy == (uint32_t)SCHED_RR) {
		out->policy =
			own.policy == (uint32_t)SCHED_FIFO ? FRAGI_SCHED_FIFO : FRAGI_SCHED_RR;
		out->priority = own.priority;
	} else if (own.policy == POLICY_DEADLINE) {
		out->policy = FRAGI_SCHED_DEADLINE;
		out->runtime_ns = own.runtime;
		out->deadline_ns = own.deadline;
		out->period_ns = own.period;
	}
}

/* What the process lacks. */

static bool may_set_priorities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2] = {{0}, {0}};

	return syscall(SYS_capget, &head, sets) == 0 &&
	       (sets[0].effective & CAP_TO_MASK(CAP_SYS_NICE)) != 0;
}

/* Reads a file with a number. Returns whether there was one. */
static bool read_number(const char *path, long *out)
{
	char text[32] = "", *end;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	*out = strtol(text, &end, 10);
	return end != text;
}

/* Returns whether the control group of the process has no time for real-time threads; its file. */
static bool group_has_no_time(char *out_file, size_t size)
{
	FILE *groups = fopen("/proc/self/cgroup", "re");
	char line[512], *controllers, *path;
	bool found = false;
	long time;

	while (groups != NULL && !found && fgets(line, sizeof(line), groups) != NULL) {
		controllers = strchr(line, ':');
		path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
		if (path == NULL)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		controllers++;
		if (strcmp(controllers, "cpu") != 0 && strncmp(controllers, "cpu,", 4) != 0)
			continue;
		snprintf(out_file, size, "/sys/fs/cgroup/%s%s/cpu.rt_runtime_us", controllers,
			 strcmp(path, "/") == 0 ? "" : path);
		found = read_number(out_file, &time) && time == 0;
	}
	if (groups != NULL)
		fclose(groups);
	return found;
}

/* Whether the thread may not run on all cores that are there. */
static bool is_restricted(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 &&
	       CPU_COUNT(&set) < sysconf(_SC_NPROCESSORS_ONLN);
}

static void explain_priority(const struct fragi_realtime *wanted, char *out, size_t size)
{
	struct rlimit limit = {0, 0};
	char file[600];
	long time;

	getrlimit(RLIMIT_RTPRIO, &limit);
	if (!may_set_priorities() && limit.rlim_cur < wanted->priority)
		snprintf(
			out, size,
			"the process has neither CAP_SYS_NICE nor an rtprio limit of %u (it is %llu); give it one of them (systemd: LimitRTPRIO=%u; a shell: ulimit -r %u)",
			wanted->priority, (unsigned long long)limit.rlim_cur, wanted->priority,
			wanted->priority);
	else if (group_has_no_time(file, sizeof(file)))
		snprintf(
			out, size,
			"its control group has no time for real-time threads; write microseconds into %s",
			file);
	else if (read_number("/proc/sys/kernel/sched_rt_runtime_us", &time) && time == 0)
		snprintf(
			out, size,
			"kernel.sched_rt_runtime_us is 0, so that there is no time for real-time threads; set it to 950000");
	else
		snprintf(
			out, size,
			"it has the privilege, so a container or a filter of system calls refuses sched_setattr; allow it there");
}

static void explain_deadline(const struct fragi_realtime *wanted, int code, char *out, size_t size)
{
	long runtime = -1, period = -1;

	read_number("/proc/sys/kernel/sched_rt_runtime_us", &runtime);
	read_number("/proc/sys/kernel/sched_rt_period_us", &period);
	if (code == -EPERM && !may_set_priorities())
		snprintf(
			out, size,
			"the process lacks CAP_SYS_NICE, without which there is no deadline; give it");
	else if (code == -EPERM && is_restricted())
		snprintf(
			out, size,
			"its thread may run on some cores only, and the kernel promises deadlines for all cores of a cpuset; leave pin_cores out, give these cores a cpuset of their own, or set kernel.sched_rt_runtime_us to -1 (it is %ld)",
			runtime);
	else if (code == -EBUSY)
		snprintf(
			out, size,
			"it wants %.0f %% of a core, more than other deadlines leave of what kernel.sched_rt_runtime_us allows (%ld of %ld us); lower sched_runtime, or raise that",
			100 * (double)wanted->runtime_ns / (double)wanted->period_ns, runtime,
			period);
	else if (code == -EINVAL)
		snprintf(
			out, size,
			"the period is not between kernel.sched_deadline_period_min_us and ..._max_us; choose another one");
	else
		snprintf(
			out, size,
			"a container or a filter of system calls refuses sched_setattr; allow it there");
}

int fragi_realtime_enter(const struct fragi_realtime *wanted, struct fragi_realtime *out_granted,
			 struct frag_err *err)
{
	struct attributes attributes = {
		.size = sizeof(attributes),
		.policy = kernel_policy(wanted->policy),
		.flags = RESET_ON_FORK,
		.priority = wanted->priority,
		.runtime = wanted->runtime_ns,
		.deadline = wanted->deadline_ns,
		.period = wanted->period_ns,
	};
	char text[96], why[800];
	int r = 0;

	if (syscall(SYS_sched_setattr, 0, &attributes, 0) < 0)
		r = -errno;
	read_back(out_granted);
	if (r == 0)
		return 0;
	if (wanted->policy == FRAGI_SCHED_DEADLINE)
		explain_deadline(wanted, r, why, sizeof(why));
	else
		explain_priority(wanted, why, sizeof(why));
	return frag_err_set(err, r, "%s is refused (%s): %s",
			    fragi_realtime_text(wanted, text, sizeof(text)), frag_strerror(r), why);
}

void fragi_pace_wait(struct fragi_pace *pace)
{
	int64_t now_ns;
	struct timespec at;

	if (pace->by_kernel) { /* which gives the rest of this period up */
		sched_yield();
		return;
	}
	now_ns = fragi_now_ns();
	pace->next_ns += pace->period_ns;
	if (pace->next_ns < now_ns)
		pace->next_ns = now_ns + pace->period_ns;
	at = (struct timespec){pace->next_ns / 1000000000, pace->next_ns % 1000000000};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}
