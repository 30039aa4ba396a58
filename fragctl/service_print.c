// SPDX-License-Identifier: Apache-2.0
#include <fragctl/fail.h>
#include <fragctl/filter.h>
#include <fragctl/service.h>
#include <fragctl/table.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <base/log.h>

#define SECOND_NS INT64_C(1000000000)

/* Applications that run. */

static const struct ctl_column host_items[] = {
	{"number", "HOST", 4, CTL_AT(CTL_U32, fw_host_row, number)},
	{"fragments", "FRAGMENTS", 30, CTL_AT(CTL_TEXT, fw_host_row, fragments)},
	{"worker", "WORKER", 15, CTL_AT(CTL_TEXT, fw_host_row, worker)},
	{"state", "STATE", 9, CTL_AT(CTL_TEXT, fw_host_row, state)},
	{"pid", "PID", 8, true, CTL_AT(CTL_I32, fw_host_row, pid)},
};
static const struct ctl_columns hosts = CTL_COLUMNS(host_items, fw_host_row);

static const struct ctl_column parameter_items[] = {
	{"name", CTL_AT(CTL_TEXT, fw_parameter_row, name)},
	{"value", CTL_AT(CTL_TEXT, fw_parameter_row, value)},
	{"who", CTL_AT(CTL_TEXT, fw_parameter_row, who)},
	{"age_ns", CTL_AT(CTL_AGE, fw_parameter_row, age_ns)},
};
static const struct ctl_columns parameters = CTL_COLUMNS(parameter_items, fw_parameter_row);

static const struct ctl_column application_items[] = {
	{"name", "NAME", 19, CTL_AT(CTL_TEXT, fw_application_row, name)},
	{"state", "STATE", 9, CTL_AT(CTL_TEXT, fw_application_row, state)},
	{"run", "RUN", 4, true, CTL_AT(CTL_U64, fw_application_row, run)},
	{"epoch", CTL_AT(CTL_U64, fw_application_row, epoch)},
	{"age_ns", "SINCE", 7, CTL_AT(CTL_AGE, fw_application_row, age_ns)},
	{NULL, "HOSTS", 5, true, CTL_AT(CTL_U32, fw_application_row, host_count)},
	{"delivered", "MESSAGES", 9, true, CTL_AT(CTL_U64, fw_application_row, delivered)},
	{"started_by", "STARTED BY", CTL_AT(CTL_OPTIONAL, fw_application_row, started_by)},
	{"waits_for", CTL_AT(CTL_OPTIONAL, fw_application_row, missing)},
	{"adopted", CTL_AT(CTL_BOOL, fw_application_row, adopted)},
	{"hosts", CTL_AT(CTL_ROWS, fw_application_row, hosts), .rows = &hosts,
	 .count_offset = offsetof(struct fw_application_row, host_count)},
	{"parameters", CTL_AT(CTL_ROWS, fw_application_row, parameters), .rows = &parameters,
	 .count_offset = offsetof(struct fw_application_row, parameter_count)},
};
static const struct ctl_columns applications = CTL_COLUMNS(application_items, fw_application_row);

/* Those that have ended: the same columns in a table. */

static const char *result_of(const void *row)
{
	enum fragi_summary_result result = ((const struct fw_ended_row *)row)->result;

	return result == FRAGI_SUMMARY_DONE      ? "done"
	       : result == FRAGI_SUMMARY_STOPPED ? "stopped"
						 : "failed";
}

static const char *nothing(const void *row)
{
	(void)row;
	return "-";
}

static void put_failure_of(const void *row, struct ctl_json *json)
{
	ctl_fail_put(json, &((const struct fw_ended_row *)row)->failure);
}

static const struct ctl_column ended_items[] = {
	{"name", "NAME", CTL_AT(CTL_TEXT, fw_ended_row, name)},
	{"result", "STATE", .kind = CTL_NAME, .name = result_of},
	{"run", "RUN", 0, true, CTL_AT(CTL_U64, fw_ended_row, run)},
	{"exit_code", CTL_AT(CTL_I32, fw_ended_row, exit_code)},
	{"age_ns", "SINCE", CTL_AT(CTL_AGE, fw_ended_row, age_ns)},
	{"duration_ns", CTL_AT(CTL_I64, fw_ended_row, duration_ns)},
	{NULL, "HOSTS", 0, true, CTL_NAME, .name = nothing},
	{NULL, "MESSAGES", 0, true, CTL_NAME, .name = nothing},
	{"started_by", "STARTED BY", CTL_AT(CTL_OPTIONAL, fw_ended_row, started_by)},
	{"wanted", CTL_AT(CTL_BOOL, fw_ended_row, wanted)},
	{"failure", .kind = CTL_ELSE, .write = put_failure_of},
};
static const struct ctl_columns ended = CTL_COLUMNS(ended_items, fw_ended_row);

static const struct ctl_column worker_items[] = {
	{"name", "NAME", 19, CTL_AT(CTL_TEXT, fw_worker_row, name)},
	{"state", "STATE", 7, CTL_AT(CTL_TEXT, fw_worker_row, state)},
	{"address", CTL_AT(CTL_TEXT, fw_worker_row, address)},
	{"waits_for", CTL_AT(CTL_OPTIONAL, fw_worker_row, waits_for)},
	{"cores", "CORES", 5, true, CTL_AT(CTL_U32, fw_worker_row, cores)},
	{"fragments", "FRAGMENTS", 9, true, CTL_AT(CTL_U32, fw_worker_row, fragments)},
	{"drained", CTL_AT(CTL_BOOL, fw_worker_row, drained)},
	{"away_ns", CTL_AT(CTL_I64, fw_worker_row, age_ns)},
	{"ran", CTL_AT(CTL_OPTIONAL, fw_worker_row, ran)},
	{"may_use", CTL_AT(CTL_OPTIONAL, fw_worker_row, limited)},
	{NULL, "ADDRESS", CTL_AT(CTL_TEXT, fw_worker_row, address)},
};
static const struct ctl_columns workers = CTL_COLUMNS(worker_items, fw_worker_row);

static bool is_running(const struct fw_reply *reply, const char *name)
{
	for (uint32_t i = 0; i < reply->application_count; i++)
		if (strcmp(reply->applications[i].name, name) == 0)
			return true;
	return false;
}

/* Whether it is the newest run of its name, and none runs. */
static bool is_newest(const struct fw_reply *reply, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++)
		if (strcmp(reply->ended[i].name, reply->ended[at].name) == 0)
			return false;
	return !is_running(reply, reply->ended[at].name);
}

static void put_more(const struct fw_reply *reply)
{
	if (reply->more != 0)
		printf("and %u rows more, which the driver has left out\n", reply->more);
}

struct listed {
	const struct fw_reply *reply;
	const struct ctl_top_window *window;
};

static void put_application(struct ctl_table *table, const struct fw_application_row *app,
			    const struct ctl_top_app *cause)
{
	char names[CTL_NAMES_SIZE];

	ctl_table_row(table, &applications, app);
	if (cause != NULL)
		ctl_table_note(table, "    root cause: %s", ctl_top_cause(cause));
	if (app->missing[0] != '\0')
		ctl_table_note(table, "    waits for %s", ctl_service_names(app->missing, names));
	if (app->adopted)
		ctl_table_note(table, "    adopted: it ran already when driverd started");
}

static void put_ended(struct ctl_table *table, const struct fw_ended_row *run)
{
	ctl_table_row(table, &ended, run);
	if (run->failure.code != FRAGI_FAILURE_NONE)
		ctl_table_note(table, "    %s", run->failure.sentence);
	if (run->wanted)
		ctl_table_note(table, "    starts again with driverd, unless `fragctl stop %s`",
			       run->name);
}

static void put_applications(struct ctl_table *table, const void *arg)
{
	const struct listed *listed = arg;
	const struct fw_reply *reply = listed->reply;

	for (uint32_t i = 0; i < reply->application_count; i++)
		put_application(table, &reply->applications[i],
				ctl_top_window_find(listed->window, reply->applications[i].name));
	for (uint32_t i = 0; i < reply->ended_count; i++)
		if (is_newest(reply, i))
			put_ended(table, &reply->ended[i]);
}

void ctl_service_print_applications(const struct fw_reply *reply,
				    const struct ctl_top_window *window)
{
	const struct listed listed = {reply, window};

	if (reply->application_count == 0 && reply->ended_count == 0) {
		printf("no application; `fragctl start APP.yaml` starts one\n");
		return;
	}
	ctl_table_print(stdout, &applications, put_applications, &listed);
	put_more(reply);
}

static void put_hosts(struct ctl_table *table, const void *arg)
{
	const struct fw_application_row *app = arg;

	for (uint32_t i = 0; i < app->host_count; i++)
		ctl_table_row(table, &hosts, &app->hosts[i]);
}

static void print_late(const struct fragi_look *look)
{
	char late[CTL_TOP_LATE_SIZE];

	for (uint32_t i = 0; i < look->operator_count; i++)
		if (ctl_top_late(&look->operators[i], late)[0] != '\0')
			printf("%s: %s\n", look->operators[i].name, late);
}

void ctl_service_print_hosts(const struct fw_application_row *app,
			     const struct ctl_top_window *window)
{
	const struct ctl_top_app *cause = ctl_top_window_find(window, app->name);
	char age[32], names[CTL_NAMES_SIZE];

	printf("%s: %s%s for %s, run %" PRIu64 ", epoch %" PRIu64 ", %" PRIu64 " messages%s%s\n",
	       app->name, app->state, app->adopted ? " (adopted)" : "",
	       ctl_age(app->age_ns, age, sizeof(age)), app->run, app->epoch, app->delivered,
	       app->started_by[0] != '\0' ? ", started by " : "", app->started_by);
	if (app->missing[0] != '\0')
		printf("waits for %s\n", ctl_service_names(app->missing, names));
	if (cause != NULL || strcmp(app->state, "running") == 0)
		printf("root cause: %s\n",
		       cause != NULL ? ctl_top_cause(cause) : "it was not measured");
	if (cause != NULL)
		print_late(&cause->look);
	if (app->host_count == 0)
		return;
	ctl_table_print(stdout, &hosts, put_hosts, app);
	for (uint32_t i = 0; i < app->parameter_count; i++) {
		const struct fw_parameter_row *parameter = &app->parameters[i];

		printf("%s%s=%s, %s ago by %s\n", i == 0 ? "set while it runs:\n    " : "    ",
		       parameter->name, parameter->value,
		       ctl_age(parameter->age_ns, age, sizeof(age)), parameter->who);
	}
}

static void put_workers(struct ctl_table *table, const void *arg)
{
	const struct fw_reply *reply = arg;
	char age[32];

	for (uint32_t i = 0; i < reply->worker_count; i++) {
		const struct fw_worker_row *worker = &reply->workers[i];

		ctl_table_row(table, &workers, worker);
		if (worker->drained)
			ctl_table_note(
				table,
				"    drained: it is given no more fragments; `fragctl drain %s --undo` ends that",
				worker->name);
		if (worker->limited[0] != '\0')
			ctl_table_note(table, "    may use %s", worker->limited);
		if (worker->waits_for[0] != '\0')
			ctl_table_note(table, "    can run nothing yet: %s", worker->waits_for);
		if (worker->age_ns != 0)
			ctl_table_note(table, "    %s %s ago%s%s", worker->state,
				       ctl_age(worker->age_ns, age, sizeof(age)),
				       worker->ran[0] != '\0' ? "; it ran " : "", worker->ran);
	}
}

void ctl_service_print_workers(const struct fw_reply *reply)
{
	if (reply->worker_count == 0) {
		printf("no worker; start workerd on a node with --address of this driver\n");
		return;
	}
	ctl_table_print(stdout, &workers, put_workers, reply);
	put_more(reply);
}

/* "2026-11-22T20:15:03.123Z" */
static const char *time_of(int64_t unix_ns, char *out, size_t size)
{
	time_t s = (time_t)(unix_ns / SECOND_NS);
	struct tm at;
	size_t used;

	gmtime_r(&s, &at);
	used = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &at);
	snprintf(out + used, size - used, ".%03dZ", (int)(unix_ns % SECOND_NS / 1000000));
	return out;
}

void ctl_service_put_notice(const struct fw_notice *event, char *out, size_t size)
{
	char at[40];

	snprintf(out, size, "%s %-13s %s%s%s%s%s%s", time_of(event->unix_ns, at, sizeof(at)),
		 fw_notice_name(event->kind), event->application,
		 event->application[0] != '\0' ? " " : "", event->text,
		 event->who[0] != '\0' ? " (" : "", event->who, event->who[0] != '\0' ? ")" : "");
}

void ctl_service_print_notice(const struct fw_notice *event)
{
	char text[FW_TEXT_MAX];

	ctl_service_put_notice(event, text, sizeof(text));
	puts(text);
}

/* The same for everybody who has written it: when it came, level, worker, what it is about. */
void ctl_service_print_line(const struct fw_line *line)
{
	char at[40];

	printf("%s %-5s %s%s%s%s%s: %s\n", time_of(line->unix_ns, at, sizeof(at)),
	       fragi_log_level_name((int)line->level),
	       line->worker[0] != '\0' ? line->worker : "driver",
	       line->fragment[0] != '\0' ? " " : "", line->fragment, line->op[0] != '\0' ? "." : "",
	       line->op, line->text);
}

void ctl_service_json_run(const char *application, uint64_t run, const char *state)
{
	struct ctl_json json = ctl_json_begin(stdout);

	ctl_json_text(&json, "application", application);
	ctl_json_unsigned(&json, "run", run);
	ctl_json_text(&json, "state", state);
	ctl_json_end(&json);
}

int ctl_service_show_start(const struct fw_message *outcome, bool json)
{
	const struct fragi_summary *summary = &outcome->outcome.summary;
	const char *name = outcome->outcome.name;

	if (outcome->outcome.reached == FW_RUNNING) {
		if (json)
			ctl_service_json_run(name, outcome->run, "running");
		else
			printf("%s: runs\n", name);
		return CTL_OK;
	}
	if (summary->failure.code != FRAGI_FAILURE_NONE)
		return ctl_service_show_failure(
			&(struct fw_failure){.code = summary->failure.code,
					     .sentence = summary->failure.sentence,
					     .op = summary->failure.op},
			json);
	if (json)
		ctl_service_json_run(name, outcome->run,
				     summary->result == FRAGI_SUMMARY_DONE ? "done" : "stopped");
	else
		printf("%s: %s\n", name,
		       summary->result == FRAGI_SUMMARY_DONE ? "done" : "stopped before it ran");
	return summary->exit_code;
}

void ctl_service_json_set(const char *application, uint64_t run, const char *text)
{
	struct ctl_json json = ctl_json_begin(stdout);
	const char *value = strchr(text, '=');
	char name[4 * FRAG_NAME_MAX];

	snprintf(name, sizeof(name), "%.*s", (int)(value - text), text);
	ctl_json_text(&json, "application", application);
	ctl_json_unsigned(&json, "run", run);
	ctl_json_text(&json, "parameter", name);
	ctl_json_text(&json, "value", value + 1);
	ctl_json_end(&json);
}

static void json_application(struct ctl_json *json, const struct fw_application_row *app,
			     const struct ctl_top_app *cause)
{
	ctl_json_open(json, NULL, '{');
	ctl_row_members(json, &applications, app);
	if (cause != NULL)
		ctl_top_json_cause(json, cause);
	else
		ctl_json_text(json, "cause", NULL);
	ctl_json_close(json, '}');
}

void ctl_service_json_causes(const struct fw_reply *reply, const char *name,
			     const struct ctl_top_window *window, FILE *out)
{
	struct ctl_json json = ctl_json_begin(out);

	ctl_json_open(&json, "applications", '[');
	for (uint32_t i = 0; i < reply->application_count; i++)
		if (name == NULL || strcmp(reply->applications[i].name, name) == 0)
			json_application(&json, &reply->applications[i],
					 ctl_top_window_find(window, reply->applications[i].name));
	ctl_json_close(&json, ']');
	ctl_json_open(&json, "ended", '[');
	for (uint32_t i = 0; i < reply->ended_count; i++)
		if (name == NULL || strcmp(reply->ended[i].name, name) == 0)
			ctl_row_json(&json, NULL, &ended, &reply->ended[i]);
	ctl_json_close(&json, ']');
	ctl_json_unsigned(&json, "left_out", reply->more);
	ctl_json_end(&json);
}

void ctl_service_json_applications(const struct fw_reply *reply, const char *name, FILE *out)
{
	const struct ctl_top_window unmeasured = {0};

	ctl_service_json_causes(reply, name, &unmeasured, out);
}

void ctl_service_json_workers(const struct fw_reply *reply, FILE *out)
{
	struct ctl_json json = ctl_json_begin(out);

	ctl_rows_json(&json, "workers", &workers, reply->workers, reply->worker_count);
	ctl_json_unsigned(&json, "left_out", reply->more);
	ctl_json_end(&json);
}

static const char *kind_of(const void *row)
{
	return fw_notice_name(((const struct fw_notice *)row)->kind);
}

static const char *level_of_notice(const void *row)
{
	return fragi_log_level_name(ctl_notice_level(row));
}

void ctl_service_json_notice(const struct fw_notice *event, FILE *out)
{
	static const struct ctl_column items[] = {
		{"number", CTL_AT(CTL_U64, fw_notice, number)},
		{"unix_ns", CTL_AT(CTL_I64, fw_notice, unix_ns)},
		{"kind", .kind = CTL_NAME, .name = kind_of},
		{"level", .kind = CTL_NAME, .name = level_of_notice},
		{"application", CTL_AT(CTL_OPTIONAL, fw_notice, application)},
		{"run", CTL_AT(CTL_U64, fw_notice, run)},
		{"who", CTL_AT(CTL_OPTIONAL, fw_notice, who)},
		{"text", CTL_AT(CTL_TEXT, fw_notice, text)},
	};
	static const struct ctl_columns columns = CTL_COLUMNS(items, fw_notice);

	ctl_json_document(&columns, event, out);
}

static const char *level_of(const void *row)
{
	return fragi_log_level_name((int)((const struct fw_line *)row)->level);
}

void ctl_service_json_line(const struct fw_line *line, FILE *out)
{
	static const struct ctl_column items[] = {
		{"number", CTL_AT(CTL_U64, fw_line, number)},
		{"unix_ns", CTL_AT(CTL_I64, fw_line, unix_ns)},
		{"level", .kind = CTL_NAME, .name = level_of},
		{"worker", CTL_AT(CTL_OPTIONAL, fw_line, worker)},
		{"fragment", CTL_AT(CTL_OPTIONAL, fw_line, fragment)},
		{"operator", CTL_AT(CTL_OPTIONAL, fw_line, op)},
		{"text", CTL_AT(CTL_TEXT, fw_line, text)},
	};
	static const struct ctl_columns columns = CTL_COLUMNS(items, fw_line);

	ctl_json_document(&columns, line, out);
}

static const char *effect_name(enum fw_effect effect)
{
	static const char *const names[] = {"none", "set", "fragment", "application"};

	return names[effect];
}

void ctl_service_print_changes(const struct fw_changes *changes)
{
	for (uint32_t i = 0; i < changes->count; i++)
		printf("    %s\n", changes->rows[i].what);
	if (changes->more != 0)
		printf("    and %u changes more\n", changes->more);
	fflush(stdout);
}

void ctl_service_print_effect(const char *name, const struct fw_changes *changes, bool only_shows)
{
	const char *will = only_shows ? "would be" : "was";

	if (changes->effect == FW_EFFECT_NONE)
		printf("%s: nothing differs that matters while it runs\n", name);
	else if (changes->effect == FW_EFFECT_SET)
		printf("%s: %s set while it runs\n", name, will);
	else if (changes->effect == FW_EFFECT_FRAGMENT)
		printf("%s: %s %s started again\n", name, changes->restarts, will);
	else
		printf("%s: the application %s stopped and started anew\n", name, will);
}

void ctl_service_json_changes(const char *name, uint64_t run, const struct fw_changes *changes,
			      bool only_shows)
{
	struct ctl_json json = ctl_json_begin(stdout);

	ctl_json_text(&json, "application", name);
	ctl_json_unsigned(&json, "run", run);
	ctl_json_bool(&json, "dry_run", only_shows);
	ctl_json_text(&json, "effect", effect_name(changes->effect));
	ctl_json_optional(&json, "restarts", changes->restarts);
	ctl_json_open(&json, "changes", '[');
	for (uint32_t i = 0; i < changes->count; i++) {
		ctl_json_open(&json, NULL, '{');
		ctl_json_text(&json, "what", changes->rows[i].what);
		ctl_json_text(&json, "effect", effect_name(changes->rows[i].effect));
		ctl_json_close(&json, '}');
	}
	ctl_json_close(&json, ']');
	ctl_json_unsigned(&json, "left_out", changes->more);
	ctl_json_end(&json);
}
