/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_CRASH_NOTE_H
#define FRAGI_BASE_CRASH_NOTE_H

#include <stdint.h>

#include <base/call.h>

/*
 * What a host that crashes leaves in a pipe for its workerd: which callback the thread was in that
 * crashed. The ledger knows that too, but not before the application is composed nor after its
 * schedulers are gone, and not which of several callbacks it was.
 */
#define FRAGI_CRASH_CAUSE_MAX 320

struct fragi_crash_note {
	int64_t pid;   /* of the process that wrote it: a child of the host may crash too */
	uint64_t tick; /* its number, in compute */
	char op[2 * FRAG_NAME_MAX + 2]; /* "fragment1.detect"; empty: outside of any operator */
	uint32_t callback;              /* enum fragi_call_kind */
	/* "UCX gave up at ...": why it ended itself, whatever the callback did; empty: it crashed */
	char cause[FRAGI_CRASH_CAUSE_MAX];
};

#endif
