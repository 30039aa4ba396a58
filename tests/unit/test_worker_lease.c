// SPDX-License-Identifier: Apache-2.0
#include "worker_world.h"

/* Hosts under a lease, and what renews it. */
TestSuite(worker_lease, .fini = finish);

#define LEASE_NS (10000 * MS)

static struct fw_message leased(uint64_t epoch)
{
	struct fw_message create = create_of(7, 1, epoch);

	create.create.lease_ns = LEASE_NS;
	return create;
}

/* A host that was wanted so long after HELLO was sent. Returns when its lease ends. */
static int64_t spawn_leased(int64_t after_ns)
{
	struct fw_message create = leased(1);
	int64_t until_ns;

	now += after_ns;
	from_driver(&create);
	cr_assert_not_null(did(WRK_DO_SPAWN));
	until_ns = did(WRK_DO_SPAWN)->lease_until_ns;
	spawned(seen_host);
	return until_ns;
}

static void answer(int64_t heard_ns, bool leaves)
{
	struct fw_message answered = {.kind = FW_BEAT};

	answered.beat.heard_ns = heard_ns;
	answered.beat.leaves = leaves;
	from_driver(&answered);
}

/* The next BEAT to the driver. Returns its time; the host's is in *out_until_ns. */
static int64_t next_beat(int64_t *out_until_ns)
{
	struct fw_message alive = {.kind = FW_BEAT};

	do {
		cr_assert(timers_until(now + 1000 * MS, WRK_DO_SEND_DRIVER));
	} while (sent(FW_BEAT) == NULL);
	for (int n = 0; did_nth(WRK_DO_SEND_HOST, n) != NULL; n++)
		if (did_nth(WRK_DO_SEND_HOST, n)->message->kind == FW_BEAT && out_until_ns != NULL)
			*out_until_ns = did_nth(WRK_DO_SEND_HOST, n)->message->beat.lease_until_ns;
	cr_assert_eq(sent(FW_BEAT)->beat.sent_ns, now);
	from_host(&alive);
	return now;
}

/* Everybody beats, and the driver says nothing that renews. Returns when the host is killed. */
static int64_t killed_at(int64_t until_ns)
{
	struct fw_message alive = {.kind = FW_BEAT};

	while (wrk_core_host_state(core, seen_host) != WRK_HOST_KILLED) {
		cr_assert_leq(now, until_ns, "it lives");
		from_host(&alive);
		now = wrk_core_deadline_ns(core);
		step((struct wrk_event){.kind = WRK_EVENT_TIMER});
		if (wrk_core_session(core) == WRK_SESSION_ATTACHED &&
		    wrk_core_host_state(core, seen_host) != WRK_HOST_KILLED)
			from_driver(&beat);
	}
	return now;
}

Test(worker_lease, begins_before_the_driver_can_have_heard_of_the_worker)
{
	int64_t hello_ns = now;

	start_attached(false);
	cr_expect_eq(spawn_leased(300 * MS), hello_ns + LEASE_NS);
	cr_expect_eq(killed_at(hello_ns + LEASE_NS), hello_ns + LEASE_NS);
	exited(0, SIGKILL, false);
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.failure.code, FRAGI_FAILURE_LEASE_ENDED);
	cr_expect_not_null(strstr(
		sent(FW_HOST_EXIT)->exit.failure.sentence,
		"was ended: its lease of 10.0 s is over: its driver was not heard for so long"));
}

/* A driver that gives it up may have sent WELCOME and HOST_CREATE long before they are read. */
Test(worker_lease, begins_with_hello_however_late_the_answer_is_read)
{
	struct fw_message create = leased(1);

	make_started(false);
	connected("127.0.0.1");
	now += LEASE_NS;
	step((struct wrk_event){.kind = WRK_EVENT_TIMER});
	from_driver(&welcome);
	from_driver(&create);
	cr_expect_null(did(WRK_DO_SPAWN));
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.failure.code, FRAGI_FAILURE_WORKER_BUSY);
}

Test(worker_lease, counts_from_when_the_beat_was_sent_that_the_driver_answers)
{
	int64_t sent_ns, until_ns = 0;

	start_attached(false);
	spawn_leased(0);
	sent_ns = next_beat(NULL);
	now += 200 * MS; /* the answer was under way */
	answer(sent_ns, false);
	next_beat(&until_ns);
	cr_expect_eq(until_ns, sent_ns + LEASE_NS);
	cr_expect_eq(killed_at(sent_ns + LEASE_NS), sent_ns + LEASE_NS);
}

Test(worker_lease, is_not_renewed_by_an_answer_to_nothing)
{
	int64_t sent_ns, until_ns = 0;

	start_attached(false);
	spawn_leased(0);
	sent_ns = next_beat(NULL);
	answer(sent_ns, false);
	answer(sent_ns + 5000 * MS, false);
	answer(sent_ns - 1, false);
	next_beat(&until_ns);
	cr_expect_eq(until_ns, sent_ns + LEASE_NS, "a driver cannot have heard what was not sent");
}

Test(worker_lease, runs_out_while_this_process_is_stopped)
{
	start_attached(false);
	spawn_leased(0);
	now += LEASE_NS; /* all of it in one step */
	step((struct wrk_event){.kind = WRK_EVENT_TIMER});
	cr_expect_eq(wrk_core_host_state(core, seen_host), WRK_HOST_KILLED);
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
}

Test(worker_lease, that_the_kernel_has_ended_is_named)
{
	start_attached(false);
	spawn_leased(0);
	now += LEASE_NS;
	/* The exit is seen first: this process was stopped, too. */
	exited(0, SIGKILL, false);
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.failure.code, FRAGI_FAILURE_LEASE_ENDED);
}

Test(worker_lease, that_is_over_already_begins_nothing)
{
	struct fw_message create = leased(1);

	start_attached(false);
	now += LEASE_NS; /* it was stopped, and reads now what was sent long ago */
	from_driver(&create);
	cr_expect_null(did(WRK_DO_SPAWN));
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.failure.code, FRAGI_FAILURE_WORKER_BUSY);
}

Test(worker_lease, of_no_length_never_ends)
{
	struct fw_message alive = {.kind = FW_BEAT};

	start_with_host(false, 1);
	cr_expect_eq(wrk_core_host_state(core, seen_host), WRK_HOST_UP);
	for (int i = 0; i < 400; i++) {
		from_host(&alive);
		from_driver(&beat);
		timers_until(now + 100 * MS, WRK_DO_EXIT);
	}
	cr_expect_eq(wrk_core_host_state(core, seen_host), WRK_HOST_UP);
}

static struct fw_message keeping_welcome;

static void attach_keeping(void)
{
	keeping_welcome = welcome;
	keeping_welcome.welcome.keeps_hosts = true;
	step((struct wrk_event){.kind = WRK_EVENT_CONNECTED,
				.connection = seen_connection,
				.text = "127.0.0.1",
				.proof = "key"});
	from_driver(&keeping_welcome);
}

/* A host of a driver that is lost, and another connection is there. Returns its lease's end. */
static int64_t comes_back(void)
{
	int64_t hello_ns = now;

	make_started(false);
	attach_keeping();
	spawn_leased(0);
	prepared();
	now += 1000 * MS;
	driver_lost("connection reset");
	cr_expect_null(did(WRK_DO_SIGNAL_HOST), "it runs on until its lease ends");
	cr_assert(timers_until(now + 2000 * MS, WRK_DO_CONNECT));
	attach_keeping();
	return hello_ns + LEASE_NS;
}

Test(worker_lease, ends_while_the_driver_is_away)
{
	int64_t hello_ns = now;

	make_started(false);
	attach_keeping();
	spawn_leased(0);
	driver_lost("connection reset");
	cr_expect_eq(killed_at(hello_ns + LEASE_NS), hello_ns + LEASE_NS);
}

Test(worker_lease, is_renewed_by_the_next_driver_once_that_has_adopted_the_host)
{
	int64_t until_ns = comes_back(), told_ns = 0, sent_ns = next_beat(&told_ns);
	struct fw_message adopted = host_frame(FW_HOST_ADOPTED);

	cr_expect_eq(told_ns, until_ns, "WELCOME is none for hosts of others");
	answer(sent_ns, false);
	next_beat(&told_ns);
	cr_expect_eq(told_ns, until_ns, "the driver may be about to kill it");
	from_driver(&adopted);
	next_beat(&told_ns);
	cr_expect_eq(told_ns, sent_ns + LEASE_NS);
}

Test(worker_lease, lasts_longer_where_the_driver_leaves_and_says_so)
{
	int64_t hello_ns = now, until_ns = 0;

	start_attached(false);
	spawn_leased(0);
	answer(0, true);
	next_beat(&until_ns);
	cr_expect_eq(until_ns, hello_ns + LEASE_NS + FW_LEASE_AWAY_NS);
}

/* What a driver has said once counts until another one is there. */
Test(worker_lease, lasts_longer_until_the_next_driver_is_there)
{
	int64_t hello_ns, sent_ns, until_ns = 0;

	start_attached(false);
	spawn_leased(0);
	answer(0, true);
	next_beat(NULL);
	sent_ns = next_beat(NULL); /* later than HELLO */
	answer(sent_ns, false);
	next_beat(&until_ns);
	cr_expect_eq(until_ns, sent_ns + LEASE_NS + FW_LEASE_AWAY_NS, "it leaves, and beats on");
	driver_lost("it closed");
	exited(0, SIGKILL, false);
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	hello_ns = now;
	attach();
	cr_expect_eq(spawn_leased(0), hello_ns + LEASE_NS);
}

/* Whichever was made first: none waits for a beat, or for the other one. */
Test(worker_lease, each_of_several_ends_at_its_own_time)
{
	static const int64_t leases[][2] = {{5007 * MS, 9013 * MS}, {9013 * MS, 5007 * MS}};

	for (size_t i = 0; i < 2; i++) {
		int64_t hello_ns, at_ns[2] = {0, 0};
		uint32_t hosts[2];

		if (i > 0)
			finish();
		hello_ns = now;
		start_attached(false);
		for (uint32_t k = 0; k < 2; k++) {
			struct fw_message create = create_of(7, k + 1, k + 1);

			create.create.lease_ns = leases[i][k];
			from_driver(&create);
			cr_assert_not_null(did(WRK_DO_SPAWN));
			hosts[k] = seen_host;
			spawned(seen_host);
		}
		while (at_ns[0] == 0 || at_ns[1] == 0) {
			struct fw_message alive = {.kind = FW_BEAT};

			cr_assert_leq(now, hello_ns + 9013 * MS, "%zu: one lives", i);
			now = wrk_core_deadline_ns(core);
			step((struct wrk_event){.kind = WRK_EVENT_TIMER});
			from_driver(&beat);
			for (uint32_t k = 0; k < 2; k++) {
				seen_host = hosts[k];
				if (wrk_core_host_state(core, seen_host) != WRK_HOST_KILLED)
					from_host(&alive);
				else if (at_ns[k] == 0)
					at_ns[k] = now;
			}
		}
		for (uint32_t k = 0; k < 2; k++)
			cr_expect_eq(at_ns[k], hello_ns + leases[i][k], "%zu, host %u: %lld ms", i,
				     k, (long long)((at_ns[k] - hello_ns) / MS));
	}
}
