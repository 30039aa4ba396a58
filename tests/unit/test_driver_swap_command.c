// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* What a client is answered that asks for another library, and which libraries are meant. */
#define CLIENT 50

/* f2, f3 and f4 have one host, and f4 uses another library. */
#define GRAPH_OF(libraries, more)                                                                  \
	"frag: 1\n"                                                                                \
	"application: app\n"                                                                       \
	"fragments:\n"                                                                             \
	"  f1: {operators: {tx: {type: t}}}\n"                                                     \
	"  f2: {extensions: [" libraries "], host: b, operators: {rx: {type: t}}}\n"               \
	"  f3: {extensions: [liba.so, libold.so], host: b, operators: {o: {type: t}}}\n"           \
	"  f4: {extensions: [liba.so], host: b, operators: {o: {type: t}}}\n"                      \
	"flows: [f1.tx.out -> f2.rx.in]\n" more
static const char graph[] = GRAPH_OF("libold.so", "");
#define SHA256 "0123456789012345678901234567890123456789012345678901234567890123"

static void say_host_prepared(struct world *w)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 2);
	struct fw_port port = {.name = "in", .type = "message", .dir = FRAG_IN, .has_codec = true};
	struct fw_op ops[] = {{.name = "rx", .type = "t", .ports = &port, .port_count = 1},
			      {.name = "o", .type = "t"},
			      {.name = "o", .type = "t"}};
	struct fw_fragment fragments[] = {{.name = "f2", .ops = &ops[0], .op_count = 1},
					  {.name = "f3", .ops = &ops[1], .op_count = 1},
					  {.name = "f4", .ops = &ops[2], .op_count = 1}};
	struct fw_address address = {"ucx", "address", 7, "tcp lo"};

	message.prepared = (struct fw_host_prepared){.ok = true,
						     .fragments = fragments,
						     .fragment_count = 3,
						     .addresses = &address,
						     .address_count = 1,
						     .pid = 102};
	say(w, 2, &message);
}

static void runs_from(struct world *w, const struct fragi_spec_source *source)
{
	world_init_with(w, (struct drv_config){.version = "test"});
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	client_hello(w, CLIENT, "top");
	hello(w, 1, "a", "f1");
	hello(w, 2, "b", NULL);
	say_source(w, CLIENT,
		   (struct fw_message){.kind = FW_START_APP, .seq = 2, .start_app.name = ""},
		   source);
	cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
	say_prepared(w, 1, 1, "f1", true);
	say_host_prepared(w);
	both_run(w);
	forget_requests(w, 2);
}

static void runs(struct world *w, const char *text)
{
	runs_from(w, &(struct fragi_spec_source){.graph = {"app.yaml", text, strlen(text)}});
}

static void ask(struct world *w, const struct fw_swap *wanted)
{
	say(w, CLIENT, &(struct fw_message){.kind = FW_SWAP, .seq = 9, .swap = *wanted});
}

static void is_full(struct world *w)
{
	w->core->is_behind = true;
}

static void is_done(struct world *w)
{
	say_event(w, 2, 2, FW_STATE_DONE, "");
}

static void is_stopped(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_STOP_APP, .seq = 3, .stop_app = {"app", false, false}});
	cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
}

Test(driver_swap_command, bad_questions)
{
	static const char many[] =
		GRAPH_OF("l1.so, l2.so, l3.so, l4.so, l5.so, l6.so, l7.so, l8.so, l9.so", "");
	static const char several[] = GRAPH_OF("liba.so, libb.so", "");
	static const char none[] = GRAPH_OF("", "");
	static const struct {
		const char *text;
		void (*before)(struct world *w);
		struct fw_swap wanted;
		enum fragi_failure code;
		const char *sentence;
	} cases[] = {
		{graph,
		 NULL,
		 {"ap", "f2", "x.so", "", 0},
		 FRAGI_FAILURE_APPLICATION_UNKNOWN,
		 "there is no application ap; `fragctl list` shows those that there are"},
		{graph,
		 is_stopped,
		 {"app", "f2", "x.so", "", 0},
		 FRAGI_FAILURE_APPLICATION_UNKNOWN,
		 "app is draining; a library is replaced while its application runs"},
		{graph,
		 NULL,
		 {"app", "f5", "x.so", "", 0},
		 FRAGI_FAILURE_USAGE,
		 "unknown fragment \"f5\"; fragments: f1, f2, f3, f4"},
		{graph,
		 is_done,
		 {"app", "f2", "x.so", "", 0},
		 FRAGI_FAILURE_HOST_FAILED,
		 "f2, f3, f4 on worker b is done; its library cannot be replaced"},
		{graph,
		 is_full,
		 {"app", "f2", "x.so", "", 0},
		 FRAGI_FAILURE_STATE_UNWRITABLE,
		 "f2, f3, f4 cannot be replaced while it runs: the state folder cannot be written, "
		 "and a driver that comes back must know which library is used; " DRV_STATE_ADVICE},
		{graph,
		 NULL,
		 {"app", "f1", "x.so", "", 0},
		 FRAGI_FAILURE_USAGE,
		 "f1 uses no library that could be replaced"},
		{none,
		 NULL,
		 {"app", "f2", "x.so", "y.so", 0},
		 FRAGI_FAILURE_USAGE,
		 "f2 uses no library \"y.so\"; it uses "},
		{graph,
		 NULL,
		 {"app", "f2", "libold.so", "", 0},
		 FRAGI_FAILURE_USAGE,
		 "f2 uses libold.so already; give another version of it a name of its own"},
		{several,
		 NULL,
		 {"app", "f2", "libb.so", "liba.so", 0},
		 FRAGI_FAILURE_USAGE,
		 "f2 uses libb.so already; give another version of it a name of its own"},
		{several,
		 NULL,
		 {"app", "f2", "x.so", "y.so", 0},
		 FRAGI_FAILURE_USAGE,
		 "f2 uses no library \"y.so\"; it uses liba.so, libb.so"},
		{several,
		 NULL,
		 {"app", "f2", "x.so", "", 0},
		 FRAGI_FAILURE_USAGE,
		 "f2 uses several libraries; say with --replaces which of them: liba.so, libb.so"},
		{many,
		 NULL,
		 {"app", "f2", "x.so", "", 0},
		 FRAGI_FAILURE_USAGE,
		 "f2 uses several libraries; say with --replaces which of them: l1.so, l2.so, "
		 "l3.so, l4.so, l5.so, l6.so, l7.so, l8.so"},
		{GRAPH_OF("{name: liba.so, sha256: " SHA256 "}", ""),
		 NULL,
		 {"app", "f2", "x.so", "", 0},
		 FRAGI_FAILURE_USAGE,
		 "the graph demands liba.so with a certain sha256; change both there, and use "
		 "`fragctl apply`"},
		{GRAPH_OF("\"liba=b.so\"", ""),
		 NULL,
		 {"app", "f2", "x.so", "", 0},
		 FRAGI_FAILURE_USAGE,
		 "a library with \"=\" in its name, as liba=b.so, cannot be replaced"},
		{GRAPH_OF("libold.so",
			  "variables: {v: {type: f32, writer: f2.rx, readers: [f2]}}\n"),
		 NULL,
		 {"app", "f2", "x.so", "", 0},
		 FRAGI_FAILURE_NO_SERVICE,
		 "f2, f3, f4 cannot be replaced while it runs: it uses the variable v, whose memory "
		 "its process has made"},
		{GRAPH_OF("libold.so", "services: {s: {type: s}}\n"),
		 NULL,
		 {"app", "f2", "x.so", "", 0},
		 FRAGI_FAILURE_NO_SERVICE,
		 "f2, f3, f4 cannot be replaced while it runs: the application has services, which "
		 "live in one process"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct fw_failure *failure;
		const struct drv_notice *notice;
		struct world w;

		runs(&w, cases[i].text);
		if (cases[i].before != NULL)
			cases[i].before(&w);
		ask(&w, &cases[i].wanted);
		failure = &must_take(&w, CLIENT, FW_ANSWER)->answer.failure;
		cr_expect_eq(failure->code, cases[i].code, "%s", failure->sentence);
		cr_expect_str_eq(failure->sentence, cases[i].sentence);
		notice = drv_history_after(&w.core->history, w.core->history.last_notice - 1);
		cr_expect_eq(notice->kind, FW_NOTICE_REFUSED);
		cr_expect_null(taken(&w, 2, FW_HOST_CREATE));
		cr_expect_null(w.core->apps[0]->swap);
		world_fini(&w);
	}
}

/* Where the graph was started with a library in place of that which it names. */
Test(driver_swap_command, a_library_is_named_as_it_is_or_as_the_graph_names_it)
{
	static const char *const set = "swap:f2/libold.so=libmid.so";
	static const struct {
		const char *library, *replaces, *set, *refused;
	} cases[] = {
		{"libnew.so", "", "swap:f2/libold.so=libnew.so", NULL},
		{"libnew.so", "libold.so", "swap:f2/libold.so=libnew.so", NULL},
		{"libnew.so", "libmid.so", "swap:f2/libold.so=libnew.so", NULL},
		{"libold.so", "", "swap:f2/libold.so=libold.so", NULL},
		{"libmid.so", "", NULL,
		 "f2 uses libmid.so already; give another version of it a "
		 "name of its own"},
		{"libnew.so", "libnew.so", NULL,
		 "f2 uses no library \"libnew.so\"; it uses libmid.so"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct fragi_spec_source source = {
			.graph = {"app.yaml", graph, strlen(graph)}, .sets = &set, .set_count = 1};
		const struct fw_message *m;
		struct fragi_source made;
		struct world w;

		runs_from(&w, &source);
		ask(&w,
		    &(struct fw_swap){"app", "f2", cases[i].library, cases[i].replaces, SECOND});
		m = taken(&w, CLIENT, FW_ANSWER);
		cr_expect_eq(m != NULL, cases[i].refused != NULL);
		if (m != NULL)
			cr_expect_str_eq(m->answer.failure.sentence, cases[i].refused);
		m = taken(&w, 2, FW_HOST_CREATE);
		cr_assert_eq(m != NULL, cases[i].set != NULL, "%zu: %s", i, w.log);
		if (m != NULL) {
			cr_assert_eq(fragi_source_unpack(m->create.source, m->create.source_bytes,
							 &made),
				     0);
			cr_assert_eq(made.source.set_count, 1);
			cr_expect_str_eq(made.source.sets[0], cases[i].set);
			fragi_source_fini(&made);
		}
		world_fini(&w);
	}
}

/* All fragments of the host that use the library get the other one, and they alone. */
WORLD_TEST(driver_swap_command, a_host_replaces_a_library_for_all_its_fragments, NULL)
{
	static const char text[] = GRAPH_OF("libold.so, liba.so", "");
	static const char *const expected[] = {"swap:f2/libold.so=libnew.so",
					       "swap:f3/libold.so=libnew.so"};
	const struct fw_message *m;
	struct fragi_source made;

	runs(w, text);
	ask(w, &(struct fw_swap){"app", "f3", "libnew.so", "libold.so", SECOND});
	m = must_take(w, 2, FW_HOST_CREATE);
	cr_assert_eq(fragi_source_unpack(m->create.source, m->create.source_bytes, &made), 0);
	cr_assert_eq(made.source.set_count, 2);
	for (size_t i = 0; i < 2; i++)
		cr_expect_str_eq(made.source.sets[i], expected[i]);
	fragi_source_fini(&made);
	say(w, CLIENT, &(struct fw_message){.kind = FW_WATCH, .seq = 10});
	m = must_take(w, CLIENT, FW_EVENTS);
	cr_expect_str_eq(m->events.rows[m->events.count - 1].text,
			 "f3: libnew.so is prepared in place of libold.so");
}
