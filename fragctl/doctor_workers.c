// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <fragctl/doctor_workers.h>
#include <fragctl/json.h>
#include <fragctl/service.h>

/*
 * `fragctl doctor --workers`: each worker of a driver looks at its node, and tells by way of the
 * driver; then an application runs on each two workers, which says whether their hosts reach each
 * other, and how fast. One that is drained takes no application.
 */
struct looking {
	struct ctl_driver *driver;
	struct ctl_json *json; /* NULL: for people */
	size_t lines, wrong;
};

static bool is_there(const struct fw_worker_row *worker)
{
	return worker->age_ns == 0 && strcmp(worker->state, "expected") != 0;
}

static void put(struct looking *looking, const struct fw_finding *findings, size_t count)
{
	looking->lines += count;
	looking->wrong += ctl_doctor_put(looking->json, findings, count);
	fflush(stdout);
}

/* People read what is wrong, and how much is not. */
static void put_wrong(struct looking *looking, const struct fw_examined *examined)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < examined->finding_count; i++)
		wrong += examined->findings[i].is_wrong;
	printf("%u ok, %u wrong\n", examined->finding_count - wrong, wrong);
	looking->lines += examined->finding_count - wrong;
	for (uint32_t i = 0; i < examined->finding_count; i++)
		if (examined->findings[i].is_wrong)
			put(looking, &examined->findings[i], 1);
}

/* What the worker answers; a worker that does not is a finding too. */
static int look_at_worker(struct looking *looking, const struct fw_worker_row *worker)
{
	struct fw_message question = {.kind = FW_EXAMINE, .examine = {worker->name}}, *answer;
	struct fw_finding none = {"worker", true, "", "this node was not looked at",
				  "fragctl doctor, on that node"};
	int code = ctl_driver_ask(looking->driver, &question, &answer);

	if (code != CTL_OK)
		return code;
	if (answer->kind == FW_EXAMINED && looking->json == NULL)
		put_wrong(looking, &answer->examined);
	else if (answer->kind == FW_EXAMINED)
		put(looking, answer->examined.findings, answer->examined.finding_count);
	else if (looking->json == NULL)
		putchar('\n');
	none.found = answer->kind == FW_EXAMINED ? answer->examined.why_not
		     : answer->kind == FW_ANSWER ? answer->answer.failure.sentence
						 : "the driver gives no answer";
	if (none.found[0] != '\0')
		put(looking, &none, 1);
	fw_message_free(answer);
	return CTL_OK;
}

static int look_at_workers(struct looking *looking, const struct fw_reply *reply)
{
	int code = CTL_OK;

	for (uint32_t i = 0; i < reply->worker_count && code == CTL_OK; i++) {
		const struct fw_worker_row *worker = &reply->workers[i];

		if (!is_there(worker))
			continue;
		if (looking->json != NULL) {
			ctl_json_gap(looking->json, "\n ");
			ctl_json_open(looking->json, NULL, '{');
			ctl_json_text(looking->json, "worker", worker->name);
			ctl_json_text(looking->json, "address", worker->address);
			ctl_json_open(looking->json, "checks", '[');
		} else {
			printf("worker %s, %s: ", worker->name, worker->address);
			fflush(stdout);
		}
		code = look_at_worker(looking, worker);
		if (looking->json != NULL) {
			ctl_json_close(looking->json, ']');
			ctl_json_close(looking->json, '}');
		}
	}
	return code;
}

static void look_at_connections(struct looking *looking, const struct fw_reply *reply)
{
	for (uint32_t i = 0; i < reply->worker_count; i++)
		for (uint32_t k = i + 1; k < reply->worker_count; k++) {
			const struct fw_worker_row *a = &reply->workers[i], *b = &reply->workers[k];
			struct fw_finding finding;

			if (!is_there(a) || !is_there(b) || a->drained || b->drained)
				continue;
			finding = ctl_doctor_connect(looking->driver, a->name, b->name);
			put(looking, &finding, 1);
		}
}

int ctl_doctor_workers(struct ctl_driver *driver, bool json)
{
	struct ctl_json document = json ? ctl_json_begin(stdout) : (struct ctl_json){0};
	struct looking looking = {driver, json ? &document : NULL, 0, 0};
	struct fw_message *reply;
	int code = ctl_service_state(driver, &reply);

	if (code != CTL_OK)
		return code;
	if (json)
		ctl_json_open(&document, "nodes", '[');
	code = look_at_workers(&looking, &reply->reply);
	if (json) {
		ctl_json_close(&document, ']');
		ctl_json_open(&document, "connections", '[');
	}
	if (code == CTL_OK)
		look_at_connections(&looking, &reply->reply);
	if (json) {
		ctl_json_close(&document, ']');
		ctl_json_bool(&document, "healthy", code == CTL_OK && looking.wrong == 0);
		ctl_json_end(&document);
	} else if (code == CTL_OK && looking.lines == 0) {
		printf("the driver has no worker\n");
	} else if (code == CTL_OK) {
		printf(looking.wrong == 0 ? "all %zu are ok\n" : "%2$zu of %1$zu are wrong\n",
		       looking.lines, looking.wrong);
	}
	fw_message_free(reply);
	return code != CTL_OK ? code : looking.wrong == 0 ? CTL_OK : CTL_FAILED;
}
