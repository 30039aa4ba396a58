// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/journal.h>
#define LOG_TOPIC "test"
#include <base/log.h>

static char folder[] = "/tmp/frag-journal-XXXXXX";
static char path[64];
static int journald = -1, reader = -1;

/* stderr becomes a pipe, which JOURNAL_STREAM names, and journald is a socket of the test. */
static void begin(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char stream[64];
	struct stat at;
	int ends[2];

	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	journald = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	cr_assert_eq(
		bind(journald, (const struct sockaddr *)(const void *)&address, sizeof(address)),
		0);
	fragi_journal_socket = path;
	cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
	reader = ends[0];
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	cr_assert_eq(fstat(STDERR_FILENO, &at), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)at.st_dev,
		 (unsigned long long)at.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
}
static void end(void)
{
	close(journald);
	close(reader);
	(void)unlink(path);
	(void)rmdir(folder);
}
TestSuite(journal, .init = begin, .fini = end);

static const char *take(int fd)
{
	static char text[8192];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static bool has_field(const char *entry, const char *field)
{
	char line[256];

	snprintf(line, sizeof(line), "%s\n", field);
	for (const char *at = strstr(entry, line); at != NULL; at = strstr(at + 1, line))
		if (at == entry || at[-1] == '\n')
			return true;
	return false;
}

Test(journal, a_log_line_is_an_entry_with_fields)
{
	const char *entry;

	errno = EXDEV;
	log_warn("app/f1.op", "took %d ms", 7);
	cr_expect_eq(errno, EXDEV);
	entry = take(journald);
	cr_expect(has_field(entry, "MESSAGE=test app/f1.op: took 7 ms"), "%s", entry);
	cr_expect(has_field(entry, "PRIORITY=4"), "%s", entry);
	cr_expect(has_field(entry, "FRAG_TOPIC=test"), "%s", entry);
	cr_expect(has_field(entry, "FRAG_APPLICATION=app"), "%s", entry);
	cr_expect(has_field(entry, "FRAG_FRAGMENT=f1"), "%s", entry);
	cr_expect(has_field(entry, "FRAG_OPERATOR=op"), "%s", entry);
	cr_expect_str_eq(take(reader), "", "it is in the journal once");
}

Test(journal, any_part_of_a_subject)
{
	const char *entry;

	log_error("app", "ends");
	entry = take(journald);
	cr_expect(has_field(entry, "PRIORITY=3"));
	cr_expect(has_field(entry, "FRAG_APPLICATION=app"), "%s", entry);
	cr_expect_null(strstr(entry, "FRAG_FRAGMENT"), "%s", entry);
	log_info(NULL, "listening on 127.0.0.1:57777");
	entry = take(journald);
	cr_expect(has_field(entry, "PRIORITY=6"));
	cr_expect(has_field(entry, "MESSAGE=test: listening on 127.0.0.1:57777"), "%s", entry);
	cr_expect_null(strstr(entry, "FRAG_APPLICATION"), "%s", entry);
}

Test(journal, a_critical_line_has_its_priority)
{
	const char *entry;

	log_critical("app", "ends");
	entry = take(journald);
	cr_expect(has_field(entry, "PRIORITY=2"), "%s", entry);
	cr_expect(has_field(entry, "MESSAGE=test app: ends"), "%s", entry);
}

/* What hosts print comes to their worker as lines, which it passes on. */
Test(journal, lines_of_hosts)
{
	static const char logged[] = "2026-11-22T20:24:04.159Z debug motion app/f1.op: moved\n";
	static const char printed[] = "f1.op: Hello\n", plain[] = "a text: with a colon\n";
	const char *entry;

	fragi_log_put(logged, sizeof(logged) - 1);
	entry = take(journald);
	cr_expect(has_field(entry, "MESSAGE=motion app/f1.op: moved"), "%s", entry);
	cr_expect(has_field(entry, "PRIORITY=7"), "%s", entry);
	cr_expect(has_field(entry, "FRAG_OPERATOR=op"), "%s", entry);
	cr_expect_eq(fragi_log_try(printed, sizeof(printed) - 1), sizeof(printed) - 1);
	entry = take(journald);
	cr_expect(has_field(entry, "MESSAGE=f1.op: Hello"), "%s", entry);
	cr_expect(has_field(entry, "FRAG_FRAGMENT=f1"), "%s", entry);
	cr_expect(has_field(entry, "FRAG_OPERATOR=op"), "%s", entry);
	fragi_log_put(plain, sizeof(plain) - 1);
	entry = take(journald);
	cr_expect(has_field(entry, "MESSAGE=a text: with a colon"), "%s", entry);
	cr_expect_null(strstr(entry, "FRAG_"), "%s", entry);
}

Test(journal, what_it_does_not_take_goes_to_stderr)
{
	close(journald);
	(void)unlink(path);
	log_info(NULL, "x");
	cr_expect_not_null(strstr(take(reader), " info  test: x\n"));
}

Test(journal, stderr_that_was_exchanged_is_no_journal)
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	log_info(NULL, "x");
	cr_expect_not_null(strstr(take(ends[0]), " info  test: x\n"));
	close(ends[0]);
	cr_expect_str_eq(take(journald), "");
}
