/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "video/url.h"

static const struct {
	const char *url, *shown;
} urls[] = {
	{"rtsp://10.0.0.7/stream1", "rtsp://10.0.0.7/stream1"},
	{"rtsp://cam-1.lan:8554/live/ch00_0.264", "rtsp://cam-1.lan:8554/live/ch00_0.264"},
	{"rtsp://[fe80::1%25eth0]:554/a", "rtsp://[fe80::1%25eth0]:554/a"},
	{"udp://@239.0.0.1:1234", "udp://239.0.0.1:1234"},
	/* before the host, also where the password has characters that belong elsewhere */
	{"rtsp://bob:hunter2@10.0.0.7/stream1", "rtsp://10.0.0.7/stream1"},
	{"rtsp://bob@10.0.0.7", "rtsp://10.0.0.7"},
	{"rtsp://bob:hun/ter2@10.0.0.7/a", "rtsp://10.0.0.7/a"},
	{"rtsp://bob:hun?ter2@10.0.0.7/a", "rtsp://10.0.0.7/a"},
	{"rtsp://bob:hun#ter2@10.0.0.7/a", "rtsp://10.0.0.7/a"},
	{"rtsp://bob:hun@ter2@10.0.0.7/a", "rtsp://10.0.0.7/a"},
	/* in the query */
	{"http://10.0.0.7/v.mjpg?user=bob&pwd=hunter2", "http://10.0.0.7/v.mjpg"},
	{"rtsp://10.0.0.7:554?user=bob&pwd=hunter2", "rtsp://10.0.0.7:554"},
	{"http://10.0.0.7/v.mjpg#hunter2", "http://10.0.0.7/v.mjpg"},
	/* in the path, as cameras write them */
	{"rtsp://10.0.0.7:554/user=bob&password=hunter2&channel=1&stream=0.sdp?real_stream",
	 "rtsp://10.0.0.7:554/..."},
	{"rtsp://10.0.0.7:554/user=bob_password=hunter2_channel=1", "rtsp://10.0.0.7:554/..."},
	{"rtsp://10.0.0.7/live/bob:hunter2/1", "rtsp://10.0.0.7/live/..."},
	{"rtsp://10.0.0.7/Streaming/User/bob/Password/hunter2", "rtsp://10.0.0.7/Streaming/..."},
	{"https://10.0.0.7/a/token-hunter2/b", "https://10.0.0.7/a/..."},
	{"https://10.0.0.7/a;hunter2/b", "https://10.0.0.7/..."},
	{"rtsp://bob:hunter2", "rtsp://bob:hunter2"}, /* a host and a port */
	{"rtsp://bob hunter2", "rtsp://..."},
};

Test(ops_video_url, credentials_are_not_shown)
{
	char shown[VIDEO_URL_SHOWN], text[400], hidden[400], expected[400];

	for (size_t i = 0; i < FRAG_COUNT_OF(urls); i++) {
		video_url_show(urls[i].url, shown);
		cr_expect_str_eq(shown, urls[i].shown, "%s: %s", urls[i].url, shown);
		if (strchr(urls[i].url, ' ') != NULL)
			continue;
		snprintf(text, sizeof(text), "Failed to open '%s' at %s\n", urls[i].url,
			 urls[i].url);
		snprintf(expected, sizeof(expected), "Failed to open '%s' at %s\n", urls[i].shown,
			 urls[i].shown);
		video_url_hide(text, hidden, sizeof(hidden));
		cr_expect_str_eq(hidden, expected, "%s", hidden);
	}
}

Test(ops_video_url, what_is_too_long_is_cut_off)
{
	static char url[5000] = "rtsp://bob:hunter2@10.0.0.7/";
	char shown[VIDEO_URL_SHOWN], hidden[20];

	memset(url + strlen(url), 'a', sizeof(url) - strlen(url) - 1);
	video_url_show(url, shown);
	cr_assert(strlen(shown) == sizeof(shown) - 1 && strstr(shown, "hunter2") == NULL);
	video_url_hide(url, hidden, sizeof(hidden));
	cr_assert_str_eq(hidden, "rtsp://10.0.0.7/aaa");
	video_url_hide("no url: //", hidden, sizeof(hidden));
	cr_assert_str_eq(hidden, "no url: //");
}

Test(ops_video_url, protocols_that_may_be_used)
{
	struct frag_err err = FRAG_ERR_INIT;
	char shown[VIDEO_URL_SHOWN];
	const char *protocols;

	cr_assert_eq(video_url_check("RTSP://h/a", &protocols, shown, &err), 0);
	cr_assert_eq(video_url_check("file:///etc/passwd", &protocols, shown, &err), -EINVAL);
	cr_assert(strstr(err.text, "passwd") == NULL && strstr(err.text, "rtsp://") != NULL);
}
