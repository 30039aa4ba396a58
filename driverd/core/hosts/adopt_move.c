// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/hosts/adopt.h>

#include <string.h>

/*
 * A host may be reported more than once, because it has gone on in another process (move.c), or was
 * about to when the driver ended. Of these processes one is the host: the newest that was not
 * merely prepared beside it, nor is where the host was before it migrated to another worker.
 * HOST_PAST makes a prepared one the host, and is sent when the one before has ended; so there are
 * never two, and none whose counts are missed. A process that is still merely prepared is what the
 * host is moved to from then on.
 */

static const char *next_line(const char *at)
{
	at += strcspn(at, "\n");
	return at + (*at == '\n');
}

enum drv_adopt_place drv_adopt_place(const struct drv_app *app, uint32_t number,
				     const struct drv_session *session)
{
	const char *at = app->adopting->workers;
	bool is_last = false;

	for (uint32_t i = 1; at != NULL && *at != '\0' && i < number; i += *at != '\t')
		at = next_line(at);
	if (at == NULL || *at == '\0')
		return DRV_ADOPT_UNKNOWN;
	do { /* its worker, and the one to which it is being moved */
		const char *name = at + (*at == '\t');
		const size_t length = strcspn(name, "\n");

		is_last = is_last || (length == strlen(session->name) &&
				      strncmp(name, session->name, length) == 0);
		at = next_line(at);
	} while (*at == '\t');
	return is_last ? DRV_ADOPT_LAST : DRV_ADOPT_EARLIER;
}

/* NULL: it may not migrate. */
static const struct fragi_spec_on_failure *migrates(const struct drv_app *app,
						    const struct drv_reported *reported)
{
	const struct fw_host_create *create = &reported->report->report.create;
	const struct fragi_spec_fragment *fragment =
		create->fragment_count > 0 ? fragi_strmap_get(&app->by_name, create->fragments[0])
					   : NULL;

	return fragment != NULL && fragment->on_failure.policy == FRAGI_ON_FAILURE_MIGRATE
		       ? &fragment->on_failure
		       : NULL;
}

/* It has migrated to another worker, which may still have to come. */
static bool has_left(const struct drv_app *app, const struct drv_reported *reported)
{
	return migrates(app, reported) != NULL &&
	       drv_adopt_place(app, reported->number, reported->session) == DRV_ADOPT_EARLIER;
}

static struct drv_reported *owner_of(const struct drv_app *app, uint32_t number)
{
	struct drv_reported *owner = NULL;

	for (struct drv_reported *r = app->adopting->first; r != NULL; r = r->next)
		if (r->number == number && !drv_reported_is_beside(r) && !has_left(app, r) &&
		    (owner == NULL || r->epoch > owner->epoch))
			owner = r;
	return owner;
}

static bool has_failed(const struct drv_reported *reported)
{
	for (uint32_t i = 0; i < reported->queued; i++) {
		const struct fw_message *message = reported->queue[i];

		if (message->kind == FW_HOST_EXIT ||
		    (message->kind == FW_HOST_EVENT && message->event.state == FW_STATE_FAILED))
			return true;
	}
	return false;
}

/* It made way for another process, of which nobody knows whether it became the host. */
static bool has_made_way(const struct drv_app *app, const struct drv_reported *reported)
{
	bool is_known = false;

	for (const struct drv_reported *r = app->adopting->first; r != NULL; r = r->next)
		is_known = is_known || (drv_reported_is_beside(r) && r->number == reported->number);
	return reported->report->report.yields && has_failed(reported) && !is_known;
}

bool drv_adopt_may_have_left(const struct drv_app *app, const struct drv_reported *reported)
{
	const struct fragi_spec_on_failure *own = migrates(app, reported);

	if (has_made_way(app, reported))
		return true;
	/* Under a lease nothing follows a process that lives, nor one that ended with its run. */
	return own != NULL && reported->stop == FW_STOP_NOT &&
	       (own->lease_ns == 0 || has_failed(reported)) &&
	       drv_adopt_place(app, reported->number, reported->session) == DRV_ADOPT_UNKNOWN;
}

/*
 * Hosts are moved one after the other, so there is one such process at most. Drivers that have lost
 * their state may have given the same epoch to several.
 */
static bool is_needed(const struct drv_app *app, const struct drv_reported *reported)
{
	const struct drv_reported *owner = owner_of(app, reported->number);
	bool is_first = true;

	if (!drv_reported_is_beside(reported))
		return reported == owner;
	if ((owner != NULL && owner->epoch > reported->epoch) || has_failed(reported))
		return false;
	for (const struct drv_reported *r = app->adopting->first; r != NULL; r = r->next) {
		is_first = is_first && r != reported;
		if (drv_reported_is_beside(r) &&
		    (r->epoch > reported->epoch || (is_first && r->epoch == reported->epoch)))
			return false;
	}
	return true;
}

/* The counts of that process are within what the worker of the host has. */
static void forget(const struct drv_reported *reported, const struct drv_reported *owner)
{
	struct fw_message message = {.kind = FW_HOST_PAST,
				     .run = owner->app->run,
				     .host = owner->number,
				     .epoch = owner->epoch};

	if (reported->session != owner->session && reported->session->minor >= DRV_MOVES_MINOR)
		(void)drv_send(reported->session, &message); /* else it stays until the end */
}

void drv_adopt_choose(struct drv_app *app)
{
	struct drv_reported **at = &app->adopting->first;

	while (*at != NULL) {
		struct drv_reported *reported = *at;
		struct drv_reported *owner = owner_of(app, reported->number);

		if (is_needed(app, reported)) {
			at = &reported->next;
			continue;
		}
		if (!drv_reported_is_beside(reported) && owner != NULL &&
		    owner->report->report.restarts == 0)
			owner->report->report.is_inexact = true;
		drv_adopt_disown(reported->session, app->run, reported->number, reported->epoch,
				 false);
		if (!drv_reported_is_beside(reported) && owner != NULL)
			forget(reported, owner);
		*at = reported->next;
		drv_reported_free(reported);
	}
}

/* It was to go on in another process, so it is the host only if that one is not known anywhere. */
bool drv_adopt_may_be_elsewhere(const struct drv_app *app)
{
	for (const struct drv_reported *r = app->adopting->first; r != NULL; r = r->next)
		if (r->report->report.yields)
			return true;
	return false;
}

static bool is_current(const struct drv_app *app, const struct fw_host_create *create)
{
	return create->source_bytes == app->source.size &&
	       memcmp(create->source, app->source.bytes, app->source.size) == 0;
}

void drv_adopt_take_beside(struct drv_app *app)
{
	for (struct drv_reported *r = app->adopting->first; r != NULL; r = r->next) {
		struct fw_message *prepared = r->prepared;

		if (!drv_reported_is_beside(r) || r->number == 0 || r->number > app->host_count)
			continue;
		r->prepared = NULL;
		drv_move_resume(&app->hosts[r->number - 1], r->session, r->epoch, prepared,
				is_current(app, &r->report->report.create));
	}
}

void drv_adopt_hear_other(struct drv_app *app, const struct drv_reported *reported,
			  struct fw_message *message)
{
	struct drv_host *host =
		reported->number - 1 < app->host_count ? &app->hosts[reported->number - 1] : NULL;

	if (host != NULL && drv_next_is(host, reported->session, reported->epoch))
		drv_next_message(host, message);
	else
		fw_message_free(message);
}
