/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_FLAGS_H
#define FRAGI_BASE_FLAGS_H

#include <stdbool.h>
#include <stdio.h>

#include <base/diag.h>

/*
 * The command lines of all programs. One table of flags serves to parse, to print --help and to
 * suggest a name for a misspelt flag. Accepted forms are `--name value`, `--name=value`, `-v` and
 * `-vv`; flags and operands may come in any order; `--` ends them. A flag that is not given is
 * taken from the environment variable FRAG_<NAME> (upper case, - becomes _), unless no_env is set.
 */

/* The values of a flag that may be given more than once. A zeroed struct holds none. */
struct fragi_texts {
	const char **items; /* the array is owned, the texts are argv's or the environment's */
	size_t count;
};
/* Returns 0 or -ENOMEM. */
FRAGI_API int fragi_texts_add(struct fragi_texts *texts, const char *text);
FRAGI_API void fragi_texts_fini(struct fragi_texts *texts);

struct fragi_flag {
	const char *name; /* without dashes */
	char letter;      /* 0: none */
	bool no_env;
	const char *value; /* how help names the value: "HOST[:PORT]"; NULL: a switch */
	const char *help;  /* one line, lower case, no full stop; NULL: --help leaves it out */
	/* Where the value is stored. Exactly one is set; it holds the default before parsing. */
	const char **text;
	struct fragi_texts *texts;
	bool *on;
	int *times; /* counts up; cannot come from the environment */
};

struct fragi_flags {
	const char *program;
	const char *usage;    /* after the program's name: "[--address A] APP.yaml [-- ARGS]" */
	const char *headline; /* one sentence */
	const char *operand;  /* the flag that a stray operand was meant for; NULL: none */
	const struct fragi_flag *flags;
	size_t count;
	const char *rest;    /* what follows `--`: "arguments of the application"; NULL: nothing */
	const char *example; /* a command line, with which --help ends; NULL: none */
};

/*
 * Parses argv[1] and the words after it.
 * - operands: receives the words that are not flags; NULL: operands are refused
 * - rest: receives the index of the first word after `--`, or argc when there is none; NULL: words
 *   after `--` are operands
 * Returns 0; -EINVAL with a sentence, which suggests a name for an unknown flag; -ENOMEM.
 */
FRAGI_API int fragi_flags_parse(const struct fragi_flags *flags, int argc, char **argv,
				struct fragi_texts *operands, int *rest, struct frag_err *err);
/*
 * Whether a command line asks for documents by `--output json`, also one that does not parse: the
 * flags in front of a wrong one have been read, and those behind it not. One for a program without
 * a flag --output does, too, but not by the environment; one whose --output is a file does not.
 * - flags: NULL: those of a program without flags
 */
FRAGI_API bool fragi_flags_want_json(const struct fragi_flags *flags, int argc, char **argv);
/* What --help prints. */
FRAGI_API void fragi_flags_help(const struct fragi_flags *flags, FILE *out);

#endif
