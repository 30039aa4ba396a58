/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_H
#define CTL_H

#include <base/failure.h>
#include <base/flags.h>

/* fragctl: one file a verb. argv[0] is the verb. Each returns the exit code. */
enum ctl_exit {
	CTL_OK = FRAGI_EXIT_OK,
	CTL_FAILED = FRAGI_EXIT_FAILED,
	CTL_USAGE = FRAGI_EXIT_USAGE,
	CTL_MISSING = FRAGI_EXIT_MISSING,
};

int ctl_run(int argc, char **argv);
int ctl_validate(int argc, char **argv);
int ctl_inspect(int argc, char **argv);
int ctl_describe(int argc, char **argv);
int ctl_draw(int argc, char **argv); /* the verb graph */
int ctl_new(int argc, char **argv);
int ctl_key(int argc, char **argv);
int ctl_test(int argc, char **argv);
int ctl_start(int argc, char **argv);
int ctl_stop(int argc, char **argv);
int ctl_restart(int argc, char **argv);
int ctl_list(int argc, char **argv);
int ctl_status(int argc, char **argv);
int ctl_apply(int argc, char **argv);
int ctl_set(int argc, char **argv);
int ctl_swap(int argc, char **argv);
int ctl_logs(int argc, char **argv);
int ctl_workers(int argc, char **argv);
int ctl_events(int argc, char **argv);
int ctl_explain(int argc, char **argv);
int ctl_top(int argc, char **argv);
int ctl_health(int argc, char **argv);
int ctl_snapshot(int argc, char **argv);
int ctl_web(int argc, char **argv);
int ctl_echo(int argc, char **argv);
int ctl_trace(int argc, char **argv);
int ctl_drain(int argc, char **argv);
int ctl_doctor(int argc, char **argv);
int ctl_schema(int argc, char **argv);
int ctl_cameras(int argc, char **argv);
int ctl_complete(int argc, char **argv);

struct ctl_verb {
	const char *name;
	const char *group;                 /* of --help: "Build" */
	const char *headline;              /* NULL: --help leaves it out */
	int (*run)(int argc, char **argv); /* NULL: not built yet */
	const char *example;               /* with which its --help ends */
};
/* The i-th verb; NULL beyond the last. */
const struct ctl_verb *ctl_verb_at(size_t i);
/*
 * Calls `call` with the flags of a verb, in place of running it: the verb's tables are in its
 * function.
 */
void ctl_verb_flags(const struct ctl_verb *verb,
		    void (*call)(const struct fragi_flags *flags, void *context), void *context);

/* The flags that every verb has; ctl_begin answers them. */
struct ctl_common {
	bool help, version;
	int verbose, quiet;
};
#define CTL_COMMON_FLAGS(common)                                                                   \
	{.name = "verbose",                                                                        \
	 .letter = 'v',                                                                            \
	 .help = "more log lines; again: still more",                                              \
	 .times = &(common).verbose},                                                              \
		{.name = "quiet",                                                                  \
		 .letter = 'q',                                                                    \
		 .help = "fewer log lines, no progress",                                           \
		 .times = &(common).quiet},                                                        \
		{.name = "help",                                                                   \
		 .letter = 'h',                                                                    \
		 .no_env = true,                                                                   \
		 .help = "prints this",                                                            \
		 .on = &(common).help},                                                            \
	{                                                                                          \
		.name = "version", .no_env = true, .help = "prints the version",                   \
		.on = &(common).version                                                            \
	}
/* NULL: none. The example with which --help of the verb that comes next ends. */
void ctl_begin_example(const char *text);
/*
 * Parses a verb's command line, answers --help and --version, sets the log level. Returns true when
 * the verb is to go on; else *out_exit is the exit code.
 */
bool ctl_begin(const struct fragi_flags *flags, const struct ctl_common *common, int argc,
	       char **argv, struct fragi_texts *operands, int *rest, int *out_exit);
/*
 * After something was printed: ends this process as a program whose reader has gone, if that is so,
 * and with a sentence if it cannot be written. SIGPIPE itself is ignored, since the driver's socket
 * may be closed too.
 */
void ctl_check_stdout(void);
/*
 * After all was printed: complains if it cannot be written, as on a full disk. Nobody who reads any
 * more is no failure. Returns the code, or of CTL_OK then CTL_MISSING.
 */
int ctl_end_stdout(int code);
/* "fragctl: SENTENCE" on stderr, and a document where failures are documents. Returns code. */
int ctl_fail(int code, const char *format, ...) FRAG_PRINTF(2, 3);
/* The same for a failure with a code of its own. Returns its exit code. */
int ctl_fail_with(enum fragi_failure failure, const char *format, ...) FRAG_PRINTF(2, 3);
/* The same for a wrong command line, with "fragctl VERB" as program. Returns CTL_USAGE. */
int ctl_refuse(const char *program, const char *format, ...) FRAG_PRINTF(2, 3);
/* "fragctl: SENTENCE" on stderr only. */
void ctl_complain(const char *format, ...) FRAG_PRINTF(1, 2);
/* The document only, where failures are documents. */
void ctl_fail_document(int code, enum fragi_failure failure, const char *sentence);
/*
 * Whether stdout gets failures too from now on, by docs/service.schema.json. ctl_begin says so of a
 * command line with --output json. Returns what held before.
 */
bool ctl_fail_as_documents(bool on);
#define CTL_OUTPUT_FLAG(output)                                                                    \
	{                                                                                          \
		.name = "output", .letter = 'o', .value = "table|json",                            \
		.help = "what stdout gets; default table", .text = &(output)                       \
	}
/*
 * The operand NAME of a verb.
 * - is_optional: *out_name stays as it is without one
 * Returns CTL_OK or CTL_USAGE, complained.
 */
int ctl_one_name(const struct fragi_texts *operands, const char *program, bool is_optional,
		 const char **out_name);
/* Whether an application can have that name. Returns CTL_OK or CTL_USAGE, complained. */
int ctl_check_name(const char *name, const char *program);
/* Whether --output is table (or not given) or json, into *out_json; complains. */
bool ctl_output(const char *text, bool *out_json);

#endif
