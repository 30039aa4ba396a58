// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdarg.h>

#include "../expected.h"
#include "lives_ops.h"
#include "logged.h"

/*
 * Lives of graphs that are drawn from seeds, on a manual clock under greedy, where nothing is left
 * to chance: each tick with its time, and at the end what was counted. event_based with one thread
 * must give each operator the same ticks, where the graph leaves it no choice.
 */
struct drawn {
	uint64_t state;
	FILE *text;
	bool one_way; /* every scheduler gives each operator the same ticks */
	int ops;
	char kinds[8]; /* of each operator: its type's first letter */
	struct {
		int from, to;
	} flows[24];
	int flow_count;
};

static uint32_t draw(struct drawn *d, uint32_t below)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static bool one_in(struct drawn *d, uint32_t n)
{
	return draw(d, n) == 0;
}

static void __attribute__((format(printf, 2, 3))) put(struct drawn *d, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(d->text, format, args);
	va_end(args);
}

static const char *pick(struct drawn *d, const char *const *words, uint32_t count)
{
	return words[draw(d, count)];
}
#define PICK(d, ...)                                                                               \
	pick(d, (const char *const[]){__VA_ARGS__},                                                \
	     FRAG_COUNT_OF(((const char *const[]){__VA_ARGS__})))

/* What an operator does; most of it makes the order of ticks matter. */
static void draw_deeds(struct drawn *d)
{
	d->one_way = false;
	if (one_in(d, 2))
		put(d, ", sleep_ms: %u", 1 + draw(d, 9));
	if (one_in(d, 20))
		put(d, ", fail_at: %u", 2 + draw(d, 3));
	if (one_in(d, 20))
		put(d, ", stop_at: %u", 3 + draw(d, 3));
	if (one_in(d, 8))
		put(d, ", pend_at: %u", 1 + draw(d, 3));
	if (one_in(d, 10))
		put(d, ", disable_at: %u", 2 + draw(d, 4));
	if (one_in(d, 3)) {
		put(d, ", enable_at: %u", 1 + draw(d, 3));
		put(d, ", enable: %c", (char)('a' + draw(d, (uint32_t)d->ops)));
	}
}

static void draw_parameters(struct drawn *d, int i)
{
	const bool is_source = d->kinds[i] == 's';

	put(d, ", parameters: {done: %u", is_source ? 2 + draw(d, 8) : 7 + draw(d, 5));
	if (one_in(d, 5))
		put(d, ", emit: %u", 2 * draw(d, 2));
	if (!is_source && one_in(d, 8))
		put(d, ", take: 2");
	if (one_in(d, 6))
		put(d, ", none_every: %u", 2 + draw(d, 2));
	if (one_in(d, 2))
		draw_deeds(d);
	put(d, "}");
}

static void draw_periodic(struct drawn *d)
{
	put(d, "{type: periodic, recess_period: %ums", 3 + draw(d, 12));
	if (one_in(d, 2))
		put(d, ", policy: %s",
		    PICK(d, "min_time_between_ticks", "no_catch_up_missed_ticks"));
	put(d, "}, ");
}

/* A condition about the inputs, in the place of the usual ones. */
static void draw_input_condition(struct drawn *d, char kind)
{
	const char *input = kind == 'm' ? "in" : kind == 'a' ? "receivers" : PICK(d, "a", "b");
	uint32_t least = 1 + draw(d, 3);

	switch (draw(d, kind == 't' ? 6 : 3)) {
	case 0:
		put(d, "{type: message_available, receiver: %s, min_size: %u", input, least);
		if (one_in(d, 3))
			put(d, ", front_stage_max_size: %u", least + draw(d, 2));
		put(d, "}, ");
		return;
	case 1:
		put(d, "{type: expiring_message_available, receiver: %s, max_batch_size: %u, ",
		    input, 1 + draw(d, 4));
		put(d, "max_delay_ns: %ums}, ", 2 + draw(d, 15));
		return;
	case 2:
		put(d, "{type: downstream_affordable, min_size: %u}, ", 1 + draw(d, 2));
		return;
	case 3:
		put(d, "{type: multi_message_available, min_sum: %u}, ", 1 + draw(d, 5));
		return;
	case 4:
		put(d, "{type: multi_message_available, sampling_mode: PerReceiver, ");
		put(d, "min_sizes: [%u, ", 1 + draw(d, 3));
		put(d, "%u]}, ", 1 + draw(d, 3));
		return;
	default:
		put(d, "{type: multi_message_available_timeout, min_sum: %u, ", 2 + draw(d, 4));
		put(d, "execution_frequency: %ums, ", 4 + draw(d, 10));
		put(d, "tolerance: %ums}, ", draw(d, 4));
	}
}

static void draw_conditions(struct drawn *d, int i, bool is_timed)
{
	const char kind = d->kinds[i];

	put(d, ", conditions: [");
	if (one_in(d, 4)) {
		put(d, "{type: boolean, name: gate, enable_tick: %s}, ", PICK(d, "true", "false"));
		d->one_way = false;
	}
	if (one_in(d, 5))
		put(d, "{type: count, count: %u}, ", 1 + draw(d, 6));
	if (kind == 's' ? !one_in(d, 4) : one_in(d, 5))
		draw_periodic(d);
	if (kind != 's' && !is_timed && one_in(d, 3)) {
		draw_input_condition(d, kind);
		d->one_way = false;
	}
	put(d, "]");
}

static void draw_timing(struct drawn *d, bool is_aligned)
{
	d->one_way = false;
	if (one_in(d, 3)) {
		put(d, "missing: default, ");
		if (one_in(d, 2))
			put(d, "default: %u, ", draw(d, 9));
		return;
	}
	if (!is_aligned) {
		put(d, "take: %s, ", PICK(d, "every", "latest_within"));
		put(d, "age: %ums, ", 2 + draw(d, 30));
	}
	put(d, "missing: %s, ", PICK(d, "wait", "skip", "reuse_last"));
}

static void draw_port(struct drawn *d, const char *name, bool is_timed, bool is_aligned)
{
	put(d, "%s: {", name);
	if (is_timed) {
		draw_timing(d, is_aligned);
	} else if (one_in(d, 12)) {
		put(d, "condition: none, ");
		d->one_way = false;
	} else if (one_in(d, 8)) {
		put(d, "size: %u, ", draw(d, 3));
	}
	put(d, "capacity: %u}, ", 3 + draw(d, 3));
}

static void draw_op(struct drawn *d, int i)
{
	static const char *const types[] = {
		['s'] = "src", ['m'] = "mid", ['t'] = "two", ['a'] = "all"};
	const char kind = d->kinds[i];
	const bool is_timed = kind == 't' && one_in(d, 2), is_aligned = is_timed && one_in(d, 2);

	put(d, "  %c: {type: %s", (char)('a' + i), types[(int)kind]);
	draw_parameters(d, i);
	draw_conditions(d, i, is_timed);
	put(d, ", ports: {");
	if (kind == 'm' || kind == 'a')
		draw_port(d, kind == 'm' ? "in" : "receivers", false, false);
	if (kind == 't') {
		draw_port(d, "a", is_timed && one_in(d, 2), is_aligned);
		draw_port(d, "b", is_timed, is_aligned);
	}
	if (kind == 's' && one_in(d, 8))
		put(d, "out: {condition: none}");
	put(d, "}");
	if (is_aligned) {
		put(d, ", align: {window: %ums, ", 1 + draw(d, 9));
		put(d, "timeout: %ums}", 5 + draw(d, 20));
	} else if (kind == 't' && !is_timed && one_in(d, 4))
		put(d, ", or_combine_port_conditions: [a, b]");
	if (kind != 's' && one_in(d, 4)) {
		put(d, ", deadline: {budget: %ums", 1 + draw(d, 12));
		put(d, ", from: %s}",
		    PICK(d, "tick", "acquisition, on_miss: drop", "acquisition, on_miss: stop",
			 "acquisition"));
	}
	put(d, "}\n");
}

/* From an earlier operator, of which it has no flow yet. */
static void draw_flow(struct drawn *d, int to, const char *port)
{
	const int from = (int)draw(d, (uint32_t)to);
	const char *policy;

	for (int i = 0; i < d->flow_count && strcmp(port, "receivers") == 0; i++)
		if (d->flows[i].from == from && d->flows[i].to == to)
			return;
	d->flows[d->flow_count].from = from;
	d->flows[d->flow_count++].to = to;
	put(d, "  - {from: %c.out, to: %c.%s", (char)('a' + from), (char)('a' + to), port);
	policy = one_in(d, 2) ? "block"
			      : PICK(d, "pop", "reject", "latest", "async_buffer", "fault");
	if (strchr("prl", policy[0]) != NULL || policy[0] == 'a' || policy[0] == 'f')
		d->one_way = false;
	if (policy[0] != 'b')
		put(d, ", policy: %s", policy);
	if (policy[0] != 'l' && policy[0] != 'a' && one_in(d, 3))
		put(d, ", capacity: %u", 1 + draw(d, 4));
	put(d, "}\n");
}

static void draw_path(struct drawn *d)
{
	const int last = (int)draw(d, (uint32_t)d->flow_count), middle = d->flows[last].from;
	int first = middle;

	for (int i = 0; i < d->flow_count; i++)
		if (d->flows[i].to == middle)
			first = d->flows[i].from;
	const char *on_miss = PICK(d, "count", "drop", "stop");

	put(d, "deadlines: [{path: [");
	if (first != middle)
		put(d, "%c, ", (char)('a' + first));
	put(d, "%c, %c], budget: %ums, on_miss: %s}]\n", (char)('a' + middle),
	    (char)('a' + d->flows[last].to), 1 + draw(d, 15), on_miss);
}

static void draw_flows(struct drawn *d)
{
	put(d, "flows:\n");
	for (int i = 1; i < d->ops; i++) {
		const char kind = d->kinds[i];

		for (uint32_t k = kind == 'a' ? 2 + draw(d, 2) : kind == 'm' ? 1 : 0; k > 0; k--)
			draw_flow(d, i, kind == 'm' ? "in" : "receivers");
		if (kind == 't') {
			draw_flow(d, i, "a");
			draw_flow(d, i, "b");
		}
	}
}

static void draw_data(struct drawn *d)
{
	d->ops = 2 + (int)draw(d, 4);
	for (int i = 0; i < d->ops; i++)
		d->kinds[i] =
			i == 0 ? 's' : "smmttta"[i + 1 < d->ops ? draw(d, 7) : 1 + draw(d, 6)];
	put(d, "operators:\n");
	for (int i = 0; i < d->ops; i++)
		draw_op(d, i);
	draw_flows(d);
	if (one_in(d, 3))
		draw_path(d);
	if (one_in(d, 5)) {
		put(d, "tracking: {num_start_messages_to_skip: %u, ", draw(d, 2));
		put(d, "num_last_messages_to_discard: %u, ", draw(d, 2));
		put(d, "probes: [%c]}\n", (char)('a' + draw(d, (uint32_t)d->ops)));
	}
	if (one_in(d, 10))
		put(d, "data_loggers: {log: {type: scribe, log_inputs: %s}}\n",
		    PICK(d, "true", "false"));
}

/* Steps that execution flows tick, also round and round; two of them may have data too. */
static void draw_steps(struct drawn *d)
{
	static const char *const types[] = {
		['s'] = "src", ['m'] = "mid", ['p'] = "step", ['c'] = "choice", ['l'] = "select"};

	d->one_way = false;
	d->ops = 3 + (int)draw(d, 4);
	put(d, "operators:\n");
	for (int i = 0; i < d->ops; i++) {
		const char kind = d->kinds[i] = i == 0 ? 's' : "ppccml"[draw(d, i == 1 ? 4 : 6)];

		put(d, "  %c: {type: %s, parameters: {done: %u", (char)('a' + i), types[(int)kind],
		    3 + draw(d, 6));
		put(d, ", turns: %u", 1 + draw(d, 6));
		if (one_in(d, 6))
			put(d, ", sleep_ms: %u", 1 + draw(d, 9));
		if (one_in(d, 12))
			put(d, ", stop_at: 3");
		put(d, "}, conditions: [");
		if (one_in(d, 5))
			draw_periodic(d);
		if (i > 0 && one_in(d, 5))
			put(d, "{type: message_available, receiver: __input_exec__, min_size: %u}",
			    1 + draw(d, 2));
		put(d, "]}\n");
	}
	put(d, "flows:\n  - <|start|> -> b\n");
	for (int i = 1; i < d->ops; i++) {
		const int from = 1 + (int)draw(d, (uint32_t)d->ops - 1);

		if (d->kinds[i] == 'm' || d->kinds[i] == 'l')
			put(d, "  - {from: a.out, to: %c.in, capacity: %u}\n", (char)('a' + i),
			    1 + draw(d, 3));
		put(d, "  - {from: %c.__output_exec__, to: %c.__input_exec__", (char)('a' + from),
		    (char)('a' + i));
		if (one_in(d, 3)) {
			put(d, ", capacity: %u", 1 + draw(d, 3));
			put(d, ", policy: %s", PICK(d, "block", "pop", "reject"));
		}
		put(d, "}\n");
		if (i > 1 && one_in(d, 2))
			put(d, "  - %c.__output_exec__ -> %c.__input_exec__\n",
			    (char)('a' + 1 + draw(d, (uint32_t)i - 1)), (char)('a' + i));
	}
}

static struct rig rig;
static bool is_over(struct rig *r)
{
	return r->done > 0;
}

/* At which places what came late was late, and why. */
static void print_lates(const struct rig *r, FILE *out)
{
	const struct fragi_ledger_head *head = fragi_run_ledger(r->run)->head;
	struct fragi_run_late_place place;

	for (uint32_t i = 0; fragi_run_late_place(r->run, i, &place); i++) {
		fprintf(out, "late for %u.%u, %s to %s:", place.fragment, place.op,
			place.from != NULL ? place.from : "nothing", place.at);
		for (int cause = 0; cause < FRAGI_BLAME_CAUSES; cause++)
			if (head->lates[i].late[cause] > 0)
				fprintf(out, " %d %s", (int)head->lates[i].late[cause],
					fragi_blame_name((enum fragi_blame_cause)cause));
		fputc('\n', out);
	}
}

static void print_rows(const struct rig *r, FILE *out)
{
	const struct fragi_ledger *ledger = fragi_run_ledger(r->run);
	size_t count, fragments;
	const struct fragi_flow_info *flows = fragi_run_flows(r->run, &count);
	const struct fragi_fragment_info *infos = fragi_run_fragments(r->run, &fragments);

	for (size_t i = 0; i < count; i++) {
		const struct fragi_flow_row *row = &ledger->flows[i];
		char from[200], to[200];

		fprintf(out, "%s -> %s:", fragi_flow_from(infos, &flows[i], from, sizeof(from)),
			fragi_flow_to(infos, &flows[i], to, sizeof(to)));
#define DROPPED(NAME, name, when)                                                                  \
	if (rig_dropped(row, FRAGI_DROP_##NAME) > 0)                                               \
		fprintf(out, " " #name " %d", (int)rig_dropped(row, FRAGI_DROP_##NAME));
#define COUNTED(name, shown, what)                                                                 \
	if (row->name > 0 && strcmp(#shown, "SHOWN") == 0 && strcmp(#name, "bytes") != 0)          \
		fprintf(out, " " #name " %d", (int)row->name);
		FRAGI_SENDER_LIST(COUNTED)
		FRAGI_RECEIVER_LIST(COUNTED)
		FRAGI_DROP_LIST(DROPPED)
		fprintf(out, " latency %d in %d\n", (int)(row->latency.max / 1000000),
			(int)row->latency.count);
	}
	for (uint32_t i = 0; i < infos[0].op_count; i++) {
		const struct fragi_op_row *row = &ledger->ops[i];

		fprintf(out, "%s: state %d ticks %d compute %d in %d", infos[0].ops[i].name,
			(int)row->state, (int)row->ticks, (int)(row->compute.max / 1000000),
			(int)row->compute.count);
#define OP_COUNTED(name, shown, what)                                                              \
	if (row->name > 0 && strcmp(#shown, "INTERNAL") != 0)                                      \
		fprintf(out, " " #name " %d", (int)row->name);
		FRAGI_OP_LIST(OP_COUNTED)
		fputc('\n', out);
	}
}

/* What was seen of each operator and flow, in all that were looked at. */
static void print_uses(const struct rig *r, FILE *out)
{
	static const char *const uses[] = {"busy",   "input", "room",     "memory",
					   "thread", "time",  "suspended"};
	const struct fragi_ledger *ledger = fragi_run_ledger(r->run);

	for (uint32_t i = 0; i < ledger->op_count; i++) {
		fprintf(out, "%s%c", i > 0 ? ", " : "looks: ", (char)('a' + i));
		for (uint32_t u = 0; u < FRAG_COUNT_OF(uses); u++)
			if ((&ledger->ops[i].use_busy)[u] > 0)
				fprintf(out, " %d %s",
					(int)((&ledger->ops[i].use_busy)[u] / 1000000), uses[u]);
	}
	for (uint32_t i = 0; i < ledger->flow_count; i++) {
		const struct fragi_flow_row *row = &ledger->flows[i];

		if (row->full_ns + row->room_ns + row->input_ns > 0)
			fprintf(out, ", flow %u full %d room %d input %d", i,
				(int)(row->full_ns / 1000000), (int)(row->room_ns / 1000000),
				(int)(row->input_ns / 1000000));
	}
	fputc('\n', out);
}

struct lived {
	char *all, *own[26], *rows;
	size_t size;
};

/* Runs a graph that is right, and keeps what was written down. */
static bool live(const char *scheduler, const char *graph, struct lived *out)
{
	char text[8000];
	bool is_good = false;
	FILE *rows;

	logged_begin();
	state_begin();
	life_has_state = strstr(scheduler, "greedy") != NULL;
	snprintf(text, sizeof(text), "frag: 1\napplication: x\nclock: manual\nscheduler: %s\n%s",
		 scheduler, graph);
	lives_out = open_memstream(&out->all, &out->size);
	for (int i = 0; i < 26; i++)
		lives_own[i] = open_memstream(&out->own[i], &out->size);
	rows = open_memstream(&out->rows, &out->size);
	if (rig_prepare(&rig, &lives_plugin, text) < 0) {
		for (size_t i = 0; i < rig.diag.count; i++)
			fprintf(lives_out, "refused: %s\n", rig.diag.items[i].text);
	} else {
		is_good = true;
		rig_start(&rig);
		cr_assert(rig_wait(&rig, is_over, RIG_LIMIT_NS), "%s", text);
		fprintf(rows, "ends: started %u%s%s%s%s %s\n", rig.started,
			rig.failed > 0 ? " failed" : "", rig.stopped > 0 ? " stopped" : "",
			rig.idle > 0 ? " idle" : "", rig.done > 0 ? " done" : "", rig.sentence);
		print_rows(&rig, rows);
		print_lates(&rig, rows);
		if (rig.run->deadline_count == 0)
			print_uses(&rig, rows);
		fprintf(rows, "sum %016" PRIx64 "\n", state_sum);
	}
	rig_end(&rig);
	logged_end(rows);
	fclose(lives_out);
	fclose(rows);
	for (int i = 0; i < 26; i++)
		fclose(lives_own[i]);
	return is_good;
}

static void lived_fini(struct lived *lived)
{
	free(lived->all);
	free(lived->rows);
	for (int i = 0; i < 26; i++)
		free(lived->own[i]);
}

/* Returns whether the graph that was drawn is right; else its errors are written. */
static bool live_both(uint64_t seed, void (*draw_graph)(struct drawn *d), FILE *out)
{
	struct drawn d = {.state = seed, .one_way = true};
	struct lived greedy = {0}, event_based = {0};
	char *graph;
	size_t size;
	bool is_good, is_same = true;

	d.text = open_memstream(&graph, &size);
	draw_graph(&d);
	fclose(d.text);
	is_good = live("{type: greedy, max_duration_ms: 300}", graph, &greedy);
	fprintf(out, "life %d\n%s%s%s\n", (int)seed, is_good ? graph : "", greedy.all, greedy.rows);
	if (is_good && d.one_way) {
		live("{type: event_based, worker_thread_number: 1, max_duration_ms: 300}", graph,
		     &event_based);
		for (int i = 0; i < 26; i++)
			is_same &= strcmp(greedy.own[i], event_based.own[i]) == 0;
		cr_expect(is_same, "%sevent_based:\n%s", greedy.all, event_based.all);
		lived_fini(&event_based);
	}
	lived_fini(&greedy);
	free(graph);
	return is_good;
}

static void lives_of(const char *name, int wanted, void (*draw_graph)(struct drawn *d))
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int good = 0;

	for (uint64_t seed = 1; good < wanted; seed++)
		good += live_both(seed, draw_graph, out);
	fclose(out);
	expected_compare(name, text);
	free(text);
}

Test(lives, data)
{
	lives_of("lives/data", 120, draw_data);
}

Test(lives, steps)
{
	lives_of("lives/steps", 40, draw_steps);
}
