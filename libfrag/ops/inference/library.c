// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

/* Finds a folder of the installation that this library is part of: lib/frag/FOLDER. */
static int own_folder(const char *folder, char *out, size_t size)
{
	static const int anchor;
	Dl_info info;
	const char *slash;

	if (dladdr(&anchor, &info) == 0 || info.dli_fname == NULL)
		return -ENOENT;
	slash = strrchr(info.dli_fname, '/');
	if (slash == NULL)
		return -ENOENT;
	snprintf(out, size, "%.*s/../%s", (int)(slash - info.dli_fname), info.dli_fname, folder);
	return 0;
}

void *inference_library_open(const char *variable, const char *folder, const char *name)
{
	const char *asked = getenv(variable);
	char own[PATH_MAX], path[PATH_MAX + 64];
	void *library = NULL;

	if (asked != NULL && asked[0] != '\0') {
		snprintf(path, sizeof(path), "%s/%s", asked, name);
		return dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (own_folder(folder, own, sizeof(own)) == 0) {
		snprintf(path, sizeof(path), "%s/%s", own, name);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return library != NULL ? library : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
