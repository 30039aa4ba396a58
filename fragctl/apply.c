// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>
#include <fragctl/graph.h>
#include <fragctl/service.h>

/*
 * `fragctl apply NAME APP.yaml` brings a changed graph for an application that runs. The driver
 * answers what differs and what that needs. Parameters that may change while it runs are set one
 * after the other, as `fragctl set` does; what is left starts fragments again, or the application.
 */
struct apply {
	struct ctl_driver driver;
	struct ctl_graph graph;
	const char *name;
	bool only_shows, json;
	struct fw_apply command; /* source: owned */
};

static int pack(struct apply *apply)
{
	struct fragi_spec_source *source = &apply->graph.source.source;
	char *absolute = apply->graph.line == NULL ? realpath(apply->graph.path, NULL) : NULL;
	void *packed = NULL;
	size_t bytes = 0;
	int r;

	if (absolute != NULL) /* as `fragctl start` has it */
		source->graph.file = absolute;
	r = fragi_source_pack(source, &packed, &bytes);
	free(absolute);
	if (r < 0)
		return ctl_fail(CTL_FAILED, "cannot pack the graph: %s", frag_strerror(r));
	apply->command = (struct fw_apply){
		.name = apply->name, .source = packed, .source_bytes = (uint32_t)bytes};
	return CTL_OK;
}

/* Asks what differs, or for the change. The caller frees *out_changes. */
static int ask(struct apply *apply, bool only_shows, struct fw_message **out_changes)
{
	struct fw_message command = {.kind = FW_APPLY, .apply = apply->command};

	command.apply.only_shows = only_shows;
	return ctl_service_ask(&apply->driver, &command, FW_CHANGES, apply->json, out_changes);
}

static int set(struct apply *apply, const char *text)
{
	struct fw_message command = {.kind = FW_SET, .set = {apply->name, text}};
	uint64_t run;

	return ctl_service_command(&apply->driver, &command, apply->json, &run);
}

/* What would be gone by another start anyway needs no setting. */
static int set_all(struct apply *apply, const struct fw_changes *changes)
{
	int code = CTL_OK;

	for (uint32_t i = 0;
	     changes->effect < FW_EFFECT_APPLICATION && code == CTL_OK && i < changes->count; i++)
		if (changes->rows[i].effect == FW_EFFECT_SET)
			code = set(apply, changes->rows[i].set);
	return code;
}

static int await(struct apply *apply, uint64_t run)
{
	struct fw_message *outcome;
	int code = ctl_service_await(&apply->driver, run, FW_RUNNING, apply->json, &outcome);

	if (code != CTL_OK)
		return code;
	if (outcome->outcome.reached != FW_RUNNING)
		code = ctl_service_show_start(outcome, apply->json);
	fw_message_free(outcome);
	return code;
}

/* Returns the exit code. */
static int change(struct apply *apply, const struct fw_changes *changes, uint64_t *out_run)
{
	struct fw_message *made;
	int code = set_all(apply, changes);

	if (code == CTL_OK)
		code = ask(apply, false, &made);
	if (code != CTL_OK)
		return code;
	ctl_service_show_remark(made->changes.remark);
	*out_run = made->run;
	if (made->changes.effect >= FW_EFFECT_FRAGMENT)
		code = await(apply, made->run);
	fw_message_free(made);
	return code;
}

static int bring(struct apply *apply)
{
	struct fw_message *shown = NULL;
	int code = pack(apply);
	uint64_t run;

	if (code == CTL_OK)
		code = ctl_driver_open(&apply->driver);
	if (code == CTL_OK)
		code = ask(apply, true, &shown);
	if (code != CTL_OK)
		return code;
	run = shown->run;
	if (!apply->json)
		ctl_service_print_changes(&shown->changes);
	if (!apply->only_shows)
		code = change(apply, &shown->changes, &run);
	if (code == CTL_OK && apply->json)
		ctl_service_json_changes(apply->name, run, &shown->changes, apply->only_shows);
	else if (code == CTL_OK)
		ctl_service_print_effect(apply->name, &shown->changes, apply->only_shows);
	fw_message_free(shown);
	return code;
}

/* NAME, then what names the graph. */
static int read_operands(struct apply *apply, const char *program,
			 const struct fragi_texts *operands, char **args, int arg_count)
{
	struct fragi_texts rest = *operands;
	int code;

	if (operands->count == 0)
		return ctl_fail(CTL_USAGE, "give the name of an application and its changed graph; "
					   "see `fragctl apply --help`");
	apply->name = operands->items[0];
	code = ctl_check_name(apply->name, program);
	rest.items++;
	rest.count--;
	return code == CTL_OK ? ctl_graph_take(&apply->graph, program, &rest, args, arg_count)
			      : code;
}

int ctl_apply(int argc, char **argv)
{
	struct apply apply = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {
		CTL_GRAPH_FLAGS(apply.graph),
		{.name = "dry-run",
		 .no_env = true,
		 .help = "only shows what would change",
		 .on = &apply.only_shows},
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(apply.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl apply",
		.usage = "NAME APP.yaml | NAME -e LINE [flags] [-- ARGS]",
		.headline =
			"Brings a changed graph to an application that runs, and starts again only what must.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
		.rest = "arguments of the application",
	};
	bool help = false;
	int rest, code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, &rest, &code))
		goto out;
	code = ctl_output(output, &apply.json)
		       ? read_operands(&apply, flags.program, &operands, argv + rest, argc - rest)
		       : CTL_USAGE;
	if (code == CTL_OK)
		code = ctl_graph_read(&apply.graph, &help);
	if (code == CTL_OK && !help)
		code = bring(&apply);
out:
	ctl_driver_close(&apply.driver);
	fragi_free((void *)(uintptr_t)apply.command.source);
	fragi_texts_fini(&operands);
	ctl_graph_fini(&apply.graph);
	return code;
}
