// SPDX-License-Identifier: Apache-2.0
#include <driverd/result.h>

#include <errno.h>

#define LOG_TOPIC "summary"
#include <base/log.h>

/* An application's own failure counts before that of its summary. */
static int unwritten(int exit_code)
{
	return exit_code != FRAGI_EXIT_OK ? exit_code
					  : fragi_failure_exit(FRAGI_FAILURE_SUMMARY_UNWRITABLE);
}

static int write_file(const struct drv_output *output, const struct fragi_summary *summary,
		      int exit_code)
{
	struct frag_err err = FRAG_ERR_INIT;

	if (output->file == NULL || fragi_summary_write(summary, output->file, &err) == 0)
		return exit_code;
	log_error(NULL, "%s", err.text);
	return unwritten(exit_code);
}

static int print(const struct drv_output *output, const struct fragi_summary *summary)
{
	int r = 0;

	if (output->json)
		r = fragi_summary_print_json(summary, stdout);
	else if (!output->no_table)
		r = fragi_summary_print_table(summary, stdout);
	if (fflush(stdout) != 0 && r == 0)
		r = -errno;
	if (r == 0)
		return summary->exit_code;
	log_error(NULL, "cannot write the summary to stdout: %s", frag_strerror(r));
	return unwritten(summary->exit_code);
}

int drv_result_show(const struct drv_output *output, const struct fragi_summary *summary)
{
	return write_file(output, summary, print(output, summary));
}

int drv_result_fail(const struct drv_output *output, const char *application,
		    const struct frag_err *err)
{
	char line[sizeof(struct frag_err)];
	const enum fragi_failure code = fragi_err_failure(err);
	const struct drv_output without_table = {output->json, true, output->file};
	const struct fragi_summary summary = {
		.application = application,
		.result = FRAGI_SUMMARY_FAILED,
		.failure = {.code = code, .sentence = fragi_err_line(err, line, sizeof(line))},
		.exit_code = fragi_failure_exit(code),
	};

	return drv_result_show(&without_table, &summary);
}
