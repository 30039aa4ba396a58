/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNER_RUNNER_H
#define RUNNER_RUNNER_H

#include <driverd/core/core.h>
#include <runner/exchange.h>
#include <text/spec.h>
#include <wire/deadline.h>
#include <workerd/worker.h>

/*
 * A runner runs one application on this machine without daemons: the cores of a driver and of a
 * worker on one loop, and one host for all fragments, which is a child of this process or a thread
 * of it. fragctl run and the module of frag/run.h are two shells of it: they own the loop, signals,
 * and what is printed.
 */
/* In the number of each connection that is not between the two cores. */
#define RUNNER_CLIENT (UINT64_C(1) << 63)

struct runner_ops {
	/* What concerns the application, as the driver's core logs it. */
	void (*log)(void *arg, const struct drv_action *action);
	/*
	 * SEND, ADMIT or CLOSE of a connection with RUNNER_CLIENT in its number, as the caller gave
	 * it to runner_step; a frame may be taken. NULL: there are no such.
	 */
	void (*client)(void *arg, struct drv_action *action);
	/* NULL: there is none. */
	void (*progress)(void *arg, const char *text);
	/* It has ended; nothing is called any more. Returns its exit code. */
	int (*ended)(void *arg, const struct fragi_summary *summary);
	/* Neither the driver nor the worker can go on: the same. */
	int (*broken)(void *arg, int r);
};

struct runner_config {
	/* all borrowed until fini */
	const char *name; /* of the worker, in the summary */
	const struct fragi_source *source;
	const char *app_folder;           /* NULL: unknown */
	const char *library_path;         /* DIR:DIR; NULL: none */
	const struct wrk_spawn_ops *host; /* how the host is started */
	int (*host_main)(void);           /* of a child */
	bool keeps_stdin;                 /* operators read this process's stdin */
	bool is_guest;                    /* the process is somebody's program */
	int64_t progress_ns;              /* 0: the driver's default */
};

struct runner {
	const struct runner_config *config;
	const struct runner_ops *ops;
	void *arg;
	uv_loop_t *loop;
	uv_prepare_t before_sleep;
	struct fw_deadline deadline; /* of the driver's core */
	struct drv_core *driver;
	struct drv_actions actions;
	struct wrk_worker worker;
	struct wrk_worker_ops worker_ops;
	struct runner_exchange exchange;
	bool is_running;                     /* the operators have been started */
	const struct fragi_summary *summary; /* the core's; NULL: it has not ended */
	bool is_over;
	int exit_code;
};

/*
 * Starts it; the rest happens on the loop, but ended or broken may be called here already. Returns
 * 0, or negative errno: neither is called then.
 */
int runner_init(struct runner *runner, uv_loop_t *loop, const struct runner_config *config,
		const struct runner_ops *ops, void *arg);
/* An event for the core of the driver. Thread: the loop's. */
void runner_step(struct runner *runner, struct drv_event *event);
/* Stops it in order, as by this signal; the second time at once. Thread: the loop's. */
void runner_stop(struct runner *runner, int signal);
/* After the loop has ended. The host is gone, or runner_thread_join has waited for it. */
void runner_fini(struct runner *runner);

#endif
