// SPDX-License-Identifier: Apache-2.0
#include <fragctl/top_window.h>

#include <stdlib.h>
#include <string.h>

#include <fragctl/look.h>
#include <fragctl/service.h>

static int no_memory(void)
{
	return ctl_fail(CTL_FAILED, "out of memory");
}

/* Where no application runs, a message without a name comes. */
static bool is_empty(const struct fw_message *message)
{
	const char *name = message->looked.look.application;

	return name == NULL || name[0] == '\0';
}

int ctl_top_window_add(struct ctl_top_window *window, struct fw_message *message)
{
	size_t count = window->count + 1;
	struct ctl_top_app *apps;
	struct fw_message **messages;

	if (is_empty(message)) {
		fw_message_free(message);
		return CTL_OK;
	}
	apps = reallocarray(window->apps, count, sizeof(*apps));

	window->apps = apps != NULL ? apps : window->apps;
	messages = reallocarray(window->messages, count, sizeof(struct fw_message *));
	window->messages = messages != NULL ? messages : window->messages;
	if (apps == NULL || messages == NULL) {
		fw_message_free(message);
		return no_memory();
	}
	window->messages[window->message_count++] = message;
	window->apps[window->count++] = (struct ctl_top_app){
		.look = message->looked.look,
		.cause = {.kind = (enum fragi_cause_kind)message->looked.cause,
			  .op = message->looked.op,
			  .flow = message->looked.flow,
			  .host = message->looked.host,
			  .sentence = message->looked.look.cause,
			  .help = message->looked.help,
			  .chain = message->looked.chain,
			  .chain_count = message->looked.chain_count},
	};
	return CTL_OK;
}

int ctl_top_window_next(struct ctl_driver *driver, const char *name, bool begins, bool once,
			struct ctl_top_window *out)
{
	struct fw_message *message;
	bool is_last = false;
	int code = CTL_OK;

	*out = (struct ctl_top_window){0};
	while (code == CTL_OK && !is_last) {
		code = begins ? ctl_look(driver, name, 0, once, &message)
			      : ctl_look_next(driver, &message);
		begins = false;
		if (code != CTL_OK)
			break;
		is_last = message->looked.is_last;
		code = ctl_top_window_add(out, message);
	}
	if (code != CTL_OK)
		ctl_top_window_free(out);
	return code;
}

int ctl_top_window_causes(struct ctl_driver *driver, const char *name, struct ctl_top_window *out)
{
	struct fw_message look = {.kind = FW_LOOK, .look = {name, 0, true}}, *message;
	int code = ctl_driver_ask(driver, &look, &message);

	*out = (struct ctl_top_window){0};
	while (code == CTL_OK) {
		bool is_last = message->kind != FW_LOOKED || message->looked.is_last;

		if (message->kind == FW_LOOKED)
			code = ctl_top_window_add(out, message);
		else
			fw_message_free(message);
		if (code == CTL_OK && is_last)
			return CTL_OK;
		if (code == CTL_OK)
			code = ctl_look_next(driver, &message);
	}
	ctl_top_window_free(out);
	return code;
}

const struct ctl_top_app *ctl_top_window_find(const struct ctl_top_window *window, const char *name)
{
	for (uint32_t i = 0; i < window->count; i++)
		if (strcmp(window->apps[i].look.application, name) == 0)
			return &window->apps[i];
	return NULL;
}

int ctl_top_window_unmeasured(struct ctl_driver *driver, const char *name,
			      struct ctl_top_window *out)
{
	struct fw_message *message;
	int code = ctl_service_state(driver, &message);

	*out = (struct ctl_top_window){0};
	if (code != CTL_OK)
		return code;
	out->apps = calloc(message->reply.application_count + 1, sizeof(*out->apps));
	out->messages = malloc(sizeof(struct fw_message *));
	if (out->apps == NULL || out->messages == NULL) {
		fw_message_free(message);
		ctl_top_window_free(out);
		return no_memory();
	}
	out->messages[out->message_count++] = message;
	for (uint32_t i = 0; i < message->reply.application_count; i++) {
		const struct fw_application_row *row = &message->reply.applications[i];

		if (name == NULL || strcmp(name, row->name) == 0)
			out->apps[out->count++] = (struct ctl_top_app){
				.look = {.application = row->name, .state = row->state},
				.cause = {.kind = FRAGI_CAUSE_UNMEASURED,
					  .sentence = "it was not measured (--no-wait)",
					  .op = FRAGI_LOOK_NONE,
					  .flow = FRAGI_LOOK_NONE,
					  .host = FRAGI_LOOK_NONE}};
	}
	return CTL_OK;
}

void ctl_top_window_free(struct ctl_top_window *window)
{
	for (uint32_t i = 0; i < window->message_count; i++)
		fw_message_free(window->messages[i]);
	free(window->messages);
	free(window->apps);
	*window = (struct ctl_top_window){0};
}
