/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RUN_APPLICATION_H
#define FRAGI_RUN_APPLICATION_H

#include <frag/run.h>
#include <text/spec.h>

/*
 * What frag/run.h needs of a driver, a worker and a host in one process, as the one symbol of the
 * module run (runner/module.c): libfrag itself knows nothing of them.
 */
struct fragi_runner;

struct fragi_runner_app {
	/* all borrowed until destroy */
	const struct fragi_source *source;
	const struct fragi_spec *spec;
	const char *library_path;
	void (*error)(void *arg, const char *line);
	void *arg;
};

struct fragi_runner_ops {
	size_t struct_size;
	const char *name;
	/* The functions of frag/run.h, whose contracts they share; a runner has been started. */
	int (*start)(const struct fragi_runner_app *app, struct fragi_runner **out_runner,
		     struct frag_err *err);
	int (*wait)(struct fragi_runner *runner, int64_t timeout_ns, struct frag_err *err);
	void (*stop)(struct fragi_runner *runner);
	int (*set)(struct fragi_runner *runner, const char *text, struct frag_err *err);
	const char *(*summary)(struct fragi_runner *runner);
	/*
	 * After the end. false: an operator hangs, and what the run has, app included, must be
	 * left.
	 */
	bool (*destroy)(struct fragi_runner *runner);
	/* frag_host_run */
	int (*host)(int *out_status);
};

#define FRAGI_RUNNER_SYMBOL "fragi_runner_v1"

#endif
