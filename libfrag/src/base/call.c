// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include <base/call.h>
#include <base/stamp.h>

static _Thread_local struct fragi_call *record;

#define CALL_NAME(NAME, name) [FRAGI_CALL_##NAME] = #name,
static const char *const names[FRAGI_CALL_KINDS] = {"a callback", FRAGI_CALL_LIST(CALL_NAME)};

const char *fragi_call_name(enum fragi_call_kind kind)
{
	return names[(unsigned int)kind < FRAGI_CALL_KINDS ? kind : FRAGI_CALL_NONE];
}

void fragi_call_init(struct fragi_call *call)
{
	pthread_mutexattr_t attr;

	*call = (struct fragi_call){.since_ns = 0};
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&call->lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

void fragi_call_record(struct fragi_call *call)
{
	record = call;
}

void fragi_call_begin(const char *subject, enum fragi_call_kind kind, int64_t limit_ns)
{
	if (record == NULL)
		return;
	pthread_mutex_lock(&record->lock);
	snprintf(record->subject, sizeof(record->subject), "%s", subject);
	record->kind = kind;
	record->since_ns = fragi_now_ns();
	record->limit_ns = limit_ns;
	pthread_mutex_unlock(&record->lock);
}

void fragi_call_end(void)
{
	if (record == NULL)
		return;
	pthread_mutex_lock(&record->lock);
	record->since_ns = 0;
	pthread_mutex_unlock(&record->lock);
}

void fragi_call_remove_limit(void)
{
	if (record == NULL)
		return;
	pthread_mutex_lock(&record->lock);
	record->limit_ns = 0;
	pthread_mutex_unlock(&record->lock);
}

bool fragi_call_look(struct fragi_call *call, struct fragi_call_seen *out_seen)
{
	bool is_under_way;

	/* Whoever was killed while it held the lock was not in a call. */
	if (pthread_mutex_trylock(&call->lock) != 0)
		return false;
	is_under_way = call->since_ns != 0;
	if (is_under_way) {
		snprintf(out_seen->subject, sizeof(out_seen->subject), "%s", call->subject);
		out_seen->kind = call->kind;
		out_seen->since_ns = call->since_ns;
		out_seen->limit_ns = call->limit_ns;
	}
	pthread_mutex_unlock(&call->lock);
	return is_under_way;
}
