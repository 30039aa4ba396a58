/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_RESULT_H
#define DRV_RESULT_H

#include <driverd/options.h>
#include <track/summary.h>

/* Shows the summary wherever it is wanted. Returns the exit code of driverd. */
int drv_result_show(const struct drv_options *options, const struct fragi_summary *summary);
/*
 * The same for an application that failed before anybody was asked to run it; its error has been
 * printed. Nothing is shown as a table. application: NULL: not known
 */
int drv_result_fail(const struct drv_options *options, const char *application,
		    const struct frag_err *err);

#endif
