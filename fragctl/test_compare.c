// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/units.h>
#include <fragctl/test.h>

/* A line `TIME TYPE VALUE`, cut in place; what is missing is "". */
struct fields {
	const char *time, *type, *value;
	char *tensors; /* behind the first `tensor`; NULL: none */
};

static struct fields cut(char *line)
{
	struct fields fields = {"", "", "", NULL};
	char *rest = line, *tensors;

	fields.time = strsep(&rest, " \t");
	rest += rest != NULL ? strspn(rest, " \t") : 0;
	if (rest == NULL)
		return fields;
	if (strncmp(rest, "tensor ", 7) == 0) {
		fields.type = "tensor";
		fields.tensors = rest + 7;
		return fields;
	}
	fields.type = strsep(&rest, " \t");
	fields.value = rest != NULL ? rest : "";
	/* A text is all that follows. */
	tensors = rest != NULL && strcmp(fields.type, "string") != 0 ? strstr(rest, " tensor \"")
								     : NULL;
	if (tensors != NULL) {
		*tensors = '\0';
		fields.tensors = tensors + 8;
	}
	return fields;
}

/* The next line that is a message, without its line break; false: there is none. */
static bool next(FILE *in, char **line, size_t *size, size_t *number)
{
	ssize_t length;

	while ((length = getline(line, size, in)) >= 0) {
		(*number)++;
		if (length > 0 && (*line)[length - 1] == '\n')
			(*line)[--length] = '\0';
		if ((*line)[0] != '#' && (*line)[strspn(*line, " \t")] != '\0')
			return true;
	}
	return false;
}

void ctl_differs(struct ctl_differences *all, const char *field, const char *expected,
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
		.field = strdup(field),
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

static bool is_near(const char *expected, const char *got, double tolerance)
{
	double a, b;

	return fragi_parse_f64(expected, &a) == 0 && fragi_parse_f64(got, &b) == 0 &&
	       fabs(a - b) <= tolerance;
}

/* Two trees of JSON; the first leaf that differs is noted. */
static bool compare_nodes(struct ctl_differences *all, const char *field,
			  const struct fragi_node *expected, const struct fragi_node *got,
			  double tolerance)
{
	static const char *const kinds[] = {"null", NULL, "a list", "an object"};
	const struct fragi_node *other = got->first;
	char path[512];
	size_t i = 0;

	if (expected->kind != got->kind || expected->count != got->count) {
		char e[64], g[64];

		snprintf(e, sizeof(e), "%.20s of %zu", kinds[expected->kind], expected->count);
		snprintf(g, sizeof(g), "%.20s of %zu", kinds[got->kind], got->count);
		ctl_differs(all, field, expected->kind == FRAGI_NODE_SCALAR ? expected->text : e,
			    got->kind == FRAGI_NODE_SCALAR ? got->text : g);
		return false;
	}
	if (expected->kind == FRAGI_NODE_SCALAR) {
		if (strcmp(expected->text, got->text) == 0 ||
		    (!expected->quoted && is_near(expected->text, got->text, tolerance)))
			return true;
		ctl_differs(all, field, expected->text, got->text);
		return false;
	}
	for (const struct fragi_node *child = expected->first; child != NULL;
	     child = child->next, i++) {
		if (expected->kind == FRAGI_NODE_MAP) {
			snprintf(path, sizeof(path), "%s.%s", field, child->key->text);
			other = fragi_node_get(got, child->key->text);
		} else {
			snprintf(path, sizeof(path), "%s[%zu]", field, i);
		}
		if (other == NULL) {
			ctl_differs(all, path, "a field", NULL);
			return false;
		}
		if (!compare_nodes(all, path, child, other, tolerance))
			return false;
		other = other->next;
	}
	return true;
}

/* Returns whether both are JSON: then what differs is noted. */
static bool compare_json(struct ctl_differences *all, const char *expected, const char *got,
			 double tolerance)
{
	struct fragi_arena arena = {0};
	struct fragi_diag diag = {0};
	struct fragi_node *e = NULL, *g = NULL;
	bool is_json = (expected[0] == '{' || expected[0] == '[') && expected[0] == got[0];

	if (is_json)
		is_json =
			fragi_yaml_parse(&arena, "", expected, strlen(expected), &diag, &e) == 0 &&
			fragi_yaml_parse(&arena, "", got, strlen(got), &diag, &g) == 0 &&
			e != NULL && g != NULL;
	if (is_json)
		(void)compare_nodes(all, "value", e, g, tolerance);
	fragi_diag_fini(&diag);
	fragi_arena_fini(&arena);
	return is_json;
}

static void compare_value(struct ctl_differences *all, const struct fields *e,
			  const struct fields *g, double tolerance)
{
	if (strcmp(e->value, g->value) == 0 || compare_json(all, e->value, g->value, tolerance))
		return;
	if ((strcmp(e->type, "f64") != 0 && strcmp(e->type, "f32") != 0) ||
	    !is_near(e->value, g->value, tolerance))
		ctl_differs(all, "value", e->value, g->value);
}

/* The first field that differs is named: what follows it is not worth comparing. */
static int compare(struct ctl_differences *all, char *expected, char *got,
		   const struct ctl_test_line *expected_line, const struct ctl_test_line *got_line,
		   double tolerance, struct frag_err *err)
{
	struct fields e = cut(expected), g = cut(got);
	size_t before = all->total;
	int r = 0;

	if (strcmp(e.type, g.type) != 0)
		ctl_differs(all, "type", e.type, g.type);
	else
		compare_value(all, &e, &g, tolerance);
	if (all->total == before)
		r = ctl_compare_tensors(all, e.tensors, g.tensors, expected_line, got_line,
					tolerance, err);
	if (all->total == before && strcmp(e.time, "-") != 0 &&
	    fabs(time_ns(e.time) - time_ns(g.time)) > 0.5)
		ctl_differs(all, "time", e.time, g.time);
	return r;
}

static int compare_all(FILE *e_in, FILE *g_in, struct ctl_test_line *e_line,
		       struct ctl_test_line *g_line, double tolerance, struct ctl_differences *out,
		       struct frag_err *err)
{
	char *e = NULL, *g = NULL;
	size_t e_size = 0, g_size = 0;
	bool has_e, has_g;
	int r = 0;

	while (r == 0) {
		has_e = next(e_in, &e, &e_size, &e_line->number);
		has_g = next(g_in, &g, &g_size, &g_line->number);
		if (!has_e && !has_g)
			break;
		out->messages++;
		e_line->begin = e;
		g_line->begin = g;
		if (has_e && has_g)
			r = compare(out, e, g, e_line, g_line, tolerance, err);
		else
			ctl_differs(out, "message", has_e ? e : NULL, has_g ? g : NULL);
	}
	free(e);
	free(g);
	return r;
}

int ctl_compare(const char *expected, const char *got, double tolerance,
		struct ctl_differences *out, struct frag_err *err)
{
	struct ctl_test_line e_line = {.path = expected}, g_line = {.path = got};
	FILE *e_in = fopen(expected, "re"), *g_in = fopen(got, "re");
	int r;

	*out = (struct ctl_differences){0};
	if (e_in == NULL)
		r = frag_err_set(err, -errno, "%s: %s; --update writes what ports emit", expected,
				 strerror(errno));
	else if (g_in == NULL)
		r = frag_err_set(err, -EIO, "%s: what was emitted cannot be read", got);
	else
		r = compare_all(e_in, g_in, &e_line, &g_line, tolerance, out, err);
	if (e_in != NULL)
		fclose(e_in);
	if (g_in != NULL)
		fclose(g_in);
	return r;
}

void ctl_differences_fini(struct ctl_differences *differences)
{
	for (size_t i = 0; i < differences->count; i++) {
		free(differences->items[i].field);
		free(differences->items[i].expected);
		free(differences->items[i].got);
	}
	free(differences->items);
}
