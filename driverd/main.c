// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/environment.h>
#define LOG_TOPIC "driver"
#include <base/log.h>
#include <base/service.h>
#include <base/standard_fds.h>
#include <base/trusted_path.h>
#include <driverd/result.h>
#include <driverd/shell.h>
#include <text/spec.h>

/* Reports a failure that comes before the driver serves anybody. */
static int fail(const struct drv_options *options, int r, struct frag_err *err)
{
	frag_err_set(err, r, "%s", frag_strerror(r));
	fragi_log_print("driverd: %s\n", err->text);
	return drv_result_fail(&options->output, NULL, err);
}

/* The same of what comes before everything else, when no file for the summary is known. */
static int refuse(const struct drv_options *options, enum fragi_failure failure, const char *why)
{
	const struct drv_output output = {.json = options->output.json};
	struct frag_err err = FRAG_ERR_INIT;

	fragi_err_fail(&err, failure, NULL, -EINVAL, "%s", why);
	fragi_log_print("driverd: %s\n", err.text);
	return drv_result_fail(&output, NULL, &err);
}

/* The key of encrypted flows travels on control connections. */
static void warn_of_plain_key(const struct drv_options *options, const struct fragi_spec *spec)
{
	bool encrypts = options->encrypt_data;

	for (size_t i = 0; i < spec->flow_count; i++)
		encrypts = encrypts || spec->flows[i].encrypt;
	if (encrypts && options->tls.key_file == NULL && options->tls.certificate == NULL &&
	    !fragi_address_is_loopback(&options->address))
		log_warn(
			NULL,
			"flows are encrypted, but control connections to %s are not: whoever reads those gets the key; give driverd and workerd a --key-file or certificates",
			options->address.host);
}

/*
 * Everything that needs no worker is checked before anybody is asked. Returns -1 to go on, or the
 * exit code.
 */
static int check(const struct drv_options *options, const struct fragi_spec_source *source)
{
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;
	char line[sizeof(struct frag_err)];
	int r = fragi_spec_parse(source, &diag, &spec), exit_code = -1;

	for (size_t i = 0; i < diag.count; i++)
		fragi_log_print("%s%s\n", diag.items[i].file[0] == '\0' ? "driverd: " : "",
				fragi_err_line(&diag.items[i], line, sizeof(line)));
	if (diag.beyond != 0)
		fragi_log_print("driverd: and %zu errors more\n", diag.beyond);
	/* `fragctl run --workers`, which starts this program, has logged them. */
	if (r == 0 && getenv(FRAGI_ENVIRONMENT_CHECKED) == NULL)
		fragi_spec_log_remarks(spec);
	if (r == 0 && !spec->help_wanted)
		warn_of_plain_key(options, spec);
	if (r < 0) {
		struct frag_err err = FRAG_ERR_INIT;

		frag_err_set(&err, r, "%s", frag_strerror(r));
		exit_code = drv_result_fail(&options->output, NULL,
					    diag.count != 0 ? &diag.items[0] : &err);
	} else if (spec->help_wanted) {
		fputs(fragi_spec_arguments_help(spec), stdout);
		exit_code = FRAGI_EXIT_OK;
	}
	fragi_spec_destroy(spec);
	fragi_diag_fini(&diag);
	return exit_code;
}

/* Checks that others cannot change the files: workers do what the graph says. */
static int check_files(const struct drv_options *options, struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;
	int r = fragi_trusted_path_check(options->app, geteuid(), &why);

	for (size_t i = 0; r == 0 && i < options->configs.count; i++)
		r = fragi_trusted_path_check(options->configs.items[i], geteuid(), &why);
	/* which its reader words */
	return r == 0 || r == -ENOENT ? 0
				      : fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, r,
						       "driverd %s", why.text);
}

/* The same of the files that the graph includes, which are known once it has been read. */
static int check_included(const struct fragi_spec_source *source, struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;
	char path[PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < source->file_count; i++) {
		const char *file = source->files[i].file;
		const bool is_full = file[0] == '/' || source->app_folder == NULL;

		snprintf(path, sizeof(path), "%s%s%s", is_full ? "" : source->app_folder,
			 is_full ? "" : "/", file);
		r = fragi_trusted_path_check(path, geteuid(), &why);
	}
	return r == 0 ? 0
		      : fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, r, "driverd %s",
				       why.text);
}

static int run(const struct drv_options *options)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_source source;
	size_t packed_bytes = 0;
	void *packed = NULL;
	int r = options->output.file != NULL ? fragi_summary_check(options->output.file, &err) : 0,
	    exit_code;

	if (r < 0)
		return refuse(options, FRAGI_FAILURE_SUMMARY_UNWRITABLE, err.text);
	if (options->app == NULL)
		return drv_shell_run(options, NULL, 0);
	r = check_files(options, &err);
	if (r < 0)
		return fail(options, r, &err);
	r = fragi_source_read(&source, options->app, options->configs.items, options->configs.count,
			      options->sets.items, options->sets.count, options->args,
			      options->arg_count, &err);
	if (r < 0)
		return fail(options, r, &err);
	r = check_included(&source.source, &err);
	if (r < 0) {
		fragi_source_fini(&source);
		return fail(options, r, &err);
	}
	exit_code = check(options, &source.source);
	if (exit_code < 0) {
		r = fragi_source_pack(&source.source, &packed, &packed_bytes);
		exit_code = r < 0 ? fail(options, r, &err)
				  : drv_shell_run(options, packed, packed_bytes);
	}
	fragi_free(packed);
	fragi_source_fini(&source);
	return exit_code;
}

int main(int argc, char **argv)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_options options;
	int r, exit_code = FRAGI_EXIT_OK;

	fragi_standard_fds_open();
	fragi_service_open();
	r = drv_options_parse(&options, argc, argv, &err);
	fragi_log_init(r == 0 ? options.verbosity : 0);
	if (r < 0) {
		exit_code = refuse(&options,
				   r == -ENOMEM ? FRAGI_FAILURE_OUT_OF_MEMORY : FRAGI_FAILURE_USAGE,
				   err.text[0] != '\0' ? err.text : frag_strerror(r));
	} else if (r == 0) {
		fragi_environment_check();
		exit_code = run(&options);
	}
	drv_options_fini(&options);
	return exit_code;
}
