// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <frag/plugin.h>

#include "library.h"

void *inference_library_open(const char *variable, const char *folder, const char *name)
{
	const char *asked = getenv(variable);
	char own[PATH_MAX], path[PATH_MAX + 64];
	void *library = NULL;

	if (frag_library_folder(variable, folder, own, sizeof(own)) == 0) {
		snprintf(path, sizeof(path), "%s/%s", own, name);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (library != NULL || (asked != NULL && asked[0] != '\0'))
		return library;
	return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
