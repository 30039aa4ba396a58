// SPDX-License-Identifier: Apache-2.0
#include <fragctl/doctor.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/kernel.h>
#include <workerd/landlock.h>

/* Checks of what workers may do, and of what they can forbid their hosts. */

#define CAP_SYS_NICE_BIT 23
#define RTPRIO 90 /* as in frag-worker.service */

static bool may_set_priorities(const struct ctl_node *node)
{
	char text[4096];
	const char *at;

	if (!ctl_node_read(node, text, sizeof(text), "/proc/%s/status", node->worker))
		return false;
	at = strstr(text, "CapEff:");
	return at != NULL &&
	       ((strtoull(at + strlen("CapEff:"), NULL, 16) >> CAP_SYS_NICE_BIT) & 1) != 0;
}

void ctl_check_rtprio(const struct ctl_node *node, struct ctl_finding *finding)
{
	uint64_t limit = ctl_node_limit(node, "Max realtime priority");
	char subject[64];

	ctl_node_subject(node, subject, sizeof(subject));
	if (ctl_node_number(node, "/proc/sys/kernel/sched_rt_runtime_us") == 0) {
		ctl_finding_wrong(finding, "kernel.sched_rt_runtime_us is 0");
		ctl_finding_mend(finding, "sysctl kernel.sched_rt_runtime_us=950000");
	} else if (!may_set_priorities(node) && limit < RTPRIO) {
		ctl_finding_wrong(finding, "%s may set real-time priorities up to %llu", subject,
				  (unsigned long long)limit);
		ctl_finding_mend(finding, "%s",
				 node->is_container
					 ? "podman run --ulimit rtprio=90 --cap-add SYS_NICE"
					 : "run frag-worker.service, or, as root: ulimit -r 90");
	} else {
		ctl_finding_ok(finding, "%s may set real-time priorities", subject);
	}
	if (finding->is_wrong)
		ctl_finding_cost(
			finding,
			"graphs with sched_policy do not start, but for best_effort: true");
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
		if ((at == text || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
			return true;
	return false;
}

/* The group of workerd, where one runs: the line "0::/path" is that of version 2. */
static void find_group(const struct ctl_node *node, char *out, size_t size)
{
	char text[4096], *line;

	snprintf(out, size, "/sys/fs/cgroup");
	if (strcmp(node->worker, "self") == 0 ||
	    !ctl_node_read(node, text, sizeof(text), "/proc/%s/cgroup", node->worker))
		return;
	line = strstr(text, "0::/");
	if (line == NULL)
		return;
	line += strlen("0::");
	line[strcspn(line, "\n")] = '\0';
	/* once a host has had limits, workerd is one level below */
	if (strlen(line) >= strlen("/worker") &&
	    strcmp(line + strlen(line) - strlen("/worker"), "/worker") == 0)
		line[strlen(line) - strlen("/worker")] = '\0';
	snprintf(out, size, "/sys/fs/cgroup%s", strcmp(line, "/") != 0 ? line : "");
}

void ctl_check_control_groups(const struct ctl_node *node, struct ctl_finding *finding)
{
	char folder[4200], text[1024];

	find_group(node, folder, sizeof(folder));
	if (!ctl_node_read(node, text, sizeof(text), "/sys/fs/cgroup/cgroup.controllers")) {
		ctl_finding_wrong(finding, "there is no cgroup v2 at /sys/fs/cgroup");
		ctl_finding_mend(finding, "boot with systemd.unified_cgroup_hierarchy=1%s",
				 node->is_container ? " (on the machine)" : "");
	} else if (!ctl_node_read(node, text, sizeof(text), "%s/cgroup.controllers", folder) ||
		   !has_word(text, "cpu") || !has_word(text, "memory")) {
		ctl_finding_wrong(finding,
				  "the controllers cpu and memory are not delegated (%.80s)",
				  folder);
		ctl_finding_mend(
			finding, "%s",
			node->is_container
				? "podman run --cgroupns private, on a machine with systemd"
				: "run frag-worker.service, or: systemd-run -p Delegate=yes "
				  "workerd ...");
	} else {
		ctl_finding_ok(finding, "cpu and memory of hosts can be limited");
	}
	if (finding->is_wrong)
		ctl_finding_cost(finding,
				 "cpuLimit and memoryLimit of graphs are not enforced here");
}

static long long ask_landlock(const struct ctl_node *node)
{
	(void)node;
	return wrk_landlock_abi();
}

void ctl_check_landlock(const struct ctl_node *node, struct ctl_finding *finding)
{
	long long version = ctl_node_ask(node, "landlock", ask_landlock);

	if (version > 0) {
		ctl_finding_ok(finding, "version %lld", version);
		return;
	}
	ctl_finding_wrong(finding, "the kernel has none");
	ctl_finding_cost(finding, "an operator may change every file that its user may change");
	ctl_finding_mend(finding, "%s",
			 node->is_container ? "allow landlock_* in the container's seccomp profile"
					    : "boot Linux 5.13 or newer with landlock among lsm=");
}

void ctl_check_seccomp(const struct ctl_node *node, struct ctl_finding *finding)
{
	char text[256];

	if (ctl_node_read(node, text, sizeof(text), "/proc/sys/kernel/seccomp/actions_avail") &&
	    has_word(text, "errno")) {
		ctl_finding_ok(finding, "hosts are refused system calls that no operator needs");
		return;
	}
	ctl_finding_wrong(finding, "the kernel has no filters of system calls");
	ctl_finding_cost(finding, "an operator may make every system call that its user may make");
	ctl_finding_mend(finding, "boot a kernel with CONFIG_SECCOMP_FILTER, as Debian's");
}

/* Bit i: the system refuses the i-th call that programs need. */
static long long ask_refused_calls(const struct ctl_node *node)
{
	const struct fragi_kernel_call *call;
	long long refused = 0;

	(void)node;
	for (size_t i = 0; (call = fragi_kernel_call_at(i)) != NULL; i++)
		if (call->make() < 0)
			refused |= 1LL << i;
	return refused;
}

void ctl_check_system_calls(const struct ctl_node *node, struct ctl_finding *finding)
{
	long long refused = ctl_node_ask(node, "refused_calls", ask_refused_calls);
	const struct fragi_kernel_call *call;
	const char *remedy = NULL; /* of the calls that have one of their own */
	char names[256] = "";
	bool only_hosts = true, only_own = true;

	for (size_t i = 0; (call = fragi_kernel_call_at(i)) != NULL; i++) {
		size_t used = strlen(names);

		if ((refused >> i & 1) == 0)
			continue;
		snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "",
			 call->name);
		only_hosts = only_hosts && call->of_hosts;
		only_own = only_own && call->remedy != NULL;
		remedy = call->remedy != NULL ? call->remedy : remedy;
	}
	if (names[0] == '\0') {
		ctl_finding_ok(finding, "the system makes all that programs need");
		return;
	}
	ctl_finding_wrong(finding, "the system refuses %s", names);
	ctl_finding_cost(finding, "%s",
			 only_hosts ? "workers and fragctl run do not start"
				    : "no program of frag starts");
	ctl_finding_mend(finding, "%s%s%s", remedy != NULL ? remedy : "",
			 remedy != NULL && !only_own ? "; " : "",
			 only_own             ? ""
			 : node->is_container ? "allow them in the container's seccomp profile, as "
						"podman run --security-opt seccomp=unconfined does"
					      : "install Linux 5.3 or newer");
}
