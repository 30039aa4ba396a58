// SPDX-License-Identifier: Apache-2.0
#include <workerd/host/gpu_load.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <base/failure.h>
#include <type/nvml.h>

int host_gpu_load_print(void)
{
	struct fragi_gpu_load load;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return FRAGI_EXIT_FAILED;
	(void)signal(SIGPIPE, SIG_IGN);
	while (fragi_nvml_read(&load) == 0) {
		if (printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", load.count,
			   load.busy_permille, load.memory_bytes, load.memory_used_bytes) < 0 ||
		    fflush(stdout) != 0)
			return FRAGI_EXIT_OK;
		sleep(1);
	}
	return FRAGI_EXIT_MISSING;
}
