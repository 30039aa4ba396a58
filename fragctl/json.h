/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_JSON_H
#define CTL_JSON_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Writes a JSON document, one member after the other; the commas are set by themselves. name: of
 * the member; NULL: an element of an array, or the document.
 */
struct ctl_json {
	FILE *out;
	bool follows;    /* another element in what is open */
	const char *gap; /* what is between this element and the one before; NULL: a space */
};

/* A document that is an object, and ends with a line. */
struct ctl_json ctl_json_begin(FILE *out);
void ctl_json_end(struct ctl_json *json);
/* The next element begins with gap in place of a space, also if it is the first: "\n  ". */
void ctl_json_gap(struct ctl_json *json, const char *gap);
/* bracket: { or [, and } or ] */
void ctl_json_open(struct ctl_json *json, const char *name, char bracket);
void ctl_json_close(struct ctl_json *json, char bracket);
/* text NULL: null */
void ctl_json_text(struct ctl_json *json, const char *name, const char *text);
/* An empty text is null. */
void ctl_json_optional(struct ctl_json *json, const char *name, const char *text);
void ctl_json_bool(struct ctl_json *json, const char *name, bool value);
void ctl_json_number(struct ctl_json *json, const char *name, long long value);
void ctl_json_unsigned(struct ctl_json *json, const char *name, unsigned long long value);
/* A value that the caller writes as JSON has it: a number that is formatted otherwise. */
FILE *ctl_json_value(struct ctl_json *json, const char *name);

#endif
