// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"
#include "transcript.h"

/* What the driver's core does and says in the life of an application. */
static size_t lines_seen, closed_seen;

static void note(struct world *w, const char *what)
{
	fprintf(transcript, "%s\n", what);
	for (const char *line = w->log + lines_seen; *line != '\0'; line = strchr(line, '\n') + 1)
		fprintf(transcript, "  | %.*s\n", (int)strcspn(line, "\n"), line);
	lines_seen = strlen(w->log);
	for (size_t i = 0; i < w->sent_count; i++) {
		char to[8];

		if (w->sent[i].connection == 0)
			continue;
		snprintf(to, sizeof(to), "%c", (char)('a' + w->sent[i].connection - 1));
		transcript_message(to, w->sent[i].message);
		w->sent[i].connection = 0;
	}
	for (; closed_seen < w->closed_count; closed_seen++)
		fprintf(transcript, "  closes %c\n", (char)('a' + w->closed[closed_seen] - 1));
	if (w->progress[0] != '\0')
		fprintf(transcript, "  shows: %s\n", w->progress);
	w->progress[0] = '\0';
	transcript_deadline(drv_core_deadline_ns(w->core), w->now_ns);
}

/* The summary, as programs read it. */
static void note_summary(const struct world *w)
{
	cr_assert(w->ended);
	fprintf(transcript, "%s", w->json);
}

static void three_come(struct world *w)
{
	hello(w, 1, "a", "f1");
	hello_from(w, 2, "b", "f2", "node", "127.0.0.1");
	hello_by_clock(w, 3, "c", "f3", "node", "other clock", "127.0.0.1");
}

static void all_say(struct world *w, enum fw_kind kind)
{
	for (uint32_t host = 1; host <= 3; host++)
		say_result(w, host, host, kind);
}

static const char three_fragments[] =
	"frag: 1\n"
	"application: app\n"
	"fragments:\n"
	"  f1: {operators: {tx: {type: t}}}\n"
	"  f2: {operators: {rx: {type: t}}}\n"
	"  f3: {operators: {rx: {type: t}}}\n"
	"flows: [f1.tx.out -> f2.rx.in, {from: f1.tx.out, to: f3.rx.in, capacity: 7, policy: pop}]\n";

static const char stopped[] =
	"the application comes\n"
	"  | waiting for a worker for f1, f2, f3 (0 workers here)\n"
	"  waits for 1.000 s\n"
	"10 s go by\n"
	"  | waiting for a worker for f1, f2, f3 (0 workers here)\n"
	"  shows: waiting for f1, f2, f3\n"
	"  waits for 0.500 s\n"
	"its workers come\n"
	"  | worker a joined from 10.0.0.9:1\n"
	"  | worker b joined from 10.0.0.9:1\n"
	"  | worker c joined from 10.0.0.9:1\n"
	"  | f1 runs on worker a: worker a is the only one that names it\n"
	"  | f2 runs on worker b: worker b is the only one that names it\n"
	"  | f3 runs on worker c: worker c is the only one that names it\n"
	"  a: WELCOME in reply to 1: session: 3582207841460696327, name: \"a\", beat_ns: 250000000, dead_ns: 3000000000, version: \"test\", secret: 2e5f61133b81345160c5946f2c5854e6, takes_lines: 1\n"
	"  b: WELCOME in reply to 1: session: -528835465730135946, name: \"b\", beat_ns: 250000000, dead_ns: 3000000000, version: \"test\", secret: e32475f394ea78272ff3cb1f4832be1b, takes_lines: 1\n"
	"  c: WELCOME in reply to 1: session: -7137629224734193046, name: \"c\", beat_ns: 250000000, dead_ns: 3000000000, version: \"test\", secret: f66dd86ae76d2e5fefb790457c242af5, takes_lines: 1\n"
	"  a: HOST_CREATE of host 1, run 1, epoch 1: application: \"app\", source: <278 bytes>, fragments: [\"f1\"], beat_ns: 250000000, dead_ns: 3000000000, data_key: <32 bytes>, transports: [\"ucx\"], variables_key: <32 bytes>, may_restart: 1, memory: \"none\"\n"
	"  b: HOST_CREATE of host 2, run 1, epoch 1: application: \"app\", source: <278 bytes>, fragments: [\"f2\"], beat_ns: 250000000, dead_ns: 3000000000, data_key: <32 bytes>, transports: [\"ucx\"], variables_key: <32 bytes>, may_restart: 1, memory: \"none\"\n"
	"  c: HOST_CREATE of host 3, run 1, epoch 1: application: \"app\", source: <278 bytes>, fragments: [\"f3\"], beat_ns: 250000000, dead_ns: 3000000000, data_key: <32 bytes>, transports: [\"ucx\"], variables_key: <32 bytes>, may_restart: 1, memory: \"none\"\n"
	"  waits for 0.250 s\n"
	"they have prepared\n"
	"  a: HOST_WIRE of host 1, run 1, epoch 1: peers: [{host: 2, epoch: 1, name: \"f2 on worker b\", addresses: [{transport: \"ucx\", bytes: 61646472657373, detail: \"tcp lo\"}]}, {host: 3, epoch: 1, name: \"f3 on worker c\", addresses: [{transport: \"ucx\", bytes: 61646472657373, detail: \"tcp lo\"}]}], edges: [{sends: 1, peer: 2, token: c86a97466820ca458f385f4c9e4642f2, window_messages: 4, window_bytes: 67108864, message_bytes_max: 1073741824, policy: 1, other_end: \"f2.rx.in\", transport: \"ucx\"}, {flow: 1, sends: 1, peer: 3, token: a135b6ea9effec0b3b898be75edd72b9, window_messages: 7, window_bytes: 67108864, message_bytes_max: 1073741824, policy: 2, other_end: \"f3.rx.in\", order: 1, transport: \"ucx\"}]\n"
	"  b: HOST_WIRE of host 2, run 1, epoch 1: peers: [{host: 1, epoch: 1, name: \"f1 on worker a\", addresses: [{transport: \"ucx\", bytes: 61646472657373, detail: \"tcp lo\"}]}], edges: [{peer: 1, token: c86a97466820ca458f385f4c9e4642f2, window_messages: 4, window_bytes: 67108864, message_bytes_max: 1073741824, policy: 1, other_end: \"f1.tx.out\", transport: \"ucx\"}]\n"
	"  c: HOST_WIRE of host 3, run 1, epoch 1: peers: [{host: 1, epoch: 1, name: \"f1 on worker a\", addresses: [{transport: \"ucx\", bytes: 61646472657373, detail: \"tcp lo\"}]}], edges: [{flow: 1, peer: 1, token: a135b6ea9effec0b3b898be75edd72b9, window_messages: 7, window_bytes: 67108864, message_bytes_max: 1073741824, policy: 2, other_end: \"f1.tx.out\", order: 1, transport: \"ucx\"}]\n"
	"  waits for 0.250 s\n"
	"they are wired\n"
	"  a: HOST_START of host 1, run 1, epoch 1: \n"
	"  b: HOST_START of host 2, run 1, epoch 1: \n"
	"  c: HOST_START of host 3, run 1, epoch 1: \n"
	"  waits for 0.250 s\n"
	"they run\n"
	"  | runs in 3 hosts\n"
	"  waits for 0.250 s\n"
	"a second goes by\n"
	"  shows: running 1.0 s, 5 messages\n"
	"  waits for 0.150 s\n"
	"SIGTERM\n"
	"  a: HOST_STOP of host 1, run 1, epoch 1: drain_ns: 10000000000\n"
	"  b: HOST_STOP of host 2, run 1, epoch 1: drain_ns: 10000000000\n"
	"  c: HOST_STOP of host 3, run 1, epoch 1: drain_ns: 10000000000\n"
	"  waits for 0.150 s\n"
	"they do not drain in time\n"
	"  | did not drain within 10.0 s; what is queued is dropped\n"
	"  a: HOST_STOP of host 1, run 1, epoch 1: \n"
	"  b: HOST_STOP of host 2, run 1, epoch 1: \n"
	"  c: HOST_STOP of host 3, run 1, epoch 1: \n"
	"  shows: draining 13.0 s, 5 messages\n"
	"  waits for 0.150 s\n"
	"nor end\n"
	"  | f1 on worker a did not end within 2.0 s; it is killed\n"
	"  | f2 on worker b did not end within 2.0 s; it is killed\n"
	"  | f3 on worker c did not end within 2.0 s; it is killed\n"
	"  a: HOST_KILL of host 1, run 1, epoch 1: \n"
	"  b: HOST_KILL of host 2, run 1, epoch 1: \n"
	"  c: HOST_KILL of host 3, run 1, epoch 1: \n"
	"  shows: closing 15.0 s, 5 messages\n"
	"  waits for 0.200 s\n"
	"two are killed\n"
	"  waits for 0.200 s\n"
	"the third one is not seen to be\n"
	"  | worker c did not confirm the end of f3; what it counted last is used\n"
	"  | stopped after 16.3 s\n"
	"  a: APP_ENDED, run 1, epoch 0: \n"
	"  b: APP_ENDED, run 1, epoch 0: \n"
	"  c: APP_ENDED, run 1, epoch 0: \n"
	"  shows: killing 16.0 s, 6 messages\n"
	"  waits for 0.200 s\n"
	"{\"application\": \"app\", \"result\": \"stopped\", \"reason\": null, \"exit_code\": 0,\n"
	" \"started_unix_ns\": 1060500000000, \"first_message_ns\": 0, \"duration_ns\": 16300000000, \"shutdown_ns\": 15200000000,\n"
	" \"fragments\": [\n"
	"  {\"name\": \"f1\", \"worker\": \"a\", \"host_pid\": 101, \"state\": \"stopped\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": [{\"name\": \"tx\", \"type\": \"t\", \"ticks\": 9, \"compute_ns\": {\"p50\": 0, \"p99\": 0, \"max\": 0}, \"job\": {\"count\": 0, \"time_ns\": 0, \"waiting_ns\": 0}, \"deadline_misses\": 0, \"path_misses\": 0, \"slowest\": 0, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0}]},\n"
	"  {\"name\": \"f2\", \"worker\": \"b\", \"host_pid\": 102, \"state\": \"stopped\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": [{\"name\": \"rx\", \"type\": \"t\", \"ticks\": 6, \"compute_ns\": {\"p50\": 0, \"p99\": 0, \"max\": 0}, \"job\": {\"count\": 0, \"time_ns\": 0, \"waiting_ns\": 0}, \"deadline_misses\": 0, \"path_misses\": 0, \"slowest\": 0, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0}]},\n"
	"  {\"name\": \"f3\", \"worker\": \"c\", \"host_pid\": 103, \"state\": \"lost\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": [{\"name\": \"rx\", \"type\": \"t\", \"ticks\": 0, \"compute_ns\": {\"p50\": 0, \"p99\": 0, \"max\": 0}, \"job\": {\"count\": 0, \"time_ns\": 0, \"waiting_ns\": 0}, \"deadline_misses\": 0, \"path_misses\": 0, \"slowest\": 0, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0}]}],\n"
	" \"flows\": [\n"
	"  {\"from\": \"f1.tx.out\", \"to\": \"f2.rx.in\", \"edge\": \"ucx\", \"encrypted\": false, \"capacity\": 4, \"policy\": \"block\",\n"
	"   \"sent\": 9, \"delivered\": 6, \"dropped\": {\"queue_full\": 0, \"no_room\": 0, \"receiver_done\": 0, \"stopped\": 0, \"stale\": 0, \"late\": 0, \"superseded\": 0, \"skipped\": 0, \"clocks_not_comparable\": 0, \"deadline\": 0}, \"lost\": 3, \"in_flight\": 0, \"exact\": true, \"bytes\": 0, \"reused\": 0, \"absent_late\": 0, \"absent_stale\": 0, \"absent_window\": 0, \"absent_dropped\": 0, \"absent_ended\": 0, \"absent_clocks\": 0, \"copied_bytes\": 0,\n"
	"   \"latency_ns\": {\"count\": 0, \"p50\": 0, \"p99\": 0, \"p999\": 0, \"max\": 0}},\n"
	"  {\"from\": \"f1.tx.out\", \"to\": \"f3.rx.in\", \"edge\": \"ucx\", \"encrypted\": false, \"capacity\": 7, \"policy\": \"pop\",\n"
	"   \"sent\": 0, \"delivered\": 0, \"dropped\": {\"queue_full\": 0, \"no_room\": 0, \"receiver_done\": 0, \"stopped\": 0, \"stale\": 0, \"late\": 0, \"superseded\": 0, \"skipped\": 0, \"clocks_not_comparable\": 0, \"deadline\": 0}, \"lost\": 0, \"in_flight\": 0, \"exact\": false, \"lost_at_least\": 0, \"delivered_at_least\": 0, \"bytes\": 0, \"reused\": 0, \"absent_late\": 0, \"absent_stale\": 0, \"absent_window\": 0, \"absent_dropped\": 0, \"absent_ended\": 0, \"absent_clocks\": 0, \"copied_bytes\": 0,\n"
	"   \"latency_ns\": null, \"latency_reason\": \"its ends have two clocks, which are not compared yet\"}]}\n"
	"the workers go\n"
	"  | worker a left: end of file\n"
	"  | worker b left: end of file\n"
	"  | worker c left: end of file\n"
	"  waits\n";

WORLD_TEST(driver_transcript, an_application_that_is_stopped, world_init)
{
	transcript_begin();
	app(w, three_fragments);
	note(w, "the application comes");
	pass(w, 10500 * MS);
	note(w, "10 s go by");
	three_come(w);
	note(w, "its workers come");
	both_prepare(w);
	say_prepared(w, 3, 3, "f3", false);
	note(w, "they have prepared");
	all_say(w, FW_HOST_WIRED);
	note(w, "they are wired");
	all_say(w, FW_HOST_STARTED);
	note(w, "they run");
	say_stats(w, 2, 2, false, 0, 5);
	pass_beating(w, 1100 * MS, 1, 3);
	note(w, "a second goes by");
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	note(w, "SIGTERM");
	pass_beating(w, 12500 * MS, 1, 3);
	note(w, "they do not drain in time");
	pass_beating(w, 1700 * MS, 1, 3);
	note(w, "nor end");
	say_end(w, 1, 1, 9, 0, 137, 9);
	say_end(w, 2, 2, 0, 6, 137, 9);
	note(w, "two are killed");
	pass_beating(w, 1500 * MS, 1, 3);
	note(w, "the third one is not seen to be");
	note_summary(w);
	for (uint64_t c = 1; c <= 3; c++)
		step(w, &(struct drv_event){
				.kind = DRV_EVENT_CLOSED, .connection = c, .text = "end of file"});
	note(w, "the workers go");
	transcript_expect(stopped);
}

static const char lost[] =
	"c says nothing\n"
	"  | worker c has not been heard for 1.0 s\n"
	"  shows: running 1.0 s, 5 messages\n"
	"  waits for 0.250 s\n"
	"a host misses it too\n"
	"  | the data link between f1 on worker a and f2 on worker b was lost, while their control connections are up: no beat\n"
	"  a: HOST_STOP of host 1, run 1, epoch 1: drain_ns: 10000000000, exit_code: 1, reason: \"the data link between f1 on worker a and f2 on worker b was lost, while their control connections are up: no beat\", failure: 18\n"
	"  b: HOST_STOP of host 2, run 1, epoch 1: drain_ns: 10000000000, exit_code: 1, reason: \"the data link between f1 on worker a and f2 on worker b was lost, while their control connections are up: no beat\", failure: 18\n"
	"  c: HOST_STOP of host 3, run 1, epoch 1: drain_ns: 10000000000, exit_code: 1, reason: \"the data link between f1 on worker a and f2 on worker b was lost, while their control connections are up: no beat\", failure: 18\n"
	"  closes c\n"
	"  shows: failing 3.0 s, 5 messages\n"
	"  waits for 0.200 s\n"
	"the others are stopped\n"
	"  | failed after 3.3 s\n"
	"  a: APP_ENDED, run 1, epoch 0: exit_code: 1\n"
	"  b: APP_ENDED, run 1, epoch 0: exit_code: 1\n"
	"  waits for 0.200 s\n"
	"{\"application\": \"app\", \"result\": \"failed\", \"reason\": \"the data link between f1 on worker a and f2 on worker b was lost, while their control connections are up: no beat\", \"exit_code\": 1,\n"
	" \"failure\": {\"code\": \"edge_lost\", \"scope\": \"edge\", \"sentence\": \"the data link between f1 on worker a and f2 on worker b was lost, while their control connections are up: no beat\", \"operator\": null, \"worker\": \"a\"},\n"
	" \"started_unix_ns\": 1050000000000, \"first_message_ns\": 0, \"duration_ns\": 3300000000, \"shutdown_ns\": 1300000000,\n"
	" \"fragments\": [\n"
	"  {\"name\": \"f1\", \"worker\": \"a\", \"host_pid\": 101, \"state\": \"stopped\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": [{\"name\": \"tx\", \"type\": \"t\", \"ticks\": 22, \"compute_ns\": {\"p50\": 0, \"p99\": 0, \"max\": 0}, \"job\": {\"count\": 0, \"time_ns\": 0, \"waiting_ns\": 0}, \"deadline_misses\": 0, \"path_misses\": 0, \"slowest\": 0, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0}]},\n"
	"  {\"name\": \"f2\", \"worker\": \"b\", \"host_pid\": 102, \"state\": \"stopped\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": [{\"name\": \"rx\", \"type\": \"t\", \"ticks\": 21, \"compute_ns\": {\"p50\": 0, \"p99\": 0, \"max\": 0}, \"job\": {\"count\": 0, \"time_ns\": 0, \"waiting_ns\": 0}, \"deadline_misses\": 0, \"path_misses\": 0, \"slowest\": 0, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0}]},\n"
	"  {\"name\": \"f3\", \"worker\": \"c\", \"host_pid\": 103, \"state\": \"lost\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": [{\"name\": \"rx\", \"type\": \"t\", \"ticks\": 0, \"compute_ns\": {\"p50\": 0, \"p99\": 0, \"max\": 0}, \"job\": {\"count\": 0, \"time_ns\": 0, \"waiting_ns\": 0}, \"deadline_misses\": 0, \"path_misses\": 0, \"slowest\": 0, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0}]}],\n"
	" \"flows\": [\n"
	"  {\"from\": \"f1.tx.out\", \"to\": \"f2.rx.in\", \"edge\": \"ucx\", \"encrypted\": false, \"capacity\": 4, \"policy\": \"block\",\n"
	"   \"sent\": 22, \"delivered\": 21, \"dropped\": {\"queue_full\": 0, \"no_room\": 0, \"receiver_done\": 0, \"stopped\": 0, \"stale\": 0, \"late\": 0, \"superseded\": 0, \"skipped\": 0, \"clocks_not_comparable\": 0, \"deadline\": 0}, \"lost\": 0, \"in_flight\": 1, \"exact\": true, \"bytes\": 0, \"reused\": 0, \"absent_late\": 0, \"absent_stale\": 0, \"absent_window\": 0, \"absent_dropped\": 0, \"absent_ended\": 0, \"absent_clocks\": 0, \"copied_bytes\": 0,\n"
	"   \"latency_ns\": {\"count\": 0, \"p50\": 0, \"p99\": 0, \"p999\": 0, \"max\": 0}},\n"
	"  {\"from\": \"f1.tx.out\", \"to\": \"f3.rx.in\", \"edge\": \"ucx\", \"encrypted\": false, \"capacity\": 7, \"policy\": \"pop\",\n"
	"   \"sent\": 0, \"delivered\": 0, \"dropped\": {\"queue_full\": 0, \"no_room\": 0, \"receiver_done\": 0, \"stopped\": 0, \"stale\": 0, \"late\": 0, \"superseded\": 0, \"skipped\": 0, \"clocks_not_comparable\": 0, \"deadline\": 0}, \"lost\": 0, \"in_flight\": 0, \"exact\": false, \"lost_at_least\": 0, \"delivered_at_least\": 0, \"bytes\": 0, \"reused\": 0, \"absent_late\": 0, \"absent_stale\": 0, \"absent_window\": 0, \"absent_dropped\": 0, \"absent_ended\": 0, \"absent_clocks\": 0, \"copied_bytes\": 0,\n"
	"   \"latency_ns\": null, \"latency_reason\": \"its ends have two clocks, which are not compared yet\"}]}\n";

WORLD_TEST(driver_transcript, an_application_that_loses_a_worker, world_init)
{
	transcript_begin();
	three_come(w);
	app(w, three_fragments);
	both_prepare(w);
	say_prepared(w, 3, 3, "f3", false);
	all_say(w, FW_HOST_WIRED);
	all_say(w, FW_HOST_STARTED);
	note(w, "it runs");
	transcript_forget();
	say_stats(w, 1, 1, false, 20, 0);
	say_stats(w, 2, 2, false, 0, 5);
	pass_beating(w, 1500 * MS, 1, 2);
	note(w, "c says nothing");
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "no beat");
	pass_beating(w, 1800 * MS, 1, 2);
	note(w, "a host misses it too");
	say_end(w, 1, 1, 22, 0, 0, 0);
	say_end(w, 2, 2, 0, 21, 0, 0);
	note(w, "the others are stopped");
	cr_assert(w->ended);
	note_summary(w);
	transcript_expect(lost);
}

static const char errors[] =
	"one has found errors\n"
	"  | worker b could not prepare f2\n"
	"  waits for 0.250 s\n"
	"the third one is not waited for\n"
	"  | app.yaml:5:9: one\n"
	"  | there is no such library\n"
	"  | and 3 more errors\n"
	"  a: HOST_KILL of host 1, run 1, epoch 1: exit_code: 2, reason: \"app.yaml:5:9: one\", failure: 6\n"
	"  b: HOST_KILL of host 2, run 1, epoch 1: exit_code: 2, reason: \"app.yaml:5:9: one\", failure: 6\n"
	"  c: HOST_KILL of host 3, run 1, epoch 1: exit_code: 2, reason: \"app.yaml:5:9: one\", failure: 6\n"
	"  shows: killing\n"
	"  waits for 0.250 s\n"
	"all are killed\n"
	"  | failed after 2.5 s\n"
	"  a: APP_ENDED, run 1, epoch 0: exit_code: 2\n"
	"  b: APP_ENDED, run 1, epoch 0: exit_code: 2\n"
	"  c: APP_ENDED, run 1, epoch 0: exit_code: 2\n"
	"  waits for 0.250 s\n"
	"{\"application\": \"app\", \"result\": \"failed\", \"reason\": \"app.yaml:5:9: one\", \"exit_code\": 2,\n"
	" \"failure\": {\"code\": \"graph_invalid\", \"scope\": \"graph\", \"sentence\": \"app.yaml:5:9: one\", \"operator\": null, \"worker\": \"b\"},\n"
	" \"started_unix_ns\": 0, \"first_message_ns\": 0, \"duration_ns\": 2500000000, \"shutdown_ns\": 500000000,\n"
	" \"fragments\": [\n"
	"  {\"name\": \"f1\", \"worker\": \"a\", \"host_pid\": 101, \"state\": \"prepared\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": [{\"name\": \"tx\", \"type\": \"t\", \"ticks\": 0, \"compute_ns\": {\"p50\": 0, \"p99\": 0, \"max\": 0}, \"job\": {\"count\": 0, \"time_ns\": 0, \"waiting_ns\": 0}, \"deadline_misses\": 0, \"path_misses\": 0, \"slowest\": 0, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0}]},\n"
	"  {\"name\": \"f2\", \"worker\": \"b\", \"host_pid\": 102, \"state\": \"failed\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": []},\n"
	"  {\"name\": \"f3\", \"worker\": \"c\", \"host_pid\": 0, \"state\": \"prepared\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": []}],\n"
	" \"flows\": []}\n";

WORLD_TEST(driver_transcript, an_application_with_errors, world_init)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 2);
	struct fw_failure found[] = {
		{FRAGI_FAILURE_GRAPH_INVALID, "one", "", "app.yaml", 5, 9},
		{FRAGI_FAILURE_LIBRARY_MISSING, "there is no such library", "f2.rx"}};

	transcript_begin();
	three_come(w);
	app(w, three_fragments);
	say_prepared(w, 1, 1, "f1", true);
	note(w, "one has prepared");
	transcript_forget();
	message.prepared = (struct fw_host_prepared){
		.errors = found, .error_count = 2, .errors_beyond = 3, .pid = 102};
	say(w, 2, &message);
	note(w, "one has found errors");
	pass_beating(w, 2500 * MS, 1, 3);
	note(w, "the third one is not waited for");
	for (uint32_t host = 1; host <= 3; host++)
		say_exit(w, host, host, 137, 9, "");
	note(w, "all are killed");
	note_summary(w);
	transcript_expect(errors);
}

static const char failure[] =
	"the client asks\n"
	"  d: REPLY in reply to 2: applications: [{run: 1, name: \"app\", state: \"running\", hosts: [{number: 1, fragments: \"f1\", worker: \"a\", state: \"running\", pid: 101}, {number: 2, fragments: \"f2\", worker: \"b\", state: \"running\", pid: 102}, {number: 3, fragments: \"f3\", worker: \"c\", state: \"running\", pid: 103}], epoch: 1}], workers: [{name: \"a\", address: \"10.0.0.9:1\", state: \"live\", cores: 4, fragments: 1}, {name: \"b\", address: \"10.0.0.9:1\", state: \"live\", cores: 4, fragments: 1}, {name: \"c\", address: \"10.0.0.9:1\", state: \"live\", cores: 4, fragments: 1}], notices: [0, 1, 0, 0, 0, 1, 0, 0, 0, 3]\n"
	"  waits for 0.250 s\n"
	"an operator fails\n"
	"  | f2.rx: compute returned -5\n"
	"  a: HOST_STOP of host 1, run 1, epoch 1: drain_ns: 10000000000, exit_code: 1, reason: \"f2.rx: compute returned -5\", failure: 12\n"
	"  b: HOST_STOP of host 2, run 1, epoch 1: exit_code: 1, reason: \"f2.rx: compute returned -5\", failure: 12\n"
	"  c: HOST_STOP of host 3, run 1, epoch 1: drain_ns: 10000000000, exit_code: 1, reason: \"f2.rx: compute returned -5\", failure: 12\n"
	"  waits for 0.250 s\n"
	"two are gone, and the client asks again\n"
	"  d: REPLY in reply to 3: applications: [{run: 1, name: \"app\", state: \"failing\", hosts: [{number: 1, fragments: \"f1\", worker: \"a\", state: \"gone\", pid: 101}, {number: 2, fragments: \"f2\", worker: \"b\", state: \"gone\", pid: 102}, {number: 3, fragments: \"f3\", worker: \"c\", state: \"running\", pid: 103}], epoch: 1, delivered: 20}], workers: [{name: \"a\", address: \"10.0.0.9:1\", state: \"live\", cores: 4, fragments: 1}, {name: \"b\", address: \"10.0.0.9:1\", state: \"live\", cores: 4, fragments: 1}, {name: \"c\", address: \"10.0.0.9:1\", state: \"live\", cores: 4, fragments: 1}], notices: [0, 1, 0, 0, 0, 1, 0, 0, 0, 3]\n"
	"  waits for 0.250 s\n"
	"the third one is gone\n"
	"  | failed after 0.0 s\n"
	"  a: APP_ENDED, run 1, epoch 0: exit_code: 1\n"
	"  b: APP_ENDED, run 1, epoch 0: exit_code: 1\n"
	"  c: APP_ENDED, run 1, epoch 0: exit_code: 1\n"
	"  waits for 0.250 s\n"
	"{\"application\": \"app\", \"result\": \"failed\", \"reason\": \"f2.rx: compute returned -5\", \"exit_code\": 1,\n"
	" \"failure\": {\"code\": \"operator_failed\", \"scope\": \"operator\", \"sentence\": \"f2.rx: compute returned -5\", \"operator\": \"f2.rx\", \"worker\": \"b\"},\n"
	" \"started_unix_ns\": 1050000000000, \"first_message_ns\": 0, \"duration_ns\": 0, \"shutdown_ns\": 0,\n"
	" \"fragments\": [\n"
	"  {\"name\": \"f1\", \"worker\": \"a\", \"host_pid\": 101, \"state\": \"failed\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": [{\"name\": \"tx\", \"type\": \"t\", \"ticks\": 22, \"compute_ns\": {\"p50\": 0, \"p99\": 0, \"max\": 0}, \"job\": {\"count\": 0, \"time_ns\": 0, \"waiting_ns\": 0}, \"deadline_misses\": 0, \"path_misses\": 0, \"slowest\": 0, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0}]},\n"
	"  {\"name\": \"f2\", \"worker\": \"b\", \"host_pid\": 102, \"state\": \"failed\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": [{\"name\": \"rx\", \"type\": \"t\", \"ticks\": 20, \"compute_ns\": {\"p50\": 0, \"p99\": 0, \"max\": 0}, \"job\": {\"count\": 0, \"time_ns\": 0, \"waiting_ns\": 0}, \"deadline_misses\": 0, \"path_misses\": 0, \"slowest\": 0, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0}]},\n"
	"  {\"name\": \"f3\", \"worker\": \"c\", \"host_pid\": 103, \"state\": \"stopped\", \"epoch\": 1, \"restarts\": 0,\n"
	"   \"operators\": [{\"name\": \"rx\", \"type\": \"t\", \"ticks\": 21, \"compute_ns\": {\"p50\": 0, \"p99\": 0, \"max\": 0}, \"job\": {\"count\": 0, \"time_ns\": 0, \"waiting_ns\": 0}, \"deadline_misses\": 0, \"path_misses\": 0, \"slowest\": 0, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0}]}],\n"
	" \"flows\": [\n"
	"  {\"from\": \"f1.tx.out\", \"to\": \"f2.rx.in\", \"edge\": \"ucx\", \"encrypted\": false, \"capacity\": 4, \"policy\": \"block\",\n"
	"   \"sent\": 22, \"delivered\": 20, \"dropped\": {\"queue_full\": 0, \"no_room\": 0, \"receiver_done\": 0, \"stopped\": 0, \"stale\": 0, \"late\": 0, \"superseded\": 0, \"skipped\": 0, \"clocks_not_comparable\": 0, \"deadline\": 0}, \"lost\": 2, \"in_flight\": 0, \"exact\": true, \"bytes\": 0, \"reused\": 0, \"absent_late\": 0, \"absent_stale\": 0, \"absent_window\": 0, \"absent_dropped\": 0, \"absent_ended\": 0, \"absent_clocks\": 0, \"copied_bytes\": 0,\n"
	"   \"latency_ns\": {\"count\": 0, \"p50\": 0, \"p99\": 0, \"p999\": 0, \"max\": 0}},\n"
	"  {\"from\": \"f1.tx.out\", \"to\": \"f3.rx.in\", \"edge\": \"ucx\", \"encrypted\": false, \"capacity\": 7, \"policy\": \"pop\",\n"
	"   \"sent\": 21, \"delivered\": 21, \"dropped\": {\"queue_full\": 0, \"no_room\": 0, \"receiver_done\": 0, \"stopped\": 0, \"stale\": 0, \"late\": 0, \"superseded\": 0, \"skipped\": 0, \"clocks_not_comparable\": 0, \"deadline\": 0}, \"lost\": 0, \"in_flight\": 0, \"exact\": true, \"bytes\": 0, \"reused\": 0, \"absent_late\": 0, \"absent_stale\": 0, \"absent_window\": 0, \"absent_dropped\": 0, \"absent_ended\": 0, \"absent_clocks\": 0, \"copied_bytes\": 0,\n"
	"   \"latency_ns\": null, \"latency_reason\": \"its ends have two clocks, which are not compared yet\"}]}\n";

WORLD_TEST(driver_transcript, an_operator_that_fails_while_a_client_looks_on, world_init)
{
	struct fw_message failed = of_host(FW_HOST_EVENT, 2);

	transcript_begin();
	three_come(w);
	app(w, three_fragments);
	client_hello(w, 4, "top");
	both_prepare(w);
	say_prepared(w, 3, 3, "f3", false);
	all_say(w, FW_HOST_WIRED);
	all_say(w, FW_HOST_STARTED);
	note(w, "it runs");
	transcript_forget();
	request_state(w, 4, 2);
	note(w, "the client asks");
	failed.event = (struct fw_host_event){
		.state = FW_STATE_FAILED,
		.failure = {FRAGI_FAILURE_OPERATOR_FAILED, "f2.rx: compute returned -5", "f2.rx"}};
	say(w, 2, &failed);
	note(w, "an operator fails");
	say_stats(w, 1, 1, true, 22, 0);
	say_exit(w, 1, 1, 139, 11, "fraghost 101 crashed");
	say_end(w, 2, 2, 0, 20, 0, 0);
	request_state(w, 4, 3);
	note(w, "two are gone, and the client asks again");
	say_end(w, 3, 3, 0, 21, 0, 0);
	note(w, "the third one is gone");
	note_summary(w);
	transcript_expect(failure);
}
