/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_REPORT_WORLD_H
#define TESTS_UNIT_REPORT_WORLD_H

#include "worker_world.h"

static struct fw_message kept_welcome;
static uint64_t told_epoch; /* in the last HELLO */

/* A driver that keeps hosts, and has proven that. Returns its HELLO's reports. */
static inline uint32_t attach_as(const char *proof, bool keeps_hosts)
{
	uint32_t reports;

	cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_CONNECTED,
					     .connection = seen_connection,
					     .text = "127.0.0.1",
					     .proof = proof}),
		     0);
	cr_assert_not_null(sent(FW_HELLO));
	reports = sent(FW_HELLO)->hello.reports;
	told_epoch = sent(FW_HELLO)->hello.last_epoch;
	kept_welcome = welcome;
	kept_welcome.welcome.keeps_hosts = keeps_hosts;
	from_driver(&kept_welcome);
	cr_assert_eq(wrk_core_session(core), WRK_SESSION_ATTACHED);
	return reports;
}

static inline void start_as(const char *proof)
{
	make_started(false);
	cr_expect_eq(attach_as(proof, true), 0);
	cr_expect_null(sent(FW_REPORTED), "there was nothing to report");
}

static inline void lose_driver(void)
{
	driver_lost("connection reset");
}

static inline void reconnect(void)
{
	int64_t until = now + WRK_BACKOFF_HOSTS_NS;

	while (!timers_until(until, WRK_DO_CONNECT)) {
		struct fw_message alive = {.kind = FW_BEAT};

		cr_assert_lt(now, until);
		from_host(&alive);
	}
}

static inline void request(enum fw_kind kind)
{
	struct fw_message message = host_frame(kind);

	from_driver(&message);
}

/* Its host is started for the driver that has proven that. */
static inline void run_host_as(const char *proof)
{
	start_as(proof);
	spawn(1);
	prepared();
	request(FW_HOST_START);
}

static inline struct fw_message past_of(uint64_t epoch)
{
	static struct fw_op_stats ops[] = {{.ticks = 30}, {.ticks = 17}};
	struct fw_message past = host_frame(FW_HOST_PAST);

	past.epoch = epoch;
	past.stats = (struct fw_host_stats){.final = true, .ops = ops, .op_count = 2};
	return past;
}

#endif
