// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "sched"
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/kernel.h>
#include <base/log.h>
#include <sched/kind.h>

__thread struct fragi_sched_thread *fragi_sched_here;

uint64_t fragi_sched_stamps(uint64_t ns)
{
	uint64_t now = fragi_stamp();

	return now - fragi_stamp_before(now, ns);
}

uint32_t fragi_sched_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (uint32_t)CPU_COUNT(&set);
	return (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

int fragi_sched_create(const struct fragi_sched_config *config, struct fragi_sched **out_sched)
{
	struct frag_fragment *fragment = config->fragment;
	const struct fragi_sched_kind *kind = &fragi_sched_event_based;
	const uint32_t *order = fragi_fragment_order(fragment);
	const uint32_t count = fragment->op_count;
	struct fragi_sched *sched;
	int r;

	if (fragment->own != NULL && fragment->own->scheduler.kind == FRAGI_SCHEDULER_GREEDY)
		kind = &fragi_sched_greedy;
	if (order == NULL && count > 0)
		return -ENOMEM;
	r = kind->create(config, &sched);
	if (r < 0)
		return r;
	sched->kind = kind;
	sched->config = *config;
	sched->config.bindings = NULL;
	sched->count = count;
	atomic_init(&sched->live, count);
	sched->execs = fragi_calloc(count + 1, sizeof(struct fragi_exec *));
	if (sched->execs == NULL) {
		fragi_sched_destroy(sched);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct frag_op *op = fragment->ops[order[i]];

		r = fragi_exec_create(op, config->bindings[order[i]], &config->rows[order[i]],
				      sched,
				      kind->notifier != NULL ? kind->notifier(op) : kind->notify);
		if (r < 0) {
			fragi_sched_destroy(sched);
			return r;
		}
		sched->execs[i] = op->exec;
		if (kind->made != NULL)
			kind->made(sched, op->exec);
	}
	*out_sched = sched;
	return 0;
}

void fragi_sched_destroy(struct fragi_sched *sched)
{
	if (sched == NULL)
		return;
	for (uint32_t i = 0; sched->execs != NULL && i < sched->count; i++)
		if (sched->execs[i] != NULL)
			fragi_exec_destroy(sched->execs[i]->op);
	fragi_free(sched->execs);
	sched->kind->destroy(sched);
}

int fragi_sched_start(struct fragi_sched *sched, struct frag_err *err)
{
	int r = sched->kind->start(sched, err);

	if (r == 0)
		sched->started = true;
	return r;
}

void fragi_sched_join(struct fragi_sched *sched)
{
	if (sched->started)
		sched->kind->join(sched);
	sched->started = false;
}

/* Extends `reached` to all operators that flows inside the fragment lead to. */
static void extend_reached(struct fragi_sched *sched, bool *reached)
{
	const struct frag_fragment *fragment = sched->config.fragment;
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < fragment->flow_count; i++) {
			const struct fragi_flow_info *flow = &fragment->flows[i];

			if (reached[flow->from_op] && !reached[flow->to_op])
				reached[flow->to_op] = changed = true;
		}
	}
}

static bool is_fed_from_elsewhere(const struct frag_fragment *fragment,
				  const struct fragi_exec *exec)
{
	uint32_t inner = 0;

	for (size_t i = 0; i < fragment->flow_count; i++)
		inner += fragment->flows[i].to_op == exec->op->index;
	return exec->rx_count > inner;
}

/*
 * Stops the operators that an execution flow leads back to in a loop: they would be ticked again
 * and again. place: of each operator in the topological order, which execs are in.
 */
static void stop_loops(struct fragi_sched *sched, uint32_t *place)
{
	const struct frag_fragment *fragment = sched->config.fragment;

	for (uint32_t i = 0; i < sched->count; i++)
		place[sched->execs[i]->op->index] = i;
	for (size_t i = 0; i < fragment->flow_count; i++) {
		const struct fragi_flow_info *flow = &fragment->flows[i];
		struct frag_op *to = fragment->ops[flow->to_op];

		if (fragi_port_is_execution(to->ports[flow->to_port].name) &&
		    place[flow->from_op] >= place[flow->to_op])
			frag_op_stop_execution(to);
	}
}

/*
 * Stops the sources: the operators that are ticked without waiting for a message. A sink of that
 * kind is not stopped at once, because it must still take what was sent. In a cycle that no source
 * and no other fragment reaches, all operators are stopped.
 */
static void drain(struct fragi_sched *sched, bool closes_inputs)
{
	struct frag_fragment *fragment = sched->config.fragment;
	bool *reached = fragi_calloc(sched->count + 1, sizeof(bool));
	uint32_t *place = fragi_calloc(sched->count + 1, sizeof(*place));

	for (uint32_t i = 0; i < sched->count; i++) {
		struct fragi_exec *exec = sched->execs[i];

		if (!exec->waits_for_inputs && exec->rx_count > 0 && exec->tx_count == 0) {
			atomic_store(&exec->draining, true);
			sched->kind->notify(exec);
		} else if (!exec->waits_for_inputs ||
			   (closes_inputs && is_fed_from_elsewhere(fragment, exec))) {
			frag_op_stop_execution(exec->op);
		}
		if (reached != NULL)
			reached[exec->op->index] =
				!exec->waits_for_inputs || is_fed_from_elsewhere(fragment, exec);
	}
	if (reached != NULL) {
		extend_reached(sched, reached);
		for (uint32_t i = 0; i < sched->count; i++)
			if (!reached[sched->execs[i]->op->index])
				frag_op_stop_execution(sched->execs[i]->op);
	}
	if (place != NULL)
		stop_loops(sched, place);
	fragi_free(place);
	fragi_free(reached);
}

void fragi_sched_drain(struct fragi_sched *sched)
{
	drain(sched, false);
}

void fragi_sched_drain_alone(struct fragi_sched *sched)
{
	drain(sched, true);
}

void fragi_sched_forbid_ticks(struct fragi_sched *sched)
{
	atomic_store(&sched->halting, true);
	for (uint32_t i = 0; i < sched->count; i++)
		atomic_store(&sched->execs[i]->needs_full_check, true);
}

void fragi_sched_halt(struct fragi_sched *sched)
{
	fragi_sched_forbid_ticks(sched);
	sched->kind->wake(sched);
}

bool fragi_sched_at_rest(struct fragi_sched *sched, uint64_t *out_rounds)
{
	return sched->kind->at_rest(sched, out_rounds);
}

void fragi_sched_wake_stalled(struct fragi_sched *sched, int64_t now_ns)
{
	sched->kind->wake_stalled(sched, now_ns);
}

void fragi_sched_limit_calls(struct fragi_sched *sched, int64_t limit_ns)
{
	sched->limit_ns = limit_ns;
}

/* How long start, stop, or a compute with a watchdog may run; 0: as long as it takes. */
static int64_t allowed_ns(const struct fragi_exec *exec, enum fragi_call_kind callback)
{
	if (exec->watchdog_ns > 0)
		return exec->watchdog_ns;
	return callback == FRAGI_CALL_STOP ? FRAGI_OP_STOP_NS : 0;
}

/* A number for the call that the operator is in, which no other call of it has; 0: none. */
static uint64_t present_call(const struct fragi_exec *exec, enum fragi_call_kind callback,
			     int64_t since_ns)
{
	uint64_t computes = atomic_load_explicit(&exec->row->compute.count, memory_order_relaxed);
	uint64_t ticks = atomic_load_explicit(&exec->row->ticks, memory_order_relaxed);

	if (since_ns != 0 && callback != FRAGI_CALL_COMPUTE) /* start or stop */
		return UINT64_MAX - (uint64_t)since_ns;
	return ticks > computes ? ticks : 0;
}

/* How long this process has run since then. */
static int64_t run_for(int64_t since_ns, int64_t now_ns, const struct fragi_pause *pause)
{
	return now_ns - since_ns - (since_ns < pause->until_ns ? pause->lasted_ns : 0);
}

/* For how long the operator has been seen in the call that it is in; 0: it is in none. */
static int64_t seen_for(struct fragi_exec *exec, uint64_t call, int64_t now_ns,
			const struct fragi_pause *pause)
{
	if (call != exec->seen_call || call == 0) {
		exec->seen_call = call;
		exec->seen_since_ns = now_ns;
	}
	return run_for(exec->seen_since_ns, now_ns, pause);
}

static bool is_hung(struct fragi_sched *sched, struct fragi_exec *exec, int64_t now_ns,
		    const struct fragi_pause *pause, struct fragi_sched_hang *out)
{
	int64_t since_ns =
		(int64_t)atomic_load_explicit(&exec->row->running_since_ns, memory_order_acquire);
	enum fragi_call_kind callback = FRAGI_CALL_COMPUTE;

	*out = (struct fragi_sched_hang){.op = exec->op};
	if (since_ns != 0) {
		callback = atomic_load_explicit(&exec->callback, memory_order_relaxed);
		out->for_ns = run_for(since_ns, now_ns, pause);
		out->allowed_ns = allowed_ns(exec, callback);
	}
	out->callback = callback;
	if (out->allowed_ns > 0 && out->for_ns > out->allowed_ns)
		return true;
	if (sched->limit_ns == 0)
		return false;
	out->for_ns = seen_for(exec, present_call(exec, callback, since_ns), now_ns, pause);
	out->allowed_ns = sched->limit_ns;
	out->is_draining = true;
	return out->for_ns >= out->allowed_ns;
}

bool fragi_sched_find_hang(struct fragi_sched *sched, int64_t now_ns,
			   const struct fragi_pause *pause, struct fragi_sched_hang *out)
{
	for (uint32_t i = 0; i < sched->count; i++)
		if (is_hung(sched, sched->execs[i], now_ns, pause, out))
			return true;
	return false;
}

const struct frag_op *fragi_sched_in_start(struct fragi_sched *sched, int64_t now_ns,
					   int64_t *out_for_ns)
{
	for (uint32_t i = 0; i < sched->count; i++) {
		struct fragi_exec *exec = sched->execs[i];
		int64_t since = (int64_t)atomic_load_explicit(&exec->row->running_since_ns,
							      memory_order_acquire);
		enum fragi_call_kind callback =
			atomic_load_explicit(&exec->callback, memory_order_relaxed);

		if (since == 0 || callback != FRAGI_CALL_START)
			continue;
		*out_for_ns = now_ns - since;
		return exec->op;
	}
	return NULL;
}

/* Called by the schedulers' threads. */

int fragi_sched_start_ops(struct fragi_sched *sched)
{
	int r;

	for (uint32_t i = 0; i < sched->count; i++) {
		if (atomic_load(&sched->halting))
			return 0;
		r = fragi_exec_start(sched->execs[i]);
		if (r < 0) {
			fragi_sched_fail(sched, sched->execs[i], FRAGI_CALL_START, r);
			return r;
		}
	}
	if (sched->config.started != NULL)
		sched->config.started(sched->config.arg);
	return 0;
}

bool fragi_sched_finish_op(struct fragi_sched *sched, struct fragi_exec *exec)
{
	const int r = fragi_exec_finish(exec, atomic_load(&sched->halting));

	if (r < 0)
		fragi_sched_fail(sched, exec, FRAGI_CALL_STOP, r);
	if (sched->config.op_done != NULL)
		sched->config.op_done(sched->config.arg, exec->op);
	return atomic_fetch_sub(&sched->live, 1) == 1;
}

void fragi_sched_finish_ops(struct fragi_sched *sched)
{
	for (uint32_t i = 0; i < sched->count; i++)
		if (!sched->execs[i]->done)
			fragi_sched_finish_op(sched, sched->execs[i]);
}

void fragi_sched_fail(struct fragi_sched *sched, struct fragi_exec *exec,
		      enum fragi_call_kind callback, int code)
{
	char sentence[1024];

	atomic_store_explicit(&exec->row->state, FRAGI_OP_FAILED, memory_order_relaxed);
	exec->failed = true;
	fragi_exec_failure_text(exec, callback, code, sentence, sizeof(sentence));
	if (!atomic_exchange(&sched->has_failed, true))
		sched->config.failed(sched->config.arg, exec->op,
				     fragi_exec_failure(exec, callback, code), sentence);
	else
		log_warn(NULL, "%s", sentence);
	fragi_sched_halt(sched);
}

void fragi_sched_thread_lost(void *arg)
{
	struct fragi_sched *sched = ((struct fragi_sched_alive *)arg)->sched;
	const struct fragi_current *current = fragi_current();
	struct frag_op *op = (struct frag_op *)(uintptr_t)current->op;
	char sentence[256];

	fragi_sched_alive_end(arg);
	if (op == NULL) /* none of an operator's callbacks: nobody can be named */
		op = sched->execs[0]->op;
	snprintf(
		sentence, sizeof(sentence),
		"%s: %s has ended its thread (pthread_exit), which belongs to frag; return instead",
		op->subject, fragi_call_name(current->callback));
	atomic_store_explicit(&op->exec->row->state, FRAGI_OP_FAILED, memory_order_relaxed);
	if (sched->config.hung != NULL)
		sched->config.hung(sched->config.arg);
	if (!atomic_exchange(&sched->has_failed, true))
		sched->config.failed(sched->config.arg, op, FRAGI_FAILURE_OPERATOR_FAILED,
				     sentence);
	fragi_sched_halt(sched);
}

void fragi_sched_thread_begin(struct fragi_sched_thread *thread)
{
	char name[16];

	snprintf(name, sizeof(name), "frag:%.10s", thread->sched->config.fragment->name);
	(void)prctl(PR_SET_NAME, name);
	thread->current = fragi_exec_current();
	fragi_sched_here = thread;
}

struct fragi_sched_cores fragi_sched_own_cores(const struct fragi_sched *sched)
{
	const struct frag_fragment *fragment = sched->config.fragment;
	struct fragi_sched_cores cores = {.subject = fragment->name};

	if (fragment->own != NULL) {
		cores.items = fragment->own->scheduler.pin_cores;
		cores.count = fragment->own->scheduler.pin_core_count;
	}
	return cores;
}

/*
 * Whether the kernel lets a thread run on these cores and not only on some of them, as it does
 * without a word. The calling thread tries it.
 */
static bool are_allowed(const cpu_set_t *set)
{
	cpu_set_t before, granted;
	bool allowed;

	if (sched_getaffinity(0, sizeof(before), &before) < 0)
		return false;
	allowed = sched_setaffinity(0, sizeof(*set), set) == 0 &&
		  sched_getaffinity(0, sizeof(granted), &granted) == 0 && CPU_EQUAL(set, &granted);
	(void)sched_setaffinity(0, sizeof(before), &before);
	return allowed;
}

static int thread_cores(const struct fragi_sched_cores *cores, bool strict, pthread_attr_t *attr,
			struct frag_err *err)
{
	cpu_set_t set;

	if (cores->count == 0)
		return 0;
	CPU_ZERO(&set);
	for (size_t i = 0; i < cores->count; i++)
		if (cores->items[i] < CPU_SETSIZE)
			CPU_SET(cores->items[i], &set);
	if (CPU_COUNT(&set) == 0)
		return frag_err_set(err, -EINVAL, "%s: pin_cores names no core of this machine",
				    cores->subject);
	if (strict && ((size_t)CPU_COUNT(&set) < cores->count || !are_allowed(&set)))
		return frag_err_set(
			err, -EINVAL,
			"%s: a thread cannot be pinned to all cores of pin_cores; name cores that this process may use, each once, or leave require_pin_cores out",
			cores->subject);
	return -pthread_attr_setaffinity_np(attr, sizeof(set), &set);
}

/* Signals go to the other threads of the process, but a fault must reach its handler here. */
static void block_signals(sigset_t *out_before)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGABRT);
	sigdelset(&all, SIGTRAP);
	sigdelset(&all, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &all, out_before);
}

int fragi_sched_thread_create(struct fragi_sched *sched, const struct fragi_sched_cores *cores,
			      void *(*main)(void *arg), void *arg, pthread_t *out_thread,
			      struct frag_err *err)
{
	const struct fragi_spec_fragment *own = sched->config.fragment->own;
	bool strict = own != NULL && own->scheduler.require_pin_cores;
	char remedy[FRAGI_KERNEL_REMEDY_MAX];
	pthread_attr_t attr;
	sigset_t before;
	int r;

	pthread_attr_init(&attr);
	r = thread_cores(cores, strict, &attr, err);
	if (r < 0)
		goto out;
	block_signals(&before);
	r = -pthread_create(out_thread, &attr, main, arg);
	if (r == -EINVAL && cores->count > 0 && !strict) {
		log_warn(cores->subject,
			 "cannot pin threads to the cores of pin_cores; they are not pinned");
		r = -pthread_create(out_thread, NULL, main, arg);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
out:
	pthread_attr_destroy(&attr);
	if (r < 0)
		frag_err_set(err, r, "%s: cannot start a thread (%s)%s", cores->subject,
			     frag_strerror(r), fragi_kernel_remedy(r, remedy));
	return r;
}

/* Called by operators. */

void frag_op_stop_execution(struct frag_op *op)
{
	struct fragi_exec *exec = op->exec;

	atomic_store(&op->stop_asked, true);
	if (exec == NULL)
		return;
	fragi_exec_request_stop(exec);
	if (exec->sched != NULL)
		exec->sched->kind->notify(exec);
}

void frag_fragment_stop_execution(struct frag_fragment *fragment)
{
	struct fragi_sched *sched;

	for (uint32_t i = 0; i < fragment->op_count; i++) {
		if (fragment->ops[i]->exec == NULL || fragment->ops[i]->exec->sched == NULL) {
			atomic_store(&fragment->ops[i]->stop_asked, true); /* it does not run yet */
			continue;
		}
		sched = fragment->ops[i]->exec->sched;
		if (!atomic_exchange(&sched->has_stopped, true) && sched->config.stopped != NULL)
			sched->config.stopped(sched->config.arg);
		return;
	}
}

int frag_op_stop_fd(const struct frag_op *op)
{
	return op->exec != NULL && op->exec->sched != NULL ? op->exec->sched->config.stop_fd : -1;
}
