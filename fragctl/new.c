// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fragctl/graph.h>
#include <type/registry.h>

#define NAME_LENGTH_MAX 40

/*
 * The files of a new project, from fragctl/template. In their texts and names @name@ stands for the
 * project's name, @NAME@ and @Name@ for the same in upper case and with a capital, @libdir@ and
 * @fragctl@ for where this frag is.
 */
#define TEMPLATE(symbol, file)                                                                     \
	__asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"fragctl/template/" file             \
		"\"\n.byte 0\n.popsection\n");                                                     \
	extern const char symbol[] __attribute__((visibility("hidden")))
TEMPLATE(ctl_template_header, "header.in");
TEMPLATE(ctl_template_source, "operator.in");
TEMPLATE(ctl_template_test, "test.in");
TEMPLATE(ctl_template_graph, "graph.in");
TEMPLATE(ctl_template_app_test, "app_test.in");
TEMPLATE(ctl_template_numbers, "numbers.in");
TEMPLATE(ctl_template_samples, "samples.in");
TEMPLATE(ctl_template_negative, "negative.in");
TEMPLATE(ctl_template_makefile, "makefile.in");
TEMPLATE(ctl_template_readme, "readme.in");
TEMPLATE(ctl_template_python, "python_operator.in");
TEMPLATE(ctl_template_python_test, "python_test.in");
TEMPLATE(ctl_template_python_graph, "python_graph.in");
TEMPLATE(ctl_template_python_readme, "python_readme.in");

struct file {
	const char *name, *text;
};
static const struct file files[] = {
	{"@name@.h", ctl_template_header},        {"@name@.c", ctl_template_source},
	{"test_@name@.c", ctl_template_test},     {"app.yaml", ctl_template_graph},
	{"Makefile", ctl_template_makefile},      {"README.md", ctl_template_readme},
	{"app.test.yaml", ctl_template_app_test}, {"numbers.txt", ctl_template_numbers},
	{"samples.txt", ctl_template_samples},    {"negative.txt", ctl_template_negative},
};
static const struct file python_files[] = {
	{"@name@.py", ctl_template_python},
	{"test_@name@.py", ctl_template_python_test},
	{"app.yaml", ctl_template_python_graph},
	{"README.md", ctl_template_python_readme},
};

struct words {
	char name[NAME_LENGTH_MAX + 1], upper[NAME_LENGTH_MAX + 1], capital[NAME_LENGTH_MAX + 1];
	char fragctl[PATH_MAX];
};

/* The name is part of C identifiers. */
static bool name_is_valid(const char *name)
{
	return name[0] >= 'a' && name[0] <= 'z' && strlen(name) <= NAME_LENGTH_MAX &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

/* Words of C, C++ and Python, and the names of the other operators of the project's graph. */
static bool name_is_taken(const char *name)
{
	static const char *const taken[] = {
		"alignas",  "alignof", "asm",       "auto",      "bool",     "break",    "case",
		"catch",    "char",    "class",     "const",     "continue", "default",  "delete",
		"do",       "double",  "else",      "enum",      "explicit", "export",   "extern",
		"false",    "float",   "for",       "friend",    "goto",     "if",       "inline",
		"int",      "long",    "mutable",   "namespace", "new",      "noexcept", "nullptr",
		"operator", "private", "protected", "public",    "register", "restrict", "return",
		"short",    "signed",  "sizeof",    "static",    "struct",   "switch",   "template",
		"this",     "throw",   "true",      "try",       "typedef",  "typename", "union",
		"unsigned", "using",   "virtual",   "void",      "volatile", "while",    "numbers",
		"print",    "and",     "as",        "assert",    "async",    "await",    "def",
		"del",      "elif",    "except",    "finally",   "from",     "frag",     "global",
		"import",   "in",      "is",        "lambda",    "nonlocal", "not",      "or",
		"pass",     "raise",   "with",      "yield",     "show",
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(taken); i++)
		if (strcmp(name, taken[i]) == 0)
			return true;
	return false;
}

/* Whether a library that comes with frag has an operator of that name. */
static bool is_built_in(const char *name)
{
	struct fragi_registry *registry = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	bool found = ctl_registry_create("", NULL, &registry) == 0 &&
		     fragi_registry_op(registry, name, &err) != NULL;

	fragi_registry_destroy(registry);
	return found;
}

static void words_init(struct words *words, const char *name)
{
	ssize_t n = readlink("/proc/self/exe", words->fragctl, sizeof(words->fragctl) - 1);
	size_t i;

	words->fragctl[n > 0 ? n : 0] = '\0';
	for (i = 0; i < NAME_LENGTH_MAX && name[i] != '\0'; i++) {
		words->name[i] = words->capital[i] = name[i];
		words->upper[i] =
			(char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
	}
	words->name[i] = words->capital[i] = words->upper[i] = '\0';
	words->capital[0] = words->upper[0];
}

/* Writes the text with the words put in. */
static void text_write(const struct words *words, const char *text, FILE *out)
{
	const struct {
		const char *key, *value;
	} table[] = {
		{"@name@", words->name},       {"@NAME@", words->upper},
		{"@Name@", words->capital},    {"@libdir@", fragi_library_folder()},
		{"@fragctl@", words->fragctl},
	};
	size_t i;

	while (*text != '\0') {
		for (i = 0; i < FRAG_COUNT_OF(table); i++)
			if (strncmp(text, table[i].key, strlen(table[i].key)) == 0)
				break;
		if (i < FRAG_COUNT_OF(table)) {
			fputs(table[i].value, out);
			text += strlen(table[i].key);
		} else {
			fputc(*text++, out);
		}
	}
}

static int file_write(const struct words *words, const struct file *file)
{
	char path[2 * NAME_LENGTH_MAX + 32], *end;
	FILE *out;
	int r;

	r = snprintf(path, sizeof(path), "%s/", words->name);
	end = path + r;
	out = fmemopen(end, sizeof(path) - (size_t)r, "w");
	if (out == NULL)
		return -errno;
	text_write(words, file->name, out);
	fclose(out);
	out = fopen(path, "wxe");
	if (out == NULL)
		return -errno;
	text_write(words, file->text, out);
	r = ferror(out) != 0 ? -EIO : 0;
	if (fclose(out) != 0 && r == 0)
		r = -errno;
	if (r == 0)
		printf("%s\n", path);
	return r;
}

static int make_project(const char *name, bool is_python)
{
	const struct file *list = is_python ? python_files : files;
	const size_t count = is_python ? FRAG_COUNT_OF(python_files) : FRAG_COUNT_OF(files);
	struct words words;
	int r = 0;

	if (!name_is_valid(name))
		return ctl_fail(
			CTL_USAGE,
			"\"%.80s\" is not a valid name of a project; write a lower-case letter, then lower-case letters, digits or _, %d at most",
			name, NAME_LENGTH_MAX);
	if (name_is_taken(name) || is_built_in(name))
		return ctl_fail(
			CTL_USAGE,
			"\"%s\" cannot be the name of a project: it is a word of C, C++ or Python, or an operator of frag has it; give another",
			name);
	if (mkdir(name, 0777) < 0)
		return ctl_fail(errno == EEXIST ? CTL_USAGE : CTL_MISSING,
				errno == EEXIST ? "%s exists already (%s); give another name"
						: "cannot make the folder %s: %s",
				name, strerror(errno));
	words_init(&words, name);
	for (size_t i = 0; i < count && r == 0; i++)
		r = file_write(&words, &list[i]);
	if (r < 0)
		return ctl_fail(CTL_MISSING, "cannot write into %s: %s", name, strerror(-r));
	if (is_python)
		printf("next: cd %s && python3 -m unittest && python3 %s.py\n", name, name);
	else
		printf("next: cd %s && make test && make run\n", name);
	return CTL_OK;
}

int ctl_new(int argc, char **argv)
{
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	bool is_python = false;
	const struct fragi_flag table[] = {
		{.name = "python",
		 .no_env = true,
		 .help = "an operator in Python, with its unit test and a graph",
		 .on = &is_python},
		CTL_COMMON_FLAGS(common)};
	const struct fragi_flags flags = {
		.program = "fragctl new",
		.usage = "NAME [flags]",
		.headline =
			"Makes a folder NAME with a project: an operator, its type, unit test, graph, tests of the graph and Makefile.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int exit_code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, NULL, &exit_code))
		goto out;
	if (operands.count == 1)
		exit_code = make_project(operands.items[0], is_python);
	else
		exit_code = ctl_fail(CTL_USAGE, "name one project: fragctl new NAME");
out:
	fragi_texts_fini(&operands);
	return exit_code;
}
