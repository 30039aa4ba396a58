/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdio.h>

#include <libavcodec/avcodec.h>
#include <libavutil/log.h>

#include <frag/error.h>

#include "av_error.h"

static _Thread_local int64_t errors;

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
	char line[2048];

	if (level > AV_LOG_ERROR)
		return;
	count_error(context);
	av_log_format_line2(context, level, format, arguments, line, sizeof(line), &begins);
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
