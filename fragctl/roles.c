// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <base/alloc.h>
#include <fragctl/roles.h>

/* The flag of a word, "--name", "--name=value" or "-n"; NULL: none. */
static const struct fragi_flag *find_flag(const struct fragi_flags *flags, const char *word)
{
	size_t length = strcspn(word, "=");

	for (size_t i = 0; i < flags->count; i++) {
		const struct fragi_flag *flag = &flags->flags[i];

		if (word[1] != '-' && flag->letter != 0 && flag->letter == word[1])
			return flag;
		if (word[1] == '-' && strlen(flag->name) == length - 2 &&
		    strncmp(flag->name, word + 2, length - 2) == 0)
			return flag;
	}
	return NULL;
}

/* Whether the next word is the value of this flag. */
static bool takes_next(const struct fragi_flag *flag, const char *word)
{
	if (flag->value == NULL)
		return false;
	return word[1] == '-' ? strchr(word, '=') == NULL : word[2] == '\0';
}

static bool has_role(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--driver") == 0 || strcmp(argv[i], "--worker") == 0)
			return true;
	return false;
}

/* Divides the words in front of `--`. Returns the index of the first one that it left. */
static int divide(const struct fragi_flags *flags, int argc, char **argv, struct ctl_line *line)
{
	bool has_graph = false, wants_value = false;
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		bool is_long = strncmp(argv[i], "--", 2) == 0;
		bool is_flag = argv[i][0] == '-' && argv[i][1] != '\0';
		const struct fragi_flag *flag = is_flag ? find_flag(flags, argv[i]) : NULL;
		bool is_argument = has_graph && (is_long ? flag == NULL : !is_flag || wants_value);

		if (is_argument) {
			line->args[line->arg_count++] = argv[i];
			wants_value = is_long && strchr(argv[i], '=') == NULL;
			continue;
		}
		wants_value = false;
		line->own[line->own_count++] = argv[i];
		has_graph = has_graph || !is_flag || (flag != NULL && flag->letter == 'e');
		if (flag != NULL && takes_next(flag, argv[i]) && i + 1 < argc &&
		    strcmp(argv[i + 1], "--") != 0)
			line->own[line->own_count++] = argv[++i];
	}
	return i;
}

static bool is_number(const char *text)
{
	return text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
}

int ctl_line_divide(const struct fragi_flags *flags, int argc, char **argv, struct ctl_line *out)
{
	int i = 1;

	for (int k = 1; k + 1 < argc && strcmp(argv[k], "--") != 0; k++)
		if (strcmp(argv[k], "--worker") == 0 && is_number(argv[k + 1]))
			return ctl_fail(
				CTL_USAGE,
				"--worker takes no number; for a driver and %.20s workers on this machine write --workers %.20s",
				argv[k + 1], argv[k + 1]);
	*out = (struct ctl_line){0};
	out->own = fragi_calloc((size_t)argc + 1, sizeof(*out->own));
	out->args = fragi_calloc((size_t)argc + 1, sizeof(*out->args));
	if (out->own == NULL || out->args == NULL) {
		ctl_line_fini(out);
		return ctl_fail(CTL_FAILED, "out of memory");
	}
	out->own[out->own_count++] = argv[0];
	if (has_role(argc, argv))
		i = divide(flags, argc, argv, out);
	else
		for (; i < argc && strcmp(argv[i], "--") != 0; i++)
			out->own[out->own_count++] = argv[i];
	for (i++; i < argc; i++)
		out->args[out->arg_count++] = argv[i];
	return CTL_OK;
}

void ctl_line_fini(struct ctl_line *line)
{
	fragi_free(line->own);
	fragi_free(line->args);
	*line = (struct ctl_line){0};
}

int ctl_roles_check(const struct ctl_roles *roles)
{
	const char *of_worker = roles->fragments != NULL        ? "--fragments"
				: roles->worker_address != NULL ? "--worker-address"
				: roles->allow_write.count > 0  ? "--allow-write"
								: NULL;
	const char *of_driver = roles->start_timeout != NULL ? "--start-timeout" : NULL;
	const char *of_both = roles->address != NULL    ? "--address"
			      : roles->key_file != NULL ? "--key-file"
			      : roles->insecure         ? "--insecure"
							: NULL;

	if (of_worker != NULL && !roles->worker)
		return ctl_fail(CTL_USAGE, "%s is of a worker; give --worker too, or leave it out",
				of_worker);
	if (of_driver != NULL && !roles->driver)
		return ctl_fail(CTL_USAGE, "%s is of a driver; give --driver too, or leave it out",
				of_driver);
	if (of_both != NULL && !roles->driver && !roles->worker)
		return ctl_fail(
			CTL_USAGE,
			"%s is of a driver or worker; give --driver, --worker or both, or leave it out to run everything here",
			of_both);
	return CTL_OK;
}

void ctl_roles_fini(struct ctl_roles *roles)
{
	fragi_texts_fini(&roles->allow_write);
}
