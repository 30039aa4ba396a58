// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/*
 * A graph of 40,000 operators in two hosts. No step handles more than a stated number of items, and
 * in between the workers get their beats and are heard.
 */
#define OPS 20000 /* of a fragment */
#define STEP_NS (20 * MS)

/* Chains within the fragments and one flow between them, or a chain that goes to and fro. */
static char *graph(bool to_and_fro)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "frag: 1\napplication: app\nfragments:\n");
	for (int f = 1; f <= 2; f++) {
		fprintf(out, "  f%d:\n    operators:\n", f);
		for (int i = 0; i < OPS; i++)
			fprintf(out, "      o%d: {type: t}\n", i);
		for (int i = 0; i + 1 < OPS && !to_and_fro; i++)
			fprintf(out, "%s      - o%d.out -> o%d.in\n", i == 0 ? "    flows:\n" : "",
				i, i + 1);
	}
	fprintf(out, "flows:\n");
	if (!to_and_fro)
		fprintf(out, "  - f1.o%d.out -> f2.o0.in\n", OPS - 1);
	for (int i = 0; i < OPS && to_and_fro; i++) {
		fprintf(out, "  - f1.o%d.out -> f2.o%d.in\n", i, i);
		if (i + 1 < OPS)
			fprintf(out, "  - f2.o%d.out -> f1.o%d.in\n", i, i + 1);
	}
	fclose(out);
	return text;
}

static int sent_of(const struct world *w, uint64_t connection, enum fw_kind kind)
{
	int count = 0;

	for (size_t i = 0; i < w->sent_count; i++)
		count += w->sent[i].connection == connection && w->sent[i].message->kind == kind;
	return count;
}

static int64_t wire_items; /* of the step that sent WIRE to host 1 */

/* The work that is left, in steps that each take a while; the workers beat. */
static int work(struct world *w)
{
	int steps = 0, wired = sent_of(w, 1, FW_HOST_WIRE);

	while (drv_core_deadline_ns(w->core) <= w->now_ns && !w->ended) {
		w->now_ns += STEP_NS;
		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
		cr_assert_leq(drv_core_step_items(w->core), DRV_STEP_ITEMS_MAX);
		if (sent_of(w, 1, FW_HOST_WIRE) > wired) {
			wired++;
			wire_items = drv_core_step_items(w->core);
		}
		if (++steps % 5 == 0) {
			beat(w, 1);
			beat(w, 2);
		}
	}
	return steps;
}

static void say_large_table(struct world *w, uint32_t host, uint32_t op_count, bool has_chain)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, host);
	struct fw_port ports[] = {
		{.name = "in", .type = "message", .dir = FRAG_IN, .flags = FRAG_PORT_OPTIONAL},
		{.name = "out", .type = "message", .dir = FRAG_OUT},
	};
	struct fw_address address = {"ucx", "address", 7};
	struct fw_op *ops = calloc(op_count, sizeof(*ops));
	struct fw_inner_flow *flows = calloc(op_count, sizeof(*flows));
	char(*names)[12] = calloc(op_count, sizeof(*names));
	struct fw_fragment fragment = {
		.name = host == 1 ? "f1" : "f2", .ops = ops, .op_count = op_count};

	for (uint32_t i = 0; i < op_count; i++) {
		snprintf(names[i], sizeof(names[i]), "o%u", i);
		ops[i] = (struct fw_op){
			.name = names[i], .type = "t", .ports = ports, .port_count = 2};
		flows[i] = (struct fw_inner_flow){
			.from_op = i, .from_port = 1, .to_op = i + 1, .capacity = 4, .policy = 1};
	}
	message.prepared = (struct fw_host_prepared){.ok = true,
						     .fragments = &fragment,
						     .fragment_count = 1,
						     .flows = flows,
						     .flow_count = has_chain ? op_count - 1 : 0,
						     .addresses = &address,
						     .address_count = 1,
						     .pid = 100};
	say(w, host, &message);
	free(ops);
	free(flows);
	free(names);
}

static void say_large_stats(struct world *w, uint32_t host, uint32_t rows)
{
	struct fw_message message = of_host(FW_HOST_STATS, host);
	struct fragi_flow_stats *flows = calloc(rows, sizeof(*flows));
	struct fw_op_stats *ops = calloc(OPS, sizeof(*ops));

	for (uint32_t i = 0; i < rows; i++)
		flows[i].sent = flows[i].delivered = flows[i].arrived = 3;
	message.stats = (struct fw_host_stats){
		.final = true, .ops = ops, .op_count = OPS, .flows = flows, .flow_count = rows};
	say(w, host, &message);
	cr_expect_geq(drv_core_step_items(w->core), rows);
	cr_assert_leq(drv_core_step_items(w->core), DRV_STEP_ITEMS_MAX);
	free(flows);
	free(ops);
}

/* Of the summary that the driver remembers, flows come first. */
static void check_kept(const struct world *w)
{
	const struct drv_ended *ended = w->core->history.ended;
	struct fw_message *message;
	const struct fragi_summary *summary;

	cr_assert_not_null(ended);
	cr_assert_eq(fw_decode(ended->outcome + 4, ended->outcome_bytes - 4, &message, NULL), 0);
	summary = &message->outcome.summary;
	cr_expect_eq(summary->flow_count, DRV_ENDED_FLOWS);
	cr_expect_eq(summary->fragment_count, 2);
	cr_expect_eq(summary->fragments[0].operator_count, DRV_ENDED_ROWS - 2);
	cr_expect_eq(summary->fragments[1].operator_count, 0);
	cr_expect_eq(message->outcome.left_out,
		     2 * OPS - (DRV_ENDED_ROWS - 2) + 2 * OPS - 1 - DRV_ENDED_FLOWS);
	fw_message_free(message);
}

/*
 * resolving: the steps that it takes to resolve the flows. Each stage that looks at all operators
 * or all flows takes ten: where one counts nothing there are fewer.
 */
static void live(struct world *w, bool to_and_fro, int resolving)
{
	char *text = graph(to_and_fro);
	int steps, beats;

	world_init(w);
	app(w, text);
	both_come(w);
	work(w);
	say_large_table(w, 1, OPS, !to_and_fro);
	say_large_table(w, 2, OPS, !to_and_fro);
	beats = sent_of(w, 1, FW_BEAT);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
	steps = work(w);
	cr_expect(steps >= resolving - 4 && steps <= resolving + 4, "%d steps", steps);
	cr_expect_geq(wire_items, to_and_fro ? 2 * OPS - 1 : 1, "the edges of a host go at once");
	cr_expect_geq(sent_of(w, 1, FW_BEAT) - beats, steps * STEP_NS / (250 * MS));
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_WIRING, "%s", w->errors);
	both_run(w);
	for (uint32_t host = 1; host <= 2; host++)
		say_large_stats(w, host, to_and_fro ? 2 * OPS - 1 : OPS);
	both_are_done(w);
	both_exit(w);
	cr_expect_not(w->ended, "the summary takes several steps");
	steps = work(w);
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_DONE);
	cr_expect(steps >= 13 && steps <= 17, "%d steps for operators and flows", steps);
	cr_expect_str_eq(w->errors, "");
	check_kept(w);
	world_fini(w);
	free(text);
}

Test(driver_large, forty_thousand_operators_in_two_chains, .timeout = 60)
{
	struct world *w = malloc(sizeof(*w));

	live(w, false, 43);
	free(w);
}

Test(driver_large, forty_thousand_flows_between_two_hosts, .timeout = 60)
{
	struct world *w = malloc(sizeof(*w));

	live(w, true, 36);
	free(w);
}

/*
 * Applications that wait for a label which none of many workers has, until one comes that has it.
 * Each of them could be placed in one step, but not all of them.
 */
#define MANY_APPS 40
#define MANY_WORKERS 100
#define MANY_FRAGMENTS 100

static char *waiting_graph(int number)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "frag: 1\napplication: app%d\nfragments:\n", number);
	for (int f = 0; f < MANY_FRAGMENTS; f++)
		fprintf(out,
			"  f%d: {operators: {o: {type: t}}, requirements: {labels: {rare: here}}}\n",
			f);
	fclose(out);
	return text;
}

Test(driver_large, what_waits_is_placed_in_several_steps, .timeout = 60)
{
	const char *label = "rare=here";
	struct world *w = malloc(sizeof(*w));
	int64_t needed = MANY_APPS * (MANY_FRAGMENTS + 1) * (MANY_WORKERS + 1) / DRV_PLACE_PAIRS;
	int steps = 0;

	world_init(w);
	for (int i = 0; i < MANY_WORKERS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "w%d", i);
		hello(w, 1 + (uint64_t)i, name, NULL);
	}
	for (int i = 0; i < MANY_APPS; i++) {
		char *text = waiting_graph(i);

		app(w, text);
		free(text);
	}
	while (drv_core_deadline_ns(w->core) <= w->now_ns)
		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	cr_expect_eq(drv_core_placed(w->core), 0);
	hello_by(w, 999, "rare", NULL,
		 (struct fw_hello){.worker_address = "127.0.0.1",
				   .node = "node",
				   .clock = "node",
				   .labels = &label,
				   .label_count = 1});
	cr_expect_lt(drv_core_placed(w->core), MANY_APPS * MANY_FRAGMENTS,
		     "not all of them in the step of its HELLO");
	while (drv_core_deadline_ns(w->core) <= w->now_ns) {
		int64_t placed = drv_core_placed(w->core);

		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
		cr_assert_leq(drv_core_step_items(w->core), DRV_STEP_ITEMS_MAX);
		cr_assert_leq(drv_core_placed(w->core) - placed,
			      MANY_FRAGMENTS * (1 + DRV_STEP_ITEMS * DRV_PLACE_PAIRS /
							    ((MANY_FRAGMENTS + 1) * MANY_WORKERS)));
		steps++;
	}
	cr_expect_eq(drv_core_placed(w->core), MANY_APPS * MANY_FRAGMENTS);
	cr_expect_geq(steps, needed / DRV_STEP_ITEMS / 2, "%d", steps);
	w->many_end = true;
	world_fini(w);
	free(w);
}

/* A stop, a second one or a failure may come while the driver is at work. */
Test(driver_large, it_can_be_stopped_while_the_driver_resolves, .timeout = 60)
{
	struct world *w = malloc(sizeof(*w));
	char *text = graph(true);

	world_init(w);
	app(w, text);
	both_come(w);
	work(w);
	say_large_table(w, 1, OPS, false);
	say_large_table(w, 2, OPS, false);
	for (int i = 0; i < 10; i++)
		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_KILLING);
	both_are_killed(w);
	work(w);
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
	world_fini(w);
	free(w);
	free(text);
}

/* From each of some operators of one host to each of WIDE operators of the other. */
#define WIDE 256

static char *wide_graph(int senders)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "frag: 1\napplication: app\nfragments:\n");
	for (int f = 1; f <= 2; f++) {
		fprintf(out, "  f%d:\n    operators:\n", f);
		for (int i = 0; i < (f == 1 ? senders : WIDE); i++)
			fprintf(out, "      o%d: {type: t}\n", i);
	}
	fprintf(out, "flows:\n");
	for (int i = 0; i < senders; i++) {
		fprintf(out, "  - {from: f1.o%d.out, to: [", i);
		for (int k = 0; k < WIDE; k++)
			fprintf(out, "%sf2.o%d.in", k > 0 ? ", " : "", k);
		fprintf(out, "]}\n");
	}
	fclose(out);
	return text;
}

/* sentence: of the failure, before a host is wired; NULL: both are. */
static void join_widely(int senders, const char *sentence)
{
	struct world *w = malloc(sizeof(*w));
	char *text = wide_graph(senders);

	world_init(w);
	app(w, text);
	both_come(w);
	work(w);
	say_large_table(w, 1, (uint32_t)senders, false);
	say_large_table(w, 2, WIDE, false);
	work(w);
	cr_expect_eq(sent_of(w, 1, FW_HOST_WIRE) + sent_of(w, 2, FW_HOST_WIRE),
		     sentence == NULL ? 2 : 0, "%d senders", senders);
	cr_expect_eq(drv_core_app_state(w->core),
		     sentence == NULL ? DRV_APP_WIRING : DRV_APP_KILLING);
	if (sentence == NULL)
		step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	both_are_killed(w);
	work(w);
	cr_assert(w->ended);
	cr_expect_eq(w->result, sentence == NULL ? FRAGI_SUMMARY_STOPPED : FRAGI_SUMMARY_FAILED);
	cr_expect_str_eq(w->reason, sentence == NULL ? "" : sentence, "%d senders", senders);
	cr_expect_eq(strstr(w->json, "\"graph_too_large\"") != NULL, sentence != NULL);
	world_fini(w);
	free(w);
	free(text);
}

/* A host may have as many flows as a frame has rows, but names of theirs fill it first. */
Test(driver_large, the_flows_of_a_host_fit_into_a_frame_or_end_the_application, .timeout = 60)
{
#define FRAME                                                                                      \
	"what f1 on worker a needs to WIRE does not fit into a frame of 4 MiB; give its fragments to more workers or hosts, or shorter names to what its flows join"
	join_widely(242, NULL);
	join_widely(243, FRAME);
	join_widely(256, FRAME);
	join_widely(
		257,
		"f1 on worker a has 65792 flows, and a host can have 65536; give its fragments to more workers or hosts");
}
