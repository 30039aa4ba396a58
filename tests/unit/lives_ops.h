/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_LIVES_OPS_H
#define TESTS_UNIT_LIVES_OPS_H

#include "rig.h"
#include "sched_state.h"

#include <run/state.h>
#include <sched/look.h>

/*
 * Operators that write down each of their ticks, with the time of their clock: what they receive,
 * emit and do. A value says who has emitted it and its number: b4 is the fourth one of operator b.
 */
struct life {
	/* parameters; ticks are counted from 1, and 0 stands for none of them */
	int64_t take, emit, none_every, done, fail_at, sleep_ms, pend_at, disable_at, enable_at,
		stop_at, turns;
	const char *enable; /* the operator whose condition `gate` enable_at switches on */
	/* state */
	int64_t next, pended;
};
static const struct frag_param life_params[] = {
	FRAG_PARAM_I64(struct life, take, 1),       FRAG_PARAM_I64(struct life, emit, 1),
	FRAG_PARAM_I64(struct life, none_every, 0), FRAG_PARAM_I64(struct life, done, 25),
	FRAG_PARAM_I64(struct life, fail_at, 0),    FRAG_PARAM_I64(struct life, sleep_ms, 0),
	FRAG_PARAM_I64(struct life, pend_at, 0),    FRAG_PARAM_I64(struct life, disable_at, 0),
	FRAG_PARAM_I64(struct life, enable_at, 0),  FRAG_PARAM_I64(struct life, stop_at, 0),
	FRAG_PARAM_I64(struct life, turns, 0),      FRAG_PARAM_STRING(struct life, enable, ""),
};

/* The lines of all operators, in their order; and of each one, by the first letter of its name. */
static FILE *lives_out, *lives_own[26];

/* Whether the sum is taken of what the scheduler remembers, at each tick. */
static bool life_has_state;

static FILE *life_own(const struct frag_op *op)
{
	return lives_own[frag_op_name(op)[0] - 'a'];
}

static void __attribute__((format(printf, 2, 3)))
life_print(const struct frag_op *op, const char *format, ...)
{
	FILE *const outs[] = {lives_out, life_own(op)};
	va_list args;

	for (int i = 0; i < 2; i++) {
		va_start(args, format);
		vfprintf(outs[i], format, args);
		va_end(args);
	}
}

static int64_t life_ms(const struct frag_op *op)
{
	return frag_clock_timestamp(frag_op_clock(op)) / 1000000;
}

static void life_message(struct frag_tick *tick, uint32_t port, const struct frag_message *message)
{
	const struct frag_op *op = frag_tick_op(tick);
	const void *value;
	int64_t x, late_ns = frag_tick_time_ns(tick) - frag_tick_emitted_ns(tick, port);

	if (message == NULL || frag_message_value(message, &value, NULL) == NULL) {
		life_print(op, message == NULL ? " -" : " run");
		return;
	}
	x = *(const int64_t *)value;
	if (x < 1000)
		life_print(op, " %lld", (long long)x);
	else
		life_print(op, " %c%lld", (char)(x / 1000), (long long)(x % 1000));
	if (late_ns >= 1000000)
		life_print(op, "+%lld", (long long)late_ns / 1000000);
}

static void life_receive(struct frag_tick *tick, uint32_t i, const struct fragi_port *port)
{
	const struct frag_message *const *all;
	const struct frag_message *message = NULL;
	int r;

	life_print(frag_tick_op(tick), " %s:", port->name);
	if ((port->flags & FRAG_PORT_MULTI) != 0) {
		r = frag_tick_receive_all(tick, i, &all);
		for (int k = 0; k < r; k++)
			life_message(tick, i, all[k]);
	} else {
		r = frag_tick_receive(tick, i, &message);
		if (r == 0)
			life_message(tick, i, message);
	}
	if (r < 0)
		life_print(frag_tick_op(tick), " %s", strerrorname_np(-r));
}

static void life_emit(struct life *s, struct frag_tick *tick, uint32_t port)
{
	const struct frag_op *op = frag_tick_op(tick);
	int64_t value = frag_op_name(op)[0] * 1000 + ++s->next;
	int r = frag_tick_emit_i64(tick, port, value);

	life_print(op, " > %lld", (long long)s->next);
	if (r < 0)
		life_print(op, " %s", strerrorname_np(-r));
}

static void life_switch(const struct life *s, struct frag_op *op, int64_t n)
{
	struct frag_op *other = s->enable[0] != '\0' ? frag_op_find(op, s->enable) : NULL;
	struct frag_condition *gate = frag_op_condition(op, "gate");

	if (n == s->disable_at && gate != NULL) {
		life_print(op, ", shuts");
		frag_condition_disable_tick(gate);
	}
	gate = other != NULL ? frag_op_condition(other, "gate") : NULL;
	if (n == s->enable_at && gate != NULL) {
		life_print(op, ", opens %s", s->enable);
		frag_condition_enable_tick(gate);
	}
}

static int life_act(struct life *s, struct frag_tick *tick, int64_t n)
{
	struct frag_op *op = frag_tick_op(tick);

	for (int64_t k = 0; k < s->take; k++)
		for (uint32_t i = 0; i < op->port_count; i++)
			if (op->ports[i].dir == FRAG_IN && op->ports[i].name[0] != '_')
				life_receive(tick, i, &op->ports[i]);
	if (s->sleep_ms > 0)
		frag_clock_sleep_for(frag_op_clock(op), s->sleep_ms * 1000000);
	if (n == s->fail_at)
		return frag_op_fail(op, -EIO, "it fails in tick %lld", (long long)n);
	for (uint32_t i = 0; i < op->port_count; i++)
		for (int64_t k = 0;
		     k < s->emit && op->ports[i].dir == FRAG_OUT && op->ports[i].name[0] != '_' &&
		     (s->none_every == 0 || n % s->none_every != 0);
		     k++)
			life_emit(s, tick, i);
	life_switch(s, op, n);
	if (n == s->stop_at)
		frag_op_stop_execution(op);
	return n == s->done ? FRAG_DONE : 0;
}

static const enum frag_op_counter life_counters[] = {FRAG_OP_SKIPPED, FRAG_OP_REMOVED,
						     FRAG_OP_HELD_BACK};

static int life_compute(void *state, struct frag_tick *tick)
{
	struct life *s = state;
	struct frag_op *op = frag_tick_op(tick);
	const int64_t n = (int64_t)frag_tick_count(tick) + 1;
	int r;

	if (life_has_state) {
		/*
		 * Where no thread looks, this one does; else it is as if that one had found that it
		 * waits for a thread, or for room.
		 */
		if (((const struct fragi_run *)op->fragment->run)->deadline_count == 0)
			fragi_sched_look(op->exec->sched, 1000000);
		else
			fragi_count(n % 2 == 0 ? &op->exec->row->use_thread
					       : &op->exec->row->use_room,
				    50000000);
		state_of_sched(op->exec->sched);
	}
	life_print(op, "%lld %s#%lld", (long long)life_ms(op), frag_op_name(op), (long long)n);
	if (n == s->pend_at && s->pended++ == 0) {
		life_print(op, " pends\n");
		frag_op_resume(op);
		return FRAG_PENDING;
	}
	if (n == 3 && frag_op_name(op)[0] == 'c')
		for (int i = 0; i < 3; i++)
			frag_op_count(op, life_counters[i], (uint64_t)i * 3 + 2);
	r = life_act(s, tick, n);
	life_print(op, r == FRAG_DONE ? ", done\n" : r < 0 ? ", fails\n" : "\n");
	return r;
}

static int life_stop(void *state, struct frag_op *op)
{
	(void)state;
	life_print(op, "%lld %s stops\n", (long long)life_ms(op), frag_op_name(op));
	return 0;
}

/* In its first `turns` ticks it goes on to one flow after the other, then to none. */
static int life_choose(void *self, struct frag_tick *tick, void *arg)
{
	const struct life *s = self;
	const struct frag_flow_info *const *flows;
	uint32_t count = frag_op_next_flows(frag_tick_op(tick), &flows);
	int64_t n = (int64_t)frag_tick_count(tick);

	(void)arg;
	if (n >= s->turns || count == 0)
		return 0;
	return frag_tick_add_dynamic_flow_info(tick, flows[n % count]);
}

static int choice_setup(void *state, struct frag_op *op)
{
	(void)state;
	return frag_set_dynamic_flows(op, life_choose, NULL);
}

static int scribe_log(void *state, const struct frag_log_entry *entry)
{
	const void *value;
	const bool has_value = frag_message_value(entry->message, &value, NULL) != NULL;

	(void)state;
	fprintf(lives_out, " (%s %s %lld)", entry->id, entry->dir == FRAG_IN ? "in" : "out",
		has_value ? (long long)(*(const int64_t *)value % 1000) : -1);
	return 0;
}
static const struct frag_data_logger_type scribe_type = {FRAG_DATA_LOGGER_TYPE_INIT,
							 .name = "scribe", .log = scribe_log};

#define LIFE(name, ...)                                                                            \
	TEST_OP_BY(name, life_compute, .state_size = sizeof(struct life),                          \
		   FRAG_PARAMS(life_params), .stop = life_stop, ##__VA_ARGS__)
#define IN(n, ...)                                                                                 \
	{                                                                                          \
		.name = n, .dir = FRAG_IN, .type = "i64", ##__VA_ARGS__                            \
	}
#define OUT(n, ...)                                                                                \
	{                                                                                          \
		.name = n, .dir = FRAG_OUT, .type = "i64", ##__VA_ARGS__                           \
	}
static const struct frag_port src_ports[] = {OUT("out")};
static const struct frag_port mid_ports[] = {IN("in"), OUT("out")};
static const struct frag_port two_ports[] = {IN("a"), IN("b"), OUT("out")};
static const struct frag_port all_ports[] = {IN("receivers", .flags = FRAG_PORT_MULTI), OUT("out")};
LIFE(src, FRAG_PORTS(src_ports));
LIFE(mid, FRAG_PORTS(mid_ports));
LIFE(two, FRAG_PORTS(two_ports));
LIFE(all, FRAG_PORTS(all_ports));
LIFE(step, .headline = "Has no ports");
LIFE(choice, .setup = choice_setup);
LIFE(select, FRAG_PORTS(mid_ports), .setup = choice_setup);
static const struct frag_op_type *const lives_ops[] = {
	&src_type, &mid_type, &two_type, &all_type, &step_type, &choice_type, &select_type};
static const struct frag_data_logger_type *const lives_loggers[] = {&scribe_type};
static const struct frag_plugin lives_plugin = {
	TEST_PLUGIN_INIT, .name = "lives", FRAG_OPS(lives_ops), FRAG_DATA_LOGGERS(lives_loggers)};

#endif
