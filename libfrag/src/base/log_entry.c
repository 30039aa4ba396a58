// SPDX-License-Identifier: Apache-2.0
#include <base/log_entry.h>

#include <ctype.h>
#include <string.h>

#define TIME_BYTES 25 /* "2026-11-22T20:24:04.159Z " */
#define LEVEL_BYTES 6 /* "error " */

/* The name that rest begins with; rest then stands behind it. */
static struct fragi_log_span take_name(struct fragi_log_span *rest)
{
	struct fragi_log_span name = {.text = rest->text};

	while (name.length < rest->length &&
	       (isalnum((unsigned char)name.text[name.length]) || name.text[name.length] == '_' ||
		name.text[name.length] == '-'))
		name.length++;
	rest->text += name.length;
	rest->length -= name.length;
	return name;
}

static bool take(struct fragi_log_span *rest, char wanted)
{
	if (rest->length == 0 || rest->text[0] != wanted)
		return false;
	rest->text++;
	rest->length--;
	return true;
}

/* What follows the subject, or the topic. */
static void end_head(struct fragi_log_span rest, struct fragi_log_entry *entry)
{
	(void)take(&rest, ' ');
	entry->text = rest;
}

/* "application", "application/fragment", "application/fragment.operator", "fragment.operator" */
static void parse_subject(struct fragi_log_span rest, struct fragi_log_entry *entry)
{
	struct fragi_log_span first = take_name(&rest), second, third = {0};

	if (take(&rest, '/')) {
		second = take_name(&rest);
		if (take(&rest, '.'))
			third = take_name(&rest);
		if (take(&rest, ':')) {
			entry->application = first;
			entry->fragment = second;
			entry->op = third;
			end_head(rest, entry);
		}
	} else if (take(&rest, '.')) {
		second = take_name(&rest);
		if (take(&rest, ':')) {
			entry->fragment = first;
			entry->op = second;
			end_head(rest, entry);
		}
	} else if (take(&rest, ':') && entry->topic.length != 0) {
		entry->application = first;
		end_head(rest, entry);
	}
}

static bool has_head(struct fragi_log_span line)
{
	return line.length > TIME_BYTES + LEVEL_BYTES && line.text[10] == 'T' &&
	       line.text[TIME_BYTES - 2] == 'Z' && line.text[TIME_BYTES - 1] == ' ';
}

void fragi_log_entry_read(const char *line, size_t size, struct fragi_log_entry *out_entry)
{
	struct fragi_log_span rest = {line, size};

	*out_entry =
		(struct fragi_log_entry){.level = FRAGI_LOG_INFO, .message = rest, .text = rest};
	if (has_head(rest)) {
		for (int level = FRAGI_LOG_TRACE; level < FRAGI_LOG_OFF; level++) {
			const char *name = fragi_log_level_name(level);

			if (strncmp(line + TIME_BYTES, name, strlen(name)) == 0)
				out_entry->level = level;
		}
		rest.text += TIME_BYTES + LEVEL_BYTES;
		rest.length -= TIME_BYTES + LEVEL_BYTES;
		out_entry->message = out_entry->text = rest;
		out_entry->topic = take_name(&rest);
		if (take(&rest, ':'))
			end_head(rest, out_entry);
		if (!take(&rest, ' ') || out_entry->text.text != out_entry->message.text)
			return;
	}
	parse_subject(rest, out_entry);
}
