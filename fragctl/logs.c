// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <fragctl/service.h>

/*
 * `fragctl logs NAME[/FRAGMENT[/OPERATOR]]` prints what an application's hosts and operators have
 * written, and what the driver has logged about it, as far as the driver remembers: a line a line;
 * with --output json each line is a document. --follow goes on with what comes.
 */
struct logs {
	struct ctl_driver driver;
	bool json, goes_on;
	struct fw_watch_logs watch;
};

static void print(const struct fw_logs *logs, bool json)
{
	for (uint32_t i = 0; i < logs->count; i++) {
		if (json)
			ctl_service_json_line(&logs->rows[i]);
		else
			ctl_service_print_line(&logs->rows[i]);
	}
	fflush(stdout);
}

/* Returns CTL_OK, or the exit code of a refusal, complained. */
static int take(struct logs *logs, const struct fw_message *message)
{
	if (message->kind == FW_ANSWER)
		return ctl_service_show_failure(&message->answer.failure, logs->json);
	if (message->kind != FW_LOGS)
		return CTL_OK;
	print(&message->logs, logs->json);
	logs->watch.after = message->logs.last;
	return CTL_OK;
}

static int ask(struct logs *logs, bool follow, uint32_t *out_count)
{
	struct fw_message watch = {.kind = FW_WATCH_LOGS}, *reply;
	int code;

	watch.watch_logs = logs->watch;
	watch.watch_logs.follow = follow;
	code = ctl_driver_ask(&logs->driver, &watch, &reply);
	if (code != CTL_OK)
		return code;
	code = take(logs, reply);
	*out_count = reply->kind == FW_LOGS ? reply->logs.count : 0;
	fw_message_free(reply);
	return code;
}

static int show(struct logs *logs)
{
	int code = ctl_driver_open(&logs->driver);
	struct fw_message *message;
	uint32_t count = 1;

	while (code == CTL_OK && count > 0)
		code = ask(logs, false, &count);
	if (code == CTL_OK && logs->goes_on)
		code = ask(logs, true, &count);
	while (code == CTL_OK && logs->goes_on) {
		if (ferror(stdout) != 0)
			return CTL_MISSING;
		code = ctl_driver_next(&logs->driver, &message);
		if (code != CTL_OK)
			break;
		code = take(logs, message);
		fw_message_free(message);
	}
	return code;
}

/* Cuts NAME/FRAGMENT/OPERATOR into its parts. */
static int read_operand(const struct fragi_texts *operands, char *copy, size_t size,
			struct fw_watch_logs *watch)
{
	const char **parts[] = {&watch->name, &watch->fragment, &watch->op};
	char *rest = copy;

	if (operands->count != 1)
		return ctl_fail(CTL_USAGE,
				"give one NAME[/FRAGMENT[/OPERATOR]]; `fragctl list` shows "
				"the names");
	if ((size_t)snprintf(copy, size, "%s", operands->items[0]) >= size)
		return ctl_fail(CTL_USAGE, "\"%.80s...\" is too long for a name", copy);
	for (size_t i = 0; i < FRAG_COUNT_OF(parts) && rest != NULL; i++) {
		*parts[i] = rest;
		rest = strchr(rest, '/');
		if (rest != NULL)
			*rest++ = '\0';
		if (!fragi_name_is_valid(*parts[i]))
			return ctl_fail(
				CTL_USAGE,
				"\"%.200s\" is not understood; write NAME[/FRAGMENT[/OPERATOR]]",
				operands->items[0]);
	}
	if (rest != NULL)
		return ctl_fail(CTL_USAGE,
				"an operator has no parts; write NAME/FRAGMENT/OPERATOR");
	return CTL_OK;
}

int ctl_logs(int argc, char **argv)
{
	struct logs logs = {.watch = {.name = "", .fragment = "", .op = ""}};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL;
	char copy[4 * FRAG_NAME_MAX];
	const struct fragi_flag table[] = {
		{.name = "follow",
		 .letter = 'f',
		 .no_env = true,
		 .help = "goes on with what comes, until it is interrupted",
		 .on = &logs.goes_on},
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(logs.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl logs",
		.usage = "NAME[/FRAGMENT[/OPERATOR]] [flags]",
		.headline =
			"Prints what the hosts and operators of an application have written, and the driver about it.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		code = ctl_service_output(output, &logs.json)
			       ? read_operand(&operands, copy, sizeof(copy), &logs.watch)
			       : CTL_USAGE;
		if (code == CTL_OK)
			code = show(&logs);
	}
	ctl_driver_close(&logs.driver);
	fragi_texts_fini(&operands);
	return code;
}
