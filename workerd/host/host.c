// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/host/host.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define LOG_TOPIC "host"
#include <base/alloc.h>
#include <base/log.h>
#include <base/stamp.h>
#include <workerd/host/control.h>
#include <workerd/host/lease.h>
#include <workerd/host/work.h>

/*
 * The shell around host_core: the socket to workerd, the run, a signal and the clock become events,
 * and what the core asks for is done. This is the control thread, which beats whatever operators
 * do.
 */
#define LOOK_NS 100000000ll /* how often a run is looked after */
#define TAPS_NS 20000000ll  /* ... while there are taps */

struct host {
	struct host_core *core;
	struct host_control control;
	struct host_work work;
	int stop_fd;
	bool stop_seen;
	bool has_taps;
	char broken[256]; /* why a frame could not be sent; empty: nothing is wrong */
	bool has_ended;
	struct host_action exit;
};

/* The driver is to know why it does not get the tables. */
static int send_too_large(struct host *h, const struct fw_message *tables)
{
	char sentence[512];
	struct fw_failure error = {.code = FRAGI_FAILURE_GRAPH_TOO_LARGE, .sentence = sentence};
	struct fw_message message = *tables;

	snprintf(
		sentence, sizeof(sentence),
		"the operators, ports and flows of one host must fit into a message of %u MiB, and be %d of each at most; divide the fragments over more hosts (`host: NAME`) or workers",
		FW_FRAME_MAX >> 20, FW_ROWS_MAX);
	message.prepared = (struct fw_host_prepared){.errors = &error, .error_count = 1};
	return host_control_send(&h->control, &message);
}

/* The control socket is closed, or something else has its number now. */
static bool is_closed_here(int r)
{
	return r == -EBADF || r == -ENOTSOCK;
}

static void describe_closed_here(const struct host *h, char *out, size_t size)
{
	snprintf(
		out, size,
		"the control socket, descriptor %d, was closed in this process: an operator or a library closes descriptors that are not its own; this host ends",
		h->control.fd);
}

static void send_frame(struct host *h, const struct fw_message *message)
{
	int r = host_control_send(&h->control, message);

	if (r == -EMSGSIZE && message->kind == FW_HOST_PREPARED)
		r = send_too_large(h, message);
	/* workerd would wait for it: better an end that is seen. It misses a BEAT by itself. */
	if (is_closed_here(r))
		describe_closed_here(h, h->broken, sizeof(h->broken));
	else if (r < 0 && message->kind != FW_BEAT && message->kind != FW_HOST_TAPPED)
		snprintf(h->broken, sizeof(h->broken),
			 "cannot send %s to workerd: %s; this host ends",
			 fw_kind_name(message->kind), frag_strerror(r));
}

static void raise_event(struct host *h, const struct host_event *event, struct fw_message *message);

static void set(struct host *h, const struct fw_host_set *request)
{
	struct fw_host_set_done done;

	host_work_set(&h->work, request, &done);
	raise_event(h, &(struct host_event){.kind = HOST_EV_SET_DONE, .set_done = &done}, NULL);
}

static void hold_lease(struct host *h, int64_t until_ns)
{
	int r = host_lease_hold_until(until_ns);

	if (r < 0)
		snprintf(
			h->broken, sizeof(h->broken),
			"the kernel has no timer that ends this host with its lease: %s; this host ends",
			frag_strerror(r));
}

/* What its operators did. Returns whether it takes more at once, where much waits in the ring. */
static bool send_traced(void *arg, uint32_t tap, const struct fragi_trace_chunk *chunk)
{
	struct host *h = arg;
	const struct fw_tapped tapped = {.tap = tap, .passed = chunk->bytes, .size = chunk->size};

	raise_event(h, &(struct host_event){.kind = HOST_EV_TAPPED, .tapped = &tapped}, NULL);
	return !h->has_ended && h->control.unsent_bytes == 0;
}

/* Its operators rest. What is still in the ring of traces is sent by workerd, which has it, too. */
static void destroy(struct host *h)
{
	host_work_traced(&h->work, true, send_traced, h);
	host_work_destroy(&h->work);
}

/* message: what the event brought. Taken, and set to NULL, when an action keeps it. */
static void perform(struct host *h, const struct host_action *action, struct fw_message **message)
{
	switch (action->kind) {
	case HOST_DO_SEND:
		send_frame(h, &action->message);
		break;
	case HOST_DO_PREPARE:
		host_work_prepare(&h->work, action);
		break;
	case HOST_DO_WIRE:
		host_work_wire(&h->work, *message);
		*message = NULL;
		break;
	case HOST_DO_REWIRE:
		if (host_work_rewire(&h->work, *message) < 0)
			snprintf(h->broken, sizeof(h->broken),
				 "no memory is left for edges to hosts that were started again");
		break;
	case HOST_DO_SUSPEND:
		host_work_suspend(&h->work, &action->request->suspend);
		break;
	case HOST_DO_YIELD:
		host_work_yield(&h->work, action->drain_ns);
		break;
	case HOST_DO_START:
		host_work_start(&h->work);
		break;
	case HOST_DO_SET:
		set(h, &action->request->host_set);
		break;
	case HOST_DO_DRAIN:
		host_work_drain(&h->work, action->drain_ns);
		break;
	case HOST_DO_LOOK:
		host_work_look(&h->work, action->looks);
		break;
	case HOST_DO_TAP:
		host_work_tap(&h->work, &action->request->host_tap);
		break;
	case HOST_DO_LEASE:
		hold_lease(h, action->lease_until_ns);
		break;
	case HOST_DO_HALT:
		host_work_halt(&h->work);
		break;
	case HOST_DO_DESTROY:
		destroy(h);
		break;
	case HOST_DO_LOG:
		fragi_log(action->level, NULL, "%s", action->text);
		break;
	case HOST_DO_EXIT:
		h->has_ended = true;
		h->exit = *action;
		break;
	}
}

/* message: the event's, which is given up; or NULL. */
static void raise_event(struct host *h, const struct host_event *event, struct fw_message *message)
{
	struct host_actions actions;

	if (!h->has_ended) {
		host_core_step(h->core, event, fragi_now_ns(), &actions);
		for (uint32_t i = 0; i < actions.count; i++)
			perform(h, &actions.items[i], &message);
	}
	fw_message_free(message);
	if (!h->has_ended && h->broken[0] != '\0')
		raise_event(
			h, &(struct host_event){.kind = HOST_EV_CONNECTION_LOST, .text = h->broken},
			NULL);
}

static void lose_connection(struct host *h, const char *why)
{
	raise_event(h, &(struct host_event){.kind = HOST_EV_CONNECTION_LOST, .text = why}, NULL);
}

static void read_control(struct host *h)
{
	int r = host_control_read(&h->control, fragi_now_ns());
	bool is_closed = r == -EPIPE;
	struct fw_message *message;
	char why[256];

	while (r >= 0 && (r = host_control_next(&h->control, &message)) > 0)
		raise_event(h, &(struct host_event){.kind = HOST_EV_MESSAGE, .message = message},
			    message);
	if (r >= 0)
		return;
	if (is_closed_here(r))
		describe_closed_here(h, why, sizeof(why));
	else
		snprintf(why, sizeof(why), "workerd sent what cannot be read: %s",
			 frag_strerror(r));
	lose_connection(h, is_closed ? "" : why);
}

/* A message that has passed a tap. While anything else waits to be sent, it stays where it is. */
static bool send_passed(void *arg, uint32_t tap, const struct fragi_passed *passed)
{
	const struct fw_message message = {.kind = FW_PASSED, .passed = *passed};
	struct host *h = arg;
	struct fw_tapped tapped = {.tap = tap};
	uint8_t *frame;
	size_t size;

	if (h->control.unsent_bytes > 0 || h->has_ended)
		return false;
	if (fw_encode(&message, &frame, &size) < 0)
		return true;
	tapped.passed = frame;
	tapped.size = (uint32_t)size;
	raise_event(h, &(struct host_event){.kind = HOST_EV_TAPPED, .tapped = &tapped}, NULL);
	fragi_free(frame);
	return true;
}

static int wait_ms(const struct host *h, int run_fd)
{
	int64_t wait_ns = host_core_deadline_ns(h->core) - fragi_now_ns();
	int64_t look_ns = h->has_taps ? TAPS_NS : LOOK_NS;

	if (run_fd >= 0 && wait_ns > look_ns)
		wait_ns = look_ns;
	return wait_ns < 0 ? 1 : (int)(wait_ns / 1000000) + 1;
}

static void turn(struct host *h)
{
	int run_fd = host_work_run_fd(&h->work);
	struct pollfd fds[4] = {
		{.fd = h->control.fd,
		 .events = (short)(POLLIN | (h->control.unsent_bytes > 0 ? POLLOUT : 0))},
		{.fd = h->work.fd, .events = POLLIN},
		{.fd = h->stop_seen ? -1 : h->stop_fd, .events = POLLIN},
		{.fd = run_fd, .events = POLLIN},
	};
	struct host_event event;

	if (poll(fds, 4, wait_ms(h, run_fd)) < 0)
		fds[0].revents = fds[1].revents = fds[2].revents = 0;
	if ((fds[0].revents & POLLOUT) != 0) {
		int r = host_control_flush(&h->control);

		if (r < 0 && r != -EAGAIN)
			lose_connection(h, "");
	}
	if ((fds[0].revents & ~POLLOUT) != 0)
		read_control(h);
	if (fds[2].revents != 0) {
		h->stop_seen = true;
		raise_event(h, &(struct host_event){.kind = HOST_EV_STOP}, NULL);
	}
	while (!h->has_ended && host_work_next(&h->work, &event))
		raise_event(h, &event, NULL);
	h->has_taps = host_work_passed(&h->work, send_passed, h);
	/* while anything else waits to be sent, it stays in the ring */
	if (h->has_taps && h->control.unsent_bytes == 0)
		host_work_traced(&h->work, false, send_traced, h);
	if (fragi_now_ns() >= host_core_deadline_ns(h->core)) {
		fragi_log_catch_up(0);
		raise_event(h, &(struct host_event){.kind = HOST_EV_TIMER}, NULL);
	}
}

/* Whether nothing may be taken away: what a failure left, unless it is known to be at rest. */
static bool may_hang(const struct host *h, const struct host_options *options)
{
	return h->exit.operators_may_hang && (!options->is_guest || h->work.run_hangs);
}

int host_run(const struct host_options *options, bool *out_hangs)
{
	const struct host_config config = {0};
	static struct host h; /* what operators that hang use stays within reach */
	int r;

	h = (struct host){.stop_fd = options->stop_fd};
	r = host_work_init(&h.work, options);
	*out_hangs = false;
	if (r == 0)
		r = host_core_create(&config, fragi_now_ns(), &h.core);
	if (r < 0) {
		log_error(NULL, "cannot start: %s", frag_strerror(r));
		return 1;
	}
	host_control_init(&h.control, options->control_fd);
	while (!h.has_ended)
		turn(&h);
	*out_hangs = true;
	if (h.exit.exit_code != 0) /* workerd is gone: nobody waits for what is unsent */
		return h.exit.exit_code;
	(void)host_control_flush(&h.control);
	if (may_hang(&h, options)) {
		fflush(NULL);
		return 0;
	}
	*out_hangs = false;
	host_work_fini(&h.work);
	host_core_destroy(h.core);
	host_control_fini(&h.control);
	close(options->ledger_fd);
	if (options->saved_fd > 0)
		close(options->saved_fd);
	return 0;
}
