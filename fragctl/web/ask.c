// SPDX-License-Identifier: Apache-2.0
#include <fragctl/web/web.h>

#include <stdlib.h>
#include <string.h>

#include <fragctl/service.h>

/*
 * What the driver answers: events, lines, commands. Texts of a request go to the driver as they
 * are, which judges them as those of any client; only what it would close a connection for is
 * refused here. A command has one line for each of its words as body.
 */

static uint64_t number_of(struct ctl_web *web, struct ctl_http_request *request, const char *name)
{
	return strtoull(ctl_web_query(web, request, name), NULL, 10);
}

/* --- what was written --- */

static void write_events(const struct fw_message *answer, FILE *out)
{
	fputs("{\"events\": [", out);
	for (uint32_t i = 0; answer->kind == FW_EVENTS && i < answer->events.count; i++) {
		fputs(i > 0 ? "," : "", out);
		ctl_service_json_notice(&answer->events.rows[i], out);
	}
	fputs("]}\n", out);
}

void ctl_web_events(struct ctl_web *web, struct ctl_http_request *request,
		    struct ctl_http_response *out)
{
	struct fw_message question = {.kind = FW_WATCH};

	question.watch.after = number_of(web, request, "after");
	ctl_web_feed_ask(&web->feed, request, &question, write_events, out);
}

static void write_lines(const struct fw_message *answer, FILE *out)
{
	fprintf(out, "{\"last\": %llu, \"lines\": [",
		answer->kind == FW_LOGS ? (unsigned long long)answer->logs.last : 0);
	for (uint32_t i = 0; answer->kind == FW_LOGS && i < answer->logs.count; i++) {
		fputs(i > 0 ? "," : "", out);
		ctl_service_json_line(&answer->logs.rows[i], out);
	}
	fputs("]}\n", out);
}

static bool is_name(const char *text)
{
	return text[0] == '\0' || fragi_name_is_valid(text);
}

void ctl_web_logs(struct ctl_web *web, struct ctl_http_request *request,
		  struct ctl_http_response *out)
{
	struct fw_message question = {.kind = FW_WATCH_LOGS};
	struct fw_watch_logs *watch = &question.watch_logs;

	*watch = (struct fw_watch_logs){.name = ctl_web_query(web, request, "application"),
					.fragment = ctl_web_query(web, request, "fragment"),
					.op = ctl_web_query(web, request, "operator"),
					.after = number_of(web, request, "after")};
	if (!fragi_name_is_valid(watch->name) || !is_name(watch->fragment) ||
	    strlen(watch->op) > FRAG_NAME_MAX) {
		*out = ctl_web_text(400, "name an application\n");
		return;
	}
	ctl_web_feed_ask(&web->feed, request, &question, write_lines, out);
}

/* --- commands --- */

static void write_done(const struct fw_message *answer, FILE *out)
{
	fprintf(out, "{\"run\": %llu}\n", (unsigned long long)answer->run);
}

/* The body's only word. NULL, and refused: it is none */
static const char *word_of(struct ctl_http_request *request, bool is_worker,
			   struct ctl_http_response *out)
{
	const char *word = request->body;
	bool is_whole = strlen(word) == request->body_size;

	if (is_whole && (is_worker ? word[0] != '\0' && strlen(word) <= FW_WORKER_NAME_MAX
				   : fragi_name_is_valid(word)))
		return word;
	*out = ctl_web_text(400, is_worker ? "name a worker\n" : "name an application\n");
	return NULL;
}

void ctl_web_set(struct ctl_web *web, struct ctl_http_request *request,
		 struct ctl_http_response *out)
{
	const char *value = strchr(request->body, '\n');
	struct fw_message command = {.kind = FW_SET};
	char name[FRAG_NAME_MAX + 1] = "";

	if (value != NULL && value - request->body <= FRAG_NAME_MAX)
		memcpy(name, request->body, (size_t)(value - request->body));
	if (value == NULL || !fragi_name_is_valid(name) ||
	    strlen(request->body) != request->body_size || strlen(value + 1) > FW_TEXT_MAX) {
		*out = ctl_web_text(400, "name an application, then PARAMETER=VALUE\n");
		return;
	}
	command.set = (struct fw_set){name, value + 1};
	ctl_web_feed_ask(&web->feed, request, &command, write_done, out);
}

static void stop(struct ctl_web *web, struct ctl_http_request *request,
		 struct ctl_http_response *out, bool restart)
{
	struct fw_message command = {.kind = FW_STOP_APP};

	command.stop_app.name = word_of(request, false, out);
	command.stop_app.restart = restart;
	if (command.stop_app.name != NULL)
		ctl_web_feed_ask(&web->feed, request, &command, write_done, out);
}

void ctl_web_stop(struct ctl_web *web, struct ctl_http_request *request,
		  struct ctl_http_response *out)
{
	stop(web, request, out, false);
}

void ctl_web_restart(struct ctl_web *web, struct ctl_http_request *request,
		     struct ctl_http_response *out)
{
	stop(web, request, out, true);
}

static void drain(struct ctl_web *web, struct ctl_http_request *request,
		  struct ctl_http_response *out, bool undo)
{
	struct fw_message command = {.kind = FW_DRAIN};

	command.drain = (struct fw_drain){word_of(request, true, out), undo, false};
	if (command.drain.worker != NULL)
		ctl_web_feed_ask(&web->feed, request, &command, write_done, out);
}

void ctl_web_drain(struct ctl_web *web, struct ctl_http_request *request,
		   struct ctl_http_response *out)
{
	drain(web, request, out, false);
}

void ctl_web_undrain(struct ctl_web *web, struct ctl_http_request *request,
		     struct ctl_http_response *out)
{
	drain(web, request, out, true);
}
