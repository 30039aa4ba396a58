// SPDX-License-Identifier: Apache-2.0
#include <base/flags.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>

#define FLAGS_MAX 64

int fragi_texts_add(struct fragi_texts *texts, const char *text)
{
	const char **items = fragi_realloc(texts->items, (texts->count + 1) * sizeof(*items));

	if (items == NULL)
		return -ENOMEM;
	items[texts->count] = text;
	texts->items = items;
	texts->count++;
	return 0;
}

void fragi_texts_fini(struct fragi_texts *texts)
{
	fragi_free(texts->items);
	texts->items = NULL;
	texts->count = 0;
}

static int flag_take(const struct fragi_flag *flag, const char *value)
{
	if (flag->text != NULL)
		*flag->text = value;
	else if (flag->texts != NULL)
		return fragi_texts_add(flag->texts, value);
	else if (flag->on != NULL)
		*flag->on = true;
	else if (flag->times != NULL)
		++*flag->times;
	return 0;
}

static const struct fragi_flag *flag_find(const struct fragi_flags *flags, const char *name,
					  size_t length)
{
	for (size_t i = 0; i < flags->count; i++)
		if (strncmp(flags->flags[i].name, name, length) == 0 &&
		    flags->flags[i].name[length] == '\0')
			return &flags->flags[i];
	return NULL;
}

static int flag_unknown(const struct fragi_flags *flags, const char *name, size_t length,
			struct frag_err *err)
{
	const char *names[FLAGS_MAX];
	char word[80];
	const char *near;
	size_t count = 0;

	for (size_t i = 0; i < flags->count && i < FLAGS_MAX; i++)
		names[count++] = flags->flags[i].name;
	snprintf(word, sizeof(word), "%.*s", (int)(length < 79 ? length : 79), name);
	near = fragi_suggest(word, names, count);
	if (near != NULL)
		return frag_err_set(err, -EINVAL, "unknown flag --%s; did you mean --%s?", word,
				    near);
	return frag_err_set(err, -EINVAL, "unknown flag --%s; %s --help lists the flags%s%s%s",
			    word, flags->program, flags->rest != NULL ? ", and " : "",
			    flags->rest != NULL ? flags->rest : "",
			    flags->rest != NULL ? " follow --" : "");
}

/* Parses argv[*i], which starts with two dashes and a name. */
static int parse_long(const struct fragi_flags *flags, int argc, char **argv, int *i, bool *given,
		      struct frag_err *err)
{
	const char *name = argv[*i] + 2;
	size_t length = strcspn(name, "=");
	const char *value = name[length] == '=' ? name + length + 1 : NULL;
	const struct fragi_flag *flag = flag_find(flags, name, length);

	if (flag == NULL)
		return flag_unknown(flags, name, length, err);
	if (flag->value == NULL && value != NULL)
		return frag_err_set(err, -EINVAL, "--%s takes no value", flag->name);
	if (flag->value != NULL && value == NULL) {
		if (*i + 1 >= argc || strcmp(argv[*i + 1], "--") == 0)
			return frag_err_set(err, -EINVAL, "--%s needs a value: --%s %s", flag->name,
					    flag->name, flag->value);
		value = argv[++*i];
	}
	given[flag - flags->flags] = true;
	return flag_take(flag, value);
}

/* Parses argv[*i], which is a dash and letters. */
static int parse_short(const struct fragi_flags *flags, int argc, char **argv, int *i, bool *given,
		       struct frag_err *err)
{
	for (const char *c = argv[*i] + 1; *c != '\0'; c++) {
		const struct fragi_flag *flag = NULL;
		const char *value = NULL;

		for (size_t k = 0; k < flags->count && flag == NULL; k++)
			if (flags->flags[k].letter == *c)
				flag = &flags->flags[k];
		if (flag == NULL)
			return frag_err_set(err, -EINVAL,
					    "unknown flag -%c; %s --help lists the flags", *c,
					    flags->program);
		given[flag - flags->flags] = true;
		if (flag->value == NULL) {
			flag_take(flag, NULL);
			continue;
		}
		value = c[1] != '\0' ? c + 1 : *i + 1 < argc ? argv[++*i] : NULL;
		if (value == NULL)
			return frag_err_set(err, -EINVAL, "-%c needs a value: -%c %s", *c, *c,
					    flag->value);
		return flag_take(flag, value);
	}
	return 0;
}

static void env_name(const char *flag, char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "FRAG_");

	for (; *flag != '\0' && used + 1 < size; flag++)
		out[used++] = (char)(*flag == '-' ? '_' : toupper((unsigned char)*flag));
	out[used] = '\0';
}

static int parse_env(const struct fragi_flag *flag, struct frag_err *err)
{
	char name[80];
	const char *value;
	bool on = false;

	if (flag->no_env || flag->times != NULL)
		return 0;
	env_name(flag->name, name, sizeof(name));
	value = getenv(name);
	if (value == NULL || *value == '\0')
		return 0;
	if (flag->on == NULL)
		return flag_take(flag, value);
	if (fragi_parse_bool(value, &on) < 0)
		return frag_err_set(err, -EINVAL,
				    "the environment's %s is \"%s\"; it must be true or false",
				    name, value);
	*flag->on = on;
	return 0;
}

int fragi_flags_parse(const struct fragi_flags *flags, int argc, char **argv,
		      struct fragi_texts *operands, int *rest, struct frag_err *err)
{
	bool given[FLAGS_MAX] = {false};
	int i, r = 0;

	if (flags->count > FLAGS_MAX)
		return frag_err_set(err, -EINVAL, "%s declares more than %d flags", flags->program,
				    FLAGS_MAX);
	for (i = 1; i < argc && r == 0; i++) {
		if (strcmp(argv[i], "--") == 0)
			break;
		if (strncmp(argv[i], "--", 2) == 0)
			r = parse_long(flags, argc, argv, &i, given, err);
		else if (argv[i][0] == '-' && argv[i][1] != '\0')
			r = parse_short(flags, argc, argv, &i, given, err);
		else if (operands == NULL && flags->operand != NULL)
			r = frag_err_set(err, -EINVAL, "unexpected \"%s\"; did you mean --%s %s?",
					 argv[i], flags->operand, argv[i]);
		else if (operands == NULL)
			r = frag_err_set(err, -EINVAL,
					 "unexpected \"%s\"; %s --help lists the flags", argv[i],
					 flags->program);
		else
			r = fragi_texts_add(operands, argv[i]);
	}
	if (r < 0)
		return r;
	if (i < argc)
		i++; /* the "--" itself */
	if (rest != NULL) {
		*rest = i;
	} else {
		for (; i < argc; i++) {
			if (operands == NULL)
				return frag_err_set(err, -EINVAL, "unexpected \"%s\" after --",
						    argv[i]);
			r = fragi_texts_add(operands, argv[i]);
			if (r < 0)
				return r;
		}
	}
	for (size_t k = 0; k < flags->count; k++) {
		r = given[k] ? 0 : parse_env(&flags->flags[k], err);
		if (r < 0)
			return r;
	}
	return 0;
}

bool fragi_flags_want_json(const struct fragi_flags *flags, int argc, char **argv)
{
	const struct fragi_flag *output = flags != NULL ? flag_find(flags, "output", 6) : NULL;
	const char *wanted = flags == NULL || output != NULL ? getenv("FRAG_OUTPUT") : NULL;

	if (output != NULL && strcmp(output->value, "table|json") != 0)
		return false;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		bool takes_next = strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0;

		if (takes_next)
			wanted = argv[i + 1]; /* or the NULL behind the last word */
		else if (strncmp(argv[i], "-o", 2) == 0)
			wanted = argv[i] + 2;
		else if (strncmp(argv[i], "--output=", 9) == 0)
			wanted = argv[i] + 9;
	}
	return wanted != NULL && strcmp(wanted, "json") == 0;
}

#define HELP_COLUMNS 100
#define HELP_LEFT 45 /* where what a flag does begins */

/*
 * Prints text from column `at` on in lines of HELP_COLUMNS at most, the later ones indented; a word
 * that is longer is printed whole.
 */
static void print_wrapped(FILE *out, const char *text, size_t at, int indent)
{
	size_t column = at, length;
	bool begins = true;

	for (; *text != '\0'; text += length, text += strspn(text, " ")) {
		length = strcspn(text, " ");
		if (!begins && column + 1 + length > HELP_COLUMNS) {
			fprintf(out, "\n%*s", indent, "");
			column = (size_t)indent;
			begins = true;
		}
		fprintf(out, "%s%.*s", begins ? "" : " ", (int)length, text);
		column += length + (begins ? 0 : 1);
		begins = false;
	}
	fputc('\n', out);
}

void fragi_flags_help(const struct fragi_flags *flags, FILE *out)
{
	bool env = false;

	fprintf(out, "usage: %s ", flags->program);
	print_wrapped(out, flags->usage, strlen("usage:  ") + strlen(flags->program), 8);
	fputc('\n', out);
	print_wrapped(out, flags->headline, 0, 0);
	fputc('\n', out);
	for (size_t i = 0; i < flags->count; i++) {
		const struct fragi_flag *flag = &flags->flags[i];
		char left[96];
		int used;

		if (flag->help == NULL)
			continue;
		used = flag->letter != 0
			       ? snprintf(left, sizeof(left), "-%c, --%s", flag->letter, flag->name)
			       : snprintf(left, sizeof(left), "    --%s", flag->name);

		if (flag->value != NULL && used > 0 && (size_t)used < sizeof(left))
			snprintf(left + used, sizeof(left) - (size_t)used, " %s", flag->value);
		fprintf(out, "  %-42s ", left);
		print_wrapped(out, flag->help, HELP_LEFT, HELP_LEFT);
		env = env || (!flag->no_env && flag->times == NULL);
	}
	if (env)
		fputs("\nA flag that is not given is taken from the environment: --some-flag from FRAG_SOME_FLAG.\n",
		      out);
	if (flags->example != NULL)
		fprintf(out, "\nExample:\n  %s\n", flags->example);
}
