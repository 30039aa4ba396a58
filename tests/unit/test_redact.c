// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "expected.h"

#include <fragctl/redact.h>

static void expect(const char *text, const char *shown)
{
	char *out;
	size_t size;
	FILE *file = open_memstream(&out, &size);

	ctl_redact(text, file);
	fclose(file);
	cr_expect_str_eq(out, shown, "of %s: %s", text, out);
	free(out);
}

Test(redact, what_looks_like_a_secret_is_left_out)
{
	static const char *const texts[][2] = {
		/* URLs */
		{"opens rtsp://user:pa:ss@10.0.0.7:554/a?x=1@2",
		 "opens rtsp://***@10.0.0.7:554/a?x=1@2"},
		{"rtsp://user@cam/ and http://u:p@b", "rtsp://***@cam/ and http://***@b"},
		{"\"value\": \"rtsp://u:p@cam\"", "\"value\": \"rtsp://***@cam\""},
		/* names, as logs, shells and JSON have them */
		{"password=hunter2 next", "password=*** next"},
		{"Password: hunter2, next", "Password: ***, next"},
		{"AWS_SECRET_ACCESS_KEY='a b/c' x", "AWS_SECRET_ACCESS_KEY='***' x"},
		{"{\"db-password\": \"correct horse\", \"n\": 1}",
		 "{\"db-password\": \"***\", \"n\": 1}"},
		{"{\"name\": \"f1.cam.password\", \"value\": \"hunter2\", \"who\": \"user a\"}",
		 "{\"name\": \"f1.cam.password\", \"value\": \"***\", \"who\": \"user a\"}"},
		{"{\"text\": \"{\\\"token\\\": \\\"abc\\\"}\"}",
		 "{\"text\": \"{\\\"token\\\": \\\"***\\\"}\"}"},
		{"\"pwd\": \"a\\\"b\\\\\", \"n\": 1", "\"pwd\": \"***\", \"n\": 1"},
		{"Authorization: Bearer abc.def", "Authorization: Bearer ***"},
		{"--password hunter2 -v", "--password *** -v"},
		{"?token=abc&x=1", "?token=***&x=1"},
		/* keys */
		{"key 0123456789abcdef0123456789ABCDEF.", "key ***."},
		{"a -----BEGIN PRIVATE KEY-----\\nMII\\n-----END PRIVATE KEY----- b", "a *** b"},
		{"-----BEGIN PRIVATE KEY-----\\nMII", "***"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		expect(texts[i][0], texts[i][1]);
}

Test(redact, everything_else_stays)
{
	static const char *const texts[] = {
		"",
		"opens http://10.0.0.7/a@b and mail@example.org",
		"the token is wrong; give --token-file",
		"\"passwords\" are not used here",
		"password= ",
		"0123456789abcdef0123456789abcde",
		"run 0123456789abcdef0123456789abcdefg",
		"source.tx -> sink.rx: 100 % of \"room\"",
		"://",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		expect(texts[i], texts[i]);
}

/* Texts of drawn pieces: what of them is left out is compared with a recorded text. */
Test(redact, drawn_texts_are_as_recorded)
{
	static const char *const before[] = {"", "", " ", "x", "--", "\"", "a://", "\\\"", "user@"};
	static const char *const names[] = {"password",
					    "PASSWD",
					    "pwd",
					    "my_token",
					    "token-2",
					    "db.secret",
					    "credentials",
					    "api_key",
					    "api-key",
					    "apikey",
					    "passphrase",
					    "private_key",
					    "access_keys",
					    "authorization",
					    "word",
					    "rtsp://",
					    "-----BEGIN X-----",
					    ""};
	static const char *const between[] = {"=",
					      ": ",
					      ":",
					      " = ",
					      " ",
					      "\": \"",
					      "\\\": \\\"",
					      "='",
					      "=\"",
					      "\", \"value\": \"",
					      "\", \"value\"",
					      "=\\",
					      ": Bearer ",
					      "=basic ",
					      "'",
					      ""};
	static const char *const values[] = {"hunter2",
					     "a b",
					     "",
					     "it\\\"s",
					     "u:p@host",
					     "u@h/p@q",
					     "\\n",
					     "\\",
					     "0123456789abcdef0123456789ABCDEF",
					     "0123456789abcdef0123456789ABCDE",
					     "MII-----END X-----"};
	static const char *const behind[] = {"",  " ",    "\"", "'",  ",", "; x",
					     ")", "\\\"", "\n", "-g", "@h"};
	char *text, *shown;
	size_t size, shown_size;
	FILE *out = open_memstream(&shown, &shown_size);

	for (uint32_t seed = 1; seed <= 500; seed++) {
		FILE *made = open_memstream(&text, &size);

		draw_from(seed);
		for (uint32_t i = 0, count = 1 + draw(2); i < count; i++) {
			fputs(DRAW_OF(before), made);
			fputs(DRAW_OF(names), made);
			fputs(DRAW_OF(between), made);
			fputs(DRAW_OF(values), made);
			fputs(DRAW_OF(behind), made);
		}
		fclose(made);
		fprintf(out, "%s\n> ", text);
		ctl_redact(text, out);
		fputc('\n', out);
		free(text);
	}
	fclose(out);
	expected_compare("fragctl/redacted", shown);
	free(shown);
}
