/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <libavutil/avstring.h>

#include "formats.h"

/* Those whose demuxers read nothing but the file itself. */
#define MEDIA                                                                                      \
	"mov,matroska,avi,mpegts,mpeg,mpegvideo,h264,hevc,m4v,av1,obu,ivf,ogg,flv,asf,nut,mxf,"    \
	"dv,gif,apng,mjpeg,yuv4mpegpipe,wtv,rm,vc1,h263,h261,"                                     \
	"png_pipe,jpeg_pipe,bmp_pipe,webp_pipe,tiff_pipe,pgm_pipe,ppm_pipe,pbm_pipe,pam_pipe"

static const char protocols[] = "file,crypto,data";

/* The name of the format that FFmpeg takes the file for; NULL: it knows none. */
static const char *format_of(const char *url)
{
	const AVInputFormat *found = NULL;
	AVIOContext *io = NULL;

	if (avio_open(&io, url, AVIO_FLAG_READ) < 0)
		return NULL;
	if (av_probe_input_buffer(io, &found, url, NULL, 0, 0) < 0)
		found = NULL;
	avio_closep(&io);
	return found != NULL ? found->name : NULL;
}

int video_formats_open(AVFormatContext **format, const char *path, const char *also,
		       struct frag_err *err)
{
	char url[PATH_MAX + 8], allowed[1024];
	AVDictionary *options = NULL;
	const char *name;
	int r;

	snprintf(url, sizeof(url), "file:%s", path); /* whatever its name looks like */
	snprintf(allowed, sizeof(allowed), "%s%s%s", MEDIA, also[0] != '\0' ? "," : "", also);
	name = format_of(url);
	if (name != NULL && av_match_list(name, allowed, ',') == 0) {
		frag_err_set(
			err, -EBADMSG,
			"%s is of the format %s, which may open other files; give a media file itself, or allow the format: formats: %.*s",
			path, name, (int)strcspn(name, ","), name);
		return AVERROR_INVALIDDATA;
	}
	/* for what such a file names */
	r = av_dict_set(&options, "format_whitelist", allowed, 0);
	if (r >= 0)
		r = av_dict_set(&options, "protocol_whitelist", protocols, 0);
	if (r >= 0)
		r = avformat_open_input(format, url, NULL, &options);
	av_dict_free(&options);
	return r;
}
