// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <base/units.h>

Test(address, either_part_may_be_left_out)
{
	static const struct {
		const char *text, *host;
		uint16_t port, port_last;
	} cases[] = {
		{NULL, "127.0.0.1", 57777, 57777},
		{"", "127.0.0.1", 57777, 57777},
		{":1234", "127.0.0.1", 1234, 1234},
		{":0", "127.0.0.1", 0, 0},
		{"10.0.0.1", "10.0.0.1", 57777, 57777},
		{"node-2.lan:80", "node-2.lan", 80, 80},
		{"[::1]:99", "::1", 99, 99},
		{"[fe80::1%eth0]", "fe80::1%eth0", 57777, 57777},
		{"10.0.0.1:10000-32767", "10.0.0.1", 10000, 32767},
	};
	struct fragi_address address;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert_eq(fragi_parse_address(cases[i].text, "127.0.0.1", 57777, &address, NULL),
			     0, "%s", cases[i].text);
		cr_expect_str_eq(address.host, cases[i].host);
		cr_expect_eq(address.port, cases[i].port);
		cr_expect_eq(address.port_last, cases[i].port_last);
	}
}

Test(address, what_is_none_is_said)
{
	static const char *const bad[] = {"::1",     "[::1",     "[::1]x",  "300.1.1.1", "57777",
					  "host:",   "host:x",   ":70000",  ":5-",       ":5-4",
					  ":0-10",   "[]",       "[1.2.3]", "a b",       "-host:1",
					  "host:-1", "[::1%]:1", "x:1:2"};
	struct fragi_address address, kept;
	struct frag_err err;
	char longest[400];

	memset(&address, 7, sizeof(address));
	kept = address;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&err, 0, sizeof(err));
		cr_expect_eq(fragi_parse_address(bad[i], "h", 1, &address, &err), -EINVAL, "%s",
			     bad[i]);
		cr_expect_not_null(strstr(err.text, bad[i]), "%s", err.text);
	}
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	cr_expect_eq(fragi_parse_address(longest, "h", 1, &address, NULL), -EINVAL);
	cr_expect_eq(memcmp(&address, &kept, sizeof(address)), 0);
}

Test(address, loopback)
{
	static const char *const loopback[] = {"127.0.0.1", "127.9.9.9", "::1", "localhost",
					       "::ffff:127.0.0.1"};
	static const char *const others[] = {"10.0.0.1", "::", "0.0.0.0", "node",
					     "::ffff:10.0.0.1"};
	struct fragi_address address = {0};

	for (size_t i = 0; i < 5; i++) {
		strcpy(address.host, loopback[i]);
		cr_expect(fragi_address_is_loopback(&address), "%s", loopback[i]);
		strcpy(address.host, others[i]);
		cr_expect_not(fragi_address_is_loopback(&address), "%s", others[i]);
	}
}
