// SPDX-License-Identifier: Apache-2.0
#include <base/sentence.h>
#include <fragctl/doctor.h>

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How the checks of `fragctl doctor` read a node. */

static bool read_at(const struct ctl_node *node, char *out, size_t size, const char *path)
{
	char full[PATH_MAX];
	FILE *file;
	size_t n;

	snprintf(full, sizeof(full), "%s%s", node->root, path);
	file = fopen(full, "re");
	if (file == NULL)
		return false;
	n = fread(out, 1, size - 1, file);
	fclose(file);
	while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == '\0'))
		n--;
	out[n] = '\0';
	return true;
}

bool ctl_node_read(const struct ctl_node *node, char *out, size_t size, const char *format, ...)
{
	char path[PATH_MAX / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return read_at(node, out, size, path);
}

long long ctl_node_number(const struct ctl_node *node, const char *format, ...)
{
	char path[PATH_MAX / 2], text[64], *end;
	long long number;
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (!read_at(node, text, sizeof(text), path))
		return -1;
	number = strtoll(text, &end, 10);
	return end != text ? number : -1;
}

size_t ctl_node_find(const struct ctl_node *node, const char *pattern, glob_t *out)
{
	char full[PATH_MAX];

	*out = (glob_t){0};
	snprintf(full, sizeof(full), "%s%s", node->root, pattern);
	if (glob(full, 0, NULL, out) != 0)
		out->gl_pathc = 0;
	return out->gl_pathc;
}

const char *ctl_node_found(const struct ctl_node *node, const glob_t *found, size_t i)
{
	return found->gl_pathv[i] + strlen(node->root);
}

bool ctl_node_may(const struct ctl_node *node, int mode, const char *path)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", node->root, path);
	return access(full, mode) == 0;
}

bool ctl_node_runs(const struct ctl_node *node, const char *name, char out_pid[16])
{
	glob_t found;
	char comm[64], pid[16] = "";
	size_t count = ctl_node_find(node, "/proc/[0-9]*/comm", &found);

	for (size_t i = 0; pid[0] == '\0' && i < count; i++) {
		const char *path = ctl_node_found(node, &found, i);

		if (read_at(node, comm, sizeof(comm), path) && strcmp(comm, name) == 0)
			snprintf(pid, sizeof(pid), "%.*s",
				 (int)strcspn(path + strlen("/proc/"), "/"),
				 path + strlen("/proc/"));
	}
	globfree(&found);
	if (out_pid != NULL && pid[0] != '\0')
		memcpy(out_pid, pid, sizeof(pid));
	return pid[0] != '\0';
}

void ctl_node_init(struct ctl_node *node)
{
	char parent[32] = "";

	snprintf(node->worker, sizeof(node->worker), "self");
	ctl_node_read(node, parent, sizeof(parent), "/proc/%d/comm", (int)getppid());
	if (strcmp(parent, "workerd") == 0) /* it has asked for this */
		snprintf(node->worker, sizeof(node->worker), "%d", (int)getppid());
	else
		ctl_node_runs(node, "workerd", node->worker);
	node->is_container = ctl_node_may(node, F_OK, "/run/.containerenv") ||
			     ctl_node_may(node, F_OK, "/.dockerenv");
}

/* A line is "Max locked memory         8388608              8388608              bytes". */
uint64_t ctl_node_limit(const struct ctl_node *node, const char *name)
{
	char text[4096], *line;

	if (!ctl_node_read(node, text, sizeof(text), "/proc/%s/limits", node->worker))
		return UINT64_MAX;
	line = strstr(text, name);
	if (line == NULL)
		return UINT64_MAX;
	line += strlen(name);
	line += strspn(line, " ");
	return line[0] == 'u' ? UINT64_MAX : strtoull(line, NULL, 10);
}

const char *ctl_node_subject(const struct ctl_node *node, char *out, size_t size)
{
	if (strcmp(node->worker, "self") == 0)
		snprintf(out, size, "a workerd that is started from here");
	else
		snprintf(out, size, "workerd (process %s)", node->worker);
	return out;
}

long long ctl_node_ask(const struct ctl_node *node, const char *name,
		       long long (*ask)(const struct ctl_node *node))
{
	return node->root[0] == '\0' ? ask(node) : ctl_node_number(node, "/asked/%s", name);
}

#define WRITE(out)                                                                                 \
	do {                                                                                       \
		va_list args;                                                                      \
                                                                                                   \
		va_start(args, format);                                                            \
		fragi_sentence_of(out, sizeof(out), format, args);                                 \
		va_end(args);                                                                      \
	} while (0)

void ctl_finding_ok(struct ctl_finding *finding, const char *format, ...)
{
	finding->is_wrong = false;
	WRITE(finding->found);
}

void ctl_finding_wrong(struct ctl_finding *finding, const char *format, ...)
{
	finding->is_wrong = true;
	WRITE(finding->found);
}

void ctl_finding_cost(struct ctl_finding *finding, const char *format, ...)
{
	WRITE(finding->cost);
}

void ctl_finding_mend(struct ctl_finding *finding, const char *format, ...)
{
	WRITE(finding->mend);
}
