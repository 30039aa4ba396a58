// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <fragctl/filter.h>
#include <fragctl/redact.h>
#include <fragctl/service.h>
#include <fragctl/top_window.h>

/*
 * `fragctl snapshot` writes what a driver knows into one file, for those who help: what runs and
 * where, where the time goes, the root cause, how runs ended, events and lines. No payload, no
 * graph and no environment are in it, and what looks like a secret is left out (redact.h). It is a
 * tar of texts: of each document as fragctl prints it with --output json.
 */
#define SUMMARIES_MAX 20

struct snapshot {
	struct ctl_driver driver;
	const char *name; /* NULL: all applications */
	const char *path;
	bool no_wait;
	int64_t since_ns;
	char folder[64]; /* in the tar */
	time_t now;
	FILE *out;
	char *text; /* of the document that is being written */
	size_t size;
};

/* --- the tar --- */

struct tar_header { /* POSIX ustar */
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155];
	char rest[12];
};
_Static_assert(sizeof(struct tar_header) == 512, "a block of a tar");

static void put_file(const struct snapshot *snapshot, const char *name, const char *text,
		     size_t size)
{
	static const char zeros[512];
	struct tar_header header = {.mode = "0000600", .uid = "0000000", .gid = "0000000"};
	unsigned int sum = 0;

	snprintf(header.prefix, sizeof(header.prefix), "%s", snapshot->folder);
	snprintf(header.name, sizeof(header.name), "%.99s", name);
	snprintf(header.size, sizeof(header.size), "%011zo", size);
	snprintf(header.mtime, sizeof(header.mtime), "%011llo", (unsigned long long)snapshot->now);
	memset(header.checksum, ' ', sizeof(header.checksum));
	header.type = '0';
	memcpy(header.magic, "ustar", 6);
	memcpy(header.version, "00", 2);
	for (size_t i = 0; i < sizeof(header); i++)
		sum += ((const unsigned char *)&header)[i];
	snprintf(header.checksum, sizeof(header.checksum), "%06o", sum);
	fwrite(&header, 1, sizeof(header), snapshot->out);
	fwrite(text, 1, size, snapshot->out);
	fwrite(zeros, 1, (512 - size % 512) % 512, snapshot->out);
}

/* --- documents --- */

/* A document is written to what this returns; NULL: there is no memory. */
static FILE *begin(struct snapshot *snapshot)
{
	snapshot->text = NULL;
	return open_memstream(&snapshot->text, &snapshot->size);
}

static int end(struct snapshot *snapshot, FILE *document, const char *format, ...)
	FRAG_PRINTF(3, 4);
static int end(struct snapshot *snapshot, FILE *document, const char *format, ...)
{
	char name[200], *shown = NULL;
	size_t size = 0;
	FILE *out;
	va_list args;
	int code = CTL_OK;

	if (document == NULL || fclose(document) != 0) {
		free(snapshot->text);
		return ctl_fail(CTL_FAILED, "out of memory");
	}
	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	out = open_memstream(&shown, &size);
	frag_hide_credentials(snapshot->text, 0);
	if (out != NULL)
		ctl_redact(snapshot->text, out);
	if (out == NULL || fclose(out) != 0)
		code = ctl_fail(CTL_FAILED, "out of memory");
	else
		put_file(snapshot, name, shown, size);
	free(shown);
	free(snapshot->text);
	return code;
}

static int put_readme(struct snapshot *snapshot)
{
	FILE *out = begin(snapshot);
	char when[40];

	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime(&snapshot->now));
	if (out != NULL)
		fprintf(out,
			"A snapshot of frag by fragctl %s at %s, of the driver %s at %s.\n\n"
			"applications.json  what runs, where, and how runs ended (fragctl list)\n"
			"workers.json       the workers (fragctl workers)\n"
			"top.json           where the time goes, and the root cause (fragctl top)\n"
			"summary-NAME.json  how the last run of NAME ended (fragctl status)\n"
			"events.jsonl       what happened, and who asked for it (fragctl events)\n"
			"logs-NAME.jsonl    what NAME and its operators have written (fragctl logs)\n\n"
			"Names ending in _ns are nanoseconds, in _bytes bytes; unix_ns is the driver's\n"
			"CLOCK_REALTIME. \"***\" stands for what looked like a secret.\n",
			FRAG_VERSION, when, snapshot->driver.version, snapshot->driver.where);
	return end(snapshot, out, "README.txt");
}

static bool is_wanted(const struct snapshot *snapshot, const char *name)
{
	return snapshot->name == NULL || strcmp(snapshot->name, name) == 0;
}

static int put_state(struct snapshot *snapshot, const struct fw_reply *state)
{
	FILE *out = begin(snapshot);
	int code;

	if (out != NULL)
		ctl_service_json_applications(state, snapshot->name, out);
	code = end(snapshot, out, "applications.json");
	if (code != CTL_OK)
		return code;
	out = begin(snapshot);
	if (out != NULL)
		ctl_service_json_workers(state, out);
	return end(snapshot, out, "workers.json");
}

static int put_top(struct snapshot *snapshot)
{
	struct ctl_top_window window = {0};
	struct ctl_top view = {.op = FRAGI_LOOK_NONE};
	int code = snapshot->no_wait
			   ? ctl_top_window_unmeasured(&snapshot->driver, snapshot->name, &window)
			   : ctl_top_window_next(&snapshot->driver, snapshot->name, 0, true, true,
						 &window);
	FILE *out;

	if (code != CTL_OK)
		return code;
	view.apps = window.apps;
	view.app_count = window.count;
	out = begin(snapshot);
	if (out != NULL)
		ctl_top_print_json(&view, out);
	code = end(snapshot, out, "top.json");
	ctl_top_window_free(&window);
	return code;
}

static int put_events(struct snapshot *snapshot)
{
	struct fw_message *reply;
	uint64_t last = 0;
	uint32_t count = 1;
	FILE *out = begin(snapshot);
	int code = CTL_OK;

	while (out != NULL && code == CTL_OK && count > 0) {
		struct fw_message watch = {.kind = FW_WATCH, .watch.after = last};

		code = ctl_driver_ask(&snapshot->driver, &watch, &reply);
		if (code != CTL_OK)
			break;
		count = reply->kind == FW_EVENTS ? reply->events.count : 0;
		for (uint32_t i = 0; i < count; i++) {
			const struct fw_notice *event = &reply->events.rows[i];

			last = event->number;
			if (event->unix_ns >= snapshot->since_ns &&
			    (event->application[0] == '\0' ||
			     is_wanted(snapshot, event->application)))
				ctl_service_json_notice(event, out);
		}
		fw_message_free(reply);
	}
	return end(snapshot, out, "events.jsonl") == CTL_OK ? code : CTL_FAILED;
}

/* An application may have no lines left, or be forgotten meanwhile: then there are none. */
static int put_logs(struct snapshot *snapshot, const char *name)
{
	struct fw_message *reply;
	uint64_t last = 0;
	uint32_t count = 1;
	FILE *out = begin(snapshot);
	int code = CTL_OK;

	while (out != NULL && code == CTL_OK && count > 0) {
		struct fw_message watch = {.kind = FW_WATCH_LOGS};

		watch.watch_logs = (struct fw_watch_logs){
			.name = name, .fragment = "", .op = "", .after = last};
		code = ctl_driver_ask(&snapshot->driver, &watch, &reply);
		if (code != CTL_OK)
			break;
		count = reply->kind == FW_LOGS ? reply->logs.count : 0;
		last = reply->kind == FW_LOGS ? reply->logs.last : last;
		for (uint32_t i = 0; i < count; i++)
			if (reply->logs.rows[i].unix_ns >= snapshot->since_ns)
				ctl_service_json_line(&reply->logs.rows[i], out);
		fw_message_free(reply);
	}
	return end(snapshot, out, "logs-%s.jsonl", name) == CTL_OK ? code : CTL_FAILED;
}

static int put_summary(struct snapshot *snapshot, const struct fw_ended_row *ended)
{
	struct fw_message await = {.kind = FW_AWAIT, .run = ended->run, .await.until = FW_ENDED};
	struct fw_message *reply;
	FILE *out;
	int code = ctl_driver_ask(&snapshot->driver, &await, &reply);

	if (code != CTL_OK)
		return code;
	if (reply->kind == FW_OUTCOME) { /* else it is forgotten */
		out = begin(snapshot);
		if (out != NULL)
			(void)fragi_summary_print_json(&reply->outcome.summary, out);
		code = end(snapshot, out, "summary-%s.json", ended->name);
	}
	fw_message_free(reply);
	return code;
}

/* Whether no later run of that name is among the rows. */
static bool is_last_run(const struct fw_reply *state, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (strcmp(state->ended[i].name, state->ended[index].name) == 0)
			return false;
	return true;
}

static bool runs(const struct fw_reply *state, const char *name)
{
	for (uint32_t i = 0; i < state->application_count; i++)
		if (strcmp(state->applications[i].name, name) == 0)
			return true;
	return false;
}

static int put_applications(struct snapshot *snapshot, const struct fw_reply *state)
{
	int code = CTL_OK, left = SUMMARIES_MAX;

	for (uint32_t i = 0; code == CTL_OK && i < state->application_count; i++)
		if (is_wanted(snapshot, state->applications[i].name))
			code = put_logs(snapshot, state->applications[i].name);
	for (uint32_t i = 0; code == CTL_OK && left > 0 && i < state->ended_count; i++) {
		const struct fw_ended_row *ended = &state->ended[i];

		if (!is_wanted(snapshot, ended->name) || !is_last_run(state, i))
			continue;
		left--;
		code = put_summary(snapshot, ended);
		if (code == CTL_OK && !runs(state, ended->name))
			code = put_logs(snapshot, ended->name);
	}
	return code;
}

static int put_all(struct snapshot *snapshot, const struct fw_reply *state)
{
	int code = put_readme(snapshot);

	if (code == CTL_OK)
		code = put_state(snapshot, state);
	if (code == CTL_OK && (snapshot->name == NULL || runs(state, snapshot->name)))
		code = put_top(snapshot);
	if (code == CTL_OK)
		code = put_events(snapshot);
	return code == CTL_OK ? put_applications(snapshot, state) : code;
}

/* --- the file --- */

static int open_file(struct snapshot *snapshot)
{
	bool is_stdout = snapshot->path != NULL && strcmp(snapshot->path, "-") == 0;
	char own[80];
	const char *path = snapshot->path != NULL ? snapshot->path : own;
	int fd;

	strftime(snapshot->folder, sizeof(snapshot->folder), "frag-snapshot-%Y%m%dT%H%M%SZ",
		 gmtime(&snapshot->now));
	snprintf(own, sizeof(own), "%s.tar", snapshot->folder);
	fd = is_stdout ? dup(STDOUT_FILENO)
		       : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	snapshot->out = fd >= 0 ? fdopen(fd, "wb") : NULL;
	if (snapshot->out == NULL)
		return ctl_fail(CTL_FAILED, "%s cannot be written: %s", path, strerror(errno));
	if (!is_stdout)
		printf("%s\n", path);
	return CTL_OK;
}

static int close_file(struct snapshot *snapshot)
{
	static const char zeros[1024];

	fwrite(zeros, 1, sizeof(zeros), snapshot->out);
	if ((ferror(snapshot->out) | fclose(snapshot->out)) != 0)
		return ctl_fail(CTL_FAILED, "the snapshot could not be written: %s",
				strerror(errno));
	return CTL_OK;
}

static int take(struct snapshot *snapshot)
{
	struct fw_message *state;
	int code = ctl_driver_open(&snapshot->driver);

	snapshot->now = time(NULL);
	if (code == CTL_OK)
		code = ctl_service_state(&snapshot->driver, &state);
	if (code != CTL_OK)
		return code;
	code = open_file(snapshot);
	if (code == CTL_OK) {
		code = put_all(snapshot, &state->reply);
		code = close_file(snapshot) == CTL_OK ? code : CTL_FAILED;
	}
	fw_message_free(state);
	return code;
}

int ctl_snapshot(int argc, char **argv)
{
	struct snapshot snapshot = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	struct ctl_filter filter = {.since_text = "1h"};
	const struct fragi_flag table[] = {
		{.name = "file",
		 .letter = 'f',
		 .value = "FILE|-",
		 .no_env = true,
		 .help = "the tar that is written, and must not be there; default frag-snapshot-TIME.tar",
		 .text = &snapshot.path},
		CTL_SINCE_FLAG(filter),
		CTL_NO_WAIT_FLAG(snapshot.no_wait),
		CTL_DRIVER_FLAGS(snapshot.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl snapshot",
		.usage = "[NAME] [flags]",
		.headline =
			"Writes what a driver knows into one file for those who help: state, root cause, events, lines; no payload, and nothing that looks like a secret.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		code = ctl_one_name(&operands, flags.program, true, &snapshot.name);
		if (code == CTL_OK)
			code = ctl_filter_read(&filter);
		snapshot.since_ns = filter.since_ns;
		if (code == CTL_OK)
			code = take(&snapshot);
	}
	ctl_driver_close(&snapshot.driver);
	fragi_texts_fini(&operands);
	return code;
}
