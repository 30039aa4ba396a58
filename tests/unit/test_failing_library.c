// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#define FAILING_IN_LIBFRAG
#include "../expected.h"
#include "../left.h"
#include "../scratch.h"
#include "failing_calls.h"
#include "variables_world.h"

#include <signal.h>

#include <base/alloc.h>
#include <base/clock.h>
#include <base/handover.h>
#include <base/identity.h>
#include <base/secret.h>
#include <edge/edge.h>
#include <edge/ledger.h>
#include <frag/draft.h>
#include <modules/shm/module.h>
#include <text/spec.h>
#include <track/summary.h>
#include <type/elf.h>

#include "rig_ops.h"

/*
 * Each system call, and each allocation, of parts of libfrag fails once: what they return and say,
 * and that every descriptor is given back.
 */
static FILE *out;

static int hand_over(struct frag_err *err)
{
	int listener = -1, to = -1, from = -1, given = -1;
	char text[8];
	int r = fragi_handover_listen("frag-test-failing", &listener);

	(void)err;
	if (r == 0)
		r = fragi_handover_connect("frag-test-failing", &to);
	if (r == 0)
		r = fragi_handover_accept(listener, &from);
	if (r == 0)
		r = fragi_handover_send(to, "hello", 6, &listener, 1);
	if (r == 0)
		r = fragi_handover_receive(from, text, 6, &given, 1);
	for (int i = 0; i < 4; i++) {
		int fd = (const int[]){listener, to, from, given}[i];

		if (fd >= 0)
			close(fd);
	}
	return r < 0 ? r : 0;
}

static int make_page(struct frag_err *err)
{
	struct fragi_ledger ledger, opened;
	int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;

	(void)err;
	if (fd < 0)
		return -EIO;
	r = fragi_ledger_create(&ledger, fd, 3, 4);
	if (r == 0) {
		r = fragi_ledger_seal(fd);
		if (r == 0)
			r = fragi_ledger_open(&opened, fd);
		if (r == 0)
			fragi_ledger_close(&opened);
		fragi_ledger_close(&ledger);
	}
	close(fd);
	return r;
}

static int make_clocks(struct frag_err *err)
{
	int r = 0;

	(void)err;
	for (int kind = 0; kind < 4 && r == 0; kind++) {
		const struct fragi_clock_config config = {.kind = (enum fragi_clock_kind)kind,
							  .scale = 1};
		struct frag_clock *clock = NULL;

		r = fragi_clock_create(&config, &clock);
		fragi_clock_destroy(clock);
	}
	return r;
}

static int write_draft(struct frag_err *err)
{
	struct frag_draft *draft;
	int r = frag_draft_create(at("draft"), &draft);

	(void)err;
	if (r < 0)
		return r;
	fprintf(frag_draft_stream(draft), "text\n");
	return frag_draft_commit(draft);
}

static int write_summary(struct frag_err *err)
{
	const struct fragi_summary summary = {.application = "app"};
	int r = fragi_summary_check(at("summary"), err);

	return r < 0 ? r : fragi_summary_write(&summary, at("summary"), err);
}

static int read_graph(struct frag_err *err)
{
	const char *config = at("config.yaml");
	struct fragi_source source;
	int r = fragi_source_read(&source, at("graph.yaml"), &config, 1, NULL, 0, NULL, 0, err);

	if (r == 0)
		fragi_source_fini(&source);
	return r;
}

static int look_at_library(struct frag_err *err)
{
	return fragi_elf_check("/proc/self/exe", "x.so", err);
}

static int name_machine(struct frag_err *err)
{
	char machine[FRAGI_IDENTITY_SIZE], loopback[FRAGI_IDENTITY_SIZE],
		clock[FRAGI_IDENTITY_SIZE], memory[FRAGI_IDENTITY_MEMORY_SIZE];
	int r = fragi_identity_machine(machine);

	(void)err;
	if (r == 0)
		r = fragi_identity_loopback(loopback);
	if (r == 0)
		r = fragi_identity_clock(false, clock);
	return r < 0 ? r : fragi_identity_memory(getuid(), memory);
}

static int keep_secret(struct frag_err *err)
{
	void *secret = fragi_secret_alloc(100);

	(void)err;
	fragi_secret_free(secret, 100);
	return secret != NULL ? 0 : -ENOMEM;
}

static int make_flows(struct frag_err *err)
{
	int r = 0;

	(void)err;
	for (int policy = FRAG_POLICY_BLOCK; policy <= FRAG_POLICY_LATEST && r == 0; policy++) {
		static struct fragi_flow_row row;
		struct fragi_tx *tx;
		struct fragi_rx *rx;

		r = fragi_inproc_create(4, (enum frag_policy)policy, &row, &tx, &rx);
		if (r == 0)
			fragi_inproc_destroy(tx);
	}
	return r;
}

static int share_variables(struct frag_err *err)
{
	static const uint8_t key[FRAGI_VARIABLES_KEY_BYTES] = "of another application";
	const struct fragi_variables_config config = {world.spec, key, world.stop_fd};
	struct fragi_variables *writer = NULL, *reader = NULL;
	int r = fragi_variables_create(&config, &writer);

	for (size_t i = 0; r == 0 && i < 2; i++)
		r = fragi_variables_declare(writer, &world.spec->variables[i], true, true, err);
	if (r == 0)
		r = fragi_variables_create(&config, &reader);
	for (size_t i = 0; r == 0 && i < 2; i++)
		r = fragi_variables_declare(reader, &world.spec->variables[i], false, false, err);
	if (r == 0)
		r = fragi_variables_fetch(reader, "gain", err);
	fragi_variables_destroy(reader);
	fragi_variables_destroy(writer);
	return r;
}

extern const struct fragi_transport_ops fragi_transport_v1;

static enum fragi_arrival_use arrived(void *arg, const struct fragi_arrival *arrival)
{
	(void)arg, (void)arrival;
	return FRAGI_ARRIVAL_USED;
}

static void sent(struct fragi_send *send, bool abandoned)
{
	(void)send, (void)abandoned;
}

static void received(struct fragi_receive *receive, const char *cause, uint64_t bytes)
{
	(void)receive, (void)cause, (void)bytes;
}

static void failed(void *owner, const char *cause)
{
	frag_err_set(owner, -ECONNRESET, "%s", cause);
}

static void fault(void *arg, enum fragi_failure failure, const char *sentence)
{
	frag_err_set(arg, -EIO, "%d: %s", (int)failure, sentence);
}

static bool is_open(const struct fragi_endpoint *endpoint)
{
	return ((const struct shm_endpoint *)(const void *)endpoint)->state == SHM_OPEN;
}

static int share_memory(struct frag_err *err)
{
	static const struct fragi_transport_events events = {arrived, sent, received, failed,
							     fault};
	const struct fragi_transport_config config = {
		.struct_size = sizeof(config), .events = &events, .arg = err};
	struct fragi_transport *ends[2] = {NULL, NULL};
	struct fragi_endpoint *endpoints[2] = {NULL, NULL};
	size_t size;
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++)
		r = fragi_transport_v1.create(&config, &ends[i], err);
	for (int i = 0; i < 2 && r == 0; i++) {
		const void *address = fragi_transport_v1.address(ends[1 - i], &size);

		r = fragi_transport_v1.connect(ends[i], (uint32_t)i, address, size, err,
					       &endpoints[i], err);
	}
	for (int round = 1; round <= 50 && r == 0; round++) {
		for (int i = 0; i < 2; i++)
			fragi_transport_v1.progress(ends[i], round * INT64_C(100000000));
		r = err->code;
		if (is_open(endpoints[0]) && is_open(endpoints[1]))
			break;
		if (r == 0 && round == 50)
			r = -ETIMEDOUT;
	}
	for (int i = 0; i < 2; i++)
		if (ends[i] != NULL)
			fragi_transport_v1.destroy(ends[i]);
	return r;
}

TEST_PLUGIN(parts, &source_type, &middle_type, &sink_type);

static int run_graph(struct frag_err *err, const char *scheduler)
{
	static struct rig rig;
	struct fragi_run_config config = {.epoch = 1, .ledger_fd = -1, .saved_fd = -1};
	const struct fragi_registry_config registry = {0};
	char graph[512];
	struct fragi_spec_source source = {.graph = {"test.yaml", graph, 0}};
	int r;

	snprintf(graph, sizeof(graph),
		 "frag: 1\napplication: app\nscheduler: {%s}\n"
		 "operators: {tx: {type: source, parameters: {count: 3}}, mx: {type: middle}, rx: "
		 "{type: sink}}\nflows: [tx -> mx, mx -> rx]\n",
		 scheduler);
	source.graph.length = strlen(graph);
	memset(&rig, 0, sizeof(rig));
	r = fragi_spec_parse(&source, &rig.diag, &rig.spec);
	if (r == 0)
		r = fragi_registry_create(&registry, &rig.registry);
	if (r == 0)
		r = fragi_registry_add(rig.registry, "rig", &parts_plugin, err);
	config.spec = rig.spec;
	config.registry = rig.registry;
	if (r == 0)
		r = fragi_run_create(&config, &rig.run);
	if (r == 0)
		r = fragi_run_prepare(rig.run, &rig.diag);
	if (r == 0)
		r = fragi_run_wire(rig.run, NULL, 0, NULL, 0, err);
	if (r == 0)
		r = fragi_run_start(rig.run, err);
	if (r < 0 && rig.diag.count > 0)
		frag_err_set(err, r, "%s", rig.diag.items[0].text);
	failing_left = failing_left >= 0 ? 1 << 20 : -1; /* it runs */
	if (r == 0)
		cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS), "it hangs");
	rig_end(&rig);
	notes_clear();
	return r;
}

static int run_greedy(struct frag_err *err)
{
	return run_graph(err, "type: greedy");
}

static int run_threads(struct frag_err *err)
{
	return run_graph(err, "type: multi_thread, worker_thread_number: 2");
}

static int run_events(struct frag_err *err)
{
	return run_graph(err, "type: event_based, worker_thread_number: 2");
}

static const struct {
	const char *name;
	int (*does)(struct frag_err *err);
} parts[] = {
	{"descriptors that are handed over", hand_over},
	{"the page of a host", make_page},
	{"clocks", make_clocks},
	{"a draft", write_draft},
	{"a summary", write_summary},
	{"a graph", read_graph},
	{"a library", look_at_library},
	{"names of this machine", name_machine},
	{"a secret", keep_secret},
	{"flows", make_flows},
	{"variables", share_variables},
	{"memory that two hosts share", share_memory},
	{"a run on one thread", run_greedy},
	{"a run on threads", run_threads},
	{"a run by events", run_events},
};

/* What is the same several times in a row is shown once. */
static void show_once(const char *failed, int r, const struct frag_err *err, bool keeps)
{
	static char last[2048];
	char line[2048], *name;

	snprintf(line, sizeof(line), "  %s: %s%s%s%s\n", failed, r < 0 ? strerrorname_np(-r) : "",
		 r < 0 ? ", " : "it goes on", r < 0 ? err->text : "",
		 keeps ? ", AND KEEPS SOMETHING" : "");
	while ((name = strstr(line, scratch)) != NULL)
		memmove(name, name + strlen(scratch), strlen(name + strlen(scratch)) + 1);
	name = strstr(line, ": a kernel"); /* and what else it needs on this machine */
	if (name != NULL)
		snprintf(name, sizeof(line) - (size_t)(name - line), "\n");
	if (strcmp(line, last) != 0)
		fputs(line, out);
	snprintf(last, sizeof(last), "%s", line);
}

static void fail_each(const char *name, int (*does)(struct frag_err *err), bool is_memory)
{
	struct frag_err err = FRAG_ERR_INIT;

	for (int calls = 0;; calls++) {
		const struct left before = left_now();
		struct left after;
		int r;
		const char *failed = NULL;

		err = (struct frag_err)FRAG_ERR_INIT;
		if (is_memory)
			fragi_alloc_fail_after(calls, 1);
		else
			fail_after(calls);
		r = does(&err);
		if (is_memory)
			failed = fragi_alloc_fail_off() > 0 ? "memory" : NULL;
		else
			failed = fail_off();
		if (failed == NULL)
			break;
		after = left_now();
		show_once(failed, r, &err,
			  after.descriptors != before.descriptors ||
				  after.shared_maps != before.shared_maps);
		if (strcmp(failed, "munmap") == 0)
			left_own.shared_maps = after.shared_maps; /* they cannot go */
	}
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(does(&err), 0, "%s again: %s", name, err.text);
}

Test(failing_library, says_it_and_keeps_nothing)
{
	char *text;
	size_t size;

	scratch_make();
	put("config.yaml", "a: {b: 1}\n");
	put("graph.yaml", "frag: 1\napplication: app\noperators: {a: {type: t}}\n");
	world_init();
	out = open_memstream(&text, &size);
	for (size_t i = 0; i < FRAG_COUNT_OF(parts); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		fprintf(out, "%s\n", parts[i].name);
		cr_expect_eq(parts[i].does(&err), 0, "%s: %s", parts[i].name, err.text);
		fail_each(parts[i].name, parts[i].does, false);
		fail_each(parts[i].name, parts[i].does, true);
	}
	fclose(out);
	world_fini();
	scratch_remove();
#if !defined(__SANITIZE_ADDRESS__) /* arenas with gaps ask for memory at other times */
	expected_compare("lives/failing", text);
#endif
	free(text);
}
