// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <fragctl/ctl.h>
#include <fragctl/doctor.h>
#include <fragctl/json.h>

/*
 * `fragctl doctor` prints a line for each thing of this node that frag depends on: ok, or what is
 * wrong, what it costs, and what mends it.
 */
#define CHECKS_MAX 64

struct report {
	struct ctl_finding findings[CHECKS_MAX];
	size_t count, wrong;
};

static void look(const struct ctl_node *node, struct report *report)
{
	const struct ctl_check *check;

	for (size_t i = 0; i < CHECKS_MAX && (check = ctl_check_at(i)) != NULL; i++) {
		check->look(node, &report->findings[i]);
		report->wrong += report->findings[i].is_wrong;
		report->count++;
	}
}

static void print(const struct report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct ctl_finding *finding = &report->findings[i];

		printf("%-14s  %-5s  %s\n", ctl_check_at(i)->name,
		       finding->is_wrong ? "wrong" : "ok", finding->found);
		if (!finding->is_wrong)
			continue;
		printf("%-14s  costs  %s\n", "", finding->cost);
		printf("%-14s  mend   %s\n", "", finding->mend);
	}
	if (report->wrong == 0)
		printf("all %zu are ok\n", report->count);
	else
		printf("%zu of %zu are wrong\n", report->wrong, report->count);
}

static void print_json(const struct report *report)
{
	struct ctl_json json = ctl_json_begin(stdout);

	ctl_json_bool(&json, "healthy", report->wrong == 0);
	ctl_json_open(&json, "checks", '[');
	for (size_t i = 0; i < report->count; i++) {
		const struct ctl_finding *finding = &report->findings[i];

		ctl_json_gap(&json, "\n  ");
		ctl_json_open(&json, NULL, '{');
		ctl_json_text(&json, "check", ctl_check_at(i)->name);
		ctl_json_bool(&json, "ok", !finding->is_wrong);
		ctl_json_text(&json, "found", finding->found);
		ctl_json_optional(&json, "cost", finding->cost);
		ctl_json_optional(&json, "mend", finding->mend);
		ctl_json_close(&json, '}');
	}
	ctl_json_close(&json, ']');
	ctl_json_end(&json);
}

int ctl_doctor(int argc, char **argv)
{
	static struct report report;
	struct ctl_node node = {.root = ""};
	struct ctl_common common = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {
		{.name = "address",
		 .value = "[HOST][:PORT]",
		 .help = "of the driver; default 127.0.0.1:57777",
		 .text = &node.address},
		{.name = "state-dir",
		 .value = "DIR",
		 .help = "state of a driver; default /var/lib/frag-driver",
		 .text = &node.state},
		{.name = "cert",
		 .value = "FILE",
		 .help = "certificate of a daemon",
		 .text = &node.certificate},
		{.name = "root", .value = "DIR", .no_env = true, .text = &node.root},
		CTL_OUTPUT_FLAG(output),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl doctor",
		.usage = "[flags]",
		.headline =
			"Looks at this node: each line says ok, or what is wrong, what that costs, and what mends it. Exit code 0: all is ok; 1: something is wrong.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	bool is_json;
	int code;

	if (!ctl_begin(&flags, &common, argc, argv, NULL, NULL, &code))
		return code;
	if (!ctl_output(output, &is_json))
		return CTL_USAGE;
	ctl_node_init(&node);
	look(&node, &report);
	if (is_json)
		print_json(&report);
	else
		print(&report);
	return report.wrong == 0 ? CTL_OK : CTL_FAILED;
}
