/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <inttypes.h>
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
#include <type/cuda.h>
#include <workerd/core/host_exit.h>
#include <workerd/gpus.h>
#include <workerd/host/process.h>
#include <workerd/spawn.h>

/* Returns what workerd decided about library paths; any other word is not believed. */
static enum fragi_library_paths library_paths(void)
{
	const char *word = getenv("FRAG_LIBRARY_PATHS");

	if (word != NULL && strcmp(word, "any") == 0)
		return FRAGI_LIBRARY_PATHS_ANY;
	return word != NULL && strcmp(word, "app") == 0 ? FRAGI_LIBRARY_PATHS_IN_APP
							: FRAGI_LIBRARY_PATHS_NONE;
}

/* workerd opens no libraries, so it asks for them here. */
static int print_gpus(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	uint32_t count;
	uint64_t bytes;

	if (fragi_cuda_survey(&count, &bytes, &err) < 0) {
		printf("%s\n", err.text);
		return FRAGI_EXIT_MISSING;
	}
	printf("%" PRIu32 " %" PRIu64 "\n", count, bytes);
	return FRAGI_EXIT_OK;
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
	if (argc == 2 && strcmp(argv[1], WRK_HOST_GPUS) == 0)
		return print_gpus();
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
	return host_process_run(library_paths(), true);
}
