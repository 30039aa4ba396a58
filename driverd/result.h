/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_RESULT_H
#define DRV_RESULT_H

#include <stdbool.h>

#include <track/summary.h>

/* The output of an application's summary. Zero: a table on stdout. */
struct drv_output {
	bool json;        /* on stdout, instead of the table */
	bool no_table;    /* there is nothing to show in one */
	const char *file; /* gets JSON too; NULL: none */
};

/* Returns the exit code: that of the summary, or of a summary that could not be written. */
int drv_result_show(const struct drv_output *output, const struct fragi_summary *summary);
/*
 * Writes the result of an application without a summary, whose error has been printed. Nothing is
 * shown as a table. application: NULL: not known
 */
int drv_result_fail(const struct drv_output *output, const char *application,
		    const struct frag_err *err);

#endif
