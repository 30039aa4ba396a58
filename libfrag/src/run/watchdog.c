// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "run"
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>

#include <base/beat.h>
#include <base/call.h>
#include <base/log.h>
#include <base/sentence.h>
#include <base/stamp.h>
#include <base/units.h>
#include <edge/in_flight.h>
#include <run/state.h>
#include <sched/exec.h>

/*
 * The control thread's work: the watchdog, the time limit, and finding the run at rest. It is at
 * rest if in two counts, one after the other, every scheduler waits for no time, and neither count
 * saw anything that the other did not. Rest is reported to the driver, which alone knows what is in
 * flight between hosts.
 */

#define WATCH_NS 100000000 /* it is called at least so often */
#define NAMED_INPUTS 3     /* in a sentence about many */

/* The run is nudged then, unless something earlier does so. */
static void wake_at(struct fragi_run *run, int64_t when_ns)
{
	struct itimerspec at = {.it_value = {when_ns / 1000000000, when_ns % 1000000000}}, now;

	if (timerfd_gettime(run->timer_fd, &now) == 0 &&
	    (now.it_value.tv_sec != 0 || now.it_value.tv_nsec != 0) &&
	    fragi_now_ns() + now.it_value.tv_sec * 1000000000 + now.it_value.tv_nsec <= when_ns)
		return;
	timerfd_settime(run->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void report_hang(struct fragi_run *run, const struct fragi_sched_hang *hang)
{
	char sentence[1024], lasted[32], allowed[32], tick[40] = "";
	struct frag_op *op = hang->op;

	fragi_format_duration(hang->allowed_ns, allowed, sizeof(allowed));
	if (hang->callback == FRAGI_CALL_COMPUTE)
		snprintf(tick, sizeof(tick), " (tick %llu)",
			 (unsigned long long)atomic_load(&op->exec->row->ticks));
	fragi_sentence(sentence, sizeof(sentence), "%s: %s has run for %s, longer than ",
		       op->subject, fragi_call_name(hang->callback),
		       fragi_format_duration(hang->for_ns, lasted, sizeof(lasted)));
	if (hang->is_draining)
		fragi_sentence_add(
			sentence, sizeof(sentence),
			"the %s that a stop leaves to it%s; it hangs, or it waits without watching frag_op_stop_fd",
			allowed, tick);
	else if (op->watchdog_ns > 0)
		fragi_sentence_add(
			sentence, sizeof(sentence),
			"its watchdog of %s%s; it hangs, or the watchdog is too short for it",
			allowed, tick);
	else
		fragi_sentence_add(
			sentence, sizeof(sentence),
			"the %s that it may take; it hangs, or it needs a longer watchdog",
			allowed);
	atomic_store(&op->exec->row->state, FRAGI_OP_FAILED);
	atomic_store(&run->hung, true);
	fragi_run_report_failure(run, FRAGI_FAILURE_OPERATOR_HUNG, op->subject, sentence);
}

static void watch_hung(struct fragi_run *run, int64_t now_ns)
{
	struct fragi_sched_hang hang;

	for (size_t i = 0; i < run->fragment_count; i++) {
		struct fragi_run_fragment *fragment = &run->fragments[i];

		if (fragment->reported_hung || atomic_load(&fragment->finished) ||
		    !fragi_sched_find_hang(fragment->sched, now_ns, &run->pause, &hang))
			continue;
		fragment->reported_hung = true;
		report_hang(run, &hang);
		fragi_sched_halt(fragment->sched);
	}
}

/* A thread that ended by the system call alone has told nobody. */
static void watch_lost(struct fragi_run *run)
{
	struct fragi_sched_lost lost;
	char sentence[512];

	for (size_t i = 0; i < run->fragment_count; i++) {
		struct fragi_run_fragment *fragment = &run->fragments[i];

		if (fragment->reported_hung || atomic_load(&fragment->finished) ||
		    !fragi_sched_find_lost(fragment->sched, &lost))
			continue;
		fragment->reported_hung = true;
		snprintf(
			sentence, sizeof(sentence),
			"%s: %s has ended its thread (the system call exit), which belongs to frag; return instead",
			lost.op->subject, fragi_call_name(lost.callback));
		atomic_store(&lost.op->exec->row->state, FRAGI_OP_FAILED);
		atomic_store(&run->hung, true);
		fragi_run_report_failure(run, FRAGI_FAILURE_OPERATOR_FAILED, lost.op->subject,
					 sentence);
		fragi_sched_halt(fragment->sched);
	}
}

/* A start may take minutes (it loads a model), but who waits is to know for whom. */
static void watch_start(struct fragi_run_fragment *fragment, int64_t now_ns)
{
	int64_t for_ns;
	const struct frag_op *op = fragi_sched_in_start(fragment->sched, now_ns, &for_ns);

	if (op != fragment->slow_op)
		fragment->slow_starts = 0;
	fragment->slow_op = op;
	if (op == NULL || for_ns / FRAGI_CALL_SLOW_NS <= fragment->slow_starts)
		return;
	fragment->slow_starts = (uint32_t)(for_ns / FRAGI_CALL_SLOW_NS);
	log_warn(NULL, "%s: start has run for %lld s and goes on", op->subject,
		 (long long)(for_ns / 1000000000));
}

/* Whether the time of all fragments with this clock is over. */
static bool all_timed_out(const struct fragi_run *run, const struct frag_clock *clock)
{
	for (size_t i = 0; i < run->fragment_count; i++)
		if (run->fragments[i].fragment->clock == clock &&
		    !atomic_load(&run->fragments[i].timed_out))
			return false;
	return true;
}

static void watch_time(struct fragi_run *run)
{
	for (size_t i = 0; i < run->fragment_count; i++) {
		struct fragi_run_fragment *fragment = &run->fragments[i];

		struct frag_clock *clock = fragment->fragment->clock;
		int64_t at_ns;

		if (fragment->limit.arg == NULL || atomic_load(&fragment->timed_out))
			continue;
		if (!fragi_run_limit_is_over(fragment)) {
			at_ns = fragi_run_limit_ns(fragment);
			if (at_ns != INT64_MAX)
				wake_at(run, at_ns);
			continue;
		}
		log_debug(fragment->fragment->name, "max_duration_ms is over");
		fragi_sched_drain_alone(fragment->sched);
		atomic_store(&fragment->timed_out, true);
		if (all_timed_out(run, clock))
			fragi_clock_wake_sleepers(clock);
		fragi_clock_waiting(clock);
	}
}

static bool count_rest(struct fragi_run *run, uint64_t *out_rounds)
{
	uint64_t rounds, all = 0;

	for (size_t i = 0; i < run->fragment_count; i++) {
		if (!fragi_sched_at_rest(run->fragments[i].sched, &rounds))
			return false;
		all += rounds;
	}
	*out_rounds = all;
	return true;
}

/* Whether every fragment that is not done may end at rest; how long rest must have lasted. */
static bool may_end(const struct fragi_run *run, int64_t *out_timeout_ns)
{
	int64_t timeout_ns = 0;

	for (size_t i = 0; i < run->fragment_count; i++) {
		const struct fragi_spec_scheduler *spec = run->fragments[i].spec;

		if (spec == NULL || atomic_load(&run->fragments[i].finished))
			continue;
		if (!spec->stop_on_deadlock && !atomic_load(&run->draining))
			return false;
		if (spec->stop_on_deadlock_timeout_ms * 1000000 > timeout_ns)
			timeout_ns = spec->stop_on_deadlock_timeout_ms * 1000000;
	}
	*out_timeout_ns = atomic_load(&run->draining) ? 0 : timeout_ns;
	return true;
}

static uint64_t dropped(const _Atomic uint64_t *reasons)
{
	uint64_t total = 0;

	for (int reason = 0; reason < FRAGI_DROP_REASONS; reason++)
		total += atomic_load_explicit(&reasons[reason], memory_order_relaxed);
	return total;
}

/* Each end of an edge counts from where the present epoch of the other end began. */
static void count_sender(const struct fragi_tx *tx, uint32_t flow,
			 struct fragi_in_flight *in_flight)
{
	const struct fragi_flow_row *row = tx->row;
	uint64_t sent = atomic_load_explicit(&row->sent, memory_order_acquire);

	fragi_in_flight_sender(in_flight, flow, fragi_remote_tx_link(tx),
			       sent - dropped(row->tx_dropped) - fragi_remote_tx_before(tx),
			       atomic_load(&tx->closed), fragi_remote_tx_credited(tx),
			       atomic_load(&tx->receiver_done));
}

static void count_receiver(const struct fragi_rx *rx, uint32_t flow,
			   struct fragi_in_flight *in_flight)
{
	const struct fragi_flow_row *row = rx->row;
	uint64_t arrived = atomic_load_explicit(&row->arrived, memory_order_acquire),
		 before = fragi_remote_rx_before(rx), consumed = arrived;

	if (fragi_rx_blocks(rx))
		consumed = atomic_load_explicit(&row->delivered, memory_order_acquire) +
			   dropped(row->rx_dropped);
	fragi_in_flight_receiver(in_flight, flow, fragi_remote_rx_link(rx), arrived - before,
				 atomic_load(&rx->queue.sender_closed),
				 consumed > before ? consumed - before : 0,
				 atomic_load(&rx->queue.receiver_closed));
}

static void count_in_flight(const struct fragi_run *run, struct fragi_in_flight *in_flight)
{
	for (size_t i = 0; i < run->end_count; i++) {
		const struct fragi_run_end *end = &run->ends[i];

		if (!end->between_hosts)
			continue;
		if (end->tx != NULL)
			count_sender(end->tx, end->flow, in_flight);
		else
			count_receiver(end->rx, end->flow, in_flight);
	}
}

/* The pump is locked: what arrives is counted and has queued its operator, or is not here yet. */
static bool count_locked(struct fragi_run *run, struct fragi_in_flight *in_flight)
{
	uint64_t rounds;

	count_in_flight(run, in_flight);
	return atomic_load(&run->done) || (count_rest(run, &rounds) && rounds == run->rest_rounds);
}

static void report_idle(struct fragi_run *run, int64_t now_ns)
{
	struct fragi_run_event event = {.kind = FRAGI_RUN_IDLE};
	struct fragi_in_flight in_flight = {0};
	bool at_rest;

	if (run->idle_reported_ns != 0 && now_ns - run->idle_reported_ns < run->config.beat_ns)
		return;
	fragi_pump_lock(run->pump);
	at_rest = count_locked(run, &in_flight);
	fragi_pump_unlock(run->pump);
	if (!at_rest)
		return;
	run->idle_reported_ns = now_ns;
	event.idle_rounds = atomic_fetch_add(&run->ledger.head->idle_rounds, 1) + 1;
	event.sent = in_flight.sent;
	event.delivered = in_flight.arrived;
	fragi_run_report_event(run, &event);
}

void fragi_run_report_waiting(const struct fragi_run *run)
{
	char named[600] = "", more[40] = "";
	uint32_t inputs = 0;
	size_t length = 0;
	uint64_t count = 0;

	if (run->idle_reported_ns == 0 || atomic_load(&run->draining))
		return;
	for (size_t i = 0; i < run->end_count; i++) {
		const struct fragi_run_end *end = &run->ends[i];
		uint32_t waiting = end->rx != NULL ? fragi_rx_available(end->rx) : 0;
		const struct frag_op *op;

		if (waiting == 0)
			continue;
		op = run->fragments[end->fragment].fragment->ops[end->op];
		count += waiting;
		if (inputs++ < NAMED_INPUTS && length < sizeof(named))
			length += (size_t)snprintf(named + length, sizeof(named) - length,
						   "%s%s.%s (%u)", length > 0 ? ", " : "",
						   op->subject, op->ports[end->port].name, waiting);
	}
	if (inputs > NAMED_INPUTS)
		snprintf(more, sizeof(more), " and %u more input%s", inputs - NAMED_INPUTS,
			 inputs > NAMED_INPUTS + 1 ? "s" : "");
	if (count > 0)
		log_warn(
			NULL,
			"ends at rest with %llu message%s that no operator can take any more: %s%s",
			(unsigned long long)count, count == 1 ? "" : "s", named, more);
}

static void watch_rest(struct fragi_run *run, int64_t now_ns)
{
	uint64_t first, second;
	int64_t timeout_ns;

	if (!count_rest(run, &first) || !count_rest(run, &second) || first != second ||
	    !may_end(run, &timeout_ns)) {
		run->rest_since_ns = 0;
		run->idle_reported_ns = 0;
		return;
	}
	if (run->rest_since_ns == 0 || run->rest_rounds != second) {
		run->rest_since_ns = now_ns;
		run->rest_rounds = second;
		run->idle_reported_ns = 0;
	}
	if (now_ns - run->rest_since_ns < timeout_ns) {
		wake_at(run, run->rest_since_ns + timeout_ns);
		return;
	}
	report_idle(run, now_ns);
}

/* A control thread that comes much too late did not run in between, nor did the operators. */
static void note_pause(struct fragi_run *run, int64_t now_ns)
{
	int64_t late_ns = now_ns - run->watched_ns - WATCH_NS;

	if (run->watched_ns != 0 && late_ns > FRAGI_BEAT_NS)
		run->pause = (struct fragi_pause){.until_ns = now_ns, .lasted_ns = late_ns};
	run->watched_ns = now_ns;
}

/* Operators that never end are accounted up to the time that their fragment's clock last showed. */
static void note_clocks(struct fragi_run *run)
{
	for (size_t i = 0; i < run->fragment_count; i++) {
		const struct frag_fragment *fragment = run->fragments[i].fragment;
		uint64_t now_ns;

		if (fragi_clock_kind_of(fragment->clock) == FRAGI_CLOCK_MACHINE)
			continue;
		now_ns = (uint64_t)fragi_clock_now_ns(fragment->clock);
		for (uint32_t k = 0; k < fragment->op_count; k++)
			atomic_store_explicit(&fragment->ops[k]->exec->row->seen_ns, now_ns + 1,
					      memory_order_relaxed);
	}
}

void fragi_run_watch(struct fragi_run *run)
{
	int64_t now_ns;

	if (!atomic_load(&run->started))
		return;
	now_ns = fragi_now_ns();
	if (atomic_load(&run->done)) {
		/* The sums of all hosts are needed to find that nothing is in flight. */
		report_idle(run, now_ns);
		return;
	}
	note_pause(run, now_ns);
	note_clocks(run);
	watch_hung(run, now_ns);
	watch_lost(run);
	watch_time(run);
	for (size_t i = 0; atomic_load(&run->starting) > 0 && i < run->fragment_count; i++)
		watch_start(&run->fragments[i], now_ns);
	for (size_t i = 0; i < run->fragment_count; i++)
		fragi_sched_wake_stalled(run->fragments[i].sched, now_ns);
	if (atomic_load(&run->running) > 0 && !atomic_load(&run->halting))
		watch_rest(run, now_ns);
}
