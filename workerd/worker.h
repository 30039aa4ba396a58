/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_WORKER_H
#define WRK_WORKER_H

#include <uv.h>

#include <wire/deadline.h>
#include <workerd/core/core.h>
#include <workerd/examiner.h>
#include <workerd/gpu_load.h>
#include <workerd/gpu_share.h>
#include <workerd/gpus.h>
#include <workerd/inventory.h>
#include <workerd/reporter.h>
#include <workerd/process.h>
#include <workerd/saved.h>

/*
 * A worker on a libuv loop: its core, the core's deadline, and the processes of its hosts. What
 * happens to them becomes events of the core, and its actions calls. An event that an action causes
 * waits until the actions of the present step are done, so that steps never nest. The connection to
 * the driver is the owner's: a socket in workerd, a queue where the driver is in the same process.
 * SIGTSTP stops the processes of the hosts, then this one; SIGCONT continues all.
 */
struct wrk_worker_ops {
	bool is_guest; /* signals are the program's affair: none is handled here */
	/*
	 * The connection to the driver. connect answers by WRK_EVENT_CONNECTED or
	 * WRK_EVENT_CONNECT_FAILED; message is borrowed.
	 */
	void (*connect)(void *arg, uint64_t connection);
	void (*disconnect)(void *arg, uint64_t connection);
	void (*send)(void *arg, uint64_t connection, const struct fw_message *message);
	/* The session of the connection; NULL: there is no reporter who needs it. */
	void (*keep)(void *arg, uint64_t connection, const struct fw_welcome *session);
	/*
	 * Says how the host of a HOST_CREATE is to be started, in arena. Returns 0 or negative
	 * errno with a sentence.
	 */
	int (*launch)(void *arg, const struct fw_message *create, struct fragi_arena *arena,
		      struct wrk_launch *out_launch, struct frag_err *err);
	/* The process of a host is gone and its exit reported; NULL: nobody needs to know. */
	void (*host_gone)(void *arg);
	void (*log)(void *arg, enum fragi_log_level level, const char *subject, const char *text);
	/* Its processes are abandoned; nothing is called any more. */
	void (*ended)(void *arg, int exit_code);
};

struct wrk_pending;
struct wrk_worker {
	uv_loop_t *loop;
	const struct wrk_worker_ops *ops;
	void *arg;
	struct wrk_core *core;
	struct wrk_actions actions;
	struct fw_deadline deadline;   /* of the core */
	uv_signal_t suspend;           /* Ctrl-Z */
	struct wrk_reporter *reporter; /* is told of hosts; NULL: nobody is */
	struct wrk_process *processes[WRK_PROCESSES_MAX];
	uint32_t instances[WRK_PROCESSES_MAX]; /* of MIG, that they have (gpu_share.h); 0: none */
	struct wrk_gpu_share gpu_share;
	struct wrk_saved saved;
	struct wrk_gpu_survey survey;    /* of the GPUs, once */
	struct wrk_gpu_reader gpus;      /* their load */
	struct wrk_inventory *inventory; /* the caller's */
	struct wrk_examiner examiner;    /* its command is the shell's */
	struct wrk_pending *first, **last;
	bool stepping, ended;
	bool has_sampled; /* in the present turn */
};

/* loop, ops and the texts of config are borrowed. Returns 0 or negative errno. */
int wrk_worker_init(struct wrk_worker *worker, uv_loop_t *loop, const struct wrk_config *config,
		    const struct wrk_worker_ops *ops, void *arg);
/* An event of the connection, WRK_EVENT_START or WRK_EVENT_STOP. */
void wrk_worker_raise(struct wrk_worker *worker, const struct wrk_event *event);
/*
 * Looks after the GPUs that the inventory offers, and asks for what it does not know of them, while
 * the worker is at work already.
 * - program: path of fraghost; borrowed
 */
void wrk_worker_find_gpus(struct wrk_worker *worker, struct wrk_inventory *inventory,
			  const char *program);
/* Ends it from outside: as if the core had. Again: nothing. */
void wrk_worker_end(struct wrk_worker *worker, int exit_code);
/* After the loop has ended. No child of this process is left. */
void wrk_worker_fini(struct wrk_worker *worker);

#endif
