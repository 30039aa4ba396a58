// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <fragctl/doctor.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <base/units.h>
#include <fragctl/tls/tls.h>
#include <type/registry.h>

/* Checks of files: the driver's state, certificates, and what is installed. */

#define STATE_OF_PACKAGES "/var/lib/frag-driver"
#define SYNCS 7
#define SYNC_SLOW_US 50000
#define FREE_MIN_MIB 256
#define DAY_S INT64_C(86400)
#define WARN_DAYS 30 /* as the daemons warn */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* How long a page takes to the disk, in microseconds: the middle one of some; -1: unknown. */
static long long ask_sync(const struct ctl_node *node)
{
	static const char page[4096];
	int64_t took[SYNCS];
	int fd = open(node->state, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	bool is_well = fd >= 0;

	for (size_t i = 0; is_well && i < SYNCS; i++) {
		int64_t begin = now_ns();

		is_well = pwrite(fd, page, sizeof(page), 0) == sizeof(page) && fdatasync(fd) == 0;
		took[i] = now_ns() - begin;
	}
	if (fd >= 0)
		close(fd);
	if (!is_well)
		return -1;
	qsort(took, SYNCS, sizeof(took[0]), compare);
	return took[SYNCS / 2] / 1000;
}

static long long ask_free(const struct ctl_node *node)
{
	struct statvfs at;

	return statvfs(node->state, &at) < 0
		       ? -1
		       : (long long)(at.f_bavail * (at.f_frsize / 1024) / 1024);
}

void ctl_check_state(const struct ctl_node *node, struct ctl_finding *finding)
{
	struct ctl_node with = *node;
	long long sync_us, free_mib;
	char text[32], room[48] = "";

	if (with.state == NULL)
		with.state = STATE_OF_PACKAGES;
	if (!ctl_node_may(&with, F_OK, with.state) && node->state == NULL) {
		ctl_finding_ok(finding, "none: no driver keeps state here");
		return;
	}
	if (!ctl_node_may(&with, W_OK, with.state)) {
		if (node->state == NULL) {
			ctl_finding_ok(finding, "%s, which only its driver may write", with.state);
			return;
		}
		ctl_finding_wrong(finding, "%.200s is not there, or not for this user", with.state);
		ctl_finding_cost(finding, "driverd cannot start with it (state_unwritable)");
		ctl_finding_mend(finding, "install -d -m 700 -o USER %.200s", with.state);
		return;
	}
	sync_us = ctl_node_ask(&with, "sync_us", ask_sync);
	free_mib = ctl_node_ask(&with, "free_mib", ask_free);
	fragi_format_duration(sync_us * 1000, text, sizeof(text));
	if (free_mib >= 0)
		snprintf(room, sizeof(room), ", %lld MiB free", free_mib);
	if (free_mib >= 0 && free_mib < FREE_MIN_MIB) {
		ctl_finding_wrong(finding, "%.200s has %lld MiB left", with.state, free_mib);
		ctl_finding_cost(finding, "a driver that cannot write its state takes no commands");
		ctl_finding_mend(finding, "make room: du -xh %.200s/.. | sort -h", with.state);
	} else if (sync_us > SYNC_SLOW_US) {
		ctl_finding_wrong(finding, "%.200s takes %s until a page is on the disk",
				  with.state, text);
		ctl_finding_cost(finding, "each command that changes what runs waits for it");
		ctl_finding_mend(finding, "give --state-dir a folder on a faster disk");
	} else if (sync_us < 0) {
		ctl_finding_ok(finding, "%.200s%s", with.state, room);
	} else {
		ctl_finding_ok(finding, "%.200s%s, a page is on the disk after %s", with.state,
			       room, text);
	}
}

/* Seconds until the certificate ends; INT64_MIN: it cannot be read, with a sentence. */
static int64_t seconds_left(const struct ctl_node *node, const char *path, struct frag_err *err)
{
	static const struct fragi_module module = {
		.name = "tls",
		.kind = "module",
		.advice = "install frag's packages completely",
		.symbol = CTL_TLS_SYMBOL,
		.table_size = sizeof(struct ctl_tls_module),
	};
	const struct ctl_tls_module *tls;
	const void *table;
	int64_t left;

	if (access(path, R_OK) < 0) {
		frag_err_set(err, -errno, "%.200s cannot be read: %s", node->certificate,
			     frag_strerror(-errno));
		return INT64_MIN;
	}
	if (fragi_module_open(&module, &table, err) < 0)
		return INT64_MIN;
	tls = table;
	return tls->certificate_left_s(path, &left, err) < 0 ? INT64_MIN : left;
}

void ctl_check_certificate(const struct ctl_node *node, struct ctl_finding *finding)
{
	struct frag_err err = FRAG_ERR_INIT;
	char path[PATH_MAX];
	int64_t left;

	if (node->certificate == NULL) {
		ctl_finding_ok(finding, "none is used (--cert)");
		return;
	}
	snprintf(path, sizeof(path), "%s%s", node->root, node->certificate);
	left = seconds_left(node, path, &err);
	if (left == INT64_MIN)
		ctl_finding_wrong(finding, "%s", err.text);
	else if (left <= 0)
		ctl_finding_wrong(finding, "%.200s has ended %lld days ago", node->certificate,
				  (long long)(-left / DAY_S));
	else if (left < WARN_DAYS * DAY_S)
		ctl_finding_wrong(finding, "%.200s ends in %lld days", node->certificate,
				  (long long)(left / DAY_S));
	else
		ctl_finding_ok(finding, "%.200s ends in %lld days", node->certificate,
			       (long long)(left / DAY_S));
	if (finding->is_wrong) {
		ctl_finding_cost(finding, "then no peer takes it: workers and driver do not meet");
		ctl_finding_mend(
			finding,
			"put a new one in its place; kill -HUP the daemon (docs/SECURITY.md)");
	}
}

void ctl_check_development(const struct ctl_node *node, struct ctl_finding *finding)
{
	static const char *const compilers[] = {"/usr/bin/cc", "/usr/local/bin/cc"};
	static const char *const headers[] = {"/usr/include/frag/frag.h",
					      "/usr/local/include/frag/frag.h"};
	bool has_headers = false, has_compiler = false;
	char own[PATH_MAX];

	for (size_t i = 0; i < FRAG_COUNT_OF(headers); i++)
		has_headers |= ctl_node_may(node, R_OK, headers[i]);
	if (node->root[0] ==
	    '\0') { /* of a build tree, or below a prefix: as `fragctl new` finds it */
		snprintf(own, sizeof(own), "%s/pkgconfig/frag.pc", fragi_library_folder());
		has_headers |= access(own, R_OK) == 0;
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(compilers); i++)
		has_compiler |= ctl_node_may(node, X_OK, compilers[i]);
	if (has_headers && !has_compiler) {
		ctl_finding_wrong(finding, "frag's headers are here, and no C compiler");
		ctl_finding_cost(
			finding,
			"fragctl run compiles no operators, and make of fragctl new fails");
		ctl_finding_mend(finding, "apt-get install gcc make pkg-config");
	} else if (has_headers) {
		ctl_finding_ok(finding, "operators can be compiled here");
	} else {
		ctl_finding_ok(finding,
			       "libfrag-dev is not installed: operators are compiled elsewhere");
	}
}

struct engine {
	const char *name, *variable, *folder, *library;
};

static const struct engine engines[] = {
	{"OpenVINO", "FRAG_OPENVINO", "openvino", "libopenvino_c.so"},
	{"ONNX Runtime", "FRAG_ONNXRUNTIME", "onnxruntime", "libonnxruntime.so.1"},
};

/* The library of an engine, or nothing. False if its variable names a folder without it. */
static bool find_engine(const struct ctl_node *node, const struct engine *engine,
			struct ctl_finding *finding, char path[PATH_MAX])
{
	static const char *const places[] = {"/usr/lib", "/usr/lib/*", "/usr/local/lib"};
	const size_t count = FRAG_COUNT_OF(places);
	const char *folder = node->root[0] == '\0' ? getenv(engine->variable) : NULL;
	char pattern[PATH_MAX], text[64];
	glob_t found;

	path[0] = '\0';
	if (node->root[0] != '\0' &&
	    ctl_node_read(node, text, sizeof(text), "/asked/%s", engine->variable))
		folder = text;
	if (folder != NULL) {
		snprintf(path, PATH_MAX, "%s/%s", folder, engine->library);
		if (ctl_node_may(node, R_OK, path))
			return true;
		ctl_finding_wrong(finding, "%s names %.120s, without the library", engine->variable,
				  folder);
		ctl_finding_cost(finding, "operators inference of backend %s are refused here",
				 engine->folder);
		ctl_finding_mend(finding, "%s=FOLDER with %s, or unset it", engine->variable,
				 engine->library);
		return false;
	}
	for (size_t i = 0; path[0] == '\0' && i < 2 * count;
	     i++) { /* of frag, then of the system */
		if (i < count)
			snprintf(pattern, sizeof(pattern), "%s/frag/%s/%s", places[i],
				 engine->folder, engine->library);
		else
			snprintf(pattern, sizeof(pattern), "%s/%s*", places[i - count],
				 engine->library);
		if (ctl_node_find(node, pattern, &found) > 0)
			snprintf(path, PATH_MAX, "%s", ctl_node_found(node, &found, 0));
		globfree(&found);
	}
	if (path[0] == '\0' && node->root[0] == '\0') { /* of a build tree, or below a prefix */
		snprintf(path, PATH_MAX, "%s/frag/%s/%s", fragi_library_folder(), engine->folder,
			 engine->library);
		if (access(path, R_OK) < 0)
			path[0] = '\0';
	}
	return true;
}

void ctl_check_inference(const struct ctl_node *node, struct ctl_finding *finding)
{
	char paths[FRAG_COUNT_OF(engines)][PATH_MAX], text[2 * 256] = "";

	for (size_t i = 0; i < FRAG_COUNT_OF(engines); i++) {
		size_t length = strlen(text);

		if (!find_engine(node, &engines[i], finding, paths[i]))
			return;
		if (paths[i][0] != '\0')
			snprintf(text + length, sizeof(text) - length, "%s%s: %.200s",
				 length > 0 ? "; " : "", engines[i].name, paths[i]);
	}
	if (text[0] != '\0')
		ctl_finding_ok(finding, "%s", text);
	else
		ctl_finding_ok(finding, "neither OpenVINO nor ONNX Runtime, of which the operator "
					"inference needs one");
}
