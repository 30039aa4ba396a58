// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/environment.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "worker"
#include <base/log.h>
#include <base/may_write.h>
#include <edge/ucx_env.h>

#define ADDED_MAX 32

static const char *const ucx_settings[][2] = {
#define UCX_SETTING(name, value) {name, value},
	FRAGI_UCX_ENV(UCX_SETTING)
#undef UCX_SETTING
};

struct making {
	struct fragi_arena *arena;
	const char *names[ADDED_MAX]; /* that the flags decide */
	const char *entries[ADDED_MAX];
	size_t count;
	bool failed;
};

static void add(struct making *making, const char *name, const char *value)
{
	const char *entry = fragi_arena_printf(making->arena, "%s=%s", name, value);

	if (entry == NULL || making->count == ADDED_MAX) {
		making->failed = true;
		return;
	}
	making->names[making->count] = name;
	making->entries[making->count++] = entry;
}

/* The user's own wins. */
static void add_ucx(struct making *making, const char *name, const char *value)
{
	const char *own = getenv(name);

	if (own == NULL)
		add(making, name, value);
	else if (strcmp(own, value) != 0)
		log_info(NULL, "%s=%s of the environment is used instead of %s", name, own, value);
}

static bool is_decided(const struct making *making, const char *entry)
{
	size_t length = strcspn(entry, "=");

	for (size_t i = 0; i < making->count; i++)
		if (strncmp(making->names[i], entry, length) == 0 &&
		    making->names[i][length] == '\0')
			return true;
	return false;
}

char *const *wrk_environment_make(const struct wrk_environment *environment,
				  struct fragi_arena *arena)
{
	struct making making = {.arena = arena};
	char ports[16];
	size_t own = 0, count = 0;
	char **out;

	if (environment->library_path != NULL)
		add(&making, "FRAG_LIBRARY_PATH", environment->library_path);
	if (environment->app_root != NULL)
		add(&making, "FRAG_APP_ROOT", environment->app_root);
	add(&making, "FRAG_LIBRARY_PATHS",
	    environment->is_own_user        ? "any"
	    : environment->app_root != NULL ? "app"
					    : "none");
	add(&making, "FRAG_LOG_LEVEL", fragi_log_level_name(fragi_log_threshold));
	add(&making, FRAGI_OPERATOR_LOG_LEVEL, fragi_log_level_name(fragi_log_operator_threshold));
	if (environment->ucx_folder != NULL && environment->ucx_folder[0] != '\0')
		add(&making, FRAGI_UCX_FOLDER, environment->ucx_folder);
	for (size_t i = 0; i < FRAG_COUNT_OF(ucx_settings); i++)
		add_ucx(&making, ucx_settings[i][0], ucx_settings[i][1]);
	add_ucx(&making, "UCX_NET_DEVICES", environment->device);
	snprintf(ports, sizeof(ports), "%u-%u", (unsigned int)environment->port_first,
		 (unsigned int)environment->port_last);
	add_ucx(&making, "UCX_TCP_PORT_RANGE", ports);
	if (environment->announced != NULL)
		add(&making, FRAGI_UCX_ANNOUNCED, environment->announced);
	if (environment->may_write != NULL)
		add(&making, FRAGI_MAY_WRITE, environment->may_write);
	if (environment->user != NULL && environment->user->is_other) {
		add(&making, "HOME", environment->user->home);
		add(&making, "USER", environment->user->name);
		add(&making, "LOGNAME", environment->user->name);
	}
	while (environ[own] != NULL)
		own++;
	out = fragi_arena_alloc(arena, (own + making.count + 1) * sizeof(*out));
	if (out == NULL || making.failed)
		return NULL;
	for (size_t i = 0; i < own; i++)
		if (!is_decided(&making, environ[i]))
			out[count++] = environ[i];
	for (size_t i = 0; i < making.count; i++)
		out[count++] = (char *)(uintptr_t)making.entries[i];
	return out;
}

int wrk_environment_set(char *const **environment, const char *name, const char *value,
			struct fragi_arena *arena)
{
	const char *entry = fragi_arena_printf(arena, "%s=%s", name, value);
	const size_t length = strlen(name) + 1;
	char *const *own = *environment;
	size_t count = 0, kept = 0;
	char **out;

	while (own[count] != NULL)
		count++;
	out = fragi_arena_alloc(arena, (count + 2) * sizeof(*out));
	if (entry == NULL || out == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (strncmp(own[i], entry, length) != 0)
			out[kept++] = own[i];
	out[kept] = (char *)(uintptr_t)entry;
	*environment = out;
	return 0;
}
