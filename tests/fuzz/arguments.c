// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>

#include <base/flags.h>
#include <driverd/options.h>
#include <text/spec.h>
#include <workerd/options.h>

/*
 * Command lines: a byte that says whose, then a word a line. 0: a table of flags with one of each
 * kind (with bit 7 the first word is the environment's), 1: driverd, 2: workerd, 3: the arguments
 * and the --set of a graph (words that begin with ! are the latter).
 */
#define WORDS_MAX 64

static int split(char *text, char *words[WORDS_MAX + 2])
{
	int count = 0;

	words[count++] = (char *)(uintptr_t) "program";
	for (char *rest = text, *word; count <= WORDS_MAX && (word = strsep(&rest, "\n")) != NULL;)
		words[count++] = word;
	words[count] = NULL;
	return count;
}

static void check_sentence(int r, const struct frag_err *err)
{
	fuzz_check(r >= 0 || (r == -EINVAL && err->text[0] != '\0') || r == -ENOMEM);
}

static void parse_table(int argc, char **argv, uint8_t how)
{
	const char *text = NULL;
	struct fragi_texts texts = {0}, operands = {0};
	bool on = false;
	int times = 0, rest = 0, r;
	const struct fragi_flag table[] = {
		{.name = "address", .letter = 'a', .value = "A", .help = "one", .text = &text},
		{.name = "set", .value = "S", .help = "many", .texts = &texts},
		{.name = "insecure", .help = "a switch", .on = &on},
		{.name = "verbose", .letter = 'v', .help = "counts", .times = &times},
	};
	const struct fragi_flags flags = {
		.program = "program", .usage = "x", .headline = "y", .flags = table, .count = 4};
	struct frag_err err = FRAG_ERR_INIT;
	static char variable[4096];

	if ((how & 0x80) != 0 && argc > 1) {
		/* not setenv, whose copies nobody can free */
		snprintf(variable, sizeof(variable), "%s=%s",
			 (how & 0x10) != 0 ? "FRAG_INSECURE" : "FRAG_SET", argv[1]);
		putenv(variable);
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	r = fragi_flags_parse(&flags, argc, argv, (how & 0x40) != 0 ? &operands : NULL,
			      (how & 0x20) != 0 ? &rest : NULL, &err);
	check_sentence(r, &err);
	if (r == 0) {
		fuzz_check(rest >= 0 && rest <= argc);
		fuzz_check(operands.count + texts.count <= (size_t)argc + 1);
		for (size_t i = 0; i < texts.count; i++)
			fuzz_check(strlen(texts.items[i]) < SIZE_MAX);
	}
	fragi_texts_fini(&texts);
	fragi_texts_fini(&operands);
	unsetenv("FRAG_INSECURE");
	unsetenv("FRAG_SET");
}

/* They print on stdout, which is not what is tried here. */
static bool asks_for_print(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(argv[i], "-h") != NULL || strstr(argv[i], "-vers") != NULL ||
		    (argv[i][0] == '-' && argv[i][1] != '-'))
			return true;
	return false;
}

static void parse_driverd(int argc, char **argv)
{
	struct drv_options options;
	struct frag_err err = FRAG_ERR_INIT;

	if (asks_for_print(argc, argv))
		return;
	check_sentence(drv_options_parse(&options, argc, argv, &err), &err);
	drv_options_fini(&options);
}

static void parse_workerd(int argc, char **argv)
{
	struct wrk_options options;
	struct frag_err err = FRAG_ERR_INIT;

	if (asks_for_print(argc, argv))
		return;
	check_sentence(wrk_options_parse(&options, argc, argv, &err), &err);
	wrk_options_fini(&options);
}

static const char graph[] =
	"frag: 1\n"
	"application: a\n"
	"arguments:\n"
	"  source: {default: replayer, choices: [replayer, aja], help: where from}\n"
	"  data: {default: data}\n"
	"  fast: {default: false}\n"
	"  needed: {help: must be given}\n"
	"config: {x: {path: \"${data}/${needed}\"}}\n"
	"fragments:\n"
	"  f:\n"
	"    operators:\n"
	"      tx: {type: ping_tx, parameters: {from_config: x, list: [1, 2], fast: \"${fast}\"}}\n"
	"      aja: {type: aja, when: {source: aja}}\n"
	"      view: {type: view, parameters: {title: {a: {b: 1}}}}\n";

static void parse_graph(int argc, char **argv)
{
	const char *sets[WORDS_MAX], *args[WORDS_MAX];
	struct fragi_spec_source source = {
		.graph = {"app.yaml", graph, sizeof(graph) - 1}, .sets = sets, .args = args};
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;
	int r;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '!')
			sets[source.set_count++] = argv[i] + 1;
		else
			args[source.arg_count++] = argv[i];
	}
	r = fragi_spec_parse(&source, &diag, &spec);
	fuzz_check(r == 0 || (r == -EINVAL && diag.count > 0) || r == -ENOMEM);
	if (spec != NULL) {
		fuzz_check(spec->help_wanted || fragi_spec_argument(spec, "source") != NULL);
		(void)fragi_spec_arguments_help(spec);
	}
	fragi_spec_destroy(spec);
	fragi_diag_fini(&diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = {bytes, bytes + size};
	uint8_t how = fuzz_u8(&input);
	char *text = fuzz_text(input.at, fuzz_left(&input)), *words[WORDS_MAX + 2];
	int count = split(text, words);

	if ((how & 3) == 0)
		parse_table(count, words, how);
	else if ((how & 3) == 1)
		parse_driverd(count, words);
	else if ((how & 3) == 2)
		parse_workerd(count, words);
	else
		parse_graph(count, words);
	free(text);
	return 0;
}
