/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TRACK_SUMMARY_H
#define FRAGI_TRACK_SUMMARY_H

#include <stdio.h>

#include <base/summary.h>

/*
 * How a summary is printed. NULL prints as an empty text, and as null where base/summary.h says so.
 * docs/summary.schema.json describes the JSON; fields are added, never changed.
 */
/*
 * Prints the table for people, who have read the reason in the log; ends with a newline. Returns 0
 * or -EIO.
 */
FRAGI_API int fragi_summary_print_table(const struct fragi_summary *summary, FILE *out);
/*
 * Prints one JSON document; ends with a newline. Bytes that are no UTF-8 are replaced. Returns 0 or
 * -EIO.
 */
FRAGI_API int fragi_summary_print_json(const struct fragi_summary *summary, FILE *out);
/*
 * Writes the JSON to a file, which appears whole or not at all. Returns 0, or negative errno with a
 * sentence.
 */
FRAGI_API int fragi_summary_write(const struct fragi_summary *summary, const char *path,
				  struct frag_err *err);
/*
 * Before a run: whether fragi_summary_write could write there now. Returns 0, or negative errno
 * with a sentence.
 */
FRAGI_API int fragi_summary_check(const char *path, struct frag_err *err);
/* Whether the flow's sum balances: sent = delivered + dropped + lost + in flight. */
FRAGI_API bool fragi_summary_flow_balances(const struct fragi_summary_flow *flow);

#endif
