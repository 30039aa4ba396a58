// SPDX-License-Identifier: Apache-2.0
#include <fragctl/service.h>
#include <fragctl/top_opened.h>
#include <fragctl/top_window.h>

#include <errno.h>
#include <fcntl.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * top on a terminal: the driver's messages and the keys come through the loop of the session. While
 * the driver is gone it is looked for once a second.
 */
#define AGAIN_MS 1000
#define ESCAPE 27
#define INPUT_MAX 200

enum mode {
	VIEWING,
	FILTERING, /* types a filter */
	SETTING,   /* types PARAMETER=VALUE */
	ASKED,     /* answers whether to set it */
};

struct screen {
	struct ctl_driver *driver;
	const struct ctl_driver *again;
	const char *name;
	int64_t every_ns;
	struct ctl_top top;
	struct ctl_top_window shown, newest, coming; /* newest: empty unless paused */
	uv_poll_t keys;
	uv_signal_t resized, interrupted, terminated;
	uv_timer_t timer;
	enum mode mode;
	char input[INPUT_MAX], filter[INPUT_MAX];
	char message[INPUT_MAX + 700], lost[700], event[700];
	uint64_t last_event;
	struct ctl_top_opened opened; /* by name: indices change with the tables */
	struct ctl_top_lines body;
	bool asked;   /* the driver knows what it is to send */
	bool retries; /* it is time to look for the driver */
	bool ends;
	enum fragi_failure failure; /* why it ended */
	int open_handles;
};

/* --- drawing --- */

static attr_t attributes(enum ctl_top_style style)
{
	switch (style) {
	case CTL_TOP_TITLE:
		return A_BOLD;
	case CTL_TOP_HEAD:
		return A_UNDERLINE;
	case CTL_TOP_WRONG:
		return A_BOLD | (has_colors() ? COLOR_PAIR(1) : 0);
	case CTL_TOP_SELECTED:
		return A_REVERSE;
	default:
		return A_NORMAL;
	}
}

static void prompt(struct screen *s)
{
	const char *op = s->opened.op;

	if (s->mode == FILTERING)
		snprintf(s->message, sizeof(s->message),
			 "filter: %s_  (Enter keeps it, Esc ends it)", s->input);
	else if (s->mode == SETTING)
		snprintf(s->message, sizeof(s->message),
			 "%.200s.PARAMETER=VALUE: %s_  (Enter, Esc gives up)", op, s->input);
	else if (s->mode == ASKED)
		snprintf(s->message, sizeof(s->message), "set %.200s.%s now? y/n", op, s->input);
	else
		return;
	s->top.message = s->message;
}

static void draw(struct screen *s)
{
	struct ctl_top_lines lines;
	int height, width;

	getmaxyx(stdscr, height, width);
	s->top.height = (uint32_t)height;
	s->top.width = (uint32_t)width;
	prompt(s);
	ctl_top_lines_free(&s->body);
	if (ctl_top_body(&s->top, &s->body) < 0 || ctl_top_screen(&s->top, &s->body, &lines) < 0)
		return;
	erase();
	for (uint32_t i = 0; i < lines.count && i < s->top.height; i++) {
		attrset((int)attributes(lines.items[i].style));
		mvaddstr((int)i, 0, lines.items[i].text);
		if (lines.items[i].style == CTL_TOP_SELECTED) /* the whole line */
			mvchgat((int)i, 0, -1, A_REVERSE, 0, NULL);
	}
	attrset(A_NORMAL);
	ctl_top_lines_free(&lines);
	refresh();
}

/* --- the driver --- */

/* Finds the operator again that is opened. */
static void find_opened(struct screen *s)
{
	if (s->top.op == FRAGI_LOOK_NONE)
		return;
	for (uint32_t a = 0; a < s->shown.count; a++) {
		const struct fragi_look *look = &s->shown.apps[a].look;

		if (strcmp(look->application, s->opened.application) != 0)
			continue;
		for (uint32_t i = 0; i < look->operator_count; i++)
			if (strcmp(look->operators[i].name, s->opened.op) == 0) {
				s->top.app = a;
				s->top.op = i;
				return;
			}
	}
	s->top.op = FRAGI_LOOK_NONE;
	s->mode = VIEWING;
	snprintf(s->message, sizeof(s->message), "%s is not among what runs now", s->opened.op);
	s->top.message = s->message;
}

static void take_window(struct screen *s)
{
	ctl_top_window_free(&s->newest);
	if (s->top.is_paused) {
		s->newest = s->coming;
		s->coming = (struct ctl_top_window){0};
		return;
	}
	ctl_top_window_free(&s->shown);
	s->shown = s->coming;
	s->coming = (struct ctl_top_window){0};
	s->top.apps = s->shown.apps;
	s->top.app_count = s->shown.count;
	find_opened(s);
}

static void on_again(uv_timer_t *timer)
{
	struct screen *s = timer->data;

	s->retries = true;
	uv_stop(timer->loop); /* which waits for something else after its timers */
}

static void show_lost(struct screen *s, const char *why)
{
	snprintf(s->lost, sizeof(s->lost), "%.600s; tries again every second, what is below is old",
		 why);
	s->top.lost = s->lost;
	ctl_top_window_free(&s->coming);
	s->asked = false;
	uv_timer_start(&s->timer, on_again, AGAIN_MS, AGAIN_MS);
}

/* What was set, and what the operator writes; one of a subgraph has no lines of its own. */
static void ask_opened(struct screen *s)
{
	char fragment[FRAG_NAME_MAX + 1];
	const char *dot = strchr(s->opened.op, '.');
	struct fw_message logs = {.kind = FW_WATCH_LOGS}, state = {.kind = FW_REQUEST};

	if (dot == NULL || s->driver->connection == NULL)
		return;
	snprintf(fragment, sizeof(fragment), "%.*s", (int)(dot - s->opened.op), s->opened.op);
	logs.watch_logs = (struct fw_watch_logs){
		.name = s->opened.application, .fragment = fragment, .op = dot + 1, .follow = true};
	state.request = (struct fw_request){FW_REQUEST_STATE, ""};
	s->opened.line_count = 0;
	if (strchr(dot + 1, '.') == NULL)
		(void)ctl_driver_send(s->driver, &logs);
	(void)ctl_driver_send(s->driver, &state);
}

static void ask(struct screen *s)
{
	struct fw_message look = {.kind = FW_LOOK,
				  .look = {.name = s->name != NULL ? s->name : "",
					   .every_ns = s->every_ns,
					   .changes = true}};
	struct fw_message watch = {.kind = FW_WATCH, .watch = {s->last_event, true}};

	s->asked =
		ctl_driver_send(s->driver, &look) == 0 && ctl_driver_send(s->driver, &watch) == 0;
	if (s->top.op != FRAGI_LOOK_NONE)
		ask_opened(s);
}

/* The last event is shown, of those of one application where only that one is looked at. */
static void take_events(struct screen *s, const struct fw_events *events)
{
	for (uint32_t i = 0; i < events->count; i++) {
		const struct fw_notice *event = &events->rows[i];

		s->last_event = event->number;
		if (s->name != NULL && strcmp(event->application, s->name) != 0)
			continue;
		ctl_service_put_notice(event, s->event, sizeof(s->event));
		s->top.event = s->event;
	}
}

/* Also an application that has ended may come again. */
static void take_answer(struct screen *s, const struct fw_failure *failure)
{
	if (failure->code == FRAGI_FAILURE_NONE)
		return;
	if (s->shown.count == 0 && s->top.lost == NULL) {
		s->failure = failure->code;
		snprintf(s->lost, sizeof(s->lost), "%s", failure->sentence);
		s->ends = true;
		return;
	}
	show_lost(s, failure->sentence);
}

static void take_messages(struct screen *s)
{
	struct fw_message *message;

	while (s->driver->first != NULL && !s->ends) {
		if (ctl_driver_next(s->driver, &message) != CTL_OK)
			return;
		if (message->kind == FW_LOOKED) {
			bool is_last = message->looked.is_last;

			(void)ctl_top_window_add(
				&s->coming, s->newest.count > 0 ? &s->newest : &s->shown, message);
			s->top.lost = NULL;
			s->top.is_measuring = false;
			uv_timer_stop(&s->timer);
			if (is_last)
				take_window(s);
			continue;
		}
		if (message->kind == FW_EVENTS)
			take_events(s, &message->events);
		ctl_top_opened_take(&s->opened, message);
		if (message->kind == FW_ANSWER)
			take_answer(s, &message->answer.failure);
		fw_message_free(message);
	}
}

/* Once a second while there is nothing to show. The loop must not run. */
static void try_again(struct screen *s)
{
	s->retries = false;
	if (s->driver->connection == NULL && ctl_driver_reopen(s->driver) != CTL_OK)
		return;
	if (!s->asked)
		ask(s);
}

/* --- keys --- */

static void set_parameter(struct screen *s)
{
	struct ctl_driver driver = *s->again;
	char text[sizeof(s->opened.op) + INPUT_MAX + 2];
	struct fw_message command = {.kind = FW_SET, .set = {s->opened.application, text}},
			  *answer = NULL;
	int code;

	/* It belongs to the session that goes on. */
	driver.allowed = (struct fragi_texts){0};
	snprintf(text, sizeof(text), "%s.%s", s->opened.op, s->input);
	code = ctl_driver_open(&driver);
	if (code == CTL_OK)
		code = ctl_driver_ask(&driver, &command, &answer);
	if (code != CTL_OK)
		snprintf(s->message, sizeof(s->message), "not set: the driver does not answer");
	else if (answer->kind == FW_ANSWER && answer->answer.failure.code != FRAGI_FAILURE_NONE)
		snprintf(s->message, sizeof(s->message), "not set: %.650s",
			 answer->answer.failure.sentence);
	else
		snprintf(s->message, sizeof(s->message), "set %s", text);
	s->top.message = s->message;
	ask_opened(s);
	fw_message_free(answer);
	ctl_driver_close(&driver);
}

/* The cursor's line; above all operators, the line of the first one. NULL: there is none. */
static const struct ctl_top_line *line_to_open(const struct screen *s)
{
	uint32_t first = 0;

	while (first < s->body.count && s->body.items[first].op == FRAGI_LOOK_NONE)
		first++;
	if (first < s->top.cursor)
		first = s->top.cursor;
	return first < s->body.count ? &s->body.items[first] : NULL;
}

static void open_operator(struct screen *s)
{
	const struct ctl_top_line *line = line_to_open(s);
	const struct fragi_look *look;

	if (s->top.op != FRAGI_LOOK_NONE || line == NULL || line->op == FRAGI_LOOK_NONE ||
	    line->app >= s->shown.count)
		return;
	look = &s->shown.apps[line->app].look;
	s->top.app = line->app;
	s->top.op = line->op;
	s->top.cursor = s->top.first = 0;
	ctl_top_opened_begin(&s->opened, look->application, look->operators[line->op].name);
	ask_opened(s);
}

static void next_section(struct screen *s)
{
	for (uint32_t i = 1; i <= s->body.count; i++) {
		uint32_t at = (s->top.cursor + i) % s->body.count;

		if (s->body.items[at].is_head) {
			s->top.cursor = at;
			return;
		}
	}
}

static void move_cursor(struct screen *s, int key)
{
	uint32_t page = s->top.height > 6 ? s->top.height - 6 : 1;
	uint32_t last = s->body.count > 0 ? s->body.count - 1 : 0;

	if (key == KEY_UP && s->top.cursor > 0)
		s->top.cursor--;
	else if (key == KEY_DOWN && s->top.cursor < last)
		s->top.cursor++;
	else if (key == KEY_PPAGE)
		s->top.cursor -= s->top.cursor < page ? s->top.cursor : page;
	else if (key == KEY_NPAGE)
		s->top.cursor = s->top.cursor + page < last ? s->top.cursor + page : last;
	else if (key == KEY_HOME)
		s->top.cursor = 0;
	else if (key == KEY_END)
		s->top.cursor = last;
}

static void begin_input(struct screen *s, enum mode mode)
{
	s->mode = mode;
	snprintf(s->input, sizeof(s->input), "%s", mode == FILTERING ? s->filter : "");
}

static void end_input(struct screen *s, bool keeps)
{
	bool asks = s->mode == SETTING && keeps && strchr(s->input, '=') != NULL;

	s->top.message = NULL;
	if (s->mode == FILTERING)
		snprintf(s->filter, sizeof(s->filter), "%s", keeps ? s->input : "");
	s->mode = asks ? ASKED : VIEWING;
}

/* A key while a line is typed. Characters of more bytes come as several keys. */
static void type(struct screen *s, int key)
{
	size_t length = strlen(s->input);

	if (key == ESCAPE || key == '\n' || key == KEY_ENTER) {
		end_input(s, key != ESCAPE);
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		while (length > 0 && ((unsigned char)s->input[length - 1] & 0xc0) == 0x80)
			length--;
		s->input[length > 0 ? length - 1 : 0] = '\0';
	} else if (key >= ' ' && key < 256 && length + 1 < sizeof(s->input)) {
		s->input[length] = (char)key;
		s->input[length + 1] = '\0';
	}
	if (s->mode == FILTERING)
		snprintf(s->filter, sizeof(s->filter), "%s", s->input);
}

static void go_back(struct screen *s, int key)
{
	if (s->top.op != FRAGI_LOOK_NONE)
		s->top.op = FRAGI_LOOK_NONE;
	else if (key == 'q')
		s->ends = true;
	else
		s->filter[0] = '\0';
}

static void press(struct screen *s, int key)
{
	if (s->mode == FILTERING || s->mode == SETTING) {
		type(s, key);
		return;
	}
	s->top.message = NULL;
	if (s->mode == ASKED) {
		s->mode = VIEWING;
		if (key == 'y')
			set_parameter(s);
		return;
	}
	if (key == 'q' || key == ESCAPE)
		go_back(s, key);
	else if (key == '\n' || key == KEY_ENTER)
		open_operator(s);
	else if (key == '/')
		begin_input(s, FILTERING);
	else if (key == 'e' && s->top.op != FRAGI_LOOK_NONE)
		begin_input(s, SETTING);
	else if (key == ' ' || key == 'p')
		s->top.is_paused = !s->top.is_paused;
	else if (key == 's')
		s->top.order = (s->top.order + 1) % CTL_TOP_ORDERS;
	else if (key == '\t' && s->body.count > 0)
		next_section(s);
	else
		move_cursor(s, key);
}

static void on_keys(uv_poll_t *poll, int status, int events)
{
	struct screen *s = poll->data;
	int key, count = 0;

	(void)events;
	for (; (key = getch()) != ERR; count++)
		press(s, key);
	/* Readable without a key: the terminal has gone. */
	if (status < 0 || (count == 0 && (events & UV_DISCONNECT) != 0))
		s->ends = true;
	draw(s);
}

static void on_resized(uv_signal_t *signal, int number)
{
	struct screen *s = signal->data;
	struct winsize size;

	(void)number;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		resizeterm(size.ws_row, size.ws_col);
	clear();
	draw(s);
}

static void on_interrupted(uv_signal_t *signal, int number)
{
	struct screen *s = signal->data;

	(void)number;
	s->ends = true;
}

/* --- the whole --- */

static void on_closed(uv_handle_t *handle)
{
	struct screen *s = handle->data;

	s->open_handles--;
}

static void open_handles(struct screen *s)
{
	uv_loop_t *loop = &s->driver->loop;

	uv_poll_init(loop, &s->keys, STDIN_FILENO);
	uv_signal_init(loop, &s->resized);
	uv_signal_init(loop, &s->interrupted);
	uv_signal_init(loop, &s->terminated);
	uv_timer_init(loop, &s->timer);
	s->keys.data = s->resized.data = s->interrupted.data = s->terminated.data = s->timer.data =
		s;
	s->open_handles = 5;
	uv_poll_start(&s->keys, UV_READABLE | UV_DISCONNECT, on_keys);
	uv_signal_start(&s->resized, on_resized, SIGWINCH);
	uv_signal_start(&s->interrupted, on_interrupted, SIGINT);
	uv_signal_start(&s->terminated, on_interrupted, SIGTERM);
}

static void close_handles(struct screen *s)
{
	uv_close((uv_handle_t *)&s->keys, on_closed);
	uv_close((uv_handle_t *)&s->resized, on_closed);
	uv_close((uv_handle_t *)&s->interrupted, on_closed);
	uv_close((uv_handle_t *)&s->terminated, on_closed);
	uv_close((uv_handle_t *)&s->timer, on_closed);
	while (s->open_handles > 0)
		uv_run(&s->driver->loop, UV_RUN_ONCE);
}

static void begin_screen(void)
{
	set_escdelay(25);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	if (getenv("NO_COLOR") == NULL && has_colors() && start_color() == OK) {
		use_default_colors();
		init_pair(1, COLOR_RED, -1);
	}
}

/* What is written to stderr meanwhile would spoil the screen. Returns the real one. */
static int hide_stderr(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), kept = dup(STDERR_FILENO);

	if (null >= 0)
		dup2(null, STDERR_FILENO);
	if (null >= 0)
		close(null);
	return kept;
}

static void run(struct screen *s)
{
	char why[sizeof(s->lost)];

	ask(s);
	draw(s);
	while (!s->ends) {
		uv_run(&s->driver->loop, UV_RUN_ONCE);
		take_messages(s);
		if (s->driver->connection == NULL && s->top.lost == NULL) {
			snprintf(why, sizeof(why), "lost the driver at %s: %.300s",
				 s->driver->where, s->driver->why);
			show_lost(s, why);
		}
		if (s->retries)
			try_again(s);
		draw(s);
	}
}

/* One that cannot move its cursor, as TERM=dumb, shows no screen. */
static SCREEN *open_terminal(void)
{
	SCREEN *terminal = newterm(NULL, stdout, stdin);

	if (terminal == NULL || tigetstr("cup") != NULL)
		return terminal;
	endwin();
	delscreen(terminal);
	return NULL;
}

int ctl_top_on_screen(struct ctl_driver *driver, const struct ctl_driver *again, const char *name,
		      int64_t every_ns)
{
	struct screen s = {.driver = driver, .again = again, .name = name, .every_ns = every_ns};
	SCREEN *terminal = open_terminal();
	int kept;

	if (terminal == NULL)
		return -ENOTTY;
	s.top = (struct ctl_top){.where = driver->where,
				 .op = FRAGI_LOOK_NONE,
				 .opened = &s.opened,
				 .filter = s.filter,
				 .is_measuring = true};
	driver->follows = true;
	begin_screen();
	kept = hide_stderr();
	open_handles(&s);
	run(&s);
	close_handles(&s);
	endwin();
	delscreen(terminal);
	if (kept >= 0) {
		dup2(kept, STDERR_FILENO);
		close(kept);
	}
	ctl_top_lines_free(&s.body);
	ctl_top_window_free(&s.shown);
	ctl_top_window_free(&s.newest);
	ctl_top_window_free(&s.coming);
	if (s.failure != FRAGI_FAILURE_NONE)
		return ctl_fail_with(s.failure, "%s", s.lost);
	return CTL_OK;
}
