// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/base/lines.h>
#include <driverd/core/applications/parameter.h>
#include <driverd/core/hosts/adopt.h>

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>

void drv_host_lost(struct drv_host *host)
{
	host->now.is_lost = true;
	host->lease_over_ns = drv_lease_over_ns(host);
	drv_host_transition(host, DRV_HOST_GONE);
}

/* Why it is lost. */
static const char *sentence_of(const struct drv_host *host, const struct drv_session *session,
			       const char *why)
{
	return drv_text(session->core, "worker %s at %s, which ran %s, was lost: %s", session->name,
			session->peer, host->name, why);
}

/* Whether nothing fails with it: it was killed for a stop, or has ended. */
static bool is_given_up(const struct drv_host *host)
{
	return host->now.state == DRV_HOST_GONE ||
	       (host->now.state == DRV_HOST_KILLED &&
		host->replacement.phase < DRV_PHASE_YIELDING && host->app->end < DRV_END_FAILED);
}

/* The first host of the application that cannot go on without this worker; NULL: none. */
static struct drv_host *first_to_fail(const struct drv_session *session, const struct drv_app *app)
{
	struct drv_host *host = session->first_host;

	while (host != NULL &&
	       (host->app != app || is_given_up(host) || drv_host_may_survive_loss(host)))
		host = host->next_there;
	return host;
}

bool drv_host_lose_some(struct drv_session *session, const char *why)
{
	struct drv_app *app = session->first_host->app;
	struct drv_host *first = first_to_fail(session, app), *host, *next;
	bool was_killed, has_ended;

	for (host = session->first_host; host != NULL; host = next) {
		next = host->next_there;
		if (host->app != app)
			continue;
		was_killed = host->now.state == DRV_HOST_KILLED;
		has_ended = is_given_up(host);
		if (host->now.state != DRV_HOST_GONE)
			drv_host_lost(host);
		drv_host_detach(host);
		/* Nothing goes on elsewhere of what fails. */
		if (has_ended ||
		    (first == NULL &&
		     drv_host_survives_loss(host, was_killed, sentence_of(host, session, why))))
			continue;
		first = first == NULL ? host : first;
	}
	if (first != NULL)
		drv_app_fail(app, FRAGI_FAILURE_WORKER_LOST, first, "%s",
			     sentence_of(first, session, why));
	return first != NULL;
}

/*
 * Fails the application because of a message that does not fit the state of the host: a bug, or not
 * frag.
 */
static void out_of_turn(struct drv_host *host, const struct fw_message *message)
{
	drv_app_fail(host->app, FRAGI_FAILURE_PROTOCOL, host,
		     "worker %s sent %s for %s, which is %s; is it the same version of frag?",
		     host->worker, fw_kind_name(message->kind), host->name,
		     drv_host_machine.state_names[host->now.state]);
}

bool drv_host_tables_match(const struct drv_host *host, const struct fw_host_prepared *prepared)
{
	if (prepared->fragment_count != host->fragment_count)
		return false;
	for (uint32_t i = 0; i < host->fragment_count; i++)
		if (strcmp(prepared->fragments[i].name,
			   host->app->spec->fragments[host->fragments[i]].name) != 0)
			return false;
	return true;
}

/* All errors of all hosts are reported together. */
static void keep_errors(struct drv_app *app, const struct drv_host *host,
			const struct fw_host_prepared *prepared)
{
	struct fragi_diag *diag = &app->diag;

	for (uint32_t i = 0; i < prepared->error_count; i++) {
		const struct fw_failure *error = &prepared->errors[i];
		size_t first = diag->count;

		fragi_diag_add(diag, -EINVAL, error->file, (int)error->line, (int)error->column,
			       "%s", error->sentence);
		fragi_diag_classify(diag, first, error->code, error->op);
	}
	diag->beyond += prepared->errors_beyond;
	/* The sentences do not name the worker: they are the same wherever an error is found. */
	if (prepared->error_count > 0 && !app->core->config.is_local)
		drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app),
			"worker %s could not prepare %s", host->worker, host->name);
	if (prepared->error_count == 0) {
		size_t first = diag->count;

		fragi_diag_add(diag, -EINVAL, NULL, 0, 0, "%s on worker %s could not be prepared",
			       host->name, host->worker);
		fragi_diag_classify(diag, first, FRAGI_FAILURE_HOST_FAILED, NULL);
	}
}

/* Takes the answer of a restarting host to PREPARE. Takes message. */
static void restart_prepared(struct drv_host *host, struct fw_message *message)
{
	const struct fw_host_prepared *prepared = &message->prepared;
	static const struct fw_failure changed = {
		.code = FRAGI_FAILURE_HOST_FAILED,
		.sentence =
			"its operators, ports or types are others than before; a library has changed, so start the application anew"};

	host->app->core->items -= prepared->flow_count;
	drv_host_transition(host, DRV_HOST_PREPARED);
	if (prepared->ok && drv_host_tables_are_same(&host->tables->prepared, prepared)) {
		fw_message_free(host->now.prepared);
		host->now.prepared = message;
		return;
	}
	drv_host_failed(host, prepared->error_count > 0 ? &prepared->errors[0] : &changed);
	fw_message_free(message);
}

static void host_prepared(struct drv_host *host, struct fw_message *message)
{
	if (host->now.state != DRV_HOST_PREPARING) {
		out_of_turn(host, message);
		fw_message_free(message);
		return;
	}
	if (drv_host_is_restarting(host)) {
		restart_prepared(host, message);
		return;
	}
	host->tables = message;
	if (!message->prepared.ok) {
		host->failed = true;
		keep_errors(host->app, host, &message->prepared);
		message->prepared.flow_count = 0;
		if (!drv_host_tables_match(host, &message->prepared))
			message->prepared.fragment_count = 0;
	} else if (!drv_host_tables_match(host, &message->prepared)) {
		drv_app_fail(host->app, FRAGI_FAILURE_PROTOCOL, host,
			     "worker %s prepared other fragments than %s", host->worker,
			     host->name);
		return;
	}
	drv_host_transition(host, DRV_HOST_PREPARED);
}

static void host_result(struct drv_host *host, const struct fw_message *message,
			enum drv_host_state during, enum drv_host_state then)
{
	const struct fw_failure *failure = &message->result.failure;

	/* An adopted host was asked to start by the driver before. */
	bool asked_by_earlier = host->now.is_adopted && message->kind == FW_HOST_STARTED;

	if (host->now.state != during && !asked_by_earlier) {
		out_of_turn(host, message);
		return;
	}
	if (failure->code != FRAGI_FAILURE_NONE) {
		if (during == DRV_HOST_WIRING &&
		    (!drv_host_is_restarting(host) || host->replacement.cause != DRV_CAUSE_FAILURE))
			drv_suspect_wiring(host, failure);
		else
			drv_host_failed(host, failure);
		return;
	}
	if (!asked_by_earlier)
		drv_host_transition(host, then);
}

static void host_event(struct drv_host *host, const struct fw_message *message)
{
	const struct fw_host_event *event = &message->event;
	struct drv_app *app = host->app;

	switch (event->state) {
	case FW_STATE_RUNNING:
		host->now.is_idle = false;
		return;
	case FW_STATE_IDLE:
		host->now.is_idle = true;
		host->now.sent = event->sent;
		host->now.delivered = event->delivered;
		return;
	case FW_STATE_DONE:
		if (host->now.state == DRV_HOST_RUNNING)
			drv_host_transition(host, DRV_HOST_DONE);
		return;
	case FW_STATE_FAILED:
		/* The exit of one that is done follows: an earlier driver asked it to end. */
		if (host->now.state == DRV_HOST_DONE && drv_host_hands_over(host))
			return;
		if (host->now.state == DRV_HOST_PLACED) /* nobody was asked to start it yet */
			return;
		drv_host_failed(host, &event->failure);
		return;
	case FW_STATE_PEER_LOST:
		drv_suspect_link(host, event);
		return;
	case FW_STATE_STOPPED:
		drv_app_stop(app, 0);
		return;
	}
}

/*
 * Whether its end is in order: this driver has asked it to end, or, while the application stops,
 * its workerd, which ends too.
 */
static bool is_expected(const struct drv_host *host, const struct fw_host_exit *exit)
{
	const struct drv_app *app = host->app;
	bool stops = app->state == DRV_APP_DRAINING || app->state == DRV_APP_FAILING ||
		     (app->end == DRV_END_IN_ORDER &&
		      (app->state == DRV_APP_STARTING || app->state == DRV_APP_RUNNING));

	return exit->asked &&
	       (host->now.state == DRV_HOST_STOPPING || stops || drv_host_hands_over(host));
}

/* An end that nobody wanted is a failure of the application. */
static void fail_by_exit(struct drv_host *host, const struct fw_host_exit *exit)
{
	struct fw_failure failure = exit->failure;
	struct drv_app *app = host->app;
	bool is_news = app->end < DRV_END_FAILED; /* else why it ends is known */

	if (exit->asked && failure.code == FRAGI_FAILURE_WORKER_LOST) {
		const char *sentence =
			drv_text(app->core, "worker %s left while it ran %s: it was told to end",
				 host->worker, host->name);

		if (drv_host_survives_leave(host, sentence))
			return;
		drv_app_fail(app, FRAGI_FAILURE_WORKER_LOST, host, "%s", sentence);
		host->failed = true;
		return; /* nothing is wrong with the host, so its last lines explain nothing */
	}
	if (failure.code == FRAGI_FAILURE_NONE) { /* as its worker takes it, it was asked to end */
		failure.code = FRAGI_FAILURE_HOST_EXITED;
		failure.sentence =
			exit->signal == SIGKILL
				? drv_text(
					  app->core,
					  "%s on worker %s was ended by the driver before this one, to be started again",
					  host->name, host->worker)
				: drv_text(
					  app->core,
					  "the fraghost of %s on worker %s ended with %d before the application did",
					  host->name, host->worker, exit->exit_code);
	}
	drv_host_failed(host, &failure);
	for (uint32_t i = 0; is_news && i < exit->line_count; i++)
		drv_log_local(app->core, FRAGI_LOG_WARN, app->spec->application, "%s | %s",
			      host->name, exit->lines[i]);
}

/* A stop waits for it, because another process is to go on for it. */
static bool is_awaited_by_stop(const struct drv_host *host)
{
	return host->app->end == DRV_END_IN_ORDER && host->app->moving == host &&
	       !drv_host_hands_over(host);
}

void drv_host_leave(const struct drv_session *session)
{
	struct drv_host *next;

	for (struct drv_host *host = session->first_host; host != NULL; host = next) {
		next = host->next_there;
		if (host->now.state == DRV_HOST_GONE || !is_awaited_by_stop(host))
			continue;
		if (host->now.state == DRV_HOST_PLACED)
			drv_host_transition(host, DRV_HOST_GONE);
		else /* its worker has not seen its end */
			drv_host_lost(host);
		drv_replace_not_awaited(host);
	}
}

/*
 * Whether an earlier driver had the process killed: it took too long to end for a move, or another
 * one was to follow it, which the end of its application comes before.
 */
static bool was_killed_before(const struct drv_host *host, const struct fw_host_exit *exit)
{
	return host->now.is_adopted &&
	       (drv_host_hands_over(host) || host->app->end != DRV_END_NONE) &&
	       exit->signal == SIGKILL && exit->failure.code == FRAGI_FAILURE_NONE;
}

static void host_exit(struct drv_host *host, const struct fw_message *message)
{
	const struct fw_host_exit *exit = &message->exit;
	struct drv_app *app = host->app;
	bool refused = exit->failure.code == FRAGI_FAILURE_WORKER_BUSY && is_awaited_by_stop(host);
	bool expected = is_expected(host, exit) || refused;
	bool killed = host->now.state == DRV_HOST_KILLED || was_killed_before(host, exit);

	if (host->now.state == DRV_HOST_GONE)
		return;
	host->now.is_orderly = expected && exit->signal == 0;
	if (expected && host->now.state < DRV_HOST_DONE && !drv_host_hands_over(host) &&
	    app->summary.result == FRAGI_SUMMARY_DONE) /* it had not come to its end */
		app->summary.result = FRAGI_SUMMARY_STOPPED;
	drv_host_transition(host, DRV_HOST_GONE);
	if (expected)
		drv_suspicion_clear(host);
	if (!expected && !killed)
		fail_by_exit(host, exit);
	if (expected && is_awaited_by_stop(host))
		host->replacement.is_given_up = true; /* its worker ends too */
}

void drv_host_message(struct drv_host *host, struct fw_message *message)
{
	if (host->now.report != NULL && drv_adopt_keep(host, message))
		return;
	switch (message->kind) {
	case FW_HOST_PREPARED:
	case FW_HOST_WIRED:
	case FW_HOST_STARTED:
	case FW_HOST_EVENT:
	case FW_HOST_SET_DONE:
		if (host->now.state >= DRV_HOST_STOPPING)
			break;
		if (message->kind == FW_HOST_PREPARED) {
			host_prepared(host, message);
			return;
		}
		if (message->kind == FW_HOST_WIRED)
			host_result(host, message, DRV_HOST_WIRING, DRV_HOST_WIRED);
		else if (message->kind == FW_HOST_STARTED)
			host_result(host, message, DRV_HOST_STARTING, DRV_HOST_RUNNING);
		else if (message->kind == FW_HOST_SET_DONE)
			drv_parameter_done(host, &message->host_set_done);
		else
			host_event(host, message);
		break;
	case FW_HOST_SAVED:
		drv_move_saved(host, message);
		break;
	case FW_HOST_STATS:
		drv_account_take(host, message);
		drv_losses_look(host->app);
		return;
	case FW_HOST_LINES:
		drv_lines_take(host, &message->host_lines);
		break;
	case FW_HOST_EXIT:
		host_exit(host, message);
		break;
	default: /* the core lets no other kind through */
		break;
	}
	fw_message_free(message);
}
