// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/process.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOG_TOPIC "worker"
#include <base/alloc.h>
#include <base/crash_note.h>
#include <base/log.h>
#include <base/printable.h>
#include <base/sentence.h>
#include <base/stamp.h>
#include <wire/connection.h>
#include <workerd/confine.h>
#include <workerd/control_group.h>
#include <workerd/facts.h>
#include <workerd/lines.h>
#include <workerd/spawn.h>
#include <workerd/strays.h>
#include <workerd/traced.h>

#define LAST_WORDS_MS 100
#define OUTPUT_BYTES 16384
#define NOTES_MAX 64 /* children of a host may crash too */
/*
 * While stderr takes nothing the host is not read, so that its operators wait for a reader that is
 * only behind. Then its lines are dropped here, before it has to drop them itself.
 */
#define STALL_LOOK_MS 10
#define STALL_NS (FRAGI_LOG_PATIENCE_NS / 2)

#define FRESH_MAX FW_LOG_ROWS_MAX /* lines of one read that are passed on */
#define STRAYS_PAUSE_MS 5
#define STRAYS_ROUNDS_MAX 200

struct wrk_process {
	/* constant once started */
	struct wrk_process *next; /* of all that are not reaped */
	char mark[WRK_STRAYS_MARK_MAX];
	uint32_t host;
	pid_t pid;
	int exit_fd;  /* readable once it has ended */
	int note_fd;  /* what it leaves when it crashes */
	int group_fd; /* its control group; -1: none */
	const struct wrk_spawn_ops *child;
	const struct wrk_process_ops *ops;
	void *arg;
	/* the loop's */
	struct fw_connection *connection; /* NULL: closed */
	uint64_t seq;
	uv_pipe_t output;
	uv_poll_t exit;
	uv_timer_t patience, stall;
	int handles; /* of these four, that libuv still has */
	bool output_open, reaped, exit_reported, abandoned, stats_refused;
	int status, signal, stray_rounds;
	char core_file[200];
	struct wrk_page page;
	struct wrk_traced traced;
	struct wrk_facts_past facts;
	struct fragi_arena arena; /* of writer */
	struct wrk_writer writer;
	struct wrk_lines lines;
	/* of what is being taken in; owned */
	char *fresh[FRESH_MAX];
	uint32_t fresh_count, fresh_left_out;
	int64_t stalled_since_ns; /* 0: stderr takes what the host writes */
	size_t output_bytes;      /* in buffer, while it is stalled */
	char buffer[OUTPUT_BYTES];
};

static struct wrk_process *processes;

static bool is_host(pid_t pid)
{
	for (const struct wrk_process *p = processes; p != NULL; p = p->next)
		if (p->pid == pid)
			return true;
	return false;
}

static void unlink_process(struct wrk_process *p)
{
	struct wrk_process **at = &processes;

	while (*at != NULL && *at != p)
		at = &(*at)->next;
	if (*at == p)
		*at = p->next;
}

void wrk_process_reap_strays(void)
{
	(void)wrk_strays_end(NULL, is_host);
}

static void process_free_if_done(struct wrk_process *p)
{
	if (p->handles > 0 || p->connection != NULL)
		return;
	unlink_process(p);
	wrk_page_fini(&p->page);
	wrk_lines_fini(&p->lines);
	fragi_arena_fini(&p->arena);
	if (p->exit_fd >= 0)
		close(p->exit_fd);
	close(p->note_fd);
	if (p->group_fd >= 0)
		close(p->group_fd);
	p->ops->freed(p->arg, p);
	fragi_free(p);
}

static void on_closed(uv_handle_t *handle)
{
	struct wrk_process *p = handle->data;

	p->handles--;
	process_free_if_done(p);
}

static void close_handle(uv_handle_t *handle)
{
	if (handle->type != UV_UNKNOWN_HANDLE && !uv_is_closing(handle))
		uv_close(handle, on_closed);
}

static void close_all(struct wrk_process *p)
{
	close_handle((uv_handle_t *)&p->output);
	close_handle((uv_handle_t *)&p->exit);
	close_handle((uv_handle_t *)&p->patience);
	close_handle((uv_handle_t *)&p->stall);
	if (p->connection != NULL)
		fw_connection_close(p->connection);
}

/* A text of the host, which may have written anything. */
static void make_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	fragi_make_printable(text, '?');
}

/* Whether it noted which callback it ended in. */
static bool read_note(struct wrk_process *p, struct fragi_crash_note *out_note)
{
	struct fragi_crash_note note;
	bool is_found = false;

	for (int i = 0; i < NOTES_MAX && read(p->note_fd, &note, sizeof(note)) == sizeof(note); i++)
		if (note.pid == p->pid &&
		    (note.callback != FRAGI_CALL_NONE || note.cause[0] != '\0')) {
			*out_note = note;
			is_found = true;
		}
	if (!is_found)
		return false;
	make_text(out_note->op, sizeof(out_note->op));
	make_text(out_note->cause, sizeof(out_note->cause));
	return out_note->op[0] != '\0' || out_note->cause[0] != '\0' ||
	       out_note->callback == FRAGI_CALL_COMPOSE;
}

static void on_line(void *arg, const char *line)
{
	struct wrk_process *p = arg;

	if (p->abandoned || !p->ops->takes_lines(p->arg))
		return;
	if (p->fresh_count < FRESH_MAX)
		p->fresh[p->fresh_count] = fragi_strdup(line);
	if (p->fresh_count < FRESH_MAX && p->fresh[p->fresh_count] != NULL)
		p->fresh_count++;
	else
		p->fresh_left_out++;
}

/* Passes on the lines that were taken in. */
static void pass_lines(struct wrk_process *p)
{
	if (p->fresh_count + p->fresh_left_out > 0 && !p->abandoned)
		p->ops->lines(p->arg, p->host, (const char *const *)p->fresh, p->fresh_count,
			      p->fresh_left_out);
	for (uint32_t i = 0; i < p->fresh_count; i++)
		fragi_free(p->fresh[i]);
	p->fresh_count = p->fresh_left_out = 0;
}

static void report_exit(struct wrk_process *p)
{
	struct fragi_crash_note note;
	const char *lines[FW_LINES_MAX];
	struct fw_host_stats stats;
	struct wrk_exited exited = {.status = p->status, .signal = p->signal};

	if (p->exit_reported)
		return;
	p->exit_reported = true;
	wrk_lines_end(&p->lines);
	pass_lines(p);
	exited.core_file = p->core_file[0] != '\0' ? p->core_file : NULL;
	exited.stats = wrk_process_sample(p, &stats) ? &stats : NULL;
	if (!p->abandoned)
		wrk_traced_rest(&p->traced, p->page.ledger.ring, p->signal == 0 && p->status == 0,
				p->ops->message, p->arg, p->host);
	exited.note = read_note(p, &note) ? &note : NULL;
	exited.memory_limit_bytes = wrk_control_group_exceeded(p->group_fd);
	exited.lines = lines;
	exited.line_count = (uint32_t)wrk_lines_last(&p->lines, lines);
	if (!p->abandoned)
		p->ops->exited(p->arg, p->host, &exited);
	close_all(p);
}

static void report_exit_if_complete(struct wrk_process *p)
{
	if (p->reaped && p->connection == NULL && !p->output_open)
		report_exit(p);
}

static void on_patience(uv_timer_t *timer)
{
	report_exit(timer->data);
}

/* Passes on what the host wrote, and reads on when nothing has to wait. */
static void forward_output(struct wrk_process *p);

static void on_exit_event(uv_poll_t *poll, int status, int events);

/*
 * It has ended and is still a zombie. What its operators have started is ended first: until then
 * its output is open, and its pid, which their session may have as its number, is not given to
 * another process.
 */
static void end_strays(uv_timer_t *timer)
{
	struct wrk_process *p = timer->data;
	const struct wrk_strays_of of = {
		.host = p->pid, .mark = p->mark, .is_only = processes == p && p->next == NULL};

	if (wrk_strays_end(&of, is_host) > 0 && ++p->stray_rounds < STRAYS_ROUNDS_MAX) {
		uv_timer_start(&p->patience, end_strays, STRAYS_PAUSE_MS, 0);
		return;
	}
	if (p->child->reap(p->pid, &p->status, &p->signal, p->core_file, sizeof(p->core_file)) <
	    0) {
		uv_poll_start(&p->exit, UV_READABLE, on_exit_event);
		return;
	}
	p->reaped = true;
	unlink_process(p);
	forward_output(p);
	uv_timer_start(&p->patience, on_patience, LAST_WORDS_MS, 0);
	report_exit_if_complete(p);
}

static void on_exit_event(uv_poll_t *poll, int status, int events)
{
	struct wrk_process *p = poll->data;

	(void)events;
	if (status < 0)
		return;
	uv_poll_stop(poll);
	end_strays(&p->patience);
}

static void on_output_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
	struct wrk_process *p = handle->data;

	(void)suggested;
	*out = uv_buf_init(p->buffer, sizeof(p->buffer));
}

static void on_output(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
	struct wrk_process *p = stream->data;

	(void)buffer;
	if (count > 0) {
		p->output_bytes = (size_t)count;
		forward_output(p);
	}
	if (count >= 0)
		return;
	p->output_open = false;
	uv_read_stop(stream);
	report_exit_if_complete(p);
}

static void on_stall(uv_timer_t *timer)
{
	forward_output(timer->data);
}

static void forward_output(struct wrk_process *p)
{
	int64_t now_ns = fragi_now_ns();
	bool was_stalled = p->stalled_since_ns != 0,
	     may_wait = !p->reaped && (!was_stalled || now_ns - p->stalled_since_ns < STALL_NS);
	size_t taken = wrk_lines_feed(&p->lines, p->buffer, p->output_bytes, may_wait);

	p->output_bytes -= taken;
	memmove(p->buffer, p->buffer + taken, p->output_bytes);
	pass_lines(p);
	if (wrk_lines_wait(&p->lines)) {
		if (!was_stalled || taken > 0)
			p->stalled_since_ns = now_ns;
		uv_read_stop((uv_stream_t *)&p->output);
		uv_timer_start(&p->stall, on_stall, STALL_LOOK_MS, 0);
		return;
	}
	p->stalled_since_ns = 0;
	if (was_stalled && p->output_open)
		uv_read_start((uv_stream_t *)&p->output, on_output_alloc, on_output);
}

static void on_message(struct fw_connection *connection, struct fw_message *message, void *arg)
{
	struct wrk_process *p = arg;

	if (message->kind == FW_HOST_PREPARED && message->prepared.ok && !p->exit_reported &&
	    !p->abandoned) {
		/* The last moment at which nothing runs yet that could not be accounted for. */
		int r = wrk_page_read(&p->page, &(struct fw_host_stats){0});
		char sentence[128];

		if (r < 0 && r != -ENOENT) {
			fragi_sentence(sentence, sizeof(sentence), "its ledger cannot be read: %s",
				       frag_strerror(r));
			fw_message_free(message);
			fw_connection_fail(connection, r, sentence);
			return;
		}
	}
	if (message->kind == FW_HOST_TAPPED)
		wrk_traced_note(&p->traced, message);
	if (p->exit_reported || p->abandoned)
		fw_message_free(message);
	else
		p->ops->message(p->arg, p->host, message);
}

static void on_connection_closed(struct fw_connection *connection, int reason, const char *sentence,
				 void *arg)
{
	struct wrk_process *p = arg;

	/* A socket that is closed with something unread in it is reset. */
	bool is_theirs = reason == 0 || reason == -ECONNRESET;

	(void)connection;
	p->connection = NULL;
	if (!p->exit_reported && !p->abandoned)
		p->ops->connection_lost(
			p->arg, p->host,
			is_theirs ? "something in its process closed its control socket" : sentence,
			!is_theirs);
	report_exit_if_complete(p);
	process_free_if_done(p);
}

static const struct fw_connection_ops connection_ops = {on_message, on_connection_closed};

static void init_handle(uv_handle_t *handle, struct wrk_process *p)
{
	handle->data = p;
	p->handles++;
}

/*
 * The loop's side of a process that runs; on failure what was made is closed by
 * wrk_process_abandon.
 */
static int process_attach(uv_loop_t *loop, struct wrk_process *p, int control_fd, int output_fd)
{
	int r;

	uv_timer_init(loop, &p->patience);
	init_handle((uv_handle_t *)&p->patience, p);
	uv_timer_init(loop, &p->stall);
	init_handle((uv_handle_t *)&p->stall, p);
	uv_pipe_init(loop, &p->output, 0);
	init_handle((uv_handle_t *)&p->output, p);
	r = uv_poll_init(loop, &p->exit, p->exit_fd);
	if (r == 0) {
		init_handle((uv_handle_t *)&p->exit, p);
		r = uv_pipe_open(&p->output, output_fd);
	} else {
		p->exit.type = UV_UNKNOWN_HANDLE;
	}
	if (r < 0) {
		close(control_fd);
		close(output_fd);
		return r;
	}
	p->output_open = true;
	r = fw_connection_create(loop, FW_STREAM_PIPE, &connection_ops, p, NULL, &p->connection);
	if (r < 0) {
		close(control_fd);
		return r;
	}
	r = uv_pipe_open((uv_pipe_t *)(void *)fw_connection_stream(p->connection), control_fd);
	if (r < 0) {
		close(control_fd);
		return r;
	}
	r = fw_connection_start(p->connection);
	if (r < 0)
		return r;
	fw_connection_admit(p->connection);
	r = uv_read_start((uv_stream_t *)&p->output, on_output_alloc, on_output);
	return r < 0 ? r : uv_poll_start(&p->exit, UV_READABLE, on_exit_event);
}

int wrk_process_start(uv_loop_t *loop, uint32_t host, const struct wrk_launch *launch,
		      const struct wrk_process_ops *ops, void *arg,
		      struct wrk_process **out_process, struct frag_err *err)
{
	struct wrk_process *p = fragi_calloc(1, sizeof(*p));
	int control[2], output[2], note[2], r;
	const char *call = "memfd_create";
	char **environment;

	if (p == NULL)
		return frag_err_set(err, -ENOMEM, "cannot start a host: out of memory");
	p->host = host;
	p->ops = ops;
	p->arg = arg;
	p->lines.line = on_line;
	p->lines.arg = p;
	p->lines.writer = &p->writer;
	p->lines.rate = launch->line_rate;
	p->child = launch->ops;
	p->exit_fd = p->group_fd = -1;
	r = wrk_writer_copy(&launch->writer, &p->arena, &p->writer);
	if (r == 0)
		r = wrk_page_init(&p->page);
	if (r < 0)
		goto err_page;
	call = "socketpair";
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0) {
		r = -errno;
		goto err_control;
	}
	call = "pipe2";
	if (pipe2(output, O_CLOEXEC) < 0) {
		r = -errno;
		goto err_output;
	}
	if (pipe2(note, O_CLOEXEC | O_NONBLOCK) < 0) {
		r = -errno;
		goto err_note;
	}
	p->note_fd = note[0];
	environment = wrk_strays_mark(p->mark, launch->environment);
	if (environment == NULL) {
		close(note[1]);
		r = -ENOMEM;
		goto err_start;
	}
	r = launch->ops->start(&(struct wrk_spawn){.program = launch->program,
						   .arguments = launch->arguments,
						   .main = launch->main,
						   .environment = environment,
						   .control_fd = control[1],
						   .ledger_fd = p->page.fd,
						   .note_fd = note[1],
						   .output_fd = output[1],
						   .saved_fd = launch->saved_fd,
						   .keeps_stdin = launch->keeps_stdin,
						   .confine = launch->confine},
			       &p->pid, &p->exit_fd, err);
	close(note[1]);
	fragi_free(environment);
	if (r < 0)
		goto err_start;
	close(control[1]);
	close(output[1]);
	if (launch->confine != NULL) {
		p->group_fd = launch->confine->group_fd;
		launch->confine->group_fd = -1;
	}
	p->next = processes;
	processes = p;
	r = process_attach(loop, p, control[0], output[0]);
	if (r < 0) {
		wrk_process_abandon(p);
		return frag_err_set(err, r, "cannot attach to fraghost %d: %s", (int)p->pid,
				    frag_strerror(r));
	}
	*out_process = p;
	return 0;

err_start:
	close(note[0]);
err_note:
	close(output[0]);
	close(output[1]);
err_output:
	close(control[0]);
	close(control[1]);
err_control:
	wrk_page_fini(&p->page);
err_page:
	fragi_arena_fini(&p->arena);
	fragi_free(p);
	return r == -ENOMEM ? frag_err_set(err, r, "cannot start a host: out of memory")
			    : wrk_spawn_refuse(err, r, "a host", call);
}

int wrk_process_pid(const struct wrk_process *p)
{
	return p->pid;
}

struct wrk_facts_past *wrk_process_facts(struct wrk_process *p)
{
	return &p->facts;
}

struct wrk_page *wrk_process_page(struct wrk_process *p)
{
	return &p->page;
}

int wrk_process_exit_fd(const struct wrk_process *p)
{
	return p->exit_fd;
}

uint32_t wrk_process_host(const struct wrk_process *p)
{
	return p->host;
}

void wrk_process_send(struct wrk_process *p, const struct fw_message *message)
{
	struct fw_message copy = *message;
	char sentence[128];
	uint8_t *frame;
	size_t size;
	int r;

	if (p->connection == NULL)
		return;
	copy.seq = ++p->seq;
	copy.reply_to = 0;
	r = fw_encode(&copy, &frame, &size);
	if (r == 0) {
		(void)fw_connection_send(p->connection, frame, size);
		return;
	}
	fragi_sentence(sentence, sizeof(sentence), "%s cannot be sent to it: %s",
		       fw_kind_name(message->kind), frag_strerror(r));
	log_error(NULL, "fraghost %d: %s", (int)p->pid, sentence);
	if (message->kind != FW_BEAT) /* it would wait for it */
		fw_connection_fail(p->connection, r, sentence);
}

void wrk_process_signal(struct wrk_process *p, int number)
{
	if (!p->reaped)
		p->child->signal(p->pid, number);
}

bool wrk_process_sample(struct wrk_process *p, struct fw_host_stats *out_stats)
{
	int r = wrk_page_read(&p->page, out_stats);

	wrk_lines_catch_up(&p->lines);
	if (r < 0 && r != -ENOENT && !p->stats_refused) {
		p->stats_refused = true;
		log_error(NULL, "the ledger of fraghost %d cannot be read: %s", (int)p->pid,
			  frag_strerror(r));
	}
	return r == 0;
}

void wrk_process_abandon(struct wrk_process *p)
{
	p->abandoned = true;
	if (!p->reaped) {
		p->child->signal(p->pid, SIGKILL);
		(void)p->child->reap(p->pid, &p->status, &p->signal, p->core_file,
				     sizeof(p->core_file));
	}
	close_all(p);
}
