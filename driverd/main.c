// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include <base/alloc.h>
#include <base/log.h>
#include <driverd/options.h>
#include <driverd/shell.h>
#include <text/spec.h>
#include <track/summary.h>

static int exit_code_of(int r)
{
	return r == -EINVAL || r == -ERANGE || r == -EFBIG ? 2 : r == -ENOMEM ? 1 : 3;
}

static int fail(int r, const struct frag_err *err)
{
	fprintf(stderr, "driverd: %s\n", err->text[0] != '\0' ? err->text : frag_strerror(r));
	return exit_code_of(r);
}

/*
 * Everything that needs no worker is checked before anybody is asked. Returns -1 to go on, or the
 * exit code.
 */
static int check(const struct fragi_spec_source *source)
{
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;
	char line[sizeof(struct frag_err)];
	int r = fragi_spec_parse(source, &diag, &spec), exit_code = -1;

	for (size_t i = 0; i < diag.count; i++)
		fprintf(stderr, "%s%s\n", diag.items[i].file[0] == '\0' ? "driverd: " : "",
			fragi_err_line(&diag.items[i], line, sizeof(line)));
	if (diag.beyond != 0)
		fprintf(stderr, "driverd: and %zu errors more\n", diag.beyond);
	if (r < 0) {
		exit_code = exit_code_of(r);
	} else if (spec->help_wanted) {
		fputs(fragi_spec_arguments_help(spec), stdout);
		exit_code = 0;
	}
	fragi_spec_destroy(spec);
	fragi_diag_fini(&diag);
	return exit_code;
}

static int run(const struct drv_options *options)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_source source;
	size_t packed_bytes = 0;
	void *packed = NULL;
	int r = options->summary != NULL ? fragi_summary_check(options->summary, &err) : 0,
	    exit_code;

	if (r < 0) {
		fail(r, &err);
		return 3;
	}
	r = fragi_source_read(&source, options->app, options->configs.items, options->configs.count,
			      options->sets.items, options->sets.count, options->args,
			      options->arg_count, &err);
	if (r < 0)
		return fail(r, &err);
	exit_code = check(&source.source);
	if (exit_code < 0) {
		r = fragi_source_pack(&source.source, &packed, &packed_bytes);
		exit_code = r < 0 ? fail(r, &err) : drv_shell_run(options, packed, packed_bytes);
	}
	fragi_free(packed);
	fragi_source_fini(&source);
	return exit_code;
}

int main(int argc, char **argv)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_options options;
	int r = drv_options_parse(&options, argc, argv, &err), exit_code = 0;

	fragi_log_init(r == 0 ? options.verbosity : 0);
	if (r < 0)
		exit_code = fail(r, &err);
	else if (r == 0)
		exit_code = run(&options);
	drv_options_fini(&options);
	return exit_code;
}
