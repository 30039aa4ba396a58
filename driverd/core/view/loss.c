// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <inttypes.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>

/*
 * Messages that flows drop or lose, as events: one when that begins, with reason and rate, and one
 * when it has ended. Hosts report what they have counted with every beat, so no message costs
 * anything for it. A flow that drops on and on has one event, and all applications together have
 * no more than one a second, after a few at once: the others wait, and are written if it still goes
 * on then. Files that operators remove to keep to a limit of disk are events too, and so is the
 * clock of another node that a host had locked and has not any more.
 */
#define EVERY_NS INT64_C(1000000000)
#define QUIET_NS INT64_C(5000000000) /* without a loss: it has ended */
#define APART_NS INT64_C(1000000000) /* events of losses; AT_ONCE of them may come together */
#define AT_ONCE 16

/* What a flow drops, or loses. */
struct tally {
	uint64_t counted, begun; /* by now; when it began */
	int64_t begun_ns, last_ns;
	bool is_noted;
};

/* That of its sender's node, which the receiver compares with its own. */
struct clock {
	uint64_t locked, stepped, silent; /* how often, by now */
	int64_t begun_ns;
	bool is_lost, is_said;
};

struct loss {
	struct tally dropped, lost;
	struct clock clock;
	uint64_t reasons[FRAGI_DROP_REASONS], sent;
};

struct drv_losses {
	int64_t looked_ns;
	uint64_t removed; /* files, of which events say so */
	size_t count;
	struct loss flows[];
};

/* Whether one more event may be written now. */
static bool may_note(struct drv_core *core)
{
	int64_t earliest_ns = core->real_ns - (AT_ONCE - 1) * APART_NS;

	if (core->losses_ns > core->real_ns)
		return false;
	core->losses_ns =
		(core->losses_ns > earliest_ns ? core->losses_ns : earliest_ns) + APART_NS;
	return true;
}

/* The reason of the most drops since the last look. */
static const char *reason_of(const struct loss *loss, const struct fragi_summary_flow *now)
{
	enum fragi_drop most = FRAGI_DROP_QUEUE_FULL;
	uint64_t count = 0;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		if (now->dropped[i] - loss->reasons[i] > count &&
		    now->dropped[i] > loss->reasons[i]) {
			count = now->dropped[i] - loss->reasons[i];
			most = (enum fragi_drop)i;
		}
	return fragi_drop_name(most);
}

static const char *flow_text(const struct drv_app *app, size_t index)
{
	const struct fragi_flow_info *flow = &app->flows.items[index];
	char sender[3 * FRAG_NAME_MAX + 3], receiver[3 * FRAG_NAME_MAX + 3];

	fragi_flow_from(app->flows.infos, flow, sender, sizeof(sender));
	fragi_flow_to(app->flows.infos, flow, receiver, sizeof(receiver));
	return drv_text(app->core, "%s -> %s", sender, receiver);
}

static uint64_t a_second(uint64_t count, int64_t ns)
{
	return fragi_whole((double)count * 1e9 / (double)ns + 0.5);
}

/* The numbers come first: an event is cut where a flow has long names. */
static void note_begin(struct drv_app *app, size_t index, const struct fragi_summary_flow *now,
		       bool is_lost)
{
	struct drv_losses *losses = app->losses;
	const struct loss *loss = &losses->flows[index];
	int64_t ns = app->core->real_ns - losses->looked_ns;

	if (is_lost)
		drv_history_add(app->core, FW_NOTICE_LOSS, app, NULL,
				"%" PRIu64 " lost: %s%s%.120s", now->lost - loss->lost.counted,
				flow_text(app, index), now->lost_because != NULL ? ": " : "",
				now->lost_because != NULL ? now->lost_because : "");
	else
		drv_history_add(app->core, FW_NOTICE_LOSS, app, NULL,
				"%" PRIu64 " of %" PRIu64 " /s dropped (%s): %s",
				a_second(fragi_drops_unwanted(now->dropped, false) -
						 fragi_drops_unwanted(loss->reasons, false),
					 ns),
				a_second(now->sent - loss->sent, ns), reason_of(loss, now),
				flow_text(app, index));
}

static void note_end(struct drv_app *app, size_t index, const struct tally *tally, bool is_lost)
{
	char text[32];

	drv_history_add(app->core, FW_NOTICE_LOSS, app, NULL,
			"no more %s, after %" PRIu64 " in %s: %s", is_lost ? "lost" : "dropped",
			tally->counted - tally->begun,
			fragi_format_duration(tally->last_ns - tally->begun_ns, text, sizeof(text)),
			flow_text(app, index));
}

static void look_at(struct drv_app *app, size_t index, struct tally *tally, uint64_t count,
		    const struct fragi_summary_flow *now)
{
	struct drv_core *core = app->core;
	bool is_lost = tally == &app->losses->flows[index].lost;

	if (count > tally->counted) {
		if (!tally->is_noted && may_note(core)) {
			tally->is_noted = true;
			tally->begun = tally->counted;
			tally->begun_ns = app->losses->looked_ns;
			note_begin(app, index, now, is_lost);
		}
		if (is_lost && !tally->is_noted)
			return; /* it is over already, and is written later */
		tally->last_ns = core->real_ns;
	} else if (tally->is_noted && core->real_ns - tally->last_ns >= QUIET_NS &&
		   may_note(core)) {
		tally->is_noted = false;
		note_end(app, index, tally, is_lost);
	}
	tally->counted = count;
}

static const char *clock_text(const struct drv_app *app, size_t index)
{
	const struct fragi_flow_info *flow = &app->flows.items[index];
	const struct drv_host *here = app->fragments[flow->to_fragment].host,
			      *there = app->fragments[flow->from_fragment].host;

	return drv_text(app->core, "the clock of %s on worker %s, as %s on worker %s compares it",
			there->name, there->worker, here->name, here->worker);
}

/* Returns how much a counter has grown. */
static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* A lock that is lost and there again within one look is one event. */
static void look_at_clock(struct drv_app *app, size_t index, const struct fragi_summary_flow *now)
{
	struct drv_core *core = app->core;
	struct clock *clock = &app->losses->flows[index].clock;
	const uint64_t stepped = grown(now->clock_stepped, clock->stepped),
		       silent = grown(now->clock_silent, clock->silent);
	const bool is_lost = (clock->is_lost ? 1 : 0) + stepped + silent >
			     grown(now->clock_locked, clock->locked);
	char text[32];

	if (stepped + silent > 0 && !clock->is_said) {
		if (!may_note(core))
			return; /* later, with what happens until then */
		drv_history_add(core, FW_NOTICE_CLOCK, app, NULL, "%s (%s): %s",
				is_lost ? "lost" : "lost, and locked again",
				stepped > 0 ? "one of them has stepped" : "it does not answer",
				clock_text(app, index));
		clock->begun_ns = core->real_ns;
		clock->is_said = is_lost;
	} else if (clock->is_said && !is_lost && may_note(core)) {
		drv_history_add(
			core, FW_NOTICE_CLOCK, app, NULL, "locked again, after %s: %s",
			fragi_format_duration(core->real_ns - clock->begun_ns, text, sizeof(text)),
			clock_text(app, index));
		clock->is_said = false;
	}
	clock->is_lost = is_lost;
	clock->locked = now->clock_locked;
	clock->stepped = now->clock_stepped;
	clock->silent = now->clock_silent;
}

/* Files that operators have removed to keep to a limit of disk: one event for all since then. */
static void look_at_files(struct drv_app *app, bool is_news)
{
	struct drv_losses *losses = app->losses;
	struct drv_view_at at = {0};
	struct drv_view_operator op;
	const char *by = "";
	uint64_t removed = 0;

	while (drv_view_operator(app, &at, &op)) {
		removed += op.row.removed;
		if (op.row.removed > 0)
			by = drv_text(app->core, "%s.%s", app->spec->fragments[op.fragment].name,
				      op.row.name);
	}
	if (is_news && removed > losses->removed && !may_note(app->core))
		return;
	if (is_news && removed > losses->removed)
		drv_history_add(app->core, FW_NOTICE_LOSS, app, NULL,
				"%" PRIu64 " removed to keep to a limit of disk: files of %s",
				removed - losses->removed, by);
	losses->removed = removed;
}

/* Begins to look for losses. Only what an adopted application loses from now on is news. */
static bool begin(struct drv_app *app)
{
	size_t count = drv_view_flow_count(app);
	bool is_known = app->losses == NULL && app->origin != DRV_ORIGIN_ADOPTED;

	if (app->losses != NULL && app->losses->count == count)
		return true;
	fragi_free(app->losses);
	app->losses = fragi_calloc(1, sizeof(*app->losses) + count * sizeof(app->losses->flows[0]));
	if (app->losses == NULL)
		return false;
	app->losses->count = count;
	app->losses->looked_ns = app->times.running_ns;
	return is_known;
}

void drv_losses_look(struct drv_app *app)
{
	struct drv_core *core = app->core;
	bool is_news;

	if (app->state != DRV_APP_RUNNING || core->config.is_local ||
	    (app->losses != NULL && core->real_ns - app->losses->looked_ns < EVERY_NS))
		return;
	is_news = begin(app);
	if (app->losses == NULL || core->real_ns == app->losses->looked_ns)
		return;
	for (size_t i = 0; i < app->losses->count; i++) {
		struct loss *loss = &app->losses->flows[i];
		struct fragi_summary_flow now;
		uint64_t dropped;

		drv_view_counts(app, i, &now);
		dropped = fragi_drops_unwanted(now.dropped, strcmp(now.policy, "latest") == 0);
		if (!is_news) {
			loss->dropped.counted = dropped;
			loss->lost.counted = now.lost;
			loss->clock.stepped = now.clock_stepped;
			loss->clock.silent = now.clock_silent;
			loss->clock.locked = now.clock_locked;
		}
		look_at(app, i, &loss->dropped, dropped, &now);
		look_at(app, i, &loss->lost, now.lost, &now);
		look_at_clock(app, i, &now);
		memcpy(loss->reasons, now.dropped, sizeof(loss->reasons));
		loss->sent = now.sent;
	}
	look_at_files(app, is_news);
	core->items -= (int64_t)app->losses->count;
	app->losses->looked_ns = core->real_ns;
}
