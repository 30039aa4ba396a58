// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "run"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/beat.h>
#include <base/log.h>
#include <base/sentence.h>
#include <base/stamp.h>
#include <data/allocator.h>
#include <data/staging.h>
#include <run/state.h>

static int descriptors_open(struct fragi_run *run)
{
	struct epoll_event readable = {.events = EPOLLIN};

	run->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	run->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	run->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	run->fd = epoll_create1(EPOLL_CLOEXEC);
	if (run->stop_fd < 0 || run->event_fd < 0 || run->timer_fd < 0 || run->fd < 0 ||
	    epoll_ctl(run->fd, EPOLL_CTL_ADD, run->event_fd, &readable) < 0 ||
	    epoll_ctl(run->fd, EPOLL_CTL_ADD, run->timer_fd, &readable) < 0)
		return -errno;
	return 0;
}

int fragi_run_create(const struct fragi_run_config *config, struct fragi_run **out_run)
{
	struct fragi_run *run = fragi_calloc(1, sizeof(*run));
	int r;

	if (run == NULL)
		return -ENOMEM;
	fragi_stamp_refine();
	run->config = *config;
	if (run->config.beat_ns <= 0)
		run->config.beat_ns = FRAGI_BEAT_NS;
	run->stop_fd = run->event_fd = run->timer_fd = run->fd = -1;
	run->last = &run->first;
	pthread_mutex_init(&run->lock, NULL);
	r = descriptors_open(run);
	if (r == 0)
		r = fragi_pump_create(&run->pump);
	if (r < 0) {
		fragi_run_destroy(run);
		return r;
	}
	*out_run = run;
	return 0;
}

/* Prepare. */

bool fragi_run_has_fragment(const struct fragi_run *run, const char *name)
{
	const char *const *fragments = run->config.fragments;

	if (fragments == NULL)
		return true;
	for (; *fragments != NULL; fragments++)
		if (strcmp(*fragments, name) == 0)
			return true;
	return false;
}

static int check_wanted(const struct fragi_run *run, struct fragi_diag *diag)
{
	const struct fragi_spec *spec = run->config.spec;
	size_t i;

	for (const char *const *name = run->config.fragments; name != NULL && *name != NULL;
	     name++) {
		for (i = 0; i < spec->fragment_count && strcmp(spec->fragments[i].name, *name) != 0;
		     i++)
			;
		if (i == spec->fragment_count)
			return fragi_diag_add(diag, -EINVAL, NULL, 0, 0,
					      "%s has no fragment \"%s\"", spec->application,
					      *name);
	}
	return 0;
}

/*
 * Composes every fragment that is to run here; goes on after errors, so that all are reported, and
 * keeps what could be made, so that others can look for more.
 */
static int compose(struct fragi_run *run, struct fragi_diag *diag)
{
	const struct fragi_spec *spec = run->config.spec;
	uint32_t ops = 0;
	int r, result = check_wanted(run, diag);

	r = fragi_services_compose(spec, run->config.registry, diag, &run->shared);
	if (r < 0)
		result = r;
	run->fragments = fragi_calloc(spec->fragment_count + 1, sizeof(*run->fragments));
	run->infos = fragi_calloc(spec->fragment_count + 1, sizeof(*run->infos));
	if (run->fragments == NULL || run->infos == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < spec->fragment_count; i++) {
		const struct fragi_spec_fragment *own = &spec->fragments[i];
		struct fragi_run_fragment *fragment = &run->fragments[run->fragment_count];

		if (!fragi_run_has_fragment(run, own->name))
			continue;
		r = fragi_fragment_compose_partial(spec, own, run->shared, run->config.registry,
						   diag, &fragment->fragment);
		if (r < 0)
			result = result == 0 || r == -EINVAL ? r : result;
		if (fragment->fragment == NULL)
			continue;
		fragment->fragment->run = run;
		fragment->run = run;
		fragment->spec = &own->scheduler;
		if (own->on_failure.policy != FRAGI_ON_FAILURE_STOP)
			run->restarts = true;
		fragment->first_op = ops;
		ops += fragment->fragment->op_count;
		run->infos[run->fragment_count] = fragment->fragment->info;
		run->infos[run->fragment_count++].host = run->config.host;
	}
	return result;
}

static uint32_t op_count(const struct fragi_run *run)
{
	uint32_t ops = 0;

	for (size_t i = 0; i < run->fragment_count; i++)
		ops += run->fragments[i].fragment->op_count;
	return ops;
}

static int create_ledger(struct fragi_run *run, struct fragi_diag *diag)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = fragi_ledger_create(&run->ledger, run->config.ledger_fd, op_count(run),
				    (uint32_t)run->flow_count + run->edge_rows);

	if (r == 0 && run->config.ledger_fd >= 0)
		r = fragi_ledger_seal(run->config.ledger_fd);
	if (r == 0)
		return fragi_run_place_late(run, diag);
	fragi_err_fail(&err, FRAGI_FAILURE_SYSTEM_REFUSED, NULL, r,
		       "cannot make the page that holds the counters of this host: %s%s",
		       frag_strerror(r),
		       r == -EFBIG ? "; raise the limit on the size of files (ulimit -f)" : "");
	return fragi_diag_add_err(diag, &err);
}

/* NULL: no memory is left. */
static struct frag_fragment **list_fragments(const struct fragi_run *run)
{
	struct frag_fragment **fragments =
		fragi_calloc(run->fragment_count + 1, sizeof(*fragments));

	for (size_t i = 0; fragments != NULL && i < run->fragment_count; i++)
		fragments[i] = run->fragments[i].fragment;
	return fragments;
}

/* The operators that save their states get the memory for it. */
static int open_saved(struct fragi_run *run, struct fragi_diag *diag)
{
	struct frag_fragment **fragments = list_fragments(run);
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	if (fragments == NULL)
		return -ENOMEM;
	r = fragi_saved_open(&run->saved, run->config.saved_fd, fragments, run->fragment_count,
			     &err);
	fragi_free(fragments);
	return r < 0 && err.text[0] != '\0' ? fragi_diag_add_err(diag, &err) : r;
}

/* What the process before has saved has come meanwhile. */
static int settle_saved(struct fragi_run *run)
{
	struct frag_fragment **fragments = list_fragments(run);

	if (fragments == NULL)
		return -ENOMEM;
	fragi_saved_settle(&run->saved, fragments, run->fragment_count);
	fragi_free(fragments);
	return 0;
}

/* From now on the ledger shows which operator is in a callback. */
static void show_callbacks(struct fragi_run *run)
{
	for (size_t i = 0; i < run->fragment_count; i++) {
		const struct fragi_run_fragment *fragment = &run->fragments[i];

		for (uint32_t op = 0; op < fragment->fragment->op_count; op++)
			fragment->fragment->ops[op]->running =
				&run->ledger.ops[fragment->first_op + op].running;
	}
}

int fragi_run_prepare(struct fragi_run *run, struct fragi_diag *diag)
{
	size_t errors = diag->count + diag->beyond, first = diag->count;
	int result = fragi_run_share_memory(run, diag);

	assert(run->fragments == NULL && "a run is prepared once");
	if (result == 0)
		result = compose(run, diag);
	if (result == 0)
		result = fragi_run_make_clocks(run, diag);
	if (result == 0)
		result = fragi_run_declare_variables(run, diag);
	/* With gaps in the tables the driver looks at the flows between fragments. */
	if (result == 0)
		result = fragi_run_resolve(run, diag);
	if (result == 0)
		result = fragi_run_track(run, diag);
	if (result == 0)
		result = fragi_run_add_deadlines(run, diag);
	if (result == 0)
		result = create_ledger(run, diag);
	if (result == 0)
		result = open_saved(run, diag);
	if (result == 0)
		show_callbacks(run);
	if (result == 0)
		result = fragi_run_connect(run);
	if (result == 0)
		result = fragi_run_install_loggers(run, diag);
	if (result == 0)
		result = fragi_run_open_transports(run, diag);
	if (result == 0 && run->shared != NULL)
		result = fragi_fragment_initialize(run->shared, diag);
	for (size_t i = 0; result == 0 && i < run->fragment_count; i++)
		result = fragi_fragment_initialize(run->fragments[i].fragment, diag);
	if (result == 0 && fragi_run_is_driver(run))
		result = fragi_services_start(run->shared, diag);
	fragi_diag_sort(diag, first);
	if (result < 0 && diag->count + diag->beyond == errors)
		fragi_diag_add(diag, result, NULL, 0, 0, "%s cannot be prepared (%s)",
			       run->config.spec->application, frag_strerror(result));
	return result;
}

/* What the schedulers report, on their threads. */

static void halt_all(struct fragi_run *run)
{
	for (size_t i = 0; i < run->fragment_count; i++)
		if (run->fragments[i].sched != NULL)
			fragi_sched_forbid_ticks(run->fragments[i].sched);
	for (size_t i = 0; i < run->fragment_count; i++)
		if (run->fragments[i].sched != NULL)
			fragi_sched_halt(run->fragments[i].sched);
}

/* What ends now is to look to its peers as if the process had died. */
static void keep_edges_open(struct fragi_run *run)
{
	if (run->restarts && run->remote != NULL && !atomic_load(&run->draining) &&
	    !atomic_load(&run->done))
		fragi_remote_keep_open(run->remote);
}

static void on_failed(void *arg, struct frag_op *op, enum fragi_failure failure,
		      const char *sentence)
{
	struct fragi_run_fragment *fragment = arg;
	char text[1024];

	keep_edges_open(fragment->run);
	fragi_sentence(text, sizeof(text), "%s", sentence);
	if (failure == FRAGI_FAILURE_POOL_EXHAUSTED)
		fragi_run_name_holders(fragment->run, op, text, sizeof(text));
	fragi_run_report_failure(fragment->run, failure, op->subject, text);
}

static void on_started(void *arg)
{
	struct fragi_run_fragment *fragment = arg;

	assert(atomic_load(&fragment->run->starting) > 0 && "a fragment starts once");
	if (atomic_fetch_sub(&fragment->run->starting, 1) == 1)
		fragi_run_report(fragment->run, FRAGI_RUN_STARTED);
}

static void on_hung(void *arg)
{
	struct fragi_run_fragment *fragment = arg;

	atomic_store(&fragment->run->hung, true);
}

static void on_stopped(void *arg)
{
	struct fragi_run_fragment *fragment = arg;

	fragi_run_report(fragment->run, FRAGI_RUN_STOPPED);
	fragi_sched_drain(fragment->sched);
}

static void on_rested(void *arg)
{
	struct fragi_run_fragment *fragment = arg;
	struct fragi_run *run = fragment->run;
	uint64_t rounds;

	for (size_t i = 0; i < run->fragment_count; i++)
		if (&run->fragments[i] != fragment &&
		    !fragi_sched_at_rest(run->fragments[i].sched, &rounds))
			return;
	fragi_run_nudge(run);
}

static bool no_work(void *arg)
{
	(void)arg;
	return false;
}

/* What it has sent is all that its successor will never send again. */
static bool must_arrive(struct fragi_run *run)
{
	return fragi_remote_yields(run->remote) && !atomic_load(&run->halting);
}

/* Drives the edges to other hosts until what was sent, closes included, has left. */
static void flush(struct fragi_run *run)
{
	struct fragi_pump_waiter waiter = {0};
	int64_t end_ns = fragi_now_ns() + FRAGI_RUN_FLUSH_NS;
	bool flushed;

	while (run->attached && (fragi_now_ns() < end_ns || must_arrive(run)) &&
	       atomic_load(&run->peers_lost) < run->peer_count) {
		if (!fragi_pump_try_lock(run->pump)) {
			usleep(50);
			continue;
		}
		flushed = fragi_remote_is_flushed(run->remote);
		fragi_pump_unlock(run->pump);
		if (flushed)
			return;
		fragi_pump_wait(run->pump, &waiter, fragi_now_ns() + 1000000, no_work, NULL);
	}
}

static void on_finished(void *arg)
{
	struct fragi_run_fragment *fragment = arg;
	struct fragi_run *run = fragment->run;

	assert(!atomic_load(&fragment->finished) && atomic_load(&run->running) > 0);
	atomic_store(&fragment->finished, true);
	/* It waits for nothing more: those with the same clock may go on. */
	fragi_clock_waiting(fragment->fragment->clock);
	if (atomic_fetch_sub(&run->running, 1) != 1)
		return;
	fragi_services_disconnect(run->shared);
	flush(run);
	atomic_store(&run->done, true);
	fragi_run_report(run, FRAGI_RUN_DONE);
}

/* Start and stop. */

static int scheds_create(struct fragi_run *run)
{
	int r;

	for (size_t i = 0; i < run->fragment_count; i++) {
		struct fragi_run_fragment *fragment = &run->fragments[i];
		struct fragi_sched_config config = {
			.fragment = fragment->fragment,
			.bindings = run->bindings.fragments[i],
			.rows = &run->ledger.ops[fragment->first_op],
			.pump = run->pump,
			.stop_fd = run->stop_fd,
			.has_peers = run->peer_count > 0,
			.arg = fragment,
			.started = on_started,
			.hung = on_hung,
			.failed = on_failed,
			.stopped = on_stopped,
			.finished = on_finished,
			/* With peers a scheduler rests after every message: those are looked at. */
			.rested = run->peer_count == 0 ? on_rested : NULL,
		};

		r = fragi_sched_create(&config, &fragment->sched);
		if (r < 0)
			return r;
	}
	return 0;
}

int fragi_run_start(struct fragi_run *run, struct frag_err *err)
{
	int r;

	assert(!atomic_load(&run->started) && "a run starts once");
	r = fragi_run_start_loggers(run, err);
	if (r < 0)
		return r;
	r = settle_saved(run);
	if (r == 0)
		r = fragi_run_bind(run);
	if (r == 0) {
		/*
		 * Messages may arrive already: no scheduler is to be notified while they are being
		 * made.
		 */
		fragi_pump_lock(run->pump);
		r = scheds_create(run);
		fragi_pump_unlock(run->pump);
	}
	fragi_run_unbind(run);
	if (r < 0)
		return frag_err_set(err, r, "cannot make the schedulers (%s)", frag_strerror(r));
	fragi_run_trace_attach(run); /* where it was asked for before */
	fragi_run_join_clocks(run);
	atomic_store(&run->running, (uint32_t)run->fragment_count);
	atomic_store(&run->starting, (uint32_t)run->fragment_count);
	atomic_store(&run->started, true);
	for (size_t i = 0; i < run->fragment_count; i++) {
		r = fragi_sched_start(run->fragments[i].sched, err);
		if (r < 0) {
			fragi_run_halt(run);
			return r;
		}
	}
	fragi_run_look(run, 0); /* where paths have deadlines */
	if (run->fragment_count == 0) {
		fragi_run_report(run, FRAGI_RUN_STARTED);
		atomic_store(&run->done, true);
		fragi_run_report(run, FRAGI_RUN_DONE);
	}
	if (atomic_load(&run->halting))
		halt_all(run);
	return 0;
}

static void stop_announce(struct fragi_run *run)
{
	const uint64_t one = 1;
	ssize_t n = write(run->stop_fd, &one, sizeof(one));

	(void)n;
	if (!atomic_load(&run->started) && !atomic_exchange(&run->done, true))
		fragi_run_report(run, FRAGI_RUN_DONE);
}

void fragi_run_drain(struct fragi_run *run)
{
	if (atomic_exchange(&run->draining, true))
		return;
	stop_announce(run);
	fragi_run_wake_sleepers(run);
	if (run->remote != NULL) {
		fragi_pump_lock(run->pump);
		fragi_remote_drain(run->remote);
		fragi_pump_unlock(run->pump);
	}
	for (size_t i = 0; i < run->fragment_count; i++)
		if (run->fragments[i].sched != NULL)
			fragi_sched_drain(run->fragments[i].sched);
	fragi_run_nudge(run);
}

void fragi_run_yield(struct fragi_run *run)
{
	if (run->remote != NULL)
		fragi_remote_yield(run->remote);
	fragi_run_drain(run);
}

void fragi_run_limit_calls(struct fragi_run *run, int64_t limit_ns)
{
	for (size_t i = 0; i < run->fragment_count; i++)
		if (run->fragments[i].sched != NULL)
			fragi_sched_limit_calls(run->fragments[i].sched, limit_ns);
}

void fragi_run_halt(struct fragi_run *run)
{
	if (atomic_exchange(&run->halting, true))
		return;
	fragi_run_report_waiting(run);
	keep_edges_open(run);
	stop_announce(run);
	halt_all(run);
	fragi_run_wake_sleepers(run);
}

/* What others look at. */

const struct fragi_fragment_info *fragi_run_fragments(const struct fragi_run *run,
						      size_t *out_count)
{
	*out_count = run->fragment_count;
	return run->infos;
}

const struct fragi_flow_info *fragi_run_flows(const struct fragi_run *run, size_t *out_count)
{
	*out_count = run->flow_count;
	return run->flows;
}

const struct fragi_ledger *fragi_run_ledger(const struct fragi_run *run)
{
	return &run->ledger;
}

/* The end. */

static void descriptors_close(struct fragi_run *run)
{
	const int fds[] = {run->stop_fd, run->event_fd, run->timer_fd, run->fd};

	for (size_t i = 0; i < FRAG_COUNT_OF(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void queue_free(struct fragi_run *run)
{
	struct fragi_run_queued *queued = run->first, *next;

	for (; queued != NULL; queued = next) {
		next = queued->next;
		if (!queued->reserved)
			fragi_free(queued);
	}
}

bool fragi_run_hangs(const struct fragi_run *run)
{
	return atomic_load(&run->hung);
}

void fragi_run_destroy(struct fragi_run *run)
{
	if (run == NULL)
		return;
	fragi_run_look_end(run);
	if (atomic_load(&run->hung)) {
		/* A thread is still in an operator, and nothing it may touch can be taken away. */
		log_debug(run->config.spec->application,
			  "an operator hangs: what it holds is left");
		fragi_run_stop_loggers(run, true);
		return;
	}
	if (atomic_load(&run->started)) {
		fragi_run_halt(run);
		for (size_t i = 0; i < run->fragment_count; i++)
			if (run->fragments[i].sched != NULL)
				fragi_sched_join(run->fragments[i].sched);
		fragi_run_stop_loggers(run, false);
		fragi_run_report_deadlines(run);
		fragi_run_end_tracking(run);
	}
	if (run->attached)
		fragi_pump_detach(run->pump);
	for (size_t i = 0; i < run->fragment_count; i++)
		fragi_sched_destroy(run->fragments[i].sched);
	fragi_run_destroy_taps(run);
	fragi_free(run->traced.lost);
	fragi_remote_destroy(run->remote);
	fragi_run_unwire(run);
	fragi_services_disconnect(run->shared);
	fragi_services_stop(run->shared);
	fragi_run_destroy_clocks(run);
	for (size_t i = 0; i < run->fragment_count; i++)
		fragi_fragment_destroy(run->fragments[i].fragment);
	fragi_fragment_destroy(run->shared);
	fragi_variables_destroy(run->variables);
	fragi_free(run->fragments);
	fragi_free(run->infos);
	fragi_default_memory_set(NULL);
	fragi_staging_trim();
	fragi_saved_close(&run->saved);
	fragi_ledger_close(&run->ledger);
	fragi_pump_destroy(run->pump);
	queue_free(run);
	pthread_mutex_destroy(&run->lock);
	descriptors_close(run);
	fragi_free(run);
}
