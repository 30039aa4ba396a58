// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <fragctl/look.h>
#include <fragctl/service.h>
#include <fragctl/top_window.h>

/*
 * `fragctl top` shows where the time of applications goes, second by second: on a terminal, as
 * tables (--once), as sentences (--plain), or as JSON.
 */
struct top {
	struct ctl_driver driver;
	const char *name; /* NULL: all applications */
	int64_t every_ns; /* the window */
	bool once, plain, json, no_wait;
	char causes[2048]; /* of plain: what was printed last */
	bool was_lost;     /* the driver, since the last window */
	int64_t ended_ns;  /* unix time at which that ended; 0: there was none */
};

/* For a screen reader: everything once, or when a line is typed; then only what changes. */
static void print_changes(struct top *top, const struct ctl_top *view, bool all)
{
	char causes[sizeof(top->causes)] = "", line[sizeof(causes)];

	for (uint32_t a = 0; a < view->app_count; a++) {
		const struct ctl_top_app *app = &view->apps[a];

		/* The numbers of a sentence change all the time. */
		snprintf(line, sizeof(line), "%.100s %.100s %d %u %u %u\n", app->look.application,
			 app->look.state, (int)app->cause.kind, app->cause.op, app->cause.flow,
			 app->cause.host);
		strncat(causes, line, sizeof(causes) - strlen(causes) - 1);
	}
	if (all)
		ctl_top_print_plain(view, stdout);
	else if (strcmp(causes, top->causes) != 0)
		for (uint32_t a = 0; a < view->app_count; a++)
			printf("Application %s is %s: %s.\n", view->apps[a].look.application,
			       view->apps[a].look.state, ctl_top_cause(&view->apps[a]));
	memcpy(top->causes, causes, sizeof(causes));
}

/* Whether the person has pressed Enter; ends says that they typed q. */
static bool was_asked(bool *ends)
{
	struct pollfd stdin_fd = {.fd = STDIN_FILENO, .events = POLLIN};
	char text[64];
	ssize_t n;

	if (!isatty(STDIN_FILENO) || poll(&stdin_fd, 1, 0) <= 0)
		return false;
	n = read(STDIN_FILENO, text, sizeof(text));
	*ends = n == 0 || (n > 0 && text[0] == 'q');
	return n > 0;
}

static int print(struct top *top, const struct ctl_top_window *window, bool is_first)
{
	const struct ctl_top view = {
		.apps = window->apps, .app_count = window->count, .op = FRAGI_LOOK_NONE};
	bool ends = false;

	if (top->json)
		ctl_top_print_json(&view, stdout);
	else if (top->plain)
		print_changes(top, &view, was_asked(&ends) || is_first);
	else if (ctl_top_print(&view, stdout) < 0)
		return ctl_fail(CTL_FAILED, "out of memory");
	ctl_check_stdout();
	return ends ? -ECANCELED : CTL_OK;
}

/* Between two windows: from the end of one to the begin of the next. */
static void name_gap(struct top *top, const struct ctl_top_window *window)
{
	const struct fragi_look *look = window->count > 0 ? &window->apps[0].look : NULL;

	if (look == NULL)
		return;
	if (top->was_lost && top->ended_ns != 0)
		ctl_complain("goes on; the %.1f s before have no window",
			     (double)(look->unix_ns - (int64_t)look->window_ns - top->ended_ns) /
				     1e9);
	top->was_lost = false;
	top->ended_ns = look->unix_ns;
}

static int print_windows(struct top *top)
{
	struct ctl_top_window window = {0};
	bool begins = true, is_first = true;
	int code = CTL_OK;

	top->driver.follows = !top->once;
	while (code == CTL_OK) {
		code = ctl_top_window_next(&top->driver, top->name, top->every_ns, begins,
					   top->once, &window);
		begins = false;
		if (code == CTL_OK) {
			name_gap(top, &window);
			code = print(top, &window, is_first);
			is_first = false;
		} else if (!top->once && top->driver.connection == NULL) {
			code = ctl_driver_reopen(&top->driver);
			begins = true;
			top->was_lost = true;
		}
		if (top->once)
			break;
	}
	ctl_top_window_free(&window);
	return code == -ECANCELED ? CTL_OK : code;
}

static int print_unmeasured(struct top *top)
{
	struct ctl_top_window window;
	int code = ctl_top_window_unmeasured(&top->driver, top->name, &window);

	if (code != CTL_OK)
		return code;
	if (top->name != NULL && window.count == 0)
		code = ctl_fail_with(
			FRAGI_FAILURE_APPLICATION_UNKNOWN,
			"there is no application %.80s; `fragctl list` shows those that there are",
			top->name);
	else
		code = print(top, &window, true);
	ctl_top_window_free(&window);
	return code;
}

static int show(struct top *top)
{
	struct ctl_driver again;
	int code;

	ctl_driver_find(&top->driver);
	again = top->driver;
	code = ctl_driver_open(&top->driver);
	if (code != CTL_OK)
		return code;
	if (top->no_wait)
		return print_unmeasured(top);
	if (!top->once && !top->plain && !top->json && isatty(STDIN_FILENO) &&
	    isatty(STDOUT_FILENO)) {
		code = ctl_top_on_screen(&top->driver, &again, top->name, top->every_ns);
		if (code != -ENOTTY)
			return code;
		top->plain = true;
	}
	top->once = top->once || (!top->plain && !top->json);
	return print_windows(top);
}

/* Names are UTF-8, and so is nearly every terminal, also where the variables do not say so. */
static void choose_locale(void)
{
	if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
}

int ctl_top(int argc, char **argv)
{
	struct top top = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL, *every = NULL;
	const struct fragi_flag table[] = {
		{.name = "once",
		 .no_env = true,
		 .help = "measures a second, prints tables and ends",
		 .on = &top.once},
		{.name = "plain",
		 .no_env = true,
		 .help = "sentences for screen readers; Enter prints all, q and Enter ends",
		 .on = &top.plain},
		{.name = "every",
		 .value = "TIME",
		 .no_env = true,
		 .help = "measures so long for each picture, 250ms to 5s; default 1s",
		 .text = &every},
		CTL_NO_WAIT_FLAG(top.no_wait),
		CTL_OUTPUT_FLAG(output),
		CTL_VIEWER_FLAGS(top.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl top",
		.usage = "[NAME] [flags]",
		.headline =
			"Shows where the time of applications goes, and on top what makes them slow. With --output json: a line for each window.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		code = ctl_output(output, &top.json)
			       ? ctl_one_name(&operands, flags.program, true, &top.name)
			       : CTL_USAGE;
		choose_locale();
		if (code == CTL_OK)
			code = ctl_look_every(every, &top.every_ns);
		if (code == CTL_OK)
			code = show(&top);
	}
	ctl_driver_close(&top.driver);
	fragi_texts_fini(&operands);
	return code;
}
