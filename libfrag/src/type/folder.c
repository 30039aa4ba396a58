// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <type/registry.h>

static char folder[PATH_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Removes the last component. */
static void to_parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash != NULL)
		*slash = '\0';
}

/*
 * The shared library lies in the folder itself. A program that is linked with libfrag statically
 * lies in another folder (bin, libexec/frag, a folder of tests in the build tree), so parent
 * folders are searched too.
 */
static void find_folder(void)
{
	char path[PATH_MAX], candidate[PATH_MAX + 16];
	Dl_info info;
	const char *file;
	ssize_t n;

	if (dladdr((void *)&folder, &info) != 0 && info.dli_fname != NULL) {
		file = strrchr(info.dli_fname, '/');
		if (file != NULL && strncmp(file, "/libfrag.so", 11) == 0 &&
		    realpath(info.dli_fname, folder) != NULL) {
			to_parent(folder);
			return;
		}
	}
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < 4 && path[0] != '\0'; i++) {
		to_parent(path);
		snprintf(candidate, sizeof(candidate), "%s/lib/frag", path);
		if (access(candidate, X_OK) != 0)
			continue;
		snprintf(folder, sizeof(folder), "%.*s", (int)(strlen(candidate) - strlen("/frag")),
			 candidate);
		return;
	}
	snprintf(folder, sizeof(folder), "/usr/lib");
}

const char *fragi_library_folder(void)
{
	pthread_once(&once, find_folder);
	return folder;
}
