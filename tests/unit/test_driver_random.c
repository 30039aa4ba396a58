// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/*
 * Workers that say anything at any time, in any order: no move that is not in a table, every sum
 * balances, and whatever happened, a stop ends the application.
 */
static uint64_t random_below(uint64_t *seed, uint64_t n)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (*seed >> 33) % n;
}

static void say_anything(struct world *w, uint64_t *seed)
{
	uint64_t connection = 1 + random_below(seed, 3);
	uint32_t host = 1 + (uint32_t)random_below(seed, 3);
	bool honest = random_below(seed, 3) != 0;
	struct fw_message message;

	if (honest)
		host = (uint32_t)connection;
	switch (random_below(seed, 14)) {
	case 0:
		hello(w, connection, connection == 1 ? "a" : "b", connection == 1 ? "f1" : "f2");
		break;
	case 1:
		say_prepared(w, connection, host, host == 1 ? "f1" : "f2", host == 1);
		break;
	case 2:
		say_result(w, connection, host, FW_HOST_WIRED);
		break;
	case 3:
		say_result(w, connection, host, FW_HOST_STARTED);
		break;
	case 4:
		message = of_host(FW_HOST_EVENT, host);
		message.event.state = (enum fw_host_state)(1 + random_below(seed, 6));
		message.event.peer = (uint32_t)random_below(seed, 4);
		message.event.sent = random_below(seed, 3);
		message.event.delivered = random_below(seed, 3);
		say(w, connection, &message);
		break;
	case 5:
		say_stats(w, connection, host, random_below(seed, 4) == 0, random_below(seed, 100),
			  random_below(seed, 100));
		break;
	case 6:
		if (random_below(seed, 4) == 0)
			say_exit(w, connection, host, (int)random_below(seed, 4), 0,
				 random_below(seed, 2) ? "it ended" : "");
		break;
	case 7:
		if (random_below(seed, 8) == 0)
			step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED,
						    .connection = connection,
						    .text = "gone"});
		break;
	case 8:
		if (random_below(seed, 16) == 0)
			step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
		break;
	case 9:
		pass(w, (int64_t)random_below(seed, 2000) * MS);
		break;
	case 10:
		message = of_host(random_below(seed, 2) ? FW_HOST_STARTED : FW_HOST_PREPARED, host);
		if (random_below(seed, 10) == 0)
			say(w, connection, &message);
		break;
	case 11:
		message = (struct fw_message){
			.kind = (enum fw_kind)(FW_HELLO +
					       random_below(seed, FW_HOST_EXIT - FW_HELLO + 1))};
		if (message.kind == FW_HELLO)
			message.hello = (struct fw_hello){.major = (uint32_t)random_below(seed, 3),
							  .role = FW_ROLE_WORKER};
		if (message.kind != FW_HOST_EVENT && random_below(seed, 20) == 0)
			say(w, connection, &message);
		break;
	default:
		for (uint64_t c = 1; c <= 3; c++)
			beat(w, c);
		pass(w, (int64_t)random_below(seed, 300) * MS);
		break;
	}
}

/* Two workers that go along most of the time get far enough for anything to matter. */
static void go_along(struct world *w, uint64_t *seed)
{
	uint64_t far = random_below(seed, 4);

	both_come(w);
	if (far < 1 || drv_core_app_state(w->core) != DRV_APP_PREPARING)
		return;
	both_prepare(w);
	if (far < 2 || drv_core_app_state(w->core) != DRV_APP_WIRING)
		return;
	say_result(w, 1, 1, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_WIRED);
	if (far < 3 || drv_core_app_state(w->core) != DRV_APP_STARTING)
		return;
	say_result(w, 1, 1, FW_HOST_STARTED);
	say_result(w, 2, 2, FW_HOST_STARTED);
}

Test(driver_random, anything_at_any_time_ends_in_order, .timeout = 120)
{
	uint64_t results[3] = {0};

	for (uint64_t seed = 1; seed <= 3000; seed++) {
		struct world *w = malloc(sizeof(*w));
		uint64_t state = seed;

		fragi_log_threshold = FRAGI_LOG_ERROR;
		world_init(w);
		app_timed(w, two_fragments, random_below(&state, 2) ? 0 : 20 * SECOND);
		if (random_below(&state, 4) != 0)
			go_along(w, &state);
		for (int i = 0; i < 200 && !w->ended; i++)
			say_anything(w, &state);
		for (int i = 0; i < 2 && !w->ended; i++)
			step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
		pass(w, 30 * SECOND);
		cr_assert(w->ended, "seed %llu hangs in %s", (unsigned long long)seed,
			  drv_app_state_name(drv_core_app_state(w->core)));
		cr_assert_eq(drv_core_illegal_transitions(w->core), 0, "seed %llu: %s",
			     (unsigned long long)seed, w->errors);
		cr_assert_eq(w->result == FRAGI_SUMMARY_FAILED, w->reason[0] != '\0');
		cr_assert(w->result != FRAGI_SUMMARY_FAILED || w->exit_code != 0);
		cr_assert_eq(drv_core_app_count(w->core), 0);
		results[w->result]++;
		world_fini(w);
		free(w);
	}
	for (int i = 0; i < 3; i++)
		cr_expect_gt(results[i], 20, "result %d is hardly ever reached: %llu", i,
			     (unsigned long long)results[i]);
}
