/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_NOTIFY_H
#define FRAGI_BASE_NOTIFY_H

#include <stddef.h>

/*
 * Whom to tell that something happened; fn is called on the thread where it happened and must not
 * block.
 */
struct fragi_notify {
	void (*fn)(void *arg); /* NULL: nobody */
	void *arg;
};

static inline void fragi_notify_tell(const struct fragi_notify *whom)
{
	if (whom->fn != NULL)
		whom->fn(whom->arg);
}

#endif
