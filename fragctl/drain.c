// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <base/json.h>
#include <fragctl/service.h>

/*
 * `fragctl drain WORKER` keeps a worker from getting fragments, and returns when it runs none any
 * more. Nothing is moved while it runs: applications that have fragments there end by themselves,
 * are stopped, or are restarted, which places them elsewhere.
 */
#define LOOK_MS 250

struct drain {
	struct ctl_driver driver;
	const char *worker;
	bool undo, now, json;
};

static bool is_on(const struct fw_application_row *app, const char *worker)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		if (strcmp(app->hosts[i].worker, worker) == 0)
			return true;
	return false;
}

/* NULL: it is gone, with all that it ran. */
static const struct fw_worker_row *find(const struct fw_reply *reply, const char *worker)
{
	for (uint32_t i = 0; i < reply->worker_count; i++)
		if (strcmp(reply->workers[i].name, worker) == 0)
			return &reply->workers[i];
	return NULL;
}

static bool is_empty(const struct fw_reply *reply, const char *worker)
{
	const struct fw_worker_row *row = find(reply, worker);

	return row == NULL ? reply->more == 0 : row->fragments == 0;
}

/* What a person does about what is left, a line for each application. */
static void print_left(const struct fw_reply *reply, const char *worker, FILE *out)
{
	for (uint32_t i = 0; i < reply->application_count; i++)
		if (is_on(&reply->applications[i], worker))
			fprintf(out,
				"%s still runs there; `fragctl restart %s` starts it anew elsewhere, `fragctl stop %s` ends it\n",
				reply->applications[i].name, reply->applications[i].name,
				reply->applications[i].name);
}

static void show(const struct drain *drain, const struct fw_reply *reply)
{
	const char *comma = "";

	if (!drain->json) {
		if (drain->undo)
			printf("%s: takes fragments again\n", drain->worker);
		else if (is_empty(reply, drain->worker))
			printf("%s: drained, and empty\n", drain->worker);
		else
			printf("%s: drained\n", drain->worker);
		if (!drain->undo)
			print_left(reply, drain->worker, stdout);
		return;
	}
	printf("{\"worker\": ");
	fragi_json_text(drain->worker, stdout);
	printf(", \"drained\": %s, \"still_there\": [", drain->undo ? "false" : "true");
	for (uint32_t i = 0; i < reply->application_count; i++)
		if (is_on(&reply->applications[i], drain->worker)) {
			printf("%s", comma);
			fragi_json_text(reply->applications[i].name, stdout);
			comma = ", ";
		}
	printf("]}\n");
}

static int await_empty(struct drain *drain)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	struct fw_message *reply;
	bool told = false;
	int code;

	while ((code = ctl_service_state_of(&drain->driver, drain->worker, &reply)) == CTL_OK) {
		bool is_over = drain->undo || drain->now || is_empty(&reply->reply, drain->worker);

		if (is_over)
			show(drain, &reply->reply);
		else if (!told)
			print_left(&reply->reply, drain->worker, stderr);
		told = true;
		fw_message_free(reply);
		if (is_over)
			break;
		nanosleep(&pause, NULL);
	}
	return code;
}

static int run(struct drain *drain)
{
	struct fw_message command = {.kind = FW_DRAIN, .drain = {drain->worker, drain->undo}};
	uint64_t none;
	int code = ctl_driver_open(&drain->driver);

	if (code == CTL_OK)
		code = ctl_service_command(&drain->driver, &command, drain->json, &none);
	return code == CTL_OK ? await_empty(drain) : code;
}

int ctl_drain(int argc, char **argv)
{
	struct drain drain = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {
		{.name = "undo",
		 .no_env = true,
		 .help = "the worker takes fragments again",
		 .on = &drain.undo},
		{.name = "no-wait",
		 .no_env = true,
		 .help = "returns at once, also while fragments run there",
		 .on = &drain.now},
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(drain.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl drain",
		.usage = "WORKER [flags]",
		.headline =
			"Keeps a worker from getting fragments, and returns when it runs none any more.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code))
		goto out;
	code = CTL_USAGE;
	if (!ctl_service_output(output, &drain.json))
		goto out;
	if (operands.count != 1 || operands.items[0][0] == '\0' ||
	    strlen(operands.items[0]) > FW_WORKER_NAME_MAX) {
		ctl_fail(CTL_USAGE, "name one worker; fragctl workers shows them");
		goto out;
	}
	drain.worker = operands.items[0];
	code = run(&drain);
out:
	ctl_driver_close(&drain.driver);
	fragi_texts_fini(&operands);
	return code;
}
