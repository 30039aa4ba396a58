// SPDX-License-Identifier: Apache-2.0
#include <workerd/confine.h>
#include <workerd/facts.h>
#include <workerd/worker.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LOG_TOPIC "worker"
#include <base/alloc.h>
#include <base/log.h>
#include <base/sentence.h>
#include <base/stamp.h>
#include <workerd/strays.h>

#define PENDING_TEXT 512

struct wrk_pending {
	struct wrk_pending *next;
	struct wrk_event event;
	char text[PENDING_TEXT];
	struct fw_host_stats stats;
};

static struct wrk_process *process_of(struct wrk_worker *worker, uint32_t host)
{
	for (size_t i = 0; i < WRK_PROCESSES_MAX; i++)
		if (worker->processes[i] != NULL && wrk_process_host(worker->processes[i]) == host)
			return worker->processes[i];
	return NULL;
}

static void on_host_message(void *arg, uint32_t host, struct fw_message *message)
{
	wrk_worker_raise(arg, &(struct wrk_event){.kind = WRK_EVENT_HOST_MESSAGE,
						  .host = host,
						  .message = message});
	fw_message_free(message);
}

static void on_host_connection_lost(void *arg, uint32_t host, const char *sentence, bool cut)
{
	wrk_worker_raise(arg, &(struct wrk_event){.kind = WRK_EVENT_HOST_CONNECTION_LOST,
						  .host = host,
						  .text = sentence,
						  .cut = cut});
}

static void give_instance(struct wrk_worker *worker, size_t place)
{
	wrk_gpu_share_give(&worker->gpu_share, worker->instances[place]);
	worker->instances[place] = 0;
}

static void on_host_exited(void *arg, uint32_t host, const struct wrk_exited *exited)
{
	struct wrk_worker *worker = arg;

	for (size_t i = 0; i < WRK_PROCESSES_MAX; i++)
		if (worker->processes[i] != NULL && wrk_process_host(worker->processes[i]) == host)
			give_instance(worker, i);
	wrk_worker_raise(
		arg,
		&(struct wrk_event){.kind = WRK_EVENT_HOST_EXITED, .host = host, .exited = exited});
}

static bool on_takes_lines(void *arg)
{
	const struct wrk_worker *worker = arg;

	return wrk_core_takes_lines(worker->core);
}

static void on_host_lines(void *arg, uint32_t host, const char *const *lines, uint32_t count,
			  uint32_t left_out)
{
	wrk_worker_raise(arg, &(struct wrk_event){.kind = WRK_EVENT_HOST_LINES,
						  .host = host,
						  .lines = lines,
						  .line_count = count,
						  .left_out = left_out});
}

static void on_host_freed(void *arg, struct wrk_process *process)
{
	struct wrk_worker *worker = arg;

	if (worker->reporter != NULL)
		wrk_reporter_remove(worker->reporter, wrk_process_host(process));
	for (size_t i = 0; i < WRK_PROCESSES_MAX; i++)
		if (worker->processes[i] == process) {
			give_instance(worker, i);
			worker->processes[i] = NULL;
		}
	if (worker->ops->host_gone != NULL)
		worker->ops->host_gone(worker->arg);
}

static const struct wrk_process_ops process_ops = {
	.message = on_host_message,
	.connection_lost = on_host_connection_lost,
	.exited = on_host_exited,
	.takes_lines = on_takes_lines,
	.lines = on_host_lines,
	.freed = on_host_freed,
};

static int start_process(struct wrk_worker *worker, const struct wrk_action *action,
			 struct wrk_process **place, bool *out_is_interpreter, struct frag_err *err)
{
	uint32_t *instance = &worker->instances[place - worker->processes];
	const int64_t gpus =
		worker->inventory != NULL ? worker->inventory->has[FRAGI_AMOUNT_GPU] : 0;
	struct fragi_arena arena = {0};
	struct wrk_launch launch;
	bool is_launched;
	int saved_fd = 0, r;

	if (action->message->create.may_restart)
		saved_fd = wrk_saved_of(&worker->saved, action->message->run, action->message->host,
					action->message->create.is_beside ? action->message->epoch
									  : 0);
	if (saved_fd < 0)
		return frag_err_set(
			err, saved_fd,
			"cannot start a host: there is no memory for what its operators save: %s",
			frag_strerror(saved_fd));
	r = worker->ops->launch(worker->arg, action->message, &arena, &launch, err);
	is_launched = r == 0;
	if (r == 0)
		r = wrk_gpu_share_take(&worker->gpu_share, action->message,
				       (uint32_t)(gpus / FRAGI_AMOUNT_ONE), &arena,
				       &launch.environment, instance, err);
	if (r == 0) {
		*out_is_interpreter = launch.arguments != NULL;
		launch.saved_fd = saved_fd;
		launch.writer = (struct wrk_writer){
			action->message->create.application, action->message->create.fragments,
			action->message->create.fragment_count, launch.names_plain};
		r = wrk_process_start(worker->loop, action->host, &launch, &process_ops, worker,
				      place, err);
		if (r < 0)
			give_instance(worker, (size_t)(place - worker->processes));
	}
	if (is_launched && launch.confine != NULL)
		wrk_confine_end(launch.confine);
	fragi_arena_fini(&arena);
	return r;
}

struct saved_sending {
	struct wrk_worker *worker;
	const struct wrk_action *action;
};

static void send_saved_part(void *arg, uint64_t offset, const void *bytes, uint32_t size)
{
	const struct saved_sending *sending = arg;
	const struct wrk_action *action = sending->action;
	const struct fw_message message = {
		.kind = FW_HOST_SAVED,
		.run = action->run,
		.host = action->number,
		.epoch = action->epoch,
		.saved = {offset, bytes, size},
	};

	sending->worker->ops->send(sending->worker->arg, action->connection, &message);
}

/* What cannot be read is not there for the host that goes on, which begins anew. */
static void send_saved(struct wrk_worker *worker, const struct wrk_action *action)
{
	struct saved_sending sending = {worker, action};
	int r = wrk_saved_read(&worker->saved, action->run, action->number, send_saved_part,
			       &sending);

	if (r < 0)
		log_error(NULL,
			  "what operators have saved cannot be handed over: %s; they begin anew",
			  frag_strerror(r));
}

static void take_saved(struct wrk_worker *worker, const struct fw_message *message)
{
	int r = wrk_saved_take(&worker->saved, message->run, message->host, message->epoch,
			       &message->saved);

	if (r < 0)
		log_error(NULL,
			  "what operators have saved cannot be taken over: %s; they begin anew",
			  frag_strerror(r));
}

/* With the end of its lease, which the kernel is to know before any of its operators runs. */
static void send_create(struct wrk_process *process, const struct wrk_action *action)
{
	struct fw_message message = *action->message;

	message.create.lease_until_ns = action->lease_until_ns;
	wrk_process_send(process, &message);
	explicit_bzero(&message.create, sizeof(message.create));
}

static void do_spawn(struct wrk_worker *worker, const struct wrk_action *action)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct wrk_process **place = NULL;
	bool is_interpreter = false;

	for (size_t i = 0; i < WRK_PROCESSES_MAX && place == NULL; i++)
		if (worker->processes[i] == NULL)
			place = &worker->processes[i];
	if (place == NULL)
		frag_err_set(&err, -EBUSY,
			     "cannot start a host: those that ended are not cleared away yet");
	else if (start_process(worker, action, place, &is_interpreter, &err) == 0) {
		if (worker->reporter != NULL)
			wrk_reporter_add(worker->reporter, action->host, action->message,
					 wrk_process_page(*place)->fd, wrk_process_exit_fd(*place));
		wrk_worker_raise(worker, &(struct wrk_event){.kind = WRK_EVENT_HOST_SPAWNED,
							     .host = action->host,
							     .pid = wrk_process_pid(*place),
							     .is_interpreter = is_interpreter});
		send_create(*place, action);
		return;
	}
	wrk_worker_raise(worker, &(struct wrk_event){.kind = WRK_EVENT_HOST_FAILED,
						     .host = action->host,
						     .text = err.text});
}

/* Nobody sees them, and they are a quarter of a report. */
static void forget_bars(const struct fw_host_stats *stats)
{
	for (uint32_t i = 0; i < stats->op_count; i++)
		fragi_bars_forget(&stats->ops[i].compute);
	for (uint32_t i = 0; i < stats->flow_count; i++)
		fragi_bars_forget(&stats->flows[i].latency);
}

static void do_sample(struct wrk_worker *worker, const struct wrk_action *action)
{
	struct wrk_process *process = process_of(worker, action->host);
	struct fw_host_stats stats;

	if (process == NULL || !wrk_process_sample(process, &stats))
		return;
	worker->has_sampled = true;
	if (action->looks) {
		wrk_facts_read(wrk_process_pid(process), wrk_process_facts(process), &stats.facts);
		wrk_gpu_load_read(&worker->gpus, worker->loop, &stats.facts);
	} else {
		forget_bars(&stats);
	}
	wrk_worker_raise(worker, &(struct wrk_event){.kind = WRK_EVENT_HOST_SAMPLED,
						     .host = action->host,
						     .stats = &stats});
}

/* All that was sampled has been sent. */
static void rest(struct wrk_worker *worker)
{
	for (size_t i = 0; worker->has_sampled && i < WRK_PROCESSES_MAX; i++)
		if (worker->processes[i] != NULL)
			wrk_page_rest(wrk_process_page(worker->processes[i]));
	worker->has_sampled = false;
}

static void out_of_memory(struct wrk_worker *worker)
{
	worker->ops->log(worker->arg, FRAGI_LOG_ERROR, NULL,
			 "out of memory: this worker and its hosts end");
	wrk_worker_end(worker, fragi_failure_exit(FRAGI_FAILURE_OUT_OF_MEMORY));
}

static void warn_of_gpus(const struct frag_err *err)
{
	log_warn(
		NULL,
		"the memory of GPUs is not known (%s); give it by --inventory gpu=N,gpuMemory=SIZE",
		err->text);
}

static void on_gpus(struct wrk_gpu_survey *survey, int r, uint32_t count, uint64_t bytes,
		    const char *parts, const struct frag_err *err)
{
	struct wrk_worker *worker = survey->arg;
	struct wrk_inventory *inventory = worker->inventory;
	struct wrk_event event = {
		.kind = WRK_EVENT_GPUS, .has = inventory->has, .mig = inventory->mig};
	char mig[WRK_MIG_TEXT_MAX];

	if (r < 0) {
		warn_of_gpus(err);
		return;
	}
	wrk_gpu_share_text(parts, mig);
	if (wrk_gpu_share_offer(&worker->gpu_share, parts) < 0) {
		out_of_memory(worker);
		return;
	}
	wrk_inventory_take_gpus(inventory, count, bytes, mig);
	wrk_worker_raise(worker, &event);
}

void wrk_worker_find_gpus(struct wrk_worker *worker, struct wrk_inventory *inventory,
			  const char *program)
{
	struct frag_err err = FRAG_ERR_INIT;

	if (worker->ended)
		return;
	worker->inventory = inventory;
	worker->survey = (struct wrk_gpu_survey){.done = on_gpus, .arg = worker};
	if (inventory->asks_gpus || inventory->has[FRAGI_AMOUNT_GPU] > 0)
		worker->gpus.program = program;
	if (inventory->asks_gpus &&
	    wrk_gpu_survey_start(&worker->survey, worker->loop, program, &err) < 0)
		warn_of_gpus(&err);
}

void wrk_worker_end(struct wrk_worker *worker, int exit_code)
{
	if (worker->ended)
		return;
	worker->ended = true;
	fw_deadline_close(&worker->deadline);
	uv_close((uv_handle_t *)&worker->suspend, NULL);
	wrk_gpu_survey_end(&worker->survey);
	wrk_gpu_load_end(&worker->gpus);
	wrk_examiner_end(&worker->examiner);
	for (size_t i = 0; i < WRK_PROCESSES_MAX; i++)
		if (worker->processes[i] != NULL)
			wrk_process_abandon(worker->processes[i]);
	worker->ops->ended(worker->arg, exit_code);
}

static void on_examined(void *arg, const struct fw_message *answer)
{
	wrk_worker_raise(arg, &(struct wrk_event){.kind = WRK_EVENT_EXAMINED, .message = answer});
}

static void perform(struct wrk_worker *worker, const struct wrk_action *action)
{
	struct wrk_process *process = process_of(worker, action->host);

	switch (action->kind) {
	case WRK_DO_CONNECT:
		worker->ops->connect(worker->arg, action->connection);
		break;
	case WRK_DO_DISCONNECT:
		worker->ops->disconnect(worker->arg, action->connection);
		break;
	case WRK_DO_SEND_DRIVER:
		worker->ops->send(worker->arg, action->connection, action->message);
		break;
	case WRK_DO_REPORTER_SESSION:
		if (worker->ops->keep != NULL)
			worker->ops->keep(worker->arg, action->connection,
					  &action->message->welcome);
		break;
	case WRK_DO_REPORTER_HOST:
		if (worker->reporter != NULL)
			wrk_reporter_adopt(worker->reporter, action->host);
		break;
	case WRK_DO_SPAWN:
		do_spawn(worker, action);
		break;
	case WRK_DO_SEND_HOST:
		if (process != NULL)
			wrk_process_send(process, action->message);
		break;
	case WRK_DO_SIGNAL_HOST:
		if (process != NULL)
			wrk_process_signal(process, action->signal);
		break;
	case WRK_DO_SAMPLE_HOST:
		do_sample(worker, action);
		break;
	case WRK_DO_SEND_SAVED:
		send_saved(worker, action);
		break;
	case WRK_DO_TAKE_SAVED:
		take_saved(worker, action->message);
		break;
	case WRK_DO_FORGET_SAVED:
		wrk_saved_forget(&worker->saved, action->run, action->number, action->epoch);
		break;
	case WRK_DO_PROMOTE_SAVED:
		wrk_saved_promote(&worker->saved, action->run, action->number, action->epoch);
		break;
	case WRK_DO_EXAMINE:
		wrk_examiner_begin(&worker->examiner, worker->loop, on_examined, worker);
		break;
	case WRK_DO_LOG:
		worker->ops->log(worker->arg, action->level, action->subject, action->text);
		break;
	case WRK_DO_EXIT:
		wrk_worker_end(worker, action->exit_code);
		break;
	}
}

static void on_deadline(void *arg)
{
	fragi_log_catch_up(0);
	wrk_worker_raise(arg, &(struct wrk_event){.kind = WRK_EVENT_TIMER});
}

static void step(struct wrk_worker *worker, const struct wrk_event *event)
{
	wrk_actions_reset(&worker->actions);
	if (wrk_core_step(worker->core, event, fragi_boot_ns(), &worker->actions) < 0) {
		out_of_memory(worker);
		return;
	}
	for (size_t i = 0; i < worker->actions.count; i++)
		perform(worker, &worker->actions.items[i]);
}

/*
 * Messages and exits never come from within a step: only what an action itself causes is kept for
 * later.
 */
static void keep_for_later(struct wrk_worker *worker, const struct wrk_event *event)
{
	struct wrk_pending *pending = fragi_calloc(1, sizeof(*pending));

	if (pending == NULL) {
		out_of_memory(worker);
		return;
	}
	pending->event = *event;
	if (event->text != NULL) {
		fragi_sentence(pending->text, sizeof(pending->text), "%s", event->text);
		pending->event.text = pending->text;
	}
	if (event->stats != NULL) {
		pending->stats = *event->stats;
		pending->event.stats = &pending->stats;
	}
	*worker->last = pending;
	worker->last = &pending->next;
}

void wrk_worker_raise(struct wrk_worker *worker, const struct wrk_event *event)
{
	if (worker->ended)
		return;
	if (worker->stepping) {
		keep_for_later(worker, event);
		return;
	}
	worker->stepping = true;
	step(worker, event);
	while (worker->first != NULL) {
		struct wrk_pending *pending = worker->first;

		if (!worker->ended)
			step(worker, &pending->event);
		worker->first = pending->next;
		if (worker->first == NULL)
			worker->last = &worker->first;
		fragi_free(pending);
	}
	rest(worker);
	worker->stepping = false;
	if (!worker->ended)
		fw_deadline_set(&worker->deadline, wrk_core_deadline_ns(worker->core),
				fragi_boot_ns());
}

static void signal_processes(const struct wrk_worker *worker, int number)
{
	for (size_t i = 0; i < WRK_PROCESSES_MAX; i++)
		if (worker->processes[i] != NULL)
			wrk_process_signal(worker->processes[i], number);
}

/* A terminal sends it to this process only, for hosts have sessions of their own. */
static void on_suspend(uv_signal_t *handle, int number)
{
	signal_processes(handle->data, SIGSTOP);
	uv_signal_stop(handle); /* what it does by default */
	raise(number);
	uv_signal_start(handle, on_suspend, number);
	signal_processes(handle->data, SIGCONT);
}

/* A shell without job control has it ignored. */
static int watch_suspend(struct wrk_worker *worker)
{
	struct sigaction now;

	uv_signal_init(worker->loop, &worker->suspend);
	worker->suspend.data = worker;
	if (worker->ops->is_guest)
		return 0;
	if (sigaction(SIGTSTP, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
		return 0;
	return uv_signal_start(&worker->suspend, on_suspend, SIGTSTP);
}

int wrk_worker_init(struct wrk_worker *worker, uv_loop_t *loop, const struct wrk_config *config,
		    const struct wrk_worker_ops *ops, void *arg)
{
	int r;

	*worker = (struct wrk_worker){.loop = loop, .ops = ops, .arg = arg};
	worker->last = &worker->first;
	r = wrk_core_create(config, &worker->core);
	if (r < 0)
		return r;
	fw_deadline_init(&worker->deadline, loop, on_deadline, worker);
	return watch_suspend(worker);
}

void wrk_worker_fini(struct wrk_worker *worker)
{
	wrk_strays_end_all();
	wrk_core_destroy(worker->core);
	wrk_actions_fini(&worker->actions);
	wrk_saved_forget(&worker->saved, 0, 0, 0);
	wrk_gpu_share_fini(&worker->gpu_share);
	worker->core = NULL;
}
