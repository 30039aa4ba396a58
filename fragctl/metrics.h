/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_METRICS_H
#define CTL_METRICS_H

#include <fragctl/top.h>
#include <wire/message.h>

/*
 * The page of /metrics, in Prometheus' text format 0.0.4: made of tables, so that it needs neither
 * a driver nor a server. Every counter is a sum since the start of a run. It goes back only when
 * the application is started anew, which frag_application_run shows.
 */

/* Rows of operators, and of flows, on a page; what is beyond is counted by frag_left_out_rows. */
#define CTL_METRICS_ROWS_MAX 5000

struct ctl_metrics_source {
	const struct fw_reply *state;   /* NULL: there is no driver */
	const struct ctl_top_app *apps; /* as LOOK with at_once gives them */
	uint32_t app_count;
};

/*
 * - out_text: the caller's, to be freed; not terminated
 * Returns 0 or -ENOMEM.
 */
int ctl_metrics_write(const struct ctl_metrics_source *source, char **out_text, size_t *out_size);

#endif
