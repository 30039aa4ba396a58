/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_PROMISE_H
#define CTL_PROMISE_H

#include <base/look.h>
#include <fragctl/json.h>

/*
 * What rates and budgets promise, beside what a window has measured: of operators on all nodes, and
 * of flows between hosts, of which only a run shows how long they take.
 */
/* Nothing where nothing was promised, or nothing measured. */
void ctl_promises_print(const struct fragi_look *look, FILE *out);
/* Two members, "promises" and "flow_promises". */
void ctl_promises_json(struct ctl_json *json, const struct fragi_look *look);

#endif
