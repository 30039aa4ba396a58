/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_NAMES_H
#define VIDEO_NAMES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <frag/error.h>

/*
 * Names of recordings. A pattern is a path with fields: %Y %m %d %H %M %S are of the local time at
 * which the file begins, %n is the number of the file (six digits), %r that of the run (four), and
 * %% is a percent sign.
 */
struct video_name {
	time_t begun;
	uint32_t number, run;
};

/* Returns 0, or -EINVAL with a sentence: there is an unknown field, or the path is too long. */
int video_names_check(const char *pattern, struct frag_err *err);
bool video_names_have(const char *pattern, char field);
/*
 * Creates a new file and its folders; none that is there is changed.
 * - out: its path: the pattern with its fields; where that is taken with -2, -3 and so on before
 *   the ending
 * Returns a descriptor to write to, or a negative errno.
 */
int video_names_create(const char *pattern, const struct video_name *name, char out[PATH_MAX]);
/* The name of the pattern without a number of video_names_create. Returns 0 or -ENAMETOOLONG. */
int video_names_make(const char *pattern, const struct video_name *name, char out[PATH_MAX]);
/*
 * Looks at the files that are there whose names could be of this pattern.
 * - each: their path, name (without the time) and status
 * Returns 0 or a negative errno.
 */
struct stat;
int video_names_look(const char *pattern,
		     void (*each)(void *arg, const char *path, const struct video_name *name,
				  const struct stat *status),
		     void *arg);

#endif
