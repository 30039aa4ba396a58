// SPDX-License-Identifier: Apache-2.0
#include <base/realtime.h>
#include <base/units.h>

#define PRIORITY_MAX 99
#define RUNTIME_MIN_NS 1024 /* the kernel counts in units of this */

static const char *policy_name(enum fragi_sched_policy policy)
{
	static const char *const names[] = {
		[FRAGI_SCHED_FIFO] = "fifo",
		[FRAGI_SCHED_RR] = "rr",
		[FRAGI_SCHED_DEADLINE] = "deadline",
		[FRAGI_SCHED_OTHER] = "other",
	};

	return policy > FRAGI_SCHED_NONE && policy < FRAGI_SCHED_OTHER ? names[policy] : "other";
}

const char *fragi_realtime_text(const struct fragi_realtime *realtime, char *out, size_t size)
{
	char runtime[32], deadline[32], period[32];

	if (realtime->policy == FRAGI_SCHED_DEADLINE)
		snprintf(out, size, "SCHED_DEADLINE, %s within %s of every %s",
			 fragi_format_duration((int64_t)realtime->runtime_ns, runtime,
					       sizeof(runtime)),
			 fragi_format_duration((int64_t)realtime->deadline_ns, deadline,
					       sizeof(deadline)),
			 fragi_format_duration((int64_t)realtime->period_ns, period,
					       sizeof(period)));
	else if (realtime->policy == FRAGI_SCHED_FIFO || realtime->policy == FRAGI_SCHED_RR)
		snprintf(out, size, "SCHED_%s, priority %u",
			 realtime->policy == FRAGI_SCHED_FIFO ? "FIFO" : "RR", realtime->priority);
	else
		snprintf(out, size, "SCHED_OTHER");
	return out;
}

void fragi_realtime_json(const struct fragi_realtime *realtime, FILE *out)
{
	fprintf(out, "{\"policy\": \"%s\"", policy_name(realtime->policy));
	if (realtime->policy == FRAGI_SCHED_FIFO || realtime->policy == FRAGI_SCHED_RR)
		fprintf(out, ", \"priority\": %u", realtime->priority);
	if (realtime->policy == FRAGI_SCHED_DEADLINE)
		fprintf(out, ", \"runtime_ns\": %llu, \"deadline_ns\": %llu, \"period_ns\": %llu",
			(unsigned long long)realtime->runtime_ns,
			(unsigned long long)realtime->deadline_ns,
			(unsigned long long)realtime->period_ns);
	fputc('}', out);
}

static const char *flaw_of_deadline(const struct fragi_realtime *realtime)
{
	if (realtime->priority != 0)
		return "sched_policy deadline has no sched_priority; leave it out";
	if (realtime->runtime_ns == 0 || realtime->period_ns == 0)
		return "sched_policy deadline needs sched_runtime and sched_period, and may have sched_deadline";
	if (realtime->runtime_ns < RUNTIME_MIN_NS)
		return "sched_runtime is less than 1024 ns; give more";
	if (realtime->runtime_ns > realtime->deadline_ns ||
	    realtime->deadline_ns > realtime->period_ns)
		return "sched_runtime must not be longer than sched_deadline, nor that than sched_period";
	return NULL;
}

const char *fragi_realtime_flaw(const struct fragi_realtime *realtime)
{
	if (realtime->policy == FRAGI_SCHED_DEADLINE)
		return flaw_of_deadline(realtime);
	if (realtime->runtime_ns != 0 || realtime->deadline_ns != 0 || realtime->period_ns != 0)
		return "sched_runtime, sched_deadline and sched_period are for sched_policy deadline; leave them out";
	if (realtime->priority == 0 || realtime->priority > PRIORITY_MAX)
		return "sched_policy fifo and rr need sched_priority, 1 to 99";
	return NULL;
}
