/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TOP_H
#define CTL_TOP_H

#include <stdbool.h>
#include <stdio.h>

#include <fragctl/json.h>
#include <track/cause.h>
#include <track/late.h>

/*
 * What `fragctl top` shows. The text is made here from tables, without a terminal: the same lines
 * go to a screen (top_screen.c), to stdout, or into a test.
 */

#define CTL_NO_WAIT_FLAG(off)                                                                      \
	{                                                                                          \
		.name = "no-wait", .no_env = true,                                                 \
		.help = "measures nothing, and says so, in place of waiting a second",             \
		.on = &(off)                                                                       \
	}

/* An application in the last window. */
struct ctl_top_app {
	struct fragi_look look;
	struct fragi_cause cause;
};

/* X(NAME, name): by what operators and flows are sorted */
#define CTL_TOP_ORDER_LIST(X) X(GRAPH, graph) X(BUSY, busy) X(RATE, rate) X(P99, p99) X(NAME, name)
#define CTL_TOP_ORDER_ENUM(NAME, name) CTL_TOP_##NAME,
enum ctl_top_order { CTL_TOP_ORDER_LIST(CTL_TOP_ORDER_ENUM) CTL_TOP_ORDERS };

enum ctl_top_style {
	CTL_TOP_NORMAL,
	CTL_TOP_TITLE,    /* the top line, the keys */
	CTL_TOP_HEAD,     /* of a table */
	CTL_TOP_WRONG,    /* what is to blame */
	CTL_TOP_SELECTED, /* where the cursor is */
};

struct ctl_top {
	const struct ctl_top_app *apps;
	uint32_t app_count;
	const char *where; /* address of the driver */
	const char *lost;  /* why there is no driver now; NULL: there is one */
	const char *event; /* the last one; NULL: none */
	/* what the person chose */
	enum ctl_top_order order;
	const char *filter; /* of names; NULL or empty: all */
	bool is_paused;
	bool is_measuring; /* no window has come yet */
	uint32_t app, op;  /* the operator that is opened; FRAGI_LOOK_NONE: none */
	const struct ctl_top_opened *opened; /* more about that one; NULL: nothing */
	uint32_t cursor;                     /* line of the body */
	uint32_t first;         /* line of the body that is shown first; moved to show the cursor */
	const char *message;    /* shown in place of the keys; NULL: none */
	uint32_t width, height; /* of the screen; width 0: as wide as the names need */
};

struct ctl_top_line {
	const char *text;
	enum ctl_top_style style;
	bool is_head;     /* the title of a section */
	uint32_t app, op; /* the operator of this line; FRAGI_LOOK_NONE: it shows none */
};

struct ctl_top_lines {
	struct ctl_top_line *items;
	uint32_t count;
	char *text;
};

/* Tables of all applications, or what is known of the operator that is opened. 0 or -ENOMEM. */
int ctl_top_body(const struct ctl_top *top, struct ctl_top_lines *out);
/*
 * A screen of height lines, each at most width columns wide: the title, the root cause, a part of
 * the body with the cursor, the keys. Moves top->cursor and top->first into their bounds. 0 or
 * -ENOMEM.
 */
int ctl_top_screen(struct ctl_top *top, const struct ctl_top_lines *body,
		   struct ctl_top_lines *out);
void ctl_top_lines_free(struct ctl_top_lines *lines);
/* Sentences for screen readers. */
void ctl_top_print_plain(const struct ctl_top *top, FILE *out);
/* Tables as wide as they need to be. 0 or -ENOMEM. */
int ctl_top_print(const struct ctl_top *top, FILE *out);
/* The member "cause" of a document. */
void ctl_top_json_cause(struct ctl_json *json, const struct ctl_top_app *app);
/* One line of JSON. */
void ctl_top_print_json(const struct ctl_top *top, FILE *out);
/* "nothing is wrong", or the sentence of the root cause. */
const char *ctl_top_cause(const struct ctl_top_app *app);
#define CTL_TOP_LATE_SIZE (FRAGI_LATE_TEXT_SIZE + 60)
/* Writes "12 messages late (8 network, 4 computed long)", empty where there are none. Returns out. */
const char *ctl_top_late(const struct fragi_look_operator *op, char out[CTL_TOP_LATE_SIZE]);

#endif
