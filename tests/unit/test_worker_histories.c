// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <workerd/core/core.h>

/*
 * Histories at random, from seeds: whatever the order of what happens, legal or not, what must
 * always hold holds after every step, and the worker ends when it is told to.
 */
#define MS 1000000ll
#define PROCESSES_MAX 64

struct process {
	uint32_t host;
	uint64_t run, epoch;
	uint32_t number;
	bool spawning, killed, ends;
};

struct history {
	uint64_t random;
	struct wrk_core *core;
	struct wrk_actions actions;
	int64_t now;
	uint64_t connection; /* that the shell has open; 0: none */
	uint64_t next_epoch;
	struct process processes[PROCESSES_MAX];
	size_t process_count;
	bool exited;
	int exit_code;
};

static uint32_t pick(struct history *h, uint32_t below)
{
	h->random ^= h->random << 13;
	h->random ^= h->random >> 7;
	h->random ^= h->random << 17;
	return (uint32_t)((h->random >> 20) % below);
}

static struct process *process_of(struct history *h, uint32_t host)
{
	for (size_t i = 0; i < h->process_count; i++)
		if (h->processes[i].host == host)
			return &h->processes[i];
	return NULL;
}

static void spawned(struct history *h, const struct wrk_action *action)
{
	cr_assert_lt(h->process_count, (size_t)PROCESSES_MAX);
	h->processes[h->process_count++] = (struct process){.host = action->host,
							    .run = action->message->run,
							    .number = action->message->host,
							    .epoch = action->message->epoch,
							    .spawning = true};
}

static void perform(struct history *h, const struct wrk_action *action)
{
	struct process *process = process_of(h, action->host);

	cr_assert_not(h->exited, "nothing happens after the exit");
	switch (action->kind) {
	case WRK_DO_CONNECT:
		cr_assert_eq(h->connection, 0, "one connection at a time");
		h->connection = action->connection;
		break;
	case WRK_DO_DISCONNECT:
		cr_assert_eq(h->connection, action->connection);
		h->connection = 0;
		break;
	case WRK_DO_SEND_DRIVER:
	case WRK_DO_REPORTER_SESSION:
		cr_assert_eq(h->connection, action->connection,
			     "only what is connected is written to");
		break;
	case WRK_DO_SEND_SAVED:
	case WRK_DO_TAKE_SAVED:
	case WRK_DO_PROMOTE_SAVED:
	case WRK_DO_FORGET_SAVED:
	case WRK_DO_EXAMINE:
		break;
	case WRK_DO_SPAWN:
		spawned(h, action);
		break;
	case WRK_DO_SIGNAL_HOST:
		cr_assert_not_null(process);
		process->killed = process->killed || action->signal == SIGKILL;
		process->ends = process->ends || action->signal == SIGTERM;
		break;
	case WRK_DO_SEND_HOST:
	case WRK_DO_SAMPLE_HOST:
	case WRK_DO_REPORTER_HOST:
		cr_assert_not_null(process);
		break;
	case WRK_DO_LOG:
		break;
	case WRK_DO_EXIT:
		h->exited = true;
		h->exit_code = action->exit_code;
		break;
	}
}

static void step(struct history *h, const struct wrk_event *event)
{
	wrk_actions_reset(&h->actions);
	cr_assert_eq(wrk_core_step(h->core, event, h->now, &h->actions), 0);
	for (size_t i = 0; i < h->actions.count; i++)
		perform(h, &h->actions.items[i]);
	cr_assert_eq(wrk_core_illegal_transitions(h->core), 0);
	for (size_t i = 0; i < h->process_count; i++) {
		const struct process *a = &h->processes[i];

		if (wrk_core_session(h->core) != WRK_SESSION_ATTACHED && !h->exited)
			cr_assert(a->killed || a->ends, "a host without a driver is ended");
		for (size_t k = 0; k < i; k++)
			cr_assert(a->killed || h->processes[k].killed ||
					  a->run != h->processes[k].run ||
					  a->number != h->processes[k].number,
				  "never two live owners");
	}
}

static void driver_says(struct history *h)
{
	static const char *names[] = {"f"};
	/* the last two may not come at that point, and end the session */
	static const enum fw_kind kinds[] = {FW_BEAT,      FW_HOST_CREATE, FW_HOST_CREATE,
					     FW_HOST_WIRE, FW_HOST_START,  FW_HOST_STOP,
					     FW_HOST_KILL, FW_WELCOME,     FW_HOST_EXIT};
	uint32_t legal = (uint32_t)FRAG_COUNT_OF(kinds) - (pick(h, 20) == 0 ? 0 : 2);
	bool hello = wrk_core_session(h->core) == WRK_SESSION_HELLO_SENT;
	struct fw_message message = {.kind = hello && pick(h, 10) > 0 ? FW_WELCOME
								      : kinds[pick(h, legal)]};

	message.run = 1 + pick(h, 2);
	message.host = 1 + pick(h, 3);
	message.epoch = pick(h, 3) == 0 ? 1 + pick(h, 20) : ++h->next_epoch;
	if (message.kind != FW_HOST_CREATE && h->process_count > 0 && pick(h, 4) > 0) {
		const struct process *process = &h->processes[pick(h, (uint32_t)h->process_count)];

		message.run = process->run;
		message.host = process->number;
		message.epoch = process->epoch;
	}
	if (message.kind == FW_HOST_CREATE)
		message.create = (struct fw_host_create){
			.application = "app", .fragments = names, .fragment_count = 1};
	if (message.kind == FW_WELCOME)
		message.welcome = (struct fw_welcome){.session = 5,
						      .name = "w",
						      .beat_ns = pick(h, 500) * MS,
						      .dead_ns = pick(h, 5000) * MS,
						      .version = ""};
	if (message.kind == FW_HOST_CREATE && h->process_count > PROCESSES_MAX / 2)
		message.kind = FW_BEAT;
	step(h, &(struct wrk_event){.kind = WRK_EVENT_DRIVER_MESSAGE,
				    .connection = h->connection,
				    .message = &message});
}

static void host_says(struct history *h, const struct process *process)
{
	static const enum fw_kind kinds[] = {FW_BEAT,       FW_BEAT,         FW_HOST_PREPARED,
					     FW_HOST_WIRED, FW_HOST_STARTED, FW_HOST_EVENT,
					     FW_HOST_CREATE};
	struct fw_message message = {.kind = kinds[pick(h, FRAG_COUNT_OF(kinds))],
				     .run = process->run,
				     .host = process->number,
				     .epoch = process->epoch};

	if (message.kind == FW_HOST_PREPARED)
		message.prepared.ok = true;
	else if (message.kind == FW_HOST_EVENT)
		message.event =
			(struct fw_host_event){.state = (enum fw_host_state)(1 + pick(h, 6)),
					       .failure = {FRAGI_FAILURE_OPERATOR_FAILED, "", ""}};
	else
		message.result = (struct fw_host_result){
			{pick(h, 2) == 0 ? FRAGI_FAILURE_NONE : FRAGI_FAILURE_HOST_FAILED, "", ""}};
	step(h, &(struct wrk_event){.kind = WRK_EVENT_HOST_MESSAGE,
				    .host = process->host,
				    .message = &message});
}

static void process_ends(struct history *h, size_t i)
{
	const struct process process = h->processes[i];
	const struct wrk_exited exited = {.signal = process.killed ? SIGKILL : 0,
					  .status = (int)pick(h, 3)};

	h->processes[i] = h->processes[--h->process_count];
	step(h, &(struct wrk_event){
			.kind = WRK_EVENT_HOST_EXITED, .host = process.host, .exited = &exited});
}

static void process_event(struct history *h, size_t i)
{
	struct process *process = &h->processes[i];
	uint32_t host = process->host;

	if (process->spawning && pick(h, 5) == 0) {
		*process = h->processes[--h->process_count];
		step(h, &(struct wrk_event){
				.kind = WRK_EVENT_HOST_FAILED, .host = host, .text = "no"});
	} else if (process->spawning) {
		process->spawning = false;
		step(h, &(struct wrk_event){
				.kind = WRK_EVENT_HOST_SPAWNED, .host = host, .pid = 1000});
	} else if (process->killed || pick(h, 12) == 0) {
		process_ends(h, i);
	} else if (pick(h, 15) == 0) {
		step(h, &(struct wrk_event){.kind = WRK_EVENT_HOST_CONNECTION_LOST,
					    .host = host,
					    .text = "closed"});
	} else {
		host_says(h, process);
	}
}

static void something_happens(struct history *h)
{
	int64_t deadline = wrk_core_deadline_ns(h->core);
	uint64_t connection = h->connection;

	switch (pick(h, 8)) {
	case 0:
		h->now += pick(h, 300) * MS;
		break;
	case 1:
	case 2:
		if (deadline != INT64_MAX) { /* sometimes late, as after SIGSTOP */
			h->now = (deadline > h->now ? deadline : h->now) +
				 (pick(h, 10) == 0 ? pick(h, 9000) * MS : 0);
			step(h, &(struct wrk_event){.kind = WRK_EVENT_TIMER});
		}
		break;
	case 3:
		if (connection != 0 && wrk_core_session(h->core) == WRK_SESSION_CONNECTING &&
		    pick(h, 3) > 0) {
			step(h, &(struct wrk_event){.kind = WRK_EVENT_CONNECTED,
						    .connection = connection,
						    .text = "127.0.0.1"});
		} else if (connection != 0 && pick(h, 12) == 0) {
			h->connection = 0;
			step(h, &(struct wrk_event){.kind = wrk_core_session(h->core) ==
									    WRK_SESSION_CONNECTING
								    ? WRK_EVENT_CONNECT_FAILED
								    : WRK_EVENT_DRIVER_LOST,
						    .connection = connection,
						    .text = "reset"});
		}
		break;
	case 4: /* of a connection that is no more */
		step(h, &(struct wrk_event){.kind = WRK_EVENT_DRIVER_LOST,
					    .connection = connection - 1 - pick(h, 3),
					    .text = "late"});
		break;
	case 5:
		if (connection != 0)
			driver_says(h);
		break;
	default:
		if (h->process_count > 0)
			process_event(h, pick(h, (uint32_t)h->process_count));
	}
}

static void live(uint64_t seed, bool once)
{
	const struct wrk_config config = {.name = "w",
					  .driver = "d",
					  .worker_address = "",
					  .node = "n",
					  .clock = "c",
					  .version = "v",
					  .once = once,
					  .seed = seed};
	struct history h = {.random = seed * 0x9e3779b97f4a7c15ull | 1, .now = 1000 * MS};

	cr_assert_eq(wrk_core_create(&config, &h.core), 0);
	step(&h, &(struct wrk_event){.kind = WRK_EVENT_START});
	for (int i = 0; i < 300 && !h.exited; i++)
		something_happens(&h);
	for (int i = 0; i < 2 && !h.exited; i++)
		step(&h, &(struct wrk_event){.kind = WRK_EVENT_STOP});
	while (h.process_count > 0 && !h.exited) {
		h.processes[0].spawning = false;
		process_ends(&h, 0);
	}
	cr_assert(h.exited, "told to end, and nothing is left: it ends (seed %llu)",
		  (unsigned long long)seed);
	cr_assert_eq(wrk_core_deadline_ns(h.core), INT64_MAX);
	wrk_core_destroy(h.core);
	wrk_actions_fini(&h.actions);
}

Test(worker_histories, hold_what_must_hold)
{
	for (uint64_t seed = 1; seed <= 3000; seed++)
		live(seed, false);
}

Test(worker_histories, hold_with_once)
{
	for (uint64_t seed = 1; seed <= 3000; seed++)
		live(seed, true);
}
