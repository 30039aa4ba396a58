// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include <base/identity.h>
#include <base/timeline.h>

Test(identity, memory_is_of_one_machine_namespace_and_user)
{
	char own[FRAGI_IDENTITY_MEMORY_SIZE], again[FRAGI_IDENTITY_MEMORY_SIZE];
	char other[FRAGI_IDENTITY_MEMORY_SIZE];

	cr_assert_eq(fragi_identity_memory(getuid(), own), 0);
	cr_assert_eq(fragi_identity_memory(getuid(), again), 0);
	cr_assert_eq(fragi_identity_memory(getuid() + 1, other), 0);
	cr_expect_neq(own[0], '\0');
	cr_expect_eq(fragi_identity_apart(own, again), FRAGI_APART_NOT);
	cr_expect_eq(fragi_identity_apart(own, other), FRAGI_APART_USER);
	cr_expect_eq(strlen(own) < sizeof(own) - 1, 1, "%s", own);
}

Test(identity, what_keeps_two_hosts_apart)
{
	static const struct {
		const char *a, *b;
		enum fragi_apart apart;
	} cases[] = {
		{"m.1.2.3", "m.1.2.3", FRAGI_APART_NOT},
		{"m.1.2.3", "n.1.2.3", FRAGI_APART_MACHINE},
		{"m.1.2.3", "mm.1.2.3", FRAGI_APART_MACHINE},
		{"m.1.2.3", "m.9.2.3", FRAGI_APART_NETWORK},
		{"m.1.2.3", "m.11.2.3", FRAGI_APART_NETWORK},
		{"m.1.2.3", "m.1.9.3", FRAGI_APART_USER},
		{"m.1.2.3", "m.1.2.4", FRAGI_APART_USER},
		{"m.1.2.3", "m.1.2.33", FRAGI_APART_USER},
		{"m.1.2.3", "m.1.2.3.more", FRAGI_APART_USER},
		{"", "m.1.2.3", FRAGI_APART_UNKNOWN},
		{"m.1.2.3", "", FRAGI_APART_UNKNOWN},
		{"", "", FRAGI_APART_UNKNOWN},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		cr_expect_eq(fragi_identity_apart(cases[i].a, cases[i].b), cases[i].apart, "%s, %s",
			     cases[i].a, cases[i].b);
		cr_expect_eq(fragi_identity_apart(cases[i].b, cases[i].a), cases[i].apart, "%s, %s",
			     cases[i].b, cases[i].a);
	}
}

Test(identity, the_time_of_a_peer_is_known_where_both_read_one_clock)
{
	static const struct {
		const char *ours, *theirs;
		bool is_known;
	} cases[] = {
		{"m.4", "m.4", true}, {"m.4", "m.5", false}, {"m.4", "n.4", false},
		{"m.4", "", false},   {"", "m.4", false},    {"", "", false},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct fragi_timeline peer =
			fragi_timeline_between(cases[i].ours, cases[i].theirs);
		struct fragi_time time = {-1, -1};

		cr_expect_eq(fragi_timeline_convert(&peer, 17, &time), cases[i].is_known, "%zu", i);
		cr_expect_eq(time.ns, cases[i].is_known ? 17 : -1, "%zu", i);
		cr_expect_eq(time.error_ns, cases[i].is_known ? 0 : -1, "%zu", i);
	}
}

Test(identity, a_time_of_a_peer_may_be_any)
{
	const struct fragi_timeline peer = {
		.state = FRAGI_TIMELINE_ESTIMATED,
		.line = {.offset_ns = 5, .low_ns = 3, .high_ns = 6},
	};
	struct fragi_time time;

	cr_expect_not(fragi_timeline_convert(&peer, INT64_MAX, &time));
	cr_expect_not(fragi_timeline_convert(&peer, INT64_MIN, &time));
	cr_expect_not(fragi_timeline_convert(&peer, FRAGI_TIMELINE_REACH_NS + 1, &time));
	cr_expect(fragi_timeline_convert(&peer, FRAGI_TIMELINE_REACH_NS, &time));
	cr_assert(fragi_timeline_convert(&peer, -20, &time));
	cr_expect_eq(time.ns, -15);
	cr_expect_eq(time.error_ns, 2);
}
