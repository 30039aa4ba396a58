// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <run/crash.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "crash"
#include <base/crash_note.h>
#include <base/log.h>
#include <base/nowait.h>
#include <sched/exec.h>

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif

static const struct {
	int number;
	const char *name;
} crashes[] = {
	{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
	{SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"},
};

static const char *program = "frag";
static int note_fd = -1;
static volatile sig_atomic_t orderly;
/* why it gives up; empty: it does not */
static char given_up[FRAGI_CRASH_CAUSE_MAX];
static atomic_flag gives_up = ATOMIC_FLAG_INIT;
static bool is_ours;  /* fragi_crash_init was called: the process is ours to watch */
static pid_t guarded; /* not what an operator forks */

/* Only what is allowed in a signal handler. */
static size_t append(char *line, size_t size, size_t used, const char *text)
{
	while (*text != '\0' && used + 1 < size)
		line[used++] = *text++;
	return used;
}

static size_t append_number(char *line, size_t size, size_t used, uint64_t number)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do
		digits[--at] = (char)('0' + number % 10);
	while ((number /= 10) != 0);
	return append(line, size, used, digits + at);
}

/* "fragment1.rx: WHAT compute, tick 17: ", or "PROGRAM: WHAT outside of any operator: " */
static size_t append_place(char *line, size_t size, const char *what)
{
	const struct fragi_current *current = fragi_current();
	size_t used = 0;

	if (current->op == NULL) {
		used = append(line, size, used, program);
		used = append(line, size, used, what);
		used = append(line, size, used,
			      current->callback == FRAGI_CALL_COMPOSE ? "in a composer"
								      : "outside of any operator");
		return append(line, size, used, ": ");
	}
	used = append(line, size, used, current->op->subject);
	used = append(line, size, used, what);
	used = append(line, size, used, "in ");
	used = append(line, size, used, fragi_call_name(current->callback));
	if (current->callback == FRAGI_CALL_COMPUTE) {
		used = append(line, size, used, ", tick ");
		used = append_number(line, size, used, current->op->exec->tick.number);
	}
	return append(line, size, used, ": ");
}

void fragi_crash_leave_note(void)
{
	const struct fragi_current *current = fragi_current();
	struct fragi_crash_note note = {.pid = getpid(), .callback = (uint32_t)current->callback};

	if (note_fd < 0)
		return;
	append(note.cause, sizeof(note.cause), 0, given_up);
	if (current->op != NULL) {
		append(note.op, sizeof(note.op), 0, current->op->subject);
		if (current->callback == FRAGI_CALL_COMPUTE)
			note.tick = current->op->exec->tick.number;
	}
	(void)fragi_write_nowait(note_fd, &note, sizeof(note));
}

static size_t append_crash(char *line, size_t size, int number)
{
	size_t used = append_place(line, size, ": crashed ");

	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		if (crashes[i].number == number)
			used = append(line, size, used, crashes[i].name);
	return used;
}

static void on_crash(int number, siginfo_t *info, void *context)
{
	char line[FRAGI_CRASH_CAUSE_MAX + 64];
	size_t used;

	(void)context;
	fragi_crash_leave_note();
	if (given_up[0] != '\0') {
		used = append(line, sizeof(line), 0, program);
		used = append(line, sizeof(line), used, ": ");
		used = append(line, sizeof(line), used, given_up);
	} else {
		used = append_crash(line, sizeof(line), number);
	}
	line[used++] = '\n';
	(void)fragi_write_within(STDERR_FILENO, line, used, FRAGI_LOG_PATIENCE_NS);
	/*
	 * The handler is gone (SA_RESETHAND): a fault comes again when it returns, what somebody
	 * sent does not.
	 */
	if (info->si_code <= 0 || number == SIGABRT)
		raise(number);
}
void fragi_crash_give_up(const char *cause)
{
	/* The first cause is kept: another thread may fail because of it. */
	if (!atomic_flag_test_and_set(&gives_up))
		append(given_up, sizeof(given_up), 0, cause);
	abort();
}

/* A sanitizer reports crashes itself, unless its options say that it shall not. */
static bool sanitizer_handles(int number)
{
	struct sigaction action;

	return SANITIZED && sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL;
}

void fragi_crash_init(const char *name, int fd)
{
	struct sigaction action;

	is_ours = true;
	program = name;
	note_fd = fd;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_crash;
	action.sa_flags = (int)(SA_SIGINFO | SA_RESETHAND | SA_NODEFER | SA_ONSTACK);
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		if (!sanitizer_handles(crashes[i].number))
			sigaction(crashes[i].number, &action, NULL);
}

/*
 * Nobody's exit handlers and destructors run while other threads use what they destroy: a host that
 * is ended by an operator's exit(3) ends with that status and nothing else.
 */
static void on_unordered_exit(int status, void *arg)
{
	char line[256];
	size_t used;

	(void)arg;
	if (orderly || getpid() != guarded)
		return;
	fragi_crash_leave_note();
	used = append_place(line, sizeof(line), ": called exit ");
	used = append(line, sizeof(line), used, "status ");
	used = append_number(line, sizeof(line), used, (uint64_t)(status & 0xff));
	line[used++] = '\n';
	(void)fragi_write_within(STDERR_FILENO, line, used, FRAGI_LOG_PATIENCE_NS);
	/* With 0 it would look like an orderly end. */
	_exit(status == 0 ? 1 : status);
}

void fragi_crash_guard_exit(void)
{
	if (!is_ours)
		return;
	guarded = getpid();
	(void)on_exit(on_unordered_exit, NULL);
}

void fragi_crash_orderly(void)
{
	orderly = 1;
}
