/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_WORKER_WORLD_H
#define TESTS_WORKER_WORLD_H

#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <base/alloc.h>
#include <workerd/core/core.h>

#define MS 1000000ll

/* A shell without a network: time stands still until the test moves it. */
static struct wrk_core *core;
static struct wrk_actions actions;
static int64_t now = 1000 * MS;
static uint64_t seen_connection; /* of the last DO_CONNECT */
static uint32_t seen_host;       /* of the last DO_SPAWN */
static const char *fragment_names[] = {"fragment1"};
static int64_t grace_ns;      /* of the next make */
static bool outlives_refusal; /* ... */

static inline void make(bool once)
{
	struct wrk_config config = {.name = "a",
				    .fragments = fragment_names,
				    .fragment_count = 1,
				    .driver = "127.0.0.1:57777",
				    .worker_address = "",
				    .node = "boot",
				    .clock = "clock",
				    .memory = "memory",
				    .version = "0.1.0",
				    .once = once,
				    .outlives_refusal = outlives_refusal,
				    .grace_ns = grace_ns,
				    .seed = 42};

	cr_assert_eq(wrk_core_create(&config, &core), 0);
}

static inline void finish(void)
{
	if (core != NULL)
		cr_expect_eq(wrk_core_illegal_transitions(core), 0);
	wrk_core_destroy(core);
	core = NULL;
	wrk_actions_fini(&actions);
}

/* In the step of that number memory fails after so many allocations; -1: in none. */
static int64_t short_step = -1, short_skip, step_count;
static bool broken; /* the core said -ENOMEM, and is not used on */

static inline int step_core(const struct wrk_event *event)
{
	bool runs_short = step_count++ == short_step;
	int r;

	if (runs_short)
		fragi_alloc_fail_after(short_skip, 1);
	r = wrk_core_step(core, event, now, &actions);
	if (runs_short && fragi_alloc_fail_off() == 0)
		short_skip = -1; /* it needs no more than that */
	else if (runs_short)
		cr_assert_eq(r, -ENOMEM, "memory was short, and it returned %d", r);
	broken = runs_short && r == -ENOMEM;
	return r;
}

/* Returns what the core returned; 0 without a step once it is broken. */
static inline int step(struct wrk_event event)
{
	int r;

	wrk_actions_reset(&actions);
	cr_expect(actions.arena.used_bytes == 0 && actions.completed.kind == 0);
	if (broken)
		return 0;
	r = step_core(&event);
	for (size_t i = 0; i < actions.count; i++) {
		if (actions.items[i].kind == WRK_DO_CONNECT)
			seen_connection = actions.items[i].connection;
		if (actions.items[i].kind == WRK_DO_SPAWN)
			seen_host = actions.items[i].host;
	}
	return broken ? 0 : r;
}

/* The n-th action of that kind in the last step; NULL: not there. */
static inline const struct wrk_action *did_nth(enum wrk_action_kind kind, int n)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].kind == kind && n-- == 0)
			return &actions.items[i];
	return NULL;
}
static inline const struct wrk_action *did(enum wrk_action_kind kind)
{
	return did_nth(kind, 0);
}
static inline void expect_exit(int code)
{
	cr_assert_not_null(did(WRK_DO_EXIT));
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, code);
}
/* A frame that the last step sent to the driver. */
static inline const struct fw_message *sent(enum fw_kind kind)
{
	const struct wrk_action *action;

	for (int n = 0; (action = did_nth(WRK_DO_SEND_DRIVER, n)) != NULL; n++)
		if (action->message->kind == kind)
			return action->message;
	return NULL;
}
static inline const char *logged(enum fragi_log_level level)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].kind == WRK_DO_LOG && actions.items[i].level == level)
			return actions.items[i].text;
	return NULL;
}

/* The subject of that line. */
static inline const char *logged_of(enum fragi_log_level level)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].kind == WRK_DO_LOG && actions.items[i].level == level)
			return actions.items[i].subject;
	return NULL;
}

static inline void from_driver(const struct fw_message *message)
{
	cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_DRIVER_MESSAGE,
					     .connection = seen_connection,
					     .message = message}),
		     0);
}
static inline void from_host(const struct fw_message *message)
{
	cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_HOST_MESSAGE,
					     .host = seen_host,
					     .message = message}),
		     0);
}

/* Runs the timer whenever it is due, up to `until`, stopping at the first step that did `kind`. */
static inline bool timers_until(int64_t until, enum wrk_action_kind kind)
{
	while (wrk_core_deadline_ns(core) <= until) {
		now = wrk_core_deadline_ns(core);
		cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_TIMER}), 0);
		if (did(kind) != NULL)
			return true;
	}
	now = until;
	return false;
}

static const struct fw_message welcome = {
	.kind = FW_WELCOME,
	.welcome = {.session = 77,
		    .name = "a#2",
		    .beat_ns = 250 * MS,
		    .dead_ns = 3000 * MS,
		    .version = "0.1.0",
		    .secret = {1, 2, 3, 4}},
};
static const struct fw_message beat = {.kind = FW_BEAT};

static inline void make_started(bool once)
{
	make(once);
	cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_START}), 0);
}
static inline void of_connection(enum wrk_event_kind kind, const char *text)
{
	cr_assert_eq(
		step((struct wrk_event){.kind = kind, .connection = seen_connection, .text = text}),
		0);
}
static inline void connected(const char *own_address)
{
	of_connection(WRK_EVENT_CONNECTED, own_address);
}
static inline void connect_failed(const char *why)
{
	of_connection(WRK_EVENT_CONNECT_FAILED, why);
}
static inline void driver_lost(const char *why)
{
	of_connection(WRK_EVENT_DRIVER_LOST, why);
}
static inline void attach(void)
{
	connected("127.0.0.1");
	cr_assert_not_null(sent(FW_HELLO));
	from_driver(&welcome);
	cr_assert_eq(wrk_core_session(core), WRK_SESSION_ATTACHED);
}
static inline void start_attached(bool once)
{
	make_started(once);
	attach();
}
static inline struct fw_message create_of(uint64_t run, uint32_t host, uint64_t epoch)
{
	return (struct fw_message){
		.kind = FW_HOST_CREATE,
		.run = run,
		.host = host,
		.epoch = epoch,
		.create = {.application = "app", .fragments = fragment_names, .fragment_count = 1},
	};
}
static inline void spawned(uint32_t host)
{
	cr_assert_eq(
		step((struct wrk_event){.kind = WRK_EVENT_HOST_SPAWNED, .host = host, .pid = 4711}),
		0);
}
static inline void spawn(uint64_t epoch)
{
	struct fw_message create = create_of(7, 1, epoch);

	from_driver(&create);
	cr_assert_not_null(did(WRK_DO_SPAWN));
	cr_assert_eq(did(WRK_DO_SPAWN)->message, &create);
	spawned(seen_host);
	cr_assert_eq(wrk_core_host_state(core, seen_host), WRK_HOST_UP);
}
static inline void start_with_host(bool once, uint64_t epoch)
{
	start_attached(once);
	spawn(epoch);
}
static inline struct fw_message host_frame(enum fw_kind kind)
{
	return (struct fw_message){.kind = kind, .run = 7, .host = 1, .epoch = 1};
}
static inline void prepared(void)
{
	static struct fw_op ops[] = {{.name = "tx", .type = "ping_tx"},
				     {.name = "detect", .type = "detector"}};
	static struct fw_fragment fragments[] = {{.name = "fragment1", .ops = ops, .op_count = 2}};
	struct fw_message message = host_frame(FW_HOST_PREPARED);

	message.prepared =
		(struct fw_host_prepared){.ok = true, .fragments = fragments, .fragment_count = 1};
	from_host(&message);
	cr_assert_eq(sent(FW_HOST_PREPARED), &message);
}
static inline void exited_with(int status, int number, struct fw_host_stats *stats)
{
	static const char *lines[] = {"last words"};
	struct wrk_exited how = {.status = status,
				 .signal = number,
				 .stats = stats,
				 .lines = lines,
				 .line_count = 1};

	cr_assert_eq(step((struct wrk_event){
			     .kind = WRK_EVENT_HOST_EXITED, .host = seen_host, .exited = &how}),
		     0);
}
static inline void exited(int status, int number, bool page)
{
	struct fw_op_stats ops[2] = {{.ticks = 3}, {.ticks = 17, .running = true}};
	struct fw_host_stats stats = {.ops = ops, .op_count = 2};

	exited_with(status, number, page ? &stats : NULL);
}

/* The driver's last word. */
static inline void app_ended(uint64_t run, int exit_code)
{
	struct fw_message message = {.kind = FW_APP_ENDED, .run = run};

	message.app_ended.exit_code = exit_code;
	from_driver(&message);
}

#endif
