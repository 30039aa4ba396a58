// SPDX-License-Identifier: Apache-2.0
#include <fragctl/top_opened.h>

#include <stdio.h>
#include <string.h>

#include <base/log.h>
#include <fragctl/table.h>

void ctl_top_opened_begin(struct ctl_top_opened *opened, const char *application, const char *op)
{
	*opened = (struct ctl_top_opened){0};
	snprintf(opened->application, sizeof(opened->application), "%s", application);
	snprintf(opened->op, sizeof(opened->op), "%s", op);
}

static void take_line(struct ctl_top_opened *opened, const struct fw_line *line)
{
	size_t length = strlen(line->fragment);

	if (strncmp(opened->op, line->fragment, length) != 0 || opened->op[length] != '.' ||
	    strcmp(opened->op + length + 1, line->op) != 0)
		return;
	snprintf(opened->lines[opened->line_count++ % CTL_TOP_TAIL], sizeof(opened->lines[0]),
		 "%-5s %s", fragi_log_level_name((int)line->level), line->text);
}

static void take_application(struct ctl_top_opened *opened, const struct fw_application_row *app)
{
	size_t length = strlen(opened->op);
	char age[32];

	opened->set_count = 0;
	for (uint32_t i = 0; i < app->parameter_count && opened->set_count < CTL_TOP_TAIL; i++) {
		const struct fw_parameter_row *row = &app->parameters[i];

		if (strncmp(row->name, opened->op, length) == 0 && row->name[length] == '.')
			snprintf(opened->set[opened->set_count++], sizeof(opened->set[0]),
				 "%s=%s, %s ago by %s", row->name + length + 1, row->value,
				 ctl_age(row->age_ns, age, sizeof(age)), row->who);
	}
}

void ctl_top_opened_take(struct ctl_top_opened *opened, const struct fw_message *message)
{
	if (message->kind == FW_LOGS)
		for (uint32_t i = 0; i < message->logs.count; i++)
			take_line(opened, &message->logs.rows[i]);
	if (message->kind == FW_REPLY)
		for (uint32_t i = 0; i < message->reply.application_count; i++)
			if (strcmp(message->reply.applications[i].name, opened->application) == 0)
				take_application(opened, &message->reply.applications[i]);
}

void ctl_top_opened_draw(struct ctl_top_drawing *d, const struct ctl_top_opened *opened)
{
	uint32_t first = opened->line_count > CTL_TOP_TAIL ? opened->line_count - CTL_TOP_TAIL : 0;

	if (opened->set_count > 0)
		ctl_top_put(d, CTL_TOP_HEAD, "SET WHILE IT RUNS");
	for (uint32_t i = 0; i < opened->set_count; i++)
		ctl_top_put(d, CTL_TOP_NORMAL, "  %s", opened->set[i]);
	if (opened->line_count > 0)
		ctl_top_put(d, CTL_TOP_HEAD, "LAST LINES");
	for (uint32_t i = first; i < opened->line_count; i++)
		ctl_top_put(d, CTL_TOP_NORMAL, "  %s", opened->lines[i % CTL_TOP_TAIL]);
}
