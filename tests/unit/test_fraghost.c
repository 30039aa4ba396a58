// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/stamp.h>
#include <text/spec.h>
#include <wire/frame.h>
#include <workerd/lines.h>
#include <workerd/page.h>
#include <workerd/spawn.h>

#include "fraghost_rig.h"

TestSuite(fraghost, .init = start, .fini = finish, .timeout = 100);

static void expect_end(int status, int number)
{
	struct pollfd wait = {.fd = pidfd, .events = POLLIN};
	int64_t end_ns = fragi_now_ns() + PATIENCE_NS;
	int got_status, got_number, ended = 0;
	char core[200];

	while (ended == 0 && fragi_now_ns() < end_ns) {
		read_output();
		ended = poll(&wait, 1, 20);
	}
	cr_assert_eq(ended, 1);
	cr_assert_eq(wrk_spawn_reap(pid, &got_status, &got_number, core, sizeof(core)), 0);
	read_output();
	cr_expect_eq(got_status, status, "status %d: %s", got_status, text);
	cr_expect_eq(got_number, number, "signal %d: %s", got_number, text);
}

static void create(const char *yaml, int64_t dead_ns)
{
	const struct fragi_spec_source source = {.graph = {"app.yaml", yaml, strlen(yaml)},
						 .app_folder = "/"};
	static const char *names[] = {"f"};
	struct fw_message message = {.kind = FW_HOST_CREATE};
	void *bytes;
	size_t size;

	cr_assert_eq(fragi_source_pack(&source, &bytes, &size), 0);
	message.create = (struct fw_host_create){.application = "app",
						 .source = bytes,
						 .source_bytes = (uint32_t)size,
						 .fragments = names,
						 .fragment_count = 1,
						 .beat_ns = 50 * MS,
						 .dead_ns = dead_ns};
	tell(message);
	free(bytes);
}

#define PING                                                                                       \
	"frag: 1\n"                                                                                \
	"application: app\n"                                                                       \
	"fragments:\n"                                                                             \
	"  f:\n"                                                                                   \
	"    operators:\n"                                                                         \
	"      tx: {type: ping_tx, conditions: [{type: count, count: %s}]}\n"                      \
	"      rx: {type: ping_rx}\n"                                                              \
	"    flows: [tx.out -> rx.in]\n"

static const char *ping(const char *count)
{
	static char yaml[512];

	snprintf(yaml, sizeof(yaml), PING, count);
	return yaml;
}

/* Hears messages up to one of that kind (and state, for events). */
static struct fw_message *hear_kind(enum fw_kind kind, enum fw_host_state state)
{
	struct fw_message *message;

	while ((message = hear()) != NULL) {
		if (message->kind == kind &&
		    (kind != FW_HOST_EVENT || message->event.state == state))
			return message;
		fw_message_free(message);
	}
	read_output();
	cr_assert_fail("the host went before it sent %s; it wrote: %s", fw_kind_name(kind), text);
	return NULL;
}

static void up_to_started(const char *yaml)
{
	struct fw_message *message;

	create(yaml, 5000 * MS);
	message = hear_kind(FW_HOST_PREPARED, 0);
	cr_assert(message->prepared.ok, "%s",
		  message->prepared.error_count > 0 ? message->prepared.errors[0].sentence : "?");
	cr_expect_eq(message->prepared.pid, pid);
	cr_expect_eq(message->run, 7);
	cr_expect_eq(message->host, 1);
	cr_expect_eq(message->epoch, 3);
	cr_assert_eq(message->prepared.fragment_count, 1);
	cr_assert_eq(message->prepared.fragments[0].op_count, 2);
	cr_expect_str_eq(message->prepared.fragments[0].ops[0].name, "tx");
	cr_expect_eq(message->prepared.flow_count, 1);
	fw_message_free(message);
	tell((struct fw_message){.kind = FW_HOST_WIRE});
	message = hear_kind(FW_HOST_WIRED, 0);
	cr_assert(message->result.failure.code == FRAGI_FAILURE_NONE, "%s",
		  message->result.failure.sentence);
	fw_message_free(message);
	tell((struct fw_message){.kind = FW_HOST_START});
	message = hear_kind(FW_HOST_STARTED, 0);
	cr_assert(message->result.failure.code == FRAGI_FAILURE_NONE, "%s",
		  message->result.failure.sentence);
	fw_message_free(message);
}

Test(fraghost, runs_a_fragment_and_ends_when_told)
{
	struct fw_host_stats stats;

	up_to_started(ping("10"));
	fw_message_free(hear_kind(FW_HOST_EVENT, FW_STATE_DONE));
	tell((struct fw_message){.kind = FW_HOST_STOP});
	expect_end(0, 0);
	cr_expect_gt(beats, 0);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_assert_eq(stats.op_count, 2);
	cr_expect_eq(stats.ops[0].ticks, 10);
	cr_assert_eq(stats.flow_count, 1);
	cr_expect_eq(stats.flows[0].sent, 10);
	cr_expect_eq(stats.flows[0].delivered, 10);
}

/* Started is not yet running: a busy machine may let the stop overtake the first message. */
static void until_something_was_sent(void)
{
	struct fw_host_stats stats = {0};

	for (int i = 0; i < 30000; i++) {
		if (wrk_page_read(&page, &stats) == 0 && stats.flow_count > 0 &&
		    stats.flows[0].sent > 0)
			return;
		usleep(1000);
	}
	cr_assert_fail("nothing was sent");
}

Test(fraghost, drains_when_told_to_and_waits_for_its_end)
{
	struct fw_host_stats stats;

	up_to_started(ping("1000000000"));
	until_something_was_sent();
	tell((struct fw_message){.kind = FW_HOST_STOP, .stop = {.drain_ns = 5000 * MS}});
	fw_message_free(hear_kind(FW_HOST_EVENT, FW_STATE_DONE));
	tell((struct fw_message){.kind = FW_HOST_STOP});
	expect_end(0, 0);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_expect_gt(stats.flows[0].sent, 0);
	cr_expect_eq(stats.flows[0].sent, stats.flows[0].delivered);
}

Test(fraghost, stops_at_once_and_counts_what_is_left)
{
	struct fw_host_stats stats;
	uint64_t dropped = 0;

	up_to_started(ping("1000000000"));
	tell((struct fw_message){.kind = FW_HOST_STOP});
	expect_end(0, 0);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		dropped += stats.flows[0].rx_dropped[i] + stats.flows[0].tx_dropped[i];
	cr_expect_eq(stats.flows[0].sent, stats.flows[0].delivered + dropped);
}

Test(fraghost, sigterm_is_an_orderly_stop)
{
	up_to_started(ping("1000000000"));
	kill(pid, SIGTERM);
	expect_end(0, 0);
}

Test(fraghost, errors_of_a_graph_come_back_with_their_place)
{
	struct fw_message *message;

	create("frag: 1\napplication: app\nfragments:\n  f: {operators: {x: {type: ping_txx}}}\n",
	       5000 * MS);
	message = hear_kind(FW_HOST_PREPARED, 0);
	cr_expect_not(message->prepared.ok);
	cr_assert_gt(message->prepared.error_count, 0);
	cr_expect_eq(message->prepared.errors[0].code, FRAGI_FAILURE_GRAPH_INVALID);
	cr_expect_str_eq(message->prepared.errors[0].file, "app.yaml");
	cr_expect_eq(message->prepared.errors[0].line, 4);
	cr_expect_eq(message->prepared.errors[0].column, 19);
	cr_expect(strstr(message->prepared.errors[0].sentence, "ping_tx"), "%s",
		  message->prepared.errors[0].sentence);
	fw_message_free(message);
	tell((struct fw_message){.kind = FW_HOST_STOP});
	expect_end(0, 0);
}

Test(fraghost, a_library_that_is_missing_is_called_so)
{
	struct fw_message *message;

	create("frag: 1\napplication: app\nfragments:\n"
	       "  f: {extensions: [libnowhere.so], operators: {x: {type: ping_tx}}}\n",
	       5000 * MS);
	message = hear_kind(FW_HOST_PREPARED, 0);
	cr_expect_not(message->prepared.ok);
	cr_assert_gt(message->prepared.error_count, 0);
	cr_expect_eq(message->prepared.errors[0].code, FRAGI_FAILURE_LIBRARY_MISSING);
	cr_expect(strstr(message->prepared.errors[0].sentence, "libnowhere.so"), "%s",
		  message->prepared.errors[0].sentence);
	fw_message_free(message);
}

Test(fraghost, ends_with_its_workerds_socket)
{
	up_to_started(ping("1000000000"));
	close(control);
	control = -1;
	expect_end(3, 0);
}

Test(fraghost, ends_when_workerd_is_silent)
{
	int64_t from;

	create(ping("1000000000"), 300 * MS);
	fw_message_free(hear_kind(FW_HOST_PREPARED, 0));
	from = fragi_now_ns();
	expect_end(3, 0);
	cr_expect_geq(fragi_now_ns() - from, 200 * MS);
	cr_expect(strstr(text, "workerd has not been heard"), "%s", text);
}

Test(fraghost, frames_out_of_turn_are_ignored)
{
	tell((struct fw_message){.kind = FW_HOST_START});
	up_to_started(ping("10"));
	tell((struct fw_message){.kind = FW_HOST_START});
	tell((struct fw_message){.kind = FW_HOST_WIRE});
	fw_message_free(hear_kind(FW_HOST_EVENT, FW_STATE_DONE));
	tell((struct fw_message){.kind = FW_HOST_STOP});
	expect_end(0, 0);
}

Test(fraghost, garbage_on_its_socket_ends_it)
{
	cr_assert_eq(send(control, "\xff\xff\xff\xff", 4, MSG_NOSIGNAL), 4);
	expect_end(3, 0);
}

Test(fraghost, what_operators_log_carries_their_name)
{
	up_to_started(ping("3"));
	fw_message_free(hear_kind(FW_HOST_EVENT, FW_STATE_DONE));
	tell((struct fw_message){.kind = FW_HOST_STOP});
	expect_end(0, 0);
	cr_expect(strstr(text, "app/f.rx: "), "%s", text);
}
