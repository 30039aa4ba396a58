// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/draft.h>
#include <frag/npy.h>
#include <fragctl/test.h>

/* Tensors in the lines of tests. */

#define BEHIND " tensor \""

bool ctl_test_tensor_next(char **text, struct ctl_test_tensor *out)
{
	char *at = *text, *end, *next, *file;

	if (at == NULL || at[0] != '"' || (end = strchr(at + 1, '"')) == NULL || end[1] != ' ')
		return false;
	*end = '\0';
	*out = (struct ctl_test_tensor){.name = at + 1, .shape = "", .place = end + 2};
	at = end + 2;
	next = strstr(at, BEHIND);
	*text = next != NULL ? next + strlen(BEHIND) - 1 : NULL;
	if (next != NULL)
		*next = '\0';
	file = strstr(at, " @");
	if (file != NULL) {
		*file = '\0';
		out->file = file + 2;
	}
	if (strchr(at, ':') != NULL && strchr(at, '[') != NULL)
		out->shape = at;
	else
		out->file = at;
	return true;
}

static int load(const struct ctl_test_line *line, const struct ctl_test_tensor *tensor,
		struct frag_tensor **out, struct frag_err *err)
{
	const char *slash = strrchr(line->path, '/');
	struct frag_err cause = FRAG_ERR_INIT;
	char path[PATH_MAX];
	int r;

	if (tensor->file[0] == '/' || slash == NULL)
		snprintf(path, sizeof(path), "%s", tensor->file);
	else
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - line->path), line->path,
			 tensor->file);
	r = frag_npy_read(path, out, &cause);
	return r == 0 ? 0
		      : frag_err_set(err, r, "%s:%zu:%zu: %s", line->path, line->number,
				     (size_t)(tensor->place - line->begin) + 1, cause.text);
}

/* "float32 [2, 3]" */
static void describe(const struct frag_tensor *tensor, char *out, size_t size)
{
	static const char *const names[] = {"int",    "uint",    "float", "",
					    "bfloat", "complex", "bool"};
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	int n = snprintf(out, size, "%s%u [",
			 dl->dtype.code < FRAG_COUNT_OF(names) ? names[dl->dtype.code] : "",
			 dl->dtype.bits);

	for (int32_t d = 0; d < dl->ndim; d++)
		n += snprintf(out + n, size - (size_t)n, "%s%" PRId64, d > 0 ? ", " : "",
			      dl->shape[d]);
	snprintf(out + n, size - (size_t)n, "]");
}

/* One number of an element; those that C has no type for are their bits. */
static double number_at(struct frag_dtype dtype, const unsigned char *at, char *text, size_t size)
{
	int64_t i = 0;
	uint64_t u = 0;
	double f64;
	float f32;

	if (dtype.code == FRAG_DTYPE_FLOAT && (dtype.bits == 32 || dtype.bits == 64)) {
		memcpy(&f32, at, sizeof(f32));
		f64 = (double)f32;
		if (dtype.bits == 64)
			memcpy(&f64, at, sizeof(f64));
		snprintf(text, size, dtype.bits == 64 ? "%.17g" : "%.9g", f64);
		return f64;
	}
	memcpy(&u, at, dtype.bits / 8u);
	if (dtype.code == FRAG_DTYPE_INT) {
		i = (int64_t)(u << (64 - dtype.bits)) >> (64 - dtype.bits);
		snprintf(text, size, "%" PRId64, i);
	} else if (dtype.code == FRAG_DTYPE_UINT || dtype.code == FRAG_DTYPE_BOOL) {
		snprintf(text, size, "%" PRIu64, u);
	} else {
		snprintf(text, size, "0x%" PRIx64, u);
	}
	return NAN; /* equal only as bytes */
}

static bool is_near(double a, double b, double tolerance)
{
	return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= tolerance;
}

/* Notes the first element that differs. */
static void compare_data(struct ctl_differences *all, const char *field,
			 const struct frag_tensor *expected, const struct frag_tensor *got,
			 double tolerance)
{
	const struct frag_dltensor *dl = frag_tensor_dl(expected);
	const unsigned char *e = frag_tensor_data(expected), *g = frag_tensor_data(got);
	struct frag_dtype part = dl->dtype; /* a complex number is two of floating point */
	size_t parts = part.code == FRAG_DTYPE_COMPLEX ? 2 : 1, width, count;
	char e_text[40], g_text[40], index[256], place[400];
	int64_t left;
	int n = 0;

	if (parts == 2)
		part = (struct frag_dtype){FRAG_DTYPE_FLOAT, (uint8_t)(part.bits / 2), 1};
	width = part.bits / 8u;
	count = frag_tensor_size_bytes(expected) / width;
	for (size_t i = 0; i < count; i++, e += width, g += width) {
		double a, b;

		if (memcmp(e, g, width) == 0)
			continue;
		a = number_at(part, e, e_text, sizeof(e_text));
		b = number_at(part, g, g_text, sizeof(g_text));
		if (part.code == FRAG_DTYPE_FLOAT && part.bits >= 32 && is_near(a, b, tolerance))
			continue;
		left = (int64_t)(i / parts);
		index[0] = '\0';
		for (int32_t d = 0; d < dl->ndim; d++) {
			int64_t below = 1;

			for (int32_t k = d + 1; k < dl->ndim; k++)
				below *= dl->shape[k];
			n += snprintf(index + n, sizeof(index) - (size_t)n, "%s%" PRId64,
				      d > 0 ? ", " : "", left / below);
			left %= below;
		}
		snprintf(place, sizeof(place), "%s[%s]", field, index);
		ctl_differs(all, place, e_text, g_text);
		return;
	}
}

static int compare_files(struct ctl_differences *all, const char *field,
			 const struct ctl_test_tensor *expected, const struct ctl_test_tensor *got,
			 const struct ctl_test_line *expected_line,
			 const struct ctl_test_line *got_line, double tolerance,
			 struct frag_err *err)
{
	struct frag_tensor *e = NULL, *g = NULL;
	char e_text[256], g_text[256];
	int r = load(expected_line, expected, &e, err);

	if (r == 0)
		r = load(got_line, got, &g, err);
	if (r == 0) {
		describe(e, e_text, sizeof(e_text));
		describe(g, g_text, sizeof(g_text));
		if (strcmp(e_text, g_text) != 0)
			ctl_differs(all, field, e_text, g_text);
		else
			compare_data(all, field, e, g, tolerance);
	}
	frag_tensor_unref(e);
	frag_tensor_unref(g);
	return r;
}

int ctl_compare_tensors(struct ctl_differences *all, char *expected, char *got,
			const struct ctl_test_line *expected_line,
			const struct ctl_test_line *got_line, double tolerance,
			struct frag_err *err)
{
	struct ctl_test_tensor e, g;
	char field[FRAG_NAME_MAX + 16];

	for (;;) {
		bool has_e = ctl_test_tensor_next(&expected, &e);
		bool has_g = ctl_test_tensor_next(&got, &g);

		if (!has_e && !has_g) {
			if (expected != NULL && got != NULL && strcmp(expected, got) != 0)
				ctl_differs(all, "tensor", expected, got);
			return 0;
		}
		if (!has_e || !has_g || strcmp(e.name, g.name) != 0) {
			ctl_differs(all, "name of a tensor", has_e ? e.name : NULL,
				    has_g ? g.name : NULL);
			return 0;
		}
		snprintf(field, sizeof(field), "tensor \"%s\"", e.name);
		if (e.shape[0] == '\0' && g.file != NULL) {
			size_t before = all->total;
			int r = compare_files(all, field, &e, &g, expected_line, got_line,
					      tolerance, err);

			if (r < 0 || all->total > before)
				return r;
		} else if (e.shape[0] == '\0' || strcmp(e.shape, g.shape) != 0) {
			ctl_differs(all, field, e.shape[0] != '\0' ? e.shape : e.file, g.shape);
			return 0;
		}
	}
}

static int copy_file(const char *from, const char *to)
{
	FILE *in = fopen(from, "re"), *out = NULL;
	char buffer[4096];
	size_t n;
	int r = in != NULL ? frag_output_open(to, &out) : -errno;

	while (r == 0 && (n = fread(buffer, 1, sizeof(buffer), in)) > 0)
		if (fwrite(buffer, 1, n, out) != n)
			r = -EIO;
	if (in != NULL)
		fclose(in);
	if (out != NULL && fclose(out) != 0)
		r = -EIO;
	return r;
}

/* `expected.txt` and 0.4.1.npy, which was recorded, to `expected.4.1.npy` beside it. */
static int copy_tensor(const char *got, const char *recorded, const char *expected, char *name,
		       size_t size)
{
	const char *slash = strrchr(expected, '/'), *base = slash != NULL ? slash + 1 : expected;
	const char *number = strchr(recorded, '.'), *got_slash = strrchr(got, '/');
	char from[PATH_MAX], to[PATH_MAX];
	const char *dot = strrchr(base, '.');
	int stem = (int)(dot != NULL ? (size_t)(dot - base) : strlen(base));

	snprintf(name, size, "%.*s%s", stem, base, number != NULL ? number : recorded);
	snprintf(from, sizeof(from), "%.*s%s", got_slash != NULL ? (int)(got_slash - got) + 1 : 0,
		 got, recorded);
	snprintf(to, sizeof(to), "%.*s%s", (int)(base - expected), expected, name);
	return copy_file(from, to);
}

static int update_line(const char *got, const char *expected, char *line, FILE *out)
{
	const char *type = line + strcspn(line, " \t");
	struct ctl_test_tensor tensor;
	char name[NAME_MAX + 1], *tensors = NULL;
	int r = 0;

	type += strspn(type, " \t");
	if (strncmp(type, "string ", 7) != 0) /* which takes all that is behind it */
		tensors = strstr(line, BEHIND);
	if (tensors != NULL) {
		*tensors = '\0';
		tensors += strlen(BEHIND) - 1;
	}
	fputs(line, out);
	while (r == 0 && ctl_test_tensor_next(&tensors, &tensor)) {
		if (tensor.file == NULL) {
			fprintf(out, BEHIND "%s\" %s", tensor.name, tensor.shape);
			continue;
		}
		r = copy_tensor(got, tensor.file, expected, name, sizeof(name));
		fprintf(out, BEHIND "%s\" %s", tensor.name, name);
	}
	fputc('\n', out);
	return r;
}

int ctl_test_update(const char *got, const char *expected)
{
	FILE *in = fopen(got, "re"), *out = NULL;
	int r = in != NULL ? frag_output_open(expected, &out) : -errno;
	char *line = NULL;
	size_t size = 0;
	ssize_t length;

	while (r == 0 && (length = getline(&line, &size, in)) >= 0) {
		if (length > 0 && line[length - 1] == '\n')
			line[length - 1] = '\0';
		r = update_line(got, expected, line, out);
	}
	free(line);
	if (in != NULL)
		fclose(in);
	if (out != NULL && fclose(out) != 0)
		r = -EIO;
	return r;
}
