// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "ctl_shown.h"
#include "expected.h"

#include <fragctl/run.h>
#include <fragctl/trace.h>

/*
 * `fragctl run` with a driver and workers: their command lines, what it does when one of them ends,
 * and when a person sends signals, compared with a recorded text. The programs are played: execv
 * and execl of this file take the place of those of libc, and so do the clock and the user. Each
 * follows a script, of which a letter is a step; SIGTERM waits until the script takes it:
 *   A, P, L, C  the driver prints its address, in two parts, one too long, or none and closes it
 *   w           waits until all have begun; r: until the first worker has been reaped
 *   I, H, S     sends the run SIGINT, SIGHUP, SIGTSTP
 *   t, c        waits for SIGTERM, SIGCONT; p: notes whether SIGTERM is there
 *   m, M, n, N  the clock moves on by 4.999, 5, 1.999 and 2 s; z: waits until others have looked
 *   o           prints on stdout and stderr; y: the trace is under way
 *   K           is killed; .: waits for ever; a digit: exits with it
 */
enum { DRIVER, FIRST_WORKER, WEB = FIRST_WORKER + 4, TOP, TRACER, CHILDREN };

struct row {
	const char *name;
	const char *fragments;         /* NAME/HOST or NAME, separated by spaces */
	const char *scripts[CHILDREN]; /* NULL: waits for SIGTERM */
	struct ctl_run_options options;
	const char *variable; /* is set to 1 */
	rlim_t files;         /* that may be open; 0: as it is */
	uint32_t begin;       /* so many programs do */
	bool ignores_hup, has_terminal, is_user;
};

#define TWO .workers = 2
#define ONE .workers = 1

static char text_in[] = "in", text_out[] = "out";
static char *words[] = {text_in, text_out};
static const char *items[] = {"first", "second"};

static const struct row rows[] = {
	{"one each", "a b", {"Aw0"}, {TWO}, .begin = 3},
	{"fewer workers than fragments", "a b c d e", {"Aw0"}, {TWO}, .begin = 3},
	{"fewer fragments than workers", "a b", {"Aw0"}, {.workers = 4}, .begin = 3},
	{"hosts of several fragments", "a/x b c/x d/y e/y f", {"Aw0"}, {.workers = 3}, .begin = 4},
	{"all flags",
	 "a",
	 {"Pw0"},
	 {ONE, .verbosity = 2, .output = {.json = true, .file = "s.json"},
	  .graph = {.configs = {items, 2},
		    .sets = {items, 1},
		    .args = words,
		    .arg_count = 2,
		    .library_path = "/l:/m"},
	  .roles = {.insecure = true,
		    .address = "h:1",
		    .worker_address = "10.0.0.1:3",
		    .key_file = "k",
		    .start_timeout = "5s",
		    .fragments = "none",
		    .allow_write = {items, 2}}},
	 .begin = 2},
	{"in both roles",
	 "a b",
	 {"Aw0"},
	 {.roles = {.driver = true, .worker = true, .address = "h:1", .fragments = "b"}},
	 .begin = 2},
	{"in both roles, of any address and fragment",
	 "a b",
	 {"Aw0"},
	 {.verbosity = 1},
	 .begin = 2},
	{"quiet", "a", {"Aw0"}, {ONE, .verbosity = -2}, .begin = 2},
	{"very quiet, of a user",
	 "a",
	 {"Aw0"},
	 {ONE, .verbosity = -5},
	 .begin = 2,
	 .is_user = true},
	{"very loud", "a", {"Aw0"}, {ONE, .verbosity = 5}, .begin = 2},
	{"with a level of its own", "a", {"Aw0"}, {ONE}, "FRAG_LOG_LEVEL", .begin = 2},
	{"with a Python of its own", "a", {"Aw0"}, {ONE}, "FRAG_PYTHON", .begin = 2},
	{"with users of its own", "a", {"Aw0"}, {ONE}, "FRAG_HOST_USER", .begin = 2},
	{"as many files as it needs", "a b", {"Aw0"}, {TWO}, .files = 26, .begin = 3},
	{"one file fewer", "a b", {"Awt0"}, {TWO}, .files = 25, .begin = 1},
	{"the driver fails", "a", {"Aw4"}, {ONE}, .begin = 2},
	{"the driver is killed", "a", {"AwK"}, {ONE}, .begin = 2},
	{"the driver ends at once", "a", {"3"}, {ONE}, .begin = 1},
	{"the driver says nothing", "a", {"Cz4"}, {ONE}, .begin = 1},
	{"the driver says too much", "a", {"Lz2"}, {ONE}, .begin = 1},
	{"the driver acts on a worker's end", "a b", {"Awrmz4", "3"}, {TWO}, .begin = 3},
	{"the driver does not", "a b", {"AwrMz.", "3"}, {TWO}, .begin = 3},
	{"a worker is refused", "a", {"AwrMz.", "5"}, {ONE}, .begin = 2},
	{"a worker ends otherwise", "a", {"AwrMz.", "6"}, {ONE}, .begin = 2},
	{"a worker is done too early", "a", {"AwrMz.", "0"}, {ONE}, .begin = 2},
	{"a worker is killed, then the other", "a b", {"AwrMz.", "K", "r2"}, {TWO}, .begin = 3},
	{"a worker takes its time", "a", {"Aw0", "tnz0"}, {ONE}, .begin = 2},
	{"a worker takes too long", "a", {"Aw0", "tN."}, {ONE}, .begin = 2},
	{"stopped", "a", {"AwIt0"}, {ONE}, .begin = 2},
	{"stopped twice", "a", {"AwItIt1"}, {ONE}, .begin = 2},
	{"stopped by the end of its terminal", "a", {"AwHtHzp0"}, {ONE}, .begin = 2},
	{"not stopped by it", "a", {"AwHzp0"}, {ONE}, .begin = 2, .ignores_hup = true},
	{"stopped before the address", "a", {"ItAw0"}, {ONE}, .begin = 2},
	{"suspended", "a b", {"AwSc0", "ct0", "ct0"}, {TWO}, .begin = 3},
	{"suspended with a page",
	 "a",
	 {"AwSc0", "ct0", [WEB] = "ct0"},
	 {ONE, .web = true},
	 .begin = 3},
	{"with a page", "a", {"Aw0", [WEB] = "t0"}, {ONE, .web = true, .verbosity = 1}, .begin = 3},
	{"with a page that ends", "a", {"Awz0", [WEB] = "3"}, {ONE, .web = true}, .begin = 3},
	{"with a page that does not end",
	 "a",
	 {"Aw0", [WEB] = "tN."},
	 {ONE, .web = true},
	 .begin = 3},
	{"with a trace", "a", {"Aw0", [TRACER] = "zy0"}, {ONE, .trace = "t.pftrace"}, .begin = 3},
	{"with a trace that fails",
	 "a",
	 {"Aw0", [TRACER] = "y3"},
	 {ONE, .trace = "t.pftrace", .trace_on_failure = true},
	 .begin = 3},
	{"with a trace that is killed",
	 "a",
	 {"Aw0", [TRACER] = "yK"},
	 {ONE, .trace = "t.pftrace"},
	 .begin = 3},
	{"both fail", "a", {"Aw4", [TRACER] = "y3"}, {ONE, .trace = "t.pftrace"}, .begin = 3},
	{"without the trace",
	 "a",
	 {"Awt0", [TRACER] = "3"},
	 {ONE, .trace = "t.pftrace"},
	 .begin = 2},
	{"top without a terminal", "a", {"Awo0"}, {ONE, .top = true}, .begin = 2},
	{"top", "a", {"Awo0"}, {ONE, .top = true}, .begin = 3, .has_terminal = true},
	{"top ends",
	 "a",
	 {"Awto0", [TOP] = "3"},
	 {ONE, .top = true},
	 .begin = 3,
	 .has_terminal = true},
	{"top with a page and a trace",
	 "a",
	 {"Awo0", [TRACER] = "y0"},
	 {ONE, .top = true, .web = true, .trace = "t.pftrace"},
	 .begin = 5,
	 .has_terminal = true},
};

static const struct row *row;
static struct shared {
	_Atomic int64_t now_ns;
	atomic_uint begun;
	atomic_uint looks;     /* of the run at the clock */
	atomic_bool is_traced; /* it is under way */
	pid_t pids[CHILDREN], run;
	char texts[CHILDREN][2000];
} * shared;

static void note(int child, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(int child, const char *format, ...)
{
	size_t used = strlen(shared->texts[child]);
	va_list args;

	va_start(args, format);
	vsnprintf(shared->texts[child] + used, sizeof(shared->texts[child]) - used, format, args);
	va_end(args);
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void wait_for(int child, int number, const char *name)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, number);
	sigwait(&set, &got);
	note(child, " %s", name);
}

static void put_address(const char *part)
{
	(void)!write(3, part, strlen(part));
}

/* Returns its exit status. */
static int play(int child, int ready_fd)
{
	const char *script = row->scripts[child] != NULL ? row->scripts[child] : "t0";
	static char much[400];
	unsigned int looks;
	sigset_t set, pending;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCONT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	shared->pids[child] = getpid();
	note(child, shared->is_traced ? ", traced:" : ":");
	shared->begun++;
	for (;; script++) {
		switch (*script) {
		case 'A':
			put_address("10.0.0.9:5\n");
			break;
		case 'P':
			put_address("10.0");
			sleep_ms(20);
			put_address(".0.9:5\nmore");
			break;
		case 'L':
			memset(much, '1', sizeof(much) - 1);
			put_address(much);
			break;
		case 'C':
			close(3);
			break;
		case 'w':
			while (shared->begun < row->begin)
				sleep_ms(2);
			break;
		case 'r':
			while (kill(shared->pids[FIRST_WORKER], 0) == 0)
				sleep_ms(2);
			looks = shared->looks;
			while (shared->looks < looks + 2) /* when it ended, and how long ago */
				sleep_ms(2);
			break;
		case 'I':
			kill(shared->run, SIGINT);
			break;
		case 'H':
			kill(shared->run, SIGHUP);
			break;
		case 'S':
			kill(shared->run, SIGTSTP);
			break;
		case 't':
			wait_for(child, SIGTERM, "stopped");
			break;
		case 'c':
			wait_for(child, SIGCONT, "goes on");
			break;
		case 'p':
			sigpending(&pending);
			note(child, sigismember(&pending, SIGTERM) ? " stopped" : " not stopped");
			break;
		case 'm':
		case 'M':
			shared->now_ns += *script == 'm' ? 4999000000 : 5000000000;
			break;
		case 'n':
		case 'N':
			shared->now_ns += *script == 'n' ? 1999000000 : 2000000000;
			break;
		case 'z':
			sleep_ms(150);
			break;
		case 'o':
			printf("prints\n");
			fflush(stdout);
			fprintf(stderr, "logs\n");
			break;
		case 'y':
			shared->is_traced = true;
			(void)!write(ready_fd, "", 1);
			break;
		case 'K':
			raise(SIGKILL);
			break;
		case '.':
			for (;;)
				pause();
		default:
			note(child, " exits with %c", *script);
			return *script - '0';
		}
	}
}

/* --- in place of libc and of fragctl/trace.c --- */

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

int execv(const char *path, char *const argv[])
{
	int child = strcmp(base(path), "driverd") == 0 ? DRIVER : WEB;

	if (strcmp(base(path), "workerd") == 0) /* worker1, or one without a name */
		child = strncmp(argv[4], "worker", 6) == 0 ? FIRST_WORKER + argv[4][6] - '1'
							   : FIRST_WORKER;
	note(child, "  %s", base(path));
	for (int i = 1; argv[i] != NULL; i++)
		note(child, " %s", argv[i]);
	if (child == DRIVER)
		note(child, " (descriptor %s)", getenv("FRAG_ADDRESS_FD"));
	else
		note(child, getenv("FRAG_ADDRESS_FD") == NULL ? "" : " (descriptor)");
	_exit(play(child, -1));
}

int execl(const char *path, const char *word, ...)
{
	const char *given = word;
	va_list args;

	va_start(args, word);
	note(TOP, "  %s", path);
	for (; given != NULL; given = va_arg(args, const char *))
		note(TOP, " %s", given);
	va_end(args);
	_exit(play(TOP, -1));
}

int isatty(int fd)
{
	(void)fd;
	return row != NULL && row->has_terminal;
}

uid_t geteuid(void)
{
	return row != NULL && row->is_user ? 1000 : 0;
}

int clock_gettime(clockid_t id, struct timespec *out)
{
	if (shared == NULL)
		return (int)syscall(SYS_clock_gettime, id, out);
	shared->looks += getpid() == shared->run;
	*out = (struct timespec){shared->now_ns / 1000000000, shared->now_ns % 1000000000};
	return 0;
}

int ctl_trace_run(const struct ctl_trace_wish *wish, const char *address)
{
	note(TRACER, "  traces %s of %s into %s for %d%s%s", wish->application, address, wish->file,
	     (int)wish->for_ns, wish->on_failure ? ", on failure" : "",
	     wish->is_of_run ? ", of the run" : "");
	return play(TRACER, wish->ready_fd);
}

/* --- the run --- */

/* Reads the row's fragments. */
static void make_spec(struct fragi_spec *spec, char *names)
{
	static struct fragi_spec_fragment fragments[8];

	*spec = (struct fragi_spec){
		.application = "app", .app_folder = "/app", .fragments = fragments};
	memset(fragments, 0, sizeof(fragments));
	for (char *name; (name = strsep(&names, " ")) != NULL; spec->fragment_count++) {
		fragments[spec->fragment_count].name = strsep(&name, "/");
		fragments[spec->fragment_count].host = name;
	}
}

static int run_here(void)
{
	struct ctl_run_options options = row->options;
	struct rlimit files;
	struct fragi_spec spec;
	char names[64];

	setpgid(0, 0);
	shared->run = getpid();
	snprintf(names, sizeof(names), "%s", row->fragments);
	make_spec(&spec, names);
	options.graph.spec = &spec;
	options.graph.path = "app.yaml";
	if (row->variable != NULL)
		setenv(row->variable, "1", 1);
	if (row->ignores_hup)
		signal(SIGHUP, SIG_IGN);
	if (row->files > 0) {
		getrlimit(RLIMIT_NOFILE, &files);
		files.rlim_cur = row->files;
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	}
	alarm(60); /* whatever it waits for */
	return ctl_run_daemons(&options);
}

/* T: stopped, of /proc/PID/stat */
static char state_of(pid_t pid)
{
	char path[64], state = '-';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (file == NULL)
		return '-';
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	fclose(file);
	return state;
}

/* All programs stop with the run, and go on with it. */
static void resume(FILE *out)
{
	for (int i = 0; i < CHILDREN; i++) {
		int left = 400;

		while (shared->pids[i] != 0 && state_of(shared->pids[i]) != 'T' && left-- > 0)
			sleep_ms(5);
		if (shared->pids[i] != 0)
			fprintf(out, "  program %d: %s\n", i, left > 0 ? "is suspended" : "runs");
	}
	kill(shared->run, SIGCONT);
}

static void show_row(FILE *out)
{
	int status;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	shared->now_ns = 1000000000;
	fprintf(out, "%s\n", row->name);
	shown_begin();
	pid = fork();
	if (pid == 0) {
		int code = run_here();

		fflush(NULL);
		_exit(code);
	}
	while (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status))
		resume(out);
	for (int i = 0; i < CHILDREN; i++) {
		if (shared->texts[i][0] != '\0')
			fprintf(out, "%s\n", shared->texts[i]);
		cr_expect(shared->pids[i] == 0 || kill(shared->pids[i], 0) < 0,
			  "%s: program %d is left", row->name, i);
	}
	shown_end(out);
	fprintf(out, "  exit code %d%s\n", WEXITSTATUS(status),
		WIFEXITED(status) ? "" : ", by a signal");
}

Test(ctl_daemons, are_as_recorded, .timeout = 120)
{
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	unsetenv("FRAG_BUILD"); /* of the tests */
	unsetenv("FRAG_LOG_LEVEL");
	unsetenv("FRAG_PYTHON");
	unsetenv("FRAG_HOST_USER");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	cr_assert_neq(shared, MAP_FAILED);
	for (row = rows; row < rows + FRAG_COUNT_OF(rows); row++)
		show_row(out);
	fclose(out);
	expected_compare("fragctl/daemons", text);
	free(text);
}
