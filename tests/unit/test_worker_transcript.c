// SPDX-License-Identifier: Apache-2.0
#include "worker_world.h"
#include "transcript.h"

/* What the worker's core does and says in the life of an application. */
static void note_action(const struct wrk_action *action)
{
	static const char *const levels[] = {
		[FRAGI_LOG_ERROR] = "error", [FRAGI_LOG_WARN] = "warn", [FRAGI_LOG_INFO] = "info"};

	switch (action->kind) {
	case WRK_DO_CONNECT:
		fprintf(transcript, "  connects (%d)\n", (int)action->connection);
		break;
	case WRK_DO_DISCONNECT:
		fprintf(transcript, "  disconnects (%d)\n", (int)action->connection);
		break;
	case WRK_DO_SEND_DRIVER:
		transcript_message("to the driver", action->message);
		break;
	case WRK_DO_REPORTER_SESSION:
		fprintf(transcript, "  keeps its session (%llu)\n",
			(unsigned long long)action->connection);
		break;
	case WRK_DO_REPORTER_HOST:
	case WRK_DO_SEND_SAVED:
	case WRK_DO_TAKE_SAVED:
	case WRK_DO_PROMOTE_SAVED:
	case WRK_DO_FORGET_SAVED:
	case WRK_DO_EXAMINE:
		break;
	case WRK_DO_SPAWN:
		fprintf(transcript, "  spawns %u for %s\n", action->host,
			action->message->create.application);
		break;
	case WRK_DO_SEND_HOST:
		transcript_message("to the host", action->message);
		break;
	case WRK_DO_SIGNAL_HOST:
		fprintf(transcript, "  signal %d to %u\n", action->signal, action->host);
		break;
	case WRK_DO_SAMPLE_HOST:
		fprintf(transcript, "  samples %u\n", action->host);
		break;
	case WRK_DO_LOG:
		if (action->level >= FRAGI_LOG_INFO)
			fprintf(transcript, "  %s: %s%s%s\n", levels[action->level],
				action->subject != NULL ? action->subject : "",
				action->subject != NULL ? ": " : "", action->text);
		break;
	case WRK_DO_EXIT:
		fprintf(transcript, "  exits with %d\n", action->exit_code);
		break;
	}
}

static void note(const char *what)
{
	fprintf(transcript, "%s\n", what);
	for (size_t i = 0; i < actions.count; i++)
		note_action(&actions.items[i]);
	transcript_deadline(wrk_core_deadline_ns(core), now);
}

static void note_step(const char *what, struct wrk_event event)
{
	cr_assert_eq(step(event), 0);
	note(what);
}

/* The timer, each time that it is due within that time. */
static void note_time(int64_t ns)
{
	int64_t until = now + ns;

	while (wrk_core_deadline_ns(core) <= until) {
		now = wrk_core_deadline_ns(core);
		note_step("the timer", (struct wrk_event){.kind = WRK_EVENT_TIMER});
	}
	now = until;
}

static void note_driver(const char *what, struct fw_message message)
{
	note_step(what, (struct wrk_event){.kind = WRK_EVENT_DRIVER_MESSAGE,
					   .connection = seen_connection,
					   .message = &message});
}

static void note_host(const char *what, struct fw_message message)
{
	note_step(what, (struct wrk_event){.kind = WRK_EVENT_HOST_MESSAGE,
					   .host = seen_host,
					   .message = &message});
}

static void come_up(bool once)
{
	grace_ns = 500 * MS;
	make(once);
	transcript_begin();
	note_step("it starts", (struct wrk_event){.kind = WRK_EVENT_START});
	note_step("the driver is not there", (struct wrk_event){.kind = WRK_EVENT_CONNECT_FAILED,
								.connection = seen_connection,
								.text = "connection refused"});
	note_time(200 * MS);
	note_step("it is there", (struct wrk_event){.kind = WRK_EVENT_CONNECTED,
						    .connection = seen_connection,
						    .text = "10.0.0.2"});
	note_driver("it answers", welcome);
	note_driver("a host is wanted", create_of(7, 1, 1));
	note_step(
		"it is there",
		(struct wrk_event){.kind = WRK_EVENT_HOST_SPAWNED, .host = seen_host, .pid = 4711});
}

/* Its operators are tx and detect. */
static void host_prepared(void)
{
	static struct fw_op ops[] = {{.name = "tx", .type = "ping_tx"},
				     {.name = "detect", .type = "detector"}};
	static struct fw_fragment fragments[] = {{.name = "fragment1", .ops = ops, .op_count = 2}};
	struct fw_message message = host_frame(FW_HOST_PREPARED);

	message.prepared =
		(struct fw_host_prepared){.ok = true, .fragments = fragments, .fragment_count = 1};
	note_host("the host has prepared", message);
}

static void note_sample(uint64_t ticks)
{
	struct fw_op_stats ops[2] = {{.ticks = ticks}, {.ticks = 17, .running = true}};
	struct fw_host_stats stats = {.ops = ops, .op_count = 2};

	note_step("its page is read", (struct wrk_event){.kind = WRK_EVENT_HOST_SAMPLED,
							 .host = seen_host,
							 .stats = &stats});
}

static void note_exit(int status, int number, const char *core_file)
{
	static const char *lines[] = {"last", "words"};
	struct fw_op_stats ops[2] = {{.ticks = 30}, {.ticks = 17, .running = number != 0}};
	struct fw_host_stats stats = {.ops = ops, .op_count = 2};
	const struct wrk_exited how = {.status = status,
				       .signal = number,
				       .core_file = core_file,
				       .stats = &stats,
				       .lines = lines,
				       .line_count = 2};

	note_step("the host is gone", (struct wrk_event){.kind = WRK_EVENT_HOST_EXITED,
							 .host = seen_host,
							 .exited = &how});
}

static const char in_order[] =
	"it starts\n"
	"  connects (1)\n"
	"  waits for 5.000 s\n"
	"the driver is not there\n"
	"  info: waiting for the driver at 127.0.0.1:57777: connection refused\n"
	"  waits for 0.087 s\n"
	"the timer\n"
	"  connects (2)\n"
	"  waits for 5.000 s\n"
	"it is there\n"
	"  to the driver: HELLO: major: 1, minor: 18, role: 1, name: \"a\", fragments: [\"fragment1\"], worker_address: \"10.0.0.2\", node: \"boot\", version: \"0.1.0\", clock: \"clock\", memory: \"memory\", local_address: \"10.0.0.2\"\n"
	"  waits for 0.250 s\n"
	"it answers\n"
	"  keeps its session (2)\n"
	"  info: attached to the driver at 127.0.0.1:57777 as a#2\n"
	"  waits for 0.000 s\n"
	"a host is wanted\n"
	"  spawns 1 for app\n"
	"  waits for 0.000 s\n"
	"it is there\n"
	"  info: app/fragment1: runs fragment1 (fraghost 4711)\n"
	"  waits for 0.000 s\n"
	"the host has prepared\n"
	"  to the driver: HOST_PREPARED of host 1, run 7, epoch 1: ok: 1, fragments: [{name: \"fragment1\", ops: [{name: \"tx\", type: \"ping_tx\"}, {name: \"detect\", type: \"detector\"}]}]\n"
	"  waits for 0.000 s\n"
	"it shall wire\n"
	"  to the host: HOST_WIRE of host 1, run 7, epoch 1: \n"
	"  waits for 0.000 s\n"
	"it is wired\n"
	"  to the driver: HOST_WIRED of host 1, run 7, epoch 1: \n"
	"  waits for 0.000 s\n"
	"it shall start\n"
	"  to the host: HOST_START of host 1, run 7, epoch 1: \n"
	"  waits for 0.000 s\n"
	"it runs\n"
	"  to the driver: HOST_STARTED of host 1, run 7, epoch 1: \n"
	"  waits for 0.000 s\n"
	"the timer\n"
	"  samples 1\n"
	"  waits for 0.250 s\n"
	"the timer\n"
	"  samples 1\n"
	"  waits for 0.250 s\n"
	"its page is read\n"
	"  to the driver: HOST_STATS of host 1, run 7, epoch 1: ops: [{ticks: 20}, {running: 1, ticks: 17}]\n"
	"  waits for 0.200 s\n"
	"it shall drain\n"
	"  to the host: HOST_STOP of host 1, run 7, epoch 1: drain_ns: 5000000000\n"
	"  waits for 0.200 s\n"
	"it has\n"
	"  to the driver: HOST_EVENT of host 1, run 7, epoch 1: state: 3\n"
	"  waits for 0.200 s\n"
	"it shall end\n"
	"  to the host: HOST_STOP of host 1, run 7, epoch 1: \n"
	"  waits for 0.200 s\n"
	"the host is gone\n"
	"  info: app/fragment1: fragment1 ended: done\n"
	"  to the driver: HOST_STATS of host 1, run 7, epoch 1: final: 1, ops: [{ticks: 30}, {ticks: 17}]\n"
	"  to the driver: HOST_EXIT of host 1, run 7, epoch 1: lines: [\"last\", \"words\"], asked: 1\n"
	"  waits for 0.200 s\n"
	"the application has ended\n"
	"  to the driver: LEAVE: reason: \"it has served its application (--once)\"\n"
	"  disconnects (2)\n"
	"  exits with 0\n"
	"  waits\n";

Test(worker_transcript, a_host_that_ends_in_order, .fini = finish)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);
	struct fw_message event = host_frame(FW_HOST_EVENT);

	come_up(true);
	host_prepared();
	note_driver("it shall wire", host_frame(FW_HOST_WIRE));
	note_host("it is wired", host_frame(FW_HOST_WIRED));
	note_driver("it shall start", host_frame(FW_HOST_START));
	note_host("it runs", host_frame(FW_HOST_STARTED));
	note_time(300 * MS);
	note_sample(20);
	stop.stop.drain_ns = 5000 * MS;
	note_driver("it shall drain", stop);
	event.event.state = FW_STATE_DONE;
	note_host("it has", event);
	stop.stop.drain_ns = 0;
	note_driver("it shall end", stop);
	note_exit(0, 0, NULL);
	app_ended(7, 0);
	note("the application has ended");
	transcript_expect(in_order);
}

static const char crash[] =
	"the host is gone\n"
	"  error: app/fragment1: fraghost 4711 crashed in fragment1.detect, tick 17: signal 11 (SIGSEGV); its core file is /tmp/core\n"
	"  to the driver: HOST_STATS of host 1, run 7, epoch 1: final: 1, ops: [{ticks: 30}, {running: 1, ticks: 17}]\n"
	"  to the driver: HOST_EXIT of host 1, run 7, epoch 1: exit_code: 139, signal: 11, failure: {code: 22, sentence: \"fraghost 4711 crashed in fragment1.detect, tick 17: signal 11 (SIGSEGV); its core file is /tmp/core\", op: \"fragment1.detect\"}, lines: [\"last\", \"words\"]\n"
	"  waits for 0.000 s\n"
	"another one is wanted\n"
	"  spawns 2 for app\n"
	"  waits for 0.000 s\n"
	"it is there\n"
	"  info: app/fragment1: runs fragment1 (fraghost 4712)\n"
	"  waits for 0.000 s\n"
	"an old epoch is wanted\n"
	"  warn: refused HOST_CREATE of host 2 of run 8: epoch 1 is old\n"
	"  waits for 0.000 s\n"
	"the driver goes\n"
	"  warn: lost the driver at 127.0.0.1:57777: end of file; its applications end here\n"
	"  signal 15 to 2\n"
	"  info: waiting for the driver at 127.0.0.1:57777: end of file\n"
	"  waits for 0.000 s\n"
	"the timer\n"
	"  samples 2\n"
	"  waits for 0.056 s\n"
	"the timer\n"
	"  connects (3)\n"
	"  waits for 0.194 s\n"
	"the host is gone\n"
	"  error: app/fragment1: fraghost 4712 of fragment1 was ended: its driver was lost\n"
	"  waits for 4.856 s\n"
	"told to end\n"
	"  disconnects (3)\n"
	"  exits with 0\n"
	"  waits\n";

Test(worker_transcript, a_host_that_crashes_and_a_driver_that_goes, .fini = finish)
{
	come_up(false);
	host_prepared();
	transcript_forget();
	note_exit(0, SIGSEGV, "its core file is /tmp/core");
	note_driver("another one is wanted", create_of(8, 2, 1));
	note_step(
		"it is there",
		(struct wrk_event){.kind = WRK_EVENT_HOST_SPAWNED, .host = seen_host, .pid = 4712});
	note_driver("an old epoch is wanted", create_of(8, 2, 1));
	note_step("the driver goes", (struct wrk_event){.kind = WRK_EVENT_DRIVER_LOST,
							.connection = seen_connection,
							.text = "end of file"});
	note_time(200 * MS);
	note_exit(0, 0, NULL);
	note_step("told to end", (struct wrk_event){.kind = WRK_EVENT_STOP});
	transcript_expect(crash);
}

static const char silent[] =
	"3 s of silence\n"
	"  waits for 0.250 s\n"
	"the host is gone\n"
	"  error: app/fragment1: fraghost 4711 of fragment1 was ended: its control thread has not been heard for 3.0 s\n"
	"  to the driver: HOST_STATS of host 1, run 7, epoch 1: final: 1, ops: [{ticks: 30}, {running: 1, ticks: 17}]\n"
	"  to the driver: HOST_EXIT of host 1, run 7, epoch 1: exit_code: 137, signal: 9, failure: {code: 25, sentence: \"fraghost 4711 of fragment1 was ended: its control thread has not been heard for 3.0 s\"}, lines: [\"last\", \"words\"]\n"
	"  waits for 0.250 s\n"
	"another one is wanted\n"
	"  spawns 2 for app\n"
	"  waits for 0.250 s\n"
	"it is there\n"
	"  info: app/fragment1: runs fragment1 (fraghost 4712)\n"
	"  waits for 0.250 s\n"
	"told to end\n"
	"  info: told to end: stops 1 host\n"
	"  waits for 0.250 s\n"
	"another one is wanted\n"
	"  to the driver: HOST_EXIT of host 1, run 9, epoch 1: exit_code: 3, failure: {code: 29, sentence: \"worker a has been told to end\"}\n"
	"  waits for 0.250 s\n"
	"the timer\n"
	"  samples 2\n"
	"  waits for 0.250 s\n"
	"the timer\n"
	"  samples 2\n"
	"  signal 15 to 2\n"
	"  waits for 0.250 s\n"
	"told again\n"
	"  signal 9 to 2\n"
	"  waits for 0.150 s\n"
	"the host is gone\n"
	"  info: app/fragment1: fragment1 was ended: this worker was told to end\n"
	"  to the driver: HOST_STATS of host 2, run 8, epoch 1: final: 1, ops: [{ticks: 30}, {running: 1, ticks: 17}]\n"
	"  to the driver: HOST_EXIT of host 2, run 8, epoch 1: exit_code: 137, signal: 9, failure: {code: 30, sentence: \"fraghost 4712 of fragment1 was ended: its workerd was told to end\"}, lines: [\"last\", \"words\"], asked: 1\n"
	"  to the driver: LEAVE: reason: \"it was told to end\"\n"
	"  disconnects (2)\n"
	"  exits with 0\n"
	"  waits\n";

Test(worker_transcript, a_host_that_says_nothing_and_a_worker_that_is_told_to_end, .fini = finish)
{
	come_up(false);
	transcript_forget();
	for (int i = 0; i < 13; i++) {
		timers_until(now + 250 * MS, WRK_DO_EXIT);
		from_driver(&beat);
	}
	note("3 s of silence");
	note_exit(0, SIGKILL, NULL);
	note_driver("another one is wanted", create_of(8, 2, 1));
	note_step(
		"it is there",
		(struct wrk_event){.kind = WRK_EVENT_HOST_SPAWNED, .host = seen_host, .pid = 4712});
	note_step("told to end", (struct wrk_event){.kind = WRK_EVENT_STOP});
	note_driver("another one is wanted", create_of(9, 1, 1));
	note_time(600 * MS);
	note_step("told again", (struct wrk_event){.kind = WRK_EVENT_STOP});
	note_exit(0, SIGKILL, NULL);
	transcript_expect(silent);
}
