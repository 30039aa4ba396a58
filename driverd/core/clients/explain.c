// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * A client asks why fragments run where they do, or nowhere, and how their flows travel. The
 * answer is what the last attempt to place them has left. Its rows are items of the step; what is
 * beyond DRV_REPLY_ITEMS is only counted.
 */
#define REQUIRED_MAX 512

struct explaining {
	struct drv_app *app;
	const char *what;
	struct fw_explanation *out;
};

static void append(char *text, size_t *used, const char *key, const char *value)
{
	if (*used < REQUIRED_MAX)
		*used += (size_t)snprintf(text + *used, REQUIRED_MAX - *used, "%s%s %s",
					  *used != 0 ? ", " : "", key, value);
}

/* "cpu 2, at most cpu 4, label zone=or1, near f2" */
static const char *required_text(const struct drv_app *app,
				 const struct fragi_spec_requirements *own)
{
	char text[REQUIRED_MAX] = "", amount[FRAGI_AMOUNT_TEXT], key[64];
	char label[2 * FRAG_NAME_MAX + 2];
	size_t used = 0;

	for (int i = 0; i < FRAGI_AMOUNTS; i++) {
		enum fragi_amount a = (enum fragi_amount)i;

		if (own->wanted[i] != 0)
			append(text, &used, fragi_amount_name(a),
			       fragi_amount_text(a, own->wanted[i], amount));
		snprintf(key, sizeof(key), "at most %s", fragi_amount_name(a));
		if (own->limit[i] != 0)
			append(text, &used, key, fragi_amount_text(a, own->limit[i], amount));
	}
	if (own->mig != NULL)
		append(text, &used, "mig", own->mig->text);
	for (size_t i = 0; i < own->label_count; i++) {
		snprintf(label, sizeof(label), "%s=%s", own->labels[i].key, own->labels[i].value);
		append(text, &used, "label", label);
	}
	for (size_t i = 0; i < own->near_count; i++)
		append(text, &used, "near", own->near[i]->text);
	for (size_t i = 0; i < own->apart_count; i++)
		append(text, &used, "apart from", own->apart[i]->text);
	return drv_text(app->core, "%s", text);
}

/* Cores and memory have controllers, and hosts count their memory of GPUs. */
static const char *no_limits_text(const struct drv_host *host,
				  const struct fragi_spec_requirements *own)
{
	const struct drv_session *session = host != NULL ? host->now.session : NULL;
	const char *why = session != NULL ? drv_start_no_limits(session, own) : "";

	for (int i = 0; session != NULL && why[0] == '\0' && i < FRAGI_AMOUNTS; i++)
		if (own->limit[i] != 0 &&
		    fragi_amount_bound((enum fragi_amount)i) == FRAGI_BOUND_NONE)
			return "only cpuLimit, memoryLimit and gpuMemoryLimit are enforced (memory that is shared counts as memory)";
	return why;
}

static int fill_others(struct explaining *x, const struct drv_place *place,
		       struct fw_placement_row *row)
{
	struct drv_core *core = x->app->core;
	struct fragi_arena *arena = &core->actions->arena;

	row->others_beyond = place->others_beyond;
	row->others = fragi_arena_alloc(arena, place->other_count * sizeof(*row->others));
	if (row->others == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < place->other_count; i++) {
		const struct drv_place_other *other = &place->others[i];

		if (!drv_session_take_row(core, other->worker)) {
			row->others_beyond++;
			continue;
		}
		row->others[row->other_count++] = (struct fw_other_row){
			.worker = other->worker,
			.reason = drv_place_why(arena, other),
			.fits = other->why >= DRV_WHY_NEIGHBOURS,
		};
	}
	return 0;
}

/*
 * Why it runs there, and what it costs that each fragment in Python has a host of its own. The
 * times are those of docs/GPU.md.
 */
static const char *reason_text(const struct drv_app *app, size_t f)
{
	const struct fragi_spec_fragment *fragment = &app->spec->fragments[f];
	const struct drv_host *host = app->fragments[f].host;
	const char *reason = app->fragments[f].place.reason;
	bool has_gpu = host != NULL && host->now.session != NULL &&
		       host->now.session->has[FRAGI_AMOUNT_GPU] != 0;

	if (host == NULL || app->spec->fragment_count == 1 || fragment->host != NULL ||
	    fragi_spec_python_module(fragment) == NULL || app->core->config.is_local)
		return reason;
	return drv_text(
		app->core,
		"%s; it is in Python, so it has a host of its own unless `host` names one%s",
		reason,
		has_gpu ? ": what it sends on the GPU takes about 50 us to a kernel of another host, and 26 us under MPS"
			: "");
}

static int fill_placement(struct explaining *x, size_t f)
{
	const struct drv_app *app = x->app;
	const struct fragi_spec_fragment *fragment = &app->spec->fragments[f];
	const struct drv_fragment *own = &app->fragments[f];
	struct fw_placement_row *row = &x->out->placements[x->out->placement_count];

	if (!drv_session_take_row(app->core, fragment->name)) {
		x->out->more++;
		return 0;
	}
	x->out->placement_count++;
	*row = (struct fw_placement_row){
		.fragment = fragment->name,
		.worker = own->host != NULL && own->host->now.session != NULL ? own->host->worker
									      : "",
		.required = required_text(app, &fragment->requirements),
		.reason = own->place.reason != NULL ? reason_text(app, f) : NULL,
		.no_limits = no_limits_text(own->host, &fragment->requirements),
	};
	if (own->place.reason == NULL)
		row->reason = "nobody has looked for a worker yet";
	else if (own->host == NULL && own->place.worker >= 0)
		row->reason = drv_text(app->core, "it has a place, but others have none: %s",
				       own->place.reason);
	return fill_others(x, &own->place, row);
}

/* Whether `end` is what a person calls it: "f1.tx.out", "f1.tx", "f1". */
static bool is_end(const char *end, const char *what, size_t length)
{
	return strncmp(end, what, length) == 0 && (end[length] == '\0' || end[length] == '.');
}

bool drv_flow_is_called(const char *from, const char *to, const char *what)
{
	const char *arrow = strstr(what, " -> ");

	if (arrow == NULL)
		return is_end(from, what, strlen(what)) || is_end(to, what, strlen(what));
	return is_end(from, what, (size_t)(arrow - what)) &&
	       is_end(to, arrow + 4, strlen(arrow + 4));
}

static void fill_route(struct explaining *x, const struct fragi_spec_flow *flow,
		       const struct fragi_spec_end *end)
{
	struct fw_route_row *row = &x->out->routes[x->out->route_count];

	/* also one that is not shown */
	if (!drv_session_take_row(x->app->core, flow->from.fragment)) {
		x->out->more++;
		return;
	}
	drv_view_route(x->app, flow, end, row);
	x->out->route_count +=
		x->what[0] == '\0' || drv_flow_is_called(row->from, row->to, x->what);
}

static size_t route_count(const struct fragi_spec *spec)
{
	size_t count = 0;

	for (size_t i = 0; i < spec->flow_count; i++)
		count += spec->flows[i].to_count;
	return count < DRV_REPLY_ITEMS ? count : DRV_REPLY_ITEMS;
}

static int fill(struct explaining *x)
{
	const struct fragi_spec *spec = x->app->spec;
	struct fragi_arena *arena = &x->app->core->actions->arena;
	size_t rows =
		spec->fragment_count < DRV_REPLY_ITEMS ? spec->fragment_count : DRV_REPLY_ITEMS;

	x->out->placements = fragi_arena_alloc(arena, (rows + 1) * sizeof(*x->out->placements));
	x->out->routes =
		fragi_arena_alloc(arena, (route_count(spec) + 1) * sizeof(*x->out->routes));
	if (x->out->placements == NULL || x->out->routes == NULL)
		return -ENOMEM;
	for (size_t f = 0; f < spec->fragment_count; f++)
		if ((x->what[0] == '\0' || strcmp(spec->fragments[f].name, x->what) == 0) &&
		    fill_placement(x, f) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < spec->flow_count; i++)
		for (size_t k = 0; k < spec->flows[i].to_count; k++)
			fill_route(x, &spec->flows[i], &spec->flows[i].to[k]);
	return 0;
}

void drv_explain(struct drv_session *client, const struct fw_message *message)
{
	struct drv_core *core = client->core;
	const char *name = message->explain.name;
	struct drv_app *app = drv_app_named(core, name);
	struct fw_message answer = {.kind = FW_EXPLANATION, .reply_to = message->seq};
	struct explaining x = {app, message->explain.what, &answer.explanation};

	if (app == NULL) {
		bool has_ended = drv_history_named(&core->history, name) != NULL;

		drv_session_answer_failure(
			client, message->seq, name, FRAGI_FAILURE_APPLICATION_UNKNOWN,
			has_ended
				? drv_text(
					  core,
					  "%s has ended, and where it ran is not kept; `fragctl status %s` shows how it ended",
					  name, name)
				: drv_text(
					  core,
					  "there is no application %s; `fragctl list` shows those that there are",
					  name));
		return;
	}
	answer.explanation.name = drv_app_name(app);
	answer.explanation.state = drv_app_state_name(app->state);
	if (fill(&x) < 0) {
		drv_session_drop(client, "no memory is left for an explanation");
		return;
	}
	if (x.what[0] != '\0' && x.out->placement_count + x.out->route_count + x.out->more == 0) {
		drv_session_answer_failure(client, message->seq, name, FRAGI_FAILURE_USAGE,
					   drv_text(core,
						    "%s has no fragment and no flow \"%.80s\"%s",
						    name, x.what, drv_app_advise(app, x.what)));
		return;
	}
	if (drv_send(client, &answer) < 0)
		drv_session_drop(client, "no memory is left for an explanation");
}
