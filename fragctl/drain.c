// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <fragctl/json.h>
#include <fragctl/service.h>

/*
 * `fragctl drain WORKER` keeps a worker from getting fragments, and returns when it runs none any
 * more: the driver moves them to other workers. What no other worker can take stays, and is waited
 * for: until a worker comes that takes it, or a person stops or restarts its application.
 */
#define LOOK_MS 250

struct drain {
	struct ctl_driver driver;
	const char *worker;
	bool undo, rebalance, now, json;
};

static bool is_on(const struct fw_application_row *app, const char *worker)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		if (strcmp(app->hosts[i].worker, worker) == 0)
			return true;
	return false;
}

/* NULL: it is gone, with all that it ran; the row of the worker that is asked for is never cut. */
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

	return row == NULL || row->fragments == 0;
}

/* The driver refuses a restart then: it would end the application, and not start it again. */
static bool has_no_place(const struct fw_host_row *host)
{
	static const char reason[] = "no worker ";

	return strncmp(host->stays, reason, sizeof(reason) - 1) == 0;
}

/* What a person does about what stays, a line for each host. */
static void print_left(const struct fw_reply *reply, const char *worker, FILE *out)
{
	for (uint32_t i = 0; i < reply->application_count; i++) {
		const struct fw_application_row *app = &reply->applications[i];

		for (uint32_t h = 0; h < app->host_count; h++) {
			const struct fw_host_row *host = &app->hosts[h];

			if (strcmp(host->worker, worker) != 0)
				continue;
			if (host->stays[0] == '\0')
				continue;
			fprintf(out, "%s of %s stays there: %s; ", host->fragments, app->name,
				host->stays);
			if (has_no_place(host))
				fprintf(out, "it moves when another worker takes it, ");
			else
				fprintf(out, "`fragctl restart %s` places it anew, ", app->name);
			fprintf(out, "`fragctl stop %s` ends it\n", app->name);
		}
	}
}

static void json_left(struct ctl_json *json, const struct fw_reply *reply, const char *worker)
{
	for (uint32_t i = 0; i < reply->application_count; i++) {
		const struct fw_application_row *app = &reply->applications[i];

		for (uint32_t h = 0; h < app->host_count; h++) {
			const struct fw_host_row *host = &app->hosts[h];

			if (strcmp(host->worker, worker) != 0 || host->stays[0] == '\0')
				continue;
			ctl_json_open(json, NULL, '{');
			ctl_json_text(json, "application", app->name);
			ctl_json_text(json, "fragments", host->fragments);
			ctl_json_text(json, "reason", host->stays);
			ctl_json_close(json, '}');
		}
	}
}

static void show_json(const struct drain *drain, const struct fw_reply *reply)
{
	struct ctl_json json = ctl_json_begin(stdout);

	ctl_json_text(&json, "worker", drain->worker);
	ctl_json_bool(&json, "drained", !drain->undo);
	ctl_json_open(&json, "still_there", '[');
	for (uint32_t i = 0; i < reply->application_count; i++)
		if (is_on(&reply->applications[i], drain->worker))
			ctl_json_text(&json, NULL, reply->applications[i].name);
	ctl_json_close(&json, ']');
	ctl_json_open(&json, "stays", '[');
	json_left(&json, reply, drain->worker);
	ctl_json_close(&json, ']');
	ctl_json_end(&json);
}

static void show(const struct drain *drain, const struct fw_reply *reply)
{
	if (drain->json)
		show_json(drain, reply);
	else if (drain->undo)
		printf(drain->rebalance
			       ? "%s: takes fragments again, and what the drain moved goes back\n"
			       : "%s: takes fragments again; what the drain moved stays where it is, --rebalance moves it back\n",
		       drain->worker);
	else if (is_empty(reply, drain->worker))
		printf("%s: drained, and empty\n", drain->worker);
	else
		printf("%s: drained\n", drain->worker);
	if (!drain->json && !drain->undo)
		print_left(reply, drain->worker, stdout);
}

/* One line for each host that is to leave the worker. */
static void print_awaited(const struct fw_reply *reply, const char *worker)
{
	for (uint32_t i = 0; i < reply->application_count; i++) {
		const struct fw_application_row *app = &reply->applications[i];

		for (uint32_t h = 0; h < app->host_count; h++)
			if (strcmp(app->hosts[h].worker, worker) == 0 &&
			    app->hosts[h].stays[0] == '\0')
				fprintf(stderr, "waits for %s of %s to leave %s\n",
					app->hosts[h].fragments, app->name, worker);
	}
}

/* Prints once what stays, when nothing else is left. Returns whether it has. */
static bool print_what_stays(const struct fw_reply *reply, const char *worker)
{
	uint32_t hosts = 0, stay = 0;

	for (uint32_t i = 0; i < reply->application_count; i++) {
		const struct fw_application_row *app = &reply->applications[i];

		for (uint32_t h = 0; h < app->host_count; h++) {
			if (strcmp(app->hosts[h].worker, worker) != 0)
				continue;
			hosts++;
			stay += app->hosts[h].stays[0] != '\0';
		}
	}
	if (hosts == 0 || stay < hosts)
		return false;
	print_left(reply, worker, stderr);
	return true;
}

static int await_empty(struct drain *drain)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	struct fw_message *reply;
	bool is_printed = false, announced = drain->json;
	int code;

	while ((code = ctl_service_state_of(&drain->driver, drain->worker, &reply)) == CTL_OK) {
		bool is_over = drain->undo || drain->now || is_empty(&reply->reply, drain->worker);

		if (is_over)
			show(drain, &reply->reply);
		else if (!announced)
			print_awaited(&reply->reply, drain->worker);
		if (!is_over && !is_printed) /* all that can be moved has been */
			is_printed = print_what_stays(&reply->reply, drain->worker);
		announced = true;
		fw_message_free(reply);
		if (is_over)
			break;
		nanosleep(&pause, NULL);
	}
	return code;
}

static int run(struct drain *drain)
{
	struct fw_message command = {.kind = FW_DRAIN,
				     .drain = {drain->worker, drain->undo, drain->rebalance}};
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
		{.name = "rebalance",
		 .no_env = true,
		 .help = "with --undo: also moves back what the drain moved",
		 .on = &drain.rebalance},
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
			"Moves what a worker runs to others, keeps it from getting more, and returns when it runs nothing.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code))
		goto out;
	code = CTL_USAGE;
	if (!ctl_output(output, &drain.json))
		goto out;
	if (operands.count != 1 || operands.items[0][0] == '\0' ||
	    strlen(operands.items[0]) > FW_WORKER_NAME_MAX) {
		ctl_fail(CTL_USAGE, "name one worker; fragctl workers shows them");
		goto out;
	}
	if (drain.rebalance && !drain.undo) {
		ctl_fail(CTL_USAGE, "--rebalance is for --undo, which ends a drain");
		goto out;
	}
	drain.worker = operands.items[0];
	code = run(&drain);
out:
	ctl_driver_close(&drain.driver);
	fragi_texts_fini(&operands);
	return code;
}
