// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frag/plugin.h>
#include <type/registry.h>

static char own_folder[PATH_MAX];
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

	if (dladdr((void *)&own_folder, &info) != 0 && info.dli_fname != NULL) {
		file = strrchr(info.dli_fname, '/');
		if (file != NULL && strncmp(file, "/libfrag.so", 11) == 0 &&
		    realpath(info.dli_fname, own_folder) != NULL) {
			to_parent(own_folder);
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
		snprintf(own_folder, sizeof(own_folder), "%.*s",
			 (int)(strlen(candidate) - strlen("/frag")), candidate);
		return;
	}
	snprintf(own_folder, sizeof(own_folder), "/usr/lib");
}

const char *fragi_library_folder(void)
{
	pthread_once(&once, find_folder);
	return own_folder;
}

int frag_library_folder(const char *variable, const char *folder, char *out, size_t size)
{
	const char *asked = getenv(variable);
	char path[PATH_MAX + 64];
	int n = asked != NULL && asked[0] != '\0' ? snprintf(path, sizeof(path), "%s", asked)
						  : snprintf(path, sizeof(path), "%s/frag/%s",
							     fragi_library_folder(), folder);

	if (n < 0 || (size_t)n >= size || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	if ((asked == NULL || asked[0] == '\0') && access(path, X_OK) < 0)
		return -ENOENT;
	memcpy(out, path, (size_t)n + 1);
	return 0;
}
