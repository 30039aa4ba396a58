// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "../folders.h"
#include "logger.h"

int logger_open(const char *given, const char *folder, const struct frag_resource *logger,
		FILE **out, struct frag_err *err)
{
	const char *name = strrchr(given, '/');
	char path[PATH_MAX];
	int r;

	name = name != NULL ? name + 1 : given;
	if (snprintf(path, sizeof(path), "%.*s%s%s%s", (int)(name - given), given, folder, name,
		     frag_data_logger_suffix(logger)) >= (int)sizeof(path))
		return frag_err_set(err, -ENAMETOOLONG, "path is longer than a file's can be");
	r = folders_make(path);
	if (r == 0)
		r = frag_output_open(path, out);
	if (r < 0)
		return frag_err_set(err, r, "cannot write %s: %s; name another file", path,
				    frag_strerror(r));
	setvbuf(*out, NULL, _IOLBF, 0); /* whole lines, also if the process is killed */
	return 0;
}

int logger_check_room(FILE *file, uint64_t max_bytes)
{
	long at = max_bytes > 0 ? ftell(file) : 0;

	return at > 0 && (uint64_t)at >= max_bytes ? -EFBIG : 0;
}
