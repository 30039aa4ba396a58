// SPDX-License-Identifier: Apache-2.0
#include <wire/layout.h>

/*
 * Layouts of the messages by which a session begins, stays alive and ends, and of what many
 * messages hold: failures, quantiles.
 */

/* A failure that only a newer peer knows is still one. */
LAYOUT(failure, struct fw_failure, Failure, NULL) = {
	OR_ELSE(failure, code, FRAGI_FAILURE_NONE + 1, FRAGI_FAILURES - 1, FRAGI_FAILURE_OTHER),
	FIELD(failure, sentence),
	FIELD(failure, op),
	FIELD(failure, file),
	WITHIN(failure, line, 0, INT32_MAX, "a place that no text has"),
	WITHIN(failure, column, 0, INT32_MAX, "a place that no text has"),
	END,
};

LAYOUT(quantiles, struct fragi_quantiles, Quantiles, NULL) = {
	FIELD(quantiles, count),
	FIELD(quantiles, p50),
	FIELD(quantiles, p99),
	FIELD(quantiles, p999),
	FIELD(quantiles, max),
	ARRAY(FW_NUMBERS, quantiles, bars, bars, FRAGI_HIST_BARS),
	FIELD(quantiles, total_ns),
	FIELD(quantiles, error_ns),
	END,
};

/* All that is read of another major: the rest may mean anything there. */
LAYOUT_OF(version, struct fw_hello, hello, Hello, NULL) = {
	FIELD(version, major),
	FIELD(version, minor),
	END,
};

LAYOUT(hello, struct fw_hello, Hello, NULL) = {
	FIELD(hello, major),
	FIELD(hello, minor),
	WITHIN(hello, role, FW_ROLE_WORKER, FW_ROLE_REPORTER, "an unknown role"),
	FIELD(hello, name),
	FIELD(hello, session),
	/* a peer of minor 0 knows no secrets */
	KEY(hello, secret, "a secret of another length", .may_be_empty = true),
	TEXTS(hello, fragments, fragment_count, FW_NAMES_MAX),
	FIELD(hello, worker_address),
	FIELD(hello, node),
	FIELD(hello, clock),
	FIELD(hello, memory),
	FIELD(hello, no_memory),
	FIELD(hello, waits_for),
	FIELD(hello, version),
	WHOLE(hello, has[FRAGI_AMOUNT_CPU], cores),
	WHOLE(hello, has[FRAGI_AMOUNT_GPU], gpus),
	AMOUNT(hello, has[FRAGI_AMOUNT_MEMORY], memory_bytes),
	AMOUNT(hello, has[FRAGI_AMOUNT_SHARED_MEMORY], shared_memory_bytes),
	AMOUNT(hello, has[FRAGI_AMOUNT_GPU_MEMORY], gpu_memory_bytes),
	WHOLE(hello, has[FRAGI_AMOUNT_GPU_THREADS], gpu_threads, .max = 100,
	      .flaw = "more than all threads of a GPU"),
	FIELD(hello, mig),
	TEXTS(hello, labels, label_count, FW_LABELS_MAX),
	FIELD(hello, no_limits),
	FIELD(hello, limited),
	FIELD(hello, local_address),
	FIELD(hello, reports),
	FIELD(hello, last_epoch),
	FIELD(hello, last_name),
	KEY(hello, binding, "a binding of another length", .may_be_empty = true),
	END,
};

LAYOUT(welcome, struct fw_welcome, Welcome, NULL) = {
	FIELD(welcome, session),
	FIELD(welcome, name),
	TIME(welcome, beat_ns),
	TIME(welcome, dead_ns),
	FIELD(welcome, version),
	KEY(welcome, secret, "a secret of another length", .may_be_empty = true),
	FIELD(welcome, takes_lines),
	FIELD(welcome, keeps_hosts),
	END,
};

/* A peer of another version may not know codes: it refuses because of the version. */
static const char *refused_flaw(const void *proto, void *plain)
{
	struct fw_failure *out = &((struct fw_refused *)plain)->failure;

	(void)proto;
	if (out->code == FRAGI_FAILURE_NONE)
		out->code = FRAGI_FAILURE_VERSION_REFUSED;
	out->op = out->file = "";
	return NULL;
}

LAYOUT(refused, struct fw_refused, Refused, refused_flaw) = {
	FIELD_AS(refused, failure.code, code, .max = FRAGI_FAILURES - 1,
		 .otherwise = FRAGI_FAILURE_OTHER),
	FIELD_AS(refused, failure.sentence, sentence),
	ROW(FW_EXIT, refused, failure.code, exit_code),
	END,
};

#define BEAT_ROW(type, name, row) row(beat, name),
LAYOUT(beat, struct fw_beat, Beat, NULL) = {
	WHOLE(beat, has[FRAGI_AMOUNT_GPU], gpus),
	AMOUNT(beat, has[FRAGI_AMOUNT_GPU_MEMORY], gpu_memory_bytes),
	FW_BEAT_LIST(BEAT_ROW) END,
};

LAYOUT(app_ended, struct fw_app_ended, AppEnded, NULL) = {
	EXIT_CODE(app_ended, exit_code),
	END,
};

LAYOUT(leave, struct fw_leave, Leave, NULL) = {
	FIELD(leave, reason),
	END,
};
