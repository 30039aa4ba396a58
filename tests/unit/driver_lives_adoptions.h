/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DRIVER_LIVES_ADOPTIONS_H
#define TESTS_UNIT_DRIVER_LIVES_ADOPTIONS_H

#include "driver_lives_clients.h"

/*
 * Drivers of a life that follow one another soon, at any moment of what the one before was doing:
 * the workers report in any order, and what their hosts say comes between that.
 */
static inline void one_tells(struct life *l)
{
	struct life_process *p = some_process(l, false);
	struct fw_message m;

	if (p == NULL || p->stage < LIFE_PREPARED)
		return;
	switch (drawn(l, 11)) {
	case 0:
		say_state(l, p, FW_STATE_STOPPED);
		break;
	case 1:
		say_state(l, p, FW_STATE_FAILED);
		break;
	case 2:
		say_state(l, p, FW_STATE_PEER_LOST);
		break;
	case 3:
		say_ended(l, p, 137, 9, FRAGI_FAILURE_NONE, "");
		break;
	case 4:
		say_ended(l, p, 0, 0, FRAGI_FAILURE_NONE, "");
		break;
	case 5:
		say_ended(l, p, 139, 11, FRAGI_FAILURE_HOST_CRASHED,
			  "fraghost 101 crashed in f1.tx, tick 5");
		break;
	case 6:
		say_counts(l, p, FW_HOST_STATS, false);
		break;
	case 7:
		m = of(p, FW_HOST_STARTED);
		m.result.failure =
			(struct fw_failure){FRAGI_FAILURE_OPERATOR_FAILED, "f1.tx: no disk", ""};
		SAYS(l, p, "could not start");
		host_says(l, p, &m);
		break;
	default:
		say_state(l, p, FW_STATE_DONE);
		break;
	}
}

/* What the driver before has begun, and not finished. */
static inline void something_begins(struct life *l)
{
	switch (drawn(l, 6)) {
	case 0:
	case 1:
		drain(l);
		break;
	case 2:
		change_app(l);
		break;
	case 3:
		stop_app(l);
		break;
	default:
		break;
	}
	for (uint64_t i = drawn(l, 8); i > 0; i--)
		one_answers(l);
	if (one_in(l, 2))
		disk_writes(l);
}

static inline void next_driver_hears(struct life *l)
{
	switch (drawn(l, 12)) {
	case 0:
	case 1:
	case 2:
		worker_comes(l);
		break;
	case 3:
		for (uint64_t i = 1 + drawn(l, 3); i > 0; i--)
			one_tells(l);
		break;
	case 4:
		disk_writes(l);
		break;
	case 5:
		life_pass(l, (int64_t)drawn(l, 300) * MS);
		break;
	case 6:
		if (one_in(l, 12))
			stop_app(l);
		else if (one_in(l, 12))
			worker_goes(l);
		break;
	default:
		worker_reports(l);
		break;
	}
}

static inline void next_driver_begins(struct life *l)
{
	if (is_too_early(l) || l->w->broken)
		return;
	something_begins(l);
	/* All that is reported was told the same, or each host something of its own. */
	l->mood = one_in(l, 2) ? 0 : 1 + (unsigned int)drawn(l, 20);
	driver_returns(l);
	for (uint64_t i = 16 + drawn(l, 16); i > 0; i--)
		next_driver_hears(l);
	for (int i = 0; i < 4; i++)
		worker_comes(l);
	for (int i = 0; i < 20 && !one_in(l, 30); i++)
		worker_reports(l);
	l->mood = 0;
	disk_writes(l);
	for (uint64_t i = drawn(l, 3); i > 0; i--)
		one_tells(l);
	life_pass(l, (int64_t)drawn(l, 7000) * MS);
	all_answer(l);
	disk_writes(l);
}

#endif
