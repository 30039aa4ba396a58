/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <workerd/core/state.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define PLACES_MAX 3

/* " in fragment1.detect, tick 17" for what was in a callback; else " of fragment1". */
static void exit_place(const struct wrk_host *host, const struct fw_host_stats *stats, char *out, size_t size)
{
	size_t used = 0;
	int places = 0;

	snprintf(out, size, " of %s", host->fragments);
	for (uint32_t i = 0; stats != NULL && i < stats->op_count && i < host->name_count; i++) {
		int n;

		if (!stats->ops[i].running || ++places > PLACES_MAX)
			continue;
		n = snprintf(out + used, size - used, "%s%s, tick %llu", places == 1 ? " in " : " or ",
			     host->names[i], (unsigned long long)stats->ops[i].ticks);
		if (n > 0 && (size_t)n < size - used)
			used += (size_t)n;
	}
	if (places > PLACES_MAX)
		snprintf(out + used, size - used, " or %d more", places - PLACES_MAX);
}

const char *wrk_exit_sentence(const struct wrk_host *host, const struct wrk_exited *exited,
			      struct wrk_actions *actions)
{
	char place[PLACES_MAX * (2 * FRAG_NAME_MAX + 40)];
	const char *abbreviation = exited->signal > 0 ? sigabbrev_np(exited->signal) : NULL;

	exit_place(host, exited->stats, place, sizeof(place));
	if (host->told && exited->signal == SIGKILL)
		return "";
	if (host->why[0] != '\0' &&
	    (exited->signal == SIGKILL || (exited->signal == 0 && exited->status == 0)))
		return wrk_text(actions, "fraghost %d was ended%s: %s", host->pid, place, host->why);
	if (exited->signal == SIGKILL)
		return wrk_text(
			actions,
			"fraghost %d was killed%s: signal 9 (SIGKILL); if nobody did that on purpose, look "
			"for the out-of-memory killer in the kernel's log",
			host->pid, place);
	if (exited->signal != 0)
		return wrk_text(actions, "fraghost %d crashed%s: signal %d (SIG%s)%s%s", host->pid, place,
				exited->signal, abbreviation != NULL ? abbreviation : "?",
				exited->core_file != NULL ? "; " : "",
				exited->core_file != NULL ? exited->core_file : "");
	if (exited->status == 0 && (host->told || host->failed))
		return "";
	return wrk_text(actions, "fraghost %d exited with status %d%s", host->pid, exited->status, place);
}
