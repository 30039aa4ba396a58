// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/crash_note.h>
#include <base/stamp.h>
#include <workerd/facts.h>
#include <workerd/process.h>
#include <workerd/strays.h>

/*
 * Processes that stand for fraghosts, and do in order what the letters of a row say; and all that
 * workerd sees of them. Descriptors are read in any order, so each kind of event has a text of its
 * own.
 */
static const char *deeds; /* of the child */
static FILE *events[4];
static char *texts[4];
static size_t sizes[4];
enum { MESSAGES, LINES, LOSSES, ENDS };
static bool takes, is_freed;
static uv_loop_t loop;
static struct wrk_process *process;

static void send_frame(enum fw_kind kind)
{
	static struct fw_message message;
	uint8_t *frame;
	size_t size;

	message = (struct fw_message){
		.kind = kind, .seq = message.seq + 1, .run = 7, .host = 3, .epoch = 5};
	if (kind == FW_HOST_PREPARED)
		message.prepared.ok = true;
	if (kind == FW_HOST_EVENT)
		message.event.state = FW_STATE_DONE;
	if (fw_encode(&message, &frame, &size) < 0 ||
	    write(WRK_HOST_FD_CONTROL, frame, size) != (ssize_t)size)
		_exit(90);
	fragi_free(frame);
}

static void note(pid_t pid, uint32_t callback, const char *op, const char *cause)
{
	struct fragi_crash_note own = {.pid = pid, .tick = 17, .callback = callback};

	snprintf(own.op, sizeof(own.op), "%s", op);
	snprintf(own.cause, sizeof(own.cause), "%s", cause);
	if (write(WRK_HOST_FD_NOTE, &own, sizeof(own)) != sizeof(own))
		_exit(91);
}

static void say(int fd, const char *what)
{
	if (write(fd, what, strlen(what)) != (ssize_t)strlen(what))
		_exit(92);
}

static void do_one(char deed)
{
	char bytes[512];
	int used = 0;

	switch (deed) {
	case 'p':
		send_frame(FW_HOST_PREPARED);
		break;
	case 'e':
		send_frame(FW_HOST_EVENT);
		break;
	case 'g': /* waits for a frame */
		if (read(WRK_HOST_FD_CONTROL, bytes, sizeof(bytes)) <= 0)
			_exit(93);
		break;
	case 'l':
		say(STDOUT_FILENO, "a line\n");
		break;
	case 'L':
		say(STDERR_FILENO, "an error\n");
		break;
	case 'u':
		say(STDOUT_FILENO, "unfinished");
		break;
	case 'm':
		for (int i = 0; i < 60; i++)
			used += snprintf(bytes + used, sizeof(bytes) - (size_t)used, "%d\n", i);
		say(STDOUT_FILENO, bytes);
		break;
	case 'b':
		say(WRK_HOST_FD_CONTROL, "\xff\xff\xff\xff no frame");
		break;
	case 'c':
		close(WRK_HOST_FD_CONTROL);
		break;
	case 'n':
		note(getpid(), FRAGI_CALL_COMPUTE, "f.rx", "");
		break;
	case 'N':
		note(getpid(), FRAGI_CALL_NONE, "f.none", "");
		break;
	case 'o':
		note(getpid() + 1, FRAGI_CALL_COMPUTE, "f.other", "");
		break;
	case 'C':
		note(getpid(), FRAGI_CALL_COMPOSE, "", "");
		break;
	case 'S':
		note(getpid(), FRAGI_CALL_START, "", "");
		break;
	case 'w':
		note(getpid(), FRAGI_CALL_NONE, "", "UCX gave\nup");
		break;
	case 'y': /* a ledger that is none */
		if (ftruncate(WRK_HOST_FD_LEDGER, 65536) < 0 ||
		    pwrite(WRK_HOST_FD_LEDGER, "none", 4, 0) != 4)
			_exit(94);
		break;
	case 'd': /* what it starts goes on */
		if (fork() == 0) {
			setsid();
			sleep(100);
		}
		break;
	case 'z':
		sleep(100);
		break;
	case 'k':
		kill(getpid(), SIGKILL);
		break;
	case 'v':
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
		break;
	default:
		_exit(deed - '0');
	}
}

static int be_host(void)
{
	for (; *deeds != '\0'; deeds++)
		do_one(*deeds);
	return 8;
}

static void on_message(void *arg, uint32_t host, struct fw_message *message)
{
	cr_expect_eq(arg, &loop);
	fprintf(events[MESSAGES], "  %u says %s %d/%u/%d\n", host, fw_kind_name(message->kind),
		(int)message->run, message->host, (int)message->epoch);
	fw_message_free(message);
}

static void on_lost(void *arg, uint32_t host, const char *sentence, bool cut)
{
	(void)arg;
	fprintf(events[LOSSES], "  %u is lost%s: %s\n", host, cut ? ", cut" : "", sentence);
}

static void on_exited(void *arg, uint32_t host, const struct wrk_exited *e)
{
	(void)arg;
	fprintf(events[ENDS], "  %u ends, status %d, signal %d, limit %d%s%s\n", host, e->status,
		e->signal, (int)e->memory_limit_bytes, e->core_file != NULL ? ", core" : "",
		e->stats != NULL ? ", page" : "");
	if (e->note != NULL)
		fprintf(events[ENDS], "    note: %u %d '%s' '%s'\n", e->note->callback,
			(int)e->note->tick, e->note->op, e->note->cause);
	for (uint32_t i = 0; i < e->line_count; i++)
		if (i == 0 || i + 1 == e->line_count || e->line_count < 4)
			fprintf(events[ENDS], "    line %u: %s\n", i, e->lines[i]);
}

static bool on_takes(void *arg)
{
	(void)arg;
	return takes;
}

static void on_lines(void *arg, uint32_t host, const char *const *lines, uint32_t count,
		     uint32_t left_out)
{
	(void)arg;
	for (uint32_t i = 0; i < count; i++)
		if (i < 3 || i + 1 == count)
			fprintf(events[LINES], "  %u writes %s\n", host, lines[i]);
	if (left_out > 0)
		fprintf(events[LINES], "  %u, left out: %u\n", host, left_out);
}

static void on_freed(void *arg, struct wrk_process *own)
{
	(void)arg;
	cr_expect_eq(own, process);
	is_freed = true;
}

static const struct wrk_process_ops ops = {.message = on_message,
					   .connection_lost = on_lost,
					   .exited = on_exited,
					   .takes_lines = on_takes,
					   .lines = on_lines,
					   .freed = on_freed};

/* What is done to it while it runs. */
enum to_it { NOTHING, SEND, SEND_TOO_LARGE, TERMINATE, KILL, ABANDON };
static const struct {
	const char *deeds;
	enum to_it to_it;
	bool takes_lines, names_plain;
	uint32_t rate;
	bool has_writer;
} rows[] = {
	{"", NOTHING, true, false, 0, true},
	{"0", NOTHING, true, false, 0, true},
	{"pe7", NOTHING, true, false, 0, true},
	{"ge0", SEND, true, false, 0, true},
	{"ge0", SEND_TOO_LARGE, true, false, 0, true},
	{"z", TERMINATE, true, false, 0, true},
	{"lz", KILL, true, false, 0, true},
	{"z", ABANDON, true, false, 0, true},
	{"lLu0", NOTHING, true, false, 0, true},
	{"lLu0", NOTHING, false, true, 0, true},
	{"m0", NOTHING, false, false, 0, true},
	{"m0", NOTHING, true, false, 0, false},
	{"m0", NOTHING, false, true, 1, true},
	{"b0", NOTHING, true, false, 0, true},
	{"ebz", KILL, true, false, 0, true},
	{"cl0", NOTHING, true, false, 0, true},
	{"ecz", KILL, true, false, 0, true},
	{"nv", NOTHING, true, false, 0, true},
	{"nNv", NOTHING, true, false, 0, true},
	{"ov", NOTHING, true, false, 0, true},
	{"non3", NOTHING, true, false, 0, true},
	{"Cv", NOTHING, true, false, 0, true},
	{"Sv", NOTHING, true, false, 0, true},
	{"wk", NOTHING, true, false, 0, true},
	{"ypz", KILL, true, false, 0, true},
	{"y0", NOTHING, true, false, 0, true},
	{"ld5", NOTHING, true, false, 0, true},
	{"ddu0", NOTHING, true, false, 0, true},
};

static void act(enum to_it what)
{
	struct fw_message message = {.kind = FW_HOST_START, .run = 7, .host = 3, .epoch = 5};
	static char large[FW_FRAME_MAX];

	if (what == SEND_TOO_LARGE) {
		message.kind = FW_HOST_CREATE;
		message.create.application = "app";
		message.create.source = large;
		message.create.source_bytes = sizeof(large);
	}
	if (what == SEND || what == SEND_TOO_LARGE)
		wrk_process_send(process, &message);
	if (what == TERMINATE || what == KILL)
		wrk_process_signal(process, what == KILL ? SIGKILL : SIGTERM);
	if (what == ABANDON)
		wrk_process_abandon(process);
}

/* Whether what it does before it waits has been seen: the last of it. */
static bool has_done(void)
{
	int kind = strpbrk(deeds, "bcy") != NULL ? LOSSES : LINES;

	fflush(events[kind]);
	return sizes[kind] > 0;
}

static int64_t shortest_ns = INT64_MAX; /* that one of them took */

static void run_row(size_t i)
{
	static const char *const fragments[] = {"f", "g"};
	struct wrk_launch launch = {.ops = &wrk_spawn_process,
				    .main = be_host,
				    .environment = environ,
				    .names_plain = rows[i].names_plain,
				    .writer = {.application = "app",
					       .fragments = fragments,
					       .count = rows[i].has_writer ? 2 : 0,
					       .names_plain = rows[i].names_plain},
				    .line_rate = rows[i].rate};
	struct frag_err err = FRAG_ERR_INIT;

	int64_t started_ns;

	deeds = rows[i].deeds;
	takes = rows[i].takes_lines;
	is_freed = false;
	cr_assert_eq(uv_loop_init(&loop), 0);
	cr_assert_eq(
		wrk_process_start(&loop, 40 + (uint32_t)i, &launch, &ops, &loop, &process, &err), 0,
		"%s", err.text);
	cr_expect_eq(wrk_process_host(process), 40 + (uint32_t)i);
	cr_expect_gt(wrk_process_pid(process), 1);
	started_ns = fragi_now_ns();
	while (rows[i].to_it == KILL && !has_done())
		uv_run(&loop, UV_RUN_ONCE);
	act(rows[i].to_it);
	uv_run(&loop, UV_RUN_DEFAULT);
	started_ns = fragi_now_ns() - started_ns;
	shortest_ns = started_ns < shortest_ns ? started_ns : shortest_ns;
	cr_expect(is_freed, "%s", rows[i].deeds);
	cr_expect_eq(uv_loop_close(&loop), 0, "%s", rows[i].deeds);
}

/* Without times, and with a word in place of the process id. */
static void copy_log(FILE *out, int fd)
{
	static char bytes[65536];
	ssize_t n = pread(fd, bytes, sizeof(bytes) - 1, 0);
	int lines = 0;

	bytes[n > 0 ? n : 0] = '\0';
	for (char *rest = bytes, *line; (line = strsep(&rest, "\n")) != NULL && rest != NULL;) {
		char *at = strlen(line) > 25 && line[23] == 'Z' ? line + 25 : line;
		char *pid = strstr(at, "fraghost ");

		if (++lines > 4 && rest[0] != '\0' && strchr(rest, '\n')[1] != '\0')
			continue;
		if (pid != NULL)
			fprintf(out, "  log: %.*sN%s\n", (int)(pid + 9 - at), at,
				pid + 9 + strspn(pid + 9, "0123456789"));
		else
			fprintf(out, "  log: %s\n", at);
	}
}

static void start(void)
{
	const struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	wrk_strays_adopt();
}

Test(worker_process, hosts_that_do_and_suffer_all_kinds_of_things, .init = start)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		static const char *const done[] = {"",
						   ", a frame comes",
						   ", a large frame comes",
						   ", SIGTERM comes",
						   ", SIGKILL comes",
						   ", it is abandoned"};
		int fd = memfd_create("log", 0), stderr_fd = dup(STDERR_FILENO);

		for (int k = 0; k < 4; k++)
			events[k] = open_memstream(&texts[k], &sizes[k]);
		fflush(NULL);
		dup2(fd, STDERR_FILENO);
		run_row(i);
		fflush(stderr);
		dup2(stderr_fd, STDERR_FILENO);
		close(stderr_fd);
		fprintf(out, "'%s'%s%s%s\n", rows[i].deeds, done[rows[i].to_it],
			rows[i].takes_lines ? ", lines are taken" : "",
			rows[i].rate > 0 ? ", not many" : "");
		for (int k = 0; k < 4; k++) {
			fclose(events[k]);
			fputs(texts[k], out);
			free(texts[k]);
		}
		copy_log(out, fd);
		close(fd);
	}
	cr_expect_lt(shortest_ns, INT64_C(90000000), "last words are awaited where none can come");
	fclose(out);
	expected_compare("worker/process", text);
	free(text);
}
