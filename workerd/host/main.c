/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/failure.h>
#include <base/log.h>
#include <base/standard_fds.h>
#include <workerd/core/host_exit.h>
#include <workerd/host/process.h>
#include <workerd/spawn.h>

/* As workerd decided; nothing else is believed. */
static enum fragi_library_paths library_paths(void)
{
	const char *word = getenv("FRAG_LIBRARY_PATHS");

	if (word != NULL && strcmp(word, "any") == 0)
		return FRAGI_LIBRARY_PATHS_ANY;
	return word != NULL && strcmp(word, "app") == 0 ? FRAGI_LIBRARY_PATHS_IN_APP
							: FRAGI_LIBRARY_PATHS_NONE;
}

int main(int argc, char **argv)
{
	pid_t parent = getppid();
	int type;
	socklen_t size = sizeof(type);

	fragi_standard_fds_open();
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		printf("fraghost %s\n", FRAG_VERSION);
		return 0;
	}
	if (argc > 1 || getsockopt(WRK_HOST_FD_CONTROL, SOL_SOCKET, SO_TYPE, &type, &size) < 0) {
		fprintf(argc > 1 && strcmp(argv[1], "--help") == 0 ? stdout : stderr,
			"fraghost runs fragments; workerd starts it with a socket at descriptor %d. It is not started by hand: use workerd, or fragctl run.\n",
			WRK_HOST_FD_CONTROL);
		return argc > 1 && strcmp(argv[1], "--help") == 0 ? FRAGI_EXIT_OK
								  : FRAGI_EXIT_USAGE;
	}
	/* Set by workerd already; again in case that something stood between. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return WRK_HOST_EXIT_LOST;
	fragi_log_init(0);
	return host_process_run(library_paths());
}
