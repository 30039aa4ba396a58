// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>
#include <fragctl/graph.h>
#include <fragctl/service.h>

/*
 * `fragctl start` brings an application to a driver and returns when it runs, or says why it does
 * not; with --wait it returns when the application has ended.
 */
struct start {
	struct ctl_driver driver;
	struct ctl_graph graph;
	const char *name, *timeout;
	int64_t timeout_ns;
	bool wait;
	struct drv_output output;
};

static int check(struct start *start)
{
	if (start->name != NULL && !fragi_name_is_valid(start->name))
		return ctl_fail(
			CTL_USAGE,
			"--name \"%.80s\" is not a valid name; give a letter, then letters, digits, _ and -",
			start->name);
	if (start->timeout != NULL &&
	    (fragi_duration_lacks_unit(start->timeout) ||
	     fragi_parse_time(start->timeout, &start->timeout_ns) < 0 || start->timeout_ns <= 0))
		return ctl_fail(
			CTL_USAGE,
			"--start-timeout \"%.40s\" is not a valid time; give it as 30s or 500ms",
			start->timeout);
	if (start->output.file != NULL && !start->wait)
		return ctl_fail(CTL_USAGE, "--summary needs --wait: there is a summary at the end");
	return CTL_OK;
}

static int pack(struct start *start, struct fw_start_app *command, void **out_packed)
{
	struct fragi_spec_source *source = &start->graph.source.source;
	size_t bytes;
	char *absolute = start->graph.line == NULL ? realpath(start->graph.path, NULL) : NULL;
	int r;

	if (absolute != NULL) /* hosts are elsewhere, and look for files beside the graph's */
		source->graph.file = absolute;
	r = fragi_source_pack(source, out_packed, &bytes);
	free(absolute);
	if (r < 0)
		return ctl_fail(CTL_FAILED, "cannot pack the graph: %s", frag_strerror(r));
	*command = (struct fw_start_app){.name = start->name != NULL ? start->name : "",
					 .source = *out_packed,
					 .source_bytes = (uint32_t)bytes,
					 .start_timeout_ns = start->timeout_ns};
	return CTL_OK;
}

/* One of the workers, if all that are there are drained; else NULL. */
static const char *all_are_drained(const struct fw_reply *reply)
{
	const char *name = NULL;

	for (uint32_t i = 0; i < reply->worker_count; i++) {
		const struct fw_worker_row *worker = &reply->workers[i];

		if (worker->age_ns != 0 || strcmp(worker->state, "expected") == 0)
			continue;
		if (!worker->drained)
			return NULL;
		name = name != NULL ? name : worker->name;
	}
	return reply->more == 0 ? name : NULL;
}

/* One for which there is no place waits, maybe for long. */
static int print_missing(struct ctl_driver *driver, uint64_t run)
{
	char names[CTL_NAMES_SIZE];
	struct fw_message *reply;
	int code = ctl_service_state(driver, &reply);

	if (code != CTL_OK)
		return code;
	for (uint32_t i = 0; i < reply->reply.application_count; i++) {
		const struct fw_application_row *app = &reply->reply.applications[i];

		if (app->run != run || app->missing[0] == '\0')
			continue;
		if (all_are_drained(&reply->reply) != NULL)
			ctl_complain(
				"%s waits for a worker for %s: all are drained; `fragctl drain %s --undo` ends that for one",
				app->name, ctl_service_names(app->missing, names),
				all_are_drained(&reply->reply));
		else
			ctl_complain(
				"%s waits for a worker for %s; `fragctl explain %s` shows why, and it starts as soon as there is one",
				app->name, ctl_service_names(app->missing, names), app->name);
	}
	fw_message_free(reply);
	return CTL_OK;
}

/* Returns the exit code. */
static int bring(struct start *start)
{
	struct fw_message command = {.kind = FW_START_APP}, *outcome;
	bool json = start->output.json;
	void *packed = NULL;
	uint64_t run;
	int code = pack(start, &command.start_app, &packed);

	if (code == CTL_OK)
		code = ctl_driver_open(&start->driver);
	if (code == CTL_OK)
		code = ctl_service_command(&start->driver, &command, json, &run);
	fragi_free(packed);
	if (code == CTL_OK)
		code = print_missing(&start->driver, run);
	if (code == CTL_OK)
		code = ctl_service_await(&start->driver, run, start->wait ? FW_ENDED : FW_RUNNING,
					 json, &outcome);
	if (code != CTL_OK)
		return code;
	if (start->wait) {
		const struct fragi_summary *summary = &outcome->outcome.summary;

		if (summary->failure.code != FRAGI_FAILURE_NONE)
			ctl_complain("%s", summary->failure.sentence);
		code = drv_result_show(&start->output, summary);
	} else {
		code = ctl_service_show_start(outcome, json);
	}
	fw_message_free(outcome);
	return code;
}

int ctl_start(int argc, char **argv)
{
	struct start start = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {
		CTL_GRAPH_FLAGS(start.graph),
		{.name = "name",
		 .no_env = true,
		 .value = "NAME",
		 .help = "of the application at the driver; default: the graph's",
		 .text = &start.name},
		{.name = "wait",
		 .no_env = true,
		 .help = "returns when it has ended, with its summary and its exit code",
		 .on = &start.wait},
		{.name = "start-timeout",
		 .value = "TIME",
		 .help = "fails with 4 when it does not run by then; default: waits",
		 .text = &start.timeout},
		{.name = "output",
		 .letter = 'o',
		 .value = "table|json",
		 .help = "what stdout gets; default table",
		 .text = &output},
		{.name = "summary",
		 .value = "FILE",
		 .help = "with --wait: also writes the summary, as JSON, into a file",
		 .text = &start.output.file},
		CTL_DRIVER_FLAGS(start.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl start",
		.usage = "APP.yaml | -e LINE [flags] [-- ARGS]",
		.headline = "Starts an application at a driver; returns when it runs.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
		.rest = "arguments of the application",
	};
	bool help = false;
	int rest, code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, &rest, &code))
		goto out;
	code = ctl_output(output, &start.output.json) ? check(&start) : CTL_USAGE;
	if (code == CTL_OK)
		code = ctl_graph_take(&start.graph, flags.program, &operands, argv + rest,
				      argc - rest);
	if (code == CTL_OK)
		code = ctl_graph_read(&start.graph, &help);
	if (code == CTL_OK && !help)
		code = bring(&start);
out:
	ctl_driver_close(&start.driver);
	fragi_texts_fini(&operands);
	ctl_graph_fini(&start.graph);
	return code;
}
