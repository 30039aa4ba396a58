// SPDX-License-Identifier: Apache-2.0
#include <driverd/result.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_TOPIC "summary"
#include <base/log.h>
#include <driverd/stdout.h>

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

static int render(const struct drv_output *output, const struct fragi_summary *summary,
		  char **out_text, size_t *out_size)
{
	FILE *out = open_memstream(out_text, out_size);
	int r;

	if (out == NULL)
		return -ENOMEM;
	r = output->json ? fragi_summary_print_json(summary, out)
			 : fragi_summary_print_table(summary, out);
	if (fclose(out) != 0 && r == 0)
		r = -errno;
	return r;
}

static int print(const struct drv_output *output, const struct fragi_summary *summary,
		 int exit_code)
{
	char *text = NULL;
	size_t size = 0;
	int r = 0;

	if (output->json || !output->no_table)
		r = render(output, summary, &text, &size);
	if (r == 0)
		r = drv_stdout_write(text, size);
	free(text);
	if (r == 0)
		return exit_code;
	/* A closed terminal, or Ctrl-C in a pipeline: who stopped it took stdout's reader away. */
	if (summary->result == FRAGI_SUMMARY_STOPPED && (r == -EPIPE || r == -EIO))
		return exit_code;
	if (r == -EINTR)
		log_error(
			NULL,
			"the summary on stdout is incomplete: a signal came while nothing read it");
	else
		log_error(NULL, "cannot write the summary to stdout: %s", frag_strerror(r));
	return unwritten(exit_code);
}

/* Whether something that a node lacks may be behind it. */
static bool is_of_node(enum fragi_failure failure)
{
	static const enum fragi_failure of_node[] = {
		FRAGI_FAILURE_SYSTEM_REFUSED,    FRAGI_FAILURE_EDGE_UNREACHABLE,
		FRAGI_FAILURE_TRANSPORT_MISSING, FRAGI_FAILURE_HOST_NOT_STARTED,
		FRAGI_FAILURE_PORT_IN_USE,       FRAGI_FAILURE_DATA_PORT_IN_USE,
		FRAGI_FAILURE_STATE_UNWRITABLE,  FRAGI_FAILURE_GPU_MISSING,
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(of_node); i++)
		if (of_node[i] == failure)
			return true;
	return false;
}

int drv_result_show(const struct drv_output *output, const struct fragi_summary *summary)
{
	if (!output->json && is_of_node(summary->failure.code))
		fragi_log_print("`fragctl doctor`, on that node, finds what is wrong with it\n");
	return print(output, summary, write_file(output, summary, summary->exit_code));
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
		.failure = {.code = code,
			    .sentence = fragi_err_line(err, line, sizeof(line)),
			    .op = err->op[0] != '\0' ? err->op : NULL},
		.exit_code = fragi_failure_exit(code),
	};

	return drv_result_show(&without_table, &summary);
}
