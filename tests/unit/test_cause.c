// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <track/cause.h>

#define NONE FRAGI_LOOK_NONE
#define MS 1000000ull
#define S (1000 * MS)
#define ROWS 6

/*
 * A window of 1 s as text: rows of an operator, a flow or a host, with what is not 0. Times are in
 * ms. from and to are the flows that an operator waits for; flow i goes from operator i to i + 1
 * unless it says otherwise. Without a row of a host there are two that are not busy.
 */
struct graph {
	const char *what, *rows;
	enum fragi_cause_kind kind;
	uint32_t op;
	const char *says; /* in the sentence */
};

struct tables {
	struct fragi_look look;
	struct fragi_look_operator ops[ROWS];
	struct fragi_look_flow flows[ROWS];
	struct fragi_look_host hosts[ROWS];
};

static void set_operator(struct fragi_look_operator *op, const char *key, uint32_t value)
{
#define USE(NAME, name, what)                                                                      \
	if (strcmp(key, #name) == 0)                                                               \
		op->use_ns[FRAGI_USE_##NAME] = value * MS;
	FRAGI_USE_LIST(USE)
#undef USE
	if (strcmp(key, "host") == 0)
		op->host = value;
	else if (strcmp(key, "from") == 0)
		op->input_flow = value;
	else if (strcmp(key, "to") == 0)
		op->room_flow = value;
	else if (strcmp(key, "ticks") == 0)
		op->ticks = value;
	else if (strcmp(key, "promised") == 0)
		op->promised_mhz = value * 1000ull;
	else if (strcmp(key, "period") == 0)
		op->period_ns = value * MS;
	else if (strcmp(key, "ended") == 0)
		op->has_ended = true;
}

static void set_flow(struct fragi_look_flow *flow, const char *key, uint32_t value)
{
	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		if (strcmp(key, fragi_drop_name((enum fragi_drop)i)) == 0)
			flow->dropped[i] = value;
	if (strcmp(key, "sender") == 0)
		flow->sender = value;
	else if (strcmp(key, "receiver") == 0)
		flow->receiver = value;
	else if (strcmp(key, "sent") == 0)
		flow->sent = flow->delivered = value;
	else if (strcmp(key, "lost") == 0)
		flow->lost = value;
	else if (strcmp(key, "full") == 0)
		flow->full_ns = value * MS;
	else if (strcmp(key, "latest") == 0)
		flow->policy = "latest";
}

static void set_host(struct fragi_look_host *host, const char *key, uint32_t value)
{
	if (strcmp(key, "cpu") == 0)
		host->cpu_ns = value * MS;
	else if (strcmp(key, "starved") == 0)
		host->starved_ns = value * MS;
	else if (strcmp(key, "io") == 0)
		host->io_ns = value * MS;
	else if (strcmp(key, "threads") == 0)
		host->threads = value;
	else if (strcmp(key, "cores") == 0)
		host->cores = value;
	else if (strcmp(key, "restarts") == 0)
		host->suspended_because = "it is started again: it crashed";
}

static void build(const char *rows, struct tables *t)
{
	static const char *const names[ROWS] = {"f1.src", "f1.a", "f2.b", "f2.c", "f2.d"};
	char *text = strdup(rows), *next = text, *row, *pair;

	*t = (struct tables){.look = {.application = "app",
				      .window_ns = S,
				      .operators = t->ops,
				      .flows = t->flows,
				      .hosts = t->hosts}};
	while ((row = strsep(&next, ";")) != NULL) {
		uint32_t o = t->look.operator_count, f = t->look.flow_count, h = t->look.host_count;
		char *kind = strsep(&row, " ");

		if (kind[0] == '\0')
			kind = strsep(&row, " ");
		if (strcmp(kind, "op") == 0) {
			t->ops[t->look.operator_count++] =
				(struct fragi_look_operator){.name = names[o],
							     .input_flow = NONE,
							     .room_flow = NONE,
							     .pool = "f1.pool"};
		} else if (strcmp(kind, "flow") == 0) {
			t->flows[t->look.flow_count++] = (struct fragi_look_flow){.from = "x.out",
										  .to = "y.in",
										  .sender = f,
										  .receiver = f + 1,
										  .capacity = 4};
		} else {
			cr_assert_str_eq(kind, "host");
			t->hosts[t->look.host_count++] = (struct fragi_look_host){
				.name = h == 0 ? "f1" : "f2", .worker = h == 0 ? "w1" : "w2"};
		}
		while ((pair = strsep(&row, " ")) != NULL) {
			char *key = strsep(&pair, "=");
			uint32_t value = (uint32_t)atoi(pair);

			if (kind[0] == 'o')
				set_operator(&t->ops[o], key, value);
			else if (kind[0] == 'f')
				set_flow(&t->flows[f], key, value);
			else
				set_host(&t->hosts[h], key, value);
		}
	}
	for (; t->look.host_count < 2; t->look.host_count++)
		t->hosts[t->look.host_count] =
			(struct fragi_look_host){.name = t->look.host_count == 0 ? "f1" : "f2",
						 .worker = t->look.host_count == 0 ? "w1" : "w2",
						 .cpu_ns = 900 * MS,
						 .threads = 2,
						 .cores = 4};
	free(text);
}

static void check(const struct graph *graphs, size_t count)
{
	for (const struct graph *g = graphs; g < graphs + count; g++) {
		struct fragi_arena arena = {0};
		struct fragi_cause cause;
		struct tables t;

		build(g->rows, &t);
		cr_assert_eq(fragi_cause_find(&t.look, &arena, &cause), 0);
		cr_expect_eq(cause.kind, g->kind, "%s: %s: %s", g->what,
			     fragi_cause_name(cause.kind), cause.sentence);
		if (g->kind != FRAGI_CAUSE_NONE)
			cr_expect_eq(cause.op, g->op, "%s: operator %d: %s", g->what, (int)cause.op,
				     cause.sentence);
		cr_expect_not_null(strstr(cause.sentence, g->says), "%s: %s", g->what,
				   cause.sentence);
		fragi_arena_fini(&arena);
	}
}

static const struct graph planted[] = {
	{"slow operator",
	 "op busy=20 room=740 time=240 to=0 ticks=18 promised=30 period=33; op host=1 busy=990 thread=10 from=0 ticks=18; op host=1 busy=50 input=950 from=1 ticks=18; flow sent=18; flow sent=18",
	 FRAGI_CAUSE_OPERATOR, 1,
	 "f1.src is slow (18 of 30 /s) because f1.a computes 55.0 ms a tick on 1 thread"},
	{"two slow in a row, the second one slower",
	 "op busy=20 room=740 time=240 to=0 ticks=18 period=33; op busy=910 room=90 from=0 to=1 ticks=18; op host=1 busy=1000 from=1 ticks=18; flow; flow; host cpu=930 threads=2 cores=4; host cpu=990 threads=2 cores=4",
	 FRAGI_CAUSE_OPERATOR, 2, "f1.src is slow (18 of 30.3 /s) because f2.b computes"},
	{"two slow in a row, the first one slower, seen at the end",
	 "op busy=20 room=740 time=240 to=0 ticks=18; op busy=1000 from=0 to=1 ticks=18; op host=1 busy=910 input=90 from=1 ticks=18 promised=30; flow; flow; host cpu=990 threads=2 cores=4; host cpu=910 threads=2 cores=4",
	 FRAGI_CAUSE_OPERATOR, 1, "f2.b is slow (18 of 30 /s) because f1.a computes"},
	{"small window",
	 "op busy=20 room=900 time=80 to=0 ticks=20 period=10; op host=1 busy=20 input=980 from=0 ticks=20; flow sent=20 full=980",
	 FRAGI_CAUSE_LINK, 0, "because the link x.out -> y.in carries 20 /s"},
	{"slow network, with drops at the sender",
	 "op busy=20 time=980 ticks=30 period=33; op host=1 busy=20 input=980 from=0 ticks=18; flow sent=30 queue_full=12 full=980",
	 FRAGI_CAUSE_LINK, 0, "x.out -> y.in drops 12 of 30 /s because the link"},
	{"exhausted pool",
	 "op busy=20 memory=700 time=280 ticks=12 period=33; op host=1 busy=300 input=700 from=0 ticks=12; flow sent=12",
	 FRAGI_CAUSE_POOL, 0, "it waits 700 ms a second for memory of f1.pool"},
	{"CPU taken away",
	 "op busy=20 room=600 time=380 to=0 ticks=18 period=33; op host=1 busy=1000 from=0 ticks=18; flow sent=18; host cpu=900 threads=2 cores=4; host cpu=450 starved=500 threads=2 cores=2",
	 FRAGI_CAUSE_CORES, 1, "because other threads take the cores of host f2 away"},
	{"too few threads",
	 "op busy=200 thread=400 time=400 ticks=18 period=33; op busy=400 input=100 thread=500 from=0 ticks=18; op busy=400 input=300 thread=300 from=1 ticks=18; flow; flow; host cpu=980 threads=1 cores=4",
	 FRAGI_CAUSE_THREADS, 0,
	 "it waits 400 ms a second for a thread: host f1 has 1 thread for 3 operators; 3 threads would help"},
	{"operators that take turns with threads enough",
	 "op busy=20 room=980 to=0 ticks=8 period=33; op host=1 busy=400 thread=600 from=0 to=1 ticks=8; op host=1 busy=480 input=520 from=1 ticks=8; flow sent=8; flow sent=8; host cpu=900 threads=2 cores=4; host cpu=800 threads=2 cores=4",
	 FRAGI_CAUSE_THREADS, 1, "host f2 has 2 threads for 2 operators; a larger capacity"},
	{"a pinned core shared",
	 "op busy=20 room=600 time=380 to=0 ticks=18 period=33; op host=1 busy=1000 from=0 ticks=18; flow sent=18; host cpu=900 threads=2 cores=4; host cpu=990 starved=950 threads=2 cores=1",
	 FRAGI_CAUSE_CORES, 1, "because host f2 computes with 2 threads on 1 core"},
	{"slow disk at a recorder",
	 "op busy=20 room=600 time=380 to=0 ticks=18 period=33; op host=1 busy=990 input=10 from=0 ticks=18; flow sent=18; host cpu=900 threads=2 cores=4; host cpu=100 io=800 threads=2 cores=2",
	 FRAGI_CAUSE_OPERATOR, 1, "it waits for a disk"},
	{"a GPU kernel",
	 "op busy=20 room=600 time=380 to=0 ticks=18 period=33; op host=1 busy=990 input=10 from=0 ticks=18; flow sent=18; host cpu=900 threads=2 cores=4; host cpu=100 threads=2 cores=2",
	 FRAGI_CAUSE_OPERATOR, 1,
	 "90 % of it without a CPU (it waits for a GPU, a device or a sleep)"},
	{"a rate set too low",
	 "op busy=20 time=980 ticks=20 period=50; op host=1 busy=100 input=900 from=0 ticks=20 promised=30; flow sent=20",
	 FRAGI_CAUSE_CLOCK, 0,
	 "f1.a is slow (20 of 30 /s) because f1.src ticks every 50.0 ms (20 /s)"},
	{"a restart",
	 "op busy=20 room=800 time=180 to=0 ticks=6 period=33; op host=1 busy=100 input=100 suspended=800 from=0 ticks=6; flow sent=6; host cpu=900 threads=2 cores=4; host cpu=100 threads=2 cores=4 restarts=1",
	 FRAGI_CAUSE_SUSPENDED, 1,
	 "host f2 does not run (800 ms of the last 1.0 s): it is started again: it crashed"},
};

Test(cause, planted_bottlenecks)
{
	check(planted, sizeof(planted) / sizeof(planted[0]));
}

static const struct graph healthy[] = {
	{"a camera at its rate",
	 "op busy=100 time=900 ticks=30 promised=30 period=33; op host=1 busy=300 input=700 from=0 ticks=30; flow sent=30",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong"},
	{"a source as fast as it can be",
	 "op busy=400 room=600 to=0 ticks=18; op busy=600 room=400 from=0 to=1 ticks=18; op host=1 busy=1000 from=1 ticks=18; flow sent=18; flow sent=18",
	 FRAGI_CAUSE_NONE, 0,
	 "nothing is wrong; f2.b bounds the rate (18 /s): it computes 55.6 ms a tick"},
	{"everything computes all the time",
	 "op busy=1000 to=0 ticks=18; op busy=1000 from=0 to=1 ticks=18; op host=1 busy=1000 from=1 ticks=18; flow sent=18; flow sent=18",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong"},
	{"a fast link as fast as it can be",
	 "op busy=300 room=700 to=0 ticks=9000; op host=1 busy=300 input=700 from=0 ticks=9000; flow sent=9000",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong; a flow bounds"},
	{"ended",
	 "op busy=100 suspended=900 ticks=2 promised=30 period=33 ended=1; op host=1 busy=100 suspended=900 from=0 ticks=2 promised=30 ended=1; flow sent=2",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong"},
	{"the last tick of a drain",
	 "op busy=10 suspended=990 ticks=1 promised=30 period=33 ended=1; op busy=200 input=800 from=0 ticks=10 promised=30; op host=1 busy=200 input=800 from=1 ticks=10 promised=30; flow sent=1; flow sent=10 stopped=5",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong"},
	{"it has just begun",
	 "op busy=10 time=90 suspended=900 ticks=3 promised=30 period=33; op host=1 busy=10 input=90 suspended=900 from=0 ticks=3 promised=30; flow sent=3",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong"},
	{"policy latest drops by wish",
	 "op busy=10 time=990 ticks=30 promised=30 period=33; op host=1 busy=1000 from=0 ticks=18; flow sent=30 queue_full=12 latest=1",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong"},
	{"one late tick, one dropped message",
	 "op busy=10 room=50 time=940 to=0 ticks=9 promised=10 period=100; op host=1 busy=500 input=500 from=0 ticks=9 promised=10; flow sent=9 queue_full=1",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong"},
	{"a quiet source that waits for an event",
	 "op busy=1 time=999 ticks=1 period=33; op host=1 busy=1 input=999 from=0 ticks=1; flow sent=1",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong"},
	{"others compute on its cores, and it keeps its rate",
	 "op busy=100 time=900 ticks=30 promised=30 period=33; op host=1 busy=700 input=300 from=0 ticks=30; flow sent=30; host cpu=500 starved=500 threads=2 cores=2; host cpu=400 starved=500 threads=2 cores=2",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong"},
	{"one thread for all, at the rate",
	 "op busy=300 thread=300 time=400 ticks=30 promised=30 period=33; op busy=300 input=400 thread=300 from=0 ticks=30; op busy=300 input=400 thread=300 from=1 ticks=30; flow sent=30; flow sent=30; host cpu=950 threads=1 cores=1",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong"},
	{"a receiver that has ended",
	 "op busy=10 time=990 ticks=30 promised=30 period=33; op host=1 suspended=1000 ended=1; flow sent=30 receiver_done=30",
	 FRAGI_CAUSE_NONE, 0, "nothing is wrong"},
};

Test(cause, healthy_graphs)
{
	check(healthy, sizeof(healthy) / sizeof(healthy[0]));
}

/* Each threshold with a value on each side. */
static const struct graph boundaries[] = {
	{"27 of 30 are enough", "op busy=1000 ticks=27 promised=30", FRAGI_CAUSE_NONE, 0, ""},
	{"26 of 30 are too few", "op busy=1000 ticks=26 promised=30", FRAGI_CAUSE_OPERATOR, 0,
	 "26 of 30"},
	{"1 of 2: one tick is missing", "op busy=1000 ticks=1 promised=2", FRAGI_CAUSE_NONE, 0, ""},
	{"1 of 3: two are", "op busy=1000 ticks=1 promised=3", FRAGI_CAUSE_OPERATOR, 0, "1 of 3"},
	{"half of the window before the start", "op busy=500 suspended=500 ticks=1 promised=30",
	 FRAGI_CAUSE_NONE, 0, ""},
	{"less than half", "op busy=501 suspended=499 ticks=1 promised=30", FRAGI_CAUSE_OPERATOR, 0,
	 "of 30"},
	{"two that are short, one by two ticks less: the first one",
	 "op room=1000 to=0 ticks=18 promised=30; op host=1 busy=1000 from=0 ticks=16 promised=30; flow sent=18",
	 FRAGI_CAUSE_OPERATOR, 1, "f1.src is slow (18 of 30 /s) because f1.a computes"},
	{"three ticks less: the shorter one",
	 "op room=1000 to=0 ticks=19 promised=30; op host=1 busy=1000 from=0 ticks=16 promised=30; flow sent=19",
	 FRAGI_CAUSE_OPERATOR, 1, "f1.a is slow (16 of 30 /s): it computes"},
	{"one that should tick three times and does not, beside a fast one",
	 "op busy=1000 ticks=600 promised=1000; op host=1 busy=1000 ticks=0 promised=3; flow sent=600",
	 FRAGI_CAUSE_OPERATOR, 1, "f1.a is slow (0 of 3 /s)"},
	{"1 message dropped", "op time=1000; op busy=1000 from=0; flow sent=30 queue_full=1",
	 FRAGI_CAUSE_NONE, 0, ""},
	{"2 dropped", "op time=1000; op busy=1000 from=0; flow sent=30 queue_full=2",
	 FRAGI_CAUSE_OPERATOR, 1, "drops 2 of 30"},
	{"9 of 1000 dropped", "op time=1000; op busy=1000 from=0; flow sent=1000 queue_full=9",
	 FRAGI_CAUSE_NONE, 0, ""},
	{"10 of 1000", "op time=1000; op busy=1000 from=0; flow sent=1000 queue_full=10",
	 FRAGI_CAUSE_OPERATOR, 1, "drops 10 of 1000"},
	{"two flows that drop, of which the second one drops more",
	 "op time=1000; op busy=1000 from=0; op host=1 busy=1000 from=1; flow sent=30 queue_full=2; flow sent=30 queue_full=3 sender=0 receiver=2",
	 FRAGI_CAUSE_OPERATOR, 2, "drops 3 of 30"},
	{"the first one does",
	 "op time=1000; op busy=1000 from=0; op host=1 busy=1000 from=1; flow sent=30 queue_full=3; flow sent=30 queue_full=2 sender=0 receiver=2",
	 FRAGI_CAUSE_OPERATOR, 1, "drops 3 of 30"},
	{"fewer, but a larger part",
	 "op time=1000; op busy=1000 from=0; op host=1 busy=1000 from=1; flow sent=300 queue_full=9; flow sent=30 queue_full=3 sender=0 receiver=2",
	 FRAGI_CAUSE_OPERATOR, 2, "drops 3 of 30"},
	{"all, where a rate is short beside it",
	 "op busy=1000 ticks=9 promised=30; op busy=1000 from=0; flow sent=30 queue_full=30",
	 FRAGI_CAUSE_OPERATOR, 1, "drops 30 of 30"},
	{"it refuses what is too old",
	 "op time=1000; op busy=100 input=900 from=0; flow sent=30 stale=20", FRAGI_CAUSE_RULE, 1,
	 "(stale)"},
	{"1 message lost", "op time=1000; op busy=1000 from=0; flow sent=30 lost=1",
	 FRAGI_CAUSE_LOSS, 1, "lost 1 message"},
	{"suspended for 99 ms",
	 "op busy=901 suspended=99 ticks=30 promised=30; host cpu=900 threads=2 cores=4 restarts=1",
	 FRAGI_CAUSE_NONE, 0, ""},
	{"for 100 ms",
	 "op busy=900 suspended=100 ticks=30 promised=30; host cpu=900 threads=2 cores=4 restarts=1",
	 FRAGI_CAUSE_SUSPENDED, 0, "is started again"},
	{"a receiver that idles for 199 ms is slow",
	 "op room=1000 to=0 ticks=9 promised=30; op host=1 busy=801 input=199 from=0; flow sent=9",
	 FRAGI_CAUSE_OPERATOR, 1, ""},
	{"for 200 ms: it is the link",
	 "op room=1000 to=0 ticks=9 promised=30; op host=1 busy=800 input=200 from=0; flow sent=9",
	 FRAGI_CAUSE_LINK, 0, ""},
	{"in one host: 499 ms",
	 "op room=1000 to=0 ticks=9 promised=30; op busy=501 input=499 from=0; flow sent=9",
	 FRAGI_CAUSE_OPERATOR, 1, ""},
	{"500 ms: the queue is",
	 "op room=1000 to=0 ticks=9 promised=30; op busy=500 input=500 from=0; flow sent=9",
	 FRAGI_CAUSE_LINK, 0, "holds 4 messages"},
	{"99 ms for memory", "op busy=901 memory=99 ticks=9 promised=30", FRAGI_CAUSE_OPERATOR, 0,
	 ""},
	{"100 ms", "op busy=900 memory=100 ticks=9 promised=30", FRAGI_CAUSE_POOL, 0, ""},
	{"memory that a slow operator keeps",
	 "op busy=100 memory=900 ticks=9 promised=30; op host=1 busy=850 input=150 from=0; flow sent=9",
	 FRAGI_CAUSE_OPERATOR, 1, ""},
	{"which is not slow",
	 "op busy=100 memory=900 ticks=9 promised=30; op host=1 busy=849 input=151 from=0; flow sent=9",
	 FRAGI_CAUSE_POOL, 0, ""},
	{"99 ms for a thread", "op busy=901 thread=99 ticks=9 promised=30", FRAGI_CAUSE_OPERATOR, 0,
	 ""},
	{"100 ms", "op busy=900 thread=100 ticks=9 promised=30", FRAGI_CAUSE_THREADS, 0, ""},
	{"starved for 249 of 1000",
	 "op busy=1000 ticks=9 promised=30; host cpu=700 starved=249 threads=1 cores=1",
	 FRAGI_CAUSE_OPERATOR, 0, ""},
	{"for 250", "op busy=1000 ticks=9 promised=30; host cpu=700 starved=250 threads=1 cores=1",
	 FRAGI_CAUSE_CORES, 0, ""},
	{"a half of it without a CPU",
	 "op busy=1000 ticks=9 promised=30; host cpu=30 starved=470 threads=1 cores=1",
	 FRAGI_CAUSE_OPERATOR, 0, "without a CPU (it waits for a GPU"},
	{"less than a half",
	 "op busy=1000 ticks=9 promised=30; host cpu=30 starved=471 threads=1 cores=1",
	 FRAGI_CAUSE_CORES, 0, ""},
	{"starved for 49 ms",
	 "op busy=150 time=150 ticks=1 promised=30 period=33; host cpu=700 starved=49 threads=1 cores=1",
	 FRAGI_CAUSE_OPERATOR, 0, ""},
	{"for 50 ms",
	 "op busy=150 time=150 ticks=1 promised=30 period=33; host cpu=700 starved=50 threads=1 cores=1",
	 FRAGI_CAUSE_CORES, 0, ""},
	{"half of it without a CPU",
	 "op busy=1000 ticks=9 promised=30; host cpu=500 threads=1 cores=1", FRAGI_CAUSE_OPERATOR,
	 0, "without a CPU"},
	{"less than half", "op busy=1000 ticks=9 promised=30; host cpu=501 threads=1 cores=1",
	 FRAGI_CAUSE_OPERATOR, 0, "on 1 thread"},
	{"a disk, half of that",
	 "op busy=1000 ticks=9 promised=30; host cpu=200 io=400 threads=1 cores=1",
	 FRAGI_CAUSE_OPERATOR, 0, "a disk"},
	{"less than half of that",
	 "op busy=1000 ticks=9 promised=30; host cpu=200 io=399 threads=1 cores=1",
	 FRAGI_CAUSE_OPERATOR, 0, "a GPU"},
	{"a period of 37 ms for 30 /s", "op busy=600 time=400 ticks=20 promised=30 period=37",
	 FRAGI_CAUSE_OPERATOR, 0, ""},
	{"of 38 ms", "op busy=600 time=400 ticks=20 promised=30 period=38", FRAGI_CAUSE_CLOCK, 0,
	 "38.0 ms"},
	{"9 ms for room, of a busier one",
	 "op busy=991 room=9 to=0 ticks=9 promised=30; op busy=1000 from=0; flow sent=9",
	 FRAGI_CAUSE_OPERATOR, 0, ""},
	{"10 ms", "op busy=990 room=10 to=0 ticks=9 promised=30; op busy=1000 from=0; flow sent=9",
	 FRAGI_CAUSE_OPERATOR, 1, ""},
	{"10 ms, of one as busy",
	 "op busy=990 room=10 to=0 ticks=9 promised=30; op busy=990 input=10 from=0; flow sent=9",
	 FRAGI_CAUSE_OPERATOR, 0, ""},
};

Test(cause, thresholds_from_both_sides)
{
	check(boundaries, sizeof(boundaries) / sizeof(boundaries[0]));
}

static const struct graph shapes[] = {
	{"a circle: the busiest of it",
	 "op busy=200 room=800 to=0 ticks=9 promised=30; op busy=500 room=500 from=2 to=1 ticks=9; op busy=600 room=400 from=1 to=2 ticks=9; flow; flow; flow sender=2 receiver=1",
	 FRAGI_CAUSE_OPERATOR, 2, "f2.b computes"},
	{"an operator that waits for itself",
	 "op busy=400 room=600 to=0 ticks=9 promised=30; flow sender=0 receiver=0",
	 FRAGI_CAUSE_OPERATOR, 0, ""},
	{"fan-in: a source waits because the other one is slow",
	 "op busy=20 room=900 time=80 to=0 ticks=10 period=33; op host=1 busy=20 time=980 ticks=10 period=100; op host=1 busy=200 input=800 from=1 ticks=10; flow sender=0 receiver=2; flow sender=1 receiver=2",
	 FRAGI_CAUSE_CLOCK, 1, "f1.src is slow (10 of 30.3 /s) because f1.a ticks every 100 ms"},
	{"fan-out: one branch holds up the other one",
	 "op busy=100 room=800 time=100 to=2 ticks=10 period=33; op busy=100 input=900 from=0 ticks=10 promised=30; op host=1 busy=100 input=900 from=1 ticks=10; op host=1 busy=1000 from=2 ticks=10; flow sender=0 receiver=1; flow sender=0 receiver=2; flow sender=0 receiver=3",
	 FRAGI_CAUSE_OPERATOR, 3, "f2.c computes 100 ms a tick"},
	{"two culprits: the one that costs more",
	 "op busy=20 room=500 time=480 to=0 ticks=20 period=33; op busy=1000 from=0 ticks=20; op host=1 busy=20 room=700 time=280 to=1 ticks=10 period=33; op host=1 busy=1000 from=1 ticks=10; flow sender=0 receiver=1; flow sender=2 receiver=3",
	 FRAGI_CAUSE_OPERATOR, 3, "f2.b is slow (10 of 30.3 /s) because f2.c"},
	{"two that cost the same: the first one",
	 "op busy=20 room=700 time=280 to=0 ticks=10 period=33; op busy=1000 from=0 ticks=10; op host=1 busy=20 room=700 time=280 to=1 ticks=10 period=33; op host=1 busy=1000 from=1 ticks=10; flow sender=0 receiver=1; flow sender=2 receiver=3",
	 FRAGI_CAUSE_OPERATOR, 1, "f1.src is slow"},
	{"a drain beside a slow operator",
	 "op suspended=1000 promised=30 ended=1; op input=1000 from=0 promised=30; op host=1 busy=20 room=700 time=280 to=1 ticks=10 period=33; op host=1 busy=1000 from=1 ticks=10; flow sender=0 receiver=1; flow sender=2 receiver=3",
	 FRAGI_CAUSE_OPERATOR, 3, "f2.c computes"},
};

Test(cause, shapes_of_graphs)
{
	check(shapes, sizeof(shapes) / sizeof(shapes[0]));
}

/* Indices that point outside of the tables, and names that are missing, come from no good host. */
Test(cause, empty_and_broken_tables)
{
	struct fragi_look_operator op = {.host = 7,
					 .input_flow = 9,
					 .room_flow = 9,
					 .promised_mhz = 30000,
					 .use_ns = {0, 500 * MS, 500 * MS}};
	struct fragi_look_flow flow = {.sender = 5, .receiver = 0, .lost = 3, .sent = 3};
	struct fragi_look look = {
		.operators = &op, .flows = &flow, .operator_count = 1, .flow_count = 1};
	struct fragi_arena arena = {0};
	struct fragi_cause cause;

	cr_assert_eq(fragi_cause_find(&look, &arena, &cause), 0);
	cr_expect_eq(cause.kind, FRAGI_CAUSE_UNMEASURED);
	look.window_ns = S;
	cr_assert_eq(fragi_cause_find(&look, &arena, &cause), 0);
	cr_expect_eq(cause.kind, FRAGI_CAUSE_OPERATOR, "%s", cause.sentence);
	cr_expect_eq(cause.host, NONE);
	look.operator_count = 0;
	cr_assert_eq(fragi_cause_find(&look, &arena, &cause), 0);
	cr_expect_eq(cause.kind, FRAGI_CAUSE_UNMEASURED);
	fragi_arena_fini(&arena);
}

#define MANY 10000

/* A line; its last operator is slow. It is also read the other way round, from sink to source. */
Test(cause, ten_thousand_operators_in_10_ms)
{
	static struct fragi_look_operator ops[MANY];
	static struct fragi_look_flow flows[MANY - 1];
	struct fragi_look_host host = {.name = "f", .threads = 2, .cores = 2, .cpu_ns = S};
	struct fragi_look look = {.window_ns = S,
				  .operators = ops,
				  .flows = flows,
				  .hosts = &host,
				  .operator_count = MANY,
				  .flow_count = MANY - 1,
				  .host_count = 1};
	uint64_t best = UINT64_MAX;

	for (uint32_t i = 0; i < MANY; i++)
		ops[i] = (struct fragi_look_operator){.name = "f.op",
						      .ticks = 10,
						      .promised_mhz = 30000,
						      .use_ns = {100 * MS, 0, 900 * MS},
						      .input_flow = NONE,
						      .room_flow = i};
	for (uint32_t i = 0; i < MANY - 1; i++)
		flows[i] = (struct fragi_look_flow){.sender = i, .receiver = i + 1, .sent = 10};
	ops[MANY - 1].use_ns[FRAGI_USE_BUSY] = S;
	ops[MANY - 1].use_ns[FRAGI_USE_ROOM] = 0;
	for (int i = 0; i < 20; i++) {
		struct fragi_arena arena = {0};
		struct fragi_cause cause;
		struct timespec a, b;
		uint64_t ns;

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		cr_assert_eq(fragi_cause_find(&look, &arena, &cause), 0);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
		ns = (uint64_t)((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec);
		best = ns < best ? ns : best;
		cr_expect_eq(cause.op, MANY - 1);
		cr_expect_eq(cause.chain_count, 18, "the middle is left out: %u",
			     cause.chain_count);
		cr_expect_str_eq(cause.chain[9].text, "and so on, over 9984 operators more");
		fragi_arena_fini(&arena);
	}
	cr_expect_lt(best, 10 * MS, "%d us", (int)(best / 1000));
}
