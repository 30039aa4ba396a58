// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include <base/failure.h>
#include <base/environment.h>
#include <base/log.h>
#include <base/service.h>
#include <base/standard_fds.h>
#include <workerd/options.h>
#include <workerd/shell.h>

int main(int argc, char **argv)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct wrk_options options;
	int r, exit_code = FRAGI_EXIT_OK;

	fragi_standard_fds_open();
	fragi_service_open();
	fragi_log_choose_format();
	r = wrk_options_parse(&options, argc, argv, &err);
	if (r < 0) {
		fragi_log_print("workerd: %s\n", err.text[0] != '\0' ? err.text : frag_strerror(r));
		exit_code = fragi_failure_exit(r == -ENOMEM ? FRAGI_FAILURE_OUT_OF_MEMORY
							    : FRAGI_FAILURE_USAGE);
	} else if (r == 0) {
		fragi_log_init(options.verbosity);
		fragi_environment_check();
		exit_code = wrk_shell_run(&options);
	}
	wrk_options_fini(&options);
	return exit_code;
}
