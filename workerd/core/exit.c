/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <workerd/core/state.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <workerd/spawn.h>

#define PLACES_MAX 3

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

/* What became of it, after its name; NULL when it ended as it was told to. */
static const char *exit_deed(const struct wrk_host *host, const struct wrk_exited *exited,
			     const char *place, struct wrk_actions *actions)
{
	const char *abbreviation = exited->signal > 0 ? sigabbrev_np(exited->signal) : NULL;

	if (host->told && exited->signal == SIGKILL && host->state == WRK_HOST_KILLED &&
	    host->why[0] == '\0')
		return NULL;
	if (host->why[0] != '\0' &&
	    ((exited->signal == SIGKILL && host->state == WRK_HOST_KILLED) ||
	     (host->ending && exited->signal == 0 && exited->status == 0) ||
	     (host->cut && exited->status == WRK_HOST_EXIT_LOST)))
		return wrk_text(actions, "was ended%s: %s", place, host->why);
	if (exited->signal == SIGKILL)
		return wrk_text(
			actions,
			"was killed%s: signal 9 (SIGKILL); if nobody did that on purpose, look for the out-of-memory killer in the kernel's log",
			place);
	if (exited->signal != 0)
		return wrk_text(actions, "crashed%s: signal %d (SIG%s)%s%s", place, exited->signal,
				abbreviation != NULL ? abbreviation : "?",
				exited->core_file != NULL ? "; " : "",
				exited->core_file != NULL ? exited->core_file : "");
	if (exited->status == 0 && (host->ending || host->failed))
		return NULL;
	return wrk_text(actions, "exited with status %d%s", exited->status, place);
}

const char *wrk_exit_sentence(const struct wrk_host *host, const struct wrk_exited *exited,
			      struct wrk_actions *actions)
{
	char place[PLACES_MAX * (2 * FRAG_NAME_MAX + 40)];
	const char *deed;

	exit_place(host, exited->stats, place, sizeof(place));
	deed = exit_deed(host, exited, place, actions);
	if (deed == NULL)
		return "";
	return wrk_text(actions, "fraghost %d%s%s %s", host->pid, place[0] == '\0' ? " of " : "",
			place[0] == '\0' ? host->fragments : "", deed);
}
