/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DRIVER_WORLD_H
#define TESTS_DRIVER_WORLD_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <driverd/core/state.h>
#include <frag/operator.h>
#include <text/spec.h>

/* The driver's core with workers played by hand, on a clock that only the test moves. */
#define MS ((int64_t)1000000)
#define SECOND (1000 * MS)
#define SENT_MAX 4096
#define KEPT_MAX 512

/* a message that the core sent; freed with the world */
struct sent {
	uint64_t connection;
	bool may_drop;
	uint32_t room_bytes;
	struct fw_message *message;
};

struct world {
	struct drv_core *core;
	struct drv_actions actions;
	int64_t now_ns;
	uint64_t random;
	const struct fw_identity *identity; /* of whoever speaks; NULL: it has proven nothing */
	const char *user;
	uint32_t user_roles;
	struct sent sent[SENT_MAX];
	size_t sent_count, read;
	uint64_t closed[64];
	size_t closed_count;
	char errors[8192]; /* error lines */
	char log[65536];   /* all lines from info on */
	char progress[512];
	uint64_t persist; /* the change that the core last wanted on the disk; 0: none */
	uint64_t epochs;  /* reserved up to that */
	char placed[256]; /* of the last PLACED */
	struct drv_record kept[KEPT_MAX]; /* all of them; without what they point to but the name */
	char kept_names[KEPT_MAX][FRAG_NAME_MAX + 1];
	size_t kept_count;
	bool many_end; /* their summaries are not looked at */
	bool ended;
	enum fragi_summary_result result;
	int exit_code;
	char reason[2048];
	char json[65536], table[8192]; /* the summary */
	/* in that step memory fails after so many allocations */
	int64_t step_count, short_step, short_skip;
	bool runs_short, broken; /* broken: the core said -ENOMEM, and is not used on */
};

/* Their graph, with what else is said of each. */
#define TWO_FRAGMENTS(f1, f2)                                                                      \
	"frag: 1\n"                                                                                \
	"application: app\n"                                                                       \
	"fragments:\n"                                                                             \
	"  f1: {operators: {tx: {type: t}}" f1 "}\n"                                               \
	"  f2: {operators: {rx: {type: t}}" f2 "}\n"                                               \
	"flows: [f1.tx.out -> f2.rx.in]\n"

static const char two_fragments[] = TWO_FRAGMENTS("", "");

static void world_random(void *arg, void *bytes, size_t size)
{
	struct world *w = arg;
	uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++) {
		w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
		at[i] = (uint8_t)(w->random >> 56);
	}
}

static void world_init_with(struct world *w, struct drv_config config)
{
	config.random = world_random;
	config.random_arg = w;
	memset(w, 0, sizeof(*w));
	w->now_ns = 50 * SECOND;
	cr_assert_eq(drv_core_create(&config, &w->core), 0);
}

static inline void world_init(struct world *w)
{
	world_init_with(w, (struct drv_config){.version = "test",
					       .clock = "node",
					       .address = "127.0.0.1:1",
					       .realtime_offset_ns = 1000 * SECOND});
}

static void world_fini(struct world *w)
{
	cr_expect_eq(drv_core_illegal_transitions(w->core), 0);
	for (size_t i = 0; i < w->sent_count; i++)
		fw_message_free(w->sent[i].message);
	drv_actions_fini(&w->actions);
	drv_core_destroy(w->core);
}

static inline void world_test(struct world *w, void (*begin)(struct world *w),
			      void (*test)(struct world *w))
{
	if (begin != NULL)
		begin(w);
	test(w);
	world_fini(w);
}

/* A test of the world w, which begin makes (NULL: the test does), and which is given back after. */
#define WORLD_TEST(suite, name, begin)                                                             \
	static void suite##_##name(struct world *w);                                               \
	Test(suite, name)                                                                          \
	{                                                                                          \
		static struct world world;                                                         \
		world_test(&world, begin, suite##_##name);                                         \
	}                                                                                          \
	static void suite##_##name(struct world *w)

static void keep_summary(struct world *w, const struct fragi_summary *summary)
{
	FILE *out = fmemopen(w->json, sizeof(w->json), "w"),
	     *table = fmemopen(w->table, sizeof(w->table), "w");

	cr_assert_not(w->ended);
	w->ended = true;
	w->result = summary->result;
	w->exit_code = summary->exit_code;
	snprintf(w->reason, sizeof(w->reason), "%s",
		 summary->failure.sentence != NULL ? summary->failure.sentence : "");
	cr_assert_eq(summary->result == FRAGI_SUMMARY_FAILED,
		     summary->failure.code != FRAGI_FAILURE_NONE);
	fragi_summary_print_json(summary, out);
	fclose(out);
	fragi_summary_print_table(summary, table);
	fclose(table);
	for (size_t i = 0; i < summary->flow_count; i++)
		cr_expect(fragi_summary_flow_balances(&summary->flows[i]));
}

static void append(char *log, size_t size, const char *text)
{
	size_t used = strlen(log);

	snprintf(log + used, size - used, "%s\n", text);
}

static void keep_record(struct world *w, const struct drv_action *action)
{
	struct drv_record *record = &w->kept[w->kept_count % KEPT_MAX];
	char *name = w->kept_names[w->kept_count++ % KEPT_MAX];

	w->persist = action->change;
	*record = action->record;
	if (record->kind == DRV_RECORD_NUMBERS)
		w->epochs = record->epoch;
	if (record->kind == DRV_RECORD_PLACED)
		snprintf(w->placed, sizeof(w->placed), "%s", record->text);
	snprintf(name, FRAG_NAME_MAX + 1, "%s", record->name != NULL ? record->name : "");
	record->name = name;
	record->who = record->text = NULL;
	if (record->outcome_bytes != 0) { /* the shell copies it now */
		struct fw_message *message;

		cr_assert_eq(fw_decode((const uint8_t *)record->outcome + 4,
				       record->outcome_bytes - 4, &message, NULL),
			     0);
		cr_assert_eq(message->run, record->run);
		fw_message_free(message);
	}
	record->source = record->outcome = NULL;
}

/* What can be seen of an application balances in every step. */
static void check_views(const struct drv_app *app)
{
	struct fragi_arena arena = {0};
	struct fragi_summary_flow row;

	for (size_t i = 0; i < drv_view_flow_count(app) && i < 8; i++) {
		cr_assert_eq(drv_view_flow(app, i, &arena, &row), 0);
		cr_assert(fragi_summary_flow_balances(&row), "%s of run %llu", row.from,
			  (unsigned long long)app->run);
		cr_assert(row.sent_at_least <= row.sent && row.sent <= row.sent_at_most);
		cr_assert(row.lost_at_least <= row.lost);
		cr_assert(row.delivered_at_least <= row.delivered &&
			  row.delivered <= row.delivered_at_most);
	}
	fragi_arena_fini(&arena);
}

/* One step of the core, whose memory fails if this is where the test wants it to. */
static int step_core(struct world *w, struct drv_event *event)
{
	bool runs_short = w->runs_short && w->step_count++ == w->short_step;
	int r;

	if (runs_short)
		fragi_alloc_fail_after(w->short_skip, 1);
	r = drv_core_step(w->core, event, w->now_ns, &w->actions);
	if (runs_short && fragi_alloc_fail_off() == 0)
		w->short_skip = -1; /* it needs no more than that */
	cr_assert(r == 0 || (runs_short && r == -ENOMEM), "%d", r);
	for (size_t i = 0; r == 0 && i < w->core->app_count && i < 8; i++)
		check_views(w->core->apps[i]);
	return r;
}

static void step(struct world *w, struct drv_event *event)
{
	struct frag_err err = FRAG_ERR_INIT;

	if (w->broken) {
		fw_message_free(event->message);
		return;
	}
	drv_actions_reset(&w->actions);
	if (step_core(w, event) < 0) {
		w->broken = true;
		return;
	}
	for (size_t i = 0; i < w->actions.count; i++) {
		struct drv_action *action = &w->actions.items[i];

		switch (action->kind) {
		case DRV_DO_SEND:
			if (w->sent_count == SENT_MAX) { /* nobody looks at them */
				for (size_t k = 0; k < SENT_MAX; k++)
					fw_message_free(w->sent[k].message);
				w->sent_count = 0;
			}
			w->sent[w->sent_count].connection = action->connection;
			w->sent[w->sent_count].may_drop = action->may_drop;
			w->sent[w->sent_count].room_bytes = action->room_bytes;
			cr_assert_eq(fw_decode(action->frame + 4, action->frame_bytes - 4,
					       &w->sent[w->sent_count].message, &err),
				     0, "%s", err.text);
			cr_expect_gt(w->sent[w->sent_count].message->seq, 0, "numbered from 1");
			w->sent_count++;
			break;
		case DRV_DO_CLOSE:
			w->closed[w->closed_count++ % 64] = action->connection;
			break;
		case DRV_DO_LOG:
			append(w->log, sizeof(w->log), action->text);
			if (action->level == FRAGI_LOG_ERROR)
				append(w->errors, sizeof(w->errors), action->text);
			break;
		case DRV_DO_PROGRESS:
			snprintf(w->progress, sizeof(w->progress), "%s", action->text);
			break;
		case DRV_DO_PERSIST:
			keep_record(w, action);
			break;
		case DRV_DO_ENDED:
			if (!w->many_end)
				keep_summary(w, action->summary);
			break;
		case DRV_DO_ADMIT:
			break;
		}
	}
}

/* Moves the clock, firing what is due on the way. */
static inline void pass(struct world *w, int64_t ns)
{
	int64_t until = w->now_ns + ns;

	while (!w->broken && drv_core_deadline_ns(w->core) <= until) {
		if (drv_core_deadline_ns(w->core) > w->now_ns)
			w->now_ns = drv_core_deadline_ns(w->core);
		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	}
	w->now_ns = until;
}

static inline void say_as(struct world *w, uint64_t connection, struct fw_message *message,
			  bool is_admin)
{
	struct drv_event event = {.kind = DRV_EVENT_MESSAGE,
				  .connection = connection,
				  .peer = "10.0.0.9:1",
				  .identity = w->identity,
				  .user = w->user,
				  .user_roles = w->user_roles,
				  .is_admin = is_admin};
	uint8_t *frame;
	size_t size;

	cr_assert_eq(fw_encode(message, &frame, &size), 0);
	cr_assert_eq(fw_decode(frame + 4, size - 4, &event.message, NULL), 0);
	fragi_free(frame);
	step(w, &event);
}

static inline void say(struct world *w, uint64_t connection, struct fw_message *message)
{
	say_as(w, connection, message, false);
}

static inline void hello_by(struct world *w, uint64_t connection, const char *name,
			    const char *fragment, struct fw_hello more)
{
	struct fw_message message = {.kind = FW_HELLO, .seq = 1};
	const char *fragments[] = {fragment};

	message.hello = more;
	message.hello.major = FW_PROTOCOL_MAJOR;
	message.hello.minor = FW_PROTOCOL_MINOR;
	message.hello.role = FW_ROLE_WORKER;
	message.hello.name = name;
	message.hello.fragments = fragments;
	message.hello.fragment_count = fragment != NULL;
	message.hello.version = "test";
	message.hello.has[FRAGI_AMOUNT_CPU] = 4 * FRAGI_AMOUNT_ONE;
	say(w, connection, &message);
}

static inline void hello_by_clock(struct world *w, uint64_t connection, const char *name,
				  const char *fragment, const char *node, const char *clock,
				  const char *address)
{
	hello_by(w, connection, name, fragment,
		 (struct fw_hello){.worker_address = address, .node = node, .clock = clock});
}

/* memory: as base/identity.h has it */
static inline void hello_by_memory(struct world *w, uint64_t connection, const char *name,
				   const char *fragment, const char *memory)
{
	hello_by(w, connection, name, fragment,
		 (struct fw_hello){.worker_address = "10.0.0.1",
				   .node = "node",
				   .clock = "node",
				   .memory = memory,
				   .no_memory = memory[0] == '\0' ? "files are limited" : ""});
}

static inline void hello_from(struct world *w, uint64_t connection, const char *name,
			      const char *fragment, const char *node, const char *address)
{
	hello_by_clock(w, connection, name, fragment, node, node, address);
}

static inline void hello(struct world *w, uint64_t connection, const char *name,
			 const char *fragment)
{
	hello_from(w, connection, name, fragment, "node", "127.0.0.1");
}

static inline void client_hello_as(struct world *w, uint64_t connection, const char *name,
				   bool is_admin)
{
	struct fw_message message = {.kind = FW_HELLO, .seq = 1};

	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					  .minor = FW_PROTOCOL_MINOR,
					  .role = FW_ROLE_CLIENT,
					  .name = name,
					  .version = "test",
					  .has = {[FRAGI_AMOUNT_CPU] = 64 * FRAGI_AMOUNT_ONE}};
	say_as(w, connection, &message, is_admin);
}

static inline void client_hello(struct world *w, uint64_t connection, const char *name)
{
	client_hello_as(w, connection, name, false);
}

static inline void request_state(struct world *w, uint64_t connection, uint64_t seq)
{
	say(w, connection,
	    &(struct fw_message){.kind = FW_REQUEST, .seq = seq, .request.what = FW_REQUEST_STATE});
}

static inline void beat(struct world *w, uint64_t connection)
{
	say(w, connection, &(struct fw_message){.kind = FW_BEAT});
}

/* Time passes while these workers beat. */
static inline void pass_beating(struct world *w, int64_t ns, uint64_t first, uint64_t last)
{
	for (int64_t i = 0; i < ns / (100 * MS); i++) {
		pass(w, 100 * MS);
		for (uint64_t c = first; c <= last; c++)
			beat(w, c);
	}
}

/* A client sends START_APP or APPLY with that source. */
static inline void say_source(struct world *w, uint64_t connection, struct fw_message message,
			      const struct fragi_spec_source *source)
{
	size_t bytes;
	void *packed;

	cr_assert_eq(fragi_source_pack(source, &packed, &bytes), 0);
	if (message.kind == FW_START_APP) {
		message.start_app.source = packed;
		message.start_app.source_bytes = (uint32_t)bytes;
	} else {
		message.apply.source = packed;
		message.apply.source_bytes = (uint32_t)bytes;
	}
	say(w, connection, &message);
	fragi_free(packed);
}

static inline void say_start(struct world *w, uint64_t connection, uint64_t seq, const char *name,
			     const char *text)
{
	say_source(w, connection,
		   (struct fw_message){.kind = FW_START_APP, .seq = seq, .start_app.name = name},
		   &(struct fragi_spec_source){.graph = {"app.yaml", text, strlen(text)}});
}

static inline void say_apply(struct world *w, uint64_t connection, uint64_t seq, const char *text,
			     bool only_shows)
{
	say_source(w, connection,
		   (struct fw_message){.kind = FW_APPLY,
				       .seq = seq,
				       .apply = {.name = "app", .only_shows = only_shows}},
		   &(struct fragi_spec_source){.graph = {"app.yaml", text, strlen(text)}});
}

static inline void app_timed(struct world *w, const char *text, int64_t start_timeout_ns)
{
	struct fragi_spec_source source = {.graph = {"app.yaml", text, strlen(text)}};
	struct drv_event event = {.kind = DRV_EVENT_APP};
	void *packed;

	cr_assert_eq(fragi_source_pack(&source, &packed, &event.app.source_bytes), 0);
	event.app.source = packed;
	event.app.start_timeout_ns = start_timeout_ns;
	step(w, &event);
	fragi_free(packed);
}

static inline void app(struct world *w, const char *text)
{
	app_timed(w, text, 0);
}

/* The next message of a kind that was sent to a connection since the last one taken; NULL: none. */
static inline const struct fw_message *taken(struct world *w, uint64_t connection,
					     enum fw_kind kind)
{
	for (size_t i = 0; i < w->sent_count; i++) {
		if (w->sent[i].message == NULL || w->sent[i].connection != connection ||
		    w->sent[i].message->kind != kind)
			continue;
		w->sent[i].connection = 0; /* taken, and freed with the world */
		return w->sent[i].message;
	}
	return NULL;
}

/* The same where it must have been sent. */
#define must_take(w, connection, kind)                                                             \
	({                                                                                         \
		const struct fw_message *taken_message = taken(w, connection, kind);               \
                                                                                                   \
		cr_assert_not_null(taken_message, "%s", (w)->log);                                 \
		taken_message;                                                                     \
	})

/* The application whose hosts speak; the first one has epoch 1 as well. */
static uint64_t speaking_run = 1;
/* Of a host that was started again; 0: that of its application. */
static uint64_t speaking_epoch[4];

static inline struct fw_message of_host(enum fw_kind kind, uint32_t host)
{
	uint64_t own = host < 4 ? speaking_epoch[host] : 0;

	return (struct fw_message){.kind = kind,
				   .run = speaking_run,
				   .host = host,
				   .epoch = own != 0 ? own : speaking_run};
}

/* What a host with one operator of one port says when it is prepared. */
struct table {
	const char *fragment, *op, *pools;
	const char *const *pool_names; /* of two pools; NULL: it has none */
	struct fw_late_place *late_places;
	uint32_t late_place_count;
	struct fw_port port;
	uint32_t address_bytes;
	const char *transport, *detail;
	struct fw_failure *error; /* NULL: it is prepared */
};

static inline struct table table_of(const char *fragment, bool sends)
{
	return (struct table){.fragment = fragment,
			      .op = sends ? "tx" : "rx",
			      .pools = sends ? "frames" : NULL,
			      .port = {.name = sends ? "out" : "in",
				       .type = "message",
				       .dir = sends ? FRAG_OUT : FRAG_IN,
				       .has_codec = true},
			      .address_bytes = 7,
			      .transport = "ucx",
			      .detail = "tcp lo"};
}

static inline void say_table(struct world *w, uint64_t connection, uint32_t host,
			     const struct table *table)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, host);
	struct fw_port port = table->port;
	struct fw_op op = {.name = table->op,
			   .type = "t",
			   .ports = &port,
			   .port_count = 1,
			   .pools = table->pools};
	struct fw_fragment fragment = {.name = table->fragment, .ops = &op, .op_count = 1};
	struct fw_address address = {table->transport, "address", table->address_bytes,
				     table->detail};

	message.prepared = (struct fw_host_prepared){.ok = table->error == NULL,
						     .errors = table->error,
						     .error_count = table->error != NULL,
						     .fragments = &fragment,
						     .fragment_count = 1,
						     .pools = table->pool_names,
						     .pool_count = table->pool_names ? 2 : 0,
						     .late_places = table->late_places,
						     .late_place_count = table->late_place_count,
						     .addresses = &address,
						     .address_count = table->address_bytes > 0,
						     .pid = 100 + (int32_t)host};
	say(w, connection, &message);
}

static inline void say_prepared(struct world *w, uint64_t connection, uint32_t host,
				const char *fragment, bool sends)
{
	struct table table = table_of(fragment, sends);

	say_table(w, connection, host, &table);
}

static inline void say_result(struct world *w, uint64_t connection, uint32_t host,
			      enum fw_kind kind)
{
	struct fw_message message = of_host(kind, host);

	say(w, connection, &message);
}

static inline void say_event(struct world *w, uint64_t connection, uint32_t host,
			     enum fw_host_state state, const char *sentence)
{
	struct fw_message message = of_host(FW_HOST_EVENT, host);

	message.event.state = state;
	message.event.failure =
		(struct fw_failure){state == FW_STATE_PEER_LOST ? FRAGI_FAILURE_EDGE_LOST
				    : state == FW_STATE_FAILED  ? FRAGI_FAILURE_OPERATOR_FAILED
								: FRAGI_FAILURE_NONE,
				    sentence, ""};
	message.event.peer = 3 - host;
	say(w, connection, &message);
}

static inline void say_idle(struct world *w, uint64_t connection, uint32_t host, uint64_t sent,
			    uint64_t delivered)
{
	struct fw_message message = of_host(FW_HOST_EVENT, host);

	message.event.state = FW_STATE_IDLE;
	message.event.sent = sent;
	message.event.delivered = delivered;
	say(w, connection, &message);
}

/* The one flow's row as the sender or the receiver counts it. */
static inline void say_stats(struct world *w, uint64_t connection, uint32_t host, bool final,
			     uint64_t sent, uint64_t delivered)
{
	struct fw_message message = of_host(FW_HOST_STATS, host);
	struct fragi_flow_stats row = {.sent = sent, .delivered = delivered, .arrived = delivered};
	struct fw_op_stats op = {.ticks = sent + delivered};

	message.stats = (struct fw_host_stats){
		.final = final, .ops = &op, .op_count = 1, .flows = &row, .flow_count = 1};
	say(w, connection, &message);
}

static inline void say_exit(struct world *w, uint64_t connection, uint32_t host, int code,
			    int signal, const char *sentence)
{
	struct fw_message message = of_host(FW_HOST_EXIT, host);
	const char *lines[] = {"last words"};

	message.exit = (struct fw_host_exit){
		.exit_code = code,
		.signal = signal,
		.lines = lines,
		.line_count = 1,
		.asked = sentence[0] == '\0' && signal == 0,
	};
	if (sentence[0] != '\0')
		message.exit.failure =
			(struct fw_failure){signal != 0 ? FRAGI_FAILURE_HOST_CRASHED
					    : code == 3 ? FRAGI_FAILURE_HOST_NOT_STARTED
							: FRAGI_FAILURE_HOST_EXITED,
					    sentence, ""};
	say(w, connection, &message);
}

/* The last counts of a host, and its exit. */
static inline void say_end(struct world *w, uint64_t connection, uint32_t host, uint64_t sent,
			   uint64_t delivered, int code, int signal)
{
	say_stats(w, connection, host, true, sent, delivered);
	say_exit(w, connection, host, code, signal, "");
}

/* The last record of that kind and run that was to be kept. */
static inline const struct drv_record *kept(const struct world *w, enum drv_record_kind kind,
					    uint64_t run)
{
	for (size_t i = w->kept_count; i-- > 0;)
		if (w->kept[i].kind == kind && w->kept[i].run == run)
			return &w->kept[i];
	return NULL;
}

static inline bool is_closed(const struct world *w, uint64_t connection)
{
	for (size_t i = 0; i < w->closed_count; i++)
		if (w->closed[i] == connection)
			return true;
	return false;
}

/* Two workers come: a (connection 1) with f1, b (2) with f2. */
static inline void both_come(struct world *w)
{
	hello(w, 1, "a", "f1");
	hello(w, 2, "b", "f2");
}

static inline void both_prepare(struct world *w)
{
	say_prepared(w, 1, 1, "f1", true);
	say_prepared(w, 2, 2, "f2", false);
}

/* Prepared, they are wired and started. */
static inline void both_run(struct world *w)
{
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_WIRED);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_STARTING, "%s", w->errors);
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_STARTED);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
}

static inline void both_are_done(struct world *w)
{
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_event(w, 2, 2, FW_STATE_DONE, "");
}

static inline void both_exit(struct world *w)
{
	say_exit(w, 1, 1, 0, 0, "");
	say_exit(w, 2, 2, 0, 0, "");
}

static inline void both_are_killed(struct world *w)
{
	say_exit(w, 1, 1, 137, 9, "");
	say_exit(w, 2, 2, 137, 9, "");
}

static inline void to_prepared(struct world *w)
{
	app(w, two_fragments);
	both_come(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
	both_prepare(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_WIRING);
}

static inline void to_running(struct world *w)
{
	to_prepared(w);
	both_run(w);
}

/* What was asked for so far of the workers on connections 1 to last. */
static inline void forget_requests(struct world *w, uint64_t last)
{
	for (uint64_t c = 1; c <= last; c++)
		while (taken(w, c, FW_HOST_WIRE) != NULL || taken(w, c, FW_HOST_CREATE) != NULL ||
		       taken(w, c, FW_HOST_START) != NULL)
			;
}

/* How the receiver of two_run crashes, and a graph that starts it again then. */
#define RX_CRASH "fraghost 102 crashed in f2.rx, tick 5: signal 11 (SIGSEGV)"
static const char receiver_restarts[] = TWO_FRAGMENTS(
	"", ", on_failure: {policy: restart, intensity: 2, period: 60s, backoff: 1s}");

/* f1 on a sends to f2 on b, and what that took is forgotten. */
static inline void two_run(struct world *w, const char *text)
{
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	world_init(w);
	app(w, text);
	both_come(w);
	both_prepare(w);
	both_run(w);
	forget_requests(w, 2);
}

#define assert_has(text, part) cr_assert_not_null(strstr(text, part), "%s: %s", #text, text)

#endif
