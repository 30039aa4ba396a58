// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/log.h>
#include <fragctl/top_window.h>
#include <track/cause.h>

#include "ctl_shown.h"
#include "expected.h"
#include "transcript.h"

/*
 * `fragctl top` on a terminal: after each step of a script the lines of the screen that have
 * changed, and what the driver was asked, compared with a recorded text. The driver, the size of
 * the terminal and the clock are played: these functions take the place of fragctl/driver.c and of
 * libc. A step is a word and what it is about:
 *   key TEXT   is typed            get LETTERS  messages come (make_answer)
 *   size R C   of the terminal     wait MS      time passes
 *   lost       the driver is gone  back         it is there when it is looked for
 *   set CODE   what setting answers             end NUMBER  a signal; 0: the terminal has gone
 */
#define ROWS_MAX 40
#define COLUMNS_MAX 160

struct script {
	const char *name, *application, *steps; /* these are separated by "; " */
	const char *terminal;                   /* NULL: xterm */
	const char *variable;                   /* is set */
};

#define ENTER "\n"
#define ESCAPE "\033"
#define UP "\033OA"
#define DOWN "\033OB"
#define PAGE_DOWN "\033[6~"
#define PAGE_UP "\033[5~"
#define HOME "\033OH"
#define END "\033OF"

static const struct script scripts[] = {
	{"what comes of messages", NULL,
	 "get W; get 2; get 1; get e; get E; get G; get R; get A; get x; get 0; size 8 60; size 0 60; size 30 0; size 30 120; key q"},
	{"of one application", "a", "get 1; get E; get e; get N; get 1; key q"},
	{"of one that is not there", "none", "get N"},
	{"of one that ends before a window", "a", "get A; get N"},
	{"the cursor", NULL,
	 "get 21; key " DOWN "; key " DOWN "; key " UP "; key " UP "; key " UP "; key " PAGE_DOWN
	 "; key " PAGE_DOWN "; key " PAGE_DOWN "; key " PAGE_DOWN "; key " PAGE_UP "; key " PAGE_UP
	 "; key " PAGE_UP "; key " PAGE_UP "; key " PAGE_UP "; key " END "; key " DOWN
	 "; key " PAGE_DOWN "; key " UP "; key " HOME
	 "; key \t; key \t; key \t; key \t; key \t; key \t; key s; key s; key s; key s; key s; key s; key s; key z; size 5 100; key " PAGE_DOWN
	 "; size 6 100; key " PAGE_DOWN "; size 7 100; key " PAGE_DOWN "; key q"},
	{"without anything", NULL,
	 "key \t; key " DOWN "; key " UP "; key " END "; key " PAGE_DOWN "; key " ENTER
	 "; key e; get 0; key \t; key " ENTER "; key q"},
	{"a filter", NULL,
	 "get 21; key /; key rx; key " ENTER
	 "; key /; key 1; key \177; key \b; key \177\177; key n\xc3\xbc"
	 "; key \177; key \033OM; key /; key x; key " ESCAPE "; key /; key tx; key " ENTER
	 "; key " ESCAPE "; key " ESCAPE "; key q"},
	{"an operator", NULL,
	 "size 30 100; get 1; key " DOWN DOWN DOWN DOWN "; key " ENTER
	 "; get G; get R; get GGGG; get R; get 1; key " ENTER "; key " DOWN
	 "; get 21; get x; key " ENTER "; key q; key " ESCAPE "; get 21; key " ENTER
	 "; get 1; key q"},
	{"an operator of a subgraph", NULL,
	 "get 1; key " END "; key \t\t; key " DOWN DOWN DOWN
	 "; key \033OM; get G; key e; key x=1" ENTER "; key y; key q; key q"},
	{"setting", NULL,
	 "get 1; key e; key " ENTER "; key e; key gain=4; key " ENTER
	 "; key n; key e; key gain" ENTER "; key e; key gain=5" ESCAPE
	 "; set ok; key e; key gain=6" ENTER "; key y; key " UP "; set gone; key egain=7" ENTER
	 "y; set refused; key egain=8" ENTER "y; set closed; key egain=9" ENTER
	 "y; set welcome; key egain=10" ENTER "y; get x; key e; get 9; key " ESCAPE
	 "; key q; key q"},
	{"an operator goes while it is typed", NULL,
	 "get 1; key " DOWN DOWN DOWN DOWN "; key " ENTER "; key e; key ga; get x; key q"},
	{"pauses", NULL, "get 1; key p; get x; get 2; get 1; key  ; get x; key p; get 1; key q"},
	{"a driver that goes", NULL,
	 "get 1; get e; lost; wait 999; wait 1; back; wait 999; wait 1; get 1; lost; back; wait 1000; wait 2000; get N; wait 1000; get x; wait 3000; key " ENTER
	 "; lost; back; wait 1000; key q; key q"},
	{"a long line", NULL, "get 1; key /; fill 250; key z\177\177; key " ESCAPE "; key q"},
	{"an interrupt", NULL, "get 1; end 2"},
	{"the end", NULL, "get 1; end 15"},
	{"a terminal that goes", NULL, "get 1; end 0"},
	{"without colours", NULL, "get 1; key q", .variable = "NO_COLOR"},
	{"a terminal without a cursor", NULL, "", .terminal = "dumb"},
};

#define NONE FRAGI_LOOK_NONE
#define MS UINT64_C(1000000)

static struct fragi_look_operator operators[] = {
	{.name = "f.tx",
	 .type = "ping_tx",
	 .use_ns = {300 * MS, 700 * MS},
	 .ticks = 30,
	 .input_flow = NONE,
	 .room_flow = 0,
	 .compute = {.count = 30, .p50 = 9 * MS, .p99 = 11 * MS, .p999 = 12 * MS, .max = 13 * MS}},
	{.name = "f.rx",
	 .type = "ping_rx",
	 .use_ns = {900 * MS, 100 * MS},
	 .ticks = 20,
	 .input_flow = 0,
	 .room_flow = NONE,
	 .compute = {.count = 20, .p50 = 44 * MS, .p99 = 45 * MS, .p999 = 46 * MS, .max = 47 * MS}},
	{.name = "g.part.op",
	 .type = "forward",
	 .host = 1,
	 .use_ns = {0, 1000 * MS},
	 .ticks = 5,
	 .input_flow = NONE,
	 .room_flow = NONE},
	{.name = "plain",
	 .type = "forward",
	 .host = 1,
	 .use_ns = {100 * MS, 0, 900 * MS},
	 .ticks = 90,
	 .input_flow = NONE,
	 .room_flow = NONE},
};
static struct fragi_look_flow flows[] = {
	{.from = "f.tx.out",
	 .to = "f.rx.in",
	 .receiver = 1,
	 .edge = "inproc",
	 .policy = "block",
	 .capacity = 4,
	 .sent = 30,
	 .depth = 3,
	 .full_ns = 700 * MS,
	 .latency = {.count = 20, .p99 = 140 * MS}},
};
static struct fragi_look_host hosts[] = {
	{.name = "f",
	 .worker = "w",
	 .pid = 11,
	 .threads = 1,
	 .cpu_ns = 950 * MS,
	 .rss_bytes = 5 << 20},
	{.name = "g",
	 .worker = "v",
	 .pid = 12,
	 .threads = 2,
	 .cpu_ns = 20 * MS,
	 .rss_bytes = 6 << 20},
};

/* --- what is played --- */

#define QUEUE_MAX 16

static struct fw_message *queue[QUEUE_MAX];
static uint32_t queued;
static long now_ms;
static struct winsize size;
static int keys_fd;
static bool is_back;
static const char *set_answers;
static struct ctl_driver *session; /* of the screen */
static char steps[1024], *step;    /* the next one; NULL: there is none */
static uv_idle_t idle;

/* One operator is f.tx alone, without the flow. */
static struct fragi_look look_of(const char *application, uint32_t operator_count)
{
	static struct fragi_look_operator alone;

	alone = operators[0];
	alone.room_flow = NONE;
	return (struct fragi_look){.application = application,
				   .state = "running",
				   .window_ns = 1000 * MS,
				   .operators = operator_count > 1 ? operators : &alone,
				   .operator_count = operator_count,
				   .flows = flows,
				   .flow_count = operator_count > 1,
				   .hosts = hosts,
				   .host_count = FRAG_COUNT_OF(hosts)};
}

/*
 * Windows: of a (1), with c (2, whose second half is 1 or x), without f.rx (x), with an operator
 * more (9), of nothing (0); events of a (e) and c (E), loGs, what was set (R), Accepted, there is
 * no such application (N), Welcome, which says nothing.
 */
static void make_answer(char letter, struct fw_message *out)
{
	static struct fw_notice notices[2];
	static struct fw_line lines[] = {
		{.level = FRAGI_LOG_WARN, .fragment = "f", .op = "rx", .text = "it is late"},
		{.level = FRAGI_LOG_INFO, .fragment = "f", .op = "tx", .text = "it sends"},
		{.level = FRAGI_LOG_ERROR, .fragment = "f", .op = "rx", .text = "it fails"},
	};
	static struct fw_parameter_row set[] = {
		{.name = "f.rx.gain", .value = "3", .age_ns = 5000000000, .who = "user alice"},
		{.name = "f.rx2.gain", .value = "4", .who = "user bob"},
		{.name = "f.tx.rate", .value = "9", .age_ns = 70000000000, .who = "user carol"},
	};
	static struct fw_application_row rows[2];
	static uint64_t number;

	*out = (struct fw_message){.kind = FW_LOOKED, .run = 3};
	out->looked.op = out->looked.flow = out->looked.host = NONE;
	switch (letter) {
	case '2':
		out->looked.look = look_of("c", 1);
		out->looked.look.state = "waiting";
		break;
	case '1':
	case 'x':
	case '9':
		out->looked.is_last = true;
		out->looked.look = look_of("a", letter == '1' ? 3 : letter == 'x' ? 1 : 4);
		out->looked.cause = FRAGI_CAUSE_OPERATOR;
		out->looked.op = letter == 'x' ? NONE : 1;
		out->looked.look.cause = "f.rx computes 44 ms a tick";
		break;
	case '0':
		out->looked.is_last = true;
		out->looked.look.application = "";
		out->looked.look.state = "";
		break;
	case 'e':
	case 'E':
		notices[0] = (struct fw_notice){.number = ++number,
						.kind = FW_NOTICE_START,
						.application = letter == 'e' ? "a" : "c",
						.text = "begins",
						.who = ""};
		notices[1] = notices[0];
		notices[1].number = ++number;
		notices[1].text = letter == 'e' ? "goes on" : "goes on, too";
		out->kind = FW_EVENTS;
		out->events = (struct fw_events){notices, 2};
		break;
	case 'G':
		out->kind = FW_LOGS;
		out->logs = (struct fw_logs){lines, FRAG_COUNT_OF(lines), 9};
		break;
	case 'R':
		rows[0] = (struct fw_application_row){.name = "b", .state = "running"};
		rows[1] = (struct fw_application_row){.name = "a",
						      .state = "running",
						      .parameters = set,
						      .parameter_count = FRAG_COUNT_OF(set)};
		out->kind = FW_REPLY;
		out->reply = (struct fw_reply){.applications = rows, .application_count = 2};
		break;
	case 'W':
		out->kind = FW_WELCOME;
		break;
	default:
		out->kind = FW_ANSWER;
		if (letter == 'N')
			out->answer.failure = (struct fw_failure){FRAGI_FAILURE_APPLICATION_UNKNOWN,
								  "there is no such one", ""};
	}
}

static void mark(void)
{
	static int something;

	session->first = queued > 0 ? (struct ctl_received *)&something : NULL;
}

int ctl_driver_next(struct ctl_driver *driver, struct fw_message **out_message)
{
	(void)driver;
	cr_assert_gt(queued, 0);
	*out_message = queue[0];
	memmove(queue, queue + 1, --queued * sizeof(*queue));
	mark();
	return CTL_OK;
}

int ctl_driver_send(struct ctl_driver *driver, struct fw_message *message)
{
	if (driver->connection == NULL)
		return -ECONNRESET;
	transcript_message("asks", message);
	return 0;
}

int ctl_driver_reopen(struct ctl_driver *driver)
{
	static int something;

	fprintf(transcript, "  connects again%s\n", is_back ? "" : ": nobody is there");
	if (is_back)
		driver->connection = (struct fw_connection *)&something;
	return is_back ? CTL_OK : CTL_MISSING;
}

int ctl_driver_open(struct ctl_driver *driver)
{
	fprintf(transcript, "  opens a session at %s, %zu users\n", driver->address_text,
		driver->allowed.count);
	return strcmp(set_answers, "closed") == 0 ? CTL_MISSING : CTL_OK;
}

int ctl_driver_open_any(struct ctl_driver *driver)
{
	return ctl_driver_open(driver);
}

int ctl_driver_ask(struct ctl_driver *driver, struct fw_message *request,
		   struct fw_message **out_reply)
{
	struct fw_message answer;
	size_t bytes;

	(void)driver;
	transcript_message("asks there", request);
	if (strcmp(set_answers, "gone") == 0)
		return CTL_MISSING;
	make_answer(set_answers[0] == 'o' ? 'A' : set_answers[0] == 'w' ? 'W' : 'N', &answer);
	cr_assert_eq(fw_message_copy(&answer, out_reply, &bytes), 0);
	return CTL_OK;
}

int ctl_driver_answer(struct ctl_driver *driver, const struct fw_message *request,
		      struct fw_message **out_reply)
{
	(void)driver, (void)request, (void)out_reply;
	return CTL_MISSING;
}

void ctl_driver_close(struct ctl_driver *driver)
{
	(void)driver;
	fprintf(transcript, "  closes it\n");
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request != TIOCGWINSZ)
		return (int)syscall(SYS_ioctl, fd, request, arg);
	*(struct winsize *)arg = size;
	return 0;
}

/* For libuv, too. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *out)
{
	if (id == CLOCK_REALTIME)
		return (int)syscall(SYS_clock_gettime, id, out);
	*out = (struct timespec){1 + now_ms / 1000, now_ms % 1000 * 1000000};
	return 0;
}

/* --- the screen --- */

static char shown_rows[ROWS_MAX][COLUMNS_MAX * 4 + 8];

/* How a line begins and how its last columns are: bold, underlined, in colour, reversed. */
static void put_style(int y, int width, char *out)
{
	const int columns[] = {0, width - 2, width - 1};

	for (size_t i = 0; i < FRAG_COUNT_OF(columns); i++) {
		attr_t at = mvinch(y, columns[i]) & (attr_t)A_ATTRIBUTES;

		*out++ = (at & A_REVERSE) != 0     ? 'R'
			 : (at & A_COLOR) != 0     ? 'C'
			 : (at & A_BOLD) != 0      ? 'B'
			 : (at & A_UNDERLINE) != 0 ? 'U'
						   : ' ';
	}
	*out = '\0';
}

static void show_screen(void)
{
	int height, width;

	getmaxyx(stdscr, height, width);
	for (int y = 0; y < height && y < ROWS_MAX; y++) {
		char text[COLUMNS_MAX * 4], row[sizeof(text) + 8], style[4];
		size_t length;

		put_style(y, width, style);
		mvinnstr(y, 0, text, sizeof(text) - 1);
		for (length = strlen(text); length > 0 && text[length - 1] == ' ';)
			text[--length] = '\0';
		snprintf(row, sizeof(row), "%s %s", style, text);
		if (strcmp(row, shown_rows[y]) == 0 || (shown_rows[y][0] == '\0' && length == 0))
			continue;
		fprintf(transcript, "  %2d %s\n", y, row);
		snprintf(shown_rows[y], sizeof(shown_rows[y]), "%s", row);
	}
}

static void put_printable(const char *text)
{
	for (; *text != '\0'; text++)
		fprintf(transcript, *text >= ' ' && *text != 127 ? "%c" : "<%02x>",
			(unsigned char)*text);
	fputc('\n', transcript);
}

static void type(const char *text)
{
	cr_assert_eq(write(keys_fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void get(const char *letters)
{
	for (; *letters != '\0'; letters++) {
		struct fw_message message;
		size_t bytes;

		cr_assert_lt(queued, QUEUE_MAX);
		make_answer(*letters, &message);
		cr_assert_eq(fw_message_copy(&message, &queue[queued++], &bytes), 0);
	}
	mark();
}

static void end(int number)
{
	if (number > 0)
		raise(number);
	else
		close(keys_fd);
}

static void note_closing(uv_handle_t *handle, void *arg)
{
	*(bool *)arg |= uv_is_closing(handle) != 0;
}

static void on_idle(uv_idle_t *handle)
{
	char *now = step;
	bool is_over = false;
	int rows, columns;

	uv_walk(handle->loop, note_closing, &is_over);
	if (is_over)
		return;
	meta(stdscr, TRUE); /* characters have eight bits, as on a terminal */
	show_screen();
	if (now == NULL) {
		fprintf(transcript, "goes on, until it is ended\n");
		raise(SIGTERM);
		return;
	}
	step = strstr(now, "; ");
	if (step != NULL) {
		*step = '\0';
		step += 2;
	}
	put_printable(now);
	if (strncmp(now, "key ", 4) == 0)
		type(now + 4);
	else if (strncmp(now, "get ", 4) == 0)
		get(now + 4);
	else if (strncmp(now, "wait ", 5) == 0)
		now_ms += atoi(now + 5);
	else if (strncmp(now, "set ", 4) == 0)
		set_answers = now + 4;
	else if (strncmp(now, "end ", 4) == 0)
		end(atoi(now + 4));
	else if (strncmp(now, "fill ", 5) == 0)
		for (int i = 0; i < atoi(now + 5); i++)
			type("y");
	else if (sscanf(now, "size %d %d", &rows, &columns) == 2) {
		size.ws_row = (unsigned short)rows;
		size.ws_col = (unsigned short)columns;
		raise(SIGWINCH);
	} else if (strcmp(now, "lost") == 0) {
		session->connection = NULL;
		is_back = false;
	} else {
		cr_assert_str_eq(now, "back");
		is_back = true;
	}
}

static int run(const struct script *script)
{
	static int something;
	const struct ctl_driver again = {.address_text = "h:1"};
	struct ctl_driver driver = {.where = "127.0.0.1:9", .why = "it hung up"};
	int code;

	session = &driver;
	driver.connection = (struct fw_connection *)&something;
	cr_assert_eq(uv_loop_init(&driver.loop), 0);
	uv_idle_init(&driver.loop, &idle);
	uv_idle_start(&idle, on_idle);
	code = ctl_top_on_screen(&driver, &again, script->application, 1000000000);
	cr_assert_eq(driver.follows, code != -ENOTTY);
	uv_close((uv_handle_t *)&idle, NULL);
	uv_run(&driver.loop, UV_RUN_DEFAULT);
	cr_assert_eq(uv_loop_close(&driver.loop), 0, "handles are left");
	for (uint32_t i = 0; i < queued; i++)
		fw_message_free(queue[i]);
	return code;
}

/* In a process of its own: its terminal, and what it has typed. */
static void show_script(const struct script *script)
{
	int fds[2], code;
	FILE *out;

	fprintf(transcript, "%s\n", script->name);
	setenv("TERM", script->terminal != NULL ? script->terminal : "xterm", 1);
	if (script->variable != NULL)
		setenv(script->variable, "1", 1);
	cr_assert_eq(pipe(fds), 0);
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	keys_fd = fds[1];
	snprintf(steps, sizeof(steps), "%s", script->steps);
	step = steps[0] != '\0' ? steps : NULL;
	set_answers = "ok";
	out = fopen("/dev/null", "w");
	cr_assert_not_null(out);
	shown_begin();
	fflush(stdout);
	dup2(fileno(out), STDOUT_FILENO);
	code = run(script);
	shown_end(transcript);
	fprintf(transcript, "ends with %d%s\n", code, step != NULL ? ", too early" : "");
}

Test(top_screen, is_as_recorded, .timeout = 60)
{
	static char text[1 << 20];
	FILE *all = tmpfile();

	cr_assert_not_null(all);
	cr_assert_not_null(setlocale(LC_ALL, "C.UTF-8"));
	setenv("LINES", "16", 1);
	setenv("COLUMNS", "100", 1);
	unsetenv("NO_COLOR");
	for (size_t i = 0; i < FRAG_COUNT_OF(scripts); i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			transcript_begin();
			show_script(&scripts[i]);
			fclose(transcript);
			fputs(transcript_text, all);
			fclose(all);
			free(transcript_text);
			exit(0);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_expect_eq(status, 0, "%s: status %x", scripts[i].name, status);
	}
	rewind(all);
	text[fread(text, 1, sizeof(text) - 1, all)] = '\0';
	fclose(all);
	expected_compare("fragctl/top_screen", text);
}
