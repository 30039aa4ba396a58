/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TOP_OPENED_H
#define CTL_TOP_OPENED_H

#include <fragctl/top_lines.h>
#include <wire/message.h>

/* What top shows of an operator that is opened, beside the tables: what it writes, what was set. */
#define CTL_TOP_TAIL 8

struct ctl_top_opened {
	char application[300], op[600]; /* "fragment1.detect" */
	char lines[CTL_TOP_TAIL][300];  /* the n-th at n % CTL_TOP_TAIL */
	uint32_t line_count;            /* so many have come */
	char set[CTL_TOP_TAIL][300];    /* "threshold=0.4, 12 s ago by user alice" */
	uint32_t set_count;
};

/* Another operator is opened. */
void ctl_top_opened_begin(struct ctl_top_opened *opened, const char *application, const char *op);
/* Takes LOGS and REPLY; what is about others is dropped. */
void ctl_top_opened_take(struct ctl_top_opened *opened, const struct fw_message *message);
void ctl_top_opened_draw(struct ctl_top_drawing *d, const struct ctl_top_opened *opened);

#endif
