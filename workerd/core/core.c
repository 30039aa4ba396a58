// SPDX-License-Identifier: Apache-2.0
#include <workerd/core/state.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/beat.h>

int wrk_core_create(const struct wrk_config *config, struct wrk_core **out_core)
{
	struct wrk_core *core = fragi_calloc(1, sizeof(*core));

	if (core == NULL)
		return -ENOMEM;
	core->config = *config;
	if (core->config.beat_ns == 0)
		core->config.beat_ns = FRAGI_BEAT_NS;
	if (core->config.dead_ns == 0)
		core->config.dead_ns = FRAGI_DEAD_NS;
	core->beat_ns = core->config.beat_ns;
	core->dead_ns = core->config.dead_ns;
	core->backoff_ns = WRK_BACKOFF_MIN_NS;
	core->random = config->seed | 1;
	core->deadline_ns = INT64_MAX;
	core->stop_at_ns = core->grace_until_ns = INT64_MAX;
	*out_core = core;
	return 0;
}

void wrk_core_destroy(struct wrk_core *core)
{
	if (core == NULL)
		return;
	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;)
		wrk_host_forget(host);
	wrk_keep_forget(core, 0);
	wrk_source_forget(core);
	explicit_bzero(core->secret, sizeof(core->secret));
	fragi_free(core);
}

/*
 * A process that even SIGKILL does not end at once is not waited for; a further request does not
 * prolong that.
 */
static void end_in_time(struct wrk_core *core, int64_t now_ns)
{
	const int64_t at_ns = now_ns + 2 * WRK_KILL_NS;

	if (core->stop_at_ns > at_ns)
		core->stop_at_ns = at_ns;
}

/* A host that its driver has asked to stop is left to it; the others are stopped here. */
static void stop_hosts(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	core->grace_until_ns = INT64_MAX;
	if (wrk_host_stop_all(core, false, now_ns, actions) > 0)
		end_in_time(core, now_ns);
}

/* Whether a host ends at its driver's request, which may take longer than the others are given. */
static bool is_left_to_driver(const struct wrk_core *core)
{
	for (const struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;)
		if (host->state == WRK_HOST_STOPPING && !host->ended_here)
			return true;
	return false;
}

static void core_stop(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	int64_t stop_at_ns = core->stop_at_ns;

	core->stops++;
	if (core->host_count == 0) {
		wrk_session_end(core, 0, actions);
		return;
	}
	if (core->stops > 1) {
		wrk_host_kill_all(core, FRAGI_FAILURE_WORKER_LOST, "its workerd was told to end",
				  actions);
		end_in_time(core, now_ns);
		assert(core->stop_at_ns <= stop_at_ns && "a further stop prolongs nothing");
		(void)stop_at_ns;
		return;
	}
	wrk_log(actions, FRAGI_LOG_INFO, "told to end: stops %u host%s", core->host_count,
		core->host_count == 1 ? "" : "s");
	if (core->session == WRK_SESSION_ATTACHED)
		core->grace_until_ns = now_ns + WRK_GRACE_NS;
	else
		stop_hosts(core, now_ns, actions);
}

static void log_wait(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	wrk_log(actions, FRAGI_LOG_WARN, "waiting for the network: %s", core->waits_for);
	core->waits_line_ns = now_ns + WRK_WAITS_NS;
}

/*
 * Handles a change of the network. At boot a worker may be there before its interface is. It
 * reports that to the driver with each beat, and is given nothing until then.
 */
static void core_network(struct wrk_core *core, const char *why, int64_t now_ns,
			 struct wrk_actions *actions)
{
	bool waited = core->waits_for[0] != '\0';

	snprintf(core->waits_for, sizeof(core->waits_for), "%s", why != NULL ? why : "");
	if (why != NULL && !waited)
		log_wait(core, now_ns, actions);
	if (why == NULL && waited)
		wrk_log(actions, FRAGI_LOG_INFO, "the network is there");
}

/* The driver hears at once of what has been found since HELLO, and with each beat. */
static void core_gpus(struct wrk_core *core, const struct wrk_event *event, int64_t now_ns)
{
	core->has_gpus = true;
	for (int i = 0; i < FRAGI_AMOUNTS; i++)
		if (fragi_amount_is_surveyed((enum fragi_amount)i))
			core->config.has[i] = event->has[i];
	core->config.mig = event->mig;
	core->beat_at_ns = now_ns;
}

static void core_timer(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	wrk_session_timer(core, now_ns, actions);
	if (core->waits_for[0] != '\0' && now_ns >= core->waits_line_ns)
		log_wait(core, now_ns, actions);
	wrk_host_timer(core, now_ns, actions);
	if (now_ns >= core->beat_at_ns) {
		core->beat_at_ns = now_ns + core->beat_ns;
		wrk_beat_all(core, now_ns, actions);
		wrk_beat_sample(core, now_ns, actions);
	}
	if (now_ns >= core->grace_until_ns)
		stop_hosts(core, now_ns, actions);
	if (now_ns < core->stop_at_ns)
		return;
	if (is_left_to_driver(core)) /* looks again */
		core->stop_at_ns = now_ns + WRK_KILL_NS;
	else
		wrk_session_end(core, 0, actions);
}

static int64_t core_deadline(const struct wrk_core *core)
{
	int64_t deadline = wrk_host_deadline_ns(core);

	if (core->session == WRK_SESSION_ENDED)
		return INT64_MAX;
	if (wrk_beat_is_sent(core) && core->beat_at_ns < deadline)
		deadline = core->beat_at_ns;
	if ((core->session == WRK_SESSION_CONNECTING || core->session == WRK_SESSION_BACKOFF) &&
	    core->wait_until_ns < deadline)
		deadline = core->wait_until_ns;
	if ((core->session == WRK_SESSION_HELLO_SENT || core->session == WRK_SESSION_ATTACHED) &&
	    core->heard_ns + core->dead_ns < deadline)
		deadline = core->heard_ns + core->dead_ns;
	if (core->waits_for[0] != '\0' && core->waits_line_ns < deadline)
		deadline = core->waits_line_ns;
	if (core->grace_until_ns < deadline)
		deadline = core->grace_until_ns;
	return core->stop_at_ns < deadline ? core->stop_at_ns : deadline;
}

/* Asserts what is true between two steps. */
static void core_check(const struct wrk_core *core, int64_t now_ns)
{
#ifndef NDEBUG
	bool has_driver = core->session == WRK_SESSION_ATTACHED,
	     ends = core->session == WRK_SESSION_ENDED;
	uint32_t count = 0;

	fragi_machine_check(&wrk_session_machine, core);
	for (const struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;) {
		fragi_machine_check(&wrk_host_machine, host);
		count++;
		assert(host->heard_ns <= now_ns);
		assert((has_driver || ends || core->keeps_hosts || host->ending ||
			host->state == WRK_HOST_KILLED) &&
		       "without a driver that comes back no host lives on");
		assert((core->stops < 2 || host->ended_here) && "a second stop ends all hosts");
	}
	assert(count == core->host_count);
	assert(ends || core->deadline_ns <= wrk_host_deadline_ns(core));
#else
	(void)core, (void)now_ns;
#endif
}

int wrk_core_step(struct wrk_core *core, const struct wrk_event *event, int64_t real_now_ns,
		  struct wrk_actions *actions)
{
	bool is_late = wrk_core_deadline_ns(core) < real_now_ns - core->beat_ns,
	     is_deferred = event->kind == WRK_EVENT_TIMER && !core->is_deferred &&
			   wrk_beat_reads_first(core, real_now_ns);
	int64_t now_ns;

	now_ns = fragi_awake_read(&core->clock, wrk_core_deadline_ns(core), core->beat_ns,
				  real_now_ns);
	if (event->kind == WRK_EVENT_TIMER) {
		if (!core->is_deferred)
			core->read_ns = now_ns;
		core->is_deferred = is_deferred;
	}
	if (is_deferred && core->beat_at_ns < now_ns)
		core->beat_at_ns = now_ns;
	core->real_ns = real_now_ns;
	wrk_lease_look(core, actions);
	switch (event->kind) {
	case WRK_EVENT_START:
	case WRK_EVENT_CONNECTED:
	case WRK_EVENT_CONNECT_FAILED:
	case WRK_EVENT_DRIVER_MESSAGE:
	case WRK_EVENT_DRIVER_LOST:
		wrk_session_event(core, event, now_ns, actions);
		break;
	case WRK_EVENT_HOST_SPAWNED:
	case WRK_EVENT_HOST_FAILED:
	case WRK_EVENT_HOST_MESSAGE:
	case WRK_EVENT_HOST_CONNECTION_LOST:
	case WRK_EVENT_HOST_SAMPLED:
	case WRK_EVENT_HOST_LINES:
	case WRK_EVENT_HOST_EXITED:
		wrk_host_event(core, event, now_ns, actions);
		break;
	case WRK_EVENT_RENEWED: /* hosts are of this driver also when it comes back */
		snprintf(core->served_proof, sizeof(core->served_proof), "%s", event->proof);
		break;
	case WRK_EVENT_NETWORK:
		core_network(core, event->text, now_ns, actions);
		break;
	case WRK_EVENT_GPUS:
		core_gpus(core, event, now_ns);
		break;
	case WRK_EVENT_EXAMINED:
		wrk_session_send(core, event->message, actions);
		break;
	case WRK_EVENT_TIMER:
		if (core->session != WRK_SESSION_ENDED && !is_deferred)
			core_timer(core, now_ns, actions);
		break;
	case WRK_EVENT_STOP:
		core_stop(core, now_ns, actions);
		break;
	}
	/*
	 * Nobody is to take this worker for dead, also while frames keep it busy. Samples, which
	 * may be what does, wait for the timer.
	 */
	if (is_late && core->session != WRK_SESSION_ENDED &&
	    real_now_ns - core->beaten_ns >= core->beat_ns)
		wrk_beat_all(core, now_ns, actions);
	core->deadline_ns = core_deadline(core);
	if (is_deferred && core->deadline_ns > now_ns)
		core->deadline_ns = now_ns;
	if (actions->out_of_memory)
		return -ENOMEM;
	assert((event->kind != WRK_EVENT_TIMER || core->deadline_ns > now_ns || is_deferred ||
		core->read_ns < now_ns) &&
	       "what was due has been done");
	core_check(core, now_ns);
	return 0;
}

int64_t wrk_core_deadline_ns(const struct wrk_core *core)
{
	int64_t deadline_ns = fragi_awake_to_real(&core->clock, core->deadline_ns),
		lease_ns = wrk_lease_deadline_ns(core);

	return lease_ns < deadline_ns ? lease_ns : deadline_ns;
}

const char *wrk_core_refusal(const struct wrk_core *core)
{
	return core->refusal[0] != '\0' ? core->refusal : NULL;
}

enum wrk_session wrk_core_session(const struct wrk_core *core)
{
	return core->session;
}

enum wrk_host_state wrk_core_host_state(const struct wrk_core *core, uint32_t host)
{
	const struct wrk_host *found = wrk_host_by_id(core, host);

	return found != NULL ? found->state : WRK_HOST_NONE;
}

uint32_t wrk_core_host_count(const struct wrk_core *core)
{
	return core->host_count;
}

uint32_t wrk_core_illegal_transitions(const struct wrk_core *core)
{
	return core->illegal_transitions;
}
