// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <workerd/worker.c> /* over a core and parts that this file plays */

#include "logged.h"

/*
 * What a worker calls for each action of its core, and which events its core gets, as text. Events
 * that an action causes come after all actions of the step.
 */
static FILE *out;
static uv_loop_t loop;
static struct wrk_worker worker;

/* The core does what stands here, a step after the other. */
#define STEP_ACTIONS 4
static const struct wrk_action (*script)[STEP_ACTIONS];
static size_t script_left;
static bool is_short;
static struct wrk_action action_room[STEP_ACTIONS];

static void show_text(const char *name, const char *text)
{
	if (text != NULL)
		fprintf(out, ", %s '%s'", name, text);
}

static void show_number(const char *name, int64_t number)
{
	if (number != 0)
		fprintf(out, ", %s %lld", name, (long long)number);
}

int wrk_core_create(const struct wrk_config *config, struct wrk_core **out_core)
{
	*out_core = (struct wrk_core *)(uintptr_t)config;
	return 0;
}

void wrk_core_destroy(struct wrk_core *core)
{
	fprintf(out, "  the core is %s\n", core != NULL ? "destroyed" : "gone already");
}

int wrk_core_step(struct wrk_core *core, const struct wrk_event *event, int64_t now_ns,
		  struct wrk_actions *actions)
{
	cr_expect_not_null(core);
	cr_expect_gt(now_ns, 0);
	fprintf(out, "  event %d", event->kind);
	show_number("host", event->host);
	show_number("pid", event->pid);
	show_number("interpreter", event->is_interpreter);
	show_number("cut", event->cut);
	show_text("text", event->text);
	show_number("lines", event->line_count);
	show_number("left out", event->left_out);
	show_number("GPUs",
		    event->has != NULL ? event->has[FRAGI_AMOUNT_GPU] / FRAGI_AMOUNT_ONE : 0);
	show_text("mig", event->mig);
	if (event->message != NULL)
		show_text("message", fw_kind_name(event->message->kind));
	if (event->exited != NULL)
		show_number("exited", event->exited->status);
	if (event->stats != NULL)
		fprintf(out, ", page of %u, facts %d, gpus %d, bars %d", event->stats->op_count,
			(int)event->stats->facts.cpu_ns, (int)event->stats->facts.gpus,
			(event->stats->ops[0].compute.bars[0] != 0) +
				(event->stats->flows[0].latency.bars[0] != 0));
	fprintf(out, "\n");
	actions->items = action_room;
	actions->count = 0;
	for (size_t i = 0; script_left > 0 && i < STEP_ACTIONS; i++)
		if ((*script)[i].host != 0 || (*script)[i].kind != 0 ||
		    (*script)[i].connection != 0)
			action_room[actions->count++] = (*script)[i];
	if (script_left > 0) {
		script++;
		script_left--;
	}
	return is_short ? -ENOMEM : 0;
}

int64_t wrk_core_deadline_ns(const struct wrk_core *core)
{
	(void)core;
	return 4711;
}

bool wrk_core_takes_lines(const struct wrk_core *core)
{
	cr_expect_not_null(core);
	return true;
}

void wrk_actions_reset(struct wrk_actions *actions)
{
	actions->count = 0;
}

void wrk_actions_fini(struct wrk_actions *actions)
{
	fprintf(out, "  actions are given back\n");
	actions->items = NULL;
}

void fw_deadline_init(struct fw_deadline *deadline, uv_loop_t *own, void (*due)(void *arg),
		      void *arg)
{
	cr_expect_eq(own, &loop);
	deadline->due = due;
	deadline->arg = arg;
}

void fw_deadline_set(struct fw_deadline *deadline, int64_t at_ns, int64_t now_ns)
{
	cr_expect_eq(deadline, &worker.deadline);
	cr_expect(at_ns == 4711 && now_ns > 0);
	fprintf(out, "  waits\n");
}

void fw_deadline_close(struct fw_deadline *deadline)
{
	cr_expect_eq(deadline, &worker.deadline);
	fprintf(out, "  waits no more\n");
}

/* Processes. */
struct wrk_process {
	uint32_t host;
	const struct wrk_process_ops *ops;
	void *arg;
	struct wrk_page page;
	struct wrk_facts_past facts;
};
static struct wrk_process processes[4];
static size_t process_count;
static bool process_fails, has_page;

int wrk_process_start(uv_loop_t *own, uint32_t host, const struct wrk_launch *launch,
		      const struct wrk_process_ops *ops, void *arg,
		      struct wrk_process **out_process, struct frag_err *err)
{
	struct wrk_process *p = &processes[process_count++];

	cr_expect_eq(own, &loop);
	fprintf(out, "  starts host %u", host);
	show_number("saved", launch->saved_fd);
	show_text("application", launch->writer.application);
	show_number("plain", launch->writer.names_plain);
	show_number("fragments", (int64_t)launch->writer.count);
	show_text("first", launch->writer.fragments[0]);
	fprintf(out, "\n");
	if (process_fails)
		return frag_err_set(err, -EAGAIN, "no process");
	*p = (struct wrk_process){.host = host, .ops = ops, .arg = arg, .page.fd = 50};
	*out_process = p;
	return 0;
}

int wrk_process_pid(const struct wrk_process *p)
{
	return 1000 + (int)p->host;
}

struct wrk_page *wrk_process_page(struct wrk_process *p)
{
	return &p->page;
}

int wrk_process_exit_fd(const struct wrk_process *p)
{
	return 60 + (int)p->host;
}

uint32_t wrk_process_host(const struct wrk_process *p)
{
	return p->host;
}

void wrk_process_send(struct wrk_process *p, const struct fw_message *message)
{
	fprintf(out, "  sends %s to host %u", fw_kind_name(message->kind), p->host);
	if (message->kind == FW_HOST_CREATE)
		show_number("until", message->create.lease_until_ns);
	fprintf(out, "\n");
}

void wrk_process_signal(struct wrk_process *p, int number)
{
	fprintf(out, "  signal %d to host %u\n", number, p->host);
}

bool wrk_process_sample(struct wrk_process *p, struct fw_host_stats *out_stats)
{
	static struct fw_op_stats rows[4][3];
	static struct fragi_flow_stats flows[4];
	struct fw_op_stats *ops = rows[p->host % 4];

	fprintf(out, "  reads the page of host %u\n", p->host);
	ops[0].compute.bars[0] = flows[p->host % 4].latency.bars[0] = 5;
	*out_stats = (struct fw_host_stats){.ops = ops,
					    .op_count = p->host % 3 + 1,
					    .flows = &flows[p->host % 4],
					    .flow_count = 1};
	return has_page;
}

struct wrk_facts_past *wrk_process_facts(struct wrk_process *p)
{
	return &p->facts;
}

void wrk_process_abandon(struct wrk_process *p)
{
	fprintf(out, "  abandons host %u\n", p->host);
}

void wrk_page_rest(struct wrk_page *page)
{
	(void)page;
	fprintf(out, "  a page rests\n");
}

void wrk_facts_read(int pid, struct wrk_facts_past *past, struct fw_facts *facts)
{
	cr_expect_eq(past, &processes[pid - 1001].facts);
	facts->cpu_ns = (uint64_t)pid;
}

void wrk_gpu_load_read(struct wrk_gpu_reader *reader, uv_loop_t *own, struct fw_facts *facts)
{
	cr_expect(reader == &worker.gpus && own == &loop);
	facts->gpus = 9;
}

void wrk_gpu_load_end(struct wrk_gpu_reader *reader)
{
	cr_expect_eq(reader, &worker.gpus);
	fprintf(out, "  reads GPUs no more\n");
}

/* The others. */
static int saved_result = 77;

int wrk_saved_of(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch)
{
	cr_expect_eq(saved, &worker.saved);
	fprintf(out, "  what %d/%u saves, beside %d\n", (int)run, number, (int)epoch);
	return saved_result;
}

void wrk_saved_promote(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch)
{
	(void)saved;
	fprintf(out, "  promotes what %d/%u/%d saves\n", (int)run, number, (int)epoch);
}

int wrk_saved_read(struct wrk_saved *saved, uint64_t run, uint32_t number,
		   void (*fn)(void *arg, uint64_t offset, const void *bytes, uint32_t size),
		   void *arg)
{
	(void)saved;
	fprintf(out, "  reads what %d/%u has saved\n", (int)run, number);
	fn(arg, 40, "abc", 3);
	return saved_result < 0 ? saved_result : 0;
}

int wrk_saved_take(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch,
		   const struct fw_host_saved *part)
{
	(void)saved;
	fprintf(out, "  takes %u bytes at %d for %d/%u/%d\n", part->size, (int)part->offset,
		(int)run, number, (int)epoch);
	return saved_result < 0 ? saved_result : 0;
}

void wrk_saved_forget(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch)
{
	(void)saved;
	fprintf(out, "  forgets what %d/%u/%d saves\n", (int)run, number, (int)epoch);
}

static int share_result;

int wrk_gpu_share_take(struct wrk_gpu_share *share, const struct fw_message *create, uint32_t gpus,
		       struct fragi_arena *arena, char *const **environment, uint32_t *out_instance,
		       struct frag_err *err)
{
	(void)arena, (void)environment, (void)create;
	cr_expect(share == &worker.gpu_share && gpus == 0);
	*out_instance = share_result == 0 ? 3 : 0;
	return share_result < 0 ? frag_err_set(err, share_result, "no instance") : 0;
}

void wrk_gpu_share_give(struct wrk_gpu_share *share, uint32_t instance)
{
	(void)share;
	if (instance != 0)
		fprintf(out, "  gives instance %u back\n", instance);
}

void wrk_gpu_share_fini(struct wrk_gpu_share *share)
{
	(void)share;
	fprintf(out, "  no share of GPUs\n");
}

int wrk_gpu_share_offer(struct wrk_gpu_share *share, const char *parts)
{
	cr_expect_eq(share, &worker.gpu_share);
	fprintf(out, "  offers '%s'\n", parts);
	return share_result;
}

void wrk_gpu_share_text(const char *parts, char text[static WRK_MIG_TEXT_MAX])
{
	snprintf(text, WRK_MIG_TEXT_MAX, "text of %s", parts);
}

static int survey_result;

int wrk_gpu_survey_start(struct wrk_gpu_survey *survey, uv_loop_t *own, const char *program,
			 struct frag_err *err)
{
	cr_expect(survey == &worker.survey && own == &loop);
	fprintf(out, "  asks %s for GPUs\n", program);
	return survey_result < 0 ? frag_err_set(err, survey_result, "no answer") : 0;
}

void wrk_gpu_survey_end(struct wrk_gpu_survey *survey)
{
	cr_expect_eq(survey, &worker.survey);
	fprintf(out, "  asks for GPUs no more\n");
}

int wrk_gpus_survey(const char *program, uint32_t *out_count, uint64_t *out_bytes,
		    char out_mig[static WRK_MIG_TEXT_MAX], struct frag_err *err)
{
	(void)program, (void)out_count, (void)out_bytes, (void)out_mig, (void)err;
	return -ENODEV;
}

void wrk_examiner_begin(struct wrk_examiner *examiner, uv_loop_t *own,
			void (*done)(void *arg, const struct fw_message *answer), void *arg)
{
	static const struct fw_message answer = {.kind = FW_EXAMINED};

	cr_expect(examiner == &worker.examiner && own == &loop);
	done(arg, &answer);
}

void wrk_examiner_end(struct wrk_examiner *examiner)
{
	cr_expect_eq(examiner, &worker.examiner);
	fprintf(out, "  examines no more\n");
}

static struct wrk_reporter reporter;

void wrk_reporter_add(struct wrk_reporter *own, uint32_t host, const struct fw_message *create,
		      int ledger_fd, int exit_fd)
{
	cr_expect_eq(own, &reporter);
	fprintf(out, "  reporter: host %u, %s, %d, %d\n", host, fw_kind_name(create->kind),
		ledger_fd, exit_fd);
}

void wrk_reporter_adopt(struct wrk_reporter *own, uint32_t host)
{
	cr_expect_eq(own, &reporter);
	fprintf(out, "  reporter: adopts host %u\n", host);
}

void wrk_reporter_remove(struct wrk_reporter *own, uint32_t host)
{
	cr_expect_eq(own, &reporter);
	fprintf(out, "  reporter: without host %u\n", host);
}

void wrk_confine_end(struct wrk_confine *confine)
{
	(void)confine;
	fprintf(out, "  the rules are closed\n");
}

void wrk_strays_end_all(void)
{
	fprintf(out, "  all strays end\n");
}

/* The owner. */
static struct wrk_confine confine;
static bool launch_fails;

static void on_connect(void *arg, uint64_t connection)
{
	cr_expect_eq(arg, &loop);
	fprintf(out, "  connect %d\n", (int)connection);
}

static void on_disconnect(void *arg, uint64_t connection)
{
	(void)arg;
	fprintf(out, "  disconnect %d\n", (int)connection);
}

static void on_send(void *arg, uint64_t connection, const struct fw_message *m)
{
	(void)arg;
	fprintf(out, "  sends %s of %d/%u/%d to %d", fw_kind_name(m->kind), (int)m->run, m->host,
		(int)m->epoch, (int)connection);
	if (m->kind == FW_HOST_SAVED)
		fprintf(out, ", %.*s at %d", (int)m->saved.size, (const char *)m->saved.bytes,
			(int)m->saved.offset);
	fprintf(out, "\n");
}

static void on_keep(void *arg, uint64_t connection, const struct fw_welcome *session)
{
	(void)arg;
	fprintf(out, "  keeps session %d of %d\n", (int)session->session, (int)connection);
}

static int on_launch(void *arg, const struct fw_message *create, struct fragi_arena *arena,
		     struct wrk_launch *out_launch, struct frag_err *err)
{
	static char *const arguments[] = {NULL};

	(void)arg, (void)arena;
	if (launch_fails)
		return frag_err_set(err, -ENOENT, "no interface");
	*out_launch = (struct wrk_launch){.names_plain = true,
					  .confine = &confine,
					  .arguments = create->create.is_beside ? arguments : NULL};
	return 0;
}

static void on_host_gone(void *arg)
{
	(void)arg;
	fprintf(out, "  a host is gone\n");
}

static void on_log(void *arg, enum fragi_log_level level, const char *subject, const char *text)
{
	(void)arg;
	fprintf(out, "  logs %s, %s: %s\n", fragi_log_level_name((int)level),
		subject != NULL ? subject : "", text);
}

static void on_ended(void *arg, int exit_code)
{
	(void)arg;
	fprintf(out, "  ended, %d\n", exit_code);
}

static const struct wrk_worker_ops ops = {.is_guest = true,
					  .connect = on_connect,
					  .disconnect = on_disconnect,
					  .send = on_send,
					  .keep = on_keep,
					  .launch = on_launch,
					  .host_gone = on_host_gone,
					  .log = on_log,
					  .ended = on_ended};

static void begin(void)
{
	static const struct wrk_config config = {.name = "w"};

	cr_assert_eq(uv_loop_init(&loop), 0);
	cr_assert_eq(wrk_worker_init(&worker, &loop, &config, &ops, &loop), 0);
	worker.reporter = &reporter;
	process_count = 0;
	process_fails = launch_fails = is_short = false;
	has_page = true;
	saved_result = 77;
	share_result = survey_result = 0;
}

static void finish(void)
{
	wrk_worker_end(&worker, 4);
	wrk_worker_end(&worker, 5);
	uv_run(&loop, UV_RUN_DEFAULT);
	wrk_worker_fini(&worker);
	cr_expect_eq(uv_loop_close(&loop), 0);
}

static const char *fragments[] = {"f", "g"};
static const struct fw_message create = {.kind = FW_HOST_CREATE,
					 .run = 7,
					 .host = 2,
					 .epoch = 5,
					 .create = {.application = "app",
						    .fragments = fragments,
						    .fragment_count = 2,
						    .may_restart = true}},
			       beside = {.kind = FW_HOST_CREATE,
					 .run = 7,
					 .host = 2,
					 .epoch = 6,
					 .create = {.application = "app",
						    .fragments = fragments,
						    .fragment_count = 1,
						    .may_restart = true,
						    .is_beside = true}},
			       beat = {.kind = FW_BEAT, .run = 7, .host = 2, .epoch = 5},
			       welcome = {.kind = FW_WELCOME, .welcome.session = 99},
			       part = {.kind = FW_HOST_SAVED,
				       .run = 7,
				       .host = 3,
				       .epoch = 8,
				       .saved = {.offset = 16, .bytes = "x", .size = 1}};
#define SPAWN(id, m)                                                                               \
	{                                                                                          \
		.kind = WRK_DO_SPAWN, .host = id, .message = m, .lease_until_ns = 1234             \
	}

static const struct wrk_action all[][STEP_ACTIONS] = {
	{SPAWN(1, &create), {.kind = WRK_DO_SEND_HOST, .host = 1, .message = &beat}},
	{{.kind = WRK_DO_CONNECT, .connection = 31}, {.kind = WRK_DO_DISCONNECT, .connection = 32}},
	{SPAWN(2, &beside)},
	{{.kind = WRK_DO_SEND_DRIVER, .connection = 33, .message = &beat},
	 {.kind = WRK_DO_REPORTER_SESSION, .connection = 34, .message = &welcome},
	 {.kind = WRK_DO_REPORTER_HOST, .host = 2}},
	{{.kind = WRK_DO_SIGNAL_HOST, .host = 2, .signal = 15},
	 {.kind = WRK_DO_SIGNAL_HOST, .host = 3, .signal = 9},
	 {.kind = WRK_DO_SEND_HOST, .host = 3, .message = &beat},
	 {.kind = WRK_DO_SAMPLE_HOST, .host = 3}},
	{{.kind = WRK_DO_SAMPLE_HOST, .host = 1},
	 {.kind = WRK_DO_SAMPLE_HOST, .host = 2, .looks = true}},
	{{.kind = WRK_DO_EXAMINE, .connection = 1}},
	{{.kind = WRK_DO_SEND_SAVED, .connection = 35, .run = 7, .number = 2, .epoch = 5},
	 {.kind = WRK_DO_TAKE_SAVED, .message = &part},
	 {.kind = WRK_DO_PROMOTE_SAVED, .run = 7, .number = 3, .epoch = 8},
	 {.kind = WRK_DO_FORGET_SAVED, .run = 7, .number = 4, .epoch = 9}},
	{{.kind = WRK_DO_LOG, .level = FRAGI_LOG_WARN, .subject = "app/f", .text = "it is so"}},
};

static void raise_kind(enum wrk_event_kind kind)
{
	fprintf(out, "raise %d\n", kind);
	logged_begin();
	wrk_worker_raise(&worker, &(struct wrk_event){.kind = kind, .text = "why", .pid = 4});
	logged_end(out);
}

static void run_script(const struct wrk_action (*steps)[STEP_ACTIONS], size_t count)
{
	script = steps;
	script_left = count;
	while (script_left > 0)
		raise_kind(WRK_EVENT_START);
}

/* What the process of a host reports. */
static void hosts_report(void)
{
	static const char *const lines[] = {"a", "b"};
	const struct wrk_exited exited = {.status = 3};
	struct wrk_process *p = &processes[0];
	struct fw_message *copy;
	size_t size;

	fprintf(out, "hosts report\n");
	cr_assert_eq(fw_message_copy(&beat, &copy, &size), 0);
	p->ops->message(p->arg, 1, copy);
	cr_expect(p->ops->takes_lines(p->arg));
	p->ops->lines(p->arg, 1, lines, 2, 5);
	p->ops->connection_lost(p->arg, 1, "it is lost", true);
	p->ops->exited(p->arg, 1, &exited);
	p->ops->freed(p->arg, p);
	cr_expect_null(worker.processes[0]);
	worker.deadline.due(worker.deadline.arg);
}

static void refuse_spawns(void)
{
	static const struct wrk_action spawn[][STEP_ACTIONS] = {{SPAWN(3, &create)}};

	fprintf(out, "it cannot be launched\n");
	launch_fails = true;
	run_script(spawn, 1);
	fprintf(out, "it cannot be started\n");
	launch_fails = false;
	process_fails = true;
	run_script(spawn, 1);
	fprintf(out, "it gets no instance\n");
	process_fails = false;
	share_result = -EBUSY;
	run_script(spawn, 1);
	fprintf(out, "it has no memory to save to\n");
	share_result = 0;
	saved_result = -ENOSPC;
	run_script(spawn, 1);
}

static void end(const char *name, char **text)
{
	fclose(out);
	expected_compare(name, *text);
	free(*text);
}

Test(worker_calls, for_each_action_and_event)
{
	static const struct wrk_action saved[][STEP_ACTIONS] =
		{{{.kind = WRK_DO_SEND_SAVED, .connection = 35, .run = 7, .number = 2, .epoch = 5},
		  {.kind = WRK_DO_TAKE_SAVED, .message = &part}}},
				       sample[][STEP_ACTIONS] = {
					       {{.kind = WRK_DO_SAMPLE_HOST, .host = 2}}};
	char *text;
	size_t size;

	out = open_memstream(&text, &size);
	begin();
	run_script(all, FRAG_COUNT_OF(all));
	hosts_report();
	refuse_spawns();
	fprintf(out, "what was saved is lost\n");
	run_script(saved, 1);
	fprintf(out, "there is no page\n");
	has_page = false;
	run_script(sample, 1);
	finish();
	raise_kind(WRK_EVENT_START);
	end("worker/calls", &text);
}

/* A shell without job control has it ignored; in somebody's program it is the program's. */
Test(worker_calls, who_stops_at_ctrl_z)
{
	static struct wrk_worker_ops guest_ops;
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	for (int i = 0; i < 3; i++) {
		const struct wrk_config config = {.seed = 1};

		(void)signal(SIGTSTP, i == 1 ? SIG_IGN : SIG_DFL);
		guest_ops = ops;
		guest_ops.is_guest = i == 2;
		cr_assert_eq(uv_loop_init(&loop), 0);
		cr_assert_eq(wrk_worker_init(&worker, &loop, &config, &guest_ops, &loop), 0);
		cr_expect_eq(uv_is_active((uv_handle_t *)&worker.suspend), i == 0);
		finish();
	}
	fclose(out);
	free(text);
}

/* The last step of a worker is the first one that finds no memory. */
Test(worker_calls, when_memory_is_short_it_ends)
{
	static const struct wrk_action exits[][STEP_ACTIONS] = {
		{SPAWN(1, &create), {.kind = WRK_DO_EXIT, .exit_code = 6}}};
	struct wrk_inventory inventory = {.asks_gpus = true};
	struct frag_err err = FRAG_ERR_INIT;
	char *text;
	size_t size;

	out = open_memstream(&text, &size);
	begin();
	is_short = true;
	raise_kind(WRK_EVENT_TIMER);
	finish();
	fprintf(out, "it ends with a host\n");
	begin();
	run_script(exits, 1);
	finish();
	fprintf(out, "GPUs are found\n");
	begin();
	wrk_worker_find_gpus(&worker, &inventory, "fraghost");
	worker.survey.done(&worker.survey, 0, 2, 7, "parts", &err);
	cr_expect_str_eq(worker.gpus.program, "fraghost");
	fprintf(out, "... and cannot be kept\n");
	share_result = -ENOMEM;
	worker.survey.done(&worker.survey, 0, 2, 7, "parts", &err);
	finish();
	wrk_worker_find_gpus(&worker, &inventory, "fraghost");
	fprintf(out, "GPUs are not found\n");
	begin();
	survey_result = -ENOENT;
	wrk_worker_find_gpus(&worker, &inventory, "fraghost");
	worker.survey.done(&worker.survey, -ENODEV, 0, 0, "", &err);
	inventory = (struct wrk_inventory){.asks_gpus = false};
	wrk_worker_find_gpus(&worker, &inventory, "fraghost");
	finish();
	end("worker/calls_ended", &text);
}
