// SPDX-License-Identifier: Apache-2.0
#include <driverd/progress.h>

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <base/log.h>
#include <base/nowait.h>
#include <base/stamp.h>

/* A log is read later: it is to show that it went on, and not each step. */
#define LOG_PERIOD_NS INT64_C(10000000000)

void drv_progress_init(struct drv_progress *progress, bool off)
{
	*progress = (struct drv_progress){.is_off = off, .is_terminal = fragi_log_is_terminal()};
}

/* Writes the newest text: what the terminal does not take is left out. */
static void put(const char *text)
{
	if (fragi_log_is_json())
		fragi_log_put(text, strlen(text));
	else
		(void)fragi_write_nowait(STDERR_FILENO, text, strlen(text));
}

/* A text that wraps could not be written over. */
static int columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col - 1
									       : 79;
}

void drv_progress_show(struct drv_progress *progress, const char *text)
{
	char line[sizeof(progress->last) + 16];
	int64_t now_ns = fragi_now_ns();

	if (progress->is_off)
		return;
	if (!progress->is_terminal) {
		if (strcmp(progress->last, text) == 0 ||
		    (progress->last_ns != 0 && now_ns - progress->last_ns < LOG_PERIOD_NS))
			return;
		progress->last_ns = now_ns;
	}
	snprintf(progress->last, sizeof(progress->last), "%s", text);
	if (progress->is_terminal)
		snprintf(line, sizeof(line), "%.*s\033[K\r", columns(), progress->last);
	else
		snprintf(line, sizeof(line), "%s\n", progress->last);
	put(line);
	progress->is_shown = progress->is_terminal;
}

void drv_progress_clear(struct drv_progress *progress)
{
	if (!progress->is_shown)
		return;
	put("\033[K");
	progress->is_shown = false;
}
