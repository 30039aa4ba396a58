// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <libavutil/avstring.h>

#include "av_error.h"
#include "formats.h"
#include "pipe.h"

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

/*
 * Whether a file of the family of mp4 lacks its index, moov. Its parts, at the top, have a size of
 * 32 bits, or of 64 that follow, and a name.
 */
static bool lacks_index(AVIOContext *io)
{
	int64_t end = avio_size(io), at = 0;
	bool is_mp4 = false;

	while (at + 8 <= end && avio_seek(io, at, SEEK_SET) == at) {
		uint64_t size = avio_rb32(io);
		uint32_t name = avio_rb32(io);

		if (at == 0)
			is_mp4 = name == MKBETAG('f', 't', 'y', 'p');
		if (!is_mp4 || name == MKBETAG('m', 'o', 'o', 'v'))
			return false;
		if (size == 1)
			size = avio_rb64(io);
		if (size < 8 || size > (uint64_t)(end - at))
			break;
		at += (int64_t)size;
	}
	return is_mp4;
}

/* Whether a file is a playlist by its first line. FFmpeg looks for another one beside it. */
static bool is_playlist(AVIOContext *io)
{
	static const char first[] = "#EXTM3U";
	char begin[sizeof(first) - 1];

	return avio_seek(io, 0, SEEK_SET) == 0 &&
	       avio_read(io, (unsigned char *)begin, sizeof(begin)) == sizeof(begin) &&
	       memcmp(begin, first, sizeof(begin)) == 0;
}

const char *video_formats_why(const char *path, int error, char text[VIDEO_WHY])
{
	char url[PATH_MAX + 8];
	AVIOContext *io = NULL;
	bool has_no_index;

	snprintf(text, VIDEO_WHY, "%s; check path, directory and basename", AV_WHY(error));
	if (error == AVERROR(EPERM)) /* of concat, which is `safe` */
		snprintf(
			text, VIDEO_WHY,
			"it lists a file by an absolute path, or with other characters than letters, digits, ., _ and -; list files by names beside it");
	snprintf(url, sizeof(url), "file:%s", path);
	if (error != AVERROR_INVALIDDATA || video_pipe_is(path) ||
	    avio_open(&io, url, AVIO_FLAG_READ) < 0)
		return text;
	has_no_index = lacks_index(io);
	if (avio_size(io) == 0)
		snprintf(text, VIDEO_WHY, "it is empty: what was to write it has written nothing");
	else if (has_no_index)
		snprintf(
			text, VIDEO_WHY,
			"it has no index (moov): it is cut off, or what wrote it was ended before; video_recorder writes files that need none at their end");
	else if (is_playlist(io))
		snprintf(
			text, VIDEO_WHY,
			"it is a playlist without #EXT-X-TARGETDURATION, which RFC 8216 requires and FFmpeg needs; add that line, or give a media file itself");
	avio_closep(&io);
	return text;
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
	name = (*format)->pb == NULL ? format_of(url) : NULL;
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
