// SPDX-License-Identifier: Apache-2.0
#include <fragctl/trace.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <frag/draft.h>
#include <fragctl/service.h>

/*
 * `fragctl trace`: asks the driver for what all hosts of an application do, for a while, and writes
 * it into one file (docs/TRACE.md). An interrupt ends it early; what has come is written. `fragctl
 * run --trace` does the same in a child process, from the start of the application to its end.
 */
#define FOR_DEFAULT_NS INT64_C(5000000000)
#define FOR_MAX_NS INT64_C(3600000000000)

struct tracing {
	struct ctl_driver driver;
	struct ctl_trace *trace;
	struct ctl_trace_wish wish;
	uint64_t seq;
	uv_timer_t timer;
	uv_signal_t interrupt;
	bool is_over, has_ended, has_failed;
};

static void on_time(uv_timer_t *timer)
{
	((struct tracing *)timer->data)->is_over = true;
	uv_stop(timer->loop); /* which waits for something else after its timers, for ever */
}

static void on_interrupt(uv_signal_t *interrupt, int number)
{
	(void)number;
	((struct tracing *)interrupt->data)->is_over = true;
}

static int ask(struct tracing *tracing, const char *application)
{
	struct fw_message request = {.kind = FW_TAP}, *answer;
	int code;

	request.tap = (struct fw_tap){.name = application, .flow = "", .traces = true};
	code = ctl_driver_ask(&tracing->driver, &request, &answer);
	if (code != CTL_OK)
		return code;
	tracing->seq = request.seq;
	if (answer->kind != FW_ANSWER)
		code = ctl_fail(CTL_FAILED, "the driver answered with %s; install the same version",
				fw_kind_name(answer->kind));
	else if (answer->answer.failure.code != FRAGI_FAILURE_NONE)
		code = ctl_service_show_failure(&answer->answer.failure, false);
	fw_message_free(answer);
	return code;
}

/* Waits for a message until the time is over. Returns CTL_OK, with NULL then. */
static int next(struct tracing *tracing, struct fw_message **out_message)
{
	struct ctl_driver *driver = &tracing->driver;

	*out_message = NULL;
	while (!tracing->is_over && driver->first == NULL && driver->connection != NULL)
		uv_run(&driver->loop, UV_RUN_ONCE);
	return tracing->is_over ? CTL_OK : ctl_driver_next(driver, out_message);
}

static int take(struct tracing *tracing, const struct fw_message *message)
{
	int r;

	if (message->kind == FW_ANSWER && message->reply_to == tracing->seq) {
		tracing->is_over = tracing->has_ended = true; /* the application has ended */
		tracing->has_failed |=
			message->answer.failure.code != FRAGI_FAILURE_APPLICATION_UNKNOWN;
	}
	if (message->kind != FW_TAPPED || message->reply_to != tracing->seq)
		return CTL_OK;
	r = ctl_trace_take(tracing->trace, message->tapped.passed, message->tapped.size);
	if (r == -ENOMEM)
		return ctl_fail(CTL_FAILED, "no memory is left for the trace");
	if (tracing->wish.on_failure && ctl_trace_has_crash(tracing->trace))
		tracing->is_over = tracing->has_failed = true;
	return r == 0 ? CTL_OK
		      : ctl_fail_with(
				FRAGI_FAILURE_PROTOCOL,
				"a host sent what is no part of a trace; install the same version");
}

static int collect(struct tracing *tracing)
{
	struct fw_message *message;
	int code = CTL_OK;

	uv_timer_init(&tracing->driver.loop, &tracing->timer);
	uv_signal_init(&tracing->driver.loop, &tracing->interrupt);
	tracing->timer.data = tracing->interrupt.data = tracing;
	if (tracing->wish.for_ns > 0)
		uv_timer_start(&tracing->timer, on_time, (uint64_t)tracing->wish.for_ns / 1000000,
			       0);
	uv_signal_start(&tracing->interrupt, on_interrupt, SIGINT);
	while (code == CTL_OK && !tracing->is_over) {
		code = next(tracing, &message);
		if (code == CTL_OK && message != NULL)
			code = take(tracing, message);
		fw_message_free(message);
	}
	uv_close((uv_handle_t *)&tracing->timer, NULL);
	uv_close((uv_handle_t *)&tracing->interrupt, NULL);
	return code;
}

static void report(const struct tracing *tracing)
{
	struct ctl_trace_sums sums;
	char error[24];

	ctl_trace_sums(tracing->trace, &sums);
	fragi_format_duration(sums.error_ns, error, sizeof(error));
	/* the summary of a run has stdout for itself */
	fprintf(tracing->wish.is_of_run ? stderr : stdout,
		"%s: %" PRIu64 " ticks and %" PRIu64 " messages of %" PRIu32 " host%s, %s%s\n",
		tracing->wish.file, sums.ticks, sums.messages, sums.hosts,
		sums.hosts == 1 ? "" : "s", sums.error_ns == 0 ? "one clock" : "clocks to within ",
		sums.error_ns == 0 ? "" : error);
	if (tracing->has_ended && !tracing->wish.is_of_run)
		ctl_complain("the application ended meanwhile: the trace ends with it");
	if (sums.lost_records > 0 || sums.lost_chunks > 0)
		ctl_complain(
			"parts are missing: %" PRIu64
			" records were overwritten before their host sent them, and %" PRIu64
			" chunks were dropped because the connection had no room; trace for a shorter time, or a less busy application",
			sums.lost_records, sums.lost_chunks);
	if (sums.left_records > 0)
		ctl_complain(
			"the end is missing: %" PRIu64
			" records of hosts that ended were dropped because the connection had no room",
			sums.left_records);
	if (tracing->has_ended && sums.open_hosts > 0)
		ctl_complain("the end is missing of %" PRIu32
			     " host%s: what they did last was dropped, or went with their worker",
			     sums.open_hosts, sums.open_hosts == 1 ? "" : "s");
	if (sums.cut > 0)
		ctl_complain("the trace has the last %" PRIu64 " ticks: the %" PRIu64
			     " before them are left out; trace for a shorter time",
			     sums.ticks, sums.cut);
	if (sums.unmatched > 0)
		ctl_complain("%" PRIu64 " messages have no arrow: there are too many",
			     sums.unmatched);
	if (sums.backwards > 0)
		ctl_complain(
			"%" PRIu64
			" messages have no arrow: by the clocks they came before they were sent",
			sums.backwards);
	if (sums.unsure_hosts > 0)
		ctl_complain("the clocks of %" PRIu32
			     " hosts were not compared: they are placed by their system clocks",
			     sums.unsure_hosts);
}

static int cannot_write(const struct tracing *tracing, int r)
{
	return ctl_fail(
		CTL_MISSING,
		"cannot write %s: %s; nothing of the trace is kept, and no older file of that name was changed",
		tracing->wish.file, frag_strerror(r));
}

/* Takes the draft. */
static int write_file(struct tracing *tracing, struct frag_draft *draft)
{
	int r;

	if (tracing->wish.on_failure && !tracing->has_failed) {
		frag_draft_destroy(draft);
		ctl_complain("nothing has failed: no trace is kept");
		return CTL_OK;
	}
	r = ctl_trace_join(tracing->trace);
	if (r < 0) {
		frag_draft_destroy(draft);
		return ctl_fail(CTL_FAILED, "no memory is left for the trace");
	}
	ctl_trace_write(tracing->trace, frag_draft_stream(draft));
	r = frag_draft_commit(draft);
	if (r < 0)
		return cannot_write(tracing, r);
	report(tracing);
	return CTL_OK;
}

/* It is under way: who waits for that goes on. */
static void announce(const struct tracing *tracing)
{
	const struct ctl_trace_wish *wish = &tracing->wish;
	char duration[24];
	ssize_t n;

	if (wish->is_of_run) {
		n = write(wish->ready_fd, "", 1);
		(void)n; /* a run that has ended waits no more */
		close(wish->ready_fd);
		return;
	}
	if (wish->is_quiet)
		return;
	fragi_format_duration(wish->for_ns, duration, sizeof(duration));
	if (wish->for_ns > 0)
		ctl_complain("traces %s for %s; an interrupt ends it earlier", wish->application,
			     duration);
	else
		ctl_complain("traces %s until something fails; an interrupt ends it earlier",
			     wish->application);
}

static int trace(struct tracing *tracing)
{
	struct frag_draft *draft;
	int code, written, r;

	tracing->trace = ctl_trace_create();
	if (tracing->trace == NULL)
		return ctl_fail(CTL_FAILED, "no memory is left for the trace");
	r = frag_draft_create(tracing->wish.file, &draft);
	if (r < 0)
		return cannot_write(tracing, r);
	code = ctl_driver_open_any(&tracing->driver);
	if (code == CTL_OK)
		code = ask(tracing, tracing->wish.application);
	if (code != CTL_OK) {
		frag_draft_destroy(draft);
		return code;
	}
	announce(tracing);
	/* a driver that is lost takes nothing of what has come */
	code = collect(tracing);
	tracing->has_failed |= code != CTL_OK;
	written = write_file(tracing, draft);
	return code != CTL_OK ? code : written;
}

int ctl_trace_run(const struct ctl_trace_wish *wish, const char *address)
{
	struct tracing tracing = {.wish = *wish, .driver.address_text = address};
	int code = trace(&tracing);

	ctl_trace_destroy(tracing.trace);
	ctl_driver_close(&tracing.driver);
	return code;
}

/* Reads --for. Returns CTL_OK or CTL_USAGE, complained. */
static int read_for(struct ctl_trace_wish *wish, const char *text)
{
	wish->for_ns = wish->on_failure ? 0 : FOR_DEFAULT_NS;
	if (text != NULL &&
	    (fragi_duration_lacks_unit(text) || fragi_parse_time(text, &wish->for_ns) < 0 ||
	     wish->for_ns < 1000000 || wish->for_ns > FOR_MAX_NS))
		return ctl_fail(CTL_USAGE,
				"--for \"%.40s\" is not a time between 1ms and 1h; give it as 5s",
				text);
	return CTL_OK;
}

int ctl_trace(int argc, char **argv)
{
	struct tracing tracing = {.wish.file = "trace.pftrace"};
	struct ctl_trace_wish *wish = &tracing.wish;
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *duration = NULL;
	const struct fragi_flag table[] = {
		{.name = "for",
		 .value = "TIME",
		 .no_env = true,
		 .help = "for how long, up to 1h; default 5s, and with --on-failure until then; an interrupt ends it earlier",
		 .text = &duration},
		{.name = "output",
		 .letter = 'o',
		 .value = "FILE",
		 .no_env = true,
		 .help = "the trace, for https://ui.perfetto.dev; default trace.pftrace",
		 .text = &wish->file},
		{.name = "on-failure",
		 .no_env = true,
		 .help = "goes on until the application fails or a host ends by itself, and writes the last 2 million ticks before; nothing if neither happens",
		 .on = &wish->on_failure},
		CTL_DRIVER_FLAGS(tracing.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl trace",
		.usage = "NAME [--for TIME] [-o FILE] [flags]",
		.headline =
			"Writes what all hosts of an application do for a while into one file, which Perfetto opens: ticks of operators on their threads, messages as arrows between them, and how many wait in each queue. Times of other nodes are placed on one clock (docs/TIME.md). The application goes on as before; what cannot be sent in time is left out and counted.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		wish->is_quiet = common.quiet > 0;
		code = ctl_one_name(&operands, flags.program, false, &wish->application);
		if (code == CTL_OK)
			code = read_for(wish, duration);
		if (code == CTL_OK)
			code = trace(&tracing);
	}
	ctl_trace_destroy(tracing.trace);
	ctl_driver_close(&tracing.driver);
	fragi_texts_fini(&operands);
	return code;
}
