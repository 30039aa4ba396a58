/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TEXT_SYNTAX_H
#define FRAGI_TEXT_SYNTAX_H

#include <stddef.h>
#include <yaml.h>

/* An error of syntax, in the words of somebody who writes a graph. */
struct fragi_syntax_error {
	yaml_mark_t mark; /* where the mistake is, which may be long before libyaml noticed it */
	char text[400];
};

/*
 * Explains the error that the parser stopped at.
 * - text, length: what the parser reads, from its first character
 * - bracket: the innermost [ or { that is open; NULL: none
 */
void fragi_syntax_explain(const yaml_parser_t *parser, const char *text, size_t length,
			  const yaml_mark_t *bracket, struct fragi_syntax_error *out_error);

#endif
