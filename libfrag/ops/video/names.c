// SPDX-License-Identifier: Apache-2.0
#include "names.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../folders.h"

static const struct field {
	char letter;
	int digits;
} fields[] = {{'Y', 4}, {'m', 2}, {'d', 2}, {'H', 2}, {'M', 2}, {'S', 2}, {'n', 6}, {'r', 4}};

static const struct field *field_of(char letter)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(fields); i++)
		if (fields[i].letter == letter)
			return &fields[i];
	return NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Where the ending of a path begins; at its end if it has none. */
static size_t stem_of(const char *path)
{
	const char *name = strrchr(path, '/'), *end = strrchr(name != NULL ? name : path, '.');

	return end != NULL ? (size_t)(end - path) : strlen(path);
}

int video_names_check(const char *pattern, struct frag_err *err)
{
	for (const char *c = pattern; *c != '\0'; c++) {
		if (*c != '%')
			continue;
		c++;
		if (*c != '%' && (*c == '\0' || field_of(*c) == NULL))
			return frag_err_set(
				err, -EINVAL,
				"the name %s has the unknown field %%%.1s; use %%Y %%m %%d %%H %%M %%S for the time, %%n for the number of the file, %%r for that of the run, and %%%% for a percent sign",
				pattern, c);
	}
	if (strlen(pattern) > PATH_MAX - 200)
		return frag_err_set(err, -ENAMETOOLONG,
				    "the name of the video file is too long; shorten it");
	return 0;
}

bool video_names_have(const char *pattern, char field)
{
	for (const char *c = pattern; *c != '\0'; c++)
		if (*c == '%' && *++c == field)
			return true;
	return false;
}

static int value_of(char letter, const struct video_name *name, const struct tm *time)
{
	switch (letter) {
	case 'Y':
		return time->tm_year + 1900;
	case 'm':
		return time->tm_mon + 1;
	case 'd':
		return time->tm_mday;
	case 'H':
		return time->tm_hour;
	case 'M':
		return time->tm_min;
	case 'S':
		return time->tm_sec;
	case 'n':
		return (int)name->number;
	default:
		return (int)name->run;
	}
}

int video_names_make(const char *pattern, const struct video_name *name, char out[PATH_MAX])
{
	struct tm time = {0};
	size_t used = 0;

	localtime_r(&name->begun, &time);
	for (const char *c = pattern; *c != '\0'; c++) {
		const struct field *field = *c == '%' ? field_of(*++c) : NULL;

		if (used + 20 >= PATH_MAX)
			return -ENAMETOOLONG;
		if (field == NULL)
			out[used++] = *c;
		else
			used += (size_t)snprintf(out + used, 20, "%0*d", field->digits,
						 value_of(*c, name, &time));
	}
	out[used] = '\0';
	return 0;
}

int video_names_create(const char *pattern, const struct video_name *name, char out[PATH_MAX])
{
	char path[PATH_MAX];
	int r = video_names_make(pattern, name, path), stem = (int)stem_of(path);

	if (r == 0)
		r = folders_make(path);
	if (r < 0)
		return r;
	memcpy(out, path, sizeof(path));
	for (int number = 2;; number++) {
		int fd = open(out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
		if (snprintf(out, PATH_MAX, "%.*s-%d%s", stem, path, number, path + stem) >=
		    PATH_MAX)
			return -ENAMETOOLONG;
	}
}

/* Reads at least so many digits. Returns their count; 0: there are fewer. */
static int read_digits(const char *text, int least, uint32_t *out)
{
	int count = 0;

	for (*out = 0; is_digit(text[count]) && count < 9; count++)
		*out = *out * 10 + (uint32_t)(text[count] - '0');
	return count >= least ? count : 0;
}

/* Whether a path may be of the pattern, and which number and run it then has. */
static bool match(const char *pattern, const char *path, struct video_name *out)
{
	size_t stem = stem_of(pattern);
	uint32_t value;

	*out = (struct video_name){0};
	for (size_t i = 0;; i++) {
		const struct field *field = NULL;
		int count;

		if (i == stem && *path == '-' && (count = read_digits(path + 1, 1, &value)) > 0)
			path += 1 + count;
		if (pattern[i] == '%')
			field = field_of(pattern[++i]);
		if (field == NULL) {
			if (*path++ != pattern[i])
				return false;
			if (pattern[i] == '\0')
				return true;
			continue;
		}
		count = read_digits(path, field->digits, &value);
		if (count == 0)
			return false;
		if (field->letter == 'n')
			out->number = value;
		else if (field->letter == 'r')
			out->run = value;
		else
			count = field->digits;
		path += count;
	}
}

/* The pattern for glob, which finds more than the pattern. */
static void glob_of(const char *pattern, char out[2 * PATH_MAX])
{
	size_t stem = stem_of(pattern), used = 0;

	for (size_t i = 0;; i++) {
		if (i == stem)
			out[used++] = '*';
		if (pattern[i] == '%' && field_of(pattern[++i]) != NULL) {
			out[used++] = '*';
			continue;
		}
		if (strchr("*?[\\", pattern[i]) != NULL && pattern[i] != '\0')
			out[used++] = '\\';
		out[used] = pattern[i];
		if (out[used++] == '\0')
			return;
	}
}

int video_names_look(const char *pattern,
		     void (*each)(void *arg, const char *path, const struct video_name *name,
				  const struct stat *status),
		     void *arg)
{
	char text[2 * PATH_MAX];
	glob_t found;
	int r;

	glob_of(pattern, text);
	r = glob(text, GLOB_NOSORT, NULL, &found);
	if (r != 0)
		return r == GLOB_NOMATCH ? 0 : r == GLOB_NOSPACE ? -ENOMEM : -EIO;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct video_name name;
		struct stat status;

		if (match(pattern, found.gl_pathv[i], &name) &&
		    lstat(found.gl_pathv[i], &status) == 0 && S_ISREG(status.st_mode))
			each(arg, found.gl_pathv[i], &name, &status);
	}
	globfree(&found);
	return 0;
}
