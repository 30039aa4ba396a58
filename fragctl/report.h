/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_REPORT_H
#define CTL_REPORT_H

#include <fragctl/composed.h>

/*
 * What is right or wrong with a graph, for programs: one JSON document on stdout, with everything
 * that was found, the place of each error in the text, and what was wanted there. The errors are
 * those of graph->diag, or graph->failure where there are none. Nothing if the graph was reported
 * before, or no JSON is wanted.
 * - composed: what was composed; NULL: it did not come to that
 */
void ctl_report(struct ctl_graph *graph, const struct ctl_composed *composed);

/*
 * The digest of a plan: the SHA-256 of what ctl_describe_print_json prints of it, in lower-case
 * hexadecimal. The same texts always give the same digest.
 * Returns an exit code; an error has been printed.
 */
#define CTL_DIGEST_SIZE 65
int ctl_plan_digest(const struct fragi_spec *spec, const struct ctl_composed *composed,
		    char out[CTL_DIGEST_SIZE]);

#endif
