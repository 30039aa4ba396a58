// SPDX-License-Identifier: Apache-2.0
#include <sched/exec.h>

#include <time.h>

#define LOG_TOPIC "sched"
#include <base/log.h>

/*
 * How old live frames are when an operator uses them. A live source says in its metadata when each
 * came (live_ns) and how many come a second (frame_rate); metadata follows the frames to operators
 * behind, also to other nodes. The clocks of nodes differ, and a source may have a delay of its
 * own, so what counts is how much older a frame is than the freshest one that the operator has had.
 * That mark rises by a thousandth of a period with each frame, because clocks drift.
 */
#define OUTDATED_PERIODS 3

static int64_t unix_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void fragi_exec_judge_age(struct fragi_exec *exec, const struct frag_metadata *metadata)
{
	struct fragi_outdated *o = &exec->outdated;
	int64_t live_ns, age_ns;
	double rate, periods;

	if (frag_metadata_get_i64(metadata, "live_ns", &live_ns) < 0 ||
	    frag_metadata_get_f64(metadata, "frame_rate", &rate) < 0 || !(rate > 1e-3))
		return;
	age_ns = (int64_t)((uint64_t)unix_now_ns() - (uint64_t)live_ns);
	if (!o->has_best || age_ns < o->best_ns) {
		o->has_best = true;
		o->best_ns = age_ns;
		return;
	}
	o->best_ns += (int64_t)(1e6 / rate);
	periods = (double)(age_ns - o->best_ns) * 1e-9 * rate;
	if (periods <= OUTDATED_PERIODS)
		return;
	fragi_count(&exec->row->outdated, 1);
	if (!o->is_logged)
		log_warn(
			exec->op->subject,
			"live frames are %.0f ms old when it uses them, %.0f times what lies between two of them: they wait in queues; policy latest of the flow to it, or of one before, gives the newest one",
			(double)(age_ns - o->best_ns) * 1e-6, periods);
	o->is_logged = true;
}
