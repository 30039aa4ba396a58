// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/sentence.h>
#include <run/state.h>

/*
 * Events go from the schedulers' and the transport's threads to the control thread, through a list.
 */

void fragi_run_nudge(struct fragi_run *run)
{
	const uint64_t one = 1;
	ssize_t n = write(run->event_fd, &one, sizeof(one));

	(void)n; /* full means readable */
}

/* Under the lock. */
static struct fragi_run_queued *reserve_take(struct fragi_run *run)
{
	for (size_t i = 0; i < FRAGI_RUN_RESERVE; i++) {
		struct fragi_run_queued *queued = &run->reserve[i];

		if (queued->used)
			continue;
		*queued = (struct fragi_run_queued){.reserved = true, .used = true};
		return queued;
	}
	return NULL;
}

/* Under the lock. */
static void queued_free(struct fragi_run_queued *queued)
{
	if (queued->reserved)
		queued->used = false;
	else
		fragi_free(queued);
}

void fragi_run_report_event(struct fragi_run *run, const struct fragi_run_event *event)
{
	struct fragi_run_queued *queued = fragi_calloc(1, sizeof(*queued));

	pthread_mutex_lock(&run->lock);
	if (queued == NULL)
		queued = reserve_take(run);
	if (queued != NULL) {
		queued->event = *event;
		*run->last = queued;
		run->last = &queued->next;
	}
	pthread_mutex_unlock(&run->lock);
	fragi_run_nudge(run);
}

void fragi_run_report_failure(struct fragi_run *run, enum fragi_failure failure, const char *op,
			      const char *sentence)
{
	struct fragi_run_event event = {.kind = FRAGI_RUN_FAILED, .failure = failure};

	snprintf(event.op, sizeof(event.op), "%s", op != NULL ? op : "");
	fragi_sentence(event.sentence, sizeof(event.sentence), "%s", sentence);
	fragi_run_report_event(run, &event);
}

void fragi_run_report(struct fragi_run *run, enum fragi_run_event_kind kind)
{
	fragi_run_report_event(run, &(struct fragi_run_event){.kind = kind});
}

int fragi_run_fd(const struct fragi_run *run)
{
	return run->fd;
}

int fragi_run_next(struct fragi_run *run, struct fragi_run_event *out_event)
{
	struct fragi_run_queued *queued;
	uint64_t count;
	bool more;

	(void)!read(run->event_fd, &count, sizeof(count));
	(void)!read(run->timer_fd, &count, sizeof(count));
	fragi_run_watch(run);
	pthread_mutex_lock(&run->lock);
	queued = run->first;
	if (queued != NULL) {
		run->first = queued->next;
		if (run->first == NULL)
			run->last = &run->first;
		*out_event = queued->event;
		queued_free(queued);
	}
	more = run->first != NULL;
	pthread_mutex_unlock(&run->lock);
	if (more)
		fragi_run_nudge(run);
	return queued != NULL;
}
