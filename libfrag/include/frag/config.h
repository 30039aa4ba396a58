/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_CONFIG_H
#define FRAG_CONFIG_H

#include <frag/compose.h>

FRAG_BEGIN_DECLS

/*
 * The configuration of an application in C: what `config:` of its graph and files of --config hold,
 * merged, with ${name} replaced.
 *
 * As arguments. An argument that is called from_config sets what a graph would set with it: of a
 * map each of its keys, of any other value the parameter that is called as the last part of its
 * path. A value may be taken from the configuration too. Later arguments win.
 *
 * 	frag_make_operator(fragment, "detect", "detector",
 * 			   FRAG_ARGS({"from_config", "detection"},
 * 				     {"from_config", "[models.first, models.second]"},
 * 				     {"labels", "{from_config: labels}"},
 * 				     {"threshold", "0.7"}));
 *
 * Value by value. The functions below are called inside a composer, in compose of a subgraph or in
 * setup of an operator, on its thread. What they return lives as long as the fragment.
 * In compose of a subgraph for which the graph gives a configuration, `subgraphs: {NAME: {config:
 * ...}}`, that one counts; a path whose first key it lacks is one of the application's.
 * - path: keys, separated by dots: "detection.threshold"
 * Each returns 0; -ENOENT: there is nothing, or null, at path, and *out is untouched, so that it
 * keeps its default; -EINVAL: the value is of another kind, or out of range; -ENOMEM. A wrong value
 * is an error of the graph with file, line and column, which refuses the application together with
 * all its other errors, so that a composer need not stop at it. None of them blocks or is RT-safe.
 */

/* true or false */
FRAG_API int frag_config_bool(struct frag_fragment *fragment, const char *path, bool *out);
/*
 * A whole number, from min to max: INT64_MIN and INT64_MAX take any, INT32_MIN and INT32_MAX what
 * an int32_t holds, 0 and UINT16_MAX what a uint16_t holds.
 */
FRAG_API int frag_config_i64(struct frag_fragment *fragment, const char *path, int64_t min,
			     int64_t max, int64_t *out);
FRAG_API int frag_config_f64(struct frag_fragment *fragment, const char *path, double *out);
FRAG_API int frag_config_string(struct frag_fragment *fragment, const char *path, const char **out);
/* Bytes: 4096, "512Mi", "2MB" */
FRAG_API int frag_config_size(struct frag_fragment *fragment, const char *path, uint64_t *out);
/* Nanoseconds: 1000, "10ms", "30hz" (the period) */
FRAG_API int frag_config_duration(struct frag_fragment *fragment, const char *path, int64_t *out);
/* Lists of numbers and of texts; {key: text} */
FRAG_API int frag_config_i64_list(struct frag_fragment *fragment, const char *path,
				  struct frag_i64_list *out);
FRAG_API int frag_config_f64_list(struct frag_fragment *fragment, const char *path,
				  struct frag_f64_list *out);
FRAG_API int frag_config_string_list(struct frag_fragment *fragment, const char *path,
				     struct frag_string_list *out);
FRAG_API int frag_config_string_map(struct frag_fragment *fragment, const char *path,
				    struct frag_string_map *out);
/* Any value, of any depth. path NULL: the whole configuration. */
FRAG_API int frag_config_tree(struct frag_fragment *fragment, const char *path,
			      const struct frag_tree **out);

/*
 * Returns the paths of all keys of the configuration (inside a subgraph with one of its own, of
 * that), of maps and of what is in them, in the order of the texts: "detection",
 * "detection.threshold". Keys of maps inside lists are not among them. Empty: there is no
 * configuration, or memory is short (reported).
 */
FRAG_API struct frag_string_list frag_config_keys(struct frag_fragment *fragment);

FRAG_END_DECLS

#endif
