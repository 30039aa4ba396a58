// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <stdio.h>
#include <string.h>

#include <base/alloc.h>

/*
 * Workers that are not there: the last ones that have left, or were lost, until one of their name
 * comes back, and those that are expected and have not come yet.
 */
#define AWAY_MAX 64

struct drv_away {
	struct drv_away *next; /* one that went before */
	int64_t since_ns;      /* real */
	bool has_left;         /* in order */
	uint32_t cores;
	struct fw_identity identity; /* as the session's; cleared once its key is revoked */
	uint64_t told; /* connection over which it was told that its key is revoked; 0: none */
	char name[2 * FRAG_NAME_MAX + 16], address[FRAG_NAME_MAX], ran[320];
};

bool drv_session_is_alike(const char *a, const char *b)
{
	size_t length = strcspn(a, "#");

	return length == strcspn(b, "#") && strncmp(a, b, length) == 0;
}

/* "fragment1 of street; fragment2 of road; and 7 more", as far as there is room. out is empty. */
static void list_hosts(const struct drv_session *session, char *out, size_t size)
{
	struct fragi_names names = {.text = out, .size = size, .separator = "; "};

	for (const struct drv_host *host = session->first_host; host; host = host->next_there)
		fragi_names_add(&names, "%.60s of %.30s", host->name, host->app->spec->application);
}

void drv_away_drop(struct drv_core *core, const char *name)
{
	struct drv_away **at = &core->away, *one;

	while ((one = *at) != NULL) {
		if (!drv_session_is_alike(one->name, name)) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		core->away_count--;
		fragi_free(one);
	}
}

void drv_away_add(const struct drv_session *session)
{
	struct drv_core *core = session->core;
	struct drv_away *one, **at = &core->away;

	for (size_t i = 0; i < core->session_count; i++)
		if (core->sessions[i] != session && core->sessions[i]->role == FW_ROLE_WORKER &&
		    drv_session_is_alike(core->sessions[i]->name, session->name))
			return; /* its next process came before that was noticed */
	one = fragi_calloc(1, sizeof(*one));
	if (one == NULL)
		return;
	one->has_left = session->has_left;
	one->cores = (uint32_t)(session->has[FRAGI_AMOUNT_CPU] / FRAGI_AMOUNT_ONE);
	one->since_ns = core->real_ns;
	one->identity = session->identity;
	one->told = session->is_revoked ? session->connection : 0;
	snprintf(one->name, sizeof(one->name), "%s", session->name);
	snprintf(one->address, sizeof(one->address), "%s", session->peer);
	list_hosts(session, one->ran, sizeof(one->ran));
	one->next = core->away;
	core->away = one;
	if (++core->away_count <= AWAY_MAX)
		return;
	while ((*at)->next != NULL)
		at = &(*at)->next;
	fragi_free(*at);
	*at = NULL;
	core->away_count--;
}

/* Its hosts run on until their lease ends, or somebody ends them. */
static void cannot_be_told(struct drv_core *core, const struct drv_away *one)
{
	const char *sentence =
		drv_text(core,
			 "worker %s cannot be told that its key %s is no longer in the key file: "
			 "this may still run there: %s",
			 one->name, one->identity.name, one->ran);

	if (one->ran[0] == '\0')
		return;
	drv_log(core, FRAGI_LOG_WARN, NULL, "%s", sentence);
	drv_history_add(core, FW_NOTICE_REFUSED, NULL, "", "%s", sentence);
}

void drv_away_revoke(struct drv_core *core, const struct drv_event *event)
{
	for (struct drv_away *one = core->away; one != NULL; one = one->next) {
		if (one->identity.name[0] == '\0' || one->told != 0 ||
		    event->accepts(event->arg, &one->identity))
			continue;
		cannot_be_told(core, one);
		one->identity.name[0] = '\0';
	}
}

void drv_away_unheard(struct drv_core *core, uint64_t connection)
{
	for (struct drv_away *one = core->away; one != NULL; one = one->next) {
		if (one->told != connection)
			continue;
		cannot_be_told(core, one);
		one->identity.name[0] = '\0';
		one->told = 0;
	}
}

void drv_away_fini(struct drv_core *core)
{
	struct drv_away *one;

	while ((one = core->away) != NULL) {
		core->away = one->next;
		fragi_free(one);
	}
	core->away_count = 0;
}

/* Whether a worker of that name is there, or was. */
static bool is_known(const struct drv_core *core, const char *name)
{
	for (size_t i = 0; i < core->session_count; i++)
		if (core->sessions[i]->role == FW_ROLE_WORKER &&
		    strcmp(core->sessions[i]->name, name) == 0)
			return true;
	for (const struct drv_away *one = core->away; one != NULL; one = one->next)
		if (strcmp(one->name, name) == 0)
			return true;
	return false;
}

size_t drv_away_count(const struct drv_core *core)
{
	return core->away_count + core->config.expected_count;
}

uint32_t drv_away_rows(const struct drv_core *core, const char *worker, struct fw_worker_row *rows)
{
	uint32_t count = 0;

	for (const struct drv_away *one = core->away; one != NULL; one = one->next)
		if (worker[0] == '\0' || strcmp(one->name, worker) == 0)
			rows[count++] = (struct fw_worker_row){
				.name = one->name,
				.address = one->address,
				.state = one->has_left ? "left" : "lost",
				.cores = one->cores,
				.waits_for = "",
				.age_ns = core->real_ns - one->since_ns + 1,
				.ran = one->ran,
				.limited = "",
			};
	for (size_t i = 0; i < core->config.expected_count; i++) {
		const char *name = core->config.expected[i];

		if ((worker[0] == '\0' || strcmp(name, worker) == 0) && !is_known(core, name))
			rows[count++] = (struct fw_worker_row){.name = name,
							       .address = "",
							       .state = "expected",
							       .waits_for = "",
							       .ran = "",
							       .limited = ""};
	}
	return count;
}
