// SPDX-License-Identifier: Apache-2.0
#include "adopt_world.h"

/* Leases of a run that an earlier driver has seen end, while a host of it was out of reach. */

#define LEASE_S 5
#define EARLIER_NS ((LEASE_S * SECOND + FW_LEASE_AWAY_NS) * 101 / 100)

static const char leased[] = TWO_FRAGMENTS("", ", on_failure: {policy: migrate, lease: 5s}");

static void lose(struct world *w, uint64_t connection)
{
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = connection, .text = "reset"});
}

/* Where hosts may still run is kept when their run ends, and only then. */
WORLD_TEST(driver_adopt, where_leases_last_is_kept_when_their_run_ends, NULL)
{
	for (int is_lost = 0; is_lost < 2; is_lost++) {
		comes_back(w);
		speaking_run = 1;
		w->many_end = true;
		app(w, leased);
		written(w);
		both_come(w);
		both_prepare(w);
		both_run(w);
		w->kept_count = 0;
		strcpy(w->placed, "none");
		lose(w, 1); /* f1 has no lease, so that is the end of it */
		if (is_lost)
			lose(w, 2);
		else
			say_exit(w, 2, 2, 0, 0, "");
		written(w);
		cr_expect_not_null(kept(w, DRV_RECORD_END, 1), "%d: %s", is_lost, w->log);
		cr_expect_eq(kept(w, DRV_RECORD_PLACED, 1) != NULL, is_lost, "%s", w->log);
		cr_expect_str_eq(w->placed, is_lost ? "a\nb\n" : "none");
		world_fini(w);
	}
	comes_back(w);
}

/* The same of a run that this driver has adopted. */
WORLD_TEST(driver_adopt, where_leases_last_is_kept_of_what_was_adopted, comes_back)
{
	hello_reporting(w, 1, 1);
	hello_reporting(w, 2, 1);
	say_running(w, 1, 1, leased);
	say_reported(w, 1);
	say_running(w, 2, 2, leased);
	say_reported(w, 2);
	others_may_come(w);
	written(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	w->kept_count = 0;
	strcpy(w->placed, "none");
	lose(w, 1); /* f1 has no lease, so that is the end of it */
	lose(w, 2);
	written(w);
	cr_assert(w->ended, "%s", w->log);
	cr_expect_str_eq(w->placed, "a\nb\n");
}

/* The same for a run that is given up before its workers have come. */
WORLD_TEST(driver_adopt, that_leases_may_last_is_kept_of_what_is_given_up, NULL)
{
	for (int has_lease = 0; has_lease < 2; has_lease++) {
		comes_back(w);
		w->many_end = true;
		restore_graph(w, RUN, true, has_lease ? leased : two_fragments);
		pass(w, MS);
		w->kept_count = 0;
		strcpy(w->placed, "none");
		for (int stops = 0; stops < 2; stops++)
			step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
		cr_expect_not_null(kept(w, DRV_RECORD_END, RUN), "%s", w->log);
		cr_expect_str_eq(w->placed, has_lease ? "" : "none");
		world_fini(w);
	}
	comes_back(w);
}

/* It failed; one that is wanted starts anew with the next driver. */
static void restore_ended(struct world *w, const char *text, const char *placed, bool is_wanted)
{
	struct fragi_spec_source source = {.graph = {"app.yaml", text, strlen(text)}};
	struct drv_record record = {.kind = DRV_RECORD_RUN,
				    .run = RUN,
				    .epoch = RUN,
				    .name = "app",
				    .who = "user alice",
				    .is_wanted = is_wanted,
				    .ended_unix_ns = 1000};
	struct fw_message message = {.kind = FW_OUTCOME, .run = RUN};
	uint8_t *frame;
	void *packed;

	comes_back(w);
	if (placed != NULL)
		cr_assert_eq(
			drv_core_restore(w->core, &(struct drv_record){.kind = DRV_RECORD_PLACED,
								       .run = RUN,
								       .text = placed}),
			0);
	message.outcome.name = "app";
	message.outcome.reached = FW_ENDED;
	message.outcome.summary =
		(struct fragi_summary){.application = "app", .result = FRAGI_SUMMARY_FAILED};
	cr_assert_eq(fw_encode(&message, &frame, &record.outcome_bytes), 0);
	cr_assert_eq(fragi_source_pack(&source, &packed, &record.source_bytes), 0);
	record.outcome = frame;
	record.source = packed;
	cr_assert_eq(drv_core_restore(w->core, &record), 0);
	fragi_free(packed);
	fragi_free(frame);
	pass(w, MS);
	written(w);
}

static void restore_failed(struct world *w, const char *text, const char *placed)
{
	restore_ended(w, text, placed, true);
}

static void comes(struct world *w, uint64_t connection, const char *name, uint32_t reports)
{
	hello_by(w, connection, name, NULL,
		 (struct fw_hello){.worker_address = "127.0.0.1",
				   .node = "node",
				   .clock = "node",
				   .session = connection,
				   .reports = reports,
				   .last_name = name});
	written(w);
}

/* Whether it has been placed on one of the workers that have come, of which each takes all. */
static bool is_placed(struct world *w, uint64_t last)
{
	for (uint64_t c = 1; c <= last; c++)
		if (taken(w, c, FW_HOST_CREATE) != NULL)
			return true;
	return false;
}

/* Until the lease must be over, less a moment, and then. */
static void expect_it_waits(struct world *w, uint64_t last)
{
	while (w->now_ns + 200 * MS < w->core->born_ns + EARLIER_NS)
		pass_beating(w, 100 * MS, 1, last);
	cr_expect_not(is_placed(w, last), "%s", w->log);
	pass_beating(w, 300 * MS, 1, last);
	cr_expect(is_placed(w, last), "%s", w->log);
}

WORLD_TEST(driver_adopt, a_failed_run_starts_anew_when_its_leases_are_over, NULL)
{
	static const char *const here[] = {"a", "b"}; /* the first of two, the last of two */

	for (size_t i = 0; i < FRAG_COUNT_OF(here); i++) {
		restore_failed(w, leased, "a\nb\n");
		comes(w, 1, "c", 0);
		assert_has(w->log,
			   "a host of its last run may still run on a worker that is out of reach");
		comes(w, 2, here[i], 0);
		expect_it_waits(w, 2);
		world_fini(w);
	}
	comes_back(w);
}

WORLD_TEST(driver_adopt, it_starts_when_all_workers_that_ran_it_are_here, NULL)
{
	struct fw_message other = of_host(FW_HOST_REPORT, 1);

	restore_failed(w, leased, "a\nb\n");
	comes(w, 1, "a", 0);
	comes(w, 2, "b", 1); /* it has something else */
	cr_expect_not(is_placed(w, 2), "%s", w->log);
	other.run = RUN - 1;
	say_report_of(w, 2, other, "other", two_fragments, "f1");
	cr_expect_not(is_placed(w, 2), "%s", w->log);
	say_reported(w, 2);
	cr_expect(is_placed(w, 2), "%s", w->log);
}

WORLD_TEST(driver_adopt, a_host_that_is_reported_may_run_until_its_lease_is_over, NULL)
{
	restore_failed(w, leased, "a\nb\n");
	comes(w, 1, "b", 0);
	comes(w, 2, "a", 1);
	say_report(w, 2, 2, leased);
	say_reported(w, 2);
	written(w);
	cr_expect_not_null(taken(w, 2, FW_HOST_KILL), "%s", w->log);
	expect_it_waits(w, 2);
}

/* Its user starts it when the host has been reported, and is being killed. */
WORLD_TEST(driver_adopt, what_is_given_after_a_host_was_reported_waits_for_its_lease_too, NULL)
{
	for (int is_reported = 0; is_reported < 2; is_reported++) {
		restore_ended(w, leased, "a\nb\n", false);
		comes(w, 1, "b", 0);
		comes(w, 2, "a", (uint32_t)is_reported);
		if (is_reported) {
			say_report(w, 2, 2, leased);
			say_reported(w, 2);
			written(w);
			cr_expect_not_null(taken(w, 2, FW_HOST_KILL), "%s", w->log);
		}
		app(w, leased);
		written(w);
		if (is_reported)
			expect_it_waits(w, 2);
		else
			cr_expect(is_placed(w, 2), "%s", w->log);
		world_fini(w);
	}
	comes_back(w);
}

/* What waits for a lease is ended: the driver after this one hears of that lease, too. */
WORLD_TEST(driver_adopt, what_ends_while_it_waits_for_a_lease_leaves_it_to_the_next, NULL)
{
	for (int waits = 0; waits < 2; waits++) {
		restore_failed(w, leased, waits ? "a\nb\n" : NULL);
		w->many_end = true;
		comes(w, 1, "c", 0);
		cr_expect_eq(is_placed(w, 1), !waits, "%s", w->log);
		w->kept_count = 0;
		strcpy(w->placed, "none");
		for (int stops = 0; stops < 2; stops++)
			step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
		written(w);
		cr_expect_str_eq(w->placed, waits ? "" : "none", "%s", w->log);
		world_fini(w);
	}
	comes_back(w);
}

/* Nothing was noted: nothing was out of reach. Or it was noted that nobody knows where it ran. */
WORLD_TEST(driver_adopt, what_was_noted_of_where_it_ran_decides, NULL)
{
	restore_failed(w, leased, NULL);
	comes(w, 1, "c", 0);
	cr_expect(is_placed(w, 1), "%s", w->log);
	world_fini(w);

	restore_failed(w, two_fragments, "a\nb\n");
	comes(w, 1, "c", 0);
	cr_expect(is_placed(w, 1), "without leases: %s", w->log);
	world_fini(w);

	restore_failed(w, leased, "");
	comes(w, 1, "a", 0);
	comes(w, 2, "b", 0);
	expect_it_waits(w, 2);
}

/*
 * It ended while no driver was there, and whether another worker ran it since is not known: from
 * when the lease is over it starts where it was, before that anywhere.
 */
WORLD_TEST(driver_adopt, where_it_was_is_as_good_as_another_worker_when_its_lease_is_over, NULL)
{
	for (int is_early = 0; is_early < 2; is_early++) {
		comes_back(w);
		written(w);
		/* It is taken up when no other worker is waited for any more. */
		w->now_ns = w->core->born_ns + EARLIER_NS - w->core->config.adopt_ns - is_early;
		hello_reporting(w, 1, 1);
		hello_reporting(w, 2, 1);
		say_running(w, 1, 1, leased);
		say_reported(w, 1);
		say_running(w, 2, 2, leased);
		say_exit(w, 2, 2, 139, 11, RX_CRASH);
		written(w);
		say_reported(w, 2);
		others_may_come(w);
		cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
		pass_beating(w, 100 * MS, 1, 2);
		cr_expect_eq(strstr(w->log, "f2 goes on on worker") != NULL, is_early, "%s",
			     w->log);
		world_fini(w);
	}
	comes_back(w);
}
