/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_WORK_H
#define HOST_WORK_H

#include <pthread.h>

#include <base/call.h>
#include <run/run.h>
#include <workerd/host/core/core.h>
#include <workerd/host/host.h>

/*
 * The run of a host, and the thread on which it does what may block on user code: prepare and
 * destroy. One piece of work at a time; its completion, like everything that the run reports, is
 * an event for the core.
 */
struct host_work {
	int fd, ledger_fd, saved_fd; /* fd: readable when the work under way is done */
	enum fragi_library_paths paths;
	bool trusted_only;
	const char *library_path; /* DIR:DIR; NULL: none */
	enum host_action_kind kind;
	bool is_under_way, has_thread;
	pthread_t thread;
	struct fragi_call call; /* of the work thread */
	int64_t slow_since_ns;  /* the call that warnings were logged about, and how many */
	int64_t slow_count;
	struct fragi_diag given_up; /* why it was given up, while its thread has diag */
	/* The work thread will not come back from an operator: what it has is left to it. */
	_Atomic bool thread_lost;
	bool run_hangs;   /* an operator of the run that was to be destroyed: it was left */
	bool is_starting; /* START lasts until the operators' threads report it */
	/* what the run is made of, until fini */
	struct fragi_source source;
	struct fragi_spec *spec;
	struct fragi_registry *registry;
	struct fragi_run_config config;
	/* NULL-ended; in arena */
	const char **fragments, **transports;
	uint8_t *data_key;       /* a secret */
	const char *application; /* its name, which may be another one than the graph's */
	uint8_t *variables_key;  /* a secret */
	struct fw_message *wire; /* owned: the run borrows its texts */
	struct fragi_arena arena;
	struct fragi_run *run;
	/* The work thread writes them until it has written fd. */
	int result;
	struct fragi_diag diag;
	struct frag_err err;
	/* what the last event pointed to */
	struct fragi_arena event_arena;
	struct fw_host_prepared prepared;
	struct fw_host_result phase;
	struct fw_host_event report;
	struct fragi_run_event run_event;
};

/*
 * The descriptors and texts of options are borrowed. Returns 0 or negative errno.
 */
int host_work_init(struct host_work *work, const struct host_options *options);
/* Only when no work is under way and no operator hangs. */
void host_work_fini(struct host_work *work);

/* Each performs an action of the core. */
void host_work_prepare(struct host_work *work, const struct host_action *action);
void host_work_wire(struct host_work *work, struct fw_message *request); /* takes it */
/* Returns 0, and the run reports what fails; or -ENOMEM. */
int host_work_rewire(struct host_work *work, const struct fw_message *request);
void host_work_suspend(struct host_work *work, const struct fw_host_suspend *request);
void host_work_look(struct host_work *work, uint32_t looks);
void host_work_tap(struct host_work *work, const struct fw_host_tap *request);
/* As fragi_run_passed; false while no operators run. */
bool host_work_passed(struct host_work *work, fragi_run_passed_fn take, void *arg);
/* As fragi_run_traced, after host_work_passed has returned true, or before the run is destroyed. */
void host_work_traced(struct host_work *work, bool is_end, fragi_run_traced_fn take, void *arg);
void host_work_start(struct host_work *work);
/* out_done is valid until the next event. */
void host_work_set(struct host_work *work, const struct fw_host_set *request,
		   struct fw_host_set_done *out_done);
void host_work_drain(struct host_work *work, int64_t within_ns);
void host_work_yield(struct host_work *work, int64_t within_ns);
void host_work_halt(struct host_work *work);
void host_work_destroy(struct host_work *work);

/* The run's descriptor; -1 when there is no run, or the work thread has it. */
int host_work_run_fd(const struct host_work *work);
/*
 * The next event for the core: a completion, or what the run reports. It is valid until the next
 * call. Call it at least every 100 ms while a run is there. Returns false when there is none.
 */
bool host_work_next(struct host_work *work, struct host_event *out_event);

#endif
