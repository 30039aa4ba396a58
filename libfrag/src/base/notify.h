/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_NOTIFY_H
#define FRAGI_BASE_NOTIFY_H

/* Whom to tell that something happened; fn is called on the thread where it happened and must not block. */
struct fragi_notify {
	void (*fn)(void *arg);
	void *arg;
};

#endif
