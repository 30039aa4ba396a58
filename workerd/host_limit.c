// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/host_limit.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/units.h>

static const struct {
	const char *name; /* as limits.conf and systemd call it */
	int resource;
} names[] = {
	{"as", RLIMIT_AS},         {"core", RLIMIT_CORE},   {"cpu", RLIMIT_CPU},
	{"data", RLIMIT_DATA},     {"fsize", RLIMIT_FSIZE}, {"memlock", RLIMIT_MEMLOCK},
	{"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC}, {"rtprio", RLIMIT_RTPRIO},
	{"rttime", RLIMIT_RTTIME}, {"stack", RLIMIT_STACK},
};

static int unknown(const char *text, struct frag_err *err)
{
	char list[128] = "";
	size_t used = 0;

	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
					 i > 0 ? ", " : "", names[i].name);
	return frag_err_set(
		err, -EINVAL,
		"--host-limit \"%.80s\" is no limit; give NAME=N or NAME=unlimited with one of %s",
		text, list);
}

/* Whether a host may have that. It is tried: the root of a container may have no right to it. */
static bool may_have(int resource, rlim_t value)
{
	struct rlimit own, raised;

	if (getrlimit((__rlimit_resource_t)resource, &own) < 0 || value <= own.rlim_max)
		return true;
	raised = (struct rlimit){own.rlim_cur, value};
	if (setrlimit((__rlimit_resource_t)resource, &raised) < 0)
		return false;
	(void)setrlimit((__rlimit_resource_t)resource, &own);
	return true;
}

int wrk_host_limits_add(struct wrk_host_limits *limits, const char *text, struct frag_err *err)
{
	const char *equals = strchr(text, '=');
	struct wrk_host_limit limit = {.resource = -1};
	uint64_t value = RLIM_INFINITY;

	for (size_t i = 0; equals != NULL && i < FRAG_COUNT_OF(names); i++)
		if (strlen(names[i].name) == (size_t)(equals - text) &&
		    strncmp(names[i].name, text, (size_t)(equals - text)) == 0)
			limit.resource = names[i].resource;
	if (limit.resource < 0 ||
	    (strcmp(equals + 1, "unlimited") != 0 && fragi_parse_size(equals + 1, &value) < 0))
		return unknown(text, err);
	if (limits->count == WRK_HOST_LIMITS_MAX)
		return frag_err_set(err, -EINVAL, "--host-limit is given more than %d times",
				    WRK_HOST_LIMITS_MAX);
	limit.value = (struct rlimit){(rlim_t)value, (rlim_t)value};
	if (!may_have(limit.resource, (rlim_t)value))
		return frag_err_set(
			err, -EPERM,
			"--host-limit %.80s is more than this worker has itself (ulimit -H); start it with more, or as root with the capability SYS_RESOURCE",
			text);
	limits->items[limits->count++] = limit;
	return 0;
}

struct rlimit wrk_host_limits_get(const struct wrk_host_limits *limits, int resource)
{
	struct rlimit found = {RLIM_INFINITY, RLIM_INFINITY};

	(void)getrlimit((__rlimit_resource_t)resource, &found);
	for (size_t i = 0; i < limits->count; i++)
		if (limits->items[i].resource == resource)
			found = limits->items[i].value;
	return found;
}

int wrk_host_limits_apply(const struct wrk_host_limits *limits)
{
	for (size_t i = 0; i < limits->count; i++)
		if (setrlimit((__rlimit_resource_t)limits->items[i].resource,
			      &limits->items[i].value) < 0)
			return -errno;
	return 0;
}
