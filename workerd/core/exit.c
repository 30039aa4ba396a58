// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/core/state.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/amounts.h>
#include <base/crash_note.h>
#include <workerd/core/host_exit.h>

#define PLACES_MAX 3
/* Shared memory is backed when it is written, so this is how a shortage of it shows. */
#define NO_PAGE                                                                                    \
	"; the kernel had no page to put behind an address: memory is short under vm.overcommit_memory=2, or a mapped file became shorter"

/* " in fragment1.detect, tick 17" for what was in a callback; empty when nothing was. */
static void exit_place(const struct wrk_host *host, const struct fw_host_stats *stats, char *out,
		       size_t size)
{
	size_t used = 0;
	int places = 0;

	out[0] = '\0';
	for (uint32_t i = 0; stats != NULL && i < stats->op_count && i < host->name_count; i++) {
		if (!stats->ops[i].running || ++places > PLACES_MAX)
			continue;
		used += (size_t)snprintf(out + used, size - used, "%s%s, tick %llu",
					 places == 1 ? " in " : " or ", host->names[i],
					 (unsigned long long)stats->ops[i].ticks);
	}
	if (places > PLACES_MAX)
		snprintf(out + used, size - used, " or %d more", places - PLACES_MAX);
}

/* Writes the place of a crash that the host noted itself. */
static void noted_place(const struct fragi_crash_note *note, char *out, size_t size)
{
	out[0] = '\0';
	if (note->cause[0] != '\0')
		return;
	if (note->op[0] == '\0')
		snprintf(out, size, " in a composer");
	else if (note->callback == FRAGI_CALL_COMPUTE)
		snprintf(out, size, " in %s, tick %llu", note->op, (unsigned long long)note->tick);
	else
		snprintf(out, size, " in %s of %s", fragi_call_name(note->callback), note->op);
}

/* The operator that was in a callback; NULL: none, or not known which. */
static const char *exit_op(const struct wrk_host *host, const struct fw_host_stats *stats)
{
	const char *found = NULL;

	for (uint32_t i = 0; stats != NULL && i < stats->op_count && i < host->name_count; i++) {
		if (!stats->ops[i].running)
			continue;
		if (found != NULL)
			return NULL;
		found = host->names[i];
	}
	return found;
}

bool wrk_exit_in_order(const struct wrk_host *host, const struct wrk_exited *exited)
{
	/* A host that is told to end before it can catch SIGTERM ends by that signal. */
	return host->ending &&
	       (exited->signal == SIGTERM || (exited->signal == 0 && exited->status == 0));
}

/* Whether it was this workerd that ended it, for the reason that it has noted. */
static bool ended_by_worker(const struct wrk_host *host, const struct wrk_exited *exited)
{
	if (host->why_failure == FRAGI_FAILURE_NONE)
		return false;
	return (exited->signal == SIGKILL && host->state == WRK_HOST_KILLED) ||
	       wrk_exit_in_order(host, exited) ||
	       (host->cut && exited->status == WRK_HOST_EXIT_LOST);
}

/* out_deed: what became of it, after its name. */
static enum fragi_failure exit_cause(const struct wrk_host *host, const struct wrk_exited *exited,
				     const char *place, struct wrk_actions *actions,
				     const char **out_deed)
{
	char limit[FRAGI_AMOUNT_TEXT];
	const char *abbreviation = sigabbrev_np(exited->signal);

	if (host->stop_requested && exited->signal == SIGKILL && host->state == WRK_HOST_KILLED &&
	    host->why_failure == FRAGI_FAILURE_NONE)
		return FRAGI_FAILURE_NONE;
	if (ended_by_worker(host, exited)) {
		*out_deed = wrk_text(actions, "was ended%s: %s", place, host->why);
		return host->why_failure;
	}
	if (exited->signal == SIGKILL && exited->memory_limit_bytes > 0) {
		*out_deed = wrk_text(
			actions,
			"was killed%s: it needed more than its memoryLimit of %s; raise the limit, or find out what takes the memory",
			place,
			fragi_amount_text(FRAGI_AMOUNT_MEMORY, (int64_t)exited->memory_limit_bytes,
					  limit));
		return FRAGI_FAILURE_HOST_OVER_LIMIT;
	}
	if (exited->signal == SIGKILL) {
		*out_deed = wrk_text(
			actions,
			"was killed%s: signal 9 (SIGKILL); if nobody did that on purpose, look for the out-of-memory killer in the kernel's log",
			place);
		return FRAGI_FAILURE_HOST_KILLED;
	}
	if (exited->signal == SIGABRT && exited->note != NULL && exited->note->cause[0] != '\0') {
		*out_deed = wrk_text(actions, "ended itself: %s%s%s", exited->note->cause,
				     exited->core_file != NULL ? "; " : "",
				     exited->core_file != NULL ? exited->core_file : "");
		return FRAGI_FAILURE_HOST_CRASHED;
	}
	if (wrk_exit_in_order(host, exited))
		return FRAGI_FAILURE_NONE;
	if (exited->signal != 0) {
		*out_deed = wrk_text(actions, "crashed%s: signal %d (SIG%s)%s%s%s", place,
				     exited->signal, abbreviation != NULL ? abbreviation : "?",
				     exited->signal == SIGBUS ? NO_PAGE : "",
				     exited->core_file != NULL ? "; " : "",
				     exited->core_file != NULL ? exited->core_file : "");
		return FRAGI_FAILURE_HOST_CRASHED;
	}
	if (exited->status == 0 && host->failed)
		return FRAGI_FAILURE_NONE;
	if (host->starts_until_ns != 0) { /* an interpreter that has said nothing */
		*out_deed = wrk_text(
			actions,
			"exited with status %d before Python had loaded frag; its lines say why: install the package frag for that Python, or name another one (FRAG_PYTHON, workerd --python)",
			exited->status);
		return FRAGI_FAILURE_HOST_EXITED;
	}
	*out_deed = wrk_text(
		actions, "exited with status %d%s%s", exited->status, place,
		exited->status == WRK_HOST_EXIT_LOST && exited->note == NULL
			? ": it had lost this worker; something in its process closed its control socket, or this worker was not heard in time"
			: "");
	return FRAGI_FAILURE_HOST_EXITED;
}

struct fw_failure wrk_exit_failure(const struct wrk_host *host, const struct wrk_exited *exited,
				   struct wrk_actions *actions)
{
	char place[PLACES_MAX * (2 * FRAG_NAME_MAX + 40)];
	struct fw_failure failure = {FRAGI_FAILURE_NONE, "", ""};
	const struct fragi_crash_note *note = exited->note;
	const char *deed = NULL, *op;

	if (note != NULL)
		noted_place(note, place, sizeof(place));
	else
		exit_place(host, exited->stats, place, sizeof(place));
	failure.code = exit_cause(host, exited, place, actions, &deed);
	if (failure.code == FRAGI_FAILURE_NONE)
		return failure;
	failure.sentence =
		wrk_text(actions, "fraghost %d%s%s %s", host->pid, place[0] == '\0' ? " of " : "",
			 place[0] == '\0' ? host->fragments : "", deed);
	if (note == NULL)
		op = exit_op(host, exited->stats);
	else
		op = note->cause[0] == '\0' && note->op[0] != '\0' ? note->op : NULL;
	if (op != NULL) /* the host is forgotten before the report leaves */
		failure.op = wrk_text(actions, "%s", op);
	return failure;
}

void wrk_exit_log(const struct wrk_core *core, const struct wrk_host *host,
		  const struct fw_failure *failure, struct wrk_actions *actions)
{
	bool killed = host->state == WRK_HOST_KILLED;

	if (core->stops > 0 && host->ended_here)
		wrk_log_of(actions, FRAGI_LOG_INFO, host,
			   "%s was ended: this worker was told to end", host->fragments);
	else if (failure->code != FRAGI_FAILURE_NONE)
		wrk_log_of(actions, core->stops > 0 ? FRAGI_LOG_INFO : FRAGI_LOG_ERROR, host, "%s",
			   failure->sentence);
	else if (killed || host->failed || host->end_reason != NULL)
		wrk_log_of(actions, FRAGI_LOG_INFO, host, "%s was ended by the driver%s%s",
			   host->fragments, host->end_reason != NULL ? ": " : "",
			   host->end_reason != NULL ? host->end_reason : "");
	else
		wrk_log_of(actions, FRAGI_LOG_INFO, host, "%s ended: %s", host->fragments,
			   host->done ? "done" : "stopped");
}

void wrk_exit_result(struct wrk_core *core, int exit_code)
{
	if (core->result == 0 && !core->decided)
		wrk_session_result(core, exit_code);
}

void wrk_exit_asked(struct wrk_core *core, struct wrk_host *host, const struct fw_message *message)
{
	const struct fw_host_stop *stop = &message->stop;
	bool has_reason = stop->reason != NULL && stop->reason[0] != '\0';

	host->stop_requested = true;
	if (has_reason && host->end_reason == NULL)
		host->end_reason = fragi_strdup(stop->reason);
	if (!stop->restarts && (has_reason || message->kind == FW_HOST_KILL)) {
		core->result = stop->exit_code & 255;
		core->decided = true;
	} else if (message->kind == FW_HOST_STOP) {
		wrk_exit_result(core, stop->exit_code);
	}
}

void wrk_host_forget(struct wrk_host *host)
{
	for (uint32_t i = 0; i < host->name_count; i++)
		fragi_free(host->names[i]);
	fragi_free(host->names);
	fragi_free(host->end_reason);
	fragi_free(host->application);
	memset(host, 0, sizeof(*host));
}
