/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run in this process. The main thread is the control thread: it waits for the run's events and
 * for signals, and shows progress. When things go well: prepare, wire (nobody), start, events until
 * DONE, destroy, summary. What goes wrong before the start is printed and ends it; a failure of an
 * operator halts the run; a callback that never returns cannot be waited for: after a grace the
 * summary is printed and the process ends as it is.
 */
#define _GNU_SOURCE
#define LOG_TOPIC "run"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/log.h>
#include <base/stamp.h>
#include <base/units.h>
#include <fragctl/account.h>
#include <fragctl/run.h>
#include <run/console.h>
#include <run/crash.h>

#define GRACE_NS INT64_C(1000000000) /* for callbacks under way, once the run is halted */
#define PROGRESS_TTY_NS INT64_C(250000000)
#define PROGRESS_NS INT64_C(1000000000)

static volatile sig_atomic_t running; /* before it runs, a signal ends the process */
static int signal_fd = -1;

static void on_signal(int number)
{
	uint64_t one = 1;
	int saved = errno;

	if (!running)
		_exit(128 + number);
	(void)!write(signal_fd, &one, sizeof(one));
	errno = saved;
}

struct here {
	struct ctl_run_options *options;
	struct fragi_registry *registry;
	struct fragi_run *run;
	struct ctl_account account;
	int ledger_fd;
	uint64_t signals;
	int64_t halted_ns; /* 0: not halted */
	bool done, failed, stopped;
	int exit_code;
	char reason[1024];
	int64_t progress_ns; /* when the next progress line is due */
	bool is_tty, progress_shown;
};

static int prepare_process(struct here *here)
{
	struct sigaction action;

	signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	here->ledger_fd = memfd_create("frag-ledger", MFD_CLOEXEC);
	if (signal_fd < 0 || here->ledger_fd < 0)
		return -errno;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	action.sa_flags = SA_RESTART;
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	here->is_tty = isatty(STDERR_FILENO) != 0;
	fragi_crash_init("fragctl");
	fragi_crash_guard_exit();
	return fragi_console_begin();
}

static void begin_end(struct here *here)
{
	if (here->account.end_begun_ns == 0)
		here->account.end_begun_ns = fragi_now_ns();
}

static void halt(struct here *here)
{
	begin_end(here);
	if (here->halted_ns == 0)
		here->halted_ns = fragi_now_ns();
	fragi_run_halt(here->run);
}

static void fail(struct here *here, int exit_code, const char *sentence)
{
	if (here->failed)
		return;
	here->failed = true;
	here->exit_code = exit_code;
	snprintf(here->reason, sizeof(here->reason), "%s", sentence);
}

/*
 * Everything up to the start. Returns an exit code; errors are printed and the first is the reason.
 */
static int prepare(struct here *here)
{
	const struct fragi_run_config config = {
		.spec = here->options->graph.spec,
		.registry = here->registry,
		.ledger_fd = here->ledger_fd,
		.standalone = true,
		.epoch = 1,
	};
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_diag diag = {0};
	char line[1400];
	int r = fragi_run_create(&config, &here->run), exit_code;

	if (r == 0)
		r = fragi_run_prepare(here->run, &diag);
	ctl_diag_print(&diag);
	exit_code = ctl_exit_of(r);
	if (r < 0)
		fail(here, exit_code,
		     diag.count > 0 ? fragi_err_line(&diag.items[0], line, sizeof(line))
				    : frag_strerror(r));
	if (r < 0 && diag.count == 0)
		ctl_fail(exit_code, "cannot prepare %s (%s)", here->options->graph.path,
			 frag_strerror(r));
	fragi_diag_fini(&diag);
	if (r < 0)
		return exit_code;
	r = ctl_account_open(&here->account, here->run, here->ledger_fd);
	if (r == 0)
		r = fragi_run_wire(here->run, NULL, 0, NULL, 0, &err);
	if (r < 0) {
		fail(here, CTL_FAILED, err.text[0] != '\0' ? err.text : frag_strerror(r));
		return ctl_fail(CTL_FAILED, "%s", here->reason);
	}
	return CTL_OK;
}

static void take_signals(struct here *here)
{
	uint64_t n = 0;

	if (read(signal_fd, &n, sizeof(n)) != sizeof(n))
		return;
	here->signals += n;
	begin_end(here);
	here->stopped = true;
	if (here->signals == 1 && here->halted_ns == 0) {
		log_info(here->options->graph.spec->application, "stopping; again: at once");
		fragi_run_drain(here->run);
		return;
	}
	halt(here);
}

static void take_event(struct here *here, const struct fragi_run_event *event)
{
	switch (event->kind) {
	case FRAGI_RUN_DONE:
		begin_end(here);
		here->done = true;
		break;
	case FRAGI_RUN_FAILED:
		fail(here, event->exit_code != 0 ? event->exit_code : CTL_FAILED, event->sentence);
		log_error(here->options->graph.spec->application, "%s", event->sentence);
		halt(here);
		break;
	case FRAGI_RUN_STOPPED:
		begin_end(here);
		break;
	default:
		break;
	}
}

/* One updating line on a terminal, a line a second without. */
static void show_progress(struct here *here, int64_t now_ns)
{
	uint64_t sent, delivered;
	char text[32];

	if (here->options->verbosity < 0 || now_ns < here->progress_ns)
		return;
	here->progress_ns = now_ns + (here->is_tty ? PROGRESS_TTY_NS : PROGRESS_NS);
	ctl_account_totals(&here->account, &sent, &delivered);
	fprintf(stderr, "%s%s: %s, %llu messages sent, %llu delivered%s",
		here->is_tty ? "\033[K" : "", here->options->graph.spec->application,
		fragi_format_duration(now_ns - here->account.started_ns, text, sizeof(text)),
		(unsigned long long)sent, (unsigned long long)delivered,
		here->is_tty ? "\r" : "\n");
	fflush(stderr);
	here->progress_shown = true;
}

static void clear_progress(struct here *here)
{
	if (here->progress_shown && here->is_tty) {
		fputs("\033[K", stderr);
		fflush(stderr);
	}
	here->progress_shown = false;
}

/* Until the run is done, or cannot be waited for. */
static void watch(struct here *here)
{
	struct pollfd fds[] = {{.fd = fragi_run_fd(here->run), .events = POLLIN},
			       {.fd = signal_fd, .events = POLLIN}};
	struct fragi_run_event event;
	int64_t now_ns;

	while (!here->done) {
		(void)poll(fds, FRAG_COUNT_OF(fds), 100);
		take_signals(here);
		while (fragi_run_next(here->run, &event) == 1)
			take_event(here, &event);
		now_ns = fragi_now_ns();
		if (!here->done)
			show_progress(here, now_ns);
		if (!here->done && here->halted_ns > 0 && now_ns - here->halted_ns > GRACE_NS)
			break;
	}
	clear_progress(here);
}

static int start(struct here *here)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct timespec now;
	int r;

	clock_gettime(CLOCK_REALTIME, &now);
	here->account.started_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	here->account.started_ns = fragi_now_ns();
	here->progress_ns = here->account.started_ns + PROGRESS_NS;
	fragi_crash_guard_exit(); /* before the exit handlers of what was loaded */
	running = 1;
	r = fragi_run_start(here->run, &err);
	if (r < 0) {
		fail(here, CTL_FAILED, err.text[0] != '\0' ? err.text : frag_strerror(r));
		return ctl_fail(CTL_FAILED, "%s", here->reason);
	}
	return CTL_OK;
}

/* The summary, wherever it is wanted. Returns the exit code of the whole. */
static int conclude(struct here *here)
{
	const struct ctl_run_options *options = here->options;
	struct fragi_summary summary = {
		.application = options->graph.spec->application,
		.result = here->failed    ? FRAGI_SUMMARY_FAILED
			  : here->stopped ? FRAGI_SUMMARY_STOPPED
					  : FRAGI_SUMMARY_DONE,
		.reason = here->failed ? here->reason : NULL,
		.exit_code = here->failed ? here->exit_code : CTL_OK,
	};
	struct frag_err err = FRAG_ERR_INIT;
	int exit_code = summary.exit_code, r = 0;

	if (here->account.ledger.head != NULL)
		ctl_account_read(&here->account, &summary);
	if (options->summary != NULL && fragi_summary_write(&summary, options->summary, &err) < 0) {
		ctl_fail(CTL_MISSING, "%s", err.text);
		exit_code = exit_code != CTL_OK ? exit_code : CTL_MISSING;
	}
	if (options->json)
		r = fragi_summary_print_json(&summary, stdout);
	else if (here->account.ledger.head != NULL)
		r = fragi_summary_print_table(&summary, stdout);
	if (fflush(stdout) != 0 && r == 0)
		r = -errno;
	if (r < 0) {
		ctl_fail(CTL_MISSING, "cannot write the summary to stdout: %s", frag_strerror(r));
		exit_code = exit_code != CTL_OK ? exit_code : CTL_MISSING;
	}
	return exit_code;
}

int ctl_run_here(struct ctl_run_options *options)
{
	struct here here = {.options = options, .ledger_fd = -1};
	int r = prepare_process(&here), exit_code;

	if (r < 0) {
		fragi_crash_orderly();
		return ctl_fail(CTL_FAILED, "cannot start (%s)", frag_strerror(r));
	}
	exit_code = ctl_graph_registry(&options->graph, &here.registry);
	if (exit_code == CTL_OK)
		exit_code = prepare(&here);
	else
		fail(&here, exit_code, "cannot look for libraries");
	if (exit_code == CTL_OK)
		exit_code = start(&here);
	if (exit_code == CTL_OK) {
		watch(&here);
		if (!here.done) {
			/* A callback does not return: nothing that it uses can be taken away. */
			fragi_console_end();
			exit_code = conclude(&here);
			_exit(exit_code);
		}
	}
	fragi_run_destroy(here.run);
	fragi_registry_destroy(here.registry);
	fragi_console_end();
	exit_code = conclude(&here);
	ctl_account_close(&here.account);
	close(here.ledger_fd);
	close(signal_fd);
	fragi_crash_orderly();
	return exit_code;
}
