// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/clients/tap.h>
#include <driverd/core/applications/flows.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>

/*
 * Taps of clients on flows. The host that sends on the flow copies a message in a while; what it
 * copied is bytes here, which are passed on, at most as often as was asked for, and only where
 * nothing else waits to be sent to the client. This is the one exception from the rule that a
 * driver has nothing to do with payloads (docs/ARCHITECTURE.md).
 *
 * A host hears of its taps every second, so that they go on in the process that follows it, and
 * ends what it does not hear of any more.
 */
#define RENEW_NS INT64_C(1000000000)
#define FOR_NS INT64_C(4000000000)
#define TRACE_WAITS_BYTES (8u << 20) /* of a trace, for a client that reads slowly */

struct tap {
	uint32_t id;
	uint64_t seq; /* of the client's TAP */
	uint64_t run;
	uint32_t fragment, op, port; /* in the spec */
	int64_t every_ns, due_ns;
	bool pictures;
	bool traces; /* all hosts, in place of that of an output */
};

struct drv_taps {
	struct drv_timer timer;
	struct tap items[DRV_TAPS_MAX];
	uint32_t count;
};

static const struct drv_host *host_of(const struct drv_app *app, const struct tap *tap)
{
	return app->fragments[tap->fragment].host;
}

static uint32_t minor_of(const struct tap *tap)
{
	return tap->traces ? FW_TRACE_MINOR : FW_TAP_MINOR;
}

static int send_tap(const struct drv_app *app, const struct tap *tap, const struct drv_host *host,
		    int64_t for_ns)
{
	struct fw_message message = {.kind = FW_HOST_TAP, .run = app->run};

	if (host == NULL || host->now.session == NULL || host->now.session->minor < minor_of(tap))
		return 0;
	message.host = host->number;
	message.epoch = host->now.epoch;
	message.host_tap = (struct fw_host_tap){
		.tap = tap->id,
		.fragment = tap->traces ? 0 : app->fragments[tap->fragment].in_host,
		.op = tap->op,
		.port = tap->port,
		.every_ns = tap->every_ns,
		.for_ns = for_ns,
		.pictures = tap->pictures,
		.traces = tap->traces,
	};
	return drv_send(host->now.session, &message);
}

/* The host of its output, or all of them. Returns 0 or -ENOMEM. */
static int send_taps(const struct drv_app *app, const struct tap *tap, int64_t for_ns)
{
	int r = 0;

	if (!tap->traces)
		return send_tap(app, tap, host_of(app, tap), for_ns);
	for (uint32_t i = 0; r == 0 && i < app->host_count; i++)
		r = send_tap(app, tap, &app->hosts[i], for_ns);
	return r;
}

static bool is_of(const struct fragi_flow_info *flow, const struct tap *tap)
{
	return flow->from_fragment == tap->fragment && flow->from_op == tap->op &&
	       flow->from_port == tap->port;
}

/*
 * Finds the output that a person means by `what`. Returns how many outputs match, 2 for more;
 * encrypted: whether any flow of the output is.
 */
static int find_output(const struct drv_app *app, const char *what, struct tap *tap,
		       char out_name[3 * FRAG_NAME_MAX + 3], bool *out_encrypted)
{
	char from[3 * FRAG_NAME_MAX + 3], to[3 * FRAG_NAME_MAX + 3];
	const size_t count = drv_view_flow_count(app);
	int found = 0;

	app->core->items -= (int64_t)count;
	*out_encrypted = false;
	for (size_t i = 0; i < count && found < 2; i++) {
		const struct fragi_flow_info *flow = &app->flows.items[i];

		fragi_flow_from(app->flows.infos, flow, from, sizeof(from));
		fragi_flow_to(app->flows.infos, flow, to, sizeof(to));
		if (!drv_flow_is_called(from, to, what) || (found == 1 && is_of(flow, tap)))
			continue;
		found++;
		tap->fragment = flow->from_fragment;
		tap->op = flow->from_op;
		tap->port = flow->from_port;
		memcpy(out_name, from, sizeof(from));
	}
	for (size_t i = 0; i < count && found == 1; i++)
		*out_encrypted |= is_of(&app->flows.items[i], tap) &&
				  (app->flows.items[i].encrypt ||
				   drv_flow_is_encrypted(app, &app->flows.items[i]));
	return found;
}

/* The output that may have been meant: the first whose name contains the text, else the first. */
static void suggest_output(const struct drv_app *app, const char *what,
			   char out_name[3 * FRAG_NAME_MAX + 3])
{
	const struct fragi_flow_info *flows = app->flows.items;
	const size_t size = 3 * FRAG_NAME_MAX + 3, count = drv_view_flow_count(app);
	size_t best = 0;

	app->core->items -= (int64_t)count;
	for (size_t i = count; i-- > 0;) {
		fragi_flow_from(app->flows.infos, &flows[i], out_name, size);
		if (strstr(out_name, what) != NULL)
			best = i;
	}
	fragi_flow_from(app->flows.infos, &flows[best], out_name, size);
}

/* Counts the taps of all clients on outputs of that host. */
static uint32_t taps_on(const struct drv_core *core, const struct drv_app *app,
			const struct drv_host *host)
{
	uint32_t count = 0;

	for (const struct drv_session *client = core->waiting; client;
	     client = client->next_waiting)
		for (uint32_t i = 0; client->taps != NULL && i < client->taps->count; i++) {
			const struct tap *tap = &client->taps->items[i];

			count += tap->run == app->run && (tap->traces || host_of(app, tap) == host);
		}
	return count;
}

/* Why a host cannot be tapped; NULL: it can. */
static const char *why_not(const struct drv_session *client, const struct drv_app *app,
			   const struct tap *tap, const struct drv_host *host)
{
	if (client->taps != NULL && client->taps->count == DRV_TAPS_MAX)
		return drv_text(client->core, "a client watches %d flows at most", DRV_TAPS_MAX);
	if (host == NULL || host->now.session == NULL)
		return "the operator that sends on this flow does not run at the moment";
	if (host->now.session->minor < minor_of(tap))
		return drv_text(
			client->core,
			"worker %s speaks protocol 1.%u, and %s from 1.%u on; install a newer frag there",
			host->worker, host->now.session->minor,
			tap->traces ? "hosts can be traced" : "flows can be watched",
			minor_of(tap));
	if (taps_on(client->core, app, host) >= DRV_HOST_TAPS_MAX)
		return drv_text(client->core,
				"%d flows of this host are watched already, as many as it takes",
				DRV_HOST_TAPS_MAX);
	return NULL;
}

/* Returns whether the output is found and may be tapped. The client is answered if not. */
static bool choose(struct drv_session *client, const struct drv_app *app,
		   const struct fw_message *message, struct tap *tap,
		   char out_name[3 * FRAG_NAME_MAX + 3])
{
	struct drv_core *core = client->core;
	const char *name = message->tap.name, *what = message->tap.flow, *why = NULL;
	bool is_encrypted = false;
	int found;

	if (drv_view_flow_count(app) == 0) {
		drv_session_answer_failure(
			client, message->seq, name, FRAGI_FAILURE_OTHER,
			drv_text(core, "the flows of %s are not known before it runs", name));
		return false;
	}
	found = find_output(app, what, tap, out_name, &is_encrypted);
	if (found == 0)
		suggest_output(app, what, out_name);
	if (found != 1) {
		drv_session_answer_failure(
			client, message->seq, name, FRAGI_FAILURE_USAGE,
			found == 0
				? drv_text(
					  core,
					  "%s has no flow \"%.80s\"; write %s, or what `fragctl top %s` shows",
					  name, what, out_name, name)
				: drv_text(
					  core,
					  "\"%.80s\" names several outputs of %s; name one, such as %s",
					  what, name, out_name));
		return false;
	}
	if (is_encrypted && (client->roles & FW_ROLE_BIT(FW_ROLE_PAYLOAD)) == 0) {
		drv_client_refuse(
			client, message, "observer+payload",
			drv_text(core, "%s is encrypted, and to see its messages", out_name));
		return false;
	}
	why = why_not(client, app, tap, host_of(app, tap));
	if (why != NULL)
		drv_session_answer_failure(client, message->seq, name, FRAGI_FAILURE_DRIVER_FULL,
					   why);
	return why == NULL;
}

void drv_tap_begin(const struct drv_host *host)
{
	const struct drv_app *app = host->app;

	for (const struct drv_session *client = app->core->waiting; client;
	     client = client->next_waiting)
		for (uint32_t i = 0; client->taps != NULL && i < client->taps->count; i++)
			if (client->taps->items[i].run == app->run && client->taps->items[i].traces)
				(void)send_tap(app, &client->taps->items[i], host, FOR_NS);
}

/*
 * Whether all hosts that run know how; one that is started later takes part from its start on. The
 * client is answered if not.
 */
static bool may_trace(struct drv_session *client, const struct drv_app *app,
		      const struct fw_message *message, const struct tap *tap)
{
	const char *why = NULL;

	for (uint32_t i = 0; why == NULL && i < app->host_count; i++)
		if (app->hosts[i].now.session != NULL)
			why = why_not(client, app, tap, &app->hosts[i]);
	if (why != NULL)
		drv_session_answer_failure(client, message->seq, drv_app_name(app),
					   FRAGI_FAILURE_DRIVER_FULL, why);
	return why == NULL;
}

static int add(struct drv_session *client, const struct tap *tap)
{
	struct drv_core *core = client->core;

	if (client->taps == NULL) {
		client->taps = fragi_calloc(1, sizeof(*client->taps));
		if (client->taps == NULL)
			return -ENOMEM;
		if (drv_timer_set(&core->timers, &client->taps->timer, core->now_ns + RENEW_NS) <
		    0) {
			fragi_free(client->taps);
			client->taps = NULL;
			return -ENOMEM;
		}
	}
	client->taps->items[client->taps->count++] = *tap;
	return 0;
}

static void take_away(struct drv_session *client, uint32_t i)
{
	struct drv_taps *taps = client->taps;

	taps->items[i] = taps->items[--taps->count];
	if (taps->count > 0)
		return;
	drv_timer_cancel(&client->core->timers, &taps->timer);
	fragi_free(taps);
	client->taps = NULL;
}

static int end_one(struct drv_session *client, const struct fw_message *message)
{
	int r = 0;

	for (uint32_t i = 0; client->taps != NULL && i < client->taps->count; i++) {
		const struct tap *tap = &client->taps->items[i];
		const struct drv_app *app = drv_app_find(client->core, tap->run);

		if (tap->seq != message->tap.ends)
			continue;
		if (app != NULL)
			r = send_taps(app, tap, 0);
		take_away(client, i);
		break;
	}
	drv_session_answer(client, message->seq, 0, "", NULL);
	return r;
}

int drv_tap_change(struct drv_session *client, const struct fw_message *message)
{
	struct drv_core *core = client->core;
	char output[3 * FRAG_NAME_MAX + 3];
	struct tap tap = {.seq = message->seq,
			  .every_ns = message->tap.every_ns,
			  .pictures = message->tap.pictures,
			  .traces = message->tap.traces};
	const struct drv_app *app;

	if (message->tap.ends != 0)
		return end_one(client, message);
	app = drv_app_named(core, message->tap.name);
	if (app == NULL) {
		drv_refuse_unknown(client, message, message->tap.name);
		return 0;
	}
	if (!(tap.traces ? may_trace(client, app, message, &tap)
			 : choose(client, app, message, &tap, output)))
		return 0;
	if (tap.traces)
		snprintf(output, sizeof(output), "%s", drv_app_name(app));
	if (tap.every_ns < FW_TAP_MIN_NS)
		tap.every_ns = FW_TAP_MIN_NS;
	tap.run = app->run;
	tap.id = ++core->last_tap != 0 ? core->last_tap : ++core->last_tap;
	if (add(client, &tap) < 0)
		return -ENOMEM;
	drv_session_answer(client, message->seq, app->run, output, NULL);
	return send_taps(app, &tap, FOR_NS);
}

/* A trace may be kept only where something failed. */
static enum fragi_failure code_of_end(const struct drv_app *app, const struct tap *tap)
{
	return tap->traces && app != NULL && app->summary.failure.code != FRAGI_FAILURE_NONE
		       ? app->summary.failure.code
		       : FRAGI_FAILURE_APPLICATION_UNKNOWN;
}

int drv_tap_serve(struct drv_session *client)
{
	struct drv_core *core = client->core;
	int r = 0;

	if (!client->taps->timer.is_due && core->over_count == 0)
		return 0;
	client->taps->timer.is_due = false;
	if (drv_timer_set(&core->timers, &client->taps->timer, core->now_ns + RENEW_NS) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && client->taps != NULL && i < client->taps->count;) {
		const struct tap *tap = &client->taps->items[i];
		const struct drv_app *app = drv_app_find(core, tap->run);

		if (app != NULL && app->state != DRV_APP_ENDED) {
			r = send_taps(app, tap, FOR_NS);
			i++;
			continue;
		}
		drv_session_answer_failure(client, tap->seq, "", code_of_end(app, tap),
					   "the application has ended");
		take_away(client, i);
	}
	return r;
}

void drv_tap_end(struct drv_session *client)
{
	while (client->taps != NULL) {
		const struct tap *tap = &client->taps->items[0];
		/* at the end of the core there is no step, and no application */
		const struct drv_app *app =
			client->core->actions != NULL ? drv_app_find(client->core, tap->run) : NULL;

		if (app != NULL)
			(void)send_taps(app, tap, 0);
		take_away(client, 0);
	}
}

/* The tap of that number on an output of the host; NULL: there is none any more. */
static struct tap *find(const struct drv_host *host, uint32_t id, struct drv_session **out_client)
{
	const struct drv_app *app = host->app;

	for (struct drv_session *client = app->core->waiting; client; client = client->next_waiting)
		for (uint32_t i = 0; client->taps != NULL && i < client->taps->count; i++) {
			struct tap *tap = &client->taps->items[i];

			if (tap->id != id || tap->run != app->run ||
			    (!tap->traces && host_of(app, tap) != host))
				continue;
			*out_client = client;
			return tap;
		}
	return NULL;
}

void drv_tap_take(struct drv_session *worker, const struct fw_message *message)
{
	struct drv_core *core = worker->core;
	const struct drv_host *host = drv_host_find(core, message->run, message->host);
	struct fw_message out = {.kind = FW_TAPPED, .run = message->run, .tapped = message->tapped};
	struct drv_session *client;
	struct tap *tap;

	if (host == NULL || host->now.session != worker || host->now.epoch != message->epoch)
		return;
	core->items -= message->tapped.size / 64;
	tap = find(host, message->tapped.tap, &client);
	if (tap == NULL || (core->now_ns < tap->due_ns && !tap->traces))
		return;
	/* half of it: what was held up comes in haste */
	tap->due_ns = core->now_ns + tap->every_ns / 2;
	out.reply_to = tap->seq;
	out.tapped.tap = 0;
	(void)(tap->traces ? drv_send_if_room(client, &out, TRACE_WAITS_BYTES)
			   : drv_send_if_idle(client, &out));
}
