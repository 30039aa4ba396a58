/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_RECORD_H
#define DRV_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A record of what a driver keeps on its disk. The core hands it out (DRV_DO_PERSIST) and takes it
 * back when it starts (drv_core_restore). Records apply in order. Texts and bytes are borrowed; a
 * member that a kind does not name is zero.
 */
enum drv_record_kind {
	/* epoch, run: a driver of this state has given no higher ones */
	DRV_RECORD_NUMBERS,
	DRV_RECORD_RUN,        /* a run of an application: all up to source_bytes */
	DRV_RECORD_SOURCE,     /* run, source: in place of the one before */
	DRV_RECORD_WANTED,     /* run, is_wanted */
	DRV_RECORD_END,        /* run has ended: is_wanted, ended_unix_ns, outcome */
	DRV_RECORD_SOURCELESS, /* run: its source is forgotten */
	DRV_RECORD_FORGOTTEN,  /* run: all of it */
	DRV_RECORD_NOTICE, /* from run on, but for epoch; those before first_notice are forgotten */
	/*
	 * run, text: the workers of its hosts, by number, each with a newline; after that of a host
	 * that is being moved, after a tab, that of its next process, or of the one before
	 */
	DRV_RECORD_PLACED,
	DRV_RECORD_DRAINED,   /* name: a worker, which is given no fragments */
	DRV_RECORD_UNDRAINED, /* name: a worker, which is given some again */
	DRV_RECORD_KINDS,
	/* bytes: so much space is held for later records, or not any more; forgotten at a start */
	DRV_RECORD_RESERVED = DRV_RECORD_KINDS,
	DRV_RECORD_RELEASED,
};

struct drv_record {
	enum drv_record_kind kind;
	/*
	 * An attempt: if it cannot be written it is void, and not retried, because nobody knows of
	 * it yet.
	 */
	bool is_attempt;
	uint64_t run, epoch;
	const char *name; /* of the application */
	const char *who;  /* started it, or caused the notice; empty: nobody that has a name */
	int64_t start_timeout_ns;
	bool is_wanted; /* it starts again with its driver */
	const void *source;
	size_t source_bytes; /* 0: forgotten */
	int64_t ended_unix_ns;
	const void *outcome;
	size_t outcome_bytes; /* the frame of its OUTCOME; 0: it has not ended */
	uint64_t notice, first_notice;
	uint32_t notice_kind;
	int64_t unix_ns;
	const char *text; /* PLACED: empty: not known */
	size_t bytes;
};

#endif
