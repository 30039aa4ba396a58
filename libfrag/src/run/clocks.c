// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "run"
#include <errno.h>

#include <base/alloc.h>
#include <base/log.h>
#include <graph/clocks.h>
#include <run/state.h>

/*
 * The clocks of a run: one that all its fragments share, and those of single fragments. And the
 * time limits of fragments, which are users of the clocks. When a manual clock is at a limit, what
 * happens at that time happens first; then the clock stands until the control thread has ended the
 * fragment.
 */

static bool limit_waits(void *arg, int64_t *out_next_ns, uint64_t *out_rounds)
{
	struct fragi_run_fragment *fragment = arg;

	*out_rounds = 0;
	*out_next_ns = atomic_load(&fragment->timed_out) ? INT64_MAX : fragment->end_ns;
	return !atomic_load(&fragment->limit_is_due) || atomic_load(&fragment->timed_out);
}

static void limit_clock_moved(void *arg, int64_t waited_ns)
{
	struct fragi_run_fragment *fragment = arg;
	bool is_manual = fragi_clock_kind_of(fragment->fragment->clock) == FRAGI_CLOCK_MANUAL;

	atomic_store(&fragment->moved_ns, fragi_now_ns());
	if (is_manual && waited_ns < fragment->end_ns)
		return;
	atomic_store(&fragment->limit_is_due, is_manual);
	fragi_run_nudge(fragment->run);
}

int64_t fragi_run_limit_ns(const struct fragi_run_fragment *fragment)
{
	const struct frag_clock *clock = fragment->fragment->clock;

	return fragi_clock_kind_of(clock) != FRAGI_CLOCK_SYNTHETIC
		       ? fragi_clock_machine_ns(clock, fragment->end_ns)
		       : atomic_load(&fragment->moved_ns) +
				 fragment->spec->max_duration_ms * 1000000;
}

bool fragi_run_limit_is_over(const struct fragi_run_fragment *fragment)
{
	const struct frag_clock *clock = fragment->fragment->clock;

	if (fragi_clock_kind_of(clock) == FRAGI_CLOCK_SYNTHETIC &&
	    fragi_now_ns() >= fragi_run_limit_ns(fragment))
		return true;

	return fragi_clock_kind_of(clock) == FRAGI_CLOCK_MANUAL
		       ? atomic_load(&fragment->limit_is_due)
		       : fragi_clock_now_ns(clock) >= fragment->end_ns;
}

void fragi_run_join_clocks(struct fragi_run *run)
{
	for (size_t i = 0; i < run->fragment_count; i++) {
		struct fragi_run_fragment *fragment = &run->fragments[i];

		if (fragment->spec == NULL || fragment->spec->max_duration_ms <= 0)
			continue;
		atomic_store(&fragment->moved_ns, fragi_now_ns());
		fragment->end_ns = fragi_clock_now_ns(fragment->fragment->clock) +
				   fragment->spec->max_duration_ms * 1000000;
		fragment->limit = (struct fragi_clock_user){
			.arg = fragment, .waits = limit_waits, .moved = limit_clock_moved};
		fragi_clock_join(fragment->fragment->clock, &fragment->limit);
	}
}

/* Where one virtual clock is that of the whole application, all is measured in its time. */
static void choose_stamps(struct fragi_run *run)
{
	const struct fragi_spec *spec = run->config.spec;
	struct frag_clock *clock =
		run->fragment_count > 0 ? run->fragments[0].fragment->clock : NULL;

	if (!fragi_clock_is_virtual(clock) || run->fragment_count < spec->fragment_count)
		return;
	for (size_t i = 0; i < run->fragment_count; i++)
		if (run->fragments[i].fragment->clock != clock)
			return;
	run->has_own_stamps = true;
	fragi_clock_use_for_stamps(clock);
}

static int choose_shared(struct fragi_run *run, struct fragi_diag *diag,
			 struct fragi_clock_config *out_config)
{
	struct frag_fragment **fragments =
		fragi_calloc(run->fragment_count + 1, sizeof(struct frag_fragment *));
	int r;

	if (fragments == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->fragment_count; i++)
		fragments[i] = run->fragments[i].fragment;
	r = fragi_clock_shared(run->config.spec, fragments, run->fragment_count, diag, out_config);
	fragi_free(fragments);
	return r;
}

int fragi_run_make_clocks(struct fragi_run *run, struct fragi_diag *diag)
{
	struct fragi_clock_config config;
	int r = choose_shared(run, diag, &config);

	if (r == 0)
		r = fragi_clock_create(&config, &run->clock);
	for (size_t i = 0; r == 0 && i < run->fragment_count; i++) {
		struct fragi_run_fragment *fragment = &run->fragments[i];
		const struct fragi_clock_config *own = fragi_clock_own(fragment->fragment);

		fragment->fragment->clock = run->clock;
		if (own == NULL)
			continue;
		r = fragi_clock_create(own, &fragment->clock);
		fragment->fragment->clock = fragment->clock;
	}
	if (r == 0)
		choose_stamps(run);
	return r;
}

void fragi_run_wake_sleepers(struct fragi_run *run)
{
	fragi_clock_wake_sleepers(run->clock);
	for (size_t i = 0; i < run->fragment_count; i++)
		fragi_clock_wake_sleepers(run->fragments[i].clock);
}

void fragi_run_destroy_clocks(struct fragi_run *run)
{
	if (run->has_own_stamps)
		fragi_clock_use_for_stamps(NULL);
	for (size_t i = 0; i < run->fragment_count; i++) {
		struct fragi_run_fragment *fragment = &run->fragments[i];

		if (fragment->limit.arg != NULL)
			fragi_clock_leave(fragment->fragment->clock, &fragment->limit);
		fragment->fragment->clock = NULL;
		fragi_clock_destroy(fragment->clock);
	}
	fragi_clock_destroy(run->clock);
}
