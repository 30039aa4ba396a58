/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_ACCOUNT_H
#define DRV_ACCOUNT_H

#include <wire/message.h>

/* A part of state.h: what hosts have counted, for view.h. */
struct drv_host;
struct drv_app;

/* The counts of a host's earlier processes. */
struct drv_past {
	struct fw_host_stats sums; /* owns its rows; flows NULL: there was no process */
	uint64_t delivered_sum;
	uint64_t first_ns; /* of the first message, also that of the present process; 0: none yet */
	bool is_inexact;   /* some process's last counts are not known, or were overwritten */
};

/* Takes what the present process of a host has counted so far. */
void drv_account_take(struct drv_host *host, struct fw_message *message);
/* Adds what a process that is over has counted to those before it. Returns 0 or -ENOMEM. */
int drv_account_add(struct drv_host *host, struct fw_host_stats *stats);
/* The present process is over: adds what it has counted. Returns 0 or -ENOMEM. */
int drv_account_end_epoch(struct drv_host *host);
void drv_account_fini(struct drv_host *host);

/* loss.c: notices what the flows of an application begin to drop or lose, and when that ends. */
void drv_losses_look(struct drv_app *app);

#endif
