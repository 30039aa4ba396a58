// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "fraghost_rig.h"
#include "transcript.h"

/*
 * What the real fraghost answers to a workerd that this file plays: its tables of each graph, or
 * the errors in it, and what it says of each further step. Ids of processes and what takes time are
 * left out.
 */
#define HEAD "frag: 1\napplication: app\n"
#define TWO(attributes)                                                                            \
	HEAD "fragments:\n"                                                                        \
	     "  f:\n"                                                                              \
	     "    operators:\n"                                                                    \
	     "      tx: {type: ping_tx, conditions: [{type: count, count: 3}]}\n"                  \
	     "      mid: {type: forward}\n"                                                        \
	     "    flows: [tx.out -> mid.in]\n"                                                     \
	     "  g: {operators: {rx: {type: ping_rx}}}\n"                                           \
	     "flows: [{from: f.mid.out, to: g.rx.in" attributes "}]\n"
#define DIAL(parameters)                                                                           \
	HEAD "extensions: [libdial.so]\n"                                                          \
	     "fragments: {f: {operators: {dial: {type: dial, parameters: {" parameters "}}}}}\n"
/* steps: w wires, s starts, d awaits its end, D drains, 0-9 sets a parameter */
static const struct {
	const char *graph, *steps;
	bool both; /* fragments f and g */
} rows[] = {
	{TWO(""), "wsd", true},
	{TWO(", capacity: 7, policy: pop"), "ws", true},
	{TWO(", policy: latest"), "w", true},
	{TWO(""), "", false},
	{HEAD "fragments:\n"
	      "  f:\n"
	      "    resources: {pool: {type: block_memory_pool, block_size: 4M, num_blocks: 2}}\n"
	      "    operators:\n"
	      "      tx: {type: ping_tensor_tx, deadline: 10s, parameters: {allocator: $pool},\n"
	      "           conditions: [{type: count, count: 2}]}\n"
	      "      rx: {type: ping_tensor_rx, conditions: [{type: count, count: 2}]}\n"
	      "    flows: [tx -> rx]\n",
	 "wsd"},
	{HEAD "subgraphs:\n"
	      "  pair:\n"
	      "    operators: {a: {type: forward}, b: {type: forward}}\n"
	      "    flows: [a -> b]\n"
	      "    ports: {in: a.in, out: b.out}\n"
	      "fragments:\n"
	      "  f:\n"
	      "    operators:\n"
	      "      tx: {type: ping_tx, conditions: [{type: count, count: 4}]}\n"
	      "      p: {subgraph: pair}\n"
	      "      q: {subgraph: pair}\n"
	      "      rx: {type: ping_rx}\n"
	      "    flows: [tx -> p.in, p.out -> q.in, q.out -> rx]\n",
	 "wsd"},
	{DIAL("value: 3"), "ws012345678D"},
	{DIAL("value: 300"), ""},
	{DIAL("title: refused"), "ws"},
	{DIAL("valeu: 3, mode: loud"), ""},
	{HEAD "fragments: {f: {operators: {x: {type: ping_txx}, y: {type: ping_rx, extra: 1}}}}\n",
	 ""},
	{HEAD "fragments:\n  f: {operators: {x: {type: ping_rx}}}\n", ""},
	{"no graph at all", ""},
};

static const char *const sets[] = {
	"f.dial.value=7",   "f.dial.mode=hard",   "f.dial.value=101",
	"f.dial.mode=loud", "f.dial.title=other", "f.dial.valeu=1",
	"f.other.value=1",  "g.dial.value=1",     "f.dial.value=8 none",
};

static void create_of(const char *yaml, bool both)
{
	const struct fragi_spec_source source = {.graph = {"app.yaml", yaml, strlen(yaml)},
						 .app_folder = "/"};
	static const char *names[] = {"f", "g"}, *transports[] = {"shm"};
	struct fw_message message = {.kind = FW_HOST_CREATE};
	void *bytes;
	size_t size;

	cr_assert_eq(fragi_source_pack(&source, &bytes, &size), 0);
	message.create = (struct fw_host_create){.application = "app",
						 .source = bytes,
						 .source_bytes = (uint32_t)size,
						 .fragments = names,
						 .fragment_count = both ? 2 : 1,
						 .transports = transports,
						 .transport_count = 1,
						 .beat_ns = 50 * MS,
						 .dead_ns = 20000 * MS};
	tell(message);
	free(bytes);
}

/* The next message, but for rest, which is said with every beat; NULL: the socket is closed. */
static struct fw_message *next(void)
{
	struct fw_message *message = hear();

	while (message != NULL && message->kind == FW_HOST_EVENT &&
	       (message->event.state == FW_STATE_IDLE ||
		message->event.state == FW_STATE_RUNNING)) {
		fw_message_free(message);
		message = hear();
	}
	return message;
}

static bool has_failed; /* the last answer says so: nothing follows */

static void show_answer(void)
{
	struct fw_message *message = next();

	if (message == NULL) {
		fprintf(transcript, "  is gone\n");
		return;
	}
	has_failed =
		message->kind == FW_HOST_PREPARED
			? !message->prepared.ok
			: (message->kind == FW_HOST_WIRED || message->kind == FW_HOST_STARTED) &&
				  message->result.failure.code != FRAGI_FAILURE_NONE;
	if (message->kind == FW_HOST_PREPARED) {
		cr_expect_eq(message->prepared.pid, pid);
		message->prepared.pid = 0;
		for (uint32_t i = 0; i < message->prepared.address_count; i++)
			message->prepared.addresses[i].size = 0; /* of this process */
	}
	fprintf(transcript, "  %s %d/%u/%d: ", fw_kind_name(message->kind), (int)message->run,
		message->host, (int)message->epoch);
	transcript_body(message);
	fprintf(transcript, "\n");
	fw_message_free(message);
}

static void show_page(void)
{
	struct fw_host_stats stats;

	if (wrk_page_read(&page, &stats) < 0)
		return;
	for (uint32_t i = 0; i < stats.op_count; i++)
		fprintf(transcript, "  operator %u: state %u, ticks %d\n", i, stats.ops[i].state,
			(int)stats.ops[i].ticks);
	for (uint32_t i = 0; i < stats.flow_count; i++)
		fprintf(transcript, "  flow %u: sent %d, delivered %d\n", i,
			(int)stats.flows[i].sent, (int)stats.flows[i].delivered);
}

static void do_step(char step)
{
	static const char *const names[] = {['w'] = "wire", ['s'] = "start"};
	struct fw_message message = {.kind = step == 'w' ? FW_HOST_WIRE : FW_HOST_START};

	if (step == 'w' || step == 's') {
		fprintf(transcript, "%s\n", names[(int)step]);
		tell(message);
	} else if (step == 'd') {
		fprintf(transcript, "until it is done\n");
	} else if (step == 'D') {
		fprintf(transcript, "drain\n");
		tell((struct fw_message){.kind = FW_HOST_STOP, .stop = {.drain_ns = 5000 * MS}});
	} else {
		message = (struct fw_message){.kind = FW_HOST_SET};
		message.host_set.number = (uint64_t)(1 + step - '0');
		message.host_set.text = sets[step - '0'];
		message.host_set.who = "user alice";
		fprintf(transcript, "set %s\n", message.host_set.text);
		tell(message);
	}
	show_answer();
}

static void show_end(void)
{
	struct pollfd wait = {.fd = pidfd, .events = POLLIN};
	int status, number;
	char core[200];

	fprintf(transcript, "end\n");
	tell((struct fw_message){.kind = FW_HOST_STOP});
	while (poll(&wait, 1, 20) == 0)
		read_output();
	cr_assert_eq(wrk_spawn_reap(pid, &status, &number, core, sizeof(core)), 0);
	fprintf(transcript, "  ends, status %d, signal %d\n", status, number);
}

Test(host_dialogues, what_a_host_answers, .timeout = 200)
{
	setenv("FRAG_LIBRARY_PATH", built("tests/sample_plugins"), 1);
	transcript_begin();
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		start();
		fprintf(transcript, "--- %zu\n%s%s", i, rows[i].graph,
			rows[i].graph[strlen(rows[i].graph) - 1] == '\n' ? "" : "\n");
		create_of(rows[i].graph, rows[i].both);
		show_answer();
		for (const char *step = rows[i].steps; *step != '\0' && !has_failed; step++)
			do_step(*step);
		show_end();
		if (strchr(rows[i].steps, 'd') != NULL)
			show_page();
		close(control);
		close(output);
		close(pidfd);
		fw_reader_fini(&reader);
		wrk_page_fini(&page);
	}
	fclose(transcript);
	expected_compare("host/dialogues", transcript_text);
	free(transcript_text);
}
