// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>

#include <base/units.h>

/*
 * The summary of an application that has ended: the rows of its view, copied into its arena. The
 * counts of rows in the summary say how far that has come.
 */

static void report_head(struct drv_app *app)
{
	int64_t from = app->times.started_ns != 0 ? app->times.started_ns : app->times.given_ns;

	app->summary = (struct fragi_summary){
		.application = app->spec != NULL ? app->spec->application : "",
		.result = app->summary.result,
		.failure = app->summary.failure,
		.exit_code = app->summary.exit_code,
		.started_unix_ns =
			app->times.started_ns != 0
				? app->times.started_ns + app->core->config.realtime_offset_ns
				: 0,
		.duration_ns = app->times.ended_ns - from,
		.shutdown_ns = app->times.ended_ns - app->times.ending_ns,
		.first_message_ns = drv_view_first_message_ns(app),
	};
}

static size_t fragment_count(const struct drv_app *app)
{
	return app->fragments != NULL ? app->spec->fragment_count : 0; /* memory may be short */
}

static int report_begin(struct drv_app *app)
{
	struct drv_reporting *at = &app->reporting;

	report_head(app);
	at->fragments =
		fragi_arena_alloc(&app->arena, fragment_count(app) * sizeof(*at->fragments));
	at->flows = fragi_arena_alloc(&app->arena, drv_view_flow_count(app) * sizeof(*at->flows));
	if (at->fragments == NULL || at->flows == NULL)
		return -ENOMEM;
	app->summary.fragments = at->fragments;
	app->summary.flows = at->flows;
	if (app->times.started_ns == 0 || app->flows.infos == NULL ||
	    !fragi_predict_wanted(app->spec))
		return 0;
	app->core->items -= (int64_t)app->flows.count;
	return fragi_predict(app->spec, app->flows.infos, app->flows.items, app->flows.count,
			     &at->prediction);
}

static int report_operator(struct drv_app *app, struct drv_view_operator *op)
{
	struct drv_reporting *at = &app->reporting;
	struct fragi_summary_fragment *fragment = &at->fragments[op->fragment];
	const struct fragi_predicted_op *predicted;

	if (op->number == 0)
		at->operators =
			fragi_arena_alloc(&app->arena, fragment->operator_count * sizeof(op->row));
	if (at->operators == NULL)
		return -ENOMEM;
	/* what its rates and budgets promised */
	if (at->prediction.ops != NULL) {
		predicted = &at->prediction.ops[at->prediction.first_op[op->fragment] + op->number];
		op->row.predicted_rate_mhz = fragi_whole(predicted->rate * 1000 + 0.5);
		op->row.budget_ns = (uint64_t)predicted->budget_ns;
	}
	at->operators[op->number] = op->row;
	fragment->operators = at->operators;
	return 0;
}

/* Whether this step makes one more row. */
static bool take_item(struct drv_app *app)
{
	if (app->core->items <= 0)
		return false;
	app->core->items--;
	return true;
}

static int report_rows(struct drv_app *app)
{
	struct drv_reporting *at = &app->reporting;
	struct fragi_summary *summary = &app->summary;
	size_t *f = &summary->fragment_count, *flow = &summary->flow_count;
	struct drv_view_at next = at->next;
	struct drv_view_operator op;

	for (; *f < fragment_count(app); ++*f) {
		if (!take_item(app))
			return -EAGAIN;
		drv_view_fragment(app, (uint32_t)*f, &at->fragments[*f]);
	}
	for (; drv_view_operator(app, &next, &op); at->next = next) {
		if (!take_item(app))
			return -EAGAIN;
		if (drv_view_late(app, &next, &app->arena, &op) < 0 ||
		    report_operator(app, &op) < 0)
			return -ENOMEM;
	}
	for (; *flow < drv_view_flow_count(app); ++*flow) {
		if (!take_item(app))
			return -EAGAIN;
		if (drv_view_flow(app, *flow, &app->arena, &at->flows[*flow]) < 0)
			return -ENOMEM;
	}
	return 0;
}

int drv_report(struct drv_app *app)
{
	int r = app->reporting.flows == NULL ? report_begin(app) : 0;

	if (r == 0)
		r = report_rows(app);
	if (r != -EAGAIN)
		fragi_prediction_fini(&app->reporting.prediction);
	if (r != -ENOMEM)
		return r;
	app->end = DRV_END_NONE; /* that its end cannot be shown is the cause that counts */
	drv_app_fail_for_memory(app);
	report_head(app);
	return 0;
}
