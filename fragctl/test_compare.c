/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fragctl/test.h>

/* A line `TIME TYPE VALUE`, cut in place; what is missing is "". */
struct fields {
	const char *time, *type, *value;
};

static struct fields cut(char *line)
{
	struct fields fields = {"", "", ""};
	char *rest = line;

	fields.time = strsep(&rest, " \t");
	rest += rest != NULL ? strspn(rest, " \t") : 0;
	fields.type = rest != NULL ? strsep(&rest, " \t") : "";
	fields.value = rest != NULL ? rest : "";
	return fields;
}

/* The next line that is a message, without its line break; false: there is none. */
static bool next(FILE *in, char **line, size_t *size)
{
	ssize_t length;

	while ((length = getline(line, size, in)) >= 0) {
		if (length > 0 && (*line)[length - 1] == '\n')
			(*line)[--length] = '\0';
		if ((*line)[0] != '#' && (*line)[strspn(*line, " \t")] != '\0')
			return true;
	}
	return false;
}

static void add(struct ctl_differences *all, const char *field, const char *expected,
		const char *got)
{
	struct ctl_difference *items;

	if (all->total++ >= CTL_DIFFERENCES_MAX)
		return;
	items = realloc(all->items, (all->count + 1) * sizeof(*items));
	if (items == NULL)
		return;
	all->items = items;
	items[all->count++] = (struct ctl_difference){
		.message = all->messages,
		.field = field,
		.expected = expected != NULL ? strdup(expected) : NULL,
		.got = got != NULL ? strdup(got) : NULL,
	};
}

static double time_ns(const char *text)
{
	char *end;
	double number = strtod(text, &end);

	return number * (strcmp(end, "s") == 0    ? 1e9
			 : strcmp(end, "ms") == 0 ? 1e6
			 : strcmp(end, "us") == 0 ? 1e3
						  : 1);
}

static bool same_value(const char *type, const char *expected, const char *got, double tolerance)
{
	if (strcmp(expected, got) == 0)
		return true;
	return strcmp(type, "f64") == 0 &&
	       fabs(strtod(expected, NULL) - strtod(got, NULL)) <= tolerance;
}

/* The first field that differs is named: what follows it is not worth comparing. */
static void compare(struct ctl_differences *all, char *expected, char *got, double tolerance)
{
	struct fields e = cut(expected), g = cut(got);

	if (strcmp(e.type, g.type) != 0)
		add(all, "type", e.type, g.type);
	else if (!same_value(e.type, e.value, g.value, tolerance))
		add(all, "value", e.value, g.value);
	else if (strcmp(e.time, "-") != 0 && fabs(time_ns(e.time) - time_ns(g.time)) > 0.5)
		add(all, "time", e.time, g.time);
}

int ctl_compare(const char *expected, const char *got, double tolerance,
		struct ctl_differences *out, const char **out_path)
{
	char *e = NULL, *g = NULL;
	size_t e_size = 0, g_size = 0;
	bool has_e, has_g;
	FILE *e_in = fopen(expected, "re"), *g_in;

	*out = (struct ctl_differences){0};
	*out_path = expected;
	if (e_in == NULL)
		return -errno;
	*out_path = got;
	g_in = fopen(got, "re");
	if (g_in == NULL) {
		int r = -errno;

		fclose(e_in);
		return r;
	}
	for (;;) {
		has_e = next(e_in, &e, &e_size);
		has_g = next(g_in, &g, &g_size);
		if (!has_e && !has_g)
			break;
		out->messages++;
		if (has_e && has_g)
			compare(out, e, g, tolerance);
		else
			add(out, "message", has_e ? e : NULL, has_g ? g : NULL);
	}
	free(e);
	free(g);
	fclose(e_in);
	fclose(g_in);
	return 0;
}

void ctl_differences_fini(struct ctl_differences *differences)
{
	for (size_t i = 0; i < differences->count; i++) {
		free(differences->items[i].expected);
		free(differences->items[i].got);
	}
	free(differences->items);
}
