/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_RUN_H
#define FRAG_RUN_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Runs an application from a program, to its end or until it is stopped:
 *
 * 	struct frag_run_config config = FRAG_RUN_CONFIG_INIT;
 * 	struct frag_err err = FRAG_ERR_INIT;
 * 	struct frag_run *run;
 *
 * 	config.path = "app.yaml";
 * 	if (frag_run_load(&config, &run, &err) < 0)
 * 		return complain(&err);
 * 	if (frag_run_start(run, &err) < 0 || frag_run_wait(run, FRAG_RUN_FOREVER, &err) < 0)
 * 		complain(&err);
 * 	puts(frag_run_summary(run));
 * 	frag_run_destroy(run);
 *
 * The whole application runs in this process, all fragments, on threads of frag's own, as
 * `fragctl run --in-process` does. So an operator that crashes ends the program, one that calls
 * exit() ends it too, and `on_failure: restart` starts the fragment again in the same process.
 * Nothing else of the process is changed: no signal handlers, no environment, no stdout or stderr,
 * no working folder, no child processes. What operators print goes where the program prints; log
 * lines go to stderr.
 *
 * One application runs in a process at a time, and several may run one after another. Different
 * runs may be loaded on different threads. frag_run_start, _wait, _stop and _summary may be called
 * on any thread, also at the same time for the same run. frag_run_destroy may not: nobody uses
 * the run during or after it. None of these functions may be called in a callback of an operator of
 * the run, but frag_run_stop; operators end their application with frag_fragment_stop_execution.
 */
struct frag_run;

/* The application to run, and its settings. */
struct frag_run_config {
	/* set by FRAG_RUN_CONFIG_INIT */
	size_t struct_size;
	/* the graph's file; relative paths in the graph start at its folder */
	const char *path;
	/* the graph itself, instead of a file; relative paths start at the working folder */
	const char *text;
	/* what would follow `--`, files of --config, texts of --set; NULL-ended; NULL: none */
	const char *const *arguments;
	const char *const *configs;
	const char *const *sets;
	/* folders of the libraries that graphs name, DIR:DIR; NULL: FRAG_LIBRARY_PATH alone */
	const char *library_path;
	/*
	 * Is called with each error, as a line without a newline: all errors of the graph, in the
	 * order of the file, and later why the application failed. On the thread of frag_run_load,
	 * later on a thread of frag's. NULL: they are printed on stderr.
	 */
	void (*error)(void *arg, const char *line);
	void *arg;
};
/* Nothing is set yet: set path or text. */
#define FRAG_RUN_CONFIG_INIT                                                                       \
	{                                                                                          \
		sizeof(struct frag_run_config), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL     \
	}

/*
 * Reads a graph and checks what can be checked without its libraries; the rest is checked at the
 * start, before any operator runs.
 * - config: copied, with its texts
 * - out_run: receives the run, to be given to frag_run_destroy; untouched on failure
 * - err: receives the first error; NULL is accepted
 * Returns 0; -EINVAL: the graph has errors, or config names no graph or two; -ENOENT and the like:
 * a file cannot be read; -ENOMEM.
 * Thread: any. Blocks: while it reads files. RT-safe: no.
 */
FRAG_API int frag_run_load(const struct frag_run_config *config, struct frag_run **out_run,
			   struct frag_err *err);
/*
 * Starts the application and returns; frag_run_wait says how it went. This is run_async.
 * Returns 0; -EALREADY: it was started before (a run runs once; load it again); -EBUSY: another
 * application runs in this process, or an operator of one that has ended still hangs; -ENOENT: this
 * frag was installed without the module run; -ENOMEM and the like.
 * Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_run_start(struct frag_run *run, struct frag_err *err);

/* The timeout that waits until the application has ended. */
#define FRAG_RUN_FOREVER (-1)
/*
 * Waits until the application has ended, all its operators were stopped, and another one can be
 * started. May be called again: the answer stays.
 * - timeout_ns: how long at most; 0: only looks; FRAG_RUN_FOREVER
 * - err: receives why it failed: the sentence and, in err->op, the operator; NULL is accepted
 * Returns 0: it is done, or was stopped by frag_run_stop or an operator; -ETIMEDOUT: it still runs;
 * -EINVAL: it was not started, or its graph has errors that its libraries show; -ENOENT: a library
 * or file is missing; -EIO: it failed; -ENOMEM.
 * Thread: any. Blocks: yes. RT-safe: no.
 */
FRAG_API int frag_run_wait(struct frag_run *run, int64_t timeout_ns, struct frag_err *err);
/*
 * Stops the application in order: sources end, and what was sent is still delivered. The second
 * call stops it at once. A run that has ended or was not started stays as it is.
 * Thread: any, also an operator's. Blocks: no. RT-safe: no.
 */
FRAG_API void frag_run_stop(struct frag_run *run);
/*
 * Changes a parameter that the operator's table calls dynamic (FRAG_PARAM_DYNAMIC) while the
 * application runs. The operator has the new value from its next tick on; several changes of one
 * operator come into force in their order. The change is logged.
 * - text: FRAGMENT.OPERATOR.PARAMETER=VALUE, as for --set, at most 4095 bytes; of one fragment
 *   alone OPERATOR.PARAMETER=VALUE is enough
 * - err: receives what is wrong, in the words of --set; NULL is accepted
 * Returns 0; -EINVAL: there is no such parameter, it is not dynamic, or the value is not valid;
 * -EAGAIN: the operators have not been started yet, or the application has ended; -ESRCH: the
 * operator has ended; -EBUSY: 64 changes wait for its next tick; -ENOMEM.
 * Only booleans, numbers, sizes, durations and texts with choices can change. A fragment that is
 * started again has the values of the graph.
 * Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_run_set(struct frag_run *run, const char *text, struct frag_err *err);
/*
 * Returns the summary of an application that has ended, the JSON of `fragctl run --output json`
 * (docs/summary.schema.json), borrowed as long as the run lives; NULL: it has not ended, or memory
 * was short.
 * Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API const char *frag_run_summary(struct frag_run *run);
/*
 * Frees a run. One that still runs is stopped at once and waited for. When an operator hangs, what
 * it uses is left. NULL is accepted.
 * Thread: any. Blocks: yes. RT-safe: no.
 */
FRAG_API void frag_run_destroy(struct frag_run *run);

/*
 * Lets this process, which workerd has started in the place of fraghost, be a host: the interpreter
 * of another language whose loader (plugin.h) is registered. Signals, stdout, stderr and crashes
 * are frag's from now on.
 * - out_status: receives the exit status that the process is to end with, soon
 * Returns 0 when the host has ended; -ENOTSOCK or -EBADF: workerd has not started this process;
 * -ENOENT: this frag was installed without the module run.
 * Thread: the process's first one, once. Blocks: as long as the host lives. RT-safe: no.
 */
FRAG_API int frag_host_run(int *out_status, struct frag_err *err);

FRAG_END_DECLS

#endif
