/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_ACCOUNT_H
#define DRV_ACCOUNT_H

#include <wire/message.h>

/* A part of state.h: what hosts have counted, for view.h. */
struct drv_host;
struct drv_app;

/* The counts of a host's earlier processes. */
struct drv_past {
	struct fragi_flow_stats *flows; /* sums, by row of its ledger; NULL: there was none */
	uint32_t flow_count;
	struct fw_op_stats *ops; /* sums by operator: ticks, compute, counters */
	uint32_t op_count;
	/* sums by pool of its host: refused, empty_ns; as many as were looked at */
	struct fragi_pool_stats *pools;
	uint32_t pool_count;
	struct fw_late_counts *lates; /* sums by place of its paths; NULL: there was none */
	uint32_t late_count;
	uint64_t cpu_ns;
	uint64_t delivered_sum;
	uint64_t first_ns; /* of the first message, also that of the present process; 0: none yet */
	bool is_inexact;   /* some process's last counts are not known, or were overwritten */
};

/* Takes what the present process of a host has counted so far. */
void drv_account_take(struct drv_host *host, struct fw_message *message);
/* Adds what a process that is over has counted to those before it. Returns 0 or -ENOMEM. */
int drv_account_add(struct drv_host *host, const struct fw_host_stats *stats);
/* The present process is over: adds what it has counted. Returns 0 or -ENOMEM. */
int drv_account_end_epoch(struct drv_host *host);
void drv_account_fini(struct drv_host *host);

/* loss.c: notices what the flows of an application begin to drop or lose, and when that ends. */
void drv_losses_look(struct drv_app *app);

#endif
