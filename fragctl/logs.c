// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <fragctl/filter.h>
#include <fragctl/service.h>

/*
 * `fragctl logs NAME[/FRAGMENT[/OPERATOR]]` prints what an application's hosts and operators have
 * written, and what the driver has logged about it, as far as the driver remembers: a line a line;
 * with --output json each line is a document. --follow goes on with what comes.
 */
struct logs {
	struct ctl_driver driver;
	bool json, goes_on;
	struct ctl_filter filter;
	struct fw_watch_logs watch;
};

/* Lines of an application have numbers without gaps; those of a part of it have them. */
static void complain_of_gap(const struct logs *logs, const struct fw_logs *lines)
{
	uint64_t after = logs->watch.after;

	bool follows = after > 0 && lines->count > 0 && lines->rows[0].number > after;
	uint64_t missing = follows ? lines->rows[0].number - after - 1 : 0;

	if (logs->watch.fragment[0] == '\0' && missing > 0)
		ctl_complain("%" PRIu64 " line%s missing: the driver keeps the last ones only",
			     missing, missing == 1 ? " is" : "s are");
}

static void print(const struct logs *logs, const struct fw_logs *lines)
{
	complain_of_gap(logs, lines);
	for (uint32_t i = 0; i < lines->count; i++) {
		if (!ctl_filter_line(&logs->filter, &lines->rows[i]))
			continue;
		if (logs->json)
			ctl_service_json_line(&lines->rows[i], stdout);
		else
			ctl_service_print_line(&lines->rows[i]);
	}
	ctl_check_stdout();
}

/* Returns CTL_OK, or the exit code of a refusal, complained. */
static int take(struct logs *logs, const struct fw_message *message)
{
	if (message->kind == FW_ANSWER)
		return ctl_service_show_failure(&message->answer.failure, logs->json);
	if (message->kind != FW_LOGS)
		return CTL_OK;
	print(logs, &message->logs);
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

/* "f1, f2" has "f2" */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
		if ((at == list || at[-1] == ' ') && (at[length] == '\0' || at[length] == ','))
			return true;
	return false;
}

/* An application that runs has the fragments that its hosts run, and those that wait. */
static int check_fragment(struct logs *logs)
{
	struct fw_message *reply;
	int code = ctl_service_state(&logs->driver, &reply);

	if (code != CTL_OK)
		return code;
	for (uint32_t i = 0; i < reply->reply.application_count && reply->reply.more == 0; i++) {
		const struct fw_application_row *app = &reply->reply.applications[i];
		bool has = app->host_count == 0 || has_word(app->missing, logs->watch.fragment);
		char names[CTL_NAMES_SIZE];

		if (strcmp(app->name, logs->watch.name) != 0)
			continue;
		for (uint32_t h = 0; h < app->host_count && !has; h++)
			has = has_word(app->hosts[h].fragments, logs->watch.fragment);
		if (!has)
			code = ctl_fail(CTL_USAGE,
					"%s has no fragment %s; `fragctl status %s` shows them: %s",
					app->name, logs->watch.fragment, app->name,
					ctl_service_names(app->hosts[0].fragments, names));
	}
	fw_message_free(reply);
	return code;
}

/* Asks until the driver has told all that it keeps. */
static int catch_up(struct logs *logs)
{
	uint32_t count = 1;
	int code = CTL_OK;

	if (logs->watch.after == 0 && logs->watch.fragment[0] != '\0')
		code = check_fragment(logs);
	while (code == CTL_OK && count > 0)
		code = ask(logs, false, &count);
	return code;
}

/* Returns when the driver is lost, or the exit code of a refusal, complained. */
static int receive(struct logs *logs)
{
	struct fw_message *message;
	uint32_t count;
	int code = catch_up(logs);

	if (code == CTL_OK)
		code = ask(logs, true, &count);
	while (code == CTL_OK) {
		code = ctl_driver_next(&logs->driver, &message);
		if (code != CTL_OK)
			break;
		code = take(logs, message);
		fw_message_free(message);
	}
	return code;
}

/*
 * The driver ends the connection of a client that was paused, also while it asks for the lines that
 * are kept: the client goes on with the next line.
 */
static int follow(struct logs *logs)
{
	int code;

	logs->driver.follows = true;
	for (;;) {
		code = receive(logs);
		if (logs->driver.connection != NULL)
			return code;
		code = ctl_driver_reopen(&logs->driver);
		if (code != CTL_OK)
			return code;
		ctl_complain(
			"goes on behind the last line%s",
			logs->watch.fragment[0] == '\0'
				? ""
				: "; lines are missing if the driver does not keep them any more");
	}
}

static int show(struct logs *logs)
{
	int code = ctl_driver_open_any(&logs->driver);

	if (code != CTL_OK)
		return code;
	return logs->goes_on ? follow(logs) : catch_up(logs);
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
		CTL_FILTER_FLAGS(logs.filter),
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
		code = ctl_output(output, &logs.json)
			       ? read_operand(&operands, copy, sizeof(copy), &logs.watch)
			       : CTL_USAGE;
		if (code == CTL_OK)
			code = ctl_filter_read(&logs.filter);
		if (code == CTL_OK)
			code = show(&logs);
	}
	ctl_driver_close(&logs.driver);
	fragi_texts_fini(&operands);
	return code;
}
