// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

/*
 * A driver that is stopped, or gets no processor, hears nobody and sends no beat. It is no judge of
 * others then: what they have sent lies unread, and a worker that has left took it for dead.
 * Several pauses with little between them are as one, since nothing may have left in between: what
 * it ran is taken from the sum. When it has run for the time of death, they are forgotten.
 */

/* The pause that ends now; 0: none does. A beat late is no pause. */
static int64_t ending_ns(const struct drv_core *core, int64_t real_now_ns)
{
	int64_t deadline_ns = drv_core_deadline_ns(core), seen_ns = core->clock.seen_ns,
		due_ns = deadline_ns > seen_ns ? deadline_ns : seen_ns;

	return seen_ns != 0 && due_ns < real_now_ns && real_now_ns - due_ns > core->config.beat_ns
		       ? real_now_ns - due_ns
		       : 0;
}

static int64_t sum_ns(const struct drv_core *core, int64_t real_now_ns)
{
	const struct drv_pause *pause = &core->pause;
	int64_t late_ns = ending_ns(core, real_now_ns),
		ran_ns = real_now_ns - late_ns - pause->end_ns;

	if (late_ns == 0)
		return ran_ns < core->config.dead_ns ? pause->sum_ns : 0;
	return late_ns + (pause->sum_ns > ran_ns ? pause->sum_ns - ran_ns : 0);
}

/* A worker hears nothing for a beat more than the driver is late. */
bool drv_pause_is_death(const struct drv_core *core, int64_t real_now_ns)
{
	return sum_ns(core, real_now_ns) >= core->config.dead_ns - core->config.beat_ns;
}

const char *drv_pause_why(struct drv_core *core, const char *why)
{
	if (!drv_pause_is_death(core, core->real_ns))
		return why;
	return drv_text(
		core,
		"driverd itself did not run for %.1f s (it was stopped, or got no processor), so the worker left it",
		(double)sum_ns(core, core->real_ns) * 1e-9);
}

bool drv_pause_begin_step(struct drv_core *core, int64_t real_now_ns)
{
	struct drv_pause *pause = &core->pause;
	bool ends = ending_ns(core, real_now_ns) != 0;

	if (ends) {
		pause->sum_ns = sum_ns(core, real_now_ns);
		pause->end_ns = real_now_ns;
	}
	pause->owes_beats = drv_core_deadline_ns(core) < real_now_ns - core->config.beat_ns;
	return ends;
}

void drv_pause_catch_up(struct drv_core *core)
{
	struct drv_pause *pause = &core->pause;

	if (!pause->owes_beats || core->real_ns - pause->beaten_ns < core->config.beat_ns)
		return;
	pause->beaten_ns = core->real_ns;
	drv_lease_beat_all(core);
}
