// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <poll.h>
#include <pthread.h>

static int own_thread_create(pthread_t *out_thread, const pthread_attr_t *attr,
			     void *(*start)(void *arg), void *arg);
#define pthread_create own_thread_create
#include <workerd/host/work.c> /* over a run that this file plays */
#undef pthread_create

#include "logged.h"

/*
 * The work of a host around its run: what the run is given of each request, on which thread, and
 * which event for the core comes of what it reports, also where an operator does not come back.
 */
static FILE *out;
static struct host_work work;
static struct fragi_run *const run = (struct fragi_run *)&work;
static const char *fails; /* the step of the run that does; "thread": it ends its thread there */
static pthread_t caller;
static bool may_wait, hangs;
static uint32_t services;

static int own_thread_create(pthread_t *out_thread, const pthread_attr_t *attr,
			     void *(*start)(void *arg), void *arg)
{
	return fails != NULL && strcmp(fails, "no thread") == 0
		       ? EPERM
		       : pthread_create(out_thread, attr, start, arg);
}

static void note_thread(const char *what)
{
	fprintf(out, "  %s%s", what, pthread_equal(pthread_self(), caller) ? " at once" : "");
}

static int may_fail(const char *what, int code, struct frag_err *err)
{
	if (fails != NULL && strcmp(fails, "thread") == 0) {
		fragi_call_begin("f.tx", FRAGI_CALL_SETUP, 0);
		fprintf(out, ", ends its thread\n");
		pthread_exit(NULL);
	}
	if (fails == NULL || strcmp(fails, what) != 0) {
		fprintf(out, "\n");
		return 0;
	}
	fprintf(out, ", fails\n");
	return err != NULL ? frag_err_set(err, code, "no %s", what) : code;
}

int fragi_run_create(const struct fragi_run_config *config, struct fragi_run **out_run)
{
	note_thread("create");
	fprintf(out,
		" of %s in %s, ledger %d, saved %d, host %u, epoch %d, beat %d, dead %d, keys %c %c",
		config->spec->application, config->spec->app_folder, config->ledger_fd,
		config->saved_fd, config->host, (int)config->epoch, (int)config->beat_ns,
		(int)config->dead_ns, config->data_key[FRAGI_DATA_KEY_BYTES - 1],
		config->variables_key[FRAGI_VARIABLES_KEY_BYTES - 1]);
	cr_expect(config->registry == work.registry && config->registry != NULL);
	for (const char *const *name = config->fragments; *name != NULL; name++)
		fprintf(out, ", fragment %s", *name);
	for (const char *const *name = config->transports; *name != NULL; name++)
		fprintf(out, ", transport %s", *name);
	if (may_fail("create", -EMFILE, NULL) < 0)
		return -EMFILE;
	*out_run = run;
	return 0;
}

int fragi_run_prepare(struct fragi_run *own, struct fragi_diag *diag)
{
	cr_expect_eq(own, run);
	note_thread("prepare");
	if (fails != NULL && strcmp(fails, "diag") == 0) {
		fprintf(out, ", says why\n");
		return fragi_diag_add(diag, -ENOENT, "app.yaml", 3, 1, "no such library");
	}
	return may_fail("prepare", -EIO, NULL);
}

int fragi_run_wire(struct fragi_run *own, const struct fragi_run_peer *peers, size_t peer_count,
		   const struct fragi_run_edge *edges, size_t edge_count, struct frag_err *err)
{
	(void)own;
	cr_expect(peers != NULL && edges != NULL);
	note_thread("wire");
	fprintf(out, " %zu peers, %zu edges", peer_count, edge_count);
	return may_fail("wire", -ECONNREFUSED, err);
}

uint32_t fragi_run_service_count(const struct fragi_run *own)
{
	(void)own;
	return services;
}

int fragi_run_connect_services(struct fragi_run *own, const char *const *announced, uint32_t count,
			       struct frag_err *err)
{
	(void)own;
	note_thread("connect");
	fprintf(out, " to %s, %u", announced[0], count);
	return may_fail("connect", -ENOMEM, err);
}

bool fragi_run_wire_may_wait(const struct fragi_run *own)
{
	(void)own;
	return may_wait;
}

void fragi_run_rewire(struct fragi_run *own, const struct fragi_run_peer *peers, size_t peer_count,
		      const struct fragi_run_edge *edges, size_t edge_count)
{
	(void)own;
	cr_expect(peers != NULL && edges != NULL);
	fprintf(out, "  rewire %zu peers, %zu edges\n", peer_count, edge_count);
}

int fragi_run_start(struct fragi_run *own, struct frag_err *err)
{
	(void)own;
	note_thread("start");
	return may_fail("start", -EIO, err);
}

void fragi_run_limit_calls(struct fragi_run *own, int64_t limit_ns)
{
	cr_expect_eq(own, run);
	fprintf(out, "  calls within %d\n", (int)limit_ns);
}

void fragi_run_drain(struct fragi_run *own)
{
	cr_expect_eq(own, run);
	fprintf(out, "  drain\n");
}

void fragi_run_yield(struct fragi_run *own)
{
	cr_expect_eq(own, run);
	fprintf(out, "  yield\n");
}

void fragi_run_suspend(struct fragi_run *own, uint32_t host, uint64_t epoch)
{
	cr_expect_eq(own, run);
	fprintf(out, "  suspend %u of epoch %d\n", host, (int)epoch);
}

void fragi_run_halt(struct fragi_run *own)
{
	cr_expect_eq(own, run);
	fprintf(out, "  halt\n");
}

int fragi_run_set(struct fragi_run *own, const char *text, const char *who, struct frag_err *err)
{
	cr_expect_eq(own, run);
	fprintf(out, "  set %s for %s\n", text, who);
	return strcmp(text, "bad") == 0     ? frag_err_set(err, -EINVAL, "no such parameter")
	       : strcmp(text, "large") == 0 ? frag_err_set(err, -ENOMEM, "out of memory")
	       : strcmp(text, "odd") == 0   ? frag_err_set(err, -EIO, "it broke")
					    : 0;
}

void fragi_run_look(struct fragi_run *own, uint32_t hosts)
{
	cr_expect_eq(own, run);
	fprintf(out, "  look at %u\n", hosts);
}

int fragi_run_tap(struct fragi_run *own, const struct fragi_run_tap_wish *wish)
{
	cr_expect_eq(own, run);
	fprintf(out, "  tap %u of %u.%u.%u each %d for %d, pictures %d, traces %d\n", wish->id,
		wish->fragment, wish->op, wish->port, (int)wish->every_ns, (int)wish->for_ns,
		wish->pictures, wish->traces);
	return -EBUSY;
}

static bool take_passed(void *arg, uint32_t id, const struct fragi_passed *passed)
{
	(void)arg, (void)id, (void)passed;
	return true;
}

static bool take_traced(void *arg, uint32_t id, const struct fragi_trace_chunk *chunk)
{
	(void)arg, (void)id, (void)chunk;
	return true;
}

bool fragi_run_passed(struct fragi_run *own, fragi_run_passed_fn take, void *arg)
{
	cr_expect(own == run && take == take_passed && arg == &out);
	fprintf(out, "  passed\n");
	return hangs;
}

void fragi_run_traced(struct fragi_run *own, bool is_end, fragi_run_traced_fn take, void *arg)
{
	cr_expect(own == run && take == take_traced && arg == &out);
	fprintf(out, "  traced, end %d\n", is_end);
}

int fragi_run_fd(const struct fragi_run *own)
{
	cr_expect_eq(own, run);
	return 4711;
}

static struct fragi_run_event reported;
static int report_count;

int fragi_run_next(struct fragi_run *own, struct fragi_run_event *out_event)
{
	cr_expect_eq(own, run);
	*out_event = reported;
	return report_count > 0 ? report_count-- : 0;
}

bool fragi_run_hangs(const struct fragi_run *own)
{
	cr_expect_eq(own, run);
	return hangs;
}

void fragi_run_destroy(struct fragi_run *own)
{
	note_thread("destroy");
	fprintf(out, " %s", own != NULL ? "the run" : "nothing");
	(void)may_fail("destroy", 0, NULL);
}

void fragi_crash_guard_exit(void)
{
	fprintf(out, "  exit is guarded\n");
}

void fragi_crash_leave_note(void)
{
	fprintf(out, "  leaves a note\n");
}

/* Tables. */
static int tables_result;
static bool with_run;

int host_tables_prepared(const struct fragi_run *own, struct fragi_arena *arena,
			 struct fw_host_prepared *out_prepared)
{
	cr_expect(own == run && arena == &work.event_arena);
	*out_prepared = (struct fw_host_prepared){.flow_count = 9};
	return tables_result;
}

int host_tables_errors(const struct fragi_diag *diag, const struct fragi_run *own,
		       struct fragi_arena *arena, struct fw_host_prepared *out_prepared)
{
	cr_expect_eq(arena, &work.event_arena);
	with_run = own != NULL;
	for (size_t i = 0; i < diag->count; i++)
		fprintf(out, "  error %s: %s (%s, %s)\n", strerrorname_np(-diag->items[i].code),
			diag->items[i].text,
			fragi_failure_name((enum fragi_failure)diag->items[i].failure),
			diag->items[i].op);
	*out_prepared = (struct fw_host_prepared){.flow_count = 8};
	return tables_result;
}

int host_tables_wire(const struct fw_host_wire *wire, struct fragi_arena *arena,
		     struct fragi_run_peer **out_peers, struct fragi_run_edge **out_edges)
{
	static struct fragi_run_peer peers[1];
	static struct fragi_run_edge edges[1];

	(void)wire, (void)arena;
	*out_peers = peers;
	*out_edges = edges;
	return tables_result;
}

/* The host. */
static const char graph[] = "frag: 1\napplication: app\n"
			    "operators: {tx: {type: ping_tx}}\n";

static void begin_host(void)
{
	const struct host_options options = {.ledger_fd = 31,
					     .saved_fd = 32,
					     .library_path = "/lib",
					     .paths = FRAGI_LIBRARY_PATHS_ANY};

	caller = pthread_self();
	cr_assert_eq(host_work_init(&work, &options), 0);
	cr_expect(work.paths == FRAGI_LIBRARY_PATHS_ANY && !work.trusted_only &&
		  strcmp(work.library_path, "/lib") == 0);
	cr_expect_eq(host_work_run_fd(&work), -1);
	services = 0;
	fails = NULL;
	may_wait = hangs = false;
	tables_result = report_count = 0;
}

static void finish(void)
{
	fragi_diag_fini(&work.given_up);
	host_work_fini(&work);
}

static void show_event(const struct host_event *event)
{
	fprintf(out, "  event %d", event->kind);
	if (event->prepared != NULL)
		fprintf(out, ", prepared %u", event->prepared->flow_count);
	else if (event->kind == HOST_EV_PREPARE_DONE)
		fprintf(out, ", %s", event->text);
	if (event->result != NULL)
		fprintf(out, ", failure '%s' (%s, %s)",
			event->result->failure.sentence != NULL ? event->result->failure.sentence
								: "",
			fragi_failure_name(event->result->failure.code),
			event->result->failure.op != NULL ? event->result->failure.op : "");
	if (event->report != NULL)
		fprintf(out,
			", state %d, peer %u of %d, idle %d, sent %d, delivered %d, '%s' (%s, %s)",
			event->report->state, event->report->peer, (int)event->report->peer_epoch,
			(int)event->report->idle_rounds, (int)event->report->sent,
			(int)event->report->delivered, event->report->failure.sentence,
			fragi_failure_name(event->report->failure.code), event->report->failure.op);
	fprintf(out, "%s\n", event->operators_may_hang ? ", operators may hang" : "");
}

/* What is under way has ended; since logged_begin. */
static void complete_it(void)
{
	struct pollfd p = {.fd = work.fd, .events = POLLIN};
	struct host_event event;

	cr_expect_eq(host_work_run_fd(&work), -1, "its thread has it");
	cr_expect_not(host_work_passed(&work, take_passed, &out));
	cr_assert_eq(poll(&p, 1, 20000), 1);
	cr_assert(host_work_next(&work, &event));
	logged_end(out);
	show_event(&event);
}

static void prepare_it(const char *text, const char *application)
{
	static const char *fragments[] = {"f", "g"}, *transports[] = {"ucx"};
	const struct fragi_spec_source source = {
		.graph = {.file = "app.yaml", .text = text, .length = strlen(text)},
		.app_folder = "/app"};
	struct fw_message request = {.kind = FW_HOST_CREATE,
				     .host = 7,
				     .epoch = 8,
				     .create = {.application = application,
						.fragments = fragments,
						.fragment_count = 2,
						.transports = transports,
						.transport_count = 1,
						.limits = {[FRAGI_AMOUNT_GPU_MEMORY] = 5}}};
	const struct host_action action = {
		.kind = HOST_DO_PREPARE, .request = &request, .beat_ns = 9, .dead_ns = 10};
	void *packed;
	size_t size;

	cr_assert_eq(fragi_source_pack(&source, &packed, &size), 0);
	request.create.source = packed;
	request.create.source_bytes = text[0] != '\0' ? (uint32_t)size : 3;
	memset(request.create.data_key, 'd', FRAGI_DATA_KEY_BYTES);
	memset(request.create.variables_key, 'v', FRAGI_VARIABLES_KEY_BYTES);
	logged_begin();
	host_work_prepare(&work, &action);
	memset(packed, 'x', size);
	fragi_free(packed);
	complete_it();
}

/* With no word of it. */
static void be_prepared(void)
{
	FILE *shown = out;

	out = fopen("/dev/null", "w");
	cr_assert_not_null(out);
	begin_host();
	prepare_it(graph, "");
	fclose(out);
	out = shown;
}

static void destroy_it(void)
{
	fprintf(out, "destroy\n");
	logged_begin();
	host_work_destroy(&work);
	complete_it();
}

static void compare(const char *name, char **text)
{
	fclose(out);
	expected_compare(name, *text);
	free(*text);
}

Test(host_work, prepare_and_destroy)
{
	static const char *const failures[] = {"create", "prepare", "diag", "thread"};
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	unsetenv("FRAG_APP_ROOT");
	begin_host();
	prepare_it(graph, "");
	cr_expect_eq(fragi_gpu_limit(), 5);
	cr_expect_eq(host_work_run_fd(&work), 4711);
	destroy_it();
	cr_expect_null(work.run);
	cr_expect_not(work.run_hangs);
	finish();
	fprintf(out, "another name and folder\n");
	setenv("FRAG_APP_ROOT", "/root", 1);
	begin_host();
	prepare_it(graph, "other");
	hangs = true;
	destroy_it();
	cr_expect(work.run_hangs);
	finish();
	setenv("FRAG_APP_ROOT", "", 1);
	fprintf(out, "no source\n");
	begin_host();
	prepare_it("", "");
	cr_expect_not(with_run);
	destroy_it();
	finish();
	fprintf(out, "a wrong graph\n");
	begin_host();
	prepare_it("frag: 1\noperators: 3\n", "");
	finish();
	for (size_t i = 0; i < FRAG_COUNT_OF(failures); i++) {
		fprintf(out, "%s fails\n", failures[i]);
		begin_host();
		fails = failures[i];
		prepare_it(graph, "");
		cr_expect_eq((int)with_run, i == 1 || i == 2);
		fails = NULL;
		destroy_it();
		finish();
	}
	fprintf(out, "no memory for the tables\n");
	begin_host();
	tables_result = -ENOMEM;
	prepare_it(graph, "");
	finish();
	fprintf(out, "a thread that ends in destroy\n");
	begin_host();
	prepare_it(graph, "");
	fails = "thread";
	destroy_it();
	finish();
	fprintf(out, "no thread\n");
	begin_host();
	fails = "no thread";
	prepare_it(graph, "");
	destroy_it();
	finish();
	compare("host/work_prepare", &text);
}

static void wire_it(const char *what)
{
	static const char *const announced[] = {"there"};
	struct fw_peer peers[2] = {{.host = 1, .name = ""}, {.host = 2, .name = ""}};
	const struct fw_message wire = {.kind = FW_HOST_WIRE,
					.wire = {.announced = (const char **)(uintptr_t)announced,
						 .announced_count = 1,
						 .peers = peers,
						 .peer_count = 2}};
	struct fw_message *request;
	size_t bytes;

	fprintf(out, "wire, fails: %s\n", what);
	be_prepared();
	cr_assert_eq(fw_message_copy(&wire, &request, &bytes), 0);
	services = 1;
	may_wait = strcmp(what, "connect") == 0 || strcmp(what, "thread") == 0;
	fails = what;
	tables_result = strcmp(what, "tables") == 0 ? -ENOMEM : 0;
	if (strcmp(what, "no service") == 0)
		services = 0;
	logged_begin();
	host_work_wire(&work, request);
	complete_it();
	finish();
}

static void start_it(const char *what, enum fragi_run_event_kind kind, const char *parameter)
{
	struct fw_host_set_done set_done;
	struct host_event event;

	fprintf(out, "start, fails: %s\n", what);
	be_prepared();
	fails = what;
	host_work_start(&work);
	fails = NULL;
	if (strcmp(what, "start") == 0) {
		logged_begin();
		complete_it();
		finish();
		return;
	}
	cr_expect_eq(host_work_run_fd(&work), 4711);
	cr_expect_not(host_work_next(&work, &event), "it lasts");
	reported = (struct fragi_run_event){.kind = FRAGI_RUN_IDLE};
	report_count = 1;
	cr_expect(host_work_next(&work, &event));
	show_event(&event);
	cr_expect(work.is_under_way && work.is_starting);
	reported = (struct fragi_run_event){.kind = kind,
					    .failure = FRAGI_FAILURE_OPERATOR_FAILED,
					    .op = "f.tx",
					    .sentence = "it broke"};
	report_count = 1;
	cr_expect(host_work_next(&work, &event));
	show_event(&event);
	cr_expect_not(work.is_under_way || work.is_starting);
	host_work_set(&work, &(struct fw_host_set){.number = 6, .text = parameter, .who = "me"},
		      &set_done);
	fprintf(out, "  set %d: '%s' (%s)\n", (int)set_done.number, set_done.failure.sentence,
		fragi_failure_name(set_done.failure.code));
	destroy_it();
	host_work_set(&work, &(struct fw_host_set){.number = 7, .text = "b=1", .who = "me"},
		      &set_done);
	fprintf(out, "  set %d: '%s' (%s)\n", (int)set_done.number, set_done.failure.sentence,
		fragi_failure_name(set_done.failure.code));
	finish();
}

Test(host_work, wire_and_start)
{
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	wire_it("nothing");
	wire_it("no service");
	wire_it("wire");
	wire_it("connect");
	wire_it("tables");
	wire_it("thread");
	start_it("nothing", FRAGI_RUN_STARTED, "a=1");
	start_it("nothing", FRAGI_RUN_STARTED, "bad");
	start_it("nothing", FRAGI_RUN_STARTED, "large");
	start_it("nothing", FRAGI_RUN_STARTED, "odd");
	start_it("nothing", FRAGI_RUN_FAILED, "a=1");
	start_it("start", FRAGI_RUN_STARTED, "a=1");
	compare("host/work_start", &text);
}

Test(host_work, requests_and_reports)
{
	struct fw_peer peer = {.host = 1, .name = ""};
	const struct fw_message wire = {.kind = FW_HOST_WIRE,
					.wire = {.peers = &peer, .peer_count = 1}};
	struct host_event event;
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	begin_host();
	host_work_halt(&work);
	host_work_traced(&work, true, take_traced, &out);
	cr_expect_not(host_work_passed(&work, take_passed, &out));
	cr_expect_not(host_work_next(&work, &event));
	prepare_it(graph, "");
	cr_expect_eq(host_work_rewire(&work, &wire), 0);
	tables_result = -ENOMEM;
	cr_expect_eq(host_work_rewire(&work, &wire), -ENOMEM);
	host_work_suspend(&work, &(struct fw_host_suspend){.peer = 3, .peer_epoch = 4});
	host_work_drain(&work, 5);
	host_work_yield(&work, 6);
	host_work_look(&work, 7);
	host_work_tap(&work, &(struct fw_host_tap){.tap = 1,
						   .fragment = 2,
						   .op = 3,
						   .port = 4,
						   .every_ns = 5,
						   .for_ns = 6,
						   .pictures = true});
	host_work_tap(&work, &(struct fw_host_tap){.tap = 1, .traces = true});
	cr_expect_not(host_work_passed(&work, take_passed, &out));
	hangs = true;
	cr_expect(host_work_passed(&work, take_passed, &out));
	host_work_traced(&work, true, take_traced, &out);
	host_work_traced(&work, false, take_traced, &out);
	host_work_halt(&work);
	for (enum fragi_run_event_kind kind = 0; kind < FRAGI_RUN_STARTED; kind++) {
		fprintf(out, "report %d\n", kind);
		reported = (struct fragi_run_event){.kind = kind,
						    .peer = 1,
						    .peer_epoch = 2,
						    .failure = FRAGI_FAILURE_EDGE_LOST,
						    .op = "f.tx",
						    .sentence = "it is gone",
						    .sent = 3,
						    .delivered = 4,
						    .idle_rounds = 5};
		report_count = 1;
		cr_expect(host_work_next(&work, &event));
		show_event(&event);
		cr_expect_not(host_work_next(&work, &event));
	}
	finish();
	compare("host/work_reports", &text);
}

/* A call that began so long ago, and what is said of it. */
static void look_at(int64_t for_s, int64_t limit_s)
{
	struct host_event event;
	bool is_given_up;

	work.call.since_ns = fragi_now_ns() - for_s * 1000000000;
	work.call.limit_ns = limit_s * 1000000000;
	fprintf(out, "for %d s, limit %d s\n", (int)for_s, (int)limit_s);
	logged_begin();
	is_given_up = host_work_next(&work, &event);
	logged_end(out);
	if (is_given_up)
		show_event(&event);
}

Test(host_work, calls_that_last)
{
	static const enum host_action_kind kinds[] = {HOST_DO_PREPARE, HOST_DO_WIRE,
						      HOST_DO_DESTROY};
	int64_t since;
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	begin_host();
	work.run = run;
	for (size_t i = 0; i < FRAG_COUNT_OF(kinds); i++) {
		fprintf(out, "action %d\n", kinds[i]);
		begin(&work, kinds[i]);
		work.has_thread = true; /* which this test plays */
		strcpy(work.call.subject, "f.tx");
		work.call.kind = FRAGI_CALL_SETUP;
		look_at(9, 0);
		look_at(11, 0);
		since = work.call.since_ns;
		fprintf(out, "the same, not again\n");
		logged_begin();
		cr_expect_not(host_work_next(&work, &(struct host_event){0}));
		logged_end(out);
		cr_expect_eq(work.call.since_ns, since);
		look_at(25, 0);
		if (kinds[i] == HOST_DO_PREPARE) { /* no other one has operators with a limit */
			look_at(12, 13);
			look_at(14, 13);
		}
		fragi_diag_fini(&work.given_up);
		work.given_up = (struct fragi_diag){0};
		atomic_store(&work.thread_lost, false);
	}
	fprintf(out, "none is under way\n");
	work.has_thread = work.is_under_way = true;
	work.kind = HOST_DO_PREPARE;
	work.call.since_ns = 0;
	cr_expect_not(host_work_next(&work, &(struct host_event){0}));
	fprintf(out, "no thread\n");
	work.has_thread = false;
	look_at(100, 1);
	finish();
	compare("host/work_calls", &text);
}

/* Without a thread it is done at once; and keys are not left in memory. */
Test(host_work, what_runs_short)
{
	int64_t failed = 1, count = 0;
	const struct fw_host_create create = {.application = "app"};
	const struct fragi_spec_source source = {
		.graph = {.file = "app.yaml", .text = graph, .length = strlen(graph)}};
	struct fw_host_create request = create;
	static const char *names[] = {"f"};
	void *packed;
	size_t bytes;

	out = stderr;
	cr_assert_eq(fragi_source_pack(&source, &packed, &bytes), 0);
	request.source = packed;
	request.source_bytes = (uint32_t)bytes;
	request.fragments = request.transports = names;
	request.fragment_count = request.transport_count = 1;
	for (int64_t skip = 0; failed > 0; skip++) {
		int r;

		begin_host();
		fragi_alloc_fail_after(skip, 1);
		r = take_create(&work, &request);
		failed = fragi_alloc_fail_off();
		cr_expect_eq(r, failed > 0 ? -ENOMEM : 0);
		count += failed;
		finish();
	}
	cr_expect_gt(count, 3);
	fragi_free(packed);
}
