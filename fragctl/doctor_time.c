// SPDX-License-Identifier: Apache-2.0
#include <fragctl/doctor.h>

#include <string.h>
#include <sys/timex.h>

#include <base/units.h>

/* Checks of what keeps time, and of how fast cores answer. */

/* The kernel's bound of the error, in microseconds; -1: nothing keeps the clock right. */
static long long ask_clock(const struct ctl_node *node)
{
	struct timex state = {0};
	int r = adjtimex(&state);

	(void)node;
	return r == TIME_ERROR || (state.status & STA_UNSYNC) != 0 ? -1 : state.maxerror;
}

void ctl_check_clock(const struct ctl_node *node, struct ctl_finding *finding)
{
	long long error_us = ctl_node_ask(node, "clock_error_us", ask_clock);
	char text[32];

	if (error_us >= 0) {
		ctl_finding_ok(finding, "kept right by another one, within %s",
			       fragi_format_duration(error_us * 1000, text, sizeof(text)));
		return;
	}
	ctl_finding_wrong(finding, "no program keeps this clock right");
	ctl_finding_cost(finding,
			 "times in logs and events of different nodes differ as their clocks do");
	ctl_finding_mend(finding, "apt-get install chrony%s",
			 node->is_container ? " (on the machine: a container has its clock)" : "");
}

void ctl_check_ptp(const struct ctl_node *node, struct ctl_finding *finding)
{
	glob_t found;
	size_t count = ctl_node_find(node, "/sys/class/net/*/device/ptp/ptp*", &found);
	bool is_used = ctl_node_runs(node, "ptp4l", NULL);
	bool reaches_system =
		ctl_node_runs(node, "phc2sys", NULL) || ctl_node_runs(node, "chronyd", NULL);
	const char *path = count > 0 ? ctl_node_found(node, &found, 0) : "";
	const char *name = count > 0 ? path + strlen("/sys/class/net/") : "";
	int length = (int)strcspn(name, "/");

	if (is_used && count > 0 && !reaches_system) {
		ctl_finding_wrong(finding,
				  "ptp4l sets the clock of %.*s, and nothing brings it to the "
				  "system's clock",
				  length, name);
		ctl_finding_cost(finding,
				 "all programs read the system's clock, which stays wrong");
		ctl_finding_mend(finding, "systemctl enable --now phc2sys@%.*s", length, name);
	} else if (is_used && count == 0) {
		ctl_finding_wrong(finding,
				  "ptp4l runs, and no network card has a clock of its own");
		ctl_finding_cost(finding, "packets are stamped by software, some 10 us late");
		ctl_finding_mend(finding,
				 "ethtool -T names the cards that can; without one use chrony");
	} else if (count > 0) {
		ctl_finding_ok(finding,
			       is_used ? "ptp4l sets the clock of %.*s"
				       : "%.*s has a clock for PTP, which is not used",
			       length, name);
	} else {
		ctl_finding_ok(finding, "no network card has a clock for PTP");
	}
	globfree(&found);
}

void ctl_check_governor(const struct ctl_node *node, struct ctl_finding *finding)
{
	glob_t found;
	size_t count = ctl_node_find(
		node, "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor", &found);
	size_t slow = 0;
	char name[64] = "", other[64];

	for (size_t i = 0; i < count; i++)
		if (ctl_node_read(node, other, sizeof(other), "%s",
				  ctl_node_found(node, &found, i)) &&
		    strcmp(other, "performance") != 0) {
			memcpy(name, other, sizeof(name));
			slow++;
		}
	globfree(&found);
	if (slow > 0) {
		ctl_finding_wrong(finding, "%s on %zu of %zu cores", name, slow, count);
		ctl_finding_cost(finding,
				 "a core that was idle is slow at first: latencies are longer, and "
				 "differ more");
		ctl_finding_mend(finding, "cpupower frequency-set -g performance");
	} else if (count > 0) {
		ctl_finding_ok(finding, "performance");
	} else {
		ctl_finding_ok(finding, "the kernel does not choose the clock rate of cores here");
	}
}
