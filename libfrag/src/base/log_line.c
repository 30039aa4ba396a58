// SPDX-License-Identifier: Apache-2.0
#include <base/log_line.h>

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <base/log.h>
#include <base/printable.h>

#define TIME_BYTES 25     /* "2026-11-22T20:24:04.159Z " */
#define LEVEL_MIN_BYTES 6 /* "info  " */

/* The name that rest begins with; rest then stands behind it. */
static struct fragi_span take_name(struct fragi_span *rest)
{
	struct fragi_span name = {.text = rest->text};

	while (name.length < rest->length &&
	       (isalnum((unsigned char)name.text[name.length]) || name.text[name.length] == '_' ||
		name.text[name.length] == '-'))
		name.length++;
	rest->text += name.length;
	rest->length -= name.length;
	return name;
}

static bool take(struct fragi_span *rest, char wanted)
{
	if (rest->length == 0 || rest->text[0] != wanted)
		return false;
	rest->text++;
	rest->length--;
	return true;
}

/* Whether the subject ends here: a colon and a space follow, or the line. */
static bool ends(struct fragi_span rest)
{
	return rest.length > 0 && rest.text[0] == ':' && (rest.length == 1 || rest.text[1] == ' ');
}

/*
 * "application", "application/fragment", "application/fragment.operator", "fragment.operator", and
 * what may follow: the port of data that is logged.
 */
static void parse_subject(struct fragi_span rest, struct fragi_log_line *line)
{
	struct fragi_span first = take_name(&rest), second, third = {0};

	if (take(&rest, '/')) {
		second = take_name(&rest);
		if (take(&rest, '.'))
			third = take_name(&rest);
		if (ends(rest)) {
			line->application = first;
			line->fragment = second;
			line->op = third;
		}
	} else if (take(&rest, '.')) {
		second = take_name(&rest);
		if (ends(rest) || (line->topic.length != 0 && take(&rest, '.'))) {
			line->fragment = first;
			line->op = second;
		}
	} else if (ends(rest) && line->topic.length != 0) {
		line->application = first;
	}
}

/* Returns the bytes of the level and the spaces behind it; 0: there is none. */
static size_t parse_level(struct fragi_span rest, int *out_level)
{
	for (int level = FRAGI_LOG_TRACE; level < FRAGI_LOG_OFF; level++) {
		const char *name = fragi_log_level_name(level);
		size_t length = strlen(name);

		if (rest.length <= length || strncmp(rest.text, name, length) != 0 ||
		    rest.text[length] != ' ')
			continue;
		*out_level = level;
		return length < LEVEL_MIN_BYTES ? LEVEL_MIN_BYTES : length + 1;
	}
	return 0;
}

static bool has_time(struct fragi_span line)
{
	return line.length > TIME_BYTES + LEVEL_MIN_BYTES && line.text[10] == 'T' &&
	       line.text[TIME_BYTES - 2] == 'Z' && line.text[TIME_BYTES - 1] == ' ';
}

/* What stands before ": ", if it is one word. */
static void split_subject(struct fragi_span rest, struct fragi_log_line *line)
{
	for (size_t i = 0; i + 1 < rest.length && rest.text[i] != ' '; i++) {
		if (rest.text[i] != ':' || rest.text[i + 1] != ' ')
			continue;
		line->subject = (struct fragi_span){rest.text, i};
		line->text = (struct fragi_span){rest.text + i + 2, rest.length - i - 2};
		return;
	}
}

void fragi_log_line_parse(const char *text, size_t size, struct fragi_log_line *out)
{
	struct fragi_span line = {text, size}, rest = line;
	size_t skipped = 0;

	*out = (struct fragi_log_line){.level = FRAGI_LOG_INFO, .message = line, .text = line};
	if (has_time(line)) {
		rest.text += TIME_BYTES;
		rest.length -= TIME_BYTES;
		skipped = parse_level(rest, &out->level);
	}
	if (skipped > 0 && skipped <= rest.length) {
		out->time = (struct fragi_span){text, TIME_BYTES - 1};
		rest.text += skipped;
		rest.length -= skipped;
		out->message = out->text = rest;
		out->topic = take_name(&rest);
		if (rest.length > 1 && rest.text[0] == ':' && rest.text[1] == ' ')
			out->text = (struct fragi_span){rest.text + 2, rest.length - 2};
		if (!take(&rest, ' '))
			return;
		out->text = rest;
	} else {
		rest = line;
	}
	parse_subject(rest, out);
	if (out->topic.length > 0 || out->op.length > 0)
		split_subject(rest, out);
}

/* As JSON. */

struct sink {
	char *out;
	size_t used, size;
};

static void put(struct sink *sink, const char *text, size_t length)
{
	if (length > sink->size - sink->used)
		length = sink->size - sink->used;
	memcpy(sink->out + sink->used, text, length);
	sink->used += length;
}

/* reserved: bytes to leave for what follows */
static void put_escaped(struct sink *sink, struct fragi_span value, size_t reserved)
{
	static const char cut[] = "...";

	for (size_t i = 0; i < value.length; i++) {
		/* A character of several bytes is not cut. */
		bool begins = ((unsigned char)value.text[i] & 0xc0) != 0x80;

		if (begins && sink->used + 8 + sizeof(cut) + reserved > sink->size) {
			put(sink, cut, sizeof(cut) - 1);
			return;
		}
		if (value.text[i] == '"' || value.text[i] == '\\')
			put(sink, "\\", 1);
		put(sink, &value.text[i], 1);
	}
}

static void put_member(struct sink *sink, const char *name, struct fragi_span value,
		       size_t reserved)
{
	if (value.length == 0 && strcmp(name, "text") != 0)
		return;
	put(sink, sink->used == 0 ? "{\"" : ", \"", sink->used == 0 ? 2 : 3);
	put(sink, name, strlen(name));
	put(sink, "\": \"", 4);
	put_escaped(sink, value, reserved);
	put(sink, "\"", 1);
}

static struct fragi_span word(const char *text)
{
	return (struct fragi_span){text, strlen(text)};
}

size_t fragi_log_line_to_json(const char *line, size_t size, char *out, size_t out_size)
{
	struct sink sink = {.out = out, .size = out_size};
	struct fragi_log_line parsed;
	char copy[FRAGI_LOG_JSON_MAX / 2], now[32];
	struct timespec time;
	struct tm tm;

	while (size > 0 && (*line == '\n' || *line == '\r')) {
		line++;
		size--;
	}
	if (size > 3 && memcmp(line, "\033[K", 3) == 0) {
		line += 3;
		size -= 3;
	}
	while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r'))
		size--;
	if (size >= sizeof(copy))
		size = sizeof(copy) - 1;
	memcpy(copy, line, size);
	copy[size] = '\0';
	for (size_t i = 0; i < size; i++)
		if (copy[i] == '\0')
			copy[i] = ' ';
	fragi_make_printable(copy, ' ');
	fragi_log_line_parse(copy, strlen(copy), &parsed);
	if (parsed.time.length == 0) {
		clock_gettime(CLOCK_REALTIME, &time);
		gmtime_r(&time.tv_sec, &tm);
		strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%S", &tm);
		snprintf(now + strlen(now), sizeof(now) - strlen(now), ".%03dZ",
			 (int)(time.tv_nsec / 1000000));
		parsed.time = word(now);
	}
	put_member(&sink, "time", parsed.time, 0);
	put_member(&sink, "level", word(fragi_log_level_name(parsed.level)), 0);
	put_member(&sink, "topic", parsed.topic, 128);
	put_member(&sink, "subject", parsed.subject, 2048);
	put_member(&sink, "application", parsed.application, 1024);
	put_member(&sink, "fragment", parsed.fragment, 512);
	put_member(&sink, "operator", parsed.op, 256);
	put_member(&sink, "text", parsed.text, 8);
	put(&sink, "}\n", 2);
	return sink.used;
}
