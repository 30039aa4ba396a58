// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "video/url.h"

Test(ops_video_url, credentials_are_not_shown)
{
	static const struct {
		const char *url, *shown;
	} urls[] = {
		{"rtsp://bob:hunter2@10.0.0.7/stream1", "rtsp://10.0.0.7/stream1"},
		{"rtsp://bob hunter2", "rtsp://..."},
		{"rtsp://bob:hun ter'2@10.0.0.7/a", "rtsp://10.0.0.7/a"},
	};
	static char url[5000] = "rtsp://bob:hunter2@10.0.0.7/";
	char shown[VIDEO_URL_SHOWN];

	for (size_t i = 0; i < FRAG_COUNT_OF(urls); i++) {
		video_url_show(urls[i].url, shown);
		cr_expect_str_eq(shown, urls[i].shown, "%s: %s", urls[i].url, shown);
	}
	memset(url + strlen(url), 'a', sizeof(url) - strlen(url) - 1);
	video_url_show(url, shown);
	cr_assert(strlen(shown) == sizeof(shown) - 1 && strstr(shown, "hunter2") == NULL);
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
