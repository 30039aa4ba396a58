// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <libavcodec/avcodec.h>
#include <libavutil/mathematics.h>

#include "../held_back.h"
#include "decoder.h"
#include "sender.h"

#define NS INT64_C(1000000000)
#define APART_NS (10 * NS) /* a camera that keeps its clock is nearer, by far */
#define TAI_AHEAD_NS (37 * NS)

bool video_sender_is_wanted(const char *acquisition)
{
	return strcmp(acquisition, "sender") == 0;
}

int video_sender_check(struct frag_op *op, const char *acquisition, const char *url)
{
	if (!video_sender_is_wanted(acquisition) || strncasecmp(url, "rtsp", 4) == 0)
		return 0;
	return frag_op_fail(
		op, -EINVAL,
		"acquisition is sender, and only a camera with a url of rtsp:// reports its time; leave acquisition out");
}

void video_sender_note(struct video_sender *sender, const AVPacket *packet, AVRational time_base)
{
	const int64_t at = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
	size_t size = 0;
	const AVProducerReferenceTime *sent =
		(const void *)av_packet_get_side_data(packet, AV_PKT_DATA_PRFT, &size);

	if (sent != NULL && size >= sizeof(*sent) && at != AV_NOPTS_VALUE)
		atomic_store(&sender->ahead_us,
			     sent->wallclock - av_rescale_q(at, time_base, AV_TIME_BASE_Q));
}

bool video_sender_time_ns(const struct video_sender *sender, int64_t pts, AVRational time_base,
			  int64_t *out_unix_ns)
{
	const int64_t ahead_us = atomic_load(&sender->ahead_us);

	if (ahead_us == 0 || pts == AV_NOPTS_VALUE)
		return false;
	*out_unix_ns = (ahead_us + av_rescale_q(pts, time_base, AV_TIME_BASE_Q)) * 1000;
	return true;
}

static void refuse(struct frag_op *op, const char *shown, int64_t ahead_ns)
{
	frag_op_log(
		op,
		"the clock of %s is %.1f s %s that of this machine%s; its frames have no acquisition times. Let the camera keep its clock by NTP",
		shown, (double)llabs(ahead_ns) / 1e9, ahead_ns > 0 ? "ahead of" : "behind",
		llabs(ahead_ns - TAI_AHEAD_NS) < NS ? ", so it shows TAI and not UTC" : "");
}

int video_sender_stamp(const struct video_decoder *decoder, const AVFrame *frame,
		       struct frag_op *op, const char *shown, bool *logged,
		       struct frag_message *message)
{
	int64_t unix_ns, ahead_ns;

	if (!video_decoder_sender_ns(decoder, frame, &unix_ns))
		return 0;
	ahead_ns = unix_ns - held_back_unix_now_ns();
	if (llabs(ahead_ns) <= APART_NS)
		return frag_message_set_acquisition_ns(message, unix_ns);
	if (!*logged)
		refuse(op, shown, ahead_ns);
	*logged = true;
	return 0;
}
