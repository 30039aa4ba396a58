// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>

/*
 * A drained worker is given no fragments, and those that it runs are moved to others (move.c). It
 * is known by its name, so that it stays drained until a client ends that, also when it comes back
 * on a new connection, as a new process, or with a number behind its name because the old
 * connection is not given up yet; and with a driver that keeps state also when the driver comes
 * back.
 */
struct drv_drained {
	struct drv_drained *next;
	char name[]; /* of a worker that was there once */
};

static struct drv_drained **find(struct drv_core *core, const char *name)
{
	struct drv_drained **at = &core->drained;

	while (*at != NULL && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

/* Whether a worker has that name, or asked for it and got it with a number: "w", "w#2". */
static bool asked_for(const char *worker, const char *name)
{
	size_t length = strlen(name);

	return strncmp(worker, name, length) == 0 &&
	       (worker[length] == '\0' || worker[length] == '#');
}

bool drv_drain_is(const struct drv_core *core, const char *worker)
{
	for (const struct drv_drained *one = core->drained; one != NULL; one = one->next)
		if (asked_for(worker, one->name))
			return true;
	return false;
}

void drv_drain_fini(struct drv_core *core)
{
	struct drv_drained *next;

	for (struct drv_drained *one = core->drained; one != NULL; one = next) {
		next = one->next;
		fragi_free(one);
	}
	core->drained = NULL;
}

const char *drv_drain_unknown(struct drv_core *core, const char *name)
{
	const char **names = fragi_arena_alloc(&core->actions->arena,
					       (core->session_count + 1) * sizeof(*names));
	char advice[400] = "";
	size_t count = 0;

	for (size_t i = 0; names != NULL && i < core->session_count; i++)
		if (core->sessions[i]->role == FW_ROLE_WORKER)
			names[count++] = core->sessions[i]->name;
	if (names != NULL)
		fragi_advise(advice, sizeof(advice), name, "workers", names, count);
	return drv_text(core, "there is no worker \"%.80s\"%s", name, advice);
}

static int add(struct drv_core *core, const char *name)
{
	size_t size = strlen(name) + 1;
	struct drv_drained *one = fragi_calloc(1, sizeof(*one) + size);

	if (one == NULL)
		return -1;
	memcpy(one->name, name, size);
	one->next = core->drained;
	core->drained = one;
	core->drained_count++;
	return 0;
}

int drv_drain_restore(struct drv_core *core, const char *worker)
{
	return *find(core, worker) != NULL || core->drained_count == DRV_WORKERS_MAX ||
			       add(core, worker) == 0
		       ? 0
		       : -ENOMEM;
}

/* The list has changed: a worker may be drained under another name still. */
static void apply_list(struct drv_core *core)
{
	for (size_t i = 0; i < core->session_count; i++)
		if (core->sessions[i]->role == FW_ROLE_WORKER)
			core->sessions[i]->is_drained = drv_drain_is(core, core->sessions[i]->name);
	drv_app_wake_all(core);
}

static void drop(struct drv_core *core, struct drv_drained **at)
{
	struct drv_drained *one = *at;

	*at = one->next;
	apply_list(core);
	drv_persist_drained(core, one->name, false);
	fragi_free(one);
	core->drained_count--;
}

/* Returns why it cannot be done; NULL: it is done. */
static const char *change(struct drv_core *core, const struct fw_drain *wanted,
			  enum fragi_failure *out_code)
{
	struct drv_drained **at = find(core, wanted->worker);
	struct drv_session *session = drv_session_worker(core, wanted->worker);

	*out_code = FRAGI_FAILURE_USAGE;
	if (wanted->undo && *at == NULL && session != NULL && session->is_drained) {
		session->is_drained = false; /* drained under the name without a number */
		drv_app_wake_all(core);
		return NULL;
	}
	if (wanted->undo && *at == NULL && session != NULL && wanted->rebalance)
		return NULL; /* the drain has ended before */
	if (wanted->undo) {
		if (*at == NULL)
			return session != NULL
				       ? drv_text(core, "worker %s is not drained", wanted->worker)
				       : drv_drain_unknown(core, wanted->worker);
		drop(core, at);
		return NULL;
	}
	if (*at != NULL) {
		if (session != NULL)
			session->is_drained = true;
		return NULL;
	}
	if (session == NULL)
		return drv_drain_unknown(core, wanted->worker);
	*out_code = FRAGI_FAILURE_STATE_UNWRITABLE;
	if (core->is_behind)
		return drv_text(core,
				"worker %s is not drained: the state folder cannot be "
				"written; " DRV_STATE_ADVICE,
				wanted->worker);
	*out_code = FRAGI_FAILURE_DRIVER_FULL;
	if (core->drained_count == DRV_WORKERS_MAX)
		return drv_text(core, "driverd knows %d drained workers, as many as it takes",
				DRV_WORKERS_MAX);
	*out_code = FRAGI_FAILURE_OUT_OF_MEMORY;
	if (add(core, wanted->worker) < 0)
		return "driverd has no memory left for that";
	drv_persist_drained(core, wanted->worker, true);
	session->is_drained = true;
	drv_app_wake_all(core);
	return NULL;
}

bool drv_drain(struct drv_session *client, const struct fw_message *message)
{
	const struct fw_drain *wanted = &message->drain;
	struct drv_core *core = client->core;
	enum fragi_failure code;
	const char *why_not = change(core, wanted, &code);

	if (why_not == NULL) {
		drv_log(core, FRAGI_LOG_INFO, NULL, "%s %s worker %s", client->who,
			wanted->undo ? "ends the drain of" : "drains", wanted->worker);
		drv_history_add(core, FW_NOTICE_DRAIN, NULL, client->who, "%s%s", wanted->worker,
				!wanted->undo ? ""
				: wanted->rebalance
					? ", which takes fragments again, and those that it had"
					: ", which takes fragments again");
	}
	if (why_not != NULL)
		drv_session_answer_failure(client, message->seq, "", code, why_not);
	else if (wanted->undo && !core->config.keeps_state)
		drv_session_answer(client, message->seq, 0, "", NULL);
	else
		drv_session_answer_when_kept(
			client, message->seq, 0, "",
			drv_text(
				core,
				wanted->undo
					? "the next driverd takes worker %s for drained"
					: "the next driverd does not know that worker %s is drained",
				wanted->worker));
	return why_not == NULL;
}
