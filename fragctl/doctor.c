// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <unistd.h>

#include <fragctl/doctor.h>
#include <fragctl/doctor_workers.h>
#include <fragctl/json.h>
#include <fragctl/service.h>

/*
 * `fragctl doctor` prints a line for each thing of this node that frag depends on: ok, or what is
 * wrong, what it costs, and what mends it; with --workers, of all nodes of a driver.
 */
#define CHECKS_MAX FW_FINDINGS_MAX
#define WORKER_S 30

struct report {
	struct ctl_finding findings[CHECKS_MAX];
	struct fw_finding rows[CHECKS_MAX]; /* of their texts */
	size_t count, wrong;
};

static void look(const struct ctl_node *node, struct report *report)
{
	const struct ctl_check *check;

	for (size_t i = 0; i < CHECKS_MAX && (check = ctl_check_at(i)) != NULL; i++) {
		struct ctl_finding *finding = &report->findings[i];

		check->look(node, finding);
		report->rows[i] = (struct fw_finding){check->name, finding->is_wrong,
						      finding->found, finding->cost, finding->mend};
		report->wrong += finding->is_wrong;
		report->count++;
	}
}

static void put_line(const struct fw_finding *finding)
{
	printf("%-14s  %-5s  %s\n", finding->check, finding->is_wrong ? "wrong" : "ok",
	       finding->found);
	if (!finding->is_wrong)
		return;
	printf("%-14s  costs  %s\n", "", finding->cost);
	printf("%-14s  mend   %s\n", "", finding->mend);
}

static void put_json(struct ctl_json *json, const struct fw_finding *finding)
{
	ctl_json_gap(json, "\n  ");
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "check", finding->check);
	ctl_json_bool(json, "ok", !finding->is_wrong);
	ctl_json_text(json, "found", finding->found);
	ctl_json_optional(json, "cost", finding->cost);
	ctl_json_optional(json, "mend", finding->mend);
	ctl_json_close(json, '}');
}

size_t ctl_doctor_put(struct ctl_json *json, const struct fw_finding *findings, size_t count)
{
	size_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		wrong += findings[i].is_wrong;
		if (json != NULL)
			put_json(json, &findings[i]);
		else
			put_line(&findings[i]);
	}
	return wrong;
}

static void print(const struct report *report, bool is_json)
{
	struct ctl_json json = {0};

	if (is_json) {
		json = ctl_json_begin(stdout);
		ctl_json_bool(&json, "healthy", report->wrong == 0);
		ctl_json_open(&json, "checks", '[');
	}
	(void)ctl_doctor_put(is_json ? &json : NULL, report->rows, report->count);
	if (is_json) {
		ctl_json_close(&json, ']');
		ctl_json_end(&json);
	} else if (report->wrong == 0) {
		printf("all %zu are ok\n", report->count);
	} else {
		printf("%zu of %zu are wrong\n", report->wrong, report->count);
	}
}

/*
 * For a worker, line by line (workerd/examiner.c). What holds this process ends it, and what was
 * found before is known.
 */
static int look_for_worker(const struct ctl_node *node)
{
	const struct ctl_check *check;

	alarm(WORKER_S);
	for (size_t i = 0; (check = ctl_check_at(i)) != NULL; i++) {
		struct ctl_finding finding = {0};

		check->look(node, &finding);
		printf("%s\t%s\t%s\t%s\t%s\n", check->name, finding.is_wrong ? "wrong" : "ok",
		       finding.found, finding.cost, finding.mend);
		fflush(stdout);
	}
	return CTL_OK;
}

int ctl_doctor(int argc, char **argv)
{
	static struct report report;
	struct ctl_node node = {.root = ""};
	struct ctl_driver driver = {0};
	bool workers = false, for_worker = false;
	struct ctl_common common = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {
		{.name = "workers",
		 .no_env = true,
		 .help = "looks at the nodes of all workers of the driver, and at the connection between each pair of them",
		 .on = &workers},
		{.name = "state-dir",
		 .value = "DIR",
		 .help = "state of a driver; default /var/lib/frag-driver",
		 .text = &node.state},
		{.name = "cert",
		 .value = "FILE",
		 .help = "certificate of a daemon",
		 .text = &node.certificate},
		{.name = "root", .value = "DIR", .no_env = true, .text = &node.root},
		{.name = "for-worker", .no_env = true, .on = &for_worker},
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl doctor",
		.usage = "[flags]",
		.headline =
			"Looks at this node, or at all nodes of a driver: each line says ok, or what is wrong, what that costs, and what mends it. Exit code 0: all is ok; 1: something is wrong.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	bool is_json;
	int code;

	if (!ctl_begin(&flags, &common, argc, argv, NULL, NULL, &code))
		goto out;
	code = CTL_USAGE;
	if (!ctl_output(output, &is_json))
		goto out;
	node.address = driver.address_text;
	if (workers) {
		code = ctl_driver_open(&driver);
		if (code == CTL_OK)
			code = ctl_doctor_workers(&driver, is_json);
		goto out;
	}
	ctl_node_init(&node);
	if (for_worker) {
		code = look_for_worker(&node);
		goto out;
	}
	look(&node, &report);
	print(&report, is_json);
	code = report.wrong == 0 ? CTL_OK : CTL_FAILED;
out:
	ctl_driver_close(&driver);
	return code;
}
