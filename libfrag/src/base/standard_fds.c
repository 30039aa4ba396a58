/* SPDX-License-Identifier: Apache-2.0 */
#include <base/standard_fds.h>

#include <fcntl.h>
#include <unistd.h>

void fragi_standard_fds_open(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY); /* the lowest number that is free */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}
