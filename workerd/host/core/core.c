// SPDX-License-Identifier: Apache-2.0
#include <workerd/host/core/core.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/awake.h>
#include <base/beat.h>
#include <base/machine.h>
#include <base/sentence.h>
#include <workerd/core/host_exit.h>

/* The work that the shell was asked for and has not completed yet. */
enum host_work {
	HOST_WORK_NONE,
	HOST_WORK_PREPARE,
	HOST_WORK_WIRE,
	HOST_WORK_START,
	HOST_WORK_DESTROY,
};

struct host_core {
	struct host_config config;
	enum host_state state;
	enum host_work work;
	/* from HOST_CREATE; every frame that is sent carries them */
	uint64_t run, epoch;
	uint32_t number;
	struct fragi_awake clock;  /* all times below are its times */
	int64_t heard_ns;          /* workerd's last frame */
	int64_t beat_at_ns;        /* next beat */
	int64_t until_ns;          /* when peers (WIRING) or operators (ENDING) are too late */
	int64_t deadline_ns;       /* as the shell knows it */
	bool end_wanted;           /* the work that is under way has to be completed first */
	struct fw_host_stop drain; /* the same; drain_ns 0: none is wanted; without its texts */
	uint32_t looks;            /* at so many hosts somebody looks; 0: not at this one */
	bool idle;                 /* the run is at rest, as far as it was reported */
	bool idle_reported;        /* ... since the last beat */
	bool run_failed;           /* ... or its work: an operator may hang in its callback */
	uint32_t illegal_transitions;
	char fragments[256]; /* names, for sentences */
	char peers[256];     /* the same, for when they do not answer */
	char sentence[512];  /* of a result that the core itself has found */
};

static const char *const state_names[HOST_STATES] = {
	[HOST_STATE_NEW] = "new",           [HOST_STATE_PREPARING] = "preparing",
	[HOST_STATE_PREPARED] = "prepared", [HOST_STATE_WIRING] = "wiring",
	[HOST_STATE_WIRED] = "wired",       [HOST_STATE_STARTING] = "starting",
	[HOST_STATE_STARTED] = "started",   [HOST_STATE_FAILED] = "failed",
	[HOST_STATE_ENDING] = "ending",     [HOST_STATE_ENDED] = "ended",
};

/* ENDED: its workerd is lost; from ENDING also in order. */
static const uint32_t state_transitions[HOST_STATES] = {
	[HOST_STATE_NEW] = FRAGI_TO(HOST_STATE_PREPARING) | FRAGI_TO(HOST_STATE_ENDING) |
			   FRAGI_TO(HOST_STATE_ENDED),
	[HOST_STATE_PREPARING] = FRAGI_TO(HOST_STATE_PREPARED) | FRAGI_TO(HOST_STATE_FAILED) |
				 FRAGI_TO(HOST_STATE_ENDED),
	[HOST_STATE_PREPARED] = FRAGI_TO(HOST_STATE_WIRING) | FRAGI_TO(HOST_STATE_ENDING) |
				FRAGI_TO(HOST_STATE_ENDED),
	[HOST_STATE_WIRING] = FRAGI_TO(HOST_STATE_WIRED) | FRAGI_TO(HOST_STATE_FAILED) |
			      FRAGI_TO(HOST_STATE_ENDING) | FRAGI_TO(HOST_STATE_ENDED),
	[HOST_STATE_WIRED] = FRAGI_TO(HOST_STATE_STARTING) | FRAGI_TO(HOST_STATE_ENDING) |
			     FRAGI_TO(HOST_STATE_ENDED),
	[HOST_STATE_STARTING] = FRAGI_TO(HOST_STATE_STARTED) | FRAGI_TO(HOST_STATE_FAILED) |
				FRAGI_TO(HOST_STATE_ENDED),
	[HOST_STATE_STARTED] = FRAGI_TO(HOST_STATE_ENDING) | FRAGI_TO(HOST_STATE_ENDED),
	[HOST_STATE_FAILED] = FRAGI_TO(HOST_STATE_ENDING) | FRAGI_TO(HOST_STATE_ENDED),
	[HOST_STATE_ENDING] = FRAGI_TO(HOST_STATE_ENDED),
	[HOST_STATE_ENDED] = 0,
};

static void check(const void *object)
{
	const struct host_core *core = object;

	if (core->state == HOST_STATE_ENDED) {
		assert(core->deadline_ns == INT64_MAX);
		return;
	}
	assert((core->work == HOST_WORK_PREPARE) == (core->state == HOST_STATE_PREPARING));
	assert((core->work == HOST_WORK_START) == (core->state == HOST_STATE_STARTING));
	assert((core->work == HOST_WORK_DESTROY) == (core->state == HOST_STATE_ENDING));
	assert(core->work != HOST_WORK_WIRE || core->state == HOST_STATE_WIRING);
	assert((core->until_ns != INT64_MAX) ==
		       (core->state == HOST_STATE_WIRING ||
			(core->state == HOST_STATE_ENDING && !core->run_failed)) &&
	       "peers and operators are awaited for a limited time, and nothing else is");
	assert((!core->end_wanted || core->work != HOST_WORK_NONE) &&
	       "an end that is wanted is under way, or follows the work that is");
	assert(core->deadline_ns <= core->beat_at_ns && "a host beats in every state");
	assert((!core->idle_reported || core->idle) && "what was reported is known");
}

static const struct fragi_machine machine = {
	.name = "host",
	.state_names = state_names,
	.transitions = state_transitions,
	.count = HOST_STATES,
	.check = check,
};

static struct host_action *add(struct host_actions *actions, enum host_action_kind kind)
{
	struct host_action *action;

	assert(actions->count < HOST_ACTIONS_MAX);
	action = &actions->items[actions->count++];
	*action = (struct host_action){.kind = kind};
	return action;
}

static FRAG_PRINTF(3, 4) void add_log(struct host_actions *actions, enum fragi_log_level level,
				      const char *format, ...)
{
	struct host_action *action = add(actions, HOST_DO_LOG);
	va_list args;

	action->level = level;
	va_start(args, format);
	fragi_sentence_of(action->text, sizeof(action->text), format, args);
	va_end(args);
}

static void move(struct host_core *core, enum host_state to, struct host_actions *actions)
{
	bool legal = fragi_machine_transition(&machine, core->state, to);

	add_log(actions, legal ? FRAGI_LOG_DEBUG : FRAGI_LOG_ERROR,
		"host %u of run %llu, epoch %llu: %s -> %s%s", core->number,
		(unsigned long long)core->run, (unsigned long long)core->epoch,
		state_names[core->state], state_names[to], fragi_machine_remark(legal));
	core->illegal_transitions += legal ? 0 : 1;
	core->until_ns = INT64_MAX;
	if (legal)
		core->state = to;
}

/* Returns the message to send, with the host's ids. */
static struct fw_message *add_message(struct host_core *core, enum fw_kind kind,
				      struct host_actions *actions)
{
	struct fw_message *message = &add(actions, HOST_DO_SEND)->message;

	*message = (struct fw_message){
		.kind = kind, .run = core->run, .host = core->number, .epoch = core->epoch};
	return message;
}

static void send_result(struct host_core *core, enum fw_kind kind,
			const struct fw_host_result *result, struct host_actions *actions)
{
	add_message(core, kind, actions)->result = *result;
	if (result->failure.code != FRAGI_FAILURE_NONE)
		move(core, HOST_STATE_FAILED, actions);
}

/* Ends because workerd is gone: operators may hang, and nobody waits for them. */
static void lose_workerd(struct host_core *core, struct host_actions *actions)
{
	struct host_action *action;

	move(core, HOST_STATE_ENDED, actions);
	action = add(actions, HOST_DO_EXIT);
	action->exit_code = WRK_HOST_EXIT_LOST;
	action->operators_may_hang = true;
}

/* Asks the shell for work. */
static struct host_action *begin_work(struct host_core *core, enum host_work work,
				      enum host_action_kind kind, struct host_actions *actions)
{
	assert(core->work == HOST_WORK_NONE);
	core->work = work;
	return add(actions, kind);
}

/* The work of which this is the completion. */
static enum host_work completed_by(enum host_event_kind kind)
{
	return kind == HOST_EV_PREPARE_DONE ? HOST_WORK_PREPARE
	       : kind == HOST_EV_WIRE_DONE  ? HOST_WORK_WIRE
	       : kind == HOST_EV_START_DONE ? HOST_WORK_START
					    : HOST_WORK_DESTROY;
}

static void begin_end(struct host_core *core, int64_t now_ns, struct host_actions *actions)
{
	core->end_wanted = true;
	if (core->work != HOST_WORK_NONE) /* when it is done */
		return;
	add(actions, HOST_DO_HALT);
	move(core, HOST_STATE_ENDING, actions);
	if (!core->run_failed) /* else its driver knows that it is to be ended */
		core->until_ns = now_ns + FRAGI_HOST_END_NS;
	begin_work(core, HOST_WORK_DESTROY, HOST_DO_DESTROY, actions);
}

/* Appends a name to a list of names. */
static void name(char *list, size_t size, const char *next)
{
	const size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", next);
}

/* Has the kernel kill this host when its lease ends: workerd or this process may be stopped. */
static void hold_until(int64_t lease_until_ns, struct host_actions *actions)
{
	if (lease_until_ns > 0)
		add(actions, HOST_DO_LEASE)->lease_until_ns = lease_until_ns;
}

/* While operators run; the run ends it by itself. */
static void look(struct host_core *core, uint32_t looks, struct host_actions *actions)
{
	if (looks == core->looks || core->state != HOST_STATE_STARTED)
		return;
	core->looks = looks;
	add(actions, HOST_DO_LOOK)->looks = looks;
}

static void on_create(struct host_core *core, const struct fw_message *message, int64_t now_ns,
		      struct host_actions *actions)
{
	const struct fw_host_create *create = &message->create;
	struct host_action *action;

	core->run = message->run;
	core->number = message->host;
	core->epoch = message->epoch;
	core->config.beat_ns = fragi_beat_within_ns(create->beat_ns);
	core->config.dead_ns = fragi_dead_within_ns(create->dead_ns, core->config.beat_ns);
	if (core->beat_at_ns > now_ns + core->config.beat_ns)
		core->beat_at_ns = now_ns + core->config.beat_ns;
	for (uint32_t i = 0; i < create->fragment_count; i++)
		name(core->fragments, sizeof(core->fragments), create->fragments[i]);
	move(core, HOST_STATE_PREPARING, actions);
	hold_until(create->lease_until_ns, actions);
	action = begin_work(core, HOST_WORK_PREPARE, HOST_DO_PREPARE, actions);
	action->request = message;
	action->beat_ns = core->config.beat_ns;
	action->dead_ns = core->config.dead_ns;
}

static void on_wire(struct host_core *core, const struct fw_message *message, int64_t now_ns,
		    struct host_actions *actions)
{
	for (uint32_t i = 0; i < message->wire.peer_count; i++)
		name(core->peers, sizeof(core->peers), message->wire.peers[i].name);
	move(core, HOST_STATE_WIRING, actions);
	core->until_ns = now_ns + core->config.wire_ns;
	begin_work(core, HOST_WORK_WIRE, HOST_DO_WIRE, actions)->request = message;
}

/* Whether it has edges, whichever phase it is in. */
static bool is_wired(const struct host_core *core)
{
	return core->state >= HOST_STATE_WIRING && core->state <= HOST_STATE_STARTED;
}

static void drain(const struct fw_host_stop *stop, struct host_actions *actions)
{
	add(actions, stop->restarts ? HOST_DO_YIELD : HOST_DO_DRAIN)->drain_ns = stop->drain_ns;
}

static void on_stop(struct host_core *core, const struct fw_host_stop *stop, int64_t now_ns,
		    struct host_actions *actions)
{
	if (stop->drain_ns > 0 && core->state == HOST_STATE_STARTED)
		drain(stop, actions);
	else if (stop->drain_ns > 0 && core->state == HOST_STATE_STARTING)
		core->drain = (struct fw_host_stop){.drain_ns = stop->drain_ns,
						    .restarts = stop->restarts};
	else if (stop->drain_ns == 0 ||
		 core->state != HOST_STATE_FAILED) /* or there is nothing to drain */
		begin_end(core, now_ns, actions);
}

/* Parameters change while the operators run. */
static void on_set(struct host_core *core, const struct fw_message *message,
		   struct host_actions *actions)
{
	struct fw_message *answer;

	if (core->state == HOST_STATE_STARTED && !core->end_wanted) {
		add(actions, HOST_DO_SET)->request = message;
		return;
	}
	answer = add_message(core, FW_HOST_SET_DONE, actions);
	answer->host_set_done = (struct fw_host_set_done){
		message->host_set.number,
		{FRAGI_FAILURE_HOST_FAILED,
		 "no operators run: they have not been started yet, or have ended", NULL}};
}

static void on_message(struct host_core *core, const struct fw_message *message, int64_t now_ns,
		       struct host_actions *actions)
{
	core->heard_ns = now_ns;
	switch (message->kind) {
	case FW_BEAT:
		hold_until(message->beat.lease_until_ns, actions);
		look(core, message->beat.looks, actions);
		return;
	case FW_HOST_STOP:
		on_stop(core, &message->stop, now_ns, actions);
		return;
	case FW_HOST_SET:
		on_set(core, message, actions);
		return;
	case FW_HOST_TAP: /* a trace has what happens from the start on */
		if (core->state == HOST_STATE_STARTED ||
		    (core->state == HOST_STATE_WIRED && message->host_tap.traces))
			add(actions, HOST_DO_TAP)->request = message;
		return;
	case FW_HOST_CREATE:
		if (core->state != HOST_STATE_NEW)
			break;
		on_create(core, message, now_ns, actions);
		return;
	case FW_HOST_WIRE:
		if (is_wired(core)) /* peers were started again */
			add(actions, HOST_DO_REWIRE)->request = message;
		else if (core->state == HOST_STATE_PREPARED)
			on_wire(core, message, now_ns, actions);
		else
			break;
		return;
	case FW_HOST_START:
		if (core->state != HOST_STATE_WIRED)
			break;
		move(core, HOST_STATE_STARTING, actions);
		begin_work(core, HOST_WORK_START, HOST_DO_START, actions);
		return;
	case FW_HOST_SUSPEND:
		if (!is_wired(core))
			break;
		add(actions, HOST_DO_SUSPEND)->request = message;
		return;
	default:
		add_log(actions, FRAGI_LOG_WARN, "ignored %s: it is not for a host",
			fw_kind_name(message->kind));
		return;
	}
	add_log(actions, FRAGI_LOG_WARN, "ignored %s: it does not come at this point",
		fw_kind_name(message->kind));
}

static void on_prepare_done(struct host_core *core, const struct host_event *event,
			    struct host_actions *actions)
{
	if (event->prepared == NULL) {
		add_log(actions, FRAGI_LOG_ERROR,
			"cannot report what was prepared: %s; this host ends", event->text);
		lose_workerd(core, actions);
		return;
	}
	add_message(core, FW_HOST_PREPARED, actions)->prepared = *event->prepared;
	move(core, event->prepared->ok ? HOST_STATE_PREPARED : HOST_STATE_FAILED, actions);
}

static void on_start_done(struct host_core *core, const struct fw_host_result *result,
			  struct host_actions *actions)
{
	send_result(core, FW_HOST_STARTED, result, actions);
	if (result->failure.code != FRAGI_FAILURE_NONE) {
		core->run_failed = true;
		return;
	}
	move(core, HOST_STATE_STARTED, actions);
	if (core->drain.drain_ns > 0 && !core->end_wanted)
		drain(&core->drain, actions);
}

static void on_destroy_done(struct host_core *core, const struct host_event *event,
			    struct host_actions *actions)
{
	struct host_action *action;

	move(core, HOST_STATE_ENDED, actions);
	action = add(actions, HOST_DO_EXIT);
	action->operators_may_hang = core->run_failed;
	if (event->operators_may_hang)
		action->exit_code = WRK_HOST_EXIT_BROKEN_OFF;
}

static void on_work_done(struct host_core *core, const struct host_event *event, int64_t now_ns,
			 struct host_actions *actions)
{
	enum host_work completed = completed_by(event->kind);

	assert(core->work == completed);
	(void)completed;
	core->work = HOST_WORK_NONE;
	core->run_failed = core->run_failed || event->operators_may_hang;
	switch (event->kind) {
	case HOST_EV_PREPARE_DONE:
		on_prepare_done(core, event, actions);
		break;
	case HOST_EV_WIRE_DONE: /* the peers are awaited next */
		if (event->result->failure.code != FRAGI_FAILURE_NONE)
			send_result(core, FW_HOST_WIRED, event->result, actions);
		break;
	case HOST_EV_START_DONE:
		on_start_done(core, event->result, actions);
		break;
	default:
		on_destroy_done(core, event, actions);
		break;
	}
	if (core->end_wanted && core->state != HOST_STATE_ENDED)
		begin_end(core, now_ns, actions);
}

static void on_peers_ready(struct host_core *core, struct host_actions *actions)
{
	if (core->state != HOST_STATE_WIRING)
		return;
	send_result(core, FW_HOST_WIRED, &(struct fw_host_result){0}, actions);
	move(core, HOST_STATE_WIRED, actions);
}

/* Passes on what the run reports. A failure while the peers are awaited is the phase's result. */
static void on_report(struct host_core *core, const struct fw_host_event *report,
		      struct host_actions *actions)
{
	bool fails = report->state == FW_STATE_FAILED || report->state == FW_STATE_PEER_LOST;

	core->run_failed = core->run_failed || report->state == FW_STATE_FAILED;
	if (report->state == FW_STATE_IDLE)
		core->idle = core->idle_reported = true;
	if (fails && core->state == HOST_STATE_WIRING)
		send_result(core, FW_HOST_WIRED, &(struct fw_host_result){report->failure},
			    actions);
	else
		add_message(core, FW_HOST_EVENT, actions)->event = *report;
}

/*
 * Peers that do not answer fail the phase. An operator that does not return is a failure, because
 * its driver may not know that the host was told to end: by a signal of somebody else, or by a
 * driver before. The host then waits to be ended, or killed.
 */
static void look_at_time(struct host_core *core, int64_t now_ns, struct host_actions *actions)
{
	struct fw_failure failure = {FRAGI_FAILURE_OPERATOR_HUNG, core->sentence, NULL};

	if (core->work == HOST_WORK_WIRE || now_ns < core->until_ns)
		return;
	if (core->state == HOST_STATE_WIRING) {
		failure.code = FRAGI_FAILURE_EDGE_UNREACHABLE;
		fragi_sentence(
			core->sentence, sizeof(core->sentence),
			"no answer from %s over the data plane within %lld s; check that the addresses of --worker-address can reach each other and that no firewall stands between",
			core->peers, (long long)(core->config.wire_ns / 1000000000));
		send_result(core, FW_HOST_WIRED, &(struct fw_host_result){failure}, actions);
		return;
	}
	fragi_sentence(
		core->sentence, sizeof(core->sentence),
		"the host of %s was told to end, and has not ended within %lld s: a callback of an operator does not return; find out what it waits for",
		core->fragments, (long long)(FRAGI_HOST_END_NS / 1000000000));
	core->run_failed = true;
	core->until_ns = INT64_MAX;
	add_message(core, FW_HOST_EVENT, actions)->event =
		(struct fw_host_event){.state = FW_STATE_FAILED, .failure = failure};
}

static void beat(struct host_core *core, int64_t now_ns, struct host_actions *actions)
{
	if (now_ns < core->beat_at_ns)
		return;
	core->beat_at_ns = now_ns + core->config.beat_ns;
	if (core->idle && !core->idle_reported && core->state == HOST_STATE_STARTED) {
		core->idle = false;
		add_message(core, FW_HOST_EVENT, actions)->event =
			(struct fw_host_event){.state = FW_STATE_RUNNING};
	}
	core->idle_reported = false;
	add(actions, HOST_DO_SEND)->message = (struct fw_message){.kind = FW_BEAT};
}

static void judge_workerd(struct host_core *core, int64_t now_ns, struct host_actions *actions)
{
	if (now_ns - core->heard_ns < core->config.dead_ns)
		return;
	add_log(actions, FRAGI_LOG_ERROR, "workerd has not been heard for %.1f s: this host ends",
		(double)core->config.dead_ns * 1e-9);
	lose_workerd(core, actions);
}

static int64_t deadline(const struct host_core *core)
{
	int64_t at_ns = core->beat_at_ns, dead_at_ns = core->heard_ns + core->config.dead_ns;

	if (core->state == HOST_STATE_ENDED)
		return INT64_MAX;
	if (core->work != HOST_WORK_WIRE && core->until_ns < at_ns)
		at_ns = core->until_ns;
	return dead_at_ns < at_ns ? dead_at_ns : at_ns;
}

void host_core_step(struct host_core *core, const struct host_event *event, int64_t real_now_ns,
		    struct host_actions *actions)
{
	int64_t now_ns = fragi_awake_read(&core->clock, host_core_deadline_ns(core),
					  core->config.beat_ns, real_now_ns);

	assert(core->state != HOST_STATE_ENDED && "nothing follows EXIT");
	actions->count = 0;
	switch (event->kind) {
	case HOST_EV_MESSAGE:
		on_message(core, event->message, now_ns, actions);
		break;
	case HOST_EV_CONNECTION_LOST:
		if (event->text[0] != '\0')
			add_log(actions, FRAGI_LOG_ERROR, "%s", event->text);
		lose_workerd(core, actions);
		break;
	case HOST_EV_STOP:
		if (!core->end_wanted)
			begin_end(core, now_ns, actions);
		break;
	case HOST_EV_PREPARE_DONE:
	case HOST_EV_WIRE_DONE:
	case HOST_EV_START_DONE:
	case HOST_EV_DESTROY_DONE:
		on_work_done(core, event, now_ns, actions);
		break;
	case HOST_EV_SET_DONE:
		add_message(core, FW_HOST_SET_DONE, actions)->host_set_done = *event->set_done;
		break;
	case HOST_EV_TAPPED:
		add_message(core, FW_HOST_TAPPED, actions)->tapped = *event->tapped;
		break;
	case HOST_EV_PEERS_READY:
	case HOST_EV_RUN:
		assert((core->work == HOST_WORK_NONE || core->work == HOST_WORK_START) &&
		       "whoever works has the run");
		if (event->kind == HOST_EV_RUN)
			on_report(core, event->report, actions);
		else
			on_peers_ready(core, actions);
		break;
	case HOST_EV_TIMER:
		look_at_time(core, now_ns, actions);
		beat(core, now_ns, actions);
		judge_workerd(core, now_ns, actions);
		break;
	}
	core->deadline_ns = deadline(core);
	assert((event->kind != HOST_EV_TIMER || core->deadline_ns > now_ns) &&
	       "what was due has been done");
	fragi_machine_check(&machine, core);
}

int host_core_create(const struct host_config *config, int64_t now_ns, struct host_core **out_core)
{
	struct host_core *core = fragi_calloc(1, sizeof(*core));

	if (core == NULL)
		return -ENOMEM;
	core->config = *config;
	if (core->config.beat_ns == 0)
		core->config.beat_ns = FRAGI_BEAT_NS;
	if (core->config.dead_ns == 0)
		core->config.dead_ns = FRAGI_DEAD_NS;
	if (core->config.wire_ns == 0)
		core->config.wire_ns = FRAGI_HOST_WIRE_NS;
	core->heard_ns = core->beat_at_ns = core->deadline_ns =
		fragi_awake_read(&core->clock, INT64_MAX, 0, now_ns);
	core->until_ns = INT64_MAX;
	*out_core = core;
	return 0;
}

void host_core_destroy(struct host_core *core)
{
	fragi_free(core);
}

int64_t host_core_deadline_ns(const struct host_core *core)
{
	return fragi_awake_to_real(&core->clock, core->deadline_ns);
}

enum host_state host_core_state(const struct host_core *core)
{
	return core->state;
}

uint32_t host_core_illegal_transitions(const struct host_core *core)
{
	return core->illegal_transitions;
}
