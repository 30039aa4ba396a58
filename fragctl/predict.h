/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_PREDICT_H
#define CTL_PREDICT_H

#include <fragctl/composed.h>

/*
 * Predicts what a graph without errors will do by its rates and budgets; adds what will not work to
 * graph->warnings.
 * - out_lines: receives the arithmetic, a line for each step, from the heap; NULL: the graph
 *   declares no rate and no budget
 * Returns an exit code; out of memory is complained of.
 */
int ctl_predict(struct ctl_graph *graph, const struct ctl_composed *composed, char **out_lines);

#endif
