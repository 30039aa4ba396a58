// SPDX-License-Identifier: Apache-2.0
#include "fleet.h"
#include "kept.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/transports.h>
#include <frag/operator.h>
#include <text/spec.h>
#include <workerd/core/core.h>
#include <workerd/host/core/core.h>

#define MS INT64_C(1000000)
#define S (1000 * MS)
#define NETWORK_NS (1 * MS)
#define SOCKET_NS (MS / 10)
#define DISK_NS (5 * MS)
#define QUEUE_MAX 64
#define CONNECTIONS 1000000 /* of a worker: number n of worker w is w * CONNECTIONS + n */

enum kind {
	AT_DRIVER, /* a: worker, b: connection; a frame */
	DRIVER_TIMER,
	PERSISTED,    /* b: the change */
	AT_WORKER,    /* a: worker, b: connection; a frame */
	CONNECTED,    /* a: worker, b: connection */
	CUT,          /* a: worker, b: connection; the driver has closed it */
	WORKER_TIMER, /* a: worker */
	FROM_HOST,    /* a: host; a frame */
	REAPED,       /* a: host */
	AT_HOST,      /* a: host; a frame */
	HOST_TIMER,   /* a: host */
};

struct event {
	int64_t at_ns;
	uint64_t order, b;
	enum kind kind;
	uint32_t a;
	uint8_t *frame;
	size_t size;
};

struct process_timer {
	int64_t at_ns; /* the earliest event of it; 0: none */
};

struct host {
	struct host_core *core;
	struct process_timer timer;
	uint32_t worker, id, fragment, edge_count;
	uint32_t before; /* 1 + the one that its worker has spawned before; 0: none */
	bool is_alive;
	int status, signal;
};

struct worker {
	struct wrk_core *core;
	struct wrk_actions actions;
	struct process_timer timer;
	char name[16];
	uint64_t connection; /* 0: none */
	uint64_t broken;     /* the connection whose driver is gone */
	struct wrk_event queue[QUEUE_MAX];
	uint32_t queue_first, queue_count;
	uint32_t host_count;
	uint32_t newest; /* 1 + the host that it has spawned last; 0: none */
	bool is_alive;
};

struct fleet {
	struct drv_core *driver;
	struct drv_actions actions;
	struct process_timer timer;
	struct fleet_work work;
	struct kept kept;
	uint64_t change, written; /* of what is kept */
	struct worker *workers;
	uint32_t worker_count, fragments, room;
	struct host *hosts; /* all that there ever were */
	uint32_t host_count, host_capacity;
	struct event *heap;
	size_t event_count, event_capacity;
	uint64_t order, random;
	int64_t now_ns;
	uint32_t ended[2]; /* otherwise; in order */
	char failure[256];
};

static void fail(struct fleet *fleet, const char *format, ...) FRAG_PRINTF(2, 3);
static void fail(struct fleet *fleet, const char *format, ...)
{
	va_list args;

	if (fleet->failure[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(fleet->failure, sizeof(fleet->failure), format, args);
	va_end(args);
}

static void *grown(void *memory, size_t size)
{
	void *more = realloc(memory, size);

	if (more == NULL)
		abort();
	return more;
}

static bool before(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void put(struct fleet *fleet, struct event event)
{
	size_t place;

	if (fleet->event_count == fleet->event_capacity) {
		fleet->event_capacity =
			fleet->event_capacity == 0 ? 1024 : fleet->event_capacity * 2;
		fleet->heap = grown(fleet->heap, fleet->event_capacity * sizeof(event));
	}
	event.order = ++fleet->order;
	for (place = fleet->event_count++; place > 0; place = (place - 1) / 2) {
		if (!before(&event, &fleet->heap[(place - 1) / 2]))
			break;
		fleet->heap[place] = fleet->heap[(place - 1) / 2];
	}
	fleet->heap[place] = event;
}

static struct event take(struct fleet *fleet)
{
	struct event first = fleet->heap[0], last = fleet->heap[--fleet->event_count];
	size_t place = 0, child;

	while ((child = 2 * place + 1) < fleet->event_count) {
		if (child + 1 < fleet->event_count &&
		    before(&fleet->heap[child + 1], &fleet->heap[child]))
			child++;
		if (!before(&fleet->heap[child], &last))
			break;
		fleet->heap[place] = fleet->heap[child];
		place = child;
	}
	fleet->heap[place] = last;
	return first;
}

static void set_timer(struct fleet *fleet, struct process_timer *timer, int64_t deadline_ns,
		      enum kind kind, uint32_t a)
{
	int64_t at_ns = deadline_ns > fleet->now_ns ? deadline_ns : fleet->now_ns;

	if (deadline_ns == INT64_MAX || (timer->at_ns != 0 && timer->at_ns <= at_ns))
		return;
	timer->at_ns = at_ns;
	put(fleet, (struct event){.at_ns = at_ns, .kind = kind, .a = a});
}

/* Whether the time of a process has come; a timer that was moved leaves its old event behind. */
static bool is_due(struct fleet *fleet, struct process_timer *timer, int64_t deadline_ns,
		   const struct event *event)
{
	if (timer->at_ns == event->at_ns)
		timer->at_ns = 0;
	if (deadline_ns <= fleet->now_ns)
		return true;
	set_timer(fleet, timer, deadline_ns, event->kind, event->a);
	return false;
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * S + now.tv_nsec;
}

static void random_bytes(void *arg, void *bytes, size_t size)
{
	struct fleet *fleet = arg;
	uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++) {
		fleet->random = fleet->random * UINT64_C(6364136223846793005) + 1442695040888963407;
		at[i] = (uint8_t)(fleet->random >> 40);
	}
}

static void send_on(struct fleet *fleet, enum kind kind, uint32_t a, uint64_t b,
		    const struct fw_message *message, uint64_t seq, int64_t after_ns)
{
	struct event event = {.at_ns = fleet->now_ns + after_ns, .kind = kind, .a = a, .b = b};
	struct fw_message copy = *message;

	copy.seq = seq;
	copy.reply_to = 0;
	if (fw_encode(&copy, &event.frame, &event.size) < 0)
		fail(fleet, "%s cannot be encoded", fw_kind_name(message->kind));
	else
		put(fleet, event);
}

/* The driver. */

static void driver_act(struct fleet *fleet, struct drv_action *action)
{
	uint32_t worker = (uint32_t)(action->connection / CONNECTIONS);

	switch (action->kind) {
	case DRV_DO_SEND:
		put(fleet, (struct event){.at_ns = fleet->now_ns + NETWORK_NS,
					  .kind = AT_WORKER,
					  .a = worker,
					  .b = action->connection,
					  .frame = action->frame,
					  .size = action->frame_bytes});
		action->frame = NULL;
		break;
	case DRV_DO_CLOSE:
		put(fleet, (struct event){.at_ns = fleet->now_ns + NETWORK_NS,
					  .kind = CUT,
					  .a = worker,
					  .b = action->connection});
		break;
	case DRV_DO_ENDED:
		fleet->ended[action->summary->result != FRAGI_SUMMARY_FAILED]++;
		break;
	case DRV_DO_PERSIST:
		kept_take(&fleet->kept, &action->record);
		fleet->change = action->change;
		break;
	case DRV_DO_ADMIT:
	case DRV_DO_LOG:
	case DRV_DO_PROGRESS:
		break;
	}
}

static void driver_step(struct fleet *fleet, struct drv_event *event)
{
	int64_t began_ns = cpu_ns();
	int r = drv_core_step(fleet->driver, event, fleet->now_ns, &fleet->actions);
	const int64_t took_ns = cpu_ns() - began_ns;

	fleet->work.cpu_ns += took_ns;
	if (took_ns > fleet->work.largest_ns)
		fleet->work.largest_ns = took_ns;
	fleet->work.events++;
	if (r < 0)
		fail(fleet, "the driver has no memory");
	for (size_t i = 0; i < fleet->actions.count; i++)
		driver_act(fleet, &fleet->actions.items[i]);
	drv_actions_reset(&fleet->actions);
	if (fleet->change > fleet->written) /* what a step has is written together */
		put(fleet, (struct event){.at_ns = fleet->now_ns + DISK_NS,
					  .kind = PERSISTED,
					  .b = fleet->change});
	fleet->written = fleet->change;
	set_timer(fleet, &fleet->timer, drv_core_deadline_ns(fleet->driver), DRIVER_TIMER, 0);
}

static void at_driver(struct fleet *fleet, const struct event *event)
{
	struct drv_event message = {
		.kind = DRV_EVENT_MESSAGE, .connection = event->b, .peer = "10.0.0.2:1"};

	if (fleet->workers[event->a].broken == event->b)
		return; /* it was for the driver before this one */
	if (fw_decode(event->frame + 4, event->size - 4, &message.message, NULL) < 0)
		fail(fleet, "a frame for the driver cannot be read");
	else
		driver_step(fleet, &message);
}

/* Hosts. */

static void host_raise(struct fleet *fleet, uint32_t index, struct host_event event);

static void host_prepared(struct fleet *fleet, uint32_t index)
{
	struct fw_port ports[] = {
		{.name = "i", .type = "i64", .dir = FRAG_IN, .type_id = 7, .has_codec = true},
		{.name = "o", .type = "i64", .dir = FRAG_OUT, .type_id = 7, .has_codec = true}};
	struct fw_op op = {"a", "stage", ports, 2};
	char name[16];
	struct fw_fragment fragment = {name, &op, 1};
	struct fw_address address = {"ucx", &index, sizeof(index)};
	struct fw_host_prepared prepared = {.ok = true,
					    .pid = (int)index + 1,
					    .fragments = &fragment,
					    .fragment_count = 1,
					    .addresses = &address,
					    .address_count = 1};

	snprintf(name, sizeof(name), "f%u", fleet->hosts[index].fragment);
	host_raise(fleet, index,
		   (struct host_event){.kind = HOST_EV_PREPARE_DONE, .prepared = &prepared});
}

static void host_exits(struct fleet *fleet, uint32_t index, int status, int signal)
{
	struct host *host = &fleet->hosts[index];

	if (!host->is_alive)
		return;
	host->is_alive = false;
	host->status = status;
	host->signal = signal;
	put(fleet,
	    (struct event){.at_ns = fleet->now_ns + 2 * SOCKET_NS, .kind = REAPED, .a = index});
}

/* Returns what it has finished by that; 0: nothing (which is no completion). */
static enum host_event_kind host_act(struct fleet *fleet, uint32_t index,
				     const struct host_action *action)
{
	struct host *host = &fleet->hosts[index];

	switch (action->kind) {
	case HOST_DO_SEND:
		send_on(fleet, FROM_HOST, index, 0, &action->message, 1, SOCKET_NS);
		return 0;
	case HOST_DO_PREPARE:
		return HOST_EV_PREPARE_DONE;
	case HOST_DO_WIRE:
		host->edge_count = action->request->wire.edge_count;
		return HOST_EV_WIRE_DONE;
	case HOST_DO_START:
		return HOST_EV_START_DONE;
	case HOST_DO_DRAIN:
		return HOST_EV_RUN;
	case HOST_DO_DESTROY:
		return HOST_EV_DESTROY_DONE;
	case HOST_DO_EXIT:
		host_exits(fleet, index, action->exit_code, 0);
		return 0;
	default:
		return 0;
	}
}

static void host_complete(struct fleet *fleet, uint32_t index, enum host_event_kind done)
{
	static const struct fw_host_event drained = {.state = FW_STATE_DONE};
	static const struct fw_host_result ok;

	switch (done) {
	case HOST_EV_PREPARE_DONE:
		host_prepared(fleet, index);
		break;
	case HOST_EV_WIRE_DONE:
		host_raise(fleet, index, (struct host_event){.kind = done, .result = &ok});
		host_raise(fleet, index, (struct host_event){.kind = HOST_EV_PEERS_READY});
		break;
	case HOST_EV_RUN:
		host_raise(fleet, index, (struct host_event){.kind = done, .report = &drained});
		break;
	default:
		host_raise(fleet, index, (struct host_event){.kind = done, .result = &ok});
		break;
	}
}

static void host_raise(struct fleet *fleet, uint32_t index, struct host_event event)
{
	enum host_event_kind done = 0, one;
	struct host_actions actions;

	if (!fleet->hosts[index].is_alive)
		return;
	host_core_step(fleet->hosts[index].core, &event, fleet->now_ns, &actions);
	for (uint32_t i = 0; i < actions.count; i++) {
		one = host_act(fleet, index, &actions.items[i]);
		done = one != 0 ? one : done;
	}
	if (done != 0)
		host_complete(fleet, index, done);
	if (fleet->hosts[index].is_alive)
		set_timer(fleet, &fleet->hosts[index].timer,
			  host_core_deadline_ns(fleet->hosts[index].core), HOST_TIMER, index);
}

static void at_host(struct fleet *fleet, const struct event *event)
{
	struct fw_message *message;

	if (!fleet->hosts[event->a].is_alive)
		return;
	if (fw_decode(event->frame + 4, event->size - 4, &message, NULL) < 0) {
		fail(fleet, "a frame for a host cannot be read");
		return;
	}
	host_raise(fleet, event->a,
		   (struct host_event){.kind = HOST_EV_MESSAGE, .message = message});
	fw_message_free(message);
}

/* Workers. */

static void keep(struct fleet *fleet, struct worker *worker, struct wrk_event event)
{
	if (worker->queue_count == QUEUE_MAX)
		fail(fleet, "%s: too many events at a time", worker->name);
	else
		worker->queue[(worker->queue_first + worker->queue_count++) % QUEUE_MAX] = event;
}

static void spawn(struct fleet *fleet, uint32_t index, const struct wrk_action *action)
{
	struct worker *worker = &fleet->workers[index];
	struct host *host;

	if (fleet->host_count == fleet->host_capacity) {
		fleet->host_capacity = fleet->host_capacity == 0 ? 1024 : fleet->host_capacity * 2;
		fleet->hosts = grown(fleet->hosts, fleet->host_capacity * sizeof(*host));
	}
	host = &fleet->hosts[fleet->host_count];
	*host = (struct host){
		.worker = index,
		.id = action->host,
		.fragment = (uint32_t)atoi(action->message->create.fragments[0] + 1), /* "f7" */
		.before = worker->newest,
		.is_alive = true,
	};
	worker->newest = fleet->host_count + 1;
	if (action->message->create.fragment_count != 1)
		fail(fleet, "a host got %u fragments", action->message->create.fragment_count);
	if (host_core_create(&(struct host_config){0}, fleet->now_ns, &host->core) < 0)
		abort();
	worker->host_count++;
	keep(fleet, worker,
	     (struct wrk_event){.kind = WRK_EVENT_HOST_SPAWNED,
				.host = action->host,
				.pid = (int)fleet->host_count + 1});
	send_on(fleet, AT_HOST, fleet->host_count++, 0, action->message, 1, SOCKET_NS);
}

/* The one that lives, or has ended last, under that id of a worker; NULL: none. */
static struct host *host_of(struct fleet *fleet, uint32_t worker, uint32_t id)
{
	uint32_t i = fleet->workers[worker].newest;

	while (i != 0 && fleet->hosts[i - 1].id != id)
		i = fleet->hosts[i - 1].before;
	return i != 0 ? &fleet->hosts[i - 1] : NULL;
}

static void worker_act(struct fleet *fleet, uint32_t index, const struct wrk_action *action)
{
	struct worker *worker = &fleet->workers[index];
	struct host *host;

	switch (action->kind) {
	case WRK_DO_CONNECT:
		worker->connection = (uint64_t)index * CONNECTIONS + action->connection;
		put(fleet, (struct event){.at_ns = fleet->now_ns + NETWORK_NS,
					  .kind = CONNECTED,
					  .a = index,
					  .b = worker->connection});
		break;
	case WRK_DO_SEND_DRIVER:
		send_on(fleet, AT_DRIVER, index, worker->connection, action->message, 1,
			NETWORK_NS);
		break;
	case WRK_DO_SPAWN:
		spawn(fleet, index, action);
		break;
	case WRK_DO_SEND_HOST:
		host = host_of(fleet, index, action->host);
		if (host != NULL && host->is_alive)
			send_on(fleet, AT_HOST, (uint32_t)(host - fleet->hosts), 0, action->message,
				1, SOCKET_NS);
		break;
	case WRK_DO_SIGNAL_HOST:
		host = host_of(fleet, index, action->host);
		if (host != NULL && action->signal == SIGKILL)
			host_exits(fleet, (uint32_t)(host - fleet->hosts), 0, SIGKILL);
		else if (host != NULL)
			host_raise(fleet, (uint32_t)(host - fleet->hosts),
				   (struct host_event){.kind = HOST_EV_STOP});
		break;
	case WRK_DO_SAMPLE_HOST:
		host = host_of(fleet, index, action->host);
		if (host != NULL && host->edge_count != 0)
			keep(fleet, worker,
			     (struct wrk_event){.kind = WRK_EVENT_HOST_SAMPLED,
						.host = action->host});
		break;
	default:
		break;
	}
}

static void worker_step(struct fleet *fleet, uint32_t index, struct wrk_event *event)
{
	static struct fragi_flow_stats flows[2];
	static struct fw_op_stats ops[1];
	struct fw_host_stats stats = {.flows = flows, .ops = ops, .op_count = 1};
	struct worker *worker = &fleet->workers[index];

	if (event->kind == WRK_EVENT_HOST_SAMPLED) {
		stats.flow_count = host_of(fleet, index, event->host)->edge_count;
		event->stats = &stats;
	}
	wrk_actions_reset(&worker->actions);
	if (wrk_core_step(worker->core, event, fleet->now_ns, &worker->actions) < 0)
		fail(fleet, "%s has no memory", worker->name);
	for (size_t i = 0; i < worker->actions.count; i++)
		worker_act(fleet, index, &worker->actions.items[i]);
}

static void worker_raise(struct fleet *fleet, uint32_t index, struct wrk_event event)
{
	struct worker *worker = &fleet->workers[index];

	if (!worker->is_alive)
		return;
	worker_step(fleet, index, &event);
	while (worker->queue_count > 0) {
		event = worker->queue[worker->queue_first];
		worker->queue_first = (worker->queue_first + 1) % QUEUE_MAX;
		worker->queue_count--;
		worker_step(fleet, index, &event);
	}
	set_timer(fleet, &worker->timer, wrk_core_deadline_ns(worker->core), WORKER_TIMER, index);
}

/* An event on its connection: it may be an old one. */
static void at_worker(struct fleet *fleet, const struct event *event)
{
	struct wrk_event raised = {.connection = event->b % CONNECTIONS, .text = "10.0.0.2:1"};
	struct fw_message *message = NULL;

	if (!fleet->workers[event->a].is_alive || fleet->workers[event->a].connection != event->b)
		return;
	if (event->kind == AT_WORKER) {
		raised.kind = WRK_EVENT_DRIVER_MESSAGE;
		if (fw_decode(event->frame + 4, event->size - 4, &message, NULL) < 0)
			fail(fleet, "a frame for a worker cannot be read");
		raised.message = message;
	} else {
		raised.kind = event->kind == CUT ? WRK_EVENT_DRIVER_LOST : WRK_EVENT_CONNECTED;
		raised.text = event->kind == CUT ? "the driver closed it" : raised.text;
	}
	worker_raise(fleet, event->a, raised);
	fw_message_free(message);
}

static void from_host(struct fleet *fleet, const struct event *event)
{
	const struct host *host = &fleet->hosts[event->a];
	struct fw_message *message;

	if (fw_decode(event->frame + 4, event->size - 4, &message, NULL) < 0) {
		fail(fleet, "a frame of a host cannot be read");
		return;
	}
	worker_raise(fleet, host->worker,
		     (struct wrk_event){
			     .kind = WRK_EVENT_HOST_MESSAGE, .host = host->id, .message = message});
	fw_message_free(message);
}

static void reaped(struct fleet *fleet, uint32_t index)
{
	struct fragi_flow_stats flows[2] = {0};
	struct fw_op_stats ops[1] = {0};
	struct host *host = &fleet->hosts[index];
	struct fw_host_stats stats = {.flows = flows,
				      .flow_count = host->edge_count,
				      .ops = ops,
				      .op_count = 1,
				      .final = true};
	struct wrk_exited exited = {.status = host->status,
				    .signal = host->signal,
				    .stats = host->edge_count != 0 ? &stats : NULL};

	host_core_destroy(host->core);
	host->core = NULL;
	fleet->workers[host->worker].host_count--;
	worker_raise(fleet, host->worker,
		     (struct wrk_event){
			     .kind = WRK_EVENT_HOST_EXITED, .host = host->id, .exited = &exited});
}

static void happen(struct fleet *fleet, const struct event *event)
{
	struct worker *worker = &fleet->workers[event->a < fleet->worker_count ? event->a : 0];
	struct host *host = &fleet->hosts[event->a < fleet->host_count ? event->a : 0];

	switch (event->kind) {
	case AT_DRIVER:
		at_driver(fleet, event);
		break;
	case DRIVER_TIMER:
		if (is_due(fleet, &fleet->timer, drv_core_deadline_ns(fleet->driver), event))
			driver_step(fleet, &(struct drv_event){.kind = DRV_EVENT_TIMER});
		break;
	case PERSISTED:
		if (event->b <= fleet->change) /* else of the driver before this one */
			driver_step(fleet, &(struct drv_event){.kind = DRV_EVENT_PERSISTED,
							       .change = event->b});
		break;
	case AT_WORKER:
	case CONNECTED:
	case CUT:
		at_worker(fleet, event);
		break;
	case WORKER_TIMER:
		if (worker->is_alive &&
		    is_due(fleet, &worker->timer, wrk_core_deadline_ns(worker->core), event))
			worker_raise(fleet, event->a, (struct wrk_event){.kind = WRK_EVENT_TIMER});
		break;
	case FROM_HOST:
		from_host(fleet, event);
		break;
	case REAPED:
		reaped(fleet, event->a);
		break;
	case AT_HOST:
		at_host(fleet, event);
		break;
	case HOST_TIMER:
		if (host->is_alive &&
		    is_due(fleet, &host->timer, host_core_deadline_ns(host->core), event))
			host_raise(fleet, event->a, (struct host_event){.kind = HOST_EV_TIMER});
		break;
	}
}

void fleet_run(struct fleet *fleet, int64_t for_ns)
{
	int64_t until_ns = fleet->now_ns + for_ns;

	while (fleet->event_count > 0 && fleet->heap[0].at_ns <= until_ns &&
	       fleet->failure[0] == '\0') {
		struct event event = take(fleet);

		fleet->now_ns = event.at_ns;
		happen(fleet, &event);
		free(event.frame);
	}
	fleet->now_ns = until_ns;
}

static void start_driver(struct fleet *fleet)
{
	struct drv_config config = {.version = "0",
				    .clock = "node0",
				    .address = "10.0.0.1:57777",
				    .progress_ns = -1,
				    .adopts = true,
				    .keeps_state = true,
				    .random = random_bytes,
				    .random_arg = fleet};

	if (drv_core_create(&config, &fleet->driver) < 0)
		abort();
	fleet->change = fleet->written = 0;
}

void fleet_replace_driver(struct fleet *fleet)
{
	int64_t began_ns;

	for (uint32_t i = 0; i < fleet->worker_count; i++) {
		struct worker *worker = &fleet->workers[i];

		worker->broken = worker->connection;
		put(fleet, (struct event){.at_ns = fleet->now_ns + NETWORK_NS,
					  .kind = CUT,
					  .a = i,
					  .b = worker->connection});
	}
	drv_core_destroy(fleet->driver);
	began_ns = cpu_ns();
	start_driver(fleet);
	kept_restore(&fleet->kept, fleet->driver);
	fleet->work.cpu_ns += cpu_ns() - began_ns;
	set_timer(fleet, &fleet->timer, drv_core_deadline_ns(fleet->driver), DRIVER_TIMER, 0);
}

struct fleet *fleet_create(uint32_t workers, uint32_t fragments, uint32_t hosts)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));

	if (fleet == NULL)
		abort();
	start_driver(fleet);
	fleet->workers = grown(NULL, workers * sizeof(*fleet->workers));
	memset(fleet->workers, 0, workers * sizeof(*fleet->workers));
	fleet->worker_count = workers;
	fleet->fragments = fragments;
	fleet->room = hosts;
	fleet->now_ns = S;
	return fleet;
}

void fleet_destroy(struct fleet *fleet)
{
	for (size_t i = 0; i < fleet->event_count; i++)
		free(fleet->heap[i].frame);
	for (uint32_t i = 0; i < fleet->host_count; i++)
		host_core_destroy(fleet->hosts[i].core);
	for (uint32_t i = 0; i < fleet->worker_count; i++) {
		wrk_core_destroy(fleet->workers[i].core);
		wrk_actions_fini(&fleet->workers[i].actions);
	}
	drv_core_destroy(fleet->driver);
	drv_actions_fini(&fleet->actions);
	kept_fini(&fleet->kept);
	free(fleet->heap);
	free(fleet->hosts);
	free(fleet->workers);
	free(fleet);
}

struct fleet_work fleet_take(struct fleet *fleet)
{
	struct fleet_work work = fleet->work;

	fleet->work = (struct fleet_work){0};
	return work;
}

void fleet_attach(struct fleet *fleet, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		struct worker *worker = &fleet->workers[i];
		struct wrk_config config = {
			.name = worker->name,
			.driver = "10.0.0.1:57777",
			.worker_address = "10.0.0.2",
			.node = worker->name,
			.clock = worker->name,
			.memory = "",
			.version = "0",
			.has = {[FRAGI_AMOUNT_CPU] = fleet->room * FRAGI_AMOUNT_ONE,
				[FRAGI_AMOUNT_MEMORY] = 1 << 30},
			.seed = i + 1};

		snprintf(worker->name, sizeof(worker->name), "w%05u", i);
		if (wrk_core_create(&config, &worker->core) < 0)
			abort();
		worker->is_alive = true;
		worker_raise(fleet, i, (struct wrk_event){.kind = WRK_EVENT_START});
	}
}

/* A chain of fragments that each want a core, and a process of their own. */
static char *graph(const struct fleet *fleet, uint32_t number)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		abort();
	fprintf(out, "frag: 1\napplication: app%u\nfragments:\n", number);
	for (uint32_t f = 0; f < fleet->fragments; f++)
		fprintf(out,
			"  f%u:\n    host: h%u\n    requirements: {cpu: 1}\n"
			"    operators:\n      a: {type: stage}\n",
			f, f);
	fprintf(out, "flows:\n");
	for (uint32_t f = 1; f < fleet->fragments; f++)
		fprintf(out, "  - f%u.a.o -> f%u.a.i\n", f - 1, f);
	fclose(out);
	return text;
}

void fleet_start(struct fleet *fleet, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		char *text = graph(fleet, i);
		struct fragi_spec_source source = {.graph = {"app.yaml", text, strlen(text)}};
		struct drv_event event = {.kind = DRV_EVENT_APP};
		void *packed;
		size_t size;

		if (fragi_source_pack(&source, &packed, &size) < 0)
			abort();
		event.app = (struct drv_event_app){.source = packed, .source_bytes = size};
		driver_step(fleet, &event);
		free(packed);
		free(text);
		fleet_run(fleet, 10 * MS);
	}
}

void fleet_power_off(struct fleet *fleet, uint32_t step)
{
	for (uint32_t i = 0; i < fleet->worker_count; i += step)
		fleet->workers[i].is_alive = false;
	for (uint32_t i = 0; i < fleet->host_count; i++)
		if (!fleet->workers[fleet->hosts[i].worker].is_alive)
			fleet->hosts[i].is_alive = false;
}

void fleet_stop(struct fleet *fleet)
{
	driver_step(fleet, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = SIGTERM});
}

uint32_t fleet_attached(const struct fleet *fleet)
{
	return (uint32_t)drv_core_session_count(fleet->driver);
}

uint32_t fleet_hosts(const struct fleet *fleet)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < fleet->host_count; i++)
		count += fleet->hosts[i].is_alive &&
			 host_core_state(fleet->hosts[i].core) == HOST_STATE_STARTED;
	return count;
}

uint32_t fleet_spawned(const struct fleet *fleet)
{
	return fleet->host_count;
}

uint32_t fleet_running(const struct fleet *fleet, uint32_t apps)
{
	uint32_t count = 0;
	char name[16];

	for (uint32_t i = 0; i < apps; i++) {
		snprintf(name, sizeof(name), "app%u", i);
		count += drv_core_named_state(fleet->driver, name) == DRV_APP_RUNNING;
	}
	return count;
}

uint32_t fleet_ended(const struct fleet *fleet, bool in_order)
{
	return fleet->ended[in_order];
}

uint32_t fleet_most_hosts(const struct fleet *fleet)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < fleet->worker_count; i++)
		if (fleet->workers[i].is_alive && fleet->workers[i].host_count > most)
			most = fleet->workers[i].host_count;
	return most;
}

const char *fleet_failure(const struct fleet *fleet)
{
	return fleet->failure[0] != '\0' ? fleet->failure : NULL;
}
