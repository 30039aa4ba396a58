// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/arena.h>
#include <base/log.h>
#include <frag/operator.h>
#include <frag/v1/control.pb-c.h>
#include <wire/message.h>

/* Messages with everything in them, from a seed; they live in the arena. */
struct maker {
	struct fragi_arena arena;
	uint64_t state;
};

static uint64_t random_u64(struct maker *m)
{
	m->state ^= m->state << 13;
	m->state ^= m->state >> 7;
	m->state ^= m->state << 17;
	return m->state;
}

static uint32_t below(struct maker *m, uint32_t n)
{
	return (uint32_t)(random_u64(m) % n);
}

static const char *word(struct maker *m)
{
	return fragi_arena_printf(&m->arena, "w%llx", (unsigned long long)random_u64(m));
}

static const char **words(struct maker *m, uint32_t count)
{
	const char **table = fragi_arena_alloc(&m->arena, count * sizeof(*table));

	for (uint32_t i = 0; i < count; i++)
		table[i] = word(m);
	return table;
}

static void *block(struct maker *m, uint32_t size)
{
	uint8_t *bytes = fragi_arena_alloc(&m->arena, size);

	for (uint32_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)random_u64(m);
	return bytes;
}

static struct fw_failure make_failure(struct maker *m)
{
	return (struct fw_failure){(enum fragi_failure)(1 + below(m, FRAGI_FAILURES - 1)),
				   word(m),
				   word(m),
				   word(m),
				   below(m, 99),
				   below(m, 99)};
}

static struct fw_address *make_addresses(struct maker *m, uint32_t count)
{
	struct fw_address *addresses = fragi_arena_alloc(&m->arena, count * sizeof(*addresses));

	for (uint32_t i = 0; i < count; i++)
		addresses[i] = (struct fw_address){word(m), block(m, 50 + i), 50 + i, word(m)};
	return addresses;
}

static const char *const *make_names(struct maker *m, uint32_t count)
{
	const char **names = fragi_arena_alloc(&m->arena, count * sizeof(*names));

	for (uint32_t i = 0; i < count; i++)
		names[i] = word(m);
	return names;
}

static void make_prepared(struct maker *m, struct fw_host_prepared *p)
{
	p->ok = true;
	p->error_count = below(m, 4);
	p->errors = fragi_arena_alloc(&m->arena, 4 * sizeof(*p->errors));
	for (uint32_t i = 0; i < p->error_count; i++)
		p->errors[i] = make_failure(m);
	p->errors_beyond = below(m, 9);
	p->fragment_count = 2;
	p->fragments = fragi_arena_alloc(&m->arena, 2 * sizeof(*p->fragments));
	for (int f = 0; f < 2; f++) {
		struct fw_fragment *fragment = &p->fragments[f];

		fragment->name = word(m);
		fragment->has_gaps = f == 1;
		fragment->op_count = 3;
		fragment->ops = fragi_arena_alloc(&m->arena, 3 * sizeof(*fragment->ops));
		for (int o = 0; o < 3; o++) {
			struct fw_op *op = &fragment->ops[o];

			op->name = word(m);
			op->type = word(m);
			op->has_gaps = o == 1;
			op->pools = o == 1 ? word(m) : NULL;
			op->dynamic = words(m, 2);
			op->dynamic_count = 2;
			op->port_count = 3;
			op->ports = fragi_arena_alloc(&m->arena, 3 * sizeof(*op->ports));
			op->ports[0] = (struct fw_port){word(m),       word(m),      FRAG_IN,
							below(m, 8),   below(m, 99), below(m, 6),
							random_u64(m), true,         word(m)};
			op->ports[1] = (struct fw_port){word(m), word(m), FRAG_OUT,      1,
							0,       0,       random_u64(m), false};
			op->ports[2] = (struct fw_port){word(m), word(m), FRAG_IN};
		}
		fragment->interface_port_count = 2;
		fragment->interface_ports =
			fragi_arena_alloc(&m->arena, 2 * sizeof(*fragment->interface_ports));
		for (int i = 0; i < 2; i++)
			fragment->interface_ports[i] = (struct fw_interface_port){
				word(m), word(m), below(m, 3), below(m, 3)};
	}
	p->flow_count = 3;
	p->flows = fragi_arena_alloc(&m->arena, 3 * sizeof(*p->flows));
	for (int i = 0; i < 3; i++)
		p->flows[i] = (struct fw_inner_flow){below(m, 2),     below(m, 3),     1,
						     below(m, 2),     below(m, 3),     i & 2,
						     1 + below(m, 9), 1 + below(m, 5), true};
	p->address_count = 2;
	p->addresses = make_addresses(m, 2);
	p->pid = 4711;
	p->announced = make_names(m, 3);
	p->announced_count = 3;
	p->pools = words(m, 2);
	p->pool_count = 2;
}

static void make_wire(struct maker *m, struct fw_host_wire *w)
{
	w->announced = make_names(m, 2);
	w->announced_count = 2;
	w->peer_count = 2;
	w->peers = fragi_arena_alloc(&m->arena, 2 * sizeof(*w->peers));
	for (uint32_t i = 0; i < 2; i++)
		w->peers[i] =
			(struct fw_peer){i + 2, random_u64(m), make_addresses(m, 2), 2, word(m)};
	w->edge_count = 5;
	w->edges = fragi_arena_alloc(&m->arena, 5 * sizeof(*w->edges));
	for (uint32_t i = 0; i < 5; i++) {
		w->edges[i] = (struct fw_edge){.flow = i,
					       .sends = i & 1,
					       .fragment = below(m, 5),
					       .op = below(m, 5),
					       .port = below(m, 5),
					       .peer = 2,
					       .window_messages = 1 + below(m, 9),
					       .window_bytes = 1 + random_u64(m),
					       .message_bytes_max = 1 + random_u64(m),
					       .policy = 1 + below(m, 5),
					       .order = below(m, 99),
					       .other_end = word(m),
					       .transport = word(m),
					       .encrypt = i & 2};
		memcpy(w->edges[i].token, block(m, FW_TOKEN_BYTES), FW_TOKEN_BYTES);
	}
}

static struct fragi_quantiles make_quantiles(struct maker *m)
{
	return (struct fragi_quantiles){random_u64(m),      random_u64(m), random_u64(m),
					random_u64(m),      random_u64(m), random_u64(m),
					{0, random_u64(m)}, random_u64(m)};
}

static struct fragi_realtime make_realtime(struct maker *m)
{
	return (struct fragi_realtime){below(m, FRAGI_SCHED_OTHER + 1), (uint32_t)random_u64(m),
				       random_u64(m), random_u64(m), random_u64(m)};
}

static void make_stats(struct maker *m, struct fw_host_stats *s)
{
	s->final = true;
	s->op_count = 3;
	s->ops = fragi_arena_alloc(&m->arena, 3 * sizeof(*s->ops));
	for (int i = 0; i < 3; i++)
		s->ops[i] = (struct fw_op_stats){below(m, 4),
						 i & 1,
						 random_u64(m),
						 make_quantiles(m),
						 random_u64(m),
						 random_u64(m),
						 .counters = {random_u64(m), 7, random_u64(m)},
						 make_realtime(m)};
	s->facts = (struct fw_facts){
		random_u64(m), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, random_u64(m)};
	s->pool_count = 2;
	s->pools = block(m, 2 * sizeof(*s->pools));
	for (int i = 0; i < 2; i++)
		s->pools[i] = (struct fragi_pool_stats){random_u64(m), 4096, random_u64(m),
							random_u64(m), random_u64(m)};
	s->flow_count = 4;
	s->flows = fragi_arena_alloc(&m->arena, 4 * sizeof(*s->flows));
	for (int i = 0; i < 4; i++) {
		struct fragi_flow_stats *f = &s->flows[i];

		f->latency = make_quantiles(m);
		for (int c = 0; c < FRAGI_COUNTERS; c++)
			f->counters[c] = random_u64(m);
		for (int r = 0; r < FRAGI_DROP_REASONS; r++) {
			f->tx_dropped[r] = random_u64(m);
			f->rx_dropped[r] = random_u64(m);
		}
	}
}

static void make_passed(struct maker *m, struct fragi_passed *passed)
{
	*passed = (struct fragi_passed){random_u64(m), random_u64(m), 5, word(m), word(m), word(m)};
	passed->tensors = block(m, 2 * sizeof(*passed->tensors));
	passed->tensor_count = 2;
	for (int i = 0; i < 2; i++)
		passed->tensors[i] = (struct fragi_passed_tensor){word(m), word(m)};
	passed->tensors_left_out = 1;
	passed->picture_of = word(m);
	passed->width = 5;
	passed->height = 7;
	passed->channels = 3;
	passed->step = 2;
	passed->pixels = block(m, 105);
	passed->pixel_bytes = 105;
}

static void make_look(struct maker *m, struct fragi_look *look)
{
	struct fragi_look_operator *op = block(m, 2 * sizeof(*op));
	struct fragi_look_flow *flow = block(m, 2 * sizeof(*flow));
	struct fragi_look_host *host = block(m, 2 * sizeof(*host));
	struct fragi_look_worker *worker = block(m, sizeof(*worker));
	struct fragi_look_pool *pool = block(m, 2 * sizeof(*pool));

	for (uint32_t i = 0; i < 2; i++)
		pool[i] = (struct fragi_look_pool){word(m), 1 - i,         8, random_u64(m),
						   3,       random_u64(m), 5, random_u64(m)};
	for (int i = 0; i < 2; i++) {
		op[i] = (struct fragi_look_operator){word(m), word(m), (uint32_t)i, .input_flow = 1,
						     .room_flow = FRAGI_LOOK_NONE};
		op[i].pool = i == 0 ? word(m) : NULL;
		op[i].compute = make_quantiles(m);
		for (int use = 0; use < FRAGI_USES; use++)
			op[i].use_ns[use] = op[i].use_sums[use] = random_u64(m);
		op[i].ticks = random_u64(m);
		op[i].promised_mhz = random_u64(m);
		op[i].budget_ns = random_u64(m);
		op[i].period_ns = random_u64(m);
		op[i].has_ended = i == 0;
		op[i].missed_sum = random_u64(m);
		flow[i] = (struct fragi_look_flow){word(m), word(m), (uint32_t)i, 1, word(m),
						   word(m), 7};
		flow[i].sent = random_u64(m);
		flow[i].lost_sum = random_u64(m);
		flow[i].dropped[FRAGI_DROP_REASONS - 1] = random_u64(m);
		flow[i].dropped_sums[FRAGI_DROP_REASONS - 1] = flow[i].full_sum_ns = random_u64(m);
		flow[i].latency = make_quantiles(m);
		flow[i].is_timed = i == 1;
	}
	host[0] = host[1] = (struct fragi_look_host){
		word(m), word(m), 4711, random_u64(m), 2, 3, 4, 5, random_u64(m), 7, 8, 9, word(m)};
	*worker = (struct fragi_look_worker){word(m), 8, random_u64(m), 2, 3, 4, 5, 6,
					     7,       8, random_u64(m)};
	*look = (struct fragi_look){word(m), word(m), 1000000000, 5, op, flow,    host, worker, 2,
				    2,       2,       1,          3, 4,  word(m), pool, 2};
}

static void make_reply(struct maker *m, struct fw_reply *reply)
{
	struct fw_host_row *hosts = block(m, 3 * sizeof(*hosts));

	struct fw_parameter_row *parameters = block(m, 2 * sizeof(*parameters));

	for (uint32_t i = 0; i < 2; i++)
		parameters[i] = (struct fw_parameter_row){word(m), word(m), word(m), 3};
	for (uint32_t i = 0; i < 3; i++)
		hosts[i] =
			(struct fw_host_row){i + 1, word(m), word(m), word(m), (int32_t)i, word(m)};
	reply->applications = block(m, 2 * sizeof(*reply->applications));
	reply->workers = block(m, 4 * sizeof(*reply->workers));
	reply->application_count = 2;
	reply->worker_count = 4;
	reply->more = (uint32_t)random_u64(m);
	reply->notices[FW_NOTICE_REFUSED] = random_u64(m);
	reply->state_bytes = random_u64(m);
	reply->state_free_bytes = random_u64(m);
	reply->certificate_ends_unix_s = 1800000000;
	reply->state_failure = word(m);
	reply->started_unix_s = 1790000000;
	reply->applications[0] = (struct fw_application_row){
		random_u64(m), word(m), word(m),    7, hosts, 3, random_u64(m), 9,
		word(m),       word(m), parameters, 2, true};
	reply->applications[1] = (struct fw_application_row){
		random_u64(m), word(m), word(m), 0, NULL, 0, random_u64(m), 9, word(m), word(m)};
	for (uint32_t i = 0; i < 4; i++)
		reply->workers[i] = (struct fw_worker_row){
			word(m), word(m), word(m), i,       (uint32_t)random_u64(m),
			word(m), i == 2,  i,       word(m), word(m)};
	reply->ended_count = 2;
	reply->ended = block(m, 2 * sizeof(*reply->ended));
	for (uint32_t i = 0; i < 2; i++)
		reply->ended[i] = (struct fw_ended_row){
			random_u64(m), word(m), FRAGI_SUMMARY_FAILED, make_failure(m), 137, 5, 6,
			word(m),       i == 1};
}

static void make_summary(struct maker *m, struct fragi_summary *summary)
{
	struct fragi_summary_operator *op = block(m, sizeof(*op));
	struct fragi_summary_fragment *fragment = block(m, sizeof(*fragment));
	struct fragi_summary_flow *flow = block(m, sizeof(*flow));

	*op = (struct fragi_summary_operator){word(m),
					      word(m),
					      random_u64(m),
					      make_quantiles(m),
					      random_u64(m),
					      random_u64(m),
					      .counters = {3, random_u64(m), random_u64(m)},
					      .realtime = make_realtime(m),
					      .predicted_rate_mhz = random_u64(m),
					      .budget_ns = random_u64(m)};
	*fragment = (struct fragi_summary_fragment){word(m),       word(m),         4711, word(m),
						    random_u64(m), 1 + below(m, 9), op,   1};
	flow->from = word(m);
	flow->to = word(m);
	flow->edge = word(m);
	flow->edge_detail = word(m);
	flow->encrypted = true;
	flow->policy = word(m);
	flow->exact = true;
	flow->latency = make_quantiles(m);
	flow->latency_reason = word(m);
	flow->lost_because = word(m);
	*summary = (struct fragi_summary){
		.application = word(m),
		.result = FRAGI_SUMMARY_FAILED,
		.failure = {FRAGI_FAILURE_HOST_CRASHED, word(m), word(m), word(m)},
		.exit_code = 1,
		.started_unix_ns = 5,
		.first_message_ns = 6,
		.duration_ns = 7,
		.shutdown_ns = 8,
		.fragments = fragment,
		.fragment_count = 1,
		.flows = flow,
		.flow_count = 1,
	};
}

static void make_events(struct maker *m, struct fw_events *events)
{
	events->count = 3;
	events->rows = block(m, 3 * sizeof(*events->rows));
	for (uint32_t i = 0; i < 3; i++)
		events->rows[i] = (struct fw_notice){random_u64(m),
						     1 + (int64_t)below(m, 99),
						     FW_NOTICE_START + i,
						     word(m),
						     random_u64(m),
						     word(m),
						     word(m)};
}

static struct fw_line *make_lines(struct maker *m, uint32_t count)
{
	struct fw_line *lines = block(m, count * sizeof(*lines));

	for (uint32_t i = 0; i < count; i++)
		lines[i] = (struct fw_line){random_u64(m), 5,       i % FRAGI_LOG_OFF,
					    word(m),       word(m), i % 2 != 0 ? word(m) : "",
					    word(m)};
	return lines;
}

static void make_explanation(struct maker *m, struct fw_explanation *all)
{
	struct fw_other_row *others = block(m, 2 * sizeof(*others));

	for (int i = 0; i < 2; i++)
		others[i] = (struct fw_other_row){word(m), word(m), i == 1};
	*all = (struct fw_explanation){.name = word(m), .state = word(m), .more = 3};
	all->placement_count = 2;
	all->placements = block(m, 2 * sizeof(*all->placements));
	all->placements[0] = (struct fw_placement_row){word(m), word(m), word(m), word(m),
						       word(m), others,  2,       7};
	all->placements[1] = (struct fw_placement_row){word(m), "", "", word(m), "", NULL, 0, 0};
	all->route_count = 1;
	all->routes = block(m, sizeof(*all->routes));
	all->routes[0] = (struct fw_route_row){word(m), word(m), word(m), true, word(m)};
}

static void make_create(struct maker *m, struct fw_host_create *create)
{
	*create = (struct fw_host_create){.application = word(m),
					  .source = block(m, 9999),
					  .source_bytes = 9999,
					  .fragments = words(m, 3),
					  .fragment_count = 3,
					  .beat_ns = 1,
					  .dead_ns = 2,
					  .transports = words(m, 2),
					  .transport_count = 2,
					  .cpu_limit = 2500,
					  .memory_limit_bytes = 512,
					  .may_restart = true,
					  .is_beside = true,
					  .is_moved = true,
					  .restarts = 3,
					  .memory = word(m),
					  .has_last_source = true,
					  .lease_ns = 10000000000,
					  .lease_until_ns = 11000000000};
	memcpy(create->data_key, block(m, FW_DATA_KEY_BYTES), FW_DATA_KEY_BYTES);
	memcpy(create->variables_key, block(m, FW_VARIABLES_KEY_BYTES), FW_VARIABLES_KEY_BYTES);
}

static void make(struct maker *m, enum fw_kind kind, struct fw_message *message)
{
	*message = (struct fw_message){.kind = kind,
				       .seq = random_u64(m),
				       .reply_to = random_u64(m),
				       .run = random_u64(m),
				       .host = (uint32_t)random_u64(m),
				       .epoch = random_u64(m)};
	switch (kind) {
	case FW_HELLO:
		message->hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
						   .minor = 7,
						   .role = FW_ROLE_WORKER,
						   .name = word(m),
						   .session = random_u64(m),
						   .fragments = words(m, 5),
						   .fragment_count = 5,
						   .worker_address = "10.0.0.1",
						   .node = word(m),
						   .clock = word(m),
						   .memory = word(m),
						   .no_memory = word(m),
						   .waits_for = word(m),
						   .version = "0.1.0",
						   .cores = 8,
						   .memory_bytes = random_u64(m),
						   .shared_memory_bytes = random_u64(m),
						   .gpus = 2,
						   .gpu_memory_bytes = random_u64(m),
						   .labels = words(m, 3),
						   .label_count = 3,
						   .no_limits = word(m),
						   .limited = word(m),
						   .local_address = word(m),
						   .reports = 3,
						   .last_epoch = random_u64(m),
						   .last_name = word(m)};
		memcpy(message->hello.secret, block(m, FW_SECRET_BYTES), FW_SECRET_BYTES);
		return;
	case FW_WELCOME:
		message->welcome = (struct fw_welcome){
			random_u64(m), word(m), 250000000, 3000000000, word(m), {0}, true, true};
		memcpy(message->welcome.secret, block(m, FW_SECRET_BYTES), FW_SECRET_BYTES);
		return;
	case FW_REFUSED:
		message->refused = (struct fw_refused){make_failure(m)};
		return;
	case FW_HOST_CREATE:
		make_create(m, &message->create);
		return;
	case FW_HOST_REPORT:
		message->report = (struct fw_host_report){.started = true,
							  .has_run = true,
							  .stop = FW_STOP_KILLED,
							  .failure = FRAGI_FAILURE_HOST_FAILED,
							  .reason = word(m),
							  .restarts = 3,
							  .is_inexact = true,
							  .age_ns = 5000000000,
							  .is_closing = true,
							  .yields = true,
							  .is_beside = true,
							  .is_wired = true};
		make_create(m, &message->report.create);
		return;
	case FW_REPORTED:
		return;
	case FW_HOST_ADOPTED:
		message->adopted.is_inexact = true;
		return;
	case FW_HOST_PREPARED:
		make_prepared(m, &message->prepared);
		return;
	case FW_HOST_WIRE:
		make_wire(m, &message->wire);
		return;
	case FW_HOST_WIRED:
	case FW_HOST_STARTED:
		message->result = (struct fw_host_result){make_failure(m)};
		return;
	case FW_APP_ENDED:
		message->app_ended.exit_code = 4;
		return;
	case FW_LEAVE:
		message->leave.reason = "it was told to end";
		return;
	case FW_HOST_STOP:
	case FW_HOST_KILL:
		message->stop = (struct fw_host_stop){5000000000, 4, "another host crashed", true,
						      FRAGI_FAILURE_HOST_EXITED};
		return;
	case FW_HOST_EVENT:
		message->event = (struct fw_host_event){FW_STATE_IDLE, 3,
							random_u64(m), make_failure(m),
							random_u64(m), random_u64(m),
							random_u64(m)};
		return;
	case FW_HOST_STATS:
	case FW_HOST_PAST:
		make_stats(m, &message->stats);
		return;
	case FW_HOST_EXIT:
		message->exit =
			(struct fw_host_exit){139, 11, make_failure(m), words(m, 7), 7, true};
		return;
	case FW_REQUEST:
		message->request.what = FW_REQUEST_STATE;
		message->request.worker = word(m);
		return;
	case FW_REPLY:
		make_reply(m, &message->reply);
		return;
	case FW_BEAT:
		message->beat =
			(struct fw_beat){word(m), 5000000000, 4000000000, true,         7000000000,
					 3,       true,       2,          random_u64(m)};
		return;
	case FW_START_APP:
		message->start_app = (struct fw_start_app){word(m), block(m, 999), 999, 5};
		return;
	case FW_STOP_APP:
		message->stop_app = (struct fw_stop_app){word(m), true, true, true};
		return;
	case FW_ANSWER:
		message->answer = (struct fw_answer){make_failure(m), word(m), word(m)};
		return;
	case FW_AWAIT:
		message->await.until = FW_ENDED;
		return;
	case FW_OUTCOME:
		message->outcome =
			(struct fw_outcome){.name = word(m), .reached = FW_ENDED, .left_out = 3};
		make_summary(m, &message->outcome.summary);
		return;
	case FW_WATCH:
		message->watch = (struct fw_watch){random_u64(m), true};
		return;
	case FW_EVENTS:
		make_events(m, &message->events);
		return;
	case FW_SET:
		message->set = (struct fw_set){word(m), word(m)};
		return;
	case FW_HOST_SUSPEND:
		message->suspend = (struct fw_host_suspend){(uint32_t)random_u64(m), random_u64(m)};
		return;
	case FW_LOOK:
		message->look = (struct fw_look){word(m), 250000000, true, true, 7, true};
		return;
	case FW_LOOKED:
		message->looked =
			(struct fw_looked){.is_last = true,
					   .is_same = true,
					   .cause = 3,
					   .op = 1,
					   .flow = FRAGI_LOOK_NONE,
					   .host = 1,
					   .help = word(m),
					   .chain = block(m, sizeof(struct fragi_look_step)),
					   .chain_count = 1};
		message->looked.chain[0] = (struct fragi_look_step){FRAGI_LOOK_NONE, 1, word(m)};
		make_look(m, &message->looked.look);
		return;
	case FW_TAP:
		message->tap =
			(struct fw_tap){word(m), word(m), 100000000, true, random_u64(m), true};
		return;
	case FW_EXAMINE:
		message->examine = (struct fw_examine){word(m)};
		return;
	case FW_EXAMINED:
		message->examined = (struct fw_examined){
			word(m), block(m, 2 * sizeof(*message->examined.findings)), 2};
		for (uint32_t i = 0; i < 2; i++)
			message->examined.findings[i] =
				(struct fw_finding){word(m), i == 1, word(m), word(m), word(m)};
		return;
	case FW_TAPPED:
	case FW_HOST_TAPPED:
		message->tapped = (struct fw_tapped){7, block(m, 999), 999};
		return;
	case FW_HOST_TAP:
		message->host_tap =
			(struct fw_host_tap){7, 1, 2, 3, 100000000, 4000000000, true, true};
		return;
	case FW_PASSED:
		make_passed(m, &message->passed);
		return;
	case FW_HOST_LOOK:
		message->host_look.for_ns = 4000000000;
		return;
	case FW_HOST_SAVED:
		message->saved = (struct fw_host_saved){random_u64(m) % 4096, "saved bytes", 11};
		return;
	case FW_HOST_SET:
		message->host_set = (struct fw_host_set){random_u64(m), word(m), word(m)};
		return;
	case FW_HOST_SET_DONE:
		message->host_set_done = (struct fw_host_set_done){random_u64(m), make_failure(m)};
		return;
	case FW_WATCH_LOGS:
		message->watch_logs =
			(struct fw_watch_logs){word(m), word(m), word(m), random_u64(m), true};
		return;
	case FW_LOGS:
		message->logs = (struct fw_logs){make_lines(m, 7), 7, random_u64(m)};
		return;
	case FW_HOST_LINES:
		message->host_lines = (struct fw_host_lines){make_lines(m, 3), 3, random_u64(m)};
		return;
	case FW_DRAIN:
		message->drain = (struct fw_drain){word(m), true, true};
		return;
	case FW_SWAP:
		message->swap = (struct fw_swap){"app", "f", "libx.so", word(m), 5};
		return;
	case FW_EXPLAIN:
		message->explain = (struct fw_explain){"app", word(m)};
		return;
	case FW_EXPLANATION:
		make_explanation(m, &message->explanation);
		return;
	case FW_APPLY:
		message->apply = (struct fw_apply){word(m), block(m, 99), 99, true};
		return;
	case FW_CHANGES:
		message->changes = (struct fw_changes){.rows = block(m, sizeof(struct fw_change)),
						       .count = 1,
						       .more = 3,
						       .effect = FW_EFFECT_FRAGMENT,
						       .restarts = word(m),
						       .remark = word(m)};
		message->changes.rows[0] = (struct fw_change){FW_EFFECT_SET, word(m), word(m)};
		return;
	case FW_HOST_START:
		return;
	}
}

static struct fw_message *decode(const uint8_t *frame, size_t size)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message = NULL;

	cr_assert_eq((size_t)frame[0] | (size_t)frame[1] << 8 | (size_t)frame[2] << 16, size - 4);
	cr_assert_eq(fw_decode(frame + 4, size - 4, &message, &err), 0, "%s", err.text);
	return message;
}

/* The first kind from this number on; 0: there is none. */
static int known_kind(int kind)
{
	for (; kind < 200; kind++)
		if (fw_kind_name((enum fw_kind)kind)[0] != '?')
			return kind;
	return 0;
}

Test(wire_codec, every_kind_comes_back_as_it_was)
{
	for (int kind = FW_HELLO; (kind = known_kind(kind)) != 0; kind++) {
		for (uint64_t seed = 1; seed < 20; seed++) {
			struct maker m = {.state = seed * 7919};
			struct fw_message in, *out;
			uint8_t *frame, *again;
			size_t size, again_size;

			make(&m, (enum fw_kind)kind, &in);
			cr_assert_eq(fw_encode(&in, &frame, &size), 0);
			out = decode(frame, size);
			cr_assert_eq(out->kind, in.kind);
			cr_assert_eq(out->seq, in.seq);
			cr_assert_eq(out->reply_to, in.reply_to);
			cr_assert_eq(out->run, in.run);
			cr_assert_eq(out->host, in.host);
			cr_assert_eq(out->epoch, in.epoch);
			cr_assert_eq(fw_encode(out, &again, &again_size), 0);
			cr_assert_eq(again_size, size, "%s", fw_kind_name((enum fw_kind)kind));
			cr_assert_eq(memcmp(again, frame, size), 0, "%s",
				     fw_kind_name((enum fw_kind)kind));
			fw_message_free(out);
			fragi_free(frame);
			fragi_free(again);
			fragi_arena_fini(&m.arena);
		}
	}
}

/* The fields of protobuf messages that were seen with another value than the default. */
struct seen {
	struct seen_kind {
		const ProtobufCMessageDescriptor *kind;
		bool fields[64];
	} kinds[96];
	size_t count;
};

static struct seen_kind *seen_kind(struct seen *seen, const ProtobufCMessageDescriptor *kind)
{
	for (size_t i = 0; i < seen->count; i++)
		if (seen->kinds[i].kind == kind)
			return &seen->kinds[i];
	cr_assert_lt(seen->count, FRAG_COUNT_OF(seen->kinds));
	cr_assert_leq(kind->n_fields, FRAG_COUNT_OF(seen->kinds[0].fields));
	seen->kinds[seen->count].kind = kind;
	return &seen->kinds[seen->count++];
}

static void look_at(struct seen *seen, const ProtobufCMessage *message);

static bool look_at_field(struct seen *seen, const ProtobufCMessage *message,
			  const ProtobufCFieldDescriptor *field)
{
	const uint8_t *base = (const uint8_t *)message, *value = base + field->offset;
	const bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
	const size_t count = repeated ? *(const size_t *)(base + field->quantifier_offset) : 0;

	if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
	    *(const uint32_t *)(base + field->quantifier_offset) != field->id)
		return false;
	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		for (size_t i = 0; i < count; i++)
			look_at(seen, (*(ProtobufCMessage *const *const *)value)[i]);
		if (!repeated && *(ProtobufCMessage *const *)value != NULL)
			look_at(seen, *(ProtobufCMessage *const *)value);
		return repeated ? count > 0 : *(ProtobufCMessage *const *)value != NULL;
	case PROTOBUF_C_TYPE_STRING:
		return repeated ? count > 0 : **(const char *const *)value != '\0';
	case PROTOBUF_C_TYPE_BYTES:
		return repeated ? count > 0 : ((const ProtobufCBinaryData *)value)->len > 0;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		return repeated ? count > 0 : *(const uint64_t *)value != 0;
	default:
		return repeated ? count > 0 : *(const uint32_t *)value != 0;
	}
}

static void look_at(struct seen *seen, const ProtobufCMessage *message)
{
	struct seen_kind *kind = seen_kind(seen, message->descriptor);

	for (unsigned int i = 0; i < message->descriptor->n_fields; i++)
		if (look_at_field(seen, message, &message->descriptor->fields[i]))
			kind->fields[i] = true;
}

/* Encodes and decodes; returns what the decoder says. */
static int cross(const struct fw_message *in)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *out = NULL;
	uint8_t *frame;
	size_t size;
	int r;

	cr_assert_eq(fw_encode(in, &frame, &size), 0);
	r = fw_decode(frame + 4, size - 4, &out, &err);
	cr_expect(r == 0 || strstr(err.text, "row that it does not hold") != NULL, "%s", err.text);
	fw_message_free(out);
	fragi_free(frame);
	return r;
}

Test(wire_codec, a_look_names_no_row_that_it_does_not_hold)
{
	struct maker m = {.state = 7};
	struct fw_message in;
	struct fragi_look *look = &in.looked.look;
	struct fragi_look_operator *op;
	struct fragi_look_flow *flow;
	uint32_t *indices[10];

	make(&m, FW_LOOKED, &in);
	op = (struct fragi_look_operator *)look->operators;
	flow = (struct fragi_look_flow *)look->flows;
	indices[0] = &op[1].host;
	indices[1] = &op[1].input_flow;
	indices[2] = &op[1].room_flow;
	indices[3] = &flow[1].sender;
	indices[4] = &flow[1].receiver;
	indices[5] = &in.looked.op;
	indices[6] = &in.looked.flow;
	indices[7] = &in.looked.host;
	indices[8] = &in.looked.chain[0].op;
	indices[9] = &((struct fragi_look_pool *)look->pools)[1].host;
	for (int i = 0; i < 10; i++) {
		uint32_t before = *indices[i];

		*indices[i] = 1;
		cr_expect_eq(cross(&in), 0, "index %d", i);
		*indices[i] = 2;
		cr_expect_eq(cross(&in), -EBADMSG, "index %d", i);
		*indices[i] = before;
	}
	fragi_arena_fini(&m.arena);
}

/* What the encoder forgot would come back as it was: as nothing. */
Test(wire_codec, every_field_of_the_protocol_is_sent)
{
	static struct seen seen;

	for (int kind = FW_HELLO; (kind = known_kind(kind)) != 0; kind++)
		for (uint64_t seed = 1; seed < 20; seed++) {
			struct maker m = {.state = seed * 7919};
			Frag__V1__Envelope *envelope;
			struct fw_message in;
			uint8_t *frame;
			size_t size;

			make(&m, (enum fw_kind)kind, &in);
			cr_assert_eq(fw_encode(&in, &frame, &size), 0);
			envelope = frag__v1__envelope__unpack(NULL, size - 4, frame + 4);
			cr_assert_not_null(envelope);
			look_at(&seen, &envelope->base);
			frag__v1__envelope__free_unpacked(envelope, NULL);
			fragi_free(frame);
			fragi_arena_fini(&m.arena);
		}
	for (size_t i = 0; i < seen.count; i++)
		for (unsigned int k = 0; k < seen.kinds[i].kind->n_fields; k++)
			cr_expect(seen.kinds[i].fields[k], "%s.%s is never sent",
				  seen.kinds[i].kind->name, seen.kinds[i].kind->fields[k].name);
}

Test(wire_codec, fields_arrive_where_they_belong)
{
	struct maker m = {.state = 99};
	struct fw_message in, *out;
	uint8_t *frame;
	size_t size;

	make(&m, FW_HOST_WIRE, &in);
	in.wire.edges[3].token[0] = 0x5A;
	in.wire.edges[3].order = 7;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_assert_eq(out->wire.edge_count, 5);
	cr_expect_eq(out->wire.edges[3].token[0], 0x5A);
	cr_expect_eq(out->wire.edges[3].window_bytes, in.wire.edges[3].window_bytes);
	cr_expect_eq(out->wire.edges[3].sends, true);
	cr_expect_eq(out->wire.edges[3].order, 7);
	cr_expect_eq(out->wire.edges[3].encrypt, true);
	cr_expect_eq(out->wire.edges[4].encrypt, false);
	cr_expect_str_eq(out->wire.peers[1].name, in.wire.peers[1].name);
	cr_assert_eq(out->wire.announced_count, 2);
	cr_expect_str_eq(out->wire.announced[1], in.wire.announced[1]);
	cr_assert_eq(out->wire.peers[1].address_count, 2);
	cr_expect_str_eq(out->wire.peers[1].addresses[1].transport,
			 in.wire.peers[1].addresses[1].transport);
	cr_assert_eq(out->wire.peers[1].addresses[1].size, 51);
	cr_expect_str_eq(out->wire.peers[1].addresses[1].detail,
			 in.wire.peers[1].addresses[1].detail);
	cr_expect_eq(memcmp(out->wire.peers[1].addresses[1].bytes,
			    in.wire.peers[1].addresses[1].bytes, 51),
		     0);
	cr_expect_str_eq(out->wire.edges[2].transport, in.wire.edges[2].transport);
	fw_message_free(out);
	fragi_free(frame);

	make(&m, FW_HOST_STATS, &in);
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_arr_eq(&out->stats.flows[2], &in.stats.flows[2], sizeof(struct fragi_flow_stats),
			 "every counter, reason and quantile");
	cr_expect_arr_eq(&out->stats.facts, &in.stats.facts, sizeof(struct fw_facts));
	cr_expect_eq(out->stats.ops[1].running, true);
	cr_expect_eq(out->stats.ops[1].time_ns, in.stats.ops[1].time_ns);
	cr_expect_eq(out->stats.ops[1].waiting_ns, in.stats.ops[1].waiting_ns);
	cr_expect_arr_eq(&out->stats.ops[1].compute, &in.stats.ops[1].compute,
			 sizeof(struct fragi_quantiles));
	cr_expect_arr_eq(&out->stats.ops[1].realtime, &in.stats.ops[1].realtime,
			 sizeof(struct fragi_realtime));
	fw_message_free(out);
	fragi_free(frame);
	fragi_arena_fini(&m.arena);
}

Test(wire_codec, a_cut_frame_or_a_flipped_bit_is_refused_or_read_and_nothing_worse)
{
	for (int kind = FW_HELLO; (kind = known_kind(kind)) != 0; kind++) {
		struct maker m = {.state = 4242};
		struct fw_message in, *out;
		uint8_t *frame;
		size_t size;

		make(&m, (enum fw_kind)kind, &in);
		if (kind == FW_HOST_CREATE)
			in.create.source_bytes = 100;
		cr_assert_eq(fw_encode(&in, &frame, &size), 0);
		for (size_t cut = 0; cut < size - 4; cut++) {
			uint8_t *exact = malloc(cut + 1);
			struct frag_err err = FRAG_ERR_INIT;
			int r;

			memcpy(exact, frame + 4, cut);
			r = fw_decode(exact, cut, &out, &err);
			cr_assert(r == 0 || (r == -EBADMSG && err.text[0] != '\0'), "cut %zu: %d",
				  cut, r);
			if (r == 0)
				fw_message_free(out);
			free(exact);
		}
		for (size_t bit = 0; bit < (size - 4) * 8; bit++) {
			int r;

			frame[4 + bit / 8] ^= (uint8_t)(1u << (bit % 8));
			r = fw_decode(frame + 4, size - 4, &out, NULL);
			cr_assert(r == 0 || r == -EBADMSG);
			if (r == 0)
				fw_message_free(out);
			frame[4 + bit / 8] ^= (uint8_t)(1u << (bit % 8));
		}
		fragi_free(frame);
		fragi_arena_fini(&m.arena);
	}
}

Test(wire_codec, random_bytes_are_refused)
{
	struct maker m = {.state = 31337};
	uint8_t bytes[512];

	for (int i = 0; i < 100000; i++) {
		size_t size = below(&m, sizeof(bytes));
		struct fw_message *out;

		for (size_t j = 0; j < size; j++)
			bytes[j] = (uint8_t)random_u64(&m);
		if (fw_decode(bytes, size, &out, NULL) == 0)
			fw_message_free(out);
	}
	cr_expect_eq(fw_decode(bytes, 0, &(struct fw_message *){NULL}, NULL), -EBADMSG,
		     "an envelope without a body is no message");
}

Test(wire_codec, inner_flows_must_name_ports_of_the_same_message)
{
	struct maker m = {.state = 5};
	struct fw_message in, *out;
	uint8_t *frame;
	size_t size;

	for (int field = 0; field < 6; field++) {
		make(&m, FW_HOST_PREPARED, &in);
		(&in.prepared.flows[1].from_fragment)[field] = field % 3 == 2 ? 7 : 1000;
		cr_assert_eq(fw_encode(&in, &frame, &size), 0);
		cr_expect_eq(fw_decode(frame + 4, size - 4, &out, NULL), -EBADMSG, "field %d",
			     field);
		fragi_free(frame);
	}
	make(&m, FW_HOST_PREPARED, &in);
	in.prepared.flows[1].from_port = 0; /* an input */
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	cr_expect_eq(fw_decode(frame + 4, size - 4, &out, NULL), -EBADMSG);
	fragi_free(frame);
	fragi_arena_fini(&m.arena);
}

Test(wire_codec, texts_are_cut_and_cleaned)
{
	struct fw_message in = {.kind = FW_REFUSED, .refused = {{FRAGI_FAILURE_OTHER, "", ""}}},
			  *out;
	char longer[FW_TEXT_MAX + 10];
	uint8_t *frame;
	size_t size;

	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	memcpy(longer + FW_TEXT_MAX - 1, "\xC3\xA9", 2); /* a character across the bound */
	longer[2] = '\n';
	longer[3] = '\033';
	in.refused.failure.sentence = longer;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_eq(strlen(out->refused.failure.sentence), FW_TEXT_MAX - 1);
	cr_expect_eq(strncmp(out->refused.failure.sentence, "xx  x", 5), 0);
	fw_message_free(out);
	fragi_free(frame);

	in.refused.failure.sentence = NULL;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_str_eq(out->refused.failure.sentence, "");
	fw_message_free(out);
	fragi_free(frame);

	in.refused.failure.sentence = "n\xC3\xBC \xFF\xC2\x9B[31m"; /* no UTF-8, and a control */
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_str_eq(out->refused.failure.sentence, "n\xC3\xBC ???[31m");
	fw_message_free(out);
	fragi_free(frame);
}

Test(wire_codec, the_last_lines_of_a_host_are_kept)
{
	const char *lines[30];
	char texts[30][8];
	struct fw_message in = {.kind = FW_HOST_EXIT}, *out;
	uint8_t *frame;
	size_t size;

	for (int i = 0; i < 30; i++) {
		snprintf(texts[i], sizeof(texts[i]), "l%d", i);
		lines[i] = texts[i];
	}
	in.exit = (struct fw_host_exit){.lines = lines, .line_count = 30};
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_assert_eq(out->exit.line_count, FW_LINES_MAX);
	cr_expect_str_eq(out->exit.lines[0], "l10");
	cr_expect_str_eq(out->exit.lines[19], "l29");
	fw_message_free(out);
	fragi_free(frame);
}

Test(wire_codec, every_failure_of_memory_is_told)
{
	struct maker m = {.state = 8};

	for (int kind = FW_HELLO; (kind = known_kind(kind)) != 0; kind++) {
		struct fw_message in, *out;
		uint8_t *frame, *good;
		size_t size, good_size;
		int r;

		make(&m, (enum fw_kind)kind, &in);
		cr_assert_eq(fw_encode(&in, &good, &good_size), 0);
		for (int64_t skip = 0, failed = 1; failed > 0; skip++) {
			fragi_alloc_fail_after(skip, 1);
			r = fw_encode(&in, &frame, &size);
			failed = fragi_alloc_fail_off();
			cr_assert_eq(r, failed > 0 ? -ENOMEM : 0, "%s, allocation %lld",
				     fw_kind_name(in.kind), (long long)skip);
		}
		fragi_free(frame);
		for (int64_t skip = 0, failed = 1; failed > 0; skip++) {
			fragi_alloc_fail_after(skip, 1);
			r = fw_decode(good + 4, good_size - 4, &out, NULL);
			failed = fragi_alloc_fail_off();
			cr_assert_eq(r, failed > 0 ? -ENOMEM : 0, "%s, allocation %lld",
				     fw_kind_name(in.kind), (long long)skip);
		}
		fw_message_free(out);
		fragi_free(good);
	}
	fragi_arena_fini(&m.arena);
}

/* Whoever prints them need not ask. */
Test(wire_codec, no_text_of_a_failure_is_missing)
{
	const struct fw_failure failure = {.code = FRAGI_FAILURE_VERSION_REFUSED};
	struct fw_message messages[] = {
		{.kind = FW_REFUSED, .refused = {failure}},
		{.kind = FW_HOST_WIRED, .result = {failure}},
		{.kind = FW_HOST_STARTED},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(messages); i++) {
		const struct fw_failure *out;
		struct fw_message *message;
		uint8_t *frame;
		size_t size;

		cr_assert_eq(fw_encode(&messages[i], &frame, &size), 0);
		message = decode(frame, size);
		out = i == 0 ? &message->refused.failure : &message->result.failure;
		cr_expect_str_eq(out->sentence, "");
		cr_expect_str_eq(out->op, "");
		cr_expect_str_eq(out->file, "");
		fw_message_free(message);
		fragi_free(frame);
	}
}

Test(wire_codec, no_more_errors_travel_than_are_taken)
{
	struct fw_failure errors[FW_ERRORS_MAX + 1];
	struct fw_message in = {.kind = FW_HOST_PREPARED,
				.prepared = {.errors = errors, .error_count = FW_ERRORS_MAX + 1}},
			  *out;
	uint8_t *frame;
	size_t size;

	for (size_t i = 0; i < FRAG_COUNT_OF(errors); i++)
		errors[i] = (struct fw_failure){FRAGI_FAILURE_OTHER,
						i == 0 ? "the first" : "another", NULL};
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_eq(out->prepared.error_count, FW_ERRORS_MAX);
	cr_expect_str_eq(out->prepared.errors[0].sentence, "the first");
	fw_message_free(out);
	fragi_free(frame);
}

Test(wire_codec, a_text_of_continuation_bytes_alone_is_cut_all_the_same)
{
	struct fw_message in = {.kind = FW_REFUSED, .refused = {{FRAGI_FAILURE_OTHER, "", ""}}},
			  *out;
	char text[FW_TEXT_MAX + 10];
	uint8_t *frame;
	size_t size;

	memset(text, 0x80, sizeof(text)); /* no UTF-8 */
	text[sizeof(text) - 1] = '\0';
	in.refused.failure.sentence = text;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_eq(strlen(out->refused.failure.sentence), FW_TEXT_MAX - 4);
	fw_message_free(out);
	for (int64_t skip = 0; skip < 2; skip++) { /* the body, then the copy that is cut */
		fragi_free(frame);
		frame = NULL;
		fragi_alloc_fail_after(skip + 1, 1);
		cr_expect_eq(fw_encode(&in, &frame, &size), -ENOMEM);
		fragi_alloc_fail_off();
	}
}

Test(wire_codec, kinds_have_names)
{
	cr_expect_str_eq(fw_kind_name(FW_HELLO), "HELLO");
	cr_expect_str_eq(fw_kind_name(FW_HOST_EXIT), "HOST_EXIT");
	cr_expect_str_eq(fw_kind_name((enum fw_kind)0), "?");
	cr_expect_str_eq(fw_kind_name((enum fw_kind)(FW_EVENTS + 1)), "?");
}

/* What people look at comes from any host: a picture has as many bytes as it says. */
Test(wire_codec, a_picture_has_its_size)
{
	static const struct {
		uint32_t width, height, channels, bytes;
		bool is_right;
	} cases[] = {
		{4, 3, 3, 36, true},         {4, 3, 4, 48, true},
		{4, 3, 1, 12, true},         {0, 0, 0, 0, true},
		{4, 3, 3, 35, false},        {4, 3, 3, 37, false},
		{4, 3, 2, 24, false},        {4, 3, 0, 0, true},
		{0, 3, 3, 1, false},         {65536, 65536, 1, 0, false},
		{98304, 1, 1, 0, false},     {98304, 1, 1, 98304, true},
		{98305, 1, 1, 98304, false}, {1u << 31, 2, 1, 0, false},
		{65536, 65536, 4, 0, false},
	};
	static uint8_t pixels[FRAGI_PASSED_PIXELS_MAX];
	struct fw_message message = {.kind = FW_PASSED}, *same;
	uint8_t *frame;
	size_t size;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		int r;

		message.passed = (struct fragi_passed){.value = "",
						       .metadata = "",
						       .width = cases[i].width,
						       .height = cases[i].height,
						       .channels = cases[i].channels,
						       .pixels = pixels,
						       .pixel_bytes = cases[i].bytes};
		cr_assert_eq(fw_encode(&message, &frame, &size), 0, "%zu", i);
		r = fw_decode(frame + 4, size - 4, &same, &err);
		cr_expect_eq(r, cases[i].is_right ? 0 : -EBADMSG, "%zu: %s", i, err.text);
		if (r == 0)
			fw_message_free(same);
		else
			cr_expect(strstr(err.text, "a picture of another size") != NULL, "%s",
				  err.text);
		fragi_free(frame);
	}
	message.passed =
		(struct fragi_passed){.pixels = pixels, .pixel_bytes = FRAGI_PASSED_PIXELS_MAX + 1};
	cr_expect_eq(fw_encode(&message, &frame, &size), -EMSGSIZE);
}
