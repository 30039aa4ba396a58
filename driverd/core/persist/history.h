/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_HISTORY_H
#define DRV_HISTORY_H

#include <frag/abi.h>
#include <wire/message.h>

/* What a driver remembers: events, and the runs that have ended (history.c). */

/* Something that happened. */
struct drv_notice {
	uint64_t number; /* counts up, from 1 */
	int64_t unix_ns;
	enum fw_notice_kind kind;
	uint64_t run;
	char application[FRAG_NAME_MAX + 1], who[2 * FRAG_NAME_MAX], text[256];
};
/* A run that has ended. */
struct drv_ended {
	struct drv_ended *next; /* the one that ended before it */
	uint64_t run;
	char *name, *started_by;
	uint8_t *outcome; /* a frame */
	size_t outcome_bytes;
	void *source; /* of the newest one of its name; NULL: forgotten */
	size_t source_bytes;
	int64_t start_timeout_ns;
	/* borrows from the outcome */
	enum fragi_summary_result result;
	struct fw_failure failure;
	int exit_code;
	int64_t ended_unix_ns, duration_ns;
	char sentence[FW_TEXT_MAX];
	bool is_wanted;  /* it starts again with the next driver */
	bool restarts;   /* it is to start again with this one */
	bool is_cut;     /* it ended with its driver, which is still to be kept */
	bool is_earlier; /* a driver before has seen its end */
	bool is_untold;  /* its workers hear of it when that is on the disk */
	uint64_t change; /* the last one that who awaits its end waits for */
};
struct drv_history {
	struct drv_notice *notices; /* DRV_NOTICES_MAX of them; number n at n % DRV_NOTICES_MAX */
	uint64_t first_notice, last_notice;
	uint64_t counts[FW_NOTICE_KINDS]; /* of notices since the driver started */
	struct drv_ended *ended;          /* the newest first */
	size_t ended_count, ended_bytes;
};

#endif
