// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "node.h"

void (*oracle_tick_begins)(struct frag_op *op);

static const struct frag_param node_params[] = {
	FRAG_PARAM_I64(struct node, index, 0),
	FRAG_PARAM_I64(struct node, inputs, 0),
	FRAG_PARAM_I64(struct node, outputs, 0),
	FRAG_PARAM_I64(struct node, multi, 0),
	FRAG_PARAM_I64(struct node, free_in, 0),
	FRAG_PARAM_I64(struct node, free_out, 0),
	FRAG_PARAM_I64(struct node, take, 1),
	FRAG_PARAM_I64(struct node, emit, 1),
	FRAG_PARAM_I64(struct node, count, 0),
	FRAG_PARAM_I64(struct node, disable_at, 0),
	FRAG_PARAM_I64(struct node, enable_at, 0),
	FRAG_PARAM_I64(struct node, enables, 0),
	FRAG_PARAM_I64(struct node, work_ns, 0),
	FRAG_PARAM_I64(struct node, work_every, 1),
	FRAG_PARAM_I64(struct node, pend_every, 0),
	FRAG_PARAM_I64(struct node, turns, 0),
	FRAG_PARAM_BOOL(struct node, routes, false),
	FRAG_PARAM_BOOL(struct node, chooses, false),
	FRAG_PARAM_RESOURCE(struct node, pool, NULL, .flags = FRAG_PARAM_OPTIONAL),
};

static uint32_t mix(uint32_t hash, uint32_t x)
{
	hash = (hash ^ x) * 0x9e3779b1u;
	return hash ^ hash >> 15;
}

static uint64_t value_make(uint32_t origin, uint32_t number, uint32_t hash)
{
	return (uint64_t)origin << 50 | (uint64_t)(number & 0x3ffffu) << 32 | hash;
}

/* Switches of other operators, by their index. */
static pthread_mutex_t switches_lock = PTHREAD_MUTEX_INITIALIZER;
static struct frag_condition *switches[256];

static void switch_set(int64_t index, struct frag_condition *condition)
{
	pthread_mutex_lock(&switches_lock);
	switches[index] = condition;
	pthread_mutex_unlock(&switches_lock);
}

static void switch_on(int64_t index)
{
	pthread_mutex_lock(&switches_lock);
	if (switches[index] != NULL)
		frag_condition_enable_tick(switches[index]);
	pthread_mutex_unlock(&switches_lock);
}

/*
 * The work outside for which ticks are pending: a thread that resumes each operator soon after it
 * was asked to. Its list is guarded by the lock, under which it calls frag_op_resume, so an
 * operator that has left the list is never resumed.
 */
static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t waiting_came = PTHREAD_COND_INITIALIZER;
static struct frag_op *waiting[256];
static uint32_t waiting_count;
static pthread_once_t resumer_once = PTHREAD_ONCE_INIT;

static void *resumer_main(void *arg)
{
	pthread_mutex_lock(&waiting_lock);
	for (;;) {
		if (waiting_count == 0)
			pthread_cond_wait(&waiting_came, &waiting_lock);
		else
			frag_op_resume(waiting[--waiting_count]);
	}
	return NULL;
}

static void resumer_start(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, resumer_main, NULL) != 0)
		abort();
	pthread_detach(thread);
}

static void resume_soon(struct frag_op *op)
{
	pthread_once(&resumer_once, resumer_start);
	pthread_mutex_lock(&waiting_lock);
	waiting[waiting_count++] = op;
	pthread_cond_signal(&waiting_came);
	pthread_mutex_unlock(&waiting_lock);
}

static void resume_never(const struct frag_op *op)
{
	uint32_t kept = 0;

	pthread_mutex_lock(&waiting_lock);
	for (uint32_t i = 0; i < waiting_count; i++)
		if (waiting[i] != op)
			waiting[kept++] = waiting[i];
	waiting_count = kept;
	pthread_mutex_unlock(&waiting_lock);
}

/* Chooses by what was received, or all flows for so many turns, and records it. */
static int node_choose(void *state, struct frag_tick *tick, void *arg)
{
	struct node *s = state;
	const struct frag_flow_info *const *flows;
	uint32_t count = frag_op_next_flows(frag_tick_op(tick), &flows);
	uint32_t hash = mix(s->hash, (uint32_t)s->ticks);

	if (count != s->route_count)
		return frag_op_fail(frag_tick_op(tick), -EINVAL, "%u flows are %u now",
				    s->route_count, count);
	for (uint32_t i = 0; i < count; i++) {
		struct node_route *route = &s->routes_taken[i];
		bool taken = s->turns > 0 ? s->ticks <= s->turns : (hash >> i % 32 & 1) != 0;
		int r = taken ? frag_tick_add_dynamic_flow_info(tick, flows[i]) : 0;

		if (r < 0)
			return r;
		if (taken)
			route->messages += route->execution ? 1 : s->emitted[route->out];
	}
	return 0;
}

static uint32_t number_in(const char *name)
{
	return (uint32_t)strtoul(name + strcspn(name, "0123456789"), NULL, 10);
}

static void note_routes(struct node *s, struct frag_op *op)
{
	const struct frag_flow_info *const *flows;

	s->route_count = frag_op_next_flows(op, &flows);
	if (s->route_count > NODE_FLOWS_MAX)
		abort();
	for (uint32_t i = 0; i < s->route_count; i++)
		s->routes_taken[i] = (struct node_route){
			.execution = strcmp(flows[i]->out_port, FRAG_OUTPUT_EXEC) == 0,
			.out = number_in(flows[i]->out_port),
			.to = number_in(flows[i]->next_op),
			.in = number_in(flows[i]->in_port),
		};
}

static int node_setup(void *state, struct frag_op *op)
{
	struct node *s = state;
	char name[16];

	if (s->chooses || s->turns > 0)
		frag_set_dynamic_flows(op, node_choose, NULL);

	for (uint32_t i = 0; i < (uint32_t)(s->inputs + s->outputs); i++) {
		bool is_in = i < (uint32_t)s->inputs;
		uint32_t number = is_in ? i : i - (uint32_t)s->inputs;
		struct frag_port port = {.name = name, .dir = is_in ? FRAG_IN : FRAG_OUT};
		int r;

		snprintf(name, sizeof(name), "%s%u", is_in ? "in" : "out", number);
		port.flags = is_in ? FRAG_PORT_OPTIONAL : 0;
		if (is_in && (s->multi >> number & 1) != 0)
			port.flags |= FRAG_PORT_MULTI;
		r = frag_op_add_port(op, &port);
		if (r < 0)
			return r;
	}
	return 0;
}

static int node_start(void *state, struct frag_op *op)
{
	struct node *s = state;

	note_routes(s, op);
	s->boolean = frag_op_condition(op, "boolean");
	switch_set(s->index, s->boolean);
	if (atomic_exchange(&s->running, 1) != 0)
		return frag_op_fail(op, -EBUSY, "started twice");
	return 0;
}

static int node_stop(void *state, struct frag_op *op)
{
	struct node *s = state;

	resume_never(op);
	switch_set(s->index, NULL);
	if (atomic_exchange(&s->running, 0) != 1 || atomic_load(&s->busy) != 0)
		abort(); /* stop reports nothing to its caller */
	return 0;
}

static void node_fini(void *state, struct frag_op *op)
{
	struct node *s = state;

	for (uint32_t i = 0; i < s->flow_count; i++)
		free(s->flows[i].values);
}

static struct node_flow *flow_of(struct node *s, uint32_t in, uint32_t origin)
{
	struct node_flow *flow = s->flows;

	while (flow < s->flows + s->flow_count && (flow->in != in || flow->origin != origin))
		flow++;
	if (flow == s->flows + s->flow_count) {
		if (s->flow_count++ == NODE_FLOWS_MAX)
			abort();
		flow->in = in;
		flow->origin = origin;
	}
	return flow;
}

static int note(struct node *s, struct frag_op *op, uint32_t in, uint64_t value)
{
	uint32_t number = (uint32_t)(value >> 32) & 0x3ffffu;
	struct node_flow *flow = flow_of(s, in, (uint32_t)(value >> 50));

	if (number < flow->next)
		return frag_op_fail(op, -EBADMSG, "message %u of operator %u came after message %u",
				    number, flow->origin / NODE_PORTS, flow->next - 1);
	flow->has_gaps |= number > flow->next;
	flow->next = number + 1;
	if (flow->count == flow->capacity) {
		flow->capacity = flow->capacity * 2 + 16;
		flow->values = realloc(flow->values, flow->capacity * sizeof(*flow->values));
		if (flow->values == NULL)
			abort();
	}
	flow->values[flow->count++] = (uint32_t)value;
	s->hash = mix(s->hash, (uint32_t)value + in);
	return 0;
}

static int note_message(struct node *s, struct frag_op *op, uint32_t in,
			const struct frag_message *message)
{
	const void *value = NULL;
	uint64_t bits;

	if (frag_message_tensor_count(message) > 0)
		value = frag_tensor_data(frag_message_tensor(message, ""));
	else
		frag_message_value(message, &value, NULL);
	memcpy(&bits, value, sizeof(bits));
	return note(s, op, in, bits);
}

/* Receives one message of each flow. Returns how many there were. */
static int receive_once(struct node *s, struct frag_tick *tick, uint32_t in)
{
	const struct frag_message *const *all;
	const struct frag_message *message;
	int n, r, some = 0;

	if ((s->multi >> in & 1) == 0) {
		r = frag_tick_receive(tick, in, &message);
		if (r == 0)
			r = note_message(s, frag_tick_op(tick), in, message);
		return r == -ENOMSG ? 0 : r < 0 ? r : 1;
	}
	n = frag_tick_receive_all(tick, in, &all);
	for (int i = 0; i < n; i++) {
		if (all[i] == NULL) {
			s->hash = mix(s->hash, (uint32_t)-i);
			continue;
		}
		r = note_message(s, frag_tick_op(tick), in, all[i]);
		if (r < 0)
			return r;
		some++;
	}
	return n < 0 ? n : some;
}

static int receive(struct node *s, struct frag_tick *tick)
{
	int r;

	for (uint32_t in = 0; in < (uint32_t)s->inputs; in++) {
		if (frag_op_flow_count(frag_tick_op(tick), in) == 0)
			continue;
		for (int64_t i = 0; i < s->take; i++) {
			r = receive_once(s, tick, in);
			if (r < 0)
				return r;
			if (r == 0 && i == 0 && (s->free_in >> in & 1) == 0)
				return frag_op_fail(frag_tick_op(tick), -ENOMSG,
						    "it was ticked without a message at in%u", in);
			if (r == 0)
				break;
		}
	}
	return 0;
}

static int emit_one(struct node *s, struct frag_tick *tick, uint32_t out)
{
	uint64_t value = value_make(node_origin((uint32_t)s->index, out), s->next[out]++, s->hash);
	struct frag_tensor *tensor;
	const int64_t shape = sizeof(value);
	uint32_t port = (uint32_t)s->inputs + out;
	int r;

	s->hash = mix(s->hash, out);
	s->emitted[out]++;
	if (s->pool == NULL) {
		r = frag_tick_emit_i64(tick, port, (int64_t)value);
	} else {
		r = frag_tensor_create(s->pool, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1,
				       &shape, &tensor);
		if (r < 0)
			return r;
		memcpy(frag_tensor_writable(tensor), &value, sizeof(value));
		r = frag_tick_emit_tensor(tick, port, "", tensor);
	}
	if (r == -ENOBUFS && (s->free_out >> out & 1) != 0)
		return 0;
	return r < 0 ? frag_op_fail(frag_tick_op(tick), r, "it was ticked without room at out%u",
				    out)
		     : 0;
}

static int emit(struct node *s, struct frag_tick *tick)
{
	uint32_t only = s->outputs > 0 ? s->hash % (uint32_t)s->outputs : 0;
	int r = 0;

	memset(s->emitted, 0, sizeof(s->emitted));
	for (uint32_t out = 0; out < (uint32_t)s->outputs && r == 0; out++)
		for (int64_t i = 0; i < s->emit && r == 0 && (!s->routes || out == only); i++)
			r = emit_one(s, tick, out);
	return r;
}

static void work_for(int64_t ns)
{
	struct timespec t;
	int64_t now, end = 0;

	do {
		clock_gettime(CLOCK_MONOTONIC, &t);
		now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
		end = end == 0 ? now + ns : end;
	} while (now < end);
}

static int tick_once(struct node *s, struct frag_tick *tick)
{
	int r = 0;

	if (!s->pending) {
		if (s->ended)
			return frag_op_fail(frag_tick_op(tick), -EPERM,
					    "it was ticked after it had ended");
		s->ticks++;
		r = receive(s, tick);
		if (r == 0 && s->pend_every > 0 && s->ticks % s->pend_every == 0)
			s->pends = 1 + s->hash % 3;
	}
	s->pending = s->pends > 0;
	if (s->pending) {
		resume_soon(frag_tick_op(tick));
		if (s->pends-- % 2 == 0)
			work_for(3000); /* so that the resume comes before this call returns */
		return FRAG_PENDING;
	}
	if (s->work_ns > 0 && s->ticks % s->work_every == 0)
		work_for(s->work_ns);
	if (r == 0)
		r = emit(s, tick);
	if (s->ticks == s->disable_at)
		frag_condition_disable_tick(s->boolean);
	if (s->ticks == s->enable_at)
		switch_on(s->enables);
	s->ended = s->ticks == s->count;
	return r < 0 ? r : s->ended ? FRAG_DONE : 0;
}

static int node_compute(void *state, struct frag_tick *tick)
{
	struct node *s = state;
	int r;

	if (atomic_exchange(&s->busy, 1) != 0)
		return frag_op_fail(frag_tick_op(tick), -EBUSY, "two threads ticked it at a time");
	if (oracle_tick_begins != NULL)
		oracle_tick_begins(frag_tick_op(tick));
	if (atomic_load(&s->running) == 0)
		r = frag_op_fail(frag_tick_op(tick), -EPERM, "it was ticked after stop");
	else
		r = tick_once(s, tick);
	atomic_store(&s->busy, 0);
	return r;
}

const struct frag_op_type oracle_node_type = {
	FRAG_OP_TYPE_INIT,
	.name = "oracle_node",
	.headline = "Checks how it is ticked",
	.state_size = sizeof(struct node),
	FRAG_PARAMS(node_params),
	.setup = node_setup,
	.start = node_start,
	.compute = node_compute,
	.stop = node_stop,
	.fini = node_fini,
};

static const struct frag_op_type *const node_ops[] = {&oracle_node_type};
FRAG_PLUGIN(.name = "oracle", .version = "1", FRAG_OPS(node_ops));
