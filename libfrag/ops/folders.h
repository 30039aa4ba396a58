/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_FOLDERS_H
#define OPS_FOLDERS_H

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Creates the folders that lead to path. Returns 0 or a negative errno. */
static inline int folders_make(const char *path)
{
	char folder[PATH_MAX];
	size_t length = strlen(path);

	if (length >= sizeof(folder))
		return -ENAMETOOLONG;
	memcpy(folder, path, length + 1);
	for (char *slash = strchr(folder + (length > 0), '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(folder, 0777) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

#endif
