/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_FLAGS_H
#define FRAGI_BASE_FLAGS_H

#include <stdbool.h>
#include <stdio.h>

#include <base/diag.h>

/*
 * Command lines of all programs: one table of flags parses, prints --help and suggests. `--name
 * value`, `--name=value`, `-v`, `-vv`; flags and operands in any order; `--` ends them. A flag that
 * is not given is taken from FRAG_<NAME> (upper case, - as _), unless no_env.
 */
/* values that may be given more than once; zeroed: none */
struct fragi_texts {
	const char **items; /* the array is owned, the texts are argv's or the environment's */
	size_t count;
};
FRAGI_API void fragi_texts_fini(struct fragi_texts *texts);

struct fragi_flag {
	const char *name; /* without dashes */
	char letter;      /* 0: none */
	bool no_env;
	const char *value; /* how help names the value: "HOST[:PORT]"; NULL: a switch */
	const char *help;  /* one line, lower case, no full stop */
	/* where it goes; exactly one is set, and it holds the default until then */
	const char **text;
	struct fragi_texts *texts;
	bool *on;
	int *times; /* counts up; cannot come from the environment */
};

struct fragi_flags {
	const char *program;
	const char *usage;    /* after the program's name: "[--address A] APP.yaml [-- ARGS]" */
	const char *headline; /* one sentence */
	const struct fragi_flag *flags;
	size_t count;
};

/*
 * Parses argv[1..]. operands: what is not a flag; NULL: none are accepted. rest: index of the first
 * word after `--`, argc when there is none; NULL: `--` and what follows are refused unless they are
 * operands. Returns 0, -EINVAL with a sentence ("did you mean"), -ENOMEM.
 */
FRAGI_API int fragi_flags_parse(const struct fragi_flags *flags, int argc, char **argv,
				struct fragi_texts *operands, int *rest, struct frag_err *err);
/* What --help prints. */
FRAGI_API void fragi_flags_help(const struct fragi_flags *flags, FILE *out);

#endif
