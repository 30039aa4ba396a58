// SPDX-License-Identifier: Apache-2.0
#include <fragctl/service.h>
#include <fragctl/table.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <base/json.h>
#include <base/log.h>

#define SECOND_NS INT64_C(1000000000)

/* "12 s", "3 min", "5 h", "4 d" */
static const char *short_time(int64_t ns, char *out, size_t size)
{
	int64_t s = ns / SECOND_NS;

	if (s < 100)
		snprintf(out, size, "%" PRId64 " s", s);
	else if (s < 100 * 60)
		snprintf(out, size, "%" PRId64 " min", s / 60);
	else if (s < 48 * 3600)
		snprintf(out, size, "%" PRId64 " h", s / 3600);
	else
		snprintf(out, size, "%" PRId64 " d", s / 86400);
	return out;
}

static const char *result_name(enum fragi_summary_result result)
{
	return result == FRAGI_SUMMARY_DONE      ? "done"
	       : result == FRAGI_SUMMARY_STOPPED ? "stopped"
						 : "failed";
}

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

static const char *number(uint64_t value, char *out, size_t size)
{
	snprintf(out, size, "%" PRIu64, value);
	return out;
}

static void put_application(struct ctl_table *table, const struct fw_application_row *app)
{
	char run[24], age[32], hosts[24], messages[24];

	ctl_table_row(table,
		      (const char *[]){app->name, app->state, number(app->run, run, sizeof(run)),
				       short_time(app->age_ns, age, sizeof(age)),
				       number(app->host_count, hosts, sizeof(hosts)),
				       number(app->delivered, messages, sizeof(messages)),
				       app->started_by});
	if (!table->prints)
		return;
	if (app->missing[0] != '\0')
		printf("    waits for %s\n", app->missing);
	if (app->adopted)
		printf("    adopted: it ran already when driverd started\n");
}

static void put_ended(struct ctl_table *table, const struct fw_ended_row *ended)
{
	char run[24], age[32];

	ctl_table_row(table, (const char *[]){ended->name, result_name(ended->result),
					      number(ended->run, run, sizeof(run)),
					      short_time(ended->age_ns, age, sizeof(age)), "-", "-",
					      ended->started_by});
	if (!table->prints)
		return;
	if (ended->failure.code != FRAGI_FAILURE_NONE)
		printf("    %s\n", ended->failure.sentence);
	if (ended->wanted)
		printf("    starts again with driverd, unless `fragctl stop %s`\n", ended->name);
}

static void put_applications(struct ctl_table *table, const struct fw_reply *reply)
{
	for (uint32_t i = 0; i < reply->application_count; i++)
		put_application(table, &reply->applications[i]);
	for (uint32_t i = 0; i < reply->ended_count; i++)
		if (is_newest(reply, i))
			put_ended(table, &reply->ended[i]);
}

void ctl_service_print_applications(const struct fw_reply *reply)
{
	struct ctl_table table = {
		.columns = {{"NAME", 19, false},
			    {"STATE", 9, false},
			    {"RUN", 4, true},
			    {"SINCE", 7, false},
			    {"HOSTS", 5, true},
			    {"MESSAGES", 9, true},
			    {"STARTED BY", 0, false}},
	};

	if (reply->application_count == 0 && reply->ended_count == 0) {
		printf("no application; `fragctl start APP.yaml` starts one\n");
		return;
	}
	put_applications(&table, reply);
	ctl_table_print(&table);
	put_applications(&table, reply);
	put_more(reply);
}

static void put_hosts(struct ctl_table *table, const struct fw_application_row *app)
{
	char host_number[24], pid[24];

	for (uint32_t i = 0; i < app->host_count; i++) {
		const struct fw_host_row *host = &app->hosts[i];

		snprintf(pid, sizeof(pid), "%d", host->pid);
		ctl_table_row(table, (const char *[]){
					     number(host->number, host_number, sizeof(host_number)),
					     host->fragments, host->worker, host->state, pid});
	}
}

void ctl_service_print_hosts(const struct fw_application_row *app)
{
	struct ctl_table table = {
		.columns = {{"HOST", 4, false},
			    {"FRAGMENTS", 30, false},
			    {"WORKER", 15, false},
			    {"STATE", 9, false},
			    {"PID", 8, true}},
	};
	char age[32];

	printf("%s: %s%s for %s, run %" PRIu64 ", epoch %" PRIu64 ", %" PRIu64 " messages%s%s\n",
	       app->name, app->state, app->adopted ? " (adopted)" : "",
	       short_time(app->age_ns, age, sizeof(age)), app->run, app->epoch, app->delivered,
	       app->started_by[0] != '\0' ? ", started by " : "", app->started_by);
	if (app->missing[0] != '\0')
		printf("waits for %s\n", app->missing);
	if (app->host_count == 0)
		return;
	put_hosts(&table, app);
	ctl_table_print(&table);
	put_hosts(&table, app);
	for (uint32_t i = 0; i < app->parameter_count; i++) {
		const struct fw_parameter_row *parameter = &app->parameters[i];

		printf("%s%s=%s, %s ago by %s\n", i == 0 ? "set while it runs:\n    " : "    ",
		       parameter->name, parameter->value,
		       short_time(parameter->age_ns, age, sizeof(age)), parameter->who);
	}
}

static void put_workers(struct ctl_table *table, const struct fw_reply *reply)
{
	char cores[24], fragments[24];

	for (uint32_t i = 0; i < reply->worker_count; i++) {
		const struct fw_worker_row *worker = &reply->workers[i];

		ctl_table_row(table, (const char *[]){worker->name, worker->state,
						      number(worker->cores, cores, sizeof(cores)),
						      number(worker->fragments, fragments,
							     sizeof(fragments)),
						      worker->address});
		if (table->prints && worker->drained)
			printf("    drained: it is given no more fragments; `fragctl drain %s --undo` ends that\n",
			       worker->name);
		if (table->prints && worker->waits_for[0] != '\0')
			printf("    can run nothing yet: %s\n", worker->waits_for);
	}
}

void ctl_service_print_workers(const struct fw_reply *reply)
{
	struct ctl_table table = {
		.columns = {{"NAME", 19, false},
			    {"STATE", 7, false},
			    {"CORES", 5, true},
			    {"FRAGMENTS", 9, true},
			    {"ADDRESS", 0, false}},
	};

	if (reply->worker_count == 0) {
		printf("no worker; start workerd on a node with --address of this driver\n");
		return;
	}
	put_workers(&table, reply);
	ctl_table_print(&table);
	put_workers(&table, reply);
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

void ctl_service_print_event(const struct fw_event *event)
{
	char at[40];

	printf("%s %-13s %s%s%s%s%s%s\n", time_of(event->unix_ns, at, sizeof(at)),
	       fw_event_name(event->kind), event->application,
	       event->application[0] != '\0' ? " " : "", event->text,
	       event->who[0] != '\0' ? " (" : "", event->who, event->who[0] != '\0' ? ")" : "");
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

static void member(const char *name, const char *text)
{
	printf("\"%s\": ", name);
	fragi_json_text(text, stdout);
	printf(", ");
}

/* An empty text is null. */
static void optional(const char *name, const char *text)
{
	member(name, text[0] != '\0' ? text : NULL);
}

static void put_failure(const struct fw_failure *failure)
{
	printf("\"failure\": ");
	if (failure->code == FRAGI_FAILURE_NONE) {
		printf("null");
		return;
	}
	printf("{");
	member("code", fragi_failure_name(failure->code));
	member("scope", fragi_failure_scope(failure->code));
	printf("\"sentence\": ");
	fragi_json_text(failure->sentence, stdout);
	printf("}");
}

void ctl_service_json_failure(const struct fw_failure *failure, int exit_code)
{
	printf("{");
	put_failure(failure);
	printf(", \"exit_code\": %d}\n", exit_code);
}

void ctl_service_json_run(const char *application, uint64_t run, const char *state)
{
	printf("{");
	member("application", application);
	printf("\"run\": %" PRIu64 ", \"state\": ", run);
	fragi_json_text(state, stdout);
	printf("}\n");
}

void ctl_service_json_set(const char *application, uint64_t run, const char *text)
{
	const char *value = strchr(text, '=');
	char name[4 * FRAG_NAME_MAX];

	snprintf(name, sizeof(name), "%.*s", (int)(value - text), text);
	printf("{");
	member("application", application);
	printf("\"run\": %" PRIu64 ", ", run);
	member("parameter", name);
	printf("\"value\": ");
	fragi_json_text(value + 1, stdout);
	printf("}\n");
}

static void json_application(const struct fw_application_row *app)
{
	printf("{");
	member("name", app->name);
	member("state", app->state);
	printf("\"run\": %" PRIu64 ", \"epoch\": %" PRIu64 ", \"age_ns\": %" PRId64
	       ", \"delivered\": %" PRIu64 ", ",
	       app->run, app->epoch, app->age_ns, app->delivered);
	optional("started_by", app->started_by);
	optional("waits_for", app->missing);
	printf("\"adopted\": %s, \"hosts\": [", app->adopted ? "true" : "false");
	for (uint32_t i = 0; i < app->host_count; i++) {
		const struct fw_host_row *host = &app->hosts[i];

		printf("%s{\"number\": %u, ", i > 0 ? ", " : "", host->number);
		member("fragments", host->fragments);
		member("worker", host->worker);
		member("state", host->state);
		printf("\"pid\": %d}", host->pid);
	}
	printf("], \"parameters\": [");
	for (uint32_t i = 0; i < app->parameter_count; i++) {
		const struct fw_parameter_row *parameter = &app->parameters[i];

		printf("%s{", i > 0 ? ", " : "");
		member("name", parameter->name);
		member("value", parameter->value);
		member("who", parameter->who);
		printf("\"age_ns\": %" PRId64 "}", parameter->age_ns);
	}
	printf("]}");
}

static void json_ended(const struct fw_ended_row *run)
{
	printf("{");
	member("name", run->name);
	member("result", result_name(run->result));
	printf("\"run\": %" PRIu64 ", \"exit_code\": %d, \"age_ns\": %" PRId64
	       ", \"duration_ns\": %" PRId64 ", ",
	       run->run, run->exit_code, run->age_ns, run->duration_ns);
	optional("started_by", run->started_by);
	printf("\"wanted\": %s, ", run->wanted ? "true" : "false");
	put_failure(&run->failure);
	printf("}");
}

void ctl_service_json_applications(const struct fw_reply *reply, const char *name)
{
	const char *comma = "";

	printf("{\"applications\": [");
	for (uint32_t i = 0; i < reply->application_count; i++) {
		if (name != NULL && strcmp(reply->applications[i].name, name) != 0)
			continue;
		printf("%s", comma);
		json_application(&reply->applications[i]);
		comma = ", ";
	}
	comma = "";
	printf("], \"ended\": [");
	for (uint32_t i = 0; i < reply->ended_count; i++) {
		if (name != NULL && strcmp(reply->ended[i].name, name) != 0)
			continue;
		printf("%s", comma);
		json_ended(&reply->ended[i]);
		comma = ", ";
	}
	printf("], \"left_out\": %u}\n", reply->more);
}

void ctl_service_json_workers(const struct fw_reply *reply)
{
	printf("{\"workers\": [");
	for (uint32_t i = 0; i < reply->worker_count; i++) {
		const struct fw_worker_row *worker = &reply->workers[i];

		printf("%s{", i > 0 ? ", " : "");
		member("name", worker->name);
		member("state", worker->state);
		member("address", worker->address);
		optional("waits_for", worker->waits_for);
		printf("\"cores\": %u, \"fragments\": %u, \"drained\": %s}", worker->cores,
		       worker->fragments, worker->drained ? "true" : "false");
	}
	printf("], \"left_out\": %u}\n", reply->more);
}

void ctl_service_json_event(const struct fw_event *event)
{
	printf("{\"number\": %" PRIu64 ", \"unix_ns\": %" PRId64 ", ", event->number,
	       event->unix_ns);
	member("kind", fw_event_name(event->kind));
	optional("application", event->application);
	printf("\"run\": %" PRIu64 ", ", event->run);
	optional("who", event->who);
	printf("\"text\": ");
	fragi_json_text(event->text, stdout);
	printf("}");
}

void ctl_service_json_line(const struct fw_line *line)
{
	printf("{\"number\": %" PRIu64 ", \"unix_ns\": %" PRId64 ", ", line->number, line->unix_ns);
	member("level", fragi_log_level_name((int)line->level));
	optional("worker", line->worker);
	optional("fragment", line->fragment);
	optional("operator", line->op);
	printf("\"text\": ");
	fragi_json_text(line->text, stdout);
	printf("}\n");
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
	printf("{");
	member("application", name);
	printf("\"run\": %" PRIu64 ", \"dry_run\": %s, ", run, only_shows ? "true" : "false");
	member("effect", effect_name(changes->effect));
	optional("restarts", changes->restarts);
	printf("\"changes\": [");
	for (uint32_t i = 0; i < changes->count; i++) {
		printf("%s{", i > 0 ? ", " : "");
		member("what", changes->rows[i].what);
		printf("\"effect\": ");
		fragi_json_text(effect_name(changes->rows[i].effect), stdout);
		printf("}");
	}
	printf("], \"left_out\": %u}\n", changes->more);
}
