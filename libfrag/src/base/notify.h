/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_NOTIFY_H
#define FRAGI_BASE_NOTIFY_H

#include <stddef.h>

/*
 * A callback that reports an event (a message arrived, a queue has room). fn is called on the
 * thread where the event happened and must not block.
 */
struct fragi_notify {
	void (*fn)(void *arg); /* NULL: nothing is called */
	void *arg;
};

static inline void fragi_notify_call(const struct fragi_notify *notify)
{
	if (notify->fn != NULL)
		notify->fn(notify->arg);
}

#endif
