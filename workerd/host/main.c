// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include <base/failure.h>
#include <base/standard_fds.h>
#include <workerd/gpu_load.h>
#include <workerd/gpus.h>
#include <workerd/host/gpu_load.h>
#include <workerd/host/gpus.h>
#include <workerd/host/process.h>
#include <workerd/spawn.h>

int main(int argc, char **argv)
{
	int status;

	fragi_standard_fds_open();
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		printf("fraghost %s\n", FRAG_VERSION);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], WRK_HOST_GPUS) == 0)
		return host_gpus_print(); /* workerd opens no libraries */
	if (argc == 2 && strcmp(argv[1], WRK_HOST_GPU_LOAD) == 0)
		return host_gpu_load_print();
	if (argc > 1 || host_process_main(&status) < 0) {
		fprintf(argc > 1 && strcmp(argv[1], "--help") == 0 ? stdout : stderr,
			"fraghost runs fragments; workerd starts it with a socket at descriptor %d. It is not started by hand: use workerd, or fragctl run.\n",
			WRK_HOST_FD_CONTROL);
		return argc > 1 && strcmp(argv[1], "--help") == 0 ? FRAGI_EXIT_OK
								  : FRAGI_EXIT_USAGE;
	}
	return status;
}
