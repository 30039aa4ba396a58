// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/host/work.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOG_TOPIC "host"
#include <base/alloc.h>
#include <base/kernel.h>
#include <base/log.h>
#include <base/secret.h>
#include <base/stamp.h>
#include <base/units.h>
#include <data/gpu_limit.h>
#include <run/crash.h>
#include <var/variable.h>
#include <workerd/host/host.h>
#include <workerd/host/tables.h>

/* The run whose operators run, for who wants to change their parameters. */
static pthread_mutex_t present_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fragi_run *present;

static void set_present(struct fragi_run *run)
{
	pthread_mutex_lock(&present_lock);
	present = run;
	pthread_mutex_unlock(&present_lock);
}

int host_set(const char *text, const char *who, struct frag_err *err)
{
	int r;

	pthread_mutex_lock(&present_lock);
	if (present == NULL)
		r = frag_err_set(err, -EAGAIN,
				 "no operators run: they have not been started yet, or have ended");
	else
		r = fragi_run_set(present, text, who, err);
	pthread_mutex_unlock(&present_lock);
	return r;
}

int host_work_init(struct host_work *work, const struct host_options *options)
{
	*work = (struct host_work){
		.ledger_fd = options->ledger_fd,
		.saved_fd = options->saved_fd,
		.paths = options->paths,
		.trusted_only = options->trusted_only,
		.library_path = options->library_path,
	};
	fragi_call_init(&work->call);
	work->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return work->fd < 0 ? -errno : 0;
}

void host_work_fini(struct host_work *work)
{
	fw_message_free(work->wire);
	fragi_secret_free(work->data_key, FRAGI_DATA_KEY_BYTES);
	fragi_secret_free(work->variables_key, FRAGI_VARIABLES_KEY_BYTES);
	fragi_registry_destroy(work->registry);
	fragi_spec_destroy(work->spec);
	fragi_source_fini(&work->source);
	fragi_diag_fini(&work->diag);
	fragi_arena_fini(&work->arena);
	fragi_arena_fini(&work->event_arena);
	close(work->fd);
}

static void begin(struct host_work *work, enum host_action_kind kind)
{
	work->kind = kind;
	work->is_under_way = true;
	work->result = 0;
	work->err = (struct frag_err)FRAG_ERR_INIT;
}

static void done(struct host_work *work)
{
	uint64_t one = 1;

	(void)!write(work->fd, &one, sizeof(one));
}

/* Runs fn on the work thread; it ends with done(). */
static void start_thread(struct host_work *work, void *(*fn)(void *))
{
	char remedy[FRAGI_KERNEL_REMEDY_MAX];
	int r = pthread_create(&work->thread, NULL, fn, work);

	work->has_thread = r == 0;
	if (r == 0)
		return;
	/* Without a thread it is done here, late beats and all. */
	log_warn(NULL, "cannot start a thread: %s%s", frag_strerror(-r),
		 fragi_kernel_remedy(-r, remedy));
	fn(work);
}

static int prepare(struct host_work *work)
{
	const struct fragi_registry_config registry_config = {
		.library_folders = work->library_path,
		.paths = work->paths,
		.trusted_only = work->trusted_only,
		.app_folder = work->source.source.app_folder};
	struct frag_err err = FRAG_ERR_INIT;
	int r = fragi_spec_parse(&work->source.source, &work->diag, &work->spec);

	if (r < 0)
		return r;
	if (work->application[0] != '\0')
		work->spec->application = work->application;
	r = fragi_registry_create(&registry_config, &work->registry);
	if (r < 0)
		return fragi_diag_add(&work->diag, r, NULL, 0, 0, "cannot look for libraries: %s",
				      frag_strerror(r));
	r = fragi_registry_add_linked(work->registry, &err);
	if (r < 0)
		return fragi_diag_add(&work->diag, r, NULL, 0, 0, "%s", err.text);
	work->config.spec = work->spec;
	work->config.registry = work->registry;
	r = fragi_run_create(&work->config, &work->run);
	if (r < 0)
		return fragi_diag_add(&work->diag, r, NULL, 0, 0, "cannot make the run: %s",
				      frag_strerror(r));
	return fragi_run_prepare(work->run, &work->diag);
}

/* The cleanup handler of the work thread: user code has ended it. */
static void lose_thread(void *arg)
{
	struct host_work *work = arg;
	struct fragi_call_seen call = {.kind = FRAGI_CALL_NONE};
	size_t first = work->diag.count;

	(void)fragi_call_look(&work->call, &call);
	work->result = -ECANCELED;
	fragi_diag_add(
		&work->diag, work->result, NULL, 0, 0,
		"%s: %s has ended its thread (pthread_exit), which belongs to frag; return instead",
		call.subject, fragi_call_name(call.kind));
	fragi_diag_classify(&work->diag, first, FRAGI_FAILURE_OPERATOR_FAILED, call.subject);
	atomic_store(&work->thread_lost, true);
	done(work);
}

static void *prepare_main(void *arg)
{
	struct host_work *work = arg;

	fragi_call_record(&work->call);
	pthread_cleanup_push(lose_thread, work);
	work->result = prepare(work);
	pthread_cleanup_pop(0);
	if (work->result < 0 && work->diag.count == 0)
		fragi_diag_add(&work->diag, work->result, NULL, 0, 0, "cannot prepare: %s",
			       frag_strerror(work->result));
	done(work);
	return NULL;
}

_Static_assert(FW_DATA_KEY_BYTES == FRAGI_DATA_KEY_BYTES &&
		       FW_VARIABLES_KEY_BYTES == FRAGI_VARIABLES_KEY_BYTES,
	       "keys travel whole");

/* NULL-ended; NULL: there is no memory. */
static const char **copy_texts(struct host_work *work, const char *const *texts, uint32_t count)
{
	const char **copies = fragi_arena_alloc(&work->arena, (count + 1) * sizeof(*copies));

	for (uint32_t i = 0; copies != NULL && i < count; i++) {
		copies[i] = fragi_arena_strdup(&work->arena, texts[i]);
		if (copies[i] == NULL)
			return NULL;
	}
	return copies;
}

/* Keeps what the run needs of the request. */
static int take_create(struct host_work *work, const struct fw_host_create *create)
{
	int r = fragi_source_unpack(create->source, create->source_bytes, &work->source);

	if (r < 0)
		return r;
	work->data_key = fragi_secret_alloc(FRAGI_DATA_KEY_BYTES);
	work->variables_key = fragi_secret_alloc(FRAGI_VARIABLES_KEY_BYTES);
	if (work->data_key == NULL || work->variables_key == NULL)
		return -ENOMEM;
	memcpy(work->data_key, create->data_key, FRAGI_DATA_KEY_BYTES);
	memcpy(work->variables_key, create->variables_key, FRAGI_VARIABLES_KEY_BYTES);
	work->application = fragi_arena_strdup(&work->arena, create->application);
	work->fragments = copy_texts(work, create->fragments, create->fragment_count);
	work->transports = copy_texts(work, create->transports, create->transport_count);
	return work->application != NULL && work->fragments != NULL && work->transports != NULL
		       ? 0
		       : -ENOMEM;
}

void host_work_prepare(struct host_work *work, const struct host_action *action)
{
	const char *root = getenv("FRAG_APP_ROOT");
	int r = take_create(work, &action->request->create);

	begin(work, HOST_DO_PREPARE);
	if (r < 0) {
		work->result = fragi_diag_add(&work->diag, r, NULL, 0, 0,
					      "cannot read the graph: %s", frag_strerror(r));
		done(work);
		return;
	}
	if (root != NULL && *root != '\0')
		work->source.source.app_folder = root;
	fragi_gpu_limit_set((uint64_t)action->request->create.limits[FRAGI_AMOUNT_GPU_MEMORY]);
	work->config = (struct fragi_run_config){
		.fragments = work->fragments,
		.ledger_fd = work->ledger_fd,
		.saved_fd = work->saved_fd,
		.host = action->request->host,
		.epoch = action->request->epoch,
		.beat_ns = action->beat_ns,
		.dead_ns = action->dead_ns,
		.data_key = work->data_key,
		.transports = work->transports,
		.variables_key = work->variables_key,
	};
	start_thread(work, prepare_main);
}

static void wire(struct host_work *work)
{
	const struct fw_host_wire *wire = &work->wire->wire;
	struct fragi_run_peer *peers;
	struct fragi_run_edge *edges;
	struct fragi_arena arena = {0};

	work->result = host_tables_wire(wire, &arena, &peers, &edges);
	if (work->result < 0)
		frag_err_set(&work->err, work->result, "cannot take in the edges of this host: %s",
			     frag_strerror(work->result));
	else
		work->result = fragi_run_wire(work->run, peers, wire->peer_count, edges,
					      wire->edge_count, &work->err);
	fragi_arena_fini(&arena);
	if (work->result == 0 && fragi_run_service_count(work->run) > 0)
		work->result = fragi_run_connect_services(work->run, wire->announced,
							  wire->announced_count, &work->err);
}

/* Services may take as long as they like, and a host that is to hand over variables may hang. */
static void *wire_main(void *arg)
{
	struct host_work *work = arg;

	fragi_call_record(&work->call);
	pthread_cleanup_push(lose_thread, work);
	wire(work);
	pthread_cleanup_pop(0);
	done(work);
	return NULL;
}

void host_work_wire(struct host_work *work, struct fw_message *request)
{
	begin(work, HOST_DO_WIRE);
	work->wire = request;
	if (fragi_run_wire_may_wait(work->run)) {
		start_thread(work, wire_main);
	} else {
		wire(work);
		done(work);
	}
}

int host_work_rewire(struct host_work *work, const struct fw_message *request)
{
	const struct fw_host_wire *wire = &request->wire;
	struct fragi_arena arena = {0};
	struct fragi_run_peer *peers;
	struct fragi_run_edge *edges;
	int r = host_tables_wire(wire, &arena, &peers, &edges);

	if (r == 0)
		fragi_run_rewire(work->run, peers, wire->peer_count, edges, wire->edge_count);
	fragi_arena_fini(&arena);
	return r;
}

void host_work_start(struct host_work *work)
{
	begin(work, HOST_DO_START);
	work->result = fragi_run_start(work->run, &work->err);
	work->is_starting = work->result == 0;
	if (work->result < 0)
		done(work);
}

static enum fragi_failure failure_of(int r)
{
	return r == 0         ? FRAGI_FAILURE_NONE
	       : r == -EINVAL ? FRAGI_FAILURE_USAGE
	       : r == -ENOMEM ? FRAGI_FAILURE_OUT_OF_MEMORY
			      : FRAGI_FAILURE_HOST_FAILED;
}

void host_work_set(struct host_work *work, const struct fw_host_set *request,
		   struct fw_host_set_done *out_done)
{
	int r;

	work->err = (struct frag_err)FRAG_ERR_INIT;
	r = host_set(request->text, request->who, &work->err);
	*out_done =
		(struct fw_host_set_done){request->number, {failure_of(r), work->err.text, NULL}};
}

void host_work_drain(struct host_work *work, int64_t within_ns)
{
	fragi_run_limit_calls(work->run, within_ns);
	fragi_run_drain(work->run);
}

void host_work_yield(struct host_work *work, int64_t within_ns)
{
	fragi_run_limit_calls(work->run, within_ns);
	fragi_run_yield(work->run);
}

void host_work_look(struct host_work *work, uint32_t looks)
{
	fragi_run_look(work->run, looks);
}

void host_work_tap(struct host_work *work, const struct fw_host_tap *request)
{
	const struct fragi_run_tap_wish wish = {
		.id = request->tap,
		.fragment = request->fragment,
		.op = request->op,
		.port = request->port,
		.every_ns = request->every_ns,
		.for_ns = request->for_ns,
		.pictures = request->pictures,
		.traces = request->traces,
	};
	int r = fragi_run_tap(work->run, &wish);

	if (r < 0 && r != -ESRCH)
		log_debug(NULL, "has no tap %u: %s", request->tap, frag_strerror(r));
}

bool host_work_passed(struct host_work *work, fragi_run_passed_fn take, void *arg)
{
	return !work->is_under_way && work->run != NULL && fragi_run_passed(work->run, take, arg);
}

void host_work_traced(struct host_work *work, bool is_end, fragi_run_traced_fn take, void *arg)
{
	if (work->run != NULL)
		fragi_run_traced(work->run, is_end, take, arg);
}

void host_work_suspend(struct host_work *work, const struct fw_host_suspend *request)
{
	fragi_run_suspend(work->run, request->peer, request->peer_epoch);
}

void host_work_halt(struct host_work *work)
{
	if (work->run != NULL)
		fragi_run_halt(work->run);
}

/* What is left of the run is not destroyed, so this host does not end in order. */
static void break_off_destroy(void *work)
{
	fragi_crash_leave_note();
	lose_thread(work);
}

static void *destroy_main(void *arg)
{
	struct host_work *work = arg;

	fragi_call_record(&work->call);
	pthread_cleanup_push(break_off_destroy, work);
	work->run_hangs = work->run != NULL && fragi_run_hangs(work->run);
	fragi_run_destroy(work->run);
	pthread_cleanup_pop(0);
	work->run = NULL;
	done(work);
	return NULL;
}

void host_work_destroy(struct host_work *work)
{
	begin(work, HOST_DO_DESTROY);
	set_present(NULL);
	if (atomic_load(&work->thread_lost))
		done(work);
	else
		start_thread(work, destroy_main);
}

static struct fw_host_result result_of(struct host_work *work)
{
	if (work->result == 0)
		return (struct fw_host_result){0};
	if (atomic_load(&work->thread_lost) && work->diag.count > 0)
		work->err = work->diag.items[work->diag.count - 1];
	frag_err_set(&work->err, work->result, "%s", frag_strerror(work->result));
	fragi_err_classify(&work->err,
			   work->result == -ENOMEM      ? FRAGI_FAILURE_OUT_OF_MEMORY
			   : work->kind == HOST_DO_WIRE ? FRAGI_FAILURE_EDGE_REFUSED
							: FRAGI_FAILURE_HOST_FAILED,
			   NULL);
	return (struct fw_host_result){
		{fragi_err_failure(&work->err), work->err.text, work->err.op}};
}

/* diag: why it is not prepared; NULL: it is. */
static void prepare_done(struct host_work *work, const struct fragi_diag *diag,
			 struct host_event *out_event)
{
	int r;

	work->prepared = (struct fw_host_prepared){0};
	if (diag == NULL) {
		r = host_tables_prepared(work->run, &work->event_arena, &work->prepared);
	} else {
		r = host_tables_errors(diag, atomic_load(&work->thread_lost) ? NULL : work->run,
				       &work->event_arena, &work->prepared);
	}
	*out_event = (struct host_event){.kind = HOST_EV_PREPARE_DONE,
					 .prepared = r < 0 ? NULL : &work->prepared,
					 .text = frag_strerror(r),
					 .operators_may_hang = atomic_load(&work->thread_lost)};
}

static void complete(struct host_work *work, struct host_event *out_event)
{
	if (work->has_thread)
		pthread_join(work->thread, NULL);
	work->has_thread = work->is_under_way = false;
	switch (work->kind) {
	case HOST_DO_PREPARE:
		fragi_crash_guard_exit(); /* before the exit handlers of what was loaded */
		prepare_done(work, work->result < 0 ? &work->diag : NULL, out_event);
		break;
	case HOST_DO_WIRE:
	case HOST_DO_START:
		work->phase = result_of(work);
		*out_event = (struct host_event){
			.kind = work->kind == HOST_DO_WIRE ? HOST_EV_WIRE_DONE : HOST_EV_START_DONE,
			.result = &work->phase};
		break;
	default:
		if (work->result < 0)
			log_error(NULL, "%s", work->diag.items[work->diag.count - 1].text);
		*out_event = (struct host_event){.kind = HOST_EV_DESTROY_DONE,
						 .operators_may_hang = work->result < 0};
		break;
	}
}

int host_work_run_fd(const struct host_work *work)
{
	/* First whether work is under way: what its thread has is not even looked at. */
	return (work->is_under_way && !work->is_starting) || work->run == NULL
		       ? -1
		       : fragi_run_fd(work->run);
}

static void report(struct host_work *work, struct host_event *out_event)
{
	static const enum fw_host_state states[] = {
		[FRAGI_RUN_IDLE] = FW_STATE_IDLE,       [FRAGI_RUN_DONE] = FW_STATE_DONE,
		[FRAGI_RUN_FAILED] = FW_STATE_FAILED,   [FRAGI_RUN_PEER_LOST] = FW_STATE_PEER_LOST,
		[FRAGI_RUN_STOPPED] = FW_STATE_STOPPED,
	};
	const struct fragi_run_event *event = &work->run_event;

	if (event->kind == FRAGI_RUN_WIRED) {
		*out_event = (struct host_event){.kind = HOST_EV_PEERS_READY};
		return;
	}
	work->report =
		(struct fw_host_event){.state = states[event->kind],
				       .peer = event->peer,
				       .peer_epoch = event->peer_epoch,
				       .failure = {event->failure, event->sentence, event->op},
				       .idle_rounds = event->idle_rounds,
				       .sent = event->sent,
				       .delivered = event->delivered};
	*out_event = (struct host_event){.kind = HOST_EV_RUN, .report = &work->report};
}

/* The operators' threads have started them, or one of them has failed. */
static void start_done(struct host_work *work, struct host_event *out_event)
{
	const struct fragi_run_event *event = &work->run_event;

	work->is_under_way = work->is_starting = false;
	work->phase = (struct fw_host_result){0};
	if (event->kind == FRAGI_RUN_FAILED)
		work->phase.failure =
			(struct fw_failure){event->failure, event->sentence, event->op};
	else
		set_present(work->run);
	*out_event = (struct host_event){.kind = HOST_EV_START_DONE, .result = &work->phase};
}

/* The call has run longer than the operator's watchdog allows: its thread is given up. */
static void give_up_call(struct host_work *work, const struct fragi_call_seen *call,
			 struct host_event *out_event)
{
	char allowed[32];

	fragi_diag_add(
		&work->given_up, -ETIMEDOUT, NULL, 0, 0,
		"%s: %s has run for longer than its watchdog of %s; it hangs, or the watchdog is too short for it",
		call->subject, fragi_call_name(call->kind),
		fragi_format_duration(call->limit_ns, allowed, sizeof(allowed)));
	fragi_diag_classify(&work->given_up, 0, FRAGI_FAILURE_OPERATOR_HUNG, call->subject);
	work->has_thread = work->is_under_way = false;
	atomic_store(&work->thread_lost, true);
	prepare_done(work, &work->given_up, out_event);
}

/*
 * Looks at the call that the work thread is in. Loading a model may take minutes, but who waits is
 * to know for whom. Returns whether it was given up.
 */
static bool watch_call(struct host_work *work, struct host_event *out_event)
{
	struct fragi_call_seen call;
	int64_t for_ns;

	if ((work->kind != HOST_DO_PREPARE && work->kind != HOST_DO_WIRE) || !work->has_thread ||
	    !fragi_call_look(&work->call, &call))
		return false;
	for_ns = fragi_now_ns() - call.since_ns;
	if (call.limit_ns > 0 && for_ns > call.limit_ns) {
		give_up_call(work, &call, out_event);
		return true;
	}
	if (call.since_ns != work->slow_since_ns)
		work->slow_count = 0;
	work->slow_since_ns = call.since_ns;
	if (for_ns / FRAGI_CALL_SLOW_NS > work->slow_count) {
		work->slow_count = for_ns / FRAGI_CALL_SLOW_NS;
		log_warn(NULL, "%s: %s has run for %lld s and goes on", call.subject,
			 fragi_call_name(call.kind), (long long)(for_ns / 1000000000));
	}
	return false;
}

bool host_work_next(struct host_work *work, struct host_event *out_event)
{
	uint64_t count;

	fragi_arena_fini(&work->event_arena);
	if (work->is_under_way && !work->is_starting) {
		if (read(work->fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
			return watch_call(work, out_event);
		complete(work, out_event);
		return true;
	}
	if (work->run == NULL || fragi_run_next(work->run, &work->run_event) <= 0)
		return false;
	if (work->is_starting &&
	    (work->run_event.kind == FRAGI_RUN_STARTED || work->run_event.kind == FRAGI_RUN_FAILED))
		start_done(work, out_event);
	else
		report(work, out_event);
	return true;
}
