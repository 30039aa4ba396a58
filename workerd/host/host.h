/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include <stdbool.h>

#include <base/diag.h>
#include <type/registry.h>

/*
 * A host: one process's fragments, driven by frames of its workerd. Runs until it is told to end,
 * its workerd is gone, or the workerd is silent for the time of death. control_fd and ledger_fd are
 * taken; when stop_fd (an eventfd) becomes readable, the host ends as if told so. Returns the exit
 * status; *out_hangs: operators may still run, nothing was freed, and the process is to end by
 * _exit.
 */
struct host_options {
	int control_fd, ledger_fd, stop_fd;
	int saved_fd;                   /* taken; for what operators save; 0: nobody keeps it */
	enum fragi_library_paths paths; /* which libraries may be named by a path */
	bool trusted_only;              /* libraries are not loaded that other users could change */
	const char *library_path;       /* DIR:DIR, searched before FRAG_LIBRARY_PATH; NULL: none */
	/*
	 * The process goes on afterwards: everything is freed also after a failure, unless an
	 * operator hangs.
	 */
	bool is_guest;
};
int host_run(const struct host_options *options, bool *out_hangs);

/*
 * Changes a dynamic parameter of the run of this process, as fragi_run_set does. Returns the same,
 * and -EAGAIN: no operators run. Thread: any.
 */
int host_set(const char *text, const char *who, struct frag_err *err);

#endif
