// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include <libavcodec/avcodec.h>
#include <libavutil/log.h>

#include <frag/error.h>

#include "av_error.h"

/* A stream that is damaged has lines for each picture: so many are printed in each period. */
#define PERIOD_S 10
#define PERIOD_LINES 20

static _Thread_local int64_t errors;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static time_t period_begun;
static unsigned int lines, left_out;

/* Whether a line is printed. *out_before: lines that were left out before it. */
static bool may_print(unsigned int *out_before)
{
	struct timespec now;
	bool may;

	clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&lock);
	if (now.tv_sec - period_begun >= PERIOD_S) {
		period_begun = now.tv_sec;
		lines = 0;
	}
	may = lines < PERIOD_LINES;
	lines++;
	left_out += !may;
	*out_before = may ? left_out : 0;
	if (may)
		left_out = 0;
	pthread_mutex_unlock(&lock);
	return may;
}

static void count_error(void *context)
{
	_Atomic int64_t *own = NULL;

	if (context != NULL && *(const AVClass **)context == avcodec_get_class())
		own = ((AVCodecContext *)context)->opaque;
	if (own != NULL)
		atomic_fetch_add(own, 1);
	else
		errors++;
}

static void log_line(void *context, int level, const char *format, va_list arguments)
{
	static _Thread_local int begins = 1; /* the next text begins a line */
	static _Thread_local bool is_printed;
	unsigned int before = 0;
	char line[2048];

	if (level > AV_LOG_ERROR)
		return;
	count_error(context);
	if (begins)
		is_printed = may_print(&before);
	if (before > 0)
		fprintf(stderr, "FFmpeg had %u lines more\n", before);
	av_log_format_line2(context, level, format, arguments, line, sizeof(line), &begins);
	if (!is_printed)
		return;
	frag_hide_credentials(line, sizeof(line));
	fputs(line, stderr);
}

int64_t video_log_errors(void)
{
	return errors;
}

void video_log_errors_only(void)
{
	if (av_log_get_level() > AV_LOG_ERROR)
		av_log_set_level(AV_LOG_ERROR);
	av_log_set_callback(log_line);
}
