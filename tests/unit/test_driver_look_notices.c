// SPDX-License-Identifier: Apache-2.0
#include "adopt_world.h"
#include "look_world.h"

/* The next event of a kind behind *last; NULL: there is none. */
static const char *next_of(const struct world *w, enum fw_notice_kind kind, uint64_t *last)
{
	const struct drv_notice *notice;

	while ((notice = drv_history_after(&w->core->history, *last)) != NULL) {
		*last = notice->number;
		if (notice->kind == kind)
			return notice->text;
	}
	return NULL;
}

static const char *next_loss(const struct world *w, uint64_t *last)
{
	return next_of(w, FW_NOTICE_LOSS, last);
}

static void count(struct world *w, int64_t ns, uint64_t messages, uint64_t dropped)
{
	struct report sender = {.messages = messages + dropped};

	pass_beating(w, ns, 1, 2);
	report(w, 2, false, (struct report){.messages = messages, .dropped = dropped});
	report(w, 1, false, sender);
}

static void expect_loss(const struct world *w, uint64_t *last, const char *text)
{
	const char *found = next_loss(w, last);

	cr_assert_not_null(found);
	cr_expect_str_eq(found, text);
}

WORLD_TEST(driver_look, drops_are_an_event_when_they_begin_and_when_they_end, NULL)
{
	uint64_t last = 0;

	two_run(w, two_fragments);
	count(w, SECOND, 100, 0);
	cr_expect_null(next_loss(w, &last));
	count(w, 500 * MS, 140, 10);
	cr_expect_null(next_loss(w, &last), "it looks once a second");
	count(w, 500 * MS, 180, 20);
	expect_loss(w, &last, "20 of 100 /s dropped (stale): f1.tx.out -> f2.rx.in");
	for (uint64_t i = 1; i <= 8; i++) /* and so on, with pauses */
		count(w, 2 * SECOND, 180 + 100 * i, 20 + 10 * (i / 2));
	cr_expect_null(next_loss(w, &last), "it goes on");
	count(w, 3 * SECOND, 1100, 60);
	cr_expect_null(next_loss(w, &last), "it may go on");
	count(w, 2 * SECOND, 1200, 60);
	expect_loss(w, &last, "no more dropped, after 60 in 17.0 s: f1.tx.out -> f2.rx.in");
	count(w, 20 * SECOND, 2000, 60);
	cr_expect_null(next_loss(w, &last));
	count(w, 2 * SECOND, 2000, 62);
	expect_loss(w, &last, "1 of 1 /s dropped (stale): f1.tx.out -> f2.rx.in");
	count(w, 5 * SECOND, 2100, 62);
	expect_loss(w, &last, "no more dropped, after 2 in 2.0 s: f1.tx.out -> f2.rx.in");
}

/* What was dropped before the last look is not counted: then the other reason had more. */
WORLD_TEST(driver_look, drops_have_the_reason_of_the_most_since_the_last_look, NULL)
{
	static const struct {
		uint64_t stale, late;
		const char *text;
	} moments[] = {
		{40, 10, "50 of 100 /s dropped (stale): f1.tx.out -> f2.rx.in"},
		{43, 27, "20 of 100 /s dropped (late): f1.tx.out -> f2.rx.in"},
		{60, 30, "20 of 100 /s dropped (stale): f1.tx.out -> f2.rx.in"},
	};
	uint64_t last = 0, messages = 0;

	two_run(w, two_fragments);
	for (size_t i = 0; i < FRAG_COUNT_OF(moments); i++) {
		struct report sums = {.dropped = moments[i].stale, .late = moments[i].late};

		messages += 100;
		pass_beating(w, SECOND, 1, 2);
		sums.messages = messages - sums.dropped - sums.late;
		report(w, 2, false, sums);
		report(w, 1, false, (struct report){.messages = messages});
		expect_loss(w, &last, moments[i].text);
		for (int k = 0; k < 3; k++) {
			pass_beating(w, 3 * SECOND, 1, 2);
			report(w, 2, false, sums);
			report(w, 1, false, (struct report){.messages = messages});
		}
		cr_assert_not_null(next_loss(w, &last), "%zu: it has ended", i);
	}
}

/* A flow that keeps the latest message drops the others by being full, as it is meant to. */
WORLD_TEST(driver_look, what_a_flow_is_to_drop_is_no_event, NULL)
{
	static const char *const policies[] = {"latest", "pop"};
	char text[512];

	for (size_t i = 0; i < FRAG_COUNT_OF(policies); i++) {
		struct fw_message message = of_host(FW_HOST_STATS, 2);
		struct fragi_flow_stats row = {.arrived = 100, .delivered = 90};
		uint64_t last = 0;

		const char *loss;

		row.rx_dropped[FRAGI_DROP_QUEUE_FULL] = 6;
		row.rx_dropped[FRAGI_DROP_SUPERSEDED] = 4;
		snprintf(text, sizeof(text),
			 "frag: 1\napplication: app\nfragments:\n"
			 "  f1: {operators: {tx: {type: t}}}\n"
			 "  f2: {operators: {rx: {type: t}}}\n"
			 "flows: [{from: f1.tx.out, to: f2.rx.in, policy: %s}]\n",
			 policies[i]);
		two_run(w, text);
		pass_beating(w, SECOND, 1, 2);
		report(w, 1, false, (struct report){.messages = 100});
		message.stats = (struct fw_host_stats){.flows = &row, .flow_count = 1};
		pass_beating(w, SECOND, 1, 2);
		say(w, 2, &message);
		loss = next_loss(w, &last);
		cr_assert_eq(loss != NULL, i == 1, "%s", policies[i]);
		if (loss != NULL)
			assert_has(loss, fragi_drop_name(FRAGI_DROP_QUEUE_FULL));
		world_fini(w);
	}
	world_init(w);
}

/* All that the operators removed since the last event are in one, which names one of them. */
WORLD_TEST(driver_look, files_that_are_removed_are_an_event, NULL)
{
	static const uint64_t removed[] = {0, 2, 2, 7, 7, 7}, by_sender[] = {0, 0, 0, 0, 3, 3};
	uint64_t last = 0;

	two_run(w, two_fragments);
	for (size_t i = 0; i < FRAG_COUNT_OF(removed); i++) {
		pass_beating(w, SECOND, 1, 2);
		report(w, 2, false, (struct report){.messages = i, .removed = removed[i]});
		report(w, 1, false, (struct report){.messages = i, .removed = by_sender[i]});
		if (i % 2 == 0)
			cr_expect_null(next_loss(w, &last), "%zu: nothing was removed", i);
		else
			expect_loss(
				w, &last,
				i == 1   ? "2 removed to keep to a limit of disk: files of f2.rx"
				: i == 3 ? "5 removed to keep to a limit of disk: files of f2.rx"
					 : "3 removed to keep to a limit of disk: files of f2.rx");
	}
}

#define WHOSE "the clock of f1 on worker a, as f2 on worker b compares it"

WORLD_TEST(driver_look, a_lock_on_a_clock_that_is_lost_is_an_event, NULL)
{
	static const struct {
		uint64_t locked, stepped, silent;
		bool others; /* have had their events */
		const char *text;
	} moments[] = {
		{.locked = 0},
		{.locked = 1}, /* for the first time, which is no news */
		{.locked = 2,
		 .stepped = 1,
		 .text = "lost, and locked again (one of them has stepped): " WHOSE},
		{.locked = 2, .stepped = 1},
		{.locked = 2,
		 .stepped = 1,
		 .silent = 1,
		 .text = "lost (it does not answer): " WHOSE},
		{.locked = 2, .stepped = 1, .silent = 1},
		{.locked = 3, .stepped = 2, .silent = 1}, /* and lost again before it was seen */
		{.locked = 4,
		 .stepped = 2,
		 .silent = 1,
		 .text = "locked again, after 3.0 s: " WHOSE},
		{.locked = 4, .stepped = 3, .silent = 1, .others = true},
		{.locked = 4,
		 .stepped = 3,
		 .silent = 1,
		 .text = "lost (one of them has stepped): " WHOSE},
	};
	uint64_t last = 0;

	two_run(w, two_fragments);
	for (size_t i = 0; i < FRAG_COUNT_OF(moments); i++) {
		const char *text;

		if (moments[i].others)
			w->core->losses_ns = w->core->real_ns + 1500 * MS;
		pass_beating(w, SECOND, 1, 2);
		report(w, 2, false,
		       (struct report){.messages = i,
				       .locked = moments[i].locked,
				       .stepped = moments[i].stepped,
				       .silent = moments[i].silent});
		report(w, 1, false, (struct report){.messages = i});
		text = next_of(w, FW_NOTICE_CLOCK, &last);
		cr_assert_eq(text != NULL, moments[i].text != NULL, "%zu: %s", i, text);
		if (text != NULL)
			cr_expect_str_eq(text, moments[i].text, "%s", text);
		cr_expect_null(next_of(w, FW_NOTICE_CLOCK, &last), "%zu", i);
	}
}

WORLD_TEST(driver_look, what_a_crash_loses_is_an_event, NULL)
{
	uint64_t last = 0;

	two_run(w, receiver_restarts);
	count(w, SECOND, 100, 0);
	report(w, 1, false, (struct report){.messages = 107});
	report(w, 2, true, (struct report){.messages = 103, .waiting = 3});
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	pass_beating(w, SECOND, 1, 2);
	cr_assert_not_null(taken(w, 2, FW_HOST_CREATE));
	speaking_epoch[2] = 2;
	say_prepared(w, 2, 2, "f2", false);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_STARTED);
	cr_expect_null(next_loss(w, &last));
	w->core->losses_ns = w->core->real_ns + 1500 * MS;
	for (uint64_t i = 0; i < 2; i++) {
		cr_expect_null(next_loss(w, &last), "others have had their events");
		pass_beating(w, SECOND, 1, 2);
		report(w, 2, false, (struct report){.messages = 6 + 10 * i});
		report(w, 1, false, (struct report){.messages = 117 + 10 * i});
	}
	expect_loss(w, &last, "3 lost: f1.tx.out -> f2.rx.in: " RX_CRASH);
	cr_expect_null(next_loss(w, &last));
}

/* What a host had counted when its application was adopted is no news. */
WORLD_TEST(driver_look, what_an_adopted_application_had_lost_is_no_event, NULL)
{
	static const struct report before = {
		.messages = 10, .dropped = 3, .locked = 4, .stepped = 1, .silent = 2};
	struct report later = before;
	uint64_t last = 0;
	const char *text;

	comes_back(w);
	adopt_two(w);
	pass_beating(w, SECOND, 1, 2);
	report(w, 2, false, before);
	report(w, 1, false, (struct report){.messages = 13});
	pass_beating(w, 2 * SECOND, 1, 2);
	report(w, 2, false, before);
	cr_expect_null(next_of(w, FW_NOTICE_CLOCK, &last));
	last = 0;
	cr_expect_null(next_loss(w, &last));
	later.silent = 3;
	pass_beating(w, SECOND, 1, 2);
	report(w, 2, false, later);
	last = 0;
	text = next_of(w, FW_NOTICE_CLOCK, &last);
	cr_assert_not_null(text);
	cr_expect_str_eq(text, "lost (it does not answer): " WHOSE);
	speaking_run = 1;
}
