// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <base/log.h>

static void own_catch_up(int64_t within_ns);
#define fragi_log_catch_up own_catch_up
#include <workerd/host/host.c> /* over a core and parts that this file plays */

#include "logged.h"

/* A host around its core: what its socket, its run and the clock bring, and what the core wants. */
static FILE *out;
static struct host own;

static void own_catch_up(int64_t within_ns)
{
	fprintf(out, "  counts dropped lines, %d\n", (int)within_ns);
}

/* The core: its next step has these actions; that which hears of a lost connection, its end. */
static struct host_action next_actions[HOST_ACTIONS_MAX];
static uint32_t next_count;
static int64_t deadline_ns = INT64_MAX;
static int core_result;

int host_core_create(const struct host_config *config, int64_t now_ns, struct host_core **out_core)
{
	cr_expect(config->beat_ns == 0 && now_ns > 0);
	*out_core = (struct host_core *)&own;
	return core_result;
}

void host_core_destroy(struct host_core *core)
{
	cr_expect_eq(core, (struct host_core *)&own);
	fprintf(out, "  the core is gone\n");
}

void host_core_step(struct host_core *core, const struct host_event *event, int64_t now_ns,
		    struct host_actions *actions)
{
	cr_expect(core == (struct host_core *)&own && now_ns > 0);
	fprintf(out, "  event %d", event->kind);
	if (event->message != NULL)
		fprintf(out, ", %s", fw_kind_name(event->message->kind));
	if (event->text != NULL)
		fprintf(out, ", '%s'", event->text);
	if (event->set_done != NULL)
		fprintf(out, ", set %d", (int)event->set_done->number);
	if (event->tapped != NULL)
		fprintf(out, ", tap %u, %s", event->tapped->tap,
			event->tapped->size > 0 ? "bytes" : "nothing");
	fprintf(out, "\n");
	memcpy(actions->items, next_actions, sizeof(next_actions));
	actions->count = next_count;
	next_count = 0;
	deadline_ns = INT64_MAX;
	if (event->kind == HOST_EV_CONNECTION_LOST) {
		actions->items[0] = (struct host_action){.kind = HOST_DO_EXIT, .exit_code = 6};
		actions->count = 1;
	}
}

int64_t host_core_deadline_ns(const struct host_core *core)
{
	(void)core;
	return deadline_ns;
}

/* The socket. */
static int send_result, read_result, flush_result, next_result, messages_left;

void host_control_init(struct host_control *control, int fd)
{
	*control = (struct host_control){.fd = fd};
}

void host_control_fini(struct host_control *control)
{
	(void)control;
	fprintf(out, "  the socket is closed\n");
}

int host_control_send(struct host_control *control, const struct fw_message *message)
{
	int r = send_result;

	(void)control;
	fprintf(out, "  sends %s", fw_kind_name(message->kind));
	if (message->kind == FW_HOST_PREPARED && message->prepared.error_count > 0) {
		fprintf(out, " with %s: %s", fragi_failure_name(message->prepared.errors->code),
			message->prepared.errors->sentence);
		r = 0;
	}
	fprintf(out, "\n");
	return r;
}

int host_control_flush(struct host_control *control)
{
	fprintf(out, "  flushes %d\n", (int)control->unsent_bytes);
	control->unsent_bytes = 0;
	return flush_result;
}

int host_control_read(struct host_control *control, int64_t now_ns)
{
	(void)control;
	cr_expect_gt(now_ns, 0);
	fprintf(out, "  reads\n");
	return read_result;
}

int host_control_next(struct host_control *control, struct fw_message **out_message)
{
	size_t bytes;

	(void)control;
	if (messages_left == 0)
		return next_result;
	messages_left--;
	cr_assert_eq(fw_message_copy(&(struct fw_message){.kind = FW_BEAT}, out_message, &bytes),
		     0);
	return 1;
}

/* The lease and the work. */
static int lease_result, rewire_result, run_fd = -1, events_left;
static bool has_taps;
static struct fw_message *kept;

int host_lease_hold_until(int64_t until_ns)
{
	fprintf(out, "  lease until %d\n", (int)until_ns);
	return lease_result;
}

int host_work_init(struct host_work *work, const struct host_options *options)
{
	*work = (struct host_work){.fd = -1};
	cr_expect_not_null(options);
	return 0;
}

void host_work_fini(struct host_work *work)
{
	(void)work;
	fprintf(out, "  the work is gone\n");
}

void host_work_prepare(struct host_work *work, const struct host_action *action)
{
	(void)work, (void)action;
	fprintf(out, "  prepare\n");
}

void host_work_wire(struct host_work *work, struct fw_message *request)
{
	(void)work;
	kept = request;
	fprintf(out, "  wire\n");
}

int host_work_rewire(struct host_work *work, const struct fw_message *request)
{
	(void)work;
	cr_expect_not_null(request);
	fprintf(out, "  rewire\n");
	return rewire_result;
}

void host_work_suspend(struct host_work *work, const struct fw_host_suspend *request)
{
	(void)work;
	fprintf(out, "  suspend %u\n", request->peer);
}

void host_work_look(struct host_work *work, uint32_t looks)
{
	(void)work;
	fprintf(out, "  look %u\n", looks);
}

void host_work_tap(struct host_work *work, const struct fw_host_tap *request)
{
	(void)work;
	fprintf(out, "  tap %u\n", request->tap);
}

bool host_work_passed(struct host_work *work, fragi_run_passed_fn take, void *arg)
{
	(void)work;
	cr_expect(take == send_passed && arg != NULL);
	fprintf(out, "  passed\n");
	return has_taps;
}

void host_work_traced(struct host_work *work, bool is_end, fragi_run_traced_fn take, void *arg)
{
	(void)work;
	cr_expect(take == send_traced && arg != NULL);
	fprintf(out, "  traced, end %d\n", is_end);
}

void host_work_start(struct host_work *work)
{
	(void)work;
	fprintf(out, "  start\n");
}

void host_work_set(struct host_work *work, const struct fw_host_set *request,
		   struct fw_host_set_done *out_done)
{
	(void)work;
	fprintf(out, "  set %s\n", request->text);
	*out_done = (struct fw_host_set_done){.number = request->number};
}

void host_work_drain(struct host_work *work, int64_t within_ns)
{
	(void)work;
	fprintf(out, "  drain within %d\n", (int)within_ns);
}

void host_work_yield(struct host_work *work, int64_t within_ns)
{
	(void)work;
	fprintf(out, "  yield within %d\n", (int)within_ns);
}

void host_work_halt(struct host_work *work)
{
	(void)work;
	fprintf(out, "  halt\n");
}

void host_work_destroy(struct host_work *work)
{
	(void)work;
	fprintf(out, "  destroy\n");
}

int host_work_run_fd(const struct host_work *work)
{
	(void)work;
	return run_fd;
}

bool host_work_next(struct host_work *work, struct host_event *out_event)
{
	(void)work;
	if (events_left == 0)
		return false;
	events_left--;
	*out_event = (struct host_event){.kind = HOST_EV_PEERS_READY};
	return true;
}

static void begin(void)
{
	own = (struct host){.core = (struct host_core *)&own, .stop_fd = -1, .control.fd = -1};
	own.work.fd = -1;
	next_count = 0;
	deadline_ns = INT64_MAX;
	core_result = send_result = read_result = flush_result = next_result = messages_left = 0;
	lease_result = rewire_result = events_left = 0;
	run_fd = -1;
	has_taps = false;
}

static void compare(const char *name, char **text)
{
	fclose(out);
	expected_compare(name, *text);
	free(*text);
}

/* The message is the event's; an action may keep it. */
static void step_with(struct host_action action)
{
	static const struct fw_message message = {.kind = FW_HOST_START};
	struct fw_message *copy;
	size_t bytes;

	cr_assert_eq(fw_message_copy(&message, &copy, &bytes), 0);
	fprintf(out, "action %d\n", action.kind);
	next_actions[0] = action;
	next_count = 1;
	kept = NULL;
	logged_begin();
	raise_event(&own, &(struct host_event){.kind = HOST_EV_MESSAGE, .message = copy}, copy);
	logged_end(out);
	cr_expect_eq(kept, action.kind == HOST_DO_WIRE ? copy : NULL);
	fw_message_free(kept);
}

Test(host_shell, actions_of_the_core)
{
	static const struct fw_message set_request = {.host_set = {.number = 3, .text = "a=1"}},
				       suspend = {.suspend = {.peer = 4}},
				       tap = {.host_tap = {.tap = 5}};
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	begin();
	step_with((struct host_action){.kind = HOST_DO_SEND, .message.kind = FW_BEAT});
	step_with((struct host_action){.kind = HOST_DO_PREPARE});
	step_with((struct host_action){.kind = HOST_DO_WIRE});
	step_with((struct host_action){.kind = HOST_DO_REWIRE});
	step_with((struct host_action){.kind = HOST_DO_SUSPEND, .request = &suspend});
	step_with((struct host_action){.kind = HOST_DO_YIELD, .drain_ns = 6});
	step_with((struct host_action){.kind = HOST_DO_START});
	step_with((struct host_action){.kind = HOST_DO_SET, .request = &set_request});
	step_with((struct host_action){.kind = HOST_DO_DRAIN, .drain_ns = 7});
	step_with((struct host_action){.kind = HOST_DO_LOOK, .looks = 8});
	step_with((struct host_action){.kind = HOST_DO_TAP, .request = &tap});
	step_with((struct host_action){.kind = HOST_DO_LEASE, .lease_until_ns = 9});
	step_with((struct host_action){.kind = HOST_DO_HALT});
	step_with((struct host_action){.kind = HOST_DO_DESTROY});
	step_with((struct host_action){
		.kind = HOST_DO_LOG, .level = FRAGI_LOG_WARN, .text = "so it is"});
	step_with((struct host_action){.kind = HOST_DO_EXIT, .exit_code = 3});
	cr_expect(own.has_ended && own.exit.exit_code == 3);
	fprintf(out, "nothing follows\n");
	step_with((struct host_action){.kind = HOST_DO_HALT});
	fprintf(out, "no memory for edges\n");
	begin();
	rewire_result = -ENOMEM;
	step_with((struct host_action){.kind = HOST_DO_REWIRE});
	fprintf(out, "no timer for the lease\n");
	begin();
	lease_result = -EAGAIN;
	step_with((struct host_action){.kind = HOST_DO_LEASE});
	cr_expect(own.has_ended && own.exit.exit_code == 6);
	compare("host/shell_actions", &text);
}

Test(host_shell, what_cannot_be_sent_or_read)
{
	static const int results[] = {-EMSGSIZE, -EBADF, -ENOTSOCK, -ENOBUFS};
	static const enum fw_kind kinds[] = {FW_BEAT, FW_HOST_TAPPED, FW_HOST_PREPARED,
					     FW_HOST_EVENT};
	static const int reads[][2] = {{0, 0},       {-EPIPE, 0},   {-EBADF, 0}, {-ENOTSOCK, 0},
				       {-ENOMEM, 0}, {0, -EBADMSG}, {0, -EPIPE}};
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	for (size_t i = 0; i < FRAG_COUNT_OF(results); i++)
		for (size_t k = 0; k < FRAG_COUNT_OF(kinds); k++) {
			begin();
			own.control.fd = 3;
			send_result = results[i];
			fprintf(out, "%s\n", strerrorname_np(-results[i]));
			step_with((struct host_action){.kind = HOST_DO_SEND,
						       .message.kind = kinds[k]});
			fprintf(out, "  ended %d\n", own.has_ended);
		}
	for (size_t i = 0; i < FRAG_COUNT_OF(reads); i++) {
		fprintf(out, "read %s, next %s\n", strerrorname_np(-reads[i][0]),
			strerrorname_np(-reads[i][1]));
		begin();
		own.control.fd = 3;
		read_result = reads[i][0];
		next_result = reads[i][1];
		messages_left = 2;
		read_control(&own);
		fprintf(out, "  ended %d, %d left\n", own.has_ended, messages_left);
	}
	compare("host/shell_socket", &text);
}

Test(host_shell, what_was_tapped)
{
	const struct fragi_passed passed = {.number = 1};
	const struct fragi_trace_chunk chunk = {.bytes = "trace", .size = 5};
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	begin();
	cr_expect(send_passed(&own, 4, &passed));
	own.control.unsent_bytes = 1;
	cr_expect_not(send_passed(&own, 4, &passed));
	cr_expect_not(send_traced(&own, 5, &chunk), "much waits");
	own.control.unsent_bytes = 0;
	cr_expect(send_traced(&own, 5, &chunk));
	fragi_alloc_fail_after(0, 1);
	cr_expect(send_passed(&own, 4, &passed), "it is lost");
	(void)fragi_alloc_fail_off();
	own.has_ended = true;
	cr_expect_not(send_passed(&own, 4, &passed));
	cr_expect_not(send_traced(&own, 5, &chunk));
	begin();
	next_actions[0] = (struct host_action){.kind = HOST_DO_EXIT};
	next_count = 1;
	cr_expect_not(send_traced(&own, 5, &chunk), "that was the end");
	compare("host/shell_taps", &text);
}

static int wait_for(int64_t left_ms, int fd, bool taps)
{
	begin();
	deadline_ns = left_ms == INT64_MAX ? INT64_MAX : fragi_now_ns() + left_ms * 1000000;
	own.has_taps = taps;
	return wait_ms(&own, fd);
}

Test(host_shell, how_long_it_waits)
{
	int ms = wait_for(5000, -1, true);

	cr_expect(ms > 4000 && ms <= 5001, "%d", ms);
	ms = wait_for(50, 3, false);
	cr_expect(ms > 0 && ms <= 51, "%d", ms);
	cr_expect_eq(wait_for(5000, 3, false), 101);
	cr_expect_eq(wait_for(5000, 0, false), 101, "0 is a descriptor, too");
	cr_expect_eq(wait_for(5000, 3, true), 21);
	cr_expect_eq(wait_for(-5000, 3, true), 1);
	cr_expect_eq(wait_for(-5000, -1, false), 1);
}

static void turn_once(const char *what)
{
	fprintf(out, "%s\n", what);
	turn(&own);
	fprintf(out, "  stop seen %d, taps %d, ended %d\n", own.stop_seen, own.has_taps,
		own.has_ended);
}

Test(host_shell, turns)
{
	int full[2], empty[2], stop = eventfd(1, EFD_CLOEXEC);
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	cr_assert(pipe(full) == 0 && pipe(empty) == 0);
	cr_assert_eq(write(full[1], "x", 1), 1);
	begin();
	run_fd = full[0];
	turn_once("the run has something");
	begin();
	own.work.fd = full[0];
	events_left = 2;
	has_taps = true;
	turn_once("its work is done, and there are taps");
	begin();
	own.work.fd = full[0];
	own.control.unsent_bytes = 3;
	has_taps = true;
	turn_once("there are taps, but much waits to be sent");
	begin();
	own.control.fd = full[0];
	messages_left = 1;
	turn_once("a message");
	begin();
	own.control.fd = empty[1];
	own.work.fd = full[0];
	turn_once("room in the socket, and nothing to be sent");
	own.control.unsent_bytes = 3;
	turn_once("room, and something");
	own.control.unsent_bytes = 3;
	flush_result = -EAGAIN;
	turn_once("not enough room");
	own.control.unsent_bytes = 3;
	flush_result = -EPIPE;
	turn_once("nobody reads");
	begin();
	own.stop_fd = stop;
	turn_once("stop");
	own.work.fd = full[0];
	turn_once("once only");
	begin();
	events_left = 2;
	next_actions[0] = (struct host_action){.kind = HOST_DO_EXIT};
	next_count = 1;
	own.work.fd = full[0];
	turn_once("the end");
	cr_expect_eq(events_left, 1);
	begin();
	deadline_ns = fragi_now_ns() - 1;
	turn_once("the time has come");
	for (int i = 0; i < 2; i++) {
		close(full[i]);
		close(empty[i]);
	}
	close(stop);
	compare("host/shell_turns", &text);
}

static void run_one(const char *what, struct host_action last, bool is_guest, bool hangs)
{
	struct host_options options = {.stop_fd = -1, .is_guest = is_guest};
	bool out_hangs = !hangs;
	int fds[2], code;

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	options.control_fd = eventfd(0, EFD_CLOEXEC); /* on which nothing comes */
	options.ledger_fd = fds[0];
	options.saved_fd = fds[1];
	fprintf(out, "%s, guest %d\n", what, is_guest);
	deadline_ns = fragi_now_ns();
	next_actions[0] = last;
	next_actions[0].kind = HOST_DO_EXIT;
	next_count = 1;
	logged_begin();
	code = host_run(&options, &out_hangs);
	logged_end(out);
	cr_expect_eq(out_hangs, hangs);
	fprintf(out, "  returns %d, ledger open %d, saved open %d\n", code,
		fcntl(fds[0], F_GETFD) >= 0, fcntl(fds[1], F_GETFD) >= 0);
	close(options.control_fd);
	close(fds[0]);
	close(fds[1]);
}

Test(host_shell, lives)
{
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	begin();
	for (int guest = 0; guest < 2; guest++) {
		run_one("in order", (struct host_action){.exit_code = 0}, guest, false);
		run_one("workerd is gone", (struct host_action){.exit_code = 5}, guest, true);
		run_one("operators may hang", (struct host_action){.operators_may_hang = true},
			guest, guest == 0);
	}
	core_result = -ENOMEM;
	run_one("no core", (struct host_action){.exit_code = 0}, false, false);
	compare("host/shell_lives", &text);
}
