// SPDX-License-Identifier: Apache-2.0
#include <base/standard_fds.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Of an event loop, its signals, a listener and a peer; with fewer it would wait for ever. */
#define LOOP_FDS 20

void fragi_standard_fds_open(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY); /* the lowest number that is free */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int fragi_standard_fds_check(struct frag_err *err)
{
	int fds[LOOP_FDS], count = 0, r = 0;

	while (r == 0 && count < LOOP_FDS) {
		fds[count] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (fds[count] < 0)
			r = -errno;
		else
			count++;
	}
	while (count > 0)
		close(fds[--count]);
	return r < 0 ? fragi_err_fail(err, FRAGI_FAILURE_SYSTEM_REFUSED, NULL, r,
				      "cannot open the %d files that it needs to begin with: %s",
				      LOOP_FDS, frag_strerror(r))
		     : 0;
}
