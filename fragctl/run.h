/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_RUN_H
#define CTL_RUN_H

#include <driverd/result.h>
#include <fragctl/graph.h>
#include <fragctl/roles.h>

/* fragctl run: by itself, or by daemons of this machine. */
struct ctl_run_options {
	struct ctl_graph graph;
	struct drv_output output; /* of the summary */
	int verbosity;
	const char *track; /* a file for the log of data flow tracking; NULL: as the graph says */
	const char *ucx_folder; /* of another UCX for hosts; NULL: the system's */
	bool print_yaml;        /* and nothing else */
	bool in_process;        /* the host is a thread of this process */
	uint32_t workers;       /* of --workers; 0: none */
	bool web;               /* a page in the browser shows it; then daemons run it */
	bool top;               /* top has the terminal meanwhile */
	const char *trace;      /* a file for a trace of all of it; NULL: none. Then daemons too */
	bool trace_on_failure;  /* ... only where something fails */
	struct ctl_roles roles;
};

/* local.c: in one host, a child of this process. Returns the exit code. */
int ctl_run_local(const struct ctl_run_options *options);
/* daemons.c: a driverd and its workers, or one worker, gone at the end. Returns the exit code. */
int ctl_run_daemons(const struct ctl_run_options *options);

#endif
