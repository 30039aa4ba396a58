// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <string.h>

#include <base/alloc.h>

/*
 * A data link that a host reports lost, or could not make, is most often a symptom: the host at its
 * other end has ended, and the report of that is on its way. So it is suspected, and judged after
 * a grace: it is the cause of the application's end only when no better one has shown.
 */
#define GRACE_NS ((int64_t)500000000)

/* A host lost the data link to another one, or could not make it. */
struct drv_suspicion {
	struct drv_suspicion *next;
	struct drv_host *host;
	struct drv_host *peer; /* NULL: only the sentence names it */
	enum fragi_failure code;
	int64_t since_ns, judge_ns;
	bool waits; /* for the worker of an end to be heard again */
	char sentence[];
};

static void judge_at(struct drv_app *app, struct drv_suspicion *s, int64_t at_ns)
{
	struct drv_timer *timer = &app->timers.judge;

	s->judge_ns = at_ns;
	if (!drv_timer_is_set(timer) || at_ns < timer->at_ns)
		drv_set(app->core, timer, at_ns);
}

/* Each link is suspected once: which one is judged first must not hide the others. */
static void suspect(struct drv_host *host, struct drv_host *peer, const struct fw_failure *failure)
{
	struct drv_app *app = host->app;
	struct drv_suspicion **at = &app->suspicions, *s;

	for (; *at != NULL; at = &(*at)->next)
		if ((*at)->host == host && (*at)->peer == peer)
			return;
	s = fragi_calloc(1, sizeof(*s) + strlen(failure->sentence) + 1);
	if (s == NULL) {
		drv_app_fail_for_memory(app);
		return;
	}
	s->host = host;
	s->peer = peer;
	s->code = failure->code;
	s->since_ns = app->core->now_ns;
	strcpy(s->sentence, failure->sentence);
	*at = s;
	judge_at(app, s, app->core->now_ns + GRACE_NS);
}

/*
 * Whether the host has no links that could have broken. While the application stops a host may end,
 * or be ended by its worker, before its peers, which then see the link break. Any other end has
 * ended the application. A process that has not been wired has no links yet: what broke was a link
 * to an earlier process, whose epoch may be the same when an earlier driver did not live to write
 * it down.
 */
static bool has_no_links(const struct drv_host *host)
{
	return host->now.state < DRV_HOST_WIRING || host->now.state >= DRV_HOST_KILLED;
}

void drv_suspect_link(struct drv_host *host, const struct fw_host_event *event)
{
	struct drv_app *app = host->app;
	struct drv_host *peer;

	if (event->peer == 0 || event->peer > app->host_count)
		return;
	peer = &app->hosts[event->peer - 1];
	if (has_no_links(peer) || (event->peer_epoch != 0 && event->peer_epoch != peer->now.epoch))
		return;
	drv_log(app->core, FRAGI_LOG_DEBUG, drv_app_name(app), "%s reports that it lost %s: %s",
		host->name, peer->name, event->failure.sentence);
	/* The peer cannot be reached, so another process has to take its place. */
	if (drv_host_is_restarting(peer) && drv_restart_is_due(peer))
		drv_host_failed(peer, &event->failure);
	else if (app->end < DRV_END_FAILED && drv_host_is_neighbour(host, peer))
		suspect(host, peer, &event->failure);
}

/* Forgets those of a host, at either end; NULL: all. */
static void forget(struct drv_app *app, const struct drv_host *host)
{
	struct drv_suspicion **at = &app->suspicions;

	while (*at != NULL) {
		struct drv_suspicion *s = *at;

		if (host != NULL && s->host != host && s->peer != host) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		fragi_free(s);
	}
}

void drv_suspicion_clear(const struct drv_host *host)
{
	forget(host->app, host);
}

void drv_suspicion_fini(struct drv_app *app)
{
	forget(app, NULL);
}

void drv_suspect_wiring(struct drv_host *host, const struct fw_failure *failure)
{
	struct drv_app *app = host->app;
	struct fw_failure named = *failure;
	const char *nat = NULL;

	for (uint32_t i = 0; i < app->host_count && nat == NULL; i++)
		if (app->hosts[i].now.session != NULL)
			nat = drv_session_translation(app->hosts[i].now.session);
	if (failure->sentence != NULL && failure->sentence[0] != '\0')
		named.sentence = drv_text(app->core, "%s on worker %s: %s%s%s", host->name,
					  host->worker, failure->sentence, nat != NULL ? "; " : "",
					  nat != NULL ? nat : "");
	host->failed = host->failed || !drv_host_is_restarting(host);
	if (app->end >= DRV_END_FAILED)
		return;
	drv_log(app->core, FRAGI_LOG_DEBUG, drv_app_name(app), "%s could not be wired: %s",
		host->name, failure->sentence);
	host->replacement.until_ns = INT64_MAX; /* it has answered */
	suspect(host, NULL, &named);
}

/*
 * A worker that has not been heard since the report, or for longer than between two beats, or not
 * until just now, may have more to say about its host.
 */
static bool is_suspect(const struct drv_host *host, const struct drv_suspicion *s)
{
	const struct drv_session *session = host->now.session;
	int64_t silent_ns;

	if (session == NULL || session->state == DRV_SESSION_SUSPECT)
		return session != NULL;
	silent_ns = session->core->now_ns - session->heard_ns;
	return host != s->host && (session->heard_ns <= s->since_ns ||
				   session->core->now_ns - session->heard_again_ns < GRACE_NS ||
				   silent_ns * 2 > session->core->config.beat_ns * 3);
}

/* Whether one of the ends may yet turn out to be dead. */
static bool ends_are_suspect(const struct drv_app *app, const struct drv_suspicion *s)
{
	bool found = is_suspect(s->host, s) || (s->peer != NULL && is_suspect(s->peer, s));

	for (uint32_t i = 0; s->peer == NULL && i < app->host_count; i++)
		found = found || is_suspect(&app->hosts[i], s);
	return found;
}

/*
 * Makes the suspicion the cause of the failure, because no better cause has shown. A host that is
 * restarting fails alone: another process may go on for it.
 */
static void blame(struct drv_app *app, const struct drv_suspicion *s)
{
	struct drv_host *failed = s->peer == NULL                   ? s->host
				  : drv_host_is_restarting(s->peer) ? s->peer
								    : NULL;
	struct fw_failure failure = {.code = s->code, .sentence = s->sentence};

	if (s->peer != NULL) {
		if (failure.code == FRAGI_FAILURE_NONE)
			failure.code = FRAGI_FAILURE_EDGE_LOST;
		failure.sentence = drv_text(
			app->core,
			"the data link between %s on worker %s and %s on worker %s was lost, while their control connections are up: %s",
			s->host->name, s->host->worker, s->peer->name, s->peer->worker,
			s->sentence);
	}
	if (failed == NULL)
		drv_app_fail(app, failure.code, s->host, "%s", failure.sentence);
	else
		drv_host_failed(failed, &failure);
}

/* Its time has come. Returns whether it is decided; else it waits. */
static bool judge(struct drv_app *app, struct drv_suspicion *s)
{
	const int64_t now_ns = app->core->now_ns;

	if (ends_are_suspect(app, s)) {
		s->waits = true;
		judge_at(app, s, now_ns + app->core->config.beat_ns);
		return false;
	}
	if (s->waits) { /* it is heard again, and has the usual time to say why */
		s->waits = false;
		judge_at(app, s, now_ns + GRACE_NS);
		return false;
	}
	if (s->peer == NULL && drv_replace_is_in_vain(s->host))
		drv_replace_not_awaited(s->host);
	else
		blame(app, s);
	return true;
}

void drv_suspicion_judge(struct drv_app *app)
{
	struct drv_suspicion **at = &app->suspicions, *s;

	while ((s = *at) != NULL && app->state < DRV_APP_CLOSING && app->end < DRV_END_FAILED) {
		if (s->judge_ns > app->core->now_ns) {
			judge_at(app, s, s->judge_ns);
			at = &s->next;
			continue;
		}
		*at = s->next;
		if (judge(app, s)) { /* others may be forgotten with it */
			fragi_free(s);
			at = &app->suspicions;
			continue;
		}
		s->next = *at;
		*at = s;
		at = &s->next;
	}
}
