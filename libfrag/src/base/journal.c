// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/journal.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/log.h>
#include <base/log_line.h>

#define ENTRY_MAX_BYTES 4096

const char *fragi_journal_socket = "/run/systemd/journal/socket";

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

static void add(char *entry, size_t *used, const char *field, struct fragi_span value)
{
	int n;

	if (value.length == 0)
		return;
	n = snprintf(entry + *used, ENTRY_MAX_BYTES - *used, "%s=%.*s\n", field, (int)value.length,
		     value.text);
	if (n > 0 && (size_t)n < ENTRY_MAX_BYTES - *used)
		*used += (size_t)n;
}

static struct fragi_span word(const char *text)
{
	return (struct fragi_span){text, strlen(text)};
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
	/* as syslog counts: 2 critical, 3 error, 4 warning, 6 info, 7 debug */
	static const char *const priorities[] = {"7", "7", "6", "4", "3", "2"};
	struct fragi_span text = {line, size};
	char entry[ENTRY_MAX_BYTES];
	int saved_errno = errno;
	struct fragi_log_line parsed;
	size_t used = 0;
	bool sent = false;

	while (text.length > 0 && text.text[0] == '\n') { /* what ends a line that was cut */
		text.text++;
		text.length--;
	}
	if (text.length > 0 && text.text[text.length - 1] == '\n')
		text.length--;
	if (text.length > 0 && stderr_is_journal()) {
		fragi_log_line_parse(text.text, text.length, &parsed);
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
