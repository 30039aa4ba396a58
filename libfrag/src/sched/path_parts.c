// SPDX-License-Identifier: Apache-2.0
#include <sched/path_parts.h>

void fragi_path_read_start(struct fragi_on_path *on, const struct fragi_exec *exec, uint64_t begin)
{
	const uint64_t since = fragi_path_use(&exec->row->started_ns),
		       now = (uint64_t)fragi_clock_now_ns(exec->clock) + 1;

	on->started = fragi_stamp_before(begin, now > since ? now - since : 0);
}

/*
 * While a message waited: how long ticks with earlier ones took, and what their threads were denied
 * before and in them; and what had been waited for before it came.
 */
struct since {
	uint64_t busy_ns, starved_ns, denied_ns;
	struct fragi_path_waited then;
	bool is_first; /* no tick has ended before it came */
};

static struct since since(const struct fragi_on_path *on, uint64_t queued)
{
	struct since since = {.is_first = on->past_count < FRAGI_PATH_PAST};

	for (uint64_t i = 1; i <= FRAGI_PATH_PAST && i <= on->past_count; i++) {
		const struct fragi_path_past *past =
			&on->past[(on->past_count - i) % FRAGI_PATH_PAST];
		const uint64_t ns = fragi_stamp_diff_ns(queued, past->ended);

		if (ns == 0 || i == FRAGI_PATH_PAST) { /* of more ticks it is not known */
			since.then = past->waited;
			since.is_first = false;
			break;
		}
		since.busy_ns +=
			fragi_stamp_diff_ns(fragi_path_later(queued, past->begun), past->ended);
		since.denied_ns += ns < past->denied_ns ? ns : past->denied_ns;
		since.starved_ns += past->starved_ns;
	}
	return since;
}

void fragi_path_split_way(struct fragi_blame_parts *parts, const struct fragi_exec *exec,
			  const struct fragi_trail *trail, const struct fragi_trail_entry *entry,
			  uint64_t begin)
{
	const struct fragi_on_path *on = exec->op->on_path;
	const uint64_t queued = trail->arrived != 0 ? trail->arrived : entry->published;
	const struct since before = since(on, queued);
	const struct fragi_path_waited now = fragi_path_waited_of(exec), *then = &before.then;
	const struct fragi_blame_way way = {
		.at = (uint16_t)(entry->at + 1u),
		.took_ns = fragi_stamp_diff_ns(entry->published, begin),
		.arrived_ns = trail->arrived != 0
				      ? fragi_stamp_diff_ns(entry->published, trail->arrived)
				      : 0,
		.held_ns = trail->arrived != 0 ? trail->held.ns : 0,
		.restart_ns = trail->held.restart_ns,
		.gpu_ns = trail->held.gpu_ns,
		.unstarted_ns = fragi_stamp_diff_ns(queued, on->started),
		.busy_ns = before.busy_ns,
		.pool_ns = now.pool - then->pool,
		.thread_ns = now.thread - then->thread,
		.room_ns = now.room - then->room,
		.away_ns = now.away - then->away,
		.suspended_ns = before.is_first ? 0 : now.suspended - then->suspended,
		.starved_ns = before.starved_ns + on->starved_ns,
		.denied_ns = before.denied_ns,
	};

	fragi_blame_way(parts, &way);
}

void fragi_path_split_stay(struct fragi_blame_parts *parts, const struct fragi_on_path *on,
			   uint32_t at, uint64_t took_ns, uint64_t now)
{
	const struct fragi_blame_stay stay = {
		.at = (uint16_t)at,
		.took_ns = took_ns,
		.preempted_ns = on->preempted_ns + fragi_path_starved(on, now),
		.gpu_ns = on->gpu_ns,
	};

	fragi_blame_stay(parts, &stay);
}
