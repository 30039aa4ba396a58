// SPDX-License-Identifier: Apache-2.0
#include <driverd/progress.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/nowait.h>

void drv_progress_init(struct drv_progress *progress, bool off)
{
	const char *term = getenv("TERM");

	*progress = (struct drv_progress){.is_off = off};
	progress->is_terminal =
		isatty(STDERR_FILENO) != 0 && term != NULL && strcmp(term, "dumb") != 0;
}

/* Only the newest text counts: what the terminal does not take is left out. */
static void put(const char *text)
{
	(void)fragi_write_nowait(STDERR_FILENO, text, strlen(text));
}

void drv_progress_show(struct drv_progress *progress, const char *text)
{
	char line[sizeof(progress->last) + 16];

	if (progress->is_off || strcmp(progress->last, text) == 0)
		return;
	snprintf(progress->last, sizeof(progress->last), "%s", text);
	if (progress->is_terminal)
		snprintf(line, sizeof(line), "\r\033[K%s", progress->last);
	else
		snprintf(line, sizeof(line), "%s\n", progress->last);
	put(line);
	progress->is_shown = progress->is_terminal;
}

void drv_progress_clear(struct drv_progress *progress)
{
	if (!progress->is_shown)
		return;
	put("\r\033[K");
	progress->is_shown = false;
	progress->last[0] = '\0';
}
