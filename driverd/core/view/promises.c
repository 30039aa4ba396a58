// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>
#include <driverd/core/view/look.h>

#include <base/units.h>

/* What C composes may have any timing. */
static bool is_timed(const struct drv_app *app, uint32_t fragment,
		     const struct fragi_spec_operator *op)
{
	bool is_timed = op == NULL || op->type == NULL || op->align.place != NULL ||
			op->deadline.budget_ns != 0 ||
			app->spec->fragments[fragment].deadline_count != 0 ||
			app->spec->deadline_count != 0;

	for (size_t i = 0; !is_timed && i < op->port_count; i++)
		is_timed = op->ports[i].timed != NULL;
	return is_timed;
}

int drv_promises_find(const struct drv_app *app, struct drv_promise *promises, size_t count)
{
	struct fragi_prediction prediction = {0};
	struct drv_view_at at = {0};
	struct drv_view_operator op;
	int r;

	for (size_t i = 0; i < count && drv_view_operator(app, &at, &op); i++) {
		const struct fragi_spec_operator *spec = fragi_predict_spec(
			&app->spec->fragments[op.fragment], op.row.name, op.number);

		promises[i].is_timed = is_timed(app, op.fragment, spec);
		if (spec != NULL)
			promises[i].period_ns = (uint64_t)fragi_predict_period_ns(spec);
	}
	at = (struct drv_view_at){0};
	if (drv_view_flow_count(app) == 0 || !fragi_predict_wanted(app->spec))
		return 0;
	app->core->items -= (int64_t)app->flows.count;
	r = fragi_predict(app->spec, app->flows.infos, app->flows.items, app->flows.count,
			  &prediction);
	for (size_t i = 0; r == 0 && i < count && drv_view_operator(app, &at, &op); i++) {
		const struct fragi_predicted_op *promised =
			&prediction.ops[prediction.first_op[op.fragment] + op.number];

		promises[i].rate_mhz = fragi_whole(promised->demand * 1000 + 0.5);
		promises[i].budget_ns = (uint64_t)promised->budget_ns;
	}
	fragi_prediction_fini(&prediction);
	return r;
}
