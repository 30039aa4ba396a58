/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TOP_LINES_H
#define CTL_TOP_LINES_H

#include <fragctl/top.h>

/* How top's files write lines: cells of a stated width in columns, then the end of the line. */
struct ctl_top_drawing {
	const struct ctl_top *top;
	FILE *out;
	char *text; /* of all lines, each ends with a NUL */
	size_t size;
	struct ctl_top_line *items;
	uint32_t count, capacity;
	bool is_short; /* memory is */
	bool follows;  /* another cell of this line */
};

int ctl_top_begin(struct ctl_top_drawing *d, const struct ctl_top *top);
/* Gives the lines to *out. 0 or -ENOMEM. */
int ctl_top_end(struct ctl_top_drawing *d, struct ctl_top_lines *out);
/* Ends the line. op: which operator it shows; FRAGI_LOOK_NONE: none */
void ctl_top_line(struct ctl_top_drawing *d, enum ctl_top_style style, uint32_t app, uint32_t op);
/* Writes text into so many columns, cut or padded; is_right: the blanks come first. */
void ctl_top_cell(struct ctl_top_drawing *d, const char *text, uint32_t width, bool is_right);
void ctl_top_number(struct ctl_top_drawing *d, uint32_t width, const char *format, ...)
	FRAG_PRINTF(3, 4);
/* A whole line, cut to the width of the screen. */
void ctl_top_put(struct ctl_top_drawing *d, enum ctl_top_style style, const char *format, ...)
	FRAG_PRINTF(3, 4);
/* The same, continued on so many lines at most. */
void ctl_top_wrap(struct ctl_top_drawing *d, enum ctl_top_style style, uint32_t lines,
		  const char *text);
/* Columns of a text on a terminal. */
uint32_t ctl_top_width(const char *text);
/* "64 KiB" */
const char *ctl_top_size(uint64_t bytes, char *out, size_t size);
/* How full a pool is: "3 of 4 blocks of 64 KiB", or "12 MiB of 32 MiB". */
const char *ctl_top_level(const struct fragi_look_pool *pool, char *out, size_t size);
/* "" for NULL */
const char *ctl_top_text(const char *text);

#endif
