/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TRACK_PROMISE_H
#define FRAGI_TRACK_PROMISE_H

#include <stdio.h>

#include <base/diag.h>
#include <base/summary.h>

/*
 * What a graph promised by its rates and budgets, beside what was measured. A rate counts from ten
 * ticks on, a budget from one.
 */
/* Prints the operators that differ from their promise by more than 20 %; else nothing. */
void fragi_summary_print_promises(const struct fragi_summary *summary, FILE *out);
/* Writes a member "predicted", with a comma before it, where something was promised. */
void fragi_summary_json_promise(const struct fragi_summary_operator *op, FILE *out);

#endif
