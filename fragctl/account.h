/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_ACCOUNT_H
#define CTL_ACCOUNT_H

#include <run/run.h>
#include <track/summary.h>

/*
 * What a run in this process did, for its summary. The tables are copied and the ledger is mapped
 * once more, so that both outlive the run: what is still queued at the end is only counted when the
 * run is destroyed.
 */
struct ctl_account {
	struct fragi_arena arena;
	struct fragi_ledger ledger;
	struct fragi_summary_fragment *fragments;
	size_t fragment_count;
	struct fragi_summary_flow *flows;
	size_t flow_count;
	int64_t started_unix_ns, started_ns, end_begun_ns; /* the latter two CLOCK_MONOTONIC */
};

/* After prepare; ledger_fd is the run's. Returns 0 or negative errno. */
int ctl_account_open(struct ctl_account *account, const struct fragi_run *run, int ledger_fd);
/* Messages sent and delivered so far, of all flows. */
void ctl_account_totals(const struct ctl_account *account, uint64_t *out_sent,
			uint64_t *out_delivered);
/*
 * Reads the ledger into *out_summary, which borrows from the account; application, result and
 * reason are the caller's.
 */
void ctl_account_read(struct ctl_account *account, struct fragi_summary *out_summary);
void ctl_account_close(struct ctl_account *account);

#endif
