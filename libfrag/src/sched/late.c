// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "deadline"
#include <stdio.h>
#include <string.h>

#include <base/log.h>
#include <base/sentence.h>
#include <base/units.h>
#include <sched/path_deadline.h>
#include <sched/trace.h>

/* Messages that were late on a path: which part of their time is to blame, counted and logged. */

/* Of a path, in a second. What is left out is counted. */
#define LINES_MAX 10

void fragi_path_name(const struct fragi_path_deadline *deadline, char *out, size_t size)
{
	out[0] = '\0';
	for (uint32_t i = 0; i < deadline->count; i++)
		fragi_sentence_add(out, size, "%s%s", i > 0 ? " -> " : "", deadline->names[i]);
}

const char *fragi_path_part(const struct fragi_path_deadline *deadline,
			    const struct fragi_trail_places *places,
			    const struct fragi_blame_part *part, char *out, size_t size)
{
	const enum fragi_blame_cause cause = (enum fragi_blame_cause)part->cause;
	const uint32_t last = deadline->count - 1, at = part->at > last ? last : part->at;
	const char *worker = places != NULL ? fragi_trail_where(places, (uint16_t)at) : NULL;

	if (cause == FRAGI_BLAME_CLOCK)
		snprintf(out, size, "%s", fragi_blame_text(cause));
	else if (fragi_blame_is_edge(cause) && at == part->at && at > 0)
		fragi_sentence(out, size, "%s -> %s %s", deadline->names[at - 1],
			       deadline->names[at], fragi_blame_text(cause));
	else /* also of room in a flow that leaves the last operator */
		fragi_sentence(out, size, "%s%s%s %s", deadline->names[at],
			       worker != NULL ? " on worker " : "", worker != NULL ? worker : "",
			       fragi_blame_text(cause));
	return out;
}

/* Whether a line may be written now. */
static bool may_log(struct fragi_late_log *log)
{
	const int64_t now_ns = fragi_now_ns();

	if (log->since_ns == 0 || now_ns - log->since_ns >= 1000000000) {
		log->since_ns = now_ns;
		log->lines = 0;
	}
	if (log->lines == LINES_MAX) {
		log->left_out++;
		return false;
	}
	log->lines++;
	return true;
}

static void add_part(char *out, size_t size, const char *what, uint64_t ns)
{
	char text[32];

	fragi_sentence_add(out, size, "%s%s %s", out[0] != '\0' ? ", " : "", what,
			   fragi_format_duration((int64_t)ns, text, sizeof(text)));
}

static void log_late(struct fragi_path_deadline *deadline, const struct fragi_blame_parts *parts,
		     const struct fragi_blame_part *blamed, uint64_t took_ns,
		     const struct fragi_trail_entry *entry)
{
	const struct fragi_trail_places *places = &entry->places;
	char path[600], place[600], took[32], budget[32], error[48] = "", left_out[64] = "";
	char all[1200] = "";
	uint64_t shown_ns = 0;

	fragi_path_name(deadline, path, sizeof(path));
	fragi_format_duration((int64_t)took_ns, took, sizeof(took));
	fragi_format_duration(deadline->budget_ns, budget, sizeof(budget));
	for (uint32_t i = 0; i < parts->count; i++) {
		const struct fragi_blame_part *part = &parts->parts[i];

		if (part->ns < took_ns / 100)
			continue;
		fragi_path_part(deadline, places, part, place, sizeof(place));
		add_part(all, sizeof(all), place, part->ns);
		shown_ns += part->ns;
	}
	if (took_ns > shown_ns)
		add_part(all, sizeof(all), "rest", took_ns - shown_ns);
	if (entry->error_ns != 0) {
		memcpy(error, " +/- ", 6);
		fragi_format_duration((int64_t)entry->error_ns, error + 5, sizeof(error) - 5);
	}
	if (deadline->log.left_out > 0)
		snprintf(left_out, sizeof(left_out),
			 "; %llu late messages before it are not logged",
			 (unsigned long long)deadline->log.left_out);
	deadline->log.left_out = 0;
	log_warn(NULL, "%s: a message took %s%s of %s: %s (%s)%s", path, took, error, budget,
		 fragi_path_part(deadline, places, blamed, place, sizeof(place)), all, left_out);
}

void fragi_path_blame(struct fragi_exec *exec, struct fragi_path_deadline *deadline,
		      const struct fragi_blame_parts *parts, uint64_t took_ns,
		      const struct fragi_trail_entry *entry)
{
	const struct fragi_blame_part blamed = fragi_blame(
		parts, &deadline->usual, took_ns - (uint64_t)deadline->budget_ns, entry->error_ns);
	const uint32_t last = deadline->count - 1, at = blamed.at > last ? last : blamed.at,
		       place = blamed.at > last ? deadline->count : at;

	fragi_count(&exec->row->late_queue + blamed.cause, 1);
	deadline->blamed[place * FRAGI_BLAME_CAUSES + blamed.cause]++;
	if (deadline->rows[place] != NULL && blamed.cause != FRAGI_BLAME_CLOCK)
		fragi_count(&deadline->rows[place]->late[blamed.cause], 1);
	fragi_exec_trace_late(
		exec,
		deadline->ops[at] != NULL &&
				!fragi_blame_is_edge((enum fragi_blame_cause)blamed.cause)
			? deadline->ops[at]->exec
			: NULL,
		blamed.cause, took_ns);
	if (may_log(&deadline->log))
		log_late(deadline, parts, &blamed, took_ns, entry);
}
