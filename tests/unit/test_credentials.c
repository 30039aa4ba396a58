// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <frag/error.h>

static const struct {
	const char *text, *shown;
} urls[] = {
	{"rtsp://10.0.0.7/stream1", "rtsp://10.0.0.7/stream1"},
	{"rtsp://cam-1.lan:8554/live/ch00_0.264", "rtsp://cam-1.lan:8554/live/ch00_0.264"},
	{"rtsp://[fe80::1%25eth0]:554/a", "rtsp://[fe80::1%25eth0]:554/a"},
	{"udp://@239.0.0.1:1234", "udp://239.0.0.1:1234"},
	{"rtsp://10.0.0.7/axis-media/media.amp", "rtsp://10.0.0.7/axis-media/media.amp"},
	{"rtsp://10.0.0.7/Streaming/Channels/101", "rtsp://10.0.0.7/Streaming/Channels/101"},
	/* before the host, also where the password has characters that belong elsewhere */
	{"rtsp://bob:hunter2@10.0.0.7/stream1", "rtsp://10.0.0.7/stream1"},
	{"RTSP://bob:hunter2@10.0.0.7/stream1", "RTSP://10.0.0.7/stream1"},
	{"rtsp://bob@10.0.0.7", "rtsp://10.0.0.7"},
	{"rtsp://bob:hun/ter2@10.0.0.7/a", "rtsp://10.0.0.7/a"},
	{"rtsp://bob:hun?ter2@10.0.0.7/a", "rtsp://10.0.0.7/a"},
	{"rtsp://bob:hun#ter2@10.0.0.7/a", "rtsp://10.0.0.7/a"},
	{"rtsp://bob:hun@ter2@10.0.0.7/a", "rtsp://10.0.0.7/a"},
	{"rtsp://bob:hun'ter2@10.0.0.7/a", "rtsp://10.0.0.7/a"},
	{"rtsp://bob:hun\"ter2@10.0.0.7/a", "rtsp://10.0.0.7/a"},
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
	{"rtsps://10.0.0.7:7441/hUnTer2aBcDeFgHi", "rtsps://10.0.0.7:7441/..."},
	{"rtsp://bob:hunter2", "rtsp://bob:hunter2"}, /* a host and a port */
	/* mistyped */
	{"rtps://bob:hunter2@10.0.0.7/a", "rtps://10.0.0.7/a"},
	{"rtsp:/bob:hunter2@10.0.0.7/a", "rtsp:/10.0.0.7/a"},
	{"rtsp:///bob:hunter2@10.0.0.7/a", "rtsp:///10.0.0.7/a"},
	{"rtsp:bob:hunter2@10.0.0.7/a", "10.0.0.7/a"},
	{"rtsp//bob:hunter2@10.0.0.7/a", "rtsp//10.0.0.7/a"},
	{"bob:hunter2@10.0.0.7/a", "10.0.0.7/a"},
	{"rtsp:/10.0.0.7/user=bob&password=hunter2", "rtsp:/10.0.0.7/..."},
};

Test(credentials, are_in_no_url_of_a_text)
{
	static const char *const sentences[] = {"%s",
						"cannot play %s: gone; check url and the sender",
						"--set f.cam.url=%s: not understood",
						"parameter \"transport\": \"%s\" is no choice",
						"Failed to open '%s' at %s.\n",
						"{\"url\": \"%s\", \"to\": \"bob@lan\"} (%s)"};

	for (size_t i = 0; i < FRAG_COUNT_OF(urls); i++) {
		for (size_t n = 0; n < FRAG_COUNT_OF(sentences); n++) {
			char text[400], expected[400];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
			snprintf(text, sizeof(text), sentences[n], urls[i].text, urls[i].text);
			snprintf(expected, sizeof(expected), sentences[n], urls[i].shown,
				 urls[i].shown);
#pragma GCC diagnostic pop
			frag_hide_credentials(text, sizeof(text));
			cr_expect_str_eq(text, expected, "%s: %s", urls[i].text, text);
			frag_hide_credentials(text,
					      sizeof(text)); /* as a log line quotes an error */
			cr_expect_str_eq(text, expected, "%s, twice: %s", urls[i].text, text);
		}
	}
}

Test(credentials, other_texts_stay)
{
	static const char *const texts[] = {
		"",
		":",
		"no url: //",
		"app.yaml:3:5: f.tx: unknown key \"a\"; valid keys: default",
		"fragment1.tx.out -> fragment2.rx.in: a:b:c 12:30:45.120Z",
		"[tcp @ 0x7f4a] Connection to tcp://127.0.0.1:9 failed: Connection refused",
		"give http://, https://, rtsp://, rtsps:// or udp://; correct it",
		"{\"to\":\"bob@lan\"} mail bob@lan, image frag:1 @ lan",
		"LD_LIBRARY_PATH=/usr/lib:/home/user/lib",
		"module::test 10.0.0.7:11022 [::1]:80 C:/user",
		"\"rtsp://10.0.0.7/a",
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(texts); i++) {
		char text[200];

		snprintf(text, sizeof(text), "%s", texts[i]);
		frag_hide_credentials(text, sizeof(text));
		cr_expect_str_eq(text, texts[i], "%s", text);
	}
}

Test(credentials, several_in_a_text)
{
	char text[] = "url=rtsp://a:b@h/1 alt='rtsp://c:d e@h/2' directory=\"http://f:g@h/3\"!";

	frag_hide_credentials(text, sizeof(text) + 1);
	cr_assert_str_eq(text, "url=rtsp://h/1 alt='rtsp://h/2' directory=\"http://h/3\"!");
}

/* The @ of what was cut off is missing. */
Test(credentials, a_url_that_is_cut_off_shows_no_host)
{
	char text[] = "see rtsp://h/1 and rtsp://bob:hunter2";

	frag_hide_credentials(text, 0);
	cr_assert_str_eq(text, "see rtsp://h/1 and rtsp://bob:hunter2");
	frag_hide_credentials(text, sizeof(text));
	cr_assert_str_eq(text, "see rtsp://h/1 and rtsp://...");
}

/* Dots stand where a text was cut that another text quotes. */
Test(credentials, a_url_with_dots_at_its_end_shows_no_host)
{
	static const char *const texts[][2] = {
		{"see rtsp://bob:hunt...", "see rtsp://..."},
		{"see rtsp://bob:hunt)...", "see rtsp://..."},
		{"\"rtsp://bob:hunt...\" is no number", "\"rtsp://...\" is no number"},
		{"rtsp://bob:hunt...; correct it", "rtsp://...; correct it"},
		{"rtsp://bob:hunter2@h/1...", "rtsp://h/1..."},
		{"rtsp://h/1; and more...", "rtsp://h/1; and more..."},
		{"rtsp://bob:hunt/...", "rtsp://..."},
		/* hidden before */
		{"rtsp://...", "rtsp://..."},
		{"cannot play rtsp://h:80/clip/...: no", "cannot play rtsp://h:80/clip/...: no"},
		{"rtsp://[::1]:80/clip/...", "rtsp://[::1]:80/clip/..."},
		{"rtsp://h/...", "rtsp://h/..."},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(texts); i++) {
		char text[64];

		snprintf(text, sizeof(text), "%s", texts[i][0]);
		frag_hide_credentials(text, sizeof(text));
		cr_expect_str_eq(text, texts[i][1], "%s: %s", texts[i][0], text);
	}
}

/* It may be cut behind what else belongs to the sentence around it. */
Test(credentials, a_password_that_ends_with_a_bracket_is_cut_too)
{
	char text[] = "see rtsp://bob:hunt)";

	frag_hide_credentials(text, sizeof(text));
	cr_assert_str_eq(text, "see rtsp://...");
}

/* Errors are where most texts of users come by. */
Test(credentials, are_in_no_error)
{
	struct frag_err err = FRAG_ERR_INIT, cut = FRAG_ERR_INIT;
	char filler[sizeof(err.text)] = "";

	frag_err_set(&err, -EINVAL, "\"%s\" is no number", "rtsp://bob:hunter2@h/1");
	cr_assert_str_eq(err.text, "\"rtsp://h/1\" is no number");
	memset(filler, 'a', sizeof(filler) - 20);
	frag_err_set(&cut, -EINVAL, "%s rtsp://bob:hunter2@h", filler);
	cr_assert(strstr(cut.text, "rtsp://...") != NULL && strstr(cut.text, "bob") == NULL);
}
