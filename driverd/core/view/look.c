// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>
#include <driverd/core/view/look.h>

#include <errno.h>
#include <string.h>

#include <base/alloc.h>

/*
 * The hosts count, and report with each beat, whatever the windows of clients are. So the window of
 * a host is the time between the two reports that are nearest to the client's, and what was counted
 * in it is brought to the length of the client's window. A host that has not reported since the
 * last window shows that one again.
 *
 * The view adds up all processes of a host, so a restart, a move or a new epoch in a window takes
 * nothing away: what is missing to the whole window is the time in which no process ran.
 */
/* The numbers of a flow that are compared: by the sender, and by the receiver. */
enum { SENT, BYTES, FULL, ROOM, OF_SENDER };
enum { DELIVERED, INPUT, LOST, DROPPED, OF_RECEIVER = DROPPED + FRAGI_DROP_REASONS };
enum { TICKS, USE, OF_OPERATOR = USE + FRAGI_USES };
enum { CPU, STARVED, IO, FAULTS, MACHINE_CPU, RECEIVED, SENT_BYTES, OF_HOST };

struct host_past {
	uint64_t epoch;
	int64_t counted_ns;
	uint64_t numbers[OF_HOST];
	uint64_t now[OF_HOST];  /* in the window of this look */
	uint64_t span_ns;       /* between the two reports; 0: it is not known, or nothing is new */
	uint64_t facts_span_ns; /* the same of `numbers` */
	bool has_moved;         /* it has reported since */
	bool is_whole;          /* the same process counted all the time */
	/* what else its row shows */
	enum drv_host_state state;
	uint32_t restarts;
	bool is_replaced;
};

/* Numbers of a row, as they were at the last report, and how much more at the last one but one. */
struct drv_look_past {
	bool has_window;
	enum drv_app_state state;
	uint32_t host_count;
	size_t op_count, flow_count, pool_count;
	struct host_past *hosts;
	uint64_t (*ops)[OF_OPERATOR], (*op_grown)[OF_OPERATOR];
	uint64_t (*senders)[OF_SENDER], (*sender_grown)[OF_SENDER];
	uint64_t (*receivers)[OF_RECEIVER], (*receiver_grown)[OF_RECEIVER];
	uint64_t *pools, *pool_grown; /* how long they were empty */
	struct drv_promise *promises; /* [operator] */
};

/* A look that is being made. */
struct look {
	const struct drv_app *app;
	struct drv_look_past *past;
	uint64_t window_ns;
	struct fragi_arena *arena;
	struct fragi_look_operator *ops;
	struct fragi_look_flow *flows;
	struct fragi_look_host *hosts;
	struct fragi_look_worker *workers;
	struct fragi_look_pool *pools;
	uint32_t op_count, flow_count, worker_count, pool_count;
	uint32_t *first_op;           /* [fragment]: the index of its first operator */
	uint64_t *input_ns, *room_ns; /* [operator]: of the flow that it waited for longest */
};

void drv_look_past_free(struct drv_look_past *past)
{
	if (past == NULL)
		return;
	fragi_free(past->hosts);
	fragi_free(past->ops);
	fragi_free(past->op_grown);
	fragi_free(past->senders);
	fragi_free(past->sender_grown);
	fragi_free(past->receivers);
	fragi_free(past->receiver_grown);
	fragi_free(past->pools);
	fragi_free(past->pool_grown);
	fragi_free(past->promises);
	fragi_free(past);
}

static uint32_t pools_of(const struct drv_host *host)
{
	return host->tables != NULL ? host->tables->prepared.pool_count : 0;
}

static size_t count_pools(const struct drv_app *app)
{
	size_t count = 0;

	for (uint32_t i = 0; i < app->host_count; i++)
		count += pools_of(&app->hosts[i]);
	return count;
}

/* Makes room for the rows that the application has now; what was counted before is forgotten. */
static struct drv_look_past *begin(const struct drv_app *app, size_t op_count, size_t flow_count,
				   size_t pool_count)
{
	struct drv_look_past *past = fragi_calloc(1, sizeof(*past));

	if (past == NULL)
		return NULL;
	past->host_count = app->host_count;
	past->op_count = op_count;
	past->flow_count = flow_count;
	past->pool_count = pool_count;
	past->hosts = fragi_calloc(app->host_count, sizeof(*past->hosts));
	past->ops = fragi_calloc(op_count, sizeof(*past->ops));
	past->op_grown = fragi_calloc(op_count, sizeof(*past->ops));
	past->senders = fragi_calloc(flow_count, sizeof(*past->senders));
	past->sender_grown = fragi_calloc(flow_count, sizeof(*past->senders));
	past->receivers = fragi_calloc(flow_count, sizeof(*past->receivers));
	past->receiver_grown = fragi_calloc(flow_count, sizeof(*past->receivers));
	past->pools = fragi_calloc(pool_count, sizeof(*past->pools));
	past->pool_grown = fragi_calloc(pool_count, sizeof(*past->pools));
	past->promises = fragi_calloc(op_count, sizeof(*past->promises));
	if (past->hosts != NULL && past->ops != NULL && past->op_grown != NULL &&
	    past->senders != NULL && past->sender_grown != NULL && past->receivers != NULL &&
	    past->receiver_grown != NULL && past->pools != NULL && past->pool_grown != NULL &&
	    past->promises != NULL && drv_promises_find(app, past->promises, op_count) == 0)
		return past;
	drv_look_past_free(past);
	return NULL;
}

/* A report may be of a process that counts less than the one before it did: that is no growth. */
static void grow(uint64_t *before, uint64_t *grown, const uint64_t *now, int count)
{
	for (int i = 0; i < count; i++) {
		grown[i] = now[i] > before[i] ? now[i] - before[i] : 0;
		before[i] = now[i];
	}
}

static uint64_t times(uint64_t value, uint64_t by, uint64_t per)
{
	return (uint64_t)((unsigned __int128)value * by / per);
}

/* Brings what a host counted between two reports to the length of the window, rounded. */
static uint64_t in_window(const struct look *look, const struct host_past *host, uint64_t grown)
{
	if (grown == 0 || host->span_ns == 0 || !host->is_whole)
		return grown;
	/* 5 ticks in 1,001 ms are 5 in a second */
	return (times(2 * grown, look->window_ns, host->span_ns) + 1) / 2;
}

static const char *suspended_because(const struct drv_host *host, struct fragi_arena *arena)
{
	if (drv_host_is_restarting(host))
		return host->restarts.last != NULL
			       ? fragi_arena_printf(arena, "it is started again: %s",
						    host->restarts.last)
			       : "it is started again";
	if (drv_host_hands_over(host))
		return "another process takes over from it";
	if (host->now.state < DRV_HOST_RUNNING)
		return "it has not been started yet";
	return host->now.state > DRV_HOST_DONE ? "it was told to end" : NULL;
}

static uint32_t threads_of(const struct drv_host *host, uint32_t cores)
{
	uint32_t threads = 0;

	for (uint32_t i = 0; host->tables != NULL && i < host->fragment_count &&
			     i < host->tables->prepared.fragment_count;
	     i++)
		threads +=
			fragi_predict_threads(&host->app->spec->fragments[host->fragments[i]],
					      host->tables->prepared.fragments[i].op_count, cores);
	return threads;
}

static bool is_replaced(const struct drv_host *host)
{
	return drv_host_is_restarting(host) || drv_host_hands_over(host);
}

static void numbers_of(const struct fw_facts *facts, uint64_t *out)
{
	out[CPU] = facts->cpu_ns;
	out[STARVED] = facts->starved_ns;
	out[IO] = facts->io_ns;
	out[FAULTS] = facts->major_faults;
	out[MACHINE_CPU] = facts->machine_cpu_ns;
	out[RECEIVED] = facts->received_bytes;
	out[SENT_BYTES] = facts->sent_bytes;
}

/*
 * Workers read facts only while somebody looks: in the first window they are compared with the
 * first ones that came in it. Those of a process that began in a window are compared with none.
 */
static void grow_facts(struct host_past *past, const struct drv_host *host,
		       const struct fw_facts *facts, bool is_same)
{
	const struct fw_facts *first = &host->now.first_facts;
	uint64_t numbers[OF_HOST];

	numbers_of(facts, numbers);
	past->facts_span_ns = past->span_ns;
	if (!is_same) {
		numbers_of(facts, past->numbers);
	} else if (past->numbers[CPU] == 0) {
		numbers_of(first, past->numbers);
		past->facts_span_ns = facts->at_ns - first->at_ns;
	}
	grow(past->numbers, past->now, numbers, OF_HOST);
}

static uint64_t fact_in_window(const struct look *look, const struct host_past *host, int fact)
{
	return host->facts_span_ns == 0
		       ? host->now[fact]
		       : times(host->now[fact], look->window_ns, host->facts_span_ns);
}

static void look_at_host(struct look *look, uint32_t index)
{
	const struct drv_host *host = &look->app->hosts[index];
	struct host_past *past = &look->past->hosts[index];
	const struct fw_facts *facts =
		host->now.stats != NULL ? &host->now.stats->stats.facts : &(struct fw_facts){0};
	bool is_same = past->epoch == host->now.epoch;
	struct fw_host_row row;

	drv_view_host(host, &row);
	past->has_moved = !is_same || host->now.counted_ns != past->counted_ns;
	if (past->has_moved) {
		past->is_whole = is_same && past->counted_ns != 0;
		past->span_ns = past->is_whole && host->now.counted_ns > past->counted_ns
					? (uint64_t)(host->now.counted_ns - past->counted_ns)
					: 0;
		grow_facts(past, host, facts, is_same);
	}
	past->epoch = host->now.epoch;
	past->counted_ns = host->now.counted_ns;
	past->state = host->now.state;
	past->restarts = host->restarts.count;
	past->is_replaced = is_replaced(host);
	look->hosts[index] = (struct fragi_look_host){
		.name = host->name,
		.worker = look->app->core->config.is_local ? NULL : host->worker,
		.pid = row.pid,
		.epoch = host->now.epoch,
		.restarts = host->restarts.count,
		.threads = threads_of(host, (uint32_t)facts->cores),
		.cores = (uint32_t)facts->cores,
		.cpu_ns = fact_in_window(look, past, CPU),
		.starved_ns = fact_in_window(look, past, STARVED),
		.io_ns = fact_in_window(look, past, IO),
		.rss_bytes = facts->rss_bytes,
		.major_faults = past->now[FAULTS],
		.suspended_because = suspended_because(host, look->arena),
		.cpu_sum_ns = host->past.sums.facts.cpu_ns + facts->cpu_ns,
	};
}

/* Adds the pools that the host has reported. first: the first of them in the look's past */
static void look_at_pools(struct look *look, uint32_t index, size_t first)
{
	const struct drv_host *host = &look->app->hosts[index];
	const struct host_past *past = &look->past->hosts[index];
	const struct fw_host_stats *stats =
		host->now.stats != NULL ? &host->now.stats->stats : &(struct fw_host_stats){0};

	for (uint32_t i = 0; i < pools_of(host) && i < stats->pool_count; i++) {
		const struct fragi_pool_stats *pool = &stats->pools[i];
		const struct fragi_pool_stats *earlier = i < host->past.sums.pool_count
								 ? &host->past.sums.pools[i]
								 : &(struct fragi_pool_stats){0};
		uint64_t *grown = &look->past->pool_grown[first + i];

		if (past->has_moved)
			grow(&look->past->pools[first + i], grown, &pool->empty_ns, 1);
		look->pools[look->pool_count++] = (struct fragi_look_pool){
			.name = host->tables->prepared.pools[i],
			.host = index,
			.blocks = pool->blocks,
			.block_bytes = pool->block_bytes,
			.used = pool->blocks - pool->free,
			.empty_ns = in_window(look, past, *grown),
			.refused_sum = earlier->refused + pool->refused,
			.empty_sum_ns = earlier->empty_ns + pool->empty_ns,
		};
	}
}

/* Fills in the worker of a host, unless another host has done so. */
static void look_at_worker(struct look *look, uint32_t index)
{
	const struct drv_host *host = &look->app->hosts[index];
	const struct host_past *past = &look->past->hosts[index];
	const struct fw_facts *facts;

	if (host->now.stats == NULL || look->app->core->config.is_local)
		return;
	facts = &host->now.stats->stats.facts;
	for (uint32_t i = 0; i < look->worker_count; i++)
		if (strcmp(look->workers[i].name, host->worker) == 0)
			return;
	look->workers[look->worker_count++] = (struct fragi_look_worker){
		.name = host->worker,
		.cores = (uint32_t)facts->machine_cores,
		.cpu_ns = fact_in_window(look, past, MACHINE_CPU),
		.memory_bytes = facts->memory_bytes,
		.memory_used_bytes = facts->memory_used_bytes,
		.received_bytes = fact_in_window(look, past, RECEIVED),
		.sent_bytes = fact_in_window(look, past, SENT_BYTES),
		.gpus = facts->gpus,
		.gpu_busy_permille = facts->gpu_busy_permille,
		.gpu_memory_bytes = facts->gpu_memory_bytes,
		.gpu_memory_used_bytes = facts->gpu_memory_used_bytes,
	};
}

/*
 * Makes the times add up to the window. While one process ran all the time they do, but for when it
 * counted; where another began or ended, no process ran for the rest.
 */
static void fill_window(const struct look *look, const struct host_past *host,
			const uint64_t *grown, uint64_t *out)
{
	uint64_t sum = 0, whole = look->window_ns, left = whole;
	int most = 0;

	for (int i = 0; i < FRAGI_USES; i++) {
		sum += grown[i];
		most = grown[i] > grown[most] ? i : most;
	}
	if (sum < whole && (!host->is_whole || sum < host->span_ns / 8)) {
		memcpy(out, grown, FRAGI_USES * sizeof(*out));
		out[FRAGI_USE_SUSPENDED] += whole - sum;
		return;
	}
	for (int i = 0; i < FRAGI_USES; i++) {
		out[i] = times(grown[i], whole, sum);
		left -= out[i];
	}
	out[most] += left;
}

/* "fragment.operator"; NULL: there is no memory */
static const char *whole_name(struct fragi_arena *arena, const char *fragment, const char *op)
{
	size_t first = strlen(fragment), second = strlen(op);
	char *name = fragi_arena_alloc(arena, first + second + 2);

	if (name == NULL)
		return NULL;
	memcpy(name, fragment, first);
	name[first] = '.';
	memcpy(name + first + 1, op, second + 1);
	return name;
}

static int look_at_operator(struct look *look, const struct drv_view_operator *op, uint32_t host)
{
	struct drv_look_past *past = look->past;
	uint32_t index = look->op_count++;
	struct fragi_look_operator *row = &look->ops[index];
	uint64_t now[OF_OPERATOR] = {op->row.ticks};

	memcpy(&now[USE], &op->row.use_busy, FRAGI_USES * sizeof(*now));
	if (past->hosts[host].has_moved)
		grow(past->ops[index], past->op_grown[index], now, OF_OPERATOR);
	if (op->number == 0)
		look->first_op[op->fragment] = index;
	*row = (struct fragi_look_operator){
		.name = whole_name(look->arena, look->app->spec->fragments[op->fragment].name,
				   op->row.name),
		.type = op->row.type,
		.host = host,
		.input_flow = FRAGI_LOOK_NONE,
		.room_flow = FRAGI_LOOK_NONE,
		.ticks = in_window(look, &past->hosts[host], past->op_grown[index][TICKS]),
		.compute = op->row.compute,
		.promised_mhz = past->promises[index].rate_mhz,
		.budget_ns = past->promises[index].budget_ns,
		.period_ns = past->promises[index].period_ns,
		.has_ended = op->has_ended,
		.ticks_sum = op->row.ticks,
		.late_places = op->row.late_places,
		.late_place_count = op->row.late_place_count,
	};
#define SUM(name, unit, metric, help) row->name##_sum = op->row.name;
	FRAGI_OP_LIVE_LIST(SUM)
#undef SUM
	memcpy(row->use_sums, &now[USE], sizeof(row->use_sums));
	memcpy(row->late_sums, &op->row.late_queue, sizeof(row->late_sums));
	if (past->has_window && look->window_ns > 0)
		fill_window(look, &past->hosts[host], &past->op_grown[index][USE], row->use_ns);
	if (row->use_ns[FRAGI_USE_MEMORY] > 0)
		row->pool =
			drv_look_emptiest(look->pools, look->pool_count, host,
					  look->app->spec->fragments[op->fragment].name, op->pools);
	return row->name != NULL ? 0 : -ENOMEM;
}

static int look_at_operators(struct look *look)
{
	struct drv_view_at at = {0};
	struct drv_view_operator op;

	while (look->op_count < look->past->op_count && drv_view_operator(look->app, &at, &op))
		if (drv_view_late(look->app, &at, look->arena, &op) < 0 ||
		    look_at_operator(look, &op, at.host) < 0)
			return -ENOMEM;
	return 0;
}

/* The operator has waited for the flow, perhaps longer than for any other one. */
static void note_wait(uint64_t ns, uint32_t flow, uint64_t *longest_ns, uint32_t *out_flow)
{
	if (ns <= *longest_ns)
		return;
	*longest_ns = ns;
	*out_flow = flow;
}

static int look_at_flow(struct look *look, uint32_t index)
{
	const struct drv_app *app = look->app;
	const struct fragi_flow_info *info = &app->flows.items[index];
	struct drv_look_past *past = look->past;
	const struct host_past
		*from = &past->hosts[app->fragments[info->from_fragment].host->number - 1],
		*to = &past->hosts[app->fragments[info->to_fragment].host->number - 1];
	uint32_t sender = look->first_op[info->from_fragment] + info->from_op,
		 receiver = look->first_op[info->to_fragment] + info->to_op;
	const uint64_t *tx = past->sender_grown[index], *rx = past->receiver_grown[index];
	struct fragi_look_flow *row = &look->flows[index];
	struct fragi_summary_flow sum;
	int r = drv_view_flow(app, index, look->arena, &sum);

	if (r < 0)
		return r;
	if (from->has_moved)
		grow(past->senders[index], past->sender_grown[index],
		     (const uint64_t[OF_SENDER]){[SENT] = sum.sent,
						 [BYTES] = sum.bytes,
						 [FULL] = sum.full_ns,
						 [ROOM] = sum.room_ns},
		     OF_SENDER);
	if (to->has_moved) {
		uint64_t now[OF_RECEIVER] = {sum.delivered, sum.input_ns, sum.lost};

		memcpy(&now[DROPPED], sum.dropped, sizeof(sum.dropped));
		grow(past->receivers[index], past->receiver_grown[index], now, OF_RECEIVER);
	}
	*row = (struct fragi_look_flow){
		.from = sum.from,
		.to = sum.to,
		.sender = sender,
		.receiver = receiver,
		.edge = sum.edge,
		.policy = sum.policy,
		.capacity = sum.capacity,
		.sent = in_window(look, from, tx[SENT]),
		.delivered = in_window(look, to, rx[DELIVERED]),
		.bytes = in_window(look, from, tx[BYTES]),
		.lost = rx[LOST],
		.full_ns = in_window(look, from, tx[FULL]),
		.depth = sum.in_flight,
		.sent_sum = sum.sent,
		.delivered_sum = sum.delivered,
		.lost_sum = sum.lost,
		.latency = sum.latency,
		.is_timed = past->promises[receiver].is_timed,
	};
#define SUM(name, unit, metric, help) row->name##_sum = sum.name;
	FRAGI_FLOW_LIVE_LIST(SUM)
#undef SUM
	if (row->full_ns > look->window_ns)
		row->full_ns = look->window_ns;
	for (int i = 0; i < FRAGI_DROP_REASONS; i++) {
		row->dropped[i] = in_window(look, to, rx[DROPPED + i]);
		row->dropped_sum += sum.dropped[i];
		row->dropped_sums[i] = sum.dropped[i];
	}
	note_wait(tx[ROOM], index, &look->room_ns[sender], &look->ops[sender].room_flow);
	note_wait(rx[INPUT], index, &look->input_ns[receiver], &look->ops[receiver].input_flow);
	return 0;
}

/* The tables of a look, with room for all rows. */
static int look_begin(struct look *look)
{
	const struct drv_app *app = look->app;
	struct fragi_arena *arena = look->arena;
	const size_t ops = look->past->op_count, flows = look->past->flow_count;

	look->ops = fragi_arena_alloc(arena, ops * sizeof(*look->ops));
	look->flows = fragi_arena_alloc(arena, flows * sizeof(*look->flows));
	look->hosts = fragi_arena_alloc(arena, app->host_count * sizeof(*look->hosts));
	look->workers = fragi_arena_alloc(arena, app->host_count * sizeof(*look->workers));
	look->pools = fragi_arena_alloc(arena, look->past->pool_count * sizeof(*look->pools));
	look->first_op =
		fragi_arena_alloc(arena, app->spec->fragment_count * sizeof(*look->first_op));
	look->input_ns = fragi_arena_alloc(arena, ops * sizeof(*look->input_ns));
	look->room_ns = fragi_arena_alloc(arena, ops * sizeof(*look->room_ns));
	return look->ops != NULL && look->flows != NULL && look->hosts != NULL &&
			       look->workers != NULL && look->pools != NULL &&
			       look->first_op != NULL && look->input_ns != NULL &&
			       look->room_ns != NULL
		       ? 0
		       : -ENOMEM;
}

static int look_at(struct look *look)
{
	size_t first_pool = 0;
	int r = look_begin(look);

	for (uint32_t i = 0; r == 0 && i < look->app->host_count; i++) {
		look_at_host(look, i);
		look_at_worker(look, i);
		look_at_pools(look, i, first_pool);
		first_pool += pools_of(&look->app->hosts[i]);
	}
	if (r == 0)
		r = look_at_operators(look);
	for (; r == 0 && look->flow_count < look->past->flow_count; look->flow_count++)
		r = look_at_flow(look, look->flow_count);
	look->app->core->items -= (int64_t)look->op_count + look->flow_count;
	return r;
}

bool drv_view_is_same(const struct drv_app *app, const struct drv_look_past *past)
{
	bool is_same = app->state == past->state && app->host_count == past->host_count;

	for (uint32_t i = 0; is_same && i < app->host_count; i++) {
		const struct drv_host *host = &app->hosts[i];
		const struct host_past *then = &past->hosts[i];

		is_same = then->epoch == host->now.epoch &&
			  then->counted_ns == host->now.counted_ns &&
			  then->state == host->now.state &&
			  then->restarts == host->restarts.count &&
			  then->is_replaced == is_replaced(host);
	}
	return is_same;
}

int drv_view_look(const struct drv_app *app, struct drv_look_past **past, uint64_t window_ns,
		  uint32_t rows, struct fragi_arena *arena, struct fragi_look *out)
{
	size_t op_count = drv_view_operator_count(app);
	size_t flow_count = drv_view_flow_count(app);
	size_t pool_count = count_pools(app);
	struct look look = {.app = app, .window_ns = window_ns, .arena = arena};
	int r;

	if (*past == NULL || (*past)->host_count != app->host_count ||
	    (*past)->op_count != op_count || (*past)->flow_count != flow_count ||
	    (*past)->pool_count != pool_count) {
		drv_look_past_free(*past);
		*past = begin(app, op_count, flow_count, pool_count);
		if (*past == NULL)
			return -ENOMEM;
	}
	look.past = *past;
	r = look_at(&look);
	if (r < 0)
		return r;
	*out = (struct fragi_look){
		.application = drv_app_name(app),
		.state = drv_app_state_name(app->state),
		.window_ns = (*past)->has_window ? window_ns : 0,
		.unix_ns = app->core->real_ns + app->core->config.realtime_offset_ns,
		.operators = look.ops,
		.flows = look.flows,
		.hosts = look.hosts,
		.workers = look.workers,
		.pools = look.pools,
		.pool_count = look.pool_count,
		.operator_count = look.op_count,
		.flow_count = look.flow_count,
		.host_count = app->host_count,
		.worker_count = look.worker_count,
	};
	(*past)->has_window = true;
	(*past)->state = app->state;
	return drv_look_bound(out, look.ops, look.flows, rows, arena);
}
