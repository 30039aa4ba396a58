/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DAEMON_H
#define TESTS_UNIT_DAEMON_H

#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../scratch.h"
#include "transcript.h"

#include "built.h"

/*
 * A real daemon that a test starts: what it logs and prints, what its service manager is told, how
 * many descriptors it has, and how it ends. Shown in the transcript without what differs between
 * runs.
 */
#define DAEMON_LOOKS 1500 /* of 10 ms each */

struct daemon {
	pid_t pid;
	FILE *output, *log; /* its stdout and stderr */
	int manager;        /* socket that plays systemd's; -1: there is none */
	pthread_t listener;
	FILE *heard;
	char *heard_text;
	size_t heard_size;
	pthread_mutex_t lock; /* of the next one */
	char last[4096];      /* that the manager has heard */
};

/* "3 ms", or "0.1 s"; a bound has whole seconds. */
static inline bool daemon_is_duration(const char *at, size_t length)
{
	return length > 0 &&
	       (strncmp(at + length, " us", 3) == 0 || strncmp(at + length, " ms", 3) == 0 ||
		(memchr(at, '.', length) != NULL && strncmp(at + length, " s", 2) == 0));
}

/* Without times, paths and numbers of this machine; up to a newline. */
static inline void daemon_show_text(const char *text)
{
	const char *stamp = strstr(text, "Z ");
	size_t length;
	const struct passwd *own = getpwuid(getuid());
	char user[32], name[64], minor[16];

	snprintf(minor, sizeof(minor), ".%d", FW_PROTOCOL_MINOR);
	snprintf(user, sizeof(user), " of user %u", (unsigned int)getuid());
	snprintf(name, sizeof(name), "user %s ", own != NULL ? own->pw_name : "");
	if (stamp != NULL && stamp - text == 23 && isdigit((unsigned char)text[0]))
		text = stamp + 2;
	if (strstr(text, "closed the connection of ") != NULL)
		text = strstr(text, "driver: "); /* its level: one of a second is a warning */
	for (const char *at = text; *at != '\0' && *at != '\n'; at += length) {
		size_t digits = strspn(at, "0123456789"), part = strspn(at, "0123456789.");

		length = strlen(scratch);
		if (strncmp(at, scratch, length) == 0) {
			fputs("FOLDER", transcript);
		} else if (strncmp(at, minor, strlen(minor)) == 0 &&
			   strchr(",;", at[strlen(minor)]) != NULL) {
			length = strlen(minor);
			fputs(".N", transcript);
		} else if (strncmp(at, "Connection reset by peer", 24) == 0) {
			length = 24; /* something was left unread */
			fputs("the peer closed the connection", transcript);
		} else if (strncmp(at, user, strlen(user)) == 0) {
			length = strlen(user);
			fputs(" of user N", transcript);
		} else if (strncmp(at, name, strlen(name)) == 0) {
			length = strlen(name);
			fputs("user NAME ", transcript);
		} else if (digits > 3) {
			length = digits;
			fputc('N', transcript);
		} else if (daemon_is_duration(at, part)) {
			length = part;
			fputc('N', transcript);
		} else {
			length = digits > 0 ? digits : 1;
			fprintf(transcript, "%.*s", (int)length, at);
		}
	}
}

static inline void daemon_show_line(const char *before, const char *line)
{
	fputs(before, transcript);
	daemon_show_text(line);
	fputc('\n', transcript);
}

/* Notes each line that differs from the one before. */
static inline void *daemon_hear(void *arg)
{
	struct daemon *daemon = arg;
	char text[sizeof(daemon->last)];
	ssize_t n;

	while ((n = recv(daemon->manager, text, sizeof(text) - 1, 0)) > 0) {
		text[n] = '\0';
		for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
			if (line[0] == '\0' || strcmp(line, daemon->last) == 0 ||
			    strncmp(line, "MAINPID", 7) == 0)
				continue;
			fprintf(daemon->heard, "%s\n", line);
			pthread_mutex_lock(&daemon->lock);
			snprintf(daemon->last, sizeof(daemon->last), "%s", line);
			pthread_mutex_unlock(&daemon->lock);
		}
	}
	return NULL;
}

/* Waits until the last line ends so. */
static inline void daemon_await_status(struct daemon *daemon, const char *end)
{
	bool is_there = false;

	for (int i = 0; i < DAEMON_LOOKS && !is_there; i++) {
		size_t length;

		pthread_mutex_lock(&daemon->lock);
		length = strlen(daemon->last);
		is_there = length >= strlen(end) &&
			   strcmp(daemon->last + length - strlen(end), end) == 0;
		pthread_mutex_unlock(&daemon->lock);
		if (!is_there)
			usleep(10000);
	}
	cr_assert(is_there, "the last status is not %s", end);
}

/* From now on the daemons of this process have a service manager. */
static inline void daemon_have_manager(struct daemon *daemon)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", at("manager"));
	(void)unlink(address.sun_path);
	daemon->manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(daemon->manager, (struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	pthread_mutex_init(&daemon->lock, NULL);
	daemon->last[0] = '\0';
	daemon->heard = open_memstream(&daemon->heard_text, &daemon->heard_size);
	cr_assert_eq(pthread_create(&daemon->listener, NULL, daemon_hear, daemon), 0);
}

/*
 * What a worker may do depends on who runs the test, and where; progress, what hosts write and how
 * lost ones end comes at any time between other lines.
 */
static inline bool daemon_is_of_machine(const char *line)
{
	static const char *const parts[] = {"hosts run as ",
					    "hosts share no ",
					    "f.dial: ",
					    "info  op app/",
					    "f was ended: its driver was lost",
					    "f was ended: another driver has taken",
					    "f was ended: its application has ended",
					    "STATUS=attached to ",
					    "STATUS=waiting for the driver"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(line, parts[i]) != NULL)
			return true;
	return strncmp(line, "waiting for ", 12) == 0;
}

static inline void daemon_show_heard(struct daemon *daemon)
{
	if (daemon->manager < 0)
		return;
	unsetenv("NOTIFY_SOCKET");
	shutdown(daemon->manager, SHUT_RDWR);
	pthread_join(daemon->listener, NULL);
	close(daemon->manager);
	(void)unlink(at("manager"));
	daemon->manager = -1;
	fclose(daemon->heard);
	for (char *rest = daemon->heard_text, *line; (line = strsep(&rest, "\n")) != NULL;)
		if (line[0] != '\0' && !daemon_is_of_machine(line))
			daemon_show_line("  manager hears ", line);
	free(daemon->heard_text);
}

/* flags: up to NULL. output: its stdout; NULL: a file that is shown. */
static inline void daemon_start(struct daemon *daemon, const char *program,
				const char *const *flags, const char *output, int address_fd)
{
	const char *argv[32] = {strrchr(program, '/') + 1};
	posix_spawn_file_actions_t actions;
	int count = 1;

	fprintf(transcript, "%s", argv[0]);
	for (; *flags != NULL; flags++) {
		argv[count++] = *flags;
		fputc(' ', transcript);
		daemon_show_text(*flags);
	}
	fprintf(transcript, "\n");
	daemon->output = output != NULL ? fopen(output, "w") : tmpfile();
	daemon->log = tmpfile();
	cr_assert(daemon->output != NULL && daemon->log != NULL);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fileno(daemon->output), STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fileno(daemon->log), STDERR_FILENO);
	if (address_fd >= 0)
		posix_spawn_file_actions_adddup2(&actions, address_fd, 9);
	cr_assert_eq(posix_spawn(&daemon->pid, built(program), &actions, NULL,
				 (char *const *)(uintptr_t)argv, environ),
		     0);
	posix_spawn_file_actions_destroy(&actions);
}

static inline void daemon_show_file(const char *before, FILE *file)
{
	char line[4096];

	rewind(file);
	while (fgets(line, sizeof(line), file) != NULL)
		if (!daemon_is_of_machine(line))
			daemon_show_line(before, line);
	fclose(file);
}

/* Waits for its end, though not for ever, and shows what it left. */
static inline void daemon_show_end(struct daemon *daemon)
{
	int status, looks = 0;

	while (waitpid(daemon->pid, &status, WNOHANG) == 0) {
		usleep(10000);
		if (++looks == DAEMON_LOOKS)
			kill(daemon->pid, SIGKILL);
	}
	fprintf(transcript, "ends, status %d, signal %d\n",
		WIFEXITED(status) ? WEXITSTATUS(status) : 0,
		WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	daemon_show_file("  | ", daemon->output);
	daemon_show_file("  ! ", daemon->log);
	daemon_show_heard(daemon);
}

static inline int daemon_descriptors(const struct daemon *daemon)
{
	char path[64];
	int count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)daemon->pid);
	folder = opendir(path);
	while (folder != NULL && readdir(folder) != NULL)
		count++;
	if (folder != NULL)
		closedir(folder);
	return count;
}

/* What has gone is closed within a while. */
static inline void daemon_show_descriptors(const struct daemon *daemon, int before)
{
	int now = daemon_descriptors(daemon);

	for (int i = 0; i < 400 && now != before; i++, now = daemon_descriptors(daemon))
		usleep(10000);
	fprintf(transcript, "  it has %+d descriptors\n", now - before);
}

#endif
