// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <res/data_logger.h>
#include <run/state.h>
#include <sched/logging.h>

/* The data loggers of this process's fragments, from before the first tick to after the last. */

int fragi_run_install_loggers(struct fragi_run *run, struct fragi_diag *diag)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < run->fragment_count; i++) {
		struct frag_fragment *fragment = run->fragments[i].fragment;

		for (uint32_t k = 0; r == 0 && k < fragment->op_count; k++)
			r = fragi_logging_install(fragment->ops[k]);
	}
	return r < 0 ? fragi_diag_add(diag, r, NULL, 0, 0, "out of memory for data loggers") : 0;
}

int fragi_run_start_loggers(struct fragi_run *run, struct frag_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < run->fragment_count; i++) {
		struct frag_fragment *fragment = run->fragments[i].fragment;

		for (uint32_t k = 0; r == 0 && k < fragment->logger_count; k++)
			r = fragi_data_logger_start(fragi_data_logger_of(fragment->loggers[k]),
						    err);
	}
	return r;
}

void fragi_run_stop_loggers(struct fragi_run *run, bool operator_hangs)
{
	for (size_t i = 0; i < run->fragment_count; i++) {
		struct frag_fragment *fragment = run->fragments[i].fragment;

		for (uint32_t k = 0; k < fragment->logger_count; k++)
			fragi_data_logger_stop(fragi_data_logger_of(fragment->loggers[k]),
					       operator_hangs);
	}
}
