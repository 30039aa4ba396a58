// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/journal.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/log.h>

#define TIME_BYTES 25 /* "2026-11-22T20:24:04.159Z " */
#define LEVEL_BYTES 6 /* "error " */
#define ENTRY_MAX_BYTES 4096

const char *fragi_journal_socket = "/run/systemd/journal/socket";

struct span {
	const char *text;
	size_t length; /* 0: there is none */
};

/* What a line says of itself. */
struct entry {
	int level;
	struct span message, topic, application, fragment, op;
};

/* Asked each time: a child of a fork may have another stderr. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat at;

	if (stream == NULL || fstat(STDERR_FILENO, &at) < 0)
		return false;
	snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)at.st_dev,
		 (unsigned long long)at.st_ino);
	return strcmp(stream, own) == 0;
}

/* The name that rest begins with; rest then stands behind it. */
static struct span take_name(struct span *rest)
{
	struct span name = {.text = rest->text};

	while (name.length < rest->length &&
	       (isalnum((unsigned char)name.text[name.length]) || name.text[name.length] == '_' ||
		name.text[name.length] == '-'))
		name.length++;
	rest->text += name.length;
	rest->length -= name.length;
	return name;
}

static bool take(struct span *rest, char wanted)
{
	if (rest->length == 0 || rest->text[0] != wanted)
		return false;
	rest->text++;
	rest->length--;
	return true;
}

/* "application", "application/fragment", "application/fragment.operator", "fragment.operator" */
static void parse_subject(struct span rest, struct entry *entry)
{
	struct span first = take_name(&rest), second, third = {0};

	if (take(&rest, '/')) {
		second = take_name(&rest);
		if (take(&rest, '.'))
			third = take_name(&rest);
		if (take(&rest, ':')) {
			entry->application = first;
			entry->fragment = second;
			entry->op = third;
		}
	} else if (take(&rest, '.')) {
		second = take_name(&rest);
		if (take(&rest, ':')) {
			entry->fragment = first;
			entry->op = second;
		}
	} else if (take(&rest, ':') && entry->topic.length != 0) {
		entry->application = first;
	}
}

static bool has_head(struct span line)
{
	return line.length > TIME_BYTES + LEVEL_BYTES && line.text[10] == 'T' &&
	       line.text[TIME_BYTES - 2] == 'Z' && line.text[TIME_BYTES - 1] == ' ';
}

static void parse(struct span line, struct entry *out)
{
	struct span rest = line;

	*out = (struct entry){.level = FRAGI_LOG_INFO, .message = line};
	if (has_head(line)) {
		for (int level = FRAGI_LOG_TRACE; level < FRAGI_LOG_OFF; level++) {
			const char *name = fragi_log_level_name(level);

			if (strncmp(line.text + TIME_BYTES, name, strlen(name)) == 0)
				out->level = level;
		}
		rest.text += TIME_BYTES + LEVEL_BYTES;
		rest.length -= TIME_BYTES + LEVEL_BYTES;
		out->message = rest;
		out->topic = take_name(&rest);
		if (!take(&rest, ' '))
			return;
	}
	parse_subject(rest, out);
}

static void add(char *entry, size_t *used, const char *field, struct span value)
{
	int n;

	if (value.length == 0)
		return;
	n = snprintf(entry + *used, ENTRY_MAX_BYTES - *used, "%s=%.*s\n", field, (int)value.length,
		     value.text);
	if (n > 0 && (size_t)n < ENTRY_MAX_BYTES - *used)
		*used += (size_t)n;
}

static struct span word(const char *text)
{
	return (struct span){text, strlen(text)};
}

static bool send_entry(const char *entry, size_t size)
{
	struct sockaddr_un journald = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool sent;

	if (fd < 0)
		return false;
	snprintf(journald.sun_path, sizeof(journald.sun_path), "%s", fragi_journal_socket);
	sent = sendto(fd, entry, size, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)(const void *)&journald,
		      sizeof(journald)) == (ssize_t)size;
	close(fd);
	return sent;
}

bool fragi_journal_send(const char *line, size_t size)
{
	/* as syslog counts: 3 error, 4 warning, 6 info, 7 debug */
	static const char *const priorities[] = {"7", "7", "6", "4", "3"};
	struct span text = {line, size};
	char entry[ENTRY_MAX_BYTES];
	int saved_errno = errno;
	struct entry parsed;
	size_t used = 0;
	bool sent = false;

	while (take(&text, '\n'))
		; /* what ends a line that was cut */
	if (text.length > 0 && text.text[text.length - 1] == '\n')
		text.length--;
	if (text.length > 0 && stderr_is_journal()) {
		parse(text, &parsed);
		add(entry, &used, "MESSAGE", parsed.message);
		add(entry, &used, "PRIORITY", word(priorities[parsed.level]));
		add(entry, &used, "SYSLOG_IDENTIFIER", word(program_invocation_short_name));
		add(entry, &used, "FRAG_TOPIC", parsed.topic);
		add(entry, &used, "FRAG_APPLICATION", parsed.application);
		add(entry, &used, "FRAG_FRAGMENT", parsed.fragment);
		add(entry, &used, "FRAG_OPERATOR", parsed.op);
		sent = send_entry(entry, used);
	}
	errno = saved_errno;
	return sent;
}
