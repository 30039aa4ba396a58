/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <workerd/host/host.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOG_TOPIC "host"
#include <base/alloc.h>
#include <base/beat.h>
#include <base/log.h>
#include <base/spare.h>
#include <base/stamp.h>
#include <workerd/host/control.h>
#include <run/crash.h>
#include <workerd/host/tables.h>
#include <workerd/spawn.h>

/*
 * The happy path: HOST_CREATE, prepare, HOST_PREPARED; HOST_WIRE, HOST_WIRED once every peer has
 * answered; HOST_START, HOST_STARTED; HOST_EVENTs; HOST_STOP with a time: drain, DONE; HOST_STOP
 * without: the end.
 *
 * The main thread is the control thread: it beats whatever operators do. What may block on user
 * code, prepare and destroy, runs on a thread of its own meanwhile. A failure is told and the host
 * then waits to be ended; only the loss of its workerd ends it by itself.
 */
#define WIRE_NS                                                                                    \
	9000000000ll /* for all peers to answer; the driver gives up after 10 s, without their names */
#define LOOK_NS 100000000ll /* how often a started run is looked after */

enum host_state {
	HOST_NEW,       /* waits for HOST_CREATE */
	HOST_PREPARING, /* the work thread has the run */
	HOST_PREPARED,
	HOST_WIRING,
	HOST_WIRED,
	HOST_STARTED,
	HOST_FAILED, /* waits to be ended */
	HOST_ENDING, /* the work thread has the run */
	HOST_ENDED,
};

struct host {
	enum host_state state;
	struct host_control control;
	int ledger_fd, stop_fd, work_fd;
	uint64_t run_id, epoch;
	uint32_t number;
	int64_t beat_ns, dead_ns;
	int64_t heard_ns, beat_at_ns, wire_until_ns, wake_at_ns;
	struct fragi_spare spare;
	struct fragi_source source;
	struct fragi_spec *spec;
	const char **fragments; /* NULL-ended; in arena, as the peers' names */
	char peers[256];
	struct fragi_arena arena;
	struct fw_message *wire; /* the run borrows its texts */
	struct fragi_registry *registry;
	struct fragi_run *run;
	bool idle, idle_said; /* at rest; said so since the last beat */
	bool failed;          /* operators may hang: nothing is taken away from under them */
	bool lost;            /* workerd is gone */
	/* between the threads: the work thread writes until it has written work_fd */
	pthread_t worker;
	bool working, end_wanted;
	int prepare_result;
	struct fragi_diag diag;
};

static void host_send(struct host *h, struct fw_message *message)
{
	int r;

	message->run = h->run_id;
	message->host = h->number;
	message->epoch = h->epoch;
	r = host_control_send(&h->control, message);
	if (r == 0)
		return;
	/* Somebody would wait for it: better an end that is seen. */
	log_error(NULL, "cannot send %s to workerd: %s; this host ends",
		  fw_kind_name(message->kind), frag_strerror(r));
	h->lost = true;
}

static void send_result(struct host *h, enum fw_kind kind, int exit_code, const char *sentence)
{
	struct fw_message message = {.kind = kind};

	message.result = (struct fw_host_result){
		.ok = exit_code == 0, .exit_code = exit_code, .sentence = sentence};
	if (exit_code != 0)
		h->state = HOST_FAILED;
	host_send(h, &message);
}

/* Starts fn on the work thread; it writes work_fd when it is done. */
static void work_start(struct host *h, void *(*fn)(void *))
{
	int r = pthread_create(&h->worker, NULL, fn, h);

	if (r != 0) { /* without a thread it is done here, late beats and all */
		log_warn(NULL, "cannot start a thread: %s", frag_strerror(-r));
		fn(h);
		return;
	}
	h->working = true;
}

static void work_done(struct host *h)
{
	uint64_t one = 1;

	(void)!write(h->work_fd, &one, sizeof(one));
}

static int prepare(struct host *h)
{
	const struct fragi_registry_config registry_config = {.app_folder =
								      h->source.source.app_folder};
	struct fragi_run_config config = {
		.fragments = h->fragments,
		.ledger_fd = h->ledger_fd,
		.host = h->number,
		.epoch = h->epoch,
		.beat_ns = h->beat_ns,
		.dead_ns = h->dead_ns,
	};
	int r = fragi_spec_parse(&h->source.source, &h->diag, &h->spec);

	if (r < 0)
		return r;
	r = fragi_registry_create(&registry_config, &h->registry);
	if (r < 0)
		return fragi_diag_add(&h->diag, r, NULL, 0, 0, "cannot look for libraries: %s",
				      frag_strerror(r));
	config.spec = h->spec;
	config.registry = h->registry;
	r = fragi_run_create(&config, &h->run);
	if (r < 0)
		return fragi_diag_add(&h->diag, r, NULL, 0, 0, "cannot make the run: %s",
				      frag_strerror(r));
	return fragi_run_prepare(h->run, &h->diag);
}

static void *prepare_main(void *arg)
{
	struct host *h = arg;

	h->prepare_result = prepare(h);
	if (h->prepare_result < 0 && h->diag.count == 0)
		fragi_diag_add(&h->diag, h->prepare_result, NULL, 0, 0, "cannot prepare: %s",
			       frag_strerror(h->prepare_result));
	work_done(h);
	return NULL;
}

static void *destroy_main(void *arg)
{
	struct host *h = arg;

	fragi_run_destroy(h->run);
	h->run = NULL;
	work_done(h);
	return NULL;
}

static void begin_end(struct host *h)
{
	h->end_wanted = true;
	if (h->state == HOST_PREPARING || h->state == HOST_ENDING || h->state == HOST_ENDED)
		return; /* when the work thread is done */
	if (h->run != NULL)
		fragi_run_halt(h->run);
	h->state = HOST_ENDING;
	work_start(h, destroy_main);
}

static void prepared(struct host *h)
{
	struct fw_message message = {.kind = FW_HOST_PREPARED};
	struct fragi_arena arena = {0};
	int r = h->prepare_result;

	fragi_crash_guard_exit(); /* before the exit handlers of what was loaded */
	if (r == 0) {
		r = host_tables_prepared(h->run, &arena, &message.prepared);
		h->state = HOST_PREPARED;
	} else {
		message.prepared.exit_code = r == -EINVAL ? 2 : r == -ENOENT ? 3 : 1;
		message.prepared.pid = (int32_t)getpid();
		r = host_tables_errors(&h->diag, &arena, &message.prepared);
		h->state = HOST_FAILED;
	}
	if (r < 0) {
		log_error(NULL, "cannot report what was prepared: %s; this host ends",
			  frag_strerror(r));
		h->lost = true;
	} else {
		host_send(h, &message);
	}
	fragi_arena_fini(&arena);
}

static void on_work(struct host *h)
{
	uint64_t count;

	(void)!read(h->work_fd, &count, sizeof(count));
	if (h->working)
		pthread_join(h->worker, NULL);
	h->working = false;
	if (h->state == HOST_ENDING) {
		h->state = HOST_ENDED;
		return;
	}
	prepared(h);
	if (h->end_wanted)
		begin_end(h);
}

static void on_create(struct host *h, const struct fw_message *message)
{
	const struct fw_host_create *create = &message->create;
	const char *root = getenv("FRAG_APP_ROOT");
	int r;

	h->run_id = message->run;
	h->number = message->host;
	h->epoch = message->epoch;
	h->beat_ns = create->beat_ns > 0 ? create->beat_ns : FRAGI_BEAT_NS;
	h->dead_ns = create->dead_ns > h->beat_ns ? create->dead_ns : FRAGI_DEAD_NS;
	h->state = HOST_PREPARING;
	r = fragi_source_unpack(create->source, create->source_bytes, &h->source);
	if (r == 0) {
		h->fragments = fragi_arena_alloc(&h->arena, (create->fragment_count + 1) *
								    sizeof(*h->fragments));
		r = h->fragments == NULL ? -ENOMEM : 0;
	}
	for (uint32_t i = 0; r == 0 && i < create->fragment_count; i++) {
		h->fragments[i] = fragi_arena_strdup(&h->arena, create->fragments[i]);
		r = h->fragments[i] == NULL ? -ENOMEM : 0;
	}
	if (r < 0) {
		h->prepare_result = fragi_diag_add(&h->diag, r, NULL, 0, 0,
						   "cannot read the graph: %s", frag_strerror(r));
		prepared(h);
		return;
	}
	if (root != NULL && *root != '\0')
		h->source.source.app_folder = root;
	work_start(h, prepare_main);
}

static void on_wire(struct host *h, const struct fw_host_wire *wire, int64_t now_ns)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_run_peer *peers;
	struct fragi_run_edge *edges;
	struct fragi_arena arena = {0};
	size_t used = 0;
	int r;

	h->state = HOST_WIRING;
	h->wire_until_ns = now_ns + WIRE_NS;
	for (uint32_t i = 0; i < wire->peer_count && used < sizeof(h->peers); i++)
		used += (size_t)snprintf(h->peers + used, sizeof(h->peers) - used, "%s%s",
					 i > 0 ? ", " : "", wire->peers[i].name);
	r = host_tables_wire(wire, &arena, &peers, &edges);
	if (r < 0)
		frag_err_set(&err, r, "cannot take in the edges of this host: %s",
			     frag_strerror(r));
	else
		r = fragi_run_wire(h->run, peers, wire->peer_count, edges, wire->edge_count, &err);
	fragi_arena_fini(&arena);
	if (r < 0)
		send_result(h, FW_HOST_WIRED, 1, err.text[0] != '\0' ? err.text : frag_strerror(r));
}

static void on_start(struct host *h)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = fragi_run_start(h->run, &err);

	h->state = HOST_STARTED;
	send_result(h, FW_HOST_STARTED, r < 0 ? 1 : 0,
		    r == 0                ? ""
		    : err.text[0] != '\0' ? err.text
					  : frag_strerror(r));
}

static void on_stop(struct host *h, const struct fw_host_stop *stop)
{
	if (stop->drain_ns > 0 && h->state == HOST_STARTED)
		fragi_run_drain(h->run);
	else if (stop->drain_ns == 0 || h->state != HOST_FAILED) /* or there is nothing to drain */
		begin_end(h);
}

static void on_message(struct host *h, struct fw_message *message, int64_t now_ns)
{
	static const struct {
		enum fw_kind kind;
		enum host_state state;
	} moments[] = {{FW_HOST_CREATE, HOST_NEW},
		       {FW_HOST_WIRE, HOST_PREPARED},
		       {FW_HOST_START, HOST_WIRED}};

	h->heard_ns = now_ns;
	if (message->kind == FW_BEAT)
		return;
	if (message->kind == FW_HOST_STOP) {
		on_stop(h, &message->stop);
		return;
	}
	for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
		if (moments[i].kind != message->kind)
			continue;
		if (moments[i].state != h->state) {
			log_warn(NULL, "ignored %s: it does not come at this point",
				 fw_kind_name(message->kind));
			return;
		}
		if (message->kind == FW_HOST_CREATE)
			on_create(h, message);
		else if (message->kind == FW_HOST_WIRE) {
			h->wire = message;
			on_wire(h, &message->wire, now_ns);
		} else {
			on_start(h);
		}
		return;
	}
	log_warn(NULL, "ignored %s: it is not for a host", fw_kind_name(message->kind));
}

static void send_event(struct host *h, enum fw_host_state state,
		       const struct fragi_run_event *event)
{
	struct fw_message message = {.kind = FW_HOST_EVENT};

	message.event = (struct fw_host_event){.state = state};
	if (event != NULL) {
		message.event.peer = event->peer;
		message.event.exit_code = event->exit_code;
		message.event.sentence = event->sentence;
		message.event.idle_rounds = event->idle_rounds;
		message.event.sent = event->sent;
		message.event.delivered = event->delivered;
	}
	host_send(h, &message);
}

static void on_run_event(struct host *h, const struct fragi_run_event *event)
{
	switch (event->kind) {
	case FRAGI_RUN_WIRED:
		if (h->state == HOST_WIRING) {
			h->state = HOST_WIRED;
			send_result(h, FW_HOST_WIRED, 0, "");
		}
		break;
	case FRAGI_RUN_IDLE:
		h->idle = h->idle_said = true;
		send_event(h, FW_STATE_IDLE, event);
		break;
	case FRAGI_RUN_DONE:
		send_event(h, FW_STATE_DONE, event);
		break;
	case FRAGI_RUN_FAILED:
		h->failed = true;
		if (h->state == HOST_WIRING)
			send_result(h, FW_HOST_WIRED, event->exit_code != 0 ? event->exit_code : 1,
				    event->sentence);
		else
			send_event(h, FW_STATE_FAILED, event);
		break;
	case FRAGI_RUN_STOPPED:
		send_event(h, FW_STATE_STOPPED, event);
		break;
	case FRAGI_RUN_PEER_LOST:
		if (h->state == HOST_WIRING)
			send_result(h, FW_HOST_WIRED, 1, event->sentence);
		else
			send_event(h, FW_STATE_PEER_LOST, event);
		break;
	}
}

static bool run_is_ours(const struct host *h)
{
	/* The state first: what the work thread has is not even looked at. */
	return h->state != HOST_PREPARING && h->state != HOST_ENDING && h->state != HOST_ENDED &&
	       h->run != NULL;
}

static void look_after_run(struct host *h, int64_t now_ns)
{
	struct fragi_run_event event;

	while (run_is_ours(h) && fragi_run_next(h->run, &event) > 0)
		on_run_event(h, &event);
	if (h->state == HOST_WIRING && now_ns >= h->wire_until_ns) {
		char sentence[512];

		snprintf(
			sentence, sizeof(sentence),
			"no answer from %s over the data plane within %lld s; check that the addresses of --worker-address can reach each other and that no firewall stands between",
			h->peers, WIRE_NS / 1000000000);
		send_result(h, FW_HOST_WIRED, 1, sentence);
	}
}

static void beat(struct host *h, int64_t now_ns)
{
	struct fw_message message = {.kind = FW_BEAT};

	if (now_ns < h->beat_at_ns)
		return;
	h->beat_at_ns = now_ns + h->beat_ns;
	if (h->idle && !h->idle_said && h->state == HOST_STARTED) {
		h->idle = false;
		send_event(h, FW_STATE_RUNNING, NULL);
	}
	h->idle_said = false;
	(void)host_control_send(&h->control, &message);
}

static void read_control(struct host *h, int64_t now_ns)
{
	struct fw_message *message;
	int r = host_control_read(&h->control, now_ns);

	if (r == -EPIPE)
		h->lost = true;
	while (r >= 0 && (r = host_control_next(&h->control, &message)) > 0) {
		on_message(h, message, now_ns);
		if (message != h->wire)
			fw_message_free(message);
	}
	if (r < 0 && r != -EPIPE) {
		log_error(NULL, "workerd sent what cannot be read: %s", frag_strerror(r));
		h->lost = true;
	}
}

static void judge_workerd(struct host *h, int64_t now_ns)
{
	fragi_spare_late(&h->spare, now_ns - h->wake_at_ns, h->beat_ns, h->dead_ns, now_ns);
	if (now_ns < fragi_spare_dead_at(&h->spare, h->heard_ns, h->dead_ns))
		return;
	log_error(NULL, "workerd has not been heard for %.1f s: this host ends",
		  (double)h->dead_ns * 1e-9);
	h->lost = true;
}

static void turn(struct host *h)
{
	struct pollfd fds[4] = {
		{.fd = h->control.fd,
		 .events = (short)(POLLIN | (h->control.unsent_bytes > 0 ? POLLOUT : 0))},
		{.fd = h->work_fd, .events = POLLIN},
		{.fd = h->stop_fd, .events = POLLIN},
		{.fd = run_is_ours(h) ? fragi_run_fd(h->run) : -1, .events = POLLIN},
	};
	int64_t now_ns = fragi_now_ns(), wait_ns = h->beat_at_ns - now_ns;

	if (h->state >= HOST_WIRING && h->state <= HOST_STARTED && wait_ns > LOOK_NS)
		wait_ns = LOOK_NS;
	if (wait_ns < 0)
		wait_ns = 0;
	h->wake_at_ns = now_ns + wait_ns;
	if (poll(fds, 4, (int)(wait_ns / 1000000) + 1) < 0)
		fds[0].revents = fds[1].revents = fds[2].revents = 0;
	now_ns = fragi_now_ns();
	if ((fds[0].revents & POLLOUT) != 0) {
		int r = host_control_flush(&h->control);

		h->lost = h->lost || (r < 0 && r != -EAGAIN);
	}
	if ((fds[0].revents & ~POLLOUT) != 0)
		read_control(h, now_ns);
	if (fds[1].revents != 0)
		on_work(h);
	if (fds[2].revents != 0 && !h->end_wanted)
		begin_end(h);
	look_after_run(h, now_ns);
	beat(h, now_ns);
	judge_workerd(h, now_ns);
}

int host_run(int control_fd, int ledger_fd, int stop_fd)
{
	struct host h = {.ledger_fd = ledger_fd,
			 .stop_fd = stop_fd,
			 .beat_ns = FRAGI_BEAT_NS,
			 .dead_ns = FRAGI_DEAD_NS};

	h.work_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h.work_fd < 0) {
		log_error(NULL, "cannot start: %s", frag_strerror(-errno));
		return 1;
	}
	host_control_init(&h.control, control_fd);
	h.heard_ns = fragi_now_ns();
	while (h.state != HOST_ENDED && !h.lost)
		turn(&h);
	if (h.lost) /* operators may hang: nobody waits for them */
		_exit(WRK_HOST_EXIT_LOST);
	(void)host_control_flush(&h.control);
	if (h.failed) {
		fflush(NULL);
		_exit(0);
	}
	fw_message_free(h.wire);
	fragi_registry_destroy(h.registry);
	fragi_spec_destroy(h.spec);
	fragi_source_fini(&h.source);
	fragi_diag_fini(&h.diag);
	fragi_arena_fini(&h.arena);
	host_control_fini(&h.control);
	close(h.work_fd);
	close(ledger_fd);
	return 0;
}
