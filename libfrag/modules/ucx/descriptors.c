// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <base/failure.h>

#include "module.h"

/*
 * Where UCX finds no descriptor left, it aborts the process at some places and blames the network
 * at others. So they are counted before it needs them.
 */
static int count_free(uint64_t *out_free, uint64_t *out_limit)
{
	struct rlimit limit;
	DIR *folder;
	const struct dirent *entry;
	uint64_t used = 0;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	*out_limit = limit.rlim_cur;
	folder = opendir("/proc/self/fd");
	if (folder == NULL)
		return -errno;
	while ((entry = readdir(folder)) != NULL)
		if (entry->d_name[0] != '.' && strtoull(entry->d_name, NULL, 10) < limit.rlim_cur)
			used++;
	closedir(folder);
	*out_free = limit.rlim_cur - used + 1; /* the folder's own */
	return 0;
}

int ucx_descriptors_check(uint32_t wanted, struct frag_err *err)
{
	uint64_t left = 0, limit = 0;
	int r = count_free(&left, &limit);

	if (r == -ENOENT || (r == 0 && left >= wanted)) /* without /proc it stays unknown */
		return 0;
	if (r < 0)
		return fragi_err_fail(
			err, FRAGI_FAILURE_SYSTEM_REFUSED, NULL, r,
			"cannot list the descriptors of this host: %s; raise the limit (ulimit -n), or look for an operator that opens many",
			frag_strerror(r));
	return fragi_err_fail(
		err, FRAGI_FAILURE_SYSTEM_REFUSED, NULL, -EMFILE,
		"this host has %llu descriptors left of %llu, and UCX needs %u more; raise the limit (ulimit -n), or look for an operator that opens many",
		(unsigned long long)left, (unsigned long long)limit, wanted);
}
