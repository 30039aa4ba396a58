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

struct ctl_top_tables {
	struct fw_message *message;
	uint32_t references; /* of windows */
};

/* A newer driver may know others, which are named by their sentence. */
static enum fragi_cause_kind kind_of(const struct fw_looked *looked)
{
	return looked->cause <= FRAGI_CAUSE_RULE ? (enum fragi_cause_kind)looked->cause
						 : FRAGI_CAUSE_OPERATOR;
}

static int put(struct ctl_top_window *window, struct ctl_top_tables *tables, int64_t unix_ns)
{
	const struct fw_looked *looked = &tables->message->looked;
	size_t count = window->count + 1;
	struct ctl_top_app *apps = reallocarray(window->apps, count, sizeof(*apps));
	struct ctl_top_tables **all;

	window->apps = apps != NULL ? apps : window->apps;
	all = reallocarray(window->tables, count, sizeof(struct ctl_top_tables *));
	window->tables = all != NULL ? all : window->tables;
	if (apps == NULL || all == NULL)
		return no_memory();
	tables->references++;
	window->tables[window->tables_count++] = tables;
	window->apps[window->count] = (struct ctl_top_app){
		.look = looked->look,
		.cause = {.kind = kind_of(looked),
			  .op = looked->op,
			  .flow = looked->flow,
			  .host = looked->host,
			  .sentence = looked->look.cause,
			  .help = looked->help,
			  .chain = looked->chain,
			  .chain_count = looked->chain_count},
	};
	window->apps[window->count++].look.unix_ns = unix_ns;
	return CTL_OK;
}

static void drop(struct ctl_top_tables *tables)
{
	if (--tables->references > 0)
		return;
	fw_message_free(tables->message);
	free(tables);
}

/* Takes the message, and holds a reference. NULL: there is no memory. */
static struct ctl_top_tables *hold(struct fw_message *message)
{
	struct ctl_top_tables *tables = malloc(sizeof(*tables));

	if (tables != NULL)
		*tables = (struct ctl_top_tables){message, 1};
	else
		fw_message_free(message);
	return tables;
}

static int add_same(struct ctl_top_window *window, const struct ctl_top_window *before,
		    const struct fw_message *same)
{
	for (uint32_t i = 0; before != NULL && i < before->tables_count; i++)
		if (before->tables[i]->message->run == same->run)
			return put(window, before->tables[i], same->looked.look.unix_ns);
	return CTL_OK;
}

int ctl_top_window_add(struct ctl_top_window *window, const struct ctl_top_window *before,
		       struct fw_message *message)
{
	struct ctl_top_tables *tables;
	int code = CTL_OK;

	if (message->looked.is_same || is_empty(message)) {
		if (message->looked.is_same)
			code = add_same(window, before, message);
		fw_message_free(message);
		return code;
	}
	tables = hold(message);
	if (tables == NULL)
		return no_memory();
	code = put(window, tables, message->looked.look.unix_ns);
	drop(tables);
	return code;
}

int ctl_top_window_next(struct ctl_driver *driver, const char *name, int64_t every_ns, bool begins,
			bool once, struct ctl_top_window *window)
{
	struct ctl_top_window coming = {0};
	struct fw_message *message;
	bool is_last = false;
	int code = CTL_OK;

	while (code == CTL_OK && !is_last) {
		code = begins ? ctl_look(driver, name, every_ns, once, &message)
			      : ctl_look_next(driver, &message);
		begins = false;
		if (code != CTL_OK)
			break;
		is_last = message->looked.is_last;
		code = ctl_top_window_add(&coming, window, message);
	}
	ctl_top_window_free(window);
	*window = coming;
	if (code != CTL_OK)
		ctl_top_window_free(window);
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
			code = ctl_top_window_add(out, NULL, message);
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
	out->tables = calloc(1, sizeof(*out->tables));
	if (out->tables == NULL || (out->tables[0] = hold(message)) == NULL) {
		if (out->tables == NULL)
			fw_message_free(message);
		ctl_top_window_free(out);
		return no_memory();
	}
	out->tables_count = 1;
	out->apps = calloc(message->reply.application_count + 1, sizeof(*out->apps));
	if (out->apps == NULL) {
		ctl_top_window_free(out);
		return no_memory();
	}
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
	for (uint32_t i = 0; i < window->tables_count; i++)
		drop(window->tables[i]);
	free(window->tables);
	free(window->apps);
	*window = (struct ctl_top_window){0};
}
